//! System calls: the only place of this crate with `unsafe`.

/// Features of a device, on or off.
pub(crate) mod ethtool;
