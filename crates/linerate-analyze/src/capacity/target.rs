//! What a target asks for, and what there is of it.

use linerate_model::finding::Estimate;
use linerate_model::number::counted;
use linerate_model::unit::Unit;
use linerate_model::workload::Direction;
use serde::Serialize;

use super::kind::Side;
use super::model::Model;
use super::work::{self, Work};
use crate::dataset::Dataset;
use crate::words;

/// A rate that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Payload, bit/s.
    pub bps: f64,
    /// Bytes of a message.
    pub message_bytes: u64,
    /// Connections.
    pub flows: u32,
    /// Which way it goes.
    pub direction: Direction,
    /// Share of the CPUs that is to be left.
    pub headroom: f64,
}

/// What a target asks for.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Answer {
    /// Whose cost it is.
    pub side: Side,
    /// CPUs that are busy.
    pub busy: Estimate,
    /// CPUs to have, with the headroom.
    pub cpus: Estimate,
    /// What there is and what is asked of it, what ends first before the others.
    pub supplies: Vec<Supply>,
    /// Where it goes beyond what was measured.
    pub extrapolates: Vec<String>,
}

/// Something that there is so much of.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Supply {
    /// What.
    pub what: String,
    /// What is asked of it.
    pub needs: f64,
    /// What there is.
    pub has: f64,
    /// Its unit, as the documents have it.
    pub unit: Unit,
}

/// Returns what `target` asks for, by the model of its side.
pub(super) fn answer(dataset: &Dataset<'_>, models: &[Model], target: &Target) -> Option<Answer> {
    let side = match (dataset.is_one_machine(), target.direction) {
        (true, _) => Side::Streams,
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

impl Model {
    /// Returns the CPUs that are busy with `target`.
    pub(crate) fn busy(&self, target: &Target) -> Option<Estimate> {
        Some(self.cost(&self.work_of(target)?))
    }

    /// Returns the work that `target` is: what the trials with messages, connections and rates about as many do for each byte.
    pub(super) fn work_of(&self, target: &Target) -> Option<Vec<f64>> {
        let way = self.rows.iter();
        let way = way.filter(|row| row.direction == Some(target.direction));
        let message = |row: &Work| Some(row.message_bytes? as f64);
        let near = nearest(way.collect(), message, target.message_bytes as f64);
        let near = nearest(near, |row| Some(f64::from(row.flows)), target.flows.into());
        let rate = nearest(near.clone(), |row| Some(row.bytes()), target.bps / 8.0);
        // The trials of its cell, not one of them.
        let cell = rate.first()?.cell;
        let near: Vec<&Work> = near.into_iter().filter(|row| row.cell == cell).collect();
        Some(work::scaled(&work::per_byte(&near), target.bps / 8.0))
    }

    /// Says where `target` is beyond what was measured.
    pub(super) fn extrapolates(&self, target: &Target) -> Vec<String> {
        let mut beyond = Vec::new();
        if target.bps > self.fitted_to_bps {
            beyond.push(format!(
                "the rate is {} times the highest that was measured",
                words::number(Unit::Ratio, target.bps / self.fitted_to_bps)
            ));
        }
        let sizes = self.rows.iter().filter_map(|row| row.message_bytes);
        let (least, most) = sizes.fold((u64::MAX, 0), |(least, most), bytes| {
            (least.min(bytes), most.max(bytes))
        });
        if target.message_bytes < least || target.message_bytes > most {
            beyond.push(format!(
                "messages of {} were not measured: from {} to {}",
                words::number(Unit::Bytes, target.message_bytes as f64),
                words::number(Unit::Bytes, least as f64),
                words::number(Unit::Bytes, most as f64),
            ));
        }
        let flows = self.rows.iter().map(|row| row.flows).max().unwrap_or(0);
        if target.flows > flows {
            beyond.push(format!(
                "{} were not measured: up to {flows}",
                counted(target.flows, "connection")
            ));
        }
        beyond
    }

    /// Returns the CPUs that `target` has in user mode, in the kernel and in interrupts.
    pub(super) fn modes(&self, target: &Target) -> Option<[f64; 3]> {
        let work = self.work_of(target)?;
        let of = |mode: &Option<Vec<f64>>| {
            let prices = mode.iter().flatten();
            prices.zip(&work).map(|(price, work)| price * work).sum()
        };
        Some(self.modes.each_ref().map(of))
    }
}

/// Returns those of `rows` of which `of` is nearest to `wanted`, as a factor.
fn nearest(rows: Vec<&Work>, of: impl Fn(&Work) -> Option<f64>, wanted: f64) -> Vec<&Work> {
    let far = |row: &Work| Some((of(row)? / wanted).ln().abs());
    let least = rows
        .iter()
        .filter_map(|row| far(row))
        .min_by(f64::total_cmp);
    let mut near = rows;
    near.retain(|row| far(row) == least && least.is_some());
    near
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
    let ends = if model.side.is_of_both() { 2.0 } else { 1.0 };
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
