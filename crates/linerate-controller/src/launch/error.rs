//! Why a host has no agent.

use std::path::PathBuf;
use std::time::Duration;

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
    /// The cluster does not give the nodes, whatever the time.
    #[error("the cluster refuses it")]
    Refused,
    /// The cluster has other work for the nodes, or they are down.
    #[error("the cluster has no such nodes now")]
    Busy,
    /// The program is not on the node.
    #[error("the program is not there")]
    Absent,
    /// It took too long.
    #[error("it was not done after {0:?}")]
    Late(Duration),
    /// What was started there ended.
    #[error("what was started there ended")]
    Ended,
}

/// Returns that there is no agent, for what reason and with what was said.
pub(super) fn failed(why: Unlaunched, said: &str) -> LaunchError {
    LaunchError::Failed {
        why,
        said: said.to_owned(),
    }
}
