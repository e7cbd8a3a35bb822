//! Which device owns an address.

use std::io;
use std::net::IpAddr;

use super::{DeviceMessage, each_device};
use crate::attributes::first_attribute;
use crate::bytes::u32_at;
use crate::sys::netlink::{NetlinkSocket, Question};

/// Length of struct ifaddrmsg, in bytes, and its attributes (include/uapi/linux/if_addr.h).
const HEADER_BYTES: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

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

fn index_of_address(socket: &mut NetlinkSocket, address: IpAddr) -> io::Result<Option<u32>> {
    let mut everything = Question::list(libc::RTM_GETADDR, &[0; HEADER_BYTES]);
    let mut found = None;
    socket.ask(&mut everything, |_, payload| {
        if local_address(payload) == Some(address) {
            // struct ifaddrmsg: family, prefix length, flags, scope (u8 each), index (u32).
            found = found.or(u32_at(payload, 4));
        }
    })?;
    Ok(found)
}

/// Returns the host's own address: IFA_LOCAL where there is one, since on a point-to-point link
/// IFA_ADDRESS is the peer's; IPv6 gives only IFA_ADDRESS otherwise.
fn local_address(message: &[u8]) -> Option<IpAddr> {
    let attributes = message.get(HEADER_BYTES..)?;
    let local = first_attribute(attributes, IFA_LOCAL);
    let bytes = local.or_else(|| first_attribute(attributes, IFA_ADDRESS))?;
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

fn device_name(
    socket: &mut NetlinkSocket,
    wanted: impl Fn(&DeviceMessage<'_>) -> bool,
) -> Option<String> {
    let mut name = None;
    let asked = each_device(socket, |device| {
        if name.is_none() && wanted(&device) {
            name = Some(device.name_text());
        }
    });
    asked.ok().and(name)
}
