//! Responses of one trial against the closed form that its samples were made from.

use linerate_analyze::analyze;
use linerate_analyze::groups::Reduced;
use linerate_analyze::reduce::{self, Outcome};
use linerate_model::datagram::Datagrams;
use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::TrustLevel;
use linerate_model::flag::TrialFlag;
use linerate_model::host::{Fact, FactValue};
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Repeat;
use linerate_model::reason::{Disturbance, RepeatReason};
use linerate_model::response::name;
use linerate_model::run::{Control, HostPart, Validity};
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::unit::{Bytes, Unit};
use linerate_model::workload::{Direction, Part, Traffic, Workload};
use linerate_model::{FlowId, TrialId};

use crate::builder::{MadeRun, Truth, rr, stream};

fn one(workload: Workload, truth: Truth) -> Outcome {
    let mut run = MadeRun::new(2, Some(1e9));
    run.experiment("one", None, workload);
    run.cell(&[], &[truth]);
    reduce::outcomes(&run.recording).remove(0)
}

/// Returns what there is to know of it, in words.
fn flags(outcome: &Outcome) -> Vec<String> {
    outcome.flags.iter().map(ToString::to_string).collect()
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
    let mut run = MadeRun::new(1, Some(1e9));
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
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, workload);
    run.cell(&[], &[Truth::usual()]);
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

/// The server's readings never came; what its host acknowledged is at the client.
#[test]
fn what_was_acknowledged_stands_for_a_receiver_of_which_nothing_came() {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    run.cell(&[], &[Truth::stream(0.7e9)]);
    let whole = std::mem::take(&mut run.recording.samples);
    let at_client = whole.iter().filter_map(|sample| match sample.subject {
        Subject::Flow(flow, End::Server) if sample.metric == Metric::TcpBytesReceived => {
            Some(TrialSample {
                host: "client1".into(),
                subject: Subject::Flow(flow, End::Client),
                metric: Metric::TcpBytesAcked,
                ..sample
            })
        }
        _ => Some(sample).filter(|sample| &*sample.host.0 != "server"),
    });
    run.recording.samples = at_client.collect();
    run.recording.flows.retain(|flow| &*flow.host.0 != "server");
    let outcome = reduce::outcomes(&run.recording).remove(0);
    check(&outcome, "throughput_bps", 0.7e9, Unit::BitsPerSecond);
    let flags = flags(&outcome);
    let told = "what TCP acknowledged to the sender, because no reading of host server in the window arrived";
    assert!(flags.iter().any(|flag| flag.contains(told)), "{flags:?}");
}

#[test]
fn readings_before_the_window_are_none_of_it() {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    let truth = Truth {
        delivered_variation: Some(0.0),
        lost_share: 0.01,
        ..Truth::stream(0.7e9)
    };
    run.cell(&[], &[truth]);
    let whole = std::mem::take(&mut run.recording.samples);
    // The server was lost as the window began.
    let kept = |sample: &TrialSample| &*sample.host.0 != "server" || sample.at_ns < 0;
    run.recording.samples = whole.iter().filter(kept).collect();
    let outcome = reduce::outcomes(&run.recording).remove(0);
    check(&outcome, "throughput_bps", 0.7e9, Unit::BitsPerSecond);
    // Nor did nothing arrive where nobody read what did.
    let samples = std::mem::take(&mut run.recording.samples);
    let kept = |sample: &TrialSample| sample.metric != Metric::TcpBytesAcked;
    run.recording.samples = samples.iter().filter(kept).collect();
    let analysis = linerate_analyze::analyze(&run.recording);
    let named = analysis.findings.iter().map(|finding| finding.id.as_str());
    assert_eq!(named.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn numbers_above_the_wire_are_refused() {
    let refused = |rate: Option<f64>, bps: f64| {
        let mut run = MadeRun::new(1, rate);
        run.experiment("one", None, stream());
        run.cell(&[], &[Truth::stream(bps)]);
        let outcome = reduce::outcomes(&run.recording).remove(0);
        match outcome.validity {
            Validity::Valid => None,
            Validity::Invalid(reason) => Some(reason.to_string()),
        }
    };
    // 1448 / 1538 of 1 Gbit/s is 941.5 Mbit/s; half a percent is tolerated.
    assert_eq!(refused(Some(1e9), 941.4e6), None);
    assert_eq!(refused(Some(1e9), 945e6), None);
    let reason = refused(Some(1e9), 950e6).unwrap();
    assert!(
        reason.contains("950 Mbit/s") && reason.contains("941 Mbit/s"),
        "{reason}"
    );
    assert_eq!(refused(None, 50e9), None);
}

#[test]
fn the_wire_limit_needs_facts_and_is_generous_without() {
    let mut run = MadeRun::new(1, Some(1e9));
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
    let told = |run: f64, wait: f64| {
        let truth = Truth {
            worker_share: run,
            worker_wait_share: wait,
            ..Truth::usual()
        };
        flags(&one(stream(), truth))
    };
    assert_eq!(told(0.3, 0.1), [""; 0]);
    assert!(
        told(0.97, 0.0)[0].contains("saturated"),
        "{:?}",
        told(0.97, 0.0)
    );
    assert!(
        told(0.6, 0.38)[0].contains("short of CPU"),
        "{:?}",
        told(0.6, 0.38)
    );
}

#[test]
fn a_sender_that_spins_for_the_rate_that_it_reaches_is_not_saturated() {
    let told = |asked_bps: Option<u64>, reader_ran: f64| {
        let mut workload = stream();
        workload.manner.transport = Transport::Udp;
        workload.manner.rate_bps = asked_bps;
        if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
            *message_bytes = Bytes(1448);
        }
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, workload);
        let truth = Truth {
            worker_share: 0.97,
            ..Truth::stream(200e6)
        };
        run.cell(&[], &[truth]);
        let reader = Subject::Thread("worker-0".to_owned());
        let ns = |share: f64| (share * 1e9) as i64;
        let growth = [
            (reader.clone(), Metric::ThreadRun, ns(reader_ran)),
            (reader, Metric::ThreadWait, ns(0.01)),
        ];
        crate::grow(&mut run.recording, TrialId(1), &growth);
        let told = flags(&reduce::outcomes(&run.recording).remove(0));
        told.iter().any(|flag| flag.contains("saturated"))
    };
    assert!(!told(Some(200_000_000), 0.3));
    // It falls short, as fast as it can is what was asked for, or the reader has no time left.
    assert!(told(Some(210_000_000), 0.3));
    assert!(told(None, 0.3));
    assert!(told(Some(200_000_000), 0.97));
}

#[test]
fn throughput_is_what_tcp_took_in_whatever_was_read_of_it() {
    let read = |beyond_bytes: f64| {
        let truth = Truth {
            read_beyond_bytes: beyond_bytes,
            ..Truth::stream(940e6)
        };
        let outcome = one(stream(), truth);
        // Above or below, near the link's limit or far from it: the count is the same.
        assert!(outcome.is_valid(), "{:?}", outcome.validity);
        check(&outcome, "throughput_bps", 940e6, Unit::BitsPerSecond);
        check(
            &outcome,
            "app_received_bps",
            940e6 + 8.0 * beyond_bytes,
            Unit::BitsPerSecond,
        );
        flags(&outcome)
    };
    assert_eq!(read(0.0), [""; 0]);
    assert_eq!(read(1.1e6), [""; 0], "below a hundredth of 117.5 MB");
    const BEYOND: f64 = 5.0 * 1_048_576.0;
    let told = |flags: Vec<String>, start: &str, end: &str| {
        let told = flags
            .first()
            .is_some_and(|flag| flag.starts_with(start) && flag.ends_with(end));
        assert!(told && flags.len() == 1, "{flags:?}");
    };
    let more = "receive calls returned 5 MiB more than arrived in the window (4.46";
    told(
        read(BEYOND),
        more,
        "it was in receive buffers before the window",
    );
    let less = "receive calls returned 5 MiB less than arrived in the window (4.46";
    told(read(-BEYOND), less, "it is still in receive buffers");
}

#[test]
fn what_tcp_was_not_read_for_lies_in_no_buffer() {
    // The last reading, after the end, found the socket gone: only what receive calls had returned is known.
    let told = |beyond_bytes: f64| {
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, stream());
        let truth = Truth {
            read_beyond_bytes: beyond_bytes,
            ..Truth::stream(940e6)
        };
        run.cell(&[], &[truth]);
        let samples = std::mem::take(&mut run.recording.samples);
        let is_read = |sample: &TrialSample| {
            sample.metric != Metric::TcpBytesReceived
                || sample.at_ns < crate::builder::WINDOW_NS as i64
        };
        run.recording.samples = samples.iter().filter(is_read).collect();
        flags(&reduce::outcomes(&run.recording).remove(0))
    };
    assert_eq!(told(0.0), [""; 0]);
    let told = told(10e6);
    assert!(told[0].contains("in receive buffers"), "{told:?}");
}

#[test]
fn more_than_receive_buffers_hold_was_in_none() {
    // Between both readings of a host whose CPUs others have.
    let told = |beyond_bytes: f64, rmem: Option<&str>| {
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, stream());
        let truth = Truth {
            read_beyond_bytes: beyond_bytes,
            ..Truth::stream(4e9)
        };
        run.cell(&[], &[truth]);
        for host in &mut run.recording.document.hosts {
            host.snapshot.facts.extend(rmem.map(|three| Fact {
                name: "sysctl.net.ipv4.tcp_rmem".to_owned(),
                value: FactValue::Text(three.to_owned()),
            }));
        }
        flags(&reduce::outcomes(&run.recording).remove(0)).concat()
    };
    const RMEM: Option<&str> = Some("4096 131072 6291456");
    for beyond_bytes in [20e6, -20e6] {
        let told = told(beyond_bytes, RMEM);
        assert!(told.contains("read at another time"), "{told}");
    }
    for (beyond_bytes, rmem) in [(20e6, Some("4096 131072 33554432")), (20e6, None)] {
        let told = told(beyond_bytes, rmem);
        assert!(told.contains("in receive buffers before"), "{told}");
    }
}

/// Without timestamps a gigabit carries 949.3 Mbit/s (1460 of 1538 B), with them 941.5.
#[test]
fn options_that_a_host_does_not_tell_of_may_be_off() {
    let is_valid = |server_tells: bool| {
        let mut run = MadeRun::new(2, Some(1e9));
        run.experiment("one", None, stream());
        run.cell(&[], &[Truth::stream(949e6)]);
        let server = &mut run.recording.document.hosts[0];
        assert_eq!(server.part, HostPart::Server);
        let facts = &mut server.snapshot.facts;
        facts.retain(|fact| server_tells || !fact.name.ends_with("tcp_timestamps"));
        reduce::outcomes(&run.recording).remove(0).is_valid()
    };
    assert!(is_valid(false));
    assert!(!is_valid(true), "it cannot cross the link");
}

#[test]
fn what_only_the_application_counts_is_its_count() {
    let counted = |transport| {
        let mut workload = stream();
        workload.manner.transport = transport;
        if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
            *message_bytes = Bytes(1448);
        }
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, workload);
        let truth = Truth {
            read_beyond_bytes: 5e6,
            ..Truth::stream(400e6)
        };
        run.cell(&[], &[truth]);
        reduce::outcomes(&run.recording).remove(0)
    };
    for transport in [Transport::Udp, Transport::Unix] {
        let outcome = counted(transport);
        check(&outcome, "throughput_bps", 440e6, Unit::BitsPerSecond);
        assert_eq!(flags(&outcome), [""; 0]);
    }
    let outcome = counted(Transport::Mptcp);
    check(&outcome, "throughput_bps", 400e6, Unit::BitsPerSecond);
}

#[test]
fn what_only_its_numbers_spoil_is_to_be_done_once_more() {
    let mut workload = stream();
    workload.connections = 2;
    let of = |shares: [f64; 2]| Truth {
        shares: shares.to_vec(),
        ..Truth::stream(800e6)
    };
    let told = Truth {
        invalid: Some("a counter was not read".to_owned()),
        ..of([1.0, 0.0])
    };
    let mut idle = MadeRun::new(2, Some(1e9));
    idle.experiment("one", None, workload.clone());
    idle.cell(&[], &[of([1.0, 0.0])]);
    let next = crate::as_single(&idle.recording).next;
    assert!(next.is_some_and(|words| words.contains("fewer flows")));
    let mut run = MadeRun::new(2, Some(1e9));
    run.experiment("one", None, workload);
    run.cell(&[], &[of([1.0, 1.0]), of([1.0, 0.0]), told]);
    // What a host or the controller knew when it ended is known to whoever did the trial.
    let [spoilt] = &linerate_analyze::spoilt(&Reduced::of(&run.recording))[..] else {
        panic!(
            "{:?}",
            linerate_analyze::spoilt(&Reduced::of(&run.recording))
        );
    };
    assert_eq!(spoilt.trial, run.recording.trials[1].trial);
    assert_eq!(spoilt.why.to_string(), "1 of 2 flows transferred nothing");
}

#[test]
fn a_trial_is_repeated_for_what_moved_its_number() {
    let repeated = |disturbed: Truth| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        let rates = [800e6, 804e6, 797e6, 802e6, 799e6];
        let mut truths = rates.map(Truth::stream).to_vec();
        truths.push(disturbed);
        run.cell(&[], &truths);
        let spoilt = linerate_analyze::spoilt(&Reduced::of(&run.recording));
        let why = spoilt.iter().map(|one| (one.trial.0, one.why.to_string()));
        why.collect::<Vec<_>>()
    };
    let others = |bps| Truth {
        others_cpus: 0.6,
        ..Truth::stream(bps)
    };
    let missing = |bps| Truth {
        missing_share: 0.1,
        ..Truth::stream(bps)
    };
    let stolen = |bps| Truth {
        stolen_share: 0.1,
        ..Truth::stream(bps)
    };
    for (taken, word) in [
        (&others as &dyn Fn(f64) -> Truth, "other programs"),
        (&missing, "none of their modes"),
        (&stolen, "the hypervisor"),
    ] {
        let all = repeated(taken(600e6));
        assert!(
            all.len() == 1 && all[0].0 == 6 && all[0].1.contains(word),
            "{all:?}"
        );
        // What was taken was not needed.
        assert_eq!(repeated(taken(801e6)), []);
    }
    // Nothing is known to have taken anything.
    assert_eq!(repeated(Truth::stream(600e6)), []);
}

#[test]
fn a_flow_that_loses_more_than_others_has_less() {
    let told = |again: i64| {
        let mut workload = stream();
        workload.connections = 2;
        let truth = Truth {
            shares: vec![9.0, 1.0],
            ..Truth::stream(800e6)
        };
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, workload);
        run.cell(&[], &[truth]);
        // Of the second flow's thousand segments so many were sent again.
        let counted = [(Metric::TcpRetrans, again), (Metric::TcpDataSegsOut, 1000)];
        let subject = Subject::Flow(FlowId(1), End::Client);
        let samples = std::mem::take(&mut run.recording.samples);
        let is_counted = |one: &TrialSample| {
            one.subject == subject && counted.iter().any(|(metric, _)| *metric == one.metric)
        };
        run.recording.samples = samples.iter().filter(|one| !is_counted(one)).collect();
        let trial = run.recording.trials[0].trial;
        for (metric, grown) in counted {
            for (at_ns, value) in [(0, 7), (1_000_050_000, 7 + grown)] {
                run.recording.samples.push(TrialSample {
                    trial,
                    host: "client1".into(),
                    subject: subject.clone(),
                    metric,
                    at_ns,
                    value,
                });
            }
        }
        let outcome = reduce::outcomes(&run.recording).remove(0);
        (outcome.is_valid(), flags(&outcome).concat())
    };
    let (is_valid, flags) = told(30);
    assert!(
        is_valid && flags.contains("retransmitted 3 % of its segments"),
        "{flags}"
    );
    let (is_valid, flags) = told(2);
    assert!(!is_valid, "{flags}");
}

#[test]
fn flows_whose_round_trips_differ_under_load_need_not_share_alike() {
    // The same shortest round trip; the second waits behind a queue of its own.
    let told = |second_ns: i64| {
        let mut workload = stream();
        workload.connections = 2;
        let truth = Truth {
            shares: vec![9.0, 1.0],
            min_rtt_ns: Some(20_000_000),
            rtt_ns: 36_000_000,
            ..Truth::stream(80e6)
        };
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, workload);
        run.cell(&[], &[truth]);
        let subject = Subject::Flow(FlowId(1), End::Client);
        let samples = std::mem::take(&mut run.recording.samples);
        let waits = samples.iter().map(|sample| match sample.metric {
            Metric::TcpRtt if sample.subject == subject => TrialSample {
                value: second_ns,
                ..sample
            },
            _ => sample,
        });
        run.recording.samples = waits.collect();
        let outcome = reduce::outcomes(&run.recording).remove(0);
        (outcome.is_valid(), flags(&outcome).concat())
    };
    let (is_valid, flags) = told(99_000_000);
    assert!(
        is_valid && flags.contains("round trips differ, from 36 ms to 99 ms"),
        "{flags}"
    );
    let (is_valid, flags) = told(40_000_000);
    assert!(!is_valid, "{flags}");
    // It has less, and its round trip is the shorter one: that is not why.
    let (is_valid, flags) = told(15_000_000);
    assert!(!is_valid, "{flags}");
}

#[test]
fn a_level_is_in_force_where_each_flow_carries_something() {
    let judged = |shares: &[f64], change: &dyn Fn(&mut Workload, &mut Truth)| {
        let mut workload = stream();
        workload.connections = shares.len() as u32;
        let mut truth = Truth {
            shares: shares.to_vec(),
            ..Truth::stream(800e6)
        };
        change(&mut workload, &mut truth);
        let outcome = one(workload, truth);
        let invalid = match outcome.validity.clone() {
            Validity::Valid => None,
            Validity::Invalid(reason) => Some(reason.to_string()),
        };
        (outcome, invalid)
    };
    let as_it_is = |_: &mut Workload, _: &mut Truth| {};

    let (outcome, invalid) = judged(&[1.0; 8], &as_it_is);
    assert_eq!((invalid, outcome.flags.len()), (None, 0));
    check(&outcome, "fairness_jain", 1.0, Unit::Ratio);
    check(&outcome, "flows_idle", 0.0, Unit::Count);

    // (3 + 1)² / (2 × (9 + 1)) = 0.8.
    let (outcome, invalid) = judged(&[2.9, 1.0], &as_it_is);
    assert_eq!(invalid, None);
    check(
        &outcome,
        "fairness_jain",
        3.9 * 3.9 / (2.0 * 9.41),
        Unit::Ratio,
    );
    let (_, invalid) = judged(&[3.2, 1.0], &as_it_is);
    let invalid = invalid.expect("one has more than three times the other's");
    assert!(
        invalid.starts_with("2 flows shared unfairly (Jain's index 0.78"),
        "{invalid}"
    );

    let mut shares = [1.0; 64];
    shares[..34].fill(0.0);
    let (outcome, invalid) = judged(&shares, &as_it_is);
    assert_eq!(
        invalid.as_deref(),
        Some("34 of 64 flows transferred nothing")
    );
    check(&outcome, "flows_idle", 34.0, Unit::Count);
    check(&outcome, "fairness_jain", 30.0 / 64.0, Unit::Ratio);

    // One of many that is held up takes nothing from what the others carried.
    let mut shares_but_one = [1.0; 100];
    shares_but_one[7] = 0.0;
    let (outcome, invalid) = judged(&shares_but_one, &as_it_is);
    assert_eq!(invalid, None);
    check(&outcome, "flows_idle", 1.0, Unit::Count);
    assert!(
        flags(&outcome)[0].starts_with("1 of 100 flows transferred nothing"),
        "{:?}",
        flags(&outcome)
    );
    // A third of them is no share, unless TCP's own losses make it.
    let mut two_thirds = [1.0; 60];
    two_thirds[..20].fill(0.0);
    assert!(judged(&two_thirds, &as_it_is).1.is_some());
    let losing = |_: &mut Workload, truth: &mut Truth| truth.lost_share = 0.01;
    assert_eq!(judged(&two_thirds, &losing).1, None);
    assert!(judged(&shares, &losing).1.is_some(), "most moved nothing");

    // TCP that lost segments shares by its losses: a result.
    let lossy = |_: &mut Workload, truth: &mut Truth| truth.lost_share = 0.01;
    let (outcome, invalid) = judged(&[9.0, 1.0], &lossy);
    assert_eq!(invalid, None);
    assert!(
        flags(&outcome)[0].contains("shared unfairly")
            && flags(&outcome)[0].contains("retransmitted"),
        "{:?}",
        flags(&outcome)
    );
    // Nor does a worker without time left give flows what those of another have; one that moved nothing
    // was not measured all the same.
    let alone = |_: &mut Workload, truth: &mut Truth| truth.worker_share = 0.99;
    let (_, invalid) = judged(&[9.0, 1.0], &alone);
    assert!(invalid.is_some(), "one worker serves all flows");
    let full = |_: &mut Workload, truth: &mut Truth| {
        truth.worker_share = 0.99;
        truth.second_worker = true;
    };
    let (outcome, invalid) = judged(&[9.0, 1.0], &full);
    assert_eq!(invalid, None);
    let flag = "shared unfairly (Jain's index 0.6098, below 0.8): each worker shares its CPU time";
    assert!(
        flags(&outcome).iter().any(|one| one.contains(flag)),
        "{:?}",
        flags(&outcome)
    );
    let (_, invalid) = judged(&shares, &full);
    assert_eq!(
        invalid.as_deref(),
        Some("34 of 64 flows transferred nothing")
    );
    // What waits for a CPU long is behind what does not; a tenth of the time is no reason.
    let held_up = |waited: f64, second_worker| {
        let beside = move |_: &mut Workload, truth: &mut Truth| {
            (truth.worker_share, truth.worker_wait_share) = (0.3, waited);
            truth.second_worker = second_worker;
        };
        let (outcome, invalid) = judged(&[9.0, 1.0], &beside);
        (flags(&outcome).join("; "), invalid.is_some())
    };
    let (told, is_invalid) = held_up(0.4, true);
    assert!(
        told.contains("a worker waited for a CPU 40 % of the time"),
        "{told}"
    );
    assert!(!is_invalid);
    assert!(held_up(0.1, true).1 && held_up(0.4, false).1);
    // Five segments for each flow are no share, and neither is one flow's luck.
    let little = |_: &mut Workload, truth: &mut Truth| truth.throughput_bps = 8.0 * 64.0 * 7240.0;
    let (outcome, invalid) = judged(&shares, &little);
    assert_eq!(invalid, None);
    assert!(
        flags(&outcome)[0]
            .starts_with("34 of 64 flows transferred nothing: at this rate the window holds 5 "),
        "{:?}",
        flags(&outcome)
    );
    // A volume is over when it is over.
    let bounded = |workload: &mut Workload, _: &mut Truth| {
        workload.manner.bytes_max = Some(Bytes(1 << 20));
    };
    assert_eq!(judged(&shares, &bounded).1, None);
    // Each direction is for itself.
    let both = |workload: &mut Workload, _: &mut Truth| {
        let Traffic::Stream { direction, .. } = &mut workload.traffic else {
            unreachable!("it is a stream");
        };
        *direction = Direction::Both;
    };
    let (outcome, invalid) = judged(&[9.0, 1.0, 9.0, 1.0], &both);
    assert_eq!(invalid, None);
    check(&outcome, "fairness_jain", 1.0, Unit::Ratio);
    // Nothing at all is no level either.
    let dead = |_: &mut Workload, truth: &mut Truth| truth.throughput_bps = 0.0;
    assert_eq!(
        judged(&[1.0], &dead).1.as_deref(),
        Some("the flow transferred nothing")
    );
}

#[test]
fn what_disturbs_is_data() {
    let truth = Truth {
        cpus: 1.0,
        others_cpus: 0.25,
        others_kernel_cpus: 0.125,
        missing_share: 0.07,
        pressure_share: Some(0.4),
        ..Truth::stream(800e6)
    };
    let outcome = one(stream(), truth);
    check(&outcome, "cpu_others_usr_cpus", 0.25, Unit::Cpus);
    check(&outcome, "cpu_others_cpus", 0.375, Unit::Cpus);
    check(&outcome, "cpu_missing_share", 0.07, Unit::Ratio);
    check(&outcome, "cpu_pressure_share", 0.4, Unit::Ratio);
    // What others did is no cost of the traffic.
    check(&outcome, "cpu_busy_cpus", 1.0, Unit::Cpus);
    check(&outcome, "cpu_cost_cpus", 0.625, Unit::Cpus);
    check(&outcome, "cpu_per_gbit_cpus", 0.625 / 0.8, Unit::Cpus);
    let told = |word: &str| flags(&outcome).iter().any(|flag| flag.contains(word));
    assert!(
        outcome.flags.len() == 1 && told("other programs used"),
        "{:?}",
        flags(&outcome)
    );
    // Time in no mode matters where CPUs have none to spare: ticks lose it of those that rest.
    let missing = |cpus| {
        let full = Truth {
            cpus,
            missing_share: 0.07,
            ..Truth::stream(800e6)
        };
        flags(&one(stream(), full))
            .iter()
            .any(|it| it.contains("7 % of the CPUs' time"))
    };
    assert_eq!(
        [1.0, 1.72, 1.8, 1.86].map(missing),
        [false, false, true, true]
    );
    let quiet = Truth {
        others_cpus: 0.1,
        missing_share: 0.02,
        ..Truth::stream(800e6)
    };
    assert_eq!(flags(&one(stream(), quiet)), [""; 0]);
}

/// A disturbed trial, and one that was done instead: whose numbers are averaged.
#[test]
fn a_repeat_stands_for_a_trial_only_where_its_own_numbers_count() {
    let averaged = |repeat: Truth| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        run.cell(&[], &[Truth::stream(800e6), repeat]);
        run.recording.document.plan.repeats = vec![Repeat {
            of: TrialId(1),
            trial: TrialId(2),
            why: RepeatReason::Disturbed(Disturbance::Unaccounted(0.2)),
        }];
        let outcomes = reduce::outcomes(&run.recording);
        let valid = outcomes.iter().filter(|outcome| outcome.is_valid());
        let valid: Vec<u32> = valid.map(|outcome| outcome.trial.0).collect();
        valid
    };
    assert_eq!(averaged(Truth::stream(800e6)), [2]);
    // The link cannot have carried it: without the first trial there would be none.
    assert_eq!(averaged(Truth::stream(1.2e9)), [1]);
}

#[test]
fn of_a_host_that_was_lost_no_cpu_time_is_missing() {
    let mut run = MadeRun::new(2, Some(1e9));
    run.experiment("one", None, stream());
    let truth = Truth {
        cpus: 1.0,
        ..Truth::stream(800e6)
    };
    run.cell(&[], &[truth]);
    let samples = std::mem::take(&mut run.recording.samples);
    let is_known =
        |sample: &TrialSample| !matches!(sample.subject, Subject::Cpu(_)) || sample.at_ns <= 0;
    run.recording.samples = samples.iter().filter(is_known).collect();
    let outcome = reduce::outcomes(&run.recording).remove(0);
    assert_eq!(outcome.value("cpu_missing_share"), None);
    assert_eq!(flags(&outcome), [""; 0]);
}

#[test]
fn halves_that_differ_are_told() {
    let halves = |halves: f64| {
        let truth = Truth {
            halves,
            ..Truth::stream(800e6)
        };
        let outcome = one(stream(), truth);
        check(&outcome, "throughput_bps", 800e6, Unit::BitsPerSecond);
        check(&outcome, "second_half_over_first", halves, Unit::Ratio);
        flags(&outcome)
    };
    assert_eq!(halves(1.0), [""; 0]);
    assert_eq!(halves(0.96), [""; 0]);
    assert_eq!(
        halves(1.11),
        ["not steady: the second half of the window carried 11 % more than the first"]
    );
    assert_eq!(
        halves(0.5),
        ["not steady: the second half of the window carried 50 % less than the first"]
    );
}

/// Read a hundred times, a window in which the rate rises for its first 0.3 s shows from when on it is steady.
#[test]
fn where_halves_differ_the_steady_part_is_told() {
    const READINGS: i64 = 100;
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    run.cell(&[], &[Truth::stream(800e6)]);
    let counts = |sample: &TrialSample| {
        sample.metric == Metric::TcpBytesReceived
            && matches!(sample.subject, Subject::Flow(_, End::Server))
    };
    let all: Vec<TrialSample> = run.recording.samples.iter().collect();
    let counter = all.iter().find(|sample| counts(sample)).expect("a counter");
    let finer = (0..=READINGS).map(|at| {
        let second = at as f64 / READINGS as f64;
        // 1 MB a reading from 0.3 s on, and evenly more before.
        let bytes = 1e8 * (second - 0.15 + 0.5 * (0.3 - second).max(0.0).powi(2) / 0.3);
        TrialSample {
            at_ns: at * 1_000_000_000 / READINGS,
            value: bytes as i64,
            ..counter.clone()
        }
    });
    let finer: Vec<TrialSample> = finer.collect();
    let others = all.iter().filter(|sample| !counts(sample)).cloned();
    run.recording.samples = others.chain(finer).collect();
    let outcome = reduce::outcomes(&run.recording).remove(0);
    check(&outcome, "steady_after_ns", 0.3e9, Unit::Nanoseconds);
    let flags = flags(&outcome);
    let told = |flag: &String| flag.contains("steady from 300 ms on (MSER-5)");
    assert!(flags.iter().any(told), "{flags:?}");
}

#[test]
fn a_counter_of_all_hosts_is_absent_when_one_was_not_read() {
    let mut run = MadeRun::new(1, Some(1e9));
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

/// What the last datagrams make of it when the traffic stops is not the window's.
#[test]
fn jitter_is_that_of_the_window() {
    let mut workload = stream();
    workload.manner.transport = Transport::Udp;
    if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
        *message_bytes = Bytes(1448);
    }
    let mut run = MadeRun::new(1, None);
    run.experiment("one", None, workload);
    run.cell(&[], &[Truth::stream(20e6)]);
    let mut flows = run.recording.flows.iter_mut();
    let receiver = flows.find(|flow| flow.part == Part::Receiver);
    let receiver = receiver.expect("a receiver");
    receiver.outcome.datagrams = Some(Box::new(Datagrams {
        jitter_ns: Some(200_000),
        ..Datagrams::default()
    }));
    let (trial, host) = (receiver.trial, receiver.host.clone());
    let subject = Subject::Flow(receiver.flow, receiver.end);
    let jitter = |run: &MadeRun| {
        reduce::outcomes(&run.recording)
            .remove(0)
            .value("jitter_ns")
    };
    assert_eq!(
        jitter(&run),
        Some(200_000.0),
        "nobody read it in the window"
    );
    let readings = [
        (1_000_000, 4_000),
        (1_000_050_000, 6_000),
        (1_500_000_000, 200_000),
    ];
    for (at_ns, value) in readings {
        run.recording.samples.push(TrialSample {
            trial,
            host: host.clone(),
            subject: subject.clone(),
            metric: Metric::AppJitter,
            at_ns,
            value,
        });
    }
    assert_eq!(jitter(&run), Some(5_000.0));
}

#[test]
fn what_came_before_the_window_and_waited_for_a_lost_segment_is_told() {
    // So many segments of those that arrived in order came in the window.
    let told = |share: f64, transport: Transport| {
        let mut workload = stream();
        workload.manner.transport = transport;
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, workload);
        run.cell(&[], &[Truth::sending(900e6, 1_000_000, 900_000)]);
        let samples: Vec<TrialSample> = run.recording.samples.iter().collect();
        run.recording.samples = Default::default();
        for mut sample in samples {
            if sample.metric == Metric::TcpDataSegsIn && &*sample.host.0 == "server" {
                sample.value = (sample.value as f64 * share) as i64;
            }
            run.recording.samples.push(sample);
        }
        let outcome = reduce::outcomes(&run.recording).remove(0);
        let flags = flags(&outcome);
        flags
            .iter()
            .any(|flag| flag.contains("2.5 % of what is counted had come before"))
    };
    assert!(told(0.975, Transport::Tcp));
    assert!(!told(0.995, Transport::Tcp));
    // TCP_INFO of MPTCP counts the segments of its first path.
    assert!(!told(0.975, Transport::Mptcp));
}

/// What the server's TCP counted of a stream beside next to nothing on its device, since the connection began; each that
/// it counts as one segment holds so many.
fn counted_from_the_begin(segments_each: f64) -> Outcome {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    let truth = Truth {
        beside_bps: Some(1e3),
        ..Truth::sending(90e6, 1_000_000, 900_000)
    };
    run.cell(&[], &[truth]);
    let samples: Vec<TrialSample> = run.recording.samples.iter().collect();
    run.recording.samples = Default::default();
    let first = |metric| {
        let at_server = samples.iter().filter(|sample| &*sample.host.0 == "server");
        let of_metric = at_server.filter(|sample| sample.metric == metric);
        of_metric.map(|sample| sample.value).min().unwrap_or(0)
    };
    let begins =
        [Metric::TcpDataSegsIn, Metric::TcpBytesReceived].map(|metric| (metric, first(metric)));
    for sample in &samples {
        let mut sample = sample.clone();
        let begin = begins.iter().find(|(metric, _)| *metric == sample.metric);
        if let Some((metric, begin)) = begin.filter(|_| &*sample.host.0 == "server") {
            sample.value -= begin;
            if *metric == Metric::TcpDataSegsIn {
                sample.value = (sample.value as f64 / segments_each) as i64;
            }
        }
        run.recording.samples.push(sample);
    }
    reduce::outcomes(&run.recording).remove(0)
}

#[test]
fn aggregates_tell_of_no_traffic_that_does_not_exist() {
    let is_of_others = |flag: &TrialFlag| {
        matches!(
            flag,
            TrialFlag::OtherTraffic { .. } | TrialFlag::HeldBack(_)
        )
    };
    for segments_each in [1.1, 2.0, 14.3, 45.0] {
        let outcome = counted_from_the_begin(segments_each);
        let told = outcome.flags.iter().find(|flag| is_of_others(flag));
        assert_eq!(told, None, "{segments_each}");
        // Absent, not zero: nobody knows what others had.
        for unknown in [name::OTHERS_SHARE, name::SHARED_BPS] {
            assert_eq!(outcome.value(unknown), None, "{segments_each}: {unknown}");
        }
        let known = |name| outcome.value(name).expect("the sender's counters have it");
        assert!((known(name::PAYLOAD_PER_SEGMENT) - 1448.0).abs() < 1.0);
        assert!((known(name::SEGMENTS_PER_ACK) - 2.0).abs() < 0.01);
    }
    let outcome = counted_from_the_begin(1.0);
    let told = outcome.flags.iter().find(|flag| is_of_others(flag));
    assert_eq!(told, None, "single frames");
    assert!(outcome.value(name::DATA_SEGMENTS).is_some());
}

#[test]
fn traffic_of_others_on_the_device_is_told() {
    let told = |beside_bps| {
        let mut workload = stream();
        workload.connections = 4;
        let truth = Truth {
            beside_bps,
            ..Truth::stream(90e6)
        };
        let flags = flags(&one(workload, truth));
        flags
            .into_iter()
            .find(|flag| flag.contains("neither the flows"))
    };
    let words = " % of what eth0 of server received was neither the flows' nor readings of this measurement";
    let flag = told(Some(10e6)).expect("a tenth is others'");
    let (share, _) = flag.split_once(words).expect("a share");
    let share: f64 = share.parse().expect("percent");
    assert!((9.9..=10.1).contains(&share), "{flag}");
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("one", None, stream());
    let truth = Truth {
        beside_bps: Some(10e6),
        ..Truth::stream(90e6)
    };
    run.cell(&[], &[truth]);
    let analysis = linerate_analyze::analyze(&run.recording);
    let trust = analysis.trust.expect("trust").reasons.join("; ");
    assert!(trust.contains("ther traffic passed"), "{trust}");
    // A hundredth is what one exchange of a second is; nothing is nothing; and what nobody read is not told.
    for beside_bps in [Some(0.9e6), Some(0.0), None] {
        assert_eq!(told(beside_bps), None, "{beside_bps:?}");
    }
}

/// The readings of a far host come to the client that asks for them: on a slow line they are a tenth of what passes.
#[test]
fn readings_of_this_measurement_are_no_traffic_of_others() {
    let told = |beside_bps, asks: bool| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        let truth = Truth {
            beside_bps: Some(beside_bps),
            ..Truth::stream(10e6)
        };
        run.cell(&[], &[truth]);
        // 10 000 readings of 16 B at the most, and those that every recording has.
        for number in 0..1000 {
            let values = (0..10).map(|tenth| TrialSample {
                trial: TrialId(1),
                host: "client1".into(),
                subject: Subject::Cpu(number + 2),
                metric: Metric::SoftnetProcessed,
                at_ns: tenth * 100_000_000,
                value: 1,
            });
            run.recording.samples.extend(values);
        }
        let server = &mut run.recording.document.hosts[0];
        server.control = asks.then_some(Control::InProcess);
        let outcome = reduce::outcomes(&run.recording).remove(0);
        let mut flags = flags(&outcome).into_iter();
        flags.any(|flag| flag.contains("neither the flows'"))
    };
    assert!(!told(1.2e6, true), "readings take as much");
    assert!(told(3e6, true), "and no more");
    assert!(told(1.2e6, false), "they go elsewhere");
}

/// TCP drops what is damaged and its sender takes it for lost: only this counter tells it.
#[test]
fn segments_that_arrived_damaged_are_told_with_their_host() {
    let told = |transport: Transport, values: [i64; 2]| {
        let mut workload = stream();
        workload.manner.transport = transport;
        if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
            *message_bytes = Bytes(1448);
        }
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, workload);
        run.cell(&[], &[Truth::stream(20e6)]);
        // What came before the window is not of it.
        let readings = [(50_000, values[0]), (1_000_050_000, values[1])];
        let trial = run.recording.trials[0].trial;
        let samples = readings.map(|(at_ns, value)| TrialSample {
            trial,
            host: "server".into(),
            subject: Subject::Counter("Tcp.InCsumErrors".to_owned()),
            metric: Metric::ProtocolCounter,
            at_ns,
            value,
        });
        run.recording.samples.extend(samples);
        flags(&reduce::outcomes(&run.recording).remove(0))
    };
    let words = "host server: 18 segments arrived damaged (wrong checksum), which their senders take for lost";
    assert_eq!(told(Transport::Tcp, [7, 25]), [words]);
    assert_eq!(told(Transport::Tcp, [7, 7]), [""; 0]);
    assert_eq!(told(Transport::Udp, [7, 25]), [""; 0]);
}

/// What a path makes two of was sent once: a rate above the one that was sent is none.
#[test]
fn datagrams_that_came_twice_are_received_once() {
    const BYTES: i64 = 1448;
    let mut workload = stream();
    workload.manner.transport = Transport::Udp;
    if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
        *message_bytes = Bytes(BYTES as u64);
    }
    let mut run = MadeRun::new(1, None);
    run.experiment("one", None, workload);
    run.cell(&[], &[Truth::stream(20e6)]);
    let samples: Vec<TrialSample> = run.recording.samples.iter().collect();
    run.recording.samples = Default::default();
    for sample in samples {
        if sample.metric != Metric::AppBytesReceived {
            run.recording.samples.push(sample);
            continue;
        }
        // Every second one came twice.
        let different = sample.value / BYTES;
        let again = different / 2;
        let counts = [
            (Metric::AppBytesReceived, BYTES * (different + again)),
            (Metric::AppDatagramsReceived, different + again),
            (Metric::AppDatagramsDuplicate, again),
        ];
        for (metric, value) in counts {
            run.recording.samples.push(TrialSample {
                metric,
                value,
                ..sample.clone()
            });
        }
    }
    let outcome = reduce::outcomes(&run.recording).remove(0);
    check(&outcome, "throughput_bps", 20e6, Unit::BitsPerSecond);
    check(
        &outcome,
        "throughput_to_server_bps",
        20e6,
        Unit::BitsPerSecond,
    );
    check(&outcome, "app_received_bps", 30e6, Unit::BitsPerSecond);
    let rate = 20e6 / (8.0 * BYTES as f64);
    check(&outcome, "datagrams_received_per_s", rate, Unit::PerSecond);
}

#[test]
fn flows_that_are_too_many_for_the_line_do_not_spoil_the_study() {
    // One connection and 64, three trials each: of the 64 some carry nothing.
    let level = |shares: [f64; 64], invalid: Option<&str>| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("queues", Some(11), stream());
        for connections in [1, 64_u64] {
            let truth = Truth {
                shares: match connections {
                    1 => Vec::new(),
                    _ => shares.to_vec(),
                },
                invalid: invalid.filter(|_| connections == 64).map(str::to_owned),
                ..Truth::stream(400e6)
            };
            let levels = [(Factor::Connections, Level::Count(connections))];
            run.cell(&levels, &[truth.clone(), truth.clone(), truth]);
        }
        analyze(&run.recording).trust.map(|trust| trust.level)
    };
    let mut shares = [1.0; 64];
    shares[..32].fill(0.0);
    assert_ne!(level(shares, None), Some(TrustLevel::DoNotUse));
    // Trials that failed for another reason say that something is wrong.
    let lost = level([1.0; 64], Some("client1 vanished"));
    assert_eq!(lost, Some(TrustLevel::DoNotUse));
}
