//! What happens and what looks like it, side by side: each is told where the capture proves it, and only there.

use crate::common;

use std::net::IpAddr;

use common::{ACK, From, RST, SYN, Talk, ipv4, syn_options, trace};
use linerate_model::sample::End;
use linerate_trace::text::Look;
use linerate_trace::{Cause, ConnectionReport, TcpFinding, TcpFindingKind as Kind, Trace};

use From::{Client, Server};

fn only(trace: &Trace) -> &ConnectionReport {
    assert_eq!(trace.connections.len(), 1, "one connection");
    &trace.connections[0]
}

fn found(trace: &Trace, kind: Kind) -> Option<&TcpFinding> {
    trace.findings.iter().find(|finding| finding.kind == kind)
}

/// Returns what a terminal shows, in one line.
fn text(trace: &Trace) -> String {
    let look = Look {
        columns: 100,
        color: false,
        connections: 10,
    };
    let text = linerate_trace::text::text(trace, look);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A connection captured at the client, 20 ms from the server, whose ends offer so much.
fn far_with_mss([client, server]: [u16; 2]) -> Talk {
    let mut talk = Talk::new(1, 1);
    talk.control(Client, SYN, syn_options((client, Some(7))));
    talk.wait_us(20_000);
    talk.control(Server, SYN | ACK, syn_options((server, Some(7))));
    talk.wait_us(100).ack(Client);
    talk
}

#[test]
fn a_full_segment_is_as_long_as_the_other_end_takes() {
    // What each end offers, what the client sends, and its full segment: the MSS is that of the receiver (RFC 9293,
    // section 3.7.1), unless the sender's own link carries less.
    for (offers, sent, full, is_superframe) in [
        ([1460, 1460], 1460, 1460, false),
        ([1460, 1460], 2920, 1460, true),
        // The client's offer was set or rewritten to less than it sends.
        ([1380, 1460], 1460, 1460, false),
        ([536, 1460], 1460, 1460, false),
        ([536, 1460], 2920, 1460, true),
        // The server takes more than the client's link carries.
        ([1460, 8960], 1460, 1460, false),
        ([1460, 8960], 2920, 1460, true),
        ([8960, 1460], 1460, 1460, false),
        ([8960, 1460], 2920, 1460, true),
    ] {
        let mut talk = far_with_mss(offers);
        for _ in 0..20 {
            for _ in 0..4 {
                talk.wait_us(10).data(Client, sent);
            }
            talk.wait_us(20_000).ack(Server);
        }
        let trace = trace(&talk.frames);
        let case = format!("{offers:?} {sent}");
        let connection = only(&trace);
        assert_eq!(connection.from_client.segment_bytes, Some(full), "{case}");
        let is_found = found(&trace, Kind::Superframes).is_some();
        assert_eq!(is_found, is_superframe, "{case}");
        assert_eq!(connection.from_client.counts.expect("counts").small, 0);
        // Full segments on their way are no pause of a program.
        let time = connection.time.expect("shares");
        assert!(time.client < 0.1, "{case}: {time:?}");
    }
}

/// A capture that begins after the handshake: ten requests, whose answers acknowledge them, unless the server does so
/// at once, 20 ms after.
fn begun_before(acknowledges_at_once: bool) -> Trace {
    let mut talk = Talk::new(1, 1);
    for _ in 0..10 {
        talk.data(Client, 200).wait_us(20_000);
        if acknowledges_at_once {
            talk.ack(Server);
        }
        talk.wait_us(380_000).data(Server, 900).wait_us(50);
        talk.ack(Client).wait_us(1000);
    }
    trace(&talk.frames)
}

#[test]
fn without_an_acknowledgement_of_its_own_way_and_program_are_one() {
    let bound = begun_before(false);
    let connection = only(&bound);
    assert!(connection.from_client.round_trip_is_bound);
    assert!(!connection.from_server.round_trip_is_bound);
    let time = connection.time.expect("shares");
    assert!(time.unseen > 0.9 && time.round_trip < 0.01, "{time:?}");
    let longest = connection.gaps.first().expect("gaps");
    assert_eq!((longest.cause, longest.end), (Cause::Unseen, End::Server));
    assert!(bound.findings.is_empty(), "{:?}", bound.findings);
    let told = text(&bound);
    assert!(told.contains("far end's program took the time until an answer"));

    let known = begun_before(true);
    let connection = only(&known);
    assert!(!connection.from_client.round_trip_is_bound);
    let time = connection.time.expect("shares");
    assert!(time.unseen < 0.01 && time.server > 0.9, "{time:?}");
    assert!(found(&known, Kind::SlowAnswer).is_some());
}

/// A server that closes its window, and answers so many of six probes of it.
fn closed_and_probed(answers: usize) -> Trace {
    let mut talk = far_with_mss([1460, 1460]);
    talk.data(Client, 1460).wait_us(20_000);
    talk.window(Server, 0).ack(Server);
    for probe in 0..6 {
        talk.wait_us(300_000 << probe).again(Client, 1, 0);
        if probe < answers {
            talk.wait_us(20_000).ack(Server);
        }
    }
    trace(&talk.frames)
}

#[test]
fn a_window_is_closed_as_long_as_its_end_is_heard_of() {
    // 300 ms and 600 ms of probes and two ways; with none answered nothing shows that it stayed closed.
    for (answers, closed_ns) in [(0, None), (2, Some(940_000_000)), (6, Some(19_020_000_000))] {
        let trace = closed_and_probed(answers);
        let closed = found(&trace, Kind::ZeroWindow).map(|finding| finding.total_ns);
        assert_eq!(closed, closed_ns, "{answers}");
        let is_silent = found(&trace, Kind::PeerSilent).is_some();
        assert_eq!(is_silent, answers < 6, "{answers}");
    }
}

/// A reset by the server with so many bytes of its own not captured before it.
fn reset(talk: &mut Talk, flags: u8, skipped: u32) {
    talk.wait_us(20_000).skip(Server, skipped);
    let mut packet = talk.packet(Server, 0);
    packet.flags = flags;
    if flags & ACK == 0 {
        packet.acknowledgement = 0;
    }
    talk.send(packet);
}

#[test]
fn a_reset_of_a_host_without_the_connection_is_told_from_one_of_a_program() {
    // How long the connection was idle before the data, the reset's flags, and how far its number lies beyond what the
    // data acknowledges.
    for (idle_s, flags, skipped, kind) in [
        (600, RST, 0, Kind::HalfOpen),
        (600, RST | ACK, 0, Kind::Reset),
        (600, RST, 100, Kind::Reset),
        (0, RST, 0, Kind::Reset),
    ] {
        let mut talk = far_with_mss([1460, 1460]);
        talk.data(Client, 400).wait_us(20_000).ack(Server);
        talk.wait_us(idle_s * 1_000_000).data(Client, 400);
        reset(&mut talk, flags, skipped);
        let trace = trace(&talk.frames);
        let told: Vec<Kind> = trace.findings.iter().map(|one| one.kind).collect();
        assert_eq!(told, [kind], "{idle_s} s, {flags:#x}, {skipped}");
    }
}

#[test]
fn an_acknowledgement_of_an_earlier_connection_is_told() {
    for is_denied in [true, false] {
        let mut talk = far_with_mss([1460, 1460]);
        talk.data(Client, 500).wait_us(20_000).ack(Server);
        let acknowledged = talk.packet(Client, 0).sequence;
        talk.wait_us(60_000_000);
        let mut syn = talk.packet(Client, 0);
        (syn.sequence, syn.acknowledgement, syn.flags) = (99_999, 0, SYN);
        syn.options = syn_options((1460, Some(7)));
        talk.send(syn).wait_us(20_000).ack(Server).wait_us(100);
        let mut reset = talk.packet(Client, 0);
        (reset.sequence, reset.acknowledgement, reset.flags) = (acknowledged, 0, RST);
        // A client that gives up resets with its own number.
        reset.sequence = if is_denied { acknowledged } else { 100_000 };
        talk.send(reset);
        let trace = trace(&talk.frames);
        let told = found(&trace, Kind::HalfOpen);
        assert_eq!(told.is_some(), is_denied, "{:?}", trace.findings);
        assert!(told.is_none_or(|told| told.who_is == End::Client));
    }
}

/// Bytes of the Ethernet header, and where IPv4 has its hop limit and its marks.
const ETHERNET_BYTES: usize = 14;
const HOP_LIMIT_AT: usize = ETHERNET_BYTES + 8;
const MARKS_AT: usize = ETHERNET_BYTES + 1;

/// Lets 10.0.0.9 say of the last frame that it did not get through, and what its link carries.
fn complain(talk: &mut Talk, [kind, code]: [u8; 2], mtu: u16) {
    let (_, frame) = talk.frames.last().expect("a frame");
    let mut icmp = vec![kind, code, 0, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(&frame[ETHERNET_BYTES..ETHERNET_BYTES + 28]);
    let mut bytes = frame[..ETHERNET_BYTES].to_vec();
    let mut ip = ipv4(1, 9, &icmp);
    (ip[9], ip[15]) = (1, 9);
    bytes.extend(ip);
    talk.frames.push((talk.now_ns + 5_000_000, bytes));
}

#[test]
fn what_routers_say_is_told_with_who_says_it() {
    for (message, hop_limit, value, words) in [
        ([3, 0], 64, 1, "10.0.0.9 says that there is no way"),
        ([3, 1], 64, 4, "10.0.0.9 says that the host of"),
        ([3, 2], 64, 5, "10.0.0.9 says that the port or protocol"),
        ([3, 3], 64, 3, "10.0.0.9 says that the port or protocol"),
        ([3, 13], 64, 2, "10.0.0.9 says that 10.0.0.1 is not allowed"),
        ([11, 0], 64, 6, "ran out at 10.0.0.9"),
        ([11, 0], 128, 6, "ran out at 10.0.0.9"),
        // A program that counts the routers of a path lets its SYNs end there.
        ([11, 0], 3, 0, ""),
        // Pieces that did not arrive in time; an answer to a ping.
        ([11, 1], 64, 0, ""),
        ([0, 0], 64, 0, ""),
    ] {
        let mut talk = Talk::new(1, 1);
        for _ in 0..2 {
            let mut syn = talk.packet(Client, 0);
            (syn.flags, syn.acknowledgement) = (SYN, 0);
            syn.options = syn_options((1460, Some(7)));
            talk.send(syn);
            let (_, frame) = talk.frames.last_mut().expect("a frame");
            frame[HOP_LIMIT_AT] = hop_limit;
            complain(&mut talk, message, 0);
            talk.wait_us(1_000_000);
        }
        let trace = trace(&talk.frames);
        let Some(told) = found(&trace, Kind::Unreachable) else {
            assert_eq!(value, 0, "{message:?} {hop_limit}");
            assert!(found(&trace, Kind::Unanswered).is_some());
            continue;
        };
        assert_eq!((told.value, told.count), (value, 2), "{message:?}");
        assert_eq!(told.by, Some(IpAddr::from([10, 0, 0, 9])));
        assert!(told.claim.contains(words), "{}", told.claim);
        assert_eq!(trace.findings.len(), 1, "{:?}", trace.findings);
    }
}

#[test]
fn what_is_as_long_as_before_was_not_cut_for_a_router() {
    // What the link carries, what the client sends then, and whether that fits.
    for (mtu, bytes, fits) in [
        (1480, 1460, false),
        (1492, 1460, false),
        (1499, 1460, false),
        (1480, 1440, true),
        (0, 1460, false),
        (0, 1400, true),
    ] {
        let mut talk = far_with_mss([1460, 1460]);
        talk.data(Client, 1460);
        complain(&mut talk, [3, 4], mtu);
        for ms in [200, 400, 800] {
            talk.wait_us(ms * 1000).again(Client, 1460, bytes);
        }
        talk.wait_us(20_000).ack(Server);
        let trace = trace(&talk.frames);
        let counts = only(&trace).from_client.counts.expect("counts");
        let expected = if fits { (3, 0) } else { (0, 3) };
        assert_eq!((counts.resized, counts.timeout), expected, "{mtu} {bytes}");
        let link = match mtu {
            0 => "too big for a link of the path: once".to_owned(),
            mtu => format!("too big for a link of {mtu} B: once"),
        };
        // With the timers, whose frames it has, or alone.
        let findings = trace.findings.iter();
        let mut claims = findings.flat_map(|one| one.also.iter().chain([&one.claim]));
        assert!(claims.any(|one| one.ends_with(&link)), "{mtu} {bytes}");
    }
}

#[test]
fn a_segment_that_is_repeated_though_a_router_spoke_is_told_with_that() {
    for mtu in [1480, 0] {
        let mut talk = far_with_mss([1460, 1460]);
        talk.wait_us(10_000).data(Client, 300).data(Client, 1460);
        complain(&mut talk, [3, 4], mtu);
        talk.data(Client, 300);
        talk.wait_us(10_000).sack(Server, 1760, 300);
        for power in 0..6 {
            talk.wait_us(200_000 << power).again(Client, 1760, 1460);
        }
        let trace = trace(&talk.frames);
        let told = found(&trace, Kind::PathMtu).expect("a black hole");
        assert_eq!((told.count, told.value, told.connections), (7, 1460, 1));
        assert_eq!(told.by, Some(IpAddr::from([10, 0, 0, 9])));
        let said = match mtu {
            0 => "10.0.0.9 says that it is too big for a link of the path".to_owned(),
            mtu => format!("10.0.0.9 says that it is too big for a link of {mtu} B"),
        };
        assert!(told.claim.contains("segment of 1460 B 7 times"));
        assert!(told.claim.ends_with(&said), "{}", told.claim);
        assert!(!told.explanation.contains("filtered"));
    }
}

#[test]
fn marks_of_congestion_are_told() {
    for (marks, is_told) in [(3, true), (2, false), (1, false)] {
        let mut talk = far_with_mss([1460, 1460]);
        for at in 0..20 {
            talk.wait_us(1000).data(Client, 1460);
            let (_, frame) = talk.frames.last_mut().expect("a frame");
            frame[MARKS_AT] = if at % 4 == 0 { marks } else { 2 };
            talk.wait_us(20_000).ack(Server);
        }
        let trace = trace(&talk.frames);
        let told =
            found(&trace, Kind::CongestionMarks).map(|one| (one.count, one.out_of, one.who_is));
        // With SYN and acknowledgement of the handshake.
        assert_eq!(told, is_told.then_some((5, 22, End::Client)), "{marks}");
    }
}

#[test]
fn of_an_end_that_only_acknowledges_routers_mark_acknowledgements() {
    let mut talk = far_with_mss([1460, 1460]);
    for at in 0..19 {
        talk.wait_us(1000).data(Client, 1460);
        talk.wait_us(20_000).ack(Server);
        let (_, frame) = talk.frames.last_mut().expect("a frame");
        frame[MARKS_AT] = if at % 4 == 0 { 3 } else { 2 };
    }
    let trace = trace(&talk.frames);
    let told = found(&trace, Kind::CongestionMarks).expect("marks");
    assert_eq!((told.count, told.out_of, told.who_is), (5, 20, End::Server));
    let words = "Routers marked 5 of 20 segments from 10.0.0.2:80 to 10.0.0.1 as congested (25 %)";
    assert_eq!(told.claim, words);
}

/// Sends a SYN as it was sent before.
fn syn(talk: &mut Talk) -> &mut Talk {
    let mut syn = talk.packet(Client, 0);
    (syn.flags, syn.acknowledgement) = (SYN, 0);
    syn.options = syn_options((1460, Some(7)));
    talk.send(syn)
}

/// Lets the server answer it with a reset after so long.
fn refuse(talk: &mut Talk, after_us: u64) -> &mut Talk {
    talk.wait_us(after_us);
    let mut reset = talk.packet(Server, 0);
    (reset.sequence, reset.flags) = (0, RST | ACK);
    reset.acknowledgement = reset.acknowledgement.wrapping_add(1);
    talk.send(reset)
}

#[test]
fn a_refusal_takes_from_the_syn_that_it_answers() {
    for again in [0, 2] {
        let mut talk = Talk::new(1, 1);
        for at in 0..again {
            syn(&mut talk).wait_us(1_000_000 << at);
        }
        syn(&mut talk);
        refuse(&mut talk, 20_000);
        let trace = trace(&talk.frames);
        let refused = found(&trace, Kind::Refused).expect("a refusal");
        assert_eq!(refused.total_ns, 20_000_000, "{again}");
        let repeated = found(&trace, Kind::SynAgain).map(|one| one.total_ns);
        assert_eq!(repeated, (again > 0).then_some(3_000_000_000));
    }
}

/// A host that answers at one port after 20 ms, with so many hops left, and a refusal at another.
fn accepted_and_refused(hops: u8, (refused_hops, after_us): (u8, u64)) -> Trace {
    let mut talk = far_with_mss([1460, 1460]);
    for (_, frame) in &mut talk.frames {
        frame[HOP_LIMIT_AT] = hops;
    }
    let mut other = Talk::new(1, 1).server_port(8080).begin_at(1000);
    refuse(syn(&mut other), after_us);
    let (_, frame) = other.frames.last_mut().expect("a reset");
    frame[HOP_LIMIT_AT] = refused_hops;
    talk.frames.extend(other.frames);
    trace(&talk.frames)
}

#[test]
fn a_refusal_from_nearer_than_its_host_is_a_firewalls() {
    for (refusal, is_firewalls) in [
        ((254, 2000), true),
        // As far as the host, which gives its resets another hop limit.
        ((254, 20_000), false),
        // Sooner, but as far by its hops: another service answers slowly.
        ((52, 2000), false),
    ] {
        let trace = accepted_and_refused(52, refusal);
        let refused = found(&trace, Kind::Refused).expect("a refusal");
        let is_told = refused.claim.contains("firewall");
        assert_eq!(is_told, is_firewalls, "{refusal:?}: {}", refused.claim);
    }
}

/// What a capture cannot show, as the document says it.
fn cannot_show(trace: &Trace) -> String {
    trace.coverage.cannot_show.join("; ")
}

#[test]
fn what_a_capture_cannot_show_is_what_it_cannot() {
    // Requests: the capture at the client tells what the server took.
    let mut talk = far_with_mss([1460, 1460]);
    for _ in 0..4 {
        talk.data(Client, 200).wait_us(60_000);
        talk.data(Server, 900).wait_us(50);
        talk.ack(Client).wait_us(50);
    }
    assert_eq!(cannot_show(&trace(&talk.frames)), "");
    // A stream of the far end, which goes on by its own.
    let mut talk = far_with_mss([1460, 1460]);
    talk.data(Client, 200).wait_us(20_000);
    for _ in 0..20 {
        talk.data(Server, 1460).wait_us(50);
        talk.ack(Client).wait_us(10_000);
    }
    let stream = trace(&talk.frames);
    assert!(cannot_show(&stream).starts_with("what the far end waits for while it sends"));
    // A SYN, and whether the capture went on.
    let mut talk = Talk::new(1, 1);
    syn(&mut talk);
    let ended = trace(&talk.frames);
    assert!(ended.findings.is_empty());
    assert!(cannot_show(&ended).starts_with("whether a SYN is answered"));
    let mut other = Talk::new(1, 1).client_port(50_000).begin_at(3000);
    other.shake_hands(1460, Some(7));
    talk.frames.extend(other.frames);
    let went_on = trace(&talk.frames);
    assert!(found(&went_on, Kind::Unanswered).is_some());
    assert!(!cannot_show(&went_on).contains("SYN"));
}

#[test]
fn the_document_has_what_was_looked_for_with_findings_and_without() {
    for think_us in [0, 400_000] {
        let mut talk = Talk::new(1, 1);
        for _ in 0..4 {
            talk.data(Client, 200).wait_us(20_000).ack(Server);
            talk.wait_us(think_us).data(Server, 900).wait_us(50);
            talk.ack(Client).wait_us(50);
        }
        let trace = trace(&talk.frames);
        assert_eq!(trace.findings.is_empty(), think_us == 0);
        assert!(trace.coverage.looked_for.contains(&"slow answers"));
        let document = trace.json();
        assert!(
            document.contains("\"cannot_show\": [\n      \"windows in bytes"),
            "{document}"
        );
        let told = text(&trace);
        assert!(told.contains("cannot show: windows in bytes"), "{told}");
        assert_eq!(told.contains("Looked for"), think_us == 0);
    }
}

#[test]
fn a_handshake_that_is_late_is_told_apart_from_a_long_way() {
    for (accepted_us, trip_us, answer_us, late_ns) in [
        (900_000, 20_000, 0, Some(880_000_000)),
        (900_000, 880_000, 0, None),
        (65_000, 20_000, 0, None),
        // A proxy acknowledges, and the server behind it is far.
        (900_000, 100, 880_000, None),
        (900_000, 100, 400_000, None),
        (900_000, 100, 200_000, Some(899_900_000)),
    ] {
        let mut talk = Talk::new(1, 1);
        talk.control(Client, SYN, syn_options((1460, Some(7))));
        talk.wait_us(accepted_us);
        talk.control(Server, SYN | ACK, syn_options((1460, Some(7))));
        talk.wait_us(100).ack(Client);
        // One answer that comes at once, as what crosses looks, makes the others no sooner.
        if answer_us > 0 {
            talk.data(Client, 50).wait_us(200).data(Server, 50);
        }
        for _ in 0..5 {
            talk.data(Client, 200).wait_us(trip_us);
            if answer_us > 0 {
                talk.ack(Server).wait_us(answer_us);
            }
            talk.data(Server, 900).wait_us(50);
            talk.ack(Client).wait_us(50);
        }
        let trace = trace(&talk.frames);
        let told = found(&trace, Kind::SlowHandshake).map(|one| one.total_ns);
        assert_eq!(told, late_ns, "{accepted_us} {trip_us} {answer_us}");
    }
}

#[test]
fn what_became_of_a_syn_that_was_accepted_is_told() {
    let accepted = || {
        let mut talk = Talk::new(1, 1);
        talk.control(Client, SYN, syn_options((1460, Some(7))));
        talk.wait_us(20_000);
        talk.control(Server, SYN | ACK, syn_options((1460, Some(7))));
        talk
    };
    let kinds = |talk: &Talk| -> Vec<Kind> {
        let findings = trace(&talk.frames).findings;
        findings.iter().map(|one| one.kind).collect()
    };
    // A probe: nothing but a reset.
    let mut probe = accepted();
    let mut reset = probe.packet(Client, 0);
    (reset.flags, reset.acknowledgement) = (RST, 0);
    probe.wait_us(50).send(reset.clone());
    assert_eq!(kinds(&probe), [Kind::ResetUnused]);
    // The same behind an acknowledgement, and with data between.
    let mut connected = accepted();
    connected.wait_us(50).ack(Client).wait_us(1000);
    let mut used = accepted();
    used.wait_us(50).data(Client, 100).wait_us(20_000);
    used.ack(Server).wait_us(1000);
    connected.send(reset.clone());
    assert_eq!(kinds(&connected), [Kind::ResetUnused]);
    reset.sequence += 100;
    used.send(reset);
    assert_eq!(kinds(&used), [Kind::Reset]);
    // A server that accepts, and resets at once.
    let mut rejected = accepted();
    rejected.wait_us(50).ack(Client).wait_us(20_000);
    let mut reset = rejected.packet(Server, 0);
    reset.flags = RST | ACK;
    rejected.send(reset);
    assert_eq!(kinds(&rejected), [Kind::Reset]);
    // A SYN-ACK that nothing acknowledges, and one that is acknowledged in the end.
    for is_acknowledged in [false, true] {
        let mut talk = accepted();
        for at in 0..5 {
            talk.wait_us(1_000_000 << at);
            let mut again = talk.packet(Server, 0);
            again.sequence = again.sequence.wrapping_sub(1);
            (again.flags, again.options) = (SYN | ACK, syn_options((1460, Some(7))));
            talk.send(again);
        }
        let kind = if is_acknowledged {
            Kind::SynAgain
        } else {
            Kind::HandshakeIncomplete
        };
        if is_acknowledged {
            talk.wait_us(50).ack(Client);
        }
        assert_eq!(kinds(&talk), [kind]);
    }
}

#[test]
fn handshakes_of_several_clients_are_not_waited_for_one_behind_the_other() {
    let mut frames = Vec::new();
    for port in 0..3 {
        let mut talk = Talk::new(1, 1).client_port(40_000 + port);
        talk.control(Client, SYN, syn_options((1460, Some(7))));
        talk.wait_us(20_000);
        talk.control(Server, SYN | ACK, syn_options((1460, Some(7))));
        for at in 0..5 {
            talk.wait_us(1_000_000 << at);
            let mut again = talk.packet(Server, 0);
            again.sequence = again.sequence.wrapping_sub(1);
            (again.flags, again.options) = (SYN | ACK, syn_options((1460, Some(7))));
            talk.send(again);
        }
        frames.extend(talk.frames);
    }
    frames.sort_by_key(|(time_ns, _)| *time_ns);
    let trace = trace(&frames);
    let told = found(&trace, Kind::HandshakeIncomplete).expect("it was not completed");
    assert_eq!((told.connections, told.count), (3, 15));
    let words = "nothing acknowledged it within 31 s";
    assert!(told.claim.contains(words), "{}", told.claim);
}

#[test]
fn where_scaling_is_missing_no_buffer_is_asked_for() {
    // The client's scale, the server's window, and what is told: without scaling 60 kB are as much as it can, 12 kB
    // are less than it could.
    for (scale, window, segments, told) in [
        (None, 60_000, 41, vec![Kind::NoWindowScaling]),
        (Some(0), 60_000, 41, vec![Kind::WindowLimit]),
        (None, 12_000, 8, vec![Kind::WindowLimit]),
    ] {
        let mut talk = Talk::new(1, 1);
        talk.window(Server, window);
        talk.control(Client, SYN, syn_options((1460, scale)));
        talk.wait_us(20_000);
        talk.control(Server, SYN | ACK, syn_options((1460, Some(0))));
        talk.wait_us(100).ack(Client);
        for _ in 0..20 {
            for _ in 0..segments {
                talk.wait_us(10).data(Client, 1460);
            }
            talk.wait_us(20_000).ack(Server);
        }
        let trace = trace(&talk.frames);
        let kinds: Vec<Kind> = trace.findings.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, told, "{scale:?} {window}");
        let share = trace.findings[0].total_ns as f64 / trace.findings[0].out_of as f64;
        assert!(share > 0.9, "{share}");
    }
}

#[test]
fn the_answer_to_a_keepalive_took_the_way() {
    let mut talk = far_with_mss([1460, 1460]);
    talk.data(Client, 500).wait_us(20_000).ack(Server);
    for _ in 0..3 {
        talk.wait_us(50_000_000).again(Client, 1, 0);
        talk.wait_us(20_000).ack(Server);
    }
    let trace = trace(&talk.frames);
    let gaps = only(&trace).gaps.iter();
    let gaps: Vec<_> = gaps.map(|gap| (gap.cause, gap.end, gap.count)).collect();
    let expected = [
        (Cause::Application, End::Client, 3),
        (Cause::RoundTrip, End::Server, 4),
    ];
    assert_eq!(gaps, expected);
}

#[test]
fn a_clamped_segment_size_is_the_last_that_is_told() {
    // Full segments of a tunnel, of which some are lost, some delayed, and most are short before.
    let mut talk = far_with_mss([1460, 1400]);
    for _ in 0..70 {
        talk.wait_us(100).data(Client, 100);
    }
    talk.wait_us(20_000).ack(Server);
    for round in 0..20 {
        for _ in 0..5 {
            talk.wait_us(100).data(Client, 1400);
        }
        if round % 4 == 0 {
            talk.wait_us(20_000).sack(Server, 5 * 1400, 4 * 1400);
            talk.wait_us(10).sack(Server, 5 * 1400, 4 * 1400);
            talk.wait_us(100).again(Client, 5 * 1400, 1400);
        }
        talk.wait_us(20_000).ack(Server);
    }
    let trace = trace(&talk.frames);
    let kinds: Vec<Kind> = trace.findings.iter().map(|one| one.kind).collect();
    assert!(kinds.len() >= 2, "{kinds:?}");
    assert_eq!(kinds.last(), Some(&Kind::ClampedMss), "{kinds:?}");
}

#[test]
fn a_reader_that_closes_its_window_again_and_again_is_no_small_window() {
    // How often the window closes for 40 ms after each 28 kB, and what is told: from three times on the reader, not its
    // window's size.
    for (closes, told) in [(0, Kind::WindowLimit), (8, Kind::ZeroWindow)] {
        let mut talk = far_with_mss([1460, 1460]);
        for round in 0..20 {
            talk.window(Server, 228);
            for _ in 0..20 {
                talk.wait_us(10).data(Client, 1460);
            }
            talk.wait_us(20_000);
            if round < closes {
                talk.window(Server, 0).ack(Server);
                talk.wait_us(40_000).window(Server, 228);
            }
            talk.ack(Server);
        }
        let trace = trace(&talk.frames);
        let windows = [Kind::WindowLimit, Kind::ZeroWindow, Kind::SlowReader];
        let kinds = trace.findings.iter().map(|one| one.kind);
        let kinds: Vec<Kind> = kinds.filter(|kind| windows.contains(kind)).collect();
        assert_eq!(kinds, [told], "{closes}");
    }
}

#[test]
fn what_acknowledges_near_the_client_does_not_prove_that_the_server_is_near() {
    // How long the handshake took, and whether the way may be it: the answers take 75 ms, and acknowledgements 100 µs.
    for (accepted_us, is_doubtful) in [(70_000, true), (100, false)] {
        let mut talk = Talk::new(1, 1);
        talk.control(Client, SYN, syn_options((1460, Some(7))));
        talk.wait_us(accepted_us);
        talk.control(Server, SYN | ACK, syn_options((1460, Some(7))));
        talk.wait_us(50).ack(Client);
        for _ in 0..5 {
            talk.wait_us(1000).data(Client, 200).wait_us(100);
            talk.ack(Server).wait_us(75_000).data(Server, 900);
            talk.wait_us(50).ack(Client);
        }
        let trace = trace(&talk.frames);
        let slow = found(&trace, Kind::SlowAnswer).expect("slow answers");
        let proves = slow.explanation.contains("not the network");
        assert_eq!(!proves, is_doubtful, "{}", slow.explanation);
    }
}
