//! A disk that fills up and one that may not be written: told clearly, and what was measured
//! before stays readable.

mod common;

use common::call::{Call, PROGRAM};
use common::{Server, alone, file, folder, is_root, linerate, skip};

/// Many short trials, so that the disk fills between two of them.
const MANY: &str = r#"
format = 1
name = "many"
title = "Many trials"
question = "When is the disk full?"
[workload]
kind = "stream"
connections = 8
[factors]
message_bytes = ["1KiB", "128KiB"]
[design]
kind = "full"
replicates = 30
[timing]
settle = "1ms"
warm_up = "20ms"
measure = "200ms"
drain = "1ms"
"#;

#[test]
fn a_full_disk_ends_the_run_and_keeps_what_was_written() {
    if !is_root() {
        return skip("no privilege: mounting a small disk needs root");
    }
    let _alone = alone();
    let server = Server::start(&[]);
    let folder = folder();
    let path = file(&folder, "many.toml", MANY);
    // The mount namespace goes with the shell, and the small disk with it.
    let script = r#"
        mount -t tmpfs -o size=200k none /mnt || exit 99
        "$0" run "$1" --experiment "$2" --out /mnt/out --seed 1
        echo "code $?"
        ls /mnt/out
        "$0" report /mnt/out --format json > "$3/report.json"
        echo "report $?"
    "#;
    let said = Call::of("unshare")
        .words(&["--mount", "--propagation", "private", "sh", "-c", script])
        .words(&[
            PROGRAM,
            &server.host(),
            &path,
            &folder.path().display().to_string(),
        ])
        .run()
        .failed(
            0,
            &[
                "No space left on device",
                "/mnt/out",
                "linerate report /mnt/out",
            ],
        );
    assert!(said.out.contains("code 1\n"), "{said:?}");
    assert!(said.out.contains("report 0\n"), "{said:?}");
    let report = std::fs::read_to_string(folder.path().join("report.json")).expect("a report");
    let report = common::json(&report);
    let partial = report["partial"].as_str().unwrap_or_default();
    assert!(partial.contains("of 60 trials"), "{partial}");
    server.wait_busy(false);
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_is_measured() {
    let server = Server::start(&[]);
    let next = "another directory with --out";
    linerate(&["run", &server.host(), "--out", "/proc/nosuch"])
        .run()
        .failed(1, &["/proc/nosuch", next]);
    let folder = folder();
    let taken = file(&folder, "taken", "a file");
    linerate(&["run", &server.host(), "--out", &taken])
        .run()
        .failed(1, &[&taken, next]);
    assert_eq!(
        std::fs::read_to_string(&taken).expect("it is there"),
        "a file"
    );
    server.wait_busy(false);
}
