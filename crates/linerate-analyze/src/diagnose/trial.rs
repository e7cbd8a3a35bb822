//! One trial of a stream, as the rules read it that are about what holds a stream.

use linerate_model::flag::TrialFlag;

use crate::dataset::{CellOutcomes, Dataset};
pub(super) use crate::evidence::MOST;
pub(super) use crate::evidence::setup::{
    Setup, auto_buffer, farthest_ns, hosts_of, pacing_algorithm,
};
pub(crate) use crate::evidence::setup::{shortest_ns, turns_per_s};
use crate::evidence::{MATHIS_CONSTANT, lost};
use crate::reduce::{
    Amount, Outcome, SCHEDULER_NS_MAX, Values, WORKER_SATURATED_SHARE, is_starved, name,
};
use crate::words;

/// Share of the time that a CPU spends on packets from which on they wait for it. With a shaper beside it on one
/// machine 0.93 was seen of a full path.
const INTERRUPT_SHARE_FULL: f64 = 0.97;
/// Deviation of the rate from reading to reading from which on a worker that needs little is held up by what
/// it waits for, and no path's queue is to be seen behind it: queues and the grain of segments make 0.05, at
/// the lowest rates 0.1.
pub(super) const UNEVEN_VARIATION_MIN: f64 = 0.2;
/// Deviation up to which it may be a path's where next to no CPU is free: one that is not full was seen with
/// 0.12 to 0.2 there, a full one with 0.16, so that nothing is said between the two.
const EVEN_VARIATION_MAX: f64 = 0.1;
/// Share of all CPUs' time from which on next to none is free: the kernel's own work waits, too.
const SCARCE_SHARE_MIN: f64 = 0.9;
/// Share of all CPUs' time that the hypervisor took from which on that is why, whatever our workers ran: their time has
/// nothing of what was taken from them.
pub(super) const STEAL_SHARE_LARGE: f64 = 0.2;
/// Shortest round trip from which on a ratio to it says something.
const LONG_NS_MIN: f64 = 500_000.0;
/// Shortest round trip below which no ratio of round trips is looked at.
pub(crate) const RATIO_NS_MIN: f64 = 50_000.0;
/// Smoothed over shortest round trip up to which it is near: windows, pacing and random loss stay
/// below 1.06 at 20 ms, a shaper has 1.29 with bbr and 4 with cubic. Relays and schedulers add to it.
pub(super) const NEAR_QUOTIENT_MAX: f64 = 1.2;
/// The same from this shortest round trip on, beside which what relays and schedulers add is little: a queue of
/// a tenth stands before a path that may be full.
const NEAR_QUOTIENT_FAR_MAX: f64 = 1.1;
const FAR_NS_MIN: f64 = 10_000_000.0;
/// Extra waiting that is a queue by itself; of less, only what is steady and not made by CPUs.
pub(super) const QUEUE_NS_MIN: f64 = 500_000.0;
pub(super) const VARIATION_STEADY_MAX: f64 = 0.05;
/// Deviation of the rate from reading to reading up to which a line makes it.
pub(super) const VARIATION_LINE_MAX: f64 = 0.03;
/// The same of one flow of several whose sum is a line's: flows that lose by chance vary by 0.2 each, and their sum by
/// that over the root of their number.
const VARIATION_LINE_FLOW_MAX: f64 = 0.1;
/// Median difference of consecutive rates up to which a line makes them, and how many times as much the round trips differ
/// then: up to 0.005, and 3.5 to 15 times, were seen of lines whose rate changed; 1.4 times of ways that became longer, 2 of
/// a receiver that was stopped again and again.
const RATE_STEP_LINE_MAX: f64 = 0.01;
const RTT_STEP_QUOTIENT_MIN: f64 = 3.0;
/// Share of the time with a queue from which on there always is one.
const QUEUED_ALWAYS_MIN: f64 = 0.9;
/// Smoothed over shortest round trip up to which a steady rate is that of a clamped window: 1.01 was seen at 50 ms.
pub(super) const NEAR_QUOTIENT_STEADY_MAX: f64 = 1.03;
/// Losses and marks of a trial that are more than chance; ten over all trials.
pub(super) const SIGNALS_MIN: f64 = 3.0;
/// Share of the time with data outstanding from which on a sender always has some, and of the time at a window or the
/// send buffer up to which neither holds it.
pub(super) const BUSY_ALWAYS_MIN: f64 = 0.9;
const HELD_SHARE_MAX: f64 = 0.1;
pub(super) const WANTED_REST_MAX: f64 = 0.9;
/// Deviation of all that passes a shared device over that of the flows' own part up to which one has more whenever others
/// have less (`reduce/beside.rs`).
const SHARED_OVER_OWN_MAX: f64 = 0.5;
/// Delivery rate over mean rate from which on an end pauses: 1.4 to 1.7 where CPUs limit.
const PAUSE_QUOTIENT_MIN: f64 = 1.3;
/// Largest relative difference of a ceiling and the rate, upwards: the round trip may lie above its
/// shortest by as much as is near, and whole segments leave some of a window unused.
pub(super) const CEILING_MAX: f64 = 1.05 * NEAR_QUOTIENT_MAX;
/// Share of the window in flight from which on it is full: whole segments leave up to a segment of
/// a small window unused, and each ACK opens it for a moment.
pub(super) const FILLED_SHARE_MIN: f64 = 0.8;
/// Share of the time at the window that is asked for beside a full window, by one that does not pace:
/// pacing is tested before the window and hides it.
const WAITING_SHARE_MIN_FILLED: f64 = 0.1;
/// Elasticity of the round trip (`reduce/evidence.rs`) below which no queue of the flow's own makes it longer.
pub(super) const ELASTICITY_MIN: f64 = 0.2;
/// What loss allows over the rate up to which it is the loss: the formula is within a factor of two.
pub(super) const MODEL_QUOTIENT_MAX: f64 = 3.0;
/// Second half of the window over the first up to which the rate collapsed.
const COLLAPSED_MAX: f64 = 0.5;

/// One trial as the rules read it.
pub(super) struct TrialView<'o> {
    pub(super) outcome: &'o Outcome,
    pub(super) setup: &'o Setup,
}

impl Values for TrialView<'_> {
    fn value(&self, response: &str) -> Option<f64> {
        Values::value(self.outcome, response)
    }
}

impl TrialView<'_> {
    pub(super) fn rate(&self) -> Option<f64> {
        self.value(name::THROUGHPUT).filter(|rate| *rate > 0.0)
    }

    /// Rate that `bytes` of each flow per shortest round trip make, over the rate that there is.
    pub(super) fn ceiling(&self, bytes: f64) -> Option<f64> {
        Some(bytes * 8.0 * self.setup.turns_per_s()? / self.rate()?)
    }

    /// Rate that a loss of `share` of the segments allows (Mathis and others 1997), over the rate that there is.
    pub(super) fn loss_ceiling(&self, share: f64) -> Option<f64> {
        self.ceiling(MATHIS_CONSTANT / share.sqrt() * self.value(name::SEND_MSS)?)
    }

    pub(super) fn is_long(&self) -> bool {
        self.setup.shortest_ns().is_some_and(|ns| ns >= LONG_NS_MIN)
    }

    /// Extra waiting.
    fn delay_ns(&self) -> Option<f64> {
        Some(self.value(name::TCP_RTT)? - self.setup.shortest_ns()?)
    }

    /// The round trip is so near its shortest that nothing stands before the path.
    pub(super) fn is_near(&self) -> bool {
        let is_far = self.setup.shortest_ns().is_some_and(|ns| ns >= FAR_NS_MIN);
        self.is_within(if is_far {
            NEAR_QUOTIENT_FAR_MAX
        } else {
            NEAR_QUOTIENT_MAX
        })
    }

    /// The round trip is at most so many times its shortest, or longer by next to nothing.
    pub(super) fn is_within(&self, quotient: f64) -> bool {
        let Some((rtt, shortest)) = self.value(name::TCP_RTT).zip(self.setup.shortest_ns()) else {
            return false;
        };
        if shortest < RATIO_NS_MIN {
            rtt - shortest < SCHEDULER_NS_MAX
        } else {
            rtt <= quotient * shortest || rtt - shortest < SCHEDULER_NS_MAX / 2.0
        }
    }

    /// More in flight makes the round trip longer: a queue of its own stands on the way.
    pub(super) fn grows_queue(&self) -> Option<bool> {
        let elasticity = self.value(name::RTT_ELASTICITY)?;
        Some(elasticity >= ELASTICITY_MIN)
    }

    fn is_steady(&self) -> bool {
        self.stays_within(name::RATE_VARIATION, VARIATION_STEADY_MAX)
            && !self.exceeds(name::WORKER_WANTED_SHARE_MAX, WANTED_REST_MAX)
    }

    /// Data waits in a queue on the way for most of the time.
    pub(super) fn is_queued(&self) -> bool {
        let delay = Amount::from(self.delay_ns());
        let enough =
            delay.reaches(QUEUE_NS_MIN) || (delay.reaches(SCHEDULER_NS_MAX) && self.is_steady());
        let is_seen =
            enough && !self.is_within(NEAR_QUOTIENT_MAX) && self.reaches(name::QUEUED, MOST);
        (is_seen || self.is_of_a_line()) && !hides_path(self.outcome)
    }

    /// Data may wait in a queue on the way for most of the time: it does, or nobody knows.
    pub(super) fn may_be_queued(&self) -> bool {
        let is_read = self.delay_ns().is_some() && self.value(name::QUEUED).is_some();
        self.is_queued() || !is_read
    }

    /// The rate is as steady as a line's, and nothing else holds the sender. The queue may be short beside the round trip,
    /// but there is one.
    fn is_of_a_line(&self) -> bool {
        let most = VARIATION_LINE_MAX.min(VARIATION_LINE_FLOW_MAX / self.setup.flows.sqrt());
        self.stays_within(name::RATE_VARIATION, most)
            && self.delay_ns().is_some_and(|ns| ns >= QUEUE_NS_MIN)
            && !self.is_within(NEAR_QUOTIENT_STEADY_MAX)
            && self.is_held_by_nothing_else()
    }

    /// The rate is that of a line which changes now and then: from reading to reading it is as steady, the round trip
    /// varies by more, which no window ÷ round trip does, and the queue never ends, as it does where a flow has just begun.
    pub(super) fn is_of_a_changing_line(&self) -> bool {
        let rate = self.value(name::RATE_STEP);
        let steps = rate.zip(self.value(name::RTT_STEP));
        let is_line = |(rate, trip): (f64, f64)| {
            rate <= RATE_STEP_LINE_MAX && trip > RTT_STEP_QUOTIENT_MIN * rate
        };
        steps.is_some_and(is_line)
            && self.reaches(name::QUEUED, QUEUED_ALWAYS_MIN)
            && self.is_held_by_nothing_else()
    }

    /// The sender always has data, neither window nor its buffer holds it, and its congestion window has room, or loses
    /// some, or grows the round trip alone.
    fn is_held_by_nothing_else(&self) -> bool {
        let Some(segment) = self.value(name::SEND_MSS) else {
            return false;
        };
        let has_room = || {
            let congestion = self.value(name::CWND)? * segment;
            Some(self.value(name::IN_FLIGHT)? < FILLED_SHARE_MIN * congestion)
        };
        let mut flags = self.outcome.flags.iter();
        let is_paced = self.setup.is_paced || flags.any(TrialFlag::is_agents_limit);
        !self.exceeds(name::WORKER_WANTED_SHARE_MAX, WANTED_REST_MAX)
            && !is_paced
            && self.busy().reaches(BUSY_ALWAYS_MIN)
            && self.exceeds(name::UNSENT, segment)
            && self.held().stays_within(HELD_SHARE_MAX)
            && self.stays_below(name::WINDOW_FILLED, FILLED_SHARE_MIN)
            && (has_room() == Some(true)
                || self.losses().reaches(SIGNALS_MIN)
                || self.grows_queue() == Some(true))
    }

    /// These flows and others fill a path together.
    pub(super) fn shares_full_path(&self) -> bool {
        shares_full_path(self) && !hides_path(self.outcome)
    }

    /// The rate fell by half within the window: something else changed, too, whatever held it before.
    pub(super) fn collapses(&self) -> bool {
        self.stays_below(name::HALVES, COLLAPSED_MAX)
    }

    /// An end of a single flow pauses; of several, each has bursts of its own.
    pub(super) fn pauses(&self) -> bool {
        let quotient = self
            .value(name::DELIVERY_RATE)
            .zip(self.rate())
            .map(|(delivered, rate)| delivered / rate);
        self.setup.flows == 1.0
            && quotient.is_some_and(|quotient| quotient > PAUSE_QUOTIENT_MIN)
            && !self.is_of_a_changing_line()
    }

    pub(super) fn window_is_full(&self) -> bool {
        let is_filled = self.reaches(name::WINDOW_FILLED, FILLED_SHARE_MIN);
        let at_window = self.amount(name::RWND_LIMITED);
        // The kernel counts time at a full send buffer as that alone, also while the window is full; `-w` sets both.
        let at_either = if self.setup.buffer_is_set {
            self.held()
        } else {
            at_window
        };
        let waits = self.setup.paces || at_either.reaches(WAITING_SHARE_MIN_FILLED);
        at_window.reaches(MOST) || (is_filled && waits)
    }

    /// Share of the time at a window or the send buffer.
    pub(super) fn held(&self) -> Amount {
        self.amount(name::RWND_LIMITED) + self.amount(name::SNDBUF_LIMITED)
    }

    /// Share of the time with data outstanding, which that at a window or the send buffer is a part of.
    pub(super) fn busy(&self) -> Amount {
        let busy = self.value(name::BUSY);
        let busy = busy.map(|busy| busy.max(self.held().least()).min(1.0));
        busy.into()
    }

    /// No worker wants a CPU all the time: what holds the flows is none.
    pub(super) fn workers_rest(&self) -> bool {
        self.stays_below(name::WORKER_WANTED_SHARE_MAX, WORKER_SATURATED_SHARE)
    }

    /// What was sent, retransmitted segments included, bit/s of payload: where the way loses, the sender's
    /// link carries more than arrives.
    pub(super) fn sent_bps(&self) -> Option<f64> {
        Some(self.rate()? / (1.0 - self.value(name::RETRANSMITTED_SHARE)?).max(MOST))
    }

    /// What was sent is less than `most` of what the link carries, where its rate is known.
    pub(super) fn leaves_link(&self, most: f64) -> bool {
        let link_bps = self.setup.link_bps.filter(|bps| *bps > 0.0);
        link_bps.is_none_or(|link| self.sent_bps().is_some_and(|sent| sent < most * link))
    }

    /// Segments that were lost: sent again, less those that had arrived.
    pub(super) fn losses(&self) -> Amount {
        losses(self.outcome)
    }

    /// Segments acknowledged with the echo of a congestion mark (ECE).
    pub(super) fn marks(&self) -> Amount {
        self.amount(name::MARKED)
    }

    /// Share of the segments that `count` are.
    pub(super) fn share_of(&self, count: Amount) -> Amount {
        let sent = self.value(name::SEGMENTS_SENT).filter(|sent| *sent > 0.0);
        let share = count.known().zip(sent).map(|(count, sent)| count / sent);
        share.into()
    }
}

/// Returns whether others have what the flows leave, and all that passes is as steady as a line: then they fill it together.
pub(super) fn shares_full_path(values: &impl Values) -> bool {
    let value = |name| values.value(name);
    // Where the own part hardly varies either, others need not have what it leaves.
    let own = || {
        let of_all = value(name::SHARED_VARIATION)? * value(name::SHARED_BPS)?;
        Some(of_all / (value(name::SHARED_OVER_OWN)? * value(name::THROUGHPUT)?))
    };
    values.stays_within(name::SHARED_OVER_OWN, SHARED_OVER_OWN_MAX)
        && values.stays_within(name::SHARED_VARIATION, VARIATION_LINE_MAX)
        && own().is_some_and(|share| share >= VARIATION_LINE_MAX)
}

/// Says of retransmissions that most of them had arrived, as D-SACKs tell: what came late was taken for lost.
pub(crate) fn needless(values: &impl Values) -> Option<String> {
    let again = values.value(name::RETRANSMITTED).filter(|it| *it > 0.0)?;
    let lost = losses(values).known()? / again;
    if lost == 0.0 {
        Some("all of them had arrived: reordering, nothing lost".to_owned())
    } else {
        (lost <= MOST).then(|| {
            let arrived = words::percent(1.0 - lost);
            format!("{arrived} of them had arrived: reordering, not loss")
        })
    }
}

/// Segments that were lost, as an amount.
pub(super) fn losses(values: &impl Values) -> Amount {
    lost(values).into()
}

/// Returns a sentence on what a congestion control that paces costs the sending ends of a stream, where they run one.
pub(super) fn pacing_costs(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> String {
    pacing_algorithm(dataset, cell).map_or(String::new(), |algorithm| {
        format!(" {algorithm} paces, which takes CPU time, too: compare with -C reno.")
    })
}

/// Whether data waits in a queue on the way in each valid trial of `cell`, as far as one trial shows that.
pub(super) fn is_queued(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let setup = &Setup::of(dataset, cell);
    let mut trials = cell
        .valid
        .iter()
        .map(|outcome| TrialView { outcome, setup });
    !cell.valid.is_empty() && trials.all(|trial| trial.is_queued())
}

/// Returns whether what a trial shows of its path may be its hosts': a worker was starved of CPU, or tasks
/// waited for one most of the time, so that the kernel's own work may have waited as well, and the rate
/// varied with it, or nobody knows either; or a CPU had no time but for packets, behind which they wait as behind a full
/// path.
pub(super) fn hides_path(outcome: &Outcome) -> bool {
    if outcome.reaches(name::CPU_INTERRUPT_SHARE_MOST, INTERRUPT_SHARE_FULL) {
        return true;
    }
    let starved = outcome
        .value(name::WORKER_WANTED_SHARE_MAX)
        .zip(outcome.value(name::WORKER_WAITED))
        .is_some_and(|(wanted, waited)| is_starved(waited, wanted - waited));
    let stolen = outcome.amount(name::CPU_STEAL_SHARE).least();
    let are_free = outcome.stays_below(name::CPU_BUSY_SHARE, SCARCE_SHARE_MIN - stolen);
    // Where nobody counted who waits, free CPUs tell that nobody did.
    let waits = !outcome.stays_below(name::CPU_PRESSURE, MOST)
        && (outcome.value(name::CPU_PRESSURE).is_some() || !are_free);
    let most = if are_free {
        UNEVEN_VARIATION_MIN
    } else {
        EVEN_VARIATION_MAX
    };
    let is_short = starved || waits || stolen >= STEAL_SHARE_LARGE;
    is_short && !outcome.stays_within(name::RATE_VARIATION, most)
}
