//! Whom a limit counts as one: an address, of IPv6 the network that one host has for itself.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of an address that name its network, of IPv6 by RFC 4291, 2.5.4: whoever is in it has all the rest.
const V4_BITS: u32 = 32;
const V6_BITS: u32 = 64;

/// The addresses that one caller may have: one of IPv4, a /64 of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(IpAddr);

impl Source {
    /// Returns the network of an address.
    pub fn of(address: IpAddr) -> Self {
        Self(begin_of(address.to_canonical(), V4_BITS, V6_BITS))
    }

    /// Returns whether it is this host.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }
}

/// The networks that one organisation may have without asking for more: a /24 of IPv4, a /48 of IPv6 (RFC 6177).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site(IpAddr);

/// Bits of an address that name its site.
const V4_SITE_BITS: u32 = 24;
const V6_SITE_BITS: u32 = 48;

impl Source {
    /// Returns the site that it is of.
    pub fn site(self) -> Site {
        Site(begin_of(self.0, V4_SITE_BITS, V6_SITE_BITS))
    }
}

/// Returns `address` with its first bits only.
fn begin_of(address: IpAddr, v4_bits: u32, v6_bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits() & (u32::MAX << (32 - v4_bits));
            Ipv4Addr::from_bits(bits).into()
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits() & (u128::MAX << (128 - v6_bits));
            Ipv6Addr::from_bits(bits).into()
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(address) => write!(f, "{address}/{V6_BITS}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one() {
        let check = |address: &str, network: &str| {
            let address = address.parse().expect("an address");
            assert_eq!(Source::of(address).to_string(), network);
        };
        check("192.0.2.7", "192.0.2.7");
        check("::ffff:192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64");
        check("2001:db8:1:2::", "2001:db8:1:2::/64");
        check("2001:db8:1:3::", "2001:db8:1:3::/64");
        assert!(!Source::of("fe80::1".parse().expect("an address")).is_loopback());
        assert!(Source::of("::ffff:127.0.0.1".parse().expect("an address")).is_loopback());
    }
}
