//! Chapters 4, 5, 7, 8 and 14: studies whose curves are made, and what their chapters find.

use linerate_analyze::Draw;
use linerate_model::experiment::DesignKind;
use linerate_model::finding::Verdict;

use crate::prelude::*;

const BLOCKS: u32 = 4;
/// Deviation of a trial.
const NOISE: f64 = 0.01;

fn auto() -> Level {
    Level::Word("auto".to_owned())
}

/// Makes an experiment whose cells reach the share of 1 Gbit/s that `shares` says, with noise.
fn made(
    (name, chapter): (&str, u32),
    suffices: &[Factor],
    cells: &[Vec<(Factor, Level)>],
    shares: impl Fn(&[(Factor, Level)]) -> f64,
) -> Analysis {
    let mut draw = Draw::new(chapter.into());
    let mut run = begun(GIGABIT, name, Some(chapter), stream());
    let experiment = run.recording.document.plan.experiments.last_mut();
    let experiment = experiment.expect("it was added");
    experiment.suffices = suffices.to_vec();
    for block in 1..=BLOCKS {
        for cell in cells {
            let rate = 900e6 * shares(cell) * (1.0 + NOISE * draw.normal());
            run.trial(cell, block, &Truth::stream(rate));
        }
    }
    analyze(&run.recording)
}

/// Verdict of a plateau and its levels with theirs, by the end of its id.
fn plateau(analysis: &Analysis, id: &str) -> (Verdict, Vec<(String, Verdict)>) {
    let mut all = analysis.verdicts.iter();
    let found = all.find(|it| it.is_plateau && it.id.ends_with(id));
    let found = found.unwrap_or_else(|| panic!("{id} of {:?}", analysis.verdicts));
    let levels = found.levels.iter();
    let levels = levels.map(|(level, verdict, _)| (level.clone(), *verdict));
    (found.verdict, levels.collect())
}

#[test]
fn the_smallest_transfer_that_suffices_is_found_and_none_where_all_are_alike() {
    let sizes = [128, 4096, 65_536, 262_144];
    let cells = sizes.map(|bytes| vec![(Factor::MessageBytes, size(bytes))]);
    let of = |shares: [f64; 4]| {
        made(
            ("transfer-size", 4),
            &[Factor::MessageBytes],
            &cells,
            move |cell| {
                let at = sizes.iter().position(|bytes| cell[0].1 == size(*bytes));
                shares[at.expect("a level")]
            },
        )
    };
    let rises = of([0.3, 0.6, 0.995, 1.0]);
    let (verdict, levels) = plateau(&rises, "plateau/message_bytes/1");
    assert_eq!(verdict, Verdict::Differs);
    let verdicts: Vec<Verdict> = levels.iter().map(|(_, verdict)| *verdict).collect();
    assert_eq!(verdicts[..2], [Verdict::Differs, Verdict::Differs]);
    assert_ne!(verdicts[2], Verdict::Differs);
    says!(answer_of(&rises, "transfer-size"); "64 KiB");

    let flat = of([1.0; 4]);
    let (verdict, _) = plateau(&flat, "plateau/message_bytes/1");
    assert_eq!(verdict, Verdict::Same);
    // No effect is made of what has no order of its own beside it.
    assert!(flat.findings.iter().all(|it| !it.id.contains("effect")));
}

#[test]
fn a_further_cpu_is_worth_what_it_gains_and_no_buffer_is_recommended_for_it() {
    let counts = [1_u64, 2, 4];
    let cells = counts.map(|count| vec![(Factor::Cpus, Level::Count(count))]);
    let analysis = made(("cpus", 7), &[Factor::Cpus], &cells, |cell| {
        if cell[0].1 == Level::Count(1) {
            0.5
        } else {
            1.0
        }
    });
    let (verdict, levels) = plateau(&analysis, "plateau/cpus/1");
    assert_eq!(verdict, Verdict::Differs);
    assert_eq!(levels[0], ("1".to_owned(), Verdict::Differs));
    assert_eq!(levels[1].1, Verdict::Same);
    let chapter = chapter(&analysis, "cpus").clone();
    let ids: Vec<&str> = chapter.figures.iter().map(|it| &*it.id).collect();
    assert_eq!(ids, ["cpus-throughput", "cpus-busy"]);
    let mut tables = chapter.tables.iter();
    assert!(tables.any(|table| table.title == "The busiest CPU"));
    let mut recommended = analysis.recommendations.iter();
    assert!(recommended.all(|it| !it.action.contains("SO_RCVBUF")));
}

#[test]
fn most_connections_are_told_beside_the_best_of_each_way() {
    let flows = [1_u64, 8, 32];
    let ways = ["to-server", "from-server"];
    let cells = flows.iter().flat_map(|count| {
        ways.map(|way| {
            let way = Level::Word(way.to_owned());
            let count = (Factor::Connections, Level::Count(*count));
            vec![count, (Factor::Direction, way)]
        })
    });
    let cells: Vec<_> = cells.collect();
    let analysis = made(("connections", 8), &[], &cells, |cell| match cell[0].1 {
        Level::Count(8) => 1.0,
        Level::Count(32) => 0.5,
        _ => 0.8,
    });
    let chapter = chapter(&analysis, "connections").clone();
    let figures: Vec<&str> = chapter.figures.iter().map(|it| &*it.id).collect();
    assert!(figures.contains(&"connections-throughput"), "{figures:?}");
    assert!(figures.contains(&"connections-modes"), "{figures:?}");
    says!(chapter.answer.unwrap_or_default(); "of 8 connections", "32 connections");
    let table = &chapter.tables[0];
    assert!(
        table.columns.iter().any(|head| head.contains("Jain")),
        "{:?}",
        table.columns
    );
}

#[test]
fn frames_of_9000_bytes_carry_more_than_those_of_the_hosts() {
    // 985 Mbit/s of payload cannot pass in frames of 1500 B, and does in those of 9000.
    let of = |mtu: Level| {
        let mut run = begun(GIGABIT, "transfer-size", Some(4), stream());
        let level = (Factor::Mtu, mtu);
        run.alike(&[level], &Truth::stream(985e6));
        let outcomes = linerate_analyze::reduce::outcomes(&run.recording);
        outcomes.iter().filter(|outcome| outcome.is_valid()).count()
    };
    assert_eq!(of(auto()), 0);
    assert_eq!(of(size(9000)), 3);
}

#[test]
fn an_offload_is_told_by_its_comparison() {
    let base = [(Factor::Tso, auto()), (Factor::Gro, auto())];
    let mut cells = vec![base.to_vec()];
    for (at, level) in [(0, Level::Switch(false)), (1, Level::Switch(false))] {
        let mut cell = base.to_vec();
        cell[at].1 = level;
        cells.push(cell);
    }
    let mut draw = Draw::new(14);
    let mut run = begun(GIGABIT, "offloads", Some(14), stream());
    let experiment = run.recording.document.plan.experiments.last_mut();
    let experiment = experiment.expect("it was added");
    experiment.design = DesignKind::OneAtATime;
    experiment.baseline = base.iter().cloned().collect();
    for block in 1..=8 {
        for cell in &cells {
            let is_off = cell[1].1 == Level::Switch(false);
            let share = if is_off { 0.5 } else { 1.0 };
            let rate = 900e6 * share * (1.0 + NOISE * draw.normal());
            run.trial(cell, block, &Truth::stream(rate));
        }
    }
    let analysis = analyze(&run.recording);
    let verdict = |factor: &str| {
        let mut all = analysis.verdicts.iter();
        let own = all.find(|it| it.id.starts_with(&format!("offloads/effect/{factor}")));
        own.map(|it| it.verdict)
    };
    assert_eq!(verdict("gro"), Some(Verdict::Differs));
    assert_eq!(verdict("tso"), Some(Verdict::Same));
    let chapter = chapter(&analysis, "offloads").clone();
    assert!(chapter.figures.is_empty());
    assert_eq!(chapter.tables[0].rows.len(), 3);
}
