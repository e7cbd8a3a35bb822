//! Studies: a quick look over loopback, and one in a lab that the user ends early.

use crate::common::{NamedLab, Server, fits_its_schema, folder, json, linerate, loading};
use nix::sys::signal::Signal;

#[test]
fn a_study_of_a_host_says_the_least_time_that_it_takes_and_a_quick_look_takes_less() {
    let _load = loading();
    let server = Server::start(&[]);
    let host = server.host();
    let refused = linerate(&["study", &host, "--budget", "1s"])
        .run()
        .failed(2, &["at least", "--budget"]);
    let least = refused
        .err
        .split("--budget ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let least = least.expect("the least is told").trim_end_matches(';');
    let planned = linerate(&["study", &host, "--budget", least, "--dry-run"])
        .run()
        .done();
    assert!(planned.out.contains("trials"), "{}", planned.out);
    let folder = folder();
    let out = folder.path().join("study").display().to_string();
    let said = linerate(&["study", &host, "--quick", "--seed", "1", "-o", &out]).run();
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    said.left_nothing();
    assert!(said.out.contains("Trust: "), "{}", said.out);
    assert!(said.out.lines().count() <= 24, "{}", said.out);
    // The path of a temporary directory is as long as it is.
    let lines = said.out.lines().chain(said.err_lines.lines());
    let mut wide = lines.filter(|line| line.chars().count() > 80 && !line.contains(&out));
    assert_eq!(wide.next(), None, "{}", said.out);
    assert!(
        said.out.contains(&format!("report  {out}/report.html")),
        "{}",
        said.out
    );
    let page = std::fs::read_to_string(format!("{out}/report.html")).expect("a report");
    let told = linerate(&["report", &out, "--format", "json"]).run().done();
    let told = json(&told.out);
    fits_its_schema("report", &told);
    let chapters = told["chapters"].as_array().expect("chapters").iter();
    let ids: Vec<&str> = chapters.filter_map(|it| it["id"].as_str()).collect();
    for part in ["throughput", "round-trip", "under-load", "under-load-probe"] {
        assert!(ids.contains(&part), "{part} of {ids:?}");
    }
    linerate(&["report", &out]).run().done();
    let again = std::fs::read_to_string(format!("{out}/report.html")).expect("a report");
    assert!(
        page == again,
        "the report differs when it is rendered again"
    );
    server.wait_busy(false);
}

#[test]
fn a_study_in_a_lab_that_is_interrupted_keeps_what_it_has() {
    let _load = loading();
    if NamedLab::up(&[]).is_none() {
        return;
    }
    let folder = folder();
    let out = folder.path().join("study").display().to_string();
    let mut study = linerate(&["study", "--lab", "--budget", "3m", "-o", &out]).start();
    study.wait_for("Acknowledgements: trial");
    study.signal(Signal::SIGINT);
    let said = study.end();
    assert_eq!(said.code, 130, "{said:?}");
    said.left_nothing();
    assert!(said.out.contains("Partial"), "{}", said.out);
    let report = linerate(&["report", &out, "--format", "json"]).run().done();
    let report = json(&report.out);
    let partial = report["partial"].as_str().unwrap_or_default();
    assert!(partial.contains("interrupted; "), "{partial}");
    assert!(partial.ends_with("were not done"), "{partial}");
    let page = std::fs::read_to_string(format!("{out}/report.html")).expect("a report");
    assert!(
        page.contains("ended early: interrupted"),
        "the page says so"
    );
}

#[test]
fn a_study_that_is_killed_leaves_nothing_running() {
    let _load = loading();
    if NamedLab::up(&[]).is_none() {
        return;
    }
    let folder = folder();
    let out = folder.path().join("study").display().to_string();
    let mut study = linerate(&["study", "--lab", "--budget", "3m", "-o", &out]).start();
    study.wait_for("Acknowledgements: trial");
    study.kill().left_nothing();
    // What was written before is a bundle that says that it is partial.
    let report = linerate(&["report", &out, "--format", "json"]).run().done();
    assert!(!json(&report.out)["partial"].is_null());
}

#[test]
fn every_example_can_be_planned_and_one_runs_in_a_lab() {
    let examples = crate::common::repository().join("experiments");
    let mut count = 0;
    for entry in std::fs::read_dir(examples)
        .expect("the examples are there")
        .flatten()
    {
        // Profiles of uperf have a folder, and a test, of their own.
        if entry.path().is_dir() {
            continue;
        }
        let path = entry.path().display().to_string();
        let planned = linerate(&["plan", &path]).run().done();
        assert!(planned.out.contains("trials"), "{path}: {}", planned.out);
        let planned = linerate(&["plan", &path, "-J", "--seed", "3"]).run().done();
        let trials = json(&planned.out)["trials"].as_array().map(Vec::len);
        assert!(trials > Some(0), "{path}");
        count += 1;
    }
    assert!(count >= 5, "{count}");
    // Whoever has only the program has no files: chapters are known by name.
    for name in [
        "latency",
        "socket-buffer",
        "acknowledgements",
        "small-messages",
        "split-request",
        "queues",
    ] {
        let planned = linerate(&["plan", name]).run().done();
        assert!(planned.out.contains(name), "{name}: {}", planned.out);
    }
    linerate(&["plan", "no-such-chapter"])
        .run()
        .failed(2, &["no-such-chapter"]);
    let _load = loading();
    if NamedLab::up(&[]).is_none() {
        return;
    }
    let folder = folder();
    let out = folder.path().join("round-trip").display().to_string();
    let example = crate::common::repository().join("experiments/quick-round-trip.toml");
    let example = example.display().to_string();
    let said = linerate(&["run", "--lab", "--experiment", &example, "--budget", "10s"])
        .words(&["-o", &out])
        .run();
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    said.left_nothing();
    assert!(said.out.contains("Trust: "), "{}", said.out);
    linerate(&["report", &out]).run().done();
}
