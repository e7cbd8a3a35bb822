//! What to do next about the limiter of one measurement, in one line: flags to repeat it with, or where to
//! look. Nothing of it was measured to help; a study's recommendations are.

use linerate_model::Bytes;
use linerate_model::finding::{Finding, FindingKind, Limiter};
use linerate_model::manner::{SendBy, Transport};
use linerate_model::unit::Unit;
use linerate_model::wire::INITIAL_WINDOW_SEGMENTS;
use linerate_model::workload::{Direction, Kind, Workload};

use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::{self, DATAGRAM_BYTES_MAX, KeptSmall, Part, Way};
use crate::reduce::{SEGMENT_BYTES, name};

/// What to try where no rule holds.
pub(crate) const WHERE_UNKNOWN: &str =
    "repeat with `--capture -o DIR`: its report shows where time goes";

/// What to try where no rule holds and the rate had not settled, or the window has few round trips.
pub(crate) const WHERE_UNSETTLED: &str =
    "repeat for longer (`-t 10`), and with `--capture -o DIR`: its report shows where time goes";

/// What to try where no rule holds and others had much of the CPUs.
pub(crate) const WHERE_DISTURBED: &str =
    "repeat when both hosts are quiet: `linerate watch` shows what runs there";

/// What to try where no rule holds and other traffic passed a device of the flows.
pub(crate) const WHERE_SHARED: &str =
    "stop the other traffic (`ss -ti` shows whose it is), then repeat";

/// What to try where datagrams are lost and no rule holds.
pub(crate) const WHERE_LOST: &str = "repeat with `-b` of what each flow received: loss that ends was a full queue, loss \
                                     that stays is not of rate";

/// What to do where an agent was lost.
pub(crate) const WHERE_LOST_HOST: &str =
    "find out why the agent stopped, start `linerate serve` there again, and repeat";

/// What to do where no request of a trial was answered in time.
pub(crate) const WHERE_UNANSWERED: &str = "repeat for longer (`-t`) and with one request at a time (`-P 1`): where that is \
                                           answered, so many at once, or such large ones, take longer than the window";

/// What to do where flows do not share.
pub(crate) const WHERE_UNSHARED: &str = "repeat for longer (`-t`), or with fewer flows (`-P`): each needs its share \
                                         of the window";

/// What to do where flows do not share, and lose many segments: a longer window starves others of them.
pub(crate) const WHERE_STARVED: &str = "repeat with fewer flows (`-P`): the queue before the slowest hop drops so much that \
                                        some flows hardly get through; a longer queue there, or fq_codel, lets them share";

/// What to do where datagrams do not fit the receive buffer.
pub(crate) const WHERE_BUFFER_FULL: &str =
    "repeat with a larger `-w`, or a lower `-b`: the receive buffer was full";

/// Returns what the evidence of `cell` says to do about `limiter`, where that is not what is done about others of its
/// kind.
pub(crate) fn evident(
    limiter: Limiter,
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
) -> Option<String> {
    let of_direction = |[shown, _]: &[Way<'_>; 2]| {
        let verdict = shown.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.limiter == limiter)
    };
    if let Some([shown, other]) = diagnose::ways(dataset, cell).filter(of_direction) {
        return match other.verdict {
            Some(_) => evident(limiter, dataset, &shown.cell),
            None => Some(format!(
                "measure what goes {} alone, {}: what limits it is not known",
                other.words,
                match other.cell.workload.traffic.direction() {
                    Some(Direction::FromServer) => "with `-R` in the place of `--bidir`",
                    _ => "without `--bidir`",
                }
            )),
        };
    }
    let own = cell.workload.options.socket_buffer.is_none();
    let words = match limiter {
        Limiter::PathRate if diagnose::shares_full_path(cell) => WHERE_SHARED,
        Limiter::PathRate if diagnose::waits_in_own_qdisc(dataset, cell) => {
            "look at the sending host's own qdisc (`tc -s qdisc`): it shapes, or its device is slower"
        }
        Limiter::PathRate if cell.workload.traffic.is_transactional() => {
            return Some(format!(
                "repeat with {}: where the rate stays, the path is full, and its slowest hop carries the number above",
                half_at_a_time(&cell.workload)
            ));
        }
        Limiter::RoundTrip if cell.workload.options.cork != Some(true) => {
            return of_round_trip(dataset, cell);
        }
        Limiter::Pacing if diagnose::agents_limit(cell).is_some() => {
            "repeat with a token of that agent (`linerate token add` there), or with a higher `serve --limit-rate`"
        }
        Limiter::Pacing if diagnose::loses_by_chance(cell) => {
            "find what loses datagrams by chance: `ip -s link` along the path, cable, optics, Wi-Fi; at half of `-b` the \
             same share is lost"
        }
        Limiter::Generator | Limiter::Cpu if diagnose::waits_where_pinned(dataset, cell) => {
            "repeat without `-A`, or with more CPUs in it"
        }
        Limiter::Cpu if diagnose::waits_on_few(cell) => {
            "give each end CPUs of its own: a wider taskset or cpuset"
        }
        Limiter::CpuQuota if cell.mean(name::THROTTLED_PERIODS).is_none() => {
            "find what keeps workers from idle CPUs: a quota (cpu.max), taskset or cpuset, a real-time task"
        }
        Limiter::ReceiverWindow if diagnose::is_unscaled(dataset, cell) => {
            "turn on net.ipv4.tcp_window_scaling at both ends; where it is on, find what removes the option"
        }
        Limiter::ReceiverWindow if diagnose::is_of_another(dataset, cell) => {
            "find what ends the connection between the hosts: a proxy, a load balancer, a middlebox"
        }
        Limiter::ReceiverWindow if diagnose::is_field_full(cell) => {
            "look at `ip route get CLIENT` at the receiver (window), then for what changes window scaling on the \
             way, or for a proxy"
        }
        Limiter::ReceiverWindow if diagnose::is_untuned(dataset, cell) => {
            "turn on net.ipv4.tcp_moderate_rcvbuf at the receiver, or compare a larger `-w`"
        }
        Limiter::ReceiverWindow if own => {
            let bytes = diagnose::window_bytes(cell).filter(|bytes| is_large(*bytes))?;
            if diagnose::is_at_limit(dataset, cell) {
                return Some(larger(bytes, "tcp_rmem", "receiver"));
            }
            "repeat for longer (`-t 30`): the window may still grow; where it stays, look at `ip route get CLIENT` at the \
             receiver (window)"
        }
        Limiter::SendBuffer if own => {
            let held = cell.mean(name::IN_FLIGHT)? + cell.mean(name::UNSENT)?;
            return is_large(held).then(|| larger(held, "tcp_wmem", "sender"));
        }
        Limiter::CongestionWindow => match diagnose::kept_small(dataset, cell) {
            KeptSmall::Loss => return None,
            KeptSmall::Damage => {
                "find what damages segments: a cable, a network card (`ethtool -S`), an offload of checksums (`ethtool -k`)"
            }
            KeptSmall::Marks(_) => {
                "find what marks segments (ECN): `tc -s qdisc` of both hosts, the switches' thresholds"
            }
            KeptSmall::Late(_) => {
                "find what delays or reorders segments or their ACKs: parallel links, queues, radio"
            }
            KeptSmall::Itself => {
                "repeat for longer (`-t 10`); where it stays, look for a clamp: `ip route get HOST` (cwnd)"
            }
        },
        _ => return None,
    };
    Some(words.to_owned())
}

/// What to do about a round trip: more at a time helps where nothing waits.
fn of_round_trip(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let workload = &cell.workload;
    let is_single = workload.connections <= 1 && workload.manner.in_flight <= 1;
    if diagnose::is_held_by_nagle(dataset, cell) {
        let words = "repeat with `-N` (TCP_NODELAY): Nagle's algorithm holds small segments";
        return Some(words.to_owned());
    }
    match diagnose::largest_part(dataset, cell)? {
        Part::Queue if is_single => Some(
            "repeat with `-P 2`: where the rate stays, the path is full; where it doubles, others' packets wait there, or its \
             delay varies"
                .to_owned(),
        ),
        Part::Queue | Part::Rest if !is_single => Some(format!(
            "repeat with {}: where the rate stays, the path or the server carries no more; where it halves, {} raises it",
            half_at_a_time(workload),
            more_connections(workload),
        )),
        _ => None,
    }
}

/// Returns the finding with what the evidence of the cell that it shows says to do.
pub(crate) fn advised(finding: Finding, dataset: &Dataset<'_>) -> Finding {
    let action = match finding.kind {
        FindingKind::Limiter(limiter) => {
            let shown = finding.evidence.as_slice().first().map(|one| &one.trials);
            let cell = shown.and_then(|trials| {
                let is_shown = |cell: &&CellOutcomes<'_>| cell.trials().iter().eq(trials);
                dataset.cells.iter().find(is_shown)
            });
            cell.and_then(|cell| evident(limiter, dataset, cell))
        }
        _ => None,
    };
    Finding { action, ..finding }
}

/// What `-w` is compared with where the kernel tunes buffers.
const COMPARED: Bytes = Bytes(4 << 20);

/// Whether [`COMPARED`], of which the kernel gives a window about half, is no larger than what it has tuned a buffer to.
fn is_large(bytes: f64) -> bool {
    bytes > COMPARED.0 as f64 / 2.0
}

fn larger(bytes: f64, setting: &str, end: &str) -> String {
    format!(
        "raise the third value of net.ipv4.{setting} at the {end}: a `-w` has to be larger than {} to help",
        Unit::Bytes.display(bytes)
    )
}

/// Returns what to do about `limiter`, if there is anything.
pub(crate) fn next(limiter: Limiter, workload: &Workload) -> Option<String> {
    let is_stream = workload.traffic.is_stream();
    let has_buffers = workload.options.socket_buffer.is_some();
    let more = workload.connections.saturating_mul(2).max(4);
    let uncopied = match (is_stream, workload.manner.send) {
        (true, SendBy::Copy) => "`-Z`, ",
        _ => "",
    };
    let words = match limiter {
        // Nothing behind a full link can raise the number.
        Limiter::LinkRate => return None,
        Limiter::PathRate if workload.manner.transport == Transport::Udp => {
            "repeat with a `-b` whose sum over the flows is below the number above: where next to none is lost then, it \
             is what the path carries"
        }
        Limiter::PathRate => {
            "find the slowest hop of the path: it carries the number above, and what others send through it"
        }
        Limiter::ReceiverWindow | Limiter::SendBuffer if has_buffers => {
            "repeat with a larger `-w`, or without it: the kernel then tunes the buffers"
        }
        Limiter::ReceiverWindow => {
            "compare `-w 4M`; where that is faster, raise net.ipv4.tcp_rmem at the receiver"
        }
        Limiter::SendBuffer => {
            "compare `-w 4M`; where that is faster, raise net.ipv4.tcp_wmem at the sender"
        }
        Limiter::CongestionWindow => {
            "find the loss: repeat with `--capture -o DIR`, look at `ip -s link` and `tc -s qdisc` of \
             both hosts"
        }
        Limiter::SlowReader => "check why the receiver reads slowly: CPU, disk, a single thread",
        Limiter::HostDrops => {
            "check which queue drops: `tc -s qdisc`, `ip -s link`, /proc/net/softnet_stat"
        }
        Limiter::Pacing => match is_paced_on_request(workload) {
            true if is_stream && workload.manner.transport == Transport::Udp => {
                "repeat with a higher `-b` to find what the path carries"
            }
            true if workload.manner.think.is_some() => {
                "omit `--think` to find what path and hosts carry"
            }
            true => "omit the rate to find what the path carries",
            false => "compare `-C cubic`: a window limits it, not a pacing rate",
        },
        Limiter::Generator if is_stream => {
            return Some(format!(
                "spread the load: `-P {more}`, larger messages with `-l`, {uncopied}or another client"
            ));
        }
        Limiter::Generator => {
            return Some(format!(
                "spread the load: `-P {more}`, or another client (`--client`)"
            ));
        }
        Limiter::Cpu if workload.manner.transport == Transport::Udp => {
            "compare `--batch 16`, larger datagrams, or hosts with more CPUs"
        }
        Limiter::Cpu => {
            let fewer = match workload.connections {
                1 => "",
                _ => "fewer flows, ",
            };
            return Some(format!(
                "compare {fewer}larger messages, {uncopied}or hosts with more CPUs"
            ));
        }
        Limiter::OtherPrograms => "stop the other programs, or repeat when both hosts are quiet",
        Limiter::CpuQuota => "raise the quota (cpu.max; a container's CPU limit), then repeat",
        Limiter::RoundTrip if workload.options.cork == Some(true) => {
            "repeat without `--cork`: it holds what is no full segment"
        }
        Limiter::RoundTrip => return Some(more_at_a_time(workload)),
        Limiter::NagleDelayedAck => "repeat with `-N` (TCP_NODELAY), or one write per message",
        Limiter::Timeouts => "find the loss: repeat with `--capture -o DIR`, then read its report",
        Limiter::Application if !is_stream => "check what the answering program waits for",
        Limiter::Application => "check why the sending program pauses",
        Limiter::NothingArrives if is_cut(workload) => {
            "send datagrams that are one packet: `-l 1400`; firewalls, and paths of a smaller MTU, drop parts of larger ones"
        }
        Limiter::NothingArrives => {
            "check firewalls and the path's MTU: `ping -M do -s 1472 HOST` (IPv6: `-s 1452`)"
        }
    };
    Some(words.to_owned())
}

fn more_at_a_time(workload: &Workload) -> String {
    let more = more_connections(workload);
    let in_flight = workload.manner.in_flight.saturating_mul(8).max(8);
    match workload.traffic.kind() {
        Kind::Crr if !has_large_messages(workload) => {
            format!("open more connections at the same time: {more}")
        }
        Kind::Crr => format!(
            "open more connections at the same time: {more}; where the rate stays, the path is full"
        ),
        // Messages of one connection share its window.
        Kind::Rr | Kind::Stream | Kind::Idle if has_large_messages(workload) => {
            format!("keep more requests in flight: {more}; where the rate stays, the path is full")
        }
        Kind::Rr | Kind::Stream | Kind::Idle => {
            format!("keep more requests in flight: `--in-flight {in_flight}`, or {more}")
        }
    }
}

fn more_connections(workload: &Workload) -> String {
    format!("`-P {}`", workload.connections.saturating_mul(8))
}

/// Half of the connections, or of the requests of a single one.
fn half_at_a_time(workload: &Workload) -> String {
    match workload.connections {
        0 | 1 => format!("`--in-flight {}`", (workload.manner.in_flight / 2).max(1)),
        connections => format!("`-P {}`", connections / 2),
    }
}

/// Whether a message is longer than what a connection may send at once from its start.
fn has_large_messages(workload: &Workload) -> bool {
    let most = INITIAL_WINDOW_SEGMENTS * SEGMENT_BYTES;
    let exchange = workload.traffic.exchange();
    exchange.is_some_and(|(request, response)| request.0.max(response.0) > most)
}

/// Whether datagrams are cut on an Ethernet's way.
fn is_cut(workload: &Workload) -> bool {
    let message = workload.traffic.stream().map(|(_, bytes)| bytes.0);
    workload.manner.transport == Transport::Udp
        && message.is_some_and(|bytes| bytes > DATAGRAM_BYTES_MAX)
}

fn is_paced_on_request(workload: &Workload) -> bool {
    let manner = &workload.manner;
    manner.rate_bps.is_some()
        || manner.requests_per_s.is_some()
        || manner.think.is_some()
        || workload.options.pacing_bps.is_some()
}

#[cfg(test)]
mod tests {
    use linerate_model::Bytes;
    use linerate_model::workload::{Direction, Traffic};

    use super::*;

    #[test]
    fn what_was_asked_for_changes_what_to_do() {
        let mut workload = Workload::stream(Direction::ToServer);
        let check = |limiter, workload: &Workload, words: &str| {
            let said = next(limiter, workload).unwrap_or_default();
            assert!(said.contains(words), "{said}");
        };
        assert_eq!(next(Limiter::LinkRate, &workload), None);
        check(Limiter::ReceiverWindow, &workload, "tcp_rmem");
        check(Limiter::Pacing, &workload, "-C cubic");
        workload.options.socket_buffer = Some(Bytes(65_536));
        workload.manner.rate_bps = Some(1_000_000);
        check(Limiter::Application, &workload, "sending program");
        check(Limiter::ReceiverWindow, &workload, "larger `-w`");
        check(Limiter::Pacing, &workload, "omit the rate");
        let mut exchange = Workload {
            traffic: Traffic::Rr {
                request_bytes: Bytes(1),
                response_bytes: Bytes(1),
                request_writes: 1,
            },
            ..workload
        };
        check(Limiter::Application, &exchange, "answering program");
        check(Limiter::RoundTrip, &exchange, "in flight");
        if let Traffic::Rr { response_bytes, .. } = &mut exchange.traffic {
            *response_bytes = Bytes(100_000);
        }
        let said = next(Limiter::RoundTrip, &exchange).unwrap_or_default();
        assert!(
            said.contains("-P 8") && !said.contains("in-flight"),
            "{said}"
        );
        exchange.connections = 8;
        check(Limiter::RoundTrip, &exchange, "`-P 64`");
        exchange.options.cork = Some(true);
        check(Limiter::RoundTrip, &exchange, "--cork");
    }
}
