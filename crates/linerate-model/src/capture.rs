//! Captures of trials: what one may take, and what came of it.

use std::fmt;
use std::str::FromStr;

use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::{HostName, TrialId};
use crate::unit::{Bytes, Nanos};

/// Bytes of a frame that hold every header of IPv4: Ethernet, a VLAN tag, IP, TCP with all its options.
pub const SNAP_BYTES_MIN: u64 = 98;
/// Bytes of a frame that hold every header that there is: those of IPv6 with its extensions, too. A
/// capture shows headers; payload is nobody's business, and that of our own flows is a pattern.
pub const SNAP_BYTES_MAX: u64 = 256;
/// Least room for a file: heads, a handshake, some data.
pub const FILE_BYTES_MIN: u64 = 16 << 10;
/// Most room: an agent keeps it in memory until it is fetched.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// What the capture of each trial may take on each host; it ends at the first limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CaptureOptions {
    /// Bytes of each frame, from its beginning.
    pub snap: Bytes,
    /// Frames.
    pub packets: u64,
    /// Bytes of the file, which the host keeps in memory until it is fetched.
    pub bytes: Bytes,
    /// Time from the start of the flows; that of the trial when absent.
    pub time: Option<Nanos>,
    /// Whether addresses are replaced by made ones and payload is left out.
    pub anonymous: bool,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            snap: Bytes(128),
            packets: 1_000_000,
            bytes: Bytes(32 << 20),
            time: None,
            anonymous: false,
        }
    }
}

/// What is wrong with what a capture was to take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureOptionsError {
    /// A word is not known.
    #[error("`{0}` is none of snap=BYTES, packets=N, bytes=BYTES, time=TIME")]
    Word(String),
    /// A value is not what it must be.
    #[error("{key}: {why}")]
    Value {
        /// Of what.
        key: String,
        /// Why.
        why: String,
    },
    /// A value is too small or too large.
    #[error("{key} is {value}, but must be {least} to {most}")]
    Range {
        /// Of what.
        key: &'static str,
        /// The value.
        value: u64,
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
}

impl CaptureOptions {
    /// Returns why it cannot be had, if it cannot.
    pub fn check(&self) -> Result<(), CaptureOptionsError> {
        let time_ns = self.time.map_or(1, |time| time.0);
        let ranges = [
            ("snap", self.snap.0, SNAP_BYTES_MIN, SNAP_BYTES_MAX),
            ("packets", self.packets, 1, u64::from(u32::MAX)),
            ("bytes", self.bytes.0, FILE_BYTES_MIN, FILE_BYTES_MAX),
            ("time", time_ns, 1, u64::MAX),
        ];
        for (key, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(CaptureOptionsError::Range {
                    key,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

impl FromStr for CaptureOptions {
    type Err = CaptureOptionsError;

    /// Reads `snap=96,packets=100000,bytes=8M,time=2s`, of which each may be missing.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut options = Self::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let unknown = || CaptureOptionsError::Word(word.to_owned());
            let (key, value) = word.split_once('=').ok_or_else(unknown)?;
            let refused = |why: String| CaptureOptionsError::Value {
                key: key.to_owned(),
                why,
            };
            let bytes = || value.parse::<Bytes>().map_err(|e| refused(e.to_string()));
            match key {
                "snap" => options.snap = bytes()?,
                "bytes" => options.bytes = bytes()?,
                "packets" => {
                    let whole = |_| refused(format!("`{value}` is not a whole number"));
                    options.packets = value.parse().map_err(whole)?;
                }
                "time" => {
                    let time = value.parse::<Nanos>();
                    options.time = Some(time.map_err(|error| refused(error.to_string()))?);
                }
                _ => return Err(unknown()),
            }
        }
        options.check()?;
        Ok(options)
    }
}

/// Reads `true`, `false` or the limits, for a key of documents that people write.
pub(crate) fn switch_or_options<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<CaptureOptions>, D::Error> {
    struct Either;

    impl<'de> Visitor<'de> for Either {
        type Value = Option<CaptureOptions>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("true, false, or limits as { snap = 128, bytes = \"8M\" }")
        }

        fn visit_bool<E: serde::de::Error>(self, on: bool) -> Result<Self::Value, E> {
            Ok(on.then(CaptureOptions::default))
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let options = CaptureOptions::deserialize(MapAccessDeserializer::new(map))?;
            options.check().map_err(serde::de::Error::custom)?;
            Ok(Some(options))
        }
    }

    deserializer.deserialize_any(Either)
}

/// What was captured of one trial on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureTaken {
    /// The device.
    pub device: String,
    /// Bytes of each frame that were kept at the most.
    pub snap_bytes: u64,
    /// Whether its addresses are made.
    pub anonymous: bool,
    /// Frames in the file.
    pub frames: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Frames of the trial's ports for which the ring between kernel and agent had no room: nobody
    /// knows whether they were of the trial.
    pub dropped: u64,
    /// Frames of other connections with the server's address and port, which are left out, such as those of the
    /// control connection.
    pub others: u64,
    /// The limit that ended it before the trial did.
    pub ended: Option<String>,
    /// CPU time of the thread that took it, on the host; what the kernel spent on copying headers is
    /// not in it.
    pub cpu_ns: u64,
}

/// What came of a capture that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CaptureOutcome {
    /// There is one.
    Taken(CaptureTaken),
    /// There is none, and why.
    Missing(String),
}

/// The capture of one trial on one host, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialCapture {
    /// The trial.
    pub trial: TrialId,
    /// The host.
    pub host: HostName,
    /// Where it is, relative to the bundle; absent where there is none, or no bundle.
    pub file: Option<String>,
    /// What came of it.
    pub outcome: CaptureOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_typed() {
        let check = |text: &str| text.parse::<CaptureOptions>();
        assert_eq!(check(""), Ok(CaptureOptions::default()));
        let all = CaptureOptions {
            snap: Bytes(200),
            packets: 100_000,
            bytes: Bytes(8 << 20),
            time: Some(Nanos::from_s(2)),
            anonymous: false,
        };
        assert_eq!(check("snap=200,packets=100000,bytes=8M,time=2s"), Ok(all));
        for (text, words) in [
            ("snap", "none of snap="),
            ("size=3", "none of snap="),
            ("snap=20", "must be 98 to 256"),
            ("packets=many", "not a whole number"),
            ("packets=0", "must be 1"),
            ("bytes=1G", "bytes is 1073741824"),
            ("time=soon", "time: "),
        ] {
            let error = check(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn documents_switch_it_on_or_set_limits() {
        #[derive(Deserialize)]
        struct Document {
            #[serde(deserialize_with = "switch_or_options")]
            capture: Option<CaptureOptions>,
        }
        let check = |json: &str| {
            let document = format!(r#"{{"capture":{json}}}"#);
            serde_json::from_str::<Document>(&document)
                .map(|document| document.capture)
                .map_err(|error| error.to_string())
        };
        assert_eq!(check("true"), Ok(Some(CaptureOptions::default())));
        assert_eq!(check("false"), Ok(None));
        assert_eq!(check("null"), Ok(None));
        let own = check(r#"{"snap":200,"anonymous":true}"#).unwrap().unwrap();
        assert_eq!((own.snap, own.anonymous), (Bytes(200), true));
        assert_eq!(own.packets, CaptureOptions::default().packets);
        assert!(check(r#"{"snap":2}"#).unwrap_err().contains("must be 98"));
        assert!(check(r#"{"sn":2}"#).unwrap_err().contains("unknown field"));
        assert!(check("7").unwrap_err().contains("true, false"));
        // What is written is read again.
        let options = CaptureOptions::default();
        let json = serde_json::to_string(&options).unwrap();
        assert_eq!(check(&json), Ok(Some(options)));
    }
}
