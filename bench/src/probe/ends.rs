//! How the ends of the stream probes move bytes: bulk, and small messages.

/// How both ends move bytes.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// Bytes of each call of the sender.
    pub write: usize,
    /// Bytes of each call of the receiver.
    pub read: usize,
    /// Whether the sender maps its pages into a pipe and splices them, or copies.
    pub splice: bool,
    /// Whether the receiver throws away in the kernel, or copies.
    pub truncate: bool,
    /// Whether the sender sets `TCP_NODELAY`.
    pub no_delay: bool,
}

/// Plain calls of 128 KiB.
pub const COPY: Ends = Ends {
    write: 128 << 10,
    read: 128 << 10,
    splice: false,
    truncate: false,
    no_delay: false,
};
/// Nothing is copied out at the receiver.
pub const TRUNC: Ends = Ends {
    write: 1 << 20,
    read: 1 << 20,
    truncate: true,
    ..COPY
};
/// Nothing is copied in at the sender.
pub const VMSPLICE: Ends = Ends {
    write: 1 << 20,
    splice: true,
    ..COPY
};
/// Nothing is copied.
pub const VMSPLICE_TRUNC: Ends = Ends {
    read: 1 << 20,
    truncate: true,
    ..VMSPLICE
};

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 100;

/// One call for each message, each leaving at once.
pub const ONE_EACH: Ends = Ends {
    write: MESSAGE_BYTES,
    read: 64 << 10,
    no_delay: true,
    ..COPY
};

/// 640 messages in a call, about as much as a segment can have.
pub const BATCHED: Ends = Ends {
    write: 640 * MESSAGE_BYTES,
    read: 64 << 10,
    ..COPY
};
