//! The TCP header and its options (RFC 9293, RFC 7323, RFC 2018).

use super::ip::{Addresses, Packet};
use super::{Decoded, NoSegment, u16_at, u32_at};

pub(super) const HEADER_BYTES: usize = 20;

const OPTION_END: u8 = 0;
const OPTION_NOTHING: u8 = 1;
const OPTION_MSS: u8 = 2;
const OPTION_WINDOW_SCALE: u8 = 3;
const OPTION_SACK_PERMITTED: u8 = 4;
const OPTION_SACK: u8 = 5;
const OPTION_TIMESTAMPS: u8 = 8;

/// Two "nothing" options before timestamps, as every stack sends them on established connections.
const TIMESTAMPS_ONLY: [u8; 4] = [OPTION_NOTHING, OPTION_NOTHING, OPTION_TIMESTAMPS, 10];

/// The largest shift that RFC 7323 allows; larger ones mean this.
const WINDOW_SCALE_MAX: u8 = 14;

/// The control bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags(pub u8);

impl Flags {
    /// The sender has no more to send.
    pub(crate) const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub(crate) const SYN: u8 = 0x02;
    /// The connection is refused or gone.
    pub(crate) const RST: u8 = 0x04;
    pub(crate) const PSH: u8 = 0x08;
    /// The acknowledgement number means something.
    pub(crate) const ACK: u8 = 0x10;
    /// The urgent pointer means something.
    pub(crate) const URG: u8 = 0x20;
    /// The receiver saw congestion (ECN echo).
    pub(crate) const ECE: u8 = 0x40;
    /// The sender reduced its congestion window.
    pub(crate) const CWR: u8 = 0x80;

    /// Returns whether any of `bits` is set.
    #[inline]
    pub(crate) fn any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// The timestamps option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamps {
    /// The sender's clock (TSval).
    pub value: u32,
    /// The newest of the receiver's clock that the sender saw (TSecr).
    pub echo: u32,
}

/// Up to four blocks of a selective acknowledgement: first byte, and byte behind the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Returns the blocks, in the order in which they stand.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    #[cold]
    fn read(value: &[u8]) -> Self {
        let mut sack = Self::default();
        for (place, block) in sack.blocks.iter_mut().zip(value.chunks_exact(8)) {
            if let Some(edges) = u32_at(block, 0).zip(u32_at(block, 4)) {
                *place = edges;
                sack.count += 1;
            }
        }
        sack
    }
}

/// One TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Segment {
    pub addresses: Addresses,
    pub source_port: u16,
    pub target_port: u16,
    /// The sequence number of the first byte.
    pub sequence: u32,
    /// The acknowledgement number; zero without the ACK bit.
    pub acknowledgement: u32,
    pub flags: Flags,
    /// The window as it stands in the header, not scaled.
    pub window: u16,
    /// Bytes of payload on the wire.
    pub payload_bytes: u32,
    /// Maximum segment size, in a SYN.
    pub mss: Option<u16>,
    /// Window scale, in a SYN.
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgements are permitted, in a SYN.
    pub sack_permitted: bool,
    pub timestamps: Option<Timestamps>,
    pub sack: SackBlocks,
    /// Whether routers marked congestion on its way.
    pub congestion_marked: bool,
    /// Whether it is the first fragment of a packet, so that its length is not all of it.
    pub fragmented: bool,
    /// Whether its packet says that it is longer than its frame.
    pub shortened: bool,
    /// Whether the capture cut its options: what is missing of them is not known.
    pub options_cut: bool,
    /// Routers that it might still have passed.
    pub hop_limit: u8,
    /// The identification of IPv4, by which the same packet captured twice is known.
    pub identification: u16,
    /// The checksum as it stands in the header; it covers payload and options.
    pub checksum: u16,
}

impl Segment {
    /// Returns whether it acknowledges and carries nothing: no payload, no SYN, FIN or RST.
    #[inline]
    pub(crate) fn is_pure_ack(&self) -> bool {
        let controls = Flags::SYN | Flags::FIN | Flags::RST;
        self.payload_bytes == 0 && self.flags.any(Flags::ACK) && !self.flags.any(controls)
    }

    /// Returns the sequence space that it takes: payload, SYN and FIN.
    #[inline]
    pub(crate) fn sequence_bytes(&self) -> u32 {
        let controls = self.flags.0 & (Flags::SYN | Flags::FIN);
        self.payload_bytes.wrapping_add(controls.count_ones())
    }
}

/// Decodes the segment that `packet` carries and of which `bytes` were captured.
///
/// Always inlined, so that what IP says of it goes from registers to its place and not through a
/// [`Packet`] in memory.
#[inline(always)]
pub(crate) fn decode(
    bytes: &[u8],
    packet: &Packet,
    segment: &mut Segment,
) -> Result<Decoded, NoSegment> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(match packet.payload_bytes {
        short if short < HEADER_BYTES => NoSegment::Malformed,
        _ => NoSegment::Cut,
    })?;
    let header_bytes = usize::from(header[12] >> 4) * 4;
    if header_bytes < HEADER_BYTES || header_bytes > packet.payload_bytes {
        return Err(NoSegment::Malformed);
    }
    let flags = Flags(header[13]);
    let number = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    *segment = Segment {
        // Word by word: as a whole it would be loaded wider than it was just stored.
        addresses: match packet.addresses {
            Addresses::V4 { source, target } => Addresses::V4 { source, target },
            Addresses::V6 { source, target } => Addresses::V6 { source, target },
        },
        source_port: u16::from_be_bytes([header[0], header[1]]),
        target_port: u16::from_be_bytes([header[2], header[3]]),
        sequence: number(4),
        acknowledgement: if flags.any(Flags::ACK) { number(8) } else { 0 },
        flags,
        window: u16::from_be_bytes([header[14], header[15]]),
        payload_bytes: u32::try_from(packet.payload_bytes - header_bytes)
            .map_err(|_| NoSegment::Malformed)?,
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks::default(),
        congestion_marked: packet.congestion_marked,
        fragmented: packet.fragmented,
        shortened: packet.shortened,
        options_cut: bytes.len() < header_bytes,
        hop_limit: packet.hop_limit,
        identification: packet.identification,
        checksum: u16::from_be_bytes([header[16], header[17]]),
    };
    // What the capture cut off of the options is missing, which is less than the segment.
    let options = &bytes[HEADER_BYTES..header_bytes.min(bytes.len())];
    if options.len() == 12 && options.starts_with(&TIMESTAMPS_ONLY) {
        segment.timestamps = timestamps(&options[4..]);
    } else if !options.is_empty() {
        read_options(segment, options);
    }
    Ok(Decoded::Tcp)
}

#[inline]
fn timestamps(value: &[u8]) -> Option<Timestamps> {
    Some(Timestamps {
        value: u32_at(value, 0)?,
        echo: u32_at(value, 4)?,
    })
}

/// Reads options one by one; a malformed one ends them, as it does in every stack.
fn read_options(segment: &mut Segment, options: &[u8]) {
    let mut rest = options;
    while let Some(&kind) = rest.first() {
        match kind {
            OPTION_END => return,
            OPTION_NOTHING => {
                rest = &rest[1..];
                continue;
            }
            _ => {}
        }
        let Some(&length) = rest.get(1) else { return };
        let length = usize::from(length);
        let Some(value) = rest.get(2..length) else {
            return;
        };
        let is_syn = segment.flags.any(Flags::SYN);
        match kind {
            OPTION_MSS if is_syn => segment.mss = u16_at(value, 0),
            OPTION_WINDOW_SCALE if is_syn => {
                let shift = value.first().map(|&shift| shift.min(WINDOW_SCALE_MAX));
                segment.window_scale = shift;
            }
            OPTION_SACK_PERMITTED if is_syn => segment.sack_permitted = true,
            OPTION_SACK => segment.sack = SackBlocks::read(value),
            OPTION_TIMESTAMPS => segment.timestamps = timestamps(value),
            _ => {}
        }
        rest = &rest[length..];
    }
}
