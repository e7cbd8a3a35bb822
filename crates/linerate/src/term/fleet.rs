//! A fleet that was asked who it is, for people and for programs.

use linerate_controller::Answer;
use linerate_model::host::FactValue;
use linerate_model::unit::Unit;
use linerate_model::{BitsPerSec, HostName, Nanos};
use serde::Serialize;

use crate::exit::{CmdResult, Exit};

/// What `fleet check` prints.
#[derive(Debug, Serialize)]
pub struct FleetDocument {
    schema: &'static str,
    schema_version: u32,
    hosts: Vec<HostLine>,
}

#[derive(Debug, Serialize)]
struct HostLine {
    name: HostName,
    /// Why it cannot take part; absent where it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What to do about it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentLine>,
}

#[derive(Debug, Serialize)]
struct AgentLine {
    version: String,
    /// Its kernel's release.
    kernel: Option<String>,
    cpus: Option<u64>,
    /// The host's clock less ours.
    clock_offset_ns: i64,
    clock_uncertainty_ns: u64,
    /// The device of its payload, with its rate and its MTU.
    device: Option<String>,
    rate_bps: Option<f64>,
    mtu_bytes: Option<u64>,
    /// Why what it has may not be read; absent where it may.
    observe_refused: Option<String>,
    /// Whether another run has it.
    is_busy: bool,
}

impl FleetDocument {
    /// Returns what hosts said, of which those that differ from the most in their version are told apart.
    pub fn of(answers: impl Iterator<Item = (HostName, CmdResult<Answer>)>) -> Self {
        let host = |(name, answer): (HostName, CmdResult<Answer>)| match answer {
            Err(failure) => HostLine {
                name,
                error: Some(failure.to_string()),
                next: failure.next,
                agent: None,
            },
            Ok(answer) => {
                let facts = &answer.inventory.snapshot;
                let device = answer.inventory.link.clone();
                let of_link = |what: &str| Some(format!("link.{}.{what}", device.as_deref()?));
                let rate = of_link("rate").and_then(|name| match facts.value(&name)? {
                    FactValue::Number(rate, Unit::BitsPerSecond) => Some(*rate),
                    _ => None,
                });
                let whole = |name: String| facts.number(&name).map(|number| number as u64);
                HostLine {
                    name,
                    error: None,
                    next: None,
                    agent: Some(AgentLine {
                        version: answer.info.version.clone(),
                        kernel: facts.text("kernel.release").map(str::to_owned),
                        cpus: whole("cpu.online".to_owned()),
                        clock_offset_ns: answer.clock.offset_ns,
                        clock_uncertainty_ns: answer.clock.uncertainty_ns,
                        rate_bps: rate,
                        mtu_bytes: of_link("mtu_bytes").and_then(whole),
                        device,
                        observe_refused: answer.info.observe_refused.clone(),
                        is_busy: answer.info.busy.is_some(),
                    }),
                }
            }
        };
        Self {
            schema: "linerate-fleet",
            schema_version: 1,
            hosts: answers.map(host).collect(),
        }
    }

    /// Returns how the command ends: well where all hosts can take part.
    pub fn exit(&self) -> Exit {
        if self.hosts.iter().all(|host| host.error.is_none()) {
            Exit::Ok
        } else {
            Exit::Failed
        }
    }
}

/// The heads of the columns.
const HEADS: [&str; 7] = [
    "host", "version", "clock ±", "CPUs", "device", "rate", "MTU",
];

/// Shows a line a host, and what is wrong below them.
pub fn show(fleet: &FleetDocument) {
    let absent = || "–".to_owned();
    let row = |host: &HostLine| match &host.agent {
        None => {
            let mut row = [(); HEADS.len()].map(|()| absent());
            row[0] = host.name.to_string();
            row
        }
        Some(agent) => [
            host.name.to_string(),
            agent.version.clone(),
            Nanos(agent.clock_uncertainty_ns).to_string(),
            agent.cpus.map_or_else(absent, |cpus| cpus.to_string()),
            agent.device.clone().unwrap_or_else(absent),
            agent
                .rate_bps
                .map_or_else(absent, |rate| BitsPerSec(rate).to_string()),
            agent.mtu_bytes.map_or_else(absent, |mtu| mtu.to_string()),
        ],
    };
    let rows: Vec<[String; HEADS.len()]> = fleet.hosts.iter().map(row).collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([HEADS[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let shown = |row: &[String]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        super::line(cells.collect::<Vec<String>>().join("  ").trim_end());
    };
    shown(&HEADS.map(str::to_owned));
    rows.iter().for_each(|row| shown(row));
    for host in &fleet.hosts {
        if let Some(error) = &host.error {
            super::text(&format!("{}: {error}", host.name));
        }
        if let Some(next) = &host.next {
            super::text(&format!("  next: {next}"));
        }
        if let Some(why) = host
            .agent
            .as_ref()
            .and_then(|agent| agent.observe_refused.as_ref())
        {
            super::text(&format!("{}: {why}", host.name));
        }
        if host.agent.as_ref().is_some_and(|agent| agent.is_busy) {
            super::text(&format!("{}: another run has it", host.name));
        }
    }
    let mut versions: Vec<&str> = fleet
        .hosts
        .iter()
        .filter_map(|host| Some(&*host.agent.as_ref()?.version))
        .collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        super::text(&format!("versions differ: {}", versions.join(", ")));
    }
}
