//! Readiness of many sockets: a level-triggered epoll set.
//!
//! Level-triggered, because a flow gets a bounded share of work each time it is ready and is
//! simply reported again; the kernel puts it at the end of its ready list, which makes the turn
//! round robin without a queue of ours.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::sys::socket;

/// What a socket must become before a part can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// There is payload to take, or the end.
    Readable,
    /// There is room for payload.
    Writable,
    /// Either of them: a send call is half done, and what arrives must not wait for it.
    Either,
}

/// Ready sockets taken by one wait; the rest come with the next.
const EVENTS_MAX: usize = 256;

/// There is payload to take, or the end; for a listening socket, a connection.
pub(crate) const READ: u32 = libc::EPOLLIN as u32;
/// There is room for payload.
pub(crate) const WRITE: u32 = libc::EPOLLOUT as u32;
/// Of those who wait for a socket, wake one or some, not all: for listening sockets.
pub(crate) const ALONE: u32 = libc::EPOLLEXCLUSIVE as u32;
/// The peer has ended its direction.
pub(crate) const END: u32 = libc::EPOLLRDHUP as u32;

impl From<Want> for u32 {
    fn from(want: Want) -> Self {
        match want {
            Want::Readable => READ,
            Want::Writable => WRITE,
            Want::Either => READ | WRITE,
        }
    }
}

/// A set of sockets, each known by the index given when it was added.
pub(crate) struct Epoll {
    set: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
    /// Whether the kernel has epoll_pwait2, Linux 5.11, which waits to the nanosecond.
    exact: bool,
}

impl Epoll {
    /// Returns an empty set.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes only a flag.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        socket::check(fd)?;
        // SAFETY: `fd` was just returned as a new descriptor that nothing else owns.
        let set = unsafe { OwnedFd::from_raw_fd(fd) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        Ok(Self {
            set,
            events,
            ready: 0,
            exact: true,
        })
    }

    /// Adds a socket that is waited for by a [`Want`], or by [`READ`], [`WRITE`] and [`END`].
    pub(crate) fn add(&self, fd: RawFd, index: usize, events: impl Into<u32>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, index, events.into())
    }

    /// Returns the index and the events of the `at`-th ready socket of the last wait.
    pub(crate) fn event(&self, at: usize) -> (usize, u32) {
        let event = self.events[..self.ready][at];
        (event.u64 as usize, event.events)
    }

    /// Changes what is waited for.
    pub(crate) fn change(&self, fd: RawFd, index: usize, events: impl Into<u32>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, index, events.into())
    }

    /// Takes a socket out of the set.
    pub(crate) fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    /// Waits until a socket is ready or `timeout` has passed; returns how many are ready.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let mut ready = if self.exact {
            self.wait_exactly(timeout)
        } else {
            self.wait_coarsely(timeout)
        };
        if ready < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            self.exact = false;
            ready = self.wait_coarsely(timeout);
        }
        self.ready = usize::try_from(ready).unwrap_or(0);
        if ready < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(self.ready)
    }

    fn wait_exactly(&mut self, timeout: Duration) -> libc::c_long {
        let time = libc::timespec {
            tv_sec: timeout.as_secs() as _,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // By number, since C libraries of before 2021 have no name for it.
        // SAFETY: the kernel writes at most EVENTS_MAX events, which is the length of `events`,
        // and reads one timespec; without a signal mask the last argument is not used.
        unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.set.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as libc::c_int,
                &raw const time,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        }
    }

    fn wait_coarsely(&mut self, timeout: Duration) -> libc::c_long {
        // Rounded up, so that a rest below a millisecond does not become a busy loop.
        let timeout_ms = timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as libc::c_int;
        // SAFETY: the kernel writes at most EVENTS_MAX events, which is the length of `events`.
        let ready = unsafe {
            libc::epoll_wait(
                self.set.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as libc::c_int,
                timeout_ms,
            )
        };
        ready.into()
    }

    fn control(&self, what: libc::c_int, fd: RawFd, index: usize, events: u32) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events,
            u64: index as u64,
        };
        // SAFETY: the kernel reads one event, which outlives the call; descriptors are checked by
        // the kernel.
        socket::check(unsafe { libc::epoll_ctl(self.set.as_raw_fd(), what, fd, &mut event) })
    }
}
