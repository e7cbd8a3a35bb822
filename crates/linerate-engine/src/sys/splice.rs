//! Payload that reaches a socket without a copy: through a pipe, or from a file in memory.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::sys::socket;

/// Pipe bytes asked for: what an unprivileged user gets by default (fs.pipe-max-size).
///
/// Measured over loopback in Gbit/s: 64 KiB 50, 256 KiB 76, 1 MiB 76.
const PIPE_BYTES: libc::c_int = 1 << 20;
/// The least that is worth a pipe: what every pipe has.
const PIPE_BYTES_MIN: libc::c_int = 64 << 10;
/// Payload that is sent again and again, so that a receiver which copies finds it in its CPU's cache.
const REPEATED_BYTES: usize = 128 << 10;
/// Pieces of one filling: the rest of a repetition, and whole ones.
const PIECES_MAX: usize = PIPE_BYTES as usize / REPEATED_BYTES + 1;

/// A pipe that holds references to pages of constant payload.
///
/// One serves all sockets of a worker: what one of them left is payload like any other. Only what
/// has left the pipe for a socket was sent.
#[derive(Debug)]
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    capacity_bytes: usize,
    held_bytes: usize,
    /// Where in the payload the next page comes from.
    at: usize,
}

impl Pipe {
    /// Returns an empty pipe, as large as this user may have.
    pub(crate) fn new() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors to `ends`.
        let status = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
        socket::check(status)?;
        // SAFETY: both were just returned as new descriptors that nothing else owns.
        let read = unsafe { OwnedFd::from_raw_fd(ends[0]) };
        // SAFETY: as above.
        let write = unsafe { OwnedFd::from_raw_fd(ends[1]) };
        let capacity_bytes = widen(&write)?;
        Ok(Self {
            read,
            write,
            capacity_bytes,
            held_bytes: 0,
            at: 0,
        })
    }

    /// Moves up to `bytes` to the socket; fills the pipe with the first pages of `payload` first if
    /// it is empty. Returns how much the socket took.
    ///
    /// `payload` must be constant for as long as the kernel may read it: see
    /// [`crate::sys::pages::Pages`].
    ///
    /// SPLICE_F_GIFT and SPLICE_F_MOVE change nothing for a socket and were measured to change
    /// nothing.
    pub(crate) fn send(
        &mut self,
        socket: RawFd,
        payload: &[u8],
        bytes: usize,
    ) -> io::Result<usize> {
        if self.held_bytes == 0 {
            self.fill(payload)?;
        }
        let bytes = bytes.min(self.held_bytes);
        // SAFETY: splice takes descriptors, a length and no offset.
        let moved = unsafe {
            libc::splice(
                self.read.as_raw_fd(),
                ptr::null_mut(),
                socket,
                ptr::null_mut(),
                bytes,
                0,
            )
        };
        let moved = usize::try_from(moved).map_err(|_| io::Error::last_os_error())?;
        self.held_bytes -= moved;
        Ok(moved)
    }

    fn fill(&mut self, payload: &[u8]) -> io::Result<()> {
        let repeated = &payload[..payload.len().min(REPEATED_BYTES)];
        let mut pieces = [libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        }; PIECES_MAX];
        let (mut count, mut bytes, mut rest) = (0, 0, &repeated[self.at..]);
        while count < PIECES_MAX && bytes < self.capacity_bytes {
            rest = &rest[..rest.len().min(self.capacity_bytes - bytes)];
            pieces[count] = libc::iovec {
                iov_base: rest.as_ptr().cast_mut().cast(),
                iov_len: rest.len(),
            };
            bytes += rest.len();
            count += 1;
            rest = repeated;
        }
        // SAFETY: the kernel reads `count` iovecs, and takes references to the pages of `repeated`,
        // which it never writes to.
        let taken = unsafe { libc::vmsplice(self.write.as_raw_fd(), pieces.as_ptr(), count, 0) };
        let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
        self.held_bytes += taken;
        self.at = (self.at + taken) % repeated.len();
        Ok(())
    }
}

/// Makes the pipe as large as it may be, in halves of what is wanted.
fn widen(pipe: &OwnedFd) -> io::Result<usize> {
    let mut wanted = PIPE_BYTES;
    loop {
        // SAFETY: fcntl takes numbers here and no pointer.
        let bytes = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) };
        if bytes > 0 {
            return Ok(bytes as usize);
        }
        if wanted <= PIPE_BYTES_MIN {
            return Err(io::Error::last_os_error());
        }
        wanted /= 2;
    }
}

/// A file in memory with constant payload.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    file: OwnedFd,
    bytes: usize,
}

impl MemoryFile {
    /// Returns a file with this content.
    pub(crate) fn new(payload: &[u8]) -> io::Result<Self> {
        // SAFETY: the name is a C string that outlives the call.
        let fd = unsafe { libc::memfd_create(c"linerate-payload".as_ptr(), libc::MFD_CLOEXEC) };
        socket::check(fd)?;
        // SAFETY: `fd` was just returned as a new descriptor that nothing else owns.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut file = std::fs::File::from(file);
        io::Write::write_all(&mut file, payload)?;
        Ok(Self {
            file: file.into(),
            bytes: payload.len(),
        })
    }

    /// Sends up to `bytes`, from position `at` of the file on, which is then moved, or from its
    /// begin; returns how much the socket took.
    pub(crate) fn send(&self, socket: RawFd, at: &mut usize, bytes: usize) -> io::Result<usize> {
        if *at >= self.bytes {
            *at = 0;
        }
        let mut offset = *at as libc::off_t;
        // SAFETY: the kernel reads and writes one offset, which outlives the call.
        let sent = unsafe {
            libc::sendfile(
                socket,
                self.file.as_raw_fd(),
                &mut offset,
                bytes.min(self.bytes - *at),
            )
        };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        *at += sent;
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::sys::pages::Pages;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    /// Sends until the socket is full, lets the peer read it all, twice; returns what was sent and
    /// what arrived.
    fn fill_twice(mut send: impl FnMut(RawFd) -> io::Result<usize>) -> (usize, Vec<u8>) {
        let (near, mut far) = pair();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let (mut sent, mut arrived) = (0, Vec::new());
        for _ in 0..2 {
            loop {
                match send(near.as_raw_fd()) {
                    Ok(bytes) => sent += bytes,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
            // The end of what has arrived so far is an error of kind WouldBlock.
            let _ = far.read_to_end(&mut arrived);
        }
        drop(near);
        far.set_nonblocking(false).unwrap();
        far.read_to_end(&mut arrived).unwrap();
        (sent, arrived)
    }

    #[test]
    fn what_left_the_pipe_for_a_socket_arrives_and_nothing_else() {
        let pages = Pages::new(1).unwrap();
        let payload = &pages.as_slice()[..100_000];
        let mut pipe = Pipe::new().unwrap();
        assert!(pipe.capacity_bytes >= PIPE_BYTES_MIN as usize);
        let (sent, arrived) = fill_twice(|socket| pipe.send(socket, payload, 70_001));
        assert!(sent > 100_000);
        assert_eq!(sent, arrived.len());
        let expected: Vec<u8> = payload.iter().copied().cycle().take(sent).collect();
        assert!(arrived == expected, "the payload is not what was filled in");
    }

    #[test]
    fn what_sendfile_took_arrives() {
        let payload: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        let file = MemoryFile::new(&payload).unwrap();
        let mut at = 0;
        let (sent, arrived) = fill_twice(|socket| file.send(socket, &mut at, 70_001));
        assert_eq!(sent, arrived.len());
        let expected: Vec<u8> = payload.iter().copied().cycle().take(sent).collect();
        assert!(arrived == expected, "the payload is not what was filled in");
    }
}
