//! A netperf server in the place of an agent.
//!
//! Each flow is a test of its own, on a control connection of its own: netperf's server makes a process of each.
//!
//! ```text
//! admit    connect, "no debug"      ──►            ◄── yes
//! prepare  a test                   ──►            ◄── the port of its payload; its clock starts
//!          client: a flow to each port
//! start    payload
//! stop     the end of each stream, or empty datagrams; a server that sends ends by its clock
//!                                                  ◄── its counts
//! ```
//!
//! The server has no words for a warm-up, and no clock to start later: what it counts is all that came.

/// One control connection.
mod control;
/// What the server counted.
mod counts;
/// From a workload to what netperf's server is asked.
mod request;
/// Both halves of a test.
mod test;

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use linerate_model::FlowId;
use linerate_model::run::FlowOutcome;

use super::NETPERF;
use super::peer::{Named, Peer, PeerServer, Standing};
use crate::LocalAgent;
use crate::api::{Agent, StartRequest};
use control::{Awaited, Control};

pub use request::{check, fitting};

/// Where its server listens if nothing else is asked for.
pub const PORT: u16 = 12_865;

/// A handle on both halves.
pub struct NetperfPeer(Arc<Shared>);

impl NetperfPeer {
    /// Returns the server whose control port is `address`, called from `bind` if that is given, and uses a connection
    /// to it that was `opened` already.
    pub fn new(address: SocketAddr, bind: Option<SocketAddr>, opened: Option<TcpStream>) -> Self {
        let named = Named {
            program: NETPERF,
            address,
        };
        Self(Arc::new(Shared {
            standing: Standing::new(named, bind, opened),
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
}

/// What both halves know.
struct Shared {
    standing: Standing<Control, Test>,
}

/// The tests of one trial.
struct Test {
    flows: Vec<TestFlow>,
    is_udp: bool,
    is_placed: bool,
    /// Whether the client's flows are open.
    is_open: bool,
    at: Option<StartRequest>,
    /// When the client read its counters last.
    last_ns: u64,
    /// What became of the client's ends.
    clients: Vec<FlowOutcome>,
    /// When all of that was known.
    ended_ns: Option<u64>,
    /// Whether the traffic was ended before its time.
    is_stopped: bool,
    note: Option<String>,
}

/// One flow, a test on the server.
struct TestFlow {
    flow: FlowId,
    /// Where the payload goes.
    address: SocketAddr,
    awaited: Awaited,
}
