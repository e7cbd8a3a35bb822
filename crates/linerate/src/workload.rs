//! From the flags of `linerate run` to a workload, and from what is wrong with it back to the flag.

use anyhow::anyhow;
use linerate_model::manner::{
    DATAGRAM_BYTES_MAX, Manner, ReceiveBy, SendBy, Transport, WaitBy, datagram_batch,
    receive_low_water, stream_batch,
};
use linerate_model::parameter::parameter_of;
use linerate_model::unit::ParseUnitError;
use linerate_model::workload::{
    Case, DATAGRAM_BYTES_DEFAULT, Direction, FlowOptions, Kind, STREAM_MESSAGE_BYTES_DEFAULT,
    Traffic, Workload, WorkloadError,
};
use linerate_model::{BitsPerSec, Bytes};

use crate::args::{IoChoice, RunArgs, RxChoice, SendChoice};
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

/// Returns the workload that the flags describe, for one client.
pub fn workload(args: &RunArgs) -> CmdResult<Workload> {
    let kind = kind(args)?;
    let transport = transport(args)?;
    fit::check(args, kind, transport)?;
    let traffic = traffic(args, kind, transport)?;
    let mut manner = manner(args, kind, transport, &traffic)?;
    let options = options(args)?;
    manner.receive_low_water = low_water(args, &traffic, &options, &manner);
    let connections = match args.traffic.bidir {
        true => args.traffic.parallel.saturating_mul(2),
        false => args.traffic.parallel,
    };
    if args.calls.batch.is_none() {
        manner.batch = match (manner.transport, args.traffic.length) {
            (Transport::Udp, _) => datagram_batch(&traffic, connections, &options, &manner),
            (_, None) => stream_batch(&traffic, &options, &manner),
            (_, Some(_)) => 1,
        };
        manner.batch_is_chosen = manner.batch != 1;
    }
    let workload = Workload {
        traffic,
        connections,
        clients: 1,
        link_loss_ppm: None,
        options,
        manner,
    };
    let told = |error: WorkloadError| match error {
        // In the words of the flag; the sizes are within their limits by now.
        WorkloadError::Contradiction(_) => check_segments(&workload)
            .err()
            .unwrap_or_else(|| not_possible(error)),
        error => not_possible(error),
    };
    workload.check().map_err(told)?;
    Ok(workload)
}

/// Returns what a user must know before an unasked-for rate is taken for the path's.
pub fn rate_note(args: &RunArgs, workload: &Workload) -> Option<String> {
    let is_stream = matches!(workload.traffic, Traffic::Stream { .. });
    let is_default = args.rate.bitrate.is_none() && workload.manner.transport == Transport::Udp;
    (is_default && is_stream).then(|| {
        format!(
            "NOTE: UDP is sent at {} a flow, because nothing else was asked for; \
             name a rate with -b 100M, or send as fast as possible with -b 0",
            BitsPerSec(UDP_RATE_DEFAULT_BPS as f64)
        )
    })
}

fn kind(args: &RunArgs) -> CmdResult<Kind> {
    let traffic = &args.traffic;
    let asked = [
        (traffic.rr, "--rr", Kind::Rr),
        (traffic.crr, "--crr", Kind::Crr),
        (traffic.connect, "--connect", Kind::Crr),
        (traffic.idle, "--idle", Kind::Idle),
    ];
    let asked: Vec<_> = asked.into_iter().filter(|(given, ..)| *given).collect();
    match asked.as_slice() {
        [] => Ok(Kind::Stream),
        [(_, _, kind)] => Ok(*kind),
        // The same twice: connecting and closing is a form of --crr.
        [(_, "--crr", kind), (_, "--connect", _)] => Ok(*kind),
        [(_, one, _), (_, other, _), ..] => {
            let error = anyhow!("{one} and {other} are two kinds of traffic");
            Err(Failure::usage(error)
                .next("choose one of --rr, --crr, --connect, --idle, or none for a stream"))
        }
    }
}

fn transport(args: &RunArgs) -> CmdResult<Transport> {
    let asked = [
        (args.traffic.udp, "--udp (-u)", Transport::Udp),
        (args.traffic.mptcp, "--mptcp (-m)", Transport::Mptcp),
        (args.traffic.unix, "--unix", Transport::Unix),
    ];
    let asked: Vec<_> = asked.into_iter().filter(|(given, ..)| *given).collect();
    match asked.as_slice() {
        [] => Ok(Transport::Tcp),
        [(_, _, transport)] => Ok(*transport),
        [(_, one, _), (_, other, _), ..] => {
            let error = anyhow!("{one} and {other} are two transports");
            Err(Failure::usage(error).next("choose one, or none for TCP"))
        }
    }
}

fn traffic(args: &RunArgs, kind: Kind, transport: Transport) -> CmdResult<Traffic> {
    let (request_bytes, response_bytes) = match (&args.traffic.sizes, args.traffic.connect) {
        (_, true) => (Bytes(0), Bytes(0)),
        (Some(text), _) => sizes(text)?,
        (None, _) => (Bytes(1), Bytes(1)),
    };
    Ok(match kind {
        Kind::Rr => Traffic::Rr {
            request_bytes,
            response_bytes,
            request_writes: args.traffic.request_writes,
        },
        Kind::Crr => Traffic::Crr {
            request_bytes,
            response_bytes,
        },
        Kind::Idle => Traffic::Idle,
        Kind::Stream => Traffic::Stream {
            direction: match (args.traffic.reverse, args.traffic.bidir) {
                (_, true) => Direction::Both,
                (true, _) => Direction::FromServer,
                _ => Direction::ToServer,
            },
            message_bytes: args.traffic.length.unwrap_or(match transport {
                Transport::Udp => DATAGRAM_BYTES_DEFAULT,
                _ => STREAM_MESSAGE_BYTES_DEFAULT,
            }),
        },
    })
}

fn manner(
    args: &RunArgs,
    kind: Kind,
    transport: Transport,
    traffic: &Traffic,
) -> CmdResult<Manner> {
    let mix = args.traffic.size_mix.as_deref().map(mix::parse);
    let (rate_bps, burst) = rate(args, kind, transport)?;
    Ok(Manner {
        transport,
        send: match args.calls.zerocopy {
            None => SendBy::Copy,
            Some(SendChoice::Auto) => SendBy::Auto,
            Some(SendChoice::Vmsplice) => SendBy::Vmsplice,
            Some(SendChoice::Msg) => SendBy::MsgZerocopy,
            Some(SendChoice::Sendfile) => SendBy::Sendfile,
        },
        receive: match (args.calls.rx, args.calls.skip_rx_copy) {
            (Some(RxChoice::Discard), _) | (None, true) => ReceiveBy::Discard,
            (Some(RxChoice::Copy), _) | (None, false) => ReceiveBy::Copy,
        },
        wait: match (args.calls.busy_poll, args.calls.io) {
            (true, _) => WaitBy::Spin,
            (false, None | Some(IoChoice::Auto)) => WaitBy::Auto,
            (false, Some(IoChoice::Epoll)) => WaitBy::Epoll,
            (false, Some(IoChoice::Uring)) => WaitBy::Uring,
        },
        batch: args.calls.batch.unwrap_or(1),
        batch_is_chosen: false,
        segments: args.calls.gso,
        gro: args.calls.gro,
        in_flight: args.rate.in_flight.unwrap_or(match (kind, args.rate.rate) {
            (Kind::Rr, Some(_)) => IN_FLIGHT_OPEN,
            _ => 1,
        }),
        rate_bps,
        burst,
        requests_per_s: args.rate.rate,
        think: args.rate.think,
        sizes: mix.transpose()?,
        bytes_max: volume(args, traffic)?,
        short_numbers: false,
        receive_low_water: None,
    })
}

/// Returns how much must have come before a receiver is woken: what was asked for, or what fits.
fn low_water(
    args: &RunArgs,
    traffic: &Traffic,
    options: &FlowOptions,
    manner: &Manner,
) -> Option<Bytes> {
    match args.socket.rcvlowat {
        Some(Bytes(0)) => None,
        Some(bytes) => Some(bytes),
        None => receive_low_water(traffic, options, manner),
    }
}

/// Returns the rate of each flow and the messages of a burst; `-b 0` is no limit.
fn rate(args: &RunArgs, kind: Kind, transport: Transport) -> CmdResult<(Option<u64>, u32)> {
    let Some(text) = &args.rate.bitrate else {
        let is_default = kind == Kind::Stream && transport == Transport::Udp;
        return Ok((is_default.then_some(UDP_RATE_DEFAULT_BPS), 1));
    };
    let (rate, burst) = match text.split_once('/') {
        Some((rate, burst)) => (rate, Some(burst)),
        None => (text.as_str(), None),
    };
    let rate: BitsPerSec = rate.parse().map_err(|error: ParseUnitError| {
        Failure::usage(anyhow!("--bitrate (-b): {error}")).next("give a rate as `-b 100M`")
    })?;
    let rate = (rate.0 > 0.0).then_some(rate.0 as u64);
    let Some(burst) = burst else {
        return Ok((rate, 1));
    };
    let burst: u32 = burst.parse().map_err(|_| {
        let error = anyhow!("--bitrate (-b) {text}: `{burst}` is no number of messages");
        Failure::usage(error).next("give rate and burst as `-b 100M/16`")
    })?;
    if rate.is_none() {
        let error = anyhow!("--bitrate (-b) {text} has a burst, but no rate to rest by");
        return Err(Failure::usage(error)
            .next("give a rate as `-b 100M/16`, or several messages a call with --batch"));
    }
    Ok((rate, burst))
}

/// Returns the bytes after which each flow stops.
fn volume(args: &RunArgs, traffic: &Traffic) -> CmdResult<Option<Bytes>> {
    match (args.rate.blockcount, traffic) {
        (None, _) => Ok(args.rate.bytes),
        (Some(0), _) => Err(Failure::usage(anyhow!(
            "--blockcount (-k) is 0, but must be at least 1"
        ))),
        (Some(count), Traffic::Stream { message_bytes, .. }) => {
            let bytes = count.checked_mul(message_bytes.0);
            let most =
                || Failure::usage(anyhow!("--blockcount (-k) {count} is more than 2^64 bytes"));
            Ok(Some(Bytes(bytes.ok_or_else(most)?)))
        }
        // Refused before, as it is for streams.
        (Some(_), _) => Ok(None),
    }
}

fn options(args: &RunArgs) -> CmdResult<FlowOptions> {
    let socket = &args.socket;
    Ok(FlowOptions {
        socket_buffer: socket.window,
        nagle: socket.no_delay.then_some(false),
        delayed_ack: socket.quick_ack.then_some(false),
        congestion: socket.congestion.clone(),
        mss_bytes: socket.set_mss,
        cork: socket.cork.then_some(true),
        pacing_bps: args.rate.fq_rate.map(|rate| rate.0 as u64),
        busy_poll_us: args.socket.busy_poll_us,
        tos: tos::parse(socket.tos.as_deref(), socket.dscp.as_deref())?,
    })
}

/// Refuses more payload in one send than a datagram's length can say.
fn check_segments(workload: &Workload) -> CmdResult<()> {
    let (Traffic::Stream { message_bytes, .. }, segments) =
        (&workload.traffic, u64::from(workload.manner.segments))
    else {
        return Ok(());
    };
    if segments == 1 || segments * message_bytes.0 <= DATAGRAM_BYTES_MAX {
        return Ok(());
    }
    let fitting = DATAGRAM_BYTES_MAX / message_bytes.0.max(1);
    let error = anyhow!(
        "--gso {segments} of {} B is {} B, but one send carries at most {DATAGRAM_BYTES_MAX} B",
        message_bytes.0,
        segments * message_bytes.0
    );
    Err(Failure::usage(error).next(format!(
        "ask for --gso {fitting}, or shorter datagrams with -l"
    )))
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
        "a size" | "the greatest size" | "the number of sizes" => format!("{what} of --size-mix"),
        "sigma_percent" => "the width of --size-mix lognormal, in hundredths,".to_owned(),
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
    Failure::usage(anyhow!("{flag}{case} is {value}, but must be {allowed}"))
}

fn sizes(text: &str) -> CmdResult<(Bytes, Bytes)> {
    let size = |text: &str| -> CmdResult<Bytes> {
        text.parse().map_err(|error: ParseUnitError| {
            Failure::usage(anyhow!(error)).next("give sizes as `-r 64,1K`")
        })
    };
    match text.split_once(',') {
        Some((request, response)) => Ok((size(request)?, size(response)?)),
        None => Ok((size(text)?, size(text)?)),
    }
}
