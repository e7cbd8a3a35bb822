//! What captures come to, as a page: what was found, with the frames that prove it, and pictures of the
//! connections that matter.

use crate::analysis::{Figure, Table};

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub struct TracePage {
    /// Heading.
    pub title: String,
    /// Label and text of what there is to know first.
    pub about: Vec<(String, String)>,
    /// What to know of the numbers.
    pub warnings: Vec<String>,
    /// What was found, the costliest first.
    pub findings: Vec<TracedFinding>,
    /// What is said where nothing was found, or of what is not shown.
    pub note: Option<String>,
    /// Tables of everything.
    pub tables: Vec<Table>,
    /// What is shown closer.
    pub sections: Vec<TraceSection>,
    /// Terms and what they mean.
    pub terms: Vec<(String, String)>,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedFinding {
    /// One sentence with its numbers.
    pub claim: String,
    /// Why it is so.
    pub explanation: String,
    /// What the same frames show too.
    pub also: Vec<String>,
    /// What to do.
    pub advice: Option<String>,
    /// How long it took in all.
    pub cost: Option<String>,
    /// Which frames prove it, and the display filter that shows them.
    pub proofs: Vec<(String, String)>,
    /// What Wireshark and tshark call all such frames, as a display filter.
    pub filter: Option<String>,
}

/// A connection, or two views of one.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSection {
    /// Identifier for links, unique on the page.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Sentences below it.
    pub lines: Vec<String>,
    /// What the time went into: names and shares that add up to 1.
    pub shares: Vec<(String, f64)>,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// Tables.
    pub tables: Vec<Table>,
}
