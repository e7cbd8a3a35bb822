//! `linerate trace -i`: a capture of this host, explained when it ends.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use crate::common::http::ask;
use crate::common::{Server, fits_its_schema, folder, json, linerate, skip};
use nix::sys::signal::Signal;

/// Returns whether this process may capture.
fn may_capture() -> bool {
    let may = crate::common::is_root();
    if !may {
        skip("capturing needs root");
    }
    may
}

#[test]
fn a_capture_explains_what_passed_and_leaves_a_file_without_names() {
    if !may_capture() {
        return;
    }
    let server = Server::start(&[]);
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (kept, hidden) = (path("kept.pcapng"), path("hidden.pcapng"));
    let start = |file: &str, more: &[&str]| {
        let words = ["trace", "-i", "lo", "-J", "--snap", "90", "-w", file];
        let mut going = linerate(&words).words(more).start();
        going.wait_for("capturing on lo");
        going
    };
    let (open, anonymous) = (start(&kept, &[]), start(&hidden, &["--anonymous"]));
    let run = linerate(&["run", &server.host(), "-n", "20M", "-J"]).run();
    assert!(run.is_measured(), "{run:?}");
    open.signal(Signal::SIGINT);
    anonymous.signal(Signal::SIGINT);
    let said = open.end();
    assert_eq!(said.code, 0, "{said:?}");
    let trace = json(&said.out);
    fits_its_schema("trace", &trace);
    let port = server.address.port();
    let payload = |trace: &serde_json::Value| -> u64 {
        let connections = trace["connections"].as_array().expect("connections");
        let text = serde_json::to_string(connections).expect("it is JSON");
        assert!(!text.is_empty());
        trace["totals"]["payload_bytes"].as_u64().unwrap_or(0)
    };
    let connections = trace["connections"].as_array().expect("connections");
    let to_us = connections
        .iter()
        .filter(|one| one["server"]["port"] == port);
    assert!(to_us.count() > 0, "{}", said.out);
    // A busy host captures less, and says so.
    let is_whole = trace["totals"]["holes_of_capture"] == 0;
    assert!(
        !is_whole || payload(&trace) >= 20 << 20,
        "{}",
        trace["totals"]
    );
    assert_eq!(anonymous.end().code, 0);
    // The files give the same connections again; the other one without addresses.
    let again = linerate(&["trace", "-J", &kept]).run();
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(
        json(&again.out)["totals"]["payload_bytes"],
        trace["totals"]["payload_bytes"]
    );
    let nobody = linerate(&["trace", "-J", &hidden]).run();
    assert_eq!(nobody.code, 0, "{nobody:?}");
    assert!(!nobody.out.contains("127.0.0.1"), "{}", nobody.out);
    assert!(nobody.out.contains("10.0.0.1"), "{}", nobody.out);
}

/// A caller whom the agent trusts names ports of another program; its agent captures none of them.
#[test]
fn a_trial_captures_no_port_but_its_own() {
    if !may_capture() {
        return;
    }
    let server = Server::start(&[]);
    let victim = Victim::start(([127, 0, 0, 1], 0).into(), 0);
    let other = victim.address.port();
    // A client's end of places: connections to a port that somebody else listens on.
    let mut client = assignment(other);
    client["end"] = "client".into();
    // Of its own, as callers draw them: flows go to the trial that has their cookie.
    client["cookie"] = "cd".repeat(16).into();
    client["peer"] = victim.address.to_string().into();
    client["traffic"] = serde_json::json!({"kind": "crr", "request_bytes": 0, "response_bytes": 0});
    client["flows"] = serde_json::json!([{"flow": 0, "part": "requester"}]);
    // Who serves there is no agent, so that there is no trial and no capture.
    let lease = admit(&server);
    let trials = format!("/v1/runs/{lease}/trials");
    let answer = ask(server.address, "POST", &trials, &client.to_string());
    assert_ne!(answer.status, 200, "{answer:?}");
    let answer = ask(server.address, "GET", &format!("{trials}/1/capture"), "");
    assert_ne!(answer.status, 200, "{answer:?}");
    // The accepting end, with a port that is not the agent's.
    let status = captured(&server, &assignment(other), Some(0));
    let taken = &status["capture"]["taken"];
    assert!(taken["frames"].as_u64() > Some(0), "{status}");
    assert_eq!(taken["snap_bytes"], 256);
    let bytes = status["bytes"].as_array().expect("the file");
    let bytes: Vec<u8> = bytes
        .iter()
        .filter_map(|byte| byte.as_u64())
        .map(|byte| byte as u8)
        .collect();
    let has = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    assert!(
        !has(Victim::SECRET) && !has(&other.to_be_bytes()),
        "{status}"
    );
    // More of a frame than its headers is refused.
    let mut long = assignment(other);
    long["probes"]["capture"]["snap"] = 65_535.into();
    let lease = admit(&server);
    let path = format!("/v1/runs/{lease}/trials");
    let answer = ask(server.address, "POST", &path, &long.to_string());
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("must be 98 to 256"), "{answer:?}");
}

/// Ports are numbers: others' connections have the agent's, too, at either end.
#[test]
fn connections_of_others_with_the_agents_port_number_are_none_of_a_trial() {
    if !may_capture() {
        return;
    }
    let server = Server::start(&[]);
    let port = server.address.port();
    // A service at another address of this host, and clients of another one who have the number by chance.
    let others = [
        Victim::start(([127, 0, 0, 3], port).into(), 0),
        Victim::start(([127, 0, 0, 4], 0).into(), port),
    ];
    let streams = assignment(port);
    let mut places = assignment(port);
    places["traffic"] = serde_json::json!({"kind": "crr", "request_bytes": 0, "response_bytes": 0});
    places["flows"] = serde_json::json!([{"flow": 0, "part": "responder"}]);
    for (assignment, flow) in [(streams, Some(0)), (places, None)] {
        let before = others.each_ref().map(Victim::exchanges);
        let status = captured(&server, &assignment, flow);
        for (other, before) in others.iter().zip(before) {
            assert!(other.exchanges() > before, "they went on meanwhile");
        }
        let taken = &status["capture"]["taken"];
        assert!(
            taken["others"].as_u64() > Some(0),
            "they were looked at: {taken}"
        );
        assert_eq!(
            taken["frames"].as_u64() > Some(0),
            flow.is_some(),
            "{taken}"
        );
        let bytes: Vec<u8> = serde_json::from_value(status["bytes"].clone()).expect("the file");
        let secret = Victim::SECRET;
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
}

/// Another program of this host, whose connections carry a secret.
struct Victim {
    address: std::net::SocketAddr,
    exchanges: std::sync::Arc<std::sync::atomic::AtomicU64>,
    over: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Victim {
    const SECRET: &'static [u8] = b"Cookie: SECRET-12345";

    /// Serves there, to clients of this port, or of any.
    fn start(at: std::net::SocketAddr, client_port: u16) -> Self {
        use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
        let listener = TcpListener::bind(at).expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let exchanges = std::sync::Arc::new(AtomicU64::new(0));
        let (seen, count) = (over.clone(), exchanges.clone());
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                // From an address of its own each time, whose port nothing waits to be over.
                let number = count.fetch_add(1, Ordering::Relaxed);
                let from = [127, 1, (number >> 8) as u8, number as u8];
                let mut client = connect_from((from, client_port).into(), address);
                let (own, _) = listener.accept().expect("it was connected to");
                let _ = client.write_all(Self::SECRET);
                drop((client, own));
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        Self {
            address,
            exchanges,
            over,
            thread: Some(thread),
        }
    }

    fn exchanges(&self) -> u64 {
        self.exchanges.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn connect_from(from: std::net::SocketAddr, to: std::net::SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket can be made");
    socket.set_reuse_address(true).expect("a socket has it");
    socket
        .bind(&from.into())
        .expect("all of 127/8 is this host's");
    socket.connect(&to.into()).expect("it listens");
    socket.into()
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.over.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn admit(server: &Server) -> String {
    let body = r#"{"run":"r","label":"l","admission":"shared","expected":null}"#;
    let answer = ask(server.address, "POST", "/v1/runs", body);
    answer.json()["lease"].as_str().expect("a lease").to_owned()
}

/// Returns the assignment of an accepting end that asks for a capture of `port`.
fn assignment(port: u16) -> serde_json::Value {
    serde_json::json!({
        "trial": 1, "end": "server", "peer": null, "bind": null, "cookie": "ab".repeat(16),
        "traffic": {"kind": "stream", "direction": "to-server", "message_bytes": 1024},
        "options": {}, "flows": [{"flow": 0, "part": "receiver"}], "workers_max": null,
        "cpus": [], "sample_interval": 100_000_000u64, "length": 10_000_000_000u64,
        "probes": {"capture": {"snap": 256}}, "capture_at": {"device": "lo", "port": port}
    })
}

/// Runs a trial, with a flow from here where `flow` says its number; returns its last status, with the
/// bytes of its capture.
fn captured(
    server: &Server,
    assignment: &serde_json::Value,
    flow: Option<u32>,
) -> serde_json::Value {
    let lease = admit(server);
    let trials = format!("/v1/runs/{lease}/trials");
    let answer = ask(server.address, "POST", &trials, &assignment.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let socket = flow.map(|flow| {
        let mut socket = TcpStream::connect(server.address).expect("it listens");
        let head = [
            b"LINERATE\0\x01\0\0".as_slice(),
            &flow.to_be_bytes(),
            &[0xab; 16],
        ];
        socket.write_all(&head.concat()).expect("it reads");
        socket.write_all(&[0; 100_000]).expect("it reads");
        socket
    });
    let now = ask(server.address, "GET", "/v1/clock", "").json()["sent_ns"].as_u64();
    let now = now.expect("an instant");
    let ms = |ms: u64| now + ms * 1_000_000;
    let at = serde_json::json!({"start_ns": ms(50), "measure_begin_ns": ms(60),
        "measure_end_ns": ms(600), "stop_ns": ms(600)});
    let path = format!("{trials}/1/start");
    let answer = ask(server.address, "POST", &path, &at.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let socket = socket.map(|socket| {
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(700));
            drop(socket);
        })
    });
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let mut status = loop {
        let path = format!("{trials}/1?wait_ns=1000000000&from=100000000");
        let status = ask(server.address, "GET", &path, "").json();
        match status["state"]["state"].as_str() {
            Some("finished") => break status,
            Some("failed") => panic!("{status}"),
            _ => assert!(std::time::Instant::now() < deadline, "{status}"),
        }
    };
    if let Some(socket) = socket {
        socket.join().expect("it sleeps");
    }
    let path = format!("{trials}/1/capture");
    let mut stream = crate::common::http::connect(server.address);
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut bytes).expect("a file");
    status["bytes"] = bytes.into();
    status
}

#[test]
fn what_cannot_be_captured_is_said() {
    linerate(&["trace"]).run().failed(2, &["FILE"]);
    linerate(&["trace", "no-such.pcap"])
        .run()
        .failed(1, &["cannot open no-such.pcap", "name a capture"]);
    linerate(&["trace", "-i", "lo", "--anonymous"])
        .run()
        .failed(2, &["--write"]);
    linerate(&["trace", "-i", "nosuch0", "-t", "1s"])
        .run()
        .failed(1, &["no device `nosuch0`", "next:"]);
}
