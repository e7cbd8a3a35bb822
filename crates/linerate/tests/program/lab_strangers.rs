//! Callers from another host: without the token they may measure within limits, and are told what
//! they may not. Two hosts of a lab are far enough from each other.

use crate::common::call::Going;
use crate::common::{Call, NamedLab, Said, disturbance, file, folder, json, linerate, measured};
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
        let serve = lab.exec("server", &["serve", "--public"]);
        let mut going = serve.words(words).start();
        going.wait_for("serving on");
        Self {
            lab,
            going: Some(going),
            address: lab.address("server"),
        }
    }

    /// Runs a measurement from the client's host.
    fn run(&self, words: &[&str]) -> Said {
        self.call(words).run()
    }

    /// Runs it until the machine lets it be read; `None` where it is too busy.
    fn measured(&self, words: &[&str]) -> Option<Said> {
        measured(|_| self.call(words))
    }

    fn call(&self, words: &[&str]) -> Call {
        let first = ["run", &self.address, "-t", "0.5", "-O", "0.1"];
        self.lab.exec("client1", &first).words(words)
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
    let Some(lab) = NamedLab::up(&["--rate", "100mbit"]) else {
        return;
    };
    let remote = Remote::start(&lab, &[]);
    let Some(said) = remote.measured(&["-J"]) else {
        return;
    };
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    let document = json(&said.out);
    assert_eq!(document["trials"][0]["valid"], true, "{document}");
    let is_slow = rate(&document) <= 50e6;
    assert!(!is_slow || disturbance(&document).is_some(), "{document}");
    let said = remote.run(&[]);
    assert!(said.err.contains("observation of host server"), "{said:?}");
    assert!(said.err.contains("started without a token"), "{said:?}");
}

/// Hosts of one kernel share its CPUs, whoever asks, and both ends of a flow are brought together.
#[test]
fn both_ends_of_a_flow_share_a_cpu_where_their_hosts_share_a_kernel() {
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
        let why = setting["why"].as_str().unwrap_or_default();
        assert!(why.contains(expected), "{setting}");
    }
}

#[test]
fn the_token_opens_the_eyes_and_a_wrong_one_nothing() {
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

/// Without `--public` callers from elsewhere measure with a token only, whatever they speak.
#[test]
fn strangers_are_refused_unless_the_agent_is_public() {
    let Some(lab) = NamedLab::up(&["--rate", "100mbit"]) else {
        return;
    };
    let folder = folder();
    let state = folder.path().join("state").display().to_string();
    let mut agent = lab.exec("server", &["serve", "--state", &state]).start();
    agent.wait_for("serving on");
    agent.wait_for("linerate token add NAME");
    let server = lab.address("server");
    let run = |words: &[&str]| {
        let call = lab.exec("client1", &["run", &server, "-t", "0.5"]);
        call.words(words).run()
    };
    let known = folder.path().join("known").display().to_string();
    let known = ["--known-agents", known.as_str()];
    run(&known).failed(
        1,
        &[
            "first connection to",
            "it has no token yet",
            "--public",
            "next:",
            "--token-file",
        ],
    );
    let add = |words: &[&str]| {
        let call = linerate(&["token", "add", "--state", &state]).words(words);
        let token = call.run().done().out;
        file(&folder, words[0], &token)
    };
    let full = add(&["full", "--scope", "measure,observe,capture"]);
    let eyes = add(&["eyes", "--scope", "observe", "--expires", "1h"]);
    let old = add(&["old", "--expires", "0s"]);
    run(&known).failed(1, &["needs the agent's token (--token-file)"]);
    let with = |token: &str| run(&[&known[..], &["--token-file", token]].concat());
    with(&old).failed(1, &["the token `old` has expired"]);
    with(&eyes).failed(1, &["the token `eyes` permits observe, not measure"]);
    let words = [&known[..], &["--token-file", &full]].concat();
    let call = || lab.exec("client1", &["run", &server, "-t", "0.5"]);
    let Some(said) = measured(|_| call().words(&words)) else {
        return;
    };
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    assert!(
        said.shows("control over TLS, payload in the clear"),
        "{said:?}"
    );
    assert!(!said.err.contains("observation"), "{said:?}");
    let watch = [
        "watch",
        &server,
        "--once",
        "-i",
        "20ms",
        "--token-file",
        &eyes,
    ];
    lab.exec("client1", &watch).words(&known).run().done();
    let listed = linerate(&["token", "list", "--state", &state])
        .run()
        .done()
        .out;
    assert!(
        listed.contains("full  measure,observe,capture  until it is removed"),
        "{listed}"
    );
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("old ") && line.ends_with("expired"))
    );
    linerate(&["token", "remove", "full", "--state", &state])
        .run()
        .done();
    with(&full).failed(1, &["the token is not this agent's"]);
    // iperf3 shows no token.
    let iperf3 = [
        "lab", "exec", &lab.name, "client1", "iperf3", "-t", "1", "-c", &server,
    ];
    let said = linerate(&iperf3).run();
    assert!(said.code != 0 && said.tells("authorization"), "{said:?}");
    agent.signal(Signal::SIGTERM);
    agent.end();
}

#[test]
fn an_agent_that_shows_another_certificate_is_refused_and_so_is_plain_text() {
    let Some(lab) = NamedLab::up(&[]) else { return };
    let folder = folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (known, server) = (at("known"), lab.address("server"));
    let serve = |state: &str, words: &[&str]| {
        let serve = ["serve", "--public", "--state", state];
        let mut agent = lab.exec("server", &serve).words(words).start();
        agent.wait_for("serving on");
        agent
    };
    let run = |words: &[&str]| {
        let call = lab.exec("client1", &["run", &server, "-t", "0.3", "-b", "1M"]);
        call.words(words).run()
    };
    let agent = serve(&at("one"), &[]);
    let said = run(&["--known-agents", &known, "-J"]);
    // That a busy machine spoils the number is no matter here.
    let host = &json(&said.out)["hosts"][0];
    assert_eq!(
        (&host["control"], &host["payload"]),
        (&"tls".into(), &"clear".into())
    );
    run(&["--plain"]).failed(1, &["over TLS only", "is older"]);
    agent.signal(Signal::SIGTERM);
    agent.end();
    let agent = serve(
        &at("other"),
        &["--plain", "--allow", &lab.address("client1")],
    );
    run(&["--known-agents", &known]).failed(
        1,
        &[
            "is not trusted",
            &format!("line 1 of {known}"),
            "another host may be in between",
        ],
    );
    let said = run(&["--plain", "-J"]);
    assert_eq!(json(&said.out)["hosts"][0]["control"], "clear");
    agent.signal(Signal::SIGTERM);
    agent.end();
    // Who is not on the list meets nobody.
    let agent = serve(&at("other"), &["--allow", "192.0.2.0/24"]);
    run(&["--known-agents", &known]).failed(1, &["does not speak TLS"]);
    agent.signal(Signal::SIGTERM);
    agent.end();
}

#[test]
fn a_stranger_cannot_make_the_agent_connect_elsewhere() {
    let Some(lab) = NamedLab::up(&["--clients", "2"]) else {
        return;
    };
    let remote = Remote::start(&lab, &[]);
    let mut other = lab.exec("client2", &["serve", "--public"]).start();
    other.wait_for("serving on");
    let server = &remote.address;
    let client = lab.address("client2");
    lab.exec(
        "client1",
        &["run", server, "--client", &client, "-t", "0.5"],
    )
    .run()
    .failed(2, &["host client1", "needs the agent's token", "next:"]);
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
            "a trial of 20.14 s, but this agent allows 3 s without a token",
            next,
        ],
    );
    let said = remote.run(&["-P", "4"]);
    assert!(said.is_measured(), "{said:?}");
}

#[test]
fn the_rate_limit_holds_in_both_directions() {
    let Some(lab) = NamedLab::up(&["--rate", "1gbit"]) else {
        return;
    };
    let remote = Remote::start(&lab, &["--limit-rate", "50mbit"]);
    for flags in [&[][..], &["-R"], &["-P", "4"], &["--bidir"]] {
        let Some(said) = remote.measured(&[flags, &["-J", "-t", "1"]].concat()) else {
            return;
        };
        assert!(matches!(said.code, 0 | 3), "{said:?}");
        let document = json(&said.out);
        let rate = rate(&document);
        let least = if disturbance(&document).is_none() {
            30e6
        } else {
            0.0
        };
        assert!((least..=52.5e6).contains(&rate), "{flags:?}: {rate}");
        let flags = &document["trials"][0]["flags"];
        assert!(
            flags
                .to_string()
                .contains("limited by the agent to 50 Mbit/s"),
            "{flags}"
        );
    }
}

/// The kernel paces neither responses that are datagrams nor those that come with a connection each, and
/// each direction for itself: they are measured at the limit as streams are, both directions together.
#[test]
fn responses_are_held_to_the_rate_limit_too() {
    let Some(lab) = NamedLab::up(&["--rate", "1gbit"]) else {
        return;
    };
    let remote = Remote::start(&lab, &["--limit-rate", "50mbit"]);
    for (words, bytes, per_s) in [
        (
            "--rr -u -r 8,60000 --in-flight 64",
            60_008.0,
            "transactions_per_s",
        ),
        (
            "--rr -r 30000,30000 --in-flight 8 -P 2",
            60_000.0,
            "transactions_per_s",
        ),
        ("--crr -r 1,14000 -P 8", 14_001.0, "connections_per_s"),
    ] {
        let words: Vec<&str> = words.split(' ').chain(["-J", "-t", "2"]).collect();
        let Some(said) = remote.measured(&words) else {
            return;
        };
        assert!(matches!(said.code, 0 | 3), "{said:?}");
        let document = json(&said.out);
        let trial = &document["trials"][0];
        let rate = trial["responses"][per_s].as_f64().unwrap_or(0.0) * bytes * 8.0;
        let busy = disturbance(&document).is_some();
        let least = if busy { 0.0 } else { 40e6 };
        assert!((least..=52.5e6).contains(&rate), "{words:?}: {rate}");
        let flags = trial["flags"].to_string();
        assert!(
            flags.contains("limited by the agent to 50 Mbit/s"),
            "{flags}"
        );
        // A requester of datagrams keeps the rate as well: none waits for what its agent holds back.
        let unanswered = &trial["responses"]["requests_unanswered"];
        assert!(
            busy || unanswered.as_f64().unwrap_or(0.0) == 0.0,
            "{unanswered}"
        );
    }
}
