//! Datagrams of 64 bytes: a tight loop of `send`, `recvmmsg` at the other end.
//!
//! The server counts datagrams that it was given. The client asks for the count over TCP before and
//! after its time, on the same port.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::socket::{setsockopt, sockopt};

use crate::sys;

/// Bytes of a datagram.
const BYTES: usize = 64;
/// Datagrams of one send call that the kernel cuts: what fits its limit of 64 KiB and of segments.
pub const SEGMENTS: usize = 64;

static RECEIVED: AtomicU64 = AtomicU64::new(0);

/// Receives on the listener's port until killed.
pub fn serve(listener: TcpListener) -> anyhow::Result<()> {
    let socket = UdpSocket::bind(listener.local_addr()?)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever asked and went away needs no count.
            let _ = super::tell(&stream, RECEIVED.load(Ordering::Relaxed));
        }
    });
    let mut batch = sys::Batch::new();
    let mut received = 0;
    loop {
        received += batch.receive(socket.as_fd())? as u64;
        RECEIVED.store(received, Ordering::Relaxed);
    }
}

/// Sends for so many seconds; returns the datagrams per second that arrived.
pub fn run(at: (&str, u16), seconds: u64, segments: usize) -> anyhow::Result<f64> {
    let count = || super::hear(&TcpStream::connect(at)?);
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(at)?;
    if segments > 1 {
        setsockopt(&socket, sockopt::UdpGsoSegment, &i32::try_from(BYTES)?)?;
    }
    let payload = vec![7; BYTES * segments];
    let before = count()?;
    let begun = super::begin(seconds);
    while !super::over() {
        // A full queue is part of the measurement; what did not arrive is not counted.
        let _ = socket.send(&payload);
    }
    let wall_s = begun.elapsed().as_secs_f64();
    Ok((count()? - before) as f64 / wall_s)
}
