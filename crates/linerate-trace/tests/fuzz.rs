//! Captures are arbitrary bytes: cut anywhere, with bits turned, or random, they give a result or
//! an error, never a panic, and memory stays within the limits. A failure prints its seed.

/// Captures made by hand.
mod common;

use common::{BEGIN_NS, From, Talk, pcap, pcapng};
use linerate_trace::capture::{LinkType, Reader};
use linerate_trace::text::{Look, text};
use linerate_trace::{Limits, Trace, Tracker};
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
        link in prop_oneof![Just(0u32), Just(1), Just(101), Just(108), Just(113), Just(276)],
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
        let totals = &trace.totals;
        prop_assert_eq!(totals.frames, frames.len() as u64);
        prop_assert_eq!(totals.tcp_frames + totals.malformed, totals.frames);
        prop_assert_eq!(totals.packets + totals.duplicate_frames, totals.tcp_frames);
        prop_assert!(totals.data_packets + totals.pure_acks <= totals.packets);
        prop_assert!(totals.retransmissions <= totals.data_packets);
        prop_assert!(totals.spurious_retransmissions <= totals.retransmissions);
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
    for number in 0..1_000_000u32 {
        bytes[26..30].copy_from_slice(&number.to_be_bytes());
        tracker.handle_frame(&linerate_trace::capture::Frame {
            number: u64::from(number) + 1,
            time_ns: u64::from(number),
            link: LinkType::ETHERNET,
            bytes: &bytes,
            wire_bytes: bytes.len() as u32,
        });
    }
    let trace = tracker.finish();
    assert_eq!(trace.totals.connections, 1_000_000);
    assert_eq!(trace.totals.forgotten, 1_000_000 - FEW.connections as u64);
    assert_eq!(trace.totals.packets, 1_000_000);
}
