//! What a result is held against: what the flags name, read before anything is measured.

use anyhow::anyhow;
use linerate_model::condition::Condition;

use crate::args::GateArgs;
use crate::exit::{CmdResult, Failure};
use crate::gate::{self, Gate};

/// Returns what the flags mean, or refuses what is no condition and no run.
pub(super) fn gate(args: &GateArgs) -> CmdResult<Gate> {
    let condition = |text: &String| {
        let next = "say it as 'throughput < 900M'; docs/reference/responses.md lists the responses";
        let read = Condition::parse(text).and_then(|read| match read.of {
            None => Ok(read),
            Some(_) => Err("what is relative to another level is for --search".to_owned()),
        });
        read.map_err(|why| Failure::usage(anyhow!("--fail-if '{text}': {why}")).next(next))
    };
    Ok(Gate {
        baseline: args.baseline.as_deref().map(gate::read).transpose()?,
        threshold: args.threshold,
        conditions: args
            .fail_if
            .iter()
            .map(condition)
            .collect::<CmdResult<_>>()?,
    })
}
