//! The page that Prometheus scrapes, beside others who ask for it: its readers have the places that callers of an
//! agent have.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;

use linerate_agent::serve::exporter::Exporter;
use socket2::{Domain, Socket, Type};

/// More connections than there are places.
const CROWD: usize = 1500;
/// More than the socket of a reader that does not read takes.
const PAGE_BYTES: usize = 8 << 20;

fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from = SocketAddr::from((from, 0));
    socket.bind(&from.into()).expect("loopback has it");
    socket.connect(&to.into()).expect("it listens");
    socket.into()
}

/// Sends a request.
fn ask(stream: &mut TcpStream) {
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    // One that has been cut off for others is one of the crowd.
    let _ = stream.write_all(request);
}

/// Reads an answer, which must be the page.
#[track_caller]
fn read_page(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("it is answered");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut page = vec![0; PAGE_BYTES];
    stream.read_exact(&mut page).expect("the whole page");
}

#[test]
fn a_crowd_of_one_address_keeps_no_reader_out() {
    let exporter = Exporter::bind((Ipv4Addr::LOCALHOST, 0).into(), Vec::new()).expect("a port");
    let address = exporter.address().expect("it has one");
    let (stop, stopped) = channel::<()>();
    let page = || Ok(("text/plain", "x".repeat(PAGE_BYTES)));
    let serving =
        std::thread::spawn(move || exporter.run(Arc::new(move |_: &str| page()), stopped));
    let mut before = connect([127, 0, 0, 1], address);
    ask(&mut before);
    read_page(&mut before);
    let crowd: Vec<TcpStream> = (0..CROWD)
        .map(|_| {
            let mut stream = connect([127, 0, 0, 2], address);
            ask(&mut stream);
            stream
        })
        .collect();
    // By the connection that it has kept, and a newcomer by another.
    ask(&mut before);
    read_page(&mut before);
    let mut newcomer = connect([127, 0, 0, 3], address);
    ask(&mut newcomer);
    read_page(&mut newcomer);
    drop((crowd, stop));
    serving.join().expect("it ends").expect("it could serve");
}
