//! All UDP sockets of the network namespace, by socket monitoring: what waits and what was dropped.
//!
//! A socket's drops vanish with it and no event tells them, so the total keeps what each socket
//! had at its last reading; `snmp_udp_rcvbuf_errors` counts the rest, for all sockets together.

use std::collections::HashMap;
use std::io;

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};
use linerate_model::socket::{Protocol, SocketRow};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::observer::{Health, Observer, opened};
use crate::readout::Readout;
use crate::spacing::Spacing;
use crate::sys::clock::{now_ns, thread_cpu_ns, timed};
use crate::sys::netlink::{NetlinkSocket, Question};
use crate::tcp::message;

/// Most sockets kept apart.
const SOCKETS_MAX: usize = 256 << 10;
/// The address families, each of which is a question of its own.
const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];

/// Reads what all UDP sockets hold and dropped together.
pub(crate) struct UdpObserver {
    sockets: Option<NetlinkSocket>,
    questions: [Question; 2],
    totals: Totals,
    spacing: Spacing,
    health: Health,
}

/// Sums over the sockets of one reading, and drops over all that were seen.
#[derive(Debug, Default)]
struct Totals {
    present: u64,
    receive_queue_bytes: u64,
    send_queue_bytes: u64,
    drops: u64,
    /// The drops of each socket by its cookie, and the number of the reading that saw it last.
    seen: HashMap<u64, (u32, u64)>,
    readings: u64,
}

impl Totals {
    /// Takes back the beginning of a reading that failed: it says nothing of sockets that it did not see.
    fn abandon(&mut self) {
        self.readings -= 1;
    }

    fn begin(&mut self) {
        (self.present, self.readings) = (0, self.readings + 1);
        (self.receive_queue_bytes, self.send_queue_bytes) = (0, 0);
    }

    fn handle_socket(&mut self, row: &SocketRow) {
        self.present += 1;
        self.receive_queue_bytes += u64::from(row.receive_queue);
        self.send_queue_bytes += u64::from(row.send_queue);
        let Some(memory) = row.memory else { return };
        if self.seen.len() >= SOCKETS_MAX && !self.seen.contains_key(&row.cookie) {
            return;
        }
        let now = (memory.drops, self.readings);
        let before = self.seen.insert(row.cookie, now).map_or(0, |it| it.0);
        self.drops += u64::from(memory.drops.wrapping_sub(before));
    }

    /// Forgets sockets that two readings did not see.
    fn end(&mut self) {
        if self.seen.len() as u64 > self.present {
            let readings = self.readings;
            self.seen.retain(|_, seen| seen.1 + 2 > readings);
        }
    }
}

impl UdpObserver {
    /// Opens a socket in the network namespace of the calling thread.
    pub(crate) fn open() -> Self {
        let sockets = NetlinkSocket::open(NETLINK_SOCK_DIAG);
        let (sockets, missing) =
            opened(sockets.map_err(|error| format!("sock_diag socket: {error}")));
        Self {
            sockets,
            questions: FAMILIES.map(udp_question),
            totals: Totals::default(),
            spacing: Spacing::default(),
            health: Health::new("udp", missing, Vec::new()),
        }
    }

    fn read(&mut self, out: &mut Vec<Sample>) {
        let Some(sockets) = &mut self.sockets else {
            return;
        };
        let (begin_ns, cpu_ns) = (now_ns(), thread_cpu_ns());
        self.totals.begin();
        let totals = &mut self.totals;
        let (answer, at_ns) = timed(|| {
            self.questions.iter_mut().try_for_each(|question| {
                each_socket(sockets, question, |row| totals.handle_socket(&row))
            })
        });
        match &answer {
            Ok(()) => totals.end(),
            Err(_) => totals.abandon(),
        }
        self.spacing
            .handle_reading(begin_ns, thread_cpu_ns().saturating_sub(cpu_ns));
        let before = out.len();
        let failure = answer.err().map(|error| format!("sock_diag dump: {error}"));
        if failure.is_none() {
            push_samples(totals, &mut Readout::at(at_ns, out));
        }
        self.health.record(out.len() - before, failure);
    }
}

fn udp_question(family: u8) -> Question {
    let (kind, payload) = message::every_udp(family);
    Question::list(kind, &payload)
}

fn each_socket(
    sockets: &mut NetlinkSocket,
    question: &mut Question,
    mut handle: impl FnMut(SocketRow),
) -> io::Result<()> {
    sockets.ask(question, |_, payload| {
        message::parse(payload, Protocol::Udp)
            .into_iter()
            .for_each(&mut handle);
    })
}

fn push_samples(totals: &Totals, readout: &mut Readout<'_>) {
    for (metric, value) in [
        (Metric::UdpHostSockets, totals.present),
        (Metric::UdpHostReceiveQueue, totals.receive_queue_bytes),
        (Metric::UdpHostSendQueue, totals.send_queue_bytes),
        (Metric::UdpHostDrops, totals.drops),
    ] {
        readout.push(metric, Subject::Host, value);
    }
}

impl Observer for UdpObserver {
    fn availability(&self) -> Availability {
        self.health.availability_with(self.spacing.note())
    }

    fn sample(&mut self, out: &mut Vec<Sample>) {
        if self.spacing.is_due(now_ns()) {
            self.read(out);
        }
    }

    fn sample_edge(&mut self, out: &mut Vec<Sample>) {
        self.read(out);
    }
}

/// Reads the UDP sockets of the network namespace in which it was opened, one row each.
pub struct UdpSockets {
    sockets: NetlinkSocket,
}

impl UdpSockets {
    /// Opens a socket in the network namespace of the calling thread.
    pub fn open() -> io::Result<Self> {
        let sockets = NetlinkSocket::open(NETLINK_SOCK_DIAG)?;
        Ok(Self { sockets })
    }

    /// Fills `rows` with the sockets that `filter` wants, at most [`crate::ROWS_MAX`], and returns
    /// the instant of CLOCK_MONOTONIC at which they were read.
    pub fn read(
        &mut self,
        filter: &crate::SocketFilter,
        processes: &crate::Processes,
        rows: &mut Vec<SocketRow>,
    ) -> io::Result<u64> {
        rows.clear();
        let (answer, at_ns) = timed(|| {
            FAMILIES.iter().try_for_each(|&family| {
                each_socket(&mut self.sockets, &mut udp_question(family), |row| {
                    if rows.len() < crate::ROWS_MAX && filter.matches(&row, processes) {
                        rows.push(row);
                    }
                })
            })
        });
        answer.map(|()| at_ns)
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::socket::{CongestionName, SocketMemory, SocketState};

    use super::*;

    fn reading(totals: &mut Totals, sockets: &[(u64, u32)]) -> (u64, u64) {
        let any = "0.0.0.0:0".parse().expect("an address");
        totals.begin();
        for &(cookie, drops) in sockets {
            totals.handle_socket(&SocketRow {
                protocol: Protocol::Udp,
                state: SocketState::Close,
                local: any,
                remote: any,
                link_index: 0,
                cookie,
                uid: 0,
                inode: 0,
                receive_queue: 100,
                send_queue: 0,
                memory: Some(SocketMemory {
                    drops,
                    ..SocketMemory::default()
                }),
                congestion: CongestionName::default(),
                tcp: None,
            });
        }
        totals.end();
        (totals.drops, totals.receive_queue_bytes)
    }

    #[test]
    fn readings_that_fail_forget_nothing() {
        let mut totals = Totals::default();
        assert_eq!(reading(&mut totals, &[(1, 5), (2, 7)]).0, 12);
        for _ in 0..3 {
            totals.begin();
            totals.abandon();
        }
        assert_eq!(reading(&mut totals, &[(1, 6)]).0, 13);
        assert_eq!(reading(&mut totals, &[(1, 6), (2, 7)]).0, 13);
    }

    #[test]
    fn drops_outlive_their_socket_and_queues_do_not() {
        let mut totals = Totals::default();
        assert_eq!(reading(&mut totals, &[(1, 5), (2, 0)]), (5, 200));
        assert_eq!(reading(&mut totals, &[(2, 3)]), (8, 100));
        assert_eq!(reading(&mut totals, &[]), (8, 0));
        assert_eq!(
            reading(&mut totals, &[(3, u32::MAX)]),
            (8 + u64::from(u32::MAX), 100)
        );
        assert_eq!(reading(&mut totals, &[(3, 1)]).0, 10 + u64::from(u32::MAX));
        assert_eq!(totals.seen.len(), 1);
    }
}
