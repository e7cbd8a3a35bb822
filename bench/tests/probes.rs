//! Every probe moves something over loopback, and the launcher becomes what it is told.

use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a probe's server may take until it listens.
const LISTEN_DEADLINE: Duration = Duration::from_secs(20);

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().expect("the server can be killed");
        self.0.wait().expect("the server was ours");
    }
}

fn bench() -> Command {
    Command::new(env!("CARGO_BIN_EXE_bench"))
}

/// Returns a port that is free for TCP and UDP.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    UdpSocket::bind(("127.0.0.1", port)).expect("the same port for UDP");
    port
}

/// Runs a probe for a second and checks that its number is one.
fn check(probe: &str, flows: &str) {
    let port = free_port();
    let words = ["probe", probe, "--flows", flows];
    let server = bench()
        .args(words)
        .args(["serve", &port.to_string()])
        .spawn();
    let _server = Server(server.expect("the server starts"));
    let deadline = Instant::now() + LISTEN_DEADLINE;
    // A client that comes before the server listens is refused, and leaves no trace at the server.
    let client = loop {
        let run = ["run", "127.0.0.1", &port.to_string(), "1"];
        let client = bench()
            .args(words)
            .args(run)
            .output()
            .expect("the client runs");
        if client.status.success() || Instant::now() > deadline {
            break client;
        }
    };
    let said = String::from_utf8_lossy(&client.stderr);
    assert!(client.status.success(), "{probe}: {said}");
    let text = String::from_utf8(client.stdout).expect("a number is text");
    let number: f64 = text
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{probe}: {text}"));
    assert!(number.is_finite() && number > 0.0, "{probe}: {number}");
}

#[test]
fn streams() {
    check("tcp-copy", "2");
    check("tcp-trunc", "1");
    check("tcp-vmsplice", "1");
    check("tcp-vmsplice-trunc", "2");
    check("messages", "1");
    check("messages-batched", "1");
}

#[test]
fn transactions() {
    check("rr-block", "1");
    check("rr-spin", "1");
    check("rr-epoll", "16");
    check("crr-epoll", "16");
}

#[test]
fn datagrams() {
    check("udp", "1");
    check("udp-gso", "1");
}

#[test]
fn the_launcher_becomes_the_program_on_its_cpu() {
    let output = bench()
        .args(["launch", "--cpu", "0", "--", "sh", "-c"])
        .arg("grep Cpus_allowed_list /proc/self/status; exit 7")
        .output()
        .expect("the launcher runs");
    assert_eq!(output.status.code(), Some(7));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.split_whitespace().last(), Some("0"), "{text}");
}
