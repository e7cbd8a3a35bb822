//! Networks: whose hosts may call, whose connections are wanted.

use std::net::IpAddr;
use std::str::FromStr;

/// Bits before an address of IPv4 in one of IPv6 (RFC 4291, 2.5.5.2).
const MAPPED_BITS: u8 = 96;

/// An address, and how many of its first bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Words that name no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not ADDRESS or ADDRESS/PREFIX")]
pub struct NetworkError(String);

impl Network {
    /// Returns whether `address` is in it.
    pub fn has(&self, address: IpAddr) -> bool {
        let differs = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        differs >= u32::from(self.prefix)
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self {
            address,
            prefix: bits(address),
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let bad = || NetworkError(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let Some(prefix) = prefix else {
            return Ok(address.into());
        };
        let prefix: u8 = prefix.parse().map_err(|_| bad())?;
        if prefix > bits(address) {
            return Err(bad());
        }
        // Callers over IPv4 are known as such, also where they come to a socket of IPv6.
        Ok(
            match (address.to_canonical(), prefix.checked_sub(MAPPED_BITS)) {
                (IpAddr::V4(own), Some(prefix)) if address.is_ipv6() => Self {
                    address: own.into(),
                    prefix,
                },
                _ => Self { address, prefix },
            },
        )
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_their_networks() {
        let check = |network: &str, address: &str, expected: bool| {
            let network: Network = network.parse().unwrap();
            let has = network.has(address.parse().unwrap());
            assert_eq!(has, expected, "{network:?} {address}");
        };
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.7", "10.0.0.7", true);
        check("10.0.0.7", "10.0.0.6", false);
        check("0.0.0.0/0", "203.0.113.9", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("2001:db8::/32", "2001:db8:ffff::1", true);
        check("2001:db8::/32", "2001:db9::1", false);
        check("fe80::/10", "10.0.0.1", false);
        check("2001:db8::1/128", "2001:db8::1", true);
        check("::ffff:10.0.0.7", "10.0.0.7", true);
        check("::ffff:10.0.0.7", "10.0.0.6", false);
        check("::ffff:10.0.0.0/104", "10.255.0.1", true);
        check("::ffff:10.0.0.0/104", "11.0.0.1", false);
        check("::ffff:0:0/96", "203.0.113.9", true);
        check("::ffff:0:0/96", "2001:db8::1", false);
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "fd00::/129",
            "10.0.0.0/",
            "x",
        ] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
