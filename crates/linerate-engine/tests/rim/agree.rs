//! Both ends count the same bytes, whatever the workload.

use std::net::{Ipv6Addr, SocketAddr, TcpListener};

use linerate_engine::{FlowResult, adopt, connect};
use linerate_model::sample::End;
use linerate_model::workload::{FlowOptions, Part, Traffic};
use proptest::prelude::*;

use crate::rig;

fn assert_agree(near: &[FlowResult], far: &[FlowResult], traffic: &Traffic) {
    assert_eq!(near.len(), far.len());
    for (near, far) in near.iter().zip(far) {
        assert_eq!(near.ended_early, None, "{near:?}");
        assert_eq!(far.ended_early, None, "{far:?}");
        assert_eq!(near.flow, far.flow);
        assert_eq!((near.end, far.end), (End::Client, End::Server));
        assert_eq!((&near.local, &near.remote), (&far.remote, &far.local));
        assert_eq!(near.bytes_sent, far.bytes_received, "{traffic:?}");
        assert_eq!(near.bytes_received, far.bytes_sent, "{traffic:?}");
        assert_eq!(near.messages, far.messages, "{traffic:?}");
        // On a busy machine some workers are ready only when the run is over.
        let moved = near.bytes_sent + near.bytes_received > 0;
        assert_eq!(near.first_payload_ns.is_some(), moved);
        assert_eq!(far.first_payload_ns.is_some(), moved);
        if let Traffic::Rr {
            request_bytes,
            response_bytes,
            ..
        } = traffic
        {
            let (requester, responder) = if near.part == Part::Requester {
                (near, far)
            } else {
                (far, near)
            };
            // Requests are finished, never cut.
            assert_eq!(requester.bytes_sent % request_bytes.0, 0);
            assert_eq!(
                requester.bytes_sent / request_bytes.0,
                responder.bytes_sent / response_bytes.0
            );
        }
    }
}

fn traffic() -> impl Strategy<Value = (Part, Traffic)> {
    let size = || prop_oneof![Just(1_u64), 1..2000_u64, 1..300_000_u64];
    let stream = (
        prop_oneof![Just(Part::Sender), Just(Part::Receiver)],
        size().prop_map(rig::stream),
    );
    let rr = (
        prop_oneof![Just(Part::Requester), Just(Part::Responder)],
        (size(), size(), 1..=16_u32).prop_map(|(request, response, writes)| {
            rig::rr(request, response, writes.min(request as u32))
        }),
    );
    prop_oneof![stream, rr]
}

proptest! {
    // 24 runs of 60 to 120 ms each.
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_of_both_ends_agree(
        (part, traffic) in traffic(),
        flows in 1..=9_u32,
        workers in 1..=4_usize,
        length_ms in 40..=100_u64,
    ) {
        let (near, far) = rig::run(flows, part, &traffic, workers, length_ms);
        assert_agree(&near, &far, &traffic);
    }
}

#[test]
fn data_that_comes_before_the_start_is_counted() {
    let traffic = rig::stream(10_000);
    let (near, far) = rig::pair(0, Part::Sender, &traffic, &FlowOptions::default());
    let schedule = rig::schedule(30);
    let mut late = schedule;
    late.start_ns += 20_000_000;
    late.measure_begin_ns += 20_000_000;
    let near = rig::start(vec![near], schedule, 1);
    let far = rig::start(vec![far], late, 1);
    assert_agree(&near.finish(), &far.finish(), &traffic);
}

/// A response and the calls of the next request are more than one flow may do in one go: it must
/// be served again although nothing has become readable.
#[test]
fn a_request_of_many_calls_is_not_forgotten_among_others() {
    let traffic = rig::rr(16, 1, 16);
    let (near, far) = rig::run(3, Part::Requester, &traffic, 1, 100);
    assert_agree(&near, &far, &traffic);
}

#[test]
fn both_directions_share_workers() {
    let traffic = rig::stream(65_536);
    let there = rig::pair(0, Part::Sender, &traffic, &FlowOptions::default());
    let back = rig::pair(1, Part::Receiver, &traffic, &FlowOptions::default());
    let schedule = rig::schedule(50);
    let far = rig::start(vec![there.1, back.1], schedule, 1);
    let near = rig::start(vec![there.0, back.0], schedule, 1);
    assert_agree(&near.finish(), &far.finish(), &traffic);
}

#[test]
fn flows_go_over_ipv6_and_from_a_chosen_address() {
    let traffic = rig::rr(100, 200, 2);
    let listener = match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(listener) => listener,
        Err(error) => return println!("skipped: no IPv6 on loopback: {error}"),
    };
    let peer = listener.local_addr().unwrap();
    let bind = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let near = rig::config(0, End::Client, Part::Requester, &traffic);
    let near = connect(near, peer, Some(bind), b"", rig::DEADLINE).unwrap();
    assert_eq!(near.local().ip().unwrap().ip(), bind.ip());
    let far = rig::config(0, End::Server, Part::Responder, &traffic);
    let far = adopt(far, listener.accept().unwrap().0.into()).unwrap();
    let schedule = rig::schedule(30);
    let far = rig::start(vec![far], schedule, 1);
    let near = rig::start(vec![near], schedule, 1);
    assert_agree(&near.finish(), &far.finish(), &traffic);
}
