//! `linerate`: characterises the network performance of servers.
//!
//! This crate is the command line: what the user typed becomes calls of the other rooms, and what
//! they answer becomes lines, files and an exit code. It is the only place where rooms meet.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

mod args;
mod browser;
mod bundle;
mod cmd;
mod exit;
mod files;
mod gate;
mod hosts;
mod interrupt;
mod iperf3;
mod meant;
mod peer;
mod places;
mod read_ahead;
mod shell;
mod similar;
mod term;
mod watching;
mod workload;

use args::{Cli, Command};
use exit::{Exit, Failure};

/// The allocator of the static program: with musl's a report takes 20 % more CPU than with glibc's, and with this one
/// 8 % less, for 20 MB. Payload meets no allocator, and takes the same CPU with all three.
#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    linerate_agent::frugal_heap();
    linerate_agent::map_single_pages();
    let words = args::with_habits(std::env::args_os());
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &words),
    };
    let form = meant::printed(&cli.command);
    let result = match cli.command {
        Command::Study(args) => cmd::study::study(&args),
        Command::Serve(args) => cmd::serve::serve(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Watch(args) => cmd::watch::watch(&args),
        Command::Plan(args) => cmd::plan::plan(&args),
        Command::Report(args) => cmd::report::report(&args),
        Command::Compare(args) => cmd::compare::compare(&args),
        Command::Capacity(args) => cmd::capacity::capacity(&args),
        Command::Explain(args) => cmd::explain::explain(&args),
        Command::Schema(args) => cmd::schema::schema(&args),
        Command::Fleet(args) => cmd::fleet::fleet(&args),
        Command::Trace(args) => cmd::trace::trace(&args),
        Command::Lab(args) => cmd::lab::lab(&args),
        Command::Token(args) => cmd::token::token(&args),
        Command::Completions(args) => cmd::completions::completions(&args),
        Command::Man(args) => cmd::man::man(&args),
    };
    let result = match interrupt::unprinted() {
        Some(error) => Err(unprinted(error)),
        None => result,
    };
    let exit = result.unwrap_or_else(|failure| {
        term::error(&failure);
        term::failure::print(form, &failure);
        failure.exit
    });
    exit.into()
}

/// Returns the failure of a command whose standard output takes no more; what it measured ended with that.
fn unprinted(error: &std::io::Error) -> Failure {
    Failure::failed(anyhow::anyhow!("cannot write to standard output: {error}")).next(
        "free space where it goes and run again; with --out DIR a run keeps what it measured there",
    )
}

/// Says why a command line is none, and what to type instead; prints the help where that was asked for.
fn refuse(error: &clap::Error, words: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let hint = args::hint::of(error, &words);
    // A command without its subcommand is answered by the help: nothing was typed that is wrong.
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        term::bare_note(&error.render().to_string());
        return Exit::Usage.into();
    }
    let is_unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    let said = term::usage(&error.render().to_string(), is_unknown, hint.as_deref());
    let help = || {
        let command = words.get(1).filter(|word| !word.starts_with('-'));
        let command = command.map_or(String::new(), |command| format!(" {command}"));
        format!("`linerate{command} --help` lists commands and options")
    };
    let failure = Failure {
        next: Some(hint.unwrap_or_else(help)),
        ..Failure::usage(anyhow::anyhow!("{said}"))
    };
    let (form, iperf3) = meant::asked(&words);
    if words.get(1).is_some_and(|command| command == "run") {
        term::single::print_failure(form, iperf3, &failure)
    } else {
        term::failure::print(form, &failure)
    }
    Exit::Usage.into()
}
