//! `[workload]`: keys of the catalogue of parameters, most of which can be factors as well.

use linerate_model::manner::{Named, Sizes, Transport};
use linerate_model::parameter::{PARAMETERS, Parameter, Shape, parameter_of};
use linerate_model::step::Step;
use linerate_model::workload::{DATAGRAM_BYTES_DEFAULT, Kind, Workload};
use toml::Spanned;

use super::error::ReadError;
use super::levels::level_of;
use super::raw::Entries;
use super::source::{Source, Spot};

/// Parameters that say which sizes there are, in place of one size.
const OF_SIZES: [&str; 2] = ["sizes", "steps"];
/// Parameters that say another size beside those, or need one.
const OF_ONE_SIZE: [&str; 6] = [
    "message_bytes",
    "payload_bytes",
    "request_bytes",
    "response_bytes",
    "request_writes",
    "segments",
];

/// Returns the workload that `entries` describe.
pub(super) fn workload(
    source: &Source<'_>,
    entries: &Spanned<Entries>,
) -> Result<Workload, ReadError> {
    let section = source.at("workload", entries.span());
    let entries = entries.get_ref();
    let Some((_, kind)) = entries.find("kind") else {
        return Err(section.wrong("missing field `kind`"));
    };
    let spot = source.at("workload.kind", kind.span());
    let wrong = |error: toml::de::Error| spot.wrong(error.message());
    let kind: Kind = kind.get_ref().clone().try_into().map_err(wrong)?;
    for (name, _) in &entries.0 {
        check_key(source, name, kind)?;
    }
    let mut workload = Workload::of(kind);
    // From the last on: `payload_bytes` stands behind the two sizes that it sets together, either of
    // which says more.
    for parameter in PARAMETERS.iter().rev() {
        if let Some((_, value)) = entries.find(parameter.key) {
            write(source, parameter, value, &mut workload)?;
        }
    }
    let manner = &workload.manner;
    // The sizes decide; this is what the flags have beside them.
    if manner.transport == Transport::Udp
        && manner.sizes.is_some()
        && let Some((_, message_bytes)) = workload.traffic.stream_mut()
    {
        *message_bytes = DATAGRAM_BYTES_DEFAULT;
    }
    Ok(workload)
}

/// Refuses a key that is no parameter, or that belongs to another kind of traffic.
fn check_key(source: &Source<'_>, name: &Spanned<String>, kind: Kind) -> Result<(), ReadError> {
    let key = name.get_ref();
    if key == "kind" {
        return Ok(());
    }
    let spot = source.at(format!("workload.{key}"), name.span());
    let Some(parameter) = parameter_of(key).filter(|parameter| parameter.is_key()) else {
        let keys = PARAMETERS.iter().filter(|parameter| parameter.is_key());
        let keys: String = keys.map(|known| format!(", `{}`", known.key)).collect();
        let message = format!("unknown field `{key}`, expected one of `kind`{keys}");
        return Err(spot.wrong(&message));
    };
    if parameter.kinds.contains(&kind) {
        return Ok(());
    }
    let kinds = parameter.kinds.iter();
    let words: Vec<String> = kinds.map(|kind| format!("`{}`", kind.word())).collect();
    let allowed = format!("left out: it belongs to kind {}", words.join(" or "));
    let value = format!("given for kind `{}`", kind.word());
    Err(spot.value(value, allowed))
}

fn write(
    source: &Source<'_>,
    parameter: &Parameter,
    value: &Spanned<toml::Value>,
    workload: &mut Workload,
) -> Result<(), ReadError> {
    let spot = source.at(format!("workload.{}", parameter.key), value.span());
    if matches!(parameter.shape, Shape::Mix) {
        let wrong = |error: toml::de::Error| spot.wrong(error.message());
        let sizes: Sizes = value.get_ref().clone().try_into().map_err(wrong)?;
        workload.manner.sizes = Some(sizes);
        return Ok(());
    }
    if matches!(parameter.shape, Shape::Steps) {
        return write_steps(&spot, parameter, value.get_ref(), workload);
    }
    let level = level_of(&spot, parameter, value.get_ref())?;
    let bad = || spot.value(value.get_ref(), parameter.allowed());
    parameter.write(&level, workload).ok_or_else(bad)
}

/// Writes a list of steps, of which request and response have the bytes.
fn write_steps(
    spot: &Spot<'_>,
    parameter: &Parameter,
    value: &toml::Value,
    workload: &mut Workload,
) -> Result<(), ReadError> {
    let bad = |value: &toml::Value| spot.value(value, parameter.allowed());
    let list = value.as_array().ok_or_else(|| bad(value))?;
    let step = |value: &toml::Value| {
        let step = value.as_str().and_then(Step::named);
        step.ok_or_else(|| bad(value))
    };
    let steps: Vec<Step> = list.iter().map(step).collect::<Result<_, _>>()?;
    workload.set_steps(steps);
    Ok(())
}

/// Refuses keys and factors beside `sizes` or `steps` that say another size, or need one.
pub(super) fn check_sizes(
    source: &Source<'_>,
    workload: &Entries,
    is_factor: impl Fn(&str) -> bool,
) -> Result<(), ReadError> {
    let mut given = OF_SIZES.iter().filter_map(|name| workload.find(name));
    let Some((name, sizes)) = given.next() else {
        return Ok(());
    };
    let is_given = |name: &&&str| workload.find(name).is_some() || is_factor(name);
    let Some(other) = OF_ONE_SIZE.iter().find(is_given) else {
        return Ok(());
    };
    let value = format!("given in addition to `{other}`");
    let allowed = format!("left out, or `{other}`, which is for messages of one size");
    let spot = source.at(format!("workload.{}", name.get_ref()), sizes.span());
    Err(spot.value(value, allowed))
}
