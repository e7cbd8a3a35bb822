//! Chapter 0: the hosts. No trials; facts read at the start.

use std::collections::BTreeMap;

use linerate_model::analysis::{Chapter, Table, TableCell};
use linerate_model::fact::is_identity;
use linerate_model::host::{Fact, FactValue};
use linerate_model::lab_link::{LabLink, full_queue_time};
use linerate_model::metric::Metric;
use linerate_model::number;
use linerate_model::run::{HostPart, HostRecord, Recording, TrialRecord};
use linerate_model::sample::Subject;
use linerate_model::unit::{BitsPerSec, Bytes, Nanos, Unit};

use super::draw::unless_empty;
use super::queue_table::{fact_cell, queues};
use super::study_chapter::{Content, StudyChapter};
use crate::dataset::Dataset;
use crate::diagnose::Told;
use crate::front::fact_text;
use crate::queue_map::queue_of;
use crate::words;

/// Groups of facts by the start of their names, in the order of their tables.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "CPU and memory",
        &["cpu.", "numa.", "memory.", "virtualisation", "clocksource"],
    ),
    ("Link", &["link."]),
    ("Kernel and limits", &["kernel.", "limit."]),
    ("Settings", &["sysctl."]),
];

/// Facts of single queues and interrupts, which have a table of their own.
const OF_QUEUES: &[&str] = &["irq.", "queue."];

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 0,
    content: Content::Derived(chapter, |_| Vec::new()),
};

/// Returns the chapter.
fn chapter(dataset: &Dataset<'_>, _told: &Told<'_>) -> Chapter {
    let document = &dataset.recording.document;
    let mut tables = Vec::new();
    if let Some(server) = document.server() {
        for (title, prefixes) in GROUPS {
            tables.extend(facts(server, title, prefixes));
        }
        let link = server.link.as_deref();
        let flows = flows_by_queue(dataset, server);
        tables.extend(link.and_then(|link| queues(&server.snapshot, link, &flows)));
        tables.extend(differences(server, &document.hosts));
    }
    tables.push(hosts(dataset.recording));
    tables.extend(lab_links(&document.hosts));
    tables.extend(observers(&document.hosts));
    Chapter {
        id: "inventory".to_owned(),
        title: "Inventory".to_owned(),
        question: "What are the hosts and the links between them?".to_owned(),
        answer: document.server().map(|server| answer(dataset, server)),
        method: "Facts read from /proc, /sys, sysctls and netlink at the start of the run; memory \
                 bandwidth measured by copying a buffer larger than the caches."
            .to_owned(),
        tables,
        ..Chapter::default()
    }
}

/// Returns how many flow ends of all trials came by each receive queue of the data link.
fn flows_by_queue(dataset: &Dataset<'_>, server: &HostRecord) -> BTreeMap<u32, usize> {
    let mut flows = BTreeMap::new();
    let ends = dataset.recording.flows.iter();
    for end in ends.filter(|end| end.host == server.name) {
        let queue = queue_of(&server.snapshot, end.incoming);
        if let Some(queue) = queue.filter(|queue| Some(queue.device) == server.link.as_deref()) {
            *flows.entry(queue.number).or_default() += 1;
        }
    }
    flows
}

fn answer(dataset: &Dataset<'_>, server: &HostRecord) -> String {
    let snapshot = &server.snapshot;
    let mut parts = Vec::new();
    if let Some(cpus) = snapshot.number("cpu.online") {
        let model = snapshot
            .text("cpu.model")
            .map_or(String::new(), |model| format!(" ({model})"));
        parts.push(format!("{}{model}", number::counted(cpus as u64, "CPU")));
    }
    if let Some(copied) = memory_copy(dataset.recording, server) {
        parts.push(format!("memory copied at {copied}"));
    }
    match server.link_rate {
        Some(rate) => {
            let up = server.link_up_rate;
            let up = up.map_or(String::new(), |up| format!(" ({up} from it)"));
            parts.push(format!("a link of {rate}{up}"));
        }
        None => parts.push("a link of unknown rate".to_owned()),
    }
    if let Some(mtu) = server.mtu_bytes() {
        parts.push(format!("MTU {mtu} B"));
    }
    if let Some(release) = snapshot.text("kernel.release") {
        parts.push(format!("Linux {release}"));
    }
    let count = dataset.clients().count();
    let clients = number::counted(count, "client");
    let drive = if count == 1 { "drives" } else { "drive" };
    format!(
        "{} has {}; {clients} {drive} it.",
        server.name,
        words::list(&parts)
    )
}

/// The server's facts of one group; links other than the one in use are left out.
fn facts(server: &HostRecord, title: &str, prefixes: &[&str]) -> Option<Table> {
    let of_group = |fact: &&Fact| {
        let name = fact.name.as_str();
        prefixes.iter().any(|prefix| name.starts_with(prefix)) && is_of_data_link(server, name)
    };
    let facts = server.snapshot.facts.iter().filter(of_group);
    let rows = facts.map(|fact| vec![TableCell::Text(fact.name.clone()), fact_cell(&fact.value)]);
    let columns = ["Fact".to_owned(), server.name.to_string()];
    unless_empty(Table::new(title, columns, rows))
}

fn is_of_data_link(host: &HostRecord, name: &str) -> bool {
    match (name.strip_prefix("link."), &host.link) {
        (Some(rest), Some(link)) => rest.starts_with(&format!("{link}.")),
        _ => true,
    }
}

/// Facts in which a client differs from the server, the data link's name taken out.
fn differences(server: &HostRecord, hosts: &[HostRecord]) -> Option<Table> {
    let known = plain_facts(server);
    let mut rows = Vec::new();
    for host in hosts.iter().filter(|host| host.part == HostPart::Client) {
        for (name, value) in plain_facts(host) {
            let theirs = fact_text(value);
            let ours = known.get(&name).map(|value| fact_text(value));
            if ours.as_ref() != Some(&theirs) && !is_measured(&name) {
                rows.push(vec![
                    TableCell::Text(name),
                    TableCell::Text(ours.unwrap_or_else(|| "–".to_owned())),
                    TableCell::Text(host.name.to_string()),
                    TableCell::Text(theirs),
                ]);
            }
        }
    }
    let columns = ["Fact", "Server", "Host", "Its value"];
    unless_empty(Table::new(
        "Where clients differ from the server",
        columns,
        rows,
    ))
}

/// Measured facts never agree to the last digit.
fn is_measured(name: &str) -> bool {
    name == "memory.copy_bytes_per_s" || name == "cpu.mhz"
}

fn plain_facts(host: &HostRecord) -> BTreeMap<String, &FactValue> {
    host.snapshot
        .facts
        .iter()
        .filter(|fact| is_of_data_link(host, &fact.name) && !is_identity(&fact.name))
        .filter(|fact| !OF_QUEUES.iter().any(|prefix| fact.name.starts_with(prefix)))
        .map(|fact| {
            let link = host.link.as_ref().map(|link| format!("link.{link}."));
            let name = match link {
                Some(link) => fact.name.replacen(&link, "link.", 1),
                None => fact.name.clone(),
            };
            (name, &fact.value)
        })
        .collect()
}

/// Returns how fast `host` copies memory, and the quota that it was measured under, which held it back.
fn memory_copy(recording: &Recording, host: &HostRecord) -> Option<String> {
    let rate = host.snapshot.number("memory.copy_bytes_per_s")?;
    let rate = Unit::Bytes.display(rate);
    // One thread copies: more than a CPU leaves it alone.
    Some(
        match quota_cpus(recording, host).filter(|cpus| *cpus < 1.0) {
            Some(cpus) => {
                let cpus = words::number(Unit::Cpus, cpus);
                format!("{rate}/s under a CPU quota of {cpus}")
            }
            None => format!("{rate}/s"),
        },
    )
}

/// Returns the least CPU quota of the group of `host`'s agent that any trial saw.
fn quota_cpus(recording: &Recording, host: &HostRecord) -> Option<f64> {
    let of_trial = |trial: &TrialRecord| {
        let readings = recording
            .samples
            .trial(trial.trial)
            .readings(&host.name, &Subject::Host)?;
        let quotas = readings
            .into_iter()
            .filter(|(metric, _)| *metric == Metric::CgroupQuota);
        quotas.map(|(_, (_, ns))| ns).min()
    };
    let least = recording.trials.iter().filter_map(of_trial).min()?;
    Some(least as f64 / 1e9)
}

fn hosts(recording: &Recording) -> Table {
    let all = &recording.document.hosts;
    let columns = [
        "Host",
        "Address",
        "Link",
        "Rate",
        "Memory copy",
        "Clock uncertainty",
        "Clock drift",
        "Injected loss",
    ];
    // Only where links were made to lose, for trials that ask for it.
    let injected = all.iter().any(|host| host.link_loss_ppm.is_some());
    let shown = columns.len() - usize::from(!injected);
    let row = |host: &HostRecord| {
        let mut row = vec![
            TableCell::Text(host.name.to_string()),
            TableCell::Text(host.data_address.clone()),
            TableCell::of(host.link.as_deref(), "not known"),
            TableCell::of(
                host.link_rate.map(|rate| (rate.0, Unit::BitsPerSecond)),
                "not known",
            ),
            match memory_copy(recording, host) {
                Some(copied) => TableCell::Text(copied),
                None => TableCell::Absent("not measured".to_owned()),
            },
            TableCell::Number(host.clock.uncertainty_ns as f64, Unit::Nanoseconds),
            match host.clock.drift_ppb {
                Some([least, most]) => TableCell::Text(format!(
                    "{:.1} to {:.1} ppm",
                    least as f64 / 1e3,
                    most as f64 / 1e3
                )),
                None => TableCell::Absent("not known".to_owned()),
            },
            TableCell::of(
                host.link_loss_ppm
                    .map(|ppm| (f64::from(ppm) / 1e4, Unit::Percent)),
                "none asked for",
            ),
        ];
        row.truncate(shown);
        row
    };
    Table::new(
        "Hosts",
        columns[..shown].iter().copied(),
        all.iter().map(row),
    )
}

/// Hosts of a lab behind links that are alike.
struct AlikeLinks<'a> {
    host: &'a HostRecord,
    link: &'a LabLink,
    names: Vec<String>,
}

/// What few links have: the head of its column, and how much of it a link has.
type OddColumn = (&'static str, fn(&LabLink) -> f64, Unit);

const ODD_COLUMNS: [OddColumn; 4] = [
    ("Jitter", |link| link.jitter.0 as f64, Unit::Nanoseconds),
    ("Lost", |link| link.loss * 100.0, Unit::Percent),
    ("Overtaken", |link| link.reorder * 100.0, Unit::Percent),
    ("Twice", |link| link.duplicate * 100.0, Unit::Percent),
];

/// The links of the lab that the run made; hosts behind alike ones share a row.
fn lab_links(hosts: &[HostRecord]) -> Option<Table> {
    let server = hosts.iter().find(|host| host.part == HostPart::Server)?;
    let server_link = server.lab_link.as_ref()?;
    let all = alike_links(hosts);
    let has = |of: fn(&LabLink) -> f64| all.iter().any(|one| of(one.link) > 0.0);
    let odd: Vec<OddColumn> = ODD_COLUMNS
        .into_iter()
        .filter(|(_, of, _)| has(*of))
        .collect();
    let columns = [
        "Host",
        "Rate to it",
        "Rate from it",
        "Round trip with the server",
        "A full queue to it adds",
        "A full queue from it adds",
    ];
    let columns = (columns.into_iter()).chain(odd.iter().map(|(head, _, _)| *head));
    let row = |one: &AlikeLinks<'_>| {
        let odd = odd.iter();
        let odd = odd.map(|(_, of, unit)| TableCell::Number(of(one.link), *unit));
        lab_link(one, server_link).into_iter().chain(odd).collect()
    };
    Some(Table::new("Links of the lab", columns, all.iter().map(row)))
}

fn alike_links(hosts: &[HostRecord]) -> Vec<AlikeLinks<'_>> {
    let mut all: Vec<AlikeLinks<'_>> = Vec::new();
    for host in hosts {
        let Some(link) = &host.lab_link else { continue };
        let of = |host: &HostRecord| (host.part, host.link_rate, host.link_up_rate);
        let known = all
            .iter_mut()
            .find(|one| one.link == link && of(one.host) == of(host));
        match known {
            Some(known) => known.names.push(host.name.to_string()),
            None => all.push(AlikeLinks {
                host,
                link,
                names: vec![host.name.to_string()],
            }),
        }
    }
    all
}

fn lab_link(one: &AlikeLinks<'_>, server: &LabLink) -> [TableCell; 6] {
    let (host, link) = (one.host, one.link);
    let time = |time: Nanos| (time.0 as f64, Unit::Nanoseconds);
    let rate = |rate: Option<BitsPerSec>| {
        let rate = rate.map(|rate| (rate.0, Unit::BitsPerSecond));
        TableCell::of(rate, "unlimited")
    };
    let full = |queue: Option<Bytes>, rate: Option<BitsPerSec>, absent| {
        let full = queue.zip(rate);
        let full = full.map(|(queue, rate)| time(full_queue_time(queue, rate)));
        TableCell::of(full, absent)
    };
    let up_rate = host.link_up_rate.or(host.link_rate);
    let trip = (host.part == HostPart::Client).then(|| time(server.round_trip(link)));
    [
        TableCell::Text(words::list(&one.names)),
        rate(host.link_rate),
        rate(up_rate),
        TableCell::of(trip, "none"),
        full(link.queue, host.link_rate, "none"),
        full(link.up_queue, up_rate, "only in the host"),
    ]
}

fn observers(hosts: &[HostRecord]) -> Option<Table> {
    let all = hosts
        .iter()
        .flat_map(|host| host.observers.iter().map(move |observer| (host, observer)));
    // A row for what is missing on several hosts for one reason, as on those of a lab.
    let mut rows: Vec<([&str; 3], Vec<&str>)> = Vec::new();
    for (host, observer) in all {
        let (state, reason) = match (&observer.missing, &observer.note) {
            (Some(missing), _) => ("cannot run", missing),
            (None, Some(note)) => ("limited", note),
            (None, None) => continue,
        };
        let what: [&str; 3] = [&observer.observer, state, reason];
        match rows.iter_mut().find(|(known, _)| *known == what) {
            Some((_, hosts)) => hosts.push(&host.name.0),
            None => rows.push((what, vec![&host.name.0])),
        }
    }
    let every = hosts.len();
    let rows = rows.into_iter().map(|(what, on)| {
        let on = match on.len() {
            count if count == every && count > 1 => "all hosts".to_owned(),
            _ => on.join(", "),
        };
        let cells = what.map(TableCell::from);
        std::iter::once(TableCell::Text(on)).chain(cells).collect()
    });
    let columns = ["Host", "Observer", "State", "Reason"];
    unless_empty(Table::new("What could not be observed", columns, rows))
}
