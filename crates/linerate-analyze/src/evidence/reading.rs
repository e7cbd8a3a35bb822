//! What is read of a fact: yes or no, and by how much; that there is nothing to read; or that nobody knows.

/// What is read of a fact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// How far beyond its bound the number lies, in units of its own spread: from 0 on the fact holds, below it does not.
    Known(f64),
    /// It is about other traffic, or what was read has nothing that would tell: a slope of what did not vary.
    Moot,
    /// What it takes was not read: it may hold or not.
    Unread,
}

/// Spread of a share of the time: readings are tens to a window, and ticks count percents.
const SHARE_SPREAD: f64 = 0.05;
/// Spread of the logarithm of a quotient of two numbers that were each measured to some percent.
const QUOTIENT_SPREAD: f64 = 0.1;
/// Farther beyond a bound than this tells nothing more.
const MARGIN_MAX: f64 = 10.0;

impl Reading {
    /// Returns whether the fact is known to hold.
    pub fn holds(self) -> bool {
        matches!(self, Self::Known(margin) if margin >= 0.0)
    }

    /// Returns whether the fact is known not to hold.
    pub fn fails(self) -> bool {
        matches!(self, Self::Known(margin) if margin < 0.0)
    }

    /// Returns how far to hold it is, from 0 to 1; a half at its bound.
    pub fn degree(self) -> Option<f64> {
        match self {
            Self::Known(margin) => Some(1.0 / (1.0 + (-margin).exp())),
            Self::Moot | Self::Unread => None,
        }
    }

    fn known(margin: f64) -> Self {
        if margin.is_finite() {
            Self::Known(margin.clamp(-MARGIN_MAX, MARGIN_MAX))
        } else {
            Self::Moot
        }
    }

    /// Reads that a share of the time, or of what there is, reaches `bound`.
    pub(super) fn share(value: Option<f64>, bound: f64) -> Self {
        value.map_or(Self::Moot, |value| {
            Self::known((value - bound) / SHARE_SPREAD)
        })
    }

    /// Reads that a number that is a quotient, or as wide as one, reaches `bound`.
    pub(super) fn quotient(value: Option<f64>, bound: f64) -> Self {
        let floor = f64::MIN_POSITIVE;
        value.map_or(Self::Moot, |value| {
            Self::known((value.max(floor) / bound).ln() / QUOTIENT_SPREAD)
        })
    }

    /// Reads that something was counted `bound` times or more: counts vary as their root (Poisson).
    pub(super) fn count(value: Option<f64>, bound: f64) -> Self {
        value.map_or(Self::Moot, |value| {
            Self::known((value - bound) / bound.sqrt())
        })
    }

    /// Reads what is known for certain, as a setting.
    pub(super) fn setting(value: Option<bool>) -> Self {
        match value {
            Some(true) => Self::Known(MARGIN_MAX),
            Some(false) => Self::Known(-MARGIN_MAX),
            None => Self::Unread,
        }
    }

    /// Reads a pattern of several numbers: where it is not seen, and one of them was not read, it may be there.
    pub(crate) fn pattern((is_seen, lacks): (bool, bool)) -> Self {
        Self::setting((is_seen || !lacks).then_some(is_seen))
    }

    /// Reads the opposite.
    pub(super) fn not(self) -> Self {
        match self {
            Self::Known(margin) => Self::Known(-margin),
            other => other,
        }
    }

    /// Reads that both hold; where one does not, the other need not be known.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(one), Self::Known(other)) => Self::Known(one.min(other)),
            (Self::Known(one), _) | (_, Self::Known(one)) if one < 0.0 => Self::Known(one),
            (Self::Unread, _) | (_, Self::Unread) => Self::Unread,
            _ => Self::Moot,
        }
    }

    /// Reads that one of both holds; where one does, the other need not be known.
    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_speaks_for_nothing() {
        let (yes, no) = (Reading::Known(2.0), Reading::Known(-2.0));
        assert_eq!(yes.and(Reading::Unread), Reading::Unread);
        assert_eq!(no.and(Reading::Unread), no);
        assert_eq!(yes.or(Reading::Unread), yes);
        assert_eq!(no.or(Reading::Unread), Reading::Unread);
        assert!(!Reading::Unread.holds() && !Reading::Unread.fails());
        assert_eq!(Reading::share(None, 0.5), Reading::Moot);
        assert_eq!(Reading::Unread.degree(), None);
    }

    #[test]
    fn a_margin_counts_spreads() {
        assert_eq!(
            Reading::share(Some(0.6), 0.5).degree(),
            Reading::known(2.0).degree()
        );
        assert!(Reading::quotient(Some(1.2), 1.2).holds());
        assert!(Reading::quotient(Some(0.0), 1.2).fails());
        // Of ten the root is three.
        assert!(
            matches!(Reading::count(Some(13.2), 10.0), Reading::Known(margin) if (0.9..1.1).contains(&margin))
        );
    }
}
