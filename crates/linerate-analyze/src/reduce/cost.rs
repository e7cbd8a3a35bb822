//! What the traffic costs: CPU time and cycles, per byte, packet and transaction.
//!
//! 1. The cost of a host is counted once, whatever the number of flows: it is what its CPUs did, the
//!    work of interrupts included, which no thread is charged for rightly.
//! 2. Where other runs use the host at the same time, each gets the part of it that its packets are
//!    of all packets that the host's protocols counted, so that the parts add up to the whole.
//! 3. Where hosts share a machine their cost cannot be told apart: it is then that of both ends.
//! 4. Cycles are those that the CPU counted, where it has counters, and otherwise CPU time × the
//!    frequency of the inventory; the names of the responses say which.
//!
//! "Service demand" is netperf's word for CPU time per KB, with 1 KB = 1024 bytes.

use linerate_model::HostName;
use linerate_model::metric::Metric;
use linerate_model::run::HostRecord;
use linerate_model::sample::Subject;

use super::Responses;
use super::response::name;
use super::window::Readings;

/// Share of a host's packets from which on all of its cost is this run's: the rest are connections
/// of the controller, which cost less than the share is known to.
const SHARE_WHOLE: f64 = 0.97;

const TCP_OF_FLOW: &[Metric] = &[Metric::TcpSegsIn, Metric::TcpSegsOut];
const UDP_OF_FLOW: &[Metric] = &[Metric::AppDatagramsReceived, Metric::AppDatagramsSent];
const OF_HOST: &[Metric] = &[
    Metric::SnmpTcpInSegs,
    Metric::SnmpTcpOutSegs,
    Metric::SnmpUdpInDatagrams,
    Metric::SnmpUdpOutDatagrams,
];

/// Reduces the cost of `host`, whose CPUs `sharing` use as well, itself included.
pub(super) fn reduce(
    host: &HostRecord,
    sharing: &[&HostName],
    readings: &Readings<'_>,
    responses: &mut Responses,
) {
    let packets = packets_of_flows(sharing, readings);
    let of_host = packets_of_host(host, sharing, readings);
    let share = packets
        .zip(of_host.filter(|all| *all > 0.0))
        .map(|(ours, all)| ours / all);
    let share = share.map(|share| if share >= SHARE_WHOLE { 1.0 } else { share });
    responses.put(name::HOST_SHARE, share);
    let share = share.unwrap_or(1.0);

    let bytes = responses.value(name::THROUGHPUT).map(|bps| bps / 8.0);
    let per = |amount: Option<f64>, of: Option<f64>| {
        let of = of.filter(|of| *of > 0.0)?;
        Some(amount? / of)
    };
    let busy = responses.value(name::CPU_BUSY).map(|busy| busy * share);
    let busy_ns = busy.map(|busy| busy * 1e9);
    let transactions = responses.value(name::TRANSACTIONS);
    let kib = bytes.map(|bytes| bytes / 1024.0);
    responses.put(name::CPU_PER_KIB, per(busy_ns, kib));
    responses.put(name::CPU_PER_TRANSACTION, per(busy_ns, transactions));

    let counted = |metric| {
        let of_cpus = sum(host, readings, metric, |subject| {
            matches!(subject, Subject::Cpu(_))
        });
        // Counters of our own threads are all ours.
        let of_threads = || {
            sum(host, readings, metric, |subject| {
                matches!(subject, Subject::Thread(_))
            })
        };
        of_cpus.map(|rate| rate * share).or_else(of_threads)
    };
    let cycles = counted(Metric::PerfCycles);
    let hz = host.snapshot.number("cpu.mhz").map(|mhz| mhz * 1e6);
    let nominal = busy.zip(hz).map(|(busy, hz)| busy * hz);
    let names = [
        (
            cycles,
            [
                name::CYCLES_PER_BYTE,
                name::CYCLES_PER_PACKET,
                name::GBIT_PER_GHZ,
            ],
        ),
        (
            nominal,
            [
                name::CYCLES_PER_BYTE_NOMINAL,
                name::CYCLES_PER_PACKET_NOMINAL,
                name::GBIT_PER_GHZ_NOMINAL,
            ],
        ),
    ];
    for (cycles, [per_byte, per_packet, bits]) in names {
        responses.put(per_byte, per(cycles, bytes));
        responses.put(per_packet, per(cycles, packets));
        responses.put(bits, per(bytes.map(|bytes| 8.0 * bytes), cycles));
    }
    let instructions = counted(Metric::PerfInstructions);
    responses.put(name::INSTRUCTIONS_PER_CYCLE, per(instructions, cycles));
    let misses = counted(Metric::PerfCacheMisses);
    responses.put(name::CACHE_MISSES_PER_KIB, per(misses, kib));
}

/// Packets a second of the flows' ends on `hosts`.
fn packets_of_flows(hosts: &[&HostName], readings: &Readings<'_>) -> Option<f64> {
    let mut rates = Vec::new();
    for (subject, on) in readings.subjects() {
        if !matches!(subject, Subject::Flow(..)) || !hosts.contains(&on) {
            continue;
        }
        let rate = |metrics: &[Metric]| -> Option<f64> {
            let rates = metrics.iter().map(|metric| {
                let series = readings.on(on, subject, *metric)?;
                Some(readings.change(&series)?.rate())
            });
            let known: Vec<f64> = rates.flatten().collect();
            (!known.is_empty()).then(|| known.iter().sum())
        };
        rates.push(rate(TCP_OF_FLOW).or_else(|| rate(UDP_OF_FLOW))?);
    }
    (!rates.is_empty()).then(|| rates.iter().sum())
}

/// Packets a second of all protocols of the host: of every namespace of a lab, once of a machine.
fn packets_of_host(
    host: &HostRecord,
    sharing: &[&HostName],
    readings: &Readings<'_>,
) -> Option<f64> {
    let own = [&host.name];
    let hosts = if host.lab { sharing } else { &own };
    let mut all = 0.0;
    for host in hosts {
        for metric in OF_HOST {
            let Some(series) = readings.on(host, &Subject::Host, *metric) else {
                // A host without flows is not part of the trial; one that hides its counters is.
                continue;
            };
            all += readings.change(&series)?.rate();
        }
    }
    Some(all)
}

fn sum(
    host: &HostRecord,
    readings: &Readings<'_>,
    metric: Metric,
    is_wanted: impl Fn(&Subject) -> bool,
) -> Option<f64> {
    let subjects = readings
        .subjects()
        .filter(|(subject, on)| **on == host.name && is_wanted(subject));
    let rates: Vec<f64> = subjects
        .filter_map(|(subject, on)| {
            let series = readings.on(on, subject, metric)?;
            Some(readings.change(&series)?.rate())
        })
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}
