//! The listener: one port for control and data.
//!
//! The first bytes of a connection tell what it is (`Opening`): a native data connection, HTTP, a client of
//! iperf3 or of netperf, or TLS with a control connection behind it. Everything else is closed. Whoever sends nothing is
//! closed too, after 5 s or when too many others come; nobody waits for a place.

use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use linerate_compat::iperf3::Cookie;
use linerate_compat::iperf3::auth::Gate;
use linerate_compat::netperf::Message;
use linerate_engine::DatagramListener;
use linerate_model::manner::Transport;
use nix::sys::socket::{MsgFlags, recv};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpStream, UnixListener};

use crate::access::proof::{Channel, LABEL};
use crate::access::{Access, Strangers};
use crate::core::{Core, open_files_max};
use crate::foreign::{iperf3, netperf};
use crate::log::Asker;
use crate::tls::server::{Acceptor, FIRST_BYTE as TLS_FIRST_BYTE, NoHandshake, shown};
use crate::tls::{Identity, TlsFileError, authorities};

/// The connections that the listener holds, and who has to go when there are too many.
mod connections;
/// First datagrams of new peers.
pub(crate) mod datagram;
/// The listener, which workers may have for a while.
pub(crate) mod entrance;
/// One page of text that is made anew for each reader.
pub mod exporter;
/// What is asked of every request before its route.
mod gate;
/// The first bytes of a native data connection.
pub mod hello;
/// Requests and answers over HTTP.
mod http;
/// Callers of this host by a Unix socket.
pub(crate) mod local;
/// Whose run a control connection serves.
mod owner;
/// How long an answer may wait for who reads it.
mod patience;
/// Where a request comes from.
mod peer;
/// Work that takes time: each caller's in turn.
pub(crate) mod threads;

use connections::{ConnectionGuard, Connections};
use datagram::FirstDatagrams;
use entrance::Entrance;
use hello::{Announces, HELLO_BYTES, HELLO_MAGIC, Hello};
use local::LocalSocket;
pub use local::sweep;
use owner::Owner;
use patience::Patient;
use peer::Peer;
use threads::Threads;

/// How long a connection may take to say what it is.
const FIRST_BYTES_DEADLINE: Duration = Duration::from_secs(5);
/// First bytes that are looked at: a cookie of iperf3 has no space in so many.
const OPENING_BYTES: usize = 36;
/// How long an HTTP connection may take for the headers of its next request.
const HEADERS_DEADLINE: Duration = Duration::from_secs(30);
/// How long an answer may wait for a peer that does not read it, or not to its end.
const UNREAD_DEADLINE: Duration = Duration::from_secs(30);
/// Pause after the system refuses to accept, for instance for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections that may wait to be accepted; the kernel caps it by net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// Ports tried where the kernel chooses one for connections that may be taken for datagrams.
const PORT_TRIES: u32 = 16;

/// IPPROTO_MPTCP of include/uapi/linux/in.h.
const IPPROTO_MPTCP: i32 = 262;

/// Why the listener could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address could not be bound.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The Unix socket could not be bound.
    #[error("cannot listen on the Unix socket {}", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The runtime could not be made.
    #[error("cannot set up the network runtime")]
    Runtime(#[source] std::io::Error),
}

/// A bound listener that has not begun to serve.
pub struct Server {
    entrance: Entrance,
    datagrams: DatagramListener,
    core: Arc<Core>,
    local: Option<LocalSocket>,
    tls: Option<Acceptor>,
    /// Which iperf3 clients are let in; absent: all that may measure without a token.
    pub iperf3_gate: Option<Gate>,
    /// From where control connections are taken without TLS; this host at first.
    pub plain: Plain,
    /// Who is let in; this host's callers at first.
    pub access: Access,
}

/// From where control connections are taken without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// From this host.
    Loopback,
    /// From everywhere: for networks that the agent's user has for itself, as a lab's.
    Everywhere,
}

impl Server {
    /// Binds `address`; port 0 lets the kernel choose.
    pub fn bind(address: SocketAddr, core: Arc<Core>) -> Result<Self, ServeError> {
        let bind = |source| ServeError::Bind { address, source };
        let (listener, datagrams) = listen_twice(address).map_err(bind)?;
        let (entrance, doorway) = Entrance::new(listener).map_err(bind)?;
        core.listens_on(doorway, &datagrams).map_err(bind)?;
        Ok(Self {
            entrance,
            datagrams,
            core,
            local: None,
            tls: None,
            iperf3_gate: None,
            plain: Plain::Loopback,
            access: Access::new(None, None, Strangers::Refused, Vec::new()),
        })
    }

    /// Speaks TLS, as `identity`. Callers may show a certificate for which an authority of the file
    /// `callers` vouches instead of a token.
    pub fn with_tls(
        mut self,
        identity: Identity,
        callers: Option<&Path>,
    ) -> Result<Self, TlsFileError> {
        let callers = callers.map(authorities).transpose()?;
        self.tls = Some(Acceptor::new(identity, callers)?);
        Ok(self)
    }

    /// Serves root and the agent's own user by a Unix socket, too.
    pub fn add_socket(&mut self, path: &Path) -> Result<(), ServeError> {
        let local = LocalSocket::bind(path).map_err(|source| ServeError::Socket {
            path: path.to_owned(),
            source,
        })?;
        self.local = Some(local);
        Ok(())
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.entrance.address()
    }

    /// Serves until `stop` is dropped or sent to.
    pub fn run(self, stop: std::sync::mpsc::Receiver<()>) -> Result<(), ServeError> {
        runtime()?.block_on(async move {
            let access = Arc::new(self.access);
            let threads = Threads::new();
            let door = iperf3::Door::new(
                Arc::clone(&self.core),
                self.iperf3_gate,
                Arc::clone(&access),
                threads.clone(),
            );
            let door = Arc::new(door);
            let datagrams = FirstDatagrams::new(
                Arc::clone(&self.core),
                door.strangers(),
                Arc::clone(&access),
            );
            let ways = Arc::new(Ways {
                router: http::router(Arc::clone(&self.core), &access, &threads),
                core: Arc::clone(&self.core),
                door: Arc::clone(&door),
                netperf: netperf::Door::new(Arc::clone(&self.core), Arc::clone(&access)),
                tls: self.tls,
                plain: self.plain,
                access,
            });
            let work = async {
                tokio::select! {
                    result = datagram::serve(self.datagrams, datagrams) => {
                        result.map_err(ServeError::Runtime)
                    }
                    result = accept_all(self.entrance, self.local.as_ref(), ways) => result,
                }
            };
            let result = unless_stopped(stop, work).await;
            door.close().await;
            result
        })
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, ServeError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(threads::THREADS_MAX)
        .build()
        .map_err(ServeError::Runtime)
}

/// Works until `stop` is dropped or sent to.
async fn unless_stopped(
    stop: std::sync::mpsc::Receiver<()>,
    work: impl Future<Output = Result<(), ServeError>>,
) -> Result<(), ServeError> {
    let (stopped, wait) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = stop.recv();
        let _ = stopped.send(());
    });
    tokio::select! {
        result = work => result,
        _ = wait => Ok(()),
    }
}

/// Listens on one port for connections and datagrams; where the kernel chooses it, until it is
/// free for both.
fn listen_twice(address: SocketAddr) -> std::io::Result<(std::net::TcpListener, DatagramListener)> {
    let mut tries = if address.port() == 0 { PORT_TRIES } else { 1 };
    loop {
        let listener = listen(address)?;
        let port = listener.local_addr()?.port();
        tries -= 1;
        let mut same = address;
        same.set_port(port);
        match DatagramListener::bind(same) {
            Ok(datagrams) => return Ok((listener, datagrams)),
            Err(error) if tries == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

/// Listens on `address`; `[::]` takes IPv4 too, and the backlog holds a burst of flows.
fn listen(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let new = |protocol| Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol));
    // A listener of MPTCP takes plain TCP as well, and hands it out as plain sockets. Without it
    // in the kernel, or with net.mptcp.enabled = 0, every connection is plain.
    let socket = new(Protocol::from(IPPROTO_MPTCP)).or_else(|_| new(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Where connections lead.
struct Ways {
    core: Arc<Core>,
    router: axum::Router,
    door: Arc<iperf3::Door>,
    netperf: netperf::Door,
    tls: Option<Acceptor>,
    plain: Plain,
    access: Arc<Access>,
}

async fn accept_all(
    mut entrance: Entrance,
    local: Option<&LocalSocket>,
    ways: Arc<Ways>,
) -> Result<(), ServeError> {
    let connections = Connections::new(open_files_max());
    tokio::spawn(apply_deadlines(
        Arc::clone(&ways.core),
        Arc::clone(&connections),
    ));
    if let Some(local) = local {
        let listener = local.listener().map_err(ServeError::Runtime)?;
        let (connections, ways) = (Arc::clone(&connections), Arc::clone(&ways));
        tokio::spawn(accept_local(listener, connections, ways));
    }
    loop {
        let (stream, peer) = entrance.next().await;
        if !ways.access.takes(peer.ip()) {
            continue;
        }
        // Most flows have sent their hello by now: thousands at once need neither place nor task.
        let Some(stream) = take_up_at_once(stream, &ways.core) else {
            continue;
        };
        let ways = Arc::clone(&ways);
        connections.take_in(peer, |guard| take_up(stream, guard, ways));
    }
}

/// Waits for the next connection, however often the system refuses to accept one.
async fn accepted<T, F: Future<Output = std::io::Result<T>>>(accept: impl Fn() -> F) -> T {
    loop {
        match accept().await {
            Ok(connection) => return connection,
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Takes up callers of this host; others than its users are hung up on.
async fn accept_local(listener: UnixListener, connections: Arc<Connections>, ways: Arc<Ways>) {
    // Their connections have the places of loopback.
    let here = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
    loop {
        let (stream, _) = accepted(|| listener.accept()).await;
        if local::is_ours(&stream) {
            let (core, router) = (Arc::clone(&ways.core), ways.router.clone());
            connections.take_in(here, |guard| {
                serve_http(stream, guard, Peer::Socket, router, Some(core))
            });
        }
    }
}

async fn apply_deadlines(core: Arc<Core>, connections: Arc<Connections>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        core.poll_deadlines();
        core.trim(connections.gone());
    }
}

/// Hands on a flow whose hello has arrived already; returns any other connection.
fn take_up_at_once(stream: TcpStream, core: &Core) -> Option<TcpStream> {
    let mut bytes = [0; HELLO_BYTES];
    // Asked past the runtime, which has not heard of it yet; it does not block.
    let peeked = recv(stream.as_raw_fd(), &mut bytes, MsgFlags::MSG_PEEK);
    let is_here = peeked.is_ok_and(|count| count == HELLO_BYTES);
    let Some(hello) = is_here.then(|| Hello::decode(&bytes)).flatten() else {
        return Some(stream);
    };
    let mut stream = stream.into_std().ok()?;
    // What was seen is there to be read, and no more of it.
    if std::io::Read::read_exact(&mut stream, &mut bytes).is_ok() {
        deliver(hello, stream, core);
    }
    None
}

/// Finds out what a connection is and hands it on.
async fn take_up(stream: TcpStream, guard: ConnectionGuard, ways: Arc<Ways>) {
    let mut first = [0; OPENING_BYTES];
    let peeked = tokio::time::timeout(FIRST_BYTES_DEADLINE, stream.peek(&mut first)).await;
    let Ok(Ok(count)) = peeked else { return };
    match Opening::of(&first[..count]) {
        Some(Opening::Data) => take_up_data(stream, &ways.core).await,
        // Boxed: they are far larger than what thousands of flows pass through.
        Some(Opening::Http) => Box::pin(take_up_plain(stream, guard, &ways)).await,
        Some(Opening::Tls) => Box::pin(take_up_tls(stream, guard, &ways)).await,
        Some(Opening::Iperf3) => {
            // It lasts as long as its test, among the connections that said what they are.
            guard.note_request();
            let alive = || guard.note_request();
            let (number, address) = (guard.number(), guard.address());
            Box::pin(ways.door.take_up(stream, number, address, alive)).await;
        }
        Some(Opening::Netperf) => {
            // As long as its client has tests.
            guard.note_request();
            let alive = || guard.note_request();
            Box::pin(ways.netperf.take_up(stream, guard.address(), alive)).await;
        }
        None => {}
    }
}

/// What the first bytes of a connection say that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// A native data connection.
    Data,
    /// HTTP without TLS, whatever the method is called: who asks for one that is not there is told so.
    Http,
    /// A handshake of TLS.
    Tls,
    /// A client of iperf3.
    Iperf3,
    /// A client of netperf.
    Netperf,
}

impl Opening {
    /// Returns what a connection is that begins with `first`, of which there is what came at once.
    ///
    /// 1. Methods of HTTP are told from a hello and from a cookie where they differ: `LOCK` in its second
    ///    letter, `get /` by the space behind it.
    /// 2. One byte alone is what it is most often: `L` a hello, a small letter or a digit a cookie.
    fn of(first: &[u8]) -> Option<Self> {
        let begin = *first.first()?;
        let same = first.len().min(HELLO_MAGIC.len());
        match begin {
            TLS_FIRST_BYTE => Some(Self::Tls),
            _ if Message::may_begin_with(begin) => Some(Self::Netperf),
            _ if first[..same] == HELLO_MAGIC[..same] => Some(Self::Data),
            _ if Cookie::may_begin_with(begin) && !first.contains(&b' ') => Some(Self::Iperf3),
            _ if is_of_method(begin) => Some(Self::Http),
            _ => None,
        }
    }
}

/// Returns whether a method of HTTP may begin so (RFC 9110, 5.6.2).
fn is_of_method(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Serves a control connection without TLS; where that is not enough, every request is told so.
async fn take_up_plain(stream: TcpStream, guard: ConnectionGuard, ways: &Ways) {
    let here = guard.address().ip().to_canonical().is_loopback();
    set_control_options(&stream);
    let peer = Peer::Address(guard.address(), local::user_of(&stream, guard.address()));
    let (router, core) = if here || ways.plain == Plain::Everywhere {
        (ways.router.clone(), Some(Arc::clone(&ways.core)))
    } else {
        (http::over_tls_only(), None)
    };
    serve_http(stream, guard, peer, router, core).await;
}

/// Serves a control connection over TLS.
async fn take_up_tls(stream: TcpStream, guard: ConnectionGuard, ways: &Ways) {
    let Some(tls) = &ways.tls else {
        return;
    };
    set_control_options(&stream);
    let peer = Peer::Address(guard.address(), local::user_of(&stream, guard.address()));
    // Until its first request it has no place that others want.
    let stream = match tls.accept(stream, guard.address().ip()).await {
        Ok(stream) => stream,
        Err(NoHandshake::Broken) => return,
        Err(NoHandshake::TooMany) => {
            let asker = Asker::of(guard.address().ip(), None);
            let why = "too many handshakes of TLS from there at a time";
            return ways.core.note_refusal("handshakes", asker, why);
        }
    };
    let session = stream.get_ref().1;
    let channel = Channel::of(|room| session.export_keying_material(room, LABEL, None));
    let Ok(channel) = channel else {
        return;
    };
    let router = ways.router.clone().layer(axum::Extension(channel));
    let router = match shown(&stream) {
        Some(certificate) => router.layer(axum::Extension(certificate)),
        None => router,
    };
    let core = Some(Arc::clone(&ways.core));
    serve_http(stream, guard, peer, router, core).await;
}

fn set_control_options(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    // The kernel resets a connection whose window stays closed, or whose peer is gone, that long.
    let _ = SockRef::from(stream).set_tcp_user_timeout(Some(UNREAD_DEADLINE));
}

async fn take_up_data(mut stream: TcpStream, core: &Core) {
    let mut bytes = [0; HELLO_BYTES];
    let read = tokio::time::timeout(FIRST_BYTES_DEADLINE, stream.read_exact(&mut bytes)).await;
    if let (Ok(Ok(_)), Some(hello), Ok(stream)) = (read, Hello::decode(&bytes), stream.into_std()) {
        deliver(hello, stream, core);
    }
}

/// Gives a flow, or one of its connections, to the trial that waits for it. A connection that nobody waits for
/// is closed, and a flow or a question is told who listens here; its controller reports it.
fn deliver(hello: Hello, mut stream: std::net::TcpStream, core: &Core) {
    match hello.announces {
        Announces::Flow if core.answer_to(&hello).knows => {
            if stream.set_nonblocking(false).is_ok() {
                let _ = core.deliver(hello, stream.into(), Transport::Tcp);
            }
        }
        Announces::Flow | Announces::Question => {
            // So few bytes fit any send buffer that is empty.
            let _ = std::io::Write::write_all(&mut stream, &core.answer_to(&hello).encode());
        }
        Announces::Connection => core.hand_in(&hello, stream),
    }
}

/// Answers the requests of one connection; those of runs that `core` has are noted as theirs.
async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    guard: ConnectionGuard,
    peer: Peer,
    router: axum::Router,
    core: Option<Arc<Core>>,
) {
    let guard = Arc::new(guard);
    let owner = core.map(|core| Arc::new(Owner::new(core)));
    let stream = Patient::new(stream, UNREAD_DEADLINE);
    let service = TowerToHyperService::new(http::WithPeer {
        router,
        guard,
        owner: owner.clone(),
        peer,
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_DEADLINE)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service);
    // A broken control connection is the caller's loss. One that we close since its next request is
    // late says nothing of its run, whose lease ends by itself.
    let is_ours = connection.await.is_err_and(|error| error.is_timeout());
    if let Some(owner) = owner.filter(|_| !is_ours) {
        owner.note_hang_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_a_connection_is() {
        let check = |first: &[u8], expected| {
            let text = String::from_utf8_lossy(first);
            assert_eq!(Opening::of(first), expected, "{text:?}");
        };
        for data in [&b"L"[..], b"LINE", b"LINERATE", b"LINERATE\0\x01\0\0"] {
            check(data, Some(Opening::Data));
        }
        for request in [
            "GET / HTTP/1.1\r\n",
            "QUERY /v1/agent HTTP/1.1",
            "TRACE / HTTP/1.1",
            "CONNECT 127.0.0.1:80 HTTP/1.1",
            "LOCK / HTTP/1.1",
            "LINK / HTTP/1.1",
            "get / HTTP/1.1",
            "nosuch /v1/agent HTTP/1.1",
            "M-SEARCH * HTTP/1.1",
            "$ / HTTP/1.1",
            "G",
            "T",
        ] {
            check(request.as_bytes(), Some(Opening::Http));
        }
        for cookie in [&b"a"[..], b"abc", b"2bcdefghijklmnopqrstuvwxyz0123456789\0"] {
            check(cookie, Some(Opening::Iperf3));
        }
        check(b"\x16\x03\x01", Some(Opening::Tls));
        for message in [&b"\0"[..], b"\0\0\0\x61\xff\xff\xff\xff"] {
            check(message, Some(Opening::Netperf));
        }
        for other in [
            &b""[..],
            b"\xff\xff",
            b" GET /",
            b"\r\n",
            b"\x80\x80",
            b"{\"a\":1}",
        ] {
            check(other, None);
        }
    }
}
