//! Flows as rows: one row for each end of a flow.

use linerate_model::histogram::Histogram;
use linerate_model::manner::Named as _;
use linerate_model::run::{FlowOutcome, FlowRecord, Incoming, ZeroCopyCount};
use linerate_model::sample::End;
use linerate_model::setting::{Settings, name};
use linerate_model::shortfall::{ConnectionCount, RequestCount};
use linerate_model::workload::Part;
use linerate_model::{FlowId, HostName, TrialId};
use parquet::data_type::ByteArray;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Odd, leave_out, text};
use crate::table::{Column, Table, TableFormat, Unfit};

/// Schema and packing of `flows.parquet`.
pub(crate) static FORMAT: TableFormat<'static> = TableFormat {
    schema: "message flows {
        required int32 trial;
        required int32 flow;
        required binary host (STRING);
        required binary end (STRING);
        required binary part (STRING);
        required binary local (STRING);
        required binary remote (STRING);
        optional int64 cpu;
        optional int64 first_payload_ns;
        required int64 bytes_sent;
        required int64 bytes_received;
        required binary settings (STRING);
        optional group latency_upper_ns (LIST) { repeated group list { required int64 element; } }
        optional group latency_count (LIST) { repeated group list { required int64 element; } }
        optional binary ended_early (STRING);
        optional binary datagrams (STRING);
        optional int64 incoming_cpu;
        optional int64 incoming_napi;
        optional binary lateness (STRING);
        optional int64 requests_due;
        optional int64 requests_sent;
        optional int64 connections_made;
        optional int64 connections_failed;
        optional binary connection_failure (STRING);
        optional int64 zero_copy_done;
        optional int64 zero_copy_copied;
        optional int64 counted_ns;
    }",
    dictionary: &["host", "end", "part", "settings"],
    delta: &["trial", "flow"],
    is_packed: false,
};

/// Returns `flows` as a table, in the order given.
pub(crate) fn table(flows: &[FlowRecord]) -> Result<Table, Unfit> {
    let settings = flows
        .iter()
        .map(|flow| serde_json::to_vec(&flow.settings))
        .collect::<Result<Vec<_>, _>>()?;
    let text = |of: &dyn Fn(&FlowRecord) -> String| Column::texts(flows.iter().map(of));
    let number = |of: &dyn Fn(&FlowRecord) -> Option<i64>| {
        Column::MaybeInt64(flows.iter().map(of).collect())
    };
    let buckets = |of: fn(&(u64, u64)) -> u64| {
        let list = |latency: &Histogram| {
            let buckets = latency.buckets.iter();
            buckets.map(|b| of(b).cast_signed()).collect()
        };
        Column::MaybeList(flows.iter().map(|f| f.latency.as_ref().map(list)).collect())
    };
    Ok(FORMAT.table([
        Column::ids(flows.iter().map(|flow| flow.trial.0)),
        Column::ids(flows.iter().map(|flow| flow.flow.0)),
        text(&|flow| flow.host.to_string()),
        text(&|flow| flow.end.to_string()),
        text(&|flow| flow.part.word().to_owned()),
        text(&|flow| flow.local.clone()),
        text(&|flow| flow.remote.clone()),
        number(&|flow| flow.cpu.map(i64::from)),
        number(&|flow| flow.first_payload_ns),
        Column::numbers(flows.iter().map(|flow| flow.bytes_sent)),
        Column::numbers(flows.iter().map(|flow| flow.bytes_received)),
        Column::texts(settings.into_iter()),
        buckets(|bucket| bucket.0),
        buckets(|bucket| bucket.1),
        Column::maybe_texts(flows.iter().map(|flow| flow.ended_early.clone())),
        documents(flows.iter().map(|flow| flow.datagrams.as_ref()))?,
        number(&|flow| flow.incoming.cpu.map(i64::from)),
        number(&|flow| flow.incoming.napi.map(i64::from)),
        documents(flows.iter().map(|flow| flow.lateness.as_ref()))?,
        number(&|flow| flow.requests.map(|count| count.due.cast_signed())),
        number(&|flow| flow.requests.map(|count| count.sent.cast_signed())),
        number(&|flow| Some(flow.connections.as_ref()?.made.cast_signed())),
        number(&|flow| Some(flow.connections.as_ref()?.failed.cast_signed())),
        Column::maybe_texts(
            flows
                .iter()
                .map(|flow| flow.connections.as_ref()?.last_failure.clone()),
        ),
        number(&|flow| flow.zero_copy.map(|count| count.done.cast_signed())),
        number(&|flow| flow.zero_copy.map(|count| count.copied.cast_signed())),
        number(&|flow| flow.counted_ns.map(u64::cast_signed)),
    ])?)
}

/// Makes a column of documents of their own: every flow has one or none does, and it is read as a whole.
fn documents<'f, T: Serialize + 'f>(
    documents: impl Iterator<Item = Option<&'f T>>,
) -> serde_json::Result<Column> {
    let texts = documents.map(|one| one.map(serde_json::to_vec).transpose());
    let texts: Vec<Option<Vec<u8>>> = texts.collect::<Result<_, _>>()?;
    Ok(Column::maybe_texts(texts.into_iter()))
}

/// Returns the document of a flow that has one.
fn document<T: DeserializeOwned>(text: &Option<ByteArray>) -> serde_json::Result<Option<T>> {
    let text = text.as_ref();
    text.map(|text| serde_json::from_slice(text.data()))
        .transpose()
}

/// Appends the flows of `table` to `flows`; rows that make no sense go to `odd`.
pub(crate) fn read(table: &Table, flows: &mut Vec<FlowRecord>, odd: &mut Odd) {
    for at in 0..table.rows() {
        match row(table, at) {
            Ok(flow) => flows.push(flow),
            Err(what) => leave_out(odd, what.to_owned()),
        }
    }
}

/// Returns the flow in row `at`, or what is odd about it.
fn row(table: &Table, at: usize) -> Result<FlowRecord, &'static str> {
    let [
        (_, Column::Int32(trials)),
        (_, Column::Int32(numbers)),
        (_, Column::Text(hosts)),
        (_, Column::Text(ends)),
        (_, Column::Text(parts)),
        (_, Column::Text(locals)),
        (_, Column::Text(remotes)),
        (_, Column::MaybeInt64(cpus)),
        (_, Column::MaybeInt64(first_payloads)),
        (_, Column::Int64(sent)),
        (_, Column::Int64(received)),
        (_, Column::Text(settings)),
        (_, Column::MaybeList(uppers)),
        (_, Column::MaybeList(counts)),
        (_, Column::MaybeText(ended)),
        (_, Column::MaybeText(datagrams)),
        (_, Column::MaybeInt64(incoming_cpus)),
        (_, Column::MaybeInt64(incoming_napis)),
        (_, Column::MaybeText(lateness)),
        (_, Column::MaybeInt64(due)),
        (_, Column::MaybeInt64(begun)),
        (_, Column::MaybeInt64(made)),
        (_, Column::MaybeInt64(failed)),
        (_, Column::MaybeText(failures)),
        (_, Column::MaybeInt64(done)),
        (_, Column::MaybeInt64(copied)),
        (_, Column::MaybeInt64(counted)),
    ] = table.columns.as_slice()
    else {
        return Err("a table of another shape");
    };
    let number = |numbers: &[Option<i64>]| numbers[at].map(u32::try_from).transpose();
    let count = |numbers: &[Option<i64>]| numbers[at].map(i64::cast_unsigned);
    let settings = serde_json::from_slice(settings[at].data())
        .map_err(|_| "settings that are not a JSON list")?;
    let (settings, told) = told_in_settings(settings);
    let requests = count(due).zip(count(begun));
    let connections = count(made).zip(count(failed));
    let zero_copy = count(done).zip(count(copied));
    Ok(FlowRecord {
        trial: TrialId(trials[at].cast_unsigned()),
        host: HostName::from(text(&hosts[at])),
        outcome: FlowOutcome {
            flow: FlowId(numbers[at].cast_unsigned()),
            end: end_of(ends[at].data()).ok_or("an unknown end")?,
            part: parts[at]
                .as_utf8()
                .ok()
                .and_then(Part::named)
                .ok_or("an unknown part")?,
            local: text(&locals[at]),
            remote: text(&remotes[at]),
            cpu: number(cpus).map_err(|_| "a CPU number out of range")?,
            incoming: Incoming {
                cpu: number(incoming_cpus).map_err(|_| "an incoming CPU out of range")?,
                napi: number(incoming_napis).map_err(|_| "the number of a NAPI out of range")?,
            },
            first_payload_ns: first_payloads[at],
            bytes_sent: sent[at].cast_unsigned(),
            bytes_received: received[at].cast_unsigned(),
            counted_ns: count(counted),
            zero_copy: zero_copy
                .map(|(done, copied)| ZeroCopyCount { done, copied })
                .or_else(|| zero_copy_in_words(&settings)),
            settings,
            latency: histogram(uppers[at].as_deref(), counts[at].as_deref())?,
            lateness: document(&lateness[at]).map_err(|_| "a lateness that is not JSON")?,
            datagrams: document(&datagrams[at])
                .map_err(|_| "counts of datagrams that are not JSON")?,
            requests: requests
                .map(|(due, sent)| RequestCount { due, sent })
                .or(told.requests),
            connections: connections
                .map(|(made, failed)| ConnectionCount {
                    made,
                    failed,
                    last_failure: failures[at].as_ref().map(text),
                })
                .or(told.connections)
                .map(Box::new),
            ended_early: ended[at].as_ref().map(text),

            stall_max_ns: None,
        },
    })
}

/// What settings told of before it had columns of its own.
#[derive(Default)]
struct Told {
    requests: Option<RequestCount>,
    connections: Option<ConnectionCount>,
}

/// Returns `settings` without those that tell what became of the traffic, and what they tell.
fn told_in_settings(settings: Settings) -> (Settings, Told) {
    let (requests, connections) = (settings.named("requests"), settings.named("connections"));
    if requests.is_none() && connections.is_none() {
        return (settings, Told::default());
    }
    let number = |value: &Option<String>| value.as_ref()?.parse().ok();
    let told = Told {
        requests: requests.and_then(|setting| {
            Some(RequestCount {
                due: number(&setting.requested)?,
                sent: number(&setting.granted)?,
            })
        }),
        connections: connections.and_then(|setting| {
            // "2 that failed, the last: connecting failed: connection refused"
            let failure = setting.capped_by.as_ref();
            let failure = failure.and_then(|words| words.split_once(" that failed, the last: "));
            Some(ConnectionCount {
                made: number(&setting.effective)?,
                failed: failure.map_or(Some(0), |(count, _)| count.parse().ok())?,
                last_failure: failure.map(|(_, why)| why.to_owned()),
            })
        }),
    };
    let levels = (&settings)
        .into_iter()
        .filter(|one| !["requests", "connections"].contains(&one.name.as_str()));
    (levels.cloned().collect(), told)
}

/// Returns the calls with MSG_ZEROCOPY as settings told of them before they had columns of their own:
/// "MSG_ZEROCOPY, 128 KiB per call, copied by the kernel after all: 25 % of 8 calls".
fn zero_copy_in_words(settings: &Settings) -> Option<ZeroCopyCount> {
    let words = settings.named(name::SEND)?.effective.as_ref()?;
    let (_, told) = words.split_once("copied by the kernel after all: ")?;
    let (percent, done) = told.strip_suffix(" calls")?.split_once(" % of ")?;
    let (percent, done): (f64, u64) = (percent.parse().ok()?, done.parse().ok()?);
    let copied = (percent / 100.0 * done as f64).round() as u64;
    Some(ZeroCopyCount { done, copied })
}

fn histogram(
    uppers: Option<&[i64]>,
    counts: Option<&[i64]>,
) -> Result<Option<Histogram>, &'static str> {
    match (uppers, counts) {
        (None, None) => Ok(None),
        (Some(uppers), Some(counts)) if uppers.len() == counts.len() => {
            let pairs = uppers.iter().zip(counts);
            let buckets =
                pairs.map(|(upper, count)| (upper.cast_unsigned(), count.cast_unsigned()));
            Ok(Some(Histogram {
                buckets: buckets.collect(),
            }))
        }
        _ => Err("latency lists of different lengths"),
    }
}

fn end_of(word: &[u8]) -> Option<End> {
    End::BOTH
        .into_iter()
        .find(|end| end.to_string().as_bytes() == word)
}

#[cfg(test)]
mod tests {
    use linerate_model::workload::Setting;

    use super::*;

    #[test]
    fn what_older_bundles_told_in_settings_is_read() {
        let window = Setting::granted("SO_SNDBUF", None, Some("1".to_owned()));
        let requests = Setting {
            capped_by: Some("the rate of the responses: 2 of 9 requests …".to_owned()),
            ..Setting::granted("requests", Some("9".to_owned()), Some("7".to_owned()))
        };
        let connections = |failure: Option<&str>| Setting {
            capped_by: failure.map(str::to_owned),
            ..Setting::seen("connections", Some("5".to_owned()))
        };
        let check =
            |all: Vec<Setting>, due: Option<(u64, u64)>, made: Option<(u64, Option<&str>)>| {
                let (left, told) = told_in_settings(all.into());
                assert_eq!(left, vec![window.clone()].into());
                let requests = told.requests.map(|count| (count.due, count.sent));
                assert_eq!(requests, due);
                let connections = told
                    .connections
                    .as_ref()
                    .map(|count| (count.failed, count.last_failure.as_deref()));
                assert_eq!(connections, made);
            };
        check(vec![window.clone()], None, None);
        check(vec![requests.clone(), window.clone()], Some((9, 7)), None);
        let failed = connections(Some("2 that failed, the last: connecting failed: refused"));
        let why = "connecting failed: refused";
        let all = vec![window.clone(), requests, failed];
        check(all, Some((9, 7)), Some((2, Some(why))));
        let whole = vec![window.clone(), connections(None)];
        check(whole, None, Some((0, None)));
        let sent = |words: &str| {
            let sent = Setting::seen(name::SEND, Some(words.to_owned()));
            zero_copy_in_words(&vec![sent].into()).map(|count| (count.done, count.copied))
        };
        assert_eq!(sent("MSG_ZEROCOPY, 128 KiB per call"), None);
        let words =
            "MSG_ZEROCOPY, 128 KiB per call, copied by the kernel after all: 25 % of 8 calls";
        assert_eq!(sent(words), Some((8, 2)));
    }
}
