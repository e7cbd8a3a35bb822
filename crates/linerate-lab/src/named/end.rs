//! Ending the processes of a lab: politely, then not.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use super::registry::RegistryError;
use super::state::State;
use crate::sys::process;

/// How long a holder may take to end after SIGTERM before it is killed.
const POLITE: (libc::c_int, Duration) = (libc::SIGTERM, Duration::from_secs(5));
/// How long the kernel may take to end a killed process.
const KILL: (libc::c_int, Duration) = (libc::SIGKILL, Duration::from_secs(5));

/// Why a lab could not be taken down.
#[derive(Debug, thiserror::Error)]
pub enum DownError {
    /// The labs could not be found or read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A process of the lab could not be signalled.
    #[error("cannot end process {pid} of lab `{name}`")]
    Signal {
        /// The lab.
        name: String,
        /// The process.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A process of the lab is still there.
    #[error("cannot end process {pid} of lab `{name}`: it is still there after SIGKILL")]
    StillThere {
        /// The lab.
        name: String,
        /// The process.
        pid: u32,
    },
    /// The lab's directory could not be removed.
    #[error("cannot remove {path}")]
    Remove {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

/// Ends every process of a lab and waits until they are gone.
pub(crate) fn end(name: &str, state: &State) -> Result<(), DownError> {
    if let Some(holder) = state.holder.open() {
        end_process(name, state.holder.pid, &holder, &[POLITE, KILL])?;
        // Fails unless this process started it; then it would stay a zombie.
        let _reaped = process::reap(&holder);
    }
    for host in &state.hosts {
        if let Some(init) = host.init.open() {
            // It is ending with its holder; the signal only makes sure.
            end_process(name, host.init.pid, &init, &[KILL])?;
        }
    }
    Ok(())
}

/// Ends a process by each signal in turn, with the time that it has to end by it.
fn end_process(
    name: &str,
    pid: u32,
    process: &OwnedFd,
    signals: &[(libc::c_int, Duration)],
) -> Result<(), DownError> {
    let failed = |source| DownError::Signal {
        name: name.to_owned(),
        pid,
        source,
    };
    for (signal, limit) in signals {
        match process::signal(process.as_fd(), *signal) {
            // One that has just ended is as good.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            result => result.map_err(failed)?,
        }
        if process::wait_readable(process.as_fd(), *limit).map_err(failed)? {
            return Ok(());
        }
    }
    Err(DownError::StillThere {
        name: name.to_owned(),
        pid,
    })
}
