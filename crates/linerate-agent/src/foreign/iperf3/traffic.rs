//! The load of one test while it goes on: launched, read on the second, stopped when the client
//! says so.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_compat::iperf3::{CpuPercent, Parameters, Results};
use linerate_engine::{Address, Cpus, EngineConfig, Flow, LaunchError, Running, Schedule, now_ns};
use linerate_model::BitsPerSec;
use linerate_model::metric::Metric;
use linerate_model::sample::Sample;
use linerate_model::setting::name;
use linerate_observe::{ObserveConfig, Observer};

use super::count::{Count, Opened, Reading, readings};
use crate::core::cpus_online;
use crate::limits::above;

const S: u64 = 1_000_000_000;
/// The time between two intervals of a server's own output.
const INTERVAL_NS: u64 = S;
/// The time between two looks at a rate that is limited.
const RATE_LOOK_NS: u64 = S / 4;
/// The time between two looks at what still arrives after the client has said that it ended.
const DRAIN_LOOK: Duration = Duration::from_millis(5);
/// How long no new datagram may come before those that are missing are taken to be lost.
const DRAIN_QUIET_NS: u64 = S / 10;
/// How long nothing new may come where it is not known how much was sent.
const DRAIN_QUIET_UNKNOWN_NS: u64 = S / 50;
/// The longest time that is waited for it: what a path of 500 ms holds comes in that, and what TCP
/// sends a second and a third time. The streams themselves end [`linerate_engine::GRACE_NS`] after
/// the stop.
const DRAIN_NS_MAX: u64 = 3 * S / 2;

/// The load of one test.
pub(super) struct Traffic {
    running: Running,
    count: Count,
    threads: Vec<Box<dyn Observer>>,
    cpu_at_start_ns: Cpu,
    cpu_at_stop: CpuPercent,
    omits: bool,
    /// The last reading after the stop.
    last: Vec<Reading>,
    start_ns: u64,
    /// When the omitted time ends, while it lasts.
    base_ns: Option<u64>,
    tick_ns: u64,
    rate_max: Option<BitsPerSec>,
    /// Payload that arrived, and of it what was taken for the sum of all guests.
    received_bytes: f64,
    taken_bytes: f64,
    room: Vec<Sample>,
}

/// What was counted, at the end.
pub(super) struct Counted {
    pub(super) count: Count,
    pub(super) cpu: CpuPercent,
    taken_bytes: f64,
    running: Running,
}

/// CPU time of the workers of one test.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    user_ns: i64,
    system_ns: i64,
}

impl Traffic {
    /// Launches the flows; blocks for some milliseconds while workers get ready.
    pub(super) fn launch(
        flows: Vec<Flow>,
        parameters: &Parameters,
        stop_ns: u64,
        rate_max: Option<BitsPerSec>,
    ) -> Result<Self, LaunchError> {
        let opened: Vec<Opened> = flows.iter().map(opened).collect();
        let sends = opened.iter().any(|stream| stream.sender);
        let config = EngineConfig {
            workers_max: cpus_online(),
            cpus: parameters
                .server_affinity
                .map_or(Cpus::Any, |cpu| Cpus::InTurn(vec![cpu as usize])),
        };
        let start_ns = now_ns();
        let omit_ns = u64::from(parameters.omit_s) * S;
        let stop_ns = stop_ns.max(start_ns + omit_ns);
        let schedule = Schedule {
            start_ns,
            measure_begin_ns: start_ns + omit_ns,
            measure_end_ns: stop_ns,
            stop_ns,
            skew_ns: 0,
        };
        let running = linerate_engine::launch(flows, schedule, &config)?;
        // Who only receives is asked for bytes after this: the test begins here.
        let start_ns = if sends { start_ns } else { now_ns() };
        let mut threads = linerate_observe::observers(&ObserveConfig {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            lab: false,
            host_wide: false,
            threads: running.threads(),
        });
        Ok(Self {
            cpu_at_start_ns: cpu(&mut threads),
            threads,
            cpu_at_stop: CpuPercent::default(),
            omits: omit_ns > 0,
            last: Vec::new(),
            count: Count::new(parameters, opened, start_ns),
            start_ns,
            base_ns: (omit_ns > 0).then_some(start_ns + omit_ns),
            tick_ns: start_ns + INTERVAL_NS,
            rate_max,
            received_bytes: 0.0,
            taken_bytes: 0.0,
            room: Vec::new(),
            running,
        })
    }

    /// Returns when [`Self::poll`] has something to do.
    pub(super) fn wake_ns(&self) -> u64 {
        match self.rate_max {
            Some(_) => self.tick_ns.min(now_ns() + RATE_LOOK_NS),
            None => self.tick_ns,
        }
    }

    /// Reads what is due; returns what to say if the streams received more than is allowed.
    pub(super) fn poll(&mut self) -> Option<String> {
        let now = now_ns();
        if now < self.tick_ns && self.rate_max.is_none() {
            return None;
        }
        let readings = self.read();
        if now >= self.tick_ns {
            // Both begin with the test and count in whole seconds, so this is one of them.
            match self.base_ns.filter(|base| now >= *base) {
                Some(_) => {
                    self.base_ns = None;
                    self.count.handle_base(&readings);
                }
                None => self.count.handle_interval(&readings),
            }
            // A late reader skips ticks rather than bunching them.
            while self.tick_ns <= now {
                self.tick_ns += INTERVAL_NS;
            }
        }
        self.excess(&readings)
    }

    /// Returns how much arrived since it was asked last.
    pub(super) fn take_received(&mut self) -> f64 {
        let new = self.received_bytes - self.taken_bytes;
        self.taken_bytes = self.received_bytes;
        new
    }

    fn excess(&mut self, readings: &[Reading]) -> Option<String> {
        let most = self.rate_max?;
        let bytes = Count::received_bytes(readings, &self.count.streams) as f64;
        self.received_bytes = bytes;
        let elapsed_s = now_ns().saturating_sub(self.start_ns) as f64 / 1e9;
        let rate = above(most, bytes, elapsed_s, readings.len())?;
        Some(format!("received at {rate}, but this agent allows {most}"))
    }

    /// Stops sending at once; what the client has sent is still received.
    pub(super) fn stop(&mut self) {
        self.cpu_at_stop = self.cpu();
        self.running.stop();
        self.last = self.read();
        self.tick_ns = u64::MAX;
    }

    /// Takes in what the client sent before it said that the test is over, and ends the account;
    /// `theirs` is what the client says that it sent and received.
    ///
    /// What it sent last may be on its way still when its word arrives on another connection.
    /// iperf3's server drops it; ours waits, so that both ends agree to the byte where nothing was
    /// lost. TCP loses nothing, but may be silent for some retransmission timeouts; silence tells of
    /// datagrams only. With an omitted time both ends count from instants of their own, and what the
    /// client says is no measure. The account ends with the last reading that found something new.
    pub(super) async fn settle(mut self, theirs: &Results) -> Counted {
        let theirs = (!self.omits).then_some(theirs);
        let quiet_ns = match theirs {
            Some(_) if self.count.is_udp => DRAIN_QUIET_NS,
            Some(_) => DRAIN_NS_MAX,
            None => DRAIN_QUIET_UNKNOWN_NS,
        };
        let end_ns = now_ns() + DRAIN_NS_MAX;
        let mut quiet_until_ns = now_ns() + quiet_ns;
        while !theirs.is_some_and(|theirs| self.count.has_all(&self.last, theirs)) {
            tokio::time::sleep(DRAIN_LOOK).await;
            let is_over = self.running.done();
            let read = self.read();
            let news = read
                .iter()
                .zip(&self.last)
                .any(|(now, last)| now.bytes != last.bytes || now.unread_bytes > 0);
            let now = now_ns();
            if news {
                self.last = read;
                quiet_until_ns = now + quiet_ns;
            }
            if is_over || now >= quiet_until_ns.min(end_ns) {
                break;
            }
        }
        self.count.handle_end(&self.last);
        self.running.abort();
        Counted {
            count: self.count,
            cpu: self.cpu_at_stop,
            taken_bytes: self.taken_bytes,
            running: self.running,
        }
    }

    /// Ends everything at once, without an account; returns how much arrived since it was asked last.
    pub(super) async fn abort(self) -> f64 {
        finish(self.running, self.taken_bytes).await
    }

    fn read(&mut self) -> Vec<Reading> {
        self.room.clear();
        self.running.sample(&mut self.room);
        readings(&self.room, &self.count.streams)
    }

    /// Returns the CPU that this test's workers took since its start, in percent of one.
    fn cpu(&mut self) -> CpuPercent {
        let mut now = cpu(&mut self.threads);
        // A volume may be through, and its workers gone, before anybody looks.
        let (user_ns, system_ns) = self.running.spent_by_ended_ns();
        now.user_ns += user_ns as i64;
        now.system_ns += system_ns as i64;
        let elapsed_ns = now_ns().saturating_sub(self.start_ns).max(1) as f64;
        let percent = |from: i64, to: i64| 100.0 * (to - from).max(0) as f64 / elapsed_ns;
        let user = percent(self.cpu_at_start_ns.user_ns, now.user_ns);
        let system = percent(self.cpu_at_start_ns.system_ns, now.system_ns);
        CpuPercent::of(user, system)
    }
}

impl Counted {
    /// Waits until the workers have ended; returns how much arrived since it was asked last.
    pub(super) async fn finish(self) -> f64 {
        finish(self.running, self.taken_bytes).await
    }
}

/// Ends the workers and waits for them: a run that then gets the host has it for itself; returns how much arrived
/// beyond what was taken.
async fn finish(running: Running, taken_bytes: f64) -> f64 {
    running.abort();
    let finished = tokio::task::spawn_blocking(move || running.finish()).await;
    // A worker that panicked has said so itself.
    let results = finished.unwrap_or_default();
    let received = results.iter().map(|flow| flow.bytes_received);
    (received.sum::<u64>() as f64 - taken_bytes).max(0.0)
}

fn opened(flow: &Flow) -> Opened {
    let congestion = flow.settings().named(name::TCP_CONGESTION);
    Opened {
        local: ip(flow.local()),
        remote: ip(flow.remote()),
        sender: flow.config().part == linerate_model::workload::Part::Sender,
        congestion: congestion.and_then(|setting| setting.granted.clone()),
    }
}

/// Returns the address of an end; iperf3 has no flows but over IP.
fn ip(end: &Address) -> SocketAddr {
    end.ip().unwrap_or(SocketAddr::from(([0; 4], 0)))
}

/// Returns the CPU time of all watched threads.
fn cpu(threads: &mut [Box<dyn Observer>]) -> Cpu {
    let mut samples = Vec::new();
    for observer in threads {
        observer.sample(&mut samples);
    }
    let sum = |metric| {
        let of = samples.iter().filter(|sample| sample.metric == metric);
        of.map(|sample| sample.value).sum()
    };
    Cpu {
        user_ns: sum(Metric::ThreadUser),
        system_ns: sum(Metric::ThreadSystem),
    }
}
