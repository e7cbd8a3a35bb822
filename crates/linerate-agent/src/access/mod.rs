//! Who may do what: callers by where they call from and by the token that they show.

use std::fmt;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_model::network::Network;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::api::{Refusal, RefusalCode, refuse};
use crate::sync::lock;
use crate::tls::Fingerprint;

/// Showing that a token is known without showing it.
pub(crate) mod proof;
/// The file of tokens.
pub mod register;
/// What a token is good for.
mod scope;

pub use register::{Register, RegisterError};
pub use scope::{Scope, Scopes};

use proof::{Channel, Role};
use register::{Digest, Reading};

/// Who a caller is, and so what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Shows the agent's own token, or calls from this host: may do everything.
    Trusted,
    /// Shows a token of the register, or a certificate that an authority vouches for.
    Holder {
        /// The token's name, or the certificate's fingerprint.
        name: String,
        /// What it is good for.
        scopes: Scopes,
    },
    /// May measure within the limits; carries why it may not observe.
    Stranger(String),
}

impl Caller {
    /// Refuses what this caller may not do.
    pub(crate) fn check(&self, scope: Scope) -> Result<(), Refusal> {
        match self {
            Self::Trusted => Ok(()),
            Self::Stranger(_) if scope == Scope::Measure => Ok(()),
            Self::Stranger(why) if scope == Scope::Observe => {
                Err(refuse(RefusalCode::Unauthorized, why))
            }
            Self::Stranger(_) => {
                let error = format!(
                    "this needs a token of scope {}: {} makes one",
                    scope.name(),
                    command_for(Scopes::USUAL.with(scope))
                );
                Err(lacking(RefusalCode::Unauthorized, error))
            }
            Self::Holder { scopes, .. } if scopes.has(scope) => Ok(()),
            Self::Holder { name, scopes } => {
                let error = format!(
                    "the token `{name}` permits {scopes}, not {}; {} makes one that does",
                    scope.name(),
                    command_for(scopes.with(scope))
                );
                Err(lacking(RefusalCode::Limited, error))
            }
        }
    }

    /// Returns whether this caller may do it.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.check(scope).is_ok()
    }

    /// Returns the name under which it is known, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Holder { name, .. } => Some(name),
            Self::Trusted | Self::Stranger(_) => None,
        }
    }

    /// Returns whether the limits for callers without a token are this one's.
    pub(crate) fn is_stranger(&self) -> bool {
        matches!(self, Self::Stranger(_))
    }
}

/// Returns the refusal of what a scope is missing for.
fn lacking(code: RefusalCode, error: String) -> Refusal {
    Refusal {
        next: Some("give that token with --token-file".to_owned()),
        ..refuse(code, error)
    }
}

/// Returns what makes a token of these scopes. Callers are not told where the agent's state is.
fn command_for(scopes: Scopes) -> String {
    format!(
        "`linerate token add NAME --scope {scopes}` there (with the `--state` of that agent, if it has one)"
    )
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trusted => f.write_str("trusted"),
            Self::Holder { name, .. } => write!(f, "token {name}"),
            Self::Stranger(_) => f.write_str("no token"),
        }
    }
}

/// Whether callers from other hosts need a token to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strangers {
    /// They do.
    Refused,
    /// They may measure, within the limits.
    Measure,
}

/// Whose a caller is, as the kernel says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Root's or the agent's own user's, on this host.
    Own,
    /// Another user's, another host's, or not known.
    Other,
}

/// What a caller shows of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown<'a> {
    /// A token.
    pub(crate) token: Option<&'a [u8]>,
    /// A certificate that an authority of the agent vouches for.
    pub(crate) certificate: Option<Fingerprint>,
}

/// What decides who may do what.
#[derive(Debug)]
pub struct Access {
    /// Digest of the token that is good for everything.
    own: Option<Digest>,
    register: Option<(Register, Mutex<Reading>)>,
    /// Whether there were tokens while this agent ran.
    had_tokens: AtomicBool,
    /// Whether callers may show a certificate that an authority vouches for.
    takes_certificates: bool,
    strangers: Strangers,
    networks: Vec<Network>,
}

impl Access {
    /// Returns the rules of an agent: its own token, the register of others, whether callers
    /// without one may measure, and from which networks it takes connections – all, where none is
    /// named.
    pub fn new(
        own: Option<&str>,
        register: Option<Register>,
        strangers: Strangers,
        networks: Vec<Network>,
    ) -> Self {
        Self {
            own: own.map(|token| digest(token.as_bytes())),
            register: register.map(|register| (register, Mutex::default())),
            had_tokens: AtomicBool::new(false),
            takes_certificates: false,
            strangers,
            networks,
        }
    }

    /// Takes certificates that an authority vouches for, and so trusts nobody for calling from this host.
    pub fn with_certificates(mut self) -> Self {
        self.takes_certificates = true;
        self
    }

    /// Returns whether connections from `address` are taken at all. This host's always are.
    pub(crate) fn takes(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.is_empty()
            || address.is_loopback()
            || self.networks.iter().any(|network| network.has(address))
    }

    /// Returns whether programs of `user` that cannot show a token may measure.
    pub(crate) fn is_open_to(&self, user: User) -> bool {
        self.strangers == Strangers::Measure || user == User::Own
    }

    /// Decides who a caller is, from whose it is and what it shows, at `now_s` of the UNIX epoch.
    ///
    /// 1. A token that is shown must be right.
    /// 2. What it is good for is what its holder may do.
    /// 3. A certificate that is vouched for is good for everything.
    /// 4. Root and the agent's own user on the host of an agent without tokens or authorities are trusted: what
    ///    they could observe they can read themselves. Others of that host are as far away as other hosts. Where
    ///    there is a token or an authority, loopback is no proof: what comes from there may be forwarded. That the
    ///    last token is gone, or their file, does not change this. Root and the agent's own
    ///    user have its Unix socket.
    /// 5. All others may measure within the limits, if that was said.
    pub(crate) fn caller(
        &self,
        shown: Shown<'_>,
        user: User,
        now_s: u64,
    ) -> Result<Caller, Refusal> {
        let here = user == User::Own;
        if let Some(token) = shown.token {
            if let Some(caller) = self.holder(token, now_s)? {
                return Ok(caller);
            }
            // Where no token would ever be right, this host's callers show one by habit.
            if self.is_closed()? || !here {
                let error = "the token is not this agent's";
                return Err(refuse(RefusalCode::Unauthorized, error));
            }
        }
        if let Some(certificate) = shown.certificate {
            return Ok(Caller::Holder {
                name: certificate.to_string(),
                scopes: Scopes::ALL,
            });
        }
        let is_closed = self.is_closed()?;
        if here && !is_closed {
            return Ok(Caller::Trusted);
        }
        match (self.strangers, is_closed) {
            (Strangers::Refused, true) => Err(refuse(
                RefusalCode::Unauthorized,
                if self.takes_certificates {
                    "calling needs the agent's token (--token-file), or a certificate of its authority \
                     (--tls-client-cert)"
                } else {
                    "calling needs the agent's token (--token-file)"
                },
            )),
            (Strangers::Refused, false) => Err(refuse(
                RefusalCode::Unauthorized,
                "this agent measures with callers that show a token, or that are root or its own user on \
                 its own host, and it has no token yet: make one there with `linerate token add NAME` (and its `--state`, if it has one), or let everyone \
                 measure with `linerate serve --public`",
            )),
            (Strangers::Measure, true) => Ok(Caller::Stranger(
                "observing needs the agent's token (--token-file)".to_owned(),
            )),
            (Strangers::Measure, false) => Ok(Caller::Stranger(
                "the agent was started without a token, so only root and its own user on its own host may observe it"
                    .to_owned(),
            )),
        }
    }

    /// Answers a caller's proof that it knows a token with that of this agent, which knows it, too. It lets nobody
    /// in.
    pub(crate) fn prove(
        &self,
        channel: Channel,
        proof: &[u8],
        user: User,
        now_s: u64,
    ) -> Result<String, Refusal> {
        let mut found = None;
        let mut look = |digest: &Digest| {
            if channel.is_proof(Role::Caller, digest, proof) {
                found = Some(channel.proof(Role::Agent, digest));
            }
        };
        self.own.iter().for_each(&mut look);
        if let Some((register, reading)) = &self.register {
            let mut reading = lock(reading);
            let tokens = register.renewed(&mut reading).map_err(unreadable)?;
            tokens.iter().for_each(|token| look(&token.digest));
        }
        if let Some(own) = found {
            return Ok(own);
        }
        if self.is_closed()? {
            let error = "the token is not this agent's";
            return Err(refuse(RefusalCode::Unauthorized, error));
        }
        self.caller(Shown::default(), user, now_s)?;
        let error = "this agent has no tokens, so it can prove none";
        Err(refuse(RefusalCode::BadRequest, error))
    }

    /// Returns who holds the token that is shown. All digests are compared, each in a time that does
    /// not depend on where two differ.
    fn holder(&self, shown: &[u8], now_s: u64) -> Result<Option<Caller>, Refusal> {
        // Whoever pastes the fingerprint along means the token.
        let shown = digest(without_fingerprint(shown));
        let is_own = self.own.is_some_and(|own| own.ct_eq(&shown).into());
        if is_own {
            return Ok(Some(Caller::Trusted));
        }
        let Some((register, reading)) = &self.register else {
            return Ok(None);
        };
        let mut reading = lock(reading);
        let tokens = register.renewed(&mut reading).map_err(unreadable)?;
        let mut found = None;
        for token in tokens {
            if token.digest.ct_eq(&shown).into() {
                found = Some(token);
            }
        }
        let Some(token) = found else {
            return Ok(None);
        };
        if token.expires_s.is_some_and(|end| now_s >= end) {
            let error = format!(
                "the token `{}` has expired; {} makes another",
                token.name,
                command_for(token.scopes)
            );
            return Err(refuse(RefusalCode::Unauthorized, error));
        }
        Ok(Some(Caller::Holder {
            name: token.name.clone(),
            scopes: token.scopes,
        }))
    }

    /// Returns whether callers of this host need what others need, too: where there are tokens, or were.
    fn is_closed(&self) -> Result<bool, Refusal> {
        if self.own.is_some() || self.takes_certificates {
            return Ok(true);
        }
        let Some((register, reading)) = &self.register else {
            return Ok(false);
        };
        let is_empty = register
            .renewed(&mut lock(reading))
            .map_err(unreadable)?
            .is_empty();
        if !is_empty {
            self.had_tokens.store(true, Ordering::Relaxed);
        }
        Ok(self.had_tokens.load(Ordering::Relaxed) || register.had_tokens())
    }
}

/// Returns the time of the clock on the wall, in seconds of the UNIX epoch.
pub fn now_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Returns the digest that stands for a token.
pub(crate) fn digest(token: &[u8]) -> Digest {
    Sha256::digest(token).into()
}

/// Returns a token without the fingerprint that it may have been given with, as in `TOKEN@SHA256:DIGITS`.
fn without_fingerprint(shown: &[u8]) -> &[u8] {
    let text = std::str::from_utf8(shown).ok();
    let parts = text.and_then(|text| text.rsplit_once('@'));
    match parts {
        Some((token, print)) if print.parse::<Fingerprint>().is_ok() => token.as_bytes(),
        _ => shown,
    }
}

/// Callers are not told what the file is called, or why it cannot be read.
fn unreadable(_: RegisterError) -> Refusal {
    refuse(
        RefusalCode::Internal,
        "this agent cannot read its tokens: its user must be able to read them where its `--state` is, and \
         nothing but `linerate token` should have changed them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: User = User::Other;
    const HERE: User = User::Own;

    fn caller(access: &Access, shown: Option<&str>, from: User, now_s: u64) -> Result<Caller, u16> {
        let shown = Shown {
            token: shown.map(str::as_bytes),
            certificate: None,
        };
        access
            .caller(shown, from, now_s)
            .map_err(|refusal| refusal.code.status())
    }

    #[test]
    fn strangers_measure_where_that_was_said_and_this_host_always() {
        let closed = Access::new(None, None, Strangers::Refused, Vec::new());
        assert_eq!(caller(&closed, None, FAR, 0), Err(401));
        assert_eq!(caller(&closed, Some("any"), FAR, 0), Err(401));
        assert_eq!(caller(&closed, None, HERE, 0), Ok(Caller::Trusted));
        assert!(closed.is_open_to(HERE) && !closed.is_open_to(FAR));
        let open = Access::new(None, None, Strangers::Measure, Vec::new());
        let stranger = caller(&open, None, FAR, 0).unwrap();
        assert!(stranger.is_stranger());
        assert!(stranger.may(Scope::Measure));
        assert!(!stranger.may(Scope::Observe) && !stranger.may(Scope::Admin));
    }

    #[test]
    fn a_token_that_is_shown_must_be_right() {
        let access = Access::new(Some("secret-secret"), None, Strangers::Measure, Vec::new());
        for from in [FAR, HERE] {
            let right = caller(&access, Some("secret-secret"), from, 0);
            assert_eq!(right, Ok(Caller::Trusted));
            for wrong in ["secret-secreT", "secret", "", "secret-secretsecret-secret"] {
                assert_eq!(caller(&access, Some(wrong), from, 0), Err(401), "{wrong}");
            }
        }
    }

    #[test]
    fn a_register_is_followed_as_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::of(folder.path());
        let access = Access::new(None, Some(register.clone()), Strangers::Refused, Vec::new());
        assert_eq!(caller(&access, None, FAR, 0), Err(401));
        let observe: Scopes = "observe".parse().unwrap();
        let token = register.add("ci", observe, Some(100)).unwrap();
        let held = caller(&access, Some(&token), FAR, 99).unwrap();
        assert!(held.may(Scope::Observe));
        assert_eq!(held.check(Scope::Measure).unwrap_err().code.status(), 403);
        let words = held.check(Scope::Capture).unwrap_err().error;
        assert!(
            words.contains("`ci`")
                && words.contains("`linerate token add NAME --scope observe,capture`"),
            "{words}"
        );
        let stranger = Caller::Stranger("observing needs a token".to_owned());
        let words = stranger.check(Scope::Admin).unwrap_err().error;
        assert!(words.contains("--scope measure,observe,admin`"), "{words}");
        // At its end it is good for nothing, which its holder is told.
        assert_eq!(caller(&access, Some(&token), FAR, 100), Err(401));
        assert!(register.remove("ci").unwrap());
        assert_eq!(caller(&access, Some(&token), FAR, 99), Err(401));
        // That the last one is gone lets nobody in who needed one before, also after a new start.
        let again = Access::new(None, Some(register.clone()), Strangers::Refused, Vec::new());
        for access in [&access, &again] {
            assert_eq!(caller(access, None, HERE, 99), Err(401));
            assert_eq!(caller(access, Some(&token), HERE, 99), Err(401));
        }
        std::fs::remove_file(register.path()).unwrap();
        for access in [&access, &again] {
            assert_eq!(caller(access, None, HERE, 99), Err(401));
        }
    }

    #[test]
    fn certificates_close_loopback_too() {
        let access = Access::new(None, None, Strangers::Refused, Vec::new()).with_certificates();
        assert_eq!(caller(&access, None, HERE, 0), Err(401));
        let shown = Shown {
            token: None,
            certificate: Some(Fingerprint::of(&vec![1].into())),
        };
        let holder = access.caller(shown, HERE, 0).unwrap();
        assert!(holder.may(Scope::Admin));
    }

    #[test]
    fn a_token_with_its_fingerprint_is_the_token() {
        let access = Access::new(Some("secret-secret"), None, Strangers::Refused, Vec::new());
        let print = Fingerprint::of(&vec![1].into());
        let with = |text: String| caller(&access, Some(&text), FAR, 0);
        assert_eq!(with(format!("secret-secret@{print}")), Ok(Caller::Trusted));
        assert_eq!(with("secret-secret@SHA256:00".to_owned()), Err(401));
    }

    #[test]
    fn a_register_that_cannot_be_read_lets_nobody_in_from_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::of(folder.path());
        register.add("ci", Scopes::ALL, None).unwrap();
        std::fs::write(register.path(), "no token\n").unwrap();
        let access = Access::new(None, Some(register), Strangers::Measure, Vec::new());
        assert_eq!(caller(&access, Some("any"), FAR, 0), Err(500));
        assert_eq!(caller(&access, None, FAR, 0), Err(500));
    }

    #[test]
    fn connections_are_taken_from_the_networks_named() {
        let networks = ["10.1.0.0/16", "fd00::/8"].map(|text| text.parse().unwrap());
        let some = Access::new(None, None, Strangers::Measure, networks.to_vec());
        let takes = |address: &str| some.takes(address.parse().unwrap());
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "127.0.0.1", "::1"] {
            assert!(takes(address), "{address}");
        }
        for address in ["10.2.0.1", "fe80::1", "192.0.2.1"] {
            assert!(!takes(address), "{address}");
        }
        let all = Access::new(None, None, Strangers::Measure, Vec::new());
        assert!(all.takes([192, 0, 2, 1].into()));
    }
}
