//! Others on the path and on the CPUs: who has what the flows do not get.

use linerate_analyze::analyze;
use linerate_model::finding::{Finding, FindingKind, TrustLevel};
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::unit::Bytes;
use linerate_model::workload::Traffic;

use crate::builder::{MadeRun, Truth, rr, stream};

const MS: i64 = 1_000_000;

fn run(truth: &Truth) -> MadeRun {
    let mut run = MadeRun::new(1, None);
    run.experiment("one", None, stream());
    run.cell(&[], std::slice::from_ref(truth));
    run
}

fn limiter_of(run: &MadeRun) -> Option<(Limiter, Finding)> {
    let mut findings = analyze(&run.recording).findings.into_iter();
    findings.find_map(|finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some((limiter, finding)),
        _ => None,
    })
}

#[track_caller]
fn named(truth: &Truth, expected: Limiter, words: &[&str]) {
    let (limiter, finding) =
        limiter_of(&run(truth)).unwrap_or_else(|| panic!("nothing is named: {truth:?}"));
    let text = format!("{} {}", finding.claim, finding.explanation);
    assert_eq!(limiter, expected, "{text}");
    for word in words {
        assert!(
            text.contains(word),
            "\u{201c}{word}\u{201d} is not in: {text}"
        );
    }
}

#[track_caller]
fn silent(truth: &Truth) {
    let claim = limiter_of(&run(truth)).map(|(limiter, finding)| (limiter, finding.claim));
    assert_eq!(claim, None, "{truth:?}");
}

/// One flow of nine over a full path of 155 Mbit/s: it loses as if by chance, and its shortest round trip holds the queue of
/// the others.
fn one_of_nine() -> Truth {
    Truth {
        lost_share: 0.004,
        swings: Some((0.2, 0.01)),
        variation: 0.25,
        unsent_bytes: Some(400_000),
        beside_bps: Some(137e6),
        others_fill: true,
        ..Truth::sending(11.6e6, 21 * MS, 18 * MS)
    }
}

#[test]
fn a_path_that_others_fill_as_well_is_full_whatever_the_own_losses_look_like() {
    let shared = one_of_nine();
    let words = [
        "path is full: 11.6 Mbit/s",
        "other traffic has the rest of the 149 Mbit/s",
    ];
    named(&shared, Limiter::PathRate, &words);
    let shared = run(&shared);
    let single = crate::as_single(&shared.recording);
    let next = single.next.unwrap_or_default();
    assert!(next.contains("stop the other traffic"), "{next}");
    // What a tenth of a line carries is no line of its own, even where the number is that of one.
    let truth = Truth {
        throughput_bps: 9.5e6,
        ..one_of_nine()
    };
    let (_, finding) = limiter_of(&run(&truth)).expect("the path is full");
    assert!(!finding.claim.contains("Ethernet"), "{}", finding.claim);
    // The same beside a few percent of others is random loss.
    let alone = Truth {
        beside_bps: Some(0.1e6),
        others_fill: false,
        ..one_of_nine()
    };
    named(
        &alone,
        Limiter::CongestionWindow,
        &["which loss keeps small"],
    );
}

#[test]
fn others_that_do_not_take_what_is_left_fill_no_path() {
    // They are as they are while the flow varies: nothing is full, and the round trip may still hold their queue.
    silent(&Truth {
        others_fill: false,
        ..one_of_nine()
    });
    // A quarter of them are others', of which a fifth is too few for a queue that never empties.
    let few = Truth {
        others_fill: false,
        beside_bps: Some(2e6),
        ..one_of_nine()
    };
    named(&few, Limiter::CongestionWindow, &[]);
    // Where the flow is as steady as all that passes, nothing shows that it has what others leave.
    let steady = Truth {
        variation: 0.02,
        ..one_of_nine()
    };
    let claim = limiter_of(&run(&steady)).map(|(_, finding)| finding.claim);
    let is_shared = claim
        .as_ref()
        .is_some_and(|claim| claim.contains("other traffic"));
    assert!(!is_shared, "{claim:?}");
}

#[test]
fn traffic_against_the_flows_is_told_where_acks_wait_for_it() {
    let waiting = |against_bps| Truth {
        swings: None,
        variation: 0.14,
        unsent_bytes: Some(400_000),
        on_its_way_bytes: Some(66_000),
        against_bps: Some(against_bps),
        ..Truth::sending(40e6, 59 * MS, 40 * MS)
    };
    let trust_and_next = |against_bps: f64| {
        let run = run(&waiting(against_bps));
        let single = crate::as_single(&run.recording);
        let reasons = single.trust.reasons.join("; ");
        (single.trust.level, reasons, single.next.unwrap_or_default())
    };
    let (level, reasons, next) = trust_and_next(22e6);
    assert_eq!(level, TrustLevel::Limited);
    assert!(reasons.contains("what eth0 of server sent"), "{reasons}");
    assert!(next.contains("stop the other traffic"), "{next}");
    // A tenth of what the flows carry is a download of next to nothing, and ACKs alone are nobody's traffic.
    for little in [4e6, 0.0] {
        let (level, reasons, next) = trust_and_next(little);
        assert_eq!(level, TrustLevel::Good, "{reasons}");
        assert!(!next.contains("other traffic"), "{next}");
    }
}

#[test]
fn traffic_of_others_is_told_of_datagrams_as_well() {
    let told = |beside_bps: f64| {
        let mut workload = stream();
        workload.manner.transport = Transport::Udp;
        if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
            *message_bytes = Bytes(1400);
        }
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, workload);
        let truth = Truth {
            beside_bps: Some(beside_bps),
            ..Truth::stream(25e6)
        };
        run.cell(&[], &[truth]);
        let single = crate::as_single(&run.recording);
        let flags = single.trials[0].flags.iter().map(ToString::to_string);
        flags
            .filter(|flag| flag.contains("neither the flows'"))
            .count()
    };
    assert_eq!(told(20e6), 1);
    assert_eq!(told(0.2e6), 0);
}

/// Two programs that never rest on both CPUs of one machine that has both ends: the flow's workers wait for them, and with
/// them all that the kernel does for the flow.
fn between_hogs() -> Truth {
    Truth {
        cpus: 2.0,
        others_cpus: 0.84,
        others_kernel_cpus: 0.84,
        worker_share: 0.38,
        worker_wait_share: 0.35,
        busy_share: 0.67,
        unsent_bytes: Some(200_000),
        unacked: 100,
        window_bytes: 3 << 20,
        variation: 0.08,
        rtt_ns: 140_000,
        min_rtt_ns: Some(4000),
        throttled: Some(0.0),
        congestion: Some("cubic"),
        ..Truth::stream(34e9)
    }
}

#[test]
fn workers_between_programs_that_fill_all_cpus_are_missed() {
    let words = ["Other programs have the CPUs", "ran 38 % of the time"];
    named(&between_hogs(), Limiter::OtherPrograms, &words);
    // Others that leave CPU time, a worker that hardly waits, a sender that has always something outstanding, and a path with
    // a queue: there nobody is known to miss the sender.
    let neighbours = [
        Truth {
            cpus: 1.7,
            others_cpus: 0.7,
            others_kernel_cpus: 0.7,
            ..between_hogs()
        },
        Truth {
            worker_share: 0.6,
            worker_wait_share: 0.13,
            ..between_hogs()
        },
        Truth {
            busy_share: 1.0,
            ..between_hogs()
        },
        // A quota would not be seen.
        Truth {
            throttled: None,
            ..between_hogs()
        },
        Truth {
            rtt_ns: 10 * MS,
            ..between_hogs()
        },
    ];
    for neighbour in neighbours {
        let limiter = limiter_of(&run(&neighbour)).map(|(limiter, _)| limiter);
        assert_ne!(limiter, Some(Limiter::OtherPrograms), "{neighbour:?}");
    }
    // A rate that was asked for pauses by itself.
    let mut paced = MadeRun::new(1, None);
    let mut workload = stream();
    workload.manner.rate_bps = Some(40_000_000_000);
    paced.experiment("one", None, workload);
    paced.cell(&[], &[between_hogs()]);
    let limiter = limiter_of(&paced).map(|(limiter, _)| limiter);
    assert_ne!(limiter, Some(Limiter::OtherPrograms));
}

/// A study whose identical trials differ by far says who took the CPUs meanwhile.
#[test]
fn a_study_that_is_not_to_be_used_says_who_took_cpu_time() {
    let reasons = |others_cpus: f64| {
        let mut run = MadeRun::new(1, None);
        run.recording.document.study = true;
        run.experiment("latency", Some(1), rr(4));
        let truth = |ns: u64| Truth {
            cpus: 1.8,
            others_cpus,
            ..Truth::transactions(ns)
        };
        run.cell(&[], &[50_000, 150_000, 400_000].map(truth));
        let trust = analyze(&run.recording).trust.expect("a judgement");
        assert_eq!(trust.level, TrustLevel::DoNotUse);
        trust.reasons
    };
    let disturbed = reasons(0.85);
    assert!(
        disturbed[0].starts_with("identical trials differ"),
        "{disturbed:?}"
    );
    assert!(
        disturbed[1].starts_with("others took CPU time"),
        "{disturbed:?}"
    );
    assert_eq!(reasons(0.0).len(), 1);
}
