//! Recordings with a known truth: does the analysis find it, and only it?

mod builder;
mod findings;
mod reduction;
mod robustness;
mod whole;
