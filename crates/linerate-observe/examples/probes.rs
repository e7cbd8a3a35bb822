//! Measures what the probes cost that are off unless asked for: time in interrupts, and the profile.
//!
//! A thread sends datagrams to itself through loopback, each of which raises one soft interrupt that
//! is handled at once, and counts its CPU time; rounds with and without a probe alternate.
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use linerate_model::probe::Probes;
use linerate_observe::{ObserveConfig, Profiler, Scope, load_symbols, probes};
use nix::time::{ClockId, clock_gettime};

/// Datagrams of a round, some 60 ms.
const DATAGRAMS: u32 = 40_000;
/// Rounds of each kind.
const ROUNDS: usize = 15;

fn main() -> std::io::Result<()> {
    let config = ObserveConfig {
        proc_root: "/proc".into(),
        sys_root: "/sys".into(),
        lab: false,
        host_wide: true,
        threads: vec![("main".to_owned(), nix::unistd::gettid().as_raw())],
    };
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let before = thread_cpu_time();
    load_symbols(Path::new("/proc"));
    println!(
        "symbols      {:8.1} ms once",
        (thread_cpu_time() - before).as_secs_f64() * 1e3
    );
    let (mut plain, mut counted, mut looked) = (Vec::new(), Vec::new(), Vec::new());
    let mut out = Vec::new();
    for _ in 0..ROUNDS {
        plain.push(round(&socket)?);
        let asked = Probes {
            irq_time: true,
            profile: false,
            ..Probes::default()
        };
        let observers = probes(&config, asked);
        counted.push(round(&socket)?);
        drop(observers);
        let mut profiler = Profiler::open(&config, Scope::OwnThreads, 0..u64::MAX);
        let begin = thread_cpu_time();
        let spent = round(&socket)?;
        let looking = thread_cpu_time() - begin;
        let before = thread_cpu_time();
        out.clear();
        profiler.sample(&mut out);
        let taken = thread_cpu_time() - before;
        looked.push(spent);
        let looks: i64 = out.iter().map(|sample| sample.value).sum();
        if looked.len() == ROUNDS {
            println!(
                "taking up    {:8.2} µs a look ({looks} in {:.0} ms)",
                taken.as_secs_f64() * 1e6 / looks.max(1) as f64,
                looking.as_secs_f64() * 1e3,
            );
        }
    }
    let plain = middle(plain);
    println!("no probe     {plain:8.0} ns of CPU a datagram");
    for (name, times) in [("irq_time", counted), ("profile", looked)] {
        let time = middle(times);
        let percent = 100.0 * (time / plain - 1.0);
        println!(
            "{name:12} {time:8.0} ns, {:+.0} ns, {percent:+.1} %",
            time - plain
        );
    }
    Ok(())
}

/// Returns the CPU time of one datagram, in ns.
fn round(socket: &UdpSocket) -> std::io::Result<f64> {
    let address = socket.local_addr()?;
    let mut buffer = [0; 64];
    let begin = thread_cpu_time();
    for _ in 0..DATAGRAMS {
        socket.send_to(&[0; 64], address)?;
        socket.recv(&mut buffer)?;
    }
    Ok((thread_cpu_time() - begin).as_secs_f64() * 1e9 / f64::from(DATAGRAMS))
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn thread_cpu_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}
