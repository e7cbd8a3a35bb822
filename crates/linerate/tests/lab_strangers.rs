//! Callers from another host: without the token they may measure within limits, and are told what
//! they may not. Two hosts of a lab are far enough from each other.

mod common;

use common::call::Going;
use common::{NamedLab, alone, file, folder, json};
use nix::sys::signal::Signal;
use serde_json::Value;

/// An agent on a lab's server.
struct Remote<'a> {
    lab: &'a NamedLab,
    going: Option<Going>,
    address: String,
}

impl<'a> Remote<'a> {
    fn start(lab: &'a NamedLab, words: &[&str]) -> Self {
        let mut going = lab.exec("server", &["serve"]).words(words).start();
        going.wait_for("serving on");
        Self {
            lab,
            going: Some(going),
            address: lab.address("server"),
        }
    }

    /// Runs a measurement from the client's host.
    fn run(&self, words: &[&str]) -> common::Said {
        self.lab
            .exec("client1", &["run", &self.address, "-t", "0.5"])
            .words(words)
            .run()
    }
}

impl Drop for Remote<'_> {
    fn drop(&mut self) {
        if let Some(going) = self.going.take() {
            going.signal(Signal::SIGTERM);
            going.end();
        }
    }
}

fn rate(document: &Value) -> f64 {
    let trial = &document["trials"][0];
    let rate = trial["responses"]["throughput_bps"].as_f64();
    rate.unwrap_or_else(|| panic!("no rate: {trial}"))
}

#[test]
fn strangers_measure_but_do_not_observe() {
    let _alone = alone();
    let Some(lab) = NamedLab::up(&["--rate", "100mbit"]) else {
        return;
    };
    let remote = Remote::start(&lab, &[]);
    let said = remote.run(&["-J"]);
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    let document = json(&said.out);
    assert_eq!(document["trials"][0]["valid"], true, "{document}");
    assert!(rate(&document) > 50e6, "{document}");
    let said = remote.run(&[]);
    assert!(said.err.contains("observation of host server"), "{said:?}");
    assert!(said.err.contains("started without a token"), "{said:?}");
}

/// Hosts of one kernel share its CPUs, whoever asks, and both ends of a flow are brought together.
#[test]
fn both_ends_of_a_flow_share_a_cpu_where_their_hosts_share_a_kernel() {
    let _alone = alone();
    let Some(lab) = NamedLab::up(&["--rate", "100mbit"]) else {
        return;
    };
    let remote = Remote::start(&lab, &[]);
    placed(
        &remote,
        &["--rr", "-P", "2"],
        "both ends of a flow on one CPU",
    );
    placed(
        &remote,
        &["-P", "2"],
        "whose frames this machine forwards too",
    );
}

/// A run with `traffic` says that its workers were placed as `expected`.
fn placed(remote: &Remote<'_>, traffic: &[&str], expected: &str) {
    let said = remote.run(&[&["-J"], traffic].concat());
    let flows = &json(&said.out)["trials"][0]["flows"];
    let flows = flows.as_array().expect("a list of flows");
    let settings = flows.iter().flat_map(|flow| flow["settings"].as_array());
    let placed: Vec<&Value> = settings
        .flatten()
        .filter(|setting| setting["name"] == "placement")
        .collect();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let expected = match cpus {
        1 => "there is one CPU for both ends",
        _ => expected,
    };
    assert!(!placed.is_empty(), "{said:?}");
    for setting in placed {
        let granted = setting["granted"].as_str().unwrap_or_default();
        assert!(granted.contains(expected), "{setting}");
    }
}

#[test]
fn the_token_opens_the_eyes_and_a_wrong_one_nothing() {
    let _alone = alone();
    let Some(lab) = NamedLab::up(&["--rate", "100mbit"]) else {
        return;
    };
    let folder = folder();
    let right = file(&folder, "right", "0123456789abcdef");
    let wrong = file(&folder, "wrong", "fedcba9876543210");
    let remote = Remote::start(&lab, &["--token-file", &right]);
    remote
        .run(&["--token-file", &wrong])
        .failed(1, &["the token is not this agent's", "--token-file"]);
    let said = remote.run(&[]);
    assert!(
        said.err.contains("needs the agent's token (--token-file)"),
        "{said:?}"
    );
    let said = remote.run(&["--token-file", &right]);
    assert!(!said.err.contains("observation"), "{said:?}");
}

#[test]
fn a_stranger_cannot_make_the_agent_connect_elsewhere() {
    let Some(lab) = NamedLab::up(&["--clients", "2"]) else {
        return;
    };
    let remote = Remote::start(&lab, &[]);
    let mut other = lab.exec("client2", &["serve"]).start();
    other.wait_for("serving on");
    let server = &remote.address;
    let client = lab.address("client2");
    lab.exec(
        "client1",
        &["run", server, "--client", &client, "-t", "0.5"],
    )
    .run()
    .failed(2, &["host client1", "only with the agent's token", "next:"]);
    other.signal(Signal::SIGTERM);
    other.end();
}

#[test]
fn limits_are_named() {
    let Some(lab) = NamedLab::up(&[]) else { return };
    let remote = Remote::start(&lab, &["--limit-flows", "4", "--limit-time", "3s"]);
    let next = "next:";
    remote.run(&["-P", "5"]).failed(
        2,
        &["5 flows, but this agent allows 4 without a token", next],
    );
    remote.run(&["-t", "20"]).failed(
        2,
        &[
            "a trial of 20.24 s, but this agent allows 3 s without a token",
            next,
        ],
    );
    let said = remote.run(&["-P", "4"]);
    assert!(matches!(said.code, 0 | 3), "{said:?}");
}

#[test]
fn the_rate_limit_holds_in_both_directions() {
    let _alone = alone();
    let Some(lab) = NamedLab::up(&["--rate", "1gbit"]) else {
        return;
    };
    let remote = Remote::start(&lab, &["--limit-rate", "50mbit"]);
    for flags in [&[][..], &["-R"], &["-P", "4"], &["--bidir"]] {
        let said = remote.run(&[flags, &["-J", "-t", "2"]].concat());
        assert!(matches!(said.code, 0 | 3), "{said:?}");
        let document = json(&said.out);
        let rate = rate(&document);
        assert!((30e6..=52.5e6).contains(&rate), "{flags:?}: {rate}");
        let flags = &document["trials"][0]["flags"];
        assert!(
            flags
                .to_string()
                .contains("limited by the agent to 50 Mbit/s"),
            "{flags}"
        );
    }
}
