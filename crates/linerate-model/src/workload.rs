//! The traffic wanted between hosts.

use serde::{Deserialize, Serialize};

use crate::id::FlowId;
use crate::manner::{DATAGRAM_BYTES_MIN, Manner, Named, Transport};
use crate::parameter;
use crate::sample::End;
use crate::unit::Bytes;

/// What tells the kinds of traffic apart.
mod kind;

pub use kind::{About, Kind, Traffic};

/// The most flows that one trial may have (nofile limits of common hosts allow no more).
pub const FLOWS_MAX: u32 = 20_000;
/// The largest message, request or response.
pub const MESSAGE_BYTES_MAX: Bytes = Bytes(64 << 20);
/// The most send calls that a request may be split over.
pub const REQUEST_WRITES_MAX: u64 = 16;
/// The largest socket buffer that can be asked for (the kernel's own type is a signed int).
pub const SOCKET_BUFFER_BYTES_MAX: Bytes = Bytes(1 << 30);
/// The most frames of a million that a link may be asked to lose: what a lab's links can.
pub const LINK_LOSS_PPM_MAX: u32 = 500_000;
/// Rates that one flow can be asked for, in bits a second.
pub const FLOW_RATE_BPS: std::ops::RangeInclusive<u64> = 8..=1 << 50;
/// The longest time that a receive call may poll the device's queue: ten times what the kernel's own
/// documentation proposes at the most.
pub const BUSY_POLL_US_MAX: u32 = 1000;
/// Payload of one send or receive call when nothing else is asked for.
pub const STREAM_MESSAGE_BYTES_DEFAULT: Bytes = Bytes(128 << 10);
/// Payload of a datagram when nothing else is asked for: with the headers of IPv6, UDP and 52
/// bytes to spare for tunnels it fits an MTU of 1500, and it is what iperf3 sends over TCP's MSS
/// with timestamps.
pub const DATAGRAM_BYTES_DEFAULT: Bytes = Bytes(1448);
/// The same over a path of which nobody knows what it carries: QUIC's first packets have it (RFC 9000, section 14).
pub const DATAGRAM_BYTES_ANYWHERE: Bytes = Bytes(1200);

/// Which way bulk payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Clients send, the server receives.
    ToServer,
    /// The server sends, clients receive.
    FromServer,
    /// Both at once, on flows of their own: every second flow goes back.
    Both,
}

impl Named for Direction {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("to-server", Direction::ToServer),
        ("from-server", Direction::FromServer),
        ("both", Direction::Both),
    ];
}

impl Direction {
    /// Returns it as a sentence has it: "to the server".
    pub fn in_words(self) -> &'static str {
        match self {
            Direction::ToServer => "to the server",
            Direction::FromServer => "from the server",
            Direction::Both => "both ways",
        }
    }
}

/// Options of every socket of a workload; `None` leaves the host's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FlowOptions {
    /// SO_SNDBUF and SO_RCVBUF on both ends.
    pub socket_buffer: Option<Bytes>,
    /// Nagle's algorithm: `Some(false)` sets TCP_NODELAY.
    pub nagle: Option<bool>,
    /// Delayed ACKs: `Some(false)` re-arms TCP_QUICKACK at each receive, `Some(true)` clears it.
    pub delayed_ack: Option<bool>,
    /// TCP_CONGESTION.
    pub congestion: Option<String>,
    /// TCP_MAXSEG, bytes.
    pub mss_bytes: Option<u32>,
    /// TCP_CORK: segments leave full, or after 200 ms.
    pub cork: Option<bool>,
    /// SO_MAX_PACING_RATE on both ends, bits per second: the kernel spaces the segments.
    pub pacing_bps: Option<u64>,
    /// SO_BUSY_POLL, microseconds: a receive call polls the device's queue before it sleeps.
    pub busy_poll_us: Option<u32>,
    /// IP_TOS or IPV6_TCLASS: the byte with DSCP and ECN.
    pub tos: Option<u8>,
}

/// The traffic wanted: kind, number of flows, clients and socket options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The kind of traffic.
    pub traffic: Traffic,
    /// Flows in total, dealt to the clients in turn.
    pub connections: u32,
    /// How many client hosts take part.
    pub clients: u32,
    /// The hosts that open its flows, in turn, where it says which; as many as `clients`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<TrialHost>,
    /// The hosts that take them up, in turn, where it says which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<TrialHost>,
    /// Frames of a million that their links lose on purpose, which only links of a lab do; absent
    /// for links as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_loss_ppm: Option<u32>,
    /// Options of every socket.
    #[serde(default)]
    pub options: FlowOptions,
    /// How the traffic is made.
    #[serde(default)]
    pub manner: Manner,
}

/// One workload of a trial that has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What it is called: `bulk`, `probe`.
    pub name: String,
    /// Its traffic.
    pub workload: Workload,
}

/// What one end of a flow does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Sends bulk payload.
    Sender,
    /// Receives bulk payload.
    Receiver,
    /// Sends requests and times the responses.
    Requester,
    /// Answers requests.
    Responder,
}

/// One flow of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPlan {
    /// The flow.
    pub flow: FlowId,
    /// The group of its trial that it belongs to, from 0.
    pub group: u32,
    /// The host that opens it: 0 is the server, 1 the first client.
    pub from: u32,
    /// The host that takes it up.
    pub to: u32,
    /// What the client's end does.
    pub client_part: Part,
}

/// A host of a trial, by its part: `server`, `client 2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct TrialHost(pub u32);

/// The server's number among the hosts of a trial; clients have those from 1 on.
pub const SERVER: u32 = 0;

impl std::fmt::Display for TrialHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            SERVER => f.write_str("server"),
            client => write!(f, "client {client}"),
        }
    }
}

impl From<TrialHost> for String {
    fn from(host: TrialHost) -> Self {
        host.to_string()
    }
}

impl TryFrom<String> for TrialHost {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = match text.strip_prefix("client ") {
            Some(number) => number.parse().ok().filter(|number| *number != SERVER),
            None => (text == "server").then_some(SERVER),
        };
        let host = number
            .map(TrialHost)
            .filter(|host| host.to_string() == text);
        host.ok_or_else(|| format!("`{text}` is no host of a trial: name `server` or `client 1`"))
    }
}

/// A setting as asked for, as the kernel granted it, and as it worked out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// The socket option or property, by the kernel's name: `SO_SNDBUF`, `TCP_CONGESTION`.
    pub name: String,
    /// What was asked for; absent when the host's default was left.
    pub requested: Option<String>,
    /// What the kernel says it set.
    pub granted: Option<String>,
    /// What was seen to be in force at the end of the trial.
    pub effective: Option<String>,
    /// What kept it from being granted, for instance `net.core.wmem_max = 212992`.
    pub capped_by: Option<String>,
    /// Why it was chosen, where it was left to the host or to us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A workload that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A parameter is out of its range.
    #[error("{what}{case} is {value}, but must be {allowed}")]
    Range {
        /// The parameter, as files name it, or a part of it.
        what: &'static str,
        /// Where it has this range.
        case: Case,
        /// Its value.
        value: String,
        /// The allowed range.
        allowed: String,
    },
    /// A parameter means nothing to this traffic, or to what carries it.
    #[error("{key} is for {belongs}, and does nothing with {with}")]
    Misplaced {
        /// The parameter, as files name it.
        key: &'static str,
        /// The kinds or transports that it is for.
        belongs: String,
        /// The one that was asked for.
        with: &'static str,
    },
    /// Parameters exclude each other.
    #[error("{why}")]
    Contradiction {
        /// The parameters, as files name them.
        keys: &'static [&'static str],
        /// Why they do.
        why: &'static str,
    },
}

/// Where a parameter has a range of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Everywhere.
    Always,
    /// Where payload goes both ways.
    BothWays,
    /// Over UDP.
    Udp,
    /// Over UDP, where a byte is all that tells requests apart.
    UdpOfOneByte,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Case::Always => "",
            Case::BothWays => " with direction `both`",
            Case::Udp => " over UDP",
            Case::UdpOfOneByte => " over UDP with requests or responses of 1 B",
        })
    }
}

impl Part {
    /// Returns what the other end of the flow does.
    pub fn opposite(self) -> Self {
        match self {
            Part::Sender => Part::Receiver,
            Part::Receiver => Part::Sender,
            Part::Requester => Part::Responder,
            Part::Responder => Part::Requester,
        }
    }
}

impl Workload {
    /// Gives datagrams the size that fits a path that carries payload of so many bytes in a packet, where nobody asked
    /// for a size.
    pub fn fit_datagrams(&mut self, payload_bytes_max: Option<Bytes>) {
        let is_udp = self.manner.transport == Transport::Udp;
        if let Some((_, message_bytes)) = self.traffic.stream_mut().filter(|_| is_udp) {
            let fitting = payload_bytes_max.map_or(DATAGRAM_BYTES_ANYWHERE, |most| {
                Bytes(most.0.clamp(DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_DEFAULT.0))
            });
            *message_bytes = fitting;
        }
    }

    /// Returns such traffic as it is where nothing else is said, on one flow from one client.
    pub fn of(kind: Kind) -> Self {
        Self {
            traffic: kind.about().traffic.clone(),
            connections: 1,
            clients: 1,
            from: Vec::new(),
            to: Vec::new(),
            link_loss_ppm: None,
            options: FlowOptions::default(),
            manner: Manner::default(),
        }
    }

    /// Returns a bulk stream with one flow from one client and the hosts' defaults.
    pub fn stream(direction: Direction) -> Self {
        Self {
            traffic: Traffic::Stream {
                direction,
                message_bytes: STREAM_MESSAGE_BYTES_DEFAULT,
            },
            ..Self::of(Kind::Stream)
        }
    }

    /// Checks every parameter against its limits and against each other: what passes can run.
    pub fn check(&self) -> Result<(), WorkloadError> {
        parameter::check(self)?;
        let (flows, most) = (self.connections.into(), FLOWS_MAX.into());
        within("clients", self.clients.into(), 1, flows)?;
        self.check_hosts()?;
        if self.goes_both_ways() {
            within_case("connections", Case::BothWays, flows, 2, most)?;
        }
        Ok(())
    }

    /// Checks the hosts that it says its flows go from and to.
    fn check_hosts(&self) -> Result<(), WorkloadError> {
        let (from, to) = (&self.from, &self.to);
        let is_twice = |at: usize| from[..at].contains(&from[at]);
        let rules = [
            (
                from.contains(&TrialHost(SERVER)),
                "from is for clients, which open all flows: direction = \"from-server\" is payload of the server",
            ),
            (
                to.iter().any(|host| *host != TrialHost(SERVER)),
                "to is the server: a run has one, and all flows go to it",
            ),
            (
                (1..from.len()).any(is_twice),
                "from names a client twice: each has the same share of the flows",
            ),
            (
                !from.is_empty() && from.len() != self.clients as usize,
                "from says which clients take part, and clients another number of them: leave clients out",
            ),
        ];
        match rules.into_iter().find(|(is_broken, _)| *is_broken) {
            Some((_, why)) => Err(WorkloadError::Contradiction {
                keys: &["from", "to", "clients"],
                why,
            }),
            None => Ok(()),
        }
    }

    /// Returns the number of clients that a run needs for it.
    pub fn clients_needed(&self) -> u32 {
        let last = self.from.iter().map(|host| host.0).max();
        last.unwrap_or(self.clients)
    }

    /// Returns whether payload goes both ways at once.
    pub fn goes_both_ways(&self) -> bool {
        self.traffic.direction() == Some(Direction::Both)
    }

    /// Returns the flows, dealt to the clients in turn.
    pub fn flows(&self) -> Vec<FlowPlan> {
        let flow = |at: u32| {
            let (pair, client_part) = self.traffic.flow(at);
            let turn = pair % self.clients;
            FlowPlan {
                flow: FlowId(at),
                group: 0,
                from: self.from.get(turn as usize).map_or(1 + turn, |host| host.0),
                to: SERVER,
                client_part,
            }
        };
        (0..self.connections).map(flow).collect()
    }
}

/// Checks what one end of a flow is asked for, whoever asks: limits of every parameter, what means
/// nothing to the traffic, and what excludes each other.
pub fn check_flow(
    traffic: &Traffic,
    options: &FlowOptions,
    manner: &Manner,
) -> Result<(), WorkloadError> {
    parameter::check(&Workload {
        traffic: traffic.clone(),
        options: options.clone(),
        manner: manner.clone(),
        ..Workload::of(traffic.kind())
    })
}

/// Checks that `value` lies between `low` and `high`, both allowed.
pub(crate) fn within(
    what: &'static str,
    value: u64,
    low: u64,
    high: u64,
) -> Result<(), WorkloadError> {
    within_case(what, Case::Always, value, low, high)
}

/// Checks that `value` lies between `low` and `high`, as it must in such a case.
pub(crate) fn within_case(
    what: &'static str,
    case: Case,
    value: u64,
    low: u64,
    high: u64,
) -> Result<(), WorkloadError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(WorkloadError::Range {
        what,
        case,
        value: value.to_string(),
        allowed: format!("{low} to {high}"),
    })
}

/// Returns the end that receives the payload of a flow whose client's end is `client_part`;
/// for request/response, the requester's, since only it knows that a transaction is complete.
pub fn receiving_end(client_part: Part) -> End {
    match client_part {
        Part::Receiver | Part::Requester => End::Client,
        Part::Sender | Part::Responder => End::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_fit_the_path_and_nothing_else_does() {
        let check = |transport, most: Option<u64>, expected: u64| {
            let mut workload = Workload::stream(Direction::ToServer);
            workload.manner.transport = transport;
            workload.fit_datagrams(most.map(Bytes));
            let (_, bytes) = workload.traffic.stream().expect("a stream");
            assert_eq!(bytes, Bytes(expected), "{transport:?} {most:?}");
        };
        check(Transport::Udp, Some(1372), 1372);
        check(Transport::Udp, Some(1472), DATAGRAM_BYTES_DEFAULT.0);
        check(Transport::Udp, Some(65_507), DATAGRAM_BYTES_DEFAULT.0);
        check(Transport::Udp, Some(0), DATAGRAM_BYTES_MIN);
        check(Transport::Udp, None, 1200);
        check(Transport::Tcp, Some(1372), STREAM_MESSAGE_BYTES_DEFAULT.0);
    }

    #[test]
    fn flows_are_dealt_in_turn() {
        let workload = Workload {
            connections: 10,
            clients: 5,
            ..Workload::stream(Direction::ToServer)
        };
        let flows = workload.flows();
        assert_eq!(flows.len(), 10);
        for client in 1..=5 {
            assert_eq!(flows.iter().filter(|flow| flow.from == client).count(), 2);
        }
    }

    #[test]
    fn flows_go_from_the_hosts_that_are_named() {
        let hosts = |texts: &[&str]| -> Result<Vec<TrialHost>, String> {
            texts
                .iter()
                .map(|text| (*text).to_owned().try_into())
                .collect()
        };
        let workload = Workload {
            connections: 4,
            clients: 2,
            from: hosts(&["client 3", "client 1"]).expect("hosts"),
            to: hosts(&["server"]).expect("a host"),
            ..Workload::of(Kind::Rr)
        };
        assert_eq!(workload.check(), Ok(()));
        let from: Vec<u32> = workload.flows().iter().map(|flow| flow.from).collect();
        assert_eq!((from, workload.clients_needed()), (vec![3, 1, 3, 1], 3));
        for none in [
            "client",
            "client 0",
            "client 02",
            "client -1",
            "Server",
            "server 2",
            "",
        ] {
            hosts(&[none]).expect_err(none);
        }
        let refused = |from: &[&str], to: &[&str], clients| {
            let workload = Workload {
                clients,
                from: hosts(from).expect("hosts"),
                to: hosts(to).expect("hosts"),
                ..workload.clone()
            };
            workload.check().is_err()
        };
        assert!(refused(&["server"], &[], 1));
        assert!(refused(&["client 1"], &["client 2"], 1));
        assert!(refused(&["client 1", "client 1"], &[], 2));
        assert!(refused(&["client 1"], &[], 2));
    }

    #[test]
    fn impossible_parameters_are_named() {
        let check = |workload: Workload, what: &str| {
            let told = workload.check().unwrap_err().to_string();
            assert!(told.starts_with(what), "{told}");
        };
        let base = Workload::stream(Direction::ToServer);
        check(
            Workload {
                connections: 0,
                ..base.clone()
            },
            "connections",
        );
        check(
            Workload {
                clients: 2,
                ..base.clone()
            },
            "clients",
        );
        let options = FlowOptions {
            socket_buffer: Some(Bytes(3)),
            ..FlowOptions::default()
        };
        check(Workload { options, ..base }, "socket_buffer");
    }
}
