//! Sides that were compared: lines for a terminal, Markdown, and JUnit for what collects results of builds.

use linerate_model::compared::{Changed, Compared, NotComparable, Pair};
use linerate_model::finding::Verdict;
use linerate_model::number::{self, percent};
use linerate_model::run::HostPart;

/// Changes that are told; the document has all of them.
const CHANGES_MAX: usize = 8;
/// Characters of a value that is told, of lists that differ in one word.
const VALUE_MAX: usize = 60;

/// Returns the lines for a terminal.
pub fn compared_text(compared: &Compared) -> String {
    let mut lines = Vec::new();
    if compared.interleaved {
        lines.extend(levels(compared));
        lines.extend(compared.pairs.iter().map(|pair| sentence(compared, pair)));
    } else {
        lines.extend(runs(compared));
    }
    lines.extend(
        compared
            .not_comparable
            .iter()
            .map(|one| apart(compared, one)),
    );
    lines.extend(changes(&compared.changed, compared));
    lines.join("\n")
}

/// Returns the number of each level.
fn levels(compared: &Compared) -> Vec<String> {
    let widest = compared
        .sides
        .iter()
        .map(|side| side.name.chars().count())
        .max();
    let widest = widest.unwrap_or(0);
    let value = |at: usize| {
        let as_base = compared.pairs.iter().find(|pair| pair.base == at);
        let as_other = compared.pairs.iter().find(|pair| pair.of == at);
        let base = as_base.map(|pair| pair.base_value);
        base.or(as_other.map(|pair| pair.value))
    };
    let line = |at: usize| {
        let name = &compared.sides[at].name;
        Some(format!(
            "  {name:<widest$}  {}",
            number::estimate(&value(at)?).line()
        ))
    };
    (0..compared.sides.len()).filter_map(line).collect()
}

/// Returns what a pair says in one sentence, as of programs that were timed: "cubic ran 3.0 × (2.6–3.4) faster than bbr".
fn sentence(compared: &Compared, pair: &Pair) -> String {
    let [one, other] = [pair.of, pair.base].map(|side| &*compared.sides[side].name);
    let ratio = ratio(pair);
    match pair.verdict {
        Verdict::Same => format!(
            "{one} and {other} are the same within {}: {ratio}",
            percent(pair.margin)
        ),
        Verdict::NotDecided => {
            let why = pair
                .open_because
                .as_deref()
                .unwrap_or("more blocks (--runs) may tell");
            format!("not decided which is faster, {one} or {other}: {ratio}; {why}")
        }
        Verdict::Differs if pair.is_better() == Some(true) => {
            format!("{one} ran {ratio} faster than {other}")
        }
        Verdict::Differs => format!("{one} had {ratio} the {} of {other}", pair.title),
    }
}

/// Returns runs against the first, pair by pair, in columns.
fn runs(compared: &Compared) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, side) in compared.sides.iter().enumerate() {
        let what = if at == 0 { "base" } else { "run" };
        lines.push(format!("{what:<5} {}, {}", side.name, side.started_utc));
        lines.extend(
            side.partial
                .iter()
                .map(|why| format!("      partial: {why}")),
        );
    }
    let rows: Vec<[String; 4]> = compared
        .pairs
        .iter()
        .map(|pair| row(compared, pair))
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    for [what, values, ratio, verdict] in &rows {
        let [a, b, c] = widths;
        lines.push(format!("{what:<a$}  {values:<b$}  {ratio:<c$}  {verdict}"));
    }
    lines
}

fn row(compared: &Compared, pair: &Pair) -> [String; 4] {
    let side = (compared.sides.len() > 2).then(|| compared.sides[pair.of].name.clone());
    let what = [side.as_deref(), place(pair), Some(&pair.title)];
    let what: Vec<&str> = what
        .into_iter()
        .flatten()
        .filter(|word| !word.is_empty())
        .collect();
    let values = [pair.base_value, pair.value].map(|value| number::estimate(&value).line());
    [what.join(", "), values.join(" → "), ratio(pair), told(pair)]
}

/// Returns where a pair was measured, where that is not the only place.
fn place(pair: &Pair) -> Option<&str> {
    match pair.cell.as_str() {
        "" if pair.experiment == "run" => None,
        "" => Some(&pair.experiment),
        cell => Some(cell),
    }
}

/// Returns the verdict in words.
fn told(pair: &Pair) -> String {
    let threshold = percent(pair.threshold);
    match pair.verdict {
        _ if pair.is_regression => format!("REGRESSION: worse by more than {threshold}"),
        _ if pair.is_gain => format!("better by more than {threshold}"),
        Verdict::Same => format!("same within {}", percent(pair.margin)),
        Verdict::Differs => match pair.is_better() {
            Some(true) => "differs: better".to_owned(),
            Some(false) => format!("differs: worse, by more than {threshold} or not"),
            None => "differs".to_owned(),
        },
        Verdict::NotDecided => match &pair.open_because {
            Some(why) => format!("not decided: {why}"),
            None => "not decided".to_owned(),
        },
    }
}

/// Returns the ratio with its interval, with as many digits as that leaves.
fn ratio(pair: &Pair) -> String {
    let estimate = pair.ratio;
    if !estimate.value.is_finite() {
        return "no ratio".to_owned();
    }
    let half = estimate
        .low
        .zip(estimate.high)
        .map(|(low, high)| (high - low) / 2.0);
    let decimals = match half {
        Some(half) if half < 0.01 => 4,
        Some(half) if half < 0.1 => 3,
        Some(half) if half < 0.5 => 2,
        Some(_) => 1,
        None => 2,
    };
    let value = format!("{:.decimals$} ×", estimate.value);
    match estimate.low.zip(estimate.high) {
        Some((low, high)) => format!("{value} ({low:.decimals$}–{high:.decimals$})"),
        None => value,
    }
}

fn apart(compared: &Compared, one: &NotComparable) -> String {
    let side = (compared.sides.len() > 2).then(|| format!("{}: ", compared.sides[one.side].name));
    let side = side.unwrap_or_default();
    match one.what.as_str() {
        "" => format!("{side}not comparable because {}", one.why),
        what => format!("{side}{what}: not comparable because {}", one.why),
    }
}

fn changes(changed: &[Changed], compared: &Compared) -> Vec<String> {
    let mut lines: Vec<String> = changed
        .iter()
        .take(CHANGES_MAX)
        .map(|one| format!("changed: {}", change(one, compared)))
        .collect();
    if let Some(more) = changed
        .len()
        .checked_sub(CHANGES_MAX)
        .filter(|more| *more > 0)
    {
        let more = number::counted(more, "further change");
        lines.push(format!("changed: {more} (-J has all)"));
    }
    lines
}

fn change(one: &Changed, compared: &Compared) -> String {
    let side = (compared.sides.len() > 2).then(|| format!("{}, ", compared.sides[one.side].name));
    let host = match one.host {
        None => "",
        Some(HostPart::Server) => "server, ",
        Some(HostPart::Client) => "client, ",
    };
    let value = |value: &Option<String>| match value.as_deref() {
        None => "not known".to_owned(),
        Some(text) if text.chars().count() > VALUE_MAX => {
            let cut: String = text.chars().take(VALUE_MAX).collect();
            format!("{cut}…")
        }
        Some(text) => text.to_owned(),
    };
    let (from, to) = (value(&one.from), value(&one.to));
    let side = side.unwrap_or_default();
    if from == to {
        return format!("{side}{host}{}", one.what);
    }
    format!("{side}{host}{}: {from} → {to}", one.what)
}

/// Returns the same as Markdown.
pub fn compared_markdown(compared: &Compared) -> String {
    let escape = |text: &str| text.replace('|', "\\|");
    let mut lines = vec![String::from("# Comparison"), String::new()];
    for (at, side) in compared.sides.iter().enumerate() {
        let what = match (compared.interleaved, at) {
            (true, _) => "Level",
            (false, 0) => "Base",
            (false, _) => "Run",
        };
        lines.push(format!(
            "* {what}: {} ({})",
            escape(&side.name),
            side.started_utc
        ));
    }
    lines.push(String::new());
    if !compared.pairs.is_empty() {
        lines.push("| What | Base → run | Ratio (95 %) | Verdict |".to_owned());
        lines.push("|---|---|---|---|".to_owned());
        for pair in &compared.pairs {
            let cells = row(compared, pair).map(|cell| escape(&cell));
            lines.push(format!("| {} |", cells.join(" | ")));
        }
        lines.push(String::new());
    }
    let further = compared
        .not_comparable
        .iter()
        .map(|one| apart(compared, one));
    let further = further.chain(changes(&compared.changed, compared));
    lines.extend(further.map(|line| format!("* {}", escape(&line))));
    lines.join("\n").trim_end().to_owned()
}

/// Returns the same as a report of JUnit: a regression is a failure, and what is not decided or not comparable was skipped.
pub fn compared_junit(compared: &Compared) -> String {
    let escape = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        text.replace('>', "&gt;").replace('"', "&quot;")
    };
    let open = |pair: &&Pair| pair.verdict == Verdict::NotDecided;
    let skipped = compared.pairs.iter().filter(open).count() + compared.not_comparable.len();
    let tests = compared.pairs.len() + compared.not_comparable.len();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"linerate compare\" \
         tests=\"{tests}\" failures=\"{}\" errors=\"0\" skipped=\"{skipped}\">\n",
        compared.regressions
    );
    let mut case = |side: usize, name: &str, inside: Option<String>| {
        let class = escape(&compared.sides[side].name);
        let name = escape(name);
        text.push_str(&match inside {
            None => format!("    <testcase classname=\"{class}\" name=\"{name}\"/>\n"),
            Some(inside) => {
                format!("    <testcase classname=\"{class}\" name=\"{name}\">{inside}</testcase>\n")
            }
        });
    };
    for pair in &compared.pairs {
        let [_, values, ratio, verdict] = row(compared, pair);
        let message = escape(&format!("{verdict}: {values}, {ratio}"));
        let name = [
            Some(pair.experiment.as_str()),
            Some(&pair.cell),
            Some(&pair.response),
        ];
        let name: Vec<&str> = name
            .into_iter()
            .flatten()
            .filter(|word| !word.is_empty())
            .collect();
        let inside = match pair.verdict {
            _ if pair.is_regression => Some(format!("<failure message=\"{message}\"/>")),
            Verdict::NotDecided => Some(format!("<skipped message=\"{message}\"/>")),
            _ => None,
        };
        case(pair.of, &name.join(", "), inside);
    }
    for one in &compared.not_comparable {
        let why = escape(&format!("not comparable because {}", one.why));
        let name = if one.what.is_empty() {
            "run"
        } else {
            &one.what
        };
        case(
            one.side,
            name,
            Some(format!("<skipped message=\"{why}\"/>")),
        );
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}
