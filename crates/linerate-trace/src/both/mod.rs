//! Two captures of the same traffic, joined on the packets themselves: what was lost between them, how
//! long the way took, and what was rewritten on it.
//!
//! 1. Each capture is explained as ever, and of each connection its segments are kept (`sighting`).
//! 2. Connections are joined by addresses and ports, or, where those were rewritten, by the first
//!    sequence numbers of both ends (`join`).
//! 3. Segments that stand once in both captures tell how far the clocks are apart (`clock`).
//! 4. Each sending is looked for at the other capture (`way`).
//! 5. Conversations over UDP are joined by addresses and ports, datagrams by what they carry
//!    (`datagrams`).

/// How far two clocks are apart.
mod clock;
/// Datagrams that both saw.
mod datagrams;
/// What one leaves open and the other decides.
mod decided;
/// Which connections are the same.
mod join;
/// Both as a page.
mod page;
/// What both captures come to.
mod report;
/// Segments as one capture saw them.
mod sighting;
/// Both as lines for a terminal.
mod text;
/// Sendings and arrivals of one direction.
mod way;

pub use page::page;
pub use report::Both;
pub use sighting::Seen;
pub use text::text;

pub(crate) use datagrams::Passing;
pub(crate) use join::Joined;
pub(crate) use report::{JoinedReport, WayReport};
pub(crate) use sighting::{SeenConnection, SeenConversation, SeenFlow, Sighted, Sighting};

use clock::Clock;

/// Captures of which less is the same, of a hundred segments, are not two views of the same traffic.
const SAME_PERCENT_MIN: u64 = 20;
/// Fewer segments in both tell nothing.
const SAME_MIN: u64 = 3;

/// Joins two captures; nothing if they do not show the same packets, as files of one capture that are
/// read one behind the other do not.
pub fn join(first: Seen, second: Seen) -> Option<Both> {
    let joined = join::join(&first, &second);
    let spoken = datagrams::join(&first.conversations, &second.conversations);
    let segments = joined.iter().flat_map(|one| one.instants(&first, &second));
    let passings = spoken
        .iter()
        .flat_map(|(_, instants)| instants.iter().copied());
    let pairs: Vec<_> = segments.chain(passings).collect();
    let spoken: Vec<Joined> = spoken.into_iter().map(|(one, _)| one).collect();
    let of_joined = |seen: &Seen, at: fn(&join::Joined) -> usize| -> u64 {
        let segments = joined
            .iter()
            .map(|one| seen.connections[at(one)].sightings.len());
        let datagrams = spoken
            .iter()
            .map(|one| seen.conversations[at(one)].sightings.len());
        segments.chain(datagrams).map(|count| count as u64).sum()
    };
    let fewer = of_joined(&first, |one| one.first).min(of_joined(&second, |one| one.second));
    let same = pairs.len() as u64;
    if same < SAME_MIN || same * 100 < fewer * SAME_PERCENT_MIN {
        return None;
    }
    let clock = Clock::of(&pairs)?;
    Some(Both::new(first, second, [&joined, &spoken], clock))
}
