//! The rim to the kernel: clock, files, netlink, ethtool, packet rings, perf events, BPF; all unsafe
//! code.

pub(crate) mod bpf;
pub(crate) mod clock;
pub(crate) mod ethtool;
pub(crate) mod ethtool_nic;
pub(crate) mod ethtool_stats;
pub(crate) mod file;
mod memory;
pub(crate) mod netlink;
pub(crate) mod packet_ring;
pub(crate) mod perf;
pub(crate) mod sock_diag;
