//! The connections that the listener holds, and who has to go when there are too many.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::task::AbortHandle;

use crate::session::places::{PlaceId, Places};
use crate::sync::lock;

/// Connections that have not said what they are, at the same time. A client opens up to 256 flows
/// at once, so four of them fit even where a name is said a round trip after the connection.
pub(super) const UNKNOWN_MAX: usize = 1024;
/// Control connections at the same time: a controller has one or two.
const CONTROL_MAX: usize = 1024;
/// What part of the open files that this process may have goes to either kind at the most; flows
/// need the rest.
const FILES_PART: usize = 4;

/// All connections that are not flows yet.
#[derive(Debug)]
pub(super) struct Connections {
    /// Of each [`Kind`].
    tables: [Mutex<ConnectionTable>; 2],
    gone: AtomicU64,
}

/// Connections of one kind.
#[derive(Debug)]
struct ConnectionTable {
    places: Places,
    tasks: HashMap<PlaceId, AbortHandle>,
}

/// One connection's hold on its place, which it gives back when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    connections: Arc<Connections>,
    address: SocketAddr,
    number: PlaceId,
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

impl Connections {
    /// Returns no connections yet, for a process that may have `files_max` open files.
    pub(super) fn new(files_max: Option<usize>) -> Arc<Self> {
        let table = |most: usize| {
            let most = files_max.map_or(most, |files| most.min(files / FILES_PART));
            Mutex::new(ConnectionTable {
                places: Places::new(most),
                tasks: HashMap::new(),
            })
        };
        Arc::new(Self {
            tables: [UNKNOWN_MAX, CONTROL_MAX].map(table),
            gone: AtomicU64::new(0),
        })
    }

    /// Returns how many there were that are over.
    pub(super) fn gone(&self) -> u64 {
        self.gone.load(Ordering::Relaxed)
    }

    /// Runs the task of a connection that was accepted just now, which `serve` makes of its guard.
    /// The connection that has to go for it is cut off, wherever its task is.
    pub(super) fn take_in<F>(
        self: &Arc<Self>,
        address: SocketAddr,
        serve: impl FnOnce(ConnectionGuard) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (id, gone) = self
            .table(Kind::Unknown)
            .places
            .handle_arrival(address.ip());
        let guard = ConnectionGuard {
            connections: Arc::clone(self),
            address,
            number: id,
            at: Mutex::new((Kind::Unknown, id)),
        };
        let task = tokio::spawn(serve(guard));
        // All tasks share the accepting one's thread: this one has not begun, so it cannot have
        // given back its place already.
        self.table(Kind::Unknown)
            .tasks
            .insert(id, task.abort_handle());
        self.dismiss(Kind::Unknown, gone);
    }

    fn table(&self, kind: Kind) -> MutexGuard<'_, ConnectionTable> {
        lock(&self.tables[kind as usize])
    }

    fn dismiss(&self, kind: Kind, gone: Option<PlaceId>) {
        let task = gone.and_then(|gone| self.table(kind).tasks.remove(&gone));
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Takes back a place; returns the task that had it.
    fn leave(&self, kind: Kind, id: PlaceId) -> Option<AbortHandle> {
        let mut table = self.table(kind);
        table.places.handle_departure(id);
        table.tasks.remove(&id)
    }
}

impl ConnectionGuard {
    /// Returns where the connection comes from.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a number that grows with each connection that is accepted.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Notes a request: the first makes it a control connection, each one a sign of life.
    pub(super) fn note_request(&self) {
        let mut at = lock(&self.at);
        if at.0 == Kind::Control {
            self.connections
                .table(Kind::Control)
                .places
                .handle_seen(at.1);
            return;
        }
        let task = self.connections.leave(Kind::Unknown, at.1);
        let mut control = self.connections.table(Kind::Control);
        let (id, gone) = control.places.handle_arrival(self.address.ip());
        control.tasks.extend(task.map(|task| (id, task)));
        drop(control);
        *at = (Kind::Control, id);
        drop(at);
        self.connections.dismiss(Kind::Control, gone);
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let (kind, id) = *lock(&self.at);
        self.connections.leave(kind, id);
        self.connections.gone.fetch_add(1, Ordering::Relaxed);
    }
}
