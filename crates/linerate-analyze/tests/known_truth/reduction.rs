//! Responses of one trial against the closed form that its samples were made from.

use linerate_analyze::reduce::{self, Outcome};
use linerate_model::plan::Repeat;

use crate::prelude::*;

fn one(workload: Workload, truth: Truth) -> Outcome {
    outcome(&once(GIGABIT, workload, &truth))
}

fn outcome(run: &MadeRun) -> Outcome {
    reduce::outcomes(&run.recording).remove(0)
}

/// Returns what there is to know of it, in words.
fn flags(outcome: &Outcome) -> Vec<String> {
    outcome.flags.iter().map(ToString::to_string).collect()
}

/// Returns whether there is to know what these words say.
fn is_flagged(outcome: &Outcome, words: &str) -> bool {
    flags(outcome).iter().any(|flag| flag.contains(words))
}

/// Returns why a trial is not valid.
fn invalid(outcome: &Outcome) -> Option<String> {
    match &outcome.validity {
        Validity::Valid => None,
        Validity::Invalid(reason) => Some(reason.to_string()),
    }
}

/// Counters are whole numbers, so that a rate of a few thousand a second is cut by this much.
const TRUNCATION_SHARE: f64 = 1e-3;

const BPS: Unit = Unit::BitsPerSecond;
const NS: Unit = Unit::Nanoseconds;

#[track_caller]
fn check(outcome: &Outcome, expected: &[(&str, f64, Unit)]) {
    for (name, expected, unit) in expected {
        let response = outcome.responses.get(*name);
        let response = response.unwrap_or_else(|| panic!("{name} was not reduced"));
        let error = (response.value - expected).abs();
        let is_so = error <= TRUNCATION_SHARE * expected.abs();
        assert!(is_so, "{name}: {} not {expected}", response.value);
        assert_eq!(response.unit, *unit, "{name}");
    }
}

#[test]
fn a_stream_has_the_responses_it_was_made_of() {
    let workload = sized(like!(stream(); connections: 4, clients: 2), 1000);
    let truth = like!(Truth::stream(800e6); lost_share: 0.25, rwnd_share: 0.25, sndbuf_share: 0.125,
        stall_ns: 7 * MS);
    let outcome = one(workload, truth);
    assert_eq!(outcome.validity, Validity::Valid);
    let segments = 800e6 / 8.0 / 1448.0;
    let expected = [
        ("throughput_bps", 800e6, BPS),
        ("throughput_to_server_bps", 800e6, BPS),
        ("throughput_sent_bps", 800e6, BPS),
        ("flow_throughput_min_bps", 200e6, BPS),
        ("data_segments_per_s", segments, Unit::PerSecond),
        ("acks_per_s", segments / 2.0, Unit::PerSecond),
        ("data_segments_per_ack", 2.0, Unit::Count),
        ("payload_per_segment_bytes", 1448.0, Unit::Bytes),
        ("messages_per_s", 800e6 / 8.0 / 1000.0, Unit::PerSecond),
        ("retransmitted_share", 0.25, Unit::Ratio),
        ("rwnd_limited_share", 0.25, Unit::Ratio),
        ("sndbuf_limited_share", 0.125, Unit::Ratio),
        ("tcp_rtt_ns", 100_000.0, NS),
        ("stall_max_ns", 7e6, NS),
        ("cpu_busy_cpus", 0.5, Unit::Cpus),
        ("cpu_per_gbit_cpus", 0.5 / 0.8, Unit::Cpus),
        ("worker_busy_share_max", 0.3, Unit::Ratio),
    ];
    check(&outcome, &expected);
    assert!(!outcome.responses.contains_key("throughput_from_server_bps"));
    assert!(!outcome.responses.contains_key("transactions_per_s"));
}

#[test]
fn transactions_have_quantiles_where_there_are_enough() {
    let truth = like!(Truth::transactions(100_000); acks_per_transaction: 0.5);
    let outcome = one(rr(100), truth);
    let expected = [
        ("transactions_per_s", 9900.0, Unit::PerSecond),
        ("rtt_p50_ns", 100_000.0, NS),
        ("rtt_p99_ns", 100_000.0, NS),
        ("one_way_ns", 50_000.0, NS),
        ("rtt_max_ns", 200_000.0, NS),
        ("acks_per_transaction", 0.5, Unit::Count),
    ];
    check(&outcome, &expected);
    // 9900 transactions do not support the 99.9th percentile, which needs 10 000.
    assert!(!outcome.responses.contains_key("rtt_p999_ns"));
    assert!(!outcome.responses.contains_key("throughput_bps"));
}

#[test]
fn directions_are_kept_apart() {
    let mut run = begun(GIGABIT, "one", None, like!(stream(); connections: 2));
    let both = (Factor::Direction, Level::Word("both".to_owned()));
    run.cell(&[both], &[Truth::stream(1.6e9)]);
    let outcome = outcome(&run);
    // 1.6 Gbit/s is possible: 0.8 Gbit/s in each direction.
    assert_eq!(outcome.validity, Validity::Valid);
    let expected = ["throughput_to_server_bps", "throughput_from_server_bps"];
    check(&outcome, &expected.map(|name| (name, 0.8e9, BPS)));
}

#[test]
fn a_sum_with_a_missing_flow_is_absent() {
    let mut run = once(GIGABIT, like!(stream(); connections: 3), &Truth::usual());
    run.keep(|sample| sample.subject.to_string() != "flow:1:server");
    let outcome = outcome(&run);
    let is_so = !outcome.responses.contains_key("throughput_bps");
    assert!(is_so, "{:?}", outcome.responses);
    // The sender's count is whole.
    check(&outcome, &[("throughput_sent_bps", 500e6, BPS)]);
}

/// The server's readings never came; what its host acknowledged is at the client.
#[test]
fn what_was_acknowledged_stands_for_a_receiver_of_which_nothing_came() {
    let mut run = once(GIGABIT, stream(), &Truth::stream(0.7e9));
    run.change(|sample| match sample.subject {
        Subject::Flow(flow, End::Server) if sample.metric == Metric::TcpBytesReceived => {
            sample.host = "client1".into();
            sample.subject = Subject::Flow(flow, End::Client);
            sample.metric = Metric::TcpBytesAcked;
        }
        _ => {}
    });
    run.keep(|sample| &*sample.host.0 != "server");
    run.recording.flows.retain(|flow| &*flow.host.0 != "server");
    let outcome = outcome(&run);
    check(&outcome, &[("throughput_bps", 0.7e9, BPS)]);
    let told = "what TCP acknowledged to the sender, because no reading of host server in the window arrived";
    assert!(is_flagged(&outcome, told), "{:?}", flags(&outcome));
}

#[test]
fn readings_before_the_window_are_none_of_it() {
    let truth = like!(Truth::stream(0.7e9); delivered_variation: Some(0.0), lost_share: 0.01);
    let mut run = once(GIGABIT, stream(), &truth);
    // The server was lost as the window began.
    run.keep(|sample| &*sample.host.0 != "server" || sample.at_ns < 0);
    check(&outcome(&run), &[("throughput_bps", 0.7e9, BPS)]);
    // Nor did nothing arrive where nobody read what did.
    run.keep(|sample| sample.metric != Metric::TcpBytesAcked);
    let findings = analyze(&run.recording).findings;
    let named = findings.iter().map(|finding| finding.id.as_str());
    assert_eq!(named.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn numbers_above_the_wire_are_refused() {
    let refused =
        |rate: Option<f64>, bps| invalid(&outcome(&once(rate, stream(), &Truth::stream(bps))));
    // 1448 / 1538 of 1 Gbit/s is 941.5 Mbit/s; half a percent is tolerated.
    assert_eq!(refused(GIGABIT, 941.4e6), None);
    assert_eq!(refused(GIGABIT, 945e6), None);
    says!(refused(GIGABIT, 950e6).expect("it is above the wire"); "950 Mbit/s", "941 Mbit/s");
    assert_eq!(refused(None, 50e9), None);
}

#[test]
fn the_wire_limit_needs_facts_and_is_generous_without() {
    let mut run = trials(GIGABIT, stream(), &[990e6, 1010e6].map(Truth::stream));
    for host in &mut run.recording.document.hosts {
        host.snapshot.facts.clear();
    }
    let outcomes = reduce::outcomes(&run.recording);
    // Without an MTU only the bare rate is a limit.
    assert!(outcomes[0].is_valid());
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
    let told = |worker_share, worker_wait_share| {
        let truth = like!(Truth::usual(); worker_share, worker_wait_share);
        flags(&one(stream(), truth))
    };
    assert_eq!(told(0.3, 0.1), [""; 0]);
    says!(told(0.97, 0.0)[0]; "saturated");
    says!(told(0.6, 0.38)[0]; "short of CPU");
}

#[test]
fn a_sender_that_spins_for_the_rate_that_it_reaches_is_not_saturated() {
    let told = |asked_bps: Option<u64>, reader_ran: f64| {
        let truth = like!(Truth::stream(200e6); worker_share: 0.97);
        let mut run = once(None, datagrams(asked_bps, 1448), &truth);
        let reader = Subject::Thread("worker-0".to_owned());
        let ns = |share: f64| (share * 1e9) as i64;
        let growth = [
            (reader.clone(), Metric::ThreadRun, ns(reader_ran)),
            (reader, Metric::ThreadWait, ns(0.01)),
        ];
        crate::grow(&mut run.recording, TrialId(1), &growth);
        is_flagged(&outcome(&run), "saturated")
    };
    assert!(!told(Some(200_000_000), 0.3));
    // It falls short, as fast as it can is what was asked for, or the reader has no time left.
    assert!(told(Some(210_000_000), 0.3));
    assert!(told(None, 0.3));
    assert!(told(Some(200_000_000), 0.97));
}

#[test]
fn throughput_is_what_tcp_took_in_whatever_was_read_of_it() {
    let read = |read_beyond_bytes: f64| {
        let outcome = one(stream(), like!(Truth::stream(940e6); read_beyond_bytes));
        // Above or below, near the link's limit or far from it: the count is the same.
        assert!(outcome.is_valid(), "{:?}", outcome.validity);
        let received = 940e6 + 8.0 * read_beyond_bytes;
        let received = ("app_received_bps", received, BPS);
        check(&outcome, &[("throughput_bps", 940e6, BPS), received]);
        flags(&outcome)
    };
    assert_eq!(read(0.0), [""; 0]);
    assert_eq!(read(1.1e6), [""; 0], "below a hundredth of 117.5 MB");
    const BEYOND: f64 = 5.0 * 1_048_576.0;
    let [more, less] = [BEYOND, -BEYOND].map(read);
    assert_eq!([more.len(), less.len()], [1, 1], "{more:?} {less:?}");
    says!(more[0]; begins "receive calls returned 5 MiB more than arrived in the window (4.46",
        ends "it was in receive buffers before the window");
    says!(less[0]; begins "receive calls returned 5 MiB less than arrived in the window (4.46",
        ends "it is still in receive buffers");
}

#[test]
fn what_tcp_was_not_read_for_lies_in_no_buffer() {
    // The last reading, after the end, found the socket gone: only what receive calls had returned is known.
    let told = |read_beyond_bytes: f64| {
        let truth = like!(Truth::stream(940e6); read_beyond_bytes);
        let mut run = once(None, stream(), &truth);
        run.keep(|sample| {
            sample.metric != Metric::TcpBytesReceived || sample.at_ns < WINDOW_NS as i64
        });
        flags(&outcome(&run))
    };
    assert_eq!(told(0.0), [""; 0]);
    says!(told(10e6)[0]; "in receive buffers");
}

#[test]
fn more_than_receive_buffers_hold_was_in_none() {
    // Between both readings of a host whose CPUs others have.
    let told = |read_beyond_bytes: f64, rmem: Option<&str>| {
        let truth = like!(Truth::stream(4e9); read_beyond_bytes);
        let mut run = once(None, stream(), &truth);
        if let Some(three) = rmem {
            let three = FactValue::Text(three.to_owned());
            run.both_tell("sysctl.net.ipv4.tcp_rmem", three);
        }
        flags(&outcome(&run)).concat()
    };
    const RMEM: Option<&str> = Some("4096 131072 6291456");
    says!(told(20e6, RMEM); "read at another time");
    says!(told(-20e6, RMEM); "read at another time");
    says!(told(20e6, Some("4096 131072 33554432")); "in receive buffers before");
    says!(told(20e6, None); "in receive buffers before");
}

/// Without timestamps a gigabit carries 949.3 Mbit/s (1460 of 1538 B), with them 941.5.
#[test]
fn options_that_a_host_does_not_tell_of_may_be_off() {
    let is_valid = |server_tells: bool| {
        let mut run = once(GIGABIT, stream(), &Truth::stream(949e6));
        let server = &mut run.recording.document.hosts[0];
        assert_eq!(server.part, HostPart::Server);
        let facts = &mut server.snapshot.facts;
        facts.retain(|fact| server_tells || !fact.name.ends_with("tcp_timestamps"));
        outcome(&run).is_valid()
    };
    assert!(is_valid(false));
    assert!(!is_valid(true), "it cannot cross the link");
}

#[test]
fn what_only_the_application_counts_is_its_count() {
    let counted = |transport| {
        let workload = like!(datagrams(None, 1448); manner.transport: transport);
        let truth = like!(Truth::stream(400e6); read_beyond_bytes: 5e6);
        outcome(&once(None, workload, &truth))
    };
    for outcome in [Transport::Udp, Transport::Unix].map(counted) {
        check(&outcome, &[("throughput_bps", 440e6, BPS)]);
        assert_eq!(flags(&outcome), [""; 0]);
    }
    let outcome = counted(Transport::Mptcp);
    check(&outcome, &[("throughput_bps", 400e6, BPS)]);
}

/// So many flows, with parts of what moves for each.
fn shared(shares: &[f64]) -> (Workload, Truth) {
    let workload = like!(stream(); connections: shares.len() as u32);
    (
        workload,
        like!(Truth::stream(800e6); shares: shares.to_vec()),
    )
}

#[test]
fn what_only_its_numbers_spoil_is_to_be_done_once_more() {
    let (workload, idle) = shared(&[1.0, 0.0]);
    let (_, both) = shared(&[1.0, 1.0]);
    let told = like!(idle; invalid: Some("a counter was not read".to_owned()));
    says!(next_of(&once(GIGABIT, workload.clone(), &idle)); "fewer flows");
    let run = trials(GIGABIT, workload, &[both, idle, told]);
    // What a host or the controller knew when it ended is known to whoever did the trial.
    let spoilt = linerate_analyze::spoilt(&Reduced::of(&run.recording));
    let [spoilt] = &spoilt[..] else {
        panic!("{spoilt:?}");
    };
    assert_eq!(spoilt.trial, run.recording.trials[1].trial);
    assert_eq!(spoilt.why.to_string(), "1 of 2 flows transferred nothing");
}

#[test]
fn a_trial_is_repeated_for_what_moved_its_number() {
    let repeated = |disturbed: Truth| {
        let mut truths = [800e6, 804e6, 797e6, 802e6, 799e6]
            .map(Truth::stream)
            .to_vec();
        truths.push(disturbed);
        let run = trials(GIGABIT, stream(), &truths);
        let spoilt = linerate_analyze::spoilt(&Reduced::of(&run.recording));
        let why = spoilt.iter().map(|one| (one.trial.0, one.why.to_string()));
        why.collect::<Vec<_>>()
    };
    let usual = Truth::usual();
    for (taken, word) in [
        (like!(usual; others_cpus: 0.6), "other programs"),
        (like!(usual; missing_share: 0.1), "none of their modes"),
        (like!(usual; stolen_share: 0.1), "the hypervisor"),
    ] {
        let all = repeated(like!(taken; throughput_bps: 600e6));
        let is_so = all.len() == 1 && all[0].0 == 6 && all[0].1.contains(word);
        assert!(is_so, "{all:?}");
        // What was taken was not needed.
        assert_eq!(repeated(like!(taken; throughput_bps: 801e6)), []);
    }
    // Nothing is known to have taken anything.
    assert_eq!(repeated(Truth::stream(600e6)), []);
}

#[test]
fn a_flow_that_loses_more_than_others_has_less() {
    let told = |again: i64| {
        let (workload, truth) = shared(&[9.0, 1.0]);
        let mut run = once(GIGABIT, workload, &truth);
        // Of the second flow's thousand segments so many were sent again.
        let subject = Subject::Flow(FlowId(1), End::Client);
        for (metric, grown) in [(Metric::TcpRetrans, again), (Metric::TcpDataSegsOut, 1000)] {
            run.keep(|one| one.subject != subject || one.metric != metric);
            let readings = [(0, 7), (1_000_050_000, 7 + grown)];
            run.put("client1", &subject, metric, &readings);
        }
        let outcome = outcome(&run);
        (outcome.is_valid(), flags(&outcome).concat())
    };
    let (is_valid, flags) = told(30);
    assert!(is_valid);
    says!(flags; "retransmitted 3 % of its segments");
    assert!(!told(2).0);
}

#[test]
fn flows_whose_round_trips_differ_under_load_need_not_share_alike() {
    // The same shortest round trip; the second waits behind a queue of its own.
    let told = |second_ns: i64| {
        let (workload, truth) = shared(&[9.0, 1.0]);
        let truth = like!(truth; throughput_bps: 80e6, min_rtt_ns: Some(20 * MS), rtt_ns: 36 * MS);
        let mut run = once(GIGABIT, workload, &truth);
        let subject = Subject::Flow(FlowId(1), End::Client);
        run.set(Metric::TcpRtt, |it| {
            if it.subject == subject {
                second_ns
            } else {
                it.value
            }
        });
        let outcome = outcome(&run);
        (outcome.is_valid(), flags(&outcome).concat())
    };
    let (is_valid, flags) = told(99 * MS);
    assert!(is_valid);
    says!(flags; "round trips differ, from 36 ms to 99 ms");
    assert!(!told(40 * MS).0);
    // It has less, and its round trip is the shorter one: that is not why.
    assert!(!told(15 * MS).0);
}

#[test]
fn a_level_is_in_force_where_each_flow_carries_something() {
    let judged = |shares: &[f64], change: &dyn Fn(&mut Workload, &mut Truth)| {
        let (mut workload, mut truth) = shared(shares);
        change(&mut workload, &mut truth);
        let outcome = one(workload, truth);
        let invalid = invalid(&outcome);
        (outcome, invalid)
    };
    let as_it_is = |_: &mut Workload, _: &mut Truth| {};
    let fairness = |index| ("fairness_jain", index, Unit::Ratio);
    let idle = |flows| ("flows_idle", flows, Unit::Count);

    let (outcome, invalid) = judged(&[1.0; 8], &as_it_is);
    assert_eq!((invalid, outcome.flags.len()), (None, 0));
    check(&outcome, &[fairness(1.0), idle(0.0)]);

    // (3 + 1)² / (2 × (9 + 1)) = 0.8.
    let (outcome, invalid) = judged(&[2.9, 1.0], &as_it_is);
    assert_eq!(invalid, None);
    check(&outcome, &[fairness(3.9 * 3.9 / (2.0 * 9.41))]);
    let (_, invalid) = judged(&[3.2, 1.0], &as_it_is);
    // One has more than three times the other's.
    says!(invalid.unwrap_or_default(); begins "2 flows shared unfairly (Jain's index 0.78");

    let most_idle = Some("34 of 64 flows transferred nothing");
    let mut shares = [1.0; 64];
    shares[..34].fill(0.0);
    let (outcome, invalid) = judged(&shares, &as_it_is);
    assert_eq!(invalid.as_deref(), most_idle);
    check(&outcome, &[idle(34.0), fairness(30.0 / 64.0)]);

    // One of many that is held up takes nothing from what the others carried.
    let mut shares_but_one = [1.0; 100];
    shares_but_one[7] = 0.0;
    let (outcome, invalid) = judged(&shares_but_one, &as_it_is);
    assert_eq!(invalid, None);
    check(&outcome, &[idle(1.0)]);
    says!(flags(&outcome)[0]; begins "1 of 100 flows transferred nothing");
    // A third of them is no share, unless TCP's own losses make it.
    let mut two_thirds = [1.0; 60];
    two_thirds[..20].fill(0.0);
    assert!(judged(&two_thirds, &as_it_is).1.is_some());
    let losing = |_: &mut Workload, truth: &mut Truth| truth.lost_share = 0.01;
    assert_eq!(judged(&two_thirds, &losing).1, None);
    assert!(judged(&shares, &losing).1.is_some(), "most moved nothing");

    // TCP that lost segments shares by its losses: a result.
    let (outcome, invalid) = judged(&[9.0, 1.0], &losing);
    assert_eq!(invalid, None);
    says!(flags(&outcome)[0]; "shared unfairly", "retransmitted");
    // Nor does a worker without time left give flows what those of another have; one that moved nothing
    // was not measured all the same.
    let alone = |_: &mut Workload, truth: &mut Truth| truth.worker_share = 0.99;
    let (_, invalid) = judged(&[9.0, 1.0], &alone);
    assert!(invalid.is_some(), "one worker serves all flows");
    let full = |_: &mut Workload, truth: &mut Truth| {
        (truth.worker_share, truth.second_worker) = (0.99, true);
    };
    let (outcome, invalid) = judged(&[9.0, 1.0], &full);
    assert_eq!(invalid, None);
    let flag = "shared unfairly (Jain's index 0.6098, below 0.8): each worker shares its CPU time";
    assert!(is_flagged(&outcome, flag), "{:?}", flags(&outcome));
    assert_eq!(judged(&shares, &full).1.as_deref(), most_idle);
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
    says!(told; "a worker waited for a CPU 40 % of the time");
    assert!(!is_invalid);
    assert!(held_up(0.1, true).1 && held_up(0.4, false).1);
    // Five segments for each flow are no share, and neither is one flow's luck.
    let little = |_: &mut Workload, truth: &mut Truth| truth.throughput_bps = 8.0 * 64.0 * 7240.0;
    let (outcome, invalid) = judged(&shares, &little);
    assert_eq!(invalid, None);
    says!(flags(&outcome)[0];
        begins "34 of 64 flows transferred nothing: at this rate the window holds 5 ");
    // A volume is over when it is over.
    let bounded = |workload: &mut Workload, _: &mut Truth| {
        workload.manner.bytes_max = Some(Bytes(1 << 20));
    };
    assert_eq!(judged(&shares, &bounded).1, None);
    // Each direction is for itself.
    let both = |workload: &mut Workload, _: &mut Truth| {
        *workload = crate::both_ways::going(workload, Direction::Both);
    };
    let (outcome, invalid) = judged(&[9.0, 1.0, 9.0, 1.0], &both);
    assert_eq!(invalid, None);
    check(&outcome, &[fairness(1.0)]);
    // Nothing at all is no level either.
    let dead = |_: &mut Workload, truth: &mut Truth| truth.throughput_bps = 0.0;
    let (_, invalid) = judged(&[1.0], &dead);
    assert_eq!(invalid.as_deref(), Some("the flow transferred nothing"));
}

#[test]
fn what_disturbs_is_data() {
    let plain = Truth::stream(800e6);
    let truth = like!(plain; cpus: 1.0, others_cpus: 0.25, others_kernel_cpus: 0.125,
        missing_share: 0.07, pressure_share: Some(0.4));
    let outcome = one(stream(), truth);
    let expected = [
        ("cpu_others_usr_cpus", 0.25, Unit::Cpus),
        ("cpu_others_cpus", 0.375, Unit::Cpus),
        ("cpu_missing_share", 0.07, Unit::Ratio),
        ("cpu_pressure_share", 0.4, Unit::Ratio),
        // What others did is no cost of the traffic.
        ("cpu_busy_cpus", 1.0, Unit::Cpus),
        ("cpu_cost_cpus", 0.625, Unit::Cpus),
        ("cpu_per_gbit_cpus", 0.625 / 0.8, Unit::Cpus),
    ];
    check(&outcome, &expected);
    let is_told = is_flagged(&outcome, "other programs used");
    assert!(outcome.flags.len() == 1 && is_told, "{:?}", flags(&outcome));
    // Time in no mode matters where CPUs have none to spare: ticks lose it of those that rest.
    let missing = |cpus| {
        let outcome = one(stream(), like!(plain; cpus, missing_share: 0.07));
        is_flagged(&outcome, "7 % of the CPUs' time")
    };
    let missing = [1.0, 1.72, 1.8, 1.86].map(missing);
    assert_eq!(missing, [false, false, true, true]);
    let truth = like!(plain; others_cpus: 0.1, missing_share: 0.02);
    let quiet = one(stream(), truth);
    assert_eq!(flags(&quiet), [""; 0]);
}

/// A disturbed trial, and one that was done instead: whose numbers are averaged.
#[test]
fn a_repeat_stands_for_a_trial_only_where_its_own_numbers_count() {
    let averaged = |repeat: Truth| {
        let mut run = trials(GIGABIT, stream(), &[Truth::stream(800e6), repeat]);
        run.recording.document.plan.repeats = vec![Repeat {
            of: TrialId(1),
            trial: TrialId(2),
            why: RepeatReason::Disturbed(Disturbance::Unaccounted(0.2)),
        }];
        let outcomes = reduce::outcomes(&run.recording);
        let valid = outcomes.iter().filter(|outcome| outcome.is_valid());
        valid.map(|outcome| outcome.trial.0).collect::<Vec<_>>()
    };
    assert_eq!(averaged(Truth::stream(800e6)), [2]);
    // The link cannot have carried it: without the first trial there would be none.
    assert_eq!(averaged(Truth::stream(1.2e9)), [1]);
}

#[test]
fn of_a_host_that_was_lost_no_cpu_time_is_missing() {
    let mut run = once(GIGABIT, stream(), &like!(Truth::stream(800e6); cpus: 1.0));
    run.keep(|sample| !matches!(sample.subject, Subject::Cpu(_)) || sample.at_ns <= 0);
    let outcome = outcome(&run);
    assert_eq!(outcome.value("cpu_missing_share"), None);
    assert_eq!(flags(&outcome), [""; 0]);
}

#[test]
fn halves_that_differ_are_told() {
    let told = |halves: f64| {
        let outcome = one(stream(), like!(Truth::stream(800e6); halves));
        let ratio = ("second_half_over_first", halves, Unit::Ratio);
        check(&outcome, &[("throughput_bps", 800e6, BPS), ratio]);
        flags(&outcome)
    };
    assert_eq!(told(1.0), [""; 0]);
    assert_eq!(told(0.96), [""; 0]);
    let words = |change: &str| {
        format!("not steady: the second half of the window carried {change} than the first")
    };
    assert_eq!(told(1.11), [words("11 % more")]);
    assert_eq!(told(0.5), [words("50 % less")]);
}

/// Read a hundred times, a window in which the rate rises for its first 0.3 s shows from when on it is steady.
#[test]
fn where_halves_differ_the_steady_part_is_told() {
    const READINGS: i64 = 100;
    let mut run = once(GIGABIT, stream(), &Truth::stream(800e6));
    let counter = Subject::Flow(FlowId(0), End::Server);
    let is_counted = |sample: &TrialSample| {
        sample.metric == Metric::TcpBytesReceived && sample.subject == counter
    };
    run.keep(|sample| !is_counted(sample));
    let finer = (0..=READINGS).map(|at| {
        let second = at as f64 / READINGS as f64;
        // 1 MB a reading from 0.3 s on, and evenly more before.
        let bytes = 1e8 * (second - 0.15 + 0.5 * (0.3 - second).max(0.0).powi(2) / 0.3);
        (at * 1_000_000_000 / READINGS, bytes as i64)
    });
    let finer: Vec<(i64, i64)> = finer.collect();
    run.put("server", &counter, Metric::TcpBytesReceived, &finer);
    let outcome = outcome(&run);
    check(&outcome, &[("steady_after_ns", 0.3e9, NS)]);
    let told = is_flagged(&outcome, "steady from 300 ms on (MSER-5)");
    assert!(told, "{:?}", flags(&outcome));
}

#[test]
fn a_counter_of_all_hosts_is_absent_when_one_was_not_read() {
    let mut run = once(GIGABIT, rr(100), &Truth::transactions(100_000));
    let mut counted = |host: &str| {
        let readings = [(0, 0), (1_000_000_000, 7)];
        run.put(host, &Subject::Host, Metric::NetstatDelayedAcks, &readings);
        outcome(&run).value("delayed_acks_per_s")
    };
    assert_eq!(counted("client1"), None);
    assert_eq!(counted("server"), Some(14.0));
}

/// What the last datagrams make of it when the traffic stops is not the window's.
#[test]
fn jitter_is_that_of_the_window() {
    let mut run = once(None, datagrams(None, 1448), &Truth::stream(20e6));
    let mut flows = run.recording.flows.iter_mut();
    let receiver = flows.find(|flow| flow.part == Part::Receiver);
    let receiver = receiver.expect("a receiver");
    let counted = like!(Datagrams::default(); jitter_ns: Some(200_000));
    receiver.outcome.datagrams = Some(Box::new(counted));
    let host = receiver.host.to_string();
    let subject = Subject::Flow(receiver.flow, receiver.end);
    let jitter = |run: &MadeRun| outcome(run).value("jitter_ns");
    // Nobody read it in the window.
    assert_eq!(jitter(&run), Some(200_000.0));
    let readings = [
        (1_000_000, 4_000),
        (1_000_050_000, 6_000),
        (1_500_000_000, 200_000),
    ];
    run.put(&host, &subject, Metric::AppJitter, &readings);
    assert_eq!(jitter(&run), Some(5_000.0));
}

#[test]
fn what_came_before_the_window_and_waited_for_a_lost_segment_is_told() {
    // So many segments of those that arrived in order came in the window.
    let told = |share: f64, transport: Transport| {
        let workload = like!(stream(); manner.transport: transport);
        let mut run = once(GIGABIT, workload, &Truth::sending(900e6, MS, 900_000));
        run.change(|sample| {
            if sample.metric == Metric::TcpDataSegsIn && &*sample.host.0 == "server" {
                sample.value = (sample.value as f64 * share) as i64;
            }
        });
        is_flagged(&outcome(&run), "2.5 % of what is counted had come before")
    };
    assert!(told(0.975, Transport::Tcp));
    assert!(!told(0.995, Transport::Tcp));
    // TCP_INFO of MPTCP counts the segments of its first path.
    assert!(!told(0.975, Transport::Mptcp));
}

/// What the server's TCP counted of a stream beside next to nothing on its device, since the connection began; each that
/// it counts as one segment holds so many.
fn counted_from_the_begin(segments_each: f64) -> Outcome {
    let truth = like!(Truth::sending(90e6, MS, 900_000); beside_bps: Some(1e3));
    let mut run = once(GIGABIT, stream(), &truth);
    for metric in [Metric::TcpDataSegsIn, Metric::TcpBytesReceived] {
        let is_counted =
            |sample: &TrialSample| sample.metric == metric && &*sample.host.0 == "server";
        let counted = run.recording.samples.iter().filter(is_counted);
        let begin = counted.map(|sample| sample.value).min().unwrap_or(0);
        run.change(|sample| {
            if is_counted(sample) {
                sample.value -= begin;
                if metric == Metric::TcpDataSegsIn {
                    sample.value = (sample.value as f64 / segments_each) as i64;
                }
            }
        });
    }
    outcome(&run)
}

#[test]
fn aggregates_tell_of_no_traffic_that_does_not_exist() {
    let of_others = |outcome: &Outcome| {
        let mut flags = outcome.flags.iter();
        let is_of_others =
            |it: &&TrialFlag| matches!(it, TrialFlag::OtherTraffic { .. } | TrialFlag::HeldBack(_));
        flags.find(is_of_others).cloned()
    };
    for segments_each in [1.1, 2.0, 14.3, 45.0] {
        let outcome = counted_from_the_begin(segments_each);
        assert_eq!(of_others(&outcome), None, "{segments_each}");
        // Absent, not zero: nobody knows what others had.
        for unknown in [name::OTHERS_SHARE, name::SHARED_BPS] {
            assert_eq!(outcome.value(unknown), None, "{segments_each}: {unknown}");
        }
        let known = |name| outcome.value(name).expect("the sender's counters have it");
        assert!((known(name::PAYLOAD_PER_SEGMENT) - 1448.0).abs() < 1.0);
        assert!((known(name::SEGMENTS_PER_ACK) - 2.0).abs() < 0.01);
    }
    let outcome = counted_from_the_begin(1.0);
    assert_eq!(of_others(&outcome), None, "single frames");
    assert!(outcome.value(name::DATA_SEGMENTS).is_some());
}

#[test]
fn traffic_of_others_on_the_device_is_told() {
    let beside = |beside_bps| like!(Truth::stream(90e6); beside_bps);
    let told = |beside_bps| {
        let outcome = one(like!(stream(); connections: 4), beside(beside_bps));
        let mut flags = flags(&outcome).into_iter();
        flags.find(|flag| flag.contains("neither the flows"))
    };
    let words = " % of what eth0 of server received was neither the flows' nor readings of this measurement";
    let flag = told(Some(10e6)).expect("a tenth is others'");
    let (share, _) = flag.split_once(words).expect("a share");
    let share: f64 = share.parse().expect("percent");
    assert!((9.9..=10.1).contains(&share), "{flag}");
    let run = once(GIGABIT, stream(), &beside(Some(10e6)));
    let trust = analyze(&run.recording).trust.expect("trust");
    says!(trust.reasons.join("; "); "ther traffic passed");
    // A hundredth is what one exchange of a second is; nothing is nothing; and what nobody read is not told.
    for beside_bps in [Some(0.9e6), Some(0.0), None] {
        assert_eq!(told(beside_bps), None, "{beside_bps:?}");
    }
}

/// The readings of a far host come to the client that asks for them: on a slow line they are a tenth of what passes.
#[test]
fn readings_of_this_measurement_are_no_traffic_of_others() {
    let told = |beside_bps, asks: bool| {
        let truth = like!(Truth::stream(10e6); beside_bps: Some(beside_bps));
        let mut run = once(GIGABIT, stream(), &truth);
        // 10 000 readings of 16 B at the most, and those that every recording has.
        let readings = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|tenth| (tenth * 100 * MS, 1));
        for number in 0..1000 {
            let cpu = Subject::Cpu(number + 2);
            run.put("client1", &cpu, Metric::SoftnetProcessed, &readings);
        }
        let server = &mut run.recording.document.hosts[0];
        server.control = asks.then_some(Control::InProcess);
        is_flagged(&outcome(&run), "neither the flows'")
    };
    assert!(!told(1.2e6, true), "readings take as much");
    assert!(told(3e6, true), "and no more");
    assert!(told(1.2e6, false), "they go elsewhere");
}

/// TCP drops what is damaged and its sender takes it for lost: only this counter tells it.
#[test]
fn segments_that_arrived_damaged_are_told_with_their_host() {
    let told = |transport: Transport, [before, after]: [i64; 2]| {
        let workload = like!(datagrams(None, 1448); manner.transport: transport);
        let mut run = once(None, workload, &Truth::stream(20e6));
        // What came before the window is not of it.
        let readings = [(50_000, before), (1_000_050_000, after)];
        let counter = Subject::Counter("Tcp.InCsumErrors".to_owned());
        run.put("server", &counter, Metric::ProtocolCounter, &readings);
        flags(&outcome(&run))
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
    let mut run = once(None, datagrams(None, BYTES as u64), &Truth::stream(20e6));
    let samples = std::mem::take(&mut run.recording.samples);
    for sample in samples.iter() {
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
            run.recording.samples.push(like!(sample; metric, value));
        }
    }
    let rate = 20e6 / (8.0 * BYTES as f64);
    let expected = [
        ("throughput_bps", 20e6, BPS),
        ("throughput_to_server_bps", 20e6, BPS),
        ("app_received_bps", 30e6, BPS),
        ("datagrams_received_per_s", rate, Unit::PerSecond),
    ];
    check(&outcome(&run), &expected);
}

#[test]
fn flows_that_are_too_many_for_the_line_do_not_spoil_the_study() {
    // One connection and 64, three trials each: of the 64 some carry nothing.
    let level = |shares: [f64; 64], invalid: Option<&str>| {
        let mut run = begun(GIGABIT, "queues", Some(11), stream());
        let one = Truth::stream(400e6);
        let many = like!(one; shares: shares.to_vec(), invalid: invalid.map(str::to_owned));
        for (connections, truth) in [(1, one), (64, many)] {
            let levels = [(Factor::Connections, Level::Count(connections))];
            run.alike(&levels, &truth);
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
