//! The same study several times (A/A): how often what it says is the same.
//!
//! Nothing differs between them but chance and what disturbs the hosts, so that whatever one decides and
//! another decides otherwise is an error of one of them. What is not decided contradicts nothing.

use std::collections::BTreeMap;

use linerate_model::analysis::{ANALYSIS_FORMAT, Analysis, Table, TableCell};
use linerate_model::answer::Answer;
use linerate_model::finding::{Comparison, Estimate, Trust, TrustLevel, Verdict};
use linerate_model::unit::Unit;

use crate::words;

/// Share of pairs of verdicts that must agree.
const AGREEMENT_MIN: f64 = 0.95;

/// Why there is no share that agrees.
const NONE_TWICE: &str = "no verdict was decided twice";

/// Counts of one comparison over all studies.
#[derive(Debug, Default)]
struct Counts {
    what: String,
    differs: usize,
    same: usize,
    open: usize,
    least: Option<f64>,
    most: Option<f64>,
    pairs: usize,
    contradictions: usize,
}

/// Returns what studies of the same hosts with the same plan agree on.
pub fn agreement(studies: &[Analysis]) -> Analysis {
    let mut by_id: BTreeMap<&str, Vec<&Comparison>> = BTreeMap::new();
    for comparison in studies.iter().flat_map(|study| &study.verdicts) {
        by_id.entry(&comparison.id).or_default().push(comparison);
    }
    let counts: Vec<Counts> = by_id.values().map(|found| count(found)).collect();
    let pairs: usize = counts.iter().map(|one| one.pairs).sum();
    let against: usize = counts.iter().map(|one| one.contradictions).sum();
    let decided: usize = counts.iter().map(|one| one.differs + one.same).sum();
    let open: usize = counts.iter().map(|one| one.open).sum();
    let all = decided + open;
    let share = decided as f64 / all.max(1) as f64;
    let agreed = 1.0 - against as f64 / pairs.max(1) as f64;
    let each = |of: fn(&Analysis) -> usize| {
        let counts: Vec<String> = studies.iter().map(|study| of(study).to_string()).collect();
        words::list(&counts)
    };
    let row = |what: &str, value: String, note: String| {
        vec![
            TableCell::Text(what.to_owned()),
            TableCell::Text(value),
            TableCell::Text(note),
        ]
    };
    let mut rows = vec![
        vec![
            TableCell::Text("Verdicts that agree".to_owned()),
            match pairs {
                0 => TableCell::Absent(NONE_TWICE.to_owned()),
                _ => TableCell::Text(words::percent(agreed)),
            },
            TableCell::Text(format!("{against} of {pairs} pairs contradict each other")),
        ],
        vec![
            TableCell::Text("Verdicts that are decided".to_owned()),
            match all {
                0 => TableCell::Absent("there is no verdict".to_owned()),
                _ => TableCell::Text(words::percent(share)),
            },
            TableCell::Text(format!(
                "{decided} of {all}; what is open contradicts nothing"
            )),
        ],
        row(
            "Findings",
            each(|study| study.findings.len()),
            String::new(),
        ),
        row(
            "Recommendations",
            each(|study| study.recommendations.len()),
            String::new(),
        ),
    ];
    rows.extend(counts.iter().map(|one| {
        let decided = format!(
            "differs in {}, same in {}, not decided in {}",
            one.differs, one.same, one.open
        );
        let range = one.least.zip(one.most).map(|(least, most)| {
            let of = |ratio| Unit::Ratio.display(ratio);
            format!("ratios of {} to {}", of(least), of(most))
        });
        row(&one.what, decided, range.unwrap_or_default())
    }));
    Analysis {
        format: ANALYSIS_FORMAT,
        title: format!("{} times the same study", studies.len()),
        answer: Answer {
            verdict: match pairs {
                0 => words::sentence(NONE_TWICE),
                _ => format!(
                    "{} of the verdicts that {} studies decide agree; they decide {} of all",
                    words::percent(agreed),
                    studies.len(),
                    words::percent(share)
                ),
            },
            ..Answer::default()
        },
        summary: Table::new("Agreement", ["What", "Value", "Note"], rows),
        trust: Some(trust(agreed, pairs)),
        hosts: studies
            .last()
            .map_or_else(Vec::new, |one| one.hosts.clone()),
        ..Analysis::default()
    }
}

fn trust(agreed: f64, pairs: usize) -> Trust {
    let (level, reason) = match () {
        () if pairs == 0 => (TrustLevel::Limited, Some(NONE_TWICE)),
        () if agreed < AGREEMENT_MIN => (
            TrustLevel::DoNotUse,
            Some("studies of these hosts contradict each other in more than 5 % of their verdicts"),
        ),
        () => (TrustLevel::Good, None),
    };
    Trust {
        level,
        reasons: reason.into_iter().map(str::to_owned).collect(),
    }
}

fn count(found: &[&Comparison]) -> Counts {
    let mut counts = Counts {
        what: found
            .first()
            .map(|one| one.what.clone())
            .unwrap_or_default(),
        ..Counts::default()
    };
    for (at, one) in found.iter().enumerate() {
        match one.verdict {
            Verdict::Differs => counts.differs += 1,
            Verdict::Same => counts.same += 1,
            Verdict::NotDecided => counts.open += 1,
        }
        let value = one.effect.value;
        counts.least = Some(counts.least.map_or(value, |least| least.min(value)));
        counts.most = Some(counts.most.map_or(value, |most| most.max(value)));
        for other in &found[at + 1..] {
            if let Some(contradicts) = contradict(one, other) {
                counts.pairs += 1;
                counts.contradictions += usize::from(contradicts);
            }
        }
    }
    counts
}

/// Returns whether two verdicts contradict each other; absent where one is open.
///
/// 1. Both differ, for certain in opposite directions. 2. One differs by more than the margin, for
///    certain, and the other is the same within it. An effect that turns about with the levels of another
///    factor has no direction of its own, and so does a curve: their levels are compared by name.
fn contradict(one: &Comparison, other: &Comparison) -> Option<bool> {
    if one.verdict == Verdict::NotDecided || other.verdict == Verdict::NotDecided {
        return None;
    }
    let whole = opposed(
        (one.verdict, &one.effect),
        (other.verdict, &other.effect),
        one.margin,
    );
    let levels = one.levels.iter().filter_map(|(words, verdict, ratio)| {
        let mut others = other.levels.iter();
        let (_, known, of) = others.find(|(known, ..)| known == words)?;
        Some(opposed((*verdict, ratio), (*known, of), one.margin))
    });
    Some(if one.levels.is_empty() || other.levels.is_empty() {
        whole
    } else {
        levels.into_iter().any(|opposed| opposed)
    })
}

/// Returns whether two verdicts on one ratio cannot both be right.
fn opposed(one: (Verdict, &Estimate), other: (Verdict, &Estimate), margin: f64) -> bool {
    let above = |it: &Estimate, bound: f64| it.low.is_some_and(|low| low > bound);
    let below = |it: &Estimate, bound: f64| it.high.is_some_and(|high| high < 1.0 / bound);
    let beyond = |it: &Estimate| above(it, 1.0 + margin) || below(it, 1.0 + margin);
    match (one.0, other.0) {
        (Verdict::Differs, Verdict::Differs) => {
            (above(one.1, 1.0) && below(other.1, 1.0)) || (below(one.1, 1.0) && above(other.1, 1.0))
        }
        (Verdict::Differs, Verdict::Same) => beyond(one.1),
        (Verdict::Same, Verdict::Differs) => beyond(other.1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_truth::noise::Noise;
    use linerate_truth::study::{Chapters, Shape, study};

    fn of(shapes: &[Shape]) -> Analysis {
        let made = shapes.iter().zip(1..).map(|(shape, seed)| {
            let study = study(*shape, Noise::Normal(0.01), Chapters::Three, seed);
            crate::analyze(&study.recording)
        });
        agreement(&made.collect::<Vec<_>>())
    }

    #[test]
    fn the_same_study_agrees_and_another_does_not() {
        let level = |analysis: &Analysis| analysis.trust.as_ref().map(|trust| trust.level);
        let same = of(&[Shape::Effect(0.2), Shape::Effect(0.2), Shape::Effect(0.2)]);
        assert_eq!(level(&same), Some(TrustLevel::Good), "{same:?}");
        // What has no direction as a whole has none to contradict.
        for shape in [Shape::Turning(0.4), Shape::Fading, Shape::Knee(64.0)] {
            let same = of(&[shape, shape, shape, shape]);
            assert_eq!(level(&same), Some(TrustLevel::Good), "{same:?}");
        }
        let apart = of(&[Shape::Effect(0.2), Shape::Flat]);
        assert_eq!(level(&apart), Some(TrustLevel::DoNotUse), "{apart:?}");
        let none = agreement(&[]);
        assert_eq!(level(&none), Some(TrustLevel::Limited));
        assert!(!format!("{none:?}").contains("100 %"), "{none:?}");
    }
}
