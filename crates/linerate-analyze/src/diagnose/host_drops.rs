//! Segments are dropped inside a host, while no queue on the way is full.
//!
//! What the sending host's queueing discipline drops is not in TCP's count of segments sent again: it
//! was never counted as sent. What a device or a CPU's backlog drops is. Where the link is all but full they
//! hold nothing back: it could carry next to no more. Nor do they where a sender that slows down for them could go
//! three times as fast, unless timers fired.

use linerate_model::finding::Estimate;
use linerate_model::limiter::Limiter;
use linerate_model::number::agreeing;
use linerate_model::unit::Unit;

use super::path_rate::VARIATION_MAX;
use super::rule::{Judge, Rule};
use super::trial::{MODEL_QUOTIENT_MAX, MOST, TrialView, losses};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Values, name};
use crate::words;

/// A place by its response, in words, and what helps there.
type Place = (&'static str, &'static str, &'static str);

/// The places.
const DROP_PLACES: &[Place] = &[
    (
        name::DROPPED_QDISC,
        "by the sending host's qdisc",
        "`tc -s qdisc` names it; its limit or its rate is too small.",
    ),
    (
        name::DROPPED_DEVICE,
        "by a device of the hosts",
        "`ip -s link` names it; a receiving one counts frames of protocols that the host does not handle, too, but these \
         drops came when segments were lost. A longer ring (ethtool -G) absorbs bursts; more queues or another CPU for \
         its interrupts spread the load.",
    ),
    (
        name::DROPPED_BACKLOG,
        "from the backlog of a CPU of the receiving host",
        "A larger net.core.netdev_max_backlog absorbs longer bursts; RPS spreads the load over CPUs.",
    ),
    (
        name::DROPPED_RECEIVER_QDISC,
        "by a qdisc of the receiving host, of what came in",
        "`tc -s qdisc` and `tc -s filter show dev DEVICE ingress` name it: a policer at ingress, or the shaper of a device \
         that what comes is redirected to (ifb).",
    ),
    (
        name::DROPPED_RECEIVER_IP,
        "by the receiving host itself: they came to its IP, which did not deliver them",
        "Its packet filter or its connection tracking drops them, as a rule: `nft list ruleset`, `iptables -nvL` and \
         `conntrack -S` of that host name it; `nstat` has what IP counts else.",
    ),
];

/// Drops of a trial that are worth a word, and of the segments sent.
pub(super) const DROPS_MIN: f64 = 10.0;
const DROPS_SHARE_MIN: f64 = 1e-4;

/// Share of what a known link carries up to which drops can be what limits.
const LINK_SHARE_MAX: f64 = 0.95;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::HostDrops,
    needs: "drops of a qdisc, device, backlog or packet filter of the hosts, without a queue on the path",
    importance: 1,
    explains_failure: true,
    judge: Judge::Cause(
        |trial| {
            (!trial.may_be_queued() || is_filtered(trial))
                && drops(trial)
                && trial.leaves_link(LINK_SHARE_MAX)
        },
        tell,
    ),
    evident: Some(mend),
    next: |_| {
        let words = "check which queue drops: `tc -s qdisc`, `ip -s link`, /proc/net/softnet_stat";
        Some(words.to_owned())
    },
};

/// What to do about what a packet filter drops, which no queue's counters show.
fn mend(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let (place, _) = most_at(cell)?;
    (place.0 == name::DROPPED_RECEIVER_IP).then(|| LOOK_AT_FILTER.to_owned())
}

/// Whether the receiving host's packet filter drops most of what is lost, and the rate is not that of a full path, whose queue
/// would be what makes round trips longer.
fn is_filtered(trial: &TrialView<'_>) -> bool {
    let losses = trial.losses().known();
    losses.is_some_and(|lost| trial.reaches(name::DROPPED_RECEIVER_IP, MOST * lost))
        && trial.exceeds(name::RATE_VARIATION, VARIATION_MAX)
}

/// Where to see what a packet filter drops.
pub(super) const LOOK_AT_FILTER: &str = "look at the receiving host's packet filter: `nft list ruleset`, `iptables -nvL`, `conntrack -S`";

/// Returns the place that dropped the most, and how many of a trial.
fn most_at(cell: &CellOutcomes<'_>) -> Option<(&'static Place, Estimate)> {
    // Where next to nothing was lost, only what was never counted as sent can be of these flows.
    let is_lossy = losses(cell).reaches(DROPS_MIN);
    let counted = DROP_PLACES
        .iter()
        .filter(|place| place.0 == name::DROPPED_QDISC || is_lossy)
        .filter_map(|place| Some((place, cell.estimate(place.0)?)));
    counted.max_by(|a, b| a.1.value.total_cmp(&b.1.value))
}

fn drops(trial: &TrialView<'_>) -> bool {
    let Some(segments) = trial.value(name::SEGMENTS_SENT) else {
        return false;
    };
    let many = |drops: f64| drops >= DROPS_MIN && drops >= DROPS_SHARE_MIN * segments;
    // What the own queueing discipline drops was never counted as sent, nor as sent again.
    let inside = DROP_PLACES
        .iter()
        .filter(|place| place.0 != name::DROPPED_QDISC)
        .map(|place| trial.amount(place.0).least())
        .sum::<f64>();
    let qdisc = trial.amount(name::DROPPED_QDISC).least();
    // Far more than these flows lost is somebody else's.
    let losses = trial.losses().known();
    let are_theirs =
        losses.is_some_and(|lost| lost >= DROPS_MIN && (lost / 2.0..=2.0 * lost).contains(&inside));
    let is_inside = many(inside) && are_theirs;
    let own = [(qdisc, many(qdisc)), (inside, is_inside)];
    let dropped: f64 = own.iter().filter(|one| one.1).map(|one| one.0).sum();
    if dropped == 0.0 {
        return false;
    }
    // The formula knows no timeouts, which cost far more.
    let is_in_formula = !trial.setup.paces && !trial.exceeds(name::TIMEOUTS, 0.0);
    let allows = trial.loss_ceiling(dropped / segments.max(1.0));
    !is_in_formula || allows.is_some_and(|ceiling| ceiling <= MODEL_QUOTIENT_MAX)
}

fn tell(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let ((response, place, advice), drops) = most_at(cell)?;
    let place_of_queue = if cell.stays_below(name::QUEUED, MOST) {
        " No queue stood on the path for most of the time."
    } else {
        ""
    };
    Some(Verdict {
        limiter: Limiter::HostDrops,
        claim: format!(
            "Drops inside a host limit throughput to {}: {} {place}.",
            words::estimate(&throughput),
            agreeing(
                &words::number(Unit::Count, drops.value),
                "packet per trial was dropped",
                "packets per trial were dropped",
            ),
        ),
        explanation: format!("{advice}{place_of_queue}"),
        effect: drops,
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            ("packets dropped there, per trial", response),
            ("segments retransmitted", name::RETRANSMITTED),
            ("smoothed round trip", name::TCP_RTT),
            ("shortest round trip", name::TCP_MIN_RTT),
        ])?,
        weight: drops.value,
    })
}
