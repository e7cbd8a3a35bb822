//! From which level of a scale on nothing more is gained: the sentence of a plateau.

use linerate_model::experiment::Factor;
use linerate_model::finding::Verdict;
use linerate_model::number;

use crate::compare::interval::MANY;
use crate::verdicts::ScalePlateau;
use crate::words;

/// What the levels of a scale are called.
struct Called {
    /// All of them.
    all: &'static str,
    /// One of them.
    one: &'static str,
    /// Those of a range.
    some: &'static str,
}

fn called(factor: Factor) -> Called {
    let [all, one, some] = match factor {
        Factor::SocketBuffer => ["Fixed buffers", "fixed buffer", "Buffers"],
        Factor::MessageBytes => ["Message sizes", "smaller message", "Messages"],
        Factor::Cpus => [
            "Numbers of CPUs",
            "smaller number of CPUs",
            "Numbers of CPUs",
        ],
        _ => ["Levels", "smaller level", "Levels"],
    };
    Called { all, one, some }
}

/// Returns the smallest level that does as well as the largest, in words, where the next smaller one is shown to lose.
pub(super) fn binds_below(found: &ScalePlateau) -> Option<String> {
    let at = found.plateau.begin.filter(|at| *at > 0)?;
    found
        .loses(at - 1)
        .then(|| words::bare_level(found.factor, &found.levels[at]))
}

/// Says it of several scales: once, where none of them makes a difference.
pub(super) fn sentences(found: &[&ScalePlateau]) -> Vec<String> {
    let is_flat = |it: &&ScalePlateau| it.plateau.begin == Some(0) && it.verdict() == Verdict::Same;
    match found {
        [first, _, ..] if found.iter().all(is_flat) => vec![format!(
            "{} make no difference in any of {} combinations: all are within {} of {}.",
            called(first.factor).all,
            found.len(),
            words::percent(first.plateau.delta),
            words::bare_level(first.factor, &first.control),
        )],
        _ => found.iter().map(|it| sentence(it)).collect(),
    }
}

/// Says which is the smallest level that does as well, and what the next smaller one loses.
pub(super) fn sentence(found: &ScalePlateau) -> String {
    let size = |at: usize| words::bare_level(found.factor, &found.levels[at]);
    let with = found.with(" with ");
    let Called { all, one, some } = called(found.factor);
    let control = match found.factor {
        Factor::SocketBuffer if found.is_against_host() => "the kernel's autotuning".to_owned(),
        Factor::SocketBuffer => format!(
            "{} (the host's autotuning was not measured)",
            size(found.levels.len() - 1)
        ),
        factor => words::bare_level(factor, &found.control),
    };
    let margin = words::percent(found.plateau.delta);
    let more = match found.plateau.more {
        Some(MANY..) => " (many more replicates would decide)".to_owned(),
        Some(more) => format!(
            " ({} would decide)",
            number::counted(more, "more replicate")
        ),
        None => String::new(),
    };
    let reach = |at: usize| {
        let ratio = words::estimate(&found.ratio(at));
        format!(" {} reach {ratio} of it.", size(at))
    };
    let loses = |at: usize| {
        if found.loses(at) {
            reach(at)
        } else {
            format!(
                " Whether {} lose more is not decided: {} of it{more}.",
                size(at),
                words::estimate(&found.ratio(at)),
            )
        }
    };
    // The largest, which the others are held against, is no answer.
    let is_control = |at: usize| found.levels[at] == found.control;
    let begin = match found
        .plateau
        .begin
        .filter(|at| *at == 0 || !is_control(*at))
    {
        Some(0) if found.verdict() == Verdict::Same => {
            format!("{all} make no difference{with}: all are within {margin} of {control}.")
        }
        Some(0) => match found.ends_before() {
            None if found.best().is_none() => format!(
                "No {one} loses {margin}{with} against {control}; whether one gains as much is not decided."
            ),
            None => format!("No {one} loses {margin}{with} against {control}."),
            Some(at) => format!(
                "{some} below {} lose less than {margin}{with} against {control}.",
                size(at)
            ),
        },
        Some(at) => {
            let to = found
                .ends_before()
                .map(|end| format!("to {}", size(end - 1)));
            format!(
                "{some} from {} {} lose less than {margin}{with} against {control}.{}",
                size(at),
                to.as_deref().unwrap_or("on"),
                loses(at - 1),
            )
        }
        None => {
            format!("No {one} is shown to come within {margin} of {control}{with}{more}.")
        }
    };
    let falls = match (found.falls_from(), found.ends_before()) {
        (Some(from), _) => Some(reach(from)),
        (None, Some(_)) => Some(" Whether larger ones lose more is not decided.".to_owned()),
        (None, None) => None,
    };
    let better = found.best().map(reach);
    [Some(begin), falls, better].into_iter().flatten().collect()
}
