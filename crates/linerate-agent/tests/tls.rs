//! Control connections over TLS: who is trusted, who is not, and what strangers to TLS are told.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use common::Serving;
use linerate_agent::access::{Access, Strangers};
use linerate_agent::api::client::HttpAgent;
use linerate_agent::api::{Agent, AgentError, RefusalCode};
use linerate_agent::tls::client::HandshakeError;
use linerate_agent::tls::known::{KnownError, Met};
use linerate_agent::tls::meeting::meet;
use linerate_agent::tls::{Fingerprint, Identity, KnownAgents, Trust};
use linerate_model::run::Control;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn serving(directory: &Path) -> (Serving, String) {
    let identity = Identity::kept_in(directory, "test").unwrap();
    let fingerprint = identity.fingerprint().to_string();
    let serving = Serving::start(|server| server.with_tls(identity, None).unwrap());
    (serving, fingerprint)
}

fn known(path: PathBuf) -> (Trust, Arc<Mutex<Vec<Met>>>) {
    let met = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&met);
    let told = Arc::new(move |one: &Met| noted.lock().unwrap().push(one.clone()));
    (Trust::known(KnownAgents::new(path, told)), met)
}

fn agent(address: SocketAddr, trust: &Trust) -> HttpAgent {
    HttpAgent::over_tls("agent.test", address, None, trust).unwrap()
}

#[test]
fn an_agent_is_noted_once_and_known_again() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, fingerprint) = serving(folder.path());
    let path = folder.path().join("known");
    let (trust, met) = known(path.clone());
    for _ in 0..2 {
        let agent = agent(serving.address, &trust);
        assert_eq!(agent.control(), Control::Tls);
        // The second request goes over the connection of the first.
        assert_eq!(agent.info().unwrap().host_name, "test");
        assert!(agent.clock().unwrap().received_ns > 0);
    }
    let name = format!("agent.test:{}", serving.address.port());
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text, format!("{name} {fingerprint}\n"));
    let met = met.lock().unwrap();
    assert_eq!((met.len(), &met[0].name), (1, &name));
    assert_eq!(met[0].fingerprint.to_string(), fingerprint);
}

/// Returns an agent with this token of its own, and what it shows.
fn with_token(directory: &Path, token: Option<&str>) -> (Serving, Fingerprint) {
    let identity = Identity::kept_in(directory, "test").unwrap();
    let shown = identity.fingerprint();
    let serving = Serving::start(|mut server| {
        server.access = Access::new(token, None, Strangers::Refused, Vec::new());
        server.with_tls(identity, None).unwrap()
    });
    (serving, shown)
}

#[test]
fn an_agent_that_knows_the_token_is_met_without_showing_it() {
    let folder = tempfile::tempdir().unwrap();
    let token = "secret-secret";
    let (serving, shown) = with_token(&folder.path().join("one"), Some(token));
    let met = |token: &str, expected| {
        meet(
            "agent.test",
            serving.address,
            token,
            expected,
            &Trust::nobody(),
        )
    };
    assert_eq!(met(token, None).unwrap(), shown);
    // A certificate that came with the token needs no proof.
    assert_eq!(met("another-token", Some(shown)).unwrap(), shown);
    let refused = met("another-token", None).unwrap_err();
    assert_eq!(
        refused.refusal(),
        Some(RefusalCode::Unauthorized),
        "{refused}"
    );
    // Who is met so is who is called then, and nobody else.
    let trust = Trust::fingerprints(vec![shown], None);
    let agent = HttpAgent::over_tls("agent.test", serving.address, Some(token), &trust).unwrap();
    agent.info().unwrap();
    let (other, _) = with_token(&folder.path().join("other"), Some(token));
    let agent = HttpAgent::over_tls("agent.test", other.address, Some(token), &trust).unwrap();
    let AgentError::Untrusted { source, .. } = agent.info().unwrap_err() else {
        panic!("another certificate is taken");
    };
    assert!(
        matches!(*source, HandshakeError::Fingerprint(_)),
        "{source}"
    );
}

/// Answers one caller over TLS as it likes, and returns what was asked.
fn impostor(directory: &Path, answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
    let identity = Identity::kept_in(directory, "test").unwrap();
    drop(identity);
    let path = directory.join("agent.pem");
    let chain = CertificateDer::pem_file_iter(&path)
        .unwrap()
        .map(Result::unwrap);
    let key = PrivateKeyDer::from_pem_file(&path).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.collect(), key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let session = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = rustls::StreamOwned::new(session, stream);
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            asked.push(byte[0]);
        }
        let body = answer.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {body}\r\n\r\n");
        stream.write_all((head + answer).as_bytes()).unwrap();
        stream.conn.send_close_notify();
        let _ = stream.flush();
        String::from_utf8(asked).unwrap()
    });
    (address, thread)
}

#[test]
fn who_does_not_know_the_token_neither_learns_it_nor_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let token = "secret-secret";
    let zeros = concat!(
        r#"{"proof":"00000000000000000000000000000000"#,
        r#"00000000000000000000000000000000"}"#
    );
    for (at, answer) in [zeros, "{}", "", "no JSON"].into_iter().enumerate() {
        let (address, asked) = impostor(&folder.path().join(at.to_string()), answer);
        let met = meet("agent.test", address, token, None, &Trust::nobody());
        let asked = asked.join().unwrap();
        assert!(!asked.contains(token), "{asked}");
        let Err(AgentError::Untrusted { source, .. }) = met else {
            panic!("{answer} is taken: {met:?}");
        };
        assert!(
            matches!(*source, HandshakeError::Unproved { .. }),
            "{source}"
        );
    }
}

#[test]
fn another_certificate_than_before_is_refused_before_anything_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, shown) = serving(&folder.path().join("one"));
    let other = Identity::kept_in(&folder.path().join("other"), "test").unwrap();
    let path = folder.path().join("known");
    let name = format!("agent.test:{}", serving.address.port());
    let pinned = other.fingerprint();
    std::fs::write(&path, format!("# ours\n{name} {pinned}\n")).unwrap();
    let (trust, met) = known(path.clone());
    let refused = agent(serving.address, &trust).info().unwrap_err();
    let AgentError::Untrusted { source, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(
        matches!(
            &**source,
            HandshakeError::Known(KnownError::Changed { line: 2, .. })
        ),
        "{source}"
    );
    let words = source.to_string();
    for word in [&shown, &pinned.to_string(), &path.display().to_string()] {
        assert!(words.contains(word), "{word}: {words}");
    }
    assert!(met.lock().unwrap().is_empty());
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 2);
}

/// Writes an authority's certificate, and one of an agent with its key that it vouches for.
fn authority(folder: &Path, agent_name: &str) -> [PathBuf; 3] {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new([]).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = parameters.self_signed(&key).unwrap();
    let issuer = Issuer::new(parameters, key);
    let agent_key = KeyPair::generate().unwrap();
    let agent = CertificateParams::new([agent_name.to_owned()]).unwrap();
    let agent = agent.signed_by(&agent_key, &issuer).unwrap();
    let write = |name: &str, label: &str, bytes: &[u8]| {
        use base64::Engine;
        let digits = base64::engine::general_purpose::STANDARD.encode(bytes);
        let path = folder.join(name);
        let text = format!("-----BEGIN {label}-----\n{digits}\n-----END {label}-----\n");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    [
        write("authority", "CERTIFICATE", own.der()),
        write("certificate", "CERTIFICATE", agent.der()),
        write("key", "PRIVATE KEY", &agent_key.serialize_der()),
    ]
}

#[test]
fn authorities_vouch_for_the_name_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let [authority, certificate, key] = authority(folder.path(), "agent.test");
    let identity = Identity::read(&certificate, &key).unwrap();
    let serving = Serving::start(|server| server.with_tls(identity, None).unwrap());
    let trust = Trust::authorities(&authority).unwrap();
    agent(serving.address, &trust).info().unwrap();
    let refused = |agent: HttpAgent| match agent.info().unwrap_err() {
        AgentError::Untrusted { source, .. } => source.to_string(),
        other => panic!("{other}"),
    };
    let elsewhere = HttpAgent::over_tls("other.test", serving.address, None, &trust);
    let words = refused(elsewhere.unwrap());
    assert!(words.contains("other.test"), "{words}");
    let (own, _) = self::serving(&folder.path().join("own"));
    let words = refused(agent(own.address, &trust));
    assert!(words.contains("certificate"), "{words}");
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    assert!(Trust::authorities(&empty).is_err());
}

#[test]
fn a_certificate_that_is_vouched_for_does_instead_of_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let (state, path) = (folder.path().join("state"), folder.path().join("known"));
    let [callers, certificate, key] = authority(folder.path(), "a caller");
    let identity = Identity::kept_in(&state, "test").unwrap();
    let rules = Access::new(Some("secret-secret"), None, Strangers::Refused, Vec::new());
    let serving = Serving::start(|server| {
        let mut server = server.with_tls(identity, Some(&callers)).unwrap();
        server.access = rules;
        server
    });
    let info = |token: Option<&str>, own: Option<Identity>| {
        let (trust, _) = known(path.clone());
        let trust = own.into_iter().fold(trust, Trust::showing);
        let agent = HttpAgent::over_tls("agent.test", serving.address, token, &trust);
        agent.unwrap().info()
    };
    let own = || Some(Identity::read(&certificate, &key).unwrap());
    info(None, own()).unwrap();
    info(Some("secret-secret"), None).unwrap();
    // A token that is shown must be right, whatever else is shown.
    let refused = info(Some("other"), own()).unwrap_err();
    assert_eq!(
        refused.refusal(),
        Some(RefusalCode::Unauthorized),
        "{refused}"
    );
    // One that nobody vouches for ends the connection.
    let stranger = Identity::kept_in(&folder.path().join("stranger"), "stranger").unwrap();
    let refused = info(None, Some(stranger)).unwrap_err();
    assert_eq!(refused.refusal(), None, "{refused}");
}

#[test]
fn who_does_not_speak_tls_is_told_from_who_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let (trust, _) = known(folder.path().join("known"));
    let plain = Serving::start(|server| server);
    let error = agent(plain.address, &trust).info().unwrap_err();
    assert!(matches!(error, AgentError::NoTls { .. }), "{error}");
    assert!(error.to_string().contains("older"), "{error}");
    // What answers in plain text, as a web server does.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut room = [0; 16];
        stream.read_exact(&mut room).unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
    });
    let error = agent(address, &trust).info().unwrap_err();
    assert!(matches!(error, AgentError::NoTls { .. }), "{error}");
    server.join().unwrap();
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let error = agent(free, &trust).info().unwrap_err();
    assert!(matches!(error, AgentError::Unreachable { .. }), "{error}");
    assert!(!folder.path().join("known").exists());
}

/// As an agent seems to do behind a path that loses packets: it gives a handshake up whose bytes are late.
#[test]
fn a_handshake_that_broke_off_is_tried_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, _) = serving(folder.path());
    let agent_at = serving.address;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let relay = std::thread::spawn(move || {
        drop(listener.accept().unwrap());
        let (mut near, _) = listener.accept().unwrap();
        let mut far = TcpStream::connect(agent_at).unwrap();
        let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        let requests = std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
        let _ = std::io::copy(&mut far, &mut near);
        requests.join().unwrap();
        // A third would be one too many.
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    });
    let (trust, _) = known(folder.path().join("known"));
    let asked = agent(address, &trust);
    asked.info().expect("the second connection is answered");
    drop(asked);
    relay.join().unwrap();
}

#[test]
fn handshakes_that_lead_nowhere_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, _) = serving(folder.path());
    let say = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(serving.address).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    // The head of a record of 512 bytes with a hello in it, and no more of it.
    let half = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let silent: Vec<TcpStream> = (0..64).map(|_| say(half)).collect();
    let noise: Vec<u8> = (0..4096_u32).map(|at| (at * 131 % 251) as u8).collect();
    for garbage in [
        [&half[..], &noise].concat(),
        [&b"\x16\x03\x01\xff\xff"[..], &noise].concat(),
        [&b"\x16"[..], &noise].concat(),
        b"\x16GET / HTTP/1.1\r\n\r\n".to_vec(),
    ] {
        let mut answer = Vec::new();
        // Closed, by a reset where bytes were left unread; what may come before is an alert.
        let _ = say(&garbage).read_to_end(&mut answer);
        assert!(answer.is_empty() || answer[0] == 0x15, "{answer:?}");
    }
    let (trust, _) = known(folder.path().join("known"));
    for _ in 0..8 {
        agent(serving.address, &trust).info().unwrap();
    }
    // Those that never finish are cut off.
    for mut stream in silent {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
    }
}

/// Every first message is one that a client of ours sent, so each would cost the agent an answer.
#[test]
fn first_messages_beyond_the_pace_are_hung_up_on_unanswered() {
    const AT_ONCE: usize = 400;
    let folder = tempfile::tempdir().unwrap();
    let (serving, _) = serving(folder.path());
    let (trust, _) = known(folder.path().join("known"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let asked = agent(listener.local_addr().unwrap(), &trust);
    let asking = std::thread::spawn(move || asked.info().is_err());
    let (mut first, _) = listener.accept().unwrap();
    let mut message = [0; 4096];
    let count = first.read(&mut message).unwrap();
    drop((first, listener));
    assert!(asking.join().unwrap());
    let message = &message[..count];
    assert_eq!(message[0], 0x16);
    let connect = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        let elsewhere = SocketAddr::from(([127, 0, 0, 2], 0));
        socket.bind(&elsewhere.into()).unwrap();
        socket.connect(&serving.address.into()).unwrap();
        TcpStream::from(socket)
    };
    let mut pile: Vec<TcpStream> = (0..AT_ONCE).map(|_| connect()).collect();
    for stream in &mut pile {
        stream.write_all(message).unwrap();
    }
    let began = std::time::Instant::now();
    agent(serving.address, &trust).info().unwrap();
    println!("beside {AT_ONCE} first messages: {:?}", began.elapsed());
    let mut unanswered = 0;
    for mut stream in pile {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => assert_eq!(byte[0], 0x16),
            _ => unanswered += 1,
        }
    }
    println!("{unanswered} of {AT_ONCE} unanswered");
    // 128 wait; what the agent is through with meanwhile makes room for others.
    assert!((1..=AT_ONCE - 128).contains(&unanswered), "{unanswered}");
}
