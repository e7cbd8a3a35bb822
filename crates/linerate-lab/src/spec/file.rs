//! A lab as a person writes it: links with gaps, to be filled from `[link]`.

use linerate_model::{BitsPerSec, Bytes, Nanos};
use serde::Deserialize;

use super::{HostSpec, LabSpec, LinkSpec, UpSpec};

/// The file as written: links with gaps, to be filled from `[link]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LabFile {
    name: String,
    #[serde(default)]
    link: LinkFile,
    #[serde(default, rename = "host")]
    hosts: Vec<HostFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostFile {
    name: String,
    #[serde(default)]
    link: LinkFile,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct LinkFile {
    rate: Option<BitsPerSec>,
    delay: Option<Nanos>,
    #[serde(default, deserialize_with = "share")]
    loss: Option<f64>,
    jitter: Option<Nanos>,
    #[serde(default, deserialize_with = "share")]
    reorder: Option<f64>,
    #[serde(default, deserialize_with = "share")]
    duplicate: Option<f64>,
    mtu_bytes: Option<u32>,
    queues: Option<u32>,
    host_queue: Option<Bytes>,
    queue: Option<Bytes>,
    #[serde(default)]
    up: UpSpec,
}

/// Reads a number, or text such as `1%`.
fn share<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Share {
        Number(f64),
        Text(String),
    }
    match Share::deserialize(deserializer)? {
        Share::Number(share) => Ok(Some(share)),
        Share::Text(text) => linerate_model::unit::parse_share(&text)
            .map(Some)
            .ok_or_else(|| {
                serde::de::Error::custom(format!("`{text}` is not a share: 0.01 or 1%"))
            }),
    }
}

impl LabFile {
    /// Returns the lab with every gap filled: the host's own, then `[link]`, then the default.
    pub(super) fn resolve(self) -> LabSpec {
        let common = self.link.over(&LinkSpec::default());
        let hosts = self
            .hosts
            .into_iter()
            .map(|host| HostSpec {
                link: host.link.over(&common),
                name: host.name,
            })
            .collect();
        LabSpec {
            name: self.name,
            hosts,
        }
    }
}

impl LinkFile {
    fn over(&self, below: &LinkSpec) -> LinkSpec {
        LinkSpec {
            rate: self.rate.or(below.rate),
            delay: self.delay.unwrap_or(below.delay),
            loss: self.loss.unwrap_or(below.loss),
            jitter: self.jitter.unwrap_or(below.jitter),
            reorder: self.reorder.unwrap_or(below.reorder),
            duplicate: self.duplicate.unwrap_or(below.duplicate),
            mtu_bytes: self.mtu_bytes.unwrap_or(below.mtu_bytes),
            queues: self.queues.unwrap_or(below.queues),
            host_queue: self.host_queue.or(below.host_queue),
            queue: self.queue.or(below.queue),
            up: self.up.over(below.up),
        }
    }
}
