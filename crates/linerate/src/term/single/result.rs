//! The final block of a measurement, for people: label in the first sixteen columns, then words.

use std::collections::{BTreeMap, BTreeSet};

use linerate_analyze::single::{Flows, Single, SingleTrial};
use linerate_model::Bytes;
use linerate_model::manner::Transport;
use linerate_model::number;
use linerate_model::response::name;
use linerate_model::sample::End;
use linerate_model::setting;
use linerate_model::unit::Unit;
use linerate_model::workload::{Kind, Part, Setting, Traffic, Workload};

use super::{RateUnit, cost, datagrams, rate_words};
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

/// Prints the result.
pub(super) fn print(single: &Single<'_>, rate_unit: Option<RateUnit>) {
    // What a host refused is said once, as the command's failure.
    let is_refused = |trial: &SingleTrial<'_>| !trial.valid && trial.responses.is_empty();
    if single.trials.iter().all(is_refused) {
        return;
    }
    for (at, trial) in single.trials.iter().enumerate() {
        crate::term::line("");
        if single.trials.len() > 1 {
            crate::term::line(&format!("run {}", at + 1));
        }
        print_trial(&single.workload, trial, rate_unit);
    }
    if let Some(summary) = across(single) {
        crate::term::line("");
        labelled("mean", &summary);
    }
    // Whoever asks for one measurement knows that it is one.
    let known = |id: &str| single.trials.len() == 1 && id == "run/caution/replicates";
    for finding in &single.findings {
        labelled("found", &finding.claim);
    }
    for caution in single.cautions.iter().filter(|caution| !known(&caution.id)) {
        labelled("caution", &caution.claim);
    }
    if let Some(partial) = &single.partial {
        labelled("partial", partial);
    }
}

fn print_trial(workload: &Workload, trial: &SingleTrial<'_>, rate_unit: Option<RateUnit>) {
    if let Some(why) = &trial.invalid {
        labelled("INVALID", why);
    }
    match workload.traffic {
        Traffic::Stream { .. } => stream(workload, trial, rate_unit),
        Traffic::Rr { .. } | Traffic::Crr { .. } => transactions(workload, trial),
        Traffic::Idle => {
            if let Some(held) = of(trial, name::CONNECTIONS_HELD) {
                let words = format!("{} connections to the end", Unit::Count.display(held));
                labelled("held", &words);
            }
        }
    }
    datagrams::print(trial);
    window(trial);
    tcp(trial);
    cpu(workload, trial);
    mechanisms(trial);
    settings(trial);
    for flag in &trial.flags {
        labelled("note", &flag.to_string());
    }
}

pub(super) fn of(trial: &SingleTrial<'_>, name: &str) -> Option<f64> {
    trial.responses.get(name).copied()
}

fn stream(workload: &Workload, trial: &SingleTrial<'_>, rate_unit: Option<RateUnit>) {
    let Some(rate) = of(trial, name::THROUGHPUT) else {
        return;
    };
    let asked = of(trial, name::THROUGHPUT_INTENDED).map_or(String::new(), |asked| {
        format!(
            ", {} of the {} asked for",
            Unit::Percent.display(100.0 * rate / asked),
            rate_words(asked, rate_unit)
        )
    });
    let unread = trial.lost_unread().map_or(String::new(), |share| {
        format!(
            "; {} lost unread while a worker of ours had no time left",
            Unit::Percent.display(100.0 * share)
        )
    });
    labelled(
        "received",
        &(rate_words(rate, rate_unit) + &asked + &unread),
    );
    let ways = [
        ("  to server", name::THROUGHPUT_TO_SERVER),
        ("  from server", name::THROUGHPUT_FROM_SERVER),
    ];
    let ways = ways.map(|(label, name)| (label, of(trial, name)));
    if ways.iter().all(|(_, rate)| rate.is_some()) {
        for (label, rate) in ways {
            labelled(label, &rate_words(rate.unwrap_or_default(), rate_unit));
        }
    }
    messages(workload, trial);
}

/// Messages and calls, where messages are small or several go in one call.
fn messages(workload: &Workload, trial: &SingleTrial<'_>) {
    let Traffic::Stream { message_bytes, .. } = workload.traffic else {
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

fn transactions(workload: &Workload, trial: &SingleTrial<'_>) {
    if let Some(rate) = of(trial, name::TRANSACTIONS) {
        let noun = workload.traffic.kind().about().counted;
        let words = Unit::PerSecond
            .display(rate)
            .replace("/s", &format!(" {noun}/s"));
        let asked = of(trial, name::TRANSACTIONS_INTENDED).map_or(String::new(), |asked| {
            let share = Unit::Percent.display(100.0 * rate / asked);
            format!(
                ", {share} of the {} asked for",
                Unit::PerSecond.display(asked)
            )
        });
        labelled("completed", &(words + &asked));
    }
    let quantiles = [
        ("p50", name::RTT_P50),
        ("p99", name::RTT_P99),
        ("p99.9", name::RTT_P999),
        ("longest", name::RTT_MAX),
    ];
    let words: Vec<String> = quantiles
        .into_iter()
        .filter_map(|(label, name)| {
            let value = Unit::Nanoseconds.display(of(trial, name)?);
            Some(format!("{label} {value}"))
        })
        .collect();
    if words.is_empty() {
        return;
    }
    let since = match workload.manner.requests_per_s {
        Some(_) => ", from the intended instant",
        None => "",
    };
    let label = if workload.traffic.kind() == Kind::Crr {
        "connection took"
    } else {
        "round trip"
    };
    labelled(label, &(words.join(", ") + since));
    let late = of(trial, name::SENT_LATE_P50).zip(of(trial, name::SENT_LATE_P99));
    if let Some((p50, p99)) = late {
        let [p50, p99] = [p50, p99].map(|ns| Unit::Nanoseconds.display(ns));
        labelled(
            "sent late",
            &format!("p50 {p50}, p99 {p99}, which is in the round trip"),
        );
    }
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
                ", flows began within {}{uncertainty}",
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
    let mut words = Vec::new();
    if let Some(count) = of(trial, name::RETRANSMITTED) {
        let noun = if count == 1.0 { "segment" } else { "segments" };
        words.push(format!("{} {noun} sent again", Unit::Count.display(count)));
    }
    if let Some(bytes) = of(trial, name::PAYLOAD_PER_SEGMENT) {
        words.push(format!("{} a data segment", Unit::Bytes.display(bytes)));
    }
    if let Some(count) = of(trial, name::SEGMENTS_PER_ACK) {
        words.push(format!(
            "{} data segments an ACK",
            Unit::Ratio.display(count)
        ));
    }
    if !words.is_empty() {
        labelled("TCP", &words.join(", "));
    }
}

fn cpu(workload: &Workload, trial: &SingleTrial<'_>) {
    if let Some(busy) = of(trial, name::WORKER_BUSY_SHARE_MAX) {
        let words = format!(
            "busiest worker ran {} of the time",
            Unit::Percent.display(busy * 100.0)
        );
        labelled("generator", &words);
    }
    if let Some(busy) = of(trial, name::CPU_BUSY) {
        let parts: Vec<String> = [
            (name::CPU_USER, "user"),
            (name::CPU_SYSTEM, "system"),
            (name::CPU_SOFTIRQ, "softirq"),
            (name::CPU_IRQ, "irq"),
            (name::CPU_STEAL, "stolen"),
        ]
        .into_iter()
        .filter_map(|(name, label)| {
            Some(format!("{label} {}", Unit::Ratio.display(of(trial, name)?)))
        })
        .collect();
        let words = format!("{} ({})", Unit::Ratio.display(busy), parts.join(", "));
        labelled("CPUs busy", &words);
    }
    let measured: Vec<String> = [
        (name::SOFTIRQ_MEASURED, "soft"),
        (name::NET_RX, "of it receiving"),
        (name::NET_TX, "sending"),
        (name::HARDIRQ_MEASURED, "of devices"),
    ]
    .into_iter()
    .filter_map(|(name, label)| Some(format!("{label} {}", Unit::Ratio.display(of(trial, name)?))))
    .collect();
    if !measured.is_empty() {
        labelled("interrupts", &format!("{}, measured", measured.join(", ")));
    }
    // Connections that carry nothing have no packets that anything could be the cost of.
    if workload.traffic != Traffic::Idle {
        cost::print(trial);
    }
    if let Some(words) = cpus_used(trial.flows) {
        labelled("ran on", &words);
    }
    if let Some(words) = queues(trial) {
        labelled("queues", &words);
    }
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
            "the fullest of {queues} receive queues took {} times its share of the packets{flows}; \
             chance gives up to {}",
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
    let words: Vec<String> = hosts
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
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// How traffic was made: what each end says, once where all say the same.
fn mechanisms(trial: &SingleTrial<'_>) {
    for name in MECHANISMS {
        let mut said: Vec<(String, End)> = Vec::new();
        for flow in trial.flows.records() {
            let of_name = flow.settings.named(name);
            let Some(words) = of_name.and_then(in_force) else {
                continue;
            };
            // The first flow of each end speaks for the others: numbers differ a little.
            if !said.iter().any(|(_, end)| *end == flow.end) {
                said.push((words, flow.end));
            }
        }
        match said.as_slice() {
            [] => {}
            [(words, _)] => labelled(name, words),
            [(one, _), (other, _), ..] if one == other => labelled(name, one),
            [client, server] if reason(client).is_some() && reason(client) == reason(server) => {
                let words = [client, server].map(|(words, end)| {
                    let (what, _) = words.split_once(": ").unwrap_or((words.as_str(), ""));
                    format!("{} {what}", end_word(*end))
                });
                let why = reason(client).unwrap_or_default();
                labelled(name, &format!("{}: {why}", words.join(", ")));
            }
            several => {
                let of_end = |(words, end): &(String, End)| format!("{} {words}", end_word(*end));
                let words: Vec<String> = several.iter().map(of_end).collect();
                labelled(name, &words.join("; "));
            }
        }
    }
}

fn end_word(end: End) -> &'static str {
    match end {
        End::Client => "client",
        End::Server => "server",
    }
}

/// What follows the colon.
fn reason(said: &(String, End)) -> Option<&str> {
    said.0.split_once(": ").map(|(_, why)| why)
}

/// What a mechanism turned out to be, with what kept it from being what was asked for.
fn in_force(setting: &Setting) -> Option<String> {
    let words = setting.in_force()?;
    // Why a choice fell is said when it is granted, what came of it at the end.
    let chosen = setting.granted.as_ref().filter(|granted| {
        setting.effective.is_some() && granted.contains('(') && !words.contains(granted.as_str())
    });
    let reason = chosen
        .and_then(|granted| granted.split_once('('))
        .map_or(String::new(), |(_, reason)| format!(" ({reason}"));
    let cap = setting
        .capped_by
        .as_ref()
        .map_or(String::new(), |cap| format!(", capped by {cap}"));
    Some(format!("{words}{reason}{cap}"))
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
    let receiving = first([Part::Receiver, Part::Responder]).into_iter();
    let receiving = receiving.filter_map(|flow| flow.settings.named(setting::name::SO_RCVLOWAT));
    for setting in sending.flat_map(|flow| &flow.settings).chain(receiving) {
        let is_told = MECHANISMS.contains(&&*setting.name) || setting.is_result();
        if is_told || (setting.requested.is_none() && setting.name != setting::name::TCP_CONGESTION)
        {
            continue;
        }
        labelled(&setting.name, &setting_words(setting));
    }
}

fn setting_words(setting: &Setting) -> String {
    if let (None, Some(value)) = (&setting.requested, setting.in_force()) {
        return format!("{value}, the host's own choice");
    }
    let value = |value: &String| with_unit(&setting.name, value);
    let words = [
        ("requested", setting.requested.as_ref().map(value)),
        ("granted", setting.granted.as_ref().map(value)),
        ("effective", setting.effective.as_ref().map(value)),
        ("capped by", setting.capped_by.clone()),
    ];
    let words = words.into_iter();
    let words = words.filter_map(|(label, value)| Some(format!("{label} {}", value?)));
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
        "SO_BUSY_POLL" => format!("{value} µs"),
        _ => value.to_owned(),
    }
}

/// Requests of an open loop, of all flows: how many were due, and how many were sent.
fn requests(trial: &SingleTrial<'_>) {
    let requesting = trial.flows.records();
    let requesting = requesting.filter(|flow| flow.part == Part::Requester);
    let counts = requesting.filter_map(|flow| {
        let requests = flow.settings.named(setting::name::REQUESTS)?;
        let number = |value: &Option<String>| value.as_ref()?.parse::<u64>().ok();
        Some((number(&requests.requested)?, number(&requests.granted)?))
    });
    let sum = |all: (u64, u64), one: (u64, u64)| (all.0 + one.0, all.1 + one.1);
    let Some((due, sent)) = counts.reduce(sum) else {
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

/// Mean and interval over several runs.
fn across(single: &Single<'_>) -> Option<String> {
    let (name, unit) = match single.workload.traffic.is_transactional() {
        true => (name::TRANSACTIONS, Unit::PerSecond),
        false => (name::THROUGHPUT, Unit::BitsPerSecond),
    };
    let valid = single.trials.iter().filter(|trial| trial.valid);
    let values: Vec<f64> = valid.filter_map(|trial| of(trial, name)).collect();
    let estimate = linerate_analyze::student_t_interval(&values, unit)?;
    let mean = number::estimate(&estimate).line();
    estimate.low?;
    Some(match estimate.is_range() {
        true => mean,
        false => format!("{mean} (95 % interval, n = {})", values.len()),
    })
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
