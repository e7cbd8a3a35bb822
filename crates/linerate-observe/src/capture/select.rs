//! Which frames a capture is about: those of certain ports, and of certain conversations.
//!
//! 1. The kernel filters by protocol and port, so that what others do costs no copy. A port is looked for at
//!    one end only: a port of this host is where frames that come in go to and frames that go out come
//!    from. The same number at the other end is somebody else's. Fragments but the first, and headers behind
//!    extensions of IPv6, carry no ports where they are looked for: such frames are left out.
//! 2. Conversations are told apart here, by both addresses and ports: there may be thousands, and
//!    they are known only once they exist.
//! 3. Where connections come and go, those are ours that others open to a port of ours. A port alone does
//!    not say so: a host that translates addresses gives the numbers of its ports to others' connections
//!    as well, which go out from it.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use libc::sock_filter as Instruction;

use super::{ETHERNET_BYTES, Frame, LINKTYPE_ETHERNET, TCP, TYPE_IPV4, TYPE_IPV6, UDP};

/// Ports that the kernel can look for: two comparisons of two instructions for each, of 4096 that a program
/// may have (BPF_MAXINSNS).
pub const PORTS_MAX: usize = 1000;

/// Where TCP's flags stand, and what of them opens a connection: SYN without ACK.
const FLAGS_AT: usize = 13;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Which ports of TCP or UDP the kernel looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ports {
    /// None: every frame is kept.
    Any,
    /// Those of this host, [`PORTS_MAX`] at the most.
    Own(Vec<u16>),
    /// Those of whom this host talks to, as many at the most.
    Theirs(Vec<u16>),
}

/// Which frames are of the conversations that a capture is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those of connections that others open to this host.
    Accepted(Accepted),
    /// Those from or to these ends, which are others'.
    Ends(HashSet<SocketAddr>),
    /// Those between these ends: every pair in both orders.
    Conversations(HashSet<(SocketAddr, SocketAddr)>),
}

impl Selection {
    /// Returns the one of conversations between these ends.
    pub fn conversations(pairs: impl IntoIterator<Item = (SocketAddr, SocketAddr)>) -> Self {
        let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        let pairs = pairs.into_iter().flat_map(|(one, other)| {
            let (one, other) = (plain(one), plain(other));
            [(one, other), (other, one)]
        });
        Self::Conversations(pairs.collect())
    }

    /// Returns whether `frame`, of a capture of this link type, is one of them; to be asked in their order.
    pub fn has(&mut self, link_type: u16, frame: &Frame<'_>) -> bool {
        let Some(segment) = Segment::of(link_type, frame.bytes) else {
            return false;
        };
        let Segment { from, to, .. } = segment;
        match self {
            Selection::Accepted(accepted) => accepted.has(&segment, frame.is_outgoing),
            Selection::Ends(ends) => ends.contains(&from) || ends.contains(&to),
            Selection::Conversations(pairs) => pairs.contains(&(from, to)),
        }
    }
}

/// Connections of TCP that others open to ports of this host.
///
/// Each is kept in mind as long as the capture goes on: it has a frame in it, and captures are bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Ports, each with the only address that may connect to it, if there is one.
    ports: HashSet<(u16, Option<IpAddr>)>,
    /// Addresses of this host, beside those of loopback.
    own: HashSet<IpAddr>,
    /// Ends of the connections so far: ours, and the other one.
    open: HashSet<(SocketAddr, SocketAddr)>,
}

impl Accepted {
    /// Returns those to these ports, each from one address only where one is named, of a host with the
    /// addresses `own`.
    pub fn new(
        ports: impl IntoIterator<Item = (u16, Option<IpAddr>)>,
        own: impl IntoIterator<Item = IpAddr>,
    ) -> Self {
        let plain = |address: IpAddr| address.to_canonical();
        let ports = ports.into_iter();
        Self {
            ports: ports.map(|(port, from)| (port, from.map(plain))).collect(),
            own: own.into_iter().map(plain).collect(),
            open: HashSet::new(),
        }
    }

    fn has(&mut self, segment: &Segment, is_outgoing: bool) -> bool {
        let Segment { from, to, opens } = *segment;
        let to_us = !is_outgoing && self.is_own(to.ip());
        // Over loopback frames are seen as they come in, whoever of this host sent them.
        let from_us = self.is_own(from.ip()) && (is_outgoing || self.is_own(to.ip()));
        if to_us && opens && self.may_come(to.port(), from.ip()) {
            self.open.insert((to, from));
        }
        (to_us && self.open.contains(&(to, from))) || (from_us && self.open.contains(&(from, to)))
    }

    fn is_own(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.own.contains(&address)
    }

    fn may_come(&self, port: u16, from: IpAddr) -> bool {
        [None, Some(from)]
            .into_iter()
            .any(|who| self.ports.contains(&(port, who)))
    }
}

/// A TCP segment or UDP datagram.
struct Segment {
    from: SocketAddr,
    to: SocketAddr,
    /// Whether it opens a connection of TCP.
    opens: bool,
}

impl Segment {
    fn of(link_type: u16, frame: &[u8]) -> Option<Self> {
        let packet = match link_type {
            LINKTYPE_ETHERNET => frame.get(ETHERNET_BYTES..)?,
            _ => frame,
        };
        let (from, to, protocol, segment): (IpAddr, IpAddr, u8, &[u8]) = match packet.first()? >> 4
        {
            4 => {
                let is_first = half(packet, 6)? & 0x1fff == 0;
                let header = usize::from(packet[0] & 15) * 4;
                (is_first && header >= 20).then_some(())?;
                let address = |at: usize| packet.get(at..)?.first_chunk::<4>().copied();
                let (from, to) = (address(12)?.into(), address(16)?.into());
                (from, to, *packet.get(9)?, packet.get(header..)?)
            }
            6 => {
                let address = |at: usize| packet.get(at..)?.first_chunk::<16>().copied();
                let (from, to) = (address(8)?.into(), address(24)?.into());
                (from, to, *packet.get(6)?, packet.get(40..)?)
            }
            _ => return None,
        };
        let opens = match protocol {
            TCP => segment.get(FLAGS_AT)? & (SYN | ACK) == SYN,
            UDP => false,
            _ => return None,
        };
        let end = |ip: IpAddr, at| Some(SocketAddr::new(ip.to_canonical(), half(segment, at)?));
        Some(Self {
            from: end(from, 0)?,
            to: end(to, 2)?,
            opens,
        })
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|&two| u16::from_be_bytes(two))
}

/// Loads into A the byte, or half word, at an offset, or at an offset behind X.
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const LOAD_HALF_BEHIND_X: u16 = 0x48;
/// Loads into X four times the lower half of a byte: the length of IPv4's header.
const LOAD_HEADER_LENGTH: u16 = 0xb1;
/// Loads into A, and stores from it, a word of the program's own memory.
const LOAD_KEPT: u16 = 0x60;
const KEEP: u16 = 0x02;
const SHIFT_RIGHT: u16 = 0x74;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
/// Where `sll_pkttype` is loaded from: SKF_AD_OFF + SKF_AD_PKTTYPE of include/uapi/linux/filter.h.
const KIND_AT: u32 = (-0x1000_i32 + 4) as u32;
/// Its value for a frame that this host sends (PACKET_OUTGOING).
const OUTGOING: u32 = 4;
/// Words of memory that keep the two ports.
const FROM: u32 = 0;
const TO: u32 = 1;

/// Returns the program that keeps `snap_bytes` of each frame of `ports`; both ends are this host's where
/// the device is that of loopback.
pub(crate) fn program(
    link_type: u16,
    ports: &Ports,
    is_loopback: bool,
    snap_bytes: u32,
) -> Vec<Instruction> {
    let accept = plain(RETURN, snap_bytes);
    // Whether the port of a frame that goes out is the one that it comes from.
    let (ports, outgoing_from) = match ports {
        Ports::Any => return vec![accept],
        Ports::Own(ports) => (ports, true),
        Ports::Theirs(ports) => (ports, false),
    };
    let (head, ip, v4, v6) = match link_type {
        LINKTYPE_ETHERNET => (
            vec![plain(LOAD_HALF, ETHERNET_BYTES as u32 - 2)],
            ETHERNET_BYTES as u32,
            u32::from(TYPE_IPV4),
            u32::from(TYPE_IPV6),
        ),
        _ => (vec![plain(LOAD_BYTE, 0), plain(SHIFT_RIGHT, 4)], 0, 4, 6),
    };
    let mut of_v6 = protocol(ip + 6);
    of_v6.extend(keep_ports(LOAD_HALF, ip + 40));
    let mut of_v4 = protocol(ip + 9);
    of_v4.extend([
        plain(LOAD_HALF, ip + 6),
        jump(JUMP_IF_ANY_BIT, 0x1fff, 0, 1),
        plain(RETURN, 0),
        plain(LOAD_HEADER_LENGTH, ip),
    ]);
    of_v4.extend(keep_ports(LOAD_HALF_BEHIND_X, ip));
    of_v4.push(plain(JUMP, of_v6.len() as u32));
    let mut program = head;
    program.extend([
        jump(JUMP_IF_EQUAL, v4, 2, 0),
        jump(JUMP_IF_EQUAL, v6, 0, 2),
        plain(JUMP, of_v4.len() as u32 + 2),
        plain(JUMP, 1),
        plain(RETURN, 0),
    ]);
    program.extend(of_v4);
    program.extend(of_v6);
    if is_loopback {
        for end in [FROM, TO] {
            program.push(plain(LOAD_KEPT, end));
            program.extend(accept_if(ports, accept));
        }
    } else {
        let (of_outgoing, of_incoming) = if outgoing_from {
            (FROM, TO)
        } else {
            (TO, FROM)
        };
        program.extend([
            plain(LOAD_BYTE, KIND_AT),
            jump(JUMP_IF_EQUAL, OUTGOING, 0, 2),
            plain(LOAD_KEPT, of_outgoing),
            plain(JUMP, 1),
            plain(LOAD_KEPT, of_incoming),
        ]);
        program.extend(accept_if(ports, accept));
    }
    program.push(plain(RETURN, 0));
    program
}

/// Goes on for TCP and UDP.
fn protocol(at: u32) -> Vec<Instruction> {
    vec![
        plain(LOAD_BYTE, at),
        jump(JUMP_IF_EQUAL, u32::from(TCP), 2, 0),
        jump(JUMP_IF_EQUAL, u32::from(UDP), 1, 0),
        plain(RETURN, 0),
    ]
}

/// Keeps the ports at `at` and behind it.
fn keep_ports(load: u16, at: u32) -> [Instruction; 4] {
    [
        plain(load, at),
        plain(KEEP, FROM),
        plain(load, at + 2),
        plain(KEEP, TO),
    ]
}

/// Accepts where A is one of `ports`.
fn accept_if(ports: &[u16], accept: Instruction) -> impl Iterator<Item = Instruction> + '_ {
    ports
        .iter()
        .flat_map(move |&port| [jump(JUMP_IF_EQUAL, u32::from(port), 0, 1), accept])
}

fn plain(code: u16, k: u32) -> Instruction {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, when_true: u8, when_false: u8) -> Instruction {
    Instruction {
        code,
        jt: when_true,
        jf: when_false,
        k,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capture::LINKTYPE_RAW;

    /// Runs a program as the kernel does: a load beyond the packet ends it with nothing.
    fn run(program: &[Instruction], packet: &[u8], is_outgoing: bool) -> Option<u32> {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0);
        let mut kept = [None; 2];
        loop {
            let one = program[at];
            at += 1;
            let from = one.k as usize;
            match one.code {
                LOAD_BYTE if one.k == KIND_AT => a = if is_outgoing { OUTGOING } else { 0 },
                LOAD_BYTE => a = u32::from(*packet.get(from)?),
                LOAD_KEPT => a = kept[from].expect("the kernel refuses what was not stored"),
                KEEP => kept[from] = Some(a),
                LOAD_HALF => a = u32::from(half(packet, from)?),
                LOAD_HALF_BEHIND_X => a = u32::from(half(packet, from + x as usize)?),
                LOAD_HEADER_LENGTH => x = u32::from(packet.get(from)? & 15) * 4,
                SHIFT_RIGHT => a >>= one.k,
                JUMP => at += from,
                JUMP_IF_EQUAL | JUMP_IF_ANY_BIT => {
                    let holds = match one.code {
                        JUMP_IF_EQUAL => a == one.k,
                        _ => a & one.k != 0,
                    };
                    let skip = if holds { one.jt } else { one.jf };
                    at += usize::from(skip);
                }
                RETURN => return Some(one.k).filter(|&bytes| bytes > 0),
                code => panic!("no instruction {code:#x}"),
            }
        }
    }

    fn v4(protocol: u8, fragment: u8, from: u16, to: u16) -> Vec<u8> {
        let mut bytes = vec![0x46, 0, 0, 60, 1, 2, 0, fragment, 64, protocol, 0, 0];
        bytes.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        // Options: the ports stand 24 bytes behind the begin.
        bytes.extend([1; 4]);
        bytes.extend(from.to_be_bytes());
        bytes.extend(to.to_be_bytes());
        bytes.resize(60, 0);
        bytes
    }

    fn v6(protocol: u8, from: u16, to: u16) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 20, protocol, 64];
        bytes.extend([0x20; 32]);
        bytes.extend(from.to_be_bytes());
        bytes.extend(to.to_be_bytes());
        bytes.resize(60, 0);
        bytes
    }

    fn on_ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend(kind.to_be_bytes());
        bytes.extend(packet);
        bytes
    }

    #[test]
    fn the_kernel_keeps_frames_of_the_ports() {
        // What goes out, and what comes in, of a device that is not loopback's; and over loopback.
        let check = |ports: Ports, packet: &[u8], expected: [bool; 3]| {
            let kind = if packet[0] >> 4 == 4 {
                TYPE_IPV4
            } else {
                TYPE_IPV6
            };
            for (link_type, frame) in [
                (LINKTYPE_RAW, packet.to_vec()),
                (LINKTYPE_ETHERNET, on_ethernet(kind, packet)),
            ] {
                let got = [(false, true), (false, false), (true, false)].map(|(over_lo, goes)| {
                    let kept = run(&program(link_type, &ports, over_lo, 128), &frame, goes);
                    assert!(kept.is_none_or(|bytes| bytes == 128));
                    kept.is_some()
                });
                assert_eq!(got, expected, "{link_type} {ports:?} {packet:?}");
            }
        };
        let (source, target, never) = ([true, false, true], [false, true, true], [false; 3]);
        for ports in [vec![5201], vec![7, 5201, 9]] {
            let own = |packet: &[u8], expected| check(Ports::Own(ports.clone()), packet, expected);
            own(&v4(TCP, 0, 5201, 40_000), source);
            own(&v4(UDP, 0, 40_000, 5201), target);
            own(&v6(TCP, 40_000, 5201), target);
            own(&v6(UDP, 5201, 40_000), source);
            own(&v4(TCP, 0, 5202, 40_000), never);
            own(&v6(TCP, 5202, 40_000), never);
            own(&v4(TCP, 9, 5201, 40_000), never);
            own(&v4(1, 0, 5201, 40_000), never);
            own(&v6(58, 5201, 40_000), never);
            let theirs = Ports::Theirs(ports.clone());
            check(theirs.clone(), &v4(TCP, 0, 5201, 40_000), target);
            check(theirs, &v6(TCP, 40_000, 5201), source);
        }
        check(Ports::Any, &v4(1, 0, 0, 0), [true; 3]);
        let many = Ports::Own((1..=PORTS_MAX as u16).collect());
        check(many.clone(), &v4(TCP, 0, 1000, 40_000), source);
        check(many.clone(), &v6(TCP, 40_000, 1000), target);
        check(many.clone(), &v4(TCP, 0, 1001, 40_000), never);
        let longest = program(LINKTYPE_ETHERNET, &many, true, 128).len();
        assert!(longest <= 4096, "{longest} instructions, but BPF_MAXINSNS");
        let arp = on_ethernet(0x0806, &[0; 40]);
        let own = program(LINKTYPE_ETHERNET, &Ports::Own(vec![5201]), false, 128);
        assert_eq!(run(&own, &arp, false), None);
    }

    fn frame(bytes: &[u8], is_outgoing: bool) -> Frame<'_> {
        Frame {
            at_unix_ns: 1,
            length: 60,
            bytes,
            vlan: None,
            is_outgoing,
        }
    }

    #[test]
    fn conversations_are_told_by_both_ends() {
        let check = |bytes: &[u8], is_kept| {
            let pair = (
                "192.0.2.1:40000".parse().unwrap(),
                "[::ffff:192.0.2.2]:5201".parse().unwrap(),
            );
            let frame = frame(bytes, false);
            let own = Selection::conversations([pair]).has(LINKTYPE_RAW, &frame);
            assert_eq!(own, is_kept, "{bytes:?}");
            let mut server = Selection::Ends(["192.0.2.2:5201".parse().unwrap()].into());
            let to_server = bytes[0] >> 4 == 4 && bytes[26..28] == 5201_u16.to_be_bytes();
            assert_eq!(server.has(LINKTYPE_RAW, &frame), to_server);
        };
        check(&v4(TCP, 0, 40_000, 5201), true);
        check(&v4(TCP, 0, 40_001, 5201), false);
        // The other order is another pair of addresses here.
        check(&v4(TCP, 0, 5201, 40_000), false);
        check(&v4(TCP, 0, 5202, 40_000), false);
        check(&v6(TCP, 40_000, 5201), false);
    }

    /// Returns a segment of TCP with these flags.
    fn segment((from, to): (&str, &str), flags: u8) -> Vec<u8> {
        let [from, to]: [std::net::SocketAddrV4; 2] = [from, to].map(|end| end.parse().unwrap());
        let mut bytes = v4(TCP, 0, from.port(), to.port());
        bytes[12..16].copy_from_slice(&from.ip().octets());
        bytes[16..20].copy_from_slice(&to.ip().octets());
        bytes[24 + FLAGS_AT] = flags;
        bytes
    }

    #[test]
    fn connections_that_come_and_go_are_those_that_others_open_to_our_port() {
        let own = ["192.0.2.2".parse().unwrap()];
        let fixed = "192.0.2.9".parse().unwrap();
        let ports = [(40_000, None), (5201, Some(fixed))];
        let mut accepted = Selection::Accepted(Accepted::new(ports, own));
        let mut check = |ends, flags, is_outgoing, is_kept: bool| {
            let bytes = segment(ends, flags);
            let got = accepted.has(LINKTYPE_RAW, &frame(&bytes, is_outgoing));
            assert_eq!(got, is_kept, "{ends:?} {flags:#x} {is_outgoing}");
        };
        let (us, client) = ("192.0.2.2:40000", "192.0.2.7:50000");
        // Nobody opened it yet.
        check((client, us), ACK, false, false);
        check((client, us), SYN, false, true);
        check((us, client), SYN | ACK, true, true);
        check((client, us), ACK, false, true);
        check((us, client), ACK, true, true);
        // A stranger's port has the number of ours, at a service of this host.
        let (service, stranger) = ("192.0.2.2:80", "192.0.2.8:40000");
        check((stranger, service), SYN, false, false);
        check((service, stranger), SYN | ACK, true, false);
        check((stranger, service), ACK, false, false);
        // This host connects somewhere from such a port, or somebody whose address it translates.
        let web = "198.51.100.1:443";
        check((us, web), SYN, true, false);
        check((web, us), SYN | ACK, false, false);
        check((us, web), ACK, true, false);
        // What this host only forwards is not to it, whatever the port.
        let behind = "10.0.0.5:40000";
        check((client, behind), SYN, false, false);
        check((behind, client), SYN | ACK, true, false);
        // Over loopback each frame comes in once.
        check(("127.0.0.1:50001", "127.0.0.1:40000"), SYN, false, true);
        check(
            ("127.0.0.1:40000", "127.0.0.1:50001"),
            SYN | ACK,
            false,
            true,
        );
        check(("127.0.0.1:40000", "127.0.0.1:80"), SYN, false, false);
        // Where one address may connect, others' connections to the same port are theirs.
        check((client, "192.0.2.2:5201"), SYN, false, false);
        check(("192.0.2.9:1024", "192.0.2.2:5201"), SYN, false, true);
        check((client, "192.0.2.2:5201"), ACK, false, false);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..100), raw: bool) {
            let link_type = if raw { LINKTYPE_RAW } else { LINKTYPE_ETHERNET };
            let own = Ports::Own(vec![1, 2]);
            let kept = run(&program(link_type, &own, raw, 96), &bytes, raw);
            prop_assert!(kept.is_none_or(|kept| kept == 96));
            let _ = Segment::of(link_type, &bytes);
        }
    }
}
