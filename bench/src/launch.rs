//! The launcher: puts itself into a cgroup and on a CPU, then becomes the program.
//!
//! A process of its own, because both hold for everything that the program starts, and because a
//! lab's host needs the CPU set inside and the cgroup outside.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::Args;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::time::ClockId;
use nix::unistd::Pid;

/// `bench launch`.
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// Cgroup to enter
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// File that is told when the program is begun, in nanoseconds of CLOCK_MONOTONIC
    #[arg(long)]
    began: Option<PathBuf>,
    /// CPU to stay on
    #[arg(long)]
    cpu: Option<usize>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// Becomes the program; returns only if it cannot.
pub fn launch(args: &LaunchArgs) -> anyhow::Result<()> {
    // An interrupted bench leaves no server behind.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if let Some(folder) = &args.cgroup {
        std::fs::write(folder.join("cgroup.procs"), "0")
            .with_context(|| format!("cannot enter {}", folder.display()))?;
    }
    if let Some(cpu) = args.cpu {
        let mut set = CpuSet::new();
        set.set(cpu).with_context(|| format!("no CPU {cpu}"))?;
        sched_setaffinity(Pid::from_raw(0), &set).with_context(|| format!("no CPU {cpu}"))?;
    }
    let [program, arguments @ ..] = &args.command[..] else {
        anyhow::bail!("no program to launch");
    };
    // A cgroup is entered when all CPUs have passed through the kernel's scheduler, which takes up to
    // 10 ms, or nothing where another was entered just now: no part of what a program takes to start.
    if let Some(file) = &args.began {
        std::fs::write(file, monotonic_ns()?.to_string())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {program}"))
}

/// Returns CLOCK_MONOTONIC, which all processes of the machine share.
pub fn monotonic_ns() -> anyhow::Result<u64> {
    let now = ClockId::CLOCK_MONOTONIC
        .now()
        .context("cannot read the clock")?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
