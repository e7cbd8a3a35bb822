//! A port of this host's loopback that leads to an agent behind other hosts: each connection is a program that
//! carries it.
//!
//! Whoever connects to the port has to show the agent's token, as everywhere else.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::process::Log;

/// How long the next connection waits after one that was not carried: files or processes are short.
const PAUSE: Duration = Duration::from_millis(50);

/// The port, open until it is dropped.
pub(super) struct Tunnel {
    /// Its address.
    pub(super) address: SocketAddr,
    is_closed: Arc<AtomicBool>,
}

impl Tunnel {
    /// Opens a port; `carrier` makes the command that a connection is the standard input and output of.
    pub(super) fn open(
        carrier: impl Fn() -> Command + Send + 'static,
        log: Log,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                // A connection that cannot be carried is closed, which its caller tells.
                let carried = stream.and_then(|stream| carry(stream, carrier(), &log));
                if carried.is_err() {
                    std::thread::sleep(PAUSE);
                }
            }
        });
        Ok(Self { address, is_closed })
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // Whoever waits for a connection looks again.
        drop(TcpStream::connect(self.address));
    }
}

fn carry(stream: TcpStream, mut command: Command, log: &Log) -> io::Result<()> {
    let (input, output) = (OwnedFd::from(stream.try_clone()?), OwnedFd::from(stream));
    command.stdin(input).stdout(output).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn()?;
    // It has the connection; held here as well, it would not end.
    drop(command);
    if let Some(stderr) = child.stderr.take() {
        log.keep(stderr);
    }
    std::thread::spawn(move || child.wait());
    Ok(())
}
