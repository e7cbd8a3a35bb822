//! Parquet files as tables: the values of each column with their levels, put together again.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;

use super::{Column, Table, TableFormat};

/// The most rows of a row group; the writer closes one after some ten thousand rows, or one trial.
const READ_GROUP_ROWS_MAX: i64 = 1 << 24;

/// The most values of a column in a row group: lists have several in a row.
const GROUP_VALUES_MAX: i64 = 1 << 25;
/// The most bytes of a file once it is unpacked, where its size does not say that it has more: [`HELD_PER_BYTE`].
const FILE_BYTES_MAX: i64 = 4 << 30;
/// The most bytes of the texts of a column in a row group: stored once, one may stand in every row.
const TEXT_BYTES_MAX: usize = 256 << 20;
/// What any file may hold once it is read, over all row groups: as much as one column's texts.
const HELD_BYTES: u64 = TEXT_BYTES_MAX as u64;
/// What it may hold for each of its own bytes beyond that: flows of thousands of connections hold up to 120
/// times as much, and what repeats one value says that it holds thousands of times its size.
const HELD_PER_BYTE: u64 = 300;
/// How many rows for each of its bytes a file may have beyond its limit whose rows are packed: hosts with 64 CPUs of which most
/// rest have nine (`crates/linerate/examples/big_bundle.rs`), the samples of request/response two.
const ROWS_PER_BYTE: u64 = 32;
/// Rows of a row group that are taken at a time.
const SLICE_ROWS: usize = 64 << 10;
/// What a value counts for, present or not; texts count their bytes beside.
const HELD_PER_VALUE: u64 = 16;

/// A Parquet file opened for reading, row group by row group.
pub(crate) struct TableFile {
    reader: SerializedFileReader<File>,
    /// The same file, for what is taken from it as it is.
    source: File,
    empty: Table,
    /// Whether whoever takes rows packs them, so that no more than a slice is held as it is read.
    is_packed: bool,
    /// What the texts may still take of what the file may hold.
    texts_left: Cell<u64>,
}

impl TableFile {
    /// Opens `file`, which should hold a table of `format`.
    /// One with more rows than `rows_max`, or values of which a row has too many, is refused unread.
    pub(crate) fn open(
        file: File,
        format: &TableFormat<'_>,
        rows_max: u64,
    ) -> Result<Self, ParquetError> {
        let length = file.metadata()?.len();
        let (group_rows_max, values_max, rows_max) = if format.is_packed {
            let rows_max = rows_max.max(length.saturating_mul(ROWS_PER_BYTE));
            let most = i64::try_from(rows_max).unwrap_or(i64::MAX);
            (most, most, rows_max)
        } else {
            (READ_GROUP_ROWS_MAX, GROUP_VALUES_MAX, rows_max)
        };
        let source = file.try_clone()?;
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
            group.num_rows() < 0 || group.num_rows() > group_rows_max || numbers.any(|n| n < 0)
        });
        if negative {
            return Err(ParquetError::General("its sizes cannot be".into()));
        }
        let groups = reader.metadata().row_groups();
        let rows: i64 = groups.iter().map(|group| group.num_rows()).sum();
        if rows.unsigned_abs() > rows_max {
            let error = format!("it has {rows} rows, and {rows_max} are the most");
            return Err(ParquetError::General(error));
        }
        let columns = groups.iter().flat_map(|group| group.columns());
        let (mut values, mut bytes) = (0_i64, 0_i64);
        let mut held = 0_u64;
        for column in columns {
            values = values.max(column.num_values());
            let count = column.num_values().unsigned_abs();
            held = held.saturating_add(count.saturating_mul(HELD_PER_VALUE));
            bytes = bytes.saturating_add(column.uncompressed_size());
        }
        let bytes_max = match i64::try_from(length.saturating_mul(HELD_PER_BYTE)) {
            Ok(most) if format.is_packed => most.max(FILE_BYTES_MAX),
            _ => FILE_BYTES_MAX,
        };
        if values > values_max || bytes > bytes_max {
            let error = format!("it has {bytes} B, up to {values} values in a column");
            return Err(ParquetError::General(error));
        }
        let most = HELD_BYTES.max(length.saturating_mul(HELD_PER_BYTE));
        let held = if format.is_packed { 0 } else { held };
        let texts_left = most.checked_sub(held).ok_or_else(|| too_dense(most))?;
        let empty = format.empty()?;
        Ok(Self {
            reader,
            source,
            empty,
            is_packed: format.is_packed,
            texts_left: Cell::new(texts_left),
        })
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

    /// Returns the number of rows that the file says it has.
    pub(crate) fn rows(&self) -> u64 {
        (0..self.groups()).map(|group| self.rows_of(group)).sum()
    }

    /// Returns all rows.
    pub(crate) fn read_all(&self) -> Result<Table, ParquetError> {
        let mut all = self.empty.clone();
        for group in 0..self.groups() {
            let mut fits = Ok(());
            self.read_group(group, |slice| {
                fits = std::mem::replace(&mut fits, Ok(())).and_then(|()| all.append(slice));
            })?;
            fits?;
        }
        Ok(all)
    }

    /// Adds all row groups to those of `writer`, byte for byte.
    pub(crate) fn copy_groups<W: Write + Send>(
        &self,
        writer: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        for group in self.reader.metadata().row_groups() {
            let mut copy = writer.next_row_group()?;
            for column in group.columns() {
                let closed = ColumnCloseResult {
                    bytes_written: column.compressed_size().unsigned_abs(),
                    rows_written: group.num_rows().unsigned_abs(),
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                copy.append_column(&self.source, closed)?;
            }
            copy.close()?;
        }
        Ok(())
    }

    /// Passes the rows of group `group` to `take`, a slice after another; one that cannot be read ends it.
    pub(crate) fn read_group(
        &self,
        group: usize,
        mut take: impl FnMut(Table),
    ) -> Result<(), ParquetError> {
        let mut columns = guarded(|| self.open_columns(group))?;
        let mut left = usize::try_from(self.reader.metadata().row_group(group).num_rows())
            .map_err(|_| ParquetError::General("a negative number of rows".into()))?;
        while left > 0 {
            let rows = left.min(SLICE_ROWS);
            take(guarded(|| self.read_slice(&mut columns, rows))?);
            left -= rows;
        }
        Ok(())
    }

    fn open_columns(&self, group: usize) -> Result<Vec<Open>, ParquetError> {
        let source = self.reader.get_row_group(group)?;
        let columns = self.empty.columns.iter();
        columns
            .map(|(name, empty)| Open::new(&*source, name, empty))
            .collect()
    }

    fn read_slice(&self, columns: &mut [Open], rows: usize) -> Result<Table, ParquetError> {
        let named = self.empty.columns.iter().zip(&mut *columns);
        let read = named
            .map(|((name, empty), open)| Ok((name.clone(), open.read(name, empty, rows)?)))
            .collect::<Result<_, ParquetError>>()?;
        let table = Table { columns: read };
        if self.is_packed {
            columns.iter_mut().for_each(|open| open.text_bytes = 0);
            return Ok(table);
        }
        let texts = table.columns.iter().map(|(_, column)| column.text_bytes());
        let left = self.texts_left.get().checked_sub(texts.sum());
        // Nothing of a file that says so much is worth reading.
        self.texts_left.set(left.unwrap_or(0));
        match left {
            Some(_) => Ok(table),
            None => Err(too_dense(HELD_BYTES)),
        }
    }
}

fn too_dense(most: u64) -> ParquetError {
    ParquetError::General(format!(
        "it holds more than {most} B for its size, as no bundle does"
    ))
}

/// Runs `read`, and makes a panic in it an error.
///
/// The parquet crate asserts some properties of a file instead of checking them, and a file may
/// have been spoiled in any way. What `read` works on is dropped after a panic.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("it contradicts itself".into())))
}

/// A column of a row group that is being read.
struct Open {
    /// Nothing, where the file has no such column.
    reader: Option<ColumnReader>,
    text_bytes: usize,
}

impl Open {
    /// Opens the column `name` of the kind of `empty`.
    ///
    /// A column that is not in the file is absent in every row where that is possible, so that a
    /// later format can add columns.
    fn new(source: &dyn RowGroupReader, name: &str, empty: &Column) -> Result<Self, ParquetError> {
        let columns = source.metadata().columns();
        let found = columns.iter().position(|column| {
            column.column_path().parts().first().map(String::as_str) == Some(name)
        });
        let may_be_absent = matches!(
            empty,
            Column::MaybeInt64(_) | Column::MaybeText(_) | Column::MaybeList(_)
        );
        if found.is_none() && !may_be_absent {
            return Err(ParquetError::General(format!("no column {name}")));
        }
        let reader = found.map(|at| source.get_column_reader(at)).transpose()?;
        Ok(Self {
            reader,
            text_bytes: 0,
        })
    }

    /// Reads the next `rows` rows.
    fn read(&mut self, name: &str, empty: &Column, rows: usize) -> Result<Column, ParquetError> {
        let column = match (empty, &mut self.reader) {
            (Column::MaybeInt64(_), None) => Column::MaybeInt64(vec![None; rows]),
            (Column::MaybeText(_), None) => Column::MaybeText(vec![None; rows]),
            (Column::MaybeList(_), None) => Column::MaybeList(vec![None; rows]),
            (Column::Int32(_), Some(ColumnReader::Int32ColumnReader(from))) => {
                Column::Int32(Values::read(from, rows)?.required(rows)?)
            }
            (Column::Int64(_), Some(ColumnReader::Int64ColumnReader(from))) => {
                Column::Int64(Values::read(from, rows)?.required(rows)?)
            }
            (Column::Text(_), Some(ColumnReader::ByteArrayColumnReader(from))) => {
                Column::Text(Values::read(from, rows)?.required(rows)?)
            }
            (Column::MaybeInt64(_), Some(ColumnReader::Int64ColumnReader(from))) => {
                Column::MaybeInt64(Values::read(from, rows)?.optional(rows)?)
            }
            (Column::MaybeText(_), Some(ColumnReader::ByteArrayColumnReader(from))) => {
                Column::MaybeText(Values::read(from, rows)?.optional(rows)?)
            }
            (Column::MaybeList(_), Some(ColumnReader::Int64ColumnReader(from))) => {
                Column::MaybeList(Values::read(from, rows)?.lists(rows)?)
            }
            _ => {
                return Err(ParquetError::General(format!(
                    "column {name} is of another type"
                )));
            }
        };
        self.text_bytes = self.text_bytes.saturating_add(column.text_bytes() as usize);
        if self.text_bytes > TEXT_BYTES_MAX {
            let error = format!("a column of it has {} B of text", self.text_bytes);
            return Err(ParquetError::General(error));
        }
        Ok(column)
    }
}

/// The values of a column with their levels, as Parquet stores them.
struct Values<T> {
    present: Vec<T>,
    levels: Vec<i16>,
    repeats: Vec<i16>,
}

impl<T> Values<T> {
    fn read<D: DataType<T = T>>(
        from: &mut ColumnReaderImpl<D>,
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

#[cfg(test)]
mod tests {
    use parquet::data_type::ByteArray;

    use super::*;

    const FORMAT: TableFormat<'static> = TableFormat {
        schema: "message m { REQUIRED INT32 trial; REQUIRED BYTE_ARRAY text; }",
        dictionary: &["text"],
        delta: &[],
        is_packed: false,
    };

    /// Reads a group; returns how many rows it has.
    fn read(file: &TableFile, group: usize) -> Result<usize, ParquetError> {
        let mut rows = 0;
        file.read_group(group, |table| rows += table.rows())?;
        Ok(rows)
    }

    /// Returns a file of `groups` row groups of `rows` rows, all with the same text of `bytes`.
    fn written(groups: usize, rows: usize, bytes: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = FORMAT.writer(&mut file, 1).unwrap();
        let text = ByteArray::from(vec![b'x'; bytes]);
        for _ in 0..groups {
            let columns = [
                Column::Int32(vec![1; rows]),
                Column::Text(vec![text.clone(); rows]),
            ];
            FORMAT
                .table(columns)
                .unwrap()
                .write_group(&mut writer)
                .unwrap();
        }
        writer.close().unwrap();
        file
    }

    #[test]
    fn more_rows_than_there_may_be_are_refused_unread() {
        let open = |most| TableFile::open(written(3, 10, 5), &FORMAT, most);
        assert_eq!(open(30).unwrap().groups(), 3);
        let refused = open(29).map(|file| file.groups()).unwrap_err().to_string();
        assert!(
            refused.contains("it has 30 rows, and 29 are the most"),
            "{refused}"
        );
    }

    #[test]
    fn rows_that_are_packed_may_hold_as_much_as_they_like_and_come_in_slices() {
        const PACKED: TableFormat<'static> = TableFormat {
            is_packed: true,
            ..FORMAT
        };
        let (rows, text_bytes) = (3 * SLICE_ROWS + 5, 3000);
        let open = |format| TableFile::open(written(1, rows, text_bytes), format, 1 << 20).unwrap();
        let refused = read(&open(&FORMAT), 0).unwrap_err().to_string();
        assert!(refused.contains("B of text"), "{refused}");
        let mut slices = Vec::new();
        let taken = open(&PACKED).read_group(0, |table| slices.push(table.rows()));
        taken.unwrap();
        assert_eq!(slices, [SLICE_ROWS, SLICE_ROWS, SLICE_ROWS, 5]);
    }

    #[test]
    fn a_text_that_stands_in_too_many_rows_is_refused() {
        let read = |rows| {
            let file = written(1, rows, 1 << 20);
            read(&TableFile::open(file, &FORMAT, 1000).unwrap(), 0)
        };
        assert_eq!(read(200).unwrap(), 200);
        let refused = read(300).unwrap_err().to_string();
        assert!(refused.contains("B of text"), "{refused}");
    }

    #[test]
    fn what_holds_too_much_for_its_size_is_refused_over_all_groups() {
        // Each group is within its limits: 200 MiB of one text, in a file of some KB.
        let file = TableFile::open(written(3, 200, 1 << 20), &FORMAT, 1000).unwrap();
        assert_eq!(read(&file, 0).unwrap(), 200);
        for group in [1, 2] {
            let refused = read(&file, group).unwrap_err().to_string();
            assert!(refused.contains("as no bundle does"), "{refused}");
        }
    }
}
