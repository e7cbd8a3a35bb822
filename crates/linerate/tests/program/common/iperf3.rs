//! iperf3's servers, and what its documents say.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::call::{Call, Going};
use super::{Said, free_port};

/// Longest that a server may take to listen, and to end after its test.
const DEADLINE: Duration = Duration::from_secs(20);

/// The state of an established connection in `/proc/net/tcp`.
pub const ESTABLISHED: &str = "01";

/// `iperf3 -s` on a port of its own, which ends when it is dropped.
pub struct Iperf3 {
    child: Child,
    port: u16,
}

impl Iperf3 {
    /// Starts `program` with more words; `None` where it is not installed.
    pub fn start(program: &str, words: &[&str]) -> Option<Self> {
        let port = free_port();
        let mut command = Command::new(program);
        command.args(["-s", "-B", "127.0.0.1", "-p", &port.to_string()]);
        command.args(words).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let server = Self {
            child: command.spawn().ok()?,
            port,
        };
        let deadline = Instant::now() + DEADLINE;
        while !is_listening(port) {
            assert!(Instant::now() < deadline, "iperf3 does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns where it listens.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Waits until a test goes on: the control connection and its streams are there.
    pub fn wait_for_test(&self) {
        let deadline = Instant::now() + DEADLINE;
        while timers(self.port, ESTABLISHED).len() < 2 {
            assert!(Instant::now() < deadline, "no test began");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it is our child");
    }

    /// Waits for the end of a server for one test; returns what it printed.
    pub fn end(mut self) -> String {
        let deadline = Instant::now() + DEADLINE;
        while self.child.try_wait().expect("it is our child").is_none() {
            assert!(Instant::now() < deadline, "the server goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut text = String::new();
        let mut out = self.child.stdout.take().expect("it is piped");
        out.read_to_string(&mut text).expect("it prints text");
        text
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether a TCP socket listens on a port; connecting would begin a test.
fn is_listening(port: u16) -> bool {
    !timers(port, "0A").is_empty()
}

/// Returns the timers of the TCP sockets of a local port in a state (proc_pid_net(5), `tr` and `st` of
/// `/proc/net/tcp`).
pub fn timers(port: u16, state: &str) -> Vec<String> {
    let port = format!(":{port:04X}");
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row[1].ends_with(&port) && row[3] == state)
        .map(|row| row[5][..2].to_owned())
        .collect()
}

/// Returns the number at `path` of a document.
pub fn number(document: &Value, path: &str) -> f64 {
    let value = document.pointer(path);
    let number = value.and_then(Value::as_f64);
    number.unwrap_or_else(|| panic!("no {path} in {document}"))
}

/// Asserts that the client received what we sent, but for what was under way when it ended; returns
/// how much we sent and how much it received.
#[track_caller]
pub fn came_back(document: &Value, suffix: &str, words: &[&str]) -> (f64, f64) {
    let sent = number(document, &format!("/end/sum_sent{suffix}/bytes"));
    let received = number(document, &format!("/end/sum_received{suffix}/bytes"));
    assert!(received > 0.0, "{words:?}: nothing came");
    // Socket buffers of both ends on loopback hold some MiB for each stream.
    assert!(sent >= received, "{words:?}: {sent} {received}");
    (sent, received)
}

/// Ends a client of ours; what a host too busy to begin in time refused, rather than to measure it wrong, is
/// asked for `again`.
pub fn begun_in_time(going: Going, again: impl Fn() -> Call) -> Said {
    let mut said = going.end();
    for _ in 0..5 {
        if !is_refused_late(&said) {
            break;
        }
        said = again().run();
    }
    said
}

/// Whether a client was refused since its test would have begun late.
pub fn is_refused_late(said: &Said) -> bool {
    said.out.contains("unable to initialize stream")
}
