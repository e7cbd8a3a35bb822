//! How often `run --prove` is right: set-ups are made and measured as for the corpus, and changed after it.
//!
//! 1. It is right where a limiter is named at the end that the truth of the set-up allows.
//! 2. It is wrong where another is named, and where a limiter is refuted that the truth allows, unless one of 1 is named.
//! 3. Else it is not decided.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use linerate_analyze::groups::Reduced;
use linerate_analyze::proof::{Proof, Proofs, measured};
use linerate_analyze::prove::{Next, next, suspects};
use linerate_analyze::single::{Shown, Single, proven, single};
use linerate_model::Nanos;
use linerate_model::limiter::Limiter;
use linerate_truth::corpus::{Half, Recorded};

use super::record::{Bases, Settings, record_one};
use super::setup::Setup;
use crate::interrupt;

/// What the columns of a line are.
const COLUMNS: &str =
    "half\tsetup\tcause\tlimiters\twithout\twith\toutcome\tchanges\tended because of";

/// What becomes of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ProofOutcome {
    Right,
    Wrong,
    NotDecided,
    /// It could not be measured.
    LeftOut,
}

/// How often what was said is right.
#[derive(Debug, Default)]
pub struct Counts {
    /// How many there are of each outcome, those aside of which nothing was changed, and of those.
    of: BTreeMap<ProofOutcome, [usize; 2]>,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| outcome | something was changed | nothing was |")?;
        write!(f, "|---|---:|---:|")?;
        for (outcome, [changed, not]) in &self.of {
            write!(f, "\n| {} | {changed} | {not} |", outcome.word())?;
        }
        Ok(())
    }
}

impl ProofOutcome {
    fn word(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::NotDecided => "not decided",
            Self::LeftOut => "left out",
        }
    }

    /// Returns what it is that `named` is named and `refuted` are refuted, where `limiters` are right.
    fn of(limiters: &[String], named: Option<Limiter>, refuted: &[Limiter]) -> Self {
        let is_right = |limiter: &Limiter| limiters.iter().any(|right| right == limiter.id());
        match named {
            Some(named) if is_right(&named) => Self::Right,
            Some(_) => Self::Wrong,
            None if refuted.iter().any(is_right) => Self::Wrong,
            None => Self::NotDecided,
        }
    }
}

/// Measures each of `setups` with changes, and gives `line` what became of it; returns how often that was right.
pub fn prove(
    settings: &Settings,
    setups: &[Setup],
    line: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Counts> {
    let mut bases = Bases::new();
    let mut counts = Counts::default();
    line(COLUMNS)?;
    for setup in setups {
        interrupt::check()?;
        let (outcome, is_changed, text) = match record_one(settings, setup, 1, &mut bases) {
            Ok(recorded) => judge(&recorded, settings.prove_s.unwrap_or(0)),
            Err(error) => {
                let limiters = setup.limiters.join(",");
                let head = head(&setup.name, setup.cause, &limiters);
                let text = format!("{head}\t\t\tleft out\t\t{error:#}");
                (ProofOutcome::LeftOut, false, text)
            }
        };
        counts.of.entry(outcome).or_default()[usize::from(!is_changed)] += 1;
        line(&text)?;
    }
    Ok(counts)
}

fn head(setup: &str, cause: &str, limiters: &str) -> String {
    let half = Half::of(setup).name();
    format!("{half}\t{setup}\t{cause}\t{limiters}")
}

/// Returns what became of a set-up of which something was changed for `seconds`, whether anything was, and its line.
fn judge(recorded: &Recorded, seconds: u32) -> (ProofOutcome, bool, String) {
    let whole = &recorded.recording;
    let own = measured(whole);
    let reduced = Reduced::of(whole);
    let proofs = reduced.proofs();
    let ended = suspects(&reduced).map(|suspects| {
        match next(&reduced, &suspects, Nanos::from_s(seconds.into())) {
            Next::Nothing(why) => format!("{why:?}"),
            Next::Block(_) | Next::Change(_) => "its end".to_owned(),
        }
    });
    let refuted: Vec<Limiter> = proofs
        .all
        .iter()
        .flat_map(|it| it.refuted.clone())
        .collect();
    let changes: Vec<String> = proofs.all.iter().map(Proof::line).collect();
    let with = proven(&own, Proofs { all: proofs.all }, Shown::RESULT_ALONE);
    let named = with.limiter().map(|(limiter, _)| limiter);
    let truth = &recorded.truth;
    let outcome = ProofOutcome::of(&truth.limiters, named, &refuted);
    let mut text = head(&recorded.setup, &truth.cause, &truth.limiters.join(","));
    let without = single(&own, Shown::RESULT_ALONE);
    let _ = write!(
        text,
        "\t{}\t{}\t{}\t{}\t{}",
        names(&without),
        names(&with),
        outcome.word(),
        changes.join("; "),
        ended.unwrap_or_default(),
    );
    (outcome, !changes.is_empty(), text)
}

/// Returns the limiter that is named, else those that are left, in brackets.
fn names(single: &Single<'_>) -> String {
    match single.limiter() {
        Some((limiter, _)) => limiter.id().to_owned(),
        None => {
            let standing: Vec<&str> = single.standing.iter().map(|it| it.id()).collect();
            format!("({})", standing.join(","))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_limiter_that_is_refuted_is_wrong_unless_another_right_one_is_named() {
        let window = Limiter::ReceiverWindow;
        let both = [window, Limiter::SendBuffer].map(|limiter| limiter.id().to_owned());
        let cases = [
            (Some(window), vec![], ProofOutcome::Right),
            (Some(window), vec![Limiter::SendBuffer], ProofOutcome::Right),
            (Some(Limiter::PathRate), vec![], ProofOutcome::Wrong),
            (None, vec![Limiter::PathRate], ProofOutcome::NotDecided),
            (None, vec![Limiter::SendBuffer], ProofOutcome::Wrong),
        ];
        for (named, refuted, outcome) in cases {
            let own = ProofOutcome::of(&both, named, &refuted);
            assert_eq!(own, outcome, "{named:?} {refuted:?}");
        }
        let none = ProofOutcome::of(&[], Some(window), &[]);
        assert_eq!(none, ProofOutcome::Wrong);
    }
}
