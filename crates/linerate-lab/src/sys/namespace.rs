//! Work inside another network namespace, on a thread of its own.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, setns};

/// Opens the network namespace of process `pid`.
pub fn network_of(pid: u32) -> io::Result<OwnedFd> {
    Ok(File::open(format!("/proc/{pid}/ns/net"))?.into())
}

/// Runs `work` in network namespace `network`; the caller's thread stays where it is.
///
/// Sockets opened by `work` belong to that namespace for good, wherever they are used later.
pub fn run_in_network<T: Send>(
    network: BorrowedFd<'_>,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("lab-enter".to_owned())
            .spawn_scoped(scope, || {
                setns(network.as_fd(), CloneFlags::CLONE_NEWNET)?;
                Ok::<T, io::Error>(work())
            })?;
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
