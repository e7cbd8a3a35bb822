//! `linerate report`: render a bundle again from its stored data.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::args::{ReportArgs, ReportFormat};
use crate::exit::{CmdResult, Outcome};
use crate::{bundle, term};

/// Runs the command.
pub fn report(args: &ReportArgs) -> CmdResult {
    if args.format == ReportFormat::Html && args.out.is_none() {
        let (_, _, file) = bundle::report(&args.bundle)?;
        term::line(&file.display().to_string());
        return Ok(Outcome::Ok);
    }
    let analysis = linerate_analyze::analyze(&bundle::read(&args.bundle)?);
    let text = match args.format {
        ReportFormat::Html => linerate_report::html(&analysis),
        ReportFormat::Markdown => linerate_report::markdown(&analysis),
        ReportFormat::Json => linerate_report::json(&analysis),
    };
    match args.out.as_deref() {
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(path) if path == Path::new("-") => std::io::stdout().write_all(text.as_bytes())?,
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
    }
    Ok(Outcome::Ok)
}
