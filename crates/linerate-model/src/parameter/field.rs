//! Parts of a workload as levels.

use crate::experiment::Level;
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

/// Implements [`Field`] for a type: how a level is made of it, and it of a level.
macro_rules! field {
    ($($type:ty: |$own:pat_param| $level:expr, $pattern:pat => $value:expr;)*) => {
        $(impl Field for $type {
            fn level(&self) -> Option<Level> {
                let $own = self;
                Some($level)
            }

            fn set(&mut self, level: &Level) -> Option<()> {
                match level {
                    $pattern => *self = $value,
                    _ => return None,
                }
                Some(())
            }
        })*
    };
}

field! {
    bool: |own| Level::Switch(*own), Level::Switch(on) => *on;
    u8: |own| Level::Count((*own).into()), Level::Count(count) => (*count).try_into().ok()?;
    u32: |own| Level::Count((*own).into()), Level::Count(count) => (*count).try_into().ok()?;
    u64: |own| Level::Rate(*own), Level::Rate(rate) => *rate;
    Bytes: |own| Level::Size(*own), Level::Size(Bytes(bytes)) | Level::Count(bytes) => Bytes(*bytes);
    // No factor is a time, so that levels, which are stored, have no such kind.
    Nanos: |own| Level::Count(own.0), Level::Count(ns) => Nanos(*ns);
    String: |own| Level::Word(own.clone()), Level::Word(word) => word.clone();
    Direction: |own| Level::Word(own.word().to_owned()), Level::Word(word) => Named::named(word)?;
    Transport: |own| Level::Word(own.word().to_owned()), Level::Word(word) => Named::named(word)?;
    SendBy: |own| Level::Word(own.word().to_owned()), Level::Word(word) => Named::named(word)?;
    ReceiveBy: |own| Level::Word(own.word().to_owned()), Level::Word(word) => Named::named(word)?;
    WaitBy: |own| Level::Word(own.word().to_owned()), Level::Word(word) => Named::named(word)?;
}

impl<T: Field + Default> Field for Option<T> {
    fn level(&self) -> Option<Level> {
        self.as_ref()?.level()
    }

    fn set(&mut self, level: &Level) -> Option<()> {
        let mut value = T::default();
        value.set(level)?;
        *self = Some(value);
        Some(())
    }
}
