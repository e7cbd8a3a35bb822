//! MSG_ZEROCOPY: sending from our pages, and learning when the kernel is done with them
//! (Documentation/networking/msg_zerocopy.rst).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use linerate_model::run::ZeroCopyCount;

use super::datagram::empty_message;

/// Room for the control messages of one notification: a header and a struct sock_extended_err with
/// an address, 48 bytes, generously.
const CONTROL_BYTES: usize = 128;

/// SO_EE_ORIGIN_ZEROCOPY of include/uapi/linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;
/// SO_EE_CODE_ZEROCOPY_COPIED, in the same place.
const CODE_COPIED: u8 = 1;

/// Hands `payload` to the socket, whose SO_ZEROCOPY is set, and which may go on reading it until its completion is reaped:
/// `payload` must be constant, see [`crate::sys::pages::Pages`].
pub(crate) fn send(fd: RawFd, payload: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads `payload.len()` bytes of `payload`, now or later: it holds the pages.
    let sent = unsafe {
        libc::send(
            fd,
            payload.as_ptr().cast(),
            payload.len(),
            libc::MSG_NOSIGNAL | libc::MSG_ZEROCOPY,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Takes one notification from the socket's error queue; returns false if there is none.
///
/// One notification stands for a range of calls: the kernel puts neighbours together.
pub(crate) fn reap(fd: RawFd, count: &mut ZeroCopyCount) -> bool {
    let mut control = MaybeUninit::<[u64; CONTROL_BYTES / 8]>::uninit();
    let mut message = empty_message();
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the kernel writes at most CONTROL_BYTES to `control`, and nothing to the empty iovec.
    if unsafe { libc::recvmsg(fd, &mut message, flags) } < 0 {
        return false;
    }
    // SAFETY: `message` describes the control messages that the kernel has just written.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return headers that lie whole inside the room.
        let kind = unsafe { header.read_unaligned() };
        let kind = (kind.cmsg_level, kind.cmsg_type);
        let is_error = [
            (libc::SOL_IP, libc::IP_RECVERR),
            (libc::SOL_IPV6, libc::IPV6_RECVERR),
        ]
        .contains(&kind);
        if is_error {
            // SAFETY: such a message carries a struct sock_extended_err.
            let data = unsafe { libc::CMSG_DATA(header) };
            // SAFETY: as above; it may lie unaligned.
            let error = unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
            note(&error, count);
        }
        // SAFETY: `header` came from this message.
        header = unsafe { libc::CMSG_NXTHDR(&message, header) };
    }
    true
}

fn note(error: &libc::sock_extended_err, count: &mut ZeroCopyCount) {
    if error.ee_origin != ORIGIN_ZEROCOPY {
        return;
    }
    // Both ends of the range are included; numbers are of 32 bits and wrap.
    let calls = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
    count.done += calls;
    if error.ee_code & CODE_COPIED != 0 {
        count.copied += calls;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::sys::pages::Pages;
    use crate::sys::socket;

    #[test]
    fn every_call_is_reported_done_and_loopback_copies() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        let pages = Pages::new(1).unwrap();
        socket::set(near.as_raw_fd(), socket::SO_ZEROCOPY, 1).unwrap();
        let mut count = ZeroCopyCount::default();
        assert!(!reap(near.as_raw_fd(), &mut count));
        let mut room = vec![0; 10_000];
        for _ in 0..5 {
            let sent = send(near.as_raw_fd(), &pages.as_slice()[..10_000]).unwrap();
            assert_eq!(sent, 10_000);
            io::Read::read_exact(&mut far, &mut room).unwrap();
        }
        assert!(room == pages.as_slice()[..10_000]);
        while reap(near.as_raw_fd(), &mut count) {}
        assert_eq!(count, ZeroCopyCount { done: 5, copied: 5 });
    }
}
