//! Where threads may run, which CPUs are near a network device, and which kernel all that is of.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::files::numbered;
use crate::sys::file::read_text;

/// Highest CPU number believed: NR_CPUS of the largest kernels that are built.
const CPU_MAX: u32 = 8191;

/// Returns the CPUs that this process may run on, ascending; none when that cannot be read.
pub fn cpus_allowed(proc_root: &Path) -> Vec<u32> {
    let status = read_text(&proc_root.join("self/status")).unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(cpu_list).unwrap_or_default()
}

/// Returns the number that the running kernel gave itself when it was booted: namespaces and containers
/// of one machine read the same, a virtual machine has its own. None when it cannot be read.
pub fn boot_id(proc_root: &Path) -> Option<String> {
    let id = read_text(&proc_root.join("sys/kernel/random/boot_id")).ok()?;
    let id = id.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Returns the CPUs of the NUMA node that `device` is attached to, ascending; none for a device
/// without one, such as loopback, a bridge or veth.
pub fn cpus_near(sys_root: &Path, device: &str) -> Vec<u32> {
    cpus_in(&sys_root.join(format!("class/net/{device}/device/local_cpulist")))
}

/// Returns the CPUs that are switched on, ascending; none when that cannot be read.
pub(crate) fn online_cpus(sys_root: &Path) -> Vec<u32> {
    cpus_in(&sys_root.join("devices/system/cpu/online"))
}

fn cpus_in(path: &Path) -> Vec<u32> {
    let list = read_text(path).ok();
    list.and_then(|list| cpu_list(&list)).unwrap_or_default()
}

/// Returns the NUMA node of a CPU: sysfs links it into the CPU's folder by name.
pub(crate) fn node_of_cpu(sys_root: &Path, cpu: u32) -> Option<u32> {
    let folder = sys_root.join(format!("devices/system/cpu/cpu{cpu}"));
    numbered(&folder, "node").first().copied()
}

/// Reads a list such as `0-3,8`, as the kernel writes it, ascending.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',') {
        cpus.extend(cpu_range(range)?);
    }
    cpus.sort_unstable();
    Some(cpus)
}

/// Reads a CPU or several of them: `8`, `0-3`.
pub fn cpu_range(text: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok()?..=last.parse().ok()?;
    (!range.is_empty() && *range.end() <= CPU_MAX).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        let check = |text: &str, expected: Option<&[u32]>| {
            assert_eq!(cpu_list(text).as_deref(), expected, "{text:?}");
        };
        check("\t0-1\n", Some(&[0, 1]));
        check("0-3,8,10-11", Some(&[0, 1, 2, 3, 8, 10, 11]));
        check("5", Some(&[5]));
        check("", None);
        check("x", None);
        check("0-8191,8192", None);
        check("3-1", None);
        check("0-", None);
        check("0,", None);
        check("0-18446744073709551615", None);
    }

    #[test]
    fn this_process_may_run_somewhere() {
        assert!(!cpus_allowed(Path::new("/proc")).is_empty());
        assert_eq!(cpus_allowed(Path::new("/nosuch")), [] as [u32; 0]);
    }

    #[test]
    fn a_device_without_a_node_is_near_nothing() {
        assert_eq!(cpus_near(Path::new("/sys"), "lo"), [] as [u32; 0]);
    }

    #[test]
    fn a_host_of_two_nodes_says_which_cpus_are_near_a_device() {
        let root = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/roots/made-2-nodes"
        ));
        let sys = root.join("sys");
        let check = |device: &str, expected: &[u32]| {
            let near = cpus_near(&sys, device);
            assert_eq!(near, expected, "{device}");
            let node = near.first().and_then(|cpu| node_of_cpu(&sys, *cpu));
            for cpu in &near {
                assert_eq!(node_of_cpu(&sys, *cpu), node, "CPU {cpu}");
            }
            node
        };
        assert_eq!(check("eth0", &[0, 2, 4, 6]), Some(0));
        assert_eq!(check("eth1", &[1, 3, 5, 7]), Some(1));
        // A bridge has no `device`, and neither has what is not there.
        assert_eq!(check("br0", &[]), None);
        assert_eq!(check("eth9", &[]), None);
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(online_cpus(&sys), all);
        assert_eq!(cpus_allowed(&root.join("proc")), all);
    }
}
