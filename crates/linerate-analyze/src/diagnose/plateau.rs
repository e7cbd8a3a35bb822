//! Buffers that do better than the host's own.
//!
//! Only against the host as it is, with no buffer set: that a small buffer is slower is what the
//! chapter shows, not a fault of the host.

use linerate_model::experiment::Factor;
use linerate_model::finding::{Evidence, EvidenceList};

use super::found::{About, Found, What};
use crate::dataset::{CellOutcomes, Dataset};
use crate::verdicts::ScalePlateau;
use crate::words;

pub(super) fn findings<'d>(dataset: &'d Dataset<'_>) -> Vec<Found<'d>> {
    let plateaus = dataset.verdicts().buffers().enumerate();
    plateaus
        .filter_map(|(at, plateau)| finding(dataset, at + 1, plateau))
        .collect()
}

fn finding<'d>(
    dataset: &'d Dataset<'_>,
    number: usize,
    found: &'d ScalePlateau,
) -> Option<Found<'d>> {
    let level = found.gains()?;
    let ratio = found.ratio(level);
    let (control, better) = (
        cell(dataset, found, None)?,
        cell(dataset, found, Some(level))?,
    );
    let size = words::bare_level(Factor::SocketBuffer, &found.levels[level]);
    let with = found.with(" with ");
    let evidence = |cell: &CellOutcomes<'_>, what: String| Evidence {
        what,
        estimate: cell.main().unwrap_or(ratio),
        trials: cell.trials(),
    };
    Some(Found {
        about: About::Experiment(control.experiment),
        what: What::Plateau(number, found, level),
        claim: format!(
            "Buffers of {size} reach {} times what the kernel's autotuning reaches{with}.",
            words::estimate(&ratio)
        ),
        explanation:
            "The kernel sizes buffers by what has arrived so far; where that is too slow or \
                      its maximum too small, a fixed size does better on this path, and worse on \
                      paths that need more."
                .to_owned(),
        effect: ratio,
        evidence: EvidenceList::new(
            evidence(better, format!("with buffers of {size}")),
            vec![evidence(control, "with autotuned buffers".to_owned())],
        ),
        action: None,
    })
}

/// Returns the cell of a level of a plateau, or of its control.
pub(crate) fn cell<'d, 'a>(
    dataset: &'d Dataset<'a>,
    found: &ScalePlateau,
    level: Option<usize>,
) -> Option<&'d CellOutcomes<'a>> {
    let level = level.map_or(&found.control, |at| &found.levels[at]);
    let mut wanted = found.others.clone();
    wanted.insert(found.factor, level.clone());
    dataset.cell(&found.experiment, &wanted)
}
