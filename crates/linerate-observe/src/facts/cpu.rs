//! The CPUs, their caches and nodes.

use std::path::{Path, PathBuf};

use linerate_model::host::{CPU_QUOTA_VISIBLE, FactValue};
use linerate_model::unit::Unit;

use super::virtualisation::virtualisation;
use super::{Facts, Reading, hidden, number};
use crate::cgroup;
use crate::observer::ObserveConfig;
use crate::places::cpu_list;
use crate::sys::file::{read_text, read_value};

/// Most caches of one CPU looked at.
const CACHES_MAX: usize = 16;

/// The caches told of the first CPU: fact and level, as sysfs spells it.
const CACHES: [(&str, &str); 3] = [
    ("cpu.l1d_bytes", "1"),
    ("cpu.l2_bytes", "2"),
    ("cpu.l3_bytes", "3"),
];

/// The kinds that count, as sysfs spells them.
const CACHE_KINDS: [&str; 2] = ["Data", "Unified"];

pub(super) fn read(config: &ObserveConfig, facts: &mut Facts) {
    let cpuinfo = CpuInfo::read(&config.proc_root);
    facts.add("cpu.model", model(&cpuinfo));
    facts.add("cpu.mhz", mhz(&cpuinfo, &config.sys_root));
    let virtualisation = virtualisation(&cpuinfo, &config.sys_root);
    let is_virtual = hidden::is_virtual(&virtualisation, &config.sys_root);
    hidden::read(config, is_virtual, facts);
    facts.add("virtualisation", virtualisation);
    let system = config.sys_root.join("devices/system");
    facts.add("cpu.online", count_of_list(&system.join("cpu/online")));
    let is_visible = cgroup::is_quota_visible(config)
        .map(|is| FactValue::Number(f64::from(u8::from(is)), Unit::Count));
    facts.add(CPU_QUOTA_VISIBLE, is_visible);
    facts.add("numa.nodes", count_of_list(&system.join("node/online")));
    let caches = system.join("cpu/cpu0/cache");
    for (name, level) in CACHES {
        facts.add(name, cache_size(&caches, level));
    }
}

/// `/proc/cpuinfo`, of which only the first processor is looked at.
pub(super) struct CpuInfo {
    path: PathBuf,
    text: Result<String, String>,
}

impl CpuInfo {
    fn read(proc_root: &Path) -> Self {
        let path = proc_root.join("cpuinfo");
        let text = read_text(&path);
        Self { path, text }
    }

    /// Returns the value of `key`, or why there is none.
    pub(super) fn field(&self, key: &str) -> Result<&str, String> {
        let text = self.text.as_ref().map_err(String::clone)?;
        let found = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key && !value.trim().is_empty()).then(|| value.trim())
        });
        found.ok_or_else(|| format!("{}: no `{key}`", self.path.display()))
    }
}

/// Names the CPU: `model name` on x86, `cpu` on POWER; ARM gives its makers' numbers only.
fn model(cpuinfo: &CpuInfo) -> Reading {
    let named = cpuinfo.field("model name");
    if let Ok(name) = named.clone().or_else(|_| cpuinfo.field("cpu")) {
        return Ok(FactValue::Text(name.to_owned()));
    }
    match (cpuinfo.field("CPU implementer"), cpuinfo.field("CPU part")) {
        (Ok(implementer), Ok(part)) => Ok(FactValue::Text(format!(
            "implementer {implementer} part {part}"
        ))),
        _ => Err(named.err().unwrap_or_default()),
    }
}

/// Reads the frequency at this instant, or, where cpuinfo has none, the highest one.
fn mhz(cpuinfo: &CpuInfo, sys_root: &Path) -> Reading {
    match cpuinfo.field("cpu MHz") {
        Ok(mhz) => number(mhz, Unit::Count),
        Err(reason) => max_frequency(sys_root).map_err(|_| reason),
    }
}

/// Reads the highest frequency of the first CPU, which the kernel gives in kHz.
fn max_frequency(sys_root: &Path) -> Reading {
    let khz = read_value(&sys_root.join("devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))?;
    let khz: f64 = khz
        .parse()
        .map_err(|_| format!("`{khz}` is not a number"))?;
    Ok(FactValue::Number(khz / 1000.0, Unit::Count))
}

/// Counts the members of a kernel list such as `0-3,8`.
fn count_of_list(path: &Path) -> Reading {
    let list = read_value(path)?;
    let all = cpu_list(&list).ok_or_else(|| format!("`{list}` is not a list of numbers"))?;
    Ok(FactValue::Number(all.len() as f64, Unit::Count))
}

/// Returns the size of the first CPU's cache of a level and one of the kinds that count.
fn cache_size(caches: &Path, level: &str) -> Reading {
    for index in 0..CACHES_MAX {
        let cache = caches.join(format!("index{index}"));
        let Ok(found) = read_value(&cache.join("level")) else {
            break;
        };
        let kind = read_value(&cache.join("type"))?;
        if found == level && CACHE_KINDS.contains(&kind.as_str()) {
            return size_with_suffix(&read_value(&cache.join("size"))?);
        }
    }
    Err(format!("{}: no cache of level {level}", caches.display()))
}

/// Reads `48K` or `2M`; the suffixes are powers of 1024.
fn size_with_suffix(size: &str) -> Reading {
    let (digits, factor) = match (size.strip_suffix('K'), size.strip_suffix('M')) {
        (Some(digits), _) => (digits, 1024.0),
        (_, Some(digits)) => (digits, 1024.0 * 1024.0),
        (None, None) => (size, 1.0),
    };
    match digits.parse::<u64>() {
        Ok(number) => Ok(FactValue::Number(number as f64 * factor, Unit::Bytes)),
        Err(_) => Err(format!("`{size}` is not a size")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_have_suffixes() {
        for (text, bytes) in [("48K", 49_152.0), ("2M", 2_097_152.0), ("512", 512.0)] {
            assert_eq!(
                size_with_suffix(text),
                Ok(FactValue::Number(bytes, Unit::Bytes))
            );
        }
        assert!(size_with_suffix("K").is_err());
    }
}
