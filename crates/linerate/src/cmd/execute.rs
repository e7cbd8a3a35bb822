//! Executing a plan on a gathered fleet: driving it, keeping what it left, showing what follows.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_analyze::groups::{Known, Reduced};
use linerate_controller::{Audience, Fleet, Judgement, Recorder, RunRequest, execute};
use linerate_model::Nanos;
use linerate_model::analysis::Analysis;
use linerate_model::experiment::Level;
use linerate_model::finding::TrustLevel;
use linerate_model::run::{Recording, RunDocument, TrialEvidence};

use super::prove::Prover;
use crate::bundle::{self, Moment};
use crate::exit::{CmdResult, Failure};
use crate::gate::Gate;
use crate::shell::quoted_path;
use crate::term;

/// Executes what `request` asks for, writes bundle and report, prints the summary.
///
/// In time that the plan leaves, and within `prove`, what one connection carries is changed to prove what limits it.
pub fn run(
    request: &RunRequest,
    fleet: Fleet,
    directory: &Path,
    (gate, prove): (&Gate, Option<Nanos>),
    stop: &AtomicBool,
) -> CmdResult {
    let mut progress = term::progress::PlanProgress::new(&request.plan);
    let known = RefCell::new(Known::default());
    let mut prover = prove.map(Prover::new);
    let mut prove = prover.as_mut().map(|prover| {
        |recording: &Recording, left| prover.more(recording, left, &mut known.borrow_mut())
    });
    let audience = Audience {
        watch: &mut |event| progress.take(event),
        judge: Some(&mut |recording| judge(recording, &mut known.borrow_mut())),
        prove: prove.as_mut().map(|prove| prove as _),
    };
    let driven = drive(request, fleet, Some(directory), stop, audience);
    progress.clear();
    let Driven { recording, unkept } = driven?;
    let interrupted = stop.load(Ordering::Relaxed);
    let reduced = Reduced::of(&recording);
    let analysis = bundle::analysis(&reduced, directory);
    // What a disk that is full now cannot take is not lost.
    show(&recording, &analysis, &directory.join("report.html"));
    if let Some(failure) = unkept {
        return Err(failure);
    }
    report(directory, &reduced, &analysis)?;
    let trust = analysis.trust.map_or(TrustLevel::Good, |trust| trust.level);
    let exit = bundle::exit_of(&recording, trust, interrupted);
    let verdicts = gate.judge(&linerate_analyze::proof::measured(&recording));
    for line in verdicts.lines() {
        term::text(&line);
    }
    Ok(verdicts.exit(exit))
}

/// Writes the report of a run that was shown already.
pub fn report(directory: &Path, reduced: &Reduced<'_>, analysis: &Analysis) -> CmdResult<PathBuf> {
    bundle::write(directory, reduced, analysis).map_err(|failure| {
        let typed = quoted_path(directory);
        Failure::failed(failure.error).next(format!(
            "the result is above, and what was measured is in {}; once there is disk space, \
             `linerate report {typed}` writes the report",
            directory.display()
        ))
    })
}

/// Prints what the report of a run, which is in `file`, says first: one screen; and what was searched for.
pub fn show(recording: &Recording, analysis: &Analysis, file: &Path) {
    let file = file.display().to_string();
    let text = linerate_report::terminal_answer(analysis, &file, term::width(), term::color());
    term::line(text.trim_end());
    for (heading, lines) in linerate_analyze::adaptive::paths(recording) {
        term::line(&heading);
        lines
            .iter()
            .for_each(|line| term::text(&format!("  {line}")));
    }
    for proof in term::single::proofs(recording).all {
        term::text(&format!("one connection, {}", proof.line()));
    }
}

/// What a run left.
pub struct Driven {
    /// What was recorded.
    pub recording: Recording,
    /// Why its bundle has not all of that.
    pub unkept: Option<Failure>,
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
    let (mut document, failure) = match result {
        Ok(document) => (document, None),
        Err(error) => (request.document(&fleet), Some(anyhow::Error::from(error))),
    };
    drop(fleet);
    linerate_agent::give_back_text();
    let unkept = recorder.take_unkept();
    document.ended_utc = Some(Moment::now().rfc3339);
    let recorded = match failure {
        None => recorder.finish(&document).map_err(anyhow::Error::from),
        Some(error) => {
            document.cut_short = Some(format!("{error:#}"));
            Err(error)
        }
    };
    let (recording, unkept) = match (recorded, directory) {
        (Ok(Some(recording)), _) => (recording, None),
        (Ok(None), Some(path)) => {
            let read = bundle::read(path).map_err(|failure| kept(path, failure.error));
            (read?, None)
        }
        (Ok(None), None) => return Err(Failure::failed(anyhow!("the run was not recorded"))),
        (Err(error), None) => return Err(Failure::failed(error)),
        // What a disk that is full does not take was measured all the same.
        (Err(error), Some(path)) => {
            let recording = recovered(path, document, unkept);
            (recording, Some(unkept_in(path, error)))
        }
    };
    Ok(Driven { recording, unkept })
}

/// Returns what was measured of a run whose bundle could not be written to its end: what is there, and the
/// trial that is not; the bundle says how it ended, if there is room for that.
fn recovered(path: &Path, document: RunDocument, unkept: Option<TrialEvidence>) -> Recording {
    let mut recording = match bundle::read(path) {
        Ok(mut found) => {
            // What was repeated and left out on the way stands in what was written, if that is all there is.
            let plan = found.document.plan;
            found.document = document;
            found.document.plan = plan;
            let _ = linerate_store::write_run(path, &found.document);
            found
        }
        Err(_) => Recording::empty(document),
    };
    if let Some(evidence) = unkept {
        linerate_controller::add(&mut recording, evidence);
    }
    recording
}

/// Returns the failure of a run whose bundle has less than was measured.
fn unkept_in(directory: &Path, error: anyhow::Error) -> Failure {
    let typed = quoted_path(directory);
    Failure::failed(error).next(format!(
        "the result is above and may be nowhere else: {} has what was measured before, which \
         `linerate report {typed}` shows",
        directory.display()
    ))
}

/// Returns the failure of a run whose bundle has what was measured before it.
fn kept(directory: &Path, error: anyhow::Error) -> Failure {
    let typed = quoted_path(directory);
    Failure::failed(error).next(format!(
        "what was measured before is in {}; see it with `linerate report {typed}`",
        directory.display()
    ))
}

/// Returns which experiments another block may still decide, which trials are spoilt, and what searches measure next.
fn judge(recording: &Recording, known: &mut Known) -> Judgement {
    let reduced = Reduced::with(recording, known);
    let (next, searching) = linerate_analyze::adaptive::next_levels(&reduced);
    let plan = &recording.document.plan;
    let stage = |(name, level): &(String, Level)| {
        // A level that makes no workload ends its search, whose answer says that it ended early.
        linerate_plan::extension(plan, plan.experiment(name)?, level).ok()?
    };
    let open = linerate_analyze::open_experiments(&reduced);
    Judgement {
        open: open.into_iter().chain(searching).collect(),
        spoilt: linerate_analyze::spoilt(&reduced),
        stages: next.iter().filter_map(stage).collect(),
    }
}
