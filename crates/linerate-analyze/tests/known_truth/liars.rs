//! What an agent hands over that cannot be: the trial is none, and says which host and why; and what looks like it and is not.

use linerate_analyze::reduce;
use linerate_model::outcome::Outcome;
use linerate_model::reason::{Impossible, Moved};
use linerate_model::run::HostProgram;

use crate::prelude::*;

fn stream_run() -> MadeRun {
    once(None, stream(), &Truth::stream(20e6))
}

/// Makes `host` a server or client of another program.
fn make_foreign(run: &mut MadeRun, host: &str) {
    let mut hosts = run.recording.document.hosts.iter_mut();
    let host = hosts.find(|known| known.name == HostName::from(host));
    host.expect("a host of the run").program = HostProgram::Foreign("iperf3".to_owned());
}

fn outcome(run: &MadeRun) -> Outcome {
    reduce::outcomes(&run.recording).remove(0)
}

fn refused(run: &MadeRun) -> Option<(HostName, Impossible)> {
    let outcome = outcome(run);
    match outcome.validity {
        Validity::Invalid(Reason::Impossible { host, how }) => {
            assert!(outcome.responses.is_empty(), "nothing rests on it");
            Some((host, how))
        }
        _ => None,
    }
}

#[test]
fn counters_that_run_backwards_are_refused() {
    for metric in [Metric::AppBytesReceived, Metric::TcpBytesReceived] {
        let mut run = stream_run();
        assert_eq!(refused(&run), None);
        run.set(metric, |it| 10_i64.pow(12) - it.at_ns);
        let (host, how) = refused(&run).expect("it cannot be");
        assert_eq!(host, HostName::from("server"));
        assert!(
            matches!(how, Impossible::Fell { metric: of, .. } if of == metric),
            "{how:?}"
        );
    }
    // A device's may begin anew, and so may what the kernel guesses.
    let mut run = stream_run();
    run.set(Metric::CpuIdle, |it| -it.value);
    assert_eq!(refused(&run), None);
    // The end of a stream is a byte that is taken off once it is known of.
    let mut run = stream_run();
    let samples = run.recording.samples.iter();
    let last_ns = samples.map(|sample| sample.at_ns).max();
    let mut most = 0;
    run.change(|sample| {
        if sample.metric == Metric::TcpBytesReceived {
            most = most.max(sample.value);
            if Some(sample.at_ns) == last_ns {
                sample.value = most - 1;
            }
        }
    });
    assert_eq!(refused(&run), None);
}

#[test]
fn nothing_arrives_that_was_not_sent() {
    for metric in [Metric::AppBytesReceived, Metric::TcpBytesReceived] {
        for transport in [Transport::Tcp, Transport::Mptcp] {
            let mut run = stream_run();
            let trials = &mut run.recording.document.plan.trials;
            trials[0].workload.manner.transport = transport;
            assert_eq!(refused(&run), None);
            run.set(metric, |it| 1000 * it.value);
            let (host, how) = refused(&run).expect("it cannot be");
            assert_eq!(host, HostName::from("server"));
            let Impossible::Unsent {
                what,
                arrived,
                sender,
                sent,
                ..
            } = how
            else {
                panic!("{how:?}");
            };
            assert_eq!((what, sender), (Moved::Bytes, "client1".into()));
            assert!(arrived > sent, "{arrived} of {sent}");
        }
    }
    // Who tells no total, since it was lost, contradicts nobody, and another program's sender may tell less.
    let mut run = stream_run();
    run.set(Metric::TcpBytesReceived, |it| 1000 * it.value);
    run.recording.flows.retain(|flow| flow.end == End::Server);
    assert_eq!(refused(&run), None);
    let mut run = stream_run();
    make_foreign(&mut run, "client1");
    run.set(Metric::TcpBytesReceived, |it| 1000 * it.value);
    assert_eq!(refused(&run), None);
    // Its receiver has no more than it was sent either.
    let mut run = stream_run();
    make_foreign(&mut run, "server");
    assert_eq!(refused(&run), None);
    for flow in &mut run.recording.flows {
        flow.outcome.bytes_received = u64::MAX;
    }
    let (host, _) = refused(&run).expect("it cannot be");
    assert_eq!(host, HostName::from("server"));
    // What TCP sends again is sent more often than it arrives, and clocks that differ say nothing of totals.
    let mut run = stream_run();
    run.change(|sample| {
        if sample.metric == Metric::TcpBytesSent {
            sample.value *= 2;
        }
        if matches!(sample.subject, Subject::Flow(_, End::Client)) {
            sample.at_ns += 400_000_000;
        }
    });
    assert_eq!(refused(&run), None);
}

#[test]
fn no_response_comes_that_nobody_gave() {
    let mut run = once(None, rr(100), &Truth::transactions(100_000));
    assert_eq!(refused(&run), None);
    run.set(Metric::AppTransactions, |it| 1000 * it.value);
    let (host, how) = refused(&run).expect("it cannot be");
    assert_eq!(host, HostName::from("client1"));
    let Impossible::Unsent {
        what: Moved::Responses,
        ..
    } = how
    else {
        panic!("{how:?}");
    };
}

#[test]
fn a_path_may_make_two_of_a_datagram() {
    const BYTES: u64 = 1000;
    // Of a thousand that were sent: how many came, how many of them again, and their payload.
    let check = |received: u64, duplicates: u64, bytes: u64, expected: Option<Moved>| {
        let mut run = stream_run();
        let workload = &mut run.recording.document.plan.trials[0].workload;
        workload.manner.transport = Transport::Udp;
        if let Some((_, message)) = workload.traffic.stream_mut() {
            message.0 = BYTES;
        }
        for flow in &mut run.recording.flows {
            let sends = flow.part == Part::Sender;
            let (sent, got) = if sends { (1000, 0) } else { (0, received) };
            flow.outcome.bytes_sent = sent * BYTES;
            flow.outcome.bytes_received = if sends { 0 } else { bytes };
            flow.outcome.datagrams =
                Some(Box::new(like!(Datagrams::default(); sent, received: got,
                duplicates: if sends { 0 } else { duplicates })));
        }
        run.change(|sample| {
            if matches!(sample.subject, Subject::Flow(..)) {
                sample.value = 0;
            }
        });
        let what = refused(&run).map(|(_, how)| match how {
            Impossible::Unsent { what, .. } => what,
            how => panic!("{how:?}"),
        });
        assert_eq!(what, expected, "{received} {duplicates} {bytes}");
    };
    check(1000, 0, 1000 * BYTES, None);
    check(2000, 1000, 2000 * BYTES, None);
    check(900, 0, 900 * BYTES, None);
    check(2000, 0, 2000 * BYTES, Some(Moved::Datagrams));
    check(1001, 0, 1001 * BYTES, Some(Moved::Datagrams));
    check(1000, 0, 50_000 * BYTES, Some(Moved::Bytes));
    check(2000, 1000, 2001 * BYTES, Some(Moved::Bytes));
}

#[test]
fn nobody_is_busy_longer_than_there() {
    let check = |metric: Metric, more: i64, is_refused: bool| {
        let truth = like!(Truth::transactions(100_000); worker_share: 0.9, cpus: 1.8);
        let mut run = once(None, rr(100), &truth);
        run.set(metric, |it| more * it.value);
        let how = refused(&run).map(|(_, how)| how);
        let is_it = matches!(how, Some(Impossible::Beyond { times, .. }) if times > 2.0);
        assert_eq!(is_it, is_refused, "{metric:?} × {more}: {how:?}");
    };
    check(Metric::ThreadRun, 1, false);
    // As after a second in which nobody brought the count up to date.
    check(Metric::ThreadRun, 2, false);
    check(Metric::ThreadRun, 34, true);
    check(Metric::CpuUser, 34, true);
    check(Metric::CpuIdle, 34, false);
}
