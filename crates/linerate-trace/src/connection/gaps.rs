//! Times without a packet, and what the connection waited for.

use linerate_model::sample::End;
use serde::Serialize;

use super::FrameId;

/// The shortest time without a packet that is looked at. Below it lie the round trips of a
/// building and the scheduling of busy hosts; the shortest timer that TCP waits for is above.
pub(crate) const GAP_NS_MIN: u64 = 5_000_000;

/// What a connection waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The application had nothing to send.
    Application,
    /// The application took its time to answer.
    Answer,
    /// The acknowledgement waited for its timer.
    DelayedAck,
    /// Nagle's algorithm waited for a delayed acknowledgement.
    NagleDelayedAck,
    /// The retransmission timer.
    RetransmissionTimeout,
    /// The receiver's window was closed or full.
    Window,
    /// The path: an acknowledgement took a round trip.
    RoundTrip,
    /// The sender's program had handed over more: pacing, or a queue before the capture.
    Pacing,
    /// The end of the connection.
    Close,
    /// The far end went on later than it could have, or its way is not known: why does not show where this was captured.
    Unseen,
}

impl Cause {
    /// Returns its name as a heading.
    pub(crate) fn title(self) -> &'static str {
        self.words()[0]
    }

    /// Returns what stands behind the number of such gaps.
    pub(crate) fn counted(self, count: u32) -> &'static str {
        self.words()[if count == 1 { 1 } else { 2 }]
    }

    /// Returns its title, and what one and several such gaps are called.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Application => ["application", "pause", "pauses"],
            Self::Answer => ["answer", "wait for an answer", "waits for an answer"],
            Self::DelayedAck => ["delayed ack", "delayed ACK", "delayed ACKs"],
            Self::NagleDelayedAck => [
                "nagle delayed ack",
                "segment held for a delayed ACK by Nagle's algorithm",
                "segments held for a delayed ACK by Nagle's algorithm",
            ],
            Self::RetransmissionTimeout => [
                "retransmission timeout",
                "retransmission timer",
                "retransmission timers",
            ],
            Self::Window => ["window", "wait for the window", "waits for the window"],
            Self::RoundTrip => ["round trip", "round trip", "round trips"],
            Self::Pacing => [
                "pacing",
                "wait for pacing or a queue before the capture",
                "waits for pacing or a queue before the capture",
            ],
            Self::Close => ["close", "wait for the end", "waits for the end"],
            Self::Unseen => [
                "not visible here",
                "wait whose reason does not show here",
                "waits whose reason does not show here",
            ],
        }
    }
}

/// All gaps of one cause at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Gaps {
    /// What was waited for.
    pub cause: Cause,
    /// The end that kept the other waiting.
    pub end: End,
    /// How many.
    pub count: u32,
    /// How long all of them took.
    pub total_ns: u64,
    /// How long the longest took.
    pub longest_ns: u64,
    /// The frame that ended the longest.
    pub longest_frame: Option<FrameId>,
}

/// The gaps of a connection, by cause and end.
#[derive(Debug, Clone, Default)]
pub(crate) struct GapList(Vec<Gaps>);

impl GapList {
    /// Adds one gap that `frame` ended.
    #[cold]
    pub(crate) fn note(&mut self, cause: Cause, end: End, length_ns: u64, frame: Option<FrameId>) {
        let found = self
            .0
            .iter_mut()
            .position(|gaps| gaps.cause == cause && gaps.end == end);
        let at = found.unwrap_or_else(|| {
            self.0.push(Gaps {
                cause,
                end,
                count: 0,
                total_ns: 0,
                longest_ns: 0,
                longest_frame: frame,
            });
            self.0.len() - 1
        });
        let gaps = &mut self.0[at];
        gaps.count = gaps.count.saturating_add(1);
        gaps.total_ns = gaps.total_ns.saturating_add(length_ns);
        if length_ns > gaps.longest_ns {
            gaps.longest_ns = length_ns;
            gaps.longest_frame = frame;
        }
    }

    /// Calls the gap of `length_ns` that was noted last under `from` by a better name.
    #[cold]
    pub(crate) fn rename(
        &mut self,
        from: (Cause, End),
        to: (Cause, End),
        length_ns: u64,
        frame: Option<FrameId>,
    ) {
        let found = self
            .0
            .iter_mut()
            .find(|gaps| (gaps.cause, gaps.end) == from);
        let Some(gaps) = found else { return };
        gaps.count = gaps.count.saturating_sub(1);
        gaps.total_ns = gaps.total_ns.saturating_sub(length_ns);
        if gaps.count == 0 {
            self.0.retain(|gaps| gaps.count > 0);
        }
        self.note(to.0, to.1, length_ns, frame);
    }

    /// Calls all gaps of `from` by another name.
    pub(crate) fn rename_all(&mut self, from: (Cause, End), to: (Cause, End)) {
        let found = self
            .0
            .iter()
            .position(|gaps| (gaps.cause, gaps.end) == from);
        let Some(at) = found else { return };
        let gaps = self.0.remove(at);
        self.note(to.0, to.1, gaps.longest_ns, gaps.longest_frame);
        let known = self.0.iter_mut().find(|gaps| (gaps.cause, gaps.end) == to);
        if let Some(known) = known {
            known.count = known.count.saturating_add(gaps.count - 1);
            known.total_ns = known
                .total_ns
                .saturating_add(gaps.total_ns - gaps.longest_ns);
        }
    }

    /// Returns the gaps, the cause that took longest first.
    pub(crate) fn sorted(&self) -> Vec<Gaps> {
        let mut gaps = self.0.clone();
        gaps.sort_by_key(|gaps| (std::cmp::Reverse(gaps.total_ns), gaps.cause, gaps.end));
        gaps
    }
}
