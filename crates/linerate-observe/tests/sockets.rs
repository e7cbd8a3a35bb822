//! TCP and UDP sockets in a network namespace that the test makes, so that all of them are known.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use linerate_model::metric::Metric;
use linerate_model::sample::Sample;
use linerate_model::socket::{SocketRow, SocketState};
use linerate_observe::{ObserveConfig, Observer, Processes, SocketFilter, TcpSockets, observers};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::sched::{CloneFlags, unshare};

/// How long the kernel may take to tell of a socket that ended: it does so from a work queue.
const EVENTS_WITHIN: Duration = Duration::from_secs(10);
/// Payload that each connection of a test carries.
const PAYLOAD_BYTES: usize = 100_000;

/// Runs `inside` on a thread in a network namespace of its own with loopback up.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn in_own_network(inside: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).ok()?;
        put_loopback_up();
        inside();
        Some(())
    });
    if thread
        .join()
        .expect("the thread inside ends well")
        .is_none()
    {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no privilege");
        println!("skipped: no privilege");
    }
}

fn put_loopback_up() {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName("lo".to_owned()));
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK;
    let message = RouteNetlinkMessage::SetLink(link);
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let mut socket = Socket::new(NETLINK_ROUTE).expect("a netlink socket");
    socket.bind_auto().expect("its address");
    let kernel = SocketAddr::new(0, 0);
    socket.send_to(&bytes, &kernel, 0).expect("it is sent");
    socket.recv_from_full().expect("an answer");
}

fn observer(name: &str) -> Box<dyn Observer> {
    let config = ObserveConfig {
        proc_root: "/proc".into(),
        sys_root: "/sys".into(),
        lab: true,
        host_wide: true,
        threads: Vec::new(),
    };
    let mut all = observers(&config);
    all.retain(|observer| observer.availability().observer == name);
    all.pop().expect("it is in the list")
}

fn reading(observer: &mut dyn Observer) -> Vec<Sample> {
    let mut samples = Vec::new();
    observer.sample_edge(&mut samples);
    samples
}

fn value(samples: &[Sample], metric: Metric) -> i64 {
    let found = samples.iter().find(|sample| sample.metric == metric);
    found.expect("it is sampled").value
}

/// Makes a connection and moves the payload through it.
fn connection(address: &str) -> (TcpListener, TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).expect("a listener");
    let local = listener.local_addr().expect("its address");
    let mut client = TcpStream::connect(local).expect("a connection");
    let (mut server, _) = listener.accept().expect("its other end");
    let writer = std::thread::spawn(move || {
        client.write_all(&[7; PAYLOAD_BYTES]).expect("it is sent");
        client
    });
    let mut payload = vec![0; PAYLOAD_BYTES];
    server.read_exact(&mut payload).expect("it arrives");
    (listener, writer.join().expect("the writer ends"), server)
}

fn rows(filter: &str) -> Vec<SocketRow> {
    let filter: SocketFilter = filter.parse().expect("a filter");
    let mut rows = Vec::new();
    let mut sockets = TcpSockets::open().expect("a socket");
    let processes = Processes::scan("/proc".as_ref());
    let (_, all) = sockets.read(&filter, &processes, &mut rows).expect("rows");
    assert_eq!(all, rows.len() as u64);
    rows
}

#[test]
fn totals_keep_what_connections_counted_that_are_over() {
    in_own_network(|| {
        let mut tcp = observer("tcp");
        let before = reading(tcp.as_mut());
        assert_eq!(value(&before, Metric::TcpHostSockets), 0);
        // Some live and die between two readings, the others are seen alive.
        for _ in 0..5 {
            drop(connection("127.0.0.1:0"));
        }
        let kept: Vec<_> = (0..5).map(|_| connection("[::1]:0")).collect();
        let between = reading(tcp.as_mut());
        assert_eq!(value(&between, Metric::TcpHostEstablished), 10);
        drop(kept);
        let deadline = Instant::now() + EVENTS_WITHIN;
        let mut last = between;
        // 20 ends of connections and 10 listeners, which count as ended too.
        while value(&last, Metric::TcpHostClosed) < 30 && Instant::now() < deadline {
            let next = reading(tcp.as_mut());
            for (next, last) in next.iter().zip(&last) {
                let grows = next.metric.kind() == linerate_model::metric::Kind::Counter;
                assert!(
                    !grows || next.value >= last.value,
                    "{next:?} after {last:?}"
                );
            }
            last = next;
        }
        let sent = 10 * PAYLOAD_BYTES as i64;
        assert_eq!(value(&last, Metric::TcpHostClosed), 30);
        assert_eq!(value(&last, Metric::TcpHostSockets), 0);
        // What a tail loss probe sends again on a busy machine counts as sent.
        let bytes_sent = value(&last, Metric::TcpHostBytesSent);
        assert!((sent..2 * sent).contains(&bytes_sent), "{bytes_sent}");
        // The kernel counts each FIN as a byte received, since it takes a sequence number.
        assert_eq!(value(&last, Metric::TcpHostBytesReceived), sent + 20);
        let data_out = value(&last, Metric::TcpHostDataSegsOut);
        assert!(data_out >= 20, "{data_out}");
        assert_eq!(value(&last, Metric::TcpHostDataSegsIn), data_out);
        // At the least a SYN, an ACK of the handshake, one of data and a FIN for each.
        assert!(value(&last, Metric::TcpHostAcksOut) >= 40);
        assert_eq!(tcp.availability().missing, None);
        assert_eq!(tcp.availability().note, None);
    });
}

#[test]
fn rows_are_what_the_filter_wants() {
    in_own_network(|| {
        let four = connection("127.0.0.1:0");
        let _six = connection("[::1]:0");
        let port = four.0.local_addr().expect("an address").port();
        assert_eq!(rows("").len(), 6);
        assert_eq!(rows("state listen").len(), 2);
        assert_eq!(rows("addr ::1 and state connected").len(), 2);
        assert_eq!(rows("state listen and not state listen"), []);
        let clients = rows(&format!("dport {port} and dst 127.0.0.0/8"));
        let [client] = clients.as_slice() else {
            panic!("{clients:?}");
        };
        assert_eq!(client.local, four.1.local_addr().expect("an address"));
        assert_eq!(client.state, SocketState::Established);
        assert!(client.memory.is_some() && !client.congestion.as_str().is_empty());
        let tcp = client.tcp.expect("what TCP knows");
        // With what a tail loss probe sends again on a busy machine.
        let payload = PAYLOAD_BYTES as u64;
        assert!((payload..2 * payload).contains(&tcp.bytes_sent), "{tcp:?}");
        assert!(tcp.data_segs_out >= 2 && tcp.rtt_us > 0);
    });
}

#[test]
fn drops_at_a_datagram_socket_are_counted() {
    check_drops("127.0.0.1:0");
    if UdpSocket::bind("[::1]:0").is_ok() {
        check_drops("[::1]:0");
    }
}

fn check_drops(address: &'static str) {
    in_own_network(move || {
        let receiver = UdpSocket::bind(address).expect("a socket");
        let sender = UdpSocket::bind(address).expect("a socket");
        let to = receiver.local_addr().expect("its address");
        let mut udp = observer("udp");
        assert_eq!(value(&reading(udp.as_mut()), Metric::UdpHostSockets), 2);
        // More than any receive buffer holds: 16 MiB of payload.
        for _ in 0..16_384 {
            sender.send_to(&[0; 1024], to).expect("it is sent");
        }
        let samples = reading(udp.as_mut());
        let drops = value(&samples, Metric::UdpHostDrops);
        assert!(drops > 0);
        assert!(value(&samples, Metric::UdpHostReceiveQueue) > 0);
        let mut netstat = observer("netstat");
        let errors = value(&reading(netstat.as_mut()), Metric::SnmpUdpRcvbufErrors);
        assert_eq!(drops, errors);
        drop(receiver);
        assert_eq!(value(&reading(udp.as_mut()), Metric::UdpHostDrops), drops);
    });
}
