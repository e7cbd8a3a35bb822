//! One test: its control connection from cookie to goodbye.
//!
//! The machine of `linerate-compat` says what follows what; here it is done. Every wait is one of
//! a select with the machine's deadline, so a client that falls silent at any point is given up.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_compat::iperf3::json::text;
use linerate_compat::iperf3::{
    Code, Cookie, Parameters, Protocol, Results, ServerAction, ServerMachine, ServerOutput,
};
use linerate_engine::{Flow, now_ns};
use linerate_model::reason::with_causes;
use linerate_model::{BitsPerSec, Nanos};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::plan::{self, Refused};
use super::traffic::{Counted, Traffic};
use super::{ARRIVALS_MAX, Arrived, Door, Listed};
use crate::access::now_s;
use crate::api::connection::KEEPALIVE;
use crate::core::{buffers_of, workers_of_guest};
use crate::foreign::guest::{Claim, RENEW_NS};
use crate::limits::{Counts, Exceeded, Grant, Kind, Source, Whose};
use crate::sync::lock;

/// How much of the control connection is read at once.
const ROOM_BYTES: usize = 16 << 10;
/// How long a client may take to take what it is sent.
const SEND_DEADLINE: Duration = Duration::from_secs(10);
/// How often a test looks whether another one of the same address has got all its datagram streams.
const TURN_LOOK_NS: u64 = 20_000_000;
/// How long a client may take to read why the server ends its test, and to close, before its
/// streams break: a round trip of 200 ms and a moment.
const LAST_WORD: Duration = Duration::from_millis(250);
/// How long after its last word the control connection is read to its end.
const LINGER: Duration = Duration::from_secs(2);
/// How long after its streams were there a test may begin, at the least. The client's clock runs from then
/// on: a tenth of the shortest test is what a test of ours may be late, too.
const LATE_NS_MIN: u64 = 100_000_000;
/// Share of a test that it may begin late, which is what its throughput lacks then.
const LATE_SHARE: u64 = 50;
/// The longest test, if the agent has no limit.
const TEST_NS_MAX: u64 = 86_400_000_000_000;
/// How long after the agent's limit a client may end a test of its own length: its clock begins later.
const END_NS_MAX: u64 = 10_000_000_000;

/// Runs one test to its end.
pub(super) async fn run(
    door: &Arc<Door>,
    cookie: Cookie,
    control: TcpStream,
    peer: SocketAddr,
    alive: &(impl Fn() + Sync),
) {
    let (streams, arrivals) = mpsc::channel(ARRIVALS_MAX);
    let Some(listed) = Listed::new(door, cookie, streams.clone()) else {
        return super::refuse(control).await;
    };
    // One small word at a time, each of which the client waits for.
    let _ = control.set_nodelay(true);
    // It says nothing while its test goes on: one that was switched off would be sent datagrams to the test's end.
    let _ = SockRef::from(&control).set_tcp_keepalive(&KEEPALIVE);
    let (machine, first) = ServerMachine::new(now_ns());
    let mut test = Test {
        lease: None,
        grant: None,
        listed,
        machine,
        control,
        peer,
        streams,
        arrivals,
        parameters: None,
        waits_for_turn: false,
        arrived: Vec::new(),
        flows: Vec::new(),
        traffic: None,
        counted: None,
        end_ns: None,
        renew_ns: now_ns() + RENEW_NS,
    };
    test.follow(door, first, alive).await;
    test.leave().await;
}

struct Test {
    /// The place at the desk, from the moment that all streams are there: who opens none has a connection
    /// and nothing that others want.
    lease: Option<Claim>,
    /// What it may take, from its first stream on.
    grant: Option<Grant>,
    listed: Listed,
    machine: ServerMachine,
    control: TcpStream,
    peer: SocketAddr,
    streams: mpsc::Sender<Arrived>,
    arrivals: mpsc::Receiver<Arrived>,
    parameters: Option<Parameters>,
    /// Whether another test of the same address must get its datagram streams first.
    waits_for_turn: bool,
    /// The streams that are there, until all are.
    arrived: Vec<Arrived>,
    flows: Vec<Flow>,
    traffic: Option<Traffic>,
    counted: Option<Counted>,
    /// When the agent's own limit ends the test.
    end_ns: Option<u64>,
    renew_ns: u64,
}

impl Test {
    async fn follow(
        &mut self,
        door: &Arc<Door>,
        first: Vec<ServerAction>,
        alive: &(impl Fn() + Sync),
    ) {
        let mut room = vec![0; ROOM_BYTES];
        let mut closing = door.closing.subscribe();
        self.perform(door, first).await;
        while !self.machine.is_over() {
            let wake = Duration::from_nanos(self.wake_ns().saturating_sub(now_ns()));
            let actions = tokio::select! {
                read = self.control.read(&mut room) => match read {
                    Ok(count @ 1..) => self.machine.handle_bytes(now_ns(), &room[..count]),
                    _ => self.machine.handle_closed(),
                },
                Some(stream) = self.arrivals.recv() => self.handle_stream(door, stream),
                () = tokio::time::sleep(wake) => {
                    // A test is heard of on its streams only, which say nothing here.
                    if self.traffic.is_some() {
                        alive();
                    }
                    self.poll()
                }
                _ = closing.wait_for(|closing| *closing) => self.machine.handle_terminate(),
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
            let lease = self.lease.as_ref();
            if lease.is_some_and(|lease| !lease.renew()) {
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
        match self.excess() {
            Some(reason) => self.fail(Code::TOTAL_RATE, &reason),
            None => self.machine.poll_deadline(now),
        }
    }

    /// Looks at the traffic and notes what has come since the last look; says why the test has to end, if it has.
    fn excess(&mut self) -> Option<String> {
        let traffic = self.traffic.as_mut()?;
        let excess = traffic.poll();
        let new_bytes = traffic.take_received();
        let grant = self.grant.as_mut();
        let owed = grant.and_then(|grant| grant.note_moved(now_ns(), new_bytes));
        excess.or_else(|| owed.map(|owed| owed.to_string()))
    }

    fn fail(&mut self, code: Code, reason: &str) -> Vec<ServerAction> {
        match &self.lease {
            Some(lease) => lease.note_failure(reason),
            None => {
                let kind = match code {
                    Code::AUTHENTICATION => "unauthorized",
                    _ => "iperf3",
                };
                self.listed.door.note_refusal(kind, self.peer, reason);
            }
        }
        self.machine.handle_refused(code, 0, reason.to_owned())
    }

    /// Does what the machine says, and what follows from it.
    async fn perform(&mut self, door: &Arc<Door>, actions: Vec<ServerAction>) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            let more = match action {
                ServerAction::Send(bytes) => self.send(&bytes).await,
                ServerAction::Decide(parameters) => self.decide(door, *parameters).await,
                ServerAction::Run => {
                    let failed = self.launch(door).await;
                    if !failed.is_empty() {
                        // Nothing of a test that does not begin is to be told.
                        actions.clear();
                    }
                    failed
                }
                ServerAction::Stop => self.stop().await,
                ServerAction::Report(theirs) => self.report(&theirs).await,
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
        let decided = match admit(door, self.peer, &parameters).await {
            Ok(()) => plan::check(&parameters, limits),
            Err(refused) => Err(refused),
        };
        if let Err(refused) = decided {
            return self.fail(refused.code, &refused.reason);
        }
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
    fn handle_stream(&mut self, door: &Arc<Door>, stream: Arrived) -> Vec<ServerAction> {
        let Some(parameters) = self
            .parameters
            .as_ref()
            .filter(|_| self.machine.is_opening())
        else {
            return Vec::new();
        };
        if self.grant.is_none() {
            match claim(door, self.peer, parameters) {
                Ok(grant) => self.grant = Some(grant),
                Err(None) => return self.busy(),
                Err(Some(refused)) => return self.fail(refused.code, &refused.reason),
            }
        }
        self.arrived.push(stream);
        if self.arrived.len() < parameters.streams() {
            self.machine.handle_stream(now_ns());
            return Vec::new();
        }
        self.listed.expect_no_more();
        if let Err(refused) = self.adopt() {
            return self.fail(refused.code, &refused.reason);
        }
        self.lease = door.admit(self.peer);
        if self.lease.is_none() {
            return self.busy();
        }
        self.renew_ns = now_ns() + RENEW_NS;
        self.machine.handle_streams(now_ns())
    }

    /// Makes flows of the streams. The client numbers them as it connects, which direction each has
    /// follows from it, and a cookie that was lost comes behind those of later ones.
    fn adopt(&mut self) -> Result<(), Refused> {
        let Some(parameters) = &self.parameters else {
            return Ok(());
        };
        let rate = self.grant.as_ref().and_then(Grant::rate);
        self.arrived.sort_by_key(|stream| stream.number);
        for (place, stream) in self.arrived.drain(..).enumerate() {
            let config = plan::flow(parameters, place, rate);
            let flow = linerate_engine::adopt(config, stream.socket);
            let mut flow = flow.map_err(|error| Refused {
                code: match parameters.congestion {
                    Some(_) => Code::SET_CONGESTION,
                    None => Code::PREPARE_STREAM,
                },
                reason: with_causes(&error),
            })?;
            flow.keep_to_payload();
            if let Some(rate) = rate.filter(|_| !parameters.server_sends(place)) {
                let share = BitsPerSec(rate.0 / parameters.streams() as f64);
                flow.limit_rate(share).map_err(|error| Refused {
                    code: Code::PREPARE_STREAM,
                    reason: format!("limit the rate: {error}"),
                })?;
            }
            self.flows.push(flow);
        }
        Ok(())
    }

    /// Ends a test for which there is no place.
    fn busy(&mut self) -> Vec<ServerAction> {
        let why = "an iperf3 client while the host was in use";
        self.listed.door.note_refusal("busy", self.peer, why);
        self.machine.handle_busy()
    }

    /// Launches the flows, which may take some milliseconds: on a thread that may block.
    async fn launch(&mut self, door: &Door) -> Vec<ServerAction> {
        let Some(parameters) = self.parameters.clone() else {
            return self.fail(Code::PREPARE_STREAM, "there are no parameters");
        };
        let limits = &door.core.config().limits;
        let most_ns = test_ns_max(&parameters, limits.trial);
        let there_ns = now_ns();
        let end_ns = there_ns.saturating_add(most_ns);
        let (streams, udp) = (parameters.streams(), parameters.protocol == Protocol::Udp);
        let rate = self.grant.as_ref().and_then(Grant::rate);
        let allowed_ns = late_ns_max(&parameters);
        let flows = std::mem::take(&mut self.flows);
        let launched =
            tokio::task::spawn_blocking(move || Traffic::launch(flows, &parameters, end_ns, rate));
        match launched.await {
            Ok(Ok(traffic)) => {
                let late_ns = now_ns().saturating_sub(there_ns);
                // Where the server only receives, the client's clock has not begun.
                let late = too_late(late_ns, allowed_ns).filter(|_| self.machine.sends());
                if let Some(reason) = late {
                    // Its streams go on until the client has heard of it.
                    self.traffic = Some(traffic);
                    return self.fail(Code::PREPARE_STREAM, &reason);
                }
                if let Some(lease) = &self.lease {
                    let transport = if udp { "UDP" } else { "TCP" };
                    lease.note_traffic(transport, streams);
                }
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
                self.owe(traffic.abort().await);
            }
        } else if let Some(traffic) = &mut self.traffic {
            traffic.stop();
        }
        Vec::new()
    }

    async fn report(&mut self, theirs: &Results) -> Vec<ServerAction> {
        if let Some(traffic) = self.traffic.take() {
            self.counted = Some(traffic.settle(theirs).await);
        }
        let (Some(counted), Some(parameters)) = (&self.counted, &self.parameters) else {
            return self.fail(Code::STREAM_ID, "there is nothing to report");
        };
        let mut results = counted.count.results(counted.cpu);
        if parameters.server_output {
            let text = text(self.peer, parameters, &counted.count.streams());
            results.server_output = Some(ServerOutput::Text(text));
        }
        self.machine.handle_results(now_ns(), &results)
    }

    /// Notes what came after the last look at a test that is over.
    fn owe(&mut self, new_bytes: f64) {
        if let Some(grant) = &mut self.grant {
            grant.note_moved(now_ns(), new_bytes);
        }
    }

    /// Waits for the workers and for the client to close.
    async fn leave(mut self) {
        // Streams that come now are nobody's: they are refused, and those that wait are closed.
        self.arrivals.close();
        while self.arrivals.try_recv().is_ok() {}
        let _ = self.control.shutdown().await;
        if let Some(traffic) = self.traffic.take() {
            self.owe(traffic.abort().await);
        }
        if let Some(counted) = self.counted.take() {
            self.owe(counted.finish().await);
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

/// Returns how late a test may begin: what it leaves out at its start costs it nothing.
fn late_ns_max(parameters: &Parameters) -> u64 {
    let ns = |seconds: u32| u64::from(seconds) * 1_000_000_000;
    let share = ns(parameters.time_s) / LATE_SHARE;
    ns(parameters.omit_s) + share.max(LATE_NS_MIN)
}

/// Returns how long a test may go on where the agent allows `most`; one with a length was held against that
/// before.
fn test_ns_max(parameters: &Parameters, most: Option<Nanos>) -> u64 {
    let most_ns = most.map_or(TEST_NS_MAX, |most| most.0);
    match parameters.time_s {
        0 => most_ns,
        _ => most_ns.saturating_add(END_NS_MAX),
    }
}

/// Returns why a test that begins `late_ns` after its streams were there may not be measured.
fn too_late(late_ns: u64, allowed_ns: u64) -> Option<String> {
    let late = Nanos(late_ns);
    (late_ns > allowed_ns).then(|| format!("this busy host began the test {late} late"))
}

/// Claims what a test takes of what all callers without the token may; `None` where there is no place for
/// one more test.
fn claim(door: &Door, peer: SocketAddr, parameters: &Parameters) -> Result<Grant, Option<Refused>> {
    let streams = parameters.streams();
    let asked = parameters
        .bits_per_second
        .map(|rate| BitsPerSec((rate * streams as u64) as f64));
    // Where both ends send, the first stream and the last go either way.
    let last = streams.saturating_sub(1);
    let is_one_way = parameters.server_sends(0) == parameters.server_sends(last);
    let ways = [0, last]
        .into_iter()
        .skip(usize::from(is_one_way))
        .map(|index| plan::flow(parameters, index, None));
    let buffers = buffers_of(ways, streams, workers_of_guest(None) as usize);
    let counts = Counts::of_trial(streams, 1).with_memory(buffers);
    let refuse = |code, reason: String| Some(Refused { code, reason });
    let claimed = door
        .core
        .claim_of(Whose::Network(Source::of(peer.ip())), counts, asked);
    let grant = claimed.map_err(|exceeded| {
        let code = match exceeded {
            Exceeded::Count {
                kind: Kind::Trials, ..
            } => return None,
            Exceeded::Count { .. } => Code::STREAMS,
            Exceeded::Rate { .. } | Exceeded::Debt { .. } => Code::TOTAL_RATE,
        };
        refuse(code, exceeded.to_string())
    })?;
    // A client that asks for a rate measures that one or none.
    match (asked, grant.rate()) {
        (Some(asked), Some(rate)) if rate.0 < asked.0 => {
            let reason = format!("{asked} in all, but {rate} is left of what this agent allows");
            Err(refuse(Code::TOTAL_RATE, reason))
        }
        _ => Ok(grant),
    }
}

/// Lets in whoever the gate knows; without a gate, everybody.
async fn admit(door: &Arc<Door>, peer: SocketAddr, parameters: &Parameters) -> Result<(), Refused> {
    if door.gate.is_none() {
        return Ok(());
    }
    let refuse = |reason: String| Refused {
        code: Code::AUTHENTICATION,
        reason,
    };
    let (network, now) = (Source::of(peer.ip()), now_ns());
    let turn = lock(&door.attempts).handle_try(now, network);
    let Some(turn_ns) = turn else {
        let reason = format!("too many wrong passwords came from {network}; try again later");
        return Err(refuse(reason));
    };
    tokio::time::sleep(Duration::from_nanos(turn_ns - now)).await;
    let (asked, token) = (Arc::clone(door), parameters.auth_token.clone());
    // Decrypting takes milliseconds.
    let checked = move || check(&asked, token.as_deref());
    let checked = door.threads.run_from(peer.ip(), checked).await;
    let checked = checked.unwrap_or_else(|refusal| Err(refusal.error));
    if checked.is_ok() {
        lock(&door.attempts).handle_right(network);
    }
    checked.map_err(refuse)
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
    let checked = gate.check(token, now_s(), &mut random);
    match (checked, failed) {
        (Ok(_), None) => Ok(()),
        (Ok(_), Some(error)) => Err(format!("no randomness: {error}")),
        (Err(denied), _) => Err(denied.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use linerate_compat::iperf3::{ServerEnding, State};

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_test_of_the_longest_time_ends_by_itself() {
        let test = |time_s| Parameters {
            time_s,
            ..Parameters::of(Protocol::Tcp)
        };
        let most = |time_s, most| test_ns_max(&test(time_s), most);
        assert_eq!(most(2, Some(Nanos::from_s(2))), 12_000 * MS);
        assert_eq!(most(0, Some(Nanos::from_s(2))), 2_000 * MS);
        assert_eq!(most(0, None), TEST_NS_MAX);
    }

    /// The client has been told to begin when a load that sends is launched.
    #[test]
    fn a_client_that_is_served_late_is_told_while_its_test_runs() {
        let test = |omit_s, time_s| Parameters {
            omit_s,
            time_s,
            ..Parameters::of(Protocol::Tcp)
        };
        // As `-n` has it, `-t 1`, `-t 10`, and `-O 1 -t 10`.
        let most = [test(0, 0), test(0, 1), test(0, 10), test(1, 10)].map(|of| late_ns_max(&of));
        assert_eq!(most, [100 * MS, 100 * MS, 200 * MS, 1200 * MS]);
        assert_eq!(too_late(100 * MS, 100 * MS), None);
        let words = "this busy host began the test 250 ms late";
        assert_eq!(too_late(250 * MS, 200 * MS).as_deref(), Some(words));
        let (mut machine, _) = ServerMachine::new(0);
        let parameters = br#"{"tcp":true,"time":1,"parallel":1,"reverse":true}"#;
        let length = (parameters.len() as u32).to_be_bytes();
        machine.handle_bytes(0, &[&length[..], parameters].concat());
        machine.handle_accepted(0);
        let run = machine.handle_streams(0);
        assert_eq!(run.last(), Some(&ServerAction::Run));
        let told = machine.handle_refused(Code::PREPARE_STREAM, 0, words.to_owned());
        let sent: Vec<u8> = told
            .iter()
            .filter_map(|action| match action {
                ServerAction::Send(bytes) => Some(bytes.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        assert_eq!(sent.first(), Some(&State::ServerError.byte()), "{told:?}");
        assert!(
            told.iter()
                .any(|action| matches!(action, ServerAction::Stop))
        );
        assert!(machine.is_over());
        let ended = told.iter().find_map(|action| match action {
            ServerAction::End(ending) => Some(ending),
            _ => None,
        });
        assert!(
            matches!(ended, Some(ServerEnding::Failed { .. })),
            "{ended:?}"
        );
    }
}
