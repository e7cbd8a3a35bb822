//! The CPUs, their caches and nodes, and whether a hypervisor is below them.

use std::path::Path;

use linerate_model::host::FactValue;
use linerate_model::unit::Unit;

use super::{Facts, Reading, number};
use crate::observer::ObserveConfig;
use crate::sys::file::{read_text, read_value};

/// Most caches of one CPU looked at.
const CACHES_MAX: usize = 16;
/// Highest CPU or node number believed in a list such as `0-63,128`.
const LIST_MAX: u64 = 1 << 20;

pub(super) fn read(config: &ObserveConfig, facts: &mut Facts) {
    let cpuinfo_path = config.proc_root.join("cpuinfo");
    let cpuinfo = read_text(&cpuinfo_path);
    let field = |keys: &[&str]| {
        let cpuinfo = cpuinfo.as_ref().map_err(String::clone)?;
        cpuinfo_field(cpuinfo, keys)
            .ok_or_else(|| format!("{}: no `{}`", cpuinfo_path.display(), keys[0]))
    };
    // `model name` on x86, `cpu` on POWER; ARM gives its makers' numbers only.
    let model = field(&["model name", "cpu"])
        .map(str::to_owned)
        .or_else(|reason| {
            let implementer = field(&["CPU implementer"]).map_err(|_| reason)?;
            let part = field(&["CPU part"])?;
            Ok(format!("implementer {implementer} part {part}"))
        });
    facts.add("cpu.model", model.map(FactValue::Text));
    facts.add(
        "cpu.mhz",
        field(&["cpu MHz", "clock"])
            .and_then(|mhz| number(mhz.trim_end_matches("MHz"), Unit::Count))
            .or_else(|reason| max_frequency(&config.sys_root).map_err(|_| reason)),
    );
    facts.add("virtualisation", virtualisation(config, &cpuinfo));
    let system = config.sys_root.join("devices/system");
    facts.add("cpu.online", count_of_list(&system.join("cpu/online")));
    facts.add("numa.nodes", count_of_list(&system.join("node/online")));
    for (name, level, kinds) in [
        ("cpu.l1d_bytes", "1", ["Data", "Unified"]),
        ("cpu.l2_bytes", "2", ["Unified", "Data"]),
        ("cpu.l3_bytes", "3", ["Unified", "Data"]),
    ] {
        facts.add(
            name,
            cache_size(&system.join("cpu/cpu0/cache"), level, &kinds),
        );
    }
}

/// Returns the value of the first of `keys` that the first processor has.
fn cpuinfo_field<'a>(cpuinfo: &'a str, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|wanted| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == *wanted && !value.trim().is_empty()).then(|| value.trim())
        })
    })
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
    let count = count_list(&list).ok_or_else(|| format!("`{list}` is not a list of numbers"))?;
    Ok(FactValue::Number(count as f64, Unit::Count))
}

fn count_list(list: &str) -> Option<u64> {
    list.split(',').try_fold(0u64, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last <= LIST_MAX).then(|| count + last - first + 1)
    })
}

/// Returns the size of the first CPU's cache of a level and one of `kinds`.
fn cache_size(caches: &Path, level: &str, kinds: &[&str]) -> Reading {
    for index in 0..CACHES_MAX {
        let cache = caches.join(format!("index{index}"));
        let Ok(found) = read_value(&cache.join("level")) else {
            break;
        };
        let kind = read_value(&cache.join("type"))?;
        if found == level && kinds.contains(&kind.as_str()) {
            return size_with_suffix(&read_value(&cache.join("size"))?);
        }
    }
    Err(format!("{}: no cache of level {level}", caches.display()))
}

/// Reads `48K` or `2M`; the suffixes are powers of 1024.
fn size_with_suffix(size: &str) -> Reading {
    let (digits, factor) = match size.strip_suffix('K') {
        Some(digits) => (digits, 1024.0),
        None => match size.strip_suffix('M') {
            Some(digits) => (digits, 1024.0 * 1024.0),
            None => (size, 1.0),
        },
    };
    match digits.parse::<u64>() {
        Ok(number) => Ok(FactValue::Number(number as f64 * factor, Unit::Bytes)),
        Err(_) => Err(format!("`{size}` is not a size")),
    }
}

/// Says what shows that this is a virtual machine, or that nothing does.
///
/// The `hypervisor` flag is CPUID leaf 1, ECX bit 31, which hypervisors set and hardware does not.
/// Other architectures have no such flag, so without it they get an answer only from firmware.
fn virtualisation(config: &ObserveConfig, cpuinfo: &Result<String, String>) -> Reading {
    let flags = match cpuinfo {
        Ok(cpuinfo) => cpuinfo_field(cpuinfo, &["flags"]),
        Err(_) => None,
    };
    let flag = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let xen = read_value(&config.sys_root.join("hypervisor/type")).ok();
    let product = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|file| read_value(&config.sys_root.join("class/dmi/id").join(file)).ok())
        .collect::<Vec<_>>()
        .join(" ");

    let mut signs = Vec::new();
    if flag == Some(true) {
        signs.push("hypervisor flag of the CPU".to_owned());
    }
    signs.extend(xen.map(|kind| format!("hypervisor {kind}")));
    match (signs.is_empty(), flag, product.as_str()) {
        (true, Some(false), _) => Ok(FactValue::Text("none".to_owned())),
        (true, _, "") => Err("neither a CPU flag nor firmware tells".to_owned()),
        (_, _, "") => Ok(FactValue::Text(signs.join("; "))),
        _ => {
            signs.push(format!("product {product}"));
            Ok(FactValue::Text(signs.join("; ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_counted() {
        for (list, count) in [("0", 1), ("0-63", 64), ("0-3,8,10-11", 7)] {
            assert_eq!(count_list(list), Some(count), "{list}");
        }
        for bad in ["", "0-", "3-0", "a", "0,", "0-18446744073709551615"] {
            assert_eq!(count_list(bad), None, "{bad}");
        }
    }

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
