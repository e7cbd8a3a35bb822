//! Captures are arbitrary bytes: cut anywhere, with bits turned, or random, they give a result or
//! an error, never a panic, and memory stays within the limits. A failure prints its seed.

/// Captures made by hand.
mod common;
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use common::{BEGIN_NS, From, Talk, pcap, pcapng};
use linerate_trace::capture::{LinkType, Reader};
use linerate_trace::text::{Look, text};
use linerate_trace::{Limits, Trace, Tracker, both, page};
use proptest::collection::vec;
use proptest::prelude::*;

use From::{Client, Server};

/// Few of everything, so that places are handed back all the time.
const FEW: Limits = Limits {
    connections: 7,
    details: 3,
    timelines: 2,
    points: 2,
    reported: 5,
    seed: 1,
};

fn traced(bytes: &[u8]) -> Option<Trace> {
    let mut tracker = Tracker::new(FEW);
    let mut reader = Reader::new(bytes).ok()?;
    tracker.read(&mut reader, "fuzz").ok()?;
    let trace = tracker.finish();
    let look = Look {
        columns: 40,
        color: true,
        connections: 5,
    };
    assert!(!text(&trace, look).is_empty());
    assert!(trace.json().starts_with('{'));
    assert!(trace.connections.len() <= FEW.reported);
    Some(trace)
}

/// A capture with a little of everything.
fn colourful() -> Vec<(u64, Vec<u8>)> {
    let mut talk = Talk::new(u32::MAX - 3000, 9);
    talk.shake_hands(1460, Some(7));
    for at in 0..20u32 {
        talk.wait_us(20).data(Client, 1460 + at as usize % 3);
        talk.wait_us(90).sack(Server, 2920, 1460);
        talk.wait_us(6000 * u64::from(at % 3))
            .again(Client, 2920, 1460);
        talk.window(Server, at as u16 % 4).ack(Server);
        talk.same_frame();
    }
    talk.finish();
    let mut other = Talk::new(1, 1).v6();
    other
        .shake_hands(1440, None)
        .data(Client, 10)
        .data(Server, 20);
    talk.frames.extend(other.frames);
    talk.frames
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn captures_are_cut_anywhere() {
    let frames = &colourful()[..14];
    for whole in [pcap(frames, 1, false, true), pcapng(frames)] {
        let all = traced(&whole).expect("a whole capture").totals.frames;
        let mut last = 0;
        for length in 0..whole.len() {
            let Some(trace) = traced(&whole[..length]) else {
                continue;
            };
            assert!(trace.totals.frames >= last && trace.totals.frames <= all);
            last = trace.totals.frames;
        }
        let zipped = packed(&whole);
        assert_eq!(
            traced(&zipped).expect("a packed capture").totals.frames,
            all
        );
        for length in (0..zipped.len()).step_by(17) {
            traced(&zipped[..length]);
        }
    }
}

/// A segment with random numbers between few ends, so that state machines meet everything.
fn segment() -> impl Strategy<Value = (u64, Vec<u8>)> {
    let ends = (any::<bool>(), 0..3u16, any::<bool>());
    let numbers = (
        0..64u32,
        0..64u32,
        any::<u8>(),
        prop_oneof![Just(0u16), any::<u16>()],
    );
    let rest = (
        0..3000usize,
        vec(any::<u8>(), 0..24),
        0..400_000_000u64,
        0..5u16,
    );
    (ends, numbers, rest).prop_map(|((up, port, v6), (seq, ack, flags, window), rest)| {
        let (payload, options, wait_ns, identification) = rest;
        let mut talk = Talk::new(u32::MAX - 20_000, u32::MAX - 20_000).client_port(3000 + port);
        if v6 {
            talk = talk.v6();
        }
        let mut packet = talk.packet(if up { Client } else { Server }, payload);
        packet.sequence = packet.sequence.wrapping_add(seq * 700);
        packet.acknowledgement = packet.acknowledgement.wrapping_add(ack * 700);
        packet.flags = flags;
        packet.window = window;
        packet.options = options[..options.len() / 4 * 4].to_vec();
        packet.identification = identification;
        talk.send(packet);
        let (_, bytes) = talk.frames.remove(0);
        (wait_ns, bytes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_bytes_are_no_panic(bytes in vec(any::<u8>(), 0..2000)) {
        traced(&bytes);
    }

    #[test]
    fn random_blocks_are_no_panic(bytes in vec(any::<u8>(), 0..600), big in any::<bool>()) {
        let mut capture = pcapng(&[]);
        if big {
            capture[8..12].reverse();
        }
        capture.extend(&bytes);
        traced(&capture);
        let mut classic = pcap(&[], 1, big, false);
        classic.extend(&bytes);
        traced(&classic);
    }

    #[test]
    fn turned_bits_are_no_panic(at in vec((any::<prop::sample::Index>(), 0..8u32), 1..20)) {
        for mut capture in [pcap(&colourful(), 1, true, false), pcapng(&colourful())] {
            for (index, bit) in &at {
                let length = capture.len();
                capture[index.index(length)] ^= 1 << bit;
            }
            traced(&capture);
        }
    }

    #[test]
    fn random_frames_are_no_panic(
        frames in vec(vec(any::<u8>(), 0..120), 1..20),
        link in prop_oneof![
            Just(0u32), Just(1), Just(101), Just(105), Just(108), Just(113), Just(119), Just(127), Just(276)
        ],
    ) {
        let frames: Vec<_> = frames.into_iter().map(|bytes| (BEGIN_NS, bytes)).collect();
        traced(&pcap(&frames, link, false, true));
    }

    #[test]
    fn random_segments_keep_their_sums(segments in vec(segment(), 1..120)) {
        let mut now_ns = BEGIN_NS;
        let mut frames = Vec::new();
        for (wait_ns, bytes) in segments {
            now_ns += wait_ns;
            frames.push((now_ns, bytes));
        }
        let trace = traced(&pcapng(&frames)).expect("a capture");
        page::page(&trace, "fuzz");
        let totals = &trace.totals;
        prop_assert_eq!(totals.frames, frames.len() as u64);
        prop_assert_eq!(totals.tcp_frames + totals.malformed, totals.frames);
        prop_assert_eq!(totals.packets + totals.duplicate_frames, totals.tcp_frames);
        prop_assert!(totals.data_packets + totals.pure_acks <= totals.packets);
        prop_assert!(totals.retransmissions <= totals.data_packets);
        prop_assert!(totals.spurious_retransmissions <= totals.retransmissions);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Random segments, of which either capture misses some and sees the others when it likes.
    #[test]
    fn random_captures_are_joined_or_not(
        segments in vec((segment(), 0..8u8, -50_000_000..50_000_000i64), 1..80),
    ) {
        let (mut now_ns, mut one, mut other) = (BEGIN_NS, vec![], vec![]);
        for ((wait_ns, bytes), fate, apart_ns) in segments {
            now_ns += wait_ns;
            if fate != 0 {
                one.push((now_ns, bytes.clone()));
            }
            if fate != 1 {
                other.push((now_ns.saturating_add_signed(apart_ns), bytes));
            }
        }
        let seen = |frames: &[(u64, Vec<u8>)]| {
            let bytes = pcapng(frames);
            let mut reader = Reader::new(&bytes[..]).expect("a capture");
            both::Seen::read(Tracker::new(FEW), &mut reader, "fuzz").expect("of Ethernet")
        };
        if let Some(both) = both::join(seen(&one), seen(&other)) {
            for joined in &both.connections {
                for way in [&joined.from_client, &joined.from_server] {
                    prop_assert_eq!(
                        way.arrived + way.lost + way.missed_by_capture + way.outside, way.sent
                    );
                }
            }
            let look = Look { columns: 40, color: true, connections: 5 };
            prop_assert!(!both::text(&both, look).is_empty());
            assert!(both.json().starts_with('{'));
            both::page(&both, "fuzz");
        }
    }

    /// Random datagrams to the ports whose protocols are looked at.
    #[test]
    fn random_datagrams_are_no_panic(
        datagrams in vec((vec(any::<u8>(), 0..80), 0..4usize, any::<bool>(), 0..9_000_000_000u64), 1..60),
    ) {
        let mut frames = Vec::new();
        let mut now_ns = BEGIN_NS;
        for (payload, port, up, wait_ns) in datagrams {
            now_ns += wait_ns;
            let port = [53u16, 123, 443, 9999][port];
            let (source, target) = if up { (4000, port) } else { (port, 4000) };
            let mut udp: Vec<u8> = [source, target, 0, 0].into_iter().flat_map(u16::to_be_bytes).collect();
            udp.extend(&payload);
            let mut frame = common::ipv4(u8::from(!up), 1, &udp);
            frame[9] = 17;
            frames.push((now_ns, frame));
        }
        let trace = traced(&pcap(&frames, 101, false, true)).expect("a capture");
        prop_assert_eq!(trace.totals.udp, frames.len() as u64);
        for one in &trace.conversations {
            let asked = one.asked.unwrap_or(0);
            prop_assert!(one.unanswered.unwrap_or(0) + one.asked_again.unwrap_or(0) <= asked);
        }
    }
}

/// One frame of each link and tunnel that is looked through, and of QUIC's long headers: link type, frame,
/// and whether it holds a segment.
fn frames() -> Vec<(u32, Vec<u8>, bool)> {
    let ethernet = Talk::new(1, 1).data(Client, 300).frames.remove(0).1;
    let ip = &ethernet[14..];
    let join = |parts: &[&[u8]]| parts.concat();
    let outer = |protocol: u8, payload: Vec<u8>| {
        let mut ip = common::ipv4(1, 3, &payload);
        ip[9] = protocol;
        ip
    };
    let udp = |port: u16, payload: Vec<u8>| {
        let [high, low] = port.to_be_bytes();
        outer(17, join(&[&[200, 0, high, low, 0, 0, 0, 0], &payload]))
    };
    let mut all = Vec::new();
    // 802.11: from a station, from an access point, between two of them, with QoS, with QoS and order.
    let controls = [[0x08, 1], [0x08, 2], [0x08, 3], [0x88, 1], [0x88, 0x81]];
    for [kind, flags] in controls {
        let mut head = vec![kind, flags];
        head.resize(24 + if flags & 3 == 3 { 6 } else { 0 }, 0);
        head.resize(head.len() + if kind & 0x80 != 0 { 2 } else { 0 }, 0);
        head.resize(head.len() + if flags & 0x80 != 0 { 4 } else { 0 }, 0);
        let frame = join(&[&head, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip]);
        // Radiotap: flags, rate and channel; another word of what is present.
        let short = [0, 0, 14, 0, 0x0e, 0, 0, 0, 0, 12, 0x6c, 9, 0xc0, 0];
        let long = [&[0, 0, 26, 0, 0x2f, 0, 0, 0x80, 0, 0, 0, 0][..], &[0; 14]].concat();
        all.push((127, join(&[&short, &frame]), true));
        all.push((127, join(&[&long, &frame]), true));
        all.push((105, frame, true));
    }
    let gtp = |head: &[u8]| udp(2152, join(&[head, ip]));
    let tunnels = [
        gtp(&[0x30, 255, 1, 64, 0, 0, 0, 1]),
        gtp(&[0x32, 255, 1, 68, 0, 0, 0, 1, 0, 7, 0, 0]),
        gtp(&[0x34, 255, 1, 72, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0]),
        gtp(&[
            0x34, 255, 1, 80, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0x84, 2, 0, 0, 0, 0, 0, 0, 0,
        ]),
        udp(4789, join(&[&[8, 0, 0, 0, 0, 0, 1, 0], &ethernet])),
        udp(
            6081,
            join(&[&[1, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 0, 0, 0], &ethernet]),
        ),
        outer(47, join(&[&[0x30, 0, 8, 0, 0, 0, 0, 9, 0, 0, 0, 1], ip])),
        outer(4, ip.to_vec()),
    ];
    all.extend(tunnels.map(|packet| (101, packet, true)));
    let wrapped = [
        udp(4790, join(&[&[12, 0, 0, 3, 0, 0, 1, 0], &ethernet])),
        udp(6635, join(&[&[0, 1, 0, 64, 0, 2, 1, 64], ip])),
        udp(1701, join(&[&[0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21], ip])),
        udp(
            1701,
            join(&[&[0x4a, 2, 0, 9, 0, 1, 0, 2, 0, 0, 0, 0, 0, 1, 9, 0x21], ip]),
        ),
    ];
    all.extend(wrapped.map(|packet| (101, packet, true)));
    let links: [(u32, &[u8]); 6] = [
        (104, &[0x0f, 0, 8, 0]),
        (107, &[0x18, 0x41, 3, 0xcc]),
        (107, &[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0]),
        (166, &[0, 3, 0, 0x21]),
        (204, &[1, 0xff, 3, 0, 0x21]),
        (192, &[0, 0, 8, 0, 101, 0, 0, 0]),
    ];
    all.extend(links.map(|(link, head)| (link, join(&[head, ip]), true)));
    // QUIC: Initial with a token, 0-RTT, Handshake, Retry, and the answer to a version that is not known.
    let ids = [8, 1, 2, 3, 4, 5, 6, 7, 8, 5, 1, 2, 3, 4, 5];
    for (first, version) in [
        (0xc3, 1),
        (0xd0, 1),
        (0xe1, 1),
        (0xf0, 1),
        (0xc0, 0u32),
        (0xd3, 0x6b33_43cf),
    ] {
        let head = join(&[
            &[first],
            &version.to_be_bytes(),
            &ids,
            &[3, 9, 9, 9, 0x44, 0x96],
        ]);
        let packet = udp(443, join(&[&head, &[7; 200]]));
        all.push((101, packet, false));
    }
    all
}

#[test]
fn the_corpus_is_read_as_what_it_is() {
    for (name, bytes) in corpus::files("captures") {
        let trace = traced(&bytes).expect(&name);
        assert_eq!(trace.connections.len(), 1, "{name}");
    }
    for (at, (link, frame, has_segment)) in frames().into_iter().enumerate() {
        let trace = traced(&pcap(&[(BEGIN_NS, frame)], link, false, true)).expect("a capture");
        let found = (trace.totals.tcp_frames, trace.conversations.len());
        assert_eq!(found, if has_segment { (1, 0) } else { (0, 1) }, "{at}");
        let protocol = trace.conversations.first().map(|one| one.protocol);
        assert_eq!(protocol, (!has_segment).then_some(Some("quic")), "{at}");
    }
}

/// Something that happens to a frame on its way into a fuzzed capture.
#[derive(Debug, Clone)]
enum Change {
    Turn(prop::sample::Index, u8),
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Cut(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (index(), 0..8u8).prop_map(|(at, bit)| Change::Turn(at, 1 << bit)),
        4 => (index(), prop_oneof![Just(0), Just(255), any::<u8>()]).prop_map(|(at, to)| Change::Set(at, to)),
        1 => (index(), vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => index().prop_map(Change::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn captures_that_were_changed_are_read_or_refused(bytes in corpus::changed("captures")) {
        traced(&bytes);
    }

    /// Heads of links, tunnels and QUIC are what they should not be; each frame is one thing all the same.
    #[test]
    fn changed_heads_are_no_panic(
        which in any::<prop::sample::Index>(),
        changes in vec(change(), 1..8),
        snap in prop_oneof![Just(usize::MAX), 1..120usize],
    ) {
        let all = frames();
        let (link, mut frame, _) = all[which.index(all.len())].clone();
        for change in changes {
            // The heads are what parsers look at.
            let heads = frame.len().min(96) + 1;
            match change {
                Change::Turn(at, bit) => if let Some(byte) = frame.get_mut(at.index(heads)) { *byte ^= bit },
                Change::Set(at, to) => if let Some(byte) = frame.get_mut(at.index(heads)) { *byte = to },
                Change::Insert(at, bytes) => {
                    let at = at.index(heads).min(frame.len());
                    frame.splice(at..at, bytes);
                }
                Change::Cut(at) => frame.truncate(at.index(frame.len() + 1)),
            }
        }
        let frames = vec![(BEGIN_NS, frame.clone()), (BEGIN_NS + 1000, frame)];
        let mut capture = common::pcap_cut(&frames, snap);
        capture[20..24].copy_from_slice(&link.to_le_bytes());
        if let Some(trace) = traced(&capture) {
            let totals = &trace.totals;
            prop_assert_eq!(totals.frames, 2);
            prop_assert!(totals.tcp_frames + totals.udp <= 2, "{:?}", totals);
            page::page(&trace, "fuzz");
        }
    }
}

#[test]
fn a_record_that_claims_gigabytes_takes_none() {
    let mut capture = pcap(&[], 1, false, true);
    capture.extend([0; 8]);
    capture.extend(u32::MAX.to_le_bytes());
    capture.extend(u32::MAX.to_le_bytes());
    let trace = traced(&capture).expect("a header");
    assert!(
        trace.files[0]
            .damage
            .as_deref()
            .expect("damage")
            .contains("4 MiB")
    );
    let mut capture = pcapng(&[(1, vec![0; 60])]);
    // A block of custom data that claims 4 GiB: skipped as far as there is anything.
    capture.extend(0xbadu32.to_le_bytes());
    capture.extend(0xffff_fff0u32.to_le_bytes());
    capture.extend([0; 100]);
    let trace = traced(&capture).expect("a header");
    assert_eq!(trace.totals.frames, 1);
    assert!(trace.files[0].damage.is_some());
}

#[test]
fn a_million_syns_stay_within_the_limits() {
    let mut tracker = Tracker::new(FEW);
    tracker.begin_file("made");
    let mut talk = Talk::new(1, 1);
    talk.control(Client, common::SYN, Vec::new());
    let (_, mut bytes) = talk.frames.remove(0);
    let mut parts = linerate_trace::Parts::default();
    for number in 0..1_000_000u32 {
        bytes[26..30].copy_from_slice(&number.to_be_bytes());
        let frame = linerate_trace::capture::Frame {
            number: u64::from(number) + 1,
            time_ns: u64::from(number),
            link: LinkType::ETHERNET,
            bytes: &bytes,
            wire_bytes: bytes.len() as u32,
        };
        tracker.handle_frame(&frame, &mut parts);
    }
    let trace = tracker.finish();
    assert_eq!(trace.totals.connections, 1_000_000);
    assert_eq!(trace.totals.forgotten, 1_000_000 - FEW.connections as u64);
    assert_eq!(trace.totals.packets, 1_000_000);
}
