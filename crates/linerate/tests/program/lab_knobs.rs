//! Host-wide settings as factors: both ends have them during a trial, and nobody else has them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use linerate_model::experiment::Factor;
use linerate_model::run::Recording;
use linerate_model::sample::End;
use nix::sys::signal::Signal;

use crate::common::call::PROGRAM;
use crate::common::{
    Call, NamedLab, Server, copied, file, folder, is_root, linerate, loading, skip,
};

/// How long a lease lasts beyond its last use, with the time that its end and the looks here take.
const LEASE_ENDS_IN: Duration = Duration::from_secs(45);
/// Time between two looks at a host.
const LOOK: Duration = Duration::from_millis(200);

/// Every kind of place that a knob has, in a lab whose frames are those of a wire.
const KNOBS: &str = r#"
format = 1
name = "knobs"
title = "Knobs"
question = "Does each trial have what its level says?"
[workload]
kind = "stream"
congestion = "reno"
[factors]
tso = [false]
mtu = ["auto", 1500, 9000]
gro = [true, false]
rps = [true]
tcp_limit_output_bytes = ["64K"]
tcp_wmem_max = ["1M"]
gso_max_size = ["32K"]
qdisc = ["pfifo"]
tcp_rto_min_us = ["auto"]
[design]
kind = "full"
replicates = 2
[timing]
settle = "0ms"
warm_up = "50ms"
measure = "200ms"
drain = "20ms"
"#;

/// Returns each knob in force at `end` of the flow of trial `at`, and why.
fn in_force(recording: &Recording, at: usize, end: End) -> BTreeMap<String, (String, String)> {
    let trial = &recording.document.plan.trials[at];
    let mut flows = recording.flows_of(trial.id);
    let flow = flows.find(|flow| flow.end == end).expect("both ends");
    let settings = flow.settings.iter();
    let knobs = settings.filter(|setting| {
        Factor::named(&setting.name).is_some_and(|factor| factor.knob().is_some())
    });
    knobs
        .map(|setting| {
            let granted = setting.granted.clone().expect("it was read back");
            assert_eq!(setting.requested.as_ref(), Some(&granted));
            let why = setting.why.clone().unwrap_or_default();
            (setting.name.clone(), (granted, why))
        })
        .collect()
}

#[test]
fn knobs_are_set_at_both_ends_and_put_back_after_each_trial() {
    let _load = loading();
    if NamedLab::up(&[]).is_none() {
        return;
    }
    let folder = folder();
    let path = file(&folder, "knobs.toml", KNOBS);
    let out = folder.path().join("out").display().to_string();
    let words = [
        "run",
        "--lab",
        "--lab-rate",
        "none",
        "--experiment",
        &path,
        "-o",
        &out,
    ];
    let said = linerate(&words).run();
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    said.left_nothing();
    let recording = linerate_store::read(Path::new(&out)).expect("a bundle");
    let trials = &recording.document.plan.trials;
    assert!(trials.len() >= 12, "{}", trials.len());
    for (at, trial) in trials.iter().enumerate().take(12) {
        for end in [End::Client, End::Server] {
            let knobs = in_force(&recording, at, end);
            let granted = |factor: Factor| knobs.get(&*factor.name()).map(|(value, _)| &**value);
            let asked_mtu = trial.cell[&Factor::Mtu].whole().map(|mtu| mtu.to_string());
            assert_eq!(granted(Factor::Mtu), asked_mtu.as_deref(), "{trial:?}");
            let is_merging = trial.cell[&Factor::Gro].to_string() == "on";
            let merging = if is_merging { "1" } else { "0" };
            assert_eq!(granted(Factor::Gro), Some(merging));
            assert_eq!(granted(Factor::Tso), Some("0"));
            assert_eq!(granted(Factor::TcpLimitOutputBytes), Some("65536"));
            assert_eq!(granted(Factor::TcpWmemMax), Some("1048576"));
            assert_eq!(granted(Factor::GsoMaxSize), Some("32768"));
            assert_eq!(granted(Factor::Qdisc), Some("pfifo"));
            assert_ne!(granted(Factor::Rps), Some("0"));
            // Each began with what the hosts were made with, whatever the trial before had set.
            let was = |factor: Factor| knobs.get(&*factor.name()).map(|(_, why)| why.as_str());
            let mtu = was(Factor::Mtu);
            assert!(
                mtu.is_none_or(|why| why.ends_with("it was 1500")),
                "{mtu:?}"
            );
            for (factor, before) in [(Factor::Gro, "1"), (Factor::Tso, "1"), (Factor::Rps, "0")] {
                let why = was(factor).expect("it was set");
                assert!(
                    why.ends_with(&format!("it was {before}")),
                    "{factor}: {why}"
                );
            }
        }
        // Jumbo frames crossed the switch: the handshake agreed on their segments.
        let flow = recording.flows_of(trial.id).next().expect("a flow");
        let mss = flow
            .settings
            .named("TCP_MAXSEG")
            .and_then(|mss| mss.in_force());
        let mss: Option<u32> = mss.and_then(|mss| mss.parse().ok());
        let is_jumbo = trial.cell[&Factor::Mtu].whole() == Some(9000);
        assert!(mss.is_none_or(|mss| (mss > 8000) == is_jumbo), "{mss:?}");
        assert!(flow.bytes_received > 0 || flow.bytes_sent > 0);
    }
}

#[test]
fn a_real_host_is_not_changed() {
    let _load = loading();
    let server = Server::start(&[]);
    let folder = folder();
    let path = file(&folder, "knobs.toml", KNOBS);
    let out = folder.path().join("out").display().to_string();
    let said = linerate(&["run", &server.host(), "--experiment", &path, "-o", &out]).run();
    said.failed(2, &["tso", "host-wide", "--lab", "by hand"]);
    assert!(!Path::new(&out).exists(), "nothing ran");
}

/// Returns an experiment of one trial, `measure` long, that varies what `factors` say.
fn one_trial(factors: &str, measure: &str) -> String {
    format!(
        "format = 1\nname = \"one\"\ntitle = \"One\"\nquestion = \"Is it set?\"\n[workload]\nkind = \"stream\"\n\
         rate = \"10M\"\n[factors]\n{factors}\n[design]\nkind = \"full\"\nreplicates = 1\n[timing]\n\
         settle = \"0ms\"\nwarm_up = \"50ms\"\nmeasure = \"{measure}\"\ndrain = \"20ms\"\n"
    )
}

#[test]
fn what_no_host_of_a_lab_takes_is_refused_before_anything_runs() {
    let _load = loading();
    if NamedLab::up(&[]).is_none() {
        return;
    }
    let folder = folder();
    let out = folder.path().join("out").display().to_string();
    let check = |factors: &str, rate: &str, words: &[&str]| {
        let path = file(&folder, "one.toml", &one_trial(factors, "200ms"));
        let flags = ["run", "--lab", "--lab-rate", rate, "-o", &out];
        let said = linerate(&flags).words(&["--experiment", &path]).run();
        said.failed(2, words).left_nothing();
        assert!(!Path::new(&out).exists(), "nothing ran");
    };
    let unknown = "qdisc = [\"no-such\"]";
    check(unknown, "none", &["qdisc", "`no-such`"]);
    let virtual_device = &["coalescing_us", "not supported"];
    check("coalescing_us = [50]", "none", virtual_device);
    check("queues = [2]", "none", &["queues", "--lab-queues"]);
    let filtered = &["qdisc", "tbf", "--lab-rate none"];
    check("qdisc = [\"pfifo\"]", "1G", filtered);
    check("tcp_rto_min_us = [0]", "none", &["tcp_rto_min_us", "1 to"]);
}

#[test]
fn the_lab_of_an_ordinary_user_has_its_knobs() {
    let _load = loading();
    if !is_root() {
        return skip("being somebody else needs root");
    }
    let folder = folder();
    let program = folder.path().join("program");
    copied(PROGRAM, &program);
    let factors = "mtu = [9000]\ngro = [false]\nrps = [\"auto\", true]\ntcp_limit_output_bytes = [\"64K\"]\nqdisc = [\"pfifo\"]";
    let path = file(&folder, "one.toml", &one_trial(factors, "200ms"));
    for path in [folder.path(), Path::new(&path)] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("root may");
    }
    let (program, out) = (program.display().to_string(), folder.path().join("out"));
    let said = Call::of("chroot")
        .words(&["--userspec=65534:65534", "/", &program, "run", "--lab"])
        .words(&["--lab-rate", "none", "--experiment", &path, "-o"])
        .words(&[&out])
        .with("XDG_RUNTIME_DIR", &folder.path().display().to_string())
        .run();
    if said.code == 1 && said.err.contains("namespace") {
        return skip(&format!(
            "no user namespaces for others: {}",
            said.err.trim()
        ));
    }
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    let recording = linerate_store::read(&out).expect("a bundle");
    for end in [End::Client, End::Server] {
        let knobs = in_force(&recording, 0, end);
        let granted = |factor: Factor| knobs.get(&*factor.name()).map(|(value, _)| &**value);
        assert_eq!(granted(Factor::Mtu), Some("9000"));
        assert_eq!(granted(Factor::Gro), Some("0"));
        assert_eq!(granted(Factor::TcpLimitOutputBytes), Some("65536"));
        assert_eq!(granted(Factor::Qdisc), Some("pfifo"));
    }
    // The kernel asks for root of the machine, which is told before anything runs.
    let plan = &recording.document.plan;
    assert_eq!(plan.left_out.len(), 1, "{:?}", plan.left_out);
    let left_out = &plan.left_out[0];
    assert!(left_out.what.contains("rps on") && left_out.why.contains("root"));
}

#[test]
fn what_a_controller_that_stops_has_changed_is_put_back_when_its_lease_ends() {
    let _load = loading();
    if !is_root() {
        return skip("looking into the hosts of a lab needs root");
    }
    let folder = folder();
    let factors = "tcp_limit_output_bytes = [65537]";
    // Long enough that no end of the trial puts it back.
    let path = file(&folder, "one.toml", &one_trial(factors, "120s"));
    let flags = ["run", "--lab", "--lab-rate", "none", "--experiment", &path];
    let out = folder.path().join("out").display().to_string();
    let going = linerate(&flags).words(&["-o", &out]).start();
    let set_at = |agent: u32| limit_at(agent).as_deref() == Some("65537");
    let began = Instant::now();
    let changed = loop {
        let agents = agents_of(going.id());
        let changed: Vec<u32> = agents.into_iter().filter(|agent| set_at(*agent)).collect();
        // The server and the client of the trial.
        if changed.len() == 2 {
            break changed;
        }
        assert!(began.elapsed() < LEASE_ENDS_IN, "{}", going.err());
        std::thread::sleep(LOOK);
    };
    going.signal(Signal::SIGSTOP);
    let stopped = Instant::now();
    while changed.iter().any(|agent| set_at(*agent)) {
        let waited = stopped.elapsed();
        assert!(waited < LEASE_ENDS_IN, "not put back after {waited:?}");
        std::thread::sleep(LOOK);
    }
    // The hosts are still there: it is the lease that ended.
    assert!(changed.iter().all(|agent| limit_at(*agent).is_some()));
    going.kill();
}

/// Returns the agents of the hosts in the lab of process `id`.
fn agents_of(id: u32) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").expect("the processes").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_agent = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("--lab-host")
    };
    let is_below = |process: &u32| {
        let above = |process: &u32| parent_of(*process);
        std::iter::successors(Some(*process), above).any(|above| above == id)
    };
    numbers.filter(is_agent).filter(is_below).collect()
}

fn parent_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.lines();
    let parent = lines.find_map(|line| line.strip_prefix("PPid:"))?;
    parent.trim().parse().ok().filter(|parent| *parent > 0)
}

/// Returns the output limit of TCP in the network of process `id`.
fn limit_at(id: u32) -> Option<String> {
    let place = "/proc/sys/net/ipv4/tcp_limit_output_bytes";
    let said = Call::of("nsenter")
        .words(&["-t", &id.to_string(), "-n", "cat", place])
        .run();
    (said.code == 0).then(|| said.out.trim().to_owned())
}
