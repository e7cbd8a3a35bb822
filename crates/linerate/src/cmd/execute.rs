//! Executing a plan on a gathered fleet: driving it, keeping what it left, showing what follows.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_controller::{Audience, Fleet, Judgement, Recorder, RunRequest, execute};
use linerate_model::analysis::Analysis;
use linerate_model::finding::TrustLevel;
use linerate_model::run::Recording;

use crate::exit::{CmdResult, Failure};
use crate::{bundle, term};

/// Executes what `request` asks for, writes bundle and report, prints the summary.
pub fn run(request: &RunRequest, fleet: Fleet, directory: &Path, stop: &AtomicBool) -> CmdResult {
    let mut progress = term::progress::PlanProgress::new(&request.plan);
    let audience = Audience {
        watch: &mut |event| progress.take(event),
        judge: Some(&mut judge),
    };
    let driven = drive(request, fleet, Some(directory), stop, audience);
    progress.clear();
    let Driven { recording } = driven?;
    let analysis = bundle::analysis(&recording, directory);
    // What a disk that is full now cannot take is not lost.
    show(&analysis, &directory.join("report.html"));
    report(directory, &recording, &analysis)?;
    let trust = analysis.trust.map_or(TrustLevel::Good, |trust| trust.level);
    let interrupted = stop.load(Ordering::Relaxed);
    Ok(bundle::exit_of(&recording, trust, interrupted))
}

/// Writes the report of a run that was shown already.
pub fn report(directory: &Path, recording: &Recording, analysis: &Analysis) -> CmdResult<PathBuf> {
    bundle::write(directory, recording, analysis).map_err(|failure| {
        let directory = directory.display();
        Failure::failed(failure.error).next(format!(
            "the result is above, and what was measured is in {directory}; once there is disk space, \
             `linerate report {directory}` writes the report"
        ))
    })
}

/// Prints what the report of a run, which is in `file`, says first: one screen.
pub fn show(analysis: &Analysis, file: &Path) {
    let file = file.display().to_string();
    let text = linerate_report::terminal_answer(analysis, &file, term::width(), term::color());
    term::line(text.trim_end());
}

/// What a run left.
pub struct Driven {
    /// What was recorded.
    pub recording: Recording,
}

/// Executes what was asked for and keeps it in `directory`, or in memory; the hosts are given back.
pub fn drive(
    request: &RunRequest,
    mut fleet: Fleet,
    directory: Option<&Path>,
    stop: &AtomicBool,
    audience: Audience<'_>,
) -> CmdResult<Driven> {
    let document = request.document(&fleet);
    let mut recorder = match directory {
        None => Recorder::memory(&document),
        Some(directory) => Recorder::bundle(directory, &document)
            .map_err(|error| Failure::failed(error).next("name another directory with --out"))?,
    };
    let result = execute(request, &mut fleet, &mut recorder, stop, audience);
    drop(fleet);
    linerate_agent::give_back_text();
    let mut document = result.map_err(|error| kept(directory, error.into()))?;
    bundle::ended(&mut document);
    let recording = recorder.finish(&document);
    let recording = recording.map_err(|error| kept(directory, error.into()))?;
    let recording = match (recording, directory) {
        (Some(recording), _) => recording,
        (None, Some(path)) => {
            bundle::read(path).map_err(|failure| kept(directory, failure.error))?
        }
        (None, None) => return Err(Failure::failed(anyhow!("the run was not recorded"))),
    };
    Ok(Driven { recording })
}

/// Returns the failure of a run whose bundle has what was measured before it.
fn kept(directory: Option<&Path>, error: anyhow::Error) -> Failure {
    let failure = Failure::failed(error);
    let Some(directory) = directory.map(Path::display) else {
        return failure;
    };
    failure.next(format!(
        "what was measured before is in {directory}; see it with `linerate report {directory}`"
    ))
}

/// Returns which experiments another block may still decide, and which trials were disturbed.
fn judge(recording: &Recording) -> Judgement {
    Judgement {
        open: linerate_analyze::open_experiments(recording),
        disturbed: linerate_analyze::disturbed(recording),
    }
}
