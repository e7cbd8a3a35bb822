//! What is asserted of labs.
use crate::probe;
use linerate_lab::*;
use linerate_model::{BitsPerSec, Nanos};
use std::process::ExitCode;

pub const SCENARIOS: &[(&str, fn(&Entered))] =
    &[("wire", wire), ("delay", delay), ("shell", shell)];

pub fn run(name: &str) -> ExitCode {
    let entered = match enter() {
        Ok(e) => e,
        Err(error) => {
            println!("{error}");
            return ExitCode::from(77);
        }
    };
    for (n, f) in SCENARIOS {
        if *n == name {
            f(&entered);
        }
    }
    ExitCode::SUCCESS
}
fn pair(link: LinkSpec) -> LabSpec {
    LabSpec {
        name: "x".into(),
        hosts: ["a", "b"]
            .iter()
            .map(|n| HostSpec {
                name: (*n).into(),
                link: link.clone(),
            })
            .collect(),
    }
}
fn wire(e: &Entered) {
    let lab = Lab::up(
        &pair(LinkSpec {
            rate: Some(BitsPerSec(1e9)),
            ..LinkSpec::default()
        }),
        e,
    )
    .expect("up");
    println!("{:?} {:?}", lab.hosts(), lab.degraded());
    let r = probe::measure(&lab, ["tcp-sink", "tcp-source"], ["a", "b"], 2000);
    println!("rate {r}");
    let r = probe::measure(&lab, ["udp-echo", "udp-ping"], ["a", "b"], 1000);
    println!("rtt {r}");
    lab.down().expect("down");
}
fn delay(e: &Entered) {
    let mut spec = pair(LinkSpec {
        rate: Some(BitsPerSec(1e9)),
        ..LinkSpec::default()
    });
    spec.hosts[1].link.delay = Nanos::from_ms(5);
    let lab = Lab::up(&spec, e).expect("up");
    let r = probe::measure(&lab, ["udp-echo", "udp-ping"], ["a", "b"], 100);
    println!("rtt {r} {:?}", lab.relay_counts());
    let r = probe::measure(&lab, ["tcp-sink", "tcp-source"], ["a", "b"], 2000);
    println!("rate {r} {:?}", lab.relay_counts());
    lab.down().expect("down");
}
fn shell(e: &Entered) {
    let mut spec = pair(LinkSpec {
        rate: std::env::var("RATE").ok().map(|r| r.parse().expect("rate")),
        ..LinkSpec::default()
    });
    if let Ok(d) = std::env::var("DELAY") {
        spec.hosts[1].link.delay = d.parse().expect("delay");
    }
    let lab = Lab::up(&spec, e).expect("up");
    let Ok(s) = std::env::var("SCRIPT") else {
        return;
    };
    let mut server = lab
        .command("a", "iperf3")
        .expect("x")
        .args(["-s"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("iperf3");
    let st = lab
        .command("b", "sh")
        .expect("x")
        .args(["-c", &s])
        .status()
        .expect("x");
    println!("{st:?} {:?}", lab.relay_counts());
    server.kill().expect("k");
    println!("{:?}", server.wait());
    lab.down().expect("down");
}
