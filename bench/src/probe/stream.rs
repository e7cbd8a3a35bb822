//! Bulk: one blocking thread for each flow at each end.
//!
//! The receiver counts, and sends its count back when the sender has closed its direction; the rate
//! is that count over the time until it came.

use std::io::IoSlice;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;

use anyhow::Context;
use nix::fcntl::{self, FcntlArg, SpliceFFlags};
use nix::sys::socket::{self, MsgFlags};
use nix::unistd;

use super::ends::Ends;
use crate::sys;

/// Receives one set of flows after the other.
pub fn serve(listener: TcpListener, flows: usize, ends: Ends) -> anyhow::Result<()> {
    loop {
        let streams = (0..flows).map(|_| Ok(listener.accept()?.0));
        let streams: Vec<TcpStream> = streams.collect::<anyhow::Result<_>>()?;
        for stream in streams {
            thread::spawn(move || receive(&stream, ends));
        }
    }
}

fn receive(stream: &TcpStream, ends: Ends) -> anyhow::Result<()> {
    // With MSG_TRUNC the pages behind the room are never touched.
    let mut room = vec![0; ends.read];
    let flags = if ends.truncate {
        MsgFlags::MSG_TRUNC
    } else {
        MsgFlags::empty()
    };
    let mut received = 0;
    loop {
        match socket::recv(stream.as_raw_fd(), &mut room, flags)? {
            0 => break,
            bytes => received += bytes as u64,
        }
    }
    Ok(super::tell(stream, received)?)
}

/// Sends for so many seconds; returns the bytes per second that the receiver counted.
pub fn run(at: (&str, u16), flows: usize, seconds: u64, ends: Ends) -> anyhow::Result<f64> {
    let streams = (0..flows).map(|_| TcpStream::connect(at));
    let streams: Vec<TcpStream> = streams
        .collect::<Result<_, _>>()
        .context("cannot connect")?;
    let payload: &'static [u8] = sys::huge_buffer(ends.write)?;
    let begun = super::begin(seconds);
    let senders = streams.into_iter().map(|stream| {
        thread::spawn(move || -> anyhow::Result<u64> {
            stream.set_nodelay(ends.no_delay)?;
            if ends.splice {
                splice(&stream, payload)?
            } else {
                copy(&stream, payload)?
            }
            stream.shutdown(Shutdown::Write)?;
            Ok(super::hear(&stream)?)
        })
    });
    let senders: Vec<_> = senders.collect();
    let mut bytes = 0;
    for sender in senders {
        bytes += sender
            .join()
            .map_err(|_| anyhow::anyhow!("a sender panicked"))??;
    }
    Ok(bytes as f64 / begun.elapsed().as_secs_f64())
}

fn copy(stream: &TcpStream, payload: &[u8]) -> anyhow::Result<()> {
    while !super::over() {
        socket::send(stream.as_raw_fd(), payload, MsgFlags::empty())?;
    }
    Ok(())
}

fn splice(stream: &TcpStream, payload: &[u8]) -> anyhow::Result<()> {
    let (read, write) = unistd::pipe()?;
    // As large as an unprivileged user may have it, and not less than one call.
    fcntl::fcntl(
        &write,
        FcntlArg::F_SETPIPE_SZ(i32::try_from(payload.len())?),
    )?;
    while !super::over() {
        let mut left = fcntl::vmsplice(&write, &[IoSlice::new(payload)], SpliceFFlags::empty())?;
        while left > 0 {
            left -= fcntl::splice(&read, None, stream, None, left, SpliceFFlags::empty())?;
        }
    }
    Ok(())
}
