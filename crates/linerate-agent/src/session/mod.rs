//! State machines without I/O: time comes in as an argument, decisions come out as values.

/// Who may use the host: exclusive, queued and shared runs, and their leases.
pub mod leases;
/// Who may stay when more connections are there than there are places.
pub mod places;
/// How far one trial has come, with a deadline on every state.
pub mod trial;
/// Whose turn it is, where what callers ask for takes time.
pub mod turns;
