//! What to repeat a measurement with, as several limiters say it.

use linerate_model::Bytes;
use linerate_model::manner::{BATCH_MAX, SendBy};
use linerate_model::unit::Unit;
use linerate_model::workload::{FLOWS_MAX, Workload};

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

/// Eight times the connections, as far as there may be so many.
pub(super) fn more_connections(workload: &Workload) -> String {
    let more = workload.connections.saturating_mul(8);
    format!("`-P {}`", more.min(FLOWS_MAX))
}

/// Eight times the requests of each connection, as far as there may be so many.
pub(super) fn more_in_flight(workload: &Workload) -> String {
    let more = workload.manner.in_flight.saturating_mul(8).max(8);
    format!("`--in-flight {}`", more.min(BATCH_MAX))
}

/// Half of the connections, or of the requests of a single one; absent where there is one request at a time.
pub(super) fn half_at_a_time(workload: &Workload) -> Option<String> {
    match (workload.connections, workload.manner.in_flight) {
        (0 | 1, 0 | 1) => None,
        (0 | 1, requests) => Some(format!("`--in-flight {}`", requests / 2)),
        (connections, _) => Some(format!("`-P {}`", connections / 2)),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::workload::Direction;

    use super::*;

    #[test]
    fn what_is_proposed_may_be_asked_for() {
        let with = |connections, in_flight| {
            let mut workload = Workload::stream(Direction::ToServer);
            workload.connections = connections;
            workload.manner.in_flight = in_flight;
            workload
        };
        assert_eq!(more_connections(&with(2, 1)), "`-P 16`");
        assert_eq!(more_connections(&with(4000, 1)), "`-P 20000`");
        assert_eq!(more_in_flight(&with(1, 256)), "`--in-flight 1024`");
        assert_eq!(half_at_a_time(&with(1, 1)), None);
        assert_eq!(half_at_a_time(&with(1, 8)).unwrap(), "`--in-flight 4`");
        assert_eq!(half_at_a_time(&with(6, 8)).unwrap(), "`-P 3`");
    }
}
