//! The limit probes: bare loops of our own, see [`crate::probe`].

use anyhow::Context;

use super::{Kind, Plan, Said, Site, Tool};
use crate::name_of;
use crate::probe::Probe;
use crate::workload::Workload;

/// The probes.
pub const TOOL: Tool = Tool {
    name: "probe",
    kind: Kind::Probe,
    version: |_| Some("this program".to_owned()),
    plans,
};

fn plans(site: &Site<'_>, workload: Workload) -> Vec<Plan> {
    let plan = |probe: Probe| one(site, workload, probe);
    match workload {
        Workload::Tcp1 | Workload::Tcp10 => vec![plan(Probe::TcpCopy)],
        Workload::Tcp1ZerocopySend => vec![plan(Probe::TcpVmsplice)],
        Workload::Tcp1Fast | Workload::Tcp10Fast => vec![
            plan(Probe::TcpVmspliceTrunc),
            plan(Probe::TcpTrunc).called("send"),
        ],
        Workload::Rr1Spin => vec![plan(Probe::RrSpin)],
        Workload::Rr1 => vec![plan(Probe::RrBlock)],
        Workload::Rr64 => vec![plan(Probe::RrEpoll)],
        Workload::Crr64 => vec![plan(Probe::CrrEpoll)],
        Workload::Udp64 => vec![plan(Probe::Udp)],
        Workload::Udp64Gso => vec![plan(Probe::UdpGso)],
        Workload::Tcp100Nodelay => vec![plan(Probe::Messages)],
        Workload::Tcp100Batched => vec![plan(Probe::MessagesBatched)],
        // What starting any program and waiting for it costs here.
        Workload::Startup => vec![Plan {
            server: None,
            ..Plan::new(site, &[], &["sleep", &site.seconds.to_string()], read)
        }],
        Workload::Tcp1Calls128K
        | Workload::Tcp1Calls1M
        | Workload::Udp64GsoGro
        | Workload::Memory1
        | Workload::Memory10000 => Vec::new(),
    }
}

fn one(site: &Site<'_>, workload: Workload, probe: Probe) -> Plan {
    let program = site.programs.bench.display().to_string();
    let (port, seconds) = (site.port.to_string(), site.seconds.to_string());
    let (name, flows) = (name_of(&probe), workload.flows().to_string());
    let server = [&program, "probe", &name, "--flows", &flows, "serve", &port];
    let client = [
        &program, "probe", &name, "--flows", &flows, "run", site.host, &port, &seconds,
    ];
    Plan::new(site, &server, &client, read)
}

fn read(said: &Said) -> anyhow::Result<f64> {
    said.client.trim().parse().context("no number")
}
