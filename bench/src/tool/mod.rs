//! The tools that are compared: what each runs for a workload, and how its result is read.
//!
//! To add one: a file here with a function that returns a [`Tool`], and a line in [`all`]. Its
//! `plans` answers a workload with the commands of both ends and the function that finds the number
//! in what they said; a workload that it cannot do has no plan. See `nptcp.rs` for a short one.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::workload::Contest;

mod iperf;
mod iperf3;
mod linerate;
mod nptcp;
mod nuttcp;
mod probe;
mod qperf;
mod sockperf;
mod xfr;

/// What a row is, compared to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Our program.
    Ours,
    /// Another program.
    Peer,
    /// A bare loop: about what the kernel allows.
    Probe,
}

/// A tool.
pub struct Tool {
    /// Its name, with which its rows begin.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Returns its version, or nothing where it is not installed.
    pub version: fn(&Programs) -> Option<String>,
    /// Returns how it does a workload: nothing, one row or several.
    pub plans: fn(&Site<'_>, Contest) -> Vec<Commands>,
}

impl Tool {
    /// Returns another program.
    const fn peer(
        name: &'static str,
        version: fn(&Programs) -> Option<String>,
        plans: fn(&Site<'_>, Contest) -> Vec<Commands>,
    ) -> Self {
        Self {
            name,
            kind: Kind::Peer,
            version,
            plans,
        }
    }
}

/// Programs that are not found by name.
#[derive(Debug, Clone)]
pub struct Programs {
    /// linerate.
    pub linerate: PathBuf,
    /// This program, which is also the probes.
    pub bench: PathBuf,
}

/// What is the same for every tool in one run.
#[derive(Debug)]
pub struct Site<'a> {
    /// Programs that are not found by name.
    pub programs: &'a Programs,
    /// Where the client finds the server.
    pub host: &'a str,
    /// A port that nobody has.
    pub port: u16,
    /// Seconds to measure.
    pub seconds: u32,
    /// CPUs of server and client, where they are pinned.
    pub cpus: Option<(usize, usize)>,
}

/// The commands of one row.
#[derive(Debug)]
pub struct Commands {
    /// What the row is called beyond the tool's name; empty for its plain way.
    pub variant: &'static str,
    /// The server's command, if it has one.
    pub server: Option<Vec<String>>,
    /// The port on which the server listens when it is ready.
    pub port: u16,
    /// The client's command.
    pub client: Vec<String>,
    /// Seconds that the client measures.
    pub seconds: u32,
    /// Whether the server writes its count after the client has ended.
    pub server_reports: bool,
    /// Exit codes of the client beyond 0 with which it still gives a number.
    pub accepts: &'static [i32],
    /// Fails where what was said says that it counts for nothing.
    pub valid: fn(&Said) -> anyhow::Result<()>,
    /// Finds the number, in the workload's unit; of what is seen from outside it is not asked.
    pub read: fn(&Said) -> anyhow::Result<f64>,
}

/// What both ends said, and what was seen of them.
#[derive(Debug)]
pub struct Said {
    /// The workload.
    pub workload: Contest,
    /// Seconds that were to be measured.
    pub seconds: f64,
    /// Seconds from the client's start to its end.
    pub wall_s: f64,
    /// Peak resident memory of the greater end, in bytes.
    pub resident_bytes: f64,
    /// Standard output of the client.
    pub client: String,
    /// Standard output of the server.
    pub server: String,
}

/// All tools, ours first, then peers, then probes.
pub const ALL: [Tool; 10] = [
    linerate::TOOL,
    iperf3::TOOL,
    iperf3::CURRENT_TOOL,
    iperf::TOOL,
    xfr::TOOL,
    sockperf::TOOL,
    nuttcp::TOOL,
    qperf::TOOL,
    nptcp::TOOL,
    probe::TOOL,
];

impl Commands {
    /// Makes a plan from the words of both commands.
    pub fn new(
        site: &Site<'_>,
        server: &[&str],
        client: &[&str],
        read: fn(&Said) -> anyhow::Result<f64>,
    ) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            variant: "",
            server: Some(owned(server)),
            port: site.port,
            client: owned(client),
            seconds: site.seconds,
            server_reports: false,
            accepts: &[],
            valid: |_| Ok(()),
            read,
        }
    }

    /// Adds words to the client's command.
    pub fn with(mut self, words: &[&str]) -> Self {
        self.client
            .extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Returns the number: of startup and memory what was seen from outside, else what was said.
    pub fn value(&self, said: &Said) -> anyhow::Result<f64> {
        (self.valid)(said)?;
        match said.workload {
            Contest::Startup => Ok(said.wall_s - said.seconds),
            Contest::Memory1 | Contest::Memory10000 => Ok(said.resident_bytes),
            _ => (self.read)(said),
        }
    }

    /// Names the row.
    pub fn called(mut self, variant: &'static str) -> Self {
        self.variant = variant;
        self
    }
}

/// Returns the first line that a program prints on this command, if it can be run.
pub fn first_line(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines()
        .find(|line| !line.trim().is_empty())
        .map(|line| line.trim().to_owned())
}

/// Returns the number that follows `mark` in the text, at its last occurrence.
pub fn after(text: &str, mark: &str) -> anyhow::Result<f64> {
    let (_, rest) = text
        .rsplit_once(mark)
        .with_context(|| format!("no `{mark}`"))?;
    let number: String = rest
        .trim_start_matches([' ', '=', ':', '\t'])
        .chars()
        .take_while(|letter| {
            letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E' | '+' | '-')
        })
        .collect();
    number
        .parse()
        .with_context(|| format!("no number after `{mark}`"))
}

/// For the tests of the tools: what was said in a run of one second.
#[cfg(test)]
pub fn said(workload: Contest, client: &str, server: &str) -> Said {
    Said {
        workload,
        seconds: 1.0,
        wall_s: 1.5,
        resident_bytes: 0.0,
        client: client.to_owned(),
        server: server.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_after_a_mark() {
        assert_eq!(after("a=1 b=2.5 x", "b=").expect("a number"), 2.5);
        assert_eq!(
            after("bw  =  43032896 bytes/sec", "bw").expect("a number"),
            43_032_896.0
        );
        assert!(after("nothing", "bw").is_err());
        assert!(after("bw = fast", "bw").is_err());
    }

    #[test]
    fn startup_and_memory_are_seen_from_outside() {
        let programs = Programs {
            linerate: "linerate".into(),
            bench: "bench".into(),
        };
        let site = Site {
            programs: &programs,
            host: "127.0.0.1",
            port: 5201,
            seconds: 1,
            cpus: None,
        };
        let plan = Commands::new(&site, &[], &[], |_| Ok(7.0));
        let value = |workload| plan.value(&said(workload, "", "")).ok();
        assert_eq!(value(Contest::Startup), Some(0.5));
        assert_eq!(value(Contest::Memory1), Some(0.0));
        assert_eq!(value(Contest::Tcp1), Some(7.0));
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
