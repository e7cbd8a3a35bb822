//! What a switch or a word changes, where that is decided.
//!
//! A finding is made of each factor with an effect of `verdicts` that differs by more than what matters, with
//! the experiments that show it. Where the effect is not the same for all sizes it is told for each: an
//! option may help small messages and harm large ones.

use linerate_model::experiment::Level;
use linerate_model::finding::{Estimate, Evidence, EvidenceList, Verdict};
use linerate_model::number;
use linerate_model::response::Better;
use linerate_model::unit::Unit;

use super::found::{About, Found, What};
use crate::dataset::Dataset;
use crate::reduce::describe;
use crate::verdicts::{Basis, FactorEffect};
use crate::words;

pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let effects = dataset.verdicts().effects.iter();
    let mut shown: Vec<&FactorEffect> = effects
        .filter(|effect| effect.verdict == Verdict::Differs && matters(effect))
        .filter(|effect| !is_inflicted(dataset, effect))
        .collect();
    let mut causes: Vec<Vec<&FactorEffect>> = Vec::new();
    // What is largest comes first.
    let size = |effect: &FactorEffect| distance(&largest(effect));
    while let Some(at) = (0..shown.len()).max_by(|a, b| size(shown[*a]).total_cmp(&size(shown[*b])))
    {
        let effect = shown.remove(at);
        let is_same = |own: &&mut Vec<&FactorEffect>| {
            own[0].factor == effect.factor && own[0].levels == effect.levels
        };
        match causes.iter_mut().find(is_same) {
            Some(own) => own.push(effect),
            None => causes.push(vec![effect]),
        }
    }
    causes
        .iter()
        .filter_map(|own| finding(dataset, own))
        .collect()
}

/// Returns the finding of a cause, which lies with the experiment that shows it most.
fn finding<'d>(dataset: &'d Dataset<'_>, effects: &[&'d FactorEffect]) -> Option<Found<'d>> {
    let plan = &dataset.recording.document.plan;
    let (first, others) = effects.split_first()?;
    let experiment = plan.experiment(&first.experiment)?;
    let claim = match others {
        [] => claim(first),
        _ => {
            let one = |effect: &&FactorEffect| {
                let title = &plan.experiment(&effect.experiment)?.title;
                Some(format!("{} in {title}", change(effect)))
            };
            let all: Vec<String> = effects.iter().filter_map(one).collect();
            format!("{}: {}.", head(first), all.join("; "))
        }
    };
    let mut pieces = effects.iter().flat_map(|effect| evidence(effect));
    let evidence = EvidenceList::new(pieces.next()?, pieces.collect());
    Some(Found {
        about: About::Experiment(experiment),
        what: What::Effect(first),
        claim,
        explanation: explanation(effects),
        effect: largest(first),
        evidence,
        action: None,
    })
}

/// Returns how far a ratio is from none.
fn distance(ratio: &Estimate) -> f64 {
    ratio.value.ln().abs()
}

/// Whether a chapter of the study sees the effect on links of which it makes some lose: the mean of all says nothing
/// of the hosts as they are, and stands in the chapter's answer.
fn is_inflicted(dataset: &Dataset<'_>, effect: &FactorEffect) -> bool {
    let cells = dataset.cells_of(&effect.experiment);
    cells.iter().any(|cell| {
        cell.experiment.chapter.is_some() && cell.workload.link_loss_ppm.is_some_and(|ppm| ppm > 0)
    })
}

/// Returns whether the mean, or the effect of a group that differs, may be beyond the margin.
fn matters(effect: &FactorEffect) -> bool {
    let beyond = |ratio: &Estimate| distance(ratio) > (1.0 + effect.margin).ln();
    let groups = effect.by_group.iter();
    let mut differing = groups.filter(|(_, verdict, _)| *verdict == Verdict::Differs);
    if effect.by_group.is_empty() {
        beyond(&effect.ratio())
    } else {
        differing.any(|(.., ratio)| beyond(ratio))
    }
}

/// Returns the ratios that are claimed: of the groups that differ, else that of the mean.
fn claimed(effect: &FactorEffect) -> Vec<Estimate> {
    let groups = effect.by_group.iter();
    let differing = groups.filter(|(_, verdict, _)| *verdict == Verdict::Differs);
    let ratios: Vec<Estimate> = differing.map(|(.., ratio)| *ratio).collect();
    if ratios.is_empty() {
        vec![effect.ratio()]
    } else {
        ratios
    }
}

/// Returns the ratio that the finding is ranked by.
fn largest(effect: &FactorEffect) -> Estimate {
    let farther = |a: Estimate, b: Estimate| if distance(&b) < distance(&a) { a } else { b };
    let ratios = claimed(effect).into_iter();
    ratios.reduce(farther).unwrap_or_else(|| effect.ratio())
}

/// Returns the claim: the mean ratio, or that of each group that differs.
pub(crate) fn claim(effect: &FactorEffect) -> String {
    format!("{}: {}.", head(effect), change(effect))
}

fn head(effect: &FactorEffect) -> String {
    let head = match &effect.levels {
        (Level::Switch(_), _) => {
            let name = words::level(effect.factor, &effect.levels.0);
            format!("{} against off", words::sentence(&name))
        }
        (level @ (Level::Count(_) | Level::Size(_) | Level::Rate(_)), other) => {
            let level = words::level(effect.factor, level);
            let other = words::bare_level(effect.factor, other);
            words::sentence(&format!("{level} against {other}"))
        }
        (level, other) => words::sentence(&format!("{level} against {other}")),
    };
    let aliases = effect.aliases.iter().map(|alias| format!(", or {alias}"));
    let line = (effect.basis == Basis::Slopes).then(|| " on a line through all".to_owned());
    std::iter::once(head).chain(line).chain(aliases).collect()
}

fn change(effect: &FactorEffect) -> String {
    let title = describe(&effect.response).title;
    let groups = effect.by_group.iter();
    let differing: Vec<String> = groups
        .filter(|(_, verdict, _)| *verdict == Verdict::Differs)
        .map(|(group, _, ratio)| {
            format!("{} with {}", words::estimate(ratio), effect.groups[*group])
        })
        .collect();
    if differing.is_empty() && effect.turns() {
        let (least, most) = effect.effect.span;
        let number = |log: f64| words::number(Unit::Ratio, log.exp());
        format!(
            "{title} × {} on average, and × {} to × {} by what else varies",
            words::estimate(&effect.ratio()),
            number(least),
            number(most),
        )
    } else if differing.is_empty() {
        format!("{title} × {}", words::estimate(&effect.ratio()))
    } else {
        format!("{title} × {}{}", words::list(&differing), others(effect))
    }
}

/// What is said of groups that do not differ.
fn others(effect: &FactorEffect) -> String {
    let count = effect.by_group.len();
    let open = effect
        .by_group
        .iter()
        .filter(|(_, verdict, _)| *verdict != Verdict::Differs)
        .count();
    match open {
        0 => String::new(),
        _ => format!("; not decided or the same for {open} of {count}"),
    }
}

/// Whether what is better somewhere is worse elsewhere, of responses of which more or less is better.
fn turns_about(effects: &[&FactorEffect]) -> bool {
    let better = |effect: &&FactorEffect| {
        let Some(better) = Better::of(&effect.response) else {
            return Vec::new();
        };
        let ratios = claimed(effect).into_iter();
        ratios.map(|ratio| better.is_gain(ratio.value)).collect()
    };
    let signs: Vec<bool> = effects.iter().flat_map(better).collect();
    effects.iter().any(|effect| effect.turns()) || signs.contains(&true) && signs.contains(&false)
}

fn explanation(effects: &[&FactorEffect]) -> String {
    let of = |basis: Basis, noun: &str| {
        let own = effects.iter().filter(|effect| effect.basis == basis);
        let count: usize = own.map(|effect| effect.effect.pairs).sum();
        (count > 0).then(|| number::counted(count, noun))
    };
    let alone = "of the same block that differ only in this";
    let pairs = [
        of(Basis::Pairs, "pair").map(|count| format!("{count} of trials {alone}")),
        of(Basis::WholePlots, "pair").map(|count| format!("{count} of whole plots {alone}")),
        of(Basis::Blocks, "block").map(|count| {
            format!("{count}, in each the trials at one level against those at the other, over which all else is balanced")
        }),
        of(Basis::Slopes, "block").map(|count| {
            format!("{count}, in each a line through all its trials, whose other levels were combined at random")
        }),
    ];
    let pairs: Vec<String> = pairs.into_iter().flatten().collect();
    let pairs = words::list(&pairs);
    let turn = if turns_about(effects) {
        " The effect changes direction: what helps some traffic harms other, so no single setting is \
             right for all."
    } else {
        ""
    };
    let alias = if effects.iter().all(|effect| effect.aliases.is_empty()) {
        ""
    } else {
        " The combinations that were measured cannot tell which of those named it is: measure them with this factor and \
         those in all combinations (kind = \"full\")."
    };
    let by_signs = |effect: &&FactorEffect| effect.effect.rests_on_signs(effect.alpha);
    let assumed = if !effects.iter().all(by_signs) {
        "signs of so few cannot say enough, so that a normal distribution is assumed where all agree"
    } else if effects.iter().all(|effect| effect.by_group.is_empty()) {
        "no distribution is assumed"
    } else {
        "no distribution is assumed of the mean, a normal one of single levels"
    };
    format!(
        "From {pairs}; {assumed}, and all claims of a difference in this report share an error of 5 %.{turn}{alias}"
    )
}

fn evidence(effect: &FactorEffect) -> Vec<Evidence> {
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
    std::iter::once(first).chain(groups).collect()
}
