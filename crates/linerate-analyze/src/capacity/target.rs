//! What a target asks for, and what there is of it.

use linerate_model::unit::Unit;
use linerate_model::workload::Direction;

use super::{Answer, Model, Side, Supply, Target};
use crate::dataset::Dataset;

/// Returns what `target` asks for, by the model of its side.
pub(super) fn answer(dataset: &Dataset<'_>, models: &[Model], target: &Target) -> Option<Answer> {
    let side = match (dataset.is_one_machine(), target.direction) {
        (true, _) => Side::BothEnds,
        (false, Direction::FromServer) => Side::Sends,
        (false, _) => Side::Receives,
    };
    let model = models.iter().find(|model| model.side == side)?;
    let busy = model.busy(target)?;
    let cpus = busy.map(Unit::Cpus, |cpus| cpus / (1.0 - target.headroom));
    Some(Answer {
        side,
        busy,
        cpus,
        supplies: supplies(dataset, model, target, cpus.value),
        extrapolates: model.extrapolates(target),
    })
}

/// Returns what there is and what `target`, which asks for `cpus`, asks of it, what ends first before the others.
pub(crate) fn supplies(
    dataset: &Dataset<'_>,
    model: &Model,
    target: &Target,
    cpus: f64,
) -> Vec<Supply> {
    let of = |what: &str, needs: f64, has: Option<f64>, unit: Unit| {
        has.filter(|has| *has > 0.0).map(|has| Supply {
            what: what.to_owned(),
            needs,
            has,
            unit,
        })
    };
    let link = dataset.path.rate_bps(dataset.clients().count() as u32);
    let full = dataset.measured().find_map(|cell| {
        let is_way = cell.workload.traffic.direction() == Some(target.direction);
        let limit = dataset.path_of(cell).limit_bps(&cell.workload, None, None);
        limit.filter(|_| is_way)
    });
    let [user, kernel, interrupts] = model.modes(target).unwrap_or_default();
    // A connection's worker has one CPU, at each end that is counted; so has each receive queue.
    let ends = if model.side == Side::BothEnds {
        2.0
    } else {
        1.0
    };
    let workers = ends * f64::from(target.flows);
    let mut all: Vec<Supply> = [
        of(
            "CPUs of the host, with the headroom",
            cpus,
            dataset.cpus(),
            Unit::Cpus,
        ),
        of(
            "payload that the links carry",
            target.bps,
            full.or(link),
            Unit::BitsPerSecond,
        ),
        of(
            "CPUs of the receive queues, one each, in interrupts",
            interrupts,
            receive_queues(dataset),
            Unit::Cpus,
        ),
        of(
            "CPUs of the connections, one each at each end, outside of interrupts",
            user + kernel,
            Some(workers),
            Unit::Cpus,
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    all.sort_by(|a, b| (b.needs / b.has).total_cmp(&(a.needs / a.has)));
    all
}

fn receive_queues(dataset: &Dataset<'_>) -> Option<f64> {
    let server = dataset.recording.document.server()?;
    let link = server.link.as_deref()?;
    server.snapshot.number(&format!("link.{link}.rx_queues"))
}
