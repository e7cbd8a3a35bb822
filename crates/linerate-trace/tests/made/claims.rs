//! Captures that look like something else than they are: what they do not prove is not told.

use crate::common;

use common::{ACK, From, RST, SYN, Talk, pcap, pcap_cut, sack_option, syn_options, trace};
use linerate_model::sample::End;
use linerate_trace::{
    Cause, ConnectionReport, Ending, LifeReport, TcpFinding, TcpFindingKind as Kind, Trace,
};

use From::{Client, Server};

fn only(trace: &Trace) -> &ConnectionReport {
    assert_eq!(trace.connections.len(), 1, "one connection");
    &trace.connections[0]
}

fn found(trace: &Trace, kind: Kind) -> Option<&TcpFinding> {
    trace.findings.iter().find(|finding| finding.kind == kind)
}

fn frames_of(finding: &TcpFinding) -> Vec<u64> {
    let frames = finding.proofs[0].frames.iter();
    frames.map(|frame| frame.number()).collect()
}

/// A connection captured at the client, `trip_us` away from the server.
fn far(trip_us: u64) -> Talk {
    let mut talk = Talk::new(1, 1);
    let options = || syn_options((1460, Some(7)));
    talk.control(Client, SYN, options()).wait_us(trip_us);
    talk.control(Server, SYN | ACK, options()).wait_us(100);
    talk.ack(Client);
    talk
}

/// SYN options as Linux sends them: MSS, SACK, timestamps, and last the window scale.
fn linux_syn() -> Vec<u8> {
    let mut options = vec![2, 4, 5, 180, 4, 2, 8, 10];
    options.extend([0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]);
    options
}

#[test]
fn options_that_the_capture_cut_are_not_known() {
    let mut talk = Talk::new(1, 1).with_stamps();
    talk.window(Server, 50);
    talk.control(Client, SYN, linux_syn()).wait_us(20_000);
    talk.control(Server, SYN | ACK, linux_syn()).wait_us(100);
    talk.ack(Client);
    for _ in 0..20 {
        // Four full segments at a time: as much as the window has room for, if it is scaled.
        for _ in 0..4 {
            talk.wait_us(10).data(Client, 1448);
        }
        talk.wait_us(20_000).ack(Server);
    }
    let whole = only(&trace(&talk.frames)).clone();
    assert_eq!(whole.from_server.window_bytes_max, Some(50 << 7));
    assert!(whole.from_server.window_is_scaled);
    for snap in [54, 58, 62, 64, 66, 68, 70] {
        let trace = common::trace_bytes(&pcap_cut(&talk.frames, snap));
        let connection = only(&trace);
        assert!(!connection.from_server.window_is_scaled, "{snap}");
        assert_eq!(trace.findings.len(), 0, "{snap}: {:?}", trace.findings);
        let offer = connection.from_server.offer.expect("a SYN");
        assert!(offer.options_cut && offer.window_scale.is_none());
        assert_eq!(connection.from_client.counts.expect("counts").small, 0);
        let told = |warning: &String| warning.contains("options");
        assert!(
            trace.warnings.iter().any(told),
            "{snap}: {:?}",
            trace.warnings
        );
    }
    let trace = common::trace_bytes(&pcap_cut(&talk.frames, 74));
    assert!(only(&trace).from_server.window_is_scaled);
}

#[test]
fn a_window_that_is_exceeded_has_another_scale() {
    let mut talk = Talk::new(1, 1);
    talk.window(Server, 30);
    // A middlebox took the scale from the SYNs that the capture saw.
    talk.shake_hands(1460, None);
    talk.window(Server, 30);
    for _ in 0..8 {
        for _ in 0..8 {
            talk.wait_us(10).data(Client, 1460);
        }
        talk.wait_us(20_000).ack(Server);
    }
    let trace = trace(&talk.frames);
    assert!(!only(&trace).from_server.window_is_scaled);
    assert!(found(&trace, Kind::WindowLimit).is_none());
}

#[test]
fn many_holes_are_reordering_not_loss() {
    for overtaken in [6, 40] {
        let mut talk = Talk::new(1, 1);
        talk.control(Client, SYN, syn_options((1460, Some(7))))
            .wait_us(20);
        talk.control(Server, SYN | ACK, syn_options((1460, Some(7))))
            .wait_us(10_000);
        talk.ack(Client);
        talk.wait_us(10_000).data(Client, 1460);
        for _ in 0..overtaken {
            talk.wait_us(20).skip(Client, 1460).data(Client, 1460);
        }
        for at in 0..overtaken {
            let back = (2 * overtaken - 2 * at) * 1460;
            talk.wait_us(20).again(Client, back, 1460);
        }
        talk.wait_us(20).ack(Server);
        let trace = trace(&talk.frames);
        let counts = only(&trace).from_client.counts.expect("counts");
        assert_eq!(
            (counts.out_of_order, counts.retransmissions),
            (overtaken, 0)
        );
    }
}

#[test]
fn small_segments_of_many_servers_are_one_line_and_the_last() {
    let mut frames = Vec::new();
    for (at, mss) in [(0, 1380), (1, 1380), (2, 1400)] {
        let mut talk = Talk::new(1, 1)
            .client_port(40_000 + at)
            .begin_at(1000 * u64::from(at));
        talk.shake_hands_as((1460, Some(7)), (mss, Some(7)));
        for _ in 0..100 {
            talk.wait_us(10).data(Client, mss.into());
            talk.wait_us(100).ack(Server);
        }
        frames.extend(talk.frames);
    }
    let whole = trace(&frames);
    let finding = found(&whole, Kind::ClampedMss).expect("small segments");
    assert_eq!((finding.out_of, finding.connections), (1460, 3));
    assert!(finding.claim.contains("1460 B"), "{}", finding.claim);
    // Where hardly anything is sent it makes no difference.
    let mut talk = Talk::new(1, 1);
    talk.shake_hands_as((1460, Some(7)), (1380, Some(7)));
    talk.wait_us(10).data(Client, 1380).wait_us(100).ack(Server);
    assert!(found(&trace(&talk.frames), Kind::ClampedMss).is_none());
}

#[test]
fn a_peer_that_is_gone_is_no_black_hole() {
    // Full segments arrived before.
    let mut talk = far(10_000);
    for _ in 0..20 {
        talk.wait_us(10_000).data(Client, 1460);
        talk.wait_us(10_000).ack(Server);
    }
    talk.wait_us(1_000_000).data(Client, 1460);
    for power in 0..5 {
        talk.wait_us(200_000 << power).again(Client, 1460, 1460);
    }
    assert!(found(&trace(&talk.frames), Kind::PathMtu).is_none());
    // The first full segment, and nothing is heard of the server.
    let mut talk = far(10_000);
    talk.wait_us(10_000)
        .data(Client, 100)
        .wait_us(10_000)
        .ack(Server);
    talk.wait_us(10_000).data(Client, 1460);
    for power in 0..5 {
        talk.wait_us(200_000 << power).again(Client, 1460, 1460);
    }
    assert!(found(&trace(&talk.frames), Kind::PathMtu).is_none());
    // Sent four times within microseconds.
    let mut talk = far(10_000);
    talk.wait_us(10_000).data(Client, 1460).data(Client, 100);
    talk.wait_us(10_000).ack_but(Server, 1560);
    for _ in 0..4 {
        talk.wait_us(1)
            .again(Client, 1560, 1460)
            .ack_but(Server, 1560);
    }
    assert!(found(&trace(&talk.frames), Kind::PathMtu).is_none());
}

#[test]
fn a_black_hole_takes_full_segments_only() {
    let mut talk = far(10_000);
    talk.wait_us(10_000).data(Client, 1460).data(Client, 300);
    talk.wait_us(10_000).sack(Server, 1760, 300);
    let first = talk.frames.len() as u64 - 2;
    for power in 0..6 {
        talk.wait_us(200_000 << power).again(Client, 1760, 1460);
    }
    let last = talk.frames.len() as u64;
    let trace = trace(&talk.frames);
    let finding = &trace.findings[0];
    assert_eq!((finding.kind, finding.count), (Kind::PathMtu, 7));
    assert_eq!(finding.value, 1460);
    assert_eq!(frames_of(finding), [first, last]);
    // The timers are those of the same frames: told once.
    assert!(found(&trace, Kind::RetransmissionTimeout).is_none());
}

#[test]
fn short_segments_side_by_side_are_no_full_one() {
    // What follows the one that is missing, and whether that shows that full segments arrive.
    for (followers, is_hole) in [(&[300; 6][..], true), (&[300, 1460, 300], false)] {
        let mut talk = far(10_000);
        talk.wait_us(10_000).data(Client, 1460);
        let have: usize = followers.iter().sum();
        for bytes in followers {
            talk.data(Client, *bytes);
        }
        let back = have as u32 + 1460;
        talk.wait_us(10_000).sack(Server, back, have as u32);
        for power in 0..6 {
            talk.wait_us(200_000 << power).again(Client, back, 1460);
        }
        let trace = trace(&talk.frames);
        let told = found(&trace, Kind::PathMtu).map(|one| (one.count, one.value));
        assert_eq!(told, is_hole.then_some((7, 1460)), "{:?}", trace.findings);
    }
}

#[test]
fn what_comes_again_later_was_not_captured_twice() {
    let mut talk = far(10_000);
    let mut packet = talk.packet(Client, 300);
    packet.identification = 777;
    talk.skip(Client, 300);
    talk.wait_us(100_000).send(packet.clone());
    for wait_ms in [300, 600, 1200] {
        talk.wait_us(wait_ms * 1000).send(packet.clone());
    }
    talk.wait_us(10_000).ack(Server);
    let trace = trace(&talk.frames);
    assert_eq!(trace.totals.duplicate_frames, 0);
    let counts = only(&trace).from_client.counts.expect("counts");
    assert_eq!((counts.retransmissions, counts.timeout), (3, 3));
    assert!(only(&trace).from_client.round_trip.is_none());
    let finding = found(&trace, Kind::RetransmissionTimeout).expect("stalls");
    assert_eq!(finding.total_ns, 2_100_000_000);
}

#[test]
fn acknowledgements_that_differ_in_their_options_are_not_the_same_frame() {
    let mut talk = far(10_000);
    for _ in 0..6 {
        talk.wait_us(10).data(Client, 1460);
    }
    talk.wait_us(10_000);
    for have in 1..=3 {
        let mut packet = talk.packet(Server, 0);
        let end = packet.acknowledgement;
        packet.acknowledgement = end.wrapping_sub(6 * 1460);
        packet.options = sack_option(end - have * 1460, end);
        packet.identification = 9;
        talk.wait_us(10).send(packet);
    }
    assert_eq!(trace(&talk.frames).totals.duplicate_frames, 0);
}

#[test]
fn what_happens_before_the_first_payload_is_looked_at() {
    let mut talk = far(10_000);
    talk.window(Client, 0).wait_us(10_000).ack(Client);
    talk.window(Client, 500).wait_us(3_000_000).ack(Client);
    talk.wait_us(10_000)
        .data(Server, 1000)
        .wait_us(200)
        .ack(Client);
    let closed = trace(&talk.frames);
    let finding = found(&closed, Kind::ZeroWindow).expect("a closed window");
    assert_eq!(finding.total_ns, 3_000_000_000);
    let mut talk = far(10_000);
    for _ in 0..5 {
        talk.wait_us(1_000_000).again(Client, 1, 0);
        talk.wait_us(10_000).ack(Server);
    }
    let counts = only(&trace(&talk.frames))
        .from_client
        .counts
        .expect("counts");
    assert_eq!(counts.keepalives, 5);
}

#[test]
fn a_release_before_the_acknowledgement_arrived_is_not_nagles() {
    let mut talk = far(90_000);
    for _ in 0..5 {
        talk.wait_us(100_000).data(Client, 20);
        talk.wait_us(90_000).data(Server, 100);
        talk.wait_us(200_000).ack(Client);
        talk.wait_us(50_000).data(Server, 100);
        talk.wait_us(100).ack(Client);
    }
    let trace = trace(&talk.frames);
    assert!(found(&trace, Kind::NagleDelayedAck).is_none());
}

#[test]
fn a_full_window_is_not_nagles_work() {
    let mut talk = far(10_000);
    talk.window(Client, 1).wait_us(100).ack(Client);
    talk.wait_us(10_000).data(Server, 128);
    for _ in 0..6 {
        talk.wait_us(200_000).ack(Client);
        talk.wait_us(10_000).data(Server, 128);
    }
    let trace = trace(&talk.frames);
    assert!(found(&trace, Kind::NagleDelayedAck).is_none());
}

#[test]
fn an_end_that_sends_two_short_segments_at_once_has_no_nagle() {
    let mut talk = far(200);
    for _ in 0..6 {
        talk.wait_us(5000)
            .data(Client, 100)
            .wait_us(20)
            .data(Client, 50);
        talk.wait_us(200).data(Server, 30).wait_us(100).ack(Client);
        talk.wait_us(5000).data(Client, 100);
        talk.wait_us(40_000).ack(Server);
        talk.wait_us(120).data(Client, 200);
        talk.wait_us(200).data(Server, 300).wait_us(100).ack(Client);
    }
    let trace = trace(&talk.frames);
    assert!(found(&trace, Kind::NagleDelayedAck).is_none());
    let nagle = |gap: &&linerate_trace::Gaps| gap.cause == Cause::NagleDelayedAck;
    assert!(only(&trace).gaps.iter().find(nagle).is_none());
}

#[test]
fn an_acknowledgement_in_a_queue_is_not_delayed() {
    let mut talk = far(20_000);
    for _ in 0..30 {
        for _ in 0..10 {
            talk.wait_us(10).data(Client, 1460);
        }
        talk.wait_us(250_000).ack(Server);
        // The last, short segment of a message comes behind the others.
        talk.wait_us(10).data(Client, 300);
        talk.wait_us(260_000).ack(Server);
    }
    let trace = trace(&talk.frames);
    assert!(found(&trace, Kind::DelayedAck).is_none());
    assert_eq!(
        only(&trace)
            .from_server
            .counts
            .expect("counts")
            .delayed_acks,
        0
    );
    let mut gaps = only(&trace).gaps.iter();
    assert!(gaps.all(|gap| gap.cause != Cause::DelayedAck));
}

#[test]
fn long_handshakes_have_their_length() {
    let mut talk = far(10_000_000);
    talk.wait_us(100_000).data(Client, 300);
    talk.wait_us(10_000_000).ack(Server);
    let trace = trace(&talk.frames);
    assert_eq!(only(&trace).syn_to_answer_ns, Some(10_000_000_000));
    let mut gaps = only(&trace).gaps.iter();
    assert!(gaps.all(|gap| gap.cause != Cause::DelayedAck));
}

/// Returns what is said of `flights` of 3000 segments, with an acknowledgement of two each `ack_us`.
fn long_flights(flights: u32, ack_us: u64) -> Trace {
    let mut talk = far(100_000);
    talk.window(Server, 60_000);
    for _ in 0..flights {
        for _ in 0..3000 {
            talk.wait_us(10).data(Client, 1460);
        }
        talk.wait_us(70_000);
        for at in 1..=1500 {
            talk.wait_us(ack_us)
                .ack_but(Server, 3000 * 1460 - at * 2 * 1460);
        }
    }
    trace(&talk.frames)
}

#[test]
fn round_trips_come_from_all_of_a_long_flight() {
    let trace = long_flights(3, 20);
    let trip = only(&trace).from_client.round_trip.expect("round trips");
    // The first of a flight waits 100 ms, the last 100 ms too: none is forgotten.
    assert!(trip.max_ns >= 99_000_000, "{trip:?}");
    assert!(trip.count > 1000, "{trip:?}");
}

#[test]
fn all_of_a_long_flight_is_measured_alike() {
    let trace = long_flights(6, 4);
    let trip = only(&trace).from_client.round_trip.expect("round trips");
    // From 100 ms for the first to 76 ms for the last.
    assert!((trip.mean_ns - 88e6).abs() < 1e6, "{trip:?}");
    let median_ns = trip.median_ns.expect("enough of them");
    assert!((80_000_000..97_000_000).contains(&median_ns), "{trip:?}");
}

#[test]
fn the_last_segment_has_a_round_trip_too() {
    let mut talk = far(10_000);
    let mut packet = talk.packet(Client, 500);
    packet.flags |= common::FIN;
    talk.skip(Client, 501);
    talk.wait_us(1000).send(packet);
    talk.wait_us(12_000).ack(Server);
    let trace = trace(&talk.frames);
    let trip = only(&trace).from_client.round_trip.expect("a round trip");
    assert_eq!(trip.max_ns, 12_000_000);
}

#[test]
fn the_receivers_side_is_known_without_a_handshake() {
    let mut talk = Talk::new(1, 1).with_stamps();
    for _ in 0..50 {
        talk.wait_us(20_000)
            .data(Client, 1448)
            .wait_us(10)
            .data(Client, 1448);
        talk.wait_us(2).ack(Server);
    }
    let trace = trace(&talk.frames);
    assert_eq!(only(&trace).captured_at, Some(End::Server));
}

#[test]
fn a_frame_of_another_time_does_not_end_the_capture() {
    let mut talk = far(10_000);
    talk.wait_us(1000).data(Client, 100);
    let last_ns = talk.now_ns;
    talk.frames[1].0 += 3_600_000_000_000;
    let text = linerate_trace::text::text(
        &trace(&talk.frames),
        linerate_trace::text::Look {
            columns: 80,
            color: false,
            connections: 1,
        },
    );
    assert!(last_ns > 0 && text.contains("in 1 h"), "{text}");
}

#[test]
fn a_length_beyond_the_frame_is_what_was_on_the_wire() {
    let mut talk = far(10_000);
    talk.wait_us(1000).data(Client, 100);
    let (_, frame) = talk.frames.last_mut().expect("a frame");
    frame[16..18].copy_from_slice(&1500u16.to_be_bytes());
    let trace = common::trace_bytes(&pcap(&talk.frames, 1, false, true));
    assert_eq!(trace.totals.malformed, 0);
    assert_eq!(only(&trace).from_client.payload_bytes, 100);
}

#[test]
fn a_refused_connection_is_not_one_begun_before() {
    let mut talk = Talk::new(1, 0);
    talk.control(Client, SYN, syn_options((1460, Some(7))));
    talk.wait_us(50).control(Server, RST | ACK, Vec::new());
    let refused = trace(&talk.frames);
    assert_eq!(only(&refused).ending, Ending::Refused);
    let look = linerate_trace::text::Look {
        columns: 100,
        color: false,
        connections: 1,
    };
    let text = linerate_trace::text::text(&refused, look);
    assert!(!text.contains("begun before"), "{text}");
}

#[test]
fn what_becomes_of_a_syn_is_told_first() {
    let syn = || syn_options((1460, Some(7)));
    let mut talk = Talk::new(1, 0);
    talk.control(Client, SYN, syn());
    talk.wait_us(10_000).control(Server, RST | ACK, Vec::new());
    let refused = trace(&talk.frames);
    let finding = &refused.findings[0];
    assert_eq!(
        (finding.kind, finding.total_ns),
        (Kind::Refused, 10_000_000)
    );
    assert_eq!(only(&refused).ending, Ending::Refused);

    let mut talk = Talk::new(1, 0);
    talk.control(Client, SYN, syn());
    for wait_s in [1, 2, 4] {
        let mut again = talk.packet(Client, 0);
        (again.flags, again.acknowledgement, again.sequence) = (SYN, 0, 1);
        again.options = syn();
        talk.wait_us(wait_s * 1_000_000).send(again);
    }
    let unanswered = trace(&talk.frames);
    assert_eq!(unanswered.findings.len(), 1);
    let finding = &unanswered.findings[0];
    assert_eq!((finding.kind, finding.count), (Kind::Unanswered, 4));
    assert_eq!(finding.total_ns, 7_000_000_000);

    // Answered in the end.
    talk.wait_us(10_000).control(Server, SYN | ACK, syn());
    talk.wait_us(100).ack(Client);
    let late = trace(&talk.frames);
    let finding = &late.findings[0];
    assert_eq!((finding.kind, finding.count), (Kind::SynAgain, 3));
    assert_eq!(finding.total_ns, 7_000_000_000);

    // At the end of the capture, an answer may still come.
    let mut talk = Talk::new(1, 0);
    talk.control(Client, SYN, syn());
    assert_eq!(trace(&talk.frames).findings.len(), 0);
}

/// Returns what is said of a SYN-ACK that comes again `wait_us` after what is `between` it and the first.
fn syn_ack_again(wait_us: u64, between: impl Fn(&mut Talk)) -> Trace {
    let mut talk = Talk::new(1, 1);
    let options = || syn_options((1460, Some(7)));
    talk.control(Client, SYN, options()).wait_us(20_000);
    let mut again = talk.packet(Server, 0);
    (again.flags, again.options) = (SYN | ACK, options());
    talk.control(Server, SYN | ACK, options()).wait_us(100);
    between(&mut talk);
    talk.wait_us(wait_us).send(again);
    talk.wait_us(100).ack(Client);
    talk.wait_us(100).data(Client, 300);
    talk.wait_us(20_000).data(Server, 300);
    trace(&talk.frames)
}

#[test]
fn a_syn_ack_that_comes_again_is_not_a_syn() {
    for (acknowledged, words) in [
        (false, "saw no acknowledgement"),
        (true, "had acknowledged it"),
    ] {
        let trace = syn_ack_again(1_000_000, |talk| {
            if acknowledged {
                talk.ack(Client);
            }
        });
        let finding = found(&trace, Kind::SynAgain).expect("a SYN-ACK that came again");
        assert_eq!((finding.who_is, finding.count), (End::Server, 1));
        assert!(finding.claim.contains("SYN-ACK"), "{}", finding.claim);
        assert!(
            finding.explanation.contains(words),
            "{}",
            finding.explanation
        );
    }
    // It left before the acknowledgement can have come to its sender: the way doubled it.
    let doubled = syn_ack_again(5000, |talk| {
        talk.ack(Client);
    });
    assert_eq!(doubled.findings.len(), 0, "{:?}", doubled.findings);
    // It answers a SYN that was sent again: that is told.
    let trace = syn_ack_again(1_000_000, |talk| {
        let mut syn = talk.packet(Client, 0);
        (syn.flags, syn.acknowledgement, syn.sequence) = (SYN, 0, 1);
        syn.options = syn_options((1460, Some(7)));
        talk.wait_us(1_000_000).send(syn);
    });
    let ends: Vec<End> = trace
        .findings
        .iter()
        .map(|finding| finding.who_is)
        .collect();
    assert_eq!(ends, [End::Client], "{:?}", trace.findings);
}

#[test]
fn resets_are_told_with_who_sent_them() {
    let mut talk = far(10_000);
    for _ in 0..5 {
        talk.wait_us(1000).data(Client, 1000);
        talk.wait_us(10_000).ack(Server);
    }
    let mut forged = talk.frames.clone();
    talk.wait_us(100).control(Server, RST | ACK, Vec::new());
    let by_server = trace(&talk.frames);
    let finding = found(&by_server, Kind::Reset).expect("a reset");
    assert_eq!((finding.who_is, finding.value), (End::Server, 0));
    assert_eq!(frames_of(finding).last(), Some(&(talk.frames.len() as u64)));
    let (time_ns, mut frame) = talk.frames.last().expect("the reset").clone();
    frame[22] = 120;
    forged.push((time_ns, frame));
    let forged = trace(&forged);
    let finding = found(&forged, Kind::Reset).expect("a reset");
    assert_eq!(finding.value, 64 << 8 | 120);
    assert!(
        finding.explanation.contains("120"),
        "{}",
        finding.explanation
    );
    // Behind a FIN a reset is a way to say goodbye.
    let mut talk = far(10_000);
    talk.wait_us(1000)
        .data(Client, 1000)
        .wait_us(10_000)
        .ack(Server);
    talk.control(Server, common::FIN | ACK, Vec::new());
    talk.wait_us(100).control(Client, RST | ACK, Vec::new());
    assert!(found(&trace(&talk.frames), Kind::Reset).is_none());
    // A keepalive's answer.
    let mut talk = far(10_000);
    talk.wait_us(1000)
        .data(Client, 1000)
        .wait_us(10_000)
        .ack(Server);
    talk.wait_us(60_000_000).again(Client, 1, 0);
    talk.wait_us(10_000).control(Server, RST, Vec::new());
    let half_open = trace(&talk.frames);
    assert!(found(&half_open, Kind::HalfOpen).is_some());
    assert!(found(&half_open, Kind::Reset).is_none());
}

#[test]
fn a_peer_that_falls_silent_is_told_once() {
    // A full segment, or a last byte, which is no keepalive while it is not acknowledged.
    for (bytes, resets) in [(1460, false), (1460, true), (1, false)] {
        let mut talk = far(10_000);
        talk.wait_us(10_000)
            .data(Client, 500)
            .wait_us(10_000)
            .ack(Server);
        let heard = talk.frames.len() as u64;
        talk.wait_us(60_000_000).data(Client, bytes);
        for power in 0..5 {
            talk.wait_us(300_000 << power)
                .again(Client, bytes as u32, bytes);
        }
        if resets {
            talk.control(Client, RST | ACK, Vec::new());
        }
        let last = talk.frames.len() as u64;
        let trace = trace(&talk.frames);
        let kinds: Vec<Kind> = trace.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [Kind::PeerSilent], "{:?}", trace.findings);
        let finding = &trace.findings[0];
        assert_eq!((finding.who_is, finding.value), (End::Server, 5));
        assert_eq!(finding.total_ns, 9_300_000_000);
        assert_eq!(frames_of(finding), [heard, last]);
    }
    // It came back.
    let mut talk = far(10_000);
    talk.wait_us(10_000).data(Client, 1460);
    for power in 0..5 {
        talk.wait_us(300_000 << power).again(Client, 1460, 1460);
    }
    talk.wait_us(10_000).ack(Server);
    let back = trace(&talk.frames);
    assert!(found(&back, Kind::PeerSilent).is_none());
    assert!(found(&back, Kind::RetransmissionTimeout).is_some());
}

/// A connection of which the first keepalive is answered, and the `unanswered` ones after it are not.
fn kept_alive(unanswered: u32) -> Talk {
    let mut talk = far(10_000);
    talk.wait_us(10_000)
        .data(Client, 500)
        .wait_us(10_000)
        .ack(Server);
    talk.wait_us(75_000_000).again(Client, 1, 0);
    talk.wait_us(10_000).ack(Server);
    talk.wait_us(65_000_000);
    for _ in 0..unanswered {
        talk.wait_us(10_000_000).again(Client, 1, 0);
    }
    talk
}

#[test]
fn the_first_payload_of_an_end_waited_for_no_timer() {
    // Its number is the SYN's: a generator that counts nothing.
    let mut talk = far(10_000);
    talk.wait_us(1000).again(Client, 1, 300);
    talk.wait_us(10_000).again(Server, 1, 300);
    let wrong = trace(&talk.frames);
    assert_eq!(wrong.findings.len(), 0, "{:?}", wrong.findings);
    assert_eq!(wrong.totals.retransmissions, 0);
    // It was lost before the capture, which saw an acknowledgement of its sender behind it.
    let mut talk = far(10_000);
    talk.wait_us(1000).skip(Client, 300).ack(Client);
    talk.wait_us(300_000).again(Client, 300, 300);
    talk.wait_us(10_000).ack(Server);
    let lost = trace(&talk.frames);
    assert_eq!(lost.totals.retransmissions, 1);
    let longest = lost.findings.iter().map(|finding| finding.total_ns).max();
    assert!(longest.unwrap_or(0) < 1_000_000_000, "{:?}", lost.findings);
}

#[test]
fn keepalives_without_an_answer_are_told_as_such() {
    for resets in [false, true] {
        let mut talk = kept_alive(5);
        let mut last = talk.frames.len() as u64;
        let first = last - 4;
        if resets {
            talk.wait_us(10_000_000)
                .control(Client, RST | ACK, Vec::new());
            last += 1;
        }
        let trace = trace(&talk.frames);
        let kinds: Vec<Kind> = trace.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [Kind::KeepaliveUnanswered], "{:?}", trace.findings);
        let finding = &trace.findings[0];
        assert_eq!((finding.who_is, finding.value), (End::Server, 5));
        assert_eq!(frames_of(finding), [first - 1, first, last]);
        // From the first of them on; what was idle before was not silent.
        let silent_us = if resets { 50_000_000 } else { 40_000_000 };
        assert_eq!(finding.total_ns, silent_us * 1000);
        let whole_us = only(&trace).duration_ns / 1000;
        let time = life(&trace);
        assert!(is_near(time.silence, silent_us, whole_us), "{time:?}");
        let idle = 150_000_000.0 / whole_us as f64;
        assert!((time.idle - idle).abs() < 1e-3, "{time:?}");
    }
    // The first was answered, or the last in the end; one alone is none.
    let unheard = |talk: &Talk| found(&trace(&talk.frames), Kind::KeepaliveUnanswered).is_some();
    assert!(!unheard(&kept_alive(0)) && !unheard(&kept_alive(1)));
    let mut late = kept_alive(5);
    late.wait_us(10_000).ack(Server);
    assert!(!unheard(&late));
    assert_eq!(life(&trace(&late.frames)).silence, 0.0);
    // A reset of the other end is its answer.
    let mut forgotten = kept_alive(2);
    forgotten.wait_us(10_000).control(Server, RST, Vec::new());
    assert!(!unheard(&forgotten));
    assert!(found(&trace(&forgotten.frames), Kind::HalfOpen).is_some());
    // What is sent meanwhile is more than a keepalive.
    let mut speaks = kept_alive(2);
    speaks.wait_us(10_000).data(Client, 300);
    for _ in 0..3 {
        speaks.wait_us(1_000_000).again(Client, 300, 300);
    }
    assert!(!unheard(&speaks));
    assert!(found(&trace(&speaks.frames), Kind::PeerSilent).is_some());
}

#[test]
fn network_or_server_has_an_answer() {
    for (thinks_us, trip_us) in [(400_000, 20_000), (500, 400_000)] {
        let mut talk = far(trip_us);
        for _ in 0..10 {
            talk.wait_us(10_000).data(Client, 200);
            talk.wait_us(trip_us + thinks_us).data(Server, 900);
            talk.wait_us(50).ack(Client);
        }
        let trace = trace(&talk.frames);
        let answers = only(&trace).from_server.answers.expect("answers");
        assert_eq!((answers.count, answers.min_ns), (10, thinks_us * 1000));
        let finding = found(&trace, Kind::SlowAnswer);
        assert_eq!(finding.is_some(), thinks_us > trip_us, "{finding:?}");
        if let Some(finding) = finding {
            assert_eq!((finding.count, finding.total_ns), (10, 4_000_000_000));
        }
    }
    let mut talk = far(20_000);
    for _ in 0..10 {
        talk.wait_us(300_000).data(Client, 200);
        talk.wait_us(20_000)
            .data(Server, 900)
            .wait_us(50)
            .ack(Client);
    }
    let pauses = trace(&talk.frames);
    let finding = found(&pauses, Kind::ClientPause).expect("pauses");
    assert_eq!((finding.who_is, finding.count), (End::Client, 9));
    assert!(found(&pauses, Kind::SlowAnswer).is_none());
}

/// Returns what is said of `count` requests over a way of `trip_us`, each of which the server answers after
/// `thinks_us`, and the client goes on after `pauses_us`.
fn asked(count: u32, [trip_us, thinks_us, pauses_us]: [u64; 3]) -> Trace {
    let mut talk = far(trip_us);
    for _ in 0..count {
        talk.wait_us(pauses_us).data(Client, 200);
        talk.wait_us(trip_us + thinks_us).data(Server, 900);
        talk.wait_us(50).ack(Client);
    }
    trace(&talk.frames)
}

#[test]
fn the_network_is_told_where_it_took_most_of_the_time() {
    let far = asked(40, [100_000, 2000, 1000]);
    let finding = found(&far, Kind::RoundTrips).expect("round trips");
    assert_eq!((finding.who_is, finding.count), (End::Server, 40));
    assert_eq!(finding.round_trip_ns, Some(100_100_000 - 50_000));
    let share = finding.total_ns as f64 / finding.out_of as f64;
    assert!((share - life(&far).round_trip).abs() < 1e-6 && share > 0.9);
    assert!(found(&far, Kind::SlowAnswer).is_none());
    // Beside a server that takes a part of it.
    let both = asked(40, [100_000, 80_000, 1000]);
    assert!(found(&both, Kind::RoundTrips).is_some());
    assert!(found(&both, Kind::SlowAnswer).is_some());
    let untold = [
        (40, [100_000, 120_000, 1000]), // the server took more,
        (40, [100_000, 2000, 200_000]), // or the client,
        (9, [100_000, 2000, 1000]),     // it was short,
        (15, [100_000, 2000, 1000]),    // or no chain of requests,
        (400, [3000, 100, 100]),        // or in a building.
    ];
    for (count, times) in untold {
        let trace = asked(count, times);
        assert!(found(&trace, Kind::RoundTrips).is_none(), "{times:?}");
    }
}

#[test]
fn round_trips_are_told_only_if_a_handshake_shows_the_way() {
    // The server takes 100 ms for each answer, and acknowledges with it: the way may be short.
    let mut talk = Talk::new(1, 1);
    for _ in 0..40 {
        talk.wait_us(100).data(Client, 200);
        talk.wait_us(100_000).data(Server, 900);
        talk.wait_us(50).ack(Client);
    }
    assert!(found(&trace(&talk.frames), Kind::RoundTrips).is_none());
    // What was lost is loss's: a timer for each request.
    let mut talk = far(20_000);
    for _ in 0..40 {
        talk.wait_us(100).data(Client, 200);
        talk.wait_us(250_000).again(Client, 200, 200);
        talk.wait_us(20_000).data(Server, 900);
        talk.wait_us(50).ack(Client);
    }
    assert!(found(&trace(&talk.frames), Kind::RoundTrips).is_none());
}

#[test]
fn a_slow_server_is_one_finding_for_all_of_its_clients() {
    for clients in [1, 10, 300] {
        let mut frames = Vec::new();
        for at in 0..clients {
            let mut talk = far(20_000);
            // Of ten requests seven are answered at once, and three late: the last client waits longest.
            for request in 0..10 {
                let late_us = if request < 7 { 0 } else { 300_000 };
                let last_us = if at == clients - 1 { 2 * late_us } else { 0 };
                talk.wait_us(100).data(Client, 200).wait_us(20_000);
                if late_us > 0 {
                    // No host waits for so long with its acknowledgement.
                    talk.wait_us(200_000).ack(Server);
                    talk.wait_us(late_us + last_us - 200_000);
                }
                talk.data(Server, 900);
                talk.wait_us(50).ack(Client);
            }
            for (time_ns, mut frame) in talk.frames {
                // The client's address, as source or as target.
                let place = if frame[29] == 1 { 28 } else { 32 };
                frame[place..place + 2]
                    .copy_from_slice(&[(at / 250) as u8 + 9, (at % 250) as u8 + 3]);
                frames.push((time_ns + at * 1_000_000_000, frame));
            }
        }
        let trace = trace(&frames);
        let found = trace.findings.iter();
        let slow: Vec<_> = found.filter(|one| one.kind == Kind::SlowAnswer).collect();
        assert_eq!(slow.len(), 1, "{:?}", trace.findings);
        let finding = slow[0];
        assert_eq!(u64::from(finding.connections), clients);
        assert_eq!(
            (finding.count, finding.longest_ns),
            (3 * clients, 900_000_000)
        );
        assert_eq!(finding.others, (clients as u32 - 1).min(63));
        let median_ms = finding.value / 1_000_000;
        let expected_ms = if clients == 1 { 900 } else { 300 };
        assert!(
            median_ms.abs_diff(expected_ms) < expected_ms / 8,
            "{median_ms} of {clients}"
        );
        let words = match clients {
            1 => "900 ms at the longest",
            10 => ", in 10 connections of 10 clients",
            _ => ", in 300 connections of 64 clients and more",
        };
        assert!(finding.claim.ends_with(words), "{}", finding.claim);
    }
}

#[test]
fn a_queue_is_not_a_small_window() {
    // The window is always full; round trips rise from 20 to 400 ms.
    for queued_us in [0, 380_000] {
        let mut talk = far(20_000);
        talk.window(Server, 400);
        talk.wait_us(100)
            .data(Client, 1460)
            .wait_us(20_000)
            .ack(Server);
        for _ in 0..40 {
            for _ in 0..35 {
                talk.wait_us(5).data(Client, 1460);
            }
            talk.wait_us(20_000 + queued_us).ack(Server);
        }
        let trace = trace(&talk.frames);
        let queue = found(&trace, Kind::Queue);
        let window = found(&trace, Kind::WindowLimit);
        assert_eq!(queue.is_some(), queued_us > 0, "{queue:?}");
        assert_eq!(window.is_some(), queued_us == 0, "{window:?}");
        if let Some(queue) = queue {
            let ms = queue.total_ns / 1_000_000;
            assert!((340..=420).contains(&ms), "{ms}");
        }
    }
}

#[test]
fn connections_behind_one_queue_wait_in_it_at_the_same_time() {
    let mut talks = [(40_000, 0), (40_001, 0), (40_002, 60_000_000)].map(|(port, after_us)| {
        let mut talk = Talk::new(1, 1).client_port(port);
        talk.wait_us(after_us);
        let options = || syn_options((1460, Some(7)));
        talk.window(Server, 400);
        talk.control(Client, SYN, options()).wait_us(20_000);
        talk.control(Server, SYN | ACK, options()).wait_us(100);
        talk.ack(Client);
        talk
    });
    for talk in &mut talks {
        talk.wait_us(100).data(Client, 1460);
        talk.wait_us(20_000).ack(Server);
        for _ in 0..40 {
            for _ in 0..35 {
                talk.wait_us(5).data(Client, 1460);
            }
            talk.wait_us(400_000).ack(Server);
        }
    }
    let alone = trace(&talks[0].frames);
    let alone = found(&alone, Kind::Queue).expect("a queue");
    let of = |talks: &[&Talk]| {
        let frames = talks.iter().flat_map(|talk| talk.frames.clone());
        let mut frames: Vec<_> = frames.collect();
        frames.sort_by_key(|(time_ns, _)| *time_ns);
        found(&trace(&frames), Kind::Queue)
            .expect("a queue")
            .clone()
    };
    let [first, second, later] = &talks;
    let both = of(&[first, second]);
    assert_eq!((alone.connections, both.connections), (1, 2));
    // One after the other they have it in turn.
    let turns = of(&[first, later]);
    assert_eq!(turns.connections, 2);
    assert_eq!((turns.value, turns.out_of), (alone.value, alone.out_of));
    assert_eq!(both.total_ns, alone.total_ns);
    assert!((340_000_000..=420_000_000).contains(&both.total_ns));
    assert!(both.total_ns <= both.longest_ns);
    // Twice the rate has twice as much in it.
    assert_eq!(
        (both.value, both.out_of),
        (2 * alone.value, 2 * alone.out_of)
    );
    assert!(alone.explanation.contains("of this connection"));
    assert!(both.explanation.contains("of these connections"));
}

#[test]
fn frames_that_the_capture_lost_are_said() {
    let mut talk = far(10_000);
    for _ in 0..10 {
        talk.wait_us(10)
            .data(Client, 1460)
            .skip(Client, 1460)
            .data(Client, 1460);
        talk.wait_us(10_000).ack(Server);
    }
    let trace = trace(&talk.frames);
    assert_eq!(trace.totals.holes_of_capture, 10);
    let told = |warning: &String| warning.contains("not in the capture");
    assert!(trace.warnings.iter().any(told), "{:?}", trace.warnings);
    assert!(found(&trace, Kind::Loss).is_none());
}

#[test]
fn the_sender_sees_reordering_too() {
    let mut talk = far(10_000);
    for _ in 0..12 {
        for _ in 0..8 {
            talk.wait_us(10).data(Client, 1460);
        }
        talk.wait_us(10_000).sack(Server, 8 * 1460, 2 * 1460);
        talk.wait_us(100).ack(Server);
    }
    let trace = trace(&talk.frames);
    let finding = found(&trace, Kind::Reordering).expect("reordering");
    assert_eq!((finding.who_is, finding.count), (End::Client, 12));
    assert!(found(&trace, Kind::Loss).is_none());
}

#[test]
fn proofs_carry_a_filter() {
    let mut talk = far(10_000);
    talk.wait_us(10_000).data(Client, 500);
    let sent = talk.frames.len();
    talk.wait_us(300_000)
        .again(Client, 500, 500)
        .wait_us(10_000)
        .ack(Server);
    let trace = trace(&talk.frames);
    let filter = format!("frame.number in {{{sent}, {}}}", sent + 1);
    assert_eq!(trace.findings[0].proofs[0].filter, filter);
}

#[test]
fn one_filter_shows_all_proofs() {
    for (losses, more) in [
        (2, None),
        (3, Some("… and 1 more\n")),
        (9, Some("… and 7 more, 2 of them in the filter\n")),
    ] {
        let mut talk = far(10_000);
        let mut frames = Vec::new();
        for _ in 0..losses {
            talk.wait_us(10_000).data(Client, 500);
            frames.push(talk.frames.len());
            talk.wait_us(300_000).again(Client, 500, 500);
            frames.push(talk.frames.len());
            talk.wait_us(10_000).ack(Server);
        }
        let text = linerate_trace::text::text(&trace(&talk.frames), LOOK);
        // Four examples are kept.
        frames.truncate(8);
        let numbers: Vec<String> = frames.iter().map(ToString::to_string).collect();
        let numbers = numbers.join(", ");
        let filter = format!("Wireshark: frame.number in {{{numbers}}}\n");
        assert!(text.contains(&filter), "{filter}: {text}");
        assert!(more.is_none_or(|more| text.contains(more)), "{text}");
        assert_eq!(text.contains("… and"), more.is_some(), "{text}");
    }
    // Of counts, the connection.
    let text = linerate_trace::text::text(&asked(40, [100_000, 2000, 1000]), LOOK);
    assert!(text.contains("Wireshark: ip.addr == 10.0.0.1 &&"), "{text}");
}

#[test]
fn none_says_what_was_looked_for() {
    let mut talk = Talk::new(1, 1);
    talk.wait_us(100).data(Client, 100).wait_us(100).ack(Server);
    let look = linerate_trace::text::Look {
        columns: 100,
        color: false,
        connections: 1,
    };
    let text = linerate_trace::text::text(&trace(&talk.frames), look);
    assert!(
        text.contains("Looked for") && text.contains("no handshake"),
        "{text}"
    );
}

#[test]
fn trains_of_the_other_end_are_not_ones_own() {
    let mut talk = far(200);
    for _ in 0..40 {
        talk.wait_us(300).data(Server, 100);
    }
    talk.wait_us(300).ack(Client);
    for _ in 0..70 {
        talk.wait_us(300)
            .data(Client, 100)
            .wait_us(300)
            .data(Server, 1460);
    }
    let trace = trace(&talk.frames);
    let finding = found(&trace, Kind::SmallSegments);
    assert!(
        finding.is_none_or(|finding| finding.who_is == End::Server),
        "{finding:?}"
    );
}

/// Returns the shares of a life, which add up to 1.
fn life(trace: &Trace) -> LifeReport {
    let time = only(trace).time.expect("shares");
    let all = [
        time.handshake,
        time.client,
        time.server,
        time.round_trip,
        time.window,
        time.congestion,
        time.recovery,
        time.nagle,
        time.silence,
        time.idle,
        time.unseen,
    ];
    let sum: f64 = all.iter().sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}: {time:?}");
    time
}

fn is_near(share: f64, part_us: u64, whole_us: u64) -> bool {
    (share - part_us as f64 / whole_us as f64).abs() < 1e-6
}

#[test]
fn a_life_is_shared_out_between_network_and_programs() {
    // Ten requests: the way takes 20 ms, the server 30 ms, the client 50 ms before the next.
    let mut talk = far(20_000);
    for _ in 0..10 {
        talk.wait_us(50_000).data(Client, 200);
        talk.wait_us(50_000)
            .data(Server, 900)
            .wait_us(50)
            .ack(Client);
    }
    talk.wait_us(99_400).ack(Client);
    let whole_us = 20_100 + 10 * 100_050 + 99_400;
    let time = life(&trace(&talk.frames));
    assert!(is_near(time.handshake, 20_100, whole_us), "{time:?}");
    // The last acknowledgement of the client is 50 µs late for its leg of 50 µs.
    assert!(is_near(time.server, 10 * 30_000, whole_us), "{time:?}");
    assert!(
        (time.client - 500_000.0 / whole_us as f64).abs() < 1e-3,
        "{time:?}"
    );
    assert!(
        (time.round_trip - 200_000.0 / whole_us as f64).abs() < 1e-3,
        "{time:?}"
    );
    assert!(time.idle > 0.08 && time.unseen == 0.0, "{time:?}");
}

#[test]
fn what_nagle_holds_is_no_programs_time() {
    let mut talk = far(200);
    for _ in 0..50 {
        talk.wait_us(1000).data(Client, 100);
        talk.wait_us(40_000).ack(Server);
        talk.wait_us(220).data(Client, 100);
        talk.wait_us(300).data(Server, 30).wait_us(100).ack(Client);
    }
    let trace = trace(&talk.frames);
    let time = life(&trace);
    let finding = found(&trace, Kind::NagleDelayedAck).expect("Nagle");
    let told = finding.total_ns as f64 / only(&trace).duration_ns as f64;
    assert!(
        time.nagle > 0.9 && (time.nagle - told).abs() < 0.02,
        "{time:?} {told}"
    );
    assert!(time.client < 0.05, "{time:?}");
}

#[test]
fn timers_and_silences_have_their_shares() {
    let mut talk = far(10_000);
    talk.wait_us(10_000)
        .data(Client, 500)
        .wait_us(10_000)
        .ack(Server);
    talk.wait_us(1_000_000).data(Client, 500);
    talk.wait_us(300_000).again(Client, 500, 500);
    talk.wait_us(10_000).ack(Server);
    let came_back = life(&trace(&talk.frames));
    let whole_us = 20_100 + 10_000 + 1_300_000 + 10_000 + 10_000 - 10_000;
    assert!(
        is_near(came_back.recovery, 310_000, whole_us),
        "{came_back:?} {whole_us}"
    );
    talk.wait_us(1_000_000).data(Client, 500);
    for power in 0..5 {
        talk.wait_us(300_000 << power).again(Client, 500, 500);
    }
    let gone = life(&trace(&talk.frames));
    assert!(
        is_near(gone.silence, 9_300_000, whole_us + 10_300_000),
        "{gone:?}"
    );
}

#[test]
fn a_full_window_has_its_share_and_the_far_end_does_not_show() {
    let mut talk = far(20_000);
    talk.window(Server, 23);
    talk.wait_us(100)
        .data(Client, 1460)
        .wait_us(20_000)
        .ack(Server);
    for _ in 0..40 {
        for _ in 0..2 {
            talk.wait_us(5).data(Client, 1460);
        }
        talk.wait_us(20_000).ack(Server);
    }
    let time = life(&trace(&talk.frames));
    assert!(time.window > 0.9, "{time:?}");
    // The same stream where it arrives: acknowledged as it is seen.
    let mut talk = Talk::new(1, 1).with_stamps();
    let options = || syn_options((1460, Some(7)));
    talk.control(Client, SYN, options()).wait_us(20);
    talk.control(Server, SYN | ACK, options()).wait_us(20_000);
    talk.ack(Client);
    for _ in 0..40 {
        talk.wait_us(30_000)
            .data(Client, 1448)
            .wait_us(5)
            .ack(Server);
    }
    let trace = trace(&talk.frames);
    let time = life(&trace);
    assert!(time.unseen > 0.9 && time.client < 0.01, "{time:?}");
    let gap = only(&trace).gaps.first().expect("waits");
    assert_eq!((gap.cause, gap.end), (Cause::Unseen, End::Client));
    let text = linerate_trace::text::text(&trace, LOOK);
    assert!(!text.contains("pauses of the client"), "{text}");
    assert!(
        text.contains("waits whose reason does not show here"),
        "{text}"
    );
}

const LOOK: linerate_trace::text::Look = linerate_trace::text::Look {
    columns: 100,
    color: false,
    connections: 1,
};

#[test]
fn text_and_document_have_the_same_shares() {
    let mut talk = far(20_000);
    for _ in 0..10 {
        talk.wait_us(100).data(Client, 200);
        talk.wait_us(60_000)
            .data(Server, 900)
            .wait_us(50)
            .ack(Client);
    }
    let trace = trace(&talk.frames);
    let server = life(&trace).server;
    let text = linerate_trace::text::text(&trace, LOOK);
    // As whole percents that add up.
    let whole = [(server * 100.0).floor(), (server * 100.0).ceil()];
    let words = whole.map(|percent| format!("server's program {percent} %"));
    assert!(words.iter().any(|one| text.contains(one)), "{text}");
    let document: serde_json::Value = serde_json::from_str(&trace.json()).expect("JSON");
    assert_eq!(
        document["connections"][0]["time"]["server"].as_f64(),
        Some(server)
    );
}

#[test]
fn printed_shares_add_up() {
    // Handshake, way, server and client have a quarter each, but for some microseconds.
    for (trips, extra_us) in [(3, 0), (7, 1300), (11, 2900)] {
        let mut talk = far(20_000);
        for _ in 0..trips {
            talk.wait_us(9000 + extra_us).data(Client, 200);
            talk.wait_us(33_000).data(Server, 900).wait_us(50);
        }
        let text = linerate_trace::text::text(&trace(&talk.frames), LOOK);
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("time: "));
        let parts = line.expect("shares").split(", ");
        let percents = parts.map(|part| {
            let words: Vec<&str> = part.rsplitn(3, ' ').collect();
            words[1].parse::<u32>().expect("a whole number")
        });
        assert_eq!(percents.sum::<u32>(), 100, "{text}");
    }
}

#[test]
fn findings_of_the_same_frames_are_one() {
    // Each request is lost once: timer and loss are the same frames.
    let mut talk = far(10_000);
    for _ in 0..4 {
        talk.wait_us(10_000).data(Client, 500);
        talk.wait_us(300_000).again(Client, 500, 500);
        talk.wait_us(10_000)
            .data(Server, 100)
            .wait_us(100)
            .ack(Client);
    }
    let trace = trace(&talk.frames);
    let mut shown = std::collections::BTreeSet::new();
    for finding in &trace.findings {
        for proof in finding.proofs.iter().filter(|proof| proof.frames.len() > 1) {
            for frame in &proof.frames {
                assert!(shown.insert(frame.number()), "{:?}", trace.findings);
            }
        }
    }
    let costs = trace.findings.iter().map(|finding| finding.total_ns);
    assert!(costs.is_sorted_by(|one, other| one >= other));
}

#[test]
fn lengths_beyond_the_frame_are_counted() {
    let mut talk = far(10_000);
    talk.wait_us(1000).data(Client, 100);
    let (_, frame) = talk.frames.last_mut().expect("a frame");
    frame[16..18].copy_from_slice(&1500u16.to_be_bytes());
    let trace = trace(&talk.frames);
    assert_eq!(trace.totals.shortened, 1);
    let told = |warning: &String| warning.starts_with("1 packet says that it is longer");
    assert!(trace.warnings.iter().any(told), "{:?}", trace.warnings);
}

#[test]
fn what_a_wait_is_not_known_to_be_is_not_told() {
    // No round trip to the server was ever seen: its part of the wait is not known.
    let mut talk = Talk::new(1, 1);
    for _ in 0..10 {
        talk.wait_us(1000).data(Client, 200);
        talk.wait_us(300_000).data(Server, 900);
    }
    assert!(found(&trace(&talk.frames), Kind::ClientPause).is_none());
    // The request was sent again: the network took its part.
    let mut talk = far(20_000);
    for _ in 0..10 {
        talk.wait_us(1000).data(Client, 200);
        talk.wait_us(250_000).again(Client, 200, 200);
        talk.wait_us(100_000)
            .data(Server, 900)
            .wait_us(50)
            .ack(Client);
    }
    assert!(found(&trace(&talk.frames), Kind::SlowAnswer).is_none());
    // A SYN behind an established handshake is no setup that went wrong.
    let mut talk = far(20_000);
    let mut again = talk.packet(Client, 0);
    (again.sequence, again.flags, again.acknowledgement) = (1, SYN, 0);
    again.options = syn_options((1460, Some(7)));
    talk.wait_us(100_000)
        .send(again)
        .wait_us(20_000)
        .ack(Server);
    assert!(found(&trace(&talk.frames), Kind::SynAgain).is_none());
}

#[test]
fn what_the_receiver_had_is_no_burst_of_loss() {
    let mut talk = far(20_000);
    for _ in 0..10 {
        talk.wait_us(10).data(Client, 1460);
    }
    talk.wait_us(20_000).ack(Server);
    for at in 0..8 {
        talk.wait_us(10).again(Client, (10 - at) * 1460, 1460);
    }
    talk.wait_us(20_000).ack(Server);
    let trace = trace(&talk.frames);
    assert!(found(&trace, Kind::LossBurst).is_none());
    assert_eq!(found(&trace, Kind::Spurious).expect("in vain").count, 8);
}

/// A receiver whose largest window is 64 000 B leaves `left` of it in each round, and 1024 B until its program has
/// read; a round takes `wait_us(round)`.
fn read_slowly(rounds: u32, left: u16, wait_us: impl Fn(u32) -> u64) -> Talk {
    let mut talk = far(1000);
    talk.window(Server, 500);
    talk.wait_us(100).data(Client, 1460);
    talk.wait_us(1000).ack(Server);
    for _ in 0..40 {
        talk.wait_us(5).data(Client, 1460);
    }
    talk.window(Server, left).wait_us(1000).ack(Server);
    for round in 0..rounds {
        for _ in 0..(u64::from(left) << 7) / 1460 {
            talk.wait_us(5).data(Client, 1460);
        }
        talk.window(Server, 8).wait_us(1000).ack(Server);
        talk.window(Server, left)
            .wait_us(wait_us(round))
            .ack(Server);
    }
    talk
}

#[test]
fn a_window_that_shrinks_and_does_not_close_is_a_slow_reader() {
    let trace = trace(&read_slowly(60, 43, |_| 20_000).frames);
    let slow = found(&trace, Kind::SlowReader).expect("a slow reader");
    assert_eq!((slow.who_is, slow.value), (End::Server, 500 << 7));
    let share = slow.total_ns as f64 / slow.out_of as f64;
    assert!((0.9..1.0).contains(&share), "{share}");
    for kind in [Kind::WindowLimit, Kind::ZeroWindow, Kind::Queue] {
        assert!(found(&trace, kind).is_none(), "{kind:?}");
    }
}

#[test]
fn what_looks_like_a_slow_reader() {
    // Its sender had no more for a while: nobody was held back by what was left of the window.
    let idle = read_slowly(60, 43, |round| if round == 30 { 9_000_000 } else { 200 });
    assert!(found(&trace(&idle.frames), Kind::SlowReader).is_none());
    // A small window that never was larger is a small window.
    let mut small = far(20_000);
    small.window(Server, 43);
    // One that grows is always as large as it ever was.
    let mut grows = far(20_000);
    for round in 0..60 {
        grows.window(Server, 43 + 12 * round);
        grows.wait_us(20_000).ack(Server);
        for (talk, window) in [(&mut small, 43), (&mut grows, 43 + 12 * round)] {
            for _ in 0..(u64::from(window) << 7) / 1460 {
                talk.wait_us(5).data(Client, 1460);
            }
            talk.wait_us(20_000).ack(Server);
        }
    }
    for talk in [small, grows] {
        let trace = trace(&talk.frames);
        assert!(found(&trace, Kind::SlowReader).is_none());
        assert!(found(&trace, Kind::WindowLimit).is_some());
    }
}
