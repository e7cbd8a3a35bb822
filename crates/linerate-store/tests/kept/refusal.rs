//! What was stored before the disk refused stays readable, and the error names file and step.
//!
//! A refusal needs a file system of its own or a limit of the process, so each case runs this test
//! binary again as a child: in a mount namespace with a small tmpfs, or under a file size limit.

use crate::common;

use std::path::Path;
use std::process::{Command, Output};

use linerate_model::capture::{CaptureOutcome, TrialCapture};
use linerate_store::{FileError, Step, WriteError, Writer, read, write_report};

use common::{document, evidence, trial};

/// Tells a child which directory is the small one.
const PLACE: &str = "LINERATE_STORE_TEST_PLACE";

/// Runs the test `name` of this binary as a child of `shell`, a command line that ends by
/// executing its arguments.
fn child(name: &str, place: &Path, wrapper: &mut Command) -> Output {
    wrapper
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", &format!("refusal::{name}"), "--nocapture"])
        .env(PLACE, place)
        .output()
        .expect("a shell")
}

/// Returns `unshare` with a mount namespace in which `setup` has run.
fn namespace(setup: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{setup} && exec \"$@\"");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--",
        "sh",
        "-c",
        &script,
        "sh",
    ]);
    command
}

/// Returns whether mount namespaces can be made here; if not, says so, and fails in CI.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn can_mount() -> bool {
    let mut probe = namespace("mount -t tmpfs none /mnt");
    let able = probe
        .arg("true")
        .output()
        .is_ok_and(|out| out.status.success());
    if !able {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "no mount namespace"
        );
        println!("skipped: no privilege");
    }
    able
}

fn check(output: Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    assert!(text.contains("1 passed"), "{text}");
}

/// Appends trials until the disk refuses one; returns how many it took, and the refusal.
fn append_until_refused(writer: &mut Writer) -> (u32, WriteError) {
    for id in 1..1000 {
        let stored = writer.append(&evidence(id, 1000, 20));
        if let Err(error) = stored {
            return (id - 1, error);
        }
    }
    panic!("the disk took everything");
}

/// Checks that the bundle in `dir` holds exactly the trials up to `last`, whole.
fn holds(dir: &Path, last: u32) {
    let recording = read(dir).expect("a bundle");
    let expected: Vec<_> = (1..=last).map(trial).collect();
    assert_eq!(recording.trials, expected);
    assert_eq!(recording.samples.len(), last as usize * 20_000);
    assert!(recording.damage.is_empty(), "{:?}", recording.damage);
}

fn refused(error: &WriteError) -> &FileError {
    match error {
        WriteError::File(refused) => refused,
        other => panic!("{other}"),
    }
}

/// The child's part of the tests of a full disk: `kind` is what the system is expected to say.
fn fill_the_disk(kind: std::io::ErrorKind) {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let dir = Path::new(&place).join("bundle");
    let mut document = document(50);
    let mut writer = Writer::create(&dir, &document).expect("a new bundle");
    let (stored, error) = append_until_refused(&mut writer);
    let refusal = refused(&error);
    assert_eq!(refusal.cause.kind(), kind, "{refusal:?}");
    assert_eq!(refusal.step, Step::Write);
    assert!(refusal.path.starts_with(&dir), "{refusal}");
    let text = error.to_string();
    assert!(
        text.starts_with("cannot write ") && text.contains("samples.parquet"),
        "{text}"
    );
    holds(&dir, stored);
    // Merging needs room as well, and may fail; nothing is lost either way.
    document.cut_short = Some("the disk is full".to_owned());
    let _ = writer.finish(&document);
    holds(&dir, stored);
}

#[test]
fn a_disk_without_room_in_a_child() {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let dir = Path::new(&place).join("bundle");
    let refusal = Writer::create(&dir, &document(5000)).expect_err("no room");
    assert_eq!(
        refused(&refusal).cause.kind(),
        std::io::ErrorKind::StorageFull
    );
    Writer::create(&dir, &document(1)).expect("there is nothing in the way");
}

#[test]
fn a_bundle_that_cannot_begin_is_not_in_the_way() {
    if !can_mount() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut wrapper = namespace(&format!(
        "mount -t tmpfs -o size=64k none {}",
        place.path().display()
    ));
    check(child(
        "a_disk_without_room_in_a_child",
        place.path(),
        &mut wrapper,
    ));
}

#[test]
fn a_full_disk_in_a_child() {
    fill_the_disk(std::io::ErrorKind::StorageFull);
}

#[test]
fn what_was_stored_before_the_disk_was_full_stays() {
    if !can_mount() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let mount = format!(
        "mount -t tmpfs -o size=600k none '{}'",
        place.path().display()
    );
    let output = child(
        "a_full_disk_in_a_child",
        place.path(),
        &mut namespace(&mount),
    );
    check(output);
}

#[test]
fn a_capture_without_room_in_a_child() {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let dir = Path::new(&place).join("bundle");
    let document = document(1);
    let mut writer = Writer::create(&dir, &document).expect("a new bundle");
    let mut evidence = evidence(1, 1000, 20);
    let capture = TrialCapture {
        trial: evidence.record.trial,
        host: "server".into(),
        file: None,
        outcome: CaptureOutcome::Missing("not stored yet".to_owned()),
    };
    evidence.captures = vec![(capture, vec![7; 1 << 20])];
    writer.append(&evidence).expect("the trial has room");
    writer.finish(&document).expect("so have its tables");
    let recording = read(&dir).expect("a bundle");
    assert!(recording.damage.is_empty(), "{:?}", recording.damage);
    assert_eq!(recording.samples.len(), 20_000);
    let [capture] = &recording.captures[..] else {
        panic!("{:?}", recording.captures);
    };
    let CaptureOutcome::Missing(why) = &capture.outcome else {
        panic!("{capture:?}");
    };
    assert!(
        why.contains("server") && why.contains("No space left"),
        "{why}"
    );
    assert_eq!(capture.file, None);
}

#[test]
fn a_capture_without_room_is_missing_and_its_trial_is_not() {
    if !can_mount() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let mount = format!(
        "mount -t tmpfs -o size=900k none '{}'",
        place.path().display()
    );
    check(child(
        "a_capture_without_room_in_a_child",
        place.path(),
        &mut namespace(&mount),
    ));
}

#[test]
fn a_size_limit_in_a_child() {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let dir = Path::new(&place).join("bundle");
    let document = document(50);
    let mut writer = Writer::create(&dir, &document).expect("a new bundle");
    for id in 1..=20 {
        writer.append(&evidence(id, 1000, 20)).expect("a trial");
    }
    let error = writer
        .finish(&document)
        .expect_err("the merged table is too large");
    let refusal = refused(&error);
    assert_eq!(
        refusal.cause.kind(),
        std::io::ErrorKind::FileTooLarge,
        "{refusal:?}"
    );
    assert_eq!(refusal.path, dir.join("samples.parquet.tmp"));
    assert!(!refusal.path.exists(), "half a table is left behind");
    holds(&dir, 20);
}

#[test]
fn a_merge_that_is_refused_loses_nothing() {
    let place = tempfile::tempdir().expect("a temporary directory");
    // Blocks of 512 bytes. The signal would end the child before it sees the refusal.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$@\"", "sh"]);
    check(child("a_size_limit_in_a_child", place.path(), &mut shell));
}

#[test]
fn a_read_only_disk_in_a_child() {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let place = Path::new(&place);
    let error = Writer::create(&place.join("bundle"), &document(1)).expect_err("read-only");
    let refusal = refused(&error);
    assert_eq!(refusal.step, Step::MakeDirectory);
    assert_eq!(refusal.cause.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    let error = write_report(place, "<html>").expect_err("read-only");
    let refusal = refused(&error);
    assert_eq!(refusal.step, Step::Create);
    assert!(error.to_string().contains("report.html"), "{error}");
}

#[test]
fn a_read_only_disk_is_named() {
    if !can_mount() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let mount = format!(
        "mount -t tmpfs -o size=600k,ro none '{}'",
        place.path().display()
    );
    let output = child(
        "a_read_only_disk_in_a_child",
        place.path(),
        &mut namespace(&mount),
    );
    check(output);
}
