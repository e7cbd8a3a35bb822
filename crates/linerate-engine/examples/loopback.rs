//! Runs both ends of a workload over loopback in one process and prints one line of the result.
//!
//! `cargo run --release --example loopback -- KIND SECONDS FLOWS WORKERS BYTES [CPU,CPU…]`
//!
//! KIND is `stream` (BYTES a message), `nodelay` (a stream without Nagle's algorithm) or `rr`
//! (BYTES a request and a response). Each end has WORKERS workers. The line holds payload in
//! Gbit/s, calls or transactions a second, and CPU seconds a GiB of both ends together.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod common;

use std::error::Error;
use std::net::TcpListener;
use std::time::Duration;

use common::cpu_s;
use linerate_engine::{
    EngineConfig, Flow, FlowConfig, FlowResult, Schedule, adopt, connect, launch, now_ns,
};
use linerate_model::Bytes;
use linerate_model::id::FlowId;
use linerate_model::manner::Manner;
use linerate_model::sample::End;
use linerate_model::workload::{Direction, FlowOptions, Part, Traffic};

const USAGE: &str = "arguments: stream|nodelay|rr SECONDS FLOWS WORKERS BYTES [CPU,CPU…]";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, seconds, flows, workers, bytes, cpus @ ..] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let (part, traffic) = traffic(kind, bytes.parse()?)?;
    let options = FlowOptions {
        nagle: (kind == "nodelay").then_some(false),
        ..FlowOptions::default()
    };
    let (near, far) = open(part, &traffic, &options, flows.parse()?)?;
    let cpus = cpus
        .iter()
        .flat_map(|list| list.split(','))
        .map(str::parse)
        .collect::<Result<Vec<usize>, _>>()?;
    let far_cpus = cpus.iter().rev().copied().collect();
    let workers_max = workers.parse()?;
    let seconds: f64 = seconds.parse()?;

    let schedule = schedule((seconds * 1e9) as u64);
    let far = launch(
        far,
        schedule,
        &EngineConfig {
            workers_max,
            cpus: far_cpus,
        },
    )?;
    let near = launch(near, schedule, &EngineConfig { workers_max, cpus })?;
    let near = near.finish();
    let far = far.finish();
    print(seconds, &near, &far)
}

fn traffic(kind: &str, bytes: u64) -> Result<(Part, Traffic), Box<dyn Error>> {
    match kind {
        "stream" | "nodelay" => Ok((
            Part::Sender,
            Traffic::Stream {
                direction: Direction::ToServer,
                message_bytes: Bytes(bytes),
            },
        )),
        "rr" => Ok((
            Part::Requester,
            Traffic::Rr {
                request_bytes: Bytes(bytes),
                response_bytes: Bytes(bytes),
                request_writes: 1,
            },
        )),
        _ => Err(USAGE.into()),
    }
}

fn open(
    part: Part,
    traffic: &Traffic,
    options: &FlowOptions,
    flows: u32,
) -> Result<(Vec<Flow>, Vec<Flow>), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let peer = listener.local_addr()?;
    let config = |flow, end, part| FlowConfig {
        flow: FlowId(flow),
        end,
        part,
        traffic: traffic.clone(),
        options: options.clone(),
        manner: Manner::default(),
    };
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for flow in 0..flows {
        let opened = config(flow, End::Client, part);
        near.push(connect(opened, peer, None, b"", Duration::from_secs(1))?);
        let accepted = config(flow, End::Server, part.opposite());
        far.push(adopt(accepted, listener.accept()?.0.into())?);
    }
    Ok((near, far))
}

fn schedule(length_ns: u64) -> Schedule {
    let start_ns = now_ns() + 20_000_000;
    Schedule {
        start_ns,
        measure_begin_ns: start_ns,
        measure_end_ns: start_ns + length_ns,
        stop_ns: start_ns + length_ns,
    }
}

fn print(seconds: f64, near: &[FlowResult], far: &[FlowResult]) -> Result<(), Box<dyn Error>> {
    let received: u64 = far.iter().map(|result| result.bytes_received).sum();
    let gib = received as f64 / (1_u64 << 30) as f64;
    let cpu_s = cpu_s()?;
    let mut line = format!(
        "gbps {:.3} cpu_s {cpu_s:.2} cpu_s_per_gib {:.4}",
        received as f64 * 8.0 / seconds / 1e9,
        cpu_s / gib
    );
    let transactions: u64 = near
        .iter()
        .filter_map(|result| result.latency.as_ref())
        .map(|latency| latency.count())
        .sum();
    line += &format!(" transactions_per_s {:.0}", transactions as f64 / seconds);
    if let Some(early) = near.iter().chain(far).find_map(|r| r.ended_early.as_ref()) {
        line += &format!(" ended_early {early:?}");
    }
    println!("{line}");
    Ok(())
}
