//! What tells the kinds of traffic apart; each says it in a file of its own.

use serde::{Deserialize, Serialize};

use super::{Direction, Part, WorkloadError};
use crate::manner::{Manner, Named, Transport};
use crate::unit::Bytes;

mod crr;
mod idle;
mod rr;
mod stream;

/// The kind of traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Traffic {
    /// Payload in one direction as fast as the path takes it.
    Stream {
        /// Which way it goes.
        direction: Direction,
        /// Bytes handed to each send call.
        message_bytes: Bytes,
    },
    /// A request, then a response, then the next request on the same flow.
    Rr {
        /// Bytes of a request.
        request_bytes: Bytes,
        /// Bytes of a response.
        response_bytes: Bytes,
        /// Send calls that a request is split over, 1 to 16; 2 shows Nagle against delayed ACK.
        request_writes: u32,
    },
    /// A new connection for each request and its response. Each flow is a place from which one
    /// connection after another is made; without bytes they are connected and closed.
    Crr {
        /// Bytes of a request; 0 without exchange.
        request_bytes: Bytes,
        /// Bytes of a response; 0 exactly if the request has none.
        response_bytes: Bytes,
    },
    /// Connections that carry nothing.
    Idle,
}

/// A kind of traffic, without its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Payload in one direction.
    Stream,
    /// Requests and responses on a connection that stays.
    Rr,
    /// A connection for each request.
    Crr,
    /// Connections that carry nothing.
    Idle,
}

impl Named for Kind {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("stream", Kind::Stream),
        ("rr", Kind::Rr),
        ("crr", Kind::Crr),
        ("idle", Kind::Idle),
    ];
}

/// What a kind of traffic is.
pub struct About {
    /// What people call it: `request/response`.
    pub title: &'static str,
    /// What is counted of it: `transactions`.
    pub counted: &'static str,
    /// What may carry it.
    pub transports: &'static [Transport],
    /// The response that a measurement is made for, unless its experiment names another.
    pub headline: &'static str,
    /// Responses that only such traffic has.
    pub responses: &'static [&'static str],
    /// Whether its connections carry anything.
    pub carries_payload: bool,
    /// Whether each flow is a place from which one connection after another is made; the engine plays such flows
    /// as callers and callees.
    pub is_placed: bool,
    /// What it is where nothing else is said.
    pub traffic: Traffic,
}

impl About {
    /// Returns all responses that only such traffic has, the headline first.
    pub fn all_responses(&self) -> impl Iterator<Item = &'static str> + use<> {
        let headline = self.headline;
        let others = self
            .responses
            .iter()
            .copied()
            .filter(move |one| *one != headline);
        std::iter::once(headline).chain(others)
    }
}

impl Kind {
    /// All of them.
    pub const ALL: &'static [Kind] = &[Kind::Stream, Kind::Rr, Kind::Crr, Kind::Idle];

    /// Returns what it is.
    pub fn about(self) -> &'static About {
        match self {
            Kind::Stream => &stream::ABOUT,
            Kind::Rr => &rr::ABOUT,
            Kind::Crr => &crr::ABOUT,
            Kind::Idle => &idle::ABOUT,
        }
    }
}

impl Traffic {
    /// Returns its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Traffic::Stream { .. } => Kind::Stream,
            Traffic::Rr { .. } => Kind::Rr,
            Traffic::Crr { .. } => Kind::Crr,
            Traffic::Idle => Kind::Idle,
        }
    }

    /// Returns whether it is bulk payload.
    pub fn is_stream(&self) -> bool {
        self.kind() == Kind::Stream
    }

    /// Returns whether its connections carry anything.
    pub fn carries_payload(&self) -> bool {
        self.kind().about().carries_payload
    }

    /// Returns whether each flow is a place from which one connection after another is made.
    pub fn is_placed(&self) -> bool {
        self.kind().about().is_placed
    }

    /// Returns whether each flow is a connection that stays, and carries payload.
    pub fn is_lasting(&self) -> bool {
        self.carries_payload() && !self.is_placed()
    }

    /// Returns whether its result is transactions rather than payload.
    pub fn is_transactional(&self) -> bool {
        self.exchange().is_some()
    }

    /// Returns the bytes of the longer of request and response, where there are any.
    pub fn longest_exchanged(&self) -> Option<Bytes> {
        self.exchange()
            .map(|(request, response)| request.max(response))
    }

    /// Returns the bytes of request and response, where there are any.
    pub fn exchange(&self) -> Option<(Bytes, Bytes)> {
        match *self {
            Traffic::Rr {
                request_bytes,
                response_bytes,
                ..
            }
            | Traffic::Crr {
                request_bytes,
                response_bytes,
            } => Some((request_bytes, response_bytes)),
            Traffic::Stream { .. } | Traffic::Idle => None,
        }
    }

    /// Returns the same, to be changed.
    pub fn exchange_mut(&mut self) -> Option<(&mut Bytes, &mut Bytes)> {
        match self {
            Traffic::Rr {
                request_bytes,
                response_bytes,
                ..
            }
            | Traffic::Crr {
                request_bytes,
                response_bytes,
            } => Some((request_bytes, response_bytes)),
            Traffic::Stream { .. } | Traffic::Idle => None,
        }
    }

    /// Returns the send calls that each request is split over: one where none can be split.
    pub fn request_writes(&self) -> u32 {
        match *self {
            Traffic::Rr { request_writes, .. } => request_writes,
            Traffic::Stream { .. } | Traffic::Crr { .. } | Traffic::Idle => 1,
        }
    }

    /// Returns which way bulk payload goes and the bytes of its messages.
    pub fn stream(&self) -> Option<(Direction, Bytes)> {
        match *self {
            Traffic::Stream {
                direction,
                message_bytes,
            } => Some((direction, message_bytes)),
            Traffic::Rr { .. } | Traffic::Crr { .. } | Traffic::Idle => None,
        }
    }

    /// Returns the same, to be changed.
    pub fn stream_mut(&mut self) -> Option<(&mut Direction, &mut Bytes)> {
        match self {
            Traffic::Stream {
                direction,
                message_bytes,
            } => Some((direction, message_bytes)),
            Traffic::Rr { .. } | Traffic::Crr { .. } | Traffic::Idle => None,
        }
    }

    /// Returns which way bulk payload goes.
    pub fn direction(&self) -> Option<Direction> {
        self.stream().map(|(direction, _)| direction)
    }

    /// Returns what it is, with its way where it has one: "stream to the server".
    pub fn in_words(&self) -> String {
        let title = self.kind().about().title;
        self.direction().map_or_else(
            || title.to_owned(),
            |direction| format!("{title} {}", direction.in_words()),
        )
    }

    /// Checks what the catalogue of parameters has no range for.
    pub(crate) fn check(&self, manner: &Manner) -> Result<(), WorkloadError> {
        let carries = |kind: &Kind| kind.about().transports.contains(&manner.transport);
        if !carries(&self.kind()) {
            let kinds = Kind::ALL.iter().filter(|kind| carries(kind));
            let kinds: Vec<&str> = kinds.map(|kind| kind.word()).collect();
            return Err(WorkloadError::Misplaced {
                key: manner.transport.word(),
                belongs: kinds.join(", "),
                with: self.kind().word(),
            });
        }
        match *self {
            Traffic::Stream { message_bytes, .. } => stream::check(message_bytes, manner),
            Traffic::Rr {
                request_bytes,
                response_bytes,
                request_writes,
            } => rr::check((request_bytes, response_bytes), request_writes, manner),
            Traffic::Crr {
                request_bytes,
                response_bytes,
            } => crr::check(request_bytes, response_bytes),
            Traffic::Idle => Ok(()),
        }
    }

    /// Returns the pair that flow number `at` belongs to, and what its client's end does.
    pub(super) fn flow(&self, at: u32) -> (u32, Part) {
        match *self {
            Traffic::Stream { direction, .. } => stream::flow(direction, at),
            Traffic::Rr { .. } | Traffic::Crr { .. } => (at, Part::Requester),
            Traffic::Idle => (at, Part::Sender),
        }
    }
}
