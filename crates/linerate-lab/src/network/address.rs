//! The addresses of a lab: 10.77.0.0/24 and fd77::/64 for data, 10.78.0.0/24 for control.
//!
//! Every host knows the others by name: `NAME` is the data address, `NAME.v6` its IPv6 address and
//! `NAME.ctl` the control address. The name alone is not the IPv6 address too, since the C library
//! would prefer that, and a TCP segment then carries 20 bytes less.
//!
//! They cannot collide with the machine's own: a lab shares no network with it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The last byte of this process's address on the control network.
const CONTROLLER_NUMBER: u8 = 254;
/// Length of the network's part of every IPv4 address.
pub(crate) const PREFIX: u8 = 24;
/// Length of the network's part of every IPv6 address.
pub(crate) const PREFIX_V6: u8 = 64;

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

/// Returns the text of `/etc/hosts` in each of `hosts`, which are in the order of their addresses.
pub(crate) fn names(hosts: &[String]) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    for (name, number) in hosts.iter().zip(1u8..) {
        let rows = [
            (data_address(number), ""),
            (data_address_v6(number), ".v6"),
            (control_address(number), ".ctl"),
        ];
        for (address, suffix) in rows {
            text += &format!("{address} {name}{suffix}\n");
        }
    }
    text
}
