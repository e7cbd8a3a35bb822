//! xfr: bulk TCP with sendfile by default, UDP.

use anyhow::Context;

use super::{Commands, Said, Site, Tool, first_line};
use crate::workload::{Contest, Unit};

/// xfr.
pub const TOOL: Tool = Tool::peer("xfr", |_| first_line("xfr", "--version"), plans);

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    let (host, port, seconds) = (site.host, site.port.to_string(), site.seconds);
    let plain = |words: &[&str]| {
        let server = ["xfr", "serve", "--no-mdns", "--port", &port];
        let client =
            format!("xfr {host} --port {port} --time {seconds} --json --no-tui --no-update-check");
        let client: Vec<&str> = client.split(' ').collect();
        vec![Commands::new(site, &server, &client, read).with(words)]
    };
    match workload {
        Contest::Tcp1 => plain(&["--no-zerocopy"]),
        // It has no discarding receive; this is the fastest that it has.
        Contest::Tcp1ZerocopySend | Contest::Tcp1Fast => plain(&[]),
        Contest::Startup | Contest::Memory1 => plain(&[]),
        Contest::Tcp10 => plain(&["-P", "10", "--no-zerocopy"]),
        Contest::Tcp10Fast => plain(&["-P", "10"]),
        Contest::Udp64 | Contest::Udp64Gso => plain(&["-u", "-l", "64", "-b", "0"]),
        _ => Vec::new(),
    }
}

fn read(said: &Said) -> anyhow::Result<f64> {
    let document: serde_json::Value = serde_json::from_str(&said.client)?;
    let bytes = document["bytes_total"].as_f64();
    let millis = document["duration_ms"].as_f64();
    let (bytes, millis) = bytes.zip(millis).context("no bytes_total")?;
    let bits = bytes * 8e3 / millis;
    Ok(match said.workload.unit() {
        Unit::PacketsPerSecond => {
            let udp = &document["udp_stats"];
            let counts = udp["packets_received"].as_f64();
            counts.map_or(bits / 512.0, |packets| packets * 1e3 / millis)
        }
        _ => bits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::said;

    #[test]
    fn bytes_over_its_own_duration() {
        let text = r#"{"bytes_total":2880633025,"duration_ms":1000,"throughput_mbps":23045.0642}"#;
        let value = read(&said(Contest::Tcp1, text, "")).expect("a result");
        assert!((value / 23_045_064_200.0 - 1.0).abs() < 1e-9);
    }
}
