//! What one end measured, as the other is told.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::iperf3::number::{real, whole};
use crate::iperf3::parameters::STREAMS_MAX;
use crate::iperf3::stream_id::StreamId;

/// Streams over both directions.
const ENTRIES_MAX: usize = 2 * STREAMS_MAX as usize;

/// What one end measured; keys and their order are those of the wire.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Results {
    /// The CPU that this end used.
    #[serde(flatten)]
    pub cpu: CpuPercent,
    /// Whether this end, sending, knows its retransmissions; absent if it only receives.
    #[serialize_always]
    #[serde(serialize_with = "number_if_known")]
    pub sender_has_retransmits: Option<bool>,
    /// The congestion control in force.
    pub congestion_used: Option<String>,
    /// The server's own output, if the client asked for it.
    #[serde(flatten)]
    pub server_output: Option<ServerOutput>,
    /// Every stream, in any order.
    pub streams: Vec<StreamResult>,
}

/// CPU time of the process over wall time, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CpuPercent {
    /// All of it.
    #[serde(rename = "cpu_util_total")]
    pub total: f64,
    /// In user mode.
    #[serde(rename = "cpu_util_user")]
    pub user: f64,
    /// In the kernel.
    #[serde(rename = "cpu_util_system")]
    pub system: f64,
}

impl CpuPercent {
    /// Returns what both parts make.
    pub fn of(user: f64, system: f64) -> Self {
        Self {
            total: user + system,
            user,
            system,
        }
    }
}

/// A server's own output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ServerOutput {
    /// What it printed for programs.
    #[serde(rename = "server_output_json")]
    Json(Value),
    /// What it printed for people.
    #[serde(rename = "server_output_text")]
    Text(String),
}

/// What one end counted in one stream, without the omitted time.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StreamResult {
    /// The stream.
    pub id: StreamId,
    /// Bytes that this end sent, or received.
    pub bytes: u64,
    /// Segments retransmitted; absent if this end does not know.
    #[serialize_always]
    #[serde(serialize_with = "number_if_known")]
    pub retransmits: Option<u64>,
    /// Jitter of datagrams, in seconds.
    #[serde(rename = "jitter")]
    pub jitter_s: f64,
    /// Datagrams lost, from the receiver.
    pub errors: u64,
    /// Those of the omitted time; known since 3.14.
    pub omitted_errors: Option<u64>,
    /// Datagrams sent, or the highest number seen.
    pub packets: u64,
    /// Those of the omitted time; known since 3.14.
    pub omitted_packets: Option<u64>,
    /// When counting began and ended, in seconds from the start of the test.
    #[serde(rename = "start_time")]
    pub start_s: f64,
    /// When counting ended.
    #[serde(rename = "end_time")]
    pub end_s: f64,
}

impl StreamResult {
    /// Returns a stream in which nothing was counted.
    pub fn nothing(id: StreamId) -> Self {
        Self {
            id,
            bytes: 0,
            retransmits: None,
            jitter_s: 0.0,
            errors: 0,
            omitted_errors: None,
            packets: 0,
            omitted_packets: None,
            start_s: 0.0,
            end_s: 0.0,
        }
    }
}

/// Why results are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// The text is no JSON object.
    #[error("the results are no JSON object")]
    NotAnObject,
    /// A key is missing or has another type.
    #[error("\"{key}\" of the results is missing or is not {expected}")]
    Key {
        /// The key.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// More streams than there can be.
    #[error("the results have {0} streams, {ENTRIES_MAX} are the most")]
    Streams(usize),
}

impl Results {
    /// Reads what the other end sent.
    ///
    /// A number below zero means "not known"; old releases write it as 2^64 − 1.
    pub fn parse(text: &[u8]) -> Result<Self, ResultsError> {
        let Ok(Value::Object(map)) = serde_json::from_slice(text) else {
            return Err(ResultsError::NotAnObject);
        };
        let keys = Keys(&map);
        let Some(Value::Array(entries)) = map.get("streams") else {
            return Err(missing("streams", "a list"));
        };
        if entries.len() > ENTRIES_MAX {
            return Err(ResultsError::Streams(entries.len()));
        }
        let has = keys.signed("sender_has_retransmits")?;
        let congestion = map.get("congestion_used").and_then(Value::as_str);
        Ok(Self {
            cpu: CpuPercent {
                total: keys.real("cpu_util_total")?,
                user: keys.real("cpu_util_user")?,
                system: keys.real("cpu_util_system")?,
            },
            sender_has_retransmits: has.map(|has| has != 0),
            congestion_used: congestion.map(str::to_owned),
            server_output: server_output(&map),
            streams: entries.iter().map(stream).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the text that is sent.
    pub fn to_json(&self) -> String {
        // Finite numbers and strings under fixed keys always have a text.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the entry of a stream.
    pub fn stream(&self, id: StreamId) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

fn missing(key: &'static str, expected: &'static str) -> ResultsError {
    ResultsError::Key { key, expected }
}

fn server_output(map: &Map<String, Value>) -> Option<ServerOutput> {
    if let Some(json @ Value::Object(_)) = map.get("server_output_json") {
        return Some(ServerOutput::Json(json.clone()));
    }
    let text = map.get("server_output_text").and_then(Value::as_str);
    text.map(|text| ServerOutput::Text(text.to_owned()))
}

fn stream(entry: &Value) -> Result<StreamResult, ResultsError> {
    let Value::Object(map) = entry else {
        return Err(missing("streams", "a list of objects"));
    };
    let keys = Keys(map);
    let id = keys.signed("id")?.and_then(|id| u32::try_from(id).ok());
    let has_omitted = map.contains_key("omitted_packets");
    let omitted = |key| has_omitted.then(|| keys.count(key)).transpose();
    let seconds = |key| {
        if map.contains_key(key) {
            keys.real(key)
        } else {
            Ok(0.0)
        }
    };
    Ok(StreamResult {
        id: StreamId(id.ok_or_else(|| missing("id", "the number of a stream"))?),
        bytes: keys.count("bytes")?,
        retransmits: keys.signed("retransmits")?,
        jitter_s: keys.real("jitter")?,
        errors: keys.count("errors")?,
        omitted_errors: omitted("omitted_errors")?,
        packets: keys.count("packets")?,
        omitted_packets: omitted("omitted_packets")?,
        start_s: seconds("start_time")?,
        end_s: seconds("end_time")?,
    })
}

/// The keys of an object, looked up with their types.
#[derive(Clone, Copy)]
struct Keys<'a>(&'a Map<String, Value>);

impl Keys<'_> {
    fn real(self, key: &'static str) -> Result<f64, ResultsError> {
        let number = self.0.get(key).and_then(real);
        number.ok_or_else(|| missing(key, "a number"))
    }

    /// Returns a whole number; one below zero is absent.
    fn signed(self, key: &'static str) -> Result<Option<u64>, ResultsError> {
        match self.0.get(key) {
            Some(value @ Value::Number(_)) => Ok(whole(value)),
            _ => Err(missing(key, "a number")),
        }
    }

    /// Returns a whole number; one below zero is 0: releases before 3.14 subtracted late datagrams
    /// from losses that had been omitted.
    fn count(self, key: &'static str) -> Result<u64, ResultsError> {
        Ok(self.signed(key)?.unwrap_or(0))
    }
}

/// Writes a number; one that is not known is below zero.
fn number_if_known<N: Copy + Into<i128>, S: Serializer>(
    number: &Option<N>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(number.map_or(-1, |number| number.into() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from 3.12 as a receiving server.
    const RECEIVER: &str = r#"{"cpu_util_total":17.323045170523123,"cpu_util_user":0.39037441898264136,"cpu_util_system":16.932574576517329,"sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","streams":[{"id":1,"bytes":1148846080,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.039759}]}"#;

    #[test]
    fn results_of_3_12_are_read() {
        let results = Results::parse(RECEIVER.as_bytes()).unwrap();
        assert_eq!(results.sender_has_retransmits, None);
        assert_eq!(results.congestion_used.as_deref(), Some("bbr"));
        let expected = StreamResult {
            bytes: 1_148_846_080,
            end_s: 1.039759,
            ..StreamResult::nothing(StreamId(1))
        };
        assert_eq!(results.streams, [expected]);
        assert_eq!(results.stream(StreamId(1)), Some(&expected));
        assert_eq!(results.stream(StreamId(3)), None);
    }

    #[test]
    fn what_is_written_is_read() {
        let results = Results {
            cpu: CpuPercent {
                total: 12.5,
                user: 2.5,
                system: 10.0,
            },
            sender_has_retransmits: Some(true),
            congestion_used: Some("cubic".into()),
            server_output: Some(ServerOutput::Text("a\nb \"c\"".into())),
            streams: vec![
                StreamResult {
                    bytes: 7,
                    retransmits: Some(3),
                    ..StreamResult::nothing(StreamId(1))
                },
                StreamResult {
                    jitter_s: 0.25,
                    errors: 2,
                    packets: 9,
                    omitted_errors: Some(1),
                    omitted_packets: Some(4),
                    ..StreamResult::nothing(StreamId(3))
                },
            ],
        };
        assert_eq!(Results::parse(results.to_json().as_bytes()), Ok(results));
    }

    #[test]
    fn a_server_finds_every_required_key() {
        let text = Results {
            streams: vec![StreamResult::nothing(StreamId(1))],
            ..Results::default()
        }
        .to_json();
        assert_eq!(
            text,
            r#"{"cpu_util_total":0.0,"cpu_util_user":0.0,"cpu_util_system":0.0,"sender_has_retransmits":-1,"streams":[{"id":1,"bytes":0,"retransmits":-1,"jitter":0.0,"errors":0,"packets":0,"start_time":0.0,"end_time":0.0}]}"#
        );
    }

    #[test]
    fn what_is_refused() {
        let check = |text: &str, expected: &str| {
            let error = Results::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("[1]", "no JSON object");
        check("{}", "\"streams\"");
        check(r#"{"streams":[]}"#, "\"sender_has_retransmits\"");
        check(&RECEIVER.replace("\"id\":1,", ""), "\"id\"");
        check(
            &RECEIVER.replace("\"bytes\":1148846080", "\"bytes\":\"1\""),
            "\"bytes\"",
        );
        let many = format!(r#"{{"streams":[{}]}}"#, vec!["{}"; 257].join(","));
        check(&many, "257 streams");
    }

    #[test]
    fn losses_below_zero_are_none() {
        let text = RECEIVER.replace("\"errors\":0", "\"errors\":-3");
        assert_eq!(
            Results::parse(text.as_bytes()).unwrap().streams[0].errors,
            0
        );
    }
}
