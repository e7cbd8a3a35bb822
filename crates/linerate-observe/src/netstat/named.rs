//! Every protocol counter of the network namespace by its name, and which of them moved.
//!
//! Samples carry the counters that this program explains something with. The kernel keeps some
//! 400, and the one that explains a strange run may be any of them: these are read twice, and what
//! moved in between is listed.

use std::collections::BTreeMap;
use std::path::Path;

use super::open_table;
use super::parse::{each, split};
use crate::text::{complete_lines, number, words};

/// Most counters kept: a kernel of today has some 400.
const COUNTERS_MAX: usize = 4096;

/// Every counter of `/proc/net/snmp`, `netstat` and `snmp6`, by protocol and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedCounters {
    /// `Tcp.RetransSegs`, `TcpExt.ListenDrops`, `Ip6InReceives`.
    values: BTreeMap<String, u64>,
}

impl NamedCounters {
    /// Reads all of them, of the network namespace of the calling thread; a file that is not there
    /// has no counters.
    pub fn read(proc_root: &Path) -> Self {
        let mut counters = Self::default();
        for file in ["snmp", "netstat"] {
            if let Ok(mut table) = open_table(proc_root, file)
                && let Ok((text, _)) = table.read()
            {
                counters.add_table(text);
            }
        }
        if let Ok(mut list) = open_table(proc_root, "snmp6")
            && let Ok((text, _)) = list.read()
        {
            counters.add_list(text);
        }
        counters
    }

    /// Returns the value of one, such as `TcpExt.ListenDrops`.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns every counter that is another now than `before`, with how much it moved, by name.
    /// Some are values at an instant (`Tcp.CurrEstab`) and can fall.
    pub fn moved_since(&self, before: &Self) -> Vec<(String, i64)> {
        let moved = self.values.iter().filter_map(|(name, now)| {
            let before = before.values.get(name)?;
            let distance = now.wrapping_sub(*before).cast_signed();
            (distance != 0).then(|| (name.clone(), distance))
        });
        moved.collect()
    }

    fn add(&mut self, name: String, value: u64) {
        if self.values.len() < COUNTERS_MAX {
            self.values.insert(name, value);
        }
    }

    fn add_table(&mut self, text: &[u8]) {
        each(text, |protocol, name, value| {
            if let Some(value) = number(value) {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                self.add(format!("{}.{}", text(protocol), text(name)), value);
            }
        });
    }

    /// Reads lines of a name and a number.
    fn add_list(&mut self, text: &[u8]) {
        for line in complete_lines(text).filter(|line| split(line).is_none()) {
            let mut line = words(line);
            if let (Some(name), Some(value)) = (line.next(), line.next().and_then(number)) {
                self.add(String::from_utf8_lossy(name).into_owned(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(table: &str, list: &str) -> NamedCounters {
        let mut counters = NamedCounters::default();
        counters.add_table(table.as_bytes());
        counters.add_list(list.as_bytes());
        counters
    }

    #[test]
    fn what_moved_is_listed_by_name() {
        let before = counters(
            "Tcp: MaxConn CurrEstab OutSegs\nTcp: -1 5 7\nTcpExt: A\nTcpExt: 1\n",
            "Ip6InReceives     \t10\nUdp6InDatagrams x\n",
        );
        let now = counters(
            "Tcp: MaxConn CurrEstab OutSegs\nTcp: -1 2 7\nTcpExt: A B\nTcpExt: 3 9\n",
            "Ip6InReceives     \t15\n",
        );
        assert_eq!((before.len(), before.value("Tcp.OutSegs")), (4, Some(7)));
        assert_eq!(before.value("Udp6InDatagrams"), None);
        let moved = now.moved_since(&before);
        let moved: Vec<_> = moved
            .iter()
            .map(|(name, by)| (name.as_str(), *by))
            .collect();
        assert_eq!(
            moved,
            [("Ip6InReceives", 5), ("Tcp.CurrEstab", -3), ("TcpExt.A", 2)]
        );
    }

    #[test]
    fn this_host_has_hundreds() {
        let counters = NamedCounters::read("/proc".as_ref());
        assert!(counters.len() > 100, "{}", counters.len());
        assert!(counters.value("TcpExt.ListenDrops").is_some());
        assert!(NamedCounters::read("/nosuch".as_ref()).is_empty());
    }
}
