//! Links whose rate, delay and loss are known: does `linerate run` measure and name them?
//!
//! The arithmetic is that of a wire. A full frame at MTU 1500 carries 1448 B of payload beside 52 B
//! of IP and TCP with timestamps, and takes 1538 B of line: header, checksum, preamble and gap
//! included (IEEE 802.3). At 1 Gbit/s that leaves 941.48 Mbit/s.

use nix::sys::signal::Signal;

use crate::common::call::PROGRAM;
use crate::common::{
    NamedLab, Pair, Server, alone, disturbance, file, folder, json, linerate, loading, too_busy,
};
use linerate_model::metric::Metric;
use linerate_model::sample::{End, Subject};
use linerate_model::{FlowId, TrialId};
use serde_json::Value;

/// Payload that a 1 Gbit/s link carries at MTU 1500 with timestamps.
const LINE_RATE_BPS: f64 = 1e9 * 1448.0 / 1538.0;
/// What a lab's link may owe when a window begins and carry in it: 4 ms in the bucket, and a queue's timer.
const OWED_S: f64 = 0.005;
/// How often to measure when linerate itself says that others had the CPUs.
const TRIES: usize = 3;

/// Measures with these flags until `enough` says so, or linerate itself has nothing to say against the
/// machine; `None` when the machine was too busy each time.
fn measure(pair: &Pair, flags: &str, enough: impl Fn(&Value) -> bool) -> Option<Value> {
    for _ in 0..TRIES {
        let document = json(&pair.run(flags).run().out);
        // Too busy or not: nothing ever exceeds the line and what it owes.
        let rate = response(&document, "throughput_bps");
        let window_s = document["trials"][0]["window_s"].as_f64();
        let most = LINE_RATE_BPS * window_s.map_or(1.0, |window_s| 1.0 + OWED_S / window_s);
        assert!(rate.is_none_or(|rate| rate < most), "{rate:?} of {most}");
        let is_valid = document["trials"][0]["valid"] == true;
        if is_valid && (enough(&document) || disturbance(&document).is_none()) {
            return Some(document);
        }
    }
    too_busy("the machine is too busy to drive the link");
    None
}

fn response(document: &Value, name: &str) -> Option<f64> {
    document["trials"][0]["responses"][name].as_f64()
}

/// Asserts that `value` is between the two bounds, but for the last bit of a quotient.
#[track_caller]
fn within(value: Option<f64>, low: f64, high: f64) {
    let value = value.expect("it was measured");
    let bit = 1e-9 * value.abs();
    assert!(
        (low - bit..=high + bit).contains(&value),
        "{value} is not {low} to {high}"
    );
}

#[test]
fn a_gigabit_carries_what_a_gigabit_carries() {
    let _alone = alone();
    let Some(pair) = Pair::up(&["--rate", "1gbit"]) else {
        return;
    };
    for flags in ["-t 2 -O 0.5 -C reno", "-t 2 -O 0.5 -C reno -R"] {
        let least = 0.99 * LINE_RATE_BPS;
        let is_full = |document: &Value| response(document, "throughput_bps") >= Some(least);
        // A loss at the begin keeps reno below the line for seconds: one of three runs has none.
        let mut last = None;
        for _ in 0..3 {
            last = measure(&pair, flags, is_full);
            if last.as_ref().is_none_or(is_full) {
                break;
            }
        }
        let Some(document) = last else { return };
        // Less than that must be told.
        let trial = &document["trials"][0];
        let is_told = trial["flags"].to_string().contains("not steady")
            || document["trust"]["level"] != "good";
        assert!(
            is_full(&document) || is_told,
            "{:?}, {}, {}: {}",
            response(&document, "throughput_bps"),
            trial["flags"],
            document["trust"],
            document["findings"]
        );
        within(
            response(&document, "payload_per_segment_bytes"),
            1440.0,
            1448.0,
        );
    }
}

#[test]
fn flows_of_a_short_window_share_the_line() {
    let _alone = alone();
    let Some(pair) = Pair::up(&["--rate", "100mbit"]) else {
        return;
    };
    let fairness = |document: &Value| response(document, "fairness_jain");
    let is_shared = |document: &Value| fairness(document) >= Some(0.9);
    let Some(document) = measure(&pair, "-P 64 -t 0.4 -C cubic", is_shared) else {
        return;
    };
    assert_eq!(response(&document, "flows_idle"), Some(0.0));
    assert!(is_shared(&document), "{:?}", fairness(&document));
}

#[test]
fn a_small_buffer_on_a_long_path_is_the_limit_that_is_named() {
    // 13 Mbit/s.
    let _load = loading();
    // Two links make a path of 5 ms one way.
    let Some(pair) = Pair::up(&["--rate", "1gbit", "--delay", "2.5ms"]) else {
        return;
    };
    // A lab that lacks CPU holds packets for longer than was asked for, and then nobody can tell a queue from it.
    let is_as_made = |document: &Value| {
        let trip = response(document, "tcp_rtt_ns").zip(response(document, "tcp_min_rtt_ns"));
        trip.is_some_and(|(smoothed, shortest)| smoothed < 1.1 * shortest)
    };
    let mut tries = (0..TRIES).map_while(|_| measure(&pair, "-t 3 -O 1 -w 16K -C reno", |_| false));
    let Some(document) = tries.find(is_as_made) else {
        return too_busy("the lab's path took longer than it was made");
    };
    within(response(&document, "tcp_min_rtt_ns"), 10e6, 12e6);
    let measured = response(&document, "throughput_bps").expect("it was measured");
    let findings = document["findings"].as_array().expect("findings");
    let limiter = findings
        .iter()
        .find(|finding| finding["kind"]["limiter"].is_string())
        .unwrap_or_else(|| panic!("no limiter from {}", document["trials"][0]["responses"]));
    let name = limiter["kind"]["limiter"].as_str().unwrap_or_default();
    assert!(
        matches!(name, "receiver_window" | "send_buffer"),
        "{limiter}"
    );
    let evidence = limiter["evidence"].as_array().expect("evidence").iter();
    let predicted = evidence
        .filter(|item| {
            item["what"]
                .as_str()
                .is_some_and(|what| what.contains("(computed)"))
        })
        .find_map(|item| item["estimate"]["value"].as_f64())
        .unwrap_or_else(|| panic!("nothing computed in {limiter}"));
    within(Some(predicted / measured), 0.85, 1.15);
    // The kernel grants a little more window than the buffer that was asked for; twice at the most.
    within(
        Some(measured),
        0.5 * 8.0 * 16384.0 / 0.012,
        2.0 * 8.0 * 16384.0 / 0.010,
    );
}

#[test]
fn a_stopped_reader_is_named() {
    let _load = loading();
    let Some(lab) = NamedLab::up(&[]) else {
        return;
    };
    // Its number among the host's own processes, to stop it there.
    let folder = folder();
    let pid = file(&folder, "pid", "");
    let script = r#"echo $$ > "$1"; exec "$0" serve --public"#;
    let host = ["lab", "exec", &lab.name, "server"];
    let mut agent = linerate(&host)
        .words(&["sh", "-c", script, PROGRAM, &pid])
        .start();
    agent.wait_for("serving on");
    let address = lab.address("server");
    let flags = ["run", &address, "-t", "5", "-b", "100M"];
    let mut run = lab.exec("client1", &flags).start();
    run.wait_for("0.0–1.0");
    // For more than half of the time, and less than what loses an agent.
    let script = format!("kill -STOP $(cat {pid}); sleep 3.5; kill -CONT $(cat {pid})");
    let stop = linerate(&host).words(&["sh", "-c", &script]);
    stop.run().done();
    let said = run.end();
    agent.signal(Signal::SIGTERM);
    agent.end();
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("limited by the receiving program"),
        "{said:?}"
    );
    assert!(words.contains("it read nothing for"), "{said:?}");
}

#[test]
fn loss_is_seen_as_segments_sent_again() {
    // What share is lost is no matter of CPUs.
    let _load = loading();
    // Each direction of each link loses half a percent, so a segment is lost with about 1 %.
    let Some(pair) = Pair::up(&["--rate", "100mbit", "--loss", "0.005"]) else {
        return;
    };
    // Not limited by the rate, and so by nothing but what is lost.
    let Some(document) = measure(&pair, "-t 3 -C reno", |_| false) else {
        return;
    };
    // 15 000 to 25 000 segments: 1 % ± 0.09 % (one standard deviation), and a few sent in vain.
    within(response(&document, "retransmitted_share"), 0.0075, 0.014);
    within(
        response(&document, "throughput_bps"),
        20e6,
        LINE_RATE_BPS / 10.0,
    );
}

#[test]
fn a_round_trip_takes_its_time() {
    let _alone = alone();
    let Some(pair) = Pair::up(&["--delay", "2ms"]) else {
        return;
    };
    let Some(document) = measure(&pair, "-t 2 --rr -r 1,1 -C reno", |_| false) else {
        return;
    };
    let requester = document["trials"][0]["flows"]
        .as_array()
        .expect("flows")
        .iter()
        .find(|flow| flow["part"] == "requester")
        .expect("a requester");
    // Two links each way: never less than 8 ms, and a scheduler's delay more.
    within(requester["latency"]["p50_us"].as_f64(), 8000.0, 10_000.0);
}

#[test]
fn datagrams_take_their_time_each_way() {
    let _alone = alone();
    let Some(pair) = Pair::up(&["--delay", "2ms"]) else {
        return;
    };
    let Some(document) = measure(&pair, "-t 1 -u -b 10M --bidir", |_| false) else {
        return;
    };
    let ways = document["trials"][0]["one_way"].as_array().expect("ways");
    assert_eq!(ways.len(), 2, "{ways:?}");
    for way in ways {
        // Two links each way, and one clock of both hosts.
        assert_eq!(
            (&way["known"], &way["uncertainty_us"]),
            (&true.into(), &0.0.into())
        );
        within(way["shortest_us"].as_f64(), 4000.0, 6000.0);
        assert!(way["mean_us"].as_f64() >= way["shortest_us"].as_f64());
    }
}

/// Loss as a level: the lab has hosts for each.
const LOSSES: &str = r#"
format = 1
name = "losses"
title = "Losses"
question = "Does each trial lose what its level says?"
[workload]
kind = "stream"
congestion = "reno"
[factors]
link_loss = [0, 0.02]
[design]
kind = "full"
replicates = 2
[timing]
settle = "0ms"
warm_up = "100ms"
measure = "1500ms"
drain = "20ms"
"#;

#[test]
fn a_loss_that_is_a_level_has_hosts_of_its_own() {
    let _load = loading();
    if NamedLab::up(&[]).is_none() {
        return;
    }
    let folder = folder();
    let path = file(&folder, "losses.toml", LOSSES);
    let out = folder.path().join("out").display().to_string();
    let said = linerate(&["run", "--lab", "--experiment", &path, "-o", &out]).run();
    // Not to be trusted where the machine was too busy; what was lost is known all the same.
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    said.left_nothing();
    let recording = linerate_store::read(std::path::Path::new(&out)).expect("a bundle");
    let hosts = recording.document.hosts.iter();
    let lossy: Vec<(&str, Option<u32>)> = hosts
        .map(|host| (&*host.name.0, host.link_loss_ppm))
        .filter(|(_, ppm)| ppm.is_some())
        .collect();
    assert_eq!(lossy, [("clean1", Some(0)), ("lossy1", Some(20_000))]);
    // Blocks that nothing is left to decide for are planned and not measured.
    let planned = recording.document.plan.trials.iter();
    let is_measured = |trial: TrialId| recording.flows.iter().any(|flow| flow.trial == trial);
    let measured: Vec<_> = planned.filter(|trial| is_measured(trial.id)).collect();
    assert!(measured.len() >= 4, "{}", measured.len());
    for trial in measured {
        let host = match trial.workload.link_loss_ppm {
            Some(0) => "clean1",
            other => {
                assert_eq!(other, Some(20_000));
                "lossy1"
            }
        };
        let mut flows = recording.flows.iter();
        let flow = flows
            .find(|flow| flow.trial == trial.id && flow.end == End::Client)
            .expect("the client's end");
        assert_eq!(&*flow.host.0, host);
    }
    // 600 to 4000 segments a trial: 2 % of them are lost, and a few more are sent again in vain.
    let of = |loss: u32, metric: Metric| -> i64 {
        let trials = recording.document.plan.trials.iter();
        let trials: Vec<_> = trials
            .filter(|trial| trial.workload.link_loss_ppm == Some(loss))
            .map(|trial| trial.id)
            .collect();
        let samples = recording.samples.iter();
        let mut last = std::collections::BTreeMap::new();
        for sample in samples {
            let is_wanted = trials.contains(&sample.trial)
                && sample.metric == metric
                && sample.subject == Subject::Flow(FlowId(0), End::Client);
            if is_wanted {
                last.insert(sample.trial, sample.value);
            }
        }
        last.values().sum()
    };
    let sent = of(20_000, Metric::TcpDataSegsOut) as f64;
    let share = of(20_000, Metric::TcpRetrans) as f64 / sent;
    within(Some(share), 0.008, 0.06);
}

/// Each way of an access line.
const WAYS: &str = r#"
format = 1
name = "ways"
title = "Ways"
question = "Does each way carry its own rate?"
[workload]
kind = "stream"
congestion = "cubic"
[factors]
direction = ["to-server", "from-server"]
[design]
kind = "full"
replicates = 2
[timing]
settle = "0ms"
warm_up = "500ms"
measure = "1s"
drain = "20ms"
"#;

/// The preset's links are those that the bundle and the report tell of, but for what a flag says; and each way carries
/// what its rate leaves, so that a rate above it is nowhere refused.
#[test]
fn each_way_of_a_line_carries_its_own_rate() {
    let _load = loading();
    if NamedLab::up(&[]).is_none() {
        return;
    }
    let folder = folder();
    let path = file(&folder, "ways.toml", WAYS);
    let out = folder.path().join("out").display().to_string();
    let flags = ["run", "--lab=bloated", "--lab-up-delay", "5ms"];
    let said = linerate(&flags).words(&["--experiment", &path, "-o", &out]);
    let said = said.run();
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    said.left_nothing();
    let recording = linerate_store::read(std::path::Path::new(&out)).expect("a bundle");
    let [server, client, ..] = &recording.document.hosts[..] else {
        panic!("a server and clients");
    };
    let bps = |rate: Option<linerate_model::BitsPerSec>| rate.map(|rate| rate.0);
    assert_eq!(
        (bps(server.link_rate), bps(server.link_up_rate)),
        (Some(1e9), None)
    );
    assert_eq!(
        (bps(client.link_rate), bps(client.link_up_rate)),
        (Some(20e6), Some(5e6))
    );
    let links = [server, client].map(|host| host.lab_link.clone().expect("a lab's"));
    assert_eq!(
        links[0].round_trip(&links[1]),
        linerate_model::Nanos::from_ms(15)
    );
    let report = linerate(&["report", &out, "--format", "json"]).run().done();
    let report = json(&report.out);
    let facts = report["hosts"][1]["facts"].as_array().expect("facts");
    let full = serde_json::json!(["lab_link.up_full_queue", "300 ms"]);
    assert!(facts.contains(&full), "{facts:?}");
    let mut is_wider = false;
    for outcome in linerate_analyze::reduce::outcomes(&recording) {
        let trial = recording
            .document
            .plan
            .trial(outcome.trial)
            .expect("planned");
        let rate = match trial.workload.traffic.direction() {
            Some(linerate_model::workload::Direction::ToServer) => 5e6,
            _ => 20e6,
        };
        let reason = outcome.validity.reason();
        let is_beyond = matches!(reason, Some(linerate_model::reason::Reason::Beyond { .. }));
        assert!(!is_beyond, "{reason:?}");
        // A busy machine may leave the line empty at times, and never passes more than it carries.
        let most = rate * 1448.0 / 1538.0 * (1.0 + OWED_S);
        if let Some(found) = outcome.value("throughput_bps") {
            within(Some(found), 0.0, most);
            is_wider |= found > 5e6;
        }
    }
    assert!(
        is_wider,
        "more than the narrow way carries comes by the wide one"
    );
}

#[test]
fn a_real_host_is_not_asked_to_lose() {
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let path = file(&folder, "losses.toml", LOSSES);
    let out = folder.path().join("out").display().to_string();
    let said = linerate(&["run", &server.host(), "--experiment", &path, "-o", &out]).run();
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    let report = linerate(&["report", &out, "--format", "json"]).run().done();
    let left_out = &json(&report.out)["left_out"];
    assert_eq!(left_out[0]["what"], "losses: link_loss 2 %", "{left_out}");
    let why = left_out[0]["why"].as_str().unwrap_or_default();
    assert!(why.contains("only the links of a lab"), "{why}");
}

/// Connecting takes the congestion control of the route in place of the one that was set: a number of that one
/// would answer another question.
#[test]
fn a_route_that_puts_another_congestion_control_in_place_is_named() {
    let _alone = alone();
    let Some(pair) = Pair::up(&[]) else {
        return;
    };
    let route = "ip route replace 10.77.0.0/24 dev eth0 congctl cubic";
    let client = ["lab", "exec", &pair.lab.name, "client1", "sh", "-c", route];
    linerate(&client).run().done();
    let short = "-t 200ms -O 50ms";
    let named = "TCP_CONGESTION of reno was requested, cubic granted on client1: clamped by congctl of the route";
    let sends = pair.run(&format!("{short} -C reno")).run();
    assert_ne!(sends.code, 0, "{sends:?}");
    assert!(sends.err.contains(named), "{sends:?}");
    // An end that only receives keeps no window, and the server's route says nothing. A busy machine may make
    // the number invalid, not what it is of.
    for flags in ["-C reno -R", "-C cubic"] {
        let document = json(&pair.run(&format!("{short} {flags}")).run().out);
        let trial = &document["trials"][0];
        let bytes = trial["flows"][0]["bytes_received"].as_u64();
        assert!(bytes.is_some(), "{flags} was measured: {document}");
        let why = trial["invalid"].as_str().unwrap_or_default();
        assert!(!why.contains("TCP_CONGESTION"), "{flags}: {why}");
    }
}
