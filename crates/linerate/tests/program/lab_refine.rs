//! A refinement over a link of known rate and delay: are levels added where the throughput changes, and does the knee hold
//! the window that the path needs?

use crate::common::{Pair, alone, file, folder, json, linerate};

const REFINEMENT: &str = r#"
format = 1
name = "buffer-knee"
title = "Buffer"
question = "From which socket buffer on does the throughput stop to grow?"
workload = { kind = "stream", direction = "to-server" }
timing = { settle = "0ms", warm_up = "200ms", measure = "300ms", drain = "20ms" }

[factors]
socket_buffer = ["8KiB", "200KiB"]

[design]
kind = "refinement"
replicates = 3
levels = 4
resolution = "10%"
"#;

#[test]
fn levels_are_added_where_the_throughput_changes() {
    let _alone = alone();
    let Some(pair) = Pair::up(&["--rate", "50mbit", "--delay", "10ms"]) else {
        return;
    };
    let folder = folder();
    let refinement = file(&folder, "refinement.toml", REFINEMENT);
    let bundle = folder.path().join("refinement.bundle");
    let bundle = bundle.display().to_string();
    let words = [
        "run",
        &pair.server,
        "--experiment",
        &refinement,
        "--out",
        &bundle,
    ];
    let said = pair.lab.exec_first("client1", &words).run();
    let text = std::fs::read_to_string(folder.path().join("refinement.bundle/run.json"));
    let run = json(&text.unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err)));
    let stages = run["plan"]["stages"].as_array().expect("it was refined");
    assert_eq!(stages.len(), 2, "{stages:?}");
    let bytes = |stage: &serde_json::Value| stage["cell"]["socket_buffer"]["size"].as_u64();
    let added: Vec<u64> = stages.iter().filter_map(bytes).collect();
    // Whatever noise there is, the first is the geometric middle of the two that the file has.
    assert_eq!(added.first(), Some(&40_960), "{added:?}");
    let told = linerate(&["report", &bundle, "--format", "json"])
        .run()
        .done();
    let told = json(&told.out);
    let curve = told["chapters"][0]["tables"][0]["rows"].as_array();
    let curve = curve.expect("the curve");
    assert_eq!(curve.len(), 4);
    let path = told["chapters"][0]["tables"][1]["rows"].as_array();
    assert_eq!(path.expect("the path").len(), 2);
    // At most twice the buffer, which is what the kernel makes of it, each round trip, and at most the link's rate.
    let rate = |row: &serde_json::Value| row[2]["estimate"]["value"].as_f64();
    if let (Some(least), Some(most)) = (rate(&curve[0]), rate(&curve[3])) {
        assert!(least < 2.0 * 8.0 * 8192.0 / 0.02, "{least}");
        assert!(most > 3.0 * least && most < 50e6, "{least} {most}");
    }
}
