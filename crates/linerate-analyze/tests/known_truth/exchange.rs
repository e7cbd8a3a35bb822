//! Request/response: what holds it, told by what only that cause leaves behind.

use linerate_analyze::reduce::{name, outcomes};
use linerate_model::finding::{Finding, FindingKind};
use linerate_model::limiter::Limiter;
use linerate_model::metric::Metric;
use linerate_model::reason::Reason;
use linerate_model::run::{Control, HostPart, Validity};
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::step::Step;
use linerate_model::workload::{Setting, Traffic, Workload};
use linerate_model::{Bytes, Nanos};

use crate::builder::{MadeRun, Truth, WINDOW_NS, rr, stream};
use crate::told;

/// The limiters of three trials of `workload` over 1 Gbit/s with their claims.
fn limiters(workload: Workload, truth: &Truth) -> Vec<(Limiter, String)> {
    limiters_over(Some(1e9), workload, truth)
}

fn limiters_over(rate: Option<f64>, workload: Workload, truth: &Truth) -> Vec<(Limiter, String)> {
    let mut run = MadeRun::new(1, rate);
    run.experiment("one", None, workload);
    run.cell(&[], &[truth.clone(), truth.clone(), truth.clone()]);
    let findings = told(&run.recording).into_iter();
    let limiter = |finding: Finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some((limiter, finding.claim)),
        _ => None,
    };
    findings.filter_map(limiter).collect()
}

#[track_caller]
fn check(workload: Workload, truth: Truth, expected: Limiter, words: &str) {
    says(&limiters(workload, &truth), expected, words);
}

/// The same over a path whose rate nobody knows.
#[track_caller]
fn check_unknown(workload: Workload, truth: Truth, expected: Limiter, words: &str) {
    says(&limiters_over(None, workload, &truth), expected, words);
}

#[track_caller]
fn says(found: &[(Limiter, String)], expected: Limiter, words: &str) {
    let [(limiter, claim)] = found else {
        panic!("one limiter is there, not {found:?}");
    };
    assert_eq!(*limiter, expected, "{claim}");
    assert!(claim.contains(words), "{claim}");
}

fn split() -> Workload {
    let mut workload = rr(200);
    if let Traffic::Rr { request_writes, .. } = &mut workload.traffic {
        *request_writes = 2;
    }
    workload
}

#[test]
fn a_queue_on_the_way_is_no_stall_of_nagle() {
    let queued = Truth {
        min_rtt_ns: Some(1_000_000),
        delayed_acks: Some(0.0),
        ..Truth::transactions(300_000_000)
    };
    for workload in [rr(200), split()] {
        check(
            workload,
            queued.clone(),
            Limiter::RoundTrip,
            "A queue on the path, or delay that varies, limits",
        );
    }
    // An end that was not read leaves a longer answer possible, up to the longest delayed ACK.
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, rr(200));
    let short = Truth {
        min_rtt_ns: Some(1_000_000),
        ..Truth::transactions(100_000_000)
    };
    run.cell(&[], &[short]);
    let samples = std::mem::take(&mut run.recording.samples);
    let kept = samples.iter().filter(|sample| {
        let server = linerate_model::sample::End::Server;
        !matches!(sample.subject, Subject::Flow(_, end) if end == server)
    });
    run.recording.samples = kept.collect();
    let findings = told(&run.recording);
    let claim = findings
        .iter()
        .find(|one| one.id == "one/limiter/round-trip");
    let claim = &claim.expect("the round trip is split").claim;
    assert!(claim.contains("does not distinguish"), "{claim}");
}

/// Connecting is a round trip, and request with response another; what is beyond has another cause.
#[test]
fn a_connection_for_each_request_takes_two_round_trips() {
    let told = |mean_ns: u64| {
        let mut workload = rr(200);
        workload.traffic = Traffic::Crr {
            request_bytes: Bytes(1),
            response_bytes: Bytes(1),
        };
        let truth = Truth {
            min_rtt_ns: Some(20_000_000),
            ..Truth::transactions(mean_ns)
        };
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, workload);
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        // Of connections that are gone nothing is read but the shortest round trip.
        let samples = std::mem::take(&mut run.recording.samples);
        let is_of_flow = |sample: &TrialSample| matches!(sample.subject, Subject::Flow(..));
        let is_tcp = |sample: &TrialSample| sample.metric.name().starts_with("tcp_");
        let kept = samples.iter().filter(|sample| {
            !is_of_flow(sample) || !is_tcp(sample) || sample.metric == Metric::TcpMinRtt
        });
        run.recording.samples = kept.collect();
        let found = told(&run.recording).into_iter();
        let limiter = |finding: Finding| match finding.kind {
            FindingKind::Limiter(limiter) => Some((limiter, finding.claim)),
            _ => None,
        };
        found.filter_map(limiter).collect::<Vec<_>>()
    };
    says(
        &told(41_000_000),
        Limiter::RoundTrip,
        "The path limits the rate to 24/s",
    );
    says(
        &told(41_000_000),
        Limiter::RoundTrip,
        "40 ms of path (twice TCP's shortest)",
    );
    says(
        &told(120_000_000),
        Limiter::RoundTrip,
        "42.8 ms that none of this explains",
    );
}

#[test]
fn a_client_further_away_waits_for_nothing() {
    // One client is 0.2 ms away and makes 5000 transactions, the other 200 ms and makes 5.
    let mut workload = rr(200);
    (workload.connections, workload.clients) = (2, 2);
    let truth = Truth {
        latency: vec![(200_000, 5000), (200_000_000, 5)],
        rtt_ns: 200_000,
        distances: vec![1000.0],
        delayed_acks: Some(0.0),
        timeouts: Some(0.0),
        ..Truth::usual()
    };
    let mut run = MadeRun::new(2, None);
    run.experiment("one", None, workload);
    run.cell(&[], &[truth.clone(), truth.clone(), truth]);
    for flow in &mut run.recording.flows {
        let own = match flow.flow.0 {
            0 => (200_000, 5000),
            _ => (200_000_000, 5),
        };
        if let Some(latency) = &mut flow.outcome.latency {
            latency.buckets = vec![own];
        }
    }
    let outcome = outcomes(&run.recording).remove(0);
    let of = |response| outcome.value(response);
    assert_eq!((of(name::SLOW), of(name::STALLED)), (Some(0.0), Some(0.0)));
    // Of the mean over transactions, 2 s / 5005, all is path.
    assert_eq!(of(name::PATH_RTT).map(f64::round), Some(399_600.0));
    assert_eq!(of(name::PATH_RTT_LOADED), of(name::PATH_RTT));
    let claims = told(&run.recording).into_iter().map(|found| found.claim);
    let claims: Vec<String> = claims.filter(|claim| claim.contains("limits")).collect();
    let [claim] = claims.as_slice() else {
        panic!("{claims:?}");
    };
    assert!(claim.starts_with("The path limits the rate"), "{claim}");
}

#[test]
fn retransmission_timeouts_are_told_by_the_timers() {
    for share in [0.05, 0.2] {
        let slow = Truth::timeouts(1_000_000, share);
        for workload in [rr(200), split()] {
            check(
                workload,
                slow.clone(),
                Limiter::Timeouts,
                "Retransmission timers hold up",
            );
        }
        // The timers rested: something else is slow, and it has no name.
        let rested = Truth {
            timeouts: Some(0.0),
            ..slow
        };
        assert_eq!(limiters(rr(200), &rested), []);
    }
}

#[test]
fn timeouts_behind_a_queue_that_others_fill_hold_nothing_up() {
    // One exchange in five waits for a timer, on a way whose shortest round trip is 50 µs.
    let held = |connections: u32, rtt_ns: i64| {
        let workload = Workload {
            connections,
            ..rr(200)
        };
        let truth = Truth {
            rtt_ns,
            min_rtt_ns: Some(50_000),
            ..Truth::timeouts(5_000_000, 0.2)
        };
        let found = limiters(workload, &truth);
        found.into_iter().map(|one| one.0).collect::<Vec<_>>()
    };
    assert_eq!(held(2, 4_200_000), []);
    // Nobody fills it meanwhile where the flow is the only one, or no queue stands.
    assert_eq!(held(1, 4_200_000), [Limiter::Timeouts]);
    assert_eq!(held(2, 60_000), [Limiter::Timeouts]);
}

#[test]
fn a_server_that_thinks_is_an_application() {
    for delayed_acks in [Some(0.0), None] {
        let thinks = Truth {
            rtt_ns: 60_000,
            delayed_acks,
            ..Truth::transactions(50_000_000)
        };
        check(
            rr(200),
            thinks,
            Limiter::Application,
            "The application that answers limits",
        );
    }
    // The client's round trip holds the answer's time, since the acknowledgement rides on it; the
    // server's does not.
    let rides = Truth {
        rtt_ns: 20_000_000,
        min_rtt_ns: Some(60_000),
        server_rtt_ns: Some(70_000),
        delayed_acks: Some(0.0),
        ..Truth::transactions(20_000_000)
    };
    check(rr(200), rides, Limiter::Application, "The application");
    // A split request may wait for a delayed ACK; without its counter nobody knows.
    let unknown = Truth {
        rtt_ns: 60_000,
        ..Truth::transactions(50_000_000)
    };
    check(split(), unknown, Limiter::RoundTrip, "or a delayed ACK");
}

#[test]
fn nagle_needs_two_writes_and_the_timer() {
    let stalled = Truth {
        rtt_ns: 60_000,
        delayed_acks: Some(22.0),
        ..Truth::transactions(44_000_000)
    };
    check(split(), stalled.clone(), Limiter::NagleDelayedAck, "44 ms");
    check(rr(200), stalled.clone(), Limiter::Application, "");
    let resting = Truth {
        delayed_acks: Some(0.0),
        ..stalled.clone()
    };
    check(split(), resting, Limiter::Application, "");
    // Twice as many as stalls come of other traffic, or of something else.
    let others = Truth {
        delayed_acks: Some(60.0),
        ..stalled.clone()
    };
    check(split(), others, Limiter::Application, "");
    let mut off = split();
    off.options.nagle = Some(false);
    check(off, stalled, Limiter::Application, "");
}

#[test]
fn a_cork_is_no_application() {
    let held = Truth {
        rtt_ns: 2_200_000,
        delayed_acks: Some(0.0),
        ..Truth::transactions(100_000_000)
    };
    let mut corked = rr(100);
    corked.options.cork = Some(true);
    check(corked, held.clone(), Limiter::RoundTrip, "TCP_CORK");
    check(rr(100), held, Limiter::Application, "The application");
}

#[test]
fn a_healthy_exchange_is_split() {
    // A path of 20 ms, both ends at rest.
    let far = Truth {
        min_rtt_ns: Some(19_900_000),
        delayed_acks: Some(0.0),
        timeouts: Some(0.0),
        worker_share: 0.01,
        worker_wait_share: 0.0,
        throttled: Some(0.0),
        ..Truth::transactions(20_000_000)
    };
    check(rr(200), far, Limiter::RoundTrip, "The path limits");
    // Two hosts on one switch: the work of both ends is most of it.
    let near = Truth {
        rtt_ns: 15_000,
        min_rtt_ns: Some(11_000),
        worker_share: 0.6,
        delayed_acks: Some(0.0),
        ..Truth::transactions(50_000)
    };
    check(
        rr(200),
        near.clone(),
        Limiter::RoundTrip,
        "The work of both ends limits",
    );
    // Rate × round trip = connections is no claim.
    let (_, claim) = &limiters(rr(200), &near)[0];
    assert!(
        claim.contains("11 µs of path") && !claim.contains("allow"),
        "{claim}"
    );
}

#[test]
fn cpus_that_a_worker_did_not_get_are_told_apart() {
    let waits = Truth {
        worker_share: 0.35,
        worker_wait_share: 0.6,
        ..Truth::usual()
    };
    let others = Truth {
        cpus: 2.0,
        others_cpus: 0.9,
        ..waits.clone()
    };
    for workload in [stream(), rr(200)] {
        let others = if workload.traffic.is_transactional() {
            Truth {
                latency: Truth::transactions(50_000).latency,
                ..others.clone()
            }
        } else {
            others.clone()
        };
        check(
            workload,
            others,
            Limiter::OtherPrograms,
            "ther programs have",
        );
    }
    let full = Truth {
        cpus: 1.99,
        worker_share: 0.85,
        worker_wait_share: 0.14,
        ..Truth::usual()
    };
    check(stream(), full.clone(), Limiter::Cpu, "All CPUs are full");
    // A third of them is others', or next to nothing.
    let shared = |others_cpus: f64| Truth {
        others_cpus,
        worker_share: 0.77,
        worker_wait_share: 0.23,
        ..full.clone()
    };
    let used = "All CPUs are full, and other programs used 0.67";
    check(stream(), shared(0.67), Limiter::OtherPrograms, used);
    check(stream(), shared(0.1), Limiter::Cpu, "All CPUs are full");
    // Other programs have the other CPUs, and the worker one to itself.
    let beside = Truth {
        others_cpus: 0.97,
        worker_share: 0.95,
        worker_wait_share: 0.04,
        ..full
    };
    check(stream(), beside, Limiter::Generator, "ran 95 % of the time");
    // The hypervisor took most of the time: that is not the host's own work.
    let stolen = Truth {
        cpus: 0.5,
        stolen_share: 0.72,
        worker_share: 0.46,
        worker_wait_share: 0.5,
        ..Truth::usual()
    };
    check(
        stream(),
        stolen,
        Limiter::Cpu,
        "the hypervisor took 72 % of it (steal) and 25 % was used",
    );
    // CPUs are idle, and nobody says why the worker waited.
    check(
        stream(),
        waits.clone(),
        Limiter::CpuQuota,
        "A CPU quota, or CPUs that it may not use",
    );
    // The caller had chosen the CPUs.
    let mut chosen = MadeRun::new(1, Some(1e9));
    chosen.experiment("one", None, stream());
    chosen.cell(&[], &[waits.clone(), waits.clone(), waits.clone()]);
    for flow in &mut chosen.recording.flows {
        let settings = flow.outcome.settings.into_iter().cloned();
        let placed = Setting::granted("placement", Some("CPU 0".to_owned()), None);
        flow.outcome.settings = settings.chain([placed]).collect();
    }
    let claims: Vec<(Limiter, String)> = told(&chosen.recording)
        .into_iter()
        .filter_map(|finding| match finding.kind {
            FindingKind::Limiter(limiter) => Some((limiter, finding.claim)),
            _ => None,
        })
        .collect();
    says(&claims, Limiter::Cpu, "pinned to (-A) are full");
    let next = crate::as_single(&chosen.recording).next;
    assert!(next.is_some_and(|words| words.contains("without `-A`")));
    // Who waits that long waits for somebody, and the generator is not to be blamed for it.
    let saturated = Truth {
        worker_share: 0.08,
        worker_wait_share: 0.91,
        ..waits.clone()
    };
    check(
        stream(),
        saturated,
        Limiter::CpuQuota,
        "waited for a CPU 91 % of the time",
    );
    // Chosen at one end only, it may be the other's that waits for something else.
    for flow in &mut chosen.recording.flows {
        if flow.end == End::Server {
            flow.outcome.settings = Default::default();
        }
    }
    let quota = told(&chosen.recording)
        .into_iter()
        .filter(|finding| finding.kind == FindingKind::Limiter(Limiter::CpuQuota));
    assert_eq!(quota.count(), 1);
    let throttled = Truth {
        throttled: Some(0.8),
        ..waits.clone()
    };
    check(
        stream(),
        throttled,
        Limiter::CpuQuota,
        "throttled in 80 % of its periods",
    );
    // The group was never throttled: the workers wait for one another.
    let pinned = Truth {
        throttled: Some(0.0),
        worker_share: 0.4,
        ..waits
    };
    check(
        stream(),
        pinned,
        Limiter::Generator,
        "ran 40 % of the time and waited for a CPU 60 %",
    );
    // A saturated worker beside free CPUs is the generator.
    let saturated = Truth {
        worker_share: 0.98,
        cpus: 1.2,
        ..Truth::usual()
    };
    check(
        stream(),
        saturated,
        Limiter::Generator,
        "ran 98 % of the time",
    );
}

#[test]
fn a_run_whose_only_trial_is_invalid_is_diagnosed() {
    let starved = Truth {
        worker_share: 0.2,
        worker_wait_share: 0.78,
        cpus: 2.0,
        others_cpus: 0.8,
        invalid: Some("host client1 read the end of the window 80 ms late".to_owned()),
        ..Truth::usual()
    };
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    run.cell(&[], std::slice::from_ref(&starved));
    let claims = |run: &MadeRun| -> Vec<String> {
        let findings = told(&run.recording)
            .into_iter()
            .filter(|one| matches!(one.kind, FindingKind::Limiter(_)));
        findings.map(|one| one.id).collect()
    };
    assert_eq!(claims(&run), ["one/limiter/other-programs"]);
    // A number that does not count has no limiter.
    let full = Truth {
        invalid: Some("settings were capped".to_owned()),
        ..Truth::stream(941e6)
    };
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    run.cell(&[], &[full]);
    assert_eq!(claims(&run), [""; 0]);
}

#[test]
fn the_path_of_a_far_client_is_no_stall() {
    let claims = |distances: Vec<f64>| {
        let workload = Workload {
            connections: 2,
            clients: 2,
            ..split()
        };
        let truth = Truth {
            min_rtt_ns: Some(200_000),
            distances,
            delayed_acks: Some(19.0),
            ..Truth::transactions(50_000_000)
        };
        let mut run = MadeRun::new(2, Some(1e9));
        run.experiment("one", None, workload);
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        let findings = told(&run.recording).into_iter();
        let claims = findings.map(|finding| finding.claim);
        claims.filter(|claim| claim.contains("Nagle")).count()
    };
    // Both are near, and half of what waits was counted; or one of them is 50 ms away.
    assert_eq!(claims(vec![1.0]), 1);
    assert_eq!(claims(vec![250.0]), 0);
}

/// Without the path's rate, what a slow line takes to carry a message looks like a queue, or a late answer.
#[test]
fn the_time_that_a_slow_line_takes_is_neither_queue_nor_application() {
    // 10 kB each way over 10 Mbit/s and 2 ms: the client's round trip has the line's time, the server's has not.
    let carried = Truth {
        rtt_ns: 8_120_000,
        server_rtt_ns: Some(3_470_000),
        min_rtt_ns: Some(2_250_000),
        delayed_acks: Some(0.0),
        worker_share: 0.02,
        worker_wait_share: 0.0,
        ..Truth::transactions(10_700_000)
    };
    let either = "Carrying messages of this size or the application";
    check_unknown(rr(5_000), carried.clone(), Limiter::RoundTrip, either);
    // Small messages are no time of any line: the server's answer is late.
    check_unknown(rr(200), carried, Limiter::Application, "The application");
    // One segment over 1 Mbit/s: 11.9 ms.
    let slow = Truth {
        rtt_ns: 14_500_000,
        server_rtt_ns: Some(14_500_000),
        min_rtt_ns: Some(2_300_000),
        delayed_acks: Some(0.0),
        worker_share: 0.02,
        worker_wait_share: 0.0,
        ..Truth::transactions(14_800_000)
    };
    let either = "A queue on the path or carrying messages of this size";
    check_unknown(rr(1_400), slow.clone(), Limiter::RoundTrip, either);
    check_unknown(
        rr(64),
        slow,
        Limiter::RoundTrip,
        "A queue on the path, or delay that varies, limits",
    );
}

#[test]
fn large_messages_over_a_path_that_loses_wait_for_what_is_sent_again() {
    let lossy = |lost_share| Truth {
        rtt_ns: 10_500_000,
        min_rtt_ns: Some(10_000_000),
        server_rtt_ns: Some(10_500_000),
        delayed_acks: Some(0.0),
        worker_share: 0.02,
        worker_wait_share: 0.0,
        lost_share,
        ..Truth::transactions(40_000_000)
    };
    let losing = "over a path that loses segments";
    check_unknown(rr(30_000), lossy(0.02), Limiter::RoundTrip, losing);
    check_unknown(
        rr(30_000),
        lossy(0.0),
        Limiter::RoundTrip,
        "Carrying messages of this size limits",
    );
}

#[test]
fn a_window_that_holds_a_part_of_a_message_is_the_receivers() {
    // 300 kB in windows of 39 kB over 10 ms: the end that sends waits for the window nearly all the time.
    let held = |rwnd_share, rtt_ns| Truth {
        rtt_ns,
        min_rtt_ns: Some(10_000_000),
        server_rtt_ns: Some(rtt_ns),
        delayed_acks: Some(0.0),
        worker_share: 0.02,
        worker_wait_share: 0.0,
        rwnd_share,
        ..Truth::transactions(160_000_000)
    };
    let window = "The receive window, which holds a part of such a message,";
    let near = 10_500_000;
    check_unknown(
        rr(150_000),
        held(0.95, near),
        Limiter::ReceiverWindow,
        window,
    );
    // The path has no room for more, or the window holds nothing.
    let carrying = "Carrying messages of this size";
    check_unknown(rr(150_000), held(0.1, near), Limiter::RoundTrip, carrying);
    let found = limiters(rr(150_000), &held(0.95, 40_000_000));
    assert!(
        found.iter().all(|one| one.0 != Limiter::ReceiverWindow),
        "{found:?}"
    );
}

#[test]
fn a_pause_that_was_asked_for_is_a_part_of_its_own() {
    let after = |pause_ms: u64, trip_ns: u64| {
        let mut workload = rr(200);
        workload.manner.think = Some(Nanos::from_ms(pause_ms));
        // As many as fit into a window with a pause before each.
        let count = WINDOW_NS / (trip_ns + pause_ms * 1_000_000);
        let truth = Truth {
            rtt_ns: 10_100_000,
            min_rtt_ns: Some(10_000_000),
            server_rtt_ns: Some(10_100_000),
            delayed_acks: Some(0.0),
            worker_share: 0.02,
            worker_wait_share: 0.0,
            latency: vec![(trip_ns, count)],
            ..Truth::transactions(trip_ns)
        };
        limiters(workload, &truth)
    };
    let [(limiter, claim)] = &after(30, 10_300_000)[..] else {
        panic!("one limits");
    };
    assert_eq!(*limiter, Limiter::Pacing);
    assert!(claim.contains("30 ms of the pause"), "{claim}");
    assert_eq!(after(4, 10_300_000)[0].0, Limiter::RoundTrip);
    // What sleeps during the pause is not told from the program that answers.
    assert_eq!(after(30, 90_000_000), []);
}

#[test]
fn an_exchange_of_steps_takes_the_path_for_each_answer() {
    let of = |words: &[&str], trip_ns: u64| {
        let steps = words.iter().map(|text| Step::named(text).expect("a step"));
        let mut workload = rr(200);
        workload.manner.steps = Some(steps.collect());
        let truth = Truth {
            rtt_ns: 10_100_000,
            min_rtt_ns: Some(10_000_000),
            server_rtt_ns: Some(10_100_000),
            delayed_acks: Some(0.0),
            worker_share: 0.02,
            worker_wait_share: 0.0,
            ..Truth::transactions(trip_ns)
        };
        limiters(workload, &truth)
    };
    let answers = [
        "send 50",
        "receive 100",
        "receive 50",
        "send 150",
        "receive 50",
    ];
    let found = of(&answers, 20_300_000);
    says(
        &found,
        Limiter::RoundTrip,
        "20 ms of path (TCP's shortest for each answer)",
    );
    // One answer does not explain as much; and pauses may be the whole of it.
    assert_eq!(
        of(&["send 200", "receive 200"], 40_300_000)[0].0,
        Limiter::Application
    );
    assert_eq!(
        of(
            &["send 200", "server pause 30ms", "receive 200"],
            40_300_000
        ),
        []
    );
}

#[test]
fn of_several_requests_under_way_only_the_path_is_told() {
    let under_way = |trip_ns: u64| {
        let mut workload = rr(200);
        workload.manner.in_flight = 16;
        let truth = Truth {
            rtt_ns: 5_050_000,
            min_rtt_ns: Some(5_000_000),
            server_rtt_ns: Some(5_050_000),
            delayed_acks: Some(0.0),
            worker_share: 0.1,
            worker_wait_share: 0.0,
            latency: vec![(trip_ns, 16 * WINDOW_NS / trip_ns)],
            ..Truth::transactions(trip_ns)
        };
        let found = limiters(workload, &truth);
        found.into_iter().map(|one| one.0).collect::<Vec<_>>()
    };
    assert_eq!(under_way(5_200_000), [Limiter::RoundTrip]);
    // Nagle's algorithm holds each request until those before it are acknowledged, and each response.
    assert_eq!(under_way(15_400_000), [Limiter::RoundTrip]);
    // What takes another time waits for something else.
    assert_eq!(under_way(13_000_000), []);
}

#[test]
fn what_nagle_holds_for_a_round_trip_is_no_application() {
    // The server acknowledges at once: the second piece goes out a round trip after the first.
    let held = Truth {
        rtt_ns: 10_100_000,
        delayed_acks: Some(0.0),
        worker_share: 0.01,
        ..Truth::transactions(24_000_000)
    };
    let mut quick = split();
    quick.options.delayed_ack = Some(false);
    check_unknown(
        quick.clone(),
        held.clone(),
        Limiter::RoundTrip,
        "once for what Nagle's algorithm holds",
    );
    // Others fill the path: both of its round trips wait.
    let queued = Truth {
        rtt_ns: 22_000_000,
        min_rtt_ns: Some(10_000_000),
        delayed_acks: Some(0.0),
        worker_share: 0.001,
        ..Truth::transactions(44_000_000)
    };
    check_unknown(
        quick.clone(),
        queued,
        Limiter::RoundTrip,
        "A queue on the path",
    );
    // One in five waits for what was sent again.
    let lossy = Truth {
        lost_share: 0.2,
        ..Truth::transactions(20_400_000)
    };
    let lossy = Truth {
        rtt_ns: 20_000_000,
        ..lossy
    };
    check_unknown(
        rr(200),
        lossy,
        Limiter::RoundTrip,
        "The path, which loses segments,",
    );
    // With Nagle off nothing holds it.
    quick.options.nagle = Some(false);
    check_unknown(
        quick,
        held,
        Limiter::Application,
        "The application that answers",
    );
}

#[test]
fn timers_of_other_connections_are_not_these_flows() {
    // Sixteen of 330 transactions take 180 ms longer (radio), and another connection's timers fired twenty times.
    let workload = rr(200);
    let mut spikes = MadeRun::new(1, Some(1e9));
    spikes.experiment("one", None, workload);
    let truth = Truth::timeouts(1_000_000, 0.05);
    spikes.cell(&[], &[truth.clone(), truth.clone(), truth]);
    let names_timeouts = |run: &MadeRun| {
        let mut found = told(&run.recording).into_iter();
        found.any(|finding| finding.kind == FindingKind::Limiter(Limiter::Timeouts))
    };
    assert!(names_timeouts(&spikes));
    let samples = std::mem::take(&mut spikes.recording.samples);
    let rested = samples.iter().map(|sample| match sample.metric {
        Metric::TcpRetrans => TrialSample { value: 0, ..sample },
        _ => sample,
    });
    spikes.recording.samples = rested.collect();
    assert!(!names_timeouts(&spikes));
}

#[test]
fn behind_something_that_ends_connections_nobody_blames_the_server() {
    // TCP ends 50 µs away, at a proxy, and answers come after 60 ms: so does the control connection's.
    let relayed = |uncertainty_ns: u64, control: Control| {
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, rr(200));
        let truth = Truth {
            rtt_ns: 60_000,
            delayed_acks: Some(0.0),
            ..Truth::transactions(60_000_000)
        };
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        for host in &mut run.recording.document.hosts {
            match host.part {
                HostPart::Server => host.clock.uncertainty_ns = uncertainty_ns,
                HostPart::Client => host.control = Some(control),
            }
        }
        let found = told(&run.recording).into_iter();
        let limiters = found.filter_map(|finding| match finding.kind {
            FindingKind::Limiter(limiter) => Some(limiter),
            _ => None,
        });
        limiters.collect::<Vec<_>>()
    };
    let here = Control::InProcess;
    assert_eq!(relayed(100_000, here), [Limiter::Application]);
    assert_eq!(relayed(30_000_000, here), [Limiter::RoundTrip]);
    // The controller is somewhere else, and so is what it sees.
    assert_eq!(relayed(30_000_000, Control::Tls), [Limiter::Application]);
}

#[test]
fn where_nothing_was_answered_there_is_no_rate() {
    let of = |truth: Truth| {
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, rr(1));
        run.cell(&[], &[truth]);
        let next = crate::as_single(&run.recording).next;
        (outcomes(&run.recording).remove(0).validity, next)
    };
    let none = Truth {
        latency: Vec::new(),
        ..Truth::usual()
    };
    let (validity, next) = of(none);
    assert_eq!(validity, Validity::Invalid(Reason::NoExchange));
    assert!(next.is_some_and(|next| next.contains("one request at a time")));
    let (validity, _) = of(Truth::transactions(400_000_000));
    assert_eq!(validity, Validity::Valid);
}
