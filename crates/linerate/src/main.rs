//! `linerate`: characterises the network performance of servers.
//!
//! This crate is the command line: what the user typed becomes calls of the other rooms, and what
//! they answer becomes lines, files and an exit code. It is the only place where rooms meet.

use std::process::ExitCode;

use clap::Parser;

mod args;
mod bundle;
mod cmd;
mod exit;
mod files;
mod hosts;
mod interrupt;
mod iperf3;
mod meant;
mod peer;
mod term;
mod watching;
mod workload;

use args::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    linerate_agent::frugal_heap();
    let cli = Cli::parse_from(args::with_habits(std::env::args_os()));
    let result = match cli.command {
        Command::Study(args) => cmd::study::study(&args),
        Command::Serve(args) => cmd::serve::serve(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Watch(args) => cmd::watch::watch(&args),
        Command::Plan(args) => cmd::plan::plan(&args),
        Command::Report(args) => cmd::report::report(&args),
        Command::Trace(args) => cmd::trace::trace(&args),
        Command::Lab(args) => cmd::lab::lab(&args),
    };
    let exit = result.unwrap_or_else(|failure| {
        term::error(&failure);
        failure.exit
    });
    if exit != Exit::Ok {
        ExitCode::from(exit.code())
    } else {
        ExitCode::SUCCESS
    }
}
