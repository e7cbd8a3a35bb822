//! The token bucket filter's message (`struct tc_tbf_qopt`, `include/uapi/linux/pkt_sched.h`).
//!
//! Attributes: 1 = parameters, 4 = rate, 5 = peak rate (64 bits each, bytes per second), 6 =
//! bucket, 7 = second bucket (bytes). The parameters are two `tc_ratespec` of 12 bytes (cell_log
//! u8, linklayer u8, overhead u16, cell_align i16, mpu u16, rate u32) and limit, buffer, mtu as
//! u32, all in the machine's byte order.

use netlink_packet_core::DefaultNla;
use netlink_packet_route::tc::TcOption;

/// Settings of one token bucket filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rate of the bucket.
    pub rate_bytes_per_s: u64,
    /// Added to each packet before it is counted.
    pub overhead_bytes: u16,
    /// The least that a packet counts, overhead included.
    pub packet_bytes_min: u16,
    /// Depth of the bucket.
    pub burst_bytes: u32,
    /// Most bytes that wait.
    pub queue_bytes: u32,
    /// The second bucket that makes the filter cut superframes; `None` leaves them whole.
    pub cut: Option<Cut>,
}

/// The second bucket: one frame deep, refilled faster than any link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The longest packet that passes whole, Ethernet header included.
    pub frame_bytes_max: u32,
    /// Rate of the second bucket.
    pub peak_bytes_per_s: u64,
}

const PARAMETERS: u16 = 1;
const RATE64: u16 = 4;
const PEAK_RATE64: u16 = 5;
const BURST: u16 = 6;
const PEAK_BURST: u16 = 7;
/// `TC_LINKLAYER_ETHERNET`: lengths are taken as they are, and no rate table is needed.
const LINKLAYER_ETHERNET: u8 = 1;

/// Returns the options of a filter with the settings of `shape`.
pub fn options(shape: &Shape) -> Vec<TcOption> {
    let mut options = vec![
        (PARAMETERS, parameters(shape)),
        (RATE64, shape.rate_bytes_per_s.to_ne_bytes().to_vec()),
        (BURST, shape.burst_bytes.to_ne_bytes().to_vec()),
    ];
    if let Some(cut) = shape.cut {
        options.push((PEAK_RATE64, cut.peak_bytes_per_s.to_ne_bytes().to_vec()));
        options.push((PEAK_BURST, cut.frame_bytes_max.to_ne_bytes().to_vec()));
    }
    options
        .into_iter()
        .map(|(kind, bytes)| TcOption::Other(DefaultNla::new(kind, bytes)))
        .collect()
}

fn parameters(shape: &Shape) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(36);
    let overhead = shape.overhead_bytes;
    rate(
        &mut bytes,
        overhead,
        shape.packet_bytes_min,
        shape.rate_bytes_per_s,
    );
    rate(
        &mut bytes,
        0,
        0,
        shape.cut.map_or(0, |cut| cut.peak_bytes_per_s),
    );
    bytes.extend(shape.queue_bytes.to_ne_bytes());
    // Buffer and MTU in scheduler ticks: the attributes in bytes take their place.
    bytes.extend([0; 8]);
    bytes
}

fn rate(bytes: &mut Vec<u8>, overhead: u16, packet_min: u16, bytes_per_s: u64) {
    bytes.extend([0, LINKLAYER_ETHERNET]);
    bytes.extend(overhead.to_ne_bytes());
    bytes.extend(0i16.to_ne_bytes());
    bytes.extend(packet_min.to_ne_bytes());
    let capped = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    bytes.extend(capped.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use linerate_model::BitsPerSec;

    use super::*;
    use crate::shape::shape;

    #[test]
    fn parameters_have_the_kernels_layout() {
        let bytes = parameters(&shape(BitsPerSec(1e9), 1500));
        assert_eq!(bytes.len(), 36);
        assert_eq!(&bytes[..4], [0, 1, 24, 0]);
        assert_eq!(&bytes[4..8], [0, 0, 84, 0]);
        assert_eq!(&bytes[8..12], 125_000_000u32.to_ne_bytes());
        assert_eq!(&bytes[20..24], u32::MAX.to_ne_bytes());
        assert_eq!(&bytes[24..28], 2_500_000u32.to_ne_bytes());
    }
}
