//! `linerate man`: the man pages, made of the command line's own definition.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::exit::{CmdResult, Exit};
use crate::term;

/// Commands by what they are for, on the page of the subcommand that they show: a line each, `PAGE: WHAT: COMMAND`.
const EXAMPLES: &str = "\
linerate: Answer measurements of other hosts: linerate serve
linerate: Measure throughput to a host that does: linerate run HOST
linerate: Characterise it, with a report: linerate study HOST
linerate-study: Of a server, with a report: linerate study HOST --token-file token
linerate-study: Of a lab on this machine: linerate study --lab
linerate-serve: Answer callers with the token of a file: linerate serve --token-file token
linerate-serve: Answer iperf3 clients, too: linerate serve --public
linerate-run: Four streams from the server, for 30 s: linerate run HOST -R -P 4 -t 30
linerate-run: Latency at 1000 requests per second: linerate run HOST --rr --rate 1000
linerate-run: Keep everything, with a report: linerate run HOST -o run.bundle
linerate-watch: Every page once: linerate watch --once
linerate-watch: Another host, for Prometheus: linerate watch HOST --prometheus 127.0.0.1:9100
linerate-plan: The built-in experiments: linerate plan --list
linerate-plan: What an experiment does in ten minutes: linerate plan my.toml --budget 10m
linerate-report: Render a bundle again: linerate report run.bundle --format html
linerate-compare: Hold a run against an earlier one: linerate compare before.bundle after.bundle
linerate-capacity: CPUs that 25 Gbit/s ask for: linerate capacity study.bundle --target 25G
linerate-explain: What holds a web server's connections: linerate explain --port 443 --for 30s
linerate-explain: What limits a stream to a host, and what proves it: linerate explain HOST
linerate-explain: What held a stored run: linerate explain run.bundle
linerate-fleet: Each host with each other, and which pairs are slow: linerate fleet run
linerate-fleet-check: Whether all hosts can take part: linerate fleet check --fleet racks.toml
linerate-fleet-run: All hosts to the first, at the same moment: linerate fleet run --pattern many-to-one
linerate-fleet-sbatch: In the queue of Slurm, with a report at the end: linerate fleet sbatch --budget 10m
linerate-trace: Both ends of the same traffic: linerate trace client.pcap server.pcap
linerate-lab: Two hosts, a program in one of them, and none left: \
    linerate lab up; linerate lab exec lab server ip address; linerate lab down lab
linerate-lab-up: Four clients, 10 ms away: linerate lab up far --clients 4 --delay 5ms
linerate-lab-list: For programs: linerate lab list --json
linerate-lab-exec: Serve in a host of a lab: linerate lab exec lab server linerate serve --public
linerate-lab-down: Every lab of this user: linerate lab down --all
linerate-token: A token for a client, in a file: linerate token add laptop -o token
linerate-token-add: For twelve hours: linerate token add laptop --expires 12h -o token
linerate-token-list: Of a service of systemd: linerate token list --state /var/lib/linerate
linerate-token-remove: Refuse it from now on: linerate token remove laptop
linerate-schema: Of what linerate run -J prints: linerate schema linerate.run
linerate-completions: For bash: \
    linerate completions bash > ~/.local/share/bash-completion/completions/linerate
linerate-man: For this user: linerate man ~/.local/share/man/man1";

/// What a process takes from its environment.
const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "NO_COLOR",
        "If it is set and not empty, nothing is coloured.",
    ),
    (
        "LINERATE_TOKEN",
        "The token for other hosts, where --token-file names none.",
    ),
    (
        "IPERF3_PASSWORD",
        "The password for a server of iperf3 that wants one.",
    ),
    (
        "LINERATE_BROWSER",
        "The Chromium that prints reports as PDF.",
    ),
    (
        "XDG_STATE_HOME",
        "Where files of the state are kept, in a directory linerate.",
    ),
    (
        "XDG_CONFIG_HOME",
        "Where known agents are noted, in linerate/known_agents.",
    ),
    (
        "XDG_RUNTIME_DIR",
        "Where named labs are kept by users other than root.",
    ),
];

/// Files that are read and written.
const FILES: &[(&str, &str)] = &[
    (
        "/var/lib/linerate",
        "Of root: key and certificate of the agent, and its tokens.",
    ),
    ("~/.local/state/linerate", "The same of another user."),
    (
        "~/.config/linerate/known_agents",
        "The certificates of agents that were met before.",
    ),
    (
        "linerate-*.bundle",
        "What a study or an experiment kept, in the current directory if --out names no other.",
    ),
];

/// What an exit code means.
const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Done."),
    ("1", "Failed."),
    (
        "2",
        "The command line, or what it asks for, is not possible.",
    ),
    (
        "3",
        "Measured, but not to be relied on, or not as precisely as was asked for.",
    ),
    (
        "4",
        "Worse than the baseline, or than a limit that was asked for.",
    ),
    ("130", "Interrupted."),
];

/// Runs the command.
pub fn man(args: &ManArgs) -> CmdResult {
    let dir = &args.dir;
    // The pages are the same on every machine.
    let command = Cli::command().version(env!("CARGO_PKG_VERSION"));
    let mut command = command.disable_help_subcommand(true);
    command.build();
    std::fs::create_dir_all(dir)
        .and_then(|()| pages(&command, dir))
        .with_context(|| format!("cannot write man pages to {}", dir.display()))?;
    term::note(&format!("man pages are in {}", dir.display()));
    Ok(Exit::Ok)
}

/// Writes the page of a command and those of its subcommands.
fn pages(command: &Command, dir: &Path) -> std::io::Result<()> {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    for subcommand in shown {
        pages(subcommand, dir)?;
    }
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let page = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(concat!("linerate ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text)?;
    more(name, &mut text)?;
    std::fs::write(dir.join(format!("{name}.1")), text)
}

/// Adds the sections that a command line's definition does not have.
fn more(name: &str, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, ".SH EXAMPLES")?;
    for line in EXAMPLES.lines() {
        let own = line.split_once(": ").filter(|(page, _)| *page == name);
        if let Some((what, command)) = own.and_then(|(_, example)| example.split_once(": ")) {
            writeln!(out, ".TP\n{}:\n\\fB{}\\fR", roff(what), roff(command))?;
        }
    }
    let sections = [
        ("EXIT STATUS", EXIT_STATUS),
        ("ENVIRONMENT", ENVIRONMENT),
        ("FILES", FILES),
    ];
    for (title, entries) in sections {
        writeln!(out, ".SH \"{title}\"")?;
        for (term, words) in entries {
            writeln!(out, ".TP\n\\fB{}\\fR\n{}", roff(term), roff(words))?;
        }
    }
    let others = match name {
        "linerate" => "linerate-run(1), linerate-serve(1), linerate-study(1)",
        _ => "linerate(1)",
    };
    writeln!(
        out,
        ".SH \"SEE ALSO\"\n{}, iperf3(1), ss(8), tc(8)",
        roff(others)
    )
}

/// Writes words so that roff shows them as they are.
fn roff(words: &str) -> String {
    words.replace('\\', "\\e").replace('-', "\\-")
}
