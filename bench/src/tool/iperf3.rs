//! iperf3: bulk TCP, UDP.

use std::process::Command;

use anyhow::Context;

use super::{Kind, Plan, Said, Site, Tool, first_line, from_outside};
use crate::workload::{Unit, Workload};

/// Returns iperf3 as a tool.
pub fn tool() -> Tool {
    Tool {
        name: "iperf3",
        kind: Kind::Peer,
        version: |_| first_line("iperf3", "--version"),
        plans,
    }
}

fn plans(site: &Site<'_>, workload: Workload) -> Vec<Plan> {
    let (port, seconds) = (site.port.to_string(), site.seconds.to_string());
    let plain = |words: &[&str]| {
        let server = ["iperf3", "--server", "--port", &port];
        let client = [
            "iperf3", "--client", site.host, "--json", "--port", &port, "--time", &seconds,
        ];
        vec![Plan::new(site, &server, &client, read).with(words)]
    };
    match workload {
        Workload::Tcp1 | Workload::Startup | Workload::Memory1 => plain(&[]),
        Workload::Tcp1ZerocopySend => plain(&["-Z"]),
        Workload::Tcp1Fast if discards() => plain(&["-Z", "--skip-rx-copy"]),
        Workload::Tcp10 => plain(&["-P", "10"]),
        Workload::Tcp10Fast if discards() => plain(&["-P", "10", "-Z", "--skip-rx-copy"]),
        Workload::Udp64 | Workload::Udp64Gso => plain(&["-u", "-b", "0", "-l", "64"]),
        Workload::Tcp100Nodelay => plain(&["-l", "100", "-N"]),
        Workload::Tcp100Batched => plain(&["-l", "100"]),
        _ => Vec::new(),
    }
}

/// Whether this iperf3 can receive without copying; 3.12 cannot.
fn discards() -> bool {
    let output = Command::new("iperf3").arg("--help").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("--skip-rx-copy"))
}

fn read(said: &Said) -> anyhow::Result<f64> {
    if let Some(value) = from_outside(said) {
        return Ok(value);
    }
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
        assert_eq!(value(Workload::Tcp1), 22_530_384_700.046_257);
        assert_eq!(
            value(Workload::Tcp100Nodelay),
            22_530_384_700.046_257 / 800.0
        );
    }

    #[test]
    fn udp_is_packets_that_arrived() {
        let text = r#"{"end":{"sum_received":{"seconds":1.005452,"bytes":5944000,
            "bits_per_second":47294152.28,"lost_packets":93983,"packets":186858}}}"#;
        let value = read(&said(Workload::Udp64, text, "")).expect("a result");
        let expected = f64::from(186_858 - 93_983) / 1.005_452;
        assert!((value - expected).abs() < 1e-6, "{value} {expected}");
    }
}
