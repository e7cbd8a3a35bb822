//! All UDP sockets of the network namespace, by socket monitoring: what waits and what was dropped.
//!
//! A socket's drops vanish with it and no event tells them, so the total keeps what each socket
//! had at its last reading; `snmp_udp_rcvbuf_errors` counts the rest, for all sockets together.

use std::collections::HashMap;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};
use linerate_model::socket::{Protocol, SocketRow};

use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::clock::{thread_cpu_ns, timed};
use crate::sys::netlink::{NetlinkSocket, Question};
use crate::tcp::{SOCKETS_MAX, message, open_sockets};

/// The address families, each of which is a question of its own.
const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];

/// What all UDP sockets hold and dropped together.
struct AllUdp {
    sockets: NetlinkSocket,
    questions: [Question; 2],
    totals: Totals,
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

/// Opens a socket in the network namespace of the calling thread.
pub(crate) fn open(_: &ObserveConfig) -> Box<dyn Observer> {
    let all = open_sockets().map(|sockets| AllUdp {
        sockets,
        questions: FAMILIES.map(|family| {
            let (kind, payload) = message::every_udp(family);
            Question::list(kind, &payload)
        }),
        totals: Totals::default(),
    });
    observer("udp", all, None)
}

impl Interface for AllUdp {
    const COST_NS: Option<fn() -> u64> = Some(thread_cpu_ns);

    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let totals = &mut self.totals;
        totals.begin();
        let (answer, at_ns) = timed(|| {
            self.questions.iter_mut().try_for_each(|question| {
                self.sockets.ask(question, |_, payload| {
                    if let Some(row) = message::parse(payload, Protocol::Udp) {
                        totals.handle_socket(&row);
                    }
                })
            })
        });
        if let Err(error) = answer {
            totals.abandon();
            return Err(format!("sock_diag dump: {error}"));
        }
        totals.end();
        push_samples(totals, &mut Readout::at(at_ns, out));
        Ok(())
    }
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
