//! A service that takes connections and datagrams, reads what they say and answers nothing: attacked in an agent's
//! place it tells what an attack costs everything on its machine, whoever it is for.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use clap::Args;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::hostile::is_open;

/// Take what comes and answer nothing (internal)
#[derive(Debug, Args)]
pub struct BareArgs {
    /// Where to listen.
    address: SocketAddr,
}

/// What events of the listener and of datagrams are known by; those of connections have greater numbers.
const LISTENER: u64 = 0;
const DATAGRAMS: u64 = 1;

/// Connections at the same time, as an agent has them that have said nothing: the oldest goes for the next, so that
/// who wants more makes as many here as there.
const HELD_MAX: usize = 1024;

/// Serves until it is killed.
pub fn bare(args: &BareArgs) -> anyhow::Result<()> {
    let listener = TcpListener::bind(args.address)?;
    listener.set_nonblocking(true)?;
    let datagrams = UdpSocket::bind(args.address)?;
    datagrams.set_nonblocking(true)?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
    epoll.add(&datagrams, EpollEvent::new(EpollFlags::EPOLLIN, DATAGRAMS))?;
    let mut held: BTreeMap<u64, TcpStream> = BTreeMap::new();
    let mut last = DATAGRAMS;
    let mut events = [EpollEvent::empty(); 64];
    loop {
        let count = match epoll.wait(&mut events, EpollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            count => count?,
        };
        for event in &events[..count] {
            match event.data() {
                LISTENER => {
                    while let Some(stream) = accepted(&listener)? {
                        last += 1;
                        epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, last))?;
                        held.insert(last, stream);
                        if held.len() > HELD_MAX {
                            held.pop_first();
                        }
                    }
                }
                DATAGRAMS => while datagrams.recv(&mut [0; 2048]).is_ok() {},
                number => {
                    // What is closed is watched no longer.
                    if held.get_mut(&number).is_some_and(|stream| !is_open(stream)) {
                        held.remove(&number);
                    }
                }
            }
        }
    }
}

/// Returns a connection that waits; none where none does, or where it is gone again.
fn accepted(listener: &TcpListener) -> anyhow::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true)?;
            Ok(Some(stream))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == ErrorKind::ConnectionAborted => Ok(None),
        Err(error) => Err(error.into()),
    }
}
