//! Bundles of older versions, and of what is none of this version's: opened, or refused and left as they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{folder, json, linerate, repository};

/// Returns the files below `dir` with their bytes.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            let below = files(&path).into_iter();
            all.extend(below.map(|(name, bytes)| (format!("{}/{name}", path.display()), bytes)));
        } else {
            let bytes = fs::read(&path).expect("a file");
            all.insert(path.display().to_string(), bytes);
        }
    }
    all
}

/// Copies the bundle that the first version with `format` wrote to `to`, without its captures.
fn written_once(format: u32, to: &Path) {
    let bundles = repository().join("crates/linerate-store/tests/bundles");
    fs::create_dir(to).expect("the temporary directory can be written");
    for entry in fs::read_dir(bundles.join(format!("format-{format}"))).expect("a bundle") {
        let path = entry.expect("an entry").path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            fs::copy(&path, to.join(name)).expect("copied");
        }
    }
}

#[test]
fn bundles_of_before_there_were_groups_are_opened() {
    for format in 1..=3 {
        let folder = folder();
        let bundle = folder.path().join("b");
        written_once(format, &bundle);
        let path = bundle.to_str().expect("a plain path");
        let report = linerate(&["report", path, "--format", "json"]).run().done();
        let report = json(&report.out);
        let about = report["about"].as_array().expect("a list");
        let trials = about.iter().find(|row| row[0] == "Trials");
        let trials = trials.and_then(|row| row[1].as_str()).expect("it is told");
        let count = trials.split(',').next().and_then(|it| it.parse().ok());
        assert!(count > Some(0), "format {format}: {trials}");
        assert_eq!(
            report["chapters"].as_array().map(Vec::is_empty),
            Some(false)
        );
    }
}

#[test]
fn a_format_that_this_version_does_not_know_is_refused_and_the_bundle_left_as_it_is() {
    let folder = folder();
    let bundle = folder.path().join("b");
    written_once(3, &bundle);
    let path = bundle.to_str().expect("a plain path");
    let run = bundle.join("run.json");
    let known = fs::read_to_string(&run).expect("a document");
    let check = |format: &str, words: &[&str]| {
        let other = known.replacen("\"format\": 3", &format!("\"format\": {format}"), 1);
        assert_ne!(other, known);
        fs::write(&run, other).expect("written");
        let before = files(&bundle);
        linerate(&["report", path]).run().failed(1, words);
        linerate(&["compare", path, path]).run().failed(1, words);
        assert_eq!(files(&bundle), before, "format {format}");
    };
    check("99", &["run.json", "bundle format 99", "newer linerate"]);
    check("0", &["run.json", "bundle format 0", "copy of the bundle"]);
}
