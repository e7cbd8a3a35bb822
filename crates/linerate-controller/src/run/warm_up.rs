//! How long traffic goes on before it is counted.
//!
//! A window that begins while the sender still finds out what the path takes reads too little. Slow
//! start doubles what is under way every round trip, from ten segments on: after 20 round trips it has
//! filled any path there is (10 · 2²⁰ segments are 15 GB), and bbr, which leaves its start-up when the
//! delivery rate has not grown for three rounds and then empties the queue that it made, has done both.
//! What a loss on the way leaves to congestion avoidance takes longer than anybody would wait; a window
//! whose halves differ says so.
//!
//! Many streams make round trips of their own, which the handshakes did not meet: each begins with ten
//! segments, and the line takes its time for those of all. After the eighth such turn 64 to 1000 streams
//! over 100 Mbit/s and 1 Gbit/s shared evenly; with 0.2 s before the window Jain's index of 256 streams
//! over 100 Mbit/s was 0.85 at a rate of 82 Mbit/s, with 1.2 s 0.998 at 94.

use linerate_model::Nanos;
use linerate_model::manner::Transport;
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::unit::BitsPerSec;
use linerate_model::wire::INITIAL_WINDOW_SEGMENTS;
use linerate_model::workload::{Direction, Workload};

/// Round trips before a window.
const ROUND_TRIPS: u64 = 20;
/// Turns of all first windows before a window.
const FIRST_WINDOWS: u64 = 8;
/// Bytes that a full segment takes on the usual line: MTU 1500 and 38 of Ethernet.
const SEGMENT_WIRE_BYTES: u64 = 1538;
/// The longest time that they may add; a path of 250 ms has 20 of them.
const MOST: Nanos = Nanos::from_s(5);

/// What the time before a window follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// From what is asked for alone.
    AsAsked,
    /// From that, and from the path's round trip if it is long.
    RoundTrips,
}

impl WarmUp {
    /// Returns the time before the window where `asked` was asked for on a path whose round trip the
    /// handshake measured, and whose line takes `first_windows` for those of all flows. Who asks for none
    /// counts from the first byte on.
    pub(super) fn length(
        self,
        asked: Nanos,
        round_trip: Option<Nanos>,
        first_windows: Nanos,
    ) -> Nanos {
        let trips = round_trip.map_or(0, |one| one.0.saturating_mul(ROUND_TRIPS));
        let needed = trips.max(first_windows.0.saturating_mul(FIRST_WINDOWS));
        let most = asked.0 + self.more(asked).0;
        asked.max(Nanos(needed.min(most)))
    }

    /// Returns the most that a path may add to `asked`.
    pub(super) fn more(self, asked: Nanos) -> Nanos {
        match self {
            WarmUp::RoundTrips if asked.0 > 0 => Nanos(MOST.0.saturating_sub(asked.0)),
            WarmUp::RoundTrips | WarmUp::AsAsked => Nanos(0),
        }
    }
}

/// Returns the time that the slowest known line of `hosts` takes for the first windows of all streams of
/// `workload`; none for other traffic, and where no rate is known.
pub(super) fn first_windows<'a>(
    workload: &Workload,
    hosts: impl Iterator<Item = &'a HostRecord>,
) -> Nanos {
    let direction = workload.traffic.direction().unwrap_or(Direction::Both);
    turn(
        workload,
        hosts.filter_map(|host| Some((host.part, host.rate_in(direction)?))),
    )
}

fn turn(workload: &Workload, lines: impl Iterator<Item = (HostPart, BitsPerSec)>) -> Nanos {
    let stream = workload.traffic.stream();
    let Some((direction, _)) = stream.filter(|_| workload.manner.transport != Transport::Udp)
    else {
        return Nanos(0);
    };
    // All flows cross the server's link, each client's its own; half of `both` go either way.
    let direction = if direction == Direction::Both { 2 } else { 1 };
    let times = lines.map(|(part, rate)| {
        let sharing = match part {
            HostPart::Server => 1,
            HostPart::Client => workload.clients,
        };
        let flows = workload.connections.div_ceil(direction * sharing.max(1));
        window_time(flows, rate)
    });
    times.max().unwrap_or(Nanos(0))
}

fn window_time(flows: u32, rate: BitsPerSec) -> Nanos {
    let bytes = u64::from(flows) * INITIAL_WINDOW_SEGMENTS * SEGMENT_WIRE_BYTES;
    // A rate that is not above zero makes an infinite time, which the conversion caps.
    Nanos((bytes as f64 * 8.0 * 1e9 / rate.0) as u64)
}

#[cfg(test)]
mod tests {
    use linerate_model::workload::Traffic;

    use super::*;

    #[test]
    fn long_paths_have_their_round_trips_before_the_window() {
        let check = |warm_up: WarmUp, asked_ms, trip_us: Option<u64>, expected_ms| {
            let trip = trip_us.map(|us| Nanos(us * 1000));
            let length = warm_up.length(Nanos::from_ms(asked_ms), trip, Nanos(0));
            assert_eq!(
                length,
                Nanos::from_ms(expected_ms),
                "{asked_ms} {trip_us:?}"
            );
        };
        check(WarmUp::RoundTrips, 150, Some(100), 150);
        check(WarmUp::RoundTrips, 150, Some(50_000), 1000);
        check(WarmUp::RoundTrips, 150, Some(600_000), 5000);
        check(WarmUp::RoundTrips, 8000, Some(600_000), 8000);
        check(WarmUp::RoundTrips, 150, None, 150);
        check(WarmUp::RoundTrips, 0, Some(50_000), 0);
        check(WarmUp::AsAsked, 150, Some(50_000), 150);
    }

    #[test]
    fn the_first_windows_of_many_streams_pass_before_the_window() {
        let check = |flows, rate, expected_ms: u64| {
            let turn = window_time(flows, BitsPerSec(rate));
            let length = WarmUp::RoundTrips.length(Nanos::from_ms(200), None, turn);
            assert_eq!(length.0 / 1_000_000, expected_ms, "{flows} over {rate}");
        };
        check(1, 100e6, 200);
        check(16, 1e9, 200);
        check(64, 1e9, 200);
        check(1000, 1e9, 984);
        check(64, 100e6, 629);
        check(256, 100e6, 2519);
        check(500, 100e6, 4921);
        check(1000, 10e6, 5000);
        check(1, 0.0, 5000);
    }

    #[test]
    fn each_line_takes_its_own_streams() {
        let check = |change: fn(&mut Workload), expected_ms: u64| {
            let mut workload = Workload::stream(Direction::ToServer);
            workload.connections = 100;
            change(&mut workload);
            let lines = [
                (HostPart::Server, BitsPerSec(1e9)),
                (HostPart::Client, BitsPerSec(100e6)),
            ];
            let took = turn(&workload, lines.into_iter());
            assert_eq!(took.0 / 1_000_000, expected_ms, "{workload:?}");
            assert_eq!(
                turn(&workload, [].into_iter()),
                Nanos(0),
                "no rate is known"
            );
        };
        check(|_| (), 123);
        check(|workload| workload.clients = 5, 24);
        check(|workload| workload.clients = 50, 12);
        let both: fn(&mut Workload) = |workload| {
            workload.traffic = Workload::stream(Direction::Both).traffic;
        };
        check(both, 61);
        check(|workload| workload.traffic = Traffic::Idle, 0);
        check(|workload| workload.manner.transport = Transport::Udp, 0);
    }

    /// Slow start on a path of 50 ms and 1 Gbit/s, and bbr's start-up on the same: after the time
    /// before the window neither is in it.
    #[test]
    fn starts_are_over_before_the_window() {
        let (trip, rate_bytes_per_s, segment) = (0.05, 125e6, 1448.0_f64);
        let full: f64 = trip * rate_bytes_per_s / segment;
        let rounds_of = |growth: f64| (full / 10.0).ln() / growth.ln();
        let length =
            WarmUp::RoundTrips.length(Nanos::from_ms(150), Some(Nanos::from_ms(50)), Nanos(0));
        let rounds = length.as_s() / trip;
        // Slow start; where acknowledgements are stretched; bbr, with three rounds to notice that the
        // rate does not grow and as many to empty the queue.
        assert!(rounds_of(2.0) < rounds);
        assert!(rounds_of(1.5) < rounds);
        assert!(rounds_of(2.0) + 6.0 < rounds);
    }
}
