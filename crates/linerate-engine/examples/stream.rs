//! Runs both ends of bulk flows over loopback in one process and prints one line of the result.
//!
//! `cargo run --release --example stream -- SECONDS [KEY=VALUE]…`
//!
//! Keys: `flows`, `workers` (of each end), `bytes` (a message), `batch`, `send` and `receive` (as
//! in an experiment file: `copy`, `auto`, `vmsplice`, `msg_zerocopy`, `sendfile`; `copy`,
//! `discard`), `cc` (congestion control), `nagle` and `cork` (`true`, `false`), `near` and `far`
//! (CPUs of the senders and of the receivers, with commas), `sample_ms` (reads every flow that
//! often), `rate` (bits a second of each flow), `cap` (payload of each flow), `from` (sizes are
//! uniform between this and `bytes`).

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod common;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::TcpListener;
use std::time::Duration;

use common::cpu_s;
use linerate_engine::{
    EngineConfig, Flow, FlowConfig, FlowResult, Schedule, adopt, connect, launch, now_ns,
};
use linerate_model::Bytes;
use linerate_model::id::FlowId;
use linerate_model::manner::{Manner, ReceiveBy, SendBy, Sizes};
use linerate_model::sample::End;
use linerate_model::workload::{Direction, FlowOptions, Part, Traffic};

type Failure = Box<dyn Error>;

struct Keys(BTreeMap<String, String>);

impl Keys {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Failure> {
        self.text(key).map(|text| Ok(text.parse()?)).transpose()
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, Failure> {
        self.text(key).map(|text| Ok(text.parse()?)).transpose()
    }

    fn cpus(&self, key: &str) -> Result<Vec<usize>, Failure> {
        let text = self.text(key).unwrap_or("");
        let cpus = text.split(',').filter(|cpu| !cpu.is_empty());
        cpus.map(|cpu| Ok(cpu.parse()?)).collect()
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments
        .next()
        .ok_or("arguments: SECONDS [KEY=VALUE]…")?
        .parse()?;
    let pairs = arguments.map(|text| match text.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(format!("`{text}` is not KEY=VALUE")),
    });
    let keys = Keys(pairs.collect::<Result<_, _>>()?);
    let (near, far) = open(&keys)?;
    let length_ns = (seconds * 1e9) as u64;
    let start_ns = now_ns() + 20_000_000;
    let schedule = Schedule {
        start_ns,
        measure_begin_ns: start_ns,
        measure_end_ns: start_ns + length_ns,
        stop_ns: start_ns + length_ns,
    };
    let workers_max = keys.number("workers")?.unwrap_or(2) as usize;
    let config = |cpus| EngineConfig { workers_max, cpus };
    let mut far = launch(far, schedule, &config(keys.cpus("far")?))?;
    let mut near = launch(near, schedule, &config(keys.cpus("near")?))?;
    let mut samples = Vec::new();
    if let Some(pause_ms) = keys.number("sample_ms")? {
        while !far.done() {
            std::thread::sleep(Duration::from_millis(pause_ms));
            near.sample(&mut samples);
            far.sample(&mut samples);
        }
    }
    print(seconds, &near.finish(), &far.finish())
}

fn open(keys: &Keys) -> Result<(Vec<Flow>, Vec<Flow>), Failure> {
    let bytes = Bytes(keys.number("bytes")?.unwrap_or(128 << 10));
    let traffic = Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: bytes,
    };
    let options = FlowOptions {
        nagle: keys.switch("nagle")?,
        cork: keys.switch("cork")?,
        congestion: keys.text("cc").map(str::to_owned),
        ..FlowOptions::default()
    };
    let manner = Manner {
        send: match keys.text("send") {
            Some("auto") => SendBy::Auto,
            Some("vmsplice") => SendBy::Vmsplice,
            Some("msg_zerocopy") => SendBy::MsgZerocopy,
            Some("sendfile") => SendBy::Sendfile,
            _ => SendBy::Copy,
        },
        receive: match keys.text("receive") {
            Some("discard") => ReceiveBy::Discard,
            _ => ReceiveBy::Copy,
        },
        batch: keys.number("batch")?.unwrap_or(1) as u32,
        rate_bps: keys.number("rate")?,
        bytes_max: keys.number("cap")?.map(Bytes),
        sizes: keys.number("from")?.map(|low| Sizes::Uniform {
            low: Bytes(low),
            high: bytes,
        }),
        ..Manner::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let peer = listener.local_addr()?;
    let config = |flow, end, part| FlowConfig {
        flow: FlowId(flow),
        end,
        part,
        traffic: traffic.clone(),
        options: options.clone(),
        manner: manner.clone(),
    };
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for flow in 0..keys.number("flows")?.unwrap_or(1) as u32 {
        let opened = config(flow, End::Client, Part::Sender);
        near.push(connect(opened, peer, None, b"", Duration::from_secs(1))?);
        let accepted = config(flow, End::Server, Part::Receiver);
        far.push(adopt(accepted, listener.accept()?.0.into())?);
    }
    Ok((near, far))
}

fn print(seconds: f64, near: &[FlowResult], far: &[FlowResult]) -> Result<(), Failure> {
    let sum = |results: &[FlowResult], of: fn(&FlowResult) -> u64| -> u64 {
        results.iter().map(of).sum()
    };
    let received = sum(far, |result| result.bytes_received);
    let messages = sum(far, |result| result.messages);
    let gib = received as f64 / (1_u64 << 30) as f64;
    let mut line = format!(
        "gbps {:.3} messages_per_s {:.0} cpu_s_per_gib {:.4}",
        received as f64 * 8.0 / seconds / 1e9,
        messages as f64 / seconds,
        cpu_s()? / gib
    );
    for (end, name) in [(near, "send"), (near, "pace"), (far, "receive")] {
        let settings = end.iter().flat_map(|result| &result.settings);
        if let Some(setting) = settings.into_iter().find(|setting| setting.name == name) {
            let granted = setting.granted.as_deref().unwrap_or("");
            let effective = setting.effective.as_deref().unwrap_or("");
            line += &format!(" | {name}: {granted}; {effective}");
        }
    }
    if sum(near, |result| result.bytes_sent) != received
        || sum(near, |result| result.messages) != messages
    {
        line += " | THE ENDS DISAGREE";
    }
    if let Some(early) = near.iter().chain(far).find_map(|r| r.ended_early.as_ref()) {
        line += &format!(" | ended_early {early:?}");
    }
    println!("{line}");
    Ok(())
}
