//! Every protocol counter of the network namespace by its name, and which of them moved.
//!
//! Samples carry the counters that this program explains something with. The kernel keeps some
//! 400, and the one that explains a strange run may be any of them: these are read twice, and what
//! moved in between is listed.

use std::collections::BTreeMap;
use std::path::Path;

use super::parse::each;
use crate::sys::file::KernelFile;
use crate::text::number;

/// Most counters kept: a kernel of today has some 400.
const COUNTERS_MAX: usize = 4096;

/// Opens the files of the calling thread's network namespace.
pub(super) fn open_files(proc_root: &Path) -> [Result<KernelFile, String>; 3] {
    ["snmp", "netstat", "snmp6"].map(|name| KernelFile::of_network(proc_root, name))
}

/// Every counter of `/proc/net/snmp`, `netstat` and `snmp6`, by protocol and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedCounters {
    /// `Tcp.RetransSegs`, `TcpExt.ListenDrops`, `Ip6InReceives`.
    values: BTreeMap<String, u64>,
}

impl NamedCounters {
    /// Reads all of them from open files, and returns the instant at which the first of those was
    /// read, and why another could not be.
    pub(super) fn read_files<'f>(
        files: impl Iterator<Item = &'f mut KernelFile>,
    ) -> (Self, Option<u64>, Option<String>) {
        let (mut counters, mut first_ns, mut failure) = (Self::default(), None, None);
        for file in files {
            match file.read() {
                Ok((text, at_ns)) => {
                    first_ns.get_or_insert(at_ns);
                    counters.add(text);
                }
                Err(reason) => failure = Some(reason),
            }
        }
        (counters, first_ns, failure)
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns every counter that is another now than `before`, by name, with its value then and
    /// now. Some are values at an instant (`Tcp.CurrEstab`) and can fall.
    pub(super) fn moved_since<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (&'a str, u64, u64)> {
        self.values.iter().filter_map(|(name, now)| {
            let absent = || (before.len() > 0 && is_absent_at_zero(name)).then_some(0);
            let then = before.values.get(name).copied().or_else(absent)?;
            (then != *now).then_some((name.as_str(), then, *now))
        })
    }

    fn add(&mut self, text: &[u8]) {
        let text_of = String::from_utf8_lossy;
        each(text, |protocol, name, value| {
            let Some(value) = number(value).filter(|_| self.values.len() < COUNTERS_MAX) else {
                return;
            };
            let name = match protocol {
                b"" => text_of(name).into_owned(),
                _ => format!("{}.{}", text_of(protocol), text_of(name)),
            };
            self.values.insert(name, value);
        });
    }
}

/// Whether a counter is not there while it is zero: those of ICMP by type (`icmpmsg_put` in net/ipv4/proc.c).
fn is_absent_at_zero(name: &str) -> bool {
    let by_type = ["IcmpMsg.", "Icmp6InType", "Icmp6OutType"];
    by_type.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(table: &str, list: &str) -> NamedCounters {
        let mut counters = NamedCounters::default();
        counters.add(table.as_bytes());
        counters.add(list.as_bytes());
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
        assert_eq!((before.len(), before.values["Tcp.OutSegs"]), (4, 7));
        assert!(!before.values.contains_key("Udp6InDatagrams"));
        let moved: Vec<_> = now.moved_since(&before).collect();
        assert_eq!(
            moved,
            [
                ("Ip6InReceives", 10, 15),
                ("Tcp.CurrEstab", 5, 2),
                ("TcpExt.A", 1, 3)
            ]
        );
    }

    #[test]
    fn a_type_of_icmp_that_was_not_there_was_zero() {
        let before = counters("IcmpMsg: InType3\nIcmpMsg: 4\n", "Icmp6InMsgs 1\n");
        let now = counters(
            "IcmpMsg: InType3 InType5\nIcmpMsg: 4 2\n",
            "Icmp6InMsgs 1\nIcmp6InType2 3\nIcmp6New 7\n",
        );
        let moved: Vec<_> = now.moved_since(&before).collect();
        let types = [("Icmp6InType2", 0, 3), ("IcmpMsg.InType5", 0, 2)];
        assert_eq!(moved, types);
        assert_eq!(now.moved_since(&NamedCounters::default()).count(), 0);
    }

    #[test]
    fn this_host_has_hundreds() {
        let files: Result<Vec<_>, _> = open_files("/proc".as_ref()).into_iter().collect();
        let (counters, ..) = NamedCounters::read_files(files.expect("this host's").iter_mut());
        assert!(counters.len() > 100, "{}", counters.len());
        assert!(counters.values.contains_key("TcpExt.ListenDrops"));
        assert!(open_files("/nosuch".as_ref()).iter().all(Result::is_err));
    }
}
