//! Trials of several groups: each has flows, bytes and responses of its own, and one host's limits hold for all.

use std::path::Path;

use linerate_model::experiment::Level;
use linerate_model::run::Recording;
use linerate_model::sample::End;
use linerate_model::workload::Part;
use serde_json::Value;

use crate::common::{
    NamedLab, Pair, Server, file, fits_its_schema, folder, json, linerate, loading, measured,
};

/// Returns the document of a measurement; `None` where the machine is too busy.
#[track_caller]
fn document(server: &Server, flags: &[&str]) -> Option<Value> {
    let host = server.host();
    let mut words = vec!["run", host.as_str(), "-J", "-t", "0.5", "-O", "0.1"];
    words.extend(flags);
    Some(json(&measured(|_| linerate(&words))?.out))
}

fn ends<'d>(document: &'d Value, end: &str) -> Vec<&'d Value> {
    let flows = document["trials"][0]["flows"].as_array();
    let flows = flows.expect("flows are a list").iter();
    // Each host hands its ends in as they are over.
    let mut flows: Vec<&Value> = flows.filter(|flow| flow["end"] == end).collect();
    flows.sort_by_key(|flow| flow["flow"].as_u64());
    flows
}

/// Returns what both ends of each flow say that went from one to the other, by `sent` at one end and `received` at the
/// other.
fn moved(document: &Value, from: &str, to: &str) -> Vec<(u64, u64)> {
    let bytes = |flow: &Value, key: &str| flow[key].as_u64().expect("a count");
    ends(document, from)
        .iter()
        .map(|sender| {
            let receivers = ends(document, to);
            let receiver = receivers
                .iter()
                .find(|receiver| receiver["flow"] == sender["flow"])
                .expect("each flow has two ends");
            (
                bytes(sender, "bytes_sent"),
                bytes(receiver, "bytes_received"),
            )
        })
        .collect()
}

#[test]
fn each_group_has_its_own_flows_and_bytes_and_both_ends_count_the_same() {
    let (_load, server) = (loading(), Server::start(&[]));
    let with = ["-P", "2", "-b", "50M", "--with", "rr -r 100,200 -P 3"];
    let Some(stream) = document(&server, &with) else {
        return;
    };
    let rr = &stream["beside"][0];
    assert_eq!(stream["group"], "stream");
    assert_eq!(rr["group"], "rr");
    assert_eq!(stream["trials"][0]["invalid"], Value::Null, "{stream}");
    assert_eq!(rr["trials"][0]["invalid"], Value::Null, "{rr}");
    // Flows of a group alone, all bytes of them.
    let streams = moved(&stream, "client", "server");
    assert_eq!(streams.len(), 2);
    assert!(streams.iter().all(|(sent, got)| sent == got && *sent > 0));
    assert!(
        moved(&stream, "server", "client")
            .iter()
            .all(|it| *it == (0, 0))
    );
    let requests = moved(rr, "client", "server");
    let responses = moved(rr, "server", "client");
    assert_eq!((requests.len(), responses.len()), (3, 3));
    for ((sent, got), (answered, back)) in requests.into_iter().zip(responses) {
        assert_eq!((sent, answered), (got, back));
        assert!(sent > 0 && sent % 100 == 0, "{sent}");
        // The last request of a flow may find the server no longer there.
        assert!(
            [answered, answered + 200].contains(&(2 * sent)),
            "{sent} {answered}"
        );
    }
    // They are one trial: one window, and one spread of beginnings over all flows.
    for key in ["window_s", "start_skew_us"] {
        assert_eq!(stream["trials"][0][key], rr["trials"][0][key], "{key}");
        assert!(stream["trials"][0][key].is_number(), "{key}");
    }
    let has = |group: &Value, name: &str| group["trials"][0]["responses"][name].is_number();
    assert!(has(&stream, "throughput_bps") && !has(&stream, "transactions_per_s"));
    assert!(has(rr, "rtt_p99_ns") && !has(rr, "throughput_bps"));
    // What the host did is no group's, and that of all.
    assert!(!has(&stream, "cpu_busy_share") && !has(rr, "cpu_busy_share"));
    assert_eq!(rr.get("together"), None);
    let mut alone = stream.clone();
    // A document of its own.
    alone.as_object_mut().expect("a document").remove("beside");
    fits_its_schema("run", &alone);
    let whole = &stream["together"][0];
    let bytes = |of: &Value| of["payload_bytes"].as_u64().expect("it was read");
    let (of_stream, of_rr) = (&whole["groups"][0], &whole["groups"][1]);
    assert_eq!(bytes(whole), bytes(of_stream) + bytes(of_rr));
    let throughput = &stream["trials"][0]["responses"]["throughput_bps"];
    assert_eq!(&of_stream["payload_bps"], throughput);
    // In the window no more arrived than in all phases.
    let all_phases: u64 = rr["trials"][0]["flows"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|flow| flow["bytes_received"].as_u64())
        .sum();
    assert!((1..=all_phases).contains(&bytes(of_rr)), "{whole}");
    let known = |of: &Value, name: &str| of["responses"][name].as_f64().expect("it was read");
    assert!(known(&whole["hosts"][0], "cpu_busy_cpus") > 0.0);
    assert!(known(whole, "cpu_per_kib_ns") > 0.0);
}

#[test]
fn a_measurement_of_one_group_says_nothing_of_groups() {
    let (_load, server) = (loading(), Server::start(&[]));
    let Some(one) = document(&server, &["-b", "10M"]) else {
        return;
    };
    for key in ["group", "beside", "together"] {
        assert_eq!(one.get(key), None, "{key}");
    }
}

#[test]
fn a_bundle_keeps_the_groups() {
    let (_load, server, folder) = (loading(), Server::start(&[]), folder());
    let bundle = folder.path().join("b");
    let out = bundle.to_str().expect("a plain path");
    let flags = ["-b", "10M", "--with", "rr -P 2", "-o", out];
    if document(&server, &flags).is_none() {
        return;
    }
    let run = std::fs::read_to_string(bundle.join("run.json")).expect("it was written");
    let run = json(&run);
    // A version that knows no groups refuses it.
    assert_eq!(run["format"], 4);
    assert_eq!(run["plan"]["trials"][0]["beside"][0]["name"], "rr");
    let again = linerate(&["report", out, "--replay=json"]).run().done();
    let again = json(&again.out);
    assert_eq!(ends(&again["beside"][0], "client").len(), 2);
    linerate(&["report", out, "--format", "markdown"])
        .run()
        .done();
}

/// An experiment of a stream, and of probes whose groups `groups` are.
fn experiment(groups: &str, factors: &str) -> String {
    format!(
        "format = 1\nname = \"beside\"\ntitle = \"Beside\"\nquestion = \"?\"\n\n\
         [workload]\nkind = \"stream\"\nrate = \"20M\"\n\n{groups}\n\n[factors]\n{factors}\n\n\
         [design]\nkind = \"full\"\nreplicates = 2\n\n\
         [timing]\nsettle = \"0ms\"\nwarm_up = \"100ms\"\nmeasure = \"400ms\"\ndrain = \"20ms\"\n"
    )
}

/// Measures an experiment in a lab; returns what was recorded, and its bundle.
fn in_lab(text: &str, folder: &tempfile::TempDir) -> Option<(Recording, String)> {
    NamedLab::up(&[])?;
    let path = file(folder, "beside.toml", text);
    let out = folder.path().join("out").display().to_string();
    let words = ["run", "--lab", "--experiment", &path, "-o", &out];
    let said = linerate(&words).run();
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    let recording = linerate_store::read(Path::new(&out)).expect("a bundle");
    Some((recording, out))
}

#[test]
fn a_factor_of_a_group_varies_that_group_and_hosts_are_those_that_it_names() {
    let (_load, folder) = (loading(), folder());
    let groups = "[[group]]\nname = \"probe\"\nfrom = \"client 2\"\nworkload = { kind = \"rr\" }";
    let text = experiment(groups, "\"probe.connections\" = [1, 3]");
    let Some((recording, out)) = in_lab(&text, &folder) else {
        return;
    };
    let trials = &recording.document.plan.trials;
    for trial in trials {
        let level = trial.cell.values().next().and_then(Level::whole);
        let probes = &trial.beside[0].workload;
        assert_eq!(level, Some(probes.connections.into()));
        assert_eq!(trial.workload.connections, 1);
        let flows = recording.flows.iter().filter(|flow| flow.trial == trial.id);
        let ends = flows.filter(|flow| flow.end == End::Client);
        let hosts: Vec<&str> = ends.map(|flow| &*flow.host.0).collect();
        let probes = std::iter::repeat_n("client2", probes.connections as usize);
        assert_eq!(
            hosts,
            std::iter::once("client1").chain(probes).collect::<Vec<_>>()
        );
    }
    let said = linerate(&["report", &out, "--format", "csv"]).run().done();
    let head: Vec<&str> = said
        .out
        .lines()
        .next()
        .expect("a head")
        .split(',')
        .collect();
    // The probe calls it its own, the stream by the probe's name.
    let is_column = |name| head.contains(&name);
    assert!(
        is_column("connections") && is_column("probe.connections"),
        "{head:?}"
    );
    // Each trial counts once, however many groups it has.
    let report = json(
        &linerate(&["report", &out, "--format", "json"])
            .run()
            .done()
            .out,
    );
    let told = report["about"].as_array().expect("a list").iter();
    let counted = told
        .filter(|row| row[0] == "Trials")
        .map(|row| row[1].as_str());
    let counted = counted.flatten().next().expect("it is told");
    assert_eq!(counted.split(',').next(), Some(&*trials.len().to_string()));
}

#[test]
fn groups_of_several_hosts_start_at_one_instant() {
    let (_load, folder) = (loading(), folder());
    let group = |name: &str, client: u32| {
        format!(
            "[[group]]\nname = \"{name}\"\nfrom = \"client {client}\"\n\
             workload = {{ kind = \"rr\", connections = 2 }}\n"
        )
    };
    let groups = [group("near", 1), group("far", 2)].concat();
    let Some((recording, _)) = in_lab(&experiment(&groups, ""), &folder) else {
        return;
    };
    assert!(!recording.trials.is_empty());
    for record in &recording.trials {
        let flows = recording
            .flows
            .iter()
            .filter(|flow| flow.trial == record.trial);
        let sending = flows.filter(|flow| matches!(flow.part, Part::Sender | Part::Requester));
        let begins = sending.map(|flow| (&*flow.host.0, flow.first_payload_ns));
        let begins: Vec<(&str, i64)> = begins
            .map(|(host, begin)| (host, begin.expect("each has sent")))
            .collect();
        // The stream and the near probes, and the far ones.
        let hosts: Vec<&str> = begins.iter().map(|(host, _)| *host).collect();
        assert_eq!(
            hosts,
            ["client1", "client1", "client1", "client2", "client2"]
        );
        let instants = begins.iter().map(|(_, begin)| *begin);
        let last = instants.clone().max().expect("five");
        let spread = last.abs_diff(instants.min().expect("five"));
        assert_eq!(record.start_skew_ns, Some(spread));
    }
}

#[test]
fn two_groups_of_requests_have_the_latencies_of_their_own() {
    let (_load, server) = (loading(), Server::start(&[]));
    let with = ["-i", "0.2", "--rr", "--with", "rr -r 1,1 -P 2"];
    let Some(first) = document(&server, &with) else {
        return;
    };
    let of = |group: &Value| {
        let intervals = group["trials"][0]["intervals"].as_array();
        let told = intervals.expect("a list").iter().map(|lines| {
            let last = lines.as_array().and_then(|lines| lines.last());
            last.expect("a sum")["latency"]["n"].as_u64()
        });
        let told: Option<Vec<u64>> = told.collect();
        let told = told.expect("each interval has latencies");
        assert!(!told.is_empty() && told.iter().all(|n| *n > 0), "{told:?}");
        // No more than the own flows of the group asked for, each with a byte, those of the warm-up included.
        let made = ends(group, "client").into_iter();
        let made: u64 = made.filter_map(|flow| flow["bytes_sent"].as_u64()).sum();
        assert!(told.iter().sum::<u64>() <= made, "{told:?} {made}");
    };
    of(&first);
    of(&first["beside"][0]);
}

#[test]
fn groups_that_cannot_be_are_refused_by_name() {
    let check = |flags: &[&str], words: &[&str]| {
        let all = [&["run", "127.0.0.1:1"], flags].concat();
        linerate(&all).run().failed(2, words);
    };
    check(&["--with", "bulk"], &["bulk", "stream, rr, crr, idle"]);
    check(&["--with", "rr -P 1,8"], &["rr -P 1,8", "connections"]);
    check(&["--with", "rr -t 5"], &["--time", "whole measurement"]);
    check(&["--with", "rr --nonsense"], &["--nonsense"]);
    check(&["--with", "rr", "-n", "1M"], &["stream", "volume"]);
    check(&["--with", "rr --unix"], &["rr", "Unix"]);
    check(&["--crr", "--with", "crr"], &["crr-2", "one group"]);
    check(&["--with", "rr", "--csv"], &["--csv", "--with"]);
    check(&["--with", "rr", "--peer", "iperf3"], &["iperf3", "--with"]);
    check(
        &["--with", "rr", "--format", "iperf3"],
        &["iperf3", "--with"],
    );
    check(&["--loaded", "--rr"], &["--loaded", "--rr"]);
    let probe = ["--with", "rr", "--fail-if", "probe.p99 > 5ms"];
    check(&probe, &["`probe`", "rr, stream"]);
}

#[test]
fn a_condition_is_about_the_group_that_it_names_or_the_first_that_has_the_response() {
    let (_load, server) = (loading(), Server::start(&[]));
    let conditions = [
        "p99 > 1ns",
        "rr.p99 > 1ns",
        "stream.p99 > 1ns",
        "throughput < 1K",
    ];
    let mut flags = vec!["--with", "rr"];
    flags.extend(conditions.iter().flat_map(|one| ["--fail-if", one]));
    let host = server.host();
    let said = linerate(&["run", &host, "-J", "-t", "0.5"])
        .words(&flags)
        .run();
    let document = json(&said.out);
    if document["trust"]["level"] == "do_not_use" {
        return crate::common::too_busy("others had the CPUs");
    }
    let judged = document["conditions"].as_array().expect("a list");
    let told: Vec<_> = judged
        .iter()
        .map(|one| (one["group"].as_str(), one["outcome"].as_str()))
        .collect();
    let expected = [
        (Some("rr"), Some("met")),
        (Some("rr"), Some("met")),
        (Some("stream"), Some("not_decided")),
        (Some("stream"), Some("not_met")),
    ];
    assert_eq!(told, expected, "{document}");
    assert_eq!(said.code, 4);
}

#[test]
fn a_probe_beside_bulk_is_shown_again_and_judged_beside_bulk() {
    let _load = loading();
    let (server, folder) = (Server::start(&[]), folder());
    let out = folder.path().join("out").display().to_string();
    let host = server.host();
    let words = ["run", &host, "--loaded", "-t", "0.3", "-J", "--out", &out];
    let said = linerate(&words).words(&["--fail-if", "p99 > 1ns"]).run();
    let mut live = json(&said.out);
    if live["trust"] == "do_not_use" {
        return crate::common::too_busy("others had the CPUs");
    }
    assert_eq!(live["conditions"][0]["group"], "rr", "{live}");
    live.as_object_mut()
        .expect("an object")
        .remove("conditions");
    let again = linerate(&["report", &out, "--replay=json"]).run().done();
    assert_eq!(json(&again.out), live);
    let text = linerate(&["report", &out, "--replay"]).run().done();
    assert!(text.out.contains("latency under load"), "{}", text.out);
}

#[test]
fn an_interrupted_probe_says_what_was_measured() {
    let _load = loading();
    let server = Server::start(&[]);
    let host = server.host();
    let call = linerate(&["run", &host, "--loaded", "-t", "60"]);
    let mut run = call.start();
    run.wait_for("latency under load");
    run.signal(nix::sys::signal::Signal::SIGINT);
    run.end()
        .failed(130, &["nothing was measured", "interrupted"]);
}

#[test]
fn beside_bulk_a_probe_waits_in_the_queue_of_a_slow_link() {
    let _load = loading();
    // Idle it takes a fraction of a millisecond; the queue in front of it holds several.
    let Some(pair) = Pair::up(&["--rate", "20mbit"]) else {
        return;
    };
    let said = pair.run("--loaded -t 1 -C cubic").run();
    assert!(said.is_measured(), "{}", said.err);
    let told = json(&said.out);
    assert_eq!(told["schema"], "linerate.loaded");
    fits_its_schema("loaded", &told);
    let to_server = &told["loaded"][0];
    assert_eq!(to_server["name"], "to-server");
    let ratio = to_server["ratio_p50"].as_f64().expect("both were measured");
    assert!(ratio > 2.0, "{told}");
    assert!(
        to_server["throughput_bps"]
            .as_f64()
            .is_some_and(|bps| bps > 1e6)
    );
    let groups = to_server["together"][0]["groups"].as_array();
    assert_eq!(groups.map(Vec::len), Some(2), "{told}");
}
