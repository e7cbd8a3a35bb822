//! The answer of a measurement, for people: the number, what limits it, how far to trust it, what to do
//! next. How it was made follows for those who ask.

use std::mem::discriminant;

use linerate_analyze::single::{Single, SingleTrial};
use linerate_model::finding::{Caution, FindingKind, TrustLevel};
use linerate_model::flag::TrialFlag;
use linerate_model::limiter::Limiter;
use linerate_model::number;
use linerate_model::response::{describe, name};
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Workload};
use linerate_model::{Nanos, text};

use super::{Output, RateUnit, cost, datagrams, details, rate_words};
use crate::term::{Look, labelled, labelled_as, line, listed, styled, words_width};

/// Lines that say why, under what limits a number: rules say first what tells the cause from others.
const WHY_LINES: usize = 2;

/// Prints the result.
pub(super) fn print(single: &Single<'_>, output: Output) {
    // What a host refused is said once, as the command's failure.
    let is_refused = |trial: &SingleTrial<'_>| !trial.valid && trial.responses.is_empty();
    if single.trials.iter().all(is_refused) {
        return;
    }
    line("");
    if let Some(group) = &single.group {
        line(&styled(group, Look::Strong));
    }
    match single.trials.as_slice() {
        [trial] => headline(&single.workload, trial, output.rate_unit),
        _ => across(single, output.rate_unit),
    }
    if !output.verbose {
        asked_for(single);
    }
    conclusions(single);
    notes(single);
    if let Some(next) = &single.next {
        labelled("next", next);
    }
    if output.verbose {
        if let Some((limiter, _)) = single.limiter() {
            labelled("guide", &limiter.page());
        }
        for (at, trial) in single.trials.iter().enumerate() {
            line("");
            if single.trials.len() > 1 {
                line(&styled(&format!("run {}", at + 1), Look::Quiet));
            }
            details::print(&single.workload, trial);
        }
    }
}

/// What a profile and measured interrupt times show; they are there only where they were asked for.
fn asked_for(single: &Single<'_>) {
    for (at, trial) in single.trials.iter().enumerate() {
        let told = details::measured_interrupts(trial)
            .into_iter()
            .chain(cost::profiles(trial));
        for (label, words) in told {
            let of = match single.trials.len() {
                1 => String::new(),
                _ => format!(" (run {})", at + 1),
            };
            labelled(&label, &(words + &of));
        }
    }
}

/// The numbers that the measurement was made for.
fn headline(workload: &Workload, trial: &SingleTrial<'_>, rate_unit: Option<RateUnit>) {
    if let Some(why) = &trial.invalid {
        labelled_as("INVALID", why, Look::Bad);
    }
    if workload.traffic.is_transactional() {
        transactions(workload, trial);
    } else if workload.traffic.carries_payload() {
        stream(trial, rate_unit);
    } else if let Some(held) = of(trial, name::CONNECTIONS_HELD) {
        let held = number::counted(held.round() as u64, "connection");
        labelled_as("held", &format!("{held} to the end"), Look::Strong);
    }
    datagrams::print(trial);
    if let Some(count) = of(trial, name::RETRANSMITTED) {
        let share = of(trial, name::RETRANSMITTED_SHARE).filter(|_| count > 0.0);
        let both = of(trial, name::RETRANSMITTED_BOTH);
        let words = match both.filter(|_| workload.traffic.is_transactional()) {
            Some(both) => retransmits_of_both(both, count, share),
            None => retransmits(count, share),
        };
        let needless = trial.needless();
        let needless = needless.map_or(String::new(), |words| format!("; {words}"));
        labelled("retransmits", &(words + &needless));
    }
}

/// Says how many segments both ends of transactions retransmitted, which both send, and how many of them
/// the server: a large response is lost on its way to the client, and the client's own count knows nothing of it.
fn retransmits_of_both(both: f64, by_clients: f64, share: Option<f64>) -> String {
    let by_server = both - by_clients;
    let count = Unit::Count.display(both);
    match by_server > 0.0 {
        false => retransmits(by_clients, share),
        true if by_clients > 0.0 => {
            format!(
                "{count}, {} of them by the server",
                Unit::Count.display(by_server)
            )
        }
        true => format!("{count}, all by the server"),
    }
}

/// Says how many segments were retransmitted, and which share of all that is.
fn retransmits(count: f64, share: Option<f64>) -> String {
    let count = Unit::Count.display(count);
    match share {
        None => count,
        Some(share) if share < 1.0 => {
            format!("{count} ({} of the segments)", number::percent(share))
        }
        Some(_) => format!("{count} (no other segment was sent)"),
    }
}

/// Whether there is a number, and what limits it is not known.
fn leaves_open(single: &Single<'_>) -> bool {
    let is_measured = single.trials.iter().any(|trial| trial.valid);
    is_measured && single.workload.traffic.carries_payload() && single.limiter().is_none()
}

/// What limits the number, what else was found, and whether to trust it.
fn conclusions(single: &Single<'_>) {
    match single.limiter() {
        Some((limiter, finding)) => {
            labelled_as("limited by", limiter.title(), Look::Strong);
            labelled("", &finding.claim);
            let columns = words_width();
            labelled("", text::leading(&finding.explanation, columns, WHY_LINES));
        }
        // Nothing is to be limited where nothing is carried.
        None if !single.workload.traffic.carries_payload() => {}
        None if leaves_open(single) => {
            let why = match (&single.group, single.standing.as_slice()) {
                (Some(_), _) => "other groups shared its path and its hosts".to_owned(),
                (None, [one, other]) => format!("{} or {}", one.title(), other.title()),
                (None, [one]) => format!("perhaps {}", one.title()),
                (None, _) => "nothing that was measured shows it".to_owned(),
            };
            labelled("limited by", &format!("unknown: {why}"));
        }
        None => {}
    }
    for proof in &single.proofs {
        let told = format!("{}: {}", proof.change(), proof.effect());
        labelled("change", &told);
        labelled_as("", &proof.outcome(), Look::Strong);
    }
    // Lost datagrams have a line of their own, with the places.
    for finding in &single.findings {
        if !matches!(finding.kind, FindingKind::Limiter(_) | FindingKind::Loss) {
            labelled("found", &finding.claim);
        }
    }
    trust(single);
    let partial = single.partial.as_ref();
    if let Some(partial) = partial.filter(|why| !single.trust.reasons.contains(why)) {
        labelled_as("partial", partial, Look::Warning);
    }
}

fn trust(single: &Single<'_>) {
    let look = match single.trust.level {
        TrustLevel::Good => Look::Good,
        TrustLevel::Limited => Look::Warning,
        TrustLevel::DoNotUse => Look::Bad,
    };
    // A green word beside a limiter that is not known reads as if nothing were open.
    if look == Look::Good && leaves_open(single) {
        labelled(
            "trust",
            &format!(
                "{}, of the number: its limiter is left open",
                single.trust.level.title()
            ),
        );
    } else {
        labelled_as("trust", single.trust.level.title(), look);
    }
    // What limits it is above, and need not be said twice.
    let spoils = single.limiter().and_then(|(limiter, _)| limiter.spoils());
    let reasons = single.trust.reasons.iter().map(String::as_str);
    let reasons: Vec<&str> = reasons
        .map(|reason| {
            if Some(reason) == spoils {
                "what limits it is not what was to be measured"
            } else {
                reason
            }
        })
        .collect();
    match reasons.as_slice() {
        [reason] => labelled("", reason),
        reasons => reasons.iter().for_each(|reason| listed(reason)),
    }
}

/// What to know of the trials that no finding and no caution says, each kind once.
fn notes<'a>(single: &'a Single<'_>) {
    let unsaid = single.trials.iter().map(|trial| {
        let flags = trial.flags.iter();
        flags.filter(|flag| !is_said(flag, trial, single)).collect()
    });
    let unsaid: Vec<Vec<&TrialFlag>> = unsaid.collect();
    let mut told = Vec::new();
    for kind in unsaid.iter().flatten().map(|flag| discriminant(*flag)) {
        if told.contains(&kind) {
            continue;
        }
        told.push(kind);
        let of_kind = |flags: &Vec<&'a TrialFlag>| -> Vec<&'a TrialFlag> {
            let flags = flags.iter().copied();
            flags.filter(|flag| discriminant(*flag) == kind).collect()
        };
        let mut such = unsaid.iter().map(of_kind).filter(|flags| !flags.is_empty());
        // In the words of the first trial of those.
        let first = such.next().unwrap_or_default();
        let trials = 1 + such.count();
        let of = match single.trials.len() {
            1 => String::new(),
            all => format!(" ({trials} of {all} runs)"),
        };
        for words in of_all_hosts(&first) {
            labelled("note", &(words + &of));
        }
    }
}

/// Joins what several hosts note in the same words: `host a: …` and `host b: …` as `hosts a, b: …`.
fn of_all_hosts(flags: &[&TrialFlag]) -> Vec<String> {
    let mut joined: Vec<(Vec<&str>, String)> = Vec::new();
    for flag in flags {
        let (host, what) = match flag {
            TrialFlag::Noted { host, note } => (Some(&*host.0), note.to_string()),
            flag => (None, flag.to_string()),
        };
        match joined.iter_mut().find(|(_, known)| *known == what) {
            Some((hosts, _)) => hosts.extend(host),
            None => joined.push((host.into_iter().collect(), what)),
        }
    }
    let whole = |(hosts, what): (Vec<&str>, String)| match hosts.as_slice() {
        [] => what,
        [host] => format!("host {host}: {what}"),
        hosts => format!("hosts {}: {what}", hosts.join(", ")),
    };
    joined.into_iter().map(whole).collect()
}

/// Whether a finding or a caution says what `flag` says of `trial`, or nothing depends on it.
fn is_said(flag: &TrialFlag, trial: &SingleTrial<'_>, single: &Single<'_>) -> bool {
    let cautions = |what: Caution| {
        let mut cautions = single.cautions.iter();
        cautions.any(|caution| caution.caution == Some(what))
    };
    match flag {
        TrialFlag::OtherPrograms { .. } | TrialFlag::Stolen(_) => cautions(Caution::Disturbed),
        TrialFlag::OtherTraffic { .. } => cautions(Caution::OtherTraffic),
        TrialFlag::HeldBack(_) => cautions(Caution::HeldBack),
        TrialFlag::Silent { .. } => cautions(Caution::Silent),
        TrialFlag::ShortOfCpu { .. } if cautions(Caution::Starved) => true,
        TrialFlag::Saturated(_) | TrialFlag::ShortOfCpu { .. } => is_of_cpus(single),
        TrialFlag::Unaccounted(_) => !trial.may_need_cpus() && !is_of_cpus(single),
        TrialFlag::FellShort { .. } => {
            cautions(Caution::ShortRequests) || cautions(Caution::ShortConnections)
        }
        // What ended the run early is why the result is partial, and stands there.
        TrialFlag::Partial { .. } | TrialFlag::Interrupted(_) => single.partial.is_some(),
        _ => false,
    }
}

/// Whether what limits the number is about CPUs.
fn is_of_cpus(single: &Single<'_>) -> bool {
    matches!(
        single.limiter(),
        Some((
            Limiter::Generator | Limiter::OtherPrograms | Limiter::Cpu | Limiter::CpuQuota,
            _
        ))
    )
}

pub(super) fn of(trial: &SingleTrial<'_>, name: &str) -> Option<f64> {
    trial.responses.get(name).copied()
}

/// Joins words, if there are any.
pub(super) fn list(words: impl IntoIterator<Item = String>, between: &str) -> Option<String> {
    let words: Vec<String> = words.into_iter().collect();
    (!words.is_empty()).then(|| words.join(between))
}

/// Returns those of `all` responses that there are, each behind its label.
pub(super) fn values(trial: &SingleTrial<'_>, unit: Unit, all: &[(&str, &str)]) -> Option<String> {
    let value = |(label, name): &(&str, &str)| {
        let value = unit.display(of(trial, name)?);
        Some(format!("{label} {value}"))
    };
    list(all.iter().filter_map(value), ", ")
}

fn stream(trial: &SingleTrial<'_>, rate_unit: Option<RateUnit>) {
    let Some(rate) = of(trial, name::THROUGHPUT) else {
        return labelled(
            "received",
            "unknown: the window has fewer than two readings",
        );
    };
    let asked = of(trial, name::THROUGHPUT_INTENDED).map_or(String::new(), |asked| {
        format!(
            ", {} of the {} requested",
            Unit::Percent.display(100.0 * rate / asked),
            rate_words(asked, rate_unit)
        )
    });
    let unread = trial.lost_unread.map_or(String::new(), |share| {
        let share = number::percent(share);
        format!("; {share} lost unread while a linerate worker had no time left")
    });
    // A device, a firewall and a CPU count packets, not bytes.
    let datagrams = of(trial, name::DATAGRAMS_RECEIVED_RATE).map_or(String::new(), |rate| {
        let rate = Unit::PerSecond.display(rate);
        format!(", {}", rate.replace("/s", " datagrams/s"))
    });
    let words = rate_words(rate, rate_unit) + &datagrams + &asked + &unread;
    let ways = [name::THROUGHPUT_TO_SERVER, name::THROUGHPUT_FROM_SERVER];
    let [Some(to), Some(from)] = ways.map(|name| of(trial, name)) else {
        return labelled_as("received", &words, Look::Strong);
    };
    // Each way of a link has a rate of its own, which is the answer; the sum is for what both cost.
    labelled_as("to the server", &rate_words(to, rate_unit), Look::Strong);
    labelled_as(
        "from the server",
        &rate_words(from, rate_unit),
        Look::Strong,
    );
    labelled("both ways", &words);
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
                ", {share} of the {} requested",
                Unit::PerSecond.display(asked)
            )
        });
        labelled_as("completed", &(words + &asked), Look::Strong);
    }
    let quantiles = [
        ("p50", name::RTT_P50),
        ("p99", name::RTT_P99),
        ("p99.9", name::RTT_P999),
        ("max", name::RTT_MAX),
    ];
    let Some(words) = values(trial, Unit::Nanoseconds, &quantiles) else {
        return;
    };
    let since = match workload.manner.requests_per_s {
        Some(_) => ", from the scheduled send time",
        None => "",
    };
    let label = if workload.traffic.is_placed() {
        "connection took"
    } else {
        "latency"
    };
    labelled(label, &(words + since));
    let late = of(trial, name::SENT_LATE_P50).zip(of(trial, name::SENT_LATE_P99));
    if let Some((p50, p99)) = late {
        let [p50, p99] = [p50, p99].map(|ns| Unit::Nanoseconds.display(ns));
        labelled(
            "sent late",
            &format!("p50 {p50}, p99 {p99}, included in the latency"),
        );
    }
}

/// Mean, interval and deviation over several runs.
fn across(single: &Single<'_>, rate_unit: Option<RateUnit>) {
    let name = single.workload.traffic.kind().about().headline;
    let unit = describe(name).unit;
    // A unit that was asked for takes the place of the prefix that fits best.
    let asked = rate_unit.filter(|_| unit == Unit::BitsPerSecond);
    let (unit, scale, symbol) = match asked {
        Some(asked) => (
            Unit::Ratio,
            asked.bits_per_second,
            format!(" {}", asked.name),
        ),
        None => (unit, 1.0, String::new()),
    };
    let valid = single.trials.iter().filter(|trial| trial.valid);
    let values: Vec<f64> = valid
        .filter_map(|trial| Some(of(trial, name)? / scale))
        .collect();
    let Some(estimate) = linerate_analyze::precision::of_runs(&values, unit) else {
        return;
    };
    let mean = number::estimate(&estimate).line() + &symbol;
    let within = match single.summary.runs_within_s {
        Some(seconds) => format!(" runs within {}", Nanos((1e9 * seconds) as u64)),
        None => String::new(),
    };
    let of = format!("n = {}{within}", values.len());
    let ways = match single.workload.traffic.stream() {
        Some((Direction::Both, _)) => " both ways",
        _ => "",
    };
    let words = match estimate.low {
        None => format!("{mean} ({of})"),
        Some(_) if estimate.is_range() => mean,
        Some(_) => format!("{mean} (95 % interval of {of})"),
    };
    labelled_as("mean", &(words + ways), Look::Strong);
    if values.len() > 2 {
        let deviation = linerate_analyze::deviation(&values);
        let share = deviation / estimate.value;
        let words = [unit.display(deviation) + &symbol, number::percent(share)];
        labelled("s", &format!("{} ({} of the mean)", words[0], words[1]));
    }
}

#[cfg(test)]
mod tests {
    use linerate_analyze::single::{Shown, single};
    use linerate_model::flag::Note;
    use linerate_truth::recording::{self, MadeRun, Truth};

    use super::*;

    #[test]
    fn what_hosts_say_in_the_same_words_is_said_once() {
        let noted = |host: &str, words: &str| TrialFlag::Noted {
            host: host.into(),
            note: Note::Words(words.to_owned()),
        };
        let flags = [
            noted("a", "it is"),
            noted("b", "it is"),
            TrialFlag::Told("not steady".to_owned()),
            noted("a", "other"),
        ];
        let said = of_all_hosts(&flags.each_ref());
        assert_eq!(said, ["hosts a, b: it is", "not steady", "host a: other"]);
    }

    #[test]
    fn time_in_no_mode_is_a_note_where_cpus_may_matter() {
        let is_noted = |worker_share, cpus, missing_share| {
            let mut run = MadeRun::new(1, Some(1e9));
            run.experiment("one", None, recording::stream());
            let truth = Truth {
                worker_share,
                cpus,
                missing_share,
                ..Truth::stream(300e6)
            };
            run.cell(&[], &[truth]);
            let shown = Shown {
                interval: Nanos(0),
                all_flows: false,
                sum_only: false,
            };
            let single = single(&run.recording, shown);
            let trial = &single.trials[0];
            let mut flags = trial.flags.iter();
            let flag = flags.find(|flag| matches!(flag, TrialFlag::Unaccounted(_)));
            flag.is_some_and(|flag| !is_said(flag, trial, &single))
        };
        assert!(is_noted(0.6, 1.7, 0.14));
        assert!(!is_noted(0.1, 0.3, 0.6), "no worker wants a CPU");
        assert!(!is_noted(0.6, 1.0, 0.14), "CPUs have more to spare");
    }

    #[test]
    fn a_window_of_retransmissions_alone_is_said_to_be_one() {
        assert_eq!(retransmits(3.0, Some(1.0)), "3 (no other segment was sent)");
        assert_eq!(retransmits(3.0, Some(0.0125)), "3 (1.25 % of the segments)");
        assert_eq!(retransmits(0.0, None), "0");
    }

    #[test]
    fn what_the_server_alone_retransmitted_is_counted_and_said_to_be_its() {
        let check = |both, by_clients, share, words: &str| {
            assert_eq!(retransmits_of_both(both, by_clients, share), words);
        };
        check(33.0, 0.0, None, "33, all by the server");
        check(40.0, 7.0, Some(0.1), "40, 33 of them by the server");
        check(7.0, 7.0, Some(0.0125), "7 (1.25 % of the segments)");
        check(0.0, 0.0, None, "0");
    }
}
