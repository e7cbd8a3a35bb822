//! How traffic is made: what carries it, by which system calls, at which rate, in which sizes.
//!
//! A `Manner` changes what a measurement costs and how fast it can be, not what it asks. Every
//! choice that is made here is named in the result, as a setting of each flow.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::named::Named;
use crate::step::{Step, exchanged};
use crate::unit::{Bytes, Nanos};
use crate::workload::{
    Case, FlowOptions, MESSAGE_BYTES_MAX, Part, Traffic, Workload, WorkloadError, within_case,
};

/// Messages that one send call may carry, and requests that one flow may have in flight.
pub const BATCH_MAX: u32 = 1024;
/// CPUs that workers may be confined to: as many as there may be workers.
pub const CPUS_MAX: u32 = 1024;
/// Messages of a paced stream that may go back to back, as many as iperf3 takes.
pub const BURST_MAX: u32 = 1000;
/// Datagrams that the kernel cuts one buffer into (UDP_MAX_SEGMENTS of include/linux/udp.h, since
/// Linux 6.9; 64 before).
pub const SEGMENTS_MAX: u32 = 128;
/// The largest payload of a datagram over IPv4: 65 535 less the headers of IP and UDP.
pub const DATAGRAM_BYTES_MAX: u64 = 65_507;
/// The least payload of a datagram of a stream: seconds, microseconds, and a number of 64 bits.
pub const DATAGRAM_BYTES_MIN: u64 = 16;
/// Bytes that must have come before the receiver of small messages is woken, where that is left to
/// us: half of the first window (64 KiB) that a connection with the default buffers offers, so that
/// the sender never waits for it. Messages of 100 B over loopback, thousands a second and µs of CPU
/// at the sender for one: 1 B 213 and 4.3, 4 KiB 269 and 3.6, 16 KiB 286 and 3.4, 32 KiB 297 and
/// 3.3, 64 KiB 271 and 3.6.
pub const RECEIVE_LOW_WATER_BYTES: Bytes = Bytes(32 << 10);
/// The largest call that counts as small there: of larger ones few wake the receiver anyway.
pub const SMALL_CALL_BYTES_MAX: u64 = 4096;
/// Messages of 128 KiB that one call of a bulk flow carries, where that is left to us: 1 MiB. One flow
/// over loopback, Gbit/s, medians of five interleaved runs: 128 KiB a call 52, 256 KiB 55, 512 KiB 59,
/// 1 MiB 61, 2 MiB the same; iperf3, with 128 KiB, 52. Ten flows, 128 KiB 69, 1 MiB 77; with a payload
/// of 1 MiB instead of one of 128 KiB eight times 65, since that stays in no cache.
pub const STREAM_BATCH: u32 = 8;
/// The largest datagram of a stream that counts as small: the kernel takes 768 B for it.
pub const SMALL_DATAGRAM_BYTES_MAX: u64 = 192;
/// Small datagrams of a call, where that is left to us and several flows send as fast as they can.
pub const DATAGRAM_BATCH: u32 = 64;
/// Requests over UDP that a byte tells apart, and each from the one before it in its place.
pub const NAMES_OF_A_BYTE: u32 = 128;
/// Sizes that a list may hold.
pub const SIZES_MAX: usize = 65_536;

/// What carries the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// Multipath TCP; plain TCP where the other end does not speak it.
    Mptcp,
    /// Stream sockets of the Unix domain: both ends on one host, a baseline without a network.
    Unix,
    /// UDP.
    Udp,
}

/// How a sender of bulk payload hands it to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SendBy {
    /// `send`: the kernel copies.
    #[default]
    Copy,
    /// Whichever of those below a short probe at the start finds to be the fastest, or `send`.
    Auto,
    /// Pages of a constant buffer, through a pipe: `vmsplice` and `splice`.
    Vmsplice,
    /// `send` with MSG_ZEROCOPY.
    MsgZerocopy,
    /// `sendfile` from a file in memory.
    Sendfile,
}

/// How a receiver of bulk payload takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReceiveBy {
    /// `recv`: the kernel copies.
    #[default]
    Copy,
    /// `recv` with MSG_TRUNC: the kernel counts and drops.
    Discard,
}

/// How a worker waits for what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitBy {
    /// Blocking for one flow; for many, and where connections are made, io_uring where it helps and
    /// exists, epoll where not.
    #[default]
    Auto,
    /// Readiness by epoll.
    Epoll,
    /// Completions by io_uring.
    Uring,
    /// Not at all: calls are repeated until they move something. Takes a CPU for each worker.
    Spin,
    /// A sender of datagrams not for its socket either: its frames go to the device by AF_XDP, past
    /// sockets, routing, netfilter and queueing. Receivers wait as they choose.
    Xdp,
}

/// Sizes that differ from message to message, or from request to request.
///
/// Both ends draw the same sizes: from the list in its order, or from a generator that is seeded
/// with the number of the flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sizes {
    /// These, one after another, again and again.
    List {
        /// The sizes, shared by all flows: there may be 65 536.
        bytes: Arc<[Bytes]>,
    },
    /// Each size between two, both included, with the same probability.
    Uniform {
        /// The least.
        low: Bytes,
        /// The greatest.
        high: Bytes,
    },
    /// Sizes whose logarithm is normally distributed, cut at 1 B and the largest message.
    LogNormal {
        /// The middle size.
        median: Bytes,
        /// Standard deviation of the natural logarithm, in hundredths: 100 = a factor of e.
        sigma_percent: u32,
    },
}

/// How the traffic of a workload is made; the default is plain calls as fast as they go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Manner {
    /// What carries the payload.
    pub transport: Transport,
    /// How bulk payload is sent.
    pub send: SendBy,
    /// How bulk payload is received.
    pub receive: ReceiveBy,
    /// How workers wait.
    pub wait: WaitBy,
    /// Messages of a stream that one send call carries, 1 to [`BATCH_MAX`]; datagrams with UDP.
    pub batch: u32,
    /// Whether `batch` is the program's own choice, which the settings then say with its reason.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub batch_is_chosen: bool,
    /// Datagrams that the kernel cuts one buffer into (UDP_SEGMENT), 1 to [`SEGMENTS_MAX`].
    pub segments: u32,
    /// Whether the receiver takes datagrams that the kernel has put together (UDP_GRO).
    pub gro: bool,
    /// Requests of a flow that may be under way, 1 to [`BATCH_MAX`].
    pub in_flight: u32,
    /// Payload that each sending end sends a second, in bits, by a pacer of ours; absent = no
    /// limit. [`crate::workload::FlowOptions::pacing_bps`] asks the kernel instead.
    pub rate_bps: Option<u64>,
    /// Messages of a paced stream, datagrams with UDP, that go back to back before the sender rests
    /// for as long as they take at its rate, 1 to [`BURST_MAX`]; 1 = each is due for itself.
    pub burst: u32,
    /// Requests that each flow begins a second, whether or not responses have come (open loop);
    /// latency then counts from the intended instant. Absent = the next follows a response.
    pub requests_per_s: Option<u32>,
    /// Pause between a response and the next request.
    pub think: Option<Nanos>,
    /// Sizes of messages, or of requests and responses, that differ; absent = as the traffic says.
    pub sizes: Option<Sizes>,
    /// Payload after which each sending end stops, should it come before the end of the trial.
    pub bytes_max: Option<Bytes>,
    /// Whether datagrams carry 32-bit numbers, as iperf3's do unless it is asked for more.
    pub short_numbers: bool,
    /// Bytes that must have come before the receiver of a stream is woken (SO_RCVLOWAT); absent =
    /// the kernel's 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_low_water: Option<Bytes>,
    /// What each request and its response are made of, where they are more than one message each; all of it is one
    /// transaction, whose request and response have the bytes of the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Arc<[Step]>>,
    /// CPUs that the workers of each end are confined to: the first of those that its process may use; absent = as
    /// they are placed otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            transport: Transport::default(),
            send: SendBy::default(),
            receive: ReceiveBy::default(),
            wait: WaitBy::default(),
            batch: 1,
            batch_is_chosen: false,
            segments: 1,
            gro: false,
            in_flight: 1,
            rate_bps: None,
            burst: 1,
            requests_per_s: None,
            think: None,
            sizes: None,
            bytes_max: None,
            short_numbers: false,
            receive_low_water: None,
            steps: None,
            cpus: None,
        }
    }
}

impl Workload {
    /// Lets its requests and responses have `steps`, and the bytes of these.
    pub fn set_steps(&mut self, steps: Vec<Step>) {
        if let Some((request, response)) = self.traffic.exchange_mut() {
            (*request, *response) = exchanged(&steps);
        }
        self.manner.steps = Some(steps.into());
    }

    /// Returns when its receiver is best woken, where nobody asks for anything else.
    ///
    /// 1. Only a stream over TCP of small calls without Nagle's algorithm: each call makes a segment
    ///    then, and wakes the receiver.
    /// 2. With Nagle's algorithm a sender waits for acknowledgements, which a receiver that sleeps
    ///    delays by 40 ms.
    /// 3. Who asks for a rate or for a way to acknowledge asks what becomes of single messages.
    /// 4. A buffer that was asked for is filled to an eighth at the most.
    pub fn receive_low_water(&self) -> Option<Bytes> {
        let (_, message_bytes) = self.traffic.stream()?;
        let (options, manner) = (&self.options, &self.manner);
        let sizes = manner.sizes.as_ref();
        let largest_bytes = sizes.map_or(message_bytes, Sizes::largest).0;
        let calls_wake = manner.transport == Transport::Tcp
            && options.nagle == Some(false)
            && options.cork != Some(true)
            && largest_bytes * u64::from(manner.batch) <= SMALL_CALL_BYTES_MAX;
        if !calls_wake || !self.is_unpaced() || options.delayed_ack.is_some() {
            return None;
        }
        let most = options.socket_buffer.map_or(u64::MAX, |bytes| bytes.0 / 8);
        let bytes = RECEIVE_LOW_WATER_BYTES.0.min(most);
        (bytes > largest_bytes).then_some(Bytes(bytes))
    }

    /// Turns Nagle's algorithm off where it would hold what is measured, unless somebody asked for it.
    ///
    /// 1. Only requests at a rate over TCP have it off. A response that missed a request once is held until the next
    ///    one acknowledges it, and so is each after it: the latency would be a period of the rate (1.04 ms of 1000
    ///    requests a second over a path of 50 µs). Programs that answer requests have it off as well.
    /// 2. Requests that follow responses wait for nothing unless they are split, and who splits them asks what
    ///    Nagle's algorithm does.
    pub fn choose_nagle(&mut self) {
        let is_open = self.manner.requests_per_s.is_some() && self.traffic.is_lasting();
        if is_open && self.manner.transport.is_tcp() {
            self.options.nagle.get_or_insert(false);
        }
    }

    /// Returns how many datagrams a send call of it best carries, where nobody asks for anything else.
    ///
    /// 1. Those of [`datagrams_gather`], of several flows, whose senders share CPUs with receivers. One flow
    ///    shows what each datagram costs, and is as fast by plain calls: its receiver has a CPU of its own.
    /// 2. AF_XDP is asked for the rate alone: its one flow goes in batches of any size.
    pub fn datagram_batch(&self) -> u32 {
        let manner = &self.manner;
        let is_past_sockets = self.traffic.is_stream()
            && manner.transport == Transport::Udp
            && manner.wait == WaitBy::Xdp
            && manner.sizes.is_none()
            && self.is_unpaced();
        let gather = || datagrams_gather(&self.traffic, &self.options, manner);
        if is_past_sockets || self.connections > 1 && gather() {
            DATAGRAM_BATCH
        } else {
            1
        }
    }

    /// Returns how many messages a send call of it best carries, where nobody asks for a size,
    /// neither of messages nor of calls.
    ///
    /// 1. Only flows that copy as fast as they can: a sender that finds room for more of its call goes on
    ///    without a way out of the kernel and back.
    /// 2. Who asks for a rate asks when calls are made; who asks for a buffer or a way to wait has chosen
    ///    another way.
    pub fn stream_batch(&self) -> u32 {
        let manner = &self.manner;
        let is_plain = manner.send == SendBy::Copy
            && manner.wait == WaitBy::Auto
            && manner.sizes.is_none()
            && self.options.socket_buffer.is_none();
        let is_tcp = manner.transport.is_tcp();
        if self.traffic.is_stream() && is_tcp && self.is_unpaced() && is_plain {
            STREAM_BATCH
        } else {
            1
        }
    }

    /// Whether no rate is asked for, neither of us nor of the kernel.
    fn is_unpaced(&self) -> bool {
        is_unpaced(&self.options, &self.manner)
    }
}

fn is_unpaced(options: &FlowOptions, manner: &Manner) -> bool {
    manner.rate_bps.is_none() && options.pacing_bps.is_none()
}

/// Returns whether receivers of such traffic best let some datagrams gather, instead of being woken for each,
/// which costs a sender on the same host a fifth of what it sends and more.
///
/// 1. Only streams that go as fast as they can: who asks for a rate asks what becomes of single datagrams, and
///    when.
/// 2. Only small datagrams of one size: what comes during a rest has room in the default buffer. Who asks for
///    a buffer, for GSO or GRO, or for a way to wait has chosen another way.
pub fn datagrams_gather(traffic: &Traffic, options: &FlowOptions, manner: &Manner) -> bool {
    let stream = traffic.stream();
    stream.is_some_and(|(_, bytes)| bytes.0 <= SMALL_DATAGRAM_BYTES_MAX)
        && manner.transport == Transport::Udp
        && is_unpaced(options, manner)
        && manner.sizes.is_none()
        && manner.segments == 1
        && !manner.gro
        && manner.wait == WaitBy::Auto
        && options.socket_buffer.is_none()
        && options.busy_poll_us.is_none()
}

impl Transport {
    /// All of them.
    pub const ALL: &'static [Transport] = &[
        Transport::Tcp,
        Transport::Mptcp,
        Transport::Unix,
        Transport::Udp,
    ];

    /// Whether TCP carries it, over one path or several.
    pub fn is_tcp(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Mptcp)
    }

    /// Returns it as people write it.
    pub fn title(self) -> &'static str {
        match self {
            Transport::Tcp => "TCP",
            Transport::Mptcp => "MPTCP",
            Transport::Unix => "Unix",
            Transport::Udp => "UDP",
        }
    }
}

impl Named for Transport {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("tcp", Transport::Tcp),
        ("mptcp", Transport::Mptcp),
        ("unix", Transport::Unix),
        ("udp", Transport::Udp),
    ];
}

impl Named for Part {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("sender", Part::Sender),
        ("receiver", Part::Receiver),
        ("requester", Part::Requester),
        ("responder", Part::Responder),
    ];
}

impl Named for SendBy {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("copy", SendBy::Copy),
        ("auto", SendBy::Auto),
        ("vmsplice", SendBy::Vmsplice),
        ("msg_zerocopy", SendBy::MsgZerocopy),
        ("sendfile", SendBy::Sendfile),
    ];
}

impl Named for ReceiveBy {
    const NAMES: &'static [(&'static str, Self)] =
        &[("copy", ReceiveBy::Copy), ("discard", ReceiveBy::Discard)];
}

impl Named for WaitBy {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("auto", WaitBy::Auto),
        ("epoll", WaitBy::Epoll),
        ("uring", WaitBy::Uring),
        ("spin", WaitBy::Spin),
        ("xdp", WaitBy::Xdp),
    ];
}

impl Manner {
    /// Returns whether flows rest between requests, or in them: these are due at a rate, or follow or have a pause.
    pub fn rests_between_requests(&self) -> bool {
        self.requests_per_s.is_some() || self.think.is_some() || self.has_pauses()
    }

    /// Returns whether an end pauses in the middle of an exchange.
    pub fn has_pauses(&self) -> bool {
        let mut steps = self.steps.iter().flat_map(|steps| steps.iter());
        steps.any(|step| matches!(step, Step::Pause { .. }))
    }

    /// Returns whether workers keep their CPUs busy whatever there is to do: they wait so, or pause so.
    pub fn spins(&self) -> bool {
        let mut steps = self.steps.iter().flat_map(|steps| steps.iter());
        self.wait == WaitBy::Spin
            || steps.any(|step| matches!(step, Step::Pause { busy: true, .. }))
    }

    /// Checks that datagrams of `least` bytes and more can have the sizes. Log-normal ones are cut
    /// to what datagrams can have, so that only their middle has to be.
    pub(crate) fn check_datagrams(&self, least: u64) -> Result<(), WorkloadError> {
        let sizes = self.sizes.as_ref();
        sizes.map_or(Ok(()), |sizes| {
            sizes.check(Case::Udp, least, DATAGRAM_BYTES_MAX)
        })
    }
}

/// What of sizes may be out of its range, as a [`WorkloadError`] names it.
pub mod of_sizes {
    /// One of them.
    pub const ONE: &str = "a size";
    /// The greatest.
    pub const GREATEST: &str = "the greatest size";
    /// How many there are.
    pub const COUNT: &str = "the number of sizes";
    /// The width of a log-normal distribution.
    pub const WIDTH: &str = "sigma_percent";
}

impl Sizes {
    /// Returns the smallest size that can occur.
    pub fn smallest(&self) -> Bytes {
        match self {
            Sizes::List { bytes } => bytes.iter().copied().min().unwrap_or(Bytes(1)),
            Sizes::Uniform { low, .. } => *low,
            Sizes::LogNormal { .. } => Bytes(1),
        }
    }

    /// Returns the largest size that can occur.
    pub fn largest(&self) -> Bytes {
        match self {
            Sizes::List { bytes } => bytes.iter().copied().max().unwrap_or(Bytes(1)),
            Sizes::Uniform { high, .. } => *high,
            // Five standard deviations: one size in three million is cut.
            Sizes::LogNormal {
                median,
                sigma_percent,
            } => {
                let most = median.0 as f64 * (5.0 * f64::from(*sigma_percent) / 100.0).exp();
                Bytes((most as u64).min(MESSAGE_BYTES_MAX.0))
            }
        }
    }

    /// Checks that each lies between `least` and `most` bytes, as it must in such a case.
    pub(crate) fn check(&self, case: Case, least: u64, most: u64) -> Result<(), WorkloadError> {
        let size = |bytes: Bytes| within_case(of_sizes::ONE, case, bytes.0, least, most);
        match self {
            Sizes::List { bytes } => {
                let (count, most) = (bytes.len() as u64, SIZES_MAX as u64);
                within_case(of_sizes::COUNT, Case::Always, count, 1, most)?;
                bytes.iter().try_for_each(|&bytes| size(bytes))
            }
            Sizes::Uniform { low, high } => {
                size(*low)?;
                within_case(of_sizes::GREATEST, case, high.0, low.0, most)
            }
            Sizes::LogNormal {
                median,
                sigma_percent,
            } => {
                size(*median)?;
                within_case(
                    of_sizes::WIDTH,
                    Case::Always,
                    (*sigma_percent).into(),
                    1,
                    500,
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Direction, FlowOptions, Kind, Traffic};

    fn stream(message_bytes: u64) -> Traffic {
        Traffic::Stream {
            direction: Direction::ToServer,
            message_bytes: Bytes(message_bytes),
        }
    }

    #[test]
    fn only_small_calls_that_each_make_a_segment_let_the_receiver_sleep() {
        let nodelay = || FlowOptions {
            nagle: Some(false),
            ..FlowOptions::default()
        };
        let check = |message_bytes, options: FlowOptions, manner: Manner, expected: Option<u64>| {
            let workload = Workload {
                traffic: stream(message_bytes),
                options,
                manner,
                ..Workload::stream(Direction::ToServer)
            };
            let got = workload.receive_low_water();
            assert_eq!(got, expected.map(Bytes), "{workload:?}");
        };
        let plain = Manner::default;
        check(100, nodelay(), plain(), Some(32 << 10));
        check(4096, nodelay(), plain(), Some(32 << 10));
        check(4097, nodelay(), plain(), None);
        check(100, FlowOptions::default(), plain(), None);
        let batch = |batch| Manner { batch, ..plain() };
        check(100, nodelay(), batch(40), Some(32 << 10));
        check(100, nodelay(), batch(41), None);
        let paced = Manner {
            rate_bps: Some(1_000_000),
            ..plain()
        };
        check(100, nodelay(), paced, None);
        let mptcp = Manner {
            transport: Transport::Mptcp,
            ..plain()
        };
        check(100, nodelay(), mptcp, None);
        let acknowledging = FlowOptions {
            delayed_ack: Some(false),
            ..nodelay()
        };
        check(100, acknowledging, plain(), None);
        let buffer = |bytes| FlowOptions {
            socket_buffer: Some(Bytes(bytes)),
            ..nodelay()
        };
        check(100, buffer(64 << 10), plain(), Some(8 << 10));
        check(3000, buffer(8 << 10), plain(), None);
        let rr = Workload {
            options: nodelay(),
            ..Workload::of(Kind::Rr)
        };
        assert_eq!(rr.receive_low_water(), None);
    }

    #[test]
    fn small_datagrams_of_several_flows_go_in_batches() {
        let udp = || Manner {
            transport: Transport::Udp,
            ..Manner::default()
        };
        let check = |traffic: &Traffic, connections, options, manner, expected| {
            let workload = Workload {
                traffic: traffic.clone(),
                connections,
                options,
                manner,
                ..Workload::stream(Direction::ToServer)
            };
            assert_eq!(workload.datagram_batch(), expected, "{workload:?}");
        };
        let none = FlowOptions::default;
        check(&stream(64), 2, none(), udp(), DATAGRAM_BATCH);
        check(&stream(192), 9, none(), udp(), DATAGRAM_BATCH);
        check(&stream(64), 1, none(), udp(), 1);
        check(&stream(193), 2, none(), udp(), 1);
        check(&stream(64), 2, none(), Manner::default(), 1);
        let other = [
            Manner {
                rate_bps: Some(1_000_000),
                ..udp()
            },
            Manner {
                segments: 2,
                ..udp()
            },
            Manner { gro: true, ..udp() },
            Manner {
                wait: WaitBy::Spin,
                ..udp()
            },
            Manner {
                sizes: Some(Sizes::Uniform {
                    low: Bytes(16),
                    high: Bytes(64),
                }),
                ..udp()
            },
        ];
        for manner in other {
            assert!(!datagrams_gather(&stream(64), &none(), &manner));
            check(&stream(64), 2, none(), manner, 1);
        }
        assert!(datagrams_gather(&stream(192), &none(), &udp()));
        assert!(!datagrams_gather(&stream(193), &none(), &udp()));
        let buffer = FlowOptions {
            socket_buffer: Some(Bytes(2304)),
            ..none()
        };
        check(&stream(64), 2, buffer, udp(), 1);
        let polls = FlowOptions {
            busy_poll_us: Some(50),
            ..none()
        };
        check(&stream(64), 2, polls, udp(), 1);
        let past_sockets = Manner {
            wait: WaitBy::Xdp,
            ..udp()
        };
        check(&stream(1400), 1, none(), past_sockets, DATAGRAM_BATCH);
        check(&Workload::of(Kind::Rr).traffic, 2, none(), udp(), 1);
    }

    #[test]
    fn bulk_goes_in_large_calls() {
        let check = |options, manner, expected| {
            let workload = Workload {
                options,
                manner,
                ..Workload::stream(Direction::ToServer)
            };
            assert_eq!(workload.stream_batch(), expected, "{workload:?}");
        };
        let (none, plain) = (FlowOptions::default, Manner::default);
        check(none(), plain(), STREAM_BATCH);
        let other = [
            Manner {
                rate_bps: Some(1_000_000),
                ..plain()
            },
            Manner {
                send: SendBy::Vmsplice,
                ..plain()
            },
            Manner {
                transport: Transport::Udp,
                ..plain()
            },
            Manner {
                wait: WaitBy::Spin,
                ..plain()
            },
        ];
        for manner in other {
            check(none(), manner, 1);
        }
        let buffer = FlowOptions {
            socket_buffer: Some(Bytes(65_536)),
            ..none()
        };
        check(buffer, plain(), 1);
        assert_eq!(Workload::of(Kind::Idle).stream_batch(), 1);
    }

    #[test]
    fn who_chose_a_batch_is_written_only_where_it_was_the_program() {
        let written = |manner: &Manner| serde_json::to_string(manner).expect("it is plain data");
        assert!(!written(&Manner::default()).contains("batch_is_chosen"));
        let chosen = Manner {
            batch: DATAGRAM_BATCH,
            batch_is_chosen: true,
            ..Manner::default()
        };
        let read: Manner = serde_json::from_str(&written(&chosen)).expect("it was written so");
        assert_eq!(read, chosen);
        let old: Manner = serde_json::from_str("{\"batch\":64}").expect("as before");
        assert!(!old.batch_is_chosen);
    }
}
