//! Paths of a known truth, and what `linerate run --prove` changes there: does it prove the limiter, and refute nothing true?

use serde_json::Value;

use crate::common::{Pair, json, loading, too_busy};

/// Factors whose levels a bundle and a document name.
const BUFFER: &str = "socket_buffer";
const FLOWS: &str = "connections";

/// Returns the change of `factor` in a document, if it was made.
fn change<'d>(document: &'d Value, factor: &str) -> Option<&'d Value> {
    let mut proofs = document["proofs"].as_array()?.iter();
    proofs.find(|proof| proof["factor"] == factor)
}

fn measure(pair: &Pair, flags: &str) -> Value {
    json(&pair.run(flags).run().out)
}

/// Whether the change was measured to an end: a machine that has no time for windows this short says so.
fn is_decided(proof: &Value) -> bool {
    proof["observed"] != "open"
}

#[test]
fn a_small_buffer_on_a_long_path_is_proven_to_be_the_limit() {
    let _load = loading();
    // 64 KiB in 20 ms are 26 Mbit/s, of 100.
    let Some(pair) = Pair::up(&["--rate", "100mbit", "--delay", "5ms"]) else {
        return;
    };
    let bundle = tempfile::tempdir().expect("a directory");
    let path = bundle.path().join("bundle");
    let flags = format!("-t 2 -w 32K -C cubic --prove=30 -o {}", path.display());
    let document = measure(&pair, &flags);
    let limiter = document["summary"]["limiter"].as_str().unwrap_or_default();
    let Some(proof) = change(&document, BUFFER) else {
        assert!(!matches!(limiter, "receiver_window" | "send_buffer"));
        return too_busy("the machine is too busy for the window to be what holds");
    };
    if !is_decided(proof) {
        return too_busy("the machine is too busy for short windows");
    }
    assert_eq!(proof["observed"], "grew", "{proof}");
    let predicted = proof["predicted"].as_array().expect("it was predicted");
    // Of programs that had the CPUs meanwhile nobody can say.
    let grows = |one: &&Value| one["effect"] == "grows" || one["effect"] == "may_grow";
    for one in predicted {
        let is_window = one["limiter"] == "receiver_window" || one["limiter"] == "send_buffer";
        assert_eq!(is_window, grows(&one), "{one}");
    }
    let refuted = proof["refuted"].as_array().expect("a list");
    for window in ["receiver_window", "send_buffer"] {
        assert!(!refuted.iter().any(|one| one == window), "{proof}");
    }
    // Two windows that were both left are not told apart by a change of both.
    match predicted.iter().filter(grows).count() {
        1 => assert_eq!(proof["verdict"], "proven", "{proof}"),
        _ => assert_eq!(proof["verdict"], "not_decided", "{proof}"),
    }

    // The measurement is what it would have been alone, and its bundle shows the same.
    assert_eq!(document["trials"].as_array().map(Vec::len), Some(1));
    let stored = linerate_store::read(&path).expect("a bundle");
    let plan = &stored.document.plan;
    let of_change = plan.experiments.iter().find(|one| one.is_proof());
    let of_change = of_change.expect("the bundle has the change");
    let trials = stored.trials.iter().filter_map(|it| plan.trial(it.trial));
    let own = trials.filter(|trial| trial.experiment == of_change.name);
    assert!(own.count() >= 4);
    let reduced = linerate_analyze::groups::Reduced::of(&stored);
    let shown = serde_json::to_value(reduced.proofs().all).expect("plain data");
    assert_eq!(shown, document["proofs"]);
}

#[test]
fn a_shaped_path_is_not_refuted() {
    let _load = loading();
    let Some(pair) = Pair::up(&["--rate", "20mbit", "--delay", "1ms"]) else {
        return;
    };
    let document = measure(&pair, "-t 2 -C cubic --prove");
    let limiter = document["summary"]["limiter"].as_str().unwrap_or_default();
    if !matches!(limiter, "link_rate" | "path_rate") {
        return too_busy("the machine is too busy to drive the link");
    }
    let proof = change(&document, FLOWS).expect("more flows raise most other limits");
    assert_ne!(proof["observed"], "grew", "{proof}");
    for proof in document["proofs"].as_array().into_iter().flatten() {
        let refuted = proof["refuted"].as_array().expect("a list");
        for path in ["link_rate", "path_rate"] {
            assert!(!refuted.iter().any(|one| one == path), "{proof}");
        }
    }
}

#[test]
fn a_host_that_is_explained_is_measured_as_a_run_that_proves() {
    let _load = loading();
    let Some(pair) = Pair::up(&["--rate", "20mbit", "--delay", "1ms"]) else {
        return;
    };
    let explain = |flags: &[&str]| {
        let words = ["explain", &pair.server, "--for", "1s", "--prove", "8"];
        let call = pair.lab.exec_first("client1", &words);
        call.words(flags).run()
    };
    let bundle = tempfile::tempdir().expect("a directory");
    let path = bundle.path().join("bundle");
    let said = explain(&["-o", &path.display().to_string()]);
    let stored = linerate_store::read(&path).expect("a bundle");
    let plan = &stored.document.plan;
    let workload = &plan.trials[0].workload;
    assert!(workload.traffic.is_stream() && workload.connections == 1);
    let words: Vec<&str> = said.out.split_whitespace().collect();
    let words = words.join(" ");
    let reduced = linerate_analyze::groups::Reduced::of(&stored);
    for proof in reduced.proofs().all {
        assert!(words.contains(&proof.outcome()), "{said:?}");
    }
    let analysis = linerate_analyze::analyze_reduced(&reduced, false);
    assert!(words.contains(&analysis.answer.verdict), "{said:?}");

    let said = explain(&["-J"]);
    let document = json(&said.out);
    assert_eq!(document["schema"], "linerate.run");
    assert_eq!(document["trials"].as_array().map(Vec::len), Some(1));
    // Where others have the CPUs nothing is changed.
    for proof in document["proofs"].as_array().into_iter().flatten() {
        assert!(proof["verdict"].is_string(), "{proof}");
    }
}
