//! Groups of a measurement: workloads that go on beside the one that the flags ask for.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches};
use linerate_model::manner::Named;
use linerate_model::workload::Kind;

use super::RunArgs;

/// What goes on beside the traffic.
#[derive(Debug, Args)]
#[command(next_help_heading = "Groups (several kinds of traffic at once)")]
pub struct GroupArgs {
    /// Add traffic that starts at the same instant and has its own result: a kind (stream, rr, crr, idle) and
    /// its flags, as in --with 'rr -r 1,1 -P 4'; may be given several times
    #[arg(long, value_name = "'KIND FLAGS'")]
    pub with: Vec<String>,
    /// Latency under load: request/response alone, then beside a stream to the server, then beside one from it; the
    /// flags of a stream are the stream's
    #[arg(long, conflicts_with_all = ["with", "reverse", "bidir", "rr", "crr", "connect", "idle", "unix",
          "bytes", "blockcount", "csv", "json_stream", "interval", "verbose", "precision", "confidence"])]
    pub loaded: bool,
}

/// The parts of `linerate run` that are of a group's own.
const OWN: [&str; 4] = ["TrafficArgs", "RateArgs", "CallArgs", "SocketArgs"];

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
pub fn group(text: &str) -> Result<RunArgs, String> {
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
        .filter(|group| OWN.contains(&group.get_id().as_str()))
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
