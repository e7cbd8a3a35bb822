//! Flows that come to another server than the one that prepared their trial: both listen behind one address.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "common/mod.rs"]
mod common;
#[path = "common/plain.rs"]
mod plain;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::Serving;
use linerate_agent::Core;
use linerate_agent::access::Caller;
use linerate_agent::api::{Assignment, LimitsInfo, PollFrom, RefusalCode, TrialState};
use linerate_model::sample::End;
use linerate_model::workload::{Direction, Part, Traffic};
use linerate_model::{Bytes, TrialId};

/// Where an agent's hello, and an answer to one, has what it is.
const KIND: std::ops::Range<usize> = 8..12;
/// Where an answer says who gives it.
const INSTANCE: std::ops::Range<usize> = 16..32;

/// Returns a client's agent with a run, and its lease.
fn client() -> (Arc<Core>, String) {
    let core = plain::core(LimitsInfo::default());
    let lease = core
        .admit(&Caller::Trusted, None, &plain::request())
        .unwrap()
        .lease;
    (core, lease)
}

fn to(peer: SocketAddr, server: &str, traffic: Traffic) -> Assignment {
    let part = match traffic {
        Traffic::Crr { .. } => Part::Requester,
        _ => Part::Sender,
    };
    Assignment {
        peer: Some(peer.to_string()),
        server: Some(server.to_owned()),
        ..plain::assignment(End::Client, part, traffic, 2)
    }
}

fn stream() -> Traffic {
    Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: Bytes(1024),
    }
}

fn places() -> Traffic {
    Traffic::Crr {
        request_bytes: Bytes(0),
        response_bytes: Bytes(0),
    }
}

/// Returns what an agent answers to a hello that announces so much, to the end of the connection.
fn answer(address: SocketAddr, announces: u8) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut hello = [7; 32];
    hello[..8].copy_from_slice(b"LINERATE");
    hello[KIND].copy_from_slice(&[0, 1, 0, announces]);
    stream.write_all(&hello).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Returns by what an agent is known.
fn instance(serving: &Serving) -> String {
    let answer = answer(serving.address, 2).unwrap();
    answer[INSTANCE]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn a_flow_that_nobody_knows_is_told_who_listens_and_a_connection_is_reset() {
    let servers = [
        Serving::start(|server| server),
        Serving::start(|server| server),
    ];
    for server in &servers {
        let [flow, question] = [0, 2].map(|announces| answer(server.address, announces).unwrap());
        assert_eq!((flow.len(), &flow), (32, &question));
        // No answer could be taken for a response, or its end.
        let reset = answer(server.address, 1).unwrap_err();
        assert_eq!(reset.kind(), std::io::ErrorKind::ConnectionReset);
    }
    assert_ne!(instance(&servers[0]), instance(&servers[1]));
}

#[test]
fn a_flow_that_another_server_took_fails_the_trial_and_says_so() {
    let servers = [
        Serving::start(|server| server),
        Serving::start(|server| server),
    ];
    let [prepared, other] = [instance(&servers[0]), instance(&servers[1])];
    let peer = servers[1].address;
    let why = |server: &str| {
        let (core, lease) = client();
        let told = to(peer, server, stream());
        core.prepare(&Caller::Trusted, &lease, told).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let status = core.poll_trial(&lease, TrialId(0), PollFrom::default());
            match status.unwrap().state {
                TrialState::Failed { why } => return why,
                TrialState::Ready => assert!(Instant::now() < deadline, "nobody said so"),
                state => panic!("{state:?}"),
            }
            std::thread::yield_now();
        }
    };
    // A late flow of the same server is another thing.
    let (of_two, of_one) = (why(&prepared), why(&other));
    assert_ne!(of_two, of_one);
    assert!(of_two.contains(&peer.to_string()), "{of_two}");
}

#[test]
fn places_ask_who_listens_before_they_are_measured() {
    let servers = [
        Serving::start(|server| server),
        Serving::start(|server| server),
    ];
    let (core, lease) = client();
    let told = to(servers[1].address, &instance(&servers[0]), places());
    let refused = core.prepare(&Caller::Trusted, &lease, told).unwrap_err();
    assert_eq!(refused.code, RefusalCode::Flows);
    assert!(
        refused.error.contains(&servers[1].address.to_string()),
        "{refused:?}"
    );
    // Nobody is there at all.
    let gone = servers[1].address;
    drop(servers);
    let told = to(gone, &"00".repeat(16), places());
    let refused = core.prepare(&Caller::Trusted, &lease, told).unwrap_err();
    assert_eq!(refused.code, RefusalCode::Flows);
}
