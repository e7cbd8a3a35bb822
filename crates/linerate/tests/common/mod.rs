//! The program as its users meet it: calls, servers, labs, and what they leave behind.
#![expect(
    clippy::allow_attributes,
    reason = "each test file uses a part of this module, so that what is dead differs"
)]
#![allow(dead_code)]

/// Calls of the program, and whether anything of them is left.
pub mod call;
/// Requests to an agent, byte by byte.
pub mod http;
/// Servers of iperf3, and its documents.
pub mod iperf3;
/// Named labs.
pub mod lab;
/// `linerate serve`.
pub mod server;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

#[allow(unused_imports)]
pub use self::{
    call::{Call, Said, linerate},
    lab::{NamedLab, Pair},
    server::Server,
};

/// Returns a port of 127.0.0.1 on which nothing listens.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    listener.local_addr().expect("it is bound").port()
}

/// Waits until a trial goes on at `server`: it then has worker threads.
pub fn wait_for_workers(server: &Server) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !server.has_workers() {
        assert!(Instant::now() < deadline, "no trial began");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the folder of a file of this repository.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a directory that goes when it is dropped.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("the temporary directory can be written")
}

/// Writes a file into `folder` and returns its path as text.
pub fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("the temporary directory can be written");
    path.display().to_string()
}

/// Returns the single JSON document that `text` is.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in: {text}"))
}

/// Returns a guard while which no other measurement of this file that asks for one goes on: two at full
/// speed take the CPU from each other's readings. Where bytes are counted, words looked at, or a rate of
/// a few Mbit/s kept, another may go on.
pub fn alone() -> MutexGuard<'static, ()> {
    static MEASURING: Mutex<()> = Mutex::new(());
    MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a test cannot run here; where CI=true it fails instead.
#[expect(
    clippy::print_stdout,
    reason = "whoever reads the results counts what was skipped"
)]
pub fn skip(why: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!ci, "in CI this must run: {why}");
    println!("skipped: {why}");
}

/// Notes that a machine is too busy for a number to be held against the truth, as linerate itself said of
/// every try; no privilege is missing, so that CI goes on.
#[expect(
    clippy::print_stdout,
    reason = "whoever reads the results counts what was skipped"
)]
pub fn too_busy(why: &str) {
    println!("skipped: {why}");
}

/// Returns whether this process is root of the machine, not of a user namespace only.
pub fn is_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    whole && own.lines().any(|line| line.starts_with("Uid:\t0\t0\t"))
}
