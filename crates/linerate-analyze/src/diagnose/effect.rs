//! What a switch or a word changes, where that is decided.
//!
//! A finding is made of each effect of `verdicts` that differs by more than what matters. Where the
//! effect is not the same for all sizes it is told for each: an option may help small messages and
//! harm large ones.

use linerate_model::experiment::Level;
use linerate_model::finding::{Estimate, Evidence, EvidenceList, Verdict};
use linerate_model::number;

use super::found::{About, Found, What};
use crate::dataset::Dataset;
use crate::reduce::describe;
use crate::verdicts::FactorEffect;
use crate::words;

pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let plan = &dataset.recording.document.plan;
    let effects = dataset.verdicts().effects.iter();
    let shown = effects.filter(|effect| effect.verdict == Verdict::Differs);
    shown
        .filter(|effect| matters(effect))
        .filter_map(|effect| {
            Some(Found {
                about: About::Experiment(plan.experiment(&effect.experiment)?),
                what: What::Effect(effect),
                claim: claim(effect),
                explanation: explanation(effect),
                effect: largest(effect),
                evidence: evidence(effect),
            })
        })
        .collect()
}

/// Returns whether the mean, or the effect of a group that differs, may be beyond the margin.
fn matters(effect: &FactorEffect) -> bool {
    let beyond = |ratio: &Estimate| ratio.value.ln().abs() > (1.0 + effect.margin).ln();
    let groups = effect.by_group.iter();
    let mut differing = groups.filter(|(_, verdict, _)| *verdict == Verdict::Differs);
    match effect.by_group.is_empty() {
        true => beyond(&effect.ratio()),
        false => differing.any(|(.., ratio)| beyond(ratio)),
    }
}

/// Returns the ratio that the finding is ranked by.
fn largest(effect: &FactorEffect) -> Estimate {
    let groups = effect.by_group.iter();
    let differing = groups.filter(|(_, verdict, _)| *verdict == Verdict::Differs);
    let ratios = differing.map(|(.., ratio)| *ratio);
    let distance = |ratio: &Estimate| ratio.value.ln().abs();
    ratios
        .max_by(|a, b| distance(a).total_cmp(&distance(b)))
        .unwrap_or_else(|| effect.ratio())
}

/// Returns the claim: the mean ratio, or that of each group that differs.
pub(crate) fn claim(effect: &FactorEffect) -> String {
    let title = describe(&effect.response).title;
    let head = match &effect.levels {
        (Level::Switch(_), _) => {
            let name = words::level(effect.factor, &effect.levels.0);
            format!("{} against off", words::sentence(&name))
        }
        (level, other) => format!("{level} against {other}"),
    };
    let groups = effect.by_group.iter();
    let differing: Vec<String> = groups
        .filter(|(_, verdict, _)| *verdict == Verdict::Differs)
        .map(|(group, _, ratio)| {
            format!("{} with {}", words::estimate(ratio), effect.groups[*group])
        })
        .collect();
    match differing.is_empty() {
        true => format!("{head}: {title} × {}.", words::estimate(&effect.ratio())),
        false => format!(
            "{head}: {title} × {}{}.",
            words::list(&differing),
            others(effect)
        ),
    }
}

/// What is said of groups that do not differ.
fn others(effect: &FactorEffect) -> String {
    let count = effect.by_group.len();
    let open = effect.by_group.iter();
    let open = open
        .filter(|(_, verdict, _)| *verdict != Verdict::Differs)
        .count();
    match open {
        0 => String::new(),
        _ => format!("; not decided or the same for {open} of {count}"),
    }
}

fn turns_about(effect: &FactorEffect) -> bool {
    let groups = effect.by_group.iter();
    let differing = groups.filter(|(_, verdict, _)| *verdict == Verdict::Differs);
    let signs: Vec<bool> = differing.map(|(.., ratio)| ratio.value > 1.0).collect();
    signs.contains(&true) && signs.contains(&false)
}

fn explanation(effect: &FactorEffect) -> String {
    let pairs = number::counted(effect.effect.pairs, "pair");
    let turn = match turns_about(effect) {
        true => {
            " The effect changes direction: what helps some cells harms others, so no single setting is \
             right for all."
        }
        false => "",
    };
    format!(
        "From {pairs} of trials of the same block that differ only in this; no distribution is assumed, \
         and all claims of this report share an error of 5 %.{turn}"
    )
}

fn evidence(effect: &FactorEffect) -> EvidenceList {
    let piece = |what: String, estimate| Evidence {
        what,
        estimate,
        trials: effect.trials.clone(),
    };
    let first = piece(format!("mean ratio: {}", effect.what()), effect.ratio());
    let groups = effect
        .by_group
        .iter()
        .map(|(group, _, ratio)| piece(format!("ratio with {}", effect.groups[*group]), *ratio));
    EvidenceList::new(first, groups.collect())
}
