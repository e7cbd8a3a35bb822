//! System calls: the only place of this crate with `unsafe`.

/// Features of a device, on or off.
pub(crate) mod ethtool;
/// Aggregates and queueing disciplines, over rtnetlink.
pub(crate) mod netlink;
