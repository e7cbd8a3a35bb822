//! Payload in one direction, as fast as the path takes it or at a rate.

/// A sender lets others have its CPU between calls.
mod cpu_yield;
/// Takes payload to the end of the stream.
mod receiver;
/// Sends payload message after message.
mod sender;

use linerate_model::manner::{ReceiveBy, SendBy, Transport};

use crate::flow::FlowConfig;
use crate::workload::sizes::Draw;

pub(crate) use cpu_yield::CpuYield;
pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;

/// Bytes that a sender needs of the payload that is copied: those of its largest call.
pub(crate) fn payload_bytes(config: &FlowConfig, message_bytes: usize) -> usize {
    if !matches!(config.manner.send, SendBy::Copy | SendBy::Auto) {
        return 0;
    }
    let sizes = config.manner.sizes.as_ref();
    let largest = sizes.map_or(message_bytes, |sizes| {
        Draw::new(sizes, config.flow).largest()
    });
    // Calls that we join ourselves carry the same message again and again, which stays in the cache.
    let is_repeated = config.manner.batch_is_chosen && config.manner.transport != Transport::Udp;
    match is_repeated {
        true => largest,
        false => largest * config.manner.batch as usize,
    }
}

/// Bytes that a receiver needs to receive into.
pub(crate) fn room_bytes(config: &FlowConfig, receive_bytes: usize) -> usize {
    match config.manner.receive {
        ReceiveBy::Copy => receive_bytes,
        ReceiveBy::Discard => 0,
    }
}
