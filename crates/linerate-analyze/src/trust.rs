//! How far the numbers of a report may be relied on, in one line.
//!
//! Cautions hang on the numbers that they weaken; this folds them into one judgement:
//!
//! * *do not use*: no valid trial; more than [`INVALID_SHARE_MAX`] of the trials are invalid and were
//!   not measured again; identical trials of the typical experiment differ by more than [`NOISE_SHARE_UNUSABLE`], so that two cells
//!   have to differ twofold to be told apart;
//! * *limited*: any other caution;
//! * *good*: none.

use linerate_model::finding::{Limiter, Trust, TrustLevel};

use crate::dataset::Dataset;
use crate::diagnose::{Found, What};
use crate::reduce;
use crate::study;
use crate::words;

/// Share of invalid trials above which what is left is no sample of the rest.
const INVALID_SHARE_MAX: f64 = 0.1;
/// Cautions that are told in the line; the list has all of them.
const REASONS_MAX: usize = 4;
/// Noise above which differences that matter cannot be seen: with three replicates the least
/// significant difference is 1.6 times it or more.
const NOISE_SHARE_UNUSABLE: f64 = 0.4;

/// Returns the judgement of `dataset`.
pub(crate) fn trust(dataset: &Dataset<'_>, cautions: &[Found<'_>]) -> Trust {
    let grave = unusable(dataset);
    if !grave.is_empty() {
        return Trust {
            level: TrustLevel::DoNotUse,
            reasons: grave,
        };
    }
    let mut reasons: Vec<String> = Vec::new();
    for caution in cautions {
        let reason = reason(caution);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if reasons.len() > REASONS_MAX + 1 {
        let more = reasons.len() - REASONS_MAX;
        reasons.truncate(REASONS_MAX);
        reasons.push(format!("{more} more cautions"));
    }
    Trust {
        level: match reasons.is_empty() {
            true => TrustLevel::Good,
            false => TrustLevel::Limited,
        },
        reasons,
    }
}

fn unusable(dataset: &Dataset<'_>) -> Vec<String> {
    let all = dataset.outcomes.len();
    let invalid = reduce::lacking(dataset.recording, &dataset.outcomes).count();
    let mut reasons = Vec::new();
    if dataset.outcomes.iter().all(|outcome| !outcome.is_valid()) {
        reasons.push("no trial is valid".to_owned());
    } else if invalid as f64 > INVALID_SHARE_MAX * all as f64 {
        reasons.push(format!("{invalid} of {all} trials are invalid"));
    }
    let mut noises: Vec<f64> = study::noises(dataset)
        .into_iter()
        .map(|(_, noise)| noise.share)
        .collect();
    noises.sort_by(f64::total_cmp);
    let typical = noises.get(noises.len() / 2);
    if let Some(typical) = typical.filter(|typical| **typical > NOISE_SHARE_UNUSABLE) {
        let noise = words::percent(*typical);
        reasons.push(format!("identical trials differ by {noise}"));
    }
    reasons
}

/// Returns a caution in a few words: its claim without the full stop.
fn reason(caution: &Found<'_>) -> String {
    match caution.what {
        What::Limiter(Limiter::Generator) => {
            "numbers that our own generator limits are lower bounds".to_owned()
        }
        _ => {
            let claim = caution.claim.trim_end_matches('.');
            let mut letters = claim.chars();
            match letters.next() {
                // An abbreviation keeps its capitals.
                Some(first) if !letters.clone().next().is_some_and(char::is_uppercase) => {
                    first.to_lowercase().chain(letters).collect()
                }
                _ => claim.to_owned(),
            }
        }
    }
}
