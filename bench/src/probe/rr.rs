//! Request/response of one byte: blocking, spinning, or many flows under `epoll`.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use anyhow::Context;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::Probe;

/// Events taken by one wait.
const EVENTS: usize = 512;

/// Answers one set of flows after the other.
pub fn serve(listener: &TcpListener, flows: usize, probe: Probe) -> anyhow::Result<()> {
    loop {
        let streams = (0..flows).map(|_| Ok(listener.accept()?.0));
        let streams: Vec<TcpStream> = streams.collect::<anyhow::Result<_>>()?;
        // An end that is closed with responses on their way is how a set ends.
        let _ = turns(&streams, probe);
    }
}

/// Asks for so many seconds; returns transactions per second.
pub fn run(at: (&str, u16), flows: usize, seconds: u64, probe: Probe) -> anyhow::Result<f64> {
    let streams = (0..flows).map(|_| TcpStream::connect(at));
    let streams: Vec<TcpStream> = streams
        .collect::<Result<_, _>>()
        .context("cannot connect")?;
    let begun = super::begin(seconds);
    for mut stream in &streams {
        stream.set_nodelay(true)?;
        stream.write_all(&[1])?;
    }
    let transactions = turns(&streams, probe)?;
    Ok(transactions as f64 / begun.elapsed().as_secs_f64())
}

/// Sends a byte for each byte that comes; both ends are the same but for who begins.
fn turns(streams: &[TcpStream], probe: Probe) -> anyhow::Result<u64> {
    for stream in streams {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(probe != Probe::RrBlock)?;
    }
    match (probe, streams) {
        (Probe::RrEpoll, streams) => under_epoll(streams),
        (_, [stream]) => alone(stream),
        _ => anyhow::bail!("this probe has one flow"),
    }
}

fn alone(mut stream: &TcpStream) -> anyhow::Result<u64> {
    let mut byte = [0];
    let mut transactions = 0;
    while !super::over() {
        match stream.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => {
                stream.write_all(&byte)?;
                transactions += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(transactions)
}

fn under_epoll(streams: &[TcpStream]) -> anyhow::Result<u64> {
    let epoll = Epoll::new(EpollCreateFlags::empty())?;
    for (at, stream) in streams.iter().enumerate() {
        epoll.add(
            stream.as_fd(),
            EpollEvent::new(EpollFlags::EPOLLIN, at as u64),
        )?;
    }
    let mut events = [EpollEvent::empty(); EVENTS];
    let mut byte = [0];
    let mut transactions = 0;
    while !super::over() {
        let ready = epoll.wait(&mut events, 100_u16)?;
        for event in &events[..ready] {
            let mut stream = &streams[event.data() as usize];
            if stream.read(&mut byte)? == 0 {
                return Ok(transactions);
            }
            stream.write_all(&byte)?;
            transactions += 1;
        }
    }
    Ok(transactions)
}
