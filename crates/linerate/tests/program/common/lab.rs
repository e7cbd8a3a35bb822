//! A lab that goes when it is dropped, and two hosts of one to measure between.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;

use super::call::{Call, Going, PROGRAM, linerate};

/// A named lab.
pub struct NamedLab {
    /// Its name; no other test has it.
    pub name: String,
}

/// Returns a name that no other test gives its lab.
pub fn unique_name() -> String {
    static LABS: AtomicU32 = AtomicU32::new(0);
    let number = LABS.fetch_add(1, Ordering::Relaxed);
    format!("t{}-{number}", std::process::id())
}

impl NamedLab {
    /// Brings up a lab with these flags; `None` where this user may not, after saying so.
    pub fn up(words: &[&str]) -> Option<Self> {
        let name = unique_name();
        let said = linerate(&["lab", "up", &name]).words(words).run();
        if said.code == 1 && said.err.contains("namespace") {
            super::skip(&format!("no privilege: {}", said.err.trim()));
            return None;
        }
        assert_eq!(said.code, 0, "{said:?}");
        Some(Self { name })
    }

    /// Returns a call of the program in a host, before all other programs where that is allowed:
    /// what is measured is the link, not what else the machine does.
    ///
    /// Where the scheduler groups tasks by session (sched(7), autogroup), only the group's nice
    /// value counts between sessions.
    pub fn exec_first(&self, host: &str, words: &[&str]) -> Call {
        let script = r#"(echo -19 > /proc/self/autogroup) 2>/dev/null; exec "$0" "$@""#;
        Call::of("setsid")
            .words(&[
                "sh", "-c", script, PROGRAM, "lab", "exec", &self.name, host, PROGRAM,
            ])
            .words(words)
    }

    /// Returns a call of the program in a host.
    pub fn exec(&self, host: &str, words: &[&str]) -> Call {
        linerate(&["lab", "exec", &self.name, host, PROGRAM]).words(words)
    }

    /// Returns the address of a host on the measured network.
    pub fn address(&self, host: &str) -> String {
        let said = linerate(&["lab", "list"]).run().done();
        let mut lines = said
            .out
            .lines()
            .skip_while(|line| line.split_whitespace().next() != Some(self.name.as_str()));
        let line = lines.find(|line| line.split_whitespace().next() == Some(host));
        let address = line.and_then(|line| line.split_whitespace().nth(1));
        address
            .unwrap_or_else(|| panic!("no {host} in: {}", said.out))
            .to_owned()
    }

    /// Returns whether its directory is there.
    pub fn has_directory(&self) -> bool {
        Path::new("/run/linerate/lab").join(&self.name).exists()
    }
}

impl Drop for NamedLab {
    fn drop(&mut self) {
        // A test may have taken it down already.
        let _ = linerate(&["lab", "down", &self.name]).run();
    }
}

/// A lab of two hosts with an agent on its server.
pub struct Pair {
    /// The lab.
    pub lab: NamedLab,
    /// The server's address.
    pub server: String,
    agent: Option<Going>,
}

impl Pair {
    /// Brings up the lab with these flags, and the agent; `None` where this user may not.
    pub fn up(link: &[&str]) -> Option<Self> {
        Self::up_serving(link, &[])
    }

    /// The same with these flags for the agent.
    pub fn up_serving(link: &[&str], flags: &[&str]) -> Option<Self> {
        let lab = NamedLab::up(link)?;
        let serve = lab.exec_first("server", &["serve", "--public"]);
        let mut agent = serve.words(flags).start();
        agent.wait_for("serving on");
        let server = lab.address("server");
        Some(Self {
            lab,
            server,
            agent: Some(agent),
        })
    }

    /// Returns a call of `linerate run` from the client to the server, with a JSON document.
    pub fn run(&self, flags: &str) -> Call {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let call = self.lab.exec_first("client1", &["run", &self.server, "-J"]);
        call.words(&flags)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.signal(Signal::SIGTERM);
            agent.end();
        }
    }
}
