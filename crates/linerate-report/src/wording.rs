//! Words that every output shares: names of kinds, notes, how to read the numbers.

use std::collections::BTreeMap;

use linerate_model::analysis::{
    Analysis, Chapter, HostCounters, HostInterrupts, InterruptCpu, InterruptLine, Origin, Table,
    TableCell, TrialLine,
};
use linerate_model::answer::Answer;
use linerate_model::finding::{Estimate, Finding, FindingKind, Trust};
use linerate_model::id::TrialId;
use linerate_model::limiter::{Limiter, Remedy};
use linerate_model::text::sentence;
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
        "payload that arrived, in bits per second: by the count of the receiver's TCP, of other transports \
         by that of its receive calls. Headers are not counted.",
    ),
    (
        "computed curves",
        "dotted lines follow from a formula, for instance what a link can carry. Where they were asked \
         for, grey dashed lines are figures published for other systems and not measured here.",
    ),
    (
        "intervals that leave a chart",
        "an interval much longer than its value leaves the chart, and ends there in the head of an arrow; the data \
         below the chart has both ends.",
    ),
    (
        "limiter",
        "the one thing whose removal would raise the number. The strip below the first chart of a chapter \
         names it for each point; where none is named, the evidence does not single out one cause.",
    ),
    (
        "prefixes",
        "sizes use KiB = 1024 B; rates use kbit/s = 1000 bit/s.",
    ),
];

/// What the tables of protocol counters are.
pub const COUNTERS: &str = "Change during the measured windows of valid trials, under the kernel's own \
    names; all traffic of the host or its network namespace counts, including that of other programs.";

/// Returns the first reasons behind a judgement, as a sentence.
pub fn trust_reasons(trust: &Trust, shown: usize) -> String {
    match &trust.reasons[..shown.min(trust.reasons.len())] {
        [] => "No reason to doubt these numbers was found.".to_owned(),
        reasons => stop(&reasons.join("; ")),
    }
}

/// Returns the counters of all hosts that tell of trouble, or the others: a column a host, and what each
/// counts once.
pub fn counter_table(hosts: &[HostCounters], trouble: bool) -> Table {
    let mut lines: BTreeMap<&str, (Option<&str>, Vec<Option<f64>>)> = BTreeMap::new();
    for (at, host) in hosts.iter().enumerate() {
        for line in host.counters.iter().filter(|line| line.trouble == trouble) {
            let (meaning, moved) = lines.entry(&line.name).or_default();
            *meaning = meaning.or(line.meaning.as_deref());
            moved.resize(hosts.len(), None);
            moved[at] = Some(line.moved);
        }
    }
    let row = |(name, (meaning, moved)): (&str, (Option<&str>, Vec<Option<f64>>))| {
        let moved = moved.into_iter().map(|moved| match moved {
            Some(moved) => TableCell::Number(moved, Unit::Count),
            // Unchanged, or not read.
            None => TableCell::Text("–".to_owned()),
        });
        let name = TableCell::Text(name.to_owned());
        let meaning = TableCell::Text(meaning.unwrap_or("–").to_owned());
        std::iter::once(name)
            .chain(moved)
            .chain([meaning])
            .collect()
    };
    let heads = hosts.iter().map(|host| host.host.to_string());
    let heads = std::iter::once("Counter".to_owned()).chain(heads);
    Table::new(
        if trouble {
            "Counters of drops, errors and retransmissions"
        } else {
            "Other counters that changed"
        },
        heads.chain(["What it counts".to_owned()]),
        lines.into_iter().map(row),
    )
}

/// Says over how much time the counters of hosts were summed.
pub fn counted(hosts: &[HostCounters]) -> String {
    let mut spans: Vec<(String, Vec<String>)> = Vec::new();
    for host in hosts {
        let span = span(host.seconds, host.trials);
        match spans.iter_mut().find(|(known, _)| *known == span) {
            Some((_, names)) => names.push(host.host.to_string()),
            None => spans.push((span, vec![host.host.to_string()])),
        }
    }
    let one = |(span, names): &(String, Vec<String>)| format!("{}: {span}", names.join(", "));
    let spans: Vec<String> = spans.iter().map(one).collect();
    format!("{}.", spans.join("; "))
}

/// Writes over how much time something was counted.
pub fn span(seconds: f64, trials: u32) -> String {
    let span = number::display(seconds * 1e9, Unit::Nanoseconds);
    format!("{span} in {}", number::counted(trials, "trial"))
}

/// What the tables of interrupts are.
pub const INTERRUPTS: &str = "Interrupts per second of the whole machine during the measured windows of \
    valid trials, and the CPUs that took them.";

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
        ["Interrupt", "Name", "Device", "Queue", "Per second", "CPUs"],
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
        words.push(number::counted(cpus.len() - CPUS_MAX, "more CPU"));
    }
    if words.is_empty() {
        "–".to_owned()
    } else {
        words.join(", ")
    }
}

/// Returns the short name of a finding's kind.
pub fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Limiter(limiter) => limiter.heading(),
        FindingKind::Plateau => "Plateau",
        FindingKind::Loss => "Lost datagrams",
        FindingKind::Effect => "Effect",
        FindingKind::Caution => "Caution",
    }
}

/// Something to do.
pub struct Advice<'a> {
    /// What to do, a sentence.
    pub action: String,
    /// What that gained; none where it was not measured.
    pub gain: Option<&'a str>,
    /// What it costs, where that is told.
    pub cost: Option<String>,
    /// How it is taken back, where that is told.
    pub undo: Option<String>,
    /// What confirms it.
    pub confirm: Option<Confirm<'a>>,
    /// The place of the finding that it follows from.
    pub why: Option<usize>,
}

/// How to confirm that something helps.
pub struct Confirm<'a> {
    /// What stands before the command.
    pub before: &'static str,
    /// The command, or the flags that are added to the one that was asked for.
    pub command: &'a str,
    /// When it is to be run.
    pub when: String,
}

impl<'a> Confirm<'a> {
    fn command(command: &'a str, when: String) -> Self {
        Self {
            before: "",
            command,
            when,
        }
    }

    /// Returns how a remedy is confirmed: what was measured once is measured again as it was asked for.
    fn of(remedy: &Remedy, analysis: &Analysis) -> Self {
        match remedy.flags().filter(|_| analysis.is_one_measurement) {
            Some(flags) => Self {
                before: "the same command with ",
                command: flags,
                when: remedy.when(),
            },
            None => Self::command(remedy.measure, remedy.when()),
        }
    }
}

/// Returns what was measured to help, all of it, and then what would raise the numbers of the first `shown`
/// findings that name a limiter, where no gain of it was measured: as many as there is room for beside what was
/// measured.
///
/// Of a full link, which nothing is wrong with, and of what a chapter of the study brings about itself (requests
/// in pieces, or one at a time) nothing has to be done; what raises them stands in the finding and in the chapter.
pub fn advice(analysis: &Analysis, shown: usize) -> Vec<Advice<'_>> {
    let known = |text: &str| Some(if text.is_empty() { UNKNOWN } else { text }.to_owned());
    let measured = analysis.recommendations.iter().map(|item| Advice {
        action: item.action.clone(),
        gain: Some(&item.predicted),
        cost: known(&item.cost),
        undo: known(&item.undo),
        confirm: Some(Confirm::command(&item.confirm, String::new())),
        why: (analysis.findings.iter()).position(|finding| finding.id == item.finding),
    });
    let findings = analysis.findings.iter().take(shown).enumerate();
    let others = findings.filter_map(|(place, finding)| match finding.kind {
        FindingKind::Limiter(Limiter::LinkRate) => None,
        kind if kind.is_of_traffic() && finding.chapter.is_some() => None,
        FindingKind::Limiter(limiter) => {
            let mut measured = analysis.recommendations.iter();
            let is_measured = measured.any(|item| item.finding == finding.id);
            let remedy = limiter.remedy();
            let own = finding.action.as_deref();
            // What is done about others of its kind does not go with an action of its own.
            let usual = || Some(remedy).filter(|_| own.is_none());
            (!is_measured).then(|| Advice {
                action: stop(own.unwrap_or(remedy.action)),
                gain: None,
                cost: usual().map(|remedy| format!("{}.", remedy.cost)),
                undo: usual().map(|remedy| format!("{}.", remedy.undo)),
                confirm: usual().map(|remedy| Confirm::of(remedy, analysis)),
                why: Some(place),
            })
        }
        _ => None,
    });
    let room = shown.saturating_sub(analysis.recommendations.len());
    measured.chain(others.take(room)).collect()
}

/// Returns the claim of a finding, with the experiment that it is from where there are several.
pub fn claim(finding: &Finding) -> String {
    match &finding.from {
        Some(from) => format!("{} ({from}).", finding.claim.trim_end_matches('.')),
        None => finding.claim.clone(),
    }
}

/// Says why nothing is to be done.
pub fn nothing_to_change(analysis: &Analysis) -> &'static str {
    let bars = || analysis.answer.bars.iter();
    let are_full = bars().any(|bar| bar.limiter == Some(Limiter::LinkRate));
    if are_full {
        "Nothing to change: the link is full, and nothing that was varied was shown to gain."
    } else if analysis.verdicts.is_empty() {
        "Nothing to change: nothing was varied, and no limiter is known that a setting would raise."
    } else {
        "Nothing to change: nothing that was varied was shown to gain."
    }
}

/// What is told of a cost or a way back that is not known.
pub const UNKNOWN: &str = "none known";

/// Returns what to do before a run is measured again whose numbers are not to be used: what took the hosts
/// first, then what its cautions say.
pub fn before_again(analysis: &Analysis) -> Vec<String> {
    let limiters = analysis.answer.bars.iter().filter_map(|bar| bar.limiter);
    let took = |limiter: &Limiter| matches!(limiter, Limiter::OtherPrograms | Limiter::CpuQuota);
    let mut all: Vec<String> = Vec::new();
    for limiter in limiters.filter(took) {
        let action = stop(limiter.remedy().action);
        if !all.contains(&action) {
            all.push(action);
        }
    }
    let cautions = analysis.cautions.iter();
    all.extend(cautions.map(|one| format!("{} {}", one.claim, one.explanation)));
    all
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

/// Returns the number of each chapter as they stand: without gaps, and none where there is only one.
pub fn chapter_numbers(analysis: &Analysis) -> Vec<Option<usize>> {
    if analysis.chapters.len() < 2 {
        return vec![None; analysis.chapters.len()];
    }
    let mut count = 0;
    let chapters = analysis.chapters.iter();
    let number = chapters.map(|chapter| {
        chapter.number?;
        count += 1;
        Some(count)
    });
    number.collect()
}

/// Returns the chapter's answer, or why there is none.
pub fn answer(chapter: &Chapter, is_usable: bool) -> Result<&str, &'static str> {
    match &chapter.answer {
        // What was measured is shown, and no conclusion drawn; what hosts are like stays true.
        Some(_) if !is_usable && !chapter.trials.is_empty() => {
            Err("these numbers are not to be used")
        }
        Some(answer) => Ok(answer),
        None => Err("nothing valid was measured"),
    }
}

/// Returns the chapter's heading with its number in the document.
pub fn chapter_title(chapter: &Chapter, number: Option<usize>) -> String {
    match number {
        Some(number) => format!("{number}. {}", chapter.title),
        None => chapter.title.clone(),
    }
}

/// Ends `text` with a full stop, and begins it with a capital.
pub fn stop(text: &str) -> String {
    format!("{}.", sentence(text.trim_end_matches('.')))
}

/// Writes begin and end of a run: the day once, minutes.
pub fn moments(started: &str, ended: Option<&str>) -> String {
    // RFC 3339 in UTC: 2026-11-22T15:10:03Z.
    let parts = |moment: &str| {
        let (day, time) = moment.trim_end_matches('Z').split_once('T')?;
        Some((day.to_owned(), time.get(..5)?.to_owned()))
    };
    let Some((day, time)) = parts(started) else {
        return started.to_owned();
    };
    match ended.and_then(parts) {
        Some((same, end)) if same == day && end != time => format!("{day} {time}–{end} UTC"),
        Some((other, end)) if other != day => format!("{day} {time} – {other} {end} UTC"),
        _ => format!("{day} {time} UTC"),
    }
}

/// Returns `label` as it heads an axis or column: with a capital, unless it is a kernel name.
pub fn heading(label: &str) -> String {
    if label.contains(['_', '.']) {
        label.to_owned()
    } else {
        sentence(label)
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
    let all = number::counted(trials.len(), "trial");
    match invalid {
        0 => format!("{all}, all valid"),
        _ => format!("{all}, {invalid} invalid"),
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
        let is_number = |cell: &TableCell| match cell {
            TableCell::Text(text) => text == "–",
            cell => matches!(cell, TableCell::Estimate(_) | TableCell::Number(..)),
        };
        at > 0 && present.peek().is_some() && present.all(is_number)
    };
    (0..table.columns.len()).map(is_right).collect()
}

/// Says that there is more than the bars that are shown, and where; nothing where there is not.
pub fn bars_left_out(answer: &Answer) -> String {
    match answer.bars_left_out {
        0 => String::new(),
        more => format!(
            "{} left out: the chapters have all cells. ",
            number::counted(more, "bar")
        ),
    }
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
