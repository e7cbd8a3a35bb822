//! What is written is read back, whole or in parts, and losses are told.

use crate::common;

use std::fs;
use std::path::Path;

use linerate_model::TrialId;
use linerate_model::capture::{CaptureOutcome, CaptureTaken, TrialCapture};
use linerate_model::profile::{Stack, TrialProfile, Work};
use linerate_model::run::{Event, EventKind, Recording, TrialEvidence};
use linerate_store::{ReadError, WriteError, Writer, capture_path, read, write_report};

use common::{document, evidence, flows, samples, trial};

/// Writes a bundle of `trials` trials; `finish` says whether the run ended in order.
fn bundle(dir: &Path, trials: u32, finish: bool) {
    let mut document = document(trials);
    let mut writer = Writer::create(dir, &document).expect("a new bundle");
    for id in 1..=trials {
        let event = Event {
            at_ns: u64::from(id),
            trial: Some(TrialId(id)),
            host: None,
            what: EventKind::TrialEnded { invalid: None },
        };
        writer.event(&event).expect("an event");
        writer.append(&evidence(id, 10, 5)).expect("a trial");
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
    assert_eq!(recording.samples.iter().collect::<Vec<_>>(), expected);
    check_damage(recording, damage);
}

fn check_damage(recording: &Recording, damage: &[&str]) {
    let told = &recording.damage;
    assert_eq!(told.len(), damage.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(damage) {
        assert!(told.contains(expected), "`{told}` lacks `{expected}`");
    }
}

/// Returns what two hosts' CPUs did in trial `id`.
fn profiles(id: u32) -> Vec<TrialProfile> {
    let stack = |frames: &str, work, samples| Stack {
        frames: frames.to_owned(),
        work,
        samples,
    };
    let profile = |host: &str| TrialProfile {
        trial: TrialId(id),
        host: host.into(),
        stacks: vec![
            stack("worker;tcp_sendmsg;_copy_from_iter", Work::Copy, 700),
            stack("worker;linerate_engine::send::<ü>", Work::User, 5),
        ],
    };
    vec![profile("client1"), profile("server")]
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn profiles_are_read_back_whole_and_in_parts() {
    let with = |id, other| TrialEvidence {
        profiles: profiles(other),
        ..evidence(id, 10, 5)
    };
    for finish in [true, false] {
        let place = place();
        let dir = place.path().join("bundle");
        let document = document(2);
        let mut writer = Writer::create(&dir, &document).expect("a new bundle");
        for id in 1..=2 {
            writer.append(&with(id, id)).expect("a trial");
        }
        let refused = writer.append(&with(1, 2));
        assert!(matches!(refused, Err(WriteError::OtherTrial { .. })));
        if finish {
            writer.finish(&document).expect("the end");
            assert!(dir.join("stacks.parquet").exists());
        }
        let recording = read(&dir).expect("a bundle");
        assert_eq!(recording.profiles, [profiles(1), profiles(2)].concat());
        check(&recording, &[1, 2], &[]);
    }
}

/// Returns what two hosts captured in trial `id`; names that differ in odd characters only.
fn captures(id: u32) -> Vec<(TrialCapture, Vec<u8>)> {
    let capture = |host: &str, outcome| TrialCapture {
        trial: TrialId(id),
        host: host.into(),
        file: None,
        outcome,
    };
    let taken = CaptureOutcome::Taken(CaptureTaken {
        device: "eth0".to_owned(),
        snap_bytes: 128,
        anonymous: id == 2,
        frames: 12,
        bytes: 4,
        dropped: 3,
        others: 1,
        ended: (id == 1).then(|| "its file was full (32 MiB)".to_owned()),
        cpu_ns: 5_000_000,
    });
    vec![
        (capture("a b", taken.clone()), b"one ".to_vec()),
        (capture("a_b", taken), b"two ".to_vec()),
        (
            capture(
                "server",
                CaptureOutcome::Missing("no CAP_NET_RAW".to_owned()),
            ),
            Vec::new(),
        ),
    ]
}

#[test]
fn captures_are_read_back_with_their_files_whole_and_in_parts() {
    let with = |id, other| TrialEvidence {
        captures: captures(other),
        ..evidence(id, 10, 5)
    };
    for finish in [true, false] {
        let place = place();
        let dir = place.path().join("bundle");
        let document = document(2);
        let mut writer = Writer::create(&dir, &document).expect("a new bundle");
        for id in 1..=2 {
            writer.append(&with(id, id)).expect("a trial");
        }
        let refused = writer.append(&with(1, 2));
        assert!(matches!(refused, Err(WriteError::OtherTrial { .. })));
        if finish {
            writer.finish(&document).expect("the end");
        }
        let recording = read(&dir).expect("a bundle");
        check(&recording, &[1, 2], &[]);
        let written = [captures(1), captures(2)].concat();
        assert_eq!(recording.captures.len(), written.len());
        for (read, (written, bytes)) in recording.captures.iter().zip(&written) {
            assert_eq!(
                (read.trial, &read.host, &read.outcome),
                (written.trial, &written.host, &written.outcome)
            );
            let file = capture_path(&dir, read).map(|path| fs::read(path).expect("a file"));
            assert_eq!(file.unwrap_or_default(), *bytes, "{read:?}");
        }
        assert_eq!(
            recording.captures[0].file.as_deref(),
            Some("captures/000001-a_b.pcapng")
        );
        fs::remove_file(dir.join("captures/000001-a_b.pcapng")).expect("it is there");
        let recording = read(&dir).expect("a bundle");
        check(
            &recording,
            &[1, 2],
            &["captures/000001-a_b.pcapng is missing"],
        );
    }
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

#[test]
fn a_bundle_without_trials_is_whole() {
    for finish in [true, false] {
        let place = place();
        bundle(place.path(), 0, finish);
        let recording = read(place.path()).expect("a bundle");
        check(&recording, &[], &[]);
    }
}

#[test]
fn a_crash_while_merging_loses_and_doubles_nothing() {
    // The final samples are in place and their parts are still there; flows and trials are not
    // merged yet.
    let place = place();
    let finished = place.path().join("finished");
    let unfinished = place.path().join("unfinished");
    bundle(&finished, 3, true);
    bundle(&unfinished, 3, false);
    fs::copy(
        finished.join("samples.parquet"),
        unfinished.join("samples.parquet"),
    )
    .expect("copied");
    fs::write(unfinished.join("flows.parquet.tmp"), "half").expect("written");
    let recording = read(&unfinished).expect("a bundle");
    check(&recording, &[1, 2, 3], &[]);
}

#[test]
fn a_crash_while_appending_keeps_the_trials_before() {
    let place = place();
    bundle(place.path(), 2, false);
    let partial = place.path().join("partial");
    fs::remove_file(partial.join("trial-000002.trials.parquet")).expect("removed");
    fs::write(partial.join("trial-000002.trials.parquet.tmp"), "half").expect("written");
    let recording = read(place.path()).expect("a bundle");
    assert_eq!(recording.trials, vec![trial(1)]);
    assert_eq!(recording.samples.len(), 100, "samples of both trials");
    let damage = [
        "record of trial #2 is lost, its flows are kept",
        "record of trial #2 is lost, its samples are kept",
    ];
    check_damage(&recording, &damage);
}

#[test]
fn what_is_missing_is_told() {
    let check = |finish: bool, file: &str, damage: &[&str]| {
        let place = place();
        bundle(place.path(), 3, finish);
        fs::remove_file(place.path().join(file)).expect("removed");
        check_damage(&read(place.path()).expect("a bundle"), damage);
    };
    check(
        true,
        "samples.parquet",
        &[
            "samples.parquet is missing",
            "150 samples of trials #1, #2, #3 are lost",
        ],
    );
    check(
        true,
        "trials.parquet",
        &[
            "trials.parquet is missing",
            "record of trials #1, #2, #3 is lost, its flows are kept",
            "record of trials #1, #2, #3 is lost, its samples are kept",
        ],
    );
    check(
        false,
        "partial/trial-000002.flows.parquet",
        &["2 flows of trial #2 are lost"],
    );
    check(true, "events.ndjson", &["all events are lost"]);
}

#[test]
fn what_is_damaged_is_told_and_the_rest_is_read() {
    let place = place();
    bundle(place.path(), 3, false);
    let part = place.path().join("partial/trial-000002.samples.parquet");
    let bytes = fs::read(&part).expect("a part");
    fs::write(&part, &bytes[..bytes.len() / 2]).expect("cut");
    let recording = read(place.path()).expect("a bundle");
    assert_eq!(recording.trials.len(), 3);
    assert_eq!(recording.samples.len(), 100);
    let lost = "partial/trial-000002.samples.parquet cannot be read";
    check_damage(&recording, &[lost, "50 samples of trial #2 are lost"]);
}

#[test]
fn a_part_that_cannot_be_merged_is_kept_and_told() {
    let place = place();
    let document = document(2);
    let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
    for id in 1..=2 {
        writer.append(&evidence(id, 10, 5)).expect("a trial");
    }
    let part = place.path().join("partial/trial-000001.samples.parquet");
    fs::write(&part, "not a table").expect("spoiled");
    writer.finish(&document).expect("the end");
    assert!(part.exists());
    let recording = read(place.path()).expect("a bundle");
    let lost = "partial/trial-000001.samples.parquet cannot be read";
    check_damage(&recording, &[lost, "50 samples of trial #1 are lost"]);
    assert_eq!(recording.trials.len(), 2);
}

#[test]
fn one_spoiled_part_of_a_large_table_costs_only_itself() {
    // Each trial fills a row group of its own; the pages of the first one are overwritten.
    let place = place();
    let document = document(2);
    let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
    for id in 1..=2 {
        writer.append(&evidence(id, 700, 100)).expect("a trial");
    }
    writer.finish(&document).expect("the end");
    let table = place.path().join("samples.parquet");
    let mut bytes = fs::read(&table).expect("a table");
    bytes[4..200].fill(0xff);
    fs::write(&table, bytes).expect("spoiled");
    let recording = read(place.path()).expect("a bundle");
    assert!(
        recording
            .samples
            .iter()
            .all(|sample| sample.trial == TrialId(2))
    );
    assert_eq!(recording.samples.len(), 70_000);
    let lost = "part 1 of 2 with 70\u{202f}000 rows cannot be read";
    check_damage(
        &recording,
        &[lost, "70\u{202f}000 samples of trial #1 are lost"],
    );
}

#[test]
fn a_trial_stored_again_replaces_the_first() {
    let place = place();
    let document = document(1);
    let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
    writer.append(&evidence(1, 10, 9)).expect("a trial");
    writer.append(&evidence(1, 10, 5)).expect("a trial");
    writer.finish(&document).expect("the end");
    check(&read(place.path()).expect("a bundle"), &[1], &[]);
}

#[test]
fn the_document_is_replaced_as_a_whole() {
    let place = place();
    let mut document = document(1);
    let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
    document.cut_short = Some("interrupted".to_owned());
    writer.update(&document).expect("replaced");
    assert_eq!(read(place.path()).expect("a bundle").document, document);
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let place = place();
    fs::write(place.path().join("notes.txt"), "mine").expect("written");
    let error = Writer::create(place.path(), &document(1)).expect_err("not empty");
    assert!(matches!(error, WriteError::NotEmpty { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains(&place.path().display().to_string()),
        "{error}"
    );
}

#[test]
fn rows_of_another_trial_are_refused() {
    let place = place();
    let mut writer = Writer::create(place.path(), &document(2)).expect("a new bundle");
    let error = writer
        .append(&TrialEvidence {
            flows: flows(2),
            ..evidence(1, 0, 0)
        })
        .expect_err("another trial");
    assert!(matches!(error, WriteError::OtherTrial { .. }), "{error}");
    assert!(read(place.path()).expect("a bundle").trials.is_empty());
}

#[test]
fn what_is_no_bundle_is_refused_with_the_reason() {
    let place = place();
    let check = |document: Option<&str>, expected: &str| {
        let path = place.path().join("run.json");
        match document {
            Some(text) => fs::write(&path, text).expect("written"),
            None => assert!(!path.exists()),
        }
        let error = read(place.path()).expect_err("no bundle");
        assert!(error.to_string().contains(expected), "{error}");
        error
    };
    check(None, "not an evidence bundle");
    let newer = check(
        Some(r#"{"format": 999, "soul": true}"#),
        "bundle format 999",
    );
    assert!(matches!(newer, ReadError::Newer { found: 999, .. }));
    assert!(
        newer.to_string().contains("use a newer linerate"),
        "{newer}"
    );
    let older = check(Some(r#"{"format": 0}"#), "bundle format 0");
    assert!(matches!(older, ReadError::NoFormat { found: 0, .. }));
    check(Some("{"), "run.json");
    let error = read(&place.path().join("nowhere")).expect_err("nothing there");
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn a_file_of_another_kind_in_a_tables_place_is_told() {
    let place = place();
    bundle(place.path(), 1, true);
    let at = |name: &str| place.path().join(name);
    fs::copy(at("flows.parquet"), at("samples.parquet")).expect("copied");
    let recording = read(place.path()).expect("a bundle");
    let damage = ["no column subject", "50 samples of trial #1 are lost"];
    check_damage(&recording, &damage);
}

/// Of somebody else: what is beside the files that are expected leads to files of the reader.
#[test]
fn links_in_a_bundle_lead_nowhere() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (root, victim) = (place.path().join("bundle"), place.path().join("victim"));
    let document = document(1);
    let mut writer = Writer::create(&root, &document).expect("a new bundle");
    writer.append(&evidence(1, 1, 1)).expect("a trial");
    writer.finish(&document).expect("a whole bundle");
    fs::write(&victim, "mine").expect("a file");
    for name in ["report.html.tmp", "results.parquet.tmp", "report.html"] {
        std::os::unix::fs::symlink(&victim, root.join(name)).expect("a link");
    }
    write_report(&root, "<p>a report").expect("a report");
    linerate_store::write_results(&root, &[]).expect("results");
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "mine");
    assert!(
        root.join("report.html")
            .symlink_metadata()
            .is_ok_and(|made| made.is_file())
    );
}

/// Waiting for one would end only when somebody writes into it.
#[test]
fn pipes_and_devices_in_place_of_files_are_refused() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let root = place.path().join("bundle");
    let document = document(1);
    let mut writer = Writer::create(&root, &document).expect("a new bundle");
    writer.append(&evidence(1, 1, 1)).expect("a trial");
    writer.finish(&document).expect("a whole bundle");
    for name in ["events.ndjson", "samples.parquet", "run.json"] {
        let path = root.join(name);
        fs::remove_file(&path).expect("it is there");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|made| made.success()));
        match read(&root) {
            Ok(recording) => {
                let told = recording.damage.join("\n");
                assert!(
                    told.contains(name) && told.contains("not a regular file"),
                    "{told}"
                );
            }
            Err(error) => assert_eq!(name, "run.json", "{error}"),
        }
    }
    fs::remove_file(root.join("run.json")).expect("it is there");
    std::os::unix::fs::symlink("/dev/zero", root.join("run.json")).expect("a link");
    assert!(read(&root).is_err());
}

/// A trial is reduced with all samples of its number: one that stands again and again costs all of them each time.
#[test]
fn a_trial_stands_once_however_often_its_row_does() {
    let place = place();
    bundle(place.path(), 2, false);
    let partial = place.path().join("partial");
    // What a crash may leave: a part of trials that is there under another number, too, and in the table.
    let part = partial.join("trial-000001.trials.parquet");
    fs::copy(&part, place.path().join("trials.parquet")).expect("copied");
    fs::copy(&part, partial.join("trial-000002.trials.parquet")).expect("copied");
    let recording = read(place.path()).expect("a bundle");
    assert_eq!(recording.trials, vec![trial(1)]);
    let damage = [
        "partial/: 1 row of trials left out",
        "record of trial #2 is lost, its flows are kept",
        "record of trial #2 is lost, its samples are kept",
    ];
    check_damage(&recording, &damage);
}

#[test]
fn parts_are_those_of_the_plan() {
    let place = place();
    bundle(place.path(), 2, false);
    let partial = place.path().join("partial");
    let part = |name: String| partial.join(name);
    let source = part("trial-000001.samples.parquet".to_owned());
    for stranger in 3..300 {
        fs::copy(
            &source,
            part(format!("trial-{stranger:06}.samples.parquet")),
        )
        .expect("copied");
    }
    // Another way to write a number is another file for the same trial.
    fs::copy(&source, part("trial-1.samples.parquet".to_owned())).expect("copied");
    let recording = read(place.path()).expect("a bundle");
    check(
        &recording,
        &[1, 2],
        &["297 parts of samples.parquet left out"],
    );
}
