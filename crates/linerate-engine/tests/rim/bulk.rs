//! Bulk payload in every manner: both ends count the same bytes and the same messages.

use linerate_engine::{Flow, FlowConfig, FlowResult, adopt};
use linerate_model::Bytes;
use linerate_model::manner::{Manner, ReceiveBy, SendBy, Sizes, Transport, WaitBy};
use linerate_model::sample::End;
use linerate_model::workload::{FlowOptions, Part, Setting};
use proptest::prelude::*;

use crate::rig;

/// How a run ends.
#[derive(Debug, Clone, Copy)]
enum End_ {
    AtItsTime,
    /// Both ends are told at once, as the agents do it.
    Aborted,
    /// After so much payload of each flow.
    After(u64),
}

/// How long workers may take to be ready where the test is of what was sent, and there must be something.
const SURELY_READY_MS: u64 = 400;

fn sizes() -> impl Strategy<Value = Option<Sizes>> {
    let size = || prop_oneof![1..300_u64, 1..100_000_u64].prop_map(Bytes);
    prop_oneof![
        3 => Just(None),
        1 => prop::collection::vec(size(), 1..8).prop_map(|bytes| Some(Sizes::List { bytes: bytes.into() })),
        1 => (size(), size()).prop_map(|(a, b)| Some(Sizes::Uniform {
            low: a.min(b),
            high: a.max(b),
        })),
        1 => (size(), 1..100_u32).prop_map(|(median, sigma_percent)| Some(Sizes::LogNormal {
            median,
            sigma_percent,
        })),
    ]
}

fn manner() -> impl Strategy<Value = Manner> {
    let send = prop_oneof![
        Just(SendBy::Copy),
        Just(SendBy::Auto),
        Just(SendBy::Vmsplice),
        Just(SendBy::MsgZerocopy),
        Just(SendBy::Sendfile),
    ];
    let receive = prop_oneof![Just(ReceiveBy::Copy), Just(ReceiveBy::Discard)];
    let transport = prop_oneof![
        3 => Just(Transport::Tcp),
        1 => Just(Transport::Mptcp),
        1 => Just(Transport::Unix),
    ];
    let rate = prop_oneof![3 => Just(None), 1 => (10_000_000..2_000_000_000_u64).prop_map(Some)];
    let batch = prop_oneof![Just(1), 1..40_u32];
    let low_water =
        prop_oneof![2 => Just(None), 1 => (1..200_000_u64).prop_map(|bytes| Some(Bytes(bytes)))];
    let calls = (batch, any::<bool>());
    (transport, send, receive, calls, sizes(), rate, low_water).prop_map(
        |(transport, send, receive, (batch, batch_is_chosen), sizes, rate_bps, low_water)| Manner {
            transport,
            batch_is_chosen,
            receive_low_water: low_water.filter(|_| transport == Transport::Tcp),
            // What a transport cannot do is refused, which is another test.
            send: match (transport, send) {
                (Transport::Mptcp | Transport::Unix, SendBy::MsgZerocopy) => SendBy::Vmsplice,
                _ => send,
            },
            receive: match transport {
                Transport::Unix => ReceiveBy::Copy,
                _ => receive,
            },
            // Calls of 64 MiB at the most, as it is checked.
            batch: match &sizes {
                Some(sizes) if sizes.largest().0 > 1 << 20 => 1,
                _ => batch,
            },
            sizes,
            rate_bps,
            ..Manner::default()
        },
    )
}

fn ending() -> impl Strategy<Value = End_> {
    prop_oneof![
        Just(End_::AtItsTime),
        Just(End_::Aborted),
        (1..3_000_000_u64).prop_map(End_::After),
    ]
}

/// Returns the whole messages of a stream of `bytes`, walking along the sizes.
fn whole_messages(manner: &Manner, message_bytes: u64, bytes: u64) -> Option<u64> {
    match &manner.sizes {
        None => Some(bytes / message_bytes),
        Some(Sizes::List { bytes: list }) => {
            let round: u64 = list.iter().map(|size| size.0).sum();
            let mut whole = bytes / round * list.len() as u64;
            let mut left = bytes % round;
            for size in list.iter() {
                if left < size.0 {
                    break;
                }
                left -= size.0;
                whole += 1;
            }
            Some(whole)
        }
        // Only the generator knows: that both ends agree is all that can be said.
        Some(_) => None,
    }
}

proptest! {
    // 48 runs of about 120 ms each.
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ends_count_the_same_bytes_and_messages(
        manner in manner(),
        message_bytes in prop_oneof![1..2000_u64, 1..300_000_u64],
        part in prop_oneof![Just(Part::Sender), Just(Part::Receiver)],
        flows in 1..=5_u32,
        workers in 1..=5_usize,
        ending in ending(),
    ) {
        let mut manner = manner;
        if let End_::After(bytes) = ending {
            manner.bytes_max = Some(Bytes(bytes));
        }
        let traffic = rig::stream(message_bytes);
        let (near, far): (Vec<Flow>, Vec<Flow>) = (0..flows)
            .map(|flow| rig::pair_by(flow, part, &traffic, &manner))
            .unzip();
        // Who has a volume ends with it, however long a busy machine takes.
        let length_ms = if matches!(ending, End_::After(_)) { 3000 } else { 30 };
        let schedule = rig::schedule_after(rig::READY_MS, length_ms);
        let far = rig::start(far, schedule, workers);
        let near = rig::start(near, schedule, workers);
        if matches!(ending, End_::Aborted) {
            std::thread::sleep(std::time::Duration::from_millis(rig::READY_MS + 20));
            near.abort();
            far.abort();
        }
        let (near, far) = (near.finish(), far.finish());
        for (near, far) in near.iter().zip(&far) {
            let (sender, receiver) = match part {
                Part::Sender => (near, far),
                _ => (far, near),
            };
            prop_assert_eq!(sender.bytes_received + receiver.bytes_sent, 0);
            let counted = [sender, receiver].map(|end| {
                let expected = whole_messages(&manner, message_bytes, end.bytes_sent + end.bytes_received);
                (end.messages, expected.unwrap_or(end.messages))
            });
            prop_assert!(counted.iter().all(|(got, expected)| got == expected), "{:?}", counted);
            if matches!(ending, End_::Aborted) {
                // What was under way at that moment is lost, and both say why they ended.
                prop_assert!(sender.bytes_sent >= receiver.bytes_received);
                prop_assert!(sender.messages >= receiver.messages);
                continue;
            }
            prop_assert_eq!(&sender.ended_early, &None);
            prop_assert_eq!(&receiver.ended_early, &None);
            prop_assert_eq!(sender.bytes_sent, receiver.bytes_received);
            prop_assert_eq!(sender.messages, receiver.messages);
            if let End_::After(bytes) = ending {
                prop_assert!(sender.bytes_sent <= bytes);
                // Small messages may not get that far in the time there is.
                if manner.rate_bps.is_none() && manner.sizes.is_none() && message_bytes > 1000 {
                    prop_assert_eq!(sender.bytes_sent, bytes);
                }
            }
        }
    }
}

fn setting<'a>(result: &'a FlowResult, name: &str) -> &'a Setting {
    let mut settings = result.settings.iter();
    settings.find(|setting| setting.name == name).unwrap()
}

fn run_by(manner: &Manner, message_bytes: u64, length_ms: u64) -> (FlowResult, FlowResult) {
    let traffic = rig::stream(message_bytes);
    let (near, far) = rig::pair_by(0, Part::Sender, &traffic, manner);
    let schedule = rig::schedule_after(SURELY_READY_MS, length_ms);
    let far = rig::start(vec![far], schedule, 1);
    let near = rig::start(vec![near], schedule, 1);
    (near.finish().remove(0), far.finish().remove(0))
}

#[test]
fn the_mechanism_is_named_in_the_result() {
    let check = |send, receive, sent: &str, received: &str| {
        let manner = Manner {
            send,
            receive,
            // However long a busy machine takes for it, and more than buffers hold: calls are known to be done by what
            // the kernel says before a later one.
            bytes_max: Some(Bytes(64 << 20)),
            ..Manner::default()
        };
        let (near, far) = run_by(&manner, 131_072, 10_000);
        let (send, receive) = (setting(&near, "send"), setting(&far, "receive"));
        assert!(
            send.granted.as_deref().unwrap().starts_with(sent),
            "{send:?}"
        );
        assert!(
            send.effective.as_deref().unwrap().contains(" per call"),
            "{send:?}"
        );
        assert_eq!(receive.granted.as_deref(), Some(received));
        assert!(near.bytes_sent > 0 && near.bytes_sent == far.bytes_received);
        (send.clone(), receive.clone())
    };
    let (recv, drop) = (ReceiveBy::Copy, ReceiveBy::Discard);
    let (send, receive) = check(SendBy::Copy, recv, "send", "recv");
    assert_eq!((send.requested, receive.requested), (None, None));
    let (send, _) = check(SendBy::Vmsplice, drop, "vmsplice", "discard (MSG_TRUNC)");
    assert_eq!(send.requested.as_deref(), Some("vmsplice"));
    check(SendBy::Sendfile, recv, "sendfile", "recv");
    let (send, _) = check(SendBy::MsgZerocopy, recv, "MSG_ZEROCOPY", "recv");
    // Loopback copies at delivery, whatever was asked for.
    let told = send.effective.unwrap();
    assert!(
        told.contains("copied by the kernel after all: 100 %"),
        "{told}"
    );
    let (send, _) = check(SendBy::Auto, recv, "", "recv");
    assert_ne!(send.granted.as_deref(), Some("auto"));
    let why = send.why.unwrap();
    assert!(why.contains("probe"), "{why}");
}

#[test]
fn a_batch_is_one_call() {
    let manner = Manner {
        batch: 50,
        bytes_max: Some(Bytes(1_000_000)),
        ..Manner::default()
    };
    let (near, far) = run_by(&manner, 100, 50);
    assert_eq!((near.messages, far.messages), (10_000, 10_000));
    // 200 calls of 5000 bytes, and a few more where the send buffer was full in the middle of one.
    let told = setting(&near, "send").effective.clone().unwrap();
    let mean: f64 = told
        .trim_start_matches("send, ")
        .trim_end_matches(" B per call")
        .parse()
        .unwrap();
    assert!((2500.0..=5000.0).contains(&mean), "{told}");
}

/// A receiver that sleeps until more has come than ever will is woken by the end, blocking in its
/// call and among others alike.
#[test]
fn a_stream_that_ends_below_the_mark_arrives_whole() {
    for (transport, wait, flows) in [
        (Transport::Tcp, WaitBy::Auto, 1),
        (Transport::Tcp, WaitBy::Epoll, 1),
        (Transport::Tcp, WaitBy::Spin, 1),
        (Transport::Tcp, WaitBy::Auto, 3),
    ] {
        let manner = Manner {
            transport,
            wait,
            bytes_max: Some(Bytes(4950)),
            receive_low_water: Some(Bytes(32 << 10)),
            ..Manner::default()
        };
        let (near, far): (Vec<Flow>, Vec<Flow>) = (0..flows)
            .map(|flow| rig::pair_by(flow, Part::Sender, &rig::stream(100), &manner))
            .unzip();
        let schedule = rig::schedule_after(SURELY_READY_MS, 20);
        let far = rig::start(far, schedule, 1);
        let near = rig::start(near, schedule, 1);
        for (near, far) in near.finish().iter().zip(&far.finish()) {
            assert_eq!((near.bytes_sent, near.messages), (4950, 49));
            assert_eq!((far.bytes_received, far.messages), (4950, 49));
            assert_eq!((&near.ended_early, &far.ended_early), (&None, &None));
            let mark = setting(far, "SO_RCVLOWAT");
            assert_eq!(mark.requested.as_deref(), Some("32768"));
            assert_eq!(mark.granted, mark.requested);
            assert_eq!(mark.effective, mark.requested);
            let has_mark = |result: &FlowResult| {
                let mut settings = result.settings.iter();
                settings.any(|setting| setting.name == "SO_RCVLOWAT")
            };
            assert!(!has_mark(near), "only a receiver has a mark");
        }
    }
}

/// The peer sends so much and then nothing, not even the end: a timed stream is whole of which something came until
/// the stop, a volume once it has come.
#[test]
fn a_volume_is_whole_only_once_it_has_come() {
    let check = |sent: usize, volume: Option<u64>, wait: WaitBy, is_whole: bool| {
        let listener = rig::listener();
        let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let traffic = rig::stream(100);
        let config = FlowConfig {
            manner: Manner {
                wait,
                bytes_max: volume.map(Bytes),
                ..Manner::default()
            },
            ..rig::config(0, End::Server, Part::Receiver, &traffic)
        };
        let flow = adopt(config, listener.accept().unwrap().0.into()).unwrap();
        std::io::Write::write_all(&mut peer, &vec![0; sent]).unwrap();
        let running = rig::start(vec![flow], rig::schedule_after(rig::READY_MS, 20), 1);
        let far = running.finish().remove(0);
        assert_eq!(far.bytes_received, sent as u64);
        assert_eq!(far.ended_early.is_none(), is_whole, "{:?}", far.ended_early);
    };
    std::thread::scope(|scope| {
        for wait in [WaitBy::Auto, WaitBy::Epoll, WaitBy::Spin] {
            scope.spawn(move || check(1000, None, wait, true));
            scope.spawn(move || check(1000, Some(2000), wait, false));
            scope.spawn(move || check(2000, Some(2000), wait, true));
            scope.spawn(move || check(0, None, wait, false));
        }
    });
}

/// 3 000 messages of 100 B: a receiver that is woken for each batch of them takes fewer calls than
/// there are marks in the stream, and one for the end.
#[test]
fn a_receiver_with_a_mark_takes_many_messages_at_once() {
    let manner = Manner {
        bytes_max: Some(Bytes(300_000)),
        receive_low_water: Some(Bytes(20_000)),
        ..Manner::default()
    };
    let (near, far) = run_by(&manner, 100, 400);
    assert_eq!((near.messages, far.messages), (3000, 3000));
    let told = setting(&far, "receive").effective.clone().unwrap();
    let mean = told.trim_start_matches("recv, ");
    let bytes: f64 = match mean.strip_suffix(" B per call") {
        Some(bytes) => bytes.parse().unwrap(),
        None => {
            mean.trim_end_matches(" KiB per call")
                .parse::<f64>()
                .unwrap()
                * 1024.0
        }
    };
    // A window that ran out or a rest of 100 ms may have cut one or two short.
    assert!(bytes >= 10_000.0, "{told}");
}

/// The rate is kept from above: 20 Mbit/s for 120 ms are 300 000 B, and a queue of 25 000 B may be
/// ahead of it.
#[test]
fn a_paced_stream_keeps_its_rate() {
    for (transport, burst, by) in [
        (
            Transport::Tcp,
            1,
            "the sender, call by call, and the kernel between (SO_MAX_PACING_RATE)",
        ),
        (
            Transport::Tcp,
            8,
            "the sender, 8 messages back to back, then a pause",
        ),
        (Transport::Unix, 1, "the sender, call by call"),
    ] {
        let manner = Manner {
            transport,
            burst,
            rate_bps: Some(20_000_000),
            ..Manner::default()
        };
        let (near, far) = run_by(&manner, 2500, 100);
        assert_eq!(near.bytes_sent, far.bytes_received);
        assert!(
            (10_000..=450_000).contains(&far.bytes_received),
            "{transport:?}: {}",
            far.bytes_received
        );
        let pace = setting(&near, "pace");
        assert_eq!(pace.granted.as_deref(), Some(by));
        assert_eq!(pace.requested.as_deref(), Some("20000000 bit/s"));
    }
}

#[test]
fn mptcp_is_told_from_what_fell_back_to_tcp() {
    let manner = Manner {
        transport: Transport::Mptcp,
        ..Manner::default()
    };
    let (near, far) = run_by(&manner, 10_000, 20);
    assert_eq!(near.bytes_sent, far.bytes_received);
    let has_mptcp =
        std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1");
    let spoken = |result| setting(result, "transport").effective.clone().unwrap();
    let expected = if has_mptcp { "mptcp, 1 subflow" } else { "tcp" };
    assert_eq!(
        (spoken(&near), spoken(&far)),
        (expected.to_owned(), expected.to_owned())
    );

    // A listener that knows TCP only.
    let listener = rig::listener();
    let config = |end, part| FlowConfig {
        manner: manner.clone(),
        ..rig::config(0, end, part, &rig::stream(10_000))
    };
    let peer = listener.local_addr().unwrap();
    let near = config(End::Client, Part::Sender);
    let near = linerate_engine::connect(near, peer, None, b"", rig::DEADLINE).unwrap();
    let far = adopt(
        config(End::Server, Part::Receiver),
        listener.accept().unwrap().0.into(),
    )
    .unwrap();
    for flow in [&near, &far] {
        let transport = flow
            .settings()
            .iter()
            .find(|setting| setting.name == "transport")
            .unwrap();
        assert!(
            transport.granted.as_deref().unwrap().starts_with("tcp ("),
            "{transport:?}"
        );
    }
}

#[test]
fn what_a_transport_cannot_do_is_refused() {
    let refused = |manner: Manner, options: FlowOptions| {
        let stream = std::os::unix::net::UnixStream::pair().unwrap().0;
        let config = FlowConfig {
            manner,
            options,
            ..rig::config(0, End::Client, Part::Sender, &rig::stream(1000))
        };
        adopt(config, stream.into()).unwrap_err().to_string()
    };
    let check = |manner: Manner, words: &str| {
        let error = refused(manner, FlowOptions::default());
        assert!(error.contains(words), "{error}");
    };
    let over = |transport| Manner {
        transport,
        ..Manner::default()
    };
    let unix = over(Transport::Unix);
    let receive = ReceiveBy::Discard;
    check(
        Manner {
            receive,
            ..unix.clone()
        },
        "receive is for tcp, mptcp, udp",
    );
    let send = SendBy::MsgZerocopy;
    check(
        Manner {
            send,
            ..unix.clone()
        },
        "works with TCP only",
    );
    check(
        Manner {
            send,
            ..over(Transport::Mptcp)
        },
        "works with TCP only",
    );
    check(
        Manner {
            in_flight: 2,
            ..unix.clone()
        },
        "in_flight is for rr",
    );
    check(
        Manner {
            segments: 2,
            ..unix.clone()
        },
        "segments is for udp",
    );
    let huge = Sizes::List {
        bytes: [Bytes(1 << 20)].into(),
    };
    let batch = Manner {
        batch: 1000,
        sizes: Some(huge),
        ..unix.clone()
    };
    check(batch, "more than 64 MiB");
    let mark = Manner {
        receive_low_water: Some(Bytes(60_000)),
        ..over(Transport::Mptcp)
    };
    check(mark, "low-water mark over MPTCP");
    let nagle = FlowOptions {
        nagle: Some(false),
        ..FlowOptions::default()
    };
    let error = refused(unix, nagle);
    assert!(error.contains("nagle is for tcp, mptcp"), "{error}");
}

#[test]
fn a_unix_socket_of_another_host_is_not_found() {
    let manner = Manner {
        transport: Transport::Unix,
        ..Manner::default()
    };
    let config = FlowConfig {
        manner,
        ..rig::config(0, End::Client, Part::Sender, &rig::stream(1000))
    };
    let error = linerate_engine::connect_unix(config, "linerate-nobody", b"", rig::DEADLINE);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("unix:@linerate-nobody"), "{error}");
    assert!(error.contains("both ends must be on one host"), "{error}");
}
