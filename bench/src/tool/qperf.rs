//! qperf: latency, small messages, UDP, bulk TCP.

use super::{Plan, Said, Site, Tool, after, first_line};
use crate::workload::Workload;

/// qperf.
pub const TOOL: Tool = Tool::peer("qperf", |_| first_line("qperf", "--version"), plans);

fn plans(site: &Site<'_>, workload: Workload) -> Vec<Plan> {
    let (host, port, seconds) = (site.host, site.port.to_string(), site.seconds);
    let plan = |bytes: &str, test: &str| {
        let client = format!(
            "qperf {host} --listen_port {port} --time {seconds} --unify_units --precision 9 --msg_size {bytes} {test}"
        );
        let client: Vec<&str> = client.split(' ').collect();
        vec![Plan::new(
            site,
            &["qperf", "--listen_port", &port],
            &client,
            read,
        )]
    };
    match workload {
        Workload::Tcp1 | Workload::Startup | Workload::Memory1 => plan("64K", "tcp_bw"),
        Workload::Rr1 => plan("1", "tcp_lat"),
        Workload::Udp64 | Workload::Udp64Gso => plan("64", "udp_bw"),
        Workload::Tcp100Batched => plan("100", "tcp_bw"),
        _ => Vec::new(),
    }
}

fn read(said: &Said) -> anyhow::Result<f64> {
    Ok(match said.workload {
        // One way, in nanoseconds: half a transaction.
        Workload::Rr1 => 1e9 / (2.0 * after(&said.client, "latency")?),
        Workload::Udp64 | Workload::Udp64Gso => after(&said.client, "recv_bw")? / 64.0,
        Workload::Tcp100Batched => after(&said.client, " bw")? / 100.0,
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
            Workload::Rr1,
            "tcp_lat:\n    latency  =  8000 ns\n",
            62_500.0,
        );
        let tcp = "tcp_bw:\n    bw  =  43032896 bytes/sec\n";
        check(Workload::Tcp1, tcp, 43_032_896.0 * 8.0);
        check(Workload::Tcp100Batched, tcp, 430_328.96);
        let udp =
            "udp_bw:\n    send_bw  =  15977984 bytes/sec\n    recv_bw  =  13762112 bytes/sec\n";
        check(Workload::Udp64, udp, 215_033.0);
    }
}
