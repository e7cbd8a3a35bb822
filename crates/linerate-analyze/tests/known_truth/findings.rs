//! Each finding where it must be and where it must not.

use linerate_model::flag::Note;
use linerate_model::manner::WaitBy;
use linerate_model::run::ZeroCopyCount;
use linerate_model::shortfall::{ConnectionCount, RequestCount};

use crate::prelude::*;

#[test]
fn each_limiter_is_named_where_it_is_and_not_where_it_is_not() {
    let limited =
        like!(Truth::stream(12.5e6); window_bytes: 16_384, rtt_ns: 10 * MS, rwnd_share: 0.97);
    let full = like!(Truth::stream(14.857e6); window_bytes: 20_480, unacked: 14, rtt_ns: 10_453_762,
        rwnd_share: 0.316, sndbuf_share: 0.124, busy_share: 1.0, cwnd: 43);
    let waiting = like!(Truth::stream(100e6); sndbuf_share: 0.8, busy_share: 1.0);
    let held = like!(Truth::stream(115e6); cwnd: 10, rtt_ns: MS, busy_share: 1.0);
    gigabit! {
        // Nothing limits an idle path.
        none: Truth::usual();

        // A full link is named.
        LinkRate: Truth::stream(941e6);
        none: Truth::stream(920e6);
        /// A queue in front of a full link makes the window run out too; the link is the limiter.
        LinkRate: like!(Truth::stream(941e6); rwnd_share: 0.9, rtt_ns: 8_914_000);
        /// Frames with 100 B fill the link at 100 / 190 of its rate.
        LinkRate: like!(Truth::stream(525e6); payload_bytes: 100.0);
        /// A link of unknown rate is never full.
        none: once(None, stream(), &Truth::stream(941e6));

        // The receivers window is named.
        /// 16 KiB over 10 ms: 13.1 Mbit/s.
        ReceiverWindow: &limited;
        /// As seen with buffers of 16 KiB at both ends and 5 ms each way: 14 segments fill the window,
        /// and the kernel's clock runs for a third of the time.
        ReceiverWindow: &full;
        none: like!(full; unacked: 5);
        /// The arithmetic does not fit: something else makes the window run out.
        none: like!(limited; throughput_bps: 5e6);
        /// The sender did not wait for the window.
        none: like!(limited; rwnd_share: 0.2, unacked: 5);
        /// A reader that cannot keep up shrinks the window; its worker is the limiter.
        Generator: like!(limited; worker_share: 0.99);
        /// Windows of several flows add up.
        ReceiverWindow: (like!(stream(); connections: 4), like!(limited; throughput_bps: 4.0 * 13e6));

        // The send buffer is named.
        /// Whoever waits for room in the buffer has data outstanding.
        SendBuffer: &waiting;
        none: like!(waiting; sndbuf_share: 0.3);

        // Loss is named.
        /// Without a pause: idle time is not the congestion window's.
        CongestionWindow: like!(Truth::stream(100e6); lost_share: 0.01, rtt_ns: 10 * MS, busy_share: 1.0);
        none: like!(Truth::stream(100e6); lost_share: 0.0001);
        /// Ten segments of 1448 B over 1 ms: 115.8 Mbit/s, always busy.
        CongestionWindow: &held;
        none: like!(held; cwnd: 40);
        /// Beside a roomy congestion window: a hundred segments over 100 µs allow 11.6 Gbit/s.
        none: like!(Truth::stream(100e6); lost_share: 0.01);

        // The generator is named.
        Generator: like!(Truth::usual(); worker_share: 0.96);
        /// It waited beside idle CPUs: what kept it from them is no weakness of the generator.
        CpuQuota: like!(Truth::usual(); worker_share: 0.6, worker_wait_share: 0.37);
        none: like!(Truth::usual(); worker_share: 0.9);
        /// A saturated worker does not matter where the link is full.
        LinkRate: like!(Truth::stream(941e6); worker_share: 0.99);

        // The round trip is named.
        RoundTrip: (rr(4), Truth::transactions(50_000));
        /// A path as long as the timer is no stall.
        RoundTrip: (written_in(rr(200), 2), like!(Truth::transactions(44_000_000); delayed_acks: Some(22.0)));

    }
}

#[test]
fn an_algorithm_that_paces_itself_is_named() {
    let paced = like!(Truth::stream(400e6); pacing_bps: Some(405e6), congestion: Some("bbr"), busy_share: 0.97);
    let bursts = like!(paced; pacing_bps: Some(900e6));
    gigabit! {
        /// As seen on loopback with bbr, where cubic gets three times as much.
        Pacing: &paced;
        Pacing: (like!(stream(); connections: 4), &paced);
        /// Loss does not shrink its window, but may be what a path drops that is full.
        Pacing: like!(paced; lost_share: 0.0001);
        none: like!(paced; lost_share: 0.01);
        /// cubic reports a rate too, and nobody holds it to that.
        none: like!(paced; congestion: Some("cubic"));
        /// It would allow twice as much, but sends in bursts, and nothing else holds it: 100 segments in
        /// flight over 100 µs are 11.6 Gbit/s.
        Pacing: &bursts;
        /// The worker waited for a CPU, or the window may be what holds.
        none: like!(bursts; worker_wait_share: 0.5);
        none: like!(bursts; cwnd: 5);
        /// It would allow four times as much.
        none: like!(bursts; pacing_bps: Some(1600e6));
        /// The application had nothing to send for most of the time.
        none: like!(paced; busy_share: 0.3);
        /// What else holds the sender is what bbr measures.
        LinkRate: like!(paced; throughput_bps: 941e6, pacing_bps: Some(950e6));
        Generator: like!(paced; worker_share: 0.99);
        SendBuffer: like!(paced; sndbuf_share: 0.8);
    }
    // The rate is that of an agent which allows no more, and bbr has no part in it.
    let mut run = thrice(GIGABIT, stream(), &paced);
    for trial in &mut run.recording.trials {
        trial.flags.push(TrialFlag::Noted {
            host: "server".into(),
            note: Note::RateLimit(BitsPerSec(400e6)),
        });
    }
    let [(Limiter::Pacing, _)] = &limiters(&run.recording)[..] else {
        panic!("the agent's limit is named");
    };
    says!(told(&run.recording)[0].claim; begins "The agent's limit is what holds: 400");
    says!(next_of(&run); "token");
    // What was asked for is less than that: a token changes nothing.
    for trial in &mut run.recording.document.plan.trials {
        trial.workload.manner.rate_bps = Some(400_000_000);
    }
    says!(next_of(&run); "omit the rate");
}

#[test]
fn a_saturated_worker_under_an_algorithm_that_paces_is_told_of_it() {
    let slow =
        |congestion| like!(Truth::stream(400e6); worker_share: 0.99, congestion: Some(congestion));
    let claim = |congestion| {
        let run = thrice(GIGABIT, stream(), &slow(congestion));
        let mut of_worker = limiters(&run.recording).into_iter();
        let of_worker = of_worker.find(|(limiter, _)| *limiter == Limiter::Generator);
        of_worker.expect("the worker limits").1.claim
    };
    says!(claim("bbr"); "bbr paces", "-C reno");
    says!(claim("cubic"); no "paces");
}

#[test]
fn a_rate_that_was_asked_for_is_named() {
    let asked = |bitrate: Option<u64>, fq_rate: Option<u64>, connections| like!(stream(); connections, manner.rate_bps: bitrate, options.pacing_bps: fq_rate);
    let truth = Truth::stream(100e6);
    let exchange = Truth::transactions(50_000);
    let count: u64 = exchange.latency.iter().map(|(_, count)| count).sum();
    let open = |times: u32| like!(rr(4); manner.requests_per_s: Some(times * count as u32));
    gigabit! {
        Pacing: (asked(Some(100_000_000), None, 1), &truth);
        Pacing: (asked(Some(25_000_000), None, 4), &truth);
        Pacing: (asked(None, Some(105_000_000), 1), &truth);
        /// The lower one holds.
        Pacing: (asked(Some(1_000_000_000), Some(105_000_000), 1), &truth);
        /// More was asked for than came.
        none: (asked(Some(200_000_000), None, 1), &truth);
        none: (asked(Some(100_000_000), None, 4), &truth);
        /// Nobody kept to it.
        none: (asked(Some(10_000_000), None, 1), &truth);
        /// bbr follows what the pacer gives it.
        Pacing: (asked(Some(100_000_000), None, 1),
            like!(truth; pacing_bps: Some(100e6), congestion: Some("bbr")));
        Pacing: (open(1), &exchange);
        none: (open(2), &exchange);
    }
}

/// Latencies of an open loop at 5000 requests a second, whose period is 200 µs, in half a second.
#[test]
fn responses_that_wait_for_the_next_request_are_told_apart_from_slow_ones() {
    let waits = |latency_us: u64, tcp_us: i64, nagle: Option<bool>| {
        let workload = like!(rr(4); manner.requests_per_s: Some(5000), options.nagle: nagle);
        let truth =
            like!(Truth::usual(); latency: vec![(latency_us * 1000, 2500)], rtt_ns: tcp_us * 1000);
        let run = thrice(GIGABIT, workload, &truth);
        found(&run.recording, "response-waits").map(|one| one.claim)
    };
    let claim = waits(245, 45, Some(true)).expect("one period and the round trip");
    says!(claim; "245", "200 µs");
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
        let workload = like!(rr(4); connections: 4, manner.requests_per_s: Some(5000), options.nagle: Some(true));
        let truth = like!(Truth::usual(); latency: vec![(60_000, 2500)], rtt_ns: 45_000);
        let mut run = thrice(GIGABIT, workload, &truth);
        let flows = run.recording.flows.iter_mut();
        let held = flows.filter(|flow| flow.flow.0 == 2);
        for latency in held.filter_map(|flow| flow.outcome.latency.as_mut()) {
            latency.buckets = vec![(held_us * 1000, 2500)];
        }
        found(&run.recording, "response-waits").map(|one| one.claim)
    };
    says!(waits(245).expect("one of four"); "245 µs", "200 µs");
    assert_eq!(waits(60), None, "as the others");
    assert_eq!(waits(700), None, "slower than the next request");
}

#[test]
fn a_generator_that_is_late_is_told_where_it_makes_the_tail() {
    let told = |late_us: u64, tail_us: u64, wait: WaitBy| {
        let workload = like!(rr(4); manner.requests_per_s: Some(5000), manner.wait: wait);
        // Nobody else has CPU time worth a word.
        let truth = like!(Truth::usual(); latency: vec![(tail_us * 1000, 2500)],
            lateness: vec![(2_000, 2000), (late_us * 1000, 500)], cpus: 0.1);
        let run = thrice(GIGABIT, workload, &truth);
        found(&run.recording, "generator-late")
    };
    let late = told(400, 1000, WaitBy::Auto).expect("two fifths of the tail");
    says!(late.claim; "400 µs", "40 %");
    says!(late.explanation; "--busy-poll");
    says!(late.action.unwrap_or_default(); "--busy-poll");
    assert!(told(199, 1000, WaitBy::Auto).is_none(), "less than a fifth");
    let is_so = told(99, 100, WaitBy::Auto).is_none();
    assert!(is_so, "as any host wakes a thread");
    let late = told(400, 1000, WaitBy::Spin).expect("late all the same");
    // It does so already.
    says!(late.explanation; no "--busy-poll");
}

#[test]
fn zero_copy_that_copies_is_a_caution() {
    let cautions = |zero_copy: Option<ZeroCopyCount>| {
        let run = thrice(GIGABIT, stream(), &like!(Truth::usual(); zero_copy));
        let of_copies = told(&run.recording).into_iter();
        let of_copies = of_copies.filter(|finding| finding.id == "run/caution/zero-copy");
        of_copies.map(|finding| finding.claim).collect::<Vec<_>>()
    };
    let of_800 = |copied| Some(ZeroCopyCount { done: 800, copied });
    let claim = "MSG_ZEROCOPY fell back to copying for 99 % of the data.";
    assert_eq!(cautions(of_800(792)), [claim]);
    for none in [of_800(0), Some(ZeroCopyCount::default()), None] {
        assert_eq!(cautions(none), [""; 0]);
    }
}

/// A run of split requests, those of the study's `chapter` or of a user's file, in which each combination
/// takes what `rtt_ns` says.
fn split_requests(chapter: Option<u32>, rtt_ns: impl Fn(bool, bool) -> u64) -> Recording {
    let mut run = begun(GIGABIT, "split-request", chapter, rr(200));
    for nagle in [true, false] {
        for ack in [true, false] {
            let mut levels = switches(nagle, ack).to_vec();
            levels.push((Factor::RequestWrites, Level::Count(2)));
            let truth = like!(Truth::transactions(rtt_ns(nagle, ack)); rtt_ns: 50_000);
            run.alike(&levels, &truth);
        }
    }
    run.recording
}

fn stalled(nagle: bool, ack: bool) -> u64 {
    if nagle && ack { 44_000_000 } else { 60_000 }
}

#[test]
fn a_stall_is_proven_by_toggling() {
    let recording = split_requests(Some(9), stalled);
    let analysis = analyze(&recording);
    let stall = &analysis.findings[0];
    assert_eq!(stall.kind, FindingKind::Limiter(Limiter::NagleDelayedAck));
    says!(stall.claim; "44 ms", "60 µs", "Nagle off");
    let is_so = (stall.effect.value - 43.94e6).abs() < 1e3;
    assert!(is_so, "{:?}", stall.effect);
    let mut chapters = analysis.chapters.iter();
    let chapter = chapters.find(|one| one.title == "split-request");
    let answer = chapter.and_then(|one| one.answer.as_deref());
    says!(answer.unwrap_or_default();
        begins "A request in 2 writes takes 44 ms on average with Nagle on, delayed ACK on");
    // That requests come in two writes is the study's own doing, which says nothing of the hosts: what ends
    // the wait stands in the chapter, and is recommended to whoever measures such traffic for its own sake.
    assert_eq!(analysis.recommendations, []);
    let consequence = chapter.and_then(|one| one.consequence.as_deref());
    says!(consequence.unwrap_or_default(); "TCP_NODELAY");
    let analysis = analyze(&split_requests(None, stalled));
    let stall = &analysis.findings[0];
    let [advice] = analysis.recommendations.as_slice() else {
        panic!("{:?}", analysis.recommendations);
    };
    assert_eq!(advice.finding, stall.id);
    says!(advice.action; begins "In programs that write a request in pieces");
    let predicted = "A median round trip of 60 µs instead of 44 ms, as measured.";
    assert_eq!(advice.predicted, predicted);
}

#[test]
fn cautions_are_raised_only_with_cause() {
    let three =
        |share: f64| [1.0 - share, 1.0, 1.0 + share].map(|share| Truth::stream(500e6 * share));
    let ids = |truths: &[Truth], change: &dyn Fn(&mut MadeRun)| -> Vec<String> {
        let mut run = trials(GIGABIT, stream(), truths);
        change(&mut run);
        let cautions = told(&run.recording).into_iter();
        let cautions = cautions.filter(|finding| finding.kind == FindingKind::Caution);
        cautions.map(|finding| finding.id).collect()
    };
    let as_it_is = |_: &mut MadeRun| ();
    assert_eq!(ids(&three(0.01), &as_it_is), [""; 0]);
    assert_eq!(ids(&three(0.1), &as_it_is), ["one/caution/noise"]);
    // The one measurement of a run has no name that says anything.
    let noisy = trials(GIGABIT, stream(), &three(0.1));
    says!(found(&noisy.recording, "one/caution/noise").expect("a caution").claim; ends " %).");
    let two = ids(&three(0.01)[..2], &as_it_is);
    assert_eq!(two, ["run/caution/replicates"]);
    let late = like!(Truth::usual(); skew_ns: 60_000_000);
    let late = [late.clone(), late.clone(), late];
    assert_eq!(ids(&late, &as_it_is), ["run/caution/start-skew"]);
    let invalid = like!(Truth::usual(); invalid: Some("client1 vanished".to_owned()));
    let with_invalid = [three(0.0).to_vec(), vec![invalid]].concat();
    assert_eq!(ids(&with_invalid, &as_it_is), ["run/caution/invalid"]);
    let shared = ids(&three(0.0), &|run| {
        in_lab(run);
    });
    assert_eq!(shared, ["run/caution/shared-cpus"]);
    let capped = ids(&three(0.0), &|run| {
        for flow in &mut run.recording.flows {
            let mut settings: Vec<_> = flow.settings.into_iter().cloned().collect();
            settings[0].capped_by = Some("net.core.rmem_max = 212992".to_owned());
            flow.outcome.settings = settings.into();
        }
    });
    assert_eq!(capped, ["run/caution/capped/1"]);
    let made = |made, failed, why: Option<&str>| {
        let last_failure = why.map(str::to_owned);
        Some(Box::new(ConnectionCount {
            made,
            failed,
            last_failure,
        }))
    };
    let nothing_is_missing = ids(&three(0.0), &|run| {
        for flow in &mut run.recording.flows {
            flow.outcome.requests = Some(RequestCount { due: 9, sent: 9 });
            flow.outcome.connections = made(9, 0, None);
        }
    });
    assert_eq!(nothing_is_missing, [""; 0]);
    let short = ids(&three(0.0), &|run| {
        let first = &mut run.recording.flows[0].outcome;
        first.requests = Some(RequestCount { due: 9, sent: 7 });
        first.connections = made(7, 2, Some("connecting failed"));
    });
    let expected = ["requests", "connections"].map(|what| format!("run/caution/short/{what}"));
    assert_eq!(short, expected);
}

#[test]
fn a_stall_is_found_in_windows_too_short_for_a_median() {
    // Nine transactions of 44 ms in a window of 0.4 s, three times: a median of all 27.
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
    let of = (waiting.what.as_str(), waiting.estimate.n);
    assert_eq!(of, ("median round trip", 3));
    // Of a single trial only the mean is left.
    let single = waiting.trials[0];
    let is_left = |trial: TrialId| trial == single || trial.0 > 3;
    recording.trials.retain(|record| is_left(record.trial));
    let stall = &analyze(&recording).findings[0];
    assert_eq!(stall.evidence.as_slice()[0].what, "mean round trip");
}

fn in_lab(run: &mut MadeRun) {
    for host in &mut run.recording.document.hosts {
        host.lab = true;
    }
}

/// A lab in which replicates of one cell take 20 µs or 60 µs; `apart` says which of them ran with
/// their ends on two CPUs.
fn placed(rtts_ns: &[u64], apart: &[bool]) -> Recording {
    placed_in_cells(rtts_ns, apart, rtts_ns.len())
}

/// The same in cells of so many replicates.
fn placed_in_cells(rtts_ns: &[u64], apart: &[bool], replicates: usize) -> Recording {
    let mut run = begun(GIGABIT, "latency", None, rr(1));
    let truths = rtts_ns.iter().copied().map(Truth::transactions);
    let truths: Vec<Truth> = truths.collect();
    for (at, truths) in (0..).zip(truths.chunks(replicates)) {
        let level = (Factor::RequestBytes, size(1 + at));
        let levels = if replicates < rtts_ns.len() {
            vec![level]
        } else {
            Vec::new()
        };
        run.cell(&levels, truths);
    }
    in_lab(&mut run);
    for flow in &mut run.recording.flows {
        let two = apart[flow.trial.0 as usize - 1];
        flow.outcome.cpu = Some(u32::from(two && flow.end == End::Client));
    }
    run.recording
}

fn placement_effect(recording: &Recording) -> Option<f64> {
    Some(found(recording, "latency/placement")?.effect.value)
}

#[test]
fn placement_that_decides_the_rate_is_named() {
    let of = |rtts_ns: &[u64], apart: &[bool]| placement_effect(&placed(rtts_ns, apart));
    let in_turn = [false, true, false, true];
    let mut mixed = placed(&[20_000, 60_000, 20_000, 60_000], &in_turn);
    let effect = placement_effect(&mixed).expect("both placements were seen");
    assert!((effect - 3.0).abs() < 0.01, "{effect}");
    let near = of(&[20_000, 21_000, 20_000, 21_000], &in_turn);
    assert_eq!(near, None, "5 % is noise");
    let but_one = [false, false, true, true, true];
    let mixed_up = of(&[28_000, 55_000, 55_000, 54_000, 52_000], &but_one);
    assert_eq!(mixed_up, None, "one trial is no proof");
    let once = of(&[20_000, 60_000], &[false, true]);
    assert_eq!(once, None, "nothing tells the spread");
    // Two cells that agree in which is faster, and not in how much: ± 2.5 around 0.6 in logarithms.
    let cells = [1.5, 2.2].map(|factor| (20_000.0 * factor) as u64);
    let cells = cells.map(|apart| [20_000, 20_000, apart, apart]).concat();
    let two_cells = placed_in_cells(&cells, &[false, false, true, true].repeat(2), 4);
    assert_eq!(placement_effect(&two_cells), None, "two are a range");
    let pinned = of(&[60_000, 60_000, 20_000], &[true; 3]);
    assert_eq!(pinned, None, "one placement only");
    for host in &mut mixed.document.hosts {
        host.lab = false;
    }
    // Hosts of a network share no CPU.
    assert_eq!(placement_effect(&mixed), None);
}

#[test]
fn other_programs_are_named_where_they_share_the_cpus() {
    let finding = |others_cpus: f64, is_read: bool| {
        let truth = like!(Truth::usual(); cpus: 1.0, others_cpus);
        let mut run = thrice(GIGABIT, stream(), &truth);
        run.keep(|sample| is_read || !matches!(sample.subject, Subject::Thread(_)));
        found(&run.recording, "run/caution/disturbed").map(|found| found.effect.value)
    };
    let seen = finding(0.3, true).expect("0.3 CPUs are more than the agents need");
    assert!((seen - 0.15).abs() < 0.01, "of two CPUs: {seen}");
    assert_eq!(finding(0.05, true), None);
    // Without our own threads nobody knows whose the time was.
    assert_eq!(finding(0.3, false), None);
}

#[test]
fn shares_of_a_link_are_said_as_exactly_as_they_are_known() {
    let at = |bps: f64| {
        let truths = [bps, bps + 1e6, bps - 1e6].map(Truth::stream);
        trials(GIGABIT, stream(), &truths)
    };
    let of = |rates: &[f64]| {
        let truths: Vec<Truth> = rates.iter().copied().map(Truth::stream).collect();
        trials(GIGABIT, stream(), &truths)
    };
    worlds! {
        // A link makes up in a window for what it had not passed before: where that shows, the finding says so.
        LinkRate: at(943e6), why "A window may hold up to 0.5 % more than that";
        LinkRate: at(935e6), no "window";

        // Two values are no interval.
        LinkRate: of(&[941e6, 940e6]), claim "both values lie above 98.5 %";
        LinkRate: of(&[941e6, 920e6]), claim "one of the two values lies below 98.5 %";
        LinkRate: of(&[941e6, 940e6, 941e6]), claim "the whole interval lies above 98.5 %";

    }
}

#[test]
fn no_interval_has_segments_above_the_mss() {
    let truth = |payload_bytes| like!(Truth::stream(940e6); payload_bytes);
    let run = trials(GIGABIT, stream(), &[1448.0, 1440.0, 1447.0].map(truth));
    let full = found(&run.recording, "limiter/link-rate").expect("a full link");
    let mut pieces = full.evidence.as_slice().iter();
    let payload = pieces.find(|piece| piece.what == "payload per data segment");
    let high = payload.and_then(|piece| piece.estimate.high);
    assert!(high.is_some_and(|high| high < 1448.5), "{high:?}");
}

/// This kernel counts idle time exactly and busy time at the tick: what every trial misses, or the only one,
/// nobody is known to have taken.
#[test]
fn time_in_no_mode_is_told_where_it_is_more_than_usual() {
    let of = |missing: &[f64]| {
        let truth = |missing_share: &f64| like!(Truth::stream(941e6); cpus: 1.0, missing_share: *missing_share);
        let truths: Vec<Truth> = missing.iter().map(truth).collect();
        let analysis = analyze(&trials(GIGABIT, stream(), &truths).recording);
        let mut cautions = analysis.cautions.into_iter();
        let disturbed = cautions.find(|found| found.id == "run/caution/disturbed");
        (disturbed, analysis.trust.expect("a judgement").level)
    };
    assert_eq!(of(&[0.14]), (None, TrustLevel::Good));
    assert_eq!(of(&[0.14, 0.13, 0.15]), (None, TrustLevel::Good));
    let (found, level) = of(&[0.14, 0.14, 0.34]);
    let found = found.expect("one trial misses more");
    assert!((found.effect.value - 0.2).abs() < 0.001, "{found:?}");
    let claim = "20 % more of the CPUs' time than usual is in no CPU mode in 1 of 3 trials: taken, or not counted.";
    assert_eq!(found.claim, claim);
    assert_eq!(level, TrustLevel::Limited);
}

#[test]
fn of_one_trial_nobody_says_that_identical_ones_differ() {
    let truth = like!(Truth::usual(); cpus: 1.0, others_cpus: 0.3);
    let caution = |n: usize| {
        let run = trials(GIGABIT, stream(), &vec![truth.clone(); n]);
        let found = found(&run.recording, "run/caution/disturbed");
        found.expect("others took time").explanation
    };
    says!(caution(1); no "identical");
    says!(caution(3); "identical trials may differ");
}

#[test]
fn what_to_repeat_where_nothing_is_named_depends_on_what_was_seen() {
    let plain = like!(Truth::stream(300e6); cpus: 1.9, others_cpus: 0.1);
    let next = |truth: Truth| {
        let run = once(GIGABIT, stream(), &truth);
        let single = crate::as_single(&run.recording);
        assert_eq!(single.limiter(), None, "{:?}", single.findings);
        single.next.expect("a next step")
    };
    // What is steady is as steady in a longer window.
    says!(next(plain.clone()); "--capture", no "longer");
    says!(next(like!(plain; halves: 1.3)); "repeat for longer");
    // A window of 1 s has 20 round trips of 50 ms.
    says!(next(like!(plain; rtt_ns: 50 * MS)); "repeat for longer");
    says!(next(like!(plain; others_cpus: 0.8, worker_share: 0.6)); "hosts are quiet");
    says!(next(like!(plain; others_cpus: 0.8, worker_share: 0.3)); "--capture");
    says!(next(like!(plain; beside_bps: Some(300e6))); "stop the other traffic");
}

#[test]
fn flows_that_a_dropping_queue_starves_are_no_matter_of_time() {
    let next = |lost_share| {
        let shares = (0..64).map(|flow| f64::from(u8::from(flow < 24)));
        let truth = like!(Truth::stream(148e6); shares: shares.collect(), lost_share);
        let run = once(None, like!(stream(); connections: 64), &truth);
        let single = crate::as_single(&run.recording);
        let invalid = single.trials[0].invalid.as_deref();
        assert_eq!(invalid, Some("40 of 64 flows transferred nothing"));
        single.next.expect("a next step")
    };
    says!(next(0.07); "fewer flows", "fq_codel", no "for longer");
    says!(next(0.001); "repeat for longer");
}

#[test]
fn time_that_no_mode_has_matters_where_cpus_may() {
    let matters = |cpus: f64, worker_share: f64| {
        let truth = like!(Truth::stream(300e6); cpus, worker_share, missing_share: 0.14);
        let run = once(GIGABIT, stream(), &truth);
        crate::as_single(&run.recording).trials[0].may_need_cpus()
    };
    assert!(!matters(0.2, 0.1));
    assert!(matters(0.2, 0.6));
    assert!(matters(1.5, 0.1));
}

#[test]
fn ends_that_always_share_a_cpu_are_a_caution() {
    let cautions = |recording: &Recording| {
        let findings = told(recording).into_iter();
        let cautions = findings.filter(|it| it.id == "latency/caution/one-cpu");
        cautions.count()
    };
    let of = |apart: &[bool]| cautions(&placed(&[20_000; 3], apart));
    assert_eq!(of(&[false; 3]), 1);
    assert_eq!(of(&[true; 3]), 0, "as on two hosts");
    assert_eq!(of(&[false, true, false]), 0, "the comparison says more");
    // Over a path of 7 ms no wake-up makes a difference.
    assert_eq!(cautions(&placed(&[7_000_000; 3], &[false; 3])), 0);
    // Nor where many requests are under way at once, over 5 ms; over 100 µs it does.
    let under_way = |min_rtt_ns: i64| {
        let mut run = begun(GIGABIT, "latency", None, like!(rr(1); manner.in_flight: 16));
        let truth = like!(Truth::usual(); latency: vec![(5_000_000, 3080)], rtt_ns: 5 * MS,
            min_rtt_ns: Some(min_rtt_ns));
        run.cell(&[], &[truth]);
        in_lab(&mut run);
        cautions(&run.recording)
    };
    assert_eq!(under_way(5 * MS), 0);
    assert_eq!(under_way(MS / 10), 1);
}

#[test]
fn what_to_do_follows_the_evidence() {
    let path = |bps| Truth::sending(bps, 20 * MS, 20 * MS);
    let next = |truth: Truth| next_of(&once(None, stream(), &truth));
    says!(next(like!(path(12.9e6); lost_share: 0.003)); "--fq-rate");
    says!(next(like!(path(12.9e6); marked_share: 0.003)); "(ECN)");
    says!(next(like!(path(6.0 * 1448.0 * 8.0 / 0.0202); lost_share: 0.05, spurious_share: 1.0, cwnd: 6));
        "delays or reorders");
    says!(next(like!(path(26e6); window_bytes: 65_536, rwnd_share: 0.98, offered_bytes: Some(3_400_000))); "proxy");
}

/// The links of these hosts have an MTU of 1500: 1472 B of a datagram beside the headers of IP and UDP.
#[test]
fn datagrams_that_are_longer_than_a_packet_are_a_caution() {
    let packets = |transport: Transport, bytes: u64| {
        let workload: Workload = sized(like!(stream(); manner.transport: transport), bytes);
        let run = once(GIGABIT, workload, &Truth::stream(100e6));
        found(&run.recording, "run/caution/fragments").map(|finding| finding.effect.value)
    };
    assert_eq!(packets(Transport::Udp, 1448), None);
    assert_eq!(packets(Transport::Udp, 1472), None);
    assert_eq!(packets(Transport::Udp, 1473), Some(2.0));
    assert_eq!(packets(Transport::Udp, 9000), Some(7.0));
    assert_eq!(packets(Transport::Tcp, 9000), None);
}
