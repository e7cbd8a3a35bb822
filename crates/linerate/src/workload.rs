//! From the flags of `linerate run` to a workload, and from what is wrong with it back to the flag.

use anyhow::anyhow;
use linerate_model::manner::{Transport, of_sizes};
use linerate_model::parameter::{Shape, parameter_of};
use linerate_model::unit::ParseUnitError;
use linerate_model::workload::{
    Case, DATAGRAM_BYTES_DEFAULT, FLOW_RATE_BPS, Kind, REQUEST_WRITES_MAX, Workload, WorkloadError,
};
use linerate_model::{BitsPerSec, Bytes};

use crate::args::RunArgs;
use crate::exit::{CmdResult, Failure};

/// Which flags go together.
mod fit;
/// Sizes that differ.
mod mix;
/// The type-of-service byte.
mod tos;

/// Rate of a UDP stream when none is asked for, as with iperf3: UDP has no congestion control, so
/// that no limit would flood the path.
pub const UDP_RATE_DEFAULT_BPS: u64 = 1_000_000;

/// Requests that a flow may have under way when they begin by the clock: enough for a round trip
/// of 6 ms at 10 000 requests a second. What is due beyond waits, and that counts as latency.
const IN_FLIGHT_OPEN: u32 = 64;

/// Send calls of which a request may be longer to have that many: for more it is never long enough.
const WRITES: std::ops::RangeInclusive<u64> = 2..=REQUEST_WRITES_MAX;

/// Returns the workload that the flags describe, for one client.
pub fn workload(args: &RunArgs) -> CmdResult<Workload> {
    let kind = kind(args)?;
    let transport = transport(args)?;
    fit::check(args, kind, transport)?;
    let mut workload = Workload::of(kind);
    if let (Some((_, message_bytes)), Transport::Udp) = (workload.traffic.stream_mut(), transport) {
        *message_bytes = DATAGRAM_BYTES_DEFAULT;
        workload.manner.rate_bps = Some(UDP_RATE_DEFAULT_BPS);
    }
    let in_flight = parameter_of("in_flight").filter(|it| it.fits(kind, transport));
    if in_flight.is_some() && args.rate.rate.is_some() {
        workload.manner.in_flight = IN_FLIGHT_OPEN;
    }
    for typed in &args.given.0 {
        if let Some(level) = typed.levels.first() {
            let bad = || Failure::usage(anyhow!("{} cannot be {level}", typed.flag.name));
            typed
                .parameter
                .write(level, &mut workload)
                .ok_or_else(bad)?;
        }
    }
    give_parts(args, &mut workload)?;
    choose(args, &mut workload);
    let told = |error| fit::in_flags(&error, &workload).unwrap_or_else(|| not_possible(error));
    workload.check().map_err(told)?;
    Ok(workload)
}

/// Gives what flags say in a form of their own.
fn give_parts(args: &RunArgs, workload: &mut Workload) -> CmdResult<()> {
    let asked = match (&args.traffic.sizes, args.traffic.connect) {
        (_, true) => Some((Bytes(0), Bytes(0))),
        (text, false) => text.as_deref().map(sizes).transpose()?,
    };
    if let (Some((request, response)), Some(sizes)) = (workload.traffic.exchange_mut(), asked) {
        (*request, *response) = sizes;
    }
    let manner = &mut workload.manner;
    if let Some(text) = &args.rate.bitrate {
        (manner.rate_bps, manner.burst) = rate(text)?;
    }
    if let (Some(count), Some((_, size))) = (args.rate.blockcount, workload.traffic.stream()) {
        manner.bytes_max = Some(volume(count, size)?);
    }
    let mix = args.traffic.size_mix.as_deref().map(mix::parse);
    manner.sizes = mix.transpose()?;
    workload.options.tos = tos::parse(args.socket.tos.as_deref(), args.socket.dscp.as_deref())?;
    if args.traffic.bidir {
        workload.connections = workload.connections.saturating_mul(2);
    }
    Ok(())
}

/// Chooses what was left to us: Nagle's algorithm, when a receiver is woken, and how much one call carries.
fn choose(args: &RunArgs, workload: &mut Workload) {
    workload.choose_nagle();
    workload.manner.receive_low_water = match args.socket.rcvlowat {
        Some(bytes) => Some(bytes).filter(|bytes| bytes.0 > 0),
        None => workload.receive_low_water(),
    };
    if args.calls.batch.is_none() {
        let batch = match (workload.manner.transport, args.traffic.length) {
            (Transport::Udp, _) => workload.datagram_batch(),
            (_, None) => workload.stream_batch(),
            (_, Some(_)) => 1,
        };
        workload.manner.batch = batch;
        workload.manner.batch_is_chosen = batch != 1;
    }
}

/// Returns what a user must know before an unasked-for rate is taken for the path's.
pub fn rate_note(args: &RunArgs, workload: &Workload) -> Option<String> {
    let is_stream = workload.traffic.is_stream();
    let is_default = args.rate.bitrate.is_none() && workload.manner.transport == Transport::Udp;
    (is_default && is_stream).then(|| {
        format!(
            "NOTE: UDP is sent at {} per flow, because no rate was given; set one with `-b 100M`, or send \
             as fast as possible with `-b 0`",
            BitsPerSec(UDP_RATE_DEFAULT_BPS as f64)
        )
    })
}

fn kind(args: &RunArgs) -> CmdResult<Kind> {
    let traffic = &args.traffic;
    let asked = [
        (traffic.rr, "--rr", Kind::Rr),
        // The same twice: connecting and closing is a form of --crr.
        (traffic.crr && !traffic.connect, "--crr", Kind::Crr),
        (traffic.connect, "--connect", Kind::Crr),
        (traffic.idle, "--idle", Kind::Idle),
    ];
    let flags = asked.map(|(_, flag, _)| flag).join(", ");
    let next = format!("choose one of {flags}, or none for a stream");
    one_of(&asked, "two kinds of traffic", &next).map(|kind| kind.unwrap_or(Kind::Stream))
}

fn transport(args: &RunArgs) -> CmdResult<Transport> {
    let asked = [
        (args.traffic.udp, "--udp (-u)", Transport::Udp),
        (args.traffic.mptcp, "--mptcp (-m)", Transport::Mptcp),
        (args.traffic.unix, "--unix", Transport::Unix),
    ];
    one_of(&asked, "two transports", "choose one, or none for TCP").map(Option::unwrap_or_default)
}

/// Returns what was asked for, if anything was; two are `what`.
fn one_of<T: Copy>(asked: &[(bool, &str, T)], what: &str, next: &str) -> CmdResult<Option<T>> {
    let mut asked = asked.iter().filter(|(given, ..)| *given);
    match (asked.next(), asked.next()) {
        (Some((_, one, _)), Some((_, other, _))) => {
            Err(Failure::usage(anyhow!("{one} and {other} are {what}")).next(next))
        }
        (one, _) => Ok(one.map(|(.., value)| *value)),
    }
}

/// Reads the rate of each flow and the messages of a burst; 0 is no limit.
fn rate(text: &str) -> CmdResult<(Option<u64>, u32)> {
    let parts = text.split_once('/');
    let (rate, burst) = parts.map_or((text, None), |(rate, burst)| (rate, Some(burst)));
    let rate: BitsPerSec = rate.parse().map_err(|error: ParseUnitError| {
        Failure::usage(anyhow!("--bitrate (-b): {error}")).next("give a rate as `-b 100M`")
    })?;
    let (low, high) = (*FLOW_RATE_BPS.start() as f64, *FLOW_RATE_BPS.end() as f64);
    if rate.0 > 0.0 && !(low..=high).contains(&rate.0) {
        return Err(Failure::usage(anyhow!(
            "--bitrate (-b) is {rate}, but must be 0 (no limit) or {} to {}",
            BitsPerSec(low),
            BitsPerSec(high)
        )));
    }
    let rate = (rate.0 > 0.0).then_some(rate.0 as u64);
    let Some(burst) = burst else {
        return Ok((rate, 1));
    };
    let burst: u32 = burst.parse().map_err(|_| {
        let error = anyhow!("--bitrate (-b) {text}: `{burst}` is not a number of messages");
        Failure::usage(error).next("give rate and burst as `-b 100M/16`")
    })?;
    if rate.is_none() {
        let error = anyhow!("--bitrate (-b) {text} has a burst, but no rate");
        return Err(Failure::usage(error)
            .next("give a rate as `-b 100M/16`, or several messages per call with --batch"));
    }
    Ok((rate, burst))
}

/// Returns the bytes of so many messages, after which each flow stops.
fn volume(count: u64, message_bytes: Bytes) -> CmdResult<Bytes> {
    if count == 0 {
        let error = anyhow!("--blockcount (-k) is 0, but must be at least 1");
        return Err(Failure::usage(error));
    }
    let most = || Failure::usage(anyhow!("--blockcount (-k) {count} is more than 2^64 bytes"));
    let bytes = count.checked_mul(message_bytes.0);
    bytes.map(Bytes).ok_or_else(most)
}

/// Returns what a workload that cannot be made means to whoever typed it.
pub fn not_possible(error: WorkloadError) -> Failure {
    let WorkloadError::Range {
        what,
        case,
        value,
        allowed,
    } = &error
    else {
        return Failure::usage(error);
    };
    let flag = match *what {
        of_sizes::ONE | of_sizes::GREATEST | of_sizes::COUNT => format!("{what} of --size-mix"),
        of_sizes::WIDTH => "the width of --size-mix lognormal, in hundredths,".to_owned(),
        key => match parameter_of(key).and_then(|parameter| parameter.flags.first()) {
            Some(flag) => flag.value.unwrap_or(flag.name).to_owned(),
            None => return Failure::usage(error),
        },
    };
    let case = match case {
        Case::Always | Case::BothWays => "",
        Case::Udp => " with --udp (-u)",
        Case::UdpOfOneByte => " with --udp (-u) and requests or responses of 1 B",
    };
    let is_size = parameter_of(what)
        .is_some_and(|parameter| matches!(parameter.shape, Shape::Size | Shape::SizeOrAuto));
    // As it can be typed: 64M, and 65507.
    let typed = |bytes: u64| match bytes.trailing_zeros() {
        _ if !is_size || bytes == 0 => bytes.to_string(),
        30.. => format!("{}G", bytes >> 30),
        20.. => format!("{}M", bytes >> 20),
        10.. => format!("{}K", bytes >> 10),
        _ => bytes.to_string(),
    };
    let in_units = |text: &str| -> String {
        let words = text
            .split(' ')
            .map(|word| word.parse().map_or(word.to_owned(), typed));
        words.collect::<Vec<_>>().join(" ")
    };
    // Each call sends a byte of the request at least.
    let writes = value.parse().ok().filter(|writes| WRITES.contains(writes));
    let next = writes.filter(|_| *what == "request_writes");
    let next = next.map(|writes| format!("make requests longer, as with -r {writes}"));
    let (value, allowed) = (in_units(value), in_units(allowed));
    Failure::usage(anyhow!("{flag}{case} is {value}, but must be {allowed}")).maybe(next)
}

fn sizes(text: &str) -> CmdResult<(Bytes, Bytes)> {
    let size = |text: &str| -> CmdResult<Bytes> {
        text.parse().map_err(|error: ParseUnitError| {
            Failure::usage(anyhow!(error)).next("give sizes as `-r 64,1K`")
        })
    };
    let (request, response) = text.split_once(',').unwrap_or((text, text));
    Ok((size(request)?, size(response)?))
}

#[cfg(test)]
mod tests;
