//! `linerate plan`: show what an experiment file would do.

use std::path::Path;

use anyhow::Context;
use linerate_model::finding::Decidable;
use linerate_model::plan::Plan;
use linerate_plan::{Draft, PlanRequest};
use serde::Serialize;

use super::experiments::{refused, show, this_machine};
use crate::args::PlanArgs;
use crate::exit::{CmdResult, Exit, Failure};
use crate::{similar, term};

/// Largest experiment file.
const EXPERIMENT_BYTES_MAX: u64 = 1 << 20;

/// Runs the command.
pub fn plan(args: &PlanArgs) -> CmdResult {
    let Some(experiment) = &args.experiment else {
        return list();
    };
    let draft = read(experiment)?;
    let drafts = [draft];
    let hosts = this_machine(args.clients, &drafts);
    let request = PlanRequest::within(args.budget, args.seed, hosts);
    let plan = linerate_plan::plan(&drafts, &request).map_err(refused)?;
    if args.json {
        term::json_document(&PlanDocument {
            power: linerate_analyze::power(&plan),
            plan: &plan,
        });
        return Ok(Exit::Ok);
    }
    show(&plan)
}

/// What `-J` prints: the plan, and what it can decide.
#[derive(Serialize, schemars::JsonSchema)]
pub struct PlanDocument<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    /// Absent where it was not worked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    power: Option<Vec<Decidable>>,
}

/// Lists the experiments that come with the program, each with its question.
fn list() -> CmdResult {
    let known = linerate_plan::built_in();
    let names = known
        .iter()
        .map(|draft| draft.experiment.name.chars().count());
    let widest = names.max().unwrap_or(0);
    for draft in &known {
        let experiment = &draft.experiment;
        let mut name = experiment.name.as_str();
        for words in term::wrap(&experiment.question, term::width() - widest - 2, 0) {
            term::line(&format!("{name:<widest$}  {words}"));
            name = "";
        }
    }
    Ok(Exit::Ok)
}

/// Returns the built-in experiment that `file` names, or reads and checks an experiment file.
pub fn read(file: &Path) -> CmdResult<Draft> {
    let known = linerate_plan::built_in();
    let mut named = known.iter();
    let chapter = named.find(|draft| Path::new(&draft.experiment.name) == file);
    if let Some(draft) = chapter.filter(|_| !file.exists()) {
        return Ok(draft.clone());
    }
    let names = known.iter().map(|draft| draft.experiment.name.as_str());
    let names: Vec<&str> = names.collect();
    let near = file.to_str().filter(|_| !file.exists());
    let near = near.and_then(|typed| similar::nearest(typed, names.iter().copied()));
    let unknown = |error| {
        Failure::usage(error).maybe(match near {
            Some(name) => Some(format!("did you mean `{name}`?")),
            None if file.is_file() => None,
            None => Some(format!(
                "name a file, or an experiment: {}",
                names.join(", ")
            )),
        })
    };
    let unreadable = || format!("cannot read the experiment file {}", file.display());
    let length = std::fs::metadata(file)
        .with_context(unreadable)
        .map_err(unknown)?
        .len();
    if length > EXPERIMENT_BYTES_MAX {
        let error = anyhow::anyhow!("{} is larger than 1 MiB", file.display());
        return Err(Failure::usage(error));
    }
    let text = std::fs::read_to_string(file)
        .with_context(unreadable)
        .map_err(Failure::usage)?;
    let origin = file.display().to_string();
    if linerate_plan::is_profile(&text) || file.extension().is_some_and(|it| it == "xml") {
        return profile(&text, &origin);
    }
    linerate_plan::read_experiment(&text, &origin).map_err(|error| {
        let error = anyhow::Error::from(error);
        let keys = "docs/reference/experiment.md lists every key and its range";
        let near = similar::of_key(&error).map(|near| format!("{near} {keys}"));
        Failure::usage(error).next(near.unwrap_or_else(|| keys.to_owned()))
    })
}

/// Reads a profile of uperf with the variables of the environment, and says what is measured in another way.
fn profile(text: &str, origin: &str) -> CmdResult<Draft> {
    let variable = |name: &str| std::env::var(name).ok();
    let draft = linerate_plan::read_profile(text, origin, variable).map_err(|error| {
        let next = "docs/guide/uperf.md lists what a profile can have";
        Failure::usage(error).next(next)
    })?;
    if !draft.experiment.method.is_empty() {
        term::note(&draft.experiment.method);
    }
    Ok(draft)
}
