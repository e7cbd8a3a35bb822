//! Words that every output shares: names of kinds, notes, how to read the numbers.

use linerate_model::analysis::{
    Chapter, CounterLine, HostCounters, HostInterrupts, InterruptCpu, InterruptLine, Origin, Table,
    TableCell, TrialLine,
};
use linerate_model::finding::{Estimate, FindingKind, Trust};
use linerate_model::id::TrialId;
use linerate_model::unit::Unit;

use crate::number;

/// How the numbers are to be read: term and meaning.
pub const READING: &[(&str, &str)] = &[
    (
        "value ± half width",
        "the mean over independent trials of the same cell and the half width of its confidence \
         interval. Where the interval is not symmetric both ends are written instead: \
         value (low – high).",
    ),
    (
        "confidence interval",
        "if the whole measurement were repeated many times under the same conditions, a 95 % \
         interval would contain the true mean in 95 of 100 repetitions. Means carry Student's t \
         interval over trials; quantiles carry an interval from order statistics. It covers \
         chance between trials, not a fault that all trials share.",
    ),
    (
        "n",
        "the number of independent trials behind a number. With n = 1 there is no interval.",
    ),
    (
        "trial",
        "one timed execution of one combination of levels: settle, warm up, measure, drain. Only \
         the measured window counts. The order of trials is random within blocks, so that a slow \
         drift of the machine does not look like an effect.",
    ),
    (
        "invalid trial",
        "a trial that lost data, failed a check or was disturbed. It is kept and shown with its \
         reason, and enters no number.",
    ),
    (
        "throughput",
        "bytes that arrived at the receiving program, times eight, per second. Headers are not \
         counted.",
    ),
    (
        "computed and published curves",
        "dotted lines follow from a formula, for instance what a link can carry; grey dashed \
         lines are figures published for other systems, drawn for comparison and not measured \
         here.",
    ),
    (
        "intervals that leave a chart",
        "an interval much longer than its value is high runs out of the picture at the top; the \
         data below the chart has its ends.",
    ),
    (
        "prefixes",
        "sizes use KiB = 1024 B; rates use kbit/s = 1000 bit/s.",
    ),
];

/// What the tables of protocol counters are.
pub const COUNTERS: &str = "Every counter of the kernel's protocols that moved in the measured \
    windows of valid trials, by the kernel's own name, the difference between the readings at the \
    windows' two ends. They count all traffic of the host or its network namespace, other programs' \
    included; two ends on one machine show the same.";

/// Returns the reasons behind a judgement, as a sentence.
pub fn trust_reasons(trust: &Trust) -> String {
    match trust.reasons.is_empty() {
        true => "Nothing stands against these numbers.".to_owned(),
        false => format!("{}.", trust.reasons.join("; ")),
    }
}

/// Returns the counters of `host` that tell of trouble, and the others.
pub fn counter_tables(host: &HostCounters) -> (Table, Table) {
    let table = |title: &str, trouble| {
        let of_kind = host.counters.iter().filter(|line| line.trouble == trouble);
        Table::new(
            title,
            ["Counter", "What it counts", "Moved by", "A second"],
            of_kind.map(counter_row),
        )
    };
    (
        table("Loss, want of room, work done twice", true),
        table("Other counters that moved", false),
    )
}

fn counter_row(line: &CounterLine) -> Vec<TableCell> {
    let meaning = line.meaning.clone();
    vec![
        TableCell::Text(line.name.clone()),
        TableCell::Text(meaning.unwrap_or_else(|| "–".to_owned())),
        TableCell::Number(line.moved, Unit::Count),
        TableCell::Number(line.per_s, Unit::PerSecond),
    ]
}

/// Writes over how much time something was counted.
pub fn span(seconds: f64, trials: u32) -> String {
    let noun = if trials == 1 { "trial" } else { "trials" };
    let span = number::display(seconds * 1e9, Unit::Nanoseconds);
    format!("{span} in {trials} {noun}")
}

/// What the tables of interrupts are.
pub const INTERRUPTS: &str = "Interrupts a second in the measured windows of valid trials, those of \
    the whole machine, and the CPUs that took them.";

/// Returns the interrupts of `host`, one a row.
pub fn interrupt_table(host: &HostInterrupts) -> Table {
    let text = |text: Option<&String>| TableCell::Text(text.map_or("–", String::as_str).to_owned());
    let row = |line: &InterruptLine| {
        vec![
            TableCell::Text(line.irq.to_string()),
            text(line.name.as_ref()),
            text(line.device.as_ref()),
            text(line.queue.as_ref()),
            TableCell::Number(line.per_s, Unit::PerSecond),
            TableCell::Text(cpus(&line.cpus)),
        ]
    };
    Table::new(
        "Interrupts by CPU",
        [
            "Interrupt",
            "Its name",
            "Device",
            "Queue",
            "A second",
            "Taken by",
        ],
        host.interrupts.iter().map(row),
    )
}

/// Most CPUs of an interrupt that are written out.
const CPUS_MAX: usize = 8;

/// Writes what each CPU took of an interrupt: `CPU 3: 1200/s, CPU 5: 24/s`.
fn cpus(cpus: &[InterruptCpu]) -> String {
    let one = |one: &InterruptCpu| {
        let rate = number::display(one.per_s, Unit::PerSecond);
        format!("CPU {}: {rate}", one.cpu)
    };
    let mut words: Vec<String> = cpus.iter().take(CPUS_MAX).map(one).collect();
    if cpus.len() > CPUS_MAX {
        words.push(format!("{} more CPUs", cpus.len() - CPUS_MAX));
    }
    match words.is_empty() {
        true => "–".to_owned(),
        false => words.join(", "),
    }
}

/// Returns the short name of a finding's kind.
pub fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Limiter(limiter) => limiter.heading(),
        FindingKind::Plateau => "Plateau",
        FindingKind::Derived => "Derived value",
        FindingKind::Effect => "Effect",
        FindingKind::Absence => "Expected, not found",
        FindingKind::Caution => "Caution",
    }
}

/// Returns what the origin of a curve is called behind its name; nothing when measured.
pub fn origin(origin: Origin) -> Option<&'static str> {
    match origin {
        Origin::Measured => None,
        Origin::Computed => Some("computed"),
        Origin::Published => Some("published"),
    }
}

/// Returns the curve's name with its origin, unless the name says it already.
pub fn curve_name(name: &str, from: Origin) -> String {
    match origin(from) {
        Some(word) if !name.to_lowercase().contains(word) => format!("{name} ({word})"),
        _ => name.to_owned(),
    }
}

/// Returns the chapter's heading with its number.
pub fn chapter_title(chapter: &Chapter) -> String {
    match chapter.number {
        Some(number) => format!("{number}. {}", chapter.title),
        None => chapter.title.clone(),
    }
}

/// Returns `label` as it heads an axis or column: with a capital, unless it is a kernel name.
pub fn heading(label: &str) -> String {
    let is_name = label.contains(['_', '.']);
    let mut rest = label.chars();
    match rest.next() {
        Some(first) if !is_name => first.to_uppercase().chain(rest).collect(),
        _ => label.to_owned(),
    }
}

/// Writes what the interval of an estimate is, behind its numbers, and how many values it rests on.
pub fn interval_note(estimate: &Estimate) -> String {
    let n = format!("n\u{a0}=\u{a0}{}", estimate.n);
    match number::estimate(estimate).spread {
        Some(_) if !estimate.is_range() => {
            format!("{} interval, {n}", number::percent(estimate.confidence))
        }
        _ => format!("no interval, {n}"),
    }
}

/// Neighbouring trials written as one: `5–8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialRun {
    /// The first of them.
    pub first: TrialId,
    /// How they are written.
    pub text: String,
}

/// Joins neighbours among `trials`, in their order.
pub fn trial_runs(trials: &[TrialId]) -> Vec<TrialRun> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &TrialId(id) in trials {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let written = |(first, last): (u32, u32)| TrialRun {
        first: TrialId(first),
        text: match last - first {
            0 => first.to_string(),
            _ => format!("{first}–{last}"),
        },
    };
    runs.into_iter().map(written).collect()
}

/// Writes trial numbers, runs of neighbours joined: `3, 5–8`.
pub fn trial_numbers(trials: &[TrialId]) -> String {
    let texts: Vec<String> = trial_runs(trials).into_iter().map(|run| run.text).collect();
    texts.join(", ")
}

/// Returns how many trials there are and how many of them are invalid.
pub fn trial_count(trials: &[TrialLine]) -> String {
    let invalid = trials
        .iter()
        .filter(|trial| trial.invalid.is_some())
        .count();
    let noun = if trials.len() == 1 { "trial" } else { "trials" };
    match invalid {
        0 => format!("{} {noun}, all valid", trials.len()),
        _ => format!("{} {noun}, {invalid} invalid", trials.len()),
    }
}

/// Writes a table cell as plain text.
pub fn cell(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => text.clone(),
        TableCell::Estimate(estimate) => number::estimate(estimate).line(),
        TableCell::Number(value, unit) => number::display(*value, *unit),
        TableCell::Absent(why) if why.is_empty() => "not measured".to_owned(),
        TableCell::Absent(why) => format!("– ({why})"),
    }
}

/// Writes a table cell where there is little room: what is absent is a dash.
pub fn short_cell(one: &TableCell) -> String {
    match one {
        TableCell::Absent(_) => "–".to_owned(),
        one => cell(one),
    }
}

/// Returns for each column of `table` whether it is set to the right, as numbers are.
///
/// The first column names its row, whatever it holds. A column that mixes words and numbers is a
/// list of properties and reads better from the left.
pub fn number_columns(table: &Table) -> Vec<bool> {
    let is_right = |at: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(at));
        let mut present = cells
            .filter(|cell| !matches!(cell, TableCell::Absent(_)))
            .peekable();
        let is_number =
            |cell: &TableCell| matches!(cell, TableCell::Estimate(_) | TableCell::Number(..));
        at > 0 && present.peek().is_some() && present.all(is_number)
    };
    (0..table.columns.len()).map(is_right).collect()
}

/// Returns the chapter number's words for something left out: `chapter 7`.
pub fn left_out_place(chapter: Option<u32>) -> String {
    chapter.map_or_else(
        || "whole run".to_owned(),
        |number| format!("chapter {number}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_trials_are_joined() {
        let check = |ids: &[u32], expect: &str| {
            let trials: Vec<TrialId> = ids.iter().copied().map(TrialId).collect();
            assert_eq!(trial_numbers(&trials), expect);
        };
        check(&[], "");
        check(&[4], "4");
        check(&[4, 5], "4–5");
        check(&[1, 2, 3, 7, 9, 10, 11], "1–3, 7, 9–11");
        check(&[u32::MAX, 0], "4294967295, 0");
    }

    #[test]
    fn a_kernel_name_keeps_its_letters() {
        assert_eq!(heading("payload"), "Payload");
        assert_eq!(heading("tcp_rmem"), "tcp_rmem");
        assert_eq!(heading(""), "");
    }

    #[test]
    fn an_origin_is_said_once() {
        assert_eq!(
            curve_name("Sun 2003, published", Origin::Published),
            "Sun 2003, published"
        );
        assert_eq!(
            curve_name("link limit", Origin::Computed),
            "link limit (computed)"
        );
        assert_eq!(curve_name("C = 1", Origin::Measured), "C = 1");
    }
}
