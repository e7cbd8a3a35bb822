//! `linerate watch`: see what a host does, without making any load.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use linerate_agent::api::{Agent, AgentError, Observation};
use linerate_agent::serve::ServeError;
use linerate_agent::serve::exporter::Exporter;
use linerate_analyze::watch::pages::pages;
use linerate_analyze::watch::{Span, Watched};
use linerate_model::Nanos;

use crate::args::WatchArgs;
use crate::exit::{CmdResult, Failure, Outcome};
use crate::{hosts, interrupt, term};

/// Shortest time between two readings: one takes about a millisecond.
const INTERVAL_MIN: Nanos = Nanos::from_ms(20);
/// Longest.
const INTERVAL_MAX: Nanos = Nanos::from_s(3600);
/// Longest sleep between two looks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command. Being told to end is how watching ends, so Ctrl-C is no failure.
pub fn watch(args: &WatchArgs) -> CmdResult {
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&args.interval) {
        let error = anyhow!("the interval must be {INTERVAL_MIN} to {INTERVAL_MAX}");
        return Err(Failure::usage(error));
    }
    let agent = hosts::observed(args.host.as_deref(), args.port, args.token_file.as_deref())?;
    if args.prometheus.is_none() && !args.once && !args.json_stream && !is_terminal() {
        let error = anyhow!("watching needs a terminal");
        return Err(Failure::usage(error).next("use --once, --json-stream or --prometheus"));
    }
    // A first reading says at once what cannot be watched.
    let first = agent.observe().map_err(hosts::agent_failure)?;
    if let Some(address) = args.prometheus {
        return export(address, agent);
    }
    let stop = interrupt::flag()?;
    if args.once {
        return once(agent.as_ref(), args.interval, &first, &stop);
    }
    if args.json_stream {
        return stream(agent.as_ref(), args, &first, &stop);
    }
    term::watch::live(agent, args, &first, &stop)?;
    Ok(Outcome::Ok)
}

fn is_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// Prints every page as it is over one interval.
fn once(agent: &dyn Agent, interval: Nanos, first: &Observation, stop: &AtomicBool) -> CmdResult {
    let mut watched = Watched::default();
    watched.take(first.at_ns, &first.samples);
    if !sleep_until(Instant::now() + Duration::from_nanos(interval.0), stop) {
        return Ok(Outcome::Interrupted);
    }
    let second = agent.observe().map_err(hosts::agent_failure)?;
    watched.take(second.at_ns, &second.samples);
    let seconds = watched.seconds();
    term::line(&format!("Host {} over {seconds:.2} s\n", second.host_name));
    for page in pages(&watched, Span::PerSecond) {
        let verdict = page.verdict.as_deref();
        let text =
            linerate_report::terminal_page(&page.table, verdict, term::width(), term::color());
        term::line(&text);
    }
    for observer in second.observers {
        if let Some(why) = observer.missing {
            term::note(&format!("{} cannot be observed: {why}", observer.observer));
        }
    }
    Ok(Outcome::Ok)
}

/// Prints a line of JSON for each interval.
fn stream(
    agent: &dyn Agent,
    args: &WatchArgs,
    first: &Observation,
    stop: &AtomicBool,
) -> CmdResult {
    let mut watched = Watched::default();
    watched.take(first.at_ns, &first.samples);
    term::json_line(
        "start",
        serde_json::json!({
            "schema": "linerate.watch", "schema_version": 1, "host": first.host_name,
            "interval_s": args.interval.as_s(), "observers": first.observers,
        }),
    );
    let interval = Duration::from_nanos(args.interval.0);
    let mut due = Instant::now() + interval;
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 && sleep_until(due, stop) {
        let next = agent.observe().map_err(hosts::agent_failure)?;
        watched.take(next.at_ns, &next.samples);
        term::json_line("interval", watched.document());
        left -= 1;
        // A host that answers late loses lines, not the beat.
        while due <= Instant::now() {
            due += interval;
        }
    }
    term::json_line("end", serde_json::json!({ "seconds": watched.seconds() }));
    Ok(Outcome::Ok)
}

/// Sleeps until `due`; returns whether nobody asked for an end before.
fn sleep_until(due: Instant, stop: &AtomicBool) -> bool {
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
fn export(address: std::net::SocketAddr, agent: Arc<dyn Agent>) -> CmdResult {
    let exporter = Exporter::bind(address).map_err(|error| {
        let ServeError::Bind { .. } = &error else {
            return Failure::failed(error);
        };
        Failure::failed(error).next("choose another address or port with --prometheus")
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
    let page = move || {
        let words = |error: AgentError| error.to_string();
        let seen = agent.observe().map_err(words)?;
        Ok(linerate_report::openmetrics(&seen.samples))
    };
    exporter.run(linerate_report::OPENMETRICS_TYPE, Arc::new(page), wait)?;
    Ok(Outcome::Ok)
}
