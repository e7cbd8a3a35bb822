//! The limit probes: bare loops of our own, see [`crate::probe`].

use anyhow::Context;

use super::{Commands, Kind, Said, Site, Tool};
use crate::name_of;
use crate::probe::Probe;
use crate::workload::Contest;

/// The probes.
pub const TOOL: Tool = Tool {
    name: "probe",
    kind: Kind::Probe,
    version: |_| Some("this program".to_owned()),
    plans,
};

fn plans(site: &Site<'_>, workload: Contest) -> Vec<Commands> {
    let plan = |probe: Probe| one(site, workload, probe);
    match workload {
        Contest::Tcp1 | Contest::Tcp10 => vec![plan(Probe::TcpCopy)],
        Contest::Tcp1ZerocopySend => vec![plan(Probe::TcpVmsplice)],
        Contest::Tcp1Fast | Contest::Tcp10Fast => vec![
            plan(Probe::TcpVmspliceTrunc),
            plan(Probe::TcpTrunc).called("send"),
        ],
        Contest::Rr1Spin => vec![plan(Probe::RrSpin)],
        Contest::Rr1 => vec![plan(Probe::RrBlock)],
        Contest::Rr64 => vec![plan(Probe::RrEpoll)],
        Contest::Crr64 => vec![plan(Probe::CrrEpoll)],
        Contest::Udp64 => vec![plan(Probe::Udp)],
        Contest::Udp64Gso => vec![plan(Probe::UdpGso)],
        Contest::Tcp100Nodelay => vec![plan(Probe::Messages)],
        Contest::Tcp100Batched => vec![plan(Probe::MessagesBatched)],
        // What starting any program and waiting for it costs here.
        Contest::Startup => vec![Commands {
            server: None,
            ..Commands::new(site, &[], &["sleep", &site.seconds.to_string()], read)
        }],
        Contest::Tcp1Calls128K
        | Contest::Tcp1Calls1M
        | Contest::Udp64GsoGro
        | Contest::Memory1
        | Contest::Memory10000 => Vec::new(),
    }
}

fn one(site: &Site<'_>, workload: Contest, probe: Probe) -> Commands {
    let program = site.programs.bench.display().to_string();
    let (port, seconds) = (site.port.to_string(), site.seconds.to_string());
    let (name, flows) = (name_of(&probe), workload.flows().to_string());
    let server = [&program, "probe", &name, "--flows", &flows, "serve", &port];
    let client = [
        &program, "probe", &name, "--flows", &flows, "run", site.host, &port, &seconds,
    ];
    Commands::new(site, &server, &client, read)
}

fn read(said: &Said) -> anyhow::Result<f64> {
    said.client.trim().parse().context("no number")
}
