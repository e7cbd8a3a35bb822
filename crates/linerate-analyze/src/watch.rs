//! What a watcher of a host sees: values now, per second, and since it began to look.
//!
//! Everything here is made of readings as the observers give them. A counter needs two of them: its
//! change over the true time between, so a late reading is no error. One that has fallen belongs to
//! a device or socket that was made anew: its rate is absent once, and it counts from there.

use std::collections::BTreeMap;

use linerate_model::metric::{Kind, Metric};
use linerate_model::sample::{Sample, Subject};
use serde::Serialize;

use programs::Programs;
use sockets::Sockets;

/// The CPUs of a host.
pub mod cpus;
/// Its links.
pub mod links;
/// All of it as tables.
pub mod pages;
/// Its programs.
pub mod programs;
/// What holds the connections of a service.
pub mod service;
/// Its TCP connections.
pub mod sockets;

/// Which change of a counter is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// Between the last two readings, per second.
    #[default]
    PerSecond,
    /// Since the first reading, in all.
    SinceStart,
}

/// One metric of one subject.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Seen {
    /// As it was read last.
    #[serde(rename = "value")]
    pub now: i64,
    /// Its change per second between the last two readings; absent for gauges, after the first
    /// reading, and where it has fallen.
    #[serde(rename = "per_second", skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// Its change since the first reading; absent for gauges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_start: Option<i64>,
}

/// Where a counter began and what it was last.
#[derive(Debug, Clone, Copy)]
struct Course {
    first: i64,
    last: i64,
    last_ns: u64,
    per_s: Option<f64>,
    /// Number of the last reading that had it.
    reading: u64,
}

/// All that was read of a host so far.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    courses: BTreeMap<Subject, BTreeMap<Metric, Course>>,
    readings: u64,
    begun_ns: Option<u64>,
    last_ns: u64,
    /// The TCP connections, which take up readings of their own.
    pub sockets: Sockets,
    /// The programs, likewise.
    pub programs: Programs,
}

impl Watched {
    /// Takes up one reading of all observers, made at `at_ns` of the host's clock.
    ///
    /// What it no longer has is forgotten: a device that went away is not shown with its last rate.
    pub fn take(&mut self, at_ns: u64, samples: &[Sample]) {
        // The host was started anew, and its clock with it.
        if at_ns < self.last_ns {
            *self = Self::default();
        }
        self.readings += 1;
        self.begun_ns.get_or_insert(at_ns);
        self.last_ns = at_ns;
        let reading = self.readings;
        for sample in samples {
            let fresh = Course {
                first: sample.value,
                last: sample.value,
                last_ns: sample.at_ns,
                per_s: None,
                reading,
            };
            // Looked up first: of a subject that is known no copy is made.
            let metrics = match self.courses.get_mut(&sample.subject) {
                Some(metrics) => metrics,
                None => self.courses.entry(sample.subject.clone()).or_default(),
            };
            let course = metrics.entry(sample.metric).or_insert(fresh);
            // Of two values the later counts: what begins to move is told with its value before.
            // One that an observer left out is told again as it was, and is no change.
            if course.last_ns < sample.at_ns {
                *course = course.then(sample, reading);
            }
            course.reading = reading;
        }
        self.courses.retain(|_, metrics| {
            metrics.retain(|_, course| course.reading == reading);
            !metrics.is_empty()
        });
    }

    /// Returns how long the host has been watched, in seconds.
    pub fn seconds(&self) -> f64 {
        let begun_ns = self.begun_ns.unwrap_or(self.last_ns);
        self.last_ns.saturating_sub(begun_ns) as f64 / 1e9
    }

    /// Returns how often the host was read.
    pub fn readings(&self) -> u64 {
        self.readings
    }

    /// Returns one metric of one subject, if the last reading had it.
    pub fn seen(&self, subject: &Subject, metric: Metric) -> Option<Seen> {
        let course = self.courses.get(subject)?.get(&metric)?;
        Some(course.seen(metric))
    }

    /// Returns the change of a counter over `span`.
    pub fn change(&self, subject: &Subject, metric: Metric, span: Span) -> Option<f64> {
        let seen = self.seen(subject, metric)?;
        match span {
            Span::PerSecond => seen.per_s,
            Span::SinceStart => seen.since_start.map(|change| change as f64),
        }
    }

    /// Returns the last value of a gauge.
    pub fn value(&self, subject: &Subject, metric: Metric) -> Option<i64> {
        self.seen(subject, metric).map(|seen| seen.now)
    }

    /// Returns everything that the last reading had, by subject and metric.
    pub fn all(&self) -> impl Iterator<Item = (&Subject, Metric, Seen)> {
        self.courses.iter().flat_map(|(subject, metrics)| {
            let metrics = metrics.iter();
            metrics.map(move |(metric, course)| (subject, *metric, course.seen(*metric)))
        })
    }

    /// Returns the CPUs that an interrupt was seen on, each with the pair as a subject.
    pub fn pairs_of(&self, irq: u32) -> impl Iterator<Item = (u32, &Subject)> {
        let all = Subject::IrqCpu(irq, 0)..=Subject::IrqCpu(irq, u32::MAX);
        let pairs = self.courses.range(all);
        pairs.filter_map(|(subject, _)| match subject {
            Subject::IrqCpu(_, cpu) => Some((*cpu, subject)),
            _ => None,
        })
    }

    /// Returns the CPUs of the last reading, each with its subject.
    pub fn cpus(&self) -> impl Iterator<Item = (u32, &Subject)> {
        self.subjects().filter_map(|subject| match subject {
            Subject::Cpu(cpu) => Some((*cpu, subject)),
            _ => None,
        })
    }

    /// Returns the subjects of the last reading, each once.
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.courses.keys()
    }
}

/// Everything that was seen, as JSON gives it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Document {
    /// How long the host has been watched, in seconds.
    pub seconds: f64,
    /// Its CPUs over the last interval, as shares of their time.
    pub cpus: Vec<cpus::CpuRow>,
    /// Its links, per second.
    pub links: Vec<links::LinkRow>,
    /// Its TCP connections, per second, those that move most payload first.
    pub flows: Vec<sockets::WatchedFlow>,
    /// Every metric of every subject, in the metric's unit.
    pub metrics: Vec<MetricLine>,
}

/// One metric of one subject as JSON gives it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MetricLine {
    /// What it is about.
    pub subject: Subject,
    /// What is counted.
    pub metric: Metric,
    /// What was seen of it, in the metric's unit.
    #[serde(flatten)]
    pub seen: Seen,
}

impl Watched {
    /// Returns everything that was seen, over the last interval.
    pub fn document(&self) -> Document {
        let line = |(subject, metric, seen): (&Subject, Metric, Seen)| MetricLine {
            subject: subject.clone(),
            metric,
            seen,
        };
        Document {
            seconds: self.seconds(),
            cpus: cpus::cpus(self, Span::PerSecond),
            links: links::links(self, Span::PerSecond),
            flows: self.sockets.flows(Span::PerSecond),
            metrics: self.all().map(line).collect(),
        }
    }
}

impl Course {
    /// Returns it as the course of `metric`.
    fn seen(&self, metric: Metric) -> Seen {
        let is_counter = metric.kind() == Kind::Counter;
        Seen {
            now: self.last,
            per_s: self.per_s.filter(|_| is_counter),
            since_start: is_counter.then(|| self.last.wrapping_sub(self.first)),
        }
    }

    /// Returns the course after one more reading.
    fn then(self, sample: &Sample, reading: u64) -> Self {
        let fell = sample.value < self.last;
        let span_ns = sample.at_ns.saturating_sub(self.last_ns);
        let change = sample.value.wrapping_sub(self.last) as f64;
        Self {
            // A counter that fell a little, as idle time may, goes on; one below its start is new.
            first: if sample.value < self.first {
                sample.value
            } else {
                self.first
            },
            last: sample.value,
            last_ns: sample.at_ns,
            per_s: (!fell && span_ns > 0).then(|| change * 1e9 / span_ns as f64),
            reading,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn sample(subject: &str, metric: Metric, at_ns: u64, value: i64) -> Sample {
        Sample {
            metric,
            subject: subject.parse().unwrap(),
            at_ns,
            value,
        }
    }

    fn read(watched: &mut Watched, at_s: u64, value: i64) -> Seen {
        let at_ns = at_s * 1_000_000_000;
        watched.take(
            at_ns,
            &[sample("link:a", Metric::LinkRxBytes, at_ns, value)],
        );
        let link = "link:a".parse().unwrap();
        watched.seen(&link, Metric::LinkRxBytes).unwrap()
    }

    #[test]
    fn a_counter_has_a_rate_from_the_second_reading_on_and_none_where_it_fell() {
        let mut watched = Watched::default();
        let seen = |now, per_s, since_start| Seen {
            now,
            per_s,
            since_start: Some(since_start),
        };
        assert_eq!(read(&mut watched, 10, 1000), seen(1000, None, 0));
        assert_eq!(read(&mut watched, 12, 3000), seen(3000, Some(1000.0), 2000));
        assert_eq!(read(&mut watched, 13, 2900), seen(2900, None, 1900));
        assert_eq!(read(&mut watched, 14, 2950), seen(2950, Some(50.0), 1950));
        assert_eq!(read(&mut watched, 15, 7), seen(7, None, 0), "made anew");
        assert_eq!(read(&mut watched, 17, 27), seen(27, Some(10.0), 20));
        assert_eq!((watched.seconds(), watched.readings()), (7.0, 6));
    }

    #[test]
    fn what_a_reading_does_not_have_is_forgotten() {
        let mut watched = Watched::default();
        read(&mut watched, 1, 5);
        let other = sample("link:b", Metric::LinkRxBytes, 2_000_000_000, 5);
        watched.take(2_000_000_000, &[other]);
        let subjects: Vec<String> = watched.subjects().map(ToString::to_string).collect();
        assert_eq!(subjects, ["link:b"]);
        assert_eq!(read(&mut watched, 3, 50).per_s, None, "a new one");
    }

    #[test]
    fn what_an_observer_left_out_stands_as_it_was_read() {
        let mut watched = Watched::default();
        read(&mut watched, 1, 1000);
        let made = read(&mut watched, 2, 3000);
        let second = 1_000_000_000;
        let again = sample("link:a", Metric::LinkRxBytes, 2 * second, 3000);
        watched.take(3 * second, &[again]);
        let link = "link:a".parse().unwrap();
        assert_eq!(watched.seen(&link, Metric::LinkRxBytes), Some(made));
        assert_eq!(read(&mut watched, 4, 9000).per_s, Some(3000.0));
    }

    #[test]
    fn a_host_that_was_started_anew_begins_anew() {
        let mut watched = Watched::default();
        read(&mut watched, 1000, 5000);
        read(&mut watched, 1001, 9000);
        let first = read(&mut watched, 30, 40);
        assert_eq!(
            (first.now, first.per_s, first.since_start),
            (40, None, Some(0))
        );
        assert_eq!(read(&mut watched, 31, 60).per_s, Some(20.0));
        assert_eq!(watched.readings(), 2);
    }

    #[test]
    fn of_two_values_in_one_reading_the_later_counts() {
        let mut watched = Watched::default();
        let count = |at_ns, value| sample("irq:38:cpu:1", Metric::IrqCpuCount, at_ns, value);
        let second = 1_000_000_000;
        // It began to move between the readings at one and two seconds.
        watched.take(2 * second, &[count(second, 100), count(2 * second, 130)]);
        let subject = Subject::IrqCpu(38, 1);
        let seen = |watched: &Watched| watched.seen(&subject, Metric::IrqCpuCount).unwrap();
        let first = Seen {
            now: 130,
            per_s: Some(30.0),
            since_start: Some(30),
        };
        assert_eq!(seen(&watched), first);
        watched.take(
            3 * second,
            &[count(3 * second, 140), count(3 * second, 999)],
        );
        assert_eq!(seen(&watched).per_s, Some(10.0), "the same instant");
    }

    #[test]
    fn a_gauge_has_a_value_only() {
        let mut watched = Watched::default();
        for at_ns in [1, 2] {
            watched.take(at_ns, &[sample("host", Metric::TcpRtt, at_ns, 9)]);
        }
        let seen = watched.seen(&Subject::Host, Metric::TcpRtt).unwrap();
        assert_eq!((seen.now, seen.per_s, seen.since_start), (9, None, None));
    }
}
