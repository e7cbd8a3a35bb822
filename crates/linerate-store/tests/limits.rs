//! A bundle stays small on the disk, and writing and reading it stays small in memory.
//!
//! Alone in its file, since the peak is that of the whole process.

mod common;

use std::path::Path;

use linerate_store::{Writer, read};

/// Trials of 5000 samples: a million samples in all, twice those of a short study.
const TRIALS: u32 = 200;
/// What a bundle of a short study may take on the disk.
const BYTES_MAX: u64 = 4_000_000;
/// What any process of ours may use at most.
const PEAK_KIB_MAX: u64 = 150 * 1024;

/// Returns the largest resident size that this process has had (VmHWM of proc_pid_status(5)).
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|n| n.parse().ok()).expect("a number")
}

/// Returns the bytes of all files in `dir`.
fn bytes_in(dir: &Path) -> u64 {
    std::fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| {
            entry
                .and_then(|entry| entry.metadata())
                .expect("a file")
                .len()
        })
        .sum()
}

#[test]
fn a_million_samples_stay_within_the_limits() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let document = common::document(TRIALS);
    let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
    for id in 1..=TRIALS {
        writer
            .append(&common::evidence(id, 1000, 5))
            .expect("a trial");
    }
    writer.finish(&document).expect("the end");
    let peak = peak_kib();
    assert!(peak < PEAK_KIB_MAX / 2, "{peak} KiB after writing");
    let bytes = bytes_in(place.path());
    assert!(bytes < BYTES_MAX, "{bytes} bytes");
    let recording = read(place.path()).expect("a bundle");
    assert_eq!(recording.samples.len(), 1_000_000);
    let peak = peak_kib();
    assert!(peak < PEAK_KIB_MAX, "{peak} KiB after reading");
}
