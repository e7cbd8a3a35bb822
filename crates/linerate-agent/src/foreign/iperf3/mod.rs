//! Clients of iperf3: each one's test is a run of its own, shared with others.
//!
//! Every connection begins with a cookie. One that names a test under way is a stream of that test;
//! any other begins a test. A test asks the host's desk like every run does, as a shared one: while
//! a run has the host for itself the client is told that the server is busy, and while tests go on
//! a run that wants the host for itself is refused or waits. iperf3's clients hold no token, so the
//! limits for strangers are theirs, wherever they call from.

/// How often a network may try passwords.
mod attempts;
/// What one test counted: readings, intervals, results.
mod count;
/// What is asked for as flows of the engine, and what is refused.
mod plan;
/// One test: its control connection from cookie to goodbye.
mod test;
/// The load of one test while it goes on.
mod traffic;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use linerate_compat::iperf3::auth::Gate;
use linerate_compat::iperf3::datagram::{HELLO, HELLO_ANSWER, is_hello};
use linerate_compat::iperf3::{BUSY, COOKIE_BYTES, Code, Cookie, refusal};
use linerate_engine::{Await, Awaited};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use super::guest::{self, Claim};
use crate::access::Access;
use crate::core::Core;
use crate::log::Asker;
use crate::serve::datagram::{Strangers, Welcome};
use crate::serve::local::user_of;
use crate::serve::threads::Threads;
use crate::sync::lock;
use attempts::Attempts;

/// What its clients are called at the desk.
const IPERF3: &str = "iperf3";
/// What the log says of clients that were not let in.
const NO_TOKEN: &str = "by iperf3, whose clients have no token (`serve --public` lets them in, or users and passwords)";
/// How long a connection may take for its cookie.
const COOKIE_DEADLINE: Duration = Duration::from_secs(5);
/// Streams on their way to one test: as many as there can be.
const ARRIVALS_MAX: usize = 256;
/// How long tests have to say goodbye when the agent ends.
const GOODBYE: Duration = Duration::from_millis(500);

/// A stream on its way to its test.
#[derive(Debug)]
struct Arrived {
    /// Grows with each connection that the agent accepts.
    number: u64,
    socket: OwnedFd,
}

/// Where iperf3's clients come in.
pub(crate) struct Door {
    core: Arc<Core>,
    gate: Option<Gate>,
    access: Arc<Access>,
    threads: Threads,
    attempts: Mutex<Attempts>,
    expected: Mutex<Expected>,
    closing: watch::Sender<bool>,
}

/// Who waits for what.
#[derive(Debug, Default)]
struct Expected {
    /// Every test under way, with the way to bring it streams.
    tests: HashMap<Cookie, mpsc::Sender<Arrived>>,
    /// The test that waits for datagram streams of an address: their greetings carry no cookie, so
    /// there is one at a time.
    datagrams: HashMap<IpAddr, Greeted>,
}

/// A test that waits for greetings.
#[derive(Debug)]
struct Greeted {
    streams: mpsc::Sender<Arrived>,
    /// Lets them through.
    _greetings: Option<Await>,
}

impl Door {
    /// Returns a door; with a gate, only its users come through. Without one it is open to those
    /// who may measure without a token, since iperf3 has none to show.
    pub(crate) fn new(
        core: Arc<Core>,
        gate: Option<Gate>,
        access: Arc<Access>,
        threads: Threads,
    ) -> Self {
        Self {
            core,
            gate,
            access,
            threads,
            attempts: Mutex::default(),
            expected: Mutex::default(),
            closing: watch::Sender::new(false),
        }
    }

    /// Takes up the connection that was accepted as this `number`: a stream of a test under way, or a
    /// new test, until its end. A test says through `alive` that it goes on.
    pub(crate) async fn take_up(
        self: &Arc<Self>,
        mut stream: TcpStream,
        number: u64,
        peer: SocketAddr,
        alive: impl Fn() + Send + Sync,
    ) {
        let mut bytes = [0; COOKIE_BYTES];
        let read = tokio::time::timeout(COOKIE_DEADLINE, stream.read_exact(&mut bytes)).await;
        let (Ok(Ok(_)), Some(cookie)) = (read, Cookie::decode(&bytes)) else {
            return;
        };
        let test = self.expected().tests.get(&cookie).cloned();
        if let Some(test) = test {
            return bring(&test, stream, number).await;
        }
        if self.gate.is_none() && !self.access.is_open_to(user_of(&stream, peer)) {
            // The client's own words are "test authorization failed"; the protocol has room for no more.
            self.note_refusal("unauthorized", peer, NO_TOKEN);
            return say(stream, &refusal(Code::AUTHENTICATION, 0)).await;
        }
        // The place is taken when the streams are there; but a client that would be refused now is told
        // at once.
        if guest::would_admit(&self.core, IPERF3, peer) {
            test::run(self, cookie, stream, peer, &alive).await
        } else {
            self.note_refusal("busy", peer, "an iperf3 client while the host was in use");
            refuse(stream).await
        }
    }

    /// Returns how first datagrams are looked at that are not ours: a greeting from an address of
    /// which a test waits for streams is welcome, whatever it says, as iperf3's servers have it.
    pub(crate) fn strangers(self: &Arc<Self>) -> Strangers {
        let door = Arc::clone(self);
        Arc::new(move |datagram, peer| {
            if !is_hello(datagram) {
                return None;
            }
            let address = peer.ip().to_canonical();
            let test = door.expected().datagrams.get(&address)?.streams.clone();
            Some(Welcome {
                answer: HELLO_ANSWER.to_vec(),
                take: Box::new(move |socket| {
                    // One greeting after the other: they come in their order. A test that has ended, or has
                    // all its streams, takes no more.
                    let _ = test.try_send(Arrived { number: 0, socket });
                }),
            })
        })
    }

    /// Asks the desk for a place beside other shared runs.
    fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Claim> {
        Claim::new(&self.core, IPERF3, peer)
    }

    /// Tells every test that the agent ends, and waits until they have told their clients.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        let gone = async {
            while !self.expected().tests.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // Who does not take the word in time is left without it.
        let _ = tokio::time::timeout(GOODBYE, gone).await;
    }

    /// Notes that a client there was refused.
    fn note_refusal(&self, kind: &'static str, peer: SocketAddr, why: &str) {
        let asker = Asker::of(peer.ip(), None);
        self.core.note_refusal(kind, asker, why);
    }

    fn expected(&self) -> MutexGuard<'_, Expected> {
        lock(&self.expected)
    }
}

/// Brings a stream to its test; one that nobody waits for is refused.
async fn bring(test: &mpsc::Sender<Arrived>, stream: TcpStream, number: u64) {
    match test.try_reserve() {
        Ok(place) => {
            if let Some(socket) = owned(stream) {
                place.send(Arrived { number, socket });
            }
        }
        Err(_) => refuse(stream).await,
    }
}

fn owned(stream: TcpStream) -> Option<OwnedFd> {
    let stream = stream.into_std().ok()?;
    stream.set_nonblocking(false).ok()?;
    Some(stream.into())
}

/// Says what iperf3's server says when it runs another test.
async fn refuse(stream: TcpStream) {
    say(stream, &BUSY).await;
}

async fn say(mut stream: TcpStream, words: &[u8]) {
    // Whoever has gone has been told nothing, and does not care.
    let _ = tokio::time::timeout(COOKIE_DEADLINE, stream.write_all(words)).await;
}

/// A test's name in the list of those under way; taken off when it is dropped.
struct Listed {
    door: Arc<Door>,
    cookie: Cookie,
    address: Option<IpAddr>,
}

impl Listed {
    /// Lists a test under `cookie`; a cookie is taken once.
    fn new(door: &Arc<Door>, cookie: Cookie, streams: mpsc::Sender<Arrived>) -> Option<Self> {
        let mut expected = door.expected();
        if expected.tests.contains_key(&cookie) {
            return None;
        }
        expected.tests.insert(cookie.clone(), streams);
        drop(expected);
        Some(Self {
            door: Arc::clone(door),
            cookie,
            address: None,
        })
    }

    /// Expects the datagram streams of `address`, unless another test does.
    fn expect_datagrams(&mut self, address: IpAddr, streams: mpsc::Sender<Arrived>) -> bool {
        let mut expected = self.door.expected();
        if expected.datagrams.contains_key(&address) {
            return false;
        }
        let greeted = Greeted {
            streams,
            _greetings: self
                .door
                .core
                .wait_for(Awaited::Greeting(HELLO.len() as u32)),
        };
        expected.datagrams.insert(address, greeted);
        drop(expected);
        self.address = Some(address);
        true
    }

    /// Expects no more datagram streams; the next test of the same address may.
    fn expect_no_more(&mut self) {
        if let Some(address) = self.address.take() {
            self.door.expected().datagrams.remove(&address);
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.expect_no_more();
        self.door.expected().tests.remove(&self.cookie);
    }
}
