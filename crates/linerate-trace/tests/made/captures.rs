//! Formats and link types: the same frames, however they are written, are the same trace.

use crate::common;

use std::io::Write as _;

use common::blocks::block;
use common::{BEGIN_NS, From, Talk, ipv4, ipv6, pcap, pcap_cut, pcapng, trace, trace_bytes};
use linerate_trace::capture::{CaptureError, Reader};
use linerate_trace::{Limits, Trace, Tracker};

use From::{Client, Server};

fn talk() -> Vec<(u64, Vec<u8>)> {
    let mut talk = Talk::new(7, 9);
    talk.shake_hands(1460, Some(7));
    talk.wait_us(10).data(Client, 700).wait_us(100).ack(Server);
    talk.wait_us(10)
        .data(Server, 1460)
        .wait_us(10)
        .data(Server, 33);
    talk.wait_us(100).ack(Client).finish();
    talk.frames
}

/// Says what any way of writing must keep.
fn essence(trace: &Trace) -> (u64, Vec<(u32, u64, u64)>) {
    let one = |connection: &linerate_trace::ConnectionReport| {
        (
            connection.from_client.data_packets,
            connection.from_server.payload_bytes,
            connection.duration_ns,
        )
    };
    (
        trace.totals.packets,
        trace.connections.iter().map(one).collect(),
    )
}

fn check(bytes: &[u8], format: &str) {
    let found = trace_bytes(bytes);
    assert_eq!(found.files[0].format, format);
    assert_eq!(found.files[0].damage, None);
    assert_eq!(essence(&found), essence(&trace(&talk())), "{format}");
}

#[test]
fn every_format_is_the_same_trace() {
    for big in [false, true] {
        for nanos in [false, true] {
            check(&pcap(&talk(), 1, big, nanos), "pcap");
        }
    }
    let pcapng = pcapng(&talk());
    check(&pcapng, "pcapng");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&pcapng).expect("memory");
    let mut packed = encoder.finish().expect("memory");
    check(&packed, "pcapng in gzip");
    // Rotated logs are joined with cat: several members are one stream.
    let mut second = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    second.write_all(&pcapng).expect("memory");
    packed.extend(second.finish().expect("memory"));
    let twice = trace_bytes(&packed);
    assert_eq!(twice.totals.frames, 2 * talk().len() as u64);
    // What was unpacked before the cut counts.
    let cut = trace_bytes(&packed[..packed.len() - 20]);
    let damage = cut.files[0].damage.as_deref().expect("it is cut");
    assert!(damage.starts_with("reading ended at byte"), "{damage}");
    assert!(cut.totals.frames >= talk().len() as u64);
}

/// Puts frames behind another link header.
fn relinked(link: u32, header: &[u8]) -> Vec<u8> {
    let frames: Vec<(u64, Vec<u8>)> = talk()
        .into_iter()
        .map(|(time_ns, bytes)| (time_ns, [header, &bytes[14..]].concat()))
        .collect();
    pcap(&frames, link, false, true)
}

#[test]
fn every_link_type_is_the_same_trace() {
    let macs = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let cooked = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    let cooked2 = [8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    check(
        &relinked(1, &[&macs[..], &[0x81, 0, 0, 5, 8, 0]].concat()),
        "pcap",
    );
    let twice = [&macs[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0]].concat();
    check(&relinked(1, &twice), "pcap");
    check(&relinked(113, &cooked), "pcap");
    check(&relinked(276, &cooked2), "pcap");
    // What stands between the second version's header and IP: PPPoE, MPLS, two tags, SNAP.
    for (ethertype, between) in [
        ([0x88, 0x64], vec![0x11, 0, 0, 1, 0, 0, 0, 0x21]),
        ([0x88, 0x47], vec![0, 1, 1, 64]),
        ([0x88, 0xa8], vec![0, 7, 0x81, 0, 0, 5, 8, 0]),
        ([0, 4], vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
    ] {
        let header = [&ethertype[..], &cooked2[2..], &between].concat();
        check(&relinked(276, &header), "pcap");
    }
    check(&relinked(101, &[]), "pcap");
    check(&relinked(228, &[]), "pcap");
    check(&relinked(0, &[2, 0, 0, 0]), "pcap");
    check(&relinked(108, &[0, 0, 0, 2]), "pcap");
    check(&relinked(104, &[0x0f, 0, 8, 0]), "pcap");
    check(&relinked(104, &[0x0f, 0, 0x81, 0, 0, 5, 8, 0]), "pcap");
    // Frame Relay with IPv4's own number, with SNAP, with four bytes of address, and as Cisco has it.
    check(&relinked(107, &[0x18, 0x41, 3, 0xcc]), "pcap");
    let snap = [0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0];
    check(&relinked(107, &snap), "pcap");
    check(&relinked(107, &[0x18, 0x40, 0, 1, 3, 0xcc]), "pcap");
    check(&relinked(107, &[0x18, 0x41, 8, 0]), "pcap");
    for direction in [0, 1] {
        check(&relinked(166, &[direction, 3, 0, 0x21]), "pcap");
        check(&relinked(204, &[direction, 0xff, 3, 0, 0x21]), "pcap");
        check(&relinked(204, &[direction, 0x21]), "pcap");
    }
    let around = |link: u8| vec![0, 0, 12, 0, link, 0, 0, 0, 9, 9, 9, 9];
    check(&relinked(192, &around(101)), "pcap");
    let ethernet = [&around(1)[..], &macs, &[8, 0]].concat();
    check(&relinked(192, &ethernet), "pcap");
}

#[test]
fn link_headers_that_are_none_are_left_out() {
    for (link, header) in [
        (104, vec![0x8f, 0, 0x80, 0x35]),
        (107, vec![0, 0, 0, 0]),
        (107, vec![0x18, 0x41, 3, 0xcf]),
        (166, vec![0, 3, 0xc0, 0x21]),
        (192, vec![0, 0, 4, 0, 101, 0, 0, 0]),
        (192, vec![0, 0, 8, 0, 192, 0, 0, 0]),
        (192, vec![0, 0, 8, 0, 195, 0, 0, 0]),
        (192, vec![1, 0, 8, 0, 101, 0, 0, 0]),
    ] {
        let trace = common::trace_bytes(&relinked(link, &header));
        assert_eq!(trace.totals.packets, 0, "{link} {header:?}");
    }
}

#[test]
fn a_foreign_link_type_is_named() {
    let bytes = pcap(&talk(), 6, false, true);
    let mut tracker = Tracker::new(Limits::default());
    let mut reader = Reader::new(&bytes[..]).expect("a capture");
    let error = tracker
        .read(&mut reader, "ring")
        .expect_err("of Token Ring");
    assert_eq!(
        error.to_string(),
        "frames of link type 6 (IEEE 802.5 Token Ring), which is not decoded"
    );
}

#[test]
fn what_is_no_capture_is_named() {
    let error = |bytes: &[u8]| Reader::new(bytes).err().expect("no capture");
    assert!(matches!(error(b""), CaptureError::Empty));
    assert!(matches!(error(b"ab"), CaptureError::NoHeader));
    assert!(matches!(error(b"%PDF-1.7"), CaptureError::Foreign(_)));
    let mut old = pcap(&[], 1, false, false);
    old[4] = 1;
    assert!(matches!(
        error(&old),
        CaptureError::Version { major: 1, .. }
    ));
    assert!(matches!(error(&old[..20]), CaptureError::NoHeader));
}

#[test]
fn interfaces_have_their_own_clocks() {
    let mut bytes = pcapng(&talk()[..1]);
    // A second interface counts 2⁻¹⁰ s from a second after 1970.
    let mut interface = vec![1, 0, 0, 0, 0, 0, 0, 0];
    interface.extend([9, 0, 1, 0, 0x8a, 0, 0, 0]);
    interface.extend([14, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    interface.extend([0; 4]);
    bytes.extend(block(1, &interface));
    // Names, which nobody asked for.
    bytes.extend(block(4, &[0; 400]));
    let frame = &talk()[1].1;
    let mut packet = Vec::new();
    packet.extend(1u32.to_le_bytes());
    packet.extend(0u32.to_le_bytes());
    packet.extend((1024u32 * 3 + 512).to_le_bytes());
    packet.extend((frame.len() as u32).to_le_bytes());
    packet.extend((frame.len() as u32).to_le_bytes());
    packet.extend(frame);
    bytes.extend(block(6, &packet));
    let mut reader = Reader::new(&bytes[..]).expect("a capture");
    let mut times = Vec::new();
    while let Some(frame) = reader.next_frame() {
        times.push(frame.time_ns);
    }
    assert_eq!(reader.damage(), None);
    assert_eq!(times, [BEGIN_NS, 4_500_000_000]);
}

#[test]
fn sections_may_change_their_byte_order() {
    let little = pcapng(&talk());
    let mut twice = little.clone();
    twice.extend(&little);
    assert_eq!(trace_bytes(&twice).totals.frames, 2 * talk().len() as u64);
    // A big-endian section without frames, then the little one.
    let mut mixed = vec![0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28];
    mixed.extend([0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0]);
    mixed.extend([0xff; 8]);
    mixed.extend([0, 0, 0, 28]);
    mixed.extend(&little);
    assert_eq!(trace_bytes(&mixed).totals.frames, talk().len() as u64);
}

#[test]
fn snapped_frames_count_whole() {
    check(&pcap_cut(&talk(), 66), "pcap");
}

#[test]
fn fragments_and_strangers_are_counted() {
    let mut frames = talk();
    let header = frames[0].1[..14].to_vec();
    let mut fragment = ipv4(0, 5, &[0; 40]);
    (fragment[6], fragment[7]) = (0x20, 0xb9);
    frames.push((BEGIN_NS, [&header[..], &fragment].concat()));
    let mut datagram = ipv4(0, 5, &[0; 40]);
    datagram[9] = 17;
    frames.push((BEGIN_NS, [&header[..], &datagram].concat()));
    let mut arp = header.clone();
    (arp[12], arp[13]) = (8, 6);
    frames.push((BEGIN_NS, [&arp[..], &[0; 46]].concat()));
    let mut long = ipv4(0, 5, &[0; 40]);
    long[3] = 200;
    frames.push((BEGIN_NS, [&header[..], &long].concat()));
    frames.push((BEGIN_NS, [&header[..], &ipv4(0, 5, &[0; 12])].concat()));
    let totals = trace(&frames).totals;
    assert_eq!(
        (
            totals.fragments,
            totals.not_tcp,
            totals.not_ip,
            totals.malformed
        ),
        (1, 1, 1, 2)
    );
    assert_eq!(totals.packets, talk().len() as u64);
}

#[test]
fn ipv6_with_extension_headers_is_decoded() {
    let mut talk = Talk::new(1, 1).v6();
    talk.shake_hands(1440, Some(7))
        .wait_us(10)
        .data(Client, 100);
    let mut frames = talk.frames;
    // Hop-by-hop and destination options, eight bytes each, before TCP.
    for (_, bytes) in &mut frames {
        let extension = [60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0];
        bytes.splice(54..54, extension);
        bytes[14 + 6] = 0;
        let length = u16::from_be_bytes([bytes[18], bytes[19]]) + 16;
        bytes[18..20].copy_from_slice(&length.to_be_bytes());
    }
    let trace = trace(&frames);
    assert_eq!(trace.totals.payload_bytes, 100);
    assert_eq!(trace.connections[0].client.to_string(), "[fd00::1]:40000");
}

#[test]
fn filters_leave_out_the_others() {
    let mut frames = talk();
    frames.extend(
        Talk::new(1, 1)
            .client_port(99)
            .shake_hands(1460, None)
            .frames
            .clone(),
    );
    let bytes = pcapng(&frames);
    let shown = |filter: &str| {
        let filters = vec![filter.parse().expect("a filter")];
        let mut tracker = Tracker::new(Limits::default()).with_filters(filters);
        let mut reader = Reader::new(&bytes[..]).expect("a capture");
        tracker.read(&mut reader, "made").expect("of Ethernet");
        tracker.finish().totals.connections
    };
    assert_eq!(shown(":80"), 2);
    assert_eq!(shown(":99"), 1);
    assert_eq!(shown("10.0.0.1:99, 10.0.0.2:80"), 1);
    assert_eq!(shown("10.0.0.2:99"), 0);
    assert_eq!(shown("192.168.0.0/16"), 0);
    assert_eq!(shown("10.0.0.0/8"), 2);
}

#[test]
fn several_files_count_their_own_frames() {
    let mut tracker = Tracker::new(Limits::default());
    let frames = talk();
    for (at, part) in [&frames[..5], &frames[5..]].into_iter().enumerate() {
        let bytes = pcapng(part);
        let mut reader = Reader::new(&bytes[..]).expect("a capture");
        tracker
            .read(&mut reader, &format!("part {at}"))
            .expect("of Ethernet");
    }
    let joined = tracker.finish();
    assert_eq!(essence(&joined), essence(&trace(&frames)));
    assert_eq!(joined.files[1].frames, frames.len() as u64 - 5);
    assert!(joined.warnings.is_empty(), "{:?}", joined.warnings);
}

/// Returns the talk with `wrap` around each IP packet, in Ethernet frames of `ethertype`.
fn wrapped(ethertype: u16, wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<(u64, Vec<u8>)> {
    let wrap = |(time_ns, frame): (u64, Vec<u8>)| {
        let mut out = frame[..12].to_vec();
        out.extend(ethertype.to_be_bytes());
        out.extend(wrap(&frame));
        (time_ns, out)
    };
    talk().into_iter().map(wrap).collect()
}

#[test]
fn links_and_tunnels_are_looked_through() {
    let outer = |protocol: u8, payload: Vec<u8>| {
        let mut ip = ipv4(1, 0, &payload);
        ip[9] = protocol;
        ip
    };
    let udp = |port: u16, payload: Vec<u8>| {
        let mut udp = vec![200, 0];
        udp.extend(port.to_be_bytes());
        udp.extend([0; 4]);
        udp.extend(payload);
        outer(17, udp)
    };
    let before = |head: &[u8], rest: &[u8]| [head, rest].concat();
    let same = |ethertype, wrap: &dyn Fn(&[u8]) -> Vec<u8>| {
        check(&pcap(&wrapped(ethertype, wrap), 1, false, true), "pcap");
    };
    same(0x8864, &|f| {
        before(&[0x11, 0, 0, 1, 0, 0, 0, 0x21], &f[14..])
    });
    same(0x8847, &|f| before(&[0, 1, 0, 64, 0, 2, 1, 64], &f[14..]));
    same(0x893f, &|f| before(&[0, 0, 0, 1, 0, 0, 8, 0], &f[14..]));
    same(1400, &|f| before(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &f[14..]));
    same(1400, &|f| {
        before(&[0xaa, 0xaa, 3, 0, 0, 0, 0x81, 0, 0, 5, 8, 0], &f[14..])
    });
    same(1400, &|f| before(&[6, 6, 3], &f[14..]));
    same(0x8864, &|f| {
        let head = [0x11, 0, 0, 1, 0, 0, 2, 0x81, 0, 1, 1, 64];
        before(&head, &f[14..])
    });
    same(0x0800, &|f| outer(4, f[14..].to_vec()));
    same(0x0800, &|f| outer(97, before(&[0x30, 0], f)));
    same(0x0800, &|f| outer(137, before(&[0, 1, 1, 64], &f[14..])));
    same(0x0800, &|f| {
        outer(47, before(&[0, 0, 0x88, 0x47, 0, 1, 1, 64], &f[14..]))
    });
    // Teredo carries IPv6, with and without where its sender's packets come from.
    for origin in [&[][..], &[0, 0, 0x12, 0x34, 1, 2, 3, 4]] {
        same(0x0800, &|f| {
            udp(3544, before(origin, &ipv6(f[29] - 1, &f[34..])))
        });
    }
    same(0x0800, &|f| {
        outer(47, before(&[0x20, 0, 8, 0, 0, 0, 0, 9], &f[14..]))
    });
    same(0x0800, &|f| outer(47, before(&[0, 0, 0x65, 0x58], f)));
    let erspan = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 0];
    same(0x0800, &|f| outer(47, before(&erspan, f)));
    same(0x0800, &|f| udp(4789, before(&[8, 0, 0, 0, 0, 0, 1, 0], f)));
    same(0x0800, &|f| {
        udp(6081, before(&[1, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 0, 0, 0], f))
    });
    same(0x0800, &|f| {
        udp(2152, before(&[0x30, 255, 0, 9, 0, 0, 0, 1], &f[14..]))
    });
    let extended = [0x34, 255, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0];
    same(0x0800, &|f| udp(2152, before(&extended, &f[14..])));
    same(0x0800, &|f| {
        udp(4790, before(&[12, 0, 0, 3, 0, 0, 1, 0], f))
    });
    same(0x0800, &|f| {
        udp(4790, before(&[12, 0, 0, 1, 0, 0, 1, 0], &f[14..]))
    });
    same(0x0800, &|f| {
        udp(6635, before(&[0, 1, 0, 64, 0, 2, 1, 64], &f[14..]))
    });
    // Without length and sequence numbers, and with both.
    for header in [
        vec![0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21],
        vec![0x48, 2, 0, 99, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0x21],
    ] {
        same(0x0800, &|f| udp(1701, before(&header, &f[14..])));
    }
    let ppp = talk()
        .into_iter()
        .map(|(time_ns, f)| (time_ns, before(&[0xff, 3, 0, 0x21], &f[14..])));
    let ppp: Vec<_> = ppp.collect();
    for link in [9, 50] {
        check(&pcap(&ppp, link, false, true), "pcap");
    }
    // What is known to carry packets and is not decoded has its name and its count.
    let named = |ethertype, wrap: &dyn Fn(&[u8]) -> Vec<u8>| {
        let frames = wrapped(ethertype, wrap);
        let trace = trace(&frames);
        let undecoded: Vec<_> = trace.totals.undecoded.into_iter().collect();
        let [(what, count)] = undecoded[..] else {
            panic!("{undecoded:?}")
        };
        assert_eq!((trace.totals.packets, count), (0, frames.len() as u64));
        let told = |warning: &String| warning.contains(what);
        assert!(trace.warnings.iter().any(told), "{:?}", trace.warnings);
        what
    };
    assert_eq!(named(0x0800, &|_| outer(50, vec![7; 40])), "IPsec ESP");
    assert_eq!(named(0x88e5, &|_| vec![7; 40]), "MACsec");
    let inside = named(0x0800, &|_| outer(108, vec![7; 40]));
    assert_eq!(inside, "compressed IP (IPComp)");
    let inside = named(0x0800, &|f| outer(97, before(&[0x40, 0], f)));
    assert!(inside.contains("EtherIP"), "{inside}");
    let inside = named(0x0800, &|_| {
        outer(47, [&[0, 0, 0x88, 0x3e], &[7; 40][..]].concat())
    });
    assert!(inside.starts_with("GRE"), "{inside}");
    let inside = named(0x8864, &|_| {
        before(&[0x11, 0, 0, 1, 0, 0, 0, 0x3d], &[7; 40])
    });
    assert!(inside.contains("multilink"), "{inside}");
    let inside = named(0x8847, &|f| before(&[0, 1, 1, 64, 0, 0, 0, 0], f));
    assert!(inside.starts_with("MPLS"), "{inside}");
    let inside = named(0x0800, &|f| outer(47, before(&[0x30, 1, 0x88, 0x0b], f)));
    assert!(inside.starts_with("GRE"), "{inside}");
    let five_deep = named(0x0800, &|f| {
        (0..6).fold(f[14..].to_vec(), |inner, _| outer(4, inner))
    });
    assert!(
        five_deep.starts_with("packets more than four"),
        "{five_deep}"
    );
    let inside = named(0x0800, &|f| {
        udp(4790, before(&[12, 0, 0, 4, 0, 0, 1, 0], f))
    });
    assert!(inside.contains("NSH"), "{inside}");
    // What only has the port is no tunnel, nor what is longer or shorter than the packet in it.
    let none = |wrap: &dyn Fn(&[u8]) -> Vec<u8>| {
        let frames = wrapped(0x0800, wrap);
        let totals = trace(&frames).totals;
        let counts = (totals.packets, totals.not_tcp, totals.undecoded.len());
        assert_eq!(counts, (0, frames.len() as u64, 0));
    };
    for port in [1701, 3544, 4789, 4790, 6635] {
        for byte in [0, 2, 4, 8, 12, 0x45, 0xff] {
            none(&|_| udp(port, vec![byte; 40]));
        }
    }
    none(&|f| {
        let padded = [&[0, 1, 1, 64], &f[14..], &[0; 3]].concat();
        udp(6635, padded)
    });
}

#[test]
fn what_a_tunnel_hides_is_told() {
    let udp = |port: u16, payload: &[u8]| {
        let length = (8 + payload.len() as u16).to_be_bytes();
        let head = [&[200, 0], &port.to_be_bytes()[..], &length, &[0, 0]].concat();
        let mut ip = ipv4(1, 0, &[&head, payload].concat());
        ip[9] = 17;
        ip
    };
    let vxlan = |inner: &[u8]| udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0], inner].concat());
    let count = talk().len() as u64;
    // Cut within the segment, the inner IP header, and the inner link header.
    let frames = wrapped(0x0800, vxlan);
    for snap in [50 + 14 + 20 + 12, 50 + 14 + 12, 50 + 6] {
        let trace = trace_bytes(&pcap_cut(&frames, snap));
        assert_eq!((trace.totals.cut, trace.totals.udp), (count, 0), "{snap}");
        assert!(
            trace.warnings[0].contains("cut before"),
            "{:?}",
            trace.warnings
        );
    }
    let inside = |ethertype: [u8; 2], payload: &[u8]| {
        let payload = [
            &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2],
            &ethertype[..],
            payload,
        ]
        .concat();
        trace(&wrapped(0x0800, |_| vxlan(&payload))).totals
    };
    let mut esp = ipv4(0, 0, &[7; 40]);
    esp[9] = 50;
    assert_eq!(inside([8, 0], &esp).undecoded["IPsec ESP"], count);
    assert_eq!(inside([0x88, 0xe5], &[7; 40]).undecoded["MACsec"], count);
    let mut fragment = ipv4(0, 0, &[7; 40]);
    fragment[7] = 1;
    assert_eq!(inside([8, 0], &fragment).fragments, count);
    // What is whole and too short for a packet only has the port.
    let short = trace(&wrapped(0x0800, |_| vxlan(&[7; 9]))).totals;
    assert_eq!((short.udp, short.cut), (count, 0));
    assert_eq!(inside([8, 6], &[7; 40]).udp, count);
}

#[test]
fn what_is_no_ip_is_told_where_it_is_much() {
    let warned = |ethertype, payload: Vec<u8>| {
        let frames = wrapped(ethertype, |_| payload.clone());
        trace(&frames).warnings.join("; ")
    };
    // A tag of a switch's processor (DSA), and SCTP.
    let warning = warned(0xc000, vec![0; 60]);
    assert!(
        warning.contains("carry no IP that is known here"),
        "{warning}"
    );
    let mut sctp = ipv4(0, 0, &[7; 40]);
    sctp[9] = 132;
    let warning = warned(0x0800, sctp);
    assert!(warning.contains("neither TCP nor UDP"), "{warning}");
    // A few are in every capture.
    let mut frames = talk();
    let last_ns = frames[frames.len() - 1].0;
    frames.push((last_ns, wrapped(0x0806, |_| vec![0; 46]).remove(0).1));
    assert!(trace(&frames).warnings.is_empty());
}

#[test]
fn headers_without_end_are_left() {
    let many = [0x81, 0, 0, 5].repeat(40_000);
    let tag = [0, 0, 0, 1, 0, 0, 0x89, 0x3f].repeat(20_000);
    for (ethertype, payload) in [
        (0x893f, tag),
        (1400, [&[0xaa, 0xaa, 3, 0, 0, 0], &many[..]].concat()),
    ] {
        let frames = wrapped(ethertype, |_| payload.clone());
        assert_eq!(trace(&frames).totals.malformed, frames.len() as u64);
    }
}
