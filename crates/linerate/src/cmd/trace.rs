//! `linerate trace`: captures explained.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use linerate_trace::capture::{CaptureError, Reader};
use linerate_trace::{Limits, Tracker};

use crate::args::TraceArgs;
use crate::exit::{CmdResult, Failure, Outcome};
use crate::term;

/// Connections of the JSON document, where `--top` asks for less.
const JSON_CONNECTIONS_MIN: usize = 1000;

/// Runs the command.
pub fn trace(args: &TraceArgs) -> CmdResult {
    let limits = Limits {
        reported: args
            .top
            .max(if args.json { JSON_CONNECTIONS_MIN } else { 0 }),
        seed: seed()?,
        ..Limits::default()
    };
    let mut tracker = Tracker::new(limits).with_filters(args.flow.clone());
    for path in &args.files {
        read(&mut tracker, path)?;
    }
    let trace = tracker.finish();
    if args.json {
        term::line(&trace.json());
    } else {
        let look = linerate_trace::text::Look {
            columns: term::width(),
            color: term::color(),
            connections: args.top,
        };
        term::line(linerate_trace::text::text(&trace, look).trim_end());
    }
    Ok(Outcome::Ok)
}

/// Returns a number that whoever wrote the capture cannot know.
fn seed() -> CmdResult<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).context("no randomness from the kernel")?;
    Ok(u64::from_ne_bytes(bytes))
}

fn read(tracker: &mut Tracker, path: &Path) -> CmdResult<()> {
    let name = path.display().to_string();
    let input: Box<dyn Read> = if name == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot open {name}"))?)
    };
    let reader = Reader::new(input);
    let read = reader.and_then(|mut reader| tracker.read(&mut reader, &name));
    read.map_err(|error| {
        let next = next_step(&error);
        let failure =
            Failure::failed(anyhow::Error::new(error).context(format!("cannot read {name}")));
        match next {
            Some(next) => failure.next(next),
            None => failure,
        }
    })
}

fn next_step(error: &CaptureError) -> Option<&'static str> {
    match error {
        CaptureError::Foreign(_) => {
            Some("write it as pcap or pcapng: `editcap -F pcapng FILE NEW` converts many formats")
        }
        CaptureError::Link(_) => {
            Some("capture on an Ethernet or IP interface, or on `any`, where packets are IP")
        }
        _ => None,
    }
}
