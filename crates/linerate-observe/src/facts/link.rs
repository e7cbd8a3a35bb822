//! The network devices: what netlink, the driver and, where it is the same device, sysfs say.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linerate_model::host::{FactValue, LAB_LINK_ALIAS, LAB_LINK_UP};
use linerate_model::unit::Unit;

use super::nic::{self, count, known, said, switch};
use super::{Facts, Reading, number, pcie};
use crate::card::{Cards, Channels, Features, Mode};
use crate::link::{DEVICES_MAX, DeviceMessage, each_device};
use crate::observer::ObserveConfig;
use crate::sys::file::read_value;
use crate::sys::netlink::NetlinkSocket;

/// Kinds of device whose driver names a rate that nothing keeps (veth answers 10 Gbit/s).
const KINDS_WITHOUT_RATE: [&str; 9] = [
    "veth", "bridge", "tun", "dummy", "ifb", "macvtap", "macvlan", "ipvlan", "ipvtap",
];
/// Drivers of virtual cards, which name one for old programs' sake: 28 Gbit/s pass a vmxnet3 of 10.
/// e1000 is of cards of 2001 to 2005 and of those that hypervisors imitate to the number (VirtualBox).
const DRIVERS_WITHOUT_RATE: [&str; 4] = ["vmxnet3", "hv_netvsc", "virtio_net", "e1000"];
/// PCI vendors of other cards that hypervisors imitate (VMware, Red Hat), whose drivers serve real ones, too.
const VENDORS_WITHOUT_RATE: [&str; 2] = ["0x15ad", "0x1af4"];

/// A device as netlink describes it, with text in place of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Device {
    index: u32,
    name: String,
    loopback: bool,
    mtu_bytes: Option<u32>,
    address: Option<String>,
    qdisc: Option<String>,
    kind: Option<String>,
    /// The rate that a lab keeps it to, in bits per second.
    lab_bps: Option<u64>,
    /// That from the host, where it is another.
    lab_up_bps: Option<u64>,
    rx_queues_max: Option<u32>,
    tx_queues_max: Option<u32>,
}

pub(super) fn read(config: &ObserveConfig, facts: &mut Facts) {
    let devices = match devices_up() {
        Ok(devices) => devices,
        Err(error) => return facts.add("link", Err(format!("netlink link dump: {error}"))),
    };
    let mut cards = Cards::open();
    for device in &devices {
        add_device(facts, device);
        cards.begin();
        let (mode, channels) = (cards.mode(&device.name), cards.channels(&device.name));
        let folder = sysfs_of(device, &config.sys_root).map(|folder| folder.join("device"));
        let folder = folder.as_deref();
        let vendor = folder.ok().map(|folder| folder.join("subsystem_vendor"));
        let vendor = vendor.and_then(|file| read_value(&file).ok());
        add_driver(
            facts,
            device,
            &mut cards,
            vendor.as_deref(),
            &mode,
            &channels,
        );
        add_pcie(facts, device, folder);
        if device.is_card() {
            let prefix = format!("link.{}", device.name);
            nic::read(facts, &prefix, &device.name, &mut cards, &mode, &channels);
            pcie::add_path(facts, &prefix, folder);
        }
    }
}

/// Asks for every device that is up.
fn devices_up() -> io::Result<Vec<Device>> {
    let mut devices = Vec::new();
    each_device(&mut NetlinkSocket::route()?, |device| {
        if device.is_up() && devices.len() < DEVICES_MAX {
            devices.push(Device::from(&device));
        }
    })?;
    Ok(devices)
}

impl Device {
    /// Returns whether there is hardware below it, or what a hypervisor passes off as such.
    fn is_card(&self) -> bool {
        !self.loopback && self.kind.is_none()
    }
}

impl From<&DeviceMessage<'_>> for Device {
    fn from(message: &DeviceMessage<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let [lab_bps, lab_up_bps] = lab_rates(&message.alias.map(text).unwrap_or_default());
        Self {
            index: message.index,
            name: message.name_text(),
            loopback: message.is_loopback(),
            mtu_bytes: message.mtu_bytes,
            address: message.address.map(mac_text),
            qdisc: message.qdisc.map(text),
            kind: message.kind.map(text),
            lab_bps,
            lab_up_bps,
            rx_queues_max: message.rx_queues_max,
            tx_queues_max: message.tx_queues_max,
        }
    }
}

/// Reads the rates that a lab wrote on a device: towards the host, and from it where that is another.
fn lab_rates(alias: &str) -> [Option<u64>; 2] {
    let Some(rates) = alias.strip_prefix(LAB_LINK_ALIAS) else {
        return [None; 2];
    };
    let (rate, up) = rates.split_once(LAB_LINK_UP).unwrap_or((rates, ""));
    [rate, up].map(|rate| rate.parse().ok().filter(|rate| *rate > 0))
}

fn mac_text(address: &[u8]) -> String {
    let bytes: Vec<_> = address.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// Adds what netlink says.
fn add_device(facts: &mut Facts, device: &Device) {
    let unsaid = || "netlink does not say".to_owned();
    let text = |value: &Option<String>| value.clone().map(FactValue::Text).ok_or_else(unsaid);
    let mut add = |fact: &str, reading| facts.add(fact_name(device, fact), reading);
    add(
        "mtu_bytes",
        device
            .mtu_bytes
            .map(|mtu| FactValue::Number(f64::from(mtu), Unit::Bytes))
            .ok_or_else(unsaid),
    );
    add("address", text(&device.address));
    add("qdisc", text(&device.qdisc));
    let kind = match &device.kind {
        Some(kind) => Ok(FactValue::Text(kind.clone())),
        None if device.loopback => Ok(FactValue::Text("loopback".to_owned())),
        None => Err("netlink names a kind for virtual devices only".to_owned()),
    };
    add("kind", kind);
}

/// Adds what the driver says of any device.
fn add_driver(
    facts: &mut Facts,
    device: &Device,
    cards: &mut Cards,
    vendor: Option<&str>,
    mode: &Result<Mode, String>,
    channels: &Result<Channels, String>,
) {
    let name = device.name.as_str();
    let mut add = |fact: &str, reading| facts.add(fact_name(device, fact), reading);
    let driver = cards.ioctl();
    let driver = driver.and_then(|ethtool| said(ethtool.driver_info(name)));
    let driver = driver.map(|[driver, ..]| driver);
    let has_rate = has_rate(driver.as_deref().ok(), vendor);
    add("driver", driver.map(FactValue::Text));
    let features = cards.features(name);
    let is_on = |of: fn(&Features) -> Option<bool>| known(&features, of).and_then(switch);
    add("tso", is_on(|features| Some(features.tso)));
    add("gso", is_on(|features| Some(features.gso)));
    add("gro", is_on(|features| Some(features.gro)));
    let speed = mode.as_ref().map(|mode| mode.speed_mbps);
    let speed = speed.map_err(Clone::clone);
    add("speed_bps", believed_speed(device, has_rate.and(speed)));
    if let Some(bps) = device.lab_up_bps {
        let rate = FactValue::Number(bps as f64, Unit::BitsPerSecond);
        add("up_speed_bps", Ok(rate));
    }
    let (rx, tx) = channels.as_ref().ok().map(|all| (all.rx, all.tx)).unzip();
    add("rx_queues", queue_count(rx, device.rx_queues_max));
    add("tx_queues", queue_count(tx, device.tx_queues_max));
}

/// Says why nothing keeps the rate that `driver` names of a card whose PCI subsystem has that vendor, where it is so.
fn has_rate(driver: Option<&str>, vendor: Option<&str>) -> Result<(), String> {
    let is_imitated = vendor.is_some_and(|vendor| VENDORS_WITHOUT_RATE.contains(&vendor.trim()));
    match driver.filter(|driver| is_imitated || DRIVERS_WITHOUT_RATE.contains(driver)) {
        Some(driver) => Err(format!("nothing keeps the rate that {driver} names")),
        None => Ok(()),
    }
}

/// Takes the driver's speed, unless the device has no rate of its own; but a lab knows what it keeps.
fn believed_speed(device: &Device, mbps: Result<Option<u32>, String>) -> Reading {
    if let Some(bps) = device.lab_bps {
        return Ok(FactValue::Number(bps as f64, Unit::BitsPerSecond));
    }
    match device.kind.as_deref() {
        _ if device.loopback => return Err("loopback has no rate of its own".to_owned()),
        Some(kind) if KINDS_WITHOUT_RATE.contains(&kind) => {
            return Err(format!("{kind} has no rate of its own"));
        }
        _ => {}
    }
    match mbps? {
        Some(mbps) => Ok(FactValue::Number(
            f64::from(mbps) * 1e6,
            Unit::BitsPerSecond,
        )),
        None => Err("the driver does not know it".to_owned()),
    }
}

/// Takes the queues in use; a driver without channels has all that were allocated.
fn queue_count(in_use: Option<u32>, allocated: Option<u32>) -> Reading {
    in_use.filter(|&count| count > 0).or(allocated).map_or_else(
        || Err("neither the driver nor netlink says".to_owned()),
        count,
    )
}

/// Adds the width and speed of the PCIe link that the device sits on, and what it could have.
fn add_pcie(facts: &mut Facts, device: &Device, folder: Result<&Path, &String>) {
    for (fact, file) in [
        ("pcie_width", "current_link_width"),
        ("pcie_width_max", "max_link_width"),
        ("pcie_gts", "current_link_speed"),
        ("pcie_gts_max", "max_link_speed"),
    ] {
        let reading = folder.map_err(Clone::clone).and_then(|folder| {
            let value = read_value(&folder.join(file));
            let value = value.map_err(|_| "not a PCIe device".to_owned())?;
            // Speeds read `16.0 GT/s PCIe`.
            number(value.split(' ').next().unwrap_or_default(), Unit::Count)
        });
        facts.add(fact_name(device, fact), reading);
    }
}

/// Returns the device's directory in sysfs, if that is the same device.
///
/// sysfs shows the network namespace in which it was mounted. Names and indexes repeat from
/// namespace to namespace (every second one has an `eth0` of index 2), so the address is compared
/// as well.
fn sysfs_of(device: &Device, sys_root: &Path) -> Result<PathBuf, String> {
    let directory = sys_root.join("class/net").join(&device.name);
    if fs::metadata(&directory).is_err() {
        return Err(format!("{}: not there", directory.display()));
    }
    let index = read_value(&directory.join("ifindex"))?;
    let address = read_value(&directory.join("address")).ok();
    if index != device.index.to_string() || address != device.address {
        return Err("sysfs shows another network namespace".to_owned());
    }
    Ok(directory)
}

fn fact_name(device: &Device, fact: &str) -> String {
    format!("link.{}.{fact}", device.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(kind: Option<&str>) -> Device {
        Device {
            index: 2,
            name: "eth0".to_owned(),
            loopback: false,
            mtu_bytes: Some(1500),
            address: Some(mac_text(&[2, 0, 0, 0, 0, 0x1f])),
            qdisc: Some("mq".to_owned()),
            kind: kind.map(str::to_owned),
            lab_bps: None,
            lab_up_bps: None,
            rx_queues_max: Some(8),
            tx_queues_max: Some(8),
        }
    }

    #[test]
    fn a_rate_that_nothing_keeps_is_missing() {
        let speed = |kind, mbps| believed_speed(&device(kind), mbps);
        assert_eq!(
            speed(None, Ok(Some(25_000))),
            Ok(FactValue::Number(25e9, Unit::BitsPerSecond))
        );
        assert_eq!(
            speed(Some("veth"), Ok(Some(10_000))),
            Err("veth has no rate of its own".to_owned())
        );
        let of_lab = Device {
            lab_bps: lab_rates("linerate lab link, bit/s: 1000000000")[0],
            ..device(Some("veth"))
        };
        assert_eq!(
            believed_speed(&of_lab, Ok(Some(10_000))),
            Ok(FactValue::Number(1e9, Unit::BitsPerSecond))
        );
        for alias in [
            "uplink",
            "linerate lab link, bit/s: fast",
            "linerate lab link, bit/s: 0",
        ] {
            assert_eq!(lab_rates(alias), [None; 2]);
        }
        let both = lab_rates("linerate lab link, bit/s: 20000000, up 5000000");
        assert_eq!(both, [Some(20_000_000), Some(5_000_000)]);
        assert!(has_rate(Some("vmxnet3"), None).is_err());
        assert!(has_rate(Some("e1000e"), Some("0x15ad\n")).is_err());
        assert!(has_rate(Some("e1000e"), Some("0x8086\n")).is_ok());
        assert!(has_rate(None, None).is_ok());
        assert!(speed(None, Ok(None)).is_err());
        assert!(speed(None, Err("ethtool: no".to_owned())).is_err());
    }

    #[test]
    fn queues_in_use_come_before_queues_allocated() {
        let count = |count| Ok(FactValue::Number(count, Unit::Count));
        assert_eq!(queue_count(Some(2), Some(8)), count(2.0));
        assert_eq!(queue_count(None, Some(8)), count(8.0));
        assert_eq!(queue_count(Some(0), Some(8)), count(8.0));
        assert!(queue_count(None, None).is_err());
    }

    fn sysfs(index: &str, address: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        let net = root.path().join("class/net/eth0");
        fs::create_dir_all(net.join("device")).expect("a directory");
        let all = [("ifindex", index), ("address", address)];
        for (file, text) in all.iter().chain(files) {
            fs::write(net.join(file), format!("{text}\n")).expect("a file");
        }
        root
    }

    fn pcie_facts(root: &Path) -> Vec<Option<f64>> {
        let mut facts = Facts::default();
        let folder = sysfs_of(&device(None), root).map(|folder| folder.join("device"));
        add_pcie(&mut facts, &device(None), folder.as_deref());
        let snapshot = facts.into_snapshot();
        let names = ["pcie_gts", "pcie_gts_max", "pcie_width", "pcie_width_max"];
        names
            .iter()
            .map(|name| snapshot.number(&format!("link.eth0.{name}")))
            .collect()
    }

    #[test]
    fn pcie_is_read_from_the_same_device_only() {
        let files = [
            ("device/current_link_speed", "8.0 GT/s PCIe"),
            ("device/max_link_speed", "16.0 GT/s PCIe"),
            ("device/current_link_width", "4"),
            ("device/max_link_width", "16"),
        ];
        let same = sysfs("2", "02:00:00:00:00:1f", &files);
        assert_eq!(
            pcie_facts(same.path()),
            [Some(8.0), Some(16.0), Some(4.0), Some(16.0)]
        );
        for (index, address) in [("2", "02:00:00:00:00:20"), ("3", "02:00:00:00:00:1f")] {
            let other = sysfs(index, address, &files);
            assert_eq!(pcie_facts(other.path()), [None; 4]);
        }
        let virtual_device = sysfs("2", "02:00:00:00:00:1f", &[]);
        assert_eq!(pcie_facts(virtual_device.path()), [None; 4]);
    }
}
