//! The addresses of a lab: 10.77.0.0/24 and fd77::/64 for data, 10.78.0.0/24 for control.
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
