//! From a workload to what netperf's server is asked.

use std::net::SocketAddr;

use linerate_compat::netperf::{Length, OmniRequest, OmniTransport, Way, flag};
use linerate_model::experiment::Timing;
use linerate_model::manner::{ReceiveBy, SendBy, Transport};
use linerate_model::workload::{Direction, Part, Traffic, Workload};
use linerate_model::{Bytes, FlowId, Nanos};

use crate::api::{Assignment, Placement};
use crate::foreign::peer::{check_manner, workload_of};

/// How much longer than all phases a test goes on at the server at the least, whose clock starts before the flows are
/// opened. One that sends goes on until then, and with what a whole second adds its stream ends within the
/// time that a receiver waits for it ([`linerate_engine::GRACE_NS`]).
const LEAD: Nanos = Nanos::from_ms(500);

/// Returns what the server at `address` is asked for each flow of its assignment, and what to know about it; or why
/// that cannot be asked of a netperf server.
pub(super) fn requests(
    assignment: &Assignment,
    timing: &Timing,
    address: SocketAddr,
) -> Result<(Vec<(FlowId, OmniRequest)>, Vec<String>), String> {
    let workload = workload_of(assignment)?;
    let asked = |part| -> Result<OmniRequest, String> {
        Ok(OmniRequest {
            is_v6: Some(address.ip().to_canonical().is_ipv6()),
            cpu: cpu(assignment)?,
            ..request(&workload, part, timing)?
        })
    };
    let flows = assignment.flows.iter();
    let requests = flows.map(|plan| Ok((plan.flow, asked(plan.part)?)));
    let requests = requests.collect::<Result<_, String>>()?;
    Ok((requests, notes(&workload, timing)))
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

/// Returns what to know about a test.
fn notes(workload: &Workload, timing: &Timing) -> Vec<String> {
    let options = &workload.options;
    let mut notes = Vec::new();
    let is_datagrams = workload.manner.transport == Transport::Udp;
    if is_datagrams && workload.traffic.is_stream() && timing.warm_up.0 > 0 {
        notes.push(format!(
            "how many datagrams came in the window is not known: its count is of all, the first {} included",
            timing.warm_up
        ));
    }
    let is_here_only = options.delayed_ack.is_some()
        || options.cork.is_some()
        || options.busy_poll_us.is_some()
        || options.mss_bytes.is_some();
    if is_here_only {
        let names = "TCP_QUICKACK, TCP_CORK, TCP_MAXSEG and SO_BUSY_POLL";
        notes.push(format!("{names} were set at this end only"));
    }
    notes
}
