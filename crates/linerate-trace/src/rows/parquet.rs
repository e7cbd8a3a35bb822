//! Rows as a Parquet file: a row group for each 65 536 of them, packed with zstd.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::Row;

/// Rows of a group: some MB in memory.
const GROUP_ROWS: usize = 65_536;

/// The columns as Parquet names their types; their order is that of [`super::COLUMNS`].
const SCHEMA: &str = "message packets {
    required int32 file; required int64 frame; required int64 time_ns; required int64 connection;
    required binary end (UTF8); required binary source (UTF8); required int32 source_port;
    required binary target (UTF8); required int32 target_port; required binary flags (UTF8);
    required int64 sequence; optional int64 acknowledgement; required int64 window_bytes;
    required int64 payload_bytes; optional int64 flight_bytes; optional int64 timestamp;
    optional int64 timestamp_echo; required binary kind (UTF8); }";

/// Why rows cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write packets as Parquet")]
pub struct RowsError(#[from] ParquetError);

/// Writes rows as columns.
pub struct ParquetRows<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: Vec<Row>,
}

impl<W: Write + Send> ParquetRows<W> {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// If `output` cannot be written.
    pub fn new(output: W) -> Result<Self, RowsError> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        Ok(Self {
            writer: SerializedFileWriter::new(output, schema, Arc::new(properties))?,
            rows: Vec::with_capacity(GROUP_ROWS),
        })
    }

    /// Takes up one row; writes a group when it is full.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn add(&mut self, row: &Row) -> Result<(), RowsError> {
        self.rows.push(*row);
        if self.rows.len() == GROUP_ROWS {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn finish(mut self) -> Result<(), RowsError> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.writer.close()?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), RowsError> {
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.writer.next_row_group()?;
        let out = &mut group;
        int32(out, rows.iter().map(|row| row.file as i32))?;
        int64(out, rows.iter().map(|row| row.frame as i64))?;
        int64(out, rows.iter().map(|row| row.time_ns as i64))?;
        int64(out, rows.iter().map(|row| i64::from(row.connection)))?;
        text(out, rows.iter().map(|row| row.end.to_string()))?;
        text(out, rows.iter().map(|row| row.source.to_string()))?;
        int32(out, rows.iter().map(|row| i32::from(row.source_port)))?;
        text(out, rows.iter().map(|row| row.target.to_string()))?;
        int32(out, rows.iter().map(|row| i32::from(row.target_port)))?;
        text(out, rows.iter().map(Row::flag_letters))?;
        int64(out, rows.iter().map(|row| i64::from(row.sequence)))?;
        maybe(out, rows.iter().map(|row| row.acknowledgement))?;
        int64(out, rows.iter().map(|row| row.window_bytes as i64))?;
        int64(out, rows.iter().map(|row| i64::from(row.payload_bytes)))?;
        maybe(out, rows.iter().map(|row| row.flight_bytes))?;
        maybe(out, rows.iter().map(|row| row.stamp))?;
        maybe(out, rows.iter().map(|row| row.echo))?;
        text(out, rows.iter().map(Row::kind))?;
        group.close()?;
        self.rows = rows;
        self.rows.clear();
        Ok(())
    }
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

/// The writer hands out as many columns as the schema has, and so do we.
fn missing() -> ParquetError {
    ParquetError::General("more columns than the schema has".to_owned())
}

fn int32<W: Write + Send>(
    group: &mut Group<'_, W>,
    values: impl Iterator<Item = i32>,
) -> Result<(), ParquetError> {
    let values: Vec<i32> = values.collect();
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column
        .typed::<Int32Type>()
        .write_batch(&values, None, None)?;
    column.close()
}

fn int64<W: Write + Send>(
    group: &mut Group<'_, W>,
    values: impl Iterator<Item = i64>,
) -> Result<(), ParquetError> {
    let values: Vec<i64> = values.collect();
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column
        .typed::<Int64Type>()
        .write_batch(&values, None, None)?;
    column.close()
}

fn maybe<W: Write + Send>(
    group: &mut Group<'_, W>,
    values: impl Iterator<Item = Option<u32>> + Clone,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values
        .clone()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let present: Vec<i64> = values.flatten().map(i64::from).collect();
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column
        .typed::<Int64Type>()
        .write_batch(&present, Some(&levels), None)?;
    column.close()
}

fn text<W: Write + Send>(
    group: &mut Group<'_, W>,
    values: impl Iterator<Item = String>,
) -> Result<(), ParquetError> {
    let values: Vec<ByteArray> = values
        .map(|text| ByteArray::from(text.into_bytes()))
        .collect();
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column
        .typed::<ByteArrayType>()
        .write_batch(&values, None, None)?;
    column.close()
}
