//! Whether standard output is for programs, which then find a document there whatever fails.

use crate::args::{Command, LabCommand, ReplayForm, ReportFormat, TraceFormat};
use crate::term::single::Form;

/// Returns the form of what a command prints.
///
/// `linerate run` tells its failures itself: beside what was measured, and in iperf3's documents.
pub fn printed(command: &Command) -> Form {
    let json = |asked: bool| if asked { Form::Json } else { Form::Text };
    match command {
        Command::Watch(args) if args.json_stream => Form::JsonStream,
        Command::Plan(args) => json(args.json),
        Command::Trace(args) => json(args.wanted() == TraceFormat::Json && args.out.is_none()),
        Command::Lab(args) => json(matches!(args.command, LabCommand::List { json: true })),
        Command::Report(args) => match args.replay {
            Some(ReplayForm::Json | ReplayForm::Iperf3) => Form::Json,
            Some(ReplayForm::JsonStream) => Form::JsonStream,
            Some(ReplayForm::Text) => Form::Text,
            None => {
                let is_printed = args.out.as_ref().is_none_or(|path| path.as_os_str() == "-");
                json(args.format == ReportFormat::Json && is_printed)
            }
        },
        _ => Form::Text,
    }
}

/// Returns the form that `words` ask for, which no command takes as they are.
pub fn asked(words: &[String]) -> Form {
    let has = |flags: &[&str]| words.iter().any(|word| flags.contains(&word.as_str()));
    let has_format = words
        .windows(2)
        .any(|pair| pair[0] == "--format" && pair[1] == "json");
    match words.get(1).map(String::as_str) {
        Some("run" | "watch" | "report") if has(&["--json-stream", "--replay=json-stream"]) => {
            Form::JsonStream
        }
        Some("run" | "plan" | "trace" | "lab" | "report")
            if has_format || has(&["-J", "--json", "--format=json", "--replay=json"]) =>
        {
            Form::Json
        }
        _ => Form::Text,
    }
}
