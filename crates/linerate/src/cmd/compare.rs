//! `linerate compare`: runs held against the first of them.

use anyhow::Context;
use linerate_analyze::compared::{RunSide, compared};

use crate::args::CompareArgs;
use crate::exit::{CmdResult, Exit, Failure};
use crate::{gate, term};

/// Runs the command.
pub fn compare(args: &CompareArgs) -> CmdResult {
    let runs = args.runs.iter().map(|path| gate::read(path));
    let mut runs = runs.collect::<CmdResult<Vec<RunSide>>>()?;
    if !args.margins.words().is_empty() {
        let margins = args.margins.margins();
        runs = runs.into_iter().map(|run| run.judged_by(margins)).collect();
    }
    let compared = compared(&runs, args.threshold);
    if args.json {
        term::json_document(&compared);
    } else if args.markdown {
        term::line(&linerate_report::compared_markdown(&compared));
    } else {
        term::text(&linerate_report::compared_text(&compared));
    }
    if let Some(file) = &args.junit {
        std::fs::write(file, linerate_report::compared_junit(&compared))
            .with_context(|| format!("cannot write {}", file.display()))
            .map_err(|error| Failure::failed(error).next("name another file with --junit"))?;
    }
    let exit = gate::exit_of(&compared);
    if exit == Exit::Failed {
        term::note(gate::NOTHING_COMPARED);
    }
    Ok(exit)
}
