//! What the traffic costs: CPU time and cycles, per byte, packet and transaction.
//!
//! 1. The cost of a host is counted once, whatever the number of flows: it is what our own threads
//!    did, and the work of interrupts, which no thread is charged for rightly. Other programs'
//!    time is not in it. (What interrupts take without traffic is: nobody reads the CPUs of a host
//!    before its flows begin, so that no baseline is known.) Where no thread was read it is all
//!    that the CPUs did.
//! 2. Where other runs use the host at the same time, each gets the part of the interrupts that its
//!    packets are of all packets that the host's protocols counted.
//! 3. Where hosts share a machine their cost cannot be told apart: it is then that of both ends.
//! 4. Cycles are those that the CPU counted, where it has counters, and otherwise CPU time × the
//!    frequency of the inventory; the names of the responses say which.
//!
//! "Service demand" is netperf's word for CPU time per KB, with 1 KB = 1024 bytes.

use std::ops::Add as _;

use linerate_model::HostName;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::run::HostRecord;
use linerate_model::sample::Subject;

use super::machine::Spent;
use super::window::{Change, Readings};
use super::{Responses, Values};

/// Share of a host's packets from which on all of its cost is this run's: the rest are connections
/// of the controller, which cost less than the share is known to.
const SHARE_WHOLE: f64 = 0.97;

const TCP_OF_FLOW: &[Metric] = &[Metric::TcpSegsIn, Metric::TcpSegsOut];
const UDP_OF_FLOW: &[Metric] = &[Metric::AppDatagramsReceived, Metric::AppDatagramsSent];
/// All TCP sockets of a host, counted as those of flows are.
const TCP_OF_HOST: &[Metric] = &[
    Metric::TcpHostDataSegsIn,
    Metric::TcpHostDataSegsOut,
    Metric::TcpHostAcksIn,
    Metric::TcpHostAcksOut,
];
/// The same where sockets were not read. What GRO joined counts once here, and as often as it came there.
const TCP_OF_PROTOCOL: &[Metric] = &[Metric::SnmpTcpInSegs, Metric::SnmpTcpOutSegs];
const UDP_OF_PROTOCOL: &[Metric] = &[Metric::SnmpUdpInDatagrams, Metric::SnmpUdpOutDatagrams];
/// Share of a host's packets beyond which they are not counted alike, and nothing is known.
const COUNTED_SHARE_MAX: f64 = 1.05;

/// Reduces the cost of `host`, whose CPUs `sharing` use as well, itself included.
pub(super) fn reduce(
    host: &HostRecord,
    sharing: &[&HostName],
    spent: Spent,
    readings: &Readings<'_>,
    responses: &mut Responses,
) {
    let packets = packets_of_flows(sharing, readings);
    // Aggregates are as many of the flows' as of the host's, and no packets.
    let segments = packets.filter(|_| !spent.on_aggregates);
    let of_host = packets_of_host(host, sharing, readings);
    let share = packets
        .zip(of_host.filter(|all| *all > 0.0))
        .map(|(ours, all)| ours / all);
    let share = share.filter(|share| *share <= COUNTED_SHARE_MAX);
    let share = share.map(|share| if share >= SHARE_WHOLE { 1.0 } else { share });
    responses.put(name::HOST_SHARE, share);
    let share = share.unwrap_or(1.0);

    let bytes = responses.value(name::THROUGHPUT).map(|bps| bps / 8.0);
    let per = |amount: Option<f64>, of: Option<f64>| {
        let of = of.filter(|of| *of > 0.0)?;
        Some(amount? / of)
    };
    let all = responses.value(name::CPU_BUSY);
    let own = spent.threads.map(|own| own + share * spent.interrupts);
    let busy = own.or_else(|| all.map(|all| all * share));
    responses.put(name::CPU_COST, busy);
    let busy_ns = busy.map(|busy| busy * 1e9);
    let transactions = responses.value(name::TRANSACTIONS);
    let kib = bytes.map(|bytes| bytes / 1024.0);
    responses.put(name::CPU_PER_KIB, per(busy_ns, kib));
    responses.put(name::CPU_PER_TRANSACTION, per(busy_ns, transactions));

    let counted = |metric| {
        let sum = |is_wanted: fn(&Subject) -> bool| {
            let of_host = |subject: &Subject, on: &HostName| *on == host.name && is_wanted(subject);
            readings.sum(metric, of_host, Change::rate)
        };
        let of_cpus = sum(|subject| matches!(subject, Subject::Cpu(_)));
        // Counters of our own threads are all ours.
        let of_threads = || sum(|subject| matches!(subject, Subject::Thread(_)));
        // As the CPUs' time is divided, so are the cycles that they counted.
        let ours = busy.zip(all.filter(|all| *all > 0.0));
        let ours = ours.map_or(share, |(busy, all)| (busy / all).min(1.0));
        of_cpus.map(|rate| rate * ours).or_else(of_threads)
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
        responses.put(per_packet, per(cycles, segments));
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
            let changes = metrics
                .iter()
                .filter_map(|metric| readings.change_on(on, subject, *metric));
            changes.map(Change::rate).reduce(f64::add)
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
        let is_read = |metric: &Metric| readings.on(host, &Subject::Host, *metric).is_some();
        let of_tcp = if TCP_OF_HOST.iter().all(is_read) {
            TCP_OF_HOST
        } else {
            TCP_OF_PROTOCOL
        };
        for metric in of_tcp.iter().chain(UDP_OF_PROTOCOL) {
            let Some(series) = readings.on(host, &Subject::Host, *metric) else {
                // A host without flows is not part of the trial; one that hides its counters is.
                continue;
            };
            all += readings.change(&series)?.rate();
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use linerate_model::host::{Fact, FactValue, Snapshot};
    use linerate_model::run::{Admission, ClockFit, HostPart, HostProgram};
    use linerate_model::sample::{End, TrialSample};
    use linerate_model::samples::Samples;
    use linerate_model::unit::Unit;
    use linerate_model::{FlowId, TrialId};

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn host() -> HostRecord {
        let mhz = Fact {
            name: "cpu.mhz".to_owned(),
            value: FactValue::Number(2000.0, Unit::Count),
        };
        HostRecord {
            name: "server".into(),
            part: HostPart::Server,
            agent: "in-process".to_owned(),
            version: "0".to_owned(),
            control: None,
            data_address: "10.0.0.1".to_owned(),
            lab: false,
            boot: None,
            program: HostProgram::Agent,
            link_rate: None,
            link_up_rate: None,
            lab_link: None,
            link_loss_ppm: None,
            groups: Vec::new(),
            link: None,
            snapshot: Snapshot { facts: vec![mhz] },
            observers: Vec::new(),
            clock: ClockFit {
                offset_ns: 0,
                uncertainty_ns: 0,
                drift_ppb: None,
            },
            admission: Admission::Shared,
        }
    }

    /// Reduces a second in which the host's two CPUs were busy and counters grew as told; the
    /// throughput is a megabyte a second.
    fn reduced(counters: &[(Subject, Metric, i64)]) -> Responses {
        reduced_of(Spent::default(), counters)
    }

    fn reduced_of(spent: Spent, counters: &[(Subject, Metric, i64)]) -> Responses {
        let mut samples = Samples::default();
        for (subject, metric, growth) in counters {
            for (at_ns, value) in [(0, 7), (SECOND_NS, 7 + growth)] {
                samples.push(TrialSample {
                    trial: TrialId(1),
                    host: "server".into(),
                    subject: subject.clone(),
                    metric: *metric,
                    at_ns,
                    value,
                });
            }
        }
        let readings = Readings::new(&samples, TrialId(1), SECOND_NS as u64);
        let mut responses = Responses::default();
        responses.put(name::THROUGHPUT, Some(8.0 * 1_024_000.0));
        responses.put(name::CPU_BUSY, Some(2.0));
        let host = host();
        reduce(&host, &[&host.name], spent, &readings, &mut responses);
        responses
    }

    fn flow(number: u32) -> Subject {
        Subject::Flow(FlowId(number), End::Server)
    }

    fn check(responses: &Responses, name: &str, expected: Option<f64>) {
        let found = responses.value(name);
        let agrees = match (found, expected) {
            (Some(found), Some(expected)) => (found / expected - 1.0).abs() < 1e-9,
            (found, expected) => found == expected,
        };
        assert!(agrees, "{name}: {found:?}, not {expected:?}");
    }

    #[test]
    fn the_cost_of_a_host_is_counted_once_for_all_its_flows() {
        let responses = reduced(&[
            (flow(0), Metric::TcpSegsIn, 300),
            (flow(0), Metric::TcpSegsOut, 200),
            (flow(1), Metric::TcpSegsIn, 500),
            (Subject::Host, Metric::SnmpTcpInSegs, 805),
            (Subject::Host, Metric::SnmpTcpOutSegs, 200),
        ]);
        // A few packets of the controller's own are no share.
        check(&responses, name::HOST_SHARE, Some(1.0));
        check(&responses, name::CPU_PER_KIB, Some(2e9 / 1000.0));
        check(
            &responses,
            name::CYCLES_PER_BYTE_NOMINAL,
            Some(4e9 / 1_024_000.0),
        );
        check(
            &responses,
            name::CYCLES_PER_PACKET_NOMINAL,
            Some(4e9 / 1000.0),
        );
        check(
            &responses,
            name::GBIT_PER_GHZ_NOMINAL,
            Some(8.0 * 1_024_000.0 / 4e9),
        );
        check(&responses, name::CYCLES_PER_BYTE, None);
    }

    #[test]
    fn other_programs_are_not_in_the_cost() {
        let spent = Spent {
            on_aggregates: false,
            threads: Some(0.25),
            interrupts: 0.5,
        };
        let counters = [
            (flow(0), Metric::TcpSegsIn, 500),
            (Subject::Host, Metric::SnmpTcpInSegs, 1000),
            (Subject::Cpu(1), Metric::PerfCycles, 3_000_000_000),
        ];
        // Two CPUs were busy: a quarter with our threads, half with interrupts, and half of the
        // packets were ours.
        let responses = reduced_of(spent, &counters);
        check(&responses, name::CPU_COST, Some(0.5));
        check(&responses, name::CPU_PER_KIB, Some(0.5e9 / 1000.0));
        check(
            &responses,
            name::CYCLES_PER_PACKET,
            Some(3e9 * 0.25 / 500.0),
        );
    }

    #[test]
    fn runs_that_share_a_host_share_its_cost_by_packets() {
        let all = [
            (Subject::Host, Metric::SnmpTcpInSegs, 1000),
            (Subject::Host, Metric::SnmpUdpInDatagrams, 1000),
        ];
        let tcp = [&all[..], &[(flow(0), Metric::TcpSegsIn, 1000)]].concat();
        let udp = [&all[..], &[(flow(0), Metric::AppDatagramsReceived, 500)]].concat();
        check(&reduced(&tcp), name::HOST_SHARE, Some(0.5));
        check(&reduced(&tcp), name::CPU_PER_KIB, Some(1e9 / 1000.0));
        check(&reduced(&udp), name::HOST_SHARE, Some(0.25));
        // GRO: ten segments came as one packet, and half of them to another run.
        let joined = [
            (Subject::Host, Metric::SnmpTcpInSegs, 200),
            (flow(0), Metric::TcpSegsIn, 1000),
        ];
        check(&reduced(&joined), name::HOST_SHARE, None);
        let of_sockets = [
            (Subject::Host, Metric::TcpHostDataSegsIn, 2000),
            (Subject::Host, Metric::TcpHostDataSegsOut, 0),
            (Subject::Host, Metric::TcpHostAcksIn, 0),
            (Subject::Host, Metric::TcpHostAcksOut, 0),
        ];
        let joined = [&joined[..], &of_sockets[..]].concat();
        check(&reduced(&joined), name::HOST_SHARE, Some(0.5));
        check(&reduced(&udp), name::CPU_PER_KIB, Some(0.5e9 / 1000.0));
    }

    #[test]
    fn cycles_that_the_cpu_counted_come_beside_nominal_ones() {
        let counted = |subject: Subject| {
            reduced(&[
                (flow(0), Metric::TcpSegsIn, 500),
                (Subject::Host, Metric::SnmpTcpInSegs, 1000),
                (subject.clone(), Metric::PerfCycles, 3_000_000_000),
                (subject, Metric::PerfInstructions, 6_000_000_000),
            ])
        };
        let of_cpu = counted(Subject::Cpu(1));
        check(&of_cpu, name::CYCLES_PER_PACKET, Some(1.5e9 / 500.0));
        check(&of_cpu, name::INSTRUCTIONS_PER_CYCLE, Some(2.0));
        check(&of_cpu, name::CYCLES_PER_PACKET_NOMINAL, Some(2e9 / 500.0));
        // Counters of our own threads are not shared with anybody.
        let of_thread = counted(Subject::Thread("worker-0".to_owned()));
        check(&of_thread, name::CYCLES_PER_PACKET, Some(3e9 / 500.0));
    }
}
