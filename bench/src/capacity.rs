//! How far the model of cost is off where it was not fitted: loads of labs whose links are faster than their hosts, and models of
//! those up to half of what the hosts reach, which predict the CPUs of those above.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::Args;
use serde::Deserialize;

/// Hold the model of cost against loads that it was not fitted to
#[derive(Debug, Args)]
pub struct CapacityArgs {
    /// Rate of the labs' links, more than the hosts reach
    #[arg(long, default_value = "10G", value_name = "RATE")]
    rate: String,
    /// Runs
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
    of_work: Told,
    of_target: Told,
    measured: f64,
}

#[derive(Debug, Deserialize)]
struct Told {
    value: f64,
    low: f64,
    high: f64,
}

impl Told {
    fn error(&self, measured: f64) -> f64 {
        (self.value / measured - 1.0).abs()
    }

    fn is_inside(&self, measured: f64) -> bool {
        (self.low..=self.high).contains(&measured)
    }
}

/// Runs the command.
pub fn capacity(args: &CapacityArgs) -> anyhow::Result<()> {
    let linerate = match &args.linerate {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("linerate"),
    };
    println!(
        "| run | CPUs, by | loads | of the most | median error | 90 % below | largest | inside |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    let mut all = Vec::new();
    for round in 1..=args.rounds {
        let loads = loads(&linerate, &args.rate)?;
        print_rows(&round.to_string(), &loads);
        all.extend(loads);
    }
    print_rows("all", &all);
    Ok(())
}

/// Measures the loads of a lab with links of `rate`, and returns what the model says of those above half of the most.
fn loads(linerate: &Path, rate: &str) -> anyhow::Result<Vec<Above>> {
    let name = format!("linerate-capacity-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder)?;
    let found = loads_in(&folder, linerate, rate);
    fs::remove_dir_all(&folder)?;
    found
}

fn loads_in(folder: &Path, linerate: &Path, rate: &str) -> anyhow::Result<Vec<Above>> {
    let (plan, bundle) = (folder.join("capacity.toml"), folder.join("bundle"));
    fs::write(&plan, include_str!("../capacity.toml"))?;
    let mut run = Command::new(linerate);
    run.args(["run", "--lab", "--lab-rate", rate, "--experiment"]);
    run.arg(&plan).arg("--out").arg(&bundle);
    let run = run.stdout(Stdio::null()).stderr(Stdio::null());
    let status = run
        .status()
        .with_context(|| format!("cannot run {}", linerate.display()))?;
    ensure!(status.success(), "the run in a lab of {rate}: {status}");
    let mut told = Command::new(linerate);
    let told = told.arg("capacity").arg(&bundle).arg("-J").output()?;
    let document: Document = serde_json::from_slice(&told.stdout)
        .with_context(|| String::from_utf8_lossy(&told.stderr).into_owned())?;
    Ok(document.above_half)
}

fn print_rows(name: &str, found: &[Above]) {
    print_row(name, "their work", found, |it| &it.of_work);
    print_row(name, "rate, messages and connections", found, |it| {
        &it.of_target
    });
}

fn print_row(name: &str, by: &str, found: &[Above], told: fn(&Above) -> &Told) {
    let errors = found.iter().map(|it| told(it).error(it.measured));
    let mut errors: Vec<f64> = errors.collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * errors.len() as f64) as usize;
        let error = errors.get(place.min(errors.len().saturating_sub(1)));
        error.map_or("–".to_owned(), |error| format!("{:.1} %", 100.0 * error))
    };
    let inside = found.iter().filter(|it| told(it).is_inside(it.measured));
    let inside = inside.count() as f64;
    let least = found.iter().map(|it| it.share).fold(1.0, f64::min);
    println!(
        "| {name} | {by} | {} | {:.0} to 100 % | {} | {} | {} | {:.1} % |",
        found.len(),
        100.0 * least,
        at(0.5),
        at(0.9),
        at(1.0),
        100.0 * inside / found.len().max(1) as f64,
    );
}
