//! The writer, and the format.
//!
//! # The bundle, format 3
//!
//! A directory:
//!
//! | file | content |
//! |---|---|
//! | `run.json` | [`RunDocument`]: plan, hosts, facts, versions; `format` comes first |
//! | `trials.parquet` | one row a trial: validity, flags, window, start skew |
//! | `flows.parquet` | one row for each end of a flow: addresses, settings, latency |
//! | `samples.parquet` | one row a value, sorted by trial, host, subject, metric, time |
//! | `stacks.parquet` | one row for each stack of a profile, with how often it was found; absent where no profile was asked for |
//! | `captures.parquet` | one row for each host of a trial that was asked to capture: what came of it; absent where no capture was asked for |
//! | `captures/000001-server.pcapng` | the frames of trial 1 that `server` captured (draft-ietf-opsawg-pcapng): one section with one interface and its counts at the end |
//! | `events.ndjson` | one [`Event`] a line, in order of time |
//! | `report.html` | the report, rendered from the rest; may be absent |
//! | `results.parquet` | one row a trial and response, reduced from the rest (see `results.rs`); may be absent |
//! | `partial/` | only until the run is finished: the tables, one file a trial and table |
//!
//! Rules that hold for every table:
//!
//! 1. Parquet without nesting, but for the two latency lists; zstd; no extension types. Whatever
//!    reads Parquet reads it.
//! 2. All integers are signed. The values that cannot be negative stay below 2^63 in practice, and
//!    data frames subtract signed columns without wrapping around.
//! 3. Names end in their unit (`at_ns`, `bytes_sent`). The unit of `value` is the metric's.
//! 4. What is absent is null, never 0 and never a sentinel.
//! 5. `trials.invalid_reason` is null for a valid trial. `flags` is a JSON list of texts.
//!    `experiment`, `cell` (a JSON object) and `replicate` repeat the plan, so that the tables can
//!    be joined without `run.json`. `flow_rows` and `sample_rows` say how many rows of the other
//!    tables belong to the trial, so that a reader notices what is lost.
//! 6. `flows.settings` is a JSON list of objects: few, textual, and looked at rather than computed
//!    with. The latency histogram is two lists of equal length instead, `latency_upper_ns` and
//!    `latency_count`, since those are numbers to compute with: DuckDB unnests them side by side,
//!    pandas and Polars explode them, and neither has to parse text.
//! 7. Row groups have [`GROUP_ROWS`] rows or more where there are as many, and [`GROUP_ROWS_MAX`] at the most. In a trial with
//!    more of them than that a row group of `samples` ends where a host's rows end, or before: a host with many has groups of its own.
//!    Smaller trials are whole in their groups.
//! 8. Each file carries the number of the format as key `linerate.bundle_format`; that of
//!    `run.json` counts. A format with a higher number may add columns that can be null, and
//!    files; anything else needs code in the reader for the older number.
//!
//! Format 2 added `stacks.parquet`, format 3 `captures.parquet` and `captures/`; a bundle of an older
//! format is read as one without. `run.json` has format 4 where a trial has several groups (`plan.trials[].beside`):
//! the flows of a trial are numbered through its groups, the workload's own first, so that a flow's number tells its
//! group; tables are as in format 3.
//!
//! While a run goes on, each trial is stored as `partial/trial-000001.{samples,flows,trials}.parquet`
//! in that order, each written beside, forced to the disk and renamed, so that a trial with a row in
//! `trials` is whole. Finishing merges them and removes `partial/`. Where both a final table and a
//! part hold a trial, the final table counts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use linerate_model::TrialId;
use linerate_model::capture::{CaptureOutcome, TrialCapture};
use linerate_model::plan::Trial;
use linerate_model::reason::with_causes;
use linerate_model::run::{BUNDLE_FORMAT, Event, RunDocument, TrialEvidence};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;

use crate::durable::{self, FileError, Step, failed};
use crate::events::{self, EventLog};
use crate::layout::{CAPTURES, EVENTS, PARTIAL, REPORT, RUN, TableName, capture_file};
use crate::rows::samples::GROUP_ROWS_MAX;
use crate::rows::trials::StoredTrial;
use crate::rows::{captures, flows, format_of, samples, stacks, trials};
use crate::table::{Table, TableFile, TableFormat, Unfit};

/// Rows from which on a row group is closed where it may be.
pub(crate) const GROUP_ROWS: usize = 32 << 10;

/// Stores a run while it happens.
///
/// Dropping it without [`Writer::finish`] leaves a bundle that [`crate::read`] understands.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    partial: PathBuf,
    events: EventLog,
    planned: Vec<Trial>,
}

/// Why something could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is something in the directory already.
    #[error("cannot use {path} for a new bundle: it is not empty")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The system refused a step, for instance because the disk is full.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content of a file could not be put together.
    #[error("cannot encode {path}")]
    Encode {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        #[source]
        cause: Unfit,
    },
    /// A flow or sample of one trial was given with another.
    #[error("cannot store trial {trial}: a row of trial {other} is among its own")]
    OtherTrial {
        /// The trial to be stored.
        trial: TrialId,
        /// The trial that the row names.
        other: TrialId,
    },
}

impl Writer {
    /// Starts the bundle of a run in `dir`, which is made if it is not there and must be empty.
    pub fn create(dir: &Path, document: &RunDocument) -> Result<Self, WriteError> {
        fs::create_dir_all(dir).map_err(failed(Step::MakeDirectory, dir))?;
        let mut entries = fs::read_dir(dir).map_err(failed(Step::List, dir))?;
        if entries.next().is_some() {
            let path = dir.to_owned();
            return Err(WriteError::NotEmpty { path });
        }
        let partial = dir.join(PARTIAL);
        fs::create_dir(&partial).map_err(failed(Step::MakeDirectory, &partial))?;
        let begun = write_run(dir, document).and_then(|()| {
            Ok(Self {
                dir: dir.to_owned(),
                partial: partial.clone(),
                events: EventLog::create(&dir.join(EVENTS))?,
                planned: document.plan.trials.clone(),
            })
        });
        if begun.is_err() {
            // It holds nothing, and would be in the way once there is room.
            let _ = fs::remove_file(dir.join(RUN));
            let _ = fs::remove_dir(&partial);
        }
        begun
    }

    /// Stores one trial; once this returns, the trial survives a crash. Of one that cannot be stored nothing
    /// is left: its room is free for what says so.
    ///
    /// A trial that is stored again replaces what was stored before.
    pub fn append(&mut self, evidence: &TrialEvidence) -> Result<(), WriteError> {
        let trial = evidence.record.trial;
        let rows = evidence
            .profiles
            .iter()
            .map(|profile| profile.trial)
            .chain(evidence.captures.iter().map(|(capture, _)| capture.trial))
            .chain(evidence.flows.iter().map(|flow| flow.trial));
        let mut rows = rows.chain(evidence.samples.trials());
        if let Some(other) = rows.find(|other| *other != trial) {
            return Err(WriteError::OtherTrial { trial, other });
        }
        let stored = self.store(trial, evidence);
        if stored.is_err() {
            for name in TableName::ALL {
                let _ = fs::remove_file(self.partial.join(name.partial_file(trial)));
            }
            for (capture, _) in &evidence.captures {
                let file = capture_file(trial, &capture.host);
                let _ = fs::remove_file(self.dir.join(CAPTURES).join(file));
            }
        }
        stored
    }

    fn store(&mut self, trial: TrialId, evidence: &TrialEvidence) -> Result<(), WriteError> {
        if !evidence.profiles.is_empty() {
            let profiles = &evidence.profiles;
            self.write_part(TableName::Stacks, trial, stacks::table(profiles))?;
        }
        let captures = self.store_files(trial, &evidence.captures);
        if !captures.is_empty() {
            self.write_part(TableName::Captures, trial, captures::table(&captures))?;
        }
        let samples = &evidence.samples;
        self.write_parts(TableName::Samples, trial, samples::tables(samples.iter()))?;
        self.write_part(TableName::Flows, trial, flows::table(&evidence.flows))?;
        let stored = StoredTrial {
            record: evidence.record.clone(),
            flow_rows: evidence.flows.len() as u64,
            sample_rows: samples.len() as u64,
        };
        let planned = self.planned.iter().find(|planned| planned.id == trial);
        self.write_part(TableName::Trials, trial, trials::table(&stored, planned))?;
        durable::sync_directory(&self.partial)?;
        Ok(self.events.sync()?)
    }

    /// Stores the files that hosts captured; returns the rows that name them. One that there is no room for is
    /// missing: the trial, which is a thousandth of it, may have room.
    fn store_files(
        &self,
        trial: TrialId,
        captures: &[(TrialCapture, Vec<u8>)],
    ) -> Vec<TrialCapture> {
        let folder = self.dir.join(CAPTURES);
        let mut names: Vec<String> = Vec::new();
        let mut rows = Vec::new();
        for (capture, file) in captures {
            let mut row = capture.clone();
            if !file.is_empty() {
                let mut name = capture_file(trial, &capture.host);
                // Names of hosts that differ in odd characters only.
                if names.contains(&name) {
                    name = name.replace(".pcapng", &format!(".{}.pcapng", rows.len()));
                }
                let stored = fs::create_dir_all(&folder)
                    .map_err(failed(Step::MakeDirectory, &folder))
                    .and_then(|()| durable::replace_with(&folder, &name, file));
                match stored {
                    Ok(_) => {
                        row.file = Some(format!("{CAPTURES}/{name}"));
                        names.push(name);
                    }
                    Err(error) => row.outcome = CaptureOutcome::Missing(with_causes(&error)),
                }
            }
            rows.push(row);
        }
        rows
    }

    fn write_part(
        &self,
        name: TableName,
        trial: TrialId,
        table: Result<Table, impl Into<Unfit>>,
    ) -> Result<(), WriteError> {
        let path = self.partial.join(name.partial_file(trial));
        let table = table.map_err(unfit(&path))?;
        self.write_parts(name, trial, std::iter::once(Ok(table)))
    }

    fn write_parts(
        &self,
        name: TableName,
        trial: TrialId,
        tables: impl Iterator<Item = Result<Table, ParquetError>>,
    ) -> Result<(), WriteError> {
        let path = self.partial.join(name.partial_file(trial));
        durable::replace(&path, |file, temporary| {
            let write = |file| {
                let mut groups = Groups::new(name, file)?;
                for table in tables {
                    groups.add(table?)?;
                }
                groups.close()
            };
            write(file).map_err(encoding(temporary))
        })
    }

    /// Stores one event.
    pub fn event(&mut self, event: &Event) -> Result<(), WriteError> {
        let line = events::line(event).map_err(unfit(&self.dir.join(EVENTS)))?;
        Ok(self.events.append(&line)?)
    }

    /// Replaces the run document.
    pub fn update(&mut self, document: &RunDocument) -> Result<(), WriteError> {
        self.planned.clone_from(&document.plan.trials);
        write_run(&self.dir, document)
    }

    /// Returns the directory of the bundle.
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// Merges the trials into the final tables and stores the final run document.
    ///
    /// Fails without loss: what could not be merged stays in `partial/`, where the reader finds it.
    pub fn finish(self, document: &RunDocument) -> Result<(), WriteError> {
        let merged = TableName::ALL
            .into_iter()
            .try_for_each(|name| self.merge(name));
        // The document says how the run ended, also when there is no room for the tables.
        write_run(&self.dir, document)?;
        self.events.sync()?;
        merged?;
        match fs::remove_dir(&self.partial) {
            // A part that could not be read stays, and the reader tells of it.
            Err(error) if error.kind() != std::io::ErrorKind::DirectoryNotEmpty => {
                Err(failed(Step::Remove, &self.partial)(error).into())
            }
            _ => Ok(durable::sync_directory(&self.dir)?),
        }
    }

    /// Writes the final table `name` from its parts, then removes those that went into it.
    fn merge(&self, name: TableName) -> Result<(), WriteError> {
        let parts = name
            .partials(&self.partial)
            .map_err(failed(Step::List, &self.partial))?;
        if parts.is_empty() && name.is_optional() {
            return Ok(());
        }
        let path = self.dir.join(name.file());
        let mut merged = Vec::new();
        durable::replace(&path, |file, temporary| {
            let mut write = |file| {
                let mut groups = Groups::new(name, file)?;
                for (_, part) in &parts {
                    if groups.add_part(name, part)? {
                        merged.push(part);
                    }
                }
                groups.close()
            };
            write(file).map_err(encoding(temporary))
        })?;
        durable::sync_directory(&self.dir)?;
        for part in merged {
            fs::remove_file(part).map_err(failed(Step::Remove, part))?;
        }
        Ok(())
    }
}

/// Writes `html` as the report of the bundle in `dir` and returns its path.
pub fn write_report(dir: &Path, html: &str) -> Result<PathBuf, WriteError> {
    Ok(durable::replace_with(dir, REPORT, html.as_bytes())?)
}

/// Writes `document` as that of the bundle in `dir`; for one that has no writer any more too.
pub fn write_run(dir: &Path, document: &RunDocument) -> Result<(), WriteError> {
    let mut json = serde_json::to_vec_pretty(document).map_err(unfit(&dir.join(RUN)))?;
    json.push(b'\n');
    durable::replace_with(dir, RUN, &json)?;
    Ok(())
}

/// The row groups of a file that is written.
///
/// A group ends where a table ends that was added, which is a host of a trial among samples: so that whoever wants one host of
/// a large run skips the others by what Parquet says of each group.
struct Groups<'f> {
    format: &'static TableFormat<'static>,
    writer: SerializedFileWriter<&'f mut File>,
    /// What has not been written yet.
    group: Table,
}

impl<'f> Groups<'f> {
    fn new(name: TableName, file: &'f mut File) -> Result<Self, ParquetError> {
        let format = format_of(name);
        Ok(Self {
            format,
            writer: format.writer(file, BUNDLE_FORMAT)?,
            group: format.empty()?,
        })
    }

    /// Adds the rows of `table`.
    fn add(&mut self, table: Table) -> Result<(), ParquetError> {
        let rows = self.group.rows();
        if rows >= GROUP_ROWS || rows + table.rows() > GROUP_ROWS_MAX {
            self.end_group()?;
        }
        self.group.append(table)
    }

    /// Adds one trial's part of the table; returns whether it could be read.
    fn add_part(&mut self, name: TableName, part: &Path) -> Result<bool, ParquetError> {
        let file = durable::open(part).map_err(ParquetError::from);
        let Ok(file) = file.and_then(|file| TableFile::open(file, self.format, name.rows_max()))
        else {
            return Ok(false);
        };
        if file.rows() > GROUP_ROWS_MAX as u64 {
            // Its groups are as large as any: as they are, without being held.
            self.end_group()?;
            file.copy_groups(&mut self.writer)?;
            return Ok(true);
        }
        let Ok(table) = file.read_all() else {
            return Ok(false);
        };
        self.add(table)?;
        Ok(true)
    }

    fn end_group(&mut self) -> Result<(), ParquetError> {
        if self.group.rows() > 0 {
            self.group.write_group(&mut self.writer)?;
            self.group = self.format.empty()?;
        }
        Ok(())
    }

    fn close(mut self) -> Result<(), ParquetError> {
        self.end_group()?;
        self.writer.close().map(drop)
    }
}

/// Returns a function that tells a refusal of the system from content that does not fit.
fn encoding(path: &Path) -> impl FnOnce(ParquetError) -> WriteError + '_ {
    move |error| match error {
        ParquetError::External(cause) if cause.is::<std::io::Error>() => {
            match cause.downcast::<std::io::Error>() {
                Ok(cause) => failed(Step::Write, path)(*cause).into(),
                Err(cause) => unfit(path)(cause),
            }
        }
        error => unfit(path)(error),
    }
}

/// Returns a function that turns what does not fit into the file at `path` into a [`WriteError`].
pub(crate) fn unfit<E: Into<Unfit>>(path: &Path) -> impl FnOnce(E) -> WriteError + '_ {
    move |cause| WriteError::Encode {
        path: path.to_owned(),
        cause: cause.into(),
    }
}
