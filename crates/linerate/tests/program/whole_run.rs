//! `linerate serve` and `linerate run` together over loopback: what a user does first.

use crate::common::{
    Call, Server, alone, disturbance, file, folder, json, linerate, loading, measured, too_busy,
};
use serde_json::Value;

/// Runs one measurement and returns its JSON document. Loopback may saturate the generator, which
/// is told by exit code 3; `None` where the machine is too busy.
#[track_caller]
fn document(server: &Server, flags: &str) -> Option<Value> {
    document_of(|_| {
        let call = linerate(&["run", &server.host(), "-t", "0.5", "-O", "0.1", "-J"]);
        call.words(&flags.split_whitespace().collect::<Vec<_>>())
    })
}

/// The same with the bundle in which it is kept, in `folder`.
#[track_caller]
fn kept(server: &Server, folder: &tempfile::TempDir, flags: &str) -> Option<(Value, String)> {
    let bundle = |number: usize| folder.path().join(number.to_string()).display().to_string();
    let last = std::cell::Cell::new(0);
    let document = document_of(|number| {
        last.set(number);
        let words = ["run", &server.host(), "-t", "0.5", "-O", "0.1", "-J"];
        linerate(&[&words[..], &["--out", &bundle(number)]].concat())
            .words(&flags.split_whitespace().collect::<Vec<_>>())
    })?;
    Some((document, bundle(last.get())))
}

/// The same of any call of a measurement.
#[track_caller]
fn document_of(call: impl Fn(usize) -> Call) -> Option<Value> {
    let said = measured(call)?;
    said.left_nothing();
    let document = json(&said.out);
    assert_eq!(document["schema"], "linerate.run");
    assert_eq!(document["schema_version"], 2);
    let trial = &document["trials"][0];
    if let (false, Some(why)) = (trial["valid"] == true, disturbance(&document)) {
        too_busy(&why);
        return None;
    }
    assert_eq!(trial["valid"], true, "{trial}");
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    Some(document)
}

/// Asserts that what every flow's sender sent is what its receiver received, to the byte.
#[track_caller]
fn ends_agree(trial: &Value, flows: usize) {
    let ends = trial["flows"].as_array().expect("flows");
    assert_eq!(ends.len(), 2 * flows, "{ends:?}");
    for flow in 0..flows {
        let of_part = |part: &str| {
            let end = ends
                .iter()
                .find(|end| end["flow"] == flow && end["part"] == part);
            end.unwrap_or_else(|| panic!("no {part} of flow {flow} in {ends:?}"))
        };
        let sent = of_part("sender")["bytes_sent"].as_u64();
        let received = of_part("receiver")["bytes_received"].as_u64();
        assert!(sent > Some(0), "{ends:?}");
        assert_eq!(sent, received, "flow {flow}");
    }
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// The numbers that others compute with are those that were printed, and none is missing.
#[test]
fn the_rows_of_a_bundle_are_the_numbers_of_its_run() {
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let Some((document, bundle)) = kept(&server, &folder, "--rr") else {
        return;
    };
    let printed = document["trials"][0]["responses"].as_object();
    let printed = printed.expect("responses");
    let said = linerate(&["report", &bundle, "--format", "csv"]).run();
    assert_eq!(said.code, 0, "{said:?}");
    let mut lines = said.out.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let at = |name| columns.iter().position(|column| *column == name);
    let (response, value) = (
        at("response").expect("a name"),
        at("value").expect("a value"),
    );
    // A run has no levels, so that no cell before these has a comma.
    let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let rows: Vec<(&str, f64)> = rows
        .map(|row| (row[response], row[value].parse().expect("a number")))
        .collect();
    assert_eq!(rows.len(), printed.len(), "{}", said.out);
    for (name, value) in rows {
        assert_eq!(printed[name].as_f64(), Some(value), "{name}");
    }
}

#[test]
fn a_stream_to_the_server_and_back() {
    let _load = loading();
    let server = Server::start(&[]);
    for (flags, flows) in [
        ("", 1),
        ("-R", 1),
        ("-P 4", 4),
        ("--bidir", 2),
        ("-P 2 -R -N -l 8K", 2),
    ] {
        let Some(document) = document(&server, flags) else {
            return;
        };
        let trial = &document["trials"][0];
        ends_agree(trial, flows);
        let responses = &trial["responses"];
        let throughput = number(&responses["throughput_bps"]);
        assert!(throughput > 1e6, "{flags}: {responses}");
        // The receiver's count is the headline; what is in flight at the edges is at most the
        // buffers, a few MiB in half a second.
        let sent = number(&responses["throughput_sent_bps"]);
        assert!(
            throughput < sent * 1.05 + 2e8 || disturbance(&document).is_some(),
            "{flags}: {throughput} of {sent}"
        );
        let window = number(&trial["window_s"]);
        assert!((window - 0.5).abs() < 1e-9, "{window}");
        // From a fact of the host, which is asked for when the trial has begun.
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let gbit_per_ghz = responses["gbit_per_ghz_nominal"].as_f64();
        let tells_mhz = cpus.contains("cpu MHz");
        assert_eq!(gbit_per_ghz.is_some(), tells_mhz, "{flags}: {responses}");
        if flags == "--bidir" {
            let ways = ["throughput_to_server_bps", "throughput_from_server_bps"];
            let sum: f64 = ways.iter().map(|way| number(&responses[way])).sum();
            assert!((sum - throughput).abs() < 1.0, "{responses}");
        }
    }
    assert!(server.info()["busy"].is_null());
}

#[test]
fn request_and_response() {
    let _alone = alone();
    let server = Server::start(&[]);
    let Some(document) = document(&server, "--rr -r 64,1K -i 0.1") else {
        return;
    };
    let trial = &document["trials"][0];
    let rate = number(&trial["responses"]["transactions_per_s"]);
    let ends = trial["flows"].as_array().expect("flows");
    let requester = ends
        .iter()
        .find(|end| end["part"] == "requester")
        .expect("a requester");
    let latency = &requester["latency"];
    let n = number(&latency["n"]);
    let due = rate * number(&trial["window_s"]);
    assert!(
        (n - due).abs() <= 0.05 * due + 2.0 || disturbance(&document).is_some(),
        "{n} timed, {due} counted"
    );
    // With one transaction at a time the rate is the inverse of the mean.
    let mean_us = number(&latency["mean_us"]);
    let inverse = 1e6 / mean_us;
    assert!(
        (inverse / rate - 1.0).abs() < 0.1 || disturbance(&document).is_some(),
        "{inverse} against {rate}"
    );
    let [p50, p99, max] = ["p50_us", "p99_us", "max_us"].map(|name| number(&latency[name]));
    assert!(p50 <= p99 && p99 <= max, "{latency}");
    intervals_agree(trial, latency);
    let requests = number(&requester["bytes_sent"]) / 64.0;
    let responses = number(&requester["bytes_received"]) / 1024.0;
    assert!(
        (requests - responses).abs() <= 1.0,
        "{requests} and {responses}"
    );
}

/// Asserts that the latencies of the intervals are, put together, those of the window.
#[track_caller]
fn intervals_agree(trial: &Value, whole: &Value) {
    let intervals = trial["intervals"].as_array().expect("intervals");
    assert_eq!(intervals.len(), 5, "{intervals:?}");
    let latencies: Vec<&Value> = intervals.iter().map(|lines| &lines[0]["latency"]).collect();
    let counted: f64 = latencies.iter().map(|latency| number(&latency["n"])).sum();
    // The last one may be recorded as the last reading is made.
    let missing = number(&whole["n"]) - counted;
    assert!((0.0..=1.0).contains(&missing), "{missing} of {whole}");
    for name in ["p50_us", "p99_us", "max_us"] {
        let of_intervals = latencies
            .iter()
            .filter_map(|latency| latency[name].as_f64());
        let (low, high) = of_intervals.fold((f64::MAX, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        // A quantile of all lies between those of the parts; each of these is within 1.6 %. One that is
        // not told had too few observations.
        let told = latencies.iter().all(|latency| !latency[name].is_null());
        let value = number(&whole[name]);
        let lies = low * 0.983 <= value && value <= high * 1.017;
        assert!(lies || !told, "{name}: {value} of {low} to {high}");
    }
}

#[test]
fn lines_for_people_and_lines_for_programs() {
    let _load = loading();
    let server = Server::start(&[]);
    let host = server.host();
    let run = |flags: &str| {
        let words = ["run", &host, "-O", "0.1"];
        linerate(&words).words(&flags.split_whitespace().collect::<Vec<_>>())
    };
    let said = run("-t 1 -i 0.5 --json-stream").run();
    assert!(said.is_measured(), "{said:?}");
    let events: Vec<Value> = said.out.lines().map(json).collect();
    let names: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["start", "interval", "interval", "end"]);
    assert_eq!(events[0]["data"]["schema"], "linerate.run");
    assert_eq!(events[3]["data"]["schema_version"], 2);

    let said = run("-t 0.5 -i 0").run();
    assert!(!said.out.contains("seconds"), "{}", said.out);
    assert!(said.out.contains("received"), "{}", said.out);

    // Where a reading comes late, the interval that it ends is joined to the next.
    let Some(said) = measured(|_| run("-t 1 -i 0.2 -P 2 -f m -v")) else {
        return;
    };
    assert!(said.is_measured(), "{said:?}");
    let sums = said.out.lines().filter(|line| line.starts_with("  sum "));
    assert_eq!(sums.count(), 5, "{}", said.out);
    for words in [
        "received",
        "Mbit/s",
        "window",
        "TCP_CONGESTION",
        "0.0–0.2",
        "0.8–1.0",
    ] {
        assert!(said.shows(words), "no {words}: {}", said.out);
    }
    let mut rates = said
        .out
        .lines()
        .take_while(|line| !line.starts_with("limited by"));
    assert!(rates.all(|line| !line.contains("Gbit/s")), "{}", said.out);
}

/// One table, not a block for each, and no interval lines that nobody asked for.
#[test]
fn repetitions_give_an_interval() {
    let _load = loading();
    let server = Server::start(&[]);
    let flags = ["-t", "0.5", "-O", "0.1", "--runs", "3"];
    let Some(said) = measured(|_| linerate(&["run", &server.host()]).words(&flags)) else {
        return;
    };
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    // On a busy machine a run may be invalid: it is in the table, and in no mean.
    let words: &[&str] = match said.out.matches("INVALID").count() {
        0 => &["95 % interval", "n = 3"],
        1 => &["(2 values", "1 of 3 trials is invalid"],
        _ => &["INVALID"],
    };
    for words in words {
        assert!(said.shows(words), "{words}: {}", said.out);
    }
    let of_runs = said.out.lines().filter(|line| {
        let number = line.get(..5).map(str::trim);
        matches!(number, Some("1" | "2" | "3"))
    });
    assert_eq!(of_runs.count(), 3, "{}", said.out);
    // The head of the table and a line; trust may say that numbers are "limited by the load generator".
    let of_limit = said.out.lines().filter(|line| {
        line.starts_with("limited by")
            || (line.starts_with("  run") && line.ends_with("limited by"))
    });
    assert_eq!(of_limit.count(), 2, "{}", said.out);
    assert!(!said.out.contains("seconds"), "{}", said.out);
}

#[test]
fn settings_are_told_as_requested_granted_and_effective() {
    let _load = loading();
    let server = Server::start(&[]);
    let Some(document) = document(&server, "-w 64K -N -M 1000 -C reno") else {
        return;
    };
    let ends = document["trials"][0]["flows"].as_array().expect("flows");
    for end in ends {
        let of = |name: &str| {
            let settings = end["settings"].as_array().expect("settings");
            let setting = settings.iter().find(|setting| setting["name"] == name);
            setting.unwrap_or_else(|| panic!("no {name}")).clone()
        };
        for name in ["SO_SNDBUF", "SO_RCVBUF"] {
            assert_eq!(of(name)["requested"], "65536");
            assert_eq!(of(name)["granted"], "65536");
            assert!(of(name)["capped_by"].is_null());
        }
        assert_eq!(of("TCP_NODELAY")["effective"], "1");
        assert_eq!(of("TCP_CONGESTION")["effective"], "reno");
        assert_eq!(of("TCP_MAXSEG")["requested"], "1000");
    }
    let payload = number(&document["trials"][0]["responses"]["payload_per_segment_bytes"]);
    assert!(payload <= 1000.0, "{payload}");
}

#[test]
fn the_habits_of_iperf3_work() {
    let _load = loading();
    let mut server = linerate(&["-s", "-B", "127.0.0.1", "-p", "0"]).start();
    server.wait_for("serving on 127.0.0.1:");
    let said = server.err();
    let port = said
        .split("127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let port = port.expect("a port");
    let said = linerate(&["-c", "127.0.0.1", "-p", port, "-t", "0.5", "-4"]).run();
    assert!(said.is_measured(), "{said:?}");
    server.signal(nix::sys::signal::Signal::SIGTERM);
    server.end().done();
    for flag in ["-v", "--version"] {
        let said = linerate(&[flag]).run().done();
        assert_eq!(said.out.lines().count(), 1, "{}", said.out);
        let words: Vec<&str> = said.out.split_whitespace().collect();
        assert_eq!(words[..2], ["linerate", env!("CARGO_PKG_VERSION")]);
        // Two more of a release whose commit is known: that, and the target.
        let target = words.last().expect("a target").trim_matches(['(', ')']);
        assert!(target.starts_with(std::env::consts::ARCH), "{target}");
        assert!(target.contains("-linux-"), "{target}");
    }
    for words in [&["--help"][..], &["run", "--help"], &["lab", "up", "-h"]] {
        assert!(linerate(words).run().done().out.contains("Usage"));
    }
}

#[test]
fn a_second_client_host_takes_part() {
    let _load = loading();
    let server = Server::start(&[]);
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    let flags = format!("-P 4 --client {} --client {}", one.host(), two.host());
    let Some(document) = document(&server, &flags) else {
        return;
    };
    let trial = &document["trials"][0];
    ends_agree(trial, 4);
    let hosts = trial["flows"].as_array().expect("flows").iter();
    let on = |name: &str| hosts.clone().filter(|flow| flow["host"] == name).count();
    assert_eq!((on("server"), on("client1"), on("client2")), (4, 2, 2));
    assert!(number(&trial["start_skew_us"]) < 1e6, "{trial}");
}

#[test]
fn a_bundle_is_kept_and_rendered_again_to_the_byte() {
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let out = folder.path().join("kept").display().to_string();
    let said = linerate(&[
        "run",
        &server.host(),
        "-t",
        "0.5",
        "--seed",
        "7",
        "-o",
        &out,
    ])
    .run();
    assert!(said.is_measured(), "{said:?}");
    assert!(
        said.err.contains(&format!("report in {out}")),
        "{}",
        said.err
    );
    let page = || std::fs::read(format!("{out}/report.html")).expect("a report");
    let first = page();
    linerate(&["report", &out]).run().done();
    assert!(first == page(), "the page differs");
    for format in ["markdown", "json", "html"] {
        let render = || {
            linerate(&["report", &out, "--format", format, "-o", "-"])
                .run()
                .done()
                .out
        };
        let text = render();
        assert!(text.len() > 200, "{format}: {text}");
        assert!(text == render(), "{format} differs");
        if format == "json" {
            json(&text);
        }
    }
    linerate(&["run", &server.host(), "-t", "0.5", "-o", &out])
        .run()
        .failed(2, &[&out, "another directory with --out"]);
    let full = linerate(&["report", &out, "--full", "-o", "-"])
        .run()
        .done()
        .out;
    assert!(full.contains("<details open") && !full.contains("<details class"));
    assert!(!String::from_utf8_lossy(&first).contains("<details open"));
    linerate(&["report", &out, "--format", "pdf"])
        .with("PATH", "/nosuch")
        .with("LINERATE_BROWSER", "")
        .run()
        .failed(1, &["cannot print to PDF", "LINERATE_BROWSER"]);
    // What stands for a browser prints what it was given.
    let browser = folder.path().join("browser");
    let script = "#!/bin/sh\nfor word; do case $word in --print-to-pdf=*) pdf=${word#*=};; \
                  file://*) page=${word#file://};; esac; done\ncp \"$page\" \"$pdf\"\n";
    std::fs::write(&browser, script).expect("a script is written");
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&browser, may_run).expect("a script may run");
    // A bundle of somebody else may have a link where the page goes.
    let (mine, pdf) = (folder.path().join("mine"), format!("{out}/report.pdf"));
    std::fs::write(&mine, "kept").expect("a file is written");
    std::os::unix::fs::symlink(&mine, &pdf).expect("a link is made");
    linerate(&["report", &out, "--format", "pdf"])
        .with("LINERATE_BROWSER", &browser.display().to_string())
        .run()
        .done();
    let printed = std::fs::read(&pdf).expect("it was printed");
    assert!(printed == first, "another page was printed");
    assert!(
        !std::fs::symlink_metadata(&pdf)
            .expect("it is there")
            .is_symlink()
    );
    assert_eq!(std::fs::read_to_string(&mine).expect("it is there"), "kept");
    linerate(&["report", &out, "-o", "/nosuch/page.html"])
        .run()
        .failed(1, &["/nosuch/page.html"]);
}

#[test]
fn a_stored_run_is_shown_as_it_was_seen_live() {
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let check = |flags: &str, form: &str| {
        let out = folder.path().join(form).display().to_string();
        let live = linerate(&["run", &server.host(), "-t", "1", "-i", "0.2", "-o", &out])
            .words(&flags.split_whitespace().collect::<Vec<_>>())
            .run();
        assert!(live.is_measured(), "{live:?}");
        let form = match form {
            "runs" | "sum" => "--replay".to_owned(),
            form => format!("--replay={form}"),
        };
        let mut again = vec!["report", &out, &form, "-i", "0.2"];
        again.extend(flags.contains("-v").then_some("-v"));
        let again = linerate(&again).run().done();
        assert!(again.out == live.out, "{flags}: {}", again.out);
    };
    check("-P 2 -v", "text");
    check("--runs 2", "runs");
    check("-u -b 10M -P 5", "sum");
    check("--rr --runs 2 --json-stream", "json-stream");
    check("-J", "json");
    let kept = std::fs::read_to_string(folder.path().join("text/events.ndjson")).expect("events");
    let kept: Vec<Value> = kept.lines().map(json).collect();
    let names: Vec<&str> = kept
        .iter()
        .filter_map(|one| one["event"].as_str())
        .collect();
    assert_eq!(
        names,
        ["run_began", "trial_began", "trial_ended", "run_ended"]
    );
}

#[test]
fn an_experiment_file_is_executed() {
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let text = r#"
format = 1
name = "two-sizes"
title = "Two message sizes"
question = "Does it run?"
[workload]
kind = "stream"
[factors]
message_bytes = ["1KiB", "128KiB"]
[design]
kind = "full"
replicates = 2
[timing]
settle = "20ms"
warm_up = "100ms"
measure = "300ms"
drain = "20ms"
"#;
    let path = file(&folder, "two.toml", text);
    let out = folder.path().join("two").display().to_string();
    let said = linerate(&["run", &server.host(), "--experiment", &path, "-o", &out]).run();
    assert!(said.is_measured(), "{said:?}");
    assert!(
        said.out.contains(&format!("{out}/report.html")),
        "{}",
        said.out
    );
    let rendered = linerate(&["report", &out, "--format", "json"]).run().done();
    assert!(rendered.out.contains("two-sizes"), "{}", rendered.out);
}

#[test]
fn flows_by_the_thousand_all_arrive() {
    let _load = loading();
    let server = Server::start(&[]);
    let said = linerate(&["run", &server.host(), "-t", "1", "-P", "3000", "-J"]).run();
    // More than two CPUs drive in time; what counts is that none is missing.
    let document = json(&said.out);
    let flows = document["trials"][0]["flows"].as_array().map(Vec::len);
    assert_eq!(flows, Some(6000), "{}", said.err);
    // Ten thousand take less than 10 MB by default: 500 B an end.
    assert!(said.out.len() < 6000 * 500, "{} B", said.out.len());
    assert_eq!(document["trials"][0]["flows_in_full"], false);
    assert_eq!(
        document["trials"][0]["intervals"][0][1],
        Value::Null,
        "a sum"
    );
    server.wait_busy(false);
}

#[test]
fn a_process_that_may_open_few_files_says_so() {
    let script = r#"ulimit -Sn 100; ulimit -Hn 200; exec "$0" "$@""#;
    let limited =
        || crate::common::Call::of("sh").words(&["-c", script, crate::common::call::PROGRAM]);
    let server = Server::start(&[]);
    let said = [
        "300 flows need as many open files",
        "may have 200",
        "ulimit -Hn",
    ];
    limited()
        .words(&["run", &server.host(), "-P", "300", "-t", "1"])
        .run()
        .failed(2, &said);
    let mut few = limited()
        .words(&["serve", "-B", "127.0.0.1", "-p", "0"])
        .start();
    few.wait_for("serving on ");
    let address = few.err();
    let address = address
        .split("serving on ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .expect("an address");
    linerate(&["run", address, "-P", "300", "-t", "1"])
        .run()
        .failed(2, &said);
    let said = linerate(&["run", address, "-P", "100", "-t", "0.5"]).run();
    assert!(said.out.contains("received"), "{said:?}");
    few.kill();
}

#[test]
fn a_profile_says_what_the_cpus_did_and_is_exported() {
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let flags = "--profile --irq-time -l 1400 -N";
    let Some((document, bundle)) = kept(&server, &folder, flags) else {
        return;
    };
    let trial = &document["trials"][0];
    let flags = trial["flags"].to_string();
    let responses = &trial["responses"];
    assert!(number(&responses["cpu_per_kib_ns"]) > 0.0, "{responses}");
    assert!(
        number(&responses["client_workers_cpus"]) > 0.0,
        "{responses}"
    );
    if flags.contains("no profile: ") {
        // Not allowed to this user: the trial says why, and there is nothing to export.
        let report = linerate(&["report", &bundle, "--flame", "-"]).run();
        report.failed(1, &["there is no profile in", "--profile"]);
        return;
    }
    if responses["client_profile_other_share"].is_null() {
        // Workers that hardly ran were not found on a CPU.
        let why = disturbance(&document).unwrap_or_else(|| panic!("no profile: {responses}"));
        return too_busy(&why);
    }
    let share = |work: &str| number(&responses[format!("client_profile_{work}_share")]);
    let works = [
        "user",
        "entry",
        "copy",
        "transport",
        "ip",
        "device",
        "softirq",
        "locks",
        "scheduler",
        "memory",
        "other",
    ];
    let all: f64 = works.into_iter().map(share).sum();
    assert!((all - 1.0).abs() < 1e-9, "{responses}");
    assert!(share("transport") > 0.05, "{responses}");
    assert!(share("other") < 0.25, "rules know most: {responses}");
    let report = linerate(&["report", &bundle, "--flame", "-"]).run();
    assert_eq!(report.code, 0, "{report:?}");
    let line = |line: &str| {
        let (frames, looks) = line.rsplit_once(' ').expect("looks at the end");
        assert!(looks.parse::<u64>().is_ok_and(|looks| looks > 0), "{line}");
        frames.contains("tcp_sendmsg")
    };
    assert!(report.out.lines().filter(|text| line(text)).count() > 0);
    let page = std::fs::read_to_string(format!("{bundle}/report.html")).expect("a page");
    assert!(page.contains("What the CPUs did"));
    assert!(page.contains("<title>tcp_sendmsg_locked: "));
    if !flags.contains("time in interrupts was not measured") {
        let measured = number(&responses["cpu_net_rx_cpus"]);
        assert!(measured > 0.0, "{responses}");
        assert!(measured <= number(&responses["cpu_softirq_measured_cpus"]) + 1e-9);
    }
}
