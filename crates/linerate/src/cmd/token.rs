//! `linerate token`: who may call this host's agent.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use linerate_agent::access::{Register, RegisterError, Scopes, now_s};
use linerate_agent::tls::Identity;

use crate::args::{TokenArgs, TokenCommand};
use crate::exit::{CmdResult, Exit, Failure};
use crate::{places, term};

/// Runs the command.
pub fn token(args: &TokenArgs) -> CmdResult {
    let register = Register::of(&places::state(args.state.as_deref())?);
    let state = places::state_words(args.state.as_deref());
    match &args.command {
        TokenCommand::Add {
            name,
            scope,
            expires,
            output,
        } => {
            let made = Made {
                name,
                scopes: *scope,
                expires_s: expires.map(|after| now_s() + after.0.div_ceil(1_000_000_000)),
            };
            add(&register, &made, output.as_deref(), &state)
        }
        TokenCommand::List => list(&register),
        TokenCommand::Remove { name } => remove(&register, name, &state),
    }
}

/// What a token is to be.
struct Made<'a> {
    name: &'a str,
    scopes: Scopes,
    expires_s: Option<u64>,
}

fn add(register: &Register, made: &Made<'_>, output: Option<&Path>, state: &str) -> CmdResult {
    // First, so that no token is made that nobody hears of.
    let file = output.map(NewFile::make).transpose()?;
    let Made {
        name,
        scopes,
        expires_s,
    } = *made;
    let secret = register
        .add(name, scopes, expires_s)
        .map_err(|error| match error {
            RegisterError::Exists(_) => Failure::failed(error).next(format!(
                "choose another name, or `linerate token remove {name}{state}`"
            )),
            RegisterError::Name(_) => Failure::usage(error),
            error => Failure::failed(error),
        })?;
    // Who has the token knows by this whom to show it to.
    let print = Identity::kept_fingerprint(register.directory());
    let print = print.map_or(String::new(), |print| format!("@{print}"));
    let text = format!("{secret}{print}");
    let kept = match file {
        Some(file) => {
            let path = file.path.to_owned();
            if let Err(error) = file.keep(&text) {
                // Nobody has it.
                register.remove(name)?;
                return Err(error.into());
            }
            format!(
                "it is in {}: copy that to the client and pass it",
                path.display()
            )
        }
        None => {
            term::line(&text);
            "keep it in a file and pass that".to_owned()
        }
    };
    term::note(&format!(
        "token {name} permits {scopes}, {}; {kept} with --token-file; it is shown only once",
        until(expires_s)
    ));
    Ok(Exit::Ok)
}

/// A file that was not there before, and goes again unless something is kept in it.
struct NewFile<'a> {
    path: &'a Path,
    file: File,
    is_kept: bool,
}

impl<'a> NewFile<'a> {
    fn make(path: &'a Path) -> CmdResult<Self> {
        let mut how = OpenOptions::new();
        // Neither what is there is lost, nor is a link followed.
        let made = how.write(true).create_new(true).mode(0o600).open(path);
        let file = made
            .with_context(|| format!("cannot make {}", path.display()))
            .map_err(|error| Failure::failed(error).next("name a file that is not there yet"))?;
        Ok(Self {
            path,
            file,
            is_kept: false,
        })
    }

    fn keep(mut self, text: &str) -> anyhow::Result<()> {
        let written = writeln!(self.file, "{text}").and_then(|()| self.file.sync_all());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(self.path);
        }
    }
}

fn list(register: &Register) -> CmdResult {
    let tokens = register.tokens()?;
    if tokens.is_empty() {
        term::note(&format!("no token in {}", register.path().display()));
    }
    for token in &tokens {
        let has_expired = token.expires_s.is_some_and(|end| now_s() >= end);
        let standing = if has_expired { ", expired" } else { "" };
        let (name, scopes, until) = (&token.name, &token.scopes, until(token.expires_s));
        term::line(&format!("{name}  {scopes}  {until}{standing}"));
    }
    Ok(Exit::Ok)
}

fn remove(register: &Register, name: &str, state: &str) -> CmdResult {
    if register.remove(name)? {
        if register.tokens()?.is_empty() {
            term::note(&format!(
                "that was the last token: the agent goes on asking for one, also on its own host; without {} it \
                 trusts that host's callers again once it is restarted",
                register.mark().display()
            ));
        }
        return Ok(Exit::Ok);
    }
    let path = register.path();
    let error = anyhow!("there is no token `{name}` in {}", path.display());
    let next = format!("`linerate token list{state}` shows those there are");
    Err(Failure::failed(error).next(next))
}

fn until(expires_s: Option<u64>) -> String {
    let end = expires_s.map(|end| i64::try_from(end).unwrap_or(i64::MAX));
    match end.map(jiff::Timestamp::from_second) {
        None => "until it is removed".to_owned(),
        Some(Ok(end)) => format!("until {end}"),
        Some(Err(_)) => "for longer than there are dates".to_owned(),
    }
}
