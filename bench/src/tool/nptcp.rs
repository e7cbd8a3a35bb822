//! NetPIPE over TCP: ping-pong.

use anyhow::Context;

use super::{Commands, Said, Site, Tool, first_line};
use crate::workload::Contest;

/// Round trips of each of its seven trials, for each second to measure, at a usual 14 µs.
const REPEATS_PER_SECOND: u32 = 10_000;

/// NetPIPE.
pub const TOOL: Tool = Tool::peer(
    "NPtcp",
    // It has no version of its own to print; that it answers at all says it is there.
    |_| first_line("NPtcp", "-?").map(|_| "NetPIPE".to_owned()),
    plans,
);

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    if workload != Contest::Rr1 {
        return Vec::new();
    }
    let port = site.port.to_string();
    let repeats = (site.seconds * REPEATS_PER_SECOND).to_string();
    // Its result goes to a file, which is its standard output here.
    let out = "/dev/stdout";
    let server = ["NPtcp", "-P", &port];
    let client = [
        "NPtcp", "-h", site.host, "-P", &port, "-l", "1", "-u", "1", "-p", "0", "-n", &repeats,
        "-o", out,
    ];
    vec![Commands::new(site, &server, &client, read)]
}

fn read(said: &Said) -> anyhow::Result<f64> {
    // Bytes, Mbit/s, and seconds one way.
    let line = said.client.lines().rfind(|line| !line.trim().is_empty());
    let one_way_s = line.and_then(|line| line.split_whitespace().nth(2)?.parse::<f64>().ok());
    Ok(1.0 / (2.0 * one_way_s.context("no time in the last line")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::said;

    #[test]
    fn half_a_round_trip_in_seconds() {
        let text = "       1 1.107619   0.00000689\n";
        let value = read(&said(Contest::Rr1, text, "")).expect("a result");
        assert_eq!(value, 1.0 / (2.0 * 0.000_006_89));
    }
}
