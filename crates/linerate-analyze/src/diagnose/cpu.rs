//! CPUs that our workers did not get: a quota, other programs, or all of them full, or all that they may use.
//!
//! What a worker *ran* and what it *waited* for a CPU are two things: a worker that waits is not slow, it
//! has no CPU. Four causes, told apart by what the CPUs did meanwhile:
//!
//! 1. *Quota.* The control group was throttled in at least a tenth of its periods, for at least 5 % of
//!    the window (cpu.stat), unless the rate was steady behind a queue on the way and nobody missed the workers; where all
//!    periods were throttled, what lay unsent must have outlasted each stop, too. Without that counter: a worker waited
//!    beside CPUs that were idle, and no other program had them; then a quota and CPUs that it may not use are not told apart, unless the caller
//!    pinned it.
//! 2. *Other programs.* A worker that ran or waited for most of the time waited for at least a quarter of
//!    it, and other programs had at least a fifth of a CPU there, and half of what it waited. A worker that
//!    needs little may wait without harm, so that it also takes a rate that varies as the waiting does, and
//!    that it was missed: nothing was left to send, or payload waited unread and held the sender; and the reader did not
//!    stand still for longer than any worker waited. Of datagrams the receive buffer tells that: they are lost in it while their
//!    reader waits. Behind a queue of 50 ms nobody misses one that needs next to nothing
//!    and rests most of the time. A
//!    steady rate with a queue on the way is the path's. A stream's sender that pauses nowhere by itself is missed where
//!    nothing is outstanding for a tenth of the time: where all CPUs are full of others' work and no queue is to be seen,
//!    that is told of one that ran or waited for half of the time (0.7 of two hogs on both CPUs, 0.67 of the time with data
//!    outstanding). Where nobody read what the CPUs did: it waited at
//!    least twice as long as it ran, none of our workers had that time, and no quota throttled it.
//! 3. *All full.* All CPUs of a worker's host were busy, and a worker ran or waited for most of the time. Where others used
//!    a tenth of them or more, these are why. But a worker that
//!    hardly waited has a CPU to itself where other programs use more than it. What the hypervisor took is not free
//!    either, but no work of the host's: that is said, and where it took much, also of workers that ran little, if they were
//!    missed and the rate varied.
//! 4. *One full.* The CPU that the worker of a TCP stream was on had no time left, and the worker did not have all of it: the
//!    rest were softirqs, which run in whichever thread they interrupt, or in one that the worker waits for. That it had
//!    none left is read from its idle time, where readings found the worker on it and beyond what ticks resolve; or the
//!    worker ran or waited always, waited for little of the time, and softirqs had as much. A worker that ran always is the
//!    generator. A quota leaves the CPU idle that its workers are on.
//! 5. *Few of them full.* The CPUs on which workers were at any reading were busy while others were idle: taskset, a
//!    cpuset or `-A` keeps them there. A quota would have left these CPUs idle, too.
//!
//! Where control groups are not mounted (`ip netns exec`), a quota may be why, and neither 2 nor 3 is said; but 3 is where
//! the CPUs are full of our own work: who is throttled leaves them idle. Of both ends on one machine one might be while
//! the other fills them; it would get much less than it waits.
//! Workers that spin are busy by design, and say nothing of what they need, nor do those that sent all that was asked for
//! (they spin before each datagram). What carries a tunnel's packets on its host is no other program.

use std::collections::BTreeSet;

use linerate_model::HostName;
use linerate_model::finding::Estimate;
use linerate_model::host::CPU_QUOTA_VISIBLE;
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::setting;
use linerate_model::workload::Workload;

use super::evidence;
use super::pacing::loses_unread;
use super::repeat;
use super::rule::{Judge, Rule};
use super::slow_reader::stopped_at_most;
use super::trial::{
    ELASTICITY_MIN, MOST, STEAL_SHARE_LARGE, UNEVEN_VARIATION_MIN, VARIATION_LINE_MAX, hides_path,
    pacing_costs, shortest_ns,
};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{
    self, Amount, Outcome, Values, WAIT_SHARE_MIN, WORKER_SATURATED_SHARE, describe, is_starved,
    name,
};
use crate::words;

/// Share of the periods, and of the window, from which on a quota is what holds.
const THROTTLED_PERIODS_MIN: f64 = 0.1;
const THROTTLED_SHARE_MIN: f64 = 0.05;
/// Quotient of what both halves of a window carried from which on the quota, or what it held, was another meanwhile.
const CHANGED_MIN: f64 = 2.0;
/// Share of the periods from which on all are: readings are as far apart as periods are long, so that the rate seems steady.
const THROTTLED_PERIODS_ALL: f64 = 0.9;
/// Seconds of a quota's period, unless it was set.
const PERIOD_S: f64 = 0.1;
/// Share of the time that a worker ran or waited for a CPU from which on it would do more with one.
const WANTED_SHARE_MIN: f64 = 0.85;
/// Seconds of what arrives that lie unread where the reader is waited for: one that is prompt takes some
/// tens of microseconds.
const UNREAD_S_MIN: f64 = 1e-3;
/// Share of the time that a worker runs up to which it needs next to nothing.
const RAN_SHARE_SMALL: f64 = 0.05;
/// A queue longer than what a thread waits for a CPU.
const QUEUE_NS_LONG: f64 = 50e6;
/// CPUs of other programs from which on they can be what a worker waited for.
const OTHERS_CPUS_MIN: f64 = 0.2;
/// Share of a host's CPUs from which on others' part of full ones is why.
const OTHERS_SHARE_MIN: f64 = 0.1;
/// Share of all CPUs' time from which on none is free; ticks count to some percent.
const CPUS_FULL_SHARE_MIN: f64 = 0.95;
/// Share of it from which on what the hypervisor took is why.
const STEAL_SHARE_MIN: f64 = 0.05;
/// Share of the time with data outstanding up to which a sender that pauses nowhere by itself is missed.
const BUSY_SHARE_MAX: f64 = 0.9;
/// Share of the time that a worker waits for a CPU up to which it has one to itself.
const WAIT_SHARE_SMALL: f64 = 0.1;
/// Share of the receive buffer that is unread, and of the time that the window holds the sender, from which on a late
/// reader may hold it.
const UNREAD_SHARE_MIN: f64 = 0.25;
const LATE_HELD_SHARE_MIN: f64 = 0.1;

pub(super) const QUOTA: Rule = Rule {
    limiter: Limiter::CpuQuota,
    needs: "throttled in a tenth of the control group's periods",
    importance: 1,
    explains_failure: true,
    judge: Judge::Cell(quota),
    evident: Some(|_, cell| {
        let words = "find what keeps workers from idle CPUs: a quota (cpu.max), taskset or cpuset, a real-time task";
        let is_counted = cell.mean(name::THROTTLED_PERIODS).is_some();
        (!is_counted).then(|| words.to_owned())
    }),
    next: |_| Some("raise the quota (cpu.max; a container's CPU limit), then repeat".to_owned()),
};

pub(super) const OTHERS: Rule = Rule {
    limiter: Limiter::OtherPrograms,
    needs: "a worker waited a quarter of the time, and others had half as much of a CPU",
    importance: 1,
    explains_failure: true,
    judge: Judge::Cell(others),
    evident: None,
    next: |_| Some("stop the other programs, or repeat when both hosts are quiet".to_owned()),
};

pub(super) const FULL: Rule = Rule {
    limiter: Limiter::Cpu,
    needs: "all CPUs of a worker's host busy, or those that workers ran on, and it ran or waited nearly always",
    importance: 4,
    explains_failure: true,
    judge: Judge::Cell(full),
    evident: Some(|dataset, cell| {
        let words = "give each end CPUs of its own: a wider taskset or cpuset";
        let apart = || waits_on_few(cell).then(|| words.to_owned());
        let spread = || one_full(dataset, cell).map(|_| next_of_one(&cell.workload));
        unpin(dataset, cell).or_else(apart).or_else(spread)
    }),
    next: next_of_full,
};

pub(super) const ONE_FULL: Rule = Rule {
    judge: Judge::Cell(one_full),
    ..FULL
};

/// What to do about workers that waited where the caller put them.
pub(super) fn unpin(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let waits_where_pinned = is_pinned(dataset, cell) && waits_beside_idle(cell);
    waits_where_pinned.then(|| match cell.workload.manner.cpus {
        Some(_) => "repeat with more CPUs (`--cpus`)".to_owned(),
        None => "repeat without `-A`, or with more CPUs in it".to_owned(),
    })
}

fn next_of_full(workload: &Workload) -> Option<String> {
    if workload.manner.transport == Transport::Udp {
        let words = "compare `--batch 16`, larger datagrams, or hosts with more CPUs";
        return Some(words.to_owned());
    }
    let fewer = if workload.connections == 1 {
        ""
    } else {
        "fewer flows, "
    };
    let uncopied = repeat::uncopied(workload);
    Some(format!(
        "compare {fewer}larger messages, {uncopied}or hosts with more CPUs"
    ))
}

fn next_of_one(workload: &Workload) -> String {
    let more = workload.connections.saturating_mul(2).max(4);
    let uncopied = repeat::uncopied(workload);
    format!(
        "spread the load over CPUs: compare `-P {more}`, {uncopied}or softirqs on other CPUs (RPS, `-A`)"
    )
}

pub(super) const BESIDE_IDLE: Rule = Rule {
    judge: Judge::Cell(beside_idle),
    ..QUOTA
};

fn quota(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let periods = cell.estimate(name::THROTTLED_PERIODS)?;
    let time = cell.estimate(name::THROTTLED)?;
    let is_of_path = may_be_steady_behind_queue(cell)
        && !is_missed(cell)
        && (periods.value < THROTTLED_PERIODS_ALL
            || outlasts(cell, PERIOD_S * time.value / periods.value));
    // Half of the window was another: periods are counted only while there is a quota.
    let halves = cell.mean(name::HALVES);
    let has_changed =
        halves.is_some_and(|second| !(1.0 / CHANGED_MIN..=CHANGED_MIN).contains(&second));
    let is_little = periods.value < THROTTLED_PERIODS_MIN || time.value < THROTTLED_SHARE_MIN;
    if is_little || is_of_path || has_changed {
        return None;
    }
    let allowed = cell.estimate(name::QUOTA);
    let allowed = allowed.map_or(String::new(), |cpus| {
        format!(" of {}", words::estimate(&cpus))
    });
    made(
        cell,
        Limiter::CpuQuota,
        periods,
        format!(
            "A CPU quota{allowed} limits the number: at {} the control group was throttled in {} of its \
             periods.",
            words::estimate(&cell.main()?),
            words::percent(periods.value),
        ),
        "Its threads are stopped for the rest of each period, even if CPUs are idle. A larger quota \
         (cpu.max, cpu.cfs_quota_us; a container's CPU limit) or less work raises the number.",
    )
}

/// Whether what lies unsent lasts for longer than `seconds`, at the rate that there is.
fn outlasts(cell: &CellOutcomes<'_>, seconds: f64) -> bool {
    let flows = f64::from(cell.workload.connections);
    let unsent = cell.mean(name::UNSENT).zip(cell.mean(name::THROUGHPUT));
    unsent.is_some_and(|(bytes, bps)| flows * bytes * 8.0 >= seconds * bps)
}

/// Whether packets may wait on the way for longer than a thread does for a CPU: they do, or nobody knows.
fn may_wait_longer(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let shortest = Amount::from(shortest_ns(dataset, cell));
    let queue_ns = cell.amount(name::TCP_RTT) - shortest;
    cell.workload.manner.transport.is_tcp() && !queue_ns.stays_below(QUEUE_NS_LONG)
}

fn others(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    if hides_quota(dataset, cell) {
        return None;
    }
    let (wanted, waited) = wants(cell)?;
    let ran = wanted - waited.value;
    let would_do_more = wanted >= WANTED_SHARE_MIN
        || (is_uneven(cell) && is_missed(cell))
        || (loses_unread(cell) && shows_quota(dataset, cell))
        || (wanted >= MOST && lacks_sender(cell) && shows_quota(dataset, cell));
    // Who waits for a CPU reads late; who was stopped waits for none.
    let stopped = stopped_at_most(cell);
    let may_have_stopped = stopped.reaches(MOST) && stopped.exceeds(waited.value);
    // It rests most of the time, and what it makes wait is little beside what waits on the way.
    let rests = ran < RAN_SHARE_SMALL && wanted < MOST;
    if rests && may_wait_longer(dataset, cell) {
        return None;
    }
    if waited.value < WAIT_SHARE_MIN || !would_do_more || may_have_stopped {
        return None;
    }
    let others = cell.estimate(name::OTHERS_THERE);
    let used = match &others {
        Some(others) if others.value >= others_min(waited.value) => {
            format!("while they used {}", words::estimate(others))
        }
        // Something runs while it waits, and it is neither we nor a quota.
        None if cell.mean(name::CPU_BUSY_SHARE).is_none()
            && is_starved(waited.value, ran)
            && ours(cell).is_some_and(|cpus| cpus < waited.value / 2.0)
            && cell.mean(name::THROTTLED_PERIODS) == Some(0.0) =>
        {
            "and what else ran was not observed".to_owned()
        }
        _ => return None,
    };
    made(
        cell,
        Limiter::OtherPrograms,
        waited,
        format!(
            "Other programs have the CPUs: at {} a worker ran {} of the time and waited for a CPU {} of \
             it, {used}.",
            words::estimate(&cell.main()?),
            words::percent(ran),
            words::percent(waited.value),
        ),
        OTHERS_EXPLAINED,
    )
}

const OTHERS_EXPLAINED: &str = "The number is a lower bound of what these hosts can do. Stop the other programs, or give both \
                                CPUs of their own.";

/// Whether the kernel had to wait for a worker: a sender had nothing left to send, or payload lay unread for
/// a while and left the sender little window. True where nobody knows.
fn is_missed(cell: &CellOutcomes<'_>) -> bool {
    let has_nothing_to_send = || Some(cell.mean(name::UNSENT)? <= cell.mean(name::SEND_MSS)?);
    let is_unread = || {
        let flows = f64::from(cell.workload.connections);
        let bytes_per_s = cell.mean(name::THROUGHPUT)? / 8.0 / flows;
        let lies = cell.mean(name::UNREAD)? >= UNREAD_S_MIN * bytes_per_s;
        let holds = cell.reaches(name::RWND_LIMITED, LATE_HELD_SHARE_MIN)
            || cell.reaches(name::UNREAD_SHARE, UNREAD_SHARE_MIN);
        Some(lies && holds)
    };
    match (has_nothing_to_send(), is_unread()) {
        (None, None) => true,
        (sender, reader) => sender == Some(true) || reader == Some(true),
    }
}

/// Whether the path rests for want of a sender, while all CPUs are full: a stream that is not asked to pause has nothing
/// outstanding, and no queue stands on the way.
fn lacks_sender(cell: &CellOutcomes<'_>) -> bool {
    cell.stays_within(name::BUSY, BUSY_SHARE_MAX)
        && cell.workload.manner.rate_bps.is_none()
        && cell.amount(name::CPU_BUSY_SHARE).least() + stolen(cell) >= CPUS_FULL_SHARE_MIN
        && cell.stays_below(name::QUEUED, MOST)
}

/// Whether a quota may hold a host's workers and nobody would see it.
fn hides_quota(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let is_hidden = |visible: Option<f64>| visible == Some(0.0);
    cell.mean(name::THROTTLED_PERIODS).is_none() && is_quota_seen(dataset, cell).any(is_hidden)
}

/// Whether a quota that holds a host's workers would have been seen.
fn shows_quota(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let is_visible = |visible: Option<f64>| visible == Some(1.0);
    cell.mean(name::THROTTLED_PERIODS).is_some() || is_quota_seen(dataset, cell).all(is_visible)
}

/// Of each host of the cell, whether a quota can be seen there; absent where the host does not say.
fn is_quota_seen<'d>(
    dataset: &'d Dataset<'_>,
    cell: &CellOutcomes<'_>,
) -> impl Iterator<Item = Option<f64>> + use<'d> {
    let own: BTreeSet<&HostName> = dataset.flows_of(cell).map(|flow| &flow.host).collect();
    let hosts = dataset
        .hosts()
        .iter()
        .filter(move |host| own.contains(&host.name));
    hosts.map(|host| host.snapshot.number(CPU_QUOTA_VISIBLE))
}

/// Whether nothing but our own work has the CPUs, and no worker gets much less of them than others of ours.
fn is_own_work(cell: &CellOutcomes<'_>, wanted: f64, waited: f64) -> bool {
    cell.stays_below(name::OTHERS_THERE, OTHERS_CPUS_MIN) && !is_starved(waited, wanted - waited)
}

/// Returns whether a quota is why the workers of a trial waited for a CPU: for most of what they waited, their control
/// group was throttled.
pub(super) fn waits_under_quota(outcome: &Outcome) -> bool {
    let waited = outcome.value(name::WORKER_WAITED);
    let least = waited.map(|waited| THROTTLED_SHARE_MIN.max(MOST * waited));
    outcome.reaches(name::THROTTLED_PERIODS, THROTTLED_PERIODS_MIN)
        && least.is_some_and(|least| outcome.reaches(name::THROTTLED, least))
}

fn full(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let (wanted, waited) = wants(cell)?;
    if hides_quota(dataset, cell) && !is_own_work(cell, wanted, waited.value) {
        return None;
    }
    let busy = cell.estimate(name::CPU_BUSY_SHARE)?;
    let stolen = stolen(cell);
    let is_taken = stolen >= STEAL_SHARE_LARGE && is_uneven(cell) && is_missed(cell);
    let may_have_more = !cell.stays_below(name::OTHERS_THERE, wanted - waited.value);
    let has_its_own = waited.value < WAIT_SHARE_SMALL && may_have_more && !is_taken;
    if (wanted < WANTED_SHARE_MIN && !is_taken)
        || busy.value + stolen < CPUS_FULL_SHARE_MIN
        || has_its_own
    {
        return None;
    }
    if stolen >= STEAL_SHARE_MIN {
        return made(
            cell,
            Limiter::Cpu,
            busy,
            format!(
                "No CPU time is left: at {} the hypervisor took {} of it (steal) and {} was used, and a worker \
                 ran {} of the time and waited for a CPU {} of it.",
                words::estimate(&cell.main()?),
                words::percent(stolen),
                words::percent(busy.value),
                words::percent(wanted - waited.value),
                words::percent(waited.value),
            ),
            "The number is a lower bound of what this host can do with its CPUs to itself: give the virtual \
             machine CPUs of its own, or measure when its neighbours rest.",
        );
    }
    // User time is no kernel's work for the flows, as that of kernel threads may be.
    let are_much = others_have_time(cell)
        && cell.reaches(name::OTHERS_THERE_USER, OTHERS_CPUS_MIN)
        && cell.reaches(name::OTHERS_THERE_USER_SHARE, OTHERS_SHARE_MIN);
    let others = cell.estimate(name::OTHERS_THERE_USER);
    if let Some(others) = others.filter(|_| are_much) {
        return made(
            cell,
            Limiter::OtherPrograms,
            busy,
            format!(
                "All CPUs are full, and other programs used {} of them: at {} a worker ran {} of the time and waited \
                 for a CPU {} of it.",
                words::estimate(&others),
                words::estimate(&cell.main()?),
                words::percent(wanted - waited.value),
                words::percent(waited.value),
            ),
            OTHERS_EXPLAINED,
        );
    }
    made(
        cell,
        Limiter::Cpu,
        busy,
        format!(
            "All CPUs are full: at {} they were busy {} of the time, and a worker ran {} of it and waited \
             for a CPU {} of it.",
            words::estimate(&cell.main()?),
            words::percent(busy.value),
            words::percent(wanted - waited.value),
            words::percent(waited.value),
        ),
        "The host has no CPU time left for more. Less work for each byte or message (larger calls, \
         offloads, fewer wake-ups) or more CPUs raise the number.",
    )
}

/// The CPU that the worker was on is full with it and with softirqs, whatever others did.
fn one_full(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let workload = &cell.workload;
    let is_stream = workload.traffic.is_stream() && workload.manner.transport.is_tcp();
    let (wanted, waited) = wants(cell).filter(|_| is_stream)?;
    let ran = wanted - waited.value;
    let idle = cell.estimate(name::WORKER_CPU_IDLE)?;
    let softirq = cell.estimate(name::WORKER_CPU_SOFTIRQ)?;
    let is_full = wanted >= WANTED_SHARE_MIN && idle.value <= 1.0 - CPUS_FULL_SHARE_MIN;
    let waits_for_softirqs = wanted >= WORKER_SATURATED_SHARE
        && waited.value < WAIT_SHARE_MIN
        && waited.value <= softirq.value;
    let has_all = ran >= WORKER_SATURATED_SHARE;
    let is_on_few = waits_on_few(cell) || (is_pinned(dataset, cell) && waits_beside_idle(cell));
    let may_be_held = hides_quota(dataset, cell) && !is_own_work(cell, wanted, waited.value);
    if !(is_full || waits_for_softirqs)
        || has_all
        || may_be_held
        || others_have_time(cell)
        || is_on_few
        || is_path_full(cell)
    {
        return None;
    }
    made(
        cell,
        Limiter::Cpu,
        cell.estimate(name::WORKER_WANTED_SHARE_MAX)?,
        format!(
            "One CPU is full: at {} the busiest worker ran {} of the time and waited {} of it for its CPU, \
             which was in interrupts {} and idle {} of it.{}",
            words::estimate(&cell.main()?),
            words::percent(ran),
            words::percent(waited.value),
            words::percent(softirq.value),
            words::percent(idle.value),
            pacing_costs(dataset, cell),
        ),
        "The kernel handles packets on the worker's CPU, partly in the worker's own time. More flows on more CPUs, \
         offloads, or softirqs on another CPU raise the number.",
    )
}

/// A worker waits beside idle CPUs: those that it may use are full, or nobody counts throttling.
fn beside_idle(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let (wanted, waited) = wants(cell)?;
    let busy = cell.estimate(name::CPU_BUSY_SHARE)?;
    let is_counted = cell.mean(name::THROTTLED_PERIODS).is_some();
    let is_starved = wanted >= WANTED_SHARE_MIN && waited.value >= WAIT_SHARE_MIN;
    // Others may have had them for a part of the time.
    let has_others = cell.reaches(name::OTHERS_THERE, others_min(waited.value));
    let is_full = busy.value + stolen(cell) >= CPUS_FULL_SHARE_MIN;
    let is_on_few = are_full_where_workers_ran(cell);
    if !is_starved || is_full || has_others || (is_counted && !is_on_few) {
        return None;
    }
    let (whose, explanation) = if is_pinned(dataset, cell) {
        let how = match cell.workload.manner.cpus {
            Some(_) => "that workers were confined to (--cpus)",
            None => "that workers were pinned to (-A)",
        };
        (
            how,
            "The number is what these CPUs can do. More of them, or none asked for, raise it.",
        )
    } else if is_on_few {
        (
            "that workers ran on",
            "Something keeps them there: taskset or a cpuset. More flows add work and no CPUs; more CPUs, so that \
             each end has its own, raise the number.",
        )
    } else {
        return unseen_quota(cell, wanted, waited);
    };
    made(
        cell,
        Limiter::Cpu,
        waited,
        format!(
            "The CPUs {whose} are full: at {} a worker waited for one {} of the time and ran {} of it, while \
             others were idle.",
            words::estimate(&cell.main()?),
            words::percent(waited.value),
            words::percent(wanted - waited.value),
        ),
        explanation,
    )
}

/// Something keeps a worker from idle CPUs, and it is not known what.
fn unseen_quota(cell: &CellOutcomes<'_>, wanted: f64, waited: Estimate) -> Option<Verdict> {
    made(
        cell,
        Limiter::CpuQuota,
        waited,
        format!(
            "A CPU quota, or CPUs that it may not use, limit the number: at {} a worker waited for a CPU \
             {} of the time and ran {} of it, while CPUs were idle.",
            words::estimate(&cell.main()?),
            words::percent(waited.value),
            words::percent(wanted - waited.value),
        ),
        "The control group's throttling counter (cpu.stat), which would distinguish the two, was not read.",
    )
}

/// Whether the caller said which CPUs the workers of both ends run on.
fn is_pinned(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let mut own = dataset.flows_of(cell).peekable();
    own.peek().is_some()
        && own.all(|flow| {
            let placed = flow.settings.named(setting::name::PLACEMENT);
            let asked = placed.and_then(|setting| setting.requested.as_deref());
            asked.is_some_and(|asked| asked != setting::AUTO)
        })
}

/// Whether workers waited for the CPUs that they ran on, while others were idle.
fn waits_on_few(cell: &CellOutcomes<'_>) -> bool {
    are_full_where_workers_ran(cell) && waits_beside_idle(cell)
}

fn waits_beside_idle(cell: &CellOutcomes<'_>) -> bool {
    let busy = cell.mean(name::CPU_BUSY_SHARE);
    cell.reaches(name::WORKER_WAITED, WAIT_SHARE_MIN)
        && busy.is_some_and(|busy| busy + stolen(cell) < CPUS_FULL_SHARE_MIN)
}

/// Whether the CPUs that workers ran on were busy.
fn are_full_where_workers_ran(cell: &CellOutcomes<'_>) -> bool {
    cell.reaches(name::WORKER_CPUS_BUSY, CPUS_FULL_SHARE_MIN)
}

/// Returns who is behind the waiting that makes most of a round trip, and how a claim begins, where that is known.
pub(super) fn of_waiting(cell: &CellOutcomes<'_>) -> Option<(Limiter, &'static str)> {
    let waited = cell.mean(name::WORKER_WAITED)?;
    let busy = cell.mean(name::CPU_BUSY_SHARE)?;
    let others = cell.amount(name::OTHERS_THERE);
    Some(
        if cell.reaches(name::THROTTLED_PERIODS, THROTTLED_PERIODS_MIN) {
            (Limiter::CpuQuota, "Waiting for a CPU under a quota")
        } else if others.reaches(others_min(waited)) {
            (
                Limiter::OtherPrograms,
                "Waiting for a CPU that other programs have",
            )
        } else if busy + stolen(cell) >= CPUS_FULL_SHARE_MIN {
            if stolen(cell) >= STEAL_SHARE_MIN {
                (Limiter::Cpu, "Waiting for a CPU that the hypervisor took")
            } else {
                (Limiter::Cpu, "Waiting for a CPU, since all are full,")
            }
        } else {
            others.known()?;
            (Limiter::RoundTrip, "Waiting for a CPU")
        },
    )
}

/// What the worker that wanted a CPU most ran or waited, and what of that it waited.
fn wants(cell: &CellOutcomes<'_>) -> Option<(f64, Estimate)> {
    if cell.workload.manner.spins() || sends_as_asked(cell) {
        return None;
    }
    let wanted = cell.mean(name::WORKER_WANTED_SHARE_MAX)?;
    let waited = cell.estimate(name::WORKER_WAITED)?;
    (!is_of_path(cell, wanted, waited.value)).then_some((wanted, waited))
}

/// Returns whether a worker that waits does no harm: it needs little, and the rate is steady behind a
/// queue on the way.
pub(super) fn is_of_path(cell: &CellOutcomes<'_>, wanted: f64, waited: f64) -> bool {
    is_starved(waited, wanted - waited) && is_steady_behind_queue(cell)
}

/// Whether the path held what workers carried, however busy they were: the rate is a line's, the queue on the way goes
/// with what is in flight, and neither end missed its worker. What packets wait for CPUs is as long whatever is in
/// flight (elasticity 0.04 to 0.13 of paths without offloads, and 0.5 of a full one).
pub(super) fn is_path_full(cell: &CellOutcomes<'_>) -> bool {
    cell.stays_within(name::RATE_VARIATION, VARIATION_LINE_MAX)
        && cell.reaches(name::RTT_ELASTICITY, ELASTICITY_MIN)
        && is_steady_behind_queue(cell)
        && !is_missed(cell)
        && !cell.valid.iter().any(hides_path)
}

/// The rate varies as that of a worker that is held up.
fn is_uneven(cell: &CellOutcomes<'_>) -> bool {
    cell.reaches(name::RATE_VARIATION, UNEVEN_VARIATION_MIN)
}

/// The rate is steady, and a queue stands on the way.
fn is_steady_behind_queue(cell: &CellOutcomes<'_>) -> bool {
    cell.stays_below(name::RATE_VARIATION, UNEVEN_VARIATION_MIN) && cell.reaches(name::QUEUED, MOST)
}

/// The same of a stream over TCP, or nobody knows.
fn may_be_steady_behind_queue(cell: &CellOutcomes<'_>) -> bool {
    cell.workload.traffic.is_stream()
        && cell.workload.manner.transport == Transport::Tcp
        && !is_uneven(cell)
        && !cell.stays_below(name::QUEUED, MOST)
}

/// Datagrams of a rate that was asked for were sent whole, and none was lost for want of a reader.
fn sends_as_asked(cell: &CellOutcomes<'_>) -> bool {
    reduce::sends_as_asked(&cell.workload, cell) && !loses_unread(cell)
}

/// Share of all CPUs' time that the hypervisor took.
fn stolen(cell: &CellOutcomes<'_>) -> f64 {
    cell.amount(name::CPU_STEAL_SHARE).least()
}

/// CPUs' worth of all our workers.
fn ours(cell: &CellOutcomes<'_>) -> Option<f64> {
    let client = cell.mean(name::CLIENT_WORKERS)?;
    Some(client + cell.mean(name::SERVER_WORKERS)?)
}

/// What other programs use at the least where a worker waits for them: while it waits, something runs.
fn others_min(waited_share: f64) -> f64 {
    OTHERS_CPUS_MIN.max(0.5 * waited_share)
}

/// Returns whether other programs had CPU time of a host from which on they can be what is waited for.
pub(super) fn others_have_time(cell: &CellOutcomes<'_>) -> bool {
    cell.reaches(name::OTHERS_THERE, OTHERS_CPUS_MIN)
}

fn made(
    cell: &CellOutcomes<'_>,
    limiter: Limiter,
    effect: Estimate,
    claim: String,
    explanation: &str,
) -> Option<Verdict> {
    let response = &cell.experiment.response;
    Some(Verdict {
        limiter,
        claim,
        explanation: explanation.to_owned(),
        weight: effect.value,
        effect,
        evidence: cell.proof(&[
            (describe(response).title, response),
            evidence::WORKER_RAN,
            (
                "share of the time that a worker waited for a CPU, highest of all workers",
                name::WORKER_WAITED,
            ),
            (
                "share of all CPUs' time that was busy on its host",
                name::CPU_BUSY_SHARE,
            ),
            (
                "share of the time that the CPUs that workers ran on were busy",
                name::WORKER_CPUS_BUSY,
            ),
            (
                "share of the time that the CPU of the busiest worker was idle, less what ticks resolve",
                name::WORKER_CPU_IDLE,
            ),
            (
                "share of the time that the CPU of the busiest worker was in interrupts",
                name::WORKER_CPU_SOFTIRQ,
            ),
            (
                "share of all CPUs' time that the hypervisor took on its host",
                name::CPU_STEAL_SHARE,
            ),
            (
                "CPUs that other programs used on its host",
                name::OTHERS_THERE,
            ),
            (
                "share of its periods in which the control group was throttled",
                name::THROTTLED_PERIODS,
            ),
            (
                "time that its threads were throttled, of all CPUs together, as a share of the window",
                name::THROTTLED,
            ),
        ])?,
    })
}
