//! Where datagrams were lost.
//!
//! Rule: of each cell that lost at least a thousandth of its datagrams ([`LOSS_SHARE_MIN`]), the
//! place that lost the most. The counts behind it add up to what was sent, with a row for what no
//! counter saw ([`linerate_model::datagram::Balance`]).

use linerate_model::datagram::Place;
use linerate_model::finding::EvidenceList;

use super::found::{About, Found, What};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{LOSS_PLACES, dropping_qdiscs, name};
use crate::words;

/// Loss from which on a reader wants to know where: a thousandth is what audio and video over UDP
/// bear without repair.
const LOSS_SHARE_MIN: f64 = 0.001;

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
    if loss.value < LOSS_SHARE_MIN {
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

/// Returns the places that lost any, with the response and the count of each, the one with the most first.
pub(super) fn places(cell: &CellOutcomes<'_>) -> Vec<(Place, &'static str, f64)> {
    let mut lost: Vec<(Place, &str, f64)> = LOSS_PLACES
        .iter()
        .filter_map(|(place, response)| Some((*place, *response, cell.mean(response)?)))
        .filter(|(_, _, count)| *count > 0.0)
        .collect();
    lost.sort_by(|a, b| b.2.total_cmp(&a.2));
    lost
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

pub(super) fn place_words(place: Place) -> &'static str {
    match place {
        Place::NotLocated => "an unknown location (no counter covers it)",
        Place::Checksum => "the receiver's checksum check",
        _ => place.words(),
    }
}

/// What a loss at `place` means and what to do about it.
pub(super) fn advice(place: Place) -> &'static str {
    match place {
        Place::SenderQueue => {
            "The sending host refused them itself. As a rule its qdisc is full (ENOBUFS), because the \
             requested rate is above what the device or a shaper takes: lower the rate (-b), or raise the \
             queue's limit for bursts. Without a route to the peer it refuses them, too."
        }
        Place::SenderQdisc => {
            "A qdisc of the sending host took them and dropped them later, because they waited too long \
             (codel, fq_codel), because of its policy (red, cake) or as configured (netem): `tc -s qdisc` \
             shows which one. Lower the rate (-b), or give the device another qdisc."
        }
        Place::SenderDevice => {
            "The devices of the sending host count them as dropped: their queues are full. Lower the rate \
             (-b), or use longer rings (`ethtool -G`)."
        }
        Place::ReceiverDevice => {
            "The devices of the receiving host count them as dropped: packets arrive faster than the host \
             processes them. Use longer rings (`ethtool -G`), or spread flows over more queues."
        }
        Place::ReceiverBacklog => {
            "A CPU of the receiving host had more packets waiting than net.core.netdev_max_backlog \
             allows (softnet_stat). Raise it for bursts, or spread packets over CPUs (RPS)."
        }
        Place::ReceiverQdisc => {
            "A qdisc of the receiving host dropped them on their way in: a policer at ingress, or the shaper of a device \
             that what comes is redirected to (ifb). `tc -s qdisc` names it; lower the rate (-b), or change it."
        }
        Place::Reassembly => {
            "They are longer than a packet of the path and come in fragments, for which the receiving host had no memory \
             (Ip: ReasmFails): what misses a fragment takes it for net.ipv4.ipfrag_time, and everything that is cut is \
             dropped meanwhile. Send datagrams that are one packet (`-l 1472` at an MTU of 1500 B, `-l 1452` over IPv6); \
             net.ipv4.ipfrag_high_thresh is the memory."
        }
        Place::ReceiverIp => {
            "They came to the receiving host's IP, which did not deliver them: its packet filter or its connection tracking \
             drops them, as a rule. `nft list ruleset`, `iptables -nvL` and `conntrack -S` of that host name it; `nstat` \
             has what IP counts else."
        }
        Place::Checksum => {
            "They arrived damaged: check for a bad cable, a bad device or a broken offload."
        }
        Place::ReceiveBuffer => {
            "They reached the receiving socket, whose buffer was full: the reader is slower than the \
             sender, or sleeps longer than the buffer lasts. A larger buffer (-w, up to \
             net.core.rmem_max) helps against bursts, a cheaper way to receive (--gro, --batch) or a \
             CPU of its own against a reader that is too slow."
        }
        Place::NotLocated => {
            "Neither host counts them as dropped: they were lost between the hosts, in a switch or on a \
             link, or where this kernel has no counter."
        }
    }
}
