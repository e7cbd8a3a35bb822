//! What a result is held against: what the flags name, read before anything is measured.

use std::collections::BTreeSet;

use anyhow::anyhow;
use linerate_model::condition::Condition;
use linerate_model::experiment::Experiment;
use linerate_model::group;

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

/// Refuses conditions about groups that none of `experiments` has.
pub(super) fn check_groups<'e>(
    gate: &Gate,
    experiments: impl IntoIterator<Item = &'e Experiment>,
) -> CmdResult<()> {
    let of_each = experiments.into_iter();
    let of_each = of_each.flat_map(|one| group::names(&one.workload, &one.beside));
    let names: BTreeSet<&str> = of_each.collect();
    let named = |condition: &Condition| Some((condition.text.clone(), condition.group?));
    let mut named = gate.conditions.iter().filter_map(named);
    match named.find(|(_, group)| !names.contains(group.as_str())) {
        Some((text, group)) => {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            let error = anyhow!("--fail-if '{text}': no group is called `{group}`");
            Err(Failure::usage(error).next(format!("name one of the groups: {names}")))
        }
        None => Ok(()),
    }
}
