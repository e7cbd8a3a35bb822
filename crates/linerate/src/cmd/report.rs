//! `linerate report`: render a bundle again from its stored data.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_analyze::reduce;

use crate::args::{ReportArgs, ReportFormat};
use crate::exit::{CmdResult, Failure, Outcome};
use crate::{bundle, term};

/// Runs the command.
pub fn report(args: &ReportArgs) -> CmdResult {
    if let Some(path) = &args.flame {
        return flame(&args.bundle, path);
    }
    if args.format == ReportFormat::Html && args.out.is_none() {
        let (_, _, file) = bundle::report(&args.bundle)?;
        term::line(&file.display().to_string());
        return Ok(Outcome::Ok);
    }
    let recording = bundle::read(&args.bundle)?;
    let analysis = || bundle::analysis(&recording, &args.bundle);
    let text = match args.format {
        ReportFormat::Html => linerate_report::html(&analysis()),
        ReportFormat::Markdown => linerate_report::markdown(&analysis()),
        ReportFormat::Json => linerate_report::json(&analysis()),
        ReportFormat::Csv => linerate_store::results_csv(&reduce::outcomes(&recording)),
    };
    write(&text, args.out.as_deref())?;
    Ok(Outcome::Ok)
}

/// Writes the stacks of all profiles.
fn flame(bundle: &Path, path: &Path) -> CmdResult {
    let recording = bundle::read(bundle)?;
    if recording.profiles.is_empty() {
        let error = anyhow!("there is no profile in {}", bundle.display());
        return Err(Failure::failed(error).next("measure again with --profile"));
    }
    write(&linerate_analyze::collapsed(&recording), Some(path))?;
    Ok(Outcome::Ok)
}

fn write(text: &str, path: Option<&Path>) -> CmdResult<()> {
    match path {
        Some(path) if path != Path::new("-") => std::fs::write(path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
        _ => print(text)?,
    }
    Ok(())
}

/// Prints to standard output; a reader that has seen enough is no failure.
fn print(text: &str) -> CmdResult<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Failure::failed),
    }
}
