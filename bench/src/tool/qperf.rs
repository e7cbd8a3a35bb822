//! qperf: latency, small messages, UDP, bulk TCP.

use super::{Commands, Said, Site, Tool, after, first_line};
use crate::workload::Contest;

/// qperf.
pub const TOOL: Tool = Tool::peer("qperf", |_| first_line("qperf", "--version"), plans);

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    let (host, port, seconds) = (site.host, site.port.to_string(), site.seconds);
    let plan = |bytes: &str, test: &str| {
        let client = format!(
            "qperf {host} --listen_port {port} --time {seconds} --unify_units --precision 9 --msg_size {bytes} {test}"
        );
        let client: Vec<&str> = client.split(' ').collect();
        vec![Commands::new(
            site,
            &["qperf", "--listen_port", &port],
            &client,
            read,
        )]
    };
    match workload {
        Contest::Tcp1 | Contest::Startup | Contest::Memory1 => plan("64K", "tcp_bw"),
        Contest::Rr1 => plan("1", "tcp_lat"),
        Contest::Udp64 | Contest::Udp64Gso => plan("64", "udp_bw"),
        Contest::Tcp100Batched => plan("100", "tcp_bw"),
        _ => Vec::new(),
    }
}

fn read(said: &Said) -> anyhow::Result<f64> {
    Ok(match said.workload {
        // One way, in nanoseconds: half a transaction.
        Contest::Rr1 => 1e9 / (2.0 * after(&said.client, "latency")?),
        Contest::Udp64 | Contest::Udp64Gso => after(&said.client, "recv_bw")? / 64.0,
        Contest::Tcp100Batched => after(&said.client, " bw")? / 100.0,
        _ => after(&said.client, " bw")? * 8.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::said;

    #[test]
    fn each_test_has_its_own_word() {
        let check = |workload, text: &str, expected: f64| {
            let value = read(&said(workload, text, "")).expect("a result");
            assert!((value / expected - 1.0).abs() < 1e-9, "{value} {expected}");
        };
        check(
            Contest::Rr1,
            "tcp_lat:\n    latency  =  8000 ns\n",
            62_500.0,
        );
        let tcp = "tcp_bw:\n    bw  =  43032896 bytes/sec\n";
        check(Contest::Tcp1, tcp, 43_032_896.0 * 8.0);
        check(Contest::Tcp100Batched, tcp, 430_328.96);
        let udp =
            "udp_bw:\n    send_bw  =  15977984 bytes/sec\n    recv_bw  =  13762112 bytes/sec\n";
        check(Contest::Udp64, udp, 215_033.0);
    }
}
