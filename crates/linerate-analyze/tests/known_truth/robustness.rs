//! Damaged and partial recordings: no panic, the same answer each time, nothing without evidence.

use linerate_model::samples::Samples;
use proptest::prelude::*;

use crate::prelude::*;

/// A stream of pseudo-random numbers (Knuth's MMIX generator), so that a case is its seed.
struct Dice(u64);

impl Dice {
    fn keeps(&mut self, share: f64) -> bool {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 / (1u64 << 53) as f64) < share
    }
}

fn damaged(whole: &Recording, seed: u64, share: f64) -> Recording {
    let mut dice = Dice(seed);
    let mut recording = whole.clone();
    let samples = whole.samples.iter().filter(|_| dice.keeps(share));
    let samples: Vec<_> = samples.collect();
    recording.flows.retain(|_| dice.keeps(share));
    recording.trials.retain(|_| dice.keeps(share));
    for host in &mut recording.document.hosts {
        host.snapshot.facts.retain(|_| dice.keeps(share));
        if !dice.keeps(share) {
            host.link = None;
        }
        if !dice.keeps(share) {
            host.link_rate = None;
        }
    }
    recording.document.hosts.retain(|_| dice.keeps(share));
    let plan = &mut recording.document.plan;
    plan.trials.retain(|_| dice.keeps(share));
    plan.experiments.retain(|_| dice.keeps(share));
    let damage = |mut sample: TrialSample| {
        if !dice.keeps(share) {
            sample.value = if dice.keeps(0.5) { i64::MIN } else { i64::MAX };
        }
        if !dice.keeps(share) {
            sample.at_ns = if dice.keeps(0.5) { i64::MIN } else { i64::MAX };
        }
        sample
    };
    recording.samples = samples.into_iter().map(damage).collect();
    recording
}

fn hold(analysis: &Analysis) {
    for finding in &analysis.findings {
        assert!(!finding.evidence.as_slice().is_empty(), "{}", finding.id);
        let is_so = finding.effect.value.is_finite();
        assert!(is_so, "{}: {:?}", finding.id, finding.effect);
        for evidence in finding.evidence.as_slice() {
            let is_so = !evidence.trials.is_empty();
            assert!(is_so, "{}: {}", finding.id, evidence.what);
            let is_so = evidence.estimate.value.is_finite();
            assert!(is_so, "{}: {}", finding.id, evidence.what);
        }
    }
    let tables = analysis.chapters.iter().flat_map(|chapter| &chapter.tables);
    for table in tables.chain([&analysis.summary]) {
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len(), "{}", table.title);
            for cell in row {
                if let TableCell::Number(number, _) = cell {
                    assert!(number.is_finite(), "{}", table.title);
                }
            }
        }
    }
    let chapters = analysis.chapters.iter();
    for figure in chapters.flat_map(|chapter| &chapter.figures) {
        assert!(!figure.curves.is_empty(), "{}", figure.id);
        for point in figure.curves.iter().flat_map(|curve| &curve.points) {
            assert!(point.y.is_finite(), "{}", figure.id);
        }
    }
    let findings = analysis.findings.iter();
    let ids: Vec<&String> = findings.map(|finding| &finding.id).collect();
    let mut distinct = ids.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(
        distinct.len(),
        ids.len(),
        "identifiers are distinct: {ids:?}"
    );
    let chapters = analysis.chapters.iter();
    for id in chapters.flat_map(|chapter| &chapter.findings) {
        assert!(ids.contains(&id), "{id} leads nowhere");
    }
}

#[test]
fn whole_study_holds() {
    let recording = study().recording;
    let analysis = analyze(&recording);
    hold(&analysis);
    assert_eq!(analysis, analyze(&recording));
}

#[test]
fn an_empty_recording_gives_an_empty_analysis() {
    let mut recording = study().recording;
    recording.trials.clear();
    recording.flows.clear();
    recording.samples = Samples::default();
    let analysis = analyze(&recording);
    hold(&analysis);
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
    assert!(
        analysis
            .partial
            .is_some_and(|why| why.contains("were not done"))
    );
    recording.document.hosts.clear();
    recording.document.plan.trials.clear();
    recording.document.plan.experiments.clear();
    hold(&analyze(&recording));
}

#[test]
fn samples_in_any_order_give_the_same_analysis() {
    let sorted = study().recording;
    let mut reversed = sorted.clone();
    let mut samples: Vec<_> = sorted.samples.iter().collect();
    samples.reverse();
    reversed.samples = samples.into_iter().collect();
    assert_eq!(analyze(&sorted), analyze(&reversed));
}

#[test]
fn damaged_recordings_do_not_panic() {
    let whole = study().recording;
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(24)
    };
    proptest!(config, |(seed: u64, share in 0.3f64..1.0)| {
        let recording = damaged(&whole, seed, share);
        let analysis = analyze(&recording);
        hold(&analysis);
        prop_assert_eq!(&analysis, &analyze(&recording));
    });
}
