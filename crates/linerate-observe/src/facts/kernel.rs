//! The kernel, the host's name, memory, limits and the clock.

use std::path::Path;

use linerate_model::host::FactValue;
use linerate_model::unit::Unit;

use super::{Facts, Reading, number};
use crate::observer::ObserveConfig;
use crate::sys::file::{read_text, read_value};

pub(super) fn read(config: &ObserveConfig, facts: &mut Facts) {
    let (proc_root, sys_root) = (&config.proc_root, &config.sys_root);
    let clock = "devices/system/clocksource/clocksource0/current_clocksource";
    for (fact, path) in [
        ("kernel.release", proc_root.join("sys/kernel/osrelease")),
        ("kernel.version", proc_root.join("sys/kernel/version")),
        ("host.name", proc_root.join("sys/kernel/hostname")),
        ("clocksource", sys_root.join(clock)),
    ] {
        facts.add(fact, read_value(&path).map(FactValue::Text));
    }
    facts.add(
        "memory.total_bytes",
        memory_bytes(proc_root).map(|bytes| FactValue::Number(bytes as f64, Unit::Bytes)),
    );
    facts.add("limit.nofile", open_files(&proc_root.join("self/limits")));
}

/// Returns the memory of the host in bytes, from `MemTotal:  16384 kB`; the kernel's kB are 1024 bytes.
pub fn memory_bytes(proc_root: &Path) -> Result<u64, String> {
    let path = proc_root.join("meminfo");
    let text = read_text(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok());
    let missing = || format!("{}: no MemTotal in kB", path.display());
    Ok(kib.ok_or_else(missing)?.saturating_mul(1024))
}

/// Reads the soft limit of `Max open files  1024  524288  files`.
fn open_files(path: &Path) -> Reading {
    let text = read_text(path)?;
    let soft = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|line| line.split_whitespace().next())
        .ok_or_else(|| format!("{}: no limit of open files", path.display()))?;
    match soft {
        "unlimited" => Ok(FactValue::Text(soft.to_owned())),
        soft => number(soft, Unit::Count),
    }
}
