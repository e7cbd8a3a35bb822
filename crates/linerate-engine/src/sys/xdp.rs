//! AF_XDP: frames that go to a device past the socket layer, routing, netfilter and queueing.
//!
//! Copy mode (XDP_COPY), in which the kernel makes a packet of each frame within the call that asks
//! it to: it needs nothing of the device, changes nothing of it, and ends with the descriptor. Zero
//! copy would take a queue of a real card from the host, receive ring included.
//!
//! The frames carry the addresses and ports of one flow, so that nothing else can be sent.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::sys::buffer::PageBuffer;
use crate::sys::route::Way;
use crate::sys::socket;

/// Frames that there is memory for: the largest batch, and as many that a device still holds.
const FRAMES: usize = 2048;
/// Room of one; an Ethernet frame of 1518 B fits. The memory is locked: 4 MiB.
const FRAME_BYTES: usize = 2048;
const ETHERNET_BYTES: usize = 14;
/// Looks at a busy queue, and the time between two: the kernel lets go of it only some time after its
/// socket was closed, that of the trial before.
const BUSY_LOOKS: u32 = 100;
const BUSY_LOOK: Duration = Duration::from_millis(5);
const UDP_BYTES: usize = 8;
/// Hops that packets may take, as the kernel's own (IPDEFTTL).
const HOPS: u8 = 64;
/// Frames of one call, which takes 32 by default. XDP_MAX_TX_SKB_BUDGET of linux/if_xdp.h;
/// a kernel without it is called repeatedly.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// A ring that is shared with the kernel: numbers of entries produced and consumed, and the entries.
struct Ring {
    mapping: NonNull<libc::c_void>,
    bytes: usize,
    producer: usize,
    consumer: usize,
    entries: usize,
}

impl Ring {
    fn map(
        fd: RawFd,
        at: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        entry_bytes: usize,
    ) -> io::Result<Self> {
        let bytes = offsets.desc as usize + FRAMES * entry_bytes;
        // SAFETY: maps a ring of `fd` at an address of the kernel's choice, which touches nothing of ours.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd,
                at,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            mapping: NonNull::new(mapping).ok_or(io::ErrorKind::OutOfMemory)?,
            bytes,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            entries: offsets.desc as usize,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        self.index(self.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.index(self.consumer)
    }

    fn index(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the mapping reaches beyond `offset`, which the kernel told.
        let at: NonNull<AtomicU32> = unsafe { self.mapping.byte_add(offset) }.cast();
        // SAFETY: the kernel keeps an aligned u32 there, in a mapping that lives as long as `self`; both
        // sides access it atomically.
        unsafe { at.as_ref() }
    }

    /// Returns where entry number `at` lies, of a ring of entries of this type.
    fn entry<T>(&self, at: u32) -> NonNull<T> {
        let offset = self.entries + (at as usize % FRAMES) * size_of::<T>();
        // SAFETY: FRAMES entries of this size lie in the mapping from `entries` on.
        unsafe { self.mapping.byte_add(offset).cast() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of that length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.bytes) };
    }
}

/// Frames of one flow of datagrams, and the socket that they go through.
pub(crate) struct Frames {
    socket: OwnedFd,
    sent: Ring,
    completed: Ring,
    /// Last but its own, so that the kernel reads it no more when it goes.
    memory: PageBuffer,
    /// Frames that are ours, the next ones to be used at the end: those still in the caches.
    free: Vec<u32>,
    header: Header,
    payload_bytes: usize,
    batch: usize,
    way: Way,
}

// SAFETY: the mappings are owned like the memory of a Box, and reachable only through `self`.
unsafe impl Send for Frames {}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames")
            .field("way", &self.way)
            .finish_non_exhaustive()
    }
}

/// Returns why frames cannot be sent, where the kernel refused to `doing`.
fn told(doing: &str, device: &str, error: &io::Error) -> String {
    let why = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => " (needs CAP_NET_RAW in the network namespace)",
        Some(libc::EAFNOSUPPORT) => " (a kernel without CONFIG_XDP_SOCKETS)",
        Some(libc::EBUSY) => " (another program, or another flow, sends through it like this)",
        Some(libc::ENOBUFS) => " (4 MiB cannot be locked: `ulimit -l`)",
        _ => "",
    };
    format!("{doing} {device}: {error}{why}")
}

impl Frames {
    /// Opens a socket on `way` for datagrams of up to `payload_bytes` between these ends, `batch` of
    /// them a call; the only place that allocates.
    pub(crate) fn open(
        way: Way,
        (local, remote): (SocketAddr, SocketAddr),
        tos: u8,
        payload_bytes: usize,
        batch: usize,
    ) -> Result<Self, String> {
        let header = Header::new(&way, local, remote, tos);
        let packet_bytes = header.bytes() - ETHERNET_BYTES + payload_bytes;
        let most_bytes = way.mtu_bytes.min(FRAME_BYTES - ETHERNET_BYTES);
        if packet_bytes > most_bytes {
            return Err(format!(
                "a packet of {packet_bytes} B would not fit: AF_XDP frames are not fragmented, and {} \
                 takes packets of {most_bytes} B",
                way.name
            ));
        }
        let socket = socket::new(libc::AF_XDP, libc::SOCK_RAW, 0)
            .map_err(|error| told("opening an AF_XDP socket for", &way.name, &error))?;
        let fd = socket.as_raw_fd();
        let mut memory = PageBuffer::new(FRAMES * FRAME_BYTES);
        for frame in memory.as_mut_slice().chunks_exact_mut(FRAME_BYTES) {
            header.write(frame, payload_bytes);
        }
        let (sent, completed) = rings(fd, &mut memory)
            .map_err(|error| told("preparing an AF_XDP socket for", &way.name, &error))?;
        // What a kernel does not know it does in several calls.
        let _ = set(fd, XDP_MAX_TX_SKB_BUDGET, &(batch.max(32) as u32));
        bind(fd, &way)
            .map_err(|error| told("binding an AF_XDP socket to queue 0 of", &way.name, &error))?;
        Ok(Self {
            socket,
            sent,
            completed,
            memory,
            free: (0..FRAMES as u32).collect(),
            header,
            payload_bytes,
            batch: batch.clamp(1, FRAMES / 2),
            way,
        })
    }

    /// Returns how many frames the next call may carry.
    pub(crate) fn count(&self) -> usize {
        self.batch.min(self.free.len())
    }

    /// Returns the payload of frame number `at` of the next call, of its full size, for writing.
    pub(crate) fn payload(&mut self, at: usize) -> &mut [u8] {
        let header_bytes = self.header.bytes();
        let payload_bytes = self.payload_bytes;
        &mut self.frame(at)[header_bytes..][..payload_bytes]
    }

    fn frame(&mut self, at: usize) -> &mut [u8] {
        let number = self.free[self.free.len() - 1 - at] as usize;
        &mut self.memory.as_mut_slice()[number * FRAME_BYTES..][..FRAME_BYTES]
    }

    /// Hands over the first `count` frames, and asks the kernel to send them; returns how many it
    /// has taken. Those that wait for memory of this host or for its device are taken at a later
    /// call: while any do, no others are handed over. None is taken where all are with the device.
    pub(crate) fn send(&mut self, count: usize) -> io::Result<usize> {
        let begin = self.sent.producer().load(Ordering::Relaxed);
        if count == 0 || self.sent.consumer().load(Ordering::Acquire) != begin {
            self.ask()?;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let frame_bytes = self.header.bytes() + self.payload_bytes;
        for at in 0..count {
            if let Header::V6(_) = self.header {
                let frame = &mut self.frame(at)[..frame_bytes];
                checksum_v6(frame);
            }
            let number = self.free[self.free.len() - 1 - at];
            let descriptor = libc::xdp_desc {
                addr: u64::from(number) * FRAME_BYTES as u64,
                len: frame_bytes as u32,
                options: 0,
            };
            let entry = self.sent.entry(begin.wrapping_add(at as u32));
            // SAFETY: an aligned entry of the mapped ring, which the kernel does not read before
            // the producer's number says so.
            unsafe { entry.write(descriptor) };
        }
        self.free.truncate(self.free.len() - count);
        let end = begin.wrapping_add(count as u32);
        self.sent.producer().store(end, Ordering::Release);
        self.ask()?;
        Ok(count)
    }

    /// Makes the kernel take what was handed over, unless it has no room, and takes frames back that
    /// it is done with.
    fn ask(&mut self) -> io::Result<()> {
        let goal = self.sent.producer().load(Ordering::Relaxed);
        let mut taken = self.sent.consumer().load(Ordering::Acquire);
        while taken != goal {
            // SAFETY: a message without bytes and address: the kernel reads nothing of ours.
            let result = unsafe {
                let fd = self.socket.as_raw_fd();
                libc::sendto(
                    fd,
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            let error = io::Error::last_os_error();
            let before = taken;
            taken = self.sent.consumer().load(Ordering::Acquire);
            let full = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS, libc::EINTR];
            if result < 0
                && !error
                    .raw_os_error()
                    .is_some_and(|code| full.contains(&code))
            {
                return Err(error);
            }
            if taken == before {
                break;
            }
        }
        self.take_back();
        Ok(())
    }

    fn take_back(&mut self) {
        let from = self.completed.consumer().load(Ordering::Relaxed);
        let to = self.completed.producer().load(Ordering::Acquire);
        for at in 0..to.wrapping_sub(from) {
            let entry = self.completed.entry::<u64>(from.wrapping_add(at));
            // SAFETY: an aligned entry of the mapped ring, which the kernel has written.
            let address = unsafe { entry.read() };
            self.free.push((address / FRAME_BYTES as u64) as u32);
        }
        self.completed.consumer().store(to, Ordering::Release);
    }

    /// Makes the kernel take what it has not yet; returns whether it has all.
    pub(crate) fn is_flushed(&mut self) -> bool {
        let asked = self.ask().is_ok();
        let goal = self.sent.producer().load(Ordering::Relaxed);
        asked && self.sent.consumer().load(Ordering::Acquire) == goal
    }
}

/// Gives the kernel the memory, and maps the rings.
fn rings(fd: RawFd, memory: &mut PageBuffer) -> io::Result<(Ring, Ring)> {
    let region = libc::xdp_umem_reg {
        addr: memory.as_mut_slice().as_mut_ptr() as u64,
        len: (FRAMES * FRAME_BYTES) as u64,
        chunk_size: FRAME_BYTES as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(fd, libc::XDP_UMEM_REG, &region)?;
    for ring in [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_TX_RING,
    ] {
        set(fd, ring, &(FRAMES as u32))?;
    }
    let none = libc::xdp_ring_offset {
        producer: 0,
        consumer: 0,
        desc: 0,
        flags: 0,
    };
    let mut offsets = libc::xdp_mmap_offsets {
        rx: none,
        tx: none,
        fr: none,
        cr: none,
    };
    let mut length = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `offsets`, and the length.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast(),
            &mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let descriptor_bytes = size_of::<libc::xdp_desc>();
    let sent = Ring::map(fd, libc::XDP_PGOFF_TX_RING, &offsets.tx, descriptor_bytes)?;
    let at = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
    let completed = Ring::map(fd, at, &offsets.cr, size_of::<u64>())?;
    Ok((sent, completed))
}

fn set<T>(fd: RawFd, option: libc::c_int, value: &T) -> io::Result<()> {
    socket::set_option(fd, libc::SOL_XDP, option, value)
}

fn bind(fd: RawFd, way: &Way) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: way.device,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    let bytes = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    let mut looks = 0;
    loop {
        // SAFETY: the kernel reads a sockaddr_xdp of its true length.
        if unsafe { libc::bind(fd, (&raw const address).cast(), bytes) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        looks += 1;
        if error.raw_os_error() != Some(libc::EBUSY) || looks == BUSY_LOOKS {
            return Err(error);
        }
        thread::sleep(BUSY_LOOK);
    }
}

/// The headers of a datagram's frame: Ethernet, IP, UDP.
#[derive(Debug)]
enum Header {
    V4([u8; ETHERNET_BYTES + 20 + UDP_BYTES]),
    V6([u8; ETHERNET_BYTES + 40 + UDP_BYTES]),
}

impl Header {
    fn new(way: &Way, local: SocketAddr, remote: SocketAddr, tos: u8) -> Self {
        let ethernet = |bytes: &mut [u8], kind: u16| {
            bytes[..6].copy_from_slice(&way.next_mac);
            bytes[6..12].copy_from_slice(&way.own_mac);
            bytes[12..14].copy_from_slice(&kind.to_be_bytes());
        };
        let ports = |bytes: &mut [u8]| {
            bytes[..2].copy_from_slice(&local.port().to_be_bytes());
            bytes[2..4].copy_from_slice(&remote.port().to_be_bytes());
        };
        match (local.ip().to_canonical(), remote.ip().to_canonical()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut bytes = [0; 42];
                ethernet(&mut bytes, 0x0800);
                // Version and length, DF, hops, UDP.
                bytes[14] = 0x45;
                bytes[15] = tos;
                bytes[20] = 0x40;
                bytes[22] = HOPS;
                bytes[23] = libc::IPPROTO_UDP as u8;
                bytes[26..30].copy_from_slice(&from.octets());
                bytes[30..34].copy_from_slice(&to.octets());
                ports(&mut bytes[34..]);
                Header::V4(bytes)
            }
            (from, to) => {
                let v6 = |address| match address {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                };
                let mut bytes = [0; 62];
                ethernet(&mut bytes, 0x86dd);
                bytes[14] = 0x60 | tos >> 4;
                bytes[15] = tos << 4;
                bytes[20] = libc::IPPROTO_UDP as u8;
                bytes[21] = HOPS;
                bytes[22..38].copy_from_slice(&v6(from));
                bytes[38..54].copy_from_slice(&v6(to));
                ports(&mut bytes[54..]);
                Header::V6(bytes)
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Header::V4(bytes) => bytes.len(),
            Header::V6(bytes) => bytes.len(),
        }
    }

    /// Writes the headers of a datagram of `payload_bytes` to the start of a frame. Over IPv4 it has
    /// no checksum, which RFC 768 allows; over IPv6 one that depends on the payload.
    fn write(&self, frame: &mut [u8], payload_bytes: usize) {
        let datagram_bytes = (UDP_BYTES + payload_bytes) as u16;
        match self {
            Header::V4(bytes) => {
                frame[..bytes.len()].copy_from_slice(bytes);
                frame[16..18].copy_from_slice(&(20 + datagram_bytes).to_be_bytes());
                let sum = folded(sum(&frame[14..34]));
                frame[24..26].copy_from_slice(&(!sum).to_be_bytes());
                frame[38..40].copy_from_slice(&datagram_bytes.to_be_bytes());
            }
            Header::V6(bytes) => {
                frame[..bytes.len()].copy_from_slice(bytes);
                frame[18..20].copy_from_slice(&datagram_bytes.to_be_bytes());
                frame[58..60].copy_from_slice(&datagram_bytes.to_be_bytes());
            }
        }
    }
}

/// Writes the checksum of a datagram over IPv6 (RFC 8200, section 8.1): addresses, protocol, length,
/// then the datagram with a checksum of 0.
fn checksum_v6(frame: &mut [u8]) {
    frame[60..62].fill(0);
    let length = (frame.len() - 54) as u64;
    let sum = sum(&frame[22..]) + length + libc::IPPROTO_UDP as u64;
    // 0 would mean none.
    let sum = match !folded(sum) {
        0 => 0xffff,
        sum => sum,
    };
    frame[60..62].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the sum of 16-bit words in network order (RFC 1071), not folded.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    words
        .map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0)))
        .sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way() -> Way {
        Way {
            device: 1,
            name: "eth0".to_owned(),
            mtu_bytes: 1500,
            own_mac: [2, 0, 0, 0, 0, 1],
            next_mac: [2, 0, 0, 0, 0, 2],
        }
    }

    /// The example of a header with its checksum, b861, that textbooks use (115 B from 192.168.0.1
    /// to 192.168.0.199).
    #[test]
    fn the_header_of_an_ipv4_packet_has_the_known_checksum() {
        let local = "192.168.0.1:4242".parse().unwrap();
        let remote = "192.168.0.199:4243".parse().unwrap();
        let header = Header::new(&way(), local, remote, 0);
        let mut frame = [0; 42];
        header.write(&mut frame, 115 - 28);
        assert_eq!(frame[24..26], [0xb8, 0x61]);
    }

    /// A packet whose checksum is right sums to all ones.
    #[test]
    fn a_datagram_over_ipv6_has_a_checksum_that_its_receiver_accepts() {
        let local = "[fd00::1]:4242".parse().unwrap();
        let remote = "[fd00::2]:4243".parse().unwrap();
        let header = Header::new(&way(), local, remote, 0xb8);
        let mut frame: Vec<u8> = (0..62 + 33).collect();
        header.write(&mut frame, 33);
        checksum_v6(&mut frame);
        let pseudo = sum(&frame[22..54]) + 41 + 17;
        assert_eq!(folded(pseudo + sum(&frame[54..])), 0xffff);
        assert_eq!(frame[14..16], [0x6b, 0x80]);
    }

    #[test]
    fn a_packet_larger_than_the_mtu_is_refused() {
        let local = "192.0.2.1:1".parse().unwrap();
        let remote = "192.0.2.2:2".parse().unwrap();
        let why = Frames::open(way(), (local, remote), 0, 1473, 1).unwrap_err();
        assert!(why.contains("1501 B would not fit"), "{why}");
    }
}
