//! What to do, where it was measured to help.
//!
//! A recommendation is a promise, so each needs:
//!
//! 1. the host as it is among the levels measured: buffers that the kernel tunes, the congestion
//!    control that the host uses;
//! 2. a level that is shown to gain more than matters against it, with the error of the whole report;
//! 3. what it costs, how it is undone, and the command that measures both again.
//!
//! What a finding suggests without such a measurement stands in the finding's explanation. "Leave it
//! as it is" is no recommendation.

use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::{Finding, FindingKind, Recommendation, Verdict};
use linerate_model::unit::Bytes;

use crate::dataset::Dataset;
use crate::verdicts::{BufferPlateau, FactorEffect};
use crate::words;

/// Returns what to do about `findings`, in their order.
pub(crate) fn recommendations(dataset: &Dataset<'_>, findings: &[Finding]) -> Vec<Recommendation> {
    let recommend = |finding: &Finding| match finding.kind {
        FindingKind::Plateau => buffers(dataset, finding),
        FindingKind::Effect => congestion(dataset, finding),
        _ => None,
    };
    findings.iter().filter_map(recommend).collect()
}

/// Returns the command that measures both again.
fn confirm(experiment: &Experiment) -> String {
    // The chapters of the study come with the program and are known by name; others are files.
    let file = match experiment.chapter {
        Some(_) => experiment.name.clone(),
        None => format!("{}.toml", experiment.name),
    };
    format!("linerate run HOST --experiment {file}")
}

fn buffers(dataset: &Dataset<'_>, finding: &Finding) -> Option<Recommendation> {
    let mut plateaus = dataset.verdicts().plateaus.iter();
    let (found, level) = plateaus.find_map(|plateau: &BufferPlateau| {
        let own = finding.id.starts_with(&format!("{}/", plateau.experiment));
        Some((plateau, plateau.gains().filter(|_| own)?))
    })?;
    let experiment = dataset
        .recording
        .document
        .plan
        .experiment(&found.experiment)?;
    let bytes = Bytes(found.levels[level].as_number()? as u64);
    let with = match found.words.is_empty() {
        true => String::new(),
        false => format!(" for traffic with {}", found.words),
    };
    Some(Recommendation {
        finding: finding.id.clone(),
        action: format!(
            "Raise the maxima of net.ipv4.tcp_rmem and net.ipv4.tcp_wmem to {bytes} at the least on \
             both hosts, or set SO_RCVBUF and SO_SNDBUF to {bytes}{with}."
        ),
        predicted: format!(
            "{} times the throughput of the kernel's own tuning, as measured.",
            words::estimate(&found.ratio(level))
        ),
        cost: "Memory of up to that size for each connection; a fixed SO_RCVBUF ends the kernel's \
               tuning, which paths with longer round trips need."
            .to_owned(),
        undo:
            "sysctl -w with the values that `sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem` printed \
               before; without the socket options the kernel tunes again."
                .to_owned(),
        confirm: confirm(experiment),
    })
}

/// Only where the control that was better was held against the one that the host uses.
fn congestion(dataset: &Dataset<'_>, finding: &Finding) -> Option<Recommendation> {
    let host = dataset.recording.document.server()?;
    let own = host
        .snapshot
        .text("sysctl.net.ipv4.tcp_congestion_control")?;
    let is_shown = |effect: &&FactorEffect| {
        let margin = 1.0 + effect.margin;
        effect.factor == Factor::Congestion
            && finding.id.starts_with(&format!("{}/", effect.experiment))
            && effect.verdict == Verdict::Differs
            && effect.levels.1 == Level::Word(own.to_owned())
            && effect.by_group.is_empty()
            && effect.ratio().low.is_some_and(|low| low > margin)
    };
    let found = dataset.verdicts().effects.iter().find(is_shown)?;
    let experiment = dataset
        .recording
        .document
        .plan
        .experiment(&found.experiment)?;
    let better = &found.levels.0;
    Some(Recommendation {
        finding: finding.id.clone(),
        action: format!(
            "Use {better} for this path (-C {better}, or net.ipv4.tcp_congestion_control)."
        ),
        predicted: format!(
            "{} times what {own} reaches, as measured.",
            words::estimate(&found.ratio())
        ),
        cost:
            "The sysctl is for all connections of the host that begin after it, on every path; a \
               route's `congctl` or the socket's TCP_CONGESTION is for one."
                .to_owned(),
        undo: format!("sysctl -w net.ipv4.tcp_congestion_control={own}"),
        confirm: confirm(experiment),
    })
}
