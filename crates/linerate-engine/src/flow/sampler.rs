//! Samples of one flow: what the application counted and what TCP_INFO says.

use linerate_model::manner::Transport;
use linerate_model::metric::{Kind, Metric};
use linerate_model::sample::{Sample, Subject};

use crate::flow::{Shared, datagram};
use crate::measure::tcp_info::{StreamEnd, Widened};
use crate::measure::{datagrams, tcp_info};
use crate::sys::clock::now_ns;
use crate::sys::socket::{self, Mptcp, TCP_INFO_BYTES_MAX};

/// The most samples that one flow gives: five counters of ours and the fields of TCP_INFO; one of
/// datagrams has none of the latter and eight of its own.
pub(crate) const SAMPLES_PER_FLOW: usize = 5 + tcp_info::FIELDS.len();

/// What the readings of a flow so far have shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) windows: WindowsSeen,
    widened: Widened,
}

/// The largest windows seen on a flow, and the most connections that carried it, for its settings as
/// they worked out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WindowsSeen {
    /// Largest window that the peer advertised, tcpi_snd_wnd.
    pub(crate) send_bytes: Option<i64>,
    /// Largest window that this end advertised, tcpi_rcv_wnd.
    pub(crate) receive_bytes: Option<i64>,
    /// Subflows of MPTCP; 0 where it was not spoken.
    pub(crate) subflows: u8,
}

impl WindowsSeen {
    /// Takes the windows of a reading into account.
    pub(crate) fn note(&mut self, metric: Metric, value: i64) {
        match metric {
            Metric::TcpSndWnd => self.send_bytes = self.send_bytes.max(Some(value)),
            Metric::TcpRcvWnd => self.receive_bytes = self.receive_bytes.max(Some(value)),
            _ => {}
        }
    }
}

/// Adds the samples of one flow to `out`.
///
/// Cost: 0.6 µs, most of it one system call. TCP_INFO is read first, because the kernel makes it wait
/// while the worker's own call holds the socket; then the clock; then our counters. So the
/// instant lies right beside both readings.
pub(crate) fn sample(flow: &Shared, seen: &mut Seen, out: &mut Vec<Sample>) {
    let mut room = [0; TCP_INFO_BYTES_MAX];
    // A socket that cannot be asked gives no samples of TCP_INFO: absent, not zero.
    // Nor does a place of connections, whose own socket carries none of them.
    let written = if flow.config.traffic.is_placed() {
        0
    } else {
        socket::tcp_info(flow.fd(), &mut room).unwrap_or(0)
    };
    let at_ns = now_ns();
    let counts = flow.counters.read();
    let subject = || Subject::Flow(flow.config.flow, flow.config.end);
    let mut push = |metric, value| {
        out.push(Sample {
            metric,
            subject: subject(),
            at_ns,
            value,
        });
    };
    push(Metric::AppBytesSent, counts.bytes_sent as i64);
    push(Metric::AppBytesReceived, counts.bytes_received as i64);
    push(Metric::AppCalls, counts.calls as i64);
    push(Metric::AppTransactions, counts.transactions as i64);
    if flow.config.traffic.is_stream() {
        push(Metric::AppMessages, flow.messages(&counts) as i64);
    }
    if let Some(ns) = counts.shortest_rtt_ns {
        push(Metric::TcpMinRtt, ns as i64);
    }
    if let Some(counts) = datagram::counts(flow) {
        datagrams::for_each(&counts, &mut push);
    }
    let is_mptcp = flow.config.manner.transport == Transport::Mptcp && written > 0;
    let mptcp = is_mptcp.then(|| socket::mptcp(flow.fd()));
    let arrived = tcp_bytes_received(flow, &room[..written], mptcp, counts.bytes_received);
    let Seen { windows, widened } = seen;
    windows.subflows = windows.subflows.max(mptcp.map_or(0, Mptcp::subflows));
    // What TCP_INFO counts is of the first of them alone.
    let is_whole = windows.subflows <= 1;
    let acked = mptcp.and_then(Mptcp::bytes_acked);
    widened.for_each(&room[..written], |metric, value| {
        windows.note(metric, value);
        let is_kept = match metric {
            Metric::TcpBytesReceived => false,
            Metric::TcpBytesAcked if acked.is_some() => false,
            _ => is_whole || metric.kind() == Kind::Gauge,
        };
        if is_kept {
            push(metric, value);
        }
    });
    if let Some(bytes) = arrived {
        push(Metric::TcpBytesReceived, bytes);
    }
    if let Some(bytes) = acked {
        push(Metric::TcpBytesAcked, bytes as i64);
    }
}

/// Returns the payload that the kernel took in, in order, for a socket whose TCP_INFO is `info` and of which the
/// worker has read `read_bytes`.
///
/// 1. The kernel counts the end of a stream as a byte; it is none of the payload. A connection of which
///    nothing is left has had one, unless it ended by an error: one that the worker was told, or that
///    waits to be told. (Completions of MSG_ZEROCOPY look like one: their sender's own count, of what it
///    never receives, keeps the byte.) The kernel reads the state before it takes the lock under which it
///    reads the count (tcp_get_info), so an end that comes in between is counted, and not told: where more
///    came than the worker has read, `poll` (0.2 µs, TCP_INFO 0.4) tells whether the stream ended, and one that did is
///    left to the next reading. (So is one that this end has shut down unread, which is over.)
/// 2. TCP_INFO of a socket that speaks MPTCP is that of its first subflow: MPTCP has a count of its
///    own, over all of them.
fn tcp_bytes_received(
    flow: &Shared,
    info: &[u8],
    mptcp: Option<Mptcp>,
    read_bytes: u64,
) -> Option<i64> {
    let of_tcp = || {
        let bytes = tcp_info::field_of(info, Metric::TcpBytesReceived)?;
        let has_end = match tcp_info::stream_end(info) {
            StreamEnd::Open => {
                let unread = bytes.cast_unsigned() > read_bytes;
                if unread && socket::has_stream_end(flow.socket()).ok()? {
                    return None;
                }
                false
            }
            StreamEnd::Come => true,
            StreamEnd::Closed => {
                !flow.counters.is_broken() && !socket::has_error(flow.socket()).ok()?
            }
        };
        Some(bytes - i64::from(has_end))
    };
    match mptcp {
        Some(Mptcp::Spoken { bytes_received, .. }) => i64::try_from(bytes_received?).ok(),
        Some(Mptcp::PlainTcp) | None => of_tcp(),
    }
}
