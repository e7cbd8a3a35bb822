//! What each kind of finding says, and what it asks for.

use std::net::IpAddr;

use linerate_model::unit::Unit;

use super::{Finding, FindingKind};

/// Fills in claim, explanation and advice.
pub fn word(finding: &mut Finding) {
    let who = host(finding.who, finding.who_port);
    let toward = host(finding.toward, finding.toward_port);
    let times = times(finding.count);
    let total = ns(finding.total_ns);
    let longest = ns(finding.longest_ns);
    let out_of = Unit::Count.display(finding.out_of as f64);
    let count = Unit::Count.display(finding.count as f64);
    let share = percent(finding.count as f64, finding.out_of as f64);
    let bytes = Unit::Bytes.display(finding.value as f64);
    let (claim, explanation, advice) = match finding.kind {
        FindingKind::NagleDelayedAck => (
            format!(
                "{who} held a short segment until {toward} acknowledged the one before, which took \
                 a delayed-ACK timer: {times}, {total} in all, {longest} at the longest"
            ),
            format!(
                "Nagle's algorithm at {who} sends no second short segment while one is not \
                 acknowledged; {toward} delays acknowledgements, hoping for data to send with them. \
                 Each waits for the other."
            ),
            format!(
                "change {who}, the sender: set TCP_NODELAY, or hand the parts of a message to one \
                 call (writev); leave delayed ACKs on at {toward}, they save it packets"
            ),
        ),
        FindingKind::RetransmissionTimeout => (
            format!(
                "{who} stood still until its retransmission timer fired: {times}, {total} in all, \
                 {longest} at the longest"
            ),
            format!(
                "The segment, or its acknowledgement, was lost or later than the timer, and too few \
                 segments followed for {toward} to notice and ask: the end of a message, or a whole \
                 window."
            ),
            "look for drops on the path (queues, rings, policers: `linerate watch`); on Linux check \
             that tcp_sack and tcp_early_retrans are on, and lower rto_min where the path is short"
                .to_owned(),
        ),
        FindingKind::ZeroWindow => (
            format!("{who} closed its window: {times}, {total} in all, {longest} at the longest"),
            format!(
                "The program at {who} did not read what {toward} sent until its buffer was full; \
                 the network was not the limit."
            ),
            format!("look at the program at {who}: what does it do instead of reading?"),
        ),
        FindingKind::PathMtu => path_mtu(finding, &who, &toward),
        FindingKind::WindowLimit => (
            format!(
                "The window of {who}, {bytes} at the most, held {toward} back for {} of the time",
                percent(finding.total_ns as f64, finding.out_of as f64)
            ),
            match finding.round_trip_ns.filter(|&trip| trip > 0) {
                Some(trip) => format!(
                    "A window of {bytes} over a round trip of {} carries {} at the most.",
                    ns(trip),
                    Unit::BitsPerSecond.display(finding.value as f64 * 8e9 / trip as f64)
                ),
                None => "One window's worth is all that goes in each round trip.".to_owned(),
            },
            format!(
                "at {who}: raise the third value of net.ipv4.tcp_rmem, and do not set SO_RCVBUF in \
                 the program; if the window closes, the program reads too slowly"
            ),
        ),
        FindingKind::NoWindowScaling => (
            format!("{who} does not offer window scaling, so no window is above {bytes}"),
            match finding.round_trip_ns.filter(|&trip| trip > 0) {
                Some(trip) => format!(
                    "Over a round trip of {} that is {} at the most, whatever the link carries.",
                    ns(trip),
                    Unit::BitsPerSecond.display(finding.value as f64 * 8e9 / trip as f64)
                ),
                None => "The rate is then one such window each round trip.".to_owned(),
            },
            format!(
                "set net.ipv4.tcp_window_scaling=1 at {who}; if it is on, look for a firewall that \
                 strips the option from SYNs"
            ),
        ),
        FindingKind::LossBurst => (
            format!(
                "Up to {} segments side by side from {who} to {toward} were lost: {times}",
                Unit::Count.display(finding.value as f64)
            ),
            "Losses side by side are a queue that overflowed; those of a bad cable lie apart."
                .to_owned(),
            "find the queue: rings and backlog of the receiver, buffers of switches, a policer; \
             pacing at the sender (fq) makes its bursts shorter"
                .to_owned(),
        ),
        FindingKind::Loss => (
            format!("{who} sent {count} of {out_of} data segments to {toward} again ({share})"),
            format!(
                "They were lost on the way to {toward}, or their acknowledgements on the way back."
            ),
            "`linerate watch` shows where hosts drop; compare captures of both ends for the path"
                .to_owned(),
        ),
        FindingKind::Spurious => (
            format!(
                "{who} sent {count} data segments again that {toward} had already ({share} of {out_of})"
            ),
            "Acknowledgements came late rather than not at all: round trips that jump, or segments \
             out of order."
                .to_owned(),
            "on Linux leave tcp_recovery and tcp_frto on; a shorter queue makes round trips steady"
                .to_owned(),
        ),
        FindingKind::Reordering => (
            format!("{count} of {out_of} data segments from {who} came out of order ({share})"),
            "Packets of one connection take different ways: links joined packet by packet, or \
             several queues that one flow is spread over."
                .to_owned(),
            "spread by flow, not by packet (layer3+4 hashing of bonds and routes)".to_owned(),
        ),
        FindingKind::DelayedAck => (
            format!(
                "{who} acknowledged by its delayed-ACK timer: {times}, {} on average",
                ns(finding.total_ns / finding.count.max(1))
            ),
            format!(
                "{toward} had sent less than two full segments, and {who} had nothing to send back. \
                 Harmless, unless {toward} waits for the acknowledgement before it sends more."
            ),
            String::new(),
        ),
        FindingKind::SmallSegments => (
            format!(
                "{who} sends trains of short segments: {count} of {out_of} data segments are half a \
                 full one or less, {bytes} on average"
            ),
            "Each packet costs its sender and receiver about the same, however little it carries."
                .to_owned(),
            format!(
                "at {who}: write more at once (buffer, writev), or let Nagle's algorithm join \
                 segments where no answer is waited for"
            ),
        ),
        FindingKind::ClampedMss => (
            format!(
                "{who} announces segments of {} B at the most, {} B is what Ethernet carries",
                finding.value, finding.out_of
            ),
            "A tunnel or a provider's access lies on the path, the host's MTU is lower, or a router \
             rewrites the option on its way."
                .to_owned(),
            format!(
                "if it is not meant: compare `ip link` and `ip route get` at {who} with what \
                 arrives in its SYN"
            ),
        ),
        FindingKind::Superframes => (
            format!(
                "{count} segments from {who} are longer than the path carries ({bytes} at the most)"
            ),
            "The capture saw them before the card cut them, or after the kernel joined them. On the \
             wire they were several segments each: packet counts, data per ACK and sizes are the \
             host's, not the wire's."
                .to_owned(),
            "to see the wire, capture at another host or a mirror port, or switch TSO, GSO, GRO and \
             LRO off while capturing"
                .to_owned(),
        ),
    };
    finding.claim = match finding.connections {
        0 | 1 => claim,
        connections => format!("{claim}, in {connections} connections"),
    };
    finding.explanation = explanation;
    finding.advice = (!advice.is_empty()).then_some(advice);
}

fn path_mtu(finding: &Finding, who: &str, toward: &str) -> (String, String, String) {
    // A router names an MTU and takes no time; a segment sent again and again does.
    if finding.total_ns == 0 {
        return (
            format!(
                "A router says that segments from {who} to {toward} are too big for a link of {} B: {}",
                finding.value,
                times(finding.count)
            ),
            "The sender learns the path's MTU from it, and sends the segment again in pieces."
                .to_owned(),
            format!("set the MTU of the route at {who}, or let a router clamp the MSS"),
        );
    }
    (
        format!(
            "{who} sent the same segment of {} B again and again: {}, {} in all",
            finding.value,
            times(finding.count),
            ns(finding.total_ns)
        ),
        format!(
            "Full segments do not reach {toward} while short ones do: a link on the path carries \
             less, and the router's word about it is filtered."
        ),
        format!(
            "let ICMP \"fragmentation needed\" through, set net.ipv4.tcp_mtu_probing=1 at {who}, or \
             lower the MTU"
        ),
    )
}

/// Writes a host, with the port where it is the server's.
fn host(address: IpAddr, port: Option<u16>) -> String {
    match port {
        Some(port) => std::net::SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{} times", Unit::Count.display(count as f64)),
    }
}

fn ns(ns: u64) -> String {
    Unit::Nanoseconds.display(ns as f64)
}

fn percent(part: f64, whole: f64) -> String {
    Unit::Percent.display(if whole > 0.0 {
        round(part / whole * 100.0)
    } else {
        0.0
    })
}

/// Returns a share of hundredths with two digits behind the point at the most.
fn round(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}
