//! Side-by-side runs against the peers: `cargo run -p bench --release`.
//!
//! Every round runs each tool once, the first of the round changing from round to round, so that
//! whatever else the machine does falls on all of them. A run during which other programs used more
//! than a share of the machine is thrown away and repeated. The result is a Markdown table, or
//! JSON, with medians, ranges and the ratio to the peer in the same rounds.
//!
//! To add a tool: a file in `tool/`, a line in [`tool::all`].
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its result"
)]

mod machine;
mod rounds;
mod table;
mod tool;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Compare linerate with its peers on loopback.
#[derive(Debug, Parser)]
struct Args {
    /// Rounds; each runs every tool once
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// The linerate to measure [default: beside this program]
    #[arg(long)]
    linerate: Option<PathBuf>,
    /// Pin client and server, as `0,1`
    #[arg(long)]
    affinity: Option<String>,
    /// Share of the machine that other programs may use during a run
    #[arg(long, default_value_t = 0.08)]
    others_max: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let linerate = match &args.linerate {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("linerate"),
    };
    anyhow::ensure!(
        linerate.exists(),
        "{} does not exist; build it with `cargo build --release`, or name it with --linerate",
        linerate.display()
    );
    let settings = tool::Settings {
        seconds: args.seconds,
        affinity: args.affinity.clone(),
        linerate,
    };
    let (tools, missing) = tool::all(&settings)?;
    for name in &missing {
        eprintln!("bench: {name} is not installed and is left out");
    }
    let workloads = [
        tool::Workload::TcpStream { flows: 1 },
        tool::Workload::TcpStream { flows: 10 },
    ];
    let mut results = Vec::new();
    for workload in workloads {
        results.push(rounds::compare(
            &tools,
            workload,
            args.rounds,
            args.others_max,
        )?);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    } else {
        print!("{}", table::markdown(&results));
    }
    Ok(())
}
