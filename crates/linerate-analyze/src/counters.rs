//! Which protocol counters moved on each host, by the kernel's name.
//!
//! A strange run is often explained by a counter that nobody thought of. All those that moved are
//! listed, the ones that tell of trouble first. They count all traffic of the host (its network
//! namespace), not the run's alone.

/// What the counters mean.
mod known;

use std::collections::BTreeMap;

use linerate_model::HostName;
use linerate_model::analysis::{CounterLine, HostCounters};
use linerate_model::metric::Metric;
use linerate_model::run::{Recording, TrialRecord};
use linerate_model::sample::Subject;

use crate::reduce::Readings;

/// How far the counters of one host moved, summed over trials.
#[derive(Default)]
struct Sum<'a> {
    trials: u32,
    seconds: f64,
    moved: BTreeMap<&'a str, f64>,
}

/// Returns the counters that moved within the windows of `trials`, host by host, the server first.
pub(crate) fn counters<'a>(
    recording: &'a Recording,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Vec<HostCounters> {
    let mut sums: BTreeMap<&HostName, Sum<'a>> = BTreeMap::new();
    for trial in trials {
        let readings = Readings::new(&recording.samples, trial.trial, trial.window_ns);
        let mut longest: BTreeMap<&HostName, f64> = BTreeMap::new();
        for (subject, host) in readings.subjects() {
            let Subject::Counter(name) = subject else {
                continue;
            };
            let series = readings.on(host, subject, Metric::ProtocolCounter);
            let Some(change) = series.and_then(|series| readings.difference(&series)) else {
                continue;
            };
            let seconds = longest.entry(host).or_default();
            *seconds = seconds.max(change.seconds);
            let sum = sums.entry(host).or_default();
            *sum.moved.entry(name.as_str()).or_default() += change.amount;
        }
        for (host, seconds) in longest {
            let sum = sums.entry(host).or_default();
            sum.trials += 1;
            sum.seconds += seconds;
        }
    }
    let hosts = recording.document.hosts.iter();
    hosts
        .filter_map(|host| Some((&host.name, sums.remove(&host.name)?)))
        .map(|(host, sum)| of_host(host, &sum))
        .collect()
}

fn of_host(host: &HostName, sum: &Sum<'_>) -> HostCounters {
    let line = |(name, moved): (&&str, &f64)| {
        let known = known::known(name);
        CounterLine {
            name: (*name).to_owned(),
            trouble: known.trouble,
            meaning: known.meaning.map(str::to_owned),
            moved: *moved,
            per_s: moved / sum.seconds,
        }
    };
    // Trouble that happened often comes first; the rest is in the order of names, to be looked up.
    let moved = sum.moved.iter().filter(|(_, moved)| **moved != 0.0);
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
