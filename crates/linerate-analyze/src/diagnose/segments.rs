//! Segment sizes that alternate, or do not.
//!
//! With Nagle and delayed ACK on, Solaris sent one message alone and then as many whole messages
//! as fit a segment, in turn: for m = 100 B and MSS 1460 B, 100, 1400, 100, 1400 …. The mean
//! payload of a data segment is then
//!
//!   (⌊MSS / m⌋ + 1) · m / 2        (bytes; for m ≤ MSS / 2, above which each message is a segment)
//!
//! and throughput is segments/s × that × 8. Linux treats a stream as bytes: it appends messages to
//! the last unsent segment across message boundaries, so that segments are full or, without Nagle,
//! as large as what was written when the link was free.
//!
//! Rule: payload per data segment within 5 % of a pattern's mean is that pattern. The patterns are
//! distinct: alternation stays below ¾ MSS, full segments are above 0.95 MSS, and one message each
//! is below ⅔ of alternation for m ≤ MSS / 2.

use linerate_model::experiment::Experiment;
use linerate_model::finding::{Evidence, EvidenceList, Finding, FindingKind};
use linerate_model::unit::Unit;

use super::link_rate::share_of;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

/// Largest relative difference of a mean payload to a pattern's. The last segment before a pause
/// and retransmissions shift the mean by about this much in a window of a second.
const PATTERN_SHARE_MAX: f64 = 0.05;

/// How messages become data segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// One message, then as many as fit, in turn.
    Alternating,
    /// Segments are full.
    Full,
    /// Each message is a segment.
    OneEach,
    /// None of these.
    Between,
}

impl Pattern {
    /// Returns the pattern in words.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Pattern::Alternating => "alternates",
            Pattern::Full => "full segments",
            Pattern::OneEach => "a segment a message",
            Pattern::Between => "in between",
        }
    }
}

/// Returns the mean payload of alternating segments, for messages of at most half a segment.
pub(crate) fn pattern_bytes(message_bytes: u64, mss_bytes: u64) -> Option<f64> {
    let fit = mss_bytes.checked_div(message_bytes)?;
    (fit >= 2).then(|| (fit + 1) as f64 * message_bytes as f64 / 2.0)
}

/// Returns the pattern of a stream's cell, if payload per segment was read and the message is at
/// most half a segment.
pub(crate) fn pattern_of(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Pattern> {
    let payload = cell.mean(name::PAYLOAD_PER_SEGMENT)?;
    let message = cell.message_bytes()?;
    let mss = mss_bytes(dataset, cell)?;
    let alternating = pattern_bytes(message, mss)?;
    let near = |expected: f64| (payload - expected).abs() <= PATTERN_SHARE_MAX * expected;
    Some(if near(alternating) {
        Pattern::Alternating
    } else if payload >= (1.0 - PATTERN_SHARE_MAX) * mss as f64 {
        Pattern::Full
    } else if near(message as f64) {
        Pattern::OneEach
    } else {
        Pattern::Between
    })
}

/// Returns the payload of a full-size segment: as TCP says, else as MTU and options leave it.
pub(crate) fn mss_bytes(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<u64> {
    let read = cell.mean(name::SEND_MSS).map(|bytes| bytes.round() as u64);
    let computed = || Some(dataset.path.wire(&cell.workload)?.payload_bytes_max());
    read.or_else(computed).filter(|bytes| *bytes > 0)
}

pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Finding> {
    let experiments = &dataset.recording.document.plan.experiments;
    experiments
        .iter()
        .filter_map(|experiment| finding(dataset, experiment))
        .collect()
}

fn finding(dataset: &Dataset<'_>, experiment: &Experiment) -> Option<Finding> {
    let cells = dataset.cells_of(&experiment.name);
    let both_on = |cell: &&&CellOutcomes<'_>| {
        let options = &cell.workload.options;
        options.nagle == Some(true) && options.delayed_ack == Some(true)
    };
    let known: Vec<(&CellOutcomes<'_>, Pattern)> = cells
        .iter()
        .filter(both_on)
        .filter_map(|cell| Some((*cell, pattern_of(dataset, cell)?)))
        .collect();
    let alternating = known
        .iter()
        .filter(|(_, pattern)| *pattern == Pattern::Alternating)
        .count();
    // The smallest message shows the pattern best: the most messages fit a segment.
    let (shown, _) = known.iter().min_by_key(|(cell, _)| cell.message_bytes())?;
    let message = shown.message_bytes()?;
    let expected = pattern_bytes(message, mss_bytes(dataset, shown)?)?;
    let payload = shown.estimate(name::PAYLOAD_PER_SEGMENT)?;
    let (kind, suffix, claim) = if alternating == known.len() {
        (
            FindingKind::Effect,
            "effect/alternation",
            alternation_claim(message, &payload, expected),
        )
    } else {
        let share = format!("{alternating} of {} sizes", known.len());
        (
            FindingKind::Absence,
            "absence/alternation",
            absence_claim(message, &payload, expected, &share),
        )
    };
    let evidence: Vec<Evidence> = known
        .iter()
        .filter_map(|(cell, pattern)| {
            let bytes = words::number(Unit::Bytes, cell.message_bytes()? as f64);
            let what = format!(
                "payload per segment of {bytes} messages ({})",
                pattern.title()
            );
            cell.evidence(what, name::PAYLOAD_PER_SEGMENT)
        })
        .collect();
    let (first, more) = evidence.split_first()?;
    Some(Finding {
        id: format!("{}/{suffix}", experiment.name),
        chapter: experiment.chapter,
        kind,
        claim,
        explanation: "A segment with one message in turn with one that holds as many as fit was \
                      published for Solaris, where Nagle worked on messages. A stack that appends \
                      messages to the last unsent segment fills segments instead."
            .to_owned(),
        effect: share_of(&payload, expected),
        evidence: EvidenceList::new(first.clone(), more.to_vec()),
    })
}

fn alternation_claim(
    message: u64,
    payload: &linerate_model::finding::Estimate,
    expected: f64,
) -> String {
    format!(
        "Segments alternate with Nagle and delayed ACK on: messages of {} travel with a mean of {} a \
         segment, where alternation gives {}.",
        words::number(Unit::Bytes, message as f64),
        words::estimate(payload),
        words::number(Unit::Bytes, expected),
    )
}

fn absence_claim(
    message: u64,
    payload: &linerate_model::finding::Estimate,
    expected: f64,
    share: &str,
) -> String {
    format!(
        "Segments do not alternate with Nagle and delayed ACK on: messages of {} travel with a mean \
         of {} a segment, where alternation would give {} ({share} fit it).",
        words::number(Unit::Bytes, message as f64),
        words::estimate(payload),
        words::number(Unit::Bytes, expected),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_the_published_payloads() {
        let check = |message, expected| {
            assert_eq!(pattern_bytes(message, 1460), expected, "{message} B");
        };
        // Published on-wire payloads: 100;1400, 250;1250, 1024, 1460.
        check(100, Some(750.0));
        check(250, Some(750.0));
        check(1024, None);
        check(1460, None);
        check(0, None);
    }
}
