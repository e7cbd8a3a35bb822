//! Numbers that cannot be: of tables, sentences and the summary.

use linerate_model::finding::Estimate;
use linerate_model::response::is_share;

use crate::grow;
use crate::prelude::*;

/// The claim of a stall where requests in two writes take 67 ms, but for one trial in which two
/// retransmission timeouts make them 286 ms; without Nagle 10 ms, without delayed ACK 20 ms.
fn stall(lost: [bool; 3], lost_without_nagle: bool) -> Option<String> {
    let truth = |ms: u64, is_lost: bool| {
        like!(Truth::usual(); rtt_ns: 10 * MS,
        latency: vec![(ms * 1_000_000, 2 - u64::from(is_lost))], lost_share: if is_lost { 2.0 } else { 0.0 })
    };
    let mut run = begun(GIGABIT, "split-request", Some(9), written_in(rr(100), 2));
    let stalled = lost.map(|lost| truth(if lost { 286 } else { 67 }, lost));
    run.cell(&switches(true, true), &stalled);
    let without_nagle = [(); 3].map(|()| truth(10, lost_without_nagle));
    run.cell(&switches(false, true), &without_nagle);
    run.cell(&switches(true, false), &[(); 3].map(|()| truth(20, false)));
    let found = limiters(&run.recording).into_iter();
    let mut stalls = found.filter(|(limiter, _)| *limiter == Limiter::NagleDelayedAck);
    stalls.next().map(|(_, finding)| finding.claim)
}

#[test]
fn a_retransmission_timeout_is_no_part_of_a_stall() {
    let check = |lost, lost_without_nagle, words: &[&str]| {
        let claim = stall(lost, lost_without_nagle).expect("a stall");
        for words in words {
            assert!(claim.contains(words), "{claim}");
        }
    };
    let both = ["is 67 ms instead of 10 ", "ms with delayed ACK off"];
    check([false; 3], false, &both);
    check([false, true, false], false, &both);
    check([false, true, false], true, &["is 67 ms instead of 20 "]);
    assert_eq!(stall([true, true, false], false), None);
}

/// The cost of a trial whose host counted `cpus` and whose thread ran for `run_ns`.
fn cost(cpus: f64, run_ns: i64) -> Option<f64> {
    let truth = like!(Truth::stream(38e6); cpus);
    let mut run = once(GIGABIT, stream(), &truth);
    let growth = [(worker(0), Metric::ThreadRun, run_ns)];
    grow(&mut run.recording, TrialId(1), &growth);
    outcomes(&run.recording).remove(0).value(name::CPU_COST)
}

#[test]
fn a_cost_is_never_less_than_what_our_threads_ran() {
    let check = |cpus, run_ns, expected: f64| {
        let found = cost(cpus, run_ns).expect("a cost");
        assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
    };
    check(0.0, 15_000_000, 0.015);
    check(0.5, 15_000_000, 0.5);
    check(0.5, 600_000_000, 0.6);
}

/// A study whose best stream outside the socket-buffer chapter takes `cpus`.
fn study_of(cpus: f64) -> Analysis {
    let mut run = MadeRun::new(1, Some(1e9));
    run.recording.document.study = true;
    for (chapter, factor, bps, cpus) in [
        (3, Factor::SocketBuffer, 900e6, 0.5),
        (9, Factor::MessageBytes, 940e6, cpus),
    ] {
        run.experiment(&format!("of-{chapter}"), Some(chapter), stream());
        let truth = like!(Truth::stream(bps); cpus);
        run.cell(&[(factor, size(65_536))], &[truth.clone(), truth]);
    }
    analyze(&run.recording)
}

/// The cost in the summary, and the answer of the chapter of findings.
fn costs(analysis: &Analysis) -> (Option<f64>, String) {
    let mut rows = analysis.summary.rows.iter();
    let row = rows.find(|row| row[0] == TableCell::Text("CPU cost of 1 Gbit/s".to_owned()));
    let in_summary = row.map(|row| match &row[1] {
        TableCell::Estimate(estimate) => estimate.value,
        other => panic!("{other:?}"),
    });
    (in_summary, answer_of(analysis, "findings"))
}

#[test]
fn frames_are_as_large_as_those_that_are_in_use() {
    // With frames of 1500 bytes a link of 10 Gbit/s carries 9.41 Gbit/s.
    let is_valid = |mtus: [f64; 3], clients: u64| {
        let mut made = MadeRun::new(2, Some(1e10));
        for (host, mtu) in made.recording.document.hosts.iter_mut().zip(mtus) {
            let mut facts = host.snapshot.facts.iter_mut();
            let fact = facts.find(|fact| fact.name == "link.eth0.mtu_bytes");
            fact.expect("a fact").value = FactValue::Number(mtu, Unit::Bytes);
        }
        let workload = like!(stream(); connections: 2);
        made.experiment("one", None, workload);
        let clients = (Factor::Clients, Level::Count(clients));
        made.trial(&[clients], 1, &Truth::stream(9.8e9));
        outcomes(&made.recording)[0].is_valid()
    };
    const LARGE: f64 = 9000.0;
    const SMALL: f64 = 1500.0;
    assert!(is_valid([LARGE, LARGE, LARGE], 1));
    assert!(!is_valid([LARGE, SMALL, LARGE], 1), "it has small ones");
    assert!(is_valid([LARGE, LARGE, SMALL], 1), "the other is not used");
    assert!(is_valid([LARGE, LARGE, SMALL], 2), "one has large ones");
    assert!(!is_valid([SMALL, LARGE, LARGE], 2));
}

#[test]
fn one_cell_tells_what_throughput_costs_and_only_beyond_ticks() {
    let (in_summary, answer) = costs(&study_of(0.94));
    let in_summary = in_summary.expect("a cost");
    assert!((in_summary - 1.0).abs() < 1e-3, "{in_summary}");
    assert!(answer.contains("1 Gbit/s costs 1 CPU"), "{answer}");
    // What limits each number is the chapter's question.
    let chapters = study_of(0.94).chapters;
    let cells = chapters.iter().map(|it| it.trials.len()).sum::<usize>() / 2;
    assert!(answer.contains(&format!("{cells} cell")), "{answer}");
    // A tick in a second is 0.01 CPUs: an eighth of the cost.
    let (in_summary, answer) = costs(&study_of(0.08));
    assert_eq!(in_summary, None);
    assert!(!answer.contains("costs"), "{answer}");
}

/// Estimates of the columns with `word` in their names.
fn estimates(analysis: &Analysis, word: &str) -> Vec<Estimate> {
    let mut found = Vec::new();
    for table in analysis.chapters.iter().flat_map(|it| &it.tables) {
        let columns = table.columns.iter().enumerate();
        for (at, _) in columns.filter(|(_, name)| name.to_lowercase().contains(word)) {
            found.extend(table.rows.iter().filter_map(|row| match &row[at] {
                TableCell::Estimate(estimate) => Some(*estimate),
                _ => None,
            }));
        }
    }
    found
}

/// Intervals of `word` end at `most`, and there are such.
#[track_caller]
fn ends_at(run: &MadeRun, word: &str, most: f64) {
    let found = estimates(&analyze(&run.recording), word);
    assert!(!found.is_empty(), "no column has {word}");
    for estimate in found {
        let high = estimate.high.expect("an interval");
        assert!(high <= most && estimate.value < most, "{estimate:?}");
        assert!(high > estimate.value, "{estimate:?}");
    }
}

fn run_of(rate: Option<f64>, workload: Workload, truths: &[Truth]) -> MadeRun {
    let mut run = begun(rate, "one", None, workload);
    let levels = |count| [(Factor::Connections, Level::Count(count))];
    run.cell(&levels(1), truths);
    run.cell(&levels(2), truths);
    run
}

#[test]
fn intervals_end_where_what_is_measured_does() {
    let of_worker = |worker_share| like!(Truth::stream(500e6); worker_share);
    let run = run_of(Some(1e9), stream(), &[0.2, 0.9, 0.99].map(of_worker));
    ends_at(&run, "busiest worker", 100.0);
    assert!(is_share("runqueue_wait_share_max") && !is_share("flow_throughput_max_bps"));
    // MTU and options tell the largest segment, whatever the rate of the link.
    let of_payload = |payload_bytes| like!(Truth::stream(500e6); payload_bytes);
    for rate in [None, Some(1e9)] {
        let run = run_of(rate, stream(), &[1448.0, 400.0, 1448.0].map(of_payload));
        ends_at(&run, "payload per data segment", MSS + 0.1);
    }
}

#[test]
fn the_part_of_datagrams_that_a_place_lost_is_no_more_than_all() {
    let workload = like!(stream(); manner.transport: Transport::Udp);
    let mut run = begun(GIGABIT, "udp-packet-rate", Some(11), workload);
    for bytes in [64, 1448] {
        let levels = [(Factor::MessageBytes, size(bytes))];
        run.cell(&levels, &[(); 3].map(|()| Truth::stream(100e6)));
    }
    count_datagrams(&mut run);
    ends_at(&run, "receive buffer was full", 100.0);
}

/// Lets each flow send 100 000 datagrams, of which the receive buffer takes more or fewer.
pub(crate) fn count_datagrams(run: &mut MadeRun) {
    let mut counted = Vec::new();
    for flow in &mut run.recording.flows {
        let received = [2_000, 90_000, 9_000][flow.trial.0 as usize % 3];
        let (metric, count) = match flow.part {
            Part::Sender => (Metric::AppDatagramsSent, 100_000),
            _ => (Metric::AppDatagramsReceived, received as i64),
        };
        let subject = Subject::Flow(flow.flow, flow.end);
        let readings = [(0, 0), (WINDOW_NS as i64, count)];
        counted.push((flow.trial, flow.host.clone(), subject, metric, readings));
        flow.outcome.datagrams = Some(Box::new(match flow.part {
            Part::Sender => like!(Datagrams::default(); sent: 100_000),
            _ => like!(Datagrams::default(); received, highest: 100_000, announced: Some(100_000),
                socket_drops: Some(100_000 - received)),
        }));
    }
    for (trial, host, subject, metric, readings) in counted {
        read(
            &mut run.recording,
            trial,
            &host.0,
            &subject,
            metric,
            &readings,
        );
    }
}

/// The answer of packet rates, of messages of 1 B and of 1448 B, each with the payloads of its trials.
fn answer(small: [f64; 3], rates: [f64; 3], large_bytes: f64) -> String {
    let truth = |payload_bytes: f64, rate: f64| {
        like!(Truth::usual();
        throughput_bps: 8.0 * payload_bytes * rate, payload_bytes)
    };
    let mut run = begun(None, "packet-rate", Some(10), stream());
    let at = |bytes| [(Factor::MessageBytes, size(bytes))];
    run.cell(&at(1), &[0, 1, 2].map(|at| truth(small[at], rates[at])));
    run.cell(&at(64), &[(); 3].map(|()| truth(64.0, 10_000.0)));
    run.cell(&at(1448), &[(); 3].map(|()| truth(large_bytes, 1_000.0)));
    answer_of(&analyze(&run.recording), "packet-rate")
}

#[test]
fn the_payload_of_a_segment_is_what_its_rate_carries() {
    // (90 000 · 10 + 30 000 · 14) / 120 000 B, and not 12 B.
    let found = answer([10.0, 10.0, 14.0], [45_000.0, 45_000.0, 30_000.0], MSS);
    says!(found; "segments per second of 11 B payload");
    // Two trials of many small segments and one of few large ones have no one size: the next cell tells.
    let found = answer([2.0, 5.0, MSS], [100_000.0, 70_000.0, 1_400.0], MSS);
    says!(found; begins "One connection sends 10", "of 64 B payload");
}

#[test]
fn what_leaves_in_like_segments_is_not_compared() {
    let found = answer([MSS; 3], [1_000.0; 3], MSS);
    says!(found; begins "Messages of 1 B and of 1448 B leave in like segments: 1000 ", no "times the bytes");
    let found = answer([1.0; 3], [1_000.0; 3], MSS);
    assert!(found.starts_with("One connection sends"), "{found}");
}
