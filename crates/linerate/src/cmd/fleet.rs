//! `linerate fleet`: many hosts that measure with each other.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use linerate_controller::{Fleet, HostSpec};
use linerate_model::fleet::{FleetFile, Launch};
use linerate_model::run::HostPart;
use linerate_plan::{Draft, PatternAsked};

use super::lab_fleet::Refused;
use super::{experiments, plan};
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
    let specs = specs(&fleet, &asked)?;
    let document = FleetDocument::of(&Fleet::check(&specs));
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
    let (_, seed) = bundle::new_run(&bundle::Moment::now(), args.seed)?;
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
    let experiments = meant::of_fleet(args, &fleet, draft, seed)?;
    let specs = specs(&fleet, &experiments.hosts)?;
    experiments::measure(&experiments, specs, &Refused::new())
}

/// Returns the hosts of `fleet` for a run: the first is its server by name only, since trials name their own.
fn specs(fleet: &FleetFile, asked: &hosts::HostsAsked) -> CmdResult<Vec<HostSpec>> {
    let callers = hosts::callers(asked)?;
    let mut specs = Vec::with_capacity(fleet.hosts.len());
    for (at, host) in fleet.hosts.iter().enumerate() {
        let (agent, control) = hosts::reached(&callers, &host.control, asked)?;
        let part = if at == 0 {
            HostPart::Server
        } else {
            HostPart::Client
        };
        let data = host
            .data
            .first()
            .map_or(control, |ip| (*ip, control.port()).into());
        specs.push(HostSpec {
            bind: host.data.first().map(|ip| (*ip, 0).into()),
            groups: host.groups.clone(),
            ..HostSpec::new(host.name.clone(), part, Arc::new(agent), data)
        });
    }
    Ok(specs)
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
    let fleet = fleet.map_err(|error| unusable(error.into()))?;
    if fleet.launch != Launch::Agent {
        return Err(unusable(anyhow!(
            "{}: only `launch = \"agent\"` can be done",
            file.display()
        )));
    }
    Ok(fleet)
}
