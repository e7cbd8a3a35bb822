//! Taking up callers over TLS.
//!
//! Reading a first message is cheap, answering it is not: a key exchange and a signature, on the thread
//! that serves everybody. So those answers are given in turn, network by network, and after each the place
//! stays taken for as long as keeps 95 % of that thread's time free; who asks for more than that is hung
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

/// Answers under way, each of which takes a fraction of a millisecond and rests for nineteen times what all of them
/// take: 390 per second by one network where one takes 0.1 ms. One place is for networks that have none.
const ANSWERS: Rules = Rules {
    share: 3,
    most: 4,
    reserved: 1,
    waiting: 128,
};
/// How much longer a place rests than all of them answer: a twentieth of a CPU is what workers beside a flood of first
/// messages can spare, and a controller has one or two connections.
const REST: u32 = 19;
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::Instant;

    use rustls::{ClientConfig, ClientConnection};

    use super::*;

    /// Returns the first message of a client.
    fn first_message() -> Vec<u8> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = "agent".try_into().expect("a name");
        let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut message = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut message).expect("memory has room");
        }
        message
    }

    /// Returns how long this thread waited while others had the CPUs (proc_pid_schedstat(5), where it is).
    fn waited_for_a_cpu() -> Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let ns = text.split_whitespace().nth(1).map(str::parse);
        ns.and_then(Result::ok)
            .map_or(Duration::ZERO, Duration::from_nanos)
    }

    /// More than the places, so that they rest between answers.
    #[test]
    fn answers_take_a_small_part_of_their_threads_time() {
        const AT_ONCE: u32 = 60;
        let folder = tempfile::tempdir().expect("a folder");
        let identity = Identity::kept_in(folder.path(), "agent").expect("a key");
        let acceptor = Acceptor::new(identity, None).expect("a server");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it has one");
        let message = first_message();
        let mut pile: Vec<TcpStream> = (0..AT_ONCE)
            .map(|_| {
                let mut stream = TcpStream::connect(address).expect("it listens");
                stream.write_all(&message).expect("there is room");
                stream
            })
            .collect();
        let answering = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let began = Instant::now();
            runtime.block_on(async {
                let mut all = tokio::task::JoinSet::new();
                for _ in 0..AT_ONCE {
                    let (stream, peer) = listener.accept().expect("they have connected");
                    stream.set_nonblocking(true).expect("a socket");
                    let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
                    let acceptor = acceptor.clone();
                    all.spawn(async move { acceptor.accept(stream, peer.ip()).await.err() });
                }
                all.join_all().await
            });
            (
                began.elapsed().saturating_sub(waited_for_a_cpu()),
                cpu_time(),
            )
        });
        for stream in &mut pile {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("it is answered");
            assert_eq!(byte[0], FIRST_BYTE);
        }
        drop(pile);
        let (took, cpu) = answering.join().expect("it ends");
        // Three places, which rest nineteen times what four answer, are busy for a 26th of the time; a third leaves
        // room for what else the thread does.
        assert!(took > cpu * 3, "{took:?}, of which on a CPU {cpu:?}");
    }
}
