//! Every protocol counter of the network namespace by its name, and which of them moved.
//!
//! Samples carry the counters that this program explains something with. The kernel keeps some
//! 400, and the one that explains a strange run may be any of them: these are read twice, and what
//! moved in between is listed.

use std::collections::BTreeMap;
use std::path::Path;

use super::parse::{each, each_of_list};
use crate::sys::file::KernelFile;
use crate::text::number;

/// Most counters kept: a kernel of today has some 400.
const COUNTERS_MAX: usize = 4096;

/// How a file lists its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A line of names above a line of values for each protocol.
    Table,
    /// A line for each counter.
    List,
}

/// One of the files, open.
#[derive(Debug)]
pub(super) struct NamedFile {
    file: KernelFile,
    shape: Shape,
}

/// Opens the files of the calling thread's network namespace.
pub(super) fn open_files(proc_root: &Path) -> Vec<Result<NamedFile, String>> {
    let files = [
        ("snmp", Shape::Table),
        ("netstat", Shape::Table),
        ("snmp6", Shape::List),
    ];
    let open = |(name, shape)| {
        let file = KernelFile::of_network(proc_root, name)?;
        Ok(NamedFile { file, shape })
    };
    files.map(open).into()
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
        files: impl Iterator<Item = &'f mut NamedFile>,
    ) -> (Self, Option<u64>, Option<String>) {
        let (mut counters, mut first_ns, mut failure) = (Self::default(), None, None);
        for file in files {
            match file.file.read() {
                Ok((text, at_ns)) => {
                    first_ns.get_or_insert(at_ns);
                    match file.shape {
                        Shape::Table => counters.add_table(text),
                        Shape::List => counters.add_list(text),
                    }
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
            let then = *before.values.get(name)?;
            (then != *now).then_some((name.as_str(), then, *now))
        })
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
        each_of_list(text, |name, value| {
            if let Some(value) = number(value) {
                self.add(String::from_utf8_lossy(name).into_owned(), value);
            }
        });
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
    fn this_host_has_hundreds() {
        let files: Result<Vec<_>, _> = open_files("/proc".as_ref()).into_iter().collect();
        let (counters, ..) = NamedCounters::read_files(files.expect("this host's").iter_mut());
        assert!(counters.len() > 100, "{}", counters.len());
        assert!(counters.values.contains_key("TcpExt.ListenDrops"));
        assert!(open_files("/nosuch".as_ref()).iter().all(Result::is_err));
    }
}
