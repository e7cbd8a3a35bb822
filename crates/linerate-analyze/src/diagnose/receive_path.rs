//! Where a host's way from the card to the sockets is too narrow: its CPUs' backlogs, one CPU that
//! takes all packets, the PCIe link under the card.
//!
//! 1. Backlog: packets were dropped because a CPU's backlog was full, or a CPU stopped with packets
//!    left more than [`SQUEEZES_PER_S_MIN`] times a second.
//! 2. One CPU: one spent more than [`SATURATED_SHARE`] of the window in interrupts while the mean of
//!    the others spent less than half of that. Where queues were counted and several flows could lie on
//!    them, the finding says how unevenly packets lay and what chance alone gives for that many equal flows;
//!    flows are not equal, so that no verdict follows.
//! 3. PCIe: the narrowest link between card and CPU carries less than the card's own rate.
//!
//! 1 and 2 are told once an experiment and host: of how many trials, and how much at the most. CPUs and their
//! backlogs are the machine's, so hosts of a lab show the same and only the first is told of. None of it is a
//! limiter: what is full may be so beside a full link.

use linerate_model::TrialId;
use linerate_model::experiment::Experiment;
use linerate_model::finding::{Caution, Estimate, Evidence};
use linerate_model::metric::Metric;
use linerate_model::number;
use linerate_model::run::HostRecord;
use linerate_model::sample::{QueueKind, Subject};
use linerate_model::unit::Unit;

use super::found::{About, Found};
use crate::compare::balance::{SEED, chance, imbalance};
use crate::dataset::Dataset;
use crate::reduce::{Readings, interrupt_share, queues_in_use};
use crate::words;

/// Squeezes a second from which on they are told: fewer are bursts, which the next turn takes.
const SQUEEZES_PER_S_MIN: f64 = 10.0;
/// Share of the window in interrupts from which on a CPU has no room for more.
pub(crate) const SATURATED_SHARE: f64 = 0.9;
/// Share of a PCIe link that payload gets: headers take some 24 of 280 bytes at 256 bytes a packet.
const PCIE_PAYLOAD_SHARE: f64 = 0.9;

pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let document = &dataset.recording.document;
    let hosts = document.hosts.iter().filter(|host| host.program.is_agent());
    // CPUs are the machine's: one host of a lab speaks for all.
    let hosts: Vec<&HostRecord> = if dataset.is_one_machine() {
        hosts.take(1).collect()
    } else {
        hosts.collect()
    };
    let mut findings = Vec::new();
    for experiment in &document.plan.experiments {
        for host in &hosts {
            let trials = trials(dataset, experiment, host);
            findings.extend(backlog(experiment, host, &trials));
            findings.extend(one_cpu(experiment, host, &trials));
        }
    }
    findings.extend(document.hosts.iter().filter_map(pcie));
    findings
}

/// What a host's receive path did in one trial.
#[derive(Debug, Clone, PartialEq)]
struct Taking {
    trial: TrialId,
    /// Packets dropped at full backlogs, of all CPUs.
    dropped: f64,
    /// Times a second that CPUs stopped with packets left.
    squeezes_per_s: f64,
    /// The CPU that spent most in interrupts, the share of the window, and the others' mean share.
    busiest: Option<(u32, f64, f64)>,
    /// Packets of each receive queue of the data link.
    queues: Vec<f64>,
    flows: u32,
}

fn trials(dataset: &Dataset<'_>, experiment: &Experiment, host: &HostRecord) -> Vec<Taking> {
    let recording = dataset.recording;
    let cells = dataset.cells_of(&experiment.name);
    let outcomes = cells.iter().flat_map(|cell| {
        let all = u32::try_from(cell.workload.flows().len()).unwrap_or(u32::MAX);
        let here = dataset.flows_of(cell).filter(|flow| flow.host == host.name);
        let trials: Vec<TrialId> = here.map(|flow| flow.trial).collect();
        cell.valid.iter().map(move |outcome| {
            let here = trials.iter().filter(|trial| **trial == outcome.trial);
            let here = u32::try_from(here.count()).unwrap_or(u32::MAX);
            (outcome.trial, if here == 0 { all } else { here })
        })
    });
    outcomes
        .filter_map(|(trial, flows)| {
            let readings = Readings::of(recording, recording.record(trial)?);
            Some(taking(&readings, trial, host, flows))
        })
        .collect()
}

fn taking(readings: &Readings<'_>, trial: TrialId, record: &HostRecord, flows: u32) -> Taking {
    let (host, link) = (&record.name, record.link.as_deref());
    let in_use = queues_in_use(&record.snapshot, link.unwrap_or_default(), QueueKind::Rx);
    let change = |subject: &Subject, metric| readings.change_on(host, subject, metric);
    let mut taking = Taking {
        trial,
        dropped: 0.0,
        squeezes_per_s: 0.0,
        busiest: None,
        queues: Vec::new(),
        flows,
    };
    let mut shares = Vec::new();
    for (subject, _) in readings.subjects().filter(|(_, on)| *on == host) {
        match subject {
            Subject::Cpu(cpu) => {
                let dropped = change(subject, Metric::SoftnetDropped);
                taking.dropped += dropped.map_or(0.0, |change| change.amount);
                let squeezed = change(subject, Metric::SoftnetSqueezed);
                taking.squeezes_per_s += squeezed.map_or(0.0, |change| change.rate());
                let share = interrupt_share(readings, host, subject);
                shares.extend(share.map(|share| (*cpu, share)));
            }
            Subject::Queue(name, QueueKind::Rx, number)
                if Some(name.as_str()) == link && *number < in_use =>
            {
                let packets = change(subject, Metric::QueueRxPackets);
                taking.queues.extend(packets.map(|change| change.amount));
            }
            _ => {}
        }
    }
    taking.busiest = busiest(&shares);
    taking
}

/// Returns the CPU with the largest share, that share, and the mean share of the others.
fn busiest(shares: &[(u32, f64)]) -> Option<(u32, f64, f64)> {
    let (cpu, most) = shares.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = shares.len().checked_sub(1).filter(|others| *others > 0)?;
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    Some((cpu, most, (sum - most) / others as f64))
}

fn backlog<'d>(
    experiment: &'d Experiment,
    host: &HostRecord,
    trials: &[Taking],
) -> Option<Found<'d>> {
    let dropped = |taking: &Taking| taking.dropped;
    if let Some((worst, of)) = most(experiment, trials, dropped, |dropped| dropped > 0.0) {
        let evidence = evidence(
            "packets dropped at full backlogs, in the trial with most",
            Estimate::point(worst.dropped, Unit::Count),
            worst.trial,
        );
        let packets = words::things(worst.dropped, "packet");
        let found = Found::caution(
            About::Experiment(experiment),
            Caution::Backlog,
            match of {
                None => format!(
                    "{} dropped {packets} because a CPU's backlog was full.",
                    host.name
                ),
                Some(of) => format!(
                    "A CPU's backlog on {} was full and dropped packets in {of}: {packets} at the most.",
                    host.name
                ),
            },
            "They had arrived at the host and never reached a socket. Raise net.core.netdev_max_backlog, \
             or spread packets over more CPUs (more queues, RPS).",
            evidence,
        );
        return Some(found.named(&host.name));
    }
    let squeezes = |taking: &Taking| taking.squeezes_per_s;
    let (worst, of) = most(experiment, trials, squeezes, |rate| {
        rate >= SQUEEZES_PER_S_MIN
    })?;
    let evidence = evidence(
        "time_squeeze, polls that ran out of budget, in the trial with most",
        Estimate::point(worst.squeezes_per_s, Unit::PerSecond),
        worst.trial,
    );
    let times = words::things(worst.squeezes_per_s, "time");
    let found = Found::caution(
        About::Experiment(experiment),
        Caution::Squeezed,
        match of {
            None => format!(
                "NAPI on {} ran out of budget {times} per second (time_squeeze).",
                host.name
            ),
            Some(of) => format!(
                "NAPI on {} ran out of budget (time_squeeze) in {of}, {times} per second at the most.",
                host.name
            ),
        },
        "Each poll stops after net.core.netdev_budget packets or netdev_budget_usecs; the remaining \
         packets wait for the next softirq. Where a CPU has time to spare, raise both; where it has \
         none, spread packets over more CPUs (/proc/net/softnet_stat).",
        evidence,
    );
    Some(found.named(&host.name))
}

/// Returns the trial with most of what `of` reads, and where there are several trials how many of them
/// `is_told` holds for; nothing where it holds for none.
fn most<'t>(
    experiment: &Experiment,
    trials: &'t [Taking],
    of: impl Fn(&Taking) -> f64,
    is_told: impl Fn(f64) -> bool,
) -> Option<(&'t Taking, Option<String>)> {
    let found: Vec<&Taking> = trials.iter().filter(|it| is_told(of(it))).collect();
    let worst = found.iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
    Some((worst, share_of(experiment, found.len(), trials.len())))
}

/// Says how many of several trials of `experiment` something is told of.
fn share_of(experiment: &Experiment, found: usize, trials: usize) -> Option<String> {
    let all = number::counted(trials, "trial");
    (trials > 1).then(|| format!("{found} of {all} of {}", experiment.title))
}

fn one_cpu<'d>(
    experiment: &'d Experiment,
    host: &HostRecord,
    trials: &[Taking],
) -> Option<Found<'d>> {
    let saturated = trials.iter().filter_map(|taking| {
        let (cpu, share, others) = taking.busiest?;
        (share >= SATURATED_SHARE && others < share / 2.0).then_some((taking, cpu, share))
    });
    let saturated: Vec<(&Taking, u32, f64)> = saturated.collect();
    let (worst, cpu, share) = saturated.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    // Ticks are counted where they fall, and a little more of them than the window is long.
    let share = share.min(1.0);
    let same = saturated.iter().filter(|(_, own, _)| own == cpu).count();
    let spent = match share_of(experiment, same, trials.len()) {
        None => format!("{} of its time in interrupts", words::percent(share)),
        Some(of) => format!(
            "{} and more of its time in interrupts in {of} ({} at the most)",
            words::percent(SATURATED_SHARE),
            words::percent(share)
        ),
    };
    let mut further = Vec::new();
    let mut balance = String::new();
    if let (true, Some(found), Some(expected)) = (
        worst.queues.len() > 1 && worst.flows > 1,
        imbalance(&worst.queues),
        chance(worst.flows, worst.queues.len() as u32, SEED),
    ) {
        balance = format!(
            "{} the fullest of {} receive queues took {:.2} times its share; random hashing of {} equal flows \
             gives up to {:.2} in 95 of 100 cases.{}",
            match trials.len() {
                1 => " Here",
                _ => " In the trial with most",
            },
            worst.queues.len(),
            found,
            worst.flows,
            expected.most,
            if found > expected.most {
                " If the flows were equal, check the RSS hash fields (rss_hash_… in the inventory)."
            } else {
                " More flows or queues would spread more evenly."
            }
        );
        further.push(evidence(
            "fullest receive queue over the mean, in that trial",
            Estimate::point(found, Unit::Ratio),
            worst.trial,
        ));
    }
    let evidence = evidence(
        "share of one CPU's time in interrupts, in the trial with most",
        Estimate::point(share, Unit::Ratio),
        worst.trial,
    );
    let explanation = match worst.flows {
        1 => "It had no time for more packets then. One flow stays on one queue: more queues do not spread \
              it. Several flows do, and fewer, larger packets (GRO, a larger MTU) are less work."
            .to_owned(),
        _ => format!(
            "It had no time for more packets then: more queues, interrupt affinity or RPS spread them over \
             more CPUs.{balance}"
        ),
    };
    let found = Found::caution(
        About::Experiment(experiment),
        Caution::OneCpuOfPackets,
        format!(
            "CPU {cpu} of {} spent {spent}, the others less than half of that.",
            host.name,
        ),
        explanation,
        evidence,
    );
    Some(found.named(&host.name).with(further))
}

/// The PCIe link under the card, where it is narrower than the card's own rate.
fn pcie(host: &HostRecord) -> Option<Found<'_>> {
    let link = host.link.as_ref()?;
    let fact = |fact: &str| format!("link.{link}.{fact}");
    let carries = host.snapshot.number(&fact("pcie_bps"))? * PCIE_PAYLOAD_SHARE;
    let rate = host.link_rate?.0;
    if carries >= rate {
        return None;
    }
    let narrowest = host
        .snapshot
        .text(&fact("pcie_narrowest"))
        .unwrap_or("a link");
    let evidence = Evidence {
        what: "payload that the narrowest PCIe link carries".to_owned(),
        estimate: Estimate::point(carries, Unit::BitsPerSecond),
        trials: Vec::new(),
    };
    let found = Found::caution(
        About::Host,
        Caution::Pcie,
        format!(
            "The PCIe link under {link} of {} carries {} at most, the network card {}.",
            host.name,
            words::number(Unit::BitsPerSecond, carries),
            words::number(Unit::BitsPerSecond, rate)
        ),
        format!(
            "The narrowest on the way to the CPU is {narrowest}. Move it to a wider slot, or check \
             why the link came up narrower than it could."
        ),
        evidence,
    );
    Some(found.named(&host.name))
}

fn evidence(what: &str, estimate: Estimate, trial: TrialId) -> Evidence {
    Evidence {
        what: what.to_owned(),
        estimate,
        trials: vec![trial],
    }
}
