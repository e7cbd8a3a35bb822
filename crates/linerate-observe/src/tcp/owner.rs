//! Whose a connection of this host is.

use std::io;
use std::net::{IpAddr, SocketAddr};

use linerate_model::socket::{Protocol, SocketState};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use super::message::parse;
use crate::sys::netlink::{NetlinkSocket, Question};
use crate::sys::sock_diag::SOCK_DIAG_BY_FAMILY;

/// `INET_DIAG_NOCOOKIE` of inet_diag.h: whichever socket it is.
const NO_COOKIE: [u8; 8] = [0xff; 8];

/// Returns the user to whom the end `own` of a connection to `other` belongs, in the calling thread's network
/// namespace, as its user namespace has it.
///
/// Only of an established connection: what the kernel keeps of one that its program has closed
/// (`inet_diag`'s `twsk_diag_fill`) it calls root's, whoever's it was.
pub fn owner_of(own: SocketAddr, other: SocketAddr) -> io::Result<u32> {
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    let (own, other) = (plain(own), plain(other));
    let family = match own.ip() {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    // struct inet_diag_req_v2: family, protocol, no extensions; states; the socket's id.
    let mut payload = vec![family as u8, Protocol::Tcp.number(), 0, 0];
    payload.extend(u32::MAX.to_ne_bytes());
    payload.extend(own.port().to_be_bytes());
    payload.extend(other.port().to_be_bytes());
    for end in [own, other] {
        let mut address = [0; 16];
        match end.ip() {
            IpAddr::V4(ip) => address[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => address = ip.octets(),
        }
        payload.extend(address);
    }
    payload.extend(0_u32.to_ne_bytes());
    payload.extend(NO_COOKIE);
    let mut question = Question::single(SOCK_DIAG_BY_FAMILY, &payload);
    let mut found = None;
    let mut socket = NetlinkSocket::open(NETLINK_SOCK_DIAG)?;
    socket.ask(&mut question, |kind, payload| {
        if kind == SOCK_DIAG_BY_FAMILY {
            found = parse(payload, Protocol::Tcp);
        }
    })?;
    let row = found.ok_or(io::ErrorKind::NotFound)?;
    let is_it = (plain(row.local), plain(row.remote)) == (own, other);
    if is_it && row.state == SocketState::Established {
        Ok(row.uid)
    } else {
        Err(io::ErrorKind::NotConnected.into())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn connections_of_this_host_are_their_users_while_they_are_open() {
        let own = std::fs::metadata("/proc/self").expect("/proc").uid();
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                assert!(address.contains("::"), "{address}");
                continue;
            };
            let mut to = listener.local_addr().expect("it is bound");
            if to.ip().is_unspecified() {
                // As IPv4 comes to a listener of both.
                to.set_ip([127, 0, 0, 1].into());
            }
            let client = TcpStream::connect(to).expect("it listens");
            let (server, peer) = listener.accept().expect("it was connected to");
            let here = server.local_addr().expect("it is connected");
            assert_eq!(owner_of(peer, here).expect("an owner"), own, "{address}");
            // Another socket of this process has no such ends.
            let mut other = peer;
            other.set_port(peer.port() ^ 1);
            assert!(owner_of(other, here).is_err());
            client.shutdown(Shutdown::Write).expect("it is open");
            let mut nothing = [0];
            let end = std::io::Read::read(&mut &server, &mut nothing);
            assert_eq!(end.expect("the end"), 0);
            assert!(
                owner_of(peer, here).is_err(),
                "it is not established any more"
            );
            drop(client);
            assert!(owner_of(peer, here).is_err(), "nor is what is left of it");
        }
    }
}
