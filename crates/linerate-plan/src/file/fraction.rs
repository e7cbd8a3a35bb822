//! How the levels of a file are combined, and what a part of the combinations may have.

use linerate_model::experiment::DesignKind;
use linerate_model::fraction::{FACTORS_MAX, Fraction, RUNS_MAX};

use super::error::ReadError;
use super::raw::{RawDesign, RawFile, RawKind};
use super::source::Source;
use crate::group::FactorGroup;

/// Returns how the levels of the file are combined.
pub(super) fn design(
    source: &Source<'_>,
    file: &RawFile,
    groups: &[FactorGroup],
) -> Result<DesignKind, ReadError> {
    let design = &file.design;
    if let Some(runs) = &design.runs
        && design.kind != RawKind::Fractional
    {
        let spot = source.at("design.runs", runs.span());
        return Err(spot.value("given", "left out: it belongs to kind \"fractional\""));
    }
    match design.kind {
        RawKind::OneAtATime => return Ok(DesignKind::OneAtATime),
        RawKind::Full | RawKind::Bisection | RawKind::Refinement => return Ok(DesignKind::Full),
        RawKind::LatinHypercube => return hypercube(source, file, groups),
        RawKind::Fractional => {}
    }
    let section = |name: &str| source.text.find(name).map_or(0..0, |at| at..at);
    let Some(runs) = &design.runs else {
        let spot = source.at("design.runs", section("[design"));
        return Err(spot.value("absent", "given, as in 8: the combinations of a block"));
    };
    if let Some(other) = groups.iter().find(|group| group.levels.len() != 2) {
        let all: Vec<usize> = (0..other.levels.len()).collect();
        let spot = source.at("factors", section("[factors"));
        let allowed = "two levels of each factor of a fractional design";
        return Err(spot.value(other.words_of(&all), allowed));
    }
    check_no_control(source, design)?;
    if groups.len() > FACTORS_MAX {
        let spot = source.at("factors", section("[factors"));
        let allowed = format!("at most {FACTORS_MAX} of a fractional design");
        return Err(spot.value(format!("{} factors", groups.len()), allowed));
    }
    let runs_here = *runs.get_ref();
    if Fraction::of(groups.len(), runs_here).is_none() {
        let fits = |runs: &u32| Fraction::of(groups.len(), *runs).is_some();
        let powers = (2..=RUNS_MAX.ilog2()).map(|power| 1_u32 << power);
        let known: Vec<String> = powers.filter(fits).map(|runs| runs.to_string()).collect();
        let count = groups.len();
        let allowed = if known.is_empty() {
            "of three factors or more: of fewer measure all combinations (kind \"full\")".to_owned()
        } else {
            format!(
                "{} for {count} factors: fewer alias their main effects, more are all combinations",
                known.join(" or ")
            )
        };
        let spot = source.at("design.runs", runs.span());
        return Err(spot.value(runs_here, allowed));
    }
    Ok(DesignKind::Fractional { runs: runs_here })
}

/// Checks that a Latin hypercube has levels enough to tell its factors apart in each block.
fn hypercube(
    source: &Source<'_>,
    file: &RawFile,
    groups: &[FactorGroup],
) -> Result<DesignKind, ReadError> {
    let design = &file.design;
    let section = |name: &str| source.text.find(name).map_or(0..0, |at| at..at);
    check_no_control(source, design)?;
    if design.whole_plots.is_some() {
        let spot = source.at("design.whole_plots", section("[design"));
        return Err(spot.value(
            "given",
            "left out: no two cells of a Latin hypercube share a level",
        ));
    }
    let count = groups.first().map_or(0, |group| group.levels.len());
    // A line through a block has a slope for each factor and a height, and something must be left over.
    let least = groups.len() + 2;
    let is_known = |group: &FactorGroup| {
        let numbers: Vec<u64> = group
            .levels
            .iter()
            .filter_map(|level| level[0].whole())
            .collect();
        let rises = numbers.windows(2).all(|two| two[0] < two[1]);
        let is_scale = numbers.len() == group.levels.len() && numbers.first() > Some(&0);
        rises && is_scale && numbers.len() == count && count >= least
    };
    if groups.len() > FACTORS_MAX {
        let spot = source.at("factors", section("[factors"));
        let allowed = format!("at most {FACTORS_MAX} of a Latin hypercube");
        return Err(spot.value(format!("{} factors", groups.len()), allowed));
    }
    match groups.iter().find(|group| !is_known(group)) {
        None => Ok(DesignKind::LatinHypercube),
        Some(other) => {
            let all: Vec<usize> = (0..other.levels.len()).collect();
            let allowed = format!(
                "as many numbers above zero as each other factor has, {least} or more, the smaller ones first, of a Latin hypercube"
            );
            let spot = source.at("factors", section("[factors"));
            Err(spot.value(other.words_of(&all), allowed))
        }
    }
}

fn check_no_control(source: &Source<'_>, design: &RawDesign) -> Result<(), ReadError> {
    if design.control.is_none() {
        return Ok(());
    }
    let at = source.text.find("[design").map_or(0..0, |at| at..at);
    let allowed = "left out: all trials of a block are compared with each other";
    Err(source.at("design.control", at).value("given", allowed))
}
