//! iperf3: bulk TCP, UDP. Debian's, and beside it the current one as `iperf3-current`.

use std::process::Command;

use anyhow::Context;

use super::{Commands, Said, Site, Tool, first_line};
use crate::workload::{Contest, Unit};

/// The current iperf3, which `bench/install` puts beside the distribution's.
const CURRENT: &str = "iperf3-current";

/// The iperf3 of the distribution.
pub const TOOL: Tool = Tool::peer("iperf3", |_| first_line("iperf3", "--version"), plans);

/// The current iperf3, for what it does otherwise than 3.12: a thread for each
/// flow since 3.16, a receiver that discards, GSO and GRO.
pub const CURRENT_TOOL: Tool = Tool::peer(
    CURRENT,
    |_| first_line(CURRENT, "--version"),
    plans_of_current,
);

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    let plain = |words: &[&str]| vec![plan(site, "iperf3", "iperf3", words)];
    match workload {
        Contest::Startup | Contest::Memory1 => plain(&[]),
        Contest::Udp64Gso => plain(&["-u", "-b", "0", "-l", "64"]),
        Contest::Tcp100Batched => plain(&["-l", "100"]),
        _ => plans_of_both(site, "iperf3", workload),
    }
}

fn plans_of_current(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    let gsro = ["-u", "-b", "0", "-l", "64", "--gsro"];
    match workload {
        // `--gsro` is for both ends or none; a server that does not know it is a plain receiver.
        Contest::Udp64Gso if knows("iperf3", "--server") && !knows("iperf3", "--gsro") => {
            vec![plan(site, "iperf3", CURRENT, &gsro).called("to iperf3")]
        }
        Contest::Udp64GsoGro if knows(CURRENT, "--gsro") => {
            vec![plan(site, CURRENT, CURRENT, &gsro)]
        }
        _ => plans_of_both(site, CURRENT, workload),
    }
}

/// Returns what both releases are measured with.
fn plans_of_both(site: &Site<'_>, program: &str, workload: Contest) -> Vec<Commands> {
    let plain = |words: &[&str]| vec![plan(site, program, program, words)];
    match workload {
        Contest::Tcp1 => plain(&[]),
        Contest::Tcp1Calls128K => plain(&["-l", "128K"]),
        Contest::Tcp1Calls1M => plain(&["-l", "1M"]),
        Contest::Tcp1ZerocopySend => plain(&["-Z"]),
        Contest::Tcp1Fast if knows(program, "--skip-rx-copy") => plain(&["-Z", "--skip-rx-copy"]),
        Contest::Tcp10 => plain(&["-P", "10"]),
        Contest::Tcp10Fast if knows(program, "--skip-rx-copy") => {
            plain(&["-P", "10", "-Z", "--skip-rx-copy"])
        }
        Contest::Udp64 => plain(&["-u", "-b", "0", "-l", "64"]),
        Contest::Tcp100Nodelay => plain(&["-l", "100", "-N"]),
        _ => Vec::new(),
    }
}

fn plan(site: &Site<'_>, server: &str, client: &str, words: &[&str]) -> Commands {
    let (port, seconds) = (site.port.to_string(), site.seconds.to_string());
    let server = [server, "--server", "--port", &port];
    let client = [
        client, "--client", site.host, "--json", "--port", &port, "--time", &seconds,
    ];
    Commands::new(site, &server, &client, read).with(words)
}

/// Whether an iperf3 is there and has an option: each release adds some.
fn knows(program: &str, option: &str) -> bool {
    let output = Command::new(program).arg("--help").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(option))
}

fn read(said: &Said) -> anyhow::Result<f64> {
    let document: serde_json::Value = serde_json::from_str(&said.client)?;
    let received = &document["end"]["sum_received"];
    let bits = received["bits_per_second"].as_f64();
    match said.workload.unit() {
        // Its `bits_per_second` of UDP is the sender's in 3.12, the bytes are the receiver's.
        Unit::PacketsPerSecond => received["bytes"]
            .as_f64()
            .zip(received["seconds"].as_f64())
            .map(|(bytes, seconds)| bytes / 64.0 / seconds),
        Unit::MessagesPerSecond => bits.map(|bits| bits / 800.0),
        _ => bits,
    }
    .context("no sum_received")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::said;

    #[test]
    fn tcp_is_what_the_receiver_counted() {
        let text = r#"{"end":{"sum_sent":{"bits_per_second":22556636354.7},
            "sum_received":{"seconds":1.003088,"bytes":2824994816,"bits_per_second":22530384700.046257}}}"#;
        let value = |workload| read(&said(workload, text, "")).expect("a result");
        assert_eq!(value(Contest::Tcp1), 22_530_384_700.046_257);
        assert_eq!(
            value(Contest::Tcp100Nodelay),
            22_530_384_700.046_257 / 800.0
        );
    }

    #[test]
    fn each_program_talks_to_its_own_kind() {
        let programs = crate::tool::Programs {
            linerate: "linerate".into(),
            bench: "bench".into(),
        };
        let site = Site {
            programs: &programs,
            host: "127.0.0.1",
            port: 5201,
            seconds: 1,
            cpus: None,
        };
        for tool in [TOOL, CURRENT_TOOL] {
            for plan in (tool.plans)(&site, Contest::Tcp10) {
                let server = plan.server.expect("a server");
                assert_eq!([&server[0], &plan.client[0]], [tool.name; 2]);
                assert!(plan.client.ends_with(&["-P".to_owned(), "10".to_owned()]));
            }
            assert_eq!((tool.plans)(&site, Contest::Tcp10).len(), 1);
        }
        // What 3.12 does the same way is not measured twice.
        assert!((CURRENT_TOOL.plans)(&site, Contest::Startup).is_empty());
    }

    #[test]
    fn udp_is_packets_that_arrived() {
        let text = r#"{"end":{"sum_received":{"seconds":1.005452,"bytes":5944000,
            "bits_per_second":47294152.28,"lost_packets":93983,"packets":186858}}}"#;
        let value = read(&said(Contest::Udp64, text, "")).expect("a result");
        let expected = f64::from(186_858 - 93_983) / 1.005_452;
        assert!((value - expected).abs() < 1e-6, "{value} {expected}");
    }
}
