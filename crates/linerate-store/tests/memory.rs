//! Writing and reading stay small in memory.
//!
//! Alone in its file, since the peak is that of the whole process.

mod common;

use linerate_store::{Writer, read};

/// Trials of 5000 samples: a million samples in all.
const TRIALS: u32 = 200;
/// What any process of ours may use at most.
const PEAK_KIB_MAX: u64 = 150 * 1024;

/// Returns the largest resident size that this process has had (VmHWM of proc_pid_status(5)).
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn a_million_samples_are_written_and_read_below_the_limit() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let document = common::document(TRIALS);
    let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
    for id in 1..=TRIALS {
        let samples = common::samples(id, 1000, 5);
        writer
            .append(&common::trial(id), &common::flows(id), &samples)
            .expect("a trial");
    }
    writer.finish(&document).expect("the end");
    let written = peak_kib();
    println!("peak after writing: {written} KiB");
    assert!(written < PEAK_KIB_MAX / 2, "{written} KiB");
    let recording = read(place.path()).expect("a bundle");
    assert_eq!(recording.samples.len(), 1_000_000);
    let both = peak_kib();
    println!("peak after reading: {both} KiB");
    assert!(both < PEAK_KIB_MAX, "{both} KiB");
}
