//! Drives agents through a plan, trial by trial, and records what they say.
//!
//! The plan leaves no choice: this room makes every host's assignment from it, agrees on the
//! instants, follows the trial, decides whether it may be averaged, and writes it down. It knows
//! agents only by their API, and computes no result.
//!
//! * [`Fleet`] – the hosts of a run: admission, inventory, clocks.
//! * [`execute`] – the run itself, told as a stream of [`RunEvent`]s, and [`replay`] from a recording.
//! * [`Launcher`] – who puts agents on the hosts of a fleet, and takes them away.
//! * [`Recorder`] – where trials go: a bundle on disk, or memory.

/// What happens in a run: one stream for all who keep and show it.
mod event;
/// The hosts of a run: connecting, admission, clocks.
mod fleet;
/// Agents that are put where they are needed.
mod launch;
/// Where a run is written.
mod record;
/// The trials, one after another.
mod run;
/// The same for several hosts at the same time.
mod together;

pub use event::{RunEvent, replay};
pub use fleet::{Answer, Checked, Fleet, FleetError, HostSpec, Inventories, Member};
pub use launch::{
    AgentLog, Kubernetes, LaunchError, Launched, LaunchedAgent, Launcher, Slurm, Ssh, Unlaunched,
    allocated_nodes,
};
pub use record::{Recorder, add};
pub use run::{
    Audience, Judgement, More, Placing, Prove, Repeats, RunError, RunRequest, WarmUp, execute,
};

/// Runs under faults, in simulated time.
#[cfg(test)]
mod faults;
