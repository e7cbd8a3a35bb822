//! What a person sees on the terminal. Data goes to standard output, everything else to standard
//! error.
#![expect(clippy::print_stderr, reason = "this module is the terminal")]

use std::io::{BufWriter, IsTerminal, StdoutLock, Write};

use linerate_model::{HostName, Nanos};
use serde::Serialize;

use crate::exit::Failure;

/// The progress of a plan.
pub mod progress;
/// Lines of a single measurement.
pub mod single;
/// A watched host.
pub mod watch;

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

/// Returns what to say of a host that is waited for.
fn lost(host: &HostName, wait: Nanos) -> String {
    let seconds = wait.0 / 1_000_000_000;
    format!("host {host} is lost; waiting up to {seconds} s for it to come back")
}

/// Prints a line of data. A reader that went away ends the program quietly.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        // What was measured is in the bundle already, where there is one.
        std::process::exit(1);
    }
}

/// A line of `--json-stream`.
#[derive(Serialize)]
struct EventLine<'a, T: Serialize> {
    event: &'a str,
    data: T,
}

/// Prints an event as a line of JSON, as `--json-stream` does.
pub fn json_line<T: Serialize>(event: &str, data: T) {
    print_json(|out| serde_json::to_writer(out, &EventLine { event, data }));
}

/// Prints a document for programs.
pub fn json_document<T: Serialize>(document: &T) {
    print_json(|out| serde_json::to_writer_pretty(out, document));
}

/// Prints what `write` writes as it comes, which of thousands of flows is tens of megabytes. A
/// reader that went away ends the program quietly; of plain values with text keys nothing else fails.
fn print_json(write: impl FnOnce(&mut BufWriter<StdoutLock<'_>>) -> serde_json::Result<()>) {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = write(&mut out).map_err(std::io::Error::from);
    if written
        .and_then(|()| writeln!(out))
        .and_then(|()| out.flush())
        .is_err()
    {
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

/// Columns of a label.
const LABEL_COLUMNS: usize = 16;

/// Prints a label and its words; on a terminal they are wrapped beside the label.
pub fn labelled(label: &str, words: &str) {
    let columns = match std::io::stdout().is_terminal() {
        true => width().saturating_sub(LABEL_COLUMNS),
        // Whoever searches the text finds it on one line.
        false => usize::MAX,
    };
    let mut label = label;
    for text in wrap(words, columns) {
        // Labels that are too long push their words on, rather than losing the blank between.
        line(format!("{label:<15} {text}").trim_end());
        label = "";
    }
}

/// Cuts `text` at blanks into lines of at most `columns` characters, where words allow.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let taken = lines[last].chars().count();
        if taken > 0 && taken + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if taken > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_are_cut_at_blanks() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("one two", usize::MAX), ["one two"]);
        assert_eq!(wrap("incomprehensible is", 8), ["incomprehensible", "is"]);
        assert_eq!(wrap("", 8), [""]);
    }
}
