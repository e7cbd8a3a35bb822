//! Recordings of set-ups whose truth is known, and what the program concludes of them.
//!
//! `bench corpus record` measures the set-ups of [`setup`] one after another (an hour on a quiet machine, as root, with
//! `ip`, `tc`, `nft` and `ethtool`) and goes on where it was interrupted; `bench corpus pack` puts what there is into
//! bench/corpus. `bench corpus verdicts` says what this build concludes, `bench verdicts OLD NEW` what another concludes
//! instead, and `bench corpus check` fails where that is not what bench/corpus/verdicts.tsv has.

mod fit;
mod place;
mod quiet;
mod record;
// Rows of a table.
#[rustfmt::skip]
mod setup;
mod verdicts;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use linerate_analyze::infer::Weights;

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
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Where recordings are kept until they are packed
    #[arg(long, default_value = "target/corpus")]
    folder: PathBuf,
    /// The linerate that measures [default: beside this program]
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
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
            let told = verdicts::of_each(folder, fit::lessened)?;
            let (tries, others) = told.iter().fold((0, Vec::new()), |(sum, mut all), one| {
                all.extend(&one.1);
                (sum + one.0, all)
            });
            println!("{tries} tries, {} of them told as another", others.len());
            others.iter().for_each(|told| println!("  {told}"));
            ensure!(others.is_empty(), "less evidence makes another name");
            Ok(())
        }
        Verb::Check { accept } => check(*accept),
    }
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
    let is_wanted =
        |name: &str| args.only.is_empty() || args.only.iter().any(|begin| name.starts_with(begin));
    setups.retain(|setup| is_wanted(&setup.name));
    if args.list {
        for setup in &setups {
            println!("{}\t{}\t{}", setup.name, setup.cause, setup.flags);
        }
        return Ok(());
    }
    interrupt::watch()?;
    let beside = std::env::current_exe()?.with_file_name("linerate");
    let linerate = args.linerate.clone().unwrap_or(beside);
    let settings = record::Settings {
        linerate: linerate
            .canonicalize()
            .with_context(|| linerate.display().to_string())?,
        folder: args.folder.clone(),
        seconds: args.seconds,
        runs: args.runs,
    };
    let left_out = record::record(&settings, &setups)?;
    println!("{} of {} left out", left_out.len(), setups.len());
    left_out.iter().for_each(|told| println!("  {told}"));
    Ok(())
}

fn check(accept: bool) -> anyhow::Result<()> {
    let folder = Path::new(CORPUS);
    let new = verdicts::of_corpus(folder)?;
    println!("{}\n{}", verdicts::summary(&new), verdicts::confusion(&new));
    let path = folder.join(VERDICTS);
    if accept {
        fs::write(&path, verdicts::text(&new))?;
        return Ok(());
    }
    let accepted = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let old = verdicts::parse(&accepted)?;
    print!("{}", verdicts::changes(&old, &new));
    ensure!(
        old == new,
        "other conclusions than accepted; where they are better, `bench corpus check --accept`"
    );
    Ok(())
}
