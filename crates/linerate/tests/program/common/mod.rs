//! The program as its users meet it: calls, servers, labs, and what they leave behind.

/// Calls of the program, and whether anything of them is left.
pub mod call;
/// Requests to an agent, byte by byte.
pub mod http;
/// Servers of iperf3, and its documents.
pub mod iperf3;
/// Named labs.
pub mod lab;
/// Who has the machine's CPUs.
pub mod machine;
/// `linerate serve`.
pub mod server;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

pub use self::{
    call::{Call, Said, linerate},
    lab::{NamedLab, Pair},
    machine::{alone, loading},
    server::Server,
};

/// Returns a port of 127.0.0.1 on which nothing listens.
///
/// Each once, and none of those that the kernel gives to connections: other tests make thousands of
/// them, and one could have it before it is used.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(port < 32_000, "no free port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
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

/// Copies a program, by a process of its own: a file that this one had open for writing would be busy in whatever another
/// test starts meanwhile.
pub fn copied(from: &str, to: &std::path::Path) {
    let done = std::process::Command::new("cp").arg(from).arg(to).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "no copy of {from}"
    );
}

/// Writes a file into `folder`, which its owner alone may read, and returns its path as text.
pub fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("the temporary directory can be written");
    let alone = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&path, alone).expect("it is ours");
    path.display().to_string()
}

/// Returns the single JSON document that `text` is.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in: {text}"))
}

/// Holds the keys of a document against the schema that the program prints for it.
pub fn fits_its_schema(name: &str, document: &Value) {
    let schema = json(&linerate(&["schema", name]).run().done().out);
    for key in schema["required"].as_array().expect("keys") {
        let key = key.as_str().expect("a name");
        assert!(document.get(key).is_some(), "{name}: {key}");
    }
    for key in document.as_object().expect("an object").keys() {
        let known = schema["properties"].get(key);
        assert!(known.is_some(), "{key} is not in the schema of {name}");
    }
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

/// Measures until the machine leaves the time for it; `None` after saying so where it never does. It does not
/// where a window's edges were read late, and where a document tells of a trial that is invalid beside others
/// who had the CPUs. `call` gets the number of the try.
pub fn measured(call: impl Fn(usize) -> Call) -> Option<Said> {
    /// How often.
    const TRIES: usize = 5;
    let mut tries = (0..TRIES).map(|number| call(number).run());
    let is_spoiled = |said: &Said| {
        let document: Option<Value> = serde_json::from_str(&said.out).ok();
        document.is_some_and(|document| {
            document["trials"][0]["valid"] == false && disturbance(&document).is_some()
        })
    };
    let said = tries.find(|said| !said.was_read_late() && !is_spoiled(said));
    if said.is_none() {
        too_busy("the machine is too busy to measure on");
    }
    said
}

/// Returns what linerate itself says of others that took CPUs from a measurement, if it says so.
pub fn disturbance(document: &Value) -> Option<String> {
    /// In the flags of a trial.
    const WORDS: [&str; 4] = ["generator", "other programs", "hypervisor", "in no mode"];
    /// Share of the window in which something waited for a CPU (/proc/pressure/cpu), from which on one
    /// of two CPUs is not left alone.
    const PRESSURE_MAX: f64 = 0.25;
    let trial = &document["trials"][0];
    let flags = trial["flags"].to_string();
    if WORDS.into_iter().any(|word| flags.contains(word)) {
        return Some(flags);
    }
    let pressure = trial["responses"]["cpu_pressure_share"]
        .as_f64()
        .filter(|share| *share > PRESSURE_MAX);
    pressure.map(|share| format!("a CPU was waited for {:.0} % of the time", 100.0 * share))
}

/// Returns whether this process is root of the machine, not of a user namespace only.
pub fn is_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    whole && own.lines().any(|line| line.starts_with("Uid:\t0\t0\t"))
}
