//! Servers of other programs, as they are meant: which program, and what it can be asked.

use std::path::PathBuf;

use linerate_agent::api::PORT_DEFAULT;
use linerate_agent::foreign::iperf3_peer::Padding;
use linerate_agent::foreign::{NETPERF, iperf3_peer, netperf_peer};
use linerate_model::experiment::Timing;
use linerate_model::manner::Transport;
use linerate_model::workload::Workload;

/// A server of another program.
#[derive(Clone)]
pub enum ForeignServer {
    /// iperf3's.
    Iperf3 {
        /// For a server that asks for one.
        login: Option<Login>,
        /// Whether it is to send its own output with its results.
        server_output: bool,
    },
    /// netperf's.
    Netperf,
}

/// A user whose password is asked for later.
#[derive(Clone)]
pub struct Login {
    /// The user.
    pub user: String,
    /// File with the server's public key.
    pub key_file: PathBuf,
    /// The padding that the server takes.
    pub padding: Padding,
}

impl ForeignServer {
    /// Returns what the program is called.
    pub fn program(&self) -> &'static str {
        match self {
            Self::Iperf3 { .. } => iperf3_peer::PROGRAM,
            Self::Netperf => NETPERF,
        }
    }

    /// Returns the port on which it listens if nothing else is said.
    pub fn port(&self) -> u16 {
        match self {
            Self::Iperf3 { .. } => PORT_DEFAULT,
            Self::Netperf => netperf_peer::PORT,
        }
    }

    /// Returns why it cannot be asked for a workload, as the rest of a sentence about the program.
    pub fn check(&self, workload: &Workload, timing: &Timing) -> Result<(), String> {
        match self {
            Self::Iperf3 { .. } => iperf3_peer::parameters_of(workload, timing).map(drop),
            Self::Netperf => netperf_peer::check(workload, timing),
        }
    }

    /// Returns the phases as a test of it has them.
    pub fn fitting(&self, timing: &Timing, transport: Transport) -> Timing {
        match self {
            Self::Iperf3 { .. } => iperf3_peer::fitting(timing, transport),
            Self::Netperf => netperf_peer::fitting(timing, transport),
        }
    }

    /// Returns what its phases are.
    pub fn phases(&self) -> &'static str {
        match self {
            Self::Iperf3 { .. } => {
                "an iperf3 server omits whole seconds and counts all that follows"
            }
            Self::Netperf => "a netperf server counts all datagrams",
        }
    }
}

/// Returns how the server of `program` is started.
pub fn command_of(program: &str) -> &'static str {
    match program {
        NETPERF => "netserver",
        _ => "iperf3 -s",
    }
}
