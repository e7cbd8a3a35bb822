//! Puts agents where they are needed, and takes them away.
//!
//! A launcher starts `linerate serve --launched` on a host, which reads its token from standard input, tells port
//! and certificate on standard output, and ends when its standard input does. That end is what takes it away: it
//! comes by itself when this process does, however that ends.

use std::time::{Duration, Instant};

use linerate_model::HostName;
use linerate_model::fleet::FleetHost;

use crate::together::at_most;
use agent::Agents;
use kubernetes::Pods;
use process::last_lines;

/// An agent that was put somewhere.
mod agent;
/// Why one was not.
mod error;
/// What keeps an agent.
mod keeper;
/// Kubernetes.
mod kubernetes;
/// A program that keeps agents: what it says, and its end.
mod process;
/// Slurm.
mod slurm;
/// OpenSSH.
mod ssh;
/// What all do to start an agent.
mod start;
/// What `srun` says of its tasks.
mod tasks;
/// A port of this host that leads to a host behind others.
mod tunnel;

pub use agent::LaunchedAgent;
pub use error::{LaunchError, Unlaunched};
pub use kubernetes::Kubernetes;
pub use slurm::{Slurm, allocated_nodes};
pub use ssh::Ssh;

/// How long agents that are taken away may take, all together.
const END: Duration = Duration::from_secs(5);

/// Who puts agents on hosts.
pub enum Launcher {
    /// OpenSSH.
    Ssh(Ssh),
    /// Slurm.
    Slurm(Slurm),
    /// Kubernetes.
    Kubernetes(Kubernetes),
}

impl Launcher {
    /// Puts an agent on each of `hosts`, on many at the same time; one where that fails keeps no other from it. Where
    /// there are no hosts, Slurm chooses them.
    pub fn launch(&self, hosts: &[FleetHost]) -> Result<Launched, LaunchError> {
        let mut pods = None;
        let hosts = match self {
            Self::Ssh(ssh) => {
                let agents = at_most(ssh.at_once(), hosts, |host| ssh.launch(host));
                let names = hosts.iter().map(|host| host.name.clone());
                names.zip(agents).collect()
            }
            Self::Slurm(slurm) => slurm.launch(hosts)?,
            Self::Kubernetes(kubernetes) => {
                let (agents, of_agents) = kubernetes.launch(hosts)?;
                pods = Some(of_agents);
                agents
            }
        };
        Ok(Launched { hosts, _pods: pods })
    }
}

/// The hosts of a fleet after a launch. Dropped, it takes its agents away.
pub struct Launched {
    /// In the fleet's order.
    hosts: Agents,
    /// What is removed once they are gone.
    _pods: Option<Pods>,
}

/// What was heard of an agent that was taken away.
pub struct AgentLog {
    /// Its host.
    pub host: HostName,
    /// What it said, the end of it where that is long.
    pub text: String,
    /// Whether it was gone before.
    pub is_early: bool,
}

impl AgentLog {
    /// Returns its last words, on one line.
    pub fn last(&self) -> String {
        last_lines(&self.text)
    }
}

impl Launched {
    /// Returns the hosts, each with its agent or why it has none; in the fleet's order.
    pub fn hosts(&self) -> &[(HostName, Result<LaunchedAgent, LaunchError>)] {
        &self.hosts
    }

    /// Takes all agents away and returns what was heard of them.
    pub fn take_away(mut self) -> Vec<AgentLog> {
        self.end()
    }

    fn end(&mut self) -> Vec<AgentLog> {
        let agents: Vec<(HostName, LaunchedAgent)> = std::mem::take(&mut self.hosts)
            .into_iter()
            .filter_map(|(host, agent)| Some((host, agent.ok()?)))
            .collect();
        let early: Vec<bool> = agents
            .iter()
            .map(|(_, agent)| agent.keeper.is_over())
            .collect();
        // All hear of it before one is waited for.
        agents.iter().for_each(|(_, agent)| agent.keeper.hang_up());
        let until = Instant::now() + END;
        let ended = agents.into_iter().zip(early);
        ended
            .map(|((host, agent), is_early)| {
                agent.keeper.end(until);
                AgentLog {
                    host,
                    text: agent.keeper.said(),
                    is_early,
                }
            })
            .collect()
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        self.end();
    }
}
