//! IP, ICMP, TCP and UDP counters of the network namespace, from `/proc/net/snmp`, `snmp6` and `netstat`.
//!
//! TCP counts both versions of IP together. The others count each apart, and their samples are the sums.
//!
//! The files are opened through `/proc/thread-self`: `/proc/net` shows the namespace of the
//! process's first thread, which is another one when a thread has moved. Once open, they stay with
//! the namespace they were opened in.

mod moved;
mod named;
mod parse;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

pub(crate) use moved::open as open_all;

use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::file::KernelFile;

/// A counter wanted: the protocol that begins its line, its name there, and what it is to us.
type Counter = (&'static str, &'static str, Metric);

/// The counters taken from `/proc/net/snmp`.
const SNMP: &[Counter] = &[
    ("Tcp", "InSegs", Metric::SnmpTcpInSegs),
    ("Tcp", "OutSegs", Metric::SnmpTcpOutSegs),
    ("Tcp", "RetransSegs", Metric::SnmpTcpRetransSegs),
    ("Tcp", "InErrs", Metric::SnmpTcpInErrs),
    ("Tcp", "OutRsts", Metric::SnmpTcpOutRsts),
    ("Udp", "InDatagrams", Metric::SnmpUdpInDatagrams),
    ("Udp", "NoPorts", Metric::SnmpUdpNoPorts),
    ("Udp", "InErrors", Metric::SnmpUdpInErrors),
    ("Udp", "OutDatagrams", Metric::SnmpUdpOutDatagrams),
    ("Udp", "RcvbufErrors", Metric::SnmpUdpRcvbufErrors),
    ("Udp", "SndbufErrors", Metric::SnmpUdpSndbufErrors),
    ("Udp", "InCsumErrors", Metric::SnmpUdpInCsumErrors),
    ("Ip", "InReceives", Metric::SnmpIpInReceives),
    ("Ip", "InDelivers", Metric::SnmpIpInDelivers),
    ("Ip", "ForwDatagrams", Metric::SnmpIpForwarded),
    ("Ip", "InDiscards", Metric::SnmpIpInDiscards),
    ("Ip", "InHdrErrors", Metric::SnmpIpInHdrErrors),
    ("Ip", "InAddrErrors", Metric::SnmpIpInAddrErrors),
    ("Ip", "OutDiscards", Metric::SnmpIpOutDiscards),
    ("Ip", "OutNoRoutes", Metric::SnmpIpOutNoRoutes),
    ("Ip", "ReasmReqds", Metric::SnmpIpReasmReqds),
    ("Ip", "ReasmOKs", Metric::SnmpIpReasmOks),
    ("Ip", "ReasmFails", Metric::SnmpIpReasmFails),
    ("Ip", "ReasmTimeout", Metric::SnmpIpReasmTimeout),
    ("Ip", "FragOKs", Metric::SnmpIpFragOks),
    ("Ip", "FragFails", Metric::SnmpIpFragFails),
    ("Ip", "FragCreates", Metric::SnmpIpFragCreates),
    ("Icmp", "InDestUnreachs", Metric::SnmpIcmpInDestUnreachs),
    ("Icmp", "OutDestUnreachs", Metric::SnmpIcmpOutDestUnreachs),
];

/// The counters taken from `/proc/net/netstat`.
const NETSTAT: &[Counter] = &[
    ("IpExt", "InNoRoutes", Metric::NetstatIpInNoRoutes),
    ("IpExt", "InTruncatedPkts", Metric::NetstatIpInTruncated),
    ("TcpExt", "SyncookiesSent", Metric::NetstatSyncookiesSent),
    ("TcpExt", "SyncookiesRecv", Metric::NetstatSyncookiesRecv),
    (
        "TcpExt",
        "SyncookiesFailed",
        Metric::NetstatSyncookiesFailed,
    ),
    ("TcpExt", "TCPSACKDiscard", Metric::NetstatSackDiscard),
    ("TcpExt", "PruneCalled", Metric::NetstatPruneCalled),
    ("TcpExt", "DelayedACKs", Metric::NetstatDelayedAcks),
    ("TcpExt", "DelayedACKLost", Metric::NetstatDelayedAckLost),
    ("TcpExt", "ListenDrops", Metric::NetstatListenDrops),
    ("TcpExt", "ListenOverflows", Metric::NetstatListenOverflows),
    ("TcpExt", "TCPReqQFullDrop", Metric::NetstatReqQFullDrop),
    (
        "TcpExt",
        "TCPReqQFullDoCookies",
        Metric::NetstatReqQFullDoCookies,
    ),
    (
        "TcpExt",
        "TCPMemoryPressures",
        Metric::NetstatMemoryPressures,
    ),
    (
        "TcpExt",
        "TCPMemoryPressuresChrono",
        Metric::NetstatMemoryPressureTime,
    ),
    ("TcpExt", "TCPAbortOnMemory", Metric::NetstatAbortOnMemory),
    ("TcpExt", "TCPOFODrop", Metric::NetstatOfoDrop),
    ("TcpExt", "TCPRcvQDrop", Metric::NetstatRcvQDrop),
    ("TcpExt", "TCPFastRetrans", Metric::NetstatTcpFastRetrans),
    ("TcpExt", "TCPTimeouts", Metric::NetstatTcpTimeouts),
    ("TcpExt", "TCPLossProbes", Metric::NetstatTcpLossProbes),
    ("TcpExt", "TCPRcvCollapsed", Metric::NetstatTcpRcvCollapsed),
    ("TcpExt", "TCPSpuriousRTOs", Metric::NetstatTcpSpuriousRtos),
    ("TcpExt", "TCPBacklogDrop", Metric::NetstatTcpBacklogDrop),
    ("TcpExt", "TCPAutoCorking", Metric::NetstatAutoCorking),
    ("TcpExt", "TCPZeroWindowDrop", Metric::NetstatZeroWindowDrop),
];

/// A file with what is wanted of it.
struct Table {
    file: KernelFile,
    wanted: &'static [Counter],
}

/// The counters of the network namespace.
struct Tables {
    tables: Vec<Table>,
    /// Where IPv6 counts what the others count of IPv4 alone; a kernel without it has no `snmp6`, and counted all of it.
    ipv6: Option<KernelFile>,
}

/// Opens the files, and notes which counters this kernel does not have.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let mut tables = Vec::new();
    let mut notes = Vec::new();
    for (file_name, wanted) in [("snmp", SNMP), ("netstat", NETSTAT)] {
        match KernelFile::of_network(&config.proc_root, file_name) {
            Ok(mut file) => {
                notes.extend(note_absent(&mut file, wanted));
                tables.push(Table { file, wanted });
            }
            Err(reason) => notes.push(reason),
        }
    }
    let tables = if tables.is_empty() {
        Err(std::mem::take(&mut notes).join("; "))
    } else {
        Ok(Tables {
            tables,
            ipv6: KernelFile::of_network(&config.proc_root, "snmp6").ok(),
        })
    };
    observer("netstat", tables, notes)
}

/// Says which of the wanted counters the kernel does not keep, if any.
fn note_absent(file: &mut KernelFile, wanted: &[Counter]) -> Option<String> {
    let (text, _) = file.read().ok()?;
    let mut found = Vec::new();
    parse::parse(text, wanted, |metric, _| found.push(metric));
    let absent: Vec<_> = wanted
        .iter()
        .filter(|(_, _, metric)| !found.contains(metric))
        .map(|(_, name, _)| *name)
        .collect();
    (!absent.is_empty()).then(|| file.says(&format!("no {}", absent.join(", "))))
}

impl Interface for Tables {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let before = out.len();
        let read = self.tables.iter_mut().map(|table| push_samples(table, out));
        let read = read.fold(Ok(()), Result::and);
        let ipv6 = self.ipv6.as_mut();
        let added = ipv6.map_or(Ok(()), |file| add_ipv6(file, &mut out[before..]));
        if added.is_err() {
            // A sum without one of its parts would go backwards.
            out.truncate(before);
        }
        read.and(added)
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
    Ok(())
}

/// Adds what is counted of IPv6, by names such as `Udp6InDatagrams`, to the samples of the same metrics.
fn add_ipv6(file: &mut KernelFile, samples: &mut [Sample]) -> Result<(), String> {
    let (text, _) = file.read()?;
    parse::each(text, |_, name, value| {
        let Some((protocols, name)) = as_of_ipv4(name) else {
            return;
        };
        for protocol in protocols {
            for wanted in [SNMP, NETSTAT] {
                let counter = (protocol.as_bytes(), name, value);
                parse::push_wanted(wanted, counter, |metric, value| {
                    for sample in samples.iter_mut().filter(|sample| sample.metric == metric) {
                        sample.value = sample.value.saturating_add(value);
                    }
                });
            }
        }
    });
    Ok(())
}

/// Returns the protocols and the name by which IPv4 counts what IPv6 counts as `name`.
fn as_of_ipv4(name: &[u8]) -> Option<(&'static [&'static str], &[u8])> {
    if let Some(name) = name.strip_prefix(b"Udp6") {
        return Some((&["Udp"], name));
    }
    if let Some(name) = name.strip_prefix(b"Icmp6") {
        return Some((&["Icmp"], name));
    }
    let name = name.strip_prefix(b"Ip6")?;
    let name = match name {
        b"OutForwDatagrams" => b"ForwDatagrams",
        _ => name,
    };
    Some((&["Ip", "IpExt"], name))
}
