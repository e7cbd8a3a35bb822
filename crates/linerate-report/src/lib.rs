//! The report: an [`Analysis`] as HTML, Markdown, JSON or lines for a terminal.
//!
//! This room draws and words. It adds no number of its own, reads no file and no clock: the same
//! analysis gives the same bytes in a year.
//!
//! ```
//! use linerate_model::analysis::{ANALYSIS_FORMAT, Analysis, Table};
//! let summary = Table { title: "Summary".into(), columns: vec![], rows: vec![] };
//! let analysis = Analysis {
//!     format: ANALYSIS_FORMAT, title: "Study of server".into(), about: vec![], is_one_measurement: false, next: None,
//!     partial: None,
//!     answer: Default::default(), summary, trust: None, findings: vec![],
//!     cautions: vec![], verdicts: vec![], recommendations: vec![], chapters: vec![], flames: vec![], hosts: vec![],
//!     counters: vec![], interrupts: vec![], left_out: vec![], damage: vec![],
//! };
//! let page = linerate_report::markdown(&analysis, linerate_report::Extent::Answer);
//! assert!(page.starts_with("# Study of server\n"));
//! ```

use linerate_model::analysis::Analysis;

/// Figures as SVG.
mod chart;
/// Sides that were compared.
mod compared;
/// The page: one HTML file that opens without a network.
mod html;
/// The page as Markdown in GitHub's dialect.
mod markdown;
/// Prefix, digits, interval and unit of a number.
mod number;
/// A host's counters as text for Prometheus.
mod openmetrics;
/// A figure's points as rows.
mod points;
/// The summary for a terminal.
mod terminal;
/// Words that every output shares.
mod wording;

pub use compared::{compared_junit, compared_markdown, compared_text};
pub use html::{Extent, html, trace_html};
pub use markdown::markdown;
pub use openmetrics::Exposition;
pub use terminal::{Look, styled, terminal, terminal_answer, terminal_page};
pub use wording::{number_columns, short_cell};

/// Returns the analysis as JSON: base units, `format` first.
///
/// A number that is not finite is written as `null`.
pub fn json(analysis: &Analysis) -> String {
    serde_json::to_string_pretty(analysis)
        .expect("an analysis has no map and no failing serializer")
}
