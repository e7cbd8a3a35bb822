//! What a build of the program says of the corpus, and what another one says instead.
//!
//! A verdict is right where the limiter that is named is one of those that the set-up's truth allows, unknown where none is
//! named, else wrong. The lines of one build are text, to be compared with those of another: `bench verdicts OLD NEW`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, bail};
use linerate_analyze::evidence::{FACTS, Reading};
use linerate_analyze::evidence_of;
use linerate_analyze::infer::Evidence;
use linerate_truth::corpus::{self, Half, Recorded};

/// What is said of one recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The set-up.
    pub setup: String,
    /// Which of its runs.
    pub run: u32,
    /// What holds the number.
    pub cause: String,
    /// Whether a name would be right.
    pub is_nameable: bool,
    /// Whether nothing is wrong with the set-up.
    pub healthy: bool,
    /// The limiter that is named.
    pub named: Option<String>,
    /// Whether that is right.
    pub is_right: bool,
}

/// Where a verdict stands to the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A limiter is named that holds the number.
    Right,
    /// None is named.
    Unknown,
    /// Another one is named.
    Wrong,
}

impl Verdict {
    fn of(recorded: &Recorded) -> Self {
        let named = recorded.named().map(|limiter| limiter.id().to_owned());
        let truth = &recorded.truth;
        Self {
            setup: recorded.setup.clone(),
            run: recorded.run,
            cause: truth.cause.clone(),
            is_nameable: !truth.limiters.is_empty(),
            healthy: truth.healthy,
            is_right: named.as_ref().is_some_and(|id| truth.limiters.contains(id)),
            named,
        }
    }

    /// Returns where it stands to the truth.
    pub fn standing(&self) -> Standing {
        match (&self.named, self.is_right) {
            (None, _) => Standing::Unknown,
            (Some(_), true) => Standing::Right,
            (Some(_), false) => Standing::Wrong,
        }
    }

    fn named_or_none(&self) -> &str {
        self.named.as_deref().unwrap_or(NONE)
    }
}

/// What stands for no limiter in a line.
const NONE: &str = "unknown";
/// What stands at the end of a line for what its truth allows.
const MARKS: [(&str, bool, bool); 3] = [
    ("healthy", true, true),
    ("nameable", true, false),
    ("nameless", false, false),
];

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = match self.standing() {
            Standing::Right => "right",
            Standing::Unknown => "unknown",
            Standing::Wrong => "wrong",
        };
        let marks = MARKS.iter();
        let mark = marks
            .filter(|(_, nameable, healthy)| {
                (*nameable, *healthy) == (self.is_nameable, self.healthy)
            })
            .map(|(mark, ..)| *mark)
            .next();
        write!(
            f,
            "{}\t{}\t{}\t{}\t{standing}\t{}",
            self.setup,
            self.run,
            self.cause,
            self.named_or_none(),
            mark.unwrap_or("nameable"),
        )
    }
}

impl FromStr for Verdict {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let parts: Vec<&str> = line.split('\t').collect();
        let &[setup, run, cause, named, standing, mark] = parts.as_slice() else {
            bail!("not a verdict: {line}");
        };
        let mark = MARKS.iter().find(|one| one.0 == mark);
        let &(_, is_nameable, healthy) = mark.context("not a verdict")?;
        Ok(Self {
            setup: setup.to_owned(),
            run: run.parse()?,
            cause: cause.to_owned(),
            is_nameable,
            healthy,
            named: (named != NONE).then(|| named.to_owned()),
            is_right: standing == "right",
        })
    }
}

/// Returns what this build says of the recordings in `folder`, by set-up and run.
pub fn of_corpus(folder: &Path) -> anyhow::Result<Vec<Verdict>> {
    let mut all = of_each(folder, Verdict::of)?;
    all.sort_by(|a, b| (&a.setup, a.run).cmp(&(&b.setup, b.run)));
    Ok(all)
}

/// Returns the facts that the recordings in `folder` show, a line each below a line of names.
pub fn facts(folder: &Path) -> anyhow::Result<String> {
    let mut lines = of_each(folder, |recorded| {
        let head = Verdict::of(recorded);
        let half = Half::of(&recorded.setup).name();
        let truth = recorded.truth.limiters.join(",");
        let cells = evidence_of(&recorded.recording);
        let of_trial = |trial: &Evidence| {
            let degrees = trial.readings.iter().map(|reading| match reading {
                Reading::Known(_) => format!("{:.3}", reading.degree().unwrap_or_default()),
                Reading::Moot => String::new(),
                Reading::Unread => "?".to_owned(),
            });
            format!(
                "{half}\t{head}\t{truth}\t{}\n",
                degrees.collect::<Vec<_>>().join("\t")
            )
        };
        cells.iter().flatten().map(of_trial).collect::<String>()
    })?;
    lines.sort();
    let names: Vec<&str> = FACTS.iter().map(|fact| fact.id).collect();
    let head = "half\tsetup\trun\tcause\tnamed\tstanding\tmark\tlimiters";
    Ok(format!("{head}\t{}\n{}", names.join("\t"), lines.concat()))
}

/// Returns what `of` makes of each recording in `folder`, in any order.
pub fn of_each<T: Send>(
    folder: &Path,
    of: impl Fn(&Recorded) -> T + Sync,
) -> anyhow::Result<Vec<T>> {
    let files = corpus::files(folder).with_context(|| folder.display().to_string())?;
    let waiting = Mutex::new(files.into_iter());
    let next = || waiting.lock().ok()?.next();
    let work = || {
        let mut made = Vec::new();
        while let Some(path) = next() {
            let recorded = corpus::read(&path).with_context(|| path.display().to_string())?;
            made.extend(recorded.iter().map(&of));
        }
        anyhow::Ok(made)
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(made) => all.extend(made?),
                Err(_) => bail!("a recording could not be judged"),
            }
        }
        Ok(())
    })?;
    Ok(all)
}

/// Returns verdicts as a file has them.
pub fn text(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        let _ = writeln!(text, "{verdict}");
    }
    text
}

/// Returns the verdicts of a file.
pub fn parse(text: &str) -> anyhow::Result<Vec<Verdict>> {
    text.lines().map(str::parse).collect()
}

/// Returns how often the verdicts are right, in each half and of healthy set-ups.
pub fn summary(verdicts: &[Verdict]) -> String {
    let mut text = String::from(
        "| recordings | all | named | named but wrong | could be named | of these unknown |\n|---|---:|---:|---:|---:|---:|\n",
    );
    let mut row = |name: &str, wanted: &dyn Fn(&Verdict) -> bool| {
        let all: Vec<&Verdict> = verdicts.iter().filter(|one| wanted(one)).collect();
        let count = |is: &dyn Fn(&Verdict) -> bool| all.iter().filter(|one| is(one)).count();
        let named = count(&|one| one.named.is_some());
        let wrong = count(&|one| one.standing() == Standing::Wrong);
        let nameable = count(&|one| one.is_nameable);
        let unknown = count(&|one| one.is_nameable && one.named.is_none());
        let _ = writeln!(
            text,
            "| {name} | {} | {named} | {wrong} ({}) | {nameable} | {unknown} ({}) |",
            all.len(),
            percent(wrong, named),
            percent(unknown, nameable)
        );
    };
    for half in [Half::Fitted, Half::HeldOut] {
        row(half.name(), &|one| Half::of(&one.setup) == half);
    }
    row("healthy", &|one| one.healthy);
    row("all", &|_| true);
    text
}

fn percent(part: usize, whole: usize) -> String {
    match whole {
        0 => "–".to_owned(),
        whole => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    }
}

/// Returns the table of causes against what is named.
pub fn confusion(verdicts: &[Verdict]) -> String {
    let mut rows: BTreeMap<&str, BTreeMap<(Standing, &str), usize>> = BTreeMap::new();
    for verdict in verdicts {
        let row = rows.entry(&verdict.cause).or_default();
        let named = (verdict.standing(), verdict.named_or_none());
        *row.entry(named).or_default() += 1;
    }
    let mut text = String::from("| cause | right | unknown | wrong |\n|---|---|---|---|\n");
    for (cause, row) in rows {
        let cell = |standing| {
            let own = row.iter().filter(|((own, _), _)| *own == standing);
            let own = own.map(|((_, named), count)| format!("{named} {count}"));
            own.collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(
            text,
            "| {cause} | {} | {} | {} |",
            cell(Standing::Right),
            cell(Standing::Unknown),
            cell(Standing::Wrong)
        );
    }
    text
}

/// Returns what changes from `old` to `new`, those that go from right to wrong first.
pub fn changes(old: &[Verdict], new: &[Verdict]) -> String {
    let known: BTreeMap<(&str, u32), &Verdict> = old
        .iter()
        .map(|one| ((one.setup.as_str(), one.run), one))
        .collect();
    let mut same = 0;
    let mut sorted: BTreeMap<(&str, u8), Vec<String>> = BTreeMap::new();
    let mut missing = Vec::new();
    for one in new {
        let Some(before) = known.get(&(one.setup.as_str(), one.run)) else {
            missing.push(one);
            continue;
        };
        if before.named == one.named {
            same += 1;
            continue;
        }
        let kind = match (before.standing(), one.standing()) {
            (Standing::Right, Standing::Wrong) => ("from right to wrong", 0),
            (Standing::Unknown, Standing::Wrong) => ("from unknown to wrong", 1),
            (Standing::Right, Standing::Unknown) => ("from right to unknown", 2),
            (Standing::Wrong, Standing::Wrong) => ("from wrong to another wrong one", 3),
            (Standing::Wrong, Standing::Unknown) => ("from wrong to unknown", 4),
            (Standing::Unknown, _) => ("from unknown to right", 5),
            (Standing::Wrong, _) => ("from wrong to right", 6),
            (Standing::Right, _) => ("from right to another right one", 7),
        };
        sorted.entry(kind).or_default().push(format!(
            "  {} ({}): {} → {}, is {}",
            one.setup,
            one.run,
            before.named_or_none(),
            one.named_or_none(),
            one.cause
        ));
    }
    let mut sorted: Vec<_> = sorted.into_iter().collect();
    sorted.sort_by_key(|((_, rank), _)| *rank);
    let mut text = format!("the same: {same}\n");
    if !missing.is_empty() {
        let _ = writeln!(text, "new recordings: {}", missing.len());
    }
    for ((kind, _), lines) in sorted {
        let _ = writeln!(text, "{kind}: {}\n{}", lines.len(), lines.join("\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(setup: &str, named: Option<&str>, is_right: bool) -> Verdict {
        Verdict {
            setup: setup.to_owned(),
            run: 1,
            cause: "path-rate".to_owned(),
            is_nameable: true,
            healthy: false,
            named: named.map(str::to_owned),
            is_right,
        }
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let all = [
            verdict("a", Some("path-rate"), true),
            verdict("b", None, false),
            verdict("c", Some("cpu"), false),
        ];
        assert_eq!(parse(&text(&all)).expect("just written"), all);
    }

    #[test]
    fn what_goes_wrong_comes_first() {
        let old = [
            verdict("a", Some("path-rate"), true),
            verdict("b", None, false),
        ];
        let new = [
            verdict("a", Some("cpu"), false),
            verdict("b", Some("path-rate"), true),
        ];
        let told = changes(&old, &new);
        let at = |words: &str| told.find(words).expect(words);
        assert!(at("from right to wrong: 1") < at("from unknown to right: 1"));
        assert_eq!(changes(&old, &old), "the same: 2\n");
    }
}
