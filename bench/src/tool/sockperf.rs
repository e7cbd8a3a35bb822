//! sockperf: ping-pong and small messages. Its least message is 14 bytes.

use anyhow::Context;

use super::{Commands, Said, Site, Tool, after, first_line};
use crate::workload::Contest;

/// sockperf.
pub const TOOL: Tool = Tool::peer("sockperf", |_| first_line("sockperf", "--version"), plans);

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    let (port, seconds) = (site.port.to_string(), site.seconds.to_string());
    let plan = |how: &str, both: &[&str], words: &[&str]| {
        let mut server = vec!["sockperf", "server", "-p", &port];
        server.extend(both);
        let mut client = vec![
            "sockperf", how, "-i", site.host, "-p", &port, "-t", &seconds,
        ];
        client.extend(both);
        vec![Commands::new(site, &server, &client, read).with(words)]
    };
    let least = ["-m", "14"];
    match workload {
        Contest::Rr1Spin => plan("ping-pong", &["--tcp", "--nonblocked"], &least),
        Contest::Rr1 => plan("ping-pong", &["--tcp"], &least),
        Contest::Udp64 | Contest::Udp64Gso => plan("throughput", &[], &["-m", "64"]),
        // In this mode the flag with this name switches TCP_NODELAY on.
        Contest::Tcp100Nodelay => plan(
            "throughput",
            &["--tcp", "--tcp-avoid-nodelay"],
            &["-m", "100"],
        ),
        Contest::Tcp100Batched => plan("throughput", &["--tcp"], &["-m", "100"]),
        _ => Vec::new(),
    }
}

fn read(said: &Said) -> anyhow::Result<f64> {
    match said.workload {
        Contest::Rr1 | Contest::Rr1Spin => {
            let valid = said
                .client
                .lines()
                .find(|line| line.contains("[Valid Duration]"));
            let valid = valid.context("no valid duration")?;
            Ok(after(valid, "ReceivedMessages=")? / after(valid, "RunTime=")?)
        }
        _ => {
            let handled = said
                .server
                .lines()
                .rfind(|line| line.contains("messages received"));
            let received = after(handled.context("the server counted nothing")?, "Total ")?;
            let sent = said
                .client
                .lines()
                .find(|line| line.contains("messages sent in"));
            let took = after(sent.context("the client sent nothing")?, "sent in ")?;
            Ok(received / took)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::said;

    const PING_PONG: &str = "\
sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=74521; ReceivedMessages=74520
sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=41218; ReceivedMessages=41218
sockperf: Summary: Latency is 6.666 usec
";
    const CLIENT: &str = "\
sockperf: Total of 662307 messages sent in 1.001 sec
sockperf: Summary: Message Rate is 661458 [msg/sec]
";
    const SERVER: &str = "\
sockperf: Test end (interrupted by user)
sockperf: Total 660000 messages received and handled
";

    #[test]
    fn transactions_of_the_valid_part() {
        let value = read(&said(Contest::Rr1, PING_PONG, "")).expect("a result");
        assert_eq!(value, 41_218.0 / 0.55);
    }

    #[test]
    fn messages_are_the_servers_count() {
        let value = read(&said(Contest::Udp64, CLIENT, SERVER)).expect("a result");
        assert_eq!(value, 660_000.0 / 1.001);
    }
}
