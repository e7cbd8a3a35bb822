//! What limits a stream that goes both ways: each direction by itself.
//!
//! Both directions have one round trip, since data of one and ACKs of the other wait together. What tells which of them is
//! full is how much is on its way to its receiver, and that this goes with the round trip. So each is judged as a stream of
//! its own, by all rules. Of what is told first more arrives; what is known of one is told where the other's limiter is not.

use linerate_model::finding::{Estimate, Evidence, EvidenceList};
use linerate_model::workload::Direction;

use super::limiter::first;
use super::path_rate;
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

/// A direction of a cell.
pub(super) struct Way<'a> {
    /// "to the server".
    pub(super) words: &'static str,
    rate: Estimate,
    /// The cell as if nothing went the other way.
    pub(super) cell: CellOutcomes<'a>,
    /// What limits it.
    pub(super) verdict: Option<Verdict>,
}

/// Returns the rates to the server and from it, where payload goes both ways.
pub(crate) fn rates_of_both(cell: &CellOutcomes<'_>) -> Option<[Estimate; 2]> {
    let to = cell.estimate(name::THROUGHPUT_TO_SERVER)?;
    let from = cell.estimate(name::THROUGHPUT_FROM_SERVER)?;
    cell.workload.goes_both_ways().then_some([to, from])
}

/// Returns the directions of a cell whose payload goes both ways, that first whose limiter is known, and of two such the
/// one that carries more.
pub(super) fn ways<'a>(dataset: &Dataset<'a>, cell: &CellOutcomes<'a>) -> Option<[Way<'a>; 2]> {
    let [to, from] = rates_of_both(cell)?;
    let way = |words, rate, cell| Way {
        words,
        rate,
        verdict: first(dataset, &cell),
        cell,
    };
    let [to_server, from_server] =
        dataset.one_way(cell, [Direction::ToServer, Direction::FromServer])?;
    let to = way("to the server", to, to_server);
    let from = way("from the server", from, from_server);
    let order = |way: &Way<'_>| (way.verdict.is_some(), way.rate.value);
    Some(if order(&from) > order(&to) {
        [from, to]
    } else {
        [to, from]
    })
}

/// Returns what is known of either direction.
pub(super) fn verdict(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let [shown, other] = ways(dataset, cell)?;
    let verdict = shown.verdict?;
    let said = directed(shown.words, &verdict.claim);
    let of_shown = of_way(shown.words, &verdict);
    let (claim, explanation, of_other) = match other.verdict {
        Some(second) => {
            let explanation = if second.limiter == verdict.limiter {
                verdict.explanation
            } else {
                format!(
                    "{} {}: {}",
                    verdict.explanation,
                    words::sentence(other.words),
                    second.explanation
                )
            };
            let claim = format!("{said} {}", directed(other.words, &second.claim));
            (claim, explanation, of_way(other.words, &second))
        }
        None => {
            let rate = words::estimate(&other.rate);
            let acks = if path_rate::acks_wait(dataset, &other.cell) {
                "; its ACKs wait on their way back"
            } else {
                ""
            };
            let claim = format!(
                "{said} What limits the {rate} {} is not known{acks}.",
                other.words
            );
            (claim, verdict.explanation, Vec::new())
        }
    };
    let mut evidence = of_shown.into_iter().chain(of_other);
    Some(Verdict {
        claim,
        explanation,
        evidence: EvidenceList::new(evidence.next()?, evidence.collect()),
        ..verdict
    })
}

/// "To the server, the path is full: ...".
fn directed(way: &str, claim: &str) -> String {
    format!("{}, {}", words::sentence(way), words::clause(claim))
}

fn of_way(way: &str, verdict: &Verdict) -> Vec<Evidence> {
    let evidence = verdict.evidence.as_slice().iter();
    let directed = evidence.map(|piece| Evidence {
        what: format!("{way}: {}", piece.what),
        ..piece.clone()
    });
    directed.collect()
}
