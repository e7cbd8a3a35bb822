//! The traffic wanted between hosts.

use serde::{Deserialize, Serialize};

use crate::id::FlowId;
use crate::manner::{
    DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, Manner, NAMES_OF_A_BYTE, Sizes, Transport,
};
use crate::parameter;
use crate::sample::End;
use crate::unit::Bytes;

/// The most flows that one trial may have (nofile limits of common hosts allow no more).
pub const FLOWS_MAX: u32 = 20_000;
/// The largest message, request or response.
pub const MESSAGE_BYTES_MAX: Bytes = Bytes(64 << 20);
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

/// The kind of traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Traffic {
    /// Payload in one direction as fast as the path takes it.
    Stream {
        /// Which way it goes.
        direction: Direction,
        /// Bytes handed to each send call.
        message_bytes: Bytes,
    },
    /// A request, then a response, then the next request on the same flow.
    Rr {
        /// Bytes of a request.
        request_bytes: Bytes,
        /// Bytes of a response.
        response_bytes: Bytes,
        /// Send calls that a request is split over, 1 to 16; 2 shows Nagle against delayed ACK.
        request_writes: u32,
    },
    /// A new connection for each request and its response. Each flow is a place from which one
    /// connection after another is made; without bytes they are connected and closed.
    Crr {
        /// Bytes of a request; 0 without exchange.
        request_bytes: Bytes,
        /// Bytes of a response; 0 exactly if the request has none.
        response_bytes: Bytes,
    },
    /// Connections that carry nothing.
    Idle,
}

impl Traffic {
    /// Returns whether its result is transactions rather than payload.
    pub fn is_transactional(&self) -> bool {
        matches!(self, Traffic::Rr { .. } | Traffic::Crr { .. })
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowPlan {
    /// The flow.
    pub flow: FlowId,
    /// The client that opens it, as an index from 0.
    pub client: u32,
    /// What the client's end does.
    pub client_part: Part,
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
}

/// A workload that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A parameter is out of its range.
    #[error("{what} is {value}, but must be {allowed}")]
    Range {
        /// The parameter.
        what: &'static str,
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
    /// Two parameters exclude each other.
    #[error("{0}")]
    Contradiction(&'static str),
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
    /// Returns a bulk stream with one flow from one client and the hosts' defaults.
    pub fn stream(direction: Direction) -> Self {
        Self {
            traffic: Traffic::Stream {
                direction,
                message_bytes: STREAM_MESSAGE_BYTES_DEFAULT,
            },
            connections: 1,
            clients: 1,
            link_loss_ppm: None,
            options: FlowOptions::default(),
            manner: Manner::default(),
        }
    }

    /// Checks every parameter against its limits and against each other: what passes can run.
    pub fn check(&self) -> Result<(), WorkloadError> {
        within("connections", self.connections.into(), 1, FLOWS_MAX.into())?;
        within("clients", self.clients.into(), 1, self.connections.into())?;
        if let Some(ppm) = self.link_loss_ppm {
            let most = LINK_LOSS_PPM_MAX.into();
            within("link_loss in parts per million", ppm.into(), 0, most)?;
        }
        if let Traffic::Stream {
            direction: Direction::Both,
            ..
        } = self.traffic
        {
            let what = "connections with direction `both`";
            within(what, self.connections.into(), 2, FLOWS_MAX.into())?;
        }
        check_flow(&self.traffic, &self.options, &self.manner)
    }

    /// Returns the flows, dealt to the clients in turn.
    pub fn flows(&self) -> Vec<FlowPlan> {
        (0..self.connections)
            .map(|at| FlowPlan {
                flow: FlowId(at),
                // Both directions of a pair go to the same client.
                client: match self.traffic {
                    Traffic::Stream {
                        direction: Direction::Both,
                        ..
                    } => (at / 2) % self.clients,
                    _ => at % self.clients,
                },
                client_part: match self.traffic {
                    Traffic::Rr { .. } | Traffic::Crr { .. } => Part::Requester,
                    Traffic::Idle => Part::Sender,
                    Traffic::Stream {
                        direction: Direction::ToServer,
                        ..
                    } => Part::Sender,
                    Traffic::Stream {
                        direction: Direction::FromServer,
                        ..
                    } => Part::Receiver,
                    Traffic::Stream {
                        direction: Direction::Both,
                        ..
                    } if at % 2 == 0 => Part::Sender,
                    Traffic::Stream {
                        direction: Direction::Both,
                        ..
                    } => Part::Receiver,
                },
            })
            .collect()
    }
}

/// Checks what one end of a flow is asked for, whoever asks: limits of every parameter, what means
/// nothing to the traffic, and what excludes each other.
pub fn check_flow(
    traffic: &Traffic,
    options: &FlowOptions,
    manner: &Manner,
) -> Result<(), WorkloadError> {
    match traffic {
        Traffic::Stream { message_bytes, .. } => {
            within("message_bytes", message_bytes.0, 1, MESSAGE_BYTES_MAX.0)?;
        }
        Traffic::Rr {
            request_bytes,
            response_bytes,
            request_writes,
        } => {
            within("request_bytes", request_bytes.0, 1, MESSAGE_BYTES_MAX.0)?;
            within("response_bytes", response_bytes.0, 1, MESSAGE_BYTES_MAX.0)?;
            let most = request_bytes.0.min(16);
            within("request_writes", (*request_writes).into(), 1, most)?;
        }
        Traffic::Crr {
            request_bytes,
            response_bytes,
        } => {
            let most = MESSAGE_BYTES_MAX.0;
            let least = u64::from(response_bytes.0 > 0);
            within("request_bytes", request_bytes.0, least, most)?;
            let least = u64::from(request_bytes.0 > 0);
            within("response_bytes", response_bytes.0, least, most)?;
        }
        Traffic::Idle => {}
    }
    manner.check()?;
    if manner.transport == Transport::Udp {
        check_datagrams(traffic, manner)?;
    }
    if let Some(buffer) = options.socket_buffer {
        within("socket_buffer", buffer.0, 1024, SOCKET_BUFFER_BYTES_MAX.0)?;
    }
    if let Some(mss) = options.mss_bytes {
        within("mss_bytes", mss.into(), 88, 32_767)?;
    }
    if let Some(rate) = options.pacing_bps {
        within(
            "pacing_bps",
            rate,
            *FLOW_RATE_BPS.start(),
            *FLOW_RATE_BPS.end(),
        )?;
    }
    if let Some(us) = options.busy_poll_us {
        within("busy_poll_us", us.into(), 1, BUSY_POLL_US_MAX.into())?;
    }
    parameter::check(traffic, options, manner)
}

/// Checks the sizes of datagrams.
fn check_datagrams(traffic: &Traffic, manner: &Manner) -> Result<(), WorkloadError> {
    let check_sizes = |least| match &manner.sizes {
        Some(sizes) => sizes.check_datagrams(least),
        None => Ok(()),
    };
    match *traffic {
        Traffic::Stream { message_bytes, .. } => {
            let least = DATAGRAM_BYTES_MIN;
            let most = DATAGRAM_BYTES_MAX;
            within("message_bytes over UDP", message_bytes.0, least, most)?;
            check_sizes(least)
        }
        Traffic::Rr {
            request_bytes,
            response_bytes,
            request_writes,
        } => {
            let most = DATAGRAM_BYTES_MAX;
            within("request_bytes over UDP", request_bytes.0, 1, most)?;
            within("response_bytes over UDP", response_bytes.0, 1, most)?;
            within("request_writes over UDP", request_writes.into(), 1, 1)?;
            let fixed = request_bytes.min(response_bytes);
            let sizes = manner.sizes.as_ref();
            if sizes.map_or(fixed, Sizes::smallest).0 < 2 {
                let what = "in_flight over UDP with requests or responses of 1 B";
                let in_flight = manner.in_flight.into();
                within(what, in_flight, 1, NAMES_OF_A_BYTE.into())?;
            }
            check_sizes(1)
        }
        Traffic::Crr { .. } | Traffic::Idle => Err(WorkloadError::Range {
            what: "the transport",
            value: "UDP".to_owned(),
            allowed: "TCP: UDP has no connections to make or keep".to_owned(),
        }),
    }
}

/// Checks that `value` lies between `low` and `high`, both allowed.
pub(crate) fn within(
    what: &'static str,
    value: u64,
    low: u64,
    high: u64,
) -> Result<(), WorkloadError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(WorkloadError::Range {
        what,
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
    fn flows_are_dealt_in_turn() {
        let workload = Workload {
            connections: 10,
            clients: 5,
            ..Workload::stream(Direction::ToServer)
        };
        let flows = workload.flows();
        assert_eq!(flows.len(), 10);
        for client in 0..5 {
            assert_eq!(flows.iter().filter(|flow| flow.client == client).count(), 2);
        }
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
