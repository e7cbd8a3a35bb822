//! Rows as a Parquet file: a row group for each 65 536 of them, packed with zstd.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{COLUMNS, Column, Row};

/// Rows of a group: some MB in memory.
const GROUP_ROWS: usize = 65_536;

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
        let schema = Arc::new(parse_message_type(&schema())?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        Ok(Self {
            writer: SerializedFileWriter::new(output, schema, Arc::new(properties))?,
            rows: Vec::with_capacity(GROUP_ROWS),
        })
    }

    /// Adds one row; writes a group when it is full.
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
        let mut group = self.writer.next_row_group()?;
        let rows = self.rows.iter();
        for (_, column) in COLUMNS {
            match column {
                Column::U32(value) => {
                    let values = rows.clone().map(|row| value(row) as i32);
                    write_column::<Int32Type>(&mut group, values.collect(), None)?;
                }
                Column::U64(value) => {
                    let values = rows.clone().map(|row| value(row) as i64);
                    write_column::<Int64Type>(&mut group, values.collect(), None)?;
                }
                Column::Text(value) => {
                    let values = rows
                        .clone()
                        .map(|row| ByteArray::from(value(row).into_bytes()));
                    write_column::<ByteArrayType>(&mut group, values.collect(), None)?;
                }
                Column::Maybe(value) => {
                    let levels: Vec<i16> = rows
                        .clone()
                        .map(|row| value(row).is_some().into())
                        .collect();
                    let present = rows.clone().filter_map(value).map(i64::from);
                    write_column::<Int64Type>(&mut group, present.collect(), Some(&levels))?;
                }
            }
        }
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

/// Returns the columns as Parquet names their types.
fn schema() -> String {
    let columns = COLUMNS.map(|(name, column)| match column {
        Column::U32(_) => format!("required int32 {name};"),
        Column::U64(_) => format!("required int64 {name};"),
        Column::Maybe(_) => format!("optional int64 {name};"),
        Column::Text(_) => format!("required binary {name} (UTF8);"),
    });
    format!("message packets {{ {} }}", columns.join(" "))
}

/// Writes the next column; `levels` say which rows have a value where some have none.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("more columns than the schema has".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, levels, None)?;
    column.close()
}
