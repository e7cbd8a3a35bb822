//! Recordings of a known truth, and what the analysis makes of them.
//!
//! Whatever concludes is held against recordings that were made up: each counter is a closed form of
//! what is true, and noise is drawn from a seed. The tests of the other rooms and `bench truth` use
//! this one; nothing that users run depends on it.
//!
//! ```
//! use linerate_truth::noise::Noise;
//! use linerate_truth::study::{Chapters, Shape, study};
//!
//! let flat = study(Shape::Flat, Noise::Normal(0.03), Chapters::Three, 1);
//! assert!(!flat.recording.trials.is_empty());
//! ```

/// Makes recordings: every counter follows from a [`recording::Truth`].
pub mod recording;

/// What really happened in a trial.
mod truth;

/// Recordings of which all is read.
mod whole;

/// How trials that are the same differ.
pub mod noise;

/// Measurements that are repeated.
pub mod runs;

/// Runs side by side.
pub mod pairs;

/// Recordings that were made for real, of set-ups whose truth was written down before.
pub mod corpus;

/// Causes, and neighbours that look alike.
pub mod limiters;

/// Whether the sentences of a report agree with each other.
pub mod lint;

/// Counts of what the analysis gets right and wrong.
pub mod score;

/// Studies of a known truth.
pub mod study;
