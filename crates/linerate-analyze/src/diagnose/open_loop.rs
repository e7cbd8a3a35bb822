//! Open loops: responses that come one request late, and requests that go late.
//!
//! With Nagle's algorithm on (RFC 896), a small response is held until the one before is acknowledged. Its
//! receiver sends nothing back but the next request, on which the acknowledgement rides, so once a
//! response has missed a request it comes with the next, and so does each after it: the latency is a
//! period of the rate and the round trip, and no timer fires and no counter moves.
//!
//! Rule, for requests at a rate over TCP with Nagle on, which has to be asked for: the interval of the median
//! latency of the flow with the highest lies between one and one and a half periods, while TCP saw a round trip under
//! load below half of one. Each flow is held or not by itself, so that the median of all says nothing of a few. A server that is slow, or a path, lengthens both; one that cannot keep up does not stay within half a
//! period. With several requests under way at a time a response waits for any of them, and nothing is said.
//!
//! A latency counts from the instant at which its request was due, so that it holds what the generator
//! was late. Rule, for requests at a rate: where the 99th percentile of the lateness is at least 100 µs and
//! at least a fifth of that of the latency, the tail is in part the generator's own. Below 100 µs it is what
//! waking a thread takes on any host, most of it where a CPU has to leave its idle state.

use linerate_model::finding::{Caution, Estimate, Evidence};
use linerate_model::manner::{Transport, WaitBy};
use linerate_model::unit::Unit;

use super::cpu;
use super::found::{About, Found};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

/// Periods below which a median that is above one follows from it.
const PERIODS_MAX: f64 = 1.5;
/// Share of a period below which TCP's round trip is none.
const ROUND_TRIP_SHARE_MAX: f64 = 0.5;

/// The 99th percentile of the lateness from which on it is told.
const LATE_NS_MIN: f64 = 100_000.0;
/// Share of the latency's 99th percentile from which on that of the lateness is told.
const LATE_SHARE_MIN: f64 = 0.2;

/// Says of each experiment whose responses come one request late, by the cell in which they wait longest,
/// and of each whose requests go late, by the cell in which that is the largest share.
pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let experiments = dataset.experiments();
    let late = experiments.iter().filter_map(|experiment| {
        let (cell, share) = dataset.most(&experiment.name, late_share)?;
        late_caution(
            About::Experiment(experiment),
            cell,
            share,
            why_late(dataset, cell),
        )
    });
    let waits = experiments.iter().filter_map(|experiment| {
        let (cell, period_ns) = dataset.most(&experiment.name, period_waited_for)?;
        caution(About::Experiment(experiment), cell, period_ns)
    });
    waits.chain(late).collect()
}

/// Returns the share of the tail that lateness may be, where it is told.
fn late_share(cell: &CellOutcomes<'_>) -> Option<f64> {
    let late_ns = cell.mean(name::SENT_LATE_P99)?;
    let share = late_ns / cell.mean(name::RTT_P99)?;
    (late_ns >= LATE_NS_MIN && share >= LATE_SHARE_MIN).then_some(share)
}

/// Returns what the generator waited for, and what helps, if anything is known to. Spinning helps against a CPU that sleeps, not
/// against another program, and only where each end can have a CPU.
fn why_late(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
) -> (&'static str, Option<&'static str>) {
    let has_others = cpu::others_have_time(cell);
    let spins = cell.workload.manner.wait == WaitBy::Spin;
    let may_spin = dataset.cpus().is_some_and(|cpus| cpus >= 2.0);
    match (has_others, spins) {
        (true, _) => (
            "Other programs had CPUs of the host at the time.",
            Some("stop other programs on the generator's host, or give it CPUs of its own (`-A`)"),
        ),
        (false, true) => (
            "It busy-polls already.",
            Some("give the generator CPUs of its own (`-A`), or each flow fewer requests"),
        ),
        (false, false) => (
            "It is the time that the generator's host takes to wake a thread.",
            may_spin.then_some("repeat with `--busy-poll`: the generator then wakes no thread"),
        ),
    }
}

fn late_caution<'d>(
    about: About<'d>,
    cell: &CellOutcomes<'_>,
    share: f64,
    (why, action): (&str, Option<&str>),
) -> Option<Found<'d>> {
    let late = cell.evidence("99th percentile of the lateness", name::SENT_LATE_P99)?;
    let tail = cell.evidence("99th percentile of the latency", name::RTT_P99)?;
    let claim = format!(
        "The generator was late: one request in a hundred was sent {} or more after it was due, {} of the \
         99th percentile of the latency.",
        words::estimate(&late.estimate),
        Unit::Percent.display(100.0 * share),
    );
    let cure = action.map_or(String::new(), |action| {
        format!(" {}.", words::sentence(action))
    });
    let explanation = format!(
        "{why} Latency counts from the scheduled send time, so it includes this delay, which is not the \
         server's or the network's.{cure}"
    );
    let found = Found::caution(about, Caution::GeneratorLate, claim, explanation, late);
    Some(Found {
        action: action.map(str::to_owned),
        ..found.with([tail])
    })
}

/// Returns the time between two requests of a flow, where each response waits for the next of them.
fn period_waited_for(cell: &CellOutcomes<'_>) -> Option<f64> {
    let manner = &cell.workload.manner;
    let is_held = cell.workload.traffic.is_lasting()
        && manner.transport == Transport::Tcp
        && cell.workload.options.nagle != Some(false);
    let period_ns = 1e9 / f64::from(manner.requests_per_s.filter(|_| is_held)?);
    let is_near = cell.mean(name::PATH_RTT_LOADED)? < ROUND_TRIP_SHARE_MAX * period_ns;
    (is_one_late(cell, name::RTT_P50_FLOW_MAX, period_ns)? && is_near).then_some(period_ns)
}

/// Returns whether a median latency is that of responses that come with the next.
fn is_one_late(cell: &CellOutcomes<'_>, median: &'static str, period_ns: f64) -> Option<bool> {
    let median = cell.estimate(median)?;
    let (low, high) = (
        median.low.unwrap_or(median.value),
        median.high.unwrap_or(median.value),
    );
    Some(low >= period_ns && high < PERIODS_MAX * period_ns)
}

fn caution<'d>(about: About<'d>, cell: &CellOutcomes<'_>, period_ns: f64) -> Option<Found<'d>> {
    let (whose, what, median) = if is_one_late(cell, name::RTT_P50, period_ns) == Some(true) {
        ("Each response waits", "median latency", name::RTT_P50)
    } else {
        let what = "median latency of the flow with the highest";
        let whose = "On some of the flows each response waits";
        (whose, what, name::RTT_P50_FLOW_MAX)
    };
    let median = cell.evidence(what, median)?;
    let round_trip = cell.evidence("TCP's round trip under load", name::PATH_RTT_LOADED)?;
    let period = Evidence {
        what: "time between two requests of a flow (computed)".to_owned(),
        estimate: Estimate::point(period_ns, Unit::Nanoseconds),
        trials: median.trials.clone(),
    };
    let claim = format!(
        "{whose} for the next request: a {what} of {} is the {} between two requests and a round trip.",
        words::estimate(&median.estimate),
        Unit::Nanoseconds.display(period_ns),
    );
    let explanation = "Nagle's algorithm holds a response until the one before is acknowledged, and that \
                       acknowledgement rides on the next request. The workload causes this: measure with \
                       Nagle off, as message-based programs do (-N, the default with --rate; `nagle = false`).";
    let found = Found::caution(about, Caution::ResponseWaits, claim, explanation, median);
    Some(Found {
        action: Some("repeat with Nagle off (`-N`), as message-based programs have it".to_owned()),
        ..found.with([period, round_trip])
    })
}
