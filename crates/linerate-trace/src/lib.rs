//! TCP explained from captures: bytes in, connections and findings out; of UDP what its protocols show.
//!
//! A capture is read frame by frame ([`capture`]), each frame is decoded without copying
//! (`frame`), each segment moves the state machine of its connection (`connection`), and what
//! happened becomes findings with the frames that prove them (`findings`). The [`Tracker`] joins
//! them and keeps memory within [`Limits`]; what it hands over at the end is a [`Trace`], a
//! document, which [`text`] shows on a terminal.
//!
//! This room opens no file and reads no clock: its inputs are `std::io::Read`, its outputs
//! `std::io::Write`, both given by the caller, who may read with a thread of its own. Nothing of a capture is believed: whatever the
//! bytes, there is a result with warnings or an error that says what is wrong, never a panic, and
//! memory stays within the limits (`tests/fuzz.rs`).
//!
//! ```
//! use linerate_trace::{Limits, Tracker, capture::Reader};
//!
//! // The head of a pcap file with nanoseconds, of Ethernet; the head of a frame, and the frame.
//! let head = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 65_535, 1];
//! let heads = [head.as_slice(), &[1_700_000_000, 0, 60, 60]].concat();
//! let mut capture: Vec<u8> = heads.into_iter().flat_map(u32::to_le_bytes).collect();
//! capture.extend([0; 60]);
//!
//! let mut tracker = Tracker::new(Limits::default());
//! tracker.read(&mut Reader::new(&capture[..])?, "example")?;
//! let trace = tracker.finish();
//! assert_eq!(trace.totals.frames, 1);
//! assert_eq!(trace.totals.connections, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Two captures of the same traffic.
pub mod both;
/// Captures as a sequence of frames.
pub mod capture;
/// The captures of a run as a chapter of its report.
pub mod chapter;
/// What changed between two captures.
pub mod compare;
/// A document as a report with pictures.
pub mod page;
/// Packets as rows.
pub mod rows;
/// A document as lines for a terminal.
pub mod text;

/// One connection, packet by packet.
mod connection;
/// Conversations over UDP.
mod datagrams;
/// What is handed over at the end.
mod document;
/// Which connections are wanted.
mod filter;
/// What a capture proves.
mod findings;
/// Frames decoded.
mod frame;
/// Numbers as text.
mod number;
/// All connections of a capture.
mod tracker;

pub use connection::{Cause, Counts, Gaps};
pub use datagrams::ConversationReport;
pub use document::{ConnectionReport, Ending, LifeReport, Trace};
pub use filter::Filter;
pub use findings::{TcpFinding, TcpFindingKind};
pub use frame::Parts;
pub use tracker::{Limits, Tracker};
