//! What all groups of a trial carried together, and what that cost their hosts; of several trials the mean.

use std::collections::BTreeMap;
use std::mem::discriminant;

use linerate_analyze::reduce::Together;

use super::{RateUnit, cost, rate_words};
use crate::term::{Look, labelled, line, styled};

/// Prints it, where there are several groups.
pub fn print(trials: &[Together], rate_unit: Option<RateUnit>) {
    let all = lines(trials, rate_unit);
    if !all.is_empty() {
        line("");
        line(&styled("all groups", Look::Strong));
    }
    all.iter().for_each(|(label, words)| labelled(label, words));
}

/// Returns the lines, each behind its label.
pub fn lines(trials: &[Together], rate_unit: Option<RateUnit>) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let Some(first) = trials.first() else {
        return lines;
    };
    if let Some(bps) = mean(trials, |one| one.payload_bps) {
        lines.push(("payload".to_owned(), rate_words(bps, rate_unit)));
    }
    for (at, host) in first.hosts.iter().enumerate() {
        let of = |name: &str| mean(trials, |one| value(&one.hosts.get(at)?.responses, name));
        if let Some(words) = cost::busy(&of) {
            let words = format!("{words}, {}", host.hosts.join(", "));
            lines.push(("CPUs busy".to_owned(), words));
        }
    }
    if let Some(words) = cost::words(&|name| mean(trials, |one| value(&one.responses, name))) {
        lines.push(("cost".to_owned(), words));
    }
    // Each kind once, in the words of the first trial that has it.
    let mut noted = Vec::new();
    for flag in trials.iter().flat_map(|one| &one.flags) {
        if !noted.contains(&discriminant(flag)) {
            noted.push(discriminant(flag));
            lines.push(("note".to_owned(), flag.to_string()));
        }
    }
    lines
}

fn value(responses: &BTreeMap<String, f64>, name: &str) -> Option<f64> {
    responses.get(name).copied()
}

/// Returns the mean of what all trials have.
fn mean(trials: &[Together], of: impl Fn(&Together) -> Option<f64>) -> Option<f64> {
    let sum: Option<f64> = trials.iter().map(of).sum();
    Some(sum? / trials.len() as f64)
}
