//! How a stream is kept to its rate: calls by the sender, segments by the kernel where it can.
//!
//! The kernel alone stays below the rate that it is asked for, since the delays of its timers are
//! not made up for: 924 of 1000 Mbit/s over loopback, 8.2 of 10 Gbit/s. The sender alone keeps the
//! mean exactly, but sends each call's payload in one burst. So the sender paces its calls, and the
//! kernel spaces the segments a little faster than that. A burst that was asked for is not spaced.

use std::os::fd::RawFd;

use linerate_model::manner::Transport;
use linerate_model::setting::name;
use linerate_model::workload::{Part, Setting};

use crate::flow::FlowConfig;
use crate::sys::socket::{self, TCP_NOTSENT_LOWAT};

/// What of a paced stream may wait in the send buffer: so much time of its rate. It then ends that
/// much after the stop, and what the sender has sent is what the path has taken.
const QUEUE_MS: u64 = 10;
/// Bounds of that, in bytes: one segment of the largest size, and what a fast flow needs to keep
/// the kernel's pacing busy.
const QUEUE_BYTES: (u64, u64) = (4 << 10, 1 << 20);

/// How much faster than the rate the kernel spaces segments, in percent.
const SPACING_PERCENT: u64 = 125;

/// Sets the pace of a sender of bulk payload or datagrams; returns the bits a second that it must keep and the
/// setting that tells it.
///
/// TCP spaces segments by timers of its own where the queueing discipline does not (Linux 4.13 and
/// later), to the rate of SO_MAX_PACING_RATE in payload. MPTCP and Unix sockets have no such rate.
pub(super) fn set(fd: RawFd, config: &FlowConfig) -> (Option<u64>, Option<Setting>) {
    let (Some(rate), Part::Sender) = (config.manner.rate_bps, config.part) else {
        return (None, None);
    };
    if !config.traffic.is_stream() {
        return (None, None);
    }
    let told = |by: &str| {
        let requested = Some(format!("{rate} bit/s"));
        Some(Setting::granted(name::PACE, requested, Some(by.to_owned())))
    };
    let by_kernel = config.manner.transport == Transport::Tcp
        && config.manner.burst <= 1
        && socket::limit_pacing(fd, kernel_bytes_per_s(config).unwrap_or(u64::MAX)).is_ok();
    if !by_kernel {
        let words = match (config.manner.burst, config.manner.transport) {
            (0 | 1, _) => "the sender, call by call".to_owned(),
            (burst, Transport::Udp) => {
                format!("the sender, {burst} datagrams back to back, then a pause")
            }
            (burst, _) => format!("the sender, {burst} messages back to back, then a pause"),
        };
        return (Some(rate), told(&words));
    }
    let queue = (rate / 8 * QUEUE_MS / 1000).clamp(QUEUE_BYTES.0, QUEUE_BYTES.1);
    // Where it cannot be set, more of the stream waits in the send buffer.
    let _ = socket::set(fd, TCP_NOTSENT_LOWAT, queue as i32);
    let words = "the sender, call by call, and the kernel between (SO_MAX_PACING_RATE)";
    (Some(rate), told(words))
}

/// Returns the least of the rates that the kernel is asked to keep, in bytes a second.
pub(super) fn kernel_bytes_per_s(config: &FlowConfig) -> Option<u64> {
    let manner = &config.manner;
    let is_spaced = config.traffic.is_stream()
        && config.part == Part::Sender
        && manner.transport == Transport::Tcp
        && manner.burst <= 1;
    let rate = manner.rate_bps.filter(|_| is_spaced);
    let of_stream = rate.map(|rate| rate.saturating_mul(SPACING_PERCENT) / 100);
    let asked = of_stream.into_iter().chain(config.options.pacing_bps);
    // At least one byte: the kernel takes 0 for a flow that never sends.
    asked.min().map(|rate| (rate / 8).max(1))
}
