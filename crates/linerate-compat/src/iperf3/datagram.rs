//! Streams of datagrams: how they are opened, and what share of them is lost.

/// What a client sends to open a stream, and what it is answered, since 3.12.
pub const HELLO: [u8; 4] = *b"9876";
/// The answer of a server.
pub const HELLO_ANSWER: [u8; 4] = *b"6789";

/// Returns whether `datagram` opens a stream: four bytes. Servers do not look at their content.
pub fn is_hello(datagram: &[u8]) -> bool {
    datagram.len() == HELLO.len()
}

/// Returns `lost` in percent of `packets`; 0 if there were none.
pub fn lost_percent(lost: u64, packets: u64) -> f64 {
    match packets {
        0 => 0.0,
        packets => 100.0 * lost as f64 / packets as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_of_all_releases() {
        for hello in [HELLO, 123_456_789_u32.to_le_bytes(), [0; 4]] {
            assert!(is_hello(&hello));
        }
        assert!(!is_hello(b"98765"));
    }
}
