//! The catalogue of a workload's parameters: each is said here once.
//!
//! Experiment files, factors, flags and the hosts are views of it: its names, what it may be, the traffic
//! and the transport that it goes with, how it is read from a workload and written into one. A parameter
//! that would do nothing is refused by all of them rather than passed over, since whoever gives it believes
//! that it does something. What two parameters cannot do together is said here as well.

use std::str::FromStr;

use crate::experiment::{AUTO, Factor, Level};
use crate::manner::{
    BATCH_MAX, BURST_MAX, CPUS_MAX, DATAGRAM_BYTES_MAX, Named, ReceiveBy, SEGMENTS_MAX, SendBy,
    Sizes, Transport, WaitBy,
};
use crate::step::{PAUSE_MAX, STEP_FORMS};
use crate::unit::{BitsPerSec, Nanos, ParseUnitError};
use crate::workload::{
    BUSY_POLL_US_MAX, Case, Direction, FLOW_RATE_BPS, FLOWS_MAX, Kind, LINK_LOSS_PPM_MAX,
    MESSAGE_BYTES_MAX, SOCKET_BUFFER_BYTES_MAX, Traffic, Workload, WorkloadError, within,
};

/// Parts of a workload as levels.
mod field;

use field::Field;

/// A parameter of a workload.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in experiment files.
    pub key: &'static str,
    /// The traffic that it belongs to.
    pub kinds: &'static [Kind],
    /// What may carry that.
    pub transports: &'static [Transport],
    /// What its values look like.
    pub shape: Shape,
    /// The factor that it is, and the words for a legend or a column.
    pub factor: Option<(Factor, &'static str)>,
    /// The flags of `linerate run` that give it, the first one first in messages.
    pub flags: &'static [Flag],
    /// The least and the greatest value, where these do not follow from others.
    range: Option<(u64, u64)>,
    place: Place,
}

/// What the values of a parameter look like.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// On or off.
    Switch,
    /// On, off, or `auto`.
    SwitchOrAuto,
    /// A whole number.
    Count,
    /// A whole number, or `auto`.
    CountOrAuto,
    /// Bytes.
    Size,
    /// Bytes, or `auto`.
    SizeOrAuto,
    /// Bits a second.
    Rate,
    /// A share, kept in parts per million.
    Share,
    /// A time with its unit; a level of it counts nanoseconds.
    Time,
    /// One of a list of words.
    OneOf(fn() -> Vec<&'static str>),
    /// The name of something that the kernel knows.
    Name,
    /// Sizes that differ: [`Sizes`].
    Mix,
    /// A list of steps: [`crate::step::Step`].
    Steps,
}

/// A flag of `linerate run` that gives a parameter.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// As messages name it, `--window (-w)`; with one of its values where only that is meant.
    pub name: &'static str,
    /// Where the parameter's value comes from.
    pub gives: Gives,
    /// How a message names the value, where that is not the flag's name.
    pub value: Option<&'static str>,
    /// What to do instead where it would do nothing, and for which kinds of traffic that is possible.
    pub instead: Option<(&'static [Kind], &'static str)>,
}

/// What a flag gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// The value that it has.
    Value,
    /// What it stands for.
    Word(&'static str),
    /// What the command line makes of it.
    Part,
}

/// Where a parameter stands in a workload.
#[derive(Debug)]
struct Place {
    /// Returns what it is; absent where it is not set, or where such traffic has no place for it.
    read: fn(&Workload) -> Option<Level>,
    /// Writes a level; absent if it is of another kind. Without this, it is no key of files.
    write: Option<fn(&mut Workload, &Level) -> Option<()>>,
}

/// A field of a workload.
macro_rules! at {
    ($($part:ident).+) => {
        Place {
            read: |workload| workload.$($part).+.level(),
            write: Some(|workload, level| workload.$($part).+.set(level)),
        }
    };
}

/// A field of some kinds of traffic.
macro_rules! of {
    ($($kind:ident)|+, $field:ident) => {
        Place {
            read: |workload| match &workload.traffic {
                $(Traffic::$kind { $field, .. })|+ => $field.level(),
                _ => None,
            },
            write: Some(|workload, level| match &mut workload.traffic {
                $(Traffic::$kind { $field, .. })|+ => $field.set(level),
                _ => None,
            }),
        }
    };
}

/// Something that files have no key for.
const fn only(read: fn(&Workload) -> Option<Level>) -> Place {
    Place { read, write: None }
}

const STREAM: &[Kind] = &[Kind::Stream];
const RR: &[Kind] = &[Kind::Rr];
const EXCHANGE: &[Kind] = &[Kind::Rr, Kind::Crr];
const SIZED: &[Kind] = &[Kind::Stream, Kind::Rr];
const MOVING: &[Kind] = &[Kind::Stream, Kind::Rr, Kind::Crr];
const ALL: &[Kind] = Kind::ALL;
pub(crate) const TCP: &[Transport] = &[Transport::Tcp, Transport::Mptcp];
const UDP: &[Transport] = &[Transport::Udp];
const ORDERED: &[Transport] = &[Transport::Tcp, Transport::Mptcp, Transport::Unix];
pub(crate) const NETWORK: &[Transport] = &[Transport::Tcp, Transport::Mptcp, Transport::Udp];
/// MPTCP sockets have no SO_MAX_PACING_RATE.
const PACED: &[Transport] = &[Transport::Tcp, Transport::Udp];
const ANY: &[Transport] = Transport::ALL;

const EXCHANGE_INSTEAD: &str = "ask for an exchange with --rr or --crr";
const DATAGRAMS_INSTEAD: &str = "ask for datagrams with --udp (-u)";
const SIZES_FLAG: &[Flag] = &[flag("--sizes (-r)")
    .part()
    .told_as("a size of --sizes (-r)")
    .instead(STREAM, EXCHANGE_INSTEAD)];

/// All parameters; the first are the factors in their order.
#[rustfmt::skip]
pub const PARAMETERS: &[Parameter] = &[
    parameter("connections", ALL, ANY, Shape::Count, at!(connections)).factor(Factor::Connections, "connections")
        .within(1, FLOWS_MAX as u64)
        .flags(&[flag("--parallel (-P)").told_as("the number of flows, --parallel (-P),")]),
    parameter("clients", ALL, ANY, Shape::Count, at!(clients)).factor(Factor::Clients, "clients"),
    parameter("direction", STREAM, ANY, Shape::OneOf(Direction::words), of!(Stream, direction))
        .factor(Factor::Direction, "direction")
        .flags(&[flag("--reverse (-R)").word("from-server"), flag("--bidir").word("both")]),
    parameter("socket_buffer", ALL, ANY, Shape::SizeOrAuto, at!(options.socket_buffer))
        .factor(Factor::SocketBuffer, "socket buffer").within(1024, SOCKET_BUFFER_BYTES_MAX.0)
        .flags(&[flag("--window (-w)")]),
    parameter("message_bytes", STREAM, ANY, Shape::Size, of!(Stream, message_bytes))
        .factor(Factor::MessageBytes, "message size")
        .flags(&[flag("--length (-l)").instead(EXCHANGE, "give sizes of request and response with -r 64,1K")]),
    parameter("request_bytes", EXCHANGE, ANY, Shape::Size, of!(Rr | Crr, request_bytes))
        .factor(Factor::RequestBytes, "request size").flags(SIZES_FLAG),
    parameter("response_bytes", EXCHANGE, ANY, Shape::Size, of!(Rr | Crr, response_bytes))
        .factor(Factor::ResponseBytes, "response size").flags(SIZES_FLAG),
    parameter("payload_bytes", EXCHANGE, ANY, Shape::Size, PAYLOAD).factor(Factor::PayloadBytes, "payload"),
    parameter("request_writes", RR, ORDERED, Shape::Count, of!(Rr, request_writes))
        .factor(Factor::RequestWrites, "writes per request")
        .flags(&[flag("--request-writes").instead(SIZED, "ask for an exchange over TCP with --rr")]),
    parameter("nagle", ALL, TCP, Shape::Switch, at!(options.nagle)).factor(Factor::Nagle, "Nagle")
        .flags(&[flag("--no-delay (-N)").word("false"), flag("--nagle").word("true")]),
    parameter("delayed_ack", ALL, TCP, Shape::Switch, at!(options.delayed_ack))
        .factor(Factor::DelayedAck, "delayed ACK").flags(&[flag("--quick-ack").word("false")]),
    parameter("congestion", ALL, TCP, Shape::Name, at!(options.congestion))
        .factor(Factor::Congestion, "congestion control").flags(&[flag("--congestion (-C)")]),
    parameter("mss_bytes", ALL, TCP, Shape::Size, at!(options.mss_bytes)).factor(Factor::MssBytes, "MSS")
        .within(88, 32_767).flags(&[flag("--set-mss (-M)")]),
    parameter("transport", ALL, ANY, Shape::OneOf(Transport::words), at!(manner.transport))
        .factor(Factor::Transport, "transport")
        .flags(&[flag("--udp (-u)").word("udp"), flag("--mptcp (-m)").word("mptcp"), flag("--unix").word("unix")]),
    parameter("send", STREAM, ORDERED, Shape::OneOf(SendBy::words), at!(manner.send)).factor(Factor::Send, "sending")
        .flags(&[flag("--zerocopy (-Z)")]),
    parameter("receive", STREAM, NETWORK, Shape::OneOf(ReceiveBy::words), at!(manner.receive))
        .factor(Factor::Receive, "receiving").flags(&[flag("--rx"), flag("--skip-rx-copy").word("discard")]),
    parameter("wait", ALL, ANY, Shape::OneOf(WaitBy::words), at!(manner.wait)).factor(Factor::Wait, "waiting")
        .flags(&[flag("--io"), flag("--busy-poll").word("spin")]),
    parameter("batch", SIZED, ANY, Shape::Count, at!(manner.batch)).factor(Factor::Batch, "messages per call")
        .within(1, BATCH_MAX as u64)
        .flags(&[flag("--batch").instead(&[Kind::Crr], "make more connections at the same time with -P")]),
    parameter("segments", STREAM, UDP, Shape::Count, at!(manner.segments))
        .factor(Factor::Segments, "datagrams per buffer").within(1, SEGMENTS_MAX as u64)
        .flags(&[flag("--gso").instead(STREAM, DATAGRAMS_INSTEAD)]),
    parameter("in_flight", RR, ANY, Shape::Count, at!(manner.in_flight))
        .factor(Factor::InFlight, "requests in flight").within(1, BATCH_MAX as u64)
        .flags(&[flag("--in-flight").instead(ALL, "make more connections at the same time with -P")]),
    parameter("requests_per_s", EXCHANGE, ANY, Shape::Count, at!(manner.requests_per_s))
        .factor(Factor::RequestsPerS, "requests per second of a flow").within(1, 100_000_000)
        .flags(&[flag("--rate").instead(STREAM, "give bits per second with -b")]),
    parameter("rate", STREAM, ANY, Shape::Rate, at!(manner.rate_bps)).factor(Factor::Rate, "rate of a flow")
        .within(*FLOW_RATE_BPS.start(), *FLOW_RATE_BPS.end())
        .flags(&[flag("--bitrate (-b)").part().instead(EXCHANGE, "give requests per second with --rate")]),
    parameter("link_loss", ALL, ANY, Shape::Share, at!(link_loss_ppm))
        .factor(Factor::LinkLoss, "frames lost on the link").within(0, LINK_LOSS_PPM_MAX as u64),
    parameter("cpus", MOVING, ANY, Shape::Count, at!(manner.cpus)).factor(Factor::Cpus, "CPUs of each end")
        .within(1, CPUS_MAX as u64).flags(&[flag("--cpus")]),
    parameter("burst", STREAM, ANY, Shape::Count, at!(manner.burst)).within(1, BURST_MAX as u64)
        .flags(&[flag("--bitrate (-b)").part().told_as("the burst of --bitrate (-b)")]),
    // Not one of files: a fleet's pattern makes its levels.
    parameter("pair", ALL, ANY, Shape::Name, only(|_| None)).factor(Factor::Pair, "pair of hosts"),
    parameter("think", EXCHANGE, ANY, Shape::Time, at!(manner.think)).within(1, PAUSE_MAX.0)
        .flags(&[flag("--think").told_as("--think, in ns,")]),
    parameter("sizes", SIZED, ANY, Shape::Mix, only(|workload| workload.manner.sizes.as_ref().map(|_| Level::Switch(true))))
        .flags(&[flag("--size-mix").part()]),
    parameter("steps", RR, ORDERED, Shape::Steps, only(|workload| workload.manner.steps.as_ref().map(|_| Level::Switch(true)))),
    parameter("bytes_max", STREAM, ANY, Shape::Size, at!(manner.bytes_max)).within(1, u64::MAX)
        .flags(&[flag("--bytes (-n)"), flag("--blockcount (-k)").part()]),
    parameter("receive_low_water", STREAM, TCP, Shape::Size, at!(manner.receive_low_water)).within(1, i32::MAX as u64)
        .flags(&[flag("--rcvlowat")]),
    parameter("gro", STREAM, UDP, Shape::Switch, at!(manner.gro))
        .flags(&[flag("--gro").word("true").instead(STREAM, DATAGRAMS_INSTEAD)]),
    parameter("cork", ALL, TCP, Shape::Switch, at!(options.cork)).flags(&[flag("--cork").word("true")]),
    parameter("pacing", ALL, PACED, Shape::Rate, at!(options.pacing_bps))
        .within(*FLOW_RATE_BPS.start(), *FLOW_RATE_BPS.end())
        .flags(&[flag("--fq-rate").instead(STREAM, "give a rate with -b")]),
    parameter("busy_poll_us", ALL, NETWORK, Shape::Count, at!(options.busy_poll_us))
        .within(1, BUSY_POLL_US_MAX as u64).flags(&[flag("--busy-poll-us")]),
    parameter("tos", ALL, NETWORK, Shape::Count, at!(options.tos)).within(0, u8::MAX as u64)
        .flags(&[flag("--tos (-S)").part(), flag("--dscp").part()]),
    parameter("short_numbers", STREAM, UDP, Shape::Switch, only(|workload| workload.manner.short_numbers.level())),
    parameter("wait = uring", EXCHANGE, ORDERED, Shape::Switch, only(|workload| waits(workload, WaitBy::Uring)))
        .flags(&[flag("--io uring").part().instead(ALL, "let linerate choose with --io auto")]),
    parameter("wait = spin", MOVING, ANY, Shape::Switch, only(|workload| waits(workload, WaitBy::Spin)))
        .flags(&[flag("--busy-poll").part()]),
    parameter("wait = xdp", STREAM, UDP, Shape::Switch, only(|workload| waits(workload, WaitBy::Xdp)))
        .flags(&[flag("--io xdp").part().instead(STREAM, DATAGRAMS_INSTEAD)]),
];

/// Request and response alike.
const PAYLOAD: Place = Place {
    read: |workload| {
        let (request, response) = workload.traffic.exchange()?;
        (request == response).then_some(Level::Size(request))
    },
    write: Some(|workload, level| {
        let (request, response) = workload.traffic.exchange_mut()?;
        request.set(level)?;
        response.set(level)
    }),
};

fn waits(workload: &Workload, by: WaitBy) -> Option<Level> {
    (workload.manner.wait == by).then_some(Level::Switch(true))
}

/// Returns what the levels of a knob are called and look like: no part of a workload.
pub(crate) const fn of_host(
    key: &'static str,
    transports: &'static [Transport],
    shape: Shape,
) -> Parameter {
    parameter(key, ALL, transports, shape, only(|_| None))
}

const fn parameter(
    key: &'static str,
    kinds: &'static [Kind],
    transports: &'static [Transport],
    shape: Shape,
    place: Place,
) -> Parameter {
    Parameter {
        key,
        kinds,
        transports,
        shape,
        factor: None,
        flags: &[],
        range: None,
        place,
    }
}

const fn flag(name: &'static str) -> Flag {
    Flag {
        name,
        gives: Gives::Value,
        value: None,
        instead: None,
    }
}

impl Flag {
    const fn word(self, word: &'static str) -> Self {
        let gives = Gives::Word(word);
        Self { gives, ..self }
    }

    const fn part(self) -> Self {
        let gives = Gives::Part;
        Self { gives, ..self }
    }

    const fn told_as(self, value: &'static str) -> Self {
        let value = Some(value);
        Self { value, ..self }
    }

    const fn instead(self, kinds: &'static [Kind], instead: &'static str) -> Self {
        let instead = Some((kinds, instead));
        Self { instead, ..self }
    }

    /// Returns its name as an identifier, and the value that it must have where only that is meant.
    pub fn id(&self) -> (String, Option<&'static str>) {
        let (name, rest) = self.name.split_once(' ').unwrap_or((self.name, "("));
        let value = (!rest.starts_with('(')).then_some(rest);
        (name.trim_start_matches('-').replace('-', "_"), value)
    }
}

/// Returns the parameter that files call `key`, if there is one.
pub fn parameter_of(key: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.key == key)
}

impl Parameter {
    pub(crate) const fn factor(self, factor: Factor, title: &'static str) -> Self {
        let factor = Some((factor, title));
        Self { factor, ..self }
    }

    pub(crate) const fn within(self, low: u64, high: u64) -> Self {
        let range = Some((low, high));
        Self { range, ..self }
    }

    const fn flags(self, flags: &'static [Flag]) -> Self {
        Self { flags, ..self }
    }

    /// Returns whether it means something with such traffic over such a transport.
    pub fn fits(&self, kind: Kind, transport: Transport) -> bool {
        self.kinds.contains(&kind) && self.transports.contains(&transport)
    }

    /// Returns whether experiment files have a key for it.
    pub fn is_key(&self) -> bool {
        self.place.write.is_some() || matches!(self.shape, Shape::Mix | Shape::Steps)
    }

    /// Returns what it is in `workload`, where it is set and such traffic has a place for it.
    pub fn read(&self, workload: &Workload) -> Option<Level> {
        (self.place.read)(workload)
    }

    /// Writes `level` into `workload`, unless it is of another kind.
    pub fn write(&self, level: &Level, workload: &mut Workload) -> Option<()> {
        self.place.write?(workload, level)
    }

    /// Returns what its values look like, in words.
    pub fn expected(&self) -> String {
        let words = match self.shape {
            Shape::OneOf(words) => return format!("one of {}", words().join(", ")),
            Shape::Switch => "true or false",
            Shape::SwitchOrAuto => "true, false or \"auto\"",
            Shape::Count => "a whole number",
            Shape::CountOrAuto => "a whole number or \"auto\"",
            Shape::Size | Shape::SizeOrAuto => "a size such as 1460 or \"64KiB\"",
            Shape::Rate => "a rate such as \"100Mbit\"",
            Shape::Share => "a share from 0 to 0.5 in steps of 0.000001",
            Shape::Time => "a duration as text with its unit, such as \"400ms\" or \"10s\"",
            Shape::Name => "the name that the kernel has for it, as text",
            Shape::Mix => "a table of sizes",
            Shape::Steps => STEP_FORMS,
        };
        words.to_owned()
    }

    /// Returns whether `level` is of the kind that a knob's are.
    pub(crate) fn takes(&self, level: &Level) -> bool {
        match (self.shape, level) {
            (Shape::SwitchOrAuto, Level::Switch(_)) | (Shape::SizeOrAuto, Level::Size(_)) => true,
            (Shape::Name, Level::Word(_)) | (Shape::CountOrAuto, Level::Count(_)) => true,
            (Shape::SwitchOrAuto | Shape::SizeOrAuto | Shape::CountOrAuto, level) => {
                level.is_auto()
            }
            _ => false,
        }
    }

    /// Returns the values that it may have, in words.
    pub fn allowed(&self) -> String {
        let range = |(low, high)| format!("{low} to {high}");
        self.range.map_or_else(|| self.expected(), range)
    }

    /// Returns the level that `text` stands for, or why it is none.
    pub fn parse(&self, text: &str) -> Result<Level, String> {
        let expected = self.expected();
        let word = || Level::Word(text.to_owned());
        match self.shape {
            Shape::SizeOrAuto | Shape::SwitchOrAuto | Shape::CountOrAuto if text == AUTO => {
                Ok(word())
            }
            Shape::Switch | Shape::SwitchOrAuto => {
                text.parse().map(Level::Switch).map_err(|_| expected)
            }
            Shape::Count | Shape::CountOrAuto => {
                text.parse().map(Level::Count).map_err(|_| expected)
            }
            Shape::Size | Shape::SizeOrAuto => quantity(text, &expected, Level::Size),
            Shape::Rate => quantity(text, &expected, |rate: BitsPerSec| {
                Level::Rate(rate.0 as u64)
            }),
            Shape::Time => quantity(text, &expected, |time: Nanos| Level::Count(time.0)),
            Shape::OneOf(words) => {
                let mut words = words().into_iter();
                let found = words.find(|word| *word == text || short(word) == text);
                found
                    .map(|word| Level::Word(word.to_owned()))
                    .ok_or(expected)
            }
            Shape::Name if !text.is_empty() => Ok(word()),
            Shape::Name | Shape::Share | Shape::Mix | Shape::Steps => Err(expected),
        }
    }
}

/// Returns the part of a word that is enough, `msg` of `msg_zerocopy`: flags show it.
pub fn short(word: &str) -> &str {
    word.split('_').next().unwrap_or(word)
}

fn quantity<T: FromStr<Err = ParseUnitError>>(
    text: &str,
    expected: &str,
    level: fn(T) -> Level,
) -> Result<Level, String> {
    let told = |error| format!("{expected} ({error})");
    text.parse().map(level).map_err(told)
}

/// Refuses a level beyond the range of its parameter.
pub(crate) fn check_level(parameter: &Parameter, level: &Level) -> Result<(), WorkloadError> {
    match (parameter.range, level.whole()) {
        (Some((low, high)), Some(number)) => within(parameter.key, number, low, high),
        _ => Ok(()),
    }
}

/// Refuses knobs among `factors` that do nothing for `workload`: it is carried past them, or sets for itself
/// what they are for.
pub(crate) fn check_knobs<'a>(
    factors: impl Iterator<Item = &'a Factor>,
    workload: &Workload,
) -> Result<(), WorkloadError> {
    let (kind, transport) = (workload.traffic.kind(), workload.manner.transport);
    let options = &workload.options;
    for factor in factors.filter(|factor| factor.knob().is_some()) {
        let parameter = factor.parameter();
        if !parameter.fits(kind, transport) {
            return Err(misplaced(parameter, kind, transport));
        }
        let rules: [(bool, &'static [&'static str], &'static str); 2] = [
            (
                *factor == Factor::CongestionDefault && options.congestion.is_some(),
                &["congestion_default", "congestion"],
                "congestion_default is for sockets that set no congestion: leave congestion out",
            ),
            (
                matches!(factor, Factor::TcpRmemMax | Factor::TcpWmemMax)
                    && options.socket_buffer.is_some(),
                &["tcp_rmem_max", "tcp_wmem_max", "socket_buffer"],
                "tcp_rmem_max and tcp_wmem_max are for buffers that the kernel tunes: leave socket_buffer out",
            ),
        ];
        if let Some(&(_, keys, why)) = rules.iter().find(|rule| rule.0) {
            return Err(WorkloadError::Contradiction { keys, why });
        }
    }
    Ok(())
}

/// Refuses parameters beyond their ranges and those that such traffic has no use for, and two that
/// exclude each other.
pub(crate) fn check(workload: &Workload) -> Result<(), WorkloadError> {
    let (traffic, manner) = (&workload.traffic, &workload.manner);
    let (kind, transport) = (traffic.kind(), manner.transport);
    let plain = Workload::of(kind);
    let mut stray = None;
    for parameter in PARAMETERS {
        let level = parameter.read(workload);
        if let Some(level) = &level {
            check_level(parameter, level)?;
        }
        if !parameter.fits(kind, transport) && level != parameter.read(&plain) {
            stray = stray.or(Some(parameter));
        }
    }
    if manner.rate_bps.is_none() {
        within("burst", manner.burst.into(), 1, 1)?;
    }
    if let Some(sizes) = &manner.sizes {
        sizes.check(Case::Always, 1, MESSAGE_BYTES_MAX.0)?;
    }
    traffic.check(manner)?;
    if let Some(parameter) = stray {
        return Err(misplaced(parameter, kind, transport));
    }
    contradiction(workload).map_or(Ok(()), Err)
}

fn misplaced(parameter: &Parameter, kind: Kind, transport: Transport) -> WorkloadError {
    let (belongs, with): (Vec<&str>, &str) = if parameter.kinds.contains(&kind) {
        let names = parameter.transports.iter().map(|one| one.word());
        (names.collect(), transport.word())
    } else {
        let names = parameter.kinds.iter().map(|kind| kind.word());
        (names.collect(), kind.word())
    };
    WorkloadError::Misplaced {
        key: parameter.key,
        belongs: belongs.join(", "),
        with,
    }
}

/// Returns what parameters cannot do together.
fn contradiction(workload: &Workload) -> Option<WorkloadError> {
    let (traffic, manner) = (&workload.traffic, &workload.manner);
    let transport = manner.transport;
    let over_udp = transport == Transport::Udp;
    let message_bytes = traffic.stream().map_or(0, |(_, bytes)| bytes.0);
    let writes = traffic.request_writes();
    let largest = manner
        .sizes
        .as_ref()
        .map_or(message_bytes, |sizes| Sizes::largest(sizes).0);
    let past_sockets = manner.wait == WaitBy::Xdp;
    let rules: &[(bool, &'static [&'static str], &'static str)] = &[
        (
            manner.send == SendBy::MsgZerocopy && transport != Transport::Tcp,
            &["send", "transport"],
            "MSG_ZEROCOPY works with TCP only: send by vmsplice, or by copying",
        ),
        (
            manner.receive_low_water.is_some() && transport == Transport::Mptcp,
            &["receive_low_water", "transport"],
            "the kernel may never wake a receiver with a low-water mark over MPTCP, though its buffer is full: no \
             receive_low_water with mptcp",
        ),
        (
            manner.receive == ReceiveBy::Discard && manner.gro,
            &["receive", "gro"],
            "discarding takes each datagram's first bytes only, gro needs them all",
        ),
        (
            manner.sizes.is_some() && manner.segments > 1,
            &["sizes", "segments"],
            "segments are of one size: no sizes that differ with them",
        ),
        (
            manner.sizes.is_some() && writes > 1,
            &["sizes", "request_writes"],
            "a request of several send calls cannot have sizes that differ",
        ),
        (
            manner.steps.is_some()
                && (manner.in_flight > 1
                    || manner.batch > 1
                    || manner.sizes.is_some()
                    || writes > 1),
            &["steps", "in_flight", "batch", "sizes", "request_writes"],
            "steps say which messages there are, one exchange after another: no in_flight, batch, sizes or \
             request_writes with them",
        ),
        (
            manner.batch > 1 && writes > 1,
            &["batch", "request_writes"],
            "requests cannot be split over send calls and joined in them at once",
        ),
        (
            manner.batch > 1 && traffic.is_transactional() && over_udp,
            &["batch", "transport"],
            "each request over UDP takes one call: no batch",
        ),
        (
            manner.batch > manner.in_flight && traffic.is_transactional(),
            &["batch", "in_flight"],
            "one call sends requests that are in flight: in_flight must be batch or more",
        ),
        (
            manner.requests_per_s.is_some() && manner.think.is_some(),
            &["requests_per_s", "think"],
            "a rate of requests leaves no room for a think time",
        ),
        (
            over_udp && message_bytes * u64::from(manner.segments) > DATAGRAM_BYTES_MAX,
            &["segments", "message_bytes"],
            "segments times message_bytes is above 65507 bytes, one buffer's most",
        ),
        (
            past_sockets && workload.connections > 1,
            &["wait", "connections"],
            "a queue of a device serves one AF_XDP socket: wait = xdp is for one connection",
        ),
        (
            past_sockets && (manner.segments > 1 || manner.sizes.is_some()),
            &["wait", "segments", "sizes"],
            "each AF_XDP frame is a datagram, all of one size: no segments and no sizes with wait = xdp",
        ),
        (
            past_sockets && workload.options.pacing_bps.is_some(),
            &["wait", "pacing"],
            "the kernel paces sockets, which AF_XDP frames bypass: give a rate instead",
        ),
        (
            !over_udp && largest.saturating_mul(manner.batch.into()) > MESSAGE_BYTES_MAX.0,
            &["batch", "message_bytes", "sizes"],
            "the messages of one call (batch times the largest) are more than 64 MiB",
        ),
    ];
    let rule = rules.iter().find(|rule| rule.0);
    rule.map(|&(_, keys, why)| WorkloadError::Contradiction { keys, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Bytes;

    /// Such traffic, in messages that datagrams can be.
    fn wide(kind: Kind) -> Workload {
        let mut workload = Workload::of(kind);
        for key in ["message_bytes", "payload_bytes"] {
            let parameter = parameter_of(key).expect("a parameter");
            let _ = parameter.write(&Level::Size(Bytes(1000)), &mut workload);
        }
        workload
    }

    /// A value other than the default; none for what files have no key for, and for tables.
    fn sample(parameter: &Parameter) -> Option<&'static str> {
        parameter.place.write?;
        match parameter.shape {
            Shape::Switch | Shape::SwitchOrAuto => Some("true"),
            Shape::Count | Shape::CountOrAuto => Some("4"),
            Shape::Size | Shape::SizeOrAuto => Some("2000"),
            Shape::Rate => Some("100M"),
            Shape::Time => Some("5ms"),
            Shape::OneOf(words) => Some(words()[1]),
            Shape::Name => Some("reno"),
            Shape::Share | Shape::Mix | Shape::Steps => None,
        }
    }

    #[test]
    fn factors_come_first_and_in_their_order() {
        assert!(Factor::all().is_sorted());
        for factor in Factor::all() {
            assert_eq!(factor.parameter().factor.map(|known| known.0), Some(factor));
            assert_eq!(Factor::named(&factor.name()), Some(factor));
            let name = serde_json::to_string(&factor).expect("it is plain data");
            assert_eq!(name, format!("\"{}\"", factor.name()));
        }
        assert_eq!(Factor::all().last(), Some(Factor::TcpRtoMinUs));
    }

    #[test]
    fn what_is_written_is_read() {
        let check = |key: &str, kind: Kind, text: &str| {
            let parameter = parameter_of(key).expect("a parameter");
            let mut workload = Workload::of(kind);
            let level = parameter.parse(text).expect("a level");
            assert!(parameter.write(&level, &mut workload).is_some(), "{key}");
            let read = parameter.read(&workload).expect("it was written");
            let is_same = level
                .whole()
                .map_or(read == level, |_| read.whole() == level.whole());
            assert!(is_same, "{key} is {read}, not {level}");
        };
        for parameter in PARAMETERS {
            let Some(text) = sample(parameter) else {
                continue;
            };
            for &kind in parameter.kinds {
                check(parameter.key, kind, text);
            }
        }
    }

    #[test]
    fn words_are_those_of_the_serialised_form() {
        fn check<T: Named + serde::Serialize>() {
            for (word, value) in T::NAMES {
                let name = serde_json::to_string(value).expect("it is plain data");
                assert_eq!(name, format!("\"{word}\""));
            }
        }
        check::<Direction>();
        check::<Transport>();
        check::<SendBy>();
        check::<ReceiveBy>();
        check::<WaitBy>();
    }

    /// Every key with every kind and transport: accepted exactly where the catalogue has it.
    #[test]
    fn a_parameter_is_taken_where_it_means_something_and_nowhere_else() {
        let mut refused = 0;
        for parameter in PARAMETERS.iter().filter(|known| known.key != "transport") {
            let Some(text) = sample(parameter) else {
                continue;
            };
            let kinds = Kind::NAMES.iter().map(|(_, kind)| *kind);
            for (kind, &transport) in kinds.flat_map(|kind| ANY.iter().map(move |by| (kind, by))) {
                let mut workload = wide(kind);
                workload.manner.transport = transport;
                // What cannot be without the parameter says nothing of it.
                if check(&workload).is_err() {
                    continue;
                }
                workload.manner.rate_bps = (parameter.key == "burst").then_some(1_000_000);
                let level = parameter.parse(text).expect("a level");
                let is_taken = parameter.write(&level, &mut workload).is_some();
                let told = check(&workload);
                let is_contradiction = matches!(told, Err(WorkloadError::Contradiction { .. }));
                let (is_taken, expected) =
                    (is_taken && told.is_ok(), parameter.fits(kind, transport));
                assert!(
                    is_taken == expected || (expected && is_contradiction),
                    "{} {kind:?} {transport:?}: {told:?}",
                    parameter.key
                );
                refused += usize::from(!is_taken);
            }
        }
        assert!(refused > 100, "{refused}");
    }

    #[test]
    fn what_excludes_each_other_is_said() {
        let check = |kind: Kind, change: fn(&mut Workload), expected: &str| {
            let mut workload = wide(kind);
            change(&mut workload);
            let error = workload.check().expect_err("refused");
            let told = error.to_string();
            assert!(told.contains(expected), "{told}");
            if let WorkloadError::Contradiction { keys, .. } = error {
                let known = |key: &&str| *key == "kind" || parameter_of(key).is_some();
                assert!(keys.iter().all(known), "{keys:?}");
            }
        };
        let mptcp: fn(&mut Workload) = |workload| workload.manner.transport = Transport::Mptcp;
        check(
            Kind::Crr,
            mptcp,
            "mptcp is for stream, rr, idle, and does nothing with crr",
        );
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
        fn past_sockets(workload: &mut Workload) {
            workload.manner.transport = Transport::Udp;
            workload.manner.wait = WaitBy::Xdp;
        }
        let several: fn(&mut Workload) = |workload| {
            past_sockets(workload);
            workload.connections = 2;
        };
        check(Kind::Stream, several, "wait = xdp is for one connection");
        let cut: fn(&mut Workload) = |workload| {
            past_sockets(workload);
            workload.manner.segments = 2;
        };
        check(Kind::Stream, cut, "each AF_XDP frame is a datagram");
        let paced: fn(&mut Workload) = |workload| {
            past_sockets(workload);
            workload.options.pacing_bps = Some(1_000_000);
        };
        check(Kind::Stream, paced, "give a rate instead");
        // A file had it.
        let nothing_of_udp: fn(&mut Workload) = |workload| {
            workload.manner.transport = Transport::Udp;
            workload.manner.wait = WaitBy::Uring;
            workload.manner.send = SendBy::Vmsplice;
        };
        let paced_by_kernel: fn(&mut Workload) = |workload| {
            workload.manner.transport = Transport::Mptcp;
            workload.options.pacing_bps = Some(1_000_000);
        };
        let told = "pacing is for tcp, udp, and does nothing with mptcp";
        check(Kind::Stream, paced_by_kernel, told);
        check(
            Kind::Stream,
            nothing_of_udp,
            "send is for tcp, mptcp, unix, and does nothing with udp",
        );
    }
}
