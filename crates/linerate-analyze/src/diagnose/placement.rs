//! Where the two ends of a flow ran, where they could share a CPU.
//!
//! On one machine the scheduler may put both ends of a request/response flow on one CPU or on two;
//! the second costs wake-ups across CPUs, and one-connection latency differs several times with it.
//! Identical trials then differ for a reason that nobody asked for.
//!
//! Rule: in cells with one connection whose valid trials ran in both ways, the transaction rate on
//! one CPU over that on two, as the geometric mean over those cells, is beyond [`FACTOR_MIN`] or
//! below its inverse, and its interval excludes 1 with the error that the report leaves this rule ([`ASIDE`]): Student's
//! on the logarithms, of the cells where there are several, of the trials of one.
//!
//! Where all of them ran with both ends on one CPU, a caution says so: no network is like that. Over a long path it makes
//! no difference, however many requests are under way: TCP's shortest round trip tells, of datagrams the latency.

use linerate_model::TrialId;
use linerate_model::experiment::Experiment;
use linerate_model::finding::{Caution, Evidence, EvidenceList};
use linerate_model::unit::Unit;

use super::found::{About, Found, What};
use crate::compare::interval::{deviation, mean, squares, student, student_t_interval};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::verdicts::{ASIDE, ratio};
use crate::words;

/// Effect from which on placement deserves a reader's time; run-to-run noise stays below it.
const FACTOR_MIN: f64 = 1.25;

/// Transactions a second from which on a wake-up is a tenth of a round trip: one of another CPU takes up to 50 µs.
const RATE_MIN: f64 = 2000.0;

/// Round trip beside which that is a tenth at the most; with several requests under way the rate says nothing of it.
const ROUND_TRIP_NS_LONG: f64 = 1e9 / RATE_MIN;

/// Trials and their transaction rates.
type Side = Vec<(TrialId, f64)>;

/// The transaction rates of one cell, by where its two ends ran.
#[derive(Default)]
struct Rates {
    one_cpu: Side,
    two_cpus: Side,
    /// The path is so long that a wake-up makes no difference.
    is_far: bool,
}

pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    if !dataset.is_one_machine() {
        return Vec::new();
    }
    let of_cells = dataset.experiments().iter().map(|experiment| {
        let cells = dataset
            .cells_of(&experiment.name)
            .into_iter()
            .filter(|cell| is_one_round_trip(cell));
        let rates: Vec<Rates> = cells.map(|cell| rates(dataset, cell)).collect();
        (experiment, rates)
    });
    let of_cells: Vec<(&Experiment, Vec<Rates>)> = of_cells.collect();
    let differing = of_cells
        .iter()
        .filter_map(|(experiment, rates)| differing(experiment, rates));
    let together = of_cells
        .iter()
        .filter_map(|(experiment, rates)| together(experiment, rates));
    differing.chain(together).collect()
}

/// One transaction at a time is what wakes the other end each time.
fn is_one_round_trip(cell: &CellOutcomes<'_>) -> bool {
    cell.is_rr() && cell.workload.connections == 1
}

/// All trials ran with both ends on one CPU, which nobody may have asked for.
fn together<'d>(experiment: &'d Experiment, rates: &[Rates]) -> Option<Found<'d>> {
    if rates.iter().any(|rates| !rates.two_cpus.is_empty()) {
        return None;
    }
    let evidence = on_one_cpu(rates.iter().filter(|rates| !rates.is_far))?;
    if evidence.estimate.value < RATE_MIN {
        return None;
    }
    Some(Found::caution(
        About::Experiment(experiment),
        Caution::OneCpu,
        format!(
            "Both ends ran on one CPU: {} without a wake-up of another CPU, which two hosts would need.",
            words::estimate(&evidence.estimate)
        ),
        "Hosts of a real network never share a CPU, and with the ends apart one transaction at a time \
         can be several times slower. Pin them apart with -A LOCAL,REMOTE to see that.",
        evidence,
    ))
}

fn on_one_cpu<'r>(rates: impl Iterator<Item = &'r Rates>) -> Option<Evidence> {
    let what = "transactions per second, both ends on one CPU";
    side(what, rates.flat_map(|rates| &rates.one_cpu))
}

fn side<'r>(what: &str, rates: impl Iterator<Item = &'r (TrialId, f64)>) -> Option<Evidence> {
    let (trials, values): (_, Vec<f64>) = rates.copied().unzip();
    Some(Evidence {
        what: what.to_owned(),
        estimate: student_t_interval(&values, Unit::PerSecond)?,
        trials,
    })
}

fn rates(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Rates {
    let shortest_ns = cell.mean(name::PATH_RTT);
    let trip_ns = shortest_ns.or_else(|| cell.mean(name::RTT_P50));
    let mut rates = Rates {
        is_far: trip_ns.is_some_and(|ns| ns > ROUND_TRIP_NS_LONG),
        ..Rates::default()
    };
    for outcome in &cell.valid {
        let ends = dataset.recording.flows_of(outcome.trial);
        let cpus: Vec<u32> = ends.filter_map(|flow| flow.cpu).collect();
        let ([one, other], Some(rate)) = (cpus.as_slice(), outcome.value(name::TRANSACTIONS))
        else {
            continue;
        };
        let side = if one == other {
            &mut rates.one_cpu
        } else {
            &mut rates.two_cpus
        };
        side.push((outcome.trial, rate));
    }
    rates
}

fn differing<'d>(experiment: &'d Experiment, rates: &[Rates]) -> Option<Found<'d>> {
    let is_both = |rates: &&Rates| !rates.one_cpu.is_empty() && !rates.two_cpus.is_empty();
    let rates: Vec<&Rates> = rates.iter().filter(is_both).collect();
    let mean_of =
        |side: &[(TrialId, f64)]| mean(&side.iter().map(|(_, rate)| *rate).collect::<Vec<_>>());
    let logs: Vec<f64> = rates
        .iter()
        .map(|rates| (mean_of(&rates.one_cpu) / mean_of(&rates.two_cpus)).ln())
        .filter(|log| log.is_finite())
        .collect();
    if logs.is_empty() {
        return None;
    }
    let log = mean(&logs);
    if log.abs() < FACTOR_MIN.ln() {
        return None;
    }
    // Not `student_t_interval` of the factors: they are skewed, their logarithms are not.
    let half = match rates.as_slice() {
        [one] => half_of_trials(one)?,
        _ => half_of(logs.len() as f64 - 1.0)? * deviation(&logs) / (logs.len() as f64).sqrt(),
    };
    if log.abs() <= half {
        return None;
    }
    let ends = (log - half, log + half);
    let effect = ratio(log, ends, ASIDE, logs.len());
    let one = on_one_cpu(rates.iter().copied())?;
    let two = rates.iter().flat_map(|rates| &rates.two_cpus);
    let two = side("transactions per second, ends on two CPUs", two)?;
    Some(Found {
        about: About::Experiment(experiment),
        what: What::Placement,
        claim: format!(
            "Where the two ends ran decides the rate: {} on one CPU, {} on two.",
            words::estimate(&one.estimate),
            words::estimate(&two.estimate),
        ),
        explanation: "Hosts of a real network never share a CPU. Identical trials differ by this \
                      where the scheduler was free to choose; pin the ends with -A LOCAL,REMOTE to \
                      compare like with like."
            .to_owned(),
        effect,
        evidence: EvidenceList::new(one, vec![two]),
        action: None,
    })
}

/// Half of the interval of the difference between the logarithms of both sides, at the spread that they share.
fn half_of_trials(rates: &Rates) -> Option<f64> {
    let logs = [&rates.one_cpu, &rates.two_cpus]
        .map(|side| side.iter().map(|(_, rate)| rate.ln()).collect::<Vec<f64>>());
    let [one, two] = [logs[0].len(), logs[1].len()].map(|count| count as f64);
    let freedom = one + two - 2.0;
    let spread = (logs.iter().map(|logs| squares(logs)).sum::<f64>() / freedom).sqrt();
    Some(half_of(freedom)? * spread * (1.0 / one + 1.0 / two).sqrt())
}

/// Returns Student's quantile at which this rule errs as often as it may; none where nothing tells the spread.
fn half_of(freedom: f64) -> Option<f64> {
    (freedom > 0.0).then(|| student(freedom, 1.0 - ASIDE / 2.0))
}
