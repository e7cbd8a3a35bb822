//! What kinds of messages a client sends.

use super::message::{Message, NOTHING_SAID};
use super::omni::{DO_OMNI, OmniError, OmniRequest};

const DEBUG_ON: u32 = 1;
const DEBUG_OFF: u32 = 2;
const CPU_CALIBRATE: u32 = 5;
const PASSPHRASE: u32 = 6;

/// What a client sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// That the server writes down what it does, or no more; answered in either case.
    Debug,
    /// How fast its CPUs count, and how many there are.
    Calibrate,
    /// A phrase; it is not answered.
    Passphrase,
    /// A test.
    Omni(Box<Result<OmniRequest, OmniError>>),
    /// What current clients do not send.
    Unknown(u32),
}

impl Request {
    /// Reads a message of a client.
    pub fn decode(message: &Message) -> Self {
        match message.kind() {
            DEBUG_ON | DEBUG_OFF => Self::Debug,
            CPU_CALIBRATE => Self::Calibrate,
            PASSPHRASE => Self::Passphrase,
            DO_OMNI => Self::Omni(Box::new(OmniRequest::decode(message))),
            other => Self::Unknown(other),
        }
    }

    /// Returns the message that asks how many CPUs there are.
    pub fn calibrate() -> Message {
        Message::new(CPU_CALIBRATE, NOTHING_SAID)
    }

    /// Returns the message that asks for a record of what the server does.
    pub fn debug() -> Message {
        Message::new(DEBUG_ON, NOTHING_SAID)
    }

    /// Returns the message that asks for none: it changes nothing, and shows who answers.
    pub fn no_debug() -> Message {
        Message::new(DEBUG_OFF, NOTHING_SAID)
    }

    /// Returns the message with a phrase of nothing.
    pub fn passphrase() -> Message {
        Message::new(PASSPHRASE, NOTHING_SAID)
    }
}
