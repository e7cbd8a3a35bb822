//! Whole messages, counted from bytes: both ends walk along the same sizes.

use crate::workload::sizes::Draw;

/// The sizes of messages, one after another.
#[derive(Debug)]
pub(crate) struct SizeSequence {
    /// The size of each, where they do not differ.
    pub(crate) bytes: usize,
    pub(crate) draw: Option<Draw>,
}

impl SizeSequence {
    /// Returns the next size; 1 ns, or what [`Draw::next_bytes`] takes.
    pub(crate) fn next(&mut self) -> usize {
        match &mut self.draw {
            None => self.bytes,
            Some(draw) => draw.next_bytes(),
        }
    }
}

/// Follows the boundaries of messages in a stream.
#[derive(Debug)]
pub(crate) struct Messages {
    sizes: SizeSequence,
    /// Bytes that the current message still lacks; never 0.
    left_bytes: usize,
    is_between: bool,
}

impl Messages {
    /// Returns a follower at the first byte of the first message of `sizes`.
    pub(crate) fn new(mut sizes: SizeSequence) -> Self {
        let left_bytes = sizes.next();
        Self {
            sizes,
            left_bytes,
            is_between: true,
        }
    }

    /// Returns a follower of messages whose sizes `draw` gives.
    pub(crate) fn drawn(draw: Draw) -> Self {
        let draw = Some(draw);
        Self::new(SizeSequence { bytes: 0, draw })
    }

    /// Moves on by `bytes`; returns how many messages became whole.
    ///
    /// Cost: 1 ns, and for each message that of drawing a size.
    pub(crate) fn moved(&mut self, mut bytes: usize) -> u64 {
        let mut whole = 0;
        while bytes >= self.left_bytes {
            bytes -= self.left_bytes;
            self.left_bytes = self.sizes.next();
            whole += 1;
        }
        self.left_bytes -= bytes;
        // Where the peer may close: the last one is untouched.
        self.is_between = bytes == 0 && (whole > 0 || self.is_between);
        whole
    }

    /// Returns whether nothing of the next message has moved yet.
    pub(crate) fn is_between(&self) -> bool {
        self.is_between
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::Bytes;
    use linerate_model::id::FlowId;
    use linerate_model::manner::Sizes;

    use super::*;

    #[test]
    fn messages_are_whole_when_their_last_byte_has_moved() {
        let bytes = [3, 1, 2].map(Bytes).into();
        let mut messages = Messages::drawn(Draw::new(&Sizes::List { bytes }, FlowId(0)));
        // Boundaries at 3, 4, 6, 9, 10, 12.
        let got: Vec<u64> = [0, 2, 1, 0, 4, 4, 1]
            .map(|bytes| messages.moved(bytes))
            .into();
        assert_eq!(got, [0, 0, 1, 0, 2, 2, 1]);
    }

    #[test]
    fn a_stream_is_between_messages_or_inside_one() {
        let bytes = [3, 1, 2].map(Bytes).into();
        let mut messages = Messages::drawn(Draw::new(&Sizes::List { bytes }, FlowId(0)));
        assert!(messages.is_between());
        let mut check = |bytes, complete, between| {
            assert_eq!(messages.moved(bytes), complete);
            assert_eq!(messages.is_between(), between);
        };
        check(2, 0, false);
        check(1, 1, true);
        check(1, 1, true);
        // The third, two whole ones more, and one byte of the sixth.
        check(2 + 3 + 1 + 1, 3, false);
        check(1, 1, true);
    }
}
