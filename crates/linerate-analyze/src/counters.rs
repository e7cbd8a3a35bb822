//! Which protocol counters moved on each host, by the kernel's name.
//!
//! A strange run is often explained by a counter that nobody thought of. All those that moved are
//! listed, the ones that tell of trouble first. They count all traffic of the host (its network
//! namespace), not the run's alone.

/// What the counters mean.
mod known;

pub use known::{KnownCounter, known_counters};

use linerate_model::HostName;
use linerate_model::analysis::{CounterLine, HostCounters};
use linerate_model::metric::Metric;
use linerate_model::run::{Recording, TrialRecord};
use linerate_model::sample::Subject;

use crate::moved::{Moved, moved};

/// Returns the counters that moved within the windows of `trials`, host by host, the server first.
pub(crate) fn counters<'a>(
    recording: &'a Recording,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Vec<HostCounters> {
    let mut sums = moved(recording, trials, |readings, host, subject| {
        let Subject::Counter(name) = subject else {
            return None;
        };
        let series = readings.on(host, subject, Metric::ProtocolCounter)?;
        Some((name.clone(), readings.difference(&series)?))
    });
    let hosts = recording.document.hosts.iter();
    hosts
        .filter_map(|host| Some((&host.name, sums.remove(&host.name)?)))
        .map(|(host, sum)| of_host(host, &sum))
        .collect()
}

fn of_host(host: &HostName, sum: &Moved<String>) -> HostCounters {
    let line = |(name, moved): (&String, &f64)| {
        let (trouble, meaning) = known::known(name);
        CounterLine {
            name: name.clone(),
            trouble,
            meaning: meaning.map(str::to_owned),
            moved: *moved,
            per_s: moved / sum.seconds,
        }
    };
    // Trouble that happened often comes first; the rest is in the order of names, to be looked up.
    let moved = sum.amounts.iter().filter(|(_, moved)| **moved != 0.0);
    let (mut lines, rest): (Vec<_>, Vec<_>) = moved.map(line).partition(|line| line.trouble);
    lines.sort_by(|a, b| b.moved.total_cmp(&a.moved));
    lines.extend(rest);
    HostCounters {
        host: host.clone(),
        trials: sum.trials,
        seconds: sum.seconds,
        counters: lines,
    }
}
