//! When and where a segment was captured.

use std::num::NonZeroU64;

use serde::Serialize;

/// When and where a segment was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// When, in nanoseconds since 1970.
    pub time_ns: u64,
    /// Its frame; none for what the end of the capture ended.
    pub frame: Option<FrameId>,
}

/// A frame by file and number, as other programs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(into = "Written")]
pub struct FrameId(NonZeroU64);

impl FrameId {
    const FILE_SHIFT: u32 = 44;

    /// Returns the frame `number`, from 1, of the file `file`, from 0.
    pub(crate) fn new(file: u32, number: u64) -> Option<Self> {
        NonZeroU64::new((u64::from(file) << Self::FILE_SHIFT) | number).map(Self)
    }

    /// Returns the file's place among those that were read, from 0.
    pub(crate) fn file(self) -> u32 {
        (self.0.get() >> Self::FILE_SHIFT) as u32
    }

    /// Returns the number of the frame in its file, from 1.
    pub fn number(self) -> u64 {
        self.0.get() & ((1 << Self::FILE_SHIFT) - 1)
    }
}

/// A frame as documents write it.
#[derive(Serialize, schemars::JsonSchema)]
struct Written {
    file: u32,
    number: u64,
}

impl From<FrameId> for Written {
    fn from(frame: FrameId) -> Self {
        Self {
            file: frame.file(),
            number: frame.number(),
        }
    }
}
