//! What a relay does, and how much it may hold.

use super::Site;
use crate::relay::{PassageConfig, REORDER_WAIT_NS_MIN, RelayConfig};
use crate::spec::{LinkSpec, Way};
use crate::sys::packet::{FRAME_PREFIX_BYTES, PacketSocket};

/// Longest superframe with its prefix: 64 KiB and headers.
const SUPERFRAME_BYTES_MAX: usize = (64 << 10) + 512;
/// Most bytes in flight on a delayed link without a rate: 50 ms at 10 Gbit/s.
const UNLIMITED_HELD_BYTES: usize = 64 << 20;
/// Room beyond rate × delay: how late a relay's thread may be woken.
const RELAY_LATE_NS: f64 = 20e6;
/// Room beyond rate × delay at the least.
const RELAY_ROOM_BYTES_MIN: f64 = 262_144.0;

/// Shortest frame that there is room for.
const FRAME_BYTES_MIN: usize = 60;
/// Frames in whose time those that overtake another have come: three, one more that was under way, and as many for
/// a line that is half full.
const REORDER_FRAMES: f64 = 8.0;

/// Returns what the relay in the link of `site` does.
pub(super) fn relay_of(site: &Site<'_>, near: PacketSocket, far: PacketSocket) -> RelayConfig {
    let link = &site.spec.link;
    // The same lab loses the same frames each time.
    let seed = 2 * u64::from(site.number);
    RelayConfig {
        host: site.spec.name.clone(),
        ways: [
            passage_of(link, Way::Up, seed),
            passage_of(link, Way::Down, seed + 1),
        ],
        near,
        far,
    }
}

fn passage_of(link: &LinkSpec, way: Way, seed: u64) -> PassageConfig {
    let held_bytes_max = held_bytes_max(link, way);
    PassageConfig {
        delay_ns: link.delay_of(way).0,
        jitter_ns: link.jitter.0,
        loss: link.loss,
        duplicate: link.duplicate,
        reorder: link.reorder,
        reorder_wait_ns: reorder_wait_ns(link, way),
        seed,
        // Also on links of single frames: who replaces a host's queueing discipline sends superframes.
        frame_bytes_max: FRAME_PREFIX_BYTES + SUPERFRAME_BYTES_MAX,
        held_bytes_max,
        held_frames_max: held_bytes_max / FRAME_BYTES_MIN,
    }
}

/// Returns how long a frame waits for others to overtake it.
fn reorder_wait_ns(link: &LinkSpec, way: Way) -> u64 {
    let frames_bits = REORDER_FRAMES * 8.0 * f64::from(link.mtu_bytes);
    let time_ns = link
        .rate_of(way)
        .map_or(0, |rate| (frames_bits * 1e9 / rate.0) as u64);
    time_ns.max(REORDER_WAIT_NS_MIN)
}

/// Returns the bytes that `way` may hold: what comes within the delay and the jitter, and some room.
fn held_bytes_max(link: &LinkSpec, way: Way) -> usize {
    let longest = link.longest_delay_of(way);
    let held = link.rate_of(way).map_or(UNLIMITED_HELD_BYTES, |rate| {
        let bytes_per_ns = rate.0 / 8e9;
        let room = (bytes_per_ns * RELAY_LATE_NS).max(RELAY_ROOM_BYTES_MIN);
        // Each frame carries its prefix with it: 12 % for the shortest, 1 % for full-size ones.
        (bytes_per_ns * longest.0 as f64 * 1.12 + room) as usize
    });
    // What comes twice takes the room of two.
    (held as f64 * (1.0 + link.duplicate)) as usize
}
