//! What the sampler reads and what the results say.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_engine::{Cpus, Running};
use linerate_model::Bytes;
use linerate_model::id::FlowId;
use linerate_model::manner::Manner;
use linerate_model::metric::{Kind, Metric};
use linerate_model::sample::{End, Sample, Subject};
use linerate_model::workload::{FlowOptions, Part};

use crate::rig;

/// Samples until both ends of all flows have ended and once more: only when `peers` have read all
/// that was sent has the kernel sent it all.
fn sample_to_the_end(running: &mut Running, peers: &Running) -> Vec<Sample> {
    let mut samples = Vec::new();
    while !(running.done() && peers.done()) {
        running.sample(&mut samples);
        std::thread::yield_now();
    }
    running.sample(&mut samples);
    samples
}

fn last(samples: &[Sample], flow: u32, end: End, metric: Metric) -> Option<i64> {
    let subject = Subject::Flow(FlowId(flow), end);
    samples
        .iter()
        .rev()
        .find(|sample| sample.metric == metric && sample.subject == subject)
        .map(|sample| sample.value)
}

#[test]
fn counters_only_grow_and_end_at_the_result() {
    let traffic = rig::stream(50_000);
    let (near, far): (Vec<_>, Vec<_>) = (0..3)
        .map(|flow| rig::pair(flow, Part::Sender, &traffic, &FlowOptions::default()))
        .unzip();
    let schedule = rig::schedule(80);
    let far = rig::start(far, schedule, 2);
    let mut near = rig::start(near, schedule, 2);
    let names: Vec<String> = near.threads().into_iter().map(|thread| thread.0).collect();
    assert_eq!(names, ["worker-0", "worker-1"]);
    assert!(near.threads().iter().all(|thread| thread.1 > 0));
    let samples = sample_to_the_end(&mut near, &far);

    let mut before: BTreeMap<(String, Metric), (u64, i64)> = BTreeMap::new();
    for sample in &samples {
        let key = (sample.subject.to_string(), sample.metric);
        let (at_ns, value) = before.get(&key).copied().unwrap_or((0, 0));
        assert!(sample.at_ns >= at_ns, "{sample:?} after {at_ns}");
        if sample.metric.kind() == Kind::Counter {
            assert!(sample.value >= value, "{sample:?} after {value}");
        }
        before.insert(key, (sample.at_ns, sample.value));
    }
    for result in near.finish().iter().zip(far.finish()) {
        let (sent, received) = result;
        let counted = |metric| last(&samples, sent.flow.0, End::Client, metric);
        let bytes = Some(sent.bytes_sent as i64);
        assert_eq!(counted(Metric::AppBytesSent), bytes);
        assert_eq!(counted(Metric::AppBytesReceived), Some(0));
        assert_eq!(counted(Metric::AppTransactions), Some(0));
        // The kernel counts the same payload; the FIN takes a sequence number but is no payload.
        let kernel =
            counted(Metric::TcpBytesSent).unwrap() - counted(Metric::TcpBytesRetrans).unwrap();
        assert_eq!(Some(kernel), bytes);
        assert!(counted(Metric::TcpSndMss).unwrap() > 500);
        assert!(counted(Metric::TcpDataSegsOut).unwrap() > 0);
        let stall_ns = received.stall_max_ns.unwrap();
        assert!((1..=80_000_000).contains(&stall_ns), "{stall_ns}");
        assert_eq!((sent.stall_max_ns, &sent.latency), (None, &None));
        assert!(sent.cpu.is_some());
        let first_ns = sent.first_payload_ns.unwrap().cast_unsigned();
        assert!((schedule.start_ns..schedule.stop_ns).contains(&first_ns));
    }
}

/// A connection that is over has had a FIN, which the kernel counts as a byte, or a reset, which it does not.
#[test]
fn what_the_kernel_received_is_payload_only() {
    let received = |samples: &[Sample], end| last(samples, 0, end, Metric::TcpBytesReceived);
    let manner = Manner {
        bytes_max: Some(Bytes(1 << 20)),
        ..Manner::default()
    };
    let (near, far) = rig::pair_by(0, Part::Sender, &rig::stream(50_000), &manner);
    let schedule = rig::endless();
    let mut far = rig::start(vec![far], schedule, 1);
    let mut near = rig::start(vec![near], schedule, 1);
    let mut samples = sample_to_the_end(&mut near, &far);
    far.sample(&mut samples);
    assert_eq!(received(&samples, End::Server), Some(1 << 20));
    assert_eq!(received(&samples, End::Client), Some(0));
    for (result, bytes) in [(near.finish(), 0), (far.finish(), 1 << 20)] {
        assert_eq!(result[0].bytes_received, bytes);
        assert_eq!(result[0].ended_early, None);
    }

    let listener = rig::listener();
    let config = rig::config(0, End::Client, Part::Receiver, &rig::stream(1000));
    let peer = listener.local_addr().unwrap();
    let near = linerate_engine::connect(config, peer, None, b"", rig::DEADLINE).unwrap();
    let far = socket2::Socket::from(listener.accept().unwrap().0);
    far.send(&[0; 1000]).unwrap();
    far.set_linger(Some(Duration::ZERO)).unwrap();
    drop(far);
    let mut near = rig::start(vec![near], rig::endless(), 1);
    let mut samples = Vec::new();
    while !near.done() {
        near.sample(&mut samples);
    }
    near.sample(&mut samples);
    assert_eq!(received(&samples, End::Client), Some(1000));
    assert!(near.finish()[0].ended_early.is_some());
}

#[test]
fn the_histogram_holds_the_transactions_of_the_window() {
    // One worker a flow, and all on one.
    for workers in [3, 1] {
        let traffic = rig::rr(64, 1000, 1);
        let (near, far): (Vec<_>, Vec<_>) = (0..3)
            .map(|flow| rig::pair(flow, Part::Requester, &traffic, &FlowOptions::default()))
            .unzip();
        let mut schedule = rig::schedule(60);
        schedule.measure_begin_ns = schedule.start_ns;
        schedule.measure_end_ns = schedule.stop_ns;
        let far = rig::start(far, schedule, workers);
        let mut near = rig::start(near, schedule, workers);
        let samples = sample_to_the_end(&mut near, &far);
        for result in near.finish() {
            let counted = last(
                &samples,
                result.flow.0,
                End::Client,
                Metric::AppTransactions,
            );
            let transactions = counted.unwrap() as u64;
            let latency = result.outcome.latency.clone().unwrap();
            // The last transaction ends after the window unless it ends at its very end.
            let outside = transactions - latency.count();
            assert!(outside <= 1, "{outside} of {transactions} not recorded");
            assert_eq!(result.bytes_received, transactions * 1000);
            assert_eq!(result.bytes_sent, transactions * 64);
            // Buckets are 0.1 % wide, and the longest of all may be the one outside.
            let longest = result.stall_max_ns.unwrap();
            let recorded = latency.max().unwrap().0;
            assert!(
                longest * 1001 / 1000 + 1 >= recorded,
                "{longest} {recorded}"
            );
            assert!(latency.quantile(0.5).unwrap().0 > 1000);
        }
        assert!(far.finish().iter().all(|result| result.latency.is_none()));
    }
}

#[test]
fn nothing_outside_the_window_is_in_the_histogram() {
    let traffic = rig::rr(1, 1, 1);
    let (near, far) = rig::pair(0, Part::Requester, &traffic, &FlowOptions::default());
    let mut schedule = rig::schedule(30);
    // A window of no length at an instant before the start: traffic, but nothing to measure.
    schedule.start_ns += 1_000_000;
    schedule.measure_begin_ns = schedule.start_ns;
    schedule.measure_end_ns = schedule.start_ns;
    let far = rig::start(vec![far], schedule, 1);
    let result = rig::start(vec![near], schedule, 1).finish();
    assert!(result[0].bytes_received > 0);
    assert_eq!(result[0].latency.as_ref().unwrap().count(), 0);
    assert_eq!(far.finish()[0].ended_early, None);
}

#[test]
fn running_flows_can_be_sampled_from_another_thread() {
    let traffic = rig::stream(1000);
    let (near, far) = rig::pair(0, Part::Sender, &traffic, &FlowOptions::default());
    let schedule = rig::schedule(20);
    let far = rig::start(vec![far], schedule, 1);
    let mut near = rig::start(vec![near], schedule, 1);
    let sampler = std::thread::spawn(move || {
        let mut samples = Vec::new();
        near.sample(&mut samples);
        (samples, near.finish())
    });
    let (samples, results) = sampler.join().unwrap();
    let metrics: Vec<Metric> = samples.iter().map(|sample| sample.metric).collect();
    assert!(metrics.contains(&Metric::AppCalls) && metrics.contains(&Metric::TcpRtt));
    assert_eq!(results[0].bytes_sent, far.finish()[0].bytes_received);
}

#[test]
fn a_worker_runs_where_it_is_pinned() {
    let traffic = rig::stream(1000);
    let (near, far) = rig::pair(0, Part::Sender, &traffic, &FlowOptions::default());
    let config = |cpus| linerate_engine::EngineConfig {
        workers_max: 1,
        cpus,
    };
    let (pinned, confined) = (Cpus::InTurn(vec![0]), Cpus::Among(vec![0]));
    let schedule = rig::schedule(20);
    let far = linerate_engine::launch(vec![far], schedule, &config(pinned)).unwrap();
    let near = linerate_engine::launch(vec![near], schedule, &config(confined)).unwrap();
    assert_eq!(near.finish()[0].cpu, Some(0));
    assert_eq!(far.finish()[0].cpu, Some(0));
}
