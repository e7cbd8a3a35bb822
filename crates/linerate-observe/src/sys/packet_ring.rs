//! A ring of received frames that the kernel fills and this process reads in place (TPACKET_V3,
//! Documentation/networking/packet_mmap.rst).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::memory::SharedMemory;

/// From `include/uapi/linux/if_packet.h`, which libc does not have in full.
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TPACKET_V3: libc::c_int = 2;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
/// Where `block_status` stands in a block: after `version` and `offset_to_priv`.
const STATUS_AT: usize = 8;
/// Longest that the kernel keeps a block that is not full.
const RETIRE_MS: u32 = 20;
/// Bytes of one block, a power of two and of whole pages.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;
/// The kernel wants a size of frames although frames of version 3 are as long as they are.
const FRAME_BYTES: usize = 2048;

/// `struct tpacket_req3`.
#[repr(C)]
struct Request {
    block_bytes: u32,
    blocks: u32,
    frame_bytes: u32,
    frames: u32,
    retire_ms: u32,
    private_bytes: u32,
    features: u32,
}

/// Frames that a capture saw and lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureCounts {
    /// Frames that passed, the lost ones included.
    pub frames: u64,
    /// Frames for which the ring had no room.
    pub drops: u64,
}

/// A packet socket with its ring.
#[derive(Debug)]
pub(crate) struct PacketRing {
    fd: OwnedFd,
    memory: SharedMemory,
    blocks: usize,
    /// The block that the kernel fills next.
    next: usize,
}

/// Which frames a ring takes.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The device, by its index in the calling thread's network namespace.
    pub(crate) device: i32,
    /// The program that says how many bytes of a frame are kept.
    pub(crate) program: Vec<libc::sock_filter>,
    /// Whether frames that this host sends are left out: over loopback each is received too.
    pub(crate) received_only: bool,
}

impl PacketRing {
    /// Opens a ring of `blocks` blocks. Needs CAP_NET_RAW in the namespace's user namespace.
    pub(crate) fn open(wanted: &Wanted, blocks: usize) -> io::Result<Self> {
        let fd = socket()?;
        set(&fd, libc::SOL_PACKET, PACKET_VERSION, &TPACKET_V3)?;
        if wanted.received_only {
            set(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32)?;
        }
        filter(&fd, &wanted.program)?;
        let request = Request {
            block_bytes: BLOCK_BYTES as u32,
            blocks: blocks as u32,
            frame_bytes: FRAME_BYTES as u32,
            frames: (blocks * BLOCK_BYTES / FRAME_BYTES) as u32,
            retire_ms: RETIRE_MS,
            private_bytes: 0,
            features: 0,
        };
        set(&fd, libc::SOL_PACKET, PACKET_RX_RING, &request)?;
        let ring = Self {
            memory: SharedMemory::map(&fd, blocks * BLOCK_BYTES)?,
            fd,
            blocks,
            next: 0,
        };
        bind(&ring.fd, wanted.device, libc::ETH_P_ALL as u16)?;
        // What came before the binding is from other devices; its counts are not ours.
        ring.counted()?;
        Ok(ring)
    }

    /// Waits for up to `most`, and lends `take` the next block that the kernel has finished; the
    /// block goes back to it afterwards. Returns whether there was one.
    ///
    /// A poll(2) at most for each block, and one relaxed store to give it back.
    pub(crate) fn read(&mut self, most: Duration, take: impl FnOnce(&[u8])) -> io::Result<bool> {
        if self.status().load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            self.wait(most)?;
            if self.status().load(Ordering::Acquire) & TP_STATUS_USER == 0 {
                return Ok(false);
            }
        }
        let begin = self.memory.at(self.at());
        // SAFETY: the block lies inside the mapping, and while its status is TP_STATUS_USER the
        // kernel does not write to it.
        let block = unsafe { std::slice::from_raw_parts(begin, BLOCK_BYTES) };
        take(block);
        self.status().store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        Ok(true)
    }

    /// Returns what the kernel counted since the last call.
    pub(crate) fn counted(&self) -> io::Result<CaptureCounts> {
        // `struct tpacket_stats_v3`: packets, those dropped included, drops, freezes.
        let [frames, drops, _] = self.option(libc::SOL_PACKET, PACKET_STATISTICS)?;
        Ok(CaptureCounts {
            frames: frames.into(),
            drops: drops.into(),
        })
    }

    /// Returns the words of an option.
    fn option<const N: usize>(
        &self,
        level: libc::c_int,
        name: libc::c_int,
    ) -> io::Result<[u32; N]> {
        let mut words = [0_u32; N];
        let mut length = size_of_val(&words) as libc::socklen_t;
        let (fd, words_at) = (self.fd.as_raw_fd(), words.as_mut_ptr().cast());
        // SAFETY: both pointers are to locals, and `length` is that of the words.
        let asked = unsafe { libc::getsockopt(fd, level, name, words_at, &raw mut length) };
        check(asked).map(|_| words)
    }

    fn at(&self) -> usize {
        self.next * BLOCK_BYTES
    }

    fn status(&self) -> &AtomicU32 {
        let status = self.memory.at(self.at() + STATUS_AT);
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned, since blocks are whole
        // pages; the kernel writes it as one word.
        unsafe { AtomicU32::from_ptr(status.cast()) }
    }

    fn wait(&self, most: Duration) -> io::Result<()> {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN | libc::POLLERR,
            revents: 0,
        };
        let most_ms = most.as_millis().min(60_000) as libc::c_int;
        // SAFETY: one structure, a local.
        match check(unsafe { libc::poll(&raw mut poll, 1, most_ms) }) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            // A device that went away says so by an error of the socket.
            _ if poll.revents & libc::POLLERR != 0 => self.error(),
            _ => Ok(()),
        }
    }

    fn error(&self) -> io::Result<()> {
        let [error] = self.option(libc::SOL_SOCKET, libc::SO_ERROR)?;
        match error.cast_signed() {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Returns the number of a device in the calling thread's network namespace.
pub(crate) fn device_index(device: &str) -> Option<i32> {
    let name = std::ffi::CString::new(device).ok()?;
    // SAFETY: a string that ends with a zero and lives across the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    i32::try_from(index).ok().filter(|&index| index > 0)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set<T>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let value = std::ptr::from_ref(value);
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at a value of that size.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.cast(), length) };
    check(done).map(|_| ())
}

/// Hangs a program on a socket: it says how many bytes of each frame are kept, none if 0.
fn filter(fd: &OwnedFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel copies the instructions during the call, and writes none.
    let filter = program.as_ptr().cast_mut();
    let program = libc::sock_fprog { len, filter };
    set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Returns a packet socket that receives nothing until it is bound.
fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers only; protocol 0 receives nothing.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the ARPHRD type of a device, which says what frames look like. Needs CAP_NET_RAW.
pub(crate) fn hardware_type(device: i32) -> io::Result<u16> {
    let fd = socket()?;
    bind(&fd, device, 0)?;
    let mut address = address(0, 0);
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: both pointers are to locals, and `length` is that of the address.
    let asked =
        unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    check(asked).map(|_| address.sll_hatype)
}

fn address(device: i32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: device,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

fn bind(fd: &OwnedFd, device: i32, protocol: u16) -> io::Result<()> {
    let address = address(device, protocol);
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at an address of that size.
    let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
    check(bound).map(|_| ())
}
