//! Incidents: what happened to a connection and what findings are made of, with how often, how
//! long, and a few examples with their frames.

use std::net::IpAddr;

use serde::{Serialize, Serializer};

use linerate_model::sample::End;

use super::{FrameId, Place};

/// Examples that are kept of each kind and end: the first, and then the longest.
const EXAMPLES_MAX: usize = 4;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IncidentKind {
    /// A segment was held by Nagle's algorithm until a delayed acknowledgement came. The end is
    /// the one that held it.
    NagleDelayedAck,
    /// An acknowledgement waited for its timer. The end is the one that acknowledged.
    DelayedAck,
    /// Nothing was sent until a retransmission timer fired. The end is the sender.
    RetransmissionTimeout,
    /// The receiver's window was closed. The end is the receiver.
    ZeroWindow,
    /// A segment was sent again that was not known to have arrived. The end is the sender.
    Loss,
    /// A receiver dropped what it had acknowledged selectively. The end is the receiver, the value its bytes.
    TakenBack,
    /// Several segments side by side were lost. The end is the sender.
    LossBurst,
    /// The same full segment was sent again and again. The end is the sender.
    RepeatedSegment,
    /// A router said that a segment was too big. The end is the sender.
    TooBig,
    /// Short segments one behind the other, without an answer between. The end is the sender.
    SmallSegments,
    /// A SYN or SYN-ACK was sent again. The end is its sender; the value is 1 where the capture had seen the
    /// acknowledgement of a SYN-ACK.
    SynAgain,
    /// A router or host said that segments do not get through. The end is the sender; the value is
    /// 1 for no way to the network, 2 for prohibited, 3 for no such port, 4 for no such host, 5 for no such protocol,
    /// 6 for a hop limit that ran out.
    Unreachable,
    /// One end reset the connection before either had ended its stream. The end is that; the value
    /// is the hop limit of the reset and, times 256, of the segment before, where they differ.
    Reset,
    /// A host answered with a reset that it has no such connection. The end is that host; the value is 0 where a
    /// keepalive was answered, 1 for data after an idle time, 2 for what acknowledged an earlier connection.
    HalfOpen,
    /// An end was not heard of again, though the other repeated itself. The value says how often.
    PeerSilent,
    /// An end answered no keepalive any more. The value says how many, the length since the first.
    KeepaliveUnanswered,
    /// An end took its time from the other's last data to its own. The end is the one that took it.
    Answer,
}

/// One occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct Example {
    /// When it began, in nanoseconds since 1970.
    pub at_ns: u64,
    /// How long it took.
    pub length_ns: u64,
    /// The frames that prove it, in order.
    #[serde(serialize_with = "known_frames")]
    pub frames: [Option<FrameId>; 3],
    /// A number that belongs to it: segments of a burst, the MTU that a router named.
    pub value: u32,
}

impl Example {
    /// Returns what began and ended there, as both frames prove.
    pub(crate) fn between(began: Place, ended: Place, value: u32) -> Self {
        Self {
            at_ns: began.time_ns,
            length_ns: ended.time_ns.saturating_sub(began.time_ns),
            frames: [began.frame, ended.frame, None],
            value,
        }
    }
}

fn known_frames<S: Serializer>(
    frames: &[Option<FrameId>; 3],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(frames.iter().flatten())
}

/// All occurrences of one kind at one end.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub(crate) struct Incident {
    /// What happened.
    pub kind: IncidentKind,
    /// At which end.
    pub end: End,
    /// How often.
    pub count: u32,
    /// How long all of them took.
    pub total_ns: u64,
    /// The largest value.
    pub value_max: u32,
    /// The router or host that said so, first, where one did.
    pub by: Option<IpAddr>,
    /// A few of them, in order of time.
    pub examples: Vec<Example>,
}

/// Everything that happened to a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Incidents(Vec<Incident>);

impl Incidents {
    /// Notes one occurrence.
    #[cold]
    pub(crate) fn note(&mut self, kind: IncidentKind, end: End, example: Example) {
        self.note_times(kind, end, example, 1);
    }

    /// Notes one that happened `times` times.
    #[cold]
    pub(crate) fn note_times(
        &mut self,
        kind: IncidentKind,
        end: End,
        example: Example,
        times: u32,
    ) {
        let found = self
            .0
            .iter_mut()
            .position(|all| all.kind == kind && all.end == end);
        let at = found.unwrap_or_else(|| {
            self.0.push(Incident {
                kind,
                end,
                count: 0,
                total_ns: 0,
                value_max: 0,
                by: None,
                examples: Vec::new(),
            });
            self.0.len() - 1
        });
        let all = &mut self.0[at];
        all.count = all.count.saturating_add(times);
        all.total_ns = all.total_ns.saturating_add(example.length_ns);
        all.value_max = all.value_max.max(example.value);
        if all.examples.len() == EXAMPLES_MAX {
            let weight = |example: &Example| (example.length_ns, example.value);
            let later = all.examples.iter().enumerate().skip(1);
            let Some((at, least)) = later.min_by_key(|(_, example)| weight(example)) else {
                return;
            };
            if weight(least) >= weight(&example) {
                return;
            }
            all.examples.remove(at);
        }
        all.examples.push(example);
    }

    /// Says who said what was noted of `kind` at `end`; the first counts.
    pub(crate) fn name(&mut self, kind: IncidentKind, end: End, by: Option<IpAddr>) {
        let mut all = self.0.iter_mut();
        if let Some(all) = all.find(|all| (all.kind, all.end) == (kind, end)) {
            all.by = all.by.or(by);
        }
    }

    /// Takes back what was noted of `kind` at `end`.
    pub(crate) fn withdraw(&mut self, kind: IncidentKind, end: End) {
        self.0.retain(|all| (all.kind, all.end) != (kind, end));
    }

    /// Takes back what was noted of `kind` at `end`, if all of it was from `since_ns` on.
    pub(crate) fn withdraw_from(&mut self, kind: IncidentKind, end: End, since_ns: u64) {
        let is_later = |all: &Incident| all.examples.iter().all(|one| one.at_ns >= since_ns);
        self.0
            .retain(|all| (all.kind, all.end) != (kind, end) || !is_later(all));
    }

    /// Takes back the `count` occurrences of `kind` at `end` since `since_ns`, which took
    /// `total_ns`: another kind tells them.
    pub(crate) fn withdraw_since(
        &mut self,
        (kind, end): (IncidentKind, End),
        since_ns: u64,
        (count, total_ns): (u32, u64),
    ) {
        let found = self
            .0
            .iter_mut()
            .find(|all| (all.kind, all.end) == (kind, end));
        let Some(all) = found else { return };
        all.count = all.count.saturating_sub(count);
        all.total_ns = all.total_ns.saturating_sub(total_ns);
        all.examples.retain(|example| example.at_ns < since_ns);
        self.0.retain(|all| all.count > 0);
    }

    /// Returns how often `kind` happened at `end`.
    pub(crate) fn count(&self, kind: IncidentKind, end: End) -> u32 {
        let mut all = self.0.iter();
        all.find(|all| (all.kind, all.end) == (kind, end))
            .map_or(0, |all| all.count)
    }

    /// Returns all of them.
    pub(crate) fn as_slice(&self) -> &[Incident] {
        &self.0
    }
}
