//! Temperatures by the kernel's hardware monitoring: those of CPUs and of network cards.
//!
//! Documentation/hwmon/sysfs-interface.rst: a folder for each chip with `name`, and `tempN_input` in
//! thousandths of a degree with `tempN_label` beside it. Other chips (disks, boards) are passed over:
//! reading one may take milliseconds on a slow bus, and it says nothing about the network.

use std::path::{Path, PathBuf};

use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use crate::files::{Parse, Source, entries, files_observer, numbered};
use crate::observer::{ObserveConfig, Observer};
use crate::sys::file::read_value;
use crate::text::{complete_lines, number};

/// Most chips looked at, and most sensors read: one or two a package, a few a card.
const CHIPS_MAX: usize = 64;
const SENSORS_MAX: usize = 64;
/// Highest number of a sensor that is looked for in a chip: one of Intel has two and one a core.
const SENSOR_NUMBER_MAX: u32 = 260;

/// Names of the chips that sit in CPUs, by their drivers: Intel's, AMD's, those of other
/// architectures.
const OF_CPUS: [&str; 5] = [
    "coretemp",
    "k10temp",
    "zenpower",
    "cpu_thermal",
    "scpi_sensors",
];

/// Begin of the labels of single cores; where a chip has other sensors the cores are left out, since
/// reading one interrupts its core.
const CORE: &str = "Core ";

/// Opens the sensors of CPUs and network cards.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let folder = config.sys_root.join("class/hwmon");
    let parse: Parse = |text, push| {
        let value = complete_lines(text).next().and_then(millicelsius);
        if let Some(value) = value {
            push(Metric::ThermalSensor, value);
        }
    };
    let chips = numbered(&folder, "hwmon").into_iter().take(CHIPS_MAX);
    let sensors = chips.flat_map(|chip| sensors_of(&folder, chip));
    let sources = sensors
        .take(SENSORS_MAX)
        .filter_map(|(name, path)| Source::open(&path, Subject::Sensor(name), parse).ok());
    let absent = || {
        "no sensor in CPUs or network cards: a hypervisor hides them, or the kernel has no driver \
         for them"
            .to_owned()
    };
    files_observer("hwmon", sources.collect(), absent, None)
}

/// Returns the sensors of a chip that are worth reading, each with its name and file.
fn sensors_of(folder: &Path, chip: u32) -> Vec<(String, PathBuf)> {
    let own = folder.join(format!("hwmon{chip}"));
    let name = read_value(&own.join("name")).unwrap_or_default();
    let card = entries(&own.join("device/net")).into_iter().next();
    let is_of_cpu = OF_CPUS.contains(&name.as_str());
    if !is_of_cpu && card.is_none() {
        return Vec::new();
    }
    // Chips of one kind differ by number; a card has the name of its device.
    let chip = card.unwrap_or_else(|| format!("{name}-{chip}"));
    let sensor = |number: u32| {
        let input = own.join(format!("temp{number}_input"));
        let label = read_value(&own.join(format!("temp{number}_label")));
        let label = label.unwrap_or_else(|_| format!("temp{number}"));
        input.exists().then_some((label, input))
    };
    let all: Vec<_> = (1..=SENSOR_NUMBER_MAX).filter_map(sensor).collect();
    let is_core = |(label, _): &(String, PathBuf)| label.starts_with(CORE);
    let only_cores = all.iter().all(is_core);
    let wanted = all.into_iter().filter(|one| only_cores || !is_core(one));
    wanted
        .map(|(label, input)| (format!("{chip}:{label}"), input))
        .collect()
}

/// Reads thousandths of a degree, which may be below zero.
fn millicelsius(line: &[u8]) -> Option<i64> {
    let (digits, sign) = match line.strip_prefix(b"-") {
        Some(digits) => (digits, -1),
        None => (line, 1),
    };
    Some(i64::try_from(number(digits)?).ok()? * sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_may_be_below_zero() {
        for (line, expected) in [
            ("45000", Some(45_000)),
            ("-7500", Some(-7500)),
            ("", None),
            ("-", None),
            ("4 5", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(millicelsius(line.as_bytes()), expected, "{line}");
        }
    }
}
