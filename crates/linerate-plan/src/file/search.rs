//! What a bisection searches for, how a refinement adds levels, and what both may be asked of.

use linerate_model::experiment::{Factor, Level, Refinement, Search};
use linerate_model::workload::Workload;
use toml::Spanned;

use super::error::ReadError;
use super::raw::{RawFile, RawKind};
use super::source::Source;
use crate::group::FactorGroup;
use crate::search::{self, REPLICATES, REPLICATES_MIN, RESOLUTION, SearchError};

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
    for (key, is_given) in [
        ("group", !file.group.is_empty()),
        ("design.control", design.control.is_some()),
    ] {
        if is_given {
            let at = source.text.find(key).map_or(section.clone(), |at| at..at);
            let allowed = "left out: a bisection has one group of traffic, and the control that its condition names";
            return Err(source.at(key, at).value("given", allowed));
        }
    }
    check_replicates(source, file)?;
    let condition = given(
        "condition",
        &design.condition,
        "given, as in \"loss < 0.1%\"",
    )?;
    let resolution = given("resolution", &design.resolution, "given, as in \"1%\"")?;
    let factors: Vec<(Factor, Vec<Level>)> = groups
        .iter()
        .flat_map(|group| {
            let levels = |at: usize| group.levels.iter().map(|level| level[at].clone()).collect();
            group
                .factors
                .iter()
                .enumerate()
                .map(move |(at, factor)| (*factor, levels(at)))
        })
        .collect();
    let asked = (condition.get_ref().as_str(), resolution.get_ref().as_str());
    search::search(asked, workload, &factors).map(Some).map_err(|error| match error {
        SearchError::Ends => {
            let words: Vec<String> = groups
                .iter()
                .map(|group| group.words_of(&(0..group.levels.len()).collect::<Vec<_>>()))
                .collect();
            let at = source.text.find("[factors").map_or(0..0, |at| at..at);
            let allowed = "one factor with two numbers above zero, the smaller one first, for a bisection";
            source.at("factors", at).value(words.join("; "), allowed)
        }
        SearchError::Condition(why) => {
            source.at("design.condition", condition.span()).wrong(&why)
        }
        SearchError::Resolution => {
            let spot = source.at("design.resolution", resolution.span());
            spot.value(resolution.get_ref(), RESOLUTION)
        }
    })
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
        return Err(spot.value(replicates.get_ref(), REPLICATES));
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
    let spot = source.at("design.resolution", resolution.span());
    search::resolution(resolution.get_ref())
        .ok_or_else(|| spot.value(resolution.get_ref(), RESOLUTION))
}
