//! UDP, and what shows of DNS, NTP and QUIC.

use super::ip::{Addresses, Packet};
use super::{Decoded, NoSegment, u16_at, u32_at};

const HEADER_BYTES: usize = 8;
const PORT_DNS: u16 = 53;
pub(crate) const PORT_NTP: u16 = 123;

/// One datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Datagram {
    pub addresses: Addresses,
    pub source_port: u16,
    pub target_port: u16,
    pub payload_bytes: u32,
    pub says: Says,
    pub identification: u16,
    pub hop_limit: u8,
    pub congestion_marked: bool,
    /// The first bytes of its payload, as far as they were captured: it is known by them elsewhere.
    pub begin: [u64; 4],
}

impl Datagram {
    /// Returns its ports as those of a conversation: questions of a host are one, whatever port each comes from.
    pub(crate) fn ports(&self) -> (u16, u16) {
        match self.says {
            Says::Question(..) => (0, self.target_port),
            Says::Answer(..) => (self.source_port, 0),
            _ => (self.source_port, self.target_port),
        }
    }
}

/// What a datagram says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Says {
    /// Nothing that is looked at.
    #[default]
    Nothing,
    /// A question of DNS or NTP, by what its answer repeats.
    Question(Asked, u64),
    /// An answer, with whether it is a failure.
    Answer(Asked, u64, bool),
    /// A packet of QUIC with a long header.
    Quic { version: u32, kind: QuicKind },
    /// What QUIC's packets look like once a connection is set up; other protocols' may, too.
    PerhapsQuic,
}

/// Protocols of questions and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Dns,
    Ntp,
}

/// Long headers of QUIC (RFC 9000, section 17.2; RFC 9369 numbers them anew).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuicKind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    Negotiation,
}

/// Decodes the datagram that `packet` carries and of which `bytes` were captured.
#[cold]
pub(crate) fn decode(
    bytes: &[u8],
    packet: &Packet,
    datagram: &mut Datagram,
) -> Result<Decoded, NoSegment> {
    let ports = u16_at(bytes, 0).zip(u16_at(bytes, 2));
    let (source_port, target_port) = ports.ok_or(NoSegment::Cut)?;
    let payload = bytes.get(HEADER_BYTES..).ok_or(NoSegment::Cut)?;
    let payload_bytes = packet.payload_bytes.saturating_sub(HEADER_BYTES);
    let has = |port: u16| source_port == port || target_port == port;
    let says = if has(PORT_DNS) {
        dns(payload)
    } else if has(PORT_NTP) {
        ntp(payload)
    } else {
        quic(payload)
    };
    *datagram = Datagram {
        addresses: packet.addresses,
        source_port,
        target_port,
        payload_bytes: u32::try_from(payload_bytes).unwrap_or(u32::MAX),
        says: says.unwrap_or(Says::Nothing),
        identification: packet.identification,
        hop_limit: packet.hop_limit,
        congestion_marked: packet.congestion_marked,
        begin: begin_of(payload),
    };
    Ok(Decoded::Udp)
}

/// Returns the first 32 bytes; those that are not there are zero.
fn begin_of(payload: &[u8]) -> [u64; 4] {
    let mut begin = [0; 4];
    for (word, bytes) in begin.iter_mut().zip(payload.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_be_bytes(whole);
    }
    begin
}

/// The head of a message (RFC 1035, section 4.1.1).
fn dns(payload: &[u8]) -> Option<Says> {
    const ANSWER: u16 = 0x8000;
    const NO_SUCH_NAME: u16 = 3;
    let (id, flags) = (u16_at(payload, 0)?, u16_at(payload, 2)?);
    let id = u64::from(id);
    Some(match flags & ANSWER {
        0 => Says::Question(Asked::Dns, id),
        // That a name is not there is an answer.
        _ => Says::Answer(Asked::Dns, id, !matches!(flags & 0xf, 0 | NO_SUCH_NAME)),
    })
}

/// Modes 3 and 4 (RFC 5905, section 7.3): the answer repeats the client's transmit timestamp.
fn ntp(payload: &[u8]) -> Option<Says> {
    let stamp = |at: usize| {
        let halves = u32_at(payload, at).zip(u32_at(payload, at + 4));
        halves.map(|(high, low)| u64::from(high) << 32 | u64::from(low))
    };
    match payload.first()? & 7 {
        3 => Some(Says::Question(Asked::Ntp, stamp(40)?)),
        // Stratum 0: a kiss of death.
        4 => Some(Says::Answer(
            Asked::Ntp,
            stamp(24)?,
            payload.get(1) == Some(&0),
        )),
        _ => None,
    }
}

fn quic(payload: &[u8]) -> Option<Says> {
    const VERSION_1: u32 = 1;
    const VERSION_2: u32 = 0x6b33_43cf;
    const DRAFTS: u32 = 0xff00_0000;
    const CONNECTION_ID_MAX: u8 = 20;
    let first = *payload.first()?;
    if first & 0xc0 == 0x40 {
        return Some(Says::PerhapsQuic);
    }
    if first & 0x80 == 0 {
        return None;
    }
    let version = u32_at(payload, 1)?;
    if *payload.get(5)? > CONNECTION_ID_MAX {
        return None;
    }
    let kind = match (version, first >> 4 & 3) {
        (0, _) => QuicKind::Negotiation,
        _ if first & 0x40 == 0 => return None,
        (VERSION_2, 1) | (VERSION_1, 0) => QuicKind::Initial,
        (VERSION_2, 2) | (VERSION_1, 1) => QuicKind::ZeroRtt,
        (VERSION_2, 3) | (VERSION_1, 2) => QuicKind::Handshake,
        (VERSION_2, _) | (VERSION_1, _) => QuicKind::Retry,
        (draft, kind) if draft & 0xffff_ff00 == DRAFTS => match kind {
            0 => QuicKind::Initial,
            1 => QuicKind::ZeroRtt,
            2 => QuicKind::Handshake,
            _ => QuicKind::Retry,
        },
        _ => return None,
    };
    Some(Says::Quic { version, kind })
}
