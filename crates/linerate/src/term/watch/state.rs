//! What is shown, and what keys do to it.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use linerate_analyze::watch::Span;
use linerate_analyze::watch::pages::{OVERVIEW, Page};
use linerate_model::Nanos;
use linerate_model::analysis::TableCell;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Points of a sparkline that are kept.
const TREND_POINTS: usize = 60;
/// What `+` and `-` choose from.
const INTERVALS_MS: [u64; 8] = [50, 100, 200, 500, 1000, 2000, 5000, 10_000];

/// What a key asks of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Draw at the most.
    Nothing,
    /// Make the pages anew, for another span.
    Renew,
    /// End.
    Quit,
}

/// By which column the rows of a page are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) column: usize,
    pub(super) descending: bool,
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) host: String,
    pub(super) seconds: f64,
    pub(super) pages: Vec<Page>,
    /// The page shown, by its name: pages may come and go.
    page: String,
    sorts: HashMap<String, Sort>,
    pub(super) filter: String,
    /// Whether keys go to the filter.
    pub(super) is_filtering: bool,
    pub(super) is_helping: bool,
    pub(super) is_paused: bool,
    pub(super) span: Span,
    pub(super) interval: Nanos,
    /// First row shown.
    pub(super) offset: usize,
    /// The row that Enter opens.
    pub(super) selected: usize,
    /// Its name, once it was chosen: rows change places.
    chosen: Option<String>,
    /// Name of the row that is open.
    open: Option<String>,
    /// Columns after the first that are scrolled away to the left.
    pub(super) left: usize,
    /// Whether columns are left over at the right.
    pub(super) has_more_right: bool,
    /// Rows that the last drawing had room for.
    pub(super) room: usize,
    /// The widest that each column of a page has been, so that columns do not jump.
    pub(super) widths: HashMap<String, Vec<usize>>,
    trends: HashMap<(String, String), VecDeque<f64>>,
    /// What is wrong at the moment.
    pub(super) trouble: Option<String>,
}

/// A row with the course of its trend column.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// What tells it from the others of its page.
    name: String,
    pub(super) cells: &'a [TableCell],
    pub(super) trend: Option<&'a VecDeque<f64>>,
}

/// Returns what tells a row of `page` from the others.
fn name(page: &Page, row: &[TableCell]) -> String {
    let cells = page.named_by.iter().map(|column| &row[*column]);
    let words: Vec<String> = cells.map(linerate_report::short_cell).collect();
    words.join(" ")
}

impl State {
    pub(super) fn new(host: &str, interval: Nanos, page: &str) -> Self {
        Self {
            host: host.to_owned(),
            page: page.to_owned(),
            interval,
            room: 1,
            ..Self::default()
        }
    }

    /// Takes up pages made of a new reading.
    pub(super) fn renew(&mut self, pages: Vec<Page>, seconds: f64) {
        let is_new = seconds > self.seconds;
        self.pages = pages;
        self.seconds = seconds;
        if is_new && self.span == Span::PerSecond {
            self.note_trends();
        }
        self.find_chosen();
    }

    /// Finds the chosen row where it is now; one that has gone leaves its place to another.
    fn find_chosen(&mut self) {
        let names: Vec<String> = self.rows().into_iter().map(|row| row.name).collect();
        if let Some(chosen) = &self.chosen
            && let Some(at) = names.iter().position(|name| name == chosen)
        {
            self.selected = at;
        }
        self.selected = self.selected.min(names.len().saturating_sub(1));
        if self.open.as_ref().is_some_and(|open| !names.contains(open)) {
            self.open = None;
        }
    }

    /// Returns the row that is open.
    pub(super) fn opened(&self) -> Option<Row<'_>> {
        let open = self.open.as_ref()?;
        self.rows().into_iter().find(|row| row.name == *open)
    }

    /// Keeps the trend column of every row, and forgets rows that have gone.
    fn note_trends(&mut self) {
        let mut trends = HashMap::new();
        for page in &self.pages {
            for row in &page.table.rows {
                let Some(TableCell::Number(value, _)) = row.get(page.trend) else {
                    continue;
                };
                let key = (page.name.to_owned(), name(page, row));
                let mut course = self.trends.remove(&key).unwrap_or_default();
                if course.len() == TREND_POINTS {
                    course.pop_front();
                }
                course.push_back(*value);
                trends.insert(key, course);
            }
        }
        self.trends = trends;
    }

    /// Returns the page shown.
    pub(super) fn page(&self) -> Option<&Page> {
        let is_named = |page: &&Page| page.name.eq_ignore_ascii_case(&self.page);
        self.pages.iter().find(is_named).or(self.pages.first())
    }

    fn page_at(&self) -> usize {
        let shown = self.page().map(|page| page.name);
        let at = self.pages.iter().position(|page| Some(page.name) == shown);
        at.unwrap_or(0)
    }

    pub(super) fn sort(&self) -> Option<Sort> {
        self.sorts.get(self.page()?.name).copied()
    }

    /// Returns the rows of the page shown that the filter lets through, sorted.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let Some(page) = self.page() else {
            return Vec::new();
        };
        let wanted = self.filter.to_lowercase();
        let is_wanted = |row: &&Vec<TableCell>| {
            let mut words = row.iter().filter_map(|cell| match cell {
                TableCell::Text(text) => Some(text.to_lowercase()),
                _ => None,
            });
            wanted.is_empty() || words.any(|text| text.contains(&wanted))
        };
        let mut rows: Vec<Row<'_>> = (page.table.rows.iter().filter(is_wanted))
            .map(|cells| {
                let key = (page.name.to_owned(), name(page, cells));
                Row {
                    trend: self.trends.get(&key),
                    name: key.1,
                    cells,
                }
            })
            .collect();
        if let Some(Sort { column, descending }) = self.sort() {
            rows.sort_by(|a, b| {
                let order = compare(&a.cells[column], &b.cells[column]);
                if descending { order.reverse() } else { order }
            });
        }
        rows
    }

    /// Does what `key` asks for.
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        if self.is_filtering {
            self.handle_filter_key(key.code);
            return Action::Nothing;
        }
        if std::mem::take(&mut self.is_helping) {
            return Action::Nothing;
        }
        match key.code {
            KeyCode::Enter | KeyCode::Esc | KeyCode::Backspace if self.open.is_some() => {
                self.open = None;
            }
            KeyCode::Enter => self.open_selected(),
            KeyCode::Char('q') => return Action::Quit,
            // Closes what is open, and nothing else: who presses it once too often has not asked for the end.
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.is_helping = true,
            KeyCode::Char(digit @ '1'..='9') => self.turn_to(digit as usize - '1' as usize),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(self.pages.len().saturating_sub(1)),
            KeyCode::Right | KeyCode::Char('l') if self.has_more_right => self.left += 1,
            KeyCode::Left => self.left = self.left.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::PageDown => self.select(self.room as isize),
            KeyCode::PageUp => self.select(-(self.room as isize)),
            KeyCode::Home | KeyCode::Char('g') => self.rewind(),
            KeyCode::End | KeyCode::Char('G') => self.select(isize::MAX),
            KeyCode::Char('s') => self.sort_by_next(),
            KeyCode::Char('r') => self.reverse(),
            KeyCode::Char('/') => self.is_filtering = true,
            KeyCode::Char(' ' | 'p') => {
                self.is_paused = !self.is_paused;
                return Action::Renew;
            }
            KeyCode::Char('t') => {
                self.span = match self.span {
                    Span::PerSecond => Span::SinceStart,
                    Span::SinceStart => Span::PerSecond,
                };
                self.widths.clear();
                return Action::Renew;
            }
            KeyCode::Char('+') => self.interval = longer(self.interval),
            KeyCode::Char('-') => self.interval = shorter(self.interval),
            _ => {}
        }
        Action::Nothing
    }

    fn handle_filter_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_filtering = false,
            KeyCode::Esc => {
                self.filter.clear();
                self.is_filtering = false;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
        self.rewind();
    }

    fn rewind(&mut self) {
        (self.offset, self.selected, self.chosen) = (0, 0, None);
    }

    /// Opens the selected row; of the overview the page that it is about.
    fn open_selected(&mut self) {
        let Some(name) = (self.rows().get(self.selected)).map(|row| row.name.clone()) else {
            return;
        };
        let is_overview = self.page().is_some_and(|page| page.name == OVERVIEW);
        match self.pages.iter().position(|page| page.name == name) {
            Some(at) if is_overview => self.turn_to(at),
            _ => self.open = Some(name),
        }
    }

    fn turn(&mut self, by: usize) {
        if !self.pages.is_empty() {
            self.turn_to((self.page_at() + by) % self.pages.len());
        }
    }

    fn turn_to(&mut self, at: usize) {
        if let Some(page) = self.pages.get(at) {
            self.page = page.name.to_owned();
            (self.left, self.open) = (0, None);
            self.rewind();
        }
    }

    /// Selects the row so far below; what is open follows.
    fn select(&mut self, by: isize) {
        let names: Vec<String> = self.rows().into_iter().map(|row| row.name).collect();
        let most = names.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(most);
        self.chosen = names.get(self.selected).cloned();
        if self.open.is_some() {
            self.open.clone_from(&self.chosen);
        }
    }

    /// Sorts by the next column, numbers from the top; after the last not at all.
    fn sort_by_next(&mut self) {
        let Some(page) = self.page() else { return };
        let (name, columns) = (page.name.to_owned(), page.table.columns.len());
        let column = self.sort().map_or(0, |sort| sort.column + 1);
        if column < columns {
            let descending = column > 0;
            self.sorts.insert(name, Sort { column, descending });
        } else {
            self.sorts.remove(&name);
        }
        self.rewind();
    }

    fn reverse(&mut self) {
        let Some(page) = self.page() else { return };
        if let Some(sort) = self.sorts.get_mut(page.name) {
            sort.descending = !sort.descending;
        }
    }
}

fn longer(interval: Nanos) -> Nanos {
    let mut all = INTERVALS_MS.into_iter().map(Nanos::from_ms);
    all.find(|one| *one > interval).unwrap_or(interval)
}

fn shorter(interval: Nanos) -> Nanos {
    let mut all = INTERVALS_MS.into_iter().map(Nanos::from_ms);
    all.rfind(|one| *one < interval).unwrap_or(interval)
}

/// Orders cells: what is absent is the least, then numbers and texts that begin with one by size, then
/// other texts.
fn compare(left: &TableCell, right: &TableCell) -> Ordering {
    let size = |cell: &TableCell| match cell {
        TableCell::Number(value, _) => Some(*value),
        TableCell::Estimate(estimate) => Some(estimate.value),
        TableCell::Text(text) => text.split(' ').next().and_then(|word| word.parse().ok()),
        TableCell::Absent(_) => Some(f64::NEG_INFINITY),
    };
    let text = linerate_report::short_cell;
    match (size(left), size(right)) {
        (Some(one), Some(other)) => one
            .total_cmp(&other)
            .then_with(|| text(left).cmp(&text(right))),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => text(left).cmp(&text(right)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use linerate_model::analysis::Table;
    use linerate_model::unit::Unit;

    use super::*;

    /// Returns a page of rows, each with a name and a number.
    pub(in super::super) fn page(name: &'static str, rows: &[(&str, f64)]) -> Page {
        let row = |(name, value): &(&str, f64)| {
            let value = if value.is_nan() {
                TableCell::Absent(String::new())
            } else {
                TableCell::Number(*value, Unit::Percent)
            };
            vec![TableCell::Text((*name).to_owned()), value]
        };
        Page {
            name,
            table: Table {
                title: format!("All {name}"),
                columns: vec!["name".to_owned(), "value".to_owned()],
                rows: rows.iter().map(row).collect(),
            },
            trend: 1,
            verdict: Some("as it should be".to_owned()),
            named_by: &[0],
            is_prose: false,
        }
    }

    pub(in super::super) fn state() -> State {
        let mut state = State::new("server", Nanos::from_s(1), "B");
        state.room = 2;
        let rows = [("10", 3.0), ("9", 7.0), ("eth0", 5.0), ("lost", f64::NAN)];
        state.renew(vec![page("A", &rows), page("B", &rows[..1])], 1.0);
        state
    }

    fn press(state: &mut State, keys: &str) -> Action {
        let press = |key: char| {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{1b}' => KeyCode::Esc,
                '>' => KeyCode::PageDown,
                '<' => KeyCode::PageUp,
                key => KeyCode::Char(key),
            };
            state.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
        };
        keys.chars().map(press).last().unwrap()
    }

    fn names(state: &State) -> Vec<String> {
        let rows = state.rows();
        rows.iter()
            .map(|row| linerate_report::short_cell(&row.cells[0]))
            .collect()
    }

    #[test]
    fn pages_are_turned_in_a_circle_and_by_number() {
        let mut state = state();
        assert_eq!(state.page().unwrap().name, "B", "the one asked for");
        press(&mut state, "\t");
        assert_eq!(state.page().unwrap().name, "A");
        press(&mut state, "2");
        assert_eq!(state.page().unwrap().name, "B");
        press(&mut state, "7");
        assert_eq!(state.page().unwrap().name, "B", "there is no seventh");
    }

    #[test]
    fn rows_are_sorted_by_value_and_filtered_by_name() {
        let mut state = state();
        press(&mut state, "1");
        assert_eq!(names(&state), ["10", "9", "eth0", "lost"], "as they come");
        press(&mut state, "s");
        assert_eq!(names(&state)[..2], ["9", "10"], "numbers in names count");
        press(&mut state, "s");
        assert_eq!(names(&state), ["9", "eth0", "10", "lost"]);
        press(&mut state, "r");
        assert_eq!(names(&state), ["lost", "10", "eth0", "9"]);
        press(&mut state, "s/ET\n");
        assert_eq!(names(&state), ["eth0"]);
        assert_eq!(
            press(&mut state, "\u{1b}"),
            Action::Nothing,
            "gives up the filter first"
        );
        assert_eq!(names(&state).len(), 4);
        assert_eq!(
            press(&mut state, "\u{1b}"),
            Action::Nothing,
            "nothing is open"
        );
    }

    #[test]
    fn selecting_ends_with_the_last_row() {
        let mut state = state();
        press(&mut state, "1>>>");
        assert_eq!(state.selected, 3);
        press(&mut state, "k");
        assert_eq!(state.selected, 2);
        press(&mut state, "<<");
        assert_eq!(state.selected, 0);
    }

    #[test]
    fn a_chosen_row_is_followed_and_opened() {
        let mut state = state();
        press(&mut state, "1j\n");
        assert_eq!(state.opened().unwrap().name, "9");
        let rows = [("9", 1.0), ("10", 2.0), ("eth0", 5.0)];
        state.renew(vec![page("A", &rows)], 2.0);
        assert_eq!(state.selected, 0, "it is the first now");
        press(&mut state, "j");
        assert_eq!(state.opened().unwrap().name, "10", "the next one");
        assert_eq!(press(&mut state, "\u{1b}"), Action::Nothing, "closes it");
        assert!(state.opened().is_none());
        press(&mut state, "\n");
        state.renew(vec![page("A", &rows[2..])], 3.0);
        assert!(state.opened().is_none(), "it has gone");
        assert_eq!(state.selected, 0);
    }

    #[test]
    fn rows_of_one_place_are_told_apart_by_what_they_say() {
        let text = |text: &str| TableCell::Text(text.to_owned());
        let trouble = |rows: &[(&str, f64)]| {
            let mut page = page("A", &[]);
            page.named_by = &[0, 2];
            page.table.columns.push("what".to_owned());
            let row = |(what, count): &(&str, f64)| {
                let count = TableCell::Number(*count, Unit::Count);
                vec![text("host"), count, text(what)]
            };
            page.table.rows = rows.iter().map(row).collect();
            page
        };
        let mut state = state();
        state.renew(vec![trouble(&[("timeouts", 1.0), ("backlog", 7.0)])], 2.0);
        press(&mut state, "1j\n");
        assert_eq!(state.opened().unwrap().cells[2], text("backlog"));
        // One more comes before it.
        let rows = [("timeouts", 1.0), ("overflows", 3.0), ("backlog", 9.0)];
        state.renew(vec![trouble(&rows)], 3.0);
        assert_eq!(state.selected, 2);
        let row = state.opened().unwrap();
        assert_eq!(row.cells[2], text("backlog"));
        assert_eq!(row.trend.unwrap(), &[7.0, 9.0]);
    }

    #[test]
    fn a_row_of_the_overview_leads_to_its_page() {
        let mut state = state();
        let rows = [("A", 1.0), ("B", 2.0)];
        let pages = vec![page(OVERVIEW, &rows), page("A", &rows), page("B", &rows)];
        state.renew(pages, 2.0);
        press(&mut state, "1j\n");
        assert_eq!(state.page().unwrap().name, "B");
        assert!(state.opened().is_none());
    }

    #[test]
    fn trends_follow_rows_and_forget_those_that_went() {
        let mut state = state();
        press(&mut state, "1");
        for second in 2..80 {
            state.renew(
                vec![page("A", &[("9", f64::from(second))])],
                f64::from(second),
            );
        }
        let rows = state.rows();
        let trend = rows[0].trend.unwrap();
        assert_eq!((trend.len(), trend.back()), (TREND_POINTS, Some(&79.0)));
        assert_eq!(state.trends.len(), 1);
    }

    #[test]
    fn the_interval_has_ends() {
        let mut state = state();
        press(&mut state, "-");
        assert_eq!(state.interval, Nanos::from_ms(500));
        press(&mut state, "----------");
        assert_eq!(state.interval, Nanos::from_ms(50));
        press(&mut state, "++++++++++++");
        assert_eq!(state.interval, Nanos::from_s(10));
    }

    #[test]
    fn another_span_asks_for_other_pages() {
        let mut state = state();
        assert_eq!(press(&mut state, "t"), Action::Renew);
        assert_eq!(state.span, Span::SinceStart);
        assert_eq!(press(&mut state, "?"), Action::Nothing);
        assert_eq!(
            press(&mut state, "q"),
            Action::Nothing,
            "closes the help first"
        );
        assert_eq!(press(&mut state, "q"), Action::Quit);
    }

    #[test]
    fn cells_of_all_kinds_have_one_order() {
        let text = |text: &str| TableCell::Text(text.to_owned());
        let cells = [
            TableCell::Absent(String::new()),
            text("2 (60 %), 3 (40 %)"),
            text("9"),
            text("10"),
            TableCell::Number(11.0, Unit::Count),
            text("eth0"),
            text("lo"),
        ];
        for (at, one) in cells.iter().enumerate() {
            for (other_at, other) in cells.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{one:?} {other:?}");
            }
        }
    }
}
