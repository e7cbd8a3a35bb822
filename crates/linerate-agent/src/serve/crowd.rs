//! The connections that the listener holds, and who has to go when there are too many.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::task::AbortHandle;

use crate::core::lock;
use crate::session::places::{PlaceId, Places};

/// Connections that have not said what they are, at the same time. A client opens up to 256 flows
/// at once, so four of them fit even where a name is said a round trip after the connection.
const UNKNOWN_MAX: usize = 1024;
/// Control connections at the same time: a controller has one or two.
const CONTROL_MAX: usize = 1024;
/// What part of the open files that this process may have goes to either kind at the most; flows
/// need the rest.
const FILES_PART: usize = 4;

/// All connections that are not flows yet.
#[derive(Debug)]
pub(super) struct Crowd {
    unknown: Mutex<Room>,
    control: Mutex<Room>,
}

/// Connections of one kind.
#[derive(Debug)]
struct Room {
    places: Places,
    tasks: HashMap<PlaceId, AbortHandle>,
}

/// One connection's stay; it gives back its place when it is dropped.
#[derive(Debug)]
pub(super) struct Stay {
    crowd: Arc<Crowd>,
    address: SocketAddr,
    at: Mutex<(Kind, PlaceId)>,
}

/// What is known of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has not said what it is.
    Unknown,
    /// It has made a request.
    Control,
}

impl Crowd {
    /// Returns an empty crowd for a process that may have `files_max` open files.
    pub(super) fn new(files_max: Option<usize>) -> Arc<Self> {
        let room = |most: usize| {
            let most = files_max.map_or(most, |files| most.min(files / FILES_PART));
            Mutex::new(Room {
                places: Places::new(most),
                tasks: HashMap::new(),
            })
        };
        Arc::new(Self {
            unknown: room(UNKNOWN_MAX),
            control: room(CONTROL_MAX),
        })
    }

    /// Runs the task of a connection that was accepted just now, which `serve` makes of its stay.
    /// Whoever has to go for it is cut off, wherever its task is.
    pub(super) fn take_in<F>(self: &Arc<Self>, address: SocketAddr, serve: impl FnOnce(Stay) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (id, gone) = lock(&self.unknown).places.handle_arrival(address.ip());
        let stay = Stay {
            crowd: Arc::clone(self),
            address,
            at: Mutex::new((Kind::Unknown, id)),
        };
        let task = tokio::spawn(serve(stay));
        // All tasks share the accepting one's thread: this one has not begun, so it cannot have
        // given back its place already.
        lock(&self.unknown).tasks.insert(id, task.abort_handle());
        self.dismiss(Kind::Unknown, gone);
    }

    fn room(&self, kind: Kind) -> MutexGuard<'_, Room> {
        match kind {
            Kind::Unknown => lock(&self.unknown),
            Kind::Control => lock(&self.control),
        }
    }

    fn dismiss(&self, kind: Kind, gone: Option<PlaceId>) {
        let task = gone.and_then(|gone| self.room(kind).tasks.remove(&gone));
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Takes back a place; returns the task that had it.
    fn leave(&self, kind: Kind, id: PlaceId) -> Option<AbortHandle> {
        let mut room = self.room(kind);
        room.places.handle_departure(id);
        room.tasks.remove(&id)
    }
}

impl Stay {
    /// Returns where the connection comes from.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Notes a request: the first makes it a control connection, each one a sign of life.
    pub(super) fn note_request(&self) {
        let mut at = lock(&self.at);
        if at.0 == Kind::Control {
            self.crowd.room(Kind::Control).places.handle_seen(at.1);
            return;
        }
        let task = self.crowd.leave(Kind::Unknown, at.1);
        let mut control = self.crowd.room(Kind::Control);
        let (id, gone) = control.places.handle_arrival(self.address.ip());
        control.tasks.extend(task.map(|task| (id, task)));
        drop(control);
        *at = (Kind::Control, id);
        drop(at);
        self.crowd.dismiss(Kind::Control, gone);
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let (kind, id) = *lock(&self.at);
        self.crowd.leave(kind, id);
    }
}
