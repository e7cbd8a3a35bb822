//! A disk that fills up and one that may not be written: told clearly, and what was measured
//! before stays readable.

use crate::common::call::{Call, PROGRAM};
use crate::common::{Server, file, folder, is_root, linerate, loading, skip};

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
    let _load = loading();
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
    let report = crate::common::json(&report);
    let partial = report["partial"].as_str().unwrap_or_default();
    assert!(partial.contains("of 60 trials"), "{partial}");
    server.wait_busy(false);
}

/// The page is the largest file of a bundle and comes last: all but it may find room.
#[test]
fn a_result_is_shown_though_its_report_finds_no_room() {
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let words = ["-t", "2", "-O", "0", "-i", "0", "--out"];
    let run = linerate(&["run", &server.host()]).words(&words);
    let said = run.words(&[path("whole")]).run();
    assert!(said.is_measured(), "{said:?}");
    let bytes = |name: &str| {
        let file = std::fs::metadata(folder.path().join("whole").join(name));
        file.expect("it is there").len()
    };
    let (document, page) = (bytes("run.json"), bytes("report.html"));
    assert!(document < page, "{document} and {page} bytes");
    // No file may grow beyond what lies between them, in blocks of 512 bytes.
    let blocks = (document + page) / 2 / 512;
    let script = r#"trap "" XFSZ; ulimit -f "$1"; shift; exec "$0" "$@""#;
    let said = Call::of("sh")
        .words(&["-c", script, PROGRAM, &blocks.to_string()])
        .words(&["run", &server.host()])
        .words(&words)
        .words(&[path("cut")])
        .run()
        .failed(1, &["report.html", "File too large", "the result is above"]);
    assert!(said.out.contains("received"), "{said:?}");
    assert!(
        said.err
            .contains(&format!("`linerate report {}`", path("cut")))
    );
    linerate(&["report", &path("cut")]).run().done();
}

/// Neither the trial nor how the run ended finds room: what was measured is on the terminal, or nowhere.
#[test]
fn a_result_is_shown_though_the_disk_takes_none_of_it() {
    if !is_root() {
        return skip("no privilege: mounting a small disk needs root");
    }
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let words = ["-t", "1", "-O", "0", "-i", "0"];
    let out = folder.path().join("whole").display().to_string();
    let run = linerate(&["run", &server.host()]).words(&words);
    run.words(&["--out", &out]).run();
    let run_json = std::fs::metadata(folder.path().join("whole/run.json"));
    let pages = run_json.expect("it is there").len().div_ceil(4096);
    // The folders take none of the pages of a tmpfs; the events one, the parts of the trial four.
    for room in [pages + 2, pages + 4, pages + 7] {
        let script = format!(
            "mount -t tmpfs -o size={}k none /mnt && exec \"$0\" run \"$@\" --out /mnt/out",
            4 * room
        );
        let run = |form: &[&str]| {
            Call::of("unshare")
                .words(&["--mount", "--propagation", "private", "sh", "-c", &script])
                .words(&[PROGRAM, &server.host()])
                .words(&words)
                .words(form)
                .run()
        };
        let told = ["No space left on device", "the result is above"];
        let said = run(&[]).failed(1, &told);
        assert!(said.out.contains("received  "), "{room} pages: {said:?}");
        assert!(!said.out.contains("damaged"), "{room} pages: {said:?}");
        let said = run(&["-J"]).failed(1, &told);
        let document = crate::common::json(&said.out);
        let rate = document["trials"][0]["responses"]["throughput_bps"].as_f64();
        assert!(rate > Some(0.0), "{room} pages: {said:?}");
        let error = document["error"].as_str().unwrap_or_default();
        assert!(error.contains("No space left"), "{room} pages: {error}");
    }
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
        .failed(2, &[&taken, next]);
    assert_eq!(
        std::fs::read_to_string(&taken).expect("it is there"),
        "a file"
    );
    server.wait_busy(false);
}

#[test]
fn what_standard_output_does_not_take_is_a_failure() {
    let server = Server::start(&[]);
    for flags in ["-t 0.3 -J", "-t 60", "-t 60 --json-stream"] {
        let script = r#""$0" run "$1" $2 > /dev/full"#;
        let said = Call::of("sh")
            .words(&["-c", script, PROGRAM, &server.host(), flags])
            .run();
        said.failed(1, &["cannot write to standard output", "--out DIR"]);
    }
}
