//! Flows of datagrams: both ends' counts add up to the packet, and what is lost is located.

use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_engine::{Flow, FlowConfig, FlowResult, connect, now_ns, opening};
use linerate_model::datagram::{Balance, Datagrams, Evidence, Place};
use linerate_model::manner::{Manner, ReceiveBy, Sizes, Transport, WaitBy};
use linerate_model::metric::Metric;
use linerate_model::sample::{End, Sample};
use linerate_model::workload::{FlowOptions, Part, Traffic};
use linerate_model::{Bytes, Nanos};
use proptest::prelude::*;

use crate::rig;

static TURN: Mutex<()> = Mutex::new(());

fn udp() -> Manner {
    Manner {
        transport: Transport::Udp,
        ..Manner::default()
    }
}

fn near(
    flow: u32,
    part: Part,
    traffic: &Traffic,
    manner: &Manner,
    options: &FlowOptions,
) -> (Flow, UdpSocket) {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut config = rig::config(flow, End::Client, part, traffic);
    config.manner = manner.clone();
    config.options = options.clone();
    let near = connect(config, far.local_addr().unwrap(), None, b"", rig::DEADLINE).unwrap();
    far.connect(near.local().ip().unwrap()).unwrap();
    (near, far)
}

fn pair(
    flow: u32,
    part: Part,
    traffic: &Traffic,
    manner: &Manner,
    options: &FlowOptions,
) -> (Flow, Flow) {
    let with = |config| FlowConfig {
        options: options.clone(),
        ..config
    };
    rig::datagram_pair(flow, part, traffic, manner, with)
}

fn run(
    flows: u32,
    part: Part,
    traffic: &Traffic,
    manner: &Manner,
    options: &FlowOptions,
    workers: usize,
) -> Vec<(FlowResult, FlowResult)> {
    // One at a time: tests beside these would starve.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (near, far): (Vec<Flow>, Vec<Flow>) = (0..flows)
        .map(|flow| pair(flow, part, traffic, manner, options))
        .unzip();
    let schedule = rig::schedule(60);
    let far = rig::start(far, schedule, workers);
    let near = rig::start(near, schedule, workers);
    near.finish().into_iter().zip(far.finish()).collect()
}

/// Runs flows whose near ends send for 80 ms, and on until every one of them has sent: on a machine
/// that starts threads late a schedule of 80 ms is over before. Returns also how long senders had
/// at the most, in ns.
fn run_until_all_sent(
    flows: u32,
    part: Part,
    traffic: &Traffic,
    manner: &Manner,
    workers: usize,
) -> (Vec<(FlowResult, FlowResult)>, u64) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let options = FlowOptions::default();
    let (near, far): (Vec<Flow>, Vec<Flow>) = (0..flows)
        .map(|flow| pair(flow, part, traffic, manner, &options))
        .unzip();
    let (schedule, began_ns) = (rig::endless(), now_ns());
    let far = rig::start(far, schedule, workers);
    let mut near = rig::start(near, schedule, workers);
    let mut all_sent = || {
        let mut samples = Vec::new();
        near.sample(&mut samples);
        let sent = |sample: &&Sample| sample.metric == Metric::AppBytesSent && sample.value > 0;
        samples.iter().filter(sent).count() == flows as usize
    };
    while now_ns() - began_ns < 80_000_000 || !all_sent() {
        let waited = Duration::from_nanos(now_ns() - began_ns);
        assert!(waited < rig::DEADLINE, "a flow sends nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Those first that would take an end before their own stop for an early one.
    far.stop();
    near.stop();
    let had_ns = now_ns() - began_ns;
    (
        near.finish().into_iter().zip(far.finish()).collect(),
        had_ns,
    )
}

/// Returns the counts of the sending and of the receiving end.
fn counts(ends: &(FlowResult, FlowResult)) -> (&Datagrams, &Datagrams) {
    let (near, far) = ends;
    for end in [near, far] {
        assert_eq!(end.ended_early, None, "{end:?}");
    }
    let of = |end: &'_ FlowResult| end.part == Part::Sender;
    let (sender, receiver) = if of(near) { (near, far) } else { (far, near) };
    let counts = |end: &'static str, result: &'_ FlowResult| {
        assert!(result.datagrams.is_some(), "{end} counts no datagrams");
    };
    counts("the sender", sender);
    counts("the receiver", receiver);
    (
        sender.datagrams.as_ref().unwrap(),
        receiver.datagrams.as_ref().unwrap(),
    )
}

fn balance(sender: &Datagrams, receiver: &Datagrams, manner: &Manner) -> Balance {
    // Over loopback a buffer comes as it was sent.
    let per_drop = if manner.gro { manner.segments } else { 1 };
    Balance::of(&Evidence {
        sent: sender.sent,
        received: receiver.distinct(),
        refused: sender.refused,
        socket_drops: receiver
            .socket_drops
            .map(|drops| drops * u64::from(per_drop)),
        ..Evidence::default()
    })
}

fn manners() -> impl Strategy<Value = Manner> {
    let receive = prop_oneof![
        Just((ReceiveBy::Copy, false)),
        Just((ReceiveBy::Copy, true)),
        Just((ReceiveBy::Discard, false))
    ];
    let burst = prop_oneof![Just(1), 2..=50_u32];
    let shape = (1..=40_u32, 1..=10_u32, burst);
    (shape, receive, any::<bool>()).prop_map(
        |((batch, segments, burst), (receive, gro), short_numbers)| Manner {
            batch,
            segments,
            burst,
            receive,
            gro,
            short_numbers,
            ..udp()
        },
    )
}

fn mixes() -> impl Strategy<Value = Sizes> {
    let size = || prop_oneof![16..200_u64, 16..3000_u64].prop_map(Bytes);
    prop_oneof![
        prop::collection::vec(size(), 1..8).prop_map(|bytes| Sizes::List {
            bytes: bytes.into()
        }),
        (size(), size()).prop_map(|(a, b)| Sizes::Uniform {
            low: a.min(b),
            high: a.max(b),
        }),
        (size(), 1..200_u32).prop_map(|(median, sigma_percent)| Sizes::LogNormal {
            median,
            sigma_percent,
        }),
    ]
}

/// Returns the bytes of the first `count` datagrams, where that is known without drawing.
fn bytes_of(sizes: &Sizes, count: u64) -> std::ops::RangeInclusive<u64> {
    match sizes {
        Sizes::List { bytes } => {
            let cycle = bytes.iter().cycle().take(count as usize);
            let sum = cycle.map(|size| size.0).sum();
            sum..=sum
        }
        Sizes::Uniform { low, high } => count * low.0..=count * high.0,
        Sizes::LogNormal { .. } => count * 16..=count * 65_507,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// What fits the receive buffer is never lost, however late its reader is; and whatever is
    /// lost at a rate is located, to the packet.
    #[test]
    fn everything_that_was_sent_is_accounted_for(
        manner in manners(),
        bytes in prop_oneof![Just(16_u64), 16..1500_u64, 1500..6000_u64],
        flows in 1..=5_u32,
        workers in 1..=3_usize,
        part in prop_oneof![Just(Part::Sender), Just(Part::Receiver)],
        fits in any::<bool>(),
    ) {
        let limit = fits.then_some(Bytes(bytes * 24));
        let manner = Manner { rate_bps: Some(bytes * 8 * 2000), bytes_max: limit, ..manner };
        for ends in run(flows, part, &rig::stream(bytes), &manner, &FlowOptions::default(), workers) {
            let (sender, receiver) = counts(&ends);
            let balance = balance(sender, receiver, &manner);
            prop_assert_eq!(balance.lost() + receiver.distinct(), sender.sent);
            let located = balance.lost.iter().all(|row| row.0 == Place::ReceiveBuffer);
            prop_assert!(located && !(fits && balance.lost() > 0), "{:?} {:?}", sender, receiver);
            // The end itself may be lost where a reader sleeps for long.
            prop_assert!(receiver.announced.is_none_or(|said| said == sender.sent));
            prop_assert_eq!((receiver.late, receiver.duplicates, receiver.strange), (0, 0, 0));
            let (sent, received) = match part {
                Part::Sender => (ends.0.bytes_sent, ends.1.bytes_received),
                _ => (ends.1.bytes_sent, ends.0.bytes_received),
            };
            prop_assert_eq!(sent, sender.sent * bytes);
            prop_assert_eq!(received, receiver.received * bytes);
            prop_assert_eq!(sender.sent, sender.buffers_sent * u64::from(manner.segments));
            prop_assert_eq!(receiver.jitter_ns.is_some(), receiver.received > 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Datagrams of many sizes: each is whole or lost, and of a list each has its turn, also where
    /// the kernel took a part of a call.
    #[test]
    fn datagrams_of_many_sizes_are_accounted_for(
        manner in manners(),
        sizes in mixes(),
        flows in 1..=4_u32,
        workers in 1..=2_usize,
    ) {
        let manner = Manner {
            segments: 1,
            rate_bps: Some(20_000_000),
            sizes: Some(sizes.clone()),
            ..manner
        };
        let traffic = rig::stream(100);
        let (all, _) = run_until_all_sent(flows, Part::Sender, &traffic, &manner, workers);
        for ends in all {
            let (sender, receiver) = counts(&ends);
            let balance = balance(sender, receiver, &manner);
            prop_assert_eq!(balance.lost() + receiver.distinct(), sender.sent);
            prop_assert!(balance.lost.iter().all(|row| row.0 == Place::ReceiveBuffer));
            prop_assert_eq!((receiver.late, receiver.duplicates, receiver.strange), (0, 0, 0));
            let (sent, received) = (ends.0.bytes_sent, ends.1.bytes_received);
            prop_assert!(bytes_of(&sizes, sender.sent).contains(&sent), "{sent} {sender:?}");
            prop_assert!(received <= sent && (balance.lost() > 0 || received == sent));
            prop_assert!(sender.sent > 0);
        }
    }
}

/// A receive buffer of the least size cannot hold what comes while its reader sleeps: what it
/// drops is counted at the socket, and the sum is exact.
#[test]
fn an_overflowing_receive_buffer_is_named() {
    let options = FlowOptions {
        socket_buffer: Some(Bytes(1024)),
        ..FlowOptions::default()
    };
    let manner = Manner { batch: 64, ..udp() };
    let ends = run(1, Part::Sender, &rig::stream(1000), &manner, &options, 1).remove(0);
    let (sender, receiver) = counts(&ends);
    let balance = balance(sender, receiver, &manner);
    assert!(balance.lost() > 0, "{sender:?} {receiver:?}");
    assert_eq!(balance.lost, [(Place::ReceiveBuffer, balance.lost())]);
    assert_eq!(balance.lost() + receiver.distinct(), sender.sent);
    assert!(receiver.announced.is_none_or(|said| said == sender.sent));
    assert!(receiver.missing_run_max > 0);
}

/// One buffer of the kernel is never taken for one packet.
#[test]
fn datagrams_are_counted_and_buffers_apart() {
    let manner = Manner {
        segments: 20,
        gro: true,
        rate_bps: Some(20_000_000),
        bytes_max: Some(Bytes(10_000)),
        ..udp()
    };
    let ends = run(
        1,
        Part::Sender,
        &rig::stream(100),
        &manner,
        &FlowOptions::default(),
        1,
    )
    .remove(0);
    let (sender, receiver) = counts(&ends);
    assert_eq!(sender.sent, sender.buffers_sent * 20);
    assert_eq!(receiver.received, sender.sent);
    assert!(sender.sent == 0 || receiver.buffers_received < receiver.received);
    assert_eq!(receiver.highest, sender.sent);
    let setting = ends
        .0
        .settings
        .iter()
        .find(|setting| setting.name == "send");
    assert_eq!(
        setting.unwrap().granted.as_deref(),
        Some("send, UDP_SEGMENT of 20")
    );
}

#[test]
fn a_rate_is_kept_and_departures_are_recorded() {
    let manner = Manner {
        rate_bps: Some(8_000_000),
        ..udp()
    };
    let ends = run(
        1,
        Part::Sender,
        &rig::stream(1000),
        &manner,
        &FlowOptions::default(),
        1,
    )
    .remove(0);
    let (sender, _) = counts(&ends);
    // 1000 a second for 80 ms: one too many at the most, and fewer where this machine stalls.
    assert!(sender.sent <= 82, "{}", sender.sent);
    let departures = sender.departures.as_ref().unwrap();
    assert!(departures.count() <= sender.sent);
    // Fewer only where this machine stalls for the whole window.
    assert!(departures.count() > 0 || sender.sent < 10, "{sender:?}");
}

/// Ten datagrams at once and then nothing for the time of ten: most departures follow at once, and
/// the rate is the same.
#[test]
fn a_burst_goes_back_to_back_and_rests() {
    for batch in [1, 4] {
        let manner = Manner {
            rate_bps: Some(8_000_000),
            burst: 10,
            batch,
            ..udp()
        };
        let options = FlowOptions::default();
        let traffic = rig::stream(1000);
        let ends = run(1, Part::Sender, &traffic, &manner, &options, 1).remove(0);
        let (sender, _) = counts(&ends);
        // 1000 a second for 80 ms, and one burst ahead; whole bursts, but for the last.
        assert!(sender.sent <= 92, "{}", sender.sent);
        // Calls of 4, 4 and 2.
        let calls = sender.departures.as_ref().unwrap();
        let a_burst = 10_u64.div_ceil(batch.into());
        let at_once = calls.buckets.iter().filter(|bucket| bucket.0 < 1_000_000);
        let at_once: u64 = at_once.map(|bucket| bucket.1).sum();
        assert!(at_once * a_burst >= calls.count(), "{calls:?}");
        let pace = ends.0.settings.iter().find(|one| one.name == "pace");
        let by = "the sender, 10 datagrams back to back, then a pause";
        assert_eq!(pace.unwrap().granted.as_deref(), Some(by));
    }
}

#[test]
fn a_limit_of_bytes_is_met_by_the_datagram() {
    let manner = Manner {
        rate_bps: Some(80_000_000),
        bytes_max: Some(Bytes(50_000)),
        ..udp()
    };
    let ends = run(
        2,
        Part::Receiver,
        &rig::stream(1000),
        &manner,
        &FlowOptions::default(),
        1,
    );
    for ends in &ends {
        let (sender, receiver) = counts(ends);
        assert_eq!((sender.sent, receiver.received), (50, 50));
    }
}

/// What a peer of another program may send: out of order, twice, too short, garbage, words of
/// ours, and no end.
#[test]
fn a_stranger_is_counted_and_ended_by_silence() {
    let traffic = rig::stream(100);
    let (flow, far) = near(0, Part::Receiver, &traffic, &udp(), &FlowOptions::default());
    let schedule = rig::schedule(60);
    let running = rig::start(vec![flow], schedule, 1);
    let send = |number: u64, bytes: usize| {
        let mut datagram = vec![0; bytes];
        datagram[8..16].copy_from_slice(&number.to_be_bytes());
        far.send(&datagram).unwrap();
    };
    for number in [1, 2, 5, 3, 3, 7] {
        send(number, 100);
    }
    send(8, 1400);
    send(0, 100);
    send(u64::MAX, 100);
    far.send(b"").unwrap();
    far.send(b"9876").unwrap();
    far.send(&[0xff; 1000]).unwrap();
    far.send(&opening::confirmation(
        b"LINERATE\0\x01\0\0\0\0\0\x070123456789abcdef",
    ))
    .unwrap();
    let result = running.finish().remove(0);
    assert_eq!(result.ended_early, None);
    let counts = result.outcome.datagrams.clone().unwrap();
    assert_eq!((counts.received, counts.highest), (7, 8));
    assert_eq!((counts.late, counts.duplicates), (1, 1));
    assert_eq!((counts.missing(), counts.missing_run_max), (2, 2));
    assert_eq!((counts.strange, counts.announced), (5, None));
    assert_eq!(result.bytes_received, 6 * 100 + 1400);
}

/// Returns the message of ICMP "host unreachable" that a router would send about a datagram from
/// 127.0.0.1:`from` to 127.0.0.1:`to`.
fn unreachable(from: u16, to: u16) -> Vec<u8> {
    let mut message = vec![3, 1, 0, 0, 0, 0, 0, 0];
    message.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    message.extend([127, 0, 0, 1, 127, 0, 0, 1]);
    message.extend(from.to_be_bytes());
    message.extend(to.to_be_bytes());
    message.extend([0, 8, 0, 0]);
    let words = message
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// News of an earlier datagram come instead of sending the next one: it is sent all the same.
#[test]
fn news_of_an_earlier_datagram_cost_none() {
    let raw = socket2::Socket::new(
        socket2::Domain::IPV4,
        socket2::Type::RAW,
        Some(socket2::Protocol::ICMPV4),
    );
    let Ok(raw) = raw else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "no privilege to send ICMP"
        );
        eprintln!("skipped: no privilege to send ICMP");
        return;
    };
    let manner = Manner {
        rate_bps: Some(8 * 100 * 1000),
        bytes_max: Some(Bytes(100 * 100)),
        ..udp()
    };
    let traffic = rig::stream(100);
    let options = FlowOptions::default();
    let (near, far) = near(0, Part::Sender, &traffic, &manner, &options);
    far.set_read_timeout(Some(rig::DEADLINE)).unwrap();
    let at = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
    let port = |address: std::net::SocketAddr| address.port();
    let news = unreachable(
        port(near.local().ip().unwrap()),
        port(far.local_addr().unwrap()),
    );
    let running = rig::start(vec![near], rig::endless(), 1);
    let (mut payload, mut room) = (0, [0; 200]);
    // News for each datagram that comes, before the next one is due, up to the mark of the end.
    while far.recv(&mut room).unwrap() == 100 {
        payload += 1;
        raw.send_to(&news, &at).unwrap();
    }
    let result = running.finish().remove(0);
    let sender = result.outcome.datagrams.clone().unwrap();
    assert_eq!((sender.sent, sender.refused), (100, 0));
    assert_eq!(payload, 100);
}

/// The other end is gone: the kernel hears it from the network and the flow says so; others go on.
#[test]
fn a_flow_that_dies_is_named_and_the_rest_goes_on() {
    let traffic = rig::stream(100);
    let manner = Manner {
        rate_bps: Some(1_600_000),
        ..udp()
    };
    let options = FlowOptions::default();
    let (dead, gone) = near(0, Part::Sender, &traffic, &manner, &options);
    drop(gone);
    let (alive, far) = pair(1, Part::Sender, &traffic, &manner, &options);
    let schedule = rig::schedule(60);
    let far = rig::start(vec![far], schedule, 1);
    let near = rig::start(vec![dead, alive], schedule, 1).finish();
    let why = near[0].ended_early.as_deref().unwrap();
    assert!(why.contains("ICMP port unreachable"), "{why}");
    let ends = (near[1].clone(), far.finish().remove(0));
    let (sender, receiver) = counts(&ends);
    assert!(receiver.received <= sender.sent);
}

#[test]
fn an_abort_ends_both_ends() {
    let (near, far) = pair(
        0,
        Part::Sender,
        &rig::stream(100),
        &Manner {
            rate_bps: Some(80_000),
            ..udp()
        },
        &FlowOptions::default(),
    );
    let near = rig::start(vec![near], rig::endless(), 1);
    let far = rig::start(vec![far], rig::endless(), 1);
    std::thread::sleep(Duration::from_millis(30));
    near.abort();
    assert_eq!(near.finish()[0].ended_early.as_deref(), Some("aborted"));
    let why = far.finish()[0].ended_early.clone().unwrap();
    assert!(why.contains("before the stop"), "{why}");
}

#[test]
fn requests_and_responses_agree() {
    for (wait, workers, flows) in [
        (WaitBy::Auto, 1, 1),
        (WaitBy::Auto, 1, 4),
        (WaitBy::Spin, 1, 1),
    ] {
        let manner = Manner { wait, ..udp() };
        let traffic = rig::rr(100, 300, 1);
        let options = FlowOptions::default();
        let asked = |ends: &[(FlowResult, FlowResult)]| {
            let mut sent = ends
                .iter()
                .map(|ends| ends.0.datagrams.as_ref().unwrap().sent);
            sent.all(|sent| sent > 1)
        };
        // On a machine that starts threads late the time is over before.
        let mut tries =
            (0..20).map(|_| run(flows, Part::Requester, &traffic, &manner, &options, workers));
        let ends = tries.find(|ends| asked(ends));
        for (near, far) in ends.unwrap_or_else(|| panic!("{wait:?} asks nothing")) {
            assert_eq!(near.ended_early, None);
            assert_eq!(far.ended_early, None);
            let (asked, answered) = (
                near.outcome.datagrams.clone().unwrap(),
                far.outcome.datagrams.clone().unwrap(),
            );
            assert_eq!(asked.sent, answered.received);
            assert_eq!(answered.sent, asked.received);
            assert_eq!(asked.sent, asked.received + asked.unanswered);
            assert_eq!(near.bytes_sent, asked.sent * 100);
            assert_eq!(near.bytes_received, asked.received * 300);
            assert!(near.outcome.latency.clone().unwrap().count() <= asked.received);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Several under way, at a rate, with think times and with sizes that differ: each request has
    /// its response or is counted as unanswered, and each transaction is one response.
    #[test]
    fn every_way_to_ask_adds_up(
        in_flight in prop_oneof![Just(1), 2..=100_u32],
        rhythm in prop_oneof![
            Just((None, None)),
            (200..5000_u32).prop_map(|rate| (Some(rate), None)),
            (1..3_000_000_u64).prop_map(|think| (None, Some(Nanos(think)))),
        ],
        bytes in (1..300_u64, 1..300_u64),
        sizes in prop_oneof![2 => Just(None), 1 => mixes().prop_map(Some)],
        spins in any::<bool>(),
        flows in 1..=4_u32,
        workers in 1..=2_usize,
    ) {
        let (requests_per_s, think) = rhythm;
        let manner = Manner {
            in_flight,
            requests_per_s,
            think,
            sizes: sizes.clone(),
            wait: if spins && flows == 1 { WaitBy::Spin } else { WaitBy::Auto },
            ..udp()
        };
        let traffic = rig::rr(bytes.0, bytes.1, 1);
        let (all, had_ns) = run_until_all_sent(flows, Part::Requester, &traffic, &manner, workers);
        for (near, far) in all {
            prop_assert_eq!((&near.ended_early, &far.ended_early), (&None, &None));
            let (asked, answered) = (near.outcome.datagrams.clone().unwrap(), far.outcome.datagrams.clone().unwrap());
            // Loopback loses a datagram only where a receive buffer is full.
            let lost = asked.socket_drops.unwrap() + answered.socket_drops.unwrap();
            prop_assert!(asked.sent > 0 && asked.sent - answered.received <= lost);
            // What was given up last is answered when nobody listens any more.
            let all_answered = asked.unanswered == 0;
            prop_assert!(!all_answered || answered.sent - asked.received <= lost);
            prop_assert_eq!(asked.sent, near.transactions + asked.unanswered, "{:?}", asked);
            prop_assert_eq!(asked.received, near.transactions + asked.late);
            prop_assert_eq!((asked.strange, answered.strange), (0, 0));
            prop_assert!(near.outcome.latency.clone().unwrap().count() <= near.transactions);
            if sizes.is_none() {
                prop_assert_eq!(near.bytes_sent, asked.sent * bytes.0);
                prop_assert_eq!(near.bytes_received, asked.received * bytes.1);
            } else if lost == 0 {
                prop_assert_eq!(near.bytes_sent, far.bytes_received);
                prop_assert!(!all_answered || near.bytes_received == far.bytes_sent);
            }
            if let Some(rate) = requests_per_s {
                // All that was due, and one at each end.
                let due = u64::from(rate) * had_ns / 1_000_000_000;
                prop_assert!(asked.sent <= due + 2, "{} {due}", asked.sent);
                prop_assert_eq!(near.requests.unwrap().sent, asked.sent);
            }
        }
    }
}

/// Responses in the wrong order, one never, one twice: each goes to its request, and what is lost
/// keeps nobody waiting but itself.
#[test]
fn a_lost_request_does_not_stop_those_beside_it() {
    let traffic = rig::rr(20, 20, 1);
    let manner = Manner {
        in_flight: 4,
        ..udp()
    };
    let options = FlowOptions::default();
    let (flow, far) = near(0, Part::Requester, &traffic, &manner, &options);
    let running = rig::start(vec![flow], rig::endless(), 1);
    far.set_read_timeout(Some(rig::DEADLINE)).unwrap();
    let receive = || {
        let mut room = [0; 100];
        let length = far.recv(&mut room).unwrap();
        room[..length].to_vec()
    };
    let mut waiting: Vec<Vec<u8>> = (0..4).map(|_| receive()).collect();
    let numbers: Vec<u64> = waiting
        .iter()
        .map(|request| u64::from_le_bytes(request[..8].try_into().unwrap()))
        .collect();
    // The first is never answered; of the others always the last.
    let lost = waiting.remove(0);
    let mut answered = 0;
    while answered < 50 {
        let request = waiting.pop().unwrap();
        far.send(&request).unwrap();
        if answered == 0 {
            far.send(&request).unwrap();
        }
        answered += 1;
        let next = receive();
        assert_ne!(next[..8], lost[..8]);
        waiting.push(next);
    }
    running.abort();
    let result = running.finish().remove(0);
    let counts = result.outcome.datagrams.clone().unwrap();
    let unique: std::collections::HashSet<u64> = numbers.into_iter().collect();
    assert_eq!(unique.len(), 4);
    assert!(result.transactions >= 49, "{counts:?}");
    assert_eq!(counts.late, 1, "the second response to one request");
    assert_eq!(counts.sent, result.transactions + counts.unanswered);
}

/// Nothing is answered for 100 ms: in an open loop all that was due in it has waited since then.
#[test]
fn a_stall_is_charged_to_what_was_due_in_it() {
    let traffic = rig::rr(20, 20, 1);
    let manner = Manner {
        in_flight: 2,
        requests_per_s: Some(1000),
        ..udp()
    };
    let options = FlowOptions::default();
    let (flow, far) = near(0, Part::Requester, &traffic, &manner, &options);
    let running = rig::start(vec![flow], rig::schedule(300), 1);
    far.set_read_timeout(Some(rig::DEADLINE)).unwrap();
    let mut room = [0; 100];
    for at in 0.. {
        let length = far.recv(&mut room).unwrap();
        if room.starts_with(b"LINERATE") {
            break;
        }
        if at == 1 {
            // Shorter than the patience.
            std::thread::sleep(Duration::from_millis(100));
        }
        far.send(&room[..length]).unwrap();
    }
    let result = running.finish().remove(0);
    let latency = result.outcome.latency.clone().unwrap();
    let late = latency
        .buckets
        .iter()
        .filter(|bucket| bucket.0 > 20_000_000);
    let late: u64 = late.map(|bucket| bucket.1).sum();
    // Two were under way; 80 more were due at least 20 ms before the end of the stall. A closed
    // loop would know of two.
    assert!(late >= 60, "{late} of {}", latency.count());
}

/// A responder that answers nothing, and then the request before the last.
#[test]
fn a_lost_response_costs_one_transaction() {
    let traffic = rig::rr(20, 20, 1);
    let (flow, far) = near(
        0,
        Part::Requester,
        &traffic,
        &udp(),
        &FlowOptions::default(),
    );
    let running = rig::start(vec![flow], rig::schedule(500), 1);
    let mut requests = Vec::new();
    far.set_read_timeout(Some(rig::DEADLINE)).unwrap();
    for _ in 0..2 {
        let mut room = [0; 100];
        let length = far.recv(&mut room).unwrap();
        requests.push(room[..length].to_vec());
    }
    // Late, and then in time.
    far.send(&requests[0]).unwrap();
    far.send(&requests[1]).unwrap();
    let result = running.finish().remove(0);
    let counts = result.outcome.datagrams.clone().unwrap();
    assert_eq!(requests[0][..8], 1_u64.to_le_bytes());
    assert_eq!((counts.late, counts.received), (1, 2));
    assert_eq!(
        counts.sent,
        1 + counts.unanswered,
        "all but one were lost: {counts:?}"
    );
    assert_eq!(result.outcome.latency.clone().unwrap().count(), 1);
    assert!(result.stall_max_ns.unwrap() >= 200_000_000);
}

#[test]
fn what_datagrams_cannot_do_is_refused() {
    let refused = |part, traffic: &Traffic, manner: Manner| {
        let mut config = rig::config(0, End::Client, part, traffic);
        config.manner = manner;
        let peer = "127.0.0.1:9".parse().unwrap();
        let error = connect(config, peer, None, b"", rig::DEADLINE).unwrap_err();
        error.to_string()
    };
    let check = |manner: Manner, says: &str| {
        let error = refused(Part::Sender, &rig::stream(1000), manner);
        assert!(error.contains(says), "{error}");
    };
    check(
        Manner {
            wait: WaitBy::Uring,
            ..udp()
        },
        "wait = uring is for rr, crr",
    );
    check(
        Manner {
            segments: 66,
            ..udp()
        },
        "65507",
    );
    check(
        Manner {
            gro: true,
            receive: ReceiveBy::Discard,
            ..udp()
        },
        "gro",
    );
    let sizes = Some(Sizes::Uniform {
        low: Bytes(16),
        high: Bytes(99),
    });
    check(
        Manner {
            segments: 2,
            sizes,
            ..udp()
        },
        "of one size",
    );
    check(Manner { burst: 2, ..udp() }, "burst is 2, but must be 1");
    check(
        Manner {
            in_flight: 2,
            ..udp()
        },
        "in_flight is for rr",
    );
    let error = refused(Part::Sender, &rig::stream(15), udp());
    assert!(error.contains("16 to 65507"), "{error}");
    let manner = Manner {
        in_flight: 129,
        ..udp()
    };
    let error = refused(Part::Requester, &rig::rr(1, 9, 1), manner);
    assert!(error.contains("must be 1 to 128"), "{error}");
    let manner = Manner { batch: 2, ..udp() };
    let error = refused(Part::Requester, &rig::rr(9, 9, 1), manner);
    assert!(error.contains("takes one call"), "{error}");
}
