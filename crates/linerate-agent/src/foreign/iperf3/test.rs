//! One test: its control connection from cookie to goodbye.
//!
//! The machine of `linerate-compat` says what follows what; here it is done. Every wait is one of
//! a select with the machine's deadline, so a client that falls silent at any point is given up.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_compat::iperf3::json::{Role, Test as Document, text};
use linerate_compat::iperf3::{
    Code, Cookie, Parameters, Protocol, Results, ServerAction, ServerMachine, ServerOutput,
};
use linerate_engine::{Flow, now_ns};
use linerate_model::reason::with_causes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::plan::{self, Refused};
use super::traffic::{Counted, Traffic};
use super::{ARRIVALS_MAX, Door, Lease, Listed};

/// How much of the control connection is read at once.
const ROOM_BYTES: usize = 16 << 10;
/// How long a client may take to take what it is sent.
const SEND_DEADLINE: Duration = Duration::from_secs(10);
/// How often the place at the desk is kept; a lease lasts 20 s.
const RENEW_NS: u64 = 5_000_000_000;
/// How often a test looks whether another one of the same address has got all its datagram streams.
const TURN_LOOK_NS: u64 = 20_000_000;
/// How long a client may take to read why the server ends its test, and to close, before its
/// streams break: a round trip of 200 ms and a moment.
const LAST_WORD: Duration = Duration::from_millis(250);
/// How long after its last word the control connection is read to its end.
const LINGER: Duration = Duration::from_secs(2);
/// The longest test, if the agent has no limit.
const TEST_NS_MAX: u64 = 86_400_000_000_000;

/// What comes next.
enum Event {
    Bytes(usize),
    Closed,
    Stream(OwnedFd),
    Wake,
    Closing,
}

/// Runs one test to its end.
pub(super) async fn run(door: &Arc<Door>, cookie: Cookie, control: TcpStream, peer: SocketAddr) {
    let (streams, arrivals) = mpsc::channel(ARRIVALS_MAX);
    let Some(listed) = Listed::new(door, cookie.clone(), streams.clone()) else {
        return super::refuse(control).await;
    };
    // One small word at a time, each of which the client waits for.
    let _ = control.set_nodelay(true);
    let (machine, first) = ServerMachine::new(now_ns(), cookie);
    let mut test = Test {
        lease: None,
        listed,
        machine,
        control,
        peer,
        streams,
        arrivals,
        parameters: None,
        waits_for_turn: false,
        flows: Vec::new(),
        traffic: None,
        counted: None,
        end_ns: None,
        renew_ns: now_ns() + RENEW_NS,
    };
    test.follow(door, first).await;
    test.leave().await;
}

struct Test {
    /// The place at the desk, from the moment that the parameters are good.
    lease: Option<Lease>,
    listed: Listed,
    machine: ServerMachine,
    control: TcpStream,
    peer: SocketAddr,
    streams: mpsc::Sender<OwnedFd>,
    arrivals: mpsc::Receiver<OwnedFd>,
    parameters: Option<Parameters>,
    /// Whether another test of the same address must get its datagram streams first.
    waits_for_turn: bool,
    flows: Vec<Flow>,
    traffic: Option<Traffic>,
    counted: Option<Counted>,
    /// When the agent's own limit ends the test.
    end_ns: Option<u64>,
    renew_ns: u64,
}

impl Test {
    async fn follow(&mut self, door: &Arc<Door>, first: Vec<ServerAction>) {
        let mut room = vec![0; ROOM_BYTES];
        let mut closing = door.closing.subscribe();
        self.perform(door, first).await;
        while !self.machine.is_over() {
            let wake = Duration::from_nanos(self.wake_ns().saturating_sub(now_ns()));
            let event = tokio::select! {
                read = self.control.read(&mut room) => match read {
                    Ok(count @ 1..) => Event::Bytes(count),
                    _ => Event::Closed,
                },
                Some(stream) = self.arrivals.recv() => Event::Stream(stream),
                () = tokio::time::sleep(wake) => Event::Wake,
                _ = closing.wait_for(|closing| *closing) => Event::Closing,
            };
            let actions = match event {
                Event::Bytes(count) => self.machine.handle_bytes(now_ns(), &room[..count]),
                Event::Closed => self.machine.handle_closed(),
                Event::Stream(stream) => self.handle_stream(stream, door),
                Event::Wake => self.poll(),
                Event::Closing => self.machine.handle_terminate(),
            };
            self.perform(door, actions).await;
        }
    }

    /// Returns the next instant at which something is due.
    fn wake_ns(&self) -> u64 {
        let turn = self.waits_for_turn.then(|| now_ns() + TURN_LOOK_NS);
        let traffic = self.traffic.as_ref().map(Traffic::wake_ns);
        [self.machine.deadline_ns(), self.end_ns, traffic, turn]
            .into_iter()
            .flatten()
            .fold(self.renew_ns, u64::min)
    }

    /// Does what is due.
    fn poll(&mut self) -> Vec<ServerAction> {
        let now = now_ns();
        if now >= self.renew_ns {
            self.renew_ns = now + RENEW_NS;
            if self.lease.as_ref().is_some_and(|lease| !lease.renew()) {
                return self.fail(Code::SERVER_TERMINATED, "the agent took the host back");
            }
        }
        if self.end_ns.is_some_and(|end| now >= end) {
            let reason = "the test is longer than this agent allows";
            return self.fail(Code::SERVER_DURATION_EXPIRED, reason);
        }
        if self.waits_for_turn {
            return self.accept();
        }
        let excess = self.traffic.as_mut().and_then(Traffic::poll);
        match excess {
            Some(reason) => self.fail(Code::TOTAL_RATE, &reason),
            None => self.machine.poll_deadline(now),
        }
    }

    fn fail(&mut self, code: Code, reason: &str) -> Vec<ServerAction> {
        self.machine.handle_refused(code, 0, reason.to_owned())
    }

    /// Does what the machine says, and what follows from it.
    async fn perform(&mut self, door: &Arc<Door>, actions: Vec<ServerAction>) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            let more = match action {
                ServerAction::Send(bytes) => self.send(&bytes).await,
                ServerAction::Decide(parameters) => self.decide(door, *parameters).await,
                ServerAction::Open { .. } => Vec::new(),
                ServerAction::Run => self.launch(door).await,
                ServerAction::Stop => self.stop().await,
                ServerAction::Report(theirs) => self.report(door, &theirs).await,
                ServerAction::End(_) => Vec::new(),
            };
            actions.extend(more);
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> Vec<ServerAction> {
        let sent = tokio::time::timeout(SEND_DEADLINE, self.control.write_all(bytes)).await;
        match sent {
            Ok(Ok(())) => Vec::new(),
            _ => self.machine.handle_closed(),
        }
    }

    async fn decide(&mut self, door: &Arc<Door>, parameters: Parameters) -> Vec<ServerAction> {
        let limits = &door.core.config().limits;
        let decided = match admit(door, &parameters).await {
            Ok(()) => plan::check(&parameters, limits),
            Err(refused) => Err(refused),
        };
        if let Err(refused) = decided {
            return self.fail(refused.code, &refused.reason);
        }
        self.lease = door.admit(self.peer);
        if self.lease.is_none() {
            return self.machine.handle_busy();
        }
        self.renew_ns = now_ns() + RENEW_NS;
        self.parameters = Some(parameters);
        self.accept()
    }

    /// Accepts the parameters, once no other test of this address waits for datagram streams.
    fn accept(&mut self) -> Vec<ServerAction> {
        let udp = self
            .parameters
            .as_ref()
            .is_some_and(|parameters| parameters.protocol == Protocol::Udp);
        let address = self.peer.ip().to_canonical();
        self.waits_for_turn = udp && !self.listed.expect_datagrams(address, self.streams.clone());
        if self.waits_for_turn {
            return self.machine.poll_deadline(now_ns());
        }
        self.machine.handle_accepted(now_ns())
    }

    /// Takes up a stream; those that nobody expects are closed by being dropped.
    fn handle_stream(&mut self, stream: OwnedFd, door: &Door) -> Vec<ServerAction> {
        let Some(parameters) = self
            .parameters
            .as_ref()
            .filter(|_| self.machine.is_opening())
        else {
            return Vec::new();
        };
        let rate = door.core.config().limits.rate;
        let config = plan::flow(parameters, self.flows.len(), rate);
        match linerate_engine::adopt(config, stream) {
            Ok(mut flow) => {
                flow.keep_to_payload();
                self.flows.push(flow);
            }
            Err(error) => {
                let code = match parameters.congestion {
                    Some(_) => Code::SET_CONGESTION,
                    None => Code::PREPARE_STREAM,
                };
                return self.fail(code, &with_causes(&error));
            }
        }
        if self.flows.len() < parameters.streams() {
            return Vec::new();
        }
        self.listed.expect_no_more();
        self.machine.handle_streams(now_ns())
    }

    /// Launches the flows, which may take some milliseconds: on a thread that may block.
    async fn launch(&mut self, door: &Door) -> Vec<ServerAction> {
        let Some(parameters) = self.parameters.clone() else {
            return self.fail(Code::PREPARE_STREAM, "there are no parameters");
        };
        let limits = &door.core.config().limits;
        let most_ns = limits.trial.map_or(TEST_NS_MAX, |most| most.0);
        let end_ns = now_ns().saturating_add(most_ns);
        let rate = limits.rate;
        let flows = std::mem::take(&mut self.flows);
        let launched =
            tokio::task::spawn_blocking(move || Traffic::launch(flows, &parameters, end_ns, rate));
        match launched.await {
            Ok(Ok(traffic)) => {
                self.end_ns = Some(end_ns);
                self.traffic = Some(traffic);
                Vec::new()
            }
            Ok(Err(error)) => self.fail(Code::PREPARE_STREAM, &with_causes(&error)),
            Err(_) => self.fail(Code::PREPARE_STREAM, "the load could not be launched"),
        }
    }

    /// Stops the load; if the test ended as it should, the account goes on until it is settled.
    ///
    /// If it did not, the streams go on until the client has heard of it: one that is inside a write
    /// would see a broken stream before the reason, and report that.
    async fn stop(&mut self) -> Vec<ServerAction> {
        self.end_ns = None;
        if self.machine.is_over() {
            if let Some(traffic) = self.traffic.take() {
                self.say_no_more(LAST_WORD).await;
                traffic.abort().await;
            }
        } else if let Some(traffic) = &mut self.traffic {
            traffic.stop();
        }
        Vec::new()
    }

    async fn report(&mut self, door: &Door, theirs: &Results) -> Vec<ServerAction> {
        if let Some(traffic) = self.traffic.take() {
            self.counted = Some(traffic.settle(theirs).await);
        }
        let (Some(counted), Some(parameters)) = (&self.counted, &self.parameters) else {
            return self.fail(Code::STREAM_ID, "there is nothing to report");
        };
        let mut results = counted.count.results(counted.cpu);
        if parameters.server_output {
            let document = self.document(door, counted, parameters);
            results.server_output = Some(ServerOutput::Text(text(&document)));
        }
        self.machine.handle_results(now_ns(), &results)
    }

    fn document(&self, door: &Door, counted: &Counted, parameters: &Parameters) -> Document {
        let congestion = |sender| {
            let opened = counted.count.opened().first()?;
            opened
                .congestion
                .clone()
                .filter(|_| opened.sender == sender)
        };
        Document {
            role: Role::Server,
            version: concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned(),
            system_info: door.core.config().host_name.clone(),
            unix_ms: unix_s() * 1000,
            peer_host: self.peer.ip().to_canonical().to_string(),
            peer_port: self.peer.port(),
            cookie: self.machine.cookie().to_string(),
            parameters: parameters.clone(),
            interval_s: 1.0,
            mss_default: None,
            sndbuf_actual: None,
            rcvbuf_actual: None,
            streams: counted.count.streams(),
            cpu: counted.cpu,
            cpu_remote: None,
            sender_congestion: congestion(true),
            receiver_congestion: congestion(false),
            server_output: None,
            error: None,
        }
    }

    /// Waits for the workers and for the client to close.
    async fn leave(mut self) {
        let _ = self.control.shutdown().await;
        if let Some(traffic) = self.traffic.take() {
            traffic.abort().await;
        }
        if let Some(counted) = self.counted.take() {
            counted.finish().await;
        }
        // A connection that is closed with bytes unread is reset, and the reset may overtake the
        // last word.
        self.say_no_more(LINGER).await;
    }

    /// Ends our side of the control connection and reads the client's to its end, for `most` at the
    /// longest.
    async fn say_no_more(&mut self, most: Duration) {
        let _ = self.control.shutdown().await;
        let mut room = [0; 1024];
        let rest = async { while let Ok(1..) = self.control.read(&mut room).await {} };
        let _ = tokio::time::timeout(most, rest).await;
    }
}

/// Lets in whoever the gate knows; without a gate, everybody.
async fn admit(door: &Arc<Door>, parameters: &Parameters) -> Result<(), Refused> {
    if door.gate.is_none() {
        return Ok(());
    }
    let (door, token) = (Arc::clone(door), parameters.auth_token.clone());
    // Decrypting takes milliseconds.
    let checked = tokio::task::spawn_blocking(move || check(&door, token.as_deref()));
    let refuse = |reason: String| Refused {
        code: Code::AUTHENTICATION,
        reason,
    };
    checked
        .await
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(refuse)
}

fn check(door: &Door, token: Option<&str>) -> Result<(), String> {
    let Some(gate) = &door.gate else {
        return Ok(());
    };
    let mut failed = None;
    let mut random = |bytes: &mut [u8]| {
        if let Err(error) = getrandom::fill(bytes) {
            failed = Some(error);
        }
    };
    let checked = gate.check(token, unix_s(), &mut random);
    match (checked, failed) {
        (Ok(_), None) => Ok(()),
        (Ok(_), Some(error)) => Err(format!("no randomness: {error}")),
        (Err(denied), _) => Err(denied.to_string()),
    }
}

/// Returns the time of the clock on the wall, in seconds since 1970.
fn unix_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
