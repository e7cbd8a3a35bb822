//! Nothing that was sent arrives.
//!
//! Rule: in most trials of the cell, those that may not be averaged included, no transaction ended and no
//! more than half a full segment a second arrived (none, where the receiver was read), while segments were sent
//! again, or timers fired for them where the own host drops what is sent again, which is then not counted; and the
//! receiver did not keep its window closed, which a stopped reader does; and what the sender holds has not
//! arrived, which lost ACKs would leave so. The handshake passed, and the first bytes of each flow: so small
//! packets get through, or did. (Of datagrams: all are lost, and next to no host counts it.) What remains is a path
//! that swallows full-size ones, or a peer that has gone.

use linerate_model::TrialId;
use linerate_model::datagram::Place;
use linerate_model::finding::{Estimate, Evidence, EvidenceList};
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::number;
use linerate_model::unit::Unit;
use linerate_model::workload::Workload;

use super::datagram_rate::loses_unlocated;
use super::host_drops::LOOK_AT_FILTER;
use super::loss_place;
use super::path_rate::DATAGRAM_BYTES_MAX;
use super::rule::{Judge, Rule};
use super::slow_reader::stopped_at_most;
use super::trial::MOST;
use super::verdict::Verdict;
use crate::compare::interval::student_t_interval;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{DATAGRAMS_MIN, LOSS_PLACES, Outcome, Values, describe, name};
use crate::words;

/// Segments sent again from which on a sender has waited twice in vain.
const AGAIN_MIN: f64 = 2.0;
/// Payload that any path carries: IPv6 asks for packets of 1280 B (RFC 8200), less IPv6 and TCP with
/// timestamps.
const SAFE_PAYLOAD_BYTES: f64 = 1208.0;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::NothingArrives,
    needs: "retransmissions, and nothing acknowledged, in most trials",
    importance: 1,
    explains_failure: true,
    judge: Judge::Cell(verdict),
    evident: Some(mend),
    next: |workload| {
        let words = if is_cut(workload) {
            "send datagrams that are one packet: `-l 1400`; firewalls, and paths of a smaller MTU, drop parts of larger ones"
        } else if is_small(workload) && workload.manner.rests_between_requests() {
            "look at the firewalls and address translators on the path: one that forgets a connection in the pauses between \
             its requests drops what comes after; a higher `--rate`, or a shorter `--think`, shows whether it is that"
        } else if is_small(workload) {
            "look at the firewalls on the path, and at whether the other host still answers (`ping`)"
        } else {
            "check firewalls and the path's MTU: `ping -M do -s 1472 HOST` (IPv6: `-s 1452`)"
        };
        Some(words.to_owned())
    },
};

/// Whether no message fills a segment that not every path carries.
fn is_small(workload: &Workload) -> bool {
    let longest = workload.traffic.longest_exchanged();
    workload.manner.sizes.is_none()
        && longest.is_some_and(|bytes| bytes.0 as f64 <= SAFE_PAYLOAD_BYTES)
}

/// Whether datagrams are cut on an Ethernet's way.
fn is_cut(workload: &Workload) -> bool {
    let message = workload.traffic.stream().map(|(_, bytes)| bytes.0);
    workload.manner.transport == Transport::Udp
        && message.is_some_and(|bytes| bytes > DATAGRAM_BYTES_MAX)
}

/// Returns the places whose counters were read, in words.
fn places_read(cell: &CellOutcomes<'_>) -> Vec<String> {
    let all = LOSS_PLACES.iter();
    let read = all
        .filter(|(place, response)| *place != Place::NotLocated && cell.mean(response).is_some());
    read.map(|(place, _)| place.words().to_owned()).collect()
}

/// What a host drops that is all that was sent: most of it at one place.
fn at_host(cell: &CellOutcomes<'_>, sent: &Estimate) -> Option<Verdict> {
    let all = loss_place::places(cell);
    let (place, response, count) = *all.first()?;
    if place == Place::NotLocated || count < MOST * sent.value {
        return None;
    }
    Some(Verdict {
        limiter: Limiter::NothingArrives,
        claim: format!(
            "Nothing that was sent arrived: {} per trial, {} of them lost at {}.",
            words::things(sent.value, "datagram"),
            words::percent(count / sent.value),
            loss_place::place_words(place),
        ),
        explanation: loss_place::advice(place).to_owned(),
        weight: sent.value,
        effect: *sent,
        evidence: cell.proof(&[
            ("datagrams sent", name::DATAGRAMS_SENT),
            ("share of the datagrams lost", name::LOSS_SHARE),
            ("datagrams lost there", response),
        ])?,
    })
}

/// What to do about what a host drops.
fn mend(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    if cell.is_rr() || loses_unlocated(cell) != Some(false) {
        return None;
    }
    match loss_place::places(cell).first()?.0 {
        Place::Reassembly => {
            let words = "send datagrams that are one packet (`-l 1400`): the receiving host has no memory for more fragments \
                         (Ip: ReasmFails, net.ipv4.ipfrag_high_thresh)";
            Some(words.to_owned())
        }
        Place::ReceiverIp => Some(LOOK_AT_FILTER.to_owned()),
        _ => None,
    }
}

/// Of datagrams that were sent, none arrived at a host that was read.
fn of_datagrams(cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let sent = cell.estimate(name::DATAGRAMS_SENT)?;
    let lost = cell.mean(name::LOSS_SHARE)?;
    if sent.value < DATAGRAMS_MIN || lost < 1.0 {
        return None;
    }
    // A stray drop at a host may be anybody's.
    if !loses_unlocated(cell)? {
        return at_host(cell, &sent);
    }
    let explanation = match cell
        .message_bytes()
        .filter(|bytes| *bytes > DATAGRAM_BYTES_MAX)
    {
        Some(_) => {
            "The greeting of each flow passed, which is small. What is longer than a packet is cut in parts (fragments) or does \
             not go: firewalls drop parts, and so do paths of a smaller MTU of which no ICMP message says so."
        }
        None => {
            "The greeting of each flow passed, which is small. Something drops the traffic since: a firewall, or a path that \
             carries only smaller packets."
        }
    };
    Some(Verdict {
        limiter: Limiter::NothingArrives,
        claim: format!(
            "Nothing that was sent arrived: {} per trial, and next to none of them is counted at {}.",
            words::things(sent.value, "datagram"),
            words::list(&places_read(cell)),
        ),
        explanation: explanation.to_owned(),
        weight: sent.value,
        effect: sent,
        evidence: cell.proof(&[
            ("datagrams sent", name::DATAGRAMS_SENT),
            ("share of the datagrams lost", name::LOSS_SHARE),
            (
                "datagrams lost where no host counts them",
                name::LOST_NOT_LOCATED,
            ),
        ])?,
    })
}

fn verdict(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    if cell.workload.manner.transport == Transport::Udp && !cell.is_rr() {
        return of_datagrams(cell);
    }
    let all: Vec<&Outcome> = cell.valid.iter().chain(&cell.invalid).collect();
    let in_vain: Vec<&Outcome> = all
        .iter()
        .copied()
        .filter(|one| is_in_vain(cell, one))
        .collect();
    if in_vain.is_empty() || 2 * in_vain.len() <= all.len() {
        return None;
    }
    let trials: Vec<TrialId> = in_vain.iter().map(|outcome| outcome.trial).collect();
    let estimate = |response: &str| -> Option<Estimate> {
        let values: Vec<f64> = in_vain
            .iter()
            .filter_map(|one| one.value(response))
            .collect();
        student_t_interval(&values, describe(response).unit)
    };
    let evidence = |what: &str, response: &str| {
        Some(Evidence {
            what: what.to_owned(),
            estimate: estimate(response)?,
            trials: trials.clone(),
        })
    };
    let again = estimate(name::RETRANSMITTED).filter(|again| again.value >= AGAIN_MIN);
    let (again, what) = match again {
        Some(again) => (again, "segments per trial were retransmitted"),
        None => (
            estimate(name::TIMEOUTS)?,
            "retransmission timers per trial fired",
        ),
    };
    let segment = estimate(name::SEND_MSS);
    let sizes =
        segment.filter(|bytes| bytes.value > SAFE_PAYLOAD_BYTES && !is_small(&cell.workload));
    let explanation = match sizes {
        Some(bytes) => format!(
            "The handshake and the first few bytes passed; segments of {} did not. If the path carries \
             only smaller packets and no ICMP message says so, full segments vanish: try `ping -M do -s \
             SIZE` and `-M {SAFE_PAYLOAD_BYTES}`, and compare the MTUs along the path. If that does not \
             help, the peer or the path to it is gone.",
            words::number(Unit::Bytes, bytes.value)
        ),
        None if cell.workload.manner.rests_between_requests() => {
            "The handshake passed, and these messages are no longer than that; a firewall or address translator that forgets \
             a connection in its pauses drops what comes after, and nothing comes from a peer that has gone."
                .to_owned()
        }
        None => "The handshake passed, so small packets got through at that time. Since then the peer or \
                 the path to it has gone, or something drops the traffic of this connection."
            .to_owned(),
    };
    let more = [
        evidence("segments retransmitted", name::RETRANSMITTED),
        evidence("payload of a full-size segment", name::SEND_MSS),
        evidence("retransmission timeouts", name::TIMEOUTS),
        evidence("share of segments retransmitted", name::RETRANSMITTED_SHARE),
    ];
    let first = evidence(describe(main_response(cell)).title, main_response(cell));
    let mut all_evidence = first.into_iter().chain(more.into_iter().flatten());
    Some(Verdict {
        limiter: Limiter::NothingArrives,
        claim: format!(
            "Nothing that was sent arrived: {} {what}, and nothing was acknowledged, in {} of {}.",
            words::number(Unit::Count, again.value),
            in_vain.len(),
            number::counted(all.len(), "trial"),
        ),
        explanation,
        effect: again,
        evidence: EvidenceList::new(all_evidence.next()?, all_evidence.collect()),
        weight: again.value,
    })
}

fn main_response(cell: &CellOutcomes<'_>) -> &'static str {
    if cell.is_rr() {
        name::TRANSACTIONS
    } else {
        name::THROUGHPUT
    }
}

fn is_in_vain(cell: &CellOutcomes<'_>, outcome: &Outcome) -> bool {
    let has_sent_again = outcome.reaches(name::RETRANSMITTED, AGAIN_MIN)
        || outcome.reaches(name::TIMEOUTS, AGAIN_MIN);
    let least = match cell.is_rr() {
        true => 0.0,
        // Something came where the receiver itself says so.
        false if outcome.value(name::UNREAD).is_some() => 0.0,
        false => {
            let asked = outcome
                .value(name::THROUGHPUT_INTENDED)
                .unwrap_or(f64::INFINITY);
            (4.0 * outcome.amount(name::SEND_MSS).least()).min(asked / 2.0)
        }
    };
    let is_shut_out = stopped_at_most(outcome).reaches(MOST);
    // What nobody read may have arrived.
    outcome.stays_within(main_response(cell), least)
        && has_sent_again
        && !is_shut_out
        && !has_arrived(outcome)
}

/// Whether the receiver has what the sender holds unacknowledged, so that ACKs are lost on their way back.
fn has_arrived(outcome: &Outcome) -> bool {
    let known = || {
        let flight = outcome.value(name::IN_FLIGHT)?;
        let on_its_way = outcome.value(name::ON_ITS_WAY)?;
        let segment = outcome.value(name::SEND_MSS)?;
        // Small messages are segments, too, and count as whole ones in what is in flight.
        let payload = outcome.value(name::PAYLOAD_PER_SEGMENT);
        let is_full = payload.is_none_or(|bytes| bytes <= 0.0 || bytes >= segment / 2.0);
        // Of nothing on its way all has arrived, however long the segments are.
        let is_all = flight > 0.0 && on_its_way < 1.0;
        Some(is_all || (is_full && flight - on_its_way >= segment))
    };
    known().unwrap_or(false)
}
