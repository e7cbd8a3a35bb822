//! The order of trials: shuffled blocks, from a seed.
//!
//! Each replicate of an experiment is a block that holds every cell once, in an order of its own.
//! A slow drift of the hosts then falls on all cells alike instead of on those measured last, and
//! a run that is cut short has measured all cells about equally often.

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, Experiment, LevelError};
use linerate_model::plan::Trial;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Appends the trials of `experiment` to `trials`.
pub(crate) fn append_trials(
    experiment: &Experiment,
    cells: &[Cell],
    seed: u64,
    trials: &mut Vec<Trial>,
) -> Result<(), LevelError> {
    // A stream of its own: what else is in the plan does not change an experiment's order.
    let mut random = Pcg64::seed_from_u64(seed ^ fingerprint(&experiment.name));
    for replicate in 1..=experiment.replicates {
        let mut block: Vec<&Cell> = cells.iter().collect();
        shuffle(&mut block, &mut random);
        for cell in block {
            trials.push(Trial {
                id: TrialId(trials.len() as u32 + 1),
                experiment: experiment.name.clone(),
                cell: cell.clone(),
                replicate,
                seed: random.next_u64(),
                workload: experiment.workload_of(cell)?,
                timing: experiment.timing,
            });
        }
    }
    Ok(())
}

/// Shuffles by Fisher and Yates.
///
/// Written out, since the library's may draw differently in its next version and a seed in an old
/// report should still give the same plan.
fn shuffle<T>(items: &mut [T], random: &mut Pcg64) {
    for at in (1..items.len()).rev() {
        items.swap(at, below(at as u64 + 1, random) as usize);
    }
}

/// Returns a number below `limit`, each equally likely.
fn below(limit: u64, random: &mut Pcg64) -> u64 {
    // The multiples of `limit` that fit into 64 bits; what lies above would favour small numbers.
    let fair = u64::MAX - u64::MAX % limit;
    loop {
        let drawn = random.next_u64();
        if drawn < fair {
            return drawn % limit;
        }
    }
}

/// Returns a number that tells names apart: FNV-1a, 64 bit.
fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
