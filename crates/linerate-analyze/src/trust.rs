//! How far the numbers of a report may be relied on, in one line.
//!
//! Cautions hang on the numbers that they weaken; this folds them into one judgement:
//!
//! * *do not use*: no valid trial; more than [`INVALID_SHARE_MAX`] of the trials are invalid and were
//!   not measured again (but for cells of which no trial gave each flow a share: they have no number); identical
//!   trials of the typical cell of the typical experiment differ by more than [`NOISE_SHARE_UNUSABLE`], so that
//!   two cells have to differ twofold to be told apart; one measurement, of which other programs, a CPU quota or
//!   our own reader without CPU time left decided the number;
//! * *limited*: any other caution but that a lab's hosts share their CPUs, a run that is partial, and cells that a CPU quota limits;
//! * *good*: none.
//!
//! A quota comes first, whatever else there is: it is why the other numbers are as they are. Where a study is not to be used,
//! who took CPU time from it is said as well.

use linerate_model::finding::{Caution, Trust, TrustLevel};
use linerate_model::limiter::Limiter;
use linerate_model::number;
use linerate_model::reason::Reason;
use linerate_model::run::Validity;
use linerate_model::workload::{Direction, Workload};

use crate::dataset::Dataset;
use crate::diagnose::{Found, Told, What};
use crate::front;
use crate::reduce::{self, Outcome, Values, WORKER_SATURATED_SHARE, name};
use crate::study;
use crate::words;

/// Share of invalid trials above which what is left is no sample of the rest.
const INVALID_SHARE_MAX: f64 = 0.1;
/// Why what has no trial of one group is trusted less than a measurement of its own.
const BESIDE: &str = "what else the hosts did is not judged where several groups ran";
/// Cautions that are told in the line; the list has all of them.
const REASONS_MAX: usize = 4;
/// Noise above which differences that matter cannot be seen: with three replicates the least
/// significant difference is 1.6 times it or more.
const NOISE_SHARE_UNUSABLE: f64 = 0.4;

/// Share of the datagrams that may be lost before they are read without spoiling the rate.
const UNREAD_SHARE_MAX: f64 = 0.01;

/// Returns the judgement of `dataset`.
pub(crate) fn trust(dataset: &Dataset<'_>, told: &Told<'_>) -> Trust {
    let mut grave = unusable(dataset);
    if dataset.is_one_measurement() {
        grave.extend(spoilt(dataset, told));
    }
    let quota = quota(told);
    if !grave.is_empty() {
        grave.retain(|reason| Some(reason) != quota.as_ref());
        let reasons = quota
            .into_iter()
            .chain(grave)
            .chain(disturbed(dataset, told));
        return Trust {
            level: TrustLevel::DoNotUse,
            reasons: reasons.collect(),
        };
    }
    let is_told = quota.is_some();
    let mut reasons: Vec<String> = quota.into_iter().collect();
    if front::partial(dataset).is_some() {
        reasons.push("not all that was asked for was measured".to_owned());
    }
    // Whether other programs had the CPUs, or others the devices, cannot be told of a group; the trials of one group among
    // which it took its turns tell it.
    let mut experiments = dataset.experiments().iter();
    if experiments.len() > 0 && experiments.all(|experiment| !experiment.beside.is_empty()) {
        reasons.push(BESIDE.to_owned());
    }
    // What waits under a quota is part of that. That a lab's hosts share their CPUs is what a lab is: it hangs on the
    // numbers of CPUs, and takes nothing from the others.
    let is_new = |caution: &&Found<'_>| {
        let is_lab = matches!(caution.what, What::Caution(Caution::SharedCpus, _));
        !(is_lab || is_told && caution.is_of_quota())
    };
    for caution in told.cautions.iter().filter(is_new) {
        let reason = reason(caution);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if reasons.len() > REASONS_MAX + 1 {
        let more = reasons.len() - REASONS_MAX;
        reasons.truncate(REASONS_MAX);
        reasons.push(number::counted(more, "more caution"));
    }
    Trust {
        level: if reasons.is_empty() {
            TrustLevel::Good
        } else {
            TrustLevel::Limited
        },
        reasons,
    }
}

/// Returns who took CPU time from a study: identical trials differ for it, and some are invalid.
fn disturbed(dataset: &Dataset<'_>, told: &Told<'_>) -> Option<String> {
    let is_it = |caution: &&Found<'_>| matches!(caution.what, What::Caution(Caution::Disturbed, _));
    let found = told.cautions.iter().find(is_it);
    found
        .filter(|_| dataset.recording.document.study)
        .map(reason)
}

/// Returns that a quota limits cells, where it is a finding.
fn quota(told: &Told<'_>) -> Option<String> {
    let quota = What::Limiter(Limiter::CpuQuota);
    let mut findings = told.findings.iter();
    let is_found = findings.any(|found| found.what == quota);
    Limiter::CpuQuota
        .spoils()
        .filter(|_| is_found)
        .map(str::to_owned)
}

/// Returns who else than the path decided the number of one measurement.
fn spoilt(dataset: &Dataset<'_>, told: &Told<'_>) -> Option<String> {
    let all = told.findings.iter().chain(&told.cautions);
    let outside = all.filter_map(|found| match found.what {
        What::Limiter(limiter) => limiter.spoils(),
        _ => None,
    });
    let mut outcomes = dataset.outcomes.iter();
    let trials = &dataset.recording.document.plan.trials;
    let is_stream = trials
        .iter()
        .any(|trial| trial.workload.traffic.is_stream());
    let has_no_rate =
        |outcome: &Outcome| outcome.is_valid() && outcome.value(name::THROUGHPUT).is_none();
    let is_unknown = is_stream && outcomes.clone().any(has_no_rate);
    let unknown =
        is_unknown.then_some("the rate is not known: too little was read of what arrived");
    let is_unread = outcomes.any(|outcome| {
        let workload = trials.first().map(|trial| &trial.workload);
        let lost = workload.and_then(|of| lost_unread(of, outcome));
        outcome.is_valid() && lost.is_some()
    });
    let unread =
        is_unread.then_some("datagrams were lost unread while linerate's reader had no CPU time");
    unknown
        .into_iter()
        .chain(outside)
        .chain(unread)
        .next()
        .map(str::to_owned)
}

/// Returns the share of the datagrams that was lost in the receive buffer while a worker that reads had no time left,
/// where it is so much that our own program decides the rate, not the path.
pub(crate) fn lost_unread(workload: &Workload, values: &impl Values) -> Option<f64> {
    let value = |name| values.value(name);
    let reads = wanted_by_readers(workload);
    let wanted = match reads {
        Some(wanted) => value(wanted),
        // All read and send.
        None => value(name::WORKER_WANTED_SHARE_MAX).or(value(name::WORKER_BUSY_SHARE_MAX)),
    }?;
    let is_saturated = wanted >= WORKER_SATURATED_SHARE;
    // Beside senders that spin the neediest worker is one that reads.
    let is_of_reader = reads.is_some() && reduce::sends_as_asked(workload, values);
    let waited = values.amount(name::WORKER_WAITED).least();
    let is_starved = is_of_reader && reduce::is_starved(waited, wanted - waited);
    let sent = value(name::DATAGRAMS_SENT).filter(|sent| *sent > 0.0)?;
    let share = value(name::LOST_RECEIVE_BUFFER)? / sent;
    (share > UNREAD_SHARE_MAX && (is_saturated || is_starved)).then_some(share)
}

/// What the neediest of the workers that only read wanted.
fn wanted_by_readers(workload: &Workload) -> Option<&'static str> {
    match workload.traffic.direction()? {
        Direction::ToServer => Some(name::SERVER_WORKER_WANTED),
        Direction::FromServer => Some(name::CLIENT_WORKER_WANTED),
        Direction::Both => None,
    }
}

fn unusable(dataset: &Dataset<'_>) -> Vec<String> {
    let all = dataset.done();
    let lacking = reduce::lacking(dataset.recording, &dataset.outcomes);
    let lacking = lacking.filter(|outcome| !has_no_level(dataset, outcome));
    let invalid = dataset.count(lacking.map(|outcome| outcome.trial));
    let mut reasons = Vec::new();
    if dataset.valid().next().is_none() {
        reasons.push("no trial is valid".to_owned());
    } else if invalid as f64 > INVALID_SHARE_MAX * all as f64 {
        reasons.push(match invalid {
            1 => format!("1 of {all} trials is invalid"),
            many => format!("{many} of {all} trials are invalid"),
        });
    }
    let mut noises: Vec<f64> = study::noises(dataset)
        .into_iter()
        .map(|(_, noise)| noise.typical())
        .collect();
    noises.sort_by(f64::total_cmp);
    let typical = noises.get(noises.len() / 2);
    if let Some(typical) = typical.filter(|typical| **typical > NOISE_SHARE_UNUSABLE) {
        let noise = words::percent(*typical);
        reasons.push(format!("identical trials differ by {noise}"));
    }
    reasons
}

/// Whether `outcome` is of a cell whose flows are too many for the line: none of its trials gave each flow a share. That cell
/// has no number, and says nothing of the others.
fn has_no_level(dataset: &Dataset<'_>, outcome: &Outcome) -> bool {
    let is_unshared =
        |one: &Outcome| matches!(one.validity, Validity::Invalid(Reason::Unshared(_)));
    let mut cells = dataset.cells.iter();
    let own = cells.find(|cell| cell.invalid.iter().any(|one| one.trial == outcome.trial));
    let is_lone = dataset.cells.len() == 1;
    !is_lone
        && own.is_some_and(|cell| cell.valid.is_empty() && cell.invalid.iter().all(is_unshared))
}

/// Returns a caution in a few words: its claim without the full stop.
fn reason(caution: &Found<'_>) -> String {
    match caution.what {
        What::Limiter(Limiter::Generator) => {
            "numbers limited by the load generator are lower bounds".to_owned()
        }
        _ => words::clause(caution.claim.trim_end_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::manner::{Manner, Transport};

    use super::*;
    use linerate_truth::recording::stream;

    struct Known(Vec<(&'static str, f64)>);

    impl Values for Known {
        fn value(&self, response: &str) -> Option<f64> {
            let mut known = self.0.iter();
            Some(known.find(|(name, _)| *name == response)?.1)
        }
    }

    #[test]
    fn a_reader_has_no_time_left_if_one_of_them_has_none() {
        let workload = Workload {
            manner: Manner {
                transport: Transport::Udp,
                ..Manner::default()
            },
            ..stream()
        };
        // Four readers of 1.2 CPUs together, and a sender that is busy all the time.
        let share_lost = |reader: f64| {
            let known = Known(vec![
                (name::DATAGRAMS_SENT, 1000.0),
                (name::LOST_RECEIVE_BUFFER, 20.0),
                (name::CLIENT_WORKER_WANTED, 1.0),
                (name::WORKER_WANTED_SHARE_MAX, 1.0),
                (name::SERVER_WORKERS, 1.2),
                (name::SERVER_WORKER_WANTED, reader),
            ]);
            lost_unread(&workload, &known)
        };
        assert_eq!(share_lost(0.3), None);
        assert_eq!(share_lost(0.96), Some(0.02));
    }
}
