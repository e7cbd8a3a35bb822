//! What a token is good for.

use std::fmt;
use std::str::FromStr;

/// One thing that a token may be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Runs: flows from and to this host, also to hosts that the caller names, without the limits
    /// for strangers.
    Measure,
    /// What the host shows: facts, every observer, sockets, profiles.
    Observe,
    /// Frames of its own trials.
    Capture,
    /// What goes past the host's own rules: frames past its sockets.
    Admin,
}

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scopes(u8);

/// Words that name no scopes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scope: measure, observe, capture, admin, or several of them with commas")]
pub struct ScopeError(String);

impl Scope {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Measure, Self::Observe, Self::Capture, Self::Admin];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measure => "measure",
            Self::Observe => "observe",
            Self::Capture => "capture",
            Self::Admin => "admin",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Scopes {
    /// Good for what a token is made for where nothing else is asked for.
    pub const USUAL: Self = Self(0b0011);
    /// Good for everything.
    pub const ALL: Self = Self(0b1111);

    /// Returns whether `scope` is one of them.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns these and `scope`.
    pub fn with(self, scope: Scope) -> Self {
        Self(self.0 | scope.bit())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = Scope::ALL.into_iter().filter(|scope| self.has(*scope));
        let names: Vec<&str> = held.map(Scope::name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Scopes {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let mut bits = 0;
        for word in text.split(',') {
            let scope = Scope::ALL.into_iter().find(|scope| scope.name() == word);
            bits |= scope.ok_or_else(|| ScopeError(word.to_owned()))?.bit();
        }
        Ok(Self(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for text in ["measure", "measure,observe", "capture,admin"] {
            let scopes: Scopes = text.parse().unwrap();
            assert_eq!(scopes.to_string(), text);
            for scope in Scope::ALL {
                assert_eq!(scopes.has(scope), text.contains(scope.name()), "{text}");
            }
        }
        assert_eq!(Scopes::USUAL.to_string(), "measure,observe");
        assert_eq!(Scopes::ALL.to_string(), "measure,observe,capture,admin");
        for bad in ["", "measure,", "all", "Measure", "measure observe"] {
            assert!(bad.parse::<Scopes>().is_err(), "{bad}");
        }
    }
}
