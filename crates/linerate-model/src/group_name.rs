//! What a group of traffic is called.

use std::fmt;

/// The longest name of a group: it stands in front of every line of its own.
pub const GROUP_NAME_CHARS_MAX: usize = 16;

/// The name of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupName {
    /// The letters, and zeros behind them.
    letters: [u8; GROUP_NAME_CHARS_MAX],
}

impl GroupName {
    /// Returns `name` as one, if it is one.
    pub fn new(name: &str) -> Option<Self> {
        let mut letters = [0; GROUP_NAME_CHARS_MAX];
        if !is_name(name) {
            return None;
        }
        letters[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { letters })
    }

    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        let end = self.letters.iter().position(|letter| *letter == 0);
        let letters = &self.letters[..end.unwrap_or(GROUP_NAME_CHARS_MAX)];
        std::str::from_utf8(letters).unwrap_or_default()
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_name(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=GROUP_NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_fit)
}
