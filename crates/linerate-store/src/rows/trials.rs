//! Trials as rows.

use std::iter;

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, Level};
use linerate_model::plan::Trial;
use linerate_model::reason::Reason;
use linerate_model::run::{TrialRecord, Validity};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use serde_json::{Value, json};

use super::{Odd, leave_out, text};
use crate::table::{Column, Table, TableFormat};

/// Schema and packing of `trials.parquet`.
pub(crate) static FORMAT: TableFormat<'static> = TableFormat {
    schema: "message trials {
        required int32 trial;
        optional binary experiment (STRING);
        optional binary cell (STRING);
        optional int64 replicate;
        optional binary invalid_reason (STRING);
        required binary flags (STRING);
        required int64 offset_ns;
        required int64 window_ns;
        optional int64 start_skew_ns;
        optional int64 start_skew_uncertainty_ns;
        required int64 flow_rows;
        required int64 sample_rows;
    }",
    dictionary: &["experiment", "cell", "flags"],
    delta: &["trial", "offset_ns", "window_ns"],
    is_packed: false,
};

/// A trial as stored: its record, and how many rows of the other tables belong to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredTrial {
    pub(crate) record: TrialRecord,
    pub(crate) flow_rows: u64,
    pub(crate) sample_rows: u64,
}

/// Returns `stored` as a table of one row; `planned` is the trial's entry in the plan, if any.
pub(crate) fn table(stored: &StoredTrial, planned: Option<&Trial>) -> Result<Table, ParquetError> {
    let record = &stored.record;
    let text = |text: Option<String>| Column::maybe_texts(iter::once(text));
    let maybe = |number: Option<u64>| Column::maybe_numbers(iter::once(number));
    let number = |number: u64| Column::numbers(iter::once(number));
    FORMAT.table([
        Column::ids(iter::once(record.trial.0)),
        text(planned.map(|trial| trial.experiment.clone())),
        text(planned.map(|trial| cell_json(&trial.cell))),
        maybe(planned.map(|trial| trial.replicate.into())),
        text(record.validity.reason().map(ToString::to_string)),
        Column::texts(iter::once(json!(record.flags).to_string())),
        number(record.offset_ns),
        number(record.window_ns),
        maybe(record.start_skew_ns),
        maybe(record.start_skew_uncertainty_ns),
        number(stored.flow_rows),
        number(stored.sample_rows),
    ])
}

/// Returns `cell` as a JSON object of plain values: `{"socket_buffer":65536,"nagle":true}`.
pub(crate) fn cell_json(cell: &Cell) -> String {
    let entries = cell.iter().map(|(factor, level)| {
        let value = match level {
            Level::Switch(on) => Value::from(*on),
            Level::Count(count) => Value::from(*count),
            Level::Size(size) => Value::from(size.0),
            Level::Word(word) => Value::from(word.clone()),
            Level::Rate(bps) => Value::from(*bps),
            Level::Ppm(_) => Value::from(level.as_number()),
        };
        (factor.to_string(), value)
    });
    Value::Object(entries.collect()).to_string()
}

/// Appends the trials of `table` to `trials`; rows that make no sense go to `odd`.
pub(crate) fn read(table: &Table, trials: &mut Vec<StoredTrial>, odd: &mut Odd) {
    let [
        (_, Column::Int32(ids)),
        _experiment,
        _cell,
        _replicate,
        (_, Column::MaybeText(reasons)),
        (_, Column::Text(flags)),
        (_, Column::Int64(offsets)),
        (_, Column::Int64(windows)),
        (_, Column::MaybeInt64(skews)),
        (_, Column::MaybeInt64(uncertainties)),
        (_, Column::Int64(flow_rows)),
        (_, Column::Int64(sample_rows)),
    ] = table.columns.as_slice()
    else {
        return leave_out(odd, "a table of another shape".to_owned());
    };
    for at in 0..table.rows() {
        let Ok(flags) = serde_json::from_slice(flags[at].data()) else {
            leave_out(odd, "flags that are not a JSON list of texts".to_owned());
            continue;
        };
        trials.push(StoredTrial {
            record: TrialRecord {
                trial: TrialId(ids[at].cast_unsigned()),
                validity: validity(reasons[at].as_ref()),
                flags,
                offset_ns: offsets[at].cast_unsigned(),
                window_ns: windows[at].cast_unsigned(),
                start_skew_ns: skews[at].map(i64::cast_unsigned),
                start_skew_uncertainty_ns: uncertainties[at].map(i64::cast_unsigned),
            },
            flow_rows: flow_rows[at].cast_unsigned(),
            sample_rows: sample_rows[at].cast_unsigned(),
        });
    }
}

fn validity(reason: Option<&ByteArray>) -> Validity {
    reason.map_or(Validity::Valid, |reason| {
        Validity::Invalid(Reason::Told(text(reason)))
    })
}
