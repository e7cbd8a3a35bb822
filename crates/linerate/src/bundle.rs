//! The bundle of a run: its name, its report, and what a command ends with.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use linerate_analyze::groups::Reduced;
use linerate_model::RunId;
use linerate_model::analysis::Analysis;
use linerate_model::finding::TrustLevel;
use linerate_model::run::Recording;
use linerate_report::Extent;
use linerate_trace::capture::Reader;
use linerate_trace::chapter::{self, TracedCapture};
use linerate_trace::{Limits, Trace, Tracker};

use crate::exit::{CmdResult, Exit, Failure};

/// Captures that are read for a report.
const EXPLAINED_MAX: usize = 64;
/// Connections of each that are kept for it, those with the most payload.
const CONNECTIONS: usize = 8;

/// The moment a run begins, as text for people and files.
pub struct Moment {
    /// RFC 3339, UTC, whole seconds.
    pub rfc3339: String,
    /// `20261120T125330Z`.
    pub compact: String,
}

impl Moment {
    /// Returns the present moment.
    pub fn now() -> Self {
        let now = jiff::Timestamp::now();
        let second = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
        let rfc3339 = second.to_string();
        let compact = rfc3339.replace(['-', ':'], "");
        Self { rfc3339, compact }
    }
}

/// Returns a new run's identifier, and the seed that the user asked for or a random one.
pub fn new_run(moment: &Moment, seed: Option<u64>) -> CmdResult<(RunId, u64)> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random numbers: {error}"))?;
    let suffix = linerate_model::hex::encode(&bytes[..4]);
    let mut seed_bytes = [0; 8];
    seed_bytes.copy_from_slice(&bytes[4..]);
    // 53 bits survive every JSON reader.
    let random = u64::from_le_bytes(seed_bytes) >> 11;
    Ok((
        RunId(format!("{}-{suffix}", moment.compact)),
        seed.unwrap_or(random),
    ))
}

/// Returns the bundle's directory: the one asked for, or a name with the time in it.
pub fn directory(asked: Option<&Path>, kind: &str, moment: &Moment) -> PathBuf {
    let usual = || format!("linerate-{kind}-{}.bundle", moment.compact).into();
    asked.map_or_else(usual, Path::to_owned)
}

/// Refuses a directory that cannot become a bundle, before anything is measured.
pub fn check_new(directory: &Path) -> CmdResult<()> {
    let is_taken = match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => directory.exists(),
    };
    if is_taken {
        Err(Failure::usage(anyhow!(
            "{} exists already and is not an empty directory",
            directory.display()
        ))
        .next("name another directory with --out"))
    } else {
        Ok(())
    }
}

/// Writes the `report.html` and `results.parquet` of a bundle; returns the report's file.
pub fn write(directory: &Path, reduced: &Reduced<'_>, analysis: &Analysis) -> CmdResult<PathBuf> {
    let html = linerate_report::html(analysis, Extent::Answer);
    let file = linerate_store::write_report(directory, &html)?;
    linerate_store::write_results(directory, &reduced.outcomes())?;
    Ok(file)
}

/// Returns everything that the report of a bundle shows: what follows from its tables, and what its
/// captures show.
pub fn analysis(reduced: &Reduced<'_>, directory: &Path) -> Analysis {
    let analysis = linerate_analyze::analyze_reduced(reduced, false);
    with_captures(analysis, reduced.recorded(), directory)
}

/// Adds what the captures of a bundle show to what follows from its tables.
pub fn with_captures(mut analysis: Analysis, recording: &Recording, directory: &Path) -> Analysis {
    if !recording.captures.is_empty() {
        let captured = captured(recording, directory);
        analysis.chapters.push(chapter::chapter(&captured));
    }
    analysis
}

/// Explains the captures of a bundle, each by itself.
fn captured<'r>(recording: &'r Recording, directory: &Path) -> Vec<TracedCapture<'r>> {
    let captures = recording.captures.iter().enumerate();
    captures
        .map(|(at, capture)| TracedCapture {
            capture,
            trace: match linerate_store::capture_path(directory, capture) {
                None => Err("no file".to_owned()),
                Some(_) if at >= EXPLAINED_MAX => Err("not read for the report".to_owned()),
                Some(path) => explained(&path).map_err(|error| format!("{error:#}")),
            },
        })
        .collect()
}

/// Explains one capture: of the same bytes always the same.
fn explained(path: &Path) -> anyhow::Result<Trace> {
    // Without the path: the same bundle in another place gives the same report.
    let metadata = std::fs::metadata(path).context("its file cannot be opened")?;
    // A pipe in its place would be waited for.
    if !metadata.is_file() {
        return Err(anyhow!("it is not a regular file"));
    }
    let file = File::open(path).context("its file cannot be opened")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let limits = Limits {
        reported: CONNECTIONS,
        points: CONNECTIONS,
        ..Limits::default()
    };
    let mut tracker = Tracker::new(limits);
    tracker.read(&mut Reader::new(file)?, &name)?;
    Ok(tracker.finish())
}

/// Reads a bundle.
pub fn read(directory: &Path) -> CmdResult<Recording> {
    linerate_store::read(directory)
        .with_context(|| format!("cannot read the bundle {}", directory.display()))
        .map_err(|error| {
            Failure::failed(error)
                .next("name a directory that `linerate study` or `linerate run --out` made")
        })
}

/// Returns what a finished run that may be trusted so far deserves as exit code.
///
/// 1. Interrupted, where that is not how it was to end: 130. 2. Nothing valid, or ended by a lost host: 1. 3. Not to be used: 3. 4. Else 0.
pub fn exit_of(recording: &Recording, trust: TrustLevel, interrupted: bool) -> Exit {
    let is_measured = recording.trials.iter().any(|trial| trial.is_valid());
    match trust {
        _ if interrupted && !is_to_be_stopped(recording) => Exit::Interrupted,
        _ if !is_measured || recording.document.cut_short.is_some() => Exit::Failed,
        TrustLevel::DoNotUse => Exit::Untrustworthy,
        TrustLevel::Good | TrustLevel::Limited => Exit::Ok,
    }
}

/// Returns whether being stopped ended it as it was asked for.
fn is_to_be_stopped(recording: &Recording) -> bool {
    let whole = recording.document.cut_short.is_none();
    let trials = &recording.document.plan.trials;
    whole && trials.iter().any(|trial| trial.timing.is_until_stopped())
}
