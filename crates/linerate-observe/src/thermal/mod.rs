//! Clock frequency, temperature, and how often a CPU was slowed because it was hot.
//!
//! A hypervisor shows none of these to its guests as a rule. Temperatures come by thermal zones, and
//! from the chips of hardware monitoring, which are an observer of their own: a chip that is slow to
//! read delays nothing else.

/// Temperatures by hardware monitoring.
mod hwmon;

use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use crate::files::{Parse, Source, files_observer, numbered, one};
use crate::observer::{ObserveConfig, Observer};
use crate::sys::file::read_value;

pub(crate) use hwmon::open as open_hwmon;

/// Most CPUs and thermal zones read.
const CPUS_MAX: usize = 1024;
const ZONES_MAX: usize = 32;

/// Opens what there is of every CPU and of the thermal zones.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let cpus = config.sys_root.join("devices/system/cpu");
    let files: [(&str, Parse); 3] = [
        ("cpufreq/scaling_cur_freq", |text, push| {
            one(text, 1000, Metric::ThermalFrequency, push);
        }),
        ("thermal_throttle/core_throttle_count", |text, push| {
            one(text, 1, Metric::ThermalCoreThrottled, push);
        }),
        ("thermal_throttle/package_throttle_count", |text, push| {
            one(text, 1, Metric::ThermalPackageThrottled, push);
        }),
    ];
    let mut sources = Vec::new();
    for cpu in numbered(&cpus, "cpu").into_iter().take(CPUS_MAX) {
        for (file, parse) in files {
            let path = cpus.join(format!("cpu{cpu}")).join(file);
            sources.extend(Source::open(&path, Subject::Cpu(cpu), parse).ok());
        }
    }
    sources.extend(zone(config));
    let absent = || {
        "neither frequency, throttle count nor thermal zone: a hypervisor hides them, or the \
         kernel has no driver for them"
            .to_owned()
    };
    files_observer("thermal", sources, absent, None)
}

/// Opens the thermal zone of the CPUs, by what drivers call it; else the first one.
fn zone(config: &ObserveConfig) -> Option<Source> {
    let folder = config.sys_root.join("class/thermal");
    let of = |zone: u32| folder.join(format!("thermal_zone{zone}"));
    let zones: Vec<u32> = numbered(&folder, "thermal_zone")
        .into_iter()
        .take(ZONES_MAX)
        .collect();
    let is_cpu = |zone: &&u32| {
        let kind = read_value(&of(**zone).join("type")).unwrap_or_default();
        kind.contains("pkg") || kind.to_ascii_lowercase().contains("cpu")
    };
    let zone = zones.iter().find(is_cpu).or(zones.first())?;
    let parse: Parse = |text, push| one(text, 1, Metric::ThermalZone, push);
    Source::open(&of(*zone).join("temp"), Subject::Host, parse).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::found;

    #[test]
    fn values_are_single_numbers() {
        let frequency: Parse = |text, push| one(text, 1000, Metric::ThermalFrequency, push);
        assert_eq!(
            found(frequency, "2596122\n"),
            [("thermal_frequency_hz", 2_596_122_000)]
        );
        for bad in ["", "12", "<unknown>\n"] {
            assert_eq!(found(frequency, bad), []);
        }
    }
}
