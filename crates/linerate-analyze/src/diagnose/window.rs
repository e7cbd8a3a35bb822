//! The window that the link and the round trip ask for.
//!
//! window = rate × round trip / 8. The round trip is the median of the largest payload of the
//! latency chapter, as in the published work (18 750 B for 1 Gbit/s at 150 µs); the interval of
//! the window is the interval of the round trip, scaled. It is a lower bound for a loaded link,
//! whose queues make the round trip longer.

use linerate_model::experiment::Factor;
use linerate_model::finding::{Evidence, EvidenceList, Finding, FindingKind};
use linerate_model::unit::Unit;

use super::plateau::plateaus;
use crate::dataset::Dataset;
use crate::study::{self, WINDOW, windows};
use crate::words;

/// Identifier of the finding.
pub(crate) const ID: &str = "window/needed";

pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Finding> {
    finding(dataset).into_iter().collect()
}

fn finding(dataset: &Dataset<'_>) -> Option<Finding> {
    if !dataset.recording.document.study {
        return None;
    }
    let windows = windows(dataset);
    let first = windows.first()?;
    let rate = Unit::BitsPerSecond.display(dataset.path.rate_bps(1)?);
    let evidence = |window: &study::Window| Evidence {
        what: window.basis.clone(),
        estimate: window.rtt,
        trials: window.trials.clone(),
    };
    Some(Finding {
        id: ID.to_owned(),
        chapter: Some(WINDOW),
        kind: FindingKind::Derived,
        claim: format!(
            "{} must be in flight to fill {rate} over the {}, {}.",
            words::estimate(&first.bytes),
            first.basis,
            words::number(Unit::Nanoseconds, first.rtt.value),
        ),
        explanation: explanation(dataset),
        effect: first.bytes,
        evidence: EvidenceList::new(
            evidence(first),
            windows.iter().skip(1).map(evidence).collect(),
        ),
    })
}

fn explanation(dataset: &Dataset<'_>) -> String {
    let mut text =
        "Window = rate × round trip. Buffers below it hold throughput down in proportion; \
                    a loaded link needs more, since queues make the round trip longer."
            .to_owned();
    let measured = dataset
        .experiments_of(study::SOCKET_BUFFER)
        .flat_map(|experiment| plateaus(dataset, experiment, Factor::SocketBuffer))
        .find_map(|plateau| Some((plateau.begin().number(Factor::SocketBuffer)?, plateau.words)));
    if let Some((bytes, words)) = measured {
        let with = if words.is_empty() {
            String::new()
        } else {
            format!(" with {words}")
        };
        text += &format!(
            " The socket buffer chapter found the plateau at {}{with}.",
            Unit::Bytes.display(bytes)
        );
    }
    text
}
