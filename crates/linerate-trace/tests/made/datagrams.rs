//! Conversations over UDP made by hand, and frames of 802.11: what is told has a known truth.

use crate::common;

use common::{BEGIN_NS, From, Talk, ipv4, pcap, trace, trace_bytes};
use linerate_model::sample::End;
use linerate_trace::capture::Reader;
use linerate_trace::{ConversationReport, Limits, TcpFindingKind, Trace, Tracker, both};

type Frames = Vec<(u64, Vec<u8>)>;

/// A datagram in IPv4 and Ethernet; the client is 10.0.0.1, the server 10.0.0.2.
fn datagram(is_clients: bool, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let (source, target) = if is_clients {
        ports
    } else {
        (ports.1, ports.0)
    };
    let mut udp = Vec::new();
    udp.extend(source.to_be_bytes());
    udp.extend(target.to_be_bytes());
    udp.extend((payload.len() as u16 + 8).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    let mut ip = ipv4(u8::from(!is_clients), 7, &udp);
    ip[9] = 17;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend(ip);
    frame
}

fn at_ms(ms: u64) -> u64 {
    BEGIN_NS + ms * 1_000_000
}

fn dns(id: u16, flags: u16) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend(flags.to_be_bytes());
    message.resize(40, 0);
    message
}

fn only(trace: &Trace) -> &ConversationReport {
    assert_eq!(trace.conversations.len(), 1, "{:?}", trace.conversations);
    &trace.conversations[0]
}

#[test]
fn answers_of_dns_are_timed() {
    let mut frames: Frames = Vec::new();
    for at in 0..20u16 {
        let (ms, ports) = (u64::from(at) * 1000, (30_000 + at, 53));
        frames.push((at_ms(ms), datagram(true, ports, &dns(at, 0x0100))));
        match at {
            // Asked again, and answered then.
            3 => {
                frames.push((at_ms(ms + 500), datagram(true, ports, &dns(at, 0x0100))));
                frames.push((at_ms(ms + 580), datagram(false, ports, &dns(at, 0x8180))));
            }
            7 | 8 => {}
            9 => frames.push((at_ms(ms + 80), datagram(false, ports, &dns(at, 0x8182)))),
            _ => frames.push((at_ms(ms + 80), datagram(false, ports, &dns(at, 0x8180)))),
        }
    }
    let trace = trace(&frames);
    let one = only(&trace);
    assert_eq!(
        (one.protocol, one.server.port, one.client.port),
        (Some("dns"), 53, 0)
    );
    assert_eq!((one.asked, one.asked_again), (Some(21), Some(1)));
    assert_eq!((one.unanswered, one.failed), (Some(2), Some(1)));
    let answers = one.answers.expect("answers");
    assert_eq!(
        (answers.count, answers.min_ns, answers.max_ns),
        (18, 80_000_000, 580_000_000)
    );
    let kinds: Vec<_> = trace.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds.len(), 2, "{kinds:?}");
    let unanswered = trace
        .findings
        .iter()
        .find(|finding| finding.kind == TcpFindingKind::QuestionsUnanswered)
        .expect("unanswered questions");
    assert_eq!((unanswered.count, unanswered.out_of), (2, 21));
    // The question of 7 s: behind 7 pairs and the one that was asked again.
    assert_eq!(unanswered.proofs[0].filter, "frame.number == 16");
    let late = trace
        .findings
        .iter()
        .find(|one| one.kind == TcpFindingKind::AnswersLate);
    let slowest = &late.expect("late answers").proofs[0];
    assert_eq!(slowest.filter, "frame.number in {7, 9}");
    // When it was asked, not when the conversation began.
    assert_eq!(slowest.at_ns, at_ms(3000));
    assert_eq!((trace.totals.udp, trace.totals.not_tcp), (39, 39));
}

#[test]
fn questions_beyond_those_that_can_wait_are_not_called_unanswered() {
    let mut frames: Frames = Vec::new();
    for at in 0..300u16 {
        // Two ports ask by the same numbers.
        let ports = (30_000 + at % 2, 53);
        let (asked_ms, id) = (u64::from(at) / 100, at / 2);
        frames.push((at_ms(asked_ms), datagram(true, ports, &dns(id, 0x0100))));
        frames.push((
            at_ms(asked_ms + 10),
            datagram(false, ports, &dns(id, 0x8180)),
        ));
    }
    frames.sort_by_key(|(time_ns, _)| *time_ns);
    let trace = trace(&frames);
    let one = only(&trace);
    assert_eq!((one.asked, one.asked_again), (Some(300), Some(0)));
    assert_eq!((one.unanswered, one.not_followed), (Some(0), Some(44)));
    let unanswered = TcpFindingKind::QuestionsUnanswered;
    assert!(
        trace
            .findings
            .iter()
            .all(|finding| finding.kind != unanswered)
    );
}

#[test]
fn an_answer_is_late_whatever_else_was_asked() {
    for asks_between in [false, true] {
        let mut frames = vec![(at_ms(0), datagram(true, (30_000, 53), &dns(1, 0x0100)))];
        if asks_between {
            let ports = (30_001, 53);
            frames.push((at_ms(6000), datagram(true, ports, &dns(2, 0x0100))));
            frames.push((at_ms(6020), datagram(false, ports, &dns(2, 0x8180))));
        }
        let late = datagram(false, (30_000, 53), &dns(1, 0x8180));
        frames.push((at_ms(7000), late));
        let trace = trace(&frames);
        let one = only(&trace);
        assert_eq!(one.unanswered, Some(1), "{asks_between}");
        let answered = one.answers.map_or(0, |answers| answers.count);
        assert_eq!(answered, u32::from(asks_between));
    }
}

#[test]
fn answers_of_ntp_are_told_by_their_stamps() {
    let mut frames: Frames = Vec::new();
    for at in 0..4u64 {
        let mut question = vec![0x23; 48];
        question[40..48].copy_from_slice(&(at + 99).to_be_bytes());
        let mut answer = vec![0x24, 2];
        answer.resize(48, 1);
        answer[24..32].copy_from_slice(&(at + 99).to_be_bytes());
        frames.push((at_ms(at * 64_000), datagram(true, (123, 123), &question)));
        if at != 1 {
            frames.push((
                at_ms(at * 64_000 + 12),
                datagram(false, (123, 123), &answer),
            ));
        }
    }
    let trace = trace(&frames);
    let one = only(&trace);
    assert_eq!(
        (one.protocol, one.asked, one.unanswered),
        (Some("ntp"), Some(4), Some(1))
    );
    assert_eq!(one.answers.expect("answers").max_ns, 12_000_000);
}

/// A long header of QUIC.
fn quic(first: u8, version: u32) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    packet.push(8);
    packet.resize(1200, 7);
    packet
}

#[test]
fn a_handshake_of_quic_shows() {
    let ports = (50_000, 443);
    let long = |kind: u8| quic(0xc0 | kind << 4, 1);
    let frames = vec![
        (at_ms(0), datagram(true, ports, &long(0))),
        // The second part of a long Initial, and then both again.
        (at_ms(1), datagram(true, ports, &long(0))),
        (at_ms(1000), datagram(true, ports, &long(0))),
        (at_ms(1040), datagram(false, ports, &long(0))),
        (at_ms(1041), datagram(false, ports, &long(2))),
        (at_ms(1042), datagram(true, ports, &long(2))),
        (at_ms(1080), datagram(false, ports, &[0x40; 60])),
        (at_ms(1300), datagram(false, ports, &[0x40; 900])),
    ];
    let trace = trace(&frames);
    let one = only(&trace);
    let quic = one.quic.expect("QUIC");
    assert_eq!(
        (one.protocol, quic.version, quic.initials_again),
        (Some("quic"), 1, 1)
    );
    assert_eq!(quic.answer_ns, Some(1_040_000_000));
    assert_eq!(quic.handshake_ns, Some(1_080_000_000));
    assert_eq!(
        (one.from_server.datagrams, one.from_server.gap_ns_max),
        (4, 220_000_000)
    );
    assert_eq!(
        one.from_server.gap_frame.map(|frame| frame.number()),
        Some(8)
    );
    // What only looks like it is none.
    let frames = vec![(at_ms(0), datagram(true, (5000, 6000), &[0x40; 60]))];
    assert_eq!(only(&common::trace(&frames)).protocol, None);
}

#[test]
fn rates_of_conversations_are_told() {
    let frames: Frames = (0..101)
        .map(|at| (at_ms(at * 10), datagram(true, (7000, 7001), &[0; 1000])))
        .collect();
    let trace = trace(&frames);
    let rate = only(&trace).from_client.bits_per_second.expect("a rate");
    assert!((rate - 101.0 * 8000.0).abs() < 1.0, "{rate}");
    let look = linerate_trace::text::Look {
        columns: 100,
        color: false,
        connections: 5,
    };
    let text = linerate_trace::text::text(&trace, look);
    let heading = text.lines().nth(1).expect("a heading");
    assert!(heading.contains(" of UDP"), "{text}");
    assert!(!heading.contains("payload"), "{text}");
    assert!(text.contains("10.0.0.1:7000 → 10.0.0.2:7001"), "{text}");
    assert!(text.contains("808 kbit/s"), "{text}");
}

/// A frame of 802.11 around an IP packet: its first two bytes are given.
fn wireless(control: [u8; 2], ip: &[u8]) -> Vec<u8> {
    let mut frame = control.to_vec();
    frame.resize(24, 0);
    if control[1] & 3 == 3 {
        frame.extend([0; 6]);
    }
    if control[0] & 0x80 != 0 {
        frame.extend([0; 2]);
    }
    frame.extend([0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    frame.extend(ip);
    frame
}

#[test]
fn frames_of_wireless_links_are_decoded_or_named() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7)).data(From::Client, 500);
    let ip: Vec<Vec<u8>> = talk
        .frames
        .iter()
        .map(|(_, frame)| frame[14..].to_vec())
        .collect();
    // To and from the access point, between two, with QoS, and plain.
    let controls = [[0x08, 0x01], [0x08, 0x02], [0x08, 0x03], [0x88, 0x01]];
    let mut frames: Frames = ip
        .iter()
        .zip(controls)
        .enumerate()
        .map(|(at, (ip, control))| (at_ms(at as u64), wireless(control, ip)))
        .collect();
    // A beacon, an acknowledgement, data that is none, and encrypted data.
    for control in [[0x80, 0], [0xd4, 0], [0x48, 1], [0x08, 0x41]] {
        frames.push((at_ms(10), wireless(control, &ip[0])));
    }
    let with_radiotap = |(ns, frame): &(u64, Vec<u8>)| {
        let mut head = vec![0, 0, 18, 0];
        head.resize(18, 0);
        (*ns, [head, frame.clone()].concat())
    };
    let tapped: Frames = frames.iter().map(with_radiotap).collect();
    for (link, frames) in [(105, frames), (127, tapped)] {
        let trace = trace_bytes(&pcap(&frames, link, false, true));
        assert_eq!(
            (trace.totals.tcp_frames, trace.totals.connections),
            (4, 1),
            "{link}"
        );
        assert_eq!(
            (trace.totals.wireless, trace.totals.encrypted),
            (3, 1),
            "{link}"
        );
        assert_eq!(trace.connections[0].from_client.payload_bytes, 500);
        let told = |warning: &String| warning.contains("encrypted");
        assert!(trace.warnings.iter().any(told), "{:?}", trace.warnings);
    }
}

/// A conversation of 200 datagrams each way every 20 ms, the client's first, and the same where it arrives: 15 ms later each way,
/// by a clock that is an hour ahead, without what `loses` names.
fn two_views(loses: impl Fn(bool, u32) -> bool) -> [Frames; 2] {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for at in 0..200u32 {
        for is_clients in [true, false] {
            // Half of them carry the same as those before.
            let mut payload = vec![9; 160];
            let number = if at < 100 { at / 2 } else { at };
            payload[..4].copy_from_slice(&number.to_be_bytes());
            let frame = datagram(is_clients, (5004, 6004), &payload);
            let sent_ns = at_ms(100 + u64::from(at) * 20 + u64::from(!is_clients) * 23);
            // A queue of 8 ms towards the server for some of them.
            let queue_ns = if is_clients && at % 50 < 10 {
                8_000_000
            } else {
                0
            };
            let seen_ns = sent_ns + 15_000_000 + queue_ns;
            let hour_ns = 3_600_000_000_000;
            let (sent, arrived, ahead_ns) = if is_clients {
                (&mut near, &mut far, [0, hour_ns])
            } else {
                (&mut far, &mut near, [hour_ns, 0])
            };
            sent.push((sent_ns + ahead_ns[0], frame.clone()));
            if !loses(is_clients, at) {
                arrived.push((seen_ns + ahead_ns[1], frame));
            }
        }
    }
    near.sort_by_key(|(time_ns, _)| *time_ns);
    far.sort_by_key(|(time_ns, _)| *time_ns);
    [near, far]
}

/// Returns frames as they are behind a box that gives the client another address and port.
fn behind_nat(frames: &Frames) -> Frames {
    let client = frames[0].1[26..30].to_vec();
    let mut frames = frames.clone();
    for (_, frame) in &mut frames {
        let (address, port) = if frame[26..30] == client {
            (26, 34)
        } else {
            (30, 36)
        };
        frame[address..address + 4].copy_from_slice(&[192, 0, 2, 7]);
        frame[port..port + 2].copy_from_slice(&61_000u16.to_be_bytes());
    }
    frames
}

#[test]
fn datagrams_that_were_lost_between_two_captures_are_told() {
    let loses = |is_clients, at| is_clients && at % 20 == 3 || !is_clients && at == 77;
    let views = two_views(loses);
    let seen = |frames: &Frames, name: &str| {
        let bytes = pcap(frames, 1, false, true);
        let mut reader = Reader::new(&bytes[..]).expect("a capture");
        both::Seen::read(Tracker::new(Limits::default()), &mut reader, name).expect("of Ethernet")
    };
    // As it is, and with a box between that rewrites the client's address and port.
    for (turned, is_behind_nat) in [(false, false), (true, false), (false, true), (true, true)] {
        let [near, far] = &views;
        let near = seen(near, "near");
        let far = if is_behind_nat {
            seen(&behind_nat(far), "far")
        } else {
            seen(far, "far")
        };
        let both = if turned {
            both::join(far, near)
        } else {
            both::join(near, far)
        };
        let both = both.expect("the same traffic");
        let bound = both.clock.uncertainty_ns.expect("both ways");
        assert!(bound <= 15_100_000, "{:?}", both.clock);
        let hour_ns = if turned {
            -3_600_000_000_000i64
        } else {
            3_600_000_000_000
        };
        assert!(
            both.clock.offset_ns.abs_diff(hour_ns) <= bound,
            "{:?}",
            both.clock
        );
        assert_eq!((both.connections.len(), both.conversations.len()), (0, 1));
        let one = &both.conversations[0];
        assert_eq!(one.nearer_to_client, usize::from(turned));
        let rewritten: Vec<_> = one
            .rewritten
            .iter()
            .map(|one| (one.end, one.what, &*one.arrived))
            .collect();
        let expected = [
            (End::Client, "address", "192.0.2.7"),
            (End::Client, "port", "61000"),
        ];
        assert_eq!(rewritten, &expected[..if is_behind_nat { 2 } else { 0 }]);
        let [there, back] = [&one.from_client, &one.from_server];
        assert_eq!(
            (there.sent, there.arrived, there.lost),
            (200, 190, 10),
            "{there:?}"
        );
        assert_eq!(
            (back.sent, back.arrived, back.lost),
            (200, 199, 1),
            "{back:?}"
        );
        assert_eq!(back.examples[0].payload_bytes, 160);
        let delay = there.delay.expect("delays");
        assert_eq!(delay.above_min_max_ns, 8_000_000);
        assert_eq!(delay.above_min_median_ns, 0);
        assert_eq!(back.delay.expect("delays").above_min_max_ns, 0);
        let look = linerate_trace::text::Look {
            columns: 100,
            color: false,
            connections: 3,
        };
        let text = both::text(&both, look);
        assert!(
            text.contains("200 datagrams, 10 lost between the captures"),
            "{text}"
        );
        let page = both::page(&both, "two");
        assert!(
            page.findings
                .iter()
                .any(|one| one.claim.contains("10 of 200 datagrams"))
        );
    }
}

#[test]
fn datagrams_on_the_way_when_the_other_capture_ended_are_not_told_lost() {
    let [near, mut far] = two_views(|_, _| false);
    let stop_ns = at_ms(100 + 150 * 20 + 3) + 3_600_000_000_000;
    far.retain(|(time_ns, _)| *time_ns < stop_ns);
    let seen = |frames: &Frames, name: &str| {
        let bytes = pcap(frames, 1, false, true);
        let mut reader = Reader::new(&bytes[..]).expect("a capture");
        both::Seen::read(Tracker::new(Limits::default()), &mut reader, name).expect("of Ethernet")
    };
    let both = both::join(seen(&near, "near"), seen(&far, "far")).expect("the same traffic");
    let one = &both.conversations[0];
    assert_eq!(
        (one.from_client.lost, one.from_server.lost),
        (0, 0),
        "{one:?}"
    );
}

#[test]
fn where_nothing_of_a_server_was_captured_its_answers_may_go_another_way() {
    // Whether it answered the first question, and whether only one direction was captured so.
    for (first, is_one_sided) in [(false, true), (true, false)] {
        let mut frames: Frames = Vec::new();
        for at in 0..6u16 {
            let (ms, ports) = (u64::from(at) * 1000, (30_000 + at, 53));
            frames.push((at_ms(ms), datagram(true, ports, &dns(at, 0x0100))));
            if at == 0 && first {
                frames.push((at_ms(ms + 20), datagram(false, ports, &dns(at, 0x8180))));
            }
        }
        frames.push((
            at_ms(20_000),
            datagram(true, (40_000, 53), &dns(99, 0x0100)),
        ));
        let trace = trace(&frames);
        let has_warning = trace.warnings.iter().any(|one| one.contains("over UDP"));
        assert_eq!(has_warning, is_one_sided, "{:?}", trace.warnings);
        let unanswered = &trace.findings[0];
        assert_eq!(unanswered.kind, TcpFindingKind::QuestionsUnanswered);
        let tells = unanswered.explanation.contains("another way");
        assert_eq!(tells, is_one_sided, "{}", unanswered.explanation);
    }
    // A stream of one direction needs no answer.
    let stream = |at: u64| (at_ms(at * 20), datagram(true, (5004, 5006), &[7; 172]));
    let frames: Frames = (0..50).map(stream).collect();
    let trace = trace(&frames);
    assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
}
