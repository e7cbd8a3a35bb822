//! Pieces of evidence that several limiters show: words and response.

use crate::reduce::name;

pub(super) const WORKER_RAN: (&str, &str) = (
    "share of the time that the busiest worker ran",
    name::WORKER_BUSY_SHARE_MAX,
);
pub(super) const AT_WINDOW: (&str, &str) = (
    "share of the time limited by the receive window",
    name::RWND_LIMITED,
);
pub(super) const AT_BUFFER: (&str, &str) = (
    "share of the time limited by the send buffer",
    name::SNDBUF_LIMITED,
);
pub(super) const OTHERS_SHARE: (&str, &str) =
    ("others' share of what passed a device", name::OTHERS_SHARE);
pub(super) const ALL_PASSED: (&str, &str) = ("all that passed it", name::SHARED_BPS);
pub(super) const ALL_PASSED_VARIATION: (&str, &str) = (
    "deviation of that from reading to reading",
    name::SHARED_VARIATION,
);
pub(super) const RATE_VARIATION: (&str, &str) = (
    "deviation of the rate from reading to reading",
    name::RATE_VARIATION,
);
pub(super) const LOADED: (&str, &str) = (
    "TCP's smoothed round trip, of the end where it is shorter",
    name::PATH_RTT_LOADED,
);
pub(super) const UNREAD: (&str, &str) = (
    "share of the receive buffer that is unread",
    name::UNREAD_SHARE,
);
