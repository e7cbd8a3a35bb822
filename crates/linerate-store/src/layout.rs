//! Names of the files of a bundle.

use std::path::{Path, PathBuf};

use linerate_model::{HostName, TrialId};

/// The run document.
pub(crate) const RUN: &str = "run.json";
/// The events.
pub(crate) const EVENTS: &str = "events.ndjson";
/// The rendered report.
pub(crate) const REPORT: &str = "report.html";
/// What was reduced from the rest.
pub(crate) const RESULTS: &str = "results.parquet";
/// Holds one pcapng file for each capture.
pub(crate) const CAPTURES: &str = "captures";
/// Holds one file a trial and table until the run is finished.
pub(crate) const PARTIAL: &str = "partial";

/// The tables of a bundle, in the order in which a trial's parts are stored.
///
/// The trial's own row comes last: once it is there, everything of the trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableName {
    Samples,
    Stacks,
    Captures,
    Flows,
    Trials,
}

impl TableName {
    /// Returns the most rows that are read of a file: some times what the largest runs have. A file of
    /// megabytes may say that it has thousands of millions, which nobody could hold.
    pub(crate) fn rows_max(self) -> u64 {
        match self {
            // Beyond it they must have the size for their number (`ROWS_PER_BYTE`): a second and 60 MB to read.
            TableName::Samples => 1 << 22,
            TableName::Flows => 1 << 24,
            TableName::Stacks => 1 << 20,
            TableName::Trials | TableName::Captures => 1 << 16,
        }
    }

    /// Every table.
    pub(crate) const ALL: [TableName; 5] = [
        TableName::Samples,
        TableName::Stacks,
        TableName::Captures,
        TableName::Flows,
        TableName::Trials,
    ];

    /// Returns whether a bundle without this table is whole: only runs that were asked for a profile
    /// have stacks, and only those that were asked to capture have captures.
    pub(crate) fn is_optional(self) -> bool {
        matches!(self, TableName::Stacks | TableName::Captures)
    }

    /// Returns the word that both file names carry.
    pub(crate) fn word(self) -> &'static str {
        match self {
            TableName::Samples => "samples",
            TableName::Stacks => "stacks",
            TableName::Captures => "captures",
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
        let trial = number.parse().ok().map(TrialId);
        // "1" is no other way to write 000001: a trial has one part.
        trial.filter(|trial| self.partial_file(*trial) == name)
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

/// Returns the name of the file of one capture, below [`CAPTURES`]: `000001-server.pcapng`.
pub(crate) fn capture_file(trial: TrialId, host: &HostName) -> String {
    let host: String = host
        .0
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(HOST_CHARS_MAX)
        .collect();
    format!("{:06}-{host}.pcapng", trial.0)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Characters of a host that its file's name holds: the name has room for a number behind them.
const HOST_CHARS_MAX: usize = 100;

/// Tells whether a path, relative to the bundle, is one that a capture may have: it leads nowhere
/// else.
pub(crate) fn is_capture_path(path: &str) -> bool {
    let name = path
        .strip_prefix(CAPTURES)
        .and_then(|rest| rest.strip_prefix('/'));
    let Some(name) = name else { return false };
    name.ends_with(".pcapng") && !name.starts_with('.') && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_captures_stay_in_their_folder() {
        let name = |host: &str| capture_file(TrialId(7), &HostName::from(host));
        assert_eq!(name("server"), "000007-server.pcapng");
        assert_eq!(name("../a b/ü"), "000007-.._a_b__.pcapng");
        assert!(is_capture_path(&format!("captures/{}", name("../a b/ü"))));
        assert!(name(&"x".repeat(1000)).len() < 200);
        for bad in [
            "../x.pcapng",
            "a/b.pcapng",
            "captures/x.html",
            "captures/../x.pcapng",
            "",
        ] {
            assert!(!is_capture_path(bad), "{bad}");
        }
    }

    #[test]
    fn names_lead_back_to_the_trial() {
        for trial in [TrialId(1), TrialId(999_999), TrialId(u32::MAX)] {
            for table in TableName::ALL {
                let name = table.partial_file(trial);
                assert_eq!(table.trial_of(&name), Some(trial), "{name}");
                assert_eq!(table.trial_of(&format!("{name}.tmp")), None);
            }
        }
        for other in ["trial-000001.samples.parquet", "trial-1.flows.parquet"] {
            assert_eq!(TableName::Flows.trial_of(other), None, "{other}");
        }
    }
}
