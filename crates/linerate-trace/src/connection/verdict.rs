//! What one segment turned out to be, in the connection that it belongs to.

/// A set of properties of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Verdict(pub u32);

/// Each property with its name in rows.
macro_rules! verdicts {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $text:literal;)*) => {
        impl Verdict {
            $($(#[$doc])* pub(crate) const $name: Self = Self(1 << $bit);)*

            /// Every property with its name.
            pub(crate) const ALL: &'static [(Self, &'static str)] = &[$((Self::$name, $text)),*];
        }
    };
}

verdicts! {
    /// Carries payload.
    DATA = 0, "data";
    /// Acknowledges and carries nothing: no payload, no SYN, FIN or RST.
    PURE_ACK = 1, "pure_ack";
    /// Carries what was sent before.
    RETRANSMISSION = 2, "retransmission";
    /// A retransmission that duplicate or selective acknowledgements asked for.
    FAST = 3, "fast";
    /// A retransmission because no acknowledgement came in time.
    TIMEOUT = 4, "timeout";
    /// A retransmission of the last segment, to provoke an acknowledgement (RFC 8985, TLP).
    TAIL_PROBE = 5, "tail_probe";
    /// A retransmission of what had been acknowledged already.
    SPURIOUS = 6, "spurious";
    /// Captured behind segments that were sent after it.
    OUT_OF_ORDER = 7, "out_of_order";
    /// What was lost before the capture saw it, sent again.
    FILLS_HOLE = 8, "fills_hole";
    /// Segments before it were not captured.
    AFTER_HOLE = 9, "after_hole";
    /// Acknowledges what was acknowledged, with the same window and without payload.
    DUPLICATE_ACK = 10, "duplicate_ack";
    /// Says that the receiver has no room.
    ZERO_WINDOW = 11, "zero_window";
    /// Changes nothing but the window.
    WINDOW_UPDATE = 12, "window_update";
    /// Asks whether the other end is there.
    KEEPALIVE = 13, "keepalive";
    /// Answers a keepalive.
    KEEPALIVE_ANSWER = 14, "keepalive_answer";
    /// Asks a closed window whether it is open again.
    ZERO_WINDOW_PROBE = 15, "zero_window_probe";
    /// Fills the receiver's window to the last byte.
    WINDOW_FULL = 16, "window_full";
    /// Longer than a segment can be: the capture saw it before it was cut, or after it was joined.
    SUPERFRAME = 17, "superframe";
    /// An acknowledgement that waited for its timer.
    DELAYED_ACK = 18, "delayed_ack";
    /// A segment that Nagle's algorithm held until an acknowledgement came.
    NAGLE_RELEASED = 19, "nagle_released";
    /// The same frame captured once more.
    DUPLICATE_FRAME = 20, "duplicate_frame";
    /// A SYN or FIN that was sent before.
    CONTROL_RETRANSMISSION = 21, "control_retransmission";
}

impl Verdict {
    /// Whatever says a thing once more because nothing was heard.
    pub(crate) const REPEATS: Self = Self(
        Self::RETRANSMISSION.0
            | Self::CONTROL_RETRANSMISSION.0
            | Self::KEEPALIVE.0
            | Self::ZERO_WINDOW_PROBE.0,
    );

    /// Returns whether any of `other` holds.
    #[inline]
    pub(crate) fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns the names of all properties that hold.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::ALL
            .iter()
            .filter(move |(verdict, _)| self.any(*verdict))
            .map(|(_, name)| *name)
    }
}

impl std::ops::BitOr for Verdict {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
