//! The congestion window, after loss without a queue or by the algorithm's choice.
//!
//! That it limits is found in [`super::stream`]: only where the round trip is near its shortest, since
//! behind a queue a larger congestion window makes the queue longer and nothing faster.
//!
//! Where others have a fifth of what passes the flows' device in their direction, nothing is said: TCP's shortest round trip
//! may hold the queue that they keep, and what they send at the same time loses segments of these flows at any time, as if by
//! chance (a dispersion of 1 was seen of one flow of nine on a full path).
//!
//! Where at least half of what was lost arrived with a wrong checksum, damage loses it. Marks are counted by the sender,
//! while ACKs echo them: until it answers (CWR) all segments of a round trip are, so that they are more than were marked
//! (265 where 138 were).
//!
//! What else loses is told by how the losses lie in time (`reduce/losses.rs`), where at least ten of a trial show it:
//!
//! 1. *Independent of each other*: what damages frames. Dispersion up to 1.7 and gaps that vary by 0.6 and
//!    more, on one flow that loses up to 2 %. Above that a window is a few segments, which any queue of a few
//!    frames takes one from: 7 % of them were lost as evenly as by chance.
//! 2. *In bursts*: what has room for a burst and no more, a policer or a short queue. Dispersion of 3
//!    and more: 0.9 to 2.0 were seen of 11 paths that lose at random, up to 49 of 26 of the others.
//! 3. Else it is not decided, and an experiment is named that tells them apart. A policer and a short queue
//!    are not told apart: both pass what comes at their rate, and delay nothing that ten readings a second
//!    would see.

use linerate_model::HostName;
use linerate_model::flag::TrialFlag;
use linerate_model::limiter::Limiter;
use linerate_model::unit::Unit;
use linerate_model::workload::Part;

use super::host_drops::DROPS_MIN;
use super::rule::{Judge, Rule};
use super::trial::{
    BUSY_ALWAYS_MIN, CEILING_MAX, FILLED_SHARE_MIN, MODEL_QUOTIENT_MAX, MOST, NEAR_QUOTIENT_MAX,
    NEAR_QUOTIENT_STEADY_MAX, RATIO_NS_MIN, SIGNALS_MIN, TrialView, VARIATION_STEADY_MAX, hosts_of,
    losses,
};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Values, name};
use crate::words;

/// Share of the time with a queue up to which what was lost may not be of it: random loss was seen with 0.15,
/// shallow queues that overflow with 0.4.
const QUEUED_SHARE_MAX: f64 = 0.2;

/// Deviation of the sum of several flows up to which a path of one rate may be what loses: flows take what one that
/// lost leaves, while those that lose by chance vary each for itself (0.2 of one, over the root of their number).
const SUM_VARIATION_MAX: f64 = 0.04;

/// Others' share of what passes a device from which on a queue of theirs may never have been empty.
const OTHERS_SHARE_MAX: f64 = 0.2;

/// Dispersion of losses up to which they may be independent, and from which on they come in bursts.
const INDEPENDENT_DISPERSION_MAX: f64 = 1.7;
const BURSTS_DISPERSION_MIN: f64 = 3.0;
/// Variation of the gaps between losses from which on they are no sawtooth's.
const INDEPENDENT_GAPS_MIN: f64 = 0.6;
/// Share of the segments up to which independent losses are told.
const INDEPENDENT_SHARE_MAX: f64 = 0.02;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::CongestionWindow,
    needs: "round trips near the shortest, and losses that explain the rate; or a full window without loss",
    importance: 1,
    explains_failure: false,
    judge: Judge::Cause(
        |trial| {
            trial.stays_within(name::QUEUED, QUEUED_SHARE_MAX)
                && !trial.reaches(name::OTHERS_SHARE, OTHERS_SHARE_MAX)
                && !may_share_path(trial)
                && trial.workers_rest()
                && (signals_fit(trial) || is_full_of_its_own(trial))
        },
        tell,
    ),
    evident: Some(mend),
    next: |_| {
        let words = "find the loss: repeat with `--capture -o DIR`, look at `ip -s link` and `tc -s qdisc` of \
                     both hosts";
        Some(words.to_owned())
    },
};

/// What to do about what keeps it small.
fn mend(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let words = match kept_small(dataset, cell) {
        KeptSmall::Loss => return told_apart(cell),
        KeptSmall::Damage => {
            "find what damages segments: a cable, a network card (`ethtool -S`), an offload of checksums (`ethtool -k`)"
        }
        KeptSmall::Marks(_) => {
            "find what marks segments (ECN): `tc -s qdisc` of both hosts, the switches' thresholds"
        }
        KeptSmall::Late(_) => {
            "find what delays or reorders segments or their ACKs: parallel links, queues, radio"
        }
        KeptSmall::Itself => {
            "repeat for longer (a larger `-t`); where it stays, look for a clamp: `ip route get HOST` (cwnd)"
        }
    };
    Some(words.to_owned())
}

/// What loses: what to look at where the losses show it, else the experiment that does.
fn told_apart(cell: &CellOutcomes<'_>) -> Option<String> {
    let losses = Losses::of(cell);
    if losses == Losses::Independent {
        let words = "look at error counters along the path (`ethtool -S`, `ip -s link`: cable, optics, Wi-Fi); `-C bbr` \
                     slows down less for such loss";
        return Some(words.to_owned());
    }
    let stays = match losses {
        Losses::Bursts(_) => "a link that fades loses the same share then",
        _ => "random loss keeps its share then",
    };
    Some(format!(
        "repeat with `--fq-rate {}`: {stays}, a policer or a short queue loses nothing",
        half_rate(cell)?
    ))
}

/// Returns half of a flow's rate as flags take it.
fn half_rate(cell: &CellOutcomes<'_>) -> Option<String> {
    let flows = f64::from(cell.workload.connections.max(1));
    let half = cell.mean(name::THROUGHPUT)? / flows / 2.0;
    [(1e9, "G"), (1e6, "M"), (1e3, "k")]
        .into_iter()
        .find(|(unit, _)| half >= *unit)
        .map(|(unit, letter)| {
            let digits = usize::from(half < 10.0 * unit);
            format!("{:.digits$}{letter}", half / unit)
        })
}

/// Whether what was lost or marked (ECN: a window shrinks on a mark as on a loss) explains the rate.
fn signals_fit(trial: &TrialView<'_>) -> bool {
    // What is near by being short may be a shallow queue that overflows.
    let quotient = trial.value(name::TCP_RTT).zip(trial.setup.shortest_ns());
    let is_ratio_near = quotient.is_none_or(|(rtt, shortest)| {
        shortest < RATIO_NS_MIN || rtt <= NEAR_QUOTIENT_MAX * shortest
    });
    // A few segments of a slow line make a round trip longer that no queue of the flow's own does.
    let is_alone = trial.is_within(NEAR_QUOTIENT_MAX) && trial.grows_queue() == Some(false);
    let is_near = (trial.is_near() || is_alone) && is_ratio_near;
    if trial.setup.paces || !is_near || !has_signals(trial) {
        return false;
    }
    let Some((cwnd, mss)) = trial.value(name::CWND).zip(trial.value(name::SEND_MSS)) else {
        return false;
    };
    // Of both at the least: what is not known of one allows more.
    let signals = trial.share_of(trial.losses()).least() + trial.share_of(trial.marks()).least();
    let by_model = trial.loss_ceiling(signals);
    let roomy = trial.ceiling(cwnd * mss);
    roomy.is_some_and(|ceiling| ceiling <= 2.0)
        && by_model.is_some_and(|ceiling| ceiling <= MODEL_QUOTIENT_MAX)
}

/// Whether segments were lost or marked, more than by chance.
fn has_signals(trial: &TrialView<'_>) -> bool {
    trial.losses().least() + trial.marks().least() >= SIGNALS_MIN
}

/// Whether several flows may fill a path together whose queue is short (an AQM, a small buffer): it loses what is more,
/// and the formula fits whatever it carries.
fn may_share_path(trial: &TrialView<'_>) -> bool {
    let may_be_even = !trial.exceeds(name::RATE_VARIATION, SUM_VARIATION_MAX);
    trial.setup.flows > 1.0 && may_be_even && has_signals(trial)
}

/// Whether the window is full while nothing stands before the path.
///
/// A window that grows, or that loss made small, has a rate that varies (0.06 and more were seen); one that is clamped is
/// steady at the shortest round trip. A steady rate at a longer one may be that of a path that has just become full.
fn is_full_of_its_own(trial: &TrialView<'_>) -> bool {
    let full = || {
        let congestion = trial.value(name::CWND)? * trial.value(name::SEND_MSS)?;
        let flight = trial.value(name::IN_FLIGHT)?;
        let ceiling = trial.ceiling(congestion)?;
        Some(flight >= FILLED_SHARE_MIN * congestion && ceiling <= CEILING_MAX)
    };
    let varies = !trial.stays_within(name::RATE_VARIATION, VARIATION_STEADY_MAX);
    // What more in flight makes longer by as much is full, however near its shortest seen it is.
    trial.is_long()
        && trial.is_near()
        && trial.grows_queue() != Some(true)
        && (varies || trial.is_within(NEAR_QUOTIENT_STEADY_MAX))
        && !trial.setup.paces
        && trial.busy().reaches(BUSY_ALWAYS_MIN)
        && trial.losses().known().is_some()
        && trial.held().stays_below(MOST)
        && trial.stays_below(name::DROPPED_QDISC, DROPS_MIN)
        && full() == Some(true)
}

/// What keeps a congestion window small.
#[derive(Debug, Clone, Copy, PartialEq)]
enum KeptSmall {
    /// Segments were lost.
    Loss,
    /// Segments arrived damaged, which TCP drops: at least half of those that were lost.
    Damage,
    /// So many segments of a trial were acknowledged with the echo of a congestion mark, and fewer were lost.
    Marks(f64),
    /// So many segments of a trial were sent again that had arrived: they, or their ACKs, came late.
    Late(f64),
    /// None of these: it still grows, or is clamped.
    Itself,
}

/// Returns what keeps the congestion windows of `cell` small.
fn kept_small(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> KeptSmall {
    let (needless, marked) = (
        cell.amount(name::SPURIOUS).least(),
        cell.amount(name::MARKED).least(),
    );
    let lost = losses(cell).least();
    if lost >= 1.0 && lost >= marked {
        if arrived_damaged(dataset, cell) >= MOST * lost {
            KeptSmall::Damage
        } else {
            KeptSmall::Loss
        }
    } else if marked >= 1.0 {
        KeptSmall::Marks(marked)
    } else if needless >= 1.0 {
        KeptSmall::Late(needless)
    } else {
        KeptSmall::Itself
    }
}

/// Returns the segments that arrived at a receiver with a wrong checksum, of a trial on average.
fn arrived_damaged(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> f64 {
    let is_receiver = |name: &HostName| {
        let mut receivers = hosts_of(dataset, cell, Part::Receiver);
        receivers.any(|host| host.name == *name)
    };
    let flags = cell.valid.iter().flat_map(|outcome| &outcome.flags);
    let damaged = flags.filter_map(|flag| match flag {
        TrialFlag::Damaged { host, segments } if is_receiver(host) => Some(*segments as f64),
        _ => None,
    });
    damaged.sum::<f64>() / cell.valid.len().max(1) as f64
}

fn tell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let cwnd = cell.estimate(name::CWND)?;
    let kept_small = kept_small(dataset, cell);
    let share = cell
        .estimate(name::RETRANSMITTED_SHARE)
        .filter(|_| matches!(kept_small, KeptSmall::Loss | KeptSmall::Damage));
    let (reason, explanation) = match (share, kept_small) {
        (Some(share), KeptSmall::Damage) => (
            format!(
                ", which damage keeps small: {} of all segments were retransmitted, {} per trial arrived with a wrong \
                 checksum, and the round trip stayed near its shortest",
                words::percent(share.value),
                words::things(arrived_damaged(dataset, cell), "segment")
            ),
            "TCP drops a segment with a wrong checksum, and its sender's window shrinks as on a loss. Find what damages \
             them: a cable, a network card, an offload of checksums, a device on the path."
                .to_owned(),
        ),
        (Some(share), _) => (
            format!(
                ", which loss keeps small: {} of all segments were retransmitted, and the round trip stayed near \
                 its shortest",
                words::percent(share.value)
            ),
            what_loses(cell),
        ),
        (None, KeptSmall::Marks(marked)) => (
            format!(
                ", which congestion marks (ECN) keep small: ACKs of {} per trial echo one (ECE), and the round \
                 trip stayed near its shortest",
                words::things(marked, "segment")
            ),
            "A device on the path marks segments before a queue stands there for long. The sender's \
             window shrinks on a mark as on a loss: this is about what the path gives, or the device \
             marks too early (`tc -s qdisc` and a switch's ECN thresholds show where)."
                .to_owned(),
        ),
        (None, KeptSmall::Late(needless)) => (
            format!(
                ", which needless retransmissions keep small: {} per trial had arrived, and the round trip stayed \
                 near its shortest",
                words::things(needless, "segment")
            ),
            "Next to nothing was lost: segments that come late, or behind others, look lost to a sender, whose \
             window shrinks as on a loss. Find what delays or reorders them, or their ACKs: parallel links, \
             queues, radio."
                .to_owned(),
        ),
        (None, _) => (
            String::new(),
            "The sender may have no more in flight than its congestion window, and the round trip stayed \
             near its shortest: the path was not full. Next to nothing was lost meanwhile, so the window was still \
             growing, from its start or after an earlier loss, or is clamped (ip route … cwnd)."
                .to_owned(),
        ),
    };
    Some(Verdict {
        limiter: Limiter::CongestionWindow,
        claim: format!(
            "The congestion window limits throughput to {}: {} on average{reason}.",
            words::estimate(&throughput),
            words::things(cwnd.value, "segment"),
        ),
        explanation,
        effect: share.unwrap_or(cwnd),
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            ("share of segments retransmitted", name::RETRANSMITTED_SHARE),
            ("segments retransmitted", name::RETRANSMITTED),
            ("of them, those that had arrived", name::SPURIOUS),
            (
                "segments acknowledged with the echo of a mark (ECE)",
                name::MARKED,
            ),
            ("dispersion of the losses", name::LOSS_DISPERSION),
            (
                "relative deviation of the gaps between losses",
                name::LOSS_GAP_VARIATION,
            ),
            ("congestion window", name::CWND),
            ("smoothed round trip", name::TCP_RTT),
            ("shortest round trip", name::TCP_MIN_RTT),
        ])?,
        weight: share.map_or(0.0, |share| 1.0 + share.value),
    })
}

/// How the losses of a cell lie in time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Losses {
    /// Independent of each other.
    Independent,
    /// In bursts, with so many times the variance of independent ones.
    Bursts(f64),
    /// Neither is shown.
    Undecided,
}

impl Losses {
    fn of(cell: &CellOutcomes<'_>) -> Self {
        let is_independent = cell.stays_within(name::RETRANSMITTED_SHARE, INDEPENDENT_SHARE_MAX)
            && cell.stays_within(name::LOSS_DISPERSION, INDEPENDENT_DISPERSION_MAX)
            && cell.reaches(name::LOSS_GAP_VARIATION, INDEPENDENT_GAPS_MIN);
        let dispersion = cell.mean(name::LOSS_DISPERSION);
        match dispersion.filter(|quotient| *quotient >= BURSTS_DISPERSION_MIN) {
            _ if is_independent => Self::Independent,
            Some(dispersion) => Self::Bursts(dispersion),
            None => Self::Undecided,
        }
    }
}

/// What it is that loses, as far as the losses show it; the cause first, since a terminal shows that alone.
fn what_loses(cell: &CellOutcomes<'_>) -> String {
    let what = match Losses::of(cell) {
        Losses::Independent => {
            "Segments were lost independently of each other: at random, as by damage, not by a policer or a full queue. A \
             queue that is managed (RED, PIE) may do so, too."
                .to_owned()
        }
        Losses::Bursts(dispersion) => format!(
            "Segments were lost in bursts ({} times the variance of independent losses): by a policer, a short queue, or a \
             link that fades (Wi-Fi, radio).",
            words::number(Unit::Count, dispersion)
        ),
        Losses::Undecided => {
            "A policer, random loss and a queue too short to be seen look like this.".to_owned()
        }
    };
    let next = told_apart(cell).map_or(String::new(), |words| format!(" To tell more: {words}."));
    format!(
        "{what} The sender may have no more in flight than its congestion window, which shrinks on loss, and no queue \
         stood for long.{next}"
    )
}
