//! `linerate serve` on a port of loopback that the kernel chooses.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::call::{Going, Said, linerate};
use super::http;

/// Longest wait for the agent to come to a state.
const DEADLINE: Duration = Duration::from_secs(30);

/// A server that ends with its test.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    going: Option<Going>,
}

impl Server {
    /// Starts a server.
    pub fn start(words: &[&str]) -> Self {
        Self::on(0, words)
    }

    /// Starts a server on a certain port.
    pub fn on(port: u16, words: &[&str]) -> Self {
        let port = port.to_string();
        let call = linerate(&["serve", "-B", "127.0.0.1", "-p", &port]).words(words);
        let mut going = call.start();
        going.wait_for("serving on ");
        let said = going.err();
        let address = said
            .split("serving on ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|word| word.parse().ok());
        Self {
            address: address.unwrap_or_else(|| panic!("no address in: {said}")),
            going: Some(going),
        }
    }

    /// Returns the address as the command line takes it.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.going.as_ref().expect("it is running").id()
    }

    /// Returns what it says of itself.
    pub fn info(&self) -> Value {
        let answer = http::ask(self.address, "GET", "/v1/agent", "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Returns whether it has worker threads, as it does during a trial.
    pub fn has_workers(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id()));
        tasks.into_iter().flatten().flatten().any(|task| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.starts_with("worker-"))
        })
    }

    /// Waits until it is busy, or until it is not.
    pub fn wait_busy(&self, busy: bool) {
        let deadline = Instant::now() + DEADLINE;
        while self.info()["busy"].is_null() == busy {
            assert!(Instant::now() < deadline, "still busy: {}", !busy);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it without a warning.
    pub fn kill(&mut self) -> Said {
        self.going.take().expect("it is running").kill()
    }

    /// Waits until it ends by itself.
    pub fn end(mut self) -> Said {
        self.going.take().expect("it is running").end()
    }

    /// Ends it as Ctrl-C does.
    pub fn stop(mut self) -> Said {
        let going = self.going.take().expect("it is running");
        going.signal(nix::sys::signal::Signal::SIGINT);
        going.end()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(going) = self.going.take() {
            going.kill();
        }
    }
}
