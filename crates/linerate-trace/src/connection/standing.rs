//! Silences of a sender that has full segments on its way, while the receiver's window has room: how much
//! was on its way in them, and whether that was the same again and again.
//!
//! A congestion window that nothing stops grows, by half a segment each round trip at the least where every
//! second segment is acknowledged (RFC 5681). One level in many silences is another limit: a send buffer, or
//! what a program has outstanding.

/// Segments that one level may differ by. Buffers count what the kernel takes for a segment, not its bytes.
const LEVEL_SEGMENTS: u32 = 3;

/// What was on the way of one end in its silences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Standing {
    /// How many silences in a row had about as much on the way, or less.
    pub count: u32,
    /// How long those at the level took.
    pub level_ns: u64,
    /// How long all took.
    pub total_ns: u64,
    /// The most that was on the way.
    pub bytes: u32,
    /// Where the level began.
    first_bytes: u32,
}

impl Standing {
    /// Adds a silence of `length_ns` with `flight_bytes` on the way.
    #[cold]
    pub(crate) fn note(&mut self, flight_bytes: u32, segment_bytes: u32, length_ns: u64) {
        let apart = segment_bytes.saturating_mul(LEVEL_SEGMENTS);
        self.total_ns = self.total_ns.saturating_add(length_ns);
        if flight_bytes > self.first_bytes.saturating_add(apart) {
            // It grew: the level begins anew.
            *self = Self {
                total_ns: self.total_ns,
                bytes: flight_bytes,
                first_bytes: flight_bytes,
                ..Self::default()
            };
        }
        self.bytes = self.bytes.max(flight_bytes);
        if flight_bytes.saturating_add(apart) >= self.first_bytes {
            self.count = self.count.saturating_add(1);
            self.level_ns = self.level_ns.saturating_add(length_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Standing;

    #[test]
    fn a_level_is_one_only_if_it_stays() {
        let mut standing = Standing::default();
        for round in 0..64 {
            standing.note(20_000 + round % 3 * 1448, 1448, 10);
        }
        assert_eq!((standing.count, standing.level_ns), (64, 640));
        // Half a segment more each time.
        let mut growing = Standing::default();
        for round in 0..64 {
            growing.note(20_000 + round * 724, 1448, 10);
        }
        assert!(growing.count <= 7, "{growing:?}");
        assert_eq!(growing.total_ns, 640);
    }
}
