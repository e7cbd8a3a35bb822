//! Wire arithmetic: what a link can carry at the most.
//!
//! On Ethernet every frame costs, beyond its IP packet: preamble and start delimiter 8 B, header
//! 14 B, frame check sequence 4 B and inter-frame gap 12 B (IEEE 802.3, clauses 3 and 4); a frame
//! shorter than 64 B (header, payload and check sequence) is padded.

use crate::unit::{BitsPerSec, Bytes, Nanos};

/// Bytes of Ethernet header that the kernel counts in a packet's length.
pub const ETHERNET_HEADER_BYTES: u64 = 14;
/// Bytes on the wire that the kernel does not count: preamble 8, check sequence 4, gap 12.
pub const ETHERNET_UNSEEN_BYTES: u64 = 24;
/// Shortest frame with its check sequence.
pub const ETHERNET_FRAME_MIN_BYTES: u64 = 64;
/// Bytes of TCP options on each data segment when timestamps are on, padding included.
pub const TCP_TIMESTAMP_OPTION_BYTES: u64 = 12;
/// TCP header without options.
pub const TCP_HEADER_BYTES: u64 = 20;

/// Segments that a connection may send before the first acknowledgement (RFC 6928, and Linux).
pub const INITIAL_WINDOW_SEGMENTS: u64 = 10;
/// Fragment header of IPv6.
const FRAGMENT_HEADER_BYTES: u64 = 8;
/// UDP header.
pub const UDP_HEADER_BYTES: u64 = 8;

/// A link and the headers of the traffic on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wire {
    /// Signalling rate of the link, for instance 1 Gbit/s.
    pub rate: BitsPerSec,
    /// Largest IP packet.
    pub mtu_bytes: u64,
    /// TCP options on every data segment: 12 with timestamps, else 0.
    pub tcp_option_bytes: u64,
    /// Whether the IP header is the 40 bytes of IPv6 instead of 20.
    pub ipv6: bool,
    /// Whether the payload goes in datagrams of UDP instead of segments of TCP.
    pub udp: bool,
}

impl Wire {
    /// Returns the bytes of the IP header.
    pub fn ip_header_bytes(&self) -> u64 {
        if self.ipv6 { 40 } else { 20 }
    }

    /// Returns the bytes of IP and TCP header on each data segment, or IP and UDP on each datagram.
    pub fn header_bytes(&self) -> u64 {
        let transport = if self.udp {
            UDP_HEADER_BYTES
        } else {
            TCP_HEADER_BYTES + self.tcp_option_bytes
        };
        self.ip_header_bytes() + transport
    }

    /// Returns the payload of a full-size segment.
    pub fn payload_bytes_max(&self) -> u64 {
        self.mtu_bytes.saturating_sub(self.header_bytes())
    }

    /// Returns in how many packets a datagram with `payload_bytes` goes (RFC 791, section 3.2; RFC 8200, section 4.5).
    pub fn packets_of_datagram(&self, payload_bytes: u64) -> u64 {
        if payload_bytes <= self.payload_bytes_max() {
            return 1;
        }
        let header = self.ip_header_bytes() + if self.ipv6 { FRAGMENT_HEADER_BYTES } else { 0 };
        // All but the last carry a multiple of eight bytes.
        let each = self.mtu_bytes.saturating_sub(header) / 8 * 8;
        (payload_bytes + UDP_HEADER_BYTES).div_ceil(each.max(8))
    }

    /// Returns what a segment with `payload_bytes` occupies on the wire, gap included.
    pub fn frame_bytes(&self, payload_bytes: u64) -> u64 {
        let frame = payload_bytes + self.header_bytes() + ETHERNET_HEADER_BYTES + 4;
        frame.max(ETHERNET_FRAME_MIN_BYTES) + 8 + 12
    }

    /// Returns the highest payload rate in one direction with segments of `payload_bytes` each.
    ///
    /// rate × payload / frame; for 1 Gbit/s, MTU 1500, no options and full-size segments:
    /// 1460 / 1538 → 949.3 Mbit/s.
    pub fn payload_limit_at(&self, payload_bytes: u64) -> BitsPerSec {
        BitsPerSec(self.rate.0 * payload_bytes as f64 / self.frame_bytes(payload_bytes) as f64)
    }
}

/// Returns the bytes that must be in flight to fill `rate` over a round trip of `rtt`.
///
/// window = rate × round trip / 8; 1 Gbit/s × 150 µs = 18 750 B.
pub fn bandwidth_delay_bytes(rate: BitsPerSec, rtt: Nanos) -> Bytes {
    Bytes((rate.0 * rtt.0 as f64 / 8e9).ceil() as u64)
}

/// Returns the rate that a window of `window` bytes allows over a round trip of `rtt`.
pub fn window_limit(window: Bytes, rtt: Nanos) -> BitsPerSec {
    BitsPerSec(window.0 as f64 * 8e9 / rtt.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabit(mtu_bytes: u64, tcp_option_bytes: u64) -> Wire {
        Wire {
            rate: BitsPerSec(1e9),
            mtu_bytes,
            tcp_option_bytes,
            ipv6: false,
            udp: false,
        }
    }

    #[test]
    fn line_rate_payload_matches_the_textbook() {
        let check = |wire: Wire, mbit: f64| {
            let got = wire.payload_limit_at(wire.payload_bytes_max()).0 / 1e6;
            assert!(
                (got - mbit).abs() < 0.05,
                "{wire:?}: {got} Mbit/s, expected {mbit}"
            );
        };
        check(gigabit(1500, 0), 949.28);
        check(gigabit(1500, 12), 941.48);
        check(gigabit(9000, 0), 991.37);
        check(gigabit(9000, 12), 990.04);
        check(
            Wire {
                ipv6: true,
                ..gigabit(1500, 0)
            },
            936.28,
        );
    }

    #[test]
    fn datagrams_have_shorter_headers() {
        let wire = Wire {
            udp: true,
            ..gigabit(1500, 12)
        };
        assert_eq!(wire.payload_bytes_max(), 1472);
        // 1472 of 1538 bytes.
        assert!((wire.payload_limit_at(wire.payload_bytes_max()).0 / 1e6 - 957.09).abs() < 0.05);
        assert_eq!(wire.frame_bytes(18), 84, "64 B with preamble and gap");
    }

    #[test]
    fn short_frames_are_padded() {
        assert_eq!(gigabit(1500, 0).frame_bytes(1), 84);
        assert_eq!(gigabit(1500, 0).frame_bytes(1460), 1538);
    }

    #[test]
    fn published_window_example() {
        assert_eq!(
            bandwidth_delay_bytes(BitsPerSec(1e9), Nanos(150_000)),
            Bytes(18_750)
        );
        assert_eq!(window_limit(Bytes(18_750), Nanos(150_000)), BitsPerSec(1e9));
    }

    #[test]
    fn a_datagram_longer_than_a_packet_goes_in_several() {
        let udp = |mtu_bytes, ipv6| Wire {
            udp: true,
            ipv6,
            ..gigabit(mtu_bytes, 0)
        };
        let check = |wire: Wire, payload_bytes, expected| {
            let packets = wire.packets_of_datagram(payload_bytes);
            assert_eq!(packets, expected, "{payload_bytes} B over {wire:?}");
        };
        check(udp(1500, false), 1472, 1);
        check(udp(1500, false), 1473, 2);
        // 1480 B each.
        check(udp(1500, false), 2952, 2);
        check(udp(1500, false), 2953, 3);
        check(udp(1500, true), 1452, 1);
        check(udp(1500, true), 1453, 2);
        // 1376 B of 1380 each.
        check(udp(1400, false), 1448, 2);
        check(udp(1400, false), 2744, 2);
        check(udp(1400, false), 2745, 3);
        check(udp(65_536, false), 65_507, 1);
    }
}
