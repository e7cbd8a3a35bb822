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
//!
//! Of buffers there is one recommendation for an experiment, of one size: a program does not know how many
//! connections there will be, so that what gains with one count must be shown to lose nothing with the others. Where
//! the window of the kernel's own tuning is what limits, its setting comes first: a fixed size treats what that
//! setting removes.

use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::{Recommendation, Verdict};
use linerate_model::limiter::Limiter;
use linerate_model::response::{Better, describe};
use linerate_model::unit::Bytes;

use crate::dataset::{Dataset, groups};
use crate::diagnose::{
    About, Found, What, is_field_full, is_of_another, is_unscaled, is_untuned, limits,
    nagle_delayed_ack, plateau_cell,
};
use crate::proof::{Observed, Proof};
use crate::verdicts::{FactorEffect, ScalePlateau};
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
            What::Limiter(limiter) if let Some(proof) = gained(dataset, limiter) => {
                Some(proven(found, limiter, proof))
            }
            What::Plateau(..) if is_first_of(experiment, found, findings) => {
                buffers(dataset, findings, experiment)
            }
            What::Effect(effect) => congestion(dataset, found.id(), experiment, effect),
            What::Limiter(Limiter::NagleDelayedAck) if !found.is_own_doing() => {
                nodelay(dataset, found, experiment)
            }
            What::Plateau(..)
            | What::Limiter(_)
            | What::Loss
            | What::QueueBalance
            | What::Placement
            | What::Caution(..) => None,
        }
    };
    findings.iter().filter_map(recommend).collect()
}

/// Returns the command that measures both again.
fn confirm(dataset: &Dataset<'_>, experiment: &Experiment) -> String {
    // The chapters of the study come with the program and are known by name; others are files.
    let file = match experiment.chapter {
        Some(_) => experiment.name.clone(),
        None => format!("{}.toml", experiment.name),
    };
    let host = if dataset.is_lab() { "--lab" } else { "HOST" };
    format!("linerate run {host} --experiment {file}")
}

/// Whether `found` is the first plateau of its experiment among `findings`.
fn is_first_of(experiment: &Experiment, found: &Found<'_>, findings: &[Found<'_>]) -> bool {
    let mut plateaus = findings
        .iter()
        .filter(|other| matches!(other.what, What::Plateau(..)) && other.is_about(experiment));
    plateaus
        .next()
        .is_some_and(|first| first.id() == found.id())
}

/// A size of buffers, and where it gains.
struct Size<'d> {
    /// The finding of the plateau where it gains most for certain.
    finding: String,
    bytes: Bytes,
    /// The plateaus where it gains, that one first, with the place of its level.
    gains: Vec<(&'d ScalePlateau, usize)>,
}

/// Returns the size that gains for one plateau of `experiment` and loses for none: of those that gain as much as
/// the best for certain, the smallest.
fn size<'d>(
    dataset: &'d Dataset<'_>,
    findings: &[Found<'d>],
    experiment: &Experiment,
) -> Option<Size<'d>> {
    let all = || {
        let all = dataset.verdicts().buffers();
        all.filter(|plateau| plateau.experiment == experiment.name && plateau.is_against_host())
    };
    // A combination of which the host as it is was not measured may lose.
    let cells = dataset.cells_of(&experiment.name);
    if all().count() < groups(&cells, Factor::SocketBuffer).len() {
        return None;
    }
    let harms_none = |level: &Level| {
        all().all(|plateau| {
            let at = plateau.levels.iter().position(|known| known == level);
            at.is_some_and(|at| plateau.does_better(at) || plateau.plateau.suffices(at))
        })
    };
    let of_finding = |found: &Found<'d>| {
        let What::Plateau(_, plateau, _) = found.what else {
            return None;
        };
        let levels = (0..plateau.levels.len())
            .filter(|at| plateau.does_better(*at) && harms_none(&plateau.levels[*at]));
        let certain = |at: &usize| plateau.ratio(*at).low.unwrap_or_default();
        let best = levels
            .clone()
            .map(|at| certain(&at))
            .max_by(f64::total_cmp)?;
        let at = levels.clone().find(|at| plateau.ratio(*at).value >= best)?;
        Some((found.id(), plateau, at))
    };
    let own = findings.iter().filter(|found| found.is_about(experiment));
    let (finding, first, at) = own.filter_map(of_finding).next()?;
    let level = &first.levels[at];
    let others = all().filter(|other| *other != first).filter_map(|other| {
        let at = other.levels.iter().position(|known| known == level)?;
        other.does_better(at).then_some((other, at))
    });
    Some(Size {
        finding,
        bytes: Bytes(level.as_number()? as u64),
        gains: std::iter::once((first, at)).chain(others).collect(),
    })
}

fn buffers(
    dataset: &Dataset<'_>,
    findings: &[Found<'_>],
    experiment: &Experiment,
) -> Option<Recommendation> {
    let size = size(dataset, findings, experiment)?;
    let bytes = size.bytes;
    let gains = size.gains.iter().enumerate().map(|(place, (plateau, at))| {
        let over = match place {
            0 => " that of the kernel's autotuning",
            _ => "",
        };
        let ratio = words::estimate(&plateau.ratio(*at));
        format!("{ratio} times{over}{}", plateau.with(" with "))
    });
    let predicted = format!(
        "{} {}, as measured",
        words::sentence(describe(&experiment.response).title),
        words::list(&gains.collect::<Vec<_>>())
    );
    let fixed =
        "a fixed SO_RCVBUF ends the kernel's tuning, which paths with longer round trips need";
    let tuned = size
        .gains
        .iter()
        .find_map(|(plateau, _)| tuned(dataset, plateau, bytes));
    Some(match tuned {
        None => Recommendation {
            finding: size.finding,
            action: format!("Set SO_RCVBUF and SO_SNDBUF to {bytes}."),
            predicted: format!("{predicted}."),
            cost: format!("Memory of up to that size for each connection; {fixed}."),
            undo: "Without the socket options the kernel tunes again.".to_owned(),
            confirm: confirm(dataset, experiment),
        },
        Some((limiter, setting)) => {
            let is_of = |found: &&Found<'_>| found.what == What::Limiter(limiter);
            let named = findings.iter().find(is_of).map(Found::id);
            Recommendation {
                finding: named.unwrap_or(size.finding),
                action: format!(
                    "{}; a second way is SO_RCVBUF and SO_SNDBUF of {bytes} in each program.",
                    setting
                ),
                predicted: format!("{predicted} with buffers of {bytes}."),
                cost: format!(
                    "Memory of up to that size for each connection; of the second way, {fixed}."
                ),
                undo: "sysctl -w with the values that were printed before; without the socket options the \
                       kernel tunes again."
                    .to_owned(),
                confirm: confirm(dataset, experiment),
            }
        }
    })
}

/// Returns what limits the cell with the kernel's own tuning, and the setting that lets it be as buffers of `bytes`, where
/// there is one.
fn tuned(dataset: &Dataset<'_>, plateau: &ScalePlateau, bytes: Bytes) -> Option<(Limiter, String)> {
    let cell = plateau_cell(dataset, plateau, None)?;
    let limiter = limits(dataset, cell)?;
    // No buffer of the hosts makes such windows larger.
    let is_foreign =
        || is_unscaled(dataset, cell) || is_of_another(dataset, cell) || is_field_full(cell);
    let (setting, end) = match limiter {
        Limiter::ReceiverWindow if is_foreign() => return None,
        Limiter::ReceiverWindow if is_untuned(dataset, cell) => {
            let action = "Turn on net.ipv4.tcp_moderate_rcvbuf on the receiver";
            return Some((limiter, action.to_owned()));
        }
        Limiter::ReceiverWindow => ("tcp_rmem", "receiver"),
        Limiter::SendBuffer => ("tcp_wmem", "sender"),
        _ => return None,
    };
    // The kernel doubles what a program asks for, and counts all of it in its own tuning.
    let twice = Bytes(bytes.0.saturating_mul(2));
    let action = format!("Raise the maximum of net.ipv4.{setting} on the {end} to {twice}");
    Some((limiter, action))
}

/// Returns the change after the measurement that proved `limiter` by a number that grew.
fn gained<'d>(dataset: &'d Dataset<'_>, limiter: Limiter) -> Option<&'d Proof> {
    let proof = dataset.proofs.deciding()?;
    let grew = proof.observed == Observed::Grew && proof.limiter == Some(limiter);
    grew.then_some(proof)
}

fn proven(found: &Found<'_>, limiter: Limiter, proof: &Proof) -> Recommendation {
    let remedy = limiter.remedy();
    let stop = |text: &str| format!("{text}.");
    Recommendation {
        finding: found.id(),
        action: format!("{}; what was tried is {}.", remedy.action, proof.change()),
        predicted: format!(
            "{}: {}, as measured.",
            words::sentence(describe(&proof.response).title),
            proof.effect()
        ),
        cost: stop(remedy.cost),
        undo: stop(remedy.undo),
        confirm: "linerate run HOST --prove".to_owned(),
    }
}

/// Only where the same requests were measured with Nagle off; the rule of the finding asks for 30 ms.
fn nodelay(
    dataset: &Dataset<'_>,
    found: &Found<'_>,
    experiment: &Experiment,
) -> Option<Recommendation> {
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
        confirm: confirm(dataset, experiment),
    })
}

/// Only where the control that was better was held against the one that the host uses.
fn congestion(
    dataset: &Dataset<'_>,
    finding: String,
    experiment: &Experiment,
    found: &FactorEffect,
) -> Option<Recommendation> {
    let own = dataset.own_congestion()?;
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
        && found.by_group.is_empty()
        && found.aliases.is_empty()
        && !found.turns();
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
        confirm: confirm(dataset, experiment),
    })
}
