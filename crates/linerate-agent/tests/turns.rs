//! One caller's pile of requests that take time, and another's request beside it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use common::Serving;
use socket2::{Domain, Socket, Type};

/// What takes milliseconds.
const SLOW: &str = "/v1/inventory";
/// Two of them are under way, 64 wait.
const PILE: usize = 120;

fn connect(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

fn send(stream: &mut TcpStream, path: &str) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
}

fn read(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_pile_of_inventories_is_its_callers_own_to_wait_for() {
    let serving = Serving::start(|server| server);
    let (piling, other) = (Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2));
    let alone = Instant::now();
    let mut stream = connect(other, serving.address);
    send(&mut stream, SLOW);
    assert!(read(&mut stream).starts_with("HTTP/1.1 200"));
    println!("{SLOW} alone: {:?}", alone.elapsed());
    let pile: Vec<TcpStream> = (0..PILE)
        .map(|_| {
            let mut stream = connect(piling, serving.address);
            send(&mut stream, SLOW);
            stream
        })
        .collect();
    // Connections are taken up in order: once this is answered, all of the pile are there.
    let mut last = connect(piling, serving.address);
    send(&mut last, "/v1/clock");
    assert!(read(&mut last).starts_with("HTTP/1.1 200"));
    let (done, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for mut stream in pile {
            let (done, refused) = (&done, &refused);
            scope.spawn(move || {
                let answer = read(&mut stream);
                if answer.starts_with("HTTP/1.1 200") {
                    done.fetch_add(1, Ordering::Relaxed)
                } else {
                    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
                    let words = "64 requests from 127.0.0.1 wait here already";
                    assert!(answer.contains(words), "{answer}");
                    refused.fetch_add(1, Ordering::Relaxed)
                };
            });
        }
        for path in [SLOW, "/v1/observation"] {
            let began = Instant::now();
            let mut stream = connect(other, serving.address);
            send(&mut stream, path);
            assert!(read(&mut stream).starts_with("HTTP/1.1 200"));
            println!("{path} beside a pile: {:?}", began.elapsed());
        }
        let before = done.load(Ordering::Relaxed);
        assert!(before < 40, "{before} of the pile were served before");
    });
    let (done, refused) = (done.into_inner(), refused.into_inner());
    assert_eq!(done + refused, PILE);
    assert!(refused > 0, "what waits is bounded");
}
