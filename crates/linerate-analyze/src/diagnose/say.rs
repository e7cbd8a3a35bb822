//! Sentences of what was concluded: a cause's words, and the facts that speak most for it.

use std::collections::BTreeSet;

use linerate_model::finding::EvidenceList;
use linerate_model::limiter::Limiter;

use super::verdict::Verdict;
use crate::dataset::CellOutcomes;
use crate::evidence::{FACTS, Source};
use crate::infer::Inference;
use crate::reduce::describe;
use crate::words;

/// Facts that a claim names.
const FACTS_NAMED: usize = 2;
/// Facts that stand as its evidence.
pub(super) const FACTS_SHOWN: usize = 5;

/// Returns what is said of `cell`, whose limiter was concluded to be `limiter`; `responses` are what the first facts are read from.
pub(super) fn verdict(
    cell: &CellOutcomes<'_>,
    limiter: Limiter,
    inference: &Inference,
    mut responses: BTreeSet<String>,
) -> Option<Verdict> {
    let response = cell.experiment.response.as_str();
    // What the traffic is, everybody knows.
    let telling = |fact: &&usize| FACTS[**fact].source != Source::Traffic;
    let named = inference.because.iter().filter(telling).take(FACTS_NAMED);
    let named: Vec<String> = named.map(|fact| FACTS[*fact].words.to_owned()).collect();
    responses.remove(response);
    let main = cell.main();
    let number = main.map_or("nothing".to_owned(), |main| words::estimate(&main));
    let shown = responses
        .iter()
        .filter_map(|name| cell.evidence(describe(name).title, name));
    let mut shown: Vec<_> = cell
        .evidence(describe(response).title, response)
        .into_iter()
        .chain(shown)
        .collect();
    if shown.is_empty() {
        return None;
    }
    let first = shown.remove(0);
    let because = if named.is_empty() {
        String::new()
    } else {
        format!(": {}", words::list(&named))
    };
    Some(Verdict {
        limiter,
        claim: format!("Limited to {number} by {}{because}.", limiter.title()),
        explanation: format!("{}.", words::sentence(limiter.remedy().raises)),
        effect: main.unwrap_or(first.estimate),
        evidence: EvidenceList::new(first, shown),
        weight: main.map_or(0.0, |main| main.value),
    })
}
