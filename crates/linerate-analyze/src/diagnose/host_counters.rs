//! What a host's own counters prove: it dropped, refused or slowed something while it was measured.
//!
//! 1. Each rule is a counter that stands still on a host that is well, what it proves, and what to
//!    do. Growth in the measured window of any trial, valid or not, is a caution with the counts of
//!    every host.
//! 2. A table of connection tracking that was nine tenths full is one too: the next connections
//!    are dropped.
//! 3. What counts for the whole machine is told once where all hosts are namespaces of it, and what counts
//!    for a namespace once where both ends are in one, as over loopback.

use std::collections::BTreeMap;

use linerate_model::finding::{Caution, Estimate, Evidence};
use linerate_model::metric::Metric;
use linerate_model::number;
use linerate_model::sample::Subject;
use linerate_model::unit::Unit;
use linerate_model::{HostName, TrialId};

use super::caution::counted;
use super::found::{About, Found};
use super::known::Known;
use crate::dataset::Dataset;
use crate::reduce::{Readings, namespaces};
use crate::words;

/// Share of the table of connection tracking from which on it counts as full.
const CONNTRACK_SHARE_MAX: f64 = 0.9;

/// A counter that proves something.
struct Rule {
    id: &'static str,
    metric: Metric,
    /// What a count of one proves, and of several.
    proves: [&'static str; 2],
    advice: &'static str,
}

const COUNTER_RULES: &[Rule] = &[
    Rule {
        id: "listen-overflow",
        metric: Metric::NetstatListenOverflows,
        proves: [
            "connection was dropped because a listener's accept queue was full",
            "connections were dropped because a listener's accept queue was full",
        ],
        advice: "Clients retransmit the SYN after 1 s at the earliest. Raise net.core.somaxconn and the \
                 backlog that the server sets, or make it accept faster.",
    },
    Rule {
        id: "requests-full",
        metric: Metric::NetstatReqQFullDrop,
        proves: [
            "SYN was dropped because too many connection requests were pending",
            "SYNs were dropped because too many connection requests were pending",
        ],
        advice: "Raise net.ipv4.tcp_max_syn_backlog, or leave net.ipv4.tcp_syncookies on.",
    },
    Rule {
        id: "memory-pressure",
        metric: Metric::NetstatMemoryPressures,
        proves: [
            "time TCP came under memory pressure",
            "times TCP came under memory pressure",
        ],
        advice: "All TCP sockets together held more than the middle number of net.ipv4.tcp_mem, so \
                 the kernel shrinks their buffers and windows. Raise it, or use fewer or smaller \
                 buffers.",
    },
    Rule {
        id: "memory-abort",
        metric: Metric::NetstatAbortOnMemory,
        proves: [
            "connection was aborted for lack of memory",
            "connections were aborted for lack of memory",
        ],
        advice: "Raise the last number of net.ipv4.tcp_mem or net.ipv4.tcp_max_orphans.",
    },
    Rule {
        id: "queue-pruned",
        metric: Metric::NetstatRcvQDrop,
        proves: [
            "packet was dropped because the receive queue of its connection was full",
            "packets were dropped because the receive queue of their connection was full",
        ],
        advice: "They are retransmitted as if the network had lost them. Use larger receive buffers, or \
                 make the receiver read faster.",
    },
    Rule {
        id: "conntrack-drop",
        metric: Metric::ConntrackDrop,
        proves: [
            "packet was dropped by connection tracking",
            "packets were dropped by connection tracking",
        ],
        advice: "Its table was full, or memory was short. Raise net.netfilter.nf_conntrack_max, or do not \
                 track this traffic (notrack).",
    },
    Rule {
        id: "conntrack-insert",
        metric: Metric::ConntrackInsertFailed,
        proves: [
            "connection could not be inserted into the conntrack table",
            "connections could not be inserted into the conntrack table",
        ],
        advice: "Their first packet was dropped. Two packets of one connection raced, or NAT ran out of \
                 addresses; do not track this traffic (notrack), or add addresses.",
    },
    Rule {
        id: "throttled",
        metric: Metric::ThermalCoreThrottled,
        proves: [
            "time a CPU was throttled because it was hot",
            "times a CPU was throttled because it was hot",
        ],
        advice: "CPU-bound results are lower than this machine can reach, and depend on its temperature. \
                 Fix the cooling, then measure again.",
    },
    Rule {
        id: "package-throttled",
        metric: Metric::ThermalPackageThrottled,
        proves: [
            "time a CPU was throttled because its package was hot (counted at each CPU)",
            "times a CPU was throttled because its package was hot (counted at each CPU)",
        ],
        advice: "CPU-bound results are those of a slower machine. Fix the cooling or the power limit, then \
                 measure again.",
    },
];

/// Returns the cautions for the reference.
pub(super) fn known() -> impl Iterator<Item = Known> {
    COUNTER_RULES.iter().map(|rule| Known {
        id: rule.id,
        title: rule.proves[1],
        needs: rule.metric.name(),
        action: rule.advice,
    })
}

/// What a host counted, in which trials.
type Counts = BTreeMap<HostName, (f64, Vec<TrialId>)>;

pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Found<'static>> {
    let rules = COUNTER_RULES
        .iter()
        .zip(grown(dataset))
        .filter_map(|(rule, counts)| finding(dataset, rule, counts));
    rules.chain(nearly_full(dataset)).collect()
}

/// Whether what a namespace counts is the whole machine's.
fn is_of_machine(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::ThermalCoreThrottled | Metric::ThermalPackageThrottled
    )
}

fn finding(dataset: &Dataset<'_>, rule: &Rule, mut counts: Counts) -> Option<Found<'static>> {
    if is_of_machine(rule.metric) && dataset.is_one_machine() {
        counts = counts.into_iter().take(1).collect();
    }
    let apart = namespaces(dataset.hosts(), counts.keys());
    let apart: Vec<HostName> = apart.into_iter().cloned().collect();
    counts.retain(|host, _| apart.contains(host));
    let mut trials: Vec<TrialId> = counts
        .values()
        .flat_map(|(_, trials)| trials.clone())
        .collect();
    trials.sort_unstable();
    trials.dedup();
    let total: f64 = counts.values().map(|(count, _)| count).sum();
    let hosts: Vec<String> = counts
        .iter()
        .map(|(host, (count, _))| format!("{count} on {host}"))
        .collect();
    let [one, many] = rule.proves;
    (!hosts.is_empty()).then(|| {
        Found::caution(
            About::Host,
            Caution::Counter(rule.id),
            format!(
                "{}: {}, in {} of {}.",
                number::agreeing(&words::number(Unit::Count, total), one, many),
                words::list(&hosts),
                trials.len(),
                number::counted(dataset.outcomes.len(), "trial"),
            ),
            rule.advice,
            Evidence {
                what: format!("{}, in the measured windows", rule.metric.name()),
                estimate: counted(total as usize, trials.len()),
                trials,
            },
        )
    })
}

/// Sums how much the counter of each rule grew on each host; hosts on which it stood still are left
/// out.
fn grown(dataset: &Dataset<'_>) -> Vec<Counts> {
    let mut counts = vec![Counts::new(); COUNTER_RULES.len()];
    for record in &dataset.recording.trials {
        let readings = Readings::of(dataset.recording, record);
        for (subject, host) in readings.subjects() {
            if !matches!(subject, Subject::Host | Subject::Cpu(_)) {
                continue;
            }
            for (rule, counts) in COUNTER_RULES.iter().zip(&mut counts) {
                let change = readings.change_on(host, subject, rule.metric);
                let Some(change) = change.filter(|change| change.amount > 0.0) else {
                    continue;
                };
                let count = counts.entry(host.clone()).or_default();
                count.0 += change.amount;
                if count.1.last() != Some(&record.trial) {
                    count.1.push(record.trial);
                }
            }
        }
    }
    counts
}

/// Finds the host whose table of connection tracking was the fullest, if it was nearly full.
fn nearly_full(dataset: &Dataset<'_>) -> Option<Found<'static>> {
    let mut fullest: Option<(f64, HostName, TrialId)> = None;
    for record in &dataset.recording.trials {
        let readings = Readings::of(dataset.recording, record);
        let hosts = readings.subjects().filter(|it| *it.0 == Subject::Host);
        for (subject, host) in hosts {
            let highest = |metric| {
                let series = readings.on(host, subject, metric)?;
                readings.gauge(&series).reduce(f64::max)
            };
            let count = highest(Metric::ConntrackCount);
            let size = highest(Metric::ConntrackMax).filter(|size| *size > 0.0);
            if let Some(share) = count.zip(size).map(|(count, size)| count / size)
                && fullest.as_ref().is_none_or(|(most, ..)| share > *most)
            {
                fullest = Some((share, host.clone(), record.trial));
            }
        }
    }
    let (share, host, trial) = fullest.filter(|(share, ..)| *share >= CONNTRACK_SHARE_MAX)?;
    Some(Found::caution(
        About::Host,
        Caution::ConntrackFull,
        format!(
            "The conntrack table of {host} was {} full.",
            words::percent(share)
        ),
        "Once it is full, packets of new connections are dropped. Raise \
         net.netfilter.nf_conntrack_max, or do not track this traffic (notrack).",
        Evidence {
            what: "largest share of nf_conntrack_max that was in use".to_owned(),
            estimate: Estimate::point(share, Unit::Ratio),
            trials: vec![trial],
        },
    ))
}
