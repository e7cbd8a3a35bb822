//! One TCP or UDP socket of a host at one instant, as its kernel tells of it.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The protocol of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Protocol {
    /// Returns the number that IP headers and the kernel give it.
    pub fn number(self) -> u8 {
        match self {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
        }
    }
}

/// The state of a socket, numbered as in `include/net/tcp_states.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum SocketState {
    /// Both ends agreed; a connected socket of UDP.
    Established = 1,
    /// Asked, not yet answered.
    SynSent = 2,
    /// Was asked and answered, not yet confirmed.
    SynRecv = 3,
    /// This end closed, not yet acknowledged.
    FinWait1 = 4,
    /// This end closed, the other did not.
    FinWait2 = 5,
    /// Both closed; the kernel remembers the addresses for a minute.
    TimeWait = 6,
    /// Not connected: closed, or a socket of UDP without a peer.
    Close = 7,
    /// The other end closed, this one did not.
    CloseWait = 8,
    /// Both closed, this end's close is not yet acknowledged.
    LastAck = 9,
    /// Waits for connections.
    Listen = 10,
    /// Both closed at the same time.
    Closing = 11,
    /// A request for a connection, which has no socket yet.
    NewSynRecv = 12,
}

impl SocketState {
    /// Every state by number, with its name as `ss` spells it.
    pub const ALL: [(&'static str, SocketState); 12] = [
        ("established", SocketState::Established),
        ("syn-sent", SocketState::SynSent),
        ("syn-recv", SocketState::SynRecv),
        ("fin-wait-1", SocketState::FinWait1),
        ("fin-wait-2", SocketState::FinWait2),
        ("time-wait", SocketState::TimeWait),
        ("close", SocketState::Close),
        ("close-wait", SocketState::CloseWait),
        ("last-ack", SocketState::LastAck),
        ("listen", SocketState::Listen),
        ("closing", SocketState::Closing),
        ("new-syn-recv", SocketState::NewSynRecv),
    ];

    /// Returns the state that the kernel gives as `number`.
    pub fn from_number(number: u8) -> Option<Self> {
        let row = Self::ALL.get(usize::from(number.checked_sub(1)?))?;
        Some(row.1)
    }

    /// Returns the state's bit in a mask of states (`1 << TCP_ESTABLISHED` and so on).
    pub fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Returns the name, as `ss` spells it.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize - 1].0
    }
}

impl fmt::Display for SocketState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of a congestion control algorithm, kept without allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CongestionName {
    /// TCP_CA_NAME_MAX bytes, filled up with zeros.
    bytes: [u8; 16],
}

impl CongestionName {
    /// Takes the name up to its first zero; the kernel's names are ASCII and have 15 bytes or less.
    pub fn from_bytes(name: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let printable = name
            .iter()
            .take(15)
            .take_while(|byte| byte.is_ascii_graphic());
        for (place, byte) in bytes.iter_mut().zip(printable) {
            *place = *byte;
        }
        Self { bytes }
    }

    /// Returns the name as text; empty where the kernel told none.
    pub fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(16);
        std::str::from_utf8(&self.bytes[..end]).unwrap_or_default()
    }
}

impl fmt::Debug for CongestionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for CongestionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for CongestionName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CongestionName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Self::from_bytes(name.as_bytes()))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CongestionName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CongestionName".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// What a socket's buffers hold (`struct sk_meminfo`, SK_MEMINFO_*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketMemory {
    /// Memory of packets received and not yet read, in bytes.
    pub rmem_alloc_bytes: u32,
    /// The receive buffer's limit, in bytes.
    pub rcvbuf_bytes: u32,
    /// Memory of packets handed to the layers below, in bytes.
    pub wmem_alloc_bytes: u32,
    /// The send buffer's limit, in bytes.
    pub sndbuf_bytes: u32,
    /// Memory of data queued to be sent or acknowledged, in bytes.
    pub wmem_queued_bytes: u32,
    /// Packets in the backlog while the program owns the socket, in bytes.
    pub backlog_bytes: u32,
    /// Packets dropped at the socket since it was made.
    pub drops: u32,
}

/// What TCP knows of a connection (`struct tcp_info`); a counter that wraps says so.
///
/// Fields that an older kernel does not fill are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpInfo {
    /// tcpi_rto: retransmission timeout, in microseconds.
    pub rto_us: u32,
    /// tcpi_ato: delayed-ACK timeout, in microseconds.
    pub ato_us: u32,
    /// tcpi_snd_mss, in bytes.
    pub snd_mss_bytes: u32,
    /// tcpi_rcv_mss, in bytes.
    pub rcv_mss_bytes: u32,
    /// tcpi_unacked: segments in flight; of a listener, connections that wait to be accepted.
    pub unacked: u32,
    /// tcpi_sacked: segments acknowledged out of order; of a listener, the most that may wait.
    pub sacked: u32,
    /// tcpi_rtt: smoothed round-trip time, in microseconds.
    pub rtt_us: u32,
    /// tcpi_rttvar: its mean deviation, in microseconds.
    pub rttvar_us: u32,
    /// tcpi_min_rtt, in microseconds.
    pub min_rtt_us: u32,
    /// tcpi_snd_cwnd: congestion window, in segments.
    pub snd_cwnd: u32,
    /// tcpi_snd_ssthresh, in segments.
    pub snd_ssthresh: u32,
    /// tcpi_snd_wnd: window that the peer advertises, in bytes.
    pub snd_wnd_bytes: u32,
    /// tcpi_rcv_wnd: window that this end advertises, in bytes.
    pub rcv_wnd_bytes: u32,
    /// tcpi_rcv_space: receive auto-tuning's estimate, in bytes.
    pub rcv_space_bytes: u32,
    /// tcpi_notsent_bytes: queued, not yet sent.
    pub notsent_bytes: u32,
    /// tcpi_pacing_rate, in bytes a second; all ones is no limit.
    pub pacing_bytes_per_s: u64,
    /// tcpi_delivery_rate, in bytes a second.
    pub delivery_bytes_per_s: u64,
    /// tcpi_segs_out: segments sent; wraps at 2³².
    pub segs_out: u32,
    /// tcpi_segs_in: segments received; wraps at 2³².
    pub segs_in: u32,
    /// tcpi_data_segs_out: segments sent with payload; wraps at 2³².
    pub data_segs_out: u32,
    /// tcpi_data_segs_in: segments received with payload; wraps at 2³².
    pub data_segs_in: u32,
    /// tcpi_total_retrans: segments sent again; wraps at 2³².
    pub total_retrans: u32,
    /// tcpi_bytes_sent: payload sent, retransmissions included.
    pub bytes_sent: u64,
    /// tcpi_bytes_acked: payload that the peer acknowledged.
    pub bytes_acked: u64,
    /// tcpi_bytes_received: payload received in order.
    pub bytes_received: u64,
    /// tcpi_busy_time: with data outstanding, in microseconds.
    pub busy_us: u64,
    /// tcpi_rwnd_limited: held by the peer's window, in microseconds.
    pub rwnd_limited_us: u64,
    /// tcpi_sndbuf_limited: held by the send buffer, in microseconds.
    pub sndbuf_limited_us: u64,
    /// What agents did not read before.
    #[serde(default)]
    pub more: Option<TcpMore>,
}

/// What else TCP knows of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpMore {
    /// tcpi_options: what the handshake agreed on (TCPI_OPT_SACK and others).
    pub options: u8,
    /// tcpi_delivery_rate_app_limited: whether the last rate was what the program wrote.
    pub is_app_limited: bool,
    /// tcpi_delivered: segments that arrived; wraps at 2³².
    pub delivered: u32,
    /// tcpi_delivered_ce: those of them whose ACKs echo a congestion mark; wraps at 2³².
    pub delivered_ce: u32,
    /// tcpi_bytes_retrans: payload that was retransmitted.
    pub bytes_retrans: u64,
    /// tcpi_dsack_dups: segments that the peer got twice; wraps at 2³².
    pub dsack_dups: u32,
    /// tcpi_reord_seen: times that segments came in another order; wraps at 2³².
    pub reord_seen: u32,
    /// tcpi_total_rto: times that the retransmission timer fired; absent before Linux 6.7.
    pub timeouts: Option<u16>,
}

/// One socket at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketRow {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Its state.
    pub state: SocketState,
    /// This end's address.
    pub local: SocketAddr,
    /// The other end's address; unspecified and port 0 where there is none.
    pub remote: SocketAddr,
    /// The device it is bound to, by the kernel's number; 0 for none.
    pub link_index: u32,
    /// The kernel's name for the socket, never used twice while the host is up.
    pub cookie: u64,
    /// The user that made it.
    pub uid: u32,
    /// Its number in `/proc/PID/fd`; 0 once no process holds it.
    pub inode: u64,
    /// Bytes that wait to be read; of a listener, connections that wait to be accepted.
    pub receive_queue: u32,
    /// Bytes not yet sent or acknowledged; of a listener, the most that may wait.
    pub send_queue: u32,
    /// Its buffers, where asked for.
    pub memory: Option<SocketMemory>,
    /// Its congestion control; empty where not asked for or not of TCP.
    pub congestion: CongestionName,
    /// What TCP knows of it; absent for UDP and for connections that are over.
    pub tcp: Option<TcpInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_lead_back_by_number() {
        for (name, state) in SocketState::ALL {
            assert_eq!(state.name(), name);
            assert_eq!(SocketState::from_number(state as u8), Some(state));
        }
        for number in [0, 13, 255] {
            assert_eq!(SocketState::from_number(number), None);
        }
    }

    #[test]
    fn congestion_names_end_at_the_first_zero() {
        let check = |bytes: &[u8], expect: &str| {
            assert_eq!(CongestionName::from_bytes(bytes).as_str(), expect);
        };
        check(b"cubic\0", "cubic");
        check(b"bbr", "bbr");
        check(b"", "");
        check(b"0123456789abcdefgh", "0123456789abcde");
        check(b"\xff\xfe", "");
    }
}
