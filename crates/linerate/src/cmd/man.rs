//! `linerate man`: the man pages, made of the command line's own definition.

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Cli, ManArgs};
use crate::exit::{CmdResult, Exit};
use crate::term;

/// Runs the command.
pub fn man(args: &ManArgs) -> CmdResult {
    let dir = &args.dir;
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
        .with_context(|| format!("cannot write man pages to {}", dir.display()))?;
    term::note(&format!("man pages are in {}", dir.display()));
    Ok(Exit::Ok)
}
