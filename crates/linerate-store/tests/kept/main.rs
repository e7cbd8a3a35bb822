//! What bundles keep, and what becomes of those that are damaged, old or hostile.

/// Documents and evidence.
#[path = "../common/mod.rs"]
mod common;

mod bundle;
mod hostile;
mod old_formats;
mod property;
mod refusal;
