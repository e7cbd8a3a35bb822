//! From state to cells of the terminal.

use std::collections::VecDeque;

use linerate_analyze::watch::Span;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::state::State;

/// Cells between two columns.
const GAP: usize = 2;
/// Widest first column; longer names are cut.
const NAME_MAX: usize = 44;
/// Narrowest sparkline worth drawing.
const TREND_MIN: usize = 8;
/// Widest.
const TREND_MAX: usize = 30;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const KEYS: [(&str, &str); 11] = [
    ("1–9, Tab, ← →", "turn to a page"),
    ("↑ ↓, PgUp PgDn, Home End", "scroll"),
    ("s", "sort by the next column; after the last, unsorted"),
    ("r", "reverse the order"),
    ("/", "only rows with a text; Enter keeps, Esc drops it"),
    ("space, p", "pause; counting goes on"),
    ("t", "per second, or in all since the start"),
    ("+ -", "longer or shorter interval"),
    ("?, h", "this help"),
    ("q, Ctrl-C", "end"),
    ("", "any key closes this"),
];

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [head, tabs, verdict, body, foot] = rows.areas(frame.area());
    frame.render_widget(heading(state, head.width), head);
    frame.render_widget(tab_line(state), tabs);
    frame.render_widget(verdict_line(state), verdict);
    state.room = (body.height as usize).saturating_sub(1).max(1);
    let most = state.rows().len().saturating_sub(state.room);
    state.offset = state.offset.min(most);
    frame.render_widget(Paragraph::new(table(state, body)), body);
    frame.render_widget(footer(state), foot);
    if state.is_helping {
        help(frame);
    }
}

fn heading(state: &State, width: u16) -> Line<'static> {
    let left = format!(" linerate watch   {}", state.host);
    let span = match state.span() {
        Span::PerSecond => "per second",
        Span::SinceStart => "since the start",
    };
    let paused = if state.is_paused() { "PAUSED   " } else { "" };
    let time = state.seconds as u64;
    let right = format!(
        "{paused}{span}   every {}   {:02}:{:02}:{:02} ",
        state.interval(),
        time / 3600,
        time / 60 % 60,
        time % 60
    );
    let room = usize::from(width).saturating_sub(left.chars().count() + right.chars().count());
    Line::from(format!("{left}{}{right}", " ".repeat(room))).reversed()
}

fn tab_line(state: &State) -> Line<'static> {
    let shown = state.page().map(|page| page.name);
    let mut pieces = vec![Piece::raw(" ")];
    for (at, page) in state.pages.iter().enumerate() {
        let text = format!(" {} {} ", at + 1, page.name);
        pieces.push(match Some(page.name) == shown {
            true => Piece::raw(text).bold().cyan().underlined(),
            false => Piece::raw(text).dim(),
        });
    }
    Line::from(pieces)
}

fn verdict_line(state: &State) -> Line<'static> {
    if let Some(trouble) = &state.trouble {
        return Line::from(format!(" ! {trouble}")).red().bold();
    }
    let verdict = state.page().and_then(|page| page.verdict.clone());
    Line::from(format!(" {}", verdict.unwrap_or_default())).yellow()
}

/// Returns the head of the table and the rows that fit.
fn table(state: &State, area: Rect) -> Vec<Line<'static>> {
    let Some(page) = state.page() else {
        return vec![Line::from(" nothing can be observed here")];
    };
    let rows = state.rows();
    let texts: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.cells.iter().map(linerate_report::short_cell).collect())
        .collect();
    let right = linerate_report::number_columns(&page.table);
    let sort = state.sort();
    let heads = page.table.columns.iter().enumerate().map(|(at, head)| {
        match sort.filter(|sort| sort.column == at) {
            Some(sort) if sort.descending => format!("{head}▼"),
            Some(_) => format!("{head}▲"),
            None => head.clone(),
        }
    });
    let heads: Vec<String> = heads.collect();
    let mut widths: Vec<usize> = heads.iter().map(|head| head.chars().count()).collect();
    for row in &texts {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count());
        }
    }
    if let Some(name) = widths.first_mut() {
        *name = (*name).min(NAME_MAX);
    }
    let room = usize::from(area.width).saturating_sub(1);
    let shown = columns_that_fit(&widths, room);
    let taken: usize = widths[..shown].iter().map(|width| width + GAP).sum();
    let trend = room.saturating_sub(taken).min(TREND_MAX);
    let trend = (shown == widths.len() && trend >= TREND_MIN).then_some(trend);
    let line = |cells: &[String]| -> Vec<Piece<'static>> {
        let cells = cells.iter().enumerate().take(shown);
        let pieces = cells.map(|(at, cell)| {
            let piece = Piece::raw(format!(" {} ", fitted(cell, widths[at], right[at])));
            // What does not happen steps back, so that the eye finds what does.
            match at > 0 && is_nothing(cell) {
                true => piece.dim(),
                false => piece,
            }
        });
        pieces.collect()
    };
    let mut lines = vec![Line::from(line(&heads)).bold()];
    let visible = rows.iter().zip(&texts).skip(state.offset).take(state.room);
    for (row, texts) in visible {
        let mut pieces = line(texts);
        if let (Some(width), Some(course)) = (trend, row.trend) {
            let course = format!(" {}", spark(course, width));
            pieces.push(Piece::styled(course, Style::new().fg(Color::Cyan)));
        }
        lines.push(Line::from(pieces));
    }
    if rows.is_empty() {
        let why = match state.filter.is_empty() {
            true => " nothing yet",
            false => " no row contains the text of the filter",
        };
        lines.push(Line::from(why).dim());
    }
    lines
}

/// Tells whether a cell says that there is nothing: zero of any unit, or a dash.
fn is_nothing(cell: &str) -> bool {
    let number = cell.split([' ', '/']).next();
    matches!(number, Some("0" | "–"))
}

/// Returns how many columns fit, at least one.
fn columns_that_fit(widths: &[usize], room: usize) -> usize {
    let mut taken = 0;
    let fits = widths.iter().take_while(|width| {
        taken += *width + if taken == 0 { 0 } else { GAP };
        taken <= room
    });
    fits.count().max(1).min(widths.len())
}

/// Returns `text` in exactly `width` cells.
fn fitted(text: &str, width: usize, right: bool) -> String {
    let length = text.chars().count();
    if length > width {
        let kept: String = text.chars().take(width.saturating_sub(1)).collect();
        return format!("{kept}…");
    }
    let space = " ".repeat(width - length);
    match right {
        true => format!("{space}{text}"),
        false => format!("{text}{space}"),
    }
}

/// Draws the last points of a course, the largest of them as a full bar.
fn spark(course: &VecDeque<f64>, width: usize) -> String {
    let points = course.iter().skip(course.len().saturating_sub(width));
    let largest = points
        .clone()
        .fold(0.0, |most: f64, point| most.max(*point));
    let bar = |point: &f64| match largest > 0.0 && *point > 0.0 {
        true => BARS[((point / largest * 8.0).ceil() as usize).clamp(1, 8) - 1],
        false => ' ',
    };
    points.map(bar).collect()
}

fn footer(state: &State) -> Line<'static> {
    if state.is_filtering {
        return Line::from(format!(" / {}▏", state.filter)).bold();
    }
    let filter = match state.filter.is_empty() {
        true => "/ filter".to_owned(),
        false => format!("/ {} (Esc drops it)", state.filter),
    };
    Line::from(format!(
        " q end  Tab page  ↑↓ scroll  s sort  r turn  {filter}  space pause  t span  ? help"
    ))
    .dim()
}

fn help(frame: &mut Frame<'_>) {
    let keys = KEYS.iter().map(|(key, words)| {
        Line::from(vec![
            Piece::raw(format!(" {key:<25}")).bold(),
            Piece::raw(*words),
        ])
    });
    let lines: Vec<Line<'_>> = keys.collect();
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 3;
    let area = frame.area().centered(
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
        assert_eq!(lines[1], "  1 A  2 B");
        assert_eq!(lines[2], " as it should be");
        assert_eq!(lines[3], " name  value");
        assert_eq!(lines[4], " 10      3 %  █");
        assert_eq!(lines[7], " lost      –");
        assert!(lines[23].starts_with(" q end"), "{}", lines[23]);
        assert!(lines[23].chars().count() <= 80);
    }

    #[test]
    fn little_room_shows_what_fits_and_never_fails() {
        let mut state = state();
        press(&mut state, '1');
        for (width, height) in [(1, 1), (7, 5), (20, 6), (300, 100)] {
            let lines = screen(&mut state, width, height);
            assert_eq!(lines.len(), usize::from(height));
        }
        press(&mut state, 's');
        press(&mut state, '?');
        let lines = screen(&mut state, 80, 24);
        assert!(lines.iter().any(|line| line.contains("Keys")), "{lines:?}");
        assert_eq!(screen(&mut state, 10, 3).len(), 3);
    }

    #[test]
    fn a_course_is_drawn_against_its_largest_point() {
        assert_eq!(spark(&VecDeque::from([0.0, 1.0, 4.0, 8.0]), 3), "▁▄█");
        assert_eq!(spark(&VecDeque::from([0.0, 0.0]), 9), "  ");
    }

    #[test]
    fn trouble_is_told_in_place_of_the_verdict() {
        let mut state = state();
        state.tell(Some("lost the agent".to_owned()));
        assert_eq!(screen(&mut state, 80, 24)[2], " ! lost the agent");
    }
}
