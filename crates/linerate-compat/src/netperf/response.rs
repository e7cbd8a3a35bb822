//! Where the payload goes.

use super::message::Message;

/// Kinds of answers.
pub(super) const OMNI_RESPONSE: u32 = 98;
const OMNI_RESULTS: u32 = 99;
/// What netperf's server says before its counts: it turns the bytes of its first answer round once more
/// (`send_response_n` of netperf's src/netlib.c).
const OMNI_RESPONSE_AGAIN: u32 = OMNI_RESPONSE.swap_bytes();
const DEBUG_OK: u32 = 3;
const CPU_CALIBRATED: u32 = 5;
/// The error that answers a message of no known kind.
pub const UNKNOWN_REQUEST: u32 = 998;

/// What the server has set up for a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OmniResponse {
    /// The receiving buffer of its socket, as the kernel has it.
    pub receive_window_bytes: u32,
    /// What a call receives.
    pub receive_bytes: u32,
    /// The sending buffer of its socket.
    pub send_window_bytes: u32,
    /// What a call sends.
    pub send_bytes: u32,
    /// The bits of [`super::flag`] that are in effect.
    pub flags: u32,
    /// The length of the test, as it was asked for.
    pub length: u32,
    /// Where the payload is expected.
    pub port: u16,
    /// Pacing that is in effect: calls.
    pub burst: u32,
    /// The same: time between bursts.
    pub interval_us: u32,
    /// SO_PRIORITY, or [`super::NOTHING_SAID`].
    pub priority: u32,
    /// Type of service, or [`super::NOTHING_SAID`].
    pub tos: u32,
}

impl OmniResponse {
    /// Returns the message that says it.
    pub fn encode(&self) -> Message {
        let mut message = Message::new(OMNI_RESPONSE, 0);
        for (index, word) in self.words() {
            message.set_word(index, word);
        }
        message
    }

    /// Reads a server's answer to a test; the error where it refuses.
    pub fn decode(message: &Message) -> Result<Self, u32> {
        if message.second() != 0 {
            return Err(message.second());
        }
        Ok(Self {
            receive_window_bytes: message.word(0),
            receive_bytes: message.word(1),
            send_window_bytes: message.word(3),
            send_bytes: message.word(4),
            flags: message.word(6),
            length: message.word(8),
            port: u16::try_from(message.word(11)).unwrap_or(0),
            burst: message.word(12),
            interval_us: message.word(13),
            priority: message.word(16),
            tos: message.word(17),
        })
    }

    /// Returns the words that say something, by their place.
    fn words(&self) -> [(usize, u32); 13] {
        [
            (0, self.receive_window_bytes),
            (1, self.receive_bytes),
            (2, 1),
            (3, self.send_window_bytes),
            (4, self.send_bytes),
            (5, 1),
            (6, self.flags),
            (8, self.length),
            (11, self.port.into()),
            (12, self.burst),
            (13, self.interval_us),
            (16, self.priority),
            (17, self.tos),
        ]
    }
}

/// Returns whether a message is an answer to a request for a record, or none, of what the server does.
pub fn is_debug_answer(message: &Message) -> bool {
    message.kind() == DEBUG_OK
}

/// Returns whether a message is an answer to a test: what was set up for it, what was counted, or an error.
pub fn is_omni_answer(message: &Message) -> bool {
    matches!(
        message.kind(),
        OMNI_RESPONSE | OMNI_RESULTS | OMNI_RESPONSE_AGAIN
    )
}

/// Returns the answer to a request that is not granted, or a test that failed.
pub fn refused(error: u32) -> Message {
    Message::new(OMNI_RESPONSE, error)
}

/// Returns the answer to a request for a record of what the server does.
pub fn debug_answer() -> Message {
    Message::new(DEBUG_OK, 0)
}

/// Returns the answer to who asks how many CPUs there are; how fast they count is of no use where the system
/// says how busy they are, and any number but 0 says that it does.
pub fn calibrated(cpus: u32) -> Message {
    let mut message = Message::new(CPU_CALIBRATED, 0);
    message.set_word(0, 100.0_f32.to_bits());
    message.set_word(1, cpus);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_the_wire() {
        let response = OmniResponse {
            receive_window_bytes: 1,
            receive_bytes: 2,
            send_window_bytes: 3,
            send_bytes: 4,
            flags: 9,
            length: -5_i32 as u32,
            port: 40_000,
            burst: 6,
            interval_us: 7,
            priority: u32::MAX,
            tos: 8,
        };
        assert_eq!(OmniResponse::decode(&response.encode()), Ok(response));
        assert_eq!(OmniResponse::decode(&refused(13)), Err(13));
        assert!(is_debug_answer(&debug_answer()) && !is_omni_answer(&debug_answer()));
        assert!(is_omni_answer(&refused(13)) && !is_debug_answer(&refused(13)));
        assert_eq!(calibrated(2).word(1), 2);
    }
}
