//! Runs side by side, and the levels of one run.
//!
//! *Levels of one run* took turns in blocks of shuffled order: the pairs of a block share what the hosts were like at
//! the time, and `compare::effect` decides. *Runs* did not take turns: `spread` says how far two of them may lie apart
//! with nothing changed.
//!
//! 1. Each pair has one interval and one verdict by it: *same* if it lies within the margins, *differs* if 1 lies outside
//!    it and it is not *same*, *not decided* otherwise.
//! 2. The intervals of all pairs of a document hold together at 95 % (Bonferroni): a claim is made of any of them that
//!    stands out.
//! 3. A *regression* is worse by more than the threshold in all of its interval.
//! 4. Of a run that is not to be used nothing is decided.
//! 5. Cells are matched by experiment and levels, and compared where both sides were asked for the same traffic. How that
//!    was made and what the hosts were like may differ: that is what is asked about, and told as *changed*.

/// What differs of hosts and workload.
mod changed;
/// One run, ready to be compared.
mod side;
/// How far two runs lie apart with nothing changed.
mod spread;

use linerate_model::compared::{COMPARED_SCHEMA, Changed, Compared, NotComparable, Pair, Side};
use linerate_model::experiment::Cell;
use linerate_model::finding::{CONFIDENCE, Estimate, Verdict};
use linerate_model::margin::Margins;
use linerate_model::number::counted;
use linerate_model::response::Better;
use linerate_model::run::Recording;
use linerate_model::unit::Unit;

use crate::compare::effect::{Difference, Effect, PAIRS_MIN};
use crate::reduce::describe;
use crate::verdicts::ALPHA;
use crate::words;

pub use side::{RunDocumentHead, RunDocumentRead, RunSide};
use side::{SideCell, Values};
use spread::Apart;

/// Seed of the subsets that are drawn; any will do, and the same bundle gives the same interval.
const SUBSETS_SEED: u64 = 0x6c69_6e65;

/// Returns `runs` held against the first of them.
///
/// `threshold` is the relative difference beyond which what is worse is a regression; where none is asked for it is
/// what matters to whoever made the first run, the margins.
pub fn compared(runs: &[RunSide], threshold: Option<f64>) -> Compared {
    let mut not_comparable = Vec::new();
    let mut found = Vec::new();
    if let Some((base, others)) = runs.split_first() {
        for (at, other) in others.iter().enumerate() {
            let matched = matched(base, other, at + 1, &mut not_comparable);
            found.extend(matched.into_iter().map(|(one, two)| (at + 1, one, two)));
        }
    }
    let changed = changed::changed(runs);
    let claims: usize = found.iter().map(|(_, one, _)| one.told.len()).sum();
    let alpha = ALPHA / claims.max(1) as f64;
    let mut pairs = Vec::new();
    for (at, one, two) in found {
        for values in &one.told {
            let Some(other) = two.values(&values.response) else {
                continue;
            };
            let kin = kin_of(runs, &changed, at, one, &values.response);
            let of = PairOf {
                experiment: &one.experiment,
                cell: cell_in_words(&one.cell),
                base: 0,
                of: at,
                margins: runs[0].margins,
                threshold,
            };
            let apart = spread::apart(values, other, &kin, alpha);
            let unreliable = runs[0].unreliable().or_else(|| runs[at].unreliable());
            pairs.push(of.told(values, other, apart.unless(unreliable)));
        }
    }
    document(
        runs.iter().map(RunSide::told).collect(),
        pairs,
        not_comparable,
        changed,
        false,
    )
}

/// Returns, of the runs beside `at`, those of which nothing that is known differs from the first, or from `at`: what they
/// differ by is what runs differ by.
fn kin_of<'r>(
    runs: &'r [RunSide],
    changed: &[Changed],
    at: usize,
    cell: &SideCell,
    response: &str,
) -> Vec<Vec<&'r Values>> {
    let of_run = |run: &'r RunSide| run.cell_like(cell)?.values(response);
    let is_as_first = |side: usize| !changed.iter().any(|one| one.side == side);
    let alike = |to_first: bool| {
        let members = (0..runs.len()).filter(|side| {
            if to_first {
                *side != at && is_as_first(*side)
            } else {
                *side == at || *side != 0 && same_changes(changed, *side, at)
            }
        });
        members
            .filter_map(|side| of_run(&runs[side]))
            .collect::<Vec<_>>()
    };
    if is_as_first(at) {
        // Its own value is in question, and stands for none that it is held against.
        return vec![alike(true)];
    }
    vec![alike(true), alike(false)]
}

fn same_changes(changed: &[Changed], one: usize, other: usize) -> bool {
    let of = |side: usize| {
        let own = changed.iter().filter(move |it| it.side == side);
        own.map(|it| (it.host, &it.what, &it.to))
            .collect::<Vec<_>>()
    };
    of(one) == of(other)
}

/// Returns the cells that both runs have, and says what else there is.
fn matched<'r>(
    base: &'r RunSide,
    other: &'r RunSide,
    side: usize,
    not_comparable: &mut Vec<NotComparable>,
) -> Vec<(&'r SideCell, &'r SideCell)> {
    let mut matched = Vec::new();
    let mut missing = 0;
    let before = not_comparable.len();
    for one in &base.cells {
        let found = other.cells.iter();
        let mut found =
            found.filter(|two| two.experiment == one.experiment && two.cell == one.cell);
        let Some(two) = found.next() else {
            missing += 1;
            continue;
        };
        let why = changed::other_traffic(&one.workload, &two.workload)
            .or_else(|| changed::other_beside(&one.beside, &two.beside))
            .or_else(|| one.unusable(&base.name))
            .or_else(|| two.unusable(&other.name));
        match why {
            None => matched.push((one, two)),
            Some(why) => not_comparable.push(NotComparable {
                side,
                what: one.what(),
                why,
            }),
        }
    }
    if matched.is_empty() && not_comparable.len() == before {
        not_comparable.push(NotComparable {
            side,
            what: String::new(),
            why: match (base.cells.is_empty(), other.cells.is_empty()) {
                (true, _) => format!("{} has no trial", base.name),
                (_, true) => format!("{} has no trial", other.name),
                _ => format!("{} and {} have no cell in common", base.name, other.name),
            },
        });
    } else if missing > 0 {
        not_comparable.push(NotComparable {
            side,
            what: counted(missing, "further cell"),
            why: format!("not measured in {}", other.name),
        });
    }
    matched
}

fn cell_in_words(cell: &Cell) -> String {
    let factors: Vec<_> = cell.keys().copied().collect();
    words::cell(cell, &factors)
}

/// Returns the levels of a run that varied some, each held against the best.
pub fn levels(recording: &Recording) -> Compared {
    let run = RunSide::of_recording(recording, "");
    let margins = run.margins;
    let sides: Vec<Side> = run
        .cells
        .iter()
        .map(|cell| Side {
            name: cell_in_words(&cell.cell),
            ..run.told()
        })
        .collect();
    let (mut pairs, mut not_comparable) = (Vec::new(), Vec::new());
    for (at, cell) in run.cells.iter().enumerate() {
        if let Some(why) = cell.unusable(&sides[at].name) {
            not_comparable.push(NotComparable {
                side: at,
                what: String::new(),
                why,
            });
        }
    }
    if let Some(base) = best(&run.cells) {
        // Which is the best is found in the same numbers, so that any pair might have been told.
        let claims = run.cells.len() * (run.cells.len() - 1) / 2;
        let alpha = ALPHA / claims.max(1) as f64;
        for (at, cell) in run.cells.iter().enumerate().filter(|(at, _)| *at != base) {
            let of = PairOf {
                experiment: &cell.experiment,
                cell: String::new(),
                base: at,
                of: base,
                margins,
                threshold: None,
            };
            let best = &run.cells[base];
            let headline = |cell: &SideCell| cell.told.first().cloned();
            if let (Some(values), Some(other)) = (headline(cell), headline(best)) {
                pairs.push(of.told(&values, &other, in_blocks(&values, &other, alpha)));
            }
        }
    }
    document(sides, pairs, not_comparable, Vec::new(), true)
}

/// Returns the fewest blocks that may tell so many levels apart.
///
/// Of N pairs the least p-value is 2/2ᴺ, and all pairs of levels share the error.
pub fn blocks_min(levels: u32) -> u32 {
    let claims = f64::from(levels) * f64::from(levels.saturating_sub(1)) / 2.0;
    let decides = |blocks: &u32| 2.0 / 2_f64.powi(*blocks as i32) <= ALPHA / claims.max(1.0);
    let mut blocks = PAIRS_MIN as u32..;
    blocks.find(decides).unwrap_or(PAIRS_MIN as u32)
}

/// Returns the cell with the best mean.
fn best(cells: &[SideCell]) -> Option<usize> {
    let known = cells.iter().enumerate();
    let known = known.filter_map(|(at, cell)| {
        let values = cell.told.first()?;
        let centre = values.centre()?;
        let less = Better::of(&values.response) == Some(Better::Less);
        Some((at, if less { -centre } else { centre }))
    });
    known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

/// Returns the ratio of what took turns, by the pairs of each block.
fn in_blocks(base: &Values, other: &Values, alpha: f64) -> Apart {
    let value = |block: &(u32, bool)| other.trials.iter().find(|(of, _)| of == block);
    let pairs: Vec<(u32, f64, f64)> = (base.trials.iter())
        .filter_map(|(block, one)| Some((block.0, value(block)?.1, *one)))
        .filter(|(_, a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    let n = pairs.len();
    let log = spread::log_ratio(base, other);
    let differences = Difference::of_cells((0, 0), &pairs);
    let found = Effect::of(&differences, SUBSETS_SEED).filter(|found| found.rests_on_signs(alpha));
    let ends = found.as_ref().map(|found| found.interval(alpha));
    Apart {
        log: found.as_ref().map_or(log, |found| found.log),
        ends,
        n,
        why: ends.is_none().then(|| {
            let blocks = counted(n, "block");
            format!("{blocks} cannot tell them apart at 5 %: measure more (--runs)")
        }),
    }
}

/// What a pair is of.
struct PairOf<'a> {
    experiment: &'a str,
    cell: String,
    base: usize,
    of: usize,
    margins: Margins,
    threshold: Option<f64>,
}

impl PairOf<'_> {
    fn told(&self, base: &Values, other: &Values, apart: Apart) -> Pair {
        let response = &base.response;
        let description = describe(response);
        let base_value = base.estimate();
        let margin = self.margins.of(description.unit, base_value.value);
        let threshold = self.threshold.unwrap_or(margin);
        let better = Better::of(response);
        let (low, high) = apart.ends.unzip();
        let ratio = Estimate {
            value: apart.log.exp(),
            low: low.map(f64::exp),
            high: high.map(f64::exp),
            confidence: CONFIDENCE,
            n: apart.n as u32,
            unit: Unit::Ratio,
        };
        let beyond = |worse: bool| {
            let down = ratio.high.is_some_and(|high| high < 1.0 - threshold);
            let up = ratio.low.is_some_and(|low| low > 1.0 + threshold);
            match better {
                Some(Better::More) => {
                    if worse {
                        down
                    } else {
                        up
                    }
                }
                Some(Better::Less) => {
                    if worse {
                        up
                    } else {
                        down
                    }
                }
                None => false,
            }
        };
        Pair {
            experiment: self.experiment.to_owned(),
            cell: self.cell.clone(),
            response: response.clone(),
            title: description.title.to_owned(),
            base: self.base,
            of: self.of,
            base_value,
            value: other.estimate(),
            ratio,
            verdict: verdict(apart.ends, margin),
            margin,
            threshold,
            is_regression: beyond(true),
            is_gain: beyond(false),
            more_is_better: better.map(|better| better == Better::More),
            open_because: apart.why,
        }
    }
}

fn verdict(ends: Option<(f64, f64)>, margin: f64) -> Verdict {
    let within = (1.0 + margin).ln();
    match ends {
        Some((low, high)) if low > -within && high < within => Verdict::Same,
        Some((low, high)) if low > 0.0 || high < 0.0 => Verdict::Differs,
        _ => Verdict::NotDecided,
    }
}

fn document(
    sides: Vec<Side>,
    pairs: Vec<Pair>,
    not_comparable: Vec<NotComparable>,
    changed: Vec<Changed>,
    interleaved: bool,
) -> Compared {
    let regressions = pairs.iter().filter(|pair| pair.is_regression).count();
    Compared {
        schema: COMPARED_SCHEMA.0,
        schema_version: COMPARED_SCHEMA.1,
        interleaved,
        sides,
        pairs,
        not_comparable,
        changed,
        regressions: regressions as u32,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::experiment::Factor;
    use linerate_model::experiment::Level;
    use linerate_model::host::{Fact, FactValue};
    use linerate_model::manner::Manner;
    use linerate_model::workload::{Group, Kind, Workload};
    use linerate_truth::recording::{MadeRun, Truth, size, stream};

    use super::*;

    /// A run of two buffers, six blocks each, with these throughputs.
    fn made(workload: Workload, mbits: [f64; 2], kernel: &str) -> MadeRun {
        let mut run = MadeRun::new(1, Some(10e9));
        for host in &mut run.recording.document.hosts {
            let facts = &mut host.snapshot.facts;
            facts.retain(|fact| fact.name != "kernel.release");
            facts.push(Fact {
                name: "kernel.release".to_owned(),
                value: FactValue::Text(kernel.to_owned()),
            });
        }
        run.experiment("buffers", None, workload);
        for (level, mbit) in [size(65_536), size(131_072)].into_iter().zip(mbits) {
            let truths: Vec<Truth> = (0..6)
                .map(|at| Truth::stream(1e6 * mbit * (1.0 + 0.001 * f64::from(at))))
                .collect();
            run.cell(&[(Factor::SocketBuffer, level)], &truths);
        }
        run
    }

    fn side(run: &MadeRun, name: &str) -> RunSide {
        RunSide::of_recording(&run.recording, name)
    }

    #[test]
    fn cells_are_matched_by_their_levels() {
        let before = side(&made(stream(), [800.0, 900.0], "6.1"), "before");
        let after = side(&made(stream(), [801.0, 450.0], "6.2"), "after");
        let found = compared(&[before, after], None);
        let verdicts: Vec<(Verdict, bool)> = found
            .pairs
            .iter()
            .map(|pair| (pair.verdict, pair.is_regression))
            .collect();
        assert_eq!(verdicts, [(Verdict::Same, false), (Verdict::Differs, true)]);
        assert_eq!(found.regressions, 1);
        let kernel = found
            .changed
            .iter()
            .find(|one| one.what == "kernel.release");
        let kernel = kernel.expect("it changed");
        assert_eq!(
            (kernel.from.as_deref(), kernel.to.as_deref()),
            (Some("6.1"), Some("6.2"))
        );
    }

    #[test]
    fn runs_that_were_asked_for_other_traffic_have_nothing_in_common() {
        let paced = Workload {
            manner: Manner {
                rate_bps: Some(1_000_000),
                ..Manner::default()
            },
            ..stream()
        };
        let before = side(&made(stream(), [800.0, 900.0], "6.1"), "before");
        let after = side(&made(paced, [801.0, 899.0], "6.1"), "after");
        let found = compared(&[before, after], None);
        assert_eq!(found.pairs, []);
        assert_eq!(found.not_comparable.len(), 2);
    }

    #[test]
    fn what_went_on_at_the_same_time_is_part_of_the_question() {
        let alone = made(stream(), [800.0, 900.0], "6.1");
        let with = |workload: Workload| {
            let mut run = made(stream(), [800.0, 900.0], "6.1");
            let group = Group {
                name: "probe".to_owned(),
                workload,
            };
            let plan = &mut run.recording.document.plan;
            plan.experiments[0].beside.push(group.clone());
            for trial in &mut plan.trials {
                trial.beside.push(group.clone());
            }
            side(&run, "with")
        };
        let (one, four) = (Workload::of(Kind::Rr), {
            let mut four = Workload::of(Kind::Rr);
            four.connections = 4;
            four
        });
        let found = compared(&[side(&alone, "alone"), with(one.clone())], None);
        assert_eq!(found.pairs, []);
        let why = &found.not_comparable[0].why;
        assert!(why.contains("probe"), "{why}");
        let found = compared(&[with(one.clone()), with(four)], None);
        assert_eq!(found.pairs, []);
        // Beside the same, the streams are compared, and that nothing was read of the probe is said.
        let found = compared(&[with(one.clone()), with(one)], None);
        assert_eq!(found.pairs.len(), 2);
        let unread = found.not_comparable.iter();
        let mut unread = unread.filter(|one| one.what.contains("probe"));
        assert!(unread.next().is_some(), "{:?}", found.not_comparable);
    }

    #[test]
    fn a_level_is_held_against_the_best_of_its_run() {
        let mut run = made(stream(), [300.0, 900.0], "6.1");
        let experiment = &mut run.recording.document.plan.experiments[0];
        let levels_of: Vec<Level> = vec![size(65_536), size(131_072)];
        experiment.factors = vec![(Factor::SocketBuffer, levels_of)];
        let found = levels(&run.recording);
        assert!(found.interleaved);
        let [pair] = found.pairs.as_slice() else {
            panic!("one pair: {:?}", found.pairs);
        };
        assert_eq!((pair.base, pair.of, pair.verdict), (0, 1, Verdict::Differs));
        assert!((pair.ratio.value - 3.0).abs() < 0.01, "{:?}", pair.ratio);
    }

    #[test]
    fn so_many_blocks_can_tell_levels_apart() {
        // 2/2⁶ = 0.031 ≤ 0.05; 2/2⁷ = 0.0156 ≤ 0.05/3; 2/2⁸ = 0.0078 ≤ 0.05/6.
        assert_eq!([2, 3, 4].map(blocks_min), [6, 7, 8]);
    }
}
