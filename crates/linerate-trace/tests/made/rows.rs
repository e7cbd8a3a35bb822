//! Packets as rows: what is written as Parquet is what is written as CSV.

use crate::common;

use common::{From, Talk, pcap};
use linerate_trace::capture::Reader;
use linerate_trace::rows::{CsvRows, ParquetRows, Row};
use linerate_trace::{Limits, Tracker};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use From::{Client, Server};

/// Returns the rows of a capture, as CSV and as a Parquet file.
fn both(capture: &[u8]) -> (String, std::fs::File) {
    let mut csv = CsvRows::new(Vec::new()).expect("memory can be written");
    let file = tempfile::tempfile().expect("a temporary file");
    let output = file.try_clone().expect("another handle");
    let mut columns = ParquetRows::new(output).expect("the file can be written");
    let mut tracker = Tracker::new(Limits::default());
    let mut reader = Reader::new(capture).expect("a capture");
    tracker.begin_file("made");
    let mut parts = linerate_trace::Parts::default();
    while let Some(frame) = reader.next_frame() {
        if let Some(handled) = tracker.handle_frame(&frame, &mut parts) {
            let row = Row::new(&tracker, &handled);
            csv.add(&row).expect("memory can be written");
            columns.add(&row).expect("the file can be written");
        }
    }
    columns.finish().expect("the file can be written");
    let csv = csv.finish().expect("memory can be written");
    (String::from_utf8(csv).expect("text"), file)
}

/// Returns a value as CSV has it.
fn words(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Int(number) => number.to_string(),
        Field::Long(number) => number.to_string(),
        Field::Str(text) => text.clone(),
        other => panic!("no column has {other:?}"),
    }
}

/// Checks that both hold `rows` rows, the same ones.
fn check(frames: &[(u64, Vec<u8>)], rows: usize) -> String {
    let (csv, file) = both(&pcap(frames, 1, false, true));
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let mut read = 0;
    for (at, row) in reader.get_row_iter(None).expect("rows").enumerate() {
        let row = row.expect("a row");
        let names: Vec<&str> = row
            .get_column_iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, head);
        let values: Vec<String> = row
            .get_column_iter()
            .map(|(_, field)| words(field))
            .collect();
        assert_eq!(Some(values.join(",").as_str()), lines.next(), "row {at}");
        read += 1;
    }
    assert_eq!(lines.next(), None, "more rows as CSV");
    assert_eq!(read, rows);
    csv
}

#[test]
fn every_kind_of_row_is_the_same_in_both() {
    // Numbers that wrap and lie above 2^31, absent values, flags, losses, both directions.
    let mut talk = Talk::new(u32::MAX - 3000, 5000);
    talk.shake_hands(1460, Some(7));
    for _ in 0..4 {
        talk.wait_us(20).data(Client, 1460);
    }
    talk.wait_us(100).ack_but(Server, 4 * 1460);
    talk.wait_us(20).sack(Server, 4 * 1460, 1460);
    talk.wait_us(20).sack(Server, 4 * 1460, 2 * 1460);
    talk.wait_us(150).again(Client, 4 * 1460, 1460);
    talk.wait_us(150).ack(Server);
    talk.wait_us(10).data(Server, 7).ack(Client);
    talk.finish();
    let csv = check(&talk.frames, talk.frames.len());
    assert!(csv.contains("retransmission"), "{csv}");
}

#[test]
fn rows_go_on_behind_a_full_group() {
    let mut frames = Vec::new();
    for port in [5000, 5001] {
        let mut talk = Talk::new(1, 1).client_port(port);
        talk.shake_hands(1460, Some(7));
        for _ in 0..16_500 {
            talk.wait_us(20).data(Client, 10).ack(Server);
        }
        frames.extend(talk.frames);
    }
    frames.sort_by_key(|(time_ns, _)| *time_ns);
    assert!(frames.len() > 65_536, "{}", frames.len());
    check(&frames, frames.len());
}

#[test]
fn a_number_before_the_first_is_absent() {
    // A capture that begins with a keepalive: one below the number of what comes next.
    let mut talk = Talk::new(5000, 9000);
    talk.wait_us(100).data(Client, 10).ack(Server);
    let mut keepalive = talk.packet(Client, 0);
    keepalive.sequence = 4999;
    talk.wait_us(1_000_000).send(keepalive);
    let csv = check(&talk.frames, 3);
    let head: Vec<&str> = csv.lines().next().expect("a head").split(',').collect();
    let at = head
        .iter()
        .position(|name| *name == "sequence")
        .expect("a column");
    let numbers: Vec<&str> = csv
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').nth(at))
        .collect();
    assert_eq!(numbers, ["0", "0", ""], "{csv}");
}
