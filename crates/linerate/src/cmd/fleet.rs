//! `linerate fleet`: many hosts that measure with each other.

use linerate_controller::{Fleet, HostSpec};

use super::fleet_file::{draft, read};
use super::fleet_hosts::FleetHosts;
use super::lab_fleet::Refused;
use super::{experiments, fleet_hosts, fleet_sbatch};
use crate::args::{FleetCheckArgs, FleetCommand, FleetCommandArgs, FleetRunArgs};
use crate::exit::CmdResult;
use crate::term::fleet::FleetDocument;
use crate::{bundle, hosts, meant, term};

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
