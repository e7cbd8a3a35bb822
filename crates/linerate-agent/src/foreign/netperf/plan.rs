//! What is asked for as what is done, and what is refused.
//!
//! What has no meaning here is ignored, as netperf's own server ignores it where its system does not have it:
//! alignment and offset of buffers, how many there are, dirty ones, fast open, and that connections are accepted
//! late.

use std::net::IpAddr;

use linerate_compat::netperf::{Length, OmniRequest, OmniTransport, Way, flag};
use linerate_model::Nanos;
use nix::errno::Errno;

use super::refused::Refused;
use crate::api::LimitsInfo;

/// The first port that a client may name; those below are the system's.
const PORT_MIN: u16 = 1024;
/// The longest test, if the agent has no limit.
const LONGEST: Nanos = Nanos::from_s(86_400);

/// What a test does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Takes a stream to its end, or datagrams to an empty one.
    Receive,
    /// Sends a stream.
    Send,
    /// Answers each request on one connection, or of one port.
    Exchange,
    /// Answers one request on each connection.
    Connections,
}

/// What a test is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meant {
    pub(super) role: Role,
    pub(super) is_udp: bool,
    /// How long it takes at the most, from the moment that the client is told where to come.
    pub(super) most: Nanos,
    /// How much longer than the client's own time that is: see [`PAD`].
    pub(super) pad: Nanos,
    /// What ends it when it takes so long.
    pub(super) ends: Ends,
    /// Transactions or bytes after which it is over.
    pub(super) units: Option<u64>,
}

/// How long after the time that the client named its last payload is waited for.
pub(super) const PAD: Nanos = Nanos::from_s(4);

/// What it means that the time of a test is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// It has gone on as long as was asked for.
    AsAsked,
    /// The agent allows no longer one, and the client named no time.
    ByLimit,
}

/// Decides what is done for a client at `peer`.
pub(super) fn plan(
    request: &OmniRequest,
    peer: IpAddr,
    limits: &LimitsInfo,
) -> Result<Meant, Refused> {
    let is_udp = match request.transport {
        OmniTransport::Tcp => false,
        OmniTransport::Udp => true,
        OmniTransport::Other { protocol, .. } => {
            let reason = format!("protocol {protocol} is not supported");
            return Err(Refused::new(Errno::EPROTONOSUPPORT, reason));
        }
    };
    if request.is_v6.is_some_and(|is_v6| is_v6 != peer.is_ipv6()) {
        let reason = "payload of another family of addresses than the control connection";
        return Err(Refused::new(Errno::EAFNOSUPPORT, reason));
    }
    if (1..PORT_MIN).contains(&request.port) {
        let reason = format!("port {}, but {PORT_MIN} is the least", request.port);
        return Err(Refused::new(Errno::EACCES, reason));
    }
    let role = role(request, is_udp)?;
    let longest = limits.trial.unwrap_or(LONGEST);
    let (most, pad, ends) = match request.length {
        Length::Seconds(seconds) => {
            let length = Nanos::from_s(seconds.into());
            if length > longest {
                let reason = format!("a test of {length}, but this agent allows {longest}");
                return Err(Refused::new(Errno::ERANGE, reason));
            }
            let pad = if role == Role::Send { Nanos(0) } else { PAD };
            (Nanos(length.0 + pad.0), pad, Ends::AsAsked)
        }
        Length::Open | Length::Units(_) => (longest, Nanos(0), Ends::ByLimit),
    };
    let units = match request.length {
        Length::Units(units) => Some(units.into()),
        _ => None,
    };
    Ok(Meant {
        role,
        is_udp,
        most,
        pad,
        ends,
        units,
    })
}

fn role(request: &OmniRequest, is_udp: bool) -> Result<Role, Refused> {
    let connects = request.has(flag::CONNECTS);
    let sizes = request.request_bytes.and(request.response_bytes);
    match request.way {
        Way::Exchange if sizes.is_none() => {
            let reason = "an exchange without the sizes of requests and responses";
            Err(Refused::new(Errno::EINVAL, reason))
        }
        Way::Exchange if connects && !is_udp => Ok(Role::Connections),
        _ if connects => {
            let reason =
                "connections one after another, but not of requests and responses over TCP";
            Err(Refused::new(Errno::EOPNOTSUPP, reason))
        }
        Way::Exchange => Ok(Role::Exchange),
        Way::In => Ok(Role::Receive),
        Way::Out if is_udp => {
            let reason =
                "datagrams from the server alone: they go only to a port from which one came";
            Err(Refused::new(Errno::EOPNOTSUPP, reason))
        }
        Way::Out => Ok(Role::Send),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: OmniTransport = OmniTransport::Tcp;
    const UDP: OmniTransport = OmniTransport::Udp;

    fn planned(
        transport: OmniTransport,
        way: Way,
        length: Length,
        change: fn(&mut OmniRequest),
    ) -> Result<Meant, Errno> {
        let limits = LimitsInfo {
            trial: Some(Nanos::from_s(20)),
            ..LimitsInfo::default()
        };
        let mut request = OmniRequest::of(transport, way, length);
        change(&mut request);
        let peer = "192.0.2.1".parse().unwrap();
        plan(&request, peer, &limits).map_err(|refused| refused.error)
    }

    fn sized(request: &mut OmniRequest) {
        (request.request_bytes, request.response_bytes) = (Some(1), Some(1));
    }

    #[test]
    fn each_test_of_a_client_has_one_role() {
        let check = |transport, way, change, expected| {
            let plan = planned(transport, way, Length::Seconds(1), change).unwrap();
            assert_eq!((plan.role, plan.is_udp), (expected, transport == UDP));
        };
        let connects = |request: &mut OmniRequest| {
            sized(request);
            request.flags = flag::CONNECTS;
        };
        check(TCP, Way::In, |_| (), Role::Receive);
        check(TCP, Way::Out, |_| (), Role::Send);
        check(TCP, Way::Exchange, sized, Role::Exchange);
        check(TCP, Way::Exchange, connects, Role::Connections);
        check(UDP, Way::In, |_| (), Role::Receive);
        check(UDP, Way::Exchange, sized, Role::Exchange);
    }

    #[test]
    fn what_is_refused() {
        let check = |transport, way, seconds, change, expected| {
            let told = planned(transport, way, Length::Seconds(seconds), change);
            assert_eq!(told.unwrap_err(), expected);
        };
        let sctp = OmniTransport::Other {
            socket: 1,
            protocol: 132,
        };
        check(sctp, Way::In, 1, |_| (), Errno::EPROTONOSUPPORT);
        check(UDP, Way::Out, 1, |_| (), Errno::EOPNOTSUPP);
        check(TCP, Way::Exchange, 1, |_| (), Errno::EINVAL);
        check(TCP, Way::In, 21, |_| (), Errno::ERANGE);
        check(TCP, Way::In, 1, |own| own.port = 80, Errno::EACCES);
        let v6 = |own: &mut OmniRequest| own.is_v6 = Some(true);
        check(TCP, Way::In, 1, v6, Errno::EAFNOSUPPORT);
        let connects = |own: &mut OmniRequest| own.flags = flag::CONNECTS;
        check(TCP, Way::In, 1, connects, Errno::EOPNOTSUPP);
    }

    #[test]
    fn a_test_ends_by_its_time_or_by_the_agents() {
        let check = |way, length, most_s, pad_s, ends, units| {
            let plan = planned(TCP, way, length, |_| ()).unwrap();
            let expected = (Nanos::from_s(most_s), Nanos::from_s(pad_s), ends, units);
            assert_eq!((plan.most, plan.pad, plan.ends, plan.units), expected);
        };
        check(Way::In, Length::Seconds(20), 24, 4, Ends::AsAsked, None);
        check(Way::Out, Length::Seconds(20), 20, 0, Ends::AsAsked, None);
        check(Way::In, Length::Open, 20, 0, Ends::ByLimit, None);
        check(Way::Out, Length::Units(7), 20, 0, Ends::ByLimit, Some(7));
    }
}
