//! A server of another program in the place of an agent: what is the same for each.
//!
//! A [`Peer`] knows both halves of a test: what its server is asked, and what this host's agent is told instead of
//! what an agent at the other end would expect. [`PeerServer`] shows the one to a controller,
//! [`LocalAgent`](crate::LocalAgent) uses the other. One test is under way at a time: a trial.

/// What a controller sees of it.
mod server;

use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use linerate_model::TrialId;
use linerate_model::experiment::Timing;
use linerate_model::manner::{Manner, Transport};
use linerate_model::run::{FlowOutcome, Incoming};
use linerate_model::sample::End;
use linerate_model::setting::name;
use linerate_model::workload::{Setting, Workload};

use crate::api::reach::connect;
use crate::api::{AgentError, Assignment, RefusalCode, StartRequest, TrialState, TrialStatus};
use crate::core::OtherEnd;
use crate::sync::lock;

pub(super) use server::PeerServer;

/// How long connecting may take.
const CALL_DEADLINE: Duration = Duration::from_secs(5);

/// Tells whether what the client sent has been acknowledged.
pub(crate) type Delivered = Box<dyn Fn() -> bool + Send>;

/// A server that is no agent, and this host's part in a test of it.
pub(crate) trait Peer: Send + Sync {
    /// Returns which server it is.
    fn named(&self) -> &Named;
    /// Connects, unless that has happened and nothing has become of it yet.
    fn call(&self) -> Result<(), CallError>;
    /// Asks for a test, by a connection that was called, and waits until the server expects its flows.
    fn prepare(&self, assignment: &Assignment, timing: &Timing) -> Result<(), AgentError>;
    /// Says when the flows begin and end.
    fn start(&self, trial: TrialId, at: &StartRequest) -> Result<(), AgentError>;
    /// Returns how far a test has come, with samples from number `first` on.
    fn poll(&self, trial: TrialId, first: usize) -> Result<TrialStatus, AgentError>;
    /// Ends the traffic of a test before its time.
    fn stop(&self, trial: TrialId) -> Result<(), AgentError>;
    /// Forgets the test of `trial`, or whichever there is.
    fn forget_test(&self, trial: Option<TrialId>);
    /// Forgets the test and the connection.
    fn leave(&self);
    /// Returns what this host's agent is told instead, and whom its flows meet.
    fn told(&self, assignment: &Assignment) -> Result<(Assignment, OtherEnd), AgentError>;
    /// Notes that the flows of `trial` are open, and how to learn that all they sent has arrived.
    fn note_open(&self, trial: TrialId, delivered: Delivered) -> Result<(), AgentError>;
    /// Notes what the flows of `trial` counted.
    fn note_status(&self, trial: TrialId, status: &TrialStatus) -> Result<(), AgentError>;
}

/// Which server it is.
pub(crate) struct Named {
    /// What the program is called in messages and records.
    pub(super) program: &'static str,
    /// Its control port.
    pub(super) address: SocketAddr,
}

/// Why there is no control connection.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server has another test.
    Busy,
    /// Nothing answers, in words.
    Unreachable(String),
    /// Something answers, but not so.
    Odd(String),
}

impl Named {
    /// Returns what the server did instead of what was asked of it.
    pub(super) fn refused(&self, what: impl Into<String>, code: RefusalCode) -> AgentError {
        self.error(what, Some(code), false)
    }

    pub(super) fn error(
        &self,
        what: impl Into<String>,
        code: Option<RefusalCode>,
        gone: bool,
    ) -> AgentError {
        AgentError::Foreign {
            program: self.program,
            address: self.address.to_string(),
            what: what.into(),
            code,
            gone,
        }
    }

    pub(super) fn call_error(&self, error: CallError) -> AgentError {
        match error {
            CallError::Busy => self.refused("is busy with another test", RefusalCode::Busy),
            CallError::Unreachable(what) => self.error(what, None, true),
            CallError::Odd(what) => self.error(what, None, false),
        }
    }
}

/// The present standing with a server: `C` is a control connection of which nothing has become yet, `T` a test.
pub(super) struct Standing<C, T> {
    pub(super) named: Named,
    bind: Option<SocketAddr>,
    desk: Mutex<Desk<C, T>>,
}

pub(super) struct Desk<C, T> {
    /// A connection that was made to find the server's address, and has said nothing.
    opened: Option<TcpStream>,
    pub(super) called: Option<C>,
    pub(super) test: Option<(TrialId, T)>,
}

impl<C: AsRef<TcpStream>, T> Standing<C, T> {
    pub(super) fn new(named: Named, bind: Option<SocketAddr>, opened: Option<TcpStream>) -> Self {
        let desk = Desk {
            opened,
            called: None,
            test: None,
        };
        Self {
            named,
            bind,
            desk: Mutex::new(desk),
        }
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk<C, T>> {
        lock(&self.desk)
    }

    /// Makes sure of a control connection; `greet` makes it of one that has said nothing.
    pub(super) fn call(
        &self,
        greet: impl FnOnce(TcpStream) -> Result<C, CallError>,
    ) -> Result<(), CallError> {
        let mut desk = self.desk();
        if desk
            .called
            .as_ref()
            .is_some_and(|called| is_alive(called.as_ref()))
        {
            return Ok(());
        }
        let stream = desk.opened.take().map_or_else(|| self.connect(), Ok)?;
        desk.called = Some(greet(stream)?);
        Ok(())
    }

    /// Connects once more.
    pub(super) fn connect(&self) -> Result<TcpStream, CallError> {
        connect(self.named.address, self.bind, CALL_DEADLINE).map_err(|error| lost(&error))
    }

    /// Does `work` with the test of `trial`.
    pub(super) fn with_test<R>(
        &self,
        trial: TrialId,
        work: impl FnOnce(&mut T) -> R,
    ) -> Result<R, AgentError> {
        let mut desk = self.desk();
        let test = desk.test.as_mut().filter(|(of, _)| *of == trial);
        let gone = || self.named.refused("has no such test", RefusalCode::Gone);
        let (_, test) = test.ok_or_else(gone)?;
        Ok(work(test))
    }

    pub(super) fn forget_test(&self, trial: Option<TrialId>) {
        // Dropping it tells the server.
        self.desk()
            .test
            .take_if(|(of, _)| trial.is_none_or(|trial| trial == *of));
    }

    pub(super) fn leave(&self) {
        let mut desk = self.desk();
        desk.called = None;
        desk.test = None;
    }
}

/// Returns that a connection could not be made, or is there no more.
pub(super) fn lost(error: &std::io::Error) -> CallError {
    CallError::Unreachable(format!("cannot be connected to: {error}"))
}

/// Returns whether a read ended with its deadline.
pub(super) fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), TimedOut | WouldBlock)
}

/// Returns whether the server still holds a connection open on which it has nothing to say.
fn is_alive(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let alive = matches!(
        stream.peek(&mut [0]),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock
    );
    let _ = stream.set_nonblocking(false);
    alive
}

/// Returns an assignment as the workload that it is; or why no server of another program can do it.
pub(super) fn workload_of(assignment: &Assignment) -> Result<Workload, String> {
    if !assignment.beside.is_empty() {
        return Err("knows only one kind of traffic at a time: measure one group at a time".into());
    }
    Ok(Workload {
        traffic: assignment.traffic.clone(),
        connections: assignment.flows.len() as u32,
        options: assignment.options.clone(),
        manner: assignment.manner.clone(),
        ..Workload::of(assignment.traffic.kind())
    })
}

/// Refuses what no server of another program can do.
pub(super) fn check_manner(manner: &Manner) -> Result<(), String> {
    let why = if manner.transport == Transport::Unix {
        "knows no Unix sockets"
    } else if manner.sizes.is_some() {
        "knows messages of one size only"
    } else if manner.cpus.is_some() {
        "cannot be confined to a number of CPUs from here"
    } else {
        return Ok(());
    };
    Err(why.to_owned())
}

/// Returns a status that says nothing but `state`.
pub(super) fn bare_status(state: TrialState, next: usize) -> TrialStatus {
    TrialStatus {
        state,
        at_ns: None,
        samples: Vec::new(),
        next,
        flows: Vec::new(),
        more: false,
        stacks: Vec::new(),
        notes: Vec::new(),
        capture: None,
    }
}

/// Returns when counting ended: with the window, or before if a volume ended the test; the client read last at
/// `last_ns`, if it did.
pub(super) fn counted_until_ns(at: &StartRequest, last_ns: u64) -> u64 {
    match last_ns {
        0 => at.measure_end_ns,
        last_ns => last_ns.clamp(at.measure_begin_ns, at.measure_end_ns),
    }
}

/// Returns the server's end of a flow of which nothing is known but what the client's end knows of their addresses.
pub(super) fn server_end(client: &FlowOutcome) -> FlowOutcome {
    FlowOutcome {
        flow: client.flow,
        end: End::Server,
        part: client.part.opposite(),
        local: client.remote.clone(),
        remote: client.local.clone(),
        cpu: None,
        incoming: Incoming::default(),
        first_payload_ns: None,
        bytes_sent: 0,
        bytes_received: 0,
        counted_ns: None,
        stall_max_ns: None,
        settings: Default::default(),
        latency: None,
        lateness: None,
        datagrams: None,
        requests: None,
        connections: None,
        zero_copy: None,
        ended_early: None,
    }
}

/// Returns the setting that a congestion control is in force which the server names.
pub(super) fn congestion_in_force(algorithm: &str) -> Setting {
    Setting::seen(name::TCP_CONGESTION, Some(algorithm.to_owned()))
}
