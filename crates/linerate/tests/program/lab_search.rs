//! A search over a link of known rate: does its answer hold the rate that the wire carries?

use crate::common::{Pair, file, folder, json};

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
    let bits = |stage: &serde_json::Value| stage["cell"]["rate"]["rate"].as_u64().expect("a rate");
    let levels: Vec<u64> = stages.iter().map(bits).collect();

    // The last level of the path is the one at which it holds, confirmed.
    let truth = 50e6 * WIRE_SHARE;
    if said.out.contains("loss < 0.1% holds at") {
        let holds = *levels.last().expect("it is confirmed") as f64;
        // A queue may hold a surplus within the resolution.
        assert!(holds < truth * 1.05, "{levels:?}: {}", said.out);
        let above = levels
            .iter()
            .map(|level| *level as f64)
            .filter(|level| *level > holds);
        let fails = above.fold(500e6, f64::min);
        assert!(truth <= fails, "{levels:?}: {}", said.out);
    } else {
        // A machine that others load may leave it open, and then says so.
        assert!(said.out.contains("Not decided"), "{}{}", said.out, said.err);
    }
}
