//! One trial while it runs: launch, sample on the ticks, collect.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_engine as engine;
use linerate_engine::{Address, Cpus, EngineConfig, Flow, LaunchError, Running, Schedule};
use linerate_model::capture::CaptureOutcome;
use linerate_model::manner::{Manner, Transport, WaitBy};
use linerate_model::metric::Metric;
use linerate_model::reason::with_causes;
use linerate_model::sample::{FLOWS_IN_FULL, Sample, Subject};
use linerate_model::setting::SettingPool;
use linerate_model::workload::Part;
use linerate_model::{Bytes, FlowId};
use linerate_observe::{Observer, Profiler, Scope};

use super::capture::RunningCapture;
use super::flows::{by_group, counts_sent};
use super::host::{availabilities, degraded, limits_of_profile, unseen};
use super::idle_reader::IdleReader;
use super::limits::{cpus_online, workers_of_group};
use super::placement::Pinning;
use super::slot::{OtherEnd, TrialSlot};
use super::{Core, placement};
use crate::api::StartRequest;
use crate::limits::above;
use crate::sync::lock;

/// Longest sleep between two looks at the abort flag.
const ABORT_LOOK: Duration = Duration::from_millis(50);
/// The same where a volume ends the trial: the last reading comes this much late at the most, and
/// that is part of the time that the volume is said to have taken.
const VOLUME_LOOK: Duration = Duration::from_micros(500);
/// Time between two readings of the host where workers have no CPU to spare and nobody asked for a rate:
/// all observers together take some 0.7 ms, which ten times a second at both ends of one byte each way
/// on one CPU were 2 % of the transactions.
const RARELY_OBSERVED_NS: u64 = 500_000_000;
/// Time between two looks whether the flows have ended; 5 µs each.
const END_LOOK_NS: u64 = 200_000;
/// The same in multiples of what a look takes: 10 ms with thousands of flows, which need the CPUs to
/// drain.
const END_LOOK_REST: u64 = 9;
/// The longest time between two looks at a rate that is limited, whatever the trial does meanwhile.
const RATE_LOOK_NS: u64 = 250_000_000;
/// Time before the start that is enough to give code back and to be ready.
const SLEEP_NS_MIN: u64 = 1_000_000;
/// How long after the stop senders have stopped for certain: they look at a clock of 10 ms.
const STOPPED_NS: u64 = 15_000_000;

/// Runs the flows of `slot` through the instants `at`; the body of the sampler thread.
pub(super) fn run(core: &Core, slot: &TrialSlot, flows: Vec<Flow>, at: StartRequest) {
    let first = |end: fn(&Flow) -> &Address| Some(end(flows.first()?).ip()?.ip());
    let (local, remote) = (first(Flow::local), first(Flow::remote));
    let capture = lock(&slot.capture).take();
    if let Some(capture) = &capture {
        capture.select(&flows);
    }
    let groups = slot.groups.iter();
    let placed: Vec<_> = groups.map(|group| placement::place(group, local)).collect();
    let schedule = Schedule {
        start_ns: at.start_ns,
        measure_begin_ns: at.measure_begin_ns,
        measure_end_ns: at.measure_end_ns,
        stop_ns: at.stop_ns,
        skew_ns: at.skew_ns,
    };
    let running = match launch(slot, flows, schedule, &placed) {
        Ok(running) => running,
        Err(error) => return slot.fail(&with_causes(&error)),
    };
    let threads: Vec<_> = running.iter().flat_map(Running::threads).collect();
    // Both ends would see the same CPUs, and pay twice for it.
    let shares_cpus = core.config.lab || local == remote;
    let busy = match slot.assignment.probes.sample_rate {
        None => {
            let cpus = linerate_observe::cpus_allowed(Path::new("/proc")).len();
            let workers = threads.len() * if shares_cpus { 2 } else { 1 };
            let mut groups = slot.groups.iter();
            groups.find_map(|group| why_no_cpu_is_free(cpus, &group.manner, workers))
        }
        Some(_) => None,
    };
    let config = core.observe_config(slot.observe, threads);
    let probes = slot.assignment.probes;
    // Of others nobody asks for a quantile.
    let is_timed = slot.assignment.traffic.is_transactional();
    let reads_when_idle = is_timed && busy.is_none() && !probes.irq_time;
    let idle_reader = reads_when_idle.then(|| config.clone());
    let idle_reader = idle_reader.and_then(IdleReader::open);
    let mut observers = linerate_observe::observers(&config);
    observers.extend(linerate_observe::probes(&config, probes));
    let before = availabilities(&observers);
    let scope = if shares_cpus {
        Scope::OwnThreads
    } else {
        Scope::Host
    };
    let window_ns = at.measure_begin_ns..at.measure_end_ns;
    let profiler = probes
        .profile
        .then(|| Profiler::open(&config, scope, window_ns));
    let plans = slot.assignment.all_flows();
    let senders = plans
        .filter(|plan| plan.part == Part::Sender)
        .map(|plan| plan.flow);
    let mut sampler = Sampler {
        core,
        observed_every_ns: busy.map_or(0, |_| RARELY_OBSERVED_NS),
        observed_at_ns: 0,
        slot,
        running,
        observers,
        idle_reader,
        profiler,
        senders: senders.collect(),
        window_begun: false,
        start_ns: at.start_ns,
        counted_ns: 0,
        moved_bytes: 0.0,
        new_bytes: 0.0,
        waits_since_ns: None,
    };
    // Flows are made, observers opened and workers asleep: what comes is less code than that was.
    if engine::now_ns() + SLEEP_NS_MIN < at.start_ns {
        core.give_back_neighbours(1);
    }
    let whole = sampler.follow(&at);
    let Sampler {
        running,
        observers,
        profiler,
        moved_bytes,
        new_bytes,
        ..
    } = sampler;
    if !whole {
        running.iter().for_each(Running::abort);
    }
    let mut results = Vec::new();
    let mut placements = Vec::new();
    // What came after the last look is owed too, whoever ended the trial.
    let mut moved = 0;
    for ((group, placed), running) in slot.groups.iter().zip(placed).zip(running) {
        let ended = running.finish();
        let placement = Arc::new(placed.setting);
        placements.extend(std::iter::repeat_n(placement, ended.len()));
        let sent = |flow: &engine::FlowResult| {
            if counts_sent(group) {
                flow.bytes_sent
            } else {
                0
            }
        };
        let each = ended.iter().map(|flow| flow.bytes_received + sent(flow));
        moved += each.sum::<u64>();
        results.extend(ended);
    }
    let after_bytes = moved as f64 - moved_bytes;
    if let Some(grant) = lock(&slot.grant).as_mut() {
        grant.note_moved(engine::now_ns(), new_bytes + after_bytes);
    }
    let captured = capture.map(RunningCapture::end);
    let after = availabilities(&observers);
    let seen = profiler.map(|profiler| (profiler.availability(), profiler.finish()));
    let mut record = lock(&slot.record);
    record.notes.extend(unseen(&after));
    if let Some((availability, stacks)) = seen {
        record.notes.extend(limits_of_profile(&availability));
        record.stacks = stacks;
    }
    record.notes.extend(degraded(&before, &after));
    if let Some(why) = busy
        && at.measure_end_ns - at.measure_begin_ns > RARELY_OBSERVED_NS
    {
        record.notes.push(format!(
            "the host was sampled only twice per second, because {why}; --sample-rate sets more"
        ));
    }
    match captured {
        None => {}
        Some(Ok(ended)) => {
            record.capture_parts.items = ended.parts;
            record.capture = Some(CaptureOutcome::Taken(ended.taken));
        }
        Some(Err(why)) => record.capture = Some(CaptureOutcome::Missing(why)),
    }
    record.flows.items = results.into_iter().map(|result| result.outcome).collect();
    let tuned = lock(&slot.tuned).take();
    let of_host = tuned.as_ref().map_or(&[][..], |tuned| tuned.settings());
    let of_host: Vec<_> = of_host.iter().cloned().map(Arc::new).collect();
    let mut pool = SettingPool::default();
    for (flow, placement) in record.flows.items.iter_mut().zip(&placements) {
        let settings = std::iter::once(placement)
            .chain(&of_host)
            .fold(flow.settings.clone(), |own, one| own.with(one));
        flow.settings = pool.share(&settings);
    }
    if let Some(tuned) = tuned {
        record.notes.extend(tuned.put_back());
    }
    drop(record);
    // Before it says that it is over: its controller then claims for the next one.
    lock(&slot.grant).take();
    lock(&slot.gathered)
        .session
        .handle_finished(engine::now_ns());
    slot.changed.tell();
}

/// Launches the flows of each group, all by one schedule.
fn launch(
    slot: &TrialSlot,
    flows: Vec<Flow>,
    schedule: Schedule,
    placed: &[Pinning],
) -> Result<Vec<Running>, LaunchError> {
    let mut running: Vec<Running> = Vec::new();
    for (flows, placed) in by_group(flows, &slot.groups).into_iter().zip(placed) {
        let before = running.iter().map(|group| group.threads().len()).sum();
        let workers_max = match (slot.assignment.workers_max, &placed.cpus) {
            (Some(most), _) => most as usize,
            (None, Cpus::Any) => cpus_online(),
            (None, Cpus::InTurn(cpus) | Cpus::Among(cpus)) => cpus.len(),
        };
        let config = EngineConfig {
            workers_max: workers_of_group(workers_max, slot.groups.len()),
            cpus: placed.cpus.clone(),
        };
        // On an error the groups so far are aborted as they are dropped.
        running.push(engine::launch_beside(flows, schedule, &config, before)?);
    }
    Ok(running)
}

/// Returns why reading the host would take its time from `workers`, if all `cpus` are theirs.
///
/// Ten readings a second of both ends are 1.4 % of the time: the 99th percentile of an open loop was theirs.
/// 5000 requests a second over loopback on two CPUs: 706 µs (132 to 908), and 94 (59 to 275) with rare readings.
fn why_no_cpu_is_free(cpus: usize, manner: &Manner, workers: usize) -> Option<&'static str> {
    if cpus == 1 {
        return Some("everything here shares one CPU");
    }
    let spins = manner.wait == WaitBy::Spin;
    let why = match manner.requests_per_s {
        _ if spins => Some("busy-polling workers leave no CPU idle"),
        Some(_) => Some("requests at a rate would wait for readings"),
        None => None,
    };
    why.filter(|_| workers >= cpus)
}

/// What a reading is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// An edge of the window: what totals are made of.
    Edge,
    /// The course of the trial.
    Between,
}

/// Tells whether a sample is kept between the edges of the window.
fn is_kept(sample: &Sample) -> bool {
    let Subject::Flow(flow, _) = sample.subject else {
        return true;
    };
    let shown = [
        Metric::AppBytesSent,
        Metric::AppBytesReceived,
        Metric::AppTransactions,
        Metric::TcpBytesReceived,
        Metric::TcpRetrans,
    ];
    flow.0 < FLOWS_IN_FULL || shown.contains(&sample.metric)
}

/// Returns the payload of a sample that a limit counts.
fn moved_by(sample: &Sample, counts_sent: bool) -> i64 {
    match sample.metric {
        Metric::AppBytesReceived => sample.value,
        Metric::AppBytesSent if counts_sent => sample.value,
        _ => 0,
    }
}

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeReason {
    /// The instant has come.
    Instant,
    /// The trial was ended.
    Abort,
    /// All that was to be sent has been sent and received.
    AllSent,
}

/// Reads flows and host on the ticks of one trial.
struct Sampler<'a> {
    core: &'a Core,
    slot: &'a TrialSlot,
    /// The flows of each group.
    running: Vec<Running>,
    observers: Vec<Box<dyn Observer>>,
    /// Who reads the host between the edges, where no request may wait for that.
    idle_reader: Option<IdleReader>,
    /// Least time between two readings of the observers, and the tick of the last.
    observed_every_ns: u64,
    observed_at_ns: u64,
    profiler: Option<Profiler>,
    /// The flows whose sending end is here.
    senders: HashSet<FlowId>,
    /// Whether the window's first edge has been read.
    window_begun: bool,
    /// From when on a rate is reckoned, and when payload was counted last.
    start_ns: u64,
    counted_ns: u64,
    /// Payload that a limit counts of all flows, at the last reading.
    moved_bytes: f64,
    /// What of it the limit of all trials has not been told of.
    new_bytes: f64,
    /// Since when the delivery of a volume is waited for.
    waits_since_ns: Option<u64>,
}

impl Sampler<'_> {
    /// Samples from the start to the end of the window, then waits for the flows; returns whether
    /// nobody ended the trial before.
    ///
    /// Ticks lie at `measure_begin + k × interval` (k negative in the warm-up) and exactly at
    /// `measure_end`, so that window totals come from readings at the window's own edges. None of the warm-up is
    /// within half an interval of the start: a reading takes a CPU 1 ms, and flows that are to begin at the same
    /// instant would begin after it. What there was before them is read before them.
    fn follow(&mut self, at: &StartRequest) -> bool {
        let must_wait = self.slot.other_end.must_be_waited_for();
        let interval = self.slot.assignment.sample_interval.0;
        let warm_up = at.measure_begin_ns - at.start_ns;
        let before = warm_up.saturating_sub(interval / 2) / interval;
        let mut tick = at.measure_begin_ns - before * interval;
        let now = engine::now_ns();
        // At once, too, where flows have begun: what they have done since is not to be lost.
        if before > 0 && now < tick {
            self.sample(Reading::Between, now);
        }
        loop {
            let woken = self.sleep_until(tick);
            let is_begin = !self.window_begun && tick >= at.measure_begin_ns;
            self.window_begun |= is_begin;
            let is_edge = is_begin || tick >= at.measure_end_ns || woken != WakeReason::Instant;
            let reading = if is_edge {
                Reading::Edge
            } else {
                Reading::Between
            };
            self.sample(reading, tick);
            match woken {
                WakeReason::Instant => {}
                // Ended before its time, but perhaps to keep what was measured up to here.
                WakeReason::Abort => return false,
                WakeReason::AllSent if must_wait => break,
                WakeReason::AllSent => return true,
            }
            if self.is_beyond_rate() {
                return false;
            }
            if tick >= at.measure_end_ns {
                break;
            }
            // A late sampler skips ticks rather than bunching them, but never the last one.
            let now = engine::now_ns();
            while tick <= now && tick < at.measure_end_ns {
                tick = (tick + interval).min(at.measure_end_ns);
            }
        }
        // Nothing is measured any more, and handing in results is other code than measuring.
        self.core.give_back_neighbours(1);
        loop {
            let looked = engine::now_ns();
            let delivered = !must_wait || self.is_delivered(at);
            if delivered && self.is_done() {
                return true;
            }
            let now = engine::now_ns();
            let rest_ns = END_LOOK_NS.max((now - looked) * END_LOOK_REST);
            if self.sleep_until(now + rest_ns) == WakeReason::Abort {
                return false;
            }
        }
    }

    /// Returns whether all senders have stopped and what they sent was acknowledged, and notes it
    /// for whoever ends the trial at the other end; true as well when that takes too long.
    fn is_delivered(&mut self, at: &StartRequest) -> bool {
        let now = engine::now_ns();
        if self.slot.assignment.manner.bytes_max.is_some() && now < at.stop_ns {
            let since_ns = *self.waits_since_ns.get_or_insert(now);
            return self.is_volume_through() || now > since_ns + self.grace_ns();
        }
        if now < at.stop_ns + STOPPED_NS {
            return false;
        }
        let (_, outstanding) = self.look_at_flows();
        let over = !outstanding || now > at.stop_ns + self.grace_ns();
        self.slot.delivered.store(over, Ordering::Relaxed);
        over
    }

    fn grace_ns(&self) -> u64 {
        engine::grace_ns(self.slot.assignment.all_flows().count())
    }

    /// Returns whether the flows of all groups have ended.
    fn is_done(&self) -> bool {
        self.running.iter().all(Running::done)
    }

    /// Returns whether every flow has moved its volume and nothing is on its way, and notes it: a
    /// foreign server goes on sending until it is told.
    fn is_volume_through(&mut self) -> bool {
        // Nobody acknowledges datagrams.
        let is_udp = self.slot.assignment.manner.transport == Transport::Udp;
        let through = if is_udp {
            self.is_done()
        } else {
            self.look_at_flows() == (true, false)
        };
        if through {
            self.slot.delivered.store(true, Ordering::Relaxed);
        }
        through
    }

    /// Returns whether every flow has moved the volume of the trial, and whether anything that was
    /// sent is not acknowledged.
    fn look_at_flows(&mut self) -> (bool, bool) {
        let assignment = &self.slot.assignment;
        let most = assignment.manner.bytes_max.map_or(0, |most| most.0);
        let is_sender = |sample: &Sample| match sample.subject {
            Subject::Flow(flow, _) => self.senders.contains(&flow),
            _ => false,
        };
        // A server of iperf3 stops all its streams when they have sent so much together.
        let is_by_sum = matches!(self.slot.other_end, OtherEnd::Foreign { .. });
        let (mut whole, mut outstanding) = (true, false);
        let (mut received, mut wanted) = (0_u64, 0_u64);
        // One by one: those of thousands of flows together take megabytes.
        let take = |sample: Sample| match sample.metric {
            Metric::AppBytesReceived if is_by_sum && !is_sender(&sample) => {
                received += sample.value.unsigned_abs();
                wanted = wanted.saturating_add(most);
            }
            Metric::AppBytesSent | Metric::AppBytesReceived => {
                let sends = is_sender(&sample);
                if sends == (sample.metric == Metric::AppBytesSent) {
                    whole &= sample.value.unsigned_abs() >= most;
                }
            }
            Metric::TcpUnacked | Metric::TcpNotSent if sample.value > 0 => {
                outstanding |= is_sender(&sample);
            }
            _ => {}
        };
        // A volume is of one group alone, and so is a server of another program.
        if let Some(running) = self.running.first_mut() {
            running.sample_each(take);
        }
        (whole && received >= wanted, outstanding)
    }

    fn sample(&mut self, reading: Reading, tick_ns: u64) {
        let mut record = lock(&self.slot.record);
        let is_full = record.samples.bytes() as u64 > self.slot.record_bytes_max;
        if is_full {
            let most = Bytes(self.slot.record_bytes_max);
            let note = format!("samples beyond {most} were dropped; use a longer sample interval");
            if !record.notes.contains(&note) {
                record.notes.push(note);
            }
        }
        // Totals are made of the edges, of which there are two.
        let is_dropped = is_full && reading == Reading::Between;
        let thousands = self.slot.assignment.all_flows().count() > FLOWS_IN_FULL as usize;
        let is_thinned = thousands && reading == Reading::Between;
        let samples = &mut record.samples;
        let mut moved = 0;
        for (group, running) in self.slot.groups.iter().zip(&mut self.running) {
            let counts_sent = counts_sent(group);
            // What is not kept is counted all the same: a limit holds however much was recorded.
            running.sample_each(|sample| {
                moved += moved_by(&sample, counts_sent);
                if !is_dropped && (!is_thinned || is_kept(&sample)) {
                    samples.push(&sample);
                }
            });
        }
        self.note_moved(moved);
        if is_dropped {
            return;
        }
        // A host may have flows of a later group only.
        let are_several = !self.slot.assignment.beside.is_empty();
        for (group, running) in self.slot.groups.iter().zip(&mut self.running) {
            if !group.traffic.is_transactional() {
                continue;
            }
            let flow = group.flows.first().filter(|_| are_several);
            let flow = flow.map(|flow| flow.flow);
            running.sample_latencies(|mut sample| {
                if let Subject::Latency(of, _) = &mut sample.subject {
                    *of = flow;
                }
                samples.push(&sample);
            });
        }
        // Reading the host may take tenths of a second, for which whoever looks at the trial must not wait.
        drop(record);
        let mut readings = Vec::new();
        self.observe(reading, tick_ns, &mut readings);
        if let Some(profiler) = &mut self.profiler {
            profiler.sample(&mut readings);
        }
        let samples = &mut lock(&self.slot.record).samples;
        readings.iter().for_each(|sample| samples.push(sample));
    }

    /// Reads the host, or has it read, if that is due.
    fn observe(&mut self, reading: Reading, tick_ns: u64, readings: &mut Vec<Sample>) {
        if let Some(reader) = &mut self.idle_reader {
            if reader.take(readings) {
                self.observed_at_ns = tick_ns;
            }
            // Where the traffic leaves no CPU idle, it has to wait for some.
            let interval_ns = self.slot.assignment.sample_interval.0;
            let most_ns = RARELY_OBSERVED_NS.max(2 * interval_ns);
            let is_overdue = tick_ns >= self.observed_at_ns + most_ns;
            if reading == Reading::Between && !is_overdue && reader.ask() {
                return;
            }
            reader.forget();
        }
        let due_ns = self.observed_at_ns + self.observed_every_ns;
        if reading == Reading::Between && tick_ns < due_ns {
            return;
        }
        self.observed_at_ns = tick_ns;
        for observer in &mut self.observers {
            match reading {
                Reading::Edge => observer.sample_edge(readings),
                Reading::Between => {
                    observer.sample(readings);
                }
            }
        }
    }

    fn note_moved(&mut self, bytes: i64) {
        self.counted_ns = engine::now_ns();
        self.new_bytes += bytes as f64 - self.moved_bytes;
        self.moved_bytes = bytes as f64;
    }

    /// Returns whether a limit asks for a count that no reading of the window has made.
    fn must_count(&self) -> bool {
        self.slot.rate_max.is_some() && engine::now_ns() >= self.counted_ns + RATE_LOOK_NS
    }

    fn count(&mut self) {
        let mut moved = 0;
        for (group, running) in self.slot.groups.iter().zip(&mut self.running) {
            let counts_sent = counts_sent(group);
            running.sample_each(|sample| moved += moved_by(&sample, counts_sent));
        }
        self.note_moved(moved);
    }

    /// Returns whether the trial was ended because it moved more than the agent allows.
    fn is_beyond_rate(&mut self) -> bool {
        let why = self.excess();
        if let Some(why) = &why {
            self.slot.fail(why);
        }
        why.is_some()
    }

    /// Returns what to say when the flows moved more than the agent allows: their own excess before
    /// that of all callers together, which they may have caused between two looks.
    fn excess(&mut self) -> Option<String> {
        let most = self.slot.rate_max?;
        let new_bytes = std::mem::take(&mut self.new_bytes);
        let now = engine::now_ns();
        let exceeded = lock(&self.slot.grant)
            .as_mut()
            .and_then(|grant| grant.note_moved(now, new_bytes));
        let seconds = now.saturating_sub(self.start_ns) as f64 / 1e9;
        let flows = self.slot.assignment.all_flows().count();
        let own = above(most, self.moved_bytes, seconds, flows).map(|rate| {
            format!("carried {rate} of payload, but this agent allows {most} without a token")
        });
        own.or_else(|| exceeded.map(|exceeded| exceeded.to_string()))
    }

    /// Sleeps until `instant_ns`, unless the trial ends before.
    fn sleep_until(&mut self, instant_ns: u64) -> WakeReason {
        let bounded = self.slot.assignment.manner.bytes_max.is_some();
        let must_wait = self.slot.other_end.must_be_waited_for();
        let look = if bounded { VOLUME_LOOK } else { ABORT_LOOK };
        loop {
            if self.slot.abort.load(Ordering::Relaxed) {
                return WakeReason::Abort;
            }
            if bounded && must_wait {
                self.is_volume_through();
            }
            if bounded && self.is_done() {
                return WakeReason::AllSent;
            }
            let now = engine::now_ns();
            if now >= instant_ns {
                return WakeReason::Instant;
            }
            if self.must_count() {
                self.count();
                if self.is_beyond_rate() {
                    return WakeReason::Abort;
                }
            }
            std::thread::sleep(Duration::from_nanos(instant_ns - now).min(look));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use linerate_model::host::Availability;
    use linerate_model::run::Admission;
    use linerate_model::{RunId, TrialId, hex};

    use super::*;
    use crate::access::Caller;
    use crate::api::LimitsInfo;
    use crate::api::{AdmitRequest, PollFrom};
    use crate::core::AgentConfig;
    use crate::core::limits::tests::{COOKIE, receiver};
    use crate::serve::hello::{Announces, Hello};

    /// Looks at its own trial while it reads the host.
    struct Looking(Arc<TrialSlot>);

    impl Observer for Looking {
        fn availability(&self) -> Availability {
            Availability {
                observer: "looking".to_owned(),
                missing: None,
                note: None,
            }
        }

        fn sample(&mut self, out: &mut Vec<Sample>) -> bool {
            out.push(Sample {
                metric: Metric::CpuUser,
                subject: Subject::Host,
                at_ns: engine::now_ns(),
                value: self.0.record.try_lock().is_ok().into(),
            });
            true
        }
    }

    /// Returns an agent, and a trial of one receiver, which has come.
    fn gathered() -> (Arc<Core>, String, TcpStream) {
        let core = Arc::new(Core::new(AgentConfig {
            host_name: "host".into(),
            limits: LimitsInfo::default(),
            lab: false,
        }));
        let request = AdmitRequest {
            run: RunId("r".into()),
            label: "l".into(),
            admission: Admission::Exclusive,
            expected: None,
            evict: false,
        };
        let lease = core.admit(&Caller::Trusted, None, &request).unwrap().lease;
        core.prepare(&Caller::Trusted, &lease, receiver(1)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let hello = Hello {
            cookie: hex::decode(COOKIE).unwrap(),
            flow: FlowId(0),
            announces: Announces::Flow,
        };
        let socket = listener.accept().unwrap().0.into();
        core.deliver(hello, socket, Transport::Tcp).unwrap();
        (core, lease, sender)
    }

    #[test]
    fn a_trial_may_be_looked_at_while_the_host_is_read() {
        let (core, lease, _sender) = gathered();
        let slot = core.slot(&lease, TrialId(1)).unwrap();
        let flows = std::mem::take(&mut lock(&slot.gathered).flows);
        let start_ns = engine::now_ns();
        let schedule = Schedule {
            start_ns,
            measure_begin_ns: start_ns + 1,
            measure_end_ns: start_ns + 2,
            stop_ns: start_ns + 2,
            skew_ns: 0,
        };
        let config = EngineConfig {
            workers_max: 1,
            cpus: Cpus::Any,
        };
        let mut sampler = Sampler {
            core: &core,
            slot: &slot,
            running: vec![engine::launch(flows, schedule, &config).unwrap()],
            observers: vec![Box::new(Looking(Arc::clone(&slot)))],
            idle_reader: None,
            observed_every_ns: 0,
            observed_at_ns: 0,
            profiler: None,
            senders: HashSet::new(),
            window_begun: false,
            start_ns,
            counted_ns: 0,
            moved_bytes: 0.0,
            new_bytes: 0.0,
            waits_since_ns: None,
        };
        sampler.sample(Reading::Between, start_ns);
        sampler.sample(Reading::Edge, start_ns + 1);
        sampler.running.drain(..).for_each(|running| {
            running.abort();
            running.finish();
        });
        let status = core.poll_trial(&lease, TrialId(1), PollFrom::default());
        let samples = status.unwrap().samples;
        let looks = samples.iter().filter(|it| it.metric == Metric::CpuUser);
        let looks: Vec<i64> = looks.map(|sample| sample.value).collect();
        assert_eq!(looks, [1, 1]);
    }

    #[test]
    fn the_host_is_read_rarely_only_where_no_cpu_is_free() {
        let reason = |cpus, wait, requests_per_s, workers| {
            let manner = Manner {
                wait,
                requests_per_s,
                ..Manner::default()
            };
            why_no_cpu_is_free(cpus, &manner, workers)
        };
        let check = |cpus, wait, workers, expected| {
            assert_eq!(reason(cpus, wait, None, workers), expected);
        };
        check(1, WaitBy::Auto, 1, Some("everything here shares one CPU"));
        check(2, WaitBy::Auto, 2, None);
        let spinning = Some("busy-polling workers leave no CPU idle");
        check(2, WaitBy::Spin, 2, spinning);
        check(2, WaitBy::Spin, 4, spinning);
        check(2, WaitBy::Spin, 1, None);
        check(8, WaitBy::Spin, 2, None);
        let timed = Some("requests at a rate would wait for readings");
        assert_eq!(reason(2, WaitBy::Auto, Some(5000), 2), timed);
        assert_eq!(reason(8, WaitBy::Auto, Some(5000), 2), None);
    }
}
