//! Conversations that come and go at a port that others use, too: told by what their client says first.
//!
//! 1. Until it has said something, nobody knows whose a conversation is, and its frames wait.
//! 2. A new handshake begins a new conversation between the same ends.
//! 3. Those that were not heard of for so long that [`KNOWN_MAX`] others came are forgotten.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::Frame;
use super::select::segment;

/// Conversations of one generation; two are kept. 10 MB.
const KNOWN_MAX: usize = 1 << 16;
/// Flags of a TCP segment: a handshake, and its answer.
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Whose a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// One of the conversations that are looked for.
    Ours,
    /// Somebody else's.
    Others,
    /// Its client has not said anything yet.
    Unknown,
}

/// Tells conversations by their first words.
#[derive(Debug)]
pub struct Introductions {
    port: u16,
    words: Vec<Option<u8>>,
    known: HashMap<(SocketAddr, SocketAddr), Whose>,
    known_before: HashMap<(SocketAddr, SocketAddr), Whose>,
}

impl Introductions {
    /// Returns what looks for TCP conversations with `port` that begin with `words`, of which those bytes
    /// that are absent may be any.
    pub fn new(port: u16, words: Vec<Option<u8>>) -> Self {
        Self {
            port,
            words,
            known: HashMap::new(),
            known_before: HashMap::new(),
        }
    }

    /// Returns how many bytes of a frame have to be kept to see the words: with the longest headers.
    pub fn snap_bytes(&self) -> u32 {
        // Ethernet, IPv6, TCP with all options.
        14 + 40 + 60 + self.words.len() as u32
    }

    /// Notes what a frame of a capture of this link type says; returns whose it is.
    pub fn look(&mut self, link_type: u16, frame: &Frame<'_>) -> Whose {
        let Some(segment) = segment(link_type, frame.bytes).filter(|it| it.is_tcp) else {
            return Whose::Others;
        };
        let from_client = segment.to.port() == self.port;
        let ends = if from_client {
            (segment.from, segment.to)
        } else {
            (segment.to, segment.from)
        };
        let is_new = from_client && segment.flags & (SYN | ACK) == SYN;
        let known = if is_new { None } else { self.find(ends) };
        if let Some(whose @ (Whose::Ours | Whose::Others)) = known {
            return whose;
        }
        let whose = match segment.payload {
            payload if payload.is_empty() || !from_client => Whose::Unknown,
            payload if self.are_words(payload) => Whose::Ours,
            _ => Whose::Others,
        };
        if known != Some(whose) {
            self.note(ends, whose);
        }
        whose
    }

    /// Returns whose a frame is that was looked at, from what is known now.
    pub fn whose(&mut self, link_type: u16, frame: &Frame<'_>) -> Whose {
        let Some(segment) = segment(link_type, frame.bytes) else {
            return Whose::Others;
        };
        let ends = if segment.to.port() == self.port {
            (segment.from, segment.to)
        } else {
            (segment.to, segment.from)
        };
        self.find(ends).unwrap_or(Whose::Unknown)
    }

    fn are_words(&self, payload: &[u8]) -> bool {
        let said = payload.get(..self.words.len());
        said.is_some_and(|said| {
            let mut both = self.words.iter().zip(said);
            both.all(|(word, byte)| word.is_none_or(|word| word == *byte))
        })
    }

    fn find(&mut self, ends: (SocketAddr, SocketAddr)) -> Option<Whose> {
        if let Some(whose) = self.known.get(&ends) {
            return Some(*whose);
        }
        let whose = self.known_before.remove(&ends)?;
        self.note(ends, whose);
        Some(whose)
    }

    fn note(&mut self, ends: (SocketAddr, SocketAddr), whose: Whose) {
        if self.known.len() >= KNOWN_MAX {
            self.known_before = std::mem::take(&mut self.known);
        }
        self.known.insert(ends, whose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::LINKTYPE_RAW;

    /// A segment between 192.0.2.1 and port 5201 of 192.0.2.2.
    fn frame(port: u16, to_server: bool, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = 40 + payload.len() as u16;
        let mut bytes = vec![0x45, 0];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        let (client, server) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let (from, to) = if to_server {
            (client, server)
        } else {
            (server, client)
        };
        bytes.extend(from);
        bytes.extend(to);
        let (source, target) = if to_server {
            (port, 5201)
        } else {
            (5201, port)
        };
        bytes.extend(u16::to_be_bytes(source));
        bytes.extend(u16::to_be_bytes(target));
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        bytes.extend(payload);
        // What Ethernet fills short frames with is no payload.
        bytes.extend([0; 6]);
        bytes
    }

    #[test]
    fn the_first_words_of_a_client_tell_whose_a_conversation_is() {
        let words = vec![Some(b'L'), None, Some(b'N')];
        let mut all = Introductions::new(5201, words);
        let mut look = |port, to_server, flags, payload: &[u8]| {
            let bytes = frame(port, to_server, flags, payload);
            let frame = Frame {
                at_unix_ns: 0,
                length: bytes.len() as u32,
                bytes: &bytes,
                vlan: None,
                is_outgoing: true,
            };
            all.look(LINKTYPE_RAW, &frame)
        };
        for port in [40_000, 40_001] {
            assert_eq!(look(port, true, SYN, b""), Whose::Unknown);
            assert_eq!(look(port, false, SYN | ACK, b""), Whose::Unknown);
            assert_eq!(look(port, true, ACK, b""), Whose::Unknown);
        }
        assert_eq!(look(40_000, true, ACK, b"LaN and more"), Whose::Ours);
        assert_eq!(look(40_001, true, ACK, b"LaM and more"), Whose::Others);
        assert_eq!(look(40_002, true, ACK, b"La"), Whose::Others);
        assert_eq!(look(40_000, false, ACK, b"an answer"), Whose::Ours);
        assert_eq!(look(40_000, true, ACK, b"whatever"), Whose::Ours);
        assert_eq!(
            look(40_001, true, ACK, b"LaN"),
            Whose::Others,
            "not the first"
        );
        // The same ends once more.
        assert_eq!(look(40_000, true, SYN, b""), Whose::Unknown);
        assert_eq!(look(40_000, true, ACK, b"GET"), Whose::Others);
    }
}
