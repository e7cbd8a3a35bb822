//! Runs both ends of a workload of transactions over loopback in one process and prints one line.
//!
//! `cargo run --release --example transactions -- rr|crr|idle KEY=VALUE…`
//!
//! | key | value |
//! |---|---|
//! | `seconds` | length of the window, 1 by default |
//! | `flows` | 64 by default |
//! | `bytes` | of a request and of a response, 1 by default |
//! | `workers` | of each end, 1 by default |
//! | `near`, `far` | CPUs of the workers of the client's and of the server's end: `0,1` |
//! | `wait` | `auto`, `epoll`, `uring` or `spin` |
//! | `in_flight`, `batch` | requests under way, and in a call |
//! | `rate` | requests a second of each flow (open loop) |
//! | `think_us` | pause between a response and the next request |
//!
//! The line holds transactions a second, CPU microseconds of both ends for each, quantiles of the
//! latency in microseconds, and how the workers waited.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod common;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::TcpListener;
use std::time::Duration;

use common::cpu_s;
use linerate_engine::{
    EngineConfig, Flow, FlowConfig, FlowResult, Schedule, adopt, connect, launch, listen, now_ns,
};
use linerate_model::histogram::Histogram;
use linerate_model::id::FlowId;
use linerate_model::manner::{Manner, WaitBy};
use linerate_model::sample::End;
use linerate_model::workload::{FlowOptions, Part, Traffic};
use linerate_model::{Bytes, Nanos};

/// What was asked for.
struct Asked(BTreeMap<String, String>);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let pair = |text: String| {
        let (key, value) = text.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    };
    let asked = Asked(arguments.map_while(pair).collect());
    let traffic = traffic(&kind, asked.number("bytes", 1)?)?;
    let (near, far) = open(
        &traffic,
        &asked.manner()?,
        asked.number("flows", 64)? as u32,
    )?;
    let seconds: f64 = asked
        .0
        .get("seconds")
        .map_or(Ok(1.0), |text| text.parse())?;
    let schedule = schedule((seconds * 1e9) as u64);
    let workers_max = asked.number("workers", 1)? as usize;
    let config = |key| -> Result<EngineConfig, Box<dyn Error>> {
        let cpus = asked.cpus(key)?;
        Ok(EngineConfig { workers_max, cpus })
    };
    let far = launch(far, schedule, &config("far")?)?;
    let near = launch(near, schedule, &config("near")?)?;
    print(seconds, &near.finish(), &far.finish())
}

impl Asked {
    fn number(&self, key: &str, default: u64) -> Result<u64, Box<dyn Error>> {
        Ok(self.0.get(key).map_or(Ok(default), |text| text.parse())?)
    }

    fn cpus(&self, key: &str) -> Result<Vec<usize>, Box<dyn Error>> {
        let list = self.0.get(key).map_or("", String::as_str);
        let numbers = list.split(',').filter(|text| !text.is_empty());
        Ok(numbers.map(str::parse).collect::<Result<_, _>>()?)
    }

    fn manner(&self) -> Result<Manner, Box<dyn Error>> {
        let wait = match self.0.get("wait").map(String::as_str) {
            None | Some("auto") => WaitBy::Auto,
            Some("epoll") => WaitBy::Epoll,
            Some("uring") => WaitBy::Uring,
            Some("spin") => WaitBy::Spin,
            Some(other) => return Err(format!("wait={other}").into()),
        };
        let rate = self.number("rate", 0)? as u32;
        let think_us = self.number("think_us", 0)?;
        Ok(Manner {
            wait,
            in_flight: self.number("in_flight", 1)? as u32,
            batch: self.number("batch", 1)? as u32,
            requests_per_s: (rate > 0).then_some(rate),
            think: (think_us > 0).then_some(Nanos(think_us * 1000)),
            ..Manner::default()
        })
    }
}

fn traffic(kind: &str, bytes: u64) -> Result<Traffic, Box<dyn Error>> {
    match kind {
        "rr" => Ok(Traffic::Rr {
            request_bytes: Bytes(bytes),
            response_bytes: Bytes(bytes),
            request_writes: 1,
        }),
        "crr" => Ok(Traffic::Crr {
            request_bytes: Bytes(bytes),
            response_bytes: Bytes(bytes),
        }),
        "idle" => Ok(Traffic::Idle),
        _ => Err("arguments: rr|crr|idle KEY=VALUE…, see the head of this example".into()),
    }
}

fn open(
    traffic: &Traffic,
    manner: &Manner,
    flows: u32,
) -> Result<(Vec<Flow>, Vec<Flow>), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let peer = listener.local_addr()?;
    let config = |flow, end, part| FlowConfig {
        flow: FlowId(flow),
        end,
        part,
        traffic: traffic.clone(),
        options: FlowOptions::default(),
        manner: manner.clone(),
    };
    let part = match traffic {
        Traffic::Idle => Part::Sender,
        _ => Part::Requester,
    };
    let second = Duration::from_secs(1);
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for flow in 0..flows {
        let opened = config(flow, End::Client, part);
        let accepted = config(flow, End::Server, part.opposite());
        if let Traffic::Crr { .. } = traffic {
            let place = listen(accepted, peer.ip())?;
            let port = place.local().ip().ok_or("the place has no port")?;
            near.push(connect(opened, port, None, b"", second)?);
            far.push(place);
            continue;
        }
        near.push(connect(opened, peer, None, b"", second)?);
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
    let mut latency = Histogram::default();
    for record in near.iter().filter_map(|result| result.latency.as_ref()) {
        latency.merge(record);
    }
    let complete: u64 = near.iter().map(|result| result.transactions).sum();
    let us = |q| {
        latency
            .quantile(q)
            .map_or(0.0, |nanos| nanos.0 as f64 / 1e3)
    };
    let mut line = format!(
        "per_s {:.0} cpu_us {:.3} p50_us {:.1} p99_us {:.1} p999_us {:.1}",
        latency.count() as f64 / seconds,
        cpu_s()? * 1e6 / complete as f64,
        us(0.5),
        us(0.99),
        us(0.999),
    );
    for setting in near.iter().take(1).flat_map(|result| &result.settings) {
        if ["wait", "requests", "connections"].contains(&setting.name.as_str()) {
            let effective = setting.effective.as_deref().unwrap_or("?");
            line += &format!(" {} {effective:?}", setting.name);
        }
    }
    if let Some(early) = near.iter().chain(far).find_map(|r| r.ended_early.as_ref()) {
        line += &format!(" ended_early {early:?}");
    }
    println!("{line}");
    Ok(())
}
