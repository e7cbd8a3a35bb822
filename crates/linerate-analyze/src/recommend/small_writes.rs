//! TCP_NODELAY and delayed ACK, from the findings on small writes.

use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::{Evidence, Finding, FindingKind, Limiter, Recommendation};

use super::command;
use crate::dataset::Dataset;
use crate::words;

pub(super) fn recommend(dataset: &Dataset<'_>, finding: &Finding) -> Option<Recommendation> {
    let (experiment, suffix) = finding.id.split_once('/')?;
    match (finding.kind, suffix) {
        (FindingKind::Limiter(Limiter::NagleDelayedAck), _) => {
            nodelay_for_requests(dataset, finding, experiment)
        }
        (_, "effect/nagle" | "absence/nagle") => nagle(dataset, finding, experiment),
        (_, "effect/delayed-ack" | "absence/delayed-ack") => delayed_ack(finding, experiment),
        _ => None,
    }
}

fn evidence<'f>(finding: &'f Finding, end: &str) -> Option<&'f Evidence> {
    finding
        .evidence
        .as_slice()
        .iter()
        .find(|evidence| evidence.what.ends_with(end))
}

fn nodelay_for_requests(
    dataset: &Dataset<'_>,
    finding: &Finding,
    experiment: &str,
) -> Option<Recommendation> {
    let stalled = finding.evidence.as_slice().first()?;
    let predicted = match evidence(finding, "with Nagle off") {
        Some(off) => format!(
            "The {} falls from {} to {}.",
            stalled.what,
            words::estimate(&stalled.estimate),
            words::estimate(&off.estimate),
        ),
        None => format!(
            "The {} falls from {} by the delayed-ACK timer of about 40 ms.",
            stalled.what,
            words::estimate(&stalled.estimate)
        ),
    };
    let varied = dataset.cells_of(experiment).len() > 1;
    let cell = dataset
        .cells
        .iter()
        .find(|cell| cell.experiment.name == experiment)?;
    Some(Recommendation {
        finding: finding.id.clone(),
        action:
            "Set TCP_NODELAY in the host that sends the requests, or hand each request down in \
                 one write."
                .to_owned(),
        predicted,
        confirm: match varied {
            true => experiment_command(finding, experiment),
            false => command(&cell.workload, "-N"),
        },
    })
}

fn nagle(dataset: &Dataset<'_>, finding: &Finding, experiment: &str) -> Option<Recommendation> {
    let on = evidence(finding, "throughput with Nagle on")?.estimate;
    let off = evidence(finding, "throughput with Nagle off")?.estimate;
    let (action, better, worse, flag) = if finding.kind == FindingKind::Absence {
        return None;
    } else if off.value > on.value {
        (
            "Turn Nagle off (TCP_NODELAY) in the sender of small messages only.",
            off,
            on,
            "-N",
        )
    } else {
        (
            "Leave Nagle on in senders of small messages whose delay does not matter: it packs them \
             into fuller segments.",
            on,
            off,
            "",
        )
    };
    let shown = dataset.cells_of(experiment).into_iter().find(|cell| {
        cell.level(Factor::Nagle) == Some(&Level::Switch(flag.is_empty()))
            && finding
                .evidence
                .as_slice()
                .iter()
                .any(|evidence| evidence.trials == cell.trials())
    })?;
    let message = shown.message_bytes()?;
    let options = format!("-l {message} {flag}");
    Some(Recommendation {
        finding: finding.id.clone(),
        action: action.to_owned(),
        predicted: format!(
            "{}, against {}.",
            words::estimate(&better),
            words::estimate(&worse)
        ),
        confirm: command(&shown.workload, options.trim_end()),
    })
}

fn delayed_ack(finding: &Finding, experiment: &str) -> Option<Recommendation> {
    let on = evidence(finding, "rate with delayed ACK on")?.estimate;
    let off = evidence(finding, "rate with delayed ACK off")?.estimate;
    let keep = finding.kind == FindingKind::Absence || on.value >= off.value;
    let action = match keep {
        true => "Keep delayed ACK on: the acknowledgement rides on the reply and saves a packet.",
        false => "Switch delayed ACK off (TCP_QUICKACK, or the route's quickack) for this traffic.",
    };
    let (with, without) = if keep { (on, off) } else { (off, on) };
    Some(Recommendation {
        finding: finding.id.clone(),
        action: action.to_owned(),
        predicted: format!(
            "{}, against {}.",
            words::estimate(&with),
            words::estimate(&without)
        ),
        confirm: experiment_command(finding, experiment),
    })
}

/// The chapters of the study come with the program and are known by name; others are files.
fn experiment_command(finding: &Finding, experiment: &str) -> String {
    match finding.chapter {
        Some(_) => format!("linerate run HOST --experiment {experiment}"),
        None => format!("linerate run HOST --experiment {experiment}.toml"),
    }
}
