//! What a firewall, a NAT or a published port of a container has to let through: one port of the agent.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::common::http::ask;
use crate::common::{Server, json, linerate, measured, wait_for_workers};

/// Passes connections of one port on to an agent, which is what a mapped port looks like to both ends.
struct Relay {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if seen.load(Ordering::Relaxed) {
                    break;
                }
                // One that the agent does not take is closed.
                if let Ok(far) = TcpStream::connect(target) {
                    pass_on(&near, &far);
                    pass_on(&far, &near);
                }
            }
        });
        Self {
            address,
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies what comes one way, to its end.
fn pass_on(from: &TcpStream, to: &TcpStream) {
    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
        return;
    };
    let _ = std::thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(move || {
            let mut room = [0; 16 << 10];
            while let Ok(bytes @ 1..) = from.read(&mut room) {
                if to.write_all(&room[..bytes]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
}

#[test]
fn every_kind_of_traffic_comes_through_one_mapped_port() {
    let server = Server::start(&[]);
    let relay = Relay::to(server.address);
    let host = relay.address.to_string();
    for flags in [
        &["-b", "5M"][..],
        &["-b", "5M", "-R"],
        &["--rr"],
        &["--crr", "-P", "3", "-r", "100,3000"],
        &["--connect", "-P", "2"],
    ] {
        let call = |_| linerate(&[&["run", &host, "-t", "0.3", "-J"], flags].concat());
        let Some(said) = measured(call) else { return };
        let document = json(&said.out);
        assert_eq!(document["trials"][0]["valid"], true, "{flags:?}: {said:?}");
        let ends = document["trials"][0]["flows"].as_array().expect("flows");
        let some = |count: &serde_json::Value| count.as_u64() > Some(0);
        let mut ends = ends.iter();
        let moved =
            ends.any(|end| some(&end["bytes_received"]) || some(&end["connections"]["made"]));
        assert!(moved, "{flags:?}: {document}");
    }
}

#[test]
fn strangers_are_served_while_connections_are_measured() {
    let server = Server::start(&[]);
    let host = server.host();
    let going = linerate(&["run", &host, "-t", "1", "-J", "--crr", "-P", "4"]).start();
    wait_for_workers(&server);
    let silent: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(server.address).expect("it listens"))
        .collect();
    let mut asked = 0;
    while server.has_workers() || asked < 20 {
        // What begins like a hello and is none, and what asks for something.
        let mut other = TcpStream::connect(server.address).expect("it listens");
        other.write_all(b"LINE").expect("it has room");
        let answer = ask(server.address, "GET", "/v1/agent", "");
        assert_eq!(answer.status, 200, "{answer:?}");
        asked += 1;
    }
    drop(silent);
    let document = json(&going.end().out);
    let ends = document["trials"][0]["flows"].as_array();
    let ends = ends.expect("flows").iter();
    let counts = ends.filter_map(|end| {
        let count = &end["connections"];
        Some((count["made"].as_u64()?, count["failed"].as_u64()?))
    });
    let counts: Vec<(u64, u64)> = counts.collect();
    assert_eq!(counts.len(), 4, "{document}");
    let is_whole = |(made, failed): &(u64, u64)| *made > 0 && *failed == 0;
    assert!(counts.iter().all(is_whole), "{counts:?}");
}
