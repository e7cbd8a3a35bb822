//! Responses of one trial against the closed form that its samples were made from.

use linerate_analyze::reduce::{self, Outcome, outcome_of};
use linerate_model::TrialId;
use linerate_model::experiment::{Factor, Level};
use linerate_model::metric::Metric;
use linerate_model::run::Validity;
use linerate_model::sample::{Subject, TrialSample};
use linerate_model::unit::{Bytes, Unit};
use linerate_model::workload::{Traffic, Workload};

use crate::builder::{Run, Truth, rr, stream};

fn one(workload: Workload, truth: Truth) -> Outcome {
    let mut run = Run::new(2, Some(1e9));
    run.experiment("one", None, workload);
    run.cell(&[], &[truth]);
    reduce::outcomes(&run.recording).remove(0)
}

/// Counters are whole numbers, so that a rate of a few thousand a second is cut by this much.
const TRUNCATION_SHARE: f64 = 1e-3;

#[track_caller]
fn check(outcome: &Outcome, name: &str, expected: f64, unit: Unit) {
    let response = outcome
        .responses
        .get(name)
        .unwrap_or_else(|| panic!("{name} was not reduced"));
    let error = (response.value - expected).abs();
    assert!(
        error <= TRUNCATION_SHARE * expected.abs(),
        "{name}: {} not {expected}",
        response.value
    );
    assert_eq!(response.unit, unit, "{name}");
}

#[test]
fn a_stream_has_the_responses_it_was_made_of() {
    let mut workload = stream();
    (workload.connections, workload.clients) = (4, 2);
    if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
        *message_bytes = Bytes(1000);
    }
    let truth = Truth {
        lost_share: 0.25,
        rwnd_share: 0.25,
        sndbuf_share: 0.125,
        stall_ns: 7_000_000,
        ..Truth::stream(800e6)
    };
    let outcome = one(workload, truth);
    assert_eq!(outcome.validity, Validity::Valid);
    let segments = 800e6 / 8.0 / 1448.0;
    check(&outcome, "throughput_bps", 800e6, Unit::BitsPerSecond);
    check(
        &outcome,
        "throughput_to_server_bps",
        800e6,
        Unit::BitsPerSecond,
    );
    check(&outcome, "throughput_sent_bps", 800e6, Unit::BitsPerSecond);
    check(
        &outcome,
        "flow_throughput_min_bps",
        200e6,
        Unit::BitsPerSecond,
    );
    check(&outcome, "data_segments_per_s", segments, Unit::PerSecond);
    check(&outcome, "acks_per_s", segments / 2.0, Unit::PerSecond);
    check(&outcome, "data_segments_per_ack", 2.0, Unit::Count);
    check(&outcome, "payload_per_segment_bytes", 1448.0, Unit::Bytes);
    check(
        &outcome,
        "messages_per_s",
        800e6 / 8.0 / 1000.0,
        Unit::PerSecond,
    );
    check(&outcome, "retransmitted_share", 0.25, Unit::Ratio);
    check(&outcome, "rwnd_limited_share", 0.25, Unit::Ratio);
    check(&outcome, "sndbuf_limited_share", 0.125, Unit::Ratio);
    check(&outcome, "tcp_rtt_ns", 100_000.0, Unit::Nanoseconds);
    check(&outcome, "stall_max_ns", 7e6, Unit::Nanoseconds);
    check(&outcome, "cpu_busy_cpus", 0.5, Unit::Cpus);
    check(&outcome, "cpu_per_gbit_cpus", 0.5 / 0.8, Unit::Cpus);
    check(&outcome, "worker_busy_share_max", 0.3, Unit::Ratio);
    assert!(!outcome.responses.contains_key("throughput_from_server_bps"));
    assert!(!outcome.responses.contains_key("transactions_per_s"));
}

#[test]
fn transactions_have_quantiles_where_there_are_enough() {
    let truth = Truth {
        acks_per_transaction: 0.5,
        ..Truth::transactions(100_000)
    };
    let outcome = one(rr(100), truth);
    check(&outcome, "transactions_per_s", 9900.0, Unit::PerSecond);
    check(&outcome, "rtt_p50_ns", 100_000.0, Unit::Nanoseconds);
    check(&outcome, "rtt_p99_ns", 100_000.0, Unit::Nanoseconds);
    check(&outcome, "one_way_ns", 50_000.0, Unit::Nanoseconds);
    check(&outcome, "rtt_max_ns", 200_000.0, Unit::Nanoseconds);
    check(&outcome, "acks_per_transaction", 0.5, Unit::Count);
    // 9900 transactions do not support the 99.9th percentile, which needs 10 000.
    assert!(!outcome.responses.contains_key("rtt_p999_ns"));
    assert!(!outcome.responses.contains_key("throughput_bps"));
}

#[test]
fn directions_are_kept_apart() {
    let mut workload = stream();
    workload.connections = 2;
    let mut run = Run::new(1, Some(1e9));
    run.experiment("one", None, workload);
    run.cell(
        &[(Factor::Direction, Level::Word("both".to_owned()))],
        &[Truth::stream(1.6e9)],
    );
    let outcome = reduce::outcomes(&run.recording).remove(0);
    // 1.6 Gbit/s is possible: 0.8 Gbit/s in each direction.
    assert_eq!(outcome.validity, Validity::Valid);
    check(
        &outcome,
        "throughput_to_server_bps",
        0.8e9,
        Unit::BitsPerSecond,
    );
    check(
        &outcome,
        "throughput_from_server_bps",
        0.8e9,
        Unit::BitsPerSecond,
    );
}

#[test]
fn a_sum_with_a_missing_flow_is_absent() {
    let mut workload = stream();
    workload.connections = 3;
    let mut run = Run::new(1, Some(1e9));
    run.experiment("one", None, workload);
    run.cell(&[], &[Truth::default()]);
    let samples = run.recording.samples.iter();
    let kept = samples.filter(|sample| sample.subject.to_string() != "flow:1:server");
    run.recording.samples = kept.collect();
    let outcome = reduce::outcomes(&run.recording).remove(0);
    assert!(
        !outcome.responses.contains_key("throughput_bps"),
        "{:?}",
        outcome.responses
    );
    // The sender's count is whole.
    check(&outcome, "throughput_sent_bps", 500e6, Unit::BitsPerSecond);
}

#[test]
fn live_and_replayed_outcomes_are_the_same() {
    let run = crate::builder::study();
    let recording = &run.recording;
    let document = &recording.document;
    let replayed = reduce::outcomes(recording);
    assert_eq!(replayed.len(), document.plan.trials.len());
    for (at, outcome) in replayed.iter().enumerate() {
        let live = outcome_of(
            &document.plan.trials[at],
            &recording.trials[at],
            &recording.flows,
            &recording.samples,
            &document.hosts,
        );
        assert_eq!(*outcome, live);
    }
}

#[test]
fn numbers_above_the_wire_are_refused() {
    let refused = |rate: Option<f64>, bps: f64| {
        let mut run = Run::new(1, rate);
        run.experiment("one", None, stream());
        run.cell(&[], &[Truth::stream(bps)]);
        let outcome = reduce::outcomes(&run.recording).remove(0);
        match outcome.validity {
            Validity::Valid => None,
            Validity::Invalid(reason) => Some(reason),
        }
    };
    // 1448 / 1538 of 1 Gbit/s is 941.5 Mbit/s; half a percent is tolerated.
    assert_eq!(refused(Some(1e9), 941.4e6), None);
    assert_eq!(refused(Some(1e9), 945e6), None);
    let reason = refused(Some(1e9), 950e6).unwrap();
    assert!(
        reason.contains("950 Mbit/s") && reason.contains("941.5 Mbit/s"),
        "{reason}"
    );
    assert_eq!(refused(None, 50e9), None);
}

#[test]
fn the_wire_limit_needs_facts_and_is_generous_without() {
    let mut run = Run::new(1, Some(1e9));
    for host in &mut run.recording.document.hosts {
        host.snapshot.facts.clear();
    }
    run.experiment("one", None, stream());
    run.cell(&[], &[Truth::stream(990e6), Truth::stream(1010e6)]);
    let outcomes = reduce::outcomes(&run.recording);
    assert!(
        outcomes[0].is_valid(),
        "without an MTU only the bare rate is a limit"
    );
    assert!(!outcomes[1].is_valid());
}

#[test]
fn transactions_above_the_wire_are_refused() {
    // 100 kB each way in 100 µs are 8 Gbit/s.
    let outcome = one(rr(100_000), Truth::transactions(100_000));
    assert!(!outcome.is_valid());
}

#[test]
fn a_saturated_worker_is_flagged() {
    let flags = |run: f64, wait: f64| {
        let truth = Truth {
            worker_share: run,
            worker_wait_share: wait,
            ..Truth::default()
        };
        one(stream(), truth).flags
    };
    assert_eq!(flags(0.3, 0.1), [""; 0]);
    assert!(
        flags(0.97, 0.0)[0].contains("saturated"),
        "{:?}",
        flags(0.97, 0.0)
    );
    assert!(
        flags(0.6, 0.38)[0].contains("short of CPU"),
        "{:?}",
        flags(0.6, 0.38)
    );
}

#[test]
fn payload_that_waited_in_the_buffer_is_put_right() {
    let mut run = Run::new(1, Some(1e9));
    run.experiment("one", None, stream());
    run.cell(&[], &[Truth::stream(940e6)]);
    // The reader was a megabyte behind at the begin of the window, and not at its end.
    let samples = run.recording.samples.iter().map(|mut sample| {
        if sample.metric == Metric::AppBytesReceived && sample.at_ns < 500_000_000 {
            sample.value -= 1 << 20;
        }
        sample
    });
    run.recording.samples = samples.collect();
    let outcome = reduce::outcomes(&run.recording).remove(0);
    assert!(outcome.is_valid(), "{:?}", outcome.validity);
    check(&outcome, "throughput_bps", 940e6, Unit::BitsPerSecond);
    assert!(
        outcome.flags[0].contains("waited in the receive buffer"),
        "{:?}",
        outcome.flags
    );
}

#[test]
fn a_counter_of_all_hosts_is_absent_when_one_was_not_read() {
    let mut run = Run::new(1, Some(1e9));
    run.experiment("one", None, rr(100));
    run.cell(&[], &[Truth::transactions(100_000)]);
    let mut counted = |host: &str| {
        let sample = |(at_ns, value)| TrialSample {
            trial: TrialId(1),
            host: host.into(),
            subject: Subject::Host,
            metric: Metric::NetstatDelayedAcks,
            at_ns,
            value,
        };
        run.recording
            .samples
            .extend([(0, 0), (1_000_000_000, 7)].map(sample));
        reduce::outcomes(&run.recording)
            .remove(0)
            .value("delayed_acks_per_s")
    };
    assert_eq!(counted("client1"), None);
    assert_eq!(counted("server"), Some(14.0));
}
