//! The server's side of a control connection, after the cookie.
//!
//! Whoever owns the connection reads 37 bytes, finds that the [cookie](super::Cookie) names no test under way,
//! and makes a machine. From then on it hands in what arrives ([`ServerMachine::handle_bytes`])
//! and what it did itself (`handle_…`), calls [`ServerMachine::poll_deadline`] when
//! [`ServerMachine::deadline_ns`] is past, and does what the actions say, in their order:
//!
//! ```text
//! new ─► Send(9)                          bytes ─► Decide(parameters)
//! handle_accepted ─► Send(10)             handle_streams ─► Run, Send(1), Send(2); Run last if it sends
//! byte 4 ─► Stop, Send(13)                bytes ─► Report(their results)
//! handle_results ─► Send(results), Send(14)    byte 16 ─► End(Done)
//! ```
//!
//! After an `End` nothing follows; the owner sends what was to be sent and closes.

use crate::iperf3::S;
use crate::iperf3::error::Code;
use crate::iperf3::frame::{self, CLIENT_RESULTS_BYTES_MAX, FrameDecoder, PARAMETERS_BYTES_MAX};
use crate::iperf3::parameters::{Direction, Parameters};
use crate::iperf3::results::Results;
use crate::iperf3::state::State;

/// What a client is told whose test cannot be taken up now, or whose cookie is not known.
pub const BUSY: [u8; 1] = [State::AccessDenied as u8];

/// Returns what a server says that ends a test for a reason that has a code.
pub fn refusal(code: Code, errno: i32) -> Vec<u8> {
    let mut bytes = vec![State::ServerError.byte()];
    bytes.extend_from_slice(&code.0.to_be_bytes());
    bytes.extend_from_slice(&errno.to_be_bytes());
    bytes
}

/// How long a client may take for its parameters. They follow at once, one round trip later.
const PARAMETERS_NS: u64 = 10 * S;
/// How long a client may take for its first stream, and for each that follows: it opens one after
/// another, a round trip each, and a datagram stream asks again where its greeting was lost.
const STREAM_NS: u64 = 5 * S;
/// How long for all of them: 256, a round trip of 200 ms each.
const ALL_STREAMS_NS: u64 = 60 * S;
/// How long a test may overrun what the client asked for: iperf3's own guard.
const OVERRUN_NS: u64 = 40 * S;
/// How long a test may take whose end is bytes or blocks, or that has none: one day, as long as a
/// test by time may. The owner's own limits are tighter.
const UNTIMED_NS: u64 = 86_400 * S;
/// How long a client may take for its results, and for its goodbye.
const RESULTS_NS: u64 = 30 * S;
/// Bytes that may arrive while the owner is to decide: no client sends any but a goodbye.
const EARLY_BYTES_MAX: usize = 16;

/// What the owner of the connection is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAction {
    /// Write these bytes to the control connection.
    Send(Vec<u8>),
    /// Check the parameters, then expect their data connections, which begin with the test's cookie, and say
    /// [`ServerMachine::handle_accepted`]; or say [`ServerMachine::handle_refused`].
    Decide(Box<Parameters>),
    /// Begin to send and to count.
    Run,
    /// Stop sending and counting.
    Stop,
    /// Here is what the client measured; say [`ServerMachine::handle_results`].
    Report(Box<Results>),
    /// It is over.
    End(ServerEnding),
}

/// How a control connection came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEnding {
    /// As it should.
    Done,
    /// The client was interrupted.
    ClientTerminated,
    /// There was no place for the test.
    Busy,
    /// The server was interrupted.
    ServerTerminated,
    /// The client left without a word.
    ClientLeft,
    /// The server gave up, and told the client this number.
    Failed {
        /// The number.
        code: Code,
        /// Why, for people.
        reason: String,
    },
}

#[derive(Debug)]
enum Stage {
    /// The parameters are on their way.
    Parameters(FrameDecoder),
    /// The owner decides.
    Deciding,
    /// The streams are on their way.
    Opening,
    /// Payload flows.
    Running,
    /// The client's results are on their way.
    Results(FrameDecoder),
    /// The owner sums up.
    Reporting,
    /// The goodbye is on its way.
    Goodbye,
    /// Nothing follows.
    Over,
}

/// The server's side of one control connection.
#[derive(Debug)]
pub struct ServerMachine {
    stage: Stage,
    deadline_ns: u64,
    /// When all streams must be there.
    streams_ns: u64,
    /// How long the test may take, known with the parameters.
    test_ns: u64,
    /// Whether the server sends.
    sends: bool,
    /// What arrived while the owner decides.
    early: Vec<u8>,
}

impl ServerMachine {
    /// Takes up the connection of a new test at `now_ns`.
    pub fn new(now_ns: u64) -> (Self, Vec<ServerAction>) {
        let own = Self {
            stage: Stage::Parameters(FrameDecoder::new(PARAMETERS_BYTES_MAX)),
            deadline_ns: now_ns.saturating_add(PARAMETERS_NS),
            streams_ns: u64::MAX,
            test_ns: UNTIMED_NS,
            sends: false,
            early: Vec::new(),
        };
        (own, vec![send_state(State::ParamExchange)])
    }

    /// Returns whether it is over.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Returns whether data connections are expected.
    pub fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening)
    }

    /// Returns when [`Self::poll_deadline`] will act; absent once it is over.
    pub fn deadline_ns(&self) -> Option<u64> {
        (!self.is_over()).then_some(self.deadline_ns)
    }

    /// Takes up bytes of the control connection, cut anywhere.
    pub fn handle_bytes(&mut self, now_ns: u64, bytes: &[u8]) -> Vec<ServerAction> {
        let mut actions = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (taken, more) = match &mut self.stage {
                Stage::Over => break,
                Stage::Deciding | Stage::Reporting => (rest.len(), self.keep_early(rest)),
                Stage::Parameters(decoder) | Stage::Results(decoder) => match decoder.feed(rest) {
                    Ok((taken, Some(text))) => (taken, self.handle_text(now_ns, &text)),
                    Ok((taken, None)) => (taken, Vec::new()),
                    Err(error) => {
                        let code = match self.stage {
                            Stage::Parameters(_) => Code::RECEIVE_PARAMETERS,
                            _ => Code::RECEIVE_RESULTS,
                        };
                        (rest.len(), self.handle_refused(code, 0, error.to_string()))
                    }
                },
                Stage::Opening | Stage::Running | Stage::Goodbye => {
                    (1, self.handle_state(now_ns, rest[0]))
                }
            };
            actions.extend(more);
            rest = &rest[taken..];
        }
        actions
    }

    /// The owner takes the parameters; the streams may come.
    pub fn handle_accepted(&mut self, now_ns: u64) -> Vec<ServerAction> {
        if !matches!(self.stage, Stage::Deciding) {
            return Vec::new();
        }
        self.stage = Stage::Opening;
        self.deadline_ns = now_ns.saturating_add(STREAM_NS);
        self.streams_ns = now_ns.saturating_add(ALL_STREAMS_NS);
        let mut actions = vec![send_state(State::CreateStreams)];
        self.take_up_early(now_ns, &mut actions);
        actions
    }

    /// The owner cannot go on, for instance since it refuses the parameters or an option failed.
    ///
    /// The client is told `code` and `errno` (0 if there is none).
    pub fn handle_refused(&mut self, code: Code, errno: i32, reason: String) -> Vec<ServerAction> {
        let last = refusal(code, errno);
        self.end(ServerEnding::Failed { code, reason }, last)
    }

    /// The owner has no place for the test now; the client is told that the server is busy.
    pub fn handle_busy(&mut self) -> Vec<ServerAction> {
        self.end(ServerEnding::Busy, BUSY.to_vec())
    }

    /// A stream came; others are to follow.
    pub fn handle_stream(&mut self, now_ns: u64) {
        if self.is_opening() {
            let next_ns = now_ns.saturating_add(STREAM_NS);
            self.deadline_ns = next_ns.min(self.streams_ns);
        }
    }

    /// All streams are there: the test begins.
    pub fn handle_streams(&mut self, now_ns: u64) -> Vec<ServerAction> {
        if !self.is_opening() {
            return Vec::new();
        }
        self.stage = Stage::Running;
        self.deadline_ns = now_ns.saturating_add(self.test_ns);
        let mut actions = vec![send_state(State::TestStart), send_state(State::TestRunning)];
        // The client's clock begins with the first of them. Who only receives is ready before, however long
        // a busy host takes; who sends must not before.
        let at = if self.sends { actions.len() } else { 0 };
        actions.insert(at, ServerAction::Run);
        actions
    }

    /// Returns whether the server sends in this test.
    pub fn sends(&self) -> bool {
        self.sends
    }

    /// The owner has summed up.
    pub fn handle_results(&mut self, now_ns: u64, results: &Results) -> Vec<ServerAction> {
        if !matches!(self.stage, Stage::Reporting) {
            return Vec::new();
        }
        self.stage = Stage::Goodbye;
        self.deadline_ns = now_ns.saturating_add(RESULTS_NS);
        let mut actions = vec![
            ServerAction::Send(frame::encode(results.to_json().as_bytes())),
            send_state(State::DisplayResults),
        ];
        self.take_up_early(now_ns, &mut actions);
        actions
    }

    /// The server is to stop; the client is told.
    pub fn handle_terminate(&mut self) -> Vec<ServerAction> {
        let last = vec![State::ServerTerminate.byte()];
        self.end(ServerEnding::ServerTerminated, last)
    }

    /// The client closed the control connection, or it broke.
    pub fn handle_closed(&mut self) -> Vec<ServerAction> {
        let ending = match self.stage {
            // Everything was said; some clients close without the last byte.
            Stage::Goodbye => ServerEnding::Done,
            _ => ServerEnding::ClientLeft,
        };
        self.end(ending, Vec::new())
    }

    /// Gives up on a client that has taken too long.
    pub fn poll_deadline(&mut self, now_ns: u64) -> Vec<ServerAction> {
        if self.deadline_ns().is_none_or(|deadline| now_ns < deadline) {
            return Vec::new();
        }
        let (code, what) = match self.stage {
            Stage::Parameters(_) => (Code::RECEIVE_PARAMETERS, "the parameters did not arrive"),
            Stage::Deciding => (
                Code::RECEIVE_PARAMETERS,
                "the parameters were not decided upon",
            ),
            Stage::Opening => (Code::STREAM_ACCEPT, "not all streams arrived"),
            Stage::Running => (
                Code::SERVER_DURATION_EXPIRED,
                "the client did not end the test",
            ),
            Stage::Results(_) => (Code::RECEIVE_RESULTS, "the results did not arrive"),
            Stage::Reporting => (Code::RECEIVE_RESULTS, "the results were not summed up"),
            // The client has everything; it only did not say goodbye.
            Stage::Goodbye | Stage::Over => return self.end(ServerEnding::Done, Vec::new()),
        };
        self.handle_refused(code, 0, format!("{what} in time"))
    }

    fn keep_early(&mut self, bytes: &[u8]) -> Vec<ServerAction> {
        if self.early.len() + bytes.len() > EARLY_BYTES_MAX {
            let reason = "the client sent before it was asked".to_owned();
            return self.handle_refused(Code::MESSAGE, 0, reason);
        }
        self.early.extend_from_slice(bytes);
        Vec::new()
    }

    fn take_up_early(&mut self, now_ns: u64, actions: &mut Vec<ServerAction>) {
        let early = std::mem::take(&mut self.early);
        actions.extend(self.handle_bytes(now_ns, &early));
    }

    fn handle_text(&mut self, now_ns: u64, text: &[u8]) -> Vec<ServerAction> {
        match self.stage {
            Stage::Parameters(_) => match Parameters::parse(text) {
                Ok(parameters) => {
                    self.note(&parameters);
                    self.stage = Stage::Deciding;
                    self.deadline_ns = now_ns.saturating_add(PARAMETERS_NS);
                    vec![ServerAction::Decide(Box::new(parameters))]
                }
                Err(error) => self.handle_refused(error.code(), 0, error.to_string()),
            },
            _ => match Results::parse(text) {
                Ok(results) => {
                    self.stage = Stage::Reporting;
                    self.deadline_ns = now_ns.saturating_add(RESULTS_NS);
                    vec![ServerAction::Report(Box::new(results))]
                }
                Err(error) => self.handle_refused(Code::RECEIVE_RESULTS, 0, error.to_string()),
            },
        }
    }

    /// Keeps what the later stages need.
    fn note(&mut self, parameters: &Parameters) {
        self.sends = parameters.direction != Direction::ToServer;
        if parameters.time_s > 0 {
            let asked_s = u64::from(parameters.omit_s) + u64::from(parameters.time_s);
            self.test_ns = asked_s * S + OVERRUN_NS;
        }
    }

    fn handle_state(&mut self, now_ns: u64, byte: u8) -> Vec<ServerAction> {
        match (&self.stage, State::from_byte(byte)) {
            (Stage::Running, Some(State::TestEnd)) => {
                self.stage = Stage::Results(FrameDecoder::new(CLIENT_RESULTS_BYTES_MAX));
                self.deadline_ns = now_ns.saturating_add(RESULTS_NS);
                vec![ServerAction::Stop, send_state(State::ExchangeResults)]
            }
            (Stage::Goodbye, Some(State::Done)) => self.end(ServerEnding::Done, Vec::new()),
            (_, Some(State::ClientTerminate)) => {
                self.end(ServerEnding::ClientTerminated, Vec::new())
            }
            _ => {
                let reason = format!("the client sent {byte:#04x}, which makes no sense now");
                self.handle_refused(Code::MESSAGE, 0, reason)
            }
        }
    }

    /// Says `last`, stops what runs and ends. In this order: a client whose streams break before it
    /// has heard why calls it a broken stream.
    fn end(&mut self, ending: ServerEnding, last: Vec<u8>) -> Vec<ServerAction> {
        let mut actions = Vec::new();
        if self.is_over() {
            return actions;
        }
        if !last.is_empty() {
            actions.push(ServerAction::Send(last));
        }
        if matches!(self.stage, Stage::Running) {
            actions.push(ServerAction::Stop);
        }
        actions.push(ServerAction::End(ending));
        self.stage = Stage::Over;
        self.early = Vec::new();
        actions
    }
}

fn send_state(state: State) -> ServerAction {
    ServerAction::Send(vec![state.byte()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::results::StreamResult;
    use crate::iperf3::stream_id::StreamId;

    const PARAMETERS: &[u8] =
        br#"{"tcp":true,"omit":1,"time":2,"num":0,"blockcount":0,"parallel":2,"bidirectional":true,"len":131072}"#;

    fn results() -> Results {
        Results {
            streams: vec![StreamResult::nothing(StreamId(1))],
            ..Results::default()
        }
    }

    /// Returns a machine whose streams are expected.
    fn opening() -> ServerMachine {
        let (mut server, _) = ServerMachine::new(0);
        server.handle_bytes(0, &frame::encode(PARAMETERS));
        server.handle_accepted(0);
        server
    }

    fn running() -> ServerMachine {
        let mut server = opening();
        server.handle_streams(0);
        server
    }

    fn sent(actions: &[ServerAction]) -> Vec<u8> {
        let bytes = actions.iter().filter_map(|action| match action {
            ServerAction::Send(bytes) => Some(bytes.clone()),
            _ => None,
        });
        bytes.flatten().collect()
    }

    #[test]
    fn who_only_receives_is_ready_before_the_clients_clock_begins() {
        let run = |parameters: &[u8]| {
            let (mut server, _) = ServerMachine::new(0);
            server.handle_bytes(0, &frame::encode(parameters));
            server.handle_accepted(0);
            let actions = server.handle_streams(0);
            assert_eq!(sent(&actions), [1, 2]);
            actions
                .iter()
                .position(|action| *action == ServerAction::Run)
        };
        assert_eq!(run(br#"{"tcp":true,"time":1,"parallel":1}"#), Some(0));
        assert_eq!(
            run(br#"{"tcp":true,"time":1,"parallel":1,"reverse":true}"#),
            Some(2)
        );
    }

    #[test]
    fn a_test_from_cookie_to_goodbye() {
        let (mut server, actions) = ServerMachine::new(0);
        assert_eq!(actions, [ServerAction::Send(vec![9])]);
        let actions = server.handle_bytes(0, &frame::encode(PARAMETERS));
        assert!(
            matches!(&actions[..], [ServerAction::Decide(_)]),
            "{actions:?}"
        );
        let actions = server.handle_accepted(0);
        assert_eq!(actions, [ServerAction::Send(vec![10])]);
        let actions = server.handle_streams(0);
        assert_eq!(sent(&actions), [1, 2]);
        assert_eq!(actions.last(), Some(&ServerAction::Run));
        let actions = server.handle_bytes(0, &[4]);
        assert_eq!(actions, [ServerAction::Stop, ServerAction::Send(vec![13])]);
        let theirs = results();
        let actions = server.handle_bytes(0, &frame::encode(theirs.to_json().as_bytes()));
        assert_eq!(actions, [ServerAction::Report(Box::new(theirs))]);
        let actions = server.handle_results(0, &results());
        assert_eq!(sent(&actions).last(), Some(&14));
        let actions = server.handle_bytes(0, &[16]);
        assert_eq!(actions, [ServerAction::End(ServerEnding::Done)]);
        assert!(server.is_over() && server.deadline_ns().is_none());
        assert!(server.handle_bytes(0, &[16]).is_empty());
    }

    #[test]
    fn what_the_client_is_told_when_the_server_gives_up() {
        let (mut server, _) = ServerMachine::new(0);
        let actions = server.handle_bytes(0, &frame::encode(br#"{"parallel":200}"#));
        assert_eq!(sent(&actions), [0xFE, 0, 0, 0, 6, 0, 0, 0, 0]);
        let (mut server, _) = ServerMachine::new(0);
        server.handle_bytes(0, &frame::encode(PARAMETERS));
        assert_eq!(sent(&server.handle_busy()), [0xFF]);
        assert!(server.is_over());
        let mut server = opening();
        let actions = server.handle_refused(Code::SET_CONGESTION, 2, "no such".into());
        assert_eq!(sent(&actions), [0xFE, 0, 0, 0, 134, 0, 0, 0, 2]);
        assert!(server.is_over());
    }

    #[test]
    fn a_long_announcement_ends_it_at_once() {
        let (mut server, _) = ServerMachine::new(0);
        let actions = server.handle_bytes(0, b"GET / HTTP/1.1");
        assert_eq!(sent(&actions), [0xFE, 0, 0, 0, 114, 0, 0, 0, 0]);
    }

    #[test]
    fn either_end_may_be_interrupted() {
        let actions = running().handle_bytes(0, &[12, 4, 4]);
        let end = ServerAction::End(ServerEnding::ClientTerminated);
        assert_eq!(actions, [ServerAction::Stop, end]);
        let actions = running().handle_terminate();
        assert_eq!(sent(&actions), [11]);
        assert_eq!(actions[1], ServerAction::Stop);
        let end = ServerAction::End(ServerEnding::ClientLeft);
        assert_eq!(running().handle_closed(), [ServerAction::Stop, end.clone()]);
        assert_eq!(opening().handle_closed(), [end]);
    }

    #[test]
    fn words_out_of_turn_end_it() {
        for byte in [1, 4, 9, 16, 0xFF] {
            let actions = opening().handle_bytes(0, &[byte]);
            assert_eq!(sent(&actions), [0xFE, 0, 0, 0, 110, 0, 0, 0, 0], "{byte}");
        }
        let (mut server, _) = ServerMachine::new(0);
        let mut bytes = frame::encode(PARAMETERS);
        bytes.extend_from_slice(&[0; EARLY_BYTES_MAX + 1]);
        let actions = server.handle_bytes(0, &bytes);
        assert_eq!(sent(&actions), [0xFE, 0, 0, 0, 110, 0, 0, 0, 0]);
    }

    #[test]
    fn a_goodbye_that_comes_early_is_heard() {
        let (mut server, _) = ServerMachine::new(0);
        let mut bytes = frame::encode(PARAMETERS);
        bytes.push(12);
        assert_eq!(server.handle_bytes(0, &bytes).len(), 1);
        let actions = server.handle_accepted(0);
        let end = ServerAction::End(ServerEnding::ClientTerminated);
        assert_eq!(actions.last(), Some(&end));
    }

    #[test]
    fn streams_that_trickle_in_have_a_deadline_for_all() {
        let mut server = opening();
        for second in 1..15 {
            server.handle_stream(second * 4 * S);
            assert!(
                server.poll_deadline(second * 4 * S + 1).is_empty(),
                "{second}"
            );
        }
        server.handle_stream(59 * S);
        assert_eq!(server.deadline_ns(), Some(60 * S));
        let told = sent(&server.poll_deadline(60 * S));
        assert_eq!(told[..5], [0xFE, 0, 0, 0, 204]);
    }

    #[test]
    fn every_stage_has_a_deadline() {
        let check = |mut server: ServerMachine, after_s: u64, code: i32| {
            assert_eq!(server.deadline_ns(), Some(after_s * S));
            assert!(server.poll_deadline(after_s * S - 1).is_empty());
            let told = sent(&server.poll_deadline(after_s * S));
            assert_eq!(told[..5], [0xFE, 0, 0, 0, code as u8], "after {after_s} s");
            assert!(server.is_over());
        };
        check(ServerMachine::new(0).0, 10, 114);
        check(opening(), 5, 204);
        check(running(), 1 + 2 + 40, 160);
        let mut asked = running();
        asked.handle_bytes(0, &[4]);
        check(asked, 30, 117);
    }
}
