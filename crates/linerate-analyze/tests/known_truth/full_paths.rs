//! Full paths that the share of the time with a queue does not show, and what looks like them: how steady a rate is
//! tells a line, unless a window, a pace, a program or chance makes it.

use crate::prelude::*;

fn flows(connections: u32) -> Workload {
    like!(stream(); connections)
}

/// 148 Mbit/s over 70 ms, before which 5 ms wait: less than a fifth of the round trip.
fn short_queue() -> Truth {
    let truth = Truth::sending(148e6, 75 * MS, 70 * MS);
    like!(truth; cwnd: 2 * truth.unacked, variation: 0.005)
}

#[test]
fn a_rate_as_steady_as_a_lines_shows_a_queue_that_is_short_beside_the_round_trip() {
    let losing = like!(short_queue(); cwnd: short_queue().unacked + 1, lost_share: 0.001);
    let growing = like!(losing; lost_share: 0.0, swings: Some((0.02, 0.95)));
    let clamped = like!(growing; swings: None);
    let paced = like!(short_queue(); congestion: Some("bbr"), pacing_bps: Some(150e6), variation: 0.015,
        lost_share: 0.02);
    worlds! {
        PathRate: short_queue(), "(5 ms) wait", "the rate is as steady as a line's.";
        /// A window that is filled and loses, as steady.
        PathRate: &losing, "per trial were lost.", "or as a policer's that flows share";
        /// One that is filled and grows by 4 %, and makes nothing but the round trip longer.
        PathRate: &growing, "The queue is short against";
        /// The same where it does not grow: a clamped window over a way that became longer is as steady.
        none: &clamped;
        /// Nor is one loss by chance a line's doing: of some 6400 segments.
        none: like!(clamped; lost_share: 1.0 / 12_000.0);
        /// What the kernel was asked to pace is as steady, with as much room.
        Pacing: (like!(stream(); options.pacing_bps: Some(160_000_000)), short_queue());
        /// An algorithm that paces, at a full path with a few segments before it.
        PathRate: &paced;
        /// At the shortest round trip, its own pace, or a policer, is all that is known.
        not PathRate: like!(paced; rtt_ns: 70 * MS + MS / 2);
    }
}

#[test]
fn what_else_is_as_steady_or_as_full_is_no_line() {
    let random = like!(short_queue(); variation: 0.02, lost_share: 0.01);
    let changing = like!(Truth::sending(60e6, 40 * MS, 10 * MS); halves: 0.4, swings: Some((0.03, 1.0)),
        lost_share: 0.001);
    let full = like!(Truth::sending(832e6, 16 * MS, MS / 50); variation: 0.015, swings: Some((0.1, 0.5)),
        worker_share: 0.75, worker_wait_share: 0.24, lost_share: 0.0003);
    let stopped = like!(Truth::sending(76e6, 11 * MS, 10 * MS); rwnd_share: 1.0, window_bytes: 168_000,
        offered_bytes: Some(185_000), unacked: 116, cwnd: 259, variation: 0.26, unread_bytes: 20_000,
        delivery_bps: Some(142e6));
    worlds! {
        // What else is as steady is no line.
        /// The receiver's window holds the sender.
        ReceiverWindow: like!(short_queue(); rwnd_share: 1.0, window_bytes: (148e6 * 0.075 / 8.0) as i64);
        /// The send buffer holds it, or a program that writes at a rate.
        none: like!(short_queue(); sndbuf_share: 0.3, unsent_bytes: Some(0));
        none: like!(short_queue(); unsent_bytes: Some(0));
        /// A rate that varies as radio makes it.
        none: like!(short_queue(); variation: 0.06);
        /// Many flows that lose by chance make a steady sum, which ten do not.
        none: (flows(100), &random);
        PathRate: (flows(10), &random);

        // A path whose rate changes is full all the time.
        /// A queue of 30 ms before a path whose rate is 0.4 times as much in the second half.
        PathRate: &changing, "at a rate that changed", "on average", "ms) wait before it";
        /// A way that becomes longer: the round trip is as steady as the rate.
        none: like!(changing; swings: None);
        /// A way that takes as long as it likes: the rate varies as much, from reading to reading.
        none: like!(changing; variation: 0.3);
        /// A window that held the sender.
        none: like!(changing; rwnd_share: 0.4);

        // A busy worker that is not missed behind a full path is not the limit.
        /// 16 ms wait before 832 Mbit/s, of which 2 MB are unsent; the worker's CPU takes packets in, too.
        PathRate: &full, "wait before";
        /// What packets wait for CPUs does not go with what is in flight.
        Generator: like!(full; swings: Some((0.1, 0.05)));
        /// Nothing is left to send: the writer is late.
        Generator: like!(full; unsent_bytes: Some(0));
        /// A rate that varies as no line's.
        Generator: like!(full; variation: 0.05);

        // A reader that pauses again and again is told from a small window.
        /// 168 kB in 10 ms are 134 Mbit/s, and 76 come: the reader was stopped half of the time.
        SlowReader: &stopped, "held the sender 100 % of the time", "delivered at 142 Mbit/s";
        /// The window of a proxy is not this reader's.
        none: like!(stopped; offered_bytes: Some(1 << 20));
        /// A path that pauses makes round trips longer.
        not SlowReader: like!(stopped; rtt_ns: 25 * MS);
        /// The whole window comes in each round trip.
        ReceiverWindow: like!(stopped; throughput_bps: 128e6, delivery_bps: Some(142e6), variation: 0.03);

    }
}

#[test]
fn a_slope_that_the_flight_alone_would_not_show_is_known_where_the_round_trip_goes_with_it() {
    let of = |elasticity| {
        let truth = like!(short_queue(); swings: Some((0.02, elasticity)));
        outcomes(&run(stream(), &truth).recording)[0].value(name::RTT_ELASTICITY)
    };
    let known = of(0.9).expect("both vary together");
    assert!((known - 0.9).abs() < 0.02, "{known}");
    // Flight that is counted in bursts.
    assert_eq!(of(0.0), None);
}

/// A link of 20 Mbit/s to the client and 5 Mbit/s from it: each way is full at its own rate, and what is more than
/// that was not measured, although the other way may carry it.
#[test]
fn each_way_of_a_link_is_full_at_its_own_rate() {
    for (direction, full_at) in [(Direction::ToServer, 5e6), (Direction::FromServer, 20e6)] {
        let run = |bps: f64| {
            let mut run = MadeRun::new(1, GIGABIT);
            let client = &mut run.recording.document.hosts[1];
            client.link_rate = Some(BitsPerSec(20e6));
            client.link_up_rate = Some(BitsPerSec(5e6));
            run.experiment("one", None, Workload::stream(direction));
            let truth = Truth::sending(bps * 1448.0 / 1538.0, 100 * MS, 20 * MS);
            run.cell(&[], &[truth.clone(), truth.clone(), truth]);
            run
        };
        let limiter = |bps| limiter_of(&run(bps)).map(|(limiter, _)| limiter);
        assert_eq!(limiter(full_at), Some(Limiter::LinkRate), "{direction:?}");
        let below = limiter(0.9 * full_at);
        assert_ne!(below, Some(Limiter::LinkRate), "{direction:?}");
        let reason = |bps: f64| outcomes(&run(bps).recording)[0].validity.reason().cloned();
        assert_eq!(reason(full_at), None, "{direction:?}");
        let beyond = reason(1.5 * full_at);
        let Some(Reason::Beyond { ceiling, .. }) = beyond else {
            panic!("{direction:?}: {beyond:?}");
        };
        let of = (ceiling.link, ceiling.direction);
        assert_eq!(of, (BitsPerSec(full_at), direction));
    }
}
