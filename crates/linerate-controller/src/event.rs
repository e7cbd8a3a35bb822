//! What happens in a run, in order of time: one stream, of which each reader takes what it shows.
//!
//! Bundle and memory ([`crate::Recorder`]), lines, documents and bars of the terminal read the same
//! events; [`replay`] makes them again from a recording.

use linerate_model::plan::Trial;
use linerate_model::run::{Event, EventKind, Progress, Recording, RunDocument, TrialEvidence};
use linerate_model::samples::Samples;
use linerate_model::{HostName, Nanos};

/// One event of a run.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The hosts were gathered, and the plan is complete.
    RunBegan(&'a RunDocument),
    /// A trial begins.
    TrialBegan {
        /// The trial.
        trial: &'a Trial,
        /// How far the run has come.
        progress: Progress,
    },
    /// A look at the running trial.
    Samples {
        /// The trial.
        trial: &'a Trial,
        /// Time since the begin of the measured window; negative in the warm-up.
        at_ns: i64,
        /// New samples of each host since the last look, on the window's axis.
        hosts: &'a [Samples],
    },
    /// A trial is over.
    TrialEnded {
        /// The trial.
        trial: &'a Trial,
        /// What it left.
        evidence: Box<TrialEvidence>,
    },
    /// A host is gone, and the run waits for it.
    HostLost {
        /// The host.
        host: &'a HostName,
        /// For how long at the most.
        wait: Nanos,
    },
    /// Another run has a host by now, and this one waits in its queue.
    HostQueued {
        /// The host.
        host: &'a HostName,
        /// The place there, from 1.
        place: u32,
    },
    /// Trials are repeated, experiments go on or are decided.
    PlanChanged(&'a RunDocument),
    /// The run is over; its document says whether before its plan was.
    RunEnded(&'a RunDocument),
}

impl RunEvent<'_> {
    /// Returns the event as a bundle keeps it, `at_ns` after the start of the run. Samples are no event of
    /// their own there, nor are places in a queue.
    pub(crate) fn kept(&self, at_ns: u64) -> Option<Event> {
        let event = |what| Event {
            at_ns,
            trial: None,
            host: None,
            what,
        };
        Some(match self {
            Self::RunBegan(_) => event(EventKind::RunBegan),
            Self::TrialBegan { trial, progress } => Event {
                trial: Some(trial.id),
                ..event(EventKind::TrialBegan(*progress))
            },
            Self::Samples { .. } | Self::HostQueued { .. } => return None,
            Self::TrialEnded { trial, evidence } => {
                let invalid = evidence.record.validity.reason();
                Event {
                    trial: Some(trial.id),
                    host: invalid.and_then(|why| why.lost_host().cloned()),
                    ..event(EventKind::TrialEnded {
                        invalid: invalid.cloned(),
                    })
                }
            }
            Self::HostLost { host, wait } => Event {
                host: Some((*host).clone()),
                ..event(EventKind::HostLost { wait: *wait })
            },
            Self::PlanChanged(_) => event(EventKind::PlanChanged),
            Self::RunEnded(document) => event(EventKind::RunEnded {
                cut_short: document.cut_short.clone(),
            }),
        })
    }
}

/// Tells a stored run once more, as it was told live; the samples of a trial come at once.
pub fn replay(recording: &Recording, watch: &mut dyn FnMut(&RunEvent<'_>)) {
    let document = &recording.document;
    let trials = &document.plan.trials;
    watch(&RunEvent::RunBegan(document));
    for event in kept_events(recording) {
        let mut trials = trials.iter();
        let trial = trials.find(|trial| Some(trial.id) == event.trial);
        match (event.what, trial, event.host) {
            (EventKind::TrialBegan(progress), Some(trial), _) => {
                watch(&RunEvent::TrialBegan { trial, progress });
            }
            (EventKind::TrialEnded { .. }, Some(trial), _) => {
                replay_trial(recording, trial, watch);
            }
            (EventKind::HostLost { wait }, _, Some(host)) => {
                watch(&RunEvent::HostLost { host: &host, wait });
            }
            // What the plan was in between is not kept: as it was in the end.
            (EventKind::PlanChanged, _, _) => watch(&RunEvent::PlanChanged(document)),
            // Begin and end stand around the others; of a trial or a host that is not there nothing is known, and
            // words of older bundles are no event.
            (
                EventKind::RunBegan
                | EventKind::TrialBegan(_)
                | EventKind::TrialEnded { .. }
                | EventKind::HostLost { .. }
                | EventKind::RunEnded { .. }
                | EventKind::Told { .. },
                _,
                _,
            ) => {}
        }
    }
    watch(&RunEvent::RunEnded(document));
}

/// Returns the events of `recording`; those of the trials alone where it is of before events had a type.
fn kept_events(recording: &Recording) -> Vec<Event> {
    let is_typed = |event: &Event| matches!(event.what, EventKind::TrialBegan(_));
    if recording.events.iter().any(is_typed) {
        return recording.events.clone();
    }
    let of = recording.trials.len();
    let trials = recording.trials.iter().enumerate();
    let events = trials.flat_map(|(over, record)| {
        let kinds = [
            EventKind::TrialBegan(Progress {
                over,
                of,
                left: None,
            }),
            EventKind::TrialEnded { invalid: None },
        ];
        kinds.map(|what| Event {
            at_ns: record.offset_ns,
            trial: Some(record.trial),
            host: None,
            what,
        })
    });
    events.collect()
}

fn replay_trial(recording: &Recording, trial: &Trial, watch: &mut dyn FnMut(&RunEvent<'_>)) {
    // One that was done when the run was killed has no record.
    let mut records = recording.trials.iter();
    let Some(record) = records.find(|record| record.trial == trial.id) else {
        return;
    };
    let samples: Samples = recording.samples.of_trial(trial.id).collect();
    watch(&RunEvent::Samples {
        trial,
        at_ns: record.window_ns as i64,
        hosts: std::slice::from_ref(&samples),
    });
    let flows = recording.flows.iter().filter(|flow| flow.trial == trial.id);
    let evidence = Box::new(TrialEvidence {
        record: record.clone(),
        flows: flows.cloned().collect(),
        samples,
        profiles: Vec::new(),
        captures: Vec::new(),
    });
    watch(&RunEvent::TrialEnded { trial, evidence });
}
