//! `linerate trace`: captures explained.

use std::fs::File;
use std::io::{BufWriter, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use linerate_trace::capture::{CaptureError, Reader};
use linerate_trace::rows::{CsvRows, ParquetRows, Row};
use linerate_trace::{Limits, Tracker, page, text};

use crate::args::TraceArgs;
use crate::cmd::live_capture;
use crate::exit::{CmdResult, Exit, Failure};
use crate::{bundle, term};

/// Connections that are shown as text, where `--top` does not say.
const TEXT_CONNECTIONS: usize = 10;
/// Connections of the JSON document and the page, where `--top` does not say.
const DOCUMENT_CONNECTIONS: usize = 1000;
/// Connections whose packets are kept for the pictures of a page.
const PICTURED_MAX: usize = 256;

/// Runs the command.
pub fn trace(args: &TraceArgs) -> CmdResult {
    match &args.files[..] {
        [directory] if directory.is_dir() => of_bundle(args, directory),
        _ => one(args, &args.files),
    }
}

/// Explains the captures of a bundle, each by itself: two hosts saw the same segments.
fn of_bundle(args: &TraceArgs, directory: &Path) -> CmdResult {
    let recording = bundle::read(directory)?;
    let files: Vec<(String, PathBuf)> = recording
        .captures
        .iter()
        .filter_map(|capture| {
            let path = linerate_store::capture_path(directory, capture)?;
            Some((format!("trial {} at {}", capture.trial, capture.host), path))
        })
        .collect();
    let into_files = [&args.html, &args.csv, &args.parquet];
    if files.is_empty() {
        let error = anyhow!("there is no capture in {}", directory.display());
        return Err(Failure::failed(error).next("measure again with --capture"));
    }
    if files.len() > 1 && into_files.iter().any(|file| file.is_some()) {
        let count = files.len();
        let error = anyhow!("there are {count} captures in {}", directory.display());
        let first = files[0].1.display();
        return Err(Failure::usage(error).next(format!("name one of them: {first}")));
    }
    for (at, (title, path)) in files.iter().enumerate() {
        if !args.json {
            if at > 0 {
                term::line("");
            }
            term::line(title);
        }
        one(args, std::slice::from_ref(path))?;
    }
    Ok(Exit::Ok)
}

/// Explains what `files` hold together, or what passes on this host.
fn one(args: &TraceArgs, files: &[PathBuf]) -> CmdResult {
    let has_document = args.json || args.html.is_some();
    let shown = args.top.unwrap_or(if has_document {
        DOCUMENT_CONNECTIONS
    } else {
        TEXT_CONNECTIONS
    });
    let limits = Limits {
        reported: shown,
        points: if args.html.is_some() { PICTURED_MAX } else { 0 },
        seed: seed()?,
        ..Limits::default()
    };
    let mut tracker = Tracker::new(limits).with_filters(args.flow.clone());
    let mut rows = create_row_files(args)?;
    if let Some(device) = &args.live.interface {
        let (reader, capture) = live_capture::begin(&args.live, device)?;
        read(&mut tracker, &mut rows, Box::new(reader), device)?;
        capture.end()?;
    }
    for path in files {
        let name = path.display().to_string();
        read(&mut tracker, &mut rows, open(&name)?, &name)?;
    }
    for (path, file) in rows {
        written(file.finish(), &path)?;
    }
    let trace = tracker.finish();
    if let Some(path) = &args.html {
        let device = args.live.interface.clone();
        let files = files.iter().map(|path| name_of(path));
        let names: Vec<String> = device.into_iter().chain(files).collect();
        let title = format!("Trace of {}", names.join(", "));
        let html = linerate_report::html(&page::page(&trace, &title));
        written(std::fs::write(path, html), path)?;
    }
    if args.json {
        term::line(&trace.json());
    } else {
        let look = text::Look {
            columns: term::width(),
            color: term::color(),
            connections: args.top.unwrap_or(TEXT_CONNECTIONS),
        };
        term::line(text::text(&trace, look).trim_end());
    }
    Ok(Exit::Ok)
}

/// Returns the last part of a path, which is enough for a heading.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Returns a random seed, so that no capture can be written whose connections all collide.
fn seed() -> CmdResult<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).context("no randomness from the kernel")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A file of rows.
enum RowFile {
    Csv(CsvRows<BufWriter<File>>),
    Parquet(Box<ParquetRows<BufWriter<File>>>),
}

type RowFiles = Vec<(PathBuf, RowFile)>;

impl RowFile {
    fn add(&mut self, row: &Row) -> anyhow::Result<()> {
        match self {
            RowFile::Csv(rows) => Ok(rows.add(row)?),
            RowFile::Parquet(rows) => Ok(rows.add(row)?),
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            RowFile::Csv(rows) => rows.finish().map(drop)?,
            RowFile::Parquet(rows) => rows.finish()?,
        }
        Ok(())
    }
}

fn written<T, E>(result: Result<T, E>, path: &Path) -> anyhow::Result<T>
where
    Result<T, E>: Context<T, E>,
{
    result.with_context(|| format!("cannot write {}", path.display()))
}

fn create_row_files(args: &TraceArgs) -> anyhow::Result<RowFiles> {
    let create = |path: &Path| -> anyhow::Result<BufWriter<File>> {
        let file = written(File::create(path), path)?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    };
    let mut files = Vec::new();
    if let Some(path) = &args.csv {
        files.push((path.clone(), RowFile::Csv(CsvRows::new(create(path)?)?)));
    }
    if let Some(path) = &args.parquet {
        let rows = ParquetRows::new(create(path)?)?;
        files.push((path.clone(), RowFile::Parquet(Box::new(rows))));
    }
    Ok(files)
}

fn open(name: &str) -> CmdResult<Box<dyn Read>> {
    if name == "-" {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(name).with_context(|| format!("cannot open {name}"))?;
    Ok(Box::new(file))
}

fn read(
    tracker: &mut Tracker,
    rows: &mut RowFiles,
    input: Box<dyn Read>,
    name: &str,
) -> CmdResult<()> {
    let mut reader = Reader::new(input).map_err(|error| unreadable(error, name))?;
    tracker.begin_file(name);
    while let Some(frame) = reader.next_frame() {
        if let Some(handled) = tracker.handle_frame(&frame)
            && !rows.is_empty()
        {
            let row = Row::new(tracker, &handled);
            for (path, file) in rows.iter_mut() {
                written(file.add(&row), path)?;
            }
        }
    }
    tracker
        .end_file(&reader)
        .map_err(|error| unreadable(error, name))
}

fn unreadable(error: CaptureError, name: &str) -> Failure {
    let next = match &error {
        CaptureError::Foreign(_) => {
            Some("write it as pcap or pcapng: `editcap -F pcapng FILE NEW` converts many formats")
        }
        CaptureError::Link(_) => {
            Some("capture on an Ethernet or IP interface, or on `any`, where packets are IP")
        }
        _ => None,
    };
    let failure = Failure::failed(anyhow::Error::new(error).context(format!("cannot read {name}")));
    match next {
        Some(next) => failure.next(next),
        None => failure,
    }
}
