//! A program in a host: what happens between fork and exec.
//!
//! Entering a process-id namespace concerns only children made afterwards, so the process that
//! `std` forked enters the namespaces and forks again. The child executes the program; the
//! process in between stays outside as its *escort*: it hands signals on, waits, and ends the
//! way the program ended, so that `wait` and `kill` on it mean the program.
//!
//! The program dies with its escort (`PR_SET_PDEATHSIG`) and with its host (process-id
//! namespace). Everything here is system calls on memory made before the fork.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::check;
use super::process::has_ended;

/// What to enter, and whose death to follow.
#[derive(Debug)]
pub struct Guest {
    /// The host's first process.
    pub host: OwnedFd,
    /// The namespaces to take from it, as `CLONE_NEW*` flags.
    pub namespaces: libc::c_int,
    /// Whether the program also ends with the thread that started it.
    pub ends_with_caller: EndsWith,
}

/// Whose end, beside the host's, ends a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndsWith {
    /// Only its host's.
    Host,
    /// Also that of the thread that started it.
    Caller,
}

/// Makes `command` run in the host of `guest`.
pub fn place(command: &mut Command, guest: Guest) {
    let enter = move || enter(&guest);
    // SAFETY: `enter` makes system calls on memory that exists already: no allocation, no lock.
    unsafe { command.pre_exec(enter) };
}

/// Returns, in a process inside the host; the calling process never returns.
fn enter(guest: &Guest) -> io::Result<()> {
    if guest.ends_with_caller == EndsWith::Caller {
        die_with_parent()?;
    }
    let mut place = [0u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer is valid for its length.
    let known = !unsafe { libc::getcwd(place.as_mut_ptr().cast(), place.len()) }.is_null();
    // SAFETY: an open descriptor and flags; no memory of ours is touched.
    check(unsafe { libc::setns(guest.host.as_raw_fd(), guest.namespaces) })?;
    if known {
        // A new mount namespace puts the process at its root: go back. The path exists there,
        // because the host's mounts are a copy of ours.
        // SAFETY: getcwd left a terminated path in the buffer.
        unsafe { libc::chdir(place.as_ptr().cast()) };
    }
    fork_escorted()
}

/// Returns in a child; this process becomes its escort.
fn fork_escorted() -> io::Result<()> {
    // SAFETY: SIG_DFL is a valid disposition; an inherited SIG_IGN would hide the child's exit.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let mut all: libc::sigset_t = empty_set();
    // SAFETY: a valid set to fill.
    unsafe { libc::sigfillset(&raw mut all) };
    let mut before: libc::sigset_t = empty_set();
    // SAFETY: two valid sets; in a process of one thread this is the process's mask.
    check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before) })?;
    // SAFETY: no arguments and no failure.
    let own = unsafe { libc::getpid() };
    // SAFETY: touches no memory of ours; the descriptor is closed by exec or by the escort.
    let escort = unsafe { libc::syscall(libc::SYS_pidfd_open, own, 0) };
    let escort = check(escort)? as RawFd;
    // SAFETY: this process has one thread, so the child may do anything that we may.
    let child = check(unsafe { libc::fork() })?;
    if child != 0 {
        attend(child, &all);
    }
    die_with_parent()?;
    if has_ended(escort) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // SAFETY: the set was filled above.
    check(unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut())
    })?;
    Ok(())
}

fn die_with_parent() -> io::Result<()> {
    // SAFETY: takes one number and concerns this process alone.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })?;
    Ok(())
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: a signal set is plain bits; all zero is the empty set.
    unsafe { std::mem::zeroed() }
}

/// The escort's life: hand signals on, end as the child ends.
fn attend(child: libc::pid_t, all: &libc::sigset_t) -> ! {
    // SAFETY: closes descriptors only: pipes must close when the program ends, and `std` waits
    // for the end of its own pipe to learn whether exec worked.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    // SAFETY: a valid, terminated name.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"lab-escort".as_ptr()) };
    loop {
        // SAFETY: siginfo is plain numbers.
        let mut about: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: both point to valid values of their types.
        let signal = unsafe { libc::sigwaitinfo(all, &raw mut about) };
        if signal == libc::SIGCHLD {
            end_as(child);
        } else if signal > 0 && about.si_code != libc::SI_KERNEL {
            // What the terminal sends (SI_KERNEL) reaches the program by itself.
            // SAFETY: our child is not reaped yet, so the id is its own.
            unsafe { libc::kill(child, signal) };
        }
    }
}

/// Ends this process the way the child did; returns if the child has only stopped.
fn end_as(child: libc::pid_t) {
    let mut status: libc::c_int = 0;
    // SAFETY: a valid place for the status.
    if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } != child {
        return;
    }
    if libc::WIFSIGNALED(status) {
        die_of(libc::WTERMSIG(status));
    }
    // SAFETY: ends the process without running this program's exit handlers.
    unsafe { libc::_exit(libc::WEXITSTATUS(status)) };
}

/// Ends this process by `signal`, without a second core file.
fn die_of(signal: libc::c_int) -> ! {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a valid limit; lowering is always allowed.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    // SAFETY: SIG_DFL is a valid disposition; for SIGKILL the call fails and changes nothing.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: sends to ourselves; it stays pending until unblocked below.
    unsafe { libc::raise(signal) };
    let open = empty_set();
    // SAFETY: a valid set; the pending signal ends the process here.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const open, std::ptr::null_mut()) };
    // SAFETY: reached only if the signal's default is not to end a process.
    unsafe { libc::_exit(128 + signal) };
}
