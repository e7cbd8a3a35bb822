//! The list of all rules that find a limiter, in order of precedence.
//!
//! Several rules may hold for one cell; the first of [`RULES`] that holds is the limiter, for it is the
//! one whose removal would help:
//!
//! 1. nothing arrives: then there is no number to explain;
//! 2. a full link of known rate, because nothing behind it can raise the number, and a path that passes a rate of
//!    datagrams;
//! 3. a rate that was asked for, because then there is nothing to find;
//! 4. retransmission timeouts and Nagle × delayed ACK, because their stalls look like a long round trip;
//! 5. CPUs that our workers did not get, then a worker that is saturated beside free ones, because a
//!    slow receiver fills windows and a slow sender empties them;
//! 6. what holds a stream, by evidence that tells its causes apart ([`super::stream`]);
//! 7. a full path of exchanges, because what waits before it is a part of their round trip;
//! 8. the round trip, which limits whatever waits for one transaction at a time, by its largest part.

use linerate_model::limiter::Limiter;

use super::rule::Rule;
use super::{
    application, both_ways, congestion_window, cpu, datagram_rate, exchange_rate, generator,
    host_drops, link_rate, nagle_delayed_ack, nothing_arrives, pacing, path_rate, receiver_window,
    round_trip, send_buffer, slow_reader, timeouts,
};

/// The rules in order of precedence.
pub(super) const RULES: &[Rule] = &[
    nothing_arrives::RULE,
    link_rate::RULE,
    datagram_rate::DATAGRAMS,
    both_ways::RULE,
    datagram_rate::OWN_QDISC,
    pacing::ASKED,
    timeouts::RULE,
    nagle_delayed_ack::RULE,
    cpu::QUOTA,
    cpu::OTHERS,
    cpu::FULL,
    cpu::ONE_FULL,
    cpu::BESIDE_IDLE,
    generator::RULE,
    slow_reader::RULE,
    receiver_window::RULE,
    send_buffer::RULE,
    host_drops::RULE,
    path_rate::RULE,
    application::RULE,
    congestion_window::RULE,
    pacing::OWN,
    exchange_rate::EXCHANGES,
    round_trip::RULE,
];

/// Returns the limiters that can be found, in order of precedence, each where it is first asked for.
pub fn limiters() -> Vec<Limiter> {
    let mut limiters = Vec::new();
    for rule in RULES {
        if !limiters.contains(&rule.limiter) {
            limiters.push(rule.limiter);
        }
    }
    limiters
}

/// Returns the first rule that finds `limiter`.
pub(super) fn rule_of(limiter: Limiter) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.limiter == limiter)
}
