//! The end of a study on a terminal: one screen of 24 lines with the verdict, how far to trust it, the headline
//! numbers, three findings, three actions and the report's path. The report has all the rest.

use linerate_model::analysis::Analysis;
use linerate_model::finding::{Comparison, Trust, TrustLevel};
use linerate_model::text;

use super::fit::{clean, length};
use super::{Look, Page, WIDTH_MAX, WIDTH_MIN};
use crate::html::is_usable;
use crate::{number, wording};

/// Lines of the screen, less one for the prompt that follows.
const LINES_MAX: usize = 23;
/// Findings, and actions, that are told.
const TOLD_MAX: usize = 3;

/// Returns the last lines of a command that made `report`: 23 of at most `width` characters.
pub fn terminal_answer(analysis: &Analysis, report: &str, width: usize, color: bool) -> String {
    let mut page = Page::new(width.clamp(WIDTH_MIN, WIDTH_MAX), color);
    let mut parts = parts(analysis);
    // One line is the report's path, which is not wrapped: it must survive copying.
    fit_into(&mut parts, page.width, LINES_MAX - 1);
    for part in &parts {
        page.part(part);
    }
    page.styled(Look::Quiet, "report  ");
    page.line(Look::Plain, &clean(report));
    page.text
}

/// Something that is told, and shorter ways to tell it.
pub(super) struct Passage {
    lead: String,
    look: Look,
    /// From the whole to the shortest; never empty.
    forms: Vec<String>,
    words: Look,
    /// Most lines, where even the shortest form has to be cut.
    lines_max: usize,
}

impl Passage {
    pub(super) fn new(lead: &str, look: Look, forms: Vec<String>) -> Self {
        Self {
            lead: lead.to_owned(),
            look,
            forms: forms.iter().map(|form| clean(form)).collect(),
            words: Look::Plain,
            lines_max: usize::MAX,
        }
    }

    /// One line, however many reasons there are.
    pub(super) fn trust(trust: &Trust, look: Look) -> Self {
        Self {
            lines_max: 1,
            ..Self::new("Trust: ", look, vec![trust.line()])
        }
    }

    fn head(look: Look, text: &str) -> Self {
        let mut part = Self::new("", look, vec![text.to_owned()]);
        part.words = look;
        part
    }

    /// Returns its lines at this width, less its lead.
    fn lines(&self, width: usize) -> Vec<String> {
        let columns = width.saturating_sub(length(&self.lead)).max(1);
        let mut lines = text::fit(&self.forms[0], columns);
        if lines.len() > self.lines_max {
            lines.truncate(self.lines_max);
            if let Some(last) = lines.last_mut() {
                *last = cut(last, columns);
            }
        }
        lines
    }
}

/// Marks that a line goes on: whole words only.
fn cut(line: &str, columns: usize) -> String {
    let room = columns.saturating_sub(2);
    let kept: String = line.chars().take(room).collect();
    let kept = if length(line) > room {
        kept.rsplit_once(' ')
            .map_or(kept.as_str(), |(kept, _)| kept)
    } else {
        &kept
    };
    format!("{kept} …")
}

/// Shortens the tallest parts, the last of them first, until all have `lines` lines at the most: by what
/// qualifies a sentence, and only where that is not enough in the middle of one.
fn fit_into(parts: &mut [Passage], width: usize, lines: usize) {
    loop {
        let heights: Vec<usize> = parts.iter().map(|part| part.lines(width).len()).collect();
        if heights.iter().sum::<usize>() <= lines {
            return;
        }
        let tallest = |has: &dyn Fn(&Passage) -> bool| {
            let could = (0..parts.len()).filter(|at| heights[*at] > 1 && has(&parts[*at]));
            could.max_by_key(|at| heights[*at])
        };
        if let Some(at) = tallest(&|part| part.forms.len() > 1) {
            parts[at].forms.remove(0);
        } else if let Some(at) = tallest(&|_| true) {
            parts[at].lines_max = heights[at] - 1;
        } else {
            return;
        }
    }
}

fn parts(analysis: &Analysis) -> Vec<Passage> {
    let mut parts = vec![Passage::head(Look::Quiet, &analysis.title)];
    let answer = &analysis.answer;
    if !answer.verdict.is_empty() {
        parts.push(Passage::head(Look::Strong, &format!("{}.", answer.verdict)));
    }
    if let Some(trust) = &analysis.trust {
        parts.push(Passage::trust(trust, look(trust)));
    }
    let warnings = [
        ("Partial: ", analysis.partial.as_ref()),
        ("Damaged: ", analysis.damage.first()),
    ];
    for (lead, why) in warnings {
        let forms = why.map(|why| clauses(why, "; …"));
        parts.extend(forms.map(|forms| Passage::new(lead, Look::Warning, forms)));
    }
    if !is_usable(analysis) {
        let before = wording::before_again(analysis);
        told(&mut parts, "Before you measure again", &before);
        return parts;
    }
    tiles(&mut parts, analysis);
    compared(&mut parts, analysis);
    let claims: Vec<String> = analysis.findings.iter().map(wording::claim).collect();
    told(&mut parts, "Findings", &claims);
    // What was measured to help first, then what would raise what the findings above name.
    let advice = wording::advice(analysis, TOLD_MAX).into_iter();
    let actions = advice.map(|one| match one.gain {
        Some(_) => one.action,
        None => format!("{} (Gain not measured.)", one.action),
    });
    told(&mut parts, "What to do", &actions.collect::<Vec<_>>());
    parts
}

fn tiles(parts: &mut Vec<Passage>, analysis: &Analysis) {
    let tiles = &analysis.answer.tiles;
    let heads = tiles.iter().map(|tile| length(&clean(&tile.what))).max();
    for tile in tiles {
        let head = format!("{:<1$}", clean(&tile.what), heads.unwrap_or(0) + 2);
        let value = number::estimate(&tile.value).line();
        let mut forms = Vec::new();
        if !tile.note.is_empty() {
            let notes = clauses(&tile.note, "");
            forms.extend(notes.iter().map(|note| format!("{value} ({note})")));
        }
        forms.push(value);
        parts.push(Passage::new(&head, Look::Key, forms));
    }
}

/// What no finding tells of a lone experiment: its comparisons, and what was not measured.
fn compared(parts: &mut Vec<Passage>, analysis: &Analysis) {
    // A study has a page for each, and chapters of few of them.
    if analysis.chapters.len() > 1 || analysis.verdicts.len() > TOLD_MAX {
        return;
    }
    let is_told = |id: &String| analysis.findings.iter().any(|finding| finding.id == *id);
    let open = analysis.verdicts.iter().filter(|one| !is_told(&one.id));
    parts.extend(open.map(|one: &Comparison| {
        let ratio = number::estimate(&one.effect).line();
        let words = format!("{}: {ratio}, {}", one.what, one.verdict_in_words());
        Passage::new("Compared: ", Look::Key, vec![words])
    }));
    if let Some((first, others)) = analysis.left_out.split_first() {
        let more = match others.len() {
            0 => String::new(),
            count => format!(" (+{count} more)"),
        };
        let whole = format!("{}: {}{more}", first.what, first.why);
        let short = format!("{}{more}", first.what);
        let forms = vec![whole, short];
        parts.push(Passage::new("Not measured: ", Look::Key, forms));
    }
}

fn told(parts: &mut Vec<Passage>, head: &str, all: &[String]) {
    if all.is_empty() {
        return;
    }
    let of = match all.len() {
        0..=TOLD_MAX => String::new(),
        count => format!(" ({TOLD_MAX} of {count})"),
    };
    parts.push(Passage::head(Look::Strong, &format!("{head}{of}")));
    for (at, text) in all.iter().take(TOLD_MAX).enumerate() {
        let lead = format!("{:>2}  ", at + 1);
        parts.push(Passage::new(&lead, Look::Key, clauses(text, ".")));
    }
}

/// Returns `text` and what is left of it without its last clause, its last two, …; each ends with `end`.
/// A clause begins after a full stop or a semicolon that no bracket holds.
fn clauses(text: &str, end: &str) -> Vec<String> {
    let is_open = |before: &str| before.matches('(').count() > before.matches(')').count();
    let blanks = text.match_indices(' ').map(|(at, _)| &text[..at]);
    let ends = blanks.filter_map(|before| before.strip_suffix([';', '.']));
    let mut forms: Vec<String> = ends
        .filter(|before| !is_open(before))
        .map(|before| format!("{before}{end}"))
        .collect();
    forms.push(text.to_owned());
    forms.reverse();
    forms
}

impl Page {
    pub(super) fn part(&mut self, part: &Passage) {
        for (at, line) in part.lines(self.width).iter().enumerate() {
            match at {
                0 => self.styled(part.look, &part.lead),
                _ => self.text.push_str(&" ".repeat(length(&part.lead))),
            }
            self.line(part.words, line);
        }
    }
}

fn look(trust: &Trust) -> Look {
    match trust.level {
        TrustLevel::Good => Look::Key,
        TrustLevel::Limited | TrustLevel::DoNotUse => Look::Warning,
    }
}
