//! What is counted of one end of a connection, beyond packets and bytes; documents show it as it is.

use serde::Serialize;

/// Counts of one end's data, and of what it said as a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Counts {
    /// Segments with payload that were sent again.
    pub retransmissions: u32,
    /// Their payload.
    pub retransmitted_bytes: u64,
    /// Of these, those that acknowledgements had asked for.
    pub fast: u32,
    /// Of these, those that a timer sent.
    pub timeout: u32,
    /// Of these, those that probed for a lost tail.
    pub tail_probe: u32,
    /// Of these, those that the receiver had already.
    pub spurious: u32,
    /// Of these, those that are pieces of what a router had said is too big.
    pub resized: u32,
    /// Of these, those that the receiver had acknowledged selectively before.
    pub sacked: u32,
    /// Of these, those whose first sending was not captured.
    pub first_not_captured: u32,
    /// Segments that came behind later ones.
    pub out_of_order: u32,
    /// Jumps over numbers that were not captured.
    pub holes: u32,
    /// SYNs and FINs that were sent again.
    pub control_retransmissions: u32,
    /// Keepalives.
    pub keepalives: u32,
    /// Probes of a closed window.
    pub zero_window_probes: u32,
    /// Segments that filled the receiver's window.
    pub window_full: u32,
    /// Segments longer than the path carries.
    pub superframes: u32,
    /// Segments of half a full one or less.
    pub small: u32,
    /// Segments that routers marked (ECN CE).
    pub congestion_marked: u32,
    /// Segments with the ECN echo.
    pub congestion_echoes: u32,
    /// As a receiver: acknowledgements that repeated the last.
    pub duplicate_acks: u32,
    /// As a receiver: segments that closed the window.
    pub zero_windows: u32,
    /// As a receiver: segments that changed nothing but the window.
    pub window_updates: u32,
    /// As a receiver: segments with selective acknowledgements.
    pub sacks: u32,
    /// As a receiver: segments that said that something came twice.
    pub duplicate_sacks: u32,
    /// As a receiver: gaps that it told of selectively and that closed though nothing was sent again.
    pub healed: u32,
    /// As a receiver: acknowledgements that waited for their timer.
    pub delayed_acks: u32,
}
