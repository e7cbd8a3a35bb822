//! Request/response: what holds it, told by what only that cause leaves behind.

use linerate_model::step::Step;
use linerate_model::workload::Setting;

use crate::prelude::*;

fn split() -> Workload {
    written_in(rr(200), 2)
}

#[test]
fn a_queue_on_the_way_is_no_stall_of_nagle() {
    let queued =
        like!(Truth::transactions(300_000_000); min_rtt_ns: Some(MS), delayed_acks: Some(0.0));
    gigabit! {
        RoundTrip: (rr(200), &queued), claim "A queue on the path, or delay that varies, limits";
        RoundTrip: (split(), &queued), claim "A queue on the path, or delay that varies, limits";
    }
    // An end that was not read leaves a longer answer possible, up to the longest delayed ACK.
    let short = like!(Truth::transactions(100_000_000); min_rtt_ns: Some(MS));
    let mut run = once(GIGABIT, rr(200), &short);
    run.keep(|sample| !matches!(sample.subject, Subject::Flow(_, End::Server)));
    let claim = found(&run.recording, "one/limiter/round-trip");
    says!(claim.expect("the round trip is split").claim; "does not distinguish");
}

/// Connecting is a round trip, and request with response another; what is beyond has another cause.
#[test]
fn a_connection_for_each_request_takes_two_round_trips() {
    let connecting = |mean_ns: u64| {
        let (request_bytes, response_bytes) = (Bytes(1), Bytes(1));
        let traffic = Traffic::Crr {
            request_bytes,
            response_bytes,
        };
        let truth = like!(Truth::transactions(mean_ns); min_rtt_ns: Some(20 * MS));
        let mut run = run(like!(rr(200); traffic: traffic), &truth);
        // Of connections that are gone nothing is read but the shortest round trip.
        run.keep(|sample| {
            let is_of_flow = matches!(sample.subject, Subject::Flow(..));
            let is_tcp = sample.metric.name().starts_with("tcp_");
            !is_of_flow || !is_tcp || sample.metric == Metric::TcpMinRtt
        });
        run
    };
    worlds! {
        RoundTrip: connecting(41_000_000), claim "The path limits the rate to 24/s",
            claim "40 ms of path (twice TCP's shortest)";
        RoundTrip: connecting(120_000_000), claim "42.8 ms that none of this explains";
    }
}

#[test]
fn a_client_further_away_waits_for_nothing() {
    // One client is 0.2 ms away and makes 5000 transactions, the other 200 ms and makes 5.
    let truth = like!(Truth::usual(); latency: vec![(200_000, 5000), (200_000_000, 5)], rtt_ns: 200_000,
        distances: vec![1000.0], delayed_acks: Some(0.0), timeouts: Some(0.0));
    let mut run = run(like!(rr(200); connections: 2, clients: 2), &truth);
    for flow in &mut run.recording.flows {
        let own = if flow.flow.0 == 0 {
            (200_000, 5000)
        } else {
            (200_000_000, 5)
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
    says!(claim; begins "The path limits the rate");
}

#[test]
fn retransmission_timeouts_are_told_by_the_timers() {
    for share in [0.05, 0.2] {
        let slow = Truth::timeouts(1_000_000, share);
        gigabit! {
            Timeouts: (rr(200), &slow), claim "Retransmission timers hold up";
            Timeouts: (split(), &slow), claim "Retransmission timers hold up";
            /// The timers rested: something else is slow, and it has no name.
            none: (rr(200), like!(slow; timeouts: Some(0.0)));
        }
    }
}

#[test]
fn timeouts_behind_a_queue_that_others_fill_hold_nothing_up() {
    let held = |connections: u32, rtt_ns: i64| {
        let truth = like!(Truth::timeouts(5_000_000, 0.2); rtt_ns, min_rtt_ns: Some(50_000));
        (like!(rr(200); connections), truth)
    };
    gigabit! {
        /// One exchange in five waits for a timer, on a way whose shortest round trip is 50 µs.
        none: held(2, 4_200_000);
        /// Nobody fills it meanwhile where the flow is the only one, or no queue stands.
        Timeouts: held(1, 4_200_000);
        Timeouts: held(2, 60_000);
    }
}

#[test]
fn who_answers_late_is_told_from_what_holds_an_answer() {
    let thinks = like!(Truth::transactions(50_000_000); rtt_ns: 60_000);
    let timed = like!(thinks; delayed_acks: Some(0.0));
    let stalled = like!(Truth::transactions(44_000_000); rtt_ns: 60_000, delayed_acks: Some(22.0));
    let corked =
        like!(Truth::transactions(100_000_000); rtt_ns: 2_200_000, delayed_acks: Some(0.0));
    let far = like!(Truth::transactions(20_000_000); min_rtt_ns: Some(19_900_000), delayed_acks: Some(0.0),
        timeouts: Some(0.0), worker_share: 0.01, worker_wait_share: 0.0, throttled: Some(0.0));
    let near = like!(Truth::transactions(50_000); rtt_ns: 15_000, min_rtt_ns: Some(11_000), worker_share: 0.6,
        delayed_acks: Some(0.0));
    gigabit! {
        // A server that thinks is an application.
        Application: (rr(200), timed), claim "The application that answers limits";
        Application: (rr(200), &thinks), claim "The application that answers limits";
        /// The client's round trip holds the answer's time, since the acknowledgement rides on it; the
        /// server's does not.
        Application: (rr(200), like!(Truth::transactions(20_000_000); rtt_ns: 20 * MS, min_rtt_ns: Some(60_000),
            server_rtt_ns: Some(70_000), delayed_acks: Some(0.0))), claim "The application";
        /// A split request may wait for a delayed ACK; without its counter nobody knows.
        RoundTrip: (split(), &thinks), claim "or a delayed ACK";

        // Nagle needs two writes and the timer.
        NagleDelayedAck: (split(), &stalled), claim "44 ms";
        Application: (rr(200), &stalled);
        Application: (split(), like!(stalled; delayed_acks: Some(0.0)));
        /// Twice as many as stalls come of other traffic, or of something else.
        Application: (split(), like!(stalled; delayed_acks: Some(60.0)));
        Application: (like!(split(); options.nagle: Some(false)), &stalled);

        // A cork is no application.
        RoundTrip: (like!(rr(100); options.cork: Some(true)), &corked), claim "TCP_CORK";
        Application: (rr(100), &corked), claim "The application";

        // A healthy exchange is split.
        /// A path of 20 ms, both ends at rest.
        RoundTrip: (rr(200), far), claim "The path limits";
        /// Two hosts on one switch: the work of both ends is most of it. Rate × round trip = connections is no claim.
        RoundTrip: (rr(200), near), claim "The work of both ends limits", claim "11 µs of path", no "allow";

    }
}

#[test]
fn cpus_that_a_worker_did_not_get_are_told_apart() {
    let waits = like!(Truth::usual(); worker_share: 0.35, worker_wait_share: 0.6);
    let others = like!(waits; cpus: 2.0, others_cpus: 0.9);
    let full = like!(Truth::usual(); cpus: 1.99, worker_share: 0.85, worker_wait_share: 0.14);
    // A third of them is others', or next to nothing.
    let shared =
        |others_cpus: f64| like!(full; others_cpus, worker_share: 0.77, worker_wait_share: 0.23);
    let pinned = || {
        let mut run = thrice(GIGABIT, stream(), &waits);
        for flow in &mut run.recording.flows {
            let settings = flow.outcome.settings.into_iter().cloned();
            let placed = Setting::granted("placement", Some("CPU 0".to_owned()), None);
            flow.outcome.settings = settings.chain([placed]).collect();
        }
        run
    };
    gigabit! {
        OtherPrograms: &others, claim "ther programs have";
        OtherPrograms: (rr(200), like!(others; latency: Truth::transactions(50_000).latency)),
            claim "ther programs have";
        Cpu: &full, claim "All CPUs are full";
        OtherPrograms: shared(0.67), claim "All CPUs are full, and other programs used 0.67";
        Cpu: shared(0.1), claim "All CPUs are full";
        /// Other programs have the other CPUs, and the worker one to itself.
        Generator: like!(full; others_cpus: 0.97, worker_share: 0.95, worker_wait_share: 0.04),
            claim "ran 95 % of the time";
        /// The hypervisor took most of the time: that is not the host's own work.
        Cpu: like!(Truth::usual(); cpus: 0.5, stolen_share: 0.72, worker_share: 0.46, worker_wait_share: 0.5),
            claim "the hypervisor took 72 % of it (steal) and 25 % was used";
        /// CPUs are idle, and nobody says why the worker waited.
        CpuQuota: &waits, claim "A CPU quota, or CPUs that it may not use";
        /// The caller had chosen the CPUs.
        Cpu: pinned(), claim "pinned to (-A) are full", next "without `-A`";
        /// Who waits that long waits for somebody, and the generator is not to be blamed for it.
        CpuQuota: like!(waits; worker_share: 0.08, worker_wait_share: 0.91), claim "waited for a CPU 91 % of the time";
        CpuQuota: like!(waits; throttled: Some(0.8)), claim "throttled in 80 % of its periods";
        /// The group was never throttled: the workers wait for one another.
        Generator: like!(waits; throttled: Some(0.0), worker_share: 0.4),
            claim "ran 40 % of the time and waited for a CPU 60 %";
        /// A saturated worker beside free CPUs is the generator.
        Generator: like!(Truth::usual(); worker_share: 0.98, cpus: 1.2), claim "ran 98 % of the time";
    }
    // Chosen at one end only, it may be the other's that waits for something else.
    let mut at_client = pinned();
    for flow in &mut at_client.recording.flows {
        if flow.end == End::Server {
            flow.outcome.settings = Default::default();
        }
    }
    let quota = told(&at_client.recording).into_iter();
    let quota = quota.filter(|finding| finding.kind == FindingKind::Limiter(Limiter::CpuQuota));
    assert_eq!(quota.count(), 1);
}

#[test]
fn a_run_whose_only_trial_is_invalid_is_diagnosed() {
    let starved = like!(Truth::usual(); worker_share: 0.2, worker_wait_share: 0.78, cpus: 2.0, others_cpus: 0.8,
        invalid: Some("host client1 read the end of the window 80 ms late".to_owned()));
    let full = like!(Truth::stream(941e6); invalid: Some("settings were capped".to_owned()));
    worlds! {
        OtherPrograms: once(GIGABIT, stream(), &starved);
        /// A number that does not count has no limiter.
        none: once(GIGABIT, stream(), &full);
    }
}

#[test]
fn the_path_of_a_far_client_is_no_stall() {
    let claims = |distances: Vec<f64>| {
        let truth = like!(Truth::transactions(50_000_000); min_rtt_ns: Some(200_000), distances,
            delayed_acks: Some(19.0));
        let run = thrice(GIGABIT, like!(split(); connections: 2, clients: 2), &truth);
        let claims = told(&run.recording).into_iter().map(|it| it.claim);
        claims.filter(|claim| claim.contains("Nagle")).count()
    };
    // Both are near, and half of what waits was counted; or one of them is 50 ms away.
    assert_eq!(claims(vec![1.0]), 1);
    assert_eq!(claims(vec![250.0]), 0);
}

/// An exchange over a path of `min_rtt_ns` between ends that rest, whose round trips of TCP are these.
fn resting(mean_ns: u64, min_rtt_ns: i64, rtt_ns: i64, server_rtt_ns: i64) -> Truth {
    like!(Truth::transactions(mean_ns); rtt_ns, min_rtt_ns: Some(min_rtt_ns), server_rtt_ns: Some(server_rtt_ns),
        delayed_acks: Some(0.0), worker_share: 0.02, worker_wait_share: 0.0)
}

#[test]
fn large_messages_wait_for_the_line_for_losses_or_for_the_window() {
    let carried = resting(10_700_000, 2_250_000, 8_120_000, 3_470_000);
    let slow = resting(14_800_000, 2_300_000, 14_500_000, 14_500_000);
    let large = resting(40_000_000, 10 * MS, 10_500_000, 10_500_000);
    let held =
        |rwnd_share, rtt_ns| like!(resting(160_000_000, 10 * MS, rtt_ns, rtt_ns); rwnd_share);
    worlds! {
        // Without the path's rate, what a slow line takes to carry a message looks like a queue, or a late answer.
        /// 10 kB each way over 10 Mbit/s and 2 ms: the client's round trip has the line's time, the server's has not.
        RoundTrip: (rr(5_000), &carried), claim "Carrying messages of this size or the application";
        /// Small messages are no time of any line: the server's answer is late.
        Application: (rr(200), &carried), claim "The application";
        /// One segment over 1 Mbit/s: 11.9 ms.
        RoundTrip: (rr(1_400), &slow), claim "A queue on the path or carrying messages of this size";
        RoundTrip: (rr(64), &slow), claim "A queue on the path, or delay that varies, limits";

        // Large messages over a path that loses wait for what is sent again.
        RoundTrip: (rr(30_000), like!(large; lost_share: 0.02)), claim "over a path that loses segments";
        RoundTrip: (rr(30_000), &large), claim "Carrying messages of this size limits";

        // A window that holds a part of a message is the receivers.
        /// 300 kB in windows of 39 kB over 10 ms: the end that sends waits for the window nearly all the time.
        ReceiverWindow: (rr(150_000), held(0.95, 10_500_000)),
            claim "The receive window, which holds a part of such a message,";
        /// The path has no room for more, or the window holds nothing.
        RoundTrip: (rr(150_000), held(0.1, 10_500_000)), claim "Carrying messages of this size";
        not ReceiverWindow: thrice(GIGABIT, rr(150_000), &held(0.95, 40 * MS));

    }
}

#[test]
fn pauses_steps_and_several_requests_are_parts_of_their_own() {
    let after = |pause_ms: u64, trip_ns: u64| {
        // As many as fit into a window with a pause before each.
        let count = WINDOW_NS / (trip_ns + pause_ms * 1_000_000);
        let truth = resting(trip_ns, 10 * MS, 10_100_000, 10_100_000);
        let workload = like!(rr(200); manner.think: Some(Nanos::from_ms(pause_ms)));
        (workload, like!(truth; latency: vec![(trip_ns, count)]))
    };
    let of = |words: &[&str], trip_ns: u64| {
        let steps = words.iter().map(|text| Step::named(text).expect("a step"));
        let workload = like!(rr(200); manner.steps: Some(steps.collect()));
        (workload, resting(trip_ns, 10 * MS, 10_100_000, 10_100_000))
    };
    let under_way = |trip_ns: u64| {
        let truth = like!(resting(trip_ns, 5 * MS, 5_050_000, 5_050_000); worker_share: 0.1,
            latency: vec![(trip_ns, 16 * WINDOW_NS / trip_ns)]);
        (like!(rr(200); manner.in_flight: 16), truth)
    };
    gigabit! {
        // A pause that was asked for is a part of its own.
        Pacing: after(30, 10_300_000), claim "30 ms of the pause";
        RoundTrip: after(4, 10_300_000);
        /// What sleeps during the pause is not told from the program that answers.
        none: after(30, 90_000_000);

        // An exchange of steps takes the path for each answer.
        RoundTrip: of(&["send 50", "receive 100", "receive 50", "send 150", "receive 50"], 20_300_000),
            claim "20 ms of path (TCP's shortest for each answer)";
        /// One answer does not explain as much; and pauses may be the whole of it.
        Application: of(&["send 200", "receive 200"], 40_300_000);
        none: of(&["send 200", "server pause 30ms", "receive 200"], 40_300_000);

        // Of several requests under way only the path is told.
        RoundTrip: under_way(5_200_000);
        /// Nagle's algorithm holds each request until those before it are acknowledged, and each response.
        RoundTrip: under_way(15_400_000);
        /// What takes another time waits for something else.
        none: under_way(13_000_000);

    }
}

#[test]
fn what_nagle_holds_for_a_round_trip_is_no_application() {
    let held = like!(Truth::transactions(24_000_000); rtt_ns: 10_100_000, delayed_acks: Some(0.0), worker_share: 0.01);
    let quick = like!(split(); options.delayed_ack: Some(false));
    worlds! {
        /// The server acknowledges at once: the second piece goes out a round trip after the first.
        RoundTrip: (&quick, &held), claim "once for what Nagle's algorithm holds";
        /// Others fill the path: both of its round trips wait.
        RoundTrip: (&quick, like!(Truth::transactions(44_000_000); rtt_ns: 22 * MS, min_rtt_ns: Some(10 * MS),
            delayed_acks: Some(0.0), worker_share: 0.001)), claim "A queue on the path";
        /// One in five waits for what was sent again.
        RoundTrip: (rr(200), like!(Truth::transactions(20_400_000); lost_share: 0.2, rtt_ns: 20 * MS)),
            claim "The path, which loses segments,";
        /// With Nagle off nothing holds it.
        Application: (like!(quick; options.nagle: Some(false)), &held), claim "The application that answers";
    }
}

#[test]
fn timers_of_other_connections_are_not_these_flows() {
    // Sixteen of 330 transactions take 180 ms longer (radio), and another connection's timers fired twenty times.
    let spikes = thrice(GIGABIT, rr(200), &Truth::timeouts(1_000_000, 0.05));
    let mut rested = thrice(GIGABIT, rr(200), &Truth::timeouts(1_000_000, 0.05));
    rested.set(Metric::TcpRetrans, |_| 0);
    worlds! {
        Timeouts: spikes;
        not Timeouts: rested;
    }
}

#[test]
fn behind_something_that_ends_connections_nobody_blames_the_server() {
    // TCP ends 50 µs away, at a proxy, and answers come after 60 ms: so does the control connection's.
    let relayed = |uncertainty_ns: u64, control: Control| {
        let truth = like!(Truth::transactions(60_000_000); rtt_ns: 60_000, delayed_acks: Some(0.0));
        let mut run = run(rr(200), &truth);
        for host in &mut run.recording.document.hosts {
            match host.part {
                HostPart::Server => host.clock.uncertainty_ns = uncertainty_ns,
                HostPart::Client => host.control = Some(control),
            }
        }
        run
    };
    worlds! {
        Application: relayed(100_000, Control::InProcess);
        RoundTrip: relayed(30_000_000, Control::InProcess);
        /// The controller is somewhere else, and so is what it sees.
        Application: relayed(30_000_000, Control::Tls);
    }
}

#[test]
fn where_nothing_was_answered_there_is_no_rate() {
    let of = |truth: Truth| {
        let run: MadeRun = once(None, rr(1), &truth);
        (outcomes(&run.recording).remove(0).validity, next_of(&run))
    };
    let (validity, next) = of(like!(Truth::usual(); latency: Vec::new()));
    assert_eq!(validity, Validity::Invalid(Reason::NoExchange));
    says!(next; "one request at a time");
    let (validity, _) = of(Truth::transactions(400_000_000));
    assert_eq!(validity, Validity::Valid);
}
