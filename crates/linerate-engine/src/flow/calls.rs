//! Connections that come for the places of a trial, at a listener that others use, too.
//!
//! 1. The workers accept for themselves while they run: handing each connection on would cost a tenth
//!    of a transaction. A connection is ours where its first bytes are the hello of one of the trial's
//!    flows; any other is given back to the listener's owner, unread.
//! 2. The owner accepts nothing meanwhile, or every connection would wake it for nothing. What it does
//!    accept, before and after and for trials beside, it hands in.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::flow::opening::HELLO_BYTES;
use crate::flow::{PlaceEnd, Shared};
use crate::sys::bell::Bell;
use crate::sys::socket;

/// The first bytes of a connection, which say whose it is.
pub type HelloBytes = [u8; HELLO_BYTES];

/// Connections that may wait to be taken up by a worker; as many wait at a listener at the most.
const HANDED_MAX: usize = 4096;
/// Connections that one flow may have open at once: an honest caller has one, and its next may come
/// before the end of the one before has been seen.
const OPEN_MAX: u32 = 4;

/// A listener at which workers may accept.
pub struct Door {
    /// A descriptor of it, not blocking.
    pub listener: OwnedFd,
    /// Hears what the workers have to say; called on their threads, and must not block.
    pub tell: Box<dyn Fn(AtDoor) + Send + Sync>,
}

/// What a worker says to the owner of a listener.
#[derive(Debug)]
pub enum AtDoor {
    /// It accepts from now on.
    Opens,
    /// It does not any more.
    Leaves,
    /// It accepted a connection of somebody else.
    Other(OwnedFd),
}

/// The connections of one trial's places.
pub struct Calls {
    door: Option<Door>,
    bell: Bell,
    handed: Mutex<VecDeque<(OwnedFd, HelloBytes)>>,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listener = self.door.as_ref().map(|door| &door.listener);
        f.debug_struct("Calls").field("door", &listener).finish()
    }
}

impl Calls {
    /// Returns those that come at `door`, and those that are handed in.
    pub fn new(door: Option<Door>) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            door,
            bell: Bell::new()?,
            handed: Mutex::default(),
        }))
    }

    /// Hands in a connection whose first bytes were read: `hello`.
    pub fn hand_in(&self, socket: OwnedFd, hello: HelloBytes) {
        let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        // Beyond that it is closed, as by a listener with a full backlog.
        if handed.len() < HANDED_MAX {
            handed.push_back((socket, hello));
            drop(handed);
            self.bell.ring();
        }
    }

    /// Takes the connection that was handed in first.
    pub(crate) fn take(&self) -> Option<(OwnedFd, HelloBytes)> {
        let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        handed.pop_front()
    }

    /// Returns what becomes readable when a connection is handed in.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Returns the listener, where there is one.
    pub(crate) fn listener(&self) -> Option<RawFd> {
        Some(self.door.as_ref()?.listener.as_raw_fd())
    }

    /// Returns where the listener listens.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        socket::local(self.door.as_ref()?.listener.as_fd()).ok()
    }

    /// Says something to the listener's owner.
    pub(crate) fn tell(&self, what: AtDoor) {
        if let Some(door) = &self.door {
            (door.tell)(what);
        }
    }
}

/// The flows that answer connections, each known by its hello.
#[derive(Debug)]
pub(crate) struct Callees {
    pub(crate) calls: Arc<Calls>,
    flows: Vec<Arc<Shared>>,
    /// Connections that each has open.
    open: Vec<AtomicU32>,
    by_hello: HashMap<HelloBytes, usize>,
}

impl Callees {
    /// Returns those among the flows of a trial, if there are any.
    pub(crate) fn of(flows: &[Arc<Shared>]) -> Option<Self> {
        let hello = |flow: &Arc<Shared>| match &flow.place {
            Some(PlaceEnd::Answers { calls, hello }) => Some((Arc::clone(calls), *hello)),
            Some(PlaceEnd::Calls { .. }) | None => None,
        };
        let hellos: Vec<_> = flows.iter().filter_map(hello).collect();
        let (calls, _) = hellos.first()?;
        let by_hello = hellos.iter().enumerate();
        Some(Self {
            calls: Arc::clone(calls),
            open: hellos.iter().map(|_| AtomicU32::new(0)).collect(),
            by_hello: by_hello.map(|(at, (_, hello))| (*hello, at)).collect(),
            flows: flows
                .iter()
                .filter(|flow| hello(flow).is_some())
                .cloned()
                .collect(),
        })
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.flows.len()
    }

    /// Returns the number of the one whose hello it is.
    pub(crate) fn find(&self, hello: &HelloBytes) -> Option<usize> {
        self.by_hello.get(hello).copied()
    }

    /// Returns one by its number.
    pub(crate) fn flow(&self, at: usize) -> &Shared {
        &self.flows[at]
    }

    /// Counts one more connection of a flow; returns whether it may have that.
    pub(crate) fn enter(&self, at: usize) -> bool {
        let may = self.open[at].fetch_add(1, Relaxed) < OPEN_MAX;
        if !may {
            self.leave(at);
        }
        may
    }

    /// Counts one connection less.
    pub(crate) fn leave(&self, at: usize) {
        self.open[at].fetch_sub(1, Relaxed);
    }
}
