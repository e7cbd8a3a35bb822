//! Why a capture cannot be read at all, and what is wrong with one that can.

use std::fmt;

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

/// What is wrong with a capture whose frames up to there were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// It ends inside a record: the program that wrote it was stopped, or the disk was full.
    Truncated {
        /// Where the record begins, in bytes from the start (of the unpacked capture).
        at_bytes: u64,
    },
    /// A record cannot be: nothing behind it was read.
    Corrupt {
        /// Where it begins, in bytes from the start (of the unpacked capture).
        at_bytes: u64,
        /// What cannot be.
        what: &'static str,
    },
    /// Reading failed: a disk error, or a damaged gzip stream.
    Unreadable {
        /// How far it was read, in bytes of the unpacked capture.
        at_bytes: u64,
        /// What the reader said.
        why: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Truncated { at_bytes } => {
                write!(f, "the capture ends inside the record at byte {at_bytes}")
            }
            Damage::Corrupt { at_bytes, what } => write!(
                f,
                "the record at byte {at_bytes} cannot be ({what}); nothing behind it was read"
            ),
            Damage::Unreadable { at_bytes, why } => {
                write!(f, "reading ended at byte {at_bytes}: {why}")
            }
        }
    }
}
