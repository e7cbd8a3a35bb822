//! Puts agents where they are needed, and takes them away.
//!
//! A launcher starts `linerate serve --launched` on a host, which reads its token from standard input, tells port
//! and certificate on standard output, and ends when its standard input does. That end is what takes it away: it
//! comes by itself when this process does, however that ends.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use linerate_model::HostName;
use linerate_model::fleet::FleetHost;

use crate::together::at_most;
use process::Process;

/// A program that keeps an agent: what it says, and its end.
mod process;
/// OpenSSH.
mod ssh;
/// A port of this host that leads to a host behind others.
mod tunnel;

pub use ssh::Ssh;

/// How long agents that are taken away may take, all together.
const END: Duration = Duration::from_secs(5);
/// Lines of a log that a message repeats.
const TOLD_LINES: usize = 3;

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

/// An agent that was put on a host.
pub struct LaunchedAgent {
    /// `HOST` of its requests: a name, or an address of this host that leads there.
    pub host: String,
    /// The port of its requests.
    pub port: u16,
    /// The port of its payload.
    pub payload_port: u16,
    /// The address of its payload, where its requests go another way.
    pub payload: Option<IpAddr>,
    /// What it is shown.
    pub token: String,
    /// The fingerprint of the certificate that it shows.
    pub certificate: String,
    process: Process,
    /// What carries its requests.
    _tunnel: Option<tunnel::Tunnel>,
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
    pub fn hosts(&self) -> impl Iterator<Item = (&HostName, Result<&LaunchedAgent, &LaunchError>)> {
        self.hosts
            .iter()
            .map(|(name, agent)| (name, agent.as_ref()))
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

/// Why a host has no agent.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program that is to run there cannot be read.
    #[error("cannot read the program {}", path.display())]
    Program {
        /// Its file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A program of this host that launches cannot be started.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// This host has no port for what leads there.
    #[error("cannot open a port that leads there")]
    Tunnel(#[source] std::io::Error),
    /// The kernel gives no randomness for a token.
    #[error("cannot make a token: {0}")]
    Token(getrandom::Error),
    /// The launcher was started, and there is no agent.
    #[error("cannot put an agent there: {why}{}{said}", if .said.is_empty() { "" } else { ": " })]
    Failed {
        /// Why.
        why: Unlaunched,
        /// What was said about it.
        said: String,
    },
}

/// What keeps an agent from a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unlaunched {
    /// It has no address, or nothing answers there.
    #[error("it is not reached")]
    Unreachable,
    /// It does not let us in.
    #[error("it does not let this user in")]
    Denied,
    /// Its key is not known, or is another one.
    #[error("its host key is not known, or has changed")]
    HostKey,
    /// The program is for another architecture.
    #[error("its architecture is {there}, and the program is for {ours}")]
    Architecture {
        /// The host's.
        there: String,
        /// The program's.
        ours: String,
    },
    /// It has no room for the program.
    #[error("there is no space for the program")]
    Space,
    /// It took too long.
    #[error("it was not done after {0:?}")]
    Late(Duration),
    /// What was started there ended.
    #[error("what was started there ended")]
    Ended,
}

/// Returns the last lines of a log, on one line.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(TOLD_LINES)..].join("; ")
}
