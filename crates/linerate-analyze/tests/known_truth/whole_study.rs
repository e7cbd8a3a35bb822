//! A whole study with a known truth.

use crate::prelude::*;

/// A whole study with a known truth: one client for C=1, five for C=10; a window limit at 16 KiB,
/// a full link from 64 KiB on; Nagle and delayed ACK stall split requests.
pub fn study() -> MadeRun {
    let mut run = MadeRun::new(5, Some(1e9));
    run.recording.document.study = true;
    run.experiment("latency", Some(1), rr(4));
    for (payload, rtt_ns) in [(4, 50_000), (536, 70_000), (1460, 100_000)] {
        for ack in [true, false] {
            let acks_per_transaction = if ack { 0.0 } else { 1.0 };
            let truth =
                |wobble: u64| like!(Truth::transactions(rtt_ns + wobble); acks_per_transaction);
            let delayed = (Factor::DelayedAck, Level::Switch(ack));
            let levels = [(Factor::PayloadBytes, size(payload)), delayed];
            run.cell(&levels, &[truth(0), truth(100), truth(200)]);
        }
    }
    run.experiment("socket-buffer", Some(3), stream());
    for (connections, clients) in [(1, 1), (10, 5)] {
        for (buffer, bps) in [(16_384, 262e6), (65_536, 941e6), (1_048_576, 941.2e6)] {
            let window_bytes = buffer as i64;
            let limited = buffer == 16_384;
            let flows = connections as f64;
            let truth = |wobble: f64| {
                like!(Truth::stream(bps + wobble); window_bytes,
                rwnd_share: if limited { 0.95 } else { 0.1 },
                rtt_ns: (flows * buffer as f64 * 8e9 / bps) as i64)
            };
            let levels = [
                (Factor::Connections, Level::Count(connections)),
                (Factor::Clients, Level::Count(clients)),
                (Factor::SocketBuffer, size(buffer)),
            ];
            run.cell(&levels, &[truth(0.0), truth(1e5), truth(2e5)]);
        }
    }
    run.experiment("small-messages", Some(9), stream());
    for message in [100_u64, 536, 1460] {
        for nagle in [true, false] {
            for ack in [true, false] {
                let payload_bytes = if nagle { MSS } else { message.min(1448) as f64 };
                let truth = |wobble: f64| {
                    like!(Truth::stream(message as f64 * 4e5 * if nagle { 2.0 } else { 1.0 } + wobble);
                    payload_bytes, stall_ns: if nagle && ack { 44_000_000 } else { 1_000_000 })
                };
                let mut levels = switches(nagle, ack).to_vec();
                levels.push((Factor::MessageBytes, size(message)));
                run.cell(&levels, &[truth(0.0), truth(1e4), truth(2e4)]);
            }
        }
    }
    run.experiment("split-request", Some(9), rr(200));
    for writes in [1, 2] {
        for nagle in [true, false] {
            for ack in [true, false] {
                let stalls = writes == 2 && nagle && ack;
                let rtt_ns = if stalls { 44_000_000 } else { 60_000 };
                let mut levels = switches(nagle, ack).to_vec();
                levels.push((Factor::RequestWrites, Level::Count(writes)));
                let truth =
                    |wobble: u64| like!(Truth::transactions(rtt_ns + wobble); rtt_ns: 60_000);
                run.cell(&levels, &[truth(0), truth(100), truth(200)]);
            }
        }
    }
    run
}
