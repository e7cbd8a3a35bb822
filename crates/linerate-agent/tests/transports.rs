//! Whole trials over what is not plain TCP: both ends by one agent, bytes agree.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "common/phases.rs"]
mod phases;
#[path = "common/plain.rs"]
mod plain;

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use linerate_agent::api::{Agent, Assignment, LimitsInfo, PollFrom, StartRequest, TrialState};
use linerate_agent::serve::Server;
use linerate_agent::{Core, LocalAgent};
use linerate_model::manner::{Manner, Transport};
use linerate_model::run::FlowOutcome;
use linerate_model::sample::End;
use linerate_model::workload::{Direction, Part, Traffic};
use linerate_model::{BitsPerSec, Bytes, Nanos, TrialId};
use phases::TIMING;

const FLOWS: u32 = 3;

fn core() -> Arc<Core> {
    plain::core(LimitsInfo::default())
}

fn admit(agent: &LocalAgent) -> String {
    agent.admit(&plain::request()).unwrap().lease
}

fn assignment(end: End, transport: Transport, peer: Option<String>) -> Assignment {
    let part = match end {
        End::Client => Part::Sender,
        End::Server => Part::Receiver,
    };
    let traffic = Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: Bytes(10_000),
    };
    Assignment {
        peer,
        // No two trials of an agent have the same.
        cookie: format!("{:02x}", transport as u8).repeat(16),
        manner: Manner {
            transport,
            ..Manner::default()
        },
        sample_interval: Nanos::from_ms(20),
        ..plain::assignment(end, part, traffic, FLOWS)
    }
}

/// Runs the trial that both agents were told of; returns the outcomes of the ends.
fn run(agents: [(&LocalAgent, &str); 2]) -> [Vec<FlowOutcome>; 2] {
    for (agent, lease) in agents {
        while agent
            .poll(lease, TrialId(0), PollFrom::default())
            .unwrap()
            .state
            != TrialState::Ready
        {
            std::thread::yield_now();
        }
    }
    let start_ns = linerate_engine::now_ns() + 200_000_000;
    let at = StartRequest {
        start_ns,
        measure_begin_ns: start_ns + 10_000_000,
        measure_end_ns: start_ns + 60_000_000,
        stop_ns: start_ns + 60_000_000,
        skew_ns: 0,
        trigger: None,
    };
    for (agent, lease) in agents {
        agent.start(lease, TrialId(0), &at).unwrap();
    }
    agents.map(|(agent, lease)| {
        loop {
            let mut status = agent.poll(lease, TrialId(0), PollFrom::default()).unwrap();
            match status.state {
                TrialState::Finished => {
                    status.flows.sort_by_key(|flow| flow.flow);
                    return status.flows;
                }
                TrialState::Running => std::thread::yield_now(),
                other => panic!("{other:?}"),
            }
        }
    })
}

fn assert_agree(near: &[FlowOutcome], far: &[FlowOutcome]) {
    assert_eq!((near.len(), far.len()), (FLOWS as usize, FLOWS as usize));
    for (near, far) in near.iter().zip(far) {
        assert_eq!((&near.ended_early, &far.ended_early), (&None, &None));
        assert_eq!(near.bytes_sent, far.bytes_received);
        assert!(far.bytes_received > 0);
        assert_eq!((&near.local, &near.remote), (&far.remote, &far.local));
    }
}

#[test]
fn a_trial_over_unix_sockets_agrees_and_strangers_are_closed() {
    let (server, client) = (LocalAgent::new(core()), LocalAgent::new(core()));
    let (server_lease, client_lease) = (admit(&server), admit(&client));
    let told = assignment(End::Server, Transport::Unix, None);
    let name = server
        .prepare(&server_lease, &told, &TIMING)
        .unwrap()
        .socket_name
        .unwrap();
    // Somebody who found the name says nothing, and somebody says something else.
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _silent = UnixStream::connect_addr(&address).unwrap();
    let mut noisy = UnixStream::connect_addr(&address).unwrap();
    std::io::Write::write_all(&mut noisy, &[b'L'; 64]).unwrap();

    let told = assignment(End::Client, Transport::Unix, Some(format!("unix:@{name}")));
    client.prepare(&client_lease, &told, &TIMING).unwrap();
    let [near, far] = run([(&client, &client_lease), (&server, &server_lease)]);
    assert_agree(&near, &far);
    assert!(
        near.iter()
            .all(|flow| flow.remote == format!("unix:@{name}"))
    );
    // The name is gone with the last flow.
    assert!(UnixStream::connect_addr(&address).is_err());
}

/// Of two requests at once for one trial each may get a listener; none of them outlives the trial.
#[test]
fn listeners_of_a_trial_that_is_prepared_twice_at_once_go_with_it() {
    let core = core();
    let agent = LocalAgent::new(Arc::clone(&core));
    let lease = admit(&agent);
    let told = assignment(End::Server, Transport::Unix, None);
    let mut names = Vec::new();
    for _ in 0..300 {
        let both = Barrier::new(2);
        let prepare = || {
            both.wait();
            agent
                .prepare(&lease, &told, &TIMING)
                .unwrap()
                .socket_name
                .unwrap()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(prepare);
            names.push(prepare());
            names.push(other.join().unwrap());
        });
    }
    core.abort(&lease, TrialId(0)).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let open = std::fs::read_to_string("/proc/net/unix").unwrap();
        let left = names.iter().filter(|name| open.contains(name.as_str()));
        match left.count() {
            0 => break,
            left => assert!(Instant::now() < end, "{left} listeners are left"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_unix_peer_is_for_unix_sockets_and_is_looked_for_on_this_host() {
    let agent = LocalAgent::new(core());
    let lease = admit(&agent);
    let refused = |transport, peer: &str| {
        let told = assignment(End::Client, transport, Some(peer.to_owned()));
        agent
            .prepare(&lease, &told, &TIMING)
            .unwrap_err()
            .to_string()
    };
    let error = refused(Transport::Unix, "127.0.0.1:1");
    assert!(error.contains("need a peer `unix:@NAME`"), "{error}");
    let error = refused(Transport::Tcp, "unix:@linerate-nobody");
    assert!(error.contains("ADDRESS:PORT"), "{error}");
    let error = refused(Transport::Unix, "unix:@linerate-nobody");
    assert!(error.contains("both ends must be on one host"), "{error}");
}

#[test]
fn the_listener_speaks_mptcp_where_the_kernel_does_and_tcp_as_before() {
    let far_core = core();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::clone(&far_core)).unwrap();
    let peer = server.address().unwrap().to_string();
    let (_stop, wait) = channel();
    std::thread::spawn(move || server.run(wait));
    let has_mptcp =
        std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1");
    for transport in [Transport::Mptcp, Transport::Tcp] {
        let measure = |round: u8| {
            let (server, client) = (
                LocalAgent::new(Arc::clone(&far_core)),
                LocalAgent::new(core()),
            );
            let (server_lease, client_lease) = (admit(&server), admit(&client));
            let cookie = format!("{:02x}", 16 * (round + 1) + transport as u8).repeat(16);
            let told = |end, peer| Assignment {
                cookie: cookie.clone(),
                ..assignment(end, transport, peer)
            };
            server
                .prepare(&server_lease, &told(End::Server, None), &TIMING)
                .unwrap();
            client
                .prepare(
                    &client_lease,
                    &told(End::Client, Some(peer.clone())),
                    &TIMING,
                )
                .unwrap();
            run([(&client, &client_lease), (&server, &server_lease)])
        };
        // Beside other load the kernel's MPTCP may hold data back for longer than ends drain: seen in one of some ten
        // runs, never in two.
        let is_whole = |[near, far]: &[Vec<FlowOutcome>; 2]| {
            let sent = near.iter().map(|flow| flow.bytes_sent);
            sent.eq(far.iter().map(|flow| flow.bytes_received))
        };
        let rounds = if transport == Transport::Mptcp { 3 } else { 1 };
        let mut found = (0..rounds).map(measure);
        let [near, far] = found.find(is_whole).expect("what was sent arrived");
        assert_agree(&near, &far);
        for flow in near.iter().chain(&far) {
            let told = flow
                .settings
                .iter()
                .find(|setting| setting.name == "transport");
            let spoken = told.and_then(|setting| setting.effective.as_deref());
            let expected = match (transport, has_mptcp) {
                (Transport::Mptcp, true) => Some("mptcp, 1 subflow"),
                (Transport::Mptcp, false) => Some("tcp"),
                _ => None,
            };
            assert_eq!(spoken, expected);
        }
    }
}

/// The kernel paces no MPTCP socket: the sender does.
#[test]
fn flows_of_mptcp_are_held_to_a_rate() {
    let far_core = core();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::clone(&far_core)).unwrap();
    let peer = server.address().unwrap().to_string();
    let (_stop, wait) = channel();
    std::thread::spawn(move || server.run(wait));
    for ways in [
        [Part::Sender, Part::Receiver],
        [Part::Receiver, Part::Sender],
    ] {
        let (server, client) = (
            LocalAgent::new(Arc::clone(&far_core)),
            LocalAgent::new(core()),
        );
        let (server_lease, client_lease) = (admit(&server), admit(&client));
        let told = |end, part, peer| {
            let mut told = assignment(end, Transport::Mptcp, peer);
            told.flow_rate_max = Some(BitsPerSec(8e6));
            told.flows.iter_mut().for_each(|flow| flow.part = part);
            told
        };
        let far = told(End::Server, ways[1], None);
        server.prepare(&server_lease, &far, &TIMING).unwrap();
        let near = told(End::Client, ways[0], Some(peer.clone()));
        client.prepare(&client_lease, &near, &TIMING).unwrap();
        let [near, far] = run([(&client, &client_lease), (&server, &server_lease)]);
        for flow in near.iter().chain(&far) {
            assert_eq!(flow.ended_early, None);
            // In 60 ms and a look at the clock.
            let moved = flow.bytes_sent + flow.bytes_received;
            assert!(moved <= 100_000, "{moved}");
        }
        server.leave(&server_lease).unwrap();
    }
}

/// Connections that come and go are answered at the agent's own port.
#[test]
fn a_trial_of_connections_agrees() {
    let far_core = core();
    let listening = Server::bind(([127, 0, 0, 1], 0).into(), Arc::clone(&far_core)).unwrap();
    let peer = listening.address().unwrap();
    let (stop, stopped) = channel();
    let serving = std::thread::spawn(move || listening.run(stopped));
    let (server, client) = (LocalAgent::new(far_core), LocalAgent::new(core()));
    let (server_lease, client_lease) = (admit(&server), admit(&client));
    let places = |end, peer| {
        let mut told = assignment(end, Transport::Tcp, peer);
        told.traffic = Traffic::Crr {
            request_bytes: Bytes(10),
            response_bytes: Bytes(200),
        };
        for flow in &mut told.flows {
            flow.part = match end {
                End::Client => Part::Requester,
                End::Server => Part::Responder,
            };
        }
        told
    };
    let told = places(End::Server, None);
    let prepared = server.prepare(&server_lease, &told, &TIMING).unwrap();
    let mut told = places(End::Client, Some(peer.to_string()));
    told.server = prepared.instance;
    client.prepare(&client_lease, &told, &TIMING).unwrap();
    let [near, far] = run([(&client, &client_lease), (&server, &server_lease)]);
    assert_eq!((near.len(), far.len()), (FLOWS as usize, FLOWS as usize));
    for (near, far) in near.iter().zip(&far) {
        assert_eq!((&near.ended_early, &far.ended_early), (&None, &None));
        assert_eq!(near.bytes_sent, far.bytes_received);
        assert_eq!(near.bytes_received, far.bytes_sent);
        assert_eq!(near.bytes_sent * 20, near.bytes_received);
        assert!(near.bytes_sent > 0);
    }
    // The listener is the agent's again, with all that waits there.
    let mut other = std::net::TcpStream::connect(peer).unwrap();
    std::io::Write::write_all(
        &mut other,
        b"GET /v1/agent HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    )
    .unwrap();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut other, &mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.0 200"), "{answer:?}");
    drop(stop);
    serving.join().unwrap().unwrap();
}
