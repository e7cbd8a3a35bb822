//! HTTP by hand: what no well-behaved client would send, too.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longest wait for an answer.
const DEADLINE: Duration = Duration::from_secs(40);

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status; 0 when the connection was closed without one.
    pub status: u16,
    /// The header lines, in small letters.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        super::json(&self.body)
    }

    /// Returns the kind of refusal.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Opens a connection on which nothing waits for ever.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the agent listens");
    stream
        .set_read_timeout(Some(DEADLINE))
        .expect("a socket has a timeout");
    stream
}

/// Sends `bytes` and returns what came until the other end closed.
pub fn say(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = connect(address);
    // The other end may have seen enough before all is sent.
    let _ = stream.write_all(bytes);
    read(stream)
}

/// Reads to the end of the connection.
pub fn read(mut stream: TcpStream) -> Answer {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

/// Sends a request with a JSON body, or none where it is empty.
pub fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Answer {
    ask_with(address, method, path, "", body)
}

/// Sends a request with more header lines, each ended by CR LF.
pub fn ask_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Answer {
    let kind = match body {
        "" => String::new(),
        body => format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ),
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{kind}{headers}\r\n{body}"
    );
    say(address, request.as_bytes())
}
