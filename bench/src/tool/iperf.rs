//! iperf, the second version: bulk TCP, UDP, small messages.

use anyhow::Context;

use super::{Commands, Said, Site, Tool, first_line};
use crate::workload::{Contest, Unit};

/// The second version of iperf.
pub const TOOL: Tool = Tool::peer("iperf", |_| first_line("iperf", "--version"), plans);

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    let (port, seconds) = (site.port.to_string(), site.seconds.to_string());
    let plan = |both: &[&str], words: &[&str]| {
        let mut server = vec!["iperf", "--server", "--port", &port, "-f", "k", "-e"];
        server.extend(both);
        let mut client = vec![
            "iperf", "--client", site.host, "--port", &port, "--time", &seconds,
        ];
        client.extend(["-f", "k"]);
        client.extend(both);
        let mut plan = Commands::new(site, &server, &client, read).with(words);
        plan.server_reports = true;
        vec![plan]
    };
    match workload {
        Contest::Tcp1 | Contest::Startup | Contest::Memory1 => plan(&[], &[]),
        Contest::Tcp10 => plan(&[], &["-P", "10"]),
        Contest::Udp64 | Contest::Udp64Gso => plan(&["-u"], &["-b", "10g", "-l", "64"]),
        Contest::Tcp100Nodelay => plan(&[], &["-l", "100", "-N"]),
        Contest::Tcp100Batched => plan(&[], &["-l", "100"]),
        _ => Vec::new(),
    }
}

fn read(said: &Said) -> anyhow::Result<f64> {
    // The server's last line with a rate; with several flows that is the sum.
    let line = |text: &str, word: &str| {
        let found = text.lines().rfind(|line| line.contains(word));
        found.map(str::to_owned)
    };
    let rates = line(&said.server, "[SUM]").or_else(|| line(&said.server, "Kbits/sec"));
    let line = rates.context("the server gave no rate")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "Kbits/sec");
    let kbits = at.and_then(|at| words.get(at.checked_sub(1)?)?.parse::<f64>().ok());
    let bits = kbits.context("no rate in the server's line")? * 1e3;
    Ok(match said.workload.unit() {
        Unit::PacketsPerSecond => bits / (8.0 * 64.0),
        Unit::MessagesPerSecond => bits / 800.0,
        _ => bits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::said;

    const ONE: &str = "\
[ ID] Interval       Transfer     Bandwidth       Reads=Dist
[  1] 0.0000-1.0015 sec  1385984 KBytes  11304265 Kbits/sec  44352=1:2:3
";
    const SUM: &str = "\
[  3] 0.0000-1.0045 sec  1.58 GBytes  13500000 Kbits/sec
[SUM] 0.0000-1.0239 sec  3.62 GBytes  30357526 Kbits/sec
";
    const UDP: &str = "\
[ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS  Rx/inP  NetPwr
[  1] 0.0000-1.0001 sec  6775 KBytes  55489 Kbits/sec   0.001 ms 77969/186361 (42%) 0.010/0.001/3.920/0.179 ms 108376 pps 108392/1(19) pkts 680988
";

    #[test]
    fn the_servers_last_rate_or_sum() {
        let check = |workload, server: &str, expected: f64| {
            assert_eq!(
                read(&said(workload, "", server)).expect("a result"),
                expected
            );
        };
        check(Contest::Tcp1, ONE, 11_304_265e3);
        check(Contest::Tcp10, SUM, 30_357_526e3);
        // 108 376 packets a second by its own count, of 64 bytes.
        check(Contest::Udp64, UDP, 55_489e3 / 512.0);
        assert!(read(&said(Contest::Tcp1, "", "")).is_err());
    }
}
