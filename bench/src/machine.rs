//! The machine: what other programs did during a run, and what it is.

use std::fs;

use anyhow::Context;
use nix::unistd::{SysconfVar, sysconf};
use serde::Serialize;

/// A process, from `/proc/PID/stat`.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The number of its parent.
    pub parent: i32,
    /// R, S, D, Z and so on.
    pub state: char,
    /// Clock ticks of itself and of its children that it waited for.
    ticks: f64,
    /// The kernel's thread for softirq work that was put off: the traffic's own, nobody else's.
    softirq: bool,
}

impl Process {
    /// Reads the text of `/proc/PID/stat`.
    pub fn read(text: &str) -> Option<Self> {
        let (before, after) = text.rsplit_once(')')?;
        let (pid, name) = before.split_once('(')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        let tick = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(Self {
            pid: pid.trim().parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            state: fields.first()?.chars().next()?,
            ticks: tick(11)? + tick(12)? + tick(13)? + tick(14)?,
            softirq: name.starts_with("ksoftirqd/") || name.starts_with("napi/"),
        })
    }
}

/// Returns all processes of the machine.
pub fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.parse::<i32>().ok()
    });
    numbers
        .filter_map(|pid| Process::read(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// Returns a process and everything below it.
pub fn tree(all: &[Process], root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let children = all.iter().filter(|process| process.parent == found[at]);
        let children: Vec<i32> = children.map(|process| process.pid).collect();
        found.extend(children);
        at += 1;
    }
    found
}

/// Returns the CPU seconds that a process and everything below it have used.
pub fn cpu_s_of(root: i32) -> anyhow::Result<f64> {
    let all = processes();
    let own = tree(&all, root);
    let own = all.iter().filter(|process| own.contains(&process.pid));
    Ok(own.map(|process| process.ticks).sum::<f64>() / ticks_per_second()?)
}

fn ticks_per_second() -> anyhow::Result<f64> {
    let ticks = sysconf(SysconfVar::CLK_TCK)?;
    Ok(ticks.context("the kernel does not say how long a tick is")? as f64)
}

/// CPU seconds of everyone but this program and what it started.
///
/// Summed over processes with the children they waited for, so that one which ends meanwhile is
/// still in its parent's number. Softirq work that runs while a process is on the CPU is counted as
/// that process' by the kernel, and what is put off is left out here, so the traffic of a run is
/// never taken for somebody else's work. What the hypervisor gave to others counts.
#[derive(Debug, Clone, Copy)]
pub struct Others {
    used_s: f64,
    busy_s: f64,
    at: std::time::Instant,
}

impl Others {
    /// Reads it now.
    pub fn now() -> anyhow::Result<Self> {
        let per_second = ticks_per_second()?;
        let all = processes();
        let own = tree(&all, i32::try_from(std::process::id())?);
        let others = all
            .iter()
            .filter(|process| !process.softirq && !own.contains(&process.pid));
        let ticks: f64 = others.map(|process| process.ticks).sum();
        let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let (busy, steal) = busy_ticks(&stat).context("/proc/stat is too short")?;
        Ok(Self {
            used_s: (ticks + steal) / per_second,
            busy_s: busy / per_second,
            at: std::time::Instant::now(),
        })
    }

    /// Returns the share of the machine that others used since `earlier`.
    pub fn share_since(&self, earlier: &Self) -> f64 {
        let cpus = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let wall_s = self.at.duration_since(earlier.at).as_secs_f64();
        // A child that ends while the list is read may be in neither its own number nor its
        // parent's; others cannot have used more than the machine was busy.
        let used_s = self.used_s - earlier.used_s;
        let used_s = used_s.min(self.busy_s - earlier.busy_s);
        (used_s / (wall_s * cpus)).max(0.0)
    }
}

/// Returns the clock ticks during which CPUs were not idle, and those of them that were stolen.
fn busy_ticks(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().next()?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .flat_map(str::parse)
        .collect();
    // user nice system idle iowait irq softirq steal; guest is part of user.
    let all: f64 = ticks.get(..8)?.iter().sum();
    Some((all - ticks[3] - ticks[4], ticks[7]))
}

/// What the machine is, for the head of the result.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// The CPU's name.
    pub cpu: String,
    /// CPUs.
    pub cpus: usize,
    /// The host's congestion control; runs may have another.
    pub congestion: String,
    /// Whether pages may be huge.
    pub huge_pages: String,
}

impl Machine {
    /// Reads it.
    pub fn read() -> Self {
        let line = |path: &str| {
            fs::read_to_string(path)
                .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
        };
        let cpuinfo = line("/proc/cpuinfo");
        let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split_once(':'));
        Self {
            kernel: line("/proc/sys/kernel/osrelease"),
            cpu: model.map_or("unknown", |(_, name)| name.trim()).to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            congestion: line("/proc/sys/net/ipv4/tcp_congestion_control"),
            huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "4711 (a (b) c) S 12 4711 4711 0 -1 4194560 1 2 3 4 100 200 30 40 20 0 1 0 5";

    #[test]
    fn a_process_with_brackets_in_its_name() {
        let process = Process::read(STAT).expect("a line of stat");
        assert_eq!(
            (process.pid, process.parent, process.state),
            (4711, 12, 'S')
        );
        assert_eq!(process.ticks, 370.0);
        assert!(!process.softirq);
    }

    #[test]
    fn a_tree_has_grandchildren_and_no_strangers() {
        let process = |pid, parent| Process {
            pid,
            parent,
            state: 'S',
            ticks: 0.0,
            softirq: false,
        };
        let all = [process(2, 1), process(3, 2), process(4, 1), process(5, 3)];
        assert_eq!(tree(&all, 2), [2, 3, 5]);
    }

    #[test]
    fn ticks_of_the_whole_machine() {
        let stat = "cpu  10 1 20 1000 50 2 3 4 9 0\ncpu0 1 2 3\n";
        assert_eq!(busy_ticks(stat), Some((40.0, 4.0)));
        assert_eq!(busy_ticks("cpu 1 2 3\n"), None);
    }

    #[test]
    fn shares_are_of_all_cpus() {
        let earlier = Others {
            used_s: 1.0,
            busy_s: 5.0,
            at: std::time::Instant::now(),
        };
        let cpus = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let later = Others {
            used_s: 1.0 + cpus,
            busy_s: 5.0 + 4.0 * cpus,
            at: earlier.at + std::time::Duration::from_secs(4),
        };
        assert_eq!(later.share_since(&earlier), 0.25);
        let hardly_busy = Others {
            busy_s: 5.0 + 0.5 * cpus,
            ..later
        };
        assert_eq!(hardly_busy.share_since(&earlier), 0.125);
    }
}
