//! How much a relay may hold.

use super::Site;
use crate::relay::{RelayConfig, RelayWay};
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

/// Returns what the relay in the link of `site` does.
pub(super) fn relay_of(site: &Site<'_>, near: PacketSocket, far: PacketSocket) -> RelayConfig {
    let link = &site.spec.link;
    RelayConfig {
        host: site.spec.name.clone(),
        ways: [Way::Up, Way::Down].map(|way| RelayWay {
            delay: link.delay_of(way),
            held_bytes_max: held_bytes_max(link, way),
        }),
        loss: link.loss,
        // The same lab loses the same frames each time.
        seed: u64::from(site.number),
        // Also on links of single frames: who replaces a host's queueing discipline sends superframes.
        frame_bytes_max: FRAME_PREFIX_BYTES + SUPERFRAME_BYTES_MAX,
        near,
        far,
    }
}

/// Returns the bytes that `way` may hold: rate × delay and some room.
fn held_bytes_max(link: &LinkSpec, way: Way) -> usize {
    link.rate_of(way).map_or(UNLIMITED_HELD_BYTES, |rate| {
        let bytes_per_ns = rate.0 / 8e9;
        let room = (bytes_per_ns * RELAY_LATE_NS).max(RELAY_ROOM_BYTES_MIN);
        // Each frame carries its prefix with it: 12 % for the shortest, 1 % for full-size ones.
        (bytes_per_ns * link.delay_of(way).0 as f64 * 1.12 + room) as usize
    })
}
