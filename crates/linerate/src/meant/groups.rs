//! The groups that go on beside what the flags ask for.

use anyhow::anyhow;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches};
use linerate_model::group::{self, GROUP_NAME_CHARS_MAX};
use linerate_model::manner::Named;
use linerate_model::workload::{Group, Kind, Workload};

use crate::args::RunArgs;
use crate::exit::{CmdResult, Failure};
use crate::workload::workload;

/// What to do about groups that cannot be one trial.
const NEXT: &str = "measure them one after another, or leave out what the message names";

/// The parts of `linerate run` that are of a group's own.
const OF_GROUPS: [&str; 4] = ["TrafficArgs", "RateArgs", "CallArgs", "SocketArgs"];

/// Returns each group that `--with` asks for, and its flags.
pub(super) fn beside(args: &RunArgs) -> CmdResult<Vec<(RunArgs, Workload)>> {
    let read = |text: &String| {
        let asked = parse(text).map_err(|why| {
            let next = "give it as in --with 'rr -r 1,1 -P 4'";
            Failure::usage(anyhow!(why)).next(next)
        })?;
        if let Some((factor, _)) = asked.given.varied().first() {
            let error = anyhow!("--with '{text}': several levels ({factor})");
            let next = "give one level, or vary that of a group with an experiment file: \"NAME.KEY\" = [...]";
            return Err(Failure::usage(error).next(next));
        }
        let workload = workload(&asked)?;
        Ok((asked, workload))
    };
    args.groups.with.iter().map(read).collect()
}

/// Returns `beside` as groups whose names differ from each other's and from that of `first`.
pub(super) fn named(first: &Workload, beside: &[(RunArgs, Workload)]) -> CmdResult<Vec<Group>> {
    let mut taken = vec![group::name_of(first.traffic.kind()).to_owned()];
    let mut groups = Vec::new();
    for (_, workload) in beside {
        let kind = group::name_of(workload.traffic.kind());
        let numbered = (2..).map(|number| format!("{kind}-{number}"));
        let mut names = std::iter::once(kind.to_owned()).chain(numbered);
        let name = names.find(|name| !taken.contains(name));
        let name = name.unwrap_or_default();
        debug_assert!(name.len() <= GROUP_NAME_CHARS_MAX);
        taken.push(name.clone());
        groups.push(Group {
            name,
            workload: workload.clone(),
        });
    }
    check(first, &groups)?;
    Ok(groups)
}

/// Returns the probe that `--loaded` puts beside `bulk`: one byte each way, one at a time, sent at once.
pub(super) fn probe(args: &RunArgs, bulk: &Workload) -> CmdResult<Option<Workload>> {
    if !args.groups.loaded {
        return Ok(None);
    }
    let mut probe = Workload::of(Kind::Rr);
    probe.options.nagle = Some(false);
    let beside = Group {
        name: "bulk".to_owned(),
        workload: bulk.clone(),
    };
    check(&probe, &[beside])?;
    Ok(Some(probe))
}

/// Refuses groups that cannot be one trial.
fn check(first: &Workload, beside: &[Group]) -> CmdResult<()> {
    group::check(first, beside).map_err(|error| Failure::usage(error).next(NEXT))
}

/// Flags of a kind of traffic.
fn flags_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Stream => None,
        Kind::Rr => Some("--rr"),
        Kind::Crr => Some("--crr"),
        Kind::Idle => Some("--idle"),
    }
}

/// Reads what `--with` names as `linerate run` reads its own flags; says why it cannot.
fn parse(text: &str) -> Result<RunArgs, String> {
    let mut words = text.split_whitespace();
    let kinds = || Kind::NAMES.iter().map(|(name, _)| *name);
    let known = words.next().and_then(|word| {
        let mut kinds = Kind::NAMES.iter();
        kinds.find(|(name, _)| *name == word)
    });
    let Some((_, kind)) = known else {
        let kinds = kinds().collect::<Vec<_>>().join(", ");
        return Err(format!(
            "--with '{text}' does not begin with one of {kinds}"
        ));
    };
    let command = RunArgs::augment_args(Command::new("run").no_binary_name(true))
        .disable_help_flag(true)
        .disable_version_flag(true);
    // The host is that of the trial; the parser wants one.
    let typed = ["-"].into_iter().chain(flags_of(*kind)).chain(words);
    let of_clap = |error: clap::Error| {
        let words = error.render().to_string();
        let first = words.lines().next().unwrap_or_default();
        let first = first.trim_start_matches("error: ");
        match error.kind() {
            ErrorKind::UnknownArgument => {
                format!("--with '{text}': {first} (flags of a group only)")
            }
            _ => format!("--with '{text}': {first}"),
        }
    };
    let matches = command.clone().try_get_matches_from(typed);
    let matches = matches.map_err(of_clap)?;
    let own: Vec<&clap::Id> = command
        .get_groups()
        .filter(|group| OF_GROUPS.contains(&group.get_id().as_str()))
        .flat_map(clap::ArgGroup::get_args)
        .collect();
    let foreign = command.get_arguments().find(|arg| {
        let id = arg.get_id();
        let is_typed = matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        is_typed && id != "host" && !own.contains(&id)
    });
    if let Some(arg) = foreign {
        let flag = arg.get_long().unwrap_or(arg.get_id().as_str());
        return Err(format!(
            "--with '{text}': --{flag} is for the whole measurement"
        ));
    }
    let args = RunArgs::from_arg_matches(&matches).map_err(of_clap)?;
    match args.host.as_deref() {
        Some("-") => Ok(args),
        other => {
            let other = other.unwrap_or_default();
            Err(format!("--with '{text}': `{other}` is no flag"))
        }
    }
}
