//! `linerate man`: the man pages, made of the command line's own definition.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::exit::{CmdResult, Exit};
use crate::term;

/// Commands by what they are for, on the page of the subcommand that they show.
const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "linerate",
        "Answer measurements of other hosts",
        "linerate serve",
    ),
    (
        "linerate",
        "Measure throughput to a host that does",
        "linerate run HOST",
    ),
    (
        "linerate",
        "Characterise it, with a report",
        "linerate study HOST",
    ),
    (
        "linerate-serve",
        "Answer callers with the token of a file",
        "linerate serve --token-file token",
    ),
    (
        "linerate-serve",
        "Answer iperf3 clients, too",
        "linerate serve --public",
    ),
    (
        "linerate-run",
        "Four streams from the server, for 30 s",
        "linerate run HOST -R -P 4 -t 30",
    ),
    (
        "linerate-run",
        "Latency at 1000 requests per second",
        "linerate run HOST --rr --rate 1000 -N",
    ),
    (
        "linerate-run",
        "Keep everything, with a report",
        "linerate run HOST -o run.bundle",
    ),
    (
        "linerate-study",
        "A study of a lab on this machine",
        "linerate study --lab",
    ),
    ("linerate-watch", "Every page once", "linerate watch --once"),
    (
        "linerate-plan",
        "The built-in experiments",
        "linerate plan --list",
    ),
    (
        "linerate-report",
        "Render a bundle again",
        "linerate report run.bundle --format html",
    ),
];

/// What a process takes from its environment.
const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "NO_COLOR",
        "If it is set and not empty, nothing is coloured.",
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
        "XDG_RUNTIME_DIR",
        "Where named labs are kept by users other than root.",
    ),
];

/// Files that are read and written.
const FILES: &[(&str, &str)] = &[
    (
        "/var/lib/linerate",
        "Of root: key and certificate of the agent, its tokens, hosts that are known.",
    ),
    ("~/.local/state/linerate", "The same of another user."),
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
    ("130", "Interrupted."),
];

/// Runs the command.
pub fn man(args: &ManArgs) -> CmdResult {
    let dir = &args.dir;
    let mut command = Cli::command().disable_help_subcommand(true);
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
    let page = Man::new(command.clone()).title(name.to_uppercase());
    let mut text = Vec::new();
    page.render(&mut text)?;
    more(name, &mut text)?;
    std::fs::write(dir.join(format!("{name}.1")), text)
}

/// Adds the sections that a command line's definition does not have.
fn more(name: &str, out: &mut impl Write) -> std::io::Result<()> {
    let own = EXAMPLES.iter().filter(|(page, ..)| *page == name);
    let examples: Vec<_> = own.map(|(_, what, command)| (*what, *command)).collect();
    if !examples.is_empty() {
        writeln!(out, ".SH EXAMPLES")?;
    }
    for (what, command) in examples {
        writeln!(out, ".TP\n{}:\n\\fB{}\\fR", roff(what), roff(command))?;
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
