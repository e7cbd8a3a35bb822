//! Connect, one byte each way, close: one thread with `epoll` at each end.
//!
//! The client closes with a reset, so that neither end keeps ports in TIME_WAIT and a run is not
//! bounded by how many ports there are.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use anyhow::Context;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use socket2::{Domain, Socket, Type};

/// Events taken by one wait.
const EVENTS: usize = 512;
/// Connections taken before the loop looks at those that it has.
const ACCEPTS: usize = 64;

/// Accepts, answers each byte with a byte, forgets what is closed.
pub fn serve(listener: &TcpListener) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new(EpollCreateFlags::empty())?;
    let readable = |fd: i32| EpollEvent::new(EpollFlags::EPOLLIN, fd as u64);
    epoll.add(listener.as_fd(), readable(listener.as_raw_fd()))?;
    let mut streams: HashMap<u64, TcpStream> = HashMap::new();
    let mut events = [EpollEvent::empty(); EVENTS];
    loop {
        let ready = epoll.wait(&mut events, 100_u16)?;
        for event in &events[..ready] {
            if event.data() == listener.as_raw_fd() as u64 {
                for _ in 0..ACCEPTS {
                    let Ok((stream, _)) = listener.accept() else {
                        break;
                    };
                    stream.set_nonblocking(true)?;
                    if answer(&stream) {
                        let fd = stream.as_raw_fd();
                        epoll.add(stream.as_fd(), readable(fd))?;
                        streams.insert(fd as u64, stream);
                    }
                }
            } else if !streams.get(&event.data()).is_some_and(answer) {
                streams.remove(&event.data());
            }
        }
    }
}

/// Answers what is there; false once the other end has closed.
fn answer(mut stream: &TcpStream) -> bool {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) => false,
        Ok(_) => stream.write_all(&byte).is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

/// Keeps so many connections going for so many seconds; returns transactions per second.
pub fn run(at: (&str, u16), flows: usize, seconds: u64) -> anyhow::Result<f64> {
    let server = at.to_socket_addrs()?.next().context("no address")?;
    let epoll = Epoll::new(EpollCreateFlags::empty())?;
    let mut streams = Vec::with_capacity(flows);
    let begun = super::begin(seconds);
    for at in 0..flows {
        streams.push(open(&epoll, server, at)?);
    }
    let mut events = [EpollEvent::empty(); EVENTS];
    let mut transactions = 0;
    while !super::over() {
        let ready = epoll.wait(&mut events, 100_u16)?;
        for event in &events[..ready] {
            let at = event.data() as usize;
            let mut byte = [1];
            if event.events().contains(EpollFlags::EPOLLOUT) {
                streams[at].write_all(&byte)?;
                let mut readable = EpollEvent::new(EpollFlags::EPOLLIN, event.data());
                epoll.modify(streams[at].as_fd(), &mut readable)?;
            } else {
                transactions += streams[at].read(&mut byte)? as u64;
                streams[at] = open(&epoll, server, at)?;
            }
        }
    }
    Ok(transactions as f64 / begun.elapsed().as_secs_f64())
}

fn open(epoll: &Epoll, server: SocketAddr, at: usize) -> anyhow::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_linger(Some(Duration::ZERO))?;
    match socket.connect(&server.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error.into()),
        _ => {}
    }
    epoll.add(
        socket.as_fd(),
        EpollEvent::new(EpollFlags::EPOLLOUT, at as u64),
    )?;
    Ok(socket.into())
}
