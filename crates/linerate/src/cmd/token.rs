//! `linerate token`: who may call this host's agent.

use anyhow::anyhow;
use linerate_agent::access::{Register, RegisterError, Scopes, now_s};
use linerate_model::Nanos;

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
        } => add(&register, name, *scope, *expires, &state),
        TokenCommand::List => list(&register),
        TokenCommand::Remove { name } => remove(&register, name, &state),
    }
}

fn add(
    register: &Register,
    name: &str,
    scopes: Scopes,
    expires: Option<Nanos>,
    state: &str,
) -> CmdResult {
    let expires_s = expires.map(|after| now_s() + after.0.div_ceil(1_000_000_000));
    let secret = register
        .add(name, scopes, expires_s)
        .map_err(|error| match error {
            RegisterError::Exists(_) => Failure::failed(error).next(format!(
                "choose another name, or `linerate token remove {name}{state}`"
            )),
            RegisterError::Name(_) => Failure::usage(error),
            error => Failure::failed(error),
        })?;
    term::line(&secret);
    term::note(&format!(
        "token {name} permits {scopes}, {}; keep it in a file and pass that with --token-file; it is shown \
         only once",
        until(expires_s)
    ));
    Ok(Exit::Ok)
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
