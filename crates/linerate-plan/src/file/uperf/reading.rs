//! What is looked at while a profile is read: its text, and the variables of the environment.

use std::ops::Range;

use linerate_model::Nanos;

use super::number;
use crate::file::error::ReadError;
use crate::file::source::{Source, Spot};

/// What is looked at while a profile is read: its text, and the values of variables.
pub(super) struct Reading<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// A value, after its variable has been looked up, and where it stands.
pub(super) struct Word {
    pub(super) key: String,
    pub(super) text: String,
    pub(super) at: Range<usize>,
}

impl Reading<'_> {
    /// Returns the place of what is called `key` in messages.
    pub(super) fn spot(&self, key: impl Into<String>, at: Range<usize>) -> Spot<'_> {
        self.source.at(key, at)
    }

    /// Returns `word` with the value of its variable, where it is one.
    pub(super) fn looked_up(&self, word: Word) -> Result<Word, ReadError> {
        let Some(name) = word.text.strip_prefix('$') else {
            return Ok(word);
        };
        match (self.variable)(name) {
            Some(text) => Ok(Word {
                text: text.trim().to_ascii_lowercase(),
                ..word
            }),
            None => {
                let spot = self.spot(word.key.clone(), word.at);
                Err(spot.wrong(&format!("the environment has no variable `{name}`")))
            }
        }
    }

    /// Returns the number that `word` is, within `low` and `high`.
    pub(super) fn number(&self, word: &Word, low: u64, high: u64) -> Result<u64, ReadError> {
        let spot = self.spot(word.key.clone(), word.at.clone());
        let allowed = || format!("a number from {low} to {high}, such as 8k or 1.5m");
        let number = number::count(&word.text).filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| spot.value(format!("`{}`", word.text), allowed()))
    }

    /// Returns the time that `word` is.
    pub(super) fn time(&self, word: &Word) -> Result<Nanos, ReadError> {
        let spot = self.spot(word.key.clone(), word.at.clone());
        let time = number::time(&word.text).filter(|time| time.0 > 0);
        let allowed = "a time such as 30s, 10m (milliseconds), 5u or 5n";
        time.ok_or_else(|| spot.value(format!("`{}`", word.text), allowed))
    }
}
