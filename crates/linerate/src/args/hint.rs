//! What to type instead of what is no command or flag here: near misses, and the flags of neighbours.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;
use crate::similar;

/// Flags of iperf3's and netperf's that `linerate run` does not have, and what does the same here.
const OF_NEIGHBOURS: &[(&[&str], &str)] = &[
    (&["-d", "--debug"], "-v shows settings, CPUs and mechanisms"),
    (
        &["-T", "--title"],
        "-o DIR keeps the command with its result: name the directory",
    ),
    (
        &["-F", "--file"],
        "payload is never read from a disk; -l and --size-mix choose its sizes",
    ),
    (
        &["--logfile"],
        "redirect the output: `linerate run HOST > FILE`, or keep a bundle with -o DIR",
    ),
    (
        &["--forceflush"],
        "leave it out: every line is written at once",
    ),
    (
        &["--timestamps"],
        "--json-stream prints one event per line, and -o DIR keeps every timestamp",
    ),
    (
        &["--connect-timeout"],
        "leave it out: a host that does not answer is reported by itself",
    ),
    (
        &["--rcv-timeout", "--snd-timeout"],
        "leave it out: stalls are measured, and a lost host is reported",
    ),
    (
        &["--cport"],
        "leave it out: the kernel chooses the ports (net.ipv4.ip_local_port_range)",
    ),
    (
        &["--bind-dev"],
        "-B ADDRESS connects from an address of that device",
    ),
    (
        &["--sctp", "-X", "--xbind", "--nstreams"],
        "SCTP is not supported: use TCP, -u, -m or --unix",
    ),
    (
        &["--dont-fragment"],
        "-M sets the segment size; with -u keep -l below the path's MTU",
    ),
    (
        &["-L", "--flowlabel"],
        "flow labels are not supported; -S and --dscp mark packets",
    ),
    (
        &["--repeating-payload"],
        "leave it out: payload is random once, and the same for every call",
    ),
    (
        &["--udp-counters-64bit"],
        "leave it out: datagrams have 64-bit numbers",
    ),
    (
        &["--no-fq-socket-pacing", "--pacing-timer"],
        "-b paces in linerate, --fq-rate in the kernel",
    ),
    (
        &["--json-stream-full-output"],
        "--json-stream ends with the whole document",
    ),
    (
        &["--extra-data"],
        "-o DIR keeps the command; name the directory",
    ),
    (
        &["--server-bitrate-limit"],
        "`linerate serve --limit-rate RATE` limits at the server",
    ),
    (
        &["--server-max-duration"],
        "`linerate serve --limit-time TIME` limits at the server",
    ),
    (
        &["-H", "--host"],
        "name the host alone: `linerate run HOST`",
    ),
    (
        &["-c", "--client-cpu"],
        "leave it out: CPU time is always measured, and -v shows it",
    ),
    (&["-j"], "leave it out: --rr always has latency percentiles"),
    (
        &["-s", "--server"],
        "leave it out: `linerate serve` is the server, `linerate run HOST` its client",
    ),
    (
        &["-D", "--daemon"],
        "`linerate serve` measures for others and stays in the foreground: `systemd-run linerate serve`",
    ),
];

/// Returns what to type instead of what `error` refuses, where that is known.
pub fn of(error: &clap::Error, words: &[String]) -> Option<String> {
    let command = words.get(1).map(String::as_str);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (error.kind(), command) {
        (ErrorKind::UnknownArgument, _) => {
            let flag = text(ContextKind::InvalidArg)?;
            let flag = flag.split('=').next().unwrap_or(flag);
            let known = match command {
                Some("run") => of_neighbour(flag)
                    .or_else(|| of_server(flag))
                    .or_else(|| of_lab(flag)),
                Some("serve") => of_neighbour(flag),
                Some("study") => of_lab(flag),
                _ => None,
            };
            known.or_else(|| of_slip(flag, words))
        }
        (ErrorKind::InvalidSubcommand, _) => {
            let typed = text(ContextKind::InvalidSubcommand)?;
            let cli = Cli::command();
            let parent = match command {
                Some(name) if name != typed => cli.find_subcommand(name)?,
                _ => &cli,
            };
            let visible = parent.get_subcommands().filter(|one| !one.is_hide_set());
            let near = similar::nearest_name(
                typed,
                &visible.map(clap::Command::get_name).collect::<Vec<_>>(),
            )?;
            Some(format!("did you mean `{near}`?"))
        }
        (ErrorKind::MissingRequiredArgument, Some("run")) if is_missing(error, "--peer") => {
            Some("add `--peer iperf3` if the server is iperf3, or leave that flag out".to_owned())
        }
        (ErrorKind::ValueValidation, Some("run")) => of_netperf(text(ContextKind::InvalidValue)?),
        (ErrorKind::MissingRequiredArgument, Some("study")) => Some(
            "name a host that runs `linerate serve`, or study a network of hosts made on this \
             machine: `linerate study --lab`"
                .to_owned(),
        ),
        (ErrorKind::MissingRequiredArgument, Some("report")) => {
            Some("name a directory that `linerate study` or `linerate run --out` made".to_owned())
        }
        (ErrorKind::MissingRequiredArgument, Some("trace")) => Some(
            "name a capture (pcap or pcapng), or capture here: `linerate trace -i eth0 -t 10s`"
                .to_owned(),
        ),
        (ErrorKind::MissingRequiredArgument, Some("run" | "-c")) => Some(
            "name a host that runs `linerate serve`; on one machine alone, `linerate study --lab` \
             makes a network of hosts"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Returns what does the same as a flag of iperf3's or netperf's.
fn of_neighbour(flag: &str) -> Option<String> {
    let mut all = OF_NEIGHBOURS.iter();
    let (_, instead) = all.find(|(flags, _)| flags.contains(&flag))?;
    Some((*instead).to_owned())
}

/// Returns the flag of a lab's links that says what `flag` would.
fn of_lab(flag: &str) -> Option<String> {
    let name = flag.strip_prefix("--")?;
    let is_known = ["loss", "delay", "queues"].contains(&name);
    is_known.then(|| format!("links of a lab have one: `--lab --lab-{name}`"))
}

/// Returns the flag of the command that `flag` is a slip of.
fn of_slip(flag: &str, words: &[String]) -> Option<String> {
    let typed = flag.strip_prefix("--")?;
    let cli = Cli::command();
    let names = words.iter().skip(1);
    let command = names
        .map_while(|word| (!word.starts_with('-')).then_some(word.as_str()))
        .try_fold(&cli, |at, word| at.find_subcommand(word).ok_or(at));
    let (Ok(command) | Err(command)) = command;
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let near = similar::nearest(typed, visible.filter_map(clap::Arg::get_long))?;
    Some(format!("did you mean `--{near}`?"))
}

/// Tells whether a flag is missing that another one needs.
fn is_missing(error: &clap::Error, flag: &str) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.iter().any(|one| one.starts_with(flag)),
        Some(ContextValue::String(missing)) => missing.starts_with(flag),
        _ => false,
    }
}

/// Returns what does the same as a test of netperf's, by its name.
fn of_netperf(test: &str) -> Option<String> {
    let ours = match test {
        "TCP_STREAM" => "leave `-t` out: a TCP stream is the default",
        "TCP_MAERTS" => "`-R` makes a stream from the server",
        "TCP_SENDFILE" => "`-Z` sends with sendfile",
        "UDP_STREAM" => "`-u -b RATE` sends datagrams",
        "TCP_RR" => "`--rr` makes requests",
        "UDP_RR" => "`--rr -u` makes requests over UDP",
        "TCP_CRR" => "`--crr` makes connections with a request each",
        _ => return None,
    };
    Some(format!("{ours}; `-t` is the time"))
}

/// Returns where a flag belongs that only the server has.
fn of_server(flag: &str) -> Option<String> {
    let cli = Cli::command();
    let serve = cli.find_subcommand("serve")?;
    let name = flag.trim_start_matches('-');
    let is_it = |arg: &clap::Arg| {
        if flag.starts_with("--") {
            arg.get_long() == Some(name)
        } else {
            arg.get_short()
                .is_some_and(|short| name == short.to_string())
        }
    };
    let is_known = serve.get_arguments().any(is_it);
    is_known.then(|| format!("{flag} is the server's: `linerate serve {flag}`"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn hint(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&words).err()?;
        of(&error, &words)
    }

    #[test]
    fn every_flag_of_neighbours_is_none_of_ours_and_has_a_hint() {
        for (flags, instead) in OF_NEIGHBOURS {
            for flag in *flags {
                let said = hint(&format!("linerate run host {flag} x"));
                assert_eq!(said.as_deref(), Some(*instead), "{flag}");
            }
        }
        assert!(hint("linerate run host --logfile=x").is_some());
        assert_eq!(hint("linerate run host --nosuch"), None);
        for flag in ["-1", "--one-off", "--pidfile"] {
            let said = hint(&format!("linerate run host {flag}"));
            assert_eq!(
                said,
                Some(format!("{flag} is the server's: `linerate serve {flag}`"))
            );
        }
    }

    #[test]
    fn a_near_miss_of_a_command_is_named() {
        let check = |line: &str, word: &str| {
            let said = hint(line).unwrap_or_default();
            assert!(said.contains(word), "{line}: {said}");
        };
        check("linerate rnu host", "`run`");
        check("linerate stduy", "`study`");
        check("linerate lab dwn", "`down`");
        check("linerate lab ecex", "`exec`");
        check("linerate study", "--lab");
        check("linerate run host -t TCP_RR", "`--rr`");
        check("linerate run host --get-server-output", "`--peer iperf3`");
        check("linerate lab ls", "`list`");
        check("linerate token rm me", "`remove`");
        check("linerate run host --fromat json", "`--format`");
        check("linerate study host --quik", "`--quick`");
        check("linerate run host --loss 1%", "`--lab --lab-loss`");
        check("linerate report", "name a directory");
        check("linerate trace", "name a capture");
        check("linerate lab up --dely 5ms", "`--delay`");
        check("linerate run host -s", "`linerate serve`");
        // A far one is none: it would be a riddle.
        for line in [
            "linerate nosuch",
            "linerate explain",
            "linerate lab up --hosts 3",
        ] {
            assert_eq!(hint(line), None, "{line}");
        }
    }
}
