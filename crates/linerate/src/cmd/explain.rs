//! `linerate explain`: what holds a number, of what is there already, and of a stream that `linerate run --prove` measures.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use linerate_agent::api::{Observation, ObservationRequest};
use linerate_analyze::groups::Reduced;
use linerate_analyze::watch::service::{Look, Side, explain as explained};
use linerate_model::Nanos;

use super::watch::sleep_until;
use super::{run, trace};
use crate::args::{ExplainArgs, TraceArgs};
use crate::exit::{CmdResult, Exit, Failure};
use crate::hosts::Place;
use crate::term::single;
use crate::watching::Watching;
use crate::{bundle, hosts, interrupt, meant, term};

/// The shortest and the longest time that is watched or measured.
const TIME: [Nanos; 2] = [Nanos::from_s(1), Nanos::from_s(3600)];
/// How long a service is watched.
const TIME_OF_SERVICE: Nanos = Nanos::from_s(30);
/// Readings in that time: enough for what varies, and a reading takes a millisecond or two.
const READINGS: u64 = 60;
/// The shortest time between two of them.
const APART_MIN: Nanos = Nanos::from_ms(100);

/// What flags are for that ask for a service, or for a measurement.
const OF_SERVICE: &str = "a service (--port, --pid)";
const OF_STREAM: &str = "a stream to a host";

/// Runs the command.
pub fn explain(args: &ExplainArgs) -> CmdResult {
    if args
        .time
        .is_some_and(|time| !(TIME[0]..=TIME[1]).contains(&time))
    {
        let error = anyhow!("--for must be {} to {}", TIME[0], TIME[1]);
        return Err(Failure::usage(error));
    }
    if let Some(host) = args.host() {
        return measured(args, host);
    }
    let idle = [
        ("--prove", args.prove.is_some()),
        ("--out", args.out.is_some()),
    ];
    meant::check_idle(&idle, OF_STREAM, "name a host, without --port and --pid")?;
    let filter = match (args.port, args.pid) {
        (Some(port), _) => format!("state connected and port {port}"),
        (None, Some(pid)) => format!("state connected and pid {pid}"),
        (None, None) => return stored(args),
    };
    service(args, &filter)
}

/// Measures a stream to a host as `linerate run --prove` does, and tells the story of that.
fn measured(args: &ExplainArgs, host: &str) -> CmdResult {
    let run = meant::explained(args, host)?;
    check_host(args, host).inspect_err(|failure| {
        let (form, is_iperf3) = meant::form(&run);
        single::print_failure(form, is_iperf3, failure);
    })?;
    run::run(&run)
}

/// Refuses what is for a service, and what is nothing here and no host.
fn check_host(args: &ExplainArgs, host: &str) -> CmdResult<()> {
    meant::check_idle(&[("--with", args.other.is_some())], OF_SERVICE, "name one")?;
    match Place::of(host, args.agent_port, None) {
        Ok(_) => Ok(()),
        Err(failure) => Err(failure.next(format!(
            "nothing at the path {host} either: name a bundle or a capture by its path, a host by its name or address"
        ))),
    }
}

/// Explains a bundle or captures.
fn stored(args: &ExplainArgs) -> CmdResult {
    let idle = [
        ("--with", args.other.is_some()),
        ("--for", args.time.is_some()),
        ("--json", args.json),
    ];
    let rather = "`linerate report --format json` and `linerate trace --json` print documents of what is stored";
    meant::check_idle(&idle, "a service or a host", rather)?;
    let Some(subject) = &args.subject else {
        let error = anyhow!("nothing to explain is named");
        return Err(Failure::usage(error)
            .next("name a host, a bundle, a capture, or a service with --port or --pid"));
    };
    let path = Path::new(subject);
    if path.is_dir() {
        return bundled(path);
    }
    if path.is_file() {
        return trace::trace(&TraceArgs::of(path));
    }
    let error = anyhow!("there is no bundle and no capture at {subject}");
    Err(Failure::usage(error).next("name one that is there, or a host without a `/`"))
}

/// Tells the story of a bundle: what was measured, what holds it, what that rests on, what its packets show.
fn bundled(directory: &Path) -> CmdResult {
    let recording = bundle::read(directory)?;
    let reduced = Reduced::of(&recording);
    let analysis = linerate_analyze::analyze_reduced(&reduced, false);
    let analysis = bundle::with_captures(analysis, &recording, directory);
    term::explained::story(&analysis);
    Ok(Exit::Ok)
}

/// Watches a service, and says what holds its connections.
fn service(args: &ExplainArgs, filter: &str) -> CmdResult {
    let time = args.time.unwrap_or(TIME_OF_SERVICE);
    let interval = Nanos(time.0 / READINGS).max(APART_MIN);
    let watching = |host: Option<&str>, filter: String| {
        let trust = meant::trust(&args.tls);
        let agent = hosts::observed(host, args.agent_port, args.token_file.as_deref(), &trust)?;
        let request = ObservationRequest {
            sockets: Some(filter),
            interval_ns: Some(interval.0),
        };
        CmdResult::Ok(Watching {
            agent,
            request,
            interval,
        })
    };
    let mut watched = vec![watching(args.subject.as_deref(), filter.to_owned())?];
    if let Some(other) = &args.other {
        // The other end has the process at none of its sockets, and its port at each.
        let of_other = match args.port {
            Some(_) => filter,
            None => "state connected",
        };
        watched.push(watching(Some(other), of_other.to_owned())?);
    }
    let stop = interrupt::flag()?;
    let mut sides = watched
        .iter()
        .map(begin)
        .collect::<CmdResult<Vec<Side>>>()?;
    let ends = Instant::now() + Duration::from_nanos(time.0);
    let mut due = Instant::now();
    let is_whole = loop {
        due += Duration::from_nanos(interval.0);
        if !sleep_until(due.min(ends), &stop) {
            break false;
        }
        for (host, side) in watched.iter().zip(&mut sides) {
            let seen = host.observe().map_err(hosts::agent_failure)?;
            side.looks.push(look(seen)?);
        }
        if Instant::now() >= ends {
            break true;
        }
    };
    let found = explained(&sides[0], sides.get(1));
    let Some(found) = found else {
        return Ok(Exit::Interrupted);
    };
    if args.json {
        term::json_document(&found);
    } else {
        term::explained::print(&found);
    }
    if found.connections == 0 {
        let what = if found.idle > 0 {
            "carried payload"
        } else {
            "was there"
        };
        let error = anyhow!("no connection of the service {what} all the time");
        return Err(Failure::failed(error)
            .next("watch for longer (--for), or look at `linerate watch --page tcp`"));
    }
    Ok(if is_whole {
        Exit::Ok
    } else {
        Exit::Interrupted
    })
}

/// Reads a host for the first time.
fn begin(host: &Watching) -> CmdResult<Side> {
    let first = host.observe().map_err(hosts::agent_failure)?;
    Ok(Side {
        name: first.host_name.clone(),
        facts: host.facts().map_err(hosts::agent_failure)?,
        observers: first.observers.clone(),
        looks: vec![look(first)?],
    })
}

fn look(seen: Observation) -> CmdResult<Look> {
    let Some(sockets) = seen.sockets else {
        let error = anyhow!("the sockets of {} cannot be read", seen.host_name);
        return Err(Failure::failed(error).next("`linerate watch --once --page tcp` says why"));
    };
    Ok(Look {
        at_ns: sockets.at_ns,
        rows: sockets.rows,
        beyond: sockets.beyond,
        owners: sockets.owners,
        samples: seen.samples,
    })
}
