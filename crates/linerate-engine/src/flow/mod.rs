//! One end of one transport conversation: a connected socket with its options applied.

/// Where an end of a flow is.
mod address;
/// Connections that come for the places of a trial.
pub(crate) mod calls;
/// Opening a flow, or adopting one that a listener accepted.
mod connect;
/// What flows send that do not copy.
mod content;
/// Opening flows of datagrams, and their settings.
pub(crate) mod datagram;
/// Why a flow could not be opened.
mod error;
/// Where packets come in.
mod incoming;
/// By which calls bulk payload moves.
mod mechanism;
/// Multipath TCP.
mod mptcp;
/// What two ends say to each other by datagrams beside the payload.
pub mod opening;
/// Applying the options of a workload to a socket.
pub(crate) mod options;
/// How a stream is kept to its rate.
mod pace;
/// Places of connections, one for each transaction.
pub(crate) mod place;
/// Which way to send is the fastest here.
mod probe;
/// Where datagrams of new peers come in.
mod reception;
/// Samples of one flow: application counters and TCP_INFO.
pub(crate) mod sampler;
/// Settings as requested, granted and effective: the arithmetic.
mod settings;
/// Which datagrams a listener takes at all.
mod sieve;
/// Flows over Unix sockets.
mod unix;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::id::FlowId;
use linerate_model::manner::{Manner, SendBy, Transport};
use linerate_model::metric::Metric;
use linerate_model::sample::End;
use linerate_model::setting::{SettingPool, Settings};
use linerate_model::workload::{FlowOptions, Part, Traffic};
use linerate_model::{BitsPerSec, Nanos};

use crate::measure::counters::{Counters, Counts};
use crate::measure::datagrams::DatagramCounters;
use crate::measure::tcp_info;
use crate::sys::socket;
use crate::sys::xdp::Frames;

pub use address::Address;
pub use calls::{AtDoor, Calls, Door, HelloBytes};
pub use connect::{adopt, ask, await_calls, connect, try_options};
pub(crate) use content::Content;
pub use error::ConnectError;
pub(crate) use incoming::incoming;
pub(crate) use options::effective_settings;
pub(crate) use place::PlaceEnd;
pub use reception::{Arrival, DatagramListener};
pub use sieve::{Await, Awaited, Sieve};
pub use unix::connect_unix;

/// What one end of a flow is and does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowConfig {
    /// The flow.
    pub flow: FlowId,
    /// Which end this is.
    pub end: End,
    /// What this end does.
    pub part: Part,
    /// The kind of traffic; must fit `part`.
    pub traffic: Traffic,
    /// Socket options.
    pub options: FlowOptions,
    /// How the traffic is made.
    pub manner: Manner,
}

impl FlowConfig {
    /// Returns whether an acknowledgement is asked for after every receive: 120 ns, or 1 µs when one is
    /// due and sent.
    pub(crate) fn acks_at_once(&self) -> bool {
        self.options.delayed_ack == Some(false)
    }
}

/// A connected socket with its options applied, ready to be launched.
#[derive(Debug)]
pub struct Flow {
    pub(crate) shared: Shared,
}

/// What the two ends of a flow say to each other beside the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// Those of our own protocol.
    Ours,
    /// Nothing: see [`Flow::keep_to_payload`].
    None,
    /// Empty datagrams: see [`Flow::end_with_empty_datagrams`].
    Empty,
}

/// What the worker and the sampler both know of a flow.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: FlowConfig,
    pub(crate) socket: OwnedFd,
    pub(crate) local: Address,
    pub(crate) remote: Address,
    /// For a place of connections.
    pub(crate) place: Option<PlaceEnd>,
    pub(crate) settings: Settings,
    /// How a sender of bulk payload hands it over; never [`SendBy::Auto`].
    pub(crate) send: SendBy,
    /// What it takes the payload from.
    pub(crate) content: Content,
    /// Bits a second that a sender of bulk payload keeps.
    pub(crate) pace_bps: Option<u64>,
    /// Bits a second that exchanges are held to, both directions together.
    pub(crate) rate_max_bps: Option<u64>,
    pub(crate) counters: Counters,
    pub(crate) words: Words,
    /// What is sent at the start, before any payload and not counted; empty for nothing.
    pub(crate) greeting: Vec<u8>,
    /// What only datagrams have to count.
    pub(crate) datagrams: Option<Arc<DatagramCounters>>,
    /// The frames of a flow that sends past its socket, until its worker takes them.
    frames: Mutex<Option<Box<Frames>>>,
}

impl Shared {
    /// Returns what is known of a flow that copies its payload, keeps no rate and speaks our own
    /// protocol over `socket`.
    fn new(
        config: FlowConfig,
        socket: OwnedFd,
        (local, remote): (Address, Address),
        settings: Settings,
    ) -> Self {
        Self {
            config,
            socket,
            local,
            remote,
            place: None,
            settings,
            send: SendBy::Copy,
            content: Content::Copied,
            pace_bps: None,
            rate_max_bps: None,
            counters: Counters::default(),
            words: Words::Ours,
            greeting: Vec::new(),
            datagrams: None,
            frames: Mutex::default(),
        }
    }
}

impl Flow {
    /// Returns the settings as requested and granted, with what capped them.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Lets the flow keep its settings in `pool`, together with the other flows of its trial.
    pub fn share_settings(&mut self, pool: &mut SettingPool) {
        self.shared.settings = pool.share(&self.shared.settings);
    }

    /// Returns TCP's smoothed round trip, at first the handshake's; absent where nothing measured one.
    pub fn round_trip(&self) -> Option<Nanos> {
        let trip = tcp_info::ask_ns(self.shared.fd(), Metric::TcpRtt);
        trip.filter(|trip| *trip > 0).map(Nanos)
    }

    /// Returns the first bytes that the other end has sent, as many as a hello has, and leaves them there; absent
    /// where there are fewer. For flows that were not launched: one system call, which does not wait.
    pub fn first_bytes(&self) -> Option<HelloBytes> {
        let mut first = [0; opening::HELLO_BYTES];
        let seen = socket::peek(self.shared.fd(), &mut first).ok()?;
        (seen == first.len()).then_some(first)
    }

    /// Returns where this end is.
    pub fn local(&self) -> &Address {
        &self.shared.local
    }

    /// Returns where the other end is.
    pub fn remote(&self) -> &Address {
        &self.shared.remote
    }

    /// Lets this end send at most at `rate`, or at what its configuration asks for if that is less, where
    /// the kernel can: it refuses SO_MAX_PACING_RATE of an MPTCP socket (`mptcp_setsockopt` of
    /// net/mptcp/sockopt.c). What a responder receives and sends is held to it together, whatever carries it, and what
    /// the receiver of a stream takes of a connection to a little more: whoever keeps to it does not wait.
    pub fn limit_rate(&mut self, rate: BitsPerSec) -> io::Result<()> {
        self.shared.rate_max_bps = Some(rate.0.max(1.0) as u64);
        if self.shared.config.manner.transport == Transport::Mptcp {
            return Ok(());
        }
        // At least one byte: the kernel takes 0 for a flow that never sends.
        let most = (rate.0 / 8.0).max(1.0) as u64;
        let asked = pace::kernel_bytes_per_s(&self.shared.config);
        let bytes_per_s = asked.map_or(most, |asked| asked.min(most));
        socket::limit_pacing(self.shared.fd(), bytes_per_s)
    }

    /// Makes this end send `greeting` at the start, before any payload and not counted as such.
    ///
    /// For servers of other programs, which begin to count when the last flow has said its name.
    pub fn greet_at_start(&mut self, greeting: Vec<u8>) {
        self.shared.greeting = greeting;
    }

    /// Makes this end say nothing but payload: the other end speaks another protocol. It would take
    /// the mark after the last datagram for one more, and the end of a stream that has sent all it
    /// may for one that broke.
    pub fn keep_to_payload(&mut self) {
        self.shared.words = Words::None;
    }

    /// Makes this end of a flow of datagrams say its end by empty ones, and take responses that name no request:
    /// what netperf's server does.
    pub fn end_with_empty_datagrams(&mut self) {
        self.shared.words = Words::Empty;
    }

    /// Returns what this end is and does.
    pub fn config(&self) -> &FlowConfig {
        &self.shared.config
    }
}

impl Shared {
    /// Returns the whole messages of a stream at these counts: where all have one size, as many as
    /// fit into the bytes, so that nothing has to count them; else as many as were counted.
    pub(crate) fn messages(&self, counts: &Counts) -> u64 {
        if let Some(datagrams) = &self.datagrams {
            return datagrams.sent.read() + datagrams.received.read();
        }
        let manner = &self.config.manner;
        match self.config.traffic.stream() {
            Some((_, message_bytes))
                if manner.transport != Transport::Udp && manner.sizes.is_none() =>
            {
                (counts.bytes_sent + counts.bytes_received) / message_bytes.0.max(1)
            }
            Some(_) | None => counts.messages,
        }
    }

    /// Returns the frames of a flow that sends past its socket, once.
    pub(crate) fn take_frames(&self) -> Option<Box<Frames>> {
        let frames = self.frames.lock();
        frames.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether the other end is on this host: it has the same address.
    pub(crate) fn is_local(&self) -> bool {
        let ip = |address: &Address| Some(address.ip()?.ip());
        ip(&self.local) == ip(&self.remote)
    }

    /// Returns the socket's descriptor, open for as long as `self` lives.
    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends what is to be sent at the start. A few bytes fit any send buffer that is empty, so
    /// that this does not wait; when it fails, so will the first payload.
    pub(crate) fn greet(&self) {
        if !self.greeting.is_empty() {
            let _ = socket::send(self.fd(), &self.greeting);
        }
    }

    /// Returns the socket.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
