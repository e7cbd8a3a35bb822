//! What all TCP sockets of a host counted together, so that it never goes backwards.
//!
//! A socket's counters vanish with it, so the sums of two dumps cannot be subtracted. Rules:
//!
//! 1. Every socket is known by the kernel's cookie. A reading adds what each counter grew since
//!    the last one, and all of it for a socket not seen before.
//! 2. A socket that ends is told by an event with its final counters: what they grew since the
//!    last dump is added, and the socket forgotten. Events are taken after the dump, so one that
//!    ended in between is not counted twice.
//! 3. A socket that is neither in the dump nor in an event is kept for [`FORGOTTEN_AFTER_NS`]: its
//!    event may be on its way (the kernel sends it from a work queue), or the dump missed it while
//!    it moved from one table to another. Then it is forgotten with what it last counted.
//! 4. The first reading takes sockets with their past, so the totals start anywhere.

use std::collections::HashMap;

use linerate_model::metric::Metric;
use linerate_model::socket::{SocketRow, SocketState, TcpInfo};

/// How long a socket that vanished without an event is kept, in nanoseconds.
const FORGOTTEN_AFTER_NS: u64 = 10_000_000_000;
/// Most sockets kept apart; one beyond it is not counted, and said.
pub(crate) const SOCKETS_MAX: usize = 256 << 10;

/// Sums over all sockets that were seen.
#[derive(Debug, Default)]
pub(super) struct Totals {
    sockets: HashMap<u64, Last>,
    counters: Counters<u64>,
    /// Sockets of the dump that goes on, and those of them that are established.
    present: u64,
    established: u64,
    delivery_bytes_per_s: u64,
    closed: u64,
    beyond: u64,
}

/// What a socket had counted when it was last seen.
#[derive(Debug, Clone, Copy)]
struct Last {
    counters: Counters<u32>,
    seen_ns: u64,
}

/// Counters: of one socket, some of which have 32 bits and wrap, or the sums.
#[derive(Debug, Clone, Copy, Default)]
struct Counters<N> {
    /// Segments sent and received, those of them with payload, and those sent again.
    segments: [N; 5],
    /// Bytes sent and received.
    bytes: [u64; 2],
    /// Times busy, limited by the peer's window and by the send buffer, in microseconds.
    times_us: [u64; 3],
}

impl Totals {
    /// Begins a dump.
    pub(super) fn begin(&mut self) {
        (self.present, self.established) = (0, 0);
        (self.delivery_bytes_per_s, self.beyond) = (0, 0);
    }

    /// Takes a socket of the dump, read at `at_ns`.
    pub(super) fn handle_socket(&mut self, row: &SocketRow, at_ns: u64) {
        let Some(tcp) = &row.tcp else { return };
        self.present += 1;
        self.established += u64::from(row.state == SocketState::Established);
        if self.sockets.len() >= SOCKETS_MAX && !self.sockets.contains_key(&row.cookie) {
            self.beyond += 1;
            return;
        }
        let now = Counters::of(tcp);
        let last = Last {
            counters: now,
            seen_ns: at_ns,
        };
        let before = self
            .sockets
            .insert(row.cookie, last)
            .map(|last| last.counters)
            .unwrap_or_default();
        let grown = self.counters.add_growth(&before, &now);
        if grown {
            self.delivery_bytes_per_s += tcp.delivery_bytes_per_s;
        }
    }

    /// Takes the final counters of a socket that ended.
    pub(super) fn handle_end(&mut self, row: &SocketRow) {
        let Some(tcp) = &row.tcp else { return };
        let before = self
            .sockets
            .remove(&row.cookie)
            .map(|last| last.counters)
            .unwrap_or_default();
        self.counters.add_growth(&before, &Counters::of(tcp));
        self.closed += 1;
    }

    /// Ends a dump: forgets sockets that vanished without an event.
    pub(super) fn end(&mut self, at_ns: u64) {
        if self.sockets.len() as u64 == self.present {
            return;
        }
        let before = self.sockets.len();
        self.sockets
            .retain(|_, last| at_ns.saturating_sub(last.seen_ns) < FORGOTTEN_AFTER_NS);
        self.closed += (before - self.sockets.len()) as u64;
    }

    /// Returns how many sockets of the last dump were too many to count.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Hands every metric's value to `push`.
    pub(super) fn each(&self, mut push: impl FnMut(Metric, u64)) {
        let [out, into, data_out, data_in, retrans] = self.counters.segments;
        let [bytes_sent, bytes_received] = self.counters.bytes;
        let [busy_us, rwnd_limited_us, sndbuf_limited_us] = self.counters.times_us;
        push(Metric::TcpHostSockets, self.present);
        push(Metric::TcpHostEstablished, self.established);
        push(Metric::TcpHostClosed, self.closed);
        push(Metric::TcpHostDataSegsOut, data_out);
        push(Metric::TcpHostDataSegsIn, data_in);
        push(Metric::TcpHostAcksOut, out.saturating_sub(data_out));
        push(Metric::TcpHostAcksIn, into.saturating_sub(data_in));
        push(Metric::TcpHostRetrans, retrans);
        push(Metric::TcpHostBytesSent, bytes_sent);
        push(Metric::TcpHostBytesReceived, bytes_received);
        let rate_bps = self.delivery_bytes_per_s.saturating_mul(8);
        push(Metric::TcpHostDeliveryRate, rate_bps);
        push(Metric::TcpHostBusy, busy_us * 1000);
        push(Metric::TcpHostRwndLimited, rwnd_limited_us * 1000);
        push(Metric::TcpHostSndbufLimited, sndbuf_limited_us * 1000);
    }
}

impl Counters<u32> {
    fn of(tcp: &TcpInfo) -> Self {
        Self {
            segments: [
                tcp.segs_out,
                tcp.segs_in,
                tcp.data_segs_out,
                tcp.data_segs_in,
                tcp.total_retrans,
            ],
            bytes: [tcp.bytes_sent, tcp.bytes_received],
            times_us: [tcp.busy_us, tcp.rwnd_limited_us, tcp.sndbuf_limited_us],
        }
    }

    /// Tells whether the socket went on and was not used anew: disconnecting one puts its counters back to
    /// 0. One that carried no payload shows that by its segments only, of which no socket has 2³¹ between two
    /// readings.
    fn is_before(&self, now: &Self) -> bool {
        let small = |(now, before): (&u32, &u32)| now.wrapping_sub(*before) <= u32::MAX / 2;
        let mut bytes = now.bytes.iter().zip(&self.bytes);
        bytes.all(|(now, before)| before <= now)
            && now.segments.iter().zip(&self.segments).all(small)
    }
}

impl Counters<u64> {
    /// Adds what a socket's counters grew, and tells whether it sent payload.
    fn add_growth(&mut self, before: &Counters<u32>, now: &Counters<u32>) -> bool {
        let zero = Counters::default();
        let before = if before.is_before(now) { before } else { &zero };
        let grown = |at: usize| now.segments[at].wrapping_sub(before.segments[at]);
        for (at, sum) in self.segments.iter_mut().enumerate() {
            *sum += u64::from(grown(at));
        }
        for (at, sum) in self.bytes.iter_mut().enumerate() {
            *sum += now.bytes[at] - before.bytes[at];
        }
        // The clocks are read without the socket's lock while they run, so they may step back.
        for (at, sum) in self.times_us.iter_mut().enumerate() {
            *sum += now.times_us[at].saturating_sub(before.times_us[at]);
        }
        // Those sent with payload.
        grown(2) > 0
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::socket::{CongestionName, Protocol};
    use proptest::prelude::*;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn row(cookie: u64, segments: u32) -> SocketRow {
        let any = "0.0.0.0:0".parse().expect("an address");
        SocketRow {
            protocol: Protocol::Tcp,
            state: SocketState::Established,
            local: any,
            remote: any,
            link_index: 0,
            cookie,
            uid: 0,
            inode: 0,
            receive_queue: 0,
            send_queue: 0,
            memory: None,
            congestion: CongestionName::default(),
            tcp: Some(TcpInfo {
                segs_out: segments.wrapping_add(1),
                data_segs_out: segments,
                bytes_sent: u64::from(segments) * 1000,
                delivery_bytes_per_s: 7,
                ..TcpInfo::default()
            }),
        }
    }

    fn dump(totals: &mut Totals, at_s: u64, sockets: &[(u64, u32)], ended: &[(u64, u32)]) {
        totals.begin();
        for (cookie, segments) in sockets {
            totals.handle_socket(&row(*cookie, *segments), at_s * SECOND_NS);
        }
        for (cookie, segments) in ended {
            totals.handle_end(&row(*cookie, *segments));
        }
        totals.end(at_s * SECOND_NS);
    }

    fn check(totals: &Totals, expect: &[(Metric, u64)]) {
        let mut found = Vec::new();
        totals.each(|metric, value| found.push((metric, value)));
        for pair in expect {
            assert!(found.contains(pair), "{pair:?} in {found:?}");
        }
    }

    #[test]
    fn what_a_socket_counted_outlives_it() {
        use Metric::{TcpHostAcksOut, TcpHostClosed, TcpHostDataSegsOut, TcpHostSockets};
        let mut totals = Totals::default();
        dump(&mut totals, 0, &[(1, 100), (2, 50)], &[]);
        check(&totals, &[(TcpHostDataSegsOut, 150), (TcpHostAcksOut, 2)]);
        // The first grows and ends; a third lives and dies between two readings.
        dump(&mut totals, 1, &[(2, 60)], &[(1, 130), (3, 9)]);
        check(
            &totals,
            &[
                (TcpHostDataSegsOut, 199),
                (TcpHostAcksOut, 3),
                (TcpHostClosed, 2),
                (TcpHostSockets, 1),
            ],
        );
        // One that is in the dump and ends before the events are taken counts once.
        dump(&mut totals, 2, &[(2, 70)], &[(2, 71)]);
        check(&totals, &[(TcpHostDataSegsOut, 210), (TcpHostClosed, 3)]);
    }

    #[test]
    fn a_socket_that_a_dump_missed_is_not_counted_twice() {
        use Metric::{TcpHostClosed, TcpHostDataSegsOut};
        let mut totals = Totals::default();
        dump(&mut totals, 0, &[(1, 100)], &[]);
        dump(&mut totals, 1, &[], &[]);
        check(&totals, &[(TcpHostDataSegsOut, 100), (TcpHostClosed, 0)]);
        dump(&mut totals, 2, &[(1, 101)], &[]);
        check(&totals, &[(TcpHostDataSegsOut, 101)]);
        dump(&mut totals, 20, &[], &[]);
        check(&totals, &[(TcpHostDataSegsOut, 101), (TcpHostClosed, 1)]);
    }

    #[test]
    fn wrapped_counters_grow_and_one_used_anew_starts_at_zero() {
        let mut totals = Totals::default();
        let with_bytes = |segments: u32, bytes_sent: u64| {
            let mut row = row(1, segments);
            row.tcp = row.tcp.map(|tcp| TcpInfo { bytes_sent, ..tcp });
            row
        };
        totals.handle_socket(&with_bytes(u32::MAX - 1, 1 << 40), 0);
        totals.handle_socket(&with_bytes(4, (1 << 40) + 6), 1);
        let sent = u64::from(u32::MAX) - 1 + 6;
        check(&totals, &[(Metric::TcpHostDataSegsOut, sent)]);
        totals.handle_socket(&with_bytes(3, 3000), 2);
        check(
            &totals,
            &[
                (Metric::TcpHostDataSegsOut, sent + 3),
                (Metric::TcpHostBytesSent, (1 << 40) + 6 + 3000),
            ],
        );
    }

    #[test]
    fn a_socket_that_asks_a_silent_host_anew_starts_at_zero() {
        let mut totals = Totals::default();
        let asking = |segs_out: u32| {
            let mut row = row(1, 0);
            row.tcp = Some(TcpInfo {
                segs_out,
                total_retrans: segs_out - 1,
                ..TcpInfo::default()
            });
            row
        };
        totals.handle_socket(&asking(4), 0);
        totals.handle_socket(&asking(1), 1);
        use Metric::{TcpHostAcksOut, TcpHostRetrans};
        check(&totals, &[(TcpHostAcksOut, 5), (TcpHostRetrans, 3)]);
        totals.handle_end(&asking(2));
        check(&totals, &[(TcpHostAcksOut, 6), (TcpHostRetrans, 4)]);
    }

    #[test]
    fn only_connections_that_sent_deliver() {
        let mut totals = Totals::default();
        dump(&mut totals, 0, &[(1, 100), (2, 50)], &[]);
        dump(&mut totals, 1, &[(1, 100), (2, 51)], &[]);
        check(&totals, &[(Metric::TcpHostDeliveryRate, 56)]);
    }

    proptest! {
        /// Whatever appears, vanishes, ends or is used anew: no counter goes backwards.
        #[test]
        fn counters_never_go_backwards(steps in proptest::collection::vec(
            (0u64..8, any::<u32>(), any::<bool>(), 0u64..15), 1..60,
        )) {
            let mut totals = Totals::default();
            let (mut at_s, mut before) = (0, Vec::new());
            for (cookie, segments, ends, wait_s) in steps {
                at_s += wait_s;
                let socket = [(cookie, segments)];
                let (live, ended): (&[_], &[_]) = if ends { (&[], &socket) } else { (&socket, &[]) };
                dump(&mut totals, at_s, live, ended);
                let mut now = Vec::new();
                totals.each(|metric, value| {
                    if metric.kind() == linerate_model::metric::Kind::Counter {
                        now.push(value);
                    }
                });
                prop_assert!(before.iter().zip(&now).all(|(before, now)| before <= now));
                before = now;
            }
        }
    }
}
