//! The program that writes pauses.
//!
//! Nothing is outstanding and nothing waits to be sent for much of the time, and what is sent is
//! delivered far faster than the mean rate: path and buffers stand ready.

use linerate_model::limiter::Limiter;
use linerate_model::unit::Unit;

use super::evidence;
use super::link_rate::share_of;
use super::rule::{Judge, Rule};
use super::trial::{MOST, TrialView};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Values, name};
use crate::words;

/// Share of the time with data outstanding up to which the writer pauses.
const BUSY_PAUSED_MAX: f64 = 0.7;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::Application,
    needs: "a writer with nothing to send 30 % of the time; or half of a round trip that nothing of the \
             network explains",
    importance: 1,
    explains_failure: true,
    judge: Judge::Cause(is_paused_by_writer, tell),
    evident: None,
    next: |workload| {
        let words = if workload.traffic.is_stream() {
            "check why the sending program pauses"
        } else {
            "check what the answering program waits for"
        };
        Some(words.to_owned())
    },
};

fn is_paused_by_writer(trial: &TrialView<'_>) -> bool {
    let segment = trial.value(name::SEND_MSS);
    let nothing_unsent = segment.is_some_and(|bytes| trial.stays_within(name::UNSENT, bytes));
    let rests = trial.stays_below(name::WORKER_WANTED_SHARE_MAX, MOST);
    trial.busy().stays_within(BUSY_PAUSED_MAX) && nothing_unsent && rests && trial.pauses()
}

fn tell(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let delivered = cell.mean(name::DELIVERY_RATE)?;
    let idle = cell.derived(Unit::Ratio, |outcome| {
        Some((1.0 - outcome.value(name::BUSY)?).clamp(0.0, 1.0))
    })?;
    Some(Verdict {
        limiter: Limiter::Application,
        claim: format!(
            "The sending program limits throughput to {}: {} of the time it had nothing to send, and what \
             it sent was delivered at {}.",
            words::estimate(&throughput),
            words::percent(idle.value),
            words::number(Unit::BitsPerSecond, delivered),
        ),
        explanation:
            "Path and buffers allow more than is written. Check what the program waits for: its data \
                      source, a disk, a timer, a lock."
                .to_owned(),
        effect: share_of(&throughput, delivered),
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            ("share of the time with data outstanding", name::BUSY),
            ("delivery rate while there was data", name::DELIVERY_RATE),
            ("payload that waits unsent", name::UNSENT),
            evidence::WORKER_RAN,
        ])?,
        weight: idle.value,
    })
}
