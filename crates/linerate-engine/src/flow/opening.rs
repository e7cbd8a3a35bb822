//! What two ends say to each other by datagrams before and after the payload.
//!
//! ```text
//! client                                server
//! hello, 32 B          ───────────────►          from anyone, perhaps under a false address
//!                      ◄───────────────  challenge, 32 B: a nonce that only that address learns
//! echo, 48 B: both     ───────────────►
//!                      ◄───────────────  confirmation, 32 B, from a socket of the flow's own
//! payload …
//! end, 32 B, repeated  ───────────────►          from whichever end sent payload or requests
//! ```
//!
//! An answer is never longer than what it answers, so nobody can be flooded through a server. All
//! of them begin with the magic of a hello; a datagram of a stream begins with the sender's clock
//! in seconds, which would have to show 40 years of uptime to be taken for it.
//!
//! ```text
//! offset  bytes  content
//!      0      8  "LINERATE"
//!      8      2  version of the hello, or the kind: 0x8001 challenge, 0x8002 confirmation, 0x8003 end
//!     10      2  zero
//!     12      4  flow number, big-endian
//!     16     16  cookie of the trial; nonce; zero; datagrams and bytes sent, 8 bytes each
//! ```

/// Where a hello has the cookie of its trial.
pub(super) const COOKIE_AT: usize = 16;
/// Length of that cookie.
pub(super) const COOKIE_BYTES: usize = 16;
/// Length of a hello, and of every answer to it.
pub const HELLO_BYTES: usize = 32;
/// Length of an echo: the hello and the nonce.
pub const ECHO_BYTES: usize = HELLO_BYTES + NONCE_BYTES;
/// Length of the nonce in a challenge.
pub const NONCE_BYTES: usize = 16;

const MAGIC: &[u8; 8] = b"LINERATE";
const CHALLENGE: u16 = 0x8001;
const CONFIRMATION: u16 = 0x8002;
const END: u16 = 0x8003;

/// A datagram that carries no payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal<'a> {
    /// A client names its flow.
    Hello(&'a [u8; HELLO_BYTES]),
    /// A server asks the client to show that it is where it says.
    Challenge(&'a [u8; NONCE_BYTES]),
    /// A client does.
    Echo {
        /// Its hello.
        hello: &'a [u8; HELLO_BYTES],
        /// The nonce of the challenge.
        nonce: &'a [u8; NONCE_BYTES],
    },
    /// The flow exists on the server.
    Confirmation,
    /// The sending end is done.
    End {
        /// Datagrams that it sent, those included that its kernel refused.
        datagrams: u64,
        /// Payload in them.
        bytes: u64,
    },
}

impl<'a> Signal<'a> {
    /// Reads a datagram; `None` if it is payload, of another program, or noise.
    pub fn read(datagram: &'a [u8]) -> Option<Self> {
        let (first, rest) = datagram.split_first_chunk::<HELLO_BYTES>()?;
        if first[..8] != MAGIC[..] {
            return None;
        }
        let number = |at: usize| first[at..at + 8].try_into().map(u64::from_be_bytes);
        match (u16::from_be_bytes([first[8], first[9]]), rest.len()) {
            (CHALLENGE, 0) => first.last_chunk().map(Signal::Challenge),
            (CONFIRMATION, 0) => Some(Signal::Confirmation),
            (END, 0) => Some(Signal::End {
                datagrams: number(16).ok()?,
                bytes: number(24).ok()?,
            }),
            (kind, 0) if kind < CHALLENGE => Some(Signal::Hello(first)),
            (kind, NONCE_BYTES) if kind < CHALLENGE => Some(Signal::Echo {
                hello: first,
                nonce: rest.first_chunk()?,
            }),
            _ => None,
        }
    }
}

/// Returns the challenge to `hello`.
pub fn challenge(hello: &[u8; HELLO_BYTES], nonce: &[u8; NONCE_BYTES]) -> [u8; HELLO_BYTES] {
    let mut bytes = answer(CHALLENGE, hello);
    bytes[16..].copy_from_slice(nonce);
    bytes
}

/// Returns the echo of a challenge.
pub fn echo(hello: &[u8; HELLO_BYTES], nonce: &[u8; NONCE_BYTES]) -> [u8; ECHO_BYTES] {
    let mut bytes = [0; ECHO_BYTES];
    bytes[..HELLO_BYTES].copy_from_slice(hello);
    bytes[HELLO_BYTES..].copy_from_slice(nonce);
    bytes
}

/// Returns the confirmation of the flow that `hello` names.
pub fn confirmation(hello: &[u8; HELLO_BYTES]) -> [u8; HELLO_BYTES] {
    answer(CONFIRMATION, hello)
}

/// Returns the mark after the last payload of flow number `flow`.
pub(crate) fn end(flow: u32, datagrams: u64, bytes: u64) -> [u8; HELLO_BYTES] {
    let mut mark = [0; HELLO_BYTES];
    mark[..8].copy_from_slice(MAGIC);
    mark[8..10].copy_from_slice(&END.to_be_bytes());
    mark[12..16].copy_from_slice(&flow.to_be_bytes());
    mark[16..24].copy_from_slice(&datagrams.to_be_bytes());
    mark[24..].copy_from_slice(&bytes.to_be_bytes());
    mark
}

fn answer(kind: u16, hello: &[u8; HELLO_BYTES]) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&kind.to_be_bytes());
    bytes[12..16].copy_from_slice(&hello[12..16]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: [u8; HELLO_BYTES] = *b"LINERATE\0\x01\0\0\0\0\0\x070123456789abcdef";
    const NONCE: [u8; NONCE_BYTES] = *b"fedcba9876543210";

    #[test]
    fn every_word_is_read_as_what_was_said() {
        assert_eq!(Signal::read(&HELLO), Some(Signal::Hello(&HELLO)));
        let said = challenge(&HELLO, &NONCE);
        assert_eq!(Signal::read(&said), Some(Signal::Challenge(&NONCE)));
        assert_eq!(said[12..16], [0, 0, 0, 7]);
        let said = echo(&HELLO, &NONCE);
        let expected = Signal::Echo {
            hello: &HELLO,
            nonce: &NONCE,
        };
        assert_eq!(Signal::read(&said), Some(expected));
        assert_eq!(
            Signal::read(&confirmation(&HELLO)),
            Some(Signal::Confirmation)
        );
        let expected = Signal::End {
            datagrams: 1 << 40,
            bytes: 5,
        };
        assert_eq!(Signal::read(&end(7, 1 << 40, 5)), Some(expected));
    }

    #[test]
    fn payload_and_noise_are_no_words() {
        for bytes in [0, 1, 4, 8, 31, 32, 33, 48, 1460] {
            assert_eq!(Signal::read(&vec![0; bytes]), None);
            assert_eq!(Signal::read(&vec![b'L'; bytes]), None);
        }
        assert_eq!(Signal::read(&HELLO[..31]), None);
        let mut longer = HELLO.to_vec();
        longer.push(0);
        assert_eq!(Signal::read(&longer), None);
        let mut unknown = HELLO;
        unknown[8] = 0x90;
        assert_eq!(Signal::read(&unknown), None);
    }

    #[test]
    fn no_answer_is_longer_than_what_it_answers() {
        assert!(challenge(&HELLO, &NONCE).len() <= HELLO.len());
        assert!(confirmation(&HELLO).len() <= echo(&HELLO, &NONCE).len());
    }
}
