//! What really happened in a trial.

use linerate_model::run::ZeroCopyCount;

/// The measured window of every trial.
pub const WINDOW_NS: u64 = 1_000_000_000;
/// Payload of a full-size segment at MTU 1500 with timestamps.
pub const MSS: f64 = 1448.0;

/// What really happened in a trial; absent values are not sampled.
#[derive(Debug, Clone, Default)]
pub struct Truth {
    /// Payload of all flows together that TCP took in.
    pub throughput_bps: f64,
    /// Parts of it that flows have, the first flow first; equal ones if empty.
    pub shares: Vec<f64>,
    /// What receive calls returned in the window beyond what arrived in it; negative where they lag.
    pub read_beyond_bytes: f64,
    /// Rate of the window's second half over that of its first.
    pub halves: f64,
    /// Relative deviation of the rate from reading to reading, below 1.
    pub variation: f64,
    /// The same of what the senders know to be delivered; absent where that was not read.
    pub delivered_variation: Option<f64>,
    /// Payload of a data segment.
    pub payload_bytes: f64,
    /// Data segments for each pure ACK.
    pub segments_per_ack: f64,
    /// Smoothed round trip.
    pub rtt_ns: i64,
    /// Window that the receiver advertises.
    pub window_bytes: i64,
    /// Payload of each flow that the reader has left in the kernel.
    pub unread_bytes: i64,
    /// Payload of each flow that waits unsent.
    pub unsent_bytes: Option<i64>,
    /// Delivery rate that TCP sees while it sends, of each flow.
    pub delivery_bps: Option<f64>,
    /// Segments in flight.
    pub unacked: i64,
    /// Share of the time held by that window.
    pub rwnd_share: f64,
    /// Share of the time held by the send buffer.
    pub sndbuf_share: f64,
    /// Share of the time with data outstanding.
    pub busy_share: f64,
    /// Congestion window.
    pub cwnd: i64,
    /// Share of segments sent again.
    pub lost_share: f64,
    /// Parts of what is lost in the window that each of its tenths has; equal ones if empty.
    pub loss_parts: Vec<f64>,
    /// Share of the readings at which the window is closed, the last ones; nothing arrives meanwhile.
    pub closed_share: f64,
    /// Of those, the share that had arrived, as D-SACK tells.
    pub spurious_share: f64,
    /// Segments a second that never arrive, half of them sent again.
    pub in_vain: f64,
    /// Packets a second that the client's queueing discipline drops.
    pub qdisc_drops: f64,
    /// What the handshake agreed on.
    pub agreed: Option<&'static str>,
    /// Longest stall.
    pub stall_ns: i64,
    /// Busy CPUs, half in user mode, half in the kernel.
    pub cpus: f64,
    /// CPUs that other programs used in user mode, of the half of `cpus` that is user time.
    pub others_cpus: f64,
    /// CPUs that they used in the kernel, of the other half.
    pub others_kernel_cpus: f64,
    /// Share of the CPUs' time that no mode accounts for.
    pub missing_share: f64,
    /// Share of the CPUs' time that the hypervisor took.
    pub stolen_share: f64,
    /// Share of the time in which some task waited for a CPU; absent where it was not read.
    pub pressure_share: Option<f64>,
    /// Share of the time that the worker ran.
    pub worker_share: f64,
    /// Share of the time that it waited for a CPU.
    pub worker_wait_share: f64,
    /// Whether the client has another worker, which rests most of the time.
    pub second_worker: bool,
    /// Round trips of transactions: value and count.
    pub latency: Vec<(u64, u64)>,
    /// How late the requests of an open loop went: value and count; empty of a closed one.
    pub lateness: Vec<(u64, u64)>,
    /// Pure ACKs of a transaction.
    pub acks_per_transaction: f64,
    /// Why the trial is invalid.
    pub invalid: Option<String>,
    /// Spread of the flows' begins.
    pub skew_ns: u64,
    /// What TCP paces all flows together at.
    pub pacing_bps: Option<f64>,
    /// The congestion control in force.
    pub congestion: Option<&'static str>,
    /// What became of a sender's calls with MSG_ZEROCOPY.
    pub zero_copy: Option<ZeroCopyCount>,
    /// Shortest round trip of TCP, where it is not the smoothed one.
    pub min_rtt_ns: Option<i64>,
    /// How many times as far away as the first each further client is; those that are not told of are as far.
    /// What waits is the same for all.
    pub distances: Vec<f64>,
    /// Smoothed round trip at the server's end, where it is not the client's.
    pub server_rtt_ns: Option<i64>,
    /// ACKs that the server's delayed-ACK timer sent in a second.
    pub delayed_acks: Option<f64>,
    /// Times that the client's retransmission timer fired in a second.
    pub timeouts: Option<f64>,
    /// Share of the segments that arrived with a congestion mark.
    pub marked_share: f64,
    /// Segments in a second that the server's host got twice, where D-SACK tells nothing.
    pub twice: Option<f64>,
    /// Payload of a flow on its way to the receiver; absent where what was sent again was not counted.
    pub on_its_way_bytes: Option<i64>,
    /// How much what is in flight varies, in turn more and less, and the elasticity of the round trip.
    pub swings: Option<(f64, f64)>,
    /// Window that the receiver offers, where that was read.
    pub offered_bytes: Option<i64>,
    /// What else the server's device received, bit/s of payload; absent where no device was read.
    pub beside_bps: Option<f64>,
    /// Whether others have what the flows leave, so that the device passes the same all the time; else they are as they are.
    pub others_fill: bool,
    /// Payload that the server's device sent against the flows, bit/s; absent where no device was read.
    pub against_bps: Option<f64>,
    /// Share of its periods in which the server's control group was throttled, each for half of it.
    pub throttled: Option<f64>,
}

impl Truth {
    /// Hosts and a path that half of what they could do moves through; of what is not named there is nothing.
    pub fn usual() -> Self {
        Self {
            throughput_bps: 500e6,
            halves: 1.0,
            payload_bytes: MSS,
            segments_per_ack: 2.0,
            rtt_ns: 100_000,
            window_bytes: 1 << 20,
            unacked: 10,
            busy_share: 0.5,
            cwnd: 100,
            stall_ns: 500_000,
            cpus: 0.5,
            worker_share: 0.3,
            worker_wait_share: 0.01,
            skew_ns: 1_000_000,
            ..Self::default()
        }
    }

    /// A stream of `bps`.
    pub fn stream(bps: f64) -> Self {
        Self {
            throughput_bps: bps,
            ..Self::usual()
        }
    }

    /// A stream that always has something to send: `bps` in flight for `rtt_ns` over a path whose
    /// shortest round trip is `min_rtt_ns`, with a window that is never full.
    pub fn sending(bps: f64, rtt_ns: i64, min_rtt_ns: i64) -> Self {
        let in_flight = bps * rtt_ns as f64 / 8e9 / MSS;
        Self {
            rtt_ns,
            min_rtt_ns: Some(min_rtt_ns),
            unacked: in_flight.round() as i64,
            cwnd: in_flight.round() as i64 + 1,
            window_bytes: 3 << 20,
            unsent_bytes: Some(1 << 20),
            delivery_bps: Some(bps),
            busy_share: 1.0,
            congestion: Some("cubic"),
            ..Self::stream(bps)
        }
    }

    /// Transactions of `fast_ns`, of which `share` wait 200 ms longer, back to back on one connection;
    /// the retransmission timer fires for each of the slow.
    pub fn timeouts(fast_ns: u64, share: f64) -> Self {
        let slow_ns = fast_ns + 200_000_000;
        let mean_ns = fast_ns as f64 + share * 200e6;
        let count = WINDOW_NS as f64 / mean_ns;
        let slow = (share * count).round() as u64;
        let fast = count.round() as u64 - slow;
        Self {
            latency: vec![(fast_ns, fast), (slow_ns, slow)],
            timeouts: Some(slow as f64),
            delayed_acks: Some(0.0),
            ..Self::transactions(fast_ns)
        }
    }

    /// Transactions at a rate, all alike.
    pub fn transactions_per_s(rate: f64) -> Self {
        let count = (rate * WINDOW_NS as f64 / 1e9).round().max(1.0);
        Self {
            latency: vec![((WINDOW_NS as f64 / count) as u64, count as u64)],
            ..Self::usual()
        }
    }

    /// Transactions one after the other that take `rtt_ns` each, but for one in a hundred that
    /// takes twice as long.
    pub fn transactions(rtt_ns: u64) -> Self {
        let count = (WINDOW_NS as f64 / (rtt_ns as f64 * 1.01)) as u64;
        let slow = count / 100;
        Self {
            latency: vec![(rtt_ns, count - slow), (2 * rtt_ns, slow)],
            rtt_ns: rtt_ns as i64,
            ..Self::usual()
        }
    }
}
