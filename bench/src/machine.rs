//! What the machine did during a run, from /proc/stat and the children's own accounting.

use std::fs;

use anyhow::Context;
use nix::unistd::{SysconfVar, sysconf};

/// CPU seconds of the whole machine and of this program's ended children.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    busy_s: f64,
    total_s: f64,
    children_s: f64,
}

impl Usage {
    /// Reads both now.
    pub fn now() -> anyhow::Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let line = stat.lines().next().context("/proc/stat is empty")?;
        let ticks: Vec<f64> = line
            .split_whitespace()
            .skip(1)
            .flat_map(str::parse)
            .collect();
        anyhow::ensure!(
            ticks.len() >= 8,
            "/proc/stat has fewer modes than Linux 2.6.11 had"
        );
        let per_second = sysconf(SysconfVar::CLK_TCK)?
            .context("the kernel does not say how long a tick is")? as f64;
        // user nice system idle iowait irq softirq steal; guest is part of user.
        let total: f64 = ticks[..8].iter().sum();
        Ok(Self {
            busy_s: (total - ticks[3] - ticks[4]) / per_second,
            total_s: total / per_second,
            children_s: children_s(per_second)?,
        })
    }

    /// Returns the CPU seconds that the children used since `earlier`.
    pub fn children_since(&self, earlier: &Usage) -> f64 {
        self.children_s - earlier.children_s
    }

    /// Returns the share of the machine that others used since `earlier`.
    ///
    /// Softirq work that runs in a child's context counts as the child's in /proc/PID/stat only in
    /// part, so loopback traffic leaves a few percent here that are nobody else's.
    pub fn others_since(&self, earlier: &Usage) -> f64 {
        let busy = self.busy_s - earlier.busy_s;
        let softirq_and_others = busy - self.children_since(earlier);
        (softirq_and_others / (self.total_s - earlier.total_s)).max(0.0)
    }
}

/// Returns user and system time of ended children that were waited for.
fn children_s(per_second: f64) -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    // Fields after the name in brackets: cutime and cstime are the 14th and 15th of them.
    let after = stat
        .rsplit(')')
        .next()
        .context("/proc/self/stat has no name")?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    let (user, system) = ticks(13)
        .zip(ticks(14))
        .context("/proc/self/stat is too short")?;
    Ok((user + system) / per_second)
}
