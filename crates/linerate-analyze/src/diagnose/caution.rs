//! Reasons to trust a number less.
//!
//! 1. Noise: the pooled relative deviation of an experiment's response is above 5 %; one caution for
//!    all experiments.
//! 2. Invalid trials: any.
//! 3. Shared CPUs: all hosts are namespaces of one machine, so that CPU numbers are of all of them
//!    and load on one slows the others.
//! 4. Start skew: flows began further apart than 5 % of the measured window.
//! 5. Replicates: a cell has fewer than three valid ones, so that its interval is wide or absent.
//! 6. Capped settings: the kernel granted less than was asked for.
//! 7. Shared hosts: an agent let other runs go on beside this one.
//! 8. Modes: identical trials are of two kinds, so that their mean is of neither.
//! 9. Starved workers: in any valid trial a worker waited for a CPU a quarter of the time, and twice as
//!    long as it ran.
//! 10. Disturbances: the hypervisor took more than 3 % of the CPUs' time, or that much more of it than usual
//!    is in no mode, on CPUs that were idle for less, or other programs took that and more than a controller needs, in any valid trial.
//! 11. Other traffic: a device that the flows use passed 3 % and more of payload that is none of theirs.
//! 12. Fragments: a datagram is longer than a packet of the path.
//! 13. Silence: for a tenth of the window or more nothing arrived in any flow, although something was under way.
//! 14. Shortfalls: requests that were due were not sent, or connections failed.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::TrialId;
use linerate_model::finding::{Caution, Estimate, Evidence};
use linerate_model::flag::TrialFlag;
use linerate_model::number;
use linerate_model::run::{Admission, TrialRecord};
use linerate_model::unit::Unit;

use super::cpu;
use super::found::{About, Found};
use crate::compare::interval::{replicates_needed, share_interval};
use crate::compare::modes::{Mode, modes};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{self, DISTURBED_SHARE_MAX, OTHERS_CPUS_MAX, Outcome, Values as _, name};
use crate::spoilt::unusually_missing;
use crate::verdicts::{REPLICATES_MIN, has_few_replicates};
use crate::words;

/// Relative deviation between identical cells from which on small effects drown in noise.
const NOISE_SHARE_MAX: f64 = 0.05;
/// Share of the measured window by which flows may begin apart.
const SKEW_SHARE_MAX: f64 = 0.05;
/// Half width of an interval that replicates are computed for.
const WIDTH_SHARE_WANTED: f64 = 0.05;
/// Share of what is counted that had come before the window, from which on it is told.
pub(crate) const HELD_BACK_SHARE_TOLD: f64 = 0.025;
/// Name of the caution about workers that a quota held back.
pub(super) const OF_QUOTA: &str = "quota";
/// Reasons listed for invalid trials.
const REASONS_LISTED_MAX: usize = 3;

pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let mut findings: Vec<Found<'_>> = invalid(dataset).into_iter().collect();
    findings.extend(disturbances(dataset));
    findings.extend(other_traffic(dataset));
    findings.extend(silent(dataset));
    findings.extend(held_back(dataset));
    findings.extend(starved(dataset));
    findings.extend(capped(dataset));
    findings.extend(unsent(dataset));
    findings.extend(failed(dataset));
    findings.extend(fragments(dataset));
    findings.extend(noise(dataset));
    findings.extend(two_kinds(dataset));
    findings.extend(skew(dataset));
    findings.extend(replicates(dataset));
    findings.extend(shared_cpus(dataset));
    findings.extend(shared_hosts(dataset));
    findings
}

pub(super) fn counted(number: usize, of: usize) -> Estimate {
    Estimate {
        n: u32::try_from(of).unwrap_or(u32::MAX),
        ..Estimate::point(number as f64, Unit::Count)
    }
}

/// The experiments whose identical trials differ much, in one: the noisiest is the one shown.
fn noise<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let mut noisy = crate::study::noises(dataset);
    noisy.retain(|(_, noise)| noise.share > NOISE_SHARE_MAX);
    let (experiment, worst) = noisy.first()?;
    let (low, high) = worst.interval()?;
    let estimate = worst.estimate()?;
    let cells = dataset.cells_of(&experiment.name);
    let repeated = cells.iter().filter(|cell| cell.valid.len() >= 2);
    let replicates = repeated.clone().map(|cell| cell.valid.len()).min()? as u32;
    let others: Vec<String> = noisy[1..]
        .iter()
        .map(|(experiment, noise)| {
            format!("{} in {}", words::percent(noise.share), experiment.title)
        })
        .collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(" It is {}.", words::list(&others))
    };
    let place = if dataset.is_one_measurement() {
        String::new()
    } else {
        format!(" in {}", experiment.title)
    };
    Some(Found::caution(
        About::Experiment(experiment),
        Caution::Noise,
        format!(
            "Identical trials differ by {} (relative standard deviation, {} to {}){place}.",
            words::percent(worst.share),
            words::percent(low),
            words::percent(high),
        ),
        format!(
            "Two of its cells must differ by {} to be distinguished, and {} of a cell narrow its interval \
             to ± {}.{others}",
            words::percent(worst.difference_share(replicates, replicates)),
            number::counted(
                replicates_needed(worst.share, WIDTH_SHARE_WANTED),
                "replicate"
            ),
            words::percent(WIDTH_SHARE_WANTED),
        ),
        Evidence {
            what: "relative standard deviation of identical trials".to_owned(),
            estimate,
            trials: repeated.flat_map(|cell| cell.trials()).collect(),
        },
    ))
}

/// The cell whose trials fall into the two groups that are furthest apart.
fn two_kinds<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    // Counts have steps, not kinds.
    let is_amount = |cell: &&CellOutcomes<'_>| {
        let main = cell.main();
        main.is_some_and(|main| main.unit != Unit::Count)
    };
    let found = dataset.cells.iter().filter(is_amount).filter_map(|cell| {
        let [low, high] = modes(&cell.values(&cell.experiment.response))?;
        Some((cell, low, high))
    });
    let found: Vec<(&CellOutcomes<'_>, Mode, Mode)> = found.collect();
    let apart = |low: &Mode, high: &Mode| high.value / low.value;
    let furthest = |a: &&(_, Mode, Mode), b: &&(_, Mode, Mode)| {
        apart(&a.1, &a.2).total_cmp(&apart(&b.1, &b.2))
    };
    let (cell, low, high) = found.iter().max_by(furthest)?;
    let experiment = cell.experiment;
    let evidence = cell.evidence(
        "mean of all, near which no trial lies",
        &experiment.response,
    )?;
    let words = |mode: &Mode| words::number(evidence.estimate.unit, mode.value);
    Some(Found::caution(
        About::Experiment(experiment),
        Caution::Modes,
        format!(
            "Identical trials fall into two groups: {} near {} and {} near {} ({}).",
            low.trials,
            words(low),
            high.trials,
            words(high),
            words::whole_cell(&cell.cell),
        ),
        format!(
            "The mean describes neither group: its interval says where more such trials would move the \
             mean, not what the next trial shows. Cells with such trials: {} of {}.",
            found.len(),
            dataset.cells.len(),
        ),
        evidence,
    ))
}

fn invalid<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let mut reasons: BTreeMap<String, Vec<TrialId>> = BTreeMap::new();
    // What was measured once more is there.
    for outcome in reduce::lacking(dataset.recording, &dataset.outcomes) {
        if let Some(reason) = outcome.validity.reason() {
            let same = reasons.entry(reason.to_string()).or_default();
            same.push(outcome.trial);
        }
    }
    let trials: Vec<TrialId> = reasons.values().flatten().copied().collect();
    if trials.is_empty() {
        return None;
    }
    let listed: Vec<String> = reasons
        .iter()
        .take(REASONS_LISTED_MAX)
        .map(|(reason, trials)| format!("{}: {reason}", TrialId::list(trials)))
        .collect();
    Some(Found::caution(
        About::Run,
        Caution::Invalid,
        format!(
            "{} of {} {} not measured again.",
            trials.len(),
            number::counted(dataset.outcomes.len(), "trial"),
            match trials.len() {
                1 => "is invalid and was",
                _ => "are invalid and were",
            },
        ),
        format!("{}.", listed.join("; ")),
        Evidence {
            what: "invalid trials".to_owned(),
            estimate: counted(trials.len(), dataset.outcomes.len()),
            trials,
        },
    ))
}

fn shared_cpus<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let hosts = dataset.hosts().len();
    let trials = dataset.trials();
    if !dataset.is_lab() || hosts < 2 || trials.is_empty() {
        return None;
    }
    let shared = dataset.cpus().map_or("the same CPUs".to_owned(), |cpus| {
        number::counted(cpus as u64, "CPU")
    });
    Some(Found::caution(
        About::Run,
        Caution::SharedCpus,
        format!("All {hosts} hosts are namespaces of this machine and share {shared}."),
        "CPU numbers are those of all hosts together, and a busy client slows the server. Link \
         rates, windows and segments are as on separate hosts; transaction rates, packet rates and \
         CPU cost are not.",
        Evidence {
            what: "hosts on one machine".to_owned(),
            estimate: counted(hosts, hosts),
            trials,
        },
    ))
}

fn skew<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let share = |record: &TrialRecord| {
        let skew = record.start_skew_ns?;
        (record.window_ns > 0).then(|| skew as f64 / record.window_ns as f64)
    };
    let late: Vec<(&TrialRecord, f64)> = dataset
        .recording
        .trials
        .iter()
        .filter_map(|record| Some((record, share(record)?)))
        .filter(|(_, share)| *share > SKEW_SHARE_MAX)
        .collect();
    let (worst, worst_share) = late.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let skew = worst.start_skew_ns? as f64;
    Some(Found::caution(
        About::Run,
        Caution::StartSkew,
        format!(
            "Flows started up to {} apart, {} of the measured window, in {}.",
            Unit::Nanoseconds.display(skew),
            words::percent(*worst_share),
            number::counted(late.len(), "trial"),
        ),
        "Only the window in which all flows ran is counted, but earlier connections had more time to grow \
         their windows.",
        Evidence {
            what: "largest difference between the start times of flows".to_owned(),
            estimate: Estimate::point(skew, Unit::Nanoseconds),
            trials: late.iter().map(|(record, _)| record.trial).collect(),
        },
    ))
}

fn replicates<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    // Whoever asks for one run knows that it is one.
    if dataset.recording.document.plan.trials.len() == 1 {
        return None;
    }
    let few: Vec<&CellOutcomes<'_>> = dataset
        .cells
        .iter()
        .filter(|cell| has_few_replicates(cell))
        .collect();
    dataset.measured().next()?;
    let least = few.iter().map(|cell| cell.valid.len()).min()?;
    let (claim, more) = if dataset.is_one_measurement() {
        (
            format!("Fewer than {REPLICATES_MIN} valid runs."),
            "`--runs` makes more",
        )
    } else {
        (
            format!(
                "{} of {} {} fewer than {REPLICATES_MIN} valid replicates.",
                few.len(),
                number::counted(dataset.cells.len(), "cell"),
                if few.len() == 1 { "has" } else { "have" },
            ),
            "a larger budget gives more",
        )
    };
    Some(Found::caution(
        About::Run,
        Caution::Replicates,
        claim,
        format!(
            "Of two values only their range is shown, which holds the true mean in half of all cases; one \
             has none. {}.",
            words::sentence(more)
        ),
        Evidence {
            what: "valid replicates of the least repeated cell".to_owned(),
            estimate: counted(least, few.len()),
            trials: few
                .iter()
                .flat_map(|cell| cell.valid.iter().chain(&cell.invalid))
                .map(|outcome| outcome.trial)
                .collect(),
        },
    ))
}

fn capped<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let mut caps: BTreeMap<(&str, &str), Vec<TrialId>> = BTreeMap::new();
    for flow in &dataset.recording.flows {
        for setting in &flow.settings {
            if let Some(cap) = &setting.capped_by {
                let trials = caps.entry((&setting.name, cap)).or_default();
                if trials.last() != Some(&flow.trial) {
                    trials.push(flow.trial);
                }
            }
        }
    }
    caps.into_iter()
        .enumerate()
        .map(|(at, ((setting, cap), mut trials))| {
            trials.sort_unstable();
            trials.dedup();
            Found::caution(
                About::Run,
                Caution::Capped,
                format!(
                    "{setting} was not as requested in {}: clamped by {cap}.",
                    number::counted(trials.len(), "trial")
                ),
                "The requested level was not in effect; the trial's settings show the values granted and \
                 effective.",
                Evidence {
                    what: format!("trials in which {setting} was clamped"),
                    estimate: counted(trials.len(), dataset.outcomes.len()),
                    trials,
                },
            )
            .named(at + 1)
        })
        .collect()
}

/// Requests that were due and not sent.
fn unsent<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let flows = dataset.recording.flows.iter();
    let counts = flows.filter_map(|flow| Some((flow.trial, flow.requests?)));
    let short: Vec<_> = counts.filter(|(_, count)| count.sent < count.due).collect();
    let trials = distinct(short.iter().map(|(trial, _)| *trial))?;
    let missed: u64 = short.iter().map(|(_, count)| count.due - count.sent).sum();
    Some(Found::caution(
        About::Run,
        Caution::ShortRequests,
        format!(
            "{} went unsent, in {}: responses came too slowly.",
            number::counted(missed, "due request"),
            number::counted(trials.len(), "trial")
        ),
        "Requests that were not sent have no latency: at this rate the tail is longer than shown.",
        Evidence {
            what: "trials in which requests that were due were not sent".to_owned(),
            estimate: counted(trials.len(), dataset.outcomes.len()),
            trials,
        },
    ))
}

/// Connections that failed, where one is made after another.
fn failed<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let counts = dataset
        .recording
        .flows
        .iter()
        .filter_map(|flow| Some((flow.trial, flow.connections.as_ref()?)));
    let short: Vec<_> = counts.filter(|(_, count)| count.failed > 0).collect();
    let trials = distinct(short.iter().map(|(trial, _)| *trial))?;
    let failed: u64 = short.iter().map(|(_, count)| count.failed).sum();
    let last = short
        .last()
        .and_then(|(_, count)| count.last_failure.as_ref());
    Some(Found::caution(
        About::Run,
        Caution::ShortConnections,
        format!(
            "{} failed, in {}{}.",
            number::counted(failed, "connection"),
            number::counted(trials.len(), "trial"),
            last.map_or(String::new(), |why| format!(", the last: {why}"))
        ),
        "Rate and latencies cover only the connections that were established.",
        Evidence {
            what: "trials in which connections failed".to_owned(),
            estimate: counted(trials.len(), dataset.outcomes.len()),
            trials,
        },
    ))
}

/// Datagrams longer than a packet of the path, in the words of the longest.
fn fragments<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let cut: Vec<_> = dataset.cut_datagrams().collect();
    let (_, wire, bytes) = cut.iter().max_by_key(|(_, _, bytes)| *bytes)?;
    let packets = wire.packets_of_datagram(*bytes);
    Some(Found::caution(
        About::Run,
        Caution::Fragments,
        format!(
            "Each datagram of {bytes} B goes in {packets} fragments, since an MTU of {} B carries {} B in one.",
            wire.mtu_bytes,
            wire.payload_bytes_max()
        ),
        "One lost fragment loses all of its datagram, and the path has more packets than datagrams are counted.",
        Evidence {
            what: "fragments of a datagram".to_owned(),
            estimate: Estimate::point(packets as f64, Unit::Count),
            trials: distinct(cut.iter().map(|(trial, ..)| *trial))?,
        },
    ))
}

/// Returns each of `trials` once, in order; nothing where there is none.
fn distinct(trials: impl Iterator<Item = TrialId>) -> Option<Vec<TrialId>> {
    let trials: BTreeSet<TrialId> = trials.collect();
    (!trials.is_empty()).then(|| trials.into_iter().collect())
}

fn shared_hosts<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let hosts = dataset.hosts();
    let shared: Vec<String> = hosts
        .iter()
        .filter(|host| host.admission == Admission::Shared)
        .map(|host| host.name.to_string())
        .collect();
    let trials = dataset.trials();
    if shared.is_empty() || trials.is_empty() {
        return None;
    }
    Some(Found::caution(
        About::Run,
        Caution::SharedHosts,
        format!(
            "Other runs may have been active at the same time on {}.",
            words::list(&shared)
        ),
        "The agent admitted this run as shared. Ask for exclusive use to measure alone.",
        Evidence {
            what: "hosts that were shared".to_owned(),
            estimate: counted(shared.len(), hosts.len()),
            trials,
        },
    ))
}

/// Trials with a flag that has a share, each with it, and the flag with the largest.
struct Shares<'d> {
    found: Vec<(TrialId, f64)>,
    most: &'d TrialFlag,
}

/// Returns the mean of what each of some trials has a share of, where there are any.
pub(super) fn of_shares(what: &str, found: &[(TrialId, f64)]) -> Option<Evidence> {
    let (trials, shares): (_, Vec<f64>) = found.iter().copied().unzip();
    Some(Evidence {
        what: what.to_owned(),
        estimate: share_interval(&shares)?,
        trials,
    })
}

/// Returns the shares that `of` takes from the flags of valid trials, where there are any.
fn shares<'d>(
    dataset: &'d Dataset<'_>,
    of: impl Fn(&TrialFlag) -> Option<f64>,
) -> Option<Shares<'d>> {
    let flags = dataset
        .valid()
        .flat_map(|outcome| outcome.flags.iter().map(|flag| (outcome.trial, flag)));
    let found = flags.filter_map(|(trial, flag)| Some((trial, of(flag)?, flag)));
    let found: Vec<(TrialId, f64, &TrialFlag)> = found.collect();
    let most = found.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.2;
    Some(Shares {
        found: found.iter().map(|one| (one.0, one.1)).collect(),
        most,
    })
}

impl Shares<'_> {
    /// Returns the caution that `begins` so: where it was, and the largest share.
    fn told<'d>(
        self,
        dataset: &'d Dataset<'_>,
        caution: Caution,
        begins: &str,
        explanation: &str,
        what: &str,
    ) -> Option<Found<'d>> {
        let of_them = match self.found.len() {
            1 => "",
            _ => ", the largest share",
        };
        let claim = format!(
            "{begins}{}: {}{of_them}.",
            among(self.found.len(), dataset),
            self.most
        );
        let evidence = of_shares(what, &self.found)?;
        let about = About::Run;
        Some(Found::caution(about, caution, claim, explanation, evidence))
    }
}

/// What shared a device with the flows, at its most.
fn other_traffic<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let of_others = |flag: &TrialFlag| match flag {
        TrialFlag::OtherTraffic { share, .. } => Some(*share),
        _ => None,
    };
    shares(dataset, of_others)?.told(
        dataset,
        Caution::OtherTraffic,
        "Other traffic passed the device",
        "The flows could not have what others had in their direction; behind what goes the other way their ACKs wait. What \
         readings of this measurement may take is left out. Stop other traffic.",
        "share of the payload that was neither the flows' nor of readings, in those trials",
    )
}

/// Nothing came for a part of the window: its rate is the mean of a path that carries and one that does not.
fn silent<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let of_window = |flag: &TrialFlag| match flag {
        TrialFlag::Silent { share, .. } => Some(*share),
        _ => None,
    };
    shares(dataset, of_window)?.told(
        dataset,
        Caution::Silent,
        "The path was silent",
        "The number is the mean of that and of the rest of the window, and none of either. A link that was down, a peer or \
         a path that was gone for a while does this; so do losses of retransmissions, time after time. Look at the links and \
         logs of both hosts, and measure again.",
        "share of the window in which nothing arrived, in those trials",
    )
}

/// What had come before the window and is counted in it: the path did not carry so much in that time.
fn held_back<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    let much = |flag: &TrialFlag| match flag {
        TrialFlag::HeldBack(share) if *share >= HELD_BACK_SHARE_TOLD => Some(*share),
        _ => None,
    };
    shares(dataset, much)?.told(
        dataset,
        Caution::HeldBack,
        "Throughput holds what came before the window",
        "TCP counts what is in order: what waits for a lost segment counts when that comes. Longer windows, and more traffic \
         before them (`-O`), make it little.",
        "share of what is counted that had come before, in those trials",
    )
}

/// Trials whose workers waited for a CPU long, those that a quota held back apart: other threads had nothing of theirs.
fn starved<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let waited = |outcome: &&Outcome| {
        let waited = outcome.value(name::WORKER_WAITED)?;
        let ran = outcome.value(name::WORKER_WANTED_SHARE_MAX)? - waited;
        reduce::is_starved(waited, ran).then_some((outcome.trial, waited))
    };
    let told = |is_held: bool, ends: &str, explanation: &str| {
        let of_kind = dataset
            .valid()
            .filter(|outcome| cpu::waits_under_quota(outcome) == is_held);
        let found: Vec<(TrialId, f64)> = of_kind.filter_map(|one| waited(&one)).collect();
        let what = "share of the time that a worker waited for a CPU, in those trials";
        let evidence = of_shares(what, &found)?;
        let claim = format!(
            "A worker waited for a CPU {} of the time{}, longer than it ran{ends}.",
            words::percent(evidence.estimate.value),
            among(found.len(), dataset),
        );
        let (about, caution) = (About::Run, Caution::Starved);
        Some(Found::caution(about, caution, claim, explanation, evidence))
    };
    let held = told(
        true,
        ", under the quota of its control group",
        "The group was stopped for the rest of each period in which it had used its quota, even if CPUs were idle: \
         rates are lower than these hosts and their path allow, and round trips longer. Raise the quota (cpu.max, \
         cpu.cfs_quota_us; a container's CPU limit).",
    );
    let starved = told(
        false,
        "",
        "Other threads had the CPU. Rates may then be lower than these hosts and their path allow, and round \
         trips longer; the kernel's own network processing may have waited too. Stop other programs, or \
         give both ends CPUs of their own.",
    );
    let held = held.map(|found| found.named(OF_QUOTA));
    held.into_iter().chain(starved).collect()
}

/// Says in how many trials something was found, where there is more than one.
fn among(found: usize, dataset: &Dataset<'_>) -> String {
    match dataset.outcomes.len() {
        1 => String::new(),
        all => format!(" in {found} of {}", number::counted(all, "trial")),
    }
}

/// Returns the share of a CPU's time that its counts in /proc/stat may be wrong by: they are of whole ticks, and a window
/// begins and ends anywhere between two.
fn tick_share(dataset: &Dataset<'_>, trial: TrialId) -> f64 {
    /// A tick of /proc/stat (USER_HZ is 100).
    const TICK_NS: f64 = 1e7;
    let mut records = dataset.recording.trials.iter();
    let record = records.find(|record| record.trial == trial);
    record.map_or(0.0, |record| TICK_NS / record.window_ns.max(1) as f64)
}

fn disturbances<'d>(dataset: &'d Dataset<'_>) -> Option<Found<'d>> {
    // Without their number only shares are known.
    let cpus = dataset.cpus().unwrap_or(f64::INFINITY);
    let programs = if dataset.is_lab() {
        "other programs (with the lab's own relays)"
    } else {
        "other programs"
    };
    let most_of_others = DISTURBED_SHARE_MAX.max(OTHERS_CPUS_MAX / cpus);
    let kinds = [
        (name::CPU_STEAL, DISTURBED_SHARE_MAX, "the hypervisor"),
        (name::CPU_OTHERS_ALL, most_of_others, programs),
    ];
    let taken = kinds.map(|(name, most, who)| {
        let is_seen = |it: &Outcome, share: f64| share > most.max(tick_share(dataset, it.trial));
        let share = |it: &Outcome| {
            let share = it.value(name)? / cpus;
            is_seen(it, share).then_some(share)
        };
        let found = dataset
            .valid()
            .filter_map(|it| Some((it.trial, share(it)?)));
        (who, found.collect::<Vec<(TrialId, f64)>>())
    });
    // What ticks lose of a CPU that rests is nothing that the traffic lacks.
    let scarce = dataset
        .valid()
        .filter(|it| !it.stays_within(name::CPU_MISSING_SCARCE, DISTURBED_SHARE_MAX));
    let missing = scarce
        .filter_map(|it| Some((it.trial, unusually_missing(&dataset.outcomes, it)?)))
        .collect::<Vec<_>>();
    let mean = |found: &[(TrialId, f64)]| {
        let values: Vec<f64> = found.iter().map(|(_, share)| *share).collect();
        share_interval(&values)
    };
    let all = taken.iter().map(|(_, found)| found).chain([&missing]);
    let estimates = all.clone().filter_map(|found| mean(found));
    let worst = estimates.reduce(|a, b| if b.value > a.value { b } else { a })?;
    let trials: BTreeSet<TrialId> = all.flatten().map(|(trial, _)| *trial).collect();
    let of_taken = taken.iter().flat_map(|(_, found)| found);
    let of_taken: BTreeSet<TrialId> = of_taken.map(|(trial, _)| *trial).collect();
    let told = taken.iter().filter_map(|(who, found)| {
        let of = if found.len() == of_taken.len() {
            String::new()
        } else {
            format!(" in {}", found.len())
        };
        let share = words::percent(mean(found)?.value);
        Some(format!("{who} {share}{of}"))
    });
    let told: Vec<String> = told.collect();
    let mut claims = Vec::new();
    if !told.is_empty() {
        let among = among(of_taken.len(), dataset);
        claims.push(format!(
            "others took CPU time{among}: {}",
            words::list(&told)
        ));
    }
    claims.extend(mean(&missing).map(|excess| {
        format!(
            "{} more of the CPUs' time than usual is in no CPU mode{}: taken, or not counted",
            words::percent(excess.value),
            among(missing.len(), dataset)
        )
    }));
    let differ = match dataset.outcomes.len() {
        1 => "",
        _ => ", and identical trials may differ because of it",
    };
    Some(Found::caution(
        About::Run,
        Caution::Disturbed,
        format!("{}.", words::sentence(&claims.join("; "))),
        if told.is_empty() {
            format!(
                "If it was taken, the traffic lacks it{differ}. A dedicated machine, or other trials, tell."
            )
        } else {
            format!(
                "The traffic lacks CPU time that others take{differ}. Stop other programs, or measure on a \
                 dedicated machine; cost per byte and per transaction excludes it."
            )
        },
        Evidence {
            what: "share of the CPUs' time that went elsewhere, in the trials in which most did"
                .to_owned(),
            estimate: worst,
            trials: trials.into_iter().collect(),
        },
    ))
}
