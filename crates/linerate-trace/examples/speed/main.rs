//! How fast captures are read from the page cache, and what memory it takes.
//!
//! ```sh
//! cargo run --release -p linerate-trace --example speed -- make FOLDER
//! cargo run --release -p linerate-trace --example speed -- FILE [--rounds N] [--tshark]
//! ```
//!
//! The first makes captures to measure with: `bulk.pcapng` (1.5 GB of full-size frames),
//! `open.pcapng` and `closed.pcapng` (a million connections each). The second reads a file in
//! rounds; with `--tshark` each round lets `tshark -q -z conv,tcp` read it too, and the last line
//! is the ratio of the medians.
#![expect(clippy::print_stdout, reason = "an example prints what it measures")]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use linerate_trace::capture::Reader;
use linerate_trace::{Limits, Tracker};

/// Captures to measure with.
mod make;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let first = args
        .first()
        .ok_or("usage: speed make FOLDER | FILE [--rounds N] [--tshark]")?;
    if first == "make" {
        let folder = Path::new(args.get(1).ok_or("speed make FOLDER")?);
        make::bulk(&folder.join("bulk.pcapng"), 1_500_000_000)?;
        make::many(&folder.join("open.pcapng"), 1_000_000, false)?;
        make::many(&folder.join("closed.pcapng"), 1_000_000, true)?;
        return Ok(());
    }
    let rounds = args.iter().position(|word| word == "--rounds");
    let rounds = rounds
        .and_then(|at| args.get(at + 1)?.parse().ok())
        .unwrap_or(3);
    let with_tshark = args.iter().any(|word| word == "--tshark");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(by_us(first)?);
        if with_tshark {
            theirs.push(by_tshark(first)?);
        }
    }
    if let (Some(ours), Some(theirs)) = (median(ours), median(theirs)) {
        println!("tshark takes {:.1} times as long", theirs / ours);
    }
    Ok(())
}

fn by_us(path: &str) -> Result<f64, Failure> {
    let begin = Instant::now();
    let mut tracker = Tracker::new(Limits::default());
    let mut reader = Reader::new(File::open(path)?)?;
    tracker.read(&mut reader, path)?;
    let trace = tracker.finish();
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{seconds:.3} s, {:.2} GB/s, {:.2} M frames/s, {:.0} ns a frame, {} connections, peak {} MB",
        reader.position_bytes() as f64 / seconds / 1e9,
        trace.totals.frames as f64 / seconds / 1e6,
        seconds * 1e9 / trace.totals.frames.max(1) as f64,
        trace.totals.connections,
        peak_kib() * 1024 / 1_000_000,
    );
    Ok(seconds)
}

fn by_tshark(path: &str) -> Result<f64, Failure> {
    let begin = Instant::now();
    let status = Command::new("tshark")
        .args(["-r", path, "-q", "-z", "conv,tcp"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err("tshark failed".into());
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{seconds:.3} s by tshark");
    Ok(seconds)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Returns the most memory that this process had at once, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}
