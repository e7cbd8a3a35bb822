//! Two captures of the same traffic: what was lost between them, how long the way took, what was
//! rewritten; with known truth.

use crate::common;

use From::{Client, Server};
use common::{From, Talk, pcapng, statistics, trace, trace_bytes};
use linerate_trace::both::{self, Both, Seen};
use linerate_trace::capture::Reader;
use linerate_trace::compare::compare;
use linerate_trace::text::Look;
use linerate_trace::{Limits, TcpFindingKind, Tracker};

type Frames = Vec<(u64, Vec<u8>)>;

const LOOK: Look = Look {
    columns: 100,
    color: false,
    connections: 3,
};

fn seen(frames: &Frames, name: &str) -> Seen {
    let bytes = pcapng(frames);
    let mut reader = Reader::new(&bytes[..]).expect("a capture");
    Seen::read(Tracker::new(Limits::default()), &mut reader, name).expect("of Ethernet")
}

fn joined(one: &Frames, other: &Frames) -> Option<Both> {
    both::join(seen(one, "near.pcap"), seen(other, "far.pcap"))
}

fn is_clients(frame: &[u8]) -> bool {
    frame[29] == 1
}

/// What the server's capture has of what the client's has: the way takes `way_ns` there and back, the
/// server's clock is ahead by `ahead_ns`, and `change` may lose, delay or rewrite a frame by its place.
fn at_server(
    frames: &Frames,
    way_ns: i64,
    ahead_ns: i64,
    change: impl Fn(usize, &mut Vec<u8>) -> Option<i64>,
) -> Frames {
    let mut far: Frames = Vec::new();
    for (at, (time_ns, frame)) in frames.iter().enumerate() {
        let mut frame = frame.clone();
        let Some(more_ns) = change(at, &mut frame) else {
            continue;
        };
        let way_ns = if is_clients(&frame) {
            way_ns + more_ns
        } else {
            -way_ns - more_ns
        };
        far.push((time_ns.saturating_add_signed(way_ns + ahead_ns), frame));
    }
    far.sort_by_key(|(time_ns, _)| *time_ns);
    far
}

/// A stream of the client over a way of 10 ms; each window of ten segments is acknowledged, and where
/// `loses` says so, the third of them is sent again after the others.
fn stream(rounds: u32, loses: impl Fn(u32) -> bool) -> Talk {
    let mut talk = Talk::new(u32::MAX - 40_000, 77).with_stamps();
    let options = || common::syn_options((1460, Some(7)));
    talk.control(Client, common::SYN, options()).wait_us(20_000);
    talk.control(Server, common::SYN | common::ACK, options())
        .wait_us(100);
    talk.ack(Client);
    for round in 0..rounds {
        for _ in 0..10 {
            talk.wait_us(100).data(Client, 1448);
        }
        if loses(round) {
            talk.wait_us(20_000);
            for have in 1..=3 {
                talk.wait_us(10).sack(Server, 8 * 1448, have * 1448);
            }
            talk.wait_us(100).again(Client, 8 * 1448, 1448);
        }
        talk.wait_us(20_000).ack(Server);
    }
    talk
}

/// Returns the places of the first sendings of what is sent again.
fn lost_places(talk: &Talk, rounds: u32, loses: impl Fn(u32) -> bool) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 3;
    for round in 0..rounds {
        if loses(round) {
            places.push(at + 2);
            at += 4;
        }
        at += 11;
    }
    assert_eq!(at, talk.frames.len());
    places
}

#[test]
fn who_lost_which_segment_is_told() {
    let loses = |round: u32| round % 5 == 1;
    let talk = stream(40, loses);
    let places = lost_places(&talk, 40, loses);
    for ahead_ns in [0, 7_000_000_000, -3_600_000_000_000] {
        let far = at_server(&talk.frames, 10_000_000, ahead_ns, |at, _| {
            (!places.contains(&at)).then_some(0)
        });
        let both = joined(&talk.frames, &far).expect("the same traffic");
        let bound = both.clock.uncertainty_ns.expect("both ways");
        assert!(
            both.clock.offset_ns.abs_diff(ahead_ns) <= bound,
            "{:?}",
            both.clock
        );
        assert!(bound <= 10_000_001, "{bound}");
        let connection = &both.connections[0];
        assert_eq!(connection.nearer_to_client, 0);
        assert_eq!(connection.rewritten, []);
        let way = &connection.from_client;
        assert_eq!(
            (way.lost, way.missed_by_capture, way.outside),
            (8, 0, 0),
            "{way:?}"
        );
        assert_eq!(way.sent, way.arrived + way.lost);
        assert_eq!(way.sent_again, 8);
        let frames: Vec<u64> = way.examples.iter().map(|lost| lost.frame).collect();
        let expected: Vec<u64> = places.iter().map(|&at| at as u64 + 1).collect();
        assert_eq!(frames, expected);
        // It arrived with the frame that was sent again: eleven further on.
        let again = way.examples.iter().map(|lost| lost.again_frame);
        assert!(
            again.eq(expected.iter().map(|frame| Some(frame + 11))),
            "{way:?}"
        );
        assert_eq!(
            (
                connection.from_server.lost,
                connection.from_server.acks_lost
            ),
            (0, 0)
        );
        let text = both::text(&both, LOOK);
        assert!(text.contains("8 lost between the captures"), "{text}");
        assert!(
            text.contains(&format!("frames {} (arrived as", expected[0])),
            "{text}"
        );
        // Named the other way round.
        let both = joined(&far, &talk.frames).expect("the same traffic");
        let connection = &both.connections[0];
        assert_eq!(
            (connection.nearer_to_client, connection.from_client.lost),
            (1, 8)
        );
    }
}

#[test]
fn what_both_captures_decide_is_left_open_by_none() {
    let loses = |round: u32| round % 5 == 1;
    let talk = stream(40, loses);
    let places = lost_places(&talk, 40, loses);
    // Whether the segments were lost between the captures, and whether the other one missed a frame besides.
    for (is_between, misses, words) in [
        (
            true,
            false,
            "between them were lost 8 segments on the way from 10.0.0.1",
        ),
        (false, false, "between them nothing was lost"),
        (false, true, "or their acknowledgements on the way back"),
    ] {
        let far = at_server(&talk.frames, 10_000_000, 0, |at, _| {
            let is_lost = is_between && places.contains(&at) || misses && at == 9;
            (!is_lost).then_some(0)
        });
        let both = joined(&talk.frames, &far).expect("the same traffic");
        let mut findings = both.captures[0].findings.iter();
        let loss = findings.find(|one| one.kind == TcpFindingKind::Loss);
        let loss = loss.expect("a loss at the sender");
        assert!(loss.explanation.contains(words), "{}", loss.explanation);
        let advice = loss.advice.as_deref().unwrap_or("");
        assert_eq!(advice.contains("compare captures"), misses, "{advice}");
    }
}

#[test]
fn losses_beyond_those_named_are_counted() {
    let loses = |round: u32| round % 5 == 1;
    for (rounds, more) in [(40, None), (45, Some("… and 1 more"))] {
        let talk = stream(rounds, loses);
        let places = lost_places(&talk, rounds, loses);
        let far = at_server(&talk.frames, 10_000_000, 0, |at, _| {
            (!places.contains(&at)).then_some(0)
        });
        let both = joined(&talk.frames, &far).expect("the same traffic");
        let text = both::text(&both, LOOK);
        let told = more.is_none_or(|more| text.contains(more));
        assert!(told && text.contains("more\n") == more.is_some(), "{text}");
    }
}

#[test]
fn what_was_lost_elsewhere_is_not_lost_between() {
    let loses = |round: u32| round % 5 == 1;
    let talk = stream(40, loses);
    let far = at_server(&talk.frames, 10_000_000, 0, |_, _| Some(0));
    let both = joined(&talk.frames, &far).expect("the same traffic");
    let way = &both.connections[0].from_client;
    assert_eq!(
        (way.lost, way.duplicated, way.sent_again),
        (0, 0, 8),
        "{way:?}"
    );
    assert!(both::text(&both, LOOK).contains("lost behind far.pcap"));
    // What the other capture missed was acknowledged though it was sent once.
    let far = at_server(&talk.frames, 10_000_000, 0, |at, _| (at != 9).then_some(0));
    let both = joined(&talk.frames, &far).expect("the same traffic");
    let way = &both.connections[0].from_client;
    assert_eq!((way.lost, way.missed_by_capture), (0, 1), "{way:?}");
}

#[test]
fn what_the_other_capture_ended_too_early_for_is_not_told_lost() {
    let talk = stream(40, |_| false);
    // The far capture ends in the middle of the stream, with segments on the way.
    let mut far = at_server(&talk.frames, 50_000_000, 0, |_, _| Some(0));
    let stop_ns = talk.frames[talk.frames.len() / 2 + 4].0 + 45_000_000;
    far.retain(|(time_ns, _)| *time_ns < stop_ns);
    let both = joined(&talk.frames, &far).expect("the same traffic");
    let way = &both.connections[0].from_client;
    assert_eq!((way.lost, way.acks_lost), (0, 0), "{way:?}");
    assert!(way.outside > 0, "{way:?}");
}

#[test]
fn what_a_capture_with_holes_lacks_is_not_told_lost() {
    // An acknowledgement of the server, which passes its own capture only; by place in the near one.
    let talk = stream(40, |_| false);
    let ack = (14..60)
        .find(|&at| !is_clients(&talk.frames[at].1))
        .expect("acknowledgements");
    let far = at_server(&talk.frames, 10_000_000, 0, |_, _| Some(0));
    let near = |misses: &[usize]| -> Frames {
        let all = talk.frames.iter().enumerate();
        let kept = all.filter(|(at, _)| !misses.contains(at));
        kept.map(|(_, frame)| frame.clone()).collect()
    };
    let acks = |near: &Frames| {
        let both = joined(near, &far).expect("the same traffic");
        let way = &both.connections[0].from_server;
        (way.acks_lost, way.acks_undecided, both::text(&both, LOOK))
    };
    let (lost, undecided, text) = acks(&near(&[ack]));
    assert_eq!((lost, undecided), (1, 0), "{text}");
    // The near capture misses a segment of its own host, too: it may have missed the acknowledgement.
    let (lost, undecided, text) = acks(&near(&[ack, 9]));
    assert_eq!((lost, undecided), (0, 1), "{text}");
    assert!(text.contains("1 of 40 ACKs lost or only missed"), "{text}");
    // One that began later lacks what was before, which is no hole.
    let late: Vec<usize> = (0..8).chain([ack]).collect();
    let (lost, undecided, text) = acks(&near(&late));
    assert_eq!((lost, undecided), (1, 0), "{text}");
}

#[test]
fn a_capture_that_says_what_it_lost_decides_no_loss_of_datagrams_or_acknowledgements() {
    let talk = stream(40, |_| false);
    let ack = (14..60)
        .find(|&at| !is_clients(&talk.frames[at].1))
        .expect("acknowledgements");
    let far = at_server(&talk.frames, 10_000_000, 0, |_, _| Some(0));
    let mut near = talk.frames.clone();
    near.remove(ack);
    for (lost, expected) in [(0u64, (1, 0)), (3, (0, 1))] {
        let bytes = [pcapng(&near), statistics(lost)].concat();
        let mut reader = Reader::new(&bytes[..]).expect("a capture");
        let tracker = Tracker::new(Limits::default());
        let near = Seen::read(tracker, &mut reader, "near.pcap").expect("of Ethernet");
        let both = both::join(near, seen(&far, "far.pcap")).expect("the same traffic");
        let way = &both.connections[0].from_server;
        assert_eq!((way.acks_lost, way.acks_undecided), expected, "{way:?}");
        assert_eq!(both.captures[0].files[0].lost, Some(lost));
        let warns = both.captures[0].warnings.join(" ");
        assert_eq!(warns.contains("lost 3 frames more"), lost > 0, "{warns}");
    }
}

#[test]
fn a_queue_between_shows_whatever_the_clocks() {
    let talk = stream(60, |_| false);
    let far = at_server(&talk.frames, 10_000_000, 123_456_789, |at, frame| {
        // Between the 20th and the 40th round a queue of 35 ms.
        let is_queued = is_clients(frame) && (223..443).contains(&at);
        Some(if is_queued { 35_000_000 } else { 0 })
    });
    let both = joined(&talk.frames, &far).expect("the same traffic");
    let delay = both.connections[0].from_client.delay.expect("delays");
    assert_eq!(
        (delay.above_min_max_ns, delay.above_min_median_ns),
        (35_000_000, 0)
    );
    let bound = both.clock.uncertainty_ns.expect("both ways");
    assert!(
        delay.min_ns.abs_diff(10_000_000) <= bound,
        "{delay:?} {bound}"
    );
    let back = both.connections[0].from_server.delay;
    assert!(
        back.is_none_or(|back| back.above_min_max_ns == 0),
        "{back:?}"
    );
}

#[test]
fn what_a_box_on_the_way_rewrote_is_told() {
    let talk = stream(20, |_| false);
    let far = at_server(&talk.frames, 10_000_000, 0, |_, frame| {
        let (port, address, shift) = if is_clients(frame) {
            (34, 29, 38)
        } else {
            (36, 33, 42)
        };
        // Another address and port of the client, and its numbers 5000 further on.
        frame[address] = 99;
        frame[port..port + 2].copy_from_slice(&61_001u16.to_be_bytes());
        let number = u32::from_be_bytes(frame[shift..shift + 4].try_into().expect("four bytes"));
        frame[shift..shift + 4].copy_from_slice(&number.wrapping_add(5000).to_be_bytes());
        Some(0)
    });
    // Renumbered and readdressed at once nothing is left to know them by.
    assert!(joined(&talk.frames, &far).is_none());
    let translated = at_server(&talk.frames, 10_000_000, 0, |at, frame| {
        let port = if is_clients(frame) { 34 } else { 36 };
        frame[port..port + 2].copy_from_slice(&61_001u16.to_be_bytes());
        if at == 0 {
            frame[56..58].copy_from_slice(&1380u16.to_be_bytes());
        }
        if is_clients(frame) {
            frame[22] -= 3;
        }
        Some(0)
    });
    let both = joined(&talk.frames, &translated).expect("the same traffic");
    let connection = &both.connections[0];
    let told: Vec<_> = connection
        .rewritten
        .iter()
        .map(|one| (one.what, one.sent.as_str(), one.arrived.as_str()))
        .collect();
    assert_eq!(
        told,
        [("port", "40000", "61001"), ("MSS", "1460 B", "1380 B")]
    );
    assert_eq!(
        (connection.from_client.lost, connection.from_client.hops),
        (0, Some(3))
    );
    // A box that draws identifications anew: nothing is lost by that.
    let identified = at_server(&talk.frames, 10_000_000, 0, |at, frame| {
        frame[18..20].copy_from_slice(&(40_000 - at as u16).to_be_bytes());
        Some(0)
    });
    let both = joined(&talk.frames, &identified).expect("the same traffic");
    let connection = &both.connections[0];
    let (client, server) = (&connection.from_client, &connection.from_server);
    assert!(client.acks + server.acks > 3, "{connection:?}");
    assert_eq!((client.acks_lost, server.acks_lost), (0, 0));
    assert!(
        connection
            .rewritten
            .iter()
            .any(|one| one.what == "IP identification"),
        "{:?}",
        connection.rewritten
    );
    // A firewall that draws the client's numbers anew.
    let renumbered = at_server(&talk.frames, 10_000_000, 0, |_, frame| {
        let at = if is_clients(frame) { 38 } else { 42 };
        let number = u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"));
        if number != 0 {
            frame[at..at + 4].copy_from_slice(&number.wrapping_add(5000).to_be_bytes());
        }
        Some(0)
    });
    let both = joined(&talk.frames, &renumbered).expect("the same traffic");
    let connection = &both.connections[0];
    assert_eq!(connection.rewritten.len(), 1, "{:?}", connection.rewritten);
    assert_eq!(connection.rewritten[0].what, "sequence numbers");
    assert_eq!(connection.from_client.lost, 0);
}

#[test]
fn offloads_cut_and_join_and_nothing_is_lost() {
    // Superframes of two segments where they are sent, single ones where they arrive.
    let begin = || {
        let mut talk = Talk::new(1, 1);
        let options = || common::syn_options((1460, Some(7)));
        talk.control(Client, common::SYN, options()).wait_us(20_000);
        talk.control(Server, common::SYN | common::ACK, options())
            .wait_us(100);
        talk.ack(Client);
        talk
    };
    let (mut near, mut far) = (begin(), begin());
    for _ in 0..30 {
        near.wait_us(100)
            .data(Client, 2920)
            .wait_us(20_000)
            .ack(Server);
        far.wait_us(90)
            .data(Client, 1460)
            .wait_us(10)
            .data(Client, 1460);
        far.wait_us(20_000).ack(Server);
    }
    let far = at_server(&far.frames, 10_000_000, 0, |_, _| Some(0));
    let both = joined(&near.frames, &far).expect("the same traffic");
    let way = &both.connections[0].from_client;
    assert_eq!(
        (way.lost, way.not_captured, way.duplicated),
        (0, 0, 0),
        "{way:?}"
    );
    assert_eq!(way.sent, 31);
}

#[test]
fn files_of_one_capture_are_not_two_views() {
    let talk = stream(40, |round| round % 5 == 1);
    let (one, other) = talk.frames.split_at(200);
    assert!(joined(&one.to_vec(), &other.to_vec()).is_none());
    let mut other = Talk::new(5, 6).client_port(5000);
    other.shake_hands(1460, Some(7));
    for _ in 0..100 {
        other
            .wait_us(100)
            .data(Client, 1448)
            .wait_us(200)
            .ack(Server);
    }
    assert!(joined(&talk.frames, &other.frames).is_none());
}

#[test]
fn what_changed_between_two_captures_is_told() {
    let slow = |thinks_us: u64| {
        let mut talk = Talk::new(1, 1);
        talk.shake_hands(1460, Some(7));
        for _ in 0..20 {
            talk.wait_us(1000).data(Client, 200);
            talk.wait_us(thinks_us)
                .data(Server, 900)
                .wait_us(50)
                .ack(Client);
        }
        trace(&talk.frames)
    };
    let (before, after) = (slow(200_000), slow(2000));
    let comparison = compare(&before, &after);
    let gone = &comparison.findings[0];
    assert_eq!(
        (gone.kind, gone.after.is_none()),
        (TcpFindingKind::SlowAnswer, true)
    );
    let number = |name: &str| {
        let mut numbers = comparison.numbers.iter();
        let number = numbers
            .find(|number| number.name == name)
            .expect("a number");
        (number.before.expect("before"), number.after.expect("after"))
    };
    let (before_ns, after_ns) = number("answer_median_ns");
    assert!((before_ns / 199.9e6 - 1.0).abs() < 0.1 && (after_ns / 1.9e6 - 1.0).abs() < 0.1);
    assert!(number("server_percent").0 > 98.0 && number("server_percent").1 < 70.0);
    let text = comparison.text(LOOK);
    assert!(
        text.contains("gone") && text.contains("server's answers"),
        "{text}"
    );
    let new = compare(&after, &before);
    assert!(new.findings[0].before.is_none());
    assert!(new.json().contains("linerate.trace.comparison"));
}

#[test]
fn what_a_capture_cannot_show_is_not_gone() {
    let talk = |port: u16, rounds: u32| {
        let mut talk = Talk::new(1, 1).server_port(port);
        talk.shake_hands(1460, Some(7));
        for _ in 0..rounds {
            talk.wait_us(1000).data(Client, 200);
            talk.wait_us(200_000).data(Server, 900).wait_us(50);
            talk.ack(Client);
        }
        talk.frames
    };
    let before = trace(&talk(80, 20));
    for (after, reason) in [
        (Vec::new(), "made shows no connection with port 80"),
        (talk(81, 20), "made shows no connection with port 80"),
        (
            talk(80, 0),
            "made shows no answers on a connection with port 80",
        ),
    ] {
        let after = trace(&after);
        let comparison = compare(&before, &after);
        let finding = |kind| {
            let mut all = comparison.findings.iter();
            all.find(|one| one.kind == kind && one.port == Some(80))
        };
        let slow = finding(TcpFindingKind::SlowAnswer).expect("it was before");
        assert_eq!(slow.not_seen.as_deref(), Some(reason));
        let text = comparison.text(LOOK);
        assert!(
            text.contains("not seen") && !text.contains("gone"),
            "{text}"
        );
        assert!(!text.contains("0 % → –"), "{text}");
        let page = comparison.page("page");
        assert!(
            page.findings
                .iter()
                .any(|one| one.explanation.contains(reason))
        );
        // Nor is it new where it could not be seen before.
        let turned = compare(&after, &before);
        let slow = turned.findings.iter().find(|one| one.port == Some(80));
        assert_eq!(slow.and_then(|one| one.not_seen.as_deref()), Some(reason));
    }
}

#[test]
fn what_is_to_know_of_each_capture_is_told() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7)).data(Client, 200);
    let whole = pcapng(&talk.frames);
    let cut = trace_bytes(&whole[..whole.len() - 9]);
    let comparison = compare(&trace(&talk.frames), &cut);
    let told = comparison.text(LOOK);
    assert!(told.contains("warning: after: made: "), "{told}");
    let page = comparison.page("page");
    assert_eq!(
        (page.warnings.len(), &page.warnings),
        (1, &comparison.warnings)
    );
}
