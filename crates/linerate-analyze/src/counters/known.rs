//! What the kernel's protocol counters mean, and which of them tell of trouble.
//!
//! Names and meanings are the kernel's (net/ipv4/proc.c, include/uapi/linux/snmp.h,
//! Documentation/networking/snmp_counter.rst). One that is not listed is shown without a meaning;
//! whether it tells of trouble is then read from its name. The list is a file of its own, a counter a line: name,
//! whether it tells of trouble (loss, want of room, work done twice) or of ordinary traffic, and what it counts.

use std::sync::LazyLock;

/// Words in the name of a counter that tell of trouble.
const TROUBLE_WORDS: &[&str] = &[
    "Drop",
    "Err",
    "Fail",
    "Overflow",
    "Discard",
    "Lost",
    "Prune",
    "NoRoute",
    "NoPort",
    "Reject",
    "Retrans",
    "Timeout",
    "Truncated",
];

/// Returns whether the counter called `name` tells of trouble, and what it counts, where that is known.
pub(super) fn known(name: &str) -> (bool, Option<&'static str>) {
    match known_counters().find(|known| known.name == name) {
        Some(known) => (known.trouble, Some(known.meaning)),
        None => (TROUBLE_WORDS.iter().any(|word| name.contains(word)), None),
    }
}

/// A counter of the kernel's protocols of which it is known what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCounter {
    /// The kernel's name, as in `TcpExt.ListenOverflows`.
    pub name: &'static str,
    /// Whether it tells of trouble.
    pub trouble: bool,
    /// What it counts.
    pub meaning: &'static str,
}

/// Returns every counter that is known, those that tell of trouble first.
pub fn known_counters() -> impl Iterator<Item = KnownCounter> {
    static KNOWN: LazyLock<Vec<KnownCounter>> = LazyLock::new(|| {
        include_str!("known.tsv")
            .lines()
            .filter_map(counter)
            .collect()
    });
    KNOWN.iter().copied()
}

fn counter(line: &'static str) -> Option<KnownCounter> {
    let (name, rest) = line.split_once('\t')?;
    let (kind, meaning) = rest.split_once('\t')?;
    Some(KnownCounter {
        name,
        trouble: kind == "trouble",
        meaning,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_counter() {
        let lines: Vec<&str> = include_str!("known.tsv").lines().collect();
        assert_eq!(known_counters().count(), lines.len());
        for line in lines {
            let kind = line.split('\t').nth(1);
            assert!(matches!(kind, Some("trouble" | "other")), "{line}");
        }
    }

    #[test]
    fn each_meaning_stands_alone() {
        for KnownCounter { name, meaning, .. } in known_counters() {
            for word in ["of them", " it ", "at that time"] {
                let about = format!(" {meaning} ");
                assert!(!about.contains(word), "{name}: {meaning}");
            }
        }
    }

    #[test]
    fn each_counter_is_listed_once() {
        let names: Vec<&str> = known_counters().map(|known| known.name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
        }
    }

    #[test]
    fn a_counter_that_is_not_listed_is_told_by_its_name() {
        let check = |name, trouble, meaning| assert_eq!(known(name), (trouble, meaning));
        check("Tcp.RetransSegs", true, Some("segments retransmitted"));
        check("Tcp.InSegs", false, Some("segments received"));
        check("TcpExt.TCPNewDrop", true, None);
        check("MPTcpExt.MPCapableSYNRX", false, None);
    }
}
