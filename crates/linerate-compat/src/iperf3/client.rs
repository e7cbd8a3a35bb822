//! The client's side of a control connection.
//!
//! The mirror of `ServerMachine`. The owner connects, makes a machine, and does what the
//! actions say, in their order:
//!
//! ```text
//! new ─► Send(cookie)            byte 9 ─► Send(parameters)
//! byte 10 ─► Open                byte 1 ─► nothing        byte 2 ─► Run
//! handle_end ─► Send(4)          byte 13 ─► Report        handle_results ─► Send(results)
//! bytes ─► Received(their results)                         byte 14 ─► Send(16), End(Done)
//! ```
//!
//! The server may say at any moment that it is busy, has failed or was interrupted. It decides by
//! itself when all streams are there: the owner opens them one after the other and says nothing.
//! In reverse mode the owner goes on reading its streams until the server has closed them or the
//! machine has ended, or the server may not come to its end.

use crate::iperf3::S;
use crate::iperf3::cookie::Cookie;
use crate::iperf3::error::Code;
use crate::iperf3::frame::{self, FrameDecoder, RESULTS_BYTES_MAX};
use crate::iperf3::parameters::Parameters;
use crate::iperf3::results::Results;
use crate::iperf3::state::State;

/// How long a server may take for its next word. iperf3's server answers at once, but checks a
/// password and sets up streams in between, and an old one is busy with nothing else.
const WORD_NS: u64 = 30 * S;
/// How long the streams may take: iperf3's limit for the answer to one hello, for one lost hello.
const STREAMS_NS: u64 = 60 * S;
/// Bytes after the state 0xFE.
const ERROR_BYTES: usize = 8;
/// Bytes that may arrive while the owner sums up: no server sends any but an error.
const EARLY_BYTES_MAX: usize = 16;

/// What the owner of the connection is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientAction {
    /// Write these bytes to the control connection.
    Send(Vec<u8>),
    /// Open the data connections, one after the other, each beginning with the cookie (or
    /// a hello). The first of them are for the direction to the server.
    Open,
    /// Begin to send and to count. When the test is over, say [`ClientMachine::handle_end`].
    Run,
    /// Sum up and say [`ClientMachine::handle_results`].
    Report,
    /// Here is what the server measured.
    Received(Box<Results>),
    /// It is over; stop what still runs.
    End(ClientEnding),
}

/// How a control connection came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEnding {
    /// As it should.
    Done,
    /// The server runs another test, or does not want this one.
    Busy,
    /// The server gave up.
    ServerError {
        /// Its number.
        code: Code,
        /// The number of the system's error, 0 if there is none.
        errno: i32,
    },
    /// The server was interrupted.
    ServerTerminated,
    /// The server closed the connection before everything was said.
    ServerLeft,
    /// The server closed the connection when it had heard the parameters: 3.22 does not tell whom it
    /// does not let in.
    Unanswered,
    /// The client was interrupted.
    ClientTerminated,
    /// The server did something that makes no sense, or did not answer in time.
    Failed {
        /// Why, for people.
        reason: String,
    },
}

#[derive(Debug, Clone)]
enum Stage {
    /// The cookie is sent.
    Greeting,
    /// The parameters are sent.
    Asking,
    /// The streams are opened.
    Opening,
    /// All streams are there.
    Starting,
    /// Payload flows.
    Running,
    /// The end is sent.
    Ending,
    /// The owner sums up.
    Reporting,
    /// The server's results are on their way.
    Results(FrameDecoder),
    /// The last word is on its way.
    Waiting,
    /// The numbers of an error are on their way.
    Error(Vec<u8>),
    /// Nothing follows.
    Over,
}

/// The client's side of one control connection.
#[derive(Debug)]
pub struct ClientMachine {
    parameters: Parameters,
    stage: Stage,
    deadline_ns: Option<u64>,
    /// The owner said that the test is over before it began.
    end_wanted: bool,
    early: Vec<u8>,
}

impl ClientMachine {
    /// Begins a test at `now_ns` on a connection that was just made.
    pub fn new(now_ns: u64, cookie: &Cookie, parameters: Parameters) -> (Self, Vec<ClientAction>) {
        let own = Self {
            parameters,
            stage: Stage::Greeting,
            deadline_ns: Some(now_ns.saturating_add(WORD_NS)),
            end_wanted: false,
            early: Vec::new(),
        };
        (own, vec![ClientAction::Send(cookie.encode().to_vec())])
    }

    /// Returns whether it is over.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Returns when [`Self::poll_deadline`] will act; absent while the client itself decides how
    /// long it takes, and once it is over.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// Takes up bytes of the control connection, cut anywhere.
    pub fn handle_bytes(&mut self, now_ns: u64, bytes: &[u8]) -> Vec<ClientAction> {
        let mut actions = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (taken, more) = match &mut self.stage {
                Stage::Over => break,
                Stage::Reporting => (rest.len(), self.keep_early(rest)),
                Stage::Results(decoder) => match decoder.feed(rest) {
                    Ok((taken, Some(text))) => (taken, self.handle_text(now_ns, &text)),
                    Ok((taken, None)) => (taken, Vec::new()),
                    Err(error) => (rest.len(), self.fail(error.to_string())),
                },
                Stage::Error(numbers) => {
                    let taken = rest.len().min(ERROR_BYTES - numbers.len());
                    numbers.extend_from_slice(&rest[..taken]);
                    (taken, self.handle_error())
                }
                _ => (1, self.handle_state(now_ns, rest[0])),
            };
            actions.extend(more);
            rest = &rest[taken..];
        }
        actions
    }

    /// The test is over for the owner: time, bytes or blocks are reached, or a stream failed.
    ///
    /// Before the test runs this is remembered, and done when it does.
    pub fn handle_end(&mut self, now_ns: u64) -> Vec<ClientAction> {
        match self.stage {
            Stage::Running => self.wait(now_ns, Stage::Ending, vec![send_state(State::TestEnd)]),
            _ => {
                self.end_wanted = true;
                Vec::new()
            }
        }
    }

    /// The owner has summed up.
    pub fn handle_results(&mut self, now_ns: u64, results: &Results) -> Vec<ClientAction> {
        if !matches!(self.stage, Stage::Reporting) {
            return Vec::new();
        }
        let text = frame::encode(results.to_json().as_bytes());
        let theirs = Stage::Results(FrameDecoder::new(RESULTS_BYTES_MAX));
        let mut actions = self.wait(now_ns, theirs, vec![ClientAction::Send(text)]);
        let early = std::mem::take(&mut self.early);
        actions.extend(self.handle_bytes(now_ns, &early));
        actions
    }

    /// The user interrupts the client; the server is told.
    pub fn handle_terminate(&mut self) -> Vec<ClientAction> {
        let mut actions = Vec::new();
        if !self.is_over() {
            actions.push(send_state(State::ClientTerminate));
        }
        actions.extend(self.end(ClientEnding::ClientTerminated));
        actions
    }

    /// The server closed the control connection, or it broke.
    pub fn handle_closed(&mut self) -> Vec<ClientAction> {
        // A server that does not let somebody in leaves after the first number (3.12).
        let ending = match &self.stage {
            Stage::Error(numbers) => match numbers.first_chunk() {
                Some(code) => ClientEnding::ServerError {
                    code: Code(i32::from_be_bytes(*code)),
                    errno: 0,
                },
                None => ClientEnding::ServerLeft,
            },
            Stage::Asking => ClientEnding::Unanswered,
            _ => ClientEnding::ServerLeft,
        };
        self.end(ending)
    }

    /// Gives up on a server that has taken too long.
    pub fn poll_deadline(&mut self, now_ns: u64) -> Vec<ClientAction> {
        if self.deadline_ns.is_none_or(|deadline| now_ns < deadline) {
            return Vec::new();
        }
        let awaited = match self.stage {
            Stage::Greeting => "its answer to the cookie",
            Stage::Asking => "its answer to the parameters",
            Stage::Opening | Stage::Starting => "the start of the test",
            Stage::Ending => "its answer to the end of the test",
            _ => "its results",
        };
        self.fail(format!("the server did not send {awaited} in time"))
    }

    fn handle_state(&mut self, now_ns: u64, byte: u8) -> Vec<ClientAction> {
        match (&self.stage, State::from_byte(byte)) {
            (_, Some(State::AccessDenied)) => self.end(ClientEnding::Busy),
            (_, Some(State::ServerTerminate)) => self.end(ClientEnding::ServerTerminated),
            (_, Some(State::ServerError)) => self.wait(now_ns, Stage::Error(Vec::new()), vec![]),
            (Stage::Greeting, Some(State::ParamExchange)) => {
                let text = frame::encode(self.parameters.to_json().as_bytes());
                self.wait(now_ns, Stage::Asking, vec![ClientAction::Send(text)])
            }
            (Stage::Asking, Some(State::CreateStreams)) => {
                self.stage = Stage::Opening;
                self.deadline_ns = Some(now_ns.saturating_add(STREAMS_NS));
                vec![ClientAction::Open]
            }
            (Stage::Opening, Some(State::TestStart)) => self.wait(now_ns, Stage::Starting, vec![]),
            (Stage::Starting, Some(State::TestRunning)) => self.run(now_ns),
            (Stage::Running | Stage::Ending, Some(State::ExchangeResults)) => {
                self.stage = Stage::Reporting;
                self.deadline_ns = None;
                vec![ClientAction::Report]
            }
            (Stage::Waiting, Some(State::DisplayResults)) => {
                let mut actions = vec![send_state(State::Done)];
                actions.extend(self.end(ClientEnding::Done));
                actions
            }
            _ => self.fail(format!(
                "the server sent {byte:#04x}, which makes no sense now"
            )),
        }
    }

    fn run(&mut self, now_ns: u64) -> Vec<ClientAction> {
        self.stage = Stage::Running;
        // The client decides how long it takes.
        self.deadline_ns = None;
        let mut actions = vec![ClientAction::Run];
        if self.end_wanted {
            actions.extend(self.handle_end(now_ns));
        }
        actions
    }

    fn handle_text(&mut self, now_ns: u64, text: &[u8]) -> Vec<ClientAction> {
        match Results::parse(text) {
            Ok(results) => {
                let received = ClientAction::Received(Box::new(results));
                self.wait(now_ns, Stage::Waiting, vec![received])
            }
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn handle_error(&mut self) -> Vec<ClientAction> {
        let Stage::Error(numbers) = &self.stage else {
            return Vec::new();
        };
        let &[a, b, c, d, e, f, g, h] = &numbers[..] else {
            return Vec::new();
        };
        self.end(ClientEnding::ServerError {
            code: Code(i32::from_be_bytes([a, b, c, d])),
            errno: i32::from_be_bytes([e, f, g, h]),
        })
    }

    fn keep_early(&mut self, bytes: &[u8]) -> Vec<ClientAction> {
        if self.early.len() + bytes.len() > EARLY_BYTES_MAX {
            return self.fail("the server sent before it was its turn".to_owned());
        }
        self.early.extend_from_slice(bytes);
        Vec::new()
    }

    /// Does `actions`, and waits for the server's next word.
    fn wait(&mut self, now_ns: u64, stage: Stage, actions: Vec<ClientAction>) -> Vec<ClientAction> {
        self.stage = stage;
        self.deadline_ns = Some(now_ns.saturating_add(WORD_NS));
        actions
    }

    fn fail(&mut self, reason: String) -> Vec<ClientAction> {
        self.end(ClientEnding::Failed { reason })
    }

    fn end(&mut self, ending: ClientEnding) -> Vec<ClientAction> {
        if self.is_over() {
            return Vec::new();
        }
        self.stage = Stage::Over;
        self.deadline_ns = None;
        self.early = Vec::new();
        vec![ClientAction::End(ending)]
    }
}

fn send_state(state: State) -> ClientAction {
    ClientAction::Send(vec![state.byte()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::parameters::Direction;
    use crate::iperf3::parameters::Protocol;

    fn parameters() -> Parameters {
        Parameters {
            direction: Direction::Both,
            ..Parameters::of(Protocol::Tcp)
        }
    }

    fn greeted() -> ClientMachine {
        ClientMachine::new(0, &Cookie::from_random([1; 36]), parameters()).0
    }

    /// Returns a machine that has heard `bytes`.
    fn after(bytes: &[u8]) -> ClientMachine {
        let mut client = greeted();
        client.handle_bytes(0, bytes);
        client
    }

    fn ended(actions: &[ClientAction]) -> Option<ClientEnding> {
        actions.iter().find_map(|action| match action {
            ClientAction::End(ending) => Some(ending.clone()),
            _ => None,
        })
    }

    #[test]
    fn a_test_from_cookie_to_goodbye() {
        let mut client = greeted();
        let text = frame::encode(parameters().to_json().as_bytes());
        assert_eq!(client.handle_bytes(0, &[9]), [ClientAction::Send(text)]);
        assert_eq!(client.handle_bytes(0, &[10]), [ClientAction::Open]);
        assert_eq!(client.handle_bytes(0, &[1, 2]), [ClientAction::Run]);
        assert_eq!(client.deadline_ns(), None);
        assert_eq!(client.handle_end(0), [ClientAction::Send(vec![4])]);
        assert_eq!(client.handle_bytes(0, &[13]), [ClientAction::Report]);
        assert_eq!(client.handle_results(0, &Results::default()).len(), 1);
        let mut answer = frame::encode(Results::default().to_json().as_bytes());
        answer.push(14);
        let expected = [
            ClientAction::Received(Box::default()),
            ClientAction::Send(vec![16]),
            ClientAction::End(ClientEnding::Done),
        ];
        assert_eq!(client.handle_bytes(0, &answer), expected);
        assert!(client.is_over());
    }

    #[test]
    fn an_end_before_the_start_waits_for_it() {
        let mut client = after(&[9, 10]);
        assert!(client.handle_end(0).is_empty());
        let expected = [ClientAction::Run, ClientAction::Send(vec![4])];
        assert_eq!(client.handle_bytes(0, &[1, 2]), expected);
    }

    #[test]
    fn a_server_may_say_no_at_any_moment() {
        for before in [&[][..], &[9], &[9, 10], &[9, 10, 1], &[9, 10, 1, 2]] {
            let check = |said: &[u8], expected: ClientEnding| {
                let actions = after(before).handle_bytes(0, said);
                assert_eq!(ended(&actions), Some(expected), "{before:?} {said:?}");
            };
            check(&[0xFF], ClientEnding::Busy);
            check(&[11], ClientEnding::ServerTerminated);
            let code = Code::AUTHENTICATION;
            let error = ClientEnding::ServerError { code, errno: 1 };
            check(&[0xFE, 0, 0, 0, 142, 0, 0, 0, 1], error);
            let mut half = after(before);
            half.handle_bytes(0, &[0xFE, 0, 0, 0, 142]);
            let error = ClientEnding::ServerError { code, errno: 0 };
            assert_eq!(ended(&half.handle_closed()), Some(error));
            let left = match before {
                [9] => ClientEnding::Unanswered,
                _ => ClientEnding::ServerLeft,
            };
            assert_eq!(ended(&after(before).handle_closed()), Some(left));
        }
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up() {
        let mut client = after(&[9]);
        assert!(client.poll_deadline(WORD_NS - 1).is_empty());
        let ending = ended(&client.poll_deadline(WORD_NS));
        let Some(ClientEnding::Failed { reason }) = ending else {
            panic!("{ending:?}");
        };
        assert_eq!(
            reason,
            "the server did not send its answer to the parameters in time"
        );
    }

    #[test]
    fn words_out_of_turn_end_it() {
        for (before, byte) in [
            (&[][..], 10),
            (&[9], 2),
            (&[9, 10], 13),
            (&[9, 10, 1, 2], 14),
        ] {
            let ending = ended(&after(before).handle_bytes(0, &[byte]));
            assert!(
                matches!(ending, Some(ClientEnding::Failed { .. })),
                "{byte}"
            );
        }
    }

    #[test]
    fn an_interrupt_is_told() {
        let actions = after(&[9, 10, 1, 2]).handle_terminate();
        assert_eq!(actions[0], ClientAction::Send(vec![12]));
        assert_eq!(ended(&actions), Some(ClientEnding::ClientTerminated));
    }
}
