//! What people read is in the words of the field: those that `ss`, `ethtool`, the kernel's documents and RFCs
//! have, which can be searched for. And an error is a sentence of its own.
//!
//! Looked at are help texts, the guide, the reference, and the string literals of all crates outside of tests.

use std::path::Path;

use crate::{output, root};

/// A term that is ours alone, and the field's.
struct Term {
    ours: &'static str,
    field: &'static str,
    /// What is not written for it; in lower case, as whole words.
    refused: &'static [&'static str],
    /// Why it may be written all the same.
    kept: &'static str,
}

const fn refused(
    ours: &'static str,
    field: &'static str,
    refused: &'static [&'static str],
) -> Term {
    Term {
        ours,
        field,
        refused,
        kept: "",
    }
}

const fn kept(ours: &'static str, field: &'static str, kept: &'static str) -> Term {
    Term {
        ours,
        field,
        refused: &[],
        kept,
    }
}

/// The glossary: every term is either refused in each of its forms, or kept for a reason. Code may use what
/// people do not read.
const GLOSSARY: &[Term] = &[
    refused(
        "sent again, came again",
        "retransmitted; duplicate",
        &["sent again", "came again", "resent", "segments resent"],
    ),
    kept(
        "round trip (as a value)",
        "RTT",
        "RFC 9293 and ping write \"round trip\" out; tables and heads of columns have RTT",
    ),
    refused(
        "window that the path needs, bytes in flight that fill the link",
        "bandwidth-delay product (BDP)",
        &["window that the path needs", "bytes in flight that fill"],
    ),
    refused(
        "receiver's window, peer's window",
        "receive window (rwnd)",
        &["receiver's window", "peer's window", "peer window"],
    ),
    refused(
        "held by, held down by, held the sender back",
        "limited by, waited for",
        &[
            "held by the",
            "held down",
            "held up by",
            "held the sender back",
        ],
    ),
    kept(
        "congestion window",
        "congestion window (cwnd)",
        "the field's own word",
    ),
    refused(
        "turn that ended with packets left",
        "NAPI ran out of budget (time_squeeze)",
        &["packets left", "turns that", "take turns"],
    ),
    refused(
        "taken off (packets)",
        "processed (softnet)",
        &["taken off", "packets taken off"],
    ),
    refused(
        "how packets lie on queues, hash deals",
        "RSS distributes, RSS distribution",
        &["packets lie", "lie on receive", "hash deals"],
    ),
    refused(
        "fields that the hash takes in",
        "RSS hash fields (ethtool -n rx-flow-hash)",
        &["hash takes in", "takes in"],
    ),
    refused(
        "what chance gives",
        "random hashing gives; 95 % bound",
        &["chance gives", "than chance gives", "chance lays"],
    ),
    refused(
        "handed over by others",
        "steered by RPS; delivered",
        &["handed over"],
    ),
    refused(
        "one call of many, a call",
        "per call, per system call",
        &["a call", "one a system call", "a system call each"],
    ),
    refused(
        "handed down in two writes",
        "written in two calls",
        &["handed down"],
    ),
    refused(
        "ways to send, wait, receive; manner, mechanism",
        "send method, receive method, I/O mechanism",
        &["ways to send", "ways to wait", "ways to receive", "manner"],
    ),
    refused(
        "by turns, in turn",
        "alternating; round-robin; interleaved",
        &["by turns", "in turn", "in turns"],
    ),
    refused(
        "spin, spun through, busy",
        "busy-poll, busy-wait",
        &["spun", "spins", "a worker that spins"],
    ),
    refused(
        "rest (of a sender, receiver)",
        "pause, sleep",
        &[
            "sender rests",
            "receiver rests",
            "counter rests",
            "rests between",
        ],
    ),
    refused(
        "room (of a receive call)",
        "receive buffer size",
        &["room of a call", "want of room"],
    ),
    refused("room (of the code)", "crate", &["a room of the code"]),
    refused(
        "place (connection)",
        "concurrent connection, slot",
        &["place of connections", "takes its place"],
    ),
    refused(
        "places (listener)",
        "connection limit",
        &[
            "places for those",
            "places for runs",
            "places for connections",
            "places for details",
        ],
    ),
    refused(
        "made addresses, names nobody",
        "anonymised addresses",
        &["made addresses", "names nobody"],
    ),
    refused("superframe", "GSO or GRO aggregate", &["superframes"]),
    refused(
        "queueing discipline (every time)",
        "qdisc",
        &["queueing discipline", "queueing disciplines"],
    ),
    refused("the card", "network card, NIC", &["the card", "a card"]),
    refused("stolen", "steal", &["stolen"]),
    refused(
        "soft, hard interrupts",
        "softirqs, hardirqs",
        &["soft interrupts", "hard interrupts"],
    ),
    refused(
        "counters that moved, moved by",
        "non-zero counters; change",
        &[
            "counters that moved",
            "moved by",
            "those that moved",
            "moved payload",
            "moved nothing",
        ],
    ),
    refused(
        "want of room, want of memory",
        "buffer overflow; memory pressure",
        &["want of", "for want of"],
    ),
    refused(
        "what was asked for, intended instant",
        "requested; scheduled send time",
        &[
            "what was asked for",
            "than was asked for",
            "intended instant",
        ],
    ),
    refused(
        "open loop by the clock",
        "open loop, constant arrival rate",
        &["by the clock"],
    ),
    refused(
        "requests under way",
        "in flight, outstanding; running (a trial)",
        &["under way"],
    ),
    refused(
        "begins N requests",
        "sends N requests per second",
        &["begins requests", "requests that it begins", "begins by"],
    ),
    refused(
        "lost on purpose",
        "injected loss, simulated loss",
        &["on purpose"],
    ),
    refused(
        "clean, lossy link",
        "link without loss, with injected loss",
        &[
            "clean link",
            "lossy link",
            "lossy path",
            "lossy paths",
            "clean ones",
        ],
    ),
    refused("taken down (a run)", "recorded", &["taken down"]),
    refused(
        "taken down (a lab)",
        "removed, torn down",
        &["take it down", "took it down"],
    ),
    refused(
        "told, said, tells",
        "reported, printed, shown",
        &[
            "told",
            "tells",
            "is said",
            "are said",
            "is told",
            "nobody tells",
        ],
    ),
    refused(
        "not told apart",
        "not distinguishable; not significant",
        &["told apart", "tell apart", "tells apart"],
    ),
    refused("beside", "next to; in addition to; during", &["beside"]),
    refused(
        "behind (in time)",
        "after",
        &[
            "one behind the other",
            "behind one another",
            "behind the other",
        ],
    ),
    refused("mend", "fix, repair", &["mend", "mends", "mended"]),
    refused("anew", "again; re-", &["anew"]),
    refused("dealt (flows)", "distributed round-robin", &["dealt"]),
    kept(
        "end, part",
        "side; role",
        "RFC 1122 and 9293 have ends of a connection; a part is no term, only the word for a share",
    ),
    kept(
        "requested, granted, effective",
        "requested; set (per getsockopt); in effect",
        "names of the JSON document and the bundle, which docs/guide/run.md explains once",
    ),
    refused("capped", "clamped", &["capped"]),
    refused(
        "begin (noun)",
        "start",
        &["the begin", "begin of", "its begin", "a begin"],
    ),
    refused("the machine's own", "host-wide", &["the machine's own"]),
    refused(
        "one way (from half of the round trip)",
        "half of the round trip",
        &["one way about", "half of it one way"],
    ),
    refused(
        "noise hides differences below x",
        "differences below x are not significant",
        &["hides differences", "noise hides"],
    ),
    refused(
        "to be believed, not to be trusted",
        "valid; unreliable; not trusted",
        &["believed", "to be trusted"],
    ),
    refused(
        "held against",
        "compared with; checked by",
        &["held against"],
    ),
    refused(
        "work done twice",
        "retransmissions, duplicates",
        &["work done twice"],
    ),
    refused(
        "trouble (counter)",
        "error counter",
        &["trouble counter", "trouble counters"],
    ),
    refused(
        "bare loop of our own",
        "reference loop; linerate's",
        &["bare loop", "our own", "of ours"],
    ),
    refused(
        "the greater end",
        "the larger of the two processes",
        &["greater end"],
    ),
];

/// Further wordings that are not written, and what is instead.
const WORDS: &[(&str, &str)] = &[
    ("nobody", "no host, no program; not known"),
    ("whoever", "the caller, a host"),
    ("somebody", "another user, another host"),
    ("is asked", "name what is read, or who asks"),
    ("are asked", "name what is read, or who asks"),
    ("nobody told", "not known"),
    ("weather", "temperature"),
    ("a place without a counter", "an unknown location"),
    ("auto-tuning", "autotuning"),
    ("auto-tuned", "autotuned"),
    ("twice a second", "twice per second"),
    ("times a second", "times per second"),
    ("samples a second", "samples per second"),
    ("requests a second", "requests per second"),
    ("packets a second", "packets per second"),
    ("datagrams a second", "datagrams per second"),
    ("transactions a second", "transactions per second"),
    ("connections a second", "connections per second"),
    ("runs a minute", "runs per minute"),
    ("32 a call", "32 per call"),
    ("datagrams a buffer", "datagrams per buffer"),
    ("cut from a buffer", "per buffer"),
    ("segments a trial", "segments per trial"),
    ("packets a trial", "packets per trial"),
    ("stands beside", "is reported as well"),
    (
        "whatever the responses do",
        "whether or not responses have arrived",
    ),
    ("without a word", "without a message"),
    ("requests for connections", "SYNs, connection requests"),
    ("came twice", "duplicate"),
    ("looks at a cpu", "samples of a CPU"),
    ("our own generator", "the load generator"),
    ("our own worker", "the load generator"),
];

/// Identifiers of findings that programs know; people read their titles.
const IDS: [&str; 2] = ["capped", "capped/{}"];

/// Crates whose strings are looked at: all.
const CRATES: [&str; 13] = [
    "linerate",
    "linerate-agent",
    "linerate-analyze",
    "linerate-compat",
    "linerate-controller",
    "linerate-engine",
    "linerate-lab",
    "linerate-model",
    "linerate-observe",
    "linerate-plan",
    "linerate-report",
    "linerate-store",
    "linerate-trace",
];

/// Folders of pages for users, with what is below them.
const FOLDERS: [&str; 2] = ["docs/guide", "docs/reference"];

/// Further pages for users.
const PAGES: [&str; 2] = ["README.md", "docs/method.md"];

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

/// What is counted in what people read. A number before one of these comes from
/// `linerate_model::number::counted` or `agreeing`, which know that there may be one.
const COUNTED: &[&str] = &[
    "ACKs",
    "CPUs",
    "SYNs",
    "agents",
    "blocks",
    "calls",
    "captures",
    "cells",
    "clients",
    "connections",
    "datagrams",
    "drops",
    "errors",
    "files",
    "findings",
    "flows",
    "frames",
    "hosts",
    "interrupts",
    "labs",
    "levels",
    "lines",
    "messages",
    "packets",
    "pairs",
    "ports",
    "processes",
    "programs",
    "queues",
    "questions",
    "readings",
    "requests",
    "retransmits",
    "routers",
    "rows",
    "runs",
    "samples",
    "segments",
    "sockets",
    "streams",
    "threads",
    "tokens",
    "transactions",
    "trials",
    "workers",
];

/// Numbers that stand before such a noun all the same, and why they are not one.
const SEVERAL: &[(&str, &[&str])] = &[
    (
        "more than a limit, or a limit itself",
        &[
            "{flows} flows, but",
            "{flows} flows need",
            "{files} open files",
            "{streams} streams, but",
            "{asked} CPUs for workers",
            "{} requests from {from} wait",
            "{under_way} trials in progress",
            "{most} runs here at a time",
            "{count} cells in",
            "{} levels",
            "{trials} trials: at most",
            "{count} threads and must have one",
            "{rows} rows, and {rows_max}",
            "{got} of {rows} rows",
        ],
    ),
    (
        "a branch has the others",
        &[
            "from {clients} clients",
            "All {hosts} hosts",
            "of {cells} cells",
            "of {count} flows",
            "of {} equal flows",
            "of {queues} receive queues",
            "of {} receive queues",
            "of {all} trials",
            "({trials} of {all} runs)",
            "of {asked} workers",
            "of {flows} flows",
            "of {of} flows transferred",
            "{flows} flows shared unfairly",
            "over {} queues",
            "of {pairs} pairs contradict",
            "{batch} datagrams of",
            "{segments} datagrams of",
            "{batch} messages of",
            "{batch} messages per call",
            "{burst} datagrams back to back",
            "{burst} messages back to back",
            "{segments} consecutive segments",
            "{} files, {first} to {last}",
            "{count} captures in",
        ],
    ),
    (
        "a rate, a size or a name",
        &[
            "({:.2} CPUs)",
            "of {} CPUs take",
            "% of {done} calls",
            "{message} messages",
            "{} messages",
            "{} requests",
            "--sample-rate {} samples every",
            "{algorithm} spaces segments",
            "{who} announces segments",
            "{address} runs",
            "{doing} the tokens",
            "{} (Esc drops it)",
            "{error} (all ports",
        ],
    ),
];

/// Returns the first place of `text` in which a number that is filled in stands before a noun that is counted,
/// with an adjective between them or without.
fn bare_count(text: &str) -> Option<String> {
    text.match_indices("} ").find_map(|(at, _)| {
        let begin = text[..at].rfind('{')?;
        let name = text[begin + 1..at].split(':').next().unwrap_or_default();
        // A constant is what its line says.
        if !name.is_empty() && name.to_uppercase() == name {
            return None;
        }
        let rest = &text[at + 2..];
        let ends = |letter: char| !letter.is_alphanumeric() && letter != '-' && letter != '/';
        let mut words = rest.split(' ').map(|word| word.trim_end_matches(ends));
        let (first, second) = (words.next()?, words.next());
        let is_adjective = first.len() > 3 && !first.ends_with('s');
        let noun = [Some(first), second.filter(|_| is_adjective)]
            .into_iter()
            .flatten()
            .find(|word| COUNTED.contains(word))?;
        Some(format!("{} … {noun}", &text[begin..]))
    })
}

#[test]
fn a_number_agrees_with_its_noun() {
    let mut faults = Vec::new();
    let mut kept = std::collections::BTreeSet::new();
    let exceptions = || {
        SEVERAL
            .iter()
            .flat_map(|(_, places)| places.iter().copied())
    };
    for name in CRATES {
        let folder = root().join("crates").join(name).join("src");
        walk(&folder, ".rs", &mut |path, text| {
            let place = path.display().to_string();
            if path.ends_with("tests.rs") || place.contains("/truth/") || place.contains("/faults/")
            {
                return;
            }
            for mut text in literals(text) {
                for words in exceptions() {
                    if text.contains(words) {
                        kept.insert(words);
                        text = text.replace(words, "");
                    }
                }
                if let Some(fault) = bare_count(&text) {
                    faults.push(format!("{place}: {fault}"));
                }
            }
        });
    }
    assert!(faults.is_empty(), "one of them:\n{}", faults.join("\n"));
    let gone: Vec<&str> = exceptions().filter(|words| !kept.contains(words)).collect();
    assert_eq!(gone, [""; 0], "nobody writes this any more");
    assert!(bare_count("they dropped {} packets.").is_some());
    assert!(
        bare_count("{n:.0} valid trials").is_some() && bare_count("{TRIALS_MAX} trials").is_none()
    );
    assert!(bare_count("{} of trials").is_none() && bare_count("{host} has flows").is_none());
}

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
    let is_part = |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || it == '_');
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}

/// Returns every wording that is refused, with what is written instead.
fn refusals() -> impl Iterator<Item = (&'static str, &'static str)> {
    let terms = GLOSSARY
        .iter()
        .flat_map(|term| term.refused.iter().map(|words| (*words, term.field)));
    terms.chain(WORDS.iter().copied())
}

fn faults_of(place: &str, text: &str, faults: &mut Vec<String>) {
    let text = text.to_lowercase();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (words, instead) in refusals().filter(|(words, _)| contains(&text, words)) {
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

/// Returns the prose of a page: what is code, as names of files, tests and fields, is left out.
fn prose(page: &str) -> String {
    let is_code = |line: &&str| line.starts_with("```");
    let mut out = String::new();
    let mut in_block = false;
    for line in page.lines() {
        if is_code(&line) {
            in_block = !in_block;
        }
        // Comments in blocks of commands are prose, too.
        let line = if in_block {
            line.split_once('#').map_or("", |(_, comment)| comment)
        } else {
            line
        };
        let parts = line.split('`').enumerate();
        for (_, part) in parts.filter(|(at, _)| at % 2 == 0) {
            out.push_str(part);
            out.push(' ');
        }
        out.push('\n');
    }
    out
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
    let root = root();
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
                for text in literals(text)
                    .into_iter()
                    .filter(|text| !IDS.contains(&text.as_str()))
                {
                    faults_of(&path.display().to_string(), &text, &mut faults);
                }
            },
        );
    }
    for folder in FOLDERS {
        walk(&root.join(folder), ".md", &mut |path, text| {
            faults_of(&path.display().to_string(), &prose(text), &mut faults);
        });
    }
    walk(&root.join("experiments"), ".toml", &mut |path, text| {
        faults_of(&path.display().to_string(), text, &mut faults);
    });
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).expect("a page");
        faults_of(page, &prose(&text), &mut faults);
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
            &output(&words),
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
fn every_term_of_the_glossary_is_refused_or_kept_for_a_reason() {
    assert_eq!(GLOSSARY.len(), 58);
    for term in GLOSSARY {
        let is_refused = !term.refused.is_empty();
        assert_ne!(is_refused, !term.kept.is_empty(), "{}", term.ours);
        for words in term.refused {
            let mut faults = Vec::new();
            let sentence = format!("It is {words}, as {}.", words.to_uppercase());
            faults_of("here", &prose(&sentence), &mut faults);
            assert!(!faults.is_empty(), "{words}");
            assert!(!contains(term.field, words), "{words} is the field's");
        }
    }
    let mut faults = Vec::new();
    faults_of(
        "here",
        &prose("`nobody_told` and `told`\n```sh\ntold\n```\n"),
        &mut faults,
    );
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn an_error_is_a_sentence_of_its_own() {
    let mut faults = Vec::new();
    let mut seen = 0;
    walk(&root().join("crates"), ".rs", &mut |path, text| {
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
