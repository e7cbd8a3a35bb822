//! `results.parquet`: what was reduced from a run, for programs that compute further.
//!
//! It is derived, as `report.html` is: written when a report is rendered, from outcomes that the
//! caller computed, and never read by this room. One row a trial and response:
//!
//! | column | type | content |
//! |---|---|---|
//! | `trial` | int32 | number in the plan |
//! | `experiment`, `cell` | text | as in `trials.parquet` |
//! | `replicate` | int64 | which repetition of the cell |
//! | a factor's name | int64, double, boolean or text | its level; one column for each factor that some trial of the run has a level of |
//! | `response` | text | name of the response |
//! | `value` | double | in the base unit |
//! | `unit` | text | as in the report's JSON: `bits_per_second`, `nanoseconds` … |
//! | `valid` | boolean | whether it may be averaged |
//! | `invalid_reason` | text | null for a valid trial |
//! | `flags` | text | a JSON list of texts: what was corrected or is to be known |
//!
//! 1. Factors are columns rather than keys of a document, since that is what `GROUP BY` and
//!    `groupby` take. Those that no trial has are left out: a study has a dozen of the two dozen that
//!    there are, and a single measurement none. Files of several runs are read together by name
//!    (`union_by_name` of DuckDB).
//! 2. A factor with levels in numbers has a column of numbers. A level in words beside them, such as
//!    `auto`, is null there and stands in `cell`.
//! 3. A trial without any response has one row, whose response is null, so that no trial is missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use linerate_model::experiment::{Factor, Level};
use linerate_model::outcome::{Outcome, Response};
use linerate_model::run::BUNDLE_FORMAT;
use linerate_model::unit::Unit;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use serde_json::{Value, json};

use crate::durable;
use crate::layout::RESULTS;
use crate::rows::{self, trials::cell_json};
use crate::table::{Column, Table, TableFormat};
use crate::writer::{WriteError, unfit};

/// Columns that repeat: stored as a dictionary.
const DICTIONARY: &[&str] = &[
    "experiment",
    "cell",
    "response",
    "unit",
    "invalid_reason",
    "flags",
];

/// Writes `outcomes` as the results of the bundle in `dir` and returns the file's path.
pub fn write_results(dir: &Path, outcomes: &[Outcome]) -> Result<PathBuf, WriteError> {
    let bytes = encode(&table(outcomes)).map_err(unfit(&dir.join(RESULTS)))?;
    Ok(durable::replace_with(dir, RESULTS, &bytes)?)
}

/// Returns the rows of `results.parquet` as text: commas between values, a line of names first.
pub fn results_csv(outcomes: &[Outcome]) -> String {
    let table = table(outcomes);
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| &**name).collect();
    let mut text = names.join(",") + "\r\n";
    for row in 0..table.rows() {
        for (at, (_, column)) in table.columns.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&csv_field(column, row));
        }
        text.push_str("\r\n");
    }
    text
}

fn csv_field(column: &Column, row: usize) -> String {
    fn shown(value: Option<impl ToString>) -> String {
        value.map_or(String::new(), |value| value.to_string())
    }
    match column {
        Column::Int32(values) => values[row].to_string(),
        Column::Int64(values) => values[row].to_string(),
        Column::MaybeInt64(values) => shown(values[row]),
        Column::MaybeDouble(values) => shown(values[row]),
        Column::MaybeBool(values) => shown(values[row]),
        Column::Text(values) => quoted(&values[row]),
        Column::MaybeText(values) => shown(values[row].as_ref().map(quoted)),
        // No column of results is a list.
        Column::MaybeList(_) => String::new(),
    }
}

/// Returns a text as a field, as RFC 4180 quotes it.
fn quoted(text: &ByteArray) -> String {
    let text = rows::text(text);
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// One row: a trial and one of its responses.
type Row<'o> = (&'o Outcome, Option<(&'o str, Response)>);

fn table(outcomes: &[Outcome]) -> Table {
    let rows: Vec<Row<'_>> = outcomes.iter().flat_map(rows_of).collect();
    let text = |of: &dyn Fn(&Row<'_>) -> Option<String>| Column::maybe_texts(rows.iter().map(of));
    let mut columns = vec![
        ("trial", Column::ids(rows.iter().map(|row| row.0.trial.0))),
        ("experiment", text(&|row| Some(row.0.experiment.clone()))),
        ("cell", text(&|row| Some(cell_json(&row.0.cell)))),
        (
            "replicate",
            Column::maybe_numbers(rows.iter().map(|row| Some(row.0.replicate.into()))),
        ),
    ];
    let factors: BTreeSet<Factor> = rows
        .iter()
        .flat_map(|row| row.0.cell.keys().copied())
        .collect();
    let named: Vec<_> = factors
        .iter()
        .map(|factor| (factor.name(), factor))
        .collect();
    for (name, factor) in &named {
        let levels: Vec<Option<&Level>> = rows.iter().map(|row| row.0.cell.get(factor)).collect();
        columns.extend(level_column(&levels).map(|column| (&**name, column)));
    }
    columns.extend([
        ("response", text(&|row| Some(row.1?.0.to_owned()))),
        (
            "value",
            Column::MaybeDouble(rows.iter().map(|row| Some(row.1?.1.value)).collect()),
        ),
        ("unit", text(&|row| unit(row.1?.1.unit))),
        (
            "valid",
            Column::MaybeBool(rows.iter().map(|row| Some(row.0.is_valid())).collect()),
        ),
        (
            "invalid_reason",
            text(&|row| row.0.validity.reason().map(ToString::to_string)),
        ),
        ("flags", text(&|row| Some(json!(row.0.flags).to_string()))),
    ]);
    let named = |(name, column): (&str, Column)| (name.to_owned(), column);
    Table {
        columns: columns.into_iter().map(named).collect(),
    }
}

fn rows_of(outcome: &Outcome) -> impl Iterator<Item = Row<'_>> {
    let responses = outcome.responses.iter();
    let none = outcome.responses.is_empty().then_some((outcome, None));
    responses
        .map(move |(name, response)| (outcome, Some((&**name, *response))))
        .chain(none)
}

/// Returns the column of a factor, unless no row has a level of it.
fn level_column(levels: &[Option<&Level>]) -> Option<Column> {
    let present = || levels.iter().flatten();
    present().next()?;
    let is_share = |level: &&&Level| matches!(level, Level::Ppm(_));
    let is_number = |level: &&&Level| level.as_number().is_some();
    let is_switch = |level: &&Level| matches!(level, Level::Switch(_));
    let number = |level: &Option<&Level>| level.and_then(Level::as_number);
    let column = if present().any(|level| is_share(&level)) {
        Column::MaybeDouble(levels.iter().map(number).collect())
    } else if present().any(|level| is_number(&level)) {
        let whole = |level: &Option<&Level>| number(level).map(|number| number as i64);
        Column::MaybeInt64(levels.iter().map(whole).collect())
    } else if present().all(is_switch) {
        let on = |level: &Option<&Level>| Some(**(level.as_ref()?) == Level::Switch(true));
        Column::MaybeBool(levels.iter().map(on).collect())
    } else {
        Column::maybe_texts(levels.iter().map(|level| Some(level.as_ref()?.to_string())))
    };
    Some(column)
}

/// Returns the name of a unit, as documents carry it.
fn unit(unit: Unit) -> Option<String> {
    match serde_json::to_value(unit) {
        Ok(Value::String(name)) => Some(name),
        _ => None,
    }
}

/// Returns `table` as a Parquet file.
fn encode(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let fields: Vec<String> = table
        .columns
        .iter()
        .map(|(name, column)| format!("{} {name}{};", kind(column).0, kind(column).1))
        .collect();
    let format = TableFormat {
        schema: &format!("message results {{ {} }}", fields.join(" ")),
        dictionary: DICTIONARY,
        delta: &["trial"],
        is_packed: false,
    };
    let mut writer = format.writer(Vec::new(), BUNDLE_FORMAT)?;
    table.write_group(&mut writer)?;
    writer.into_inner()
}

/// Returns what stands before and behind the name of a column in the schema.
fn kind(column: &Column) -> (&'static str, &'static str) {
    match column {
        Column::Int32(_) => ("required int32", ""),
        Column::Int64(_) => ("required int64", ""),
        Column::Text(_) => ("required binary", " (STRING)"),
        Column::MaybeInt64(_) | Column::MaybeList(_) => ("optional int64", ""),
        Column::MaybeText(_) => ("optional binary", " (STRING)"),
        Column::MaybeDouble(_) => ("optional double", ""),
        Column::MaybeBool(_) => ("optional boolean", ""),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_model::experiment::Cell;
    use linerate_model::flag::TrialFlag;
    use linerate_model::run::Validity;
    use linerate_model::{Bytes, TrialId};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn outcome(trial: u32, cell: Cell, responses: &[(&str, f64, Unit)]) -> Outcome {
        let responses: BTreeMap<String, Response> = responses
            .iter()
            .map(|&(name, value, unit)| (name.to_owned(), Response { value, unit }))
            .collect();
        Outcome {
            trial: TrialId(trial),
            experiment: "buffers, small".to_owned(),
            cell,
            replicate: 1,
            place: trial,
            is_repeat: false,
            validity: match trial {
                2 => Validity::Invalid("a host was lost".to_owned().into()),
                _ => Validity::Valid,
            },
            flags: vec![TrialFlag::Told("corrected \"a\"".to_owned())],
            responses,
        }
    }

    /// One trial with two responses, one without any.
    fn two() -> [Outcome; 2] {
        let sized = Cell::from([
            (Factor::SocketBuffer, Level::Size(Bytes(65_536))),
            (Factor::Nagle, Level::Switch(true)),
        ]);
        let auto = Cell::from([
            (Factor::SocketBuffer, Level::Word("auto".to_owned())),
            (Factor::LinkLoss, Level::Ppm(500)),
        ]);
        let rates = [
            ("rtt_p50_ns", 43.5, Unit::Nanoseconds),
            ("throughput_bps", 941e6, Unit::BitsPerSecond),
        ];
        [outcome(1, sized, &rates), outcome(2, auto, &[])]
    }

    #[test]
    fn a_row_a_trial_and_response_with_factors_as_columns() {
        let expected = "trial,experiment,cell,replicate,socket_buffer,nagle,link_loss,response,value,unit,valid,invalid_reason,flags\r\n\
            1,\"buffers, small\",\"{\"\"nagle\"\":true,\"\"socket_buffer\"\":65536}\",1,65536,true,,rtt_p50_ns,43.5,nanoseconds,true,,\"[\"\"corrected \\\"\"a\\\"\"\"\"]\"\r\n\
            1,\"buffers, small\",\"{\"\"nagle\"\":true,\"\"socket_buffer\"\":65536}\",1,65536,true,,throughput_bps,941000000,bits_per_second,true,,\"[\"\"corrected \\\"\"a\\\"\"\"\"]\"\r\n\
            2,\"buffers, small\",\"{\"\"link_loss\"\":0.0005,\"\"socket_buffer\"\":\"\"auto\"\"}\",1,,,0.0005,,,,false,a host was lost,\"[\"\"corrected \\\"\"a\\\"\"\"\"]\"\r\n";
        assert_eq!(results_csv(&two()), expected);
    }

    /// What others read of the file is what the outcomes say, value by value and column by column.
    #[test]
    fn the_file_reads_back_as_the_outcomes() {
        let folder = tempfile::tempdir().expect("a folder");
        let outcomes = two();
        let path = write_results(folder.path(), &outcomes).expect("written");
        let file = std::fs::File::open(path).expect("opened");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let value = |field: &Field| match field {
            Field::Null => Value::Null,
            Field::Bool(is_on) => json!(is_on),
            Field::Int(number) => json!(number),
            Field::Long(number) => json!(number),
            Field::Double(number) => json!(number),
            Field::Str(text) => json!(text),
            other => panic!("a column of another kind: {other:?}"),
        };
        let rows = reader.get_row_iter(None).expect("rows").map(|row| {
            let row = row.expect("a row");
            let cells = row.get_column_iter();
            Value::Object(
                cells
                    .map(|(name, field)| (name.clone(), value(field)))
                    .collect(),
            )
        });
        let rows: Vec<Value> = rows.collect();
        let of = |outcome: &Outcome, response: Option<(&String, &Response)>| {
            let level = |factor: Factor| match outcome.cell.get(&factor) {
                Some(Level::Size(bytes)) => json!(bytes.0),
                Some(Level::Switch(on)) => json!(on),
                Some(Level::Ppm(ppm)) => json!(f64::from(*ppm) / 1e6),
                _ => Value::Null,
            };
            json!({
                "trial": outcome.trial.0,
                "experiment": outcome.experiment,
                "cell": cell_json(&outcome.cell),
                "replicate": outcome.replicate,
                "socket_buffer": level(Factor::SocketBuffer),
                "nagle": level(Factor::Nagle),
                "link_loss": level(Factor::LinkLoss),
                "response": response.map(|(name, _)| name),
                "value": response.map(|(_, response)| response.value),
                "unit": response.and_then(|(_, response)| unit(response.unit)),
                "valid": outcome.is_valid(),
                "invalid_reason": match &outcome.validity {
                    Validity::Invalid(reason) => json!(reason.to_string()),
                    Validity::Valid => Value::Null,
                },
                "flags": serde_json::to_string(&outcome.flags).expect("a list"),
            })
        };
        let mut expected: Vec<Value> = Vec::new();
        for outcome in &outcomes {
            expected.extend(outcome.responses.iter().map(|one| of(outcome, Some(one))));
            if outcome.responses.is_empty() {
                expected.push(of(outcome, None));
            }
        }
        assert_eq!(rows, expected);
    }
}
