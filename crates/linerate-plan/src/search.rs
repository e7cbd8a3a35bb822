//! What may be searched for, whoever asks: a file, or a command line.

use linerate_model::condition::Condition;
use linerate_model::experiment::{Factor, Level, Search};
use linerate_model::group;
use linerate_model::unit::parse_share;
use linerate_model::workload::{Kind, Workload};

/// The fewest replicates: a level that half of all trials keep is taken for one that holds, or fails, with 2^−n.
pub const REPLICATES_MIN: u32 = 3;
/// The finest resolution: levels are shown with four digits.
const RESOLUTION_MIN: f64 = 0.001;
/// The coarsest: neighbours that differ by a factor of two.
const RESOLUTION_MAX: f64 = 1.0;

/// Which part of a search cannot be as it is, and why or what it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// What varies.
    #[error("a search varies one factor between two numbers above zero, the smaller one first")]
    Ends,
    /// The condition.
    #[error("{0}")]
    Condition(String),
    /// How near two levels come.
    #[error("the resolution must be {RESOLUTION}")]
    Resolution,
}

/// What a resolution may be.
pub(crate) const RESOLUTION: &str = "a share from 0.1% to 100%";
/// What replicates may be.
pub(crate) const REPLICATES: &str = "3 or more: fewer say too little of a level";

/// Returns the search for where `condition` stops to hold for `workload` between the two levels of `factors`.
pub fn search(
    (condition, resolution): (&str, &str),
    workload: &Workload,
    factors: &[(Factor, Vec<Level>)],
) -> Result<Search, SearchError> {
    let [(factor, levels)] = factors else {
        return Err(SearchError::Ends);
    };
    let whole: Vec<Option<u64>> = levels.iter().map(Level::whole).collect();
    match whole[..] {
        [Some(low), Some(high)] if 0 < low && low < high => {}
        _ => return Err(SearchError::Ends),
    }
    let condition = Condition::parse(condition).map_err(SearchError::Condition)?;
    let own = group::name_of(workload.traffic.kind());
    if condition.group.is_some_and(|group| group.as_str() != own) {
        let why = format!(
            "`{}` is not about `{own}`, the one group of a search",
            condition.text
        );
        return Err(SearchError::Condition(why));
    }
    let is_of = |kind: Kind| {
        kind.about()
            .all_responses()
            .any(|own| own == condition.response)
    };
    let is_of_another = Kind::ALL.iter().any(|kind| is_of(*kind));
    if is_of_another && !is_of(workload.traffic.kind()) {
        let why = format!(
            "`{}` is not about a response of this kind of traffic",
            condition.text
        );
        return Err(SearchError::Condition(why));
    }
    let level = |text: &String| {
        let read = factor.parameter().parse(text);
        read.map_err(|allowed| {
            let why = format!(
                "`{}`: {factor} is {text}, but must be {allowed}",
                condition.text
            );
            SearchError::Condition(why)
        })
    };
    Ok(Search {
        control: condition.of.as_ref().map(level).transpose()?,
        resolution: self::resolution(resolution).ok_or(SearchError::Resolution)?,
        condition: condition.text,
    })
}

/// Returns how near two levels come, if it may be so.
pub(crate) fn resolution(text: &str) -> Option<f64> {
    parse_share(text).filter(|share| (RESOLUTION_MIN..=RESOLUTION_MAX).contains(share))
}
