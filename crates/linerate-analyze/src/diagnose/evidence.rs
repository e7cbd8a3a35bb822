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
pub(super) const UNREAD: (&str, &str) = (
    "share of the receive buffer that is unread",
    name::UNREAD_SHARE,
);
