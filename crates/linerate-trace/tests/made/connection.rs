//! Connections made by hand: every counter, every cause and every finding has a known truth.

use crate::common;

use std::num::NonZero;

use common::{ACK, From, RST, SYN, Talk, pcapng, syn_options, trace};
use linerate_model::sample::End;
use linerate_trace::{Cause, ConnectionReport, Counts, Ending, TcpFinding, TcpFindingKind, Trace};

use From::{Client, Server};

fn only(trace: &Trace) -> &ConnectionReport {
    assert_eq!(trace.connections.len(), 1, "one connection");
    &trace.connections[0]
}

fn counts(trace: &Trace, from: From) -> Counts {
    let connection = only(trace);
    let end = match from {
        Client => &connection.from_client,
        Server => &connection.from_server,
    };
    end.counts.expect("a detail")
}

fn found(trace: &Trace, kind: TcpFindingKind) -> Option<&TcpFinding> {
    trace.findings.iter().find(|finding| finding.kind == kind)
}

/// A connection with `count` full segments that are acknowledged by twos.
fn bulk(count: usize) -> Talk {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    for at in 1..=count {
        talk.wait_us(12).data(Client, 1460);
        if at % 2 == 0 {
            talk.wait_us(100).ack(Server);
        }
    }
    talk
}

#[test]
fn a_plain_stream_is_counted() {
    for first in [1, u32::MAX - 5000] {
        let mut talk = Talk::new(first, first.wrapping_add(77));
        talk.shake_hands_as((1460, Some(7)), (1400, Some(9)));
        for _ in 0..10 {
            talk.wait_us(10).data(Client, 1400);
            talk.wait_us(10).data(Client, 1400);
            talk.wait_us(100).ack(Server);
        }
        talk.wait_us(50).finish();
        let trace = trace(&talk.frames);
        let connection = only(&trace);
        assert_eq!(connection.syn_to_answer_ns, Some(100_000));
        assert_eq!(connection.answer_to_ack_ns, Some(100_000));
        assert_eq!(connection.segment_bytes, Some(1400));
        assert_eq!(connection.ending, Ending::Fin);
        let (client, server) = (&connection.from_client, &connection.from_server);
        assert_eq!((client.data_packets, client.payload_bytes), (20, 28_000));
        assert_eq!((server.data_packets, server.pure_acks), (0, 10));
        // The handshake's and the farewell's.
        assert_eq!(client.pure_acks, 2);
        assert_eq!(client.data_per_ack, Some(2.0));
        let trip = client.round_trip.expect("round trips");
        // The second of each two, Karn: it ends where the acknowledgement does.
        assert_eq!(
            (trip.count, trip.min_ns, trip.max_ns),
            (10, 100_000, 100_000)
        );
        let offer = server.offer.expect("a SYN");
        assert_eq!(
            (offer.mss_bytes, offer.window_scale),
            (NonZero::new(1400), Some(9))
        );
        assert_eq!(server.window_bytes_max, Some(1000 << 9));
        let counts = counts(&trace, Client);
        assert_eq!(
            (counts.retransmissions, counts.out_of_order, counts.holes),
            (0, 0, 0)
        );
        assert_eq!(trace.totals.connections, 1);
        assert!(found(&trace, TcpFindingKind::Loss).is_none());
    }
}

#[test]
fn a_fast_retransmission_is_known_by_its_asking() {
    let mut talk = bulk(10);
    for _ in 0..6 {
        talk.wait_us(10).data(Client, 1460);
    }
    talk.wait_us(100).ack_but(Server, 5 * 1460);
    for have in 1..=4 {
        talk.wait_us(10).sack(Server, 5 * 1460, have * 1460);
    }
    talk.wait_us(100).again(Client, 5 * 1460, 1460);
    talk.wait_us(100).ack(Server);
    let trace = trace(&talk.frames);
    let client = counts(&trace, Client);
    assert_eq!(
        (client.retransmissions, client.fast, client.timeout),
        (1, 1, 0)
    );
    assert_eq!(client.retransmitted_bytes, 1460);
    assert_eq!(client.spurious, 0);
    let server = counts(&trace, Server);
    assert_eq!((server.duplicate_acks, server.sacks), (4, 4));
}

#[test]
fn a_timeout_is_a_stall_with_its_frames() {
    let mut talk = bulk(10);
    talk.wait_us(10).data(Client, 1460);
    let sent = talk.frames.len() as u64;
    talk.wait_us(205_000).again(Client, 1460, 1460);
    talk.wait_us(100).ack(Server);
    let trace = trace(&talk.frames);
    let client = counts(&trace, Client);
    assert_eq!(
        (client.retransmissions, client.fast, client.timeout),
        (1, 0, 1)
    );
    let finding = found(&trace, TcpFindingKind::RetransmissionTimeout).expect("a stall");
    assert_eq!((finding.count, finding.total_ns), (1, 205_000_000));
    let frames: Vec<u64> = finding.proofs[0]
        .frames
        .iter()
        .map(|frame| frame.number())
        .collect();
    assert_eq!(frames, [sent, sent + 1]);
    let gap = &only(&trace).gaps[0];
    assert_eq!(
        (gap.cause, gap.end, gap.total_ns),
        (Cause::RetransmissionTimeout, End::Client, 205_000_000)
    );
}

#[test]
fn a_tail_probe_is_not_a_timeout() {
    let mut talk = bulk(10);
    for _ in 0..4 {
        talk.wait_us(10).data(Client, 1460);
    }
    talk.wait_us(1000).again(Client, 1460, 1460);
    talk.wait_us(100).ack(Server);
    let client = counts(&trace(&talk.frames), Client);
    assert_eq!(
        (client.retransmissions, client.tail_probe, client.timeout),
        (1, 1, 0)
    );
}

#[test]
fn what_was_acknowledged_is_sent_again_in_vain() {
    let mut talk = bulk(10);
    talk.wait_us(300).again(Client, 1460, 1460);
    talk.wait_us(300).again(Client, 2920, 1460);
    let client = counts(&trace(&talk.frames), Client);
    assert_eq!((client.retransmissions, client.spurious), (2, 2));
}

#[test]
fn a_duplicate_sack_proves_a_spurious_retransmission() {
    let mut talk = bulk(10);
    talk.wait_us(10).data(Client, 1460);
    talk.wait_us(250_000).again(Client, 1460, 1460);
    talk.wait_us(50).ack(Server);
    // The block lies below the acknowledgement (RFC 2883, section 4).
    talk.wait_us(50).sack(Server, 0, 1460);
    let trace = trace(&talk.frames);
    assert_eq!(counts(&trace, Client).spurious, 1);
    assert_eq!(counts(&trace, Server).duplicate_sacks, 1);
}

#[test]
fn reordering_is_not_loss() {
    let mut talk = bulk(10);
    talk.skip(Client, 1460).wait_us(10).data(Client, 1460);
    talk.wait_us(20).again(Client, 2920, 1460);
    talk.wait_us(100).ack(Server);
    let client = counts(&trace(&talk.frames), Client);
    assert_eq!(
        (client.out_of_order, client.holes, client.retransmissions),
        (1, 1, 0)
    );
}

#[test]
fn loss_before_the_capture_is_a_retransmission() {
    let mut talk = bulk(10);
    talk.skip(Client, 1460).wait_us(10).data(Client, 1460);
    for at in 3..7 {
        talk.wait_us(10)
            .data(Client, 1460)
            .ack_but(Server, at * 1460);
    }
    talk.wait_us(250).again(Client, 6 * 1460, 1460);
    talk.wait_us(100).ack(Server);
    let client = counts(&trace(&talk.frames), Client);
    assert_eq!(
        (
            client.retransmissions,
            client.fast,
            client.first_not_captured
        ),
        (1, 1, 1)
    );
    assert_eq!(client.out_of_order, 0);
}

#[test]
fn an_acknowledgement_tells_of_data_that_was_not_captured() {
    let mut talk = bulk(10);
    talk.skip(Client, 300).wait_us(10).ack(Client);
    talk.wait_us(230_000).again(Client, 300, 300);
    talk.wait_us(100).ack(Server);
    let client = counts(&trace(&talk.frames), Client);
    assert_eq!((client.holes, client.first_not_captured), (1, 1));
    assert_eq!((client.retransmissions, client.timeout), (1, 1));
}

#[test]
fn a_burst_is_one_finding() {
    let mut talk = bulk(10);
    for _ in 0..20 {
        talk.wait_us(10).data(Client, 1460);
    }
    for _ in 0..3 {
        talk.wait_us(10).sack(Server, 20 * 1460, 5 * 1460);
    }
    for at in 0..15 {
        talk.wait_us(10).again(Client, (20 - at) * 1460, 1460);
    }
    talk.wait_us(100).ack(Server);
    let trace = trace(&talk.frames);
    let burst = found(&trace, TcpFindingKind::LossBurst).expect("a burst");
    assert_eq!((burst.count, burst.value), (1, 15));
    assert_eq!(counts(&trace, Client).fast, 15);
}

#[test]
fn a_closed_window_has_a_length() {
    let mut talk = bulk(10);
    talk.window(Server, 0).wait_us(10).data(Client, 1460);
    talk.wait_us(100).ack(Server);
    talk.wait_us(200_000).again(Client, 1, 0);
    talk.wait_us(50).ack(Server);
    talk.wait_us(300_000).window(Server, 500).ack(Server);
    let trace = trace(&talk.frames);
    let closed = only(&trace)
        .from_server
        .zero_window
        .expect("a closed window");
    assert_eq!((closed.count, closed.sum_ns), (1, 500_050_000));
    assert_eq!(counts(&trace, Client).zero_window_probes, 1);
    assert_eq!(counts(&trace, Server).zero_windows, 2);
    let finding = found(&trace, TcpFindingKind::ZeroWindow).expect("a closed window");
    assert_eq!(
        (finding.who_is, finding.total_ns),
        (End::Server, 500_050_000)
    );
    let gaps = &only(&trace).gaps;
    assert!(
        gaps.iter()
            .all(|gap| gap.cause == Cause::Window && gap.end == End::Server),
        "{gaps:?}"
    );
}

#[test]
fn nagle_and_delayed_ack_are_known_by_three_frames() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    for _ in 0..3 {
        talk.wait_us(500).data(Client, 100);
        talk.wait_us(40_000).ack(Server);
        talk.wait_us(120).data(Client, 200);
        talk.wait_us(150).data(Server, 300);
        talk.wait_us(100).ack(Client);
    }
    let trace = trace(&talk.frames);
    let finding = &trace.findings[0];
    assert_eq!(finding.kind, TcpFindingKind::NagleDelayedAck);
    assert_eq!(
        (finding.who_is, finding.count, finding.total_ns),
        (End::Client, 3, 120_000_000)
    );
    let frames: Vec<u64> = finding.proofs[0]
        .frames
        .iter()
        .map(|frame| frame.number())
        .collect();
    assert_eq!(frames, [4, 5, 6]);
    let gap = &only(&trace).gaps[0];
    assert_eq!(
        (gap.cause, gap.end, gap.count),
        (Cause::NagleDelayedAck, End::Client, 3)
    );
    assert_eq!(counts(&trace, Server).delayed_acks, 3);
}

#[test]
fn a_pause_after_a_delayed_ack_is_not_nagles() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    for _ in 0..4 {
        talk.wait_us(500).data(Client, 100);
        talk.wait_us(40_000).ack(Server);
        talk.wait_us(60_000);
    }
    let trace = trace(&talk.frames);
    assert!(found(&trace, TcpFindingKind::NagleDelayedAck).is_none());
    let delayed = found(&trace, TcpFindingKind::DelayedAck).expect("delayed acknowledgements");
    assert_eq!((delayed.who_is, delayed.count), (End::Server, 4));
    let ack_delay = only(&trace).from_server.ack_delay.expect("delays");
    assert_eq!((ack_delay.count, ack_delay.max_ns), (4, 39_900_000));
    let pauses = only(&trace)
        .gaps
        .iter()
        .find(|gap| gap.cause == Cause::Application);
    assert_eq!(
        pauses.map(|gap| (gap.end, gap.count)),
        Some((End::Client, 3))
    );
}

#[test]
fn an_answer_that_takes_long_is_the_servers() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    talk.wait_us(500).data(Client, 100);
    talk.wait_us(100).ack(Server);
    talk.wait_us(70_000).data(Server, 1000);
    let trace = trace(&talk.frames);
    let gap = &only(&trace).gaps[0];
    assert_eq!(
        (gap.cause, gap.end, gap.longest_ns),
        (Cause::Answer, End::Server, 70_000_000)
    );
}

#[test]
fn the_window_is_a_limit_where_it_is_full() {
    let mut talk = Talk::new(1, 1);
    talk.window(Server, 23);
    talk.shake_hands(1460, Some(7));
    for _ in 0..40 {
        // Two segments fill 2944 bytes; then a round trip of a millisecond.
        talk.wait_us(10).data(Client, 1460);
        talk.wait_us(10).data(Client, 1460);
        talk.wait_us(1000).ack(Server);
    }
    let trace = trace(&talk.frames);
    let connection = only(&trace);
    let time = connection.time.expect("shares");
    assert!(time.window > 0.95, "{time:?}");
    let limit = found(&trace, TcpFindingKind::WindowLimit).expect("a limit");
    assert_eq!((limit.who_is, limit.value), (End::Server, 23 << 7));
    assert_eq!(connection.from_client.flight_bytes_max, Some(2920));
}

#[test]
fn sizes_repeat_as_nagle_makes_them() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    for _ in 0..20 {
        talk.wait_us(10)
            .data(Client, 100)
            .wait_us(10)
            .data(Client, 1400);
        talk.wait_us(100).ack(Server);
    }
    let trace = trace(&talk.frames);
    let sizes = only(&trace).from_client.sizes.clone().expect("sizes");
    let repeat = sizes.repeating.expect("a sequence");
    assert_eq!((repeat.bytes, repeat.packets), (vec![100, 1400], 40));
    assert_eq!(sizes.frequent[..2], [(100, 20), (1400, 20)]);
}

#[test]
fn short_segments_in_trains_are_found() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    for _ in 0..100 {
        talk.wait_us(10).data(Client, 64);
    }
    talk.wait_us(100).ack(Server);
    let trace = trace(&talk.frames);
    let small = found(&trace, TcpFindingKind::SmallSegments).expect("short segments");
    assert_eq!(
        (small.count, small.value, small.who_is),
        (100, 64, End::Client)
    );
}

#[test]
fn superframes_are_said() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    talk.wait_us(10)
        .data(Client, 14_600)
        .wait_us(100)
        .ack(Server);
    let trace = trace(&talk.frames);
    let finding = found(&trace, TcpFindingKind::Superframes).expect("a superframe");
    assert_eq!((finding.count, finding.value), (1, 14_600));
}

#[test]
fn missing_scaling_is_found() {
    let mut talk = Talk::new(1, 1);
    talk.window(Server, 65_535);
    talk.shake_hands_as((1460, Some(7)), (1460, None));
    for _ in 0..5 {
        for _ in 0..44 {
            talk.wait_us(5).data(Client, 1460);
        }
        talk.wait_us(20_000).ack(Server);
    }
    let trace = trace(&talk.frames);
    let finding = found(&trace, TcpFindingKind::NoWindowScaling).expect("no scaling");
    assert_eq!((finding.who_is, finding.value), (End::Server, 65_535));
    // Without the peer's, one's own does not count either (RFC 7323, section 1.3).
    assert_eq!(only(&trace).from_client.window_bytes_max, Some(1000));
}

#[test]
fn routers_are_believed() {
    let mut talk = bulk(4);
    talk.wait_us(10).data(Client, 1460);
    let (_, frame) = talk.frames.last().expect("a frame");
    let quoted = frame[14..14 + 28].to_vec();
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend(1400u16.to_be_bytes());
    icmp.extend(quoted);
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut ip = common::ipv4(1, 9, &icmp);
    ip[9] = 1;
    bytes.extend(ip);
    talk.frames.push((talk.now_ns + 1000, bytes));
    let trace = trace(&talk.frames);
    let finding = found(&trace, TcpFindingKind::PathMtu).expect("a router's word");
    assert_eq!(
        (finding.count, finding.value, finding.who_is),
        (1, 1400, End::Client)
    );
    assert_eq!(trace.totals.too_big, 1);
}

#[test]
fn ports_that_are_used_again_are_another_connection() {
    let mut talk = bulk(4);
    talk.wait_us(10).finish();
    let mut later = Talk::new(90_000, 5).begin_at(500);
    later
        .shake_hands(1460, Some(7))
        .wait_us(10)
        .data(Client, 10);
    talk.frames.extend(later.frames);
    let trace = trace(&talk.frames);
    assert_eq!(
        (trace.totals.connections, trace.totals.reused_ports),
        (2, 1)
    );
    assert_eq!(trace.connections[1].from_client.payload_bytes, 10);
    assert_eq!(trace.totals.retransmissions, 0);
}

/// The last of a connection that began before the capture: an acknowledgement of each of these ends, a minute earlier
/// than `stream`.
fn behind_another(ends: &[From]) -> Vec<(u64, Vec<u8>)> {
    let mut before = Talk::new(1_000_000_000, 1);
    ends.iter().for_each(|&from| {
        before.ack(from).wait_us(100);
    });
    let mut frames = before.frames;
    frames.extend(stream(1000, 77, 60_000).frames);
    frames
}

/// A connection of twenty full segments of each end.
fn stream(client_first: u32, server_first: u32, begin_ms: u64) -> Talk {
    let mut talk = Talk::new(client_first, server_first).begin_at(begin_ms);
    talk.shake_hands(1460, Some(7));
    for from in [Client, Server] {
        for _ in 0..20 {
            talk.wait_us(10).data(from, 1460);
        }
    }
    talk.wait_us(100).ack(Client).ack(Server);
    talk
}

#[test]
fn a_connection_whose_begin_was_not_captured_ends_with_the_next_syn() {
    // Of one direction: the second number of the server is behind the first.
    let mut one_way = stream(1000, 1_000_000_000, 0);
    one_way.frames.extend(stream(9000, 77, 60_000).frames);
    let mut one_way = one_way.frames;
    one_way.retain(|(_, bytes)| bytes[14 + 20..14 + 22] == 80u16.to_be_bytes());
    for frames in [
        behind_another(&[Client, Server]),
        behind_another(&[Client]),
        behind_another(&[Server]),
        one_way,
    ] {
        let trace = trace(&frames);
        assert_eq!(trace.totals.connections, 2);
        assert_eq!(trace.totals.retransmissions, 0);
        assert!(trace.findings.is_empty(), "{:?}", trace.findings);
    }
}

#[test]
fn a_syn_that_was_captured_behind_its_acknowledgement_begins_nothing() {
    let mut talk = stream(1000, 77, 0);
    talk.frames.swap(0, 2);
    let trace = trace(&talk.frames);
    assert_eq!(trace.totals.connections, 1);
    assert_eq!(trace.totals.retransmissions, 0);
}

#[test]
fn a_syn_that_is_sent_again_is_the_same_connection() {
    let mut talk = Talk::new(1, 1);
    talk.control(Client, SYN, syn_options((1460, Some(7))));
    let mut again = talk.packet(Client, 0);
    (again.flags, again.acknowledgement, again.sequence) = (SYN, 0, 1);
    again.options = syn_options((1460, Some(7)));
    talk.wait_us(1_000_000).send(again);
    talk.wait_us(100)
        .control(Server, SYN | ACK, syn_options((1460, Some(7))));
    talk.wait_us(100).ack(Client);
    let trace = trace(&talk.frames);
    assert_eq!(trace.totals.connections, 1);
    assert_eq!(trace.totals.control_retransmissions, 1);
    // The answer may be to either SYN.
    assert_eq!(only(&trace).syn_to_answer_ns, None);
}

#[test]
fn half_a_connection_is_a_result_with_a_warning() {
    let mut talk = bulk(50);
    talk.frames.drain(..3);
    let whole = trace(&talk.frames);
    let connection = only(&whole);
    assert!(!connection.handshake && !connection.one_sided);
    assert_eq!(connection.client.port, 40_000);
    assert_eq!(connection.from_client.data_packets, 50);
    assert!(!connection.from_server.window_is_scaled);
    // Only what the server sent: frames of one direction.
    let mut one = bulk(50);
    one.frames
        .retain(|(_, bytes)| bytes[14 + 20..14 + 22] == 80u16.to_be_bytes());
    let half = trace(&one.frames);
    assert!(only(&half).one_sided);
    assert!(
        half.warnings
            .iter()
            .any(|warning| warning.contains("one direction"))
    );
}

#[test]
fn a_refused_connection_is_a_reset_one() {
    let mut talk = Talk::new(1, 0);
    talk.control(Client, SYN, syn_options((1460, Some(7))));
    talk.wait_us(50).control(Server, RST | ACK, Vec::new());
    let trace = trace(&talk.frames);
    assert_eq!(only(&trace).ending, Ending::Refused);
    assert!(!only(&trace).detailed);
}

#[test]
fn keepalives_are_neither_data_nor_loss() {
    let mut talk = bulk(4);
    for _ in 0..3 {
        talk.wait_us(1_000_000).again(Client, 1, 0);
        talk.wait_us(50).ack(Server);
    }
    let trace = trace(&talk.frames);
    let client = counts(&trace, Client);
    assert_eq!((client.keepalives, client.retransmissions), (3, 0));
    assert_eq!(counts(&trace, Server).duplicate_acks, 0);
}

#[test]
fn frames_that_were_captured_twice_count_once() {
    let mut talk = bulk(4);
    talk.wait_us(10).data(Client, 1460).wait_us(2).same_frame();
    let trace = trace(&talk.frames);
    assert_eq!(only(&trace).from_client.data_packets, 5);
    assert_eq!(trace.totals.retransmissions, 0);
    assert_eq!(trace.totals.duplicate_frames, 1);
}

/// Traces frames with places for so many details and connections.
fn traced(frames: &[(u64, Vec<u8>)], details: usize, connections: usize) -> Trace {
    let limits = linerate_trace::Limits {
        details,
        connections,
        ..linerate_trace::Limits::default()
    };
    let bytes = pcapng(frames);
    let mut tracker = linerate_trace::Tracker::new(limits);
    let mut reader = linerate_trace::capture::Reader::new(&bytes[..]).expect("a capture");
    tracker.read(&mut reader, "made").expect("of Ethernet");
    tracker.finish()
}

#[test]
fn a_connection_that_was_counted_first_is_only_counted() {
    let mut first = bulk(4);
    let mut second = Talk::new(1, 1).client_port(40_001).begin_at(100);
    second.shake_hands(1460, Some(7));
    for _ in 0..100 {
        second.wait_us(100_000).data(Client, 1460);
    }
    first.now_ns = second.now_ns;
    first.wait_us(10).finish();
    second.wait_us(1_000_000);
    for _ in 0..10 {
        second.data(Client, 1460).wait_us(100_000);
    }
    let mut frames = [first.frames, second.frames].concat();
    frames.sort_by_key(|(time_ns, _)| *time_ns);
    let few = traced(&frames, 1, 1000);
    assert_eq!(few.totals.without_detail, 1);
    let second = &few.connections[0];
    assert_eq!((second.client.port, second.detailed), (40_001, false));
    assert!(second.time.is_none() && second.from_client.bits_per_second.is_none());
    assert!(few.connections[1].detailed);
}

#[test]
fn what_comes_late_takes_no_place_of_a_detail() {
    // A connection whose reset did not arrive, or whose farewell comes again.
    for has_data in [true, false] {
        let mut late = Talk::new(1, 1);
        late.shake_hands(1460, Some(7));
        if has_data {
            late.data(Client, 100).wait_us(100);
            late.control(Server, RST | ACK, Vec::new());
        } else {
            late.finish();
        }
        let other = |number: u16| {
            let mut talk = Talk::new(1, 1)
                .client_port(40_000 + number)
                .begin_at(100 * u64::from(number));
            talk.shake_hands(1460, Some(7)).data(Client, 100).finish();
            talk.frames
        };
        let closed = std::mem::take(&mut late.frames);
        if has_data {
            late.data(Client, 100);
        } else {
            late.again(Client, 1, 0);
        }
        let frames = [other(1), closed, other(2), other(3), late.frames, other(4)].concat();
        let trace = traced(&frames, 1, 1000);
        assert_eq!(trace.totals.without_detail, 0, "{has_data}");
        let last = trace.connections.iter().find(|one| one.number == 5);
        assert!(last.expect("the last").detailed, "{has_data}");
    }
}

#[test]
fn every_detail_can_be_handed_back() {
    let mut frames = Vec::new();
    for port in 0..200u16 {
        let mut talk = Talk::new(1, 1)
            .client_port(2000 + port)
            .begin_at(u64::from(port));
        talk.shake_hands(1460, Some(7));
        talk.wait_us(10).data(Client, 100);
        talk.wait_us(40_000).ack(Server);
        talk.wait_us(100).data(Client, 100);
        talk.wait_us(100).ack(Server).finish();
        frames.extend(talk.frames);
    }
    frames.sort_by_key(|(time_ns, _)| *time_ns);
    let traced = |details, connections| traced(&frames, details, connections);
    let whole = traced(1000, 1000);
    let stalls =
        |trace: &Trace| found(trace, TcpFindingKind::NagleDelayedAck).map(|found| found.count);
    assert_eq!(stalls(&whole), Some(200));
    // Sixty connections are open at once: those before them hand back.
    let few = traced(80, 1000);
    assert_eq!((stalls(&few), few.totals.without_detail), (Some(200), 0));
    assert!(few.totals.folded > 0);
    let fewer = traced(80, 90);
    assert_eq!(stalls(&fewer), Some(200));
    assert!(fewer.totals.forgotten > 0);
    for trace in [&few, &fewer] {
        assert_eq!(trace.totals.data_packets, whole.totals.data_packets);
        assert_eq!(trace.totals.pure_acks, whole.totals.pure_acks);
        assert_eq!(trace.totals.delayed_acks, whole.totals.delayed_acks);
    }
    // Where nothing is closed, connections are counted and it is said of how many.
    let none = traced(1, 1000);
    assert!(none.totals.without_detail > 0);
    assert!(
        none.warnings
            .iter()
            .any(|warning| warning.contains("only counted"))
    );
    assert_eq!(none.totals.data_packets, 400);
}

#[test]
fn an_end_without_syn_acks_nothing_odd() {
    // Acknowledgements of what was never sent, and a reset out of nowhere.
    let mut talk = Talk::new(5, 5);
    let mut odd = talk.packet(Server, 10);
    odd.acknowledgement = 0xdead_beef;
    talk.send(odd);
    let mut reset = talk.packet(Client, 0);
    reset.flags = RST | ACK;
    talk.wait_us(10).send(reset);
    assert_eq!(only(&trace(&talk.frames)).ending, Ending::Reset);
}

#[test]
fn a_reset_says_nothing_of_how_far_its_end_has_sent() {
    let mut talk = bulk(10);
    let mut forged = talk.packet(Client, 0);
    (forged.flags, forged.acknowledgement) = (RST, 0);
    forged.sequence += 3 * 1460;
    talk.wait_us(10).send(forged);
    for _ in 0..3 {
        talk.wait_us(10).data(Client, 1460);
    }
    let trace = trace(&talk.frames);
    let kinds: Vec<_> = trace.findings.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [TcpFindingKind::Reset]);
    assert_eq!(counts(&trace, Client).retransmissions, 0);
}

/// A stream captured where it arrives, of which every tenth segment was lost before and comes 50 ms later.
#[test]
fn what_was_lost_before_the_capture_counts_into_the_rate() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    let first_ns = talk.now_ns;
    for _ in 0..10 {
        talk.skip(Client, 1460);
        for at in 1..10 {
            talk.data(Client, 1460).wait_us(1000);
            talk.sack(Server, (at + 1) * 1460, at * 1460);
        }
        talk.wait_us(41_000).again(Client, 10 * 1460, 1460);
        talk.ack(Server);
    }
    let elapsed_ns = talk.now_ns - first_ns;
    let trace = trace(&talk.frames);
    assert_eq!(counts(&trace, Client).first_not_captured, 10);
    let rate = only(&trace).from_client.bits_per_second.expect("a rate");
    let bytes = rate * elapsed_ns as f64 / 8e9;
    assert!((bytes - 146_000.0).abs() < 1.0, "{bytes}");
}

#[test]
fn what_came_again_and_what_was_waited_for_is_told_in_words() {
    let mut talk = Talk::new(1, 1);
    talk.control(Client, SYN, syn_options((1460, Some(7))));
    talk.skip(Client, u32::MAX).wait_us(1_000_000);
    talk.shake_hands(1460, Some(7));
    for _ in 0..3 {
        talk.wait_us(100).data(Client, 1460).wait_us(100);
        talk.window(Server, 0).ack(Server).wait_us(20_000);
        talk.window(Server, 1000).ack(Server);
    }
    let look = linerate_trace::text::Look {
        columns: 100,
        color: false,
        connections: 1,
    };
    let text = linerate_trace::text::text(&trace(&talk.frames), look);
    assert!(text.contains("1 retransmission of SYN or FIN"), "{text}");
    assert!(text.contains("3 waits for the window"), "{text}");
}
