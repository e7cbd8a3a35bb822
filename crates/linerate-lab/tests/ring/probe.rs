//! The programs that make traffic inside the hosts.
//!
//! Each speaks by lines on its output: a server says `ready` when it can be reached, the one who
//! measures says `result` and a number.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use linerate_lab::Lab;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use crate::PROBE;

/// The address that a probe listens on or talks to.
const ADDRESS: &str = "LINERATE_LAB_ADDRESS";
/// How many datagrams or how many milliseconds.
const AMOUNT: &str = "LINERATE_LAB_AMOUNT";
/// Send buffer of the gentle source: more than 20 Mbit/s need over a few milliseconds, less than
/// any queue of a lab.
const GENTLE_BYTES: usize = 16 << 10;
/// What is sent before the measured window begins.
const WARM_UP: Duration = Duration::from_millis(700);
/// No probe waits longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of each counted datagram; a question has fewer.
const DATAGRAM_BYTES: usize = 64;
/// Datagrams on their way at once: they fit the smallest socket buffer.
const BATCH: u64 = 100;
/// Datagrams of a flood that the kernel is handed at once.
const FLOOD_AT_ONCE: usize = 50;
/// After which time a question is asked again.
const REPEAT: Duration = Duration::from_millis(20);

/// A probe to be started.
pub struct Probe<'a> {
    pub host: &'a str,
    pub name: &'a str,
    pub address: SocketAddr,
    pub amount: u64,
}

/// Starts a probe in a host.
pub fn start(lab: &Lab, probe: &Probe<'_>) -> Child {
    let program = env::current_exe().expect("this program has a path");
    let mut command = lab.command(probe.host, program).expect("the host exists");
    command
        .env(PROBE, probe.name)
        .env(ADDRESS, probe.address.to_string())
        .env(AMOUNT, probe.amount.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the probe starts")
}

/// Reads the next line of a probe: its first word and the number behind it.
pub fn line(child: &mut Child) -> (String, f64) {
    let output = child.stdout.as_mut().expect("the output is piped");
    let mut text = String::new();
    let mut byte = [0];
    while output.read(&mut byte).expect("the pipe is open") == 1 && byte[0] != b'\n' {
        text.push(char::from(byte[0]));
    }
    let (word, number) = text.split_once(' ').unwrap_or((&text, "0"));
    (word.to_owned(), number.parse().expect("a number"))
}

/// Runs a server in `server` and a client in `client`; returns the one result of the two.
pub fn measure(lab: &Lab, names: [&str; 2], hosts: [&str; 2], amount: u64) -> f64 {
    let of = |name: &str| lab.hosts().iter().find(|host| host.name == name);
    let address = of(hosts[0]).expect("the host exists").data_address;
    let probe = |index: usize| Probe {
        host: hosts[index],
        name: names[index],
        address: SocketAddr::new(address, 7000),
        amount,
    };
    let mut server = start(lab, &probe(0));
    assert_eq!(line(&mut server).0, "ready");
    let mut client = start(lab, &probe(1));
    let (first, value) = line(&mut client);
    let result = if first == "result" {
        value
    } else {
        let (word, value) = line(&mut server);
        assert_eq!(word, "result", "neither side had a result");
        value
    };
    for child in [&mut client, &mut server] {
        child.kill().expect("a child can be killed");
        child.wait().expect("a child can be waited for");
    }
    result
}

/// Makes the traffic called `name`.
pub fn run(name: &str) {
    let address: SocketAddr = read(ADDRESS);
    let amount: u64 = read(AMOUNT);
    match name {
        "tcp-sink" => tcp_sink(address, Duration::from_millis(amount)),
        "tcp-source" => tcp_source(address, None),
        "tcp-gentle" => tcp_source(address, Some(GENTLE_BYTES)),
        "udp-echo" => udp_echo(address),
        "udp-ping" => udp_ping(address, amount),
        "udp-count" => udp_count(address),
        "udp-burst" => udp_burst(address, amount, 1),
        "udp-superframes" => udp_burst(address, amount, 50),
        "udp-flood" => udp_flood(address, amount),
        "tcp-segment" => tcp_segment(address),
        "wait" => wait(),
        name => panic!("no probe is called {name}"),
    }
}

fn read<T: std::str::FromStr>(variable: &str) -> T {
    let text = env::var_os(variable).expect("the starter sets it");
    let text = String::from_utf8_lossy(text.as_bytes()).into_owned();
    text.parse()
        .unwrap_or_else(|_| panic!("{variable} = {text}"))
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("the pipe is open");
}

/// Counts what arrives in a window after the warm-up: the result is in bits per second.
fn tcp_sink(address: SocketAddr, window: Duration) {
    let listener = TcpListener::bind(address).expect("the address is this host's");
    say("ready");
    let (mut stream, _) = listener.accept().expect("the source connects");
    let mut buffer = vec![0; 1 << 20];
    let begin = Instant::now();
    while begin.elapsed() < WARM_UP {
        if stream.read(&mut buffer).expect("the source sends") == 0 {
            return;
        }
    }
    // The window begins and ends with an empty receive queue: a sink that had to wait for a CPU
    // would otherwise count what arrived before the window, and find more than the wire carries.
    drain(&mut stream, &mut buffer);
    let begin = Instant::now();
    let mut bytes = 0;
    while begin.elapsed() < window {
        bytes += stream.read(&mut buffer).expect("the source sends");
    }
    bytes += drain(&mut stream, &mut buffer);
    let rate = bytes as f64 * 8.0 / begin.elapsed().as_secs_f64();
    say(&format!("result {rate}"));
}

/// Reads what has arrived already.
fn drain(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    stream
        .set_nonblocking(true)
        .expect("a socket can be made not to block");
    let mut bytes = 0;
    while let Ok(more @ 1..) = stream.read(buffer) {
        bytes += more;
    }
    stream
        .set_nonblocking(false)
        .expect("a socket can be made to block");
    bytes
}

/// Sends until the sink is gone, with a send buffer of so many bytes if given.
fn tcp_source(address: SocketAddr, send_buffer: Option<usize>) {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the sink listens");
    // The machine's default may be one that paces itself.
    setsockopt(&stream, sockopt::TcpCongestion, &"cubic".into())
        .or_else(|_| setsockopt(&stream, sockopt::TcpCongestion, &"reno".into()))
        .expect("reno is in every kernel");
    if let Some(bytes) = send_buffer {
        setsockopt(&stream, sockopt::SndBuf, &bytes).expect("a buffer can be set");
    }
    say("sending");
    let buffer = vec![0; 128 << 10];
    while stream.write_all(&buffer).is_ok() {}
}

/// Connects; the result is the payload of a full-size segment.
fn tcp_segment(address: SocketAddr) {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the sink listens");
    let bytes = getsockopt(&stream, sockopt::TcpMaxSeg).expect("a socket option");
    say(&format!("result {bytes}"));
}

fn udp_echo(address: SocketAddr) {
    let socket = UdpSocket::bind(address).expect("the address is this host's");
    say("ready");
    let mut buffer = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).expect("the socket is open");
        // A reply that is lost on the way is part of the measurement.
        let _sent = socket.send_to(&buffer[..length], from);
    }
}

/// Sends one datagram after the other; the result is the median round trip in ns.
fn udp_ping(address: SocketAddr, count: u64) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("any port");
    socket.connect(address).expect("a route");
    socket
        .set_read_timeout(Some(PATIENCE))
        .expect("a socket option");
    let mut buffer = [0; 2048];
    let mut round_trips: Vec<u128> = (0..count)
        .map(|_| {
            let begin = Instant::now();
            socket.send(&[7; 32]).expect("the socket is open");
            socket.recv(&mut buffer).expect("an echo");
            begin.elapsed().as_nanos()
        })
        .collect();
    round_trips.sort_unstable();
    // Where other programs have the CPUs, most are late: the fifth of a hundred that are not tell the delay.
    say(&format!("result {}", round_trips[round_trips.len() / 20]));
}

/// Counts datagrams; echoes questions with the count.
fn udp_count(address: SocketAddr) {
    let socket = UdpSocket::bind(address).expect("the address is this host's");
    say("ready");
    let mut buffer = [0; 2048];
    let mut count = 0u64;
    loop {
        let (length, from) = socket.recv_from(&mut buffer).expect("the socket is open");
        if length == DATAGRAM_BYTES {
            count += 1;
        } else {
            let answer = [&buffer[..length], &count.to_ne_bytes()].concat();
            socket.send_to(&answer, from).expect("the socket is open");
        }
    }
}

/// Sends `amount` datagrams in batches, each followed by a question that is repeated until
/// answered, so that no queue overflows; the result is how many the counter got. So many datagrams are handed
/// to the kernel at once (UDP_SEGMENT).
fn udp_burst(address: SocketAddr, amount: u64, at_once: usize) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("any port");
    socket.connect(address).expect("a route");
    socket
        .set_read_timeout(Some(REPEAT))
        .expect("a socket option");
    let segment = DATAGRAM_BYTES as i32;
    setsockopt(&socket, sockopt::UdpGsoSegment, &segment).expect("Linux 4.18 or newer");
    let datagrams = vec![7; DATAGRAM_BYTES * at_once];
    let mut count = 0;
    for batch in 0..amount / BATCH {
        for _ in 0..BATCH / at_once as u64 {
            socket.send(&datagrams).expect("the socket is open");
        }
        count = ask(&socket, batch);
    }
    say(&format!("result {count}"));
}

/// Sends `amount` datagrams as fast as it can, and asks only then how many the counter got.
fn udp_flood(address: SocketAddr, amount: u64) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("any port");
    socket.connect(address).expect("a route");
    socket
        .set_read_timeout(Some(REPEAT))
        .expect("a socket option");
    // The path knows both ends before the flood comes.
    ask(&socket, 0);
    let segment = DATAGRAM_BYTES as i32;
    setsockopt(&socket, sockopt::UdpGsoSegment, &segment).expect("Linux 4.18 or newer");
    let datagrams = vec![7; DATAGRAM_BYTES * FLOOD_AT_ONCE];
    for _ in 0..amount / FLOOD_AT_ONCE as u64 {
        socket.send(&datagrams).expect("the socket is open");
    }
    // An answer has passed everything that waited.
    let count = ask(&socket, 1);
    say(&format!("result {count}"));
}

/// Asks the counter until it answers question `number`.
fn ask(socket: &UdpSocket, number: u64) -> u64 {
    let begin = Instant::now();
    let mut buffer = [0; 16];
    while begin.elapsed() < PATIENCE {
        socket
            .send(&number.to_ne_bytes())
            .expect("the socket is open");
        while let Ok(16) = socket.recv(&mut buffer) {
            let (question, count) = buffer.split_at(8);
            if question == number.to_ne_bytes() {
                return u64::from_ne_bytes(count.try_into().expect("eight bytes"));
            }
        }
    }
    panic!("no answer to question {number}");
}

/// Says that it runs and waits for the end of its input, which may never come.
fn wait() {
    say("ready");
    let mut line = String::new();
    let _ended = BufReader::new(std::io::stdin()).read_line(&mut line);
}
