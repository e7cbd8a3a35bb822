//! `linerate explain` as its users meet it: a service that is not ours, a bundle, and what is neither.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::common::{Server, folder, json, linerate};

/// A service on this machine of which one connection is open: its program writes a little, and pauses.
struct Service {
    port: u16,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let over = Arc::new(AtomicBool::new(false));
        let mut client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let (mut stream, _) = listener.accept().expect("a client");
        let ends = Arc::clone(&over);
        let writer = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) && stream.write_all(&[7; 10_000]).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let reader = thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while client.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
        });
        Self {
            port,
            over,
            threads: vec![writer, reader],
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_service_whose_program_pauses_is_held_by_its_program() {
    let service = Service::start();
    let (port, pid) = (service.port.to_string(), std::process::id().to_string());
    let schema = json(&linerate(&["schema", "explain"]).run().done().out);
    let known = schema["properties"].as_object().expect("keys");
    for flags in [["--port", &port], ["--pid", &pid]] {
        let said = linerate(&["explain", flags[0], flags[1], "--for", "1s", "-J"]).run();
        assert_eq!(said.code, 0, "{said:?}");
        let told = json(&said.out);
        assert!(
            told.as_object()
                .expect("keys")
                .keys()
                .all(|key| known.contains_key(key)),
            "{told}"
        );
        let local = format!("127.0.0.1:{port}");
        let flows = told["flows"].as_array().expect("flows");
        let own = flows.iter().find(|flow| flow["local"] == local);
        let own = own.unwrap_or_else(|| panic!("its sender is not in {told}"));
        assert_eq!(own["limiter"], "application", "{told}");
        assert_eq!(own["sends"], true);
        let idle = own["clocks"]["idle"].as_f64().expect("a share");
        assert!(idle > 0.5 && idle <= 1.0, "{own}");
        let rate = own["bps"].as_f64().expect("a rate");
        // 10 kB in each 20 ms and what it takes to write them.
        assert!(rate > 1e5 && rate <= 4.5e6, "{own}");
        let owner = own["owner"].as_str().expect("it is ours");
        assert!(owner.ends_with(&format!("/{pid}")), "{owner}");
    }
    let said = linerate(&["explain", "--port", &port, "--for", "1s"])
        .run()
        .done();
    assert!(said.out.contains("nothing to send"), "{said:?}");
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = nobody.local_addr().expect("an address").port().to_string();
    let said = linerate(&["explain", "--port", &port, "--for", "1s", "-J"]).run();
    assert_eq!(said.code, 1, "{said:?}");
    for words in [
        &["explain"][..],
        &["explain", "no-such-file.bundle"],
        &["explain", "./no-such-file"],
        &["explain", "no-such-file.pcap", "--prove", "5"],
        &["explain", "localhost", "--prove", "1"],
        &["explain", "localhost", "--for", "2h"],
        &["explain", "--port", &port, "--prove", "5"],
        &["explain", "--port", &port, "--pid", "1"],
        &["explain", "--port", &port, "--for", "10ms"],
        &["explain", "no-such-file", "--with", "localhost"],
    ] {
        let said = linerate(words).run();
        assert_eq!(said.code, 2, "{words:?}: {said:?}");
    }
    // What is no path may be a host.
    let said = linerate(&["explain", "no-such-host.invalid", "-J"]).run();
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(json(&said.out)["schema"], "linerate.run");
}

#[test]
fn a_bundles_story_has_what_limits_it_and_what_that_rests_on() {
    let server = Server::start(&[]);
    let folder = folder();
    let bundle = folder.path().join("run.bundle");
    let bundle = bundle.to_str().expect("a path");
    let run = ["run", &server.host(), "-t", "1", "-b", "10M", "-o", bundle];
    linerate(&run).run().done();
    let said = linerate(&["explain", bundle]).run().done();
    assert!(
        said.out.contains("10 Mbit/s") && said.out.contains("requested rate"),
        "{said:?}"
    );
}
