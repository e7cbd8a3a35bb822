//! Which frames a capture is about: those of certain ports, and of certain conversations.
//!
//! 1. The kernel filters by protocol and port, so that what others do costs no copy. A port is looked for at
//!    one end only: a port of this host is where frames that come in go to and frames that go out come
//!    from. The same number at the other end is somebody else's. Fragments but the first, and headers behind
//!    extensions of IPv6, carry no ports where they are looked for: such frames are left out.
//! 2. Conversations are told apart here, by both addresses and ports: there may be thousands, and
//!    they are known only once they exist.
//! 3. Where connections come and go, their first words tell them ([`super::Introductions`]).

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use libc::sock_filter as Instruction;

use super::{ETHERNET_BYTES, Frame, LINKTYPE_ETHERNET, TCP, TYPE_IPV4, TYPE_IPV6, UDP};

/// Ports that the kernel can look for: two comparisons of two instructions for each, of 4096 that a program
/// may have (BPF_MAXINSNS).
pub const PORTS_MAX: usize = 1000;

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

/// Which frames are of the conversations that a capture is about: those between these ends, every pair in both
/// orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(HashSet<(SocketAddr, SocketAddr)>);

impl Selection {
    /// Returns the one of conversations between these ends.
    pub fn conversations(pairs: impl IntoIterator<Item = (SocketAddr, SocketAddr)>) -> Self {
        let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        let pairs = pairs.into_iter().flat_map(|(one, other)| {
            let (one, other) = (plain(one), plain(other));
            [(one, other), (other, one)]
        });
        Self(pairs.collect())
    }

    /// Returns whether `frame`, of a capture of this link type, is one of them.
    pub fn has(&self, link_type: u16, frame: &Frame<'_>) -> bool {
        let segment = segment(link_type, frame.bytes);
        segment.is_some_and(|segment| self.0.contains(&(segment.from, segment.to)))
    }
}

/// Returns whether `frame`, of a capture of this link type, comes from there or goes there.
pub fn has_end(link_type: u16, frame: &Frame<'_>, end: SocketAddr) -> bool {
    let end = SocketAddr::new(end.ip().to_canonical(), end.port());
    let segment = segment(link_type, frame.bytes);
    segment.is_some_and(|segment| segment.from == end || segment.to == end)
}

/// A TCP segment or UDP datagram.
pub(super) struct Segment<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) is_tcp: bool,
    /// Of TCP.
    pub(super) flags: u8,
    /// What of the payload of TCP was kept.
    pub(super) payload: &'a [u8],
}

/// Returns the TCP segment or UDP datagram in a frame.
pub(super) fn segment(link_type: u16, frame: &[u8]) -> Option<Segment<'_>> {
    let packet = match link_type {
        LINKTYPE_ETHERNET => frame.get(ETHERNET_BYTES..)?,
        _ => frame,
    };
    // With the bytes that the packet has behind its header: short frames are filled up. 0 is more than the
    // field can say.
    let (from, to, protocol, segment, bytes): (IpAddr, IpAddr, u8, &[u8], usize) =
        match packet.first()? >> 4 {
            4 => {
                let is_first = half(packet, 6)? & 0x1fff == 0;
                let header = usize::from(packet[0] & 15) * 4;
                (is_first && header >= 20).then_some(())?;
                let address = |at: usize| packet.get(at..)?.first_chunk::<4>().copied();
                let (from, to) = (address(12)?.into(), address(16)?.into());
                let bytes = usize::from(half(packet, 2)?).saturating_sub(header);
                (from, to, *packet.get(9)?, packet.get(header..)?, bytes)
            }
            6 => {
                let address = |at: usize| packet.get(at..)?.first_chunk::<16>().copied();
                let (from, to) = (address(8)?.into(), address(24)?.into());
                let bytes = usize::from(half(packet, 4)?);
                (from, to, *packet.get(6)?, packet.get(40..)?, bytes)
            }
            _ => return None,
        };
    matches!(protocol, TCP | UDP).then_some(())?;
    let end = |ip: IpAddr, at| Some(SocketAddr::new(ip.to_canonical(), half(segment, at)?));
    let kept_bytes = match bytes {
        0 => segment.len(),
        _ => bytes.min(segment.len()),
    };
    let header_bytes = segment.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    Some(Segment {
        from: end(from, 0)?,
        to: end(to, 2)?,
        is_tcp: protocol == TCP,
        flags: segment.get(13).copied().unwrap_or(0),
        payload: segment.get(header_bytes..kept_bytes).unwrap_or_default(),
    })
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
        let has = |bytes: &[u8]| {
            let pair = (
                "192.0.2.1:40000".parse().unwrap(),
                "[::ffff:192.0.2.2]:5201".parse().unwrap(),
            );
            Selection::conversations([pair]).has(LINKTYPE_RAW, &frame(bytes, false))
        };
        assert!(has(&v4(TCP, 0, 40_000, 5201)));
        assert!(!has(&v4(TCP, 0, 40_001, 5201)));
        // The other order is another pair of addresses here.
        assert!(!has(&v4(TCP, 0, 5201, 40_000)));
        assert!(!has(&v4(TCP, 0, 5202, 40_000)));
        assert!(!has(&v6(TCP, 40_000, 5201)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..100), raw: bool) {
            let link_type = if raw { LINKTYPE_RAW } else { LINKTYPE_ETHERNET };
            let own = Ports::Own(vec![1, 2]);
            let kept = run(&program(link_type, &own, raw, 96), &bytes, raw);
            prop_assert!(kept.is_none_or(|kept| kept == 96));
            let _ = segment(link_type, &bytes);
        }
    }
}
