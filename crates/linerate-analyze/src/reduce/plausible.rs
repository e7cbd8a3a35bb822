//! Numbers above what the links carry.
//!
//! A throughput above the payload limit of the links in its way cannot have crossed them; the
//! number is refused rather than shown with a warning, since whoever copies it does not copy the
//! warning.
//!
//! One cause is innocent: payload that had arrived before the window began and waited in the
//! receive buffer, because the reader had no CPU, is returned by receive calls inside the window.
//! TCP's own count of what arrived in order (tcpi_bytes_received) does not have it. So where the
//! application's count is above the limit and TCP's is not, TCP's count over the same readings
//! takes its place, and a flag says so.

use linerate_model::run::HostRecord;
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Traffic, Workload};

use super::Responses;
use super::response::name;
use crate::wire_use::{Ceiling, Path};

/// Share above the limit that is still believed: clocks of the two ends and bursts that a queue
/// held at the begin of the window explain this much in a window of a second.
pub(crate) const LIMIT_TOLERANCE_SHARE: f64 = 0.005;

/// What comes of the check.
#[derive(Debug, Default)]
pub(super) struct Plausibility {
    /// Why the throughput is refused.
    pub(super) refusal: Option<String>,
    /// What was put right.
    pub(super) flags: Vec<String>,
}

/// Checks the throughput of each direction, and puts TCP's count in place where that is right.
pub(super) fn check(
    workload: &Workload,
    responses: &mut Responses,
    hosts: &[HostRecord],
) -> Plausibility {
    let path = Path::new(hosts);
    let mut found = Plausibility::default();
    for direction in [Direction::ToServer, Direction::FromServer] {
        let Some(ceiling) = path.ceiling_bps(workload, direction) else {
            continue;
        };
        let above = |bps: f64| bps > ceiling.bps * (1.0 + LIMIT_TOLERANCE_SHARE);
        let Some(rate) = one_way_bps(workload, responses, direction).filter(|bps| above(*bps))
        else {
            continue;
        };
        match arrived_bps(responses, direction).filter(|bps| !above(*bps)) {
            Some(arrived) => {
                replace(responses, direction, arrived);
                found.flags.push(replaced(rate, arrived, &ceiling));
            }
            None => found.refusal = Some(refused(rate, &ceiling)),
        }
    }
    found
}

fn refused(rate: f64, ceiling: &Ceiling) -> String {
    format!(
        "refused: {} of payload cannot cross {}, which carries at most {}",
        Unit::BitsPerSecond.display(rate),
        ceiling.what,
        Unit::BitsPerSecond.display(ceiling.bps),
    )
}

fn replaced(rate: f64, arrived: f64, ceiling: &Ceiling) -> String {
    format!(
        "throughput is TCP's count of {}: receive calls returned {}, above the {} that {} carries, \
         since payload from before the window had waited in the receive buffer",
        Unit::BitsPerSecond.display(arrived),
        Unit::BitsPerSecond.display(rate),
        Unit::BitsPerSecond.display(ceiling.bps),
        ceiling.what,
    )
}

/// Payload per second that goes in `direction`.
fn one_way_bps(workload: &Workload, responses: &Responses, direction: Direction) -> Option<f64> {
    let transactions = || responses.value(name::TRANSACTIONS);
    match &workload.traffic {
        Traffic::Rr {
            request_bytes,
            response_bytes,
            ..
        }
        | Traffic::Crr {
            request_bytes,
            response_bytes,
        } => {
            let bytes = match direction {
                Direction::ToServer => request_bytes,
                _ => response_bytes,
            };
            Some(8.0 * bytes.0 as f64 * transactions()?)
        }
        Traffic::Stream { .. } | Traffic::Idle => responses.value(app_count(direction)),
    }
}

fn app_count(direction: Direction) -> &'static str {
    match direction {
        Direction::ToServer => name::THROUGHPUT_TO_SERVER,
        _ => name::THROUGHPUT_FROM_SERVER,
    }
}

fn arrived_bps(responses: &Responses, direction: Direction) -> Option<f64> {
    responses.value(match direction {
        Direction::ToServer => name::ARRIVED_TO_SERVER,
        _ => name::ARRIVED_FROM_SERVER,
    })
}

fn replace(responses: &mut Responses, direction: Direction, arrived: f64) {
    responses.put(app_count(direction), Some(arrived));
    let ways = [name::THROUGHPUT_TO_SERVER, name::THROUGHPUT_FROM_SERVER];
    let sum: f64 = ways
        .into_iter()
        .filter_map(|way| responses.value(way))
        .sum();
    responses.put(name::THROUGHPUT, Some(sum));
}
