//! The first bytes of a native data connection.
//!
//! ```text
//! offset  bytes  content
//!      0      8  "LINERATE"
//!      8      2  version of this layout, big-endian: 1
//!     10      2  zero
//!     12      4  flow number, big-endian
//!     16     16  cookie of the trial
//! ```

pub use linerate_engine::opening::HELLO_BYTES;
use linerate_model::FlowId;

/// The first bytes; the first of them tells it from HTTP, TLS and iperf3.
pub const HELLO_MAGIC: &[u8; 8] = b"LINERATE";
const VERSION: u16 = 1;

/// Whose flow a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Cookie of the trial.
    pub cookie: [u8; 16],
    /// The flow.
    pub flow: FlowId,
}

impl Hello {
    /// Returns the bytes that open a data connection.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(HELLO_MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.flow.0.to_be_bytes());
        bytes[16..].copy_from_slice(&self.cookie);
        bytes
    }

    /// Reads the bytes that opened a connection; absent where they are no hello of a known version.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(HELLO_MAGIC)?;
        if !rest.starts_with(&VERSION.to_be_bytes()) {
            return None;
        }
        let flow = FlowId(u32::from_be_bytes([rest[4], rest[5], rest[6], rest[7]]));
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&rest[8..]);
        Some(Self { cookie, flow })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_survives_the_wire() {
        let hello = Hello {
            cookie: *b"0123456789abcdef",
            flow: FlowId(0x0102_0304),
        };
        assert_eq!(Hello::decode(&hello.encode()), Some(hello));
    }

    #[test]
    fn strangers_are_told_apart() {
        assert_eq!(Hello::decode(&[b'G'; HELLO_BYTES]), None);
        let mut newer = Hello {
            cookie: [7; 16],
            flow: FlowId(0),
        }
        .encode();
        newer[9] = 2;
        assert_eq!(Hello::decode(&newer), None);
    }
}
