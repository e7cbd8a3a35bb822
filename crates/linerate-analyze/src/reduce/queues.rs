//! How packets and flows lie on the receive queues and the CPUs of the host that receives.
//!
//! Measured is the device that the data flows use, on the one host at which all flows deliver their
//! payload; of requests and responses, the server. Beside each imbalance stands what chance alone
//! gives for so many flows: a device deals flows to queues by a hash. Connections are counted, and chance
//! has steps then; packets are not, so that chance deals the flows with their own rates.

use std::collections::BTreeMap;

use linerate_model::HostName;
use linerate_model::host::Snapshot;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::run::{FlowRecord, HostPart, HostRecord};
use linerate_model::sample::{End, QueueKind, Subject};
use linerate_model::workload::receiving_end;

use super::Responses;
use super::raw::Raw;
use super::window::Readings;
use crate::compare::balance::{SEED, chance, imbalance};
use crate::compare::draw::Draw;
use crate::queue_map::queue_of;

/// Deals of flows with their rates: the 95th percentile rests on fifty of them.
const RATED_DEALS: u32 = 1000;
/// Flows up to which they are dealt with their rates; of more, nothing is said of packets.
const RATED_FLOWS_MAX: usize = 1024;

/// What the receiving host took in during one trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Intake {
    /// The receiving host.
    pub(crate) host: HostName,
    /// Its receive queues by number.
    pub(crate) queues: BTreeMap<u32, QueueIntake>,
    /// Its CPUs by number.
    pub(crate) cpus: BTreeMap<u32, CpuIntake>,
    /// Flows that end there; of those of short connections, none.
    pub(crate) flows: u32,
    /// Of them, those whose queue is known.
    pub(crate) flows_mapped: u32,
}

/// What one receive queue took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct QueueIntake {
    /// Packets a second.
    pub(crate) packets_per_s: f64,
    /// Flows that came by it.
    pub(crate) flows: u32,
}

/// What one CPU did for packets; a host of a lab shows what all hosts of the machine did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CpuIntake {
    /// Packets a second that it took off its queues.
    pub(crate) packets_per_s: Option<f64>,
    /// Interrupts of network devices a second.
    pub(crate) interrupts_per_s: Option<f64>,
    /// Share of the window in hard and softirqs.
    pub(crate) interrupt_share: Option<f64>,
    /// Flows whose last packet it brought up to the socket.
    pub(crate) flows: u32,
}

/// Returns what the receiving host took in; absent where flows end at several hosts.
pub(crate) fn intake(raw: &Raw<'_>) -> Option<Intake> {
    let readings = raw.readings;
    let ends = receiving(raw);
    let host = one_host(raw, &ends)?;
    let mut intake = Intake {
        host: host.name.clone(),
        queues: BTreeMap::new(),
        cpus: BTreeMap::new(),
        flows: 0,
        flows_mapped: 0,
    };
    let change =
        |subject: &Subject, metric| Some(readings.change_on(&host.name, subject, metric)?.rate());
    let link = host.link.as_deref().unwrap_or_default();
    let in_use = queues_in_use(&host.snapshot, link, QueueKind::Rx);
    for (subject, _) in readings.subjects().filter(|(_, on)| **on == host.name) {
        match subject {
            Subject::Queue(device, QueueKind::Rx, number) if device == link && *number < in_use => {
                if let Some(packets_per_s) = change(subject, Metric::QueueRxPackets) {
                    let queue = QueueIntake {
                        packets_per_s,
                        flows: 0,
                    };
                    intake.queues.insert(*number, queue);
                }
            }
            Subject::Cpu(number) => {
                let cpu = CpuIntake {
                    packets_per_s: change(subject, Metric::SoftnetProcessed),
                    interrupts_per_s: change(subject, Metric::IrqNetworkCount),
                    interrupt_share: interrupt_share(readings, &host.name, subject)
                        .map(|share| share.min(1.0)),
                    flows: 0,
                };
                intake.cpus.insert(*number, cpu);
            }
            _ => {}
        }
    }
    map_flows(&ends, host, &mut intake);
    Some(intake)
}

/// Returns how many queues of `side` the device `link` uses: drivers name those that it could use, too, and those of
/// before, which take nothing (ixgbe, i40e).
pub(crate) fn queues_in_use(facts: &Snapshot, link: &str, side: QueueKind) -> u32 {
    let known = facts.number(&format!("link.{link}.{side}_queues"));
    known.map_or(u32::MAX, |count| count as u32)
}

/// Returns the share of the window that a CPU of `host` spent in hard and softirqs. Ticks are counted where they fall, and a
/// little more of them than the window is long.
pub(crate) fn interrupt_share(
    readings: &Readings<'_>,
    host: &HostName,
    cpu: &Subject,
) -> Option<f64> {
    let change = |metric| Some(readings.change_on(host, cpu, metric)?.rate());
    let hard = change(Metric::CpuIrq).unwrap_or(0.0);
    Some((change(Metric::CpuSoftIrq)? + hard) / 1e9)
}

/// Returns the ends that take in the payload; of requests those of the server.
fn receiving<'a>(raw: &Raw<'a>) -> Vec<&'a FlowRecord> {
    let lanes = raw.lanes.iter();
    let ends: BTreeMap<_, _> = lanes.map(|lane| (lane.flow, lane.receiver)).collect();
    let is_it = |record: &&&FlowRecord| ends.get(&record.flow) == Some(&record.end);
    raw.records.iter().filter(is_it).copied().collect()
}

fn one_host<'a>(raw: &Raw<'a>, ends: &[&FlowRecord]) -> Option<&'a HostRecord> {
    let first = match ends.first() {
        Some(first) => &first.host,
        // Without a record of its flows a stream to the server still ends there.
        None => {
            let mut lanes = raw.lanes.iter();
            let to_server = lanes.all(|lane| receiving_end(lane.client_part) == End::Server);
            let server = raw.hosts.iter().find(|host| host.part == HostPart::Server);
            return server.filter(|_| to_server);
        }
    };
    let same = ends.iter().all(|end| end.host == *first);
    raw.host(first).filter(|_| same)
}

/// Counts the flows of each queue and CPU, as far as their sockets say.
fn map_flows(ends: &[&FlowRecord], host: &HostRecord, intake: &mut Intake) {
    intake.flows = u32::try_from(ends.len()).unwrap_or(u32::MAX);
    for end in ends {
        let cpu = end.incoming.cpu.and_then(|cpu| intake.cpus.get_mut(&cpu));
        if let Some(cpu) = cpu {
            cpu.flows += 1;
        }
        let queue = queue_of(&host.snapshot, end.incoming);
        let queue = queue.filter(|queue| Some(queue.device) == host.link.as_deref());
        let queue = queue.and_then(|queue| intake.queues.get_mut(&queue.number));
        if let Some(queue) = queue {
            queue.flows += 1;
            intake.flows_mapped += 1;
        }
    }
}

pub(super) fn reduce(raw: &Raw<'_>, responses: &mut Responses) {
    let readings = raw.readings;
    // A connection of each transaction falls into a queue of its own.
    if !raw.trial.workload.traffic.is_lasting() {
        return;
    }
    let Some(intake) = intake(raw) else {
        // Of several hosts, which CPU has no time but for packets can be told all the same.
        let ends = receiving(raw);
        let cpus = readings.subjects().filter(|(subject, host)| {
            let is_end = || ends.iter().any(|end| end.host == **host);
            matches!(subject, Subject::Cpu(_)) && is_end()
        });
        let shares = cpus.filter_map(|(cpu, host)| interrupt_share(readings, host, cpu));
        let most = shares.max_by(f64::total_cmp);
        responses.put(
            name::CPU_INTERRUPT_SHARE_MOST,
            most.map(|share| share.min(1.0)),
        );
        return;
    };
    of_queues(&intake, responses);
    of_cpus(&intake, responses);
    // Where the queue of each flow is known, flows are judged.
    let queues = intake.queues.len() as u32;
    if queues > 1 && intake.flows_mapped < intake.flows {
        let rates = rates(&receiving(raw), readings);
        let most = rates.and_then(|rates| most_by_chance(&rates, queues, SEED));
        responses.put(name::RX_QUEUE_CHANCE_PACKETS, most);
    }
}

/// Packets a second that each flow brought to its end; absent where one was not read.
fn rates(ends: &[&FlowRecord], readings: &Readings<'_>) -> Option<Vec<f64>> {
    let rate = |end: &&FlowRecord| {
        let of = |metric| {
            let series = readings.flow(end.flow, end.end, metric)?;
            Some(readings.change(&series)?.rate())
        };
        // Where aggregates come they are what a queue has, too.
        of(Metric::TcpDataSegsIn).or_else(|| of(Metric::AppDatagramsReceived))
    };
    ends.iter().map(rate).collect()
}

/// Returns what the fullest of `queues` queues over the mean does not exceed in 95 of 100 cases, if each of
/// the flows with these `rates` falls into one at random.
fn most_by_chance(rates: &[f64], queues: u32, seed: u64) -> Option<f64> {
    if rates.len() > RATED_FLOWS_MAX {
        return None;
    }
    let mut draw = Draw::new(seed);
    let mut loads = vec![0.0; queues as usize];
    let fullest = (0..RATED_DEALS).map(|_| {
        loads.fill(0.0);
        for rate in rates {
            loads[draw.below(queues) as usize] += rate;
        }
        imbalance(&loads)
    });
    let mut fullest = fullest.collect::<Option<Vec<f64>>>()?;
    fullest.sort_by(f64::total_cmp);
    fullest
        .get((0.95 * f64::from(RATED_DEALS)) as usize)
        .copied()
}

fn of_queues(intake: &Intake, responses: &mut Responses) {
    let packets: Vec<f64> = intake
        .queues
        .values()
        .map(|queue| queue.packets_per_s)
        .collect();
    if packets.is_empty() {
        return;
    }
    let most = packets.iter().copied().max_by(f64::total_cmp);
    responses.put(name::RX_QUEUES, Some(packets.len() as f64));
    responses.put(name::RX_PACKETS, Some(packets.iter().sum()));
    responses.put(name::RX_QUEUE_MOST, most);
    // One queue has nothing to share.
    if packets.len() < 2 {
        return;
    }
    responses.put(name::RX_QUEUE_IMBALANCE, imbalance(&packets));
    if intake.flows_mapped == intake.flows {
        let flows: Vec<f64> = intake
            .queues
            .values()
            .map(|queue| f64::from(queue.flows))
            .collect();
        responses.put(name::RX_QUEUE_FLOWS_IMBALANCE, imbalance(&flows));
    }
    let by_chance = chance(intake.flows, packets.len() as u32, SEED);
    responses.put(
        name::RX_QUEUE_CHANCE,
        by_chance.map(|by_chance| by_chance.median),
    );
    responses.put(
        name::RX_QUEUE_CHANCE_MOST,
        by_chance.map(|by_chance| by_chance.most),
    );
}

/// Chance deals flows to CPUs as it deals them to queues, and no more CPUs than queues can have any.
fn of_cpus(intake: &Intake, responses: &mut Responses) {
    let cpus = intake.cpus.len();
    let loads = |of: fn(&CpuIntake) -> Option<f64>| -> Option<Vec<f64>> {
        let loads: Option<Vec<f64>> = intake.cpus.values().map(of).collect();
        loads.filter(|loads| !loads.is_empty())
    };
    let most = |loads: &Option<Vec<f64>>| loads.as_ref()?.iter().copied().max_by(f64::total_cmp);
    let uneven = |loads: &Option<Vec<f64>>| {
        let loads = loads.as_ref().filter(|loads| loads.len() > 1)?;
        imbalance(loads)
    };
    let packets = loads(|cpu| cpu.packets_per_s);
    let interrupts = loads(|cpu| cpu.interrupts_per_s);
    let shares = loads(|cpu| cpu.interrupt_share);
    responses.put(name::CPU_PACKETS_MOST, most(&packets));
    responses.put(name::CPU_PACKETS_IMBALANCE, uneven(&packets));
    responses.put(name::CPU_INTERRUPTS_MOST, most(&interrupts));
    responses.put(name::CPU_INTERRUPTS_IMBALANCE, uneven(&interrupts));
    responses.put(name::CPU_INTERRUPT_SHARE_MOST, most(&shares));
    let queues = intake.queues.len();
    if cpus > 1 && queues > 1 {
        let serving = cpus.min(queues);
        let by_chance = chance(intake.flows, serving as u32, SEED);
        let over_all = cpus as f64 / serving as f64;
        responses.put(
            name::CPU_CHANCE_MOST,
            by_chance.map(|by_chance| by_chance.most * over_all),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of flows that differ by 3 %, and the fullest of 16 queues that they are dealt to.
    fn dealt(draw: &mut Draw, flows: usize) -> (Vec<f64>, f64) {
        let rates: Vec<f64> = (0..flows).map(|_| 1.0 + 0.03 * draw.normal()).collect();
        let mut loads = [0.0; 16];
        for rate in &rates {
            loads[draw.below(16) as usize] += rate;
        }
        let found = imbalance(&loads).expect("loads");
        (rates, found)
    }

    #[test]
    fn packets_of_unequal_flows_exceed_their_bound_as_often_as_it_says() {
        let mut draw = Draw::new(5);
        for flows in [16, 64] {
            let (mut above, mut above_equal) = (0, 0);
            for at in 0..300 {
                let (rates, found) = dealt(&mut draw, flows);
                let bound = most_by_chance(&rates, 16, at).expect("a bound");
                let equal = chance(flows as u32, 16, at).expect("flows");
                above += u32::from(found > bound);
                above_equal += u32::from(found > equal.most * (1.0 + 1e-9));
            }
            // 15 of 300, with three standard deviations of 3.8.
            assert!((4..=26).contains(&above), "{above} of 300, {flows} flows");
            // The bound of equal flows has steps, and unequal ones lie to both sides of them.
            assert!(
                above_equal > above,
                "{above_equal} and {above}, {flows} flows"
            );
        }
        assert_eq!(most_by_chance(&[0.0, 0.0], 16, 1), None);
    }
}
