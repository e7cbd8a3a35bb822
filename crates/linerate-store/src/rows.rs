//! Samples, flows and trials as rows, and back.
//!
//! Each kind has its schema, a function from records to columns and one back. A row that does not
//! make sense costs only itself and is counted in [`Odd`].

use std::collections::BTreeMap;

use parquet::data_type::ByteArray;

use crate::layout::TableName;
use crate::table::TableFormat;

/// Captures.
pub(crate) mod captures;
/// Flows.
pub(crate) mod flows;
/// Samples.
pub(crate) mod samples;
/// Stacks of profiles.
pub(crate) mod stacks;
/// Trials.
pub(crate) mod trials;

/// Rows that were left out: what is odd about them, and how many there are.
pub(crate) type Odd = BTreeMap<String, u64>;

/// Returns the format of `table`.
pub(crate) fn format_of(table: TableName) -> &'static TableFormat<'static> {
    match table {
        TableName::Samples => &samples::FORMAT,
        TableName::Stacks => &stacks::FORMAT,
        TableName::Captures => &captures::FORMAT,
        TableName::Flows => &flows::FORMAT,
        TableName::Trials => &trials::FORMAT,
    }
}

/// Returns `bytes` as text.
pub(crate) fn text(bytes: &ByteArray) -> String {
    String::from_utf8_lossy(bytes.data()).into_owned()
}

/// Kinds of odd rows that are told apart: their words are the file's.
const ODD_KINDS_MAX: usize = 20;

/// Counts one row that was left out because of `what`.
fn leave_out(odd: &mut Odd, what: String) {
    let is_known = odd.len() < ODD_KINDS_MAX || odd.contains_key(&what);
    let what = if is_known {
        what
    } else {
        "more of such".to_owned()
    };
    *odd.entry(what).or_default() += 1;
}
