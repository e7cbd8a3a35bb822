//! Parquet files as tables: the values of each column with their levels, put together again.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::{Column, Table, TableFormat};

/// The most rows of a row group; the writer closes one after some ten thousand rows, or one trial.
const GROUP_ROWS_MAX: i64 = 1 << 24;

/// A Parquet file opened for reading, row group by row group.
pub(crate) struct TableFile {
    reader: SerializedFileReader<File>,
    empty: Table,
}

impl TableFile {
    /// Opens `file`, which should hold a table of `format`.
    pub(crate) fn open(file: File, format: &TableFormat<'_>) -> Result<Self, ParquetError> {
        let reader = guarded(|| SerializedFileReader::new(file))?;
        let negative = reader.metadata().row_groups().iter().any(|group| {
            let offsets = |column: &ColumnChunkMetaData| {
                let dictionary = column.dictionary_page_offset().unwrap_or(0);
                [
                    column.data_page_offset(),
                    column.compressed_size(),
                    dictionary,
                ]
            };
            let mut numbers = group.columns().iter().flat_map(offsets);
            group.num_rows() < 0 || group.num_rows() > GROUP_ROWS_MAX || numbers.any(|n| n < 0)
        });
        if negative {
            return Err(ParquetError::General("its sizes cannot be".into()));
        }
        let empty = format.empty()?;
        Ok(Self { reader, empty })
    }

    /// Returns the number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// Returns the number of rows that the file says row group `group` has.
    pub(crate) fn rows_of(&self, group: usize) -> u64 {
        let rows = self.reader.metadata().row_group(group).num_rows();
        u64::try_from(rows).unwrap_or(0)
    }

    /// Reads row group `group`.
    pub(crate) fn read_group(&self, group: usize) -> Result<Table, ParquetError> {
        guarded(|| self.read_columns(group))
    }

    fn read_columns(&self, group: usize) -> Result<Table, ParquetError> {
        let source = self.reader.get_row_group(group)?;
        let rows = usize::try_from(source.metadata().num_rows())
            .map_err(|_| ParquetError::General("a negative number of rows".into()))?;
        let columns = self
            .empty
            .columns
            .iter()
            .map(|(name, empty)| Ok((name.clone(), read_column(&*source, name, empty, rows)?)))
            .collect::<Result<_, ParquetError>>()?;
        Ok(Table { columns })
    }
}

/// Runs `read`, and makes a panic in it an error.
///
/// The parquet crate asserts some properties of a file instead of checking them, and a file may
/// have been spoiled in any way. What `read` works on is dropped after a panic.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("it contradicts itself".into())))
}

/// Reads the column `name` of the kind of `empty`.
///
/// A column that is not in the file is absent in every row where that is possible, so that a
/// later format can add columns.
fn read_column(
    source: &dyn RowGroupReader,
    name: &str,
    empty: &Column,
    rows: usize,
) -> Result<Column, ParquetError> {
    let columns = source.metadata().columns();
    let found = columns
        .iter()
        .position(|column| column.column_path().parts().first().map(String::as_str) == Some(name));
    let Some(at) = found else {
        return match empty {
            Column::MaybeInt64(_) => Ok(Column::MaybeInt64(vec![None; rows])),
            Column::MaybeText(_) => Ok(Column::MaybeText(vec![None; rows])),
            Column::MaybeList(_) => Ok(Column::MaybeList(vec![None; rows])),
            _ => Err(ParquetError::General(format!("no column {name}"))),
        };
    };
    let column = match (empty, source.get_column_reader(at)?) {
        (Column::Int32(_), ColumnReader::Int32ColumnReader(from)) => {
            Column::Int32(Values::read(from, rows)?.required(rows)?)
        }
        (Column::Int64(_), ColumnReader::Int64ColumnReader(from)) => {
            Column::Int64(Values::read(from, rows)?.required(rows)?)
        }
        (Column::Text(_), ColumnReader::ByteArrayColumnReader(from)) => {
            Column::Text(Values::read(from, rows)?.required(rows)?)
        }
        (Column::MaybeInt64(_), ColumnReader::Int64ColumnReader(from)) => {
            Column::MaybeInt64(Values::read(from, rows)?.optional(rows)?)
        }
        (Column::MaybeText(_), ColumnReader::ByteArrayColumnReader(from)) => {
            Column::MaybeText(Values::read(from, rows)?.optional(rows)?)
        }
        (Column::MaybeList(_), ColumnReader::Int64ColumnReader(from)) => {
            Column::MaybeList(Values::read(from, rows)?.lists(rows)?)
        }
        _ => {
            return Err(ParquetError::General(format!(
                "column {name} is of another type"
            )));
        }
    };
    Ok(column)
}

/// The values of a column with their levels, as Parquet stores them.
struct Values<T> {
    present: Vec<T>,
    levels: Vec<i16>,
    repeats: Vec<i16>,
}

impl<T> Values<T> {
    fn read<D: DataType<T = T>>(
        mut from: ColumnReaderImpl<D>,
        rows: usize,
    ) -> Result<Self, ParquetError> {
        let mut values = Values {
            present: Vec::new(),
            levels: Vec::new(),
            repeats: Vec::new(),
        };
        let mut got = 0;
        while got < rows {
            let (records, _, _) = from.read_records(
                rows - got,
                Some(&mut values.levels),
                Some(&mut values.repeats),
                &mut values.present,
            )?;
            if records == 0 {
                return Err(ParquetError::EOF(format!("{got} of {rows} rows")));
            }
            got += records;
        }
        Ok(values)
    }

    fn required(self, rows: usize) -> Result<Vec<T>, ParquetError> {
        if self.present.len() != rows {
            return Err(ParquetError::General("a required value is absent".into()));
        }
        Ok(self.present)
    }

    fn optional(self, rows: usize) -> Result<Vec<Option<T>>, ParquetError> {
        if self.levels.is_empty() && self.present.len() == rows {
            return Ok(self.present.into_iter().map(Some).collect());
        }
        let mut present = self.present.into_iter();
        let values: Vec<Option<T>> = self
            .levels
            .iter()
            .map(|&level| if level > 0 { present.next() } else { None })
            .collect();
        if values.len() != rows || present.next().is_some() {
            return Err(ParquetError::General("levels do not match values".into()));
        }
        Ok(values)
    }

    fn lists(self, rows: usize) -> Result<Vec<Option<Vec<T>>>, ParquetError> {
        let mismatch = || ParquetError::General("levels do not match values".into());
        let mut present = self.present.into_iter();
        let mut lists: Vec<Option<Vec<T>>> = Vec::new();
        for (&level, &repeat) in self.levels.iter().zip(&self.repeats) {
            if repeat == 0 {
                lists.push((level > 0).then(Vec::new));
            }
            if level >= 2 {
                let value = present.next().ok_or_else(mismatch)?;
                let list = lists.last_mut().and_then(Option::as_mut);
                list.ok_or_else(mismatch)?.push(value);
            }
        }
        if lists.len() != rows || present.next().is_some() {
            return Err(mismatch());
        }
        Ok(lists)
    }
}
