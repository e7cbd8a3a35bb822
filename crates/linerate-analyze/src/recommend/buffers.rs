//! Socket buffers, from plateaus and windows.

use linerate_model::experiment::Factor;
use linerate_model::finding::{Finding, FindingKind, Limiter, Recommendation};
use linerate_model::unit::{BitsPerSec, Bytes, Nanos, Unit};
use linerate_model::wire::bandwidth_delay_bytes;

use super::{command, size_flag};
use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::{LevelPlateau, limiter_of, plateaus};
use crate::reduce::name;
use crate::words;

pub(super) fn recommend(dataset: &Dataset<'_>, finding: &Finding) -> Option<Recommendation> {
    match finding.kind {
        FindingKind::Plateau => from_plateau(dataset, finding),
        FindingKind::Limiter(Limiter::ReceiverWindow | Limiter::SendBuffer) => {
            from_window(dataset, finding)
        }
        FindingKind::Caution if finding.id.starts_with("run/caution/capped/") => {
            Some(Recommendation {
                finding: finding.id.clone(),
                action:
                    "Raise the sysctl that caps the setting on the host named by it, or ask for \
                         no more than it grants."
                        .to_owned(),
                predicted: "The level asked for comes into force, and the curve reaches as far as \
                            the axis says."
                    .to_owned(),
                confirm: "linerate run HOST -w SIZE (the settings show requested, granted and \
                          effective)"
                    .to_owned(),
            })
        }
        _ => None,
    }
}

/// Finding identifiers carry the number of the plateau in the order of `plateaus`.
fn from_plateau(dataset: &Dataset<'_>, finding: &Finding) -> Option<Recommendation> {
    let (experiment, at) = finding.id.split_once("/plateau/")?;
    let experiment = dataset.recording.document.plan.experiment(experiment)?;
    let at: usize = at.parse().ok()?;
    let plateaus = plateaus(dataset, experiment, Factor::SocketBuffer);
    let found = plateaus.get(at.checked_sub(1)?)?;
    let begin = found.begin();
    let bytes = Bytes(begin.number(Factor::SocketBuffer)? as u64);
    let reached = words::estimate(&begin.main()?);
    let with = if found.words.is_empty() {
        String::new()
    } else {
        format!(" with {}", found.words)
    };
    let (action, predicted) = match found.plateau.begin {
        0 if found.is_blurred() => (
            format!(
                "Measure again with more replicates or on a quieter machine{with} before setting buffers."
            ),
            format!(
                "Differences below {} become visible; {bytes} reach {reached} so far.",
                words::percent(found.plateau.resolution)
            ),
        ),
        0 => (
            format!("Leave the socket buffers to the kernel's auto-tuning{with}."),
            format!("No change: {bytes} already reach {reached}."),
        ),
        _ if found.is_open() => (
            format!("Try buffers larger than {bytes}{with}."),
            format!("More than {reached}; how much more was not measured."),
        ),
        at => (
            format!(
                "Set SO_SNDBUF and SO_RCVBUF to {bytes}{with}, or leave them to the kernel's \
                 auto-tuning with maxima no smaller than that."
            ),
            format!("{reached}, against {}.", smaller(found, at)?),
        ),
    };
    let tried = if found.is_open() {
        Bytes(2 * bytes.0)
    } else {
        bytes
    };
    Some(Recommendation {
        finding: finding.id.clone(),
        action,
        predicted,
        confirm: command(&begin.workload, &format!("-w {}", size_flag(tried))),
    })
}

fn smaller(found: &LevelPlateau<'_, '_>, at: usize) -> Option<String> {
    let cell = found.cells.get(at.checked_sub(1)?)?;
    let level = words::bare_level(Factor::SocketBuffer, cell.level(Factor::SocketBuffer)?);
    Some(format!("{} with {level}", words::estimate(&cell.main()?)))
}

/// For an experiment without a plateau of its own, which would say the same better.
fn from_window(dataset: &Dataset<'_>, finding: &Finding) -> Option<Recommendation> {
    let (experiment, _) = finding.id.split_once("/limiter/")?;
    let experiment = dataset.recording.document.plan.experiment(experiment)?;
    if !plateaus(dataset, experiment, Factor::SocketBuffer).is_empty() {
        return None;
    }
    let same = |cell: &&CellOutcomes<'_>| {
        limiter_of(dataset, cell)
            .is_some_and(|verdict| FindingKind::Limiter(verdict.limiter) == finding.kind)
    };
    let cell = dataset.cells_of(&experiment.name).into_iter().find(same)?;
    let rtt = cell.mean(name::TCP_RTT).filter(|rtt| *rtt >= 1.0)?;
    let (option, sysctl) = match finding.kind {
        FindingKind::Limiter(Limiter::SendBuffer) => ("SO_SNDBUF", "tcp_wmem"),
        _ => ("SO_RCVBUF", "tcp_rmem"),
    };
    let reached = words::estimate(&cell.main()?);
    let limit = dataset.path.limit_bps(&cell.workload, None, None);
    let Some(limit) = limit else {
        return Some(Recommendation {
            finding: finding.id.clone(),
            action: format!("Raise {option}, or the maximum of {sysctl}."),
            predicted: format!("Throughput grows from {reached} in proportion to the buffer."),
            confirm: command(&cell.workload, "-w 1M"),
        });
    };
    let flow_bps = BitsPerSec(limit / f64::from(cell.workload.connections));
    let needed = bandwidth_delay_bytes(flow_bps, Nanos(rtt.round() as u64));
    let round = Bytes(needed.0.max(1024).next_power_of_two());
    Some(Recommendation {
        finding: finding.id.clone(),
        action: format!("Raise {option} to at least {round}, or the maximum of {sysctl} with it."),
        predicted: format!(
            "Throughput grows from {reached} in proportion to the buffer, up to {} with {} a flow.",
            Unit::BitsPerSecond.display(limit),
            words::number(Unit::Bytes, needed.0 as f64),
        ),
        confirm: command(&cell.workload, &format!("-w {}", size_flag(round))),
    })
}
