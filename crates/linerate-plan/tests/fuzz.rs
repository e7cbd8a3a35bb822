//! Experiment files and profiles of uperf of strangers: cut, mixed, with values that no one would write. They are read or refused,
//! in words of a bounded length. `PROPTEST_CASES` in the environment says how many cases there are.

#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use linerate_plan::{ReadError, read_experiment, read_profile};
use proptest::collection::vec;
use proptest::prelude::*;

/// The files that come with the program: what is near them is read furthest.
const FILES: &[&str] = &[
    include_str!("../../../experiments/01-latency.toml"),
    include_str!("../../../experiments/03-socket-buffer.toml"),
    include_str!("../../../experiments/10-packet-rate.toml"),
    include_str!("../../../experiments/congestion-control.toml"),
    include_str!("../../../experiments/many-clients.toml"),
    include_str!("../../../experiments/netpipe.toml"),
];
const VALUES: &[&str] = &[
    "1",
    "-1",
    "0",
    "1e400",
    "nan",
    "18446744073709551616",
    "9223372036854775807",
    "true",
    "\"\"",
    "\"1ms\"",
    "\"-1ms\"",
    "\"99999999999999999999G\"",
    "\"\\u001b[2J\"",
    "[]",
    "[[]]",
    "{}",
    "[\"a\", 1, {}]",
    "[1, 2, 3, 4, 5, 6, 7, 8, 9]",
    "{ load = 1 }",
    "2026-11-23",
    "'",
    "\"ä",
];
/// Longest refusal: a line of the file, and what is allowed there.
const WORDS_MAX: usize = 4000;

fn check(text: &str) {
    check_read(text, read_experiment(text, "fuzz.toml").err());
}

/// Every variable has a value that profiles hardly expect.
fn check_profile(text: &str) {
    let variable = |name: &str| (name != "gone").then(|| format!("$ {name}=\u{e4}"));
    check_read(text, read_profile(text, "fuzz.xml", variable).err());
}

fn check_read(text: &str, error: Option<ReadError>) {
    if let Some(error) = error {
        let words = error.to_string();
        assert!(!words.is_empty());
        assert!(
            words.len() <= WORDS_MAX + text.len(),
            "{} bytes",
            words.len()
        );
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn the_corpus_is_read_as_what_it_is() {
    for (name, bytes) in corpus::files("experiments") {
        let text = String::from_utf8(bytes).expect("TOML is text");
        let read = read_experiment(&text, &name);
        assert!(
            read.is_ok(),
            "{}",
            read.err().map_or_else(String::new, |why| why.to_string())
        );
    }
}

#[test]
fn the_profiles_of_the_corpus_are_read_as_what_they_are() {
    for (name, bytes) in corpus::files("profiles") {
        let text = String::from_utf8(bytes).expect("XML is text");
        let read = read_profile(&text, &name, |_| Some("7".to_owned()));
        assert!(
            read.is_ok(),
            "{}",
            read.err().map_or_else(String::new, |why| why.to_string())
        );
    }
}

#[test]
fn elements_may_lie_in_each_other_as_deep_as_a_file_is_long() {
    for tag in ["<profile>", "<a b=\"c\">", "<!-- ", "&lt;"] {
        check_profile(&tag.repeat((1 << 20) / tag.len()));
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn values_may_be_anything(
        file in proptest::sample::select(FILES),
        changes in vec((any::<prop::sample::Index>(), proptest::sample::select(VALUES)), 1..4),
    ) {
        let mut lines: Vec<String> = file.lines().map(str::to_owned).collect();
        for (at, value) in changes {
            let at = at.index(lines.len());
            if let Some((key, _)) = lines[at].clone().split_once('=') {
                lines[at] = format!("{key}= {value}");
            }
        }
        check(&lines.join("\n"));
    }

    #[test]
    fn lines_may_stand_anywhere(
        file in proptest::sample::select(FILES),
        other in proptest::sample::select(FILES),
        moves in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..8),
    ) {
        let mut lines: Vec<&str> = file.lines().collect();
        let others: Vec<&str> = other.lines().collect();
        for (from, to) in moves {
            lines.insert(to.index(lines.len()), others[from.index(others.len())]);
        }
        check(&lines.join("\n"));
    }

    #[test]
    fn bytes_may_be_anything(bytes in corpus::changed("experiments")) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn profiles_may_be_any_bytes(bytes in corpus::changed("profiles")) {
        check_profile(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn profiles_may_be_any_text(text in ".*", inside in "[<>\"'=$ a-z0-9/!&;-]*") {
        check_profile(&text);
        check_profile(&format!("<profile>{inside}</profile>"));
        check_profile(&format!(
            "<profile><group nthreads=\"1\"><transaction><flowop type=\"connect\" options=\"{inside}\"/>\
             </transaction></group></profile>"
        ));
    }
}
