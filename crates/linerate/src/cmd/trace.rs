//! `linerate trace`: captures explained.

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use linerate_model::TrialId;
use linerate_trace::both::{self, Both, Seen};
use linerate_trace::capture::{CaptureError, Reader};
use linerate_trace::compare::compare;
use linerate_trace::rows::{CsvRows, ParquetRows, Row};
use linerate_trace::{Limits, Parts, Trace, Tracker, page, text};

use crate::args::{TraceArgs, TraceFormat};
use crate::cmd::live_capture;
use crate::exit::{CmdResult, Exit, Failure};
use crate::{bundle, meant, read_ahead, term};

/// Connections that are shown as text, where `--top` does not say.
const TEXT_CONNECTIONS: usize = 10;
/// Connections of the JSON document and the page, where `--top` does not say.
const DOCUMENT_CONNECTIONS: usize = 1000;
/// Connections whose packets are kept for the pictures of a page.
const PICTURED_MAX: usize = 256;

/// Runs the command.
pub fn trace(args: &TraceArgs) -> CmdResult {
    check_live(args)?;
    check_outputs(args)?;
    match &args.files[..] {
        [before, after] if args.compare => comparison(args, before, after),
        files if args.compare => {
            let error = anyhow!("--compare takes two files, and {} are named", files.len());
            Err(Failure::usage(error).next("linerate trace --compare BEFORE AFTER"))
        }
        [directory] if directory.is_dir() => of_bundle(args, directory),
        [one, other] if may_be_joined(args) => match joined(args, one, other)? {
            Some(both) => show_both(args, &both),
            None => explain(args, &args.files),
        },
        _ => explain(args, &args.files),
    }
}

/// Refuses flags of a capture of this host where files are read.
fn check_live(args: &TraceArgs) -> CmdResult<()> {
    let live = &args.live;
    let flags = [
        ("--time", live.time.is_some()),
        ("--write", live.write.is_some()),
        ("--snap", live.snap.is_some()),
        ("--ring", live.ring.is_some()),
    ];
    match live.interface {
        Some(_) => Ok(()),
        None => meant::check_idle(
            &flags,
            "captures of this host (-i DEVICE)",
            "name a device with -i instead of the files",
        ),
    }
}

/// Refuses to write over what is read.
fn check_outputs(args: &TraceArgs) -> CmdResult<()> {
    let file = |path: &Path| {
        std::fs::metadata(path)
            .ok()
            .map(|meta| (meta.dev(), meta.ino()))
    };
    let inputs: Vec<_> = args.files.iter().filter_map(|path| file(path)).collect();
    let outputs = [&args.html, &args.csv, &args.parquet, &args.out];
    for path in outputs.into_iter().flatten() {
        if file(path).is_some_and(|file| inputs.contains(&file)) {
            let error = anyhow!("{} is the capture to be read", path.display());
            return Err(Failure::usage(error).next("name another file to write"));
        }
    }
    Ok(())
}

/// Explains the captures of a bundle, each by itself, since two hosts saw the same segments; and then
/// those of two hosts together.
fn of_bundle(args: &TraceArgs, directory: &Path) -> CmdResult {
    let recording = bundle::read(directory)?;
    let files: Vec<(TrialId, String, PathBuf)> = recording
        .captures
        .iter()
        .filter_map(|capture| {
            let path = linerate_store::capture_path(directory, capture)?;
            let title = format!("trial {} at {}", capture.trial, capture.host);
            Some((capture.trial, title, path))
        })
        .collect();
    if files.is_empty() {
        let error = anyhow!("there is no capture in {}", directory.display());
        return Err(Failure::failed(error).next("measure again with --capture"));
    }
    let into_files = [&args.html, &args.csv, &args.parquet, &args.out];
    let is_one = into_files.iter().any(|file| file.is_some()) || args.wanted() == TraceFormat::Html;
    // Both ends of one trial are one page, as two files are.
    if let [(trial, _, one), (of, _, other)] = &files[..]
        && is_one
        && !has_rows(args)
        && trial == of
        && let Some(both) = joined(args, one, other)?
    {
        return show_both(args, &both);
    }
    if files.len() > 1 && is_one {
        let count = files.len();
        let error = anyhow!("there are {count} captures in {}", directory.display());
        let (first, second) = (files[0].2.display(), files[1].2.display());
        let next =
            format!("name one of them: {first}; or two that belong together: {first} {second}");
        return Err(Failure::usage(error).next(next));
    }
    for (at, (_, title, path)) in files.iter().enumerate() {
        if args.wanted() == TraceFormat::Text {
            if at > 0 {
                term::line("");
            }
            term::line(title);
        }
        explain(args, std::slice::from_ref(path))?;
    }
    for (at, (trial, _, one)) in files.iter().enumerate() {
        for (_, _, other) in files[at + 1..].iter().filter(|(of, _, _)| of == trial) {
            if let Some(both) = joined(args, one, other)? {
                if args.wanted() == TraceFormat::Text {
                    term::line("");
                    term::line(both::text(&both, look(args)).trim_end());
                } else {
                    term::line(&both.json());
                }
            }
        }
    }
    Ok(Exit::Ok)
}

fn limits(args: &TraceArgs) -> CmdResult<Limits> {
    let is_page = args.html.is_some() || args.wanted() == TraceFormat::Html;
    let usual = if is_page || args.wanted() != TraceFormat::Text {
        DOCUMENT_CONNECTIONS
    } else {
        TEXT_CONNECTIONS
    };
    Ok(Limits {
        reported: args.top.unwrap_or(usual),
        points: if is_page { PICTURED_MAX } else { 0 },
        seed: seed()?,
        ..Limits::default()
    })
}

fn tracker(args: &TraceArgs, limits: Limits) -> Tracker {
    Tracker::new(limits).with_filters(args.flow.clone())
}

fn look(args: &TraceArgs) -> text::Look {
    text::Look {
        columns: term::width(),
        color: term::color() && args.out.is_none(),
        connections: args.top.unwrap_or(TEXT_CONNECTIONS),
    }
}

/// Explains what `files` hold together, or what passes on this host.
fn explain(args: &TraceArgs, files: &[PathBuf]) -> CmdResult {
    let mut tracker = tracker(args, limits(args)?);
    let mut rows = create_row_files(args)?;
    if let Some(device) = &args.live.interface {
        let (reader, capture) = live_capture::begin(&args.live, device)?;
        let reader = read_ahead::reader(reader).map_err(|error| unreadable(error, device))?;
        read(&mut tracker, &mut rows, reader, device)?;
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
    let device = args.live.interface.clone();
    let files = files.iter().map(|path| name_of(path));
    let names: Vec<String> = device.into_iter().chain(files).collect();
    let title = format!("Trace of {}", names.join(", "));
    show(
        args,
        || linerate_report::trace_html(&page::page(&trace, &title)),
        || trace.json(),
        || text::text(&trace, look(args)),
    )
}

/// Returns whether two files may be two views of the same traffic, rather than packets to be listed.
fn may_be_joined(args: &TraceArgs) -> bool {
    !has_rows(args) && args.files.iter().all(|path| path.is_file())
}

fn has_rows(args: &TraceArgs) -> bool {
    args.csv.is_some() || args.parquet.is_some()
}

/// Joins two captures, if they show the same packets.
fn joined(args: &TraceArgs, one: &Path, other: &Path) -> CmdResult<Option<Both>> {
    let seen = |path: &Path| -> CmdResult<Seen> {
        let name = path.display().to_string();
        let tracker = tracker(args, limits(args)?);
        let seen = Seen::read(tracker, &mut open(&name)?, &name_of(path));
        seen.map_err(|error| unreadable(error, &name))
    };
    Ok(both::join(seen(one)?, seen(other)?))
}

fn show_both(args: &TraceArgs, joined: &Both) -> CmdResult {
    let title = format!("Trace of {} and {}", joined.files[0], joined.files[1]);
    let lines = || {
        let alone = text::Look {
            connections: args.top.unwrap_or(0),
            ..look(args)
        };
        let each = joined.captures.iter().map(|trace| text::text(trace, alone));
        let all: Vec<String> = std::iter::once(both::text(joined, look(args)))
            .chain(each)
            .collect();
        all.join("\n")
    };
    show(
        args,
        || linerate_report::trace_html(&both::page(joined, &title)),
        || joined.json(),
        lines,
    )
}

/// Says what changed from one capture to the other.
fn comparison(args: &TraceArgs, before: &Path, after: &Path) -> CmdResult {
    let traced = |path: &Path| -> CmdResult<Trace> {
        let name = path.display().to_string();
        let limits = Limits {
            reported: args.top.unwrap_or(DOCUMENT_CONNECTIONS),
            ..limits(args)?
        };
        let mut tracker = tracker(args, limits);
        read(&mut tracker, &mut RowFiles::new(), open(&name)?, &name)?;
        Ok(tracker.finish())
    };
    let comparison = compare(&traced(before)?, &traced(after)?);
    show(
        args,
        || {
            let title = format!("{} and {}", name_of(before), name_of(after));
            linerate_report::trace_html(&comparison.page(&title))
        },
        || comparison.json(),
        || comparison.text(look(args)),
    )
}

/// Writes what was asked for to where it was asked for.
fn show(
    args: &TraceArgs,
    html: impl Fn() -> String,
    json: impl Fn() -> String,
    text: impl Fn() -> String,
) -> CmdResult {
    if let Some(path) = &args.html {
        written(std::fs::write(path, html()), path)?;
    }
    let shown = match args.wanted() {
        TraceFormat::Html => html(),
        TraceFormat::Json => json(),
        TraceFormat::Text => text().trim_end().to_owned(),
    };
    match &args.out {
        Some(path) => written(std::fs::write(path, shown + "\n"), path)?,
        None => term::line(&shown),
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

/// Opens a capture.
fn open(name: &str) -> CmdResult<Reader<'static>> {
    let reader = if name == "-" {
        read_ahead::reader(std::io::stdin())
    } else {
        let file = File::open(name).with_context(|| format!("cannot open {name}"));
        read_ahead::reader(file.map_err(|error| {
            Failure::failed(error).next(
                "name a capture (pcap or pcapng), `-` for standard input, or a bundle of `linerate run \
                 --capture --out`",
            )
        })?)
    };
    reader.map_err(|error| unreadable(error, name))
}

fn read(
    tracker: &mut Tracker,
    rows: &mut RowFiles,
    mut reader: Reader<'_>,
    name: &str,
) -> CmdResult<()> {
    if rows.is_empty() {
        // Its loop is compiled for speed, and this crate for size: a tenth of the time.
        let read = tracker.read(&mut reader, name);
        return read.map_err(|error| unreadable(error, name));
    }
    tracker.begin_file(name);
    let mut parts = Parts::default();
    while let Some(frame) = reader.next_frame() {
        if let Some(handled) = tracker.handle_frame(&frame, &mut parts) {
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
    Failure::failed(anyhow::Error::new(error).context(format!("cannot read {name}"))).maybe(next)
}
