//! The first process of a host: it holds the host's namespaces and does nothing else.
//!
//! It is process 1 of a process-id namespace, so that the kernel ends every program of the host
//! when it ends; and it ends with the thread that made it (`PR_SET_PDEATHSIG`), even if that
//! thread's process is killed without notice. It is made by `clone3` and never executes a
//! program, so it may only do what is safe after a fork of a process with threads: system calls.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;
use super::process::has_ended;

/// The namespaces that a host has for itself.
pub const NAMESPACES: libc::c_int =
    libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWPID | libc::CLONE_NEWNS;

/// From `include/uapi/linux/mount.h`, which libc has only for some targets.
const OPEN_TREE_CLONE: libc::c_uint = 1;
/// From the same file.
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
/// From the same file: the target may be a symbolic link.
const MOVE_MOUNT_T_SYMLINKS: libc::c_uint = 0x10;

/// The byte by which a first process says that its host has no names.
pub const NO_NAMES: u8 = b'n';

/// A running first process.
#[derive(Debug)]
pub struct Init {
    /// Its id as this process sees it.
    pub pid: u32,
    /// The process, held by descriptor.
    pub process: OwnedFd,
}

/// What a first process is told.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The host's name.
    pub name: &'a CStr,
    /// The text of its `/etc/hosts`.
    pub hosts: &'a CStr,
    /// A descriptor of the process that makes it.
    pub maker: BorrowedFd<'a>,
    /// Where it says what it does without; closed when the host is ready.
    pub ready: BorrowedFd<'a>,
}

/// Starts the first process of a host; it ends when the calling thread does.
///
/// The calling thread must have all signals blocked, so that the new process never runs one of
/// this program's signal handlers.
pub fn spawn(told: Told<'_>) -> io::Result<Init> {
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
    let pid = check(unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size) })?;
    if pid == 0 {
        run(told);
    }
    // SAFETY: the kernel stored a new descriptor there, which nobody else owns.
    let process = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Init {
        pid: pid as u32,
        process,
    })
}

/// The life of the first process: only system calls, no allocation, no return.
fn run(told: Told<'_>) -> ! {
    let name = told.name;
    // SAFETY: PR_SET_PDEATHSIG takes one number; the signal comes from an ancestor namespace,
    // which is why it also ends a process 1.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) };
    end_without(told.maker.as_raw_fd());
    // SAFETY: the name is a valid C string; longer ones are cut by the kernel.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"lab-host".as_ptr()) };
    // SAFETY: pointer and length describe the name without its terminator.
    unsafe { libc::sethostname(name.as_ptr(), name.to_bytes().len()) };
    // SAFETY: no arguments; the host leaves the caller's session and terminal.
    unsafe { libc::setsid() };
    // SAFETY: SIG_IGN is a valid disposition; the kernel then reaps orphans without us.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    if !mount_views(told.hosts) {
        let word = [NO_NAMES];
        // SAFETY: an open descriptor and one valid byte; the maker reads or has gone.
        unsafe { libc::write(told.ready.as_raw_fd(), word.as_ptr().cast(), word.len()) };
    }
    // SAFETY: closes descriptors only; none is used from here on.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    loop {
        // SAFETY: no arguments; with all signals blocked only SIGKILL ends it.
        unsafe { libc::pause() };
    }
}

/// Ends this process if `maker` ended before the death signal was set.
fn end_without(maker: RawFd) {
    if has_ended(maker) {
        // SAFETY: ends the process without running this program's exit handlers.
        unsafe { libc::_exit(1) };
    }
}

/// Gives the host its own `/proc` and `/sys`, so that process ids and devices are the host's, and
/// `hosts` as its `/etc/hosts`; returns whether it has that.
///
/// A user namespace is refused a new one where parts of the outer one are masked (containers):
/// then the outer one stays, where `/proc/self` is right but numbers differ from `getpid`, and
/// `/sys/class/net` shows the caller's devices.
fn mount_views(hosts: &CStr) -> bool {
    let none = c"none".as_ptr();
    // Nothing that is mounted here shows outside; what is unmounted there is not held here.
    let slave = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: valid C strings; file system type and options are not used with MS_SLAVE.
    let result = unsafe { libc::mount(none, c"/".as_ptr(), none, slave, std::ptr::null()) };
    if result != 0 {
        return false;
    }
    let hosts = file_of(hosts);
    let has_names = attach(hosts, c"/etc/hosts");
    mount_fresh(c"proc", c"/proc");
    // What is mounted below the outer /sys (cgroups, tracing, BPF) is carried over.
    let kept = [c"/sys/fs", c"/sys/kernel"].map(|place| (place, detached_copy(place)));
    if mount_fresh(c"sysfs", c"/sys") {
        for (place, copy) in kept {
            attach(copy, place);
        }
    }
    has_names
}

/// Returns a detached mount of a file with `text`, or -1.
///
/// The file needs a file system that this namespace may mount and that nobody else sees: one in
/// memory, for a moment over `/sys`.
fn file_of(text: &CStr) -> libc::c_long {
    let place = c"/sys";
    if !mount_fresh(c"tmpfs", place) {
        return -1;
    }
    let path = c"/sys/hosts";
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: a valid C string; the descriptor is closed with all others.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
    // The mode is what was asked for less the caller's mask: programs of other users read it too.
    // SAFETY: a bad descriptor is refused.
    unsafe { libc::fchmod(file, 0o644) };
    let bytes = text.to_bytes();
    // SAFETY: pointer and length describe the text; a bad descriptor is refused.
    let written = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
    let copy = if usize::try_from(written) == Ok(bytes.len()) {
        detached_copy(path)
    } else {
        -1
    };
    // SAFETY: a valid C string: what was mounted above.
    unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) };
    copy
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

/// Mounts the copy at `place` and returns whether it is there; without a copy or without the place,
/// nothing happens.
fn attach(copy: libc::c_long, place: &CStr) -> bool {
    let (empty, flags) = (
        c"".as_ptr(),
        MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS,
    );
    let (here, place) = (libc::AT_FDCWD, place.as_ptr());
    // SAFETY: valid C strings; a bad descriptor is refused.
    unsafe { libc::syscall(libc::SYS_move_mount, copy, empty, here, place, flags) == 0 }
}
