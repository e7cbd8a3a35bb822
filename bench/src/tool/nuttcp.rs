//! nuttcp: bulk TCP, UDP, small messages.

use super::{Commands, Said, Site, Tool, after, first_line};
use crate::workload::{Contest, Unit};

/// nuttcp.
pub const TOOL: Tool = Tool::peer("nuttcp", |_| first_line("nuttcp", "-V"), plans);

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    // The data port follows the control port; ports handed out by the kernel are far apart.
    let (control, data) = (site.port.to_string(), (site.port - 1).to_string());
    let time = format!("-T{}", site.seconds);
    let plain = |words: &[&str]| {
        let server = ["nuttcp", "-S", "--nofork", "-P", &control];
        let client = ["nuttcp", "-P", &control, "-p", &data, &time, "-fparse"];
        let plan = Commands::new(site, &server, &client, read);
        vec![plan.with(words).with(&[site.host])]
    };
    match workload {
        Contest::Tcp1 | Contest::Startup | Contest::Memory1 => plain(&[]),
        Contest::Udp64 | Contest::Udp64Gso => plain(&["-u", "-l64", "-Ru"]),
        Contest::Tcp100Nodelay => plain(&["-l100", "-D"]),
        Contest::Tcp100Batched => plain(&["-l100"]),
        _ => Vec::new(),
    }
}

fn read(said: &Said) -> anyhow::Result<f64> {
    let seconds = after(&said.client, "real_seconds=")?;
    let bits = after(&said.client, "megabytes=")? * 8.0 * 1_048_576.0 / seconds;
    Ok(match said.workload.unit() {
        Unit::PacketsPerSecond => {
            (after(&said.client, "pkt=")? - after(&said.client, "drop=")?) / seconds
        }
        Unit::MessagesPerSecond => bits / 800.0,
        _ => bits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::said;

    #[test]
    fn the_receivers_bytes_and_packets() {
        let tcp = "megabytes=2379.2500 real_seconds=1.00 rate_Mbps=19914.4055 tx_cpu=29 retrans=0 rtt_ms=0.27";
        let value = read(&said(Contest::Tcp1, tcp, "")).expect("a result");
        assert_eq!(value, 2379.25 * 8.0 * 1_048_576.0);
        let udp = "megabytes=3.2197 real_seconds=1.00 rate_Mbps=27.0672 rx_cpu=8 drop=49090 pkt=101841 data_loss=48.20219";
        let value = read(&said(Contest::Udp64, udp, "")).expect("a result");
        assert_eq!(value, 52_751.0);
    }
}
