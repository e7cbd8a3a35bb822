//! What the traffic cost, and what the CPUs did.

use linerate_analyze::single::SingleTrial;
use linerate_model::number;
use linerate_model::profile::Work;
use linerate_model::response::{name, share_name};
use linerate_model::unit::Unit;

use super::result::{list, of, values};
use crate::term::labelled;

/// Kinds of work that are told of each end.
const WORKS_TOLD_MAX: usize = 6;

pub(super) fn print(trial: &SingleTrial<'_>) {
    let workers = [
        ("clients", name::CLIENT_WORKERS),
        ("server", name::SERVER_WORKERS),
    ];
    if let Some(workers) = values(trial, Unit::Ratio, &workers) {
        labelled("workers' CPUs", &workers);
    }
    if let Some(words) = words(&|name| of(trial, name)) {
        labelled("cost", &words);
    }
    for (label, words) in profiles(trial) {
        labelled(&label, &words);
    }
}

/// Returns what each end did, where a profile says so, behind its label.
pub(super) fn profiles(trial: &SingleTrial<'_>) -> impl Iterator<Item = (String, String)> {
    let ends = ["client", "server"].into_iter();
    ends.filter_map(|end| Some((format!("{end} did"), profile(trial, end)?)))
}

/// Returns how many CPUs were busy, and in which modes.
pub(super) fn busy(of: &dyn Fn(&str) -> Option<f64>) -> Option<String> {
    let modes = [
        ("user", name::CPU_USER),
        ("system", name::CPU_SYSTEM),
        ("softirq", name::CPU_SOFTIRQ),
        ("irq", name::CPU_IRQ),
        ("steal", name::CPU_STEAL),
    ];
    let mode = |(label, name)| Some(format!("{label} {}", Unit::Ratio.display(of(name)?)));
    let busy = Unit::Ratio.display(of(name::CPU_BUSY)?);
    let modes = list(modes.into_iter().filter_map(mode), ", ").unwrap_or_default();
    Some(format!("{busy} ({modes})"))
}

/// Returns what traffic cost, of what `of` says of each response.
pub(super) fn words(of: &dyn Fn(&str) -> Option<f64>) -> Option<String> {
    let words = list([time(of), cycles(of)].into_iter().flatten(), "; ")?;
    Some(words + &share(of))
}

fn time(of: &dyn Fn(&str) -> Option<f64>) -> Option<String> {
    let each = [
        (name::CPU_PER_TRANSACTION, "transaction"),
        (name::CPU_PER_KIB, "KiB"),
    ];
    each.into_iter().find_map(|(name, of_what)| {
        let time = Unit::Nanoseconds.display(of(name)?);
        Some(format!("{time} of CPU per {of_what}"))
    })
}

/// Cycles as the CPU counted them, else as CPU time × frequency, and which.
fn cycles(of: &dyn Fn(&str) -> Option<f64>) -> Option<String> {
    let counted = [
        name::CYCLES_PER_PACKET,
        name::CYCLES_PER_BYTE,
        name::GBIT_PER_GHZ,
    ];
    let nominal = [
        name::CYCLES_PER_PACKET_NOMINAL,
        name::CYCLES_PER_BYTE_NOMINAL,
        name::GBIT_PER_GHZ_NOMINAL,
    ];
    let sources = [
        (counted, "counted by the CPU"),
        (nominal, "as CPU time × frequency"),
    ];
    let units = ["cycles per packet", "per byte", "Gbit/s per GHz"];
    sources.into_iter().find_map(|(names, source)| {
        let told = names.into_iter().zip(units).filter_map(|(name, unit)| {
            let value = Unit::Count.display(of(name)?);
            Some(format!("{value} {unit}"))
        });
        Some(format!("{} ({source})", list(told, ", ")?))
    })
}

fn share(of: &dyn Fn(&str) -> Option<f64>) -> String {
    match of(name::HOST_SHARE) {
        Some(share) if share < 1.0 => format!(
            "; this run's {} of the host's packets",
            number::percent(share)
        ),
        _ => String::new(),
    }
}

/// Returns the kinds of work that took most of an end's time.
fn profile(trial: &SingleTrial<'_>, end: &str) -> Option<String> {
    let mut shares: Vec<(f64, &str)> = Work::ALL
        .iter()
        .filter_map(|work| Some((of(trial, &share_name(end, *work))?, work.title())))
        .collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let told = shares.iter().take(WORKS_TOLD_MAX);
    let words = told.map(|(share, title)| format!("{title} {}", number::percent(*share)));
    list(words, ", ")
}
