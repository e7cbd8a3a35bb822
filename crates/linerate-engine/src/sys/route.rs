//! How the kernel would bring a packet to an address: device, addresses of its Ethernet header, MTU.
//!
//! Asked of its routes, neighbours and links by rtnetlink (linux/rtnetlink.h, neighbour.h,
//! if_link.h); nothing is changed.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::socket;

/// RTA_* of struct rtmsg, NDA_* of struct ndmsg, IFLA_* of struct ifinfomsg.
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_SRC: u16 = 2;
const RTA_VIA: u16 = 18;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
/// ARPHRD_ETHER of linux/if_arp.h.
const ETHERNET: u16 = 1;
/// An answer to one question: route, neighbour or link. A link with many attributes takes 2 KiB.
const ANSWER_BYTES: usize = 32 << 10;

/// The way to the next machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) device: u32,
    pub(crate) name: String,
    pub(crate) mtu_bytes: usize,
    pub(crate) own_mac: [u8; 6],
    pub(crate) next_mac: [u8; 6],
}

/// Returns the way to `peer` for packets from `local`, or why there is none that Ethernet frames
/// could take.
pub(crate) fn way(local: IpAddr, peer: IpAddr) -> Result<Way, String> {
    let failed = |what: &str, error: io::Error| format!("{what} of {peer}: {error}");
    let asked = Netlink::open().map_err(|error| failed("asking for the route", error))?;
    let (family, bytes) = octets(peer);
    // struct rtmsg: family, lengths of destination and source in bits, then zeros.
    let bits = (bytes.len() * 8) as u8;
    let header = [family, bits, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let attributes = [(RTA_DST, &bytes[..]), (RTA_SRC, &octets(local).1[..])];
    let route = asked
        .ask(libc::RTM_GETROUTE, &header, &attributes)
        .map_err(|error| failed("the route", error))?;
    // rtm_type, the eighth byte of struct rtmsg.
    match route.get(7) {
        Some(&libc::RTN_UNICAST) => {}
        Some(&libc::RTN_LOCAL) => {
            return Err(format!(
                "{peer} is an address of this host, and its loopback takes no AF_XDP frames: measure \
                 between two hosts, or a lab's"
            ));
        }
        _ => return Err(format!("the route to {peer} is none to a single host")),
    }
    let attribute = |of: &[u8], skip: usize, kind: u16| find(of, skip, kind).map(<[u8]>::to_vec);
    if attribute(&route, 12, RTA_VIA).is_some() {
        return Err(format!(
            "the route to {peer} goes by a gateway of another family"
        ));
    }
    let device = attribute(&route, 12, RTA_OIF)
        .and_then(|bytes| Some(u32::from_ne_bytes(*bytes.first_chunk()?)))
        .ok_or_else(|| format!("the route to {peer} names no device"))?;
    let next = attribute(&route, 12, RTA_GATEWAY).unwrap_or(bytes);

    // struct ifinfomsg: family, padding, type, index, flags, change.
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&device.to_ne_bytes());
    let link = asked
        .ask(libc::RTM_GETLINK, &header, &[])
        .map_err(|error| failed("the device on the way", error))?;
    let name = attribute(&link, 16, IFLA_IFNAME).unwrap_or_default();
    let name = String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(&name)).into_owned();
    let kind = link
        .get(2..4)
        .map(|two| u16::from_ne_bytes([two[0], two[1]]));
    if kind != Some(ETHERNET) {
        return Err(format!(
            "{name}, the device on the way to {peer}, is not Ethernet"
        ));
    }
    let mac = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| bytes.try_into().ok());
    let own_mac = mac(attribute(&link, 16, IFLA_ADDRESS))
        .ok_or_else(|| format!("{name}, the device on the way to {peer}, has no address"))?;
    let mtu_bytes = attribute(&link, 16, IFLA_MTU)
        .and_then(|bytes| Some(u32::from_ne_bytes(*bytes.first_chunk()?)))
        .unwrap_or(0) as usize;

    // struct ndmsg: family, padding, index, state, flags, type.
    let mut header = [0; 12];
    header[0] = family;
    header[4..8].copy_from_slice(&device.to_ne_bytes());
    let unknown = || {
        let next = from_octets(&next).map_or_else(String::new, |next| next.to_string());
        format!("the neighbour table of {name} has no address for {next}, the next on the way")
    };
    let neighbour = asked
        .ask(libc::RTM_GETNEIGH, &header, &[(NDA_DST, &next[..])])
        .map_err(|_| unknown())?;
    let next_mac = mac(attribute(&neighbour, 12, NDA_LLADDR)).ok_or_else(unknown)?;
    Ok(Way {
        device,
        name,
        mtu_bytes,
        own_mac,
        next_mac,
    })
}

fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address.to_canonical() {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    }
}

fn from_octets(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

/// Returns the value of the first attribute of this kind after `skip` bytes of header.
fn find(message: &[u8], skip: usize, kind: u16) -> Option<&[u8]> {
    let mut rest = message.get(skip..)?;
    loop {
        let head = rest.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        if u16::from_ne_bytes([head[2], head[3]]) == kind {
            return rest.get(4..length);
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

/// A socket to the kernel's tables of the thread's network namespace.
struct Netlink(OwnedFd);

impl Netlink {
    fn open() -> io::Result<Self> {
        let protocol = libc::NETLINK_ROUTE;
        socket::new(libc::AF_NETLINK, libc::SOCK_RAW, protocol).map(Self)
    }

    /// Asks one question; returns the answer without its struct nlmsghdr.
    fn ask(&self, kind: u16, header: &[u8], attributes: &[(u16, &[u8])]) -> io::Result<Vec<u8>> {
        // struct nlmsghdr: length, type, flags, sequence, port.
        let mut message = vec![0; 16];
        message.extend_from_slice(header);
        for (kind, value) in attributes {
            message.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
            message.extend_from_slice(&kind.to_ne_bytes());
            message.extend_from_slice(value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        socket::send(self.0.as_raw_fd(), &message)?;
        // The kernel answers one such question within the call that asks it.
        let mut answer = vec![0; ANSWER_BYTES];
        let length = socket::receive(self.0.as_raw_fd(), &mut answer)?;
        answer.truncate(length);
        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let kind = answer.get(4..6).ok_or_else(short)?;
        if i32::from(u16::from_ne_bytes([kind[0], kind[1]])) == libc::NLMSG_ERROR {
            let code = answer.get(16..20).and_then(|four| four.try_into().ok());
            let code = i32::from_ne_bytes(code.ok_or_else(short)?);
            return Err(io::Error::from_raw_os_error(-code));
        }
        Ok(answer.split_off(16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_over_loopback_is_refused_with_its_reason() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let why = way(address, address).unwrap_err();
            assert!(why.contains("an address of this host"), "{why}");
        }
    }

    #[test]
    fn attributes_are_found_and_their_lengths_not_believed() {
        let two = [8, 0, 1, 0, 1, 2, 3, 4, 6, 0, 2, 0, 5, 6, 0, 0];
        assert_eq!(find(&two, 0, 1), Some(&two[4..8]));
        assert_eq!(find(&two, 0, 2), Some(&two[12..14]));
        assert_eq!(find(&two, 0, 3), None);
        assert_eq!(find(&[0, 0, 1, 0], 0, 2), None);
        assert_eq!(find(&[200, 0, 1, 0], 0, 1), None);
    }
}
