//! One end of a run: its processes, their CPU time and memory.
//!
//! Where the second version of cgroups is writable, an end is a cgroup, whose CPU time also counts
//! threads and children that are gone. Elsewhere it is the tree of processes below the one that was
//! started, and threads that ended within a reading's window are lost.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::machine;

/// How long processes get to end before they are killed.
const END_DEADLINE: Duration = Duration::from_secs(3);

/// One end of a run.
#[derive(Debug)]
pub struct Side {
    cgroup: Option<PathBuf>,
    /// The process that was started, once it was.
    pub root: Option<i32>,
}

impl Side {
    /// Makes a place for an end that is called `name`.
    pub fn new(name: &str) -> Self {
        let folder =
            own_cgroup().map(|own| own.join(format!("bench-{}-{name}", std::process::id())));
        let cgroup = folder.filter(|folder| fs::create_dir(folder).is_ok());
        Self { cgroup, root: None }
    }

    /// Returns the arguments by which the launcher puts itself there.
    pub fn launch_arguments(&self) -> Vec<String> {
        match &self.cgroup {
            Some(folder) => vec!["--cgroup".into(), folder.display().to_string()],
            None => Vec::new(),
        }
    }

    /// Returns the processes of this end.
    pub fn processes(&self) -> Vec<i32> {
        if let Some(folder) = &self.cgroup {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            return text.lines().flat_map(str::parse).collect();
        }
        self.root
            .map(|root| machine::tree(&machine::processes(), root))
            .unwrap_or_default()
    }

    /// Returns the CPU seconds that this end used until now.
    pub fn cpu_s(&self) -> f64 {
        if let Some(folder) = &self.cgroup {
            let text = fs::read_to_string(folder.join("cpu.stat")).unwrap_or_default();
            return usage_s(&text).unwrap_or(0.0);
        }
        self.processes().into_iter().map(scheduled_s).sum()
    }

    /// Returns the greatest resident memory that the processes of this end had, in bytes.
    pub fn resident_bytes_max(&self) -> f64 {
        let kib = |pid: i32| -> Option<f64> {
            let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        self.processes().into_iter().filter_map(kib).sum::<f64>() * 1024.0
    }

    /// Whether something of this end listens on the port.
    pub fn listens(&self, port: u16) -> bool {
        self.processes().into_iter().any(|pid| {
            ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
                let text = fs::read_to_string(format!("/proc/{pid}/net/{table}"));
                text.is_ok_and(|text| listens_on(&text, port))
            })
        })
    }

    /// Ends all processes: those without children first, so that wrappers see them end.
    pub fn end(&self) {
        let own = self.processes();
        let all = machine::processes();
        let has_child = |pid: i32| all.iter().any(|process| process.parent == pid);
        for pid in own.iter().copied().filter(|pid| !has_child(*pid)) {
            // A process that is already gone is what we want.
            let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
        }
        let deadline = Instant::now() + END_DEADLINE;
        while !self.only_zombies() {
            if Instant::now() > deadline {
                for pid in self.processes() {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn only_zombies(&self) -> bool {
        let running = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .ok()
                .and_then(|text| machine::Process::read(&text))
                .is_some_and(|process| process.state != 'Z')
        };
        !self.processes().iter().any(running)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if let Some(folder) = &self.cgroup {
            // Emptied a moment after its last process was waited for.
            for _ in 0..200 {
                if fs::remove_dir(folder).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Returns the folder of our own cgroup of version 2, if there is one.
fn own_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mount = line.split_whitespace().nth(4)?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(PathBuf::from(format!("{mount}{path}")))
}

fn usage_s(stat: &str) -> Option<f64> {
    let line = stat.lines().find(|line| line.starts_with("usage_usec"))?;
    let micros: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(micros / 1e6)
}

/// Returns the CPU seconds of a process' living threads, from the scheduler's own nanoseconds.
fn scheduled_s(pid: i32) -> f64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0.0;
    };
    let nanos = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e9
}

/// Reads a table of `/proc/net`: 0A is LISTEN, and 07 what an unconnected UDP socket shows.
fn listens_on(table: &str, port: u16) -> bool {
    let hex = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next();
        let state = fields.nth(1);
        local.is_some_and(|local| local.ends_with(&hex)) && matches!(state, Some("0A" | "07"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_in_proc_net() {
        let table = "  sl  local_address rem_address   st\n\
             0: 0100007F:1451 00000000:0000 0A 00000000:00000000\n\
             1: 0100007F:1452 0100007F:1451 01 00000000:00000000\n";
        assert!(listens_on(table, 5201));
        assert!(!listens_on(table, 5202));
    }

    #[test]
    fn usage_of_a_cgroup() {
        assert_eq!(usage_s("usage_usec 1500000\nuser_usec 1\n"), Some(1.5));
    }

    #[test]
    fn our_own_threads_have_run() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        assert!(scheduled_s(own) > 0.0);
    }
}
