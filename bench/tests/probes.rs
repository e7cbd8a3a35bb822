//! Every probe moves something over loopback, and the launcher becomes what it is told.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

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

/// Runs a probe for a second and checks that its number is one.
fn check(probe: &str, flows: &str) {
    let words = ["probe", probe, "--flows", flows];
    let server = bench()
        .args(words)
        .args(["serve", "0"])
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Server(server.expect("the server starts"));
    let mut port = String::new();
    let said = server.0.stdout.take().expect("it is piped");
    BufReader::new(said)
        .read_line(&mut port)
        .expect("the server says where it listens");
    let client = bench()
        .args(words)
        .args(["run", "127.0.0.1", port.trim(), "1"])
        .output()
        .expect("the client runs");
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
