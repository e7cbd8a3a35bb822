//! Our own worker had no time left.
//!
//! Rule: the busiest worker of any host ran at least 95 % of the measured window
//! ([`WORKER_SATURATED_SHARE`]), or ran or waited for a CPU that long and waited for little of it or
//! for nobody else, and none of the rules on CPUs that
//! it did not get holds: there were free ones. Such a number says what the generator can do, not what the
//! network can. A worker that spins runs always; what it needs nobody knows. One that paces datagrams spins
//! through short gaps, so that it says nothing where the path loses what it sends. Nor does one behind which TCP's data
//! waits for a line: the rate is as steady, the round trip grows with what is in flight, some is left to send and next to
//! nothing unread. Where no rate was asked for, and next to all arrives of what a sender sends that has no time left, the
//! little that the receive buffer loses limits nothing.
//!
//! Where the sending ends of a stream run a congestion control that paces (bbr), the claim says so: its
//! timers and short bursts are CPU time of the same hosts. Ten copying flows over loopback made 41 Gbit/s
//! (37–49) under bbr and 103 (94–106) under reno, at 402 and 160 ns of CPU a KiB, with saturated workers
//! both times (three interleaved runs of 1 s).

use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;

use super::cpu::{is_of_path, is_path_full, others_have_time, unpin};
use super::evidence;
use super::path_rate::LOST_SHARE_MIN;
use super::repeat;
use super::rule::{Judge, Rule};
use super::trial::pacing_costs;
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{WAIT_SHARE_MIN, WORKER_SATURATED_SHARE, name};
use crate::trust::lost_unread;
use crate::words;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::Generator,
    needs: "linerate's busiest worker ran 95 % of the window, with CPUs free",
    importance: 1,
    explains_failure: false,
    judge: Judge::Cell(verdict),
    evident: Some(unpin),
    next: |workload| {
        let more = workload.connections.saturating_mul(2).max(4);
        Some(if workload.traffic.is_stream() {
            let uncopied = repeat::uncopied(workload);
            format!(
                "spread the load: `-P {more}`, larger messages with `-l`, {uncopied}or another client"
            )
        } else {
            format!("spread the load: `-P {more}`, or another client (`--client`)")
        })
    },
};

/// Share of the datagrams that the receive buffer may lose of all that a sender sends: what arrives is its rate.
const OVERFLOWN_SHARE_MAX: f64 = 0.05;

/// Datagrams are lost that our own reader had no part in, or nobody counted them.
fn loses_on_the_way(cell: &CellOutcomes<'_>) -> bool {
    let manner = &cell.workload.manner;
    if manner.transport != Transport::Udp || !cell.workload.traffic.is_stream() {
        return false;
    }
    let lost = cell.mean(name::LOSS_SHARE);
    let unread = lost_unread(&cell.workload, cell);
    let overflown = || {
        let lost = cell.mean(name::LOST_RECEIVE_BUFFER)?;
        let share = lost / cell.mean(name::DATAGRAMS_SENT)?;
        (manner.rate_bps.is_none() && share <= OVERFLOWN_SHARE_MAX).then_some(share)
    };
    let by_reader = unread.or_else(overflown).unwrap_or(0.0);
    lost.is_none_or(|lost| lost - by_reader >= LOST_SHARE_MIN)
}

fn verdict(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    if cell.workload.manner.spins() || loses_on_the_way(cell) || is_path_full(cell) {
        return None;
    }
    let main = cell.main()?;
    let run = cell.estimate(name::WORKER_BUSY_SHARE_MAX)?;
    let wanted = cell.estimate(name::WORKER_WANTED_SHARE_MAX);
    let (share, how) = if run.value >= WORKER_SATURATED_SHARE {
        (
            run,
            format!("ran {} of the time", words::percent(run.value)),
        )
    } else {
        let wanted = wanted.filter(|wanted| wanted.value >= WORKER_SATURATED_SHARE)?;
        let waited = cell.mean(name::WORKER_WAITED)?;
        // Where all CPUs are full, or nobody knows, they may be what it waited for.
        cell.mean(name::CPU_BUSY_SHARE)?;
        // Who waits for long waits for somebody: only where that is no other program and no quota is it our own.
        let is_own = cell.mean(name::THROTTLED_PERIODS) == Some(0.0) && !others_have_time(cell);
        if (waited >= WAIT_SHARE_MIN && !is_own) || is_of_path(cell, wanted.value, waited) {
            return None;
        }
        let how = format!(
            "ran {} of the time and waited for a CPU {} of it",
            words::percent(wanted.value - waited),
            words::percent(waited)
        );
        (wanted, how)
    };
    let response = &cell.experiment.response;
    let pacing = pacing_costs(dataset, cell);
    Some(Verdict {
        limiter: Limiter::Generator,
        claim: format!(
            "The load generator limits the number: at {} its busiest worker {how}.{pacing}",
            words::estimate(&main),
        ),
        explanation: "The number is a lower bound of what the path can do. More flows spread over \
                      more workers, larger messages or a faster CPU would raise it."
            .to_owned(),
        effect: share,
        evidence: cell.proof(&[
            (crate::reduce::describe(response).title, response),
            evidence::WORKER_RAN,
            (
                "share of the time that a worker waited for a CPU",
                name::RUNQUEUE_WAIT_MAX,
            ),
            ("busy CPUs", name::CPU_BUSY),
        ])?,
        weight: share.value,
    })
}
