//! The listener, which workers may have for a while.
//!
//! While workers of a trial accept the connections of its places, the listener is theirs
//! ([`linerate_engine::Door`]): the runtime watches it no more, and takes up what they give back. All
//! descriptors are of one socket, so that whoever waits to be accepted meanwhile waits on.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use linerate_engine::{AtDoor, Door};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{ACCEPT_PAUSE, accepted};

/// Connections given back that wait to be taken up; as many may be there without having said what they are.
const GIVEN_BACK_MAX: usize = super::connections::UNKNOWN_MAX;

/// The runtime's end of it.
pub(super) struct Entrance {
    listener: TcpListener,
    words: UnboundedReceiver<AtDoor>,
    /// Connections given back that were not taken up yet.
    waiting: Arc<AtomicUsize>,
    /// Workers that accept.
    workers: usize,
    /// What the runtime watches, while no workers do.
    watched: Option<tokio::net::TcpListener>,
}

/// The trials' end of it.
pub(crate) struct Doorway {
    listener: TcpListener,
    words: UnboundedSender<AtDoor>,
    waiting: Arc<AtomicUsize>,
}

impl Entrance {
    /// Returns both ends of a listener, which does not block.
    pub(super) fn new(listener: TcpListener) -> std::io::Result<(Self, Doorway)> {
        let (tell, words) = unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let doorway = Doorway {
            listener: listener.try_clone()?,
            words: tell,
            waiting: Arc::clone(&waiting),
        };
        let entrance = Self {
            listener,
            words,
            waiting,
            workers: 0,
            watched: None,
        };
        Ok((entrance, doorway))
    }

    /// Returns the address that it listens on.
    pub(super) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the next connection, whoever accepted it, with where it comes from.
    pub(super) async fn next(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            if self.workers > 0 {
                self.watched = None;
            } else if self.watched.is_none() {
                let own = self.listener.try_clone();
                self.watched = own.and_then(tokio::net::TcpListener::from_std).ok();
            }
            let word = match &self.watched {
                Some(listener) => tokio::select! {
                    connection = accepted(|| listener.accept()) => return connection,
                    word = self.words.recv() => word,
                },
                None if self.workers > 0 => self.words.recv().await,
                // No descriptor was left.
                None => tokio::time::timeout(ACCEPT_PAUSE, self.words.recv())
                    .await
                    .unwrap_or_default(),
            };
            match word {
                Some(AtDoor::Opens) => self.workers += 1,
                Some(AtDoor::Leaves) => self.workers = self.workers.saturating_sub(1),
                Some(AtDoor::Other(socket)) => {
                    self.waiting.fetch_sub(1, Relaxed);
                    if let Some(connection) = adopt(socket) {
                        return connection;
                    }
                }
                // The agent has the other end, and so has whoever serves it.
                None => {}
            }
        }
    }
}

/// Returns a connection that a worker accepted; one that has gone since is nobody's.
fn adopt(socket: OwnedFd) -> Option<(TcpStream, SocketAddr)> {
    let stream = std::net::TcpStream::from(socket);
    let peer = stream.peer_addr().ok()?;
    stream.set_nonblocking(true).ok()?;
    Some((TcpStream::from_std(stream).ok()?, peer))
}

impl Doorway {
    /// Returns the address that the listener has.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns a way in for the workers of one trial.
    pub(crate) fn open(&self) -> std::io::Result<Door> {
        let (words, waiting) = (self.words.clone(), Arc::clone(&self.waiting));
        Ok(Door {
            listener: self.listener.try_clone()?.into(),
            tell: Box::new(move |word| {
                if matches!(word, AtDoor::Other(_))
                    && waiting.fetch_add(1, Relaxed) >= GIVEN_BACK_MAX
                {
                    // Closed, as by a listener with a full backlog.
                    waiting.fetch_sub(1, Relaxed);
                    return;
                }
                // Where nobody serves any more, nobody waits for it.
                let _ = words.send(word);
            }),
        })
    }
}
