//! The cables: devices, addresses and filters of a lab.
//!
//! ```text
//!             host                          switch namespace (this process)
//!   eth0 10.77.0.n ── rate ──────────── rate ── portN ── br0
//!   eth0 10.77.0.n ── rate ── wireN [relay] innerN ── rate ── portN ── br0   delayed or lossy
//!   ctl0 10.78.0.n ─────────────────────────────── ctlN ── brctl 10.78.0.254
//! ```
//!
//! The rate of a link is enforced where frames leave: at the host's `eth0` towards the switch,
//! and at the switch's port towards the host. The control network has no limits, so that what
//! is said about a measurement does not disturb it.
//!
//! # Offloads, and what was measured
//!
//! On links up to 2.5 Gbit/s the switch's end has TSO off, and `eth0` has GRO on: only so does
//! veth pass frames through NAPI and GRO (`veth_skb_is_eligible_for_gro`), as a network card
//! does. Without, every frame is handed to TCP by itself.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

use crate::error::{LabError, device};
use crate::keeper::Kept;
use crate::relay::{Relay, RelayConfig};
use crate::shape::{is_framed, shape};
use crate::spec::{HostSpec, LinkSpec};
use crate::sys::ethtool::{Feature, OnOff, set_feature};
use crate::sys::namespace::{network_of, run_in_network};
use crate::sys::netlink::{End, Netlink, Pair};
use crate::sys::packet::{FRAME_PREFIX_BYTES, PacketSocket};

/// The switch of the data network.
const DATA_SWITCH: &str = "br0";
/// The switch of the control network.
const CONTROL_SWITCH: &str = "brctl";
/// A host's device on the data network.
pub const DATA_DEVICE: &str = "eth0";
/// A host's device on the control network.
pub const CONTROL_DEVICE: &str = "ctl0";
/// Length of the network's part of every IPv4 address.
const PREFIX: u8 = 24;
/// Length of the network's part of every IPv6 address.
const PREFIX_V6: u8 = 64;
/// The last byte of this process's address on the control network.
const CONTROLLER_NUMBER: u8 = 254;
/// MTU of the control network.
const CONTROL_MTU_BYTES: u32 = 1500;
/// Longest superframe with its prefix: 64 KiB and headers.
const SUPERFRAME_BYTES_MAX: usize = (64 << 10) + 512;
/// Most bytes in flight on a delayed link without a rate: 50 ms at 10 Gbit/s.
const UNLIMITED_HELD_BYTES: usize = 64 << 20;
/// Room beyond rate × delay: how late a relay's thread may be woken.
const RELAY_LATE_NS: f64 = 20e6;
/// Room beyond rate × delay at the least.
const RELAY_ROOM_BYTES_MIN: f64 = 262_144.0;

/// Returns the address of host `number` (from 1) on the data network.
pub(crate) fn data_address(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 77, 0, number).into()
}

/// Returns the IPv6 address of host `number` on the data network.
pub(crate) fn data_address_v6(number: u8) -> IpAddr {
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(number)).into()
}

/// Returns the address of host `number` on the control network.
pub(crate) fn control_address(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 78, 0, number).into()
}

/// Returns this process's address on the control network.
pub(crate) fn controller_address() -> IpAddr {
    control_address(CONTROLLER_NUMBER)
}

/// The cables of a lab that is up; dropping it removes them.
#[derive(Debug, Default)]
pub(crate) struct Network {
    relays: Vec<Relay>,
    devices: Vec<String>,
    degraded: Vec<String>,
}

/// One host while its cables are laid.
struct Site<'a> {
    number: u8,
    spec: &'a HostSpec,
    namespace: OwnedFd,
}

impl Network {
    /// Lays the cables between the switch and `hosts`, in the order of their addresses.
    pub(crate) fn lay(hosts: &[HostSpec], inits: &[Kept]) -> Result<Self, LabError> {
        assert_eq!(hosts.len(), inits.len(), "one first process for each host");
        let mut network = Self::default();
        let mut netlink = Netlink::open().map_err(device("open rtnetlink".to_owned()))?;
        network.quiet_switch();
        network.add_switch(&mut netlink, DATA_SWITCH)?;
        let control = network.add_switch(&mut netlink, CONTROL_SWITCH)?;
        netlink
            .add_address(control, controller_address(), PREFIX)
            .map_err(device(format!("give {CONTROL_SWITCH} its address")))?;
        for (index, (spec, kept)) in hosts.iter().zip(inits).enumerate() {
            let namespace = network_of(kept.init.pid)
                .map_err(device(format!("open the network of host `{}`", spec.name)))?;
            let site = Site {
                number: (index + 1) as u8,
                spec,
                namespace,
            };
            network.join(&mut netlink, &site)?;
        }
        Ok(network)
    }

    /// Returns the relays of the links that delay or lose.
    pub(crate) fn relays(&self) -> &[Relay] {
        &self.relays
    }

    /// Returns what this kernel refused and the lab does without.
    pub(crate) fn degraded(&self) -> &[String] {
        &self.degraded
    }

    /// Removes the cables; hosts that are gone took theirs with them.
    pub(crate) fn remove(&mut self) -> Result<(), LabError> {
        self.relays.clear();
        let mut netlink = Netlink::open().map_err(device("open rtnetlink".to_owned()))?;
        for name in self.devices.drain(..).rev() {
            let Ok(index) = netlink.index_of(&name) else {
                continue;
            };
            match netlink.remove(index) {
                Err(error) if error.raw_os_error() != Some(libc::ENODEV) => {
                    return Err(device(format!("remove {name}"))(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Keeps the switch's own devices from talking IPv6 on the data network.
    fn quiet_switch(&mut self) {
        for scope in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
            self.write_setting("the switch", &path, "1");
        }
    }

    fn add_switch(&mut self, netlink: &mut Netlink, name: &str) -> Result<u32, LabError> {
        netlink
            .add_bridge(name)
            .map_err(device(format!("add switch {name}")))?;
        self.devices.push(name.to_owned());
        turn_on(netlink, name)
    }

    /// Joins one host to both networks.
    fn join(&mut self, netlink: &mut Netlink, site: &Site<'_>) -> Result<(), LabError> {
        let settings = self.settle_host(site)?;
        self.degraded.extend(settings);
        self.join_control(netlink, site)?;
        self.join_data(netlink, site)?;
        let name = &site.spec.name;
        run_in_network(site.namespace.as_fd(), || configure_host(site))
            .map_err(device(format!("enter host `{name}`")))?
    }

    /// Sets what a lab host's network stack does differently: it forgets earlier connections,
    /// and uses IPv6 addresses at once.
    fn settle_host(&self, site: &Site<'_>) -> Result<Vec<String>, LabError> {
        let settings = [
            ("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"),
            ("/proc/sys/net/ipv6/conf/default/accept_dad", "0"),
            ("/proc/sys/net/ipv6/conf/default/router_solicitations", "0"),
        ];
        let name = &site.spec.name;
        run_in_network(site.namespace.as_fd(), || {
            let mut network = Network::default();
            for (path, value) in settings {
                network.write_setting(&format!("host `{name}`"), path, value);
            }
            std::mem::take(&mut network.degraded)
        })
        .map_err(device(format!("enter host `{name}`")))
    }

    fn write_setting(&mut self, place: &str, path: &str, value: &str) {
        if let Err(error) = fs::write(path, value) {
            self.degraded
                .push(format!("{place}: {path} = {value} was refused ({error})"));
        }
    }

    fn join_control(&mut self, netlink: &mut Netlink, site: &Site<'_>) -> Result<(), LabError> {
        let port = format!("ctl{}", site.number);
        let link = LinkSpec {
            mtu_bytes: CONTROL_MTU_BYTES,
            ..LinkSpec::default()
        };
        self.add_cable(netlink, &port, Far::Host(site, CONTROL_DEVICE), &link)?;
        plug(netlink, &port, CONTROL_SWITCH)
    }

    fn join_data(&mut self, netlink: &mut Netlink, site: &Site<'_>) -> Result<(), LabError> {
        let link = &site.spec.link;
        let port = format!("port{}", site.number);
        if link.is_relayed() {
            let (wire, inner) = (
                format!("wire{}", site.number),
                format!("inner{}", site.number),
            );
            self.add_cable(netlink, &wire, Far::Host(site, DATA_DEVICE), link)?;
            self.add_cable(netlink, &port, Far::Here(&inner), link)?;
            tune_end(&wire, link)?;
            let near = open_frames(netlink, &wire)?;
            let far = open_frames(netlink, &inner)?;
            self.relays.push(Relay::start(relay_of(site, near, far))?);
        } else {
            self.add_cable(netlink, &port, Far::Host(site, DATA_DEVICE), link)?;
        }
        tune_end(&port, link)?;
        limit(netlink, &port, link)?;
        plug(netlink, &port, DATA_SWITCH)
    }

    fn add_cable(
        &mut self,
        netlink: &mut Netlink,
        name: &str,
        far: Far<'_>,
        link: &LinkSpec,
    ) -> Result<(), LabError> {
        let near = End {
            name,
            network: None,
        };
        let pair = Pair {
            ends: [near, far.end()],
            mtu_bytes: link.mtu_bytes,
            queues: link.queues,
        };
        netlink
            .add_pair(&pair)
            .map_err(device(format!("add cable {name}")))?;
        self.devices.push(name.to_owned());
        turn_on(netlink, name).map(drop)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Nobody is left to tell; the devices end with this process in any case.
        let _removed = self.remove();
    }
}

/// Where the other end of a cable is.
#[derive(Clone, Copy)]
enum Far<'a> {
    Host(&'a Site<'a>, &'a str),
    Here(&'a str),
}

impl<'a> Far<'a> {
    fn end(self) -> End<'a> {
        match self {
            Far::Host(site, name) => End {
                name,
                network: Some(site.namespace.as_fd()),
            },
            Far::Here(name) => End {
                name,
                network: None,
            },
        }
    }
}

/// Configures the devices of a host; runs inside its network namespace.
fn configure_host(site: &Site<'_>) -> Result<(), LabError> {
    let mut netlink = Netlink::open().map_err(device("open rtnetlink".to_owned()))?;
    let link = &site.spec.link;
    turn_on(&mut netlink, "lo")?;
    let merging = set_feature(DATA_DEVICE, Feature::Gro, OnOff::On);
    merging.map_err(device(format!("turn on gro of {DATA_DEVICE}")))?;
    limit(&mut netlink, DATA_DEVICE, link)?;
    let data = turn_on(&mut netlink, DATA_DEVICE)?;
    let control = turn_on(&mut netlink, CONTROL_DEVICE)?;
    let addresses = [
        (data, data_address(site.number), PREFIX),
        (control, control_address(site.number), PREFIX),
    ];
    for (index, address, prefix) in addresses {
        netlink
            .add_address(index, address, prefix)
            .map_err(device(format!("give host `{}` {address}", site.spec.name)))?;
    }
    // A machine without IPv6 has a lab without IPv6.
    let _v6 = netlink.add_address(data, data_address_v6(site.number), PREFIX_V6);
    Ok(())
}

/// Makes the far end of `name` take the path through NAPI and GRO, where the rate allows it.
fn tune_end(name: &str, link: &LinkSpec) -> Result<(), LabError> {
    if !(is_framed(link.rate) || link.loss > 0.0) {
        return Ok(());
    }
    set_feature(name, Feature::Tso, OnOff::Off).map_err(device(format!("turn off tso of {name}")))
}

fn limit(netlink: &mut Netlink, name: &str, link: &LinkSpec) -> Result<(), LabError> {
    let Some(rate) = link.rate else {
        return Ok(());
    };
    let index = index_of(netlink, name)?;
    netlink
        .add_filter(index, &shape(rate, link.mtu_bytes))
        .map_err(device(format!("limit {name} to {rate}")))
}

fn plug(netlink: &mut Netlink, port: &str, switch: &str) -> Result<(), LabError> {
    let (port_index, switch_index) = (index_of(netlink, port)?, index_of(netlink, switch)?);
    netlink
        .set_port(port_index, switch_index)
        .map_err(device(format!("plug {port} into {switch}")))
}

fn turn_on(netlink: &mut Netlink, name: &str) -> Result<u32, LabError> {
    let index = index_of(netlink, name)?;
    netlink
        .set_up(index)
        .map_err(device(format!("turn on {name}")))?;
    Ok(index)
}

fn index_of(netlink: &mut Netlink, name: &str) -> Result<u32, LabError> {
    netlink
        .index_of(name)
        .map_err(device(format!("find {name}")))
}

fn open_frames(netlink: &mut Netlink, name: &str) -> Result<PacketSocket, LabError> {
    let index = turn_on(netlink, name)?;
    let open = || -> io::Result<PacketSocket> { PacketSocket::open(index) };
    open().map_err(device(format!("open the frames of {name}")))
}

fn relay_of(site: &Site<'_>, near: PacketSocket, far: PacketSocket) -> RelayConfig {
    let link = &site.spec.link;
    let frame_bytes_max = if is_framed(link.rate) {
        // Ethernet header and a VLAN tag.
        FRAME_PREFIX_BYTES + link.mtu_bytes as usize + 18
    } else {
        FRAME_PREFIX_BYTES + SUPERFRAME_BYTES_MAX
    };
    RelayConfig {
        host: site.spec.name.clone(),
        delay: link.delay,
        loss: link.loss,
        // The same lab loses the same frames each time.
        seed: u64::from(site.number),
        frame_bytes_max,
        held_bytes_max: held_bytes_max(link),
        near,
        far,
    }
}

/// Returns the bytes that one direction may hold: rate × delay and some room.
fn held_bytes_max(link: &LinkSpec) -> usize {
    link.rate.map_or(UNLIMITED_HELD_BYTES, |rate| {
        let bytes_per_ns = rate.0 / 8e9;
        let room = (bytes_per_ns * RELAY_LATE_NS).max(RELAY_ROOM_BYTES_MIN);
        // Each frame carries its prefix with it: 12 % for the shortest, 1 % for full-size ones.
        (bytes_per_ns * link.delay.0 as f64 * 1.12 + room) as usize
    })
}
