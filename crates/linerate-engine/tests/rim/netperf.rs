//! Servers of netperf's kind: they say nothing but payload, name no request, and are told the end by empty datagrams.

use std::io::{Read, Write};
use std::net::UdpSocket;

use linerate_engine::{FlowConfig, connect};
use linerate_model::Bytes;
use linerate_model::manner::{Manner, Transport, WaitBy};
use linerate_model::sample::End;
use linerate_model::workload::{Part, Traffic};

use crate::rig;

/// Answers each datagram with one of zeros, until three empty ones have come; returns how many it answered.
fn answer(socket: &UdpSocket, response_bytes: usize) -> u64 {
    socket.set_read_timeout(Some(rig::DEADLINE)).unwrap();
    let (mut answered, mut empty) = (0, 0);
    let mut room = [0; 64];
    while empty < 3 {
        match socket.recv_from(&mut room).unwrap() {
            (0, _) => empty += 1,
            (_, from) => {
                assert_eq!(empty, 0, "nothing follows the end");
                socket.send_to(&vec![0; response_bytes], from).unwrap();
                answered += 1;
            }
        }
    }
    answered
}

#[test]
fn responses_without_a_name_complete_requests_and_empty_datagrams_end_them() {
    for (part, traffic, in_flight) in [
        (Part::Requester, rig::rr(10, 20, 1), 1),
        (Part::Requester, rig::rr(10, 20, 1), 4),
        (Part::Sender, rig::stream(40), 1),
    ] {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let manner = Manner {
            transport: Transport::Udp,
            in_flight,
            // A sender that is slow enough to lose nothing.
            rate_bps: (part == Part::Sender).then_some(1_000_000),
            ..Manner::default()
        };
        let config = FlowConfig {
            manner,
            ..rig::config(0, End::Client, part, &traffic)
        };
        let peer = far.local_addr().unwrap();
        let mut near = connect(config, peer, None, b"", rig::DEADLINE).unwrap();
        near.end_with_empty_datagrams();
        let server = std::thread::spawn(move || answer(&far, 20));
        let near = rig::start(vec![near], rig::schedule(60), 1).finish();
        let (answered, near) = (server.join().unwrap(), &near[0]);
        assert_eq!(near.ended_early, None);
        let counts = near.datagrams.as_ref().unwrap();
        assert_eq!(counts.sent, answered);
        assert!(answered > 0);
        if part == Part::Requester {
            assert_eq!(near.transactions + counts.unanswered, answered);
            assert_eq!((counts.strange, counts.late), (0, 0));
        }
    }
}

#[test]
fn a_connection_without_a_hello_begins_with_its_request() {
    for wait in [WaitBy::Epoll, WaitBy::Auto] {
        let listener = rig::listener();
        let peer = listener.local_addr().unwrap();
        let traffic = Traffic::Crr {
            request_bytes: Bytes(10),
            response_bytes: Bytes(20),
        };
        let mut config = rig::config(0, End::Client, Part::Requester, &traffic);
        config.manner.wait = wait;
        let near = connect(config, peer, None, b"", rig::DEADLINE).unwrap();
        let server = std::thread::spawn(move || {
            let mut answered = 0;
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 10];
                // One that says less is the last, which the test makes.
                if stream.read_exact(&mut request).is_err() {
                    break;
                }
                stream.write_all(&[0; 20]).unwrap();
                answered += 1;
            }
            answered
        });
        let near = rig::start(vec![near], rig::schedule(60), 1).finish();
        drop(std::net::TcpStream::connect(peer).unwrap());
        let (answered, near) = (server.join().unwrap(), &near[0]);
        assert_eq!(near.ended_early, None);
        assert!(answered > 0);
        assert_eq!(near.transactions, answered, "{wait:?}");
        assert_eq!(
            (near.bytes_sent, near.bytes_received),
            (10 * answered, 20 * answered)
        );
    }
}
