//! Outcomes of one cell put together, and cells put side by side.

/// How evenly flows spread over queues, and how evenly chance would.
pub(crate) mod balance;
/// What a disturbance did to a response.
pub(crate) mod covariate;
/// Random numbers from a seed.
pub(crate) mod draw;
/// What a factor changes, from pairs of trials.
pub(crate) mod effect;
/// Confidence intervals of means, medians and quantiles.
pub(crate) mod interval;
/// Which of several variances are of one noise.
pub(crate) mod kin;
/// Lines through points, by least squares.
pub(crate) mod line;
/// Whether identical trials are of two kinds.
pub(crate) mod modes;
/// How much identical cells differ.
pub(crate) mod noise;
/// The smallest level that is as good as the best one.
pub(crate) mod plateau;
/// Whether a counter rose as often as something happened.
pub(crate) mod poisson;
