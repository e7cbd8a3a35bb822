//! One control connection, on threads of its own.
//!
//! A thread reads, another does what the state machine says; the halves tell it what they know
//! and look at its [`Story`]. Between the start and the stop both sleep.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use linerate_compat::iperf3::{
    ClientAction, ClientEnding, ClientMachine, Code, Cookie, Parameters, Results, State,
};
use linerate_engine::now_ns;
use socket2::SockRef;

use super::counts::CpuTime;
use crate::api::connection::KEEPALIVE;
use crate::foreign::peer::{CallError, Delivered, is_timeout, lost};
use crate::sync::lock;

/// How long the first word may take: a server that is busy with the end of another test answers
/// late.
const WORD_DEADLINE: Duration = Duration::from_secs(30);
/// How long after the stop the delivery of what was sent is looked at again.
const DELIVERY_LOOK: Duration = Duration::from_millis(2);
/// Longest sleep of the thread that acts.
const LOOK_MAX: Duration = Duration::from_secs(3600);
/// Shortest and longest time that the server gets to read what has reached its host. It drops the
/// rest when it hears of the end, and does not say how far it is; so it gets as long as delivery
/// took.
const READ_NS_MIN: u64 = 20_000_000;
const READ_NS_MAX: u64 = 200_000_000;

/// A control connection whose cookie was taken.
#[derive(Debug)]
pub(super) struct Called {
    stream: TcpStream,
    cookie: Cookie,
}

impl Called {
    /// Says the cookie.
    pub(super) fn greet(mut stream: TcpStream) -> Result<Self, CallError> {
        let mut random = [0; linerate_compat::iperf3::COOKIE_BYTES - 1];
        getrandom::fill(&mut random)
            .map_err(|error| CallError::Odd(format!("gets no cookie: {error}")))?;
        let cookie = Cookie::from_random(random);
        // None of them fails on a connected socket.
        let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE);
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(WORD_DEADLINE));
        // A server that is busy closes without reading, which may reset the connection before its
        // word is read; then nothing is left but the reset.
        let _ = stream.write_all(&cookie.encode());
        let mut word = [0];
        match stream.read(&mut word) {
            Ok(0) => Err(CallError::Odd(
                "closed the connection without a message; is it iperf3?".to_owned(),
            )),
            Ok(_) if word[0] == State::ParamExchange.byte() => {
                let _ = stream.set_read_timeout(None);
                Ok(Self { stream, cookie })
            }
            Ok(_) if word[0] == State::AccessDenied.byte() => Err(CallError::Busy),
            Ok(_) if word[0] == State::ServerError.byte() => {
                Err(CallError::Odd(failure(&mut stream)))
            }
            Ok(_) => Err(CallError::Odd(format!(
                "answers {:#04x} to a cookie, as no iperf3 server does; is another program on \
                 that port?",
                word[0]
            ))),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                Err(CallError::Busy)
            }
            Err(error) if is_timeout(&error) => Err(CallError::Odd(
                "does not answer the cookie; is it iperf3?".to_owned(),
            )),
            Err(error) => Err(lost(&error)),
        }
    }
}

impl AsRef<TcpStream> for Called {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

/// Reads the numbers of a SERVER_ERROR.
fn failure(stream: &mut TcpStream) -> String {
    let mut number = [0; 4];
    match stream.read_exact(&mut number) {
        Ok(()) => format!("refused: {}", Code(i32::from_be_bytes(number))),
        Err(_) => "refused and did not say why".to_owned(),
    }
}

/// What the thread of a connection is told.
enum ControlEvent {
    /// These bytes arrived.
    Bytes(Vec<u8>),
    /// No more will.
    Closed,
    /// When the test is to end.
    Scheduled(Stop),
    /// What the client counted; its flows have ended.
    Measured(Box<Results>),
    /// The user has seen enough.
    Interrupt,
}

/// How far a test has come.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// The server waits for the streams.
    pub(super) opened: bool,
    /// What it counted.
    pub(super) results: Option<Results>,
    /// How it ended.
    pub(super) ending: Option<ClientEnding>,
}

type Told = Arc<(Mutex<Story>, Condvar)>;

/// A test on the server, under way.
#[derive(Debug)]
pub(super) struct Connection {
    /// What its streams say first.
    pub(super) cookie: Cookie,
    events: Sender<ControlEvent>,
    told: Told,
}

impl Connection {
    /// Says what is wanted and goes on from there.
    pub(super) fn begin(called: Called, parameters: Parameters) -> std::io::Result<Self> {
        let Called { stream, cookie } = called;
        let (events, inbox) = channel();
        let told = Told::default();
        let (machine, _said) = ClientMachine::new(now_ns(), &cookie, parameters);
        let reading = stream.try_clone()?;
        let bytes = events.clone();
        std::thread::Builder::new()
            .name("iperf3-ear".to_owned())
            .spawn(move || listen(reading, &bytes))?;
        let driver = Driver {
            machine,
            stream,
            told: Arc::clone(&told),
            stop: None,
            measured: None,
            reporting: false,
            cpu: CpuTime::now(),
        };
        std::thread::Builder::new()
            .name("iperf3-control".to_owned())
            .spawn(move || driver.drive(&inbox))?;
        // The answer to the cookie was heard already, when the server was called.
        let _ = events.send(ControlEvent::Bytes(vec![State::ParamExchange.byte()]));
        Ok(Self {
            cookie,
            events,
            told,
        })
    }

    /// Waits until the server expects the streams, or it is over.
    pub(super) fn wait_opened(&self) {
        let (story, changed) = &*self.told;
        let story = lock(story);
        // The machine has a deadline for it, so this ends.
        drop(changed.wait_while(story, |story| !story.opened && story.ending.is_none()));
    }

    /// Returns how far it has come.
    pub(super) fn story(&self) -> MutexGuard<'_, Story> {
        lock(&self.told.0)
    }

    /// Says when the test is over; `delivered` tells when everything sent has arrived, which ends it
    /// `by_volume` before that instant.
    pub(super) fn schedule(&self, stop_ns: u64, by_volume: bool, delivered: Option<Delivered>) {
        self.tell(ControlEvent::Scheduled(Stop {
            stop_ns,
            by_volume,
            delivered,
            delivered_ns: None,
        }));
    }

    /// Says what the client counted.
    pub(super) fn measured(&self, results: Results) {
        self.tell(ControlEvent::Measured(Box::new(results)));
    }

    /// Says that the user has seen enough.
    pub(super) fn interrupt(&self) {
        self.tell(ControlEvent::Interrupt);
    }

    fn tell(&self, event: ControlEvent) {
        // A thread that is over has said how in its story.
        let _ = self.events.send(event);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.interrupt();
    }
}

fn listen(mut stream: TcpStream, events: &Sender<ControlEvent>) {
    let mut room = [0; 4096];
    loop {
        let event = match stream.read(&mut room) {
            Ok(0) => ControlEvent::Closed,
            Ok(count) => ControlEvent::Bytes(room[..count].to_vec()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => ControlEvent::Closed,
        };
        let closed = matches!(event, ControlEvent::Closed);
        if events.send(event).is_err() || closed {
            return;
        }
    }
}

/// When the test is to end.
struct Stop {
    /// The instant, the latest if a volume ends it.
    stop_ns: u64,
    by_volume: bool,
    /// Of a test whose client sends, or which a volume ends.
    delivered: Option<Delivered>,
    /// When everything was delivered.
    delivered_ns: Option<u64>,
}

struct Driver {
    machine: ClientMachine,
    stream: TcpStream,
    told: Told,
    stop: Option<Stop>,
    measured: Option<Box<Results>>,
    reporting: bool,
    /// CPU time of this process when payload began to flow.
    cpu: CpuTime,
}

impl Driver {
    fn drive(mut self, inbox: &Receiver<ControlEvent>) {
        while !self.machine.is_over() {
            let actions = match inbox.recv_timeout(self.patience()) {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => self.machine.handle_terminate(),
            };
            self.act(actions);
            let overdue = self.machine.poll_deadline(now_ns());
            self.act(overdue);
            self.end_if_due();
        }
        // The other thread hears of it and ends.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn handle(&mut self, event: ControlEvent) -> Vec<ClientAction> {
        match event {
            ControlEvent::Bytes(bytes) => self.machine.handle_bytes(now_ns(), &bytes),
            ControlEvent::Closed => self.machine.handle_closed(),
            ControlEvent::Interrupt => self.machine.handle_terminate(),
            ControlEvent::Scheduled(stop) => {
                self.stop = Some(stop);
                Vec::new()
            }
            ControlEvent::Measured(results) => {
                self.measured = Some(results);
                // All flows have ended, be it before the time.
                if let Some(stop) = &mut self.stop {
                    stop.delivered_ns.get_or_insert_with(now_ns);
                }
                self.report()
            }
        }
    }

    fn act(&mut self, actions: Vec<ClientAction>) {
        for action in actions {
            match action {
                ClientAction::Send(bytes) => {
                    // Where this fails the reading thread hears the same, after what the server
                    // may have said last.
                    let _ = self.stream.write_all(&bytes);
                }
                ClientAction::Open => self.tell(|story| story.opened = true),
                ClientAction::Run => self.cpu = CpuTime::now(),
                ClientAction::Report => {
                    self.reporting = true;
                    let actions = self.report();
                    self.act(actions);
                }
                ClientAction::Received(results) => {
                    self.tell(|story| story.results = Some(*results));
                }
                ClientAction::End(ending) => self.tell(|story| story.ending = Some(ending)),
            }
        }
    }

    /// Hands in what the client counted, once both are ready.
    fn report(&mut self) -> Vec<ClientAction> {
        if !self.reporting {
            return Vec::new();
        }
        let Some(mut results) = self.measured.take() else {
            return Vec::new();
        };
        self.cpu.until_now(&mut results);
        self.machine.handle_results(now_ns(), &results)
    }

    fn end_if_due(&mut self) {
        let Some(stop) = &mut self.stop else { return };
        let now = now_ns();
        let is_due = match (&stop.delivered, stop.delivered_ns) {
            (None, Some(_)) => true,
            (None, None) => now >= stop.stop_ns,
            (Some(_), Some(delivered_ns)) => {
                let took_ns = delivered_ns.saturating_sub(stop.stop_ns);
                now >= delivered_ns + took_ns.clamp(READ_NS_MIN, READ_NS_MAX)
            }
            (Some(delivered), None) => {
                if (now >= stop.stop_ns || stop.by_volume) && delivered() {
                    stop.delivered_ns = Some(now);
                }
                false
            }
        };
        if is_due {
            self.stop = None;
            let actions = self.machine.handle_end(now);
            self.act(actions);
        }
    }

    /// Returns how long nothing has to be done unless something happens.
    fn patience(&self) -> Duration {
        let now = now_ns();
        let deadline_ns = self.machine.deadline_ns().unwrap_or(u64::MAX);
        let stop = match &self.stop {
            None => LOOK_MAX,
            Some(stop) if now < stop.stop_ns && stop.delivered_ns.is_none() && !stop.by_volume => {
                Duration::from_nanos(stop.stop_ns - now)
            }
            Some(_) => DELIVERY_LOOK,
        };
        let deadline = Duration::from_nanos(deadline_ns.saturating_sub(now));
        stop.min(deadline).min(LOOK_MAX)
    }

    fn tell(&self, change: impl FnOnce(&mut Story)) {
        let (story, changed) = &*self.told;
        change(&mut lock(story));
        changed.notify_all();
    }
}
