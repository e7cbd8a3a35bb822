//! Samples as rows: one row a value, "tidy", which every data frame library groups and pivots.

use linerate_model::metric::Metric;
use linerate_model::sample::{Subject, TrialSample};
use linerate_model::{HostName, TrialId};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use super::{Odd, leave_out, text};
use crate::table::{Column, Table, TableFormat};

/// The most rows of a row group, which ends in the middle of a host that has more: about 15 MB while it is in memory.
pub(crate) const GROUP_ROWS_MAX: usize = 128 << 10;
/// Schema and packing of `samples.parquet`.
pub(crate) static FORMAT: TableFormat<'static> = TableFormat {
    schema: "message samples {
        required int32 trial;
        required binary host (STRING);
        required binary subject (STRING);
        required binary metric (STRING);
        required int64 at_ns;
        required int64 value;
    }",
    dictionary: &["trial", "host", "subject", "metric"],
    // Instants and values are stored plainly. All metrics of a subject share their instants, and
    // many values stay or come back; zstd finds such repetitions only where they begin at whole
    // bytes. Half a million samples take 1.01 MB this way, 1.59 MB with DELTA_BINARY_PACKED, 1.36 MB
    // with a dictionary.
    delta: &[],
    is_packed: true,
};

/// Returns `samples`, in the order given, as tables with rows of one host of a trial each, [`GROUP_ROWS_MAX`] at the most.
pub(crate) fn tables(
    samples: impl Iterator<Item = TrialSample>,
) -> impl Iterator<Item = Result<Table, ParquetError>> {
    let mut samples = samples.peekable();
    std::iter::from_fn(move || {
        let first = samples.peek()?;
        let (trial, host) = (first.trial, first.host.clone());
        let is_own = |next: &TrialSample| next.trial == trial && next.host == host;
        let own = std::iter::from_fn(|| samples.next_if(is_own));
        Some(table(own.take(GROUP_ROWS_MAX)))
    })
}

fn table(samples: impl Iterator<Item = TrialSample>) -> Result<Table, ParquetError> {
    let (mut trials, mut instants, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut hosts, mut subjects, mut metrics) = (Vec::new(), Vec::new(), Vec::new());
    for sample in samples {
        trials.push(sample.trial.0.cast_signed());
        hosts.push(sample.host.to_string().into_bytes().into());
        subjects.push(sample.subject.to_string().into_bytes().into());
        metrics.push(sample.metric.name().as_bytes().to_vec().into());
        instants.push(sample.at_ns);
        values.push(sample.value);
    }
    FORMAT.table([
        Column::Int32(trials),
        Column::Text(hosts),
        Column::Text(subjects),
        Column::Text(metrics),
        Column::Int64(instants),
        Column::Int64(values),
    ])
}

/// Appends the samples of `table` to `samples`; rows that make no sense go to `odd`.
pub(crate) fn read(table: &Table, samples: &mut Vec<TrialSample>, odd: &mut Odd) {
    let [
        (_, Column::Int32(trials)),
        (_, Column::Text(hosts)),
        (_, Column::Text(subjects)),
        (_, Column::Text(metrics)),
        (_, Column::Int64(instants)),
        (_, Column::Int64(values)),
    ] = table.columns.as_slice()
    else {
        return leave_out(odd, "a table of another shape".to_owned());
    };
    // Rows are sorted, so the words of a row are nearly always those of the row before.
    let mut host = Last(None);
    let mut subject = Last(None);
    let mut metric = Last(None);
    // A series goes on in time: what stands twice is no reading, and a file has room for millions of it.
    let is_again = |at: usize| {
        let before = at.checked_sub(1);
        before.is_some_and(|before| {
            instants[before] >= instants[at]
                && metrics[before] == metrics[at]
                && subjects[before] == subjects[at]
                && trials[before] == trials[at]
                && hosts[before] == hosts[at]
        })
    };
    for at in 0..table.rows() {
        if is_again(at) {
            leave_out(
                odd,
                "an instant that is not after the one before".to_owned(),
            );
            continue;
        }
        let words = (
            host.parse(&hosts[at], |text| Some(HostName::from(text))),
            subject.parse(&subjects[at], |text| text.parse::<Subject>().ok()),
            metric.parse(&metrics[at], Metric::from_name),
        );
        match words {
            (Some(host), Some(subject), Some(metric)) => samples.push(TrialSample {
                trial: TrialId(trials[at].cast_unsigned()),
                host,
                subject,
                metric,
                at_ns: instants[at],
                value: values[at],
            }),
            (None, _, _) => leave_out(odd, "a host name that is not text".to_owned()),
            (_, None, _) => leave_out(
                odd,
                format!("the unknown subject `{}`", text(&subjects[at])),
            ),
            (_, _, None) => leave_out(odd, format!("the unknown metric `{}`", text(&metrics[at]))),
        }
    }
}

/// The word read last and what it means.
struct Last<T>(Option<(ByteArray, Option<T>)>);

impl<T: Clone> Last<T> {
    fn parse(&mut self, word: &ByteArray, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        if self.0.as_ref().is_none_or(|(last, _)| last != word) {
            self.0 = Some((word.clone(), word.as_utf8().ok().and_then(parse)));
        }
        self.0.as_ref()?.1.clone()
    }
}
