//! What one pass of a transaction moves: payload one way, or an exchange.
//!
//! A transaction is executed again and again, so its first and its last flowop are neighbours. Writes that follow
//! each other are one message, and so are reads.

use std::ops::Range;

use linerate_model::Nanos;
use linerate_model::workload::REQUEST_WRITES_MAX;

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
    /// Payload both ways.
    Exchange(Vec<Piece>),
}

/// A flowop of an exchange.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) does: Does,
    /// Where it stands.
    pub(super) at: Range<usize>,
}

/// What a flowop of an exchange does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Move(Way, Calls),
    Pause { time: Nanos, busy: bool },
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

/// A request and its response, which are all that a pass has, so many times.
pub(super) struct Requests {
    pub(super) request: Message,
    pub(super) response: Message,
    pub(super) times: u64,
}

impl Pass {
    /// Returns the bytes that go one way, where nothing comes back and sizes are known.
    pub(super) fn one_way_bytes(&self) -> Option<u64> {
        match self {
            Pass::OneWay(message) => message.bytes(),
            Pass::Nothing | Pass::Exchange(_) => None,
        }
    }
}

impl Piece {
    /// Returns which way it moves payload.
    pub(super) fn way(&self) -> Option<Way> {
        match self.does {
            Does::Move(way, _) => Some(way),
            Does::Pause { .. } => None,
        }
    }
}

impl Message {
    fn new(way: Way, calls: Calls, at: &Range<usize>) -> Self {
        Self {
            way,
            calls: vec![calls],
            pause: Nanos(0),
            at: at.clone(),
        }
    }

    fn append(&mut self, more: Calls) {
        match self.calls.last_mut().filter(|last| last.size == more.size) {
            Some(last) => last.count = last.count.saturating_add(more.count),
            None => self.calls.push(more),
        }
    }

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
    let pieces = flowops.iter().map(|flowop| piece(source, flowop));
    let pieces: Vec<Piece> = pieces.collect::<Result<_, _>>()?;
    let mut ways = pieces.iter().filter_map(Piece::way);
    match ways.next() {
        None => Ok(Pass::Nothing),
        Some(first) if ways.all(|way| way == first) => {
            one_way(source, &pieces).map(|message| message.map_or(Pass::Nothing, Pass::OneWay))
        }
        Some(_) => Ok(Pass::Exchange(pieces)),
    }
}

fn piece(source: &Source<'_>, flowop: &RawFlowop) -> Result<Piece, ReadError> {
    let way = match flowop.act {
        Act::Write => Some(Way::Out),
        Act::Read => Some(Way::In),
        _ => None,
    };
    let does = match (way, flowop.options.pause) {
        (Some(way), _) => Does::Move(way, calls(source, flowop)?),
        (None, Some(time)) => Does::Pause {
            time,
            busy: flowop.options.is_busy,
        },
        (None, None) => {
            let spot = source.at("flowop", flowop.at.clone());
            return Err(spot.wrong("it has no duration"));
        }
    };
    Ok(Piece {
        does,
        at: flowop.at.clone(),
    })
}

/// Returns the message of `pieces`, all of which go one way.
fn one_way(source: &Source<'_>, pieces: &[Piece]) -> Result<Option<Message>, ReadError> {
    let mut message: Option<Message> = None;
    for piece in pieces {
        match (piece.does, &mut message) {
            (Does::Move(_, calls), Some(message)) => message.append(calls),
            (Does::Move(way, calls), None) => message = Some(Message::new(way, calls, &piece.at)),
            (Does::Pause { .. }, _) => {
                let wrong =
                    "a pause where nothing comes back: give the transaction a rate in its place";
                return Err(source.at("think", piece.at.clone()).wrong(wrong));
            }
        }
    }
    Ok(message)
}

/// Returns `pieces` from one on that goes the way `first` after one that goes the other way; pauses between the two come
/// last.
pub(super) fn from_first(pieces: &[Piece], first: Way) -> Vec<Piece> {
    let begins = |at: &usize| {
        let mut before = pieces[..*at].iter().rev().chain(pieces[*at..].iter().rev());
        let before = before.find_map(Piece::way);
        pieces[*at].way() == Some(first) && before != Some(first)
    };
    let mut rotated = pieces.to_vec();
    rotated.rotate_left((0..pieces.len()).find(begins).unwrap_or(0));
    rotated
}

/// Returns the request and the response that `pieces`, which begin with a request, are once or several times; none where
/// they are anything else.
///
/// 1. Every exchange is like the first one.
/// 2. A request has calls of one size, of which there may be so many; a response has one.
/// 3. No pause stands inside a message, and none is busy.
pub(super) fn requests(pieces: &[Piece]) -> Option<Requests> {
    let messages = messages(pieces)?;
    let [request, response, more @ ..] = messages.as_slice() else {
        return None;
    };
    let is_alike = more.chunks(2).all(|pair| match pair {
        [one, other] => one.is_like(request) && other.is_like(response),
        _ => false,
    });
    let are_calls = request.calls.len() == 1 && request.count() <= REQUEST_WRITES_MAX;
    (is_alike && are_calls && response.count() == 1).then(|| Requests {
        request: request.clone(),
        response: response.clone(),
        times: messages.len() as u64 / 2,
    })
}

fn messages(pieces: &[Piece]) -> Option<Vec<Message>> {
    let mut messages: Vec<Message> = Vec::new();
    for piece in pieces {
        match (piece.does, messages.last_mut()) {
            (Does::Pause { busy: true, .. }, _) => return None,
            (Does::Pause { time, .. }, last) => {
                let pause = &mut last?.pause;
                pause.0 = pause.0.saturating_add(time.0);
            }
            (Does::Move(way, calls), Some(last)) if last.way == way => {
                if last.pause.0 > 0 {
                    return None;
                }
                last.append(calls);
            }
            (Does::Move(way, calls), _) => messages.push(Message::new(way, calls, &piece.at)),
        }
    }
    Some(messages)
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
