//! The report as Markdown in GitHub's dialect; pictures become tables.
//!
//! As on the page, the answer comes first: of each chapter its answer and its first chart. What is behind a
//! click there is written where all of it is asked for.

use std::fmt::Write;

use linerate_model::analysis::{
    Analysis, Chapter, Figure, HostCounters, HostInterrupts, HostSummary, Table, TrialLine,
};
use linerate_model::finding::Finding;

use crate::html::{Extent, is_open, is_usable};
use crate::{number, points, wording};

/// Returns the report as Markdown.
pub fn markdown(analysis: &Analysis, extent: Extent) -> String {
    let mut page = Page {
        text: String::new(),
        extent,
    };
    page.head(analysis);
    page.answer(analysis);
    if is_usable(analysis) {
        page.findings(&analysis.findings);
        page.actions(analysis);
    }
    if page.is_full() {
        page.heading(2, "Summary");
        page.table(&analysis.summary);
    }
    page.cautions(&analysis.cautions);
    let numbers = wording::chapter_numbers(analysis);
    for (chapter, number) in analysis.chapters.iter().zip(&numbers) {
        page.chapter(chapter, *number, is_usable(analysis));
    }
    page.left_out(analysis);
    page.damage(&analysis.damage);
    if page.is_full() {
        page.hosts(&analysis.hosts);
        page.interrupts(&analysis.interrupts);
        page.counters(&analysis.counters);
        page.reading();
    } else {
        page.paragraph(MORE);
    }
    page.text
}

/// Where the rest is.
const MORE: &str = "All cells, trials, methods, hosts and counters: `linerate report BUNDLE --format \
    markdown --full`.";

/// The document under construction. Writing to a `String` cannot fail.
struct Page {
    text: String,
    extent: Extent,
}

impl Page {
    fn is_full(&self) -> bool {
        self.extent == Extent::Full
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn paragraph(&mut self, text: &str) {
        self.line(text);
        self.line("");
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.paragraph(&format!("{} {}", "#".repeat(level), prose(text)));
    }

    fn head(&mut self, analysis: &Analysis) {
        self.heading(1, &analysis.title);
        if let Some(why) = &analysis.partial {
            self.paragraph(&format!("> **This report is partial.** {}", escape(why)));
        }
        if !analysis.answer.verdict.is_empty() {
            let verdict = wording::stop(&analysis.answer.verdict);
            self.paragraph(&format!("**{}**", prose(&verdict)));
        }
        if let Some(trust) = &analysis.trust {
            self.paragraph(&format!("**Trust:** {}", prose(&trust.line())));
        }
        let short = ["Asked", "Version", "Started"];
        for (label, text) in &analysis.about {
            if self.is_full() || short.contains(&label.as_str()) {
                self.line(&format!("- **{}:** {}", escape(label), escape(text)));
            }
        }
        self.line("");
    }

    /// Writes headline numbers and what limits each workload.
    fn answer(&mut self, analysis: &Analysis) {
        let answer = &analysis.answer;
        if !answer.tiles.is_empty() {
            let rows = answer.tiles.iter().map(|tile| {
                let value = number::estimate(&tile.value).line();
                vec![escape(&tile.what), value, escape(&tile.note)]
            });
            self.grid(&["Headline", "Value", "Note"], &[false, true, false], rows);
        }
        if answer.bars.is_empty() || !is_usable(analysis) {
            return;
        }
        self.heading(2, "What limits it");
        let rows = answer.bars.iter().map(|bar| {
            let ceiling = bar.ceiling.as_ref();
            let limiter = bar.limiter.map_or("not known", |limiter| limiter.title());
            let bound = if bar.is_lower_bound() {
                ": a lower bound"
            } else {
                ""
            };
            vec![
                escape(
                    [&*bar.experiment, &bar.workload]
                        .join(": ")
                        .trim_start_matches(": "),
                ),
                number::estimate(&bar.value).line(),
                ceiling.map_or("–".to_owned(), |it| {
                    number::display(it.value, bar.value.unit)
                }),
                format!("{limiter}{bound}"),
            ]
        });
        let columns = ["Workload", "Reached", "Ceiling", "Limited by"];
        self.grid(&columns, &[false, true, true, false], rows);
        let left_out = wording::bars_left_out(answer);
        if !left_out.is_empty() {
            self.paragraph(left_out.trim_end());
        }
    }

    fn findings(&mut self, findings: &[Finding]) {
        self.heading(2, "Findings");
        if findings.is_empty() {
            self.paragraph("The measurements support no finding.");
        }
        for (at, finding) in findings.iter().enumerate() {
            self.heading(3, &format!("{}. {}", at + 1, wording::claim(finding)));
            self.paragraph(&prose(&finding.explanation));
            let effect = number::estimate(&finding.effect).line();
            self.paragraph(&format!(
                "**{}**, effect {effect} ({})",
                wording::kind(finding.kind),
                wording::interval_note(&finding.effect).replace('\u{a0}', " ")
            ));
            self.evidence(finding);
        }
    }

    fn cautions(&mut self, cautions: &[Finding]) {
        if cautions.is_empty() {
            return;
        }
        self.heading(2, "Cautions");
        let items = cautions
            .iter()
            .map(|caution| format!("{} {}", caution.claim, caution.explanation));
        self.list(items);
    }

    fn evidence(&mut self, finding: &Finding) {
        let rows = finding.evidence.as_slice().iter().map(|evidence| {
            vec![
                escape(&evidence.what),
                number::estimate(&evidence.estimate).line(),
                wording::trial_numbers(&evidence.trials),
            ]
        });
        self.grid(
            &["Evidence", "Value", "Trials"],
            &[false, true, false],
            rows,
        );
    }

    /// Writes what was measured to help first, then what would raise what the findings name.
    fn actions(&mut self, analysis: &Analysis) {
        self.heading(2, "What to do");
        let advice = wording::advice(analysis, usize::MAX);
        if advice.is_empty() {
            let none = wording::nothing_to_change(analysis).to_owned();
            let next = analysis.next.as_deref().map(wording::stop);
            self.paragraph(&prose(&next.unwrap_or(none)));
            return;
        }
        for (at, one) in advice.iter().enumerate() {
            let told = |text: &Option<String>| prose(text.as_deref().unwrap_or(wording::UNKNOWN));
            self.line(&format!("{}. **{}**", at + 1, prose(&one.action)));
            let gain = prose(one.gain.unwrap_or("not measured"));
            self.line(&format!("   - Gain: {gain}"));
            self.line(&format!("   - Cost: {}", told(&one.cost)));
            self.line(&format!("   - Undo: {}", told(&one.undo)));
            if let Some(confirm) = &one.confirm {
                let (before, when) = (confirm.before, &confirm.when);
                self.line(&format!(
                    "   - Confirm: {before}{}{when}",
                    code(confirm.command)
                ));
            }
            if let (None, Some(place)) = (one.gain, one.why) {
                self.line(&format!("   - Why: finding {}", place + 1));
            }
        }
        self.line("");
    }

    fn chapter(&mut self, chapter: &Chapter, number: Option<usize>, is_usable: bool) {
        self.heading(2, &wording::chapter_title(chapter, number));
        self.paragraph(&format!("*{}*", escape(&chapter.question)));
        match wording::answer(chapter, is_usable) {
            Ok(answer) => self.paragraph(&format!("**{}**", prose(answer))),
            Err(why) => self.paragraph(&format!("**No answer: {why}.**")),
        }
        if let Some(consequence) = chapter.consequence.as_ref().filter(|_| is_usable) {
            self.paragraph(&prose(consequence));
        }
        let shown = if self.is_full() { usize::MAX } else { 1 };
        for figure in chapter.figures.iter().take(shown) {
            self.figure(figure);
        }
        for table in &chapter.tables {
            if self.is_full() || is_open(table, chapter) {
                self.heading(3, &table.title);
                self.table(table);
            }
        }
        if !self.is_full() {
            return;
        }
        if !chapter.method.is_empty() {
            self.heading(3, "Method");
            self.paragraph(&escape(&chapter.method));
        }
        self.trials(&chapter.trials);
    }

    fn figure(&mut self, figure: &Figure) {
        self.heading(3, &figure.title);
        let table = points::table(figure);
        let rows = table.rows.iter().map(|(position, values)| {
            let mut cells = vec![escape(position)];
            cells.extend(values.iter().map(|value| value.clone().unwrap_or_default()));
            cells
        });
        self.grid(&table.columns, &vec![true; figure.curves.len() + 1], rows);
        if table.rows_hidden > 0 {
            let hidden = table.rows_hidden;
            self.paragraph(&format!("Rows between these, in the bundle: {hidden}."));
        }
        let (label, caption) = (escape(&figure.y.label), escape(&figure.caption));
        self.paragraph(&format!("{label}: {caption}"));
    }

    fn table(&mut self, table: &Table) {
        if table.rows.is_empty() {
            self.paragraph("No rows.");
            return;
        }
        let cell = |cell| escape(&wording::cell(cell));
        let rows = table.rows.iter().map(|row| row.iter().map(cell).collect());
        self.grid(&table.columns, &wording::number_columns(table), rows);
    }

    /// Writes a table whose cells are escaped; `right` are the columns of numbers.
    fn grid(
        &mut self,
        columns: &[impl AsRef<str>],
        right: &[bool],
        rows: impl Iterator<Item = Vec<String>>,
    ) {
        let columns = columns.iter().map(|name| escape(name.as_ref()));
        self.row(&columns.collect::<Vec<_>>());
        let rulers = right
            .iter()
            .map(|right| if *right { "|---:" } else { "|:---" });
        self.line(&format!("{}|", rulers.collect::<String>()));
        rows.for_each(|row| self.row(&row));
        self.line("");
    }

    fn list(&mut self, items: impl IntoIterator<Item = String>) {
        for item in items {
            self.line(&format!("- {}", prose(&item)));
        }
        self.line("");
    }

    fn trials(&mut self, trials: &[TrialLine]) {
        if trials.is_empty() {
            return;
        }
        self.line("<details><summary>");
        self.line(&wording::trial_count(trials));
        self.paragraph("</summary>");
        let rows = trials.iter().map(|trial| {
            let response = trial
                .response
                .map(|value| number::display(value, trial.unit));
            vec![
                trial.trial.0.to_string(),
                escape(&trial.cell),
                trial.replicate.to_string(),
                response.unwrap_or_else(|| "–".to_owned()),
                escape(&remarks(trial)),
            ]
        });
        self.grid(
            &["Trial", "Cell", "Replicate", "Response", "Remarks"],
            &[true, false, true, true, false],
            rows,
        );
        self.paragraph("</details>");
    }

    fn hosts(&mut self, hosts: &[HostSummary]) {
        if hosts.is_empty() {
            return;
        }
        self.heading(2, "Hosts");
        for host in hosts {
            self.heading(3, &format!("{}: {}", host.name, host.part));
            let facts = host.facts.iter();
            let rows = facts.map(|(label, text)| vec![escape(label), escape(text)]);
            self.grid(&["Fact", "Value"], &[false, false], rows);
            if !host.limits.is_empty() {
                let limits = host.limits.iter();
                self.list(
                    limits.map(|(observer, reason)| format!("Observer {observer}: {reason}")),
                );
            }
        }
    }

    fn interrupts(&mut self, hosts: &[HostInterrupts]) {
        if hosts.is_empty() {
            return;
        }
        self.heading(2, "Interrupts of network devices");
        self.paragraph(wording::INTERRUPTS);
        for host in hosts {
            let span = wording::span(host.seconds, host.trials);
            self.heading(3, &format!("{}, {span}", host.host));
            self.table(&wording::interrupt_table(host));
        }
    }

    fn counters(&mut self, hosts: &[HostCounters]) {
        if hosts.is_empty() {
            return;
        }
        self.heading(2, "Protocol counters");
        self.paragraph(wording::COUNTERS);
        self.paragraph(&escape(&wording::counted(hosts)));
        for trouble in [true, false] {
            let table = wording::counter_table(hosts, trouble);
            if !table.rows.is_empty() {
                self.line("<details><summary>");
                self.line(&format!("{} ({})", table.title, table.rows.len()));
                self.paragraph("</summary>");
                self.table(&table);
                self.paragraph("</details>");
            }
        }
    }

    fn left_out(&mut self, analysis: &Analysis) {
        self.heading(2, "Not measured");
        if analysis.left_out.is_empty() {
            self.paragraph("Everything that was planned was measured.");
            return;
        }
        let rows = analysis.left_out.iter().map(|item| {
            let mut chapters = analysis.chapters.iter();
            let known = chapters.find(|it| item.chapter.is_some() && it.number == item.chapter);
            let place = known.map_or("–", |chapter| &chapter.title);
            vec![escape(place), escape(&item.what), escape(&item.why)]
        });
        self.grid(&["Where", "What", "Why"], &[false; 3], rows);
    }

    fn damage(&mut self, damage: &[String]) {
        if damage.is_empty() {
            return;
        }
        self.heading(2, "Damage to the bundle");
        self.list(damage.iter().cloned());
    }

    fn reading(&mut self) {
        self.heading(2, "How to read this");
        for (term, meaning) in wording::READING {
            self.line(&format!("- **{term}:** {meaning}"));
        }
    }

    fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }
}

fn remarks(trial: &TrialLine) -> String {
    let invalid = trial.invalid.iter().map(|why| format!("invalid: {why}"));
    let parts: Vec<String> = invalid
        .chain(trial.flags.iter().map(ToString::to_string))
        .collect();
    parts.join("; ")
}

/// Writes `text` so that Markdown shows its characters as they are, on one line.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let characters: Vec<char> = text.chars().collect();
    for (at, &c) in characters.iter().enumerate() {
        let word = |at: Option<usize>| {
            at.and_then(|at| characters.get(at))
                .is_some_and(|c| c.is_alphanumeric())
        };
        // An underscore inside a word marks nothing in this dialect, and sysctl names read better.
        let inside = c == '_' && word(at.checked_sub(1)) && word(Some(at + 1));
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '>' | '|' | '~' | '$' => out.extend(['\\', c]),
            '_' if !inside => out.push_str("\\_"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Writes a sentence of ours: what stands between two backticks is code.
fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // One that has no other is a sign like any.
    let paired = (parts.len() - 1) / 2 * 2;
    let mut out = String::new();
    for (at, part) in parts.into_iter().enumerate() {
        match at {
            _ if at > paired => out.push_str(&escape(&format!("`{part}"))),
            _ if at % 2 == 1 && !part.is_empty() => out.push_str(&code(part)),
            _ => out.push_str(&escape(part)),
        }
    }
    out
}

/// Writes `text` as a code span, fenced by more backticks than it holds in a row.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    let line = text.replace(char::is_control, " ");
    format!("{fence}{pad}{line}{pad}{fence}")
}
