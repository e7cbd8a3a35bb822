//! What an agent keeps of measurement after measurement: nothing.
//!
//! Alone in its process, with an allocator that counts what is not given back.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod common;
#[path = "common/phases.rs"]
mod phases;
#[path = "common/plain.rs"]
mod plain;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use common::Serving;
use linerate_agent::LocalAgent;
use linerate_agent::api::client::HttpAgent;
use linerate_agent::api::{
    AdmitRequest, Agent, Assignment, InventoryRequest, LimitsInfo, ObservationRequest, PollFrom,
    StartRequest, TrialState,
};
use linerate_model::run::Admission;
use linerate_model::sample::End;
use linerate_model::workload::{Direction, Part, Traffic};
use linerate_model::{Bytes, Nanos, RunId, TrialId};
use phases::TIMING;

static BYTES: AtomicI64 = AtomicI64::new(0);
static PIECES: AtomicI64 = AtomicI64::new(0);

/// Measurements over which nothing may grow: half a piece each, or 1 KiB, would be seen. The last reading of
/// the host, which is kept for its watchers, has some KiB more or less.
const MEASUREMENTS: u32 = 40;

struct Counting;

fn note(bytes: usize, pieces: i64) {
    BYTES.fetch_add(bytes as i64 * pieces, Relaxed);
    PIECES.fetch_add(pieces, Relaxed);
}

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn assignment(number: u32, end: End, peer: Option<String>, part: Part) -> Assignment {
    let traffic = Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: Bytes(10_000),
    };
    Assignment {
        trial: TrialId(1),
        peer,
        cookie: format!("{number:032x}"),
        sample_interval: Nanos::from_ms(10),
        ..plain::assignment(end, part, traffic, 2)
    }
}

/// Measures once, with a controller and a client of its own, as a call of the program does.
fn measure(number: u32, serving: &Serving) {
    let near = LocalAgent::new(plain::core(LimitsInfo::default()));
    let far = HttpAgent::plain(serving.address, None);
    let request = AdmitRequest {
        run: RunId(format!("test-{number}")),
        label: format!("test {number}"),
        admission: Admission::Exclusive,
        ..plain::request()
    };
    far.inventory(&InventoryRequest::default()).unwrap();
    far.observe(&ObservationRequest::default()).unwrap();
    let agents: [&dyn Agent; 2] = [&far, &near];
    let leases = agents.map(|agent| agent.admit(&request).unwrap().lease);
    let server = assignment(number, End::Server, None, Part::Receiver);
    far.prepare(&leases[0], &server, &TIMING).unwrap();
    let peer = Some(serving.address.to_string());
    let client = assignment(number, End::Client, peer, Part::Sender);
    near.prepare(&leases[1], &client, &TIMING).unwrap();
    let start_ns = linerate_engine::now_ns() + 50_000_000;
    let at = StartRequest {
        start_ns,
        measure_begin_ns: start_ns + 5_000_000,
        measure_end_ns: start_ns + 20_000_000,
        stop_ns: start_ns + 20_000_000,
        skew_ns: 0,
        trigger: None,
    };
    let begun = agents.iter().zip(&leases);
    let begun: Vec<bool> = begun
        .map(|(agent, lease)| agent.start(lease, TrialId(1), &at).is_ok())
        .collect();
    if begun.iter().all(|begun| *begun) {
        for (agent, lease) in agents.iter().zip(&leases) {
            let from = PollFrom {
                wait_ns: 1_000_000_000,
                ..PollFrom::default()
            };
            while agent.poll(lease, TrialId(1), from).unwrap().state == TrialState::Running {}
        }
    }
    for (agent, lease) in agents.iter().zip(&leases) {
        agent.leave(lease).unwrap();
    }
}

/// Returns bytes and pieces that are held once what ends in the background has ended.
fn held() -> (i64, i64) {
    let readings = (0..10).map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        (BYTES.load(Relaxed), PIECES.load(Relaxed))
    });
    readings.min().unwrap()
}

#[test]
fn nothing_is_kept_of_a_measurement_that_is_over() {
    let serving = Serving::start(|server| server);
    let measure_all = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            measure(number, &serving);
        }
        held()
    };
    // Queues and tables have their sizes after some dozens.
    let (bytes, pieces) = measure_all(0..60);
    let (bytes_later, pieces_later) = measure_all(60..60 + MEASUREMENTS);
    let (more, more_pieces) = (bytes_later - bytes, pieces_later - pieces);
    println!("{MEASUREMENTS} measurements: {more} B in {more_pieces} pieces more");
    assert!(
        more_pieces < i64::from(MEASUREMENTS) / 2,
        "{more_pieces} pieces"
    );
    assert!(more < 1024 * i64::from(MEASUREMENTS), "{more} B");
}
