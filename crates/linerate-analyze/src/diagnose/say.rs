//! Sentences of what was concluded: a cause's words, and the facts that speak most for it.
//!
//! Where a limiter's own file has more to say (its window in bytes, the parts of its round trip), that is said; it says it
//! where its own conditions hold, and is silent where they do not.

use std::collections::BTreeSet;

use linerate_model::finding::{Estimate, EvidenceList};
use linerate_model::limiter::Limiter;

use super::rule::Judge;
use super::rules::RULES;
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::evidence::{self, FACTS};
use crate::infer::Inference;
use crate::reduce::describe;
use crate::words;

/// Facts that a claim names.
const FACTS_NAMED: usize = 2;
/// Facts that stand as its evidence.
const FACTS_SHOWN: usize = 5;

/// Returns what is said of `cell`, whose limiter was concluded to be `limiter`.
pub(super) fn verdict(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    limiter: Limiter,
    inference: &Inference,
) -> Option<Verdict> {
    own(dataset, cell, limiter).or_else(|| general(dataset, cell, limiter, inference))
}

/// Returns what the limiter's own file says.
fn own(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, limiter: Limiter) -> Option<Verdict> {
    let mut of_limiter = RULES.iter().filter(|rule| rule.limiter == limiter);
    of_limiter.find_map(|rule| {
        let (Judge::Cell(tell) | Judge::Cause(_, tell)) = rule.judge;
        tell(dataset, cell).filter(|verdict| verdict.limiter == limiter)
    })
}

fn general(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    limiter: Limiter,
    inference: &Inference,
) -> Option<Verdict> {
    let response = cell.experiment.response.as_str();
    let named = inference.because.iter().take(FACTS_NAMED);
    let named: Vec<String> = named.map(|fact| FACTS[*fact].words.to_owned()).collect();
    let mut responses = BTreeSet::new();
    evidence::for_each_view(dataset, cell, |view| {
        for fact in inference.because.iter().take(FACTS_SHOWN) {
            responses.extend(FACTS[*fact].responses(view));
        }
    });
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
    let because = match named.is_empty() {
        true => String::new(),
        false => format!(": {}", words::list(&named)),
    };
    Some(Verdict {
        limiter,
        claim: format!(
            "{} limits the number to {number}{because}.",
            words::sentence(limiter.title())
        ),
        explanation: format!("{}.", words::sentence(limiter.remedy().raises)),
        effect: main.unwrap_or(Estimate { ..first.estimate }),
        evidence: EvidenceList::new(first, shown),
        weight: main.map_or(0.0, |main| main.value),
    })
}
