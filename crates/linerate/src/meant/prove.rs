//! `--prove`: how long it takes, and what it is not for.

use anyhow::anyhow;
use linerate_model::Nanos;

use crate::args::{OF_IPERF3, RunArgs};
use crate::exit::{CmdResult, Failure};

/// Shortest and longest time that can be asked for: four short trials, and more than all changes take.
const SECONDS_MIN: f64 = 4.0;
const SECONDS_MAX: f64 = 600.0;

/// How long changes may take where nobody says.
pub const PROVE: Nanos = Nanos::from_s(20);

/// Returns the time that changes may take after the measurement, where they are asked for, or refuses what is no single
/// measurement between agents; where the server is none, `foreign` is what to do about that.
pub(super) fn prove(args: &RunArgs, foreign: Option<&str>) -> CmdResult<Option<Nanos>> {
    let Some(seconds) = args.time.prove else {
        return Ok(None);
    };
    if !(SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        return Err(Failure::usage(anyhow!(
            "--prove is {seconds}, but must be {SECONDS_MIN} to {SECONDS_MAX} s"
        )));
    }
    let other = [
        (
            "a server of another program",
            foreign.is_some(),
            foreign.unwrap_or_default(),
        ),
        (
            "a comparison of levels",
            !args.given.varied().is_empty(),
            "give one level",
        ),
        (
            "--format iperf3",
            args.output.format.as_deref() == Some(OF_IPERF3),
            "use -J without it",
        ),
        (
            "a measurement until Ctrl-C",
            args.time.time == 0.0,
            "give a time with -t",
        ),
    ];
    match other.into_iter().find(|(_, is_other, _)| *is_other) {
        Some((what, _, next)) => {
            let error = anyhow!("--prove changes one measurement, and not {what}");
            Err(Failure::usage(error).next(format!("{next}, or leave out --prove")))
        }
        None => Ok(Some(Nanos((seconds * 1e9) as u64))),
    }
}
