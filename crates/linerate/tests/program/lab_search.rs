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
rate = ["5M", "500M"]

[design]
kind = "bisection"
replicates = 3
condition = "loss < 0.1%"
resolution = "5%"
"#;

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
    // Each level as it was known last.
    let told = linerate(&["report", &bundle, "--format", "json"])
        .run()
        .done();
    let told = json(&told.out);
    let path = &told["chapters"][0]["tables"][0];
    let mut known: BTreeMap<u64, &str> = BTreeMap::new();
    for row in path["rows"].as_array().expect("the path") {
        let text = |at: usize| row[at]["text"].as_str().expect("words");
        let mbits = text(0).split_whitespace().next().map(str::parse::<f64>);
        let mbits = mbits.and_then(Result::ok).expect("a rate");
        known.insert((mbits * 1e6) as u64, text(3));
    }
    let truth = (50e6 * WIRE_SHARE) as u64;
    let held = known.iter().filter(|(_, verdict)| **verdict == "holds");
    let beyond = ["does not hold", "load not reached"];
    let failed = known.iter().filter(|(_, verdict)| beyond.contains(verdict));
    // A machine that others load may leave levels open; what is said of others is true.
    assert!(held.clone().all(|(rate, _)| *rate <= truth), "{known:?}");
    if known.values().all(|verdict| *verdict != "not decided") {
        assert!(failed.clone().all(|(rate, _)| *rate >= truth), "{known:?}");
    }
}
