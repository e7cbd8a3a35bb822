//! A capture of this host as it happens, in the form of a file.

use std::fs::File;
use std::io::{BufWriter, PipeReader, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use linerate_observe::capture::{
    Anonymiser, Capture, CaptureConfig, CaptureCounts, Frame, Ports, Writer, unix_ns,
};

use crate::args::LiveArgs;
use crate::exit::{CmdResult, Failure};
use crate::{interrupt, term};
use linerate_model::{Bytes, number};

/// Bytes of a frame that are kept where no other number is asked for, as the help of `--snap` has it.
const SNAP: Bytes = Bytes(128);
/// Memory of the ring where no other is asked for, as the help of `--ring` has it.
const RING: Bytes = Bytes(8 << 20);
/// Longest wait for frames between two looks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// A capture under way on a thread of its own.
pub struct LiveCapture {
    thread: JoinHandle<std::io::Result<CaptureCounts>>,
    written: Option<PathBuf>,
}

/// Begins, and returns what reads it as a pcapng file that ends with the capture: after the time
/// asked for, or on Ctrl-C.
pub fn begin(args: &LiveArgs, device: &str) -> CmdResult<(PipeReader, LiveCapture)> {
    let config = CaptureConfig {
        device: device.to_owned(),
        snap_bytes: args
            .snap
            .unwrap_or(SNAP)
            .0
            .clamp(1, u64::from(u16::MAX) << 2) as u32,
        ring_bytes: args.ring.unwrap_or(RING).0 as usize,
        ports: Ports::Any,
    };
    let capture = Capture::open(&config).map_err(|error| {
        Failure::failed(error).next("run it as root, and name a device of /sys/class/net")
    })?;
    let (reader, pipe) = std::io::pipe().context("no pipe")?;
    let link_type = capture.link_type();
    let writer = |out: Sink| Writer::new(out, link_type, device, config.snap_bytes);
    let mut outputs = vec![(writer(Box::new(BufWriter::new(pipe)))?, None)];
    if let Some(path) = &args.write {
        let file = File::create(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let writer = writer(Box::new(BufWriter::with_capacity(1 << 20, file)))?;
        let anonymiser = args.anonymous.then(|| Anonymiser::new(link_type));
        outputs.push((writer, anonymiser));
    }
    let stop = interrupt::flag()?;
    let until = args
        .time
        .map(|time| Instant::now() + Duration::from_nanos(time.0));
    if until.is_none() {
        term::note(&format!("capturing on {device}; Ctrl-C ends it"));
    }
    let thread = std::thread::spawn(move || follow(capture, outputs, until, &stop));
    let written = args.write.clone();
    Ok((reader, LiveCapture { thread, written }))
}

impl LiveCapture {
    /// Waits for the end, and says what was lost.
    pub fn end(self) -> CmdResult<()> {
        let ended = self.thread.join();
        let counts = ended.map_err(|_| anyhow!("the capture's thread failed"))?;
        let counts = counts.context("the capture ended early")?;
        if let Some(path) = &self.written {
            let kept = counts.frames - counts.drops;
            let path = path.display();
            term::note(&format!(
                "captured: {}; the frames that are kept are in {path}",
                number::counted(kept, "frame")
            ));
        }
        if counts.drops > 0 {
            term::note(&format!(
                "missing: {} of {}because the ring was full (--ring makes it larger)",
                counts.drops,
                number::counted(counts.frames, "frame")
            ));
        }
        Ok(())
    }
}

/// Where a capture is written.
type Sink = Box<dyn Write + Send>;

/// A file, and who hides addresses in it.
type Output = (Writer<Sink>, Option<Anonymiser>);

fn write((writer, anonymiser): &mut Output, frame: &Frame<'_>) -> std::io::Result<()> {
    match anonymiser {
        None => writer.frame(frame),
        Some(anonymiser) => match anonymiser.anonymise(frame) {
            Some(frame) => writer.frame(&frame),
            None => Ok(()),
        },
    }
}

fn follow(
    mut capture: Capture,
    mut outputs: Vec<Output>,
    until: Option<Instant>,
    stop: &AtomicBool,
) -> std::io::Result<CaptureCounts> {
    let mut failure = None;
    let mut end_ns = None;
    while failure.is_none() {
        let mut is_late = false;
        let seen = capture.read(LOOK, |frame| {
            is_late |= end_ns.is_some_and(|end_ns| frame.at_unix_ns > end_ns);
            if is_late {
                return;
            }
            for output in &mut outputs {
                if let Err(error) = write(output, frame) {
                    failure.get_or_insert(error);
                }
            }
        })?;
        // What passed before the end is still in the ring, and is read first.
        if end_ns.is_some() && (seen == 0 || is_late) {
            break;
        }
        let is_over =
            stop.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until);
        if is_over && end_ns.is_none() {
            end_ns = Some(unix_ns());
        }
    }
    let counts = capture.counts()?;
    for (writer, _) in outputs {
        writer.finish(unix_ns(), counts.frames, counts.drops)?;
    }
    failure.map_or(Ok(counts), Err)
}
