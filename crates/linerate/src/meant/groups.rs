//! The groups that go on beside what the flags ask for.

use anyhow::anyhow;
use linerate_model::group::{self, GROUP_NAME_CHARS_MAX, Group};
use linerate_model::workload::{Kind, Workload};

use crate::args::{RunArgs, group};
use crate::exit::{CmdResult, Failure};
use crate::workload::workload;

/// What to do about groups that cannot be one trial.
const NEXT: &str = "measure them one after another, or leave out what the message names";

/// Returns each group that `--with` asks for, and its flags.
pub(super) fn beside(args: &RunArgs) -> CmdResult<Vec<(RunArgs, Workload)>> {
    let read = |text: &String| {
        let asked = group(text).map_err(|why| {
            let next = "give it as in --with 'rr -r 1,1 -P 4'";
            Failure::usage(anyhow!(why)).next(next)
        })?;
        let workload = workload(&asked)?;
        Ok((asked, workload))
    };
    args.groups.with.iter().map(read).collect()
}

/// Returns `beside` as groups whose names differ from each other's and from that of `first`.
pub(super) fn named(first: &Workload, beside: &[(RunArgs, Workload)]) -> CmdResult<Vec<Group>> {
    let mut taken = vec![group::name_of(first.traffic.kind()).to_owned()];
    let mut groups = Vec::new();
    for (_, workload) in beside {
        let kind = group::name_of(workload.traffic.kind());
        let numbered = (2..).map(|number| format!("{kind}-{number}"));
        let mut names = std::iter::once(kind.to_owned()).chain(numbered);
        let name = names.find(|name| !taken.contains(name));
        let name = name.unwrap_or_default();
        debug_assert!(name.len() <= GROUP_NAME_CHARS_MAX);
        taken.push(name.clone());
        groups.push(Group {
            name,
            workload: workload.clone(),
        });
    }
    check(first, &groups)?;
    Ok(groups)
}

/// Returns the probe that `--loaded` puts beside `bulk`: one byte each way, one at a time, sent at once.
pub(super) fn probe(args: &RunArgs, bulk: &Workload) -> CmdResult<Option<Workload>> {
    if !args.groups.loaded {
        return Ok(None);
    }
    let mut probe = Workload::of(Kind::Rr);
    probe.options.nagle = Some(false);
    let beside = Group {
        name: "bulk".to_owned(),
        workload: bulk.clone(),
    };
    check(&probe, &[beside])?;
    Ok(Some(probe))
}

/// Refuses groups that cannot be one trial.
fn check(first: &Workload, beside: &[Group]) -> CmdResult<()> {
    group::check(first, beside).map_err(|error| Failure::usage(error).next(NEXT))
}
