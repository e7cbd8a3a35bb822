//! What a person sees on the terminal. Data goes to standard output, everything else to standard
//! error.
#![expect(clippy::print_stderr, reason = "this module is the terminal")]

use std::io::{IsTerminal, Write};

use crate::exit::Failure;

/// The progress of a plan.
pub mod progress;
/// Lines of a single measurement.
pub mod single;

/// Prints a failure with its next step.
pub fn error(failure: &Failure) {
    eprintln!("linerate: error: {failure}");
    if let Some(next) = &failure.next {
        eprintln!("  next: {next}");
    }
}

/// Prints something to know, on standard error.
pub fn note(text: &str) {
    eprintln!("linerate: {text}");
}

/// Prints a line of data. A reader that went away ends the program quietly.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        // What was measured is in the bundle already, where there is one.
        std::process::exit(1);
    }
}

/// Returns whether to use colours on standard output.
pub fn color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stdout().is_terminal()
}

/// Returns the columns of the terminal, between 40 and 120.
pub fn width() -> usize {
    let (_, columns) = console::Term::stdout().size();
    usize::from(columns).clamp(40, 120)
}
