//! What a bisection searches for, how a refinement adds levels, and what both may be asked of.

use linerate_model::condition::Condition;
use linerate_model::experiment::{Refinement, Search};
use linerate_model::group;
use linerate_model::unit::parse_share;
use linerate_model::workload::{Kind, Workload};
use toml::Spanned;

use super::error::ReadError;
use super::raw::{RawFile, RawKind};
use super::source::Source;
use crate::group::FactorGroup;

/// The fewest replicates: a level that half of all trials keep is taken for one that holds, or fails, with 2^−n.
const REPLICATES_MIN: u32 = 3;
/// The finest resolution: levels are shown with four digits.
const RESOLUTION_MIN: f64 = 0.001;
/// The coarsest: neighbours that differ by a factor of two.
const RESOLUTION_MAX: f64 = 1.0;
/// The most levels of a refinement, each of which has a plan of its own; a figure shows no more.
const REFINED_MAX: u32 = 100;

/// Returns the checked search of a bisection; nothing of another design, which has no keys of one.
pub(super) fn search(
    source: &Source<'_>,
    file: &RawFile,
    workload: &Workload,
    groups: &[FactorGroup],
) -> Result<Option<Search>, ReadError> {
    let design = &file.design;
    let section = source.text.find("[design").map_or(0..0, |at| at..at);
    if design.kind != RawKind::Bisection {
        let stray = |key: &str, value: &Spanned<String>, of: &str| {
            let spot = source.at(format!("design.{key}"), value.span());
            Err(spot.value("given", format!("left out: it belongs to kind {of}")))
        };
        return match (&design.condition, &design.resolution) {
            (Some(value), _) => stray("condition", value, "\"bisection\""),
            (_, Some(value)) if design.kind != RawKind::Refinement => {
                stray("resolution", value, "\"bisection\" or \"refinement\"")
            }
            _ => Ok(None),
        };
    }
    let given = |key: &str, value: &Option<toml::Spanned<String>>, example: &str| {
        let spot = source.at(format!("design.{key}"), section.clone());
        value.clone().ok_or_else(|| spot.value("absent", example))
    };
    check_group(source, file, groups)?;
    check_replicates(source, file)?;
    let condition = given(
        "condition",
        &design.condition,
        "given, as in \"loss < 0.1%\"",
    )?;
    let spot = source.at("design.condition", condition.span());
    let read = Condition::parse(condition.get_ref()).map_err(|why| spot.wrong(&why))?;
    let own = group::name_of(workload.traffic.kind());
    if read.group.is_some_and(|group| group.as_str() != own) {
        return Err(spot.value(
            format!("`{}`", read.text),
            format!("about the group that a bisection has, `{own}`"),
        ));
    }
    let is_of = |kind: Kind| kind.about().all_responses().any(|own| own == read.response);
    let is_of_another = Kind::ALL.iter().any(|kind| is_of(*kind));
    if is_of_another && !is_of(workload.traffic.kind()) {
        let allowed = "about a response of this kind of traffic";
        return Err(spot.value(format!("`{}`", read.text), allowed));
    }
    Ok(Some(Search {
        condition: read.text,
        resolution: resolution(source, file)?,
    }))
}

/// Returns how the factor of the file is refined; nothing of another design, which has no keys of that.
pub(super) fn refinement(
    source: &Source<'_>,
    file: &RawFile,
    groups: &[FactorGroup],
) -> Result<Option<Refinement>, ReadError> {
    let design = &file.design;
    let section = |name: &str| source.text.find(name).map_or(0..0, |at| at..at);
    if design.kind != RawKind::Refinement {
        return match &design.levels {
            None => Ok(None),
            Some(levels) => {
                let spot = source.at("design.levels", levels.span());
                Err(spot.value("given", "left out: it belongs to kind \"refinement\""))
            }
        };
    }
    if !file.group.is_empty() {
        let spot = source.at("group", section("[[group]]"));
        return Err(spot.value("given", "left out: a refinement has one group of traffic"));
    }
    if design.control.is_some() {
        let spot = source.at("design.control", section("[design"));
        return Err(spot.value(
            "given",
            "left out: a refinement compares levels with their neighbours",
        ));
    }
    let numbers = |group: &FactorGroup| {
        let numbers = group
            .levels
            .iter()
            .map(|level| level[0].whole().filter(|it| *it > 0));
        numbers.collect::<Option<Vec<u64>>>()
    };
    let known = match groups {
        [group] if group.is_scale() => numbers(group),
        _ => None,
    };
    let rises = |known: &Vec<u64>| known.len() > 1 && known.windows(2).all(|two| two[0] < two[1]);
    let Some(known) = known.filter(rises) else {
        let words: Vec<String> = groups
            .iter()
            .map(|group| group.words_of(&(0..group.levels.len()).collect::<Vec<_>>()))
            .collect();
        let allowed = "one factor with two numbers or more above zero, the smaller ones first, for a refinement";
        return Err(source
            .at("factors", section("[factors"))
            .value(words.join("; "), allowed));
    };
    check_replicates(source, file)?;
    let Some(levels) = &design.levels else {
        let spot = source.at("design.levels", section("[design"));
        return Err(spot.value(
            "absent",
            "given, as in 12: how many levels there are in the end",
        ));
    };
    let spot = source.at("design.levels", levels.span());
    spot.within(*levels.get_ref(), known.len() as u32 + 1, REFINED_MAX)?;
    Ok(Some(Refinement {
        levels: *levels.get_ref(),
        resolution: resolution(source, file)?,
    }))
}

fn check_replicates(source: &Source<'_>, file: &RawFile) -> Result<(), ReadError> {
    let replicates = &file.design.replicates;
    if *replicates.get_ref() < REPLICATES_MIN {
        let spot = source.at("design.replicates", replicates.span());
        let allowed = format!("{REPLICATES_MIN} or more: fewer tell too little of a level");
        return Err(spot.value(replicates.get_ref(), allowed));
    }
    Ok(())
}

/// Returns how near two levels come, which must be given.
fn resolution(source: &Source<'_>, file: &RawFile) -> Result<f64, ReadError> {
    let Some(resolution) = &file.design.resolution else {
        let section = source.text.find("[design").map_or(0..0, |at| at..at);
        let spot = source.at("design.resolution", section);
        return Err(spot.value("absent", "given, as in \"1%\""));
    };
    let share = parse_share(resolution.get_ref());
    let share = share.filter(|share| (RESOLUTION_MIN..=RESOLUTION_MAX).contains(share));
    let spot = source.at("design.resolution", resolution.span());
    share.ok_or_else(|| spot.value(resolution.get_ref(), "a share from 0.1% to 100%"))
}

/// Checks that one factor varies between two levels of a scale, the smaller one first, of one group of traffic.
fn check_group(
    source: &Source<'_>,
    file: &RawFile,
    groups: &[FactorGroup],
) -> Result<(), ReadError> {
    let at = |section: &str| source.text.find(section).map_or(0..0, |at| at..at);
    if !file.group.is_empty() {
        let spot = source.at("group", at("[[group]]"));
        return Err(spot.value("given", "left out: a bisection has one group of traffic"));
    }
    let ends = match groups {
        [group] if group.is_scale() => match group.levels.as_slice() {
            [low, high] => low[0].whole().zip(high[0].whole()),
            _ => None,
        },
        _ => None,
    };
    if ends.is_some_and(|(low, high)| 0 < low && low < high) {
        return Ok(());
    }
    let words: Vec<String> = groups
        .iter()
        .map(|group| group.words_of(&(0..group.levels.len()).collect::<Vec<_>>()))
        .collect();
    let allowed = "one factor with two numbers above zero, the smaller one first, for a bisection";
    Err(source
        .at("factors", at("[factors"))
        .value(words.join("; "), allowed))
}
