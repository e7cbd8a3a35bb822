//! What to do, where it was measured to help.
//!
//! A recommendation is a promise, so each needs:
//!
//! 1. the host as it is among the levels measured: buffers that the kernel tunes, the congestion
//!    control that the host uses;
//! 2. a level that is shown to gain more than matters against it, of a response of which it is known which value is
//!    the better one, with the error of the whole report;
//! 3. what it costs, how it is undone, and the command that measures both again.
//!
//! What a finding suggests without such a measurement stands in the finding's explanation. "Leave it
//! as it is" is no recommendation, nor is what mends only what a chapter of the study brings about itself.

use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::{Limiter, Recommendation, Verdict};
use linerate_model::response::{Better, describe};
use linerate_model::run::HostRecord;
use linerate_model::unit::Bytes;

use crate::dataset::Dataset;
use crate::diagnose::{About, Found, What, nagle_delayed_ack};
use crate::verdicts::{BufferPlateau, FactorEffect};
use crate::words;

/// Returns what to do about `findings`, in their order.
pub(crate) fn recommendations(
    dataset: &Dataset<'_>,
    findings: &[Found<'_>],
) -> Vec<Recommendation> {
    let recommend = |found: &Found<'_>| {
        let About::Experiment(experiment) = found.about else {
            return None;
        };
        match found.what {
            What::Plateau(_, plateau, level) => buffers(found.id(), experiment, plateau, level),
            What::Effect(effect) => congestion(dataset, found.id(), experiment, effect),
            What::Limiter(Limiter::NagleDelayedAck) if !found.is_own_doing() => {
                nodelay(found, experiment)
            }
            What::Limiter(_)
            | What::Loss
            | What::QueueBalance
            | What::Placement
            | What::OneCpuOfPackets(_)
            | What::Caution(..) => None,
        }
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

fn buffers(
    finding: String,
    experiment: &Experiment,
    found: &BufferPlateau,
    level: usize,
) -> Option<Recommendation> {
    let bytes = Bytes(found.levels[level].as_number()? as u64);
    let with = found.with(" for traffic with ");
    Some(Recommendation {
        finding,
        action: format!("Set SO_RCVBUF and SO_SNDBUF to {bytes}{with}."),
        predicted: format!(
            "{} {} times that of the kernel's autotuning, as measured.",
            words::sentence(describe(&experiment.response).title),
            words::estimate(&found.ratio(level))
        ),
        cost: "Memory of up to that size for each connection; a fixed SO_RCVBUF ends the kernel's \
               tuning, which paths with longer round trips need."
            .to_owned(),
        undo: "Without the socket options the kernel tunes again.".to_owned(),
        confirm: confirm(experiment),
    })
}

/// Only where the same requests were measured with Nagle off; the rule of the finding asks for 30 ms.
fn nodelay(found: &Found<'_>, experiment: &Experiment) -> Option<Recommendation> {
    let (on, others) = found.evidence.as_slice().split_first()?;
    let name = nagle_delayed_ack::with_off(&on.what, Factor::Nagle);
    let off = others.iter().find(|evidence| evidence.what == name)?;
    let remedy = Limiter::NagleDelayedAck.remedy();
    let stop = |text: &str| format!("{text}.");
    Some(Recommendation {
        finding: found.id(),
        action: stop(remedy.action),
        predicted: format!(
            "A {} of {} instead of {}, as measured.",
            on.what,
            words::estimate(&off.estimate),
            words::estimate(&on.estimate),
        ),
        cost: stop(remedy.cost),
        undo: stop(remedy.undo),
        confirm: confirm(experiment),
    })
}

/// Returns the congestion control of every host, any of which may send; absent where they differ or one is unknown.
fn own_congestion<'d>(dataset: &'d Dataset<'_>) -> Option<&'d str> {
    let own = |host: &'d HostRecord| host.snapshot.text("sysctl.net.ipv4.tcp_congestion_control");
    let mut hosts = dataset.recording.document.hosts.iter().map(own);
    let first = hosts.next()??;
    hosts.all(|other| other == Some(first)).then_some(first)
}

/// Only where the control that was better was held against the one that the host uses.
fn congestion(
    dataset: &Dataset<'_>,
    finding: String,
    experiment: &Experiment,
    found: &FactorEffect,
) -> Option<Recommendation> {
    let own = own_congestion(dataset)?;
    let better = Better::of(&found.response)?;
    let is_worse = |other: &FactorEffect| {
        let gains = Better::of(&other.response).map(|better| better.is_gain(other.ratio().value));
        other.verdict == Verdict::Differs
            && (other.factor, &other.levels) == (found.factor, &found.levels)
            && gains == Some(false)
    };
    // What helps some traffic and harms other is right for none.
    if dataset.verdicts().effects.iter().any(is_worse) {
        return None;
    }
    let margin = 1.0 + found.margin;
    let ratio = found.ratio();
    let gains = match better {
        Better::More => ratio.low.is_some_and(|low| low > margin),
        Better::Less => ratio.high.is_some_and(|high| high < 1.0 / margin),
    };
    let is_shown = found.factor == Factor::Congestion
        && found.verdict == Verdict::Differs
        && found.levels.1 == Level::Word(own.to_owned())
        && found.by_group.is_empty();
    if !is_shown || !gains {
        return None;
    }
    let better = &found.levels.0;
    Some(Recommendation {
        finding,
        action: format!(
            "Use {better} for this path (-C {better}, or net.ipv4.tcp_congestion_control)."
        ),
        predicted: format!(
            "{} {} times that of {own}, as measured.",
            words::sentence(describe(&found.response).title),
            words::estimate(&ratio)
        ),
        cost:
            "The sysctl is for all new connections of the host, on every path; a route's `congctl` or the \
               socket's TCP_CONGESTION is for one."
                .to_owned(),
        undo: format!("sysctl -w net.ipv4.tcp_congestion_control={own}"),
        confirm: confirm(experiment),
    })
}
