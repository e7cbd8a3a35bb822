//! TCP and UDP counters of the network namespace, from `/proc/net/snmp`, `snmp6` and `netstat`.
//!
//! TCP counts both versions of IP together. UDP counts each apart, and its samples are the sums.
//!
//! The files are opened through `/proc/thread-self`: `/proc/net` shows the namespace of the
//! process's first thread, which is another one when a thread has moved. Once open, they stay with
//! the namespace they were opened in.

mod moved;
mod named;
mod parse;

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

pub(crate) use moved::CountersObserver;

use crate::observer::{Health, ObserveConfig, Observer};
use crate::readout::Readout;
use crate::sys::file::KernelFile;

/// A counter wanted: the protocol that begins its line, its name there, and what it is to us.
pub(crate) struct Counter {
    protocol: &'static [u8],
    name: &'static [u8],
    metric: Metric,
}

const fn counter(protocol: &'static str, name: &'static str, metric: Metric) -> Counter {
    Counter {
        protocol: protocol.as_bytes(),
        name: name.as_bytes(),
        metric,
    }
}

/// The counters taken from `/proc/net/snmp`.
const SNMP: &[Counter] = &[
    counter("Tcp", "InSegs", Metric::SnmpTcpInSegs),
    counter("Tcp", "OutSegs", Metric::SnmpTcpOutSegs),
    counter("Tcp", "RetransSegs", Metric::SnmpTcpRetransSegs),
    counter("Tcp", "InErrs", Metric::SnmpTcpInErrs),
    counter("Tcp", "OutRsts", Metric::SnmpTcpOutRsts),
    counter("Udp", "InDatagrams", Metric::SnmpUdpInDatagrams),
    counter("Udp", "NoPorts", Metric::SnmpUdpNoPorts),
    counter("Udp", "InErrors", Metric::SnmpUdpInErrors),
    counter("Udp", "OutDatagrams", Metric::SnmpUdpOutDatagrams),
    counter("Udp", "RcvbufErrors", Metric::SnmpUdpRcvbufErrors),
    counter("Udp", "SndbufErrors", Metric::SnmpUdpSndbufErrors),
    counter("Udp", "InCsumErrors", Metric::SnmpUdpInCsumErrors),
];

/// The counters of UDP over IPv6, from the lines of `/proc/net/snmp6`, which have no protocol before them.
const SNMP6: &[Counter] = &[
    counter("", "Udp6InDatagrams", Metric::SnmpUdpInDatagrams),
    counter("", "Udp6NoPorts", Metric::SnmpUdpNoPorts),
    counter("", "Udp6InErrors", Metric::SnmpUdpInErrors),
    counter("", "Udp6OutDatagrams", Metric::SnmpUdpOutDatagrams),
    counter("", "Udp6RcvbufErrors", Metric::SnmpUdpRcvbufErrors),
    counter("", "Udp6SndbufErrors", Metric::SnmpUdpSndbufErrors),
    counter("", "Udp6InCsumErrors", Metric::SnmpUdpInCsumErrors),
];

/// The counters taken from `/proc/net/netstat`.
const NETSTAT: &[Counter] = &[
    counter("TcpExt", "PruneCalled", Metric::NetstatPruneCalled),
    counter("TcpExt", "DelayedACKs", Metric::NetstatDelayedAcks),
    counter("TcpExt", "DelayedACKLost", Metric::NetstatDelayedAckLost),
    counter("TcpExt", "ListenDrops", Metric::NetstatListenDrops),
    counter("TcpExt", "ListenOverflows", Metric::NetstatListenOverflows),
    counter("TcpExt", "TCPReqQFullDrop", Metric::NetstatReqQFullDrop),
    counter(
        "TcpExt",
        "TCPReqQFullDoCookies",
        Metric::NetstatReqQFullDoCookies,
    ),
    counter(
        "TcpExt",
        "TCPMemoryPressures",
        Metric::NetstatMemoryPressures,
    ),
    counter(
        "TcpExt",
        "TCPMemoryPressuresChrono",
        Metric::NetstatMemoryPressureTime,
    ),
    counter("TcpExt", "TCPAbortOnMemory", Metric::NetstatAbortOnMemory),
    counter("TcpExt", "TCPOFODrop", Metric::NetstatOfoDrop),
    counter("TcpExt", "TCPRcvQDrop", Metric::NetstatRcvQDrop),
    counter("TcpExt", "TCPFastRetrans", Metric::NetstatTcpFastRetrans),
    counter("TcpExt", "TCPTimeouts", Metric::NetstatTcpTimeouts),
    counter("TcpExt", "TCPLossProbes", Metric::NetstatTcpLossProbes),
    counter("TcpExt", "TCPRcvCollapsed", Metric::NetstatTcpRcvCollapsed),
    counter("TcpExt", "TCPSpuriousRTOs", Metric::NetstatTcpSpuriousRtos),
    counter("TcpExt", "TCPBacklogDrop", Metric::NetstatTcpBacklogDrop),
    counter("TcpExt", "TCPAutoCorking", Metric::NetstatAutoCorking),
    counter("TcpExt", "TCPZeroWindowDrop", Metric::NetstatZeroWindowDrop),
];

/// A file with what is wanted of it.
struct Table {
    file: KernelFile,
    wanted: &'static [Counter],
    /// Where the rest is counted of what this file counts a part of.
    other: Option<KernelFile>,
}

/// Reads the TCP and UDP counters of the network namespace.
pub(crate) struct NetstatObserver {
    tables: Vec<Table>,
    health: Health,
}

impl NetstatObserver {
    /// Opens the files, and notes which counters this kernel does not have.
    pub(crate) fn open(config: &ObserveConfig) -> Self {
        let mut tables = Vec::new();
        let mut notes = Vec::new();
        for (file_name, wanted) in [("snmp", SNMP), ("netstat", NETSTAT)] {
            match KernelFile::of_network(&config.proc_root, file_name) {
                Ok(mut file) => {
                    notes.extend(note_absent(&mut file, wanted));
                    // A kernel without IPv6 has no `snmp6`, and counted all of it.
                    let other = || KernelFile::of_network(&config.proc_root, "snmp6").ok();
                    tables.push(Table {
                        file,
                        wanted,
                        other: (file_name == "snmp").then(other).flatten(),
                    });
                }
                Err(reason) => notes.push(reason),
            }
        }
        let missing = tables
            .is_empty()
            .then(|| std::mem::take(&mut notes).join("; "));
        Self {
            tables,
            health: Health::new("netstat", missing, notes),
        }
    }
}

/// Says which of the wanted counters the kernel does not keep, if any.
fn note_absent(file: &mut KernelFile, wanted: &[Counter]) -> Option<String> {
    let (text, _) = file.read().ok()?;
    let mut found = Vec::new();
    parse::parse(text, wanted, |metric, _| found.push(metric));
    let absent: Vec<_> = wanted
        .iter()
        .filter(|counter| !found.contains(&counter.metric))
        .map(|counter| String::from_utf8_lossy(counter.name))
        .collect();
    (!absent.is_empty()).then(|| file.says(&format!("no {}", absent.join(", "))))
}

impl Observer for NetstatObserver {
    fn availability(&self) -> Availability {
        self.health.availability()
    }

    fn sample(&mut self, out: &mut Vec<Sample>) {
        if self.tables.is_empty() {
            return;
        }
        self.health.reading(out, |out| {
            let tables = self.tables.iter_mut();
            let read = tables.map(|table| push_samples(table, out));
            read.fold(Ok(()), Result::and)
        });
    }
}

fn push_samples(table: &mut Table, out: &mut Vec<Sample>) -> Result<(), String> {
    let (text, at_ns) = table.file.read()?;
    let before = out.len();
    let mut readout = Readout::at(at_ns, out);
    parse::parse(text, table.wanted, |metric, value| {
        readout.push(metric, Subject::Host, value);
    });
    if out.len() == before {
        return Err(table.file.says("not understood"));
    }
    let added = table
        .other
        .as_mut()
        .map_or(Ok(()), |other| add_ipv6(other, &mut out[before..]));
    if added.is_err() {
        // A sum without one of its parts would go backwards.
        out.truncate(before);
    }
    added
}

/// Adds what is counted of IPv6 to the samples of the same metrics.
fn add_ipv6(file: &mut KernelFile, samples: &mut [Sample]) -> Result<(), String> {
    let (text, _) = file.read()?;
    parse::parse_list(text, SNMP6, |metric, value| {
        for sample in samples.iter_mut().filter(|sample| sample.metric == metric) {
            sample.value = sample.value.saturating_add(value);
        }
    });
    Ok(())
}
