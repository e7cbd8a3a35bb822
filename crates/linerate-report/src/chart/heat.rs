//! A number for each pair of hosts, as a square of shades: the more, the darker. Pairs that are slow have a frame, so that
//! neither colour nor print has to tell them.

use std::fmt::Write as _;

use linerate_model::analysis::{HeatCell, HeatMap};
use maud::{Markup, html};

use super::text::{cut, width_px};
use super::{GAP_PX, PAGE, tenths};

/// Side of a square at the most, in pixels.
const SIDE_MAX_PX: f64 = 40.0;
/// Hosts up to which a square says its number, and what it is of on hovering.
const WRITTEN_MAX: usize = 16;
/// Width of names at the most, in pixels.
const NAME_MAX_PX: f64 = 120.0;
/// Side of a square from which on names of rows and columns have room.
const NAMED_MIN_PX: f64 = 11.0;
/// Shades of squares: more are not told apart.
const SHADES: usize = 8;

/// Draws a map.
pub fn heat_map(map: &HeatMap) -> Markup {
    let count = map.hosts.len().max(1);
    let names = map.hosts.iter().map(|host| width_px(host));
    let left = names.fold(0.0, f64::max).min(NAME_MAX_PX) + GAP_PX;
    let side = ((PAGE.width - left - GAP_PX) / count as f64).min(SIDE_MAX_PX);
    let (top, size) = (left, side * count as f64);
    let most = map
        .cells
        .iter()
        .map(|cell| cell.value)
        .fold(f64::MIN_POSITIVE, f64::max);
    let shade = |cell: &HeatCell| ((cell.value / most * SHADES as f64) as usize).min(SHADES - 1);
    let at = |place: u32| side * f64::from(place);
    let square = |cell: &HeatCell, inset: f64| {
        let (x, y) = (left + at(cell.to) + inset, top + at(cell.from) + inset);
        let length = tenths(side - 2.0 * inset);
        format!("M{} {}h{length}v{length}h-{length}z", tenths(x), tenths(y))
    };
    let joined = |cells: &mut dyn Iterator<Item = &HeatCell>, inset: f64| {
        cells.fold(String::new(), |mut path, cell| {
            let _ = write!(path, "{}", square(cell, inset));
            path
        })
    };
    let shades = (0..SHADES).map(|of| {
        let path = joined(&mut map.cells.iter().filter(|cell| shade(cell) == of), 0.5);
        (of, path)
    });
    let frames = joined(&mut map.cells.iter().filter(|cell| cell.is_slow), 1.5);
    let is_written = count <= WRITTEN_MAX;
    let is_named = side >= NAMED_MIN_PX;
    let percent = |cell: &HeatCell| format!("{:.0}", 100.0 * cell.value / map.median);
    html! {
        svg.chart.heat viewBox={ "0 0 " (tenths(PAGE.width)) " " (tenths(top + size + GAP_PX)) } aria-hidden="true" {
            @for (of, path) in shades.filter(|(_, path)| !path.is_empty()) {
                path.shade fill-opacity=(tenths(0.1 + 0.8 * (of + 1) as f64 / SHADES as f64)) d=(path) {}
            }
            @if !frames.is_empty() { path.slow d=(frames) {} }
            @if is_named {
                @for (place, host) in (0..).zip(&map.hosts) {
                    @let middle = at(place) + side / 2.0;
                    text.end x=(tenths(left - GAP_PX / 2.0)) y=(tenths(top + middle + 4.0)) { (cut(host, NAME_MAX_PX)) }
                    @let (x, y) = (left + middle, top - GAP_PX / 2.0);
                    text transform={ "translate(" (tenths(x + 4.0)) " " (tenths(y)) ") rotate(-90)" } { (cut(host, NAME_MAX_PX)) }
                }
            }
            @if is_written {
                @for cell in &map.cells {
                    @let (x, y) = (left + at(cell.to) + side / 2.0, top + at(cell.from) + side / 2.0 + 4.0);
                    text.middle.(if shade(cell) >= SHADES / 2 { "on" } else { "off" }) x=(tenths(x)) y=(tenths(y)) { (percent(cell)) }
                }
            }
        }
    }
}
