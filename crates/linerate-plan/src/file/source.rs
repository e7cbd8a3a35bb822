//! The text of a file, to say where something stands, and the checks that need to say so.

use std::ops::Range;

use linerate_model::Nanos;

use super::{FORMAT, PHASE_MAX, ReadError, raw};

/// The text of a file, to say where something stands.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) origin: &'a str,
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

    /// Returns the line, from 1, in which `span` begins.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    /// Returns what the parser found, with the line and its text.
    pub(super) fn syntax(&self, error: &toml::de::Error) -> ReadError {
        self.wrong(&error.span().unwrap_or(0..0), error.message())
    }

    /// Returns that something else must stand at `span`.
    pub(super) fn wrong(&self, span: &Range<usize>, message: &str) -> ReadError {
        let line = self.line(span);
        let text = self.text.lines().nth(line - 1).unwrap_or_default().trim();
        ReadError::Syntax {
            origin: self.origin.to_owned(),
            line,
            text: text.to_owned(),
            message: message.trim_end().replace('\n', "; "),
        }
    }

    /// Returns that `key`, at `span`, has a value that is not `allowed`.
    pub(super) fn value(
        &self,
        span: &Range<usize>,
        key: impl Into<String>,
        value: impl ToString,
        allowed: impl Into<String>,
    ) -> ReadError {
        ReadError::Value {
            origin: self.origin.to_owned(),
            line: self.line(span),
            key: key.into(),
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    /// Checks that `low <= value <= high`.
    pub(super) fn within(
        &self,
        span: &Range<usize>,
        key: &str,
        value: u32,
        low: u32,
        high: u32,
    ) -> Result<(), ReadError> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(self.value(span, key, value, format!("{low} to {high}")))
    }

    /// Checks that `value` is a phase of at least `low`.
    pub(super) fn within_time(
        &self,
        span: &Range<usize>,
        key: &str,
        value: Nanos,
        low: Nanos,
    ) -> Result<(), ReadError> {
        if (low..=PHASE_MAX).contains(&value) {
            return Ok(());
        }
        Err(self.value(span, key, value, format!("{low} to {PHASE_MAX}")))
    }
}
