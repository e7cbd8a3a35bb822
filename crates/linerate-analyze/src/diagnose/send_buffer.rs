//! The sender's buffer: what is told of it.
//!
//! That it limits is found in [`super::stream`]: by the sender's own clock (tcpi_sndbuf_limited), or by
//! what is in flight. The buffer is needed twice: for what is unacknowledged and for what waits to be sent.

use linerate_model::limiter::Limiter;
use linerate_model::unit::Unit;
use linerate_model::workload::Part;

use super::evidence;
use super::memory_pressure;
use super::receiver_window::window_fits;
use super::repeat;
use super::rule::{Judge, Rule};
use super::trial::{BUSY_ALWAYS_MIN, FILLED_SHARE_MIN, MOST, TrialView, auto_buffer};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Values, name};
use crate::words;

/// What of a send buffer is in flight when it holds: SO_SNDBUF counts memory; the kernel doubles it.
const SEND_BUFFER_FLIGHT: std::ops::RangeInclusive<f64> = 0.8..=2.3;
/// What it may hold beyond: whether there is room is asked before a piece of so much (GSO_LEGACY_MAX_SIZE) is
/// begun, whatever the device can do.
const PIECE_BYTES: f64 = 65_536.0;

/// Share of the time that the sender waited for the buffer from which on it is felt.
const WAITED_SHARE_MIN: f64 = 0.25;
/// Share of the time that it waits which is worth a word.
const WAITED_SHARE_TOLD_MIN: f64 = 0.005;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::SendBuffer,
    needs: "sndbuf_limited half of the time, or a buffer that holds all in flight",
    importance: 1,
    explains_failure: false,
    judge: Judge::Cause(buffer_fits, tell),
    evident: Some(|dataset, cell| {
        if let Some(short) = memory_pressure::at(dataset, cell, Part::Sender) {
            return Some(short.mend());
        }
        let held = cell.mean(name::IN_FLIGHT)? + cell.mean(name::UNSENT)?;
        let is_tuned = cell.workload.options.socket_buffer.is_none();
        (is_tuned && repeat::is_large(held))
            .then(|| repeat::with_larger(held, "tcp_wmem", "sender"))
    }),
    next: |workload| Some(repeat::with_buffer(workload, "tcp_wmem", "sender")),
};

fn buffer_fits(trial: &TrialView<'_>) -> bool {
    if trial.may_be_queued() || trial.collapses() || window_fits(trial) {
        return false;
    }
    let is_near = !trial.is_long() || trial.is_near();
    (is_near && trial.reaches(name::SNDBUF_LIMITED, MOST)) || buffer_is_in_flight(trial)
}

/// What the send buffer holds is what is in flight, and less than either window.
fn buffer_is_in_flight(trial: &TrialView<'_>) -> bool {
    let known = || {
        let flight = trial.value(name::IN_FLIGHT)?;
        let unsent = trial.value(name::UNSENT)?;
        let congestion = trial.value(name::CWND)? * trial.value(name::SEND_MSS)?;
        let window = trial.value(name::SEND_WINDOW)?;
        let least = congestion.min(window);
        Some((flight, unsent, least, trial.setup.send_buffer?))
    };
    let Some((flight, unsent, least, buffer)) = known() else {
        return false;
    };
    // A pacing sender keeps some of the buffer unsent.
    let is_waited_for = trial.reaches(name::SNDBUF_LIMITED, WAITED_SHARE_MIN);
    trial.is_long()
        && trial.is_near()
        && trial.busy().reaches(BUSY_ALWAYS_MIN)
        && (unsent <= 0.1 * flight || (is_waited_for && unsent <= 0.5 * flight))
        && flight <= FILLED_SHARE_MIN * least
        && flight >= SEND_BUFFER_FLIGHT.start() * buffer
        && flight <= SEND_BUFFER_FLIGHT.end() * buffer + PIECE_BYTES
}

fn tell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let waiting = cell.estimate(name::SNDBUF_LIMITED)?;
    let buffer = match cell.workload.options.socket_buffer {
        Some(buffer) => format!(" of {buffer}"),
        None => String::new(),
    };
    // The kernel's clock misses a buffer that is full and has room again within a tick.
    let waited = (waiting.value >= WAITED_SHARE_TOLD_MIN).then(|| {
        format!(
            "the sender waited for space in it {} of the time",
            words::percent(waiting.value)
        )
    });
    let held = cell.mean(name::IN_FLIGHT).zip(cell.mean(name::UNSENT));
    let flight = held.map(|(flight, unsent)| {
        format!(
            "{} of each flow were in flight, and {} waited to be sent",
            words::number(Unit::Bytes, flight),
            words::number(Unit::Bytes, unsent)
        )
    });
    let seen: Vec<String> = waited.into_iter().chain(flight).collect();
    let limit = auto_buffer(dataset, cell, Part::Sender).map_or(String::new(), |bytes| {
        format!(" ({} here)", words::number(Unit::Bytes, bytes))
    });
    let short = memory_pressure::at(dataset, cell, Part::Sender);
    let what = match cell.workload.options.socket_buffer {
        _ if let Some(short) = &short => short.why(),
        Some(_) => {
            "SO_SNDBUF was set, which ends autotuning: leave it out or set a larger one.".to_owned()
        }
        None => format!(
            "It grows by itself up to the third value of net.ipv4.tcp_wmem{limit}, unless the program sets \
             SO_SNDBUF."
        ),
    };
    Some(Verdict {
        limiter: Limiter::SendBuffer,
        claim: format!(
            "The send buffer{buffer} limits throughput to {}: {}.",
            words::estimate(&throughput),
            seen.join("; "),
        ),
        explanation: format!(
            "{what} Data stays in the send buffer until it is acknowledged, so the buffer bounds what is in \
             flight as the receive window does."
        ),
        effect: waiting,
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            evidence::AT_BUFFER,
            ("payload in flight of each flow", name::IN_FLIGHT),
            ("payload that waits unsent", name::UNSENT),
            ("window that the receiver advertises", name::SEND_WINDOW),
            ("smoothed round trip", name::TCP_RTT),
            ("shortest round trip", name::TCP_MIN_RTT),
        ])?,
        weight: waiting.value,
    })
}
