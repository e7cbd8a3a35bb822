//! What a result is held against: a baseline, and what it must not be.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_analyze::compared::{RunDocumentHead, RunDocumentRead, RunSide, compared};
use linerate_analyze::condition::{self, Fate, Judged};
use linerate_model::compared::Compared;
use linerate_model::condition::Condition;
use linerate_model::finding::TrustLevel;
use linerate_model::run::Recording;

use crate::bundle;
use crate::exit::{CmdResult, Exit, Failure};

/// Largest document of a run that is read: 10 000 flows in full are 65 MB.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;
/// What a run is called that was just measured.
const THIS: &str = "this run";

/// What a result is held against, as meant.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// The run that it is compared with.
    pub baseline: Option<RunSide>,
    /// What is worse by more than this is a regression.
    pub threshold: Option<f64>,
    /// What it must not be.
    pub conditions: Vec<Condition>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// The result against the baseline.
    pub compared: Option<Compared>,
    /// What became of each condition.
    pub conditions: Vec<Judged>,
}

impl Gate {
    /// Holds a result against it.
    pub fn judge(&self, recording: &Recording) -> Verdicts {
        let against = |baseline: &RunSide| {
            let margins = recording.document.plan.margins;
            let base = if margins.is_default() {
                baseline.clone()
            } else {
                baseline.clone().judged_by(margins)
            };
            let this = RunSide::of_recording(recording, THIS);
            compared(&[base, this], self.threshold)
        };
        let conditions = self.conditions.iter();
        Verdicts {
            compared: self.baseline.as_ref().map(against),
            conditions: conditions
                .map(|one| condition::judge(one, recording))
                .collect(),
        }
    }
}

/// What is said where no number of one run has its like in the other.
pub const NOTHING_COMPARED: &str = "nothing could be compared";

impl Verdicts {
    /// Returns what to say of it, line by line.
    pub fn lines(&self) -> Vec<String> {
        let text = self.compared.as_ref().map(linerate_report::compared_text);
        let is_nothing = |compared: &&Compared| exit_of(compared) == Exit::Failed;
        let nothing = self.compared.as_ref().filter(is_nothing);
        let nothing = nothing.map(|_| NOTHING_COMPARED.to_owned());
        let conditions = self.conditions.iter().map(Judged::line);
        text.into_iter().chain(nothing).chain(conditions).collect()
    }

    /// Returns what a run that would end with `exit` ends with. Numbers that may not be used are neither worse nor
    /// good enough.
    pub fn exit(&self, exit: Exit) -> Exit {
        let is = |outcome: Fate| self.conditions.iter().any(|one| one.outcome == outcome);
        let compared = self.compared.as_ref().map_or(Exit::Ok, exit_of);
        match exit {
            Exit::Ok if compared == Exit::Worse || is(Fate::Met) => Exit::Worse,
            Exit::Ok if is(Fate::NotDecided) => Exit::Untrustworthy,
            Exit::Ok => compared,
            other => other,
        }
    }
}

/// Returns what a comparison ends with: a gate that compares nothing must not pass.
pub fn exit_of(compared: &Compared) -> Exit {
    let is_usable = |at: usize| compared.sides[at].trust != TrustLevel::DoNotUse;
    let mut usable = compared.pairs.iter();
    match () {
        () if compared.regressions > 0 => Exit::Worse,
        () if compared.pairs.is_empty() => Exit::Failed,
        () if !usable.all(|pair| is_usable(pair.base) && is_usable(pair.of)) => Exit::Untrustworthy,
        () => Exit::Ok,
    }
}

/// Reads a run: the directory of a bundle, or a document that `linerate run -J` printed.
pub fn read(path: &Path) -> CmdResult<RunSide> {
    let name = path.display().to_string();
    if path.is_dir() {
        return Ok(RunSide::of_recording(&bundle::read(path)?, &name));
    }
    let next = "name the directory of a bundle, or a file with one document of `linerate run -J`";
    let wrong = |error: anyhow::Error| Failure::failed(error).next(next);
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = opened
        .with_context(|| format!("cannot read {name}"))
        .map_err(wrong)?;
    // A pipe has no length, and would be waited for.
    if !metadata.is_file() || metadata.len() > DOCUMENT_BYTES_MAX {
        return Err(wrong(anyhow!("{name} is no file of at most 256 MiB")));
    }
    let text = std::io::read_to_string(file)
        .with_context(|| format!("cannot read {name}"))
        .map_err(wrong)?;
    let none = || format!("{name} is no document of `linerate run -J`");
    let head: RunDocumentHead = serde_json::from_str(&text)
        .with_context(none)
        .map_err(wrong)?;
    if let Some(why) = head.unreadable() {
        return Err(wrong(anyhow!("cannot compare {name}: {why}")));
    }
    let document: RunDocumentRead = serde_json::from_str(&text)
        .with_context(none)
        .map_err(wrong)?;
    Ok(RunSide::of_document(document, &name))
}
