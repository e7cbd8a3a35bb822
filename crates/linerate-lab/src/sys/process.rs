//! Processes held by descriptor (`pidfd_open(2)`), so that a reused id is never meant.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::check;

/// Opens process `pid`.
pub fn open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes an id and flags 0 and touches no memory of ours.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) })?;
    // SAFETY: the call returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Sends `signal` to the process.
pub fn signal(process: BorrowedFd<'_>, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: a borrowed descriptor is open; a null siginfo makes the kernel fill its own.
    check(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    })?;
    Ok(())
}

/// Tells whether the process has ended; between fork and exec, too, since it is a system call and no more.
pub fn has_ended(process: RawFd) -> bool {
    let mut poll = libc::pollfd {
        fd: process,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid entry; the timeout of zero returns at once.
    unsafe { libc::poll(&raw mut poll, 1, 0) != 0 }
}

/// Waits until `fd` can be read or was closed at its other end, or its process has ended; tells whether it
/// was within `limit`.
pub fn wait_readable(fd: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let begin = Instant::now();
    loop {
        let left = limit.saturating_sub(begin.elapsed());
        let timeout = PollTimeout::try_from(left.as_millis()).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Takes the exit of a child of this process, which must have ended or be about to.
pub fn reap(child: &OwnedFd) -> io::Result<()> {
    let id = nix::sys::wait::Id::PIDFd(child.as_fd());
    // __WALL: the child may have been made by clone with another exit signal.
    let flags = nix::sys::wait::WaitPidFlag::WEXITED | nix::sys::wait::WaitPidFlag::__WALL;
    nix::sys::wait::waitid(id, flags)?;
    Ok(())
}

/// Makes this thread's timers precise: by default the kernel may be 50 µs late to save energy.
pub fn sharpen_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes one number and concerns the calling thread alone.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) })?;
    Ok(())
}

/// Makes `command` start a process of its own session, which no terminal can interrupt.
pub fn detach(command: &mut Command) {
    let leave = || nix::unistd::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: setsid is a system call without arguments: it allocates and locks nothing.
    unsafe { command.pre_exec(leave) };
}

/// Closes what this process inherited beside its streams: whoever waits for the end of a pipe or holds a lock by a
/// descriptor would do so until this process ends. For one that has opened nothing yet.
pub fn close_inherited() {
    // SAFETY: closes descriptors only, and none that this process uses.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Runs `command` and returns how it ended; SIGTERM and SIGHUP to this process are handed on to it meanwhile.
pub fn run_handing_on(command: &mut Command) -> io::Result<ExitStatus> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGHUP);
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let unblock = move || before.thread_set_mask().map_err(io::Error::from);
    // SAFETY: pthread_sigmask allocates and locks nothing. What was to run before exec runs before it.
    unsafe { command.pre_exec(unblock) };
    let ended = spawn_handing_on(command, &signals);
    before.thread_set_mask()?;
    ended
}

/// Does so where `signals` are blocked.
fn spawn_handing_on(command: &mut Command, signals: &SigSet) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    // The terminal interrupts the whole group; this process stays to tell how the program ended.
    let _ignored = IgnoreInterrupts::begin()?;
    let process = open(child.id())?;
    let asked = SignalFd::with_flags(signals, SfdFlags::SFD_CLOEXEC)?;
    loop {
        let mut fds = [process.as_fd(), asked.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut fds, PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            other => other?,
        };
        let [has_ended, is_asked] = fds.map(|fd| fd.any().unwrap_or(false));
        if has_ended {
            return child.wait();
        }
        // What the terminal sends (SI_KERNEL) reaches the program by itself.
        if is_asked
            && let Some(about) = asked.read_signal()?
            && about.ssi_code != libc::SI_KERNEL
        {
            // It may have ended meanwhile.
            let _sent = signal(process.as_fd(), about.ssi_signo as libc::c_int);
        }
    }
}

/// While it lives, this process ignores what the terminal sends on Ctrl-C and Ctrl-\.
#[derive(Debug)]
struct IgnoreInterrupts {
    before: [(Signal, SigAction); 2],
}

impl IgnoreInterrupts {
    /// Begins to ignore.
    fn begin() -> io::Result<Self> {
        Ok(Self {
            before: [ignore(Signal::SIGINT)?, ignore(Signal::SIGQUIT)?],
        })
    }
}

impl Drop for IgnoreInterrupts {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            // SAFETY: puts back the action that was in force before.
            let _restored = unsafe { sigaction(*signal, action) };
        }
    }
}

fn ignore(signal: Signal) -> io::Result<(Signal, SigAction)> {
    let action = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: ignoring runs no handler.
    let before = unsafe { sigaction(signal, &action) }?;
    Ok((signal, before))
}
