//! What a plan says that it can decide, and what studies of it decide.

use linerate_analyze::power;
use linerate_model::finding::{Decidable, FOUND_SHARE, Verdict};
use linerate_truth::noise::Noise;
use linerate_truth::study::{Chapters, Shape, study, three_minutes};

use crate::prelude::*;

/// Studies that are made of each truth: a share of 0.8 is then known to 0.06.
const STUDIES: u64 = 40;

/// Returns the share of studies in which the comparison called `id` has this verdict.
fn share(shape: Shape, noise: f64, id: &str, verdict: Verdict) -> f64 {
    let has = |seed: &u64| {
        let study = study(shape, Noise::Normal(noise), Chapters::Latency, *seed);
        let comparisons = analyze(&study.recording).verdicts;
        let found = comparisons.iter().find(|found| found.id == id);
        found.is_some_and(|found| found.verdict == verdict)
    };
    (1..=STUDIES).filter(has).count() as f64 / STUDIES as f64
}

fn latency() -> Decidable {
    let planned = study(Shape::Flat, Noise::Normal(0.0), Chapters::Latency, 1);
    let known = power(&planned.recording.document.plan).expect("it has few trials");
    known.into_iter().next().expect("delayed ACK is compared")
}

#[test]
fn the_smallest_difference_is_found_as_often_as_the_plan_says() {
    let known = latency();
    assert_eq!((known.pairs, known.pairs_needed), (24, None));
    for at in [&known.at[0], &known.at[2]] {
        let found = share(
            Shape::Effect(at.smallest),
            at.noise,
            &known.id,
            Verdict::Differs,
        );
        println!("{at:?}: found in {found}");
        assert!(found >= FOUND_SHARE - 0.15, "{at:?}: {found}");
        // What is larger than can be seen is seen more often; one that just can be is not.
        let is_just_seen = at.smallest > known.margin;
        assert!(!is_just_seen || found <= FOUND_SHARE + 0.15, "{found}");
    }
    let smallest: Vec<f64> = known.at.iter().map(|at| at.smallest).collect();
    assert!(smallest.is_sorted(), "{smallest:?}");
}

#[test]
fn the_same_is_told_as_often_as_the_plan_says() {
    let known = latency();
    let at = &known.at[1];
    let same = share(Shape::Flat, at.noise, &known.id, Verdict::Same);
    println!("{at:?}: the same in {same}");
    // Both shares are counted, of 40 runs each.
    assert!((same - at.same_share).abs() <= 0.25, "{at:?}: {same}");
}

#[test]
fn the_plan_of_three_minutes_decides_all_that_it_compares() {
    let known = power(three_minutes()).expect("it has few trials");
    let of = |id: &str| known.iter().find(|known| known.id == id);
    for id in [
        "latency/effect/delayed_ack",
        "socket-buffer/plateau/1",
        "small-messages/effect/nagle",
    ] {
        let known = of(id).unwrap_or_else(|| panic!("{id} is compared"));
        assert_eq!(known.pairs_needed, None, "{id}");
        assert!(known.at[0].smallest < 0.25, "{known:?}");
    }
    // They share the error of the report.
    let together: f64 = known.iter().filter_map(|known| known.p_needed).sum();
    assert!(together <= 0.05, "{together}");
}
