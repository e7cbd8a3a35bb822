//! Whether the sentences of a report agree with each other.
//!
//! Truth and agreement are two things: what is told twice, or one way on the first page and another in a
//! chapter, is wrong for the reader even where one of the two holds.

use linerate_model::analysis::{Analysis, Chapter, TableCell};
use linerate_model::finding::{Comparison, Estimate, Finding, FindingKind, TrustLevel, Verdict};
use linerate_model::limiter::Limiter;

use linerate_analyze::{FINDINGS_MAX, limiters};
use linerate_model::text::sentence;

/// Returns what sentences of `analysis` disagree about, or say twice.
pub fn disagreements(analysis: &Analysis) -> Vec<String> {
    let mut found = Vec::new();
    let told: Vec<&Finding> = analysis.findings.iter().chain(&analysis.cautions).collect();
    for (at, one) in told.iter().enumerate() {
        if told[..at].iter().any(|other| other.claim == one.claim) {
            found.push(format!("told twice: {}", one.claim));
        }
    }
    if analysis.findings.len() > FINDINGS_MAX {
        found.push(format!("{} findings", analysis.findings.len()));
    }
    let doubted = analysis
        .findings
        .iter()
        .filter(|finding| match finding.kind {
            FindingKind::Limiter(limiter) => !is_in_chapter(analysis, finding, limiter.title()),
            FindingKind::Effect => !is_decided(analysis, finding),
            _ => false,
        });
    found.extend(doubted.map(|finding| format!("only on the first page: {}", finding.claim)));
    let same = analysis.verdicts.iter().filter(|it| !is_shown_same(it));
    found.extend(same.map(|it| format!("the same, and the interval says otherwise: {}", it.what)));
    let is_good = |trust: &linerate_model::finding::Trust| trust.level == TrustLevel::Good;
    if analysis.trust.as_ref().is_some_and(is_good) && !analysis.cautions.is_empty() {
        found.push("good, with cautions".to_owned());
    }
    found.extend(analysis.chapters.iter().filter_map(second_limiter));
    found
}

/// Whether all that a comparison calls the same is within the margin with its whole interval.
fn is_shown_same(comparison: &Comparison) -> bool {
    let margin = 1.0 + comparison.margin;
    let is_within = |estimate: &Estimate| {
        let least = estimate.low.unwrap_or(estimate.value);
        let most = estimate.high.unwrap_or(estimate.value);
        // Of buffers the loss is a share of the control, else a quotient either way.
        let bound = if comparison.is_plateau {
            1.0 - comparison.margin
        } else {
            1.0 / margin
        };
        least > bound && most < margin
    };
    let levels = comparison
        .levels
        .iter()
        .map(|(_, verdict, ratio)| (*verdict, ratio));
    let mut all = levels.chain([(comparison.verdict, &comparison.effect)]);
    all.all(|(verdict, ratio)| verdict != Verdict::Same || is_within(ratio))
}

/// Whether the table of limiters has the one of `finding` for its experiment.
fn is_in_chapter(analysis: &Analysis, finding: &Finding, limiter: &str) -> bool {
    let tables = analysis.chapters.iter().flat_map(|chapter| &chapter.tables);
    let mut tables = tables.filter(|table| table.title == "Limiter of each experiment");
    let mut chapters = analysis.chapters.iter();
    let is_own = |chapter: &&Chapter| finding.experiment.as_ref() == Some(&chapter.id);
    let Some(chapter) = chapters.find(is_own) else {
        return false;
    };
    let cells = [chapter.title.clone(), sentence(limiter)].map(TableCell::Text);
    tables.any(|table| {
        let mut rows = table.rows.iter();
        rows.any(|row| cells.iter().all(|cell| row.contains(cell)))
    })
}

/// Whether a comparison decided what `finding` claims, of all levels or of one.
fn is_decided(analysis: &Analysis, finding: &Finding) -> bool {
    let mut verdicts = analysis.verdicts.iter();
    verdicts.any(|comparison| {
        let mut levels = comparison.levels.iter();
        comparison.id == finding.id
            && (comparison.verdict == Verdict::Differs
                || levels.any(|(_, verdict, _)| *verdict == Verdict::Differs))
    })
}

/// The sentence of a chapter's answer that names a limiter other than the one that the chapter ends with.
fn second_limiter(chapter: &Chapter) -> Option<String> {
    let texts = chapter
        .answer
        .as_deref()
        .zip(chapter.consequence.as_deref());
    let (answer, consequence) = texts?;
    let other = other_limiter(answer, consequence)?;
    Some(format!("{}: {other} {consequence}", chapter.title))
}

fn other_limiter<'t>(answer: &'t str, consequence: &str) -> Option<&'t str> {
    let title = consequence.strip_prefix("Limited by ")?;
    let mut all = limiters().into_iter().map(Limiter::title);
    let own = all.find(|known| title.starts_with(known))?;
    let names = |sentence: &&str| sentence.contains("limiter") || sentence.contains("imited by");
    let mut sentences = answer.split_inclusive(". ").filter(names);
    sentences.find(|sentence| !sentence.contains(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chapter_names_one_limiter() {
        let consequence = "Limited by the link's rate in 4 of 4 cells: a faster link raises it.";
        let one_cpu =
            "One CPU is the limiter: CPU 0 of server spent 99.8 % of its time in interrupts.";
        for (answer, expected) in [
            (
                "It is even. CPU 0 of server spent 99.8 % in interrupts.".to_owned(),
                None,
            ),
            (
                "It is even. 9 Mbit/s, limited by the link's rate.".to_owned(),
                None,
            ),
            (format!("It is even. {one_cpu}"), Some(one_cpu)),
        ] {
            assert_eq!(other_limiter(&answer, consequence), expected, "{answer}");
        }
        assert_eq!(other_limiter(one_cpu, "More of it."), None);
    }
}
