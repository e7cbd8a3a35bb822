//! Starts the hosts of a round by one datagram.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use linerate_agent::api::{StartRequest, Trigger, TriggerKey};
use linerate_model::fleet::Multicast;
use linerate_model::reason::{HostFailure, Reason};
use socket2::Socket;

use super::participant::TrialAgent;
use crate::fleet::Clock;

/// Copies of the datagram: a network that loses one of a hundred loses all of them once in a million.
const COPIES: u32 = 3;
/// Time between them.
const APART: Duration = Duration::from_millis(1);

/// The end that sends the datagram of one start.
pub(super) struct Starter {
    socket: Socket,
    to: Multicast,
    key: TriggerKey,
}

impl Starter {
    /// Returns what starts hosts by `to`, from the device that leads to `agent`.
    pub(super) fn open(to: Multicast, agent: &TrialAgent<'_>) -> Result<Self, Reason> {
        let host = interface(agent)?;
        let cannot = |error: io::Error| {
            let words = format!("no datagram can be sent to {}: {error}", to.group);
            failed(agent, words)
        };
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| cannot(io::Error::other(error)))?;
        let socket = socket_towards(host, to).map_err(cannot)?;
        Ok(Self {
            socket,
            to,
            key: TriggerKey::new(key),
        })
    }

    /// Returns `at` for a host that waits for the datagram.
    pub(super) fn arm(
        &self,
        agent: &TrialAgent<'_>,
        at: StartRequest,
    ) -> Result<StartRequest, Reason> {
        let trigger = Trigger {
            group: self.to.group,
            interface: interface(agent)?,
            key: self.key,
        };
        Ok(StartRequest {
            trigger: Some(trigger),
            ..at
        })
    }

    /// Starts whoever waits, at `start_ns` on `clock`. Hosts that hear nothing say so when they are asked.
    pub(super) fn send(&self, clock: &Clock, start_ns: u64) {
        let to = SocketAddr::from(self.to.group).into();
        for copy in 0..COPIES {
            if copy > 0 {
                clock.sleep(APART);
            }
            let lead_ns = start_ns.saturating_sub(clock.now_ns());
            let _ = self.socket.send_to(&self.key.datagram(lead_ns), &to);
        }
    }
}

/// Returns a socket whose datagrams to a group leave by the device that leads to `host`.
fn socket_towards(host: Ipv4Addr, to: Multicast) -> io::Result<Socket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // Nothing is sent by that.
    socket.connect((host, to.group.port()))?;
    let own = socket.local_addr()?;
    let socket = Socket::from(UdpSocket::bind((own.ip(), 0))?);
    if let IpAddr::V4(own) = own.ip() {
        socket.set_multicast_if_v4(&own)?;
    }
    socket.set_multicast_ttl_v4(to.ttl.into())?;
    Ok(socket)
}

/// Returns the address at which a host is reached, which is one of its own.
fn interface(agent: &TrialAgent<'_>) -> Result<Ipv4Addr, Reason> {
    match agent.member.spec.control_ip.map(|ip| ip.to_canonical()) {
        Some(IpAddr::V4(ip)) => Ok(ip),
        Some(IpAddr::V6(_)) => Err(failed(agent, "a start by multicast needs IPv4".to_owned())),
        None => Err(failed(
            agent,
            "it is reached by others, and datagrams to a group are not".to_owned(),
        )),
    }
}

fn failed(agent: &TrialAgent<'_>, words: String) -> Reason {
    Reason::Host {
        host: agent.host().clone(),
        failure: HostFailure::Refused,
        words,
    }
}
