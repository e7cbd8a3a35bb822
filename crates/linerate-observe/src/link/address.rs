//! Which device owns an address, and which one leads to a peer.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::Parseable;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{DeviceMessage, every_device};
use crate::sys::netlink::{NetlinkSocket, Question};

/// Returns the device that owns the local `address`, in the calling thread's network namespace.
///
/// Every other address of 127.0.0.0/8 belongs to the loopback device too. Traffic between two
/// addresses of one host goes through loopback, whichever device owns them.
pub fn link_of_address(address: IpAddr) -> Option<String> {
    let address = address.to_canonical();
    let mut socket = NetlinkSocket::route().ok()?;
    if let Some(index) = index_of_address(&mut socket, address).ok()? {
        return device_name(&mut socket, |device| device.index == index);
    }
    if address.is_loopback() {
        return device_name(&mut socket, |device| device.is_loopback());
    }
    None
}

/// Returns the device through which packets to `peer` leave; `lo` for an address of this host.
pub fn route_device(peer: IpAddr) -> Option<String> {
    let peer = peer.to_canonical();
    let mut message = RouteMessage::default();
    (
        message.header.address_family,
        message.header.destination_prefix_length,
    ) = match peer {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    message
        .attributes
        .push(RouteAttribute::Destination(peer.into()));
    let mut question = Question::one(RouteNetlinkMessage::GetRoute(message));
    let mut socket = NetlinkSocket::route().ok()?;
    let mut index = None;
    socket
        .ask(&mut question, |_, payload| {
            let route = RouteMessage::parse(payload).ok();
            index = route.and_then(|route| {
                route
                    .attributes
                    .iter()
                    .find_map(|attribute| match attribute {
                        RouteAttribute::Oif(index) => Some(*index),
                        _ => None,
                    })
            });
        })
        .ok()?;
    let index = index?;
    device_name(&mut socket, |device| device.index == index)
}

fn index_of_address(socket: &mut NetlinkSocket, address: IpAddr) -> io::Result<Option<u32>> {
    let everything = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let mut found = None;
    socket.ask(&mut Question::all(everything), |_, payload| {
        let Ok(message) = AddressMessage::parse(payload) else {
            return;
        };
        if local_address(&message) == Some(address) {
            found = found.or(Some(message.header.index));
        }
    })?;
    Ok(found)
}

/// Returns the host's own address: IFA_LOCAL where there is one, since on a point-to-point link
/// IFA_ADDRESS is the peer's; IPv6 gives only IFA_ADDRESS otherwise.
fn local_address(message: &AddressMessage) -> Option<IpAddr> {
    let local = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            AddressAttribute::Local(address) => Some(*address),
            _ => None,
        });
    local.or_else(|| {
        message
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                AddressAttribute::Address(address) => Some(*address),
                _ => None,
            })
    })
}

fn device_name(
    socket: &mut NetlinkSocket,
    wanted: impl Fn(&DeviceMessage<'_>) -> bool,
) -> Option<String> {
    let mut name = None;
    socket
        .ask(&mut every_device(), |kind, payload| {
            let device = DeviceMessage::parse(kind, payload).filter(&wanted);
            name = name.take().or(device.map(|device| device.name_text()));
        })
        .ok()?;
    name
}
