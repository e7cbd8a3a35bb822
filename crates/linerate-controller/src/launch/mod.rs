//! Puts agents where they are needed, and takes them away.
//!
//! A launcher starts `linerate serve --launched` on a host, which reads its token from standard input, tells port
//! and certificate on standard output, and ends when its standard input does. That end is what takes it away: it
//! comes by itself when this process does, however that ends.

use std::time::{Duration, Instant};

use linerate_model::HostName;
use linerate_model::fleet::FleetHost;

use crate::together::at_most;
use process::last_lines;

/// An agent that was put somewhere.
mod agent;
/// Why one was not.
mod error;
/// A program that keeps an agent: what it says, and its end.
mod process;
/// OpenSSH.
mod ssh;
/// A port of this host that leads to a host behind others.
mod tunnel;

pub use agent::LaunchedAgent;
pub use error::{LaunchError, Unlaunched};
pub use ssh::Ssh;

/// How long agents that are taken away may take, all together.
const END: Duration = Duration::from_secs(5);

/// Who puts agents on hosts.
pub enum Launcher {
    /// OpenSSH.
    Ssh(Ssh),
}

impl Launcher {
    /// Puts an agent on each of `hosts`, on many at the same time; one where that fails keeps no other from it.
    pub fn launch(&self, hosts: &[FleetHost]) -> Launched {
        let agents = match self {
            Self::Ssh(ssh) => at_most(ssh.at_once(), hosts, |host| ssh.launch(host)),
        };
        let names = hosts.iter().map(|host| host.name.clone());
        Launched {
            hosts: names.zip(agents).collect(),
        }
    }
}

/// The hosts of a fleet after a launch. Dropped, it takes its agents away.
pub struct Launched {
    /// Each with its agent, or why it has none; in the fleet's order.
    hosts: Vec<(HostName, Result<LaunchedAgent, LaunchError>)>,
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
        let mut agents: Vec<(HostName, LaunchedAgent)> = std::mem::take(&mut self.hosts)
            .into_iter()
            .filter_map(|(host, agent)| Some((host, agent.ok()?)))
            .collect();
        let early: Vec<bool> = agents
            .iter_mut()
            .map(|(_, agent)| agent.process.is_over())
            .collect();
        // All hear of it before one is waited for.
        agents
            .iter_mut()
            .for_each(|(_, agent)| agent.process.hang_up());
        let until = Instant::now() + END;
        let ended = agents.into_iter().zip(early);
        ended
            .map(|((host, mut agent), is_early)| {
                agent.process.end(until);
                AgentLog {
                    host,
                    text: agent.process.said(),
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
