//! A connection that carries nothing: it is there, until the stop.

use crate::schedule::{Control, Ending};
use crate::sys::clock::now_ns;
use crate::sys::socket;
use crate::workload::{Io, Play, Turn, Want, failed};

/// Keeps a connection.
#[derive(Debug)]
pub(crate) struct IdlePart {
    /// Whether this end closes at the stop; the other waits for it.
    closes: bool,
}

impl IdlePart {
    /// Returns a keeper.
    pub(crate) fn new(closes: bool) -> Self {
        Self { closes }
    }
}

impl Play for IdlePart {
    /// Looks whether the connection is still there; nothing is expected on it.
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        match socket::receive(io.flow.fd(), &mut io.room[..1]) {
            Ok(0) => Turn::Ended(io.control.closed_by_peer(now_ns())),
            Ok(_) => {
                let text = "the peer sent something on a connection that carries nothing";
                Turn::Ended(Ending::Early(text.to_owned()))
            }
            Err(error) => failed("keeping the connection", &error, Want::Readable),
        }
    }

    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        if self.closes && now_ns >= control.stop_ns() {
            return Some(control.stopped());
        }
        (now_ns >= control.limit_ns()).then(|| control.overdue("the end of the connection"))
    }
}
