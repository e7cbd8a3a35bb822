//! Who may stay when more connections are there than there are places.
//!
//! Rules:
//! 1. Whoever arrives gets a place. Nobody waits for one, since a scanner that holds all of them
//!    must not keep a controller out.
//! 2. When there are more than places, one has to go: of the site (a /24, of IPv6 a /48) that holds the most
//!    the network (an address, of IPv6 a /64) that does, and of that the one that was silent for longest. So
//!    whoever opens many loses its own, from however many addresses, and a host that holds few keeps them,
//!    whatever others do.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use crate::limits::{Site, Source};

/// Names one connection for as long as it has its place.
pub type PlaceId = u64;

/// The connections that have a place.
#[derive(Debug)]
pub struct Places {
    most: usize,
    /// Counts arrivals and signs of life: a larger number is a later one.
    turn: u64,
    held: HashMap<PlaceId, (Source, u64)>,
    /// The places of each network, by the turn of the last sign of life.
    of_network: HashMap<Source, BTreeSet<(u64, PlaceId)>>,
    /// How many places each site has.
    of_site: HashMap<Site, usize>,
}

impl Places {
    /// Returns `most` empty places; at least one.
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            turn: 0,
            held: HashMap::new(),
            of_network: HashMap::new(),
            of_site: HashMap::new(),
        }
    }

    /// Gives a place to a connection from `address`; returns its name, and the one that has to go.
    pub fn handle_arrival(&mut self, address: IpAddr) -> (PlaceId, Option<PlaceId>) {
        self.turn += 1;
        let id = self.turn;
        self.put(id, Source::of(address));
        let gone = (self.held.len() > self.most)
            .then(|| self.least_deserving())
            .flatten();
        if let Some(gone) = gone {
            self.handle_departure(gone);
        }
        (id, gone)
    }

    /// Notes a sign of life; a connection without a place has none to keep.
    pub fn handle_seen(&mut self, id: PlaceId) {
        if let Some(network) = self.take(id) {
            self.turn += 1;
            self.put(id, network);
        }
    }

    /// Takes back a place; returns whether it was held.
    pub fn handle_departure(&mut self, id: PlaceId) -> bool {
        self.take(id).is_some()
    }

    /// Looks at every network; only an arrival that finds all places held pays for it, and there
    /// are no more networks than places.
    fn least_deserving(&self) -> Option<PlaceId> {
        let silent = |places: &BTreeSet<(u64, PlaceId)>| places.first().copied();
        let of_site = |network: &Source| self.of_site.get(&network.site()).copied();
        self.of_network
            .iter()
            .filter_map(|(network, places)| {
                let (turn, id) = silent(places)?;
                Some(((of_site(network), places.len(), Reverse(turn)), id))
            })
            // Among networks with as many: the one that was silent for longest.
            .max_by_key(|(rank, _)| *rank)
            .map(|(_, id)| id)
    }

    fn put(&mut self, id: PlaceId, network: Source) {
        self.held.insert(id, (network, self.turn));
        let places = self.of_network.entry(network).or_default();
        places.insert((self.turn, id));
        *self.of_site.entry(network.site()).or_default() += 1;
    }

    fn take(&mut self, id: PlaceId) -> Option<Source> {
        let (network, turn) = self.held.remove(&id)?;
        if let Some(places) = self.of_network.get_mut(&network) {
            places.remove(&(turn, id));
            if places.is_empty() {
                self.of_network.remove(&network);
            }
        }
        if let Entry::Occupied(mut places) = self.of_site.entry(network.site()) {
            *places.get_mut() -= 1;
            if *places.get() == 0 {
                places.remove();
            }
        }
        Some(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn whoever_holds_most_loses_the_one_that_was_silent_for_longest() {
        let mut places = Places::new(4);
        let (quiet, _) = places.handle_arrival(address(1));
        let scanner: Vec<PlaceId> = (0..3)
            .map(|_| places.handle_arrival(address(2)).0)
            .collect();
        assert_eq!(places.handle_arrival(address(2)).1, Some(scanner[0]));
        places.handle_seen(scanner[1]);
        assert_eq!(places.handle_arrival(address(3)).1, Some(scanner[2]));
        assert_eq!(places.held.len(), 4);
        assert!(places.handle_departure(quiet));
    }

    #[test]
    fn a_flood_from_one_address_leaves_the_others_theirs() {
        let mut places = Places::new(100);
        let honest: Vec<PlaceId> = (0..20)
            .map(|_| places.handle_arrival(address(1)).0)
            .collect();
        for _ in 0..10_000 {
            places.handle_arrival(address(2));
        }
        assert_eq!(places.held.len(), 100);
        for id in honest {
            assert!(places.handle_departure(id));
        }
        assert_eq!(places.held.len(), 80);
        assert_eq!(places.of_network.len(), 1);
        assert_eq!(places.of_site.len(), 1);
    }

    /// Each of its networks holds one place, and the honest host more than that.
    #[test]
    fn a_site_with_many_networks_is_one() {
        let mut places = Places::new(20);
        let honest: [IpAddr; 2] = ["2001:db8:1::2", "198.51.100.2"].map(|own| own.parse().unwrap());
        let own = honest.map(|address| [(); 3].map(|()| places.handle_arrival(address).0));
        for at in 0..3000_u128 {
            let network = std::net::Ipv6Addr::from_bits(0x2001_0db8_0002 << 80 | at << 64);
            places.handle_arrival(network.into());
        }
        for at in 0..=255 {
            places.handle_arrival([203, 0, 113, at].into());
        }
        for id in own.concat() {
            assert!(places.handle_departure(id));
        }
    }

    #[test]
    fn a_host_with_many_addresses_of_ipv6_is_one() {
        let mut places = Places::new(10);
        let honest = "fd99::2".parse().unwrap();
        let (test, _) = places.handle_arrival(honest);
        for last in 0..3000_u128 {
            let address = std::net::Ipv6Addr::from_bits(0xfd98 << 112 | last);
            assert_ne!(places.handle_arrival(address.into()).1, Some(test));
        }
        assert!(places.handle_departure(test));
    }

    #[test]
    fn a_place_that_is_given_back_is_free() {
        let mut places = Places::new(1);
        let (first, gone) = places.handle_arrival(address(1));
        assert_eq!(gone, None);
        assert!(places.handle_departure(first));
        assert!(!places.handle_departure(first));
        places.handle_seen(first);
        assert_eq!(places.held.len(), 0);
        assert_eq!(places.handle_arrival(address(1)).1, None);
    }
}
