//! `linerate fleet`: many hosts that measure with each other.

use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_controller::{Fleet, HostSpec};
use linerate_model::fleet::{FleetFile, Launch};
use linerate_plan::{Draft, PatternAsked};

use super::fleet_hosts::FleetHosts;
use super::lab_fleet::Refused;
use super::{experiments, fleet_hosts, plan};
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
    }
}

fn check(args: &FleetCheckArgs) -> CmdResult {
    let fleet = read(&args.fleet.file)?;
    let asked = meant::fleet_hosts(&args.fleet, &fleet)?;
    let FleetHosts { hosts, launched } = FleetHosts::find(&fleet, &asked)?;
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
    let fleet = read(&args.fleet.file)?;
    let draft = match &args.experiment {
        Some(file) => plan::read(file)?,
        None => linerate_plan::fleet_look(),
    };
    let moment = bundle::Moment::now();
    let (_, seed) = bundle::new_run(&moment, args.seed)?;
    let asked = PatternAsked {
        pattern: args.pattern,
        at_once: args.at_once,
        groups: args.between.clone(),
        seed,
    };
    let pairs = linerate_plan::pairs(&fleet.hosts, &asked)
        .with_context(|| format!("the fleet of {}", args.fleet.file.display()))
        .map_err(Failure::usage)?;
    let draft: Draft = linerate_plan::paired(&draft, pairs);
    let mut experiments = meant::of_fleet(args, &fleet, draft, seed)?;
    let (specs, launched) = FleetHosts::find(&fleet, &experiments.hosts)?.all(&fleet)?;
    // What agents said comes into the bundle after the run.
    let directory = bundle::directory(args.out.as_deref(), "fleet", &moment);
    experiments.directory = Some(directory.clone());
    let measured = experiments::measure(&experiments, specs, &Refused::new());
    let taken = fleet_hosts::take_away(launched, Some(&directory));
    let exit = measured?;
    taken.map(|()| exit)
}

/// Reads a fleet file.
fn read(file: &Path) -> CmdResult<FleetFile> {
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
    if let Launch::Ssh(ssh) = &mut fleet.launch {
        // They are named from where the fleet file is.
        let beside = file.parent().unwrap_or(Path::new(""));
        for path in [&mut ssh.config, &mut ssh.program].into_iter().flatten() {
            *path = beside.join(&path);
        }
    }
    Ok(fleet)
}
