//! What people read of `linerate run`: 80 columns, the answer first, nothing twice, in every form.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Said, Server, fits_its_schema, free_port, json, linerate};

/// Columns of a terminal that nobody has widened.
const COLUMNS: usize = 80;
/// Columns of a label.
const LABEL: usize = 16;
/// What is shorter may well stand twice: a number, a name.
const SENTENCE: usize = 20;

/// Returns the words behind each label of the final block, wrapped lines joined.
fn labelled(out: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let is_answer = |line: &&str| {
        let first = [
            "received",
            "completed",
            "held",
            "INVALID",
            "mean",
            "limited by",
        ];
        first.iter().any(|label| line.starts_with(label))
    };
    let answer = out.lines().skip_while(|line| !is_answer(line));
    for line in answer.filter(|line| !line.is_empty()) {
        let head: String = line.chars().take(LABEL).collect();
        let words: String = line.chars().skip(LABEL).collect();
        match (head.trim(), all.last_mut()) {
            ("", Some((_, last))) if !words.starts_with("- ") => *last += &format!(" {words}"),
            (label, _) => all.push((label.to_owned(), words)),
        }
    }
    all
}

/// Of the schema, since what a run finds decides which keys its document has.
#[test]
fn the_guide_lists_every_key_of_a_result() {
    let said = linerate(&["schema", "linerate.run"]).run();
    let schema = crate::common::json(&said.out);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/json.md");
    let guide = std::fs::read_to_string(root).expect("the guide");
    let keys = schema["properties"].as_object().expect("an object").keys();
    for key in keys {
        let is_told = [format!("`{key}`"), format!("`{key}[]`")];
        let rows = guide.lines().filter(|line| line.starts_with('|'));
        let mut names = rows.filter_map(|row| row.split('|').nth(1));
        assert!(
            names.any(|names| is_told.iter().any(|name| names.contains(name))),
            "{key} is not in the guide"
        );
    }
}

/// Asserts that no line is too long and that nothing is said twice.
#[track_caller]
fn is_readable(flags: &str, said: &Said) {
    let lines = said.out.lines().chain(said.err_lines.lines());
    for line in lines {
        let length = line.chars().count();
        assert!(length <= COLUMNS, "{flags}: {length} columns: {line}");
    }
    let mut sentences = BTreeSet::new();
    // What follows for those who ask lists settings, of which several may have one value.
    let answer = labelled(&said.out).into_iter();
    for (_, words) in answer.take_while(|(label, _)| label != "window") {
        let words = words.trim_start_matches("- ").to_lowercase();
        for sentence in words.split(". ") {
            let sentence = sentence.trim_end_matches('.').trim().to_owned();
            let is_new = sentence.len() < SENTENCE || sentences.insert(sentence.clone());
            assert!(is_new, "{flags}: twice `{sentence}` in\n{}", said.out);
        }
    }
}

#[test]
fn every_form_fits_80_columns_and_says_nothing_twice() {
    let server = Server::start(&[]);
    let host = server.host();
    for flags in [
        "",
        "-R",
        "--bidir",
        "-P 3",
        "-P 8",
        "-P 8 --all-flows",
        "-P 64",
        "-u",
        "-u -b 50M -R",
        "--rr",
        "--rr --rate 500 -P 4",
        "--crr",
        "--idle -P 2",
        "-n 1M",
        "-w 64K -v",
        "--bidir -v",
        "--runs 3",
        "--runs 2 -i 0.2 -v",
        "--rr --runs 2",
        "-u --runs 2",
        "-J --nosuch",
        "--logfile x",
        "-l 0",
        "-w 1G",
        "-C nosuch",
    ] {
        let said = linerate(&["run", &host, "-t", "0.4s"])
            .words(&flags.split_whitespace().collect::<Vec<_>>())
            .run();
        if !flags.contains("-J") {
            is_readable(flags, &said);
        }
        if matches!(said.code, 0 | 3) {
            let labels = labelled(&said.out);
            let at = |label: &str| labels.iter().position(|(known, _)| known == label);
            let is_invalid = said.out.contains("INVALID");
            let limiter = at("limited by");
            // Connections that carry nothing are limited by nothing.
            let may_lack = is_invalid || flags.contains("--idle");
            assert!(limiter.is_some() || may_lack, "{flags}: {}", said.out);
            assert!(at("trust") > limiter, "{flags}: {}", said.out);
            assert!(at("window").is_none_or(|window| Some(window) > limiter));
            assert_eq!(at("window").is_some(), flags.contains("-v"), "{flags}");
        }
    }
    let closed = format!("127.0.0.1:{}", free_port());
    is_readable("closed", &linerate(&["run", &closed]).run());
    is_readable("study", &linerate(&["study"]).run());
}

/// Of few flows each has its lines, of many the sum alone, and the table says so.
#[test]
fn who_sees_flows_and_who_their_sum() {
    let server = Server::start(&[]);
    let host = server.host();
    let check = |flags: &str, flows: bool, hint: bool| {
        let said = linerate(&["run", &host, "-t", "0.4", "-i", "0.4", "-b", "10M"])
            .words(&flags.split_whitespace().collect::<Vec<_>>())
            .run();
        let has = |name: &str| said.out.lines().any(|line| line.starts_with(name));
        assert_eq!(has("    1  "), flows, "{flags}: {}", said.out);
        assert!(has("  sum  "), "{flags}: {}", said.out);
        let is_told = said.shows("--all-flows shows each");
        assert_eq!(is_told, hint, "{flags}: {}", said.out);
    };
    check("-P 4", true, false);
    check("-P 4 --sum-only", false, true);
    check("-P 5", false, true);
    check("-P 5 --all-flows", true, false);
}

/// Loss and jitter of datagrams stand in every interval, in all forms that have words for them.
#[test]
fn intervals_of_datagrams_have_loss_and_jitter() {
    let server = Server::start(&[]);
    let host = server.host();
    let run = |flags: &str| {
        linerate(&["run", &host, "-u", "-b", "10M", "-t", "0.6", "-i", "0.3"])
            .words(&flags.split_whitespace().collect::<Vec<_>>())
            .run()
    };
    let text = run("").out;
    for head in ["lost", "of sent", "jitter"] {
        assert!(text.contains(head), "no {head}: {text}");
    }
    let document = crate::common::json(&run("-J").out);
    // Where the CPUs are others' the first interval may have none.
    let intervals = document["trials"][0]["intervals"].as_array();
    let mut of_flow = intervals.expect("intervals").iter().map(|all| &all[0]);
    let interval = of_flow.find(|one| one["datagrams"].as_u64() > Some(10));
    let interval = interval.unwrap_or_else(|| panic!("{document}"));
    assert!(interval["datagrams"].as_u64() > Some(10), "{interval}");
    assert!(interval["lost"].is_u64(), "{interval}");
    assert!(interval["jitter_us"].as_f64() > Some(0.0), "{interval}");
    let document = crate::common::json(&run("-J --format iperf3 -R").out);
    let intervals = document["intervals"].as_array().expect("intervals");
    let mut jitters = intervals
        .iter()
        .map(|all| all["streams"][0]["jitter_ms"].as_f64());
    assert!(jitters.any(|jitter| jitter > Some(0.0)), "{document}");
}

/// Rows have the values of the document: intervals by flow with their sum, then the result.
#[test]
fn rows_of_values_are_intervals_and_then_results() {
    let server = Server::start(&[]);
    let host = server.host();
    let run = |flags: &str| {
        let said = linerate(&["run", &host, "--csv", "-b", "10M"])
            .words(&flags.split_whitespace().collect::<Vec<_>>())
            .run();
        assert!(said.is_measured(), "{said:?}");
        let mut lines = said
            .out
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().expect("names");
        let rows: Vec<BTreeMap<String, String>> = lines
            .map(|cells| {
                assert_eq!(cells.len(), names.len(), "{}", said.out);
                let pairs = names.iter().zip(cells);
                pairs
                    .map(|(name, cell)| ((*name).to_owned(), cell.to_owned()))
                    .collect()
            })
            .collect();
        rows
    };
    let number = |row: &BTreeMap<String, String>, name: &str| -> f64 {
        row[name]
            .parse()
            .unwrap_or_else(|_| panic!("{name}: {row:?}"))
    };
    let rows = run("-t 0.6 -i 0.3 -P 2");
    let (intervals, results) = rows.split_at(rows.len() - 1);
    let of = |flow: &str| intervals.iter().filter(|row| row["flow"] == flow).count();
    assert_eq!([of("0"), of("1"), of("")], [2, 2, 2], "{rows:?}");
    for row in intervals {
        assert_eq!(
            [&*row["row"], &*row["run"], &*row["direction"]],
            ["interval", "1", "to-server"]
        );
        assert!(number(row, "end_s") > number(row, "begin_s"), "{row:?}");
    }
    let sums = intervals.iter().filter(|row| row["flow"].is_empty());
    assert!(
        sums.map(|row| number(row, "bytes")).sum::<f64>() > 0.0,
        "{rows:?}"
    );
    let result = &results[0];
    assert_eq!(
        [&*result["row"], &*result["flow"]],
        ["result", ""],
        "{result:?}"
    );
    assert!(number(result, "bits_per_second") > 0.0, "{result:?}");
    // Without intervals, a row for each run.
    let rows = run("-t 0.2 -i 0 --runs 2");
    let runs: Vec<[&str; 2]> = rows
        .iter()
        .map(|row| [&*row["row"], &*row["run"]])
        .collect();
    assert_eq!(runs, [["result", "1"], ["result", "2"]]);
}

/// A document is one line of a file, so that runs one after the other make JSON lines.
#[test]
fn documents_are_lines_of_a_file() {
    let server = Server::start(&[]);
    let said = linerate(&["run", &server.host(), "-J", "-t", "0.2"]).run();
    assert!(said.is_measured(), "{said:?}");
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    let plan = linerate(&["plan", "latency", "-J"]).run().done();
    assert_eq!(plan.out.lines().count(), 1, "{}", plan.out);
    fits_its_schema("plan", &json(&plan.out));
}

/// What is asked for is shown without asking for all details.
#[test]
fn a_profile_is_shown_where_it_is_asked_for() {
    // Streams that fill CPUs, and after them a profile is given names before the server answers.
    let _alone = crate::common::machine::alone();
    let server = Server::start(&[]);
    let host = server.host();
    let answer = |flags: &[&str]| {
        let said = crate::common::measured(|_| linerate(&["run", &host, "-t", "1"]).words(flags))?;
        assert!(said.is_measured(), "{said:?}");
        Some(labelled(&said.out))
    };
    let is_profile = |(label, _): &(String, String)| label.ends_with(" did");
    let Some((plain, profiled)) = answer(&[]).zip(answer(&["--profile"])) else {
        return;
    };
    assert!(!plain.iter().any(is_profile), "{plain:?}");
    if profiled
        .iter()
        .any(|(_, words)| words.contains("no profile: "))
    {
        return crate::common::skip("this user may not profile");
    }
    assert!(profiled.iter().any(is_profile), "{profiled:?}");
}
