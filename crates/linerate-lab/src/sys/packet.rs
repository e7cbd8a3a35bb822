//! Raw frames from and to a device (`packet(7)`), many with each call.
//!
//! Every frame is preceded by the ten bytes of `struct virtio_net_hdr`, which carry whether the
//! checksum is still to be computed and whether the frame is a superframe. Passing them on
//! unread keeps both as they were.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::check;

/// Most frames with one call; a batch of full-size frames lasts 0.4 ms at 1 Gbit/s.
pub const BATCH_FRAMES_MAX: usize = 32;
/// Bytes before each frame.
pub const FRAME_PREFIX_BYTES: usize = 10;
/// What the socket may hold unread, if the kernel grants it: 20 ms at 1 Gbit/s, counted as the
/// kernel counts, which is about twice the frame.
const RECEIVE_BUFFER_BYTES: libc::c_int = 8 << 20;

/// From `include/uapi/linux/if_packet.h`, which libc does not have in full.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// A socket for the frames of one device.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
}

/// Room for the frames of one receiving call.
#[derive(Debug)]
pub struct Batch {
    frame_bytes_max: usize,
    bytes: Box<[u8]>,
    lengths: [usize; BATCH_FRAMES_MAX],
    count: usize,
}

impl Batch {
    /// Returns room for frames of up to `frame_bytes_max` bytes, prefix included.
    pub fn new(frame_bytes_max: usize) -> Self {
        Self {
            frame_bytes_max,
            bytes: vec![0; frame_bytes_max * BATCH_FRAMES_MAX].into_boxed_slice(),
            lengths: [0; BATCH_FRAMES_MAX],
            count: 0,
        }
    }

    /// Lends the frames of the last call in the order of arrival, prefix included.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes
            .chunks_exact(self.frame_bytes_max)
            .zip(self.lengths)
            .take(self.count)
            .map(|(room, length)| &room[..length.min(room.len())])
    }
}

impl PacketSocket {
    /// Opens device `index` of the calling thread's network namespace; frames that this machine
    /// sends out of the device are not shown.
    pub fn open(index: u32) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: takes numbers only. Protocol 0 receives nothing until bound below.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: a new descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        set(&fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        set(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        // Beyond net.core.rmem_max only with CAP_NET_ADMIN in the first user namespace.
        if set(
            &fd,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            RECEIVE_BUFFER_BYTES,
        )
        .is_err()
        {
            set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES)?;
        }
        bind(&fd, index)?;
        Ok(Self { fd })
    }

    /// Takes what has arrived into `batch`, without waiting; returns how many frames.
    pub fn receive(&self, batch: &mut Batch) -> io::Result<usize> {
        let mut parts = [EMPTY_PART; BATCH_FRAMES_MAX];
        for (part, room) in parts
            .iter_mut()
            .zip(batch.bytes.chunks_exact_mut(batch.frame_bytes_max))
        {
            part.iov_base = room.as_mut_ptr().cast();
            part.iov_len = room.len();
        }
        let mut messages = messages_of(&mut parts);
        let count = BATCH_FRAMES_MAX as libc::c_uint;
        // SAFETY: each message points to one part, each part to its own room in the batch; all
        // live across the call, and the counts are those of the arrays.
        let received = check(unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        });
        batch.count = match received {
            Ok(received) => received as usize,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        for (length, message) in batch.lengths.iter_mut().zip(&messages[..batch.count]) {
            *length = message.msg_len as usize;
        }
        Ok(batch.count)
    }

    /// Sends up to [`BATCH_FRAMES_MAX`] frames; returns how many of them the kernel took.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut parts = [EMPTY_PART; BATCH_FRAMES_MAX];
        let mut count = 0;
        for (part, frame) in parts.iter_mut().zip(frames) {
            part.iov_base = frame.as_ptr().cast_mut().cast();
            part.iov_len = frame.len();
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        let mut messages = messages_of(&mut parts);
        // SAFETY: the first `count` messages point to parts that point to whole frames; the
        // kernel only reads them, and all live across the call. By number, since musl's function makes a
        // call for each message.
        let sent = check(unsafe {
            libc::syscall(
                libc::SYS_sendmmsg,
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                0,
            )
        })?;
        Ok(sent as usize)
    }

    /// Returns how many frames found the socket full since the last question.
    pub fn take_overflow(&self) -> io::Result<u64> {
        let mut counts = MaybeUninit::<[u32; 2]>::zeroed();
        let mut length = size_of::<[u32; 2]>() as libc::socklen_t;
        // SAFETY: two counters (`struct tpacket_stats`) and their size.
        check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        })?;
        // SAFETY: zeroed above, and any bits are valid numbers.
        Ok(u64::from(unsafe { counts.assume_init() }[1]))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

const EMPTY_PART: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

fn messages_of(parts: &mut [libc::iovec; BATCH_FRAMES_MAX]) -> [libc::mmsghdr; BATCH_FRAMES_MAX] {
    // SAFETY: message headers are numbers and pointers, for which zero means "none".
    let mut messages: [libc::mmsghdr; BATCH_FRAMES_MAX] = unsafe { std::mem::zeroed() };
    for (message, part) in messages.iter_mut().zip(parts) {
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
    }
    messages
}

fn set(
    fd: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option reads one number, which lives across the call.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            length,
        )
    })?;
    Ok(())
}

fn bind(fd: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: the address is plain numbers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as libc::c_int;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: a valid address of the length given.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}
