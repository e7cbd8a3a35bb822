//! The cables: devices, addresses and filters of a lab.
//!
//! ```text
//!             host                          switch namespace (this process)
//!   eth0 10.77.0.n ── rate ──────────── rate ── portN ── br0
//!   eth0 10.77.0.n ── rate ── wireN [relay] innerN ── rate ── portN ── br0   that does more than limit
//!   eth0 10.77.0.n ─────── homeN ── modemN ── lineN ── rate ── portN ── br0   with a queue of its own upwards
//!   ctl0 10.78.0.n ─────────────────────────────── ctlN ── brctl 10.78.0.254
//! ```
//!
//! The rate of a link is enforced where frames leave: at the host's `eth0` towards the switch,
//! and at the switch's port towards the host. TCP keeps little of a flow in the queue of its own host, so
//! a queue that fills on the way up is that of a box between the two, as of an access line: a switch of two ports
//! that passes all at once downwards, and before the relay where there is one. The control network has no limits, so that what
//! is said about a measurement does not disturb it.
//!
//! # Offloads, and what was measured
//!
//! On links up to 2.5 Gbit/s the switch's end has TSO off, and `eth0` has GRO on: only so does
//! veth pass frames through NAPI and GRO (`veth_skb_is_eligible_for_gro`), as a network card
//! does. Bulk TCP (cubic, MTU 1500) over 1 Gbit/s on two virtual CPUs, three interleaved runs
//! each on a machine that was busy otherwise: 7.7, 7.7 and 8.3 data segments per ACK and 478,
//! 510 and 458 ticks of softirq with NAPI; 6.4, 6.0 and 6.2 segments and 449, 509 and 465 ticks
//! without. It costs nothing, and receivers see merged segments as they do on hardware.
//!
//! # Queues
//!
//! A host's `eth0` has as many receive queues as were asked for and sends by one queue, of as many that an experiment can
//! turn on (`tx_queues`); the switch's end has as many of either kind. A frame keeps the number of the transmit queue that it left its
//! host by, and the switch would take that plus one for the receive queue it came by, so that with
//! several at the host half of all flows went to queue 0 of four and none to queue 3. With one, the
//! switch's end chooses by the hash of the flow, as a card does.
//!
//! Each host forgets earlier connections (`net.ipv4.tcp_no_metrics_save` = 1 in its namespace),
//! so that a measurement does not inherit the window of the one before.

mod address;
mod device;
mod held;

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{LabError, at_step};
use crate::keeper::Kept;
use crate::relay::Relay;
use crate::shape::{flow_queue_bytes, is_framed, shape_of};
use crate::spec::{HostSpec, LinkSpec, Way, carried_bytes};
use crate::sys::ethtool::{GRO_ON, set_channels, set_feature};
use crate::sys::namespace::{network_of, run_in_network};
use crate::sys::netlink::{Netlink, Pair, VethEnd};
use crate::sys::xdp::pass_program;

pub(crate) use address::{
    control_address, controller_address, data_address, data_address_v6, names,
};

use address::{PREFIX, PREFIX_V6};
use device::{limit, limit_host, number_queues, open_frames, plug, tell_rate, tune_end, turn_on};
use held::relay_of;

/// The switch of the data network.
const DATA_SWITCH: &str = "br0";
/// The switch of the control network.
const CONTROL_SWITCH: &str = "brctl";
/// A host's device on the data network.
pub const DATA_DEVICE: &str = "eth0";
/// A host's device on the control network.
pub const CONTROL_DEVICE: &str = "ctl0";
/// MTU of the control network.
const CONTROL_MTU_BYTES: u32 = 1500;
/// The first version of the kernel in which a full receive queue of a veth stops the sender's.
const QUEUES_STOP_SINCE: (u32, u32) = (6, 16);

/// The cables of a lab that is up; dropping it removes them.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// The relays of the links that do more than limit.
    pub(crate) relays: Vec<Relay>,
    devices: Vec<String>,
    /// The largest packet that the switch's ends take.
    carried_bytes: u32,
    /// What this kernel refused and the lab does without.
    pub(crate) degraded: Vec<String>,
}

/// One host while its cables are laid.
struct Site<'a> {
    number: u8,
    spec: &'a HostSpec,
    namespace: OwnedFd,
    /// What numbers the queues of its device, where it has several.
    program: Option<BorrowedFd<'a>>,
}

impl Site<'_> {
    /// Returns the end of a cable that is device `name` of the host.
    fn end<'a>(&'a self, name: &'a str, link: &LinkSpec) -> VethEnd<'a> {
        VethEnd {
            network: Some(self.namespace.as_fd()),
            queues: link.queues,
            ..VethEnd::here(name)
        }
    }
}

impl Network {
    /// Lays the cables between the switch and `hosts`, in the order of their addresses.
    pub(crate) fn lay(hosts: &[HostSpec], inits: &[Kept]) -> Result<Self, LabError> {
        assert_eq!(hosts.len(), inits.len(), "one first process for each host");
        let mut network = Self::default();
        network.carried_bytes = carried_bytes(hosts);
        let mut netlink = Netlink::open().map_err(at_step("open rtnetlink".to_owned()))?;
        let (hosts, program) = network.with_possible_queues(hosts);
        network.quiet_switch();
        network.add_switch(&mut netlink, DATA_SWITCH)?;
        let control = network.add_switch(&mut netlink, CONTROL_SWITCH)?;
        netlink
            .add_address(control, controller_address(), PREFIX)
            .map_err(at_step(format!("give {CONTROL_SWITCH} its address")))?;
        for (index, (spec, kept)) in hosts.iter().zip(inits).enumerate() {
            let namespace = network_of(kept.init.pid)
                .map_err(at_step(format!("open the network of host `{}`", spec.name)))?;
            let site = Site {
                number: (index + 1) as u8,
                spec,
                namespace,
                program: program.as_ref().map(AsFd::as_fd),
            };
            network.join(&mut netlink, &site)?;
        }
        Ok(network)
    }

    /// Removes the cables; hosts that are gone took theirs with them.
    pub(crate) fn remove(&mut self) -> Result<(), LabError> {
        self.relays.clear();
        let mut netlink = Netlink::open().map_err(at_step("open rtnetlink".to_owned()))?;
        for name in self.devices.drain(..).rev() {
            let Ok(index) = netlink.index_of(&name) else {
                continue;
            };
            match netlink.remove(index) {
                Err(error) if error.raw_os_error() != Some(libc::ENODEV) => {
                    return Err(at_step(format!("remove {name}"))(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the hosts with as many queues as this kernel keeps going, and what numbers them; see
    /// [`number_queues`].
    fn with_possible_queues(&mut self, hosts: &[HostSpec]) -> (Vec<HostSpec>, Option<OwnedFd>) {
        let mut hosts = hosts.to_vec();
        if hosts.iter().all(|host| host.link.queues == 1) {
            return (hosts, None);
        }
        match pass_program() {
            Ok(program) => (hosts, Some(program)),
            // Kernels before that do not stop queues.
            Err(_) if kernel() < QUEUES_STOP_SINCE => (hosts, None),
            Err(error) => {
                for host in &mut hosts {
                    host.link.queues = 1;
                }
                self.degraded.push(format!(
                    "one queue for every host: this kernel stops further queues of veth for good \
                     unless an XDP program numbers them, and bpf(2) was refused ({error})"
                ));
                (hosts, None)
            }
        }
    }

    /// Keeps the switch's own devices from talking IPv6 on the data network.
    fn quiet_switch(&mut self) {
        for scope in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
            self.degraded.extend(refused("the switch", &path, "1"));
        }
    }

    fn add_switch(&mut self, netlink: &mut Netlink, name: &str) -> Result<u32, LabError> {
        netlink
            .add_bridge(name)
            .map_err(at_step(format!("add switch {name}")))?;
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
        let configured = run_in_network(site.namespace.as_fd(), || configure_host(site));
        let without = configured.map_err(at_step(format!("enter host `{name}`")))??;
        self.degraded.extend(without);
        Ok(())
    }

    /// Sets what a lab host's network stack does differently: it forgets earlier connections, uses IPv6
    /// addresses at once, and lets no flow have more of its device's queue than another.
    fn settle_host(&self, site: &Site<'_>) -> Result<Vec<String>, LabError> {
        let link = &site.spec.link;
        // Before a modem nothing waits in the host.
        let rate = link.rate_of(Way::Up).filter(|_| link.up.queue.is_none());
        let turn = rate
            .filter(|_| is_framed(rate))
            .map(|rate| flow_queue_bytes(rate, link.mtu_bytes).to_string());
        let mut settings = vec![
            ("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"),
            ("/proc/sys/net/ipv6/conf/default/accept_dad", "0"),
            ("/proc/sys/net/ipv6/conf/default/router_solicitations", "0"),
        ];
        settings.extend(
            turn.iter()
                .map(|bytes| ("/proc/sys/net/ipv4/tcp_limit_output_bytes", bytes.as_str())),
        );
        let name = &site.spec.name;
        let host = format!("host `{name}`");
        run_in_network(site.namespace.as_fd(), || {
            let all = settings.into_iter();
            all.filter_map(|(path, value)| refused(&host, path, value))
                .collect()
        })
        .map_err(at_step(format!("enter {host}")))
    }

    fn join_control(&mut self, netlink: &mut Netlink, site: &Site<'_>) -> Result<(), LabError> {
        let port = format!("ctl{}", site.number);
        let link = LinkSpec::default();
        let mtu_bytes = [CONTROL_MTU_BYTES; 2];
        self.add_cable(netlink, &port, site.end(CONTROL_DEVICE, &link), mtu_bytes)?;
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
            self.add_line(netlink, &wire, site)?;
            let mtu_bytes = [self.carried_bytes; 2];
            self.add_cable(netlink, &port, VethEnd::here(&inner), mtu_bytes)?;
            tune_end(&wire, link)?;
            let near = open_frames(netlink, &wire)?;
            let far = open_frames(netlink, &inner)?;
            self.relays.push(Relay::start(relay_of(site, near, far))?);
        } else {
            self.add_line(netlink, &port, site)?;
        }
        if let Some(program) = site.program.filter(|_| link.queues > 1) {
            let near = match (link.is_relayed(), link.up.queue) {
                (_, Some(_)) => format!("home{}", site.number),
                (true, None) => format!("wire{}", site.number),
                (false, None) => port.clone(),
            };
            let near = turn_on(netlink, &near)?;
            number_queues(netlink, near, program)?;
        }
        tune_end(&port, link)?;
        let shape = shape_of(link, Way::Down);
        limit(
            netlink,
            &port,
            shape.map(|it| it.taking(self.carried_bytes)),
        )?;
        plug(netlink, &port, DATA_SWITCH)
    }

    /// Lays the cable from device `name` of the switch to the host, by way of a modem where one is asked for.
    fn add_line(
        &mut self,
        netlink: &mut Netlink,
        name: &str,
        site: &Site<'_>,
    ) -> Result<(), LabError> {
        let link = &site.spec.link;
        let host = site.end(DATA_DEVICE, link);
        // The switch's end takes what a host may be told to send.
        let mtu_bytes = [self.carried_bytes, link.mtu_bytes];
        if link.up.queue.is_none() {
            return self.add_cable(netlink, name, host, mtu_bytes);
        }
        let of = |device: &str| format!("{device}{}", site.number);
        let (modem, home, line) = (of("modem"), of("home"), of("line"));
        self.add_switch(netlink, &modem)?;
        self.add_cable(netlink, &home, host, mtu_bytes)?;
        self.add_cable(netlink, name, VethEnd::here(&line), [self.carried_bytes; 2])?;
        turn_on(netlink, &line)?;
        tune_end(&home, link)?;
        limit(netlink, &line, shape_of(link, Way::Up))?;
        plug(netlink, &home, &modem)?;
        plug(netlink, &line, &modem)
    }

    fn add_cable(
        &mut self,
        netlink: &mut Netlink,
        name: &str,
        far: VethEnd<'_>,
        mtu_bytes: [u32; 2],
    ) -> Result<(), LabError> {
        let pair = Pair {
            ends: [VethEnd::here(name), far],
            mtu_bytes,
        };
        netlink
            .add_pair(&pair)
            .map_err(at_step(format!("add cable {name}")))?;
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

/// Writes a setting; says if it was refused.
fn refused(place: &str, path: &str, value: &str) -> Option<String> {
    let error = fs::write(path, value).err()?;
    Some(format!("{place}: {path} = {value} was refused ({error})"))
}

/// Returns the version of the kernel; that of the first where it cannot be read.
fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version(&release)
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|text| text.parse().ok());
    (next().unwrap_or(0), next().unwrap_or(0))
}

/// Configures the devices of a host, and returns what it has to do without; runs inside its network namespace.
fn configure_host(site: &Site<'_>) -> Result<Option<String>, LabError> {
    let mut netlink = Netlink::open().map_err(at_step("open rtnetlink".to_owned()))?;
    let link = &site.spec.link;
    turn_on(&mut netlink, "lo")?;
    let merging = set_feature(DATA_DEVICE, GRO_ON);
    merging.map_err(at_step(format!("turn on gro of {DATA_DEVICE}")))?;
    limit_host(&mut netlink, DATA_DEVICE, link)?;
    let data = turn_on(&mut netlink, DATA_DEVICE)?;
    tell_rate(&mut netlink, data, link)?;
    if let Some(program) = site.program.filter(|_| link.queues > 1) {
        number_queues(&mut netlink, data, program)?;
        let channels = set_channels(DATA_DEVICE, link.queues, 1);
        channels.map_err(at_step(format!("let {DATA_DEVICE} send by one queue")))?;
    }
    let control = turn_on(&mut netlink, CONTROL_DEVICE)?;
    let addresses = [
        (data, data_address(site.number), PREFIX),
        (control, control_address(site.number), PREFIX),
    ];
    for (index, address, prefix) in addresses {
        netlink
            .add_address(index, address, prefix)
            .map_err(at_step(format!("give host `{}` {address}", site.spec.name)))?;
    }
    // A machine without IPv6 has a lab without IPv6, and so have links of fewer than 1280 bytes.
    let v6 = netlink.add_address(data, data_address_v6(site.number), PREFIX_V6);
    let refused = |error| {
        let (name, mtu) = (&site.spec.name, link.mtu_bytes);
        format!("host `{name}` has no IPv6 with an MTU of {mtu} ({error})")
    };
    Ok(v6.err().map(refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_kernels_are_in_order() {
        let check = |release: &str, expected: (u32, u32)| {
            assert_eq!(version(release), expected, "{release}");
        };
        check("6.18.36\n", (6, 18));
        check("6.1.0-13-amd64\n", (6, 1));
        check("5.15", (5, 15));
        check("", (0, 0));
        assert!(version("6.9.1") < QUEUES_STOP_SINCE && version("6.16.0-rc1") >= QUEUES_STOP_SINCE);
    }
}
