//! Why a capture cannot be read at all, and what is wrong with one that can.

use super::link::LinkType;

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The input itself could not be read.
    #[error("cannot read the capture")]
    Read(#[source] std::io::Error),
    /// The input has no bytes.
    #[error("the capture is empty")]
    Empty,
    /// The first bytes are those of no known format.
    #[error("not a capture: neither pcap nor pcapng begins with {0:02x?}")]
    Foreign([u8; 4]),
    /// The format is known, but its version is not.
    #[error("{format} of version {major}.{minor}, which is not known")]
    Version {
        /// The format: pcap or pcapng.
        format: &'static str,
        /// The major version.
        major: u16,
        /// The minor version.
        minor: u16,
    },
    /// The input ends inside the file's first header.
    #[error("the capture ends inside its first header")]
    NoHeader,
    /// The frames are of a link type from which no IP packet can be taken.
    #[error("frames of {0}, which is not decoded")]
    Link(LinkType),
}

/// Why there is no next record.
#[derive(Debug)]
pub(super) enum Fault {
    /// The capture ends inside it: the program that wrote it was stopped, or the disk was full.
    Cut,
    /// It cannot be, for this reason: nothing behind it was read.
    Wrong(&'static str),
    /// Reading failed: a disk error, or a damaged gzip stream.
    Read(CaptureError),
}

impl From<CaptureError> for Fault {
    fn from(error: CaptureError) -> Self {
        Fault::Read(error)
    }
}

impl Fault {
    /// Says what is wrong with the record that begins `at_bytes` from the start of the unpacked capture.
    #[cold]
    pub(super) fn words(self, at_bytes: u64) -> String {
        let why = match self {
            Fault::Cut => return format!("the capture ends inside the record at byte {at_bytes}"),
            Fault::Wrong(what) => {
                return format!(
                    "the record at byte {at_bytes} cannot be ({what}); nothing behind it was read"
                );
            }
            Fault::Read(CaptureError::Read(cause)) => cause.to_string(),
            Fault::Read(error) => error.to_string(),
        };
        format!("reading ended at byte {at_bytes}: {why}")
    }
}
