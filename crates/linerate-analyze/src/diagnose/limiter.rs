//! What limits a cell, and one finding for each limiter of the host as it is.

use linerate_model::finding::{EvidenceList, Finding, FindingKind};
use linerate_model::limiter::Limiter;
use linerate_model::run::Recording;
use linerate_model::workload::{Direction, Workload};

use super::found::{About, Found, What};
use super::rule::{Judge, is_same};
use super::rules::{RULES, rule_of};
use super::verdict::Verdict;
use super::{both_ways, inferred, round_trip, same_rate, say, stream};
use crate::dataset::{CellOutcomes, Dataset};
use crate::infer::Inference;
use crate::reduce::{Outcome, describe};
use crate::words;

/// Trials that a finding about CPUs rests on at least, where trials were repeated as often.
const REPEATED_TRIALS_MIN: usize = 3;

/// Returns what limits `cell`, if a rule holds; of a cell without a valid trial, what kept it from one.
pub(crate) fn limiter_of<'c>(
    dataset: &Dataset<'_>,
    cell: &'c CellOutcomes<'_>,
) -> Option<&'c Verdict> {
    let verdict = cell.limiter.get_or_init(|| find(dataset, cell));
    verdict.as_ref()
}

/// Returns the limiter alone.
pub(crate) fn limits(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Limiter> {
    limiter_of(dataset, cell).map(|verdict| verdict.limiter)
}

/// Returns what limits the first cell of a recording, had its trials these outcomes.
pub fn limiter_of_outcomes(recording: &Recording, outcomes: Vec<Outcome>) -> Option<Limiter> {
    let dataset = Dataset::of(recording, outcomes);
    limits(&dataset, dataset.cells.first()?)
}

fn find(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let concluded = find_alone(dataset, cell);
    let verdict = proven(dataset, cell, concluded)?;
    // What a path or a host has left beside other groups is no limit of either: only what each flow's own TCP and
    // pacer say is.
    let is_of_flows = matches!(
        verdict.limiter,
        Limiter::Pacing | Limiter::ReceiverWindow | Limiter::SendBuffer | Limiter::Application
    );
    (is_of_flows || cell.experiment.beside.is_empty()).then_some(verdict)
}

/// Returns what was concluded of `cell` after what was changed to prove it: the limiter that is proven, and none that is
/// refuted.
fn proven(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    concluded: Option<Verdict>,
) -> Option<Verdict> {
    let proofs = &dataset.proofs;
    let Some((proof, limiter)) = proofs
        .deciding()
        .and_then(|proof| Some((proof, proof.limiter?)))
    else {
        return concluded.filter(|verdict| !proofs.refutes(verdict.limiter));
    };
    if let Some(mut verdict) = concluded.filter(|verdict| verdict.limiter == limiter) {
        verdict.explanation += &format!(
            " A change proves it: {}, {}.",
            proof.change(),
            proof.effect()
        );
        return Some(verdict);
    }
    let response = cell.experiment.response.as_str();
    let first = cell.evidence(describe(response).title, response)?;
    Some(Verdict {
        limiter,
        claim: format!(
            "{} limits the number, as a change shows: {}, {}.",
            words::sentence(limiter.title()),
            proof.change(),
            proof.effect()
        ),
        explanation: format!("{}.", words::sentence(limiter.remedy().raises)),
        effect: cell.main().unwrap_or(first.estimate),
        weight: first.estimate.value,
        evidence: EvidenceList::new(first, Vec::new()),
    })
}

fn find_alone(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let Some(failed) = cell.of_invalid() else {
        let of_other = |other: &CellOutcomes<'_>| Some(first(dataset, other)?.limiter);
        return first(dataset, cell).or_else(|| same_rate::verdict(dataset, cell, of_other));
    };
    // Of the first rule that holds, as elsewhere: what is full is not short of CPUs as well.
    let mut verdict = first(dataset, &failed)?;
    if !rule_of(verdict.limiter)?.explains_failure {
        return None;
    }
    verdict.explanation +=
        " No trial of it is valid: this explains why, and there is no number to rely on.";
    Some(verdict)
}

/// What is concluded of `cell`, of each direction for itself where payload goes both ways.
pub(super) fn first(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    if cell.workload.goes_both_ways() {
        return both_ways::verdict(dataset, cell);
    }
    let inference = inferred::of_cell(dataset, cell);
    told(dataset, cell, inference.limiter?, &inference)
}

/// What is told of `cell`, whose limiter is `limiter`.
fn told(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    limiter: Limiter,
    inference: &Inference,
) -> Option<Verdict> {
    let by_pattern = RULES.iter().find_map(|(_, rule)| {
        let verdict = match rule.judge {
            Judge::Cell(tell) => tell(dataset, cell),
            Judge::Cause(..) if !is_same(rule.limiter, limiter) => None,
            Judge::Cause(..) => stream::told(dataset, cell, rule),
        };
        verdict.filter(|verdict| is_same(verdict.limiter, limiter))
    });
    by_pattern.or_else(|| {
        let facts = inference.because.iter().take(say::FACTS_SHOWN);
        let responses = inferred::responses(dataset, cell, facts);
        say::verdict(cell, limiter, inference, responses)
    })
}

/// Returns the limiters that are left standing where none is known to be it, the likelier first.
pub(crate) fn standing(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Vec<Limiter> {
    let mut standing = inferred::of_cell(dataset, cell).standing();
    standing.retain(|limiter| !dataset.proofs.refutes(*limiter));
    standing
}

/// Returns one finding for each limiter of the host as it is: a cause and the group of cells that it
/// holds down, over all experiments.
pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let cells = dataset.cells.iter();
    // Where all share their trials with others, what holds each by its own rate, window or buffer is what there is to tell.
    let mut experiments = dataset.experiments().iter();
    let are_all_beside = experiments.all(|one| !one.beside.is_empty());
    let is_told = |cell: &&CellOutcomes<'_>| {
        dataset.is_as_it_is(cell) || (are_all_beside && dataset.is_unburdened(cell))
    };
    let cells: Vec<&CellOutcomes<'_>> = cells.filter(is_told).collect();
    // Where others were repeated, one trial that is left of a cell is no evidence, nor are two in all of
    // who has the CPUs, which changes from trial to trial.
    let are_repeated = cells
        .iter()
        .any(|cell| cell.valid.len() >= REPEATED_TRIALS_MIN);
    let is_known = |cell: &&CellOutcomes<'_>| !are_repeated || cell.valid.len() != 1;
    let mut by_limiter: Vec<(Limiter, Vec<(&Verdict, &CellOutcomes<'_>)>)> = Vec::new();
    for cell in cells.iter().copied().filter(is_known) {
        let Some(verdict) = limiter_of(dataset, cell) else {
            continue;
        };
        match by_limiter
            .iter_mut()
            .find(|(limiter, _)| *limiter == verdict.limiter)
        {
            Some((_, verdicts)) => verdicts.push((verdict, cell)),
            None => by_limiter.push((verdict.limiter, vec![(verdict, cell)])),
        }
    }
    by_limiter.retain(|(limiter, verdicts)| {
        let trials: usize = verdicts.iter().map(|(_, cell)| cell.valid.len()).sum();
        let changes = matches!(limiter, Limiter::Cpu | Limiter::OtherPrograms);
        // A cell without a valid trial is told by why it has none.
        !are_repeated || !changes || trials == 0 || trials >= REPEATED_TRIALS_MIN
    });
    // What has nothing to mend is told where there is nothing else; chapters have it for every cell.
    let is_plain = |verdicts: &[(&Verdict, &CellOutcomes<'_>)]| {
        let cells = verdicts.iter().map(|(_, cell)| cell);
        let plain = cells
            .filter(|cell| round_trip::is_plain(dataset, cell))
            .count();
        verdicts[0].0.limiter == Limiter::RoundTrip && 2 * plain > verdicts.len()
    };
    // The generator's is a caution, and leaves the page to others.
    let is_told = |(limiter, verdicts): &(Limiter, Vec<_>)| {
        *limiter != Limiter::Generator && !is_plain(verdicts)
    };
    if by_limiter.iter().any(is_told) {
        by_limiter.retain(|(_, verdicts)| !is_plain(verdicts));
    }
    by_limiter
        .into_iter()
        .filter_map(|(limiter, verdicts)| finding(limiter, verdicts, cells.len()))
        .collect()
}

fn finding<'d>(
    limiter: Limiter,
    verdicts: Vec<(&Verdict, &CellOutcomes<'d>)>,
    cells: usize,
) -> Option<Found<'d>> {
    let same = verdicts.len();
    let mut titles: Vec<String> = Vec::new();
    for (_, cell) in &verdicts {
        if !titles.contains(&cell.experiment.title) {
            titles.push(cell.experiment.title.clone());
        }
    }
    let (shown, shown_cell) = verdicts
        .into_iter()
        .max_by(|a, b| a.0.weight.total_cmp(&b.0.weight))?;
    let experiment = shown_cell.experiment;
    let mut explanation = shown.explanation.clone();
    if cells > 1 {
        let levels = words::whole_cell(&shown_cell.cell);
        explanation += &format!(
            " Limited by {}: {same} of {cells} cells ({}); the one shown is: {levels}.",
            limiter.title(),
            words::list(&titles)
        );
    }
    Some(Found {
        about: About::Experiment(experiment),
        what: What::Limiter(limiter),
        claim: shown.claim.clone(),
        explanation,
        effect: shown.effect,
        evidence: shown.evidence.clone(),
        action: None,
    })
}

/// Returns what the evidence of `cell` says to do about `limiter`, where that is not what is done about others of its
/// kind.
pub(crate) fn evident(
    limiter: Limiter,
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
) -> Option<String> {
    let of_direction = |[shown, _]: &[both_ways::Way<'_>; 2]| {
        let verdict = shown.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.limiter == limiter)
    };
    if let Some([shown, other]) = both_ways::ways(dataset, cell).filter(of_direction) {
        return match other.verdict {
            Some(_) => evident(limiter, dataset, &shown.cell),
            None => Some(format!(
                "measure what goes {} alone, {}: what limits it is not known",
                other.words,
                match other.cell.workload.traffic.direction() {
                    Some(Direction::FromServer) => "with `-R` in the place of `--bidir`",
                    _ => "without `--bidir`",
                }
            )),
        };
    }
    (rule_of(limiter)?.evident?)(dataset, cell)
}

/// Returns the finding with what the evidence of the cell that it shows says to do.
pub(crate) fn advised(finding: Finding, dataset: &Dataset<'_>) -> Finding {
    let action = match finding.kind {
        FindingKind::Limiter(limiter) => {
            let shown = finding.evidence.as_slice().first().map(|one| &one.trials);
            let cell = shown.and_then(|trials| {
                let is_shown = |cell: &&CellOutcomes<'_>| cell.trials().iter().eq(trials);
                dataset.cells.iter().find(is_shown)
            });
            cell.and_then(|cell| evident(limiter, dataset, cell))
        }
        _ => finding.action.clone(),
    };
    Finding { action, ..finding }
}

/// Returns what to do about `limiter`, if there is anything.
pub(crate) fn next(limiter: Limiter, workload: &Workload) -> Option<String> {
    (rule_of(limiter)?.next)(workload)
}

#[cfg(test)]
mod tests {
    use linerate_model::Bytes;
    use linerate_model::workload::Traffic;

    use super::*;

    #[test]
    fn what_was_asked_for_changes_what_to_do() {
        let mut workload = Workload::stream(Direction::ToServer);
        let check = |limiter, workload: &Workload, words: &str| {
            let said = next(limiter, workload).unwrap_or_default();
            assert!(said.contains(words), "{said}");
        };
        assert_eq!(next(Limiter::LinkRate, &workload), None);
        check(Limiter::ReceiverWindow, &workload, "tcp_rmem");
        check(Limiter::Pacing, &workload, "-C cubic");
        workload.options.socket_buffer = Some(Bytes(65_536));
        workload.manner.rate_bps = Some(1_000_000);
        check(Limiter::Application, &workload, "sending program");
        check(Limiter::ReceiverWindow, &workload, "larger `-w`");
        check(Limiter::Pacing, &workload, "omit the rate");
        let mut exchange = Workload {
            traffic: Traffic::Rr {
                request_bytes: Bytes(1),
                response_bytes: Bytes(1),
                request_writes: 1,
            },
            ..workload
        };
        check(Limiter::Application, &exchange, "answering program");
        check(Limiter::RoundTrip, &exchange, "in flight");
        if let Traffic::Rr { response_bytes, .. } = &mut exchange.traffic {
            *response_bytes = Bytes(100_000);
        }
        let said = next(Limiter::RoundTrip, &exchange).unwrap_or_default();
        assert!(
            said.contains("-P 8") && !said.contains("in-flight"),
            "{said}"
        );
        exchange.connections = 8;
        check(Limiter::RoundTrip, &exchange, "`-P 64`");
        exchange.options.cork = Some(true);
        check(Limiter::RoundTrip, &exchange, "--cork");
    }
}
