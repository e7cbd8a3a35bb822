//! The lab ring: labs with known rate, delay and loss, held against what traffic finds.
//!
//! A lab must be entered by a process with one thread, which a test thread is not. So this
//! program runs itself once for each scenario, and the scenarios run it again inside the hosts
//! as the programs that make traffic.
//!
//! Without root and without user namespaces every scenario is skipped and says so; where
//! CI=true it fails instead.

#![expect(clippy::print_stdout, reason = "a test program talks by its output")]

mod labs;
mod named;
mod probe;
mod scenario;

use std::env;
use std::process::{Command, ExitCode};

/// Names the scenario that this process shall run.
pub const SCENARIO: &str = "LINERATE_LAB_SCENARIO";
/// Names the traffic that this process shall make.
pub const PROBE: &str = "LINERATE_LAB_PROBE";
/// The exit code of a scenario that lacks the privilege.
const SKIPPED: u8 = 77;

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some(named::HOLD) {
        return named::hold();
    }
    if let Ok(name) = env::var(PROBE) {
        probe::run(&name);
        return ExitCode::SUCCESS;
    }
    if let Ok(name) = env::var(SCENARIO) {
        return scenario::run(&name);
    }
    let filter = env::args().skip(1).find(|word| !word.starts_with('-'));
    if env::args().any(|word| word == "--list") {
        scenario::SCENARIOS
            .iter()
            .for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    run_all(filter.as_deref().unwrap_or_default())
}

fn run_all(filter: &str) -> ExitCode {
    let must_run = env::var("CI").is_ok_and(|value| value == "true");
    let mut failed = 0;
    for (name, _) in scenario::SCENARIOS {
        if !name.contains(filter) {
            continue;
        }
        let program = env::current_exe().expect("this program has a path");
        let status = Command::new(program).env(SCENARIO, name).status();
        let code = status.expect("this program can be run again").code();
        let word = match code {
            Some(0) => "ok",
            Some(code) if code == i32::from(SKIPPED) && !must_run => "skipped: no privilege",
            _ => {
                failed += 1;
                "FAILED"
            }
        };
        println!("lab ring: {name} ... {word}");
    }
    ExitCode::from(u8::from(failed > 0))
}
