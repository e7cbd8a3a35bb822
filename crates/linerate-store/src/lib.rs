//! Keeps runs: the evidence bundle, a directory with everything that a run recorded.
//!
//! The [`Writer`] takes a run as it happens and leaves something readable on the disk after each
//! step, so that a crash, a full disk or a pulled plug costs at most the trial in progress.
//! [`read`] returns whatever is there and says what was lost. Nothing is computed here: the numbers that a report shows come from the analyze
//! room. [`write_report`] and [`write_results`] put beside the rest what was made from it, for people
//! and for programs; neither is read back.
//!
//! The format is described once, at the [`Writer`]'s source.
//!
//! ```
//! # fn run(document: &linerate_model::run::RunDocument) -> Result<(), Box<dyn std::error::Error>> {
//! # let place = std::env::temp_dir();
//! let bundle = place.join("20261120T125330Z-1a2b3c4d");
//! let writer = linerate_store::Writer::create(&bundle, document)?;
//! // … one `append` for each trial …
//! writer.finish(document)?;
//! let recording = linerate_store::read(&bundle)?;
//! assert!(recording.damage.is_empty());
//! # Ok(()) }
//! ```

/// Files that are either old or new, never half.
mod durable;
/// `events.ndjson`.
mod events;
/// Names of the files of a bundle.
mod layout;
/// The reader: everything that is there, and what is not.
mod reader;
/// What was reduced from a run, for programs that compute further.
mod results;
/// Samples, flows and trials as rows, and back.
mod rows;
/// Samples that memory has no room for.
mod spool;
/// Tables in memory and as Parquet files.
mod table;
/// The writer, and the format.
mod writer;

pub use durable::{FileError, Step};
pub use reader::{ReadError, capture_path, read};
pub use results::{results_csv, write_results};
pub use spool::Spool;
pub use writer::{WriteError, Writer, write_report, write_run};
