//! Identifiers inside the page: unique, stable, made of safe characters.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::analysis::Analysis;
use linerate_model::id::TrialId;

use crate::wording;

/// The identifiers of everything that the page links to.
pub struct Anchors {
    /// One per finding, in order.
    pub findings: Vec<String>,
    /// One per chapter, in order.
    pub chapters: Vec<String>,
    /// One per chapter and figure, in order, those over time last.
    pub figures: Vec<Vec<String>>,
    /// The number of each chapter, as they stand: without gaps, and none outside a study.
    pub numbers: Vec<Option<usize>>,
    /// The number of the first figure of each chapter.
    pub figure_numbers: Vec<usize>,
    /// The findings of each chapter that stand in no earlier one; at the end those of none.
    own_findings: Vec<Vec<usize>>,
    trial_places: BTreeMap<TrialId, (usize, usize)>,
}

impl Anchors {
    /// Names everything in `analysis` that can be linked to.
    pub fn new(analysis: &Analysis) -> Self {
        let mut used = BTreeSet::new();
        let mut unique = |prefix: &str, id: &str| {
            let base = format!("{prefix}-{}", slug(id));
            let mut name = base.clone();
            let mut count = 1;
            while !used.insert(name.clone()) {
                count += 1;
                name = format!("{base}-{count}");
            }
            name
        };
        let findings = analysis
            .findings
            .iter()
            .map(|finding| unique("finding", &finding.id))
            .collect();
        let chapters = analysis
            .chapters
            .iter()
            .map(|chapter| unique("chapter", &chapter.id))
            .collect();
        let figures = analysis
            .chapters
            .iter()
            .map(|chapter| {
                let figures = chapter.figures.iter().chain(&chapter.over_time);
                figures.map(|figure| unique("figure", &figure.id)).collect()
            })
            .collect();
        Self {
            findings,
            chapters,
            figures,
            numbers: wording::chapter_numbers(analysis),
            figure_numbers: figure_numbers(analysis),
            own_findings: own_findings(analysis),
            trial_places: trial_places(analysis),
        }
    }

    /// Returns the places of the findings that stand in a chapter, or in none.
    pub fn findings_of(&self, chapter: Option<usize>) -> &[usize] {
        let at = chapter.unwrap_or(self.own_findings.len() - 1);
        &self.own_findings[at]
    }

    /// Returns the identifier of `trial` if the page lists it.
    pub fn trial(&self, trial: TrialId) -> Option<String> {
        let listed = self.trial_places.contains_key(&trial);
        listed.then(|| trial_name(trial))
    }

    /// Returns the identifier of `trial` for the row that its links lead to.
    ///
    /// A trial that serves several chapters is linked to where it is listed first.
    pub fn trial_row(&self, trial: TrialId, chapter: usize, row: usize) -> Option<String> {
        let first = self.trial_places.get(&trial) == Some(&(chapter, row));
        first.then(|| trial_name(trial))
    }
}

fn trial_name(trial: TrialId) -> String {
    format!("trial-{}", trial.0)
}

fn figure_numbers(analysis: &Analysis) -> Vec<usize> {
    let mut next = 1;
    let chapters = analysis.chapters.iter();
    let first = chapters.map(|chapter| {
        let first = next;
        next += chapter.figures.len();
        first
    });
    first.collect()
}

fn own_findings(analysis: &Analysis) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..analysis.findings.len()).collect();
    let mut own: Vec<Vec<usize>> = Vec::new();
    for chapter in &analysis.chapters {
        let is_own = |at: &usize| chapter.findings.contains(&analysis.findings[*at].id);
        let (mine, others) = left.into_iter().partition(is_own);
        own.push(mine);
        left = others;
    }
    own.push(left);
    own
}

fn trial_places(analysis: &Analysis) -> BTreeMap<TrialId, (usize, usize)> {
    let mut places = BTreeMap::new();
    for (at, chapter) in analysis.chapters.iter().enumerate() {
        for (row, line) in chapter.trials.iter().enumerate() {
            places.entry(line.trial).or_insert((at, row));
        }
    }
    places
}

/// Returns `id` with everything but ASCII letters and digits replaced by single hyphens.
fn slug(id: &str) -> String {
    let words = id
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_hold_only_safe_characters() {
        assert_eq!(slug("socket-buffer/plateau/1"), "socket-buffer-plateau-1");
        assert_eq!(slug("\"><script>"), "script");
        assert_eq!(slug("é"), "");
    }
}
