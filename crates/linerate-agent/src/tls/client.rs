//! Connecting to an agent over TLS, and judging the certificate that it shows.

use std::fmt;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, OtherError, SignatureScheme, StreamOwned,
};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use super::known::{KnownAgents, KnownError};
use super::{Fingerprint, Identity, TlsFileError, authorities, provider, unusable};

/// What a handshake that is not answered ran out of.
pub(crate) const HANDSHAKE: ureq::Timeout = ureq::Timeout::PerCall;

/// How agents' certificates are judged, and what callers show of their own.
#[derive(Debug, Clone)]
pub struct Trust {
    judge: Judge,
    own: Option<Arc<Identity>>,
}

#[derive(Debug, Clone)]
enum Judge {
    /// By what they showed before, and whatever they show first.
    Known(KnownAgents),
    /// By these fingerprints alone; what is not known yet is noted there.
    Fingerprints(Vec<Fingerprint>, Option<KnownAgents>),
    /// Not at all: for who shows nothing that others must not have.
    Nobody,
    /// By authorities.
    Authorities(Arc<WebPkiServerVerifier>),
}

/// Why a connection did not come to be.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// What the agent shows is not what it showed before.
    #[error(transparent)]
    Known(KnownError),
    /// The authorities do not vouch for what it shows.
    #[error("{0}")]
    Certificate(rustls::Error),
    /// What it shows is none of the fingerprints asked for.
    #[error("it shows {0}, which is not the fingerprint that was asked for")]
    Fingerprint(Fingerprint),
    /// What it shows was never seen before, and it does not show that it knows the token.
    #[error(
        "it shows {shown}, which is not known here, and does not prove that it knows the token: {why}"
    )]
    Unproved {
        /// What it shows.
        shown: Fingerprint,
        /// What it answered instead, in words.
        why: String,
    },
    /// Whoever answers does not speak TLS.
    #[error("it does not answer the handshake")]
    NoTls(#[source] std::io::Error),
    /// Anything else that ended it.
    #[error("{0}")]
    Other(rustls::Error),
}

impl HandshakeError {
    /// Returns whether the other end closed the connection before it said anything that is not TLS.
    pub(crate) fn broke_off(&self) -> bool {
        use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
        let Self::NoTls(error) = self else {
            return false;
        };
        matches!(error.kind(), UnexpectedEof | ConnectionReset)
    }
}

impl Trust {
    /// Returns trust in what agents showed before.
    pub fn known(agents: KnownAgents) -> Self {
        Self {
            judge: Judge::Known(agents),
            own: None,
        }
    }

    /// Returns trust in what the authorities of a file vouch for.
    pub fn authorities(path: &Path) -> Result<Self, TlsFileError> {
        let roots = Arc::new(authorities(path)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
        let general = |error: VerifierBuilderError| rustls::Error::General(error.to_string());
        let verifier = verifier.map_err(general).map_err(unusable(path))?;
        Ok(Self {
            judge: Judge::Authorities(verifier),
            own: None,
        })
    }

    /// Returns trust in these certificates alone; what an agent shows of them is noted in `known`.
    pub fn fingerprints(of: Vec<Fingerprint>, known: Option<KnownAgents>) -> Self {
        Self {
            judge: Judge::Fingerprints(of, known),
            own: None,
        }
    }

    /// Returns trust in whoever answers, for callers with nothing to lose.
    pub fn nobody() -> Self {
        Self {
            judge: Judge::Nobody,
            own: None,
        }
    }

    /// Returns what takes any certificate, and shows ours.
    pub(super) fn as_nobody(&self) -> Self {
        Self {
            judge: Judge::Nobody,
            own: self.own.clone(),
        }
    }

    /// Returns the same trust, decided by these certificates alone.
    pub fn in_fingerprint(&self, of: Fingerprint) -> Self {
        Self {
            judge: Judge::Fingerprints(vec![of], None),
            own: self.own.clone(),
        }
    }

    /// Shows agents a certificate of ours.
    pub fn showing(mut self, own: Identity) -> Self {
        self.own = Some(Arc::new(own));
        self
    }

    /// Returns what connects to the agent at `address`, which was asked for as `host`.
    pub(crate) fn connector(
        &self,
        host: &str,
        address: SocketAddr,
    ) -> Result<TlsConnector, rustls::Error> {
        let pin = |rule| -> Arc<dyn ServerCertVerifier> {
            Arc::new(Pin {
                name: pin_name(host, address.port()),
                rule,
                provider: provider(),
            })
        };
        let verifier = match &self.judge {
            Judge::Authorities(verifier) => Arc::clone(verifier) as _,
            Judge::Known(agents) => pin(Rule::Known(agents.clone())),
            Judge::Fingerprints(of, known) => pin(Rule::Among(of.clone(), known.clone())),
            Judge::Nobody => pin(Rule::Any),
        };
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.own {
            None => config.with_no_client_auth(),
            Some(own) => config.with_client_auth_cert(own.chain.clone(), own.key.clone_key())?,
        };
        // A run keeps its connections: what it would resume is not worth keeping.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(TlsConnector {
            config: Arc::new(config),
            // Only authorities look at it; a name that none could vouch for is asked for by address.
            server: ServerName::try_from(host.to_owned())
                .unwrap_or_else(|_| ServerName::from(address.ip())),
        })
    }
}

/// Returns under which name an agent is known.
pub fn pin_name(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Judges by the fingerprint alone. The signature over the handshake still has to be right: it shows
/// that whoever answers has the certificate's key.
#[derive(Debug)]
struct Pin {
    name: String,
    rule: Rule,
    provider: Arc<CryptoProvider>,
}

/// Which certificates are taken.
#[derive(Debug)]
enum Rule {
    /// The one that was shown before, or the first.
    Known(KnownAgents),
    /// One of these, which is noted.
    Among(Vec<Fingerprint>, Option<KnownAgents>),
    /// Any.
    Any,
}

impl Pin {
    fn check(&self, shown: Fingerprint) -> Result<(), HandshakeError> {
        let known = match &self.rule {
            Rule::Any => None,
            Rule::Among(these, _) if !these.contains(&shown) => {
                return Err(HandshakeError::Fingerprint(shown));
            }
            Rule::Among(_, known) => known.as_ref(),
            Rule::Known(known) => Some(known),
        };
        let checked = known.map_or(Ok(()), |known| known.check(&self.name, shown));
        checked.map_err(HandshakeError::Known)
    }
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(Fingerprint::of(end_entity))
            .map(|()| ServerCertVerified::assertion())
            .map_err(|error| rustls::Error::Other(OtherError(Arc::new(error))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}

/// Puts TLS on connections to one agent.
pub(crate) struct TlsConnector {
    pub(super) config: Arc<ClientConfig>,
    pub(super) server: ServerName<'static>,
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TlsConnector").field(&self.server).finish()
    }
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = TlsTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<TlsTransport>, ureq::Error> {
        let Some(transport) = chained else {
            return Ok(None);
        };
        let failed = |error| ureq::Error::Other(Box::new(error));
        let mut conn = ClientConnection::new(Arc::clone(&self.config), self.server.clone())
            .map_err(|error| failed(HandshakeError::Other(error)))?;
        let now = Arc::clone(&details.current_time);
        let mut sock = TransportAdapter::new(transport.boxed(), now);
        sock.set_timeout(details.timeout);
        conn.complete_io(&mut sock).map_err(as_handshake_error)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        let stream = StreamOwned { conn, sock };
        Ok(Some(TlsTransport { buffers, stream }))
    }
}

/// Returns what ended a handshake.
pub(super) fn as_handshake_error(error: std::io::Error) -> ureq::Error {
    let cause = error.get_ref();
    let failure = match cause.and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::Other(OtherError(other))) => {
            match other.downcast_ref::<HandshakeError>() {
                Some(HandshakeError::Known(known)) => HandshakeError::Known(known.clone()),
                Some(HandshakeError::Fingerprint(shown)) => HandshakeError::Fingerprint(*shown),
                _ => HandshakeError::Other(rustls::Error::General(other.to_string())),
            }
        }
        Some(rustls::Error::InvalidMessage(_)) => HandshakeError::NoTls(error),
        Some(bad @ rustls::Error::InvalidCertificate(_)) => {
            HandshakeError::Certificate(bad.clone())
        }
        Some(other) => HandshakeError::Other(other.clone()),
        None if cause.is_some_and(|cause| cause.is::<ureq::Error>()) => {
            return match ureq::Error::from(error) {
                // Whatever the time was for, the connection was there.
                ureq::Error::Timeout(_) => ureq::Error::Timeout(HANDSHAKE),
                other => other,
            };
        }
        None => HandshakeError::NoTls(error),
    };
    ureq::Error::Other(Box::new(failure))
}

/// A connection over TLS.
pub(crate) struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(ureq::Error::from)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let input = self.buffers.input_append_buf();
        let amount = self.stream.read(input)?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_by_the_name_that_they_were_asked_by() {
        assert_eq!(pin_name("DB1", 5201), "db1:5201");
        assert_eq!(pin_name("10.0.0.1", 80), "10.0.0.1:80");
        assert_eq!(pin_name("fe80::1", 80), "[fe80::1]:80");
    }
}
