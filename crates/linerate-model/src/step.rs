//! The steps of an exchange of more than one request and one response.
//!
//! They are written as the client sees them; the server plays the mirror image. All of them are one transaction, which begins
//! with the first thing sent and is complete with the last one received.

use serde::{Deserialize, Serialize};

use crate::sample::End;
use crate::unit::{Bytes, Nanos};

/// The most steps of an exchange: as many flowops as a transaction of uperf may have here.
pub const STEPS_MAX: usize = 1000;
/// The longest pause of an end, as that of `think`.
pub const PAUSE_MAX: Nanos = Nanos::from_s(3600);
/// What a step may be, in words.
pub const STEP_FORMS: &str = "steps such as \"send 256\", \"receive 1K\", \"pause 1ms\" or \"spin 50us\" of the client, and \"server pause 1ms\" or \
     \"server spin 50us\"";

/// One step of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// The client sends by one call, and the server takes it.
    Send {
        /// How much, 1 B to 64 MiB.
        bytes: Bytes,
    },
    /// The server sends by one call, and the client takes it.
    Receive {
        /// How much, 1 B to 64 MiB.
        bytes: Bytes,
    },
    /// An end does nothing for a time.
    Pause {
        /// Which end.
        end: End,
        /// For how long, up to an hour.
        time: Nanos,
        /// Whether it keeps its CPU busy meanwhile.
        busy: bool,
    },
}

impl Step {
    /// Returns the step that people write so, if it is one: see [`STEP_FORMS`].
    pub fn named(text: &str) -> Option<Self> {
        let (end, rest) = match text.split_once(' ') {
            Some(("server", rest)) => (End::Server, rest.trim_start()),
            _ => (End::Client, text),
        };
        let (verb, amount) = rest.split_once(' ')?;
        let bytes = || amount.parse().ok();
        match (end, verb) {
            (End::Client, "send") => bytes().map(|bytes| Step::Send { bytes }),
            (End::Client, "receive") => bytes().map(|bytes| Step::Receive { bytes }),
            (_, "pause" | "spin") => amount.parse().ok().map(|time| Step::Pause {
                end,
                time,
                busy: verb == "spin",
            }),
            _ => None,
        }
    }

    /// Returns which end sends in it, and how much.
    pub fn message(self) -> Option<(End, Bytes)> {
        match self {
            Step::Send { bytes } => Some((End::Client, bytes)),
            Step::Receive { bytes } => Some((End::Server, bytes)),
            Step::Pause { .. } => None,
        }
    }
}

/// Returns the bytes that each end sends in `steps`: request and response of the transaction.
pub fn exchanged(steps: &[Step]) -> (Bytes, Bytes) {
    let sum = |own: End| {
        let messages = steps.iter().filter_map(|step| step.message());
        let own = messages.filter(|(end, _)| *end == own);
        Bytes(own.fold(0, |sum, (_, bytes)| bytes.0.saturating_add(sum)))
    };
    (sum(End::Client), sum(End::Server))
}

/// Returns how often the client waits for the server in `steps`, from the first to the last.
pub fn turns(steps: &[Step]) -> u32 {
    let ends = steps.iter().filter_map(|step| Some(step.message()?.0));
    let ends: Vec<End> = ends.collect();
    let answers = ends
        .windows(2)
        .filter(|pair| *pair == [End::Client, End::Server]);
    answers.count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(words: &[&str]) -> Vec<Step> {
        let step = |text: &&str| Step::named(text).expect("a step");
        words.iter().map(step).collect()
    }

    #[test]
    fn steps_are_read_as_people_write_them() {
        let pause = |end, time, busy| Step::Pause { end, time, busy };
        let ms = Nanos::from_ms(1);
        let expected = [
            Step::Send { bytes: Bytes(256) },
            Step::Receive { bytes: Bytes(1024) },
            pause(End::Client, ms, false),
            pause(End::Client, Nanos(50_000), true),
            pause(End::Server, ms, false),
            pause(End::Server, ms, true),
        ];
        let words = [
            "send 256",
            "receive  1K",
            "pause 1ms",
            "spin 50us",
            "server pause 1ms",
            "server  spin 1ms",
        ];
        assert_eq!(steps(&words), expected);
        for none in ["", "send", "send x", "server send 1", "sleep 1ms", "server"] {
            assert_eq!(Step::named(none), None, "{none}");
        }
    }

    #[test]
    fn what_steps_come_to_is_known() {
        let mixed = steps(&[
            "send 1",
            "send 2",
            "receive 4",
            "spin 1s",
            "send 8",
            "receive 16",
        ]);
        assert_eq!(exchanged(&mixed), (Bytes(11), Bytes(20)));
        assert_eq!((turns(&mixed), turns(&mixed[..2])), (2, 0));
    }
}
