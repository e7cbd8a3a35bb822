//! What is going to be measured, in words.

use linerate_model::experiment::Timing;
use linerate_model::manner::{Sizes, Transport};
use linerate_model::number;
use linerate_model::run::{Control, HostRecord};
use linerate_model::workload::{Group, STREAM_MESSAGE_BYTES_DEFAULT, Workload};
use linerate_model::{BitsPerSec, Bytes};

/// Returns who measures against whom, what, and a line for each thing out of the ordinary; sizes that nobody
/// chose are told to those who want everything.
pub(super) fn heading(
    workload: &Workload,
    timing: &Timing,
    server: Option<&HostRecord>,
    verbose: bool,
) -> Vec<String> {
    let flows = number::counted(workload.connections, "flow");
    let control = server.and_then(secrecy);
    let server = server.map_or("?", |host| host.agent.as_str());
    let mut lines = vec![
        format!("linerate {} → {server}", env!("CARGO_PKG_VERSION")),
        format!(
            "{} {}, {flows}{}",
            workload.manner.transport.title(),
            traffic(workload, verbose),
            phases(workload, timing),
        ),
    ];
    lines.extend(rate(workload));
    lines.extend(volume(workload));
    lines.extend(control.map(str::to_owned));
    lines
}

/// Returns what goes on beside it.
pub(super) fn beside(group: &Group, verbose: bool) -> String {
    let workload = &group.workload;
    let flows = number::counted(workload.connections, "flow");
    let mut words = format!(
        "in addition, {}: {} {}, {flows}",
        group.name,
        workload.manner.transport.title(),
        traffic(workload, verbose),
    );
    if let Some(more) = rate(workload) {
        words.push_str(&format!(", {more}"));
    }
    words
}

/// What others on the way can read, where there is a way.
fn secrecy(server: &HostRecord) -> Option<&'static str> {
    match server.control? {
        Control::Tls => Some("control over TLS, payload in the clear"),
        Control::Clear => Some("control and payload in the clear"),
        Control::InProcess | Control::Loopback => None,
    }
}

/// How long it takes, where no volume ends it. Of the warm-up what is certain: the path may add to it, and
/// nobody knows the path yet.
fn phases(workload: &Workload, timing: &Timing) -> String {
    let length = if workload.manner.bytes_max.is_some() {
        String::new()
    } else if timing.is_until_stopped() {
        ", until it is stopped".to_owned()
    } else {
        format!(", {}", timing.measure)
    };
    match timing.warm_up.0 {
        0 => length,
        _ => format!("{length} after at least {} of warm-up", timing.warm_up),
    }
}

fn traffic(workload: &Workload, verbose: bool) -> String {
    let (traffic, manner) = (&workload.traffic, &workload.manner);
    let title = traffic.in_words();
    match (traffic.stream(), traffic.exchange()) {
        (Some((_, message_bytes)), _) => {
            let size = match &manner.sizes {
                Some(sizes) => mix(sizes),
                None => bytes(message_bytes),
            };
            let is_default =
                message_bytes == STREAM_MESSAGE_BYTES_DEFAULT && manner.sizes.is_none();
            let is_asked = manner.batch > 1 && !manner.batch_is_chosen;
            if manner.transport != Transport::Udp && is_default && !is_asked && !verbose {
                return title;
            }
            let what = match (manner.transport, manner.segments, manner.batch) {
                (Transport::Udp, 1, 1) => format!("datagrams of {size}"),
                (Transport::Udp, 1, batch) => format!("{batch} datagrams of {size} per send call"),
                (Transport::Udp, segments, _) => format!("{segments} datagrams of {size} per send"),
                (_, _, 1) => format!("{size} per send call"),
                (_, _, batch) => format!("{batch} messages of {size} per send call"),
            };
            format!("{title}, {what}")
        }
        // Only a connection can be made for nothing: a request has a byte.
        (None, Some((Bytes(0), _))) => "connect/close".to_owned(),
        (None, Some((request, response))) => {
            let sizes = match (&manner.sizes, &manner.steps) {
                (Some(sizes), _) => mix(sizes),
                (None, Some(steps)) => format!(
                    "{} of {} / {} in all",
                    number::counted(steps.len(), "step"),
                    bytes(request),
                    bytes(response)
                ),
                (None, None) => format!("{} / {}", bytes(request), bytes(response)),
            };
            let at_once = match (manner.in_flight, manner.requests_per_s) {
                (1, _) | (_, Some(_)) => String::new(),
                (count, None) => format!(", {count} in flight"),
            };
            format!("{title}, {sizes}{at_once}")
        }
        (None, None) => title + " connections",
    }
}

/// People say 1448 B, not 1.414 KiB.
fn bytes(size: Bytes) -> String {
    match size.0 % 1024 {
        0 => size.to_string(),
        _ if size.0 < 100_000 => format!("{} B", size.0),
        _ => size.to_string(),
    }
}

fn mix(sizes: &Sizes) -> String {
    match sizes {
        Sizes::List { bytes: list } if list.len() <= 4 => {
            let words: Vec<String> = list.iter().map(|size| bytes(*size)).collect();
            format!("{}, round-robin", words.join(", "))
        }
        Sizes::List { bytes } => format!("{} sizes, round-robin", bytes.len()),
        Sizes::Uniform { low, high } => format!("{} to {}", bytes(*low), bytes(*high)),
        Sizes::LogNormal {
            median,
            sigma_percent,
        } => format!(
            "log-normal sizes around {} (σ = {})",
            bytes(*median),
            f64::from(*sigma_percent) / 100.0
        ),
    }
}

/// The rate that was asked for: what iperf3 gives to each flow and others to all together.
fn rate(workload: &Workload) -> Option<String> {
    let flows = f64::from(workload.connections);
    let total = |one: String| match workload.connections {
        1 => String::new(),
        _ => format!(", {one} in total"),
    };
    let manner = &workload.manner;
    if let Some(rate) = manner.requests_per_s {
        let all = total(format!("{}/s", flows * f64::from(rate)));
        let nagle = match workload.options.nagle {
            Some(false) => ", Nagle off",
            _ => "",
        };
        return Some(format!(
            "{rate} requests/s on each flow{all}, whether or not responses have arrived (open loop){nagle}"
        ));
    }
    if let Some(think) = manner.think {
        return Some(format!("{think} from each response to the next request"));
    }
    let of = |bps: u64, who: &str| {
        let all = total(BitsPerSec(flows * bps as f64).to_string());
        let bursts = match manner.burst {
            0 | 1 => String::new(),
            burst => format!(", in bursts of {burst}"),
        };
        format!(
            "{} for each flow{all}, paced by {who}{bursts}",
            BitsPerSec(bps as f64)
        )
    };
    let ours = manner.rate_bps.map(|bps| of(bps, "the sending program"));
    ours.or(workload.options.pacing_bps.map(|bps| of(bps, "the kernel")))
}

fn volume(workload: &Workload) -> Option<String> {
    let bytes = workload.manner.bytes_max?;
    Some(match workload.connections {
        1 => format!("ends after {bytes}"),
        _ => format!("each flow ends after {bytes}"),
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::Nanos;

    use linerate_model::workload::{Direction, Traffic};

    use super::*;

    fn lines(workload: &Workload) -> Vec<String> {
        let timing = timing(Nanos::from_s(10), Nanos::from_ms(200));
        heading(workload, &timing, None, false)
    }

    fn timing(measure: Nanos, warm_up: Nanos) -> Timing {
        Timing {
            settle: Nanos(0),
            warm_up,
            measure,
            drain: Nanos(0),
        }
    }

    #[test]
    fn the_second_line_says_how_long_it_takes_and_what_is_not_counted() {
        let mut workload = Workload::stream(Direction::ToServer);
        let check = |workload: &Workload, measure, warm_up_ms, end: &str| {
            let timing = timing(measure, Nanos::from_ms(warm_up_ms));
            let first = heading(workload, &timing, None, false).swap_remove(1);
            assert!(first.ends_with(end), "{first}");
        };
        let ten = Nanos::from_s(10);
        check(
            &workload,
            ten,
            200,
            ", 1 flow, 10 s after at least 200 ms of warm-up",
        );
        check(&workload, ten, 0, ", 1 flow, 10 s");
        check(
            &workload,
            Timing::UNTIL_STOPPED,
            0,
            ", 1 flow, until it is stopped",
        );
        workload.manner.bytes_max = Some(Bytes(1 << 20));
        check(&workload, Nanos::from_s(3500), 0, ", 1 flow");
    }

    #[test]
    fn sizes_that_nobody_chose_are_for_those_who_want_everything() {
        let workload = Workload::stream(Direction::ToServer);
        let timing = timing(Nanos::from_s(10), Nanos(0));
        let line = |verbose| heading(&workload, &timing, None, verbose).swap_remove(1);
        assert_eq!(line(false), "TCP stream to the server, 1 flow, 10 s");
        assert!(
            line(true).contains("128 KiB per send call"),
            "{}",
            line(true)
        );
    }

    #[test]
    fn rates_are_told_for_a_flow_and_for_all() {
        let mut workload = Workload::stream(Direction::ToServer);
        workload.manner.transport = Transport::Udp;
        workload.manner.rate_bps = Some(10_000_000);
        workload.connections = 4;
        let Traffic::Stream { message_bytes, .. } = &mut workload.traffic else {
            unreachable!("it is a stream");
        };
        *message_bytes = Bytes(1448);
        let lines = lines(&workload);
        assert!(lines[1].ends_with("UDP stream to the server, datagrams of 1448 B, 4 flows, 10 s after at least 200 ms of warm-up"));
        assert_eq!(
            lines[2],
            "10 Mbit/s for each flow, 40 Mbit/s in total, paced by the sending program"
        );
    }
}
