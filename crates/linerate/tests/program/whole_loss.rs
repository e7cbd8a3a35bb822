//! Hosts that die in the middle, and users who have seen enough: what was measured is kept, and
//! the run says what became of it.

use crate::common::call::{Call, Going, PROGRAM};
use crate::common::http::ask;
use crate::common::lab::Pair;
use crate::common::{
    Said, Server, file, folder, json, linerate, loading, measured, skip, wait_for_workers,
};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// An experiment of eight trials of half a second.
const EIGHT: &str = r#"
format = 1
name = "eight"
title = "Eight trials"
question = "What is left when a host dies?"
[workload]
kind = "stream"
[factors]
message_bytes = ["1KiB", "128KiB"]
[design]
kind = "full"
replicates = 4
[timing]
settle = "20ms"
warm_up = "100ms"
measure = "500ms"
drain = "20ms"
"#;

/// Returns what the bundle in `out` says, after its report was rendered again.
#[track_caller]
fn bundle(out: &str) -> (Value, Value) {
    let said = linerate(&["report", out, "--format", "json"]).run().done();
    linerate(&["report", out]).run().done();
    let page = std::fs::read_to_string(format!("{out}/report.html")).expect("a report");
    assert!(page.contains("</html>"));
    let run = std::fs::read_to_string(format!("{out}/run.json")).expect("a document");
    (json(&run), json(&said.out))
}

/// What a stream of events has once something was measured.
const INTERVAL: &str = r#""event":"interval""#;

/// Returns the document with which a stream of events ends.
#[track_caller]
fn end_of_stream(said: &Said) -> Value {
    let events = said.out.lines().map(json);
    let mut ends = events.filter(|event| event["event"] == "end");
    let end = ends.next().unwrap_or_else(|| panic!("no end: {said:?}"));
    end["data"].clone()
}

/// The experiment under way.
struct Eight {
    run: Going,
    out: String,
    _folder: TempDir,
}

/// Begins the experiment on hosts that the command line names so, and waits for its first trial.
fn eight(hosts: &[&str]) -> Eight {
    let folder = folder();
    let path = file(&folder, "eight.toml", EIGHT);
    let out = folder.path().join("out").display().to_string();
    let mut run = linerate(&["run"])
        .words(hosts)
        .words(&["--experiment", &path, "-o", &out])
        .start();
    run.wait_for("trial 1 of 8");
    Eight {
        run,
        out,
        _folder: folder,
    }
}

#[test]
fn a_server_that_comes_back_costs_the_trial_in_which_it_died() {
    let _load = loading();
    let mut server = Server::start(&[]);
    let Eight {
        mut run,
        out,
        _folder,
    } = eight(&[&server.host()]);
    wait_for_workers(&server);
    server.kill();
    run.wait_for("host server is lost; waiting up to 10 s");
    let server = Server::on(server.address.port(), &[]);
    let said = run.end();
    // The trial is measured once more, so that nothing is missing but what a busy machine spoils.
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    said.left_nothing();
    assert!(
        said.err.contains("is invalid: host server: lost the agent"),
        "{said:?}"
    );
    let (document, _) = bundle(&out);
    assert!(document["cut_short"].is_null(), "{}", document["cut_short"]);
    let repeats = document["plan"]["repeats"].to_string();
    assert!(repeats.contains("lost the agent"), "{repeats}");
    server.wait_busy(false);
}

#[test]
fn a_server_that_stays_away_ends_the_run_with_what_it_has() {
    let load = loading();
    let mut server = Server::start(&[]);
    let Eight { run, out, _folder } = eight(&[&server.host()]);
    wait_for_workers(&server);
    server.kill();
    drop(load);
    let said = run.end().failed(1, &["host server is lost"]);
    let why = "lost host server, which did not come back within 10 s";
    let (document, _) = bundle(&out);
    assert!(
        document["cut_short"]
            .as_str()
            .is_some_and(|text| text.contains(why)),
        "{}",
        document["cut_short"]
    );
    assert!(said.tells("did not come back"), "{said:?}");
}

#[test]
fn a_client_host_that_dies_ends_the_run_and_frees_the_server() {
    let load = loading();
    let server = Server::start(&[]);
    let mut client = Server::start(&[]);
    let Eight { run, out, _folder } = eight(&[&server.host(), "--client", &client.host()]);
    wait_for_workers(&server);
    client.kill();
    drop(load);
    let said = run.end().failed(1, &["host client1 is lost"]);
    assert!(said.err.contains("is invalid: host"), "{said:?}");
    let (document, _) = bundle(&out);
    let cut_short = document["cut_short"].as_str().expect("it was cut short");
    assert!(cut_short.contains("lost host client1"), "{cut_short}");
    server.wait_busy(false);
}

#[test]
fn a_single_measurement_keeps_what_there_was_before_its_server_died() {
    let _load = loading();
    let mut server = Server::start(&[]);
    let words = ["-t", "30", "-i", "0.5", "--json-stream"];
    let mut run = linerate(&["run", &server.host()]).words(&words).start();
    // A tenth of what is kept is then longer than the time between two readings, which those of the hosts may
    // lie apart.
    run.wait_for(r#""begin_s":1.0"#);
    server.kill();
    let why = "lost the agent";
    let said = run.end().failed(1, &[why]);
    let document = &end_of_stream(&said);
    let next = document["next"].as_str().expect("a next step");
    assert!(
        next.contains("start `linerate serve` there again"),
        "{next}"
    );
    let trial = &document["trials"][0];
    assert!(trial["valid"] == true || said.was_read_late(), "{trial}");
    let window = trial["window_s"].as_f64().expect("a window");
    assert!(window > 0.2 && window < 20.0, "{window}");
    let rate = trial["responses"]["throughput_bps"].as_f64();
    assert!(rate > Some(100.0), "{}", trial["responses"]);
    let partial = document["partial"].as_str().expect("it is partial");
    assert!(partial.contains("of the window of 30 s") && partial.contains(why));
    said.left_nothing();
}

/// The link of the server goes down in the window and comes back when that is over: what is read then looks whole.
#[test]
fn a_link_that_went_away_in_the_window_is_nothing_to_trust() {
    /// The rest of the window, and a second more.
    const AWAY: std::time::Duration = std::time::Duration::from_millis(2500);
    let Some(pair) = Pair::up(&[]) else { return };
    let link = |state: &str| {
        let words = ["ip", "link", "set", "dev", "eth0", state];
        let call = linerate(&["lab", "exec", &pair.lab.name, "server"]);
        call.words(&words).run()
    };
    if link("up").code != 0 {
        return skip("ip is not installed");
    }
    let words = ["-b", "50M", "-t", "3", "-i", "0.5", "--json-stream"];
    let call = pair.lab.exec("client1", &["run", &pair.server]);
    let mut run = call.words(&words).start();
    run.wait_for(r#""begin_s":1.0"#);
    link("down").done();
    std::thread::sleep(AWAY);
    link("up").done();
    let said = run.end();
    let document = end_of_stream(&said);
    assert_ne!(document["trust"]["level"], "good", "{document}");
}

/// A path on which full-size packets to the client vanish, and nobody tells the server.
#[test]
fn answers_arrive_where_full_size_packets_vanish() {
    let _load = loading();
    let Some(pair) = Pair::up(&["--rate", "50M"]) else {
        return;
    };
    // The client's end takes less than it says: what is larger is dropped where it arrives.
    let hole = "ip link set eth0 mtu 1300 && ip route replace 10.77.0.0/24 dev eth0 advmss 1460";
    let client = ["lab", "exec", &pair.lab.name, "client1", "sh", "-c", hole];
    linerate(&client).run().done();
    let Some(said) = measured(|_| pair.run("-t 1 -b 4M")) else {
        return;
    };
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    let trial = &json(&said.out)["trials"][0];
    assert_eq!(trial["valid"], true, "{trial}");
    let received = trial["responses"]["app_received_bps"].as_f64();
    assert!(
        received > Some(1e6),
        "the server's readings: {}",
        trial["responses"]
    );
}

#[test]
fn a_controller_that_dies_frees_its_agents() {
    let load = loading();
    let server = Server::start(&[]);
    let mut run = linerate(&["run", &server.host(), "-t", "60"]).start();
    run.wait_for("0.0–1.0");
    assert!(server.info()["busy"].is_object());
    run.kill().left_nothing();
    drop(load);
    // The lease ends 20 s after the last request; the state machine's own test does not wait.
    server.wait_busy(false);
}

/// `| head` ends a measurement as Ctrl-C does.
#[test]
fn a_reader_that_goes_away_frees_the_host() {
    let _load = loading();
    let server = Server::start(&[]);
    let script = r#""$0" run "$1" -t 60 -O 0 -i 0.1 -b 10M | head -n 1"#;
    let words = ["-c", script, PROGRAM, &server.host()];
    let began = std::time::Instant::now();
    let said = Call::of("sh").words(&words).run();
    assert_eq!(said.out.lines().count(), 1, "{said:?}");
    assert!(began.elapsed().as_secs() < 30, "it went on to its end");
    // The shell waits for both: a host that is not freed is busy for 20 s more.
    assert!(server.info()["busy"].is_null());
}

#[test]
fn an_interrupted_measurement_prints_what_it_has() {
    let _load = loading();
    let server = Server::start(&[]);
    for flags in [
        &["-t", "60"][..],
        &["-t", "0"],
        &["-t", "0", "--rr"],
        &["-t", "60", "--bidir"],
    ] {
        let words = ["-O", "0.1", "-i", "0.3", "--json-stream"];
        let call = linerate(&["run", &server.host()]).words(&words);
        let mut run = call.words(flags).start();
        run.wait_for(INTERVAL);
        run.signal(Signal::SIGINT);
        // As timeout(1) does: a second one at once is no wish of its own.
        run.signal(Signal::SIGINT);
        let said = run.end();
        // Who asks for no end has what was asked for.
        let is_partial = !flags.contains(&"0");
        if is_partial {
            assert_eq!(said.code, 130, "{said:?}")
        } else {
            assert!(
                matches!(said.code, 0 | 3) || said.was_read_late(),
                "{said:?}"
            )
        }
        said.left_nothing();
        let document = end_of_stream(&said);
        let trial = &document["trials"][0];
        assert!(trial["valid"] == true || said.was_read_late(), "{trial}");
        let window = trial["window_s"].as_f64().expect("a window");
        assert!(window > 0.1 && window < 30.0, "{window}");
        let partial = document["partial"].as_str();
        let is_told = partial.is_some_and(|why| why.contains("interrupted"));
        assert!(is_told == is_partial || said.was_read_late(), "{partial:?}");
        let flagged = trial["flags"].as_array().expect("flags").iter();
        assert!(flagged.clone().any(|flag| {
            flag.as_str()
                .is_some_and(|flag| flag.starts_with("interrupted"))
        }));
        let rate = ["throughput_bps", "transactions_per_s"]
            .iter()
            .find_map(|name| trial["responses"][name].as_f64());
        assert!(rate > Some(100.0), "{}", trial["responses"]);
        if flags.contains(&"--rr") {
            assert!(
                trial["flows"]
                    .as_array()
                    .expect("flows")
                    .iter()
                    .any(|flow| flow["latency"]["n"].as_u64() > Some(10))
            );
        }
        server.wait_busy(false);
    }
}

#[test]
fn an_interruption_before_the_window_measures_nothing() {
    let server = Server::start(&[]);
    let run = linerate(&["run", &server.host(), "-t", "60", "-O", "60"]).start();
    wait_for_workers(&server);
    run.signal(Signal::SIGTERM);
    run.end()
        .failed(130, &["nothing was measured: interrupted", "next:"]);
    server.wait_busy(false);
}

#[test]
fn an_interrupted_experiment_keeps_its_trials() {
    let _load = loading();
    let server = Server::start(&[]);
    let Eight { run, out, _folder } = eight(&[&server.host()]);
    // The second trial is on its way when the first is in the bundle.
    while std::fs::metadata(format!("{out}/trials.parquet")).is_err()
        && std::fs::read_dir(&out).map_or(0, Iterator::count) < 3
    {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    run.signal(Signal::SIGINT);
    let said = run.end();
    assert_eq!(said.code, 130, "{said:?}");
    said.left_nothing();
    let (document, _) = bundle(&out);
    let cut_short = document["cut_short"].as_str().expect("it was cut short");
    assert_eq!(cut_short, "interrupted");
    server.wait_busy(false);
}

#[test]
fn an_agent_forgets_what_its_controller_left_behind() {
    let server = Server::start(&[]);
    let admit = r#"{"run":"r","label":"l","admission":"exclusive","expected":null}"#;
    let lease = ask(server.address, "POST", "/v1/runs", admit).json();
    let path = format!("/v1/runs/{}", lease["lease"].as_str().expect("a lease"));
    assert_eq!(ask(server.address, "GET", &path, "").status, 200);
    assert_eq!(ask(server.address, "DELETE", &path, "").status, 200);
    assert_eq!(ask(server.address, "GET", &path, "").status, 410);
    assert!(server.info()["busy"].is_null());
}
