//! `linerate lab`: a network of hosts on this machine, for people.

use anyhow::Context;
use linerate_lab::LabSpec;
use linerate_lab::named::{
    self, DownError, HolderCommand, Registry, RegistryError, UpError, VisitError,
};

use crate::args::{LabArgs, LabCommand, LabUpArgs};
use crate::exit::{CmdResult, Exit, Failure};
use crate::meant::Links;
use crate::term::lab::{Labs, show};
use crate::{similar, term};

/// Runs the command.
pub fn lab(args: &LabArgs) -> CmdResult {
    match &args.command {
        LabCommand::Up(args) => up(args),
        LabCommand::List { json } => list(*json),
        LabCommand::Exec {
            name,
            host,
            command,
        } => exec(name, host, command),
        // Without a name it is all of them: the command line says either.
        LabCommand::Down { name, all: _ } => match name {
            Some(name) => {
                Registry::of_user()?
                    .down(name)
                    .map_err(|error| match error {
                        DownError::Registry(error) => of_registry(error),
                        error => Failure::failed(error),
                    })?;
                Ok(Exit::Ok)
            }
            None => down_all(),
        },
        LabCommand::Hold => {
            named::hold()?;
            Ok(Exit::Ok)
        }
    }
}

fn up(args: &LabUpArgs) -> CmdResult {
    let spec = spec(args)?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let holder = HolderCommand {
        program,
        arguments: vec!["lab".into(), "hold".into()],
    };
    let state = Registry::of_user()?
        .up(&spec, &holder)
        .map_err(|error| match error {
            UpError::Exists { ref name, .. } => {
                let next = format!("linerate lab down {name}, or give this one another name");
                Failure::failed(error).next(next)
            }
            UpError::Registry(error) => of_registry(error),
            error => Failure::failed(error),
        })?;
    for note in &state.degraded {
        term::note(note);
    }
    show(&state);
    term::note(&format!(
        "hosts know each other by name; a shell in one: linerate lab exec {name} {host}; remove the lab: linerate lab down {name}",
        name = state.spec.name,
        host = state.spec.hosts[0].name,
    ));
    Ok(Exit::Ok)
}

/// Returns the lab that the file or the flags describe; the name given wins over the file's.
fn spec(args: &LabUpArgs) -> CmdResult<LabSpec> {
    let mut spec = match &args.file {
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the lab file {}", file.display()))
                .map_err(Failure::usage)?;
            LabSpec::from_toml(&text, &file.display().to_string()).map_err(|error| {
                let error = anyhow::Error::from(error);
                let near = similar::of_key(&error);
                Failure::usage(error).maybe(near)
            })?
        }
        None => LabSpec::of_preset(args.preset, args.clients),
    };
    if let Some(name) = &args.name {
        spec.name.clone_from(name);
    } else if args.file.is_none() {
        spec.name = "lab".to_owned();
    }
    Links::from(args).apply(&mut spec.hosts);
    spec.check("the command line").map_err(Failure::usage)?;
    Ok(spec)
}

fn list(json: bool) -> CmdResult {
    let (states, unreadable) = Registry::of_user()?.list()?;
    for error in &unreadable {
        term::note(&format!("{error:#}; another version may have made it"));
    }
    if json {
        term::json_document(&Labs::of(&states));
        return Ok(Exit::Ok);
    }
    if states.is_empty() && unreadable.is_empty() {
        term::note("no lab is up");
    }
    for state in &states {
        show(state);
    }
    Ok(Exit::Ok)
}

fn exec(name: &str, host: &str, command: &[std::ffi::OsString]) -> CmdResult {
    let status = Registry::of_user()?
        .exec(name, host, command)
        .map_err(|error| visit_failed(error, name))?;
    // As a shell does: a program ended by a signal counts as 128 and its number.
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    let code = status
        .code()
        .or(signal.map(|signal| 128 + signal))
        .unwrap_or(1);
    Ok(Exit::Program(u8::try_from(code).unwrap_or(1)))
}

/// Returns what a program that could not be run means, with the exit codes of a shell for one
/// that is not there or may not be run.
fn visit_failed(error: VisitError, name: &str) -> Failure {
    match error {
        VisitError::Registry(error) => of_registry(error),
        VisitError::Crashed { .. } => {
            Failure::failed(error).next(format!("linerate lab down {name}"))
        }
        VisitError::Start { ref source, .. } => {
            let exit = match source.kind() {
                std::io::ErrorKind::NotFound => Exit::Program(127),
                std::io::ErrorKind::PermissionDenied => Exit::Program(126),
                _ => Exit::Failed,
            };
            Failure {
                exit,
                ..Failure::failed(error)
            }
        }
        VisitError::NoHost { .. } => {
            Failure::failed(error).next("`linerate lab list` shows the hosts")
        }
    }
}

fn of_registry(error: RegistryError) -> Failure {
    let is_unknown = matches!(error, RegistryError::Unknown { .. });
    let next = "`linerate lab list` shows the labs, `linerate lab up` makes one";
    Failure::failed(error).maybe(is_unknown.then_some(next))
}

fn down_all() -> CmdResult {
    let names = Registry::of_user()?.down_all().map_err(Failure::failed)?;
    match names.len() {
        0 => term::note("no lab was up"),
        _ => term::note(&format!("removed {}", names.join(", "))),
    }
    Ok(Exit::Ok)
}
