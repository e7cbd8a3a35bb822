//! Which frames a capture is about: those of certain ports, and of certain conversations.
//!
//! 1. The kernel filters by protocol and port, so that what others do costs no copy. Fragments but
//!    the first, and headers behind extensions of IPv6, carry no ports where they are looked for:
//!    such frames are left out.
//! 2. Conversations are told apart here, by both addresses and ports: there may be thousands, and
//!    they are known only once they exist.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use libc::sock_filter as Instruction;

use super::{ETHERNET_BYTES, Frame, LINKTYPE_ETHERNET, TCP, TYPE_IPV4, TYPE_IPV6, UDP};

/// Ports that the kernel looks for; beyond, it lets everything of TCP and UDP through. Four
/// comparisons of two instructions for each, of 4096 that a program may have (BPF_MAXINSNS).
const PORTS_MAX: usize = 128;

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
const SHIFT_RIGHT: u16 = 0x74;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Returns the program that keeps `snap_bytes` of each frame from or to one of `ports`, of every
/// frame where there are none.
pub(crate) fn program(link_type: u16, ports: &[u16], snap_bytes: u32) -> Vec<Instruction> {
    let accept = plain(RETURN, snap_bytes);
    if ports.is_empty() {
        return vec![accept];
    }
    let ports = match ports.len() {
        0..=PORTS_MAX => ports,
        _ => &[],
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
    let mut of_v4 = protocol(ip + 9);
    of_v4.extend([
        plain(LOAD_HALF, ip + 6),
        jump(JUMP_IF_ANY_BIT, 0x1fff, 0, 1),
        plain(RETURN, 0),
        plain(LOAD_HEADER_LENGTH, ip),
    ]);
    of_v4.extend(ports_at(LOAD_HALF_BEHIND_X, ip, ports, accept));
    let mut of_v6 = protocol(ip + 6);
    of_v6.extend(ports_at(LOAD_HALF, ip + 40, ports, accept));
    let mut program = head;
    program.extend([
        jump(JUMP_IF_EQUAL, v4, 0, 1),
        // Jumps that depend on something reach 255 instructions only.
        plain(JUMP, 3),
        jump(JUMP_IF_EQUAL, v6, 0, 1),
        plain(JUMP, of_v4.len() as u32 + 1),
        plain(RETURN, 0),
    ]);
    program.extend(of_v4);
    program.extend(of_v6);
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

/// Accepts where one of the ports at `at` and behind it is one of `ports`; all where there are none.
fn ports_at(load: u16, at: u32, ports: &[u16], accept: Instruction) -> Vec<Instruction> {
    if ports.is_empty() {
        return vec![accept];
    }
    let mut program = Vec::new();
    for at in [at, at + 2] {
        program.push(plain(load, at));
        for &port in ports {
            program.extend([jump(JUMP_IF_EQUAL, u32::from(port), 0, 1), accept]);
        }
    }
    program.push(plain(RETURN, 0));
    program
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
    fn run(program: &[Instruction], packet: &[u8]) -> Option<u32> {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0);
        loop {
            let one = program[at];
            at += 1;
            let from = one.k as usize;
            match one.code {
                LOAD_BYTE => a = u32::from(*packet.get(from)?),
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
        let check = |ports: &[u16], packet: &[u8], is_kept: bool| {
            let kind = if packet[0] >> 4 == 4 {
                TYPE_IPV4
            } else {
                TYPE_IPV6
            };
            for (link_type, frame) in [
                (LINKTYPE_RAW, packet.to_vec()),
                (LINKTYPE_ETHERNET, on_ethernet(kind, packet)),
            ] {
                let got = run(&program(link_type, ports, 128), &frame);
                assert_eq!(
                    got,
                    is_kept.then_some(128),
                    "{link_type} {ports:?} {packet:?}"
                );
            }
        };
        for ports in [&[5201][..], &[7, 5201, 9]] {
            check(ports, &v4(TCP, 0, 5201, 40_000), true);
            check(ports, &v4(UDP, 0, 40_000, 5201), true);
            check(ports, &v6(TCP, 40_000, 5201), true);
            check(ports, &v6(UDP, 5201, 40_000), true);
            check(ports, &v4(TCP, 0, 5202, 40_000), false);
            check(ports, &v6(TCP, 5202, 40_000), false);
            check(ports, &v4(TCP, 9, 5201, 40_000), false);
            check(ports, &v4(1, 0, 5201, 40_000), false);
            check(ports, &v6(58, 5201, 40_000), false);
        }
        check(&[], &v4(1, 0, 0, 0), true);
        let many: Vec<u16> = (1..1000).collect();
        check(&many, &v4(TCP, 0, 5201, 40_000), true);
        check(&many, &v4(1, 0, 5201, 40_000), false);
        let arp = on_ethernet(0x0806, &[0; 40]);
        assert_eq!(run(&program(LINKTYPE_ETHERNET, &[5201], 128), &arp), None);
    }

    #[test]
    fn conversations_are_told_by_both_ends() {
        let frame = |bytes: &[u8]| {
            let frame = Frame {
                at_unix_ns: 1,
                length: 60,
                bytes,
                vlan: None,
                is_outgoing: false,
            };
            let pair = (
                "192.0.2.1:40000".parse().unwrap(),
                "[::ffff:192.0.2.2]:5201".parse().unwrap(),
            );
            Selection::conversations([pair]).has(LINKTYPE_RAW, &frame)
        };
        assert!(frame(&v4(TCP, 0, 40_000, 5201)));
        assert!(!frame(&v4(TCP, 0, 40_001, 5201)));
        // The other order is another pair of addresses here.
        assert!(!frame(&v4(TCP, 0, 5201, 40_000)));
        assert!(!frame(&v4(TCP, 0, 5202, 40_000)));
        assert!(!frame(&v6(TCP, 40_000, 5201)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..100), raw: bool) {
            let link_type = if raw { LINKTYPE_RAW } else { LINKTYPE_ETHERNET };
            let kept = run(&program(link_type, &[1, 2], 96), &bytes);
            prop_assert!(kept.is_none_or(|kept| kept == 96));
            let _ = ends(link_type, &bytes);
        }
    }
}
