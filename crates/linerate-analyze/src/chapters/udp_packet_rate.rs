//! Chapter 11: datagrams sent and received per second, and where the others were lost.

use linerate_model::analysis::{Chapter, Figure, Table, TableCell};
use linerate_model::experiment::Factor;
use linerate_model::unit::Unit;
use linerate_model::workload::Kind;

use super::draw;
use super::study_chapter::{Content, Measured, StudyChapter};
use crate::compare::interval::share_interval;
use crate::dataset::{CellOutcomes, by_value, varied};
use crate::diagnose::Told;
use crate::reduce::{LOSS_PLACES, Outcome, describe, name};
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 11,
    content: Content::Experiment(Kind::Stream, fill, |_| Vec::new()),
};

/// Replaces figures and adds the table and the answer.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured { cells, .. } = *measured;
    let received = figure(cells, name::DATAGRAMS_RECEIVED_RATE, "received");
    let sent = figure(cells, name::DATAGRAMS_SENT_RATE, "sent");
    let figures: Vec<Figure> = [received, sent].into_iter().flatten().collect();
    if figures.is_empty() {
        return;
    }
    chapter.figures = figures;
    chapter.tables.insert(0, table(cells));
    chapter.answer = answer(cells).or(chapter.answer.take());
}

fn figure(cells: &[&CellOutcomes<'_>], response: &str, word: &str) -> Option<Figure> {
    let caption = "Datagrams are counted one by one, however they are sent: one per system call, several \
                   per call, or several cut from one buffer. Points are means with 95 % intervals (of two values, their range).";
    let id = format!("udp-packet-rate-{word}");
    let x = if varied(cells).contains(&Factor::MessageBytes) {
        Factor::MessageBytes
    } else {
        *varied(cells).first()?
    };
    draw::figure(cells, x, response, id, caption)
}

/// Sent, received, and the part of those sent that each place lost.
///
/// Rates are of the window, losses of the whole trial: what is on its way or in a buffer at the window's edges is
/// neither received in it nor lost.
fn table(cells: &[&CellOutcomes<'_>]) -> Table {
    let places: Vec<&str> = LOSS_PLACES
        .iter()
        .map(|(_, response)| *response)
        .filter(|response| {
            let lost =
                |cell: &&CellOutcomes<'_>| cell.mean(response).is_some_and(|lost| lost > 0.0);
            cells.iter().any(lost)
        })
        .collect();
    let mut columns = vec![
        "Sending".to_owned(),
        "Sent/s".to_owned(),
        "Received/s".to_owned(),
        "Lost".to_owned(),
    ];
    let part = |response: &&str| draw::sentence(describe(response).title);
    columns.extend(places.iter().map(part));
    let row = |cell: &&CellOutcomes<'_>| {
        let estimate = |response| draw::read(cell.estimate(response));
        let mut row = vec![
            TableCell::Text(sending(cell)),
            estimate(name::DATAGRAMS_SENT_RATE),
            estimate(name::DATAGRAMS_RECEIVED_RATE),
            estimate(name::LOSS_SHARE),
        ];
        row.extend(places.iter().map(|place| {
            let shares = cell.valid.iter().filter_map(|outcome| {
                let sent = outcome.value(name::DATAGRAMS_SENT)?;
                (sent > 0.0).then_some(outcome.value(place)? / sent)
            });
            let share = share_interval(&shares.collect::<Vec<_>>());
            draw::read(share.map(|share| share.map(Unit::Percent, |share| 100.0 * share)))
        }));
        row
    };
    Table::new(
        "Sent and received per second of the measured window; where datagrams were lost, as shares of all that were sent, \
         before and after the window too, in the mean of the trials",
        columns,
        cells.iter().map(row),
    )
}

/// Returns size and system call of a cell's datagrams in words.
fn sending(cell: &CellOutcomes<'_>) -> String {
    let manner = &cell.workload.manner;
    let size = cell.message_bytes().unwrap_or(0) as f64;
    let size = words::number(Unit::Bytes, size);
    match (manner.batch, manner.segments) {
        (1, 1) => format!("{size}, one per call"),
        (batch, 1) => format!("{size}, {batch} per call (sendmmsg)"),
        (1, segments) => format!("{size}, {segments} per buffer (UDP_SEGMENT)"),
        (batch, segments) => format!("{size}, {batch} buffers of {segments} per call"),
    }
}

fn answer(cells: &[&CellOutcomes<'_>]) -> Option<String> {
    let (cell, most) = by_value(cells, name::DATAGRAMS_RECEIVED_RATE).pop()?;
    let mut text = format!(
        "The most datagrams that arrive are {}: {}.",
        words::estimate(&most),
        sending(cell)
    );
    let lost = |response: &str| cell.mean(response).filter(|lost| *lost > 0.0);
    let places = LOSS_PLACES.iter().map(|(_, response)| *response);
    let worst = places
        .filter_map(|place| Some((place, lost(place)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    if let (Some(share), Some((place, _))) = (lost_of_all(cell), worst) {
        let place = describe(place).title;
        text += &format!(
            " Of all that were sent, before and after the measured window too, {} were lost, most of them {place}.",
            words::percent(share)
        );
    }
    Some(text)
}

/// Returns the share of the datagrams of all trials that was lost, where any was.
fn lost_of_all(cell: &CellOutcomes<'_>) -> Option<f64> {
    let of_trial = |outcome: &Outcome| {
        let sent = outcome.value(name::DATAGRAMS_SENT)?;
        Some((sent, outcome.value(name::LOSS_SHARE)?))
    };
    let trials: Option<Vec<(f64, f64)>> = cell.valid.iter().map(of_trial).collect();
    share_of_all(&trials?).filter(|share| *share > 0.0)
}

/// Returns the share that was lost of what was sent in all, of trials with what they sent and the share of it that they
/// lost; absent where nothing was sent.
fn share_of_all(trials: &[(f64, f64)]) -> Option<f64> {
    let sent: f64 = trials.iter().map(|(sent, _)| sent).sum();
    let lost: f64 = trials.iter().map(|(sent, share)| sent * share).sum();
    (sent > 0.0).then(|| lost / sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_sent_more_counts_for_more() {
        let share = share_of_all(&[(900.0, 0.01), (100.0, 0.21)]);
        assert!(share.is_some_and(|share| (share - 0.03).abs() < 1e-12));
        assert_eq!(share_of_all(&[]), None);
    }
}
