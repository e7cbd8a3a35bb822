//! `linerate trace -i`: a capture of this host, explained when it ends.

mod common;

use common::{Server, folder, json, linerate, skip};
use nix::sys::signal::Signal;

/// Returns whether this process may capture.
fn may_capture() -> bool {
    let may = common::is_root();
    if !may {
        skip("capturing needs root");
    }
    may
}

#[test]
fn a_capture_explains_what_passed_and_leaves_a_file_without_names() {
    if !may_capture() {
        return;
    }
    let server = Server::start(&[]);
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (kept, hidden) = (path("kept.pcapng"), path("hidden.pcapng"));
    let start = |file: &str, more: &[&str]| {
        let words = ["trace", "-i", "lo", "-J", "--snap", "90", "-w", file];
        let mut going = linerate(&words).words(more).start();
        going.wait_for("capturing on lo");
        going
    };
    let (open, anonymous) = (start(&kept, &[]), start(&hidden, &["--anonymous"]));
    let run = linerate(&["run", &server.host(), "-n", "20M", "-J"]).run();
    assert!(matches!(run.code, 0 | 3), "{run:?}");
    open.signal(Signal::SIGINT);
    anonymous.signal(Signal::SIGINT);
    let said = open.end();
    assert_eq!(said.code, 0, "{said:?}");
    let trace = json(&said.out);
    let port = server.address.port();
    let payload = |trace: &serde_json::Value| -> u64 {
        let connections = trace["connections"].as_array().expect("connections");
        let text = serde_json::to_string(connections).expect("it is JSON");
        assert!(!text.is_empty());
        trace["totals"]["payload_bytes"].as_u64().unwrap_or(0)
    };
    let connections = trace["connections"].as_array().expect("connections");
    let to_us = connections
        .iter()
        .filter(|one| one["server"]["port"] == port);
    assert!(to_us.count() > 0, "{}", said.out);
    assert!(payload(&trace) >= 20 << 20, "{}", trace["totals"]);
    assert_eq!(anonymous.end().code, 0);
    // The files give the same connections again; the other one without addresses.
    let again = linerate(&["trace", "-J", &kept]).run();
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(
        json(&again.out)["totals"]["payload_bytes"],
        trace["totals"]["payload_bytes"]
    );
    let nobody = linerate(&["trace", "-J", &hidden]).run();
    assert_eq!(nobody.code, 0, "{nobody:?}");
    assert!(!nobody.out.contains("127.0.0.1"), "{}", nobody.out);
    assert!(nobody.out.contains("10.0.0.1"), "{}", nobody.out);
}

#[test]
fn what_cannot_be_captured_is_said() {
    linerate(&["trace"]).run().failed(2, &["FILE"]);
    linerate(&["trace", "-i", "lo", "--anonymous"])
        .run()
        .failed(2, &["--write"]);
    linerate(&["trace", "-i", "nosuch0", "-t", "1s"])
        .run()
        .failed(1, &["no device `nosuch0`", "next:"]);
}
