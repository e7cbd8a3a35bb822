//! What one capture leaves open and the other decides: whether segments were lost between them. Who is told to compare
//! both ends has done so.

use linerate_model::sample::End;

use super::{JoinedReport, WayReport};
use crate::document::Trace;
use crate::findings::{TcpFinding, TcpFindingKind};
use crate::number::counted;

/// Says in the findings of the capture `at` what both show of their connections, if all of those are in both.
pub(super) fn decide(trace: &mut Trace, at: usize, joined: &[&JoinedReport]) {
    for finding in &mut trace.findings {
        let of_finding: Vec<&JoinedReport> = joined
            .iter()
            .filter(|one| concerns(one, at, finding))
            .copied()
            .collect();
        if !asks_for_the_other_end(finding) || of_finding.len() < finding.connections as usize {
            continue;
        }
        let ways = |end| of_finding.iter().map(move |one| one.from(end));
        let own = finding.who_is;
        let [there, back] = [own, own.other()].map(|end| lost(ways(end)));
        // What one of them missed, or did not run for, stays open.
        let Some((there, back)) = there.zip(back) else {
            continue;
        };
        let (who, toward) = (finding.who, finding.toward);
        finding.explanation = match (there, back) {
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

/// Returns whether a connection is one between the hosts of a finding, as the capture `at` has them.
fn concerns(joined: &JoinedReport, at: usize, finding: &TcpFinding) -> bool {
    let (client, server) = (joined.client[at], joined.server[at]);
    let port = finding.who_port.or(finding.toward_port);
    let hosts = [client.address, server.address];
    let is_between =
        hosts == [finding.who, finding.toward] || hosts == [finding.toward, finding.who];
    is_between && port == Some(server.port)
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
