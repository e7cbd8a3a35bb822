//! Recordings that were made for real, each of a set-up whose truth was written down before.
//!
//! `bench corpus record` makes them; a file has those of one family. A recording is kept whole, so that whatever is
//! concluded, or reduced, in another way next year can be held against it. It is text, for it is written by one version
//! of the program and read by all later ones: a line of what is known, a line of each part, and a line for each series of
//! samples as differences, all compressed.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use linerate_analyze::single::{Shown, single};
use linerate_model::id::{HostName, TrialId};
use linerate_model::limiter::Limiter;
use linerate_model::metric::Metric;
use linerate_model::run::{FlowOutcome, FlowRecord, Recording, RunDocument, TrialRecord};
use linerate_model::sample::TrialSample;
use linerate_model::samples::Samples;
use serde::{Deserialize, Serialize};

/// What the name of a file of recordings ends with.
const ENDING: &str = "zst";
/// As small as zstd makes it within minutes: it is written once and kept for years.
const LEVEL: i32 = 19;
/// Recordings of one family have most of their text in common, some hundred kilobytes apart.
const WINDOW_LOG: u32 = 27;

/// What is true of a set-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// What holds the number.
    pub cause: String,
    /// The limiters whose name is right; none where no limiter that there is names the cause.
    pub limiters: Vec<String>,
    /// Whether nothing is wrong with the set-up: it carries what it is made for.
    #[serde(default)]
    pub healthy: bool,
}

/// A recording of a set-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The set-up.
    pub setup: String,
    /// Which of its runs.
    pub run: u32,
    /// What is true of it.
    pub truth: Truth,
    /// The recording.
    pub recording: Recording,
}

/// The two parts of the corpus. Whatever is fitted is fitted to one of them, and judged by the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Half {
    /// What is fitted to.
    Fitted,
    /// What is held out.
    HeldOut,
}

impl Half {
    /// Returns the half of a set-up: by its name alone (FNV-1a), so that all its runs are in one.
    pub fn of(setup: &str) -> Self {
        let hash = setup.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // Names that differ in their last letter alone differ little in such a sum: mixed once more.
        if (hash ^ hash >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0 {
            Self::Fitted
        } else {
            Self::HeldOut
        }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::HeldOut => "held-out",
        }
    }
}

impl Recorded {
    /// Returns the limiter that the program names first, if it names one.
    pub fn named(&self) -> Option<Limiter> {
        let single = single(&self.recording, Shown::RESULT_ALONE);
        single.limiter().map(|(limiter, _)| limiter)
    }
}

/// What is known of a recording, as its first line has it.
#[derive(Serialize, Deserialize)]
struct Head {
    setup: String,
    run: u32,
    truth: Truth,
    document: RunDocument,
    trials: Vec<TrialRecord>,
    flows: Vec<KeptFlow>,
    /// The series of samples that follow, a line each.
    series: usize,
    /// The instants of series, as differences: many have the same.
    instants: Vec<Vec<i64>>,
}

#[derive(Serialize, Deserialize)]
struct KeptFlow {
    trial: TrialId,
    host: HostName,
    outcome: FlowOutcome,
}

/// Trial, host, subject, metric, the number of its instants, its values as differences; one alone where all are the same.
type Series = (u32, String, String, String, usize, Vec<i64>);

/// Writes recordings, compressed, into a new file at `path`.
pub fn write<'r>(
    path: &Path,
    recordings: impl IntoIterator<Item = &'r Recorded>,
) -> io::Result<()> {
    let mut file = zstd::Encoder::new(std::fs::File::create(path)?, LEVEL)?;
    file.window_log(WINDOW_LOG)?;
    file.long_distance_matching(true)?;
    for recorded in recordings {
        write_one(&mut file, recorded)?;
    }
    file.finish()?.sync_all()
}

fn write_one(to: &mut impl Write, recorded: &Recorded) -> io::Result<()> {
    let recording = &recorded.recording;
    let mut instants: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
    let mut series: Vec<Series> = Vec::new();
    let samples: Vec<TrialSample> = recording.samples.iter().collect();
    let is_same = |one: &TrialSample, next: &TrialSample| {
        (one.trial, &one.host, &one.subject, one.metric)
            == (next.trial, &next.host, &next.subject, next.metric)
    };
    for own in samples.chunk_by(is_same) {
        let at = differences(own.iter().map(|sample| sample.at_ns));
        let number = instants.len();
        let number = *instants.entry(at).or_insert(number);
        let is_constant = own.iter().all(|sample| sample.value == own[0].value);
        let told = if is_constant { &own[..1] } else { own };
        series.push((
            own[0].trial.0,
            own[0].host.to_string(),
            own[0].subject.to_string(),
            own[0].metric.name().to_owned(),
            number,
            differences(told.iter().map(|sample| sample.value)),
        ));
    }
    let mut in_order: Vec<_> = instants.into_iter().collect();
    in_order.sort_by_key(|(_, number)| *number);
    let flows = recording.flows.iter().map(|flow| KeptFlow {
        trial: flow.trial,
        host: flow.host.clone(),
        outcome: flow.outcome.clone(),
    });
    let head = Head {
        setup: recorded.setup.clone(),
        run: recorded.run,
        truth: recorded.truth.clone(),
        document: recording.document.clone(),
        trials: recording.trials.clone(),
        flows: flows.collect(),
        series: series.len(),
        instants: in_order.into_iter().map(|(at, _)| at).collect(),
    };
    line(to, &head)?;
    series.iter().try_for_each(|one| line(to, one))
}

fn line(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, value)?;
    to.write_all(b"\n")
}

fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut last = 0_i64;
    values
        .map(|value| {
            let step = value.wrapping_sub(last);
            last = value;
            step
        })
        .collect()
}

fn summed(steps: &[i64]) -> impl Iterator<Item = i64> + '_ {
    steps.iter().scan(0_i64, |sum, step| {
        *sum = sum.wrapping_add(*step);
        Some(*sum)
    })
}

/// Returns the files of recordings in `folder`, by name.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the file of a family in `folder`.
pub fn file_of(folder: &Path, family: &str) -> PathBuf {
    folder.join(family).with_extension(ENDING)
}

/// Returns the recordings of the file at `path`.
pub fn read(path: &Path) -> io::Result<Vec<Recorded>> {
    let mut file = zstd::Decoder::new(std::fs::File::open(path)?)?;
    file.window_log_max(WINDOW_LOG)?;
    let mut lines = io::BufReader::new(file).lines();
    let mut all = Vec::new();
    while let Some(head) = lines.next() {
        all.push(read_one(&head?, &mut lines)?);
    }
    Ok(all)
}

fn read_one(
    head: &str,
    lines: &mut impl Iterator<Item = io::Result<String>>,
) -> io::Result<Recorded> {
    let head: Head = serde_json::from_str(head)?;
    let mut samples = Samples::default();
    for _ in 0..head.series {
        let text = lines
            .next()
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))??;
        let (trial, host, subject, metric, number, values): Series = serde_json::from_str(&text)?;
        // What a later version does not measure any more, it does not read.
        let Some(metric) = Metric::from_name(&metric) else {
            continue;
        };
        let known = subject.parse().ok().zip(head.instants.get(number));
        let (subject, at) = known.ok_or_else(|| io::Error::other(text.clone()))?;
        let last = summed(&values).last().unwrap_or_default();
        let values = summed(&values).chain(std::iter::repeat(last));
        for (at_ns, value) in summed(at).zip(values) {
            samples.push(TrialSample {
                trial: TrialId(trial),
                host: HostName::from(host.as_str()),
                subject: Clone::clone(&subject),
                metric,
                at_ns,
                value,
            });
        }
    }
    let flows = head.flows.into_iter().map(|flow| FlowRecord {
        trial: flow.trial,
        host: flow.host,
        outcome: flow.outcome,
    });
    Ok(Recorded {
        setup: head.setup,
        run: head.run,
        truth: head.truth,
        recording: Recording {
            document: head.document,
            trials: head.trials,
            flows: flows.collect(),
            samples,
            profiles: Vec::new(),
            captures: Vec::new(),
            events: Vec::new(),
            damage: Vec::new(),
        },
    })
}

#[cfg(test)]
mod tests {
    use linerate_analyze::Draw;

    use super::*;
    use crate::limiters::Cause;

    #[test]
    fn what_is_written_is_read_again() {
        let mut draw = Draw::new(1);
        let (recording, _) = Cause::SmallBuffer.record(&mut draw, 2);
        let recorded = Recorded {
            setup: "a window".to_owned(),
            run: 2,
            truth: Truth {
                cause: "receiver-window".to_owned(),
                limiters: vec!["receiver-window".to_owned()],
                healthy: false,
            },
            recording,
        };
        let path = std::env::temp_dir().join(format!("corpus-{}.zst", std::process::id()));
        write(&path, [&recorded, &recorded]).expect("a folder that may be written");
        let read = read(&path).expect("what was just written");
        let _ = std::fs::remove_file(&path);
        assert_eq!(read.len(), 2);
        assert_eq!(read[1].recording.samples, recorded.recording.samples);
        assert_eq!(read[0].recording.flows, recorded.recording.flows);
        assert_eq!(read[0].truth, recorded.truth);
        assert_eq!(read[0].named(), recorded.named());
    }

    #[test]
    fn halves_are_alike_in_size_and_stay() {
        let fitted = (0..400)
            .filter(|number| Half::of(&format!("set-up/{number}")) == Half::Fitted)
            .count();
        assert!((150..=250).contains(&fitted), "{fitted}");
    }
}
