//! How instants are read, for the result: by the vDSO, or by a system call each.

use std::sync::OnceLock;

use linerate_model::setting::name;
use linerate_model::workload::Setting;

use crate::sys::clock::{self, ReadingCost};

/// Where a host says which clock sources it has.
const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Returns how this process reads instants, and what a reading takes; measured once, 30 µs.
pub(crate) fn setting() -> Setting {
    static COST: OnceLock<ReadingCost> = OnceLock::new();
    setting_of(*COST.get_or_init(clock::reading_cost))
}

/// Returns what the costs mean: the vDSO that has to make the system call takes what that takes.
///
/// Where the kernel reads a counter from user space, a reading takes 20 to 60 ns and the call three
/// to ten times that (22 and 165 ns on an AMD EPYC in a virtual machine); where it does not, both
/// are the same call. Half lies far from either.
fn setting_of(cost: ReadingCost) -> Setting {
    let by_call = cost.ours_ns > cost.system_call_ns / 2.0;
    let cost_ns = cost.ours_ns;
    let effective = if by_call {
        format!(
            "system call, {cost_ns:.0} ns per reading: user space cannot read the kernel's clock source \
             ({SOURCES} names others)"
        )
    } else {
        format!("vDSO, {cost_ns:.0} ns per reading")
    };
    Setting::seen(name::CLOCK, Some(effective))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_takes_a_system_call_is_named() {
        let check = |ours_ns, system_call_ns, by_call: bool, expect: &str| {
            let setting = setting_of(ReadingCost {
                ours_ns,
                system_call_ns,
            });
            let effective = setting.effective.unwrap();
            let (cost, why) = effective.split_once(": ").unwrap_or((&effective, ""));
            assert_eq!((cost, why.contains(SOURCES)), (expect, by_call));
        };
        check(21.8, 165.0, false, "vDSO, 22 ns per reading");
        // An old core whose counter is slow, behind a kernel without mitigations.
        check(40.0, 95.0, false, "vDSO, 40 ns per reading");
        check(170.0, 165.0, true, "system call, 170 ns per reading");
        // hpet: the device is what takes the time, however it is asked.
        check(1200.0, 1180.0, true, "system call, 1200 ns per reading");
    }

    #[test]
    fn this_host_has_a_clock_that_takes_some_time() {
        let cost = clock::reading_cost();
        assert!(cost.ours_ns > 0.0 && cost.system_call_ns > 0.0, "{cost:?}");
    }
}
