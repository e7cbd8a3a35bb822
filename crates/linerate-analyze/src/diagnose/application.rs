//! The program that writes pauses.
//!
//! Nothing is outstanding and nothing waits to be sent for much of the time, in which no worker runs or waits for a CPU,
//! and what is sent is delivered far faster than the mean rate: path and buffers stand ready. On paths below half a
//! millisecond TCP's delivery rate is a matter of the scheduler, and is not asked.

use linerate_model::finding::Limiter;
use linerate_model::unit::Unit;

use super::evidence;
use super::link_rate::share_of;
use super::rule::{Judge, Rule};
use super::trial::Trial;
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::Application,
    importance: 1,
    explains_failure: true,
    judge: Judge::Cause(is_paused_by_writer, tell),
};

/// Share of the time with nothing outstanding from which on it is the writer's.
const IDLE_SHARE_MIN: f64 = 0.3;

fn is_paused_by_writer(trial: &Trial<'_>) -> bool {
    let mss = trial.value(name::SEND_MSS).unwrap_or(0.0);
    let nothing_unsent = trial.value(name::UNSENT).is_some_and(|bytes| bytes <= mss);
    let wanted = trial.value(name::WORKER_WANTED_SHARE_MAX);
    let rests = wanted.is_none_or(|wanted| wanted <= 1.0 - IDLE_SHARE_MIN);
    let is_ready = match trial.is_long() {
        true => trial.pauses(),
        false => trial.setup.flows == 1.0 && wanted.is_some(),
    };
    1.0 - trial.busy() >= IDLE_SHARE_MIN && nothing_unsent && rests && is_ready
}

fn tell(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let delivered = cell.mean(name::DELIVERY_RATE)?.max(throughput.value);
    let at = match delivered > throughput.value {
        true => format!(
            ", and what it sent was delivered at {}",
            words::number(Unit::BitsPerSecond, delivered)
        ),
        false => String::new(),
    };
    let idle = cell.derived(Unit::Ratio, |outcome| {
        Some((1.0 - outcome.value(name::BUSY)?).clamp(0.0, 1.0))
    })?;
    Some(Verdict {
        limiter: Limiter::Application,
        claim: format!(
            "The sending program limits throughput to {}: {} of the time it had nothing to send{}.",
            words::estimate(&throughput),
            words::percent(idle.value),
            at,
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
