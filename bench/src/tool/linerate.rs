//! Ourselves.

use anyhow::{Context, bail};
use serde_json::Value;

use super::{Commands, Kind, Said, Site, Tool, first_line};
use crate::workload::{Contest, Unit};

/// Our own program.
pub const TOOL: Tool = Tool {
    name: "linerate",
    kind: Kind::Ours,
    version: |programs| first_line(&programs.linerate.display().to_string(), "--version"),
    plans,
};

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    let flows = workload.flows().to_string();
    let told = |words: &[&str]| one(site, workload).with(&["-P", &flows]).with(words);
    let plain = |words: &[&str]| told(&["--json"]).with(words);
    let sharded = |words: &[&str]| plain(words).called("sharded");
    match workload {
        Contest::Tcp10 | Contest::Memory1 | Contest::Memory10000 => vec![plain(&[])],
        // What it costs to tell a result as it comes.
        Contest::Tcp1 => vec![
            plain(&[]),
            plain(&["-i", "0"]).called("without intervals"),
            told(&["--json-stream", "-i", "0.1"]).called("with intervals"),
        ],
        Contest::Tcp1Calls128K => vec![plain(&["-l", "128K"])],
        Contest::Tcp1Calls1M => vec![plain(&["-l", "1M"])],
        Contest::Startup => vec![plain(&["-O", "0"])],
        Contest::Tcp1ZerocopySend => vec![plain(&["--zerocopy=auto"])],
        Contest::Tcp1Fast | Contest::Tcp10Fast => {
            vec![plain(&["--zerocopy=auto", "--rx", "discard"])]
        }
        Contest::Rr1Spin => vec![plain(&["--rr", "--busy-poll"])],
        Contest::Rr1 => vec![
            plain(&["--rr"]),
            plain(&["--rr", "--busy-poll"]).called("yielding"),
        ],
        Contest::Rr64 => vec![
            plain(&["--rr", "--workers", "1"]),
            sharded(&["--rr", "--workers", "2"]),
            plain(&["--rr", "--workers", "1", "--busy-poll"]).called("spinning"),
            // Pairs of workers on a CPU each, where a spinning worker has one to itself by default.
            plain(&["--rr", "--workers", "2", "--busy-poll", "-A", "0:1,0:1"])
                .called("sharded, spinning"),
        ],
        Contest::Crr64 => vec![
            plain(&["--crr", "--workers", "1"]),
            sharded(&["--crr", "--workers", "2"]),
        ],
        Contest::Udp64 => vec![
            plain(&["-u", "-b", "0", "-l", "64"]),
            one(site, workload)
                .with(&["--json", "-P", "2", "-u", "-b", "0", "-l", "64"])
                .called("two pairs"),
            one(site, workload)
                .with(&["--json", "-P", "2", "-u", "-b", "0", "-l", "64"])
                .with(&["--batch", "1"])
                .called("two pairs, plain"),
        ],
        Contest::Udp64Gso => vec![plain(&["-u", "-b", "0", "-l", "64", "--gso", "64"])],
        // 128 a send, as iperf3.
        Contest::Udp64GsoGro => {
            vec![plain(&[
                "-u", "-b", "0", "-l", "64", "--gso", "128", "--gro",
            ])]
        }
        Contest::Tcp100Nodelay => vec![
            plain(&["-l", "100", "-N"]),
            plain(&["-l", "100", "-N", "--rcvlowat", "0"]).called("woken for each"),
        ],
        // 64 000 bytes a call, which is about a superframe.
        Contest::Tcp100Batched => vec![plain(&["-l", "100", "--batch", "640"])],
    }
}

fn one(site: &Site<'_>, workload: Contest) -> Commands {
    let program = site.programs.linerate.display().to_string();
    let (port, seconds) = (site.port.to_string(), site.seconds.to_string());
    let server = [
        &program,
        "serve",
        "--bind",
        site.host,
        "--port",
        &port,
        "--limit-flows",
        "20000",
        // What is measured lies beside the control connection, on a network of this machine.
        "--plain",
        "--public",
    ];
    let target = format!("{}:{port}", site.host);
    let client = [&program, "run", &target, "--time", &seconds, "--plain"];
    // 1: no valid trial, and the document says why. 3: measured, but the machine was shared; what
    // that means is for the rounds to say.
    let plan = Commands {
        accepts: &[1, 3],
        valid,
        ..Commands::new(site, &server, &client, read)
    };
    match site.cpus {
        // The threads that move payload are pinned by ourselves, as a user would.
        Some((server, client)) if workload.flows() == 1 => {
            plan.with(&["--affinity", &format!("{client},{server}")])
        }
        _ => plan,
    }
}

fn trial(said: &Said) -> anyhow::Result<Value> {
    let mut document: Value = match serde_json::from_str(&said.client) {
        Ok(document) => document,
        // A line for each event; the last has the document.
        Err(_) => serde_json::from_str(said.client.trim().lines().last().unwrap_or_default())?,
    };
    if document["event"] == "end" {
        document = document["data"].take();
    }
    Ok(document["trials"][0].take())
}

fn valid(said: &Said) -> anyhow::Result<()> {
    match trial(said)?["invalid"].as_str() {
        Some(reason) => bail!("its trial is not valid: {reason}"),
        None => Ok(()),
    }
}

fn read(said: &Said) -> anyhow::Result<f64> {
    let trial = trial(said)?;
    let responses = &trial["responses"];
    let (name, divisor) = match said.workload.unit() {
        Unit::TransactionsPerSecond => ("transactions_per_s", 1.0),
        Unit::PacketsPerSecond => ("datagrams_received_per_s", 1.0),
        // Bytes received over bytes of a message, as for every peer.
        Unit::MessagesPerSecond => ("throughput_bps", 800.0),
        Unit::BitsPerSecond | Unit::Seconds | Unit::Bytes => ("throughput_bps", 1.0),
    };
    let value = responses[name]
        .as_f64()
        .with_context(|| format!("no {name}"))?;
    Ok(value / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::said;

    #[test]
    fn responses_of_a_trial() {
        let document = r#"{"trials":[{"responses":{"throughput_bps":8e9,"transactions_per_s":5,
            "datagrams_received_per_s":7}}]}"#;
        let check = |workload, expected: Option<f64>| {
            assert_eq!(read(&said(workload, document, "")).ok(), expected);
        };
        let line = document.replace('\n', "");
        let events = format!("{{\"event\":\"start\"}}\n{{\"event\":\"end\",\"data\":{line}}}\n");
        let streamed = read(&said(Contest::Tcp1, &events, "")).expect("a result");
        assert_eq!(streamed, 8e9);
        let invalid = r#"{"trials":[{"invalid":"a host was lost","responses":{}}]}"#;
        let error = valid(&said(Contest::Tcp1, invalid, "")).expect_err("not valid");
        assert!(error.to_string().contains("a host was lost"), "{error}");
        check(Contest::Tcp1, Some(8e9));
        check(Contest::Rr64, Some(5.0));
        check(Contest::Tcp100Nodelay, Some(1e7));
        check(Contest::Udp64, Some(7.0));
        let other = r#"{"trials":[{"responses":{"throughput_bps":8e9}}]}"#;
        assert!(read(&said(Contest::Udp64, other, "")).is_err());
    }
}
