//! Whether standard output is for programs, which then find a document there whatever fails.

use clap::CommandFactory;

use crate::args::{Cli, Command, LabCommand, ReplayForm, ReportFormat, TraceFormat};
use crate::term::single::Form;

/// Returns the form of what a command prints.
///
/// `linerate run` tells its failures itself: beside what was measured, and in iperf3's documents.
pub fn printed(command: &Command) -> Form {
    let json = |asked: bool| if asked { Form::Json } else { Form::Text };
    match command {
        Command::Watch(args) if args.json_stream => Form::JsonStream,
        Command::Plan(args) => json(args.json),
        Command::Compare(args) => json(args.json),
        Command::Capacity(args) => json(args.json),
        // A stream is told of as `linerate run` does.
        Command::Explain(args) => json(args.json && args.host().is_none()),
        Command::Trace(args) => json(args.wanted() == TraceFormat::Json && args.out.is_none()),
        Command::Lab(args) => json(matches!(args.command, LabCommand::List { json: true })),
        Command::Report(args) => match args.replay {
            Some(form) => replayed(form),
            None => {
                let is_printed = args.out.as_ref().is_none_or(|path| path.as_os_str() == "-");
                json(args.format == ReportFormat::Json && is_printed)
            }
        },
        _ => Form::Text,
    }
}

/// Returns the form of a run that is shown again.
pub fn replayed(form: ReplayForm) -> Form {
    match form {
        ReplayForm::Text => Form::Text,
        ReplayForm::Json | ReplayForm::Iperf3 => Form::Json,
        ReplayForm::JsonStream => Form::JsonStream,
        ReplayForm::Csv => Form::Csv,
    }
}

/// Returns the form that `words` ask for, which no command takes as they are, and whether they ask for
/// iperf3's documents.
pub fn asked(words: &[String]) -> (Form, bool) {
    let command = words.get(1).map_or("", String::as_str);
    let has = |flags: &[&str]| words.iter().any(|word| flags.contains(&word.as_str()));
    let has_value = |flags: &[&str], value: &str| {
        let next = words.windows(2);
        let mut next = next.filter(|pair| flags.contains(&pair[0].as_str()));
        next.any(|pair| pair[1] == value)
            || words.iter().any(|word| {
                let mut rests = flags.iter().filter_map(|flag| word.strip_prefix(flag));
                rests.any(|rest| rest.strip_prefix('=').unwrap_or(rest) == value)
            })
    };
    let format = |value| has_value(&["--format", "-f"], value);
    let replay = |value| has_value(&["--replay"], value);
    let form = match command {
        "run" | "watch" | "report" if has(&["--json-stream"]) || replay("json-stream") => {
            Form::JsonStream
        }
        "run" | "plan" | "trace" | "lab" | "report" | "compare"
            if has(&["--json"])
                || format("json")
                || replay("json")
                || replay("iperf3")
                || words.iter().any(|word| has_short(command, word, 'J')) =>
        {
            Form::Json
        }
        _ => Form::Text,
    };
    (form, command == "run" && format("iperf3"))
}

/// Returns whether `word` is a cluster of flags of a command, as `-uJ` is, that `flag` is one of: what follows
/// one with a value is that value.
fn has_short(command: &str, word: &str, flag: char) -> bool {
    let Some(cluster) = word.strip_prefix('-') else {
        return false;
    };
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(command) else {
        return false;
    };
    let takes_value = |short: char| {
        let mut all = command.get_arguments();
        let found = all.find(|argument| argument.get_short() == Some(short));
        found.is_some_and(|argument| argument.get_action().takes_values())
    };
    for short in cluster.chars() {
        if short == flag {
            return true;
        }
        if short == '-' || takes_value(short) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_is_told_in_the_form_that_it_asks_for() {
        let check = |line: &str, expected: (Form, bool)| {
            let words = format!("linerate {line}");
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(asked(&words), expected, "{line}");
        };
        check("run h --nosuch", (Form::Text, false));
        check("run h -J --nosuch", (Form::Json, false));
        check("run h -uJ --nosuch", (Form::Json, false));
        check("run h -u -b10J --nosuch", (Form::Text, false));
        check("run h -CJ --nosuch", (Form::Text, false));
        check("run h --json-stream --nosuch", (Form::JsonStream, false));
        check("run h --format iperf3 --nosuch", (Form::Text, true));
        check("run h -f iperf3 --nosuch", (Form::Text, true));
        check("run h -J --format=iperf3 --nosuch", (Form::Json, true));
        check("run h --format m -J --nosuch", (Form::Json, false));
        check("plan f -J --nosuch", (Form::Json, false));
        check("report b --format json --nosuch", (Form::Json, false));
        check("report b --replay=iperf3 --nosuch", (Form::Json, false));
        check("serve -J --nosuch", (Form::Text, false));
    }
}
