//! One run, ready to be compared: from a recording, or from a document that `linerate run -J` printed.

use std::collections::BTreeMap;

use linerate_model::compared::Side;
use linerate_model::experiment::Cell;
use linerate_model::finding::{Estimate, Trust, TrustLevel};
use linerate_model::host::Snapshot;
use linerate_model::margin::Margins;
use linerate_model::run::{HostPart, Recording};
use linerate_model::workload::{Group, Workload};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::compare::interval::{deviation, mean, median_or_range, student_t_interval};
use crate::dataset::{CellOutcomes, Dataset, TAILS};
use crate::proof;
use crate::reduce::{describe, name};
use crate::single::SINGLE_SCHEMA;
use crate::trust::trust;
use crate::verdicts::REPLICATES_MIN;
use crate::words;
use crate::{diagnose, front, groups};

/// What `linerate run` calls its only experiment, and what that is called here of its documents.
const ONLY: &str = "run";

/// One run, ready to be compared.
#[derive(Debug, Clone)]
pub struct RunSide {
    /// As it was named.
    pub(super) name: String,
    run: String,
    started_utc: String,
    pub(super) version: String,
    partial: Option<String>,
    pub(super) trust: Trust,
    pub(super) margins: Margins,
    pub(super) cells: Vec<SideCell>,
    /// What is known of its hosts; nothing of a document's.
    pub(super) hosts: Vec<SideHost>,
}

/// A host of a run.
#[derive(Debug, Clone)]
pub(super) struct SideHost {
    pub(super) part: HostPart,
    /// The device that data flows used.
    pub(super) link: Option<String>,
    pub(super) link_bps: Option<f64>,
    /// That from the host, where it is another.
    pub(super) link_up_bps: Option<f64>,
    pub(super) facts: Snapshot,
}

/// A cell of a run.
#[derive(Debug, Clone)]
pub(super) struct SideCell {
    pub(super) experiment: String,
    pub(super) cell: Cell,
    pub(super) workload: Workload,
    /// What goes on at the same time.
    pub(super) beside: Vec<Group>,
    /// The responses that are compared, the one that the experiment is about first.
    pub(super) told: Vec<Values>,
    /// Trials that may be averaged.
    valid: usize,
    /// Why the first of those that may not, may not; absent where there is none.
    invalid: Option<String>,
}

/// A response of the valid trials of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    pub(super) response: String,
    /// The block of each trial ([`linerate_model::outcome::Outcome::block`]), and its value.
    pub(super) trials: Vec<((u32, bool), f64)>,
}

/// Returns whether so many trials have a spread to speak of.
pub(super) fn has_spread(trials: usize) -> bool {
    trials >= REPLICATES_MIN
}

impl Values {
    fn all(&self) -> Vec<f64> {
        self.trials.iter().map(|(_, value)| *value).collect()
    }

    /// Returns what the cell is told to have: the mean, or of a tail the median, which one bad trial does not rule.
    pub(super) fn centre(&self) -> Option<f64> {
        let centre = self.estimate().value;
        (!self.trials.is_empty()).then_some(centre)
    }

    /// Returns that with the spread of these trials alone.
    pub(super) fn estimate(&self) -> Estimate {
        let unit = describe(&self.response).unit;
        let values = self.all();
        let found = if TAILS.contains(&self.response.as_str()) {
            median_or_range(&values, unit)
        } else {
            student_t_interval(&values, unit)
        };
        found.unwrap_or(Estimate::point(f64::NAN, unit))
    }

    /// Returns the relative deviation of a trial.
    pub(super) fn share(&self) -> f64 {
        let values = self.all();
        deviation(&values) / mean(&values)
    }
}

impl SideCell {
    pub(super) fn values(&self, response: &str) -> Option<&Values> {
        self.told.iter().find(|values| values.response == response)
    }

    /// Returns experiment and levels in words.
    pub(super) fn what(&self) -> String {
        if self.cell.is_empty() {
            self.experiment.clone()
        } else {
            format!("{}, {}", self.experiment, words::whole_cell(&self.cell))
        }
    }

    /// Returns why it has no number, if it has none, for the run of this name.
    pub(super) fn unusable(&self, run: &str) -> Option<String> {
        if self.valid > 0 && !self.told.is_empty() {
            return None;
        }
        Some(match (&self.invalid, self.valid) {
            (Some(why), 0) => format!("no trial of {run} is valid: {why}"),
            _ => format!("{run} has no number of it"),
        })
    }
}

/// Returns the responses that are compared of such traffic, the one that it is about first.
///
/// Of requests that go by the clock their rate is what was asked for, and how long they take is the question.
fn responses(response: &str, workload: &Workload) -> Vec<String> {
    let more: &[&str] = match () {
        () if !workload.traffic.is_transactional() => &[],
        () if workload.manner.requests_per_s.is_some() => &[name::RTT_P50, name::RTT_P99],
        () => &[name::RTT_P99],
    };
    let mut all = vec![response.to_owned()];
    all.extend(
        more.iter()
            .filter(|one| **one != response)
            .map(|one| (*one).to_owned()),
    );
    all
}

impl RunSide {
    /// Returns the side of a recording; where trials have several groups, with the cells of each of them.
    pub fn of_recording(recording: &Recording, name: &str) -> Self {
        let recording = &*proof::measured(recording);
        let views = groups::views(recording);
        let sides = views.iter().map(|view| Self::of_one(&view.recording, name));
        let whole = sides.reduce(|first, other| Self {
            trust: first.trust.and(other.trust),
            cells: first.cells.into_iter().chain(other.cells).collect(),
            ..first
        });
        whole.unwrap_or_else(|| Self::of_one(recording, name))
    }

    fn of_one(recording: &Recording, name: &str) -> Self {
        let document = &recording.document;
        let dataset = Dataset::new(recording);
        let cell = |cell: &CellOutcomes<'_>| {
            let values = |response: String| {
                let value = |outcome: &linerate_model::outcome::Outcome| {
                    Some((outcome.block(), outcome.value(&response)?))
                };
                let trials: Vec<_> = cell.valid.iter().filter_map(value).collect();
                (!trials.is_empty()).then_some(Values { response, trials })
            };
            let told = responses(&cell.experiment.response, &cell.workload);
            let why = cell.invalid.first();
            SideCell {
                experiment: cell.experiment.name.clone(),
                cell: cell.cell.clone(),
                workload: cell.workload.clone(),
                beside: cell.experiment.beside.clone(),
                told: told.into_iter().filter_map(values).collect(),
                valid: cell.valid.len(),
                invalid: why.and_then(|it| Some(it.validity.reason()?.to_string())),
            }
        };
        let host = |host: &linerate_model::run::HostRecord| SideHost {
            part: host.part,
            link: host.link.clone(),
            link_bps: host.link_rate.map(|rate| rate.0),
            link_up_bps: host.link_up_rate.map(|rate| rate.0),
            facts: host.snapshot.clone(),
        };
        Self {
            name: name.to_owned(),
            run: document.run.0.clone(),
            started_utc: document.started_utc.clone(),
            version: document.version.clone(),
            partial: front::partial(&dataset),
            trust: trust(&dataset, &diagnose::told(&dataset)),
            margins: document.plan.margins,
            cells: dataset.cells.iter().map(cell).collect(),
            hosts: document.hosts.iter().map(host).collect(),
        }
    }

    /// Returns the side of a document of `linerate run -J`.
    pub fn of_document(document: RunDocumentRead, name: &str) -> Self {
        let workload = document.workload;
        let headline = workload.traffic.kind().about().headline;
        let valid = || {
            document
                .trials
                .iter()
                .enumerate()
                .filter(|(_, trial)| trial.valid)
        };
        let values = |response: String| {
            let value = |(at, trial): (usize, &TrialRead)| {
                let value = trial.responses.get(&response)?;
                Some(((at as u32 + 1, false), *value))
            };
            let trials: Vec<_> = valid().filter_map(value).collect();
            (!trials.is_empty()).then_some(Values { response, trials })
        };
        let invalid = document.trials.iter();
        let mut invalid = invalid.filter_map(|trial| trial.invalid.clone());
        let cell = SideCell {
            experiment: ONLY.to_owned(),
            cell: Cell::new(),
            told: responses(headline, &workload)
                .into_iter()
                .filter_map(values)
                .collect(),
            valid: valid().count(),
            invalid: invalid.next(),
            workload,
            beside: Vec::new(),
        };
        let host = |host: &HostRead| SideHost {
            part: host.part,
            link: None,
            link_bps: host.link_bits_per_second,
            link_up_bps: host.link_up_bits_per_second,
            facts: Snapshot::default(),
        };
        Self {
            name: name.to_owned(),
            run: document.run,
            started_utc: document.started_utc,
            version: document.linerate_version,
            partial: document.partial,
            trust: document.trust.into(),
            margins: Margins::default(),
            cells: vec![cell],
            hosts: document.hosts.iter().map(host).collect(),
        }
    }

    /// Returns the cell that is the same as `like`, if it has one.
    pub(super) fn cell_like(&self, like: &SideCell) -> Option<&SideCell> {
        let mut cells = self.cells.iter();
        cells.find(|one| one.experiment == like.experiment && one.cell == like.cell)
    }

    /// Returns it as it is judged by whoever finds that so much matters.
    pub fn judged_by(self, margins: Margins) -> Self {
        Self { margins, ..self }
    }

    /// Returns why nothing is decided by its numbers, if nothing is.
    pub(super) fn unreliable(&self) -> Option<String> {
        let why = self.trust.reasons.first();
        let is_so = self.trust.level == TrustLevel::DoNotUse;
        is_so.then(|| match why {
            Some(why) => format!("{} is not to be used: {why}", self.name),
            None => format!("{} is not to be used", self.name),
        })
    }

    /// Returns what is told of it.
    pub(super) fn told(&self) -> Side {
        Side {
            name: self.name.clone(),
            run: self.run.clone(),
            started_utc: self.started_utc.clone(),
            version: self.version.clone(),
            trust: self.trust.level,
            trust_reasons: self.trust.reasons.clone(),
            partial: self.partial.clone(),
        }
    }
}

/// What is read first of a document: what it is.
#[derive(Debug, Deserialize)]
pub struct RunDocumentHead {
    schema: String,
    schema_version: u32,
    #[serde(default)]
    beside: Vec<IgnoredAny>,
}

/// What is read of a document that `linerate run -J` printed.
#[derive(Debug, Deserialize)]
pub struct RunDocumentRead {
    #[serde(default)]
    linerate_version: String,
    #[serde(default)]
    run: String,
    #[serde(default)]
    started_utc: String,
    #[serde(default)]
    hosts: Vec<HostRead>,
    workload: Workload,
    trials: Vec<TrialRead>,
    trust: TrustRead,
    #[serde(default)]
    partial: Option<String>,
}

#[derive(Debug, Deserialize)]
struct TrustRead {
    level: TrustLevel,
    #[serde(default)]
    reasons: Vec<String>,
}

impl From<TrustRead> for Trust {
    fn from(read: TrustRead) -> Self {
        Self {
            level: read.level,
            reasons: read.reasons,
        }
    }
}

#[derive(Debug, Deserialize)]
struct HostRead {
    part: HostPart,
    #[serde(default)]
    link_bits_per_second: Option<f64>,
    #[serde(default)]
    link_up_bits_per_second: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct TrialRead {
    valid: bool,
    #[serde(default)]
    invalid: Option<String>,
    #[serde(default)]
    responses: BTreeMap<String, f64>,
}

impl RunDocumentHead {
    /// Returns why it is no document of `linerate run -J` that this version reads, if it is none.
    pub fn unreadable(&self) -> Option<String> {
        let (schema, version) = SINGLE_SCHEMA;
        match (self.schema == schema, self.schema_version <= version) {
            (false, _) => Some(format!("its schema is {}, not {schema}", self.schema)),
            (_, false) => Some(format!(
                "its schema_version is {}, and this version reads up to {version}",
                self.schema_version
            )),
            (true, true) if !self.beside.is_empty() => {
                Some("it is of several groups of traffic, of which bundles are compared".to_owned())
            }
            (true, true) => None,
        }
    }
}
