//! The display filters of findings, given to tshark: each is accepted, and matches frames of the service that its
//! finding is about.

use crate::common;

use std::collections::BTreeSet;
use std::process::Command;

use common::{ACK, BEGIN_NS, From, RST, SYN, Talk, ipv4, pcap, skip, syn_options, trace_bytes};
use linerate_trace::{TcpFindingKind as Kind, page};

use From::{Client, Server};

type Frames = Vec<(u64, Vec<u8>)>;

/// A connection with a service of its own, captured at the client.
fn far(port: u16, trip_us: u64) -> Talk {
    let mut talk = Talk::new(1, 1).server_port(port);
    let options = || syn_options((1460, Some(7)));
    talk.control(Client, SYN, options()).wait_us(trip_us);
    talk.control(Server, SYN | ACK, options()).wait_us(100);
    talk.ack(Client);
    talk
}

/// Sends `flights` of `segments`, each acknowledged after `trip_us`.
fn stream(talk: &mut Talk, flights: u32, segments: u32, trip_us: u64) {
    for _ in 0..flights {
        for _ in 0..segments {
            talk.wait_us(5).data(Client, 1460);
        }
        talk.wait_us(trip_us).ack(Server);
    }
}

/// What a router says of the last frame.
fn complaint(talk: &mut Talk, code: u8) {
    let (time_ns, frame) = talk.frames.last().expect("a frame").clone();
    let word = [&[3, code, 0, 0, 0, 0, 5, 120], &frame[14..42]].concat();
    let mut ip = ipv4(1, 9, &word);
    ip[9] = 1;
    talk.frames
        .push((time_ns + 1000, [&frame[..14], &ip].concat()));
}

fn lost_and_late(talk: &mut Talk) {
    for _ in 0..4 {
        for _ in 0..8 {
            talk.wait_us(5).data(Client, 1460);
        }
        // The first four of eight, at once when they are asked for.
        for have in 1..=4 {
            talk.wait_us(20_000 / 4).sack(Server, 8 * 1460, have * 1460);
        }
        for back in 5..=8 {
            talk.wait_us(50).again(Client, (13 - back) * 1460, 1460);
        }
        talk.wait_us(20_000).ack(Server);
        // And one for which only the timer cares.
        talk.wait_us(50).data(Client, 1460).wait_us(400_000);
        talk.again(Client, 1460, 1460).wait_us(20_000).ack(Server);
    }
}

/// Connections with a service each, of which something is found.
fn tcp() -> Vec<Frames> {
    let mut talks: Vec<Talk> = Vec::new();
    let mut add = |mut talk: Talk, go_on: &dyn Fn(&mut Talk)| {
        go_on(&mut talk);
        talks.push(talk);
    };
    let begun = |port| Talk::new(1, 1).server_port(port);
    let syn = |talk: &mut Talk| {
        talk.control(Client, SYN, syn_options((1460, Some(7))));
    };
    add(far(1001, 20_000), &lost_and_late);
    add(far(1002, 20_000), &|talk| {
        talk.window(Server, 23);
        stream(talk, 40, 2, 20_000);
    });
    add(far(1003, 1000), &|talk| {
        talk.window(Server, 500);
        stream(talk, 1, 40, 1000);
        for _ in 0..60 {
            talk.window(Server, 43);
            stream(talk, 1, 3, 1000);
            talk.window(Server, 8).ack(Server);
            talk.window(Server, 43).wait_us(20_000).ack(Server);
        }
    });
    // Reordering, seen at the sender.
    add(far(1004, 10_000), &|talk| {
        for _ in 0..12 {
            for _ in 0..8 {
                talk.wait_us(10).data(Client, 1460);
            }
            talk.wait_us(10_000).sack(Server, 8 * 1460, 2 * 1460);
            talk.wait_us(100).ack(Server);
        }
    });
    add(far(1005, 1000), &|talk| {
        for _ in 0..8 {
            talk.wait_us(1000).data(Client, 100);
            talk.wait_us(41_000).ack(Server);
            talk.wait_us(100)
                .data(Client, 100)
                .wait_us(1000)
                .ack(Server);
            talk.wait_us(300_000);
        }
    });
    add(far(1006, 1000), &|talk| {
        for _ in 0..8 {
            talk.wait_us(1000).data(Client, 100);
            talk.wait_us(41_000).ack(Server).wait_us(1_000_000);
        }
    });
    add(begun(1007), &|talk| {
        syn(talk);
        talk.wait_us(5000).control(Server, RST | ACK, Vec::new());
    });
    add(begun(1008), &|talk| {
        syn(talk);
        talk.skip(Client, u32::MAX).wait_us(1_000_000);
        syn(talk);
    });
    add(begun(1009), &|talk| {
        syn(talk);
        talk.skip(Client, u32::MAX).wait_us(1_000_000);
        talk.shake_hands(1460, Some(7)).wait_us(50).data(Client, 10);
        talk.wait_us(500).control(Server, RST | ACK, Vec::new());
    });
    add(far(1010, 10_000), &|talk| {
        talk.wait_us(10_000).data(Client, 500);
        talk.wait_us(10_000).ack(Server).wait_us(60_000_000);
        for _ in 0..5 {
            talk.wait_us(10_000_000).again(Client, 1, 0);
        }
    });
    add(far(1011, 10_000), &|talk| {
        talk.wait_us(10_000).data(Client, 500);
        for power in 0..6 {
            talk.wait_us(300_000 << power).again(Client, 500, 500);
        }
    });
    add(far(1012, 10_000), &|talk| {
        talk.wait_us(10_000).data(Client, 1460);
        complaint(talk, 4);
    });
    add(begun(1013), &|talk| {
        syn(talk);
        complaint(talk, 13);
    });
    add(far(1014, 20_000), &|talk| {
        talk.window(Server, 400);
        stream(talk, 1, 1, 20_000);
        stream(talk, 40, 35, 400_000);
    });
    add(far(1015, 20_000), &|talk| {
        for _ in 0..60 {
            talk.wait_us(50).data(Client, 100);
            talk.wait_us(20_100).data(Server, 100);
        }
    });
    add(far(1016, 1000), &|talk| {
        for _ in 0..4 {
            stream(talk, 1, 2, 1000);
            talk.window(Server, 0).ack(Server).wait_us(300_000);
            talk.window(Server, 900).ack(Server);
        }
    });
    add(begun(1017), &|talk| {
        talk.shake_hands_as((1000, Some(7)), (1000, None));
        talk.window(Server, 60_000);
        for _ in 0..60 {
            for _ in 0..50 {
                talk.wait_us(5).data(Client, 1000);
            }
            talk.wait_us(20_000).ack(Server);
        }
    });
    add(far(1018, 10_000), &|talk| {
        for _ in 0..5 {
            stream(talk, 1, 4, 10_000);
            talk.wait_us(10_000).again(Client, 4 * 1460, 1460);
        }
        for frame in talk.frames.len() - 3..talk.frames.len() {
            // Congestion was marked.
            talk.frames[frame].1[15] |= 3;
        }
    });
    talks.into_iter().map(|talk| talk.frames).collect()
}

/// Questions of DNS and NTP, of which one is not answered.
fn udp() -> Frames {
    let datagram = |is_clients: bool, ports: [u16; 2], payload: &[u8]| {
        let [source, target] = ports.map(u16::to_be_bytes);
        let length = (payload.len() as u16 + 8).to_be_bytes();
        let mut ip = ipv4(
            u8::from(!is_clients),
            7,
            &[&source, &target, &length, &[0; 2], payload].concat(),
        );
        ip[9] = 17;
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0], &ip[..]].concat()
    };
    let mut frames = Frames::new();
    for at in 0..6u16 {
        let time_ns = BEGIN_NS + u64::from(at) * 16_000_000_000;
        let port = 30_000 + at;
        let dns = |flags: u8| {
            [
                0, at as u8, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1,
            ]
        };
        let ntp = |mode: u8, stamp_at: usize| {
            let mut message = [0; 48];
            (message[0], message[1], message[stamp_at + 7]) = (0x20 | mode, 2, at as u8 + 1);
            message
        };
        frames.push((time_ns, datagram(true, [port, 53], &dns(1))));
        frames.push((time_ns, datagram(true, [port, 123], &ntp(3, 40))));
        if at != 2 {
            let time_ns = time_ns + 90_000_000;
            frames.push((time_ns, datagram(false, [53, port], &dns(0x81))));
            frames.push((time_ns, datagram(false, [123, port], &ntp(4, 24))));
        }
    }
    frames
}

/// Gives all filters of a capture to tshark at once; returns what was found, and whether it was found of NTP. Without
/// tshark there is nothing.
fn check(mut frames: Frames) -> Option<Vec<(Kind, bool)>> {
    frames.sort_by_key(|(time_ns, _)| *time_ns);
    let bytes = pcap(&frames, 1, false, true);
    let trace = trace_bytes(&bytes);
    let page = page::page(&trace, "filters");
    assert_eq!(page.findings.len(), trace.findings.len());
    let mut told = Vec::new();
    let mut filters = Vec::new();
    for (finding, shown) in trace.findings.iter().zip(&page.findings) {
        let port = finding.who_port.or(finding.toward_port).expect("a service");
        let protocol = if port < 1000 { "udp" } else { "tcp" };
        told.push((finding.kind, port == 123));
        let own = shown.filter.iter();
        filters.extend(own.map(|filter| format!("({filter}) && {protocol}.port == {port}")));
        filters.extend(shown.proofs.iter().map(|(_, filter)| one_by_one(filter)));
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("filters.pcap");
    std::fs::write(&path, &bytes).expect("the temporary directory can be written");
    // A column of counts for each filter, after two passes as Wireshark makes them.
    let statistics = format!("io,stat,0,{}", filters.join(","));
    let mut tshark = Command::new("tshark");
    let tshark = tshark
        .args(["-2", "-q", "-z", &statistics, "-r"])
        .arg(&path);
    let output = tshark.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().find(|line| line.contains("<>"));
    let row = row.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let numbers = row
        .split('|')
        .skip(2)
        .filter_map(|number| number.trim().parse().ok());
    // Frames and bytes of each.
    let counts: Vec<u64> = numbers.step_by(2).collect();
    assert_eq!(counts.len(), filters.len(), "{row}");
    for (filter, count) in filters.iter().zip(counts) {
        assert!(count > 0, "{filter}");
    }
    Some(told)
}

#[test]
fn each_filter_shows_frames() {
    let talks = tcp();
    let (some, others) = talks.split_at(talks.len() / 2);
    let told = [some.concat(), [others.concat(), udp()].concat()].map(check);
    let [Some(some), Some(others)] = told else {
        return skip("tshark is not installed");
    };
    let told: BTreeSet<(Kind, bool)> = some.into_iter().chain(others).collect();
    for kind in [
        Kind::RetransmissionTimeout,
        Kind::LossBurst,
        Kind::Loss,
        Kind::WindowLimit,
        Kind::SlowReader,
        Kind::Reordering,
        Kind::NagleDelayedAck,
        Kind::DelayedAck,
        Kind::Refused,
        Kind::Unanswered,
        Kind::SynAgain,
        Kind::Reset,
        Kind::KeepaliveUnanswered,
        Kind::PeerSilent,
        Kind::PathMtu,
        Kind::Unreachable,
        Kind::Queue,
        Kind::RoundTrips,
        Kind::ZeroWindow,
        Kind::NoWindowScaling,
        Kind::ClampedMss,
        Kind::Spurious,
        Kind::CongestionMarks,
        Kind::QuestionsUnanswered,
        Kind::AnswersLate,
    ] {
        assert!(told.contains(&(kind, false)), "{kind:?}: {told:?}");
    }
    for kind in [Kind::AnswersLate, Kind::QuestionsUnanswered] {
        assert!(told.contains(&(kind, true)), "{kind:?} of NTP: {told:?}");
    }
}

/// Returns a filter without commas, at which tshark would part it.
fn one_by_one(filter: &str) -> String {
    let set = filter
        .strip_prefix("frame.number in {")
        .and_then(|rest| rest.strip_suffix('}'));
    let Some(set) = set else {
        return filter.to_owned();
    };
    let each: Vec<String> = set
        .split(", ")
        .map(|number| format!("frame.number == {number}"))
        .collect();
    each.join(" || ")
}
