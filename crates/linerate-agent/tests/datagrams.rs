//! Flows of datagrams come in over the agent's port, and nobody else is answered.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "common/phases.rs"]
mod phases;
#[path = "common/plain.rs"]
mod plain;

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_agent::LocalAgent;
use linerate_agent::api::{Agent, Assignment, LimitsInfo, PollFrom, TrialState};
use linerate_agent::serve::Server;
use linerate_agent::serve::hello::{Announces, Hello};
use linerate_engine::opening::{HELLO_BYTES, NONCE_BYTES, Signal, echo};
use linerate_engine::{FlowConfig, connect};
use linerate_model::manner::{Manner, Transport};
use linerate_model::sample::End;
use linerate_model::workload::{Direction, FlowOptions, Part, Traffic};
use linerate_model::{Bytes, FlowId, TrialId};
use phases::TIMING;

const COOKIE: [u8; 16] = [0xab; 16];
/// Longer than any answer over loopback takes, and what silence costs a test.
const SILENCE: Duration = Duration::from_millis(150);
const DEADLINE: Duration = Duration::from_secs(5);

struct Host {
    address: SocketAddr,
    agent: LocalAgent,
    lease: String,
    _stop: Sender<()>,
}

/// Returns an agent on a port of its own that waits for `flows` flows of datagrams.
fn host(bind: &str, flows: u32) -> Host {
    let core = plain::core(LimitsInfo::default());
    let server = Server::bind(bind.parse().unwrap(), Arc::clone(&core)).unwrap();
    let address = server.address().unwrap();
    let (stop, wait) = channel();
    std::thread::spawn(move || server.run(wait));
    let agent = LocalAgent::new(core);
    let lease = agent.admit(&plain::request()).unwrap().lease;
    let assignment = Assignment {
        manner: manner(),
        ..plain::assignment(End::Server, Part::Receiver, traffic(), flows)
    };
    agent.prepare(&lease, &assignment, &TIMING).unwrap();
    Host {
        address,
        agent,
        lease,
        _stop: stop,
    }
}

fn traffic() -> Traffic {
    Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: Bytes(100),
    }
}

fn manner() -> Manner {
    Manner {
        transport: Transport::Udp,
        ..Manner::default()
    }
}

fn hello(cookie: [u8; 16], flow: u32) -> [u8; HELLO_BYTES] {
    Hello {
        cookie,
        flow: FlowId(flow),
        announces: Announces::Flow,
    }
    .encode()
}

fn client(flow: u32) -> FlowConfig {
    FlowConfig {
        flow: FlowId(flow),
        end: End::Client,
        part: Part::Sender,
        traffic: traffic(),
        options: FlowOptions::default(),
        manner: manner(),
    }
}

impl Host {
    fn state(&self) -> TrialState {
        self.agent
            .poll(&self.lease, TrialId(0), PollFrom::default())
            .unwrap()
            .state
    }

    /// Returns the answer to `datagram` from a socket of its own, if there is one.
    fn ask(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.address).unwrap();
        ask(&socket, datagram)
    }
}

fn ask(socket: &UdpSocket, datagram: &[u8]) -> Option<Vec<u8>> {
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    socket.send(datagram).unwrap();
    let mut room = [0; 2048];
    let length = socket.recv(&mut room).ok()?;
    Some(room[..length].to_vec())
}

#[test]
fn flows_come_in_one_by_one() {
    let host = host("127.0.0.1:0", 3);
    let flows: Vec<_> = (0..3)
        .map(|flow| {
            let opened = connect(
                client(flow),
                host.address,
                None,
                &hello(COOKIE, flow),
                DEADLINE,
            );
            opened.unwrap()
        })
        .collect();
    assert_eq!(host.state(), TrialState::Ready);
    assert!(
        flows
            .iter()
            .all(|flow| flow.remote().ip() == Some(host.address))
    );
}

#[test]
fn one_listener_takes_ipv4_and_ipv6() {
    let host = host("[::]:0", 2);
    for (flow, address) in [(0, "127.0.0.1"), (1, "::1")] {
        let peer = SocketAddr::new(address.parse().unwrap(), host.address.port());
        match connect(client(flow), peer, None, &hello(COOKIE, flow), DEADLINE) {
            Ok(_) => {}
            Err(error) if address == "::1" => return println!("skipped: no IPv6: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(host.state(), TrialState::Ready);
}

#[test]
fn whoever_is_not_expected_gets_no_answer() {
    let host = host("127.0.0.1:0", 1);
    let silent = |datagram: &[u8]| assert_eq!(host.ask(datagram), None, "{datagram:?}");
    silent(&hello([1; 16], 0));
    silent(&hello(COOKIE, 7));
    silent(b"9876");
    silent(&[]);
    silent(&[b'L'; 1400]);
    // Who knows the cookie still has to show that it reads what is sent to its address.
    silent(&echo(&hello(COOKIE, 0), &[0; NONCE_BYTES]));
    assert_eq!(host.state(), TrialState::Gathering { missing: 1 });

    let answer = host.ask(&hello(COOKIE, 0)).unwrap();
    assert!(answer.len() <= HELLO_BYTES);
    let Some(Signal::Challenge(nonce)) = Signal::read(&answer) else {
        panic!("{answer:?}");
    };
    // The nonce of one address is worth nothing at another.
    silent(&echo(&hello(COOKIE, 0), nonce));
    assert_eq!(host.state(), TrialState::Gathering { missing: 1 });

    connect(client(0), host.address, None, &hello(COOKIE, 0), DEADLINE).unwrap();
    assert_eq!(host.state(), TrialState::Ready);
    // What has come is not expected any more.
    silent(&hello(COOKIE, 0));
}

/// The first two of each kind of datagram are lost, in both directions: hello, challenge, echo and
/// confirmation.
#[test]
fn lost_words_are_said_again() {
    let host = host("127.0.0.1:0", 1);
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    let behind = UdpSocket::bind("127.0.0.1:0").unwrap();
    behind.connect(host.address).unwrap();
    let address = relay.local_addr().unwrap();
    let client_address = Arc::new(Mutex::new(None));
    for socket in [&relay, &behind] {
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
    }
    let (from_client, to_server) = (relay.try_clone().unwrap(), behind.try_clone().unwrap());
    let noted = Arc::clone(&client_address);
    std::thread::spawn(move || {
        let (mut room, mut seen) = ([0; 2048], [0; 2]);
        while let Ok((length, peer)) = from_client.recv_from(&mut room) {
            *noted.lock().unwrap() = Some(peer);
            let kind = usize::from(length > HELLO_BYTES);
            seen[kind] += 1;
            if seen[kind] > 2 {
                to_server.send(&room[..length]).unwrap();
            }
        }
    });
    std::thread::spawn(move || {
        let (mut room, mut seen) = ([0; 2048], [0; 2]);
        while let Ok(length) = behind.recv(&mut room) {
            let is_confirmation = Signal::read(&room[..length]) == Some(Signal::Confirmation);
            let kind = usize::from(is_confirmation);
            seen[kind] += 1;
            let peer = client_address.lock().unwrap().unwrap();
            if seen[kind] > 2 {
                relay.send_to(&room[..length], peer).unwrap();
            }
        }
    });
    let deadline = Duration::from_secs(20);
    connect(client(0), address, None, &hello(COOKIE, 0), deadline).unwrap();
    assert_eq!(host.state(), TrialState::Ready);
}

/// Whoever sends anything to the port every millisecond does not keep a client from hearing that it is there.
#[test]
fn a_lost_confirmation_is_said_again_whatever_others_send() {
    let host = host("127.0.0.1:0", 1);
    let garbage = UdpSocket::bind("127.0.0.1:0").unwrap();
    garbage.connect(host.address).unwrap();
    let (stop, stopped) = channel::<()>();
    let sending = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(1)).is_err() {
            garbage.send(b"garbage").unwrap();
        }
    });
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(host.address).unwrap();
    let answer = ask(&socket, &hello(COOKIE, 0)).unwrap();
    let Some(Signal::Challenge(nonce)) = Signal::read(&answer) else {
        panic!("{answer:?}");
    };
    let echoed = echo(&hello(COOKIE, 0), nonce);
    let is_confirmed = |answer: &[u8]| Signal::read(answer) == Some(Signal::Confirmation);
    assert!(is_confirmed(&ask(&socket, &echoed).unwrap()));
    // That one was lost, as far as the agent knows.
    socket.send(&echoed).unwrap();
    socket.set_read_timeout(Some(DEADLINE / 2)).unwrap();
    let mut room = [0; 2048];
    let length = socket.recv(&mut room).unwrap();
    assert!(is_confirmed(&room[..length]));
    stop.send(()).unwrap();
    sending.join().unwrap();
}

/// Returns how many datagrams the kernel dropped at a listener on `port` of IPv4.
fn dropped_at(port: u16) -> u64 {
    let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
    let is_at = |line: &&str| {
        let local = line.split_whitespace().nth(1);
        local.is_some_and(|local| local.ends_with(&format!(":{port:04X}")))
    };
    let mut at = sockets.lines().filter(is_at);
    at.next()
        .and_then(|line| line.split_whitespace().last())
        .unwrap()
        .parse()
        .unwrap()
}

/// Loopback delivers within the call, so what was dropped was dropped before anybody could read it.
#[test]
fn what_nobody_waits_for_does_not_reach_the_agent() {
    let host = host("127.0.0.1:0", 1);
    let port = host.address.port();
    let noise = UdpSocket::bind("127.0.0.1:0").unwrap();
    noise.connect(host.address).unwrap();
    let mut cookie = COOKIE;
    cookie[15] ^= 1;
    for _ in 0..100 {
        for datagram in [&[7; 1400][..], b"9876", &hello(cookie, 0)] {
            noise.send(datagram).unwrap();
        }
    }
    assert_eq!(dropped_at(port), 300);
    assert!(host.ask(&hello(COOKIE, 0)).is_some());
    assert_eq!(dropped_at(port), 300);
    // Nor does its cookie once the trial is over.
    host.agent.abort(&host.lease, TrialId(0)).unwrap();
    assert_eq!(host.ask(&hello(COOKIE, 0)), None);
    assert_eq!(dropped_at(port), 301);
}
