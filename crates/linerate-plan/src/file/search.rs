//! What a bisection searches for, and what it may be asked of.

use linerate_model::condition::Condition;
use linerate_model::experiment::Search;
use linerate_model::unit::parse_share;
use linerate_model::workload::{Kind, Workload};

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

/// Returns the checked search of a bisection; nothing of another design, which has no keys of one.
pub(super) fn search(
    source: &Source<'_>,
    file: &RawFile,
    workload: &Workload,
    groups: &[FactorGroup],
) -> Result<Option<Search>, ReadError> {
    let design = &file.design;
    let section = source.text.find("[design").map_or(0..0, |at| at..at);
    let keys = [
        ("condition", &design.condition),
        ("resolution", &design.resolution),
    ];
    if design.kind != RawKind::Bisection {
        return match keys
            .into_iter()
            .find_map(|(key, value)| Some((key, value.as_ref()?)))
        {
            None => Ok(None),
            Some((key, value)) => {
                let spot = source.at(format!("design.{key}"), value.span());
                Err(spot.value("given", "left out: it belongs to kind \"bisection\""))
            }
        };
    }
    let given = |key: &str, value: &Option<toml::Spanned<String>>, example: &str| {
        let spot = source.at(format!("design.{key}"), section.clone());
        value.clone().ok_or_else(|| spot.value("absent", example))
    };
    check_group(source, file, groups)?;
    let spot = source.at("design.replicates", design.replicates.span());
    if *design.replicates.get_ref() < REPLICATES_MIN {
        let allowed = format!("{REPLICATES_MIN} or more: fewer tell too little of a level");
        return Err(spot.value(design.replicates.get_ref(), allowed));
    }
    let condition = given(
        "condition",
        &design.condition,
        "given, as in \"loss < 0.1%\"",
    )?;
    let spot = source.at("design.condition", condition.span());
    let read = Condition::parse(condition.get_ref()).map_err(|why| spot.wrong(&why))?;
    let is_of = |kind: Kind| kind.about().all_responses().any(|own| own == read.response);
    let is_of_another = Kind::ALL.iter().any(|kind| is_of(*kind));
    if is_of_another && !is_of(workload.traffic.kind()) {
        let allowed = "about a response of this kind of traffic";
        return Err(spot.value(format!("`{}`", read.text), allowed));
    }
    let resolution = given("resolution", &design.resolution, "given, as in \"1%\"")?;
    let share = parse_share(resolution.get_ref());
    let share = share.filter(|share| (RESOLUTION_MIN..=RESOLUTION_MAX).contains(share));
    let spot = source.at("design.resolution", resolution.span());
    let bad = || spot.value(resolution.get_ref(), "a share from 0.1% to 100%");
    Ok(Some(Search {
        condition: read.text,
        resolution: share.ok_or_else(bad)?,
    }))
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
