//! The page of a capture: what its pictures show has a known truth, and their size has a limit.

use crate::common;

use common::{From, Talk, pcapng};
use linerate_model::analysis::{Curve, Figure, Position, TableCell};
use linerate_model::trace_page::TracePage;
use linerate_trace::capture::Reader;
use linerate_trace::{Limits, Tracker, page};

use From::{Client, Server};

fn page_of(frames: &[(u64, Vec<u8>)]) -> TracePage {
    let limits = Limits {
        points: 16,
        ..Limits::default()
    };
    let bytes = pcapng(frames);
    let mut tracker = Tracker::new(limits);
    let mut reader = Reader::new(&bytes[..]).expect("a capture");
    tracker.read(&mut reader, "made").expect("of Ethernet");
    page::page(&tracker.finish(), "Made")
}

fn figure<'p>(page: &'p TracePage, title: &str) -> &'p Figure {
    let mut figures = page.sections[0].figures.iter();
    figures
        .find(|figure| figure.title.starts_with(title))
        .expect("a figure")
}

fn points(curve: &Curve) -> Vec<(f64, f64)> {
    let points = curve.points.iter().filter(|point| point.y.is_finite());
    points
        .map(|point| match point.x {
            Position::Number(x) => (x, point.y),
            Position::Name(_) => panic!("time is a number"),
        })
        .collect()
}

fn named<'f>(figure: &'f Figure, name: &str) -> &'f Curve {
    let mut curves = figure.curves.iter();
    curves.find(|curve| curve.name == name).expect("a curve")
}

/// A stream of `count` full segments, each 100 µs behind the one before, acknowledged by twos after
/// 1 ms; the last pair but one is sent again where `loses`.
fn stream(count: usize, loses: bool) -> Talk {
    let mut talk = Talk::new(u32::MAX - 5000, 9);
    talk.shake_hands(1460, Some(7));
    for at in 0..count / 2 {
        talk.wait_us(100)
            .data(Client, 1460)
            .wait_us(100)
            .data(Client, 1460);
        if loses && at == count / 4 {
            talk.wait_us(1000).sack(Server, 2920, 1460);
            talk.wait_us(300_000).again(Client, 2920, 1460);
        }
        talk.wait_us(1000).ack(Server);
    }
    talk
}

#[test]
fn pictures_of_any_size_end_where_the_connection_does() {
    for count in [20, 400, 40_000] {
        let talk = stream(count, true);
        let page = page_of(&talk.frames);
        let life_ns = (talk.now_ns - common::BEGIN_NS) as f64;
        let bytes = 1.0 + 1460.0 * count as f64;
        let sequence = figure(&page, "Time and sequence, sent by the client");
        let ends = |name: &str| points(named(sequence, name)).last().copied();
        let (_, sent) = ends("segments").expect("segments");
        assert_eq!(sent, bytes, "{count}");
        let (at, acknowledged) = ends("acknowledged").expect("acknowledgements");
        assert_eq!(acknowledged, bytes, "{count}");
        assert!(
            (at - life_ns).abs() < life_ns / 50.0,
            "{count}: {at} {life_ns}"
        );
        // What was sent again, and what had arrived behind it.
        let again = points(named(sequence, "retransmitted"));
        let selective = points(named(sequence, "acknowledged selectively"));
        assert_eq!(again.len(), 2, "{count}");
        assert_eq!(again[1].1, selective[0].1, "{count}");
        assert_eq!(selective[1].1 - again[0].1, 2920.0);
        // The proof of the timer is marked, within a column of where it is.
        assert!(!named(sequence, "proofs of findings").points.is_empty());
        // 1 ms and 1.1 ms, but for what was sent again.
        let trip = points(&figure(&page, "Round trip").curves[0]);
        assert!(
            trip.iter().all(|(_, ns)| (1e6..=1.1e6).contains(ns)),
            "{trip:?}"
        );
        let flight = points(named(figure(&page, "Bytes on their way"), "on their way"));
        let most = flight.iter().map(|point| point.1).fold(0.0, f64::max);
        assert_eq!(most, 2920.0);
        let all: usize = page.sections[0]
            .figures
            .iter()
            .flat_map(|one| &one.curves)
            .map(|one| one.points.len())
            .sum();
        assert!(all < 6000, "{count}: {all}");
    }
}

#[test]
fn a_life_and_its_bar_are_the_same() {
    let page = page_of(&stream(400, true).frames);
    let sum: f64 = page.sections[0].shares.iter().map(|share| share.1).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    let recovery = page.sections[0]
        .shares
        .iter()
        .find(|share| share.0 == "loss recovery");
    assert!(recovery.expect("a recovery").1 > 0.5);
    assert_eq!(
        page.findings[0].filter.as_deref(),
        Some("tcp.analysis.retransmission")
    );
}

#[test]
fn what_was_not_kept_of_a_connection_is_not_zero() {
    let mut frames = Vec::new();
    for port in 0..3 {
        let mut talk = Talk::new(1, 9).client_port(4000 + port);
        talk.shake_hands(1460, Some(7));
        talk.wait_us(100)
            .data(Client, 1000)
            .wait_us(100)
            .ack(Server);
        talk.wait_us(100).control(Client, common::RST, Vec::new());
        frames.extend(talk.frames);
    }
    let limits = Limits {
        details: 1,
        ..Limits::default()
    };
    let bytes = pcapng(&frames);
    let mut tracker = Tracker::new(limits);
    let mut reader = Reader::new(&bytes[..]).expect("a capture");
    tracker.read(&mut reader, "made").expect("of Ethernet");
    let page = page::page(&tracker.finish(), "Made");
    let rows = &page.tables[0].rows;
    let told = rows.iter().map(|row| (row[7].clone(), row[8].clone()));
    let is_kept = |cell: &TableCell| matches!(cell, TableCell::Number(..));
    let not_kept = TableCell::Absent("not kept".to_owned());
    let kept = told
        .map(|(trip, again)| match (is_kept(&trip), is_kept(&again)) {
            (true, true) => 1,
            _ => {
                assert_eq!((&trip, &again), (&not_kept, &not_kept));
                0
            }
        })
        .sum::<u32>();
    assert_eq!((rows.len(), kept), (3, 1));
}

#[test]
fn a_capture_without_connections_shows_no_numbers_of_them() {
    let page = page_of(&Vec::new());
    let labels: Vec<&str> = page.about.iter().map(|(label, _)| &**label).collect();
    assert_eq!(labels, ["Captures", "Frames", "Time", "Connections"]);
    assert_eq!((page.terms.len(), page.tables.len()), (0, 0));
}

#[test]
fn each_proof_has_its_mark() {
    let mut talk = Talk::new(1, 9);
    talk.shake_hands(1460, Some(7));
    for _ in 0..4 {
        // A timer, a closed window, a slow answer and a delayed ACK, four times.
        talk.wait_us(100).data(Client, 1460).wait_us(400_000);
        talk.again(Client, 1460, 1460).wait_us(200).ack(Server);
        talk.window(Server, 0).wait_us(100).ack(Server);
        talk.wait_us(300_000).window(Server, 1000).ack(Server);
        talk.wait_us(100)
            .data(Client, 1460)
            .wait_us(200)
            .ack(Server);
        talk.wait_us(900_000).data(Server, 500);
        talk.wait_us(100).ack(Client).wait_us(100);
        talk.data(Client, 300).wait_us(41_000).ack(Server);
    }
    let page = page_of(&talk.frames);
    let proofs: usize = page.findings.iter().map(|one| one.proofs.len()).sum();
    let proofs_curve = named(
        figure(&page, "Time and sequence, sent by the client"),
        "proofs of findings",
    );
    assert!(proofs > 12, "{:#?}", page.findings);
    assert_eq!(points(proofs_curve).len(), proofs);
}
