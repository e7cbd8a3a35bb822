//! Designs whose trials are not all independent: what is claimed of them, counted over studies of a known truth.

use linerate_analyze::{Draw, analyze};
use linerate_model::analysis::Analysis;
use linerate_model::experiment::{Cell, DesignKind, Factor, Level};
use linerate_model::finding::{Comparison, FindingKind, Verdict};
use linerate_model::fraction::Fraction;

use linerate_truth::recording::{MadeRun, Truth, rr, size};

/// What a trial's rate is multiplied by.
type Shares<'s> = &'s dyn Fn(&Cell) -> f64;

/// A study of one experiment: its cells by block, with the noise of whole plots and of trials.
struct Made<'s> {
    whole_plots: &'s [Factor],
    /// Whether the experiment says which they are.
    is_said: bool,
    design: DesignKind,
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
        experiment.design = self.design;
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

fn of(analysis: &Analysis, factor: Factor) -> &Comparison {
    let id = format!("made/effect/{}", factor.name());
    let mut all = analysis.verdicts.iter();
    let is_own = |it: &&Comparison| it.id == id || it.id.starts_with(&format!("{id}="));
    all.find(is_own).expect("it is compared")
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
            design: DesignKind::Full,
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
    let claimed = claims(true, 60, 11);
    assert!(claimed * 20 <= 60, "{claimed} of 60");
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
            design: DesignKind::Full,
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

/// The factors of fractions, in their order, with their levels.
fn screened() -> Vec<(Factor, Vec<Level>)> {
    let counts = |one, other| vec![Level::Count(one), Level::Count(other)];
    vec![
        (Factor::Connections, counts(1, 2)),
        (Factor::PayloadBytes, vec![size(1), size(1460)]),
        (Factor::Nagle, switch()),
        (Factor::DelayedAck, switch()),
        (Factor::InFlight, counts(1, 4)),
    ]
}

/// Returns the cells of the first so many factors in so many runs.
fn fraction(factors: usize, runs: u32) -> Vec<Cell> {
    let screened = screened();
    let cells = Fraction::of(factors, runs).expect("it is one").cells();
    let cell = |levels: &Vec<usize>| {
        let parts = levels.iter().zip(&screened);
        parts
            .map(|(at, (factor, levels))| (*factor, levels[*at].clone()))
            .collect()
    };
    cells.iter().map(cell).collect()
}

fn screening<'s>(cells: &'s [Cell], noise: f64, shares: Shares<'s>) -> Made<'s> {
    Made {
        whole_plots: &[],
        is_said: false,
        design: DesignKind::Fractional {
            runs: cells.len() as u32,
        },
        cells,
        blocks: 6,
        noise: (0.0, noise),
        shares,
    }
}

#[test]
fn a_fraction_without_effects_claims_none() {
    const STUDIES: u32 = 60;
    let cells = fraction(5, 8);
    let made = screening(&cells, 0.03, &|_| 1.0);
    let mut draw = Draw::new(3);
    let mut has_claim = || {
        let analysis = made.analysis(&mut draw);
        assert_eq!(analysis.verdicts.len(), 5);
        analysis
            .verdicts
            .iter()
            .any(|it| it.verdict == Verdict::Differs)
    };
    let claimed = (0..STUDIES).filter(|_| has_claim()).count() as u32;
    assert!(claimed * 20 <= STUDIES, "{claimed} of {STUDIES}");
}

#[test]
fn a_fraction_finds_a_tenth_in_two_per_cent_of_noise() {
    const STUDIES: u32 = 20;
    let cells = fraction(5, 8);
    let shares: Shares<'_> = &|cell| if is_on(cell, Factor::Nagle) { 1.1 } else { 1.0 };
    let made = screening(&cells, 0.02, shares);
    let mut draw = Draw::new(4);
    let (mut found, mut others) = (0, 0);
    for _ in 0..STUDIES {
        let analysis = made.analysis(&mut draw);
        let nagle = of(&analysis, Factor::Nagle);
        assert_eq!(nagle.effect.n, 6, "a difference of each block");
        let is_found = nagle.verdict == Verdict::Differs && nagle.effect.value > 1.0;
        found += u32::from(is_found);
        let differs = analysis
            .verdicts
            .iter()
            .filter(|it| it.verdict == Verdict::Differs);
        others += u32::from(differs.count() > usize::from(is_found));
    }
    assert!(found * 10 >= 9 * STUDIES, "{found} of {STUDIES}");
    assert!(others * 20 <= STUDIES, "{others} of {STUDIES}");
}

#[test]
fn what_a_fraction_cannot_tell_apart_is_told_with_the_claim() {
    // Connections × payload is all there is; in four runs it cannot be told from Nagle.
    let shares: Shares<'_> = &|cell| {
        let is_low = cell[&Factor::Connections] == Level::Count(1);
        let is_small = cell[&Factor::PayloadBytes] == size(1);
        if is_low == is_small { 1.2 } else { 1.0 }
    };
    let cells = fraction(3, 4);
    let analysis = screening(&cells, 0.01, shares).analysis(&mut Draw::new(8));
    let nagle = of(&analysis, Factor::Nagle);
    assert_eq!(nagle.verdict, Verdict::Differs, "{nagle:?}");
    assert_eq!(nagle.aliases.len(), 1, "{nagle:?}");
    let titles = [Factor::Connections, Factor::PayloadBytes].map(Factor::title);
    assert_eq!(nagle.aliases[0], titles.join(" × "));
    assert!(nagle.what.contains(&nagle.aliases[0]), "{nagle:?}");
    let mut findings = analysis.findings.iter();
    let claim = findings.find(|it| it.kind == FindingKind::Effect && it.id == nagle.id);
    let claim = &claim.expect("it is a finding").claim;
    assert!(claim.contains(&nagle.aliases[0]), "{claim}");
    // In eight runs of four factors no main effect is alike an interaction of two, and this one is none.
    let cells = fraction(4, 8);
    let analysis = screening(&cells, 0.01, shares).analysis(&mut Draw::new(9));
    for comparison in &analysis.verdicts {
        assert_eq!(comparison.aliases, [""; 0]);
        assert_ne!(comparison.verdict, Verdict::Differs, "{comparison:?}");
    }
}

#[test]
fn a_fraction_that_lacks_a_cell_tells_nothing() {
    let cells = fraction(5, 8);
    let shares: Shares<'_> = &|cell| if is_on(cell, Factor::Nagle) { 2.0 } else { 1.0 };
    let mut made = screening(&cells[..7], 0.01, shares);
    made.design = DesignKind::Fractional { runs: 8 };
    let analysis = made.analysis(&mut Draw::new(1));
    assert!(
        analysis
            .verdicts
            .iter()
            .all(|it| it.verdict != Verdict::Differs)
    );
}

/// The factors of Latin hypercubes, each with six levels.
fn spread() -> Vec<(Factor, Vec<Level>)> {
    let counts = [1, 2, 4, 8, 16, 32].map(Level::Count).to_vec();
    let sizes = [1, 4, 16, 64, 256, 1024].map(size).to_vec();
    vec![
        (Factor::Connections, counts.clone()),
        (Factor::PayloadBytes, sizes),
        (Factor::InFlight, counts),
    ]
}

/// Returns what is said of a Latin hypercube of `spread` with six blocks.
fn hypercube(draw: &mut Draw, noise: f64, shares: Shares<'_>) -> Analysis {
    let factors = spread();
    let mut run = MadeRun::new(1, Some(1e9));
    run.tenths = vec![0, 5, 10];
    run.experiment("made", None, rr(4));
    let experiment = run.recording.document.plan.experiments.last_mut();
    let experiment = experiment.expect("it was added");
    experiment.design = DesignKind::LatinHypercube;
    experiment.factors.clone_from(&factors);
    for block in 1..=6 {
        let mut orders: Vec<Vec<Level>> = factors.iter().map(|(_, all)| all.clone()).collect();
        for order in &mut orders {
            order.sort_by_cached_key(|_| draw.bits());
        }
        for at in 0..6 {
            let levels = factors.iter().zip(&orders);
            let cell: Cell = levels
                .map(|((factor, _), all)| (*factor, all[at].clone()))
                .collect();
            let rate = 12_000.0 * (1.0 + noise * draw.normal()) * shares(&cell);
            let levels: Vec<(Factor, Level)> = cell.into_iter().collect();
            run.trial(&levels, block, &Truth::transactions_per_s(rate));
        }
    }
    analyze(&run.recording)
}

/// Returns the place of the level that `cell` has of `factor`, from 0 to 1.
fn place(cell: &Cell, factor: Factor) -> f64 {
    let all = spread()
        .into_iter()
        .find(|(own, _)| *own == factor)
        .expect("it varies")
        .1;
    let at = all
        .iter()
        .position(|level| *level == cell[&factor])
        .expect("a level");
    at as f64 / 5.0
}

#[test]
fn a_latin_hypercube_claims_nothing_of_factors_without_effect_however_another_bends() {
    const STUDIES: u32 = 60;
    // A hill over the payload, which no line follows, with noises from small to large.
    let hill: Shares<'_> = &|cell| 1.0 - 1.6 * (place(cell, Factor::PayloadBytes) - 0.5).powi(2);
    let mut draw = Draw::new(21);
    let mut claimed = 0;
    for study in 0..STUDIES {
        let noise = [0.005, 0.03, 0.1][study as usize % 3];
        let analysis = hypercube(&mut draw, noise, hill);
        assert_eq!(analysis.verdicts.len(), 3);
        let without = [Factor::Connections, Factor::InFlight].map(|own| of(&analysis, own).verdict);
        claimed += u32::from(without.contains(&Verdict::Differs));
    }
    assert!(claimed * 20 <= STUDIES, "{claimed} of {STUDIES}");
}

#[test]
fn a_latin_hypercube_finds_each_factor_that_the_response_follows_and_by_how_much() {
    const STUDIES: u32 = 20;
    let shares: Shares<'_> = &|cell| {
        let of = |factor, whole: f64| whole.powf(place(cell, factor));
        of(Factor::Connections, 1.3) * of(Factor::PayloadBytes, 0.5)
    };
    let mut draw = Draw::new(22);
    let (mut found, mut covered) = (0, 0);
    for _ in 0..STUDIES {
        let analysis = hypercube(&mut draw, 0.02, shares);
        for (factor, truth) in [(Factor::Connections, 1.3), (Factor::PayloadBytes, 0.5)] {
            let own = of(&analysis, factor);
            // Of two orders that happen to be the same no slope can be told.
            assert!(
                (5..=6).contains(&own.effect.n),
                "a slope of each block: {own:?}"
            );
            found += u32::from(own.verdict == Verdict::Differs);
            let (low, high) = own.effect.low.zip(own.effect.high).expect("an interval");
            covered += u32::from(low <= truth && truth <= high);
        }
    }
    assert!(found * 10 >= 9 * 2 * STUDIES, "{found}");
    assert!(covered * 10 >= 9 * 2 * STUDIES, "{covered}");
}
