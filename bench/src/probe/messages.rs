//! Small messages in a stream: one call for each, or many in one call.

use super::stream::{COPY, Ends};

/// Bytes of a message.
pub const BYTES: usize = 100;

/// One call for each message, each leaving at once.
pub const ONE_EACH: Ends = Ends {
    write: BYTES,
    read: 64 << 10,
    no_delay: true,
    ..COPY
};

/// 640 messages in a call, about as much as a segment can have.
pub const BATCHED: Ends = Ends {
    write: 640 * BYTES,
    read: 64 << 10,
    ..COPY
};
