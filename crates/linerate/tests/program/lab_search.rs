//! A search over a link of known rate: does its answer hold the rate that the wire carries?

use std::collections::BTreeMap;

use crate::common::{Pair, alone, file, folder, json, linerate};

/// Payload of 1472 B in a frame of 1538 B on the wire.
const WIRE_SHARE: f64 = 1472.0 / 1538.0;

const SEARCH: &str = r#"
format = 1
name = "highest-rate"
title = "Highest rate"
question = "What is the highest rate of datagrams of which the path loses less than 0.1 %?"
workload = { kind = "stream", transport = "udp", message_bytes = 1472 }
timing = { settle = "0ms", warm_up = "100ms", measure = "400ms", drain = "20ms" }

[factors]
rate = ["20M", "160M"]

[design]
kind = "bisection"
replicates = 3
condition = "loss < 0.1%"
resolution = "20%"
"#;

/// Returns the levels of the search in `bundle` with what was known of each last, and the answer.
fn known_of(bundle: &str) -> (BTreeMap<u64, String>, String) {
    let told = linerate(&["report", bundle, "--format", "json"])
        .run()
        .done();
    let told = json(&told.out);
    let chapter = &told["chapters"][0];
    let path = &chapter["tables"][0];
    let mut known = BTreeMap::new();
    for row in path["rows"].as_array().expect("the path") {
        let text = |at: usize| row[at]["text"].as_str().expect("words");
        // Thousands stand apart: 46 340 B.
        let is_number = |word: &&str| word.parse::<f64>().is_ok();
        let mut words = text(0).split_whitespace().peekable();
        let digits: String = std::iter::from_fn(|| words.next_if(is_number)).collect();
        let number: f64 = digits.parse().expect("a number");
        let unit = match words.next().expect("a unit") {
            "B" => 1.0,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            "Mbit/s" => 1e6,
            other => panic!("{other}"),
        };
        known.insert((number * unit) as u64, text(3).to_owned());
    }
    (known, chapter["answer"].to_string())
}

#[test]
fn the_smallest_buffer_that_is_not_worse_than_auto_fills_the_path() {
    let _alone = alone();
    let Some(pair) = Pair::up(&["--rate", "50mbit", "--delay", "2ms"]) else {
        return;
    };
    let folder = folder();
    let bundle = folder.path().join("search.bundle").display().to_string();
    let condition = "throughput > 80% of auto";
    let words = [
        "run",
        &pair.server,
        "-w",
        "16K,256K",
        "--search",
        condition,
        "--resolution",
        "100%",
        "-t",
        "0.2",
        "-O",
        "0.2",
        // On a machine that others load the answer may come no sooner.
        "--budget",
        "60s",
        "--out",
        &bundle,
    ];
    let said = pair.lab.exec_first("client1", &words).run();
    let (known, answer) = known_of(&bundle);
    // 80 % of 47.8 Mbit/s over 8 ms, 2 ms for each link and way, are in flight.
    let needed = (0.8 * 47.8e6 / 8.0 * 0.008) as u64;
    let held = known.iter().filter(|(_, verdict)| **verdict == "holds");
    let failed = known
        .iter()
        .filter(|(_, verdict)| **verdict == "does not hold");
    // A buffer has a part for data and a part for what the kernel keeps of it: at most half and half.
    assert!(
        held.clone().all(|(size, _)| *size > needed / 2),
        "{known:?} {}",
        said.out
    );
    assert!(
        failed.clone().all(|(size, _)| *size < 4 * needed),
        "{known:?} {}",
        said.out
    );
    assert!(!known.is_empty(), "{} {}", said.out, said.err);
    assert!(answer.contains(condition), "{answer}");
}

#[test]
fn a_search_is_of_two_levels_of_one_flag_and_a_condition() {
    for (words, expected) in [
        (&["--search", "throughput > 1G"][..], "two levels"),
        (
            &["-w", "8K,64K,1M", "--search", "throughput > 1G"],
            "two levels",
        ),
        (
            &["-w", "8K,1M", "--search", "throughput > 95% of fast"],
            "fast",
        ),
        (&["-w", "8K,1M", "--search", "p99 < 1ms"], "p99"),
        (
            &[
                "-w",
                "8K,1M",
                "--search",
                "throughput > 1G",
                "--resolution",
                "x",
            ],
            "--resolution",
        ),
        (
            &["-w", "8K,1M", "--search", "throughput > 1G", "--runs", "2"],
            "--runs",
        ),
        (
            &["-w", "8K,1M", "--search", "throughput > 1G", "-J"],
            "--json",
        ),
        (&["-w", "8K", "--resolution", "1%"], "--search"),
    ] {
        let words: Vec<&str> = ["run", "127.0.0.1"].iter().chain(words).copied().collect();
        let said = linerate(&words).run();
        assert_eq!(said.code, 2, "{words:?} {}", said.err);
        assert!(said.err.contains(expected), "{words:?} {}", said.err);
    }
}

#[test]
fn the_highest_rate_is_that_of_the_wire() {
    let _alone = alone();
    let Some(pair) = Pair::up(&["--rate", "50mbit"]) else {
        return;
    };
    let folder = folder();
    let search = file(&folder, "search.toml", SEARCH);
    let bundle = folder.path().join("search.bundle");
    let bundle = bundle.display().to_string();
    let words = [
        "run",
        &pair.server,
        "--experiment",
        &search,
        "--out",
        &bundle,
    ];
    let said = pair.lab.exec_first("client1", &words).run();
    let text = std::fs::read_to_string(folder.path().join("search.bundle/run.json"));
    let run = json(&text.unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err)));

    // Every plan has its parent before it, and trials that were numbered after all of that.
    let stages = run["plan"]["stages"].as_array().expect("it searched");
    let first = |stage: &serde_json::Value| stage["trials"][0].as_u64();
    assert!(
        stages.windows(2).all(|two| first(&two[0]) < first(&two[1])),
        "{stages:?}"
    );
    let (known, _) = known_of(&bundle);
    let truth = (50e6 * WIRE_SHARE) as u64;
    let held = known.iter().filter(|(_, verdict)| **verdict == "holds");
    let beyond = ["does not hold", "load not reached"];
    let failed = known
        .iter()
        .filter(|(_, verdict)| beyond.contains(&verdict.as_str()));
    // A machine that others load may leave levels open; what is said of others is true.
    assert!(held.clone().all(|(rate, _)| *rate <= truth), "{known:?}");
    if known.values().all(|verdict| *verdict != "not decided") {
        assert!(failed.clone().all(|(rate, _)| *rate >= truth), "{known:?}");
    }
}
