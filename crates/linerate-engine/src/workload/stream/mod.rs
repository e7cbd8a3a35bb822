//! Payload in one direction, as fast as the path takes it or at a rate.

/// A sender lets others have its CPU between calls.
mod cpu_yield;
/// Takes payload to the end of the stream.
mod receiver;
/// Sends payload message after message.
mod sender;

use linerate_model::manner::{ReceiveBy, SendBy};

use crate::flow::FlowConfig;
use crate::sys::socket::REPEATS_MAX;
use crate::workload::sizes::Draw;

pub(crate) use cpu_yield::CpuYield;
pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;

/// After so many bytes a call repeats its payload, which a core's second-level cache then keeps: calls of 1 MiB
/// move 91.6 Gbit/s over loopback for 0.147 CPU s/GiB, with 1 MiB of payload 85.9 for 0.158 (medians of 7).
const BLOCK_BYTES: usize = 128 << 10;

/// Bytes that a sender needs of the payload that is copied: those of its largest call, or what it repeats.
pub(crate) fn payload_bytes(config: &FlowConfig, message_bytes: usize) -> usize {
    if !matches!(config.manner.send, SendBy::Copy | SendBy::Auto) {
        return 0;
    }
    let sizes = config.manner.sizes.as_ref();
    let largest = sizes.map_or(message_bytes, |sizes| {
        Draw::new(sizes, config.flow).largest()
    });
    repeated_bytes(largest * config.manner.batch as usize)
}

/// Returns the payload of a call of so many bytes; one that could not repeat it often enough has its own.
fn repeated_bytes(call_bytes: usize) -> usize {
    if call_bytes <= BLOCK_BYTES * REPEATS_MAX {
        call_bytes.min(BLOCK_BYTES)
    } else {
        call_bytes
    }
}

/// How often a receive call fills its room: payload is not looked at, and a room of an eighth of the call
/// stays in a core's second-level cache and takes 0.9 MB less. Against a room as long as the call, loopback,
/// reno, medians of twice 7 interleaved runs on a busy machine, CPU time a byte: messages of 128 KiB 0.62 and
/// 0.90 times as much, of 1 MiB 0.73 and 0.88, ten flows 0.84 and 0.93; rates of one flow 1.16 to 1.9 times.
const ROOM_REPEATS: usize = 8;

/// Bytes that a receiver needs for calls of `receive_bytes`.
pub(crate) fn room_bytes(config: &FlowConfig, receive_bytes: usize) -> usize {
    match config.manner.receive {
        ReceiveBy::Copy => receive_bytes / ROOM_REPEATS,
        ReceiveBy::Discard => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_repeats_its_payload_as_often_as_one_call_can() {
        let check = |call_bytes: usize, expected: usize| {
            let payload = repeated_bytes(call_bytes);
            assert_eq!(payload, expected, "for {call_bytes}");
            assert!(
                payload * REPEATS_MAX >= call_bytes,
                "{call_bytes} in one call"
            );
        };
        check(1, 1);
        check(128 << 10, 128 << 10);
        check((128 << 10) + 1, 128 << 10);
        check(2 << 20, 128 << 10);
        check((2 << 20) + 1, (2 << 20) + 1);
        check(64 << 20, 64 << 20);
    }
}
