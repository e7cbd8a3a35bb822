//! What a person sees on the terminal. Data goes to standard output, everything else to standard
//! error. Every line is wrapped at blanks: 80 columns, or as many as the terminal has up to 100.

use std::borrow::Cow;
use std::io::{BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;

use console::Term;
pub use linerate_model::text::wrap;
use linerate_model::{HostName, Nanos};
pub use linerate_report::Look;
use serde::Serialize;

use crate::exit::Failure;

/// What traffic costs.
pub mod capacity;
/// What holds a number.
pub mod explained;
/// Failures for programs.
pub mod failure;
/// A fleet that was asked who it is.
pub mod fleet;
/// A named lab.
pub mod lab;
/// Latency alone and under load.
pub mod loaded;
/// The progress of a plan.
pub mod progress;
/// Lines of a single measurement.
pub mod single;
/// A watched host.
pub mod watch;

use single::Form;

/// Columns where no terminal says how many it has.
const COLUMNS: usize = 80;
/// Fewest columns that text is wrapped to.
const COLUMNS_MIN: usize = 40;
/// Most: longer lines are hard to read.
const COLUMNS_MAX: usize = 100;

/// Prints a failure with its next step.
pub fn error(failure: &Failure) {
    say("linerate: error: ", &failure.to_string());
    if let Some(next) = &failure.next {
        say("  next: ", next);
    }
}

/// Prints why a command line is none, in the words of its parser, and `hint` in the place of its guess;
/// returns the reason alone. Of a flag that there is not, the parser's usage would be one with guessed flags.
pub fn usage(text: &str, is_of_unknown_flag: bool, hint: Option<&str>) -> String {
    let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    let mut parts: Vec<&str> = text.split("\n\n").collect();
    let reason = plain(parts.remove(0));
    let reason = reason.as_str();
    // What was meant is told as the next step, by one rule.
    parts.retain(|part| !part.trim_start().starts_with("tip:"));
    if is_of_unknown_flag {
        parts.retain(|part| !part.starts_with("Usage:"));
    }
    say("linerate: error: ", reason);
    if let Some(hint) = hint {
        say("  next: ", hint);
    }
    for part in parts {
        bare_note("");
        say("", part);
    }
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Says in words why a value is none, where the standard library says it in those of its parsers.
fn plain(reason: &str) -> String {
    let known = [
        ("invalid digit found in string", "it must be a whole number"),
        (
            "cannot parse integer from empty string",
            "it must be a whole number",
        ),
        (
            "cannot parse float from empty string",
            "it must be a number",
        ),
        ("invalid float literal", "it must be a number"),
        ("number too large to fit in target type", "it is too large"),
        ("number too small to fit in target type", "it is too small"),
    ];
    let of_parser = known
        .into_iter()
        .find(|(parsers, _)| reason.contains(parsers));
    of_parser.map_or_else(
        || reason.to_owned(),
        |(parsers, words)| reason.replace(parsers, words),
    )
}

/// Prints something to know, on standard error.
pub fn note(text: &str) {
    say("linerate: ", text);
}

/// Prints `text` on standard error, further lines indented.
fn say(lead: &str, text: &str) {
    for line in wrap(&format!("{lead}{text}"), columns(&Term::stderr()), 2) {
        bare_note(&line);
    }
}

/// Prints a line as it is, on standard error. A log that nobody takes any more ends nothing.
pub fn bare_note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", clean(text, Colours::None));
}

/// Whether a text may have colours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colours {
    /// It may, and has them from us.
    Own,
    /// It has none.
    None,
}

/// Returns `text` without what a terminal would obey: labels, host names, refusals, file names and values
/// of files come from elsewhere, and all that is printed passes here. Colours stay where they are ours.
fn clean(text: &str, colours: Colours) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = if colours == Colours::Own {
            colour_bytes(rest)
        } else {
            0
        };
        let taken = colour.max(c.len_utf8());
        if colour == 0 && is_obeyed(c) {
            shown.push(char::REPLACEMENT_CHARACTER)
        } else {
            shown.push_str(&rest[..taken])
        }
        rest = &rest[taken..];
    }
    Cow::Owned(shown)
}

/// Returns the length of the change of colour that `text` begins with (ECMA-48, SGR), or 0.
fn colour_bytes(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else {
        return 0;
    };
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';');
    match end.filter(|end| parameters[*end..].starts_with('m')) {
        Some(end) => "\u{1b}[".len() + end + 1,
        None => 0,
    }
}

/// Whether a terminal does something else with a character than show it: control characters, and those
/// that turn the direction of what follows (Unicode, UAX #9).
fn is_obeyed(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Returns what to say of a host that is waited for.
pub fn lost(host: &HostName, wait: Nanos) -> String {
    let seconds = wait.0 / 1_000_000_000;
    format!("host {host} is lost; waiting up to {seconds} s for it to come back")
}

/// Returns what to say of a host that another run has.
pub fn queued(host: &HostName, place: u32) -> String {
    format!("host {host} is busy; waiting, number {place} in its queue")
}

/// Prints a line of data. A reader that went away ends the program quietly, in order.
pub fn line(text: &str) {
    let colours = if color() { Colours::Own } else { Colours::None };
    let text = clean(text, colours);
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        crate::interrupt::not_printed(error);
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

/// Prints a line of JSON that says its own event.
pub fn json_row<T: Serialize>(row: &T) {
    print_json(|out| serde_json::to_writer(out, row));
}

/// Prints a document for programs: on one line, so that documents may follow each other in a file of JSON lines,
/// and only on a terminal as people read it.
pub fn json_document<T: Serialize>(document: &T) {
    if std::io::stdout().is_terminal() {
        json_pretty(document)
    } else {
        print_json(|out| serde_json::to_writer(out, document));
    }
}

/// Prints a document on many lines, wherever it goes.
pub fn json_pretty<T: Serialize>(document: &T) {
    print_json(|out| serde_json::to_writer_pretty(out, document));
}

/// Writes JSON of which a terminal obeys nothing: what it obeys stands in strings only, where JSON takes
/// its number as well.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // A serializer writes whole pieces of text.
        let Ok(mut rest) = std::str::from_utf8(bytes) else {
            return self.0.write(bytes);
        };
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_obeyed(*c)) {
            self.0.write_all(&rest.as_bytes()[..at])?;
            write!(self.0, "\\u{:04x}", u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Prints what `write` writes as it comes, which of thousands of flows is tens of megabytes. A
/// reader that went away ends the program quietly; of plain values with text keys nothing else fails.
fn print_json(
    write: impl FnOnce(&mut Escaped<BufWriter<StdoutLock<'_>>>) -> serde_json::Result<()>,
) {
    let mut out = Escaped(BufWriter::new(std::io::stdout().lock()));
    let written = write(&mut out).map_err(std::io::Error::from);
    let written = written
        .and_then(|()| writeln!(out))
        .and_then(|()| out.flush());
    if let Err(error) = written {
        crate::interrupt::not_printed(error);
    }
}

/// Prints what is for programs: byte by byte, but on a terminal without what that would obey.
pub fn file(text: &str, form: Form) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let on_terminal = out.is_terminal();
    write_file(&mut out, text, form, on_terminal)?;
    out.flush()
}

fn write_file(
    out: &mut impl Write,
    text: &str,
    form: Form,
    on_terminal: bool,
) -> std::io::Result<()> {
    match (on_terminal, form) {
        (false, _) => out.write_all(text.as_bytes()),
        (true, Form::Json | Form::JsonStream) => Escaped(out).write_all(text.as_bytes()),
        (true, Form::Text | Form::Csv) => out.write_all(clean(text, Colours::None).as_bytes()),
    }
}

/// Returns whether to use colours on standard output.
pub fn color() -> bool {
    static COLOR: OnceLock<bool> = OnceLock::new();
    *COLOR.get_or_init(|| {
        std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::io::stdout().is_terminal()
    })
}

/// Returns `text` as it stands out, where standard output has colours.
pub fn styled(text: &str, look: Look) -> String {
    linerate_report::styled(text, look, color())
}

/// Returns the columns of lines on standard output.
pub fn width() -> usize {
    columns(&Term::stdout())
}

fn columns(term: &Term) -> usize {
    let of_terminal = term.size_checked().filter(|_| term.is_term());
    of_terminal.map_or(COLUMNS, |(_, columns)| {
        usize::from(columns).clamp(COLUMNS_MIN, COLUMNS_MAX)
    })
}

/// Columns of a label.
const LABEL_COLUMNS: usize = 16;

/// Returns the columns of words beside a label.
pub fn words_width() -> usize {
    width() - LABEL_COLUMNS
}

/// Prints a label and its words, wrapped beside the label.
pub fn labelled(label: &str, words: &str) {
    labelled_as(label, words, Look::Plain);
}

/// Prints a label and words that stand out.
pub fn labelled_as(label: &str, words: &str, look: Look) {
    labelled_wrapped(label, words, look, 0);
}

/// Prints words as one of a list under a label.
pub fn listed(words: &str) {
    labelled_wrapped("", &format!("- {words}"), Look::Plain, 2);
}

fn labelled_wrapped(label: &str, words: &str, look: Look, indent: usize) {
    let mut label = label;
    for text in wrap(words, words_width(), indent) {
        // Labels that are too long push their words on, rather than losing the blank between.
        line(format!("{label:<15} {}", styled(&text, look)).trim_end());
        label = "";
    }
}

/// Prints lines that are made for people; what is longer than a line is wrapped.
pub fn text(lines: &str) {
    for words in lines.lines() {
        if words.chars().count() > width() {
            paragraph(words);
        } else {
            line(words);
        }
    }
}

/// Prints words over the whole width, further lines indented.
pub fn paragraph(words: &str) {
    for text in wrap(words, width(), 2) {
        line(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::{Colours, Escaped, Form, clean, write_file};

    /// A program reads what was said; a terminal that shows it obeys nothing of it.
    #[test]
    fn files_are_as_they_are_but_on_a_terminal() {
        let written = |form: Form, on_terminal: bool| {
            let mut out = Vec::new();
            write_file(&mut out, "a,\u{1b}[2J\u{9b}1m\r\n\tä", form, on_terminal).unwrap();
            String::from_utf8(out).unwrap()
        };
        for form in [Form::Json, Form::Text] {
            assert_eq!(written(form, false), "a,\u{1b}[2J\u{9b}1m\r\n\tä");
        }
        let plain = "a,\u{fffd}[2J\u{fffd}1m\u{fffd}\n\tä";
        assert_eq!(written(Form::Text, true), plain);
        let json = "a,\\u001b[2J\\u009b1m\\u000d\n\tä";
        assert_eq!(written(Form::Json, true), json);
    }

    #[test]
    fn json_moves_no_cursor_and_says_the_same() {
        let label = "ä\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\u{2066}\nend";
        let mut out = Escaped(Vec::new());
        serde_json::to_writer(&mut out, &[label, "plain"]).expect("written");
        let text = String::from_utf8(out.0).expect("text");
        assert!(!text.contains(super::is_obeyed), "{text:?}");
        let read: Vec<String> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read, [label, "plain"]);
    }

    #[test]
    fn a_terminal_obeys_nobody_else() {
        let label = "\u{1b}[2J\u{1b}]0;x\u{7}\rHACKED\u{202e}\u{9b}31m\u{7f}";
        assert_eq!(
            clean(label, Colours::None),
            "\u{fffd}[2J\u{fffd}]0;x\u{fffd}\u{fffd}HACKED\u{fffd}\u{fffd}31m\u{fffd}"
        );
        assert_eq!(
            clean("two\n\tlines, ± ä", Colours::Own),
            "two\n\tlines, ± ä"
        );
        let own = "\u{1b}[1;31mred\u{1b}[0m\u{1b}[2J";
        assert_eq!(
            clean(own, Colours::Own),
            "\u{1b}[1;31mred\u{1b}[0m\u{fffd}[2J"
        );
    }
}
