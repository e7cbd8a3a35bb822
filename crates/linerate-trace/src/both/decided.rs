//! What one capture leaves open and the other decides: whether segments were lost between them. Who is told to compare
//! both ends has done so.

use std::collections::BTreeSet;

use linerate_model::sample::End;

use super::{JoinedReport, WayReport};
use crate::document::Trace;
use crate::findings::{TcpFinding, TcpFindingKind};
use crate::number::counted;

/// Says in the findings of the capture `at` what both show of their connections, if all of those are in both.
pub(super) fn decide(trace: &mut Trace, at: usize, joined: &[&JoinedReport]) {
    for finding in &mut trace.findings {
        let proofs = finding.proofs.iter();
        let numbers: BTreeSet<u32> = proofs.map(|proof| proof.connection).collect();
        let its = joined.iter();
        let its: Vec<_> = its
            .filter(|one| numbers.contains(&one.numbers[at]))
            .collect();
        // Of more connections than there are proofs nothing says which.
        let are_known = finding.connections as usize == numbers.len() && its.len() == numbers.len();
        if !asks_for_the_other_end(finding) || !are_known {
            continue;
        }
        let ways = |end| its.iter().map(move |one| one.from(end));
        let own = finding.who_is;
        let [there, back] = [own, own.other()].map(|end| lost(ways(end)));
        // What one of them missed, or did not run for, stays open.
        let Some((there, back)) = there.zip(back) else {
            continue;
        };
        let (who, toward) = (finding.who, finding.toward);
        finding.explanation = match (there, back) {
            ((0, 0), (0, 0)) if finding.kind == TcpFindingKind::HandshakeIncomplete => {
                "Both captures show it: between them nothing was lost. It was lost or not answered beyond them, or \
                 the client never sent the SYN (a forged address)."
                    .to_owned()
            }
            ((0, 0), (0, 0)) => {
                "Both captures show it: between them nothing was lost. What was, was lost \
                                 beyond them, at a host or on the way to it."
                    .to_owned()
            }
            _ => format!(
                "Both captures show it: between them were lost {} on the way from {who} to {toward}, and {} on the way \
                 back.",
                amount(there),
                amount(back)
            ),
        };
        finding.advice = (finding.kind == TcpFindingKind::Loss).then(|| {
            match (there, back) {
                ((0, 0), (0, 0)) => "capture further on; `linerate watch` shows where hosts drop",
                _ => "look at what lies between the captures: queues, policers, cables",
            }
            .to_owned()
        });
    }
}

/// Returns whether a finding leaves open what was lost where.
fn asks_for_the_other_end(finding: &TcpFinding) -> bool {
    match finding.kind {
        TcpFindingKind::Loss | TcpFindingKind::HandshakeIncomplete => true,
        // Unless its acknowledgement had passed here: that says more.
        TcpFindingKind::SynAgain => finding.who_is == End::Server && finding.value == 0,
        _ => false,
    }
}

/// Returns how many segments and acknowledgements were lost on ways, if that is known of all.
fn lost<'a>(ways: impl Iterator<Item = &'a WayReport>) -> Option<(u64, u64)> {
    let mut sum = (0, 0);
    for way in ways {
        let open = [
            way.undecided,
            way.acks_undecided,
            way.missed_by_capture,
            way.outside,
        ];
        if open != [0; 4] {
            return None;
        }
        sum = (sum.0 + way.lost, sum.1 + way.acks_lost);
    }
    Some(sum)
}

fn amount((segments, acks): (u64, u64)) -> String {
    match (segments, acks) {
        (0, 0) => "nothing".to_owned(),
        (segments, 0) => counted(segments, "segment"),
        (0, acks) => counted(acks, "ACK"),
        _ => format!(
            "{} and {}",
            counted(segments, "segment"),
            counted(acks, "ACK")
        ),
    }
}
