//! The smallest buffer that reaches the best throughput.
//!
//! For each combination of the other factors, the plateau over the socket buffers is looked for as
//! `compare::plateau` defines it, with the noise of the whole experiment. Three claims are
//! possible: it begins inside the range; even the smallest buffer reaches it; throughput still
//! grows at the largest buffer.

use linerate_model::experiment::{Experiment, Factor};
use linerate_model::finding::{Estimate, EvidenceList, Finding, FindingKind};

use crate::compare::plateau::{Plateau, Step, plateau};
use crate::compare::ratio::ratio;
use crate::dataset::{CellOutcomes, Dataset, groups, varied};
use crate::words;

/// Difference that has to be told apart for a plateau to mean a setting.
const BLURRED_SHARE_MIN: f64 = 0.1;

/// A plateau over the levels of one factor.
pub(crate) struct LevelPlateau<'d, 'a> {
    /// The other levels in words; empty when nothing else varies.
    pub(crate) words: String,
    /// The cells with a valid response, by level.
    pub(crate) cells: Vec<&'d CellOutcomes<'a>>,
    /// Where it begins.
    pub(crate) plateau: Plateau,
}

impl<'d, 'a> LevelPlateau<'d, 'a> {
    /// Returns the cell at which the plateau begins.
    pub(crate) fn begin(&self) -> &'d CellOutcomes<'a> {
        self.cells[self.plateau.begin]
    }

    /// Returns the best cell.
    pub(crate) fn best(&self) -> &'d CellOutcomes<'a> {
        self.cells[self.plateau.best]
    }

    /// Returns whether noise hides differences that matter.
    pub(crate) fn is_blurred(&self) -> bool {
        self.plateau.resolution > BLURRED_SHARE_MIN
    }

    /// Returns whether throughput still grows at the largest level.
    pub(crate) fn is_open(&self) -> bool {
        self.plateau.begin + 1 == self.cells.len()
    }
}

/// Returns the plateaus of an experiment's response over `x`, one for each combination.
pub(crate) fn plateaus<'d, 'a>(
    dataset: &'d Dataset<'a>,
    experiment: &Experiment,
    x: Factor,
) -> Vec<LevelPlateau<'d, 'a>> {
    let cells = dataset.cells_of(&experiment.name);
    if !varied(&cells).contains(&x) {
        return Vec::new();
    }
    let noise = Dataset::noise(&cells, &experiment.response);
    groups(&cells, x)
        .into_iter()
        .filter_map(|group| {
            let known =
                |cell: &&&CellOutcomes<'_>| cell.main().is_some() && cell.number(x).is_some();
            let cells: Vec<_> = group.cells.iter().filter(known).copied().collect();
            let step = |cell: &&CellOutcomes<'_>| {
                let main = cell.main()?;
                Some(Step {
                    level: cell.number(x)?,
                    mean: main.value,
                    n: main.n,
                })
            };
            let steps: Vec<Step> = cells.iter().filter_map(step).collect();
            Some(LevelPlateau {
                words: group.words,
                plateau: plateau(&steps, noise)?,
                cells,
            })
        })
        .collect()
}

pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Finding> {
    let experiments = &dataset.recording.document.plan.experiments;
    let mut findings = Vec::new();
    for experiment in experiments {
        let plateaus = plateaus(dataset, experiment, Factor::SocketBuffer);
        for (at, plateau) in plateaus.iter().enumerate() {
            findings.extend(finding(experiment, at + 1, plateau));
        }
    }
    findings
}

fn finding(experiment: &Experiment, at: usize, found: &LevelPlateau<'_, '_>) -> Option<Finding> {
    let begin = found.begin();
    let (reached, best) = (begin.main()?, found.best().main()?);
    let smallest = found.cells.first()?;
    let evidence: Vec<_> = found
        .cells
        .iter()
        .filter_map(|cell| {
            let what = format!("throughput with {} buffers", buffer(cell)?);
            cell.evidence(what, &experiment.response)
        })
        .collect();
    let (first, more) = evidence.split_first()?;
    Some(Finding {
        id: format!("{}/plateau/{at}", experiment.name),
        chapter: experiment.chapter,
        kind: FindingKind::Plateau,
        claim: claim(found, &reached, &best)?,
        explanation: explanation(found),
        effect: ratio(&smallest.main()?, &reached)?,
        evidence: EvidenceList::new(first.clone(), more.to_vec()),
    })
}

/// Returns the level of the socket buffer in words.
pub(crate) fn buffer(cell: &CellOutcomes<'_>) -> Option<String> {
    let level = cell.level(Factor::SocketBuffer)?;
    Some(words::bare_level(Factor::SocketBuffer, level))
}

fn claim(found: &LevelPlateau<'_, '_>, reached: &Estimate, best: &Estimate) -> Option<String> {
    let with = match found.words.is_empty() {
        true => String::new(),
        false => format!("With {}, ", found.words),
    };
    let size = buffer(found.begin())?;
    let blurred = match found.is_blurred() {
        true => format!(
            ", as far as differences above {} show",
            words::percent(found.plateau.resolution)
        ),
        false => String::new(),
    };
    let text = match found.plateau.begin {
        0 => format!(
            "{with}even the smallest buffer, {size}, reaches the best throughput: {} of at most {}{blurred}.",
            words::estimate(reached),
            words::estimate(best),
        ),
        at if found.is_open() => format!(
            "{with}throughput still grows at the largest buffer tried, {size}: {} after {} with {}.",
            words::estimate(reached),
            words::estimate(&found.cells[at - 1].main()?),
            buffer(found.cells[at - 1])?,
        ),
        at => format!(
            "{with}buffers of {size} reach the plateau: {} of at most {}, while {} reach {}{blurred}.",
            words::estimate(reached),
            words::estimate(best),
            buffer(found.cells[at - 1])?,
            words::estimate(&found.cells[at - 1].main()?),
        ),
    };
    let mut letters = text.chars();
    let first = letters.next()?;
    Some(first.to_uppercase().chain(letters).collect())
}

fn explanation(found: &LevelPlateau<'_, '_>) -> String {
    let mut text = "The plateau begins at the smallest level whose distance to the best is no larger \
                    than chance explains or 1 %. Larger buffers cost memory on every connection and \
                    gain nothing."
        .to_owned();
    if found.plateau.begin == 0 {
        text = "No buffer tried is small enough to hold throughput down on this path: the round \
                trip is so short that a small window suffices."
            .to_owned();
    } else if found.is_open() {
        text = "The range of buffers ends before the plateau begins; larger ones may reach more."
            .to_owned();
    }
    if found.is_blurred() {
        text += &format!(
            " Trials differ so much that a level up to {} below the best is not told apart from it: \
             more replicates or a quieter machine may find a later begin.",
            words::percent(found.plateau.resolution)
        );
    }
    let fallen: Vec<String> = found
        .plateau
        .fallen
        .iter()
        .filter_map(|at| buffer(found.cells[*at]))
        .collect();
    if !fallen.is_empty() {
        text += &format!(
            " With {} throughput falls back again.",
            words::list(&fallen)
        );
    }
    text
}
