//! What goes wrong: peers that vanish, aborts, refusals.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};

use linerate_engine::{
    ConnectError, Cpus, EngineConfig, FlowConfig, LaunchError, Schedule, adopt, connect, launch,
};
use linerate_model::sample::End;
use linerate_model::workload::{FlowOptions, Part, Traffic};

use crate::rig;

/// Returns an engine flow whose peer is a bare socket in the hands of the test.
fn with_bare_peer(
    flow: u32,
    part: Part,
    traffic: &Traffic,
) -> (linerate_engine::Flow, std::net::TcpStream) {
    let listener = rig::listener();
    let config = rig::config(flow, End::Client, part, traffic);
    let peer = listener.local_addr().unwrap();
    let near = connect(config, peer, None, b"hello", rig::DEADLINE).unwrap();
    let mut far = listener.accept().unwrap().0;
    let mut hello = [0; 5];
    far.read_exact(&mut hello).unwrap();
    assert_eq!(&hello, b"hello");
    (near, far)
}

#[test]
fn a_flow_that_dies_says_why_and_the_rest_goes_on() {
    let traffic = rig::stream(100_000);
    // Alone on its worker, and among others.
    for workers in [rig::WORKERS, 1] {
        let (dying, peer) = with_bare_peer(0, Part::Sender, &traffic);
        let (near, far) = rig::pair(1, Part::Sender, &traffic, &FlowOptions::default());
        let schedule = rig::schedule(100);
        let far = rig::start(vec![far], schedule, 1);
        let near = rig::start(vec![dying, near], schedule, workers);
        let mut some = [0; 1000];
        (&peer).read_exact(&mut some).unwrap();
        // Closing with unread payload resets the connection.
        drop(peer);
        let near = near.finish();
        let reason = near[0].ended_early.as_deref().unwrap();
        assert!(reason.starts_with("sending failed: "), "{reason}");
        assert_eq!(near[1].ended_early, None);
        assert_eq!(near[1].bytes_sent, far.finish()[0].bytes_received);
    }
}

#[test]
fn a_peer_that_closes_before_the_stop_is_early() {
    let check = |part, traffic: &Traffic, expect: &str| {
        let (near, peer) = with_bare_peer(0, part, traffic);
        drop(peer);
        let result = rig::start(vec![near], rig::endless(), 1).finish();
        let reason = result[0].ended_early.as_deref().unwrap();
        assert!(reason.starts_with(expect), "{part:?}: {reason}");
    };
    let closed = "the peer closed the connection ";
    check(Part::Receiver, &rig::stream(1), closed);
    check(Part::Responder, &rig::rr(1, 1, 1), closed);
}

#[test]
fn a_requester_without_response_ends_early() {
    let traffic = rig::rr(10, 10, 1);
    for workers in [rig::WORKERS, 1] {
        let (dying, mut peer) = with_bare_peer(0, Part::Requester, &traffic);
        let (near, far) = rig::pair(1, Part::Requester, &traffic, &FlowOptions::default());
        let schedule = rig::schedule(50);
        let far = rig::start(vec![far], schedule, 1);
        let near = rig::start(vec![dying, near], schedule, workers);
        let mut request = [0; 10];
        peer.read_exact(&mut request).unwrap();
        drop(peer);
        let near = near.finish();
        assert_eq!(
            near[0].ended_early.as_deref(),
            Some("the peer closed the connection before its response was complete")
        );
        assert_eq!((near[0].bytes_sent, near[0].bytes_received), (10, 0));
        assert_eq!(near[1].ended_early, None);
        assert_eq!(far.finish()[0].ended_early, None);
    }
}

#[test]
fn an_abort_ends_every_part_at_once() {
    let parts = [
        (Part::Sender, rig::stream(1000)),
        (Part::Receiver, rig::stream(1000)),
        (Part::Requester, rig::rr(1, 1, 1)),
        (Part::Responder, rig::rr(1, 1, 1)),
    ];
    for workers in [1, 4] {
        // Peers that never say anything, so that every part waits.
        let (flows, _peers): (Vec<_>, Vec<_>) = parts
            .iter()
            .enumerate()
            .map(|(at, (part, traffic))| with_bare_peer(at as u32, *part, traffic))
            .unzip();
        let running = rig::start(flows, rig::endless(), workers);
        assert!(!running.done());
        running.abort();
        for result in running.finish() {
            assert_eq!(result.ended_early.as_deref(), Some("aborted"), "{result:?}");
        }
    }
}

#[test]
fn an_abort_reaches_workers_that_wait_for_the_start() {
    let (near, _peer) = with_bare_peer(0, Part::Sender, &rig::stream(1));
    let hour_ns = 3_600_000_000_000;
    let soon = rig::schedule(10);
    let schedule = Schedule {
        start_ns: soon.start_ns + hour_ns,
        measure_begin_ns: soon.measure_begin_ns + hour_ns,
        measure_end_ns: soon.measure_end_ns + hour_ns,
        stop_ns: soon.stop_ns + hour_ns,
        skew_ns: soon.skew_ns,
    };
    let running = rig::start(vec![near], schedule, 1);
    running.abort();
    let result = running.finish();
    assert_eq!(result[0].ended_early.as_deref(), Some("aborted"));
    assert_eq!(
        (result[0].bytes_sent, result[0].first_payload_ns),
        (0, None)
    );
}

#[test]
fn an_end_that_never_comes_is_waited_for_until_the_grace_is_over() {
    let (near, _peer) = with_bare_peer(0, Part::Receiver, &rig::stream(1));
    let result = rig::start(vec![near], rig::schedule(10), 1).finish();
    assert_eq!(
        result[0].ended_early.as_deref(),
        Some("the end of the stream did not come within 2 s after the stop")
    );
    // Nothing came: the whole window was one stall.
    assert_eq!(result[0].stall_max_ns, Some(10_000_000));
}

/// The path is there, as the other stream of the same peer shows: one that is silent says nothing.
#[test]
fn an_end_that_never_comes_is_forgiven_where_another_stream_came_through() {
    let (silent, _peer) = with_bare_peer(0, Part::Receiver, &rig::stream(1));
    let (near, mut speaks) = with_bare_peer(1, Part::Receiver, &rig::stream(1));
    let running = rig::start(vec![silent, near], rig::schedule(10), 1);
    speaks.write_all(&[0; 100]).unwrap();
    let results = running.finish();
    assert_eq!(results[1].bytes_received, 100);
    for result in results {
        assert_eq!(result.ended_early, None, "{result:?}");
    }
}

/// Each alone on its worker, where a wait has no limit of its own.
#[test]
fn peers_that_never_speak_again_are_waited_for_until_the_grace_is_over() {
    let rr = rig::rr(1, 1, 1);
    let (requester, mut silent) = with_bare_peer(0, Part::Requester, &rr);
    let (responder, _idle) = with_bare_peer(1, Part::Responder, &rr);
    let running = rig::start(vec![requester, responder], rig::endless(), 2);
    let mut request = [0];
    silent.read_exact(&mut request).unwrap();
    running.stop();
    let results = running.finish();
    let missing = ["the response", "the end of the requests"];
    for (result, what) in results.iter().zip(missing) {
        let expected = format!("{what} did not come within 2 s after the stop");
        assert_eq!(result.ended_early.as_deref(), Some(expected.as_str()));
    }
    assert_eq!((results[0].bytes_sent, results[0].bytes_received), (1, 0));
}

#[test]
fn launching_refuses_what_cannot_run() {
    let flow = || rig::pair(0, Part::Sender, &rig::stream(1), &FlowOptions::default()).0;
    let config = |workers_max, cpus: &[usize]| EngineConfig {
        workers_max,
        cpus: Cpus::InTurn(cpus.to_vec()),
    };
    let mut backwards = rig::schedule(10);
    backwards.stop_ns = backwards.start_ns;
    let check = |flows, schedule, config, expect: &str| {
        let error: LaunchError = launch(flows, schedule, &config).unwrap_err();
        assert!(error.to_string().starts_with(expect), "{error}");
    };
    let schedule = rig::schedule(10);
    check(
        vec![],
        schedule,
        config(1, &[]),
        "there are no flows to launch",
    );
    check(
        vec![flow()],
        schedule,
        config(0, &[]),
        "flows cannot be launched with workers_max",
    );
    check(
        vec![flow()],
        backwards,
        config(1, &[]),
        "the instants are not in order",
    );
    let impossible = config(1, &[100_000]);
    check(
        vec![flow()],
        schedule,
        impossible,
        "cannot pin worker-0 to CPU 100000",
    );
}

#[test]
fn errors_of_connecting_name_step_address_and_cause() {
    let config = rig::config(0, End::Client, Part::Sender, &rig::stream(1));
    let gone = rig::listener().local_addr().unwrap();
    let error = connect(config.clone(), gone, None, b"", rig::DEADLINE).unwrap_err();
    assert!(matches!(error, ConnectError::Refused { peer } if peer == gone));
    assert!(error.to_string().contains(&gone.to_string()), "{error}");

    let listener = rig::listener();
    let peer = listener.local_addr().unwrap();
    // TEST-NET-1 of RFC 5737 is nobody's address.
    let foreign = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 0));
    let error = connect(config.clone(), peer, Some(foreign), b"", rig::DEADLINE).unwrap_err();
    assert!(matches!(error, ConnectError::Bind { address, .. } if address == foreign));

    let taken = Some(peer);
    let error = connect(config.clone(), peer, taken, b"", rig::DEADLINE).unwrap_err();
    assert!(matches!(error, ConnectError::Bind { address, .. } if address == peer));

    let mut options = FlowOptions {
        congestion: Some("no-such-algo".to_owned()),
        ..FlowOptions::default()
    };
    let unknown = FlowConfig {
        options: options.clone(),
        ..config.clone()
    };
    let error = connect(unknown, peer, None, b"", rig::DEADLINE).unwrap_err();
    assert!(error.to_string().contains("`no-such-algo`"), "{error}");

    options.congestion = None;
    options.mss_bytes = Some(1);
    let tiny = FlowConfig { options, ..config };
    let near = connect(tiny.clone(), peer, None, b"", rig::DEADLINE);
    let near = near.unwrap_err().to_string();
    assert!(near.contains("mss_bytes is 1, but must be 88"), "{near}");
    let stream = std::net::TcpStream::connect(peer).unwrap();
    let adopted = adopt(tiny, stream.into());
    assert!(matches!(adopted, Err(ConnectError::Config { .. })));
}
