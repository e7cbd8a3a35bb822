//! Interleaved rounds, and what they give.

use serde::Serialize;

use crate::machine::Usage;
use crate::tool::{Tool, Workload};

/// Runs thrown away in a row before a busy machine is accepted and said.
const RETRIES_MAX: u32 = 5;

/// One run of one tool.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Run {
    /// Bits per second at the receiver.
    pub bits_per_second: f64,
    /// CPU seconds of client and server for each GiB received.
    pub cpu_s_per_gib: f64,
    /// Share of the machine that was busy with something else.
    pub others_share: f64,
}

/// All runs of one tool.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The tool.
    pub tool: &'static str,
    /// Its runs, in order.
    pub runs: Vec<Run>,
}

/// All tools on one workload.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The workload.
    pub workload: Workload,
    /// The tools, ours first.
    pub rows: Vec<Row>,
    /// Runs that were thrown away because the machine was busy.
    pub thrown_away: u32,
    /// Runs that were kept although it was.
    pub kept_busy: u32,
}

/// Runs every tool `rounds` times.
pub fn compare(
    tools: &[Tool],
    workload: Workload,
    rounds: u32,
    others_max: f64,
) -> anyhow::Result<Comparison> {
    let mut comparison = Comparison {
        workload,
        rows: tools
            .iter()
            .map(|tool| Row {
                tool: tool.name,
                runs: Vec::new(),
            })
            .collect(),
        thrown_away: 0,
        kept_busy: 0,
    };
    for round in 0..rounds as usize {
        for turn in 0..tools.len() {
            let at = (round + turn) % tools.len();
            if let Some(run) = quiet_run(&tools[at], &mut comparison, others_max)? {
                comparison.rows[at].runs.push(run);
            }
        }
        eprintln!("bench: {workload:?}: round {} of {rounds}", round + 1);
    }
    comparison.rows.retain(|row| !row.runs.is_empty());
    Ok(comparison)
}

/// Runs a tool until the machine was quiet meanwhile, or too often.
fn quiet_run(
    tool: &Tool,
    comparison: &mut Comparison,
    others_max: f64,
) -> anyhow::Result<Option<Run>> {
    for attempt in 0.. {
        let before = Usage::now()?;
        let begun = std::time::Instant::now();
        let Some(bits_per_second) = tool.once(comparison.workload)? else {
            return Ok(None);
        };
        let (after, took) = (Usage::now()?, begun.elapsed().as_secs_f64());
        let gib = bits_per_second / 8.0 * took / (1u64 << 30) as f64;
        let run = Run {
            bits_per_second,
            cpu_s_per_gib: after.children_since(&before) / gib,
            others_share: after.others_since(&before),
        };
        if run.others_share <= others_max {
            return Ok(Some(run));
        }
        if attempt == RETRIES_MAX {
            comparison.kept_busy += 1;
            return Ok(Some(run));
        }
        comparison.thrown_away += 1;
    }
    Ok(None)
}

impl Row {
    /// Returns median, least and greatest of what `of` takes from the runs.
    pub fn spread(&self, of: fn(&Run) -> f64) -> (f64, f64, f64) {
        let mut values: Vec<f64> = self.runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => (values[middle - 1] + values[middle]) / 2.0,
            _ => values[middle],
        };
        (median, values[0], values[values.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers() {
        let row = |rates: &[f64]| Row {
            tool: "x",
            runs: rates
                .iter()
                .map(|rate| Run {
                    bits_per_second: *rate,
                    cpu_s_per_gib: 1.0,
                    others_share: 0.0,
                })
                .collect(),
        };
        assert_eq!(
            row(&[3.0, 1.0, 2.0]).spread(|run| run.bits_per_second),
            (2.0, 1.0, 3.0)
        );
        assert_eq!(
            row(&[4.0, 1.0]).spread(|run| run.bits_per_second),
            (2.5, 1.0, 4.0)
        );
    }
}
