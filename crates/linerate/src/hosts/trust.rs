//! Which agents are trusted, and what they are shown.
//!
//! What was typed decides, and what is known by that name; what the name resolves to decides nothing, since others may
//! decide that.
//!
//! 1. `--plain`: no TLS, everything is shown.
//! 2. `--tls-ca`, `--fingerprint`, a certificate that is known by that name: TLS, and that certificate or none.
//! 3. An address of loopback or `localhost` was typed: without a token as it is, since nothing leaves this host. A token
//!    is shown over TLS to who proves to know it; to nobody else, and its absence may be enough.
//! 4. A host that is met for the first time: without a token it is noted by what it shows. With one it proves that it
//!    knows the token, or shows the certificate that the token came with, before it is noted and shown the token;
//!    unless `--accept-new` says that it may be whoever answers.
//!
//! What answers at an address of loopback is noted under no name: it says nothing of the host of that name.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use linerate_agent::api::AgentError;
use linerate_agent::api::client::HttpAgent;
use linerate_agent::tls::client::{HandshakeError, pin_name};
use linerate_agent::tls::known::{KnownError, Met};
use linerate_agent::tls::meeting::meet;
use linerate_agent::tls::{Fingerprint, Identity, KnownAgents, Trust};

use super::address::Place;
use super::token::Token;
use super::{Judge, TrustAsked, agent_failure};
use crate::exit::{CmdResult, Failure};
use crate::places;

/// What agents are called with.
pub struct Callers {
    token: Option<Token>,
    own: Option<Identity>,
    judge: Judged,
}

/// How agents are known.
enum Judged {
    Known {
        agents: KnownAgents,
        accepts_new: bool,
    },
    Fingerprints(Vec<Fingerprint>, KnownAgents),
    Authorities(Trust),
    Nobody,
}

impl Callers {
    /// Returns what calls with this token.
    pub fn new(token: Option<Token>, asked: &TrustAsked) -> CmdResult<Self> {
        let known = |file: &Option<_>| -> CmdResult<KnownAgents> {
            let path = places::known_agents(file.as_deref())?;
            Ok(KnownAgents::new(path, Arc::new(tell_met)))
        };
        let judge = match &asked.judge {
            Judge::Nobody => Judged::Nobody,
            Judge::Authorities(file) => {
                Judged::Authorities(Trust::authorities(file).map_err(Failure::usage)?)
            }
            Judge::Known(file) => Judged::Known {
                agents: known(file)?,
                accepts_new: false,
            },
            Judge::AcceptNew(file) => Judged::Known {
                agents: known(file)?,
                accepts_new: true,
            },
            Judge::Fingerprints(of, file) => Judged::Fingerprints(of.clone(), known(file)?),
        };
        let own = match &asked.own {
            Some((certificate, key)) => {
                Some(Identity::read(certificate, key).map_err(super::unusable_identity)?)
            }
            None => None,
        };
        Ok(Self { token, own, judge })
    }

    /// Returns the agent of a host, at the address that answers.
    pub fn reached(&self, place: &Place) -> CmdResult<(HttpAgent, SocketAddr)> {
        let (address, _) = place.reached(None).map_err(agent_failure)?;
        let agent = self.agent(&place.host, address).map_err(agent_failure)?;
        Ok((agent, address))
    }

    fn agent(&self, host: &str, address: SocketAddr) -> Result<HttpAgent, AgentError> {
        let secret = self.token.as_ref().map(|token| token.secret.as_str());
        let over_tls = |trust: Trust| {
            let trust = self.with_own(trust);
            HttpAgent::over_tls(host, address, secret, &trust)
        };
        let (agents, accepts_new) = match &self.judge {
            Judged::Nobody => return Ok(HttpAgent::plain(address, secret)),
            Judged::Authorities(trust) => return over_tls(trust.clone()),
            Judged::Fingerprints(of, agents) => {
                let noted = (!is_here(address.ip())).then(|| agents.clone());
                return over_tls(Trust::fingerprints(of.clone(), noted));
            }
            Judged::Known {
                agents,
                accepts_new,
            } => (agents, *accepts_new),
        };
        let name = pin_name(host, address.port());
        let untrusted = |error: KnownError| AgentError::Untrusted {
            address: address.to_string(),
            source: Box::new(HandshakeError::Known(error)),
        };
        if agents.has(&name).map_err(untrusted)? {
            return over_tls(Trust::known(agents.clone()));
        }
        let Some(token) = &self.token else {
            return match (is_here(address.ip()), &self.own) {
                (true, None) if is_of_loopback(host) => Ok(HttpAgent::plain(address, None)),
                (true, _) => over_tls(Trust::nobody()),
                (false, _) => over_tls(Trust::known(agents.clone())),
            };
        };
        if accepts_new {
            return over_tls(if is_here(address.ip()) {
                Trust::nobody()
            } else {
                Trust::known(agents.clone())
            });
        }
        let ours = self.with_own(Trust::nobody());
        match meet(host, address, &token.secret, token.fingerprint, &ours) {
            Ok(shown) if is_here(address.ip()) => over_tls(Trust::fingerprints(vec![shown], None)),
            Ok(shown) => {
                let agents = agents.telling(Arc::new(tell_proved));
                over_tls(Trust::fingerprints(vec![shown], Some(agents)))
            }
            // One without tokens asks this host's callers for none.
            Err(AgentError::Untrusted { .. } | AgentError::NoTls { .. })
                if is_of_loopback(host) && self.own.is_none() =>
            {
                Ok(HttpAgent::plain(address, None))
            }
            Err(error) => Err(error),
        }
    }

    fn with_own(&self, trust: Trust) -> Trust {
        match &self.own {
            Some(own) => trust.showing(own.clone()),
            None => trust,
        }
    }
}

/// Returns whether an address of this host was typed, as such or as `localhost`.
fn is_of_loopback(host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    address.map_or(host.eq_ignore_ascii_case("localhost"), is_here)
}

fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn tell_proved(met: &Met) {
    crate::term::note(&format!(
        "first connection to {}: it is the agent of the token, and its certificate {} is now noted in {}",
        met.name,
        met.fingerprint,
        met.path.display()
    ));
}

fn tell_met(met: &Met) {
    crate::term::note(&format!(
        "first connection to {}: its certificate {} is now noted in {}; compare it with the one that \
         `linerate serve` prints there",
        met.name,
        met.fingerprint,
        met.path.display()
    ));
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;
    use std::time::Duration;

    use linerate_agent::api::Agent as _;

    use super::*;

    /// The first byte of a record of TLS that begins a handshake.
    const HANDSHAKE: u8 = 22;

    /// Returns what whoever listens at an address of loopback is sent first by who typed `host`.
    fn first_byte(host: &str, token: Option<&str>, known: &std::path::Path) -> Option<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        if host == "agent.test" {
            let line = format!(
                "{} SHA256:{}\n",
                pin_name(host, address.port()),
                "5f".repeat(32)
            );
            std::fs::write(known, line).expect("the folder is ours");
        }
        let heard = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().ok()?;
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .ok()?;
            let mut first = [0];
            stream.read_exact(&mut first).ok()?;
            Some(first[0])
        });
        let asked = TrustAsked {
            judge: Judge::Known(Some(known.to_owned())),
            own: None,
        };
        let token = token.map(|secret| Token {
            secret: secret.to_owned(),
            fingerprint: None,
        });
        let callers = Callers::new(token, &asked).expect("nothing is wrong with it");
        let called = callers.agent(host, address).and_then(|agent| agent.info());
        assert!(called.is_err(), "who listens is no agent");
        // Where nothing was said, that is what is heard.
        drop(std::net::TcpStream::connect(address));
        heard.join().expect("it listens")
    }

    #[test]
    fn a_name_that_is_known_is_called_over_tls_wherever_it_leads_now() {
        let folder = tempfile::tempdir().expect("the temporary directory can be written");
        let known = folder.path().join("known");
        for token in [None, Some("0123456789abcdef")] {
            let heard = first_byte("agent.test", token, &known);
            assert_eq!(heard, Some(HANDSHAKE), "{token:?}");
        }
        std::fs::remove_file(&known).expect("it was written");
        // A name that nobody knows is no address of this host because others say so; one that was typed is.
        assert_eq!(first_byte("other.test", None, &known), Some(HANDSHAKE));
        assert_eq!(first_byte("127.0.0.1", None, &known), Some(b'G'));
        let shown = first_byte("127.0.0.1", Some("0123456789abcdef"), &known);
        assert_eq!(shown, Some(HANDSHAKE));
    }
}
