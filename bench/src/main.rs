//! Side-by-side runs against the peers: `cargo run -p bench --release`.
//!
//! Every round runs each row once, the first of the round changing from round to round, so that
//! whatever else the machine does falls on all of them. A run during which other programs used more
//! than a share of the machine is thrown away and repeated. The result is a table in Markdown and a
//! JSON document with medians, ranges, CPU time of each end, ratios to the best peer and to our own
//! bare loops, and what linerate must reach beside what it has.
//!
//! * [`workload`]: what is compared, and the targets.
//! * [`tool`]: the programs; to add one, a file there and a line in [`tool::ALL`].
//! * [`probe`]: bare loops, about what the kernel allows.
//! * [`environment`], [`launch`], [`side`], [`run`]: one run, its two ends and what they used.
//! * [`truth`]: how often the analysis is right.
//! * [`corpus`]: recordings of set-ups whose truth is known, and what the analysis concludes of them.
//! * [`capacity`]: how far the model of cost is off where it was not fitted.
//! * [`attack`], [`hostile`], [`bare`]: what real clients get of an agent that is attacked, or beside a service that is.
//! * [`rounds`], [`target`], [`table`], [`document`]: many runs, and what they give.
//! * [`kept`], [`page`]: results that are checked in, and the page of them.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its result"
)]

mod attack;
mod bare;
mod capacity;
mod corpus;
mod document;
mod environment;
mod hostile;
mod interrupt;
mod kept;
mod launch;
mod machine;
mod page;
mod probe;
mod rounds;
mod run;
mod side;
mod sys;
mod table;
mod target;
mod tool;
mod truth;
mod workload;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::document::Document;
use crate::environment::{Environment, Lab};
use crate::run::Place;
use crate::workload::Contest;

/// Compare linerate with its peers and with bare loops.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    part: Option<Verb>,
    /// Only this workload (repeatable)
    #[arg(long = "workload", value_name = "NAME")]
    workloads: Vec<Contest>,
    /// Only this environment (repeatable)
    #[arg(long = "environment", value_name = "NAME")]
    environments: Vec<Environment>,
    /// Only this tool (repeatable)
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// List workloads, environments and tools
    #[arg(long)]
    list: bool,
    /// Rounds; each runs every row once
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Share of the machine that other programs may use during a run
    #[arg(long, default_value_t = 0.08)]
    others_max: f64,
    /// Congestion control of all tools, set in a lab's hosts; `host` for the machine's own
    #[arg(long, default_value = "reno", value_name = "NAME")]
    congestion: String,
    /// The linerate to measure [default: beside this program]
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
    /// Write bench.md and bench.json into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON instead of Markdown
    #[arg(long)]
    json: bool,
    /// Put the results into docs/performance.json, and write docs/performance.md of it
    #[arg(long)]
    publish: bool,
}

/// What this program also is.
#[derive(Debug, Subcommand)]
enum Verb {
    /// One end of a bare loop
    Probe(probe::ProbeArgs),
    /// Hold the analysis against studies of known truth
    Truth(truth::TruthArgs),
    /// Make recordings of known truth, and hold the analysis against them
    Corpus(corpus::CorpusArgs),
    /// Compare what two builds conclude of the corpus
    Verdicts(corpus::VerdictsArgs),
    /// Hold the model of cost against loads that it was not fitted to
    Capacity(capacity::CapacityArgs),
    /// Write docs/performance.md from docs/performance.json
    Page(page::PageArgs),
    /// Measure what real clients get of an agent that is attacked
    Attack(attack::AttackArgs),
    /// Attack an agent (internal)
    #[command(hide = true)]
    Hostile(hostile::HostileArgs),
    /// Take what comes and answer nothing (internal)
    #[command(hide = true)]
    Bare(bare::BareArgs),
    /// Become a program, in a cgroup and on a CPU (internal)
    #[command(hide = true)]
    Launch(launch::LaunchArgs),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match &args.part {
        Some(Verb::Probe(args)) => probe::probe(args),
        Some(Verb::Launch(args)) => launch::launch(args),
        Some(Verb::Truth(args)) => truth::truth(args),
        Some(Verb::Corpus(args)) => corpus::corpus(args),
        Some(Verb::Verdicts(args)) => corpus::compare(args),
        Some(Verb::Capacity(args)) => capacity::capacity(args),
        Some(Verb::Page(args)) => page::page(args),
        Some(Verb::Attack(args)) => attack::attack(args),
        Some(Verb::Hostile(args)) => hostile::hostile(args),
        Some(Verb::Bare(args)) => bare::bare(args),
        None if args.list => {
            list();
            Ok(())
        }
        None => compare(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the name of a value on the command line.
fn name_of(value: &impl clap::ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn list() {
    println!("workloads:");
    for workload in Contest::ALL {
        let (name, title) = workload.words();
        println!("  {name:<20} {title}");
    }
    let environments = <Environment as clap::ValueEnum>::value_variants();
    let names: Vec<String> = environments.iter().map(|one| one.name()).collect();
    println!("environments: {}", names.join(", "));
    let names: Vec<&str> = tool::ALL.iter().map(|tool| tool.name).collect();
    println!("tools: {}", names.join(", "));
}

fn compare(args: &Args) -> anyhow::Result<()> {
    let bench = std::env::current_exe()?;
    let linerate = match &args.linerate {
        Some(path) => path.canonicalize().unwrap_or_else(|_| path.clone()),
        None => bench.with_file_name("linerate"),
    };
    anyhow::ensure!(
        linerate.exists(),
        "{} does not exist; build it with `cargo build --release`, or name it with --linerate",
        linerate.display()
    );
    let scratch = std::env::temp_dir().join(format!("bench-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let programs = tool::Programs { linerate, bench };
    let found = run_all(args, &programs, &scratch);
    // Left behind only if the system does not let us, and then it is a few files below /tmp.
    let _ = fs::remove_dir_all(&scratch);
    let document = found?;
    if args.publish {
        publish(&document)?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document)?)
    } else {
        print!("{}", table::markdown(&document))
    }
    Ok(())
}

/// Puts what was found into the results that are checked in.
fn publish(document: &Document) -> anyhow::Result<()> {
    let path = Path::new(page::RESULTS);
    let mut results = kept::Results::read(path)?;
    let now = jiff::Timestamp::now().to_string();
    let date = now.split('T').next().unwrap_or_default().to_owned();
    results.publish(kept::Set::of(document, date));
    let mut text = serde_json::to_string_pretty(&results)?;
    text.push('\n');
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    page::write(path, &results)
}

/// Writes what there is so far, so that an interrupted comparison keeps what it has.
fn keep(folder: Option<&Path>, document: &Document) -> anyhow::Result<()> {
    let Some(folder) = folder else {
        return Ok(());
    };
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    write("bench.md", &table::markdown(document))?;
    write("bench.json", &serde_json::to_string_pretty(document)?)
}

fn run_all(args: &Args, programs: &tool::Programs, scratch: &Path) -> anyhow::Result<Document> {
    interrupt::watch()?;
    let wanted = |name: &str| args.tools.is_empty() || args.tools.iter().any(|one| one == name);
    let mut tools: Vec<tool::Tool> = tool::ALL.into();
    tools.retain(|tool| wanted(tool.name));
    let versions: Vec<_> = tools
        .iter()
        .map(|tool| (tool.name, (tool.version)(programs)))
        .collect();
    tools.retain(|tool| {
        versions
            .iter()
            .any(|(name, version)| *name == tool.name && version.is_some())
    });
    for (name, _) in versions.iter().filter(|(_, version)| version.is_none()) {
        eprintln!(
            "bench: {name} is not installed and is left out; bench/install installs the peers"
        );
    }
    let settings = rounds::Settings {
        rounds: args.rounds,
        seconds: args.seconds,
        others_share_max: args.others_max,
    };
    let of_host = args.congestion == "host";
    let algorithm = (!of_host).then_some(args.congestion.as_str());
    let machine = machine::Machine::read();
    let environments = match &args.environments[..] {
        [] => <Environment as clap::ValueEnum>::value_variants(),
        some => some,
    };
    let workloads = if args.workloads.is_empty() {
        &Contest::ALL[..]
    } else {
        &args.workloads
    };
    let needs_lab = !of_host || environments.iter().any(|environment| environment.in_lab());
    let lab = if needs_lab {
        Some(
            Lab::up(&programs.linerate, scratch, algorithm)
                .context("no lab; --congestion host --environment loopback needs none")?,
        )
    } else {
        None
    };
    let congestion = if of_host {
        machine.congestion.clone()
    } else {
        args.congestion.clone()
    };
    let mut document = Document {
        format: document::FORMAT,
        machine,
        congestion,
        settings,
        tools: versions,
        comparisons: Vec::new(),
    };
    for &environment in environments {
        for &workload in workloads
            .iter()
            .filter(|&&workload| environment.takes(workload))
        {
            let on_host = workload.placement() == workload::Placement::Host;
            let in_lab = !on_host && (environment.in_lab() || !of_host);
            let place = Place {
                environment,
                lab: lab.as_ref().filter(|_| in_lab),
                scratch,
            };
            let comparison = rounds::compare(&tools, programs, place, workload, settings)?;
            document.comparisons.push(comparison);
            keep(args.out.as_deref(), &document)?;
        }
    }
    Ok(document)
}
