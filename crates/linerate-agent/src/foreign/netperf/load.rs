//! The payload of one test, by calls that block.
//!
//! The engine's flows are not used: theirs are numbered datagrams, connections that say hello, and counts at the
//! edges of a window. A client of netperf is told of every call, wants each end within microseconds of the other,
//! and brings datagrams without a number. So this is what netperf's own server does, call for call.
//!
//! Every call that waits returns after [`CALL_LOOK`], to see whether the test is over.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_compat::netperf::Interval;
use linerate_engine::now_ns;
use linerate_model::BitsPerSec;
use socket2::SockRef;

use super::plan::Role;
use super::socket::{CALL_LOOK, Payload, windows_bytes};
use crate::sync::lock;

/// How long a client may take to bring its first payload: as long as a native flow.
const FIRST_PAYLOAD_NS: u64 = 5_000_000_000;
/// Datagrams that say that a test is over: of several that are lost one arrives.
const END_MARKS: usize = 3;
/// Random bytes that payload repeats.
const PATTERN_BYTES: usize = 64 << 10;

/// What both the thread of a test and who watches it know.
#[derive(Debug, Default)]
pub(super) struct Shared {
    is_over: AtomicBool,
    bytes_received: AtomicU64,
    /// What is sent to who may have stopped reading: a call that waits for that returns at once.
    sending: Mutex<Option<TcpStream>>,
}

impl Shared {
    /// Ends the test: its thread sees it within [`CALL_LOOK`].
    pub(super) fn stop(&self) {
        self.is_over.store(true, Relaxed);
        if let Some(stream) = lock(&self.sending).take() {
            // Who has gone needs no end.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    /// Returns how much has come so far.
    pub(super) fn bytes_received(&self) -> u64 {
        self.bytes_received.load(Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }
}

/// What a test moves.
pub(super) struct Load {
    pub(super) role: Role,
    pub(super) payload: Payload,
    /// Who brings it.
    pub(super) peer: IpAddr,
    pub(super) receive_bytes: usize,
    pub(super) send_bytes: usize,
    /// Transactions or bytes after which it is over.
    pub(super) units: Option<u64>,
    pub(super) interval: Option<Interval>,
    pub(super) rate: Option<BitsPerSec>,
    pub(super) shared: Arc<Shared>,
}

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) bytes_received: u64,
    pub(super) receive_calls: u64,
    pub(super) bytes_sent: u64,
    pub(super) send_calls: u64,
    pub(super) failed_sends: u64,
    pub(super) transactions: u64,
    /// The receiving and the sending buffer at the end, of a connection or socket that lasted.
    pub(super) windows_bytes: Option<(u32, u32)>,
    pub(super) retransmissions: Option<u64>,
    pub(super) congestion: Option<String>,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
}

impl Counted {
    /// Returns how long the test took, its end that may have been waited for in vain included.
    pub(super) fn watched_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// How a test ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// By the client, or after all units.
    Whole,
    /// By who watches it.
    Stopped,
    /// The client did not bring any payload.
    NobodyCame,
    /// A call failed.
    Failed(io::Error),
}

/// Moves the payload of a test to its end.
pub(super) fn run(load: Load) -> (Counted, Ended) {
    let mut moving = Moving {
        room: vec![0; load.receive_bytes],
        payload: payload(load.send_bytes),
        hold: Hold::new(load.rate),
        counted: Counted {
            begin_ns: now_ns(),
            ..Counted::default()
        },
        role: load.role,
        peer: load.peer,
        units: load.units,
        interval: load.interval,
        shared: load.shared,
    };
    let ended = match load.payload {
        Payload::Tcp(listener) => moving.over_tcp(listener),
        Payload::Udp(socket) => moving.over_udp(&socket),
    };
    (moving.counted, ended.unwrap_or_else(Ended::Failed))
}

/// Returns so many bytes that cannot be packed well.
fn payload(bytes: usize) -> Vec<u8> {
    let mut pattern = vec![0; bytes.min(PATTERN_BYTES)];
    // Without randomness zeros are as good.
    let _ = getrandom::fill(&mut pattern);
    pattern.iter().copied().cycle().take(bytes).collect()
}

/// A test that goes on.
struct Moving {
    room: Vec<u8>,
    payload: Vec<u8>,
    hold: Hold,
    counted: Counted,
    role: Role,
    peer: IpAddr,
    units: Option<u64>,
    interval: Option<Interval>,
    shared: Arc<Shared>,
}

/// What a call that waits came to.
enum Step<T> {
    Done(T),
    End(Ended),
}

impl Moving {
    fn over_tcp(&mut self, listener: TcpListener) -> io::Result<Ended> {
        if self.role == Role::Connections {
            let ended = self.connections(&listener);
            self.counted.end_ns = now_ns();
            self.counted.congestion = congestion(&SockRef::from(&listener));
            return ended;
        }
        let mut stream = match self.accept(&listener, self.first_payload_ns())? {
            Step::Done(stream) => stream,
            Step::End(ended) => return Ok(ended),
        };
        // Nobody else is waited for.
        drop(listener);
        let ended = match self.role {
            Role::Send => self.send(&mut stream),
            Role::Exchange => self.exchange(&mut stream),
            Role::Receive | Role::Connections => self.receive(&mut stream),
        };
        self.counted.end_ns = now_ns();
        self.note_socket(&stream);
        // What was sent goes out before the end.
        let _ = stream.shutdown(Shutdown::Write);
        ended
    }

    /// Returns when there must have been payload.
    fn first_payload_ns(&self) -> u64 {
        self.counted.begin_ns + FIRST_PAYLOAD_NS
    }

    /// Accepts the next connection of the peer, which has to come until `deadline_ns`.
    fn accept(&self, listener: &TcpListener, deadline_ns: u64) -> io::Result<Step<TcpStream>> {
        loop {
            match listener.accept() {
                Ok((stream, from)) if self.is_peer(from) => return Ok(Step::Done(stream)),
                // Somebody else's is closed.
                Ok(_) => {}
                Err(error) if is_look(&error) => {}
                Err(error) => return Err(error),
            }
            if self.shared.is_over() {
                return Ok(Step::End(Ended::Stopped));
            }
            if now_ns() >= deadline_ns {
                return Ok(Step::End(Ended::NobodyCame));
            }
        }
    }

    /// Notes what the kernel says of a connection at its end.
    fn note_socket(&mut self, stream: &TcpStream) {
        let socket = SockRef::from(stream);
        self.counted.windows_bytes = Some(windows_bytes(&socket));
        self.counted.congestion = congestion(&socket);
        self.counted.retransmissions = linerate_engine::retransmissions(stream.as_fd());
    }

    fn receive(&mut self, stream: &mut TcpStream) -> io::Result<Ended> {
        loop {
            match stream.read(&mut self.room) {
                Ok(0) => return Ok(Ended::Whole),
                Ok(bytes) => self.note_received(bytes),
                Err(error) if is_look(&error) => {}
                Err(error) if is_gone(&error) => return Ok(Ended::Whole),
                Err(error) => return Err(error),
            }
            if let Some(ended) = self.ended(self.counted.bytes_received) {
                return Ok(ended);
            }
        }
    }

    fn send(&mut self, stream: &mut TcpStream) -> io::Result<Ended> {
        let mut rhythm = self.interval.map(Rhythm::new);
        *lock(&self.shared.sending) = Some(stream.try_clone()?);
        loop {
            let left = self
                .units
                .map_or(u64::MAX, |units| units - self.counted.bytes_sent);
            let call = &self.payload[..self
                .payload
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX))];
            match stream.write(call) {
                Ok(bytes) => self.note_sent(bytes),
                Err(error) if is_look(&error) => {}
                Err(error) if is_gone(&error) => return Ok(Ended::Whole),
                Err(error) => return Err(error),
            }
            if let Some(ended) = self.ended(self.counted.bytes_sent) {
                return Ok(ended);
            }
            if let Some(rhythm) = &mut rhythm {
                rhythm.await_next(&self.shared);
            }
        }
    }

    fn exchange(&mut self, stream: &mut TcpStream) -> io::Result<Ended> {
        loop {
            if let Step::End(ended) = self.answer(stream)? {
                return Ok(ended);
            }
            if let Some(ended) = self.ended(self.counted.transactions) {
                return Ok(ended);
            }
        }
    }

    fn connections(&mut self, listener: &TcpListener) -> io::Result<Ended> {
        let mut deadline_ns = self.first_payload_ns();
        loop {
            let mut stream = match self.accept(listener, deadline_ns)? {
                Step::Done(stream) => stream,
                Step::End(ended) => return Ok(ended),
            };
            // The end of the test is that of the others.
            deadline_ns = u64::MAX;
            match self.answer(&mut stream)? {
                // A client whose time is over leaves one without a request.
                Step::Done(()) | Step::End(Ended::Whole) => {}
                Step::End(ended) => return Ok(ended),
            }
            if let Some(ended) = self.ended(self.counted.transactions) {
                return Ok(ended);
            }
        }
    }

    /// Takes one request and answers it.
    fn answer(&mut self, stream: &mut TcpStream) -> io::Result<Step<()>> {
        let mut taken = 0;
        while taken < self.room.len() {
            match stream.read(&mut self.room[taken..]) {
                Ok(0) => return Ok(Step::End(Ended::Whole)),
                Ok(bytes) => {
                    taken += bytes;
                    self.note_received(bytes);
                }
                Err(error) if is_look(&error) => {}
                Err(error) if is_gone(&error) => return Ok(Step::End(Ended::Whole)),
                Err(error) => return Err(error),
            }
            if self.shared.is_over() {
                return Ok(Step::End(Ended::Stopped));
            }
        }
        let mut given = 0;
        while given < self.payload.len() {
            match stream.write(&self.payload[given..]) {
                Ok(bytes) => {
                    given += bytes;
                    self.note_sent(bytes);
                }
                Err(error) if is_look(&error) => {}
                Err(error) if is_gone(&error) => return Ok(Step::End(Ended::Whole)),
                Err(error) => return Err(error),
            }
            if self.shared.is_over() && given < self.payload.len() {
                return Ok(Step::End(Ended::Stopped));
            }
        }
        self.counted.transactions += 1;
        Ok(Step::Done(()))
    }

    fn over_udp(&mut self, socket: &UdpSocket) -> io::Result<Ended> {
        let mut from = None;
        let ended = self.datagrams(socket, &mut from);
        self.counted.end_ns = now_ns();
        self.counted.windows_bytes = Some(windows_bytes(&SockRef::from(socket)));
        if from.is_some() {
            for _ in 0..END_MARKS {
                // Who does not wait for them has gone.
                let _ = socket.send(&[]);
            }
        }
        ended
    }

    /// Takes the peer's datagrams to an empty one; what comes from elsewhere, or from another port than the
    /// first, does not count.
    fn datagrams(
        &mut self,
        socket: &UdpSocket,
        from: &mut Option<SocketAddr>,
    ) -> io::Result<Ended> {
        loop {
            match socket.recv_from(&mut self.room) {
                Ok((bytes, sender)) => {
                    if from.is_none() && self.is_peer(sender) {
                        socket.connect(sender)?;
                        *from = Some(sender);
                    }
                    if *from == Some(sender) {
                        if bytes == 0 {
                            return Ok(Ended::Whole);
                        }
                        self.note_datagram(socket, bytes)?;
                    }
                }
                Err(error) if is_look(&error) => {
                    if from.is_none() && now_ns() >= self.first_payload_ns() {
                        return Ok(Ended::NobodyCame);
                    }
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    return Ok(Ended::Whole);
                }
                Err(error) => return Err(error),
            }
            let moved = match self.role {
                Role::Exchange => self.counted.transactions,
                _ => self.counted.bytes_received,
            };
            if let Some(ended) = self.ended(moved) {
                return Ok(ended);
            }
        }
    }

    fn note_datagram(&mut self, socket: &UdpSocket, bytes: usize) -> io::Result<()> {
        if self.role != Role::Exchange {
            // Nothing keeps a sender of datagrams to a rate; who sends too fast is ended by who watches.
            self.count_received(bytes);
            return Ok(());
        }
        self.note_received(bytes);
        match socket.send(&self.payload) {
            Ok(bytes) => {
                self.note_sent(bytes);
                self.counted.transactions += 1;
            }
            Err(error) if is_look(&error) || error.raw_os_error() == Some(libc::ENOBUFS) => {
                self.counted.failed_sends += 1;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn count_received(&mut self, bytes: usize) {
        self.counted.bytes_received += bytes as u64;
        self.counted.receive_calls += 1;
        let sum = self.counted.bytes_received;
        self.shared.bytes_received.store(sum, Relaxed);
    }

    fn note_received(&mut self, bytes: usize) {
        self.count_received(bytes);
        self.hold.wait(bytes, &self.shared);
    }

    fn note_sent(&mut self, bytes: usize) {
        self.counted.bytes_sent += bytes as u64;
        self.counted.send_calls += 1;
        self.hold.wait(bytes, &self.shared);
    }

    /// Returns how the test ended, if it has, after so many units.
    fn ended(&self, units: u64) -> Option<Ended> {
        if self.units.is_some_and(|most| units >= most) {
            return Some(Ended::Whole);
        }
        self.shared.is_over().then_some(Ended::Stopped)
    }

    fn is_peer(&self, from: SocketAddr) -> bool {
        from.ip().to_canonical() == self.peer
    }
}

/// Returns the name of a socket's congestion control.
fn congestion(socket: &SockRef<'_>) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    let end = name.iter().position(|byte| *byte == 0);
    let name = &name[..end.unwrap_or(name.len())];
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Returns whether a call only waited in vain for a while.
fn is_look(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Returns whether the other end has gone, as clients do whose time is over.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// Keeps a test to its rate: what was moved ahead of its time is waited for.
struct Hold {
    bytes_per_ns: Option<f64>,
    begin_ns: u64,
    moved_bytes: f64,
}

impl Hold {
    fn new(rate: Option<BitsPerSec>) -> Self {
        Self {
            bytes_per_ns: rate.map(|rate| rate.0 / 8e9),
            begin_ns: now_ns(),
            moved_bytes: 0.0,
        }
    }

    fn wait(&mut self, bytes: usize, shared: &Shared) {
        let Some(rate) = self.bytes_per_ns else {
            return;
        };
        self.moved_bytes += bytes as f64;
        let due_ns = self.begin_ns + (self.moved_bytes / rate) as u64;
        sleep_until(due_ns, shared);
    }
}

/// Calls in bursts, each so long after the last.
struct Rhythm {
    interval: Interval,
    next_ns: u64,
    left: u32,
}

impl Rhythm {
    fn new(interval: Interval) -> Self {
        Self {
            next_ns: now_ns(),
            left: interval.burst,
            interval,
        }
    }

    /// Waits after a call where it was the last of its burst.
    fn await_next(&mut self, shared: &Shared) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        self.left = self.interval.burst;
        // A burst that took longer than its time is not made up for.
        let due_ns = self.next_ns + u64::from(self.interval.us) * 1000;
        self.next_ns = due_ns.max(now_ns());
        sleep_until(due_ns, shared);
    }
}

fn sleep_until(due_ns: u64, shared: &Shared) {
    while !shared.is_over() {
        let left_ns = due_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return;
        }
        std::thread::sleep(Duration::from_nanos(left_ns).min(CALL_LOOK));
    }
}
