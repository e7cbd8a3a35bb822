//! `linerate fleet sbatch`: the batch script that does what `linerate fleet run` does, and its submission.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow};
use linerate_model::fleet::{FleetFile, Launch, SlurmLaunch};

use super::fleet_file::{draft, read};
use crate::args::FleetSbatchArgs;
use crate::exit::{CmdResult, Exit, Failure};
use crate::shell::{quoted, quoted_path};
use crate::{bundle, meant, term};

/// What a batch job is.
struct Batch<'a> {
    slurm: &'a SlurmLaunch,
    fleet: &'a FleetFile,
    /// The program that runs on the first node.
    program: PathBuf,
    /// What it is told.
    words: Vec<String>,
    /// Where its bundle is to be.
    directory: PathBuf,
}

/// Runs the command.
pub fn sbatch(args: &FleetSbatchArgs) -> CmdResult {
    let fleet = read(&args.run.fleet.file)?;
    let Launch::Slurm(slurm) = &fleet.launch else {
        let error = anyhow!("the fleet file's `launch` is not \"slurm\"");
        return Err(Failure::usage(error).next("docs/guide/fleet.md says what it needs for that"));
    };
    if fleet.hosts.is_empty() && slurm.nodes.is_none() {
        let error = anyhow!("the fleet file says not how many nodes it wants");
        return Err(Failure::usage(error)
            .next("say how many with `nodes` in [slurm], or name them with [[host]]"));
    }
    let moment = bundle::Moment::now();
    let (_, seed) = bundle::new_run(&moment, args.run.seed)?;
    // What cannot be is told now, not after hours in a queue; which nodes there are is known then only.
    if fleet.hosts.is_empty() {
        meant::fleet_hosts(&args.run.fleet, &fleet)?;
    } else {
        let draft = draft(&args.run, &fleet, seed)?;
        meant::of_fleet(&args.run, &fleet, draft, seed)?;
    }
    let directory = bundle::directory(args.run.out.as_deref(), "fleet", &moment);
    let directory = std::path::absolute(directory)?;
    bundle::check_new(&directory)?;
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let on_nodes = slurm.program.as_ref().filter(|_| slurm.directory.is_none());
    let out = match args.run.out {
        Some(_) => None,
        None => Some(&*directory),
    };
    let batch = Batch {
        slurm,
        fleet: &fleet,
        program: std::path::absolute(on_nodes.unwrap_or(&own))?,
        words: run_words(std::env::args_os(), out),
        directory: directory.clone(),
    };
    let script = batch.script();
    if args.print {
        // As it is: a line that is broken is another script.
        script.lines().for_each(term::line);
        return Ok(Exit::Ok);
    }
    let job = submit(&script)?;
    term::labelled("job", &job);
    term::labelled(
        "report",
        &batch.directory.join("report.html").display().to_string(),
    );
    term::labelled("log", &batch.log().display().to_string());
    Ok(Exit::Ok)
}

impl Batch<'_> {
    /// Returns the script. Each line that begins with `#SBATCH` is an option of sbatch(1).
    fn script(&self) -> String {
        let hosts = &self.fleet.hosts;
        let nodes = match hosts.len() {
            0 => self.slurm.nodes.unwrap_or(1) as usize,
            named => named,
        };
        // `%` begins what Slurm puts in, such as the number of the job.
        let log = self.log().display().to_string().replace('%', "%%");
        let mut options = vec![
            "--job-name=linerate".to_owned(),
            format!("--nodes={nodes}"),
            "--ntasks-per-node=1".to_owned(),
            "--no-kill".to_owned(),
            format!("--output={log}"),
        ];
        if !hosts.is_empty() {
            let names: Vec<&str> = hosts.iter().map(|host| &*host.name.0).collect();
            options.push(format!("--nodelist={}", names.join(",")));
        }
        options.extend(self.slurm.allocation());
        let options = options
            .iter()
            .map(|option| format!("#SBATCH {}\n", quoted(option)));
        let words = self.words.iter().map(|word| format!(" {}", quoted(word)));
        format!(
            "#!/bin/sh\n{}exec {}{}\n",
            options.collect::<String>(),
            quoted_path(&self.program),
            words.collect::<String>()
        )
    }

    /// Returns the file that takes what the job says.
    fn log(&self) -> PathBuf {
        let mut name = self.directory.as_os_str().to_owned();
        name.push(".log");
        name.into()
    }
}

/// Returns what the program is told in a job, by what was typed here: the same, and where its bundle is to be unless
/// that is among it.
fn run_words(typed: impl Iterator<Item = OsString>, directory: Option<&Path>) -> Vec<String> {
    let out = directory.map(|directory| ["--out".to_owned(), directory.display().to_string()]);
    let out = out.into_iter().flatten();
    let given = typed
        .skip_while(|word| word != "sbatch")
        .skip(1)
        .filter(|word| word != "--print")
        .map(|word| word.to_string_lossy().into_owned());
    let command = ["fleet".to_owned(), "run".to_owned()];
    command.into_iter().chain(out).chain(given).collect()
}

/// Submits a script and returns the number of its job.
fn submit(script: &str) -> CmdResult<String> {
    let mut sbatch = Command::new("sbatch");
    sbatch.arg("--parsable");
    let child = sbatch
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.context("cannot start sbatch").map_err(|error| {
        Failure::failed(error).next("run it on a host with Slurm's commands, where `sinfo` answers")
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // Who does not read has ended, and that says more.
        let _ = stdin.write_all(script.as_bytes());
    }
    let done = child.wait_with_output().context("cannot wait for sbatch")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let error = anyhow!("sbatch takes no such job: {}", said.trim());
        return Err(Failure::failed(error).next(
            "hold [slurm] and the hosts of the fleet file against what `sinfo -N -l` lists",
        ));
    }
    let told = String::from_utf8_lossy(&done.stdout);
    // JOB, or JOB;CLUSTER.
    let job = told.trim().split(';').next().unwrap_or_default();
    Ok(job.to_owned())
}
