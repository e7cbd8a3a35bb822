//! From a workload to what netperf's server is asked.

use std::net::SocketAddr;

use linerate_compat::netperf::{Length, OmniRequest, OmniTransport, Way, flag};
use linerate_model::experiment::Timing;
use linerate_model::manner::{ReceiveBy, SendBy, Transport};
use linerate_model::workload::{Direction, FlowOptions, Part, Traffic, Workload};
use linerate_model::{Bytes, FlowId, Nanos};

use crate::api::{Assignment, Placement};
use crate::foreign::peer::{check_manner, workload_of};

/// How much longer than all phases a test goes on at the server at the least, whose clock starts before the flows are
/// opened. One that sends goes on until then, and with what a whole second adds its stream ends within the
/// time that a receiver waits for it ([`linerate_engine::GRACE_NS`]).
const LEAD: Nanos = Nanos::from_ms(500);

/// Returns what the server at `address` is asked for each flow of its assignment; or why that cannot be asked of a
/// netperf server.
pub(super) fn requests(
    assignment: &Assignment,
    timing: &Timing,
    address: SocketAddr,
) -> Result<Vec<(FlowId, OmniRequest)>, String> {
    let workload = workload_of(assignment)?;
    let asked = |part| -> Result<OmniRequest, String> {
        Ok(OmniRequest {
            is_v6: Some(address.ip().to_canonical().is_ipv6()),
            cpu: cpu(assignment)?,
            ..request(&workload, part, timing)?
        })
    };
    let flows = assignment.flows.iter();
    flows
        .map(|plan| Ok((plan.flow, asked(plan.part)?)))
        .collect()
}

/// Returns why a workload cannot be asked of a netperf server, as the rest of a sentence about netperf.
pub fn check(workload: &Workload, timing: &Timing) -> Result<(), String> {
    let parts: &[Part] = match workload.traffic.direction() {
        Some(Direction::ToServer) => &[Part::Receiver],
        Some(Direction::FromServer) => &[Part::Sender],
        Some(Direction::Both) => &[Part::Receiver, Part::Sender],
        None => &[Part::Responder],
    };
    let mut parts = parts.iter();
    parts.try_for_each(|part| request(workload, *part, timing).map(drop))
}

/// Returns the phases of which a netperf server's counts are: it counts all datagrams that come.
pub fn fitting(timing: &Timing, transport: Transport) -> Timing {
    match transport {
        Transport::Udp => Timing {
            warm_up: Nanos(0),
            drain: Nanos(0),
            ..*timing
        },
        _ => *timing,
    }
}

/// Returns what is asked of a server that has `part` in a flow.
fn request(workload: &Workload, part: Part, timing: &Timing) -> Result<OmniRequest, String> {
    let (manner, options) = (&workload.manner, &workload.options);
    check_manner(manner)?;
    let transport = match manner.transport {
        Transport::Udp => OmniTransport::Udp,
        Transport::Tcp => OmniTransport::Tcp,
        Transport::Mptcp | Transport::Unix => return Err("knows only TCP and UDP".into()),
    };
    check_part(workload, part)?;
    let counts_all = transport == OmniTransport::Udp && workload.traffic.is_stream();
    if counts_all && timing.warm_up.0 + timing.drain.0 > 0 {
        return Err("counts all datagrams, those of a warm-up and a drain, too".into());
    }
    let way = match part {
        Part::Receiver => Way::In,
        Part::Sender => Way::Out,
        Part::Requester | Part::Responder => Way::Exchange,
    };
    let small = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
    let message = workload.traffic.stream().map(|(_, bytes)| small(bytes));
    let exchange = workload.traffic.exchange();
    let is_udp = transport == OmniTransport::Udp;
    let mut flags = flag::NAMES_CONGESTION;
    if workload.traffic.is_placed() {
        flags |= flag::CONNECTS;
    } else {
        // Of connections one after another it would be that of the time after them, too.
        flags |= flag::MEASURES_CPU;
    }
    if options.nagle == Some(false) {
        flags |= flag::NO_DELAY;
    }
    Ok(OmniRequest {
        send_window_bytes: options.socket_buffer.map(small),
        receive_window_bytes: options.socket_buffer.map(small),
        send_bytes: message.filter(|_| part == Part::Sender),
        // A datagram has to fit its room; what a call takes of a stream is the server's choice.
        receive_bytes: message.filter(|_| part == Part::Receiver && is_udp),
        request_bytes: exchange.map(|(request, _)| small(request)),
        response_bytes: exchange.map(|(_, response)| small(response)),
        flags,
        tos: options.tos.map(u32::from),
        congestion: options.congestion.clone(),
        ..OmniRequest::of(transport, way, length(workload, part, timing)?)
    })
}

/// Refuses what the server cannot do in its part of a flow.
fn check_part(workload: &Workload, part: Part) -> Result<(), String> {
    let (manner, options) = (&workload.manner, &workload.options);
    let is_sender = part == Part::Sender;
    let has_rate = manner.rate_bps.is_some() || options.pacing_bps.is_some();
    let nothing = (Bytes(0), Bytes(0));
    let why = match &workload.traffic {
        Traffic::Idle => "knows no connections that carry nothing",
        Traffic::Crr { .. } if workload.traffic.exchange() == Some(nothing) => {
            "exchanges at least a byte each way on each connection"
        }
        _ if is_sender && manner.transport == Transport::Udp => {
            "sends datagrams only in answer to others"
        }
        _ if is_sender && has_rate => "keeps no rate when it sends",
        _ if is_sender && !matches!(manner.send, SendBy::Copy | SendBy::Auto) => {
            "sends by plain calls only"
        }
        _ if part == Part::Receiver && manner.receive != ReceiveBy::Copy => {
            "receives by plain calls only"
        }
        _ if manner.gro => "takes one datagram at a time (no GRO)",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// Returns how long the test goes on at the server.
fn length(workload: &Workload, part: Part, timing: &Timing) -> Result<Length, String> {
    let sends = part == Part::Sender;
    if let Some(bytes) = workload.manner.bytes_max.filter(|_| sends) {
        let most = i32::MAX.unsigned_abs();
        let units = u32::try_from(bytes.0).ok().filter(|units| *units <= most);
        let units = units.ok_or_else(|| format!("sends at most {most} B, or for a time"))?;
        return Ok(Length::Units(units));
    }
    if !timing.is_until_stopped() {
        let seconds = (timing.total().0 + LEAD.0).div_ceil(Nanos::from_s(1).0);
        return Ok(Length::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX)));
    }
    if sends || workload.traffic.is_placed() {
        return Err("ends such a test by its own clock only: say how long, with -t".into());
    }
    Ok(Length::Open)
}

/// Returns the CPU that the server is to run on.
fn cpu(assignment: &Assignment) -> Result<Option<u32>, String> {
    match (&assignment.placement, &assignment.cpus[..]) {
        (Placement::AsAsked, [_, _, ..]) => Err("runs on one CPU or on any".into()),
        (Placement::AsAsked, cpus) => Ok(cpus.first().copied()),
        // Nobody asked for those.
        _ => Ok(None),
    }
}

/// Returns what to know about a test with `options`.
pub(super) fn note(options: &FlowOptions) -> Option<String> {
    let is_here_only = options.delayed_ack.is_some()
        || options.cork.is_some()
        || options.busy_poll_us.is_some()
        || options.mss_bytes.is_some();
    let names = "TCP_QUICKACK, TCP_CORK, TCP_MAXSEG and SO_BUSY_POLL";
    is_here_only.then(|| format!("{names} were set at this end only"))
}

#[cfg(test)]
mod tests {
    use linerate_model::manner::Sizes;

    use super::*;

    const TIMING: Timing = Timing {
        settle: Nanos::from_ms(100),
        warm_up: Nanos(0),
        measure: Nanos::from_s(10),
        drain: Nanos(0),
    };

    fn stream(direction: Direction) -> Workload {
        Workload::stream(direction)
    }

    fn exchange(traffic: fn(Bytes, Bytes) -> Traffic, bytes: (u64, u64)) -> Workload {
        Workload {
            traffic: traffic(Bytes(bytes.0), Bytes(bytes.1)),
            ..stream(Direction::ToServer)
        }
    }

    fn rr(request_bytes: Bytes, response_bytes: Bytes) -> Traffic {
        Traffic::Rr {
            request_bytes,
            response_bytes,
            request_writes: 1,
        }
    }

    fn crr(request_bytes: Bytes, response_bytes: Bytes) -> Traffic {
        Traffic::Crr {
            request_bytes,
            response_bytes,
        }
    }

    fn with(workload: Workload, change: fn(&mut Workload)) -> Workload {
        let mut workload = workload;
        change(&mut workload);
        workload
    }

    fn udp(workload: Workload) -> Workload {
        with(workload, |one| one.manner.transport = Transport::Udp)
    }

    #[test]
    fn each_kind_of_traffic_is_a_test_of_netperfs() {
        let check = |workload: Workload, part, expected: (OmniTransport, Way, bool)| {
            let asked = request(&workload, part, &TIMING).unwrap();
            let connects = asked.has(flag::CONNECTS);
            assert_eq!((asked.transport, asked.way, connects), expected);
            assert_eq!(asked.has(flag::MEASURES_CPU), !connects);
            // Eleven seconds are more than the time, the quiet before it and the lead.
            assert_eq!(asked.length, Length::Seconds(11));
            asked
        };
        let (tcp, datagrams) = (OmniTransport::Tcp, OmniTransport::Udp);
        let (to, from) = (Direction::ToServer, Direction::FromServer);
        check(stream(to), Part::Receiver, (tcp, Way::In, false));
        let sends = check(stream(from), Part::Sender, (tcp, Way::Out, false));
        assert_eq!(
            (sends.send_bytes, sends.receive_bytes),
            (Some(131_072), None)
        );
        let small = with(udp(stream(to)), |one| {
            one.traffic = Traffic::Stream {
                direction: Direction::ToServer,
                message_bytes: Bytes(1000),
            };
        });
        let takes = check(small, Part::Receiver, (datagrams, Way::In, false));
        assert_eq!((takes.send_bytes, takes.receive_bytes), (None, Some(1000)));
        let answers = Part::Responder;
        let asked = check(exchange(rr, (10, 20)), answers, (tcp, Way::Exchange, false));
        assert_eq!(
            (asked.request_bytes, asked.response_bytes),
            (Some(10), Some(20))
        );
        check(exchange(crr, (1, 1)), answers, (tcp, Way::Exchange, true));
        check(
            udp(exchange(rr, (1, 1))),
            answers,
            (datagrams, Way::Exchange, false),
        );
    }

    #[test]
    fn what_netperf_does_not_know_is_refused() {
        let to = || stream(Direction::ToServer);
        let from = || stream(Direction::FromServer);
        let endless = Timing {
            measure: Timing::UNTIL_STOPPED,
            ..TIMING
        };
        let warm = Timing {
            warm_up: Nanos::from_ms(1),
            ..TIMING
        };
        let mixed = with(to(), |one| {
            one.manner.sizes = Some(Sizes::Uniform {
                low: Bytes(1),
                high: Bytes(2),
            });
        });
        let large = with(from(), |one| one.manner.bytes_max = Some(Bytes(1 << 31)));
        let slow = with(from(), |one| one.manner.rate_bps = Some(1));
        let dropped = with(to(), |one| one.manner.receive = ReceiveBy::Discard);
        let mapped = with(from(), |one| one.manner.send = SendBy::Vmsplice);
        let joined = with(udp(to()), |one| one.manner.gro = true);
        let confined = with(to(), |one| one.manner.cpus = Some(1));
        let mptcp = with(to(), |one| one.manner.transport = Transport::Mptcp);
        let idle = with(to(), |one| one.traffic = Traffic::Idle);
        for (workload, timing, words) in [
            (mixed, TIMING, "one size only"),
            (large, TIMING, "at most 2147483647 B"),
            (slow, TIMING, "no rate"),
            (dropped, TIMING, "receives by plain calls"),
            (mapped, TIMING, "sends by plain calls"),
            (joined, TIMING, "no GRO"),
            (confined, TIMING, "cannot be confined"),
            (mptcp, TIMING, "only TCP and UDP"),
            (idle, TIMING, "that carry nothing"),
            (exchange(crr, (0, 0)), TIMING, "at least a byte"),
            (exchange(crr, (1, 1)), endless, "by its own clock"),
            (udp(from()), TIMING, "in answer to others"),
            (udp(to()), warm, "those of a warm-up"),
            (from(), endless, "by its own clock"),
            (stream(Direction::Both), endless, "by its own clock"),
        ] {
            let why = check(&workload, &timing).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        for fine in [to(), exchange(rr, (1, 1)), udp(to())] {
            assert_eq!(check(&fine, &endless), Ok(()));
        }
        assert_eq!(check(&to(), &warm), Ok(()));
        let fitted = fitting(&warm, Transport::Udp);
        assert_eq!(check(&udp(to()), &fitted), Ok(()));
    }

    #[test]
    fn a_volume_is_a_number_of_bytes_where_the_server_sends_it() {
        let volume = |direction| {
            with(stream(direction), |one| {
                one.manner.bytes_max = Some(Bytes(70_000));
            })
        };
        let asked = |workload, part| request(&workload, part, &TIMING).unwrap().length;
        let sent = asked(volume(Direction::FromServer), Part::Sender);
        assert_eq!(sent, Length::Units(70_000));
        // What comes ends by the end of the stream.
        let came = asked(volume(Direction::ToServer), Part::Receiver);
        assert_eq!(came, Length::Seconds(11));
    }
}
