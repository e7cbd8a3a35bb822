//! The rate of a wire as settings of the token bucket filter (`net/sched/sch_tbf.c`).
//!
//! A wire carries 24 bytes with each frame that the kernel does not count (preamble 8, check
//! sequence 4, gap 12) and pads short frames to 84 bytes in all. The kernel adds `overhead` to
//! and takes `mpu` as the least of each *packet* that the filter sees, so the sums are right only
//! if the filter sees single frames. There are two cases:
//!
//! 1. Up to `FRAMED_RATE_MAX`: a second bucket of one frame and a peak rate that never binds
//!    make `max_size` one frame, and `tbf_segment` then cuts superframes (GSO) into frames
//!    before they are counted. Every frame costs what it costs on a wire, short ones too.
//! 2. Above: cutting costs more CPU than the rate leaves, so superframes stay whole and the rate
//!    is lowered by (MTU + 14) / (MTU + 38): full-size frames take the time they take on a wire;
//!    shorter frames pass too cheaply (a 60-byte frame counts 0.71 of its share at MTU 1500).
//!
//! A link that loses, doubles or reorders is of case 1 at any rate, and at the highest where it has none: what the
//! relay does so to are frames then, and no superframes of dozens, in both directions and of every protocol. To let a host's superframes
//! have one segment each (`gso_max_segs`) costs TCP three quarters of its rate.
//!
//! # Two ends of a link
//!
//! The switch's port drops what it cannot hold, as switches do: 20 ms of the line, or as many bytes as were asked for. A host does not
//! drop what its own programs send: TCP keeps little of a flow in the device's queue (TCP small queues,
//! two superframes), so the queue holds whatever many flows put there, as that of a card holds 1000
//! superframes. With the port's 20 ms a host of 64 flows lost the first windows of half of them to its
//! own queue and these flows rested for a retransmission timeout.
//!
//! What a flow has in the queue is its share of the line. The kernel allows more of it to those with the
//! larger window over round trip; here every flow has two superframes at the most, on lines of case 1
//! (`tcp_limit_output_bytes`), and these end at 123 µs of the line, so that a first window of
//! ten segments and those that have grown take the same turns. Jain's index over 1 Gbit/s, 64 flows: 0.81
//! with the port's queue, 0.84 with this one, 1.00 with both limits; 10 flows: 0.44 to 0.88 without the
//! limit of a flow, 1.00 with it, and one flow keeps its 941 Mbit/s.

use linerate_model::wire::{
    ETHERNET_FRAME_MIN_BYTES, ETHERNET_HEADER_BYTES, ETHERNET_UNSEEN_BYTES,
};
use linerate_model::{BitsPerSec, Bytes};

use crate::spec::{LinkSpec, RATE_MAX, Way};
pub use crate::sys::tbf::{Cut, Shape};

/// Highest rate at which every frame is counted by itself.
///
/// A frame of 1538 bytes takes 4.9 µs at 2.5 Gbit/s; cutting and passing one costs about 2 µs of
/// CPU on the path from host to host.
pub const FRAMED_RATE_MAX: BitsPerSec = BitsPerSec(2.5e9);
/// Room for one VLAN tag in a frame.
const VLAN_TAG_BYTES: u32 = 4;
/// Smallest bucket: at low rates a few frames must pass together for the timer to keep up.
const BURST_BYTES_MIN: u64 = 16 << 10;
/// Smallest bucket for whole superframes, of which each may have 64 KiB.
const SUPERFRAME_BURST_BYTES_MIN: u64 = 256 << 10;
/// The time that the bucket covers: how late the filter's timer, or a host's CPU, may be without losing
/// rate. With 1 ms a full link of 1 Gbit/s on two shared CPUs carried 911 to 941 Mbit/s, with 4 ms 938 to 941.
const BURST_NS: u64 = 4_000_000;
/// How long a frame may wait in the queue of a link of case 1.
const QUEUE_NS: u64 = 20_000_000;
/// How long a frame may wait in the queue of a link of case 2.
const SUPERFRAME_QUEUE_NS: u64 = 5_000_000;
/// Bytes that may wait in a host's own device: 1000 superframes.
const HOST_QUEUE_BYTES: u32 = 64 << 20;
/// The time that a superframe of one flow keeps the line from others: a full frame at 100 Mbit/s.
const SUPERFRAME_NS: u64 = 123_040;
/// What the kernel counts for a superframe beside its payload (`truesize`), rounded up.
const SUPERFRAME_COST_BYTES: u64 = 1024;
/// Most segments of a superframe (`GSO_MAX_SEGS` of Linux).
const SUPERFRAME_SEGMENTS_MAX: u64 = 65_535;
/// Smallest queue, so that a slow link still takes a burst of two superframes.
const QUEUE_BYTES_MIN: u64 = 128 << 10;
/// The peak rate of case 1, in bytes per second: 1 Tbit/s, at which a frame takes 12 ns.
const PEAK_BYTES_PER_S: u64 = 125_000_000_000;

impl Shape {
    /// Returns this filter as the switch's end has it, which takes frames with packets of `mtu_bytes`: those that come there
    /// are cut by the hosts that send them, each to its own MTU.
    pub fn taking(self, mtu_bytes: u32) -> Self {
        let cut = self.cut.map(|cut| Cut {
            frame_bytes_max: cut.frame_bytes_max.max(frame_bytes_max(mtu_bytes)),
            ..cut
        });
        Self { cut, ..self }
    }

    /// Returns this filter as a host's own end has it: `queue` waits there at the most, or as much as TCP
    /// ever sends.
    pub fn of_host(self, queue: Option<Bytes>) -> Self {
        let queue_bytes = match queue {
            Some(bytes) => filter_bytes(bytes),
            None => HOST_QUEUE_BYTES.max(self.queue_bytes),
        };
        Self {
            queue_bytes,
            ..self
        }
    }
}

/// Returns the segments that a host's superframes may have on a link of `rate` and `mtu_bytes`, so that
/// one flow's do not keep others waiting.
pub fn superframe_segments(rate: BitsPerSec, mtu_bytes: u32) -> u32 {
    let frame_bytes = u64::from(mtu_bytes) + ETHERNET_HEADER_BYTES + ETHERNET_UNSEEN_BYTES;
    let segments = bytes_in((rate.0 / 8.0) as u64, SUPERFRAME_NS) / frame_bytes;
    segments.clamp(1, SUPERFRAME_SEGMENTS_MAX) as u32
}

/// Returns the least that a queue before `rate` can be asked to hold: two of what passes as a whole.
pub fn queue_min(rate: Option<BitsPerSec>, mtu_bytes: u32) -> Bytes {
    if is_framed(rate) {
        Bytes(2 * (u64::from(mtu_bytes) + ETHERNET_HEADER_BYTES + u64::from(VLAN_TAG_BYTES)))
    } else {
        Bytes(128 << 10)
    }
}

/// Returns the bytes that one flow may have before the device of a host: two superframes, each with what
/// the kernel counts beside its payload.
pub fn flow_queue_bytes(rate: BitsPerSec, mtu_bytes: u32) -> u64 {
    let segments = superframe_segments(rate, mtu_bytes);
    2 * (u64::from(segments) * u64::from(mtu_bytes) + SUPERFRAME_COST_BYTES)
}

/// Returns the filter before `link` on `way`, with the queue of a switch; absent where it neither limits nor
/// is of single frames.
pub fn shape_of(link: &LinkSpec, way: Way) -> Option<Shape> {
    let shape = match (link.rate_of(way), link.is_of_frames()) {
        (None, false) => return None,
        (Some(rate), false) => shape(rate, link.mtu_bytes),
        (rate, true) => framed(rate.unwrap_or(RATE_MAX), link.mtu_bytes),
    };
    let queue = match way {
        Way::Down => link.queue,
        Way::Up => link.up.queue,
    };
    Some(Shape {
        queue_bytes: queue.map_or(shape.queue_bytes, filter_bytes),
        ..shape
    })
}

fn filter_bytes(queue: Bytes) -> u32 {
    queue.0.try_into().unwrap_or(u32::MAX)
}

/// Returns the filter that makes a link of `rate` and `mtu_bytes` behave as a wire.
pub fn shape(rate: BitsPerSec, mtu_bytes: u32) -> Shape {
    if is_framed(Some(rate)) {
        framed(rate, mtu_bytes)
    } else {
        superframed(rate, mtu_bytes)
    }
}

/// Tells whether a link of `rate` counts every frame by itself (case 1).
pub fn is_framed(rate: Option<BitsPerSec>) -> bool {
    rate.is_some_and(|rate| rate.0 <= FRAMED_RATE_MAX.0)
}

fn framed(rate: BitsPerSec, mtu_bytes: u32) -> Shape {
    let bytes_per_s = (rate.0 / 8.0).round() as u64;
    Shape {
        rate_bytes_per_s: bytes_per_s,
        overhead_bytes: ETHERNET_UNSEEN_BYTES as u16,
        packet_bytes_min: (ETHERNET_FRAME_MIN_BYTES + 20) as u16,
        burst_bytes: bytes_in(bytes_per_s, BURST_NS).max(BURST_BYTES_MIN) as u32,
        queue_bytes: bytes_in(bytes_per_s, QUEUE_NS).max(QUEUE_BYTES_MIN) as u32,
        cut: Some(Cut {
            frame_bytes_max: frame_bytes_max(mtu_bytes),
            peak_bytes_per_s: PEAK_BYTES_PER_S,
        }),
    }
}

/// Returns the longest frame with packets of `mtu_bytes`.
fn frame_bytes_max(mtu_bytes: u32) -> u32 {
    mtu_bytes + ETHERNET_HEADER_BYTES as u32 + VLAN_TAG_BYTES
}

fn superframed(rate: BitsPerSec, mtu_bytes: u32) -> Shape {
    let counted = f64::from(mtu_bytes) + ETHERNET_HEADER_BYTES as f64;
    let share = counted / (counted + ETHERNET_UNSEEN_BYTES as f64);
    let bytes_per_s = (rate.0 / 8.0 * share).round() as u64;
    let burst = bytes_in(bytes_per_s, BURST_NS).max(SUPERFRAME_BURST_BYTES_MIN);
    Shape {
        rate_bytes_per_s: bytes_per_s,
        overhead_bytes: 0,
        packet_bytes_min: 0,
        burst_bytes: burst as u32,
        queue_bytes: bytes_in(bytes_per_s, SUPERFRAME_QUEUE_NS) as u32,
        cut: None,
    }
}

fn bytes_in(bytes_per_s: u64, time_ns: u64) -> u64 {
    (u128::from(bytes_per_s) * u128::from(time_ns) / 1_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::UpSpec;

    #[test]
    fn a_gigabit_wire_counts_every_frame() {
        let shape = shape(BitsPerSec(1e9), 1500);
        assert_eq!(shape.rate_bytes_per_s, 125_000_000);
        assert_eq!(shape.overhead_bytes, 24);
        assert_eq!(shape.packet_bytes_min, 84);
        assert_eq!(shape.queue_bytes, 2_500_000);
        let cut = shape.cut.expect("1 Gbit/s is framed");
        assert!((1514..65_536).contains(&cut.frame_bytes_max));
        assert!(cut.peak_bytes_per_s > shape.rate_bytes_per_s);
        assert!(shape.burst_bytes > cut.frame_bytes_max);
    }

    #[test]
    fn a_fast_wire_is_right_for_full_frames() {
        let shape = shape(BitsPerSec(10e9), 1500);
        assert!(shape.cut.is_none());
        // 1514 counted bytes must take the time of 1538 bytes at 10 Gbit/s.
        let frame_ns = 1514.0 * 1e9 / shape.rate_bytes_per_s as f64;
        assert!((frame_ns - 1230.4).abs() < 0.01, "{frame_ns} ns");
        assert!(shape.burst_bytes >= 256 << 10);
    }

    #[test]
    fn a_link_that_loses_cuts_whatever_its_rate() {
        let of = |rate: Option<f64>, loss| {
            let link = LinkSpec {
                rate: rate.map(BitsPerSec),
                loss,
                ..LinkSpec::default()
            };
            let shape = shape_of(&link, Way::Down);
            assert_eq!(shape, shape_of(&link, Way::Up));
            shape
        };
        assert_eq!(of(None, 0.0), None);
        assert_eq!(of(Some(10e9), 0.0), Some(shape(BitsPerSec(10e9), 1500)));
        assert_eq!(of(Some(1e9), 0.1), of(Some(1e9), 0.0));
        for (rate, bytes_per_s) in [(Some(10e9), 1_250_000_000), (None, 12_500_000_000)] {
            let shape = of(rate, 0.1).expect("a filter");
            assert_eq!(shape.rate_bytes_per_s, bytes_per_s);
            let cut = shape.cut.expect("it cuts");
            assert!(cut.frame_bytes_max < 2 * 1514 && cut.peak_bytes_per_s > bytes_per_s);
        }
    }

    #[test]
    fn a_host_drops_nothing_of_its_own_and_flows_take_short_turns() {
        let wire = shape(BitsPerSec(1e9), 1500);
        assert_eq!(wire.of_host(None).queue_bytes, 64 << 20);
        let short = Some(Bytes(100_000));
        assert_eq!(wire.of_host(short).queue_bytes, 100_000);
        assert_eq!(
            Shape {
                queue_bytes: wire.queue_bytes,
                ..wire.of_host(None)
            },
            wire
        );
        let check = |rate, mtu_bytes, expected| {
            let segments = superframe_segments(BitsPerSec(rate), mtu_bytes);
            assert_eq!(segments, expected, "{rate} {mtu_bytes}");
        };
        check(1e6, 1500, 1);
        check(100e6, 1500, 1);
        check(1e9, 1500, 10);
        check(2.5e9, 1500, 25);
        check(1e9, 9000, 1);
        check(10e9, 1500, 100);
        assert_eq!(flow_queue_bytes(BitsPerSec(1e9), 1500), 32_048);
        assert_eq!(flow_queue_bytes(BitsPerSec(100e6), 1500), 5048);
    }

    #[test]
    fn each_way_has_its_own_filter() {
        let link = LinkSpec {
            rate: Some(BitsPerSec(20e6)),
            queue: Some(Bytes(750_000)),
            up: UpSpec {
                rate: Some(BitsPerSec(5e6)),
                queue: Some(Bytes(187_500)),
                ..UpSpec::default()
            },
            ..LinkSpec::default()
        };
        let of = |way| {
            let shape = shape_of(&link, way).expect("it has a rate");
            (shape.rate_bytes_per_s, shape.queue_bytes)
        };
        assert_eq!(of(Way::Down), (2_500_000, 750_000));
        assert_eq!(of(Way::Up), (625_000, 187_500));
    }

    #[test]
    fn a_slow_wire_still_takes_a_burst() {
        let shape = shape(BitsPerSec(1e6), 9000);
        assert_eq!(shape.burst_bytes, 16 << 10);
        assert_eq!(shape.queue_bytes, 128 << 10);
        assert!(shape.burst_bytes > shape.cut.expect("framed").frame_bytes_max);
    }
}
