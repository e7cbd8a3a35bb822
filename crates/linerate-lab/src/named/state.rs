//! What a holder writes down, for other processes to find its lab.
//!
//! `state.json`: one JSON object, written beside its place and renamed, so a reader sees a whole
//! file or none. `format` is raised when a field changes its meaning or goes away.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use crate::spec::LabSpec;
use crate::sys::process;

/// The format that this version writes, and the only one it reads.
pub const FORMAT: u32 = 1;

/// A lab as its holder wrote it down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The format of this document.
    pub format: u32,
    /// What the lab looks like.
    pub spec: LabSpec,
    /// The process that owns the lab.
    pub holder: ProcessKey,
    /// The hosts in the order of the spec.
    pub hosts: Vec<StateHost>,
    /// Whether the lab has a user namespace that a visitor must enter.
    pub in_user_namespace: bool,
    /// What this kernel refused and the lab does without.
    pub degraded: Vec<String>,
}

/// One host of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateHost {
    /// The host's name.
    pub name: String,
    /// Its first process.
    pub init: ProcessKey,
    /// Its address on the measured network.
    pub data_address: IpAddr,
    /// Its address on the control network.
    pub control_address: IpAddr,
}

/// A process for certain: ids are used again, but not with the same start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessKey {
    /// The process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
}

impl State {
    /// Tells whether the lab's holder is alive.
    pub fn is_up(&self) -> bool {
        self.holder.is_alive()
    }
}

impl ProcessKey {
    /// Returns the key of the process that has `pid` now.
    pub fn of(pid: u32) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let stat = read_stat(&text).ok_or(io::ErrorKind::InvalidData)?;
        if stat.has_ended {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self {
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// Tells whether this very process exists.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_ok_and(|found| found == *self)
    }

    /// Holds this very process by descriptor; `None` if it is gone.
    pub(crate) fn open(&self) -> Option<OwnedFd> {
        let process = process::open(self.pid).ok()?;
        // Asked after the descriptor is held: from here on the id cannot come to mean another.
        self.is_alive().then_some(process)
    }
}

/// What a `/proc/PID/stat` says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// Whether it only waits to be reaped.
    has_ended: bool,
    start_ticks: u64,
}

/// Reads fields 3 and 22 of a `/proc/PID/stat`; the name in field 2 may hold blanks and brackets.
fn read_stat(stat: &str) -> Option<Stat> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let start_ticks = fields.nth(22 - 4)?.parse().ok()?;
    Some(Stat {
        has_ended,
        start_ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_survives_a_strange_name() {
        let tail = "1 42 42 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 1 0 987654 7 8";
        let check = |state: &str, has_ended| {
            let stat = read_stat(&format!("42 (a) b (c) {state} {tail}"));
            let start_ticks = 987_654;
            assert_eq!(
                stat,
                Some(Stat {
                    has_ended,
                    start_ticks
                })
            );
        };
        check("S", false);
        check("Z", true);
        assert_eq!(read_stat("42 (a) S 1"), None);
    }

    #[test]
    fn a_reused_id_is_another_process() {
        let own = ProcessKey::of(std::process::id()).expect("this process is in /proc");
        assert!(own.is_alive());
        assert!(own.open().is_some());
        let other = ProcessKey {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        assert!(!other.is_alive());
        assert!(other.open().is_none());
    }

    #[test]
    fn the_format_of_today_stays_readable() {
        let text = r#"{"format":1,"spec":{"name":"x","hosts":[{"name":"a","link":{"rate":1000000000.0,
            "delay":5000000,"loss":0.0,"mtu_bytes":1500,"queues":1}}]},"holder":{"pid":7,"start_ticks":8},
            "hosts":[{"name":"a","init":{"pid":9,"start_ticks":10},"data_address":"10.77.0.1",
            "control_address":"10.78.0.1"}],"in_user_namespace":false,"degraded":[]}"#;
        let state: State = serde_json::from_str(text).expect("format 1");
        assert_eq!(state.hosts[0].init.pid, 9);
        let again = serde_json::to_string(&state).expect("plain values");
        assert_eq!(
            serde_json::from_str::<State>(&again).expect("just written"),
            state
        );
    }
}
