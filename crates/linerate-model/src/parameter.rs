//! What goes with what: the one place that says which traffic and transport a parameter belongs to.
//!
//! Flags, experiment files and the hosts ask here; a parameter that would do nothing is refused by all of
//! them rather than passed over, since whoever gives it believes that it does something. What two
//! parameters cannot do together is said here as well.

use crate::manner::{DATAGRAM_BYTES_MAX, Manner, ReceiveBy, SendBy, Sizes, Transport, WaitBy};
use crate::workload::{FlowOptions, MESSAGE_BYTES_MAX, Traffic, WorkloadError};

/// A kind of traffic, without its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Payload in one direction.
    Stream,
    /// Requests and responses on a connection that stays.
    Rr,
    /// A connection for each request.
    Crr,
    /// Connections that carry nothing.
    Idle,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Stream, Kind::Rr, Kind::Crr, Kind::Idle];

    /// Returns its name in files.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Stream => "stream",
            Kind::Rr => "rr",
            Kind::Crr => "crr",
            Kind::Idle => "idle",
        }
    }
}

impl Traffic {
    /// Returns its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Traffic::Stream { .. } => Kind::Stream,
            Traffic::Rr { .. } => Kind::Rr,
            Traffic::Crr { .. } => Kind::Crr,
            Traffic::Idle => Kind::Idle,
        }
    }
}

/// A parameter of a workload.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in experiment files.
    pub key: &'static str,
    /// The traffic that it belongs to.
    pub kinds: &'static [Kind],
    /// What may carry that.
    pub transports: &'static [Transport],
    /// Whether it is other than the default; never for sizes, which traffic of another kind has no place
    /// for.
    is_given: fn(&FlowOptions, &Manner) -> bool,
}

const STREAM: &[Kind] = &[Kind::Stream];
const RR: &[Kind] = &[Kind::Rr];
const EXCHANGE: &[Kind] = &[Kind::Rr, Kind::Crr];
const SIZED: &[Kind] = &[Kind::Stream, Kind::Rr];
const MOVING: &[Kind] = &[Kind::Stream, Kind::Rr, Kind::Crr];
const ALL: &[Kind] = &Kind::ALL;
const TCP: &[Transport] = &[Transport::Tcp, Transport::Mptcp];
const UDP: &[Transport] = &[Transport::Udp];
const ORDERED: &[Transport] = &[Transport::Tcp, Transport::Mptcp, Transport::Unix];
const NETWORK: &[Transport] = &[Transport::Tcp, Transport::Mptcp, Transport::Udp];
const ANY: &[Transport] = &[
    Transport::Tcp,
    Transport::Mptcp,
    Transport::Unix,
    Transport::Udp,
];

/// A function for [`Parameter::is_given`].
type Given = fn(&FlowOptions, &Manner) -> bool;

const fn parameter(
    key: &'static str,
    kinds: &'static [Kind],
    transports: &'static [Transport],
    is_given: Given,
) -> Parameter {
    Parameter {
        key,
        kinds,
        transports,
        is_given,
    }
}

/// Of those that a kind of traffic carries with it.
const OF_TRAFFIC: Given = |_, _| false;

/// All parameters but those that every workload has: connections, clients, transport, loss of the links.
pub const PARAMETERS: &[Parameter] = &[
    parameter("direction", STREAM, ANY, OF_TRAFFIC),
    parameter("message_bytes", STREAM, ANY, OF_TRAFFIC),
    parameter("payload_bytes", EXCHANGE, ANY, OF_TRAFFIC),
    parameter("request_bytes", EXCHANGE, ANY, OF_TRAFFIC),
    parameter("response_bytes", EXCHANGE, ANY, OF_TRAFFIC),
    parameter("request_writes", RR, ORDERED, OF_TRAFFIC),
    parameter("sizes", SIZED, ANY, |_, manner| manner.sizes.is_some()),
    parameter("send", STREAM, ORDERED, |_, manner| {
        manner.send != SendBy::Copy
    }),
    parameter("receive", STREAM, NETWORK, |_, manner| {
        manner.receive != ReceiveBy::Copy
    }),
    parameter("batch", SIZED, ANY, |_, manner| manner.batch != 1),
    parameter("segments", STREAM, UDP, |_, manner| manner.segments != 1),
    parameter("gro", STREAM, UDP, |_, manner| manner.gro),
    parameter("short_numbers", STREAM, UDP, |_, manner| {
        manner.short_numbers
    }),
    parameter("rate", STREAM, ANY, |_, manner| manner.rate_bps.is_some()),
    parameter("burst", STREAM, ANY, |_, manner| manner.burst != 1),
    parameter("bytes_max", STREAM, ANY, |_, manner| {
        manner.bytes_max.is_some()
    }),
    parameter("receive_low_water", STREAM, TCP, |_, manner| {
        manner.receive_low_water.is_some()
    }),
    parameter("in_flight", RR, ANY, |_, manner| manner.in_flight != 1),
    parameter("requests_per_s", EXCHANGE, ANY, |_, manner| {
        manner.requests_per_s.is_some()
    }),
    parameter("think", EXCHANGE, ANY, |_, manner| manner.think.is_some()),
    parameter("wait = uring", EXCHANGE, ORDERED, |_, manner| {
        manner.wait == WaitBy::Uring
    }),
    parameter("wait = spin", MOVING, ANY, |_, manner| {
        manner.wait == WaitBy::Spin
    }),
    parameter("socket_buffer", ALL, ANY, |options, _| {
        options.socket_buffer.is_some()
    }),
    parameter("nagle", ALL, TCP, |options, _| options.nagle.is_some()),
    parameter("delayed_ack", ALL, TCP, |options, _| {
        options.delayed_ack.is_some()
    }),
    parameter("congestion", ALL, TCP, |options, _| {
        options.congestion.is_some()
    }),
    parameter("mss_bytes", ALL, TCP, |options, _| {
        options.mss_bytes.is_some()
    }),
    parameter("cork", ALL, TCP, |options, _| options.cork.is_some()),
    parameter("pacing", ALL, NETWORK, |options, _| {
        options.pacing_bps.is_some()
    }),
    parameter("busy_poll_us", ALL, NETWORK, |options, _| {
        options.busy_poll_us.is_some()
    }),
    parameter("tos", ALL, NETWORK, |options, _| options.tos.is_some()),
];

/// Returns the parameter that files call `key`, if there is one.
pub fn parameter_of(key: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.key == key)
}

impl Parameter {
    /// Returns whether it means something with such traffic over such a transport.
    pub fn fits(&self, kind: Kind, transport: Transport) -> bool {
        self.kinds.contains(&kind) && self.transports.contains(&transport)
    }
}

/// Refuses parameters that such traffic has no use for, and two that exclude each other.
pub(crate) fn check(
    traffic: &Traffic,
    options: &FlowOptions,
    manner: &Manner,
) -> Result<(), WorkloadError> {
    let (kind, transport) = (traffic.kind(), manner.transport);
    let mut given = PARAMETERS
        .iter()
        .filter(|parameter| (parameter.is_given)(options, manner));
    if let Some(parameter) = given.find(|parameter| !parameter.fits(kind, transport)) {
        return Err(misplaced(parameter, kind, transport));
    }
    match contradiction(traffic, manner) {
        Some(why) => Err(WorkloadError::Contradiction(why)),
        None => Ok(()),
    }
}

fn misplaced(parameter: &Parameter, kind: Kind, transport: Transport) -> WorkloadError {
    let (belongs, with): (Vec<&str>, &str) = match parameter.kinds.contains(&kind) {
        true => {
            let names = parameter.transports.iter().map(|one| one.word());
            (names.collect(), transport.word())
        }
        false => {
            let names = parameter.kinds.iter().map(|kind| kind.word());
            (names.collect(), kind.word())
        }
    };
    WorkloadError::Misplaced {
        key: parameter.key,
        belongs: belongs.join(", "),
        with,
    }
}

/// Returns what two parameters cannot do together.
fn contradiction(traffic: &Traffic, manner: &Manner) -> Option<&'static str> {
    let transport = manner.transport;
    let over_udp = transport == Transport::Udp;
    let (message_bytes, writes) = match traffic {
        Traffic::Stream { message_bytes, .. } => (message_bytes.0, 1),
        Traffic::Rr { request_writes, .. } => (0, *request_writes),
        Traffic::Crr { .. } | Traffic::Idle => (0, 1),
    };
    let largest = manner
        .sizes
        .as_ref()
        .map_or(message_bytes, |sizes| Sizes::largest(sizes).0);
    let rules = [
        (
            traffic.kind() == Kind::Crr && transport != Transport::Tcp,
            "connections one after another are made over TCP only",
        ),
        (
            manner.send == SendBy::MsgZerocopy && transport != Transport::Tcp,
            "MSG_ZEROCOPY works with TCP only: send by vmsplice, or by copying",
        ),
        (
            manner.receive == ReceiveBy::Discard && manner.gro,
            "discarding takes each datagram's first bytes only, gro needs them all",
        ),
        (
            manner.sizes.is_some() && manner.segments > 1,
            "segments are of one size: no sizes that differ with them",
        ),
        (
            manner.sizes.is_some() && writes > 1,
            "a request of several send calls cannot have sizes that differ",
        ),
        (
            manner.batch > 1 && writes > 1,
            "requests cannot be split over send calls and joined in them at once",
        ),
        (
            manner.batch > 1 && traffic.kind() == Kind::Rr && over_udp,
            "requests over UDP have a call each: no batch",
        ),
        (
            manner.batch > manner.in_flight && traffic.kind() == Kind::Rr,
            "a call joins requests that are under way: in_flight must be batch or more",
        ),
        (
            manner.requests_per_s.is_some() && manner.think.is_some(),
            "a rate of requests leaves no room for a think time",
        ),
        (
            over_udp && message_bytes * u64::from(manner.segments) > DATAGRAM_BYTES_MAX,
            "segments times message_bytes is above 65507 bytes, one buffer's most",
        ),
        (
            !over_udp && largest.saturating_mul(manner.batch.into()) > MESSAGE_BYTES_MAX.0,
            "the messages of one call (batch times the largest) are more than 64 MiB",
        ),
    ];
    rules.into_iter().find(|rule| rule.0).map(|rule| rule.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{Bytes, Nanos};
    use crate::workload::{Direction, Workload};

    fn traffic(kind: Kind) -> Traffic {
        match kind {
            Kind::Stream => Traffic::Stream {
                direction: Direction::ToServer,
                message_bytes: Bytes(1000),
            },
            Kind::Rr => Traffic::Rr {
                request_bytes: Bytes(64),
                response_bytes: Bytes(64),
                request_writes: 1,
            },
            Kind::Crr => Traffic::Crr {
                request_bytes: Bytes(64),
                response_bytes: Bytes(64),
            },
            Kind::Idle => Traffic::Idle,
        }
    }

    /// Gives one parameter to a workload.
    type Give = fn(&mut FlowOptions, &mut Manner);

    /// Every parameter that traffic does not carry with it, with a value that means something.
    const GIVEN: &[(&str, Give)] = &[
        ("sizes", |_, manner| {
            manner.sizes = Some(Sizes::Uniform {
                low: Bytes(16),
                high: Bytes(64),
            });
        }),
        ("send", |_, manner| manner.send = SendBy::Vmsplice),
        ("receive", |_, manner| manner.receive = ReceiveBy::Discard),
        ("batch", |_, manner| manner.batch = 2),
        ("segments", |_, manner| manner.segments = 4),
        ("gro", |_, manner| manner.gro = true),
        ("short_numbers", |_, manner| manner.short_numbers = true),
        ("rate", |_, manner| manner.rate_bps = Some(1_000_000)),
        ("burst", |_, manner| {
            manner.burst = 4;
            manner.rate_bps = Some(1_000_000);
        }),
        ("bytes_max", |_, manner| {
            manner.bytes_max = Some(Bytes(1000))
        }),
        ("receive_low_water", |_, manner| {
            manner.receive_low_water = Some(Bytes(1000));
        }),
        ("in_flight", |_, manner| manner.in_flight = 4),
        ("requests_per_s", |_, manner| {
            manner.requests_per_s = Some(100)
        }),
        ("think", |_, manner| manner.think = Some(Nanos::from_ms(1))),
        ("wait = uring", |_, manner| manner.wait = WaitBy::Uring),
        ("wait = spin", |_, manner| manner.wait = WaitBy::Spin),
        ("socket_buffer", |options, _| {
            options.socket_buffer = Some(Bytes(65_536));
        }),
        ("nagle", |options, _| options.nagle = Some(false)),
        ("delayed_ack", |options, _| {
            options.delayed_ack = Some(false)
        }),
        ("congestion", |options, _| {
            options.congestion = Some("reno".to_owned());
        }),
        ("mss_bytes", |options, _| options.mss_bytes = Some(1000)),
        ("cork", |options, _| options.cork = Some(true)),
        ("pacing", |options, _| options.pacing_bps = Some(1_000_000)),
        ("busy_poll_us", |options, _| options.busy_poll_us = Some(50)),
        ("tos", |options, _| options.tos = Some(16)),
    ];

    /// Every parameter with every kind and transport: accepted exactly where the catalogue has it.
    #[test]
    fn a_parameter_is_taken_where_it_means_something_and_nowhere_else() {
        let mut refused = 0;
        for parameter in PARAMETERS {
            let Some((_, give)) = GIVEN.iter().find(|(key, _)| *key == parameter.key) else {
                let is_of_traffic =
                    !(parameter.is_given)(&FlowOptions::default(), &Manner::default());
                assert!(is_of_traffic, "{}", parameter.key);
                continue;
            };
            for kind in Kind::ALL {
                for &transport in ANY {
                    let mut workload = Workload::stream(Direction::ToServer);
                    workload.traffic = traffic(kind);
                    workload.manner.transport = transport;
                    // What cannot be without the parameter says nothing of it.
                    if workload.check().is_err() {
                        continue;
                    }
                    give(&mut workload.options, &mut workload.manner);
                    assert!((parameter.is_given)(&workload.options, &workload.manner));
                    let told = workload.check();
                    let is_contradiction = matches!(told, Err(WorkloadError::Contradiction(_)));
                    let expected = parameter.fits(kind, transport);
                    assert!(
                        told.is_ok() == expected || (expected && is_contradiction),
                        "{} {kind:?} {transport:?}: {told:?}",
                        parameter.key
                    );
                    refused += usize::from(told.is_err());
                }
            }
        }
        assert!(refused > 100, "{refused}");
    }

    #[test]
    fn what_excludes_each_other_is_said() {
        let check = |kind: Kind, change: fn(&mut Workload), expected: &str| {
            let mut workload = Workload::stream(Direction::ToServer);
            workload.traffic = traffic(kind);
            change(&mut workload);
            let told = workload.check().expect_err("refused").to_string();
            assert!(told.contains(expected), "{told}");
        };
        let mptcp: fn(&mut Workload) = |workload| workload.manner.transport = Transport::Mptcp;
        check(Kind::Crr, mptcp, "over TCP only");
        let split: fn(&mut Workload) = |workload| {
            workload.manner.batch = 2;
            if let Traffic::Rr { request_writes, .. } = &mut workload.traffic {
                *request_writes = 2;
            }
        };
        check(Kind::Rr, split, "split over send calls and joined");
        let hurried: fn(&mut Workload) = |workload| {
            workload.manner.requests_per_s = Some(10);
            workload.manner.think = Some(Nanos(10));
        };
        check(Kind::Rr, hurried, "no room for a think time");
        let large: fn(&mut Workload) = |workload| {
            workload.manner.transport = Transport::Udp;
            workload.manner.segments = 128;
        };
        check(Kind::Stream, large, "above 65507 bytes");
        let huge: fn(&mut Workload) = |workload| {
            workload.manner.batch = 1024;
            if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
                *message_bytes = Bytes(1 << 20);
            }
        };
        check(Kind::Stream, huge, "more than 64 MiB");
        // As the file of the review had it.
        let nothing_of_udp: fn(&mut Workload) = |workload| {
            workload.manner.transport = Transport::Udp;
            workload.manner.wait = WaitBy::Uring;
            workload.manner.send = SendBy::Vmsplice;
        };
        check(
            Kind::Stream,
            nothing_of_udp,
            "send is for tcp, mptcp, unix, and does nothing with udp",
        );
    }
}
