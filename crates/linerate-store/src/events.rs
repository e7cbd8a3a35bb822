//! `events.ndjson`: one JSON object a line, in order of time.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use linerate_model::run::{Event, EventKind};
use linerate_model::{HostName, TrialId, number};
use serde::Deserialize;

use crate::durable::{FileError, Step, failed};

/// Lines that are no events and are told of one by one; what is beyond is a number, since each sentence takes
/// hundreds of times the two bytes that such a line has.
const DAMAGE_TOLD_MAX: usize = 10;

/// Appends events to a file, line by line.
#[derive(Debug)]
pub(crate) struct EventLog {
    path: PathBuf,
    file: File,
    /// Whether the last write may have left half a line.
    torn: bool,
}

impl EventLog {
    /// Makes the log at `path`, where nothing is.
    pub(crate) fn create(path: &Path) -> Result<Self, FileError> {
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(path)
            .map_err(failed(Step::Create, path))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            torn: false,
        })
    }

    /// Appends `line`, which holds no line break.
    pub(crate) fn append(&mut self, line: &str) -> Result<(), FileError> {
        // Half a line stays alone, so that it spoils no later one.
        let start = if self.torn { "\n" } else { "" };
        let result = self.file.write_all(format!("{start}{line}\n").as_bytes());
        self.torn = result.is_err();
        result.map_err(failed(Step::Write, &self.path))
    }

    /// Forces what was appended to the disk.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        self.file
            .sync_data()
            .map_err(failed(Step::Sync, &self.path))
    }
}

/// Returns `event` as a line: by its kind, and in words, which is all that readers know to whom events
/// had no kind.
pub(crate) fn line(event: &Event) -> serde_json::Result<String> {
    let mut line = serde_json::to_value(event)?;
    line["text"] = event.what.to_string().into();
    serde_json::to_string(&line)
}

/// Returns the events in `text`, and what was wrong with it.
pub(crate) fn parse(text: &[u8]) -> (Vec<Event>, Vec<String>) {
    let mut events = Vec::new();
    let mut damage = Vec::new();
    let mut untold = 0u64;
    let mut lines = text.split(|&byte| byte == b'\n').zip(1u64..).peekable();
    while let Some((line, number)) = lines.next() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match event(line) {
            Ok(event) => events.push(event),
            Err(_) if lines.peek().is_none() => {
                damage.push(format!(
                    "events.ndjson: the last line is torn; one event is lost, {} are kept",
                    events.len()
                ));
            }
            Err(error) if damage.len() < DAMAGE_TOLD_MAX => damage.push(format!(
                "events.ndjson: line {number} is not an event ({error}); it is left out"
            )),
            Err(_) => untold += 1,
        }
    }
    if untold > 0 {
        let lines = number::counted(untold, "more line");
        damage.push(format!("events.ndjson: {lines} left out, no events either"));
    }
    (events, damage)
}

/// An event as it was before events had a kind.
#[derive(Deserialize)]
struct Untyped {
    at_ns: u64,
    trial: Option<TrialId>,
    host: Option<HostName>,
    text: String,
}

fn event(line: &[u8]) -> serde_json::Result<Event> {
    serde_json::from_slice(line).or_else(|error| {
        let untyped: Untyped = serde_json::from_slice(line).map_err(|_| error)?;
        Ok(Event {
            at_ns: untyped.at_ns,
            trial: untyped.trial,
            host: untyped.host,
            what: EventKind::Told { text: untyped.text },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at_ns: u64) -> String {
        format!(r#"{{"at_ns":{at_ns},"trial":null,"host":"server","text":"x"}}"#)
    }

    #[test]
    fn torn_and_foreign_lines_cost_only_themselves() {
        let check = |text: String, times: &[u64], damage: &[&str]| {
            let (events, told) = parse(text.as_bytes());
            let got: Vec<u64> = events.iter().map(|event| event.at_ns).collect();
            assert_eq!(got, times, "{text}");
            assert_eq!(told.len(), damage.len(), "{told:?}");
            for (told, expected) in told.iter().zip(damage) {
                assert!(told.contains(expected), "{told}");
            }
        };
        check(String::new(), &[], &[]);
        check(format!("{}\n{}\n", line(1), line(2)), &[1, 2], &[]);
        check(format!("{}\n{}", line(1), line(2)), &[1, 2], &[]);
        check(
            format!("{}\n{}", line(1), &line(2)[..20]),
            &[1],
            &["last line is torn"],
        );
        check(
            format!("{}\n\n{}\n{}\n", line(1), &line(2)[..20], line(3)),
            &[1, 3],
            &["line 3"],
        );
    }

    #[test]
    fn what_is_told_of_broken_lines_is_bounded() {
        let text = format!("{}{}\n", "{\n".repeat(50_000), line(7));
        let (events, damage) = parse(text.as_bytes());
        assert_eq!(events.len(), 1);
        assert_eq!(damage.len(), DAMAGE_TOLD_MAX + 1);
        let untold = 50_000 - DAMAGE_TOLD_MAX;
        let rest = damage.last().expect("the rest");
        assert!(
            rest.contains(&number::counted(untold, "more line")),
            "{rest}"
        );
    }
}
