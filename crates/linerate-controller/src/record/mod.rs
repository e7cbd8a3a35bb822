//! Where a run is written: a bundle on disk, or memory.

use std::borrow::Cow;
use std::path::Path;

use linerate_model::capture::TrialCapture;
use linerate_model::profile::TrialProfile;
use linerate_model::run::{Event, FlowRecord, Recording, RunDocument, TrialRecord};
use linerate_model::sample::TrialSample;
use linerate_model::samples::Samples;
use linerate_store::{ReadError, WriteError, Writer};

/// What one trial left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialEvidence {
    /// Whether it may be averaged, and its window.
    pub record: TrialRecord,
    /// Its flows, both ends.
    pub flows: Vec<FlowRecord>,
    /// Its samples.
    pub samples: Samples,
    /// Where the CPUs of its hosts were found, if that was asked for.
    pub profiles: Vec<TrialProfile>,
    /// What its hosts captured, and the files; empty if that was not asked for.
    pub captures: Vec<(TrialCapture, Vec<u8>)>,
}

/// Takes a run down as it happens.
pub enum Recorder {
    /// On disk, safe after each trial.
    Bundle(Box<Writer>),
    /// In memory, for a single measurement that nobody asked to keep.
    Memory(Box<Recording>),
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

    /// Takes down one trial.
    pub fn append(&mut self, evidence: TrialEvidence) -> Result<(), WriteError> {
        match self {
            Self::Bundle(writer) => {
                let samples: Vec<TrialSample> = evidence.samples.iter().collect();
                writer.profiles(evidence.record.trial, &evidence.profiles)?;
                writer.captures(evidence.record.trial, evidence.captures)?;
                writer.append(&evidence.record, &evidence.flows, &samples)
            }
            Self::Memory(recording) => {
                recording.trials.push(evidence.record);
                recording.samples.append(evidence.samples);
                recording.profiles.extend(evidence.profiles);
                // What has no bundle keeps no files.
                let captures = evidence.captures.into_iter();
                recording
                    .captures
                    .extend(captures.map(|(capture, _)| capture));
                // Of the only trial of a run there may be tens of thousands: moved, not copied.
                match recording.flows.is_empty() {
                    true => recording.flows = evidence.flows,
                    false => recording.flows.extend(evidence.flows),
                }
                Ok(())
            }
        }
    }

    /// Takes down one event.
    pub fn event(&mut self, event: &Event) -> Result<(), WriteError> {
        match self {
            Self::Bundle(writer) => writer.event(event),
            Self::Memory(recording) => {
                recording.events.push(event.clone());
                Ok(())
            }
        }
    }

    /// Takes down that the plan has changed.
    pub fn update(&mut self, document: &RunDocument) -> Result<(), WriteError> {
        match self {
            Self::Bundle(writer) => writer.update(document),
            Self::Memory(recording) => {
                recording.document = document.clone();
                Ok(())
            }
        }
    }

    /// Returns what has been taken down so far.
    pub fn so_far(&mut self, document: &RunDocument) -> Result<Cow<'_, Recording>, ReadError> {
        match self {
            Self::Bundle(writer) => linerate_store::read(writer.directory()).map(Cow::Owned),
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
            Self::Memory(mut recording) => {
                recording.document = document.clone();
                Ok(Some(*recording))
            }
        }
    }
}
