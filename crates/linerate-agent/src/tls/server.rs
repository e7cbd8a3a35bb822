//! Taking up callers over TLS.
//!
//! Reading a first message is cheap, answering it is not: a key exchange and a signature, on the thread
//! that serves everybody. So those answers are given in turn, network by network, and after each the place
//! stays taken for as long as keeps nine tenths of that thread's time free; who asks for more than that is hung
//! up on before any of it is computed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Fingerprint, Identity, TlsFileError, provider};
use crate::limits::Source;
use crate::serve::threads::Queue;
use crate::session::turns::Rules;

/// The first byte of a TLS connection: a record of the handshake (RFC 8446, 5.1).
pub(crate) const FIRST_BYTE: u8 = 0x16;
/// How long a handshake may take: two round trips and a signature.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);

/// Answers under way, each of which takes a fraction of a millisecond and rests for nine times what all of them
/// take: 400 per second by one network where one takes 0.2 ms. One place is for networks that have none.
const ANSWERS: Rules = Rules {
    share: 3,
    most: 4,
    reserved: 1,
    waiting: 128,
};
/// How much longer a place rests than all of them answer: a tenth of a CPU is what workers beside a flood of first
/// messages do not feel, and a controller has one or two connections.
const REST: u32 = 9;
/// Longest rest after an answer.
const REST_MAX: Duration = Duration::from_millis(50);

/// What callers are answered with.
#[derive(Clone)]
pub(crate) struct Acceptor {
    config: Arc<ServerConfig>,
    answers: Arc<Queue<Source>>,
}

/// Why there is no connection over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHandshake {
    /// It broke off, was nonsense or took too long.
    Broken,
    /// Too many of its network wait.
    TooMany,
}

impl Acceptor {
    /// Returns what shows `identity`, and asks callers for a certificate that one of `callers` vouches
    /// for, where there are any; who has none comes without.
    pub(crate) fn new(
        identity: Identity,
        callers: Option<RootCertStore>,
    ) -> Result<Self, TlsFileError> {
        let mut config = set_up(identity, callers).map_err(TlsFileError::SetUp)?;
        // Nothing is kept of a connection: callers keep theirs, and strangers could fill a store.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
            answers: Queue::new(ANSWERS),
        })
    }

    /// Shakes hands with a caller at `address`; whoever does not in time, or with nonsense, gets nothing.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        address: IpAddr,
    ) -> Result<TlsStream<TcpStream>, NoHandshake> {
        let accepted = tokio::time::timeout(HANDSHAKE_DEADLINE, self.shake(stream, address));
        accepted.await.unwrap_or(Err(NoHandshake::Broken))
    }

    async fn shake(
        &self,
        stream: TcpStream,
        address: IpAddr,
    ) -> Result<TlsStream<TcpStream>, NoHandshake> {
        let broken = |_| NoHandshake::Broken;
        let first = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream);
        let first = first.await.map_err(broken)?;
        let place = self.answers.place(Source::of(address)).await;
        let place = place.ok_or(NoHandshake::TooMany)?;
        let began = cpu_time();
        let answered = first.into_stream(Arc::clone(&self.config));
        let took = cpu_time().saturating_sub(began);
        let rest = (took * ANSWERS.most as u32 * REST).min(REST_MAX);
        tokio::spawn(async move {
            tokio::time::sleep(rest).await;
            drop(place);
        });
        answered.await.map_err(broken)
    }
}

/// Returns the CPU time of this thread: on a busy host the clock on the wall would count others' turns. What
/// cannot be read is no time, and the rest one of the runtime's ticks.
fn cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

fn set_up(
    identity: Identity,
    callers: Option<RootCertStore>,
) -> Result<ServerConfig, rustls::Error> {
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    let config = match callers {
        None => config.with_no_client_auth(),
        Some(roots) => {
            let roots = Arc::new(roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                .allow_unauthenticated()
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            config.with_client_cert_verifier(verifier)
        }
    };
    config.with_single_cert(identity.chain, identity.key)
}

/// Returns the certificate that a caller showed; an authority vouches for it, or the handshake would
/// have ended.
pub(crate) fn shown(stream: &TlsStream<TcpStream>) -> Option<Fingerprint> {
    let certificates = stream.get_ref().1.peer_certificates()?;
    certificates.first().map(Fingerprint::of)
}
