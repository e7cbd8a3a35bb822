//! Thousands of flows: all of them run, both ends agree, and each costs little memory.
//!
//! Alone in its process, so that the memory and the open files it reads are its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]
#![expect(clippy::print_stdout, reason = "says how many flows there were")]

#[path = "rim/rig.rs"]
#[expect(
    dead_code,
    reason = "shared with the other tests, which use more of it"
)]
mod rig;

use linerate_engine::{Flow, adopt, connect};
use linerate_model::sample::End;
use linerate_model::workload::{Part, Traffic};

/// What one end of a flow may add to the resident memory of its process.
const BYTES_PER_END_MAX: u64 = 4096;
/// What all workers together may: four of them, each with a stack, buffers and a latency record.
const BYTES_OF_WORKERS_MAX: u64 = 4 << 20;
/// Open files beside those of the flows.
const FILES_SPARE: usize = 100;

fn line(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    lines
        .find(|line| line.starts_with(name))
        .unwrap()
        .to_owned()
}

fn resident_bytes() -> u64 {
    let line = line("/proc/self/status", "VmRSS:");
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// Returns how many flows with both ends in this process its limit on open files allows.
fn flows_max() -> usize {
    let line = line("/proc/self/limits", "Max open files");
    // The soft limit comes first; `unlimited` allows all.
    let most = line.split_whitespace().nth(3).unwrap().parse();
    (most.unwrap_or(usize::MAX) - FILES_SPARE) / 2
}

fn check(traffic: &Traffic, part: Part, wanted: usize, length_ms: u64) {
    let flows = wanted.min(flows_max());
    if flows < wanted {
        println!("{flows} flows instead of {wanted}: more files may not be open");
    }
    let before = resident_bytes();
    let listener = rig::listener();
    let peer = listener.local_addr().unwrap();
    let config = |flow, end, part| rig::config(flow, end, part, traffic);
    let open = |flow: u32| {
        let near = config(flow, End::Client, part);
        let near = connect(near, peer, None, b"", rig::DEADLINE).unwrap();
        let far = config(flow, End::Server, part.opposite());
        let far = adopt(far, listener.accept().unwrap().0.into()).unwrap();
        (near, far)
    };
    let (near, mut far): (Vec<Flow>, Vec<Flow>) = (0..flows as u32).map(open).unzip();
    // Accepted in another order than they were opened.
    far.reverse();
    let schedule = rig::schedule(length_ms);
    let far = rig::start(far, schedule, 2);
    let near = rig::start(near, schedule, 2);
    while !near.done() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let grown = resident_bytes().saturating_sub(before);
    let allowed = 2 * flows as u64 * BYTES_PER_END_MAX + BYTES_OF_WORKERS_MAX;
    assert!(grown <= allowed, "{grown} bytes, allowed {allowed}");
    println!(
        "{} bytes for each end of {flows} flows",
        grown / (2 * flows as u64)
    );
    let (near, mut far) = (near.finish(), far.finish());
    far.reverse();
    assert_eq!((near.len(), far.len()), (flows, flows));
    for (near, far) in near.iter().zip(&far) {
        assert_eq!(near.flow, far.flow);
        assert_eq!((&near.ended_early, &far.ended_early), (&None, &None));
        assert_eq!(near.bytes_sent, far.bytes_received);
        assert_eq!(near.bytes_received, far.bytes_sent);
        assert_eq!(near.transactions, far.transactions);
        if let Traffic::Rr { .. } = traffic {
            // Nobody is left behind.
            assert!(near.transactions > 0, "flow {:?}", near.flow);
        }
    }
}

/// One test, so that the flows of the two do not share the limit on open files.
#[test]
fn ten_thousand_flows_of_requests_and_eight_thousand_idle_ones() {
    check(&rig::rr(100, 100, 1), Part::Requester, 10_000, 3000);
    check(&Traffic::Idle, Part::Sender, 8_000, 300);
}
