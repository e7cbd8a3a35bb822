//! What serves at a port where no agent does: found out by asking, once something is wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_compat::iperf3::{COOKIE_BYTES, Cookie, State};
use linerate_compat::netperf::{Request, debug_answer};

/// Longest wait for a connection, and for an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// How long a server has that speaks first.
const GREETING_WAIT: Duration = Duration::from_millis(300);
/// First bytes that are looked at.
const FIRST_BYTES: usize = 8;
/// A request that every server of HTTP answers.
const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// What serves there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere {
    /// iperf3.
    Iperf3,
    /// netperf.
    Netperf,
    /// SSH (RFC 4253, section 4.2).
    Ssh,
    /// HTTP.
    Http,
    /// Nothing any more, though it answered a moment ago.
    Gone,
}

impl Elsewhere {
    /// Finds out, if it can be told.
    ///
    /// 1. Who speaks first is told by that.
    /// 2. iperf3 answers a cookie with the state in which parameters are exchanged, or that it is busy. One that is
    ///    asked notes a test that did not begin.
    /// 3. netperf answers a message of its own, for which it takes the cookie for the begin, so it is asked by another
    ///    connection.
    /// 4. HTTP answers a request, and likewise.
    pub fn find(address: SocketAddr) -> Option<Self> {
        let mut stream = match TcpStream::connect_timeout(&address, ANSWER_WAIT) {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Some(Self::Gone),
            Err(_) => return None,
        };
        if heard(&mut stream, GREETING_WAIT).starts_with(b"SSH-") {
            return Some(Self::Ssh);
        }
        let cookie = Cookie::from_random([b'a'; COOKIE_BYTES - 1]).encode();
        let word = asked(stream, &cookie);
        let state = word.first().copied().and_then(State::from_byte);
        if let Some(State::ParamExchange | State::AccessDenied) = state {
            return Some(Self::Iperf3);
        }
        let another = || TcpStream::connect_timeout(&address, ANSWER_WAIT).ok();
        let (message, yes) = (Request::no_debug(), debug_answer());
        let is_yes = |stream| asked(stream, message.bytes()) == yes.bytes()[..FIRST_BYTES];
        if another().is_some_and(is_yes) {
            return Some(Self::Netperf);
        }
        let is_http = word.starts_with(b"HTTP/")
            || another().is_some_and(|stream| asked(stream, REQUEST).starts_with(b"HTTP/"));
        is_http.then_some(Self::Http)
    }

    /// Returns what to do about it.
    pub fn next_step(self) -> &'static str {
        match self {
            Self::Iperf3 => {
                "this looks like iperf3: `linerate run HOST --peer iperf3` measures with it, all else needs \
                 `linerate serve`"
            }
            Self::Netperf => {
                "this looks like netperf: `linerate run HOST --peer netperf` measures with it, all else needs \
                 `linerate serve`"
            }
            Self::Ssh => "this is a server of SSH: name the port of `linerate serve` with -p",
            Self::Http => "this is a server of HTTP: name the port of `linerate serve` with -p",
            Self::Gone => {
                "the server there has exited, as `iperf3 -s -1` does after one client: start it again, and add \
                 `--peer iperf3` if it is iperf3"
            }
        }
    }
}

/// Returns the first bytes of the answer to `words`.
fn asked(mut stream: TcpStream, words: &[u8]) -> Vec<u8> {
    match stream.write_all(words) {
        Ok(()) => heard(&mut stream, ANSWER_WAIT),
        Err(_) => Vec::new(),
    }
}

/// Returns what is said first, within `wait`.
fn heard(stream: &mut TcpStream, wait: Duration) -> Vec<u8> {
    let mut first = [0; FIRST_BYTES];
    let read = stream.set_read_timeout(Some(wait));
    let count = read.and_then(|()| stream.read(&mut first)).unwrap_or(0);
    first[..count].to_vec()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Returns what is found where each connection is greeted so, and answered so to what it says.
    fn found(greeting: &'static [u8], answer: fn(&[u8]) -> &'static [u8]) -> Option<Elsewhere> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // It goes with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.write_all(greeting);
                let mut said = [0; 64];
                let count = stream.read(&mut said).unwrap_or(0);
                let _ = stream.write_all(answer(&said[..count]));
            }
        });
        Elsewhere::find(address)
    }

    #[test]
    fn other_programs_are_told_by_what_they_say() {
        assert_eq!(found(b"SSH-2.0-x\r\n", |_| b""), Some(Elsewhere::Ssh));
        assert_eq!(found(b"", |_| b"\x09"), Some(Elsewhere::Iperf3));
        let http = |said: &[u8]| -> &'static [u8] {
            if said.starts_with(b"GET ") {
                b"HTTP/1.0 404 Not Found\r\n\r\n"
            } else {
                b""
            }
        };
        assert_eq!(found(b"", http), Some(Elsewhere::Http));
        let netperf = |said: &[u8]| -> &'static [u8] {
            if said.starts_with(&[0, 0, 0, 2]) {
                &[0, 0, 0, 3, 0, 0, 0, 0]
            } else {
                b""
            }
        };
        assert_eq!(found(b"", netperf), Some(Elsewhere::Netperf));
        assert_eq!(found(b"", |_| b"?"), None);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert_eq!(Elsewhere::find(address), Some(Elsewhere::Gone));
    }
}
