//! The token that agents are called with.

use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_agent::draft;
use linerate_agent::tls::Fingerprint;

use crate::exit::{CmdResult, Failure};

/// The variable that may carry the agents' token instead of a file.
pub const TOKEN_VARIABLE: &str = "LINERATE_TOKEN";
/// Longest token; longer ones do not fit a header line comfortably.
const TOKEN_BYTES_MAX: usize = 1024;
/// Longest file of one: with a fingerprint, and blanks around both.
const FILE_BYTES_MAX: u64 = 4096;

/// A token, and the certificate of the agent that it is for, if that was given along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What is shown.
    pub secret: String,
    /// The certificate.
    pub fingerprint: Option<Fingerprint>,
}

/// Returns the token from `file` or the environment, if there is one.
pub fn token(file: Option<&Path>) -> CmdResult<Option<Token>> {
    let Some(path) = file else {
        return match std::env::var(TOKEN_VARIABLE) {
            Ok(text) if !text.is_empty() => {
                let error = || anyhow!("{TOKEN_VARIABLE} has no token: {SHAPE}");
                let next = "set it to what `linerate token add NAME` prints on the agent's host";
                let bad = || Failure::usage(error()).next(next);
                parse(&text).map(Some).ok_or_else(bad)
            }
            _ => Ok(None),
        };
    };
    let text = draft::read_secret(path, FILE_BYTES_MAX)
        .with_context(|| format!("cannot read the token file {}", path.display()))
        .map_err(Failure::usage)?;
    let shown = path.display();
    let next = "make another with `linerate token add NAME -o FILE` on the agent's host, under a new name or after \
                `linerate token remove NAME`; a token of your own, for `linerate serve --token-file`, may come from \
                `openssl rand -hex 16`";
    if text.trim().is_empty() {
        return Err(Failure::usage(anyhow!("the token file {shown} is empty")).next(next));
    }
    let bad = || Failure::usage(anyhow!("{shown} holds no token: {SHAPE}")).next(next);
    parse(&text).map(Some).ok_or_else(bad)
}

/// Returns the token that is the first line of `from`.
pub fn token_line(from: impl BufRead) -> CmdResult<Token> {
    let mut line = String::new();
    from.take(FILE_BYTES_MAX)
        .read_line(&mut line)
        .context("cannot read the token from standard input")?;
    let bad = || Failure::usage(anyhow!("standard input begins with no token: {SHAPE}"));
    parse(&line).ok_or_else(bad)
}

/// What a token looks like.
const SHAPE: &str = "one is 8 to 1024 printable ASCII characters, and may have the agent's certificate behind it, as \
                     in TOKEN@SHA256:DIGITS";

/// Reads `TOKEN` or `TOKEN@FINGERPRINT`.
fn parse(text: &str) -> Option<Token> {
    let text = text.trim();
    let parts = text.rsplit_once('@');
    let with = parts.and_then(|(secret, print)| Some((secret, print.parse().ok()?)));
    let (secret, fingerprint) = match with {
        Some((secret, print)) => (secret, Some(print)),
        None => (text, None),
    };
    let fits = (8..=TOKEN_BYTES_MAX).contains(&secret.len());
    (fits && secret.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Token {
        secret: secret.to_owned(),
        fingerprint,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_may_have_the_agents_certificate_behind_it() {
        let print = format!("SHA256:{}", "5f".repeat(32));
        let check = |text: &str, secret: &str, fingerprint: Option<&str>| {
            let token = parse(text).unwrap();
            let shown = token.fingerprint.map(|print| print.to_string());
            assert_eq!(
                (token.secret.as_str(), shown.as_deref()),
                (secret, fingerprint)
            );
        };
        check(" 12345678\n", "12345678", None);
        check(&format!("12345678@{print}\n"), "12345678", Some(&print));
        // One of the user's own may have any character.
        check("me@example.org", "me@example.org", None);
        for bad in [
            "",
            "1234567",
            "1234 5678",
            "12345678ü",
            &format!("1234567@{print}"),
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
