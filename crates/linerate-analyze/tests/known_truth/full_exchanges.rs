//! Exchanges that wait for something which more of them at a time do not take away.

use linerate_model::Bytes;
use linerate_model::finding::FindingKind;
use linerate_model::limiter::Limiter;
use linerate_model::manner::{Transport, WaitBy};
use linerate_model::metric::Metric;
use linerate_model::run::{Control, HostPart, Recording};
use linerate_model::sample::TrialSample;
use linerate_model::workload::{Traffic, Workload};

use crate::as_single;
use crate::builder::{MadeRun, Truth, WINDOW_NS, rr};

/// What is said of one trial: the limiter with its claim, and what to do next.
struct Said {
    limiter: Option<(Limiter, String)>,
    next: String,
}

fn recorded(workload: Workload, truth: &Truth) -> Recording {
    let mut run = MadeRun::new(1, None);
    run.experiment("one", None, workload);
    run.cell(&[], std::slice::from_ref(truth));
    run.recording
}

fn said(recording: &Recording) -> Said {
    let single = as_single(recording);
    let limiter = single.findings.iter().chain(&single.cautions);
    let limiter = limiter.filter_map(|finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some((limiter, finding.claim.clone())),
        _ => None,
    });
    Said {
        limiter: limiter.into_iter().next(),
        next: single.next.clone().unwrap_or_default(),
    }
}

#[track_caller]
fn check(recording: &Recording, expected: Limiter, claim: &str, next: &str) {
    let said = said(recording);
    let Some((limiter, words)) = &said.limiter else {
        panic!("there is a limiter");
    };
    assert_eq!(*limiter, expected, "{words}");
    assert!(words.contains(claim), "{words}");
    assert!(said.next.contains(next), "{}", said.next);
}

/// Transactions of `connections` that always have one under way, as long as each of `trips_ns` has its part of them: CPUs
/// have time.
fn under_way(connections: u32, trips_ns: &[u64]) -> Truth {
    let mean_ns = trips_ns.iter().sum::<u64>() as f64 / trips_ns.len() as f64;
    let each = f64::from(connections) * WINDOW_NS as f64 / mean_ns / trips_ns.len() as f64;
    Truth {
        latency: trips_ns.iter().map(|ns| (*ns, each as u64)).collect(),
        rtt_ns: mean_ns as i64,
        min_rtt_ns: Some(10_000),
        delayed_acks: Some(0.0),
        timeouts: Some(0.0),
        cpus: 0.1,
        worker_share: 0.02,
        worker_wait_share: 0.001,
        ..Truth::usual()
    }
}

fn connected(connections: u32) -> Workload {
    Workload {
        connections,
        ..rr(200)
    }
}

#[test]
fn exchanges_that_fill_a_path_are_told_by_a_queue_that_is_never_empty() {
    let full = under_way(40, &[1_500_000, 1_510_000, 1_520_000]);
    check(
        &recorded(connected(40), &full),
        Limiter::PathRate,
        // 266 B of a frame as queueing disciplines count it.
        "500/s of these exchanges (56.4 Mbit/s with headers, one way) pass it, and 40 of 40",
        "`-P 20`: where the rate stays, the path is full",
    );
    // The rate is another in the second half: something else passes.
    let mut changes = recorded(connected(40), &full);
    let samples = std::mem::take(&mut changes.samples);
    let changed = samples.iter().map(|sample| match sample.metric {
        Metric::AppTransactions if sample.at_ns > WINDOW_NS as i64 / 2 => TrialSample {
            value: sample.value + 40,
            ..sample
        },
        _ => sample,
    });
    changes.samples = changed.collect();
    check(
        &changes,
        Limiter::RoundTrip,
        "A queue on the path",
        "where the rate stays, the path or the server carries no more",
    );
}

#[test]
fn what_waits_on_no_full_path_is_not_taken_for_one() {
    let neighbours = [
        // Delay that varies by itself, from next to nothing on.
        (
            40,
            under_way(40, &[100_000, 800_000, 1_500_000, 2_200_000, 2_900_000]),
        ),
        // One flow in ten goes another way, which is short.
        (
            10,
            under_way(10, &[500_000, 2_000_000, 2_000_000, 2_000_000, 2_000_000]),
        ),
        // Too few to be what waits.
        (2, under_way(2, &[1_500_000])),
        (1, under_way(1, &[1_500_000])),
    ];
    for (connections, truth) in neighbours {
        let said = said(&recorded(connected(connections), &truth));
        let (limiter, claim) = said.limiter.expect("the round trip is split");
        assert_eq!(limiter, Limiter::RoundTrip, "{claim}");
        assert!(!said.next.contains("in flight"), "{}", said.next);
    }
    // The path is long, and hardly longer under load.
    let far = Truth {
        min_rtt_ns: Some(1_200_000),
        ..under_way(40, &[2_000_000])
    };
    let limiter = said(&recorded(connected(40), &far)).limiter;
    assert_eq!(limiter.map(|one| one.0), Some(Limiter::RoundTrip));
    // The queue is before a worker that has no time left, or before CPUs that tasks wait for.
    let full = under_way(40, &[1_500_000]);
    let saturated = Truth {
        worker_share: 0.97,
        cpus: 1.0,
        ..full.clone()
    };
    let pressed = Truth {
        pressure_share: Some(0.8),
        ..full
    };
    for truth in [saturated, pressed] {
        let limiter = said(&recorded(connected(40), &truth))
            .limiter
            .map(|one| one.0);
        assert_ne!(limiter, Some(Limiter::PathRate));
    }
}

#[test]
fn a_rest_behind_a_queue_is_not_the_application() {
    // 320 requests fill a path; of what waits TCP sends some again, and its round trip is a part of the whole.
    let behind = |rtt_ns: i64| {
        let truth = Truth {
            rtt_ns,
            ..under_way(320, &[26_200_000])
        };
        let limiter = said(&recorded(connected(320), &truth)).limiter;
        limiter.map(|one| one.0)
    };
    assert_eq!(behind(12_600_000), Some(Limiter::RoundTrip));
    assert_eq!(behind(200_000), Some(Limiter::Application));
}

#[test]
fn one_request_behind_a_queue_is_not_told_to_bring_many() {
    check(
        &recorded(connected(1), &under_way(1, &[15_000_000])),
        Limiter::RoundTrip,
        "A queue on the path",
        "`-P 2`",
    );
    // Nothing waits: more at a time use the path.
    let far = Truth {
        min_rtt_ns: Some(14_900_000),
        ..under_way(1, &[15_000_000])
    };
    check(
        &recorded(connected(1), &far),
        Limiter::RoundTrip,
        "The path",
        "in flight: `--in-flight 8`",
    );
}

#[test]
fn losses_of_one_instant_explain_no_rate() {
    let mut large = connected(1);
    if let Traffic::Rr { request_bytes, .. } = &mut large.traffic {
        *request_bytes = Bytes(1 << 20);
    }
    // 13 messages in a second, and one segment in a thousand is lost: seven in all.
    let lost = |parts: &[f64]| Truth {
        min_rtt_ns: Some(20_000_000),
        rtt_ns: 20_400_000,
        lost_share: 0.001,
        loss_parts: parts.to_vec(),
        ..under_way(1, &[76_900_000])
    };
    let at_once = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let throughout = [1.0; 11];
    let over_a_path_that_loses = |parts: &[f64]| {
        let said = said(&recorded(large.clone(), &lost(parts)));
        let (_, claim) = said.limiter.expect("the round trip is split");
        assert!(
            claim.starts_with("Carrying messages of this size"),
            "{claim}"
        );
        claim.contains("over a path that loses segments")
    };
    assert!(over_a_path_that_loses(&throughout));
    assert!(!over_a_path_that_loses(&at_once));
}

#[test]
fn nagle_holds_small_messages_of_which_several_are_under_way() {
    let several = |nagle: Option<bool>, bytes: u64, mean_ns: u64| {
        let mut workload = rr(bytes);
        workload.manner.in_flight = 8;
        workload.options.nagle = nagle;
        let truth = Truth {
            rtt_ns: 12_100_000,
            min_rtt_ns: Some(12_000_000),
            ..under_way(8, &[mean_ns])
        };
        recorded(workload, &truth)
    };
    check(
        &several(None, 300, 36_500_000),
        Limiter::RoundTrip,
        "three times TCP's shortest, twice for what Nagle's algorithm holds",
        "`-N`",
    );
    // With it off one round trip is enough, and more at a time help.
    check(
        &several(Some(false), 300, 12_300_000),
        Limiter::RoundTrip,
        "12 ms of path (TCP's shortest)",
        "`--in-flight 64`",
    );
    // Off, of full segments, or where it is not three, something else waits.
    for other in [
        several(Some(false), 300, 36_500_000),
        several(None, 3000, 36_500_000),
        several(None, 300, 29_000_000),
    ] {
        assert!(said(&other).limiter.is_none());
    }
}

#[test]
fn a_piece_that_nagle_holds_is_let_go_by_its_option() {
    let mut split = connected(1);
    if let Traffic::Rr { request_writes, .. } = &mut split.traffic {
        *request_writes = 4;
    }
    let held = Truth {
        rtt_ns: 8_200_000,
        min_rtt_ns: Some(8_000_000),
        ..under_way(1, &[16_500_000])
    };
    let recording = recorded(split, &held);
    check(
        &recording,
        Limiter::RoundTrip,
        "once for what Nagle",
        "`-N`",
    );
}

#[test]
fn a_worker_that_spins_for_one_request_is_not_saturated() {
    let spins = |connections: u32| {
        let mut workload = connected(connections);
        workload.manner.wait = WaitBy::Spin;
        let truth = Truth {
            rtt_ns: 5000,
            min_rtt_ns: Some(4000),
            worker_share: 0.99,
            cpus: 1.0,
            ..under_way(connections, &[7000])
        };
        recorded(workload, &truth)
    };
    let single = spins(1);
    check(
        &single,
        Limiter::RoundTrip,
        "a mean round trip of 7 µs is 4 µs in both kernels (TCP's shortest)",
        "",
    );
    assert!(as_single(&single).trials[0].flags.is_empty());
    // Of many it may be what limits them.
    let many = spins(64);
    assert!(!as_single(&many).trials[0].flags.is_empty());
}

#[test]
fn datagrams_take_the_path_that_the_control_connection_sees() {
    let exchanged = |exchange_ns: u64, control: Control| {
        let mut workload = connected(1);
        workload.manner.transport = Transport::Udp;
        let mut recording = recorded(workload, &under_way(1, &[20_500_000]));
        for host in &mut recording.document.hosts {
            match host.part {
                HostPart::Server => host.clock.uncertainty_ns = exchange_ns / 2,
                HostPart::Client => host.control = Some(control),
            }
        }
        let samples = std::mem::take(&mut recording.samples);
        let is_udp = |sample: &TrialSample| !sample.metric.name().starts_with("tcp_");
        recording.samples = samples.iter().filter(is_udp).collect();
        recording
    };
    let here = Control::InProcess;
    let of_path = "The path limits the rate to 48/s";
    check(
        &exchanged(20_100_000, here),
        Limiter::RoundTrip,
        of_path,
        "",
    );
    // The host is near, or who controls is somewhere else.
    let unknown = "that none of this explains";
    check(&exchanged(100_000, here), Limiter::RoundTrip, unknown, "");
    let elsewhere = exchanged(20_100_000, Control::Tls);
    check(&elsewhere, Limiter::RoundTrip, unknown, "");
}
