//! Whole messages, counted from bytes: both ends walk along the same sizes.

use crate::workload::sizes::Draw;

/// Follows the boundaries of messages in a stream.
#[derive(Debug, Clone)]
pub(crate) struct Messages {
    draw: Draw,
    /// Bytes that the current message still lacks; never 0.
    left_bytes: usize,
}

impl Messages {
    /// Returns a follower at the first byte of the first message that `draw` gives.
    pub(crate) fn new(mut draw: Draw) -> Self {
        let left_bytes = draw.next_bytes();
        Self { draw, left_bytes }
    }

    /// Moves on by `bytes`; returns how many messages became whole.
    ///
    /// Cost: 1 ns, and for each message that of drawing a size.
    pub(crate) fn moved(&mut self, mut bytes: usize) -> u64 {
        let mut whole = 0;
        while bytes >= self.left_bytes {
            bytes -= self.left_bytes;
            self.left_bytes = self.draw.next_bytes();
            whole += 1;
        }
        self.left_bytes -= bytes;
        whole
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
        let mut messages = Messages::new(Draw::new(&Sizes::List { bytes }, FlowId(0)));
        // Boundaries at 3, 4, 6, 9, 10, 12.
        let got: Vec<u64> = [0, 2, 1, 0, 4, 4, 1]
            .map(|bytes| messages.moved(bytes))
            .into();
        assert_eq!(got, [0, 0, 1, 0, 2, 2, 1]);
    }
}
