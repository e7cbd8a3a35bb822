//! A bundle stays small on the disk, and writing and reading it stays small in memory.

mod common;

use linerate_store::{Writer, read};

/// Trials of a study.
const TRIALS: u32 = 100;

/// Returns the bytes of all files in `dir`, folders included.
fn bytes_in(dir: &std::path::Path) -> u64 {
    std::fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let meta = entry.metadata().expect("what it is");
            if meta.is_dir() {
                bytes_in(&entry.path())
            } else {
                meta.len()
            }
        })
        .sum()
}

#[test]
fn a_study_of_half_a_million_samples_stays_below_four_megabytes() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let document = common::document(TRIALS);
    let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
    for id in 1..=TRIALS {
        let samples = common::samples(id, 1000, 5);
        assert_eq!(samples.len(), 5000);
        writer
            .append(&common::trial(id), &common::flows(id), &samples)
            .expect("a trial");
    }
    writer.finish(&document).expect("the end");
    let bytes = bytes_in(place.path());
    assert!(bytes < 4_000_000, "{bytes} bytes");
    let recording = read(place.path()).expect("a bundle");
    assert_eq!(recording.samples.len(), 500_000);
}
