//! First and last reading of each counter in the measured window.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::run::{HostRecord, Recording, TrialRecord};
use linerate_model::sample::{End, Subject};
use linerate_model::samples::{OfTrial, Reading, Samples, edges};
use linerate_model::{FlowId, HostName, TrialId};

/// What is counted of a flow in 64 bits from its begin on.
pub(super) const GROWING: [Metric; 7] = [
    Metric::AppBytesSent,
    Metric::AppBytesReceived,
    Metric::AppCalls,
    Metric::AppTransactions,
    Metric::AppMessages,
    Metric::AppDatagramsSent,
    Metric::AppDatagramsReceived,
];
/// The same of the one socket that a flow of TCP has; one of MPTCP may fall back to another's counts.
pub(super) const GROWING_OF_TCP: [Metric; 3] = [
    Metric::TcpBytesSent,
    Metric::TcpBytesAcked,
    Metric::TcpBytesReceived,
];
/// The end of a stream counts as a byte, which is taken off as soon as it is known of.
const STREAM_END_BYTES: i64 = 1;

/// How much a counter grew between its two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// End reading minus begin reading.
    pub(crate) amount: f64,
    /// Time between the two readings.
    pub(crate) seconds: f64,
}

impl Change {
    /// Returns the growth per second.
    pub(crate) fn rate(self) -> f64 {
        self.amount / self.seconds
    }

    /// Returns the growth of a clock in nanoseconds as a share of the time.
    pub(crate) fn share(self) -> f64 {
        self.rate() / 1e9
    }
}

/// The samples of one trial, for look-up.
///
/// The readings of a subject are unpacked when it is asked for, and kept: who reduces asks for one metric of all subjects
/// after the other, and there are hundreds.
pub(crate) struct Readings<'a> {
    samples: OfTrial<'a>,
    hosts: Vec<HostName>,
    /// What is known of the hosts that it is between, by their parts in it.
    records: Cow<'a, [HostRecord]>,
    window_ns: i64,
    /// The hosts on which each end of a flow was read, by their places in `hosts`.
    flows: OnceCell<HashMap<(FlowId, End), Vec<usize>>>,
    unpacked: RefCell<Unpacked>,
}

/// Readings that are kept unpacked, of 24 bytes: more than 5000 flows have with those of the hosts in a measurement of a
/// second. Where there are more, it begins anew.
const KEPT_READINGS: usize = 1 << 20;

/// The readings of subjects, by metric and instant.
#[derive(Default)]
struct Unpacked {
    of: HashMap<HostName, HashMap<Subject, Vec<(Metric, Reading)>>>,
    readings: usize,
}

impl<'a> Readings<'a> {
    /// Looks up those of `samples` that are of `trial`, whose window is `window_ns` long.
    pub(crate) fn new(samples: &'a Samples, trial: TrialId, window_ns: u64) -> Self {
        let samples = samples.trial(trial);
        let mut hosts: Vec<&HostName> = samples.subjects().map(|(host, _)| host).collect();
        hosts.dedup();
        let hosts = hosts.into_iter().cloned().collect();
        Self {
            samples,
            hosts,
            records: Cow::Borrowed(&[]),
            window_ns: i64::try_from(window_ns).unwrap_or(i64::MAX),
            flows: OnceCell::new(),
            unpacked: RefCell::default(),
        }
    }

    /// Looks up those of `recording` that are of one of its trials.
    pub(crate) fn of(recording: &'a Recording, record: &TrialRecord) -> Self {
        let document = &recording.document;
        Self {
            records: document.hosts_of(record.trial),
            ..Self::new(&recording.samples, record.trial, record.window_ns)
        }
    }

    /// Returns what is known of the hosts that the trial is between.
    pub(crate) fn host_records(&self) -> &[HostRecord] {
        &self.records
    }

    /// Returns the length of the measured window.
    pub(crate) fn window_ns(&self) -> i64 {
        self.window_ns
    }

    /// Returns the subjects that were read, with the hosts they were read on.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = (&Subject, &HostName)> {
        let subjects = self.samples.subjects();
        subjects.map(|(host, subject)| (subject, host))
    }

    /// Returns all readings of a metric of one end of a flow.
    pub(crate) fn flow(&self, flow: FlowId, end: End, metric: Metric) -> Option<Vec<Reading>> {
        let flows = self.flows.get_or_init(|| self.hosts_of_flows());
        let mut hosts = flows.get(&(flow, end))?.iter();
        hosts.find_map(|at| self.on(&self.hosts[*at], &Subject::Flow(flow, end), metric))
    }

    fn hosts_of_flows(&self) -> HashMap<(FlowId, End), Vec<usize>> {
        let mut flows: HashMap<_, Vec<usize>> = HashMap::new();
        for (subject, host) in self.subjects() {
            if let Subject::Flow(flow, end) = subject {
                let at = self.hosts.iter().position(|known| known == host);
                flows.entry((*flow, *end)).or_default().extend(at);
            }
        }
        flows
    }

    /// Returns all readings of what counts the payload that arrived at one end of a flow: of datagrams that
    /// of different ones. What a path makes two of was sent once, and a rate of both would be above what
    /// was sent. A duplicate counts as long as the mean of all that came, which is exact where all have one size.
    pub(crate) fn arrived(&self, flow: FlowId, end: End, metric: Metric) -> Option<Vec<Reading>> {
        let mut series = self.flow(flow, end, metric)?;
        if metric != Metric::AppBytesReceived {
            return Some(series);
        }
        let count = |metric| self.flow(flow, end, metric).unwrap_or_default();
        let all = count(Metric::AppDatagramsReceived);
        let again = count(Metric::AppDatagramsDuplicate);
        // One host reads all counters of a flow's end at one instant.
        for (payload, (all, again)) in series.iter_mut().zip(all.iter().zip(&again)) {
            if payload.0 == all.0 && all.0 == again.0 {
                payload.1 = different(payload.1, all.1, again.1);
            }
        }
        Some(series)
    }

    /// Returns all readings of a metric of a subject on `host`.
    pub(crate) fn on(
        &self,
        host: &HostName,
        subject: &Subject,
        metric: Metric,
    ) -> Option<Vec<Reading>> {
        let mut unpacked = self.unpacked.borrow_mut();
        if let Some(all) = unpacked.of.get(host).and_then(|of| of.get(subject)) {
            return of_metric(all, metric);
        }
        let all = self.samples.readings(host, subject)?;
        let series = of_metric(&all, metric);
        if unpacked.readings > KEPT_READINGS {
            *unpacked = Unpacked::default();
        }
        unpacked.readings += all.len();
        let of_host = unpacked.of.entry(host.clone()).or_default();
        of_host.insert(subject.clone(), all);
        series
    }

    /// Returns the growth of a counter over the measured window.
    ///
    /// Absent with fewer than two readings at or after the begin, and when the counter fell: it
    /// was started again.
    pub(crate) fn change(&self, series: &[Reading]) -> Option<Change> {
        let change = self.difference(series)?;
        (change.amount >= 0.0).then_some(change)
    }

    /// Returns how much a counter of `subject` on `host` grew over the window.
    pub(crate) fn change_on(
        &self,
        host: &HostName,
        subject: &Subject,
        metric: Metric,
    ) -> Option<Change> {
        self.change(&self.on(host, subject, metric)?)
    }

    /// Sums `of` what a counter of all subjects that are `wanted` grew; absent where none was read.
    pub(crate) fn sum(
        &self,
        metric: Metric,
        wanted: impl Fn(&Subject, &HostName) -> bool,
        of: fn(Change) -> f64,
    ) -> Option<f64> {
        let subjects = self.subjects().filter(|(subject, on)| wanted(subject, on));
        let changes = subjects.filter_map(|(subject, on)| self.change_on(on, subject, metric));
        changes.map(of).reduce(|sum, one| sum + one)
    }

    /// Returns the same of what may fall.
    pub(crate) fn difference(&self, series: &[Reading]) -> Option<Change> {
        let (begin, end) = self.edges(series)?;
        let amount = end.1.checked_sub(begin.1)?;
        Some(Change {
            amount: amount as f64,
            seconds: (end.0 - begin.0) as f64 / 1e9,
        })
    }

    /// Returns what counters that one host read together grew from reading to reading inside the window, all added,
    /// with the nanoseconds that each step took. Absent where one was not read, or not as often.
    pub(crate) fn steps(
        &self,
        counters: impl Iterator<Item = Option<Vec<Reading>>>,
    ) -> Option<Vec<(f64, f64)>> {
        let mut sums: Vec<(i64, f64)> = Vec::new();
        for series in counters {
            let series = series?;
            let last = series.partition_point(|reading| reading.0 < self.window_ns) + 1;
            let inside = series[..last.min(series.len())].iter();
            let inside: Vec<&Reading> = inside.filter(|reading| reading.0 >= 0).collect();
            if sums.is_empty() {
                sums = inside.iter().map(|reading| (reading.0, 0.0)).collect();
            }
            if inside.len() != sums.len() {
                return None;
            }
            for (sum, reading) in sums.iter_mut().zip(inside) {
                sum.1 += reading.1 as f64;
            }
        }
        let steps = sums.windows(2).filter(|pair| pair[1].0 > pair[0].0);
        let step = |pair: &[(i64, f64)]| ((pair[1].0 - pair[0].0) as f64, pair[1].1 - pair[0].1);
        Some(steps.map(step).collect())
    }

    /// Returns the values of a gauge inside the measured window.
    pub(crate) fn gauge<'s>(&self, series: &'s [Reading]) -> impl Iterator<Item = f64> + use<'s> {
        self.inside(series).iter().map(|reading| reading.1 as f64)
    }

    /// Returns the readings inside the measured window.
    pub(super) fn inside<'s>(&self, series: &'s [Reading]) -> &'s [Reading] {
        let begin = series.partition_point(|reading| reading.0 < 0);
        let end = series.partition_point(|reading| reading.0 < self.window_ns);
        // The reading that closes the window belongs to it.
        let end = (end + 1).min(series.len()).max(begin);
        &series[begin..end]
    }

    /// Returns the largest part of the window that any subject's readings span, or that the first spans
    /// which spans all.
    pub(crate) fn covered_share(&self) -> Option<f64> {
        let spans = self.subjects().filter_map(|(subject, host)| {
            let metric = self.samples.first_metric(host, subject)?;
            let (begin, end) = self.edges(&self.on(host, subject, metric)?)?;
            Some(end.0 - begin.0)
        });
        // One that spans all of it is the longest there need be.
        let mut longest = None;
        for span in spans {
            longest = longest.max(Some(span));
            if span >= self.window_ns {
                break;
            }
        }
        (self.window_ns > 0).then_some(longest? as f64 / self.window_ns as f64)
    }

    /// Returns the growth of a counter in each half of the window, as far as it was read near the
    /// middle: the halves meet at the reading that lies closest to it.
    pub(crate) fn halves(&self, series: &[Reading]) -> Option<[Change; 2]> {
        let (begin, end) = self.edges(series)?;
        // Damaged recordings have instants of any size.
        let length_ns = end.0.checked_sub(begin.0)?;
        let middle_ns = begin.0 + length_ns / 2;
        let inner = series.iter().filter(|one| begin.0 < one.0 && one.0 < end.0);
        let middle = *inner.min_by_key(|one| one.0.abs_diff(middle_ns))?;
        if middle.0.abs_diff(middle_ns) > length_ns.unsigned_abs() / 4 {
            return None;
        }
        let change = |from: Reading, to: Reading| {
            let amount = to.1.checked_sub(from.1).filter(|amount| *amount >= 0)?;
            Some(Change {
                amount: amount as f64,
                seconds: (to.0 - from.0) as f64 / 1e9,
            })
        };
        Some([change(begin, middle)?, change(middle, end)?])
    }

    /// Returns how many readings of a series lie in the window.
    pub(crate) fn count(&self, series: &[Reading]) -> usize {
        let begin = series.partition_point(|reading| reading.0 < 0);
        series.partition_point(|reading| reading.0 <= self.window_ns) - begin
    }

    /// Returns how many readings of all that was read on `host` lie in the window.
    pub(crate) fn count_of(&self, host: &HostName) -> usize {
        let subjects = self.samples.subjects();
        let own = subjects.filter(|(on, _)| *on == host);
        let is_inside =
            |(_, reading): &(Metric, Reading)| (0..=self.window_ns).contains(&reading.0);
        own.filter_map(|(_, subject)| self.samples.readings(host, subject))
            .map(|all| all.iter().filter(|one| is_inside(one)).count())
            .sum()
    }

    fn edges(&self, series: &[Reading]) -> Option<(Reading, Reading)> {
        edges(series, 0, self.window_ns).filter(|(begin, end)| end.0 > begin.0)
    }
}

/// Returns the readings of `metric`, if there are any, of a subject that has `all`.
fn of_metric(all: &[(Metric, Reading)], metric: Metric) -> Option<Vec<Reading>> {
    let begin = all.partition_point(|(other, _)| *other < metric);
    let end = begin + all[begin..].partition_point(|(other, _)| *other == metric);
    let series = all[begin..end].iter().map(|(_, reading)| *reading);
    (begin < end).then(|| series.collect())
}

/// Returns the part of `bytes` in `all` datagrams that is of different ones, where `again` of them were duplicates.
pub(crate) fn different(bytes: i64, all: i64, again: i64) -> i64 {
    if all <= 0 || again <= 0 {
        return bytes;
    }
    let left = i128::from(bytes) * i128::from((all - again).max(0)) / i128::from(all);
    i64::try_from(left).unwrap_or(bytes)
}

/// Returns whether a counter of a flow that only grows was read as `after` when it had been `before`.
pub(crate) fn has_fallen(metric: Metric, transport: Transport, before: i64, after: i64) -> bool {
    let grows = GROWING.contains(&metric)
        || transport == Transport::Tcp && GROWING_OF_TCP.contains(&metric);
    let room = match metric {
        Metric::TcpBytesReceived => STREAM_END_BYTES,
        _ => 0,
    };
    grows && after < before.saturating_sub(room)
}

/// Returns the mean of `values`.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Growth over the measured window.
pub(super) fn in_window(readings: &Readings<'_>, series: &[Reading]) -> Option<i64> {
    Some(readings.difference(series)?.amount as i64)
}

#[cfg(test)]
mod tests {
    use linerate_model::sample::TrialSample;

    use super::*;

    #[test]
    fn payload_of_duplicates_is_taken_off_as_datagrams_of_one_size() {
        assert_eq!(different(1448 * 150, 150, 50), 1448 * 100);
        assert_eq!(different(1448 * 150, 150, 0), 1448 * 150);
        assert_eq!(different(0, 0, 0), 0);
        assert_eq!(different(10, 3, 5), 0, "damaged counts");
        assert_eq!(different(i64::MAX, 2, 1), i64::MAX / 2);
    }

    fn change(window_ns: u64, readings: &[Reading]) -> Option<(f64, f64)> {
        let samples: Samples = readings
            .iter()
            .map(|&(at_ns, value)| TrialSample {
                trial: TrialId(1),
                host: "server".into(),
                subject: Subject::Host,
                metric: Metric::CpuUser,
                at_ns,
                value,
            })
            .collect();
        let readings = Readings::new(&samples, TrialId(1), window_ns);
        let series = readings.on(&"server".into(), &Subject::Host, Metric::CpuUser)?;
        readings
            .change(&series)
            .map(|change| (change.amount, change.seconds))
    }

    #[test]
    fn counters_are_cut_at_the_window() {
        let second = 1_000_000_000;
        let check = |readings: &[Reading], expected: Option<(f64, f64)>| {
            assert_eq!(change(second as u64, readings), expected, "{readings:?}");
        };
        let whole = [
            (-second, 0),
            (5, 10),
            (second / 2, 15),
            (second + 5, 30),
            (2 * second, 99),
        ];
        check(&whole, Some((20.0, 1.0)));
        // Without a reading at the end the last one closes the window.
        check(&[(0, 10), (second / 2, 15)], Some((5.0, 0.5)));
        // Out of order, as after a merge.
        check(&[(second, 30), (0, 10)], Some((20.0, 1.0)));
        check(&[(0, 10)], None);
        check(&[(-5, 10), (-1, 20)], None);
        check(&[(0, 10), (second, 3)], None);
        check(&[], None);
    }

    #[test]
    fn gauges_are_cut_at_the_window() {
        let none = Samples::default();
        let readings = Readings::new(&none, TrialId(1), 100);
        let values = |series: &[Reading]| readings.gauge(series).collect::<Vec<_>>();
        assert_eq!(
            values(&[(-1, 1), (0, 2), (50, 3), (101, 4), (200, 5)]),
            [2.0, 3.0, 4.0]
        );
        assert_eq!(values(&[(-1, 1)]), [0.0; 0]);
    }
}
