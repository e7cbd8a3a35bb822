//! How far the model of cost is off where it was not fitted: loads of labs, and models of those up to half the links' rate that
//! predict the CPUs of those above.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::Args;
use serde::Deserialize;

/// Hold the model of cost against loads that it was not fitted to
#[derive(Debug, Args)]
pub struct CapacityArgs {
    /// Rates of the labs' links
    #[arg(long = "rate", value_name = "RATE", default_values = ["500M", "1G", "2G"])]
    rates: Vec<String>,
    /// Runs of each
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// The linerate to measure with [default: beside this program]
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
}

/// What `linerate capacity -J` prints, as far as it is read here.
#[derive(Debug, Deserialize)]
struct Document {
    above_half: Vec<Above>,
}

#[derive(Debug, Deserialize)]
struct Above {
    share: f64,
    told: Told,
    measured: f64,
}

#[derive(Debug, Deserialize)]
struct Told {
    value: f64,
    low: f64,
    high: f64,
}

impl Above {
    fn error(&self) -> f64 {
        (self.told.value / self.measured - 1.0).abs()
    }
}

/// Runs the command.
pub fn capacity(args: &CapacityArgs) -> anyhow::Result<()> {
    let linerate = match &args.linerate {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("linerate"),
    };
    println!(
        "| links | loads | median error | 90 % below | largest | measured inside the interval |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    let mut all = Vec::new();
    for rate in &args.rates {
        let mut of_rate = Vec::new();
        for _ in 0..args.rounds {
            of_rate.extend(loads(&linerate, rate)?);
        }
        print_row(rate, &of_rate);
        all.extend(of_rate);
    }
    print_row("all", &all);
    Ok(())
}

/// Measures the loads of a lab, and returns what the model says of those above half of `rate`.
fn loads(linerate: &Path, rate: &str) -> anyhow::Result<Vec<Above>> {
    let bundle =
        std::env::temp_dir().join(format!("linerate-capacity-{}.bundle", std::process::id()));
    let mut run = Command::new(linerate);
    run.args([
        "run",
        "--experiment",
        "load-steps",
        "--lab",
        "--lab-rate",
        rate,
        "--out",
    ]);
    run.arg(&bundle).stdout(Stdio::null()).stderr(Stdio::null());
    let status = run
        .status()
        .with_context(|| format!("cannot run {}", linerate.display()));
    let read = status.and_then(|status| {
        ensure!(
            status.success(),
            "the run in a lab of {rate} ended with {status}"
        );
        let told = Command::new(linerate)
            .arg("capacity")
            .arg(&bundle)
            .arg("-J")
            .output()?;
        let document: Document = serde_json::from_slice(&told.stdout)
            .with_context(|| String::from_utf8_lossy(&told.stderr).into_owned())?;
        Ok(document.above_half)
    });
    // Of a run that failed there may be none.
    let _gone = std::fs::remove_dir_all(&bundle);
    read
}

fn print_row(name: &str, found: &[Above]) {
    let mut errors: Vec<f64> = found.iter().map(Above::error).collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * errors.len() as f64) as usize;
        let error = errors.get(place.min(errors.len().saturating_sub(1)));
        error.map_or("–".to_owned(), |error| format!("{:.1} %", 100.0 * error))
    };
    let inside = found
        .iter()
        .filter(|it| (it.told.low..=it.told.high).contains(&it.measured));
    let inside = 100.0 * inside.count() as f64 / found.len().max(1) as f64;
    let most = found.iter().map(|it| it.share).fold(0.0, f64::max);
    println!(
        "| {name}, up to {:.0} % of it | {} | {} | {} | {} | {inside:.1} % |",
        100.0 * most,
        found.len(),
        at(0.5),
        at(0.9),
        at(1.0),
    );
}
