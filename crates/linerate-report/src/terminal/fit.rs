//! Text fitted to a width: wrapping, columns, harmless characters.

/// Narrowest a column of words gets before its words are broken, in characters.
const COLUMN_MIN: usize = 8;

/// Characters between two columns.
pub const GAP: usize = 2;

/// Returns the width of each column so that all fit into `width` where words allow it.
pub fn column_widths(heads: &[String], rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = (0..heads.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            cells
                .chain([&heads[at]])
                .map(|cell| length(cell))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let room = width.saturating_sub(GAP * (heads.len() - 1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max_by_key(|width| **width) else {
            break;
        };
        if *widest <= COLUMN_MIN {
            break;
        }
        *widest -= 1;
    }
    widths
}

/// Breaks `text` into lines of at most `width` characters, between words where possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut rest: Vec<char> = word.chars().collect();
        let used = lines.last().map_or(0, |line| length(line));
        if used > 0 && used + 1 + rest.len() > width {
            lines.push(String::new());
        }
        while let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            let room = width - length(line).min(width);
            let tail = rest.split_off(rest.len().min(room));
            line.extend(rest);
            if tail.is_empty() {
                break;
            }
            rest = tail;
            lines.push(String::new());
        }
    }
    // The space that kept words together has done its work; programs search for the plain one.
    lines
        .iter()
        .map(|line| line.replace('\u{a0}', " "))
        .collect()
}

/// Returns `text` on one line without control characters.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Returns `text` followed by spaces up to `width`.
pub fn pad(text: &str, width: usize) -> String {
    let space = " ".repeat(width.saturating_sub(length(text)));
    format!("{text}{space}")
}

/// Returns the number of characters; all that linerate writes are one cell wide.
pub fn length(text: &str) -> usize {
    text.chars().count()
}
