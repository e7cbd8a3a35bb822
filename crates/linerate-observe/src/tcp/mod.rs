//! All TCP sockets of the network namespace, by socket monitoring (sock_diag).
//!
//! For samples: sums over all sockets that never go backwards, see [`totals`]. For a person who
//! watches: every socket as a row, see [`TcpSockets`].

mod filter;
pub(crate) mod message;
/// Whose a connection of this host is.
mod owner;
mod process;
mod totals;

use std::io;

use linerate_model::number::counted;
use linerate_model::sample::{Sample, Subject};
use linerate_model::socket::{Protocol, SocketRow, SocketState};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

pub use filter::{FilterError, SocketFilter};
pub use owner::owner_of;
pub use process::{Process, Processes};
pub(crate) use totals::SOCKETS_MAX;

use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::clock::{now_ns, thread_cpu_ns, timed};
use crate::sys::netlink::{NetlinkSocket, Question};
use crate::sys::sock_diag::{EndedSockets, Heard};
use message::Depth;
use totals::Totals;

const NOTE_NO_EVENTS: &str = "without CAP_NET_ADMIN, counts between the last reading of a connection and \
                              its end are not seen";

/// What all TCP sockets count together.
struct AllTcp {
    sockets: NetlinkSocket,
    question: Question,
    ended: Option<EndedSockets>,
    totals: Totals,
    lost_events: bool,
}

/// Opens both sockets in the network namespace of the calling thread.
pub(crate) fn open(_: &ObserveConfig) -> Box<dyn Observer> {
    let ended = EndedSockets::open().ok();
    let note = ended.is_none().then(|| NOTE_NO_EVENTS.to_owned());
    let (kind, payload) = message::every_tcp(Depth::Counters, counted_states());
    let all = open_sockets().map(|sockets| AllTcp {
        sockets,
        question: Question::list(kind, &payload),
        ended,
        totals: Totals::default(),
        lost_events: false,
    });
    observer("tcp", all, note)
}

/// Opens a socket of socket monitoring.
pub(crate) fn open_sockets() -> Result<NetlinkSocket, String> {
    let sockets = NetlinkSocket::open(NETLINK_SOCK_DIAG);
    sockets.map_err(|error| format!("sock_diag socket: {error}"))
}

impl Interface for AllTcp {
    const COST_NS: Option<fn() -> u64> = Some(thread_cpu_ns);

    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let begin_ns = now_ns();
        let totals = &mut self.totals;
        totals.begin();
        let (answer, at_ns) = timed(|| {
            self.sockets.ask(&mut self.question, |_, payload| {
                if let Some(row) = message::parse(payload, Protocol::Tcp) {
                    totals.handle_socket(&row, begin_ns);
                }
            })
        });
        let heard = self.ended.as_mut().map(|ended| {
            ended.drain(|payload| {
                if let Some(row) = message::parse(payload, Protocol::Tcp) {
                    totals.handle_end(&row);
                }
            })
        });
        self.lost_events |= matches!(heard, Some(Ok(Heard::Part) | Err(_)));
        answer.map_err(|error| format!("sock_diag dump: {error}"))?;
        if totals.beyond() > 0 {
            let beyond = counted(totals.beyond(), "socket");
            return Err(format!("not counted: {beyond} beyond {SOCKETS_MAX}"));
        }
        totals.end(begin_ns);
        let mut readout = Readout::at(at_ns, out);
        totals.each(|metric, value| readout.push(metric, Subject::Host, value));
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let lost = self.lost_events.then(|| {
            "the kernel dropped events of connections that ended, so totals lack their last moments"
                .to_owned()
        });
        Vec::from_iter(lost)
    }
}

/// Returns the states of sockets that count segments: what is left of a connection in TIME_WAIT
/// and one that is not yet a socket have no counters, and a listener passes none on.
fn counted_states() -> u32 {
    let others = [
        SocketState::Listen,
        SocketState::TimeWait,
        SocketState::NewSynRecv,
    ];
    let all = SocketState::ALL.iter().map(|(_, state)| state);
    let counted = all.filter(|state| !others.contains(state));
    counted.map(|state| state.bit()).sum()
}

/// Reads the TCP sockets of the network namespace in which it was opened, one row each.
///
/// ```
/// use linerate_observe::{Processes, SocketFilter, TcpSockets};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut sockets = TcpSockets::open()?;
/// let filter: SocketFilter = "state established and dport 5201".parse()?;
/// let mut rows = Vec::new();
/// let (at_ns, all) = sockets.read(&filter, &Processes::default(), &mut rows)?;
/// assert!(at_ns > 0 && all >= rows.len() as u64);
/// assert!(rows.iter().all(|row| row.remote.port() == 5201));
/// # Ok(()) }
/// ```
pub struct TcpSockets {
    sockets: NetlinkSocket,
}

impl TcpSockets {
    /// Opens a socket in the network namespace of the calling thread.
    pub fn open() -> io::Result<Self> {
        let sockets = NetlinkSocket::open(NETLINK_SOCK_DIAG)?;
        Ok(Self { sockets })
    }

    /// Fills `rows` with the sockets that `filter` wants, at most [`ROWS_MAX`], and returns the
    /// instant of CLOCK_MONOTONIC at which they were read, and how many there are in all.
    ///
    /// Costs some 2 µs a socket in one of the filter's states; allocates only where `rows` grows.
    pub fn read(
        &mut self,
        filter: &SocketFilter,
        processes: &Processes,
        rows: &mut Vec<SocketRow>,
    ) -> io::Result<(u64, u64)> {
        let (kind, payload) = message::every_tcp(Depth::Everything, filter.states());
        let mut question = Question::list(kind, &payload);
        rows.clear();
        let mut all = 0;
        let (answer, at_ns) = timed(|| {
            self.sockets.ask(&mut question, |_, payload| {
                let row = message::parse(payload, Protocol::Tcp);
                let wanted = row.filter(|row| filter.matches(row, processes));
                all += u64::from(wanted.is_some());
                if let Some(row) = wanted.filter(|_| rows.len() < ROWS_MAX) {
                    rows.push(row);
                }
            })
        });
        answer.map(|()| (at_ns, all))
    }
}

/// Most rows read at once; a screen shows some fifty.
pub const ROWS_MAX: usize = 64 << 10;
