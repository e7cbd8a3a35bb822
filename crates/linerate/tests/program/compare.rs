//! Runs and levels side by side: what is decided, what is not comparable, and which exit code says so.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Server, alone, file, fits_its_schema, folder, json as read, linerate};

/// A document of `linerate run -J` with these throughputs in Mbit/s, and with what else `change` makes of it.
fn document(folder: &TempDir, name: &str, mbits: &[f64], change: impl Fn(&mut Value)) -> String {
    let trial =
        |mbit: &f64| json!({ "valid": true, "responses": { "throughput_bps": 1e6 * mbit } });
    let trials: Vec<Value> = mbits.iter().map(trial).collect();
    let mut document = json!({
        "schema": "linerate.run",
        "schema_version": 2,
        "linerate_version": "0.1.0",
        "run": name,
        "started_utc": "2026-11-29T00:00:00Z",
        "workload": {
            "traffic": { "kind": "stream", "direction": "to-server", "message_bytes": 131072 },
            "connections": 1,
            "clients": 1,
        },
        "trust": { "level": "good", "reasons": [] },
        "trials": trials,
    });
    change(&mut document);
    file(folder, name, &document.to_string())
}

const FAST: [f64; 6] = [940.0, 941.0, 940.5, 941.2, 939.8, 940.9];
const SLOW: [f64; 6] = [700.0, 702.0, 699.0, 701.0, 700.5, 699.5];

fn compared(words: &[&str], code: i32) -> Value {
    let said = linerate(&["compare", "-J"]).words(words).run();
    assert_eq!(said.code, code, "{said:?}");
    read(&said.out)
}

#[test]
fn a_regression_has_an_exit_code_and_a_gain_has_none() {
    let folder = folder();
    let fast = document(&folder, "fast.json", &FAST, |_| {});
    let slow = document(&folder, "slow.json", &SLOW, |_| {});
    let again = document(
        &folder,
        "again.json",
        &[940.2, 941.1, 940.0, 940.9, 940.3, 941.0],
        |_| {},
    );

    let junit = folder.path().join("gate.xml").display().to_string();
    let worse = compared(&[&fast, &slow, "--junit", &junit], 4);
    let pair = &worse["pairs"][0];
    assert_eq!(
        (&pair["verdict"], &pair["is_regression"]),
        (&json!("differs"), &json!(true))
    );
    let ratio = pair["ratio"]["value"].as_f64().expect("a ratio");
    assert!((ratio - 700.33 / 940.57).abs() < 1e-3, "{ratio}");
    assert_eq!(worse["regressions"], 1);
    let xml = std::fs::read_to_string(junit).expect("a report");
    assert!(
        xml.contains("failures=\"1\"") && xml.contains("<failure"),
        "{xml}"
    );

    let better = compared(&[&slow, &fast], 0);
    assert_eq!(better["pairs"][0]["is_gain"], true);
    // What may be so much worse is none.
    compared(&[&fast, &slow, "--threshold", "40%"], 0);
    let same = compared(&[&fast, &again], 0);
    assert_eq!(same["pairs"][0]["verdict"], "same");
    let margin = compared(&[&fast, &again, "--same-rate", "0.01%"], 0);
    assert_eq!(margin["pairs"][0]["verdict"], "not_decided");

    let table = linerate(&["compare", "--markdown", &fast, &slow])
        .run()
        .failed(4, &[]);
    assert!(table.out.contains("| What |"), "{table:?}");
}

#[test]
fn what_was_not_asked_for_the_same_is_not_compared() {
    let folder = folder();
    let base = document(&folder, "base.json", &FAST, |_| {});
    let of = |name: &str, change: &dyn Fn(&mut Value)| document(&folder, name, &FAST, change);
    let not_comparable = |other: &str, why: &str| {
        let said = compared(&[&base, other], 1);
        assert_eq!(said["pairs"], json!([]));
        let told = said["not_comparable"][0]["why"].as_str().expect("a reason");
        assert!(told.contains(why), "{told}");
    };
    not_comparable(
        &of("four.json", &|it| it["workload"]["connections"] = json!(4)),
        "connections 1 and 4",
    );
    let back = |it: &mut Value| it["workload"]["traffic"]["direction"] = json!("from-server");
    not_comparable(&of("back.json", &back), "direction");
    let invalid = |it: &mut Value| {
        for trial in it["trials"].as_array_mut().expect("trials") {
            *trial = json!({ "valid": false, "invalid": "the host was lost", "responses": {} });
        }
    };
    not_comparable(&of("invalid.json", &invalid), "the host was lost");

    // How it was made is the question.
    let buffered = |it: &mut Value| it["workload"]["options"] = json!({ "socket_buffer": 16384 });
    let changed = compared(&[&base, &of("buffered.json", &buffered)], 0);
    assert_eq!(changed["pairs"].as_array().map(Vec::len), Some(1));
    assert_eq!(changed["changed"][0]["what"], "socket buffer");
}

#[test]
fn of_too_few_trials_and_of_what_is_not_to_be_used_nothing_is_decided() {
    let folder = folder();
    let base = document(&folder, "base.json", &FAST, |_| {});
    let one = document(&folder, "one.json", &[700.0], |_| {});
    let few = compared(&[&base, &one], 0);
    assert_eq!(few["pairs"][0]["verdict"], "not_decided");
    assert_eq!(few["pairs"][0]["ratio"]["low"], Value::Null);
    let spoilt = document(&folder, "spoilt.json", &SLOW, |it| {
        it["trust"] = json!({ "level": "do_not_use", "reasons": ["other programs had the CPUs"] });
    });
    let unusable = compared(&[&base, &spoilt], 3);
    assert_eq!(unusable["pairs"][0]["verdict"], "not_decided");
    assert_eq!(unusable["regressions"], 0);
}

#[test]
fn what_is_no_run_is_refused_with_its_name() {
    let folder = folder();
    let base = document(&folder, "base.json", &FAST, |_| {});
    let other = file(&folder, "other.json", "{}");
    linerate(&["compare", &base, &other])
        .run()
        .failed(1, &["other.json"]);
    linerate(&["compare", &base, "/nonexistent"])
        .run()
        .failed(1, &["/nonexistent"]);
    linerate(&["compare", &base]).run().failed(2, &["RUN"]);
    let later = document(&folder, "later.json", &FAST, |it| {
        it["schema_version"] = json!(99)
    });
    linerate(&["compare", &base, &later])
        .run()
        .failed(1, &["schema_version is 99"]);
}

#[test]
fn conditions_and_levels_that_cannot_be_are_refused_before_anything_is_measured() {
    let refused = |words: &str, said: &[&str]| {
        let words: Vec<&str> = words.split('|').collect();
        linerate(&words).run().failed(2, said);
    };
    refused("run|127.0.0.1:1|--fail-if|speed < 1G", &["speed"]);
    refused("run|127.0.0.1:1|--fail-if|throughput < fast", &["fast"]);
    refused("study|127.0.0.1:1|--fail-if|throughput", &["--fail-if"]);
    refused("run|127.0.0.1:1|--fail-if|throughput < 900", &["900M"]);
    refused("run|127.0.0.1:1|--fail-if|x.p99 > 1ms", &["`x`", "stream"]);
    refused(
        "study|127.0.0.1:1|--fail-if|x.p99 > 1ms",
        &["`x`", "stream"],
    );
    refused("run|127.0.0.1:1|--threshold|5%", &["--baseline"]);
    refused("run|127.0.0.1:1|-C|cubic,cubic", &["twice"]);
    refused("run|127.0.0.1:1|-w|16K,much", &["much"]);
    refused("run|127.0.0.1:1|-P|1,100000", &["--parallel", "100000"]);
    refused("run|127.0.0.1:1|-w|16K,64K|--csv", &["--csv"]);
    refused(
        "run|127.0.0.1:1|-w|16K,64K|--precision|2%",
        &["--precision"],
    );
    refused("schema|linerate.nothing", &["linerate.nothing"]);
}

#[test]
fn levels_take_turns_and_the_sides_are_theirs() {
    let _alone = alone();
    let (server, folder) = (Server::start(&[]), folder());
    let out = folder.path().join("out").display().to_string();
    let words = [
        "run",
        &server.host(),
        "-w",
        "auto,16K",
        "-t",
        "0.1",
        "-J",
        "--out",
        &out,
    ];
    let said = linerate(&words).run();
    assert!(said.is_measured(), "{said:?}");
    let document = read(&said.out);
    assert_eq!(document["schema"], "linerate.compare");
    assert_eq!(document["interleaved"], true);
    assert_eq!(document["sides"].as_array().map(Vec::len), Some(2));
    let again = linerate(&["report", &out, "--replay=json"]).run().done();
    assert_eq!(read(&again.out), document);
    let text = linerate(&["report", &out, "--replay"]).run().done();
    assert!(text.out.contains("16 KiB buffers"), "{}", text.out);
    let run = std::fs::read_to_string(format!("{out}/run.json")).expect("a document");
    let trials = &read(&run)["plan"]["trials"];
    let trials = trials.as_array().expect("trials");
    // The least p-value of N pairs is 2/2ᴺ: 6 blocks are the fewest that may tell two levels apart at 5 %.
    assert!(trials.len() >= 12, "{}", trials.len());
    for block in trials[..12].chunks(2) {
        assert_eq!(block[0]["replicate"], block[1]["replicate"]);
        assert_ne!(block[0]["cell"], block[1]["cell"]);
    }
}

#[test]
fn a_limit_and_a_baseline_decide_the_exit_code_of_a_run() {
    let _alone = alone();
    let (server, folder) = (Server::start(&[]), folder());
    // Nothing is as fast as this, nor as slow.
    let fast = document(&folder, "fast.json", &FAST.map(|mbit| 1e6 * mbit), |_| {});
    let run = |more: &[&str]| {
        let words = ["run", &server.host(), "-t", "0.1", "--runs", "3", "-J"];
        linerate(&words).words(more).run()
    };
    let met = run(&["--fail-if", "throughput > 1K"]);
    let document = read(&met.out);
    if document["trust"]["level"] == "do_not_use" {
        return crate::common::too_busy("others had the CPUs");
    }
    assert_eq!(met.code, 4, "{met:?}");
    assert_eq!(document["conditions"][0]["outcome"], "met");
    let not_met = run(&["--fail-if", "throughput < 1K"]);
    assert_eq!(read(&not_met.out)["conditions"][0]["outcome"], "not_met");
    assert_ne!(not_met.code, 4);
    let unread = run(&["--fail-if", "loss > 1%"]);
    assert_eq!(
        (unread.code, &read(&unread.out)["conditions"][0]["outcome"]),
        (3, &json!("not_decided"))
    );
    let worse = run(&["--baseline", &fast]);
    let document = read(&worse.out);
    assert_eq!(document["comparison"]["schema"], "linerate.compare");
    if document["comparison"]["not_comparable"] == json!([])
        && document["trust"]["level"] != "do_not_use"
    {
        assert_eq!(worse.code, 4, "{worse:?}");
    }
}

#[test]
fn documents_are_as_their_schema_says() {
    let listed = linerate(&["schema"]).run().done();
    for line in listed.out.lines() {
        let name = line.split_whitespace().next().expect("a name");
        let schema = read(&linerate(&["schema", name]).run().done().out);
        // Lines may be of several kinds.
        let one = [schema.clone()];
        let kinds = schema["oneOf"].as_array().map_or(&one[..], Vec::as_slice);
        assert!(!kinds.is_empty(), "{name}");
        for kind in kinds {
            assert_eq!(kind["type"], "object", "{name}: {kind}");
        }
    }
    // What is required of a comparison is what one has.
    let folder = folder();
    let base = document(&folder, "base.json", &FAST, |_| {});
    let said = compared(&[&base, &base], 0);
    fits_its_schema("compare", &said);
}
