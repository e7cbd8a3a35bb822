//! From state to cells of the terminal.

use std::collections::VecDeque;
use std::iter;

use linerate_analyze::watch::Span;
use linerate_analyze::watch::pages::ALARM;
use linerate_model::text::cut;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::state::State;
use crate::term::wrap;

/// Cells between two columns.
const GAP: usize = 2;
/// Widest first column, which has half of the screen at the most; longer names are cut, and whole
/// where the row is open.
const NAME_MAX: usize = 44;
const NAME_MIN: usize = 12;
/// Narrowest sentences worth wrapping.
const PROSE_MIN: usize = 12;
/// Narrowest sparkline worth drawing.
const TREND_MIN: usize = 8;
/// Widest.
const TREND_MAX: usize = 30;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The keys, but those of pages, of which there are as many as the host has.
const KEYS: [(&str, &str); 13] = [
    ("↑ ↓ PgUp …", "select a row"),
    ("Enter", "open the row: all of its columns"),
    ("← →", "scroll columns sideways"),
    ("s", "sort by the next column; after the last, unsorted"),
    ("r", "reverse the order"),
    (
        "/",
        "only rows that contain a text; Enter keeps it, Esc drops it",
    ),
    ("space, p", "pause; counting goes on"),
    ("t", "per second, or totals since the start"),
    ("+ -", "longer or shorter interval"),
    ("Esc", "close what is open, drop the filter"),
    ("?, h", "this help"),
    ("q, Ctrl-C", "end"),
    ("", "any key closes this"),
];

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let width = usize::from(frame.area().width);
    let verdict = verdict_lines(state, width);
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(verdict.len() as u16),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [head, tabs, says, body, foot] = rows.areas(frame.area());
    frame.render_widget(heading(state, width), head);
    frame.render_widget(tab_line(state, width), tabs);
    frame.render_widget(Paragraph::new(verdict), says);
    let lines = match opened(state, body) {
        Some(lines) => lines,
        None => table(state, body),
    };
    frame.render_widget(Paragraph::new(lines), body);
    frame.render_widget(footer(state, width), foot);
    if state.is_helping {
        help(frame, state.pages.len());
    }
}

/// Returns the first of `texts` that is at most `width` wide, or the last.
fn that_fits<const N: usize>(texts: [String; N], width: usize) -> String {
    let fits = |text: &String| text.chars().count() <= width;
    let last = texts.last().cloned().unwrap_or_default();
    texts.into_iter().find(fits).unwrap_or(last)
}

fn heading(state: &State, width: usize) -> Line<'static> {
    let span = match state.span {
        Span::PerSecond => "per second",
        Span::SinceStart => "since the start",
    };
    let paused = if state.is_paused { "PAUSED   " } else { "" };
    let time = state.seconds as u64;
    let clock = format!("{:02}:{:02}:{:02} ", time / 3600, time / 60 % 60, time % 60);
    let interval = state.interval;
    let host = &state.host;
    let joined = |left: String, right: String| {
        let taken = left.chars().count() + right.chars().count();
        format!(
            "{left}{}{right}",
            " ".repeat(width.saturating_sub(taken).max(1))
        )
    };
    let full = format!("{paused}{span}   every {interval}   {clock}");
    let texts = [
        joined(format!(" linerate watch   {host}"), full),
        joined(format!(" {host}"), format!("{paused}{span}   {clock}")),
        joined(format!(" {host}"), format!("{paused}{clock}")),
    ];
    Line::from(that_fits(texts, width)).reversed()
}

/// Returns the pages by number and name, or, where all names have no room, the one that is shown.
fn tab_line(state: &State, width: usize) -> Line<'static> {
    let shown = state.page().map(|page| page.name);
    let tab = |at: usize, name: &str| format!(" {} {name}", at + 1);
    let all = state.pages.iter().enumerate();
    let all: usize = all
        .map(|(at, page)| tab(at, page.name).chars().count())
        .sum();
    let mut pieces = vec![Piece::raw(" ")];
    for (at, page) in state.pages.iter().enumerate() {
        pieces.push(match Some(page.name) == shown {
            true => Piece::raw(tab(at, page.name)).bold().cyan().underlined(),
            false if all < width => Piece::raw(tab(at, page.name)).dim(),
            false => Piece::raw(format!(" {}", at + 1)).dim(),
        });
    }
    Line::from(pieces)
}

/// Returns what the page says, in as many lines as a screen of this width has for it: always the same,
/// so that the table below stays where it is.
fn verdict_lines(state: &State, width: usize) -> Vec<Line<'static>> {
    let (text, style) = match &state.trouble {
        Some(trouble) => (format!("{ALARM}{trouble}"), Style::new().red().bold()),
        None => {
            let verdict = state.page().and_then(|page| page.verdict.clone());
            (verdict.unwrap_or_default(), Style::new().yellow())
        }
    };
    let lines = match width {
        120.. => 1,
        60.. => 2,
        _ => 3,
    };
    // An overview is verdicts only.
    let is_verdicts = state.page().is_some_and(|page| page.verdict.is_none());
    let lines = if is_verdicts { 1 } else { lines };
    let wrapped = wrap(&text, width.saturating_sub(2), 0);
    let mut wrapped: Vec<String> = wrapped.into_iter().map(|line| format!(" {line}")).collect();
    if wrapped.len() > lines {
        wrapped.truncate(lines);
        wrapped[lines - 1] += "…";
    }
    wrapped.resize(lines, String::new());
    let line = |text| Line::from(Piece::styled(text, style));
    wrapped.into_iter().map(line).collect()
}

/// Returns the row that is open, a line for each of its columns.
fn opened(state: &State, area: Rect) -> Option<Vec<Line<'static>>> {
    let row = state.opened()?;
    let page = state.page()?;
    let width = usize::from(area.width);
    let heads = &page.table.columns;
    let label = heads.iter().map(|head| head.chars().count()).max()? + GAP;
    let mut lines = Vec::new();
    for (at, (head, cell)) in heads.iter().zip(row.cells).enumerate() {
        let text = linerate_report::short_cell(cell);
        let wrapped = wrap(&text, width.saturating_sub(label + 2), 0);
        for (number, text) in wrapped.into_iter().enumerate() {
            let head = if number == 0 { head } else { "" };
            let text = Piece::raw(text);
            lines.push(Line::from(vec![
                Piece::raw(format!(" {head:<label$}")).dim(),
                if at == 0 { text.bold() } else { text },
            ]));
        }
    }
    if let Some(course) = row.trend {
        let head = format!("{} so far", heads[page.trend]);
        let course = spark(course, width.saturating_sub(2));
        lines.push(Line::default());
        lines.push(Line::from(format!(" {head}")).dim());
        lines.push(Line::from(Piece::styled(format!(" {course}"), TREND)));
    }
    Some(lines)
}

const TREND: Style = Style::new().fg(Color::Cyan);

/// A page as it is written, before it is cut to the screen.
struct Written {
    name: String,
    heads: Vec<String>,
    /// The cells of each row, and its course.
    rows: Vec<(Vec<String>, Option<VecDeque<f64>>)>,
    right: Vec<bool>,
    is_prose: bool,
}

fn written(state: &State) -> Option<Written> {
    let page = state.page()?;
    let sort = state.sort();
    let heads = page.table.columns.iter().enumerate().map(|(at, head)| {
        match sort.filter(|sort| sort.column == at) {
            Some(sort) if sort.descending => format!("{head}▼"),
            Some(_) => format!("{head}▲"),
            None => head.clone(),
        }
    });
    let row = |row: super::state::Row<'_>| {
        let cells = row.cells.iter().map(linerate_report::short_cell);
        (cells.collect(), row.trend.cloned())
    };
    Some(Written {
        name: page.name.to_owned(),
        heads: heads.collect(),
        rows: state.rows().into_iter().map(row).collect(),
        right: linerate_report::number_columns(&page.table),
        is_prose: page.is_prose,
    })
}

/// Returns the head of the table and the rows that fit.
fn table(state: &mut State, area: Rect) -> Vec<Line<'static>> {
    let Some(written) = written(state) else {
        return vec![Line::from(" nothing can be observed here")];
    };
    let room = usize::from(area.width).saturating_sub(2);
    let widths = widths(state, &written, room);
    let columns = if written.is_prose {
        (0..widths.len()).collect()
    } else {
        columns(state, &widths, room)
    };
    let taken: usize = columns.iter().map(|at| widths[*at] + GAP).sum();
    let is_whole = columns.len() == widths.len() && !written.is_prose;
    let trend = room.saturating_sub(taken).min(TREND_MAX);
    let trend = (is_whole && trend >= TREND_MIN).then_some(trend);
    let is_head = |at: usize| at == usize::MAX;
    let row_lines = |at: usize| -> Vec<Line<'static>> {
        let cells = if is_head(at) {
            &written.heads
        } else {
            &written.rows[at].0
        };
        let last = columns.last().copied().filter(|_| written.is_prose);
        let wrapped = last.map(|last| wrap(&cells[last], widths[last], 0));
        let height = wrapped.as_ref().map_or(1, Vec::len);
        let line = |number: usize| {
            let mark = if state.selected == at && number == 0 {
                Piece::raw("›").bold()
            } else {
                Piece::raw(" ")
            };
            let mut pieces = vec![mark];
            for column in &columns {
                let text = match &wrapped {
                    Some(wrapped) if Some(*column) == last => wrapped[number].as_str(),
                    _ if number > 0 => "",
                    _ => cells[*column].as_str(),
                };
                let fitted = fitted(text, widths[*column], written.right[*column]);
                let piece = Piece::raw(format!("{fitted}  "));
                // What does not happen steps back, so that the eye finds what does.
                pieces.push(if *column > 0 && is_nothing(text) {
                    piece.dim()
                } else {
                    piece
                });
            }
            Line::from(pieces)
        };
        let mut lines: Vec<Line<'static>> = (0..height).map(line).collect();
        let is_trouble = last.is_some_and(|last| cells[last].starts_with(ALARM));
        if is_trouble {
            lines = lines.into_iter().map(Stylize::red).collect();
        }
        if !is_head(at)
            && let (Some(width), Some(course)) = (trend, &written.rows[at].1)
        {
            lines[0].push_span(Piece::styled(spark(course, width), TREND));
        }
        lines
    };
    let mut head = row_lines(usize::MAX).remove(0).bold();
    if state.left > 0 {
        head.spans[0] = Piece::raw("‹").bold();
    }
    if state.has_more_right {
        head.push_span(Piece::raw("›").bold());
    }
    let blocks: Vec<Vec<Line<'static>>> = (0..written.rows.len()).map(row_lines).collect();
    let height = usize::from(area.height).saturating_sub(1).max(1);
    let heights: Vec<usize> = blocks.iter().map(Vec::len).collect();
    state.room = height;
    state.offset = offset(&heights, state.offset, state.selected, height);
    let mut lines = vec![head];
    lines.extend(blocks.into_iter().skip(state.offset).flatten().take(height));
    if written.rows.is_empty() {
        let why = if state.filter.is_empty() {
            " nothing yet"
        } else {
            " no row contains the text of the filter"
        };
        lines.push(Line::from(why).dim());
    }
    lines
}

/// Returns the first row shown, so that the selected one is and no room is wasted.
fn offset(heights: &[usize], before: usize, selected: usize, room: usize) -> usize {
    let sum = |from: usize, to: usize| heights[from..to].iter().sum::<usize>();
    let mut offset = before.min(selected).min(heights.len().saturating_sub(1));
    while offset < selected && sum(offset, (selected + 1).min(heights.len())) > room {
        offset += 1;
    }
    while offset > 0 && sum(offset - 1, heights.len()) <= room {
        offset -= 1;
    }
    offset
}

/// Returns the width of each column: the widest that it has been, the first no wider than half of the
/// screen, sentences what is left.
fn widths(state: &mut State, written: &Written, room: usize) -> Vec<usize> {
    let count = written.heads.len();
    let widths = state.widths.entry(written.name.clone()).or_default();
    widths.resize(count, 0);
    let rows = written.rows.iter().map(|(cells, _)| cells);
    for cells in rows.chain([&written.heads]) {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut widths = widths.clone();
    if let Some(name) = widths.first_mut() {
        *name = (*name).min((room / 2).clamp(NAME_MIN, NAME_MAX));
    }
    if let (true, Some((last, others))) = (written.is_prose, widths.split_last_mut()) {
        let taken: usize = others.iter().map(|width| width + GAP).sum();
        *last = room.saturating_sub(taken).max(PROSE_MIN);
    }
    widths
}

/// Returns the columns shown: the first, and as many as fit of those that are not scrolled away.
fn columns(state: &mut State, widths: &[usize], room: usize) -> Vec<usize> {
    let fitting = |left: usize| {
        let mut taken = widths.first().copied().unwrap_or(0);
        let others = (1 + left..widths.len()).take_while(|at| {
            taken += GAP + widths[*at];
            taken <= room
        });
        let mut columns = vec![0];
        columns.extend(others);
        columns
    };
    state.left = state.left.min(widths.len().saturating_sub(2));
    // After the screen grew there may be room for what was scrolled away.
    while state.left > 0 && fitting(state.left - 1).last() == Some(&(widths.len() - 1)) {
        state.left -= 1;
    }
    let columns = fitting(state.left);
    state.has_more_right =
        columns.last().is_some_and(|last| last + 1 < widths.len()) && state.left + 2 < widths.len();
    columns
}

/// Tells whether a cell says that there is nothing: zero of any unit, or a dash.
fn is_nothing(cell: &str) -> bool {
    let number = cell.split([' ', '/']).next();
    matches!(number, Some("0" | "–"))
}

/// Returns `text` in exactly `width` cells.
fn fitted(text: &str, width: usize, right: bool) -> String {
    let text = cut(text, width);
    if right {
        format!("{text:>width$}")
    } else {
        format!("{text:<width$}")
    }
}

/// Draws the last points of a course, the largest of them as a full bar.
fn spark(course: &VecDeque<f64>, width: usize) -> String {
    let points = course.iter().skip(course.len().saturating_sub(width));
    let largest = points
        .clone()
        .fold(0.0, |most: f64, point| most.max(*point));
    let bar = |point: &f64| {
        if largest > 0.0 && *point > 0.0 {
            BARS[((point / largest * 8.0).ceil() as usize).clamp(1, 8) - 1]
        } else {
            ' '
        }
    };
    points.map(bar).collect()
}

/// Returns as many keys as fit; the one that shows all of them always.
fn footer(state: &State, width: usize) -> Line<'static> {
    if state.is_filtering {
        return Line::from(format!(" / {}▏", state.filter)).bold();
    }
    let filter = if state.filter.is_empty() {
        "/ filter".to_owned()
    } else {
        format!("/ {} (Esc drops it)", state.filter)
    };
    let keys = if state.opened().is_some() {
        vec!["Esc back", "↑↓ next row"]
    } else {
        vec![
            "q end",
            "Tab page",
            "Enter open",
            "↑↓ row",
            "←→ columns",
            &filter,
            "s sort",
            "space pause",
            "t span",
        ]
    };
    const HELP: &str = "  ? help";
    let mut line = String::new();
    for key in keys {
        let gap = if line.is_empty() { " " } else { "  " };
        let more = format!("{line}{gap}{key}");
        if more.chars().count() + HELP.len() > width {
            break;
        }
        line = more;
    }
    Line::from(line + HELP).dim()
}

fn help(frame: &mut Frame<'_>, pages: usize) {
    let area = frame.area();
    let to_page = format!("Tab, 1–{}", pages.clamp(1, 9));
    let keys: Vec<(&str, &str)> = iter::once((&*to_page, "go to a page"))
        .chain(KEYS)
        .collect();
    let key = keys.iter().map(|(key, _)| key.chars().count()).max();
    let label = key.unwrap_or(0) + GAP;
    let room = usize::from(area.width).saturating_sub(label + 4);
    let keys = keys.iter().flat_map(|(key, words)| {
        let wrapped = wrap(words, room, 0).into_iter().enumerate();
        wrapped.map(move |(at, words)| {
            let key = if at == 0 { *key } else { "" };
            Line::from(vec![
                Piece::raw(format!(" {key:<label$}")).bold(),
                Piece::raw(words),
            ])
        })
    });
    let lines: Vec<Line<'_>> = keys.collect();
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 3;
    let area = area.centered(
        Constraint::Length(width),
        Constraint::Length(lines.len() as u16 + 2),
    );
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" Keys ")),
        area,
    );
}

#[cfg(test)]
mod tests {
    use linerate_analyze::watch::pages::Page;
    use linerate_model::analysis::{Table, TableCell};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::super::state::tests::state;
    use super::*;

    fn screen(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let row = |y| {
            (0..width)
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
        };
        (0..height).map(|y| row(y).trim_end().to_owned()).collect()
    }

    fn press(state: &mut State, key: char) {
        state.handle_key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    }

    #[test]
    fn a_page_fills_the_screen_from_head_to_keys() {
        let mut state = state();
        press(&mut state, '1');
        let lines = screen(&mut state, 80, 24);
        assert!(
            lines[0].starts_with(" linerate watch   server"),
            "{}",
            lines[0]
        );
        let end = "per second   every 1 s   00:00:01";
        assert!(lines[0].ends_with(end), "{}", lines[0]);
        assert_eq!(lines[1], "  1 A 2 B");
        assert_eq!(lines[2..4], [" as it should be", ""]);
        assert_eq!(lines[4], " name  value");
        assert_eq!(lines[5], "›10      3 %  █");
        assert_eq!(lines[8], " lost      –");
        assert!(lines[23].starts_with(" q end"), "{}", lines[23]);
        assert!(lines[23].ends_with("? help"), "{}", lines[23]);
    }

    #[test]
    fn little_room_shows_what_fits_and_never_fails() {
        let mut state = state();
        press(&mut state, '1');
        for (width, height) in [(1, 1), (7, 5), (20, 6), (38, 12), (300, 100)] {
            let lines = screen(&mut state, width, height);
            assert_eq!(lines.len(), usize::from(height));
        }
        press(&mut state, 's');
        press(&mut state, '?');
        let lines = screen(&mut state, 80, 24);
        assert!(lines.iter().any(|line| line.contains("Keys")), "{lines:?}");
        assert_eq!(screen(&mut state, 10, 3).len(), 3);
    }

    /// A page of many columns, each as wide as `width`.
    fn wide(columns: usize, width: usize) -> Page {
        let cell = |at: usize| TableCell::Text(format!("{at:0>width$}"));
        Page {
            name: "A",
            table: Table {
                title: "All".to_owned(),
                columns: (0..columns).map(|at| format!("h{at}")).collect(),
                rows: vec![(0..columns).map(cell).collect()],
            },
            trend: 1,
            verdict: Some("it is ".repeat(20)),
            named_by: &[0],
            is_prose: false,
        }
    }

    #[test]
    fn columns_beyond_the_screen_are_scrolled_to_and_the_first_stays() {
        let mut state = state();
        state.renew(vec![wide(8, 9)], 2.0);
        let key = |state: &mut State, code| {
            state.handle_key(KeyEvent::new(code, KeyModifiers::NONE));
        };
        let head = |state: &mut State| screen(state, 38, 12)[5].clone();
        let expected = " h0         h1         h2         ›";
        assert_eq!(head(&mut state), expected);
        key(&mut state, KeyCode::Right);
        assert!(
            head(&mut state).starts_with("‹h0         h2"),
            "{}",
            head(&mut state)
        );
        for _ in 0..20 {
            key(&mut state, KeyCode::Right);
            head(&mut state);
        }
        assert!(head(&mut state).ends_with("h7"), "{}", head(&mut state));
        let lines = screen(&mut state, 120, 12);
        assert!(lines[3].starts_with(" h0"), "all have room: {}", lines[3]);
        key(&mut state, KeyCode::Enter);
        let lines = screen(&mut state, 38, 16);
        assert!(lines[5].contains("h0  000000000"), "{lines:?}");
        assert!(lines[12].contains("h7  000000007"), "{lines:?}");
    }

    #[test]
    fn columns_keep_the_width_that_they_had() {
        let mut state = state();
        state.renew(vec![wide(2, 9)], 2.0);
        screen(&mut state, 80, 12);
        state.renew(vec![wide(2, 3)], 3.0);
        let lines = screen(&mut state, 80, 12);
        assert_eq!(lines[4], " h0         h1");
    }

    #[test]
    fn sentences_are_wrapped_and_none_is_cut() {
        let mut state = state();
        let sentence = "the quick brown fox jumps over the lazy dog and over the other one too";
        let mut page = wide(2, 5);
        page.is_prose = true;
        page.table.rows = vec![
            vec![
                TableCell::Text("x".to_owned()),
                TableCell::Text(sentence.to_owned())
            ];
            3
        ];
        state.renew(vec![page], 2.0);
        let lines = screen(&mut state, 38, 24);
        let said: Vec<&str> = lines[6..9]
            .iter()
            .flat_map(|line| line.split_whitespace())
            .collect();
        assert!(
            said.join(" ")
                .starts_with("›x the quick brown fox jumps over the lazy dog"),
            "{said:?}"
        );
    }

    #[test]
    fn the_selected_row_is_shown() {
        let check = |before, selected, room, expected| {
            assert_eq!(offset(&[1, 2, 1, 3, 1], before, selected, room), expected);
        };
        check(0, 0, 4, 0);
        check(0, 3, 4, 2);
        check(4, 4, 4, 3);
        check(4, 1, 4, 1);
        check(3, 4, 20, 0);
        assert_eq!(offset(&[], 3, 0, 4), 0);
    }

    #[test]
    fn a_course_is_drawn_against_its_largest_point() {
        assert_eq!(spark(&VecDeque::from([0.0, 1.0, 4.0, 8.0]), 3), "▁▄█");
        assert_eq!(spark(&VecDeque::from([0.0, 0.0]), 9), "  ");
    }

    #[test]
    fn trouble_is_told_in_place_of_the_verdict() {
        let mut state = state();
        state.trouble = Some("lost the agent".to_owned());
        assert_eq!(screen(&mut state, 80, 24)[2], " ! lost the agent");
    }
}
