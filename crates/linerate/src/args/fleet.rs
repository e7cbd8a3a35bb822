//! `linerate fleet`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use linerate_model::Nanos;
use linerate_model::manner::Named;
use linerate_model::pairs::Pattern;

use super::shared::{FleetArgs, GateArgs, MarginArgs};

/// `linerate fleet`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  linerate fleet check                          who answers, with which version, clock and link\n  \
                  linerate fleet run                            each host with each other, one test a device\n  \
                  linerate fleet run --pattern many-to-one      all at the same moment to the first\n  \
                  linerate fleet run incast.toml --at-once      an experiment of one's own\n  \
                  linerate fleet sbatch --budget 10m            as a batch job of Slurm, with a report at its end\n\n\
                  docs/guide/fleet.md has the file and the patterns.")]
pub struct FleetCommandArgs {
    #[command(subcommand)]
    pub command: FleetCommand,
}

/// What is done with a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Tell of each host whether it answers, its version, clock, link and what it lets be seen
    Check(Box<FleetCheckArgs>),
    /// Measure between its hosts: an experiment, or a stream of a second from each to each
    Run(Box<FleetRunArgs>),
    /// Submit a batch job to Slurm that does what `linerate fleet run` does with the same flags
    Sbatch(Box<FleetSbatchArgs>),
}

/// Which fleet.
#[derive(Debug, Clone, Args)]
pub struct FleetFileArgs {
    /// The file with the hosts
    #[arg(
        long = "fleet",
        value_name = "FILE",
        default_value = "fleet.toml",
        help_heading = "Hosts"
    )]
    pub file: PathBuf,
    /// How they are found and shared.
    #[command(flatten)]
    pub hosts: FleetArgs,
}

/// `linerate fleet check`.
#[derive(Debug, Args)]
pub struct FleetCheckArgs {
    /// Print JSON
    #[arg(short = 'J', long)]
    pub json: bool,
    #[command(flatten)]
    pub fleet: FleetFileArgs,
}

/// `linerate fleet run`.
#[derive(Debug, Args)]
pub struct FleetRunArgs {
    /// The experiment file, or the name of a built-in one [default: one stream of a second]
    pub experiment: Option<PathBuf>,
    /// Which hosts measure with which: many-to-one, one-to-many, pairs, permutation, mesh, racks, bisection
    #[arg(long, value_name = "PATTERN", default_value = "mesh", value_parser = pattern)]
    pub pattern: Pattern,
    /// All pairs at the same time, not in rounds in which a device has one test
    #[arg(long)]
    pub at_once: bool,
    /// Only from the hosts of one group to those of another
    #[arg(long, value_name = "FROM:TO", value_parser = two_groups)]
    pub between: Option<(String, String)>,
    /// Time limit
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Print the plan and how long it takes; measure nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Directory of the evidence bundle [default: linerate-fleet-TIME.bundle]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of the order of trials, and of what is drawn [default: random]
    #[arg(long)]
    pub seed: Option<u64>,
    /// What is the same.
    #[command(flatten)]
    pub margins: MarginArgs,
    /// What its result is held against.
    #[command(flatten)]
    pub gate: GateArgs,
    #[command(flatten)]
    pub fleet: FleetFileArgs,
}

/// `linerate fleet sbatch`.
#[derive(Debug, Args)]
pub struct FleetSbatchArgs {
    /// Print the batch script and submit nothing
    #[arg(long)]
    pub print: bool,
    #[command(flatten)]
    pub run: FleetRunArgs,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::named(text).ok_or_else(|| format!("expected one of {}", Pattern::words().join(", ")))
}

fn two_groups(text: &str) -> Result<(String, String), String> {
    let groups = text
        .split_once(':')
        .filter(|(from, to)| !from.is_empty() && !to.is_empty());
    let (from, to) = groups.ok_or("expected two groups: FROM:TO")?;
    Ok((from.to_owned(), to.to_owned()))
}
