//! Tables in memory and as Parquet files.
//!
//! A [`TableFormat`] is the schema in Parquet's own text; the columns in memory follow from it.
//! Only the shapes that the bundle needs exist: 32 and 64 bit integers, texts, lists of integers,
//! and, in what is written only, numbers with a fraction and switches.

/// Reading them back.
mod file;

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

pub(crate) use file::TableFile;

/// What of a file's content does not fit.
pub(crate) type Unfit = Box<dyn std::error::Error + Send + Sync>;

/// Level of zstd: its own default. Half a million samples take 1.01 MB; levels 1 and 9 stay within
/// 6 % of that.
const ZSTD_LEVEL: i32 = 3;

/// What is fixed about a table: its schema and how its columns are packed.
#[derive(Debug)]
pub(crate) struct TableFormat<'a> {
    /// The schema, in the text form of the Parquet documentation.
    pub(crate) schema: &'a str,
    /// Columns stored as a dictionary and positions in it.
    pub(crate) dictionary: &'a [&'a str],
    /// Columns stored as differences.
    pub(crate) delta: &'a [&'a str],
    /// Whether whoever reads its rows packs them at once.
    pub(crate) is_packed: bool,
}

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Column {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    MaybeInt64(Vec<Option<i64>>),
    Text(Vec<ByteArray>),
    MaybeText(Vec<Option<ByteArray>>),
    MaybeList(Vec<Option<Vec<i64>>>),
    MaybeDouble(Vec<Option<f64>>),
    MaybeBool(Vec<Option<bool>>),
}

/// Columns of equal length with their names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<(String, Column)>,
}

impl TableFormat<'_> {
    fn fields(&self) -> Result<TypePtr, ParquetError> {
        parse_message_type(self.schema).map(Arc::new)
    }

    /// Returns a table of this format without rows.
    pub(crate) fn empty(&self) -> Result<Table, ParquetError> {
        let schema = self.fields()?;
        let columns = schema
            .get_fields()
            .iter()
            .map(|field| Ok((field.name().to_owned(), empty_column(field)?)))
            .collect::<Result<_, ParquetError>>()?;
        Ok(Table { columns })
    }

    /// Returns a table of this format with `columns`, in the order of the schema.
    pub(crate) fn table<const N: usize>(
        &self,
        columns: [Column; N],
    ) -> Result<Table, ParquetError> {
        let mut table = self.empty()?;
        if N != table.columns.len() {
            return Err(ParquetError::IndexOutOfBound(N, table.columns.len()));
        }
        for ((_, column), more) in table.columns.iter_mut().zip(columns) {
            column.append(more)?;
        }
        Ok(table)
    }

    fn properties(&self, format: u32) -> Result<WriterProperties, ParquetError> {
        let level = ZstdLevel::try_new(ZSTD_LEVEL)?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_dictionary_enabled(false)
            .set_key_value_metadata(Some(vec![KeyValue::new(
                "linerate.bundle_format".to_owned(),
                format.to_string(),
            )]));
        for column in self.dictionary {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(*column), true);
        }
        for column in self.delta {
            let path = ColumnPath::from(*column);
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        Ok(properties.build())
    }

    /// Opens a Parquet file of this format on `sink`, marked with the bundle's `format` number.
    pub(crate) fn writer<W: Write + Send>(
        &self,
        sink: W,
        format: u32,
    ) -> Result<SerializedFileWriter<W>, ParquetError> {
        SerializedFileWriter::new(sink, self.fields()?, Arc::new(self.properties(format)?))
    }
}

/// Returns the column in memory that `field` of a schema stands for.
fn empty_column(field: &Type) -> Result<Column, ParquetError> {
    let optional = field.get_basic_info().repetition() == Repetition::OPTIONAL;
    if field.is_group() {
        return Ok(Column::MaybeList(Vec::new()));
    }
    match (field.get_physical_type(), optional) {
        (Physical::INT32, false) => Ok(Column::Int32(Vec::new())),
        (Physical::INT64, false) => Ok(Column::Int64(Vec::new())),
        (Physical::INT64, true) => Ok(Column::MaybeInt64(Vec::new())),
        (Physical::BYTE_ARRAY, false) => Ok(Column::Text(Vec::new())),
        (Physical::BYTE_ARRAY, true) => Ok(Column::MaybeText(Vec::new())),
        (Physical::DOUBLE, true) => Ok(Column::MaybeDouble(Vec::new())),
        (Physical::BOOLEAN, true) => Ok(Column::MaybeBool(Vec::new())),
        (kind, _) => Err(ParquetError::NYI(format!("columns of {kind}"))),
    }
}

impl Column {
    /// Makes a column of the numbers of trials or flows.
    pub(crate) fn ids(ids: impl Iterator<Item = u32>) -> Self {
        Column::Int32(ids.map(u32::cast_signed).collect())
    }

    /// Makes a column of numbers.
    pub(crate) fn numbers(numbers: impl Iterator<Item = u64>) -> Self {
        Column::Int64(numbers.map(u64::cast_signed).collect())
    }

    /// Makes a column of numbers that may be absent.
    pub(crate) fn maybe_numbers(numbers: impl Iterator<Item = Option<u64>>) -> Self {
        Column::MaybeInt64(numbers.map(|it| it.map(u64::cast_signed)).collect())
    }

    /// Makes a column of texts.
    pub(crate) fn texts(texts: impl Iterator<Item = impl Into<Vec<u8>>>) -> Self {
        Column::Text(texts.map(|text| text.into().into()).collect())
    }

    /// Makes a column of texts that may be absent.
    pub(crate) fn maybe_texts(texts: impl Iterator<Item = Option<impl Into<Vec<u8>>>>) -> Self {
        Column::MaybeText(texts.map(|it| it.map(|text| text.into().into())).collect())
    }

    /// Returns how many bytes its texts have.
    pub(crate) fn text_bytes(&self) -> u64 {
        let bytes = match self {
            Column::Text(texts) => texts.iter().map(ByteArray::len).sum(),
            Column::MaybeText(texts) => texts.iter().flatten().map(ByteArray::len).sum(),
            _ => 0,
        };
        bytes as u64
    }

    /// Moves the rows of `other`, a column of the same kind, behind its own.
    fn append(&mut self, other: Column) -> Result<(), ParquetError> {
        match (self, other) {
            (Column::Int32(rows), Column::Int32(more)) => rows.extend(more),
            (Column::Int64(rows), Column::Int64(more)) => rows.extend(more),
            (Column::MaybeInt64(rows), Column::MaybeInt64(more)) => rows.extend(more),
            (Column::Text(rows), Column::Text(more)) => rows.extend(more),
            (Column::MaybeText(rows), Column::MaybeText(more)) => rows.extend(more),
            (Column::MaybeList(rows), Column::MaybeList(more)) => rows.extend(more),
            (Column::MaybeDouble(rows), Column::MaybeDouble(more)) => rows.extend(more),
            (Column::MaybeBool(rows), Column::MaybeBool(more)) => rows.extend(more),
            _ => return Err(ParquetError::General("columns of different kinds".into())),
        }
        Ok(())
    }
}

impl Table {
    /// Returns the trial that each row belongs to: every table's first column.
    pub(crate) fn trials(&self) -> &[i32] {
        match self.columns.first() {
            Some((_, Column::Int32(trials))) => trials,
            _ => &[],
        }
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.trials().len()
    }

    /// Moves the rows of `other`, a table of the same format, behind its own.
    pub(crate) fn append(&mut self, other: Table) -> Result<(), ParquetError> {
        for ((_, column), (_, more)) in self.columns.iter_mut().zip(other.columns) {
            column.append(more)?;
        }
        Ok(())
    }

    /// Writes all rows as one row group.
    pub(crate) fn write_group<W: Write + Send>(
        &self,
        writer: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = writer.next_row_group()?;
        for (name, column) in &self.columns {
            let mut out = group
                .next_column()?
                .ok_or_else(|| ParquetError::General(format!("no place for column {name}")))?;
            match column {
                Column::Int32(values) => out.typed::<Int32Type>().write_batch(values, None, None),
                Column::Int64(values) => out.typed::<Int64Type>().write_batch(values, None, None),
                Column::Text(values) => {
                    out.typed::<ByteArrayType>().write_batch(values, None, None)
                }
                Column::MaybeInt64(values) => write_maybe::<Int64Type>(&mut out, values),
                Column::MaybeText(values) => write_maybe::<ByteArrayType>(&mut out, values),
                Column::MaybeDouble(values) => write_maybe::<DoubleType>(&mut out, values),
                Column::MaybeBool(values) => write_maybe::<BoolType>(&mut out, values),
                Column::MaybeList(values) => {
                    let (present, levels, repeats) = split_lists(values);
                    out.typed::<Int64Type>()
                        .write_batch(&present, Some(&levels), Some(&repeats))
                }
            }?;
            out.close()?;
        }
        group.close()?;
        Ok(())
    }
}

/// Writes the values that are there, and for each row 1 if it is and 0 if not.
fn write_maybe<D: DataType>(
    out: &mut SerializedColumnWriter<'_>,
    values: &[Option<D::T>],
) -> Result<usize, ParquetError> {
    let present: Vec<D::T> = values.iter().flatten().cloned().collect();
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    out.typed::<D>().write_batch(&present, Some(&levels), None)
}

/// Returns the elements of all lists with their definition and repetition levels.
///
/// Definition: 0 no list, 1 an empty list, 2 an element. Repetition: 0 starts a row.
fn split_lists(values: &[Option<Vec<i64>>]) -> (Vec<i64>, Vec<i16>, Vec<i16>) {
    let (mut elements, mut levels, mut repeats) = (Vec::new(), Vec::new(), Vec::new());
    for row in values {
        match row.as_deref() {
            None => {
                levels.push(0);
                repeats.push(0);
            }
            Some([]) => {
                levels.push(1);
                repeats.push(0);
            }
            Some(list) => {
                elements.extend_from_slice(list);
                levels.resize(levels.len() + list.len(), 2);
                repeats.push(0);
                repeats.resize(repeats.len() + list.len() - 1, 1);
            }
        }
    }
    (elements, levels, repeats)
}
