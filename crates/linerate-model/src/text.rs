//! Prose, and its lines on a terminal. Every character that linerate writes is one column wide.

/// A blank at which no line is cut.
const NO_BREAK: char = '\u{a0}';

/// Returns `text` with a capital letter first, as a sentence begins.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Cuts `text` at blanks into lines of at most `columns` characters, where words allow; all but the first
/// begin with `indent` blanks.
///
/// What stands in `backticks` is one word where that fits, so that a command survives copying, and so are a
/// number with its unit and what blanks that do not break hold together.
pub fn wrap(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let lines = text.split('\n');
    lines
        .flat_map(|line| wrap_line(line, columns, indent))
        // The space that kept words together has done its work; programs search for the plain one.
        .map(|line| line.replace(NO_BREAK, " "))
        .collect()
}

/// Does the same for a column of a table, where words that are longer than it are cut.
pub fn fit(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let cut = |line: String| {
        let letters: Vec<char> = line.chars().collect();
        let pieces = letters.chunks(columns).map(|piece| piece.iter().collect());
        // An empty line is one, too.
        let pieces: Vec<String> = pieces.collect();
        if pieces.is_empty() {
            vec![line]
        } else {
            pieces
        }
    };
    wrap(text, columns, 0).into_iter().flat_map(cut).collect()
}

/// Returns the sentences that `text` begins with: the first, and those after it that fit into `lines` lines with it.
pub fn leading(text: &str, columns: usize, lines: usize) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let is_end = |end: &usize| {
        let next = text[*end..].trim_start().chars().next();
        // An abbreviation goes on in small letters; a sentence may begin with a command.
        next.is_some_and(|letter| letter.is_uppercase() || letter == '`')
    };
    let fits = |end: &usize| wrap(&text[..*end], columns, 0).len() <= lines;
    let mut ends = ends.filter(is_end).chain([text.len()]);
    let first = ends.next().unwrap_or_default();
    let last = ends.take_while(fits).last();
    &text[..last.unwrap_or(first)]
}

/// Returns `text`, or as much of it as `columns` characters hold with the mark that there is more.
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let begin: String = text.chars().take(columns.saturating_sub(1)).collect();
    begin + "…"
}

fn wrap_line(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text, columns.saturating_sub(indent)) {
        let length = word.chars().count();
        let fits = lines.last().is_some_and(|line| {
            line.trim().is_empty() || line.chars().count() + 1 + length <= columns
        });
        match lines.last_mut().filter(|_| fits) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => {
                let indent = if lines.is_empty() { 0 } else { indent };
                lines.push(" ".repeat(indent) + word);
            }
        }
    }
    lines
}

/// Splits `text` at blanks, but not between backticks, unless that is longer than `columns`.
fn words(text: &str, columns: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut begin, mut quoted) = (0, None);
    for (at, letter) in text.char_indices() {
        match letter {
            '`' => {
                quoted = match quoted {
                    None => text[at + 1..].find('`').map(|length| at + 1 + length),
                    Some(_) => None,
                }
                .filter(|end: &usize| text[begin..*end].chars().count() < columns);
            }
            ' ' if quoted.is_none_or(|end| at > end)
                && !is_before_unit(&text[begin..], at - begin, columns) =>
            {
                words.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&text[begin..]);
    words
}

/// What stays on the line of its number.
const UNITS: &[&str] = &[
    "%", "B", "KiB", "MiB", "GiB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "ns", "µs", "ms", "s",
    "min", "h", "CPUs", "times",
];

/// Returns whether the blank at `at` lies between a number, or what brackets say of it, and its unit, or
/// before how much it may be off, and both fit on a line.
fn is_before_unit(text: &str, at: usize, columns: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + 1..].split(' ').next().unwrap_or_default();
    let unit = after.trim_end_matches([',', ';', ':', ')', '.', '?']);
    let is_number = before.is_some_and(|last| last.is_ascii_digit() || last == ')');
    (is_number && UNITS.contains(&unit) || text[..at].ends_with('±'))
        && text[..at].chars().count() + 1 + after.chars().count() <= columns
}

#[cfg(test)]
mod tests {
    use super::{fit, leading, wrap};

    #[test]
    fn units_stay_with_their_numbers() {
        assert_eq!(wrap("they came 12 times", 14, 0), ["they came", "12 times"]);
        assert_eq!(
            wrap("it may be 1.2 ± 5 %", 15, 0),
            ["it may be 1.2", "± 5 %"]
        );
        assert_eq!(
            wrap("a rate of 941.2 Mbit/s", 10, 0),
            ["a rate of", "941.2", "Mbit/s"],
            "too long"
        );
        assert_eq!(wrap("with n\u{a0}=\u{a0}3 of", 9, 0), ["with", "n = 3 of"]);
        assert_eq!(
            wrap("it waited 12.5 %, then", 14, 0),
            ["it waited", "12.5 %, then"]
        );
        assert_eq!(
            wrap("a rate of (1–2) Gbit/s", 17, 0),
            ["a rate of", "(1–2) Gbit/s"]
        );
        assert_eq!(wrap("it takes 5 pieces", 10, 0), ["it takes 5", "pieces"]);
    }

    #[test]
    fn sentences_are_shown_whole() {
        let text = "One (e.g. two) is three. `Four` is five. Six.";
        assert_eq!(leading(text, 12, 2), "One (e.g. two) is three.");
        assert_eq!(
            leading(text, 15, 3),
            "One (e.g. two) is three. `Four` is five."
        );
        assert_eq!(leading(text, 80, 1), text);
        assert_eq!(leading(text, 4, 1), "One (e.g. two) is three.", "the first");
        assert_eq!(leading("", 80, 1), "");
    }

    #[test]
    fn lines_are_cut_at_blanks() {
        assert_eq!(wrap("one two three", 8, 0), ["one two", "three"]);
        assert_eq!(wrap("one two", usize::MAX, 0), ["one two"]);
        assert_eq!(
            wrap("incomprehensible is", 8, 0),
            ["incomprehensible", "is"]
        );
        assert_eq!(wrap("", 8, 0), [""]);
        assert_eq!(wrap("  next: one two", 9, 2), ["  next:", "  one two"]);
    }

    #[test]
    fn commands_are_not_cut() {
        let lines = wrap("run `linerate serve` there (`a b`), please", 22, 2);
        assert_eq!(
            lines,
            ["run `linerate serve`", "  there (`a b`),", "  please"]
        );
        let lines = wrap("`one two three` four", 8, 0);
        assert_eq!(lines, ["`one two", "three`", "four"], "too long for a line");
        assert_eq!(wrap("a ` b c", 4, 0), ["a `", "b c"], "no pair");
    }

    #[test]
    fn words_of_a_column_are_cut() {
        assert_eq!(
            fit("one incomprehensible", 8),
            ["one", "incompre", "hensible"]
        );
        assert_eq!(fit("", 8), [""]);
        assert_eq!(fit("ab", 0), ["a", "b"]);
    }
}
