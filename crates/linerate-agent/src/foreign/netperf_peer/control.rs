//! One control connection: a question and an answer, and at the end what was counted.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use linerate_compat::netperf::{
    MESSAGE_BYTES, Message, OmniRequest, OmniResponse, OmniResults, Request, UNKNOWN_REQUEST,
    is_debug_answer, is_omni_answer,
};
use nix::errno::Errno;
use socket2::SockRef;

use crate::api::RefusalCode;
use crate::api::connection::KEEPALIVE;
use crate::foreign::peer::{CallError, is_timeout};

/// How long the first answer may take: whoever speaks the protocol has it at once.
const GREETING_ANSWER: Duration = Duration::from_secs(5);
/// How long the answer to a test may take: a server that was built to measure its CPUs by idle loops counts for 40 s
/// before (`calibrate_idle_rate(4, 10)` of netperf's src/netlib.c).
const TEST_ANSWER: Duration = Duration::from_secs(60);

/// A control connection of which it is known that netperf's server is at its other end.
pub(super) struct Control {
    stream: TcpStream,
    room: [u8; MESSAGE_BYTES],
    filled: usize,
}

/// The counts of a test, as far as they have come.
pub(super) enum Awaited {
    /// They are to come on this connection.
    Counts(Box<Control>),
    /// They have come.
    Counted(Box<OmniResults>),
}

/// What the server did instead of what was asked of it, as the rest of a sentence that begins with its name.
#[derive(Debug)]
pub(super) struct Instead {
    pub(super) words: String,
    /// What kind of refusal that is, if it is one.
    pub(super) code: Option<RefusalCode>,
}

impl AsRef<TcpStream> for Control {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Control {
    /// Makes sure of who answers.
    pub(super) fn greet(stream: TcpStream) -> Result<Self, CallError> {
        Self::greet_within(stream, GREETING_ANSWER)
    }

    fn greet_within(stream: TcpStream, wait: Duration) -> Result<Self, CallError> {
        let mut control = Self::of(stream);
        let odd = |instead: Instead| match instead.code {
            Some(RefusalCode::Busy) => CallError::Busy,
            _ => CallError::Odd(instead.words),
        };
        control.say(&Request::no_debug()).map_err(odd)?;
        let answer = control.hear(wait).map_err(odd)?;
        if is_debug_answer(&answer) {
            return Ok(control);
        }
        read(&answer, OmniResponse::decode).map_err(odd)?;
        Err(odd(strange()))
    }

    /// Takes a connection of which it is known who answers.
    pub(super) fn of(stream: TcpStream) -> Self {
        // Neither fails on a connected socket.
        let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE);
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            room: [0; MESSAGE_BYTES],
            filled: 0,
        }
    }

    /// Asks for a test.
    pub(super) fn ask(&mut self, request: &OmniRequest) -> Result<(), Instead> {
        self.say(&request.encode())
    }

    /// Returns what was set up for the test that was asked for.
    pub(super) fn answer(&mut self) -> Result<OmniResponse, Instead> {
        let answer = self.hear(TEST_ANSWER)?;
        let response = read(&answer, OmniResponse::decode)?;
        if response.port == 0 {
            let words = "names no port for the payload".to_owned();
            return Err(Instead { words, code: None });
        }
        // From here on it is only looked whether something has come.
        let waits = self.stream.set_nonblocking(true);
        waits.map_err(|error| lost(&error)).map(|()| response)
    }

    fn say(&mut self, message: &Message) -> Result<(), Instead> {
        let said = self.stream.write_all(message.bytes());
        said.map_err(|error| lost(&error))
    }

    /// Returns the next message, which arrives whole within `wait`.
    fn hear(&mut self, wait: Duration) -> Result<Message, Instead> {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // A deadline of nothing would be none.
            let waits = self
                .stream
                .set_read_timeout(Some(left.max(Duration::from_millis(1))));
            match waits.and_then(|()| self.fill()) {
                Ok(Some(message)) => return Ok(message),
                Err(error) if is_timeout(&error) && left.is_zero() => return Err(silent(wait)),
                Err(error) if !is_timeout(&error) => return Err(lost(&error)),
                _ if left.is_zero() => return Err(silent(wait)),
                _ => {}
            }
        }
    }

    /// Makes one receive call; returns a message once it is whole.
    fn fill(&mut self) -> std::io::Result<Option<Message>> {
        match self.stream.read(&mut self.room[self.filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if self.filled < MESSAGE_BYTES {
            return Ok(None);
        }
        self.filled = 0;
        Ok(Some(Message::from_bytes(self.room)))
    }

    /// Returns the counts, if they have come.
    fn counts(&mut self) -> Result<Option<OmniResults>, Instead> {
        loop {
            match self.fill() {
                Ok(Some(message)) => return read(&message, OmniResults::decode).map(Some),
                Ok(None) => {}
                Err(error) if is_timeout(&error) => return Ok(None),
                Err(error) => return Err(lost(&error)),
            }
        }
    }
}

impl Awaited {
    /// Looks whether the counts have come.
    pub(super) fn look(&mut self) -> Result<(), Instead> {
        if let Self::Counts(control) = self
            && let Some(counts) = control.counts()?
        {
            *self = Self::Counted(Box::new(counts));
        }
        Ok(())
    }

    /// Returns the counts that have come.
    pub(super) fn counted(&self) -> Option<&OmniResults> {
        match self {
            Self::Counts(_) => None,
            Self::Counted(results) => Some(results),
        }
    }
}

/// Reads an answer to a test; the refusal that it may be instead.
fn read<T>(message: &Message, decode: fn(&Message) -> Result<T, u32>) -> Result<T, Instead> {
    if !is_omni_answer(message) {
        return Err(strange());
    }
    decode(message).map_err(|error| {
        let words = match error {
            UNKNOWN_REQUEST => "does not know the test: it is older than 2.7".to_owned(),
            _ => {
                let system = std::io::Error::from_raw_os_error(error.cast_signed());
                format!("answers with an error: {system}")
            }
        };
        let code = match Errno::from_raw(error.cast_signed()) {
            Errno::EBUSY => RefusalCode::Busy,
            Errno::EACCES | Errno::EPERM => RefusalCode::Unauthorized,
            _ => RefusalCode::BadRequest,
        };
        Instead {
            words,
            code: Some(code),
        }
    })
}

fn strange() -> Instead {
    Instead {
        words: "answers as no netperf server does; is another program on that port?".to_owned(),
        code: None,
    }
}

fn silent(wait: Duration) -> Instead {
    Instead {
        words: format!(
            "gave no whole answer within {} s; is it netperf's, of 2.6 or later?",
            wait.as_secs()
        ),
        code: None,
    }
}

fn lost(error: &std::io::Error) -> Instead {
    let words = match error.kind() {
        ErrorKind::UnexpectedEof => "closed the control connection".to_owned(),
        _ => format!("lost the control connection: {error}"),
    };
    Instead { words, code: None }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use linerate_compat::netperf::{Length, OmniTransport, Way, debug_answer, refused};

    use super::*;

    /// Longer than anything takes that is not meant to be missing.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns a connection to who answers each message by the next of `answers`, and then goes on until the other end
    /// does, or closes where that `leaves`.
    fn answered(answers: Vec<Vec<u8>>, leaves: bool) -> (TcpStream, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = std::thread::spawn(move || {
            let (mut own, _) = listener.accept().unwrap();
            for answer in answers {
                let mut asked = [0; MESSAGE_BYTES];
                own.read_exact(&mut asked).unwrap();
                own.write_all(&answer).unwrap();
            }
            if !leaves {
                let _ = own.read_to_end(&mut Vec::new());
            }
        });
        (stream, server)
    }

    fn bytes(message: &Message) -> Vec<u8> {
        message.bytes().to_vec()
    }

    #[test]
    fn who_is_no_server_of_netperfs_is_named_as_such() {
        let check = |answer: Vec<u8>, leaves, wait: Duration, said: &str| {
            let (stream, server) = answered(vec![answer], leaves);
            let error = Control::greet_within(stream, wait).err().unwrap();
            let words = match error {
                CallError::Odd(words) => words,
                CallError::Busy => "busy".to_owned(),
                CallError::Unreachable(words) => panic!("{words}"),
            };
            assert!(words.contains(said), "{words}");
            server.join().unwrap();
        };
        let soon = Duration::from_millis(20);
        check(Vec::new(), true, PATIENCE, "closed the control connection");
        check(Vec::new(), false, soon, "no whole answer within 0 s");
        check(vec![0; 256], false, soon, "2.6 or later");
        let page = [b"HTTP/1.1 400 Bad Request\r\n".repeat(30), vec![0; 656]].concat();
        check(page, true, PATIENCE, "as no netperf server does");
        let no = |error: Errno| bytes(&refused(error as u32));
        check(no(Errno::EACCES), false, PATIENCE, "Permission denied");
        check(no(Errno::EBUSY), false, PATIENCE, "busy");
        check(
            bytes(&refused(u32::MAX)),
            false,
            PATIENCE,
            "answers with an error",
        );
        check(
            bytes(&refused(0)),
            false,
            PATIENCE,
            "as no netperf server does",
        );
    }

    #[test]
    fn counts_come_whole_or_not_at_all() {
        let check = |answers: Vec<Vec<u8>>, leaves, expected: Result<Option<u64>, &str>| {
            let answers = [vec![bytes(&debug_answer())], answers].concat();
            let (stream, server) = answered(answers, leaves);
            let mut control = Control::greet(stream).unwrap();
            let request = OmniRequest::of(OmniTransport::Tcp, Way::In, Length::Seconds(1));
            control.ask(&request).unwrap();
            let counted = control.answer().and_then(|_| {
                let end = Instant::now() + PATIENCE;
                let mut awaited = Awaited::Counts(Box::new(control));
                let until = |awaited: &Awaited| awaited.counted().is_none() && leaves;
                awaited.look()?;
                while until(&awaited) && Instant::now() < end {
                    awaited.look()?;
                }
                Ok(awaited.counted().map(|counts| counts.bytes_received))
            });
            match (counted, expected) {
                (Ok(counted), Ok(expected)) => assert_eq!(counted, expected),
                (Err(instead), Err(words)) => assert!(instead.words.contains(words), "{instead:?}"),
                other => panic!("{other:?}"),
            }
            // A connection that is still there is closed by now.
            server.join().unwrap();
        };
        let set_up = |port| {
            let response = OmniResponse {
                port,
                ..OmniResponse::default()
            };
            bytes(&response.encode())
        };
        let counts = OmniResults {
            bytes_received: u64::MAX,
            ..OmniResults::default()
        };
        let counts = bytes(&counts.encode());
        let with = |more: &[u8]| vec![[set_up(9), more.to_vec()].concat()];
        check(with(&[]), false, Ok(None));
        check(with(&counts), true, Ok(Some(u64::MAX)));
        check(
            with(&counts[..655]),
            true,
            Err("closed the control connection"),
        );
        check(with(&[7; 656]), true, Err("as no netperf server does"));
        let failed = bytes(&refused(Errno::ECONNRESET as u32));
        check(with(&failed), true, Err("reset by peer"));
        check(vec![set_up(0)], false, Err("names no port"));
        check(
            vec![bytes(&debug_answer())],
            false,
            Err("as no netperf server does"),
        );
        let unknown = bytes(&refused(UNKNOWN_REQUEST));
        check(vec![unknown], false, Err("older than 2.7"));
    }
}
