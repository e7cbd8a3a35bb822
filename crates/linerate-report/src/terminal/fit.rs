//! Text fitted to a width: columns, harmless characters.

/// Narrowest a column of words gets before its words are broken, in characters.
const COLUMN_MIN: usize = 8;

/// Characters between two columns.
pub const GAP: usize = 2;

/// Returns the width of each column so that all fit into `width`: words are broken only where all
/// columns are as narrow as their longest word.
pub fn column_widths(heads: &[String], rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let (mut widths, words) = natural_widths(heads, rows);
    let room = width.saturating_sub(GAP * (heads.len() - 1));
    while widths.iter().sum::<usize>() > room {
        let widest_above = |least: &dyn Fn(usize) -> usize| {
            let above = (0..widths.len()).filter(|at| widths[*at] > least(*at));
            above.max_by_key(|at| widths[*at])
        };
        let widest = widest_above(&|at| words[at]).or_else(|| widest_above(&|_| COLUMN_MIN));
        let Some(widest) = widest else { break };
        widths[widest] -= 1;
    }
    widths
}

/// Returns the longest cell of each column and the longest word of it.
pub fn natural_widths(heads: &[String], rows: &[Vec<String>]) -> (Vec<usize>, Vec<usize>) {
    let longest = |at: usize, of: &dyn Fn(&str) -> usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(at))
            .chain([&heads[at]])
            .map(|cell| of(cell));
        cells.max().unwrap_or(0)
    };
    let word = |cell: &str| cell.split(' ').map(length).max().unwrap_or(0);
    let columns = 0..heads.len();
    (
        columns.clone().map(|at| longest(at, &length)).collect(),
        columns.map(|at| longest(at, &word)).collect(),
    )
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

/// Returns the number of characters; all that linerate writes are one cell wide.
pub fn length(text: &str) -> usize {
    text.chars().count()
}
