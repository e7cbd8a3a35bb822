//! `linerate plan`: show what an experiment file would do.

use std::path::Path;

use anyhow::Context;
use linerate_plan::Draft;

use super::experiments::{make_plan, show, this_machine};
use crate::args::PlanArgs;
use crate::exit::{CmdResult, Exit, Failure};
use crate::term;

/// Largest experiment file.
const EXPERIMENT_BYTES_MAX: u64 = 1 << 20;

/// Runs the command.
pub fn plan(args: &PlanArgs) -> CmdResult {
    let draft = read(&args.experiment)?;
    let drafts = [draft];
    let hosts = this_machine(args.clients, &drafts);
    let plan = make_plan(&drafts, args.budget, args.seed, hosts)?;
    if args.json {
        term::line(&serde_json::to_string_pretty(&plan)?);
        return Ok(Exit::Ok);
    }
    show(&plan)
}

/// Returns the chapter of the study that `file` names, or reads and checks an experiment file.
pub fn read(file: &Path) -> CmdResult<Draft> {
    let mut chapters = linerate_plan::study().into_iter();
    let chapter = chapters.find(|draft| Path::new(&draft.experiment.name) == file);
    if let Some(draft) = chapter.filter(|_| !file.exists()) {
        return Ok(draft);
    }
    let unreadable = || format!("cannot read the experiment file {}", file.display());
    let length = std::fs::metadata(file)
        .with_context(unreadable)
        .map_err(Failure::usage)?
        .len();
    if length > EXPERIMENT_BYTES_MAX {
        let error = anyhow::anyhow!("{} is larger than 1 MiB", file.display());
        return Err(Failure::usage(error));
    }
    let text = std::fs::read_to_string(file)
        .with_context(unreadable)
        .map_err(Failure::usage)?;
    linerate_plan::read_experiment(&text, &file.display().to_string()).map_err(|error| {
        Failure::usage(error).next("docs/reference/experiment.md lists every key and its range")
    })
}
