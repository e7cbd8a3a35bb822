//! What each kind of finding says, and what it asks for.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use linerate_model::sample::End;
use linerate_model::unit::Unit;

use super::{CLIENTS_MAX, SERVICES_MAX, TcpFinding, TcpFindingKind};
use crate::number::{bytes, count, counted, ns, ratio};

/// Waits from which a message may be none that answers: programs send pings each second at the most.
const SPEAKS_ALONE_NS_MIN: u64 = 1_000_000_000;

/// Fills in claim, explanation and advice.
pub(crate) fn put_into_words(finding: &mut TcpFinding) {
    let trip_ns = trip_ns(finding);
    let mean_ns = finding.total_ns / finding.count.max(1);
    let rate = finding.value as f64 * 8e9 / trip_ns as f64;
    let values = [
        ("{who}", host(finding.who, finding.who_port)),
        ("{toward}", host(finding.toward, finding.toward_port)),
        ("{times}", times(finding.count)),
        ("{count}", count(finding.count)),
        ("{data_segments}", counted(finding.count, "data segment")),
        ("{out_of}", count(finding.out_of)),
        ("{of_segments}", counted(finding.out_of, "data segment")),
        ("{of_all}", counted(finding.out_of, "segment")),
        ("{of_questions}", counted(finding.out_of, "question")),
        ("{requests}", counted(finding.count, "request")),
        ("{share}", percent(finding.count, finding.out_of)),
        ("{total}", ns(finding.total_ns)),
        ("{longest}", ns(finding.longest_ns)),
        ("{mean}", ns(mean_ns)),
        ("{life}", ns(finding.out_of)),
        ("{time_share}", percent(finding.total_ns, finding.out_of)),
        ("{bytes}", bytes(finding.value)),
        ("{exact_bytes}", finding.value.to_string()),
        ("{exact_out_of}", finding.out_of.to_string()),
        ("{segments}", count(finding.value)),
        ("{value_ns}", ns(finding.value)),
        (
            "{behind_rate}",
            Unit::BitsPerSecond.display(finding.out_of as f64),
        ),
        ("{services}", services(finding)),
        ("{hops}", (finding.value & 0xff).to_string()),
        ("{hops_before}", (finding.value >> 8).to_string()),
        ("{by}", by(finding)),
        ("{link}", link(finding)),
        ("{trip}", ns(trip_ns)),
        ("{rate}", Unit::BitsPerSecond.display(rate)),
    ];
    let [claim, explanation, advice] = templates(finding).map(|template| {
        let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
        values.iter().fold(template.to_owned(), fill)
    });
    finding.claim = claim;
    if finding.connections > 1 {
        let connections = counted(finding.connections, "connection");
        let _ = write!(finding.claim, ", in {connections}");
    }
    match finding.others {
        0 => {}
        others if !finding.clients.is_empty() => {
            let more = match finding.clients.len() {
                CLIENTS_MAX.. => " and more",
                _ => "",
            };
            let _ = write!(finding.claim, " of {}{more}", counted(others + 1, "client"));
        }
        1 => finding.claim += " (and of another host)",
        others => {
            let _ = write!(finding.claim, " (and of {})", counted(others, "other host"));
        }
    }
    finding.explanation = explanation;
    finding.advice = (!advice.is_empty()).then_some(advice);
}

/// Returns claim, explanation and advice, with names in braces where numbers and hosts belong; no
/// advice where nothing is to be done.
fn templates(finding: &TcpFinding) -> [&'static str; 3] {
    let has_trip = finding.round_trip_ns.is_some_and(|trip| trip > 0);
    let by_router = finding.is_by_router();
    match finding.kind {
        TcpFindingKind::NagleDelayedAck => [
            "{who} held a short segment until {toward} acknowledged the one before, which took a \
             delayed-ACK timer: {times}, {total} in all, {longest} at the longest",
            "Nagle's algorithm at {who} sends no second short segment while one is not \
             acknowledged; {toward} delays acknowledgements, hoping for data to send with them. \
             Each waits for the other.",
            "change {who}, the sender: set TCP_NODELAY, or hand the parts of a message to one call \
             (writev); leave delayed ACKs on at {toward}, they save it packets",
        ],
        TcpFindingKind::RetransmissionTimeout => [
            "{who} stood still until its retransmission timer fired: {times}, {total} in all, \
             {longest} at the longest",
            "The segment, or its acknowledgement, was lost or later than the timer, and too few \
             segments followed for {toward} to notice and ask: the end of a message, or a whole \
             window.",
            "look for drops on the path (queues, rings, policers: `linerate watch`); on Linux \
             check that tcp_sack and tcp_early_retrans are on, and lower rto_min where the path is \
             short",
        ],
        TcpFindingKind::ZeroWindow => [
            "{who} closed its window: {times}, {total} in all, {longest} at the longest",
            "The program at {who} did not read what {toward} sent until its buffer was full; the \
             network was not the limit.",
            "find out why the program at {who} reads slowly: it is blocked, short of CPU, or does other work in between",
        ],
        TcpFindingKind::SlowReader => [
            "{who} read slowly: what was left of its window, {bytes} at the most, held {toward} back for \
             {time_share} of the time",
            "It acknowledged what {toward} sent and had half of its window or less for more: the rest lay in \
             its buffer, unread. The network was not the limit.",
            "find out why the program at {who} reads slowly: it is blocked, short of CPU, or does other work \
             in between; if it does not, look for a host that is short of memory for TCP (net.ipv4.tcp_mem)",
        ],
        TcpFindingKind::PathMtu if by_router => [
            "{by} says that segments from {who} to {toward} are too big for {link}: {times}",
            "The sender learns the path's MTU from it, and retransmits the segment in pieces.",
            "set the MTU of the route at {who}, or let a router clamp the MSS",
        ],
        TcpFindingKind::PathMtu if finding.by.is_some() => [
            "{who} sent the same segment of {exact_bytes} B {times} within {total}, and none of \
             that size arrived: {by} says that it is too big for {link}",
            "Full segments do not reach {toward} while short ones do. The router's word about it passed here, but \
             does not reach {who}, or {who} does not obey it.",
            "let ICMP \"fragmentation needed\" through to {who}, its own firewall included, set \
             net.ipv4.tcp_mtu_probing=1 there, or lower the MTU",
        ],
        TcpFindingKind::PathMtu => [
            "{who} sent the same segment of {exact_bytes} B {times} within {total}, and none of \
             that size arrived",
            "Full segments do not reach {toward} while short ones do: a link on the path carries \
             less, and the router's word about it is filtered.",
            "let ICMP \"fragmentation needed\" through, set net.ipv4.tcp_mtu_probing=1 at {who}, \
             or lower the MTU",
        ],
        TcpFindingKind::WindowLimit => [
            "The window of {who}, {bytes} at the most, held {toward} back for {time_share} of the \
             time",
            if has_trip {
                "A window of {bytes} over a round trip of {trip} carries {rate} at the most."
            } else {
                "One window's worth is all that goes in each round trip."
            },
            "at {who}: raise the third value of net.ipv4.tcp_rmem, and do not set SO_RCVBUF in the \
             program; if the window closes, the program reads too slowly",
        ],
        TcpFindingKind::NoWindowScaling => [
            if finding.total_ns > 0 {
                "{who} does not offer window scaling, so no window is above {bytes}: for {time_share} of the \
                 time it had no room"
            } else {
                "{who} does not offer window scaling, so no window is above {bytes}"
            },
            if has_trip {
                "Over a round trip of {trip} that is {rate} at the most, whatever the link carries."
            } else {
                "The rate is then one such window each round trip."
            },
            "set net.ipv4.tcp_window_scaling=1 at {who}; if it is on, look for a firewall that \
             strips the option from SYNs",
        ],
        TcpFindingKind::LossBurst => [
            "Up to {segments} consecutive segments from {who} to {toward} were lost: {times}",
            "Consecutive losses are a queue that overflowed; a bad cable loses single segments.",
            "find the queue: rings and backlog of the receiver, buffers of switches, a policer; \
             pacing at the sender (fq) makes its bursts shorter",
        ],
        TcpFindingKind::Loss => [
            "{who} retransmitted {count} of {of_segments} to {toward} ({share})",
            "They were lost on the way to {toward}, or their acknowledgements on the way back.",
            "`linerate watch` shows where hosts drop; compare captures of both ends for the path",
        ],
        TcpFindingKind::SackReneging => [
            "{who} took back what it had acknowledged selectively: {times}, up to {bytes}, {total} until \
             {toward} retransmitted it",
            "It had said that what follows a gap is there (SACK); when the gap was filled, its \
             acknowledgement ended before that. The path did not lose it: {who} dropped it, short of memory.",
            "at {who}: look at `nstat -az TcpExtOfoPruned TcpExtRcvPruned`, and at net.ipv4.tcp_mem and the \
             program's SO_RCVBUF",
        ],
        TcpFindingKind::Spurious => [
            "{who} retransmitted {data_segments} that {toward} had already ({share} of \
             {out_of})",
            "Acknowledgements came late rather than not at all: round trips that jump, or segments \
             out of order.",
            "on Linux leave tcp_recovery and tcp_frto on; a shorter queue makes round trips steady",
        ],
        TcpFindingKind::Reordering => [
            "{count} of {of_segments} from {who} came out of order ({share})",
            "Some packets overtake others: links bonded packet by packet, several queues that one flow is \
             spread over, or, between virtual devices of one machine, a sender that moved to another CPU.",
            "spread by flow, not by packet (layer3+4 hashing of bonds and routes)",
        ],
        TcpFindingKind::DelayedAck => [
            "{who} acknowledged by its delayed-ACK timer: {times}, {mean} on average",
            "{toward} had sent less than two full segments, and {who} had nothing to send back. \
             Harmless, unless {toward} waits for the acknowledgement before it sends more.",
            "",
        ],
        TcpFindingKind::SmallSegments => [
            "{who} sends trains of short segments: {count} of {of_segments} are half a \
             full one or less, {bytes} on average",
            "Each packet costs its sender and receiver about the same, however little it carries.",
            "at {who}: write more at once (buffer, writev), or let Nagle's algorithm join segments \
             where no answer is waited for",
        ],
        TcpFindingKind::ClampedMss => [
            "{who} announces segments of {exact_bytes} B at the most, where Ethernet carries \
             {exact_out_of} B: {count} full ones were sent",
            "The path has a tunnel or a provider's access line, the host's MTU is lower, or a \
             router rewrites the option on its way.",
            "if it is not meant: compare `ip link` and `ip route get` at {who} with what arrives \
             in its SYN",
        ],
        TcpFindingKind::Refused if finding.services > 1 => [
            "{toward} was refused at {services}: a reset answered its SYN",
            "Nothing listens there, or a firewall rejects it and says so. One client that asks so many is a scan, \
             or looks for something.",
            "if it is no scan of yours: look at {toward}, what does it look for?",
        ],
        TcpFindingKind::Unanswered if finding.services > 1 => [
            "{toward} had no answer to its SYN from {services}",
            "No host is there, or a firewall drops the SYNs without an answer. One client that asks so many is a scan, or \
             looks for something.",
            "if it is no scan of yours: look at {toward}, what does it look for?",
        ],
        TcpFindingKind::Refused if finding.value != 0 => [
            "A firewall or another box on the way refused the connection of {toward} to {who}: a reset answered the \
             SYN after {longest}",
            "It is not of the host that answers at other ports of that address: the way there and back takes {trip} at \
             the shortest, and the hop limit of the reset is {hops}, that of its segments {hops_before}.",
            "look at the rules of what lies between, nearer than {who} (`traceroute -T` to both ports)",
        ],
        TcpFindingKind::Refused => [
            if finding.connections > 1 {
                "{who} refused the connection of {toward}: a reset answered the SYN after {longest} at the longest"
            } else {
                "{who} refused the connection of {toward}: a reset answered the SYN after {longest}"
            },
            "Nothing listens at that port of {who}, or a firewall there or on the way rejects it \
             and says so.",
            "at {who}: `ss -ltn` shows whether something listens; if it does, look for rules that \
             reject (`nft list ruleset`)",
        ],
        TcpFindingKind::Unanswered => [
            if finding.total_ns > 0 && finding.connections > 1 {
                "{who} did not answer: {toward} sent its SYN {times}, for {longest} at the longest"
            } else if finding.total_ns > 0 {
                "{who} did not answer: {toward} sent its SYN {times} within {total}"
            } else {
                "{who} did not answer the SYN of {toward}: {times}"
            },
            "The host is not there, a firewall drops the SYN in silence, the queue of the \
             listening program is full, or the answer goes another way than this capture sees. \
             Only a capture at {who} shows which.",
            "capture at {who}: if the SYN arrives there, look at `nstat -az TcpExtListenDrops` and \
             its rules; if it does not, at the path and its firewalls",
        ],
        TcpFindingKind::SynAgain if finding.who_is == End::Server => [
            "{who} retransmitted its SYN-ACK to {toward}: {times}, {total} in all, {longest} at the longest",
            match finding.value {
                0 => {
                    "This capture saw no acknowledgement of {toward} before. Either the SYN-ACK did \
                     not reach it, or its acknowledgement was lost before it came here."
                }
                _ => {
                    "At least once {toward} had acknowledged it, and that passed here: it was lost \
                     behind this capture, or {who} did not take it. Its accept queue was full, or it \
                     waits for data (TCP_DEFER_ACCEPT)."
                }
            },
            match finding.value {
                0 => {
                    "capture at {toward} as well: `linerate trace` of both ends shows which was lost"
                }
                _ => {
                    "at {who}: look for full accept queues (`nstat -az TcpExtListenOverflows`); `ss -ltn` \
                      shows them"
                }
            },
        ],
        TcpFindingKind::SynAgain => [
            "{who} retransmitted its SYN: {times}, {total} in all, {longest} at the longest",
            "The first SYN or its answer was lost or dropped; the timer for it is 1 s and doubles.",
            "look for full accept queues (`nstat -az TcpExtListenOverflows`), rate limits of SYNs \
             and loss on the path",
        ],
        TcpFindingKind::HandshakeIncomplete => [
            "The handshake of {toward} with {who} was not completed: {who} retransmitted its SYN-ACK, {times}, and \
             nothing acknowledged it within {longest}",
            "The SYN-ACK did not reach {toward}, its acknowledgement was lost before it came here, or {toward} never sent \
             the SYN (a forged address, as in a flood of SYNs).",
            "capture at {toward} as well: `linerate trace` of both ends shows which was lost",
        ],
        TcpFindingKind::ResetUnused => [
            "{who} reset the connection that {toward} had accepted, without data: {times}",
            "It asked only whether something listens (a health check, a scan of ports), had given up before, or never \
             sent the SYN (a forged address). No data was lost.",
            "",
        ],
        TcpFindingKind::SlowHandshake => [
            "{who} accepted late: the SYN-ACK came up to {longest} later than the way of {trip} explains",
            "The SYN was captured once, and answers come sooner. The host was busy, a proxy connected further before it \
             answered, or the way had to be set up first (a neighbour looked for, radio that slept): these look alike.",
            "capture at {who}: there shows when the SYN arrives and when it is answered",
        ],
        TcpFindingKind::Unreachable => match finding.value {
            2 => [
                "{by} says that {who} is not allowed to reach {toward}: {times}",
                "An administrator forbids it: a rule there rejects the segments and says so.",
                "look at the rules of {by} (`nft list ruleset`, access lists)",
            ],
            3 | 5 => [
                "{by} says that the port or protocol of {toward} is not there for {who}: {times}",
                "A host without a listener answers TCP with a reset: this is a rule of a firewall that rejects \
                 (REJECT of iptables says port unreachable).",
                "look at the rules of {by} (`nft list ruleset`)",
            ],
            4 => [
                "{by} says that the host of {toward} is not there for {who}: {times}",
                "It has a way to its network; as a rule it got no answer from the host itself (ARP, neighbour \
                 discovery), which is off, or has another address.",
                "look at the host, and at the neighbours of {by} (`ip neighbour`)",
            ],
            6 => [
                "The hop limit of segments from {who} to {toward} ran out at {by}: {times}",
                "They might still have passed more routers than any path has when they passed here: they went in a \
                 circle, from one router to the next and back.",
                "look at the routes of {by} and the router before it (`traceroute` shows which alternate)",
            ],
            _ => [
                "{by} says that there is no way from {who} to {toward}: {times}",
                "It has no route to that network: this is where the segments ended.",
                "look at the routes of {by}",
            ],
        },
        TcpFindingKind::Reset if finding.value != 0 => [
            "{who} reset the connection with {toward} in the middle: {times}",
            "The reset came with a hop limit of {hops}, the other segments of {who} with \
             {hops_before}: something on the way may have sent it in its name.",
            "look for firewalls and balancers on the way that forget idle connections or forbid \
             their content",
        ],
        TcpFindingKind::Reset => [
            "{who} reset the connection with {toward} in the middle: {times}",
            "Neither end had ended its stream. A program that closes with data unread, that exits, \
             or that sets SO_LINGER to 0 does so.",
            "look at the program at {who} at that time",
        ],
        TcpFindingKind::HalfOpen if finding.value == 2 => [
            "{who} has no such connection as {toward} still held: it answered an acknowledgement of that with a \
             reset, {times}",
            "{toward} answered a SYN with what acknowledges an earlier connection of these ports, so {who} was \
             restarted, lost that connection and did not say so, or is another host behind the same address.",
            "let {toward} look after idle connections with keepalives; if {who} is an address of many hosts, look at \
             what translates it",
        ],
        TcpFindingKind::HalfOpen => [
            match finding.value {
                0 => {
                    "{who} had forgotten the connection with {toward}: it answered a keepalive with a \
                     reset, {times}"
                }
                _ => {
                    "{who} had forgotten the connection with {toward}: it answered data after an idle time with \
                     the reset of a host without that connection, {times}"
                }
            },
            "The host was restarted, its program ended unseen, or a device on the way lost its \
             state.",
            "let keepalives come more often than what is on the way forgets idle connections",
        ],
        TcpFindingKind::PeerSilent => [
            "{who} fell silent: {toward} repeated itself {segments} times and heard nothing more for \
             {longest}",
            "What it repeated are segments or probes of a closed window. The host is gone, the path is \
             cut, or, if it was data, too large for the path. Until the last frame of {who} all went \
             well.",
            "look at {who} and the path at the time of the first of these frames",
        ],
        TcpFindingKind::KeepaliveUnanswered => [
            "{who} answered none of the last {segments} keepalives of {toward}, within {longest}",
            "The host is gone, the path is cut, or a device on the way forgot the connection. It was idle \
             before, so since when does not show: between the last frame of {who} and the first of \
             these keepalives.",
            "look at {who} and the path between these frames; let keepalives come more often than \
             devices on the way forget idle connections (net.ipv4.tcp_keepalive_time at {toward})",
        ],
        TcpFindingKind::SlowAnswer => [
            "{who} took {total} of {life} to answer: {times}, {value_ns} in the median, {longest} \
             at the longest",
            if has_trip && (finding.value < 2 * trip_ns(finding) || finding.way_is_doubtful) {
                "It is the program, or a way that takes as much longer at times: each wait is behind \
                 the last byte of a request, less the way of {trip} at its shortest, and no loss shows \
                 in it. A capture at {who} decides."
            } else if has_trip && finding.value >= SPEAKS_ALONE_NS_MIN {
                "It is the program, not the network: each wait is behind the last byte of a \
                 request, less the way of {trip}, and no loss shows in it. A server that speaks by \
                 itself now and then (pings, events) looks the same."
            } else if has_trip {
                "It is the program, not the network: each wait is behind the last byte of a \
                 request, less the way of {trip}, and no loss shows in it."
            } else {
                "It is the program, if the way is short: no round trip to it was captured."
            },
            "look at what the program at {who} does between request and answer",
        ],
        TcpFindingKind::RoundTrips => [
            "The way to {who} took {total} of {life}: {requests} were answered, one after the \
             other, over round trips of {trip} at the least",
            "It is the network, by its distance, and not the server: the handshake took as long. What \
             {who} took to answer, what was retransmitted and what waited for a window is not in it.",
            "make fewer requests, or several at once (batches, pipelining, more connections); else move \
             client and server nearer to each other",
        ],
        TcpFindingKind::ClientPause => [
            "{who} paused for {total} of {life} before its next request: {times}, {value_ns} in \
             the median, {longest} at the longest",
            if finding.way_is_doubtful {
                "{toward} had answered. It is the program, or a way to {who} that takes as much longer \
                 at times: no acknowledgement came before. A capture at {who} shows which."
            } else {
                "{toward} had answered; neither network nor server was waited for."
            },
            "",
        ],
        TcpFindingKind::Queue => [
            "A queue on the way from {who} to {toward}: under load round trips are {total} longer \
             than {trip}, in the median, {longest} at the most",
            if finding.connections > 1 {
                "About {bytes} wait before a link that carries {behind_rate} of these connections. A \
                 larger window would only lengthen the queue."
            } else {
                "About {bytes} wait before a link that carries {behind_rate} of this connection. A \
                 larger window would only lengthen the queue."
            },
            "let the sender or the bottleneck keep the queue short: fq and bbr at {who}, fq_codel \
             or cake where the queue is",
        ],
        TcpFindingKind::IdleSender => [
            "{who} had nothing to send for {time_share} of the time",
            "All that it had sent was acknowledged, or a short segment was the last: the program \
             was the limit, not the network.",
            "",
        ],
        TcpFindingKind::SendLimit => [
            "{who} stopped at {bytes} on their way, though the window of {toward} had room: {times}, \
             {time_share} of the time",
            "Nothing was lost, and it did not grow as a congestion window does: the send buffer is full \
             of what is not acknowledged, the congestion window is clamped, or the program has a \
             window of its own. {bytes} over a round trip of {trip} are {rate} at the most.",
            "at {who}: do not set SO_SNDBUF in the program, raise the third value of \
             net.ipv4.tcp_wmem, look for `cwnd` in `ip route`; else for a window in the program's \
             own protocol",
        ],
        TcpFindingKind::QuestionsUnanswered => [
            "{who} left {count} of {of_questions} of {toward} without an answer",
            match finding.value {
                0 => {
                    "No answer was captured within 5 s, nor anything else of {who}: the questions were lost, no \
                     program listens, or the answer goes another way than this capture sees. UDP does not show which."
                }
                _ => {
                    "No answer was captured within 5 s: question or answer was lost, or no program listens. UDP does \
                     not show which."
                }
            },
            "capture at {who} as well: `linerate trace` of both ends shows where datagrams are lost",
        ],
        TcpFindingKind::AnswersLate => [
            "{who} answered {toward} late: {value_ns} in the median of {count} answers, {longest} at the \
             longest",
            "From a question, asked first, to its answer, the way included.",
            "ask a server that is nearer, or keep answers at hand (a resolver on the host)",
        ],
        TcpFindingKind::CongestionMarks => [
            "Routers marked {count} of {of_all} from {who} to {toward} as congested \
             ({share})",
            "A queue on the way asks the sender to slow down, and drops nothing for it (ECN).",
            "",
        ],
        TcpFindingKind::Superframes => [
            "Segments from {who} were captured before they were split, or after they were joined: {count}, \
             {bytes} at the most",
            "The capture saw them above the network card's offloads (TSO, GSO, GRO, LRO). On the wire they were \
             several segments each: packet counts, data per ACK and sizes are the host's, not the wire's.",
            "to see the wire, capture at another host or a mirror port, or switch TSO, GSO, GRO \
             and LRO off while capturing",
        ],
    }
}

/// Returns the shortest round trip.
fn trip_ns(finding: &TcpFinding) -> u64 {
    finding.round_trip_ns.unwrap_or(0)
}

/// Writes how many services were asked in vain, and of whom.
fn services(finding: &TcpFinding) -> String {
    let more = match finding.services as usize {
        SERVICES_MAX.. => " and more",
        _ => "",
    };
    let of = match finding.value {
        1 => finding.who.to_string(),
        hosts => counted(hosts, "host"),
    };
    format!("{}{more} of {of}", counted(finding.services, "port"))
}

/// Writes a host, with the port where it is the server's.
fn host(address: IpAddr, port: Option<u16>) -> String {
    match port {
        Some(port) => SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    }
}

/// Writes who says so.
fn by(finding: &TcpFinding) -> String {
    finding
        .by
        .map_or_else(|| "A router".to_owned(), |by| by.to_string())
}

/// Writes the link that a router told of.
fn link(finding: &TcpFinding) -> String {
    match finding.mtu_bytes() {
        Some(mtu_bytes) => format!("a link of {mtu_bytes} B"),
        None => "a link of the path".to_owned(),
    }
}

fn times(times: u64) -> String {
    match times {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        times => counted(times, "time"),
    }
}

/// Writes a share with two digits behind the point at the most.
fn percent(part: u64, whole: u64) -> String {
    let share = ratio(part, whole).unwrap_or(0.0);
    Unit::Percent.display((share * 100.0 * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Durations;

    #[test]
    fn every_name_in_braces_is_filled_in() {
        use TcpFindingKind as Kind;
        for kind in [
            Kind::NagleDelayedAck,
            Kind::RetransmissionTimeout,
            Kind::ZeroWindow,
            Kind::PathMtu,
            Kind::WindowLimit,
            Kind::SlowReader,
            Kind::NoWindowScaling,
            Kind::LossBurst,
            Kind::Loss,
            Kind::SackReneging,
            Kind::Spurious,
            Kind::Reordering,
            Kind::DelayedAck,
            Kind::SmallSegments,
            Kind::ClampedMss,
            Kind::Superframes,
            Kind::Refused,
            Kind::Unanswered,
            Kind::SynAgain,
            Kind::Unreachable,
            Kind::Reset,
            Kind::HalfOpen,
            Kind::PeerSilent,
            Kind::KeepaliveUnanswered,
            Kind::HandshakeIncomplete,
            Kind::ResetUnused,
            Kind::SlowHandshake,
            Kind::SlowAnswer,
            Kind::RoundTrips,
            Kind::ClientPause,
            Kind::Queue,
            Kind::IdleSender,
            Kind::SendLimit,
            Kind::CongestionMarks,
            Kind::QuestionsUnanswered,
            Kind::AnswersLate,
        ] {
            for number in 0..8 {
                let mut finding = TcpFinding {
                    kind,
                    who: IpAddr::from([10, 0, 0, 1]),
                    who_port: None,
                    who_is: End::Client,
                    toward: IpAddr::from([10, 0, 0, 2]),
                    toward_port: Some(80),
                    claim: String::new(),
                    explanation: String::new(),
                    advice: None,
                    connections: 2,
                    others: 2,
                    services: number as u32,
                    count: number,
                    total_ns: number,
                    longest_ns: number,
                    value: number,
                    out_of: number,
                    round_trip_ns: Some(number),
                    by: (number > 3).then_some(IpAddr::from([10, 0, 0, 9])),
                    also: Vec::new(),
                    proofs: Vec::new(),
                    waits: Durations::default(),
                    way_is_doubtful: false,
                    queued: Vec::new(),
                    clients: Vec::new(),
                    hop_limit: None,
                };
                put_into_words(&mut finding);
                let text = format!("{} {}", finding.claim, finding.explanation);
                let text = text + finding.advice.as_deref().unwrap_or("");
                assert!(!text.contains(['{', '}']), "{text}");
            }
        }
    }
}
