//! Whether connections lie on receive queues less evenly than chance lays them.
//!
//! In the chapter on queues, each trial with several connections is one draw. Chance exceeds its own
//! bound in 5 of 100 of them at the most, so that of n trials the number that exceed it is binomial;
//! more than that explains (at [`SIGNIFICANCE`]) is an imbalance that another hash could mend. Where
//! sockets told their queues, connections are judged, else packets, against what chance makes of
//! connections as fast as these were.

use linerate_model::experiment::{Experiment, Factor};
use linerate_model::finding::{Evidence, EvidenceList};
use linerate_model::number;
use statrs::distribution::{Binomial, DiscreteCDF};

use super::found::{About, Found, What};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::study;
use crate::verdicts::ASIDE;
use crate::words;

/// Share of draws in which chance may exceed its bound.
const EXCEEDED_SHARE: f64 = 0.05;
/// Probability below which so many trials above the bound are not chance.
const SIGNIFICANCE: f64 = ASIDE;
/// Trials from which on anything is said: fewer could hardly be significant.
const TRIALS_MIN: usize = 3;

pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    dataset
        .experiments_of(study::QUEUES)
        .filter_map(|experiment| finding(dataset, experiment))
        .collect()
}

/// How often the fullest queue was above what chance does not exceed, as far as it was judged.
pub(crate) struct Balance<'d, 'a> {
    /// Cells with several connections, those with the most first.
    cells: Vec<&'d CellOutcomes<'a>>,
    /// The response that is judged, and its bound.
    judged: &'static str,
    bound: &'static str,
    /// What is spread: connections, or packets where no socket told its queue.
    what: &'static str,
    /// Trials in which the fullest queue was above the bound.
    above: usize,
    /// Trials that were judged.
    trials: usize,
}

impl Balance<'_, '_> {
    /// Returns whether so many trials above the bound are more than chance explains.
    fn is_worse(&self) -> bool {
        is_worse(self.above, self.trials)
    }

    /// Says how even the queues are.
    pub fn verdict(&self) -> String {
        let (what, above) = (self.what, self.above);
        let trials = number::counted(self.trials, "trial");
        if self.is_worse() {
            format!(
                "RSS spreads the {what} less evenly than random hashing would: the fullest queue is above the 95 % \
                 bound in {above} of {trials}."
            )
        } else {
            format!(
                "RSS is not shown to spread the {what} less evenly than random hashing would: the fullest queue is \
                 above the 95 % bound in {above} of {trials}."
            )
        }
    }
}

/// Judges the trials of `experiment`; absent of too few, since those could not show anything.
pub(crate) fn balance<'d, 'a>(
    dataset: &'d Dataset<'a>,
    experiment: &Experiment,
) -> Option<Balance<'d, 'a>> {
    let cells = dataset.cells_of(&experiment.name);
    let several = |cell: &&CellOutcomes<'_>| cell.workload.connections > 1;
    let mut cells: Vec<&CellOutcomes<'_>> = cells.into_iter().filter(several).collect();
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.level(Factor::Connections).cloned()));
    let mapped = cells
        .iter()
        .any(|cell| cell.mean(name::RX_QUEUE_FLOWS_IMBALANCE).is_some());
    let (judged, bound, what) = if mapped {
        (
            name::RX_QUEUE_FLOWS_IMBALANCE,
            name::RX_QUEUE_CHANCE_MOST,
            "connections",
        )
    } else {
        (
            name::RX_QUEUE_IMBALANCE,
            name::RX_QUEUE_CHANCE_PACKETS,
            "packets",
        )
    };
    let exceeds = cells
        .iter()
        .flat_map(|cell| &cell.valid)
        .filter_map(|outcome| {
            let bound = outcome.value(bound)?;
            // Both are counts over the same mean; only their last digits may differ by rounding.
            Some(outcome.value(judged)? > bound * (1.0 + 1e-9))
        });
    let exceeds: Vec<bool> = exceeds.collect();
    (exceeds.len() >= TRIALS_MIN).then(|| Balance {
        cells,
        judged,
        bound,
        what,
        above: exceeds.iter().filter(|exceeds| **exceeds).count(),
        trials: exceeds.len(),
    })
}

fn finding<'d>(dataset: &Dataset<'_>, experiment: &'d Experiment) -> Option<Found<'d>> {
    let balance = balance(dataset, experiment).filter(Balance::is_worse)?;
    let claim = balance.verdict();
    let Balance {
        cells,
        judged,
        bound,
        what,
        ..
    } = balance;
    let pieces = [
        (
            format!("{what} of the fullest receive queue over the mean"),
            judged,
        ),
        (
            "what random hashing does not exceed in 95 of 100 cases".to_owned(),
            bound,
        ),
    ];
    let of_cell = |cell: &CellOutcomes<'_>| {
        let levels = words::whole_cell(&cell.cell);
        let piece = |(what, response): &(String, &str)| {
            cell.evidence(format!("{what}, {levels}"), response)
        };
        pieces.iter().filter_map(piece).collect::<Vec<_>>()
    };
    let mut all: Vec<Evidence> = cells.iter().flat_map(|cell| of_cell(cell)).collect();
    let first = (!all.is_empty()).then(|| all.remove(0))?;
    Some(Found {
        about: About::Experiment(experiment),
        what: What::QueueBalance,
        claim,
        explanation: format!(
            "The bound is what the fullest queue exceeds in {} of cases if a hash spreads such \
             connections at random. Something steers them: too few fields in the hash, a table \
             or weights that prefer queues, or rules (`ethtool -n`, `ethtool -x`).",
            words::percent(EXCEEDED_SHARE)
        ),
        effect: first.estimate,
        evidence: EvidenceList::new(first, all),
        action: None,
    })
}

/// Returns whether so many of `trials` above the bound are more than chance explains.
fn is_worse(above: usize, trials: usize) -> bool {
    let Ok(chance) = Binomial::new(EXCEEDED_SHARE, trials as u64) else {
        return false;
    };
    // P(X ≥ above) = 1 − P(X ≤ above − 1).
    above > 0 && chance.sf(above as u64 - 1) < SIGNIFICANCE
}

#[cfg(test)]
mod tests {
    use linerate_model::experiment::Level;
    use linerate_model::metric::Metric;
    use linerate_model::sample::{QueueKind, Subject, TrialSample};

    use super::*;
    use crate::compare::draw::Draw;
    use linerate_truth::recording::{MadeRun, Truth, WINDOW_NS, stream};

    #[test]
    fn what_is_worse_than_chance_follows_from_the_binomial_distribution() {
        // Of 20 trials P(X ≥ 4) is 0.016 and P(X ≥ 6) is 0.0003 (tables of B(20, 0.05)); of 3, P(X ≥ 2) is
        // 0.007 and P(X = 3) 0.0001.
        for (above, trials, expected) in [
            (0, 20, false),
            (1, 20, false),
            (3, 20, false),
            (4, 20, false),
            (6, 20, true),
            (3, 3, true),
            (2, 3, false),
        ] {
            assert_eq!(is_worse(above, trials), expected, "{above} of {trials}");
        }
    }

    /// Studies of 50 trials in which 16 connections, whose rates differ by 3 %, fall into 16 queues at random.
    #[test]
    fn packets_of_unequal_connections_are_no_fault_of_the_hash() {
        const STUDIES: u64 = 30;
        let findings = (0..STUDIES).filter(|seed| {
            let mut draw = Draw::new(*seed);
            let mut run = MadeRun::new(1, Some(1e9));
            run.tenths = vec![0, 10];
            run.experiment("queues", Some(12), stream());
            let level = (Factor::Connections, Level::Count(16));
            let mut dealt = Vec::new();
            for replicate in 1..=50 {
                let shares: Vec<f64> = (0..16).map(|_| 1.0 + 0.03 * draw.normal()).collect();
                let mut packets = vec![0.0; 16];
                for share in &shares {
                    packets[draw.below(16) as usize] += 1000.0 * share;
                }
                dealt.push(packets);
                let truth = Truth {
                    shares,
                    ..Truth::stream(500e6)
                };
                run.trial(std::slice::from_ref(&level), replicate, &truth);
            }
            let trials: Vec<_> = run.recording.trials.iter().map(|it| it.trial).collect();
            for (trial, packets) in trials.into_iter().zip(dealt) {
                for (queue, packets) in packets.into_iter().enumerate() {
                    let readings = [(0, 0), (WINDOW_NS as i64, packets as i64)];
                    run.recording
                        .samples
                        .extend(readings.map(|(at_ns, value)| TrialSample {
                            trial,
                            host: "server".into(),
                            subject: Subject::Queue("eth0".to_owned(), QueueKind::Rx, queue as u32),
                            metric: Metric::QueueRxPackets,
                            at_ns,
                            value,
                        }));
                }
            }
            let dataset = Dataset::new(&run.recording);
            let judged = dataset.outcomes[0].value(name::RX_QUEUE_CHANCE_PACKETS);
            assert!(judged.is_some(), "nothing is judged");
            !super::findings(&dataset).is_empty()
        });
        let found = findings.count();
        // P(X ≥ 6) of 50 is 0.038; by the bound of equal connections it is 0.7 here.
        assert!(found <= 3, "{found} of {STUDIES} studies, seeds from 0");
    }
}
