//! Segment sizes that alternate, or do not.
//!
//! With Nagle and delayed ACK on, a small segment goes out alone, the messages written meanwhile
//! wait for its acknowledgement, and the receiver acknowledges every second segment: small and
//! large segments alternate, one ACK for each pair. The mean payload of a data segment is then
//!
//! - with whole messages in each segment, as published for Solaris (m = 100 B and MSS 1460 B: 100,
//!   1400, 100, 1400 …):  (⌊MSS / m⌋ + 1) · m / 2;
//! - on Linux, which appends messages to the last unsent segment across message boundaries (so the
//!   large segment is full and the small one carries a rest of one to two messages):
//!   (MSS + m) / 2 to (MSS + 2m) / 2;
//!
//! in bytes, for m ≤ MSS / 2, above which each message is a segment. Throughput is segments/s ×
//! that × 8.
//!
//! Rule: payload per data segment between the lowest of these and the highest, ± 5 %, alternates;
//! at least 95 % of MSS is full segments; within 5 % of m is a segment a message. The patterns are
//! told apart only for m ≤ MSS / 4, where they do not come near each other. A mean does not prove
//! the order of segments, so data segments per ACK stand beside it as evidence.

use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;

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
            Pattern::OneEach => "a segment per message",
            Pattern::Between => "in between",
        }
    }
}

/// Returns the published mean payload of alternating segments with whole messages, for messages
/// of at most half a segment.
pub(crate) fn pattern_bytes(message_bytes: u64, mss_bytes: u64) -> Option<f64> {
    let fit = mss_bytes.checked_div(message_bytes)?;
    (fit >= 2).then(|| (fit + 1) as f64 * message_bytes as f64 / 2.0)
}

/// Returns the lowest and the highest mean payload of alternating segments, for messages of at
/// most a quarter of a segment.
fn alternation_bytes(message_bytes: u64, mss_bytes: u64) -> Option<(f64, f64)> {
    let whole = pattern_bytes(message_bytes, mss_bytes)?;
    let of_stream = (mss_bytes + 2 * message_bytes) as f64 / 2.0;
    (4 * message_bytes <= mss_bytes).then_some((whole, of_stream))
}

/// Returns the pattern of a stream's cell, if payload per segment was read and the message is at
/// most a quarter of a segment.
pub(crate) fn pattern_of(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Pattern> {
    let payload = cell.mean(name::PAYLOAD_PER_SEGMENT)?;
    let message = cell.message_bytes()?;
    let mss = mss_bytes(dataset, cell)?;
    let (low, high) = alternation_bytes(message, mss)?;
    let near = |low: f64, high: f64| {
        (low * (1.0 - PATTERN_SHARE_MAX)..=high * (1.0 + PATTERN_SHARE_MAX)).contains(&payload)
    };
    Some(if near(low, high) {
        Pattern::Alternating
    } else if payload >= (1.0 - PATTERN_SHARE_MAX) * mss as f64 {
        Pattern::Full
    } else if near(message as f64, message as f64) {
        Pattern::OneEach
    } else {
        Pattern::Between
    })
}

/// Returns the payload of a full-size segment: as TCP says, else as MTU and options leave it.
pub(crate) fn mss_bytes(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<u64> {
    let read = cell.mean(name::SEND_MSS).map(|bytes| bytes.round() as u64);
    let computed = || {
        Some(
            dataset
                .path_of(cell)
                .wire(&cell.workload)?
                .payload_bytes_max(),
        )
    };
    read.or_else(computed).filter(|bytes| *bytes > 0)
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

    #[test]
    fn alternation_on_linux_is_a_full_segment_and_a_rest() {
        // (1448 + 2 · 60) / 2 = 784; (1448 + 2 · 362) / 2 = 1086.
        assert_eq!(alternation_bytes(60, 1448), Some((750.0, 784.0)));
        assert_eq!(alternation_bytes(362, 1448), Some((905.0, 1086.0)));
        assert_eq!(alternation_bytes(363, 1448), None);
    }
}
