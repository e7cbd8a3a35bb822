//! What the comparisons of a report decide, all together.
//!
//! A study compares dozens of things. Each with an error of 5 % of its own would make a false claim
//! in most studies, so that the claims of a report share one error of 5 % (Holm 1979, with weights:
//! Benjamini and Hochberg 1997). The family is fixed by the plan, not by the data:
//!
//! 1. *Effects*: of each experiment, each factor with words or switches for levels (Nagle, delayed
//!    ACK, a congestion control, a direction) and losses that are made, each level against the first, on the experiment's
//!    response. The first factor of an experiment is its question and has weight 1, others
//!    [`SECOND_WEIGHT`]. Where an experiment splits requests, the stall is its question, which has a
//!    rule of its own (`diagnose::nagle_delayed_ack`). Of a fraction and of a Latin hypercube each factor, with weight 1.
//! 2. *Plateaus*, of a response of which more is better: of each group of cells that differ in the socket buffer only, or in
//!    another scale of which the experiment asks what suffices, whether any level differs from the control, with weight
//!    [`PLATEAU_WEIGHT`]: its noise is small, its effects are large.
//!
//! Rules that claim something of their own, without a comparison, have [`ASIDE`] of the error each.
//!
//! Claims on single levels are made only below an effect whose interaction is shown, with the same
//! error (a gate). That two are the same, or that a buffer suffices, is shown with 5 % each: such a statement is false only
//! where they differ by more than the margin. Each verdict is *differs*, *same* within a margin, or *not decided*, with the
//! replicates that would decide it.

/// What a plan can decide before it runs.
pub mod power;

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, DesignKind, Experiment, Factor, Level, joined_titles};
use linerate_model::finding::{Comparison, Estimate, Verdict};
use linerate_model::fraction::Fraction;
use linerate_model::response::Better;
use linerate_model::unit::Unit;

use crate::compare::covariate::Slope;
use crate::compare::effect::{Difference, Effect, PAIRS_MIN};
use crate::compare::interval::further;
use crate::compare::line::slope;
use crate::compare::plateau::{Plateau, Steps, plateau};
use crate::dataset::{CellOutcomes, Dataset, groups, varied};
use crate::reduce::{Outcome, describe, name};
use crate::words;

/// Error of all claims of a report together.
pub(crate) const ALPHA: f64 = 0.05;
/// Of it, what each of the [`ASIDES`] rules has that claim something without a comparison: where both ends of a flow ran,
/// and how evenly queues are used.
pub(crate) const ASIDE: f64 = 0.05 * ALPHA;
const ASIDES: f64 = 2.0;
/// Of it, what comparisons share.
const OF_COMPARISONS: f64 = ALPHA - ASIDES * ASIDE;
/// Weight of the factors of an experiment after its first.
const SECOND_WEIGHT: f64 = 0.25;
/// Weight of a plateau.
const PLATEAU_WEIGHT: f64 = 0.1;
/// Two-sided error of an interval that must lie within the margins for "same" (two one-sided tests
/// of 5 %).
const SAME_ALPHA: f64 = 0.1;
/// Valid replicates below which an interval says little: t(1) = 12.7, t(2) = 4.3. Of two stands their range.
pub(crate) const REPLICATES_MIN: usize = 3;
/// Share of the error that a look before the end may spend.
const INTERIM_SHARE: f64 = 0.1;
/// Error from which on an interaction, with whatever else varies, forbids to say "same" of a mean, or to take it for all.
const MIXED_ALPHA: f64 = 0.05;

/// Returns the relative difference that matters of a response whose values are about `value`.
fn margin(dataset: &Dataset<'_>, response: &str, value: f64) -> f64 {
    let margins = dataset.recording.document.plan.margins;
    margins.of(describe(response).unit, value)
}

/// What the differences of an effect are of: each stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Two trials of a block that differ in the factor only.
    Pairs,
    /// Two whole plots of a block that differ in the factor only.
    WholePlots,
    /// All trials of a block: half of them at one level, half at the other, and each other factor balanced in both.
    Blocks,
    /// A line through all trials of a block, from the least level to the greatest, with a slope for each factor.
    Slopes,
}

/// What a factor changes in an experiment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FactorEffect {
    /// The experiment's name.
    pub(crate) experiment: String,
    /// The factor.
    pub(crate) factor: Factor,
    /// The level that the ratio is of, and the one that it is over.
    pub(crate) levels: (Level, Level),
    /// What is compared.
    pub(crate) response: String,
    /// What its differences are of.
    pub(crate) basis: Basis,
    /// The interactions, in words, that it cannot be told from: each may be what differs, and they may cancel it.
    pub(crate) aliases: Vec<String>,
    /// The statistics.
    pub(crate) effect: Effect,
    /// What it decides.
    pub(crate) verdict: Verdict,
    /// The error that it was left with.
    pub(crate) alpha: f64,
    /// The relative difference that matters.
    pub(crate) margin: f64,
    /// The groups of the other levels by number, in words.
    pub(crate) groups: Vec<String>,
    /// Where the effect is not the same in all groups: group, verdict, ratio.
    pub(crate) by_group: Vec<(usize, Verdict, Estimate)>,
    /// The trials behind it.
    pub(crate) trials: Vec<TrialId>,
    weight: f64,
}

impl FactorEffect {
    /// Returns the ratio with the interval that goes with the verdict.
    pub(crate) fn ratio(&self) -> Estimate {
        let alpha = match self.verdict {
            Verdict::Same => SAME_ALPHA,
            Verdict::Differs | Verdict::NotDecided => self.alpha,
        };
        let ends = self.effect.interval(alpha);
        ratio(self.effect.log, ends, alpha, self.effect.pairs)
    }

    /// Returns whether it is the same as a mean only: of a single level that is not shown.
    pub(crate) fn is_on_average(&self) -> bool {
        let is_mean =
            !self.by_group.is_empty() || matches!(self.basis, Basis::Blocks | Basis::Slopes);
        self.verdict == Verdict::Same && is_mean
    }

    /// Returns whether its mean hides that it turns about with what else varies, by something else than its groups.
    pub(crate) fn turns(&self) -> bool {
        self.by_group.is_empty() && self.effect.turns(MIXED_ALPHA)
    }

    /// Returns whether the interval that misses the effect with probability `alpha` lies within the
    /// margins.
    fn is_within(&self, alpha: f64) -> bool {
        let margin = (1.0 + self.margin).ln();
        let (low, high) = self.effect.interval(alpha);
        low > -margin && high < margin
    }

    /// Returns what is compared, in words.
    pub(crate) fn what(&self) -> String {
        what(&self.named(), self.basis, &self.aliases)
    }

    /// Returns the further replicates that would decide it.
    fn more(&self, replicates: u32) -> Option<u32> {
        if self.verdict != Verdict::NotDecided {
            return None;
        }
        // Decided when the interval leaves either zero or a margin outside.
        let margin = (1.0 + self.margin).ln();
        let wanted = (self.effect.log.abs() - margin).abs().max(margin / 2.0);
        let replicates = f64::from(replicates);
        Some(further(|more| {
            let times = (replicates + f64::from(more)) / replicates;
            self.effect.half_width(SAME_ALPHA, times) <= wanted
        }))
    }
}

/// A comparison of which nothing can be said: its pairs are too few, or a cell has no ratio.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FewPairs {
    factor: Factor,
    levels: (Level, Level),
    basis: Basis,
    aliases: Vec<String>,
    experiment: String,
    response: String,
    margin: f64,
    pairs: usize,
    /// The mean ratio, or that of the sums where a cell has none.
    ratio: f64,
    /// Whether all cells have values above zero. What is left without one that has not is not what was drawn.
    has_ratios: bool,
}

impl FewPairs {
    fn comparison(&self, replicates: u32) -> Comparison {
        let pairs = self.pairs;
        // As many pairs as there were in a replicate.
        let needed = PAIRS_MIN as f64 * f64::from(replicates) / pairs as f64;
        let more = (needed.ceil() as u32).saturating_sub(replicates).max(1);
        let of = Named::of(self.factor, &self.levels, &self.response);
        Comparison {
            id: format!("{}/effect/{}", self.experiment, of.id()),
            experiment: self.experiment.clone(),
            is_plateau: false,
            what: what(&of, self.basis, &self.aliases),
            aliases: self.aliases.clone(),
            verdict: Verdict::NotDecided,
            effect: Estimate {
                n: pairs as u32,
                ..Estimate::point(self.ratio, Unit::Ratio)
            },
            margin: self.margin,
            more: self.has_ratios.then_some(more),
            levels: Vec::new(),
        }
    }
}

/// Levels of a scale against the control: how large a socket buffer must be, how many CPUs are worth having.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScalePlateau {
    /// The experiment's name.
    pub(crate) experiment: String,
    /// The scale.
    pub(crate) factor: Factor,
    /// The number of its group of cells in the experiment, from 1.
    group: usize,
    /// The other levels, as the group's cells have them.
    pub(crate) others: Cell,
    /// The same in words; empty where nothing else varies.
    pub(crate) words: String,
    /// The levels, ascending.
    pub(crate) levels: Vec<Level>,
    /// What they are held against; the largest level where the host was not measured as it is.
    pub(crate) control: Level,
    /// The statistics.
    pub(crate) plateau: Plateau,
    /// The error that its claims were left with.
    pub(crate) alpha: f64,
    /// Whether any level is shown to differ.
    pub(crate) differs: bool,
    weight: f64,
}

impl ScalePlateau {
    /// Returns whether the control is the host as it is.
    pub(crate) fn is_against_host(&self) -> bool {
        self.control.as_number().is_none()
    }

    /// Returns the other levels in words behind `before`; nothing where nothing else varies.
    pub(crate) fn with(&self, before: &str) -> String {
        if self.words.is_empty() {
            String::new()
        } else {
            format!("{before}{}", self.words)
        }
    }

    /// Returns the ratio of a level to the control; its interval holds for all levels together.
    pub(crate) fn ratio(&self, at: usize) -> Estimate {
        let (low, high) = self.plateau.interval(at, self.alpha);
        let step = &self.plateau.steps[at];
        ratio(step.log, (low, high), self.alpha, step.blocks)
    }

    /// Returns whether a level is shown to lose.
    pub(crate) fn loses(&self, at: usize) -> bool {
        self.differs && self.plateau.loses(at, self.alpha)
    }

    /// Returns the level that is shown to gain more than matters against the host as it is.
    pub(crate) fn gains(&self) -> Option<usize> {
        self.best().filter(|_| self.is_against_host())
    }

    /// Returns the level that is shown to do better than the control by more than matters.
    pub(crate) fn best(&self) -> Option<usize> {
        self.plateau.gains(self.alpha).filter(|_| self.differs)
    }

    /// Returns whether a level is shown to do better by more than matters.
    pub(crate) fn does_better(&self, at: usize) -> bool {
        self.differs && self.plateau.is_beyond(at, self.alpha)
    }

    /// Returns the first level of those at the upper end that the plateau has not.
    pub(crate) fn ends_before(&self) -> Option<usize> {
        let levels = self.levels.len();
        (self.plateau.fallen > 0).then(|| levels - self.plateau.fallen)
    }

    /// Returns the same where all of them are shown to lose more than matters.
    pub(crate) fn falls_from(&self) -> Option<usize> {
        let lost = (1.0 - self.plateau.delta).ln();
        let is_claimed = |at| self.plateau.interval(at, self.alpha).1 < lost;
        let end = self.ends_before().filter(|_| self.differs);
        end.filter(|end| (*end..self.levels.len()).all(is_claimed))
    }

    /// Returns what it decides: whether all levels do as well as the control.
    pub(crate) fn verdict(&self) -> Verdict {
        let differs = |at| self.loses(at) || self.does_better(at);
        let mut levels = 0..self.levels.len();
        match () {
            () if levels.clone().all(|at| self.plateau.is_same(at)) => Verdict::Same,
            () if levels.any(differs) => Verdict::Differs,
            () => Verdict::NotDecided,
        }
    }
}

/// All verdicts of a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Verdicts {
    /// Factors with words or switches.
    pub(crate) effects: Vec<FactorEffect>,
    /// Scales of which the smallest level that suffices is asked for.
    pub(crate) plateaus: Vec<ScalePlateau>,
    /// What has too few pairs for either, or no ratio.
    few: Vec<FewPairs>,
}

impl Verdicts {
    /// Returns the effects of an experiment.
    pub(crate) fn effects_of(&self, experiment: &str) -> impl Iterator<Item = &FactorEffect> {
        let own = move |effect: &&FactorEffect| effect.experiment == experiment;
        self.effects.iter().filter(own)
    }

    /// Returns the plateaus of an experiment.
    pub(crate) fn plateaus_of(&self, experiment: &str) -> impl Iterator<Item = &ScalePlateau> {
        let own = move |plateau: &&ScalePlateau| plateau.experiment == experiment;
        self.plateaus.iter().filter(own)
    }

    /// Returns those of socket buffers.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &ScalePlateau> {
        let is_buffer = |plateau: &&ScalePlateau| plateau.factor == Factor::SocketBuffer;
        self.plateaus.iter().filter(is_buffer)
    }
}

/// Returns what the comparisons of `dataset` decide.
pub(crate) fn decide(dataset: &Dataset<'_>) -> Verdicts {
    let all = dataset.experiments().iter();
    // Levels that were measured one after the other say what their answer says, and pairs of hosts are no treatments.
    let has_own = |it: &&Experiment| !it.is_adaptive() && it.pairs.is_none();
    let experiments: Vec<&Experiment> = all.filter(has_own).collect();
    let mut few = Vec::new();
    let effects = experiments
        .iter()
        .flat_map(|experiment| effects(dataset, experiment, &mut few))
        .collect();
    let mut verdicts = Verdicts {
        effects,
        few,
        plateaus: experiments
            .iter()
            .flat_map(|experiment| plateaus(dataset, experiment))
            .collect(),
    };
    let claims = verdicts
        .effects
        .iter()
        .map(|effect| (effect.effect.p(), effect.weight))
        .chain(verdicts.plateaus.iter().map(|it| (it.plateau.p, it.weight)));
    let shares = holm(&claims.collect::<Vec<_>>());
    let (of_effects, of_plateaus) = shares.split_at(verdicts.effects.len());
    for (effect, (alpha, rejected)) in verdicts.effects.iter_mut().zip(of_effects) {
        judge(effect, *alpha, *rejected);
    }
    for (plateau, (alpha, rejected)) in verdicts.plateaus.iter_mut().zip(of_plateaus) {
        (plateau.alpha, plateau.differs) = (*alpha, *rejected);
    }
    verdicts
}

/// Returns the names of the experiments that more replicates may still decide.
///
/// Whoever looks after every block and stops at the first verdict errs more often than in 5 % of all
/// reports. A look before the end therefore asks for [`INTERIM_SHARE`] of the error, and leaves the
/// last one, which has all of it, nearly untouched (Haybittle 1971, Peto and others 1976). An effect that
/// shows as an interaction alone may have too few permutations for so little error: it stays open. So does
/// an experiment with a cell that has too few trials for an interval, or a comparison of too few pairs.
pub(crate) fn open(dataset: &Dataset<'_>) -> Vec<String> {
    let verdicts = dataset.verdicts();
    let is_open = |effect: &FactorEffect| match effect.verdict {
        Verdict::NotDecided => true,
        Verdict::Differs => effect.effect.p() > INTERIM_SHARE * effect.alpha,
        Verdict::Same => !effect.is_within(INTERIM_SHARE * SAME_ALPHA),
    };
    let is_curve_open = |curve: &ScalePlateau| match curve.verdict() {
        Verdict::NotDecided => true,
        // That one loses does not tell where the plateau begins.
        Verdict::Differs => {
            curve.plateau.p > INTERIM_SHARE * curve.alpha || curve.plateau.more.is_some()
        }
        Verdict::Same => !curve.plateau.all_same(INTERIM_SHARE),
    };
    let effects = verdicts.effects.iter().filter(|effect| is_open(effect));
    let curves = verdicts
        .plateaus
        .iter()
        .filter(|curve| is_curve_open(curve));
    let effects = effects.map(|effect| &effect.experiment);
    let few = dataset.cells.iter();
    let few = few.filter(|cell| !cell.valid.is_empty() && has_few_replicates(cell));
    let open: BTreeSet<&String> = effects
        .chain(curves.map(|curve| &curve.experiment))
        .chain(few.map(|cell| &cell.experiment.name))
        .chain(verdicts.few.iter().map(|few| &few.experiment))
        .collect();
    open.into_iter().cloned().collect()
}

/// Returns whether `cell` has fewer valid trials than say something of it. Those of a Latin hypercube, which are seldom the same
/// in two blocks, are not looked at alone.
pub(crate) fn has_few_replicates(cell: &CellOutcomes<'_>) -> bool {
    cell.experiment.design != DesignKind::LatinHypercube && cell.valid.len() < REPLICATES_MIN
}

/// Returns the verdicts as data, in the order of the plan.
pub(crate) fn comparisons(dataset: &Dataset<'_>) -> Vec<Comparison> {
    let verdicts = dataset.verdicts();
    let of_experiment = |experiment: &Experiment| {
        let name = experiment.name.clone();
        let replicates = replicates(dataset, &name);
        let effects = verdicts
            .effects_of(&experiment.name)
            .map(move |effect| Comparison {
                id: effect.comparison_id(),
                experiment: effect.experiment.clone(),
                is_plateau: false,
                what: effect.what(),
                aliases: effect.aliases.clone(),
                verdict: effect.verdict,
                effect: effect.ratio(),
                margin: effect.margin,
                more: effect.more(replicates),
                levels: effect
                    .by_group
                    .iter()
                    .map(|(group, verdict, ratio)| {
                        (effect.groups[*group].clone(), *verdict, *ratio)
                    })
                    .collect(),
            });
        let plateaus = verdicts
            .plateaus_of(&experiment.name)
            .map(|plateau| Comparison {
                id: plateau.comparison_id(),
                experiment: plateau.experiment.clone(),
                is_plateau: true,
                what: plateau.what(&experiment.response),
                aliases: Vec::new(),
                verdict: plateau.verdict(),
                effect: plateau.deciding(),
                margin: plateau.plateau.delta,
                more: plateau
                    .plateau
                    .more
                    .filter(|_| plateau.verdict() == Verdict::NotDecided),
                levels: plateau.by_level(),
            });
        let few = verdicts.few.iter();
        let few = few.filter(|few| few.experiment == experiment.name);
        let few = few.map(move |few| few.comparison(replicates));
        effects.chain(few).chain(plateaus).collect::<Vec<_>>()
    };
    dataset
        .experiments()
        .iter()
        .flat_map(of_experiment)
        .collect()
}

impl FactorEffect {
    fn comparison_id(&self) -> String {
        format!("{}/effect/{}", self.experiment, self.named().id())
    }

    fn named(&self) -> Named<'_> {
        Named::of(self.factor, &self.levels, &self.response)
    }
}

/// Returns what is compared, with what it cannot be told from.
fn what(of: &Named<'_>, basis: Basis, aliases: &[String]) -> String {
    let what = match basis {
        Basis::Slopes => format!("{} on a line through all", of.what()),
        Basis::Pairs | Basis::WholePlots | Basis::Blocks => of.what(),
    };
    match aliases {
        [] => what,
        _ => format!("{what}, or {}", aliases.join(", or ")),
    }
}

/// Two levels of a factor that are compared.
struct Named<'a> {
    factor: Factor,
    levels: &'a (Level, Level),
    response: &'a str,
}

impl<'a> Named<'a> {
    fn of(factor: Factor, levels: &'a (Level, Level), response: &'a str) -> Self {
        Self {
            factor,
            levels,
            response,
        }
    }

    fn id(&self) -> String {
        match self.levels.0 {
            Level::Switch(_) => self.factor.to_string(),
            ref level => format!("{}={level}", self.factor),
        }
    }

    fn what(&self) -> String {
        format!(
            "{}, {} over {}",
            describe(self.response).title,
            words::level(self.factor, &self.levels.0),
            words::bare_level(self.factor, &self.levels.1),
        )
    }
}

impl ScalePlateau {
    fn comparison_id(&self) -> String {
        let of = match self.factor {
            Factor::SocketBuffer => String::new(),
            factor => format!("{factor}/"),
        };
        format!("{}/plateau/{of}{}", self.experiment, self.group)
    }

    fn what(&self, response: &str) -> String {
        let with = self.with(" with ");
        let control = if self.is_against_host() {
            "autotuned buffers".to_owned()
        } else {
            words::level(self.factor, &self.control)
        };
        let title = describe(response).title;
        match self.factor {
            Factor::SocketBuffer => {
                format!("{title} of fixed buffers over that of {control}{with}")
            }
            factor => format!("{title} by {} over that of {control}{with}", factor.title()),
        }
    }

    fn by_level(&self) -> Vec<(String, Verdict, Estimate)> {
        let levels = self.levels.iter().enumerate();
        let line = |(at, level): (usize, &Level)| {
            let level = words::bare_level(self.factor, level);
            let (verdict, ratio) = self.told(at);
            (level, verdict, ratio)
        };
        levels.map(line).collect()
    }

    /// Returns the ratio of the first level that has the verdict of all.
    fn deciding(&self) -> Estimate {
        let verdict = self.verdict();
        let mut levels = (0..self.levels.len()).map(|at| self.told(at));
        let deciding = levels.find(|(of_level, _)| *of_level == verdict);
        deciding.map_or_else(|| self.told(0).1, |(_, ratio)| ratio)
    }

    /// Returns the verdict on a level, and its ratio with the interval that goes with that.
    fn told(&self, at: usize) -> (Verdict, Estimate) {
        if self.does_better(at) {
            return (Verdict::Differs, self.ratio(at));
        }
        if self.plateau.suffices(at) {
            let step = &self.plateau.steps[at];
            let (log, interval, alpha) = self.plateau.deciding(at);
            let verdict = if self.plateau.is_same(at) {
                Verdict::Same
            } else {
                // It loses no more than matters, and may gain that.
                Verdict::NotDecided
            };
            return (verdict, ratio(log, interval, alpha, step.blocks));
        }
        if self.loses(at) {
            (Verdict::Differs, self.ratio(at))
        } else {
            (Verdict::NotDecided, self.ratio(at))
        }
    }
}

/// Returns the most blocks that a cell of an experiment has a valid trial of.
fn replicates(dataset: &Dataset<'_>, experiment: &str) -> u32 {
    let blocks = |cell: &&CellOutcomes<'_>| {
        let blocks: BTreeSet<u32> = cell.valid.iter().map(|own| own.replicate).collect();
        blocks.len()
    };
    let cells = dataset.cells_of(experiment);
    cells.iter().map(blocks).max().unwrap_or(0) as u32
}

/// Returns, for each claim of p-value and weight, the error that it may have and whether it stands.
///
/// Claims are taken by p / w. The one taken may err with α w / W, W being the weight of those not
/// taken yet; the first that does not stand ends it, and those after it are left with what their
/// weight gives them then.
fn holm(claims: &[(f64, f64)]) -> Vec<(f64, bool)> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by(|a, b| {
        let key = |at: &usize| claims[*at].0 / claims[*at].1;
        key(a).total_cmp(&key(b))
    });
    let mut shares = vec![(0.0, false); claims.len()];
    let mut weight: f64 = claims.iter().map(|(_, weight)| weight).sum();
    let mut stands = true;
    for at in order {
        let (p, own) = claims[at];
        let alpha = (OF_COMPARISONS * own / weight).min(OF_COMPARISONS);
        stands &= p <= alpha;
        shares[at] = (alpha, stands);
        if stands {
            weight -= own;
        }
    }
    shares
}

fn judge(found: &mut FactorEffect, alpha: f64, rejected: bool) {
    found.alpha = alpha;
    let twice = (1.0 + 2.0 * found.margin).ln();
    let mixed = found.effect.is_mixed(MIXED_ALPHA, twice);
    let interaction = rejected && found.effect.is_interaction(alpha);
    if interaction {
        found.by_group = by_group(found, alpha);
    }
    let shown = found
        .by_group
        .iter()
        .any(|(_, verdict, _)| *verdict == Verdict::Differs);
    found.verdict = match () {
        () if found.is_within(SAME_ALPHA) && !mixed => Verdict::Same,
        () if rejected && (found.effect.is_main(alpha) || shown) => Verdict::Differs,
        () => Verdict::NotDecided,
    };
    if found.verdict == Verdict::Same {
        // All must be, each of them by the same error: no level is claimed of several.
        let levels = by_group(found, SAME_ALPHA * found.groups.len() as f64);
        let is_same = |(_, verdict, _): &(usize, Verdict, Estimate)| *verdict == Verdict::Same;
        let are_all = levels.iter().all(is_same);
        // That a level differs is no claim of the family's.
        let open = |(group, verdict, ratio)| match verdict {
            Verdict::Same => (group, verdict, ratio),
            _ => (group, Verdict::NotDecided, ratio),
        };
        found.by_group = if are_all {
            Vec::new()
        } else {
            levels.into_iter().map(open).collect()
        };
    }
}

fn by_group(found: &FactorEffect, alpha: f64) -> Vec<(usize, Verdict, Estimate)> {
    let margin = (1.0 + found.margin).ln();
    let each = alpha / found.groups.len().max(1) as f64;
    let levels = found.effect.levels(alpha).into_iter();
    let line = |(group, pairs, log, (low, high)): (usize, usize, f64, (f64, f64))| {
        let verdict = match () {
            () if low > -margin && high < margin => Verdict::Same,
            () if low > 0.0 || high < 0.0 => Verdict::Differs,
            () => Verdict::NotDecided,
        };
        (group, verdict, ratio(log, (low, high), each, pairs))
    };
    levels.map(line).collect()
}

/// Returns the ratio of a logarithm and of those of its ends, which miss it with probability `alpha`.
pub(crate) fn ratio(log: f64, (low, high): (f64, f64), alpha: f64, n: usize) -> Estimate {
    Estimate {
        value: log.exp(),
        low: Some(low.exp()),
        high: Some(high.exp()),
        confidence: 1.0 - alpha,
        n: n as u32,
        unit: Unit::Ratio,
    }
}

/// Returns the effects of the factors of an experiment that the family has.
fn effects(
    dataset: &Dataset<'_>,
    experiment: &Experiment,
    few: &mut Vec<FewPairs>,
) -> Vec<FactorEffect> {
    let compared = Compared::of(dataset, experiment);
    if let Some((fraction, factors)) = experiment.fraction() {
        return contrasts(&compared, &fraction, &factors, few);
    }
    if experiment.design == DesignKind::LatinHypercube {
        return slopes(&compared, few);
    }
    let (cells, varied) = (&compared.cells, &compared.varied);
    if varied.contains(&Factor::RequestWrites) {
        return Vec::new();
    }
    let named = |factor: &&Factor| {
        let levels = cells.iter().filter_map(|cell| cell.level(**factor));
        !experiment.asks_what_suffices(**factor)
            && levels.clone().count() > 0
            && levels
                .into_iter()
                .all(|level| factor.compares_by_name(level))
    };
    let order: Vec<Factor> = experiment
        .factors
        .iter()
        .map(|(factor, _)| *factor)
        .collect();
    let mut named: Vec<Factor> = varied.iter().filter(named).copied().collect();
    named.sort_by_key(|factor| order.iter().position(|known| known == factor));
    let mut found = Vec::new();
    for (at, factor) in named.iter().enumerate() {
        let weight = if at == 0 { 1.0 } else { SECOND_WEIGHT };
        for compared in of_factor(&compared, *factor, weight) {
            match compared {
                Ok(effect) => found.push(effect),
                Err(pairs) => few.push(*pairs),
            }
        }
    }
    found
}

/// Returns the main effects of a fraction.
///
/// No two of its cells differ in one factor only. What is compared are, in each block, the trials at one level and those at
/// the other, in which each other factor has both levels equally often.
fn contrasts(
    compared: &Compared<'_, '_>,
    fraction: &Fraction,
    factors: &[Vec<Factor>],
    few: &mut Vec<FewPairs>,
) -> Vec<FactorEffect> {
    // Without one of its cells the others are balanced no longer.
    if compared.cells.len() != fraction.cells().len() {
        return Vec::new();
    }
    let title = |at: usize| joined_titles(&factors[at]);
    let mut found = Vec::new();
    for (at, group) in factors.iter().enumerate() {
        let levels = |factor: &Factor| match compared.experiment.levels(*factor) {
            [Level::Switch(_), Level::Switch(_)] => {
                Some((Level::Switch(true), Level::Switch(false)))
            }
            [first, second] if first != second => Some((second.clone(), first.clone())),
            _ => None,
        };
        let Some((factor, levels)) = group.iter().find_map(|one| Some((*one, levels(one)?))) else {
            continue;
        };
        let aliases = fraction.aliases(at).into_iter();
        let aliases = aliases.map(|(one, other)| format!("{} × {}", title(one), title(other)));
        let aliases: Vec<String> = aliases.collect();
        // Each factor is as much of the question as the others.
        match compare(compared, factor, levels, 1.0) {
            Some(Ok(effect)) => found.push(FactorEffect { aliases, ..effect }),
            Some(Err(pairs)) => few.push(FewPairs { aliases, ..*pairs }),
            None => {}
        }
    }
    found
}

/// A trial of a block: its levels, its value, and which it is.
type Point<'c> = (&'c Cell, f64, TrialId);

/// Returns how the response of a Latin hypercube follows each factor.
///
/// Each block gives one slope: of the logarithms of the response along those of the levels, beside all other factors. A block's orders
/// of levels are as likely backwards, so that the slopes of a factor without effect have either sign alike, however the others bend the
/// response: they decide as pairs do.
fn slopes(compared: &Compared<'_, '_>, few: &mut Vec<FewPairs>) -> Vec<FactorEffect> {
    let experiment = compared.experiment;
    let place = |factor: Factor, cell: &Cell| Some(cell.get(&factor)?.as_number()?.ln());
    let varied = experiment.factor_groups().into_iter();
    let varied: Vec<(Factor, (Level, Level))> = varied
        .filter_map(|group| {
            let factor = *group.first()?;
            let levels = experiment.levels(factor);
            let (least, most) = (levels.first()?, levels.last()?);
            (least != most).then(|| (factor, (most.clone(), least.clone())))
        })
        .collect();
    let mut blocks: BTreeMap<(u32, bool), Vec<Point<'_>>> = BTreeMap::new();
    for cell in &compared.cells {
        for outcome in &cell.valid {
            if let Some(value) = compared.value(outcome).filter(|value| *value > 0.0) {
                let own = blocks.entry(outcome.block()).or_default();
                own.push((&cell.cell, value, outcome.trial));
            }
        }
    }
    let all = blocks.values().flatten();
    let sum: f64 = all.clone().map(|(_, value, _)| value).sum();
    let count = all.clone().count();
    let mut trials: Vec<TrialId> = all.map(|(.., trial)| *trial).collect();
    trials.sort_unstable();
    let mut found = Vec::new();
    for (factor, levels) in &varied {
        let column = |factor: Factor, own: &[Point<'_>]| {
            let places = own.iter().map(|(cell, ..)| place(factor, cell));
            places.collect::<Option<Vec<f64>>>()
        };
        let width = levels.0.as_number().zip(levels.1.as_number());
        let width = width.map_or(0.0, |(most, least)| (most / least).ln());
        let slope = |(block, own): (&(u32, bool), &Vec<Point<'_>>)| {
            let others = varied.iter().filter(|(other, _)| other != factor);
            let others = others.map(|(other, _)| column(*other, own));
            let others = others.collect::<Option<Vec<_>>>()?;
            let values: Vec<f64> = own.iter().map(|(_, value, _)| value.ln()).collect();
            let slope = slope(&column(*factor, own)?, &others, &values)?;
            Some(Difference {
                group: 0,
                cell: 0,
                block: block.0,
                log: slope * width,
                sum: 0.0,
            })
        };
        let differences: Vec<Difference> = blocks.iter().filter_map(slope).collect();
        if differences.is_empty() {
            continue;
        }
        let gathered = Gathered {
            factor: *factor,
            levels: levels.clone(),
            basis: Basis::Slopes,
            ratio: None,
            value: sum / count as f64,
            groups: vec![String::new()],
            trials: trials.clone(),
            weight: 1.0,
        };
        let effect = Effect::of(&differences, differences.len() as u64);
        match gathered.judged(compared, &differences, effect) {
            Ok(effect) => found.push(effect),
            Err(pairs) => few.push(*pairs),
        }
    }
    found
}

fn of_factor(
    compared: &Compared<'_, '_>,
    factor: Factor,
    weight: f64,
) -> Vec<Result<FactorEffect, Box<FewPairs>>> {
    let Compared {
        experiment, cells, ..
    } = compared;
    let present: BTreeSet<&Level> = cells.iter().filter_map(|cell| cell.level(factor)).collect();
    let declared = experiment.levels(factor).iter();
    let mut levels: Vec<Level> = declared
        .filter(|it| present.contains(it))
        .cloned()
        .collect();
    if levels.is_empty() {
        levels = present.into_iter().cloned().collect();
    }
    // What the hosts do by themselves is what the others are held against.
    if let (Factor::Congestion, Some(own)) = (factor, compared.dataset.own_congestion()) {
        levels.sort_by_key(|level| *level != Level::Word(own.to_owned()));
    }
    let pairs: Vec<(Level, Level)> = match levels.as_slice() {
        // A switch is told as on over off, whichever was written first.
        [Level::Switch(_), Level::Switch(_)] => vec![(Level::Switch(true), Level::Switch(false))],
        [first, more @ ..] => more.iter().map(|it| (it.clone(), first.clone())).collect(),
        [] => Vec::new(),
    };
    let share = 1.0 / pairs.len().max(1) as f64;
    pairs
        .into_iter()
        .filter_map(|levels| compare(compared, factor, levels, weight * share))
        .collect()
}

/// Returns what a factor changes, or that too few pairs say it; absent where none does.
fn compare(
    compared: &Compared<'_, '_>,
    factor: Factor,
    levels: (Level, Level),
    weight: f64,
) -> Option<Result<FactorEffect, Box<FewPairs>>> {
    let Compared {
        experiment,
        cells,
        varied,
        ..
    } = compared;
    let basis = match () {
        () if experiment.fraction().is_some() => Basis::Blocks,
        () if experiment.whole_plots.contains(&factor) => Basis::WholePlots,
        () => Basis::Pairs,
    };
    let by = match basis {
        Basis::Pairs => shown_by(cells, varied, factor),
        // Levels inside a whole plot share its noise.
        Basis::WholePlots => {
            shown_by(cells, varied, factor).filter(|by| experiment.whole_plots.contains(by))
        }
        Basis::Blocks | Basis::Slopes => None,
    };
    let mut groups: Vec<(Option<Level>, String)> = Vec::new();
    let mut plots: Vec<Cell> = Vec::new();
    let mut differences = Vec::new();
    let mut trials = Vec::new();
    let (mut sums, mut count, mut has_ratios) = ((0.0, 0.0), 0, true);
    for (number, (one, other)) in sides(compared, factor, &levels, basis).iter().enumerate() {
        let Some(cell) = one.first() else {
            continue;
        };
        let level = by.and_then(|by| cell.level(by).cloned());
        let group = groups.iter().position(|(known, _)| *known == level);
        let group = group.unwrap_or_else(|| {
            let word = by
                .zip(level.as_ref())
                .map(|(by, level)| words::level(by, level));
            groups.push((level.clone(), word.unwrap_or_default()));
            groups.len() - 1
        });
        let found = match (one.as_slice(), other.as_slice()) {
            ([cell], [other]) => compared.pairs(cell, other),
            _ => compared.blocks(one, other),
        };
        trials.extend(found.iter().flat_map(|pair| pair.trials.iter().copied()));
        let pairs: Vec<(u32, f64, f64)> = found.iter().map(|pair| pair.values).collect();
        let sum = |of: fn(&(u32, f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
        let (one, two) = (sum(|pair| pair.1), sum(|pair| pair.2));
        // A trial may have lost nothing. Where neither side ever did they are the same, and where one did there is no
        // ratio.
        if one <= 0.0 && two <= 0.0 {
            continue;
        }
        (sums, count) = ((sums.0 + one, sums.1 + two), count + pairs.len());
        has_ratios &= one > 0.0 && two > 0.0;
        // Logarithms are summed over the trials of a block.
        has_ratios &= basis != Basis::Blocks || pairs.iter().all(|it| it.1 > 0.0 && it.2 > 0.0);
        let mut plot = experiment.plot_of(&cell.cell);
        plot.remove(&factor);
        let known = plots.iter().position(|known| *known == plot);
        let plot = known.unwrap_or_else(|| {
            plots.push(plot);
            plots.len() - 1
        });
        let own = Difference::of_cells((group, number), &pairs).into_iter();
        differences.extend(own.map(|own| (plot, own)));
    }
    let within: Vec<Difference> = differences.iter().map(|(_, own)| *own).collect();
    let differences = match basis {
        Basis::WholePlots => Difference::of_plots(&differences),
        Basis::Pairs | Basis::Blocks | Basis::Slopes => within.clone(),
    };
    if sums.0 <= 0.0 || sums.1 <= 0.0 {
        return None;
    }
    let seed = differences.len() as u64;
    let effect = has_ratios.then(|| Effect::of(&differences, seed));
    let mut effect = effect.flatten();
    if let Some(effect) = effect.as_mut().filter(|_| basis == Basis::WholePlots) {
        effect.look_inside(&within, plots.len(), seed);
    }
    trials.sort_unstable();
    let gathered = Gathered {
        factor,
        levels,
        basis,
        ratio: (!has_ratios).then(|| sums.0 / sums.1),
        value: sums.1 / count as f64,
        groups: groups.into_iter().map(|(_, words)| words).collect(),
        trials,
        weight,
    };
    Some(gathered.judged(compared, &differences, effect))
}

/// What the differences of an effect were made of.
struct Gathered {
    factor: Factor,
    levels: (Level, Level),
    basis: Basis,
    /// The ratio of the sums, where a cell has none of its own.
    ratio: Option<f64>,
    /// What the response is about.
    value: f64,
    groups: Vec<String>,
    trials: Vec<TrialId>,
    weight: f64,
}

impl Gathered {
    /// Returns the effect that its `differences` have, or that they are too few.
    fn judged(
        self,
        compared: &Compared<'_, '_>,
        differences: &[Difference],
        effect: Option<Effect>,
    ) -> Result<FactorEffect, Box<FewPairs>> {
        let experiment = compared.experiment;
        let margin = margin(compared.dataset, &experiment.response, self.value);
        let Some(effect) = effect else {
            let logs = differences.iter().map(|difference| difference.log);
            let mean = logs.sum::<f64>() / differences.len() as f64;
            return Err(Box::new(FewPairs {
                factor: self.factor,
                levels: self.levels,
                basis: self.basis,
                aliases: Vec::new(),
                experiment: experiment.name.clone(),
                response: experiment.response.clone(),
                margin,
                pairs: differences.len(),
                ratio: self.ratio.unwrap_or_else(|| mean.exp()),
                has_ratios: self.ratio.is_none(),
            }));
        };
        Ok(FactorEffect {
            experiment: experiment.name.clone(),
            factor: self.factor,
            levels: self.levels,
            margin,
            response: experiment.response.clone(),
            basis: self.basis,
            aliases: Vec::new(),
            effect,
            verdict: Verdict::NotDecided,
            alpha: 0.0,
            groups: self.groups,
            by_group: Vec::new(),
            trials: self.trials,
            weight: self.weight,
        })
    }
}

/// The cells of one side of a comparison, and those of the other.
type Sides<'c, 'e, 'a> = (Vec<&'c &'e CellOutcomes<'a>>, Vec<&'c &'e CellOutcomes<'a>>);

/// Returns what is held against each other: cells that differ in the factor only, or of a fraction all at one level and all
/// at the other.
fn sides<'c, 'e, 'a>(
    compared: &'c Compared<'e, 'a>,
    factor: Factor,
    levels: &(Level, Level),
    basis: Basis,
) -> Vec<Sides<'c, 'e, 'a>> {
    let at = |level: &Level| {
        let cells = compared.cells.iter();
        let own: Vec<_> = cells
            .filter(|cell| cell.level(factor) == Some(level))
            .collect();
        own
    };
    let (one, other) = (at(&levels.0), at(&levels.1));
    if basis == Basis::Blocks {
        return vec![(one, other)];
    }
    let beside = |cell: &'c &'e CellOutcomes<'a>| {
        let mut wanted = cell.cell.clone();
        wanted.insert(factor, levels.1.clone());
        let other = other.iter().find(|other| other.cell == wanted)?;
        Some((vec![cell], vec![*other]))
    };
    one.iter().filter_map(|cell| beside(cell)).collect()
}

/// Two values of one block, with the trials that they are of.
struct Pair {
    values: (u32, f64, f64),
    trials: Vec<TrialId>,
}

/// Returns the factor by whose levels an effect is told apart: the first with numbers, else the first
/// of all others that vary.
fn shown_by(cells: &[&CellOutcomes<'_>], varied: &[Factor], factor: Factor) -> Option<Factor> {
    let others = || varied.iter().copied().filter(|other| *other != factor);
    let numeric = |other: &Factor| {
        let levels = cells.iter().filter_map(|cell| cell.level(*other));
        levels.into_iter().all(|level| level.as_number().is_some())
    };
    others().find(numeric).or(others().next())
}

/// The response of an experiment as its trials compare: without what the CPU time that others took from
/// them did to it, where that is beyond doubt.
struct Compared<'e, 'a> {
    dataset: &'e Dataset<'a>,
    experiment: &'e Experiment,
    cells: Vec<&'e CellOutcomes<'a>>,
    varied: Vec<Factor>,
    slope: Option<Slope>,
}

impl<'e, 'a> Compared<'e, 'a> {
    fn of(dataset: &'e Dataset<'a>, experiment: &'e Experiment) -> Self {
        let cells = dataset.cells_of(&experiment.name);
        let mut compared = Self {
            dataset,
            experiment,
            varied: varied(&cells),
            cells,
            slope: None,
        };
        let pair = |outcome: &Outcome| {
            let value = outcome.value(&experiment.response);
            let value = value.filter(|value| *value > 0.0)?;
            Some((compared.lost(outcome)?, value.ln()))
        };
        let of_cell = |cell: &&CellOutcomes<'_>| cell.valid.iter().filter_map(pair).collect();
        let pairs: Vec<Vec<(f64, f64)>> = compared.cells.iter().map(of_cell).collect();
        compared.slope = Slope::of(&pairs).filter(|slope| {
            let is_cost = Better::of(&experiment.response) == Some(Better::Less);
            slope.rises() == is_cost
        });
        compared
    }

    /// Share of the CPUs' time that the hypervisor or nobody known took.
    fn lost(&self, outcome: &Outcome) -> Option<f64> {
        let stolen = outcome.value(name::CPU_STEAL).unwrap_or(0.0) / self.dataset.cpus()?;
        Some(outcome.value(name::CPU_MISSING)? + stolen)
    }

    /// Returns the pairs of trials of the same block of two cells.
    fn pairs(&self, cell: &CellOutcomes<'_>, other: &CellOutcomes<'_>) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let mut left: Vec<&Outcome> = other.valid.iter().collect();
        for outcome in &cell.valid {
            // A block has several trials of a control: each is in one pair.
            let same = |other: &&Outcome| other.block() == outcome.block();
            let Some(at) = left.iter().position(same) else {
                continue;
            };
            let against = left.remove(at);
            let pair = self.value(outcome).zip(self.value(against));
            pairs.extend(pair.map(|(one, two)| Pair {
                values: (outcome.replicate, one, two),
                trials: vec![outcome.trial, against.trial],
            }));
        }
        pairs
    }

    /// Returns for each block with a trial of all cells the geometric means over `one` and over `other`.
    fn blocks(&self, one: &[&&CellOutcomes<'_>], other: &[&&CellOutcomes<'_>]) -> Vec<Pair> {
        let side = |cells: &[&&CellOutcomes<'_>], block: (u32, bool)| {
            let of = |cell: &&&CellOutcomes<'_>| {
                let own = cell.valid.iter().find(|it| it.block() == block)?;
                Some((self.value(own)?.ln(), own.trial))
            };
            let known: Vec<(f64, TrialId)> = cells.iter().map(of).collect::<Option<_>>()?;
            let log = known.iter().map(|(log, _)| log).sum::<f64>() / known.len() as f64;
            let trials: Vec<TrialId> = known.into_iter().map(|(_, trial)| trial).collect();
            Some((log.exp(), trials))
        };
        let blocks = one
            .iter()
            .flat_map(|cell| cell.valid.iter().map(Outcome::block));
        let blocks: BTreeSet<(u32, bool)> = blocks.collect();
        let of_block = |block: (u32, bool)| {
            let (first, second) = (side(one, block)?, side(other, block)?);
            Some(Pair {
                values: (block.0, first.0, second.0),
                trials: [first.1, second.1].concat(),
            })
        };
        blocks.into_iter().filter_map(of_block).collect()
    }

    fn value(&self, outcome: &Outcome) -> Option<f64> {
        let value = outcome.value(&self.experiment.response)?;
        let adjusted = self.slope.zip(self.lost(outcome));
        Some(adjusted.map_or(value, |(slope, lost)| slope.adjusted(lost, value)))
    }
}

/// Returns the plateaus of an experiment: of socket buffers and of each scale that it asks it of.
fn plateaus(dataset: &Dataset<'_>, experiment: &Experiment) -> Vec<ScalePlateau> {
    let compared = Compared::of(dataset, experiment);
    let is_more_better = Better::of(&experiment.response) == Some(Better::More);
    // No cells of a fraction differ in one factor only.
    if experiment.fraction().is_some() || !is_more_better {
        return Vec::new();
    }
    let varied = compared.varied.iter().copied();
    let scales = varied.filter(|factor| experiment.asks_what_suffices(*factor));
    scales
        .flat_map(|factor| plateaus_along(&compared, factor))
        .collect()
}

/// Returns one for each group of cells that differ in `factor` only.
fn plateaus_along(compared: &Compared<'_, '_>, factor: Factor) -> Vec<ScalePlateau> {
    let (dataset, experiment) = (compared.dataset, compared.experiment);
    let groups = groups(&compared.cells, factor);
    groups
        .into_iter()
        .zip(1..)
        .filter_map(|(group, number)| {
            let steps = |cell: &CellOutcomes<'_>| {
                let trial = |outcome: &Outcome| {
                    let value = compared.value(outcome).filter(|value| *value > 0.0)?;
                    Some((outcome.block(), value))
                };
                Steps::of(&cell.valid.iter().filter_map(trial).collect::<Vec<_>>())
            };
            let has = |cell: &&&CellOutcomes<'_>| !steps(cell).values.is_empty();
            let known: Vec<&CellOutcomes<'_>> = group.cells.iter().filter(has).copied().collect();
            let is_fixed = |cell: &&CellOutcomes<'_>| cell.number(factor).is_some();
            let (fixed, host): (Vec<_>, Vec<_>) = known.into_iter().partition(is_fixed);
            let control = *host.first().or(fixed.last())?;
            let response = control.main()?;
            let of_control = steps(control);
            let is_beside = |cell: &&CellOutcomes<'_>| steps(cell).shares_block(&of_control);
            let fixed: Vec<_> = fixed.into_iter().filter(is_beside).collect();
            let levels: Vec<Steps> = fixed.iter().map(|cell| steps(cell)).collect();
            let of_host = host.first().map(|cell| steps(cell));
            if levels.len() + host.len() < 2 {
                return None;
            }
            let margin = margin(dataset, &experiment.response, response.value);
            let mut others = control.cell.clone();
            others.remove(&factor);
            Some(ScalePlateau {
                experiment: experiment.name.clone(),
                factor,
                group: number,
                others,
                words: group.words,
                levels: fixed
                    .iter()
                    .filter_map(|cell| cell.level(factor).cloned())
                    .collect(),
                control: control.level(factor)?.clone(),
                plateau: plateau(&levels, of_host.as_ref(), margin)?,
                alpha: 0.0,
                differs: false,
                weight: PLATEAU_WEIGHT,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_share_one_error() {
        // Holm 1979, equal weights: 0.01 ≤ 0.045/4, 0.015 ≤ 0.045/3, 0.03 > 0.045/2 ends it.
        let claims = [0.03, 0.01, 0.04, 0.015].map(|p| (p, 1.0));
        let stands: Vec<bool> = holm(&claims)
            .into_iter()
            .map(|(_, stands)| stands)
            .collect();
        assert_eq!(stands, [false, true, false, true]);
        // With all the weight but a little, a claim has nearly all of the error.
        let (alpha, stands) = holm(&[(0.04, 1.0), (0.9, 0.05)])[0];
        assert!(stands && (alpha - OF_COMPARISONS / 1.05).abs() < 1e-12);
        assert_eq!(holm(&[]), []);
    }
}
