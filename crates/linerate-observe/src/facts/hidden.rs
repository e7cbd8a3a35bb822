//! What a virtual machine does not see of the hardware below it.
//!
//! Each of these leaves a gap in what a report can say, so the report says it once, here.

use std::fs;
use std::path::Path;

use linerate_model::host::FactValue;

use super::{Facts, Reading};
use crate::files::{entries, numbered};
use crate::observer::ObserveConfig;
use crate::sys::file::{read_text, read_value};

/// Most drivers and devices looked at on a bus.
const ENTRIES_MAX: usize = 256;

/// Adds the facts of a host that is virtual; on hardware nothing is hidden and nothing is added.
pub(super) fn read(config: &ObserveConfig, is_virtual: bool, facts: &mut Facts) {
    if is_virtual {
        facts.add("virtualisation.hides", hides(config));
        facts.add("virtualisation.devices", devices(&config.sys_root));
    }
}

/// Lists what is not to be seen.
fn hides(config: &ObserveConfig) -> Reading {
    let system = config.sys_root.join("devices/system");
    let mut hidden = Vec::new();
    if !has_counters(&config.sys_root) {
        hidden.push("hardware counters: cycles and cache misses are not counted");
    }
    if !system.join("cpu/cpu0/cpufreq").exists() {
        hidden.push("clock frequency");
    }
    let sensors = ["class/thermal/thermal_zone0", "class/hwmon/hwmon0"];
    if !sensors
        .iter()
        .any(|path| config.sys_root.join(path).exists())
    {
        hidden.push("temperature and throttling");
    }
    if numbered(&system.join("node"), "node").len() < 2 {
        hidden.push("NUMA nodes, if there are several");
    }
    if steal_ticks(&config.proc_root) == Some(0) {
        hidden.push("steal, or no neighbour took CPU time since the start");
    }
    let text = if hidden.is_empty() {
        "nothing that was looked for".to_owned()
    } else {
        hidden.join("; ")
    };
    Ok(FactValue::Text(text))
}

/// Tells whether there is a PMU: `cpu` on x86, `cpu_core` on hybrids, `armv8_…` and so on
/// elsewhere; what is left are the kernel's own sources of events.
fn has_counters(sys_root: &Path) -> bool {
    let sources = entries(&sys_root.join("bus/event_source/devices"));
    let is_counter = |name: &String| name.starts_with("cpu") || name.starts_with("arm");
    sources.iter().take(ENTRIES_MAX).any(is_counter)
}

/// Sums the steal time of all CPUs since the start: the eighth number of `/proc/stat`'s first line.
fn steal_ticks(proc_root: &Path) -> Option<u64> {
    let text = read_text(&proc_root.join("stat")).ok()?;
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    all.split_whitespace().nth(7)?.parse().ok()
}

/// Lists the paravirtual drivers that have a device, and whether memory can be taken away.
fn devices(sys_root: &Path) -> Reading {
    let folder = sys_root.join("bus/virtio/drivers");
    let drivers =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found: Vec<String> = drivers
        .flatten()
        .take(ENTRIES_MAX)
        .filter_map(|driver| {
            let name = driver.file_name().to_string_lossy().into_owned();
            let devices = numbered(&driver.path(), "virtio").len();
            let balloon = if name.contains("balloon") {
                " (the hypervisor can take memory back)"
            } else {
                ""
            };
            (devices > 0).then(|| format!("{devices} × {name}{balloon}"))
        })
        .collect();
    found.sort_unstable();
    if found.is_empty() {
        Err(format!("{}: no driver has a device", folder.display()))
    } else {
        Ok(FactValue::Text(found.join(", ")))
    }
}

/// Tells whether what was found of a hypervisor means that there is one.
pub(super) fn is_virtual(virtualisation: &Reading, sys_root: &Path) -> bool {
    let flagged = match virtualisation {
        Ok(FactValue::Text(signs)) => signs.contains("hypervisor"),
        _ => false,
    };
    flagged || read_value(&sys_root.join("hypervisor/type")).is_ok()
}
