//! How fast captures are read: GB/s and packets/s of a file from the page cache, and the memory
//! that it took. `cargo run --release -p linerate-trace --example speed -- FILE [ROUNDS]`;
//! with `--text` in place of rounds it prints the document in words.
#![expect(clippy::print_stdout, reason = "an example prints what it measures")]

use std::fs::File;
use std::time::Instant;

use linerate_trace::capture::Reader;
use linerate_trace::{Limits, Tracker, text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: speed FILE [ROUNDS | --text]")?;
    let rounds = args.next().unwrap_or_else(|| "3".to_owned());
    for _ in 0..rounds.parse().unwrap_or(1) {
        let begin = Instant::now();
        let mut tracker = Tracker::new(Limits::default());
        let mut reader = Reader::new(File::open(&path)?)?;
        tracker.read(&mut reader, &path)?;
        let trace = tracker.finish();
        let seconds = begin.elapsed().as_secs_f64();
        if rounds == "--text" {
            let look = text::Look {
                columns: 100,
                color: false,
                connections: 10,
            };
            println!("{}", text::text(&trace, look));
        }
        println!(
            "{:.3} s, {:.2} GB/s, {:.2} M frames/s, {:.0} ns a frame, {} connections, peak {} MiB",
            seconds,
            reader.position_bytes() as f64 / seconds / 1e9,
            trace.totals.frames as f64 / seconds / 1e6,
            seconds * 1e9 / trace.totals.frames.max(1) as f64,
            trace.totals.connections,
            peak_kib() / 1024,
        );
    }
    Ok(())
}

/// Returns the most memory that this process had at once, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}
