//! Bundles of strangers: whatever bytes their files have, reading ends with a recording or an error.
//! `PROPTEST_CASES` in the environment says how many cases there are.

mod common;
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use std::path::PathBuf;
use std::sync::OnceLock;

use linerate_store::{Writer, read};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

/// Files with their names in a bundle.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// The files of a small bundle, finished or not.
fn files(is_finished: bool) -> Files {
    static FILES: [OnceLock<Files>; 2] = [OnceLock::new(), OnceLock::new()];
    let files = &FILES[usize::from(is_finished)];
    files.get_or_init(|| written(is_finished)).clone()
}

fn written(is_finished: bool) -> Files {
    let place = tempfile::tempdir().expect("a temporary directory");
    let root = place.path().join("bundle");
    let document = common::document(2);
    let mut writer = Writer::create(&root, &document).expect("a new bundle");
    for id in 1..=2 {
        writer.append(&common::evidence(id, 2, 3)).expect("a trial");
    }
    if is_finished {
        writer.finish(&document).expect("a whole bundle");
    }
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("a file");
            files.push((
                path.strip_prefix(&root).expect("below it").to_owned(),
                bytes,
            ));
        }
    }
    files.sort();
    files
}

/// Writes `files` as a bundle and reads it.
fn check(files: &[(PathBuf, Vec<u8>)]) {
    let place = tempfile::tempdir().expect("a temporary directory");
    for (name, bytes) in files {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    match read(place.path()) {
        Ok(recording) => {
            assert!(recording.trials.len() <= 2 * recording.document.plan.trials.len().max(2))
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Collects where the values of a document are.
fn pointers(value: &Value, at: String, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let fields = map.iter();
            fields.for_each(|(key, value)| pointers(value, format!("{at}/{key}"), all));
        }
        Value::Array(list) => {
            let items = list.iter().enumerate();
            items.for_each(|(key, value)| pointers(value, format!("{at}/{key}"), all));
        }
        _ => {}
    }
    all.push(at);
}

fn config(few: u32) -> ProptestConfig {
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if is_asked {
            ProptestConfig::default().cases
        } else {
            few
        },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The tables and documents of a bundle that the corpus has.
const PARTS: [&str; 7] = [
    "run.json",
    "events.ndjson",
    "trials.parquet",
    "flows.parquet",
    "samples.parquet",
    "stacks.parquet",
    "captures.parquet",
];

fn of_corpus(part: &str) -> String {
    format!("bundles/{part}")
}

/// A bundle of the newest format of the corpus.
fn newest() -> Files {
    let newest = |part: &str| {
        let files = corpus::files(&of_corpus(part));
        files.last().map(|(_, bytes)| (part.into(), bytes.clone()))
    };
    PARTS.into_iter().filter_map(newest).collect()
}

/// Returns the same with `bytes` for a part.
fn with(part: &str, bytes: Vec<u8>) -> Files {
    let mut files = newest();
    files.retain(|(name, _)| name.as_os_str() != part);
    files.push((part.into(), bytes));
    files
}

#[test]
fn the_corpus_is_read_as_what_it_is() {
    check(&newest());
    for part in PARTS {
        for (_, bytes) in corpus::files(&of_corpus(part)) {
            check(&with(part, bytes));
        }
    }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn bytes_of_a_file_may_be_anything(
        is_finished in any::<bool>(),
        which in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut files = files(is_finished);
        let which = which.index(files.len());
        let bytes = &mut files[which].1;
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        check(&files);
    }

    #[test]
    fn parts_of_older_bundles_may_be_changed_and_mixed(
        files in proptest::sample::select(&PARTS[..]).prop_flat_map(|part| {
            corpus::changed(&of_corpus(part)).prop_map(move |bytes| with(part, bytes))
        }),
    ) {
        check(&files);
    }

    #[test]
    fn files_may_stand_for_each_other(
        is_finished in any::<bool>(),
        one in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
    ) {
        let mut files = files(is_finished);
        let (one, other) = (one.index(files.len()), other.index(files.len()));
        files[one].1 = files[other].1.clone();
        check(&files);
    }

    #[test]
    fn what_the_document_says_may_be_anything(
        is_finished in any::<bool>(),
        at in any::<prop::sample::Index>(),
        instead in proptest::sample::select(vec![
            "null", "-1", "1e308", "18446744073709551615", "\"\\u001b[2J\"", "[]", "{}", "true", "[[[[]]]]",
        ]),
    ) {
        let mut files = files(is_finished);
        let run = files.iter_mut().find(|(name, _)| name.ends_with("run.json"));
        let bytes = &mut run.expect("a document").1;
        let mut document: Value = serde_json::from_slice(bytes).expect("JSON");
        let mut places = Vec::new();
        pointers(&document, String::new(), &mut places);
        let at = &places[at.index(places.len())];
        *document.pointer_mut(at).expect("it was found") = serde_json::from_str(instead).expect("JSON");
        *bytes = document.to_string().into_bytes();
        check(&files);
    }
}
