//! `linerate fleet`: many hosts that measure with each other.

use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_controller::{Fleet, HostSpec};
use linerate_model::fleet::{FleetFile, Launch};
use linerate_plan::{Draft, PatternAsked};

use super::fleet_hosts::FleetHosts;
use super::lab_fleet::Refused;
use super::{experiments, fleet_hosts, fleet_sbatch, plan};
use crate::args::{FleetCheckArgs, FleetCommand, FleetCommandArgs, FleetRunArgs};
use crate::exit::{CmdResult, Failure};
use crate::term::fleet::FleetDocument;
use crate::{bundle, hosts, meant, term};

/// Largest fleet file.
const FLEET_BYTES_MAX: u64 = 4 << 20;

/// Runs the command.
pub fn fleet(args: &FleetCommandArgs) -> CmdResult {
    match &args.command {
        FleetCommand::Check(args) => check(args),
        FleetCommand::Run(args) => run(args),
        FleetCommand::Sbatch(args) => fleet_sbatch::sbatch(args),
    }
}

fn check(args: &FleetCheckArgs) -> CmdResult {
    let mut fleet = read(&args.fleet.file)?;
    fleet_hosts::name_nodes(&mut fleet)?;
    let asked = meant::fleet_hosts(&args.fleet, &fleet)?;
    let FleetHosts { hosts, launched } = FleetHosts::find(&mut fleet, &asked)?;
    let there = hosts.iter().filter_map(|(_, spec)| spec.as_ref().ok());
    let specs: Vec<HostSpec> = there.cloned().collect();
    let mut checked = Fleet::check(&specs).into_iter();
    let answers = hosts.into_iter().map(|(name, spec)| {
        let answer = spec.and_then(|_| {
            let checked = checked.next().expect("each host that is there was asked");
            checked.answer.map_err(hosts::agent_failure)
        });
        (name, answer)
    });
    let document = FleetDocument::of(answers);
    fleet_hosts::take_away(launched, None)?;
    if args.json {
        term::json_document(&document);
    } else {
        term::fleet::show(&document);
    }
    Ok(document.exit())
}

fn run(args: &FleetRunArgs) -> CmdResult {
    let mut fleet = read(&args.fleet.file)?;
    fleet_hosts::name_nodes(&mut fleet)?;
    let moment = bundle::Moment::now();
    let (_, seed) = bundle::new_run(&moment, args.seed)?;
    // Who measures with whom is known once Slurm has chosen.
    let chosen = if fleet.hosts.is_empty() {
        let asked = meant::fleet_hosts(&args.fleet, &fleet)?;
        Some(FleetHosts::find(&mut fleet, &asked)?)
    } else {
        None
    };
    let draft = draft(args, &fleet, seed)?;
    let mut experiments = meant::of_fleet(args, &fleet, draft, seed)?;
    let found = match chosen {
        Some(found) => found,
        None => FleetHosts::find(&mut fleet, &experiments.hosts)?,
    };
    let (specs, launched) = found.all(&fleet)?;
    // What agents said comes into the bundle after the run.
    let directory = bundle::directory(args.out.as_deref(), "fleet", &moment);
    experiments.directory = Some(directory.clone());
    let measured = experiments::measure(&experiments, specs, &Refused::new());
    let taken = fleet_hosts::take_away(launched, Some(&directory));
    let exit = measured?;
    taken.map(|()| exit)
}

/// Returns the experiment that was asked for, for the pairs of a fleet whose hosts are known.
pub(super) fn draft(args: &FleetRunArgs, fleet: &FleetFile, seed: u64) -> CmdResult<Draft> {
    let draft = match &args.experiment {
        Some(file) => plan::read(file)?,
        None => linerate_plan::fleet_look(),
    };
    let asked = PatternAsked {
        pattern: args.pattern,
        at_once: args.at_once,
        groups: args.between.clone(),
        seed,
    };
    let pairs = linerate_plan::pairs(&fleet.hosts, &asked)
        .with_context(|| format!("the fleet of {}", args.fleet.file.display()))
        .map_err(Failure::usage)?;
    Ok(linerate_plan::paired(&draft, pairs))
}

/// Reads a fleet file.
pub(super) fn read(file: &Path) -> CmdResult<FleetFile> {
    let unreadable = || format!("cannot read the fleet file {}", file.display());
    let next = "docs/guide/fleet.md says what it holds; --fleet FILE names another";
    let unusable = |error: anyhow::Error| Failure::usage(error).next(next);
    let length = std::fs::metadata(file)
        .with_context(unreadable)
        .map_err(unusable)?
        .len();
    if length > FLEET_BYTES_MAX {
        return Err(unusable(anyhow!("{} is larger than 4 MiB", file.display())));
    }
    let text = std::fs::read_to_string(file)
        .with_context(unreadable)
        .map_err(unusable)?;
    let fleet = linerate_plan::read_fleet(&text, &file.display().to_string());
    let mut fleet = fleet.map_err(|error| unusable(error.into()))?;
    let named = match &mut fleet.launch {
        Launch::Ssh(ssh) => [ssh.config.as_mut(), ssh.program.as_mut()],
        Launch::Slurm(slurm) => [slurm.program.as_mut(), None],
        Launch::Agent | Launch::Kubernetes(_) => [None, None],
    };
    // They are named from where the fleet file is.
    let beside = file.parent().unwrap_or(Path::new(""));
    for path in named.into_iter().flatten() {
        *path = beside.join(&path);
    }
    Ok(fleet)
}
