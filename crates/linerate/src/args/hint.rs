//! What to type instead of what is no command or flag here: near misses, and the flags of neighbours.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use linerate_lab::Preset;

use super::Cli;
use crate::shell::quoted;
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
        "-B ADDRESS%DEVICE connects from an address of that device, and by it",
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

/// Flags of iperf3's server, or of both ends, where something else does the same for ours than for a run.
const OF_ITS_SERVER: &[(&[&str], &str)] = &[
    (
        &["--logfile"],
        "redirect the log: `linerate serve 2> FILE`; --log-format json has one object per line",
    ),
    (
        &["-d", "--debug"],
        "leave it out: runs and refusals are logged on standard error",
    ),
    (
        &["--timestamps"],
        "--log-format json has the time of every line, and so has the journal of systemd",
    ),
    (
        &["--bind-dev"],
        "-B ADDRESS listens on an address of that device",
    ),
    (
        &["-s", "--server"],
        "leave it out: `linerate serve` is the server",
    ),
];
/// Flags of neighbours of which the same holds for our server as for a run.
const SAME_FOR_SERVER: &[&str] = &[
    "--forceflush",
    "--rcv-timeout",
    "--snd-timeout",
    "--server-bitrate-limit",
    "--server-max-duration",
    "-H",
    "--host",
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
                    .or_else(|| of_lab(flag, words)),
                Some("serve") => of_neighbour_of_server(flag).or_else(|| of_client(flag)),
                Some("study") => of_lab(flag, words),
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
        (ErrorKind::MissingRequiredArgument, _) if lacks_only_flags(error) => {
            Some(of_lacking(&missing(error)))
        }
        (ErrorKind::ArgumentConflict, _) => of_preset(words),
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
fn of_lab(flag: &str, words: &[String]) -> Option<String> {
    let name = flag.strip_prefix("--")?;
    let is_known = [
        "loss",
        "delay",
        "jitter",
        "reorder",
        "duplicate",
        "queue",
        "queues",
    ]
    .contains(&name);
    is_known.then(|| {
        let mut words = words.iter().skip_while(|word| !word.starts_with(flag));
        let own = words.next().and_then(|word| word.split_once('='));
        let value = own.map_or_else(
            || words.next().map(String::as_str),
            |(_, value)| Some(value),
        );
        let value = value.filter(|value| !value.starts_with('-'));
        let value = value.map_or(String::new(), |value| format!(" {}", quoted(value)));
        format!(
            "links of a lab have one, instead of HOST: `linerate study --lab --lab-{name}{value}`"
        )
    })
}

/// Returns how the name of a lab is given that stands where a host would.
fn of_preset(words: &[String]) -> Option<String> {
    let known = Preset::ALL.map(Preset::name);
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let (_, name) =
        pairs.find(|(flag, name)| *flag == "--lab" && known.contains(&name.as_str()))?;
    Some(format!("did you mean `--lab={name}`?"))
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

/// Returns what is missing, as the usage names it: `<HOST[:PORT]>`, `--peer <PROGRAM>`.
fn missing(error: &clap::Error) -> Vec<&str> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.iter().map(String::as_str).collect(),
        Some(ContextValue::String(missing)) => vec![missing],
        _ => Vec::new(),
    }
}

/// Tells whether all that is missing are flags that another one needs.
fn lacks_only_flags(error: &clap::Error) -> bool {
    let missing = missing(error);
    !missing.is_empty()
        && missing
            .iter()
            .all(|one| one.trim_start_matches('<').starts_with('-'))
}

/// Returns a flag that is missing, or those of which one is (`<--experiment <FILE>|--search <CONDITION>>`).
fn alternatives(missing: &str) -> String {
    let several = missing
        .strip_prefix('<')
        .and_then(|one| one.strip_suffix('>'));
    let flags = several.unwrap_or(missing).split('|');
    let flags: Vec<String> = flags.map(|one| format!("`{one}`")).collect();
    flags.join(" or ")
}

/// Returns what to do about flags that are missing.
fn of_lacking(missing: &[&str]) -> String {
    let starts = |flag: &str| missing.iter().any(|one| one.starts_with(flag));
    match missing {
        [one] if one.starts_with("--peer") => {
            "add `--peer iperf3` if the server is iperf3, or leave that flag out".to_owned()
        }
        // With a host or files these would be refused in turn.
        _ if starts("--lab") => {
            "leave that flag out, or give it to a lab instead of HOST: `linerate study --lab`"
                .to_owned()
        }
        _ if starts("--interface") => {
            "leave that flag out, or capture here instead of reading files: \
             `linerate trace -i eth0 -w FILE --anonymous`"
                .to_owned()
        }
        _ => {
            let flags: Vec<String> = missing.iter().map(|one| alternatives(one)).collect();
            format!(
                "add {}, or leave out the flag that needs it",
                flags.join(" and ")
            )
        }
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

/// Returns what does the same as a flag of iperf3's server.
fn of_neighbour_of_server(flag: &str) -> Option<String> {
    let mut own = OF_ITS_SERVER.iter();
    match own.find(|(flags, _)| flags.contains(&flag)) {
        Some((_, instead)) => Some((*instead).to_owned()),
        None if SAME_FOR_SERVER.contains(&flag) => of_neighbour(flag),
        None => None,
    }
}

/// Returns where a flag belongs that only the server has.
fn of_server(flag: &str) -> Option<String> {
    has_flag("serve", flag).then(|| format!("{flag} is the server's: `linerate serve {flag}`"))
}

/// Returns where a flag belongs that only the client has.
fn of_client(flag: &str) -> Option<String> {
    has_flag("run", flag).then(|| format!("{flag} is the client's: `linerate run HOST {flag}`"))
}

/// Tells whether a command has a flag.
fn has_flag(command: &str, flag: &str) -> bool {
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(command) else {
        return false;
    };
    let name = flag.trim_start_matches('-');
    let is_it = |arg: &clap::Arg| {
        if flag.starts_with("--") {
            arg.get_long() == Some(name)
        } else {
            arg.get_short()
                .is_some_and(|short| name == short.to_string())
        }
    };
    command.get_arguments().any(is_it)
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
        let lab = "`linerate study --lab --lab-loss 1%`";
        check("linerate run host --loss 1%", lab);
        check("linerate study --loss=1% host", lab);
        check("linerate study --lab wan", "`--lab=wan`");
        check("linerate report", "name a directory");
        check("linerate trace", "name a capture");
        check("linerate lab up --dely 5ms", "`--delay`");
        check("linerate run host -s", "`linerate serve`");
        check("linerate serve --logfile x", "`linerate serve 2> FILE`");
        check("linerate serve -d", "leave it out");
        check("linerate serve --timestamps", "--log-format json");
        check("linerate serve --forceflush", "leave it out");
        check("linerate serve -R", "`linerate run HOST -R`");
        assert_eq!(hint("linerate serve -F x"), None);
        // A far one is none: it would be a riddle.
        for line in [
            "linerate nosuch",
            "linerate explain",
            "linerate lab up --hosts 3",
        ] {
            assert_eq!(hint(line), None, "{line}");
        }
    }

    #[test]
    fn a_flag_that_lacks_another_says_which() {
        let check = |line: &str, words: &[&str]| {
            let said = hint(line).unwrap_or_default();
            for word in words {
                assert!(said.contains(word), "{line}: {said}");
            }
            let is_host = said.contains("name a host") || said.contains("name a directory");
            assert!(!is_host, "{line}: {said}");
        };
        check(
            "linerate run h --budget 30s",
            &["`--experiment <FILE>`", "leave out"],
        );
        check("linerate run h --anonymous", &["`--capture", "leave out"]);
        check("linerate study h --anonymous", &["`--capture", "leave out"]);
        check(
            "linerate run h --tls-client-cert x",
            &["`--tls-client-key <FILE>`"],
        );
        check(
            "linerate run h --tls-client-key x",
            &["`--tls-client-cert <FILE>`"],
        );
        check(
            "linerate run h --peer iperf3 --username u",
            &["`--rsa-public-key-path <FILE>`"],
        );
        check(
            "linerate run h --username u",
            &["`--peer", "`--rsa-public-key-path <FILE>`"],
        );
        check(
            "linerate report B --interval 1",
            &["`--replay", "leave out"],
        );
        check("linerate serve --idle-timeout 3", &["`--one-off`"]);
        check(
            "linerate trace x --anonymous",
            &["leave that flag out", "-i eth0"],
        );
        // Where the host is missing as well, it is named first.
        let said = hint("linerate run --budget 30s").unwrap_or_default();
        assert!(said.starts_with("name a host"), "{said}");
    }
}
