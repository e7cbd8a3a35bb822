//! The reader: everything that is there, and what is not.
//!
//! It understands a finished bundle, one that a crash left in parts, and any mixture. Only a
//! missing or unreadable `run.json` is an error, since nothing else says what the rest means;
//! every other loss is a line in [`Recording::damage`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use linerate_model::TrialId;
use linerate_model::capture::TrialCapture;
use linerate_model::number;
use linerate_model::profile::TrialProfile;
use linerate_model::run::{BUNDLE_FORMAT_OF_FLEETS, FlowRecord, Recording, RunDocument};
use serde::Deserialize;

use crate::durable::{self, FileError, Step, failed};
use crate::events;
use crate::layout::{EVENTS, PARTIAL, RUN, TableName};
use crate::rows::trials::StoredTrial;
use crate::rows::{Odd, captures, flows, format_of, stacks, trials};
use crate::spool::Gathering;
use crate::table::{Table, TableFile};

/// The first format that there was.
const FORMAT_FIRST: u32 = 1;

/// Largest document, and largest list of events: those of a study have some megabytes.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Why a bundle cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no `run.json`.
    #[error("cannot read {path}: there is no run.json in it, so it is not an evidence bundle")]
    NotABundle {
        /// The directory.
        path: PathBuf,
    },
    /// The system refused a step.
    #[error(transparent)]
    File(#[from] FileError),
    /// `run.json` is not what it should be.
    #[error("cannot understand {path}")]
    Document {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        cause: serde_json::Error,
    },
    /// No version wrote such a bundle.
    #[error(
        "cannot read {path}: it has bundle format {found}, and the first there was is {FORMAT_FIRST}; \
         take it from a copy of the bundle"
    )]
    NoFormat {
        /// The file with the number.
        path: PathBuf,
        /// Its number.
        found: u32,
    },
    /// A later version wrote the bundle.
    #[error(
        "cannot read {path}: it has bundle format {found}, and this version reads up to {BUNDLE_FORMAT_OF_FLEETS}; \
         use a newer linerate"
    )]
    Newer {
        /// The file with the number.
        path: PathBuf,
        /// Its number.
        found: u32,
    },
}

/// Reads the bundle in `dir`: everything that can be read, and what cannot.
pub fn read(dir: &Path) -> Result<Recording, ReadError> {
    let document = read_document(dir)?;
    let trials = document.plan.trials.iter().map(|trial| trial.id);
    let place = Place {
        dir,
        planned: trials.collect(),
    };
    let mut damage = Vec::new();
    let mut stored: Vec<StoredTrial> = Vec::new();
    read_table(&place, TableName::Trials, &mut damage, |table, odd| {
        trials::read(table, &mut stored, odd);
    });
    let mut flows: Vec<FlowRecord> = Vec::new();
    read_table(&place, TableName::Flows, &mut damage, |table, odd| {
        flows::read(table, &mut flows, odd);
    });
    let mut gathering = Gathering::new(dir);
    read_table(&place, TableName::Samples, &mut damage, |table, odd| {
        gathering.take(table, odd);
    });
    let mut profiles: Vec<TrialProfile> = Vec::new();
    read_table(&place, TableName::Stacks, &mut damage, |table, odd| {
        stacks::read(table, &mut profiles, odd);
    });
    profiles.sort_by_key(|profile| profile.trial);
    let mut captures: Vec<TrialCapture> = Vec::new();
    read_table(&place, TableName::Captures, &mut damage, |table, odd| {
        captures::read(table, &mut captures, odd);
    });
    captures.sort_by_key(|capture| capture.trial);
    let lost = captures.iter().filter_map(|capture| {
        let path = capture_path(dir, capture).filter(|path| !path.is_file())?;
        Some(format!(
            "{} is missing",
            path.strip_prefix(dir).unwrap_or(&path).display()
        ))
    });
    damage.extend(lost);
    // What is sorted already, as always in a whole bundle, stays.
    stored.sort_by_key(|trial| trial.record.trial);
    damage.extend(twice(&mut stored));
    flows.sort_by_key(|flow| flow.trial);
    missing_rows(&stored, &flows, &gathering.counts, &mut damage);
    let events = read_events(dir, &mut damage);
    Ok(Recording {
        document,
        trials: stored.into_iter().map(|trial| trial.record).collect(),
        flows,
        samples: gathering.samples(),
        profiles,
        captures,
        events,
        damage,
    })
}

/// Returns where the bundle in `dir` has the file of a capture, if there is one.
pub fn capture_path(dir: &Path, capture: &TrialCapture) -> Option<PathBuf> {
    let file = capture.file.as_deref()?;
    Some(dir.join(file))
}

fn read_document(dir: &Path) -> Result<RunDocument, ReadError> {
    /// The part of the document that every version can read.
    #[derive(Deserialize)]
    struct Numbered {
        format: u32,
    }

    let path = dir.join(RUN);
    let text = match durable::read(&path, TEXT_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && dir.is_dir() => {
            let path = dir.to_owned();
            return Err(ReadError::NotABundle { path });
        }
        Err(error) => return Err(failed(Step::Read, &path)(error).into()),
    };
    let document = |cause| ReadError::Document {
        path: path.clone(),
        cause,
    };
    let Numbered { format } = serde_json::from_slice(&text).map_err(document)?;
    if format < FORMAT_FIRST {
        return Err(ReadError::NoFormat {
            path,
            found: format,
        });
    }
    if format > BUNDLE_FORMAT_OF_FLEETS {
        return Err(ReadError::Newer {
            path,
            found: format,
        });
    }
    serde_json::from_slice(&text).map_err(document)
}

/// Where a bundle lies, and the trials that it may have.
struct Place<'d> {
    dir: &'d Path,
    planned: BTreeSet<TrialId>,
}

/// Leaves out what stands twice of sorted trials, and tells of it: each is reduced with all samples of its number.
fn twice(stored: &mut Vec<StoredTrial>) -> Option<String> {
    let all = stored.len();
    stored.dedup_by_key(|trial| trial.record.trial);
    let left_out = all - stored.len();
    (left_out > 0).then(|| {
        let rows = number::counted(left_out, "row");
        format!("trials.parquet: {rows} left out because of a trial that stands there before")
    })
}

/// Passes every readable row group of `name` to `take`: the final table's, then those of parts.
///
/// A part is that of a trial of the plan, and has rows of no other: there are no more of them than trials.
fn read_table(
    Place { dir, planned }: &Place<'_>,
    name: TableName,
    damage: &mut Vec<String>,
    mut take: impl FnMut(&Table, &mut Odd),
) {
    let mut odd = Odd::new();
    let mut seen = BTreeSet::new();
    let partial = dir.join(PARTIAL);
    let parts = name.partials(&partial).unwrap_or_else(|error| {
        damage.push(format!("{PARTIAL}/ cannot be listed ({error})"));
        Vec::new()
    });
    let file = dir.join(name.file());
    if file.exists() {
        read_file(&file, &name.file(), name, damage, |table| {
            seen.extend(
                table
                    .trials()
                    .iter()
                    .map(|trial| TrialId(trial.cast_unsigned())),
            );
            take(table, &mut odd);
        });
    } else if !partial.exists() && !name.is_optional() {
        damage.push(format!("{} is missing", name.file()));
    }
    let mut unplanned = 0u64;
    let mut foreign = 0u64;
    for (trial, path) in parts {
        if seen.contains(&trial) {
            continue;
        }
        if !planned.contains(&trial) {
            unplanned += 1;
            continue;
        }
        let label = format!("{PARTIAL}/{}", name.partial_file(trial));
        read_file(&path, &label, name, damage, |table| {
            let mut trials = table.trials().iter();
            if trials.all(|of| of.cast_unsigned() == trial.0) {
                take(table, &mut odd);
            } else {
                foreign += table.rows() as u64;
            }
        });
    }
    if unplanned > 0 {
        let parts = number::counted(unplanned, "part");
        damage.push(format!(
            "{PARTIAL}/: {parts} of {} left out because of trials that the plan does not have",
            name.file()
        ));
    }
    if foreign > 0 {
        let rows = number::counted(foreign, "row");
        let what = name.word();
        damage.push(format!(
            "{PARTIAL}/: {rows} of {what} left out because of another trial than their file's"
        ));
    }
    damage.extend(odd.iter().map(|(what, rows)| {
        let rows = number::counted(*rows, "row");
        format!("{}: {rows} left out because of {what}", name.file())
    }));
}

/// Passes every readable row group of the file at `path` to `take`.
fn read_file(
    path: &Path,
    label: &str,
    name: TableName,
    damage: &mut Vec<String>,
    mut take: impl FnMut(&Table),
) {
    let opened = durable::open(path)
        .map_err(|error| error.to_string())
        .and_then(|file| {
            TableFile::open(file, format_of(name), name.rows_max())
                .map_err(|error| error.to_string())
        });
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            damage.push(format!(
                "{label} cannot be read ({error}); all of it is lost"
            ));
            return;
        }
    };
    for group in 0..file.groups() {
        if let Err(error) = file.read_group(group, |table| take(&table)) {
            damage.push(format!(
                "{label}: part {} of {} with {} cannot be read ({error})",
                group + 1,
                file.groups(),
                number::counted(file.rows_of(group), "row")
            ));
        }
    }
}

/// Tells of rows that trials should have and that are not there, and of rows without a trial.
fn missing_rows(
    stored: &[StoredTrial],
    flows: &[FlowRecord],
    of_samples: &BTreeMap<TrialId, u64>,
    damage: &mut Vec<String>,
) {
    let of_flows = count(flows.iter().map(|flow| flow.trial));
    let expected_flows: fn(&StoredTrial) -> u64 = |trial| trial.flow_rows;
    let kinds = [
        ("flow", &of_flows, expected_flows),
        ("sample", of_samples, |trial| trial.sample_rows),
    ];
    for (what, found, expected) in kinds {
        let mut short = Vec::new();
        let mut rows = 0u64;
        for trial in stored {
            let expected = expected(trial);
            let got = found.get(&trial.record.trial).copied().unwrap_or(0);
            if got < expected {
                short.push(trial.record.trial);
                // Of a stranger's file: the counts of two trials may be any two numbers.
                rows = rows.saturating_add(expected - got);
            }
        }
        if !short.is_empty() {
            let are = if rows == 1 { "is" } else { "are" };
            let rows = number::counted(rows, what);
            damage.push(format!("{rows} of {} {are} lost", TrialId::list(&short)));
        }
        let known: BTreeSet<TrialId> = stored.iter().map(|trial| trial.record.trial).collect();
        let orphans: Vec<TrialId> = found
            .keys()
            .filter(|t| !known.contains(t))
            .copied()
            .collect();
        if !orphans.is_empty() {
            let orphans = TrialId::list(&orphans);
            damage.push(format!(
                "the record of {orphans} is lost, its {what}s are kept"
            ));
        }
    }
}

/// Returns how often each trial occurs.
fn count(trials: impl Iterator<Item = TrialId>) -> BTreeMap<TrialId, u64> {
    let mut counts = BTreeMap::new();
    for trial in trials {
        *counts.entry(trial).or_default() += 1;
    }
    counts
}

fn read_events(dir: &Path, damage: &mut Vec<String>) -> Vec<linerate_model::run::Event> {
    match durable::read(&dir.join(EVENTS), TEXT_BYTES_MAX) {
        Ok(text) => {
            let (events, told) = events::parse(&text);
            damage.extend(told);
            events
        }
        Err(error) => {
            damage.push(format!(
                "{EVENTS} cannot be read ({error}); all events are lost"
            ));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::run::{TrialRecord, Validity};

    use super::*;

    #[test]
    fn counts_of_a_strangers_trials_may_be_any_numbers() {
        let stored = |id| StoredTrial {
            record: TrialRecord {
                trial: TrialId(id),
                validity: Validity::Valid,
                flags: Vec::new(),
                offset_ns: 0,
                window_ns: 1,
                start_skew_ns: None,
                start_skew_uncertainty_ns: None,
            },
            flow_rows: u64::MAX,
            sample_rows: 0,
        };
        let mut damage = Vec::new();
        missing_rows(&[stored(1), stored(2)], &[], &BTreeMap::new(), &mut damage);
        let [told] = damage.as_slice() else {
            panic!("{damage:?}");
        };
        assert!(told.ends_with("flows of trials #1, #2 are lost"), "{told}");
    }
}
