//! `linerate run --loaded`: latency alone, and beside bulk in each direction.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_analyze::groups::Reduced;
use linerate_analyze::loaded::Loaded;
use linerate_controller::{Audience, Fleet, RunEvent};

use super::execute::{Driven, drive, report};
use crate::bundle;
use crate::exit::{CmdResult, Exit, Failure, OF_INTERRUPTED};
use crate::meant::Measurement;
use crate::term::{self, loaded, single::Form};

/// Measures, shows the result, and writes the report of what was kept.
///
/// `concluded` says whether the result was shown.
pub(super) fn measure(
    asked: &Measurement,
    fleet: Fleet,
    stop: &AtomicBool,
    concluded: &mut bool,
) -> CmdResult {
    let is_text = asked.output.form == Form::Text;
    let audience = Audience {
        judge: None,
        prove: None,
        watch: &mut |event| match event {
            RunEvent::RunBegan(document) if is_text => loaded::heading(document),
            RunEvent::HostLost { host, wait } => term::note(&term::lost(host, *wait)),
            RunEvent::HostQueued { host, place } => term::note(&term::queued(host, *place)),
            _ => {}
        },
    };
    let directory = asked.directory.as_deref();
    let Driven { recording, unkept } = drive(&asked.request, fleet, directory, stop, audience)?;
    let Some(mut result) = linerate_analyze::loaded::loaded(&recording) else {
        let why = recording.document.cut_short;
        let why = why.unwrap_or_else(|| "no trial with bulk was measured".to_owned());
        return Err(Failure::failed(anyhow!("{why}")).next("measure again"));
    };
    let is_interrupted = stop.load(Ordering::Relaxed);
    if is_interrupted && result.is_empty() {
        let nothing = Failure {
            exit: Exit::Interrupted,
            ..Failure::failed(anyhow!("nothing was measured: interrupted"))
        };
        return Err(nothing.next(OF_INTERRUPTED));
    }
    let verdicts = asked.gate.judge(&recording);
    result.conditions.clone_from(&verdicts.conditions);
    *concluded = true;
    show(&result, asked.output.form);
    if let Some(failure) = unkept {
        return Err(failure);
    }
    if let Some(directory) = directory {
        let reduced = Reduced::of(&recording);
        let analysis = bundle::analysis(&reduced, directory);
        let file = report(directory, &reduced, &analysis)?;
        term::note(&format!("report in {}", file.display()));
    }
    let exit = bundle::exit_of(&recording, result.trust, is_interrupted);
    match exit {
        Exit::Failed => {
            let why = result.reasons.first().cloned();
            let why = why.unwrap_or_else(|| "the measurement is not valid".to_owned());
            Err(Failure::failed(anyhow!("{why}")).next("fix the cause above and run again"))
        }
        exit => Ok(verdicts.exit(exit)),
    }
}

/// Shows the result.
pub(super) fn show(result: &Loaded, form: Form) {
    match form {
        Form::Text => loaded::print(result),
        _ => term::json_document(result),
    }
}
