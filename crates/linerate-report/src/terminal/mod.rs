//! What a terminal shows: what repeated studies agree on, a watched host, the end of a study.

use linerate_model::analysis::{Analysis, Table, TableCell};
use linerate_model::finding::TrustLevel;
use linerate_model::text;

/// The end of a study, on one screen.
mod answer;
/// Text fitted to a width.
mod fit;

pub use answer::terminal_answer;

use crate::wording;
use answer::Passage;
use fit::{GAP, clean, column_widths, natural_widths};

/// Narrowest width that lines are wrapped to, in characters.
const WIDTH_MIN: usize = 40;

/// Widest width, in characters: longer lines are hard to read.
const WIDTH_MAX: usize = 120;

/// Characters from which on a cell of a page may be wrapped for the sake of other columns.
const COLUMN_WRAPS: usize = 24;

/// Returns the title of `analysis`, its summary and how far to trust it, in lines of at most `width` characters.
///
/// Colours are written only when `color` is true. Control characters of the analysis never
/// reach the terminal.
pub fn terminal(analysis: &Analysis, width: usize, color: bool) -> String {
    let mut page = Page::new(width.clamp(WIDTH_MIN, WIDTH_MAX), color);
    page.line(Look::Strong, &clean(&analysis.title));
    page.line(Look::Quiet, &"─".repeat(page.width));
    page.blank();
    page.line(Look::Strong, "Summary");
    page.columns(&analysis.summary, wording::cell);
    if let Some(trust) = &analysis.trust {
        let look = match trust.level {
            TrustLevel::Good => Look::Plain,
            TrustLevel::Limited | TrustLevel::DoNotUse => Look::Warning,
        };
        page.part(&Passage::trust(trust, look));
    }
    page.text
}

/// Returns one page of a watched host: its table, and what the numbers say.
///
/// Lines are at most `width` characters long. Columns that have no room beside the others follow in a
/// table of their own below, each time with the first column, which names the rows.
pub fn terminal_page(table: &Table, verdict: Option<&str>, width: usize, color: bool) -> String {
    let mut page = Page::new(width.max(WIDTH_MIN), color);
    page.line(Look::Strong, &clean(&table.title));
    if !table.rows.is_empty() {
        for part in parts(table, page.width) {
            page.columns(&part, wording::short_cell);
        }
    }
    if let Some(verdict) = verdict {
        page.text.truncate(page.text.trim_end().len());
        page.blank();
        page.part(&Passage::new("  ", Look::Plain, vec![verdict.to_owned()]));
        page.blank();
    }
    page.text.truncate(page.text.trim_end().len());
    page.blank();
    page.text
}

/// Cuts `table` into tables of as many columns as fit into `width`, each with the first column.
fn parts(table: &Table, width: usize) -> Vec<Table> {
    let (heads, rows) = texts(table, wording::short_cell);
    let (longest, words) = natural_widths(&heads, &rows);
    // Names may have half of the width, others wrap from so many characters on.
    let need = |at: usize| {
        let wraps = if at == 0 { width / 2 } else { COLUMN_WRAPS };
        words[at].max(longest[at].min(wraps))
    };
    let mut cuts: Vec<Vec<usize>> = Vec::new();
    let mut taken = width;
    for at in 1..heads.len() {
        taken += GAP + need(at);
        if taken > width {
            cuts.push(vec![0]);
            taken = need(0) + GAP + need(at);
        }
        cuts.last_mut().expect("pushed above").push(at);
    }
    if cuts.is_empty() {
        return vec![table.clone()];
    }
    let part = |columns: Vec<usize>| Table {
        title: table.title.clone(),
        columns: columns
            .iter()
            .map(|at| table.columns[*at].clone())
            .collect(),
        rows: (table.rows.iter())
            .map(|row| columns.iter().map(|at| row[*at].clone()).collect())
            .collect(),
    };
    cuts.into_iter().map(part).collect()
}

/// Returns the heads and cells of `table` as they are written.
fn texts(table: &Table, cell: fn(&TableCell) -> String) -> (Vec<String>, Vec<Vec<String>>) {
    let row = |row: &Vec<TableCell>| row.iter().map(|one| clean(&cell(one))).collect();
    let heads = table.columns.iter().map(|head| clean(head));
    (heads.collect(), table.rows.iter().map(row).collect())
}

/// How words stand out, where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// As everything.
    Plain,
    /// The answer, and headings.
    Strong,
    /// Heads of tables.
    Quiet,
    /// What a line is about.
    Key,
    /// What is as it should be.
    Good,
    /// What to bear in mind.
    Warning,
    /// What makes a number useless.
    Bad,
}

/// Returns `text` as it stands out.
pub fn styled(text: &str, look: Look, color: bool) -> String {
    let code = match look {
        _ if !color => "",
        Look::Plain => "",
        Look::Strong => "\u{1b}[1m",
        Look::Quiet => "\u{1b}[2m",
        Look::Key => "\u{1b}[36m",
        Look::Good => "\u{1b}[32m",
        Look::Warning => "\u{1b}[33m",
        Look::Bad => "\u{1b}[31m\u{1b}[1m",
    };
    match code {
        "" => text.to_owned(),
        code => format!("{code}{text}\u{1b}[0m"),
    }
}

struct Page {
    text: String,
    width: usize,
    color: bool,
}

impl Page {
    fn new(width: usize, color: bool) -> Self {
        let text = String::new();
        Self { text, width, color }
    }

    fn columns(&mut self, table: &Table, cell: fn(&TableCell) -> String) {
        let (heads, rows) = texts(table, cell);
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
            .map(|(cell, &width)| text::fit(cell, width))
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let mut line = String::new();
            for ((lines, &width), &right) in wrapped.iter().zip(widths).zip(right) {
                let text = lines.get(at).map_or("", String::as_str);
                line += &if right {
                    format!("{text:>width$}")
                } else {
                    format!("{text:<width$}")
                };
                line += &" ".repeat(GAP);
            }
            self.line(look, line.trim_end());
        }
    }

    fn line(&mut self, look: Look, text: &str) {
        self.styled(look, text);
        self.blank();
    }

    fn styled(&mut self, look: Look, text: &str) {
        self.text += &styled(text, look, self.color);
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::fit::length;
    use super::*;

    #[test]
    fn columns_without_room_follow_and_no_word_is_cut() {
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
        let table = Table::new("TCP connections", heads, [row]);
        let text = terminal_page(&table, Some("1 connection"), 80, false);
        assert!(text.lines().all(|line| length(line) <= 80), "{text}");
        for word in connection.split(' ').chain(heads) {
            let is_whole = |line: &str| line.split_whitespace().any(|one| one == word);
            assert!(text.lines().any(is_whole), "{word}: {text}");
        }
        let heads = |text: &str| text.matches("connection  ").count();
        assert_eq!(heads(&text), 2, "{text}");
        let wide = terminal_page(&table, None, 200, false);
        assert!(wide.contains(connection) && heads(&wide) == 1, "{wide}");
    }
}
