//! What a network card is and how it is set: firmware, rings, channels, moderation, RSS, pause, and
//! the counters of its driver that tell of trouble.

use std::collections::BTreeSet;
use std::io;

use linerate_model::host::FactValue;
use linerate_model::unit::Unit;

use super::{Facts, Reading};
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

/// Adds what the driver of `device` says, under names that begin with `prefix`.
pub(super) fn read(facts: &mut Facts, prefix: &str, device: &str, ethtool: &io::Result<Ethtool>) {
    let ethtool = match ethtool {
        Ok(ethtool) => ethtool,
        // The reason stands beside the driver's name already.
        Err(_) => return,
    };
    let mut add = |fact: &str, reading| facts.add(format!("{prefix}.{fact}"), reading);
    let versions = said(ethtool.versions_and_bus(device));
    for (at, fact) in ["driver_version", "firmware", "bus"].iter().enumerate() {
        let text = versions.clone().map(|texts| texts[at].clone());
        add(fact, text.and_then(text_or_silence));
    }
    let mode = said(ethtool.duplex_and_autoneg(device));
    let duplex = mode.clone().and_then(|(full, _)| match full {
        Some(true) => Ok(FactValue::Text("full".to_owned())),
        Some(false) => Ok(FactValue::Text("half".to_owned())),
        None => Err("the driver does not know it".to_owned()),
    });
    add("duplex", duplex);
    add("autoneg", mode.and_then(|(_, autoneg)| switch(autoneg)));
    let rings = said(ethtool.rings(device));
    add("rx_ring", rings.clone().and_then(|rings| count(rings.rx)));
    add(
        "rx_ring_max",
        rings.clone().and_then(|rings| count(rings.rx_max)),
    );
    add("tx_ring", rings.clone().and_then(|rings| count(rings.tx)));
    add("tx_ring_max", rings.and_then(|rings| count(rings.tx_max)));
    let queues = said(ethtool.queues_max(device));
    add(
        "rx_queues_max",
        queues.clone().and_then(|queues| count(queues.0)),
    );
    add("tx_queues_max", queues.and_then(|queues| count(queues.1)));
    let moderation = said(ethtool.moderation(device));
    let of = |length: fn(&crate::sys::ethtool_nic::Moderation) -> u32| {
        moderation.as_ref().map_err(Clone::clone).map(length)
    };
    let length = |usecs: u32| FactValue::Number(f64::from(usecs) * 1e3, Unit::Nanoseconds);
    add("rx_coalesce_ns", of(|it| it.rx_usecs).map(length));
    add("tx_coalesce_ns", of(|it| it.tx_usecs).map(length));
    add("rx_coalesce_frames", of(|it| it.rx_frames).and_then(count));
    add("tx_coalesce_frames", of(|it| it.tx_frames).and_then(count));
    let adaptive = moderation.as_ref().map_err(Clone::clone);
    add(
        "rx_coalesce_adaptive",
        adaptive.clone().and_then(|it| switch(it.adaptive_rx)),
    );
    add(
        "tx_coalesce_adaptive",
        adaptive.and_then(|it| switch(it.adaptive_tx)),
    );
    let pause = said(ethtool.pause(device));
    for (at, fact) in ["pause_autoneg", "pause_rx", "pause_tx"].iter().enumerate() {
        add(fact, pause.clone().and_then(|pause| switch(pause[at])));
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

fn said<T>(answer: io::Result<T>) -> Result<T, String> {
    answer.map_err(|error| format!("ethtool: {error}"))
}

fn count(number: u32) -> Reading {
    Ok(FactValue::Number(f64::from(number), Unit::Count))
}

fn switch(on: bool) -> Reading {
    Ok(FactValue::Text(if on { "on" } else { "off" }.to_owned()))
}

fn text_or_silence(text: String) -> Reading {
    match text.is_empty() || text == "N/A" {
        true => Err("the driver does not say".to_owned()),
        false => Ok(FactValue::Text(text)),
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
            "{} entries over {} queues, {most} each",
            table.len(),
            queues.len()
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
