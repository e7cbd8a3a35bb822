//! What experiments found whose levels follow from others, in words and lines.

use linerate_model::finding::Estimate;

/// What such an experiment found, in words and lines.
pub struct Told {
    /// The answer, as a sentence.
    pub answer: String,
    /// What the levels are, and in which order.
    pub title: &'static str,
    /// The levels that were measured.
    pub levels: Vec<Line>,
    /// The title of the response.
    pub response: String,
    /// What the last words of each line say something of.
    pub says: &'static str,
    /// The levels that were added, each with the reason, where the lines do not say it.
    pub added: Vec<(String, String)>,
}

/// One level.
pub struct Line {
    /// The level in words.
    pub level: String,
    /// Trials at it so far.
    pub trials: u32,
    /// The mean of the response with its 95 % interval; absent where it was not read.
    pub value: Option<Estimate>,
    /// What they say.
    pub says: &'static str,
}
