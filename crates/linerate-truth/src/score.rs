//! What the analysis says of studies whose truth is known, counted.

use std::collections::BTreeMap;

use linerate_analyze::groups::Reduced;
use linerate_model::analysis::{Analysis, TableCell};
use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::finding::{Comparison, Estimate, FindingKind, Verdict};
use linerate_model::unit::Unit;

use super::lint::disagreements;
use super::noise::Noise;
use super::study::{Chapters, REPLICATES, Replicates, Shape, Study, repeated};
use linerate_analyze::{analyze, level_in_words, open_experiments};
use linerate_model::response::describe;
use linerate_model::text::sentence;

/// A relative difference that the analysis calls none.
const MARGIN: f64 = 0.05;
/// Payload that a link of a study carries at an MTU of 1500, with what clocks are off.
const LINK_BPS: f64 = 1e9 * 1448.0 / 1538.0 * 1.005;

/// Counts over studies of one shape and noise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Studies.
    pub studies: u32,
    /// Cells with an interval.
    pub cells: u32,
    /// Of them, those whose interval holds the truth.
    pub covered: u32,
    /// Sums over studies of cells², of cells times those missed, and of missed².
    pub squares: [u64; 3],
    /// Studies with a claim that is false: an effect that is none or has the other sign, a buffer said
    /// to lose or gain that does not, a recommendation without a gain.
    pub with_false_claim: u32,
    /// Effects that are there to be found.
    pub effects: u32,
    /// Of them, those found with the right sign.
    pub found: u32,
    /// The same of latency, and of small messages: (effects, found).
    pub by_chapter: [(u32, u32); 2],
    /// Effects of twice the margin or more that were called the same.
    pub wrong_same: u32,
    /// Curves of buffers.
    pub curves: u32,
    /// Of them, those with a buffer said to suffice that loses more than the margin.
    pub too_small: u32,
    /// Of them, those without a buffer that is shown to suffice.
    pub undecided: u32,
    /// Of them, those on which all buffers are said to suffice.
    pub no_effect: u32,
    /// Of them, those on which larger buffers are said to lose.
    pub falls_back: u32,
    /// Recommendations.
    pub recommendations: u32,
    /// Studies whose sentences disagree or say a thing twice.
    pub disagree: u32,
    /// Ratios of effects and of buffers with an interval.
    pub ratios: u32,
    /// Of them, those whose interval holds the truth.
    pub ratios_held: u32,
    /// Studies with a ratio whose interval's upper end is more than twice its lower.
    pub wide: u32,
    /// Intervals with ends that cannot be.
    pub impossible: u32,
}

/// What the whole numbers of counters are off at the most, relative.
const WHOLE: f64 = 1e-6;

impl Score {
    /// Adds the counts of another.
    pub fn add(&mut self, other: &Score) {
        self.studies += other.studies;
        self.cells += other.cells;
        self.covered += other.covered;
        for (sum, more) in self.squares.iter_mut().zip(other.squares) {
            *sum += more;
        }
        self.with_false_claim += other.with_false_claim;
        self.effects += other.effects;
        self.found += other.found;
        for (own, more) in self.by_chapter.iter_mut().zip(other.by_chapter) {
            *own = (own.0 + more.0, own.1 + more.1);
        }
        self.wrong_same += other.wrong_same;
        self.curves += other.curves;
        self.too_small += other.too_small;
        self.undecided += other.undecided;
        self.no_effect += other.no_effect;
        self.falls_back += other.falls_back;
        self.recommendations += other.recommendations;
        self.disagree += other.disagree;
        self.ratios += other.ratios;
        self.ratios_held += other.ratios_held;
        self.wide += other.wide;
        self.impossible += other.impossible;
    }
}

impl Score {
    /// Returns how many independent intervals the cells are worth (Kish, "Survey Sampling", 1965).
    ///
    /// Cells of one study share what disturbed it, so that their intervals miss together: of a share p of all cells
    /// missed, with c cells and m missed of a study, N = p (1 − p) (Σ c)² / Σ (m − p c)², and no more than there are.
    pub fn independent_cells(&self) -> u32 {
        let cells = f64::from(self.cells.max(1));
        let missed = 1.0 - f64::from(self.covered) / cells;
        let [all, both, only] = self.squares.map(|sum| sum as f64);
        let between = only - 2.0 * missed * both + missed * missed * all;
        let worth = missed * (1.0 - missed) * cells * cells / between;
        if between > 0.0 {
            worth.min(cells).round() as u32
        } else {
            self.cells
        }
    }
}

/// How many replicates the cells of a study have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// As many as the plan of these chapters has.
    Planned,
    /// So many.
    Fixed(usize),
    /// From [`REPLICATES`] on up to so many, each experiment until nothing is open when it is looked at after
    /// each block.
    UntilDecided(usize),
}

/// Returns the score of `studies` studies; the same seed gives the same.
pub fn score(shape: Shape, noise: Noise, chapters: Chapters, studies: u32, seed: u64) -> Score {
    score_of(shape, noise, chapters, Length::Planned, (studies, seed))
}

/// Returns the score of (studies, seed) of this length.
pub fn score_of(
    shape: Shape,
    noise: Noise,
    chapters: Chapters,
    length: Length,
    (studies, seed): (u32, u64),
) -> Score {
    let mut score = Score::default();
    // No two rows see the same draws.
    let title = format!("{} {} {chapters:?}", shape.title(), noise.title());
    let mixed = |mixed: u64, byte: u8| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let row = title.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mixed);
    for at in 0..studies {
        let seed = row.wrapping_add(u64::from(at));
        let of = |replicates: &Replicates<'_>| repeated(shape, noise, chapters, replicates, seed);
        let made = match length {
            Length::Planned => of(&|name| chapters.blocks(name)),
            Length::Fixed(replicates) => of(&|_| replicates),
            Length::UntilDecided(most) => until_decided(&of, most),
        };
        score.add(&judge(&made, &analyze(&made.recording)));
    }
    score
}

/// Makes a study of which experiments end when they are decided, as the program's do.
fn until_decided(of: &dyn Fn(&Replicates<'_>) -> Study, most: usize) -> Study {
    let mut ended = BTreeMap::new();
    for replicates in REPLICATES.. {
        let made = of(&|name| *ended.get(name).unwrap_or(&replicates));
        let open = open_experiments(&Reduced::of(&made.recording));
        for name in made.means.keys().filter(|name| !open.contains(name)) {
            ended.entry(name.clone()).or_insert(replicates);
        }
        if replicates >= most || ended.len() == made.means.len() {
            return made;
        }
    }
    unreachable!("replicates have a bound")
}

fn judge(study: &Study, analysis: &Analysis) -> Score {
    let mut score = Score {
        studies: 1,
        recommendations: analysis.recommendations.len() as u32,
        disagree: u32::from(!disagreements(analysis).is_empty()),
        impossible: impossible(analysis),
        ..Score::default()
    };
    coverage(study, analysis, &mut score);
    let (cells, missed) = (score.cells, score.cells - score.covered);
    score.squares = [(cells, cells), (cells, missed), (missed, missed)]
        .map(|(one, other)| u64::from(one) * u64::from(other));
    let ratios_shown = analysis.verdicts.iter().flat_map(|it| {
        let levels = it.levels.iter().map(|(.., ratio)| *ratio);
        levels.chain([it.effect])
    });
    let is_wide = |ratio: Estimate| {
        ratio
            .low
            .zip(ratio.high)
            .is_some_and(|(low, high)| high > 2.0 * low)
    };
    score.wide = u32::from(ratios_shown.into_iter().any(is_wide));
    let mut is_false = false;
    for comparison in &analysis.verdicts {
        is_false |= if comparison.is_plateau {
            plateau(study, comparison, &mut score)
        } else {
            effect(study, comparison, &mut score)
        };
    }
    let gains = gains(study);
    is_false |= analysis.findings.iter().any(|finding| match finding.kind {
        FindingKind::Plateau => !gains,
        FindingKind::Effect => {
            let of = |comparison: &&Comparison| comparison.id == finding.id;
            let comparison = analysis.verdicts.iter().find(of);
            comparison.is_none_or(|it| ratios(study, it).iter().all(|(_, log)| *log == 0.0))
        }
        _ => false,
    });
    is_false |= !gains && !analysis.recommendations.is_empty();
    score.with_false_claim = u32::from(is_false);
    score
}

/// Returns how many of all estimates that are shown have ends that cannot be.
fn impossible(analysis: &Analysis) -> u32 {
    let tables = analysis.chapters.iter().flat_map(|chapter| &chapter.tables);
    let cells = tables.flat_map(|table| table.rows.iter().flatten());
    let shown = cells.filter_map(|cell| match cell {
        TableCell::Estimate(estimate) => Some(*estimate),
        _ => None,
    });
    let findings = analysis.findings.iter().chain(&analysis.cautions);
    let proofs = findings.flat_map(|finding| finding.evidence.as_slice().iter());
    let all = shown
        .chain(proofs.map(|evidence| evidence.estimate))
        .chain(analysis.verdicts.iter().map(|it| it.effect));
    let cannot = |estimate: &Estimate| {
        let (low, high) = (
            estimate.low.unwrap_or(estimate.value),
            estimate.high.unwrap_or(estimate.value),
        );
        let most = match estimate.unit {
            Unit::BitsPerSecond => LINK_BPS,
            _ => f64::INFINITY,
        };
        // No digit shows what the last bit of a logarithm is.
        let bit = 1e-9 * estimate.value.abs();
        let ordered = low <= estimate.value + bit && estimate.value <= high + bit;
        !ordered
            || low < 0.0
            || high > most
            || (estimate.n == 2
                && estimate.unit != Unit::Ratio
                && estimate.low.is_some()
                && estimate.confidence > 0.9)
    };
    all.filter(cannot).count() as u32
}

/// Whether any buffer does better than the kernel's tuning by more than what matters.
fn gains(study: &Study) -> bool {
    let Some(means) = study.means.get("socket-buffer") else {
        return false;
    };
    let is_auto = |cell: &Cell| matches!(cell.get(&Factor::SocketBuffer), Some(Level::Word(_)));
    let auto = means.iter().find(|(cell, _)| is_auto(cell));
    let most = means.values().copied().fold(0.0, f64::max);
    auto.is_some_and(|(_, auto)| most / auto > 1.0 + MARGIN)
}

fn coverage(study: &Study, analysis: &Analysis, score: &mut Score) {
    for chapter in &analysis.chapters {
        let Some(means) = study.means.get(&chapter.id) else {
            continue;
        };
        let experiments = study.recording.document.plan.experiments.iter();
        let mut own = experiments.filter(|experiment| experiment.name == chapter.id);
        let Some(experiment) = own.next() else {
            continue;
        };
        let response = sentence(describe(&experiment.response).title);
        let tables = chapter.tables.iter();
        let Some(table) = tables.clone().find(|table| table.title == "All cells") else {
            continue;
        };
        let column = table.columns.iter().position(|column| *column == response);
        // Rows are in the order of the cells, as are the means.
        for (row, truth) in table.rows.iter().zip(means.values()) {
            let Some(TableCell::Estimate(estimate)) = column.map(|at| &row[at]) else {
                continue;
            };
            let Some((low, high)) = estimate.low.zip(estimate.high) else {
                continue;
            };
            // Two values have their range, which promises less.
            if estimate.n < 3 {
                continue;
            }
            score.cells += 1;
            let near = WHOLE * truth;
            score.covered += u32::from((low - near..=high + near).contains(truth));
        }
    }
}

/// Returns the logarithms of the true ratios of an effect, each with its level in words.
fn ratios(study: &Study, comparison: &Comparison) -> Vec<(String, f64)> {
    let (_, name) = comparison.id.rsplit_once('/').unwrap_or_default();
    let factor = Factor::all().find(|factor| factor.name() == name);
    let Some((factor, means)) = factor.zip(study.means.get(&comparison.experiment)) else {
        return Vec::new();
    };
    let by = [Factor::PayloadBytes, Factor::MessageBytes];
    let pair = |(cell, mean): (&Cell, &f64)| {
        let is_on = cell.get(&factor) == Some(&Level::Switch(true));
        let mut off = cell.clone();
        off.insert(factor, Level::Switch(false));
        let by = by
            .iter()
            .find_map(|by| Some(level_in_words(*by, cell.get(by)?)));
        is_on.then_some((by?, (mean / means.get(&off)?).ln()))
    };
    means.iter().filter_map(pair).collect()
}

/// Judges an effect; returns whether a claim is false.
fn effect(study: &Study, comparison: &Comparison, score: &mut Score) -> bool {
    let truths = ratios(study, comparison);
    let mean = |words: Option<&str>| {
        let own = truths
            .iter()
            .filter(|(level, _)| words.is_none_or(|it| it == level));
        let logs: Vec<f64> = own.map(|(_, log)| *log).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        if mean.abs() < 1e-9 { 0.0 } else { mean }
    };
    let is_there = truths.iter().any(|(_, log)| log.abs() > 1e-9);
    let differs = comparison.verdict == Verdict::Differs;
    let same_sign = |truth: f64, found: f64| truth * found > 0.0;
    let twice = (1.0 + 2.0 * comparison.margin).ln() - 1e-9;
    let matters = truths.iter().any(|(_, log)| log.abs() >= twice);
    let wrong_level = comparison
        .levels
        .iter()
        .any(|(words, verdict, _)| *verdict == Verdict::Same && mean(Some(words)).abs() >= twice);
    score.wrong_same += u32::from((matters && comparison.verdict == Verdict::Same) || wrong_level);
    let chapter = &mut score.by_chapter[usize::from(comparison.experiment != "latency")];
    if is_there {
        score.effects += 1;
        chapter.0 += 1;
    }
    if !differs {
        held(&comparison.effect, mean(None), score);
        return false;
    }
    // The levels are claimed where there are any, else the mean.
    let wrong = if comparison.levels.is_empty() {
        !same_sign(mean(None), comparison.effect.value.ln())
    } else {
        comparison.levels.iter().any(|(words, verdict, ratio)| {
            *verdict == Verdict::Differs && !same_sign(mean(Some(words)), ratio.value.ln())
        })
    };
    score.found += u32::from(is_there && !wrong);
    chapter.1 += u32::from(is_there && !wrong);
    held(&comparison.effect, mean(None), score);
    wrong
}

/// Counts whether an interval of a ratio holds the true logarithm; not one that decides "the same", which
/// promises 90 %.
fn held(ratio: &Estimate, truth: f64, score: &mut Score) {
    let promised = ratio
        .low
        .zip(ratio.high)
        .filter(|_| ratio.confidence >= 0.95);
    if let Some((low, high)) = promised {
        score.ratios += 1;
        let truth = truth.exp();
        let near = WHOLE * truth;
        score.ratios_held += u32::from((low - near..=high + near).contains(&truth));
    }
}

/// Sizes as levels have them in words: "1460 B" may have a thin space.
fn format_bytes(bytes: u64) -> String {
    Unit::Bytes.display(bytes as f64)
}

/// Judges a plateau; returns whether a claim is false.
fn plateau(study: &Study, comparison: &Comparison, score: &mut Score) -> bool {
    let means = &study.means["socket-buffer"];
    // Both groups have the same truth.
    let of = |is_level: &dyn Fn(&Level) -> bool| {
        let level = |cell: &Cell| cell.get(&Factor::SocketBuffer).is_some_and(is_level);
        let mean = means.iter().find(|(cell, _)| level(cell));
        *mean.expect("levels are of the study").1
    };
    let auto = of(&|level| matches!(level, Level::Word(_)));
    let ratio = |words: &str| {
        let is_said = |level: &Level| {
            level
                .as_number()
                .is_some_and(|bytes| format_bytes(bytes as u64) == words)
        };
        of(&is_said) / auto
    };
    let says = |verdict: Verdict| {
        let levels = comparison.levels.iter();
        levels.filter(move |(_, said, _)| *said == verdict)
    };
    score.curves += 1;
    // What is not shown to lose more than matters is said to suffice, whether or not it is the same.
    let suffices = comparison.levels.iter().filter(|(_, verdict, found)| {
        *verdict != Verdict::Differs && found.low.is_some_and(|low| low > 1.0 - MARGIN)
    });
    let too_small = suffices
        .clone()
        .filter(|(words, ..)| ratio(words) < 1.0 - MARGIN - 1e-9)
        .count();
    score.too_small += u32::from(too_small > 0);
    let beyond = 1.0 + 2.0 * MARGIN - 1e-9;
    let gains = says(Verdict::Same).any(|(words, ..)| ratio(words) >= beyond);
    score.wrong_same += u32::from(gains);
    score.undecided += u32::from(suffices.count() == 0);
    score.no_effect += u32::from(comparison.verdict == Verdict::Same);
    let last = comparison.levels.last();
    let falls =
        last.is_some_and(|(_, verdict, ratio)| *verdict == Verdict::Differs && ratio.value < 1.0);
    score.falls_back += u32::from(falls);
    for (words, _, found) in &comparison.levels {
        held(found, ratio(words).ln(), score);
    }
    says(Verdict::Differs).any(|(words, _, found)| {
        let truth = ratio(words).ln();
        truth * found.value.ln() <= 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(studies: &[(u32, u32)]) -> Score {
        let mut all = Score::default();
        for (cells, missed) in studies {
            let squares = [(cells, cells), (cells, missed), (missed, missed)];
            all.add(&Score {
                cells: *cells,
                covered: cells - missed,
                squares: squares.map(|(one, other)| u64::from(one * other)),
                ..Score::default()
            });
        }
        all
    }

    #[test]
    fn intervals_that_miss_together_are_worth_as_many_as_studies() {
        // One study in ten misses all: p (1 − p) of (40 · 10)² over 40² · 10 p (1 − p).
        let mut studies = [(40, 0); 10];
        studies[3].1 = 40;
        assert_eq!(of(&studies).independent_cells(), 10);
        // As many of each study are worth no more than there are.
        assert_eq!(of(&[(40, 4); 10]).independent_cells(), 400);
        assert_eq!(of(&[]).independent_cells(), 0);
    }
}
