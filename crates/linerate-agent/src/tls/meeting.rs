//! Meeting an agent whose certificate is not known, with a token that it should know.
//!
//! One request on a connection of its own, before anything else is said: see `access/proof.rs` for what it shows.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustls::ClientConnection;

use super::Fingerprint;
use super::client::{HandshakeError, Trust, as_handshake_error};
use crate::access::digest;
use crate::access::proof::{Channel, LABEL, Role};
use crate::api::client::CONNECT_TIMEOUT;
use crate::api::reach::connect;
use crate::api::{AgentError, NoAnswer, Refusal, RefusalCode, TokenProof, one_line, operation};

/// How long handshake and answer may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// Longest answer: a proof or a refusal, with the headers of either.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Meets the agent at `address`, which was asked for as `host`, and returns the certificate that it showed, if it
/// proves that it knows `token` or if that certificate is the one `expected`. The token is not shown.
pub fn meet(
    host: &str,
    address: SocketAddr,
    token: &str,
    expected: Option<Fingerprint>,
    trust: &Trust,
) -> Result<Fingerprint, AgentError> {
    let once = || meet_once(host, address, token, expected, trust);
    match once() {
        // As for the first question to an agent: the path may lose packets.
        Err(error) if error.is_silence() => once().map_err(|_| error.twice()),
        met => met,
    }
}

fn meet_once(
    host: &str,
    address: SocketAddr,
    token: &str,
    expected: Option<Fingerprint>,
    trust: &Trust,
) -> Result<Fingerprint, AgentError> {
    let untrusted = |source| AgentError::Untrusted {
        address: address.to_string(),
        source: Box::new(source),
    };
    let other = |error| untrusted(HandshakeError::Other(error));
    let tls = trust.as_nobody().connector(host, address).map_err(other)?;
    let stream = connect(address, None, CONNECT_TIMEOUT);
    let stream =
        stream.map_err(|error| unreachable(address, NoAnswer::of(address, &error), error))?;
    let session = ClientConnection::new(tls.config, tls.server).map_err(other)?;
    let mut call = Call {
        session,
        stream,
        end: Instant::now() + DEADLINE,
    };
    call.shake_hands().map_err(|error| broken(address, error))?;
    let certificates = call.session.peer_certificates();
    let shown = certificates
        .and_then(|chain| chain.first())
        .map(Fingerprint::of);
    let shown = shown.ok_or_else(|| other(rustls::Error::NoCertificatesPresented))?;
    if expected == Some(shown) {
        return Ok(shown);
    }
    let session = &call.session;
    let channel = Channel::of(|room| session.export_keying_material(room, LABEL, None));
    let channel = channel.map_err(other)?;
    let token = digest(token.as_bytes());
    let unproved = |why: String| untrusted(HandshakeError::Unproved { shown, why });
    let answer = call.ask(address, &channel.proof(Role::Caller, &token));
    let answer = answer.map_err(|error| unproved(error.to_string()))?;
    if let Ok(TokenProof { proof }) = serde_json::from_slice(&answer) {
        return if channel.is_proof(Role::Agent, &token, proof.as_bytes()) {
            Ok(shown)
        } else {
            Err(unproved("its proof is wrong".to_owned()))
        };
    }
    Err(match serde_json::from_slice::<Refusal>(&answer) {
        // What answers at an address of this host is none that stands in between.
        Ok(refusal)
            if address.ip().to_canonical().is_loopback()
                && refusal.code == RefusalCode::Unauthorized =>
        {
            AgentError::Refused {
                address: Some(address.to_string()),
                refusal: Refusal {
                    error: one_line(&refusal.error),
                    next: refusal.next.as_deref().map(one_line),
                    code: refusal.code,
                },
            }
        }
        Ok(refusal) => unproved(format!("it says that {}", one_line(&refusal.error))),
        Err(_) => unproved("it does not answer as linerate does".to_owned()),
    })
}

fn unreachable(address: SocketAddr, why: NoAnswer, source: std::io::Error) -> AgentError {
    AgentError::Unreachable {
        address: address.to_string(),
        why,
        how: why.loss(),
        source: source.into(),
    }
}

/// Returns what a handshake means that did not come to its end.
fn broken(address: SocketAddr, error: std::io::Error) -> AgentError {
    if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) {
        let waited = format!(
            "this host waited {} s for the handshake of TLS",
            DEADLINE.as_secs()
        );
        return unreachable(address, NoAnswer::Quiet, std::io::Error::other(waited));
    }
    let address = address.to_string();
    match as_handshake_error(error) {
        ureq::Error::Other(other) => match other.downcast::<HandshakeError>() {
            Ok(source) if matches!(*source, HandshakeError::NoTls(_)) => {
                AgentError::NoTls { address, source }
            }
            Ok(source) => AgentError::Untrusted { address, source },
            Err(other) => AgentError::NotAnAgent {
                address,
                what: other.to_string(),
            },
        },
        other => AgentError::NotAnAgent {
            address,
            what: other.to_string(),
        },
    }
}

/// One connection for one question.
struct Call {
    session: ClientConnection,
    stream: TcpStream,
    end: Instant,
}

impl Call {
    fn shake_hands(&mut self) -> std::io::Result<()> {
        while self.session.is_handshaking() {
            self.give_time()?;
            self.session.complete_io(&mut self.stream)?;
        }
        Ok(())
    }

    /// Asks whether the agent knows the token of `proof`; returns the body of its answer.
    fn ask(&mut self, address: SocketAddr, proof: &str) -> std::io::Result<Vec<u8>> {
        let request = format!(
            "GET {} HTTP/1.1\r\nhost: {address}\r\nauthorization: Proof {proof}\r\nconnection: close\r\n\r\n",
            operation::PROVE.path
        );
        self.give_time()?;
        rustls::Stream::new(&mut self.session, &mut self.stream).write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut room = [0; 2048];
        while answer.len() < ANSWER_BYTES_MAX {
            self.give_time()?;
            let mut stream = rustls::Stream::new(&mut self.session, &mut self.stream);
            match stream.read(&mut room) {
                Ok(0) => break,
                Ok(count) => answer.extend_from_slice(&room[..count]),
                // Who closes the connection without a word of TLS has said all the same.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        let body = answer.windows(4).position(|four| four == b"\r\n\r\n");
        Ok(body.map_or(Vec::new(), |at| answer.split_off(at + 4)))
    }

    /// Lets the next call take what is left of the time.
    fn give_time(&self) -> std::io::Result<()> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_write_timeout(Some(left))?;
        self.stream.set_read_timeout(Some(left))
    }
}
