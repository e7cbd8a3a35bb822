//! How the levels of a file are combined, and what a fraction of the combinations may have.

use linerate_model::experiment::DesignKind;
use linerate_model::fraction::{FACTORS_MAX, Fraction, RUNS_MAX};

use super::error::ReadError;
use super::raw::{RawFile, RawKind};
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
    if design.control.is_some() {
        let spot = source.at("design.control", section("[design"));
        let allowed = "left out: all trials of a fraction are compared with each other";
        return Err(spot.value("given", allowed));
    }
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
