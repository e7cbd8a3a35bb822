//! `linerate watch`: see what a host does, without making any load.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use linerate_agent::api::{AgentError, Observation, ObservationRequest, RefusalCode};
use linerate_agent::serve::ServeError;
use linerate_agent::serve::exporter::Exporter;
use linerate_analyze::watch::pages::pages;
use linerate_analyze::watch::{Document, Span, Watched};
use linerate_model::Nanos;
use linerate_model::host::Availability;
use linerate_report::Exposition;
use serde::Serialize;

use crate::args::{PageChoice, WatchArgs};
use crate::exit::{CmdResult, Exit, Failure};
use crate::watching::{Watching, take};
use crate::{hosts, interrupt, meant, term};

/// Shortest time between two readings: one takes about a millisecond.
const INTERVAL_MIN: Nanos = Nanos::from_ms(20);
/// Longest.
const INTERVAL_MAX: Nanos = Nanos::from_s(3600);
/// Longest sleep between two looks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// These lines, and the number of their shape.
const WATCH_SCHEMA: (&str, u32) = ("linerate.watch", 1);

/// A line of JSON of a host that is watched.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(super) enum WatchLine<'a> {
    /// The first.
    Start {
        /// Always `linerate.watch`.
        schema: &'static str,
        /// The number of `WATCH_SCHEMA`.
        schema_version: u32,
        /// The host's own name.
        host: &'a str,
        /// Time between two lines.
        interval_s: f64,
        /// What can and cannot be observed.
        observers: &'a [Availability],
    },
    /// What was seen.
    Interval(Box<Document>),
    /// The last.
    End {
        /// How long the host was watched.
        seconds: f64,
    },
}

/// Runs the command. Being told to end is how watching ends, so Ctrl-C is no failure.
pub fn watch(args: &WatchArgs) -> CmdResult {
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&args.interval) {
        let error = anyhow!("the interval must be {INTERVAL_MIN} to {INTERVAL_MAX}");
        return Err(Failure::usage(error));
    }
    let agent = hosts::observed(
        args.host.as_deref(),
        args.port,
        args.token_file.as_deref(),
        &meant::trust(&args.tls),
    )?;
    if args.prometheus.is_none() && !args.once && !args.json_stream && !is_terminal() {
        let error = anyhow!("watching needs a terminal");
        return Err(Failure::usage(error).next("use --once, --json-stream or --prometheus"));
    }
    let request = ObservationRequest {
        sockets: args.prometheus.is_none().then(|| args.filter.clone()),
        interval_ns: args.prometheus.is_none().then_some(args.interval.0),
    };
    // A first reading says at once what cannot be watched, and whether the filter is one.
    let first = agent.observe(&request).map_err(refused)?;
    let host = Watching {
        agent,
        request,
        interval: args.interval,
    };
    if let Some(address) = args.prometheus {
        let names = [&[hosts::host_name()], &args.names[..]].concat();
        return export(address, names, host);
    }
    let stop = interrupt::flag()?;
    if args.once {
        return once(&host, args.page, first, &stop);
    }
    if args.json_stream {
        return stream(&host, args.count, first, &stop);
    }
    let page = args.page.unwrap_or(PageChoice::Overview);
    let facts = host.facts().map_err(hosts::agent_failure)?;
    term::watch::live(host, &page.name(), args.count, (first, facts), &stop)?;
    Ok(Exit::Ok)
}

/// A refusal of the filter is a mistake of the command line.
fn refused(error: AgentError) -> Failure {
    match error.refusal() {
        Some(RefusalCode::BadRequest) => Failure::usage(error)
            .next("a filter is made of words such as: state connected and dport 5201"),
        _ => hosts::agent_failure(error),
    }
}

fn is_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// Prints the page that is asked for, or every page, as it is over one interval.
fn once(
    host: &Watching,
    only: Option<PageChoice>,
    first: Observation,
    stop: &AtomicBool,
) -> CmdResult {
    let mut watched = Watched::default();
    take(&mut watched, first);
    if !sleep_until(Instant::now() + Duration::from_nanos(host.interval.0), stop) {
        return Ok(Exit::Interrupted);
    }
    let second = host.observe().map_err(hosts::agent_failure)?;
    let (host_name, observers) = (second.host_name.clone(), second.observers.clone());
    take(&mut watched, second);
    let seconds = watched.seconds();
    term::line(&format!("Host {host_name} over {seconds:.2} s\n"));
    let facts = host.facts().map_err(hosts::agent_failure)?;
    let pages = pages(&watched, &facts, Span::PerSecond).into_iter();
    let is_asked = |only: PageChoice, name| only.name().eq_ignore_ascii_case(name);
    for page in pages.filter(|page| only.is_none_or(|only| is_asked(only, page.name))) {
        let verdict = page.verdict.as_deref();
        let text =
            linerate_report::terminal_page(&page.table, verdict, term::width(), term::color());
        term::line(&text);
    }
    // What is missing for one reason is said in one line.
    let mut missing: Vec<(String, Vec<String>)> = Vec::new();
    for observer in observers {
        let Some(why) = observer.missing.map(|why| why.to_string()) else {
            continue;
        };
        let name = observer.observer.to_string();
        match missing.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => missing.push((why, vec![name])),
        }
    }
    for (why, names) in missing {
        term::note(&format!("{} cannot be observed: {why}", names.join(", ")));
    }
    Ok(Exit::Ok)
}

/// Prints a line of JSON for each interval.
fn stream(host: &Watching, count: Option<u64>, first: Observation, stop: &AtomicBool) -> CmdResult {
    let mut watched = Watched::default();
    term::json_row(&WatchLine::Start {
        schema: WATCH_SCHEMA.0,
        schema_version: WATCH_SCHEMA.1,
        host: &first.host_name,
        interval_s: host.interval.as_s(),
        observers: &first.observers,
    });
    take(&mut watched, first);
    let interval = Duration::from_nanos(host.interval.0);
    let mut due = Instant::now() + interval;
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 && sleep_until(due, stop) {
        take(&mut watched, host.observe().map_err(hosts::agent_failure)?);
        term::json_row(&WatchLine::Interval(Box::new(watched.document())));
        left -= 1;
        // A host that answers late loses lines, not the beat.
        while due <= Instant::now() {
            due += interval;
        }
    }
    let seconds = watched.seconds();
    term::json_row(&WatchLine::End { seconds });
    Ok(Exit::Ok)
}

/// Sleeps until `due`; returns whether nobody asked for an end before.
pub(super) fn sleep_until(due: Instant, stop: &AtomicBool) -> bool {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        match stop.load(Ordering::Relaxed) {
            true => return false,
            false if left.is_zero() => return true,
            false => std::thread::sleep(left.min(LOOK)),
        }
    }
}

/// Serves the counters to Prometheus, reading the host whenever it asks.
fn export(address: std::net::SocketAddr, names: Vec<String>, host: Watching) -> CmdResult {
    let exporter = Exporter::bind(address, names).map_err(|error| {
        let is_taken = matches!(error, ServeError::Bind { .. });
        let next = is_taken.then_some("choose another address or port with --prometheus");
        Failure::failed(error).maybe(next)
    })?;
    term::note(&format!("serving http://{}/metrics", exporter.address()?));
    let stop = interrupt::flag()?;
    let (ended, wait) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        drop(ended);
    });
    let page = move |accept: &str| {
        let words = |error: AgentError| error.to_string();
        let seen = host.observe().map_err(words)?;
        let exposition = Exposition::accepted(accept);
        let text = exposition.text(env!("CARGO_PKG_VERSION"), &seen.samples);
        Ok((exposition.content_type(), text))
    };
    exporter.run(Arc::new(page), wait)?;
    Ok(Exit::Ok)
}
