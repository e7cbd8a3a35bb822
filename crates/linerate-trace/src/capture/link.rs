//! Link types, by the numbers of <https://www.tcpdump.org/linktypes.html>.

use std::fmt;

/// What a frame begins with, as the capture's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: address family in the byte order of the writer.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// Point-to-point protocol.
    pub const PPP: Self = Self(9);
    /// PPP as it is on a serial line, in frames like those of HDLC.
    pub const PPP_SERIAL: Self = Self(50);
    /// IP without a link header.
    pub const RAW: Self = Self(101);
    /// Cisco's HDLC.
    pub const CISCO_HDLC: Self = Self(104);
    /// Frame Relay.
    pub const FRAME_RELAY: Self = Self(107);
    /// PPP as pppd captures it: the direction in place of the address.
    pub const PPP_PPPD: Self = Self(166);
    /// PPP behind a byte for the direction.
    pub const PPP_DIRECTION: Self = Self(204);
    /// Per-packet information: a header that says how long it is and what follows.
    pub const PPI: Self = Self(192);
    /// 802.11.
    pub const IEEE802_11: Self = Self(105);
    /// 802.11 behind a Prism header.
    pub const PRISM: Self = Self(119);
    /// 802.11 behind a radiotap header.
    pub const RADIOTAP: Self = Self(127);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture, version 1 (`-i any`).
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4 without a link header.
    pub const IPV4: Self = Self(228);
    /// IPv6 without a link header.
    pub const IPV6: Self = Self(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// Returns its name, for those that people meet.
    fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "BSD loopback",
            1 => "Ethernet",
            6 => "IEEE 802.5 Token Ring",
            9 => "PPP",
            12 | 14 | 101 => "raw IP",
            50 => "PPP over serial",
            51 => "PPPoE",
            104 => "Cisco HDLC",
            105 => "IEEE 802.11",
            107 => "Frame Relay",
            108 => "OpenBSD loopback",
            113 => "Linux cooked v1",
            117 => "OpenBSD pflog",
            119 => "IEEE 802.11 with Prism header",
            127 => "IEEE 802.11 with radiotap header",
            147..=162 => "a private link type",
            166 => "PPP of pppd",
            189 => "USB",
            192 => "per-packet information (PPI)",
            195 => "IEEE 802.15.4",
            201 => "Bluetooth",
            204 => "PPP with direction",
            220 => "Linux USB",
            227 => "CAN",
            228 => "raw IPv4",
            229 => "raw IPv6",
            239 => "Linux netfilter log",
            247 => "InfiniBand",
            249 => "Linux USB with mon_bin header",
            253 => "Linux netlink",
            258 => "VPP dispatch trace",
            272 => "Nordic Bluetooth LE",
            276 => "Linux cooked v2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "link type {} ({name})", self.0),
            None => write!(f, "link type {}", self.0),
        }
    }
}
