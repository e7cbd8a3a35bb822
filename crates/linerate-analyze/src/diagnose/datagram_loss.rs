//! Where datagrams were lost.
//!
//! Rule: of each cell that lost at least a thousandth of its datagrams ([`LOSS_TOLD_MIN`]), the
//! place that lost the most. The counts behind it add up to what was sent, with a row for what no
//! counter saw ([`linerate_model::datagram::Balance`]).

use linerate_model::datagram::Place;
use linerate_model::finding::EvidenceList;

use super::found::{About, Found, What};
use super::loss_place::{advice, place_words, places};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{dropping_qdiscs, name};
use crate::words;

/// Loss from which on a reader wants to know where: a thousandth is what audio and video over UDP
/// bear without repair.
const LOSS_TOLD_MIN: f64 = 0.001;

pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    dataset
        .experiments()
        .iter()
        .filter_map(|experiment| {
            let loss = |cell: &CellOutcomes<'_>| {
                let loss = cell.mean(name::LOSS_SHARE);
                loss.filter(|_| dataset.is_as_it_is(cell))
            };
            finding(dataset, dataset.most(&experiment.name, loss)?.0)
        })
        .collect()
}

fn finding<'d>(dataset: &Dataset<'_>, cell: &CellOutcomes<'d>) -> Option<Found<'d>> {
    let loss = cell.estimate(name::LOSS_SHARE)?;
    if loss.value < LOSS_TOLD_MIN {
        return None;
    }
    let lost = places(cell);
    let (place, response, most) = *lost.first()?;
    let all: f64 = lost.iter().map(|(_, _, count)| count).sum();
    let mut more: Vec<_> = lost[1..]
        .iter()
        .filter_map(|(place, response, _)| {
            cell.evidence(format!("datagrams lost: {}", place.words()), response)
        })
        .collect();
    more.extend(cell.evidence("datagrams sent", name::DATAGRAMS_SENT));
    more.extend(cell.evidence("datagrams received", name::DATAGRAMS_RECEIVED));
    Some(Found {
        about: About::Experiment(cell.experiment),
        what: What::Loss,
        claim: format!(
            "{} of the datagrams were lost, {} of these at {}{}.",
            words::percent(loss.value),
            words::percent(most / all),
            place_words(place),
            which(dataset, cell, place),
        ),
        explanation: advice(place).to_owned(),
        effect: loss,
        evidence: EvidenceList::new(
            cell.evidence(format!("datagrams lost: {}", place.words()), response)?,
            more,
        ),
        action: None,
    })
}

/// Names the queueing discipline of a sending host that dropped the most, where it was one and was
/// read.
fn which(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, place: Place) -> String {
    if !matches!(place, Place::SenderQueue | Place::SenderQdisc) {
        return String::new();
    }
    let trials = cell.trials().into_iter();
    let qdiscs = trials.flat_map(|trial| dropping_qdiscs(dataset.recording, trial));
    qdiscs
        .max_by_key(|qdisc| qdisc.drops)
        .map_or(String::new(), |qdisc| format!(" ({qdisc})"))
}
