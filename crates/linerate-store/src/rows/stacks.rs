//! Stacks of profiles as rows: one row a stack of a trial on a host.

use linerate_model::profile::{Stack, TrialProfile, Work};
use linerate_model::{HostName, TrialId};
use parquet::errors::ParquetError;

use super::{Odd, leave_out};
use crate::table::{Column, Table, TableFormat};

/// Schema and packing of `stacks.parquet`. The frames of a stack are one text, `worker;a;b`, which
/// is what programs that draw flame graphs read; zstd finds what stacks share.
pub(crate) static FORMAT: TableFormat<'static> = TableFormat {
    schema: "message stacks {
        required int32 trial;
        required binary host (STRING);
        required binary work (STRING);
        required int64 samples;
        required binary frames (STRING);
    }",
    dictionary: &["trial", "host", "work"],
    delta: &[],
    is_packed: false,
};

/// Returns `profiles` as a table.
pub(crate) fn table(profiles: &[TrialProfile]) -> Result<Table, ParquetError> {
    let rows = || {
        profiles
            .iter()
            .flat_map(|profile| profile.stacks.iter().map(move |stack| (profile, stack)))
    };
    FORMAT.table([
        Column::ids(rows().map(|(profile, _)| profile.trial.0)),
        Column::texts(rows().map(|(profile, _)| profile.host.to_string())),
        Column::texts(rows().map(|(_, stack)| stack.work.name())),
        Column::numbers(rows().map(|(_, stack)| stack.samples)),
        Column::texts(rows().map(|(_, stack)| stack.frames.as_str())),
    ])
}

/// Appends the stacks of `table` to `profiles`; rows that make no sense go to `odd`.
pub(crate) fn read(table: &Table, profiles: &mut Vec<TrialProfile>, odd: &mut Odd) {
    let [
        (_, Column::Int32(trials)),
        (_, Column::Text(hosts)),
        (_, Column::Text(works)),
        (_, Column::Int64(samples)),
        (_, Column::Text(frames)),
    ] = table.columns.as_slice()
    else {
        return leave_out(odd, "a table of another shape".to_owned());
    };
    for at in 0..table.rows() {
        let host = hosts[at].as_utf8().ok().map(HostName::from);
        let frames = frames[at].as_utf8().ok().map(str::to_owned);
        let (Some(host), Some(frames)) = (host, frames) else {
            leave_out(odd, "a host or stack that is not text".to_owned());
            continue;
        };
        // Kinds of work that a later version tells apart are something else to this one.
        let work = works[at].as_utf8().ok().and_then(Work::from_name);
        let stack = Stack {
            frames,
            work: work.unwrap_or(Work::Other),
            samples: samples[at].max(0).cast_unsigned(),
        };
        let trial = TrialId(trials[at].cast_unsigned());
        match profiles.last_mut() {
            Some(last) if last.trial == trial && last.host == host => last.stacks.push(stack),
            _ => profiles.push(TrialProfile {
                trial,
                host,
                stacks: vec![stack],
            }),
        }
    }
}
