//! Flame graphs: drawn as they are, without a script, so that they print and open anywhere.

use linerate_model::analysis::{Flame, FlameFrame};
use linerate_model::profile::Work;
use linerate_model::text;
use maud::{Markup, html};

use crate::chart::tenths;

/// Width of a drawing, in its own units; the page scales it.
const WIDTH: f64 = 1160.0;
/// Height of a function's bar (16, which page.css has) with the gap to the next.
const ROW: f64 = 17.0;
/// How far below the top of its bar a name stands; page.css places bars by it.
const BASELINE: f64 = 12.0;
/// Bars narrower than this are not drawn: no pointer finds them.
const NARROWEST: f64 = 4.0;
/// Most bars of a drawing: of deep stacks the narrowest are left out, so that a page stays light.
const BARS_MAX: usize = 100;
/// Mean width of a letter, and the room beside a name.
const LETTER: f64 = 6.3;
const MARGIN: f64 = 6.0;
/// Letters below which a name says nothing.
const LETTERS_MIN: usize = 3;

/// Sets all flame graphs.
pub fn flames(flames: &[Flame]) -> Markup {
    html! {
        p.soft.small {
            "Hold the pointer over a function for its whole name, its share and what it mostly does. Colours are \
             kinds of work."
        }
        @for flame in flames { (figure(flame)) }
    }
}

fn figure(flame: &Flame) -> Markup {
    let bars = bars(&flame.root);
    let rows = bars.iter().map(|bar| bar.row).max().unwrap_or(0) + 1;
    let height = rows as f64 * ROW;
    let id = format!("flame-{}", flame.id);
    let title = format!("{id}-title");
    html! {
        figure id=(id) aria-labelledby=(title) {
            h3 id=(title) { (flame.title) }
            (legend(&bars))
            div.scroll tabindex="0" role="region" aria-label=(flame.title) {
                svg.flame viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height)
                    role="img" aria-label=(flame.title) {
                    @for row in 0..rows {
                        // A place of its own for each row, rather than for each bar and its name.
                        g transform={ "translate(0 " (tenths((rows - 1 - row) as f64 * ROW + BASELINE)) ")" } {
                            @for bar in bars.iter().filter(|bar| bar.row == row) { (draw(bar, flame.root.looks)) }
                        }
                    }
                }
            }
            @if !flame.caption.is_empty() { figcaption { (flame.caption) } }
        }
    }
}

/// A function's place in the drawing.
struct Bar<'a> {
    frame: &'a FlameFrame,
    /// From the bottom.
    row: usize,
    left: f64,
    width: f64,
}

/// Returns the bars of all functions, at most [`BARS_MAX`].
fn bars(root: &FlameFrame) -> Vec<Bar<'_>> {
    let mut bars = Vec::new();
    place(root, 0, 0.0, root.looks, &mut bars);
    let mut widths: Vec<f64> = bars.iter().map(|bar| bar.width).collect();
    widths.sort_by(|a, b| b.total_cmp(a));
    // A bar is never wider than its caller's: none loses what it stands on.
    if let Some(&left_out) = widths.get(BARS_MAX) {
        bars.retain(|bar| bar.width > left_out);
    }
    bars
}

fn place<'a>(frame: &'a FlameFrame, row: usize, left: f64, all: u64, bars: &mut Vec<Bar<'a>>) {
    let width = |frame: &FlameFrame| frame.looks as f64 / all.max(1) as f64 * WIDTH;
    let own = width(frame);
    if own < NARROWEST {
        return;
    }
    bars.push(Bar {
        frame,
        row,
        left,
        width: own,
    });
    let mut at = left;
    for call in &frame.calls {
        place(call, row + 1, at, all, bars);
        at += width(call);
    }
}

fn draw(bar: &Bar<'_>, all: u64) -> Markup {
    let letters = ((bar.width - MARGIN) / LETTER).max(0.0) as usize;
    let percent = 100.0 * bar.frame.looks as f64 / all.max(1) as f64;
    let label = shortened(&bar.frame.name, letters);
    html! {
        rect.(bar.frame.work.name()) x=(tenths(bar.left)) width=(tenths(bar.width)) {
            title { (bar.frame.name) ": " (format!("{percent:.1}")) " %, " (bar.frame.work.title()) }
        }
        @if let Some(label) = label { text x=(tenths(bar.left + MARGIN / 2.0)) { (label) } }
    }
}

/// Returns as much of `name` as has room; nothing if that would say nothing.
fn shortened(name: &str, letters: usize) -> Option<String> {
    (letters >= LETTERS_MIN).then(|| text::cut(name, letters))
}

fn legend(bars: &[Bar<'_>]) -> Markup {
    let works = Work::ALL
        .iter()
        .filter(|work| bars.iter().any(|bar| bar.frame.work == **work));
    html! {
        ul.legend {
            @for work in works {
                li {
                    svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true" {
                        rect.(work.name()) width="14" height="14" {}
                    }
                    span { (work.title()) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, looks: u64, calls: Vec<FlameFrame>) -> FlameFrame {
        FlameFrame {
            name: name.to_owned(),
            looks,
            work: Work::Transport,
            calls,
        }
    }

    #[test]
    fn a_call_lies_within_its_caller_and_names_are_escaped() {
        let calls = vec![
            frame("a<b>", 60, vec![frame("inner", 20, vec![])]),
            frame("other", 30, vec![]),
            frame("tiny", 0, vec![]),
        ];
        let flame = Flame {
            id: "x".to_owned(),
            title: "CPUs".to_owned(),
            caption: String::new(),
            root: frame("all", 100, calls),
        };
        let places: Vec<_> = bars(&flame.root)
            .iter()
            .map(|bar| (&*bar.frame.name, bar.row, bar.left, bar.width))
            .collect();
        let of = |share: f64| share * WIDTH;
        assert_eq!(
            places,
            [
                ("all", 0, 0.0, WIDTH),
                ("a<b>", 1, 0.0, of(0.6)),
                ("inner", 2, 0.0, of(0.2)),
                ("other", 1, of(0.6), of(0.3)),
            ]
        );
        let page = flames(&[flame]).into_string();
        assert!(page.contains("a&lt;b&gt;: 60.0 %, TCP and UDP"), "{page}");
        assert!(!page.contains("tiny"));
    }

    #[test]
    fn of_many_functions_the_widest_are_drawn() {
        let call = |looks| frame("f", looks, vec![frame("inner", looks, vec![])]);
        let root = frame(
            "all",
            50_000,
            (0..500).map(|at| call(400 - at / 2)).collect(),
        );
        let drawn = bars(&root);
        assert!(
            drawn.len() <= BARS_MAX && drawn.len() > BARS_MAX / 3,
            "{}",
            drawn.len()
        );
        let narrowest = drawn.iter().map(|bar| bar.frame.looks).min();
        let wider = root
            .calls
            .iter()
            .filter(|call| Some(call.looks) >= narrowest);
        assert_eq!(drawn.len(), 1 + 2 * wider.count());
    }

    #[test]
    fn long_names_are_cut_to_their_room() {
        assert_eq!(shortened("tcp_sendmsg", 20).as_deref(), Some("tcp_sendmsg"));
        assert_eq!(shortened("tcp_sendmsg", 5).as_deref(), Some("tcp_…"));
        assert_eq!(shortened("tcp_sendmsg", 2), None);
    }
}
