//! What packets of the path to a host may hold, as far as this host's kernel knows.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use crate::sys::socket::{self, IP_MTU, IPV6_MTU, TCP_INFO_BYTES_MAX, TCP_MAXSEG};

/// Headers of IP, by version, and of TCP without options.
const IP_BYTES: [u64; 2] = [20, 40];
const TCP_BYTES: u64 = 20;
/// Place of tcpi_options in struct tcp_info, its bit for timestamps, and what these take of each segment.
const OPTIONS_AT: usize = 5;
const TIMESTAMPS: u8 = 1;
const TIMESTAMPS_BYTES: u64 = 12;

/// Returns the largest packet that the route to `peer` carries, smaller ones that were learnt of it included, and
/// whether it stays within this host.
pub fn route_mtu_bytes(peer: SocketAddr) -> io::Result<(u64, bool)> {
    let ip = peer.ip().to_canonical();
    let (any, option): (IpAddr, _) = match ip {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), IP_MTU),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), IPV6_MTU),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Nothing is sent. A link-local address keeps its device.
    match ip {
        IpAddr::V4(_) => socket.connect((ip, peer.port()))?,
        IpAddr::V6(_) => socket.connect(peer)?,
    }
    let mtu = socket::read(socket.as_raw_fd(), option)?;
    let is_own = socket.local_addr()?.ip() == ip;
    Ok((u64::try_from(mtu).unwrap_or(0), is_own))
}

/// Returns the largest packet that a connection to `peer`, which is closed at once, may send: both ends' devices have
/// said what they take, and what lies between may have lowered it.
pub fn connection_mtu_bytes(peer: SocketAddr, within: Duration) -> io::Result<u64> {
    let stream = TcpStream::connect_timeout(&peer, within)?;
    let segment = u64::try_from(socket::read(stream.as_raw_fd(), TCP_MAXSEG)?).unwrap_or(0);
    let mut room = [0; TCP_INFO_BYTES_MAX];
    let written = socket::tcp_info(stream.as_raw_fd(), &mut room)?;
    let options = room[..written].get(OPTIONS_AT).copied().unwrap_or(0);
    // Its segments are counted without them.
    let timestamps = if options & TIMESTAMPS == 0 {
        0
    } else {
        TIMESTAMPS_BYTES
    };
    let ip = IP_BYTES[usize::from(peer.ip().to_canonical().is_ipv6())];
    Ok(segment + timestamps + TCP_BYTES + ip)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_sends_no_more_than_the_route_carries() {
        let both: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        for ip in both {
            let Ok(listener) = TcpListener::bind((ip, 0)) else {
                eprintln!("skipped: no {ip}");
                continue;
            };
            let peer = listener.local_addr().expect("bound");
            let (route, is_own) = route_mtu_bytes(peer).expect("a route");
            assert!(is_own);
            let packet = connection_mtu_bytes(peer, Duration::from_secs(5)).expect("it listens");
            assert!(packet > 576 && packet <= route, "{packet} of {route}");
        }
    }
}
