//! What a network card is and how it is set: firmware, rings, channels, moderation, RSS, pause, and
//! the counters of its driver that tell of trouble.

use std::collections::BTreeSet;
use std::io;

use linerate_model::host::FactValue;
use linerate_model::number::counted;
use linerate_model::unit::Unit;

use super::{Facts, Reading};
use crate::card::{Cards, Channels, Features, Mode, Moderation, Pause, Rings};
use crate::queue::is_of_a_queue;
use crate::sys::ethtool::Ethtool;
use crate::sys::ethtool_stats::Statistics;

/// Words in the names of counters that tell of trouble.
const TROUBLE: [&str; 12] = [
    "err", "drop", "discard", "crc", "miss", "fifo", "overrun", "no_buf", "nobuf", "oversize",
    "timeout", "pause",
];
/// Most counters of trouble told of one device.
const TROUBLES_MAX: usize = 64;

/// Adds what the driver of `device` says, under names that begin with `prefix`; `mode` and `channels`
/// were asked for already.
pub(super) fn read(
    facts: &mut Facts,
    prefix: &str,
    device: &str,
    cards: &mut Cards,
    mode: &Result<Mode, String>,
    channels: &Result<Channels, String>,
) {
    let mut add = |fact: &str, reading| facts.add(format!("{prefix}.{fact}"), reading);
    for (fact, reading) in of_mode(mode) {
        add(fact, reading);
    }
    let link = cards.link(device).and_then(|link| match link {
        Some(true) => Ok(FactValue::Text("up".to_owned())),
        Some(false) => Ok(FactValue::Text("down".to_owned())),
        None => Err(SILENT.to_owned()),
    });
    add("link_state", link);
    let features = cards.features(device);
    let names = |of: fn(&Features) -> &Option<Vec<String>>| match &features {
        Ok(features) => list(of(features)),
        Err(why) => Err(why.clone()),
    };
    add("features", names(|features| &features.on));
    add("features_off", names(|features| &features.off));
    let rings = cards.rings(device);
    let of = |entries: fn(&Rings) -> Option<u32>| known(&rings, entries).and_then(count);
    add("rx_ring", of(|rings| rings.rx));
    add("rx_ring_max", of(|rings| rings.rx_max));
    add("tx_ring", of(|rings| rings.tx));
    add("tx_ring_max", of(|rings| rings.tx_max));
    let of = |queues: fn(&Channels) -> Option<u32>| known(channels, queues).and_then(count);
    add("rx_queues_max", of(|channels| Some(channels.rx_max)));
    add("tx_queues_max", of(|channels| Some(channels.tx_max)));
    for (fact, reading) in of_moderation(&cards.moderation(device)) {
        add(fact, reading);
    }
    let pause = cards.pause(device);
    let of = |is_on: fn(&Pause) -> Option<bool>| known(&pause, is_on).and_then(switch);
    add("pause_autoneg", of(|pause| Some(pause.autoneg)));
    add("pause_rx", of(|pause| Some(pause.rx)));
    add("pause_tx", of(|pause| Some(pause.tx)));
    add("asked_by", Ok(FactValue::Text(cards.way())));
    // Where the ioctl cannot be asked, the reason stands beside the driver's name already.
    if let Ok(ethtool) = cards.ioctl() {
        by_ioctl(facts, prefix, device, ethtool);
    }
}

/// What is said of a number that the driver does not have.
const SILENT: &str = "the driver does not say";

/// Returns what was answered, if that was in the answer.
pub(super) fn known<T, V>(
    answer: &Result<T, String>,
    of: impl Fn(&T) -> Option<V>,
) -> Result<V, String> {
    let answer = answer.as_ref().map_err(Clone::clone)?;
    of(answer).ok_or_else(|| SILENT.to_owned())
}

fn list(names: &Option<Vec<String>>) -> Reading {
    match names {
        None => Err("only netlink reports names".to_owned()),
        Some(names) if names.is_empty() => Ok(FactValue::Text("none".to_owned())),
        Some(names) => Ok(FactValue::Text(names.join(", "))),
    }
}

/// Returns how the link runs, and the modes of its port.
fn of_mode(mode: &Result<Mode, String>) -> [(&'static str, Reading); 6] {
    let duplex = known(mode, |mode| mode.full_duplex)
        .map(|full| if full { "full" } else { "half" }.to_owned());
    let autoneg = known(mode, |mode| Some(mode.autoneg)).and_then(switch);
    let modes = |of: fn(&Mode) -> &Option<Vec<String>>| match mode {
        Err(why) => Err(why.clone()),
        Ok(mode) => match of(mode) {
            // By netlink there are always modes of ours; those of the other end it may not have told.
            None if mode.supported.is_some() => Err(SILENT.to_owned()),
            None => list(&None),
            Some(names) => {
                let media = names.iter().filter(|name| mbps_of(name).is_some());
                match media.cloned().collect::<Vec<_>>() {
                    names if names.is_empty() => Err(SILENT.to_owned()),
                    names => list(&Some(names)),
                }
            }
        },
    };
    let fastest = known(mode, |mode| {
        let names = mode.supported.as_ref()?.iter();
        names.filter_map(|name| mbps_of(name)).max()
    });
    let bps = |mbps: u32| FactValue::Number(f64::from(mbps) * 1e6, Unit::BitsPerSecond);
    let fastest = fastest.map(bps);
    [
        ("duplex", duplex.map(FactValue::Text)),
        ("autoneg", autoneg),
        ("modes_supported", modes(|mode| &mode.supported)),
        ("modes_advertised", modes(|mode| &mode.advertised)),
        ("modes_peer", modes(|mode| &mode.peer)),
        ("speed_max_bps", fastest),
    ]
}

/// Returns the rate in the name of a mode, in Mbit/s: 25000 of `25000baseCR/Full`. Other names are
/// those of ports, pause and error correction.
fn mbps_of(name: &str) -> Option<u32> {
    let (digits, _) = name.split_once("base")?;
    digits.parse().ok()
}

fn of_moderation(moderation: &Result<Moderation, String>) -> [(&'static str, Reading); 6] {
    let length = |usecs: fn(&Moderation) -> Option<u32>| {
        let usecs = known(moderation, usecs)?;
        Ok(FactValue::Number(f64::from(usecs) * 1e3, Unit::Nanoseconds))
    };
    let frames = |of: fn(&Moderation) -> Option<u32>| known(moderation, of).and_then(count);
    let is_on = |of: fn(&Moderation) -> Option<bool>| known(moderation, of).and_then(switch);
    [
        ("rx_coalesce_ns", length(|it| it.rx_usecs)),
        ("tx_coalesce_ns", length(|it| it.tx_usecs)),
        ("rx_coalesce_frames", frames(|it| it.rx_frames)),
        ("tx_coalesce_frames", frames(|it| it.tx_frames)),
        ("rx_coalesce_adaptive", is_on(|it| it.adaptive_rx)),
        ("tx_coalesce_adaptive", is_on(|it| it.adaptive_tx)),
    ]
}

/// Adds what netlink does not tell on most kernels: versions, how packets find their queue, and the
/// driver's own counters.
fn by_ioctl(facts: &mut Facts, prefix: &str, device: &str, ethtool: &Ethtool) {
    let mut add = |fact: &str, reading| facts.add(format!("{prefix}.{fact}"), reading);
    let info = said(ethtool.driver_info(device));
    for (at, fact) in (1..).zip(["driver_version", "firmware", "bus"]) {
        let text = info.clone().map(|texts: [String; 4]| texts[at].clone());
        add(fact, text.and_then(text_or_silence));
    }
    let fields = said(ethtool.hash_fields(device));
    for (at, fact) in ["rss_hash_tcp4", "rss_hash_udp4"].iter().enumerate() {
        let text = fields.clone().map(|fields| fields[at].clone());
        add(fact, text.map(FactValue::Text));
    }
    let table = said(ethtool.rss_table(device));
    add(
        "rss_table",
        table.map(|table| FactValue::Text(table_words(&table))),
    );
    for (name, value) in troubles(ethtool, device) {
        add(
            &format!("counter.{name}"),
            Ok(FactValue::Number(value, Unit::Count)),
        );
    }
}

pub(super) fn said<T>(answer: io::Result<T>) -> Result<T, String> {
    answer.map_err(|error| format!("ethtool: {error}"))
}

pub(super) fn count(number: u32) -> Reading {
    Ok(FactValue::Number(f64::from(number), Unit::Count))
}

pub(super) fn switch(on: bool) -> Reading {
    Ok(FactValue::Text(if on { "on" } else { "off" }.to_owned()))
}

fn text_or_silence(text: String) -> Reading {
    if text.is_empty() || text == "N/A" {
        Err(SILENT.to_owned())
    } else {
        Ok(FactValue::Text(text))
    }
}

/// Says how long the table is and to which queues it leads.
fn table_words(table: &[u32]) -> String {
    let queues: BTreeSet<u32> = table.iter().copied().collect();
    let share = |queue: &u32| table.iter().filter(|entry| *entry == queue).count();
    let shares: Vec<usize> = queues.iter().map(share).collect();
    let (least, most) = (shares.iter().min(), shares.iter().max());
    match (least, most) {
        (Some(least), Some(most)) if least == most => format!(
            "{} entries over {}, {most} each",
            table.len(),
            counted(queues.len(), "queue")
        ),
        (Some(least), Some(most)) => format!(
            "{} entries over {} queues, {least} to {most} each",
            table.len(),
            queues.len()
        ),
        _ => "empty".to_owned(),
    }
}

/// Returns the driver's counters that tell of trouble and are not zero; not those of single queues.
fn troubles(ethtool: &Ethtool, device: &str) -> Vec<(String, f64)> {
    let names = ethtool.statistic_names(device).unwrap_or_default();
    let mut room = Statistics::new();
    let values = ethtool.statistics(device, names.len(), &mut room);
    let all = names.iter().zip(values.unwrap_or_default());
    let trouble = all.filter(|(name, value)| **value > 0 && tells_of_trouble(name));
    let found = trouble.map(|(name, value)| (name.clone(), *value as f64));
    found.take(TROUBLES_MAX).collect()
}

fn tells_of_trouble(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !is_of_a_queue(name) && TROUBLE.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_in_words() {
        assert_eq!(
            table_words(&[0, 1, 2, 3, 0, 1, 2, 3]),
            "8 entries over 4 queues, 2 each"
        );
        assert_eq!(
            table_words(&[0, 0, 0, 1]),
            "4 entries over 2 queues, 1 to 3 each"
        );
        assert_eq!(table_words(&[]), "empty");
    }

    #[test]
    fn modes_are_those_with_a_rate_and_the_fastest_is_told() {
        let names = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let mode = Mode {
            speed_mbps: Some(10_000),
            full_duplex: Some(true),
            autoneg: true,
            supported: names(&[
                "Autoneg",
                "FIBRE",
                "10000baseSR/Full",
                "25000baseSR/Full",
                "RS",
            ]),
            advertised: names(&["10000baseSR/Full"]),
            peer: names(&["Pause"]),
        };
        let facts = |mode: &Result<Mode, String>| of_mode(mode).map(|(_, reading)| reading);
        let text = |text: &str| Ok(FactValue::Text(text.to_owned()));
        assert_eq!(
            facts(&Ok(mode.clone())),
            [
                text("full"),
                text("on"),
                text("10000baseSR/Full, 25000baseSR/Full"),
                text("10000baseSR/Full"),
                Err(SILENT.to_owned()),
                Ok(FactValue::Number(25e9, Unit::BitsPerSecond)),
            ]
        );
        let alone = Mode {
            peer: None,
            ..mode.clone()
        };
        assert_eq!(facts(&Ok(alone))[4], Err(SILENT.to_owned()));
        let by_ioctl = Mode {
            supported: None,
            advertised: None,
            peer: None,
            full_duplex: None,
            ..mode
        };
        let told = facts(&Ok(by_ioctl));
        assert_eq!(
            (&told[0], &told[5]),
            (&Err(SILENT.to_owned()), &Err(SILENT.to_owned()))
        );
        assert_eq!(told[2], Err("only netlink reports names".to_owned()));
        let refused = facts(&Err("ethtool: no".to_owned()));
        assert!(
            refused
                .iter()
                .all(|it| *it == Err("ethtool: no".to_owned()))
        );
    }

    #[test]
    fn counters_of_trouble_have_telling_names() {
        for name in [
            "rx_crc_errors_phy",
            "rx_missed_errors",
            "rx_out_of_buffer_drop",
            "tx_pause",
        ] {
            assert!(tells_of_trouble(name), "{name}");
        }
        for name in ["rx_packets", "rx_queue_3_drops", "tx_bytes"] {
            assert!(!tells_of_trouble(name), "{name}");
        }
    }
}
