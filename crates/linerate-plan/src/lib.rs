//! From a question to a plan: experiment files in, an ordered list of trials out.
//!
//! [`read_experiment`] turns the text that a person wrote into a checked [`Draft`]. [`plan`] turns
//! drafts into a [`Plan`](linerate_model::plan::Plan) that leaves no choice to execution: which
//! cells, how often, in which order, for how long, and what was left out and why.
//!
//! This room does no I/O and reads no clock. It never sees a host, only the [`Hosts`] that it is
//! given, and randomness comes from the seed of the request: the same request gives the same plan.
//!
//! ```
//! use linerate_model::Nanos;
//! use linerate_plan::{Hosts, PlanRequest, describe, plan, study};
//!
//! let plan = plan(&study(), &PlanRequest {
//!     budget: Some(Nanos::from_s(180)),
//!     seed: 1,
//!     hosts: Hosts { clients: 5, ..Hosts::default() },
//!     further_blocks: 0,
//!     overhead_per_trial: Nanos::from_ms(250),
//!     overhead_per_flow: Nanos(0),
//!     overhead_once: Nanos::from_s(5),
//! })?;
//! assert!(plan.estimate <= Nanos::from_s(180));
//! assert!(describe(&plan, Some(&[])).contains("socket-buffer"));
//! # Ok::<(), linerate_plan::PlanError>(())
//! ```

/// Levels, replicates and lengths that a budget of time allows.
mod budget;
/// The chapters of the study that come with the program.
mod chapters;
/// A plan as text for people.
mod describe;
/// A checked experiment and how it grows with the time there is.
mod draft;
/// What a search adds to a plan.
mod extend;
/// Experiment files and profiles of uperf: text to [`Draft`].
mod file;
/// Levels that go together, and the cells that a design makes of them.
mod group;
/// What the hosts at hand cannot do.
mod hosts;
/// The order of trials: shuffled blocks, from a seed.
mod order;
/// From the hosts of a fleet to the pairs that measure.
mod pattern;
/// Putting it together.
mod planner;
/// Trials that show what a change does to a measurement.
mod proof;
/// What may be searched for.
mod search;

pub use chapters::{built_in, fleet_look, quick_look, study};
pub use describe::describe;
pub use draft::{BudgetHints, Draft};
pub use extend::extension;
pub use file::{ReadError, is_profile, read_experiment, read_fleet, read_profile};
pub use hosts::{Hosts, LabKnobs, knob_levels, link_losses};
pub use pattern::{PatternAsked, PatternError, paired, pairs};
pub use planner::{
    PlanError, PlanRequest, Single, TRIALS_MAX, fitting, is_single, loaded, plan, searched, single,
    yielding,
};
pub use proof::proof;
pub use search::{REPLICATES_MIN as SEARCH_REPLICATES_MIN, SearchError, search};
