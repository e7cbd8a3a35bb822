//! Numbers above what the links carry.
//!
//! A throughput above the payload limit of the links in its way cannot have crossed them; the
//! number is refused rather than shown with a warning, since whoever copies it does not copy the
//! warning.

use linerate_model::reason::Reason;
use linerate_model::response::name;
use linerate_model::workload::{Direction, Workload};
use linerate_model::{BitsPerSec, Nanos};

use super::{Raw, Responses, Values};
use crate::wire_use::Path;

/// Share above the limit that is still believed: the clocks of the two ends.
const CLOCK_SHARE: f64 = 0.005;
/// What a shaper or a queue owed when the window began: so much of the link's time may come beside the
/// window's own. A lab's link passes 4 ms of what it owes.
const OWED_NS: f64 = 5_000_000.0;

/// Returns the share by which a number may lie above what the links carry in `window`.
pub(crate) fn tolerance(window: Nanos) -> f64 {
    CLOCK_SHARE.max(OWED_NS / window.0.max(1) as f64)
}

/// Returns why the throughput of a direction is refused, if it is.
pub(super) fn refusal(raw: &Raw<'_>, window: Nanos, responses: &Responses) -> Option<Reason> {
    let workload = &raw.trial.workload;
    let tolerance = tolerance(window);
    let path = Path::new(raw.hosts);
    let of_direction = |direction| {
        let ceiling = path.ceiling(workload, direction)?;
        let rate = one_way_bps(workload, responses, direction)?;
        let rate = BitsPerSec(rate);
        let is_beyond = rate.0 > ceiling.payload.0 * (1.0 + tolerance);
        is_beyond.then_some(Reason::Beyond { rate, ceiling })
    };
    [Direction::ToServer, Direction::FromServer]
        .into_iter()
        .find_map(of_direction)
}

/// Payload per second that goes in `direction`.
fn one_way_bps(workload: &Workload, responses: &Responses, direction: Direction) -> Option<f64> {
    let to_server = direction == Direction::ToServer;
    match workload.traffic.exchange() {
        Some((request, response)) => {
            let bytes = if to_server { request } else { response };
            Some(8.0 * bytes.0 as f64 * responses.value(name::TRANSACTIONS)?)
        }
        None if to_server => responses.value(name::THROUGHPUT_TO_SERVER),
        None => responses.value(name::THROUGHPUT_FROM_SERVER),
    }
}
