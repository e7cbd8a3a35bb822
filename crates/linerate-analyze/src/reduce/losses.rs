//! How losses lie in time: independent of each other, in bursts, or as regular as a sawtooth.
//!
//! A wire that damages frames takes each with the same probability. A policer, or a queue too short for what
//! comes at once, takes many in a row, or one whenever the rate has grown back: both are told from the
//! retransmissions between two readings, held against the segments sent between them.
//!
//! - *dispersion* = mean over the intervals of (k − λ)² / λ, k losses where λ were expected had all segments
//!   the same probability (Fisher's index of dispersion, 1925). It is 1 for independent losses, with a
//!   standard deviation of √(2/intervals + 1/losses); of a few more where each takes others with it, and
//!   less where they are regular;
//! - *variation of the gaps* = standard deviation over mean of the segments sent from loss to loss, those
//!   of one interval spread evenly over it. It is about 0.9 for independent losses and 0.2 to 0.4 for a
//!   sawtooth. Several flows, or several losses in each interval, hide a sawtooth: then it is absent.
//!
//! What D-SACK reports as needless is taken off where it is reported.
//!
//! A receiver of datagrams knows from their numbers how many are missing at each reading. Where each has the
//! probability p to be lost, the number that is lost of n has the variance n p (1 − p). A path that passes a rate
//! makes it smaller in one of two ways, and the dispersion of datagrams is the smaller one:
//!
//! - *of those sent* as many are lost as before, whenever the readings were: a sender that is even;
//! - *of the time* as many arrive as before, whatever was sent. A machine that pauses, or a queue that empties once,
//!   makes a few readings differ: the tenth that differs most is left out, and what is left of the variance of
//!   independent losses is 1 again. A queue that fills first loses nothing meanwhile, and as many arrive: where none are
//!   lost for long, only this counts.
//!
//! 13 recordings of independent losses had 0.5 to 1.5, slower links, shapers and policers 0.000 to 0.04, on a machine
//! that other programs kept busy up to 0.2, and where others shared the path 0.2 to 0.3; bursts had 2 and more,
//! receive buffers 11 and more.

use linerate_model::metric::Metric;
use linerate_model::samples::Reading;

use super::window::mean;
use crate::compare::interval::deviation;

/// Fewest losses of a trial that say how they lie: with ten, 2 % of independent ones have gaps that vary
/// by less than 0.53.
const LOSSES_MIN: f64 = 10.0;
/// Fewest intervals that dispersion is of, less one.
const FREE_MIN: f64 = 9.0;
/// Losses of an interval, on average, beyond which they cannot be told apart.
const APART_MAX: f64 = 1.0;
/// The same for dispersion. It grows with them where a busy host retransmits late: 23 was seen of 42
/// independent losses in each interval, 1.0 of four.
const COUNTED_MAX: f64 = 5.0;

/// Part of the readings that is left out of what arrives in time.
const LEFT_OUT: f64 = 0.1;
/// What is left of the variance of independent losses without the tenth that differs most: 0.63 to 0.69 of ten to a
/// hundred readings, in 20 000 drawn sets of each.
const LEFT_VARIANCE: f64 = 0.66;

/// Dispersion up to which what is lost of datagrams is even: independent losses are below it in one of 3000 sets of thirty
/// readings.
pub(crate) const EVEN_DISPERSION_MAX: f64 = 0.3;
/// Losses to be expected of readings in a row that have none, from which on chance did not leave them out: it does so in
/// one of 20 000.
const PAUSE_LOSSES_MIN: f64 = 10.0;

/// What a receiver of datagrams saw between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) ns: f64,
    pub(super) arrived: f64,
    pub(super) lost: f64,
}

/// Segments lost and sent between two readings of one flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    lost: f64,
    sent: f64,
}

/// Returns the intervals inside the window; none where the counters were not read together.
pub(super) fn intervals(
    window_ns: i64,
    series: impl Fn(Metric) -> Option<Vec<Reading>>,
) -> Option<Vec<Interval>> {
    let again = series(Metric::TcpRetrans)?;
    let sent = series(Metric::TcpDataSegsOut)?;
    let needless = series(Metric::TcpDsackDups).filter(|needless| needless.len() == again.len());
    if sent.len() != again.len() {
        return None;
    }
    // Counters of a damaged recording may hold anything.
    let grown = |series: &[Reading], at: usize| series[at + 1].1 as f64 - series[at].1 as f64;
    let step = |at: usize| {
        let needless = needless.as_ref().map_or(0.0, |all| grown(all, at));
        Interval {
            lost: (grown(&again, at) - needless).max(0.0),
            sent: grown(&sent, at).max(0.0),
        }
    };
    let is_inside = |at: &usize| again[*at].0 >= 0 && again[*at].0 < window_ns;
    let steps = 0..again.len().saturating_sub(1);
    Some(steps.filter(is_inside).map(step).collect())
}

/// Returns the dispersion over all flows; absent where too few segments were lost, or too many.
pub(super) fn dispersion(flows: &[Vec<Interval>]) -> Option<f64> {
    let (mut squares, mut free, mut lost) = (0.0, 0.0, 0.0);
    for flow in flows {
        let total = sum(flow);
        let share = total.lost / total.sent.max(1.0);
        let sent = flow.iter().filter(|interval| interval.sent > 0.0);
        let each = sent.map(|interval| {
            let expected = share * interval.sent;
            (interval.lost - expected).powi(2) / expected
        });
        if total.lost > 0.0 {
            squares += each.clone().sum::<f64>();
            free += each.count() as f64 - 1.0;
        }
        lost += total.lost;
    }
    let known = lost >= LOSSES_MIN && free >= FREE_MIN && lost <= COUNTED_MAX * free;
    known.then(|| squares / free)
}

/// Returns the dispersion of losses from flow to flow, 1 if each of their segments is lost with the same probability; absent
/// where too few segments were lost, or there is one flow.
pub(super) fn flow_dispersion(flows: &[Vec<Interval>]) -> Option<f64> {
    let totals: Vec<Interval> = flows.iter().map(|flow| sum(flow)).collect();
    let all = sum(&totals);
    let share = all.lost / all.sent.max(1.0);
    let sent = totals.iter().filter(|total| total.sent > 0.0);
    let squares = sent.clone().map(|total| {
        let expected = share * total.sent;
        (total.lost - expected).powi(2) / expected
    });
    let free = sent.count() as f64 - 1.0;
    (free >= 1.0 && all.lost >= LOSSES_MIN).then(|| squares.sum::<f64>() / free)
}

/// Returns the dispersion of the datagrams that are lost; absent where less than one is between two readings, for then
/// even losses differ as those by chance do, and where none are for long while what arrives is not even.
pub(super) fn datagram_dispersion(steps: &[Step]) -> Option<f64> {
    let (of_sent, of_time) = (of_sent(steps)?, of_time(steps)?);
    if pauses(steps) {
        Some(of_time).filter(|dispersion| *dispersion <= EVEN_DISPERSION_MAX)
    } else {
        Some(of_sent.min(of_time))
    }
}

/// Whether none are lost for so long as chance hardly leaves out.
fn pauses(steps: &[Step]) -> bool {
    let share = lost_share(steps).unwrap_or(0.0);
    let without = steps.chunk_by(|a, b| a.lost <= 0.0 && b.lost <= 0.0);
    let expected = without
        .filter(|run| run.iter().all(|step| step.lost <= 0.0))
        .map(|run| share * total(run, |step| step.arrived));
    expected.fold(0.0, f64::max) >= PAUSE_LOSSES_MIN
}

/// Returns the dispersion of the lost among those sent.
fn of_sent(steps: &[Step]) -> Option<f64> {
    let share = lost_share(steps)?;
    let square = |step: &Step| {
        let expected = share * (step.arrived + step.lost);
        (step.lost - expected).powi(2) / (expected * (1.0 - share))
    };
    let sent = steps.iter().filter(|step| step.arrived + step.lost > 0.0);
    Some(sent.map(square).sum::<f64>() / free(steps))
}

/// Returns the dispersion of those that arrive in time.
fn of_time(steps: &[Step]) -> Option<f64> {
    let arrivals_per_ns =
        |steps: &[Step]| total(steps, |step| step.arrived) / total(steps, |step| step.ns);
    let square = |rate: f64, step: &Step| {
        let expected = rate * step.ns;
        (step.arrived - expected).powi(2) / expected
    };
    let rate = arrivals_per_ns(steps);
    let mut kept = steps.to_vec();
    kept.sort_by(|a, b| square(rate, a).total_cmp(&square(rate, b)));
    kept.truncate(steps.len() - (LEFT_OUT * steps.len() as f64) as usize);
    let share = lost_share(&kept)?;
    let rate = arrivals_per_ns(&kept);
    let squares: f64 = kept.iter().map(|step| square(rate, step) / share).sum();
    Some(squares / free(&kept) / LEFT_VARIANCE)
}

/// Returns the share that is lost, where that is enough to know how they lie, and some arrive.
fn lost_share(steps: &[Step]) -> Option<f64> {
    let lost = total(steps, |step| step.lost);
    let arrived = total(steps, |step| step.arrived);
    let is_enough = steps.len() as f64 >= FREE_MIN && lost >= steps.len() as f64;
    (is_enough && arrived > 0.0).then(|| lost / (arrived + lost))
}

fn free(steps: &[Step]) -> f64 {
    steps.len() as f64 - 1.0
}

fn total(steps: &[Step], of: impl Fn(&Step) -> f64) -> f64 {
    steps.iter().map(of).sum()
}

/// Returns the variation of the gaps of one flow.
pub(super) fn gap_variation(flows: &[Vec<Interval>]) -> Option<f64> {
    let [flow] = flows else {
        return None;
    };
    let total = sum(flow);
    if total.lost < LOSSES_MIN || total.lost > APART_MAX * flow.len() as f64 {
        return None;
    }
    let mut losses: Vec<f64> = Vec::new();
    let mut before = 0.0;
    for interval in flow {
        let each = (0..interval.lost as u32).map(f64::from);
        losses.extend(each.map(|at| before + interval.sent * (at + 0.5) / interval.lost));
        before += interval.sent;
    }
    let gaps: Vec<f64> = losses.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = mean(gaps.iter().copied()).filter(|gap| *gap > 0.0)?;
    Some(deviation(&gaps) / middle)
}

fn sum(flow: &[Interval]) -> Interval {
    Interval {
        lost: flow.iter().map(|interval| interval.lost).sum(),
        sent: flow.iter().map(|interval| interval.sent).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::draw::Draw;

    fn flow(lost: impl IntoIterator<Item = u32>) -> Vec<Interval> {
        let interval = |lost| Interval {
            lost: f64::from(lost),
            sent: 300.0,
        };
        lost.into_iter().map(interval).collect()
    }

    #[test]
    fn independent_losses_bursts_and_a_sawtooth_are_three() {
        let mut draw = Draw::new(3);
        // Each of 30 000 segments with a probability of 0.1 %.
        let independent: Vec<u32> = (0..100)
            .map(|_| (0..300).filter(|_| draw.unit() < 0.001).count() as u32)
            .collect();
        let independent = [flow(independent)];
        let dispersion_of = dispersion(&independent).expect("losses enough");
        assert!((0.6..1.5).contains(&dispersion_of), "{dispersion_of}");
        let gaps = gap_variation(&independent).expect("losses enough");
        assert!((0.6..1.3).contains(&gaps), "{gaps}");
        // Eight at once, now and then.
        let bursts = [flow((0..100).map(|at| 8 * u32::from(at % 13 == 5)))];
        let dispersion_of = dispersion(&bursts).expect("losses enough");
        assert!(dispersion_of > 5.0, "{dispersion_of}");
        // One in each fourth interval.
        let regular = [flow((0..100).map(|at| u32::from(at % 4 == 0)))];
        let gaps = gap_variation(&regular).expect("losses enough");
        assert!(gaps < 0.1, "{gaps}");
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        let few = [flow((0..100).map(|at| u32::from(at % 12 == 0)))];
        assert_eq!(dispersion(&few), None);
        assert_eq!(gap_variation(&few), None);
        // Two in each interval, and two flows.
        assert_eq!(gap_variation(&[flow((0..100).map(|_| 2))]), None);
        let one = || flow((0..100).map(|at| u32::from(at % 4 == 0)));
        assert_eq!(gap_variation(&[one(), one()]), None);
        assert!(dispersion(&[one(), one()]).is_some());
        assert_eq!(dispersion(&[]), None);
        // So many that a late retransmission makes them vary.
        assert_eq!(dispersion(&[flow((0..100).map(|at| 84 * (at % 2)))]), None);
    }
}
