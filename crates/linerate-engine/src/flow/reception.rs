//! Where datagrams of peers that have no socket yet come in.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::sieve::Sieve;
use crate::sys::datagram;
use crate::sys::socket::{self, SO_REUSEADDR};

/// Datagrams of others that one socket may get between its binding and its connecting, at the
/// most: what comes within some microseconds.
const STRAYS_MAX: usize = 64;

/// A UDP socket that takes the first datagrams of new peers, and gives each a socket of its own
/// on the same port.
#[derive(Debug)]
pub struct DatagramListener {
    socket: OwnedFd,
    port: u16,
}

/// A datagram that came to a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Who sent it; IPv4 as such, even on a socket of IPv6.
    pub peer: SocketAddr,
    /// The address of ours that it came to, where the kernel says.
    pub local: Option<IpAddr>,
    /// What it says, as far as there was room.
    pub bytes: Vec<u8>,
}

impl DatagramListener {
    /// Listens on `address`; `[::]` takes IPv4 too.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = datagram::open(address)?;
        datagram::prepare_listener(socket.as_raw_fd(), address)?;
        socket::bind(socket.as_fd(), address)?;
        let port = socket::local(socket.as_fd())?.port();
        Ok(Self { socket, port })
    }

    /// Makes it take only what is waited for by the sieve that is returned.
    pub fn sieve(&self) -> io::Result<Sieve> {
        self.socket.try_clone().map(Sieve::new)
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Takes one datagram without waiting, at most `bytes_max` of it; an error of kind
    /// `WouldBlock` if there is none.
    pub fn receive(&self, bytes_max: usize) -> io::Result<Arrival> {
        arrival(self.socket.as_raw_fd(), bytes_max)
    }

    /// Answers an arrival from the address that it came to.
    pub fn answer(&self, arrival: &Arrival, bytes: &[u8]) -> io::Result<()> {
        let peer = match (self.is_ipv6()?, arrival.peer) {
            (true, SocketAddr::V4(v4)) => {
                SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
            }
            (_, peer) => peer,
        };
        datagram::send_to(self.socket.as_raw_fd(), bytes, peer, arrival.local)
    }

    /// Makes a socket that talks to the peer of `arrival` alone, from the address and port that it
    /// wrote to.
    ///
    /// Between binding and connecting the kernel may give it datagrams of others; they are handed
    /// back beside it, to be treated as if they had come to the listener.
    pub fn accept(&self, arrival: &Arrival) -> io::Result<(OwnedFd, Vec<Arrival>)> {
        let unspecified = match arrival.peer {
            SocketAddr::V4(_) => IpAddr::from([0; 4]),
            SocketAddr::V6(_) => IpAddr::from([0; 16]),
        };
        let mut local = SocketAddr::new(arrival.local.unwrap_or(unspecified), self.port);
        if let (SocketAddr::V6(local), SocketAddr::V6(peer)) = (&mut local, arrival.peer) {
            // An address of one link belongs to the device that its peer is reached by.
            local.set_scope_id(peer.scope_id());
        }
        let socket = datagram::open(arrival.peer)?;
        socket::set(socket.as_raw_fd(), SO_REUSEADDR, 1)?;
        socket::bind(socket.as_fd(), local)?;
        socket::connect(socket.as_fd(), arrival.peer)?;
        let mut strays = Vec::new();
        while strays.len() < STRAYS_MAX {
            match self::arrival(socket.as_raw_fd(), super::opening::ECHO_BYTES) {
                Ok(stray) if stray.peer == arrival.peer => {}
                Ok(stray) => strays.push(stray),
                Err(_) => break,
            }
        }
        Ok((socket, strays))
    }

    fn is_ipv6(&self) -> io::Result<bool> {
        Ok(socket::local(self.socket.as_fd())?.is_ipv6())
    }
}

impl AsFd for DatagramListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn arrival(fd: RawFd, bytes_max: usize) -> io::Result<Arrival> {
    let mut bytes = vec![0; bytes_max];
    let (received, peer, local) = datagram::receive_from(fd, &mut bytes)?;
    bytes.truncate(received);
    Ok(Arrival {
        peer: canonical(peer),
        local,
        bytes,
    })
}

/// Returns an IPv4 address inside IPv6 as what it is.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}
