//! The block format (draft-ietf-opsawg-pcapng): sections, interfaces, frames.
//!
//! 1. A section header sets the byte order and forgets the interfaces before it.
//! 2. An interface block gives link type, snapshot length, and the resolution and offset of time.
//! 3. Enhanced, simple and (obsolete) packet blocks carry frames.
//! 4. A statistics block says what the capture lost; the last of an interface counts.
//! 5. Every other block (names, secrets, comments) is skipped by its length, however long it is.

use super::link::LinkType;
use super::window::{RECORD_BYTES_MAX, Window};
use super::{Endian, Fault, Record};

/// A section header's type: the same in both byte orders.
pub(crate) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// A block's type and length before, and its length again behind.
const FRAMING_BYTES: usize = 12;
/// Interfaces of one section; a capture of all interfaces of a large router has some hundreds.
const INTERFACES_MAX: usize = 65_536;

const OPTION_END: u16 = 0;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;
/// Of statistics: frames that the interface, and that the system lost.
const OPTION_INTERFACE_LOST: u16 = 5;
const OPTION_SYSTEM_LOST: u16 = 7;

/// Statistics that are read; they have some hundred bytes.
const STATISTICS_BYTES_MAX: usize = 4096;

/// One interface as its block describes it.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: LinkType,
    snapshot_bytes: u32,
    unit: Tick,
    offset_s: i64,
    /// Frames that the capture lost of it, as it says itself.
    lost: Option<u64>,
}

/// The unit of an interface's timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tick {
    /// So many nanoseconds.
    Nanoseconds(u64),
    /// So many to a second, which is not a divisor of 10⁹.
    PerSecond(u128),
}

impl Tick {
    /// Reads the option: a power of ten, or of two with the highest bit.
    fn of(resolution: u8) -> Self {
        let power = u32::from(resolution & 0x7f);
        if resolution & 0x80 != 0 {
            return Tick::PerSecond(1 << power.min(127));
        }
        match power {
            0..=9 => Tick::Nanoseconds(10u64.pow(9 - power)),
            _ => Tick::PerSecond(10u128.pow(power.min(38))),
        }
    }

    /// Returns `ticks` in nanoseconds, at most what fits.
    #[inline]
    fn ns(self, ticks: u64) -> u64 {
        match self {
            Tick::Nanoseconds(each) => ticks.saturating_mul(each),
            Tick::PerSecond(rate) => {
                let whole = u128::from(ticks) / rate;
                let rest = u128::from(ticks) % rate;
                let part = rest.saturating_mul(1_000_000_000) / rate;
                u64::try_from(whole.saturating_mul(1_000_000_000).saturating_add(part))
                    .unwrap_or(u64::MAX)
            }
        }
    }
}

/// A file of this format.
#[derive(Default)]
pub(crate) struct Pcapng {
    endian: Endian,
    interfaces: Vec<Interface>,
    /// Frames that the sections before lost.
    lost_before: Option<u64>,
}

impl Pcapng {
    /// Returns how many frames the capture lost, as it says itself.
    pub(crate) fn lost(&self) -> Option<u64> {
        let all = self.interfaces.iter().map(|interface| interface.lost);
        all.chain([self.lost_before])
            .flatten()
            .reduce(u64::saturating_add)
    }

    /// Finds the next frame, over all blocks before it.
    #[inline]
    pub(crate) fn next_record(&mut self, window: &mut Window<'_>) -> Result<Option<Record>, Fault> {
        loop {
            match window.fill(FRAMING_BYTES)? {
                0 => return Ok(None),
                visible if visible < FRAMING_BYTES => return Err(Fault::Cut),
                _ => {}
            }
            if window.bytes().starts_with(&SECTION) {
                self.section(window.bytes())?;
            }
            let kind = self.field(window.bytes(), 0)?;
            let length = self.field(window.bytes(), 4)? as usize;
            if length < FRAMING_BYTES || !length.is_multiple_of(4) {
                return Err(Fault::Wrong("a block with an impossible length"));
            }
            let is_frame = matches!(kind, ENHANCED_PACKET | SIMPLE_PACKET | PACKET);
            if kind == STATISTICS && length <= STATISTICS_BYTES_MAX {
                window.need(length)?;
                self.statistics(&window.bytes()[8..length - 4]);
                window.consume(length);
                continue;
            }
            if !is_frame && kind != INTERFACE {
                skip_block(window, length)?;
                continue;
            }
            if length > RECORD_BYTES_MAX {
                return Err(Fault::Wrong("a block of more than 4 MiB"));
            }
            window.need(length)?;
            let block = &window.bytes()[..length];
            if self.field(block, length - 4)? as usize != length {
                return Err(Fault::Wrong("a block whose two lengths differ"));
            }
            if !is_frame {
                self.interface(&block[8..length - 4])?;
                window.consume(length);
                continue;
            }
            return Ok(Some(self.frame(kind, &block[8..length - 4])?));
        }
    }

    #[inline]
    fn field(&self, bytes: &[u8], at: usize) -> Result<u32, Fault> {
        self.endian.u32(bytes, at).ok_or(Fault::Cut)
    }

    #[cold]
    fn section(&mut self, block: &[u8]) -> Result<(), Fault> {
        self.endian = match block.get(8..12) {
            Some([0x4d, 0x3c, 0x2b, 0x1a]) => Endian::Little,
            Some([0x1a, 0x2b, 0x3c, 0x4d]) => Endian::Big,
            _ => return Err(Fault::Wrong("a section without a byte order")),
        };
        self.lost_before = self.lost();
        self.interfaces.clear();
        Ok(())
    }

    #[cold]
    fn interface(&mut self, body: &[u8]) -> Result<(), Fault> {
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(Fault::Wrong("more than 65536 interfaces"));
        }
        let short = Fault::Wrong("an interface block that is too short");
        let link = self.endian.u16(body, 0).zip(self.endian.u32(body, 4));
        let Some((link, snapshot_bytes)) = link else {
            return Err(short);
        };
        let mut interface = Interface {
            link: LinkType(link),
            snapshot_bytes,
            unit: Tick::Nanoseconds(1000),
            offset_s: 0,
            lost: None,
        };
        let endian = self.endian;
        self.options(body.get(8..), |code, value| match (code, value) {
            (OPTION_RESOLUTION, &[resolution, ..]) => interface.unit = Tick::of(resolution),
            (OPTION_OFFSET, value) => {
                interface.offset_s = endian.u64(value, 0).map_or(0, |offset| offset as i64);
            }
            _ => {}
        });
        self.interfaces.push(interface);
        Ok(())
    }

    #[cold]
    fn statistics(&mut self, body: &[u8]) {
        let mut lost = None::<u64>;
        self.options(body.get(12..), |code, value| {
            if matches!(code, OPTION_INTERFACE_LOST | OPTION_SYSTEM_LOST)
                && let Some(number) = self.endian.u64(value, 0)
            {
                lost = Some(lost.unwrap_or(0).saturating_add(number));
            }
        });
        let index = self.endian.u32(body, 0).map(|index| index as usize);
        let interface = index.and_then(|index| self.interfaces.get_mut(index));
        if let Some(interface) = interface {
            interface.lost = lost.or(interface.lost);
        }
    }

    /// Hands over the options of a block, each with its code, up to their end.
    fn options(&self, options: Option<&[u8]>, mut take: impl FnMut(u16, &[u8])) {
        let mut options = options.unwrap_or_default();
        while let Some((code, length)) =
            self.endian.u16(options, 0).zip(self.endian.u16(options, 2))
        {
            let length = usize::from(length);
            let value = options.get(4..4 + length);
            let Some(value) = value.filter(|_| code != OPTION_END) else {
                return;
            };
            take(code, value);
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }

    #[inline]
    fn frame(&self, kind: u32, body: &[u8]) -> Result<Record, Fault> {
        let short = || Fault::Wrong("a packet block that is too short");
        let (index, header) = match kind {
            SIMPLE_PACKET => (0, 4),
            PACKET => (usize::from(self.endian.u16(body, 0).ok_or_else(short)?), 20),
            _ => (self.endian.u32(body, 0).ok_or_else(short)? as usize, 20),
        };
        let interface = self.interfaces.get(index).ok_or(Fault::Wrong(
            "a frame of an interface that was not described",
        ))?;
        let field = |at| self.endian.u32(body, at).ok_or_else(short);
        let (ticks, captured, wire_bytes) = if kind == SIMPLE_PACKET {
            let wire_bytes = field(0)?;
            let limit = match interface.snapshot_bytes {
                0 => u32::MAX,
                limit => limit,
            };
            (0, wire_bytes.min(limit) as usize, wire_bytes)
        } else {
            let ticks = (u64::from(field(4)?) << 32) | u64::from(field(8)?);
            (ticks, field(12)? as usize, field(16)?)
        };
        if captured > body.len() - header {
            return Err(Fault::Wrong("a frame longer than its block"));
        }
        let ns = interface.unit.ns(ticks);
        let offset_ns = interface.offset_s.saturating_mul(1_000_000_000);
        Ok(Record {
            bytes: FRAMING_BYTES + body.len(),
            start: 8 + header,
            captured,
            wire_bytes: wire_bytes.max(captured as u32),
            time_ns: ns.saturating_add_signed(offset_ns),
            link: interface.link,
        })
    }
}

/// Consumes a block that nothing is wanted of.
#[cold]
fn skip_block(window: &mut Window<'_>, length: usize) -> Result<(), Fault> {
    let mut left = length;
    while left > 0 {
        let step = left.min(64 * 1024);
        window.need(step)?;
        window.consume(step);
        left -= step;
    }
    Ok(())
}
