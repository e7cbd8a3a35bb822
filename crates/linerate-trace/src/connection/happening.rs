//! Things that happened to a connection and that findings are made of: how often, how long, and a
//! few examples with their frames.

use super::End;

/// Examples that are kept of each kind and end: the first, and then the longest.
const EXAMPLES_MAX: usize = 4;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A segment was held by Nagle's algorithm until a delayed acknowledgement came. The end is
    /// the one that held it.
    NagleDelayedAck,
    /// An acknowledgement waited for its timer. The end is the one that acknowledged.
    DelayedAck,
    /// Nothing was sent until a retransmission timer fired. The end is the sender.
    Timeout,
    /// The receiver's window was closed. The end is the receiver.
    ZeroWindow,
    /// A segment was sent again that was not known to have arrived. The end is the sender.
    Loss,
    /// Several segments side by side were lost. The end is the sender.
    LossBurst,
    /// The same full segment was sent again and again. The end is the sender.
    RepeatedSegment,
    /// A router said that a segment was too big. The end is the sender.
    TooBig,
    /// Short segments one behind the other, without an answer between. The end is the sender.
    SmallTrain,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::NagleDelayedAck,
        Self::DelayedAck,
        Self::Timeout,
        Self::ZeroWindow,
        Self::Loss,
        Self::LossBurst,
        Self::RepeatedSegment,
        Self::TooBig,
        Self::SmallTrain,
    ];
}

/// One occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// When it began, in nanoseconds since 1970.
    pub at_ns: u64,
    /// How long it took.
    pub length_ns: u64,
    /// The frames that prove it, in order; zero where there is none.
    pub frames: [u64; 3],
    /// A number that belongs to it: segments of a burst, the MTU that a router named.
    pub value: u32,
}

/// All occurrences of one kind at one end.
#[derive(Debug, Clone)]
pub struct Happening {
    /// What happened.
    pub kind: Kind,
    /// At which end.
    pub end: End,
    /// How often.
    pub count: u32,
    /// How long all of them took.
    pub total_ns: u64,
    /// The sum of all values.
    pub value_sum: u64,
    /// The largest value.
    pub value_max: u32,
    /// A few of them, in order of time.
    pub examples: Vec<Example>,
}

/// Everything that happened to a connection.
#[derive(Debug, Clone, Default)]
pub struct Happenings(Vec<Happening>);

impl Happenings {
    /// Notes one occurrence.
    #[cold]
    pub fn note(&mut self, kind: Kind, end: End, example: Example) {
        let found = self
            .0
            .iter_mut()
            .position(|all| all.kind == kind && all.end == end);
        let at = found.unwrap_or_else(|| {
            self.0.push(Happening {
                kind,
                end,
                count: 0,
                total_ns: 0,
                value_sum: 0,
                value_max: 0,
                examples: Vec::new(),
            });
            self.0.len() - 1
        });
        let all = &mut self.0[at];
        all.count = all.count.saturating_add(1);
        all.total_ns = all.total_ns.saturating_add(example.length_ns);
        all.value_sum = all.value_sum.saturating_add(u64::from(example.value));
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

    /// Returns all of them.
    pub fn as_slice(&self) -> &[Happening] {
        &self.0
    }

    /// Returns how often `kind` happened at `end`.
    pub fn count(&self, kind: Kind, end: End) -> u32 {
        let found = self.0.iter().find(|all| all.kind == kind && all.end == end);
        found.map_or(0, |all| all.count)
    }
}
