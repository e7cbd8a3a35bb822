//! Responses by name, of whatever has them: one trial, or a cell with the means of its trials.

use std::cell::Cell;
use std::ops::{Add, Mul, Sub};

use linerate_model::response::name;

use super::{Outcome, Responses};

/// How much of something there was, where it was read. A comparison holds only for what was read, in whatever direction:
/// what is absent speaks neither for a claim nor against it. So there is no order, and no number for what is absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount(Option<f64>);

impl Amount {
    /// Returns it as a number, if it was read.
    pub(crate) fn known(self) -> Option<f64> {
        self.0
    }

    /// Returns what there was at the least, of what cannot be less than none: for sums that have to reach something.
    pub(crate) fn least(self) -> f64 {
        self.0.unwrap_or(0.0)
    }

    /// Returns whether it is known to be `least` or more.
    pub(crate) fn reaches(self, least: f64) -> bool {
        self.0.is_some_and(|value| value >= least)
    }

    /// Returns whether it is known to be more than `bound`.
    pub(crate) fn exceeds(self, bound: f64) -> bool {
        self.0.is_some_and(|value| value > bound)
    }

    /// Returns whether it is known to be `most` or less.
    pub(crate) fn stays_within(self, most: f64) -> bool {
        self.0.is_some_and(|value| value <= most)
    }

    /// Returns whether it is known to be less than `bound`.
    pub(crate) fn stays_below(self, bound: f64) -> bool {
        self.0.is_some_and(|value| value < bound)
    }
}

impl From<Option<f64>> for Amount {
    fn from(value: Option<f64>) -> Self {
        Self(value)
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(one, other)| one + other))
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(one, other)| one - other))
    }
}

impl Mul<f64> for Amount {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self(self.0.map(|value| value * times))
    }
}

/// Responses that a trial may lack although all was read that they are made of, which the others tell: a slope of what did not
/// vary, others that did not send, losses of which there were none, a queueing discipline of a device that has none, a tail of
/// few exchanges, what connections that are gone had.
const AT_TIMES: &[(&str, &[&str])] = &[
    (name::RTT_ELASTICITY, &[name::TCP_RTT, name::IN_FLIGHT]),
    (name::RATE_STEP, &[name::RATE_VARIATION]),
    (name::RTT_STEP, &[name::TCP_RTT]),
    (
        name::LOSS_DISPERSION,
        &[name::RETRANSMITTED, name::SEGMENTS_SENT],
    ),
    (
        name::LOSS_GAP_VARIATION,
        &[name::RETRANSMITTED, name::SEGMENTS_SENT],
    ),
    (
        name::FLOW_LOSS_DISPERSION,
        &[name::RETRANSMITTED, name::SEGMENTS_SENT],
    ),
    (name::OTHERS_SHARE, &[name::THROUGHPUT]),
    (name::SHARED_OVER_OWN, &[name::THROUGHPUT]),
    (name::SHARED_VARIATION, &[name::THROUGHPUT]),
    (name::HALVES, &[name::THROUGHPUT]),
    (name::SEGMENTS_PER_ACK, &[name::SEGMENTS_SENT]),
    (name::QDISC_BACKLOG, &[name::SEGMENTS_SENT]),
    (name::QDISC_BACKLOG, &[name::DATAGRAMS_SENT]),
    (name::QDISC_OVERLIMITS, &[name::SEGMENTS_SENT]),
    (name::DROPPED_QDISC, &[name::SEGMENTS_SENT]),
    (name::LOST_SENDER_QDISC, &[name::DATAGRAMS_SENT]),
    (name::DROPPED_RECEIVER_QDISC, &[name::SEGMENTS_SENT]),
    (name::RTT_P50, &[name::RTT_MEAN]),
    (name::RTT_P99, &[name::RTT_MEAN]),
    (name::PATH_RTT_LOADED, &[name::PATH_RTT]),
    (name::RETRANSMITTED_BOTH, &[name::TRANSACTIONS_TIMED]),
    (name::LOSING, &[name::TRANSACTIONS_TIMED]),
    (name::CPU_INTERRUPT_SHARE_MOST, &[name::CPU_BUSY]),
];

/// Responses of one kind of traffic, and what outcomes of another have.
const OF_OTHERS: &[(&[&str], &str)] = &[
    (OF_STREAMS, name::TRANSACTIONS),
    (OF_STREAMS, name::DATAGRAMS_SENT),
    (
        &[
            name::TRANSACTIONS,
            name::TRANSACTIONS_TIMED,
            name::RTT_MEAN,
            name::PATH_RTT,
        ],
        name::THROUGHPUT,
    ),
    (OF_DATAGRAMS, name::SEGMENTS_SENT),
    (OF_DATAGRAMS, name::PATH_RTT),
    (OF_DATAGRAMS, name::TRANSACTIONS),
    // What was asked for is written in the plan.
    (&[name::THROUGHPUT_INTENDED], name::THROUGHPUT),
    (
        &[name::THROUGHPUT_INTENDED, name::THROUGHPUT],
        name::TRANSACTIONS,
    ),
];
const OF_STREAMS: &[&str] = &[
    name::RATE_VARIATION,
    name::HALVES,
    name::WINDOW_CLOSED,
    name::RWND_LIMITED,
    name::SNDBUF_LIMITED,
    name::BUSY,
    name::QUEUED,
    name::UNSENT,
    name::UNREAD,
    name::TCP_RTT,
    name::PAYLOAD_PER_SEGMENT,
    name::SEGMENTS_PER_ACK,
    name::SEGMENTS_SENT,
];
const OF_DATAGRAMS: &[&str] = &[
    name::LOSS_SHARE,
    name::LOSS_READINGS,
    name::DATAGRAMS_SENT,
    name::LOST_BACKLOG,
    name::LOST_RECEIVE_BUFFER,
    name::LOST_SENDER_QDISC,
];

thread_local! {
    /// Whether a response was asked for that was not read.
    static LACKS: Cell<bool> = const { Cell::new(false) };
}

/// Notes that `response` was asked for of an outcome that does not have it; not where that tells something by itself.
pub(crate) fn note_unread(outcome: &Outcome, response: &str) {
    let has = |name: &&str| outcome.value(name).is_some();
    let mut of = AT_TIMES.iter().filter(|(name, _)| *name == response);
    let is_of_another = OF_OTHERS
        .iter()
        .any(|(responses, seen)| responses.contains(&response) && has(seen));
    if !is_of_another && !of.any(|(_, of)| of.iter().all(has)) {
        note_lack();
    }
}

/// Notes that something was asked for that was not read.
pub(crate) fn note_lack() {
    LACKS.set(true);
}

/// Returns what `read` returns, and whether it asked for something that was not read.
pub(crate) fn lacks<T>(read: impl FnOnce() -> T) -> (T, bool) {
    LACKS.set(false);
    (read(), LACKS.get())
}

/// What has responses by name. A threshold holds only for what was read.
pub(crate) trait Values {
    /// Returns the value of a response, if it was read.
    fn value(&self, response: &str) -> Option<f64>;

    /// Returns how much of something there was, to be compared.
    fn amount(&self, response: &str) -> Amount {
        Amount(self.value(response))
    }

    /// Returns whether a response is known to be `least` or more.
    fn reaches(&self, response: &str, least: f64) -> bool {
        self.amount(response).reaches(least)
    }

    /// Returns whether a response is known to be more than `bound`.
    fn exceeds(&self, response: &str, bound: f64) -> bool {
        self.amount(response).exceeds(bound)
    }

    /// Returns whether a response is known to be `most` or less.
    fn stays_within(&self, response: &str, most: f64) -> bool {
        self.amount(response).stays_within(most)
    }

    /// Returns whether a response is known to be less than `bound`.
    fn stays_below(&self, response: &str, bound: f64) -> bool {
        self.amount(response).stays_below(bound)
    }
}

impl Values for Outcome {
    fn value(&self, response: &str) -> Option<f64> {
        let value = Outcome::value(self, response);
        if value.is_none() {
            note_unread(self, response);
        }
        value
    }
}

impl Values for Responses {
    fn value(&self, response: &str) -> Option<f64> {
        self.0.get(response).map(|response| response.value)
    }
}
