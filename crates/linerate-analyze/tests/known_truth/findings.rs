//! Each finding where it must be and where it must not.

use linerate_analyze::analyze;
use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::{Finding, FindingKind, TrustLevel};
use linerate_model::flag::{Note, TrialFlag};
use linerate_model::limiter::Limiter;
use linerate_model::manner::{Transport, WaitBy};
use linerate_model::run::{Recording, ZeroCopyCount};
use linerate_model::sample::Subject;
use linerate_model::shortfall::{ConnectionCount, RequestCount};
use linerate_model::workload::{Traffic, Workload};
use linerate_model::{BitsPerSec, Bytes};

use crate::builder::{MadeRun, Truth, rr, size, stream, switches};
use crate::told;

fn limiters(recording: &Recording) -> Vec<Limiter> {
    let limiter = |finding: &Finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some(limiter),
        _ => None,
    };
    told(recording).iter().filter_map(limiter).collect()
}

#[track_caller]
fn check(workload: Workload, truth: Truth, expected: &[Limiter]) {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, workload);
    run.cell(&[], &[truth.clone(), truth.clone(), truth.clone()]);
    assert_eq!(limiters(&run.recording), expected, "{truth:?}");
}

#[test]
fn nothing_limits_an_idle_path() {
    check(stream(), Truth::usual(), &[]);
}

#[test]
fn a_full_link_is_named() {
    check(stream(), Truth::stream(941e6), &[Limiter::LinkRate]);
    check(stream(), Truth::stream(920e6), &[]);
    // A queue in front of a full link makes the window run out too; the link is the limiter.
    let queued = Truth {
        rwnd_share: 0.9,
        rtt_ns: 8_914_000,
        ..Truth::stream(941e6)
    };
    check(stream(), queued, &[Limiter::LinkRate]);
    // Frames with 100 B fill the link at 100 / 190 of its rate.
    let small = Truth {
        payload_bytes: 100.0,
        ..Truth::stream(525e6)
    };
    check(stream(), small, &[Limiter::LinkRate]);
}

#[test]
fn a_link_of_unknown_rate_is_never_full() {
    let mut run = MadeRun::new(1, None);
    run.experiment("one", None, stream());
    run.cell(&[], &[Truth::stream(941e6)]);
    assert_eq!(limiters(&run.recording), []);
}

#[test]
fn the_receivers_window_is_named() {
    // 16 KiB over 10 ms: 13.1 Mbit/s.
    let limited = Truth {
        window_bytes: 16_384,
        rtt_ns: 10_000_000,
        rwnd_share: 0.97,
        ..Truth::stream(12.5e6)
    };
    check(stream(), limited.clone(), &[Limiter::ReceiverWindow]);
    // As seen with buffers of 16 KiB at both ends and 5 ms each way: 14 segments fill the window,
    // and the kernel's clock runs for a third of the time.
    let full = Truth {
        window_bytes: 20_480,
        unacked: 14,
        rtt_ns: 10_453_762,
        rwnd_share: 0.316,
        sndbuf_share: 0.124,
        busy_share: 1.0,
        cwnd: 43,
        ..Truth::stream(14.857e6)
    };
    check(stream(), full.clone(), &[Limiter::ReceiverWindow]);
    check(stream(), Truth { unacked: 5, ..full }, &[]);
    // The arithmetic does not fit: something else makes the window run out.
    let elsewhere = Truth {
        throughput_bps: 5e6,
        ..limited.clone()
    };
    check(stream(), elsewhere, &[]);
    // The sender did not wait for the window.
    check(
        stream(),
        Truth {
            rwnd_share: 0.2,
            unacked: 5,
            ..limited.clone()
        },
        &[],
    );
    // A reader that cannot keep up shrinks the window; its worker is the limiter.
    let slow = Truth {
        worker_share: 0.99,
        ..limited
    };
    check(stream(), slow, &[Limiter::Generator]);
}

#[test]
fn an_algorithm_that_paces_itself_is_named() {
    // As seen on loopback with bbr, where cubic gets three times as much.
    let paced = Truth {
        pacing_bps: Some(405e6),
        congestion: Some("bbr"),
        busy_share: 0.97,
        ..Truth::stream(400e6)
    };
    check(stream(), paced.clone(), &[Limiter::Pacing]);
    let four = Workload {
        connections: 4,
        ..stream()
    };
    check(four, paced.clone(), &[Limiter::Pacing]);
    // Loss does not shrink its window, but may be what a path drops that is full.
    let lost = |share| Truth {
        lost_share: share,
        ..paced.clone()
    };
    check(stream(), lost(0.0001), &[Limiter::Pacing]);
    check(stream(), lost(0.01), &[]);
    // cubic reports a rate too, and nobody holds it to that.
    let cubic = Truth {
        congestion: Some("cubic"),
        ..paced.clone()
    };
    check(stream(), cubic, &[]);
    // The rate is that of an agent which allows no more, and bbr has no part in it.
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    run.cell(&[], &[paced.clone(), paced.clone(), paced.clone()]);
    for trial in &mut run.recording.trials {
        trial.flags.push(TrialFlag::Noted {
            host: "server".into(),
            note: Note::RateLimit(BitsPerSec(400e6)),
        });
    }
    assert_eq!(limiters(&run.recording), [Limiter::Pacing]);
    let claim = told(&run.recording).remove(0).claim;
    assert!(
        claim.starts_with("The agent's limit is what holds: 400"),
        "{claim}"
    );
    let next = crate::as_single(&run.recording).next;
    assert!(next.is_some_and(|words| words.contains("token")));
    // What was asked for is less than that: a token changes nothing.
    for trial in &mut run.recording.document.plan.trials {
        trial.workload.manner.rate_bps = Some(400_000_000);
    }
    let next = crate::as_single(&run.recording).next;
    assert!(next.is_some_and(|words| words.contains("omit the rate")));
    // It would allow twice as much, but sends in bursts, and nothing else holds it: 100 segments in
    // flight over 100 µs are 11.6 Gbit/s.
    let bursts = Truth {
        pacing_bps: Some(900e6),
        ..paced.clone()
    };
    check(stream(), bursts.clone(), &[Limiter::Pacing]);
    // The worker waited for a CPU, or the window may be what holds.
    let starved = Truth {
        worker_wait_share: 0.5,
        ..bursts.clone()
    };
    check(stream(), starved, &[]);
    let narrow = Truth {
        cwnd: 5,
        ..bursts.clone()
    };
    check(stream(), narrow, &[]);
    // It would allow four times as much.
    let roomy = Truth {
        pacing_bps: Some(1600e6),
        ..bursts
    };
    check(stream(), roomy, &[]);
    // The application had nothing to send for most of the time.
    let idle = Truth {
        busy_share: 0.3,
        ..paced.clone()
    };
    check(stream(), idle, &[]);
    // What else holds the sender is what bbr measures.
    let full = Truth {
        throughput_bps: 941e6,
        pacing_bps: Some(950e6),
        ..paced.clone()
    };
    check(stream(), full, &[Limiter::LinkRate]);
    let slow = Truth {
        worker_share: 0.99,
        ..paced.clone()
    };
    check(stream(), slow, &[Limiter::Generator]);
    let buffer = Truth {
        sndbuf_share: 0.8,
        ..paced
    };
    check(stream(), buffer, &[Limiter::SendBuffer]);
}

#[test]
fn a_saturated_worker_under_an_algorithm_that_paces_is_told_of_it() {
    let claim = |congestion| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        let slow = Truth {
            worker_share: 0.99,
            congestion: Some(congestion),
            ..Truth::stream(400e6)
        };
        run.cell(&[], &[slow.clone(), slow.clone(), slow]);
        let analysis = analyze(&run.recording);
        let found = analysis.findings.into_iter().chain(analysis.cautions);
        let mut of_worker = found.filter(|f| f.kind == FindingKind::Limiter(Limiter::Generator));
        of_worker.next().expect("the worker limits").claim
    };
    let paced = claim("bbr");
    assert!(
        paced.contains("bbr paces") && paced.contains("-C reno"),
        "{paced}"
    );
    assert!(!claim("cubic").contains("paces"));
}

#[test]
fn a_rate_that_was_asked_for_is_named() {
    let asked = |bitrate: Option<u64>, fq_rate: Option<u64>, connections| {
        let mut workload = stream();
        workload.connections = connections;
        workload.manner.rate_bps = bitrate;
        workload.options.pacing_bps = fq_rate;
        workload
    };
    let truth = Truth::stream(100e6);
    check(
        asked(Some(100_000_000), None, 1),
        truth.clone(),
        &[Limiter::Pacing],
    );
    check(
        asked(Some(25_000_000), None, 4),
        truth.clone(),
        &[Limiter::Pacing],
    );
    check(
        asked(None, Some(105_000_000), 1),
        truth.clone(),
        &[Limiter::Pacing],
    );
    // The lower one holds.
    check(
        asked(Some(1_000_000_000), Some(105_000_000), 1),
        truth.clone(),
        &[Limiter::Pacing],
    );
    // More was asked for than came.
    check(asked(Some(200_000_000), None, 1), truth.clone(), &[]);
    check(asked(Some(100_000_000), None, 4), truth.clone(), &[]);
    // Nobody kept to it.
    check(asked(Some(10_000_000), None, 1), truth, &[]);
    // bbr follows what the pacer gives it.
    let bbr = Truth {
        pacing_bps: Some(100e6),
        congestion: Some("bbr"),
        ..Truth::stream(100e6)
    };
    check(asked(Some(100_000_000), None, 1), bbr, &[Limiter::Pacing]);
    let mut open = rr(4);
    let truth = Truth::transactions(50_000);
    let count: u64 = truth.latency.iter().map(|(_, count)| count).sum();
    open.manner.requests_per_s = Some(count as u32);
    check(open.clone(), truth.clone(), &[Limiter::Pacing]);
    open.manner.requests_per_s = Some(2 * count as u32);
    check(open, truth, &[]);
}

/// Latencies of an open loop at 5000 requests a second, whose period is 200 µs, in half a second.
#[test]
fn responses_that_wait_for_the_next_request_are_told_apart_from_slow_ones() {
    let waits = |latency_us: u64, tcp_us: i64, nagle: Option<bool>| {
        let mut workload = rr(4);
        workload.manner.requests_per_s = Some(5000);
        workload.options.nagle = nagle;
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, workload);
        let truth = Truth {
            latency: vec![(latency_us * 1000, 2500)],
            rtt_ns: tcp_us * 1000,
            ..Truth::usual()
        };
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        let findings = told(&run.recording);
        let mut waits = findings
            .into_iter()
            .filter(|one| one.id.ends_with("response-waits"));
        waits.next().map(|one| one.claim)
    };
    let claim = waits(245, 45, Some(true)).expect("one period and the round trip");
    assert!(claim.contains("245") && claim.contains("200 µs"), "{claim}");
    assert_eq!(waits(245, 45, Some(false)), None, "Nagle is off");
    assert_eq!(waits(245, 45, None), None, "nobody asked for Nagle");
    assert_eq!(waits(60, 45, Some(true)), None, "at once");
    assert_eq!(waits(245, 230, Some(true)), None, "the path is as long");
    assert_eq!(waits(700, 45, Some(true)), None, "the server is slow");
}

/// The median of four flows of which one is held is that of the other three.
#[test]
fn one_flow_whose_responses_wait_is_seen_among_others() {
    let waits = |held_us: u64| {
        let mut workload = rr(4);
        workload.connections = 4;
        workload.manner.requests_per_s = Some(5000);
        workload.options.nagle = Some(true);
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, workload);
        let truth = Truth {
            latency: vec![(60_000, 2500)],
            rtt_ns: 45_000,
            ..Truth::usual()
        };
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        let flows = run.recording.flows.iter_mut();
        for latency in flows
            .filter(|flow| flow.flow.0 == 2)
            .filter_map(|flow| flow.outcome.latency.as_mut())
        {
            latency.buckets = vec![(held_us * 1000, 2500)];
        }
        let mut findings = told(&run.recording).into_iter();
        let waits = findings.find(|one| one.id.ends_with("response-waits"));
        waits.map(|one| one.claim)
    };
    let claim = waits(245).expect("one of four");
    assert!(
        claim.contains("245 µs") && claim.contains("200 µs"),
        "{claim}"
    );
    assert_eq!(waits(60), None, "as the others");
    assert_eq!(waits(700), None, "slower than the next request");
}

#[test]
fn a_generator_that_is_late_is_told_where_it_makes_the_tail() {
    let told = |late_us: u64, tail_us: u64, wait: WaitBy| {
        let mut workload = rr(4);
        workload.manner.requests_per_s = Some(5000);
        workload.manner.wait = wait;
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, workload);
        let truth = Truth {
            latency: vec![(tail_us * 1000, 2500)],
            lateness: vec![(2_000, 2000), (late_us * 1000, 500)],
            // Nobody else has CPU time worth a word.
            cpus: 0.1,
            ..Truth::usual()
        };
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        let mut late = told(&run.recording)
            .into_iter()
            .filter(|one| one.id.ends_with("generator-late"));
        late.next()
    };
    let late = told(400, 1000, WaitBy::Auto).expect("two fifths of the tail");
    let (claim, advice) = (late.claim, late.explanation);
    assert!(
        claim.contains("400 µs") && claim.contains("40 %"),
        "{claim}"
    );
    assert!(advice.contains("--busy-poll"), "{advice}");
    let action = late.action.unwrap_or_default();
    assert!(action.contains("--busy-poll"), "{action}");
    assert!(told(199, 1000, WaitBy::Auto).is_none(), "less than a fifth");
    assert!(
        told(99, 100, WaitBy::Auto).is_none(),
        "as any host wakes a thread"
    );
    let late = told(400, 1000, WaitBy::Spin).expect("late all the same");
    assert!(
        !late.explanation.contains("--busy-poll"),
        "it does so already"
    );
}

#[test]
fn zero_copy_that_copies_is_a_caution() {
    let cautions = |zero_copy: Option<ZeroCopyCount>| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        let truth = Truth {
            zero_copy,
            ..Truth::usual()
        };
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        let findings = told(&run.recording);
        let of_copies = findings
            .into_iter()
            .filter(|finding| finding.id == "run/caution/zero-copy");
        of_copies.map(|finding| finding.claim).collect::<Vec<_>>()
    };
    let of_800 = |copied| Some(ZeroCopyCount { done: 800, copied });
    assert_eq!(
        cautions(of_800(792)),
        ["MSG_ZEROCOPY fell back to copying for 99 % of the data."]
    );
    let none: [String; 0] = [];
    assert_eq!(cautions(of_800(0)), none);
    assert_eq!(cautions(Some(ZeroCopyCount::default())), none);
    assert_eq!(cautions(None), none);
}

#[test]
fn windows_of_several_flows_add_up() {
    let mut workload = stream();
    workload.connections = 4;
    let truth = Truth {
        window_bytes: 16_384,
        rtt_ns: 10_000_000,
        rwnd_share: 0.97,
        ..Truth::stream(4.0 * 13e6)
    };
    check(workload, truth, &[Limiter::ReceiverWindow]);
}

#[test]
fn the_send_buffer_is_named() {
    // Whoever waits for room in the buffer has data outstanding.
    let limited = Truth {
        sndbuf_share: 0.8,
        busy_share: 1.0,
        ..Truth::stream(100e6)
    };
    check(stream(), limited.clone(), &[Limiter::SendBuffer]);
    check(
        stream(),
        Truth {
            sndbuf_share: 0.3,
            ..limited
        },
        &[],
    );
}

#[test]
fn loss_is_named() {
    // Without a pause: idle time is not the congestion window's.
    let lossy = Truth {
        lost_share: 0.01,
        rtt_ns: 10_000_000,
        busy_share: 1.0,
        ..Truth::stream(100e6)
    };
    check(stream(), lossy, &[Limiter::CongestionWindow]);
    check(
        stream(),
        Truth {
            lost_share: 0.0001,
            ..Truth::stream(100e6)
        },
        &[],
    );
    // Ten segments of 1448 B over 1 ms: 115.8 Mbit/s, always busy.
    let held = Truth {
        cwnd: 10,
        rtt_ns: 1_000_000,
        busy_share: 1.0,
        ..Truth::stream(115e6)
    };
    check(stream(), held.clone(), &[Limiter::CongestionWindow]);
    check(stream(), Truth { cwnd: 40, ..held }, &[]);
}

#[test]
fn the_generator_is_named() {
    check(
        stream(),
        Truth {
            worker_share: 0.96,
            ..Truth::usual()
        },
        &[Limiter::Generator],
    );
    let starved = Truth {
        worker_share: 0.6,
        worker_wait_share: 0.37,
        ..Truth::usual()
    };
    // It waited beside idle CPUs: what kept it from them is no weakness of the generator.
    check(stream(), starved, &[Limiter::CpuQuota]);
    check(
        stream(),
        Truth {
            worker_share: 0.9,
            ..Truth::usual()
        },
        &[],
    );
    // A saturated worker does not matter where the link is full.
    let full = Truth {
        worker_share: 0.99,
        ..Truth::stream(941e6)
    };
    check(stream(), full, &[Limiter::LinkRate]);
}

#[test]
fn the_round_trip_is_named() {
    check(rr(4), Truth::transactions(50_000), &[Limiter::RoundTrip]);
}

#[test]
fn a_path_as_long_as_the_timer_is_no_stall() {
    let mut split = rr(200);
    if let linerate_model::workload::Traffic::Rr { request_writes, .. } = &mut split.traffic {
        *request_writes = 2;
    }
    let far = Truth {
        delayed_acks: Some(22.0),
        ..Truth::transactions(44_000_000)
    };
    check(split, far, &[Limiter::RoundTrip]);
}

/// A run of split requests, those of the study's `chapter` or of a user's file, in which each combination
/// takes what `rtt_ns` says.
fn split_requests(chapter: Option<u32>, rtt_ns: impl Fn(bool, bool) -> u64) -> Recording {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("split-request", chapter, rr(200));
    for nagle in [true, false] {
        for ack in [true, false] {
            let mut levels = switches(nagle, ack).to_vec();
            levels.push((Factor::RequestWrites, Level::Count(2)));
            let truth = Truth {
                rtt_ns: 50_000,
                ..Truth::transactions(rtt_ns(nagle, ack))
            };
            run.cell(&levels, &[truth.clone(), truth.clone(), truth]);
        }
    }
    run.recording
}

#[test]
fn a_stall_is_proven_by_toggling() {
    let stalled = |nagle, ack| if nagle && ack { 44_000_000 } else { 60_000 };
    let recording = split_requests(Some(9), stalled);
    let analysis = analyze(&recording);
    let stall = &analysis.findings[0];
    assert_eq!(stall.kind, FindingKind::Limiter(Limiter::NagleDelayedAck));
    assert!(stall.claim.contains("44 ms"), "{}", stall.claim);
    let chapter = analysis
        .chapters
        .iter()
        .find(|one| one.title == "split-request");
    let answer = chapter
        .and_then(|one| one.answer.as_deref())
        .unwrap_or_default();
    assert!(
        answer.starts_with(
            "A request in 2 writes takes 44 ms on average with Nagle on, delayed ACK on"
        ),
        "{answer}"
    );
    assert!(
        stall.claim.contains("60 µs") && stall.claim.contains("Nagle off"),
        "{}",
        stall.claim
    );
    assert!(
        (stall.effect.value - 43.94e6).abs() < 1e3,
        "{:?}",
        stall.effect
    );
    // That requests come in two writes is the study's own doing, which says nothing of the hosts: what ends
    // the wait stands in the chapter, and is recommended to whoever measures such traffic for its own sake.
    assert_eq!(analysis.recommendations, []);
    let consequence = chapter.and_then(|one| one.consequence.as_deref());
    assert!(
        consequence.is_some_and(|text| text.contains("TCP_NODELAY")),
        "{consequence:?}"
    );
    let analysis = analyze(&split_requests(None, stalled));
    let stall = &analysis.findings[0];
    let [advice] = analysis.recommendations.as_slice() else {
        panic!("{:?}", analysis.recommendations);
    };
    assert_eq!(advice.finding, stall.id);
    assert!(
        advice
            .action
            .starts_with("In programs that write a request in pieces")
    );
    assert_eq!(
        advice.predicted,
        "A median round trip of 60 µs instead of 44 ms, as measured."
    );
}

#[track_caller]
/// A stream of small messages with both on, whose segments carry what `payload` says.
#[test]
fn cautions_are_raised_only_with_cause() {
    let ids = |change: &dyn Fn(&mut MadeRun)| -> Vec<String> {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        change(&mut run);
        told(&run.recording)
            .into_iter()
            .filter(|finding| finding.kind == FindingKind::Caution)
            .map(|finding| finding.id)
            .collect()
    };
    let three =
        |share: f64| [1.0 - share, 1.0, 1.0 + share].map(|share| Truth::stream(500e6 * share));
    assert_eq!(ids(&|run| run.cell(&[], &three(0.01))), [""; 0]);
    assert_eq!(
        ids(&|run| run.cell(&[], &three(0.1))),
        ["one/caution/noise"]
    );
    // The one measurement of a run has no name that says anything.
    let mut noisy = MadeRun::new(1, Some(1e9));
    noisy.experiment("one", None, stream());
    noisy.cell(&[], &three(0.1));
    let cautions = told(&noisy.recording);
    let mut cautions = cautions.iter();
    let noise = cautions.find(|found| found.id == "one/caution/noise");
    let claim = &noise.expect("a caution").claim;
    assert!(claim.ends_with(" %)."), "{claim}");
    assert_eq!(
        ids(&|run| run.cell(&[], &three(0.01)[..2])),
        ["run/caution/replicates"]
    );
    let late = Truth {
        skew_ns: 60_000_000,
        ..Truth::usual()
    };
    let late = [late.clone(), late.clone(), late];
    assert_eq!(ids(&|run| run.cell(&[], &late)), ["run/caution/start-skew"]);
    let invalid = Truth {
        invalid: Some("client1 vanished".to_owned()),
        ..Truth::usual()
    };
    let found = ids(&|run| {
        run.cell(&[], &[three(0.0).to_vec(), vec![invalid.clone()]].concat());
    });
    assert_eq!(found, ["run/caution/invalid"]);
    let found = ids(&|run| {
        run.cell(&[], &three(0.0));
        for host in &mut run.recording.document.hosts {
            host.lab = true;
        }
    });
    assert_eq!(found, ["run/caution/shared-cpus"]);
    let found = ids(&|run| {
        run.cell(&[], &three(0.0));
        for flow in &mut run.recording.flows {
            let mut settings: Vec<_> = flow.settings.into_iter().cloned().collect();
            settings[0].capped_by = Some("net.core.rmem_max = 212992".to_owned());
            flow.outcome.settings = settings.into();
        }
    });
    assert_eq!(found, ["run/caution/capped/1"]);
    let found = ids(&|run| {
        run.cell(&[], &three(0.0));
        for flow in &mut run.recording.flows {
            flow.outcome.requests = Some(RequestCount { due: 9, sent: 9 });
            flow.outcome.connections = Some(Box::new(ConnectionCount {
                made: 9,
                failed: 0,
                last_failure: None,
            }));
        }
    });
    assert_eq!(found, [""; 0], "nothing is missing");
    let found = ids(&|run| {
        run.cell(&[], &three(0.0));
        let first = &mut run.recording.flows[0].outcome;
        first.requests = Some(RequestCount { due: 9, sent: 7 });
        first.connections = Some(Box::new(ConnectionCount {
            made: 7,
            failed: 2,
            last_failure: Some("connecting failed".to_owned()),
        }));
    });
    let expected = [
        "run/caution/short/requests",
        "run/caution/short/connections",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_stall_is_found_in_windows_too_short_for_a_median() {
    // Nine transactions of 44 ms in a window of 0.4 s, three times: a median of all 27.
    let stalled = |nagle, ack| if nagle && ack { 44_000_000 } else { 60_000 };
    let mut recording = split_requests(Some(9), stalled);
    for flow in &mut recording.flows {
        if let Some(latency) = &mut flow.outcome.latency {
            latency.buckets.retain(|(ns, _)| *ns != 44_000_000);
            if latency.count() == 0 {
                latency.buckets = vec![(44_000_000, 9)];
            }
        }
    }
    let stall = &analyze(&recording).findings[0];
    assert_eq!(stall.kind, FindingKind::Limiter(Limiter::NagleDelayedAck));
    let waiting = &stall.evidence.as_slice()[0];
    assert_eq!(
        (waiting.what.as_str(), waiting.estimate.n),
        ("median round trip", 3)
    );
    // Of a single trial only the mean is left.
    let single = stall.evidence.as_slice()[0].trials[0];
    recording
        .trials
        .retain(|record| record.trial == single || record.trial.0 > 3);
    let stall = &analyze(&recording).findings[0];
    assert_eq!(stall.evidence.as_slice()[0].what, "mean round trip");
}

#[test]
fn loss_beside_a_roomy_congestion_window_is_not_the_limiter() {
    // A hundred segments over 100 µs allow 11.6 Gbit/s.
    check(
        stream(),
        Truth {
            lost_share: 0.01,
            ..Truth::stream(100e6)
        },
        &[],
    );
}

/// A lab in which replicates of one cell take 20 µs or 60 µs; `apart` says which of them ran with
/// their ends on two CPUs.
fn placed(rtts_ns: &[u64], apart: &[bool]) -> Recording {
    placed_in_cells(rtts_ns, apart, rtts_ns.len())
}

/// The same in cells of so many replicates.
fn placed_in_cells(rtts_ns: &[u64], apart: &[bool], replicates: usize) -> Recording {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("latency", None, rr(1));
    let truths: Vec<Truth> = rtts_ns
        .iter()
        .map(|rtt| Truth::transactions(*rtt))
        .collect();
    for (at, truths) in truths.chunks(replicates).enumerate() {
        let level = (Factor::RequestBytes, size(1 + at as u64));
        let levels = if replicates < rtts_ns.len() {
            vec![level]
        } else {
            Vec::new()
        };
        run.cell(&levels, truths);
    }
    let recording = &mut run.recording;
    for host in &mut recording.document.hosts {
        host.lab = true;
    }
    for flow in &mut recording.flows {
        let two = apart[flow.trial.0 as usize - 1];
        let is_client = flow.end == linerate_model::sample::End::Client;
        flow.outcome.cpu = Some(u32::from(two && is_client));
    }
    run.recording
}

fn placement_effect(recording: &Recording) -> Option<f64> {
    let findings = told(recording);
    let finding = findings
        .into_iter()
        .find(|finding| finding.id == "latency/placement")?;
    Some(finding.effect.value)
}

#[test]
fn placement_that_decides_the_rate_is_named() {
    let mixed = placed(
        &[20_000, 60_000, 20_000, 60_000],
        &[false, true, false, true],
    );
    let effect = placement_effect(&mixed).expect("both placements were seen");
    assert!((effect - 3.0).abs() < 0.01, "{effect}");
    let equal = placed(
        &[20_000, 21_000, 20_000, 21_000],
        &[false, true, false, true],
    );
    assert_eq!(placement_effect(&equal), None, "5 % is noise");
    let mixed_up = placed(
        &[28_000, 55_000, 55_000, 54_000, 52_000],
        &[false, false, true, true, true],
    );
    assert_eq!(placement_effect(&mixed_up), None, "one trial is no proof");
    let once = placed(&[20_000, 60_000], &[false, true]);
    assert_eq!(placement_effect(&once), None, "nothing tells the spread");
    // Two cells that agree in which is faster, and not in how much: ± 2.5 around 0.6 in logarithms.
    let mut cells = Vec::new();
    for factor in [1.5, 2.2] {
        let apart = (20_000.0 * factor) as u64;
        cells.extend([20_000, 20_000, apart, apart]);
    }
    let two_cells = placed_in_cells(&cells, &[false, false, true, true].repeat(2), 4);
    assert_eq!(placement_effect(&two_cells), None, "two are a range");
    let pinned = placed(&[60_000, 60_000, 20_000], &[true, true, true]);
    assert_eq!(placement_effect(&pinned), None, "one placement only");
    let mut apart = mixed;
    for host in &mut apart.document.hosts {
        host.lab = false;
    }
    assert_eq!(
        placement_effect(&apart),
        None,
        "hosts of a network share no CPU"
    );
}

#[test]
fn other_programs_are_named_where_they_share_the_cpus() {
    let finding = |others_cpus: f64, is_read: bool| {
        let truth = Truth {
            cpus: 1.0,
            others_cpus,
            ..Truth::usual()
        };
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        let samples = std::mem::take(&mut run.recording.samples);
        let is_thread = |subject: &Subject| matches!(subject, Subject::Thread(_));
        let kept = samples
            .iter()
            .filter(|sample| is_read || !is_thread(&sample.subject));
        run.recording.samples = kept.collect();
        let findings = told(&run.recording);
        let found = findings
            .into_iter()
            .find(|found| found.id == "run/caution/disturbed");
        found.map(|found| found.effect.value)
    };
    let seen = finding(0.3, true).expect("0.3 CPUs are more than the agents need");
    assert!((seen - 0.15).abs() < 0.01, "of two CPUs: {seen}");
    assert_eq!(finding(0.05, true), None);
    assert_eq!(
        finding(0.3, false),
        None,
        "without our own threads nobody knows whose the time was"
    );
}

/// A link makes up in a window for what it had not passed before: where that shows, the finding says so.
#[test]
fn why_a_rate_is_above_what_the_link_carries_is_said() {
    let explanation = |bps: f64| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        run.cell(&[], &[bps, bps + 1e6, bps - 1e6].map(Truth::stream));
        let mut told = told(&run.recording).into_iter();
        let full = told.find(|it| it.kind == FindingKind::Limiter(Limiter::LinkRate));
        full.expect("a full link").explanation
    };
    let above = explanation(943e6);
    assert!(
        above.contains("A window may hold up to 0.5 % more than that"),
        "{above}"
    );
    assert!(!explanation(935e6).contains("window"));
}

#[test]
fn two_values_are_no_interval() {
    let claim = |rates: &[f64]| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        let truths: Vec<Truth> = rates.iter().copied().map(Truth::stream).collect();
        run.cell(&[], &truths);
        let mut told = told(&run.recording).into_iter();
        let full = told.find(|it| it.kind == FindingKind::Limiter(Limiter::LinkRate));
        full.expect("a full link").claim
    };
    for (rates, expected) in [
        (&[941e6, 940e6][..], "both values lie above 98.5 %"),
        (&[941e6, 920e6], "one of the two values lies below 98.5 %"),
        (
            &[941e6, 940e6, 941e6],
            "the whole interval lies above 98.5 %",
        ),
    ] {
        assert!(claim(rates).contains(expected), "{}", claim(rates));
    }
}

#[test]
fn no_interval_has_segments_above_the_mss() {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    let truth = |payload_bytes| Truth {
        payload_bytes,
        ..Truth::stream(940e6)
    };
    run.cell(&[], &[1448.0, 1440.0, 1447.0].map(truth));
    let mut told = told(&run.recording).into_iter();
    let full = told.find(|it| it.kind == FindingKind::Limiter(Limiter::LinkRate));
    let full = full.expect("a full link");
    let mut pieces = full.evidence.as_slice().iter();
    let payload = pieces.find(|piece| piece.what == "payload per data segment");
    let high = payload.and_then(|piece| piece.estimate.high);
    assert!(high.is_some_and(|high| high < 1448.5), "{high:?}");
}

/// This kernel counts idle time exactly and busy time at the tick: what every trial misses, or the only one,
/// nobody is known to have taken.
#[test]
fn time_in_no_mode_is_told_where_it_is_more_than_usual() {
    let run = |missing: &[f64]| {
        let truth = |missing_share: &f64| Truth {
            cpus: 1.0,
            missing_share: *missing_share,
            ..Truth::stream(941e6)
        };
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        let truths: Vec<Truth> = missing.iter().map(truth).collect();
        run.cell(&[], &truths);
        let analysis = analyze(&run.recording);
        let mut cautions = analysis.cautions.into_iter();
        let disturbed = cautions.find(|found| found.id == "run/caution/disturbed");
        (disturbed, analysis.trust.expect("a judgement").level)
    };
    assert_eq!(run(&[0.14]), (None, TrustLevel::Good));
    assert_eq!(run(&[0.14, 0.13, 0.15]), (None, TrustLevel::Good));
    let (found, level) = run(&[0.14, 0.14, 0.34]);
    let found = found.expect("one trial misses more");
    assert!((found.effect.value - 0.2).abs() < 0.001, "{found:?}");
    assert_eq!(
        found.claim,
        "20 % more of the CPUs' time than usual is in no CPU mode in 1 of 3 trials: taken, or not counted."
    );
    assert_eq!(level, TrustLevel::Limited);
}

#[test]
fn of_one_trial_nobody_says_that_identical_ones_differ() {
    let truth = Truth {
        cpus: 1.0,
        others_cpus: 0.3,
        ..Truth::usual()
    };
    let caution = |trials: usize| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        run.cell(&[], &vec![truth.clone(); trials]);
        let mut told = told(&run.recording).into_iter();
        let found = told.find(|found| found.id == "run/caution/disturbed");
        found.expect("others took time").explanation
    };
    assert!(!caution(1).contains("identical"));
    assert!(caution(3).contains("identical trials may differ"));
}

#[test]
fn what_to_repeat_where_nothing_is_named_depends_on_what_was_seen() {
    let next = |truth: Truth| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        run.cell(&[], &[truth]);
        let single = crate::as_single(&run.recording);
        assert_eq!(single.limiter(), None, "{:?}", single.findings);
        single.next.expect("a next step")
    };
    let plain = Truth {
        cpus: 1.9,
        others_cpus: 0.1,
        ..Truth::stream(300e6)
    };
    // What is steady is as steady in a longer window.
    let steady = next(plain.clone());
    assert!(
        steady.contains("--capture") && !steady.contains("longer"),
        "{steady}"
    );
    let rising = next(Truth {
        halves: 1.3,
        ..plain.clone()
    });
    assert!(rising.contains("repeat for longer"), "{rising}");
    // A window of 1 s has 20 round trips of 50 ms.
    let far = next(Truth {
        rtt_ns: 50_000_000,
        ..plain.clone()
    });
    assert!(far.contains("repeat for longer"), "{far}");
    let beside = |worker_share| Truth {
        others_cpus: 0.8,
        worker_share,
        ..plain.clone()
    };
    let busy = next(beside(0.6));
    assert!(busy.contains("hosts are quiet"), "{busy}");
    let resting = next(beside(0.3));
    assert!(resting.contains("--capture"), "{resting}");
    let shared = next(Truth {
        beside_bps: Some(300e6),
        ..plain
    });
    assert!(shared.contains("stop the other traffic"), "{shared}");
}

#[test]
fn flows_that_a_dropping_queue_starves_are_no_matter_of_time() {
    let next = |lost_share| {
        let mut many = stream();
        many.connections = 64;
        let shares = (0..64).map(|flow| f64::from(u8::from(flow < 24)));
        let truth = Truth {
            shares: shares.collect(),
            lost_share,
            ..Truth::stream(148e6)
        };
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, many);
        run.cell(&[], &[truth]);
        let single = crate::as_single(&run.recording);
        let invalid = single.trials[0].invalid.as_deref();
        assert_eq!(invalid, Some("40 of 64 flows transferred nothing"));
        single.next.expect("a next step")
    };
    let lossy = next(0.07);
    assert!(
        lossy.contains("fewer flows")
            && lossy.contains("fq_codel")
            && !lossy.contains("for longer"),
        "{lossy}"
    );
    let quiet = next(0.001);
    assert!(quiet.contains("repeat for longer"), "{quiet}");
}

#[test]
fn time_that_no_mode_has_matters_where_cpus_may() {
    let matters = |cpus: f64, worker_share: f64| {
        let truth = Truth {
            cpus,
            worker_share,
            missing_share: 0.14,
            ..Truth::stream(300e6)
        };
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        run.cell(&[], &[truth]);
        crate::as_single(&run.recording).trials[0].may_need_cpus()
    };
    assert!(!matters(0.2, 0.1));
    assert!(matters(0.2, 0.6));
    assert!(matters(1.5, 0.1));
}

#[test]
fn ends_that_always_share_a_cpu_are_a_caution() {
    let cautions = |apart: &[bool]| {
        let recording = placed(&[20_000, 20_000, 20_000], apart);
        let findings = told(&recording);
        let of_it = |finding: &&Finding| finding.id == "latency/caution/one-cpu";
        findings.iter().filter(of_it).count()
    };
    assert_eq!(cautions(&[false, false, false]), 1);
    assert_eq!(cautions(&[true, true, true]), 0, "as on two hosts");
    assert_eq!(
        cautions(&[false, true, false]),
        0,
        "the comparison says more"
    );
    // Over a path of 7 ms no wake-up makes a difference.
    let far = told(&placed(&[7_000_000; 3], &[false; 3]));
    assert!(
        far.iter()
            .all(|finding| finding.id != "latency/caution/one-cpu")
    );
    // Nor where many requests are under way at once, over 5 ms; over 100 µs it does.
    let under_way = |min_rtt_ns: i64| {
        let mut workload = rr(1);
        workload.manner.in_flight = 16;
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("latency", None, workload);
        let truth = Truth {
            latency: vec![(5_000_000, 3080)],
            rtt_ns: 5_000_000,
            min_rtt_ns: Some(min_rtt_ns),
            ..Truth::usual()
        };
        run.cell(&[], &[truth]);
        for host in &mut run.recording.document.hosts {
            host.lab = true;
        }
        let mut found = told(&run.recording).into_iter();
        found.any(|finding| finding.id == "latency/caution/one-cpu")
    };
    assert!(!under_way(5_000_000));
    assert!(under_way(100_000));
}

#[test]
fn what_to_do_follows_the_evidence() {
    const MS: i64 = 1_000_000;
    let next = |truth: &Truth| {
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, stream());
        run.cell(&[], std::slice::from_ref(truth));
        let single = crate::as_single(&run.recording);
        single.next.expect("a next step")
    };
    let path = |bps| Truth::sending(bps, 20 * MS, 20 * MS);
    let lost = Truth {
        lost_share: 0.003,
        ..path(12.9e6)
    };
    let marked = Truth {
        marked_share: 0.003,
        ..path(12.9e6)
    };
    let overtaken = Truth {
        lost_share: 0.05,
        spurious_share: 1.0,
        cwnd: 6,
        ..path(6.0 * 1448.0 * 8.0 / 0.0202)
    };
    let between = Truth {
        window_bytes: 65_536,
        rwnd_share: 0.98,
        offered_bytes: Some(3_400_000),
        ..path(26e6)
    };
    for (truth, words) in [
        (lost, "--fq-rate"),
        (marked, "(ECN)"),
        (overtaken, "delays or reorders"),
        (between, "proxy"),
    ] {
        let said = next(&truth);
        assert!(
            said.contains(words),
            "{words:?} is not in {said:?}: {truth:?}"
        );
    }
}

/// The links of these hosts have an MTU of 1500: 1472 B of a datagram beside the headers of IP and UDP.
#[test]
fn datagrams_that_are_longer_than_a_packet_are_a_caution() {
    let packets = |transport: Transport, bytes: u64| {
        let mut workload = stream();
        workload.manner.transport = transport;
        if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
            *message_bytes = Bytes(bytes);
        }
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, workload);
        run.cell(&[], &[Truth::stream(100e6)]);
        let findings = told(&run.recording);
        let of_it = |finding: &&Finding| finding.id == "run/caution/fragments";
        let found = findings.iter().find(of_it);
        found.map(|finding| finding.effect.value)
    };
    assert_eq!(packets(Transport::Udp, 1448), None);
    assert_eq!(packets(Transport::Udp, 1472), None);
    assert_eq!(packets(Transport::Udp, 1473), Some(2.0));
    assert_eq!(packets(Transport::Udp, 9000), Some(7.0));
    assert_eq!(packets(Transport::Tcp, 9000), None);
}
