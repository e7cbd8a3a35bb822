//! Runs both ends of flows of datagrams over loopback in one process and prints one line.
//!
//! `cargo run --release --example datagrams -- KIND SECONDS FLOWS BYTES SEND RECEIVE SENDERS RECEIVERS [MBIT]`
//!
//! KIND is `stream` or `rr`. SEND is `plain`, `batch:N` or `segments:N`; RECEIVE is `plain`,
//! `discard`, `batch:N`, `batchdiscard:N` or `gro`. SENDERS and RECEIVERS are the CPUs of the two
//! ends, as a list, or `any`. MBIT is the rate of each flow in Mbit/s. The line holds datagrams
//! sent and received a second, or requests answered, and where the rest was lost.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::net::UdpSocket;
use std::time::Duration;

use linerate_engine::{
    EngineConfig, Flow, FlowConfig, FlowResult, Schedule, adopt, connect, launch, now_ns,
};
use linerate_model::Bytes;
use linerate_model::datagram::{Balance, Datagrams, Evidence};
use linerate_model::id::FlowId;
use linerate_model::manner::{Manner, ReceiveBy, Transport, WaitBy};
use linerate_model::sample::End;
use linerate_model::workload::{Direction, FlowOptions, Part, Traffic};

const USAGE: &str = "arguments: stream|rr SECONDS FLOWS BYTES plain|batch:N|segments:N \
    plain|discard|batch:N|batchdiscard:N|gro SENDERS RECEIVERS [MBIT]";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [
        kind,
        seconds,
        flows,
        bytes,
        send,
        receive,
        near_cpus,
        far_cpus,
        rate @ ..,
    ] = &arguments[..]
    else {
        return Err(USAGE.into());
    };
    let bytes = Bytes(bytes.parse()?);
    let (part, traffic) = match kind.as_str() {
        "rr" => {
            let traffic = Traffic::Rr {
                request_bytes: bytes,
                response_bytes: bytes,
                request_writes: 1,
            };
            (Part::Requester, traffic)
        }
        _ => {
            let traffic = Traffic::Stream {
                direction: Direction::ToServer,
                message_bytes: bytes,
            };
            (Part::Sender, traffic)
        }
    };
    let mut manner = manner(send, receive)?;
    if let Some(rate) = rate.first() {
        manner.rate_bps = Some(rate.parse::<u64>()? * 1_000_000);
    }
    let seconds: f64 = seconds.parse()?;
    let (near, far) = open(part, &traffic, &manner, flows.parse()?)?;
    let start_ns = now_ns() + 20_000_000;
    let end_ns = start_ns + (seconds * 1e9) as u64;
    let schedule = Schedule {
        start_ns,
        measure_begin_ns: start_ns,
        measure_end_ns: end_ns,
        stop_ns: end_ns,
    };
    let far = launch(far, schedule, &workers(far_cpus)?)?;
    let near = launch(near, schedule, &workers(near_cpus)?)?;
    print(seconds, &near.finish(), &far.finish(), &manner);
    Ok(())
}

fn manner(send: &str, receive: &str) -> Result<Manner, Box<dyn Error>> {
    let mut manner = Manner {
        transport: Transport::Udp,
        ..Manner::default()
    };
    for word in [send, receive] {
        let (name, count) = word.split_once(':').unwrap_or((word, "1"));
        let count: u32 = count.parse()?;
        match name {
            "plain" => {}
            "spin" => manner.wait = WaitBy::Spin,
            "batch" => manner.batch = count,
            "batchdiscard" => {
                manner.batch = count;
                manner.receive = ReceiveBy::Discard;
            }
            "segments" => manner.segments = count,
            "discard" => manner.receive = ReceiveBy::Discard,
            "gro" => manner.gro = true,
            _ => return Err(USAGE.into()),
        }
    }
    Ok(manner)
}

fn workers(cpus: &str) -> Result<EngineConfig, Box<dyn Error>> {
    let cpus = match cpus {
        "any" => Vec::new(),
        list => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
    };
    let online = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(EngineConfig {
        workers_max: if cpus.is_empty() { online } else { cpus.len() },
        cpus,
    })
}

fn open(
    part: Part,
    traffic: &Traffic,
    manner: &Manner,
    flows: u32,
) -> Result<(Vec<Flow>, Vec<Flow>), Box<dyn Error>> {
    let config = |flow, end, part| FlowConfig {
        flow: FlowId(flow),
        end,
        part,
        traffic: traffic.clone(),
        options: FlowOptions::default(),
        manner: manner.clone(),
    };
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for flow in 0..flows {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let opened = config(flow, End::Client, part);
        let peer = socket.local_addr()?;
        let opened = connect(opened, peer, None, b"", Duration::from_secs(1))?;
        socket.connect(opened.local().ip().expect("UDP has addresses"))?;
        near.push(opened);
        far.push(adopt(
            config(flow, End::Server, part.opposite()),
            socket.into(),
        )?);
    }
    Ok((near, far))
}

fn print(seconds: f64, near: &[FlowResult], far: &[FlowResult], manner: &Manner) {
    let sum = |ends: &[FlowResult], of: fn(&Datagrams) -> u64| -> u64 {
        ends.iter()
            .filter_map(|end| end.datagrams.as_deref())
            .map(of)
            .sum()
    };
    let sent = sum(near, |counts| counts.sent);
    let received = sum(far, Datagrams::distinct);
    let balance = Balance::of(&Evidence {
        sent,
        received,
        refused: sum(near, |counts| counts.refused),
        socket_drops: Some(sum(far, |counts| counts.socket_drops.unwrap_or(0))),
        datagrams_per_drop: if manner.gro {
            manner.segments.into()
        } else {
            1
        },
        ..Evidence::default()
    });
    let answered: u64 = near.iter().map(|end| end.transactions).sum();
    let lost: Vec<String> = balance
        .lost
        .iter()
        .map(|(place, count)| format!("{count} {}", place.words()))
        .collect();
    println!(
        "sent_per_s {:.0} received_per_s {:.0} answered_per_s {:.0} lost [{}]",
        sent as f64 / seconds,
        received as f64 / seconds,
        answered as f64 / seconds,
        lost.join(", ")
    );
    for end in near.iter().chain(far) {
        if let Some(early) = &end.ended_early {
            println!("flow {} ended early: {early}", end.flow.0);
        }
    }
}
