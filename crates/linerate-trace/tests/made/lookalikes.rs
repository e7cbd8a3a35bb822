//! What looks like a fault and is none, or is another: mirrored ports, ways of which one direction is captured,
//! ends that send at once, probes, SYNs with data. Each capture has a known truth.

use crate::common;

use common::{ACK, BEGIN_NS, From, PSH, RST, SYN, Talk, syn_options, trace};
use linerate_model::sample::End;
use linerate_trace::{Cause, Ending, TcpFindingKind as Kind, Trace};

fn kinds(trace: &Trace) -> Vec<Kind> {
    trace.findings.iter().map(|one| one.kind).collect()
}

/// A stream of the client in bursts of ten segments, captured there, over a round trip of 20 ms.
fn bursts(mut talk: Talk) -> Talk {
    talk.control(From::Client, SYN, syn_options((1460, Some(7))));
    talk.wait_us(20_000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50).ack(From::Client);
    for _ in 0..20 {
        for _ in 0..10 {
            talk.data(From::Client, 1460).wait_us(20);
        }
        talk.wait_us(19_800);
        for missing in [5, 4, 3, 2, 1, 0] {
            talk.ack_but(From::Server, missing * 1460).wait_us(20);
        }
    }
    talk
}

/// Each frame once more, `us` later: a port that is mirrored where frames come in and where they leave.
fn mirrored(talk: &Talk, us: u64) -> Vec<(u64, Vec<u8>)> {
    let again = talk
        .frames
        .iter()
        .map(|(at, frame)| (at + us * 1000, frame.clone()));
    let mut frames: Vec<_> = talk.frames.iter().cloned().chain(again).collect();
    frames.sort_by_key(|(at, _)| *at);
    frames
}

#[test]
fn a_mirrored_port_loses_nothing() {
    let plain = bursts(Talk::new(100, 900));
    let once = trace(&plain.frames);
    for us in [4, 50, 300] {
        let twice = trace(&mirrored(&plain, us));
        assert_eq!(
            kinds(&twice),
            kinds(&once),
            "{us} µs: {:#?}",
            twice.findings
        );
        let [counts, counts_once] =
            [&twice, &once].map(|trace| trace.connections[0].from_client.counts.expect("details"));
        assert_eq!(counts.retransmissions, 0, "{us} µs");
        assert_eq!(
            counts.control_retransmissions,
            counts_once.control_retransmissions
        );
        assert_eq!(twice.connections[0].from_client.data_packets, 200);
    }
    // IPv6 numbers no packets: that a copy comes before a round trip has passed tells.
    let six = bursts(Talk::new(100, 900).v6());
    let twice = trace(&mirrored(&six, 300));
    let counts = twice.connections[0].from_client.counts.expect("details");
    assert_eq!(counts.retransmissions, 0, "{:#?}", twice.findings);
    assert_eq!(twice.findings.len(), trace(&six.frames).findings.len());
}

/// A file of two devices, a bridge and its port: the second of two frames may have the earlier time.
#[test]
fn a_copy_with_an_earlier_time_is_a_copy() {
    let plain = bursts(Talk::new(100, 900).v6());
    let mut frames = Vec::new();
    for (at, frame) in &plain.frames {
        frames.push((*at, frame.clone()));
        if frame.len() > 1000 {
            frames.push((at - 4000, frame.clone()));
        }
    }
    let twice = trace(&frames);
    assert_eq!(twice.totals.retransmissions, 0, "{:#?}", twice.findings);
    assert_eq!(twice.totals.duplicate_frames, 200);
    assert_eq!(kinds(&twice), kinds(&trace(&plain.frames)));
}

#[test]
fn a_loop_shows_a_frame_again_and_again() {
    let mut talk = Talk::new(100, 900);
    talk.shake_hands(1460, Some(7));
    for _ in 0..20 {
        talk.data(From::Client, 100).wait_us(20_000);
        talk.data(From::Server, 300).wait_us(20_000);
    }
    let copies = [0, 1, 3, 5].into_iter().flat_map(|ms| {
        let frames = talk.frames.iter();
        frames.map(move |(at, frame)| (at + ms * 1_000_000, frame.clone()))
    });
    let mut frames: Vec<_> = copies.collect();
    frames.sort_by_key(|(at, _)| *at);
    let counts = trace(&frames).connections[0]
        .from_client
        .counts
        .expect("details");
    assert_eq!(counts.retransmissions, 0);
}

#[test]
fn what_is_sent_again_at_once_on_a_short_way_was_not_captured_twice() {
    let mut talk = Talk::new(100, 900).v6();
    talk.shake_hands(1440, Some(7));
    for _ in 0..5 {
        talk.data(From::Client, 1440);
    }
    // The first is missing, and 400 µs later, two round trips, it comes again.
    for have in 1..5 {
        talk.wait_us(50).sack(From::Server, 5 * 1440, have * 1440);
    }
    talk.wait_us(200).again(From::Client, 5 * 1440, 1440);
    talk.wait_us(100).ack(From::Server);
    let trace = trace(&talk.frames);
    let counts = trace.connections[0].from_client.counts.expect("details");
    assert_eq!(counts.retransmissions, 1);
}

#[test]
fn of_one_direction_no_answer_is_not_known_to_be_missing() {
    let mut talk = bursts(Talk::new(100, 900));
    talk.data(From::Client, 1460)
        .wait_us(20_100)
        .again(From::Client, 1460, 1460);
    let is_clients = |frame: &[u8]| frame[26..30] == [10, 0, 0, 1];
    talk.frames.retain(|(_, frame)| is_clients(frame));
    let trace = trace(&talk.frames);
    assert_eq!(trace.connections[0].ending, Ending::Open);
    // Who asked for what came again does not show, so it is no timer.
    assert_eq!(kinds(&trace), [Kind::Loss], "{:#?}", trace.findings);
    // Nor does how far it is: what comes again after half a second may have been asked for at once.
    let mut talk = Talk::new(100, 900);
    for _ in 0..4 {
        talk.data(From::Client, 1460).data(From::Client, 1460);
        talk.wait_us(500_000).again(From::Client, 2920, 1460);
    }
    let told = kinds(&common::trace(&talk.frames));
    assert_eq!(told, [Kind::Loss]);
}

#[test]
fn ends_that_both_stream_wait_for_no_answers() {
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))));
    talk.wait_us(20_000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50).ack(From::Client);
    for _ in 0..50 {
        let [mut client, mut server] =
            [From::Client, From::Server].map(|end| talk.packet(end, 1460));
        for _ in 0..10 {
            talk.send(client.clone())
                .wait_us(10)
                .send(server.clone())
                .wait_us(10);
            client.sequence += 1460;
            server.sequence += 1460;
        }
        talk.skip(From::Client, 14_600).skip(From::Server, 14_600);
        talk.wait_us(19_800)
            .ack(From::Server)
            .ack(From::Client)
            .wait_us(300);
    }
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [], "{:#?}", trace.findings);
}

#[test]
fn an_end_that_only_shook_hands_can_fall_silent() {
    let mut talk = Talk::new(100, 900);
    talk.shake_hands(1460, Some(7)).data(From::Client, 100);
    for ms in [220, 440, 880, 1760, 3500] {
        talk.wait_us(ms * 1000).again(From::Client, 100, 100);
    }
    talk.wait_us(7_000_000);
    let mut reset = talk.packet(From::Client, 0);
    reset.flags = RST | ACK;
    talk.send(reset);
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [Kind::PeerSilent], "{:#?}", trace.findings);
    let frames: Vec<u64> = trace.findings[0].proofs[0]
        .frames
        .iter()
        .map(|one| one.number())
        .collect();
    assert_eq!(frames, [5, 10]);
}

/// A receiver that is heard of, because it retransmits what its peer has, while nothing arrives there.
#[test]
fn a_way_that_is_cut_is_no_black_hole() {
    let mut talk = Talk::new(100, 900);
    talk.shake_hands(1460, Some(7));
    talk.data(From::Client, 100)
        .wait_us(200)
        .data(From::Server, 100);
    talk.wait_us(100_000).data(From::Client, 1460);
    talk.wait_us(50);
    let mut heard = talk.packet(From::Server, 100);
    heard.acknowledgement -= 1460;
    talk.skip(From::Server, 100)
        .send(heard.clone())
        .ack(From::Client);
    for ms in [220, 440, 880, 1760] {
        talk.wait_us(ms * 1000).again(From::Client, 1460, 1460);
        talk.wait_us(20_000);
        heard.identification = 0;
        talk.send(heard.clone()).wait_us(50).ack(From::Client);
    }
    let told = kinds(&trace(&talk.frames));
    assert!(!told.contains(&Kind::PathMtu), "{told:?}");
    assert!(told.contains(&Kind::RetransmissionTimeout), "{told:?}");
}

#[test]
fn a_probe_with_a_byte_is_neither_data_nor_sent_again() {
    let mut talk = Talk::new(100, 900);
    talk.shake_hands(1460, Some(0)).window(From::Server, 14_600);
    for _ in 0..10 {
        talk.data(From::Client, 1460);
    }
    talk.wait_us(200).window(From::Server, 0).ack(From::Server);
    let probe = talk.packet(From::Client, 1);
    for ms in [200, 400, 800] {
        talk.wait_us(ms * 1000)
            .send(probe.clone())
            .wait_us(200)
            .ack(From::Server);
    }
    talk.wait_us(1_600_000)
        .window(From::Server, 14_600)
        .ack(From::Server);
    for _ in 0..5 {
        talk.data(From::Client, 1460);
    }
    talk.wait_us(200).ack(From::Server);
    let told = trace(&talk.frames);
    assert_eq!(kinds(&told), [Kind::ZeroWindow], "{:#?}", told.findings);
    let counts = told.connections[0].from_client.counts.expect("details");
    assert_eq!((counts.zero_window_probes, counts.retransmissions), (3, 0));

    // A keepalive of one byte between an answer and the next request.
    let mut talk = Talk::new(100, 900);
    talk.shake_hands(1460, Some(7));
    talk.data(From::Client, 100)
        .wait_us(200)
        .data(From::Server, 100);
    talk.wait_us(10).ack(From::Client);
    talk.wait_us(10_000_000)
        .again(From::Client, 1, 1)
        .wait_us(200)
        .ack(From::Server);
    talk.wait_us(10_000_000)
        .data(From::Client, 100)
        .wait_us(200)
        .data(From::Server, 100);
    let told = trace(&talk.frames);
    assert_eq!(kinds(&told), [Kind::ClientPause], "{:#?}", told.findings);
}

#[test]
fn what_a_syn_carried_in_vain_was_not_lost() {
    let mut talk = Talk::new(100, 900);
    let mut syn = talk.packet(From::Client, 50);
    (syn.flags, syn.acknowledgement) = (SYN, 0);
    syn.options = syn_options((1460, Some(7)));
    talk.send(syn).skip(From::Client, 1).wait_us(20_000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50)
        .data(From::Client, 50)
        .wait_us(20_000)
        .data(From::Server, 1000);
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [], "{:#?}", trace.findings);
    let client = &trace.connections[0].from_client;
    assert_eq!(client.counts.expect("details").retransmissions, 0);
    // Nor does its acknowledgement measure the way from the SYN.
    assert!(
        client
            .round_trip
            .is_none_or(|trips| trips.max_ns < 30_000_000)
    );
}

#[test]
fn a_syn_is_not_sent_again_for_another_reason_than_its_timer() {
    // Both ends connect: each answers the other's SYN with its own number.
    let mut talk = Talk::new(100, 900);
    let answer = |talk: &mut Talk, from| {
        let mut packet = talk.packet(from, 0);
        packet.sequence -= 1;
        packet.flags = SYN | ACK;
        packet.options = syn_options((1460, Some(7)));
        talk.send(packet);
    };
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(5000);
    talk.control(From::Server, SYN, syn_options((1460, Some(7))))
        .wait_us(50);
    answer(&mut talk, From::Client);
    talk.wait_us(15_000);
    answer(&mut talk, From::Server);
    talk.wait_us(500)
        .data(From::Client, 100)
        .wait_us(20_000)
        .data(From::Server, 100);
    let told = trace(&talk.frames);
    assert_eq!(kinds(&told), [], "{:#?}", told.findings);

    // The server still has the connection before: its acknowledgement is reset, and the next SYN passes.
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(20_000);
    let mut challenge = talk.packet(From::Server, 0);
    challenge.acknowledgement = 77;
    let mut reset = talk.packet(From::Client, 0);
    (reset.flags, reset.sequence) = (RST, 77);
    talk.send(challenge)
        .wait_us(50)
        .send(reset)
        .wait_us(980_000);
    let mut again = talk.packet(From::Client, 0);
    (again.flags, again.sequence, again.acknowledgement) = (SYN, 100, 0);
    talk.send(again).wait_us(20_000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50).ack(From::Client);
    talk.data(From::Client, 100)
        .wait_us(20_000)
        .data(From::Server, 100);
    let told = trace(&talk.frames);
    assert!(
        !kinds(&told).contains(&Kind::SynAgain),
        "{:#?}",
        told.findings
    );
    assert!(talk.now_ns > BEGIN_NS);
}

/// An end that still has the connection before acknowledges that, which its peer resets, and then takes the next SYN.
#[test]
fn numbers_of_the_connection_before_are_forgotten() {
    for far in [1_000_000, 3_000_000_000u32] {
        let mut talk = Talk::new(100, 900);
        talk.control(From::Client, SYN, syn_options((1460, Some(7))))
            .wait_us(200);
        let mut challenge = talk.packet(From::Server, 0);
        challenge.sequence += far;
        challenge.acknowledgement += far;
        let mut reset = talk.packet(From::Client, 0);
        (reset.flags, reset.sequence) = (RST, challenge.acknowledgement);
        talk.send(challenge).wait_us(50).send(reset);
        let mut again = talk.wait_us(1_000_000).packet(From::Client, 0);
        (again.flags, again.sequence, again.acknowledgement) = (SYN, 100, 0);
        again.options = syn_options((1460, Some(7)));
        talk.send(again).wait_us(200);
        talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
        talk.wait_us(50).ack(From::Client);
        for _ in 0..20 {
            talk.data(From::Client, 1460).wait_us(200).ack(From::Server);
            talk.data(From::Server, 1460).wait_us(50).ack(From::Client);
        }
        let trace = trace(&talk.frames);
        assert_eq!(trace.totals.connections, 1);
        // The SYN alone.
        let totals = &trace.totals;
        assert_eq!(
            (totals.retransmissions, totals.control_retransmissions),
            (0, 1)
        );
        assert_eq!(kinds(&trace), [Kind::HalfOpen], "{:#?}", trace.findings);
        let trips = trace.connections[0].from_client.round_trip;
        assert_eq!(trips.expect("round trips").count, 20);
    }
}

/// Cuts a packet of IPv4 in two at 800 bytes behind its header.
fn in_pieces(frame: &[u8]) -> [Vec<u8>; 2] {
    const HEADERS: usize = 14 + 20;
    const CUT: usize = 800;
    let (mut first, mut last) = (frame[..HEADERS + CUT].to_vec(), frame[..HEADERS].to_vec());
    last.extend(&frame[HEADERS + CUT..]);
    for (piece, flags_and_offset) in [(&mut first, 0x2000), (&mut last, (CUT / 8) as u16)] {
        let length = (piece.len() - 14) as u16;
        piece[16..18].copy_from_slice(&length.to_be_bytes());
        piece[20..22].copy_from_slice(&flags_and_offset.to_be_bytes());
    }
    [first, last]
}

#[test]
fn packets_in_pieces_are_neither_short_nor_full_of_holes() {
    let talk = bursts(Talk::new(100, 900));
    let mut frames = Vec::new();
    for (at, frame) in &talk.frames {
        match frame.len() {
            1000.. => frames.extend(in_pieces(frame).map(|piece| (*at, piece))),
            _ => frames.push((*at, frame.clone())),
        }
    }
    let [whole, cut] = [&talk.frames, &frames].map(|frames| trace(frames));
    assert_eq!(kinds(&cut), kinds(&whole), "{:#?}", cut.findings);
    assert_eq!(cut.totals.holes_of_capture, 0);
    assert_eq!(cut.totals.fragments, 400);
    let [life_cut, life] =
        [&cut, &whole].map(|trace| trace.connections[0].time.expect("both ends"));
    assert!(
        (life_cut.congestion - life.congestion).abs() < 0.01,
        "{life_cut:?} {life:?}"
    );
}

#[test]
fn what_comes_again_in_pieces_for_a_router_was_not_lost() {
    let mut talk = bursts(Talk::new(100, 900));
    for _ in 0..4 {
        talk.data(From::Client, 1460);
    }
    // The router quotes the IP header and the ports and number behind it.
    let quoted = talk.frames.last().expect("a frame").1[14..42].to_vec();
    let mut message = vec![3, 4, 0, 0, 0, 0, 0x05, 0x78];
    message.extend(quoted);
    let mut packet = common::ipv4(1, 7, &message);
    packet[9] = 1;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend(packet);
    talk.wait_us(10_000);
    talk.frames.push((talk.now_ns, frame));
    talk.wait_us(50);
    for back in [5840, 4480, 3120, 1760] {
        talk.again(From::Client, back, 1360);
    }
    talk.again(From::Client, 400, 400)
        .wait_us(20_000)
        .ack(From::Server);
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [Kind::PathMtu], "{:#?}", trace.findings);
    let counts = trace.connections[0].from_client.counts.expect("details");
    assert_eq!((counts.retransmissions, counts.resized), (5, 5));
}

/// One SYN each to `ports` ports, which a reset answers or nothing.
fn scanned(ports: u16, is_refused: bool) -> Trace {
    let mut frames = Vec::new();
    for port in 0..ports {
        let mut talk = Talk::new(100, 900)
            .client_port(50_000)
            .begin_at(port.into());
        talk.control(From::Client, SYN, syn_options((1460, None)))
            .wait_us(500);
        if is_refused {
            talk.control(From::Server, RST | ACK, Vec::new());
        }
        for (at, mut frame) in talk.frames {
            // The server's port is where frames of the client go to, and where the others come from.
            let place = if frame[29] == 1 { 36 } else { 34 };
            frame[place..place + 2].copy_from_slice(&(1000 + port).to_be_bytes());
            frames.push((at, frame));
        }
    }
    // Long enough for a SYN to stay without an answer.
    frames.extend(bursts(Talk::new(100, 900).begin_at(60_000)).frames);
    trace(&frames)
}

#[test]
fn a_scan_is_one_finding() {
    for (is_refused, kind) in [(true, Kind::Refused), (false, Kind::Unanswered)] {
        let few = scanned(8, is_refused);
        assert_eq!(kinds(&few), [kind; 8]);
        let scan = scanned(5000, is_refused);
        assert_eq!(kinds(&scan), [kind], "{:#?}", scan.findings.len());
        let finding = &scan.findings[0];
        assert_eq!((finding.connections, finding.services), (5000, 4096));
        assert!(finding.claim.contains("10.0.0.1"), "{}", finding.claim);
        assert!(
            finding.claim.contains("4096 ports and more of 10.0.0.2"),
            "{}",
            finding.claim
        );
        assert!(
            finding.claim.ends_with("in 5000 connections"),
            "{}",
            finding.claim
        );
        let look = linerate_trace::text::Look {
            columns: 80,
            color: false,
            connections: 10,
        };
        let text = linerate_trace::text::text(&scan, look);
        assert!(text.lines().count() < 80, "{text}");
        // Its filter is for the first of them.
        assert!(text.contains("… and 4998 more\n"), "{text}");
    }
}

/// A stream of 1.5 MB behind a shaper: a full segment each 10 ms, acknowledged at once; the program's writes of
/// `writes` segments end with PSH.
fn shaped(writes: u32) -> Trace {
    let mut talk = Talk::new(100, 900);
    talk.shake_hands(1460, Some(7));
    for at in 1..=1024 {
        let mut packet = talk.packet(From::Client, 1460);
        packet.flags = if at % writes == 0 { ACK | PSH } else { ACK };
        talk.send(packet).skip(From::Client, 1460);
        talk.wait_us(150).ack(From::Server).wait_us(9850);
    }
    trace(&talk.frames)
}

#[test]
fn what_is_queued_is_not_its_programs_time() {
    let told = shaped(64);
    assert_eq!(kinds(&told), [], "{:#?}", told.findings);
    let life = told.connections[0].time.expect("both ends");
    assert!(life.congestion > 0.9 && life.client < 0.1, "{life:?}");
    let pacing = told.connections[0]
        .gaps
        .iter()
        .find(|gap| gap.cause == Cause::Pacing);
    // All but those behind a write, and those before the first PSH.
    assert_eq!(pacing.map(|gap| gap.count), Some(1023 - 64 - 14));

    // With each segment a write of its own, it is the program that sends so slowly; and one that sets PSH nowhere
    // says nothing.
    for writes in [1, 5000] {
        let told = shaped(writes);
        assert_eq!(
            kinds(&told),
            [Kind::IdleSender],
            "{writes}: {:#?}",
            told.findings
        );
    }
}

#[test]
fn where_a_capture_was_taken_shows_only_if_the_way_is_longer_than_its_hosts_take() {
    for (way_us, at) in [(70, None), (700, Some(End::Client))] {
        let mut talk = Talk::new(100, 900);
        talk.control(From::Client, SYN, syn_options((1460, Some(7))))
            .wait_us(way_us);
        talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))))
            .wait_us(4);
        talk.ack(From::Client)
            .data(From::Client, 100)
            .wait_us(way_us)
            .ack(From::Server);
        assert_eq!(trace(&talk.frames).connections[0].captured_at, at);
    }
}

#[test]
fn a_second_host_that_answers_a_syn_moves_nothing() {
    let mut talk = Talk::new(100, 900);
    talk.shake_hands(1460, Some(7));
    let mut other = talk.packet(From::Server, 0);
    (other.flags, other.sequence) = (SYN | ACK, 777_777);
    talk.wait_us(10_000)
        .send(other)
        .wait_us(50)
        .ack(From::Client);
    talk.data(From::Client, 100)
        .wait_us(200)
        .data(From::Server, 100);
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [], "{:#?}", trace.findings);
    let connection = &trace.connections[0];
    let server = &connection.from_server;
    assert_eq!(server.counts.expect("details").retransmissions, 0);
    // Nor does what it offers, or leaves out, count.
    assert_eq!(server.window_bytes_max, Some(1000 << 7));
    assert_eq!(connection.segment_bytes, Some(1460));
}

/// What a server's answers prove, that take `least_us` and up to `more_us` longer, over a way of `trip_us`.
fn answered(trip_us: u64, [least_us, more_us]: [u64; 2]) -> String {
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(trip_us);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50).ack(From::Client);
    for at in 0..60 {
        talk.data(From::Client, 100).wait_us(trip_us);
        // What takes longer is acknowledged before.
        let wait_us = least_us + at * 37 % 60 * more_us / 60;
        let timer_us = wait_us.min(200_000);
        talk.wait_us(timer_us);
        if wait_us > timer_us {
            talk.ack(From::Server).wait_us(wait_us - timer_us);
        }
        talk.data(From::Server, 300).wait_us(50).ack(From::Client);
    }
    let trace = trace(&talk.frames);
    let slow = trace
        .findings
        .iter()
        .find(|one| one.kind == Kind::SlowAnswer);
    slow.expect("it is slow").explanation.clone()
}

#[test]
fn a_way_that_varies_and_a_server_that_pings_may_look_like_a_slow_one() {
    let jitter = answered(20_000, [0, 40_000]);
    assert!(
        jitter.contains("or a way that takes as much longer"),
        "{jitter}"
    );
    let ping = answered(20_000, [5_000_000, 0]);
    assert!(ping.contains("speaks by itself"), "{ping}");
    let slow = answered(20_000, [400_000, 40_000]);
    assert!(
        slow.starts_with("It is the program, not the network"),
        "{slow}"
    );
    assert!(
        !slow.contains("itself") && !slow.contains("or a way"),
        "{slow}"
    );
}

/// A receiver acknowledges nine segments selectively, and when the one before them comes it acknowledges that alone.
#[test]
fn what_a_receiver_takes_back_was_not_lost() {
    let reneged = |is_taken_back: bool| {
        let mut talk = bursts(Talk::new(100, 900));
        for _ in 0..10 {
            talk.data(From::Client, 1460).wait_us(10);
        }
        talk.wait_us(19_900);
        for have in 1..10 {
            let mut packet = talk.packet(From::Server, 0);
            let begin = packet.acknowledgement - 14_600;
            packet.acknowledgement = begin;
            packet.options = common::sack_option(begin + 1460, begin + 1460 * (have + 1));
            talk.send(packet).wait_us(10);
        }
        talk.again(From::Client, 14_600, 1460).wait_us(20_000);
        if is_taken_back {
            talk.ack_but(From::Server, 13_140).wait_us(220_000);
            for back in (1..10).rev() {
                talk.again(From::Client, back * 1460, 1460).wait_us(10);
            }
            talk.wait_us(20_000);
        }
        talk.ack(From::Server);
        trace(&talk.frames)
    };
    let told = reneged(true);
    assert_eq!(
        kinds(&told),
        [Kind::SackReneging, Kind::Loss],
        "{:#?}",
        told.findings
    );
    let [renege, loss] = &told.findings[..] else {
        panic!("two findings")
    };
    assert_eq!(
        (renege.who_is, renege.value, loss.count),
        (End::Server, 13_140, 1)
    );
    assert_eq!(renege.total_ns / 1_000_000, 220);
    // The last selective acknowledgement, the one that stops before it, and what is sent again then.
    let frames: Vec<u64> = renege.proofs[0]
        .frames
        .iter()
        .map(|one| one.number())
        .collect();
    assert_eq!(frames, [342, 344, 345]);
    let kept = reneged(false);
    assert_eq!(kinds(&kept), [Kind::Loss], "{:#?}", kept.findings);
}

/// Short messages, one way, each acknowledged after one of `late_ms`.
fn acknowledged_late(late_ms: &[u64]) -> Trace {
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(5000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50).ack(From::Client);
    for late_ms in late_ms {
        talk.data(From::Client, 100)
            .wait_us(5000 + late_ms * 1000)
            .ack(From::Server)
            .wait_us(1_000_000);
    }
    trace(&talk.frames)
}

/// A station that sleeps between beacons has what comes for it later, by anything up to 102 ms.
#[test]
fn a_station_that_sleeps_has_no_timer() {
    let asleep = acknowledged_late(&[70, 44, 98, 31, 0, 85, 57, 12, 100, 63, 28, 91]);
    assert_eq!(kinds(&asleep), [], "{:#?}", asleep.findings);
    let server = &asleep.connections[0].from_server;
    assert_eq!(server.counts.expect("details").delayed_acks, 0);
    let causes = || asleep.connections[0].gaps.iter().map(|gaps| gaps.cause);
    assert!(causes().any(|cause| cause == Cause::RoundTrip));
    assert!(!causes().any(|cause| cause == Cause::DelayedAck));
    for timer in [
        &[40, 42, 39, 0, 40, 43, 40, 38][..],
        &[200, 195, 206, 200, 199],
    ] {
        let told = acknowledged_late(timer);
        assert_eq!(kinds(&told), [Kind::DelayedAck], "{timer:?}");
    }
}

/// The receiver takes ten segments, says that it has room for 100 bytes, and 2 s later for ten again.
#[test]
fn a_window_of_a_sliver_is_no_programs_time() {
    let mut talk = Talk::new(100, 900);
    let mut answer = talk.packet(From::Server, 0);
    talk.control(From::Client, SYN, syn_options((1460, Some(0))))
        .wait_us(20_000);
    (answer.flags, answer.window) = (SYN | ACK, 14_600);
    (answer.options, answer.acknowledgement) = (syn_options((1460, Some(0))), 101);
    talk.send(answer)
        .skip(From::Server, 1)
        .wait_us(50)
        .ack(From::Client);
    for _ in 0..10 {
        talk.data(From::Client, 1460);
    }
    talk.wait_us(20_000)
        .window(From::Server, 100)
        .ack(From::Server);
    talk.wait_us(2_000_000)
        .window(From::Server, 14_600)
        .ack(From::Server);
    for _ in 0..5 {
        talk.data(From::Client, 1460);
    }
    talk.wait_us(20_000).ack(From::Server);
    let trace = trace(&talk.frames);
    let life = trace.connections[0].time.expect("both ends");
    assert!(life.window > 0.95 && life.client < 0.01, "{life:?}");
}

/// Pure acknowledgements of hosts that number no packets, and a mirrored port.
#[test]
fn acknowledgements_without_a_number_are_copies_too() {
    for us in [4, 50, 300] {
        let mut talk = bursts(Talk::new(100, 900));
        for (_, frame) in &mut talk.frames {
            frame[18..20].fill(0);
        }
        let twice = trace(&mirrored(&talk, us));
        let counts = twice.connections[0].from_server.counts.expect("details");
        assert_eq!(counts.duplicate_acks, 0, "{us} µs");
        assert_eq!(twice.connections[0].from_server.pure_acks, 120, "{us} µs");
    }
    // Four segments that come behind a missing one are told of one by one, at once.
    let asks = |is_told: bool| {
        let mut talk = Talk::new(100, 900).v6();
        let options = |is_syn: bool| match (is_syn, is_told) {
            (true, true) => syn_options((1440, Some(7))),
            (true, false) => vec![2, 4, 5, 160],
            _ => Vec::new(),
        };
        talk.control(From::Client, SYN, options(true))
            .wait_us(20_000);
        talk.control(From::Server, SYN | ACK, options(true));
        talk.wait_us(50).ack(From::Client);
        for _ in 0..5 {
            talk.data(From::Client, 1440);
        }
        talk.wait_us(20_000).ack_but(From::Server, 5 * 1440);
        for have in 1..4 {
            talk.wait_us(10);
            if is_told {
                talk.sack(From::Server, 5 * 1440, have * 1440)
            } else {
                talk.ack_but(From::Server, 5 * 1440)
            };
        }
        talk.wait_us(10).again(From::Client, 5 * 1440, 1440);
        talk.wait_us(20_000).ack(From::Server);
        trace(&talk.frames).connections[0]
            .from_server
            .counts
            .expect("details")
            .duplicate_acks
    };
    assert_eq!(asks(true), 4);
    assert_eq!(asks(false), 4);
}

/// A filter that shows nothing helps nobody: what a single SYN that nobody answers shows is a SYN.
#[test]
fn a_single_syn_has_a_filter_that_shows_it() {
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))));
    talk.wait_us(2_000_000);
    let mut other = Talk::new(5, 6).client_port(41_000);
    other.now_ns = talk.now_ns;
    other.shake_hands(1460, Some(7));
    talk.frames.extend(other.frames);
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [Kind::Unanswered], "{:#?}", trace.findings);
    let look = linerate_trace::text::Look {
        connections: 5,
        columns: 80,
        color: false,
    };
    let text = linerate_trace::text::text(&trace, look);
    assert!(
        text.contains("tcp.flags.syn == 1 && tcp.flags.ack == 0"),
        "{text}"
    );
}

/// A capture of both ends in one file: what the client sends is there again when it arrives, 10 ms later, and what
/// the server sends left 10 ms before it came.
fn of_both_ends(talk: &Talk) -> Vec<(u64, Vec<u8>)> {
    const WAY_NS: u64 = 10_000_000;
    let again = talk.frames.iter().map(|(at, frame)| {
        let is_clients = frame[29] == 1;
        let there = if is_clients { at + WAY_NS } else { at - WAY_NS };
        (there, frame.clone())
    });
    let mut frames: Vec<_> = talk.frames.iter().cloned().chain(again).collect();
    frames.sort_by_key(|(at, _)| *at);
    frames
}

#[test]
fn a_capture_of_both_ends_in_one_file_shows_nothing_twice() {
    let plain = bursts(Talk::new(100, 900));
    let both = trace(&of_both_ends(&plain));
    assert_eq!(kinds(&both), [], "{:#?}", both.findings);
    let client = &both.connections[0].from_client;
    let counts = client.counts.expect("details");
    assert_eq!(
        (counts.retransmissions, counts.control_retransmissions),
        (0, 0)
    );
    assert_eq!(client.data_packets, 200);
    // The server answers at once: what a question takes to it is the way's.
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(20_000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50).ack(From::Client);
    for _ in 0..40 {
        talk.wait_us(100).data(From::Client, 100).wait_us(20_500);
        talk.data(From::Server, 300);
    }
    let both = trace(&of_both_ends(&talk));
    assert_eq!(kinds(&both), [], "{:#?}", both.findings);
    let life = both.connections[0].time.expect("both ends");
    assert!(life.round_trip > 0.9 && life.server < 0.04, "{life:?}");
    // A way that doubles packets: the second comes when the first was acknowledged.
    let doubled = talk
        .frames
        .iter()
        .enumerate()
        .skip(13)
        .step_by(5)
        .map(|(_, (at, frame))| (at + 15_000_000, frame.clone()));
    let mut frames: Vec<_> = talk.frames.iter().cloned().chain(doubled).collect();
    frames.sort_by_key(|(at, _)| *at);
    let trace = trace(&frames);
    for end in [
        &trace.connections[0].from_client,
        &trace.connections[0].from_server,
    ] {
        assert_eq!(end.counts.expect("details").retransmissions, 0);
    }
}

/// A host that keeps the number of a packet when it sends it again, as some do: asked for, it is sent again.
#[test]
fn what_was_asked_for_is_no_copy_though_it_has_the_number() {
    let mut talk = bursts(Talk::new(100, 900));
    let mut lost = talk.packet(From::Client, 1460);
    lost.identification = 7777;
    talk.send(lost.clone()).skip(From::Client, 1460);
    for _ in 0..9 {
        talk.wait_us(10).data(From::Client, 1460);
    }
    talk.wait_us(19_900);
    for have in 1..10 {
        talk.wait_us(10).sack(From::Server, 14_600, have * 1460);
    }
    talk.wait_us(50)
        .send(lost)
        .wait_us(20_000)
        .ack(From::Server);
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [Kind::Loss], "{:#?}", trace.findings);
}

#[test]
fn an_answer_that_nobody_acknowledged_before_came_late_to_nobodys_program() {
    // Of a request that reaches a radio after 1.5 s no acknowledgement comes before its answer.
    let answered = |acknowledged: bool| {
        let mut talk = Talk::new(100, 900);
        talk.control(From::Client, SYN, syn_options((1460, Some(7))))
            .wait_us(20_000);
        talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
        talk.wait_us(50).ack(From::Client);
        for _ in 0..5 {
            talk.data(From::Client, 100).wait_us(60_000);
            if acknowledged {
                talk.ack(From::Server);
            }
            talk.wait_us(1_460_000).data(From::Server, 300);
            talk.wait_us(50).ack(From::Client);
        }
        trace(&talk.frames)
    };
    let late = answered(false);
    assert_eq!(kinds(&late), [], "{:#?}", late.findings);
    let life = late.connections[0].time.expect("both ends");
    assert!(life.round_trip > 0.95, "{life:?}");
    let slow = answered(true);
    assert!(
        kinds(&slow).contains(&Kind::SlowAnswer),
        "{:#?}",
        slow.findings
    );
    let life = slow.connections[0].time.expect("both ends");
    assert!(life.server > 0.95, "{life:?}");
}

/// Ten messages over a way of 20 ms, and forty over one that takes 60 ms from then on.
#[test]
fn a_way_that_became_longer_is_no_timer_and_no_surely_slow_server() {
    let changed = |answer: usize, last_us: u64| {
        let mut talk = Talk::new(100, 900);
        talk.control(From::Client, SYN, syn_options((1460, Some(7))))
            .wait_us(20_000);
        talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
        talk.wait_us(50).ack(From::Client);
        for at in 0..50 {
            let trip_us = if at < 10 { 20_000 } else { 80_000 };
            let trip_us = if at == 49 { last_us } else { trip_us };
            talk.data(From::Client, 200).wait_us(trip_us);
            match answer {
                0 => talk.ack(From::Server),
                bytes => talk.data(From::Server, bytes).wait_us(50).ack(From::Client),
            };
            talk.wait_us(5000);
        }
        trace(&talk.frames)
    };
    assert_eq!(kinds(&changed(0, 80_000)), []);
    // One that is acknowledged at once shows that the way is as it was.
    assert_eq!(kinds(&changed(0, 20_000)), [Kind::DelayedAck]);
    let said = |trace: &Trace| {
        let slow = trace
            .findings
            .iter()
            .find(|one| one.kind == Kind::SlowAnswer);
        slow.expect("it is slow").explanation.clone()
    };
    assert!(said(&changed(300, 80_000)).contains("or a way that takes as much longer"));
}

/// Probes of a closed window are no keepalives, and a keepalive that was answered forgot nothing.
#[test]
fn a_reset_later_than_an_answer_is_of_a_host_that_remembers() {
    let mut talk = Talk::new(100, 900);
    talk.shake_hands(1460, Some(0)).window(From::Server, 14_600);
    for _ in 0..10 {
        talk.data(From::Client, 1460);
    }
    talk.wait_us(200).window(From::Server, 0).ack(From::Server);
    for ms in [200, 400, 800] {
        talk.wait_us(ms * 1000).again(From::Client, 1, 0);
        talk.wait_us(200).ack(From::Server);
    }
    let mut reset = talk.wait_us(3_000_000).packet(From::Server, 0);
    reset.flags = RST | ACK;
    talk.send(reset);
    let told = kinds(&trace(&talk.frames));
    assert_eq!(told, [Kind::ZeroWindow, Kind::Reset]);
    for is_answered in [true, false] {
        let mut talk = Talk::new(100, 900);
        talk.shake_hands(1460, Some(7)).data(From::Client, 100);
        talk.wait_us(200).ack(From::Server).wait_us(60_000_000);
        talk.again(From::Client, 1, 0).wait_us(200);
        if is_answered {
            talk.ack(From::Server).wait_us(7_000_000);
        }
        let mut reset = talk.packet(From::Server, 0);
        reset.flags = RST | ACK;
        talk.send(reset);
        let expected = if is_answered {
            Kind::Reset
        } else {
            Kind::HalfOpen
        };
        assert_eq!(kinds(&trace(&talk.frames)), [expected]);
    }
}

#[test]
fn a_tail_probe_is_no_retransmission_timer() {
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(20_000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50).ack(From::Client);
    for _ in 0..3 {
        for _ in 0..5 {
            talk.data(From::Client, 1460).wait_us(10);
        }
        // The last is lost, and probed for after two round trips.
        talk.wait_us(20_000).ack_but(From::Server, 1460);
        talk.wait_us(22_000).again(From::Client, 1460, 1460);
        talk.wait_us(20_000).ack(From::Server);
    }
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [Kind::Loss], "{:#?}", trace.findings);
    let counts = trace.connections[0].from_client.counts.expect("details");
    assert_eq!((counts.tail_probe, counts.timeout), (3, 0));
}

/// Without selective acknowledgements a timer sends again whatever had been sent.
#[test]
fn what_a_timer_sends_again_blindly_is_no_burst() {
    let blind = |is_told: bool| {
        let options = if is_told {
            syn_options((1460, None))
        } else {
            vec![2, 4, 5, 180]
        };
        let mut talk = Talk::new(100, 900);
        talk.window(From::Server, 60_000);
        talk.control(From::Client, SYN, options.clone())
            .wait_us(20_000);
        talk.control(From::Server, SYN | ACK, options);
        talk.wait_us(50).ack(From::Client);
        for _ in 0..20 {
            talk.data(From::Client, 1460).wait_us(10);
        }
        // Before the loss something came selectively, or never does.
        if is_told {
            talk.wait_us(19_000).sack(From::Server, 20 * 1460, 1460);
        }
        talk.wait_us(300_000);
        for back in (1..=20).rev() {
            talk.again(From::Client, back * 1460, 1460).wait_us(10);
        }
        talk.wait_us(20_000).ack(From::Server);
        let trace = trace(&talk.frames);
        let told = trace
            .findings
            .iter()
            .flat_map(|one| one.also.iter().chain([&one.claim]));
        told.filter(|claim| claim.contains("consecutive")).count()
    };
    assert_eq!(blind(true), 1);
    assert_eq!(blind(false), 0);
}

/// An acknowledgement that comes sooner than the way allows is for the first sending.
#[test]
fn what_is_acknowledged_sooner_than_the_way_was_there() {
    let mut talk = bursts(Talk::new(100, 900));
    for late_us in [2000, 2000, 2000, 20_000] {
        talk.data(From::Client, 1000).wait_us(300_000);
        talk.again(From::Client, 1000, 1000)
            .wait_us(late_us)
            .ack(From::Server);
        talk.wait_us(100_000);
    }
    let trace = trace(&talk.frames);
    let counts = trace.connections[0].from_client.counts.expect("details");
    assert_eq!((counts.retransmissions, counts.spurious), (4, 3));
}

/// A path that takes less than both agreed on: segments of 1400 bytes are full, pushed or not.
#[test]
fn full_segments_of_a_path_that_takes_less_are_not_short() {
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(20_000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(50).ack(From::Client);
    for round in 0..50 {
        for at in 0..=9 + round {
            let mut packet = talk.packet(From::Client, 1400);
            packet.flags = if at == 9 + round { ACK | PSH } else { ACK };
            talk.send(packet).skip(From::Client, 1400).wait_us(10);
        }
        talk.wait_us(19_900).ack(From::Server).wait_us(10);
    }
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [], "{:#?}", trace.findings);
    let life = trace.connections[0].time.expect("both ends");
    assert!(life.congestion > 0.95, "{life:?}");
}

/// At the receiver nothing shows of what holds the sender back.
#[test]
fn the_receiver_does_not_see_a_congestion_window() {
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(50);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(20_000).ack(From::Client);
    for _ in 0..50 {
        for at in 0..10 {
            let mut packet = talk.packet(From::Client, 1460);
            packet.flags = if at == 9 { ACK | PSH } else { ACK };
            talk.send(packet).skip(From::Client, 1460).wait_us(1000);
            talk.ack(From::Server);
        }
        talk.wait_us(10_000);
    }
    let trace = trace(&talk.frames);
    assert_eq!(kinds(&trace), [], "{:#?}", trace.findings);
    let life = trace.connections[0].time.expect("both ends");
    assert!(life.unseen > 0.9 && life.congestion < 0.05, "{life:?}");
}

/// A SYN-ACK that comes behind a second SYN answers that.
#[test]
fn a_syn_ack_for_a_second_syn_was_not_sent_again() {
    let mut talk = Talk::new(100, 900);
    talk.control(From::Client, SYN, syn_options((1460, Some(7))))
        .wait_us(140_000);
    talk.control(From::Server, SYN | ACK, syn_options((1460, Some(7))));
    // The client has not had it when its timer fires.
    let mut again = talk.wait_us(900_000).packet(From::Client, 0);
    (again.flags, again.sequence, again.acknowledgement) = (SYN, 100, 0);
    talk.send(again).wait_us(2000).ack(From::Client);
    let mut answer = talk.wait_us(138_000).packet(From::Server, 0);
    (answer.flags, answer.sequence) = (SYN | ACK, 900);
    talk.send(answer).wait_us(50).data(From::Client, 100);
    talk.wait_us(140_000).data(From::Server, 100);
    let trace = trace(&talk.frames);
    let told = trace
        .findings
        .iter()
        .filter(|one| one.kind == Kind::SynAgain);
    assert!(
        told.clone().all(|one| one.who_is == End::Client),
        "{:#?}",
        trace.findings
    );
    assert_eq!(told.count(), 1);
}
