//! Causes with known truth: recordings of which one thing holds the number, and neighbours that look
//! alike in all but what tells them apart. Rates, round trips and shares are drawn, so that a rule
//! that knows one recording by heart is found out.

use std::collections::BTreeSet;

use linerate_model::finding::FindingKind;
use linerate_model::limiter::Limiter;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::Recording;
use linerate_model::unit::Bytes;
use linerate_model::workload::{Traffic, Workload};

use super::recording::{MSS, MadeRun, Truth, WINDOW_NS, rr, stream};
use linerate_analyze::Draw;
use linerate_analyze::analyze;

/// What holds a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A stream whose application leaves the path idle half of the time.
    HealthyStream,
    /// A full path of unknown rate behind a deep queue.
    DeepQueue,
    /// The same, and the queue holds the whole window of the receiver.
    QueuedWindow,
    /// A full path behind a shallow queue that drops.
    ShallowQueue,
    /// A path whose way back is too slow for the ACKs.
    SlowAcks,
    /// Losses on a path that is not full.
    RandomLoss,
    /// A window of 64 KiB, since scaling was not agreed on.
    NoScaling,
    /// A receive buffer that was set.
    SmallBuffer,
    /// A program that reads slowly.
    SlowReader,
    /// A program that was stopped on the way, or before.
    StoppedReader,
    /// A path that swallows full-size segments.
    BlackHole,
    /// The window most of the time, the send buffer in the rest.
    TwoLimiters,
    /// Requests and responses over an idle path.
    HealthyExchange,
    /// Requests behind somebody's queue.
    QueuedExchange,
    /// Requests some of which wait for a retransmission timeout.
    Timeouts,
    /// A server that computes.
    Thinking,
    /// Requests in two writes that wait for a delayed ACK.
    Nagle,
    /// A full path behind a deep queue, between hosts whose workers wait for CPUs without harm.
    BusyHosts,
    /// A stream whose hosts have no CPU for it nor for the kernel's own work.
    StarvedHosts,
    /// The same, where the worker rarely waits and the kernel's own work does, bbr or not.
    FullHosts,
    /// Requests and responses that a link of known rate carries slowly.
    LargeMessages,
    /// Clients at different distances, whose applications leave the path idle half of the time.
    NearAndFar,
    /// The same behind one full path.
    NearAndFarQueue,
    /// A link of known rate that is full.
    FullLink,
    /// A send buffer that holds all that is in flight.
    SendBuffer,
    /// A queueing discipline of the sending host that drops.
    OwnDrops,
    /// A rate that was asked for.
    AskedRate,
    /// A congestion control that paces itself.
    OwnPacing,
    /// A writer that pauses.
    PausedWriter,
    /// A worker of ours that has no time left.
    BusyWorker,
    /// CPUs that our own work fills.
    FullCpus,
    /// A quota of CPU time.
    Quota,
    /// Requests whose workers wait for CPUs that other programs have.
    WaitingExchange,
}

impl Cause {
    /// All of them.
    pub const ALL: &'static [Cause] = &[
        Cause::HealthyStream,
        Cause::DeepQueue,
        Cause::BusyHosts,
        Cause::StarvedHosts,
        Cause::FullHosts,
        Cause::SlowAcks,
        Cause::QueuedWindow,
        Cause::ShallowQueue,
        Cause::NearAndFar,
        Cause::NearAndFarQueue,
        Cause::RandomLoss,
        Cause::NoScaling,
        Cause::SmallBuffer,
        Cause::SlowReader,
        Cause::StoppedReader,
        Cause::BlackHole,
        Cause::TwoLimiters,
        Cause::HealthyExchange,
        Cause::LargeMessages,
        Cause::QueuedExchange,
        Cause::Timeouts,
        Cause::Thinking,
        Cause::Nagle,
        Cause::FullLink,
        Cause::SendBuffer,
        Cause::OwnDrops,
        Cause::AskedRate,
        Cause::OwnPacing,
        Cause::PausedWriter,
        Cause::BusyWorker,
        Cause::FullCpus,
        Cause::Quota,
        Cause::WaitingExchange,
    ];

    /// Returns it in words.
    pub fn title(self) -> &'static str {
        match self {
            Cause::HealthyStream => "stream whose program rests",
            Cause::DeepQueue => "full path, deep queue, no loss",
            Cause::BusyHosts => "full path, deep queue, busy hosts",
            Cause::StarvedHosts => "hosts whose CPUs others have",
            Cause::SlowAcks => "ACKs wait on their way back",
            Cause::FullHosts => "the same, kernel held up",
            Cause::QueuedWindow => "full path, the queue holds the whole window",
            Cause::ShallowQueue => "full path, shallow queue that drops",
            Cause::NearAndFar => "clients near and far whose programs rest",
            Cause::NearAndFarQueue => "clients near and far, one full path",
            Cause::RandomLoss => "loss without a queue",
            Cause::NoScaling => "window of 64 KiB, no scaling",
            Cause::SmallBuffer => "receive buffer that was set",
            Cause::SlowReader => "reader that is slow",
            Cause::StoppedReader => "reader that was stopped",
            Cause::BlackHole => "full-size segments vanish",
            Cause::TwoLimiters => "window and send buffer take turns",
            Cause::HealthyExchange => "requests, nothing in their way",
            Cause::LargeMessages => "requests of large messages",
            Cause::QueuedExchange => "requests behind a queue",
            Cause::Timeouts => "requests that wait for a timeout",
            Cause::Thinking => "server that computes",
            Cause::Nagle => "Nagle and delayed ACK",
            Cause::FullLink => "link of known rate, full",
            Cause::SendBuffer => "send buffer that is full",
            Cause::OwnDrops => "drops of the sender's own qdisc",
            Cause::AskedRate => "rate that was asked for",
            Cause::OwnPacing => "bbr, nothing in its way",
            Cause::PausedWriter => "writer that pauses",
            Cause::BusyWorker => "our own worker, saturated",
            Cause::FullCpus => "all CPUs full of our own work",
            Cause::Quota => "quota of CPU time",
            Cause::WaitingExchange => "requests that wait for CPUs of others",
        }
    }

    /// Returns the limiter that is right; absent where there is none to name.
    pub fn limiter(self) -> Option<Limiter> {
        Some(match self {
            Cause::SlowAcks => return None,
            Cause::DeepQueue
            | Cause::BusyHosts
            | Cause::QueuedWindow
            | Cause::ShallowQueue
            | Cause::NearAndFarQueue => Limiter::PathRate,
            Cause::StarvedHosts | Cause::FullHosts | Cause::WaitingExchange => {
                Limiter::OtherPrograms
            }
            Cause::RandomLoss => Limiter::CongestionWindow,
            Cause::NoScaling | Cause::SmallBuffer | Cause::TwoLimiters => Limiter::ReceiverWindow,
            Cause::SlowReader | Cause::StoppedReader => Limiter::SlowReader,
            Cause::BlackHole => Limiter::NothingArrives,
            Cause::HealthyExchange | Cause::LargeMessages | Cause::QueuedExchange => {
                Limiter::RoundTrip
            }
            Cause::Timeouts => Limiter::Timeouts,
            Cause::Thinking | Cause::PausedWriter | Cause::HealthyStream | Cause::NearAndFar => {
                Limiter::Application
            }
            Cause::Nagle => Limiter::NagleDelayedAck,
            Cause::FullLink => Limiter::LinkRate,
            Cause::SendBuffer => Limiter::SendBuffer,
            Cause::OwnDrops => Limiter::HostDrops,
            Cause::AskedRate | Cause::OwnPacing => Limiter::Pacing,
            Cause::BusyWorker => Limiter::Generator,
            Cause::FullCpus => Limiter::Cpu,
            Cause::Quota => Limiter::CpuQuota,
        })
    }

    /// Returns its name in the catalogue of causes.
    pub fn catalogued(self) -> &'static str {
        match self {
            Cause::PausedWriter | Cause::HealthyStream | Cause::NearAndFar => "pausing-writer",
            Cause::SlowAcks => "ack-path",
            Cause::DeepQueue
            | Cause::BusyHosts
            | Cause::QueuedWindow
            | Cause::ShallowQueue
            | Cause::FullLink
            | Cause::NearAndFarQueue => "path-rate",
            Cause::StarvedHosts | Cause::FullHosts | Cause::WaitingExchange => "other-programs",
            Cause::RandomLoss => "congestion-window.random-loss",
            Cause::NoScaling => "receiver-window.unscaled",
            Cause::SmallBuffer => "receiver-window.buffer",
            Cause::TwoLimiters => "receiver-window.route",
            Cause::SlowReader | Cause::StoppedReader => "slow-reader",
            Cause::BlackHole => "mtu-hole",
            Cause::HealthyExchange | Cause::LargeMessages => "round-trip",
            Cause::QueuedExchange => "queue",
            Cause::Timeouts => "timeouts",
            Cause::Thinking => "server-thinks",
            Cause::Nagle => "nagle-delayed-ack",
            Cause::SendBuffer => "send-buffer.cap",
            Cause::OwnDrops => "host-drops",
            Cause::AskedRate => "pacing.asked",
            Cause::OwnPacing => "pacing.own",
            Cause::BusyWorker | Cause::FullCpus => "cpu",
            Cause::Quota => "cpu-quota",
        }
    }

    /// Returns so many recordings of one trial each; the same seed gives the same.
    pub fn recordings(self, count: usize, seed: u64) -> Vec<Recording> {
        let mut draw = Draw::new(seed ^ (self as u64) << 32);
        (0..count).map(|_| self.record(&mut draw, 1).0).collect()
    }

    fn make(self, draw: &mut Draw) -> (Workload, Truth) {
        let min_rtt_ns = (between(draw, 0.2, 60.0) * 1e6) as i64;
        let bps = between(draw, 10e6, 2e9);
        // Enough in flight for a flow to keep going.
        let bps = bps.max(20.0 * MSS * 8e9 / min_rtt_ns as f64);
        let at_rest = (min_rtt_ns as f64 * between(draw, 1.001, 1.03)) as i64;
        let times = |factor: f64| (min_rtt_ns as f64 * factor) as i64;
        let sending = |bps: f64, rtt_ns: i64| Truth {
            // A window that is never in the way.
            window_bytes: (3.0 * bps * rtt_ns as f64 / 8e9) as i64 + (1 << 20),
            ..Truth::sending(bps, rtt_ns, min_rtt_ns)
        };
        let held = |bytes: f64| {
            let bps = bytes * 8e9 / at_rest as f64;
            Truth {
                window_bytes: bytes as i64,
                rwnd_share: 0.98,
                ..Truth::sending(bps, at_rest, min_rtt_ns)
            }
        };
        // No timer of either end fires.
        let exchange = |trip_ns: u64| Truth {
            delayed_acks: Some(0.0),
            timeouts: Some(0.0),
            ..Truth::transactions(trip_ns)
        };
        match self {
            Cause::HealthyStream => {
                let truth = Truth {
                    busy_share: between(draw, 0.2, 0.6),
                    unsent_bytes: Some(0),
                    ..sending(bps, at_rest)
                };
                (stream(), truth)
            }
            Cause::DeepQueue => {
                let factor = between(draw, 2.0, 12.0);
                (stream(), sending(bps, times(factor)))
            }
            Cause::BusyHosts => {
                let factor = between(draw, 2.0, 12.0);
                let truth = Truth {
                    variation: between(draw, 0.005, 0.15),
                    ..busy(draw, sending(bps, times(factor)))
                };
                (stream(), truth)
            }
            Cause::StarvedHosts => {
                let (factor, slower) = (between(draw, 1.0, 300.0), between(draw, 2.0, 200.0));
                let truth = Truth {
                    variation: between(draw, 0.25, 0.95),
                    ..busy(draw, roomy(sending(bps / slower, times(factor))))
                };
                // The writer comes too late, or the reader.
                let late_bytes = truth.throughput_bps / 8.0 * between(draw, 0.002, 0.02);
                let truth = if draw.unit() < 0.5 {
                    Truth {
                        unsent_bytes: Some(0),
                        ..truth
                    }
                } else {
                    // The kernel takes in what comes meanwhile: a late reader holds nobody but by its window.
                    Truth {
                        unread_bytes: late_bytes as i64,
                        rwnd_share: between(draw, 0.12, 0.6),
                        ..truth
                    }
                };
                (stream(), truth)
            }
            Cause::FullHosts => {
                let (factor, slower) = (between(draw, 1.5, 30.0), between(draw, 1.5, 20.0));
                let truth = busy(draw, sending(bps / slower, times(factor)));
                let paces = draw.unit() < 0.5;
                let truth = Truth {
                    variation: between(draw, 0.115, 0.95),
                    worker_wait_share: between(draw, 0.01, 0.24),
                    pressure_share: Some(between(draw, 0.6, 0.99)),
                    pacing_bps: paces.then(|| truth.throughput_bps * between(draw, 1.0, 1.4)),
                    congestion: paces.then_some("bbr").or(truth.congestion),
                    ..truth
                };
                (stream(), truth)
            }
            Cause::SlowAcks => {
                let factor = between(draw, 2.0, 50.0);
                let truth = Truth {
                    variation: between(draw, 0.35, 0.95),
                    segments_per_ack: between(draw, 1.0, 20.0),
                    ..sending(bps / between(draw, 2.0, 50.0), times(factor))
                };
                // Workers may wait meanwhile, and nobody misses them.
                let truth = if draw.unit() < 0.5 {
                    Truth {
                        worker_wait_share: between(draw, 0.25, 0.7),
                        ..busy(draw, truth)
                    }
                } else {
                    truth
                };
                (stream(), truth)
            }
            Cause::QueuedWindow => {
                let rtt_ns = times(between(draw, 2.0, 12.0));
                let truth = Truth {
                    window_bytes: (bps * rtt_ns as f64 / 8e9) as i64,
                    rwnd_share: 0.98,
                    ..sending(bps, rtt_ns)
                };
                (stream(), truth)
            }
            Cause::ShallowQueue => {
                let rtt_ns = times(between(draw, 1.3, 1.8));
                let truth = Truth {
                    lost_share: between(draw, 0.0005, 0.01),
                    ..sending(bps, rtt_ns)
                };
                (stream(), truth)
            }
            Cause::NearAndFar => {
                let truth = Truth {
                    distances: vec![between(draw, 2.0, 100.0)],
                    busy_share: between(draw, 0.2, 0.6),
                    unsent_bytes: Some(0),
                    ..sending(bps, at_rest)
                };
                (near_and_far(), truth)
            }
            Cause::NearAndFarQueue => {
                let distance = between(draw, 2.0, 20.0);
                // What waits is some of the way of both.
                let wait = (1.0 + distance) * between(draw, 0.3, 3.0);
                let truth = Truth {
                    distances: vec![distance],
                    ..sending(bps, times(1.0 + wait))
                };
                (near_and_far(), truth)
            }
            Cause::RandomLoss => {
                let lost_share = between(draw, 0.001, 0.01);
                // Mathis 1997: MSS / RTT · 1.22 / √p.
                let bps = MSS * 8e9 / at_rest as f64 * 1.22 / lost_share.sqrt();
                let truth = Truth {
                    lost_share,
                    ..sending(bps, at_rest)
                };
                (stream(), truth)
            }
            Cause::NoScaling => {
                let truth = Truth {
                    agreed: Some("timestamps, SACK"),
                    ..held(65_535.0)
                };
                (stream(), truth)
            }
            Cause::SmallBuffer => {
                let bytes = between(draw, 32e3, 1e6).round();
                let mut workload = stream();
                workload.options.socket_buffer = Some(Bytes(bytes as u64));
                (workload, held(bytes))
            }
            Cause::SlowReader => {
                let bytes = between(draw, 64e3, 1e6);
                let unread = bytes * between(draw, 0.6, 0.9);
                let truth = Truth {
                    window_bytes: (bytes - unread) as i64,
                    unread_bytes: unread as i64,
                    rwnd_share: 0.98,
                    ..sending(
                        bps.min((bytes - unread) * 8e9 / times(2.0) as f64),
                        times(2.0),
                    )
                };
                (stream(), truth)
            }
            Cause::StoppedReader => {
                let closed_share = (5.0 + (draw.unit() * 5.0).floor()) / 10.0;
                let truth = Truth {
                    closed_share,
                    rwnd_share: closed_share,
                    unread_bytes: 100_000,
                    ..sending(bps * (1.0 - closed_share), at_rest)
                };
                // Others may have the CPUs meanwhile, which nobody here waits for as long.
                let truth = if draw.unit() < 0.5 {
                    Truth {
                        worker_wait_share: between(draw, 0.25, 0.45),
                        ..busy(draw, truth)
                    }
                } else {
                    truth
                };
                (stream(), truth)
            }
            Cause::BlackHole => {
                let truth = Truth {
                    in_vain: between(draw, 4.0, 20.0).round(),
                    invalid: Some("a flow moved nothing".to_owned()),
                    ..sending(0.0, at_rest)
                };
                (stream(), truth)
            }
            Cause::TwoLimiters => {
                let window = between(draw, 0.55, 0.7);
                let truth = Truth {
                    rwnd_share: window,
                    sndbuf_share: 0.95 - window,
                    ..held(between(draw, 32e3, 1e6))
                };
                (stream(), truth)
            }
            Cause::HealthyExchange => {
                let trip_ns = between(draw, 30e3, 20e6) as u64;
                let truth = Truth {
                    min_rtt_ns: Some((trip_ns as f64 * 0.9) as i64),
                    ..exchange(trip_ns)
                };
                (rr(200), truth)
            }
            Cause::LargeMessages => {
                let bytes = between(draw, 64e3, 16e6) as u64;
                // Of a gigabit, with headers, and in as many round trips as the window needs.
                let carried_ns = 16.0 * bytes as f64 * between(draw, 1.06, 2.0);
                let path_ns = between(draw, 100e3, 5e6);
                let truth = Truth {
                    rtt_ns: (path_ns * 1.1) as i64,
                    min_rtt_ns: Some(path_ns as i64),
                    delayed_acks: Some(0.0),
                    timeouts: Some(0.0),
                    ..Truth::transactions((path_ns + carried_ns) as u64)
                };
                (rr(bytes), truth)
            }
            Cause::QueuedExchange => {
                let trip_ns = between(draw, 40e6, 300e6) as u64;
                let truth = Truth {
                    min_rtt_ns: Some((trip_ns as f64 / between(draw, 5.0, 200.0)) as i64),
                    ..exchange(trip_ns)
                };
                (rr(200), truth)
            }
            Cause::Timeouts => {
                let fast_ns = between(draw, 100e3, 3e6) as u64;
                (rr(200), Truth::timeouts(fast_ns, between(draw, 0.03, 0.3)))
            }
            Cause::Thinking => {
                let trip_ns = between(draw, 5e6, 100e6) as u64;
                let truth = Truth {
                    rtt_ns: between(draw, 30e3, 300e3) as i64,
                    ..exchange(trip_ns)
                };
                (rr(200), truth)
            }
            Cause::Nagle => {
                let mut workload = rr(200);
                if let Traffic::Rr { request_writes, .. } = &mut workload.traffic {
                    *request_writes = 2;
                }
                let trip_ns = between(draw, 40e6, 48e6) as u64;
                let truth = Truth {
                    rtt_ns: between(draw, 30e3, 1e6) as i64,
                    delayed_acks: Some((WINDOW_NS / trip_ns) as f64),
                    timeouts: Some(0.0),
                    ..Truth::transactions(trip_ns)
                };
                (workload, truth)
            }
            Cause::FullLink => {
                // Of a gigabit: 1448 of 1538 B are payload.
                let truth = sending(
                    LINK_RATE_BPS * 1448.0 / 1538.0,
                    times(between(draw, 1.01, 3.0)),
                );
                (stream(), truth)
            }
            Cause::SendBuffer => {
                let truth = Truth {
                    sndbuf_share: between(draw, 0.6, 0.95),
                    ..sending(bps, at_rest)
                };
                (stream(), truth)
            }
            Cause::OwnDrops => {
                let dropped_share = between(draw, 0.001, 0.01);
                let bps = MSS * 8e9 / at_rest as f64 * 1.22 / dropped_share.sqrt();
                let segments_per_s = bps / 8.0 / MSS;
                let truth = Truth {
                    qdisc_drops: (dropped_share * segments_per_s).max(20.0),
                    ..sending(bps, at_rest)
                };
                (stream(), truth)
            }
            Cause::AskedRate => {
                let mut workload = stream();
                workload.manner.rate_bps = Some(bps as u64);
                let truth = Truth {
                    busy_share: between(draw, 0.2, 0.8),
                    unsent_bytes: Some(0),
                    ..sending(bps * between(draw, 0.99, 1.0), at_rest)
                };
                (workload, truth)
            }
            Cause::OwnPacing => {
                let truth = Truth {
                    pacing_bps: Some(bps * between(draw, 1.0, 1.1)),
                    congestion: Some("bbr"),
                    variation: between(draw, 0.05, 0.2),
                    ..roomy(sending(bps, at_rest))
                };
                (stream(), truth)
            }
            Cause::PausedWriter => {
                let busy_share = between(draw, 0.2, 0.6);
                let truth = Truth {
                    busy_share,
                    unsent_bytes: Some(0),
                    delivery_bps: Some(bps / busy_share),
                    ..sending(bps, at_rest)
                };
                (stream(), truth)
            }
            Cause::BusyWorker => {
                let truth = Truth {
                    worker_share: between(draw, 0.96, 0.99),
                    cpus: 1.2,
                    unsent_bytes: Some(0),
                    ..roomy(sending(bps, at_rest))
                };
                (stream(), truth)
            }
            Cause::FullCpus => {
                let worker_share = between(draw, 0.75, 0.85);
                let truth = Truth {
                    cpus: between(draw, 1.96, 1.99),
                    worker_share,
                    worker_wait_share: 0.99 - worker_share,
                    unsent_bytes: Some(0),
                    ..roomy(sending(bps, at_rest))
                };
                (stream(), truth)
            }
            Cause::Quota => {
                let worker_share = between(draw, 0.1, 0.5);
                let truth = Truth {
                    throttled: Some(between(draw, 0.3, 0.95)),
                    worker_share,
                    worker_wait_share: 0.95 - worker_share,
                    unsent_bytes: Some(0),
                    variation: between(draw, 0.3, 0.9),
                    ..roomy(sending(bps, at_rest))
                };
                (stream(), truth)
            }
            Cause::WaitingExchange => {
                let trip_ns = between(draw, 2e6, 50e6) as u64;
                let truth = Truth {
                    rtt_ns: between(draw, 30e3, 300e3) as i64,
                    worker_wait_share: between(draw, 0.65, 0.85),
                    ..busy(draw, exchange(trip_ns))
                };
                (rr(200), truth)
            }
        }
    }

    /// Returns a recording of so many trials.
    pub(crate) fn record(self, draw: &mut Draw, trials: usize) -> (Recording, Truth) {
        let (workload, truth) = self.make(draw);
        // A full link carries no more at times.
        let deviation = if self == Cause::FullLink { 0.0 } else { 0.01 };
        let trials: Vec<Truth> = (0..trials)
            .map(|_| Truth {
                throughput_bps: truth.throughput_bps * (1.0 + deviation * draw.normal()),
                ..truth.clone()
            })
            .collect();
        // But for links that are full, nobody tells the rate of a stream's path.
        let is_told = workload.traffic.is_transactional() || self == Cause::FullLink;
        let mut run = MadeRun::whole(workload.clients, is_told.then_some(LINK_RATE_BPS));
        run.experiment("one", None, workload);
        run.cell(&[], &trials);
        (run.recording, truth)
    }
}

/// Rate of the links that are told of.
const LINK_RATE_BPS: f64 = 1e9;

/// Returns the limiters that are told of a recording.
fn told(recording: &Recording) -> Vec<Limiter> {
    let analysis = analyze(recording);
    // Of our own generator a caution tells.
    let all = analysis.findings.iter().chain(&analysis.cautions);
    let limiters = all.filter_map(|finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some(limiter),
        _ => None,
    });
    limiters.collect()
}

/// A sender that does not use all of its congestion window.
fn roomy(truth: Truth) -> Truth {
    Truth {
        cwnd: 2 * truth.cwnd,
        ..truth
    }
}

/// A stream of each of two clients.
fn near_and_far() -> Workload {
    Workload {
        connections: 2,
        clients: 2,
        ..stream()
    }
}

/// A worker needs little CPU time and waits long for it, since other programs have two CPUs.
fn busy(draw: &mut Draw, truth: Truth) -> Truth {
    let worker_share = between(draw, 0.0005, 0.1);
    Truth {
        cpus: 1.98,
        others_cpus: 0.95,
        others_kernel_cpus: 0.95,
        worker_share,
        worker_wait_share: between(draw, 0.3, 0.9 - worker_share),
        ..truth
    }
}

/// Draws between two amounts, evenly in their logarithms.
fn between(draw: &mut Draw, low: f64, high: f64) -> f64 {
    low * (high / low).powf(draw.unit())
}

/// How often a cause was named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Recordings.
    pub recordings: u32,
    /// Named, and nothing else.
    pub right: u32,
    /// Nothing was named.
    pub unknown: u32,
    /// What was named instead or besides, in words.
    pub wrong: Vec<String>,
}

/// Returns how `recordings` recordings of three trials with this `cause` are judged; the same seed gives
/// the same.
pub fn named(cause: Cause, recordings: u32, seed: u64) -> Named {
    let mut draw = Draw::new(seed ^ (cause as u64) << 32);
    let mut all = Named::default();
    for _ in 0..recordings {
        let (recording, truth) = cause.record(&mut draw, 3);
        let found = told(&recording);
        all.recordings += 1;
        match (cause.limiter(), found.as_slice()) {
            (Some(right), [one]) if *one == right => all.right += 1,
            // A queue that is short limits by what it drops.
            (Some(_), [Limiter::CongestionWindow]) if cause == Cause::ShallowQueue => {
                all.right += 1;
            }
            (None, []) => all.right += 1,
            (Some(_), []) => all.unknown += 1,
            _ => all.wrong.push(format!("{found:?} for {truth:?}")),
        }
    }
    all
}

/// Returns which limiters are named of a recording, and are not of the whole one, where any one metric is missing: what was
/// not read is no evidence, for or against, so that it is none. That a round trip is waited for is true of every exchange.
pub fn named_without(recording: &Recording) -> Vec<String> {
    let whole = told(recording);
    let trials = &recording.document.plan.trials;
    let is_exchange = |trial: &Trial| trial.workload.traffic.is_transactional();
    let are_exchanges = trials.iter().all(is_exchange);
    let metrics: BTreeSet<Metric> = recording.samples.iter().map(|one| one.metric).collect();
    let named = metrics.into_iter().flat_map(|metric| {
        let samples = recording.samples.iter();
        let rest = Recording {
            samples: samples.filter(|sample| sample.metric != metric).collect(),
            ..recording.clone()
        };
        let found = told(&rest).into_iter();
        let is_waited_for = |limiter: Limiter| are_exchanges && limiter == Limiter::RoundTrip;
        let others = found.filter(|limiter| !whole.contains(limiter) && !is_waited_for(*limiter));
        let what = |limiter| format!("without {}: {limiter:?}, not {whole:?}", metric.name());
        others.map(what).collect::<Vec<_>>()
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_taken_for_another() {
        let mut defects = Vec::new();
        for cause in Cause::ALL {
            let named = named(*cause, 40, 7);
            if !named.wrong.is_empty() || named.right < 26 {
                defects.push(format!("{cause:?}: {named:#?}"));
            }
        }
        assert!(defects.is_empty(), "{}", defects.join("\n"));
    }

    #[test]
    fn no_metric_that_is_missing_names_another_limiter() {
        let mut defects = Vec::new();
        for cause in Cause::ALL {
            let mut draw = Draw::new(11 ^ (*cause as u64) << 32);
            for _ in 0..3 {
                let (recording, _) = cause.record(&mut draw, 1);
                let named = named_without(&recording).into_iter();
                defects.extend(named.map(|one| format!("{cause:?} {one}")));
            }
        }
        assert!(defects.is_empty(), "{}", defects.join("\n"));
    }
}
