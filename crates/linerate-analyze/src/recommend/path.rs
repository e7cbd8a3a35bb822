//! The link, loss on the way, our own workers.

use linerate_model::finding::{Finding, FindingKind, Limiter, Recommendation};
use linerate_model::unit::Unit;
use linerate_model::wire::Wire;

use super::command;
use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::limiter_of;
use crate::words;

/// MTU of jumbo frames as switches and NICs commonly carry them.
const JUMBO_MTU_BYTES: u64 = 9000;

pub(super) fn recommend(dataset: &Dataset<'_>, finding: &Finding) -> Option<Recommendation> {
    let FindingKind::Limiter(limiter) = finding.kind else {
        return None;
    };
    let (experiment, _) = finding.id.split_once("/limiter/")?;
    let same = |cell: &&CellOutcomes<'_>| {
        limiter_of(dataset, cell).is_some_and(|verdict| verdict.limiter == limiter)
    };
    let cell = dataset.cells_of(experiment).into_iter().find(same)?;
    match limiter {
        Limiter::LinkRate => link(dataset, finding, cell),
        Limiter::CongestionWindow => Some(loss(finding, cell)),
        Limiter::Generator => Some(generator(finding, cell)),
        Limiter::Pacing => pacing(finding, cell),
        _ => None,
    }
}

/// Only where the frame size leaves something to gain.
fn link(
    dataset: &Dataset<'_>,
    finding: &Finding,
    cell: &CellOutcomes<'_>,
) -> Option<Recommendation> {
    let wire = dataset.path.wire(&cell.workload)?;
    if wire.mtu_bytes >= JUMBO_MTU_BYTES {
        return None;
    }
    let jumbo = Wire {
        mtu_bytes: JUMBO_MTU_BYTES,
        ..wire
    };
    Some(Recommendation {
        finding: finding.id.clone(),
        action: format!(
            "For more payload raise the MTU from {} B to {JUMBO_MTU_BYTES} B on every device of the \
             way, or take a faster link; tuning the hosts will not help.",
            wire.mtu_bytes
        ),
        predicted: format!(
            "At the most {} of payload instead of {} (computed).",
            Unit::BitsPerSecond.display(jumbo.payload_limit().0),
            Unit::BitsPerSecond.display(wire.payload_limit().0),
        ),
        confirm: command(&cell.workload, ""),
    })
}

fn loss(finding: &Finding, cell: &CellOutcomes<'_>) -> Recommendation {
    Recommendation {
        finding: finding.id.clone(),
        action: "Find where segments are dropped: link and queue drops of both hosts, then the \
                 switch port; a congestion control that does not take each loss for congestion \
                 (bbr) tells loss by errors from loss by full queues."
            .to_owned(),
        predicted: "Without retransmissions the window grows until the link, a buffer or a CPU \
                    limits."
            .to_owned(),
        confirm: command(&cell.workload, "-C bbr -t 30"),
    }
}

/// Only where TCP paces itself; a rate that was asked for is what was wanted.
fn pacing(finding: &Finding, cell: &CellOutcomes<'_>) -> Option<Recommendation> {
    let (manner, options) = (&cell.workload.manner, &cell.workload.options);
    let is_asked = manner.rate_bps.is_some()
        || manner.requests_per_s.is_some()
        || options.pacing_bps.is_some();
    (!is_asked).then(|| Recommendation {
        finding: finding.id.clone(),
        action: "Measure once more with -C cubic. If that is faster, let the queueing discipline \
                 of the sending device do the pacing (tc qdisc replace dev DEVICE root fq), or use \
                 cubic on this path (net.ipv4.tcp_congestion_control)."
            .to_owned(),
        predicted: cell.main().map_or(String::new(), |main| {
            format!(
                "More than {} if pacing was the limit, the same if the path is.",
                words::estimate(&main)
            )
        }),
        confirm: command(&cell.workload, "-C cubic"),
    })
}

fn generator(finding: &Finding, cell: &CellOutcomes<'_>) -> Recommendation {
    let mut more = cell.workload.clone();
    more.connections = 4 * cell.workload.connections;
    Recommendation {
        finding: finding.id.clone(),
        action: "Measure again with more flows, larger messages or a client with more CPUs before \
                 judging the server by this number."
            .to_owned(),
        predicted: cell.main().map_or(String::new(), |main| {
            format!(
                "More than {} if the generator was the limit.",
                words::estimate(&main)
            )
        }),
        confirm: command(&more, ""),
    }
}
