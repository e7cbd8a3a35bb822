//! Captures as a sequence of frames: pcap and pcapng, plain or in gzip, from any input.
//!
//! Nothing of the file is believed: every length has a limit, and a file that is cut or damaged
//! gives the frames before the damage and says where it is.

use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;

/// Room for a block of the input.
mod block;
/// What can be wrong with a capture.
mod error;
/// The input, read block by block.
mod input;
/// Link types and their names.
mod link;
/// The classic format.
mod pcap;
/// The block format.
mod pcapng;
/// A sliding window on the input.
mod window;

pub use block::{Block, Piece};
pub use error::CaptureError;
pub use input::{Input, NextPiece};
pub use link::LinkType;

use error::Fault;
use window::Window;

/// The bytes that every gzip member begins with (RFC 1952, section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// One captured frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its number in the file, from 1, as other programs count.
    pub number: u64,
    /// When it was captured, in nanoseconds since 1970.
    pub time_ns: u64,
    /// What it begins with.
    pub link: LinkType,
    /// What was captured of it.
    pub bytes: &'a [u8],
    /// Its length as it was, in bytes; more than `bytes` where the capture cut it.
    pub wire_bytes: u32,
}

/// The two formats.
enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// Reads one capture.
pub struct Reader<'a> {
    window: Window<'a>,
    format: Format,
    frames: u64,
    /// Bytes of the record given out last, consumed when the next is asked for.
    held: usize,
    damage: Option<String>,
    packed: bool,
}

impl<'a> Reader<'a> {
    /// Opens a capture: finds out its format and reads the first header.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, is empty, or is not a capture of a known format and version.
    pub fn new(input: impl Read + Send + 'a) -> Result<Self, CaptureError> {
        Self::read_by(input, Input::when_wanted)
    }

    /// Opens a capture that is read by what `begin` makes of the input: by a thread ahead of who asks for frames,
    /// perhaps, which this room has none of.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn read_by(
        input: impl Read + Send + 'a,
        begin: impl FnOnce(Input<'a>) -> NextPiece<'a>,
    ) -> Result<Self, CaptureError> {
        let (input, packed) = unpack(input)?;
        let mut window = Window::new(begin(Input::new(input)));
        let format = open(&mut window)?;
        Ok(Self {
            window,
            format,
            frames: 0,
            held: 0,
            damage: None,
            packed,
        })
    }

    /// Returns the next frame, or nothing at the end. Behind damage there is nothing more.
    ///
    /// The frame is a view into the window: nothing is copied or allocated.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        if self.damage.is_some() {
            return None;
        }
        let at_bytes = self.window.position_bytes();
        self.window.consume(std::mem::take(&mut self.held));
        let found = match &mut self.format {
            Format::Pcap(format) => format.next_record(&mut self.window),
            Format::Pcapng(format) => format.next_record(&mut self.window),
        };
        let record = match found {
            Ok(record) => record?,
            Err(fault) => {
                self.damage = Some(fault.words(at_bytes));
                return None;
            }
        };
        self.frames += 1;
        self.held = record.bytes;
        let bytes = &self.window.bytes()[record.start..record.start + record.captured];
        Some(Frame {
            number: self.frames,
            time_ns: record.time_ns,
            link: record.link,
            bytes,
            wire_bytes: record.wire_bytes,
        })
    }

    /// Returns what is wrong with the capture, as far as it was read.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Returns how many frames were read.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns how many frames whoever captured lost, as far as the capture says.
    pub(crate) fn lost(&self) -> Option<u64> {
        match &self.format {
            Format::Pcap(_) => None,
            Format::Pcapng(format) => format.lost(),
        }
    }

    /// Returns how many bytes of the unpacked capture were read.
    pub fn position_bytes(&self) -> u64 {
        self.window.position_bytes()
    }

    /// Returns the format in words: `pcap`, `pcapng`, with `in gzip` if it is.
    pub(crate) fn format(&self) -> &'static str {
        match (&self.format, self.packed) {
            (Format::Pcap(_), false) => "pcap",
            (Format::Pcap(_), true) => "pcap in gzip",
            (Format::Pcapng(_), false) => "pcapng",
            (Format::Pcapng(_), true) => "pcapng in gzip",
        }
    }
}

/// Returns the input as it was before it was packed by gzip, and whether it was.
fn unpack<'a>(
    mut input: impl Read + Send + 'a,
) -> Result<(Box<dyn Read + Send + 'a>, bool), CaptureError> {
    let mut first = Vec::with_capacity(GZIP_MAGIC.len());
    input
        .by_ref()
        .take(GZIP_MAGIC.len() as u64)
        .read_to_end(&mut first)
        .map_err(CaptureError::Read)?;
    let packed = first == GZIP_MAGIC;
    let whole = Cursor::new(first).chain(input);
    Ok(if packed {
        (Box::new(MultiGzDecoder::new(whole)), true)
    } else {
        (Box::new(whole), false)
    })
}

/// A frame's place in the window.
struct Record {
    /// Bytes of all of the record.
    bytes: usize,
    start: usize,
    captured: usize,
    wire_bytes: u32,
    time_ns: u64,
    link: LinkType,
}

fn open(window: &mut Window<'_>) -> Result<Format, CaptureError> {
    let visible = window.fill(4)?;
    let Some(&magic) = window.bytes().first_chunk::<4>() else {
        return Err(match visible {
            0 => CaptureError::Empty,
            _ => CaptureError::NoHeader,
        });
    };
    if magic == pcapng::SECTION {
        return Ok(Format::Pcapng(pcapng::Pcapng::default()));
    }
    match pcap::Order::of(magic) {
        Some(order) => Ok(Format::Pcap(pcap::Pcap::open(order, window)?)),
        None => Err(CaptureError::Foreign(magic)),
    }
}

/// The byte order of a file's writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Endian {
    #[default]
    Little,
    Big,
}

impl Endian {
    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        self.read(bytes, at, u16::from_le_bytes, u16::from_be_bytes)
    }

    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        self.read(bytes, at, u32::from_le_bytes, u32::from_be_bytes)
    }

    fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.read(bytes, at, u64::from_le_bytes, u64::from_be_bytes)
    }

    #[inline]
    fn read<const N: usize, T>(
        self,
        bytes: &[u8],
        at: usize,
        little: impl FnOnce([u8; N]) -> T,
        big: impl FnOnce([u8; N]) -> T,
    ) -> Option<T> {
        let bytes = bytes.get(at..at + N)?.try_into().ok()?;
        Some(match self {
            Endian::Little => little(bytes),
            Endian::Big => big(bytes),
        })
    }
}
