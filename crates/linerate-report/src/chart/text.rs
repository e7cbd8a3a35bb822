//! Words in a drawing: how much room they need, and what is done where there is less.

use linerate_model::text;
use maud::{Markup, html};

use super::{FONT_PX, GAP_PX, LINE_PX, Plot, tenths};

/// Width of a character, as a share of the text's size: a digit of the widest usual font.
const CHARACTER_EM: f64 = 0.64;

/// Most lines of a category's name under the axis; a longer one stands upright.
const CATEGORY_LINES_MAX: usize = 4;

/// Most characters of a name that stands upright.
const UPRIGHT_MAX: usize = 18;

/// A label of the horizontal axis.
pub struct Label<'a> {
    /// Where its tick stands.
    pub x: f64,
    /// Where its middle stands.
    pub middle: f64,
    /// Half its width.
    pub half: f64,
    /// What it says.
    pub text: &'a str,
}

/// Returns those labels that have room; the last always has.
pub fn with_room(labels: Vec<Label<'_>>) -> Vec<Label<'_>> {
    let Some(last) = labels.last() else {
        return labels;
    };
    let last_begins = last.middle - last.half - GAP_PX / 2.0;
    let count = labels.len();
    let mut end = f64::NEG_INFINITY;
    let mut kept = Vec::new();
    for (at, label) in labels.into_iter().enumerate() {
        let is_last = at + 1 == count;
        let fits = label.middle - label.half >= end + GAP_PX / 2.0;
        let leaves_room = label.middle + label.half <= last_begins;
        if is_last || (fits && leaves_room) {
            end = label.middle + label.half;
            kept.push(label);
        }
    }
    kept
}

/// The names of categories under the axis: in lines, or upright where those have no room.
pub struct Names {
    lines: Vec<Vec<String>>,
    upright: bool,
    /// The room that they need below the axis.
    pub height_px: f64,
}

impl Names {
    /// Sets names into slots of this many pixels.
    pub fn of(categories: &[String], slot: f64) -> Names {
        let characters = (((slot - GAP_PX) / (FONT_PX * CHARACTER_EM)) as usize).max(1);
        let lines: Vec<Vec<String>> = categories
            .iter()
            .map(|name| broken(name, characters))
            .collect();
        let fits = |lines: &Vec<String>| {
            let is_narrow = |line: &String| line.chars().count() <= characters;
            lines.len() <= CATEGORY_LINES_MAX && lines.iter().all(is_narrow)
        };
        if lines.iter().all(fits) {
            let most = lines.iter().map(Vec::len).max().unwrap_or(0);
            let height_px = most as f64 * LINE_PX;
            return Names {
                lines,
                upright: false,
                height_px,
            };
        }
        let room = (UPRIGHT_MAX as f64 + 0.5) * FONT_PX * CHARACTER_EM;
        let lines: Vec<Vec<String>> = categories
            .iter()
            .map(|name| vec![cut(name, room)])
            .collect();
        let widest = lines
            .iter()
            .flatten()
            .map(|name| width_px(name))
            .fold(0.0, f64::max);
        Names {
            lines,
            upright: true,
            height_px: widest + GAP_PX,
        }
    }

    /// Draws the names below the plot.
    pub fn draw(&self, plot: &Plot, slot: f64) -> Markup {
        let (left, bottom) = (tenths(plot.left), tenths(plot.bottom));
        let middle = |at: usize| plot.left + (at as f64 + 0.5) * slot;
        html! {
            path.axis d={ "M" (left) " " (bottom) "H" (tenths(plot.right)) } {}
            @for (at, lines) in self.lines.iter().enumerate() {
                @for (row, line) in lines.iter().enumerate() {
                    @if self.upright {
                        text.end transform={ "translate(" (tenths(middle(at) + FONT_PX / 3.0)) " "
                            (tenths(plot.below + GAP_PX)) ") rotate(-90)" } { (line) }
                    } @else {
                        text.middle x=(tenths(middle(at)))
                            y=(tenths(plot.below + (row as f64 + 1.0) * LINE_PX + 3.0)) { (line) }
                    }
                }
            }
        }
    }
}

/// Returns the room that a text needs; no font is at hand, so that of a wide one.
pub fn width_px(text: &str) -> f64 {
    text.chars().count() as f64 * FONT_PX * CHARACTER_EM
}

/// Cuts a text that is wider than `room` pixels.
pub fn cut(text: &str, room: f64) -> String {
    text::cut(text, (room / (FONT_PX * CHARACTER_EM)) as usize)
}

/// Breaks words into lines of at most `width` characters, as far as words are that short.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_break_between_words() {
        let lines = broken("Nagle on, delayed ACK off", 18);
        assert_eq!(lines, ["Nagle on, delayed", "ACK off"]);
    }

    #[test]
    fn labels_without_room_go_and_the_last_stays() {
        let label = |x: f64| Label {
            x,
            middle: x,
            half: 10.0,
            text: "t",
        };
        let places = [0.0, 20.0, 40.0, 80.0, 100.0].map(label);
        let kept: Vec<f64> = with_room(places.into())
            .iter()
            .map(|label| label.x)
            .collect();
        assert_eq!(kept, [0.0, 40.0, 100.0]);
    }
}
