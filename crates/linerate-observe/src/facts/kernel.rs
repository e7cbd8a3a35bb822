//! The kernel, the host's name, memory, limits and the clock.

use std::path::Path;

use linerate_model::host::FactValue;
use linerate_model::unit::Unit;

use super::{Facts, Reading, number};
use crate::observer::ObserveConfig;
use crate::sys::file::{read_text, read_value};

pub(super) fn read(config: &ObserveConfig, facts: &mut Facts) {
    let (proc_root, sys_root) = (&config.proc_root, &config.sys_root);
    let text = |path: &Path| read_value(path).map(FactValue::Text);
    facts.add(
        "kernel.release",
        text(&proc_root.join("sys/kernel/osrelease")),
    );
    facts.add(
        "kernel.version",
        text(&proc_root.join("sys/kernel/version")),
    );
    facts.add("host.name", text(&proc_root.join("sys/kernel/hostname")));
    facts.add(
        "clocksource",
        text(&sys_root.join("devices/system/clocksource/clocksource0/current_clocksource")),
    );
    facts.add(
        "memory.total_bytes",
        memory_total(&proc_root.join("meminfo")),
    );
    facts.add("limit.nofile", open_files(&proc_root.join("self/limits")));
}

/// Reads `MemTotal:  16384 kB`; the kernel's kB are 1024 bytes.
fn memory_total(path: &Path) -> Reading {
    let text = read_text(path)?;
    let missing = || format!("{}: no MemTotal in kB", path.display());
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .ok_or_else(missing)?;
    Ok(FactValue::Number(kib as f64 * 1024.0, Unit::Bytes))
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
