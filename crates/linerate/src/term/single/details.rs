//! How the traffic was made and what it took, for those who ask: window, CPUs, placement, mechanisms, socket
//! options.

use std::collections::{BTreeMap, BTreeSet};

use linerate_analyze::single::{Flows, SingleTrial};
use linerate_model::Bytes;
use linerate_model::manner::Transport;
use linerate_model::number::{self, agreeing};
use linerate_model::response::name;
use linerate_model::sample::End;
use linerate_model::setting;
use linerate_model::shortfall::RequestCount;
use linerate_model::unit::Unit;
use linerate_model::workload::{Part, Setting, Workload};

use super::cost;
use super::result::{list, of, values};
use crate::term::labelled;

/// Messages from this size on are not counted aloud: the rate in bytes says enough.
const MESSAGE_BYTES_TOLD_MAX: u64 = 16 << 10;
/// CPUs of a host that are listed.
const CPUS_LISTED_MAX: usize = 8;
/// The settings that say how traffic was made, in this order.
const MECHANISMS: &[&str] = &[
    setting::name::PLACEMENT,
    setting::name::SEND,
    setting::name::RECEIVE,
    setting::name::WAIT,
    setting::name::PACE,
];

/// Prints it all.
pub(super) fn print(workload: &Workload, trial: &SingleTrial<'_>) {
    messages(workload, trial);
    window(trial);
    tcp(trial);
    cpu(workload, trial);
    mechanisms(trial);
    settings(trial);
}

/// Messages and calls, where messages are small or several go in one call.
fn messages(workload: &Workload, trial: &SingleTrial<'_>) {
    let Some((_, message_bytes)) = workload.traffic.stream() else {
        return;
    };
    let manner = &workload.manner;
    let is_small = message_bytes.0 <= MESSAGE_BYTES_TOLD_MAX || manner.sizes.is_some();
    let Some(rate) = of(trial, name::MESSAGES).filter(|_| is_small) else {
        return;
    };
    let calls = of(trial, name::SEND_CALLS).map_or(String::new(), |calls| {
        format!(" in {} send calls/s", Unit::Count.display(calls.round()))
    });
    let noun = match manner.transport {
        Transport::Udp => "datagrams",
        _ => "messages",
    };
    labelled(noun, &(Unit::PerSecond.display(rate) + &calls));
}

fn window(trial: &SingleTrial<'_>) {
    let skew = trial
        .start_skew_us
        .filter(|_| trial.flows.records().nth(2).is_some())
        .map_or(String::new(), |skew| {
            // Hosts with one clock know it exactly.
            let uncertainty = trial.start_skew_uncertainty_us.filter(|us| *us > 0.0);
            let uncertainty = uncertainty.map_or(String::new(), |us| {
                format!(" (± {})", Unit::Nanoseconds.display(us * 1e3))
            });
            format!(
                ", flows started within {}{uncertainty}",
                Unit::Nanoseconds.display(skew * 1e3)
            )
        });
    let words = format!(
        "{} s, the same on every host{skew}",
        Unit::Ratio.display(trial.window_s)
    );
    labelled("window", &words);
}

fn tcp(trial: &SingleTrial<'_>) {
    let payload = of(trial, name::PAYLOAD_PER_SEGMENT)
        .map(|bytes| format!("{} per data segment", Unit::Bytes.display(bytes)));
    let segments = of(trial, name::SEGMENTS_PER_ACK).map(|count| {
        let (one, many) = ("data segment per ACK", "data segments per ACK");
        agreeing(&Unit::Ratio.display(count), one, many)
    });
    if let Some(words) = list([payload, segments].into_iter().flatten(), ", ") {
        labelled("TCP", &words);
    }
}

fn cpu(workload: &Workload, trial: &SingleTrial<'_>) {
    if let Some(busy) = of(trial, name::WORKER_BUSY_SHARE_MAX) {
        let share = number::percent(busy);
        labelled(
            "generator",
            &format!("busiest worker ran {share} of the time"),
        );
    }
    if let Some(words) = cost::busy(&|name| of(trial, name)) {
        labelled("CPUs busy", &words);
    }
    if let Some((label, words)) = measured_interrupts(trial) {
        labelled(&label, &words);
    }
    // Connections that carry nothing have no packets that anything could be the cost of.
    if workload.traffic.carries_payload() {
        cost::print(trial);
    }
    if let Some(words) = cpus_used(trial.flows) {
        labelled("ran on", &words);
    }
    if let Some(words) = queues(trial) {
        labelled("queues", &words);
    }
}

/// The CPUs that interrupts took, where their time was measured, behind its label.
pub(super) fn measured_interrupts(trial: &SingleTrial<'_>) -> Option<(String, String)> {
    let measured = [
        ("soft", name::SOFTIRQ_MEASURED),
        ("of it receiving", name::NET_RX),
        ("sending", name::NET_TX),
        ("of devices", name::HARDIRQ_MEASURED),
    ];
    let measured = values(trial, Unit::Ratio, &measured)?;
    Some(("interrupts".to_owned(), format!("{measured}, measured")))
}

/// How packets lay on the receive queues, where that is less even than chance would have it.
fn queues(trial: &SingleTrial<'_>) -> Option<String> {
    let uneven = of(trial, name::RX_QUEUE_IMBALANCE)?;
    let chance = of(trial, name::RX_QUEUE_CHANCE_MOST)?;
    let queues = of(trial, name::RX_QUEUES)?;
    let flows = of(trial, name::RX_QUEUE_FLOWS_IMBALANCE).map_or(String::new(), |flows| {
        format!(
            ", {} times its share of the flows",
            Unit::Ratio.display(flows)
        )
    });
    (uneven > chance).then(|| {
        format!(
            "the fullest of {queues} receive queues took {} times its share of the packets{flows}; random \
             hashing gives up to {}",
            Unit::Ratio.display(uneven),
            Unit::Ratio.display(chance)
        )
    })
}

/// The CPUs that each host's ends were last seen on: "client1 CPU 0, server CPU 1".
fn cpus_used(flows: Flows<'_>) -> Option<String> {
    let mut hosts: BTreeMap<(End, &str), BTreeSet<u32>> = BTreeMap::new();
    for flow in flows.records() {
        let cpus = hosts.entry((flow.end, &*flow.host.0)).or_default();
        cpus.extend(flow.cpu);
    }
    let words = hosts
        .into_iter()
        .filter(|(_, cpus)| !cpus.is_empty())
        .map(|((_, host), cpus)| {
            let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
            let more = if cpus.len() > CPUS_LISTED_MAX {
                " …"
            } else {
                ""
            };
            let listed: Vec<String> = cpus
                .iter()
                .take(CPUS_LISTED_MAX)
                .map(u32::to_string)
                .collect();
            format!("{host} {noun} {}{more}", listed.join(" "))
        });
    list(words, ", ")
}

/// How traffic was made: what each end says, once where all say the same.
fn mechanisms(trial: &SingleTrial<'_>) {
    for name in MECHANISMS {
        let mut said: Vec<(&Setting, End)> = Vec::new();
        for flow in trial.flows.records() {
            let Some(setting) = flow.settings.named(name) else {
                continue;
            };
            // The first flow of each end speaks for the others: numbers differ a little.
            if setting.in_force().is_some() && !said.iter().any(|(_, end)| *end == flow.end) {
                said.push((setting, flow.end));
            }
        }
        let whole = |setting: &Setting| in_force(setting) + &why(setting);
        let words = match said.as_slice() {
            [] => continue,
            [(one, _)] => whole(one),
            [(one, _), (other, _), ..] if whole(one) == whole(other) => whole(one),
            [(one, _), (other, _), ..] if one.why.is_some() && one.why == other.why => {
                of_ends(&said, in_force) + &why(one)
            }
            several => of_ends(several, whole),
        };
        labelled(name, &words);
    }
}

fn of_ends(said: &[(&Setting, End)], words: impl Fn(&Setting) -> String) -> String {
    let said = said
        .iter()
        .map(|(setting, end)| format!("{end} {}", words(setting)));
    said.collect::<Vec<_>>().join("; ")
}

/// What a mechanism turned out to be, with what kept it from being what was asked for.
fn in_force(setting: &Setting) -> String {
    let cap = setting.capped_by.as_ref();
    let cap = cap.map_or(String::new(), |cap| format!(", clamped by {cap}"));
    setting.in_force().unwrap_or_default().to_owned() + &cap
}

/// Why it was chosen, behind a colon.
fn why(setting: &Setting) -> String {
    let why = setting.why.as_ref();
    why.map_or(String::new(), |why| format!(": {why}"))
}

/// Socket options that were asked for, and always the congestion control in force, from the
/// sending end; of the receiving end those that only it has.
fn settings(trial: &SingleTrial<'_>) {
    requests(trial);
    let first = |parts: [Part; 2]| {
        let mut flows = trial.flows.records();
        flows.find(|flow| parts.contains(&flow.part))
    };
    let sending = first([Part::Sender, Part::Requester]).into_iter();
    let receiving = first([Part::Receiver, Part::Responder])
        .into_iter()
        .filter_map(|flow| flow.settings.named(setting::name::SO_RCVLOWAT));
    for setting in sending.flat_map(|flow| &flow.settings).chain(receiving) {
        let is_told = MECHANISMS.contains(&&*setting.name);
        if is_told || (setting.requested.is_none() && setting.name != setting::name::TCP_CONGESTION)
        {
            continue;
        }
        labelled(&setting.name, &setting_words(setting));
    }
}

fn setting_words(setting: &Setting) -> String {
    if let (None, Some(value)) = (&setting.requested, setting.in_force()) {
        // A route may give another than the host does.
        let note = match setting.name.as_str() {
            setting::name::TCP_CONGESTION => "not requested",
            _ => "host default",
        };
        return format!("{value} ({note})");
    }
    let value = |value: &String| with_unit(&setting.name, value);
    let words = [
        ("requested", setting.requested.as_ref().map(value)),
        ("granted", setting.granted.as_ref().map(value)),
        ("effective", setting.effective.as_ref().map(value)),
        ("clamped by", setting.capped_by.clone()),
    ]
    .into_iter()
    .filter_map(|(label, value)| Some(format!("{label} {}", value?)));
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the value of a setting with its unit, if it is a number of one.
fn with_unit(name: &str, value: &str) -> String {
    let Ok(number) = value.parse::<u64>() else {
        return value.to_owned();
    };
    match name {
        setting::name::SO_SNDBUF | setting::name::SO_RCVBUF | setting::name::SO_RCVLOWAT => {
            Bytes(number).to_string()
        }
        setting::name::TCP_MAXSEG => format!("{value} B"),
        setting::name::SO_BUSY_POLL => format!("{value} µs"),
        _ => value.to_owned(),
    }
}

/// Requests of an open loop, of all flows: how many were due, and how many were sent.
fn requests(trial: &SingleTrial<'_>) {
    let counts = trial.flows.records().filter_map(|flow| flow.requests);
    let sum = |all: RequestCount, one: RequestCount| RequestCount {
        due: all.due + one.due,
        sent: all.sent + one.sent,
    };
    let Some(RequestCount { due, sent }) = counts.reduce(sum) else {
        return;
    };
    let count = |number: u64| Unit::Count.display(number as f64);
    let words = match due.saturating_sub(sent) {
        0 => format!("{} were due in all phases, and sent", count(due)),
        missed => format!(
            "{} were due in all phases, {} of them were not sent: responses came too slowly",
            count(due),
            count(missed)
        ),
    };
    labelled("requests", &words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_numbers_of_something_have_its_unit() {
        let check = |name: &str, value: &str, expected: &str| {
            assert_eq!(with_unit(name, value), expected);
        };
        check("SO_SNDBUF", "65536", "64 KiB");
        check("SO_RCVLOWAT", "100", "100 B");
        check("TCP_MAXSEG", "1448", "1448 B");
        check("SO_BUSY_POLL", "50", "50 µs");
        check("TCP_NODELAY", "1", "1");
        check("TCP_CONGESTION", "bbr", "bbr");
    }
}
