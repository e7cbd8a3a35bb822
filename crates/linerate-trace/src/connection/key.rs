//! Which connection a segment belongs to: two addresses and two ports, without direction.
//!
//! An address of IPv6 is kept once and known by a number, so that every key takes 16 bytes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hashbrown::HashTable;
use serde::Serialize;

use crate::frame::Addresses;

/// Addresses of IPv6 that are told apart; each takes 24 bytes or so.
const ADDRESSES_MAX: usize = 2_000_000;

/// Two addresses and two ports; the lower comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    low: u32,
    high: u32,
    low_port: u16,
    high_port: u16,
    is_v6: bool,
}

impl Key {
    /// Returns a hash. `seed` is the caller's, so that nobody can write a capture whose
    /// connections all fall into one place.
    #[inline]
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let addresses = (u64::from(self.low) << 32) | u64::from(self.high);
        let ports = (u64::from(self.low_port) << 17)
            | (u64::from(self.high_port) << 1)
            | u64::from(self.is_v6);
        fold(
            addresses ^ seed,
            fold(ports ^ seed.rotate_left(32), 0x9e37_79b9_7f4a_7c15) | 1,
        )
    }
}

/// Where an end of a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
pub struct Endpoint {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
}

impl Endpoint {
    /// Returns source and target of what went between these addresses and ports.
    #[inline]
    pub(crate) fn pair(addresses: Addresses, (source, target): (u16, u16)) -> [Self; 2] {
        [(addresses.source(), source), (addresses.target(), target)]
            .map(|(address, port)| Self { address, port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.address, self.port).fmt(f)
    }
}

/// Multiplies to twice the width and folds the halves: every bit of the result depends on every
/// bit of both.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let wide = u128::from(one) * u128::from(other);
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// The addresses of IPv6 that were seen.
#[derive(Debug, Default)]
pub(crate) struct AddressBook {
    addresses: Vec<u128>,
    places: HashTable<u32>,
}

impl AddressBook {
    /// Returns the key of a segment, and whether its sender is the low end; nothing if there are
    /// too many addresses. `seed` is as in [`Key::hash`].
    #[inline]
    pub(crate) fn key(
        &mut self,
        addresses: &Addresses,
        ports: (u16, u16),
        seed: u64,
    ) -> Option<(Key, bool)> {
        let (source, target, is_v6) = match *addresses {
            Addresses::V4 { source, target } => (source, target, false),
            Addresses::V6 { source, target } => {
                let [source, target] = [source, target].map(|address| self.number(address, seed));
                (source?, target?, true)
            }
        };
        let source_is_low = (source, ports.0) <= (target, ports.1);
        let ((low, low_port), (high, high_port)) = if source_is_low {
            ((source, ports.0), (target, ports.1))
        } else {
            ((target, ports.1), (source, ports.0))
        };
        let key = Key {
            low,
            high,
            low_port,
            high_port,
            is_v6,
        };
        Some((key, source_is_low))
    }

    /// Returns where the low end and the high end of `key` are.
    pub(crate) fn endpoints(&self, key: &Key) -> [Endpoint; 2] {
        [(key.low, key.low_port), (key.high, key.high_port)].map(|(number, port)| {
            let address = if key.is_v6 {
                Ipv6Addr::from_bits(self.addresses[number as usize]).into()
            } else {
                Ipv4Addr::from_bits(number).into()
            };
            Endpoint { address, port }
        })
    }

    /// Returns the number of an address, a new one for a new address.
    fn number(&mut self, address: u128, seed: u64) -> Option<u32> {
        let hash = move |address: u128| fold((address >> 64) as u64 ^ seed, address as u64 ^ !seed);
        let addresses = &self.addresses;
        let found = self
            .places
            .find(hash(address), |&at| addresses[at as usize] == address);
        if let Some(&at) = found {
            return Some(at);
        }
        if self.addresses.len() == ADDRESSES_MAX {
            return None;
        }
        let number = self.addresses.len() as u32;
        self.addresses.push(address);
        let addresses = &self.addresses;
        self.places
            .insert_unique(hash(address), number, |&at| hash(addresses[at as usize]));
        Some(number)
    }
}
