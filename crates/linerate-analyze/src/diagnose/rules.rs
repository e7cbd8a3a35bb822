//! The list of all rules: patterns of several numbers, which are facts, and what is told of what they show.
//!
//! Several may be seen in one cell; the first of [`RULES`] that is seen explains what the later ones are seen by, so that these
//! tell nothing then:
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
use linerate_model::manner::Transport;
use linerate_model::workload::Workload;

use super::rule::{Judge, Rule, is_same};
use super::trial::TrialView;
use super::{
    application, congestion_window, cpu, datagram_rate, exchange_rate, generator, host_drops,
    link_rate, nagle_delayed_ack, nothing_arrives, pacing, path_rate, receiver_window, round_trip,
    send_buffer, slow_reader, stream, timeouts,
};
use crate::dataset::{CellOutcomes, Dataset};
use crate::evidence::Reading;
use crate::evidence::setup::Setup;
use crate::reduce::{Outcome, lacks};

/// The rules by the names of their patterns, each before those that it explains.
pub(super) const RULES: &[(&str, Rule)] = &[
    ("nothing-comes", nothing_arrives::RULE),
    ("link-is-full", link_rate::RULE),
    ("datagrams-pass-a-rate", datagram_rate::DATAGRAMS),
    ("datagrams-wait", datagram_rate::OWN_QDISC),
    ("rate-is-kept", pacing::ASKED),
    ("waits-for-timers", timeouts::RULE),
    ("nagle-waits", nagle_delayed_ack::RULE),
    ("quota-throttles", cpu::QUOTA),
    ("others-are-in-the-way", cpu::OTHERS),
    ("cpus-are-full", cpu::FULL),
    ("one-cpu-is-full", cpu::ONE_FULL),
    ("waits-next-to-idle", cpu::BESIDE_IDLE),
    ("worker-is-full", generator::RULE),
    ("reader-is-behind", slow_reader::RULE),
    ("window-holds", receiver_window::RULE),
    ("buffer-holds", send_buffer::RULE),
    ("host-drops", host_drops::RULE),
    ("path-is-full", path_rate::RULE),
    ("writer-pauses", application::RULE),
    ("losses-hold", congestion_window::RULE),
    ("tcp-paces", pacing::OWN),
    ("path-is-full-of-exchanges", exchange_rate::EXCHANGES),
    ("trip-holds", round_trip::RULE),
];

/// Returns the limiters that can be found, each where it is first asked for.
pub fn limiters() -> Vec<Limiter> {
    let mut limiters = Vec::new();
    for (_, rule) in RULES {
        if !limiters.contains(&rule.limiter) {
            limiters.push(rule.limiter);
        }
    }
    limiters
}

/// Returns the first rule that finds `limiter`.
pub(super) fn rule_of(limiter: Limiter) -> Option<&'static Rule> {
    let mut rules = RULES.iter().map(|(_, rule)| rule);
    rules.find(|rule| rule.limiter == limiter)
}

/// What a rule tells beside its own limiter, each a pattern by itself: by the rule's name, and by the limiters.
const ALSO_TOLD: &[(&str, &[Limiter], &str)] = &[
    (
        "cpus-are-full",
        &[Limiter::OtherPrograms],
        "others-fill-cpus",
    ),
    ("waits-next-to-idle", &[Limiter::Cpu], "few-cpus-are-full"),
    ("trip-holds", &[Limiter::Application], "answers-late"),
    (
        "trip-holds",
        &[Limiter::ReceiverWindow],
        "window-holds-messages",
    ),
    ("trip-holds", &[Limiter::Pacing], "pause-is-kept"),
    (
        "trip-holds",
        &[Limiter::Cpu, Limiter::CpuQuota, Limiter::OtherPrograms],
        "exchanges-wait-for-cpu",
    ),
];

/// A rule, and the patterns that it tells, which are seen in a cell or not.
pub(super) type Patterns = Vec<(&'static Rule, Vec<(&'static str, Reading)>)>;

/// Returns the patterns that the trials of a cell show together or not, in the order of [`RULES`].
pub(super) fn patterns_of_cell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Patterns {
    let of_rule = |(name, rule): &'static (&str, Rule)| {
        let (Judge::Cell(tell) | Judge::Cause(_, tell)) = rule.judge;
        let (told, lacks) = lacks(|| tell(dataset, cell).map(|verdict| verdict.limiter));
        let pattern =
            |is_it: &dyn Fn(Limiter) -> bool| Reading::pattern((told.is_some_and(is_it), lacks));
        let own = (*name, pattern(&|limiter| is_same(limiter, rule.limiter)));
        let beside = ALSO_TOLD.iter().filter(|(of, ..)| of == name);
        let beside = beside
            .map(|(_, limiters, name)| (*name, pattern(&|limiter| limiters.contains(&limiter))));
        (rule, std::iter::once(own).chain(beside).collect())
    };
    RULES.iter().map(of_rule).collect()
}

/// Returns the patterns of one trial beside those of its cell: of those that are seen the first explains what the others are
/// seen by.
pub(super) fn patterns_of_trial(
    of_cell: &Patterns,
    outcome: &Outcome,
    setup: &Setup,
    workload: &Workload,
) -> Vec<(&'static str, Reading)> {
    let is_stream = workload.traffic.is_stream() && workload.manner.transport == Transport::Tcp;
    let trial = TrialView { outcome, setup };
    let of_trial = |rule: &Rule, of_cell: Reading| match rule.judge {
        Judge::Cell(_) => of_cell,
        Judge::Cause(..) if !is_stream => Reading::Moot,
        Judge::Cause(fits, _) => {
            let seen = lacks(|| stream::holds(&trial, fits(&trial), rule.limiter));
            of_cell.and(Reading::pattern(seen))
        }
    };
    let mut is_explained = false;
    let all = of_cell
        .iter()
        .flat_map(|(rule, patterns)| patterns.iter().map(move |pattern| (*rule, pattern)));
    all.map(|(rule, (name, of_cell))| {
        if is_explained {
            return (*name, Reading::Moot);
        }
        let reading = of_trial(rule, *of_cell);
        is_explained = reading.holds();
        (*name, reading)
    })
    .collect()
}
