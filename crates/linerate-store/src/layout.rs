//! Names of the files of a bundle.

use std::path::{Path, PathBuf};

use linerate_model::TrialId;

/// The run document.
pub(crate) const RUN: &str = "run.json";
/// The events.
pub(crate) const EVENTS: &str = "events.ndjson";
/// The rendered report.
pub(crate) const REPORT: &str = "report.html";
/// Holds one file a trial and table until the run is finished.
pub(crate) const PARTIAL: &str = "partial";

/// The tables of a bundle, in the order in which a trial's parts are stored.
///
/// The trial's own row comes last: once it is there, everything of the trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableName {
    Samples,
    Stacks,
    Flows,
    Trials,
}

impl TableName {
    /// Every table.
    pub(crate) const ALL: [TableName; 4] = [
        TableName::Samples,
        TableName::Stacks,
        TableName::Flows,
        TableName::Trials,
    ];

    /// Returns whether a bundle without this table is whole: only runs that were asked for a profile
    /// have stacks.
    pub(crate) fn is_optional(self) -> bool {
        self == TableName::Stacks
    }

    /// Returns the word that both file names carry.
    pub(crate) fn word(self) -> &'static str {
        match self {
            TableName::Samples => "samples",
            TableName::Stacks => "stacks",
            TableName::Flows => "flows",
            TableName::Trials => "trials",
        }
    }

    /// Returns the table's file in a finished bundle.
    pub(crate) fn file(self) -> String {
        format!("{}.parquet", self.word())
    }

    /// Returns the name of one trial's part of the table, `trial-000001.samples.parquet`.
    pub(crate) fn partial_file(self, trial: TrialId) -> String {
        format!("trial-{:06}.{}.parquet", trial.0, self.word())
    }

    /// Returns the trial whose part of this table is stored under `name`.
    fn trial_of(self, name: &str) -> Option<TrialId> {
        let number = name
            .strip_prefix("trial-")?
            .strip_suffix(&format!(".{}.parquet", self.word()))?;
        number.parse().ok().map(TrialId)
    }

    /// Returns the parts of this table in the folder `partial`, ascending by trial.
    ///
    /// A folder that is not there has no parts.
    pub(crate) fn partials(self, partial: &Path) -> std::io::Result<Vec<(TrialId, PathBuf)>> {
        let entries = match std::fs::read_dir(partial) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut parts = Vec::new();
        for entry in entries {
            let entry = entry?;
            if let Some(trial) = entry.file_name().to_str().and_then(|n| self.trial_of(n)) {
                parts.push((trial, entry.path()));
            }
        }
        parts.sort();
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_the_trial() {
        for trial in [TrialId(1), TrialId(999_999), TrialId(u32::MAX)] {
            for table in TableName::ALL {
                let name = table.partial_file(trial);
                assert_eq!(table.trial_of(&name), Some(trial), "{name}");
                assert_eq!(table.trial_of(&format!("{name}.tmp")), None);
            }
        }
        assert_eq!(
            TableName::Flows.trial_of("trial-000001.samples.parquet"),
            None
        );
    }
}
