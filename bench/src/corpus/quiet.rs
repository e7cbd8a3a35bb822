//! Whether the machine was quiet: what programs used that are none of a set-up's.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Programs that set-ups are made of.
const OWN: &[&str] = &[
    "bench", "linerate", "sh", "sleep", "nsenter", "timeout", "taskset", "ip", "tc", "nft",
    "ethtool", "sysctl", "cat",
];
/// CPUs that others may use beside a run.
const OTHERS_MAX: f64 = 0.1;
/// How long a machine is looked at before it counts as quiet.
const LOOK: Duration = Duration::from_millis(400);
/// Ticks of /proc a second (USER_HZ, which is 100 on all machines that Linux runs on).
const TICKS_PER_S: f64 = 100.0;

/// What each program that is not ours has used so far, in ticks.
pub struct Others {
    at: Instant,
    ticks: BTreeMap<i32, u64>,
}

impl Others {
    /// Reads it.
    pub fn now() -> Self {
        let mut ticks = BTreeMap::new();
        let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
        for folder in folders {
            let pid = folder.file_name().to_string_lossy().parse::<i32>();
            let stat = fs::read_to_string(folder.path().join("stat"));
            if let Some((pid, used)) = pid.ok().zip(stat.ok().as_deref().and_then(used)) {
                ticks.insert(pid, used);
            }
        }
        Self {
            at: Instant::now(),
            ticks,
        }
    }

    /// Returns how many CPUs others used since then, those that ended meanwhile aside.
    pub fn cpus_since(&self) -> f64 {
        let now = Self::now();
        let grown = now.ticks.iter().map(|(pid, used)| {
            let before = self.ticks.get(pid).copied().unwrap_or(0);
            used.saturating_sub(before)
        });
        let seconds = (now.at - self.at).as_secs_f64();
        grown.sum::<u64>() as f64 / TICKS_PER_S / seconds
    }

    /// Returns whether they left the machine alone.
    pub fn rested(&self) -> bool {
        self.cpus_since() <= OTHERS_MAX
    }
}

/// Returns the ticks in the text of /proc/PID/stat, of a program that no set-up is made of.
fn used(stat: &str) -> Option<u64> {
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let parts: Vec<&str> = rest.split_whitespace().collect();
    // Threads of the kernel have no memory; what they do is in the interest of somebody who is counted.
    let is_kernel = parts.get(20) == Some(&"0");
    if OWN.contains(&name) || is_kernel {
        return None;
    }
    let ticks = |place: usize| parts.get(place)?.parse::<u64>().ok();
    Some(ticks(11)? + ticks(12)?)
}

/// Waits until nobody else uses the machine.
pub fn wait() -> anyhow::Result<()> {
    loop {
        crate::interrupt::check()?;
        let before = Others::now();
        thread::sleep(LOOK);
        if before.rested() {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_used_is_read() {
        let stat = |name: &str, size: &str| {
            format!("7 ({name}) R 1 1 1 0 -1 4 1 0 0 0 30 12 0 0 20 0 1 0 100 {size} 10 1")
        };
        assert_eq!(used(&stat("a ) b", "4096")), Some(42));
        assert_eq!(used(&stat("linerate", "4096")), None);
        assert_eq!(used(&stat("kworker", "0")), None);
    }
}
