//! The path that moves payload allocates nothing.
//!
//! Alone in its process, with an allocator that counts.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "rim/places.rs"]
mod places;
#[path = "rim/rig.rs"]
#[expect(
    dead_code,
    reason = "shared with the other tests, which use more of it"
)]
mod rig;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use linerate_engine::{Flow, FlowConfig, adopt, connect, now_ns};
use linerate_model::Bytes;
use linerate_model::manner::{Manner, ReceiveBy, SendBy, Sizes, Transport, WaitBy};
use linerate_model::sample::End;
use linerate_model::step::Step;
use linerate_model::workload::{FlowOptions, Part, Traffic};

static COUNTING: AtomicBool = AtomicBool::new(false);
/// From then on nothing is counted: on a busy machine the thread that counts looks late, and results
/// are made after the stop.
static END_NS: AtomicU64 = AtomicU64::new(u64::MAX);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTING.load(SeqCst) && now_ns() < END_NS.load(SeqCst) {
            ALLOCATIONS.fetch_add(1, SeqCst);
        }
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated_while_payload_moves() {
    let stream = rig::stream(20_000);
    let rr = rig::rr(300, 3000, 2);
    // The first count is of a plain allocation, to see that the counter counts.
    COUNTING.store(true, SeqCst);
    drop(std::hint::black_box(Box::new(1_u64)));
    COUNTING.store(false, SeqCst);
    assert_eq!(ALLOCATIONS.swap(0, SeqCst), 1);

    every_way_of_bulk_payload();
    // Alone on blocking sockets, and many on epoll.
    for workers in [4, 1] {
        let (near, far): (Vec<Flow>, Vec<Flow>) = (0..4)
            .map(|flow| {
                let (part, traffic) = match flow % 2 {
                    0 => (Part::Sender, &stream),
                    _ => (Part::Requester, &rr),
                };
                rig::pair(flow, part, traffic, &FlowOptions::default())
            })
            .unzip();
        nothing_is_allocated(near, far, workers);
    }
    // Datagrams: as fast as they go, paced, in batches and put together; and requests.
    let manner = |batch, segments, rate_bps| Manner {
        transport: Transport::Udp,
        batch,
        segments,
        gro: segments > 1,
        rate_bps,
        ..Manner::default()
    };
    let datagrams = rig::stream(500);
    let ask = rig::rr(100, 200, 1);
    let mixed = Manner {
        burst: 20,
        sizes: Some(Sizes::LogNormal {
            median: Bytes(300),
            sigma_percent: 80,
        }),
        ..manner(8, 1, Some(40_000_000))
    };
    let several = Manner {
        in_flight: 16,
        sizes: mixed.sizes.clone(),
        ..manner(1, 1, None)
    };
    let at_a_rate = Manner {
        in_flight: 16,
        requests_per_s: Some(3000),
        ..manner(1, 1, None)
    };
    for (manner, part, traffic) in [
        (mixed, Part::Sender, &datagrams),
        (manner(1, 1, None), Part::Sender, &datagrams),
        (manner(16, 4, Some(40_000_000)), Part::Sender, &datagrams),
        (manner(1, 1, None), Part::Requester, &ask),
        (several, Part::Requester, &ask),
        (at_a_rate, Part::Requester, &ask),
    ] {
        for workers in [2, 1] {
            let (near, far): (Vec<Flow>, Vec<Flow>) = (0..2)
                .map(|flow| rig::datagram_pair(flow, part, traffic, &manner, |config| config))
                .unzip();
            nothing_is_allocated(near, far, workers);
        }
    }
    // Transactions, however workers wait: several under way, at a rate, and with connections of
    // their own.
    let manner = |wait, in_flight, requests_per_s| Manner {
        wait,
        in_flight,
        requests_per_s,
        ..Manner::default()
    };
    let calls = Traffic::Crr {
        request_bytes: Bytes(100),
        response_bytes: Bytes(200),
    };
    let steps = [
        "send 60",
        "receive 50",
        "spin 1ms",
        "send 40",
        "server pause 1ms",
        "receive 150",
    ];
    let steps: Vec<Step> = steps.iter().filter_map(|text| Step::named(text)).collect();
    let stepwise = |wait, steps: &[Step]| Manner {
        steps: Some(steps.into()),
        ..manner(wait, 1, None)
    };
    let without_pauses = [steps[0], steps[1], steps[3], steps[5]];
    for (manner, traffic) in [
        (stepwise(WaitBy::Epoll, &steps), &ask),
        (stepwise(WaitBy::Uring, &steps), &ask),
        (stepwise(WaitBy::Epoll, &without_pauses), &ask),
        (manner(WaitBy::Uring, 8, None), &ask),
        (manner(WaitBy::Epoll, 8, Some(5000)), &ask),
        (manner(WaitBy::Uring, 1, Some(5000)), &ask),
        (manner(WaitBy::Epoll, 1, None), &calls),
        (manner(WaitBy::Uring, 1, None), &calls),
    ] {
        let (near, far) = asking(3, traffic, &manner);
        nothing_is_allocated(near, far, 1);
    }
}

/// Returns both ends of flows of transactions.
fn asking(flows: u32, traffic: &Traffic, manner: &Manner) -> (Vec<Flow>, Vec<Flow>) {
    let config = |flow, end, part| FlowConfig {
        manner: manner.clone(),
        ..rig::config(flow, end, part, traffic)
    };
    let ends = |flow| {
        let near = config(flow, End::Client, Part::Requester);
        (near, config(flow, End::Server, Part::Responder))
    };
    let listener = rig::listener();
    let peer = listener.local_addr().unwrap();
    if let Traffic::Crr { .. } = traffic {
        let calls = places::calls(&listener);
        let places = (0..flows).map(ends);
        let places = places.map(|(near, far)| places::place(near, far, peer, &calls));
        return places.unzip();
    }
    let open = |(near, far)| {
        let near = connect(near, peer, None, b"", rig::DEADLINE).unwrap();
        let far = adopt(far, listener.accept().unwrap().0.into()).unwrap();
        (near, far)
    };
    (0..flows).map(ends).map(open).unzip()
}

/// Every way to send and to receive, messages of mixed sizes, several a call, at a rate.
fn every_way_of_bulk_payload() {
    let manners = {
        let by = |send, receive| Manner {
            send,
            receive,
            ..Manner::default()
        };
        let sizes = Sizes::LogNormal {
            median: Bytes(3000),
            sigma_percent: 100,
        };
        [
            by(SendBy::Vmsplice, ReceiveBy::Discard),
            by(SendBy::MsgZerocopy, ReceiveBy::Copy),
            by(SendBy::Sendfile, ReceiveBy::Discard),
            Manner {
                sizes: Some(sizes),
                batch: 5,
                ..by(SendBy::Copy, ReceiveBy::Copy)
            },
            Manner {
                transport: Transport::Unix,
                rate_bps: Some(50_000_000),
                ..by(SendBy::Copy, ReceiveBy::Copy)
            },
        ]
    };
    for workers in [manners.len(), 1] {
        let flows = manners.iter().enumerate();
        let (near, far): (Vec<Flow>, Vec<Flow>) = flows
            .map(|(at, manner)| rig::pair_by(at as u32, Part::Sender, &rig::stream(20_000), manner))
            .unzip();
        nothing_is_allocated(near, far, workers);
    }
}

fn nothing_is_allocated(near: Vec<Flow>, far: Vec<Flow>, workers: usize) {
    let schedule = rig::schedule_after(rig::READY_MS, 150);
    END_NS.store(schedule.measure_end_ns, SeqCst);
    let far = rig::start(far, schedule, workers);
    let near = rig::start(near, schedule, workers);
    while now_ns() < schedule.measure_begin_ns {
        std::thread::yield_now();
    }
    COUNTING.store(true, SeqCst);
    while now_ns() < schedule.measure_end_ns {
        std::thread::yield_now();
    }
    COUNTING.store(false, SeqCst);
    assert_eq!(ALLOCATIONS.load(SeqCst), 0, "{workers} workers");
    let mut moved = 0;
    for result in near.finish().iter().chain(&far.finish()) {
        assert_eq!(result.ended_early, None);
        moved += result.bytes_sent + result.bytes_received;
    }
    assert!(moved > 0);
}
