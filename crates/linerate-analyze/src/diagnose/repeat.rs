//! What to repeat a measurement with, as several limiters say it.

use linerate_model::Bytes;
use linerate_model::manner::SendBy;
use linerate_model::unit::Unit;
use linerate_model::workload::Workload;

/// What to do where other traffic passed a device of the flows, or shares their full path.
pub(crate) const WHERE_SHARED: &str =
    "stop the other traffic (`ss -ti` shows whose it is), then repeat";

/// What `-w` is compared with where the kernel tunes buffers.
const COMPARED: Bytes = Bytes(4 << 20);

/// Whether [`COMPARED`], of which the kernel gives a window about half, is no larger than what it has tuned a buffer to.
pub(super) fn is_large(bytes: f64) -> bool {
    bytes > COMPARED.0 as f64 / 2.0
}

/// What to do about a buffer of `bytes`, tuned up to the third value of `setting` at `end`.
pub(super) fn with_larger(bytes: f64, setting: &str, end: &str) -> String {
    format!(
        "raise the third value of net.ipv4.{setting} at the {end}: a `-w` has to be larger than {} to help",
        Unit::Bytes.display(bytes)
    )
}

/// What to do about a buffer, asked for or tuned up to the third value of `setting` at `end`.
pub(super) fn with_buffer(workload: &Workload, setting: &str, end: &str) -> String {
    if workload.options.socket_buffer.is_some() {
        "repeat with a larger `-w`, or without it: the kernel then tunes the buffers".to_owned()
    } else {
        format!("compare `-w 4M`; where that is faster, raise net.ipv4.{setting} at the {end}")
    }
}

/// Sends without copies, where there are copies to spare; with a comma, since it is one of several.
pub(super) fn uncopied(workload: &Workload) -> &'static str {
    if workload.traffic.is_stream() && workload.manner.send == SendBy::Copy {
        "`-Z`, "
    } else {
        ""
    }
}

pub(super) fn more_connections(workload: &Workload) -> String {
    format!("`-P {}`", workload.connections.saturating_mul(8))
}

/// Half of the connections, or of the requests of a single one.
pub(super) fn half_at_a_time(workload: &Workload) -> String {
    match workload.connections {
        0 | 1 => format!("`--in-flight {}`", (workload.manner.in_flight / 2).max(1)),
        connections => format!("`-P {}`", connections / 2),
    }
}
