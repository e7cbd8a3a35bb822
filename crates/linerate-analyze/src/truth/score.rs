//! What the analysis says of studies whose truth is known, counted.

use linerate_model::analysis::{Analysis, TableCell};
use linerate_model::finding::{Comparison, FindingKind, Verdict};

use super::lint::disagreements;
use super::noise::Noise;
use super::study::{BUFFERS_KIB, Chapters, Shape, Study, study};
use crate::analyze;

/// A relative difference that the analysis calls none.
const MARGIN: f64 = 0.05;

/// Counts over studies of one shape and noise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Studies.
    pub studies: u32,
    /// Cells with an interval.
    pub cells: u32,
    /// Of them, those whose interval holds the truth.
    pub covered: u32,
    /// Studies with a claim that is false: an effect that is none or has the other sign, a buffer said
    /// to lose or gain that does not, a recommendation without a gain.
    pub with_false_claim: u32,
    /// Effects that are there to be found.
    pub effects: u32,
    /// Of them, those found with the right sign.
    pub found: u32,
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
}

impl Score {
    /// Adds the counts of another.
    pub fn add(&mut self, other: &Score) {
        self.studies += other.studies;
        self.cells += other.cells;
        self.covered += other.covered;
        self.with_false_claim += other.with_false_claim;
        self.effects += other.effects;
        self.found += other.found;
        self.wrong_same += other.wrong_same;
        self.curves += other.curves;
        self.too_small += other.too_small;
        self.undecided += other.undecided;
        self.no_effect += other.no_effect;
        self.falls_back += other.falls_back;
        self.recommendations += other.recommendations;
        self.disagree += other.disagree;
    }
}

/// Returns the score of `studies` studies; the same seed gives the same.
pub fn score(shape: Shape, noise: Noise, chapters: Chapters, studies: u32, seed: u64) -> Score {
    let mut score = Score::default();
    // No two rows see the same draws.
    let title = format!("{} {} {chapters:?}", shape.title(), noise.title());
    let mixed = |mixed: u64, byte: u8| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let row = title.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mixed);
    for at in 0..studies {
        let made = study(shape, noise, chapters, row.wrapping_add(u64::from(at)));
        score.add(&judge(shape, &made, &analyze(&made.recording)));
    }
    score
}

fn judge(shape: Shape, study: &Study, analysis: &Analysis) -> Score {
    let mut score = Score {
        studies: 1,
        recommendations: analysis.recommendations.len() as u32,
        disagree: u32::from(!disagreements(analysis).is_empty()),
        ..Score::default()
    };
    coverage(study, analysis, &mut score);
    let mut is_false = false;
    for comparison in &analysis.verdicts {
        is_false |= match comparison.experiment.as_str() {
            "socket-buffer" => plateau(shape, comparison, &mut score),
            _ => effect(shape, comparison, &mut score),
        };
    }
    is_false |= analysis.findings.iter().any(|finding| {
        let gains = matches!(shape, Shape::TunedBadly(_));
        match finding.kind {
            FindingKind::Plateau => !gains,
            FindingKind::Effect => ratios(shape, &finding.id)
                .is_none_or(|all| all.iter().all(|(_, ratio)| *ratio == 1.0)),
            _ => false,
        }
    });
    let gains = matches!(shape, Shape::TunedBadly(_));
    is_false |= !gains && !analysis.recommendations.is_empty();
    score.with_false_claim = u32::from(is_false);
    score
}

fn coverage(study: &Study, analysis: &Analysis, score: &mut Score) {
    for chapter in &analysis.chapters {
        let Some(means) = study.means.get(&chapter.id) else {
            continue;
        };
        let response = match chapter.id.as_str() {
            "latency" => "Transactions per second",
            _ => "Throughput",
        };
        let tables = chapter.tables.iter();
        let Some(table) = tables.clone().find(|table| table.title == "All cells") else {
            continue;
        };
        let column = table.columns.iter().position(|column| column == response);
        // Rows are in the order of the cells, as are the means.
        for (row, truth) in table.rows.iter().zip(means.values()) {
            let Some(TableCell::Estimate(estimate)) = column.map(|at| &row[at]) else {
                continue;
            };
            let Some((low, high)) = estimate.low.zip(estimate.high) else {
                continue;
            };
            score.cells += 1;
            score.covered += u32::from((low..=high).contains(truth));
        }
    }
}

/// Returns the true ratios of an effect: by message where it differs.
fn ratios(shape: Shape, id: &str) -> Option<Vec<(Option<u64>, f64)>> {
    Some(match id {
        "latency/effect/delayed_ack" => vec![(None, shape.delayed_ack_ratio())],
        "small-messages/effect/nagle" => [60, 100, 536, 1460]
            .map(|message| (Some(message), shape.nagle_ratio(message)))
            .to_vec(),
        "small-messages/effect/delayed_ack" => vec![(None, 1.0)],
        _ => return None,
    })
}

/// Judges an effect; returns whether a claim is false.
fn effect(shape: Shape, comparison: &Comparison, score: &mut Score) -> bool {
    let Some(ratios) = ratios(shape, &comparison.id) else {
        return true;
    };
    let truths: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
    let mean = truths.iter().map(|ratio| ratio.ln()).sum::<f64>() / truths.len() as f64;
    let is_there = truths.iter().any(|ratio| *ratio != 1.0);
    let differs = comparison.verdict == Verdict::Differs;
    let same_sign = |truth: f64, found: f64| truth * found > 0.0;
    let matters = truths
        .iter()
        .any(|ratio| ratio.ln().abs() >= (1.0 + 2.0 * MARGIN).ln() - 1e-9);
    score.wrong_same += u32::from(matters && comparison.verdict == Verdict::Same);
    if is_there {
        score.effects += 1;
    }
    if !differs {
        return false;
    }
    // The levels are claimed where there are any, else the mean.
    let wrong = match comparison.levels.is_empty() {
        true => !same_sign(mean, comparison.effect.value.ln()),
        false => comparison.levels.iter().any(|(words, verdict, ratio)| {
            let of_level = ratios.iter().find(|(message, _)| {
                message.is_none_or(|message| words.starts_with(&format_bytes(message)))
            });
            let truth = of_level.map_or(0.0, |(_, ratio)| ratio.ln());
            *verdict == Verdict::Differs && !same_sign(truth, ratio.value.ln())
        }),
    };
    score.found += u32::from(is_there && !wrong);
    wrong
}

/// Sizes as levels have them in words: "1460 B" may have a thin space.
fn format_bytes(bytes: u64) -> String {
    crate::words::number(linerate_model::unit::Unit::Bytes, bytes as f64)
}

/// Judges a plateau; returns whether a claim is false.
fn plateau(shape: Shape, comparison: &Comparison, score: &mut Score) -> bool {
    let ratio = |words: &str| {
        let mut buffers = BUFFERS_KIB.iter();
        let is_said = |kib: &&u64| format_bytes(*kib * 1024) == words;
        let kib = buffers.find(is_said).expect("levels are of the study");
        shape.buffer_share(*kib as f64) / shape.tuned_share()
    };
    let says = |verdict: Verdict| {
        let levels = comparison.levels.iter();
        levels.filter(move |(_, said, _)| *said == verdict)
    };
    score.curves += 1;
    let too_small = says(Verdict::Same).any(|(words, ..)| ratio(words) < 1.0 - MARGIN - 1e-9);
    score.too_small += u32::from(too_small);
    score.undecided += u32::from(says(Verdict::Same).next().is_none());
    score.no_effect += u32::from(comparison.verdict == Verdict::Same);
    let last = comparison.levels.last();
    let falls =
        last.is_some_and(|(_, verdict, ratio)| *verdict == Verdict::Differs && ratio.value < 1.0);
    score.falls_back += u32::from(falls);
    says(Verdict::Differs).any(|(words, _, found)| {
        let truth = ratio(words).ln();
        truth * found.value.ln() <= 0.0
    })
}
