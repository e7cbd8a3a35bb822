//! The end of a study on a terminal: one screen of 24 lines with the verdict, how far to trust it, the headline
//! numbers, three findings, three actions and the report's path. The report has all the rest.

use linerate_model::analysis::Analysis;
use linerate_model::finding::{Trust, TrustLevel};
use linerate_model::text;

use super::fit::{clean, length, pad};
use super::{Look, Page, WIDTH_MAX, WIDTH_MIN};
use crate::{number, wording};

/// Lines of the screen, less one for the prompt that follows.
const LINES_MAX: usize = 23;
/// Findings, and actions, that are told.
const TOLD_MAX: usize = 3;
/// Lines of each number and of each thing that is told, from the most to the least: the first that the
/// screen holds. What stands behind a number goes before a sentence is cut.
const LINES_EACH: [(usize, usize); 4] = [(3, 3), (2, 2), (1, 2), (1, 1)];
/// Least lines of the verdict and of trust.
const LINES_FIRST: usize = 2;

/// Returns the last lines of a command that made `report`: 23 of at most `width` characters.
pub fn terminal_answer(analysis: &Analysis, report: &str, width: usize, color: bool) -> String {
    // A path is not wrapped: it must survive copying.
    let page = |(of_tiles, lines_each)| {
        let mut page = Page {
            text: String::new(),
            width: width.clamp(WIDTH_MIN, WIDTH_MAX),
            color,
        };
        page.answer(analysis, of_tiles, lines_each);
        page.styled(Look::Quiet, "report  ");
        page.line(Look::Plain, &clean(report));
        page.text
    };
    let pages = LINES_EACH.into_iter().map(page);
    let mut last = String::new();
    for page in pages {
        last = page;
        if last.lines().count() <= LINES_MAX {
            break;
        }
    }
    last
}

impl Page {
    fn answer(&mut self, analysis: &Analysis, of_tiles: usize, lines_each: usize) {
        self.line(Look::Quiet, &clean(&analysis.title));
        let first = lines_each.max(LINES_FIRST);
        let verdict = &analysis.answer.verdict;
        if !verdict.is_empty() {
            self.clipped(
                "",
                Look::Heading,
                &format!("{verdict}."),
                first,
                Look::Heading,
            );
        }
        if let Some(trust) = &analysis.trust {
            self.clipped("Trust: ", look(trust), &trust.line(), first, Look::Plain);
        }
        if let Some(why) = &analysis.partial {
            self.clipped("Partial: ", Look::Warning, why, 1, Look::Plain);
        }
        if let [first, ..] = analysis.damage.as_slice() {
            self.clipped("Damaged: ", Look::Warning, first, 1, Look::Plain);
        }
        let level = analysis.trust.as_ref().map(|trust| trust.level);
        if level == Some(TrustLevel::DoNotUse) {
            return self.blank();
        }
        self.tiles(analysis, of_tiles);
        self.told(
            "Findings",
            analysis.findings.iter().map(|one| one.claim.as_str()),
            lines_each,
        );
        // What was measured to help first, then what would raise what the findings above name.
        let measured = analysis.recommendations.iter();
        let measured = measured.map(|one| one.action.clone());
        let remedies = wording::remedies(analysis, TOLD_MAX).into_iter();
        let remedies = remedies.map(|(_, remedy)| {
            let action = wording::stop(remedy.action);
            format!("{action} (Gain not measured.)")
        });
        let actions: Vec<String> = measured.chain(remedies).collect();
        self.told("What to do", actions.iter().map(String::as_str), lines_each);
    }

    fn tiles(&mut self, analysis: &Analysis, lines_each: usize) {
        let tiles = &analysis.answer.tiles;
        let heads = tiles.iter().map(|tile| length(&clean(&tile.what))).max();
        for tile in tiles {
            let head = pad(&clean(&tile.what), heads.unwrap_or(0) + 2);
            let value = number::estimate(&tile.value).line();
            let note = match tile.note.as_str() {
                "" => String::new(),
                note => format!(" ({note})"),
            };
            self.clipped(
                &head,
                Look::Key,
                &format!("{value}{note}"),
                lines_each,
                Look::Plain,
            );
        }
    }

    fn told<'t>(&mut self, head: &str, all: impl Iterator<Item = &'t str>, lines_each: usize) {
        let all: Vec<&str> = all.collect();
        if all.is_empty() {
            return;
        }
        let of = match all.len() {
            0..=TOLD_MAX => String::new(),
            count => format!(" ({TOLD_MAX} of {count})"),
        };
        self.line(Look::Heading, &format!("{head}{of}"));
        for (at, text) in all.into_iter().take(TOLD_MAX).enumerate() {
            let lead = format!("{:>2}  ", at + 1);
            self.clipped(&lead, Look::Key, text, lines_each, Look::Plain);
        }
    }

    /// Writes `text` behind `lead` in at most `lines` lines; what is left out is marked.
    fn clipped(&mut self, lead: &str, look: Look, text: &str, lines: usize, words: Look) {
        let indent = length(lead);
        let columns = self.width.saturating_sub(indent).max(1);
        let mut all = text::fit(&clean(text), columns);
        if all.len() > lines {
            all.truncate(lines);
            if let Some(last) = all.last_mut() {
                let room = columns.saturating_sub(2);
                let kept: String = last.chars().take(room).collect();
                // Whole words only.
                let kept = match length(last) > room {
                    true => kept
                        .rsplit_once(' ')
                        .map_or(kept.as_str(), |(kept, _)| kept),
                    false => &kept,
                };
                *last = format!("{kept} …");
            }
        }
        for (at, line) in all.iter().enumerate() {
            match at {
                0 => self.styled(look, lead),
                _ => self.text.push_str(&" ".repeat(indent)),
            }
            self.line(words, line);
        }
    }
}

fn look(trust: &Trust) -> Look {
    match trust.level {
        TrustLevel::Good => Look::Key,
        TrustLevel::Limited | TrustLevel::DoNotUse => Look::Warning,
    }
}
