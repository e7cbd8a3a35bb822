//! The settings below `/proc/sys/net` that decide how TCP behaves.

use std::path::Path;

use linerate_model::host::FactValue;
use linerate_model::unit::Unit;

use super::{Facts, Reading, number};
use crate::observer::ObserveConfig;
use crate::sys::file::read_value;

/// Settings that are a number of bytes.
const BYTES: &[&str] = &[
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_limit_output_bytes",
];

/// Settings kept as the kernel writes them: names, lists, triples and switches.
const TEXTS: &[&str] = &[
    "net.core.default_qdisc",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
];

pub(super) fn read(config: &ObserveConfig, facts: &mut Facts) {
    let root = config.proc_root.join("sys");
    for name in BYTES {
        facts.add(format!("sysctl.{name}"), read_bytes(&root, name));
    }
    for name in TEXTS {
        facts.add(format!("sysctl.{name}"), read_words(&root, name));
    }
}

fn read_bytes(root: &Path, name: &str) -> Reading {
    number(
        &read_value(&root.join(name.replace('.', "/")))?,
        Unit::Bytes,
    )
}

/// Reads a setting with one space between its words, where the kernel writes tabs.
fn read_words(root: &Path, name: &str) -> Reading {
    let value = read_value(&root.join(name.replace('.', "/")))?;
    let words: Vec<_> = value.split_whitespace().collect();
    Ok(FactValue::Text(words.join(" ")))
}
