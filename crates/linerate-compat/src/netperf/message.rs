//! One message: words and texts at their places.

use std::fmt;

/// The word of a request that says "any CPU", and of a field that says "as you like": −1.
pub const NOTHING_SAID: u32 = u32::MAX;
/// Bytes of every message, in both directions.
pub const MESSAGE_BYTES: usize = 656;
/// Bytes before the first word of data: the kind, and what else a message of either direction says.
const PREFIX_BYTES: usize = 8;
/// Bytes of a word, big-endian.
const WORD_BYTES: usize = 4;

/// A message as it is on the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Message([u8; MESSAGE_BYTES]);

impl Message {
    /// Returns a message of a kind that says nothing but `second`: of a request the CPU to run on, of an
    /// answer the error.
    pub(super) fn new(kind: u32, second: u32) -> Self {
        let mut message = Self([0; MESSAGE_BYTES]);
        message.0[..WORD_BYTES].copy_from_slice(&kind.to_be_bytes());
        message.0[WORD_BYTES..PREFIX_BYTES].copy_from_slice(&second.to_be_bytes());
        message
    }

    /// Takes what arrived.
    pub fn from_bytes(bytes: [u8; MESSAGE_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns whether a connection that begins with `byte` may be one of netperf: all kinds are below 2¹⁶.
    pub fn may_begin_with(byte: u8) -> bool {
        byte == 0
    }

    /// Returns what goes on the wire.
    pub fn bytes(&self) -> &[u8; MESSAGE_BYTES] {
        &self.0
    }

    /// Returns what kind of message it is.
    pub(super) fn kind(&self) -> u32 {
        self.at(0)
    }

    /// Returns the word behind the kind.
    pub(super) fn second(&self) -> u32 {
        self.at(WORD_BYTES)
    }

    /// Returns a word of the data.
    pub(super) fn word(&self, index: usize) -> u32 {
        self.at(PREFIX_BYTES + index * WORD_BYTES)
    }

    /// Writes a word of the data.
    pub(super) fn set_word(&mut self, index: usize, word: u32) {
        let at = PREFIX_BYTES + index * WORD_BYTES;
        self.0[at..at + WORD_BYTES].copy_from_slice(&word.to_be_bytes());
    }

    /// Returns the bytes of the text of up to `most` bytes that begins `offset` bytes behind word `words`, to
    /// its first NUL; the last byte is always one.
    pub(super) fn text(&self, words: usize, offset: usize, most: usize) -> &[u8] {
        let begin = PREFIX_BYTES + words * WORD_BYTES + offset;
        let room = &self.0[begin..begin + most - 1];
        let end = room.iter().position(|byte| *byte == 0);
        &room[..end.unwrap_or(room.len())]
    }

    /// Writes such a text, as much of it as fits.
    pub(super) fn set_text(&mut self, (words, offset): (usize, usize), most: usize, text: &str) {
        let begin = PREFIX_BYTES + words * WORD_BYTES + offset;
        let bytes = text.as_bytes();
        let length = bytes.len().min(most - 1);
        self.0[begin..begin + length].copy_from_slice(&bytes[..length]);
    }

    fn at(&self, begin: usize) -> u32 {
        let mut word = [0; WORD_BYTES];
        word.copy_from_slice(&self.0[begin..begin + WORD_BYTES]);
        u32::from_be_bytes(word)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message(kind {}, {})", self.kind(), self.second())
    }
}
