//! The list of scenarios, and how one is run.

use std::process::ExitCode;

use linerate_lab::{Entered, LabError, enter};

use crate::{SKIPPED, labs, named};

/// What a scenario starts from.
pub enum Scenario {
    /// A process that has entered its lab.
    Entered(fn(&Entered)),
    /// A process that has not.
    Outside(fn()),
}

/// All scenarios in the order in which they run.
pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("rate_is_that_of_a_wire", Scenario::Entered(labs::rate)),
    (
        "gigabit_is_never_exceeded",
        Scenario::Entered(labs::gigabit),
    ),
    ("each_way_has_its_rate", Scenario::Entered(labs::asymmetry)),
    ("a_queue_drops_at_its_bytes", Scenario::Entered(labs::queue)),
    (
        "short_frames_cost_what_they_cost",
        Scenario::Entered(labs::short_frames),
    ),
    ("delay_is_kept", Scenario::Entered(labs::delay)),
    ("loss_is_kept", Scenario::Entered(labs::loss)),
    ("duplicates_are_kept", Scenario::Entered(labs::duplicates)),
    ("disorder_is_seen_by_tcp", Scenario::Entered(labs::disorder)),
    (
        "single_frames_are_lost",
        Scenario::Entered(labs::single_frames),
    ),
    ("mtu_and_queues", Scenario::Entered(labs::mtu_and_queues)),
    ("programs_are_escorted", Scenario::Entered(labs::escort)),
    ("down_leaves_nothing", Scenario::Entered(labs::down)),
    ("mistakes_are_named", Scenario::Entered(labs::mistakes)),
    ("threads_cannot_enter", Scenario::Outside(labs::threads)),
    ("killed_leaves_nothing", Scenario::Outside(labs::killed)),
    ("victim", Scenario::Entered(labs::victim)),
    ("ordinary_user", Scenario::Outside(labs::ordinary_user)),
    ("named_life", Scenario::Outside(named::life)),
    ("named_crash", Scenario::Outside(named::crash)),
    ("named_lost", Scenario::Outside(named::lost)),
];

/// Runs the scenario called `name` in this process.
pub fn run(name: &str) -> ExitCode {
    let found = SCENARIOS.iter().find(|(candidate, _)| *candidate == name);
    let (_, scenario) = found.unwrap_or_else(|| panic!("no scenario is called {name}"));
    let entered = match scenario {
        Scenario::Outside(run) => {
            if !may_make_labs() {
                return ExitCode::from(SKIPPED);
            }
            run();
            return ExitCode::SUCCESS;
        }
        Scenario::Entered(run) => enter().map(|entered| run(&entered)),
    };
    match entered {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if lacks_privilege(&error) => {
            println!("{error}");
            ExitCode::from(SKIPPED)
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Tries it in a process of its own, because there is no way back from it.
fn may_make_labs() -> bool {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = std::process::Command::new(program);
    let status = command.env(crate::SCENARIO, "down_leaves_nothing").status();
    status.expect("this program can be run again").code() != Some(i32::from(SKIPPED))
}

fn lacks_privilege(error: &LabError) -> bool {
    matches!(
        error,
        LabError::UserNamespace { .. } | LabError::IdMap { .. } | LabError::NetworkNamespace { .. }
    )
}
