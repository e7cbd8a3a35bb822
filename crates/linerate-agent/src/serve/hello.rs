//! The first bytes of a native data connection.
//!
//! ```text
//! offset  bytes  content
//!      0      8  "LINERATE"
//!      8      2  version of this layout, big-endian: 1
//!     10      2  what follows, big-endian: 0 the flow itself, 1 one of its connections, of which it makes one
//!                after another, 2 nothing, as it is a question
//!     12      4  flow number, big-endian
//!     16     16  cookie of the trial
//! ```
//!
//! A flow that the agent does not know is answered before it is closed, and a question always is: by one of
//! the same length, which says who answers. A connection of a flow that is not known is reset, since an
//! answer could be taken for the response that it waits for.
//!
//! ```text
//! offset  bytes  content
//!      0      8  "LINERATE"
//!      8      2  0x8004, big-endian
//!     10      2  1 where a trial has that cookie, else 0, big-endian
//!     12      4  flow number, big-endian
//!     16     16  the agent: a number that each process chooses for itself
//! ```

pub use linerate_engine::opening::HELLO_BYTES;
use linerate_model::FlowId;

/// The first bytes; the first of them tells it from HTTP, TLS and iperf3.
pub const HELLO_MAGIC: &[u8; 8] = b"LINERATE";
const VERSION: u16 = 1;
/// What an answer has in the place of the version: see also [`linerate_engine::opening`].
const ANSWER: u16 = 0x8004;

/// Length of the number by which an agent is known.
pub const INSTANCE_BYTES: usize = 16;

/// Whose flow a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Cookie of the trial.
    pub cookie: [u8; 16],
    /// The flow.
    pub flow: FlowId,
    /// What follows.
    pub announces: Announces,
}

/// What follows a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announces {
    /// The flow itself.
    Flow,
    /// One of the flow's connections.
    Connection,
    /// Nothing: who listens there is to be told.
    Question,
}

/// Who listens where a hello was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Whether a trial of it has the cookie.
    pub knows: bool,
    /// The flow that was asked about.
    pub flow: FlowId,
    /// The agent.
    pub instance: [u8; INSTANCE_BYTES],
}

impl Hello {
    /// Returns the bytes that open a data connection.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(HELLO_MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10..12].copy_from_slice(&(self.announces as u16).to_be_bytes());
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
        let announces = match u16::from_be_bytes([rest[2], rest[3]]) {
            0 => Announces::Flow,
            1 => Announces::Connection,
            2 => Announces::Question,
            _ => return None,
        };
        let flow = FlowId(u32::from_be_bytes([rest[4], rest[5], rest[6], rest[7]]));
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&rest[8..]);
        Some(Self {
            cookie,
            flow,
            announces,
        })
    }
}

impl Answer {
    /// Returns its bytes.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(HELLO_MAGIC);
        bytes[8..10].copy_from_slice(&ANSWER.to_be_bytes());
        bytes[10..12].copy_from_slice(&u16::from(self.knows).to_be_bytes());
        bytes[12..16].copy_from_slice(&self.flow.0.to_be_bytes());
        bytes[16..].copy_from_slice(&self.instance);
        bytes
    }

    /// Reads what came in answer to a hello; absent where that is something else.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(HELLO_MAGIC)?;
        let rest = rest.strip_prefix(&ANSWER.to_be_bytes())?;
        let (rest, instance) = rest.split_last_chunk()?;
        Some(Self {
            knows: rest[..2] == 1_u16.to_be_bytes(),
            flow: FlowId(u32::from_be_bytes(*rest.last_chunk()?)),
            instance: *instance,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_survives_the_wire() {
        for announces in [Announces::Flow, Announces::Connection, Announces::Question] {
            let hello = Hello {
                cookie: *b"0123456789abcdef",
                flow: FlowId(0x0102_0304),
                announces,
            };
            assert_eq!(Hello::decode(&hello.encode()), Some(hello));
            assert_eq!(Answer::decode(&hello.encode()), None);
        }
    }

    #[test]
    fn an_answer_is_no_longer_than_its_question_and_survives_the_wire() {
        for knows in [false, true] {
            let answer = Answer {
                knows,
                flow: FlowId(0x0102_0304),
                instance: *b"fedcba9876543210",
            };
            let bytes: [u8; HELLO_BYTES] = answer.encode();
            assert_eq!(Answer::decode(&bytes), Some(answer));
            assert_eq!(Hello::decode(&bytes), None);
        }
    }

    #[test]
    fn strangers_are_told_apart() {
        assert_eq!(Hello::decode(&[b'G'; HELLO_BYTES]), None);
        let mut newer = Hello {
            cookie: [7; 16],
            flow: FlowId(0),
            announces: Announces::Flow,
        }
        .encode();
        newer[9] = 2;
        assert_eq!(Hello::decode(&newer), None);
    }
}
