//! Host-wide settings as factors: both ends have them during a trial, and nobody else has them.

use std::collections::BTreeMap;
use std::path::Path;

use linerate_model::experiment::Factor;
use linerate_model::run::Recording;
use linerate_model::sample::End;

use crate::common::{NamedLab, Server, file, folder, linerate, loading};

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
