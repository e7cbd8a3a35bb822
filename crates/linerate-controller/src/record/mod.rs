//! Where a run is written: a bundle on disk, or memory.

use std::borrow::Cow;
use std::path::Path;

use linerate_model::run::{Recording, RunDocument, TrialEvidence};
use linerate_model::samples::Samples;
use linerate_store::{ReadError, WriteError, Writer};

use crate::event::RunEvent;

/// Takes a run down as it happens.
pub enum Recorder {
    /// On disk, safe after each trial.
    Bundle(Box<Writer>),
    /// In memory, for a single measurement that nobody asked to keep.
    Memory(Box<Recording>),
    /// On a disk that fails, for tests.
    #[cfg(test)]
    Afflicted(Box<Recorder>, crate::faults::Disk),
}

impl Recorder {
    /// Returns a recorder that makes the bundle `directory`.
    pub fn bundle(directory: &Path, document: &RunDocument) -> Result<Self, WriteError> {
        Ok(Self::Bundle(Box::new(Writer::create(directory, document)?)))
    }

    /// Returns a recorder that keeps everything in memory.
    pub fn memory(document: &RunDocument) -> Self {
        Self::Memory(Box::new(Recording {
            document: document.clone(),
            trials: Vec::new(),
            flows: Vec::new(),
            samples: Samples::default(),
            profiles: Vec::new(),
            captures: Vec::new(),
            events: Vec::new(),
            damage: Vec::new(),
        }))
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
            Self::Bundle(writer) => {
                kept.map_or(Ok(()), |kept| writer.event(&kept))?;
                match event {
                    RunEvent::TrialEnded { evidence, .. } => writer.append(&evidence),
                    RunEvent::PlanChanged(document) => writer.update(document),
                    _ => Ok(()),
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

    /// Returns what has been taken down so far.
    pub fn so_far(&mut self, document: &RunDocument) -> Result<Cow<'_, Recording>, ReadError> {
        match self {
            Self::Bundle(writer) => linerate_store::read(writer.directory()).map(Cow::Owned),
            #[cfg(test)]
            Self::Afflicted(inner, _) => inner.so_far(document),
            Self::Memory(recording) => {
                recording.document = document.clone();
                Ok(Cow::Borrowed(&**recording))
            }
        }
    }

    /// Closes the run; returns the recording if it was kept in memory.
    pub fn finish(self, document: &RunDocument) -> Result<Option<Recording>, WriteError> {
        match self {
            Self::Bundle(writer) => writer.finish(document).map(|()| None),
            #[cfg(test)]
            Self::Afflicted(inner, _) => inner.finish(document),
            Self::Memory(mut recording) => {
                recording.document = document.clone();
                Ok(Some(*recording))
            }
        }
    }
}

fn add(recording: &mut Recording, evidence: TrialEvidence) {
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
