//! Every kind of traffic that `linerate run` makes over loopback: it moves, the numbers that belong to
//! it are there with their units, and the mechanism in force is told.

use crate::common::{Said, Server, json, linerate, loading, measured};
use serde_json::Value;

/// Measures `flags` against `server` and returns the first trial of the document; `None` where the
/// machine is too busy.
#[track_caller]
fn trial(server: &Server, flags: &str) -> Option<Value> {
    let host = server.host();
    let mut words = vec!["run", host.as_str(), "-J", "-i", "0", "-O", "0.1"];
    words.extend(flags.split_whitespace());
    let said = measured(|_| linerate(&words))?;
    let trial = json(&said.out)["trials"][0].clone();
    assert_eq!(trial["invalid"], Value::Null, "{flags}: {}", said.err);
    Some(trial)
}

/// Asserts that every one of `names` was measured and is above zero.
#[track_caller]
fn has(trial: &Value, flags: &str, names: &[&str]) {
    for name in names {
        let value = trial["responses"][*name].as_f64();
        assert!(
            value.is_some_and(|value| value > 0.0),
            "{flags}: {name} is {value:?}"
        );
    }
}

/// Returns what the first flow end that has the setting `name` says of it.
fn setting(trial: &Value, name: &str) -> String {
    let flows = trial["flows"].as_array().expect("flows are a list");
    let settings = flows.iter().flat_map(|flow| {
        let settings = flow["settings"].as_array().expect("settings are a list");
        settings.iter().filter(|setting| setting["name"] == name)
    });
    let words = |setting: &Value| {
        let said = ["granted", "why", "effective"]
            .map(|part| &setting[part])
            .into_iter()
            .filter(|part| !part.is_null());
        said.map(Value::to_string).collect::<Vec<_>>().join(" ")
    };
    settings.map(words).next().unwrap_or_default()
}

#[test]
fn streams_tell_messages_calls_and_mechanisms() {
    let (_load, server) = (loading(), Server::start(&[]));
    let check = |flags: &str, name: &str, words: &str| {
        let trial = trial(&server, &format!("-t 0.4 {flags}"))?;
        let names = ["throughput_bps", "messages_per_s", "send_calls_per_s"];
        has(&trial, flags, &names);
        let said = setting(&trial, name);
        assert!(said.contains(words), "{flags}: {name} is {said}");
        Some(trial)
    };
    let chosen = "\"send, 8 messages per call\" \"chosen, as no rate";
    check("", "send", chosen);
    check("-l 128K", "send", "\"send\"");
    check("-b 100M", "send", "\"send\"");
    check("", "TCP_CONGESTION", "\"");
    check("-Z=vmsplice", "send", "vmsplice");
    check("-Z=msg", "send", "MSG_ZEROCOPY");
    check("-Z=sendfile", "send", "sendfile");
    check("--rx discard", "receive", "MSG_TRUNC");
    check("-R", "placement", "one flow");
    check("-P 2", "send", "8 messages per call");
    check("-A none", "placement", "left to the scheduler");
    check("-P 3 --size-mix uniform:64-1K", "receive", "recv");
    let Some(batched) = check("-l 100 --batch 16", "send", "1600 B per call") else {
        return;
    };
    let number = |name: &str| batched["responses"][name].as_f64().expect("it was read");
    let per_call = number("messages_per_s") / number("send_calls_per_s");
    assert!(
        (12.0..=20.0).contains(&per_call),
        "{per_call} messages per call"
    );
}

/// Small datagrams of several flows go in batches unless somebody asks for plain calls, a rate, or one
/// flow; what moved them is told, with the reason where nobody asked.
#[test]
fn datagrams_of_several_flows_go_in_batches() {
    let (_load, server) = (loading(), Server::start(&[]));
    let check = |flags: &str, sent: &str, received: &str| {
        let Some(trial) = trial(&server, &format!("-t 0.5 -u -l 64 {flags}")) else {
            return;
        };
        has(&trial, flags, &["datagrams_received_per_s"]);
        for (name, words) in [("send", sent), ("receive", received)] {
            let said = setting(&trial, name);
            assert!(said.starts_with(words), "{flags}: {name} is {said}");
            let chosen = said.contains("\"chosen for several flows");
            assert_eq!(chosen, words.contains("chosen"), "{flags}: {said}");
        }
        let number = |name: &str| trial["responses"][name].as_f64().expect("it was read");
        let responses = trial["responses"].as_object().expect("an object");
        let places = responses.iter().filter(|row| {
            let (name, _) = row;
            name.starts_with("lost_")
        });
        let lost: f64 = places.filter_map(|(_, count)| count.as_f64()).sum();
        let arrived = number("datagrams_received");
        assert_eq!(
            number("datagrams_sent"),
            arrived + lost,
            "{flags}: {responses:?}"
        );
    };
    // The client's end says why.
    let chosen = ["\"sendmmsg of 64\" \"chosen", "\"recvmmsg of 64\" \"chosen"];
    check("-b 0 -P 2", chosen[0], "\"recvmmsg of 64\"");
    check("-b 0 -P 2 -R", "\"sendmmsg of 64\"", chosen[1]);
    check("-b 0 --bidir", "\"sendmmsg of 64\"", "\"recvmmsg of 64\"");
    check("-b 0", "\"send\"", "\"recvmmsg of 64\"");
    check("-b 0 -P 2 --batch 1", "\"send\"", "\"recvmmsg of 64\"");
    check("-b 0 --io epoll", "\"send\"", "\"recv\"");
    check(
        "-b 0 -P 2 --batch 8",
        "\"sendmmsg of 8\"",
        "\"recvmmsg of 8\"",
    );
    check("-b 1M -P 2", "\"send\"", "\"recv\"");
}

#[test]
fn final_lines_have_units_and_nothing_that_is_not_so() {
    let (_load, server) = (loading(), Server::start(&[]));
    let check = |flags: &str, there: &[&str], not_there: &[&str]| {
        let host = server.host();
        let flags = flags.split_whitespace();
        let words: Vec<&str> = ["run", &host, "-i", "0", "-v"]
            .into_iter()
            .chain(flags)
            .collect();
        let said = linerate(&words).run();
        for word in there {
            assert!(said.shows(word), "no `{word}` in\n{}", said.out);
        }
        for word in not_there {
            assert!(!said.shows(word), "`{word}` in\n{}", said.out);
        }
    };
    check(
        "-t 0.3 -w 64K -P 4",
        &["requested 64 KiB, granted 64 KiB", "flows started within"],
        &["± 0"],
    );
    check(
        "-t 0.3 --idle -P 2",
        &["2 connections"],
        &["cycles", "cost"],
    );
    check(
        "-t 0.3 --rr --rate 100",
        &[
            "were due in all phases, ",
            "TCP_NODELAY requested 1, granted 1",
        ],
        &[],
    );
    check(
        "-t 0.3 --rr --rate 100 -u",
        &["were due in all phases, "],
        &["granted"],
    );
    check("-t 0.3 -l 100 -N", &["SO_RCVLOWAT requested 32 KiB"], &[]);
    // Its workers have ended before anything is read.
    check("-k 1", &["ran on"], &["observer"]);
}

#[test]
fn a_volume_ends_the_measurement_with_every_byte() {
    let (_load, server) = (loading(), Server::start(&[]));
    let Some(both) = trial(&server, "-n 20M -P 2").zip(trial(&server, "-k 100 -l 1000")) else {
        return;
    };
    let (trial, small) = both;
    let flows = trial["flows"].as_array().expect("flows are a list");
    let received: Vec<u64> = flows
        .iter()
        .filter(|flow| flow["part"] == "receiver")
        .filter_map(|flow| flow["bytes_received"].as_u64())
        .collect();
    assert_eq!(received, [20 << 20, 20 << 20]);
    let sent = |at: usize| small["flows"][at]["bytes_sent"].as_u64();
    assert_eq!(sent(0).max(sent(1)), Some(100_000));
}

#[test]
fn requests_tell_what_was_asked_for_and_what_came() {
    let (_load, server) = (loading(), Server::start(&[]));
    let names = ["transactions_per_s", "rtt_p50_ns", "rtt_mean_ns"];
    for flags in [
        "--rr",
        "--rr -P 8 --in-flight 4",
        "--rr --io epoll -P 4",
        "--rr --think 1ms -P 2",
    ] {
        let Some(trial) = trial(&server, &format!("-t 0.4 {flags}")) else {
            return;
        };
        has(&trial, flags, &names);
    }
    let Some(trial) = trial(&server, "-t 1 --rr --rate 200 -P 2") else {
        return;
    };
    has(&trial, "--rate", &names);
    let of = |name: &str| trial["responses"][name].as_f64().expect("it was read");
    assert_eq!(of("transactions_intended_per_s"), 400.0);
    assert!(of("transactions_per_s") < 500.0, "no faster than asked for");
}

#[test]
fn a_rate_that_was_asked_for_is_said_for_each_flow_and_all() {
    let (_load, server) = (loading(), Server::start(&[]));
    let host = server.host();
    let said = linerate(&[
        "run",
        &host,
        "-P",
        "2",
        "--fq-rate",
        "20M",
        "-t",
        "1",
        "-i",
        "0",
        "-v",
    ])
    .run();
    let expected = "20 Mbit/s for each flow, 40 Mbit/s in total, paced by the kernel";
    assert!(said.shows(expected), "{}", said.out);
    assert!(said.out.contains("TCP_CONGESTION"), "{}", said.out);
    assert!(said.shows("ran on"), "{}", said.out);
}

#[test]
fn a_volume_that_was_over_before_it_was_read_has_no_rate() {
    let server = Server::start(&[]);
    for volume in ["1", "1K"] {
        let said = linerate(&["run", &server.host(), "-n", volume, "-J"]).run();
        let document = json(&said.out);
        let rate = &document["trials"][0]["responses"]["throughput_bps"];
        // It may have been read on the way.
        if rate.is_null() {
            assert_eq!(said.code, 3, "{said:?}");
            assert_eq!(document["trust"]["level"], "do_not_use", "{document}");
        }
        assert!(rate.as_f64() != Some(0.0), "{document}");
    }
}

#[test]
fn the_mean_of_runs_has_the_unit_that_was_asked_for() {
    let server = Server::start(&[]);
    let host = server.host();
    let run = |flags: &str| {
        let flags: Vec<&str> = flags.split(' ').collect();
        linerate(&["run", &host, "--runs", "3", "-t", "0.2", "-O", "0"])
            .words(&flags)
            .run()
    };
    // Of runs that a busy host spoils there may be no mean.
    let across = |said: &Said| -> Vec<String> {
        let lines = said
            .out
            .lines()
            .filter(|line| line.starts_with("mean ") || line.starts_with("s   "));
        lines.map(str::to_owned).collect()
    };
    let said = run("-f M -b 80M");
    let lines = across(&said);
    assert!(
        !lines.is_empty() || said.out.contains("INVALID"),
        "{said:?}"
    );
    assert!(lines.iter().all(|line| line.contains(" MiB/s")), "{said:?}");
    let idle = run("--idle");
    assert!(
        !across(&idle).is_empty() || idle.out.contains("INVALID"),
        "{idle:?}"
    );
    let mut lines = idle.out.lines();
    assert!(
        !lines.any(|line| line.starts_with("limited by")),
        "{idle:?}"
    );
    let held = run("--idle --precision 5% --runs-max 4");
    assert!(
        !held.err_lines.contains("not determined") || held.out.contains("INVALID"),
        "{held:?}"
    );
    let open = run("--precision 0.01% --runs-max 3 -J");
    let document = json(&open.out);
    let why = document["error"].as_str().unwrap_or_default();
    assert!(
        why.contains("not determined") || !open.is_measured(),
        "{open:?}"
    );
}
