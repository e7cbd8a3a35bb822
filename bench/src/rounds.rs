//! Interleaved rounds, and what they give.

use serde::Serialize;

use crate::run::{self, Failure, Place, Run};
use crate::tool::{Commands, Kind, Programs, Site, Tool};
use crate::workload::{Contest, Target, Unit};
use crate::{environment, interrupt, target};

/// Runs of one round thrown away before a busy machine is accepted and said.
const RETRIES_MAX: u32 = 3;

/// What is kept of the reason why a tool gave no number.
const NOTE_CHARS_MAX: usize = 200;

/// How often and how long.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Settings {
    /// Rounds; each runs every row once.
    pub rounds: u32,
    /// Seconds of each run.
    pub seconds: u32,
    /// Share of the machine that other programs may use during a run.
    pub others_share_max: f64,
}

/// All runs of one tool, or of one of its ways.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The tool, and its way if it has several.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its runs, in order.
    pub runs: Vec<Run>,
    /// Why there are fewer than rounds.
    pub note: Option<String>,
}

/// All rows of one workload in one environment.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Where it ran.
    pub environment: environment::Environment,
    /// The workload.
    pub workload: Contest,
    /// What its numbers count.
    pub unit: Unit,
    /// The rows, ours first.
    pub rows: Vec<Row>,
    /// Runs that were thrown away because the machine was busy.
    pub thrown_away: u32,
    /// Runs that were kept although it was.
    pub kept_busy: u32,
    /// What ours must reach and has.
    pub targets: Vec<target::Reached>,
}

/// Runs every row of a workload in rounds whose first row changes.
pub fn compare(
    tools: &[Tool],
    programs: &Programs,
    place: Place<'_>,
    workload: Contest,
    settings: Settings,
) -> anyhow::Result<Comparison> {
    let seconds = match workload {
        Contest::Startup => 1,
        _ => settings.seconds,
    };
    let site = |port: u16| Site {
        programs,
        host: environment::server_address(place.environment),
        port,
        seconds,
        cpus: place.environment.cpus(workload),
    };
    // Of each row which tool it is, and which of its plans.
    let mut candidates = Vec::new();
    let mut rows = Vec::new();
    for tool in tools {
        for (at, plan) in (tool.plans)(&site(1), workload).iter().enumerate() {
            candidates.push((tool, at));
            rows.push(Row {
                name: row_name(tool, plan),
                kind: tool.kind,
                runs: Vec::new(),
                note: None,
            });
        }
    }
    let mut comparison = Comparison {
        environment: place.environment,
        workload,
        unit: workload.unit(),
        rows,
        thrown_away: 0,
        kept_busy: 0,
        targets: Vec::new(),
    };
    for round in 0..settings.rounds as usize {
        for turn in 0..candidates.len() {
            let index = (round + turn) % candidates.len();
            // A row that could not start in its first round is not tried again.
            let row = &comparison.rows[index];
            if row.note.is_some() && row.runs.is_empty() {
                continue;
            }
            let (tool, at) = candidates[index];
            let once = || {
                let plans = (tool.plans)(&site(free_port()?), workload);
                Ok((plans.into_iter().nth(at), place))
            };
            turn_of(index, &mut comparison, settings, once)?;
        }
        let (name, _) = workload.words();
        let where_ = place.environment.name();
        eprintln!(
            "bench: {where_}, {name}: round {} of {}",
            round + 1,
            settings.rounds
        );
    }
    let targets: Vec<Target> = workload.targets();
    comparison.targets = target::reached(&targets, &comparison);
    Ok(comparison)
}

fn row_name(tool: &Tool, plan: &Commands) -> String {
    match plan.variant {
        "" => tool.name.to_owned(),
        variant => format!("{} {variant}", tool.name),
    }
}

/// Runs a row until the machine was quiet meanwhile, or too often.
fn turn_of<'a>(
    index: usize,
    comparison: &mut Comparison,
    settings: Settings,
    once: impl Fn() -> anyhow::Result<(Option<Commands>, Place<'a>)>,
) -> anyhow::Result<()> {
    for attempt in 0..=RETRIES_MAX {
        let (Some(plan), place) = once()? else {
            return Ok(());
        };
        let row = &mut comparison.rows[index];
        let result = run::run(place, comparison.workload, &plan);
        interrupt::check()?;
        match result {
            Ok(run) if run.others_share > settings.others_share_max && attempt < RETRIES_MAX => {
                comparison.thrown_away += 1;
            }
            Ok(run) => {
                comparison.kept_busy += u32::from(run.others_share > settings.others_share_max);
                row.runs.push(run);
                return Ok(());
            }
            Err(Failure::Usage(said)) => {
                row.note = Some(format!("not there yet: {said}"));
                return Ok(());
            }
            Err(Failure::Other(error)) => {
                eprintln!("bench: {}: {error:#}", row.name);
                let text: String = format!("{error:#}").chars().take(NOTE_CHARS_MAX).collect();
                row.note = Some(text);
                return Ok(());
            }
        }
    }
    Ok(())
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}

impl Row {
    /// Returns median, least and greatest of what `of` takes from the runs that have it.
    pub fn spread(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(of))
    }

    /// Returns the spread of its number.
    pub fn value(&self) -> Option<Spread> {
        self.spread(|run| Some(run.value))
    }

    /// Returns the median CPU time of both ends for each unit of work.
    pub fn cpu(&self) -> Option<f64> {
        let both = |run: &Run| Some(run.client_cpu? + run.server_cpu?);
        self.spread(both).map(|spread| spread.median)
    }
}

/// Where the values of a row lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, serde::Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// Returns where `values` lie, if there are any.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Self {
            median,
            least,
            greatest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[f64]) -> Row {
        let run = |value: &f64| Run {
            value: *value,
            client_cpu: Some(*value),
            server_cpu: Some(1.0),
            others_share: 0.0,
        };
        Row {
            name: "x".to_owned(),
            kind: Kind::Peer,
            runs: values.iter().map(run).collect(),
            note: None,
        }
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        let check = |values: &[f64], expected: Option<(f64, f64, f64)>| {
            let spread = row(values).value();
            let found = spread.map(|spread| (spread.median, spread.least, spread.greatest));
            assert_eq!(found, expected);
        };
        check(&[3.0, 1.0, 2.0], Some((2.0, 1.0, 3.0)));
        check(&[4.0, 1.0], Some((2.5, 1.0, 4.0)));
        check(&[], None);
    }

    #[test]
    fn cpu_is_of_both_ends() {
        assert_eq!(row(&[3.0, 1.0, 2.0]).cpu(), Some(3.0));
    }
}
