//! Frames of one link pass through this process: what happens to them there.
//!
//! A link that does more than limit is cut in two. The host's end of the wire is a packet socket
//! here, the switch's port another, and a `Relay` carries frames between them, one thread for
//! each direction. A `Passage` holds the rules, without clock or socket: `Line` delays, `Jitter` varies that,
//! `Chance` loses and doubles, `Reorder` lets frames overtake.

mod chance;
mod jitter;
mod line;
mod passage;
mod pump;
mod reorder;

pub use chance::Chance;
pub use jitter::Jitter;
pub use line::Line;
pub use passage::{Happened, Passage, PassageConfig, REORDER_WAIT_NS_MIN};
pub(crate) use pump::{Relay, RelayConfig};
pub use pump::{RelayCount, RelayError};
pub use reorder::Reorder;
