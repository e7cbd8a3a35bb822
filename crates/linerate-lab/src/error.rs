//! What can go wrong with a lab, with the next step where the user has one.

use std::io;

use crate::relay::RelayError;
use crate::spec::SpecError;

/// Why a lab could not be entered, made, used or taken down.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The process has more than one thread, of which only one would move.
    #[error(
        "cannot enter the lab: this process has {count} threads and must have one; enter first thing in main"
    )]
    Threads {
        /// How many there are.
        count: usize,
    },
    /// No privilege, and no user namespace to get it from.
    #[error("cannot make a user namespace for the lab: {advice}")]
    UserNamespace {
        /// What is missing and what to do.
        advice: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The identity inside the user namespace could not be set.
    #[error("cannot write {path} for the lab's user namespace: {advice}")]
    IdMap {
        /// The file.
        path: &'static str,
        /// What is missing and what to do.
        advice: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The network namespace of this process could not be made.
    #[error("cannot make a network namespace for the lab: {advice}")]
    NetworkNamespace {
        /// What is missing and what to do.
        advice: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The spec is outside its limits.
    #[error("the lab is not possible")]
    Spec(#[from] SpecError),
    /// A host's first process could not be started.
    #[error("cannot start host `{host}`: {advice}")]
    Host {
        /// The host.
        host: String,
        /// What is missing and what to do.
        advice: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A step on a device failed.
    #[error("cannot {step}{hint}")]
    Device {
        /// What was tried: `add switch br0`.
        step: String,
        /// What to do about it, or nothing.
        hint: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A link's relay could not start.
    #[error("cannot pass frames on")]
    Relay(#[from] RelayError),
    /// There is no such host.
    #[error("the lab has no host `{host}`, but {known}")]
    NoHost {
        /// The name asked for.
        host: String,
        /// The names there are.
        known: String,
    },
    /// A host did not end in time.
    #[error("cannot end host `{host}`: it is still there {waited_ms} ms after SIGKILL")]
    StillThere {
        /// The host.
        host: String,
        /// How long was waited.
        waited_ms: u128,
    },
    /// The lab's own thread failed.
    #[error("cannot run the thread that holds the hosts")]
    Keeper(#[source] io::Error),
}

/// Adds what was tried to an error of the kernel.
pub(crate) fn at_step(step: String) -> impl FnOnce(io::Error) -> LabError {
    move |source| {
        let hint = match source.raw_os_error() {
            Some(libc::EEXIST) => {
                ": it exists already; one process holds one lab at a time, remove the first"
            }
            Some(libc::EPERM) => ": needs CAP_NET_ADMIN over the lab; call enter() first",
            Some(libc::EOPNOTSUPP) => ": this kernel was built without it",
            _ => "",
        };
        LabError::Device { step, hint, source }
    }
}
