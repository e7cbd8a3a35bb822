//! Leaving the machine's network: this process becomes the switch of its own lab.

use std::fs;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::error::{LabError, at_step};
use crate::sys::netlink::Netlink;

/// Bit of `CAP_NET_ADMIN` in a capability set (`include/uapi/linux/capability.h`).
const CAP_NET_ADMIN: u32 = 12;
/// Bit of `CAP_SYS_ADMIN` in a capability set.
const CAP_SYS_ADMIN: u32 = 21;

/// Proof that this process is in a network namespace of its own.
#[derive(Debug)]
pub struct Entered {
    in_user_namespace: bool,
}

impl Entered {
    /// Tells whether the privilege came from a user namespace instead of root.
    pub fn in_user_namespace(&self) -> bool {
        self.in_user_namespace
    }
}

/// Moves this process into a network namespace of its own; call it first thing in `main`.
///
/// 1. With CAP_SYS_ADMIN and CAP_NET_ADMIN: a network namespace.
/// 2. Without: first a user namespace in which this user is root, then the same.
///
/// The process must have one thread. It has no network afterwards but what a lab makes; there
/// is no way back. Needs Linux 5.9 (`clone3`, `close_range`, `setns` by process descriptor).
pub fn enter() -> Result<Entered, LabError> {
    let count = thread_count();
    if count != 1 {
        return Err(LabError::Threads { count });
    }
    let in_user_namespace = !is_privileged();
    if in_user_namespace {
        enter_user_namespace()?;
    }
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| LabError::NetworkNamespace {
        advice: advice(&System::read()),
        source: errno.into(),
    })?;
    set_up_loopback()?;
    Ok(Entered { in_user_namespace })
}

fn thread_count() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

fn is_privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective_capabilities(&status)
        .is_some_and(|set| set >> CAP_SYS_ADMIN & 1 == 1 && set >> CAP_NET_ADMIN & 1 == 1)
}

/// Reads the effective capabilities from the text of `/proc/self/status`.
fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn enter_user_namespace() -> Result<(), LabError> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| LabError::UserNamespace {
        advice: advice(&System::read()),
        source: errno.into(),
    })?;
    // Without "deny" an ordinary user may not map a group (user_namespaces(7)).
    write_map("/proc/self/setgroups", "deny")?;
    write_map("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write_map("/proc/self/gid_map", &format!("0 {group} 1"))
}

fn write_map(path: &'static str, text: &str) -> Result<(), LabError> {
    fs::write(path, text).map_err(|source| LabError::IdMap {
        path,
        advice: advice(&System::read()),
        source,
    })
}

fn set_up_loopback() -> Result<(), LabError> {
    let up = || -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("lo")?;
        netlink.set_up(index)
    };
    up().map_err(at_step("turn on lo".to_owned()))
}

/// The settings of a machine that can forbid a lab.
#[derive(Debug, Default)]
struct System {
    user_namespaces_max: Option<u64>,
    unprivileged_userns_clone: Option<u64>,
    apparmor_restrict: Option<u64>,
    seccomp_mode: Option<u64>,
}

impl System {
    fn read() -> Self {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let seccomp = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp:"));
        Self {
            user_namespaces_max: number("/proc/sys/user/max_user_namespaces"),
            unprivileged_userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restrict: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            seccomp_mode: seccomp.and_then(|text| text.trim().parse().ok()),
        }
    }
}

/// Says what forbids a namespace on `system`, and what to do.
///
/// 1. Debian's switch, 2. the limit on user namespaces, 3. Ubuntu's AppArmor rule, 4. a seccomp
///    filter, as containers have; else all that is left to try.
pub(crate) fn advice_for_this_machine() -> String {
    advice(&System::read())
}

fn advice(system: &System) -> String {
    if !Path::new("/proc/self/ns/net").exists() {
        return "this kernel has no network namespaces, or /proc is not mounted".to_owned();
    }
    let or_root = "or run as root";
    if system.unprivileged_userns_clone == Some(0) {
        return format!(
            "ordinary users may not; `sysctl kernel.unprivileged_userns_clone=1` allows it, {or_root}"
        );
    }
    if system.user_namespaces_max == Some(0) {
        return format!(
            "the limit is 0; `sysctl user.max_user_namespaces=10000` raises it, {or_root}"
        );
    }
    if system.apparmor_restrict == Some(1) {
        return format!(
            "AppArmor takes its privileges away; `sysctl kernel.apparmor_restrict_unprivileged_userns=0` stops that, {or_root}"
        );
    }
    if system.seccomp_mode == Some(2) {
        return "a seccomp filter (a container's?) may forbid it; allow unshare, setns, clone3 and mount, or give the container CAP_SYS_ADMIN and CAP_NET_ADMIN".to_owned();
    }
    format!("needs CAP_SYS_ADMIN and CAP_NET_ADMIN, or user namespaces; allow these {or_root}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_status() {
        let status = "Name:\tx\nCapPrm:\t0\nCapEff:\t0000000000201000\nCapBnd:\t1\n";
        assert_eq!(effective_capabilities(status), Some(1 << 21 | 1 << 12));
        assert_eq!(effective_capabilities("Name: x"), None);
    }

    #[test]
    fn each_obstacle_names_its_switch() {
        let check = |system: System, part: &str| {
            let text = advice(&system);
            assert!(text.contains(part), "{text}");
        };
        let open = System::default;
        check(
            System {
                unprivileged_userns_clone: Some(0),
                ..open()
            },
            "kernel.unprivileged_userns_clone=1",
        );
        check(
            System {
                user_namespaces_max: Some(0),
                ..open()
            },
            "user.max_user_namespaces",
        );
        check(
            System {
                apparmor_restrict: Some(1),
                ..open()
            },
            "kernel.apparmor_restrict_unprivileged_userns=0",
        );
        check(
            System {
                seccomp_mode: Some(2),
                ..open()
            },
            "seccomp",
        );
        check(open(), "root");
    }
}
