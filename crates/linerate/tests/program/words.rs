//! What people read is in the words of the field: those that `ss`, `ethtool`, the kernel's documents and RFCs
//! have, which can be searched for. And an error is a sentence of its own.
//!
//! Looked at are help texts, the guide, and the string literals of all crates outside of tests; what explains
//! captures has a list of words of its own (docs/reference/trace.md).

use std::path::Path;

use crate::common::{linerate, repository};

/// What is not written, and what is instead; in lower case, as whole words.
const WORDS: &[(&str, &str)] = &[
    ("sent again", "retransmitted"),
    ("segments resent", "retransmitted"),
    ("receiver's window", "receive window"),
    ("peer's window", "receive window"),
    ("peer window", "receive window"),
    ("held by the receive", "limited by"),
    ("held by the send", "limited by"),
    ("queueing discipline", "qdisc"),
    ("queueing disciplines", "qdiscs"),
    ("packets left", "NAPI ran out of budget (time_squeeze)"),
    ("packets taken off", "packets processed"),
    ("than chance gives", "random hashing gives"),
    ("chance lays", "random hashing gives"),
    ("stolen", "steal"),
    ("made addresses", "anonymised addresses"),
    ("nobody tells", "not reported"),
    ("nobody told", "not known"),
    ("weather", "temperature"),
    ("mend", "fix, repair"),
    ("mended", "fixed, repaired"),
    ("taken down", "recorded (a run), removed (a lab)"),
    ("one way about", "half of the round trip"),
    ("a place without a counter", "an unknown location"),
    ("auto-tuning", "autotuning"),
    ("our own generator", "the load generator"),
    ("our own worker", "the load generator"),
    ("for want of", "for lack of"),
    ("twice a second", "twice per second"),
    ("times a second", "times per second"),
    ("samples a second", "samples per second"),
    ("requests a second", "requests per second"),
    ("packets a second", "packets per second"),
    ("datagrams a second", "datagrams per second"),
    ("transactions a second", "transactions per second"),
    ("connections a second", "connections per second"),
    ("one a system call", "one per system call"),
    ("32 a call", "32 per call"),
    ("datagrams a buffer", "datagrams per buffer"),
    ("cut from a buffer", "per buffer"),
    ("handed down", "written"),
    ("superframe", "GSO or GRO aggregate"),
    ("names nobody", "anonymised"),
    ("soft interrupts", "softirqs"),
    ("hard interrupts", "hardirqs"),
    ("work done twice", "retransmissions, duplicates"),
    ("want of room", "buffer overflow"),
    ("counters that moved", "non-zero counters"),
    ("not told apart", "not distinguishable"),
    ("lossy link", "link with injected loss"),
    ("segments a trial", "segments per trial"),
    ("packets a trial", "packets per trial"),
    ("stands beside", "is reported as well"),
    (
        "whatever the responses do",
        "whether or not responses have arrived",
    ),
    ("without a word", "without a message"),
    ("made anew", "replaced, created again"),
    ("hash takes in", "RSS hash fields"),
    ("requests for connections", "SYNs, connection requests"),
    ("came twice", "duplicate"),
    ("looks at a cpu", "samples of a CPU"),
];

/// Crates whose strings are looked at: all but what explains captures, and codecs of foreign protocols.
const CRATES: [&str; 11] = [
    "linerate",
    "linerate-agent",
    "linerate-analyze",
    "linerate-controller",
    "linerate-engine",
    "linerate-lab",
    "linerate-model",
    "linerate-observe",
    "linerate-plan",
    "linerate-report",
    "linerate-store",
];

/// Pages that are looked at beside those of the guide.
const PAGES: [&str; 4] = [
    "README.md",
    "docs/reference/experiment.md",
    "docs/reference/findings.md",
    "docs/reference/metrics.md",
];

/// With what an error begins that only reads on after "failed to".
const BARE_VERBS: [&str; 32] = [
    "add",
    "bind",
    "bring",
    "check",
    "clean",
    "connect",
    "delay",
    "encode",
    "end",
    "enter",
    "find",
    "fit",
    "launch",
    "make",
    "name",
    "open",
    "pin",
    "plan",
    "prepare",
    "read",
    "remove",
    "run",
    "send",
    "set",
    "start",
    "store",
    "trust",
    "understand",
    "use",
    "visit",
    "wait",
    "write",
];

/// Returns the string literals of a source file, from its first line to its tests, with lines that go on
/// joined.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("\n#[cfg(test)]\n").next().unwrap_or(source);
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (sign, after) = rest[at..].split_at(1);
        rest = match sign {
            "/" if after.starts_with('/') => after.split_once('\n').map_or("", |(_, next)| next),
            // A quote as a character, plain or escaped; a lifetime is passed over.
            "'" => after
                .strip_prefix("\"'")
                .or_else(|| after.strip_prefix("\\\"'"))
                .unwrap_or(after),
            "\"" => {
                let (text, next) = literal(after);
                found.push(text);
                next
            }
            _ => after,
        };
    }
    found
}

/// Returns the literal that `text` begins with, behind its first quote, and what follows it.
fn literal(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (out, &text[at + 1..]),
            '\\' => match letters.next() {
                Some((_, '\n')) => {
                    let left = letters.as_str().trim_start();
                    let skipped = text.len() - left.len();
                    letters = text.char_indices();
                    while letters.offset() < skipped {
                        letters.next();
                    }
                }
                Some((_, 'n')) => out.push(' '),
                Some((_, other)) => out.push(other),
                None => break,
            },
            other => out.push(other),
        }
    }
    (out, "")
}

/// Returns whether `words` stands in `text`, not as a part of longer words.
fn contains(text: &str, words: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}

fn faults_of(place: &str, text: &str, faults: &mut Vec<String>) {
    let text = text.to_lowercase();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (words, instead) in WORDS.iter().filter(|(words, _)| contains(&text, words)) {
        let at = text.find(words).unwrap_or(0);
        let around: String = text[..at].chars().rev().take(30).collect();
        let around: String = around
            .chars()
            .rev()
            .chain(text[at..].chars().take(60))
            .collect();
        faults.push(format!(
            "{place}: \u{201c}{words}\u{201d}, better {instead}: … {around} …"
        ));
    }
}

/// Calls `visit` with every file below `folder` that ends in `suffix`.
fn walk(folder: &Path, suffix: &str, visit: &mut dyn FnMut(&Path, &str)) {
    let entries = std::fs::read_dir(folder).expect("a folder of the project");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            walk(&path, suffix, visit);
        } else if path.to_string_lossy().ends_with(suffix) {
            let text = std::fs::read_to_string(&path).expect("a text");
            visit(&path, &text);
        }
    }
}

#[test]
fn people_read_the_words_of_the_field() {
    let root = repository();
    let mut faults = Vec::new();
    for name in CRATES {
        walk(
            &root.join("crates").join(name).join("src"),
            ".rs",
            &mut |path, text| {
                // The comparison with truths is for those who work on the analysis.
                if path.ends_with("tests.rs") || path.to_string_lossy().contains("/truth/") {
                    return;
                }
                for text in literals(text) {
                    faults_of(&path.display().to_string(), &text, &mut faults);
                }
            },
        );
    }
    walk(&root.join("docs/guide"), ".md", &mut |path, text| {
        if path.ends_with("trace.md") {
            return;
        }
        faults_of(&path.display().to_string(), text, &mut faults);
    });
    walk(&root.join("experiments"), ".toml", &mut |path, text| {
        faults_of(&path.display().to_string(), text, &mut faults);
    });
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).expect("a page");
        faults_of(page, &text, &mut faults);
    }
    for command in [
        "", "study", "serve", "run", "watch", "plan", "report", "trace", "lab",
    ] {
        let words: Vec<&str> = [command, "--help"]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        faults_of(
            &format!("linerate {command} --help"),
            &linerate(&words).run().done().out,
            &mut faults,
        );
    }
    assert!(
        faults.is_empty(),
        "words of our own:\n{}",
        faults.join("\n")
    );
}

#[test]
fn an_error_is_a_sentence_of_its_own() {
    let mut faults = Vec::new();
    let mut seen = 0;
    walk(&repository().join("crates"), ".rs", &mut |path, text| {
        for after in text.split("#[error(").skip(1) {
            let Some(text) = after.trim_start().strip_prefix('"') else {
                continue;
            };
            seen += 1;
            let (text, _) = literal(text);
            let first = text.split([' ', ':']).next().unwrap_or_default();
            if BARE_VERBS.contains(&first) {
                faults.push(format!("{}: {text}", path.display()));
            }
        }
    });
    assert!(seen > 100, "errors are found: {seen}");
    assert!(
        faults.is_empty(),
        "write \u{201c}cannot …\u{201d}:\n{}",
        faults.join("\n")
    );
}

#[test]
fn literals_are_told_from_comments_and_joined() {
    let source = "// \"no\"\nlet a = '\"'; f::<'a>(\"one \\\n   two\"); g(\"x\\\"y\")\n#[cfg(test)]\nmod t { \"no\" }";
    assert_eq!(literals(source), ["one two", "x\"y"]);
    assert!(contains("to mend it", "mend") && !contains("recommended", "mend"));
}
