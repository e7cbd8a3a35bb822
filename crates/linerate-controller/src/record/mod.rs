//! Where a run is written: a bundle on disk, or memory.

use std::path::Path;

use linerate_model::run::{Recording, RunDocument, TrialEvidence};
use linerate_store::{WriteError, Writer};

use crate::event::RunEvent;

/// Takes a run down as it happens.
pub enum Recorder {
    /// On disk, safe after each trial.
    Bundle(Box<Bundle>),
    /// In memory, for a single measurement that nobody asked to keep.
    Memory(Box<Recording>),
    /// On a disk that fails, for tests.
    #[cfg(test)]
    Afflicted(Box<Recorder>, crate::faults::Disk),
}

/// A bundle that is written.
pub struct Bundle {
    writer: Writer,
    /// The trial that the disk did not take, with which a run ends.
    unkept: Option<Box<TrialEvidence>>,
}

impl Recorder {
    /// Returns a recorder that makes the bundle `directory`.
    pub fn bundle(directory: &Path, document: &RunDocument) -> Result<Self, WriteError> {
        Ok(Self::Bundle(Box::new(Bundle {
            writer: Writer::create(directory, document)?,
            unkept: None,
        })))
    }

    /// Returns a recorder that keeps everything in memory.
    pub fn memory(document: &RunDocument) -> Self {
        Self::Memory(Box::new(Recording::empty(document.clone())))
    }

    /// Keeps an event that happened `at_ns` after the start of the run, with what it brings.
    pub(crate) fn keep(&mut self, at_ns: u64, event: RunEvent<'_>) -> Result<(), WriteError> {
        let kept = event.kept(at_ns);
        match self {
            #[cfg(test)]
            Self::Afflicted(inner, disk) => {
                disk.keep()?;
                inner.keep(at_ns, event)
            }
            Self::Bundle(bundle) => {
                let told = kept.map_or(Ok(()), |kept| bundle.writer.event(&kept));
                match event {
                    RunEvent::TrialEnded { evidence, .. } => {
                        let kept = told.and_then(|()| bundle.writer.append(&evidence));
                        bundle.unkept = kept.is_err().then_some(evidence);
                        kept
                    }
                    RunEvent::PlanChanged(document) => {
                        told.and_then(|()| bundle.writer.update(document))
                    }
                    _ => told,
                }
            }
            Self::Memory(recording) => {
                recording.events.extend(kept);
                match event {
                    RunEvent::TrialEnded { evidence, .. } => add(recording, *evidence),
                    RunEvent::PlanChanged(document) => recording.document = document.clone(),
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// Returns the directory of the bundle, if there is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Bundle(bundle) => Some(bundle.writer.directory()),
            Self::Memory(_) => None,
            #[cfg(test)]
            Self::Afflicted(inner, _) => inner.directory(),
        }
    }

    /// Returns the trial that was measured last and is on no disk, since that took no more.
    pub fn take_unkept(&mut self) -> Option<TrialEvidence> {
        match self {
            Self::Bundle(bundle) => bundle.unkept.take().map(|evidence| *evidence),
            #[cfg(test)]
            Self::Afflicted(inner, _) => inner.take_unkept(),
            Self::Memory(_) => None,
        }
    }

    /// Closes the run; returns the recording if it was kept in memory.
    pub fn finish(self, document: &RunDocument) -> Result<Option<Recording>, WriteError> {
        match self {
            Self::Bundle(bundle) => bundle.writer.finish(document).map(|()| None),
            #[cfg(test)]
            Self::Afflicted(inner, _) => inner.finish(document),
            Self::Memory(mut recording) => {
                recording.document = document.clone();
                Ok(Some(*recording))
            }
        }
    }
}

/// Adds what is known of one more trial.
pub fn add(recording: &mut Recording, evidence: TrialEvidence) {
    recording.trials.push(evidence.record);
    recording.samples.append(evidence.samples);
    recording.profiles.extend(evidence.profiles);
    // What has no bundle keeps no files.
    let captures = evidence.captures.into_iter();
    recording
        .captures
        .extend(captures.map(|(capture, _)| capture));
    // Of the only trial of a run there may be tens of thousands: moved, not copied.
    if recording.flows.is_empty() {
        recording.flows = evidence.flows;
    } else {
        recording.flows.extend(evidence.flows);
    }
}
