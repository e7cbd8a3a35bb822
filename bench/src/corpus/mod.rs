//! Recordings of set-ups whose truth is known, and what the program concludes of them.
//!
//! `bench corpus record` measures the set-ups of [`setup`] one after another (an hour on a quiet machine, as root, with
//! `ip`, `tc`, `nft` and `ethtool`) and goes on where it was interrupted; `bench corpus pack` puts what there is into
//! bench/corpus. `bench corpus verdicts` says what this build concludes, `bench verdicts OLD NEW` what another concludes
//! instead, and `bench corpus check` fails where that is not what bench/corpus/verdicts.tsv has. `bench corpus prove` measures
//! set-ups with `--prove`, and counts how often that is right.

mod fit;
mod place;
mod prove;
mod quiet;
mod record;
// Rows of a table.
#[rustfmt::skip]
mod setup;
mod vary;
mod verdicts;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use linerate_analyze::infer::Weights;
use linerate_truth::corpus::Recorded;

use crate::interrupt;

/// Where the recordings are.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
/// What was concluded of them when somebody last looked at it.
const VERDICTS: &str = "verdicts.tsv";
/// What facts are worth for causes.
const WEIGHTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crates/linerate-analyze/src/causes/weights.tsv"
);
/// What the recordings may weigh.
const BYTES_MAX: u64 = 8 << 20;

/// How long set-ups are measured.
const RUN_S: u32 = 3;

/// Make recordings of known truth, and hold the analysis against them
#[derive(Debug, Args)]
pub struct CorpusArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure the set-ups that are not recorded yet
    Record(RecordArgs),
    /// Put what was recorded into bench/corpus
    Pack {
        /// Where the recordings are
        #[arg(long, default_value = "target/corpus")]
        folder: PathBuf,
    },
    /// Measure set-ups with --prove, and count how often what it says is right
    Prove(ProveArgs),
    /// Print what this build concludes of each recording
    Verdicts {
        /// The recordings
        #[arg(long, default_value = CORPUS)]
        folder: PathBuf,
    },
    /// Print to what degree each recording shows each fact, 0 to 1; nothing where it is moot, ? where it was not read
    Facts {
        /// The recordings
        #[arg(long, default_value = CORPUS)]
        folder: PathBuf,
    },
    /// Count what each fact is worth for each cause, and write it into the program
    Fit {
        /// The recordings
        #[arg(long, default_value = CORPUS)]
        folder: PathBuf,
        /// Write nothing, and print what is concluded of each recording
        #[arg(long)]
        look: bool,
    },
    /// Fail where a recording without one of its metrics is told as another limiter than the whole one
    Lessen {
        /// The recordings
        #[arg(long, default_value = CORPUS)]
        folder: PathBuf,
    },
    /// Count how often another limiter or none is told where a number is a tenth larger or smaller
    Move {
        /// The recordings
        #[arg(long, default_value = CORPUS)]
        folder: PathBuf,
    },
    /// Fail where this build concludes something else than what was accepted
    Check {
        /// Accept what it concludes
        #[arg(long)]
        accept: bool,
    },
}

/// What is recorded, and how.
#[derive(Debug, Args)]
struct RecordArgs {
    /// Only set-ups whose name begins with this (repeatable)
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// List them
    #[arg(long)]
    list: bool,
    /// Runs of each
    #[arg(long, default_value_t = 2)]
    runs: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = RUN_S)]
    seconds: u32,
    /// Where recordings are kept until they are packed
    #[arg(long, default_value = "target/corpus")]
    folder: PathBuf,
    /// The linerate that measures [default: beside this program]
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
}

/// What is proven, and how.
#[derive(Debug, Args)]
struct ProveArgs {
    /// Only set-ups whose name begins with this (repeatable) [default: those that could be named and are not]
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Seconds that the changes of a set-up may take
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// The linerate that measures [default: beside this program]
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
    /// Write the lines into this file as well
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What two builds conclude.
#[derive(Debug, Args)]
pub struct VerdictsArgs {
    /// What `bench corpus verdicts` printed
    old: PathBuf,
    /// The same of another build
    new: PathBuf,
}

/// Does what was asked of the corpus.
pub fn corpus(args: &CorpusArgs) -> anyhow::Result<()> {
    match &args.verb {
        Verb::Record(args) => record(args),
        Verb::Prove(args) => prove(args),
        Verb::Pack { folder } => {
            let (count, bytes) = record::pack(folder, Path::new(CORPUS), &setup::all())?;
            println!("{count} recordings, {bytes} bytes");
            ensure!(bytes <= BYTES_MAX, "more than {BYTES_MAX} bytes");
            Ok(())
        }
        Verb::Verdicts { folder } => {
            print!("{}", verdicts::text(&verdicts::of_corpus(folder)?));
            Ok(())
        }
        Verb::Facts { folder } => {
            let known = verdicts::facts(folder)?;
            print!("{known}");
            Ok(())
        }
        Verb::Fit { folder, look } => {
            let cases = verdicts::of_each(folder, fit::Case::of)?;
            let (weights, told) = fit::fit(&cases);
            print!("{told}");
            if *look {
                print!("{}", fit::concluded(&cases, &Weights::parse(&weights)));
                return Ok(());
            }
            fs::write(WEIGHTS, weights).context(WEIGHTS)
        }
        Verb::Lessen { folder } => {
            let others = varied(folder, vary::lessened)?;
            ensure!(others == 0, "less evidence makes another name");
            Ok(())
        }
        Verb::Move { folder } => varied(folder, vary::moved).map(drop),
        Verb::Check { accept } => check(*accept),
    }
}

/// Tells what `vary` makes of each recording; returns how much is told otherwise.
fn varied(folder: &Path, vary: fn(&Recorded) -> vary::Varied) -> anyhow::Result<usize> {
    let all = verdicts::of_each(folder, vary)?;
    let tries: usize = all.iter().map(|one| one.tries).sum();
    let others: usize = all.iter().map(|one| one.others.len()).sum();
    let changed = all.iter().filter(|one| !one.others.is_empty()).count();
    for told in all.iter().flat_map(|one| &one.others) {
        println!("  {told}");
    }
    println!(
        "{tries} tries, {others} of them told otherwise, of {changed} of {} recordings",
        all.len()
    );
    Ok(others)
}

/// Prints what changes from one build to another.
pub fn compare(args: &VerdictsArgs) -> anyhow::Result<()> {
    let read = |path: &Path| {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        verdicts::parse(&text)
    };
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    print!("{}", verdicts::changes(&old, &new));
    print!("\n{}\n{}", verdicts::summary(&old), verdicts::summary(&new));
    Ok(())
}

fn record(args: &RecordArgs) -> anyhow::Result<()> {
    let mut setups = setup::all();
    setups.retain(|setup| args.only.is_empty() || begins(&setup.name, &args.only));
    if args.list {
        for setup in &setups {
            println!("{}\t{}\t{}", setup.name, setup.cause, setup.flags);
        }
        return Ok(());
    }
    interrupt::watch()?;
    let settings = record::Settings {
        linerate: program(args.linerate.as_deref())?,
        folder: args.folder.clone(),
        seconds: args.seconds,
        runs: args.runs,
        prove_s: None,
    };
    let left_out = record::record(&settings, &setups)?;
    println!("{} of {} left out", left_out.len(), setups.len());
    left_out.iter().for_each(|told| println!("  {told}"));
    Ok(())
}

fn prove(args: &ProveArgs) -> anyhow::Result<()> {
    let accepted = accepted()?;
    let is_open = |name: &str| {
        let own = accepted.iter().find(|verdict| verdict.setup == name);
        own.is_some_and(|verdict| verdict.is_nameable && verdict.named.is_none())
    };
    let mut setups = setup::all();
    setups.retain(|setup| match args.only.as_slice() {
        [] => is_open(&setup.name),
        only => begins(&setup.name, only),
    });
    interrupt::watch()?;
    let settings = record::Settings {
        linerate: program(args.linerate.as_deref())?,
        folder: PathBuf::new(),
        seconds: RUN_S,
        runs: 1,
        prove_s: Some(args.seconds),
    };
    let mut out = args.out.as_ref().map(fs::File::create).transpose()?;
    let counts = prove::prove(&settings, &setups, &mut |line| {
        println!("{line}");
        if let Some(out) = &mut out {
            writeln!(out, "{line}")?;
        }
        Ok(())
    })?;
    println!("{counts}");
    Ok(())
}

/// Whether a name begins with one of these.
fn begins(name: &str, only: &[String]) -> bool {
    only.iter().any(|begin| name.starts_with(begin))
}

/// Returns the linerate that measures.
fn program(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("linerate");
    let linerate = given.unwrap_or(&beside);
    linerate
        .canonicalize()
        .with_context(|| linerate.display().to_string())
}

/// Returns the verdicts that were accepted.
fn accepted() -> anyhow::Result<Vec<verdicts::Verdict>> {
    let path = Path::new(CORPUS).join(VERDICTS);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    verdicts::parse(&text)
}

fn check(accept: bool) -> anyhow::Result<()> {
    let folder = Path::new(CORPUS);
    let new = verdicts::of_corpus(folder)?;
    println!("{}\n{}", verdicts::summary(&new), verdicts::confusion(&new));
    if accept {
        fs::write(folder.join(VERDICTS), verdicts::text(&new))?;
        return Ok(());
    }
    let old = accepted()?;
    print!("{}", verdicts::changes(&old, &new));
    ensure!(
        old == new,
        "other conclusions than accepted; where they are better, `bench corpus check --accept`"
    );
    Ok(())
}
