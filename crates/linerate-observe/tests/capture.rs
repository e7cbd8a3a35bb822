//! Captures on the loopback device of this machine, of traffic that the test makes.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use linerate_observe::capture::{
    Anonymiser, Capture, CaptureConfig, CaptureError, LINKTYPE_ETHERNET, Ports, Selection,
};

const DATAGRAMS: usize = 500;
/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;

fn config(device: &str, snap_bytes: u32) -> CaptureConfig {
    CaptureConfig {
        device: device.to_owned(),
        snap_bytes,
        ring_bytes: 4 << 20,
        ports: Ports::Any,
    }
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn open(snap_bytes: u32) -> Option<Capture> {
    match Capture::open(&config("lo", snap_bytes)) {
        Ok(capture) => Some(capture),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

#[test]
fn each_frame_over_loopback_is_seen_once_and_cut_to_its_headers() {
    let snap_bytes = HEADERS as u32 + 4;
    let Some(mut capture) = open(snap_bytes) else {
        return;
    };
    assert_eq!(capture.link_type(), LINKTYPE_ETHERNET);
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = receiver.local_addr().expect("it is bound");
    let payload = [7; 1000];
    for number in 0..DATAGRAMS as u32 {
        let mut payload = payload;
        payload[..4].copy_from_slice(&number.to_be_bytes());
        sender.send_to(&payload, to).expect("it is sent");
    }
    let mut numbers = Vec::new();
    let mut last_ns = 0;
    let mut hidden = Anonymiser::new(capture.link_type());
    let deadline = Instant::now() + Duration::from_secs(10);
    while numbers.len() < DATAGRAMS && Instant::now() < deadline {
        let take = |frame: &linerate_observe::capture::Frame<'_>| {
            let is_ours = frame.bytes.get(36..38) == Some(&to.port().to_be_bytes()[..]);
            if !is_ours {
                return;
            }
            assert_eq!(frame.bytes.len(), snap_bytes as usize);
            assert_eq!(frame.length as usize, HEADERS + payload.len());
            assert!(frame.at_unix_ns >= last_ns, "in order of time");
            last_ns = frame.at_unix_ns;
            let number = frame.bytes[HEADERS..].first_chunk().expect("four bytes");
            numbers.push(u32::from_be_bytes(*number));
            let nobody = hidden.anonymise(frame).expect("it is UDP");
            assert_eq!(nobody.bytes.len(), HEADERS, "no payload");
            assert_eq!(nobody.bytes[26], 10);
        };
        capture
            .read(Duration::from_millis(100), take)
            .expect("a live device");
    }
    assert!(
        numbers.iter().copied().eq(0..DATAGRAMS as u32),
        "{numbers:?}"
    );
    let counts = capture.counts().expect("counts");
    assert!(counts.frames >= DATAGRAMS as u64, "{counts:?}");
    assert_eq!(counts.drops, 0, "the ring holds them all");
    let again = capture.counts().expect("counts");
    assert!(again.frames >= counts.frames, "counts add up");
}

#[test]
fn frames_of_other_ports_cost_no_room() {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = |socket: &UdpSocket| socket.local_addr().expect("it is bound");
    let opened = Capture::open(&CaptureConfig {
        ports: Ports::Own(vec![port(&receiver).port()]),
        ..config("lo", 96)
    });
    let Ok(mut capture) = opened else { return };
    for _ in 0..DATAGRAMS {
        sender.send_to(b"other", port(&other)).expect("it is sent");
        sender
            .send_to(b"ours", port(&receiver))
            .expect("it is sent");
    }
    let link_type = capture.link_type();
    let ours = Selection::conversations([(port(&receiver), port(&sender))]);
    let others = Selection::conversations([(port(&other), port(&sender))]);
    let mut seen = 0;
    let deadline = Instant::now() + Duration::from_secs(10);
    while seen < DATAGRAMS && Instant::now() < deadline {
        let wait = Duration::from_millis(100);
        capture
            .read(wait, |frame| {
                assert!(ours.has(link_type, frame) && !others.has(link_type, frame));
                seen += 1;
            })
            .expect("a live device");
    }
    assert_eq!(seen, DATAGRAMS);
    let counts = capture.counts().expect("counts");
    assert_eq!((counts.frames, counts.drops), (DATAGRAMS as u64, 0));
}

#[test]
fn what_the_ring_does_not_hold_is_counted() {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = receiver.local_addr().expect("it is bound");
    let Some(mut capture) = Capture::open(&CaptureConfig {
        ring_bytes: 1,
        ports: Ports::Own(vec![to.port()]),
        ..config("lo", 2000)
    })
    .ok() else {
        return;
    };
    // Twice what two blocks of 256 KiB hold; nobody reads.
    let sent = 1000;
    for _ in 0..sent {
        sender.send_to(&[0; 1400], to).expect("it is sent");
    }
    let counts = capture.counts().expect("counts");
    assert!(
        counts.drops > 0 && counts.drops < counts.frames,
        "{counts:?}"
    );
    assert!(counts.frames >= sent, "{counts:?}");
    let mut kept = 0;
    while capture
        .read(Duration::from_millis(50), |_| kept += 1)
        .expect("a live device")
        > 0
    {
        assert!(kept < 10 * sent, "other traffic");
    }
    assert!(kept < counts.frames, "{kept} of {counts:?}");
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let error = Capture::open(&config("nosuch0", 64)).expect_err("there is none");
    assert!(matches!(&error, CaptureError::NoDevice(device) if device == "nosuch0"));
    assert!(Capture::open(&config("a\0b", 64)).is_err());
}
