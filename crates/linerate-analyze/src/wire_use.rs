//! What the links between the hosts can carry.
//!
//! Clients reach the server over one link each; the server's link carries them all. In one
//! direction no more can pass than min(server's link, sum of the clients' links in use), each with its rate on that
//! way: links may have another one from their host than towards it. The
//! smallest MTU of those in use sets the segment size, and a TCP option is on the wire only when both
//! ends have it on. A host that tells nothing may allow less, which then no number reaches; where nobody
//! tells a rate, an MTU or options, the *limit* is absent, never wrong, and the *ceiling*, which is that of the
//! client with the largest frames, falls back on the bare link rate.

use std::net::IpAddr;

use linerate_model::BitsPerSec;
use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::manner::Transport;
use linerate_model::reason::{Ceiling, Frames};
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::wire::{TCP_TIMESTAMP_OPTION_BYTES, Wire};
use linerate_model::workload::{Direction, Workload};

/// Data segments per ACK when it was not measured: every second segment (RFC 1122, 4.2.3.2).
const SEGMENTS_PER_ACK_DEFAULT: f64 = 2.0;

/// The links that data flows use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    server: Link,
    clients: Vec<Link>,
    tcp_option_bytes: Option<u64>,
    /// Whether every host told of its options: else there may be none on the wire.
    options_are_sure: bool,
    ipv6: bool,
}

/// A host's end of the path, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq)]
struct Link {
    /// Rates of payload to the server and from it.
    bps: [Option<f64>; 2],
    mtu_bytes: Option<u64>,
    /// The loss on purpose that it is there for.
    loss_ppm: Option<u32>,
}

/// The two ways that payload goes.
const WAYS: [Direction; 2] = [Direction::ToServer, Direction::FromServer];

impl Link {
    fn of(host: &HostRecord) -> Self {
        let bps = |way| {
            let rate = host.rate_in(way);
            rate.map(|rate| rate.0).filter(|bps| *bps > 0.0)
        };
        Self {
            bps: WAYS.map(bps),
            mtu_bytes: host.mtu_bytes(),
            loss_ppm: host.link_loss_ppm,
        }
    }
}

impl Path {
    /// Reads links, MTU and options from the facts of `hosts`.
    pub(crate) fn new(hosts: &[HostRecord]) -> Self {
        let part = |part| hosts.iter().filter(move |host| host.part == part);
        let server = part(HostPart::Server).next();
        Self {
            server: server.map(Link::of).unwrap_or_default(),
            clients: part(HostPart::Client).map(Link::of).collect(),
            tcp_option_bytes: tcp_option_bytes(hosts),
            options_are_sure: hosts.iter().all(|host| has_timestamps(host).is_some()),
            ipv6: hosts.iter().any(|host| is_ipv6(&host.data_address)),
        }
    }

    /// Returns the path as it is while its hosts have the levels of `cell`.
    pub(crate) fn with(&self, cell: &Cell) -> Self {
        let mut path = self.clone();
        if let Some(Level::Size(mtu)) = cell.get(&Factor::Mtu) {
            let ends = path.clients.iter_mut().chain([&mut path.server]);
            ends.for_each(|end| end.mtu_bytes = Some(mtu.0));
        }
        path
    }

    /// Returns the signalling rate that `clients` clients share in one direction, the wider one.
    pub(crate) fn rate_bps(&self, clients: u32) -> Option<f64> {
        let rate = |way| self.shared_bps(self.in_use(clients, None), way);
        WAYS.into_iter().filter_map(rate).max_by(f64::total_cmp)
    }

    /// Returns the signalling rate that the clients of `workload` share in the direction of its payload, and the
    /// narrower one where that goes both ways.
    pub(crate) fn rate_of(&self, workload: &Workload) -> Option<f64> {
        let direction = workload.traffic.direction().unwrap_or(Direction::Both);
        self.rate_in(workload, direction)
    }

    /// Returns the signalling rate that the clients of `workload` share in `direction`, and the narrower one of
    /// both.
    pub(crate) fn rate_in(&self, workload: &Workload, direction: Direction) -> Option<f64> {
        let ways = WAYS.into_iter();
        let ways = ways.filter(|way| direction == Direction::Both || *way == direction);
        let rates = ways.map(|way| self.shared_bps(self.clients_of(workload), way));
        let rates: Option<Vec<f64>> = rates.collect();
        rates?.into_iter().min_by(f64::total_cmp)
    }

    fn clients_of(&self, workload: &Workload) -> impl Iterator<Item = &Link> + use<'_> {
        let asked = workload.link_loss_ppm;
        let is_there = self.clients.iter().any(|link| link.loss_ppm == asked);
        let from: Vec<usize> = workload.from.iter().map(|host| host.0 as usize).collect();
        // Where nothing is lost on purpose, the clients are those that there are.
        let in_use = self.in_use(workload.clients_needed(), asked.filter(|_| is_there));
        let is_meant = move |(number, _): &(usize, &Link)| from.is_empty() || from.contains(number);
        (1..).zip(in_use).filter(is_meant).map(|(_, link)| link)
    }

    fn in_use(&self, clients: u32, loss_ppm: Option<u32>) -> impl Iterator<Item = &Link> + use<'_> {
        let all = self.clients.iter();
        all.filter(move |link| link.loss_ppm == loss_ppm)
            .take(clients.max(1) as usize)
    }

    fn shared_bps<'a>(
        &self,
        in_use: impl Iterator<Item = &'a Link>,
        way: Direction,
    ) -> Option<f64> {
        let of = |link: &Link| link.bps[usize::from(way == Direction::FromServer)];
        let mut in_use = in_use.map(of).peekable();
        let clients_bps: Option<f64> = match in_use.peek() {
            None => None,
            Some(_) => in_use.sum(),
        };
        match (of(&self.server), clients_bps) {
            (Some(server), Some(clients)) => Some(server.min(clients)),
            (server, clients) => server.or(clients),
        }
    }

    /// Returns the smallest MTU of the ends of `workload` that tell theirs.
    fn mtu_of(&self, workload: &Workload) -> Option<u64> {
        // A host that tells nothing to strangers may have less, and then fills no link of the others.
        let clients = self.clients_of(workload).filter_map(|link| link.mtu_bytes);
        self.server.mtu_bytes.into_iter().chain(clients).min()
    }

    /// Returns the MTU that no packet of `workload` exceeds: that of the client with the largest, if the server
    /// has no smaller one.
    fn largest_mtu_of(&self, workload: &Workload) -> Option<u64> {
        let clients = self.clients_of(workload).map(|link| link.mtu_bytes);
        let all: Option<Vec<u64>> = clients.collect();
        let largest = all.into_iter().flatten().max();
        self.server.mtu_bytes.into_iter().chain(largest).min()
    }

    /// Returns the link with its framing as `workload` meets it, when all of it is known.
    ///
    /// There is none for a Unix socket, and Multipath TCP may take links that nobody told of.
    pub(crate) fn wire(&self, workload: &Workload) -> Option<Wire> {
        self.wire_at(self.rate_of(workload)?, workload)
    }

    fn wire_at(&self, bps: f64, workload: &Workload) -> Option<Wire> {
        let udp = is_udp(workload)?;
        Some(Wire {
            rate: BitsPerSec(bps),
            mtu_bytes: self.mtu_of(workload)?,
            tcp_option_bytes: self.tcp_option_bytes?,
            ipv6: self.ipv6,
            udp,
        })
    }

    /// Returns the highest payload rate of a stream, both directions added for `both`.
    ///
    /// `payload_bytes` is the mean payload of a data segment where it was measured; full-size
    /// segments are assumed without it. `segments_per_ack` matters for `both` only, where ACKs of
    /// one direction take room in the other.
    pub(crate) fn limit_bps(
        &self,
        workload: &Workload,
        payload_bytes: Option<f64>,
        segments_per_ack: Option<f64>,
    ) -> Option<f64> {
        let direction = workload.traffic.direction()?;
        let wire = self.wire(workload)?;
        let full = full_payload_bytes(&wire, workload) as f64;
        // Segments without payload are no measure of anything: a damaged recording has such.
        let payload = payload_bytes.filter(|bytes| *bytes > 0.0);
        let payload = payload.map_or(full, |bytes| bytes.min(full));
        let frame = frame_bytes(&wire, payload);
        match direction {
            Direction::ToServer | Direction::FromServer => Some(wire.rate.0 * payload / frame),
            Direction::Both => {
                let per_ack = segments_per_ack
                    .unwrap_or(SEGMENTS_PER_ACK_DEFAULT)
                    .max(1.0);
                let acks = wire.frame_bytes(0) as f64 / per_ack;
                // Segments s and t per second fill both ways where s · frame + t · acks is the rate of the one and
                // t · frame + s · acks that of the other: together they are the sum of the rates over that of
                // frame and acks. Where ACKs alone would fill the narrow way, the wide one carries segments at
                // the most.
                let [to, from] = WAYS.map(|way| self.rate_in(workload, way));
                let (to, from) = (to?, from?);
                let (narrow, wide) = (to.min(from), to.max(from));
                let segments = if wide * acks <= narrow * frame {
                    (to + from) / (frame + acks)
                } else {
                    wide / frame
                };
                Some(segments * payload)
            }
        }
    }

    /// Returns the payload of a full-size segment of `workload`.
    pub(crate) fn segment_bytes(&self, workload: &Workload) -> Option<f64> {
        // A segment is as large on a link whose rate nobody told.
        let wire = self.wire_at(f64::INFINITY, workload)?;
        Some(full_payload_bytes(&wire, workload) as f64)
    }

    /// Returns the framing of `workload` and its largest datagram, where that does not fit a packet.
    pub(crate) fn cut_datagram(&self, workload: &Workload) -> Option<(Wire, u64)> {
        let wire = self
            .wire_at(f64::INFINITY, workload)
            .filter(|wire| wire.udp)?;
        let exchanged = workload.traffic.longest_exchanged();
        let bytes = datagram_bytes(workload).or(exchanged.map(|bytes| bytes.0))?;
        (bytes > wire.payload_bytes_max()).then_some((wire, bytes))
    }

    /// Returns what no payload in `direction` can exceed, assuming the best for what is unknown.
    pub(crate) fn ceiling(&self, workload: &Workload, direction: Direction) -> Option<Ceiling> {
        let udp = is_udp(workload)?;
        let rate = self.rate_in(workload, direction)?;
        let bare = Ceiling {
            payload: BitsPerSec(rate),
            direction,
            link: BitsPerSec(rate),
            frames: None,
        };
        let Some(mtu_bytes) = self.largest_mtu_of(workload) else {
            return Some(bare);
        };
        let wire = Wire {
            rate: BitsPerSec(rate),
            mtu_bytes,
            tcp_option_bytes: self
                .tcp_option_bytes
                .filter(|_| self.options_are_sure)
                .unwrap_or(0),
            ipv6: self.ipv6,
            udp,
        };
        let payload = full_payload_bytes(&wire, workload);
        // The second and later fragments of a datagram have no header of UDP.
        let fragment = wire.mtu_bytes.saturating_sub(wire.ip_header_bytes());
        let is_cut = udp && datagram_bytes(workload).is_none_or(|bytes| bytes > payload);
        let bps = if is_cut {
            rate * fragment as f64 / wire.frame_bytes(payload) as f64
        } else {
            wire.payload_limit_at(payload).0
        };
        Some(Ceiling {
            payload: BitsPerSec(bps),
            frames: Some(Frames {
                mtu_bytes,
                payload_bytes: payload,
            }),
            ..bare
        })
    }
}

/// Returns whether `workload` goes in datagrams; absent where it goes over no known link.
fn is_udp(workload: &Workload) -> Option<bool> {
    match workload.manner.transport {
        Transport::Tcp => Some(false),
        Transport::Udp => Some(true),
        Transport::Unix | Transport::Mptcp => None,
    }
}

/// Payload of each datagram; absent where sizes differ.
fn datagram_bytes(workload: &Workload) -> Option<u64> {
    let (_, message_bytes) = workload.traffic.stream()?;
    let is_fixed = workload.manner.sizes.is_none();
    is_fixed.then_some(message_bytes.0)
}

/// Payload of a full-size segment: what the MTU leaves, or TCP_MAXSEG less the options; that of a
/// datagram, as far as a packet has room for it.
fn full_payload_bytes(wire: &Wire, workload: &Workload) -> u64 {
    if wire.udp {
        let most = wire.payload_bytes_max();
        return datagram_bytes(workload).map_or(most, |bytes| bytes.min(most));
    }
    let asked = workload.options.mss_bytes.map(u64::from);
    let mss = asked.map(|mss| mss.saturating_sub(wire.tcp_option_bytes).max(1));
    mss.map_or(wire.payload_bytes_max(), |mss| {
        mss.min(wire.payload_bytes_max())
    })
}

/// What a segment with a mean payload of `payload_bytes` occupies, between whole sizes linearly.
fn frame_bytes(wire: &Wire, payload_bytes: f64) -> f64 {
    let below = payload_bytes.max(0.0).floor();
    let share = payload_bytes - below;
    let small = wire.frame_bytes(below as u64) as f64;
    let large = wire.frame_bytes(below as u64 + 1) as f64;
    small + share * (large - small)
}

/// 12 with timestamps on at every host that tells, 0 when one has them off, unknown if none tells.
fn tcp_option_bytes(hosts: &[HostRecord]) -> Option<u64> {
    let known = hosts.iter().filter_map(has_timestamps);
    let bytes = known.map(|on| u64::from(on) * TCP_TIMESTAMP_OPTION_BYTES);
    bytes.min()
}

fn has_timestamps(host: &HostRecord) -> Option<bool> {
    let level = host.snapshot.number("sysctl.net.ipv4.tcp_timestamps")?;
    Some(level > 0.0)
}

/// Returns whether `address` is one of IPv6.
pub(crate) fn is_ipv6(address: &str) -> bool {
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_ipv6(),
        // With a scope (`fe80::1%eth0`) or brackets it is not a plain address.
        Err(_) => address.matches(':').count() > 1,
    }
}
