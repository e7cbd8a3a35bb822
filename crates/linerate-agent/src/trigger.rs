//! One datagram that starts the trials of many hosts.
//!
//! Each host joins a group and waits. The datagram says in how long flows begin; each host counts from the instant
//! at which the kernel took it up. Nothing of it hangs on what is known of the clocks of the hosts.
//!
//! ```text
//! octets 0..8   "linerate"
//! octets 8..16  time to the start, ns, big-endian
//! octets 16..48 HMAC-SHA256(key, octets 0..16)
//! ```
//!
//! The key is made for one start and comes over the control connection, so nobody else starts anything, and an agent
//! answers no datagram.

use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use linerate_engine::now_ns;
use linerate_model::fleet::Multicast;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use ring::hmac;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};

/// What a datagram begins with.
const MAGIC: &[u8; 8] = b"linerate";
const SIGNED_BYTES: usize = MAGIC.len() + size_of::<u64>();
/// Bytes of a datagram.
const DATAGRAM_BYTES: usize = SIGNED_BYTES + 32;
/// Time between two looks whether the trial is over.
const OVER_LOOK: Duration = Duration::from_millis(50);

/// How often two clocks are read together.
const CLOCK_READS: usize = 4;

/// Where the datagram of a start comes, and what shows that it is the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The group and the port.
    pub group: SocketAddrV4,
    /// The host's own address in the network where the group is.
    pub interface: Ipv4Addr,
    /// The key of this start.
    pub key: TriggerKey,
}

/// What whoever starts a trial knows, and its hosts.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriggerKey([u8; 32]);

impl std::fmt::Debug for TriggerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TriggerKey").finish_non_exhaustive()
    }
}

impl TriggerKey {
    /// Returns the key of these bytes, which nobody can guess.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }

    /// Returns the datagram that says that the start is in `lead_ns`.
    pub fn datagram(&self, lead_ns: u64) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(DATAGRAM_BYTES);
        datagram.extend_from_slice(MAGIC);
        datagram.extend_from_slice(&lead_ns.to_be_bytes());
        let tag = hmac::sign(&self.hmac(), &datagram);
        datagram.extend_from_slice(tag.as_ref());
        datagram
    }

    /// Returns what a datagram says, if it is one of this start.
    fn lead_ns(&self, datagram: &[u8]) -> Option<u64> {
        let (signed, tag) = datagram.split_at_checked(SIGNED_BYTES)?;
        let lead = signed.strip_prefix(MAGIC)?;
        hmac::verify(&self.hmac(), signed, tag).ok()?;
        Some(u64::from_be_bytes(lead.try_into().ok()?))
    }
}

/// Why a host cannot wait for the datagram.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// The group may be anybody's.
    #[error("{0} is no group of 239.0.0.0/8")]
    Scope(Ipv4Addr),
    /// Its network has no such group.
    #[error("cannot join {group} at {interface}")]
    Network {
        group: SocketAddrV4,
        interface: Ipv4Addr,
        source: io::Error,
    },
}

/// A host that waits for the datagram.
pub(crate) struct Armed {
    socket: UdpSocket,
    key: TriggerKey,
}

impl Armed {
    /// Joins the group.
    pub(crate) fn join(trigger: &Trigger) -> Result<Self, JoinError> {
        if !Multicast::is_scoped(*trigger.group.ip()) {
            return Err(JoinError::Scope(*trigger.group.ip()));
        }
        Self::join_scoped(trigger).map_err(|source| JoinError::Network {
            group: trigger.group,
            interface: trigger.interface,
            source,
        })
    }

    fn join_scoped(trigger: &Trigger) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        // Each trial of a host has its own, and each gets a copy.
        socket.set_reuse_address(true)?;
        socket.set_multicast_all_v4(false)?;
        socket.bind(&SocketAddr::from(trigger.group).into())?;
        socket.join_multicast_v4(trigger.group.ip(), &trigger.interface)?;
        socket.set_read_timeout(Some(OVER_LOOK))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        Ok(Self {
            socket: socket.into(),
            key: trigger.key,
        })
    }

    /// Returns what is said where none came.
    pub(crate) fn unheard(trigger: &Trigger) -> String {
        let Trigger {
            group, interface, ..
        } = trigger;
        format!(
            "no datagram of the start came to {group} at {interface}: does its network forward multicast?"
        )
    }

    /// Waits for the datagram until `until_ns`, as long as `is_wanted`; returns the instant of the start on this host's clock.
    pub(crate) fn wait(&self, until_ns: u64, is_wanted: impl Fn() -> bool) -> Option<u64> {
        while is_wanted() && now_ns() < until_ns {
            let mut datagram = [0; DATAGRAM_BYTES + 1];
            let Ok((length, taken_up_ns)) = self.receive(&mut datagram) else {
                // The timeout, or a signal.
                continue;
            };
            if let Some(lead_ns) = self.key.lead_ns(&datagram[..length]) {
                return Some(taken_up_ns.saturating_add(lead_ns));
            }
        }
        None
    }

    /// Returns the length of the next datagram, and when the kernel took it up.
    fn receive(&self, datagram: &mut [u8]) -> nix::Result<(usize, u64)> {
        let mut room = nix::cmsg_space!(TimeSpec);
        let mut parts = [io::IoSliceMut::new(datagram)];
        let socket = self.socket.as_raw_fd();
        let received = recvmsg::<()>(socket, &mut parts, Some(&mut room), MsgFlags::empty())?;
        let taken_up = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(at) => Some(at),
            _ => None,
        });
        // Two clocks are read as one where nothing comes between: of several times the shortest counts.
        let read = || {
            let before_ns = now_ns();
            let wall = clock_gettime(ClockId::CLOCK_REALTIME)?;
            Ok((now_ns() - before_ns, before_ns, wall))
        };
        let reads: Vec<_> = (0..CLOCK_READS)
            .map(|_| read())
            .collect::<nix::Result<_>>()?;
        let shortest = reads.into_iter().min_by_key(|(took_ns, ..)| *took_ns);
        let (_, at_ns, wall) = shortest.ok_or(nix::errno::Errno::EINVAL)?;
        let since = taken_up.map(|at| Duration::from(wall).saturating_sub(at.into()));
        let ago_ns = since.map_or(0, |since| since.as_nanos() as u64);
        Ok((received.bytes, at_ns.saturating_sub(ago_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: TriggerKey = TriggerKey([7; 32]);

    #[test]
    fn only_the_datagram_of_this_start_starts() {
        let datagram = KEY.datagram(5_000_000);
        assert_eq!(KEY.lead_ns(&datagram), Some(5_000_000));
        for at in 0..datagram.len() {
            let mut other = datagram.clone();
            other[at] ^= 1;
            assert_eq!(KEY.lead_ns(&other), None, "octet {at}");
            assert_eq!(KEY.lead_ns(&datagram[..at]), None);
        }
        let longer = [&datagram[..], &[0]].concat();
        assert_eq!(KEY.lead_ns(&longer), None);
        assert_eq!(TriggerKey([8; 32]).lead_ns(&datagram), None);
        assert!(!format!("{KEY:?}").contains('7'));
    }

    #[test]
    fn hosts_count_from_when_the_kernel_took_the_datagram_up() {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 76, 82), 0);
        let port = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let trigger = Trigger {
            group: SocketAddrV4::new(*group.ip(), port),
            interface: Ipv4Addr::LOCALHOST,
            key: KEY,
        };
        let hosts = [(); 2].map(|()| Armed::join(&trigger).unwrap());
        // The kernel begins to stamp by a work of its own (net_enable_timestamp in net/core/dev.c).
        std::thread::sleep(Duration::from_millis(200));
        let sender = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        sender.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        let to = SocketAddr::from(trigger.group).into();
        let (before, lead) = (now_ns(), 3_600_000_000_000);
        sender.send_to(b"linerate but no start", &to).unwrap();
        sender.send_to(&KEY.datagram(lead), &to).unwrap();
        let sent = now_ns();
        // Who looks late counts from the same instant.
        let late = Duration::from_millis(500);
        for (host, wait) in hosts.iter().zip([Duration::ZERO, late]) {
            std::thread::sleep(wait);
            let start = host.wait(now_ns() + 5_000_000_000, || true).unwrap();
            // The two clocks of the kernel are read one after the other, and a machine may stand still between them.
            let most = late.as_nanos() as u64 / 2;
            let (first, last) = (before + lead - most, sent + lead + most);
            assert!(
                (first..last).contains(&start),
                "{}",
                start as i64 - sent as i64
            );
        }
        assert_eq!(hosts[0].wait(now_ns() + 5_000_000_000, || false), None);
        assert_eq!(hosts[0].wait(now_ns(), || true), None);
    }
}
