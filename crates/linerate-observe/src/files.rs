//! An observer of small kernel files: each has a subject, and a pure function that reads its text.

use std::path::Path;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use crate::observer::{Interface, Observer, observer};
use crate::readout::Readout;
use crate::sys::clock::now_ns;
use crate::sys::file::KernelFile;
use crate::text::{complete_lines, value, words};

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

    /// Appends what the file says now.
    pub(crate) fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let (text, at_ns) = self.file.read()?;
        let before = out.len();
        let mut readout = Readout::at(at_ns, out);
        (self.parse)(text, &mut |metric, value| {
            readout.push(metric, self.subject.clone(), value);
        });
        if out.len() == before {
            return Err(self.file.says("not understood"));
        }
        Ok(())
    }
}

/// A list of small files.
pub(crate) struct Files(pub(crate) Vec<Source>);

/// Returns the observer called `name` of what could be opened; `absent` says why nothing is read where
/// that is nothing.
pub(crate) fn files_observer(
    name: &'static str,
    sources: Vec<Source>,
    absent: impl FnOnce() -> String,
    notes: impl IntoIterator<Item = String>,
) -> Box<dyn Observer> {
    let files = if sources.is_empty() {
        Err(absent())
    } else {
        Ok(Files(sources))
    };
    observer(name, files, notes)
}

impl Interface for Files {
    /// Wall time, since some of these files make the kernel wait for other CPUs.
    const COST_NS: Option<fn() -> u64> = Some(now_ns);

    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let read = self.0.iter_mut().map(|source| source.read(out));
        read.fold(Ok(()), Result::and)
    }
}

/// Hands on the number in the first line of a text, `factor` times.
pub(crate) fn one(text: &[u8], factor: i64, metric: Metric, push: &mut dyn FnMut(Metric, i64)) {
    if let Some(value) = complete_lines(text).next().and_then(value) {
        push(metric, value.saturating_mul(factor));
    }
}

/// A number at the begin of a line: its name there, what it is to us, and how many of our units one is.
pub(crate) type Named = (&'static str, Metric, i64);

/// Hands on the numbers of the lines that begin with a name of `wanted`.
pub(crate) fn named(text: &[u8], wanted: &[Named], push: &mut dyn FnMut(Metric, i64)) {
    for line in complete_lines(text) {
        let mut line = words(line);
        let name = line.next().unwrap_or_default();
        let known = wanted.iter().find(|(known, ..)| known.as_bytes() == name);
        if let Some((_, metric, factor)) = known
            && let Some(value) = line.next().and_then(value)
        {
            push(*metric, value.saturating_mul(*factor));
        }
    }
}

/// Returns the names of the entries of `folder`, in the order of the alphabet; none where it cannot be read.
pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// Returns the numbers of the entries of `folder` called `prefix` and a number, ascending.
pub(crate) fn numbered(folder: &Path, prefix: &str) -> Vec<u32> {
    let names = entries(folder);
    let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
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
