//! The last frames of one end: a capture on a bridge or of a mirrored port has each of them twice, with others
//! between where several were sent at once.

use crate::frame::Segment;

/// Frames that are remembered: a burst of them at 1 Gbit/s takes 200 µs, and mirrors take less to copy one.
const FRAMES: usize = 16;

/// What they were, and when: a hash, and microseconds that wrap.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recent {
    frames: [(u32, u32); FRAMES],
    next: u8,
}

/// Returns what is the same of a frame that is captured twice, and of no other of its end.
#[inline]
pub(super) fn identity(segment: &Segment) -> u32 {
    /// The golden ratio: what is multiplied with it differs in its high bits.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let numbers = u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgement);
    let rest = u64::from(segment.identification) << 32
        | u64::from(segment.checksum) << 16
        | u64::from(segment.flags.0);
    let mixed = (numbers.wrapping_mul(SPREAD) ^ rest).wrapping_mul(SPREAD);
    let mixed = match segment.identification {
        // Without a number its options tell it apart, which a card's checksum may not cover yet.
        0 => (mixed ^ options(segment)).wrapping_mul(SPREAD),
        _ => mixed,
    };
    (mixed >> 32) as u32
}

/// Returns what the window and the options of a segment make of it.
fn options(segment: &Segment) -> u64 {
    let stamps = segment.timestamps.map_or(0, |stamps| {
        u64::from(stamps.value) << 32 | u64::from(stamps.echo)
    });
    let blocks = segment.sack.as_slice().iter();
    blocks.fold(stamps ^ u64::from(segment.window), |all, block| {
        all.rotate_left(7) ^ (u64::from(block.0) << 32 | u64::from(block.1))
    })
}

impl Recent {
    #[inline]
    pub(super) fn note(&mut self, identity: u32, time_ns: u64) {
        self.frames[usize::from(self.next)] = (identity, (time_ns / 1000) as u32);
        self.next = (self.next + 1) % FRAMES as u8;
    }

    /// Returns how far from this frame in time the nearest one like it was captured: two devices of one file may have
    /// the second earlier than the first.
    #[cold]
    pub(super) fn since_ns(&self, identity: u32, time_ns: u64) -> Option<u64> {
        let now = (time_ns / 1000) as u32;
        let alike = self.frames.iter().filter(|(known, _)| *known == identity);
        let apart = alike.map(|(_, at)| now.wrapping_sub(*at).min(at.wrapping_sub(now)));
        apart.min().map(|us| u64::from(us) * 1000)
    }
}
