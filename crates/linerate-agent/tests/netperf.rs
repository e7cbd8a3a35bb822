//! Clients of netperf, as the codec has what they say: each test of theirs, several on one connection, what is
//! refused, and who may bring payload.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "common/mod.rs"]
mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use common::Serving;
use linerate_agent::access::{Access, Strangers};
use linerate_agent::api::LimitsInfo;
use linerate_compat::netperf::{
    CpuMethod, Interval, Length, MESSAGE_BYTES, Message, NOTHING_SAID, OmniRequest, OmniResponse,
    OmniResults, OmniTransport, Request, UNKNOWN_REQUEST, Way, flag,
};
use linerate_model::{BitsPerSec, Nanos};
use nix::errno::Errno;
use socket2::{Domain, Socket, Type};

/// How long anything may take: a busy machine has its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Another address of this host.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A control connection.
struct Client {
    control: TcpStream,
    agent: IpAddr,
}

impl Client {
    fn of(serving: &Serving) -> Self {
        let control = TcpStream::connect(serving.address).unwrap();
        control.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            control,
            agent: serving.address.ip(),
        }
    }

    fn say(&mut self, message: &Message) {
        self.control.write_all(message.bytes()).unwrap();
    }

    fn hear(&mut self) -> Message {
        let mut bytes = [0; MESSAGE_BYTES];
        self.control.read_exact(&mut bytes).unwrap();
        Message::from_bytes(bytes)
    }

    /// Asks for a test; returns what was set up and where the payload goes.
    fn begin(&mut self, request: &OmniRequest) -> Result<(OmniResponse, SocketAddr), u32> {
        self.say(&request.encode());
        let response = OmniResponse::decode(&self.hear())?;
        Ok((response, (self.agent, response.port).into()))
    }

    fn results(&mut self) -> Result<OmniResults, u32> {
        OmniResults::decode(&self.hear())
    }

    /// Sends `bytes` as a stream; returns both answers.
    fn stream(&mut self, request: &OmniRequest, bytes: usize) -> (OmniResponse, OmniResults) {
        let (response, to) = self.begin(request).unwrap();
        let mut payload = TcpStream::connect(to).unwrap();
        payload.write_all(&vec![7; bytes]).unwrap();
        payload.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(payload.read(&mut [0]).unwrap(), 0, "the server closes, too");
        (response, self.results().unwrap())
    }
}

fn serve() -> Serving {
    Serving::start(|server| server)
}

fn request(transport: OmniTransport, way: Way, length: Length) -> OmniRequest {
    OmniRequest::of(transport, way, length)
}

fn exchange(transport: OmniTransport, length: Length) -> OmniRequest {
    OmniRequest {
        request_bytes: Some(64),
        response_bytes: Some(100),
        ..request(transport, Way::Exchange, length)
    }
}

fn inwards(transport: OmniTransport) -> OmniRequest {
    request(transport, Way::In, Length::Seconds(30))
}

fn udp() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn end_datagrams(socket: &UdpSocket, to: SocketAddr) {
    for _ in 0..3 {
        socket.send_to(&[], to).unwrap();
    }
}

/// Returns the numbers of `errors` as the wire has them.
fn number(error: Errno) -> u32 {
    error as u32
}

#[test]
fn a_stream_is_counted_to_the_byte_and_the_next_test_comes_on_the_same_connection() {
    let serving = serve();
    let mut client = Client::of(&serving);
    for bytes in [1_000_000, 0, 123_457] {
        let asked = OmniRequest {
            receive_bytes: Some(5000),
            receive_window_bytes: Some(100_000),
            flags: flag::NAMES_CONGESTION | flag::MEASURES_CPU | flag::NO_DELAY,
            ..inwards(OmniTransport::Tcp)
        };
        let (response, results) = client.stream(&asked, bytes);
        // The kernel doubles what is asked for, for its own records.
        assert_eq!(response.receive_window_bytes, 200_000);
        assert_eq!(response.receive_bytes, 5000);
        assert_eq!(response.send_bytes, NOTHING_SAID);
        assert_eq!(response.flags, flag::MEASURES_CPU | flag::NO_DELAY);
        assert_eq!(results.bytes_received, bytes as u64);
        assert!(u64::from(results.receive_calls) >= results.bytes_received / 5000);
        assert_eq!((results.bytes_sent, results.send_calls), (0, 0));
        assert_eq!(results.receive_window_bytes, 200_000);
        assert!(results.congestion.is_some_and(|name| !name.is_empty()));
        assert!(results.cpu.is_some() && results.cpus > 0);
        assert_eq!(results.retransmissions, Some(0));
    }
    let (_, results) = client.stream(&inwards(OmniTransport::Tcp), 10);
    assert_eq!((results.cpu, results.congestion), (None, None));
}

#[test]
fn what_the_server_sends_is_what_arrives() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let lengths = [Length::Units(1_000_001), Length::Seconds(1)];
    for length in lengths {
        let asked = OmniRequest {
            send_bytes: Some(10_000),
            ..request(OmniTransport::Tcp, Way::Out, length)
        };
        let (response, to) = client.begin(&asked).unwrap();
        assert_eq!(response.send_bytes, 10_000);
        let mut payload = TcpStream::connect(to).unwrap();
        let arrived = std::io::copy(&mut payload, &mut std::io::sink()).unwrap();
        let results = client.results().unwrap();
        assert_eq!(results.bytes_sent, arrived);
        assert!(u64::from(results.send_calls) >= arrived / 10_000);
        if let Length::Units(units) = length {
            assert_eq!(arrived, u64::from(units));
        }
    }
}

#[test]
fn a_server_that_sends_keeps_bursts_and_the_time_between_them() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let asked = OmniRequest {
        send_bytes: Some(1000),
        interval: Some(Interval {
            burst: 2,
            us: 50_000,
        }),
        ..request(OmniTransport::Tcp, Way::Out, Length::Units(10_000))
    };
    let (response, to) = client.begin(&asked).unwrap();
    assert_eq!((response.burst, response.interval_us), (2, 50_000));
    let mut payload = TcpStream::connect(to).unwrap();
    std::io::copy(&mut payload, &mut std::io::sink()).unwrap();
    let results = client.results().unwrap();
    assert_eq!((results.bytes_sent, results.send_calls), (10_000, 10));
    // Five bursts, and four pauses between them.
    assert!(results.elapsed_s >= 0.2 * 0.99, "{results:?}");
}

#[test]
fn requests_are_answered_one_by_one_and_in_bursts() {
    let serving = serve();
    let mut client = Client::of(&serving);
    for burst in [1, 8] {
        let asked = exchange(OmniTransport::Tcp, Length::Seconds(30));
        let (response, to) = client.begin(&asked).unwrap();
        assert_eq!((response.receive_bytes, response.send_bytes), (64, 100));
        let mut payload = TcpStream::connect(to).unwrap();
        for _ in 0..10 {
            payload.write_all(&vec![1; 64 * burst]).unwrap();
            payload.read_exact(&mut vec![0; 100 * burst]).unwrap();
        }
        payload.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(payload.read(&mut [0]).unwrap(), 0);
        let results = client.results().unwrap();
        let transactions = 10 * burst as u32;
        assert_eq!(results.transactions, transactions);
        assert_eq!(results.bytes_received, u64::from(transactions) * 64);
        assert_eq!(results.bytes_sent, u64::from(transactions) * 100);
        assert_eq!(results.send_calls, transactions);
    }
}

#[test]
fn each_transaction_may_have_a_connection() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let asked = OmniRequest {
        flags: flag::CONNECTS,
        ..exchange(OmniTransport::Tcp, Length::Units(20))
    };
    let (_, to) = client.begin(&asked).unwrap();
    for _ in 0..20 {
        let mut payload = TcpStream::connect(to).unwrap();
        payload.write_all(&[1; 64]).unwrap();
        let mut answer = Vec::new();
        payload.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.len(), 100, "the server closes after its response");
    }
    let results = client.results().unwrap();
    assert_eq!(results.transactions, 20);
    assert_eq!((results.bytes_received, results.bytes_sent), (1280, 2000));
    assert_eq!(results.retransmissions, None);
}

#[test]
fn datagrams_are_counted_and_their_end_is_answered() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let (_, to) = client.begin(&inwards(OmniTransport::Udp)).unwrap();
    let payload = udp();
    for _ in 0..20 {
        payload.send_to(&[1; 1000], to).unwrap();
    }
    end_datagrams(&payload, to);
    let results = client.results().unwrap();
    assert_eq!(
        (results.bytes_received, results.receive_calls),
        (20_000, 20)
    );
    for _ in 0..3 {
        let mut room = [0; 10];
        assert_eq!(payload.recv_from(&mut room).unwrap(), (0, to));
    }
}

#[test]
fn requests_of_datagrams_are_answered() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let asked = exchange(OmniTransport::Udp, Length::Seconds(30));
    let (_, to) = client.begin(&asked).unwrap();
    let payload = udp();
    for _ in 0..30 {
        payload.send_to(&[1; 64], to).unwrap();
        assert_eq!(payload.recv_from(&mut [0; 200]).unwrap(), (100, to));
    }
    end_datagrams(&payload, to);
    let results = client.results().unwrap();
    assert_eq!(results.transactions, 30);
    assert_eq!((results.bytes_received, results.bytes_sent), (1920, 3000));
}

#[test]
fn how_busy_the_host_is_is_told_to_who_may_observe_it() {
    let asked = OmniRequest {
        flags: flag::MEASURES_CPU,
        ..inwards(OmniTransport::Tcp)
    };
    let method = |serving: &Serving| {
        let (_, results) = Client::of(serving).stream(&asked, 5);
        results.cpu.unwrap().method
    };
    // Root and the agent's own user, while there is no token.
    assert_eq!(method(&serve()), CpuMethod::ProcStat);
    let with_token = Serving::start(|mut server| {
        server.access = Access::new(Some("token"), None, Strangers::Measure, Vec::new());
        server
    });
    assert_eq!(method(&with_token), CpuMethod::Rusage);
}

#[test]
fn payload_from_elsewhere_is_not_taken() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let (_, to) = client.begin(&inwards(OmniTransport::Tcp)).unwrap();
    let stranger = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    stranger
        .bind(&SocketAddr::from((ELSEWHERE, 0)).into())
        .unwrap();
    stranger.connect(&to.into()).unwrap();
    let mut stranger = TcpStream::from(stranger);
    // It is closed, or was before it has said anything.
    let heard = stranger.read(&mut [0]);
    assert!(matches!(heard, Ok(0) | Err(_)), "{heard:?}");
    let mut payload = TcpStream::connect(to).unwrap();
    payload.write_all(&[7; 10]).unwrap();
    drop(payload);
    assert_eq!(client.results().unwrap().bytes_received, 10);

    let asked = exchange(OmniTransport::Udp, Length::Seconds(30));
    let (_, to) = client.begin(&asked).unwrap();
    let stranger = UdpSocket::bind((ELSEWHERE, 0)).unwrap();
    stranger.send_to(&[1; 64], to).unwrap();
    end_datagrams(&stranger, to);
    let payload = udp();
    payload.send_to(&[1; 64], to).unwrap();
    assert_eq!(payload.recv_from(&mut [0; 200]).unwrap(), (100, to));
    end_datagrams(&payload, to);
    assert_eq!(client.results().unwrap().transactions, 1);
    stranger.set_nonblocking(true).unwrap();
    let heard = stranger.recv_from(&mut [0; 200]).unwrap_err();
    assert_eq!(heard.kind(), ErrorKind::WouldBlock);
}

#[test]
fn other_messages_are_answered_and_wrong_ones_refused_on_a_connection_that_goes_on() {
    let serving = serve();
    let mut client = Client::of(&serving);
    client.say(&Request::passphrase());
    client.say(&Request::debug());
    assert_eq!(client.hear().bytes()[..8], [0, 0, 0, 3, 0, 0, 0, 0]);
    client.say(&Request::calibrate());
    let calibrated = client.hear();
    assert_eq!(calibrated.bytes()[..8], [0, 0, 0, 5, 0, 0, 0, 0]);
    assert_ne!(calibrated.bytes()[12..16], [0; 4], "there are CPUs");
    // TCP_CC, and one that nobody knows.
    for kind in [300_u32, 0xffff] {
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&kind.to_be_bytes());
        client.say(&Message::from_bytes(bytes));
        assert_eq!(client.results(), Err(UNKNOWN_REQUEST));
    }
    let sctp = OmniTransport::Other {
        socket: 1,
        protocol: 132,
    };
    let refused = [
        (inwards(sctp), Errno::EPROTONOSUPPORT),
        (
            OmniRequest {
                tos: Some(256),
                ..inwards(OmniTransport::Tcp)
            },
            Errno::EINVAL,
        ),
        (
            OmniRequest {
                port: 80,
                ..inwards(OmniTransport::Tcp)
            },
            Errno::EACCES,
        ),
        (
            request(OmniTransport::Udp, Way::Out, Length::Seconds(1)),
            Errno::EOPNOTSUPP,
        ),
        (
            OmniRequest {
                congestion: Some("nosuch".to_owned()),
                ..inwards(OmniTransport::Tcp)
            },
            Errno::ENOENT,
        ),
        (
            OmniRequest {
                server: Some("192.0.2.1".parse().unwrap()),
                ..inwards(OmniTransport::Tcp)
            },
            Errno::EADDRNOTAVAIL,
        ),
    ];
    for (asked, expected) in refused {
        assert_eq!(
            client.begin(&asked).unwrap_err(),
            number(expected),
            "{asked:?}"
        );
    }
    let (_, results) = client.stream(&inwards(OmniTransport::Tcp), 5);
    assert_eq!(results.bytes_received, 5);
}

#[test]
fn a_port_that_is_asked_for_is_the_one() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    let asked = OmniRequest {
        port,
        ..inwards(OmniTransport::Tcp)
    };
    let taken = client.begin(&asked).unwrap_err();
    assert_eq!(taken, number(Errno::EADDRINUSE));
    drop(free);
    let (response, results) = client.stream(&asked, 5);
    assert_eq!((response.port, results.bytes_received), (port, 5));
}

#[test]
fn limits_of_those_without_a_token_hold() {
    let limits = LimitsInfo {
        runs: Some(1),
        trial: Some(Nanos::from_s(1)),
        ..LimitsInfo::default()
    };
    let serving = Serving::within(limits, |server| server);
    let mut client = Client::of(&serving);
    let long = client.begin(&inwards(OmniTransport::Tcp)).unwrap_err();
    assert_eq!(long, number(Errno::ERANGE));
    // One without a time is ended.
    let open = request(OmniTransport::Tcp, Way::In, Length::Open);
    let (_, to) = client.begin(&open).unwrap();
    let payload = TcpStream::connect(to).unwrap();
    let mut second = Client::of(&serving);
    let short = request(OmniTransport::Tcp, Way::In, Length::Seconds(1));
    assert_eq!(second.begin(&short).unwrap_err(), number(Errno::EBUSY));
    assert_eq!(client.results(), Err(number(Errno::ETIME)));
    drop(payload);
    let (_, results) = second.stream(&short, 5);
    assert_eq!(results.bytes_received, 5);
}

#[test]
fn a_client_that_goes_leaves_its_place() {
    let limits = LimitsInfo {
        runs: Some(1),
        ..LimitsInfo::default()
    };
    let serving = Serving::within(limits, |server| server);
    let mut gone = Client::of(&serving);
    let (_, to) = gone.begin(&inwards(OmniTransport::Tcp)).unwrap();
    let _payload = TcpStream::connect(to).unwrap();
    drop(gone);
    let mut client = Client::of(&serving);
    let deadline = Instant::now() + PATIENCE;
    let (_, to) = loop {
        match client.begin(&inwards(OmniTransport::Tcp)) {
            Ok(begun) => break begun,
            Err(error) => assert_eq!(error, number(Errno::EBUSY)),
        }
        assert!(Instant::now() < deadline, "the place is still taken");
        std::thread::yield_now();
    };
    drop(TcpStream::connect(to).unwrap());
    assert_eq!(client.results().unwrap().bytes_received, 0);
}

#[test]
fn payload_that_does_not_come_is_not_waited_for() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let mut second = Client::of(&serving);
    client.begin(&inwards(OmniTransport::Tcp)).unwrap();
    second.begin(&inwards(OmniTransport::Udp)).unwrap();
    assert_eq!(client.results(), Err(number(Errno::ETIMEDOUT)));
    assert_eq!(second.results(), Err(number(Errno::ETIMEDOUT)));
}

#[test]
fn datagrams_without_an_end_are_waited_for_and_that_is_no_part_of_the_time() {
    let serving = serve();
    let mut client = Client::of(&serving);
    let begin = Instant::now();
    let asked = OmniRequest {
        flags: flag::MEASURES_CPU,
        ..request(OmniTransport::Udp, Way::In, Length::Seconds(1))
    };
    let (_, to) = client.begin(&asked).unwrap();
    udp().send_to(&[1; 10], to).unwrap();
    let results = client.results().unwrap();
    assert_eq!(results.bytes_received, 10);
    let waited_s = begin.elapsed().as_secs_f32() - results.elapsed_s;
    assert!(waited_s >= 4.0, "{waited_s}");
    let busy = results.cpu.unwrap().busy;
    assert!((0.0..=100.0).contains(&busy), "{busy}");
}

#[test]
fn a_rate_that_is_limited_is_kept() {
    let rate = 8e6;
    let limits = LimitsInfo {
        rate: Some(BitsPerSec(rate)),
        ..LimitsInfo::default()
    };
    let serving = Serving::within(limits, |server| server);
    let mut client = Client::of(&serving);
    let least_s = |bytes: u64| (bytes as f64 * 8.0 / rate) as f32 * 0.99;
    let asked = OmniRequest {
        send_bytes: Some(10_000),
        ..request(OmniTransport::Tcp, Way::Out, Length::Units(300_000))
    };
    let (_, to) = client.begin(&asked).unwrap();
    let mut payload = TcpStream::connect(to).unwrap();
    std::io::copy(&mut payload, &mut std::io::sink()).unwrap();
    let sent = client.results().unwrap();
    assert!(sent.elapsed_s >= least_s(300_000), "{sent:?}");
    let (_, received) = client.stream(&inwards(OmniTransport::Tcp), 300_000);
    assert_eq!(received.bytes_received, 300_000);
    assert!(received.elapsed_s >= least_s(300_000), "{received:?}");
    // Nothing but the end keeps a sender of datagrams to it.
    let (_, to) = client.begin(&inwards(OmniTransport::Udp)).unwrap();
    let payload = udp();
    client.control.set_nonblocking(true).unwrap();
    while client.control.peek(&mut [0]).is_err() {
        payload.send_to(&[1; 1400], to).unwrap();
    }
    client.control.set_nonblocking(false).unwrap();
    assert_eq!(client.results(), Err(number(Errno::EDQUOT)));
}
