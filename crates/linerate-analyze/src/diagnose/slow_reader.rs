//! The program at the receiver leaves data unread.
//!
//! The sender waits for a window that is small because the buffer behind it is full. A larger buffer
//! fills as well. In TCP_INFO of the sender a slow reader looks like a shaped path; only the bytes that
//! it left tell.

use linerate_model::finding::Limiter;
use linerate_model::unit::Unit;

use super::rule::{Judge, Rule};
use super::trial::{MOST, RATIO_NS_MIN, Trial};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

/// Bytes of buffer below which it is nearly always full on a fast path, however prompt the reader is.
const READER_BUFFER_MIN: f64 = 32_768.0;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::SlowReader,
    importance: 1,
    explains_failure: true,
    judge: Judge::Cause(reader_is_behind, tell),
};

fn reader_is_behind(trial: &Trial<'_>) -> bool {
    let unread = trial.share(name::UNREAD_SHARE) >= MOST;
    let enough = trial
        .value(name::UNREAD)
        .is_some_and(|bytes| bytes >= READER_BUFFER_MIN);
    let is_long = trial.setup.shortest_ns.is_some_and(|ns| ns >= RATIO_NS_MIN);
    unread && (enough || is_long) && trial.window_is_full()
}

fn tell(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let share = cell.estimate(name::UNREAD_SHARE)?;
    Some(Verdict {
        limiter: Limiter::SlowReader,
        claim: format!(
            "The receiving program limits throughput to {}: {} of each flow wait unread, {} of the receive \
             buffer.",
            words::estimate(&throughput),
            words::number(Unit::Bytes, cell.mean(name::UNREAD)?),
            words::percent(share.value),
        ),
        explanation:
            "TCP has delivered this payload, but the program has not read it. A larger receive buffer \
                      would fill as well; a faster reader helps."
                .to_owned(),
        effect: share,
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            ("unread payload of each flow", name::UNREAD),
            (
                "share of the receive buffer that is unread",
                name::UNREAD_SHARE,
            ),
            (
                "share of the time limited by the receive window",
                name::RWND_LIMITED,
            ),
            (
                "share of the time that the busiest worker ran",
                name::WORKER_BUSY_SHARE_MAX,
            ),
        ])?,
        weight: share.value,
    })
}
