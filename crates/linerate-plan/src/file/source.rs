//! The text of a file, to say where something stands, and the checks that need to say so.

use std::fmt::Display;
use std::ops::Range;

use super::error::{FORMAT, ReadError};
use super::raw;

/// The text of a file, to say where something stands.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) origin: &'a str,
}

/// A place in a file, and the key or section that stands there.
pub(super) struct Spot<'a> {
    source: &'a Source<'a>,
    key: String,
    span: Range<usize>,
}

impl Source<'_> {
    /// Refuses a file of another format before its keys are looked at.
    pub(super) fn check_format(&self) -> Result<(), ReadError> {
        let numbered: raw::Numbered =
            toml::from_str(self.text).map_err(|error| self.syntax(&error))?;
        match numbered.format {
            Some(FORMAT) | None => Ok(()),
            Some(found) => Err(ReadError::Format {
                origin: self.origin.to_owned(),
                found,
            }),
        }
    }

    /// Returns what the parser found, with the line and its text.
    pub(super) fn syntax(&self, error: &toml::de::Error) -> ReadError {
        let spot = self.at("", error.span().unwrap_or(0..0));
        spot.wrong(&plain(error.message()))
    }

    /// Returns the place of the factor called `name` in `[factors]`, if it stands there.
    pub(super) fn factor(&self, name: &str) -> Option<Spot<'_>> {
        let span = self.span_in("[factors]", name)?;
        Some(self.at(format!("factors.{name}"), span))
    }

    /// Returns where the key called `name` stands in `section`, if it does.
    pub(super) fn span_in(&self, section: &str, name: &str) -> Option<Range<usize>> {
        let mut at = self.text.find(section)?;
        let lines = self.text[at..].split_inclusive('\n').enumerate();
        for (number, line) in lines {
            if number > 0 && line.starts_with('[') {
                return None;
            }
            if line.split('=').next().map(str::trim) == Some(name) {
                return Some(at..at);
            }
            at += line.len();
        }
        None
    }

    /// Returns the line in which `span` begins, from 1.
    pub(super) fn line_of(&self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    /// Returns the place of `key`, which stands at `span`.
    pub(super) fn at(&self, key: impl Into<String>, span: Range<usize>) -> Spot<'_> {
        Spot {
            source: self,
            key: key.into(),
            span,
        }
    }
}

impl Spot<'_> {
    /// Returns the key, with its section.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the same place for a key below this one.
    pub(super) fn below(&self, key: impl Display) -> Self {
        let key = format!("{}.{key}", self.key);
        self.source.at(key, self.span.clone())
    }

    /// Returns the line, from 1.
    fn line(&self) -> usize {
        self.source.line_of(&self.span)
    }

    /// Returns that something else must stand here.
    pub(super) fn wrong(&self, message: &str) -> ReadError {
        let line = self.line();
        let text = self.source.text.lines().nth(line - 1).unwrap_or_default();
        ReadError::Syntax {
            origin: self.source.origin.to_owned(),
            line,
            text: text.trim().to_owned(),
            message: message.trim_end().replace('\n', "; "),
        }
    }

    /// Returns that the key has a value that is not `allowed`.
    pub(super) fn value(&self, value: impl ToString, allowed: impl Into<String>) -> ReadError {
        ReadError::Value {
            origin: self.source.origin.to_owned(),
            line: self.line(),
            key: self.key.clone(),
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    /// Checks that `low <= value <= high`.
    pub(super) fn within<T: Copy + PartialOrd + Display>(
        &self,
        value: T,
        low: T,
        high: T,
    ) -> Result<(), ReadError> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(self.value(value, format!("{low} to {high}")))
    }
}

/// Says what must stand somewhere in the words of TOML, where the parser says it in those of the program's types.
fn plain(message: &str) -> String {
    let words = match message.rsplit_once(", expected ") {
        Some((_, "u32")) => format!("a whole number from 0 to {}", u32::MAX),
        Some((_, "u64" | "usize")) => "a whole number from 0 on".to_owned(),
        Some((_, "a string" | "string only")) => "text in quotes".to_owned(),
        Some((_, "a boolean")) => "true or false".to_owned(),
        Some((found, other)) if found.starts_with("invalid ") => other.to_owned(),
        _ => return message.to_owned(),
    };
    format!("it must be {words}")
}
