//! Many samples in little memory.
//!
//! A trial of 10 000 flows gives a million samples and more. As `TrialSample`s they take 72 bytes
//! each; here 3 to 5, since a series says once what it is about, and most instants and values are
//! short numbers.
//!
//! What many hosts tell in many trials has no room even so. It lies on a `Shelf`, a disk behind a narrow seam, and is
//! fetched a trial, or a host of a trial, at a time; whoever looks does not see where it was.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

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
    /// How many there are, wherever they are.
    count: usize,
    /// Where those are that are not here, in the order in which they were added, before what is here.
    shelved: BTreeMap<(TrialId, HostName), Vec<Page>>,
    shelved_count: usize,
}

type Key = (TrialId, HostName, Subject);

/// Where samples lie that memory has no room for, in pages.
pub trait Shelf: fmt::Debug + Send + Sync {
    /// Returns the samples of page `number`, as far as they can be read.
    fn page(&self, number: usize) -> Arc<Samples>;
}

/// A page of a shelf.
#[derive(Debug, Clone)]
struct Page {
    shelf: Arc<dyn Shelf>,
    number: usize,
    /// How many samples were on shelves before it: pages of several hosts are in the order of this.
    before: usize,
}

impl Page {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shelf, &other.shelf) && self.number == other.number
    }

    fn samples(&self) -> Arc<Samples> {
        self.shelf.page(self.number)
    }
}

/// The samples of one trial.
#[derive(Debug)]
pub struct OfTrial<'a> {
    trial: TrialId,
    samples: Held<'a>,
}

/// Samples that are in memory.
#[derive(Debug)]
enum Held<'a> {
    Here(&'a Samples),
    Fetched(Arc<Samples>),
}

impl OfTrial<'_> {
    fn samples(&self) -> &Samples {
        match &self.samples {
            Held::Here(samples) => samples,
            Held::Fetched(samples) => samples,
        }
    }

    /// Returns what they are about, and the hosts they were read on.
    pub fn subjects(&self) -> impl Iterator<Item = (&HostName, &Subject)> {
        let own = self.samples().range_of(self.trial);
        own.map(|((_, host, subject), _)| (host, subject))
    }

    /// Returns the metric of a subject that comes first in the catalogue.
    pub fn first_metric(&self, host: &HostName, subject: &Subject) -> Option<Metric> {
        let packed = self.packed(host, subject)?;
        packed.readings().map(|(metric, _)| metric).min()
    }

    /// Returns the readings of one subject by metric and instant; absent if it was not read.
    pub fn readings(&self, host: &HostName, subject: &Subject) -> Option<Vec<(Metric, Reading)>> {
        Some(self.packed(host, subject)?.sorted())
    }

    fn packed(&self, host: &HostName, subject: &Subject) -> Option<&Packed> {
        let key = (self.trial, host.clone(), subject.clone());
        self.samples().subjects.get(&key)
    }
}

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
        for (place, mut pages) in other.shelved {
            for page in &mut pages {
                page.before += self.shelved_count;
            }
            self.shelved.entry(place).or_default().extend(pages);
        }
        self.shelved_count += other.shelved_count;
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

    /// Adds `count` samples of these hosts in these trials that lie on page `number` of `shelf`.
    pub fn shelve(
        &mut self,
        shelf: &Arc<dyn Shelf>,
        number: usize,
        of: impl IntoIterator<Item = (TrialId, HostName)>,
        count: usize,
    ) {
        for place in of {
            let page = Page {
                shelf: Arc::clone(shelf),
                number,
                before: self.shelved_count,
            };
            self.shelved.entry(place).or_default().push(page);
        }
        self.count += count;
        self.shelved_count += count;
    }

    /// Lays down those that are in memory as page `number` of `shelf`, which has them.
    pub fn shelve_held(&mut self, shelf: &Arc<dyn Shelf>, number: usize) {
        let held = std::mem::take(&mut self.subjects);
        let of: BTreeSet<_> = held.into_keys().map(|key| (key.0, key.1)).collect();
        let count = self.held();
        self.count -= count;
        self.shelve(shelf, number, of, count);
    }

    /// Returns those that are in memory, as bytes for a [`Shelf`] of this program: no format that is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.held() as u64);
        for ((trial, host, subject), packed) in &self.subjects {
            put(&mut bytes, trial.0.into());
            put_part(&mut bytes, host.0.as_bytes());
            put_part(&mut bytes, subject.to_string().as_bytes());
            put(&mut bytes, fold(packed.last_ns));
            put_part(&mut bytes, &packed.bytes);
        }
        bytes
    }

    /// Returns what [`Self::to_bytes`] made these bytes of.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut all = Self {
            count: usize::try_from(take(&mut bytes)?).ok()?,
            ..Self::default()
        };
        while !bytes.is_empty() {
            let trial = TrialId(u32::try_from(take(&mut bytes)?).ok()?);
            let host = HostName::from(std::str::from_utf8(take_part(&mut bytes)?).ok()?);
            let subject = std::str::from_utf8(take_part(&mut bytes)?).ok()?;
            let subject = subject.parse().ok()?;
            let packed = Packed {
                last_ns: unfold(take(&mut bytes)?),
                bytes: take_part(&mut bytes)?.to_vec(),
            };
            all.subjects.insert((trial, host, subject), packed);
        }
        Some(all)
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns how many of them memory holds.
    pub fn held(&self) -> usize {
        self.count - self.shelved_count
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the samples sorted by trial, host, subject, metric and instant.
    pub fn iter(&self) -> impl Iterator<Item = TrialSample> {
        self.wanted(|_| true)
    }

    /// Returns those of flows and latencies in the same order: a few of the hundreds of metrics of a host.
    pub fn of_traffic(&self) -> impl Iterator<Item = TrialSample> {
        self.wanted(is_traffic)
    }

    fn wanted(&self, is_wanted: fn(&Subject) -> bool) -> impl Iterator<Item = TrialSample> {
        let here = self.shelved.is_empty().then_some(&self.subjects);
        let here = here.into_iter().flatten();
        let here = here.filter(move |(key, _)| is_wanted(&key.2));
        // A host at a time.
        let elsewhere = (!self.shelved.is_empty()).then(|| self.places());
        let fetched = elsewhere.into_iter().flatten().flat_map(|(trial, host)| {
            let own = self.fetched(trial, Some(&host));
            own.subjects.into_iter()
        });
        let fetched = fetched.filter(move |(key, _)| is_wanted(&key.2));
        let fetched = fetched.flat_map(|(key, packed)| unpacked((&key, &packed)));
        here.flat_map(unpacked).chain(fetched)
    }

    /// Returns the trials they belong to, and the hosts they were read on.
    pub fn places(&self) -> BTreeSet<(TrialId, HostName)> {
        let mut here: Vec<(TrialId, &HostName)> =
            self.subjects.keys().map(|key| (key.0, &key.1)).collect();
        here.dedup();
        let here = here.into_iter().map(|(trial, host)| (trial, host.clone()));
        here.chain(self.shelved.keys().cloned()).collect()
    }

    /// Returns the trials they belong to; one may come several times.
    pub fn trials(&self) -> impl Iterator<Item = TrialId> {
        let here = self.subjects.keys().map(|key| key.0);
        here.chain(self.shelved.keys().map(|place| place.0))
    }

    /// Returns those of one trial, to look them up.
    pub fn trial(&self, trial: TrialId) -> OfTrial<'_> {
        let mut pages = self.pages(trial, None).into_iter();
        let is_here = self.range_of(trial).next().is_some();
        let samples = match (pages.next(), pages.next()) {
            (None, _) => Held::Here(self),
            (Some(page), None) if !is_here => Held::Fetched(page.samples()),
            _ => Held::Fetched(Arc::new(self.fetched(trial, None))),
        };
        OfTrial { trial, samples }
    }

    /// Returns those of one trial in the same order.
    pub fn of_trial(&self, trial: TrialId) -> impl Iterator<Item = TrialSample> {
        let all = self.copied(trial).subjects.into_iter();
        all.flat_map(|(key, packed)| unpacked((&key, &packed)))
    }

    /// Returns a copy of those of one trial.
    pub fn copied(&self, trial: TrialId) -> Self {
        self.fetched(trial, None)
    }

    /// Returns a copy of those of a trial, or of one of its hosts, in memory.
    fn fetched(&self, trial: TrialId, host: Option<&HostName>) -> Self {
        let mut all = Self::default();
        let is_own = |key: &Key| host.is_none_or(|host| key.1 == *host);
        let mut add = |from: &Self| {
            let own = from.range_of(trial).filter(|(key, _)| is_own(key));
            let own = own.map(|(key, packed)| (key.clone(), packed.clone()));
            let subjects: BTreeMap<Key, Packed> = own.collect();
            let counts = subjects.values().map(|packed| packed.readings().count());
            all.append(Self {
                count: counts.sum(),
                subjects,
                ..Self::default()
            });
        };
        for page in self.pages(trial, host) {
            add(&page.samples());
        }
        add(self);
        all
    }

    /// Returns the pages on which samples of a trial lie, or of one of its hosts.
    fn pages(&self, trial: TrialId, host: Option<&HostName>) -> Vec<&Page> {
        let from = (trial, host.cloned().unwrap_or_else(|| HostName::from("")));
        let own = self.shelved.range(from..);
        let own = own.take_while(|((of, on), _)| *of == trial && host.is_none_or(|it| it == on));
        let mut pages: Vec<&Page> = Vec::new();
        for page in own.flat_map(|(_, pages)| pages) {
            if !pages.iter().any(|known| known.is(page)) {
                pages.push(page);
            }
        }
        pages.sort_by_key(|page| page.before);
        pages
    }

    fn range_of(&self, trial: TrialId) -> impl Iterator<Item = (&Key, &Packed)> {
        // No host has an empty name, and no subject comes before `Host`.
        let first = (trial, HostName::from(""), Subject::Host);
        let from = self.subjects.range(first..);
        from.take_while(move |(key, _)| key.0 == trial)
    }

    /// Returns the instants of all samples of `host`, in no particular order; those that lie elsewhere once a page.
    pub fn instants(&self, host: &HostName) -> impl Iterator<Item = i64> {
        let elsewhere = self
            .shelved
            .iter()
            .filter(move |(place, _)| place.1 == *host);
        let elsewhere = elsewhere.flat_map(|(_, pages)| pages).flat_map(|page| {
            let instants: BTreeSet<i64> = page.samples().instants(host).collect();
            instants
        });
        let subjects = self.subjects.iter().filter(move |(key, _)| key.1 == *host);
        let readings = subjects.flat_map(|(_, packed)| packed.readings());
        let here = readings.map(|(_, (at_ns, _))| at_ns);
        here.chain(elsewhere.collect::<Vec<i64>>())
    }
}

fn put_part(bytes: &mut Vec<u8>, part: &[u8]) {
    put(bytes, part.len() as u64);
    bytes.extend_from_slice(part);
}

fn take_part<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(take(bytes)?).ok()?;
    let (part, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(part)
}

/// Whether a subject is a part of the traffic rather than of the host.
fn is_traffic(subject: &Subject) -> bool {
    matches!(subject, Subject::Flow(..) | Subject::Latency(..))
}

fn unpacked((key, packed): (&Key, &Packed)) -> impl Iterator<Item = TrialSample> + use<> {
    let (trial, host, subject) = key.clone();
    let sample = move |(metric, (at_ns, value))| TrialSample {
        trial,
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

    /// Pages as bytes in memory.
    #[derive(Debug)]
    struct Bytes(Vec<u8>);

    impl Shelf for Bytes {
        fn page(&self, number: usize) -> Arc<Samples> {
            assert_eq!(number, 7);
            Arc::new(Samples::from_bytes(&self.0).expect("what was put there"))
        }
    }

    fn shelved(samples: &Samples) -> Samples {
        let shelf: Arc<dyn Shelf> = Arc::new(Bytes(samples.to_bytes()));
        let mut all = samples.clone();
        all.shelve_held(&shelf, 7);
        all
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_all_is_in_order(
            one in prop::collection::vec(sample(), 0..60),
            other in prop::collection::vec(sample(), 0..60),
            are_shelved in any::<[bool; 2]>(),
        ) {
            let mut samples = Samples::default();
            for (some, is_shelved) in [&one, &other].into_iter().zip(are_shelved) {
                let some: Samples = some.iter().cloned().collect();
                samples.append(if is_shelved { shelved(&some) } else { some });
            }
            let on_shelves = [one.len(), other.len()].into_iter().zip(are_shelved);
            let on_shelves = on_shelves.filter(|(_, is_shelved)| *is_shelved);
            let on_shelves: usize = on_shelves.map(|(count, _)| count).sum();
            prop_assert_eq!(samples.held() + on_shelves, samples.len());
            // What lies elsewhere comes before what is here, where nothing else tells which is first.
            let mut parts = [(one, are_shelved[0]), (other, are_shelved[1])];
            parts.sort_by_key(|(_, is_shelved)| !is_shelved);
            let mut expected: Vec<TrialSample> = parts.into_iter().flat_map(|(some, _)| some).collect();
            expected.sort_by_key(place);
            prop_assert_eq!(samples.len(), expected.len());
            prop_assert_eq!(samples.iter().collect::<Vec<_>>(), expected.clone());
            let of_traffic = |sample: &&TrialSample| is_traffic(&sample.subject);
            let traffic: Vec<_> = expected.iter().filter(of_traffic).cloned().collect();
            prop_assert_eq!(samples.of_traffic().collect::<Vec<_>>(), traffic);
            let places = expected.iter().map(|one| (one.trial, one.host.clone())).collect();
            prop_assert_eq!(samples.places(), places);
            for trial in (0..3).map(TrialId) {
                let own = expected.iter().filter(|one| one.trial == trial).cloned();
                let own: Vec<_> = own.collect();
                prop_assert_eq!(samples.of_trial(trial).collect::<Vec<_>>(), own.clone());
                prop_assert_eq!(samples.copied(trial).len(), own.len());
            }
            for host in ["client1", "server"].map(HostName::from) {
                let own = expected.iter().filter(|one| one.host == host).map(|one| one.at_ns);
                let instants: BTreeSet<i64> = samples.instants(&host).collect();
                prop_assert_eq!(instants, own.collect());
            }
            for wanted in &expected {
                let of_trial = samples.trial(wanted.trial);
                let readings = of_trial.readings(&wanted.host, &wanted.subject);
                let readings = readings.unwrap_or_default();
                prop_assert!(readings.contains(&(wanted.metric, (wanted.at_ns, wanted.value))));
                prop_assert!(readings.is_sorted_by_key(|(metric, reading)| (*metric, reading.0)));
                let mut subjects = of_trial.subjects();
                prop_assert!(subjects.any(|has| has == (&wanted.host, &wanted.subject)));
            }
        }
    }

    /// The first host by name is on the second page alone: the pages of a trial are in the order in which they were
    /// added all the same.
    #[test]
    fn pages_are_in_the_order_in_which_they_were_added() {
        let of = |host: &str, value| TrialSample {
            trial: TrialId(0),
            host: host.into(),
            subject: Subject::Host,
            metric: Metric::ALL[0],
            at_ns: 1,
            value,
        };
        let pages = [
            vec![of("server", 1)],
            vec![of("client1", 2), of("server", 3)],
        ];
        let mut samples = Samples::default();
        for page in &pages {
            samples.append(shelved(&page.iter().cloned().collect()));
        }
        let values: Vec<i64> = samples.of_trial(TrialId(0)).map(|it| it.value).collect();
        assert_eq!(values, [2, 1, 3]);
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
