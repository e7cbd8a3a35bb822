//! What one pass of a transaction moves: payload one way, or the same exchange once or several times.
//!
//! A transaction is executed again and again, so its first and its last flowop are neighbours. Writes that follow
//! each other are one message, and so are reads.

use std::ops::Range;

use linerate_model::Nanos;

use super::options::{Act, Amount};
use super::parse::RawFlowop;
use crate::file::error::ReadError;
use crate::file::source::Source;

/// Which way payload goes, as uperf's master sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Out,
    In,
}

/// What one pass moves.
pub(super) enum Pass {
    /// Nothing.
    Nothing,
    /// Payload one way.
    OneWay(Message),
    /// An exchange, `times` times.
    Exchanges { pair: [Message; 2], times: u64 },
}

/// Send calls that follow each other, and the pause after them.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) way: Way,
    pub(super) calls: Vec<Calls>,
    pub(super) pause: Nanos,
    /// Where its first flowop stands.
    pub(super) at: Range<usize>,
}

/// Send calls of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) size: Amount,
    pub(super) count: u64,
}

impl Pass {
    /// Returns the bytes that go one way, where nothing comes back and sizes are known.
    pub(super) fn one_way_bytes(&self) -> Option<u64> {
        match self {
            Pass::OneWay(message) => message.bytes(),
            Pass::Nothing | Pass::Exchanges { .. } => None,
        }
    }
}

impl Message {
    /// Returns the bytes of all calls, where none is random.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.calls
            .iter()
            .try_fold(0_u64, |sum, calls| match calls.size {
                Amount::Bytes(bytes) => sum.checked_add(bytes.checked_mul(calls.count)?),
                Amount::Random(..) => None,
            })
    }

    /// Returns how many calls it has.
    pub(super) fn count(&self) -> u64 {
        let counts = self.calls.iter().map(|calls| calls.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Returns the size of every call, where they are alike.
    pub(super) fn size(&self) -> Option<Amount> {
        let (first, others) = self.calls.split_first()?;
        let is_alike = others.iter().all(|calls| calls.size == first.size);
        is_alike.then_some(first.size)
    }

    /// Returns whether it is the same as `other`.
    fn is_like(&self, other: &Self) -> bool {
        (self.way, &self.calls, self.pause) == (other.way, &other.calls, other.pause)
    }
}

/// Returns what one pass of `flowops` moves, which are writes, reads and pauses.
pub(super) fn pass(source: &Source<'_>, flowops: &[&RawFlowop]) -> Result<Pass, ReadError> {
    let messages = messages(source, flowops)?;
    match messages.as_slice() {
        [] => Ok(Pass::Nothing),
        [only] if only.pause.0 == 0 => Ok(Pass::OneWay(only.clone())),
        [only] => {
            let message =
                "a pause where nothing comes back: give the transaction a rate in its place";
            Err(source.at("think", only.at.clone()).wrong(message))
        }
        [one, other, more @ ..] => {
            let pair = [one.clone(), other.clone()];
            let differs = |(at, message): &(usize, &Message)| !message.is_like(&pair[at % 2]);
            if let Some((_, message)) = more.iter().enumerate().find(differs) {
                let wrong = "an exchange that differs from those before it: a transaction has exchanges of one kind";
                return Err(source.at("flowop", message.at.clone()).wrong(wrong));
            }
            let times = messages.len() as u64 / 2;
            Ok(Pass::Exchanges { pair, times })
        }
    }
}

/// Returns the messages that alternate, the first and the last of which go different ways.
fn messages(source: &Source<'_>, flowops: &[&RawFlowop]) -> Result<Vec<Message>, ReadError> {
    let wrong =
        |at: &Range<usize>, message: &str| Err(source.at("flowop", at.clone()).wrong(message));
    let mut messages: Vec<Message> = Vec::new();
    // A pause ahead of all is one after the last.
    let mut early = Nanos(0);
    for flowop in flowops {
        let pause = flowop.options.pause.unwrap_or_default();
        let way = match flowop.act {
            Act::Write => Way::Out,
            Act::Read => Way::In,
            _ => {
                if pause.0 == 0 {
                    return wrong(&flowop.at, "it has no duration");
                }
                let pause_of = messages
                    .last_mut()
                    .map_or(&mut early, |last| &mut last.pause);
                pause_of.0 = pause_of.0.saturating_add(pause.0);
                continue;
            }
        };
        let calls = calls(source, flowop)?;
        match messages.last_mut().filter(|last| last.way == way) {
            Some(last) if last.pause.0 > 0 => return wrong(&flowop.at, INSIDE),
            Some(last) => last.append(calls),
            None => messages.push(Message {
                way,
                calls: vec![calls],
                pause: Nanos(0),
                at: flowop.at.clone(),
            }),
        }
    }
    if let Some(last) = messages.last_mut() {
        last.pause.0 = last.pause.0.saturating_add(early.0);
    }
    if messages.len() > 1 && messages.len() % 2 == 1 {
        // The last one goes on as the first one does.
        let last = messages.remove(messages.len() - 1);
        if last.pause.0 > 0 {
            return wrong(&last.at, INSIDE);
        }
        let mut calls = last.calls;
        std::mem::swap(&mut messages[0].calls, &mut calls);
        calls.into_iter().for_each(|more| messages[0].append(more));
    }
    Ok(messages)
}

/// What is wrong with a pause between two calls of a message.
const INSIDE: &str = "a pause between two flowops that go the same way";

impl Message {
    fn append(&mut self, more: Calls) {
        match self.calls.last_mut().filter(|last| last.size == more.size) {
            Some(last) => last.count = last.count.saturating_add(more.count),
            None => self.calls.push(more),
        }
    }
}

/// Returns the send calls that a write makes here, or that a read makes at the other end.
fn calls(source: &Source<'_>, flowop: &RawFlowop) -> Result<Calls, ReadError> {
    let options = &flowop.options;
    let spot = source.at("flowop", flowop.at.clone());
    let Some(size) = options.size else {
        return Err(spot.wrong("it has no size"));
    };
    let own = Calls {
        size,
        count: options.count,
    };
    match (flowop.act, options.remote_size, size) {
        (Act::Read, Some(remote), Amount::Bytes(bytes)) => {
            let all = bytes
                .checked_mul(options.count)
                .filter(|all| all % remote == 0);
            let all = all.ok_or_else(|| spot.wrong("rsize is no divisor of size times count"))?;
            Ok(Calls {
                size: Amount::Bytes(remote),
                count: all / remote,
            })
        }
        _ => Ok(own),
    }
}
