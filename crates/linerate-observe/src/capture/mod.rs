//! Frames of a device, as they pass: the first bytes of each, into a bounded ring.
//!
//! Off unless somebody asks, since it costs every frame of the device a copy of its first bytes and
//! shows what others do. The kernel counts what the ring had no room for, and so do we: a capture
//! says what it does not have.
//!
//! # Cost
//!
//! One wake-up for each block of 256 KiB or 20 ms; a frame costs the kernel its copy and this
//! process the reading of 48 bytes of header.

mod anonymous;
mod block;
mod introduced;
mod pcapng;
mod select;

use std::io;
use std::time::Duration;

pub use anonymous::Anonymiser;
pub use block::Frame;
pub use introduced::{Introductions, Whose};
pub use pcapng::{BLOCK_BYTES_MORE, Writer};
pub use select::{PORTS_MAX, Ports, Selection, has_end};

use crate::sys::clock::thread_cpu_ns;
pub use crate::sys::packet_ring::CaptureCounts;
use crate::sys::packet_ring::{BLOCK_BYTES, PacketRing, Wanted, device_index, hardware_type};

/// LINKTYPE of tcpdump.org: Ethernet.
pub const LINKTYPE_ETHERNET: u16 = 1;
/// LINKTYPE of tcpdump.org: bare IP packets.
pub const LINKTYPE_RAW: u16 = 101;
const ETHERNET_BYTES: usize = 14;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Fewest blocks of a ring: one to read, one to fill.
const BLOCKS_MIN: usize = 2;
/// ARPHRD types (include/uapi/linux/if_arp.h).
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;
const ARPHRD_NONE: u16 = 0xfffe;

/// What to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureConfig {
    /// Name of the device.
    pub device: String,
    /// Bytes of each frame that are kept, from its beginning.
    pub snap_bytes: u32,
    /// Memory of the ring, rounded to blocks of 256 KiB, two at the least.
    pub ring_bytes: usize,
    /// Ports of TCP or UDP that a frame must have.
    pub ports: Ports,
}

/// Why a capture cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is no such device.
    #[error("there is no device `{0}`")]
    NoDevice(String),
    /// The frames of the device are of a kind that is not known here.
    #[error("the frames of {device} are of a kind that is not known here (ARPHRD {kind})")]
    Kind {
        /// The device.
        device: String,
        /// Its hardware type.
        kind: u16,
    },
    /// More ports are asked for than the kernel can look for.
    #[error("a capture is of {PORTS_MAX} ports at the most, but this would be of {0}")]
    Ports(usize),
    /// The kernel does not let us.
    #[error("cannot capture on {device}{}", may_need_root(.source))]
    Open {
        /// The device.
        device: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

fn may_need_root(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ": it needs root or CAP_NET_RAW",
        _ => "",
    }
}

/// A capture under way on one device of the calling thread's network namespace.
#[derive(Debug)]
pub struct Capture {
    ring: PacketRing,
    link_type: u16,
    counts: CaptureCounts,
}

impl Capture {
    /// Begins; frames are kept by the kernel from here on.
    pub fn open(config: &CaptureConfig) -> Result<Self, CaptureError> {
        let device = &config.device;
        if let Ports::Own(ports) | Ports::Theirs(ports) = &config.ports
            && ports.len() > PORTS_MAX
        {
            return Err(CaptureError::Ports(ports.len()));
        }
        let index = device_index(device).ok_or_else(|| CaptureError::NoDevice(device.clone()))?;
        let blocks = (config.ring_bytes / BLOCK_BYTES).max(BLOCKS_MIN);
        let failed = |source| CaptureError::Open {
            device: device.clone(),
            source,
        };
        let kind = hardware_type(index).map_err(failed)?;
        let link_type = match kind {
            ARPHRD_ETHER | ARPHRD_LOOPBACK => LINKTYPE_ETHERNET,
            ARPHRD_NONE => LINKTYPE_RAW,
            kind => {
                let device = device.clone();
                return Err(CaptureError::Kind { device, kind });
            }
        };
        let is_loopback = kind == ARPHRD_LOOPBACK;
        let wanted = Wanted {
            device: index,
            program: select::program(link_type, &config.ports, is_loopback, config.snap_bytes),
            // Over loopback each frame that is sent is received as well.
            received_only: is_loopback,
        };
        let ring = PacketRing::open(&wanted, blocks).map_err(failed)?;
        Ok(Self {
            ring,
            link_type,
            counts: CaptureCounts::default(),
        })
    }

    /// Returns what its frames begin with, as a LINKTYPE of tcpdump.org.
    pub fn link_type(&self) -> u16 {
        self.link_type
    }

    /// Waits up to `most` for frames and shows them to `take`, a block at the most; returns how
    /// many there were. Fails when the device goes away.
    pub fn read(&mut self, most: Duration, mut take: impl FnMut(&Frame<'_>)) -> io::Result<usize> {
        let mut count = 0;
        self.ring.read(most, |block| {
            for frame in block::frames(block) {
                take(&frame);
                count += 1;
            }
        })?;
        Ok(count)
    }

    /// Returns the CPU time that the calling thread took so far: what following a capture costs.
    pub fn thread_cpu_ns() -> u64 {
        thread_cpu_ns()
    }

    /// Returns the frames seen and lost since the beginning.
    pub fn counts(&mut self) -> io::Result<CaptureCounts> {
        let since = self.ring.counted()?;
        self.counts.frames += since.frames;
        self.counts.drops += since.drops;
        Ok(self.counts)
    }
}

/// Returns the wall clock, which frames are stamped with.
pub fn unix_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}
