//! The summary for a terminal: headline numbers, findings, recommendations.

use linerate_model::analysis::{Analysis, Table, TableCell};
use linerate_model::finding::{Finding, FindingKind, Trust, TrustLevel};

/// Text fitted to a width.
mod fit;

use crate::{number, wording};
use fit::{GAP, clean, column_widths, length, pad, wrap};

/// Narrowest width that lines are wrapped to, in characters.
const WIDTH_MIN: usize = 40;

/// Widest width, in characters: longer lines are hard to read.
const WIDTH_MAX: usize = 120;

/// Columns of a page that are never left out.
const COLUMNS_MIN: usize = 3;

/// Most findings written out; the report has them all.
const FINDINGS_MAX: usize = 6;

/// Most recommendations written out.
const RECOMMENDATIONS_MAX: usize = 6;

/// Most things written out that were not measured.
const LEFT_OUT_MAX: usize = 8;

/// Returns the summary of `analysis` in lines of at most `width` characters.
///
/// Colours are written only when `color` is true. Control characters of the analysis never
/// reach the terminal.
pub fn terminal(analysis: &Analysis, width: usize, color: bool) -> String {
    let mut page = Page {
        text: String::new(),
        width: width.clamp(WIDTH_MIN, WIDTH_MAX),
        color,
    };
    page.head(analysis);
    page.table("Summary", &analysis.summary);
    if let Some(trust) = &analysis.trust {
        page.trust(trust);
    }
    page.findings(&analysis.findings);
    page.recommendations(analysis);
    page.left_out(analysis);
    page.text
}

/// Returns one page of a watched host: its table, and what the numbers say.
///
/// Lines are at most `width` characters long where the columns allow it.
pub fn terminal_page(table: &Table, verdict: Option<&str>, width: usize, color: bool) -> String {
    let mut page = Page {
        text: String::new(),
        width: width.max(WIDTH_MIN),
        color,
    };
    let (table, beyond) = fitting(table, page.width);
    match table.rows.is_empty() {
        true => page.line(Look::Heading, &clean(&table.title)),
        false => page.table_of(&clean(&table.title), &table, wording::short_cell),
    }
    if !beyond.is_empty() {
        page.text.truncate(page.text.trim_end().len());
        page.blank();
        page.quiet(2, &format!("no room for: {}", beyond.join(", ")));
        page.blank();
    }
    if let Some(verdict) = verdict {
        page.text.truncate(page.text.trim_end().len());
        page.blank();
        page.hanging("  ", Look::Plain, 2, &clean(verdict));
        page.blank();
    }
    page.text
}

/// Returns as many of the first columns as fit into `width` with the first of them whole, or half the
/// width of it, and the heads of the others.
fn fitting(table: &Table, width: usize) -> (Table, Vec<String>) {
    let mut table = table.clone();
    let mut beyond = Vec::new();
    while table.columns.len() > COLUMNS_MIN && !fits(&table, width) {
        beyond.extend(table.columns.pop().map(|head| clean(&head)));
        for row in &mut table.rows {
            row.truncate(table.columns.len());
        }
    }
    beyond.reverse();
    (table, beyond)
}

fn fits(table: &Table, width: usize) -> bool {
    let cell = |one: &TableCell| clean(&wording::short_cell(one));
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    let heads: Vec<String> = table.columns.iter().map(|head| clean(head)).collect();
    let widths = column_widths(&heads, &rows, width);
    let first = rows.iter().filter_map(|row| row.first());
    let first = first.map(|text| length(text)).max().unwrap_or(0);
    let is_whole = widths
        .first()
        .is_none_or(|width_of| *width_of >= first.min(width / 2));
    is_whole && widths.iter().sum::<usize>() + GAP * (widths.len().max(1) - 1) <= width
}

/// How a piece of text stands out.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Look {
    Plain,
    Heading,
    Key,
    Quiet,
    Warning,
}

impl Look {
    fn code(self) -> &'static str {
        match self {
            Look::Plain => "",
            Look::Heading => "\u{1b}[1m",
            Look::Key => "\u{1b}[36m",
            Look::Quiet => "\u{1b}[2m",
            Look::Warning => "\u{1b}[33m",
        }
    }
}

struct Page {
    text: String,
    width: usize,
    color: bool,
}

impl Page {
    fn head(&mut self, analysis: &Analysis) {
        self.line(Look::Heading, &clean(&analysis.title));
        self.rule();
        let labels = analysis
            .about
            .iter()
            .map(|(label, _)| length(&clean(label)));
        let indent = labels.max().unwrap_or(0).min(self.width / 3) + GAP;
        for (label, text) in &analysis.about {
            self.hanging(
                &pad(&clean(label), indent),
                Look::Quiet,
                indent,
                &clean(text),
            );
        }
        if let Some(why) = &analysis.partial {
            self.hanging("! ", Look::Warning, 2, &format!("Partial: {}", clean(why)));
        }
        for damage in &analysis.damage {
            self.hanging(
                "! ",
                Look::Warning,
                2,
                &format!("Damaged: {}", clean(damage)),
            );
        }
        self.blank();
    }

    fn trust(&mut self, trust: &Trust) {
        let look = match trust.level {
            TrustLevel::Good => Look::Plain,
            TrustLevel::Limited | TrustLevel::DoNotUse => Look::Warning,
        };
        self.hanging("Trust: ", look, 7, &clean(&trust.line()));
        self.blank();
    }

    fn findings(&mut self, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.line(Look::Heading, &format!("Findings ({})", findings.len()));
        for (at, finding) in findings.iter().take(FINDINGS_MAX).enumerate() {
            let look = match finding.kind {
                FindingKind::Caution => Look::Warning,
                _ => Look::Key,
            };
            self.hanging(&format!("{:>2}  ", at + 1), look, 4, &clean(&finding.claim));
            let effect = number::estimate(&finding.effect).line();
            let note = wording::interval_note(&finding.effect);
            let kind = wording::kind(finding.kind);
            self.quiet(4, &format!("{kind}: {effect} ({note})"));
        }
        self.more(findings.len(), FINDINGS_MAX);
        self.blank();
    }

    fn recommendations(&mut self, analysis: &Analysis) {
        if analysis.recommendations.is_empty() {
            return;
        }
        self.line(Look::Heading, "Recommendations");
        let items = &analysis.recommendations;
        for (at, recommendation) in items.iter().take(RECOMMENDATIONS_MAX).enumerate() {
            let number = format!("{:>2}  ", at + 1);
            self.hanging(&number, Look::Key, 4, &clean(&recommendation.action));
            self.hanging(
                "    measured   ",
                Look::Quiet,
                15,
                &clean(&recommendation.predicted),
            );
            let more = [
                ("    cost       ", &recommendation.cost),
                ("    undo       ", &recommendation.undo),
            ];
            for (label, text) in more.iter().filter(|(_, text)| !text.is_empty()) {
                self.hanging(label, Look::Quiet, 15, &clean(text));
            }
            // Not wrapped: a command must survive copying.
            let confirm = clean(&recommendation.confirm);
            self.styled(Look::Quiet, "    confirm    ");
            self.styled(Look::Plain, &confirm);
            self.blank();
        }
        self.more(items.len(), RECOMMENDATIONS_MAX);
        self.blank();
    }

    fn left_out(&mut self, analysis: &Analysis) {
        if analysis.left_out.is_empty() {
            return;
        }
        let count = analysis.left_out.len();
        self.line(Look::Heading, &format!("Not measured ({count})"));
        for item in analysis.left_out.iter().take(LEFT_OUT_MAX) {
            let text = format!("{}: {}", clean(&item.what), clean(&item.why));
            self.hanging("  - ", Look::Quiet, 4, &text);
        }
        self.more(count, LEFT_OUT_MAX);
        self.blank();
    }

    fn table(&mut self, title: &str, table: &Table) {
        self.table_of(title, table, wording::cell);
    }

    fn table_of(&mut self, title: &str, table: &Table, cell: fn(&TableCell) -> String) {
        if table.rows.is_empty() || table.columns.is_empty() {
            return;
        }
        self.line(Look::Heading, title);
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|one| clean(&cell(one))).collect())
            .collect();
        let heads: Vec<String> = table.columns.iter().map(|head| clean(head)).collect();
        let right = wording::number_columns(table);
        let widths = column_widths(&heads, &rows, self.width);
        self.row(&heads, &widths, &right, Look::Quiet);
        self.line(
            Look::Quiet,
            &"─".repeat(widths.iter().sum::<usize>() + GAP * (widths.len() - 1)),
        );
        for row in &rows {
            self.row(row, &widths, &right, Look::Plain);
        }
        self.blank();
    }

    fn row(&mut self, cells: &[String], widths: &[usize], right: &[bool], look: Look) {
        let wrapped: Vec<Vec<String>> = cells
            .iter()
            .zip(widths)
            .map(|(cell, &width)| wrap(cell, width))
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let mut line = String::new();
            for ((lines, &width), &right) in wrapped.iter().zip(widths).zip(right) {
                let text = lines.get(at).map_or("", String::as_str);
                let space = " ".repeat(width.saturating_sub(length(text)));
                line += &if right {
                    space + text
                } else {
                    text.to_owned() + &space
                };
                line += &" ".repeat(GAP);
            }
            self.line(look, line.trim_end());
        }
    }

    /// Says how many of `count` things were not written because only `written` are.
    fn more(&mut self, count: usize, written: usize) {
        if count > written {
            self.quiet(4, &format!("and {} more in the report", count - written));
        }
    }

    fn rule(&mut self) {
        self.line(Look::Quiet, &"─".repeat(self.width));
    }

    fn quiet(&mut self, indent: usize, text: &str) {
        for line in wrap(text, self.width - indent) {
            self.line(Look::Quiet, &format!("{}{line}", " ".repeat(indent)));
        }
    }

    /// Writes `text` behind `lead`, following lines indented.
    fn hanging(&mut self, lead: &str, look: Look, indent: usize, text: &str) {
        for (at, line) in wrap(text, self.width.saturating_sub(indent))
            .iter()
            .enumerate()
        {
            if at == 0 {
                self.styled(look, lead);
            } else {
                self.text.push_str(&" ".repeat(indent));
            }
            self.line(Look::Plain, line);
        }
    }

    fn line(&mut self, look: Look, text: &str) {
        self.styled(look, text);
        self.blank();
    }

    fn styled(&mut self, look: Look, text: &str) {
        let code = if self.color { look.code() } else { "" };
        self.text.push_str(code);
        self.text.push_str(text);
        if !code.is_empty() {
            self.text.push_str("\u{1b}[0m");
        }
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_room_are_named_and_addresses_stay_whole() {
        let connection = "192.168.100.100:54321 → 192.168.100.101:5201";
        let heads = [
            "connection",
            "sends",
            "receives",
            "RTT",
            "resent",
            "process",
            "congestion",
        ];
        let mut row = vec![TableCell::Text(connection.to_owned())];
        row.extend(
            heads[1..]
                .iter()
                .map(|_| TableCell::Text("941 Mbit/s".to_owned())),
        );
        let table = Table {
            title: "TCP connections".to_owned(),
            columns: heads.map(str::to_owned).to_vec(),
            rows: vec![row],
        };
        let text = terminal_page(&table, Some("1 connection"), 80, false);
        assert!(text.lines().all(|line| length(line) <= 80), "{text}");
        let address = &connection[..40.min(connection.len())];
        assert!(text.contains(address.trim_end()), "{text}");
        assert!(
            text.contains("no room for:") && text.contains("congestion"),
            "{text}"
        );
        let wide = terminal_page(&table, None, 200, false);
        assert!(
            wide.contains(connection) && !wide.contains("no room"),
            "{wide}"
        );
    }
}
