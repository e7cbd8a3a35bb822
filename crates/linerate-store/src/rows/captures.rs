//! Captures as rows: one row for each host of a trial that was asked to capture.

use linerate_model::capture::{CaptureOutcome, CaptureTaken, TrialCapture};
use linerate_model::{HostName, TrialId};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use super::{Odd, leave_out, text};
use crate::layout::is_capture_path;
use crate::table::{Column, Table, TableFormat};

/// Schema and packing of `captures.parquet`. Where there is no capture, `missing` says why and the
/// rest is null.
pub(crate) static FORMAT: TableFormat<'static> = TableFormat {
    schema: "message captures {
        required int32 trial;
        required binary host (STRING);
        optional binary missing (STRING);
        optional binary file (STRING);
        optional binary device (STRING);
        optional int64 snap_bytes;
        optional int64 anonymous;
        optional int64 frames;
        optional int64 bytes;
        optional int64 dropped;
        optional int64 others;
        optional binary ended (STRING);
        optional int64 cpu_ns;
    }",
    dictionary: &["host", "missing", "device"],
    delta: &[],
    is_packed: false,
};

/// Returns `captures` as a table.
pub(crate) fn table(captures: &[TrialCapture]) -> Result<Table, ParquetError> {
    let taken = |capture: &TrialCapture| match &capture.outcome {
        CaptureOutcome::Taken(taken) => Some(taken.clone()),
        CaptureOutcome::Missing(_) => None,
    };
    let text =
        |of: &dyn Fn(&TrialCapture) -> Option<String>| Column::maybe_texts(captures.iter().map(of));
    let number = |of: &dyn Fn(CaptureTaken) -> u64| {
        Column::maybe_numbers(captures.iter().map(|capture| taken(capture).map(of)))
    };
    FORMAT.table([
        Column::ids(captures.iter().map(|capture| capture.trial.0)),
        Column::texts(captures.iter().map(|capture| capture.host.to_string())),
        text(&|capture| match &capture.outcome {
            CaptureOutcome::Taken(_) => None,
            CaptureOutcome::Missing(why) => Some(why.clone()),
        }),
        text(&|capture| capture.file.clone()),
        text(&|capture| taken(capture).map(|taken| taken.device)),
        number(&|taken| taken.snap_bytes),
        number(&|taken| u64::from(taken.anonymous)),
        number(&|taken| taken.frames),
        number(&|taken| taken.bytes),
        number(&|taken| taken.dropped),
        number(&|taken| taken.others),
        text(&|capture| taken(capture).and_then(|taken| taken.ended)),
        number(&|taken| taken.cpu_ns),
    ])
}

/// Appends the captures of `table` to `captures`; rows that make no sense go to `odd`.
pub(crate) fn read(table: &Table, captures: &mut Vec<TrialCapture>, odd: &mut Odd) {
    let [
        (_, Column::Int32(trials)),
        (_, Column::Text(hosts)),
        (_, Column::MaybeText(missing)),
        (_, Column::MaybeText(files)),
        (_, Column::MaybeText(devices)),
        (_, Column::MaybeInt64(snap_bytes)),
        (_, Column::MaybeInt64(anonymous)),
        (_, Column::MaybeInt64(frames)),
        (_, Column::MaybeInt64(bytes)),
        (_, Column::MaybeInt64(dropped)),
        (_, Column::MaybeInt64(others)),
        (_, Column::MaybeText(ended)),
        (_, Column::MaybeInt64(cpu_ns)),
    ] = table.columns.as_slice()
    else {
        return leave_out(odd, "a table of another shape".to_owned());
    };
    let text = |cell: &Option<ByteArray>| cell.as_ref().map(text);
    for at in 0..table.rows() {
        let Some(host) = hosts[at].as_utf8().ok().map(HostName::from) else {
            leave_out(odd, "a host that is not text".to_owned());
            continue;
        };
        let number = |numbers: &[Option<i64>]| numbers[at].unwrap_or(0).max(0).cast_unsigned();
        let file = text(&files[at]);
        if file.as_deref().is_some_and(|file| !is_capture_path(file)) {
            leave_out(odd, "a file's name that is not one of a capture".to_owned());
            continue;
        }
        let outcome = match (text(&missing[at]), text(&devices[at])) {
            (None, Some(device)) => CaptureOutcome::Taken(CaptureTaken {
                device,
                snap_bytes: number(snap_bytes),
                anonymous: number(anonymous) > 0,
                frames: number(frames),
                bytes: number(bytes),
                dropped: number(dropped),
                others: number(others),
                ended: text(&ended[at]),
                cpu_ns: number(cpu_ns),
            }),
            (Some(why), _) => CaptureOutcome::Missing(why),
            (None, None) => CaptureOutcome::Missing("it is not known why".to_owned()),
        };
        captures.push(TrialCapture {
            trial: TrialId(trials[at].cast_unsigned()),
            host,
            file,
            outcome,
        });
    }
}
