//! The first page: heading, what was asked, the hosts, what is missing.

use linerate_model::analysis::HostSummary;
use linerate_model::host::{FactValue, Snapshot};
use linerate_model::lab_link::full_queue_time;
use linerate_model::number::counted;
use linerate_model::plan::LeftOut;
use linerate_model::run::{HostPart, HostRecord, RunDocument};
use linerate_model::unit::Unit;
use linerate_model::workload::Workload;
use linerate_model::{BitsPerSec, Bytes, Nanos, TrialId};

use crate::compare::interval::median;
use crate::dataset::Dataset;
use crate::words;

/// Returns the heading.
pub(crate) fn title(document: &RunDocument) -> String {
    let server = document.server().map_or("server", |host| &*host.name.0);
    let title = match (document.study, document.plan.experiments.as_slice()) {
        (true, _) => format!("Study of {server}"),
        (false, [one]) if one.pairs.is_some() => {
            format!("{}: {}", one.title, counted(document.hosts.len(), "host"))
        }
        (false, [one]) if !one.factors.is_empty() => format!("{}: {server}", one.title),
        (false, [one]) => format!("Measurement of {server}: {}", traffic(&one.workload)),
        (false, _) => format!("Measurement of {server}"),
    };
    let place = place(document);
    if place.is_empty() {
        title
    } else {
        format!("{title} ({})", place.join(", "))
    }
}

/// Returns what was sent, in words.
fn traffic(workload: &Workload) -> String {
    format!(
        "{} {}, {}",
        workload.manner.transport.title(),
        workload.traffic.in_words(),
        counted(workload.connections, "flow")
    )
}

/// Returns the link that was measured, and that it was one of a lab.
fn place(document: &RunDocument) -> Vec<String> {
    let link = document.server().and_then(|host| host.link_rate);
    let link = link.map(|rate| format!("{rate} link"));
    let hosts = document.hosts.iter().filter(|host| host.lab).count();
    let lab = (hosts > 0).then(|| format!("lab of {} on this machine", counted(hosts, "host")));
    link.into_iter().chain(lab).collect()
}

/// Returns what was asked, when, and how much of it there is.
pub(crate) fn about(dataset: &Dataset<'_>) -> Vec<(String, String)> {
    let document = &dataset.recording.document;
    let mut about = vec![
        ("Asked".to_owned(), document.asked.clone()),
        ("Run".to_owned(), document.run.to_string()),
        ("Version".to_owned(), document.version.clone()),
        ("Started".to_owned(), document.started_utc.clone()),
    ];
    if let Some(ended) = &document.ended_utc {
        about.push(("Ended".to_owned(), ended.clone()));
    }
    about.push(("Trials".to_owned(), trials(dataset)));
    about.push((
        "Estimated time".to_owned(),
        document.plan.estimate.to_string(),
    ));
    if let Some(budget) = document.plan.budget {
        about.push(("Budget".to_owned(), budget.to_string()));
    }
    // Trials whose workers are confined to a number of CPUs have others.
    let mut trials_planned = document.plan.trials.iter();
    let is_pinned = trials_planned.any(|trial| trial.workload.manner.cpus.is_none());
    if is_pinned && (!document.server_cpus.is_empty() || !document.client_cpus.is_empty()) {
        let cpus = |cpus: &[u32]| match cpus {
            [] => "not pinned".to_owned(),
            some => words::list(&some.iter().map(u32::to_string).collect::<Vec<_>>()),
        };
        let (server, clients) = (cpus(&document.server_cpus), cpus(&document.client_cpus));
        about.push((
            "Workers on CPU".to_owned(),
            format!("server {server}, clients {clients}"),
        ));
    }
    about.extend(start(dataset).map(|told| ("Start".to_owned(), told)));
    about.push((
        "Seed of the order".to_owned(),
        document.plan.seed.to_string(),
    ));
    about
}

/// Returns how near to one instant the hosts of a fleet began.
fn start(dataset: &Dataset<'_>) -> Option<String> {
    let document = &dataset.recording.document;
    let is_of_fleet = |trial: TrialId| {
        let planned = document.plan.trial(trial);
        planned.is_some_and(|trial| !trial.hosts.is_empty())
    };
    let records = dataset.recording.trials.iter();
    let valid = records.filter(|record| record.is_valid() && is_of_fleet(record.trial));
    let (mut skews, uncertain): (Vec<f64>, Vec<u64>) = valid
        .filter_map(|record| {
            let uncertain = record.start_skew_uncertainty_ns.unwrap_or(0);
            Some((record.start_skew_ns? as f64, uncertain))
        })
        .unzip();
    let time = |ns: f64| Unit::Nanoseconds.display(ns);
    let worst = skews.iter().copied().max_by(f64::total_cmp)?;
    let by = match document.multicast {
        Some(group) => format!("by a datagram to {group}"),
        None => "at an instant of their clocks".to_owned(),
    };
    Some(format!(
        "{by}; first payloads within {} of each other ({} in the median), known to ± {}",
        time(worst),
        time(median(&mut skews)?),
        time(*uncertain.iter().max()? as f64)
    ))
}

fn trials(dataset: &Dataset<'_>) -> String {
    let (planned, done) = (dataset.planned(), dataset.done());
    match (planned - done.min(planned), dataset.invalid()) {
        (0, 0) => format!("{done}, all valid"),
        (0, invalid) => format!("{done}, {invalid} of them invalid"),
        (missing, invalid) => {
            format!("{done} of {planned} ({missing} not done), {invalid} of them invalid")
        }
    }
}

/// Returns why the numbers are partial, if they are.
pub(crate) fn partial(dataset: &Dataset<'_>) -> Option<String> {
    let recording = dataset.recording;
    let document = &recording.document;
    let mut reasons = Vec::new();
    match (&document.cut_short, &document.ended_utc) {
        (Some(reason), _) => reasons.push(format!("the run ended early: {reason}")),
        (None, None) => reasons.push("the end of the run was not recorded".to_owned()),
        (None, Some(_)) => {}
    }
    let done = dataset.done();
    let left = dataset.planned().saturating_sub(done);
    let planned = counted(dataset.planned(), "trial");
    if left > 0 {
        let were = if left == 1 { "was" } else { "were" };
        reasons.push(format!("{left} of {planned} {were} not done"));
    }
    if done > 0 && dataset.valid().next().is_none() {
        reasons.push("no trial is valid".to_owned());
    }
    if !recording.damage.is_empty() {
        reasons.push(format!(
            "the bundle is damaged: {}",
            recording.damage.join("; ")
        ));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns what was left out when planning and while running.
pub(crate) fn left_out(document: &RunDocument) -> Vec<LeftOut> {
    let mut left_out = document.plan.left_out.clone();
    for missing in &document.left_out {
        if !left_out.contains(missing) {
            left_out.push(missing.clone());
        }
    }
    left_out
}

/// Returns the hosts with what is known of them.
pub(crate) fn hosts(document: &RunDocument) -> Vec<HostSummary> {
    document.hosts.iter().map(host).collect()
}

fn host(host: &HostRecord) -> HostSummary {
    let part = match (host.part, host.lab) {
        (HostPart::Server, false) => "the server under study",
        (HostPart::Server, true) => "the server, a namespace of this machine",
        (HostPart::Client, false) => "a client that drives it",
        (HostPart::Client, true) => "a client, a namespace of this machine",
    };
    let limits = host.observers.iter().filter_map(|observer| {
        let reason = observer.missing.as_ref().or(observer.note.as_ref())?;
        Some((observer.observer.clone(), reason.clone()))
    });
    HostSummary {
        name: host.name.clone(),
        part: part.to_owned(),
        link: host.link.clone(),
        link_rate: host.link_rate,
        link_up_rate: host.link_up_rate,
        facts: lab_facts(host).chain(facts(&host.snapshot)).collect(),
        unread: unread(&host.snapshot),
        limits: limits.collect(),
    }
}

fn facts(snapshot: &Snapshot) -> impl Iterator<Item = (String, String)> {
    let facts = snapshot.facts.iter();
    facts.map(|fact| (fact.name.clone(), fact_text(&fact.value)))
}

/// Returns what a lab of the run made of the link of `host`, as far as it is something.
fn lab_facts(host: &HostRecord) -> impl Iterator<Item = (String, String)> {
    let link = host.lab_link.as_ref();
    let up_rate = host.link_up_rate.or(host.link_rate);
    let time = |time: Nanos| (time.0 > 0).then(|| time.to_string());
    let share = |share: f64| (share > 0.0).then(|| words::percent(share));
    let full = |queue: Option<Bytes>, rate: Option<BitsPerSec>| {
        Some(full_queue_time(queue?, rate?).to_string())
    };
    let facts = link.map(|link| {
        [
            ("up_rate", host.link_up_rate.map(|rate| rate.to_string())),
            ("delay", time(link.delay)),
            ("up_delay", time(link.up_delay)),
            ("jitter", time(link.jitter)),
            ("loss", share(link.loss)),
            ("reorder", share(link.reorder)),
            ("duplicate", share(link.duplicate)),
            ("full_queue", full(link.queue, host.link_rate)),
            ("up_full_queue", full(link.up_queue, up_rate)),
        ]
    });
    let facts = facts.into_iter().flatten();
    facts.filter_map(|(name, text)| Some((format!("lab_link.{name}"), text?)))
}

fn unread(snapshot: &Snapshot) -> Vec<String> {
    let facts = snapshot.facts.iter();
    facts
        .filter(|fact| matches!(fact.value, FactValue::Missing(_)))
        .map(|fact| fact.name.clone())
        .collect()
}

/// Returns a fact's value in words.
pub(crate) fn fact_text(value: &FactValue) -> String {
    match value {
        FactValue::Number(number, unit) => words::number(*unit, *number),
        FactValue::Text(text) => text.clone(),
        FactValue::Missing(reason) => format!("not read: {reason}"),
    }
}
