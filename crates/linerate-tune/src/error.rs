//! Why a host could not be changed.

use std::io;

use linerate_model::experiment::{Factor, Level};

/// Why a host could not be changed; what was changed before is put back.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// It is a parameter of the workload.
    #[error("{0} is no knob: the workload has it")]
    NoKnob(Factor),
    /// The knob is one of a device, and nobody knows which carries the data.
    #[error("cannot set {0}: the device of the data network is not known")]
    NoDevice(Factor),
    /// The name of the device is none.
    #[error("cannot set {knob} of `{device}`: that is no name of a device")]
    Device {
        /// The knob.
        knob: Factor,
        /// The name given.
        device: String,
    },
    /// The level is of another kind than the knob's are.
    #[error("cannot set {knob} to {level}")]
    Level {
        /// The knob.
        knob: Factor,
        /// The level.
        level: Level,
    },
    /// It could not be read: this kernel, or this device, has none.
    #[error("cannot read {knob} ({place})")]
    Read {
        /// The knob.
        knob: Factor,
        /// Where it stands.
        place: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Root of a user namespace may not set it (`store_rps_map` in net/core/net-sysfs.c).
    #[error("cannot set {0}: the kernel lets only root of the machine do that (run as root)")]
    MachineRoot(Factor),
    /// Somebody put something there that could not be put back.
    #[error(
        "cannot set {knob} ({place}): there is a {has} that somebody put there, as the rate of a lab's link is (a lab \
         has none with --lab-rate none)"
    )]
    Taken {
        /// The knob.
        knob: Factor,
        /// Where it stands.
        place: String,
        /// What is there.
        has: String,
    },
    /// It could not be written.
    #[error("cannot set {knob} to {level} ({place})")]
    Write {
        /// The knob.
        knob: Factor,
        /// The level.
        level: Level,
        /// Where it stands.
        place: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The kernel took the value and kept another.
    #[error("cannot set {knob} to {level}: the host took {wanted} and kept {kept} ({place})")]
    Kept {
        /// The knob.
        knob: Factor,
        /// The level.
        level: Level,
        /// Where it stands.
        place: String,
        /// What was written.
        wanted: String,
        /// What was read back.
        kept: String,
    },
}
