//! `linerate capacity`: how many CPUs a rate asks for.

use anyhow::anyhow;
use linerate_analyze::capacity::{Target, capacity as of_recording};
use linerate_model::workload::Direction;

use crate::args::CapacityArgs;
use crate::bundle;
use crate::exit::{CmdResult, Exit, Failure};
use crate::term;

/// Runs the command.
pub fn capacity(args: &CapacityArgs) -> CmdResult {
    if args.headroom >= 1.0 {
        let error = anyhow!("--headroom 100 % leaves no CPU for the traffic");
        return Err(Failure::usage(error));
    }
    let recording = bundle::read(&args.bundle)?;
    let target = args.target.map(|rate| Target {
        bps: rate.0,
        message_bytes: args.message.0,
        flows: args.flows,
        direction: if args.reverse {
            Direction::FromServer
        } else {
            Direction::ToServer
        },
        headroom: args.headroom,
    });
    let found = of_recording(&recording, target.as_ref());
    if args.json {
        term::json_document(&found);
    } else {
        term::capacity::print(&found, target.as_ref());
    }
    if found.models.is_empty() {
        let why = found.missing.join("; ");
        let error = anyhow!("{} has no model of cost: {why}", args.bundle.display());
        return Err(Failure::failed(error).next(
            "measure one with `linerate study HOST --budget 15m`, or with `linerate run HOST --experiment load-steps`",
        ));
    }
    if target.is_some() && found.answer.is_none() {
        let error = anyhow!(
            "no stream in that direction was measured in {}",
            args.bundle.display()
        );
        return Err(Failure::failed(error));
    }
    Ok(Exit::Ok)
}
