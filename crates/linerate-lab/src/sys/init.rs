//! The first process of a host: it holds the host's namespaces and does nothing else.
//!
//! It is process 1 of a process-id namespace, so that the kernel ends every program of the host
//! when it ends; and it ends with the thread that made it (`PR_SET_PDEATHSIG`), even if that
//! thread's process is killed without notice. It is made by `clone3` and never executes a
//! program, so it may only do what is safe after a fork of a process with threads: system calls.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check_long;

/// The namespaces that a host has for itself.
pub const NAMESPACES: libc::c_int =
    libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWPID | libc::CLONE_NEWNS;

/// From `include/uapi/linux/mount.h`, which libc has only for some targets.
const OPEN_TREE_CLONE: libc::c_uint = 1;
/// From the same file.
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;

/// A running first process.
#[derive(Debug)]
pub struct Init {
    /// Its id as this process sees it.
    pub pid: u32,
    /// The process, held by descriptor.
    pub process: OwnedFd,
}

/// Starts the first process of host `name`; it ends when the calling thread does.
///
/// The calling thread must have all signals blocked, so that the new process never runs one of
/// this program's signal handlers. `maker` is a descriptor of this process.
pub fn spawn(name: &CStr, maker: BorrowedFd<'_>) -> io::Result<Init> {
    let mut pidfd: RawFd = -1;
    // SAFETY: clone_args is plain numbers, for which zero means "not used".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = (NAMESPACES | libc::CLONE_PIDFD) as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    let size = size_of::<libc::clone_args>();
    // SAFETY: args lives across the call and has the size given; pidfd is a valid place for a
    // descriptor. Without CLONE_VM the child runs on a copy of this memory, like after fork, and
    // does only what `run` promises.
    let pid = check_long(unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size) })?;
    if pid == 0 {
        run(name, maker.as_raw_fd());
    }
    // SAFETY: the kernel stored a new descriptor there, which nobody else owns.
    let process = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Init {
        pid: pid as u32,
        process,
    })
}

/// The life of the first process: only system calls, no allocation, no return.
fn run(name: &CStr, maker: RawFd) -> ! {
    // SAFETY: PR_SET_PDEATHSIG takes one number; the signal comes from an ancestor namespace,
    // which is why it also ends a process 1.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) };
    end_without(maker);
    // SAFETY: the name is a valid C string; longer ones are cut by the kernel.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"lab-host".as_ptr()) };
    // SAFETY: pointer and length describe the name without its terminator.
    unsafe { libc::sethostname(name.as_ptr(), name.to_bytes().len()) };
    // SAFETY: no arguments; the host leaves the caller's session and terminal.
    unsafe { libc::setsid() };
    // SAFETY: SIG_IGN is a valid disposition; the kernel then reaps orphans without us.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    mount_views();
    // SAFETY: closes descriptors only; none is used from here on.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    loop {
        // SAFETY: no arguments; with all signals blocked only SIGKILL ends it.
        unsafe { libc::pause() };
    }
}

/// Ends this process if `maker` ended before the death signal was set.
fn end_without(maker: RawFd) {
    let mut poll = libc::pollfd {
        fd: maker,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid entry; the timeout of zero returns at once.
    let ended = unsafe { libc::poll(&raw mut poll, 1, 0) };
    if ended != 0 {
        // SAFETY: ends the process without running this program's exit handlers.
        unsafe { libc::_exit(1) };
    }
}

/// Gives the host its own `/proc` and `/sys`, so that process ids and devices are the host's.
///
/// A user namespace is refused a new one where parts of the outer one are masked (containers):
/// then the outer one stays, where `/proc/self` is right but numbers differ from `getpid`, and
/// `/sys/class/net` shows the caller's devices.
fn mount_views() {
    let none = c"none".as_ptr();
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: valid C strings; file system type and options are not used with MS_PRIVATE.
    let result = unsafe { libc::mount(none, c"/".as_ptr(), none, private, std::ptr::null()) };
    if result != 0 {
        return;
    }
    mount_fresh(c"proc", c"/proc");
    // What is mounted below the outer /sys (cgroups, tracing, BPF) is carried over.
    let kept = [c"/sys/fs", c"/sys/kernel"].map(|place| (place, detached_copy(place)));
    if mount_fresh(c"sysfs", c"/sys") {
        for (place, copy) in kept {
            attach(copy, place);
        }
    }
}

fn mount_fresh(kind: &CStr, place: &CStr) -> bool {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let (kind, place) = (kind.as_ptr(), place.as_ptr());
    // SAFETY: valid C strings and no options; a refusal leaves the outer mount in place.
    unsafe { libc::mount(kind, place, kind, flags, std::ptr::null()) == 0 }
}

/// Returns a descriptor of a copy of what is mounted at `place` and below, or -1.
fn detached_copy(place: &CStr) -> libc::c_long {
    let flags = OPEN_TREE_CLONE | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: a valid C string; the descriptor is closed with all others.
    unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, place.as_ptr(), flags) }
}

/// Mounts the copy at `place`; without a copy or without the place, nothing happens.
fn attach(copy: libc::c_long, place: &CStr) {
    let (empty, flags) = (c"".as_ptr(), MOVE_MOUNT_F_EMPTY_PATH);
    let (here, place) = (libc::AT_FDCWD, place.as_ptr());
    // SAFETY: valid C strings; a bad descriptor is refused.
    unsafe { libc::syscall(libc::SYS_move_mount, copy, empty, here, place, flags) };
}
