//! Words and numbers to levels.

use std::collections::BTreeMap;

use linerate_model::Bytes;
use linerate_model::experiment::{Cell, Control, DesignKind, Factor, Level};
use linerate_model::parameter::{Parameter, Shape};
use linerate_model::workload::LINK_LOSS_PPM_MAX;
use toml::{Spanned, Value};

use super::error::ReadError;
use super::netpipe;
use super::raw::{Entries, RawControl, RawDesign, RawKind};
use super::source::{Source, Spot};
use crate::group::FactorGroup;

/// The most trials that a block has of a cell of the control.
const CONTROL_TIMES_MAX: u32 = 100;
/// The most levels of a factor.
const LEVELS_MAX: usize = 1_000;

/// Returns the groups of the `[factors]` section.
pub(super) fn groups_of(
    source: &Source<'_>,
    entries: &Entries,
) -> Result<Vec<FactorGroup>, ReadError> {
    let mut groups: Vec<FactorGroup> = Vec::new();
    for (name, value) in &entries.0 {
        let section = source.at("factors", name.span());
        let spot = source.at(format!("factors.{}", name.get_ref()), value.span());
        let list = list_of(&spot, value.get_ref())?;
        let group = if list.iter().any(Value::is_table) {
            linked_group(&spot, list)?
        } else {
            lone_group(&spot, factor_of(&section, name.get_ref())?, list)?
        };
        check_group(&spot, &group, &groups)?;
        groups.push(group);
    }
    Ok(groups)
}

/// Returns the group of a list of levels of one factor, or of schedules of them.
fn lone_group(spot: &Spot<'_>, factor: Factor, list: &[Value]) -> Result<FactorGroup, ReadError> {
    let mut levels: Vec<Vec<Level>> = Vec::new();
    for level in list {
        match schedule_of(spot, factor, level)? {
            Some(sizes) => {
                for size in sizes.into_iter().map(|size| vec![Level::Size(size)]) {
                    // Schedules may meet at a size.
                    if !levels.contains(&size) {
                        levels.push(size);
                    }
                }
            }
            None => levels.push(vec![level_of(spot, factor.parameter(), level)?]),
        }
    }
    if levels.len() > LEVELS_MAX {
        let count = format!("{} levels", levels.len());
        return Err(spot.value(count, format!("at most {LEVELS_MAX}")));
    }
    Ok(FactorGroup {
        factors: vec![factor],
        levels,
    })
}

/// Returns the sizes of `netpipe:FIRST..LAST`, if `value` is such a schedule.
fn schedule_of(
    spot: &Spot<'_>,
    factor: Factor,
    value: &Value,
) -> Result<Option<Vec<Bytes>>, ReadError> {
    let text = value.as_str();
    let Some(range) = text.and_then(|text| text.strip_prefix("netpipe:")) else {
        return Ok(None);
    };
    let bad = || {
        let allowed = "a size factor with \"netpipe:1..8M\": first and last size";
        spot.value(value, allowed)
    };
    let shape = factor.parameter().shape;
    let is_size = matches!(shape, Shape::Size | Shape::SizeOrAuto);
    let ends = range.split_once("..").filter(|_| is_size).ok_or_else(bad)?;
    let size = |text: &str| text.parse::<Bytes>().map_err(|_| bad());
    let (first, last) = (size(ends.0)?, size(ends.1)?);
    if first.0 == 0 || first > last {
        return Err(bad());
    }
    Ok(Some(netpipe::sizes(first, last)))
}

fn list_of<'v>(spot: &Spot<'_>, value: &'v Value) -> Result<&'v [Value], ReadError> {
    match value {
        Value::Array(list) if (1..=LEVELS_MAX).contains(&list.len()) => Ok(list),
        Value::Array(list) => {
            let allowed = format!("a list of 1 to {LEVELS_MAX} levels");
            Err(spot.value(format!("a list of {}", list.len()), allowed))
        }
        Value::Table(_) => {
            let allowed = "a list of levels: the name of a group's factor is in quotes, \"probe.connections\" = [1, 8]";
            Err(spot.value("a table", allowed))
        }
        other => Err(spot.value(other, "a list of levels: [...]")),
    }
}

/// Returns the group of a list of tables, each of which sets several factors.
fn linked_group(spot: &Spot<'_>, list: &[Value]) -> Result<FactorGroup, ReadError> {
    let bad = |value: &Value| {
        let allowed = "tables that all set the same factors: [{ connections = 1, clients = 1 }, …]";
        spot.value(value, allowed)
    };
    let tables = list
        .iter()
        .map(|level| level.as_table().ok_or_else(|| bad(level)));
    let tables: Vec<&toml::Table> = tables.collect::<Result<_, _>>()?;
    let names = tables[0].keys();
    let factors = names.map(|name| factor_of(spot, name));
    let mut factors: Vec<Factor> = factors.collect::<Result<_, _>>()?;
    // The parser's tables are sorted by name; the order of the factors' list reads better.
    factors.sort();
    let levels = tables
        .iter()
        .zip(list)
        .map(|(table, value)| {
            if table.len() != factors.len() {
                return Err(bad(value));
            }
            let level = |factor: &Factor| {
                let own = table.get(&*factor.name()).ok_or_else(|| bad(value))?;
                level_of(&spot.below(factor), factor.parameter(), own)
            };
            factors.iter().map(level).collect()
        })
        .collect::<Result<_, _>>()?;
    Ok(FactorGroup { factors, levels })
}

/// Checks that no level and no factor comes twice.
fn check_group(
    spot: &Spot<'_>,
    group: &FactorGroup,
    before: &[FactorGroup],
) -> Result<(), ReadError> {
    for at in 1..group.levels.len() {
        if group.levels[..at].contains(&group.levels[at]) {
            let value = format!("a list with `{}` twice", group.words(at));
            return Err(spot.value(value, "a list of different levels"));
        }
    }
    for (at, &factor) in group.factors.iter().enumerate() {
        let earlier = before.iter().flat_map(|group| &group.factors);
        let mut others = earlier.chain(&group.factors[..at]);
        if let Some(other) = others.find(|&&other| overlap(other, factor)) {
            let value = format!("set by `{other}` as well");
            return Err(spot.value(value, "set by one factor only"));
        }
    }
    Ok(())
}

/// Returns whether two factors write the same part of a workload.
fn overlap(a: Factor, b: Factor) -> bool {
    let sizes = [Factor::RequestBytes, Factor::ResponseBytes];
    if let (Some((of_a, a)), Some((of_b, b))) = (a.beside(), b.beside()) {
        return of_a == of_b && overlap(a, b);
    }
    a == b
        || (a == Factor::PayloadBytes && sizes.contains(&b))
        || (b == Factor::PayloadBytes && sizes.contains(&a))
}

/// Returns the factor called `name`, which stands in the section of `spot`.
fn factor_of(spot: &Spot<'_>, name: &str) -> Result<Factor, ReadError> {
    Factor::named(name).ok_or_else(|| {
        let names: Vec<_> = Factor::all().map(Factor::name).collect();
        let (section, known) = (spot.key(), names.join("`, `"));
        let message = format!("unknown factor `{name}` of {section}, expected one of `{known}`");
        spot.wrong(&message)
    })
}

/// Returns the level of `parameter` that `value` stands for.
pub(super) fn level_of(
    spot: &Spot<'_>,
    parameter: &Parameter,
    value: &Value,
) -> Result<Level, ReadError> {
    let bad = |allowed: &str| spot.value(value, allowed);
    let whole = |number: i64| u64::try_from(number).map_err(|_| bad("a number from 0"));
    let is_digit = |last: char| last.is_ascii_digit();
    match (parameter.shape, value) {
        (Shape::Switch | Shape::SwitchOrAuto, Value::Boolean(on)) => Ok(Level::Switch(*on)),
        (Shape::Switch | Shape::Count, Value::String(_)) => Err(bad(&parameter.expected())),
        (Shape::Count | Shape::CountOrAuto, Value::Integer(n)) => whole(*n).map(Level::Count),
        (Shape::Rate, Value::Integer(n)) => whole(*n).map(Level::Rate),
        (Shape::Rate, Value::Float(rate)) if *rate >= 0.0 => Ok(Level::Rate(*rate as u64)),
        (Shape::Size | Shape::SizeOrAuto, Value::Integer(n)) => {
            whole(*n).map(|n| Level::Size(Bytes(n)))
        }
        (Shape::Share, Value::Float(share)) => {
            share_ppm(*share).ok_or_else(|| bad(&parameter.expected()))
        }
        // 0 is written without a point; no other whole number is allowed.
        (Shape::Share, Value::Integer(0)) => Ok(Level::Ppm(0)),
        // A bare number would be read as seconds by one person and as milliseconds by the next.
        (Shape::Time, Value::String(text)) if text.trim_end().ends_with(is_digit) => {
            Err(bad(&format!("{}: it has no unit", parameter.expected())))
        }
        // What it is of is known with the hosts.
        (Shape::Rate, Value::String(text)) if text.ends_with('%') => {
            let percent = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
            let ppm = percent.map(|percent| (percent * 1e4).round());
            let ppm = ppm.filter(|ppm| (1.0..=1e6).contains(ppm));
            ppm.map(|ppm| Level::Ppm(ppm as u32))
                .ok_or_else(|| bad("above 0 %, and 100 % of the link's rate at the most"))
        }
        (_, Value::String(text)) => parameter.parse(text).map_err(|allowed| bad(&allowed)),
        _ => Err(bad(&parameter.expected())),
    }
}

/// Returns a share of lost frames in parts per million, if it is one.
fn share_ppm(share: f64) -> Option<Level> {
    let ppm = share * 1e6;
    // A decimal number is a binary one only nearly.
    let is_whole = (ppm - ppm.round()).abs() < 1e-6;
    let is_allowed = (0.0..=f64::from(LINK_LOSS_PPM_MAX)).contains(&ppm);
    (is_whole && is_allowed).then_some(Level::Ppm(ppm.round() as u32))
}

/// Returns the baseline: given for every factor in a one-at-a-time design, and only there.
pub(super) fn baseline_of(
    source: &Source<'_>,
    design: DesignKind,
    entries: &Entries,
    groups: &[FactorGroup],
) -> Result<Cell, ReadError> {
    const SECTION: &str = "design.baseline";
    let mut baseline = Cell::new();
    for (name, value) in &entries.0 {
        let key = format!("{SECTION}.{}", name.get_ref());
        if design != DesignKind::OneAtATime {
            let allowed = format!("left out: a {} design has no baseline", design.word());
            return Err(source.at(key, name.span()).value(value.get_ref(), allowed));
        }
        let factor = factor_of(&source.at(SECTION, name.span()), name.get_ref())?;
        let spot = source.at(key, value.span());
        let level = level_of(&spot, factor.parameter(), value.get_ref())?;
        baseline.insert(factor, level);
    }
    if design != DesignKind::OneAtATime {
        return Ok(baseline);
    }
    let start = entries.0.first().map_or(0..0, |(name, _)| name.span());
    let section = source.text.find("[design").map_or(start, |at| at..at);
    let section = source.at(SECTION, section);
    for group in groups {
        if group.position(&baseline).is_none() {
            let given = group.factors.iter().filter_map(|one| baseline.get(one));
            let given: Vec<String> = given.map(ToString::to_string).collect();
            let value = if given.is_empty() {
                "absent".to_owned()
            } else {
                given.join(" / ")
            };
            let all: Vec<usize> = (0..group.levels.len()).collect();
            let allowed = format!("one of the levels ({})", group.words_of(&all));
            return Err(section.below(group.factors[0]).value(value, allowed));
        }
    }
    let is_varied = |factor: &Factor| groups.iter().any(|group| group.factors.contains(factor));
    match baseline.keys().find(|factor| !is_varied(factor)) {
        Some(stray) => {
            let allowed = "left out: it is not a factor of this experiment";
            Err(section.below(stray).value("given", allowed))
        }
        None => Ok(baseline),
    }
}

/// Returns the levels that a budget must leave in.
pub(super) fn budget_core(
    source: &Source<'_>,
    entries: &Entries,
    groups: &[FactorGroup],
) -> Result<BTreeMap<Factor, Vec<Level>>, ReadError> {
    const SECTION: &str = "budget.core";
    let mut core = BTreeMap::new();
    for (name, value) in &entries.0 {
        let factor = factor_of(&source.at(SECTION, name.span()), name.get_ref())?;
        let spot = source.at(format!("{SECTION}.{}", name.get_ref()), value.span());
        let levels = list_of(&spot, value.get_ref())?.iter();
        let levels = levels.map(|level| level_among(&spot, factor, level, groups));
        core.insert(factor, levels.collect::<Result<_, _>>()?);
    }
    Ok(core)
}

/// Returns the control, if there is one.
pub(super) fn control_of(
    source: &Source<'_>,
    control: Option<&RawControl>,
    groups: &[FactorGroup],
) -> Result<Option<Control>, ReadError> {
    const SECTION: &str = "design.control.levels";
    let Some(RawControl { levels, times }) = control else {
        return Ok(None);
    };
    let mut cell = Cell::new();
    for (name, value) in &levels.get_ref().0 {
        let factor = factor_of(&source.at(SECTION, name.span()), name.get_ref())?;
        let spot = source.at(format!("{SECTION}.{}", name.get_ref()), value.span());
        let level = level_among(&spot, factor, value.get_ref(), groups)?;
        cell.insert(factor, level);
    }
    if cell.is_empty() {
        let spot = source.at(SECTION, levels.span());
        return Err(spot.value("empty", "the level of a factor"));
    }
    let spot = source.at("design.control.times", times.span());
    let times = *times.get_ref();
    spot.within(times, 2, CONTROL_TIMES_MAX)?;
    let levels = cell;
    Ok(Some(Control { levels, times }))
}

/// Returns the factors of whole plots, and those that are linked to them.
pub(super) fn whole_plots(
    source: &Source<'_>,
    design: &RawDesign,
    groups: &[FactorGroup],
) -> Result<Vec<Factor>, ReadError> {
    const KEY: &str = "design.whole_plots";
    let Some(names) = &design.whole_plots else {
        return Ok(Vec::new());
    };
    let spot = source.at(KEY, names.span());
    if matches!(design.kind, RawKind::Bisection | RawKind::Refinement) {
        let allowed = "left out: levels that follow from each other are measured one at a time";
        return Err(spot.value("given", allowed));
    }
    if design.control.is_some() {
        let allowed = "left out with `control`: several trials of one whole plot are no better known than one";
        return Err(spot.value("given", allowed));
    }
    let mut factors = Vec::new();
    for name in names.get_ref() {
        let (_, group) = own_factor(&source.at(KEY, name.span()), name.get_ref(), groups)?;
        let new = group
            .factors
            .iter()
            .filter(|factor| !factors.contains(*factor));
        factors.extend(new.copied().collect::<Vec<_>>());
    }
    Ok(factors)
}

/// Returns the scales of which the smallest level that suffices is asked for.
pub(super) fn suffices(
    source: &Source<'_>,
    design: &RawDesign,
    groups: &[FactorGroup],
) -> Result<Vec<Factor>, ReadError> {
    const KEY: &str = "design.suffices";
    let names = design.suffices.as_ref().map(Spanned::get_ref);
    let scale = |name: &Spanned<String>| {
        let spot = source.at(KEY, name.span());
        let (factor, group) = own_factor(&spot, name.get_ref(), groups)?;
        let at = group.factors.iter().position(|other| *other == factor);
        let mut levels = group.levels.iter().filter_map(|level| level.get(at?));
        // Beside numbers there may be what is held against them: the host as it is.
        if levels.any(|level| level.as_number().is_none() && !level.is_auto()) {
            let allowed = "a factor whose levels are numbers or sizes";
            return Err(spot.value(format!("`{factor}`"), allowed));
        }
        Ok(factor)
    };
    names.into_iter().flatten().map(scale).collect()
}

/// Returns the factor called `name`, which must be one of the experiment's, and its group.
fn own_factor<'g>(
    spot: &Spot<'_>,
    name: &str,
    groups: &'g [FactorGroup],
) -> Result<(Factor, &'g FactorGroup), ReadError> {
    let factor = factor_of(spot, name)?;
    let mut groups = groups.iter();
    let own = groups.find(|group| group.factors.contains(&factor));
    let own = own.map(|group| (factor, group));
    own.ok_or_else(|| spot.value(format!("`{factor}`"), "a factor of this experiment"))
}

/// Returns a level that must be one of its factor's.
fn level_among(
    spot: &Spot<'_>,
    factor: Factor,
    value: &Value,
    groups: &[FactorGroup],
) -> Result<Level, ReadError> {
    let found = groups.iter().find_map(|group| {
        let at = group.factors.iter().position(|&other| other == factor)?;
        Some(group.levels.iter().map(|level| level[at].clone()).collect())
    });
    let known: Vec<Level> = found.unwrap_or_default();
    let level = level_of(spot, factor.parameter(), value)?;
    if !known.contains(&level) {
        let words: Vec<String> = known.iter().map(ToString::to_string).collect();
        let allowed = format!("one of the factor's levels ({})", words.join(", "));
        return Err(spot.value(level, allowed));
    }
    Ok(level)
}
