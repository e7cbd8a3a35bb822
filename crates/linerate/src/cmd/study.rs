//! `linerate study`: characterise a server, on real hosts or in the built-in lab.

use anyhow::Context;
use linerate_controller::HostSpec;
use linerate_model::finding::TrustLevel;

use super::experiments;
use super::lab_fleet::Refused;
use crate::args::StudyArgs;
use crate::bundle::{self, Moment};
use crate::exit::{CmdResult, Exit, Failure};
use crate::meant::{self, Experiments};
use crate::term;

/// Runs the command.
pub fn study(args: &StudyArgs) -> CmdResult {
    let asked = meant::study(args)?;
    if asked.dry_run && asked.lab.is_some() {
        return experiments::show_for_lab(&asked);
    }
    experiments::on_hosts(&asked, |specs, refused| match args.aa {
        None => experiments::measure(&asked, specs, &refused),
        Some(times) => several(&asked, times, &specs, &refused),
    })
}

/// Makes the same study several times, and says how often their verdicts agree.
fn several(asked: &Experiments, times: u32, specs: &[HostSpec], refused: &Refused) -> CmdResult {
    let directory = bundle::directory(asked.directory.as_deref(), "aa", &Moment::now());
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))
        .map_err(|error| Failure::failed(error).next("name another directory with --out"))?;
    let mut analyses = Vec::new();
    let mut worst = Exit::Ok;
    let mut failure = None;
    for number in 1..=times {
        let own = directory.join(number.to_string());
        let one = Experiments {
            directory: Some(own.clone()),
            seed: asked.seed.map(|seed| seed.wrapping_add(u64::from(number))),
            ..asked.clone()
        };
        // What the studies before it say is not lost with one that fails.
        match experiments::measure(&one, specs.to_vec(), refused) {
            Ok(ended) => worst = worse(worst, ended),
            Err(error) => failure = Some(error),
        }
        if failure.is_some() || worst == Exit::Interrupted {
            break;
        }
        analyses.push(linerate_analyze::analyze(&bundle::read(&own)?));
        term::line("");
    }
    // One study has none to agree with.
    let agreement = (analyses.len() > 1).then(|| linerate_analyze::agreement(&analyses));
    if let Some(agreement) = &agreement {
        term::line(linerate_report::terminal(agreement, term::width(), term::color()).trim_end());
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let trust = agreement
        .and_then(|agreement| agreement.trust)
        .map(|trust| trust.level);
    Ok(match trust {
        Some(TrustLevel::DoNotUse) => worse(worst, Exit::Untrustworthy),
        _ => worst,
    })
}

/// Returns the exit that says more against a number.
fn worse(one: Exit, other: Exit) -> Exit {
    let grave = |exit: &Exit| match exit {
        Exit::Ok => 0,
        Exit::Worse => 1,
        Exit::Untrustworthy => 2,
        Exit::Usage => 3,
        Exit::Failed | Exit::Program(_) => 4,
        Exit::Interrupted => 5,
    };
    // Of two alike the first.
    std::cmp::max_by_key(other, one, grave)
}
