//! The steps of an exchange that is more than a request and its response.

use linerate_model::Bytes;
use linerate_model::sample::End;
use linerate_model::step::{STEPS_MAX, Step};

use super::exchange::{Does, Piece, Way};
use super::options::{Amount, RANDOM};
use crate::file::error::ReadError;
use crate::file::source::Source;

/// Returns the steps of `pieces`, of which a client sends what goes the way `own`.
pub(super) fn steps(
    source: &Source<'_>,
    pieces: &[Piece],
    own: Way,
) -> Result<Vec<Step>, ReadError> {
    let mut steps = Vec::new();
    for piece in pieces {
        let spot = source.at("flowop", piece.at.clone());
        let (of_one, count) = of(piece, own).ok_or_else(|| spot.wrong(RANDOM))?;
        let all = (steps.len() as u64).saturating_add(count.saturating_mul(of_one.len() as u64));
        if all > STEPS_MAX as u64 {
            let found = format!("{all} steps with those before it");
            let allowed = format!("at most {STEPS_MAX} of an exchange, a pause counting twice");
            return Err(spot.value(found, allowed));
        }
        steps.extend(of_one.repeat(count as usize));
    }
    Ok(steps)
}

/// Returns the steps of a flowop and how often they come; none where a size is random. Both ends of uperf make each pause.
fn of(piece: &Piece, own: Way) -> Option<(Vec<Step>, u64)> {
    match piece.does {
        Does::Pause { time, busy } => {
            let pause = |end| Step::Pause { end, time, busy };
            Some((End::BOTH.map(pause).into(), 1))
        }
        Does::Move(way, calls) => {
            let Amount::Bytes(bytes) = calls.size else {
                return None;
            };
            let bytes = Bytes(bytes);
            let is_own = way == own;
            let step = if is_own {
                Step::Send { bytes }
            } else {
                Step::Receive { bytes }
            };
            Some((vec![step], calls.count))
        }
    }
}
