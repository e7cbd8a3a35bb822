//! One file per subcommand: from arguments to calls of the rooms, and back to an exit code.

/// `linerate capacity`.
pub mod capacity;
/// `linerate compare`.
pub mod compare;
/// `linerate completions`.
pub mod completions;
/// `linerate explain`.
pub mod explain;
/// `linerate fleet`.
pub mod fleet;
/// The file of a fleet.
mod fleet_file;
/// The hosts of a fleet, and agents that are launched for it.
mod fleet_hosts;
/// `linerate fleet sbatch`.
mod fleet_sbatch;
/// `linerate lab`.
pub mod lab;
/// `linerate man`.
pub mod man;
/// `linerate plan`.
pub mod plan;
/// `linerate report`.
pub mod report;
/// `linerate run`.
pub mod run;
/// `linerate schema`.
pub mod schema;
/// `linerate serve`.
pub mod serve;
/// `linerate study`.
pub mod study;
/// `linerate token`.
pub mod token;
/// `linerate trace`.
pub mod trace;
/// `linerate watch`.
pub mod watch;

/// Executing a plan on a gathered fleet, for `study` and `run --experiment`.
mod execute;
/// From experiments to their plan, for the same.
mod experiments;
/// The lab of a study: hosts, agents, fleet.
mod lab_fleet;
/// Levels of one run in turns, for `run`.
mod levels;
/// A capture of this host as it happens.
mod live_capture;
/// Latency alone and beside bulk.
mod loaded;
/// What is changed after a measurement, for `run --prove`.
mod prove;
