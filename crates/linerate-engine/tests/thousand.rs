//! A thousand flows on two workers: they all run, and each costs little memory.
//!
//! Alone in its process, so that the resident memory it reads is its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "rim/rig.rs"]
#[expect(
    dead_code,
    reason = "shared with the other tests, which use more of it"
)]
mod rig;

use linerate_engine::Flow;
use linerate_model::metric::Metric;
use linerate_model::workload::{FlowOptions, Part};

const FLOWS: u32 = 1000;
/// What one end may add to the resident memory of its process.
const BYTES_PER_END_MAX: u64 = 4096;
/// What all workers together may: four of them, each with a stack, buffers and a latency record.
const BYTES_OF_WORKERS_MAX: u64 = 4 << 20;

/// Returns the resident memory of this process.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[test]
fn a_thousand_flows_run_on_two_workers_in_little_memory() {
    let traffic = rig::rr(100, 100, 1);
    let before = resident_bytes();
    let (near, far): (Vec<Flow>, Vec<Flow>) = (0..FLOWS)
        .map(|flow| rig::pair(flow, Part::Requester, &traffic, &FlowOptions::default()))
        .unzip();
    let schedule = rig::schedule(500);
    let far = rig::start(far, schedule, 2);
    let mut near = rig::start(near, schedule, 2);
    assert_eq!(near.threads().len(), 2);
    while !near.done() {
        std::thread::yield_now();
    }
    let grown = resident_bytes() - before;
    let allowed = 2 * u64::from(FLOWS) * BYTES_PER_END_MAX + BYTES_OF_WORKERS_MAX;
    assert!(grown <= allowed, "{grown} bytes, allowed {allowed}");

    let mut samples = Vec::new();
    near.sample(&mut samples);
    let transactions: i64 = samples
        .iter()
        .filter(|sample| sample.metric == Metric::AppTransactions)
        .map(|sample| sample.value)
        .sum();
    let (near, far) = (near.finish(), far.finish());
    for (near, far) in near.iter().zip(&far) {
        assert_eq!((&near.ended_early, &far.ended_early), (&None, &None));
        assert_eq!(near.bytes_sent, far.bytes_received);
        assert_eq!(near.bytes_received, far.bytes_sent);
        // Nobody is left behind.
        assert!(near.bytes_received > 0, "flow {:?}", near.flow);
    }
    let received: u64 = near.iter().map(|result| result.bytes_received).sum();
    assert_eq!(received, transactions as u64 * 100);
    // So many requesters share a latency record a worker, given with the first flow of each.
    let recorded: Vec<u64> = near
        .iter()
        .filter_map(|result| result.latency.as_ref())
        .map(|latency| latency.count())
        .collect();
    assert_eq!(recorded.len(), 2);
    assert!(recorded.iter().sum::<u64>() <= transactions as u64);
}
