//! Designs whose trials are not all independent: what is claimed of them, counted over studies of a known truth.

use linerate_analyze::{Draw, analyze};
use linerate_model::analysis::Analysis;
use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::finding::{Comparison, Verdict};

use crate::builder::{MadeRun, Truth, rr, size};

/// What a trial's rate is multiplied by.
type Shares<'s> = &'s dyn Fn(&Cell) -> f64;

/// A study of one experiment: its cells by block, with the noise of whole plots and of trials.
struct Made<'s> {
    whole_plots: &'s [Factor],
    /// Whether the experiment says which they are.
    is_said: bool,
    cells: &'s [Cell],
    blocks: u32,
    /// Deviations of a whole plot and of a trial.
    noise: (f64, f64),
    shares: Shares<'s>,
}

impl Made<'_> {
    fn analysis(&self, draw: &mut Draw) -> Analysis {
        let mut run = MadeRun::new(1, Some(1e9));
        run.tenths = vec![0, 5, 10];
        run.experiment("made", None, rr(4));
        let experiment = run.recording.document.plan.experiments.last_mut();
        let experiment = experiment.expect("it was added");
        if self.is_said {
            experiment.whole_plots = self.whole_plots.to_vec();
        }
        for block in 1..=self.blocks {
            let mut plots: Vec<(Cell, f64)> = Vec::new();
            for cell in self.cells {
                let mut plot = cell.clone();
                plot.retain(|factor, _| self.whole_plots.contains(factor));
                let known = plots.iter().find(|(known, _)| *known == plot);
                let of_plot = known.map(|(_, factor)| *factor).unwrap_or_else(|| {
                    let factor = 1.0 + self.noise.0 * draw.normal();
                    plots.push((plot, factor));
                    factor
                });
                let of_trial = 1.0 + self.noise.1 * draw.normal();
                let rate = 12_000.0 * of_plot * of_trial * (self.shares)(cell);
                let levels: Vec<(Factor, Level)> = cell.clone().into_iter().collect();
                run.trial(&levels, block, &Truth::transactions_per_s(rate));
            }
        }
        analyze(&run.recording)
    }
}

/// Returns every combination of these levels.
fn combinations(factors: &[(Factor, Vec<Level>)]) -> Vec<Cell> {
    factors
        .iter()
        .fold(vec![Cell::new()], |cells, (factor, levels)| {
            let with = |cell: &Cell, level: &Level| {
                let mut cell = cell.clone();
                cell.insert(*factor, level.clone());
                cell
            };
            let extended = |cell: &Cell| {
                levels
                    .iter()
                    .map(|level| with(cell, level))
                    .collect::<Vec<_>>()
            };
            cells.iter().flat_map(extended).collect()
        })
}

fn switch() -> Vec<Level> {
    vec![Level::Switch(true), Level::Switch(false)]
}

fn is_on(cell: &Cell, factor: Factor) -> bool {
    cell.get(&factor) == Some(&Level::Switch(true))
}

fn of<'a>(analysis: &'a Analysis, factor: Factor) -> &'a Comparison {
    let id = format!("made/effect/{}", factor.name());
    let mut all = analysis.verdicts.iter();
    all.find(|comparison| comparison.id == id)
        .expect("it is compared")
}

#[test]
fn the_noise_of_whole_plots_makes_no_claims() {
    let cells = combinations(&[
        (Factor::Nagle, switch()),
        (Factor::DelayedAck, switch()),
        (Factor::PayloadBytes, vec![size(1), size(100), size(1460)]),
    ]);
    let claims = |is_said: bool, studies: u32, seed: u64| {
        let made = Made {
            whole_plots: &[Factor::Nagle],
            is_said,
            cells: &cells,
            blocks: 6,
            noise: (0.05, 0.01),
            shares: &|_| 1.0,
        };
        let mut draw = Draw::new(seed);
        let mut has_claim = || {
            let analysis = made.analysis(&mut draw);
            let mut all = analysis.verdicts.iter();
            all.any(|it| it.verdict == Verdict::Differs)
        };
        (0..studies).filter(|_| has_claim()).count() as u32
    };
    let claimed = claims(true, 120, 11);
    assert!(claimed * 20 <= 120, "{claimed} of 120");
    // Taken as independent, pairs of the same whole plots claim something in 22 % of such studies (44 of 200).
    let claimed = claims(false, 20, 12);
    assert!(claimed * 20 > 20, "{claimed} of 20");
}

#[test]
fn effects_between_and_inside_whole_plots_are_found_and_what_turns_is_not_the_same() {
    let cells = combinations(&[
        (Factor::Nagle, switch()),
        (Factor::DelayedAck, switch()),
        (Factor::PayloadBytes, vec![size(1), size(1460)]),
    ]);
    let of_shares = |shares: Shares<'_>| {
        let made = Made {
            whole_plots: &[Factor::Nagle],
            is_said: true,
            cells: &cells,
            blocks: 8,
            noise: (0.01, 0.005),
            shares,
        };
        made.analysis(&mut Draw::new(5))
    };
    let both = of_shares(&|cell| {
        let share = |factor| if is_on(cell, factor) { 1.1 } else { 1.0 };
        share(Factor::Nagle) * share(Factor::DelayedAck)
    });
    for (factor, differences) in [(Factor::Nagle, 8), (Factor::DelayedAck, 32)] {
        let found = of(&both, factor);
        assert_eq!(found.verdict, Verdict::Differs, "{found:?}");
        assert!((found.effect.value - 1.1).abs() < 0.02, "{found:?}");
        assert_eq!(found.effect.n, differences, "{found:?}");
    }
    let turns = of_shares(&|cell| {
        let is_same = is_on(cell, Factor::Nagle) == is_on(cell, Factor::DelayedAck);
        if is_same { 1.2 } else { 1.0 }
    });
    let found = of(&turns, Factor::Nagle);
    assert_ne!(found.verdict, Verdict::Same, "{found:?}");
}
