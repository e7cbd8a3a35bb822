//! What moved on each host, summed over trials.

use std::collections::BTreeMap;

use linerate_model::HostName;
use linerate_model::run::{Recording, TrialRecord};
use linerate_model::sample::Subject;

use crate::reduce::Readings;
use crate::reduce::window::Change;

/// What moved on one host.
pub(crate) struct Moved<K> {
    pub(crate) trials: u32,
    pub(crate) seconds: f64,
    pub(crate) amounts: BTreeMap<K, f64>,
}

/// Returns how far what `change` tells apart moved within the windows of `trials`, by host.
pub(crate) fn moved<'a, K: Ord>(
    recording: &'a Recording,
    trials: impl Iterator<Item = &'a TrialRecord>,
    change: impl Fn(&Readings<'_>, &HostName, &Subject) -> Option<(K, Change)>,
) -> BTreeMap<HostName, Moved<K>> {
    let mut hosts: BTreeMap<HostName, Moved<K>> = BTreeMap::new();
    for trial in trials {
        let readings = Readings::of(recording, trial);
        let mut longest: BTreeMap<&HostName, f64> = BTreeMap::new();
        for (subject, host) in readings.subjects() {
            let Some((key, change)) = change(&readings, host, subject) else {
                continue;
            };
            let seconds = longest.entry(host).or_default();
            *seconds = seconds.max(change.seconds);
            let moved = hosts.entry(host.clone()).or_insert_with(|| Moved {
                trials: 0,
                seconds: 0.0,
                amounts: BTreeMap::new(),
            });
            *moved.amounts.entry(key).or_default() += change.amount;
        }
        for (host, seconds) in longest {
            if let Some(moved) = hosts.get_mut(host) {
                moved.trials += 1;
                moved.seconds += seconds;
            }
        }
    }
    hosts
}
