//! Bare loops: about what the kernel allows, and so the yardstick for what a program adds.
//!
//! A probe has two ends, each a process of its own, so that they are placed, counted and compared
//! like any tool. There is nothing in them but the calls: no statistics, no clock in the loop. The
//! client prints one number. Ratios to a probe above 1 mean that a program found a better way than
//! the loop that one would write first, not that it beat the kernel.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};

mod crr;
mod ends;
mod rr;
mod stream;
mod udp;

/// The loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Probe {
    /// `send` of 128 KiB, `recv` into 128 KiB.
    TcpCopy,
    /// `send` of 1 MiB, `recv` with `MSG_TRUNC`.
    TcpTrunc,
    /// `vmsplice` and `splice` from a huge page, `recv` into 128 KiB.
    TcpVmsplice,
    /// `vmsplice` and `splice` from a huge page, `recv` with `MSG_TRUNC`.
    TcpVmspliceTrunc,
    /// One byte each way, blocking calls.
    RrBlock,
    /// One byte each way, both ends spin on a non-blocking `recv`.
    RrSpin,
    /// One byte each way on many flows, one thread with `epoll` at each end.
    RrEpoll,
    /// Connect, one byte each way, close; one thread with `epoll` at each end.
    CrrEpoll,
    /// `send` of 64 bytes, `recvmmsg`.
    Udp,
    /// `send` of 64 × 64 bytes that the kernel cuts, `recvmmsg`.
    UdpGso,
    /// `send` of 100 bytes with `TCP_NODELAY`, `recv` into 64 KiB.
    Messages,
    /// `send` of 640 messages of 100 bytes, `recv` into 64 KiB.
    MessagesBatched,
}

/// `bench probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// The loop
    probe: Probe,
    /// Flows
    #[arg(long, default_value_t = 1)]
    flows: usize,
    /// Bytes of each call of a stream's receiver [default: the probe's]
    #[arg(long)]
    read: Option<usize>,
    /// Bytes of each call of a stream's sender [default: the probe's]
    #[arg(long)]
    write: Option<usize>,
    #[command(subcommand)]
    end: Role,
}

/// Which end.
#[derive(Debug, Subcommand)]
enum Role {
    /// Serve until killed
    Serve {
        /// Port to listen on, which it says first; 0 for a free one
        port: u16,
    },
    /// Run against a server, print the number
    Run {
        /// The server's address
        host: String,
        /// Its port
        port: u16,
        /// Seconds
        seconds: u64,
    },
}

/// How long the loops go on: set once the time is over.
static OVER: AtomicBool = AtomicBool::new(false);

fn over() -> bool {
    OVER.load(Ordering::Relaxed)
}

/// Ends the loops after `seconds` from now; returns now.
fn begin(seconds: u64) -> Instant {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        OVER.store(true, Ordering::Relaxed);
    });
    Instant::now()
}

/// Runs one end.
pub fn probe(args: &ProbeArgs) -> anyhow::Result<()> {
    let stream = |ends: ends::Ends| ends::Ends {
        read: args.read.unwrap_or(ends.read),
        write: args.write.unwrap_or(ends.write),
        ..ends
    };
    let ends = match args.probe {
        Probe::TcpCopy => Some(ends::COPY),
        Probe::TcpTrunc => Some(ends::TRUNC),
        Probe::TcpVmsplice => Some(ends::VMSPLICE),
        Probe::TcpVmspliceTrunc => Some(ends::VMSPLICE_TRUNC),
        Probe::Messages => Some(ends::ONE_EACH),
        Probe::MessagesBatched => Some(ends::BATCHED),
        _ => None,
    };
    let ends = ends.map(stream);
    match (&args.end, args.probe, ends) {
        (Role::Serve { port }, _, Some(ends)) => stream::serve(listen(*port)?, args.flows, ends),
        (Role::Serve { port }, Probe::CrrEpoll, _) => crr::serve(&listen(*port)?),
        (Role::Serve { port }, Probe::Udp | Probe::UdpGso, _) => udp::serve(listen(*port)?),
        (Role::Serve { port }, probe, _) => rr::serve(&listen(*port)?, args.flows, probe),
        (
            Role::Run {
                host,
                port,
                seconds,
            },
            probe,
            ends,
        ) => {
            let at = (host.as_str(), *port);
            let per_second = match (probe, ends) {
                (Probe::Messages | Probe::MessagesBatched, Some(ends)) => {
                    stream::run(at, 1, *seconds, ends)? / ends::MESSAGE_BYTES as f64
                }
                (_, Some(ends)) => stream::run(at, args.flows, *seconds, ends)? * 8.0,
                (Probe::CrrEpoll, _) => crr::run(at, args.flows, *seconds)?,
                (Probe::Udp, _) => udp::run(at, *seconds, 1)?,
                (Probe::UdpGso, _) => udp::run(at, *seconds, udp::SEGMENTS)?,
                (probe, _) => rr::run(at, args.flows, *seconds, probe)?,
            };
            say(per_second);
            Ok(())
        }
    }
}

#[expect(clippy::print_stdout, reason = "the number is the output")]
fn say(per_second: f64) {
    println!("{per_second}");
}

/// Listens, and says on which port: where it is 0, one that the kernel chose.
#[expect(clippy::print_stdout, reason = "who starts a server reads it")]
fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let listener =
        TcpListener::bind(("0.0.0.0", port)).with_context(|| format!("cannot listen on {port}"))?;
    println!("{}", listener.local_addr()?.port());
    Ok(listener)
}

/// Sends a count as the last thing on a connection.
fn tell(mut stream: &TcpStream, count: u64) -> std::io::Result<()> {
    stream.write_all(&count.to_be_bytes())
}

/// Waits for the count that [`tell`] sends.
fn hear(mut stream: &TcpStream) -> std::io::Result<u64> {
    let mut count = [0; 8];
    stream.read_exact(&mut count)?;
    Ok(u64::from_be_bytes(count))
}
