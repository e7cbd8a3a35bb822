//! Many samples in little memory.
//!
//! A trial of 10 000 flows gives a million samples and more. As `TrialSample`s they take 72 bytes
//! each; here 3 to 5, since a series says once what it is about, and most instants and values are
//! short numbers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::id::{HostName, TrialId};
use crate::metric::Metric;
use crate::packed::{fold, put, take, unfold};
use crate::sample::{Subject, TrialSample};

/// Instant relative to the begin of the window in nanoseconds, and value.
pub type Reading = (i64, i64);

/// Returns the first reading at or after `begin_ns`, and at or after `end_ns` or else the last.
pub fn edges(readings: &[Reading], begin_ns: i64, end_ns: i64) -> Option<(Reading, Reading)> {
    let first = *readings.iter().find(|reading| reading.0 >= begin_ns)?;
    let at_end = readings.iter().find(|reading| reading.0 >= end_ns);
    let last = *at_end.or(readings.last())?;
    (last.0 >= first.0).then_some((first, last))
}

/// Samples by trial, host and subject.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    subjects: BTreeMap<Key, Packed>,
    count: usize,
}

type Key = (TrialId, HostName, Subject);

/// The readings of one subject, in the order in which they were added.
///
/// Each is three numbers of 7 bits a byte: the metric's place in the catalogue, doubled, plus one
/// where the instant is that of the reading before; else the instant's distance from it; the value.
/// Signed numbers are folded so that small ones are short (zigzag, as in Protocol Buffers).
#[derive(Debug, Clone, Default)]
struct Packed {
    bytes: Vec<u8>,
    last_ns: i64,
}

impl Packed {
    fn push(&mut self, metric: Metric, at_ns: i64, value: i64) {
        let same = !self.bytes.is_empty() && at_ns == self.last_ns;
        put(&mut self.bytes, (metric as u64) << 1 | u64::from(same));
        if !same {
            put(&mut self.bytes, fold(at_ns.wrapping_sub(self.last_ns)));
            self.last_ns = at_ns;
        }
        put(&mut self.bytes, fold(value));
    }

    /// Returns the readings in the order in which they were added.
    fn readings(&self) -> impl Iterator<Item = (Metric, Reading)> {
        let (mut rest, mut at_ns) = (self.bytes.as_slice(), 0_i64);
        std::iter::from_fn(move || {
            let head = take(&mut rest)?;
            if head & 1 == 0 {
                at_ns = at_ns.wrapping_add(unfold(take(&mut rest)?));
            }
            let metric = Metric::ALL.get((head >> 1) as usize)?;
            Some((*metric, (at_ns, unfold(take(&mut rest)?))))
        })
    }

    /// Returns the readings by metric and instant.
    ///
    /// Those of a metric come in order of time but for merges, so they are dealt to their metrics
    /// and sorted only where they do not: a tenth of the time of sorting them all. Most subjects
    /// have a few metrics, which are neighbours in the catalogue.
    fn sorted(&self) -> Vec<(Metric, Reading)> {
        let all: Vec<_> = self.readings().collect();
        let metrics = || all.iter().map(|(metric, _)| *metric as usize);
        let (first, last) = metrics().fold((usize::MAX, 0), |(first, last), metric| {
            (first.min(metric), last.max(metric))
        });
        let mut places = vec![0; (last + 2).saturating_sub(first)];
        for metric in metrics() {
            places[metric - first + 1] += 1;
        }
        for metric in 1..places.len() {
            places[metric] += places[metric - 1];
        }
        let mut sorted = all.clone();
        for one in all {
            let place = &mut places[one.0 as usize - first];
            sorted[*place] = one;
            *place += 1;
        }
        for series in sorted.chunk_by_mut(|(one, _), (next, _)| one == next) {
            if !series.is_sorted_by_key(|(_, reading)| reading.0) {
                series.sort_by_key(|(_, reading)| reading.0);
            }
        }
        sorted
    }
}

impl Samples {
    /// Adds a sample.
    pub fn push(&mut self, sample: TrialSample) {
        let key = (sample.trial, sample.host, sample.subject);
        let packed = self.subjects.entry(key).or_default();
        packed.push(sample.metric, sample.at_ns, sample.value);
        self.count += 1;
    }

    /// Adds all of `other`, subject by subject.
    pub fn append(&mut self, other: Self) {
        self.count += other.count;
        for (key, more) in other.subjects {
            let packed = match self.subjects.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(more);
                    continue;
                }
                Entry::Occupied(packed) => packed.into_mut(),
            };
            for (metric, (at_ns, value)) in more.readings() {
                packed.push(metric, at_ns, value);
            }
        }
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the samples sorted by trial, host, subject, metric and instant.
    pub fn iter(&self) -> impl Iterator<Item = TrialSample> {
        self.subjects.iter().flat_map(unpacked)
    }

    /// Returns those of flows and latencies in the same order: a few of the hundreds of metrics of a host.
    pub fn of_traffic(&self) -> impl Iterator<Item = TrialSample> {
        let is_traffic = |(key, _): &(&Key, &Packed)| is_traffic(&key.2);
        self.subjects.iter().filter(is_traffic).flat_map(unpacked)
    }

    /// Returns the trials they belong to; one may come several times.
    pub fn trials(&self) -> impl Iterator<Item = TrialId> {
        self.subjects.keys().map(|key| key.0)
    }

    /// Returns those of one trial in the same order.
    pub fn of_trial(&self, trial: TrialId) -> impl Iterator<Item = TrialSample> {
        self.range_of(trial).flat_map(unpacked)
    }

    /// Returns a copy of those of one trial.
    pub fn copied(&self, trial: TrialId) -> Self {
        let subjects = self.range_of(trial);
        let subjects = subjects.map(|(key, packed)| (key.clone(), packed.clone()));
        let subjects: BTreeMap<Key, Packed> = subjects.collect();
        Self {
            count: subjects
                .values()
                .map(|packed| packed.readings().count())
                .sum(),
            subjects,
        }
    }

    fn range_of(&self, trial: TrialId) -> impl Iterator<Item = (&Key, &Packed)> {
        // No host has an empty name, and no subject comes before `Host`.
        let first = (trial, HostName::from(""), Subject::Host);
        let from = self.subjects.range(first..);
        from.take_while(move |(key, _)| key.0 == trial)
    }

    /// Returns the instants of all samples of `host`, in no particular order.
    pub fn instants(&self, host: &HostName) -> impl Iterator<Item = i64> {
        let subjects = self.subjects.iter().filter(move |(key, _)| key.1 == *host);
        let readings = subjects.flat_map(|(_, packed)| packed.readings());
        readings.map(|(_, (at_ns, _))| at_ns)
    }

    /// Returns the metric of a subject that comes first in the catalogue.
    pub fn first_metric(
        &self,
        trial: TrialId,
        host: &HostName,
        subject: &Subject,
    ) -> Option<Metric> {
        let packed = self.subjects.get(&(trial, host.clone(), subject.clone()))?;
        packed.readings().map(|(metric, _)| metric).min()
    }

    /// Returns what samples of `trial` are about, and the hosts they were read on.
    pub fn subjects(&self, trial: TrialId) -> impl Iterator<Item = (&HostName, &Subject)> {
        self.range_of(trial)
            .map(|((_, host, subject), _)| (host, subject))
    }

    /// Returns the readings of one subject by metric and instant; absent if it was not read.
    pub fn readings(
        &self,
        trial: TrialId,
        host: &HostName,
        subject: &Subject,
    ) -> Option<Vec<(Metric, Reading)>> {
        let packed = self.subjects.get(&(trial, host.clone(), subject.clone()))?;
        Some(packed.sorted())
    }
}

/// Whether a subject is a part of the traffic rather than of the host.
fn is_traffic(subject: &Subject) -> bool {
    matches!(subject, Subject::Flow(..) | Subject::Latency(..))
}

fn unpacked<'a>(
    (key, packed): (&'a Key, &'a Packed),
) -> impl Iterator<Item = TrialSample> + use<'a> {
    let (trial, host, subject) = key;
    let sample = |(metric, (at_ns, value))| TrialSample {
        trial: *trial,
        host: host.clone(),
        subject: subject.clone(),
        metric,
        at_ns,
        value,
    };
    packed.sorted().into_iter().map(sample)
}

impl Extend<TrialSample> for Samples {
    fn extend<I: IntoIterator<Item = TrialSample>>(&mut self, samples: I) {
        samples.into_iter().for_each(|sample| self.push(sample));
    }
}

impl FromIterator<TrialSample> for Samples {
    fn from_iter<I: IntoIterator<Item = TrialSample>>(samples: I) -> Self {
        let mut all = Self::default();
        all.extend(samples);
        all
    }
}

impl PartialEq for Samples {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::FlowId;
    use crate::sample::End;

    fn sample() -> impl Strategy<Value = TrialSample> {
        let subject = prop_oneof![
            Just(Subject::Host),
            Just(Subject::Link("eth0".to_owned())),
            (0..3_u32).prop_map(|flow| Subject::Flow(FlowId(flow), End::Client)),
            Just(Subject::Latency(None, None)),
        ];
        let number = || prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), -200..200_i64];
        let metric = (0..Metric::ALL.len()).prop_map(|at| Metric::ALL[at]);
        let host = prop_oneof![Just("client1"), Just("server")];
        (0..3_u32, host, subject, metric, number(), number()).prop_map(
            |(trial, host, subject, metric, at_ns, value)| TrialSample {
                trial: TrialId(trial),
                host: host.into(),
                subject,
                metric,
                at_ns,
                value,
            },
        )
    }

    type Place = (TrialId, HostName, Subject, Metric, i64);

    fn place(sample: &TrialSample) -> Place {
        let (host, subject) = (sample.host.clone(), sample.subject.clone());
        (sample.trial, host, subject, sample.metric, sample.at_ns)
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_all_is_in_order(
            one in prop::collection::vec(sample(), 0..60),
            other in prop::collection::vec(sample(), 0..60),
        ) {
            let mut samples: Samples = one.iter().cloned().collect();
            samples.append(other.iter().cloned().collect());
            let mut expected: Vec<TrialSample> = one.into_iter().chain(other).collect();
            expected.sort_by_key(place);
            prop_assert_eq!(samples.len(), expected.len());
            prop_assert_eq!(samples.iter().collect::<Vec<_>>(), expected.clone());
            let of_traffic = |sample: &&TrialSample| is_traffic(&sample.subject);
            let traffic: Vec<_> = expected.iter().filter(of_traffic).cloned().collect();
            prop_assert_eq!(samples.of_traffic().collect::<Vec<_>>(), traffic);
            for wanted in &expected {
                let readings = samples.readings(wanted.trial, &wanted.host, &wanted.subject);
                let readings = readings.unwrap_or_default();
                prop_assert!(readings.contains(&(wanted.metric, (wanted.at_ns, wanted.value))));
                prop_assert!(readings.is_sorted_by_key(|(metric, reading)| (*metric, reading.0)));
                let mut subjects = samples.subjects(wanted.trial);
                prop_assert!(subjects.any(|has| has == (&wanted.host, &wanted.subject)));
            }
        }
    }

    #[test]
    fn a_sample_takes_a_few_bytes() {
        let mut samples = Samples::default();
        for (at, metric) in Metric::ALL.iter().enumerate() {
            samples.push(TrialSample {
                trial: TrialId(1),
                host: "server".into(),
                subject: Subject::Host,
                metric: *metric,
                at_ns: 1_000_000_000,
                value: 10_i64.pow(at as u32 % 8),
            });
        }
        let bytes: usize = samples.subjects.values().map(|all| all.bytes.len()).sum();
        assert!(bytes < 6 * samples.len(), "{bytes} for {}", samples.len());
    }
}
