//! Packets as rows, for programs that compute with them: CSV, or Parquet.
//!
//! One row a segment, in the order of the capture. Sequence and acknowledgement numbers count from
//! the first of their end, as other programs show them; times are nanoseconds since 1970.

use std::net::IpAddr;

use linerate_model::sample::End;

/// Rows as text.
mod csv;
/// Rows as columns.
mod parquet;

pub use csv::CsvRows;
pub use parquet::ParquetRows;

use crate::connection::{FrameId, Verdict};
use crate::frame::Flags;
use crate::tracker::{Handled, Tracker};

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The file, from 1.
    pub(crate) file: u32,
    /// The frame, from 1.
    pub(crate) frame: u64,
    /// When, in nanoseconds since 1970.
    pub(crate) time_ns: u64,
    pub(crate) connection: u32,
    pub(crate) end: End,
    pub(crate) source: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) target: IpAddr,
    pub(crate) target_port: u16,
    pub(crate) flags: Flags,
    /// The first sequence number, from the first of its end; none of a keepalive before that.
    pub(crate) sequence: Option<u32>,
    /// What it acknowledges, from the first number of the other end.
    pub(crate) acknowledgement: Option<u32>,
    /// The window that it offers in bytes; as in the header where the scale is not known.
    pub(crate) window_bytes: u64,
    pub(crate) payload_bytes: u32,
    /// What its sender has on its way behind it.
    pub(crate) flight_bytes: Option<u32>,
    /// The sender's timestamp.
    pub(crate) stamp: Option<u32>,
    /// The timestamp that it echoes.
    pub(crate) echo: Option<u32>,
    pub(crate) verdict: Verdict,
}

/// A column: its type, and what it has of a row.
enum Column {
    U32(fn(&Row) -> u32),
    U64(fn(&Row) -> u64),
    Maybe(fn(&Row) -> Option<u32>),
    Text(fn(&Row) -> String),
}

/// The columns with their names, in order.
const COLUMNS: [(&str, Column); 18] = [
    ("file", Column::U32(|row| row.file)),
    ("frame", Column::U64(|row| row.frame)),
    ("time_ns", Column::U64(|row| row.time_ns)),
    ("connection", Column::U64(|row| row.connection.into())),
    ("end", Column::Text(|row| row.end.to_string())),
    ("source", Column::Text(|row| row.source.to_string())),
    ("source_port", Column::U32(|row| row.source_port.into())),
    ("target", Column::Text(|row| row.target.to_string())),
    ("target_port", Column::U32(|row| row.target_port.into())),
    ("flags", Column::Text(Row::flag_letters)),
    ("sequence", Column::Maybe(|row| row.sequence)),
    ("acknowledgement", Column::Maybe(|row| row.acknowledgement)),
    ("window_bytes", Column::U64(|row| row.window_bytes)),
    ("payload_bytes", Column::U64(|row| row.payload_bytes.into())),
    ("flight_bytes", Column::Maybe(|row| row.flight_bytes)),
    ("timestamp", Column::Maybe(|row| row.stamp)),
    ("timestamp_echo", Column::Maybe(|row| row.echo)),
    ("kind", Column::Text(Row::kind)),
];

impl Row {
    /// Returns the row of a segment that `tracker` has just handled.
    pub fn new(tracker: &Tracker, handled: &Handled<'_>) -> Self {
        let connection = tracker.connection(handled.at);
        let segment = handled.segment;
        let (own, other) = (
            &connection.halves[handled.end as usize],
            &connection.halves[handled.end.other() as usize],
        );
        let frame = handled.place.frame;
        let acknowledges = segment.flags.any(Flags::ACK) && other.is_seen();
        let on_its_way = own.next.wrapping_sub(other.acknowledged);
        Self {
            file: frame.map_or(0, |frame| frame.file() + 1),
            frame: frame.map_or(0, FrameId::number),
            time_ns: handled.place.time_ns,
            connection: connection.number,
            end: handled.end,
            source: segment.addresses.source(),
            source_port: segment.source_port,
            target: segment.addresses.target(),
            target_port: segment.target_port,
            flags: segment.flags,
            sequence: Some(segment.sequence.wrapping_sub(own.first))
                .filter(|_| segment.sequence.wrapping_add(1) != own.first),
            acknowledgement: acknowledges
                .then(|| segment.acknowledgement.wrapping_sub(other.first)),
            window_bytes: connection
                .window_bytes(handled.end)
                .filter(|_| !segment.flags.any(Flags::SYN))
                .unwrap_or(u64::from(segment.window)),
            payload_bytes: segment.payload_bytes,
            flight_bytes: (other.has_acknowledged() && on_its_way as i32 >= 0)
                .then_some(on_its_way),
            stamp: segment.timestamps.map(|stamps| stamps.value),
            echo: segment.timestamps.map(|stamps| stamps.echo),
            verdict: handled.verdict,
        }
    }

    /// Returns the control bits as letters: `SA` for SYN and ACK.
    fn flag_letters(&self) -> String {
        const LETTERS: [(u8, char); 8] = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::ACK, 'A'),
            (Flags::URG, 'U'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'C'),
        ];
        LETTERS
            .iter()
            .filter(|(bit, _)| self.flags.any(*bit))
            .map(|(_, letter)| letter)
            .collect()
    }

    /// Returns the names of what it is, joined by `+`.
    fn kind(&self) -> String {
        self.verdict.names().collect::<Vec<_>>().join("+")
    }
}
