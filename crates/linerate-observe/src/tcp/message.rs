//! Messages of socket monitoring, as functions of bytes (`include/uapi/linux/inet_diag.h`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use linerate_model::socket::{
    CongestionName, Protocol, SocketMemory, SocketRow, SocketState, TcpInfo, TcpMore,
};

use crate::attributes::each_attribute;
use crate::bytes::{u32_at, u64_at};
use crate::sys::sock_diag::{SOCK_DIAG_BY_FAMILY, TCPDIAG_GETSOCK};

/// Length of `struct inet_diag_msg`, in bytes.
const MESSAGE_BYTES: usize = 72;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;

/// How much is asked of each socket; the kernel's work grows with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// TCP_INFO.
    Counters,
    /// TCP_INFO, buffers and congestion control.
    Everything,
}

impl Depth {
    /// Returns the bits of the attributes wanted, by `1 << (attribute - 1)`.
    fn extensions(self) -> u8 {
        let bit = |attribute: u16| 1u8 << (attribute - 1);
        match self {
            Depth::Counters => bit(INET_DIAG_INFO),
            Depth::Everything => {
                bit(INET_DIAG_INFO) | bit(INET_DIAG_CONG) | bit(INET_DIAG_SKMEMINFO)
            }
        }
    }
}

/// Makes the question for every TCP socket of both families in one of `states`.
pub(super) fn every_tcp(depth: Depth, states: u32) -> (u16, Vec<u8>) {
    // struct inet_diag_req: family, lengths of addresses, extensions; addresses; states; dump of
    // the table of ports.
    let mut payload = vec![0, 0, 0, depth.extensions()];
    payload.resize(4 + 48, 0);
    payload.extend(states.to_ne_bytes());
    payload.extend(0u32.to_ne_bytes());
    (TCPDIAG_GETSOCK, payload)
}

/// Makes the question for every UDP socket of one address family.
pub(crate) fn every_udp(family: u8) -> (u16, Vec<u8>) {
    // struct inet_diag_req_v2: family, protocol, extensions; states; addresses.
    let extensions = 1u8 << (INET_DIAG_SKMEMINFO - 1);
    let mut payload = vec![family, Protocol::Udp.number(), extensions, 0];
    payload.extend(u32::MAX.to_ne_bytes());
    payload.resize(8 + 48, 0);
    (SOCK_DIAG_BY_FAMILY, payload)
}

/// Reads a message on one socket; absent when it is not one.
pub(crate) fn parse(payload: &[u8], protocol: Protocol) -> Option<SocketRow> {
    let head: &[u8; MESSAGE_BYTES] = payload.first_chunk()?;
    let family = head[0];
    let word = |at| u32_at(head, at).unwrap_or(0);
    let mut row = SocketRow {
        protocol,
        state: SocketState::from_number(head[1])?,
        local: address(family, &head[8..24], port(&head[4..6]))?,
        remote: address(family, &head[24..40], port(&head[6..8]))?,
        link_index: word(40),
        cookie: u64::from(word(48)) << 32 | u64::from(word(44)),
        receive_queue: word(56),
        send_queue: word(60),
        uid: word(64),
        inode: word(68).into(),
        memory: None,
        congestion: CongestionName::default(),
        tcp: None,
    };
    each_attribute(&payload[MESSAGE_BYTES..], |kind, value| match kind {
        INET_DIAG_INFO if protocol == Protocol::Tcp => row.tcp = Some(tcp_info(value)),
        INET_DIAG_CONG => row.congestion = CongestionName::from_bytes(value),
        INET_DIAG_SKMEMINFO => row.memory = memory(value),
        _ => {}
    });
    Some(row)
}

fn port(bytes: &[u8]) -> u16 {
    bytes.first_chunk().map_or(0, |it| u16::from_be_bytes(*it))
}

fn address(family: u8, bytes: &[u8], port: u16) -> Option<SocketAddr> {
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(*bytes.first_chunk::<16>()?)),
        _ => return None,
    };
    // A socket of IPv6 that talks to IPv4 is told by its IPv4 addresses, as everyone names them.
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Reads seven of the words SK_MEMINFO_*; an older kernel than 4.7 told no drops.
fn memory(value: &[u8]) -> Option<SocketMemory> {
    if value.len() < 32 {
        return None;
    }
    let word = |index: usize| u32_at(value, index * 4).unwrap_or(0);
    Some(SocketMemory {
        rmem_alloc_bytes: word(0),
        rcvbuf_bytes: word(1),
        wmem_alloc_bytes: word(2),
        sndbuf_bytes: word(3),
        wmem_queued_bytes: word(5),
        backlog_bytes: word(7),
        drops: word(8),
    })
}

/// Reads `struct tcp_info` as far as this kernel fills it; the offsets are those of Linux 6.18.
fn tcp_info(value: &[u8]) -> TcpInfo {
    let small = |at| u32_at(value, at).unwrap_or(0);
    let large = |at| u64_at(value, at).unwrap_or(0);
    TcpInfo {
        rto_us: small(8),
        ato_us: small(12),
        snd_mss_bytes: small(16),
        rcv_mss_bytes: small(20),
        unacked: small(24),
        sacked: small(28),
        rtt_us: small(68),
        rttvar_us: small(72),
        snd_ssthresh: small(76),
        snd_cwnd: small(80),
        rcv_space_bytes: small(96),
        total_retrans: small(100),
        pacing_bytes_per_s: large(104),
        bytes_acked: large(120),
        bytes_received: large(128),
        segs_out: small(136),
        segs_in: small(140),
        notsent_bytes: small(144),
        min_rtt_us: small(148),
        data_segs_in: small(152),
        data_segs_out: small(156),
        delivery_bytes_per_s: large(160),
        busy_us: large(168),
        rwnd_limited_us: large(176),
        sndbuf_limited_us: large(184),
        more: Some(TcpMore {
            options: value.get(5).copied().unwrap_or(0),
            is_app_limited: value.get(7).is_some_and(|bits| bits & 1 == 1),
            delivered: small(192),
            delivered_ce: small(196),
            bytes_retrans: large(208),
            dsack_dups: small(216),
            reord_seen: small(220),
            timeouts: u32_at(value, 240).map(|both| (both & 0xffff) as u16),
        }),
        bytes_sent: large(200),
        snd_wnd_bytes: small(228),
        rcv_wnd_bytes: small(232),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attributes::attribute;

    fn head(family: i32, state: SocketState, local: &[u8], remote: &[u8]) -> Vec<u8> {
        let mut bytes = vec![family as u8, state as u8, 0, 0];
        bytes.extend(5201u16.to_be_bytes());
        bytes.extend(40_000u16.to_be_bytes());
        for address in [local, remote] {
            let mut address = address.to_vec();
            address.resize(16, 0);
            bytes.extend(address);
        }
        for word in [3u32, 0x8765_4321, 0x1, 0, 11, 22, 1000, 4242] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes
    }

    /// A struct tcp_info in which each aligned 32-bit word holds its own offset.
    fn numbered(bytes: usize) -> Vec<u8> {
        let words = (0..bytes as u32).step_by(4);
        words.flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn a_connection_is_what_its_message_says() {
        let mut bytes = head(
            libc::AF_INET,
            SocketState::Established,
            &[192, 0, 2, 1],
            &[192, 0, 2, 2],
        );
        bytes.extend(attribute(8, &[0]));
        bytes.extend(attribute(INET_DIAG_INFO, &numbered(280)));
        bytes.extend(attribute(INET_DIAG_CONG, b"cubic\0"));
        let words = (100u32..109).flat_map(u32::to_ne_bytes);
        bytes.extend(attribute(INET_DIAG_SKMEMINFO, &words.collect::<Vec<_>>()));
        let row = parse(&bytes, Protocol::Tcp).expect("a socket");
        assert_eq!(row.local, "192.0.2.1:5201".parse().expect("an address"));
        assert_eq!(row.remote, "192.0.2.2:40000".parse().expect("an address"));
        assert_eq!(row.state, SocketState::Established);
        assert_eq!((row.link_index, row.cookie), (3, 0x1_8765_4321));
        assert_eq!((row.receive_queue, row.send_queue), (11, 22));
        assert_eq!((row.uid, row.inode), (1000, 4242));
        assert_eq!(row.congestion.as_str(), "cubic");
        let memory = row.memory.expect("buffers");
        assert_eq!((memory.rmem_alloc_bytes, memory.sndbuf_bytes), (100, 103));
        assert_eq!((memory.wmem_queued_bytes, memory.drops), (105, 108));
        let tcp = row.tcp.expect("what TCP knows");
        assert_eq!((tcp.rtt_us, tcp.snd_cwnd), (68, 80));
        assert_eq!((tcp.data_segs_in, tcp.data_segs_out), (152, 156));
        assert_eq!((tcp.snd_wnd_bytes, tcp.rcv_wnd_bytes), (228, 232));
        let large = |at: u64| {
            if cfg!(target_endian = "little") {
                ((at + 4) << 32) | at
            } else {
                (at << 32) | (at + 4)
            }
        };
        assert_eq!((tcp.bytes_sent, tcp.busy_us), (large(200), large(168)));
    }

    #[test]
    fn an_older_kernel_tells_less() {
        let any = [0; 16];
        let mut bytes = head(libc::AF_INET6, SocketState::CloseWait, &any, &any);
        bytes.extend(attribute(INET_DIAG_INFO, &numbered(104)));
        let row = parse(&bytes, Protocol::Tcp).expect("a socket");
        let tcp = row.tcp.expect("what TCP knows");
        assert_eq!(
            (tcp.total_retrans, tcp.segs_out, tcp.bytes_sent),
            (100, 0, 0)
        );
        assert_eq!((row.memory, row.congestion.as_str()), (None, ""));
    }

    #[test]
    fn addresses_are_those_that_everyone_knows() {
        let mut mapped = [0; 16];
        mapped[10..].copy_from_slice(&[255, 255, 10, 1, 2, 3]);
        let row = |bytes: &[u8]| parse(bytes, Protocol::Tcp);
        let bytes = head(libc::AF_INET6, SocketState::Listen, &mapped, &[0; 16]);
        let mapped = row(&bytes).expect("a socket");
        assert_eq!(mapped.local.to_string(), "10.1.2.3:5201");
        assert_eq!(mapped.remote.to_string(), "[::]:40000");
        assert_eq!(row(&bytes[..71]), None);
        let mut odd = bytes;
        odd[0] = 99;
        assert_eq!(row(&odd), None);
    }

    #[test]
    fn questions_have_the_length_that_the_kernel_asks_for() {
        let (kind, payload) = every_tcp(Depth::Counters, 0b10);
        assert_eq!((kind, payload.len()), (TCPDIAG_GETSOCK, 60));
        assert_eq!((payload[3], payload[52]), (0b10, 0b10));
        let (kind, payload) = every_udp(libc::AF_INET6 as u8);
        assert_eq!((kind, payload.len()), (SOCK_DIAG_BY_FAMILY, 56));
        assert_eq!(payload[..3], [10, 17, 0b100_0000]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u16..20) {
            let _ = parse(&payload, Protocol::Tcp);
            let mut bytes = head(libc::AF_INET, SocketState::Listen, &[1, 2, 3, 4], &[0; 4]);
            bytes.extend(attribute(kind, &payload));
            bytes.extend(&payload);
            let _ = parse(&bytes, Protocol::Tcp);
        }
    }
}
