//! What is written is read back, whole or in parts, and losses are told.

mod common;

use std::fs;
use std::path::Path;

use linerate_model::TrialId;
use linerate_model::run::{Event, Recording};
use linerate_store::{ReadError, WriteError, Writer, read, write_report};

use common::{document, flows, samples, trial};

/// Writes a bundle of `trials` trials; `finish` says whether the run ended in order.
fn bundle(dir: &Path, trials: u32, finish: bool) {
    let mut document = document(trials);
    let mut writer = Writer::create(dir, &document).expect("a new bundle");
    for id in 1..=trials {
        let event = Event {
            at_ns: u64::from(id),
            trial: Some(TrialId(id)),
            host: None,
            text: "trial starts".to_owned(),
        };
        writer.event(&event).expect("an event");
        writer
            .append(&trial(id), &flows(id), &samples(id, 10, 5))
            .expect("a trial");
    }
    if finish {
        document.ended_utc = Some("2026-11-20T12:56:30Z".to_owned());
        writer.finish(&document).expect("the end");
    }
}

/// Checks that `recording` holds the trials `ids` of a [`bundle`] and tells of `damage`.
fn check(recording: &Recording, ids: &[u32], damage: &[&str]) {
    let trials: Vec<_> = ids.iter().map(|&id| trial(id)).collect();
    assert_eq!(recording.trials, trials);
    let expected: Vec<_> = ids.iter().flat_map(|&id| flows(id)).collect();
    assert_eq!(recording.flows, expected);
    let expected: Vec<_> = ids.iter().flat_map(|&id| samples(id, 10, 5)).collect();
    assert_eq!(recording.samples, expected);
    check_damage(recording, damage);
}

fn check_damage(recording: &Recording, damage: &[&str]) {
    let told = &recording.damage;
    assert_eq!(told.len(), damage.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(damage) {
        assert!(told.contains(expected), "`{told}` lacks `{expected}`");
    }
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn a_finished_bundle_is_whole_and_has_only_its_files() {
    let place = place();
    bundle(place.path(), 3, true);
    let recording = read(place.path()).expect("a bundle");
    check(&recording, &[1, 2, 3], &[]);
    assert_eq!(recording.events.len(), 3);
    assert!(recording.document.ended_utc.is_some());
    write_report(place.path(), "<html>").expect("a report");
    let mut names: Vec<_> = fs::read_dir(place.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    let expected = [
        "events.ndjson",
        "flows.parquet",
        "report.html",
        "run.json",
        "samples.parquet",
        "trials.parquet",
    ];
    assert_eq!(names, expected);
}

#[test]
fn an_unfinished_bundle_is_whole() {
    let place = place();
    bundle(place.path(), 3, false);
    let recording = read(place.path()).expect("a bundle");
    check(&recording, &[1, 2, 3], &[]);
    assert_eq!(recording.document.ended_utc, None);
}
