//! What `linerate explain HOST` asks of `linerate run`: a stream, what proves what limits it, and its story.

use clap::Parser;

use super::PROVE;
use crate::args::{Cli, Command, ExplainArgs, RunArgs};
use crate::exit::{CmdResult, Failure};

/// Returns the flags of `linerate run` that come to it.
pub fn explained(args: &ExplainArgs, host: &str) -> CmdResult<Box<RunArgs>> {
    let mut words = vec!["linerate".to_owned(), "run".to_owned()];
    words.push(format!("--prove={}", args.prove.unwrap_or(PROVE.as_s())));
    words.extend(args.time.map(|time| format!("--time={}", time.as_s())));
    words.push(if args.json { "--json" } else { "--interval=0" }.to_owned());
    words.extend(["--".to_owned(), host.to_owned()]);
    let cli = Cli::try_parse_from(words).map_err(Failure::usage)?;
    let Command::Run(mut run) = cli.command else {
        unreachable!("the second word is run");
    };
    run.fleet.port = Some(args.agent_port);
    run.fleet.token_file.clone_from(&args.token_file);
    run.fleet.tls = args.tls.clone();
    run.output.out.clone_from(&args.out);
    run.output.story = true;
    Ok(run)
}
