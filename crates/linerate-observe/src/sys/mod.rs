//! The rim to the kernel: clock, files, netlink, ethtool; all unsafe code.

pub(crate) mod clock;
pub(crate) mod ethtool;
pub(crate) mod file;
pub(crate) mod netlink;
