//! `linerate completions`: what completes the command line in a shell, made of its own definition.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::{CmdResult, Exit};
use crate::term;

/// Runs the command.
pub fn completions(args: &CompletionsArgs) -> CmdResult {
    // In memory first: the library ends the program where standard output takes no more.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "linerate", &mut text);
    term::line(String::from_utf8_lossy(&text).trim_end());
    Ok(Exit::Ok)
}
