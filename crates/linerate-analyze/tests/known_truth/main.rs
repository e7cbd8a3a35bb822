//! Recordings with a known truth: does the analysis find it, and only it?

mod builder;
mod findings;
mod host_counters;
mod queues;
mod receive_path;
mod reduction;
mod robustness;
mod whole;
