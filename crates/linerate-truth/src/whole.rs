//! Makes recordings whole: what a real host always reads is there, and says nothing where nothing is told of it.
//!
//! What is known of one cause only, and read of one counter only, is what tests of rules are about. Weights are fitted to
//! recordings of which all is read, as those of the corpus are.

use std::collections::BTreeMap;

use linerate_model::HostName;
use linerate_model::metric::Metric;
use linerate_model::sample::{End, QdiscId, Subject};
use linerate_model::workload::{Part, Workload};

use super::truth::{MSS, Truth};

/// Numbers by host, subject and metric.
pub(crate) type Known<T> = BTreeMap<(HostName, Subject, Metric), T>;

impl Truth {
    /// Returns the same with all that is told of each flow.
    pub(crate) fn whole(&self, workload: &Workload) -> Self {
        let flows = f64::from(workload.connections);
        let unsent = if self.busy_share >= 0.9 { 1 << 20 } else { 0 };
        // Without a pacer of its own TCP paces in avoidance at 1.2 of a window in each round trip.
        let paces_bps = 1.2 * flows * self.cwnd as f64 * MSS * 8e9 / self.rtt_ns as f64;
        let on_its_way = (0.6 * self.unacked as f64 * MSS) as i64;
        Self {
            agreed: self.agreed.or(Some("timestamps, SACK, window scaling")),
            offered_bytes: self.offered_bytes.or(Some(self.window_bytes)),
            unsent_bytes: self.unsent_bytes.or(Some(unsent)),
            delivery_bps: self.delivery_bps.or(Some(self.throughput_bps / flows)),
            pacing_bps: self.pacing_bps.or(Some(paces_bps)),
            on_its_way_bytes: self.on_its_way_bytes.or(Some(on_its_way)),
            delivered_variation: self.delivered_variation.or(Some(self.variation)),
            pressure_share: self.pressure_share.or(Some(self.worker_wait_share)),
            delayed_acks: self.delayed_acks.or(Some(0.0)),
            timeouts: self.timeouts.or(Some(0.0)),
            throttled: self.throttled.or(Some(0.0)),
            ..self.clone()
        }
    }
}

/// Returns the ends of a flow of client number `from`, which has this part.
pub(crate) fn ends(from: u32, client_part: Part) -> [(HostName, End, Part); 2] {
    let client = HostName::from(format!("client{from}"));
    [
        (client, End::Client, client_part),
        ("server".into(), End::Server, client_part.opposite()),
    ]
}

/// Adds what is not yet known of the flows and of both hosts.
pub(crate) fn complete(
    workload: &Workload,
    truth: &Truth,
    rates: &mut Known<f64>,
    gauges: &mut Known<i64>,
) {
    let segments = truth.throughput_bps / 8.0 / truth.payload_bytes;
    let of_flow = segments / f64::from(workload.connections);
    let mut rate = |host: &HostName, subject: &Subject, metric, value: f64| {
        let key = (host.clone(), subject.clone(), metric);
        rates.entry(key).or_insert(value);
    };
    for flow in workload.flows() {
        for (host, end, part) in ends(flow.from, flow.client_part) {
            let subject = Subject::Flow(flow.flow, end);
            match part {
                Part::Sender => {
                    for metric in [
                        Metric::TcpDeliveredCe,
                        Metric::TcpReordSeen,
                        Metric::TcpTimeouts,
                    ] {
                        rate(&host, &subject, metric, 0.0);
                    }
                    let limited = i64::from(truth.unsent_bytes == Some(0));
                    gauges.insert((host, subject, Metric::TcpAppLimited), limited);
                }
                Part::Receiver => {
                    let acks = of_flow / truth.segments_per_ack;
                    rate(&host, &subject, Metric::TcpSegsOut, acks);
                    rate(&host, &subject, Metric::TcpDataSegsOut, 0.0);
                }
                Part::Requester | Part::Responder => {}
            }
        }
    }
    for host in ["server", "client1"].map(HostName::from) {
        for cpu in [0, 1].map(Subject::Cpu) {
            for metric in [Metric::CpuIrq, Metric::CpuSoftIrq, Metric::SoftnetDropped] {
                rate(&host, &cpu, metric, 0.0);
            }
        }
        let pressure = truth.pressure_share.unwrap_or(0.0) * 1e9;
        for (metric, per_s) in [
            (Metric::PressureCpuSome, pressure),
            // What came was delivered, and nobody was turned away.
            (Metric::SnmpIpInReceives, 1e5),
            (Metric::SnmpIpInDelivers, 1e5),
            (Metric::NetstatListenDrops, 0.0),
            (Metric::NetstatListenOverflows, 0.0),
        ] {
            rate(&host, &Subject::Host, metric, per_s);
        }
        let device = Subject::Link("eth0".to_owned());
        rate(&host, &device, Metric::LinkRxDropped, 0.0);
        rate(&host, &device, Metric::LinkTxDropped, 0.0);
        let qdisc = Subject::Qdisc("eth0".to_owned(), QdiscId(0x8001_0000));
        rate(&host, &qdisc, Metric::QdiscOverlimits, 0.0);
        // What of the CPUs' time is our own: the worker's, and another thread's.
        let user = truth.cpus * 0.5 - truth.others_cpus;
        let system = truth.cpus * 0.5 - truth.others_kernel_cpus;
        let [worker, rest] = ["worker-0", "linerate"].map(|name| Subject::Thread(name.to_owned()));
        rate(&host, &worker, Metric::ThreadUser, user.max(0.0) * 1e9);
        rate(&host, &worker, Metric::ThreadSystem, system.max(0.0) * 1e9);
        let beside = user.max(0.0) + system.max(0.0) - truth.worker_share;
        rate(&host, &rest, Metric::ThreadRun, beside.max(0.0) * 1e9);
        gauges.insert((host, worker, Metric::ThreadCpu), 0);
    }
}

/// Returns what each of two CPUs is busy: the first has the worker.
pub(crate) fn busy(truth: &Truth) -> [f64; 2] {
    let worker = truth.worker_share.min(truth.cpus).min(1.0);
    let first = worker.max(truth.cpus / 2.0);
    [first, truth.cpus - first]
}
