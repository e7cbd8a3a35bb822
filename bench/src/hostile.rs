//! What an attacker sends to the port of an agent, at a pace, until it is killed.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

/// Attack an agent (internal)
#[derive(Debug, Args)]
pub struct HostileArgs {
    /// How.
    kind: Hostile,
    /// Where it listens.
    address: SocketAddr,
    /// For how long at the most, should nobody end it.
    seconds: u64,
}

/// A way to attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Hostile {
    /// 1000 connections per second: noise, halves of messages, requests for more than there may be.
    Connections,
    /// 500 connections that say a byte each second.
    Slow,
    /// 2000 connections that say nothing.
    Silent,
    /// 1000 first messages of TLS per second, each of which asks for a signature.
    Handshakes,
    /// 2000 requests per second without TLS, on kept connections.
    Requests,
    /// 20 clients of iperf3 at a time that open no stream.
    Iperf3,
    /// 50 000 datagrams per second.
    Datagrams,
}

impl Hostile {
    /// Returns what it does, in a line.
    pub fn words(self) -> &'static str {
        match self {
            Self::Connections => "1000 connections/s of noise",
            Self::Slow => "500 slow connections",
            Self::Silent => "2000 silent connections",
            Self::Handshakes => "1000 TLS handshakes/s begun",
            Self::Requests => "2000 requests/s without TLS",
            Self::Iperf3 => "20 iperf3 clients without streams",
            Self::Datagrams => "50 000 datagrams/s of noise",
        }
    }
}

/// Time between two looks at what is due.
const TICK: Duration = Duration::from_millis(10);
/// How long a connection may take to be there.
const PATIENCE: Duration = Duration::from_secs(1);

/// Attacks until it is killed or `seconds` are over; prints how much it did.
pub fn hostile(args: &HostileArgs) -> anyhow::Result<()> {
    let mut attack = Attack {
        to: args.address,
        held: Vec::new(),
        number: 0,
    };
    let datagrams = UdpSocket::bind("0.0.0.0:0")?;
    let began = Instant::now();
    let (mut ticks, mut done) = (0_u64, 0_u64);
    while began.elapsed().as_secs() < args.seconds {
        ticks += 1;
        done += match args.kind {
            Hostile::Connections => attack.open(10, noise),
            Hostile::Handshakes => attack.open(10, |_| client_hello()),
            Hostile::Slow => attack.keep(500, noise, b"y", ticks),
            Hostile::Silent => attack.keep(2000, |_| Vec::new(), b"", ticks),
            Hostile::Requests => attack.keep(20, |_| Vec::new(), REQUEST, 0),
            Hostile::Iperf3 => attack.keep(20, iperf3, b"", ticks),
            Hostile::Datagrams => (0..500)
                .filter(|at| datagrams.send_to(&datagram(*at), args.address).is_ok())
                .count() as u64,
        };
        let due = TICK.saturating_mul(ticks as u32);
        thread::sleep(due.saturating_sub(began.elapsed()));
    }
    println!("{done}");
    Ok(())
}

struct Attack {
    to: SocketAddr,
    held: Vec<TcpStream>,
    number: u64,
}

impl Attack {
    /// Opens `count` connections, says on each what `first` makes of its number, and lets go of those of the tick
    /// before: what they were answered lies unread.
    fn open(&mut self, count: u64, first: impl Fn(u64) -> Vec<u8>) -> u64 {
        self.held.clear();
        (0..count).filter(|_| self.connect(&first)).count() as u64
    }

    /// Holds `count` connections; says `more` on them each tick, or each second where `ticks` are counted. Those that
    /// were hung up on are opened again, ten in a tick at the most.
    fn keep(
        &mut self,
        count: usize,
        first: impl Fn(u64) -> Vec<u8>,
        more: &[u8],
        ticks: u64,
    ) -> u64 {
        let mut done = 0;
        if ticks.is_multiple_of(100) {
            self.held
                .retain_mut(|stream| is_open(stream) && (more.is_empty() || say(stream, more)));
            done += if more.is_empty() {
                0
            } else {
                self.held.len() as u64
            };
        }
        let missing = count.saturating_sub(self.held.len()).min(10);
        done + (0..missing).filter(|_| self.connect(&first)).count() as u64
    }

    fn connect(&mut self, first: &impl Fn(u64) -> Vec<u8>) -> bool {
        self.number += 1;
        let Ok(mut stream) = TcpStream::connect_timeout(&self.to, PATIENCE) else {
            return false;
        };
        let bytes = first(self.number);
        let said = bytes.is_empty() || stream.write_all(&bytes).is_ok();
        if said && stream.set_nonblocking(true).is_ok() {
            self.held.push(stream);
        }
        said
    }
}

/// Reads what there is; returns whether the other end is still there.
pub fn is_open(stream: &mut TcpStream) -> bool {
    let mut room = [0; 16 << 10];
    loop {
        match stream.read(&mut room) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Says what the other end takes at once; returns whether it is still there.
fn say(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    match stream.write(bytes) {
        Ok(written) => written > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

const REQUEST: &[u8] = b"GET /v1/agent HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";

/// Returns the first bytes of connection `number`: ten kinds in turn.
fn noise(number: u64) -> Vec<u8> {
    let json = "POST /v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n";
    match number % 10 {
        0 => number.to_le_bytes().repeat(100),
        1 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        2 => b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        3 => [
            b"GET /v1/agent HTTP/1.1\r\nx: ".to_vec(),
            vec![b'y'; 60_000],
        ]
        .concat(),
        4 => b"abcdefghijklmnopqrst".to_vec(),
        5 => [iperf3_cookie(number), b"\xff\xff\xff\xff".to_vec()].concat(),
        6 => [
            b"LINERATE\0\x01\0\0\0\0\0\0".to_vec(),
            number.to_le_bytes().repeat(2),
        ]
        .concat(),
        7 => format!("{json}content-length: 99999999999999999999\r\n\r\n").into_bytes(),
        8 => format!("{json}transfer-encoding: chunked\r\n\r\nffffffff\r\nxxxx").into_bytes(),
        _ => [
            REQUEST.repeat(20),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        ]
        .concat(),
    }
}

fn iperf3_cookie(number: u64) -> Vec<u8> {
    let letters = (0..36).map(|at| b'a' + ((number >> (at % 8 * 4)) & 0xf) as u8);
    letters.chain([0]).collect()
}

/// Returns a cookie of iperf3 with parameters that are good.
fn iperf3(number: u64) -> Vec<u8> {
    let parameters =
        br#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":131072}"#;
    let length = (parameters.len() as u32).to_be_bytes();
    [iperf3_cookie(number), length.to_vec(), parameters.to_vec()].concat()
}

/// Returns a datagram: noise, a hello with a cookie that nobody waits for, or a greeting of iperf3.
fn datagram(at: u32) -> Vec<u8> {
    match at % 4 {
        0 => vec![at as u8; 64],
        1 => [b"LINERATE\0\x01\0\0\0\0\0\0".to_vec(), vec![at as u8; 16]].concat(),
        2 => b"9876".to_vec(),
        _ => vec![at as u8; 1400],
    }
}

/// Returns a first message of TLS 1.3 as a client sends it that means it (RFC 8446, 4.1.2): X25519, and a key to go
/// with it, so that the answer takes an agreement and a signature.
fn client_hello() -> Vec<u8> {
    let extension = |kind: u16, body: &[u8]| {
        let length = body.len() as u16;
        [&kind.to_be_bytes()[..], &length.to_be_bytes(), body].concat()
    };
    let mut share = vec![0, 36, 0, 29, 0, 32, 9];
    share.resize(38, 0);
    let extensions = [
        extension(43, &[2, 3, 4]),
        extension(10, &[0, 2, 0, 29]),
        extension(13, &[0, 6, 4, 3, 8, 7, 8, 4]),
        extension(51, &share),
    ]
    .concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 6, 0x13, 1, 0x13, 2, 0x13, 3, 1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let length = (body.len() as u32).to_be_bytes();
    let message = [&[1], &length[1..], &body].concat();
    let length = (message.len() as u16).to_be_bytes();
    [&[0x16, 3, 1], &length[..], &message].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_message_says_how_long_it_is() {
        let hello = client_hello();
        let number = |from: usize, bytes: usize| {
            let bytes = hello[from..from + bytes].iter();
            bytes.fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        };
        assert_eq!(number(3, 2), hello.len() - 5);
        assert_eq!(number(6, 3), hello.len() - 9);
        let before_extensions = 9 + 2 + 32 + 1 + 2 + 6 + 2;
        assert_eq!(
            number(before_extensions, 2),
            hello.len() - before_extensions - 2
        );
    }

    #[test]
    fn a_client_of_iperf3_has_a_cookie_and_parameters() {
        let words = iperf3(12_345);
        assert!(words[..36].iter().all(u8::is_ascii_lowercase));
        assert_eq!(words[36], 0);
        let length = u32::from_be_bytes([words[37], words[38], words[39], words[40]]);
        assert_eq!(length as usize, words.len() - 41);
        assert_ne!(words[..36], iperf3(12_346)[..36]);
    }
}
