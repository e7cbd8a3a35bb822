//! Runs both ends of a workload over loopback in one process, without an agent, and prints a line.
//!
//! `cargo run --release -p linerate-engine --example loopback -- WORKLOAD [KEY=VALUE]…`
//!
//! WORKLOAD is the document that agents get:
//! `{"traffic":{"kind":"rr","request_bytes":1,"response_bytes":1,"request_writes":1},
//! "connections":64,"clients":1,"manner":{"wait":"epoll"}}`. Keys: `seconds`, `workers` (of each end),
//! `near` and `far` (the CPUs of the two ends, `0,1`), `sample_ms` (reads every flow that often).
//!
//! The line holds what came of the window a second, the CPU time of both ends, quantiles of the latency
//! in microseconds, where datagrams were lost, and how the first flow's ends did it.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use linerate_engine::{
    Calls, Cpus, Door, EngineConfig, Flow, FlowConfig, FlowResult, Schedule, adopt, await_calls,
    connect, launch, now_ns,
};
use linerate_model::datagram::{Balance, Datagrams, Evidence};
use linerate_model::histogram::Histogram;
use linerate_model::manner::{Manner, Transport};
use linerate_model::sample::End;
use linerate_model::workload::{Traffic, Workload};

type Failure = Box<dyn Error>;

/// Ticks a second in /proc (USER_HZ), the same on every Linux that we run on.
const TICKS_PER_S: f64 = 100.0;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (workload, keys) = arguments.split_first().ok_or("WORKLOAD [KEY=VALUE]…")?;
    let workload: Workload = serde_json::from_str(workload)?;
    workload.check()?;
    let value = |key: &str| {
        let mut pairs = keys.iter().filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(known, value)| (known == key).then_some(value))
    };
    let seconds: f64 = value("seconds").unwrap_or("1").parse()?;
    let engine = |key| -> Result<EngineConfig, Failure> {
        let cpus = value(key).into_iter().flat_map(|list| list.split(','));
        Ok(EngineConfig {
            workers_max: value("workers").unwrap_or("1").parse()?,
            cpus: Cpus::InTurn(cpus.map(str::parse).collect::<Result<_, _>>()?),
        })
    };
    let (near, far) = open(&workload)?;
    let start_ns = now_ns() + 20_000_000;
    let end_ns = start_ns + (seconds * 1e9) as u64;
    let schedule = Schedule {
        start_ns,
        measure_begin_ns: start_ns,
        measure_end_ns: end_ns,
        stop_ns: end_ns,
        skew_ns: 0,
    };
    let mut far = launch(far, schedule, &engine("far")?)?;
    let mut near = launch(near, schedule, &engine("near")?)?;
    if let Some(pause_ms) = value("sample_ms") {
        let pause = Duration::from_millis(pause_ms.parse()?);
        let mut samples = Vec::new();
        while !far.done() {
            std::thread::sleep(pause);
            near.sample(&mut samples);
            far.sample(&mut samples);
        }
    }
    print(seconds, &near.finish(), &far.finish(), &workload.manner)
}

fn open(workload: &Workload) -> Result<(Vec<Flow>, Vec<Flow>), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let peer = listener.local_addr()?;
    let second = Duration::from_secs(1);
    let (mut near, mut far) = (Vec::new(), Vec::new());
    // Where connections come and go, the workers accept.
    listener.set_nonblocking(workload.traffic.is_placed())?;
    let door = Door {
        listener: listener.try_clone()?.into(),
        tell: Box::new(drop),
    };
    let calls = Calls::new(Some(door))?;
    for plan in workload.flows() {
        let config = |end, part| FlowConfig {
            flow: plan.flow,
            end,
            part,
            traffic: workload.traffic.clone(),
            options: workload.options.clone(),
            manner: workload.manner.clone(),
        };
        let opened = config(End::Client, plan.client_part);
        let accepted = config(End::Server, plan.client_part.opposite());
        if workload.manner.transport == Transport::Udp {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            let opened = connect(opened, socket.local_addr()?, None, b"", second)?;
            socket.connect(opened.local().ip().ok_or("the flow has no address")?)?;
            near.push(opened);
            far.push(adopt(accepted, socket.into())?);
        } else if let Traffic::Crr { .. } = workload.traffic {
            let mut hello = [0; 32];
            hello[..4].copy_from_slice(&plan.flow.0.to_be_bytes());
            near.push(connect(opened, peer, None, &hello, second)?);
            far.push(await_calls(accepted, hello, &calls)?);
        } else {
            near.push(connect(opened, peer, None, b"", second)?);
            far.push(adopt(accepted, listener.accept()?.0.into())?);
        }
    }
    Ok((near, far))
}

fn print(
    seconds: f64,
    near: &[FlowResult],
    far: &[FlowResult],
    manner: &Manner,
) -> Result<(), Failure> {
    let both = || near.iter().chain(far);
    let received: u64 = both().map(|end| end.bytes_received).sum();
    let messages: u64 = far.iter().map(|end| end.messages).sum();
    let transactions: u64 = near.iter().map(|end| end.transactions).sum();
    let cpu_s = cpu_s()?;
    let mut line = format!(
        "gbps {:.3} messages_per_s {:.0} transactions_per_s {:.0} cpu_s {cpu_s:.2}",
        received as f64 * 8.0 / seconds / 1e9,
        messages as f64 / seconds,
        transactions as f64 / seconds,
    );
    let mut latency = Histogram::default();
    for record in near.iter().filter_map(|end| end.latency.as_ref()) {
        latency.merge(record);
    }
    for (name, q) in [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)] {
        if let Some(nanos) = latency.quantile(q) {
            line += &format!(" {name} {:.1}", nanos.0 as f64 / 1e3);
        }
    }
    if manner.transport == Transport::Udp {
        line += &lost(near, far);
    }
    for (end, names) in [(near, ["send", "pace", "wait"]), (far, ["receive", "", ""])] {
        let settings = end.first().map(|end| &end.settings);
        for setting in names.iter().filter_map(|name| settings?.named(name)) {
            let granted = setting.granted.as_deref().unwrap_or("");
            let effective = setting.effective.as_deref().unwrap_or("");
            line += &format!(" | {}: {granted}; {effective}", setting.name);
        }
    }
    if let Some(early) = both().find_map(|end| end.ended_early.as_ref()) {
        line += &format!(" | ended early: {early}");
    }
    println!("{line}");
    Ok(())
}

/// Returns what of the datagrams to the server was lost, and where.
fn lost(near: &[FlowResult], far: &[FlowResult]) -> String {
    let sum = |ends: &[FlowResult], of: fn(&Datagrams) -> u64| -> u64 {
        let counts = ends.iter().filter_map(|end| end.datagrams.as_deref());
        counts.map(of).sum()
    };
    let balance = Balance::of(&Evidence {
        sent: sum(near, |counts| counts.sent),
        received: sum(far, Datagrams::distinct),
        refused: sum(near, |counts| counts.refused),
        socket_drops: Some(sum(far, |counts| counts.dropped_at_socket().unwrap_or(0))),
        ..Evidence::default()
    });
    let places = balance
        .lost
        .iter()
        .map(|(place, count)| format!(" {count} {}", place.words()));
    format!(" lost [{} ]", places.collect::<String>())
}

/// Returns user and system time of this process so far, in seconds.
fn cpu_s() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // After the name in parentheses, which may hold blanks: field 3 and on; 14 and 15 are utime
    // and stime.
    let after_name = text.rsplit(')').next().unwrap_or("");
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: Vec<f64> = ticks.map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_PER_S)
}
