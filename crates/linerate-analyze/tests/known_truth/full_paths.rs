//! Full paths that the share of the time with a queue does not show, and what looks like them: how steady a rate is
//! tells a line, unless a window, a pace, a program or chance makes it.

use linerate_analyze::analyze;
use linerate_analyze::reduce::{name, outcomes};
use linerate_model::BitsPerSec;
use linerate_model::finding::{Finding, FindingKind};
use linerate_model::limiter::Limiter;
use linerate_model::reason::Reason;
use linerate_model::workload::{Direction, FlowOptions, Workload};

use crate::builder::{MadeRun, Truth, stream};

const MS: i64 = 1_000_000;

fn run(workload: Workload, truth: &Truth) -> MadeRun {
    let mut run = MadeRun::new(1, None);
    run.experiment("one", None, workload);
    run.cell(&[], &[truth.clone(), truth.clone(), truth.clone()]);
    run
}

/// What is named, the load generator, which is a caution, among it.
fn limiter_of(run: &MadeRun) -> Option<(Limiter, Finding)> {
    let analysis = analyze(&run.recording);
    let mut all = analysis.findings.into_iter().chain(analysis.cautions);
    all.find_map(|finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some((limiter, finding)),
        _ => None,
    })
}

/// Asserts what is named in a recording of `truth`, and that claim and explanation say `words`.
#[track_caller]
fn check(workload: Workload, truth: &Truth, expected: Option<Limiter>, words: &[&str]) {
    let found = limiter_of(&run(workload, truth));
    let claim = found.as_ref().map(|(_, finding)| &finding.claim);
    assert_eq!(
        found.as_ref().map(|(limiter, _)| *limiter),
        expected,
        "{claim:?}: {truth:?}"
    );
    let text = found.map_or(String::new(), |(_, finding)| {
        format!("{} {}", finding.claim, finding.explanation)
    });
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

fn flows(connections: u32) -> Workload {
    Workload {
        connections,
        ..stream()
    }
}

/// 148 Mbit/s over 70 ms, before which 5 ms wait: less than a fifth of the round trip.
fn short_queue() -> Truth {
    let truth = Truth::sending(148e6, 75 * MS, 70 * MS);
    Truth {
        cwnd: 2 * truth.unacked,
        variation: 0.005,
        ..truth
    }
}

#[test]
fn a_rate_as_steady_as_a_lines_shows_a_queue_that_is_short_beside_the_round_trip() {
    let full = Some(Limiter::PathRate);
    let words = ["(5 ms) wait", "the rate is as steady as a line's."];
    check(stream(), &short_queue(), full, &words);
    // A window that is filled and loses, as steady.
    let losing = Truth {
        cwnd: short_queue().unacked + 1,
        lost_share: 0.001,
        ..short_queue()
    };
    let words = ["per trial were lost.", "or as a policer's that flows share"];
    check(stream(), &losing, full, &words);
    // One that is filled and grows by 4 %, and makes nothing but the round trip longer.
    let growing = Truth {
        lost_share: 0.0,
        swings: Some((0.02, 0.95)),
        ..losing.clone()
    };
    check(stream(), &growing, full, &["The queue is short against"]);
    // The same where it does not grow: a clamped window over a way that became longer is as steady.
    let clamped = Truth {
        swings: None,
        ..growing
    };
    check(stream(), &clamped, None, &[]);
    // Nor is one loss by chance a line's doing: of some 6400 segments.
    let unlucky = Truth {
        lost_share: 1.0 / 12_000.0,
        ..clamped
    };
    check(stream(), &unlucky, None, &[]);
    // What the kernel was asked to pace is as steady, with as much room.
    let asked = Workload {
        options: FlowOptions {
            pacing_bps: Some(160_000_000),
            ..stream().options
        },
        ..stream()
    };
    check(asked, &short_queue(), Some(Limiter::Pacing), &[]);
    // An algorithm that paces, at a full path with a few segments before it.
    let paced = Truth {
        congestion: Some("bbr"),
        pacing_bps: Some(150e6),
        variation: 0.015,
        lost_share: 0.02,
        ..short_queue()
    };
    check(stream(), &paced, full, &[]);
    // At the shortest round trip, its own pace, or a policer, is all that is known.
    let policed = Truth {
        rtt_ns: 70 * MS + MS / 2,
        ..paced
    };
    let found = limiter_of(&run(stream(), &policed));
    let limiter = found.map(|(limiter, _)| limiter);
    assert_ne!(limiter, full);
}

#[test]
fn what_else_is_as_steady_is_no_line() {
    // The receiver's window holds the sender.
    let window = Truth {
        rwnd_share: 1.0,
        window_bytes: (148e6 * 0.075 / 8.0) as i64,
        ..short_queue()
    };
    check(stream(), &window, Some(Limiter::ReceiverWindow), &[]);
    // The send buffer holds it, or a program that writes at a rate.
    let buffer = Truth {
        sndbuf_share: 0.3,
        unsent_bytes: Some(0),
        ..short_queue()
    };
    check(stream(), &buffer, None, &[]);
    let writer = Truth {
        unsent_bytes: Some(0),
        ..short_queue()
    };
    check(stream(), &writer, None, &[]);
    // A rate that varies as radio makes it.
    let radio = Truth {
        variation: 0.06,
        ..short_queue()
    };
    check(stream(), &radio, None, &[]);
    // Many flows that lose by chance make a steady sum, which ten do not.
    let random = Truth {
        variation: 0.02,
        lost_share: 0.01,
        ..short_queue()
    };
    check(flows(100), &random, None, &[]);
    check(flows(10), &random, Some(Limiter::PathRate), &[]);
}

#[test]
fn a_slope_that_the_flight_alone_would_not_show_is_known_where_the_round_trip_goes_with_it() {
    let of = |elasticity| {
        let truth = Truth {
            swings: Some((0.02, elasticity)),
            ..short_queue()
        };
        outcomes(&run(stream(), &truth).recording)[0].value(name::RTT_ELASTICITY)
    };
    let known = of(0.9).expect("both vary together");
    assert!((known - 0.9).abs() < 0.02, "{known}");
    // Flight that is counted in bursts.
    assert_eq!(of(0.0), None);
}

/// A queue of 30 ms before a path whose rate is 0.4 times as much in the second half.
fn changing() -> Truth {
    Truth {
        halves: 0.4,
        swings: Some((0.03, 1.0)),
        lost_share: 0.001,
        ..Truth::sending(60e6, 40 * MS, 10 * MS)
    }
}

#[test]
fn a_path_whose_rate_changes_is_full_all_the_time() {
    let words = ["at a rate that changed", "on average", "ms) wait before it"];
    check(stream(), &changing(), Some(Limiter::PathRate), &words);
    // A way that becomes longer: the round trip is as steady as the rate.
    let longer = Truth {
        swings: None,
        ..changing()
    };
    check(stream(), &longer, None, &[]);
    // A way that takes as long as it likes: the rate varies as much, from reading to reading.
    let radio = Truth {
        variation: 0.3,
        ..changing()
    };
    check(stream(), &radio, None, &[]);
    // A window that held the sender.
    let held = Truth {
        rwnd_share: 0.4,
        ..changing()
    };
    check(stream(), &held, None, &[]);
}

#[test]
fn a_busy_worker_that_is_not_missed_behind_a_full_path_is_not_the_limit() {
    // 16 ms wait before 832 Mbit/s, of which 2 MB are unsent; the worker's CPU takes packets in, too.
    let full = Truth {
        variation: 0.015,
        swings: Some((0.1, 0.5)),
        worker_share: 0.75,
        worker_wait_share: 0.24,
        lost_share: 0.0003,
        ..Truth::sending(832e6, 16 * MS, MS / 50)
    };
    check(stream(), &full, Some(Limiter::PathRate), &["wait before"]);
    let generator = Some(Limiter::Generator);
    // What packets wait for CPUs does not go with what is in flight.
    let cpus = Truth {
        swings: Some((0.1, 0.05)),
        ..full.clone()
    };
    check(stream(), &cpus, generator, &[]);
    // Nothing is left to send: the writer is late.
    let late = Truth {
        unsent_bytes: Some(0),
        ..full.clone()
    };
    check(stream(), &late, generator, &[]);
    // A rate that varies as no line's.
    let uneven = Truth {
        variation: 0.05,
        ..full
    };
    check(stream(), &uneven, generator, &[]);
}

#[test]
fn a_reader_that_pauses_again_and_again_is_told_from_a_small_window() {
    // 168 kB in 10 ms are 134 Mbit/s, and 76 come: the reader was stopped half of the time.
    let stopped = Truth {
        rwnd_share: 1.0,
        window_bytes: 168_000,
        offered_bytes: Some(185_000),
        unacked: 116,
        cwnd: 259,
        variation: 0.26,
        unread_bytes: 20_000,
        delivery_bps: Some(142e6),
        ..Truth::sending(76e6, 11 * MS, 10 * MS)
    };
    let words = [
        "held the sender 100 % of the time",
        "delivered at 142 Mbit/s",
    ];
    check(stream(), &stopped, Some(Limiter::SlowReader), &words);
    // The window of a proxy is not this reader's.
    let proxy = Truth {
        offered_bytes: Some(1 << 20),
        ..stopped.clone()
    };
    check(stream(), &proxy, None, &[]);
    // A path that pauses makes round trips longer.
    let path = Truth {
        rtt_ns: 25 * MS,
        ..stopped.clone()
    };
    let found = limiter_of(&run(stream(), &path));
    assert_ne!(found.map(|(limiter, _)| limiter), Some(Limiter::SlowReader));
    // The whole window comes in each round trip.
    let small = Truth {
        throughput_bps: 128e6,
        delivery_bps: Some(142e6),
        variation: 0.03,
        ..stopped
    };
    check(stream(), &small, Some(Limiter::ReceiverWindow), &[]);
}

/// A link of 20 Mbit/s to the client and 5 Mbit/s from it: each way is full at its own rate, and what is more than
/// that was not measured, although the other way may carry it.
#[test]
fn each_way_of_a_link_is_full_at_its_own_rate() {
    let check = |direction: Direction, full_at: f64| {
        let run = |bps: f64| {
            let mut run = MadeRun::new(1, Some(1e9));
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
        assert_ne!(
            limiter(0.9 * full_at),
            Some(Limiter::LinkRate),
            "{direction:?}"
        );
        let reason = |bps: f64| {
            let outcomes = outcomes(&run(bps).recording);
            outcomes[0].validity.reason().cloned()
        };
        assert_eq!(reason(full_at), None, "{direction:?}");
        let beyond = reason(1.5 * full_at);
        let Some(Reason::Beyond { ceiling, .. }) = beyond else {
            panic!("{direction:?}: {beyond:?}");
        };
        assert_eq!(
            (ceiling.link, ceiling.direction),
            (BitsPerSec(full_at), direction)
        );
    };
    check(Direction::ToServer, 5e6);
    check(Direction::FromServer, 20e6);
}
