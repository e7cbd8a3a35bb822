//! An observer of small kernel files: each has a subject, and a pure function that reads its text.

use std::path::Path;

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use crate::observer::{Health, Observer};
use crate::readout::Readout;
use crate::spacing::Spacing;
use crate::sys::clock::now_ns;
use crate::sys::file::KernelFile;
use crate::text::{complete_lines, value};

/// First buffer of a small file, in bytes; longer ones make it grow.
const BUFFER_BYTES: usize = 1 << 10;

/// Hands what a file's text says to the second argument.
pub(crate) type Parse = fn(&[u8], &mut dyn FnMut(Metric, i64));

/// A file that is read at every sample.
pub(crate) struct Source {
    file: KernelFile,
    subject: Subject,
    parse: Parse,
}

impl Source {
    /// Opens `path`; absent with the reason where it does not exist.
    pub(crate) fn open(path: &Path, subject: Subject, parse: Parse) -> Result<Self, String> {
        let mut file = KernelFile::open(path)?;
        file.reserve(BUFFER_BYTES);
        Ok(Self {
            file,
            subject,
            parse,
        })
    }
}

/// Reads a list of small files.
pub(crate) struct FilesObserver {
    sources: Vec<Source>,
    spacing: Spacing,
    health: Health,
}

impl FilesObserver {
    /// Takes what could be opened; `absent` says why nothing is read where that is nothing.
    pub(crate) fn new(
        observer: &'static str,
        sources: Vec<Source>,
        absent: impl FnOnce() -> String,
        notes: Vec<String>,
    ) -> Self {
        let missing = sources.is_empty().then(absent);
        Self {
            sources,
            spacing: Spacing::default(),
            health: Health::new(observer, missing, notes),
        }
    }

    fn read(&mut self, out: &mut Vec<Sample>) {
        if self.sources.is_empty() {
            return;
        }
        let begin_ns = now_ns();
        self.health.reading(out, |out| {
            let read = self.sources.iter_mut().map(|source| read_one(source, out));
            read.fold(Ok(()), Result::and)
        });
        // Wall time, since some of these files make the kernel wait for other CPUs.
        self.spacing
            .handle_reading(begin_ns, now_ns().saturating_sub(begin_ns));
    }
}

fn read_one(source: &mut Source, out: &mut Vec<Sample>) -> Result<(), String> {
    let (text, at_ns) = source.file.read()?;
    let before = out.len();
    let mut readout = Readout::at(at_ns, out);
    (source.parse)(text, &mut |metric, value| {
        readout.push(metric, source.subject.clone(), value);
    });
    if out.len() == before {
        return Err(source.file.says("not understood"));
    }
    Ok(())
}

impl Observer for FilesObserver {
    fn availability(&self) -> Availability {
        self.health.availability_with(self.spacing.note())
    }

    fn sample(&mut self, out: &mut Vec<Sample>) {
        if self.spacing.is_due(now_ns()) {
            self.read(out);
        }
    }

    fn sample_edge(&mut self, out: &mut Vec<Sample>) {
        self.read(out);
    }
}

/// Hands on the number in the first line of a text, `factor` times.
pub(crate) fn one(text: &[u8], factor: i64, metric: Metric, push: &mut dyn FnMut(Metric, i64)) {
    if let Some(value) = complete_lines(text).next().and_then(value) {
        push(metric, value.saturating_mul(factor));
    }
}

/// Returns the numbers of the entries of `folder` called `prefix` and a number, ascending.
pub(crate) fn numbered(folder: &Path, prefix: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| number(entry.file_name().to_str()?))
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Runs a parser on a text and returns what it found.
#[cfg(test)]
pub(crate) fn found(parse: Parse, text: &str) -> Vec<(&'static str, i64)> {
    let mut found = Vec::new();
    parse(text.as_bytes(), &mut |metric, value| {
        found.push((metric.name(), value));
    });
    found
}
