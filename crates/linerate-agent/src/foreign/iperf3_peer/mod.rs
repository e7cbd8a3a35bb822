//! An iperf3 server in the place of an agent.
//!
//! Two halves that share one test at a time:
//!
//! * The server, as an agent. It is admitted by connecting a control connection,
//!   prepared by saying what is wanted, started by the last stream's cookie, and asked for its
//!   results after the stop. Nothing is read on its host.
//! * [`LocalAgent`](crate::LocalAgent) is this host's own agent. Its flows greet with iperf3's cookie, one after
//!   another in iperf3's order, and what they counted goes to the server.
//!
//! ```text
//! admit    connect, cookie          ──►            ◄── 9, or 255: busy
//! prepare  parameters               ──►            ◄── 10
//!          client: streams 1 … n−1, each with the cookie
//! start    the cookie of stream n   ──►            ◄── 1, 2; payload
//! stop     once all payload has been acknowledged:
//!          4                        ──►            ◄── 13
//!          our counts               ──►            ◄── theirs, 14
//! ```
//!
//! iperf3's server drops what it has not read when it hears the 4, so that comes a moment after
//! the last acknowledgement; and it starts its clock with the last cookie, so that one waits for
//! the start of the trial.

/// One control connection, on threads of its own.
mod control;
/// What the two ends counted.
mod counts;
/// From an assignment to what iperf3's server is told.
mod parameters;
/// Both halves of a test.
mod test;

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use linerate_compat::iperf3::Parameters;
use linerate_model::FlowId;
use linerate_model::run::FlowOutcome;

use super::peer::{Delivered, Named, Peer, PeerServer, Standing};
use crate::LocalAgent;
use crate::api::{Agent, StartRequest};
use crate::sync::lock;
use control::{Called, Connection};
use counts::Counts;

pub use linerate_compat::iperf3::auth::{Padding, PublicKey};
pub use linerate_compat::iperf3::{Results, ServerOutput};
pub use parameters::{fitting, parameters_of};

/// What the program is called in messages and records.
pub const PROGRAM: &str = "iperf3";

/// User, password and key for a server that asks for them.
#[derive(Clone)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
    /// The server's public key.
    pub key: PublicKey,
    /// The padding that the server takes.
    pub padding: Padding,
}

/// Where the server is, and what is asked of it beside the workload.
#[derive(Clone)]
pub struct Iperf3Options {
    /// Its control port; data goes to the same.
    pub address: SocketAddr,
    /// Address to connect from.
    pub bind: Option<SocketAddr>,
    /// Who asks.
    pub credentials: Option<Credentials>,
    /// Whether it is to send its own output with its results.
    pub server_output: bool,
}

/// A handle on both halves.
#[derive(Clone)]
pub struct Iperf3Peer(Arc<Shared>);

impl Iperf3Peer {
    /// Returns a server, and uses a connection to it that was `opened` already: one that is closed without a word
    /// is a test that failed, to a server.
    pub fn new(options: Iperf3Options, opened: Option<TcpStream>) -> Self {
        let named = Named {
            program: PROGRAM,
            address: options.address,
        };
        Self(Arc::new(Shared {
            standing: Standing::new(named, options.bind, opened),
            options,
            results: Mutex::default(),
        }))
    }

    /// Returns the half that stands for the server.
    pub fn server(&self) -> Arc<dyn Agent> {
        Arc::new(PeerServer(Arc::clone(&self.0) as Arc<dyn Peer>))
    }

    /// Returns this host's half.
    pub fn client(&self, local: LocalAgent) -> Arc<dyn Agent> {
        Arc::new(local.with_peer(Arc::clone(&self.0) as Arc<dyn Peer>))
    }

    /// Returns what the server counted and printed in the last test that it ended as it should.
    pub fn results(&self) -> Option<Results> {
        lock(&self.0.results).clone()
    }
}

/// What both halves know.
struct Shared {
    options: Iperf3Options,
    standing: Standing<Called, Test>,
    /// The server's results of the last test.
    results: Mutex<Option<Results>>,
}

/// One test on the server: one trial of ours.
struct Test {
    connection: Connection,
    parameters: Parameters,
    /// The flows in the order in which they are opened, which gives them their numbers there.
    order: Vec<FlowId>,
    /// Whether the client sends.
    sends: bool,
    /// Whether the client's flows are open.
    is_open: bool,
    /// How to learn that all the client sent has arrived; handed on at the start.
    delivered: Option<Delivered>,
    at: Option<StartRequest>,
    counts: Counts,
    /// What became of the client's ends, once they have ended.
    outcomes: Option<Vec<FlowOutcome>>,
    notes: Vec<String>,
}
