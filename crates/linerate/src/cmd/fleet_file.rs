//! The file of a fleet, and the experiment between the hosts that it names.

use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_model::fleet::{FleetFile, Launch};
use linerate_plan::{Draft, PatternAsked};

use super::plan;
use crate::args::FleetRunArgs;
use crate::exit::{CmdResult, Failure};

/// Largest fleet file.
const FLEET_BYTES_MAX: u64 = 4 << 20;

/// Returns the experiment that was asked for, for the pairs of a fleet whose hosts are known.
pub fn draft(args: &FleetRunArgs, fleet: &FleetFile, seed: u64) -> CmdResult<Draft> {
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
pub fn read(file: &Path) -> CmdResult<FleetFile> {
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
