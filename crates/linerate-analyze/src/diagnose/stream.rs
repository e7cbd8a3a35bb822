//! What holds a stream over TCP, by evidence that tells causes apart, as shares of the time.
//!
//! Congestion window ÷ round trip, window ÷ round trip and what is in flight ÷ round trip equal the
//! throughput whatever the bottleneck is (Little's law), so none of them is used. Each trial is
//! judged by itself; of the causes the first that fits is its own:
//!
//! 1. *reader*: the sender waits for the window, and more than half of the receiver's buffer is
//!    payload that the program there has not read;
//! 2. *receiver's window*: it is full, the round trip is near its shortest, and window ÷ **shortest**
//!    round trip is within a quarter of the rate. Behind a full queue the window is full as well, but
//!    allows more than the rate once the queue is taken away. On paths below half a millisecond the
//!    shortest round trip is luck of the scheduler: there it takes a small buffer that was set, and the
//!    kernel's clock;
//! 3. *send buffer*: the kernel's clock (tcpi_sndbuf_limited) without a queue; or, since that clock
//!    misses a writer whose data went out before it blocked, by arithmetic: always busy, nothing
//!    unsent, and what is in flight is what the buffer holds and well below both windows;
//! 4. *drops inside a host* that no queue on the way explains;
//! 5. *path*: data waits in a queue, the reader is not behind, no end pauses. All windows and buffers
//!    hold rate × smoothed round trip, and so allow at least smoothed ÷ shortest of the rate;
//! 6. *application*: nothing is outstanding for a third of the time, and what is sent is delivered half as
//!    fast again as the mean rate;
//! 7. *congestion window after loss* without a queue: segments are lost (what D-SACK says had arrived is
//!    not), the window allows less than twice the rate at the shortest round trip, and the rate is not far
//!    below what such loss allows (Mathis, Semke, Mahdavi and Ott, CCR 27(3), 1997);
//! 8. *pacing* by a congestion control that paces, without a queue: with one it tracks a bottleneck;
//! 9. *congestion window* without loss: full, the round trip near its shortest.
//!
//! The kernel's clocks share the time out: idle, waiting for the window, waiting for the send buffer,
//! and the rest. The time at the window belongs to rules 1, 2 or 5, that at the buffer to 3 or 5, the rest
//! to the cause of the trial, idle time to rule 6; what has no cause is unknown. More than a fifth of that,
//! or no cause that is the largest in most trials, and nothing is said.

use std::collections::BTreeSet;

use linerate_model::finding::{Estimate, Evidence, Limiter};
use linerate_model::manner::Transport;
use linerate_model::run::HostRecord;
use linerate_model::unit::Unit;
use linerate_model::workload::Traffic;

use super::limiter::{Verdict, limiter_title};
use super::pacing::pacing_algorithm;
use super::{application, congestion_window, host_drops, pacing, path_rate};
use super::{receiver_window, send_buffer, slow_reader};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Outcome, name};
use crate::words;

/// Shortest round trip from which on a ratio to it says something.
const LONG_NS_MIN: f64 = 500_000.0;
/// Shortest round trip below which no ratio of round trips is looked at.
const RATIO_NS_MIN: f64 = 50_000.0;
/// Smoothed over shortest round trip up to which it is near: windows, pacing and random loss stay
/// below 1.06 at 20 ms, a shaper has 1.29 with bbr and 4 with cubic. Relays and schedulers add to it.
const NEAR_QUOTIENT_MAX: f64 = 1.2;
/// Extra waiting that is a queue by itself; of less, only what is steady and not made by CPUs.
const QUEUE_NS_MIN: f64 = 500_000.0;
const QUEUE_NS_STEADY_MIN: f64 = 200_000.0;
const VARIATION_STEADY_MAX: f64 = 0.05;
const WANTED_REST_MAX: f64 = 0.9;
/// Most of the time.
const MOST: f64 = 0.5;
/// Delivery rate over mean rate from which on an end pauses: 1.4 to 1.7 where CPUs limit.
const PAUSE_QUOTIENT_MIN: f64 = 1.3;
/// Largest relative difference of a ceiling and the rate, upwards: the round trip may lie above its
/// shortest by as much as is near, and whole segments leave some of a window unused.
const CEILING_MAX: f64 = 1.05 * NEAR_QUOTIENT_MAX;
/// Share of the window in flight from which on it is full: whole segments leave up to a segment of
/// a small window unused, and each ACK opens it for a moment.
const FILLED_SHARE_MIN: f64 = 0.8;
/// Share of the time at the window that is asked for beside a full window, by one that does not pace:
/// pacing is tested before the window and hides it.
const WAITING_SHARE_MIN_FILLED: f64 = 0.1;
/// Largest window without scaling (RFC 9293).
pub(super) const UNSCALED_WINDOW_MAX: f64 = 65_535.0;
/// Bytes of buffer below which it is nearly always full on a fast path, however prompt the reader is.
const READER_BUFFER_MIN: f64 = 32_768.0;
/// What of a send buffer is in flight when it holds: SO_SNDBUF counts memory; the kernel doubles it.
const SEND_BUFFER_FLIGHT: std::ops::RangeInclusive<f64> = 0.8..=2.3;
/// Losses of a trial that are more than chance; ten over all trials.
const LOSSES_MIN: f64 = 3.0;
/// Drops of a trial that are worth a word, and of the segments sent.
const DROPS_MIN: f64 = 10.0;
const DROPS_SHARE_MIN: f64 = 1e-4;
/// Rate over what loss allows up to which it is the loss: the formula is within a factor of two.
const MATHIS_CONSTANT: f64 = 1.22;
const MODEL_QUOTIENT_MAX: f64 = 3.0;
/// Unknown share of the time up to which there is a verdict.
const UNKNOWN_SHARE_MAX: f64 = 0.2;
/// Share from which on a limiter is worth a word beside the first.
const BESIDE_SHARE_MIN: f64 = 0.1;

/// What all trials of a cell have in common.
struct Setup {
    flows: f64,
    /// The shortest round trip that was ever seen on the path.
    shortest_ns: Option<f64>,
    /// The senders' congestion control paces.
    paces: bool,
    /// A receive buffer was set.
    buffer_is_set: bool,
    /// What the send buffer may hold, by what was set or the host's limit.
    send_buffer: Option<f64>,
}

impl Setup {
    fn of(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Self {
        let asked = cell.workload.options.socket_buffer;
        Self {
            flows: cell.workload.flows().len() as f64,
            shortest_ns: shortest_ns(dataset, cell),
            paces: pacing_algorithm(dataset, cell).is_some(),
            buffer_is_set: asked.is_some(),
            send_buffer: asked
                .map(|bytes| bytes.0 as f64)
                .or_else(|| auto_buffer(dataset, "tcp_wmem").map(|bytes| bytes / 2.0)),
        }
    }
}

/// Returns the shortest round trip that any trial over the same links saw.
pub(super) fn shortest_ns(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<f64> {
    let same = |other: &&CellOutcomes<'_>| {
        other.workload.link_loss_ppm == cell.workload.link_loss_ppm
            && other.workload.manner.transport == Transport::Tcp
    };
    let cells = dataset.cells.iter().filter(same);
    let trials = cells.flat_map(|cell| cell.valid.iter().chain(&cell.invalid));
    trials
        .filter_map(|outcome| outcome.value(name::TCP_MIN_RTT))
        .min_by(f64::total_cmp)
}

/// Returns the least of the hosts' limits up to which buffers grow by themselves, in bytes.
pub(super) fn auto_buffer(dataset: &Dataset<'_>, sysctl: &str) -> Option<f64> {
    let most = |host: &HostRecord| {
        let fact = format!("sysctl.net.ipv4.{sysctl}");
        let three = host.snapshot.text(&fact)?;
        three.split_whitespace().nth(2)?.parse::<f64>().ok()
    };
    let hosts = &dataset.recording.document.hosts;
    hosts.iter().filter_map(most).min_by(f64::total_cmp)
}

/// One trial as the rules read it.
struct Trial<'o> {
    outcome: &'o Outcome,
    setup: &'o Setup,
}

impl Trial<'_> {
    fn value(&self, name: &str) -> Option<f64> {
        self.outcome.value(name)
    }

    fn share(&self, name: &str) -> f64 {
        self.value(name).unwrap_or(0.0).clamp(0.0, 1.0)
    }

    fn rate(&self) -> Option<f64> {
        self.value(name::THROUGHPUT).filter(|rate| *rate > 0.0)
    }

    /// Rate that `bytes` of each flow per shortest round trip make, over the rate that there is.
    fn ceiling(&self, bytes: f64) -> Option<f64> {
        let shortest_ns = self.setup.shortest_ns?;
        Some(self.setup.flows * bytes * 8e9 / shortest_ns / self.rate()?)
    }

    fn is_long(&self) -> bool {
        self.setup.shortest_ns.is_some_and(|ns| ns >= LONG_NS_MIN)
    }

    /// Extra waiting.
    fn delay_ns(&self) -> Option<f64> {
        Some(self.value(name::TCP_RTT)? - self.setup.shortest_ns?)
    }

    fn is_near(&self) -> bool {
        let Some((rtt, shortest)) = self.value(name::TCP_RTT).zip(self.setup.shortest_ns) else {
            return false;
        };
        match shortest < RATIO_NS_MIN {
            true => rtt - shortest < QUEUE_NS_STEADY_MIN,
            false => {
                rtt <= NEAR_QUOTIENT_MAX * shortest || rtt - shortest < QUEUE_NS_STEADY_MIN / 2.0
            }
        }
    }

    fn is_steady(&self) -> bool {
        let varies = self.value(name::RATE_VARIATION);
        let wanted = self.value(name::WORKER_WANTED_SHARE_MAX);
        varies.is_some_and(|share| share <= VARIATION_STEADY_MAX)
            && wanted.is_none_or(|share| share <= WANTED_REST_MAX)
    }

    /// Data waits in a queue on the way for most of the time.
    fn is_queued(&self) -> bool {
        let delay_ns = self.delay_ns().unwrap_or(0.0);
        let enough =
            delay_ns >= QUEUE_NS_MIN || (delay_ns >= QUEUE_NS_STEADY_MIN && self.is_steady());
        enough && !self.is_near() && self.value(name::QUEUED).is_some_and(|share| share >= MOST)
    }

    /// An end of a single flow pauses; of several, each has bursts of its own.
    fn pauses(&self) -> bool {
        let quotient = self
            .value(name::DELIVERY_RATE)
            .zip(self.rate())
            .map(|(delivered, rate)| delivered / rate);
        self.setup.flows == 1.0 && quotient.is_some_and(|quotient| quotient > PAUSE_QUOTIENT_MIN)
    }

    fn window_is_full(&self) -> bool {
        let waiting = self.share(name::RWND_LIMITED);
        let filled = self.share(name::WINDOW_FILLED) >= FILLED_SHARE_MIN;
        waiting >= MOST || (filled && (self.setup.paces || waiting >= WAITING_SHARE_MIN_FILLED))
    }

    fn reader_is_behind(&self) -> bool {
        let unread = self.share(name::UNREAD_SHARE) >= MOST;
        let enough = self
            .value(name::UNREAD)
            .is_some_and(|bytes| bytes >= READER_BUFFER_MIN);
        let is_long = self.setup.shortest_ns.is_some_and(|ns| ns >= RATIO_NS_MIN);
        unread && (enough || is_long) && self.window_is_full()
    }

    fn window_fits(&self) -> bool {
        let Some(window) = self
            .value(name::SEND_WINDOW)
            .filter(|_| self.window_is_full())
        else {
            return false;
        };
        if self.share(name::UNREAD_SHARE) >= MOST && self.is_long() {
            return false;
        }
        if self.is_long() {
            let within = |ceiling: f64| (1.0 / NEAR_QUOTIENT_MAX..=CEILING_MAX).contains(&ceiling);
            return self.is_near() && self.ceiling(window).is_some_and(within);
        }
        let is_small = self.setup.buffer_is_set || window <= UNSCALED_WINDOW_MAX;
        is_small && self.share(name::RWND_LIMITED) >= MOST && !self.is_queued()
    }

    fn buffer_fits(&self) -> bool {
        if self.is_queued() || self.window_fits() {
            return false;
        }
        let is_near = !self.is_long() || self.is_near();
        (is_near && self.share(name::SNDBUF_LIMITED) >= MOST) || self.buffer_is_in_flight()
    }

    /// What the send buffer holds is what is in flight, and less than either window.
    fn buffer_is_in_flight(&self) -> bool {
        let known = || {
            let flight = self.value(name::IN_FLIGHT)?;
            let unsent = self.value(name::UNSENT)?;
            let congestion = self.value(name::CWND)? * self.value(name::SEND_MSS)?;
            let window = self.value(name::SEND_WINDOW)?;
            let least = congestion.min(window);
            Some((flight, unsent, least, self.setup.send_buffer?))
        };
        let Some((flight, unsent, least, buffer)) = known() else {
            return false;
        };
        self.is_long()
            && self.is_near()
            && self.busy() >= 0.9
            && unsent <= 0.1 * flight
            && flight <= FILLED_SHARE_MIN * least
            && SEND_BUFFER_FLIGHT.contains(&(flight / buffer))
    }

    fn busy(&self) -> f64 {
        let held = self.share(name::RWND_LIMITED) + self.share(name::SNDBUF_LIMITED);
        let busy = self
            .value(name::BUSY)
            .map_or(1.0, |busy| busy.clamp(0.0, 1.0));
        busy.max(held.min(1.0))
    }

    /// Segments that were lost: sent again, less those that had arrived.
    fn losses(&self) -> f64 {
        let again = self.value(name::RETRANSMITTED).unwrap_or(0.0);
        (again - self.value(name::SPURIOUS).unwrap_or(0.0)).max(0.0)
    }

    /// Share of the segments that were lost.
    fn loss_share(&self) -> f64 {
        let again = self.value(name::RETRANSMITTED).filter(|again| *again > 0.0);
        let share = self.share(name::RETRANSMITTED_SHARE);
        again.map_or(0.0, |again| share * self.losses() / again)
    }

    fn drops(&self) -> bool {
        let segments = match self.share(name::RETRANSMITTED_SHARE) {
            share if share > 0.0 => self.value(name::RETRANSMITTED).unwrap_or(0.0) / share,
            _ => 0.0,
        };
        let many = |drops: f64| drops >= DROPS_MIN && drops >= DROPS_SHARE_MIN * segments;
        let of = |name| self.value(name).unwrap_or(0.0);
        // What the own queueing discipline drops was never counted as sent, nor as sent again.
        let inside = of(name::DROPPED_DEVICE) + of(name::DROPPED_BACKLOG);
        many(of(name::DROPPED_QDISC))
            || (many(inside) && self.losses() >= DROPS_MIN && 2.0 * inside >= self.losses())
    }

    fn is_paused_by_writer(&self) -> bool {
        let mss = self.value(name::SEND_MSS).unwrap_or(0.0);
        let nothing_unsent = self.value(name::UNSENT).is_some_and(|bytes| bytes <= mss);
        let rests = self
            .value(name::WORKER_WANTED_SHARE_MAX)
            .is_none_or(|wanted| wanted < MOST);
        1.0 - self.busy() >= 0.3 && nothing_unsent && rests && self.pauses()
    }

    fn loss_fits(&self) -> bool {
        // What is near by being short may be a shallow queue that overflows.
        let quotient = self.value(name::TCP_RTT).zip(self.setup.shortest_ns);
        let is_ratio_near = quotient.is_none_or(|(rtt, shortest)| {
            shortest < RATIO_NS_MIN || rtt <= NEAR_QUOTIENT_MAX * shortest
        });
        let is_near = self.is_near() && is_ratio_near;
        if self.setup.paces || !is_near || self.losses() < LOSSES_MIN {
            return false;
        }
        let Some((cwnd, mss)) = self.value(name::CWND).zip(self.value(name::SEND_MSS)) else {
            return false;
        };
        let share = self.loss_share();
        let by_model = self.ceiling(MATHIS_CONSTANT / share.sqrt() * mss);
        let roomy = self.ceiling(cwnd * mss);
        roomy.is_some_and(|ceiling| ceiling <= 2.0)
            && by_model.is_some_and(|ceiling| ceiling <= MODEL_QUOTIENT_MAX)
    }

    fn is_full_of_its_own(&self) -> bool {
        let full = || {
            let congestion = self.value(name::CWND)? * self.value(name::SEND_MSS)?;
            let flight = self.value(name::IN_FLIGHT)?;
            let ceiling = self.ceiling(congestion)?;
            Some(flight >= FILLED_SHARE_MIN * congestion && ceiling <= CEILING_MAX)
        };
        self.is_long()
            && self.is_near()
            && !self.setup.paces
            && self.busy() >= 0.9
            && full() == Some(true)
    }

    /// The cause that fits this trial.
    fn cause(&self) -> Option<Limiter> {
        let rules: [(Limiter, bool); 9] = [
            (Limiter::SlowReader, self.reader_is_behind()),
            (Limiter::ReceiverWindow, self.window_fits()),
            (Limiter::SendBuffer, self.buffer_fits()),
            (Limiter::HostDrops, !self.is_queued() && self.drops()),
            (Limiter::PathRate, self.is_queued() && !self.pauses()),
            (Limiter::Application, self.is_paused_by_writer()),
            (Limiter::CongestionWindow, self.loss_fits()),
            (
                Limiter::Pacing,
                self.setup.paces && !self.is_queued() && pacing::fits(self.outcome),
            ),
            (Limiter::CongestionWindow, self.is_full_of_its_own()),
        ];
        let first = rules.into_iter().find(|(_, fits)| *fits)?;
        Some(first.0)
    }

    /// The time by limiter; what is missing to 1 is unknown.
    fn shares(&self) -> Vec<(Limiter, f64)> {
        if self.rate().is_none() {
            return Vec::new();
        }
        let cause = self.cause();
        let at_window = self.share(name::RWND_LIMITED);
        let at_buffer = self.share(name::SNDBUF_LIMITED).min(1.0 - at_window);
        let rest = (self.busy() - at_window - at_buffer).max(0.0);
        let idle = 1.0 - at_window - at_buffer - rest;
        let of_window = match cause {
            Some(Limiter::SlowReader | Limiter::ReceiverWindow | Limiter::PathRate) => cause,
            _ => None,
        };
        let of_buffer = match cause {
            Some(Limiter::PathRate) => cause,
            _ => Some(Limiter::SendBuffer).filter(|_| !self.is_queued()),
        };
        let of_idle = cause.filter(|cause| *cause == Limiter::Application);
        let parts = [
            (of_window, at_window),
            (of_buffer, at_buffer),
            (cause, rest),
            (of_idle, idle),
        ];
        parts
            .into_iter()
            .filter_map(|(limiter, share)| Some((limiter?, share)))
            .collect()
    }
}

/// The shares of each valid trial, in their order; absent where the traffic is no stream over TCP.
fn by_trial(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Vec<Vec<(Limiter, f64)>>> {
    let is_stream = matches!(cell.workload.traffic, Traffic::Stream { .. });
    if !is_stream || cell.workload.manner.transport != Transport::Tcp {
        return None;
    }
    let setup = &Setup::of(dataset, cell);
    let trials = cell.valid.iter().map(|outcome| Trial { outcome, setup });
    Some(trials.map(|trial| trial.shares()).collect())
}

/// What held the streams of `cell`, as shares of the time over all trials, the largest first; what is
/// missing to 1 is unknown.
fn limiters_of(
    cell: &CellOutcomes<'_>,
    trials: &[Vec<(Limiter, f64)>],
) -> Vec<(Limiter, Estimate)> {
    let named: BTreeSet<Limiter> = trials
        .iter()
        .flatten()
        .map(|(limiter, _)| *limiter)
        .collect();
    let share = |limiter: Limiter| {
        let at = |outcome: &Outcome| {
            let of_trial = cell
                .valid
                .iter()
                .position(|valid| valid.trial == outcome.trial)?;
            Some(share_in(&trials[of_trial], limiter))
        };
        let estimate = cell.derived(Unit::Ratio, at)?;
        Some((
            limiter,
            estimate.map(Unit::Ratio, |share| share.clamp(0.0, 1.0)),
        ))
    };
    let mut shares: Vec<(Limiter, Estimate)> = named.into_iter().filter_map(share).collect();
    shares.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    shares
}

fn share_in(trial: &[(Limiter, f64)], limiter: Limiter) -> f64 {
    let of_limiter = trial.iter().filter(|(other, _)| *other == limiter);
    of_limiter.map(|(_, share)| share).sum()
}

/// Returns the limiter with the largest share, if most trials agree and little is unknown.
pub(super) fn verdict(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let trials = by_trial(dataset, cell)?;
    let shares = limiters_of(cell, &trials);
    let (first, _) = *shares.first()?;
    let known: f64 = shares.iter().map(|(_, share)| share.value).sum();
    let is_first = |trial: &&Vec<(Limiter, f64)>| {
        let share = share_in(trial, first);
        share > 0.0
            && trial
                .iter()
                .all(|(other, _)| share_in(trial, *other) <= share)
    };
    let agree = trials.iter().filter(is_first).count();
    if 1.0 - known > UNKNOWN_SHARE_MAX || 2 * agree <= trials.len() {
        return None;
    }
    let told = match first {
        Limiter::PathRate => path_rate::tell(dataset, cell),
        Limiter::ReceiverWindow => receiver_window::tell(dataset, cell),
        Limiter::SendBuffer => send_buffer::tell(dataset, cell),
        Limiter::CongestionWindow => congestion_window::tell(dataset, cell),
        Limiter::SlowReader => slow_reader::tell(cell),
        Limiter::HostDrops => host_drops::tell(cell),
        Limiter::Pacing => pacing::tell(dataset, cell),
        Limiter::Application => application::tell(cell),
        _ => None,
    }?;
    Some(beside(told, cell, &shares))
}

/// Adds the shares of the time to what is told.
fn beside(
    mut verdict: Verdict,
    cell: &CellOutcomes<'_>,
    shares: &[(Limiter, Estimate)],
) -> Verdict {
    let worth = |share: &&(Limiter, Estimate)| share.1.value >= BESIDE_SHARE_MIN;
    let others: Vec<String> = shares
        .iter()
        .skip(1)
        .filter(worth)
        .map(|(limiter, share)| {
            format!(
                "{} {}",
                limiter_title(*limiter),
                words::percent(share.value)
            )
        })
        .collect();
    if let (false, Some((_, share))) = (others.is_empty(), shares.first()) {
        verdict.explanation += &format!(
            " It held {} of the time, {}.",
            words::percent(share.value),
            words::list(&others)
        );
    }
    let evidence = shares
        .iter()
        .filter(worth)
        .map(|(limiter, share)| Evidence {
            what: format!(
                "share of the time whose cause is {}",
                limiter_title(*limiter)
            ),
            estimate: *share,
            trials: cell.trials(),
        });
    verdict.evidence = verdict.evidence.with(evidence);
    verdict
}
