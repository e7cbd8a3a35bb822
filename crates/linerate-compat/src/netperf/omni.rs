//! What the client asks for.

use std::net::IpAddr;

use super::address;
use super::message::{Message, NOTHING_SAID};

/// The kind of message.
pub(super) const DO_OMNI: u32 = 97;
/// Words of the data before its texts.
const REQUEST_WORDS: usize = 38;
/// Bytes of the name of a congestion control, as the kernel has it (TCP_CA_NAME_MAX of net/tcp.h).
const CONGESTION_BYTES: usize = 16;
/// The longest message of a call, a request or a response: as long as ours.
const CALL_BYTES_MAX: u32 = 64 << 20;
/// The longest datagram (65 535 bytes less the headers of IPv4 and UDP).
const PAYLOAD_BYTES_MAX: u32 = 65_507;
/// The largest buffer of a socket that is asked for; the kernel gives what it allows.
const BUFFER_BYTES_MAX: u32 = 1 << 30;
/// The longest test: a day.
const LENGTH_S_MAX: u32 = 86_400;
/// The longest time between two bursts.
const INTERVAL_US_MAX: u32 = 60_000_000;
/// Alignment of the server's buffers, as netperf asks for it: its server crashes where that is 0
/// (`allocate_buffer_ring` of netperf's src/netlib.c).
const ALIGNMENT: u32 = 8;

/// The highest priority that needs no privilege (`sk_setsockopt` of net/core/sock.c).
const PRIORITY_MAX: u32 = 6;

/// netperf's own numbers of address families.
const FAMILY_ANY: u32 = 0;
const FAMILY_V4: u32 = 4;
const FAMILY_V6: u32 = 6;
/// netperf's own numbers of kinds of sockets.
const SOCKET_STREAM: u32 = 1;
const SOCKET_DATAGRAM: u32 = 2;
/// Numbers of protocols (IANA).
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
/// Bits of the direction.
const TRANSMITS: u32 = 2;
const RECEIVES: u32 = 4;

/// A test, as the client asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct OmniRequest {
    /// The CPU that the server is to run on.
    pub cpu: Option<u32>,
    /// The sending buffer of the server's socket.
    pub send_window_bytes: Option<u32>,
    /// The receiving buffer.
    pub receive_window_bytes: Option<u32>,
    /// What a call of the server sends in a stream.
    pub send_bytes: Option<u32>,
    /// What a call of the server may receive in a stream.
    pub receive_bytes: Option<u32>,
    /// Of an exchange.
    pub request_bytes: Option<u32>,
    /// Of an exchange.
    pub response_bytes: Option<u32>,
    /// Bits of [`super::flag`], and others that are not known here.
    pub flags: u32,
    /// How long the test goes on.
    pub length: Length,
    /// The port to listen on; 0 for any.
    pub port: u16,
    /// What carries the payload.
    pub transport: OmniTransport,
    /// Whether the client uses IPv6, where it says so.
    pub is_v6: Option<bool>,
    /// Which way the payload goes.
    pub way: Way,
    /// How what the server sends is paced.
    pub interval: Option<Interval>,
    /// The server's address for the payload, where that is not the one of the control connection.
    pub server: Option<IpAddr>,
    /// SO_PRIORITY.
    pub priority: Option<u32>,
    /// Type of service, traffic class of IPv6.
    pub tos: Option<u32>,
    /// The congestion control; the system's own if absent.
    pub congestion: Option<String>,
}

/// How long a test goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Until the client ends it.
    Open,
    /// So many seconds.
    Seconds(u32),
    /// So many transactions, or bytes of a stream.
    Units(u32),
}

/// What carries the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OmniTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// What is not spoken here.
    Other {
        /// netperf's number of the kind of socket.
        socket: u32,
        /// IANA's of the protocol.
        protocol: u32,
    },
}

/// Which way the payload goes, as the server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The server receives.
    In,
    /// The server sends.
    Out,
    /// A request comes in, a response goes out.
    Exchange,
}

/// So many calls, and then a pause until so long after the last ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Calls.
    pub burst: u32,
    /// Time from one burst to the next.
    pub us: u32,
}

/// Why a request is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OmniError {
    /// A number is none that the field can have.
    #[error("{field} cannot be {value}")]
    Range {
        /// The field.
        field: &'static str,
        /// What it says.
        value: i32,
    },
    /// A name has other characters than names have.
    #[error("the name of the congestion control is none")]
    Name,
}

impl OmniRequest {
    /// Returns a test in which nothing is asked for that needs not be.
    pub fn of(transport: OmniTransport, way: Way, length: Length) -> Self {
        Self {
            cpu: None,
            send_window_bytes: None,
            receive_window_bytes: None,
            send_bytes: None,
            receive_bytes: None,
            request_bytes: None,
            response_bytes: None,
            flags: 0,
            length,
            port: 0,
            transport,
            is_v6: None,
            way,
            interval: None,
            server: None,
            priority: None,
            tos: None,
            congestion: None,
        }
    }

    /// Reads a message whose kind says that it is one.
    pub(super) fn decode(message: &Message) -> Result<Self, OmniError> {
        let size = |index, field, most| optional(message, index, field, 1..=most);
        let transport = OmniTransport::of(message.word(22), message.word(23));
        let sent_max = match transport {
            OmniTransport::Udp => PAYLOAD_BYTES_MAX,
            _ => CALL_BYTES_MAX,
        };
        let is_v6 = match message.word(21) {
            FAMILY_ANY => None,
            FAMILY_V4 => Some(false),
            FAMILY_V6 => Some(true),
            _ => return Err(out_of_range(message, 21, "the family of addresses")),
        };
        let way = match message.word(24) {
            TRANSMITS => Way::Out,
            RECEIVES => Way::In,
            both if both == TRANSMITS | RECEIVES => Way::Exchange,
            _ => return Err(out_of_range(message, 24, "the direction")),
        };
        let port = u16::try_from(message.word(20));
        Ok(Self {
            cpu: Some(message.second()).filter(|cpu| *cpu <= i32::MAX as u32),
            send_window_bytes: size(0, "the sending buffer", BUFFER_BYTES_MAX)?,
            send_bytes: size(1, "the size of what is sent", sent_max)?,
            request_bytes: size(5, "the size of a request", sent_max)?,
            receive_window_bytes: size(6, "the receiving buffer", BUFFER_BYTES_MAX)?,
            receive_bytes: size(7, "the size of what is received", CALL_BYTES_MAX)?,
            response_bytes: size(11, "the size of a response", sent_max)?,
            flags: message.word(12),
            length: Length::read(message)?,
            port: port.map_err(|_| out_of_range(message, 20, "the port"))?,
            transport,
            is_v6,
            way,
            interval: Interval::read(message)?,
            server: address::read(message, 32, is_v6 == Some(true)),
            priority: optional(message, 36, "the priority", 0..=PRIORITY_MAX)?,
            tos: optional(message, 37, "the type of service", 0..=255)?,
            congestion: congestion(message)?,
        })
    }

    /// Returns the message that asks for it.
    pub fn encode(&self) -> Message {
        let mut message = Message::new(DO_OMNI, self.cpu.unwrap_or(NOTHING_SAID));
        let (socket, protocol) = self.transport.numbers();
        let interval = self.interval.unwrap_or(Interval { burst: 0, us: 0 });
        let family = match self.is_v6 {
            None => FAMILY_ANY,
            Some(false) => FAMILY_V4,
            Some(true) => FAMILY_V6,
        };
        let way = match self.way {
            Way::Out => TRANSMITS,
            Way::In => RECEIVES,
            Way::Exchange => TRANSMITS | RECEIVES,
        };
        let optional = [
            (0, self.send_window_bytes),
            (1, self.send_bytes),
            (5, self.request_bytes),
            (6, self.receive_window_bytes),
            (7, self.receive_bytes),
            (11, self.response_bytes),
            (36, self.priority),
            (37, self.tos),
        ];
        for (index, word) in optional {
            message.set_word(index, word.unwrap_or(NOTHING_SAID));
        }
        let plain = [
            (2, ALIGNMENT),
            (8, ALIGNMENT),
            (12, self.flags),
            (14, self.length.word()),
            (20, self.port.into()),
            (21, family),
            (22, socket),
            (23, protocol),
            (24, way),
            (26, interval.burst),
            (27, interval.us),
        ];
        for (index, word) in plain {
            message.set_word(index, word);
        }
        address::write(&mut message, 32, self.server);
        let name = self.congestion.as_deref().unwrap_or("");
        message.set_text((REQUEST_WORDS, 0), CONGESTION_BYTES, name);
        message
    }

    /// Returns whether a bit of [`super::flag`] is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

impl OmniTransport {
    fn of(socket: u32, protocol: u32) -> Self {
        match (socket, protocol) {
            (SOCKET_STREAM, IPPROTO_TCP) => Self::Tcp,
            (SOCKET_DATAGRAM, IPPROTO_UDP) => Self::Udp,
            (socket, protocol) => Self::Other { socket, protocol },
        }
    }

    fn numbers(self) -> (u32, u32) {
        match self {
            Self::Tcp => (SOCKET_STREAM, IPPROTO_TCP),
            Self::Udp => (SOCKET_DATAGRAM, IPPROTO_UDP),
            Self::Other { socket, protocol } => (socket, protocol),
        }
    }
}

impl Length {
    fn read(message: &Message) -> Result<Self, OmniError> {
        match message.word(14).cast_signed() {
            0 => Ok(Self::Open),
            units if units < 0 => Ok(Self::Units(units.unsigned_abs())),
            seconds if seconds.unsigned_abs() <= LENGTH_S_MAX => {
                Ok(Self::Seconds(seconds.unsigned_abs()))
            }
            _ => Err(out_of_range(message, 14, "the length of the test")),
        }
    }

    /// Returns it as the wire has it.
    pub fn word(self) -> u32 {
        match self {
            Self::Open => 0,
            Self::Seconds(seconds) => seconds,
            Self::Units(units) => units.wrapping_neg(),
        }
    }
}

impl Interval {
    /// A client that asks for no pause sends zeros.
    fn read(message: &Message) -> Result<Option<Self>, OmniError> {
        let within = |index, field, most| optional(message, index, field, 1..=most);
        let burst = within(26, "the burst", i32::MAX as u32)?;
        let us = within(27, "the time between bursts", INTERVAL_US_MAX)?;
        Ok(burst.zip(us).map(|(burst, us)| Self { burst, us }))
    }
}

/// Reads a word that says nothing where it is negative, or less than its range begins with.
fn optional(
    message: &Message,
    index: usize,
    field: &'static str,
    range: std::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, OmniError> {
    let word = message.word(index);
    if word > i32::MAX as u32 || word < *range.start() {
        return Ok(None);
    }
    if !range.contains(&word) {
        return Err(out_of_range(message, index, field));
    }
    Ok(Some(word))
}

fn out_of_range(message: &Message, index: usize, field: &'static str) -> OmniError {
    let value = message.word(index).cast_signed();
    OmniError::Range { field, value }
}

fn congestion(message: &Message) -> Result<Option<String>, OmniError> {
    let name = message.text(REQUEST_WORDS, 0, CONGESTION_BYTES);
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err(OmniError::Name);
    }
    let name = String::from_utf8_lossy(name).into_owned();
    Ok(Some(name).filter(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::super::{Request, flag};
    use super::*;

    fn full() -> OmniRequest {
        OmniRequest {
            cpu: Some(3),
            send_window_bytes: Some(1),
            receive_window_bytes: Some(BUFFER_BYTES_MAX),
            send_bytes: Some(CALL_BYTES_MAX),
            receive_bytes: Some(4096),
            request_bytes: Some(1),
            response_bytes: Some(200),
            flags: 0x29,
            length: Length::Seconds(LENGTH_S_MAX),
            port: 65_535,
            transport: OmniTransport::Tcp,
            is_v6: Some(true),
            way: Way::Exchange,
            interval: Some(Interval { burst: 7, us: 1000 }),
            server: Some("2001:db8::1:2".parse().unwrap()),
            priority: Some(6),
            tos: Some(255),
            congestion: Some("cubic".to_owned()),
        }
    }

    fn decoded(message: &Message) -> Result<OmniRequest, OmniError> {
        match Request::decode(message) {
            Request::Omni(request) => *request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_asked_for_survives_the_wire() {
        let check = |request: OmniRequest| {
            assert_eq!(decoded(&request.encode()), Ok(request));
        };
        check(full());
        check(OmniRequest::of(
            OmniTransport::Udp,
            Way::In,
            Length::Units(i32::MIN.unsigned_abs()),
        ));
        let ways = [Way::In, Way::Out, Way::Exchange];
        for way in ways {
            check(OmniRequest::of(OmniTransport::Tcp, way, Length::Open));
        }
        let sctp = OmniTransport::Other {
            socket: 1,
            protocol: 132,
        };
        check(OmniRequest::of(sctp, Way::In, Length::Seconds(1)));
        check(OmniRequest {
            is_v6: Some(false),
            server: Some("192.0.2.7".parse().unwrap()),
            ..full()
        });
    }

    /// Words as netperf 2.7.1 sends them for `-t TCP_RR -l 5 -- -r 64,128` from 127.0.0.1.
    #[test]
    fn words_stand_where_netperf_has_them() {
        let mut bytes = [0; super::super::MESSAGE_BYTES];
        let mut set = |index: usize, word: i32| {
            bytes[index * 4..][..4].copy_from_slice(&word.to_be_bytes());
        };
        let words = [
            (0, 97),
            (1, -1),
            (2, -1),
            (3, -1),
            (4, 8),
            (6, 1),
            (7, 64),
            (8, -1),
            (9, -1),
            (10, 8),
            (12, 1),
            (13, 128),
            (14, 32),
            (16, 5),
            (19, -1),
            (20, -1),
            (21, -1),
            (23, 4),
            (24, 1),
            (25, 6),
            (26, 6),
            (38, -1),
            (39, -1),
        ];
        for (index, word) in words {
            set(index, word);
        }
        let asked = decoded(&Message::from_bytes(bytes)).unwrap();
        let expected = OmniRequest {
            request_bytes: Some(64),
            response_bytes: Some(128),
            flags: flag::NAMES_CONGESTION,
            is_v6: Some(false),
            ..OmniRequest::of(OmniTransport::Tcp, Way::Exchange, Length::Seconds(5))
        };
        assert_eq!(asked, expected);
    }

    #[test]
    fn numbers_that_a_field_cannot_have_are_refused() {
        let check = |index: usize, word: u32, transport| {
            let mut message = OmniRequest::of(transport, Way::In, Length::Open).encode();
            message.set_word(index, word);
            let told = decoded(&message).unwrap_err();
            let value = word.cast_signed();
            assert!(
                matches!(told, OmniError::Range { value: said, .. } if said == value),
                "{index}: {told:?}"
            );
        };
        for (index, word) in [
            (0, BUFFER_BYTES_MAX + 1),
            (6, BUFFER_BYTES_MAX + 1),
            (1, CALL_BYTES_MAX + 1),
            (5, CALL_BYTES_MAX + 1),
            (7, CALL_BYTES_MAX + 1),
            (11, CALL_BYTES_MAX + 1),
            (14, LENGTH_S_MAX + 1),
            (20, 65_536),
            (20, u32::MAX),
            (21, 7),
            (24, 0),
            (24, 1),
            (24, 8),
            (27, INTERVAL_US_MAX + 1),
            (36, 7),
            (37, 256),
        ] {
            check(index, word, OmniTransport::Tcp);
        }
        for index in [1, 5, 11] {
            check(index, PAYLOAD_BYTES_MAX + 1, OmniTransport::Udp);
        }
        let named = OmniRequest {
            congestion: Some("a b".to_owned()),
            ..full()
        };
        assert_eq!(decoded(&named.encode()), Err(OmniError::Name));
    }
}
