//! Levels of one run: `linerate run HOST -C cubic,bbr`, in blocks of shuffled order.

use std::sync::atomic::{AtomicBool, Ordering};

use linerate_analyze::compared::levels;
use linerate_controller::{Audience, Fleet, Judgement, RunEvent};
use linerate_model::finding::TrustLevel;
use linerate_model::run::Recording;

use super::execute::{self, Driven, drive};
use crate::bundle;
use crate::exit::{CmdResult, Exit};
use crate::meant::Measurement;
use crate::term;
use crate::term::progress::PlanProgress;
use crate::term::single::Form;

/// Measures the levels in turns, and says which is better.
pub fn measure(asked: &Measurement, fleet: Fleet, stop: &AtomicBool) -> CmdResult {
    let mut progress = PlanProgress::new(&asked.request.plan);
    // Further blocks stand for those of which a trial is invalid; what the others found does not matter to that.
    let wanted = *asked.runs.start();
    let mut judge = |recording: &Recording| {
        let pairs = levels(recording).pairs;
        let is_open = pairs.is_empty() || pairs.iter().any(|pair| pair.ratio.n < wanted);
        let experiments = recording.document.plan.experiments.iter();
        let open = experiments.filter(|_| is_open);
        Judgement {
            open: open.map(|experiment| experiment.name.clone()).collect(),
            spoilt: Vec::new(),
            stages: Vec::new(),
        }
    };
    let audience = Audience {
        judge: Some(&mut judge),
        watch: &mut |event: &RunEvent<'_>| progress.take(event),
    };
    let directory = asked.directory.as_deref();
    let driven = drive(&asked.request, fleet, directory, stop, audience);
    progress.clear();
    let Driven { recording, unkept } = driven?;
    let compared = levels(&recording);
    let verdicts = asked.gate.judge(&recording);
    if asked.output.form == Form::Json {
        term::json_document(&compared);
    } else {
        term::line(&linerate_report::compared_text(&compared));
    }
    for line in verdicts.lines() {
        match asked.output.form {
            Form::Json => term::note(&line),
            _ => term::line(&line),
        }
    }
    if let Some(failure) = unkept {
        return Err(failure);
    }
    if let Some(directory) = directory {
        let analysis = bundle::analysis(&recording, directory);
        let report = execute::report(directory, &recording, &analysis)?;
        term::note(&format!("report in {}", report.display()));
    }
    let trust = compared
        .sides
        .first()
        .map_or(TrustLevel::DoNotUse, |side| side.trust);
    if let Some(side) = compared
        .sides
        .first()
        .filter(|_| trust == TrustLevel::DoNotUse)
    {
        term::note(&format!(
            "do not use because {}",
            side.trust_reasons.join("; ")
        ));
    }
    let exit = bundle::exit_of(&recording, trust, stop.load(Ordering::Relaxed));
    let is_one_sided = exit == Exit::Ok && compared.pairs.is_empty();
    Ok(if is_one_sided {
        Exit::Failed
    } else {
        verdicts.exit(exit)
    })
}
