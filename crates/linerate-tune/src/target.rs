//! The host whose knobs are meant, and whether it may be changed.

use std::path::Path;

/// The host whose knobs are meant.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The folder that has its `proc` and `sys`.
    pub root: &'a Path,
    /// The device of its data network, where that is known.
    pub device: Option<&'a str>,
    /// The CPUs that received packets may be spread over.
    pub cpus: &'a [u32],
}

/// Returns whether the network namespace that `root` shows is certainly not the machine's first.
///
/// The kernel has `net.core.netdev_budget` in the first only (`net_core_table` in
/// net/core/sysctl_net_core.c), and `net.core.somaxconn` in all. Where it shows both, or none, the answer is no.
pub fn is_own_network(root: &Path) -> bool {
    let has = |name| root.join("proc/sys/net/core").join(name).exists();
    has("somaxconn") && !has("netdev_budget")
}

/// Returns whether the process that `root` shows is in the machine's first user namespace, whose users are all there.
pub(crate) fn is_first_user_namespace(root: &Path) -> bool {
    let map = std::fs::read_to_string(root.join("proc/self/uid_map")).unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}
