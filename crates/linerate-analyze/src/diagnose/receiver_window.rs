//! The receiver's window: what is told of it, and why it is as small as it is.
//!
//! That it limits is found in [`super::stream`]. What helps differs: a window without scaling stays below
//! 64 KiB whatever the buffer is; a buffer that was set ends auto-tuning; auto-tuning ends at the host's
//! limit.

use linerate_model::finding::Estimate;
use linerate_model::limiter::Limiter;
use linerate_model::metric::Metric;
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::sample::Subject;
use linerate_model::setting;
use linerate_model::unit::Unit;
use linerate_model::workload::Part;

use super::evidence;
use super::link_rate::share_of;
use super::memory_pressure;
use super::repeat;
use super::rule::{Judge, Rule};
use super::trial::{
    CEILING_MAX, MOST, NEAR_QUOTIENT_MAX, TrialView, auto_buffer, hosts_of, turns_per_s,
};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Readings, Values, WORKER_SATURATED_SHARE, name};
use crate::words;

/// Share of the host's limit from which on a window that grew by itself has reached it: half of the
/// buffer is window before Linux 6.6 with tcp_adv_win_scale 1, and less with small segments.
const AT_LIMIT_SHARE_MIN: f64 = 0.4;

/// Largest window without scaling (RFC 9293).
const UNSCALED_WINDOW_MAX: f64 = 65_535.0;
/// Share of it from which on the field is full: with one segment on its way less is to be seen.
const FIELD_FULL_SHARE_MIN: f64 = 0.95;
/// How many times the window that the sender sees the receiver offers where something between them has its own: 1.0 to
/// 1.1 were seen of the same, read a moment apart, and 34 and 134 behind proxies.
pub(super) const OFFERED_QUOTIENT_MIN: f64 = 2.0;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::ReceiverWindow,
    needs: "a full window, round trips near the shortest, and their quotient is the rate",
    importance: 1,
    explains_failure: false,
    judge: Judge::Cause(window_fits, tell),
    evident: Some(mend),
    next: |workload| Some(repeat::with_buffer(workload, "tcp_rmem", "receiver")),
};

/// What to do about what keeps the window small, where it is not the receiver's buffer alone.
fn mend(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    if let Some(short) = memory_pressure::at(dataset, cell, Part::Receiver) {
        return Some(short.mend());
    }
    let words = if is_by_cookies(dataset, cell) {
        "turn on net.ipv4.tcp_timestamps at both ends, without which a SYN cookie carries no window scaling, or let the server \
         answer without cookies (net.ipv4.tcp_syncookies, a larger backlog)"
    } else if is_unscaled(dataset, cell) {
        "turn on net.ipv4.tcp_window_scaling at both ends; where it is on, find what removes the option"
    } else if is_of_another(dataset, cell) {
        "find what ends the connection between the hosts: a proxy, a load balancer, a middlebox"
    } else if is_field_full(cell) {
        "look at `ip route get CLIENT` at the receiver (window), then for what changes window scaling on the \
         way, or for a proxy"
    } else if is_untuned(dataset, cell) {
        "turn on net.ipv4.tcp_moderate_rcvbuf at the receiver, or compare a larger `-w`"
    } else if cell.workload.options.socket_buffer.is_some() {
        return None;
    } else {
        let bytes = window_bytes(cell).filter(|bytes| repeat::is_large(*bytes))?;
        if is_at_limit(dataset, cell) {
            return Some(repeat::with_larger(bytes, "tcp_rmem", "receiver"));
        }
        "repeat for longer (a larger `-t`): the window may still grow; where it stays, look at `ip route get CLIENT` at the \
         receiver (window)"
    };
    Some(words.to_owned())
}

pub(super) fn window_fits(trial: &TrialView<'_>) -> bool {
    let Some(window) = trial
        .value(name::SEND_WINDOW)
        .filter(|_| trial.window_is_full() && !trial.collapses() && reads_in_time(trial))
    else {
        return false;
    };
    if trial.reaches(name::UNREAD_SHARE, MOST) && trial.is_long() {
        return false;
    }
    if trial.is_long() {
        let within = |ceiling: f64| (1.0 / NEAR_QUOTIENT_MAX..=CEILING_MAX).contains(&ceiling);
        return trial.is_near() && trial.ceiling(window).is_some_and(within);
    }
    // A window that nobody set is as small where the reader is slow, which the receiving end shows alone.
    let is_read = trial.value(name::UNREAD_SHARE).is_some();
    let is_small = trial.setup.buffer_is_set || (is_read && window <= UNSCALED_WINDOW_MAX);
    is_small && trial.reaches(name::RWND_LIMITED, MOST) && !trial.may_be_queued()
}

/// Whether no worker runs all the time: a reader that does makes the window small.
fn reads_in_time(trial: &TrialView<'_>) -> bool {
    trial.stays_below(name::WORKER_BUSY_SHARE_MAX, WORKER_SATURATED_SHARE)
}

fn tell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let window = window_bytes(cell)?;
    let allowed = window * 8.0 * turns_per_s(dataset, cell)?;
    let times = match cell.workload.connections {
        1 => String::new(),
        flows => format!("{flows} × "),
    };
    // The kernel counts time at a full send buffer as that alone, also while the window is full.
    let waiting = cell.mean(name::RWND_LIMITED)?;
    let waited = (waiting >= MOST).then(|| {
        let share = words::percent(waiting);
        format!(", and the sender waited for the window {share} of the time")
    });
    let waited = waited.unwrap_or_default();
    let evidence = cell.proof_with(
        &[
            ("throughput", name::THROUGHPUT),
            ("window that the receiver advertises", name::SEND_WINDOW),
            ("shortest round trip", name::TCP_MIN_RTT),
            ("smoothed round trip", name::TCP_RTT),
            ("share of the window in flight", name::WINDOW_FILLED),
            evidence::AT_WINDOW,
            evidence::UNREAD,
        ],
        [(
            "throughput that window and shortest round trip allow (computed)",
            Estimate::point(allowed, Unit::BitsPerSecond),
        )],
    )?;
    let unscaled = if is_unscaled(dataset, cell) {
        "; it is not scaled, so that no window exceeds 65 535 B"
    } else {
        ""
    };
    Some(Verdict {
        limiter: Limiter::ReceiverWindow,
        claim: format!(
            "The receive window limits throughput to {}: {times}{} in each round trip of {}{waited}\
             {unscaled}.",
            words::estimate(&throughput),
            words::number(Unit::Bytes, window),
            words::number(Unit::Nanoseconds, cell.mean(name::TCP_RTT)?),
        ),
        explanation: format!(
            "{} At most one window can be in flight at a time, and no queue on the path made the round trip long.",
            why(dataset, cell, window)
        ),
        effect: share_of(&throughput, allowed),
        evidence,
        weight: waiting,
    })
}

/// Why the window is as small as it is, and what helps.
fn why(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, window: f64) -> String {
    if let Some(short) = memory_pressure::at(dataset, cell, Part::Receiver) {
        return short.why();
    }
    if is_of_another(dataset, cell) {
        let offered = cell.mean(name::OFFERED_WINDOW).unwrap_or(window);
        return format!(
            "It is not the receiver's own, which offers {}: something between them ends the connection or \
             rewrites windows (a proxy, a middlebox), and reads slowly or has a small buffer. Buffers of the \
             hosts change nothing.",
            words::number(Unit::Bytes, offered)
        );
    }
    if is_by_cookies(dataset, cell) {
        return "The server answers SYNs with cookies (net.ipv4.tcp_syncookies), and timestamps are off, in which alone a \
                cookie can keep window scaling and SACK: connections have neither, and no window exceeds 65 535 B. Turn on \
                net.ipv4.tcp_timestamps at both ends, or have the server answer without cookies: tcp_syncookies 1 and a \
                larger backlog."
            .to_owned();
    }
    if is_unscaled(dataset, cell) {
        return "The handshake did not negotiate window scaling, so no window exceeds 65 535 B: a larger \
                receive buffer cannot help. Turn on net.ipv4.tcp_window_scaling at both ends; where it is \
                on, something on the path removes the option."
            .to_owned();
    }
    if let Some(buffer) = cell.workload.options.socket_buffer {
        return format!(
            "SO_RCVBUF was set to {buffer}, which ends autotuning. Without it, or with a larger one, \
             throughput grows until something else limits it."
        );
    }
    if is_field_full(cell) {
        return "It is as large as a window can be whose field is not scaled (65 535 B), and the receiver has room for \
                more: a route of the receiver bounds it (ip route … window), something on the way changes the \
                handshake's option, or a proxy between them has a buffer of this size. Buffers of the hosts change \
                nothing."
            .to_owned();
    }
    if is_untuned(dataset, cell) {
        return "net.ipv4.tcp_moderate_rcvbuf is 0 at the receiver: the kernel does not tune the window, which stays at \
                what the second value of net.ipv4.tcp_rmem gives."
            .to_owned();
    }
    let Some(limit) = auto_buffer(dataset, cell, Part::Receiver) else {
        return "The receiver's net.ipv4.tcp_rmem was not read: autotuning has reached its third value, the \
                window is still growing, the program at the receiver set SO_RCVBUF, or a route bounds it (ip \
                route … window)."
            .to_owned();
    };
    if window >= AT_LIMIT_SHARE_MIN * limit {
        return format!(
            "Autotuning has reached the third value of net.ipv4.tcp_rmem, {}; a larger one lets the window \
             grow until something else limits throughput.",
            words::number(Unit::Bytes, limit)
        );
    }
    "The window is below what autotuning may reach: it is still growing, the program at the receiver set \
     SO_RCVBUF, or a route bounds it (ip route … window)."
        .to_owned()
}

/// Whether auto-tuning has brought the window to the host's limit.
fn is_at_limit(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let known = window_bytes(cell).zip(auto_buffer(dataset, cell, Part::Receiver));
    known.is_some_and(|(window, limit)| window >= AT_LIMIT_SHARE_MIN * limit)
}

/// Whether the window that the sender sees is not the one that the receiver offers.
pub(crate) fn is_of_another(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    offers_more(cell) && !is_unscaled(dataset, cell) && !is_field_full(cell)
}

fn offers_more(cell: &CellOutcomes<'_>) -> bool {
    let windows = cell
        .mean(name::SEND_WINDOW)
        .zip(cell.mean(name::OFFERED_WINDOW));
    windows.is_some_and(|(seen, offered)| offered >= OFFERED_QUOTIENT_MIN * seen)
}

/// Whether the window fills its field of 16 bits, so that a receiver whose scale is 0 cannot offer what it has: the
/// kernel keeps the window that it would offer (tcp_select_window).
pub(crate) fn is_field_full(cell: &CellOutcomes<'_>) -> bool {
    let full = FIELD_FULL_SHARE_MIN * UNSCALED_WINDOW_MAX..=UNSCALED_WINDOW_MAX;
    let window = cell.mean(name::SEND_WINDOW);
    offers_more(cell) && window.is_some_and(|bytes| full.contains(&bytes))
}

/// Whether the receiver's kernel was told not to tune the buffer.
pub(crate) fn is_untuned(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let tunes = "sysctl.net.ipv4.tcp_moderate_rcvbuf";
    let mut receivers = hosts_of(dataset, cell, Part::Receiver);
    cell.workload.options.socket_buffer.is_none()
        && receivers.any(|host| host.snapshot.number(tunes) == Some(0.0))
}

/// Whether no receive buffer can make the window larger, since the handshake agreed on no window scaling.
pub(crate) fn is_unscaled(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let is_small = window_bytes(cell).is_some_and(|window| window <= UNSCALED_WINDOW_MAX);
    is_small && !scales(dataset, cell)
}

/// Whether the handshakes agreed on no window scaling since the server answered with SYN cookies, which keep it in the
/// timestamp alone (`cookie_timestamp_decode` in net/ipv4/syncookies.c): always where it was told to, else where it has.
fn is_by_cookies(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let mut servers = dataset.hosts().iter();
    let Some(server) = servers.find(|host| host.part == HostPart::Server) else {
        return false;
    };
    let is_off =
        |host: &HostRecord| host.snapshot.number("sysctl.net.ipv4.tcp_timestamps") == Some(0.0);
    let opened = || {
        let trial = cell.valid.first()?.trial;
        let readings = Readings::of(dataset.recording, dataset.recording.record(trial)?);
        let metric = Metric::NetstatSyncookiesRecv;
        let all = readings.on(&server.name, &Subject::Host, metric)?;
        Some(all.last()?.1 > 0)
    };
    let answers = match server.snapshot.number("sysctl.net.ipv4.tcp_syncookies") {
        Some(2.0) => true,
        Some(1.0) => opened() == Some(true),
        _ => false,
    };
    is_unscaled(dataset, cell) && answers && dataset.hosts().iter().any(is_off)
}

/// Whether windows are scaled: by what the handshakes agreed on, else by the hosts' settings.
fn scales(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let mut agreed = dataset
        .flows_of(cell)
        .filter_map(|flow| flow.settings.agreed_on(setting::WINDOW_SCALING));
    if let Some(scales) = agreed.next() {
        return scales;
    }
    let off = |number: Option<f64>| number == Some(0.0);
    !dataset
        .hosts()
        .iter()
        .any(|host| off(host.snapshot.number("sysctl.net.ipv4.tcp_window_scaling")))
}

/// Returns the window that the receiver offers each flow.
pub(crate) fn window_bytes(cell: &CellOutcomes<'_>) -> Option<f64> {
    let asked = || {
        cell.workload
            .options
            .socket_buffer
            .map(|buffer| buffer.0 as f64)
    };
    cell.mean(name::SEND_WINDOW)
        .or_else(asked)
        .filter(|bytes| *bytes >= 1.0)
}
