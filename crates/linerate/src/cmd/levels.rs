//! Levels of one run: `linerate run HOST -C cubic,bbr`, in blocks of shuffled order.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_analyze::compared::levels;
use linerate_analyze::groups::Reduced;
use linerate_controller::{Audience, Fleet, Judgement, RunEvent};
use linerate_model::compared::Compared;
use linerate_model::finding::TrustLevel;
use linerate_model::reason::HostFailure;
use linerate_model::run::Recording;

use super::execute::{self, Driven, drive};
use crate::bundle;
use crate::exit::{CmdResult, Exit, Failure, OF_REFUSED};
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
            ..Judgement::default()
        }
    };
    let mut refused = None;
    let audience = Audience {
        judge: Some(&mut judge),
        prove: None,
        watch: &mut |event: &RunEvent<'_>| {
            progress.take(event);
            // What a host refuses of a level, it refuses in every block.
            if let RunEvent::TrialEnded { evidence, .. } = event
                && let Some(why) = evidence.record.validity.reason()
                && why.host_failure() == Some(HostFailure::Refused)
            {
                refused = Some(why.to_string());
                stop.store(true, Ordering::Relaxed);
            }
        },
    };
    let directory = asked.directory.as_deref();
    let driven = drive(&asked.request, fleet, directory, stop, audience);
    progress.clear();
    let Driven { recording, unkept } = driven?;
    if let Some(why) = refused {
        return Err(Failure::usage(anyhow!("a level cannot be measured: {why}")).next(OF_REFUSED));
    }
    let compared = levels(&recording);
    let verdicts = asked.gate.judge(&recording);
    show(&compared, asked.output.form);
    for line in verdicts.lines() {
        match asked.output.form {
            Form::Json => term::note(&line),
            _ => term::text(&line),
        }
    }
    if let Some(failure) = unkept {
        return Err(failure);
    }
    if let Some(directory) = directory {
        let reduced = Reduced::of(&recording);
        let analysis = bundle::analysis(&reduced, directory);
        let report = execute::report(directory, &reduced, &analysis)?;
        term::note(&format!("report in {}", report.display()));
    }
    let trust = compared
        .sides
        .first()
        .map_or(TrustLevel::DoNotUse, |side| side.trust);
    let exit = bundle::exit_of(&recording, trust, stop.load(Ordering::Relaxed));
    let is_one_sided = exit == Exit::Ok && compared.pairs.is_empty();
    Ok(if is_one_sided {
        Exit::Failed
    } else {
        verdicts.exit(exit)
    })
}

/// Shows which level is better.
pub(super) fn show(compared: &Compared, form: Form) {
    if form == Form::Json {
        term::json_document(compared);
    } else {
        term::text(&linerate_report::compared_text(compared));
    }
    let first = compared.sides.first();
    if let Some(side) = first.filter(|side| side.trust == TrustLevel::DoNotUse) {
        let why = side.trust_reasons.join("; ");
        term::note(&format!("do not use because {why}"));
    }
}
