//! What TOML and the spelling of keys allow.

use std::fmt;
use std::marker::PhantomData;

use linerate_model::experiment::DesignKind;
use linerate_model::manner::{Manner, ReceiveBy, SendBy, Sizes, Transport, WaitBy};
use linerate_model::parameter::{Kind, parameter_of};
use linerate_model::probe::Probes;
use linerate_model::unit::ParseUnitError;
use linerate_model::workload::{
    Direction, FlowOptions, LINK_LOSS_PPM_MAX, STREAM_MESSAGE_BYTES_DEFAULT, Traffic, Workload,
};
use linerate_model::{BitsPerSec, Bytes, Nanos};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use toml::Spanned;

use super::ReadError;
use super::source::Source;

/// The number of the format, read before anything else.
#[derive(serde::Deserialize)]
pub(super) struct Numbered {
    pub(super) format: Option<u32>,
}

/// A whole file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    #[serde(rename = "format")]
    pub(super) _format: u32,
    pub(super) name: Spanned<String>,
    pub(super) chapter: Option<u32>,
    pub(super) title: String,
    pub(super) question: String,
    #[serde(default)]
    pub(super) method: String,
    pub(super) response: Option<Spanned<String>>,
    pub(super) workload: Spanned<RawWorkload>,
    #[serde(default)]
    pub(super) factors: Entries,
    pub(super) design: RawDesign,
    pub(super) timing: RawTiming,
    /// `[observe]`: what is looked at beyond what every trial shows.
    pub(super) observe: Option<Probes>,
    pub(super) budget: Option<RawBudget>,
}

/// `[workload]`: most keys can be factors as well.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWorkload {
    kind: Kind,
    direction: Option<Spanned<Direction>>,
    message_bytes: Option<Spanned<Bytes>>,
    payload_bytes: Option<Spanned<Bytes>>,
    request_bytes: Option<Spanned<Bytes>>,
    response_bytes: Option<Spanned<Bytes>>,
    request_writes: Option<Spanned<u32>>,
    connections: Option<u32>,
    clients: Option<u32>,
    socket_buffer: Option<Bytes>,
    nagle: Option<bool>,
    delayed_ack: Option<bool>,
    congestion: Option<String>,
    mss_bytes: Option<u32>,
    transport: Option<Transport>,
    send: Option<Spanned<SendBy>>,
    receive: Option<Spanned<ReceiveBy>>,
    wait: Option<WaitBy>,
    batch: Option<Spanned<u32>>,
    segments: Option<Spanned<u32>>,
    in_flight: Option<Spanned<u32>>,
    requests_per_s: Option<Spanned<u32>>,
    think: Option<Spanned<Length>>,
    rate: Option<Spanned<BitsPerSec>>,
    burst: Option<Spanned<u32>>,
    sizes: Option<Spanned<Sizes>>,
    link_loss: Option<Spanned<f64>>,
    receive_low_water: Option<Spanned<Bytes>>,
    gro: Option<Spanned<bool>>,
    bytes_max: Option<Spanned<Bytes>>,
    cork: Option<bool>,
    pacing: Option<BitsPerSec>,
    busy_poll_us: Option<u32>,
    tos: Option<u8>,
}

/// Payload of a datagram of no other size, as with the flags of `linerate run`.
const DATAGRAM_BYTES_DEFAULT: Bytes = Bytes(1448);

/// What a share of lost frames can be.
pub(super) const LINK_LOSS_ALLOWED: &str = "a share from 0 to 0.5 in steps of 0.000001";

/// Returns a share of lost frames in parts per million, if it is one.
pub(super) fn link_loss_ppm(share: f64) -> Option<u32> {
    let ppm = share * 1e6;
    // A decimal number is a binary one only nearly.
    let is_whole = (ppm - ppm.round()).abs() < 1e-6;
    let is_allowed = (0.0..=f64::from(LINK_LOSS_PPM_MAX)).contains(&ppm);
    (is_whole && is_allowed).then_some(ppm.round() as u32)
}

/// `[design]`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDesign {
    pub(super) kind: DesignKind,
    #[serde(default)]
    pub(super) baseline: Entries,
    pub(super) replicates: Spanned<u32>,
}

/// `[timing]`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTiming {
    pub(super) settle: Spanned<Length>,
    pub(super) warm_up: Spanned<Length>,
    pub(super) measure: Spanned<Length>,
    pub(super) drain: Spanned<Length>,
}

/// `[budget]`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBudget {
    pub(super) weight: Option<Spanned<u32>>,
    pub(super) replicates: Option<Spanned<[u32; 2]>>,
    pub(super) measure: Option<Spanned<[Length; 2]>>,
    #[serde(default)]
    pub(super) core: Entries,
}

/// A duration as text with its unit; a bare number would be read as seconds by one person and as
/// milliseconds by the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length(pub(super) Nanos);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Length;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration as text with its unit, such as \"400ms\" or \"10s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Length, E> {
                let ends_in_digit = text.trim_end().ends_with(|c: char| c.is_ascii_digit());
                if ends_in_digit {
                    return Err(E::custom(format_args!(
                        "`{text}` has no unit; use ns, us, ms, s, m or h"
                    )));
                }
                text.parse()
                    .map(Length)
                    .map_err(|e: ParseUnitError| E::custom(e))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// Keys with their values, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Entries(pub(super) Vec<(Spanned<String>, Spanned<toml::Value>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map(PhantomData<Entries>);
        impl<'de> Visitor<'de> for Map {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries: Vec<(Spanned<String>, Spanned<toml::Value>)> = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                // The parser's table is sorted by name; the file's order is the person's.
                entries.sort_by_key(|(name, _)| name.span().start);
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Map(PhantomData))
    }
}

impl RawWorkload {
    /// Returns the workload; keys that belong to the other kind of traffic are refused.
    pub(super) fn workload(&self, source: &Source<'_>) -> Result<Workload, ReadError> {
        fn of<T>(key: &Option<Spanned<T>>) -> Option<std::ops::Range<usize>> {
            key.as_ref().map(Spanned::span)
        }
        let spans = [
            ("direction", of(&self.direction)),
            ("message_bytes", of(&self.message_bytes)),
            ("send", of(&self.send)),
            ("receive", of(&self.receive)),
            ("batch", of(&self.batch)),
            ("segments", of(&self.segments)),
            ("rate", of(&self.rate)),
            ("burst", of(&self.burst)),
            ("sizes", of(&self.sizes)),
            ("receive_low_water", of(&self.receive_low_water)),
            ("payload_bytes", of(&self.payload_bytes)),
            ("request_bytes", of(&self.request_bytes)),
            ("response_bytes", of(&self.response_bytes)),
            ("request_writes", of(&self.request_writes)),
            ("in_flight", of(&self.in_flight)),
            ("requests_per_s", of(&self.requests_per_s)),
            ("think", of(&self.think)),
            ("gro", of(&self.gro)),
            ("bytes_max", of(&self.bytes_max)),
        ];
        let kind = self.kind;
        for (key, span) in spans {
            let belongs = parameter_of(key).filter(|known| !known.kinds.contains(&kind));
            let (Some(span), Some(parameter)) = (span, belongs) else {
                continue;
            };
            let kinds = parameter.kinds.iter();
            let words: Vec<String> = kinds.map(|kind| format!("`{}`", kind.word())).collect();
            let allowed = format!("left out: it belongs to kind {}", words.join(" or "));
            let value = format!("given for kind `{}`", kind.word());
            return Err(source.value(&span, format!("workload.{key}"), value, allowed));
        }
        Ok(Workload {
            traffic: self.traffic(),
            connections: self.connections.unwrap_or(1),
            clients: self.clients.unwrap_or(1),
            link_loss_ppm: self.link_loss_ppm(source)?,
            options: FlowOptions {
                socket_buffer: self.socket_buffer,
                nagle: self.nagle,
                delayed_ack: self.delayed_ack,
                congestion: self.congestion.clone(),
                mss_bytes: self.mss_bytes,
                cork: self.cork,
                pacing_bps: self.pacing.map(|rate| rate.0 as u64),
                busy_poll_us: self.busy_poll_us,
                tos: self.tos,
            },
            manner: self.manner(),
        })
    }

    /// Refuses keys and factors beside `sizes` that say another size, or need one.
    pub(super) fn check_sizes(
        &self,
        source: &Source<'_>,
        factors: &Entries,
    ) -> Result<(), ReadError> {
        let Some(sizes) = &self.sizes else {
            return Ok(());
        };
        let others = [
            ("message_bytes", self.message_bytes.is_some()),
            ("payload_bytes", self.payload_bytes.is_some()),
            ("request_bytes", self.request_bytes.is_some()),
            ("response_bytes", self.response_bytes.is_some()),
            ("request_writes", self.request_writes.is_some()),
            ("segments", self.segments.is_some()),
        ];
        let varied = |name: &str| factors.0.iter().any(|(factor, _)| factor.get_ref() == name);
        let mut others = others.into_iter();
        let Some((other, _)) = others.find(|(name, given)| *given || varied(name)) else {
            return Ok(());
        };
        let value = format!("given beside `{other}`");
        let allowed = format!("left out, or `{other}`, which is for messages of one size");
        Err(source.value(&sizes.span(), "workload.sizes", value, allowed))
    }

    fn link_loss_ppm(&self, source: &Source<'_>) -> Result<Option<u32>, ReadError> {
        let ppm = |share: &Spanned<f64>| {
            let bad = || {
                let key = "workload.link_loss".to_owned();
                source.value(&share.span(), key, share.get_ref(), LINK_LOSS_ALLOWED)
            };
            link_loss_ppm(*share.get_ref()).ok_or_else(bad)
        };
        self.link_loss.as_ref().map(ppm).transpose()
    }

    fn manner(&self) -> Manner {
        let plain = Manner::default();
        let number = |key: &Option<Spanned<u32>>| key.as_ref().map(|number| *number.get_ref());
        Manner {
            transport: self.transport.unwrap_or(plain.transport),
            send: self.send.as_ref().map_or(plain.send, |by| *by.get_ref()),
            receive: self
                .receive
                .as_ref()
                .map_or(plain.receive, |by| *by.get_ref()),
            wait: self.wait.unwrap_or(plain.wait),
            batch: number(&self.batch).unwrap_or(plain.batch),
            segments: number(&self.segments).unwrap_or(plain.segments),
            in_flight: number(&self.in_flight).unwrap_or(plain.in_flight),
            requests_per_s: number(&self.requests_per_s),
            think: self.think.as_ref().map(|length| length.get_ref().0),
            rate_bps: self.rate.as_ref().map(|rate| rate.get_ref().0 as u64),
            burst: number(&self.burst).unwrap_or(plain.burst),
            sizes: self.sizes.as_ref().map(|sizes| sizes.get_ref().clone()),
            receive_low_water: self.receive_low_water.as_ref().map(|size| *size.get_ref()),
            gro: self.gro.as_ref().is_some_and(|on| *on.get_ref()),
            bytes_max: self.bytes_max.as_ref().map(|size| *size.get_ref()),
            ..plain
        }
    }

    fn traffic(&self) -> Traffic {
        let size = |size: &Option<Spanned<Bytes>>| size.as_ref().map(|size| *size.get_ref());
        let payload = size(&self.payload_bytes).unwrap_or(Bytes(1));
        match self.kind {
            Kind::Stream => Traffic::Stream {
                direction: self
                    .direction
                    .as_ref()
                    .map_or(Direction::ToServer, |direction| *direction.get_ref()),
                message_bytes: size(&self.message_bytes).unwrap_or(match self.transport {
                    // The sizes decide; this is what the flags have beside them.
                    Some(Transport::Udp) if self.sizes.is_some() => DATAGRAM_BYTES_DEFAULT,
                    _ => STREAM_MESSAGE_BYTES_DEFAULT,
                }),
            },
            Kind::Rr => Traffic::Rr {
                request_bytes: size(&self.request_bytes).unwrap_or(payload),
                response_bytes: size(&self.response_bytes).unwrap_or(payload),
                request_writes: self.request_writes.as_ref().map_or(1, |n| *n.get_ref()),
            },
            Kind::Crr => Traffic::Crr {
                request_bytes: size(&self.request_bytes).unwrap_or(payload),
                response_bytes: size(&self.response_bytes).unwrap_or(payload),
            },
            Kind::Idle => Traffic::Idle,
        }
    }
}
