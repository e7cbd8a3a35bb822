//! Bundles with files that hold far more than their size, as `bomb.py` of a security review made them: one row
//! again and again, lists and texts that are stored once. They are refused, and told, within bounds.
//!
//! Alone in its file, since the peak is that of the whole process.

use crate::common;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use linerate_model::TrialId;
use linerate_model::profile::{Stack, TrialProfile, Work};
use linerate_store::{Writer, read};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};

/// What a reader may use at most, beside what writing these files took.
const PEAK_KIB_MAX: u64 = 500 * 1024;
/// What a hostile file has at most.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The first row of a column: its values, and where they stand.
struct Row<T> {
    values: Vec<T>,
    levels: Vec<i16>,
    repeats: Vec<i16>,
}

fn first<D: DataType>(mut from: ColumnReaderImpl<D>) -> Row<D::T> {
    let mut row = Row {
        values: Vec::new(),
        levels: Vec::new(),
        repeats: Vec::new(),
    };
    let (levels, repeats) = (Some(&mut row.levels), Some(&mut row.repeats));
    from.read_records(1, levels, repeats, &mut row.values)
        .expect("a row");
    row
}

/// Writes the row `times` times; of lists, the last element of the row `longer` times more.
fn write<D: DataType>(
    row: &Row<D::T>,
    out: &mut SerializedColumnWriter<'_>,
    (times, longer): (usize, usize),
) {
    let (mut levels, mut repeats) = (row.levels.clone(), row.repeats.clone());
    let mut values = row.values.clone();
    if !repeats.is_empty() && !values.is_empty() {
        let (level, value) = (levels[levels.len() - 1], values[values.len() - 1].clone());
        levels.extend(std::iter::repeat_n(level, longer));
        repeats.extend(std::iter::repeat_n(1, longer));
        values.extend(std::iter::repeat_n(value, longer));
    }
    let mut left = times;
    while left > 0 {
        let now = left.min(10_000);
        let levels: Vec<i16> = levels.repeat(now);
        let repeats: Vec<i16> = repeats.repeat(now);
        let values: Vec<D::T> = std::iter::repeat_n(&values, now)
            .flatten()
            .cloned()
            .collect();
        out.typed::<D>()
            .write_batch(&values, given(&levels), given(&repeats))
            .expect("written");
        left -= now;
    }
}

/// Returns levels, of which a column that is always there has none.
fn given(levels: &[i16]) -> Option<&[i16]> {
    Some(levels).filter(|levels| !levels.is_empty())
}

fn copy_column(from: ColumnReader, out: &mut SerializedColumnWriter<'_>, how: (usize, usize)) {
    match from {
        ColumnReader::Int32ColumnReader(from) => write::<Int32Type>(&first(from), out, how),
        ColumnReader::Int64ColumnReader(from) => write::<Int64Type>(&first(from), out, how),
        ColumnReader::DoubleColumnReader(from) => write::<DoubleType>(&first(from), out, how),
        ColumnReader::BoolColumnReader(from) => write::<BoolType>(&first(from), out, how),
        ColumnReader::ByteArrayColumnReader(from) => write::<ByteArrayType>(&first(from), out, how),
        _ => panic!("a kind of column that no table has"),
    }
}

/// Puts a file in the place of `path` that has its first row again and again.
fn bomb(path: &Path, groups: usize, times: usize, longer: usize) {
    let source = SerializedFileReader::new(File::open(path).expect("a table")).expect("a table");
    let schema = source
        .metadata()
        .file_metadata()
        .schema_descr()
        .root_schema_ptr();
    let level = ZstdLevel::try_new(9).expect("a level");
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_dictionary_enabled(true)
        .build();
    let draft = path.with_extension("bomb");
    let sink = File::create(&draft).expect("a file");
    let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(properties)).expect("a file");
    for _ in 0..groups {
        let mut group = writer.next_row_group().expect("a group");
        let from = source.get_row_group(0).expect("a group");
        let mut at = 0;
        while let Some(mut out) = group.next_column().expect("a column") {
            copy_column(
                from.get_column_reader(at).expect("a column"),
                &mut out,
                (times, longer),
            );
            out.close().expect("closed");
            at += 1;
        }
        group.close().expect("closed");
    }
    writer.close().expect("closed");
    std::fs::rename(draft, path).expect("in its place");
}

/// Returns the largest resident size that this process has had (VmHWM of proc_pid_status(5)).
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|n| n.parse().ok()).expect("a number")
}

fn profile(id: u32) -> TrialProfile {
    TrialProfile {
        trial: TrialId(id),
        host: "server".into(),
        stacks: vec![Stack {
            frames: "worker;tcp_sendmsg;_copy_from_iter".to_owned(),
            work: Work::Copy,
            samples: 700,
        }],
    }
}

#[test]
fn files_that_hold_far_more_than_their_size_are_refused_within_bounds() {
    // Table, row groups, rows of each, further elements of a list in each row, and whether it is refused:
    // samples are packed as they come.
    let bombs = [
        ("trials", 1, 100_000, 0, true),
        ("flows", 9, 1, 1_000_000, true),
        ("stacks", 2, 600_000, 0, true),
        ("samples", 3, 1_000_000, 0, false),
        ("samples", 5, 1_000_000, 0, true),
    ];
    for (table, groups, times, longer, is_refused) in bombs {
        let place = tempfile::tempdir().expect("a temporary directory");
        let document = common::document(2);
        let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
        for id in 1..=2 {
            let mut evidence = common::evidence(id, 10, 5);
            evidence.profiles = vec![profile(id)];
            writer.append(&evidence).expect("a trial");
        }
        writer.finish(&document).expect("the end");
        let path = place.path().join(format!("{table}.parquet"));
        bomb(&path, groups, times, longer);
        let bytes = std::fs::metadata(&path).expect("a file").len();
        assert!(bytes < FILE_BYTES_MAX, "{table}: {bytes} B");
        let before = peak_kib();
        let recording = read(place.path()).expect("the rest of the bundle");
        let after = peak_kib();
        println!("{table} {groups}×{times}+{longer}: {bytes} B, peak {before} → {after} KiB");
        let told = recording.damage.join("; ");
        let refused = ["are the most", "as no bundle does", "values in a column"];
        // A reading that stands again is none.
        assert!(recording.samples.len() < 1000, "{table}");
        let is_told = refused.iter().any(|words| told.contains(words));
        assert_eq!(
            is_told && told.contains(table),
            is_refused,
            "{table}: {told}"
        );
        assert!(after < before.max(PEAK_KIB_MAX), "{table}: {after} KiB");
    }
}
