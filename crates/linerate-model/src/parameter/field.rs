//! Parts of a workload as levels.

use crate::experiment::{AUTO, Level};
use crate::manner::{Named, ReceiveBy, SendBy, Transport, WaitBy};
use crate::unit::{Bytes, Nanos};
use crate::workload::Direction;

/// A part of a workload that a level can be read from, and written to.
pub(super) trait Field {
    /// Returns what it is, where it is set.
    fn level(&self) -> Option<Level>;

    /// Takes the value of `level`, unless that is of another kind or too large.
    fn set(&mut self, level: &Level) -> Option<()>;
}

/// Implements [`Field`] for a type: the level that is made of it, and it of a level.
macro_rules! field {
    ($($type:ty: |$own:ident| $read:expr, |$level:ident| $value:expr;)*) => {
        $(impl Field for $type {
            fn level(&self) -> Option<Level> {
                let $own = self;
                Some($read)
            }

            fn set(&mut self, $level: &Level) -> Option<()> {
                *self = $value?;
                Some(())
            }
        })*
    };
}

field! {
    bool: |own| Level::Switch(*own), |level| switch(level);
    u8: |own| Level::Count((*own).into()), |level| level.whole()?.try_into().ok();
    u32: |own| Level::Count((*own).into()), |level| level.whole()?.try_into().ok();
    u64: |own| Level::Rate(*own), |level| level.whole();
    Bytes: |own| Level::Size(*own), |level| level.whole().map(Bytes);
    // No factor is a time, so that levels, which are stored, have no such kind.
    Nanos: |own| Level::Count(own.0), |level| level.whole().map(Nanos);
    String: |own| Level::Word(own.clone()), |level| word(level).map(str::to_owned);
    Direction: |own| Level::Word(own.word().to_owned()), |level| Named::named(word(level)?);
    Transport: |own| Level::Word(own.word().to_owned()), |level| Named::named(word(level)?);
    SendBy: |own| Level::Word(own.word().to_owned()), |level| Named::named(word(level)?);
    ReceiveBy: |own| Level::Word(own.word().to_owned()), |level| Named::named(word(level)?);
    WaitBy: |own| Level::Word(own.word().to_owned()), |level| Named::named(word(level)?);
}

impl<T: Field + Default> Field for Option<T> {
    fn level(&self) -> Option<Level> {
        self.as_ref()?.level()
    }

    fn set(&mut self, level: &Level) -> Option<()> {
        let mut value = T::default();
        *self = match value.set(level) {
            Some(()) => Some(value),
            // What fixed values are held against.
            None if word(level) == Some(AUTO) => None,
            None => return None,
        };
        Some(())
    }
}

fn switch(level: &Level) -> Option<bool> {
    match level {
        Level::Switch(on) => Some(*on),
        _ => None,
    }
}

fn word(level: &Level) -> Option<&str> {
    match level {
        Level::Word(word) => Some(word),
        _ => None,
    }
}
